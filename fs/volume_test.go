package fs_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/fs/model"
	"tansy/test/kit/fstest"
	"tansy/test/kit/replay"
)

var opsFlag = flag.Int("ops", 10000, "operations of a random test")

func seed(t testing.TB) int64 { return int64(replay.Seed(t)) }

func random(t testing.TB) *rand.Rand { return rand.New(rand.NewSource(seed(t))) }

func mkfs(t testing.TB, d disk.Disk, o fs.MkfsOptions) {
	t.Helper()
	if err := fs.Mkfs(d, o); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, d disk.Disk, o fs.Options) *fs.FS {
	t.Helper()
	v, err := fs.Open(d, o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// elsewhere does what another process does: it has none of the caller's locks.
func elsewhere(do func()) {
	var its sync.WaitGroup
	its.Go(do)
	its.Wait()
}

func closeFS(t testing.TB, v *fs.FS) {
	t.Helper()
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
}

// newVolume is a volume in memory, which is closed and checked at the end of the test.
func newVolume(t testing.TB, o fs.Options) *fs.FS {
	d := disk.NewMem(100000 * disk.BlockSize)
	mkfs(t, d, fs.MkfsOptions{Zeroed: true, Inodes: 5000, Clock: o.Clock})
	v := open(t, d, o)
	t.Cleanup(func() {
		closeFS(t, v)
		mustCheck(t, d)
	})
	return v
}

// Random operations do to the verified file system what they do to the model,
// also when the volume is closed and opened in between.
func TestModel(t *testing.T) {
	poison(t)
	clock := fstest.NewClock()
	s := seed(t)
	d := disk.NewMem(100000 * disk.BlockSize)
	mkfs(t, d, fs.MkfsOptions{Zeroed: true, Inodes: 5000, Clock: clock.Now})
	v := &reopened{FS: open(t, d, fs.Options{Clock: clock.Now})}
	m := model.New(model.Options{Clock: clock.Now})
	c := fstest.New(m, v, fstest.Options{Seed: s, Clock: clock, Far: true})
	for range 5 {
		if err := c.Run(*opsFlag / 5); err != nil {
			t.Fatal(err)
		}
		closeFS(t, v.FS)
		mustCheck(t, d)
		was := v.FS.Verifier()
		v.FS = open(t, d, fs.Options{Clock: clock.Now})
		if v.FS.Verifier() == was {
			t.Fatal("the write verifier did not change")
		}
		if err := c.CompareTrees(); err != nil {
			t.Fatal(err)
		}
	}
	closeFS(t, v.FS)
}

// reopened is a file system that is sometimes replaced by itself after a restart.
type reopened struct{ *fs.FS }

// A read-only volume is read, also what only the journal has, and the device stays as it is.
func TestReadOnly(t *testing.T) {
	sim := disk.NewSim(6000 * disk.BlockSize)
	mkfs(t, sim, fs.MkfsOptions{Zeroed: true, Inodes: 256})
	v := open(t, sim, fs.Options{})
	n, err := v.Create(root, v.Root(), []byte("f"), fs.Guarded, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := v.Write(root, n.Handle, 0, []byte("hello"), fs.FileSync); err != nil {
		t.Fatal(err)
	}
	image := sim.Crash(disk.KeepAll)
	closeFS(t, v)
	ops := image.Ops()
	v = open(t, image, fs.Options{ReadOnly: true})
	b, _, _, err := v.Read(root, n.Handle, 0, 100)
	if err != nil || string(b) != "hello" {
		t.Fatalf("%q %v", b, err)
	}
	if _, err := v.Remove(root, v.Root(), []byte("f")); err != fs.ErrROFS {
		t.Fatal(err)
	}
	// ACCESS says so before anybody tries: a client would else take writes and lose them later
	if bits, _, err := v.Access(root, v.Root(), 0x3f); err != nil || bits != 0x03 {
		t.Fatalf("ACCESS of the root: %#x %v", bits, err)
	}
	if bits, _, err := v.Access(root, n.Handle, 0x3f); err != nil || bits != 0x01 {
		t.Fatalf("ACCESS of a file: %#x %v", bits, err)
	}
	closeFS(t, v)
	if image.Ops() != ops {
		t.Fatal("the device was written to")
	}
}

// What is no volume is refused; a damaged superblock is replaced by its copy.
func TestSuperblock(t *testing.T) {
	d := disk.NewMem(6000 * disk.BlockSize)
	if _, err := fs.Open(d, fs.Options{}); !errors.Is(err, fs.ErrNotVolume) {
		t.Fatal(err)
	}
	mkfs(t, d, fs.MkfsOptions{Inodes: 256})
	id := func() [16]byte {
		v := open(t, d, fs.Options{})
		defer closeFS(t, v)
		return v.VolumeID()
	}
	want := id()
	b := make([]byte, fs.BlockSize)
	if err := d.ReadAt(0, [][]byte{b}); err != nil {
		t.Fatal(err)
	}
	b[100] ^= 1
	if err := d.WriteAt(0, [][]byte{b}); err != nil {
		t.Fatal(err)
	}
	if id() != want {
		t.Fatal("another volume")
	}
	mustCheck(t, d)
	// a volume of format 3, or an earlier one, is refused with the way on, and stays what it is
	b[100] ^= 1
	binary.LittleEndian.PutUint32(b[8:], fs.FormatVersion()-2)
	sum := sha256.Sum256(b[:fs.BlockSize-sha256.Size])
	copy(b[fs.BlockSize-sha256.Size:], sum[:])
	if err := d.WriteAt(0, [][]byte{b}); err != nil {
		t.Fatal(err)
	}
	older := fmt.Sprintf(`its format is number %d, and this one's %d. To go on with its files, serve it by a Tansy of which "tansy version" prints "volume format %[1]d"`, fs.FormatVersion()-2, fs.FormatVersion())
	if _, err := fs.Open(d, fs.Options{}); !errors.Is(err, fs.ErrNotVolume) || !strings.Contains(err.Error(), older) {
		t.Fatal(err)
	}
	clear(b) // something else was written over the volume, but not to its end
	if err := d.WriteAt(0, [][]byte{b}); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Open(d, fs.Options{}); !errors.Is(err, fs.ErrNotVolume) {
		t.Fatal(err)
	}
	if err := fs.Mkfs(disk.NewMem(100*disk.BlockSize), fs.MkfsOptions{}); err == nil {
		t.Fatal("a volume of 100 blocks")
	}
}

// While the superblock is restored, its copy stays as it is: a crash may leave anything in
// a block that is being written.
func TestSuperblockCopyKept(t *testing.T) {
	d := &noWrites{Disk: disk.NewMem(6000 * disk.BlockSize)}
	mkfs(t, d, fs.MkfsOptions{Zeroed: true, Inodes: 256})
	good, bad := make([]byte, fs.BlockSize), make([]byte, fs.BlockSize)
	if err := d.ReadAt(0, [][]byte{good}); err != nil {
		t.Fatal(err)
	}
	copy(bad, good)
	bad[100] ^= 1
	if err := d.WriteAt(0, [][]byte{bad}); err != nil {
		t.Fatal(err)
	}
	d.block = d.Size() - 1
	closeFS(t, open(t, d, fs.Options{Log: slog.New(slog.DiscardHandler)}))
	if err := d.ReadAt(0, [][]byte{bad}); err != nil || !bytes.Equal(good, bad) {
		t.Error("block 0 was not restored:", err)
	}
}

// noWrites is a device on which no write to one block succeeds, if that is not 0.
type noWrites struct {
	disk.Disk
	block uint64
}

func (d *noWrites) WriteAt(a uint64, bufs [][]byte) error {
	if d.block != 0 && a <= d.block && d.block < a+uint64(len(bufs)) {
		return syscall.EPERM
	}
	return d.Disk.WriteAt(a, bufs)
}

// The device fails at some point and for good: every later change is refused,
// and after a restart there is what was acknowledged, and perhaps the operation
// that failed.
func TestDeviceErrors(t *testing.T) {
	r := random(t)
	ops := workload("")
	// run does the operations until one fails: done is how many succeeded, stable
	// the number of those up to the last stable one.
	run := func(v *fs.FS, after func()) (done, stable int, err error) {
		for i, o := range ops {
			if err = o.do(v); err != nil {
				return i, stable, err
			}
			after()
			if o.stable {
				stable = i + 1
			}
		}
		return len(ops), stable, nil
	}
	newDisk := func() disk.Disk {
		d := disk.NewMem(6000 * disk.BlockSize)
		mkfs(t, d, fs.MkfsOptions{Zeroed: true, Inodes: 256, Clock: fixed})
		return d
	}
	good := open(t, newDisk(), fs.Options{Clock: fixed})
	states := []string{tree(t, good, "")}
	if _, _, err := run(good, func() { states = append(states, tree(t, good, "")) }); err != nil {
		t.Fatal(err)
	}
	closeFS(t, good)

	for range 40 {
		d := newDisk()
		f := disk.NewFault(d, r.Uint64(), nil)
		quiet := slog.New(slog.DiscardHandler)
		v := open(t, f, fs.Options{Clock: fixed, Log: quiet})
		at := f.Ops() + uint64(r.Intn(120))
		f.SetPlan(disk.FailFrom(at, syscall.EIO, disk.Write, disk.Barrier))
		done, stable, err := run(v, func() {})
		if err != nil {
			if err != fs.ErrIO && err != fs.ErrROFS {
				t.Fatalf("%s: %v", ops[done].what, err)
			}
			if _, err := v.Create(root, v.Root(), []byte("more"), fs.Guarded, nil, 0); err != fs.ErrIO && err != fs.ErrROFS {
				t.Fatal("after an error:", err)
			}
		}
		v.Close() // it may fail, too
		v = open(t, d, fs.Options{Clock: fixed})
		got := tree(t, v, "")
		closeFS(t, v)
		mustCheck(t, d)
		if !slices.Contains(states[stable:min(done+2, len(states))], got) {
			t.Fatalf("device operation %d failed, %d operations were done, of these %d durable; after a restart there is\n%s",
				at, done, stable, got)
		}
	}
}

// When the device fails under a change, no reply shows attributes that the change
// gave a file: they may never be on the device. All is refused then, and ACCESS says so.
func TestDeviceErrorShowsNothing(t *testing.T) {
	f := disk.NewFault(disk.NewMem(6000*disk.BlockSize), 1, nil)
	mkfs(t, f, fs.MkfsOptions{Zeroed: true, Inodes: 256})
	v := open(t, f, fs.Options{Log: slog.New(slog.DiscardHandler)})
	defer v.Close()
	n, err := v.Create(root, v.Root(), []byte("f"), fs.Guarded, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.SetPlan(disk.FailFrom(0, syscall.EIO, disk.Write, disk.Barrier))
	for range 2 {
		a, w, err := v.Link(root, n.Handle, v.Root(), []byte("g"))
		if err != fs.ErrIO && err != fs.ErrROFS || a != nil || w.Before != nil || w.After != nil {
			t.Errorf("LINK: %v, attributes %v %v", err, a, w)
		}
	}
	if a, err := v.Getattr(n.Handle); err == nil && a.Nlink != 1 {
		t.Errorf("GETATTR shows a link that is not durable: %+v", a)
	}
	if bits, _, err := v.Access(root, v.Root(), 0x3f); err == nil && bits&0x1c != 0 {
		t.Errorf("ACCESS %#x after a failure", bits)
	}
}

// A stable operation of a single client costs one barrier; reading costs none.
func TestBarriers(t *testing.T) {
	d := disk.NewStats(disk.NewMem(20000 * disk.BlockSize))
	// in a log that is not half full nothing is installed, which takes barriers of its own
	mkfs(t, d, fs.MkfsOptions{Zeroed: true, Inodes: 500, LogBytes: 20 << 20})
	v := open(t, d, fs.Options{})
	defer closeFS(t, v)
	n, err := v.Create(root, v.Root(), []byte("f"), fs.Guarded, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	count := func(what string, want uint64, op func() error) {
		t.Helper()
		before := d.Counts().Barriers
		for range 20 {
			if err := op(); err != nil {
				t.Fatal(what, err)
			}
		}
		if got := d.Counts().Barriers - before; got > 20*want {
			t.Errorf("%s: %d barriers for 20 operations", what, got)
		}
	}
	count("write", 1, func() error {
		_, _, _, err := v.Write(root, n.Handle, 0, []byte("hello"), fs.FileSync)
		return err
	})
	i := 0
	count("create", 1, func() error {
		i++
		_, err := v.Create(root, v.Root(), []byte{'a', byte(i)}, fs.Guarded, nil, 0)
		return err
	})
	count("remove", 1, func() error {
		_, err := v.Remove(root, v.Root(), []byte{'a', byte(i)})
		i--
		return err
	})
	count("lookup", 0, func() error {
		_, err := v.Lookup(root, v.Root(), []byte("f"))
		return err
	})
	count("read", 0, func() error {
		_, _, _, err := v.Read(root, n.Handle, 0, 10)
		return err
	})
}

// A cold READ asks the device once for what lies side by side there, and for nothing that
// it does not need but the pages of the tree of codes: those of 255 blocks that lie side by side take one page, of two
// places, and the pages above them are few.
func TestDeviceReads(t *testing.T) {
	const chunk, chunks = 64 << 10, 40
	r := random(t)
	d := disk.NewStats(disk.NewMem(20000 * disk.BlockSize))
	mkfs(t, d, fs.MkfsOptions{Zeroed: true, Inodes: 500})
	v := open(t, d, fs.Options{})
	// a file written in one go, and two that took turns
	var files [3]fs.Handle
	var contents [3][]byte
	for i := range files {
		n, err := v.Create(root, v.Root(), []byte{'a' + byte(i)}, fs.Guarded, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files[i], contents[i] = n.Handle, make([]byte, chunk*chunks)
		for k := range contents[i] {
			contents[i][k] = byte(r.Uint32())
		}
	}
	write := func(i, off, n int) {
		if _, _, _, err := v.Write(root, files[i], uint64(off), contents[i][off:off+n], fs.Unstable); err != nil {
			t.Fatal(err)
		}
	}
	for off := 0; off < chunk*chunks; off += chunk {
		write(0, off, chunk)
	}
	for off := 0; off < chunk*chunks; off += disk.BlockSize {
		write(1, off, disk.BlockSize)
		write(2, off, disk.BlockSize)
	}
	closeFS(t, v)

	v = open(t, d, fs.Options{})
	defer closeFS(t, v)
	for i, f := range files {
		before := d.Counts()
		for off := 0; off < chunk*chunks; off += chunk {
			got, _, _, err := v.Read(root, f, uint64(off), chunk)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, contents[i][off:off+chunk]) {
				t.Fatalf("file %d at %d: other bytes than were written", i, off)
			}
		}
		after := d.Counts()
		const blocks, tree = chunk * chunks / disk.BlockSize, 10
		const pages = (2*blocks/255 + 2) + 2 // below the root: of two files that took turns; the inode's and the indirect block's
		if n := after.ReadBlocks - before.ReadBlocks; n > blocks+tree+2*pages {
			t.Errorf("file %d: %d blocks were read for %d", i, n, blocks)
		}
		if n := after.Reads - before.Reads; i == 0 && n > 2*chunks {
			t.Errorf("file %d: %d reads of the device for %d READs", i, n, chunks)
		}
	}
}
