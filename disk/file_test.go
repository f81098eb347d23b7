package disk

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func create(t *testing.T, blocks uint64) *File {
	t.Helper()
	d, err := CreateFile(filepath.Join(t.TempDir(), "image"), blocks*BlockSize)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func blocksOf(n int, r *rand.Rand) [][]byte {
	bufs := make([][]byte, n)
	for i := range bufs {
		bufs[i] = make([]byte, BlockSize)
		if r != nil {
			for j := range bufs[i] {
				bufs[i][j] = byte(r.Uint32())
			}
		}
	}
	return bufs
}

func same(a, b [][]byte) bool { return bytes.Equal(bytes.Join(a, nil), bytes.Join(b, nil)) }

// cut is a vector of the first n bytes of iovs.
func cut(iovs [][]byte, n int) [][]byte {
	var out [][]byte
	for _, b := range iovs {
		b = b[:min(len(b), n)]
		n -= len(b)
		out = append(out, b)
	}
	return out
}

// stutter makes a system call move a random part of what it is asked for, and
// be interrupted now and then.
func stutter(r *rand.Rand, call func(int, [][]byte, int64) (int, error)) func(int, [][]byte, int64) (int, error) {
	return func(fd int, iovs [][]byte, off int64) (int, error) {
		if r.IntN(4) == 0 {
			return -1, syscall.EINTR
		}
		total := 0
		for _, b := range iovs {
			total += len(b)
		}
		return call(fd, cut(iovs, 1+r.IntN(total)), off)
	}
}

func TestShortAndInterruptedIO(t *testing.T) {
	const seed = 1
	r := rand.New(rand.NewPCG(seed, 0))
	d := create(t, 64)
	d.preadv, d.pwritev = stutter(r, d.preadv), stutter(r, d.pwritev)
	interrupts := 3
	flush := d.flush
	d.flush = func(fd int) error {
		if interrupts--; interrupts > 0 {
			return syscall.EINTR
		}
		return flush(fd)
	}
	for range 200 {
		a := r.Uint64N(60)
		n := 1 + r.IntN(int(64-a))
		want, got := blocksOf(n, r), blocksOf(n, nil)
		if err := errors.Join(d.WriteAt(a, want), d.Barrier(), d.ReadAt(a, got)); err != nil {
			t.Fatal(err)
		}
		if !same(want, got) {
			t.Fatalf("seed %d: %d blocks at %d differ", seed, n, a)
		}
	}
}

func TestErrorNamesOperationPathAndBlock(t *testing.T) {
	d := create(t, 64)
	calls := 0
	fail := func(fd int, iovs [][]byte, off int64) (int, error) {
		if calls++; calls == 3 {
			return -1, syscall.EIO
		}
		return 5000, nil // a block and some
	}
	d.pwritev, d.preadv = fail, fail
	for _, op := range []string{"write", "read"} {
		calls = 0
		err := d.WriteAt(10, blocksOf(8, nil))
		if op == "read" {
			calls = 0
			err = d.ReadAt(10, blocksOf(8, nil))
		}
		var e *Error
		if !errors.As(err, &e) || !errors.Is(err, syscall.EIO) {
			t.Fatalf("%s: error %v", op, err)
		}
		if e.Op != op || e.Path != d.Path() || e.Block != 12 {
			t.Errorf("%s: error is %+v, want block 12", op, e)
		}
		if want := op + " block 12 " + d.Path() + ": "; !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: message %q does not begin with %q", op, err, want)
		}
	}
}

func TestFileCutShortBehindOurBack(t *testing.T) {
	d := create(t, 16)
	if err := os.Truncate(d.Path(), 4*BlockSize); err != nil {
		t.Fatal(err)
	}
	var e *Error
	err := d.ReadAt(2, blocksOf(4, nil))
	if !errors.Is(err, io.ErrUnexpectedEOF) || !errors.As(err, &e) || e.Block != 4 {
		t.Errorf("error %v, want an unexpected end at block 4", err)
	}
	// a write behind the end fills the gap with zeros, which could be read
	if err := d.WriteAt(10, blocksOf(1, nil)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Barrier(); !errors.Is(err, io.ErrUnexpectedEOF) || !errors.As(err, &e) || e.Op != "barrier" {
			t.Errorf("error %v of a barrier, want an unexpected end", err)
		}
	}
}

// A device may forget the data of a failed flush and call the next one a success.
func TestFailedBarrierIsFinal(t *testing.T) {
	d := create(t, 16)
	flush := d.flush
	d.flush = func(int) error { return syscall.EIO }
	if err := d.Barrier(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("error %v, want EIO", err)
	}
	d.flush = flush
	if err := d.Barrier(); !errors.Is(err, syscall.EIO) {
		t.Errorf("error %v after the failed barrier, want EIO again", err)
	}
	if err := d.ReadAt(0, blocksOf(1, nil)); err != nil {
		t.Errorf("read after the failed barrier: %v", err)
	}
}

// What is pushed, and how often, changes nothing of the contents.
func TestPush(t *testing.T) {
	d := create(t, 64)
	r := rand.New(rand.NewPCG(1, 0))
	want, got := blocksOf(64, nil), blocksOf(64, nil)
	for range 200 {
		a := r.Uint64N(60)
		bufs := blocksOf(1+r.IntN(4), r)
		copy(want[a:], bufs)
		if err := d.WriteAt(a, bufs); err != nil {
			t.Fatal(err)
		}
		Push(NewStats(d), r.Uint64N(60), 1+r.Uint64N(4), r.IntN(2) == 0)
	}
	if err := errors.Join(d.Barrier(), d.ReadAt(0, got)); err != nil {
		t.Fatal(err)
	}
	if !same(want, got) {
		t.Error("the contents differ")
	}
	Push(NewMem(4*BlockSize), 0, 4, true) // has no cache
}

// The system tells of a failed write once. If it told the one who pushed, no barrier succeeds any more.
func TestFailedPushIsFinal(t *testing.T) {
	for _, wait := range []bool{false, true} {
		d := create(t, 16)
		push := d.push
		d.push = func(int, int64, int64, bool) error { return syscall.EIO }
		d.Push(3, 2, wait)
		d.push = push
		for range 2 {
			var e *Error
			if err := d.Barrier(); !errors.Is(err, syscall.EIO) || !errors.As(err, &e) || e.Block != 3 {
				t.Errorf("error %v of a barrier, want EIO at block 3", err)
			}
		}
	}
}

// Where nothing can be pushed the barrier does it all.
func TestPushWhereThereIsNoCache(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	for _, wait := range []bool{false, true} {
		if err := push(int(w.Fd()), 0, BlockSize, wait); err != nil {
			t.Errorf("a pipe: %v", err)
		}
	}
}

// Who cannot write what is in the cache does not open, unless nothing can be there.
func TestOpenFailsToWriteTheCache(t *testing.T) {
	d := create(t, 16)
	for _, c := range []struct {
		readOnly bool
		err      error
		opens    bool
	}{
		{false, syscall.EIO, false}, {true, syscall.EIO, false}, {false, syscall.EROFS, false}, {true, syscall.EROFS, true},
		{true, syscall.EINVAL, true},
	} {
		d.readOnly, d.flush = c.readOnly, func(int) error { return c.err }
		if err := d.settle(); (err == nil) != c.opens || err != nil && err != c.err {
			t.Errorf("read-only: %v, flush fails with %v: error %v", c.readOnly, c.err, err)
		}
	}
}

func TestLock(t *testing.T) {
	d := create(t, 16)
	for _, opts := range []FileOptions{{}, {ReadOnly: true}} {
		_, err := OpenFile(d.Path(), opts)
		if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), d.Path()) {
			t.Errorf("%+v: error %v, want ErrLocked that names the file", opts, err)
		}
	}
	path := d.Path()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	var readers []*File
	for range 2 {
		r, err := OpenFile(path, FileOptions{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		readers = append(readers, r)
	}
	if _, err := OpenFile(path, FileOptions{}); !errors.Is(err, ErrLocked) {
		t.Errorf("writer beside readers: error %v, want ErrLocked", err)
	}
	if err := readers[0].WriteAt(0, blocksOf(1, nil)); !errors.Is(err, ErrReadOnly) {
		t.Errorf("write: error %v, want ErrReadOnly", err)
	}
	if err := readers[0].Barrier(); !errors.Is(err, ErrReadOnly) {
		t.Errorf("barrier: error %v, want ErrReadOnly", err)
	}
	for _, r := range readers {
		if err := r.ReadAt(0, blocksOf(1, nil)); err != nil {
			t.Error(err)
		}
		r.Close()
	}
	w, err := OpenFile(path, FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
}

// TestLockAcrossProcesses opens the locked volume from a second process.
func TestLockAcrossProcesses(t *testing.T) {
	const variable = "TANSY_TEST_LOCKED"
	if path := os.Getenv(variable); path != "" {
		if _, err := OpenFile(path, FileOptions{}); !errors.Is(err, ErrLocked) {
			t.Fatalf("error %v, want ErrLocked", err)
		}
		return
	}
	d := create(t, 16)
	c := exec.Command(os.Args[0], "-test.run=^TestLockAcrossProcesses$")
	c.Env = append(os.Environ(), variable+"="+d.Path())
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestExistingImageKeepsItsSizeAndContents(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image")
	const size = 10*BlockSize + 100
	want := bytes.Repeat([]byte("tansy "), size/6+1)[:size]
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := CreateFile(path, 4*BlockSize); !errors.Is(err, fs.ErrExist) {
		t.Errorf("CreateFile over an image: error %v, want ErrExist", err)
	}
	d, err := OpenFile(path, FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if d.Size() != 10 {
		t.Errorf("size %d, want 10: the tail is no block", d.Size())
	}
	if err := errors.Join(d.Barrier(), d.Close()); err != nil {
		t.Error(err)
	}
	if got, _ := os.ReadFile(path); !bytes.Equal(got, want) {
		t.Error("opening changed the file")
	}
}

func TestCreateIsSparseAndPrivate(t *testing.T) {
	d := create(t, 1<<20)
	if d.Size() != 1<<20 {
		t.Errorf("size %d", d.Size())
	}
	st, err := os.Stat(d.Path())
	if err != nil {
		t.Fatal(err)
	}
	if used := st.Sys().(*syscall.Stat_t).Blocks; used > 100 {
		t.Errorf("new image takes %d sectors", used)
	}
	if st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600: others must not read past the server's checks", st.Mode())
	}
}

// An image that somebody has open is not removed, nor is what is no image or another's.
func TestRemoveAbandoned(t *testing.T) {
	d := create(t, 2)
	path := d.Path()
	if err := RemoveAbandoned(path); !errors.Is(err, ErrLocked) {
		t.Errorf("an open image: %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	link := path + ".link"
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for what, path := range map[string]string{
		"a symbolic link": link, "a directory": filepath.Dir(path), "nothing": path + ".2",
	} {
		if err := RemoveAbandoned(path); err == nil || errors.Is(err, ErrLocked) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := RemoveAbandoned(path); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestRenameNeverReplaces(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	for _, path := range []string{from, to} {
		if err := os.WriteFile(path, []byte(path), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Rename(from, to); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), to) {
		t.Errorf("error %v, want ErrExist that names the file", err)
	}
	if err := os.Remove(to); err != nil {
		t.Fatal(err)
	}
	if err := Rename(from, to); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(to); err != nil || string(got) != from {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := os.Stat(from); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old name: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, dir, "/dev/null", filepath.Join(dir, "missing")} {
		_, err := OpenFile(path, FileOptions{ReadOnly: true})
		var e *Error
		if !errors.As(err, &e) || e.Op != "open" || e.Path != path {
			t.Errorf("%s: error %v", path, err)
		}
	}
	for _, size := range []uint64{0, 1, BlockSize + 1, 1 << 63} {
		path := filepath.Join(dir, "new")
		if _, err := CreateFile(path, size); err == nil {
			t.Errorf("created an image of %d bytes", size)
		}
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("size %d: left a file behind", size)
		}
	}
	if _, err := CreateFile(filepath.Join(dir, "no", "such"), BlockSize); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("create in a missing directory: %v", err)
	}
}

// TestBlockDevice needs a device whose contents may be lost, named in
// TANSY_TEST_DEVICE. The guest of test/linux has one, a loop device.
func TestBlockDevice(t *testing.T) {
	path := os.Getenv("TANSY_TEST_DEVICE")
	if path == "" {
		t.Skip("TANSY_TEST_DEVICE is not set")
	}
	d, err := OpenFile(path, FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.Size() == 0 {
		t.Fatal("size 0")
	}
	if _, err := OpenFile(path, FileOptions{}); err == nil {
		t.Error("opened twice")
	}
	want, got := blocksOf(1, rand.New(rand.NewPCG(1, 1))), blocksOf(1, nil)
	last := d.Size() - 1
	if err := errors.Join(d.WriteAt(last, want), d.Barrier(), d.ReadAt(last, got)); err != nil {
		t.Fatal(err)
	}
	if !same(want, got) {
		t.Error("last block differs")
	}
}
