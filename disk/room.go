package disk

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"tansy/internal/lockorder"
)

// room is the Host of a sparse image. It asks the host for room in chunks, so that a
// stream of writes asks seldom; on a host that is nearly full, block by block.
type room struct {
	f     *File
	known atomic.Pointer[[]atomic.Uint64] // a bit per chunk: all of it has room; changed with mu held
	keep  atomic.Uint64

	mu    lockorder.Mutex[lockorder.HostRoom]
	tight time.Time // no whole chunks before
	full  time.Time // nothing new before
	blind bool      // the host makes no promises
	given bool      // some was given back since the last barrier; the host may have it only after that

	looked time.Time // when free and backed were found out; zero: not yet
	free   uint64    // blocks
	backed uint64    // blocks
	since  uint64    // blocks reserved since then
}

// chunk is the number of blocks that room is asked for at a time: 4 MiB.
const chunk = 1024

// lookEvery is how old what is known of the host may be, and lookAfter how many blocks
// may have been reserved since.
const (
	lookEvery = time.Second
	lookAfter = 16 << 20 / BlockSize
)

// fullFor is how long a host that gave nothing is not asked again: to refuse costs some
// file systems much.
const fullFor = lookEvery / 10

func newRoom(f *File) *room {
	r := &room{f: f}
	known := bitsFor(f.Size())
	r.known.Store(&known)
	return r
}

// bitsFor are the bits of the chunks of size blocks.
func bitsFor(size uint64) []atomic.Uint64 {
	chunks := (size + chunk - 1) / chunk
	return make([]atomic.Uint64, (chunks+63)/64)
}

// reach gives the file a size of so many blocks, more than it had. What is known of its chunks stays, but for the last
// one if that ends with more blocks than it had. Nobody asks for that one's room in between: he would ask for the
// blocks that it had, and all of it would be known to have room.
func (r *room) reach(size uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := bitsFor(size)
	for i := range *r.known.Load() {
		known[i].Store((*r.known.Load())[i].Load())
	}
	if has := r.f.Size(); has%chunk != 0 {
		known[has/chunk/64].And(^(uint64(1) << (has / chunk % 64)))
	}
	r.known.Store(&known)
	r.f.size.Store(size) // second: who sees it sees the bits of all its chunks
	r.ask()
}

// bits are those of the chunks of which c is one, and its place among them.
func (r *room) bits(c uint64) (word *atomic.Uint64, bit uint64) {
	return &(*r.known.Load())[c/64], 1 << (c % 64)
}

// Host returns the host of a sparse image, for HostOf.
func (d *File) Host() Host {
	if r := d.lender(); r != nil {
		return r
	}
	return nil
}

// lender is the room of a sparse image, nil for all else. An image that had all its room when
// this was asked first is a preallocated one, and stays one.
func (d *File) lender() *room {
	if d.readOnly || d.device {
		return nil
	}
	d.roomOnce.Do(func() {
		d.room = newRoom(d)
		if n, err := d.allocated(); err == nil && n >= d.needed.Load() {
			d.thick.Store(true)
		}
	})
	if d.thick.Load() {
		return nil
	}
	return d.room
}

// allocated is the number of blocks that the file takes on its host.
func (d *File) allocated() (n uint64, err error) {
	err = withFD(d.conn, func(fd int) error {
		n, err = allocatedBytes(fd)
		return err
	})
	return n / BlockSize, err
}

// Preallocate takes all the room of the image from its host now. No write fails for lack of room after it. The contents
// of blocks stay.
func (d *File) Preallocate() error {
	if d.device {
		return nil
	}
	err := d.allocate(0, 1) // can it at all?
	if err == nil {
		err = d.fits(d.Size())
	}
	if err == nil {
		err = d.allocateAll(0, d.Size())
	}
	switch {
	case isNoRoom(err):
		err = fmt.Errorf("%w: the image takes %d bytes in all", ErrNoRoom, d.Size()*BlockSize)
	case isUnsupported(err):
		err = fmt.Errorf("the file system cannot allocate room in advance: %w", err)
	}
	if err != nil {
		return &Error{Op: "preallocate", Path: d.path, Err: err}
	}
	d.thick.Store(true)
	return nil
}

// allocateAll gives the blocks from a on before end room on the host.
func (d *File) allocateAll(a, end uint64) (err error) {
	const piece = 64 << 20 / BlockSize // some systems start again after a signal
	for ; a < end && err == nil; a += piece {
		err = d.allocate(a, min(piece, end-a))
	}
	return err
}

// fits returns ENOSPC if the host has no room for what an image of size blocks does not have yet. So nothing is taken
// from other programs in vain.
func (d *File) fits(size uint64) error {
	var has unix.Stat_t
	var host unix.Statfs_t
	fd := int(d.f.Fd())
	if err := retry(func() error { return unix.Fstat(fd, &has) }); err != nil {
		return err
	}
	if err := retry(func() error { return unix.Fstatfs(fd, &host) }); err != nil {
		return err
	}
	free := freeBytes(&host)
	if os.Geteuid() == 0 { // what is reserved is reserved for root
		free = host.Bfree * uint64(host.Bsize)
	}
	if whole := size * BlockSize; whole > uint64(has.Blocks)*512+free {
		return unix.ENOSPC
	}
	return nil
}

// allocate gives n blocks from a on room on the host.
func (d *File) allocate(a, n uint64) error {
	return withFD(d.conn, func(fd int) error {
		return retry(func() error { return d.fallocate(fd, int64(a)*BlockSize, int64(n)*BlockSize) })
	})
}

func isNoRoom(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// noRoom lets an error of a host that is full wrap ErrNoRoom.
func noRoom(err error) error {
	if isNoRoom(err) {
		return fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	return err
}

// isUnsupported tells that the host does not know fallocate, or not for this file.
func isUnsupported(err error) bool {
	for _, e := range []error{unix.EOPNOTSUPP, unix.ENOSYS, unix.EINVAL, unix.ENODEV, unix.EPERM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (r *room) knows(c uint64) bool {
	word, bit := r.bits(c)
	return word.Load()&bit != 0
}

// Keep implements Host.
func (r *room) Keep(n uint64) { r.keep.Store(n) }

// Reserve implements Host.
func (r *room) Reserve(a, n uint64) error {
	if a > r.f.Size() || n > r.f.Size()-a {
		return &Error{Op: "reserve", Path: r.f.path, Err: ErrRange}
	}
	for end := a + n; a < end; {
		c := a / chunk
		stop := min(end, (c+1)*chunk)
		if !r.knows(c) {
			if err := r.grow(c, a, stop-a); err != nil {
				return &Error{Op: "reserve", Path: r.f.path, Err: err}
			}
		}
		a = stop
	}
	return nil
}

// grow gives chunk c room, or at least n blocks from a on, which lie in it.
func (r *room) grow(c, a, n uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.knows(c) {
		return nil
	}
	now := time.Now()
	if now.Before(r.full) {
		if lo, hi, ok := r.f.data(a); ok && lo <= a && a+n <= hi {
			return nil
		}
		return ErrNoRoom
	}
	if !r.blind && !now.Before(r.tight) && !r.scant() {
		lo := c * chunk
		err := r.f.allocate(lo, min(chunk, r.f.Size()-lo))
		switch {
		case err == nil:
			word, bit := r.bits(c)
			word.Or(bit)
			r.since += chunk
			return nil
		case isNoRoom(err):
			r.tight = now.Add(lookEvery)
		case isUnsupported(err):
			r.blind = true
		default:
			return err
		}
	}
	if r.blind {
		return r.guess(n)
	}
	err := r.f.allocate(a, n)
	if isNoRoom(err) {
		r.full = now.Add(fullFor)
		return noRoom(err)
	}
	r.since += n
	return err
}

// scant tells whether a chunk may be more than the host has left. Some file systems would give a part of it
// before they refuse, and nobody would know of that. The caller holds mu.
func (r *room) scant() bool {
	r.look()
	return r.free < r.since+2*chunk
}

// giveBack has punch take the room of n blocks from a on. They are not known to have room from
// before that on, and who reserves some of them waits.
func (r *room) giveBack(a, n uint64, punch func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := a / chunk; c*chunk < a+n; c++ {
		word, bit := r.bits(c)
		word.And(^bit)
	}
	if err := punch(); err != nil {
		return err
	}
	r.given = true
	r.ask()
	return nil
}

// ask forgets that the host is full, and how full it is. The caller holds mu.
func (r *room) ask() { r.tight, r.full, r.looked = time.Time{}, time.Time{}, time.Time{} }

// flushed notes a barrier.
func (r *room) flushed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.given {
		r.given = false
		r.ask()
	}
}

// guess tells whether n blocks will find room on a host that promises none.
func (r *room) guess(n uint64) error {
	r.look()
	if r.free < r.f.Size() && r.free < r.keep.Load()+r.since+n {
		return ErrNoRoom
	}
	r.since += n
	return nil
}

// look finds out about the host, if what is known is old. The caller holds mu.
func (r *room) look() {
	if now := time.Now(); r.looked.IsZero() || now.Sub(r.looked) >= lookEvery || r.since >= lookAfter {
		r.looked, r.since = now, 0
		var err error
		if r.free, err = r.f.hostFree(); err != nil {
			r.free = r.f.Size() // a host that does not tell sets no bound
		}
		if r.backed, err = r.f.allocated(); err != nil {
			r.backed = 0
		}
		r.backed -= min(r.backed, r.f.Size()-r.f.needed.Load()) // what is behind the volume may have all its room
	}
}

// hostFree is the number of blocks free on the file system the file lies on.
func (d *File) hostFree() (n uint64, err error) {
	err = withFD(d.conn, func(fd int) error {
		var st unix.Statfs_t
		if err := retry(func() error { return unix.Fstatfs(fd, &st) }); err != nil {
			return err
		}
		n = freeBytes(&st) / BlockSize
		return nil
	})
	return n, err
}

// HostFree returns the bytes free to anybody on the file system that holds path.
func HostFree(path string) (uint64, error) {
	var st unix.Statfs_t
	if err := retry(func() error { return unix.Statfs(path, &st) }); err != nil {
		return 0, &Error{Op: "look at", Path: path, Err: err}
	}
	return freeBytes(&st), nil
}

// Room implements Host.
func (r *room) Room() (free, backed uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look()
	free = r.free
	if r.blind { // all that is left will not be given
		free -= min(free, r.keep.Load())
	}
	return free, r.backed
}

// Below implements Host.
func (r *room) Below(end uint64) uint64 { return end }

// Backed implements Host.
func (r *room) Backed(a uint64) (lo, hi uint64, ok bool) {
	size := r.f.Size() // first: what is known may be older than the size, else
	if a >= size {
		return 0, 0, false
	}
	lo, hi, ok = r.f.data(a)
	if c, found := r.nextKnown(a / chunk); found {
		if k := max(a, c*chunk); k < size && (!ok || k < lo) {
			return k, min((c+1)*chunk, size), true
		}
	}
	return lo, hi, ok
}

// nextKnown returns the first chunk from c on that is known to have room.
func (r *room) nextKnown(c uint64) (uint64, bool) {
	known := *r.known.Load()
	for i := c / 64; i < uint64(len(known)); i++ {
		w := known[i].Load()
		if i == c/64 {
			w &= ^uint64(0) << (c % 64)
		}
		if w != 0 {
			return i*64 + uint64(bits.TrailingZeros64(w)), true
		}
	}
	return 0, false
}

// data returns the first run of whole blocks from a on that the host has written.
func (d *File) data(a uint64) (lo, hi uint64, ok bool) {
	err := withFD(d.conn, func(fd int) error {
		for {
			from, err := unix.Seek(fd, int64(a)*BlockSize, unix.SEEK_DATA)
			if err != nil {
				return err
			}
			to, err := unix.Seek(fd, from, unix.SEEK_HOLE)
			if err != nil {
				return err
			}
			lo, hi = (uint64(from)+BlockSize-1)/BlockSize, min(uint64(to)/BlockSize, d.Size())
			if lo < hi || hi >= d.Size() {
				return nil
			}
			a = hi + 1
		}
	})
	return lo, hi, err == nil && lo < hi
}
