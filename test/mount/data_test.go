//go:build linux

package mount

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"tansy/disk"
	"tansy/test/kit/mounttest"
)

func containsAll(text string, whats ...string) bool {
	for _, w := range whats {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// Memory that is mapped is the file's, if it is shared, and one's own, if not.
func TestMmap(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "64M")
	m := mounttest.New(t, bin, image)
	path := filepath.Join(m.Dir, "f")
	const size = 3 << 20
	must(t, os.WriteFile(path, bytes.Repeat([]byte("."), size), 0o644))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	shared, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	must(t, err)
	private, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	must(t, err)
	copy(shared, "shared")
	copy(shared[size-6:], "at end")
	copy(private[4096:], "private")
	b := make([]byte, 11)
	_, err = f.ReadAt(b, 4096)
	must(t, err)
	if string(b) != strings.Repeat(".", 11) || string(private[:6]) != "shared" {
		t.Errorf("the file has %q, the private copy %q", b, private[:6])
	}
	_, err = f.WriteAt([]byte("written"), 2<<20)
	must(t, err)
	if string(shared[2<<20:][:7]) != "written" {
		t.Errorf("shared memory has %q", shared[2<<20:][:7])
	}
	must(t, unix.Msync(shared, unix.MS_SYNC))
	m.Kill() // what was msync'ed is durable
	must(t, unix.Unmount(m.Dir, unix.MNT_DETACH))
	m = mounttest.New(t, bin, image)
	got, err := os.ReadFile(filepath.Join(m.Dir, "f"))
	must(t, err)
	if len(got) != size || string(got[:6]) != "shared" || string(got[size-6:]) != "at end" || string(got[2<<20:][:7]) != "written" || bytes.Contains(got, []byte("private")) {
		t.Errorf("%d bytes, %q .. %q .. %q", len(got), got[:6], got[2<<20:][:7], got[size-6:])
	}
	m.Unmount(t, bin, image)
}

// Several processes append to a file, each record at the end that the file has then.
func TestAppend(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "64M")
	m := mounttest.New(t, bin, image)
	log := filepath.Join(m.Dir, "log")
	const writers, records = 4, 300
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			script := fmt.Sprintf("i=0; while [ $i -lt %d ]; do echo %d $i; i=$((i+1)); done >>%s", records, w, log)
			if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	all.Wait()
	b, err := os.ReadFile(log)
	must(t, err)
	next := [writers]int{}
	for line := range strings.Lines(string(b)) {
		var w, i int
		if n, err := fmt.Sscanf(line, "%d %d\n", &w, &i); n != 2 || err != nil || w >= writers || i != next[w] {
			t.Fatalf("the line %q where record %v is next", line, next)
		}
		next[w]++
	}
	if next != [writers]int{records, records, records, records} {
		t.Errorf("records: %v", next)
	}
	m.Unmount(t, bin, image)
}

// What is not there says so, as programs expect it.
func TestNotThere(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "64M")
	m := mounttest.New(t, bin, image)
	f := openWith(t, filepath.Join(m.Dir, "f"), "data")
	fd := int(f.Fd())
	for mode, what := range map[uint32]string{
		unix.FALLOC_FL_KEEP_SIZE: "room behind the end", unix.FALLOC_FL_COLLAPSE_RANGE: "a range taken out",
		unix.FALLOC_FL_INSERT_RANGE: "a range put in",
	} {
		if err := unix.Fallocate(fd, mode, 0, 4096); err != unix.EOPNOTSUPP {
			t.Errorf("fallocate, %s: %v", what, err)
		}
	}
	if err := unix.Fsetxattr(fd, "system.tansy", []byte("y"), 0); err != unix.EOPNOTSUPP {
		t.Errorf("of no namespace: %v", err)
	}
	if at, err := unix.Seek(fd, 0, unix.SEEK_HOLE); err != nil || at != 4 {
		t.Errorf("SEEK_HOLE: %d, %v", at, err)
	}
	if err := unix.Renameat2(unix.AT_FDCWD, f.Name(), unix.AT_FDCWD, f.Name()+"2", unix.RENAME_EXCHANGE); err != unix.ENOENT {
		t.Errorf("exchange with nothing: %v", err)
	}
	must(t, os.WriteFile(f.Name()+"2", nil, 0o644))
	for flag, want := range map[uint]error{
		unix.RENAME_EXCHANGE: nil, unix.RENAME_NOREPLACE: unix.EEXIST, 1 << 5: unix.EINVAL,
		unix.RENAME_EXCHANGE | unix.RENAME_NOREPLACE: unix.EINVAL, unix.RENAME_WHITEOUT | unix.RENAME_NOREPLACE: unix.EEXIST,
	} {
		if err := unix.Renameat2(unix.AT_FDCWD, f.Name(), unix.AT_FDCWD, f.Name()+"2", flag); err != want {
			t.Errorf("rename with flag %d: %v, want %v", flag, err, want)
		}
	}
	must(t, unix.Renameat2(unix.AT_FDCWD, f.Name(), unix.AT_FDCWD, f.Name()+"2", unix.RENAME_EXCHANGE)) // back again
	to, err := os.Create(f.Name() + "3")
	must(t, err)
	defer to.Close()
	if n, err := unix.CopyFileRange(fd, new(int64), int(to.Fd()), nil, 4, 0); err != nil || n != 4 {
		t.Errorf("copy_file_range: %d, %v", n, err)
	}
	// locks are the kernel's
	must(t, unix.Flock(fd, unix.LOCK_EX))
	other, err := os.Open(f.Name())
	must(t, err)
	defer other.Close()
	if err := unix.Flock(int(other.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != unix.EWOULDBLOCK {
		t.Errorf("a second lock: %v", err)
	}
	var st unix.Statfs_t
	must(t, unix.Statfs(m.Dir, &st))
	if st.Bsize != 4096 || st.Blocks < 10000 || st.Bfree == 0 || st.Files < 1000 || st.Namelen != 255 {
		t.Errorf("statfs: %+v", st)
	}
}

// What is kept for a moment never lies on the volume itself, where it would wait for who waits for it.
func TestMomentOnItself(t *testing.T) {
	bin := mounttest.Build(t)
	m := mounttest.New(t, bin, mounttest.Volume(t, bin, "64M"))
	zeros := [][]byte{make([]byte, disk.BlockSize)}
	d := disk.NewMoments(disk.NewMem(64<<10), disk.MomentOptions{Memory: 1, Dir: m.Dir})
	must(t, d.WriteAt(3, [][]byte{bytes.Repeat([]byte{1}, disk.BlockSize)}))
	moment := d.Take()
	must(t, d.WriteAt(3, zeros))
	err := moment.ReadAt(3, zeros)
	if !errors.Is(err, disk.ErrMomentLost) || !strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("what is kept is on the mount: %v", err)
	}
	must(t, d.Close())
}
