package simplenfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tansy/disk"
	"tansy/fs"
	"tansy/nfs/nfs3"
	"tansy/nfs/oncrpc"
	"tansy/test/kit/nfsclient"
	"tansy/test/kit/replay"
)

func create(t *testing.T, d disk.Disk) *Volume {
	t.Helper()
	if err := Create(d); err != nil {
		t.Fatal(err)
	}
	v, err := Open(d)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// mount serves v on loopback and returns a client.
func mount(t *testing.T, v *Volume) *nfsclient.Client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := v.Server()
	done := make(chan error)
	go func() { done <- s.Serve(l) }()
	c, err := nfsclient.Mount(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		<-done
	})
	return c
}

func lookup(t *testing.T, c *nfsclient.Client, f int) fs.Handle {
	t.Helper()
	n, err := c.Lookup(nil, c.Root(), fmt.Append(nil, "file", f))
	if err != nil {
		t.Fatal(err)
	}
	return n.Handle
}

// A model is the specification in Go: the bytes of each file.
type model [files][]byte

func (m *model) write(f int, off uint64, data []byte) error {
	n := uint64(len(data))
	if off > 4096-n {
		return fs.ErrFBig
	}
	if n > 0 {
		m.setattr(f, max(off+n, uint64(len(m[f]))))
		copy(m[f][off:], data)
	}
	return nil
}

func (m *model) setattr(f int, size uint64) error {
	if size > 4096 {
		return fs.ErrFBig
	}
	b := make([]byte, size)
	copy(b, m[f])
	m[f] = b
	return nil
}

func (m *model) read(f int, off, count uint64) (data []byte, eof bool) {
	size := uint64(len(m[f]))
	off = min(off, size)
	count = min(count, size-off)
	return m[f][off : off+count], off+count == size
}

// change makes a random change of v and of m, and compares the answers.
func change(t *testing.T, r *rand.Rand, v fs.FileSystem, h [files]fs.Handle, m *model) {
	t.Helper()
	f := r.IntN(files)
	if r.IntN(3) == 0 {
		size := r.Uint64N(4200)
		_, err := v.Setattr(nil, h[f], &fs.SetAttr{Size: &size}, nil)
		if want := m.setattr(f, size); !errors.Is(err, want) {
			t.Fatalf("SETATTR of file %d to %d: %v, not %v", f, size, err, want)
		}
		return
	}
	off, data := r.Uint64N(4100), make([]byte, r.IntN(2000))
	if r.IntN(20) == 0 {
		off = -r.Uint64N(4096)
	}
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	n, how, _, err := v.Write(nil, h[f], off, data, fs.FileSync)
	if want := m.write(f, off, data); !errors.Is(err, want) || err == nil && (int(n) != len(data) || how != fs.FileSync) {
		t.Fatalf("WRITE of %d bytes to file %d at %d: %d, %d, %v, not %v", len(data), f, off, n, how, err, want)
	}
}

// What a client sees is what the model says, also after the volume was opened again.
func TestClient(t *testing.T) {
	seed := replay.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	d := disk.NewMem(Size * disk.BlockSize)
	v := create(t, d)
	c := mount(t, v)
	var h [files]fs.Handle
	for f := range h {
		h[f] = lookup(t, c, f)
	}
	var m model
	compare := func(v fs.FileSystem) {
		t.Helper()
		f := r.IntN(files)
		off, count := r.Uint64N(4200), r.Uint32N(4200)
		want, end := m.read(f, off, uint64(count))
		data, eof, a, err := v.Read(nil, h[f], off, count)
		if err != nil || !bytes.Equal(data, want) || eof != end || a.Size != uint64(len(m[f])) {
			t.Fatalf("READ of %d bytes of file %d from %d: %d bytes, %v, %v, not %d bytes, %v",
				count, f, off, len(data), eof, err, len(want), end)
		}
		if a, err := v.Getattr(h[f]); err != nil || a.Size != uint64(len(m[f])) {
			t.Fatalf("GETATTR of file %d: %v, %v", f, a, err)
		}
	}
	for range 500 {
		change(t, r, c, h, &m)
		compare(c)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	v, err := Open(d)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for range 100 {
		compare(v)
	}
}

// The answers beside those of the specification.
func TestProcedures(t *testing.T) {
	v := create(t, disk.NewMem(Size*disk.BlockSize))
	defer v.Close()
	clock := time.Unix(1000, 5)
	v.now = func() time.Time { return clock }
	c := mount(t, v)
	h := lookup(t, c, 3)
	if a, err := c.Getattr(h); err != nil || a.Size != 0 || a.Type != fs.Regular || a.Mtime != (fs.Time{}) {
		t.Errorf("a new file: %+v, %v", a, err)
	}
	_, how, w, err := c.Write(nil, h, 0, []byte("hello"), fs.Unstable)
	if err != nil || how != fs.Unstable || w.After == nil || w.After.Size != 5 || w.After.Mtime != (fs.Time{Sec: 1000, Nsec: 5}) {
		t.Errorf("WRITE: %v, %+v, %v", how, w.After, err)
	}
	if w, err := c.Commit(h, 0, 0); err != nil || w.After.Size != 5 {
		t.Errorf("COMMIT: %v, %v", w.After, err)
	}
	l, err := c.Readdir(nil, c.Root(), 0, 0, false, fs.Limit{Bytes: 4096})
	if err != nil || len(l.Entries) != 2+files || !l.EOF || string(l.Entries[5].Name) != "file3" || l.Entries[5].Ino != h.Ino {
		t.Errorf("READDIR: %+v, %v", l, err)
	}
	page, err := c.Readdir(nil, c.Root(), l.Entries[9].Cookie, 0, true, fs.Limit{Bytes: 300})
	if err != nil || page.EOF || len(page.Entries) == 0 || string(page.Entries[0].Name) != string(l.Entries[10].Name) {
		t.Errorf("READDIRPLUS: %+v, %v", page, err)
	}
	if n, _, err := c.Access(nil, h, 63); n != 13 || err != nil {
		t.Errorf("ACCESS: %d, %v", n, err)
	}
	if i, _, err := c.Fsinfo(h); err != nil || i.MaxFileSize != 4096 {
		t.Errorf("FSINFO: %+v, %v", i, err)
	}
	size := uint64(1)
	_, err = v.Getattr(fs.Handle{Ino: file0 + files})
	for what, x := range map[string]struct{ got, want error }{
		"GETATTR of a file that there is not": {err, fs.ErrStale},
		"LOOKUP of a name that there is not":  {second(c.Lookup(nil, c.Root(), []byte("file16"))), fs.ErrNoEnt},
		"LOOKUP in a file":                    {second(c.Lookup(nil, h, []byte("file1"))), fs.ErrNotDir},
		"SETATTR of the directory": {second(c.Setattr(nil, c.Root(), &fs.SetAttr{Size: &size}, nil)),
			fs.ErrIsDir},
		"SETATTR of a mode": {second(c.Setattr(nil, h, &fs.SetAttr{Size: &size, Mode: new(uint32)}, nil)), fs.ErrNotSupp},
		"READDIR of a page too small for a name": {second(c.Readdir(nil, c.Root(), 0, 0, false, fs.Limit{Bytes: 1})),
			fs.ErrTooSmall},
	} {
		if x.got != x.want {
			t.Errorf("%s: %v, not %v", what, x.got, x.want)
		}
	}
}

// Each procedure answers, or is said not to be there, whatever it is asked.
func TestUnavailable(t *testing.T) {
	v := create(t, disk.NewMem(Size*disk.BlockSize))
	defer v.Close()
	c := mount(t, v)
	for _, h := range []fs.Handle{c.Root(), lookup(t, c, 0)} {
		for proc := range uint32(nfs3.ProcCommit + 1) {
			_, err := c.Call(nfs3.Program, nfs3.Version, proc, nil, func(e *oncrpc.Encoder) {
				e.Opaque(c.Raw(h))
				e.Fixed(make([]byte, 200))
			})
			var refused *nfsclient.RPCError
			errors.As(err, &refused)
			if slices.Contains(unavailable, int(proc)) {
				if refused == nil || refused.Stat != uint32(oncrpc.ProcUnavail) {
					t.Errorf("procedure %d, which there is not: %v", proc, err)
				}
			} else if err != nil && (refused == nil || refused.Stat != uint32(oncrpc.GarbageArgs)) {
				t.Errorf("procedure %d: %v", proc, err)
			}
		}
	}
}

func second[T any](_ T, err error) error { return err }

// contents are the bytes of all files.
func contents(t *testing.T, v *Volume) (m model) {
	t.Helper()
	for f := range files {
		data, _, _, err := v.Read(nil, fs.Handle{Ino: uint64(file0 + f)}, 0, 4096)
		if err != nil {
			t.Fatal(err)
		}
		m[f] = data
	}
	return m
}

func equal(a, b model) bool { return slices.EqualFunc(a[:], b[:], bytes.Equal) }

// Every crash, at any operation of the device, leaves what some first calls made, all of which
// had been answered among them, and none in part.
func TestCrash(t *testing.T) {
	const calls = 40
	seed := replay.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	d := disk.NewSim(Size * disk.BlockSize)
	if err := Create(d); err != nil {
		t.Fatal(err)
	}
	d.Record()
	v, err := Open(d)
	if err != nil {
		t.Fatal(err)
	}
	var h [files]fs.Handle
	for f := range h {
		h[f].Ino = uint64(file0 + f)
	}
	first := d.Ops()
	var m model
	states, answered := []model{m}, []uint64{0} // after each call, and when it was answered
	for range calls {
		change(t, r, v, h, &m)
		states, answered = append(states, m), append(answered, d.Ops())
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	for n := first; n <= d.Ops(); n++ {
		for img := range d.At(n).Crashes(10, seed+n, true) {
			v, err := Open(img)
			if err != nil {
				t.Fatal(err)
			}
			got, legal := contents(t, v), false
			for i := range states {
				legal = legal || equal(states[i], got) && (i == calls || answered[i+1] > n)
			}
			if !legal {
				t.Fatalf("crash after operation %d of the device: the files are those of no right moment", n)
			}
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Calls of many clients at once take effect one after the other: a file is never a mixture.
func TestTogether(t *testing.T) {
	v := create(t, disk.NewSim(Size*disk.BlockSize))
	c := mount(t, v)
	h := lookup(t, c, 0)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 40 {
				size := uint64(g+1) * 100
				_, _, _, err := c.Write(nil, h, 0, bytes.Repeat([]byte{byte(g + 1)}, 4096), fs.Stability(i%3))
				if err == nil && i%4 == 0 {
					_, err = c.Setattr(nil, h, &fs.SetAttr{Size: &size}, nil)
				}
				data, _, a, err2 := c.Read(nil, h, 0, 4096)
				if err != nil || err2 != nil {
					t.Error(err, err2)
					return
				}
				// all of one write, but for a part that was cut off and is zeros now
				whole := bytes.TrimRight(data, "\x00")
				if len(whole) == 0 || len(data) != int(a.Size) || bytes.Count(whole, whole[:1]) != len(whole) {
					t.Errorf("%d bytes of %d, %d of one write", len(data), a.Size, len(whole))
				}
			}
		})
	}
	wg.Wait()
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
}

// A device that fails is an I/O error, and no OK.
func TestFailure(t *testing.T) {
	var broken atomic.Bool
	v := create(t, disk.NewFault(disk.NewSim(Size*disk.BlockSize), 1, func(op disk.Op, _ *rand.Rand) (h disk.Harm) {
		if broken.Load() && op.Kind == disk.Barrier {
			h.Err = errors.New("broken")
		}
		return h
	}))
	defer v.Close()
	file := fs.Handle{Ino: file0}
	if _, _, _, err := v.Write(nil, file, 0, []byte{1}, fs.Unstable); err != nil {
		t.Error(err)
	}
	broken.Store(true)
	if _, err := v.Commit(file, 0, 0); err != fs.ErrIO {
		t.Errorf("COMMIT: %v", err)
	}
	if _, _, _, err := v.Write(nil, file, 0, []byte{1}, fs.FileSync); err != fs.ErrIO {
		t.Errorf("a WRITE that cannot be durable: %v", err)
	}
}

// The attributes in COMMIT's reply are of a state that it has made durable, though another call changes the file while
// it waits.
func TestCommitShows(t *testing.T) {
	var v *Volume
	var armed atomic.Bool
	file := fs.Handle{Ino: file0}
	write := func(off uint64) {
		if _, _, _, err := v.Write(nil, file, off, []byte{1}, fs.Unstable); err != nil {
			t.Error(err)
		}
	}
	v = create(t, disk.NewFault(disk.NewSim(Size*disk.BlockSize), 1, func(op disk.Op, _ *rand.Rand) (h disk.Harm) {
		if op.Kind == disk.Barrier && armed.CompareAndSwap(true, false) {
			written := make(chan struct{})
			go func() { // for this one has locks, and a call begins without any
				defer close(written)
				write(1)
			}()
			<-written
		}
		return h
	}))
	defer v.Close()
	write(0)
	armed.Store(true)
	w, err := v.Commit(file, 0, 0)
	if err != nil || w.After == nil || w.After.Size != 1 {
		t.Errorf("COMMIT: %+v, %v; only the first byte is durable", w.After, err)
	}
	if a, err := v.Getattr(file); armed.Load() || err != nil || a.Size != 2 {
		t.Errorf("after the other call: %+v, %v", a, err)
	}
}

func TestMistakes(t *testing.T) {
	d := disk.NewMem(Size * disk.BlockSize)
	if _, err := Open(d); !errors.Is(err, ErrForeign) {
		t.Errorf("a disk without a volume: %v", err)
	}
	for _, size := range []uint64{Size - 1, Size + 1} {
		if err := Create(disk.NewMem(size * disk.BlockSize)); err == nil {
			t.Errorf("a volume on a disk of %d blocks", size)
		}
	}
}

// The example is small: below 500 lines of Go and Dafny, without comments, blank lines, and tests, which scenarios.dfy
// is, too.
func TestSmall(t *testing.T) {
	n := 0
	for _, pattern := range []string{"*.go", "*.dfy", "serve/*.go"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") || path == "scenarios.dfy" {
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
					n++
				}
			}
		}
	}
	if n >= 500 {
		t.Errorf("%d lines", n)
	}
	t.Logf("%d lines", n)
}
