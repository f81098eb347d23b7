package disk

// Host gives the blocks of a Disk room as they are first written: it is the file system that a sparse image lies on.
// Its methods may be called concurrently.
type Host interface {
	// Reserve makes sure that the n blocks from a on can be written, for as long as the
	// volume lives, without more room than they have then. Cheap where they have it. The
	// error wraps ErrNoRoom if the host is full. Where the host cannot promise anything,
	// its free room beyond what Keep asked for decides, as last seen.
	Reserve(a, n uint64) error
	// Keep says how many reserved blocks may wait to be written for the first time. Call it
	// before Reserve.
	Keep(n uint64)
	// Backed returns the first run [lo, hi) of blocks from a on that have room; ok = false
	// when there is none. Runs may be divided, and some may be left out.
	Backed(a uint64) (lo, hi uint64, ok bool)
	// Room returns how many blocks without room could get some, and how many have it, both
	// as they were about a second ago at most. What the host does not tell is no bound.
	Room() (free, backed uint64)
	// Below returns how many of the blocks below end there are, and may need room: all of them, but in a layout of
	// which a part is not there (Pieced).
	Below(end uint64) uint64
}

// HostOf returns the host of d, or of what d wraps. It is nil if d takes no room as it is written: memory, a device, a
// preallocated image, or an image that is opened read-only.
func HostOf(d Disk) Host {
	if x, ok := within[interface{ Host() Host }](d); ok {
		return x.Host()
	}
	return nil
}
