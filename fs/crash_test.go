package fs_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"tansy/check"
	"tansy/disk"
	"tansy/fs"
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

// tree describes everything that clients can see below a directory, one line for
// every name.
func tree(t testing.TB, v *fs.FS, dir string) string {
	t.Helper()
	var lines []string
	size := func(n int) int { return n + 24 }
	var walk func(path string, h fs.Handle)
	walk = func(path string, h fs.Handle) {
		var cookie uint64
		for eof := false; !eof; {
			l, err := v.Readdir(root, h, cookie, 0, true, 4000, size)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			eof = l.EOF
			for _, e := range l.Entries {
				cookie = e.Cookie
				if string(e.Name) == ".." {
					continue
				}
				a := *e.Attr
				a.Used = 0 // changes while the background frees
				line := fmt.Sprintf("%s/%s %+v", path, e.Name, a)
				switch a.Type {
				case fs.Regular:
					sum := sha256.New()
					for off := uint64(0); ; {
						b, end, _, err := v.Read(root, e.Handle, off, 1<<20)
						if err != nil {
							t.Fatalf("%s/%s: %v", path, e.Name, err)
						}
						sum.Write(b)
						off += uint64(len(b))
						if end {
							break
						}
					}
					line += fmt.Sprintf(" %x", sum.Sum(nil)[:8])
				case fs.Symlink:
					b, _, err := v.Readlink(root, e.Handle)
					if err != nil {
						t.Fatalf("%s/%s: %v", path, e.Name, err)
					}
					line += " -> " + string(b)
				case fs.Directory:
					if string(e.Name) != "." {
						walk(path+"/"+string(e.Name), e.Handle)
					}
				}
				lines = append(lines, line)
			}
		}
	}
	h, err := find(v, dir)
	if err != nil {
		t.Fatal(dir, err)
	}
	walk(dir, h)
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// mustCheck fails the test unless tansy check finds nothing wrong on d.
func mustCheck(t testing.TB, d disk.Disk) {
	t.Helper()
	r, err := check.Volume(d, check.Options{})
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
		for i := range b {
			b[i] = byte(uint64(i)*7 + off)
		}
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

func opCommit() op {
	return op{"commit", true, func(v *fs.FS) error {
		_, err := v.Commit(v.Root(), 0, 0)
		return err
	}}
}

// workload has every kind of operation, with unstable writes in between.
func workload(dir string) []op {
	p := func(name string) string { return dir + "/" + name }
	return []op{
		opMkdir(p("d")), opCreate(p("d/f")), opWrite(p("d/f"), 0, 100, fs.FileSync), opWrite(p("d/f"), 4000, 9000, fs.FileSync),
		opCreate(p("big")), opWrite(p("big"), 0, 200000, fs.Unstable), opWrite(p("big"), 200000, 200000, fs.Unstable), opCommit(),
		opSymlink(p("d/l"), "target/of/link"), opLink(p("d/f"), p("hard")), opMkdir(p("d/e")), opRename(p("d/e"), p("e")),
		opRename(p("d/f"), p("e/g")), opWrite(p("hard"), 50, 5000, fs.Unstable), opRemove(p("hard")), opSize(p("big"), 1000),
		opWrite(p("big"), 70000, 3000, fs.FileSync), opCreate(p("x")), opRename(p("big"), p("x")), opMkdir(p("empty")), opRename(p("e"), p("empty")),
		opRemove(p("x")), opRemove(p("d/l")), opRmdir(p("d")), opSize(p("empty/g"), 0), opRemove(p("empty/g")), opRmdir(p("empty")), opCreate(p("last")),
		opWrite(p("last"), 1<<20, 300000, fs.FileSync), opRemove(p("last")), // freed in the background
	}
}

func fixed() time.Time { return time.Unix(1e9, 5) }

// record runs the workload of some clients at the same time, on a new volume of the simulator.
func record(t testing.TB, clients int) (*disk.Sim, []*history) {
	sim := disk.NewSim(6000)
	if err := fs.Mkfs(sim, fs.MkfsOptions{Inodes: 256, Zeroed: true, Clock: fixed}); err != nil {
		t.Fatal(err)
	}
	v, err := fs.Open(sim, fs.Options{Clock: fixed})
	if err != nil {
		t.Fatal(err)
	}
	var hs []*history
	for i := range clients {
		h := &history{dir: fmt.Sprint("/client", i)}
		if err := opMkdir(h.dir).do(v); err != nil {
			t.Fatal(err)
		}
		hs = append(hs, h)
	}
	sim.Record()
	var wg sync.WaitGroup
	for _, h := range hs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			h.run(t, sim, v)
		}()
	}
	wg.Wait()
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	return sim, hs
}

func (h *history) run(t testing.TB, sim *disk.Sim, v *fs.FS) {
	h.states = []string{tree(t, v, h.dir)}
	for _, o := range workload(h.dir) {
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
func testCrash(t *testing.T, clients, step int) {
	r := random(t)
	sim, hs := record(t, clients)
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

func TestCrash(t *testing.T)           { testCrash(t, 1, 1) }
func TestCrashConcurrent(t *testing.T) { testCrash(t, 4, 11) }

// A crash during mkfs leaves no volume, or the whole of one.
func TestCrashMkfs(t *testing.T) {
	r := random(t)
	sim := disk.NewSim(6000)
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
