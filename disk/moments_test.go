package disk_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"tansy/disk"
	"tansy/disk/disktest"
	"tansy/test/kit/replay"
)

// hooked is a Disk that tells of reads before and after they are done.
type hooked struct {
	disk.Disk
	before, after func(a uint64, n int) error
	discarded     [][2]uint64 // first block and number of them, of each call
}

func (d *hooked) ReadAt(a uint64, bufs [][]byte) error {
	if d.before != nil {
		if err := d.before(a, len(bufs)); err != nil {
			return err
		}
	}
	err := d.Disk.ReadAt(a, bufs)
	if d.after != nil {
		err = errors.Join(err, d.after(a, len(bufs)))
	}
	return err
}

func (d *hooked) NextData(a uint64) (uint64, error) { return disk.NextData(d.Disk, a) }

func (d *hooked) Discard(a, n uint64) error {
	d.discarded = append(d.discarded, [2]uint64{a, n})
	return disk.Discard(d.Disk, a, n)
}

// block is contents that are not zeros.
func block(b byte) [][]byte { return [][]byte{bytes.Repeat([]byte{b}, disk.BlockSize)} }

// first is the first byte of a block, if all are alike.
func first(t *testing.T, d disk.Disk, a uint64) byte {
	t.Helper()
	b := block(0xee)
	must(t, d.ReadAt(a, b))
	if !bytes.Equal(b[0], block(b[0][0])[0]) {
		t.Fatalf("block %d is a mixture", a)
	}
	return b[0][0]
}

// little is room for so many blocks in memory, and so many in a file.
func little(t *testing.T, memory, file uint64) disk.MomentOptions {
	return disk.MomentOptions{Memory: memory * disk.BlockSize, Spill: file * disk.BlockSize, Dir: t.TempDir()}
}

// A Disk of which moments are taken is a Disk like others: while none is held, while one is, and for who looks for an
// interface within it.
func TestMomentsDisk(t *testing.T) {
	for _, held := range []int{0, 1, 3} {
		t.Run(fmt.Sprint(held), func(t *testing.T) {
			disktest.Run(t, func(t *testing.T) disk.Disk {
				m := disk.NewMoments(disk.NewMem(disktest.Blocks*disk.BlockSize), disk.MomentOptions{Dir: t.TempDir()})
				for range held {
					m.Take()
				}
				return m
			})
		})
	}
	f, err := disk.CreateFile(t.TempDir()+"/image", 100*disk.BlockSize)
	must(t, err)
	m := disk.NewMoments(f, disk.MomentOptions{})
	if m.Unwrap() != disk.Disk(f) || disk.HostOf(m) != f.Host() {
		t.Error("what it wraps is not found")
	}
	must(t, f.Lengthen(120*disk.BlockSize), disk.Remeasure(m))
	if m.Size() != 120 {
		t.Errorf("it has %d blocks after it has grown", m.Size())
	}
	must(t, m.Close())
}

// snapshot is a moment, and what it has to hold.
type snapshot struct {
	*disk.Moment
	want     [][]byte
	released []bool
}

// momentModel does operations at random on a device, with moments of it.
type momentModel struct {
	t     *testing.T
	r     *rand.Rand
	m     *disk.Moments
	grown func() // has the device become larger
	held  []*snapshot
	n     uint64 // operations
}

// step is one operation.
func (x *momentModel) step() {
	size := x.m.Size()
	a := x.r.Uint64N(size)
	n := 1 + x.r.Uint64N(min(size-a, 1+x.r.Uint64N(600)))
	x.n++
	switch x.r.IntN(12) {
	case 0:
		if len(x.held) < 4 {
			t := x.m.Take()
			x.held = append(x.held, &snapshot{t, held(x.t, x.m), make([]bool, size)})
		}
	case 1:
		if k := len(x.held); k > 0 && x.r.IntN(3) == 0 {
			i := x.r.IntN(k)
			must(x.t, x.held[i].Close())
			x.held = append(x.held[:i], x.held[i+1:]...)
		}
	case 2:
		for _, s := range x.held {
			if x.r.IntN(3) == 0 {
				s.release(a, n)
			}
		}
	case 3:
		must(x.t, x.m.Discard(a, n))
	case 4:
		if x.r.IntN(8) == 0 {
			x.grown()
		}
	default:
		bufs := disktest.Vector(int(n))
		for i := range bufs {
			if x.r.IntN(4) > 0 {
				binary.LittleEndian.PutUint64(bufs[i][disk.BlockSize-8:], x.n<<16|uint64(i))
			}
		}
		must(x.t, x.m.WriteAt(a, bufs))
	}
}

// held is all that d holds.
func held(t *testing.T, d disk.Disk) [][]byte {
	bufs := disktest.Vector(int(d.Size()))
	for _, b := range bufs { // to be overwritten
		b[0] = 0xee
	}
	must(t, d.ReadAt(0, bufs))
	return bufs
}

// release releases n blocks from a on.
func (s *snapshot) release(a, n uint64) {
	s.Release(a, a+n)
	for b := a; b < min(a+n, s.Size()); b++ {
		clear(s.want[b])
		s.released[b] = true
	}
}

// compare compares moments with what they have to hold.
func (x *momentModel) compare() {
	x.t.Helper()
	for i, s := range x.held {
		if s.Size() != uint64(len(s.want)) {
			x.t.Fatalf("moment %d has %d blocks, not %d", i, s.Size(), len(s.want))
		}
		for a, got := range held(x.t, s) {
			if !bytes.Equal(got, s.want[a]) {
				x.t.Fatalf("after %d operations block %d of moment %d of %d is another", x.n, a, i, len(x.held))
			}
		}
		for a := uint64(0); a < s.Size(); {
			next, err := disk.NextData(s, a)
			must(x.t, err)
			for b := a; b < next; b++ {
				if !zero(s.want[b]) {
					x.t.Fatalf("block %d of moment %d is passed over, and is not zeros", b, i)
				}
			}
			if next < s.Size() && s.released[next] {
				x.t.Fatalf("block %d of moment %d was released, and is not passed over", next, i)
			}
			a = next + 1
		}
	}
}

// Moments hold what the device held when they were taken, whatever is written, discarded, and released after that, in
// memory or in a file, also while the device grows; and when all have ended nothing is kept any more.
func TestMomentsModel(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	for _, memory := range []uint64{100000, 50, 1} {
		f, err := disk.CreateFile(t.TempDir()+"/image", 700*disk.BlockSize)
		must(t, err)
		m := disk.NewMoments(f, little(t, memory, 100000))
		x := momentModel{t: t, r: r, m: m, grown: func() {
			must(t, f.Lengthen((f.Size()+r.Uint64N(100))*disk.BlockSize), disk.Remeasure(m))
		}}
		for range 15 {
			for range 10 {
				x.step()
			}
			x.compare()
		}
		for _, s := range x.held {
			must(t, s.Close())
		}
		if inMemory, inFile := m.Kept(); inMemory != 0 || inFile != 0 || m.Held() != 0 {
			t.Errorf("%d bytes are kept in memory and %d in a file for %d moments", inMemory, inFile, m.Held())
		}
		must(t, m.Close())
	}
}

// A block that is written while a moment's reader is between its look at what is kept and the device, or behind that,
// is read as it was.
func TestMomentOvertaken(t *testing.T) {
	for _, when := range []string{"before", "after"} {
		d := &hooked{Disk: disk.NewMem(10 * disk.BlockSize)}
		m := disk.NewMoments(d, disk.MomentOptions{})
		must(t, m.WriteAt(3, block(1)))
		s := m.Take()
		overtake := func(uint64, int) error {
			d.before, d.after = nil, nil
			return m.WriteAt(3, block(2))
		}
		if when == "before" {
			d.before = overtake
		} else {
			d.after = overtake
		}
		if got := first(t, s, 3); got != 1 || first(t, m, 3) != 2 {
			t.Errorf("%s the read of the device: %d", when, got)
		}
	}
}

// Of two writes to one block the second reads what the first has written, if it is late. The moment keeps what was
// there before both.
func TestMomentTwoWriters(t *testing.T) {
	d := &hooked{Disk: disk.NewMem(10 * disk.BlockSize)}
	m := disk.NewMoments(d, disk.MomentOptions{})
	must(t, m.WriteAt(3, block(1)))
	s := m.Take()
	d.before = func(uint64, int) error { // the one that came first is about to read the block
		d.before = nil
		done := make(chan error)
		go func() { done <- m.WriteAt(3, block(2)) }()
		return <-done
	}
	must(t, m.WriteAt(3, block(3)))
	if got := first(t, s, 3); got != 1 {
		t.Errorf("the moment holds %d", got)
	}
	if got := first(t, m, 3); got != 3 {
		t.Errorf("the device holds %d", got)
	}
}

// Who takes a moment waits for writes and discards that are under way: a part of one would be in the moment, and a part
// behind it.
func TestTakeWaits(t *testing.T) {
	for _, what := range []string{"write", "discard"} {
		d := &blocking{Mem: disk.NewMem(10 * disk.BlockSize), began: make(chan struct{}), end: make(chan struct{})}
		m := disk.NewMoments(d, disk.MomentOptions{})
		must(t, d.Mem.WriteAt(1, block(1)))
		done, taken := make(chan error, 1), make(chan *disk.Moment)
		go func() {
			if what == "write" {
				done <- m.WriteAt(1, block(2))
			} else {
				done <- m.Discard(1, 1)
			}
		}()
		<-d.began
		go func() { taken <- m.Take() }()
		for range 1000 { // it would be through by then, if it did not wait
			runtime.Gosched()
			select {
			case <-taken:
				t.Fatalf("a moment was taken in the midst of a %s", what)
			default:
				if m.Held() > 0 {
					t.Fatalf("a moment is held in the midst of a %s", what)
				}
			}
		}
		close(d.end)
		must(t, <-done)
		if got, want := first(t, <-taken, 1), first(t, m, 1); got != want {
			t.Errorf("the moment holds %d, not %d", got, want)
		}
	}
}

// blocking is a device whose changes wait.
type blocking struct {
	*disk.Mem
	began, end chan struct{}
}

func (d *blocking) WriteAt(a uint64, bufs [][]byte) error {
	close(d.began)
	<-d.end
	return d.Mem.WriteAt(a, bufs)
}

func (d *blocking) Discard(a, n uint64) error {
	close(d.began)
	<-d.end
	return d.Mem.Discard(a, n)
}

// Writes to different blocks do not wait for each other, also while what they overwrite is read.
func TestMomentsSideBySide(t *testing.T) {
	d := &hooked{Disk: disk.NewMem(10 * disk.BlockSize)}
	m := disk.NewMoments(d, disk.MomentOptions{})
	must(t, m.WriteAt(0, disktest.Pattern(10, 1)))
	m.Take()
	reading, go1 := make(chan struct{}), make(chan struct{})
	d.before = func(a uint64, _ int) error {
		if a == 1 {
			close(reading)
			<-go1
		}
		return nil
	}
	done := make(chan error, 1)
	go func() { done <- m.WriteAt(1, block(1)) }()
	<-reading
	must(t, m.WriteAt(5, block(5)), m.Barrier())
	close(go1)
	must(t, <-done)
}

// A moment is lost, and says why, when there is no room for what is overwritten, or when that cannot be read. The write
// is done, other moments that have it stay, and all room is given back.
func TestMomentLost(t *testing.T) {
	broken := errors.New("a bad spot")
	for what, c := range map[string]struct {
		o     disk.MomentOptions
		fault error
		says  string
	}{
		"no room":        {o: little(t, 2, 3), says: "20480 in a file"},
		"no folder":      {o: disk.MomentOptions{Memory: 2 * disk.BlockSize, Dir: "/nowhere"}, says: "/nowhere"},
		"no such block":  {o: little(t, 100, 100), fault: broken, says: broken.Error()},
		"not even a bit": {o: little(t, 1, 1), says: "4096 in a file"},
	} {
		if what == "no room" {
			c.says = "12288 in a file"
		}
		d := &hooked{Disk: disk.NewMem(100 * disk.BlockSize)}
		m := disk.NewMoments(d, c.o)
		must(t, m.WriteAt(0, disktest.Pattern(100, 1)))
		lost := m.Take()
		d.before = func(a uint64, n int) error {
			if a <= 50 && 50 < a+uint64(n) {
				return c.fault
			}
			return nil
		}
		for a := range uint64(100) {
			must(t, m.WriteAt(a, block(byte(1+a))))
		}
		d.before = nil
		for a := range uint64(100) {
			if first(t, m, a) != byte(1+a) {
				t.Errorf("%s: block %d was not written", what, a)
			}
		}
		err := lost.ReadAt(99, block(0))
		if !errors.Is(err, disk.ErrMomentLost) || !errors.Is(lost.Err(), disk.ErrMomentLost) ||
			!bytes.Contains([]byte(err.Error()), []byte(c.says)) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := lost.NextData(0); !errors.Is(err, disk.ErrMomentLost) {
			t.Errorf("%s: the next data: %v", what, err)
		}
		lost.Release(0, 100)
		if inMemory, inFile := m.Kept(); inMemory != 0 || inFile != 0 || m.Held() != 0 {
			t.Errorf("%s: %d bytes in memory and %d in a file for %d moments", what, inMemory, inFile, m.Held())
		}
		later := m.Take()
		if first(t, later, 7) != 8 {
			t.Errorf("%s: the next moment holds something else", what)
		}
		must(t, lost.Close(), later.Close())
		if err := lost.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: closed again: %v", what, err)
		}
	}
}

// A moment that has what is overwritten already is not lost when there is no room to keep it for another one.
func TestMomentLostAlone(t *testing.T) {
	m := disk.NewMoments(disk.NewMem(10*disk.BlockSize), little(t, 1, 1))
	must(t, m.WriteAt(3, block(1)), m.WriteAt(4, block(1)))
	early := m.Take()
	must(t, m.WriteAt(3, block(2)), m.WriteAt(4, block(2)))
	late := m.Take()
	must(t, m.WriteAt(3, block(3)))
	if first(t, early, 3) != 1 || first(t, early, 4) != 1 || !errors.Is(late.Err(), disk.ErrMomentLost) {
		t.Errorf("the first moment holds something else, or the second is not lost: %v", late.Err())
	}
}

// What nobody needs any more is neither read nor kept.
func TestMomentReleased(t *testing.T) {
	d := &hooked{Disk: disk.NewMem(1000 * disk.BlockSize)}
	m := disk.NewMoments(d, little(t, 1, 1))
	must(t, m.WriteAt(0, disktest.Pattern(1000, 1)))
	s := m.Take()
	disk.Release(disk.NewPrefix(s, 900), 100, 1000)
	d.before = func(a uint64, n int) error { return fmt.Errorf("%d blocks from %d on are read", n, a) }
	must(t, m.WriteAt(100, disktest.Pattern(900, 2)), m.Discard(500, 400), s.Err())
	if first(t, s, 100) != 0 {
		t.Error("what was released is not zeros")
	}
	if next, err := s.NextData(100); err != nil || next != 1000 {
		t.Errorf("behind it there is data in block %d: %v", next, err)
	}
	disk.Release(disk.NewMem(disk.BlockSize), 0, 1) // of one that keeps nothing
}

// What is released of a layout is released where it lies on the device.
func TestMomentReleasedInPieces(t *testing.T) {
	m := disk.NewMoments(disk.NewMem(40*disk.BlockSize), disk.MomentOptions{})
	must(t, m.WriteAt(0, disktest.Pattern(40, 1)))
	s := m.Take()
	disk.Release(disk.NewPieced(s, 50, fixed().locate()), 12, 40)
	for a, b := range contents(t, s) {
		if released := a >= 30 || a >= 12 && a < 17; zero(b) != released {
			t.Errorf("block %d of the device was released: %v", a, zero(b))
		}
	}
}

// A hole of the device is not read, and nothing is kept of it.
func TestMomentHoles(t *testing.T) {
	d := &hooked{Disk: disk.NewMem(1000 * disk.BlockSize)}
	m := disk.NewMoments(d, little(t, 1, 1))
	must(t, m.WriteAt(500, block(1)))
	s := m.Take()
	reads := 0
	d.before = func(a uint64, n int) error {
		reads += n
		return nil
	}
	must(t, m.WriteAt(0, disktest.Pattern(1000, 2)))
	if inMemory, inFile := m.Kept(); reads > 300 || inMemory != disk.BlockSize || inFile != 0 {
		t.Errorf("%d blocks were read, %d bytes kept in memory and %d in a file", reads, inMemory, inFile)
	}
	if first(t, s, 500) != 1 || first(t, s, 501) != 0 || first(t, s, 0) != 0 {
		t.Error("the moment holds something else")
	}
}

// What is wrong with a transfer is refused as any Disk does, and a moment cannot be changed.
func TestMomentRefuses(t *testing.T) {
	m := disk.NewMoments(disk.NewMem(10*disk.BlockSize), disk.MomentOptions{})
	s := m.Take()
	for _, c := range []struct {
		err  error
		want error
	}{
		{s.ReadAt(9, disktest.Vector(2)), disk.ErrRange},
		{s.ReadAt(1<<64-1, disktest.Vector(2)), disk.ErrRange},
		{s.ReadAt(0, [][]byte{nil}), disk.ErrBuffer},
		{s.WriteAt(0, disktest.Vector(1)), disk.ErrReadOnly},
		{s.Barrier(), disk.ErrReadOnly},
		{m.WriteAt(1<<64-1, disktest.Vector(3)), disk.ErrRange},
		{m.WriteAt(8, disktest.Vector(3)), disk.ErrRange},
		{m.Discard(8, 3), disk.ErrRange},
	} {
		if !errors.Is(c.err, c.want) || !errors.As(c.err, new(*disk.Error)) {
			t.Errorf("%v, want %v", c.err, c.want)
		}
	}
	s.Release(1<<64-1, 1<<63)
	s.Release(5, 3)
	must(t, m.Close())
	if err := s.ReadAt(0, nil); !errors.Is(err, disk.ErrMomentLost) || !errors.Is(err, os.ErrClosed) {
		t.Errorf("the device was closed: %v", err)
	}
}

// Readers of several moments see what these hold, beside writers to all blocks, each of which has its own.
func TestMomentsConcurrent(t *testing.T) {
	const size, writers = 512, 4
	seed := replay.Seed(t)
	m := disk.NewMoments(disk.NewMem(size*disk.BlockSize), little(t, 100, 1<<20))
	var still sync.RWMutex // held to take a moment and note what it has to hold
	var versions [size]uint32
	var stop atomic.Bool
	var writing, reading sync.WaitGroup
	for w := range uint64(writers) {
		writing.Go(func() {
			r := rand.New(rand.NewPCG(seed, w))
			for !stop.Load() {
				n := 1 + r.Uint64N(40)
				a := w*size/writers + r.Uint64N(size/writers-n)
				still.RLock()
				bufs := disktest.Vector(int(n))
				for i := range bufs {
					versions[a+uint64(i)]++
					binary.LittleEndian.PutUint32(bufs[i], versions[a+uint64(i)])
				}
				if err := m.WriteAt(a, bufs); err != nil {
					t.Error(err)
				}
				still.RUnlock()
			}
		})
	}
	for k := range uint64(3) {
		reading.Go(func() {
			r := rand.New(rand.NewPCG(seed, 100+k))
			for range 12 {
				still.Lock()
				want := versions
				s := m.Take()
				still.Unlock()
				readMoment(t, r, s, want[:])
				must(t, s.Close())
			}
		})
	}
	reading.Wait()
	stop.Store(true)
	writing.Wait()
}

// readMoment reads a moment here and there, and releases some of it.
func readMoment(t *testing.T, r *rand.Rand, s *disk.Moment, want []uint32) {
	for range 20 {
		n := 1 + r.Uint64N(300)
		a := r.Uint64N(uint64(len(want)) - n)
		bufs := disktest.Vector(int(n))
		if err := s.ReadAt(a, bufs); err != nil {
			t.Error(err)
			return
		}
		for i, b := range bufs {
			if got := binary.LittleEndian.Uint32(b); got != want[a+uint64(i)] {
				t.Errorf("block %d has version %d, not %d", a+uint64(i), got, want[a+uint64(i)])
				return
			}
		}
		if r.IntN(4) == 0 {
			s.Release(a, a+1)
			want[a] = 0
		}
	}
}

// Much is discarded in steps, so that nobody waits long for a moment. They end where 64 MiB do, whatever the first
// block is: what the device gives back as a whole is not split.
func TestMomentsDiscardInSteps(t *testing.T) {
	const step = 64 << 20 / disk.BlockSize
	for _, c := range []struct {
		a, n uint64
		want [][2]uint64
	}{
		{0, 0, [][2]uint64{{0, 0}}}, {5, 0, [][2]uint64{{5, 0}}}, {3, 1, [][2]uint64{{3, 1}}},
		{0, step, [][2]uint64{{0, step}}},
		{step - 1, 2, [][2]uint64{{step - 1, 1}, {step, 1}}},
		{7, 2*step + 1, [][2]uint64{{7, step - 7}, {step, step}, {2 * step, 8}}},
	} {
		d := &hooked{Disk: disk.NewMem(3 * step * disk.BlockSize)}
		err := disk.NewMoments(d, disk.MomentOptions{}).Discard(c.a, c.n)
		if err != nil || !slices.Equal(d.discarded, c.want) {
			t.Errorf("%d blocks from %d on: %v, %v", c.n, c.a, d.discarded, err)
		}
	}
}
