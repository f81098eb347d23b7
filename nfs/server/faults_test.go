package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"sync"
	"testing"

	"tansy/fs"
	"tansy/fs/model"
	"tansy/nfs/nfs3"
	"tansy/nfs/oncrpc"
	"tansy/nfs/server"
	"tansy/test/kit/nfsclient"
)

// Faults that servers of this kind had, each with a test.

// call sends hand-made arguments and returns the status.
func call(t *testing.T, c *nfsclient.Client, proc uint32, args func(e *oncrpc.Encoder)) (fs.Errno, error) {
	t.Helper()
	d, err := c.Call(nfs3.Program, nfs3.Version, proc, root, args)
	if err != nil {
		return 0, err
	}
	return fs.Errno(d.Uint32()), nil
}

func wantGarbage(t *testing.T, what string, err error) {
	t.Helper()
	var e *nfsclient.RPCError
	if !errors.As(err, &e) || e.Denied || e.Stat != uint32(oncrpc.GarbageArgs) {
		t.Errorf("%s: %v, want garbage arguments", what, err)
	}
}

// TestHandles tries every kind of bad handle on every procedure.
func TestHandles(t *testing.T) {
	m := model.New(model.Options{})
	c := mount(t, start(t, m))
	good := c.Raw(c.Root())
	flip := func(i int) []byte {
		b := bytes.Clone(good)
		b[i] ^= 1
		return b
	}
	for _, x := range []struct {
		name   string
		handle []byte
		want   fs.Errno
	}{
		{"empty", nil, fs.ErrBadHandle},
		{"31 bytes", good[:31], fs.ErrBadHandle},
		{"33 bytes", append(bytes.Clone(good), 0), fs.ErrBadHandle},
		{"64 bytes", make([]byte, 64), fs.ErrBadHandle},
		{"another volume", flip(0), fs.ErrStale},
		{"another inode", flip(15), fs.ErrBadHandle},
		{"another generation", flip(23), fs.ErrBadHandle},
		{"another tag", flip(31), fs.ErrBadHandle},
	} {
		for proc := uint32(nfs3.ProcGetattr); proc <= nfs3.ProcCommit; proc++ {
			stat, err := call(t, c, proc, func(e *oncrpc.Encoder) { arguments(e, proc, x.handle) })
			if stat != x.want || err != nil {
				t.Errorf("%s, procedure %d: %v %v, want %v", x.name, proc, stat, err, x.want)
			}
		}
	}
	_, err := call(t, c, nfs3.ProcGetattr, func(e *oncrpc.Encoder) { e.Opaque(make([]byte, 65)) })
	wantGarbage(t, "a handle of 65 bytes", err)
	_, err = call(t, c, nfs3.ProcGetattr, func(e *oncrpc.Encoder) { e.Uint32(0xffffffff) })
	wantGarbage(t, "a handle of 2^32-1 bytes", err)
}

// TestTruncatedArguments cuts the arguments of every procedure at every word.
func TestTruncatedArguments(t *testing.T) {
	m := model.New(model.Options{})
	c := mount(t, start(t, m))
	for proc := uint32(nfs3.ProcGetattr); proc <= nfs3.ProcCommit; proc++ {
		full := oncrpc.NewEncoder(nil)
		arguments(&full, proc, c.Raw(c.Root()))
		for n := 0; n < full.Len(); n += 4 {
			_, err := call(t, c, proc, func(e *oncrpc.Encoder) { e.Fixed(full.Bytes()[:n]) })
			wantGarbage(t, fmt.Sprintf("procedure %d with %d of %d bytes", proc, n, full.Len()), err)
		}
	}
	if l, err := m.Readdir(root, m.Root(), 0, 0, false, fs.Limit{Bytes: 1000, Size: func(int) int { return 1 }}); err != nil || len(l.Entries) != 2 {
		t.Errorf("truncated calls were carried out: %v", l)
	}
}

func TestHugeStrings(t *testing.T) {
	m := model.New(model.Options{})
	c := mount(t, start(t, m))
	for _, length := range []uint32{0xffffffff, 0xfffffffd, 0x80000000, 0x7fffffff, 1 << 20} {
		for _, proc := range []uint32{nfs3.ProcLookup, nfs3.ProcCreate, nfs3.ProcRemove, nfs3.ProcRename} {
			_, err := call(t, c, proc, func(e *oncrpc.Encoder) {
				e.Opaque(c.Raw(c.Root()))
				e.Uint32(length)
				e.Fixed(make([]byte, 40))
			})
			wantGarbage(t, fmt.Sprintf("procedure %d, a name of %d bytes", proc, length), err)
		}
	}
	// A long name that is really there is the file system's to refuse.
	_, err := c.Lookup(root, c.Root(), make([]byte, 100000))
	if err == nil {
		t.Error("found a name of 100,000 bytes")
	}
	_, err = c.Lookup(root, c.Root(), bytes.Repeat([]byte("n"), 256))
	wantErr(t, "a name of 256 bytes", err, fs.ErrNameTooLong)
	_, err = c.Mkdir(root, c.Root(), bytes.Repeat([]byte("n"), 255), &fs.SetAttr{})
	wantErr(t, "a name of 255 bytes", err, nil)
}

func TestUnknownEnums(t *testing.T) {
	m := model.New(model.Options{})
	c := mount(t, start(t, m))
	f := create(t, c, "f")
	dirop := func(e *oncrpc.Encoder) {
		e.Opaque(c.Raw(c.Root()))
		e.Opaque([]byte("new"))
	}
	_, err := call(t, c, nfs3.ProcCreate, func(e *oncrpc.Encoder) {
		dirop(e)
		e.Uint32(3) // createmode3
		e.Fixed(make([]byte, 24))
	})
	wantGarbage(t, "createmode3 3", err)
	_, err = call(t, c, nfs3.ProcMkdir, func(e *oncrpc.Encoder) {
		dirop(e)
		e.Fixed(make([]byte, 16))
		e.Uint32(3) // time_how
		e.Uint32(0)
	})
	wantGarbage(t, "time_how 3", err)
	_, err = call(t, c, nfs3.ProcSetattr, func(e *oncrpc.Encoder) {
		e.Opaque(c.Raw(f))
		e.Uint32(2) // a bool
		e.Fixed(make([]byte, 30))
	})
	wantGarbage(t, "a bool that is 2", err)
	stat, err := call(t, c, nfs3.ProcMknod, func(e *oncrpc.Encoder) {
		dirop(e)
		e.Uint32(8) // ftype3
	})
	if stat != fs.ErrBadType || err != nil {
		t.Errorf("ftype3 8: %v %v", stat, err)
	}
	stat, err = call(t, c, nfs3.ProcWrite, func(e *oncrpc.Encoder) {
		e.Opaque(c.Raw(f))
		e.Uint64(0)
		e.Uint32(1)
		e.Uint32(3) // stable_how
		e.Opaque([]byte("x"))
	})
	if stat != fs.ErrInval || err != nil {
		t.Errorf("stable_how 3: %v %v", stat, err)
	}
	if a, _ := c.Getattr(f); a.Size != 0 {
		t.Error("a WRITE with an unknown stable_how was carried out")
	}
}

func TestWriteCount(t *testing.T) {
	m := model.New(model.Options{})
	c := mount(t, start(t, m))
	f := create(t, c, "f")
	write := func(count uint32, data []byte) (fs.Errno, error) {
		return call(t, c, nfs3.ProcWrite, func(e *oncrpc.Encoder) {
			e.Opaque(c.Raw(f))
			e.Uint64(0)
			e.Uint32(count)
			e.Uint32(2)
			e.Opaque(data)
		})
	}
	for _, count := range []uint32{0, 3, 5, 0xffffffff} {
		if stat, err := write(count, []byte("four")); stat != fs.ErrInval || err != nil {
			t.Errorf("count %d with 4 bytes: %v %v", count, stat, err)
		}
	}
	if a, _ := c.Getattr(f); a.Size != 0 {
		t.Error("a WRITE with a wrong count was carried out")
	}
	if stat, err := write(1<<20, make([]byte, 1<<20)); stat != 0 || err != nil {
		t.Errorf("1 MiB: %v %v", stat, err)
	}
	_, err := write(1<<20+1, make([]byte, 1<<20+1))
	wantGarbage(t, "more than 1 MiB", err)
	data, _, _, err := c.Read(root, f, 0, 0xffffffff)
	if len(data) != 1<<20 || err != nil {
		t.Errorf("READ of all: %d bytes, %v", len(data), err)
	}
}

// slowFS holds every WRITE until release is closed.
type slowFS struct {
	fs.FileSystem
	started chan struct{}
	release chan struct{}
}

func (s *slowFS) Write(
	c *fs.Cred, h fs.Handle, off uint64, data []byte, how fs.Stability,
) (uint32, fs.Stability, fs.WCC, error) {
	s.started <- struct{}{}
	<-s.release
	return s.FileSystem.Write(c, h, off, data, how)
}

// TestWriteBufferNotReused lets many calls arrive on the connection while WRITEs
// are in progress. The data they came with must still be there when they go on.
func TestWriteBufferNotReused(t *testing.T) {
	m := model.New(model.Options{})
	slow := &slowFS{m, make(chan struct{}), make(chan struct{})}
	c := mount(t, start(t, slow))
	sizes := []int{10, 100, 3000, 5000, 20000, 70000, 1 << 20, 64 << 10, 7, 64<<10 + 1}
	var files []fs.Handle
	for i := range sizes {
		files = append(files, create(t, m, fmt.Sprint(i)))
	}
	// The client learns the handles.
	for i := range sizes {
		if _, err := c.Lookup(root, c.Root(), []byte(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	content := func(i int) []byte { return bytes.Repeat([]byte{byte(i + 1)}, sizes[i]) }
	var wg sync.WaitGroup
	for i := range sizes {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if _, _, _, err := c.Write(root, files[i], 0, content(i), fs.FileSync); err != nil {
				t.Error(err)
			}
		}()
		<-slow.started
		for range 300 {
			if _, err := c.Lookup(root, c.Root(), bytes.Repeat([]byte{0xee}, 200)); err != fs.ErrNoEnt {
				t.Fatal(err)
			}
		}
	}
	close(slow.release)
	wg.Wait()
	for i := range sizes {
		data, _, _, err := m.Read(root, files[i], 0, 1<<20)
		if err != nil || !bytes.Equal(data, content(i)) {
			t.Errorf("a WRITE of %d bytes stored something else (%v)", sizes[i], err)
		}
	}
}

// TestConcurrentWrites writes to one file from several connections; every block
// must hold what one of the writers sent.
func TestConcurrentWrites(t *testing.T) {
	m := model.New(model.Options{})
	addr := start(t, m)
	f := create(t, m, "f")
	const clients, writes, size = 6, 60, 9000
	var wg sync.WaitGroup
	for k := range clients {
		c := mount(t, addr)
		if _, err := c.Lookup(root, c.Root(), []byte("f")); err != nil {
			t.Fatal(err)
		}
		rnd := rand.New(rand.NewSource(int64(k)))
		for range writes {
			at := uint64(rnd.Intn(10)) * size
			wg.Add(1)
			go func() {
				defer wg.Done()
				if _, _, _, err := c.Write(root, f, at, bytes.Repeat([]byte{byte(k + 1)}, size), fs.Unstable); err != nil {
					t.Error(err)
				}
			}()
		}
	}
	wg.Wait()
	data, _, _, err := m.Read(root, f, 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+size <= len(data); i += size {
		if part := data[i : i+size]; !bytes.Equal(part, bytes.Repeat(part[:1], size)) {
			t.Errorf("the WRITEs at %d were mixed", i)
		}
	}
}

func TestVerifierOfEachStart(t *testing.T) {
	verifiers := map[uint64]bool{}
	for range 3 {
		m := model.New(model.Options{})
		c := mount(t, start(t, m))
		if _, err := c.Commit(create(t, c, "f"), 0, 0); err != nil {
			t.Fatal(err)
		}
		verifiers[c.Verifier()] = true
	}
	if len(verifiers) != 3 {
		t.Errorf("write verifiers: %v", verifiers)
	}
}

// brokenFS fails in ways a file system should not.
type brokenFS struct{ fs.FileSystem }

func (brokenFS) Getattr(fs.Handle) (fs.Attr, error) {
	return fs.Attr{}, errors.New("the disk is on fire")
}
func (brokenFS) Fsstat(fs.Handle) (fs.Stat, *fs.Attr, error) {
	return fs.Stat{}, nil, fmt.Errorf("deep inside: %w", fs.ErrROFS)
}
func (brokenFS) Readlink(*fs.Cred, fs.Handle) ([]byte, *fs.Attr, error) { panic("a bug") }

func TestBrokenFileSystem(t *testing.T) {
	c := mount(t, start(t, brokenFS{model.New(model.Options{})}))
	_, err := c.Getattr(c.Root())
	wantErr(t, "an error that is no Errno", err, fs.ErrIO)
	_, _, err = c.Fsstat(c.Root())
	wantErr(t, "a wrapped Errno", err, fs.ErrROFS)
	_, _, err = c.Readlink(root, c.Root())
	var e *nfsclient.RPCError
	if !errors.As(err, &e) || e.Stat != uint32(oncrpc.SystemErr) {
		t.Errorf("a panic: %v", err)
	}
	wantErr(t, "NULL after it", c.Null(), nil)
}

func TestCallers(t *testing.T) {
	m := model.New(model.Options{RootMode: 0o777})
	addr, _ := startServer(t, server.Config{Volumes: []server.Volume{{FS: m}}, RootSquash: true})
	c := mount(t, addr)
	for i, x := range []struct {
		cred     *fs.Cred
		uid, gid uint32
	}{
		{nil, 65534, 65534},
		{&fs.Cred{}, 65534, 65534},
		{&fs.Cred{UID: 5, GID: 6, GIDs: []uint32{0, 7}}, 5, 6},
		{&fs.Cred{UID: 5}, 5, 65534},
		{&fs.Cred{GID: 6}, 65534, 6},
	} {
		n, err := c.Mkdir(x.cred, c.Root(), []byte(fmt.Sprint(i)), &fs.SetAttr{})
		if err != nil || n.Attr.UID != x.uid || n.Attr.GID != x.gid {
			t.Errorf("%v: %v, %d %d", x.cred, err, n.Attr.UID, n.Attr.GID)
		}
	}
	for gid, want := range map[uint32]error{7: nil, 0: fs.ErrPerm} {
		_, err := c.Setattr(&fs.Cred{UID: 5, GID: 6, GIDs: []uint32{0, 7}}, lookup(t, c, "2"), &fs.SetAttr{GID: &gid}, nil)
		wantErr(t, fmt.Sprint("supplementary group ", gid), err, want)
	}
}

func lookup(t *testing.T, c fs.FileSystem, name string) fs.Handle {
	t.Helper()
	n, err := c.Lookup(root, c.Root(), []byte(name))
	if err != nil {
		t.Fatal(err)
	}
	return n.Handle
}
