package check

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand"
	"strings"
	"sync"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/journal"
	"tansy/test/kit/replay"
)

// busyVolume is a volume whose server was killed: much of it is in the log only.
func busyVolume(t *testing.T) *disk.Mem {
	d := &stopped{Mem: disk.NewMem(20000 * disk.BlockSize)}
	if err := fs.Mkfs(d, fs.MkfsOptions{LogBytes: 40 << 20, Zeroed: true}); err != nil { // half of it is not used up
		t.Fatal(err)
	}
	v, err := fs.Open(d, fs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	c := &fs.Cred{}
	dir, err := v.Mkdir(c, v.Root(), []byte("d"), &fs.SetAttr{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		n, err := v.Create(c, dir.Handle, fmt.Appendf(nil, "f%d", i), fs.Unchecked, &fs.SetAttr{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := v.Write(c, n.Handle, 0, make([]byte, 5000), fs.FileSync); err != nil {
			t.Fatal(err)
		}
	}
	d.mu.Lock() // the server would empty the log before long, or does so now
	defer d.mu.Unlock()
	killed := disk.NewMem(d.Size() * disk.BlockSize)
	for a := range d.Size() {
		put(t, killed, a, get(t, d.Mem, a))
	}
	return killed
}

// stopped is a device that takes no writes while its mutex is held.
type stopped struct {
	*disk.Mem
	mu sync.Mutex
}

func (d *stopped) WriteAt(a uint64, bufs [][]byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Mem.WriteAt(a, bufs)
}

// TestDamagedLog: a damaged header is reported, and its copy serves; a damaged group that others
// follow is reported, and the log is not used; the last one may be the work of a crash.
func TestDamagedLog(t *testing.T) {
	d := busyVolume(t)
	raw, _, err := readSupers(d)
	if err != nil {
		t.Fatal(err)
	}
	sb, err := parseSuper(raw[0])
	if err != nil {
		t.Fatal(err)
	}
	s, err := journal.NewSurvey(d, sb.journal())
	if err != nil || len(s.Groups) < 3 {
		t.Fatalf("%+v, %v", s, err)
	}
	for _, c := range []struct {
		what   string
		block  uint64
		want   string // the problem, or what is not checked
		usable bool
	}{
		{"header", sb.journal().Start, fmt.Sprintf("block %d: the log's header is damaged", sb.journal().Start), true},
		{"copy", sb.ibm - 1, fmt.Sprintf("block %d: the copy of the log's header is damaged", sb.ibm-1), true},
		{"group", s.Groups[1].Block, fmt.Sprintf("group %d of the log is damaged", s.Groups[1].Number), false},
		{"data of a group", s.Groups[1].Block + 1, fmt.Sprintf("group %d of the log is damaged", s.Groups[1].Number), false},
		{"data of the last group", s.Groups[len(s.Groups)-1].Block + 1, "the last, is not whole", true},
		{"last group", s.Groups[len(s.Groups)-1].Block, "", true}, // as if it had never been written
	} {
		whole := get(t, d, c.block)
		bad := bytes.Clone(whole)
		bad[40] ^= 4
		put(t, d, c.block, bad)
		r, err := Volume(d, Options{})
		if err != nil {
			t.Fatal(err)
		}
		said := r.Unchecked
		for _, p := range r.Problems {
			said = append(said, p.String())
		}
		found := strings.Contains(strings.Join(said, "\n"), c.want)
		if !found || (r.Replayed > 0) != c.usable {
			t.Errorf("%s: %+v", c.what, r)
		}
		put(t, d, c.block, whole)
	}
	mustClean(t, d)
}

func TestLog(t *testing.T) {
	d := busyVolume(t)
	r := mustClean(t, d)
	if r.Replayed == 0 || r.Entries != 101 || r.Inodes != 103 {
		t.Errorf("%+v", r)
	}
}

// A log of any content is judged without a panic.
func TestRandomDamageInLog(t *testing.T) {
	r := rand.New(rand.NewSource(int64(replay.Seed(t))))
	d := busyVolume(t)
	raw, _, err := readSupers(d)
	if err != nil {
		t.Fatal(err)
	}
	sb, err := parseSuper(raw[0])
	if err != nil {
		t.Fatal(err)
	}
	var used []uint64
	for a := uint64(1); a < sb.ibm; a++ {
		if !zeros(get(t, d, a)) {
			used = append(used, a)
		}
	}
	for range 50 {
		o := newOverlay(d)
		for range 1 + r.Intn(3) {
			a := used[r.Intn(len(used))]
			b := get(t, o, a)
			if r.Intn(2) == 0 {
				r.Read(b[r.Intn(len(b)):])
			} else {
				b[r.Intn(len(b))] ^= 1 << r.Intn(8)
			}
			put(t, o, a, b)
		}
		if _, err := Volume(o, Options{}); err != nil {
			t.Fatal(err)
		}
	}
}

// overlay is a device with some blocks changed.
type overlay struct {
	disk.Disk
	mu sync.Mutex
	m  map[uint64][]byte
}

func newOverlay(d disk.Disk) *overlay { return &overlay{Disk: d, m: map[uint64][]byte{}} }

func (o *overlay) blocks() map[uint64][]byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.m)
}

func (o *overlay) ReadAt(a uint64, bufs [][]byte) error {
	if err := o.Disk.ReadAt(a, bufs); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range bufs {
		if b, ok := o.m[a+uint64(i)]; ok {
			copy(bufs[i], b)
		}
	}
	return nil
}

func (o *overlay) WriteAt(a uint64, bufs [][]byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range bufs {
		o.m[a+uint64(i)] = append([]byte{}, bufs[i]...)
	}
	return nil
}
