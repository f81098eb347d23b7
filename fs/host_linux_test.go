package fs_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"tansy/disk"
	"tansy/fs"
	"tansy/test/kit/hosttest"
)

const hostBytes = 50 << 20

// fileBytes is the length of the files that fill a volume.
const fileBytes = 96 << 10

// contents are those of file i, after version changes.
func contents(i, version int) []byte {
	return bytes.Repeat([]byte(fmt.Sprintf("%07d,%07d ", i, version)), fileBytes/16)
}

func fileName(i int) []byte { return []byte(fmt.Sprintf("file%d", i)) }

// addFile makes file i with its contents: all of it, or none.
func addFile(v *fs.FS, i int, how fs.Stability) error {
	n, err := v.Create(root, v.Root(), fileName(i), fs.Guarded, &fs.SetAttr{}, 0)
	if err != nil {
		return err
	}
	data := contents(i, 0)
	for off := 0; off < len(data) && err == nil; off += fileBytes / 3 {
		_, _, _, err = v.Write(root, n.Handle, uint64(off), data[off:off+fileBytes/3], how)
	}
	if err != nil {
		if _, e := v.Remove(root, v.Root(), fileName(i)); e != nil {
			return fmt.Errorf("after %w: remove: %w", err, e)
		}
	}
	return err
}

// fill makes files from the first on, until there is no room, and returns how many there are then.
func fill(t *testing.T, v *fs.FS, first int, r *rand.Rand) (n int) {
	t.Helper()
	for n = first; ; n++ {
		how := stability(r)
		if err := addFile(v, n, how); err == fs.ErrNoSpc {
			return n
		} else if err != nil {
			t.Fatalf("file %d, %v: %v", n, how, err)
		}
	}
}

// verify reads the files from first on up to n, not included.
func verify(t *testing.T, v *fs.FS, first, n, version int) {
	t.Helper()
	for i := first; i < n; i++ {
		f, err := v.Lookup(root, v.Root(), fileName(i))
		if err != nil {
			t.Fatalf("file %d: %v", i, err)
		}
		got, _, _, err := v.Read(root, f.Handle, 0, fileBytes)
		if err != nil || !bytes.Equal(got, contents(i, version)) {
			t.Fatalf("file %d: %d bytes, %v", i, len(got), err)
		}
	}
}

// stability is mostly Unstable, as a host is slow at the others.
func stability(r *rand.Rand) fs.Stability {
	if r.Intn(8) == 0 {
		return fs.FileSync
	}
	return fs.Unstable
}

func freeBytes(t *testing.T, v *fs.FS) uint64 {
	t.Helper()
	st, _, err := v.Fsstat(v.Root())
	if err != nil {
		t.Fatal(err)
	}
	return st.FreeBytes
}

// serving is a volume in an image, open.
type serving struct {
	d *disk.File
	v *fs.FS
}

func serveImage(t *testing.T, path string, wrap func(disk.Disk) disk.Disk) serving {
	t.Helper()
	d, err := disk.OpenFile(path, disk.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	v, err := fs.Open(wrap(d), fs.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return serving{d, v}
}

func asIs(d disk.Disk) disk.Disk { return disk.NewStats(d) }

// crash stops without writing anything more.
func (s serving) crash() { s.d.Close(); s.v.Close() }

func (s serving) stop(t *testing.T) {
	t.Helper()
	closeFS(t, s.v)
	if err := s.d.Close(); err != nil {
		t.Fatal(err)
	}
}

// newImage makes a volume of size bytes in a sparse image.
func newImage(t *testing.T, dir string, size uint64) string {
	t.Helper()
	return imageOf(t, dir, size, fs.MkfsOptions{LogBytes: 5 << 20, Zeroed: true, MaxBytes: most})
}

func imageOf(t *testing.T, dir string, size uint64, o fs.MkfsOptions) string {
	t.Helper()
	d, err := disk.CreateFile(filepath.Join(dir, "v.img"), size)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	mkfs(t, d, o)
	return d.Path()
}

func isClean(t *testing.T, path string) {
	t.Helper()
	d, err := disk.OpenFile(path, disk.FileOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	mustCheck(t, d)
}

// On a full host what needs room is refused before anything fails, all the rest works, and
// so does all of it after a restart or a crash: also with the room removed files had.
func TestFullHost(t *testing.T) {
	for _, kind := range hosttest.Kinds {
		for _, others := range []bool{false, true} { // others fill the host
			t.Run(fmt.Sprintf("%s, others %v", kind, others), func(t *testing.T) {
				if testing.Short() && others != (kind == "ext4") {
					t.Skip("long")
				}
				r := random(t)
				dir := hosttest.Mount(t, kind, hostBytes)
				path := newImage(t, dir, 3*hostBytes)
				s := serveImage(t, path, asIs)
				if free := freeBytes(t, s.v); free > hostBytes {
					t.Errorf("%d bytes are free on a host of %d", free, hostBytes)
				}
				n := 0
				if others {
					for ; n < 50; n++ {
						if err := addFile(s.v, n, fs.Unstable); err != nil {
							t.Fatal(err)
						}
					}
					hosttest.Fill(t, dir, 0)
				}
				n = fill(t, s.v, n, r)
				hosttest.Fill(t, dir, 0)

				for round := range 2 {
					// What is there can be read and changed.
					for i := range n {
						f, err := s.v.Lookup(root, s.v.Root(), fileName(i))
						if err != nil {
							t.Fatal(err)
						}
						if _, _, _, err := s.v.Write(root, f.Handle, 0, contents(i, round+1), stability(r)); err != nil {
							t.Fatalf("round %d: overwriting file %d: %v", round, i, err)
						}
					}
					f, err := s.v.Lookup(root, s.v.Root(), fileName(0))
					if err != nil {
						t.Fatal(err)
					}
					if _, err := s.v.Commit(f.Handle, 0, 0); err != nil {
						t.Fatal(err)
					}
					if round%2 == 0 {
						s.stop(t)
					} else {
						s.crash()
					}
					isClean(t, path)
					s = serveImage(t, path, asIs)
					verify(t, s.v, 0, n, round+1)
					// Removing and cutting works, and gives room.
					if free := freeBytes(t, s.v); free > fileBytes {
						t.Errorf("%d bytes are free on a full host", free)
					}
					const gone = 20
					for i := n - gone; i < n; i++ {
						if i%2 == 0 {
							f, err := s.v.Lookup(root, s.v.Root(), fileName(i))
							if err != nil {
								t.Fatal(err)
							}
							size := uint64(1)
							if _, err := s.v.Setattr(root, f.Handle, &fs.SetAttr{Size: &size}, nil); err != nil {
								t.Fatalf("cutting file %d: %v", i, err)
							}
						}
						if _, err := s.v.Remove(root, s.v.Root(), fileName(i)); err != nil {
							t.Fatalf("removing file %d: %v", i, err)
						}
					}
					again := fill(t, s.v, n-gone, r)
					if again < n-2 {
						t.Errorf("round %d: %d files fitted before, %d now", round, n, again)
					}
					n = again
					verify(t, s.v, n-gone, n, 0)
				}
				s.stop(t)
				isClean(t, path)
			})
		}
	}
}

// noHost hides that an image takes room: as if the host had promised it, and then not kept it.
type noHost struct{ disk.Disk }

// When the host is full all the same, the volume becomes read-only. What was acknowledged is there after a restart; one
// that may write needs some room first, if the log has what needs room at home, and says so.
func TestHostFullAllTheSame(t *testing.T) {
	for _, kind := range hosttest.Kinds {
		t.Run(kind, func(t *testing.T) {
			for range 12 { // now and then the log was just emptied
				if fillHost(t, hosttest.Mount(t, kind, hostBytes)) {
					return
				}
			}
			t.Error("a full host was always room enough to open the volume")
		})
	}
}

// fillHost has a volume on a host that becomes full, and tells whether opening it needed room.
func fillHost(t *testing.T, dir string) bool {
	path := newImage(t, dir, 3*hostBytes)
	s := serveImage(t, path, func(d disk.Disk) disk.Disk { return noHost{d} })
	ballast := hosttest.Fill(t, dir, 20<<20)
	n := 0
	for ; addFile(s.v, n, fs.FileSync) == nil; n++ {
		// A block that is in the log, and needs room when it is written home.
		dir, err := s.v.Mkdir(root, s.v.Root(), fmt.Appendf(nil, "dir%d", n), &fs.SetAttr{})
		if err == nil {
			_, err = s.v.Create(root, dir.Handle, []byte("f"), fs.Guarded, &fs.SetAttr{}, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.v.Remove(root, s.v.Root(), fileName(0)); err != fs.ErrROFS {
		t.Errorf("a change after the device failed: %v", err)
	}
	s.crash()

	d, err := disk.OpenFile(path, disk.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rw, err := fs.Open(d, fs.Options{})
	if err == nil {
		closeFS(t, rw)
	} else if !errors.Is(err, fs.ErrHostFull) {
		t.Errorf("opened on a full host: %v, want %v", err, fs.ErrHostFull)
	}
	needed := err != nil
	ro, err := fs.Open(d, fs.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	verify(t, ro, 0, n, 0)
	closeFS(t, ro)
	d.Close()

	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	s = serveImage(t, path, asIs)
	verify(t, s.v, 0, n, 0)
	for i := range n {
		if _, err := s.v.Remove(root, s.v.Root(), fileName(i)); err != nil {
			t.Fatal(err)
		}
	}
	s.stop(t)
	isClean(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	return needed
}

func journalStart(t *testing.T, path string) uint64 {
	t.Helper()
	d, err := disk.OpenFile(path, disk.FileOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	return journalOf(t, d).Start
}

// An image whose journal has holes, as a copy may, is not opened on a full host.
func TestNoRoomForJournal(t *testing.T) {
	dir := hosttest.Mount(t, "tmpfs", hostBytes)
	path := imageOf(t, dir, 3*hostBytes, fs.MkfsOptions{LogBytes: 5 << 20, Zeroed: true}) // all in its place
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	at := int64(journalStart(t, path))*fs.BlockSize + 1<<20
	if err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, at, 1<<20); err != nil {
		t.Fatal(err)
	}
	ballast := hosttest.Fill(t, dir, 0)
	d, err := disk.OpenFile(path, disk.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := fs.Open(d, fs.Options{}); !errors.Is(err, fs.ErrHostFull) {
		t.Errorf("%v, want %v", err, fs.ErrHostFull)
	}
	d.Close()
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	serveImage(t, path, asIs).stop(t)
}
