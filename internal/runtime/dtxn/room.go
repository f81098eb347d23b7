package dtxn

import (
	"errors"
	"sync/atomic"
	"time"

	"tansy/disk"
)

// On a sparse image a block needs room on the host when it is first written. That may be
// long after the transaction that allocated it was acknowledged, so the room is taken
// before the transaction commits: when the bit is handed out. From then on the block can
// be written whatever becomes of the host. What was written before has room already, so
// removing and overwriting never need any (overwriting may take some where there is enough: exchange).

// smallPerBlock is the number of 256-byte objects in a block.
const smallPerBlock = disk.BlockSize / 256

// host is what is known of the host.
type host struct {
	scarce  [2]scarce // of the two bitmaps
	ample   ample
	lasting lasting
}

// scarce is what is known of a host without room, for one bitmap.
type scarce struct {
	next  atomic.Uint64 // the block to look for room from
	until atomic.Int64  // nothing is to be found before that time (nanoseconds),
	freed atomic.Uint64 // unless more bits have been freed, or blocks been given back, than these
}

// ample is whether a host has room for all of an image, however much it holds, as was found out lately.
type ample struct {
	until atomic.Int64 // so long that stands (nanoseconds)
	yes   atomic.Bool
}

// is tells whether h has room for all blocks below end.
func (m *ample) is(h disk.Host, end uint64) bool {
	if now := time.Now().UnixNano(); now >= m.until.Load() {
		free, backed := h.Room()
		there := h.Below(end)
		m.yes.Store(free >= there-min(backed, there))
		m.until.Store(now + int64(lookEvery))
	}
	return m.yes.Load()
}

// lasting is which blocks have room that they never lose, as no bitmap and no code is ever given back: some of those
// that were asked for. Blocks side by side share theirs, so the host is asked once for hundreds of them.
type lasting [256]atomic.Uint64

// has reports whether block a, which is not block 0, has room, and what is written with it.
func (l *lasting) has(a uint64) bool { return l[a%uint64(len(l))].Load() == a }

// add notes that block a has.
func (l *lasting) add(a uint64) { l[a%uint64(len(l))].Store(a) }

// lookEvery is how often a host is asked for its room.
const lookEvery = time.Second

// none is how long a search that found nothing stands for those that follow.
const none = time.Second

// maxRuns bounds a search: runs of blocks looked at.
const maxRuns = 10000

// Refused is how often no bit was handed out because the host had no room.
func (s *System) Refused() uint64 { return s.refused.Load() }

// hint hands out a clear bit whose block, and that of the bit itself, have room on the host. What it is for, p, see
// takeFor.
func (s *System) hint(which uint64, p place) (x uint64, ok bool, err error) {
	a := s.alloc[which]
	x, ok, err = a.takeFor(p)
	if !ok || err != nil || s.layout.Host == nil {
		return x, ok, err
	}
	err = s.reserve(which, x)
	if err == nil {
		return x, true, nil
	}
	a.giveBack(x)
	if !errors.Is(err, disk.ErrNoRoom) {
		return 0, false, err
	}
	return s.elsewhere(which)
}

// exchange hands out a block in the place of another, which would not need to be moved: so on a sparse image one that
// has room, unless the host has some for all of the image anyway, and gets back what is free again.
func (s *System) exchange(p place) (x uint64, ok bool, err error) {
	a := s.alloc[Blocks]
	if x, ok, err = a.exchange(p, 0); !ok || err != nil || s.layout.Host == nil {
		return x, ok, err
	}
	if s.layout.Returns && s.host.ample.is(s.layout.Host, s.base+a.end.Load()) && s.reserve(Blocks, x) == nil {
		return x, true, nil
	}
	if x, ok, err = s.ifBacked(x); ok || err != nil {
		return x, ok, err
	}
	if x, ok, err = a.exchange(p, p.near); !ok || err != nil {
		return x, ok, err
	}
	return s.ifBacked(x)
}

// ifBacked hands out x, which was taken, if it has room on the host.
func (s *System) ifBacked(x uint64) (uint64, bool, error) {
	ok, err := s.backed(x)
	if ok {
		return x, true, nil
	}
	s.alloc[Blocks].giveBack(x)
	if errors.Is(err, disk.ErrNoRoom) {
		err = nil
	}
	return 0, false, err
}

// backed reports whether block x has room on the host, and makes some for what changes with its contents.
func (s *System) backed(x uint64) (bool, error) {
	if lo, _, ok := s.layout.Host.Backed(s.base + x); !ok || lo != s.base+x {
		return false, nil
	}
	// not for the block itself: that would make room for those around it, too
	if err := s.reserveBit(Blocks, x); err != nil {
		return false, err
	}
	err := s.reserveBeside(x)
	return err == nil, err
}

// elsewhere looks for a clear bit whose block has room already: the host gives no more.
func (s *System) elsewhere(which uint64) (x uint64, ok bool, err error) {
	a, m := s.alloc[which], &s.host.scarce[which]
	freed := a.freedBits.Load() + s.j.Discarded()
	if time.Now().UnixNano() < m.until.Load() && freed == m.freed.Load() {
		s.refused.Add(1)
		return 0, false, nil
	}
	first, limit := s.home(which, a.first), s.home(which, a.end.Load()-1)+1
	from := m.next.Load()
	if from < first || from >= limit {
		from = first
	}
	at, end := from, limit
	for n := 0; n < maxRuns; n++ {
		lo, hi, found := s.layout.Host.Backed(s.base + at)
		if lo, hi = lo-s.base, min(hi-s.base, end); !found || lo >= hi {
			if at, end = first, from; end == limit || at >= end {
				break
			}
			from = limit // the second half is the last
			continue
		}
		if x, ok, err = s.within(which, lo, hi); ok || err != nil {
			m.next.Store(lo)
			return x, ok, err
		}
		m.next.Store(hi)
		at = hi
	}
	m.freed.Store(freed)
	m.until.Store(time.Now().Add(none).UnixNano())
	s.refused.Add(1)
	return 0, false, nil
}

// within hands out a clear bit of a block in [lo, hi), if one has room.
func (s *System) within(which, lo, hi uint64) (x uint64, ok bool, err error) {
	a := s.alloc[which]
	from, to := lo, hi
	if which == Inodes {
		from, to = (lo-s.inodes)*smallPerBlock, (hi-s.inodes)*smallPerBlock
	}
	x, ok, err = a.takeIn(max(from, a.first), min(to, a.end.Load()))
	if !ok || err != nil {
		return 0, false, err
	}
	if err = s.reserve(which, x); err != nil {
		a.giveBack(x)
		if errors.Is(err, disk.ErrNoRoom) {
			err = nil
		}
		return 0, false, err
	}
	return x, true, nil
}

// home is the block that bit x stands for: itself, or that of the inode.
func (s *System) home(which, x uint64) uint64 {
	if which == Inodes {
		return s.inodes + x/smallPerBlock
	}
	return x
}

// reserve makes room for what changes when bit x is set.
func (s *System) reserve(which, x uint64) error {
	if err := s.Reserve(s.home(which, x)); err != nil {
		return err
	}
	return s.reserveBit(which, x)
}

// reserveBit takes room for the block of the bitmap that bit x lies in, and for what is written with it.
func (s *System) reserveBit(which, x uint64) error {
	a := s.alloc[which].start + x/windowBits
	if s.host.lasting.has(s.base + a) {
		return nil
	}
	err := s.Reserve(a)
	if err == nil {
		s.host.lasting.add(s.base + a)
	}
	return err
}

// Reserve takes room on the host for block a and what is written with it. A transaction that writes a block of records
// for the first time must have done so.
func (s *System) Reserve(a uint64) error {
	if s.layout.Host == nil {
		return nil
	}
	if err := s.layout.Host.Reserve(s.base+a, 1); err != nil {
		return err
	}
	return s.reserveBeside(a)
}

// reserveBeside takes room for what is written with block a.
func (s *System) reserveBeside(a uint64) error {
	if s.layout.Beside == nil {
		return nil
	}
	first, ok := s.layout.Beside(s.base + a)
	if !ok || s.host.lasting.has(first) {
		return nil
	}
	for b := first; ok; b, ok = s.layout.Beside(b) {
		if err := s.layout.Host.Reserve(b, 2); err != nil {
			return err
		}
	}
	s.host.lasting.add(first)
	return nil
}
