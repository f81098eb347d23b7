package fs_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tansy/disk"
	"tansy/fs"
	"tansy/offline/check"
	"tansy/offline/crash"
)

// A history is what one client was told, and when, counted in operations of the
// device. The client works below a directory of its own.
type history struct {
	dir    string
	states []string // states[i]: the tree after i operations
	begun  []uint64 // begun[i]: device operations when operation i+1 was called
	acked  []uint64 // acked[i]: and when it had returned
	stable []bool   // it was a stable one
	what   []string
}

// allowed is the range of states a crash after n device operations may leave:
// from the one after the last stable operation acknowledged to the one after the
// last operation begun.
func (h *history) allowed(n uint64) (lo, hi int) {
	for i := range h.acked {
		if h.acked[i] <= n && h.stable[i] {
			lo = i + 1
		}
		if h.begun[i] <= n {
			hi = i + 1
		}
	}
	return lo, hi
}

// tree describes everything that can be seen below a directory.
func tree(t testing.TB, v *fs.FS, dir string) string {
	t.Helper()
	h, err := find(v, dir)
	if err != nil {
		t.Fatal(dir, err)
	}
	state, err := crash.Tree(v, h)
	if err != nil {
		t.Fatal(dir, err)
	}
	return state
}

// mustCheck fails the test unless tansy check finds nothing wrong on d.
func mustCheck(t testing.TB, d disk.Disk) {
	t.Helper()
	r, err := check.Volume(d, check.Options{Data: true})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Clean() {
		var s []string
		for _, p := range r.Problems {
			s = append(s, p.String())
		}
		t.Fatalf("check:\n%s", strings.Join(s, "\n"))
	}
}

// A workload is a list of operations in the order of one client.
type op struct {
	what   string
	stable bool
	do     func(v *fs.FS) error
}

func find(v *fs.FS, path string) (fs.Handle, error) {
	h := v.Root()
	for _, n := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' }) {
		x, err := v.Lookup(root, h, []byte(n))
		if err != nil {
			return h, err
		}
		h = x.Handle
	}
	return h, nil
}

func split(path string) (dir string, name []byte) {
	i := strings.LastIndexByte(path, '/')
	return path[:i+1], []byte(path[i+1:])
}

// in makes an operation on the directory of path.
func in(what, path string, do func(v *fs.FS, dir fs.Handle, name []byte) error) op {
	return op{what + " " + path, true, func(v *fs.FS) error {
		d, n := split(path)
		h, err := find(v, d)
		if err != nil {
			return err
		}
		return do(v, h, n)
	}}
}

func opCreate(path string) op {
	return in("create", path, func(v *fs.FS, dir fs.Handle, name []byte) error {
		_, err := v.Create(root, dir, name, fs.Guarded, &fs.SetAttr{}, 0)
		return err
	})
}

func opMkdir(path string) op {
	return in("mkdir", path, func(v *fs.FS, dir fs.Handle, name []byte) error {
		_, err := v.Mkdir(root, dir, name, &fs.SetAttr{})
		return err
	})
}

func opSymlink(path, target string) op {
	return in("symlink", path, func(v *fs.FS, dir fs.Handle, name []byte) error {
		_, err := v.Symlink(root, dir, name, &fs.SetAttr{}, []byte(target))
		return err
	})
}

func opRemove(path string) op {
	return in("remove", path, func(v *fs.FS, dir fs.Handle, name []byte) error {
		_, err := v.Remove(root, dir, name)
		return err
	})
}

func opRmdir(path string) op {
	return in("rmdir", path, func(v *fs.FS, dir fs.Handle, name []byte) error {
		_, err := v.Rmdir(root, dir, name)
		return err
	})
}

func opRename(path, to string) op {
	return in("rename to "+to, path, func(v *fs.FS, dir fs.Handle, name []byte) error {
		d, n := split(to)
		h, err := find(v, d)
		if err != nil {
			return err
		}
		_, _, err = v.Rename(root, dir, name, h, n)
		return err
	})
}

func opLink(path, to string) op {
	return in("link to "+path, to, func(v *fs.FS, dir fs.Handle, name []byte) error {
		h, err := find(v, path)
		if err != nil {
			return err
		}
		_, _, err = v.Link(root, h, dir, name)
		return err
	})
}

func opWrite(path string, off uint64, n int, how fs.Stability) op {
	return op{fmt.Sprintf("write %s %d+%d", path, off, n), how != fs.Unstable, func(v *fs.FS) error {
		h, err := find(v, path)
		if err != nil {
			return err
		}
		b := make([]byte, n)
		rand.New(rand.NewSource(int64(off)<<20 + int64(n))).Read(b)
		k, _, _, err := v.Write(root, h, off, b, how)
		if err == nil && int(k) != n {
			return fmt.Errorf("wrote %d of %d bytes", k, n)
		}
		return err
	}}
}

func opSize(path string, n uint64) op {
	return op{fmt.Sprintf("size %s %d", path, n), true, func(v *fs.FS) error {
		h, err := find(v, path)
		if err != nil {
			return err
		}
		_, err = v.Setattr(root, h, &fs.SetAttr{Size: &n}, nil)
		return err
	}}
}

func opCommit(path string) op {
	return op{"commit " + path, true, func(v *fs.FS) error {
		h, err := find(v, path)
		if err != nil {
			return err
		}
		_, err = v.Commit(h, 0, 0)
		return err
	}}
}

// workload has every kind of operation, with unstable writes in between.
func workload(dir string) []op {
	p := func(name string) string { return dir + "/" + name }
	return []op{
		opMkdir(p("d")), opCreate(p("d/f")), opWrite(p("d/f"), 0, 100, fs.FileSync),
		opWrite(p("d/f"), 4000, 9000, fs.FileSync),
		opCreate(p("big")), opWrite(p("big"), 0, 200000, fs.Unstable), opWrite(p("big"), 200000, 200000, fs.Unstable),
		opCommit(p("big")),
		opSymlink(p("d/l"), "target/of/link"), opLink(p("d/f"), p("hard")), opMkdir(p("d/e")), opRename(p("d/e"), p("e")),
		opRename(p("d/f"), p("e/g")), opWrite(p("hard"), 50, 5000, fs.Unstable), opRemove(p("hard")), opSize(p("big"), 1000),
		opWrite(p("big"), 70000, 3000, fs.FileSync), opCreate(p("x")), opRename(p("big"), p("x")), opMkdir(p("empty")),
		opRename(p("e"), p("empty")),
		opRemove(p("x")), opRemove(p("d/l")), opRmdir(p("d")), opSize(p("empty/g"), 0), opRemove(p("empty/g")),
		opRmdir(p("empty")), opCreate(p("last")),
		opWrite(p("last"), 1<<20, 300000, fs.FileSync), opRemove(p("last")), // freed in the background
	}
}

func fixed() time.Time { return time.Unix(1e9, 5) }

// A setting is what clients do at the same time, on a volume of so many blocks, of which
// so many are in use before.
type setting struct {
	blocks, used uint64
	work         [][]op // per client, below its directory
	moments      bool   // somebody reads moments of the volume meanwhile
}

// record runs the clients on a new volume of the simulator.
func record(t testing.TB, set setting) (*disk.Sim, []*history) {
	sim := disk.NewSim(set.blocks * disk.BlockSize)
	if err := fs.Mkfs(sim, fs.MkfsOptions{Inodes: 256, Zeroed: true, Clock: fixed}); err != nil {
		t.Fatal(err)
	}
	v, err := fs.Open(sim, fs.Options{Clock: fixed})
	if err != nil {
		t.Fatal(err)
	}
	var hs []*history
	for i := range set.work {
		h := &history{dir: client(i)}
		if err := opMkdir(h.dir).do(v); err != nil {
			t.Fatal(err)
		}
		hs = append(hs, h)
	}
	if set.used > 0 {
		if err := opCreate("/used").do(v); err != nil {
			t.Fatal(err)
		}
		for b := uint64(0); b < set.used; b += 100 {
			n := min(100, set.used-b)
			if err := opWrite("/used", b*fs.BlockSize, int(n)*fs.BlockSize, fs.FileSync).do(v); err != nil {
				t.Fatal(err)
			}
		}
	}
	sim.Record()
	var wg sync.WaitGroup
	endMoments := func() {}
	if set.moments {
		endMoments = readMoments(t, v, hs[0].dir)
	}
	for i, h := range hs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			h.run(t, sim, v, set.work[i])
		}()
	}
	wg.Wait()
	endMoments()
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	return sim, hs
}

// readMoments opens moment after moment of a volume, and reads a directory of each, until stop is called.
func readMoments(t testing.TB, v *fs.FS, dir string) (stop func()) {
	var quit atomic.Bool
	var reader sync.WaitGroup
	reader.Go(func() {
		for !quit.Load() {
			m, err := v.Moment(context.Background())
			if err != nil {
				t.Error(err)
				return
			}
			tree(t, m.FS, dir)
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return func() {
		quit.Store(true)
		reader.Wait()
	}
}

func client(i int) string { return fmt.Sprint("/client", i) }

func (h *history) run(t testing.TB, sim *disk.Sim, v *fs.FS, ops []op) {
	h.states = []string{tree(t, v, h.dir)}
	for _, o := range ops {
		h.begun = append(h.begun, sim.Ops())
		if err := o.do(v); err != nil {
			t.Errorf("%s: %v", o.what, err)
			return
		}
		h.acked = append(h.acked, sim.Ops())
		h.stable = append(h.stable, o.stable)
		h.what = append(h.what, o.what)
		h.states = append(h.states, tree(t, v, h.dir))
	}
}

// verify fails the test unless got is a state that a crash after n device operations may leave.
func (h *history) verify(t testing.TB, got string, n uint64) {
	t.Helper()
	lo, hi := h.allowed(n)
	for i := lo; i <= hi; i++ {
		if h.states[i] == got {
			return
		}
	}
	after := func(i int) string {
		if i == 0 {
			return "nothing"
		}
		return fmt.Sprintf("operation %d, %s", i, h.what[i-1])
	}
	is := "no state there ever was"
	for i, s := range h.states {
		if s == got {
			is = "that after " + after(i)
		}
	}
	t.Fatalf("crash after %d device operations: the state of %s must be one from that after %s to that after %s; it is %s:\n%s", n, h.dir, after(lo), after(hi), is, got)
}

// The machine crashes after every device operation (with step > 1: after some)
// while clients work, and each time some of what no barrier covered is lost. Then every acknowledged
// operation is there, one in flight is there or not, nothing is between, and the
// volume is sound. Recovery crashes, too.
func testCrash(t *testing.T, r *rand.Rand, set setting, step int) {
	sim, hs := record(t, set)
	images, again := 6, 1
	if testing.Short() {
		images, again = 1, 0
	}
	end := sim.Ops()
	for n := hs[0].begun[0]; n <= end; n += uint64(1 + r.Intn(step)) {
		for image := range sim.At(n).Crashes(images, r.Uint64(), true) {
			for range again {
				image = crashInRecovery(t, r, image)
			}
			v, err := fs.Open(image, fs.Options{Clock: fixed})
			if err != nil {
				t.Fatalf("crash after %d device operations: %v", n, err)
			}
			for _, h := range hs {
				h.verify(t, tree(t, v, h.dir), n)
			}
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
			mustCheck(t, image)
		}
	}
}

// everything is the setting in which some clients do every kind of operation.
func everything(clients int) setting {
	set := setting{blocks: 6000}
	for i := range clients {
		set.work = append(set.work, workload(client(i)))
	}
	return set
}

func TestCrash(t *testing.T)           { testCrash(t, random(t), everything(1), 1) }
func TestCrashConcurrent(t *testing.T) { testCrash(t, random(t), everything(4), 11) }

// Somebody who reads moments of the volume meanwhile changes nothing of what a crash leaves.
func TestCrashMoments(t *testing.T) {
	set := everything(2)
	set.moments = true
	testCrash(t, random(t), set, 41)
}

// bulk is a workload of large writes to some files, which go straight home, and of what
// gets in their way: overwriting, cutting, removing, small writes, blocks used again.
func bulk(r *rand.Rand, dir string, files, n int) (ops []op) {
	path := func() string { return fmt.Sprint(dir, "/f", r.Intn(files)) }
	for i := range files {
		ops = append(ops, opCreate(fmt.Sprint(dir, "/f", i)))
	}
	for range n {
		p, off, how := path(), uint64(r.Intn(16))*fs.BlockSize, fs.Stability(r.Intn(3))
		switch r.Intn(10) {
		case 0, 1, 2, 3:
			ops = append(ops, opWrite(p, off, (8+r.Intn(40))*fs.BlockSize, how))
		case 4: // not the same bytes as the last time
			ops = append(ops, opWrite(p, off+uint64(r.Intn(fs.BlockSize)), 40000+r.Intn(100000), how))
		case 5:
			ops = append(ops, opWrite(p, off+uint64(r.Intn(90000)), r.Intn(6000), how))
		case 6:
			ops = append(ops, opSize(p, uint64(r.Intn(30))*fs.BlockSize))
		case 7:
			ops = append(ops, opSize(p, 0))
		case 8:
			ops = append(ops, opRemove(p), opCreate(p))
		case 9:
			ops = append(ops, opCommit(p))
		}
	}
	return ops
}

// On a small volume, where blocks are used again soon, large writes go straight home.
func TestCrashBulk(t *testing.T) {
	r := random(t)
	for _, clients := range []int{1, 3} {
		set := setting{blocks: 2200, used: 550}
		for i := range clients {
			set.work = append(set.work, bulk(r, client(i), 3/clients, 45/clients))
		}
		testCrash(t, r, set, 7)
	}
}

// straight counts the groups in the log of a volume that have direct blocks.
func straight(t testing.TB, d disk.Disk) (n int) {
	b := make([]byte, fs.BlockSize)
	for a := range d.Size() {
		if err := d.ReadAt(a, [][]byte{b}); err != nil {
			t.Fatal(err)
		}
		if string(b[:8]) == "TansyLg5" && binary.LittleEndian.Uint32(b[44:]) > 0 {
			n++
		}
	}
	return n
}

// Large writes do go straight home, and once: the crash tests are about something.
func TestBulk(t *testing.T) {
	for _, c := range []struct {
		bytes  int
		direct bool
	}{{fs.BlockSize, false}, {7 * fs.BlockSize, false}, {8 * fs.BlockSize, true}, {200 * fs.BlockSize, true}} {
		mem := disk.NewMem(6000 * disk.BlockSize)
		mkfs(t, mem, fs.MkfsOptions{Inodes: 256, Zeroed: true})
		v, err := fs.Open(mem, fs.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []op{
			opCreate("/f"), opWrite("/f", 0, c.bytes, fs.FileSync), opWrite("/f", 0, c.bytes, fs.FileSync),
		} {
			if err := o.do(v); err != nil {
				t.Fatal(err)
			}
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
		if n := straight(t, mem); (n > 0) != c.direct {
			t.Errorf("%d bytes: %d groups with direct blocks", c.bytes, n)
		}
		mustCheck(t, mem)
	}
}

// A crash during mkfs leaves no volume, or the whole of one.
func TestCrashMkfs(t *testing.T) {
	r := random(t)
	sim := disk.NewSim(6000 * disk.BlockSize)
	sim.Record()
	if err := fs.Mkfs(sim, fs.MkfsOptions{Inodes: 256, Clock: fixed}); err != nil {
		t.Fatal(err)
	}
	var whole, none int
	for n := range sim.Ops() + 1 {
		for image := range sim.At(n).Crashes(4, r.Uint64(), true) {
			v, err := fs.Open(image, fs.Options{Clock: fixed})
			if err != nil {
				none++
				continue
			}
			whole++
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
			mustCheck(t, image)
		}
	}
	if whole == 0 || none == 0 {
		t.Fatalf("%d images hold a volume, %d none", whole, none)
	}
}

// crashInRecovery lets the image recover up to some device operation and crash.
func crashInRecovery(t testing.TB, r *rand.Rand, image *disk.Sim) *disk.Sim {
	t.Helper()
	c := image.Crash(disk.KeepAll)
	c.Record()
	base := c.Ops()
	v, err := fs.Open(c, fs.Options{Clock: fixed})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	at := c.At(base + uint64(r.Int63n(int64(c.Ops()-base+1))))
	for image := range at.Crashes(1, r.Uint64(), true) {
		return image
	}
	return at
}
