//go:build linux

package mount

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	tansyfs "tansy/fs"
	tansymount "tansy/mount"
	"tansy/test/kit/mounttest"
)

// What cannot be is said, and leaves nothing behind.
func TestServedRefused(t *testing.T) {
	bin := mounttest.Build(t)
	image, dir := mounttest.Volume(t, bin, "64M"), t.TempDir()
	other := mounttest.Volume(t, bin, "64M")
	serve := func(what string, flags ...string) {
		t.Helper()
		fails(t, what, bin, append([]string{"serve", "--listen", "127.0.0.1:0", "--volume"}, flags...)...)
	}
	serve("one volume", image+":/a", "--volume", other+":/b", "--mount", dir)
	serve("Ceph", "rbd:pool/image", "--standby", "--mount", dir)
	serve("--mount DIR", image, "--mount-options", "ro")
	serve("no such option", image, "--mount", dir, "--mount-options", "ro,nonsense")
	serve("--cache", image, "--mount", dir, "--mount-options", "cache=16M")
	serve("no such file", image, "--mount", dir+"/nothing")
	serve("no directory", image, "--mount", other)
	serve("hide", image, "--mount", filepath.Dir(image))
	m := mounttest.Serve(t, bin, image, dir, nil)
	fails(t, "in use", bin, "mount", image, t.TempDir())
	m.Kill()
	serve("tansy umount", other, "--mount", dir)
	mounttest.Run(t, bin, "umount", dir)
	m = mounttest.Serve(t, bin, image, dir, nil)
	stop(t, m, bin, image)
}

// Who unmounts the volume does not end the server.
func TestServedUmount(t *testing.T) {
	bin := mounttest.Build(t)
	m, image, c, p := served(t, bin)
	f := openWith(t, p("f"), "data")
	h := find(t, c, "f").Handle
	fails(t, "in use", bin, "umount", m.Dir)
	mounttest.Run(t, bin, "umount", "--lazy", m.Dir)
	at(t, f, "data", 1)
	must(t, f.Close())
	for !strings.Contains(m.Log.String(), "unmounted by somebody else; the volume is served by NFS on") {
		if _, err := c.Getattr(h); err != nil {
			t.Fatal(err)
		}
	}
	write(t, c, h, 0, "DATA")
	if got := get(t, c, h); got != "DATA" {
		t.Errorf("%q", got)
	}
	_, err := c.Remove(root, c.Root(), []byte("f"))
	must(t, err)
	stop(t, m, bin, image)
}

// A server that is to stop takes the mount out of sight. Who has something open there has some seconds, and after that
// gets errors; what was done is there.
func TestServedBusy(t *testing.T) {
	t.Parallel() // most of it is the time that a server gives those who have files open
	bin := mounttest.Build(t)
	for _, leaves := range []bool{true, false} {
		m, image, c, p := served(t, bin)
		f := openWith(t, p("f"), "data")
		_, err := c.Mkdir(root, c.Root(), []byte("d"), &tansyfs.SetAttr{})
		must(t, err)
		must(t, m.Cmd.Process.Signal(syscall.SIGTERM))
		for {
			if entries, err := os.ReadDir(m.Dir); err == nil && len(entries) == 0 {
				break
			}
		}
		_, err = f.WriteAt([]byte("DATA"), 0)
		must(t, err)
		if leaves {
			must(t, f.Close())
		}
		began := time.Now()
		if code := m.Wait(); code != 0 {
			t.Errorf("exit code %d\n%s", code, &m.Log)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("the end took %v", took)
		}
		if _, err := f.WriteAt([]byte("more"), 0); err == nil {
			t.Error("written to a mount whose server has ended")
		}
		mounttest.Run(t, bin, "check", image, "--data")
		m = mounttest.Serve(t, bin, image, m.Dir, nil)
		content(t, p("f"), "DATA")
		if st, err := os.Stat(p("d")); err != nil || !st.IsDir() {
			t.Error(err)
		}
		stop(t, m, bin, image)
	}
}

// Nothing is changed through a read-only mount, and what changes by NFS is seen. A volume that is served read-only has
// no other.
func TestServedReadOnly(t *testing.T) {
	bin := mounttest.Build(t)
	m, image, c, p := served(t, bin, "--mount-options", "ro,nosuid")
	h := put(t, c, "f", "data")
	f, err := os.Open(p("f"))
	must(t, err)
	if err := os.Remove(p("f")); !errors.Is(err, unix.EROFS) {
		t.Error(err)
	}
	write(t, c, h, 0, "DATA")
	at(t, f, "DATA", 1)
	must(t, f.Close())
	stop(t, m, bin, image)
	m = mounttest.Serve(t, bin, image, m.Dir, nil, "--read-only")
	content(t, p("f"), "DATA")
	if err := os.Remove(p("f")); !errors.Is(err, unix.EROFS) {
		t.Error(err)
	}
	stop(t, m, bin, image)
}

// A volume that is deleted ends both.
func TestServedLost(t *testing.T) {
	bin := mounttest.Build(t)
	m, image, _, p := served(t, bin)
	f := openWith(t, p("f"), "data")
	must(t, os.Remove(image))
	if code := m.Wait(); code != 3 {
		t.Errorf("exit code %d\n%s", code, &m.Log)
	}
	if _, err := f.WriteString("more"); err == nil {
		t.Error("written to a volume that is gone")
	}
	if entries, err := os.ReadDir(m.Dir); !tansymount.Gone(err) {
		t.Errorf("the directory of a volume that is gone: %v, %v", entries, err)
	}
}

// Somebody else than root serves and mounts, through fusermount3.
func TestServedByOrdinaryUser(t *testing.T) {
	if _, err := exec.LookPath("fusermount3"); err != nil {
		t.Skip(err)
	}
	nobody, err := user.Lookup("nobody") // fusermount3 wants a user with a name
	if err != nil {
		t.Skip(err)
	}
	uid, _ := strconv.Atoi(nobody.Uid)
	gid, _ := strconv.Atoi(nobody.Gid)
	who := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	bin := mounttest.Build(t)
	folder, err := os.MkdirTemp("", "mount") // where others may go
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(folder) })
	must(t, os.Chmod(folder, 0o755))
	image, dir, tool := filepath.Join(folder, "v.img"), filepath.Join(folder, "dir"), filepath.Join(folder, "tansy")
	mounttest.Run(t, bin, "mkfs", image, "--size", "64M", "--owner", nobody.Uid+":"+nobody.Gid)
	must(t, os.Mkdir(dir, 0o755))
	must(t, errors.Join(os.Chown(dir, uid, gid), os.Chown(image, uid, gid)))
	program, err := os.ReadFile(bin)
	must(t, err)
	must(t, os.WriteFile(tool, program, 0o755))
	m := mounttest.Serve(t, tool, image, dir, who)
	c := client(t, m)
	put(t, c, "f", "data")
	as := exec.Command("sh", "-e", "-c", "cd "+dir+"; [ $(cat f) = data ]; echo x >g")
	as.Dir, as.SysProcAttr = "/", &syscall.SysProcAttr{Credential: who}
	if out, err := as.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if got := get(t, c, find(t, c, "g").Handle); got != "x\n" {
		t.Errorf("%q", got)
	}
	stop(t, m, bin, image)
}

// A maker makes files with numbers, and remembers how many there are, and how many of them no crash takes away.
type maker struct{ made, durable atomic.Int64 }

// keep notes that the first n are durable.
func (k *maker) keep(n int64) {
	for old := k.durable.Load(); old < n && !k.durable.CompareAndSwap(old, n); old = k.durable.Load() {
	}
}

// check fails the test unless there is a beginning of the files, with all in it that are durable.
func (k *maker) check(t *testing.T, path func(string) string, name string) {
	t.Helper()
	n, gap := int64(0), false
	for i := range k.made.Load() + 2 {
		_, err := os.Stat(path(fmt.Sprint(name, i)))
		if gap = gap || err != nil; err == nil {
			n++
			if gap {
				t.Errorf("%s%d is there, and one before it is not", name, i)
			}
		}
	}
	if t.Logf("%s: %d files are there, of %d; %d were durable", name, n, k.made.Load(), k.durable.Load()); n < k.durable.Load() || n > k.made.Load()+1 {
		t.Errorf("%s: %d files, of %d of which %d were durable", name, n, k.made.Load(), k.durable.Load())
	}
}

// The process is killed while both faces are at work. What NFS has answered is there, and so is all that the mount had
// done before that call; with sync, all that the mount has done.
func TestServedKill(t *testing.T) {
	bin := mounttest.Build(t)
	random := rand.New(rand.NewPCG(*seed, 7))
	t.Logf("-seed %d", *seed)
	for round := range *rounds {
		var flags []string
		durable := round%2 == 1
		if durable {
			flags = []string{"--mount-options", "sync"}
		}
		m, image, c, p := served(t, bin, flags...)
		var here, there maker
		enough, reached := 20+random.Int64N(200), make(chan struct{})
		var working sync.WaitGroup
		working.Go(func() {
			for i := int64(0); os.WriteFile(p(fmt.Sprint("here", i)), nil, 0o644) == nil; i++ {
				if here.made.Store(i + 1); durable {
					here.keep(i + 1)
				}
			}
		})
		working.Go(func() {
			for i := int64(0); ; i++ {
				before := here.made.Load()
				if _, err := c.Create(root, c.Root(), []byte(fmt.Sprint("there", i)), tansyfs.Guarded, &tansyfs.SetAttr{}, 0); err != nil {
					return
				}
				there.made.Store(i + 1)
				there.keep(i + 1)
				if here.keep(before); i == enough {
					close(reached)
				}
			}
		})
		<-reached
		m.Kill()
		working.Wait()
		mounttest.Run(t, bin, "umount", m.Dir)
		mounttest.Run(t, bin, "check", image, "--data")
		m = mounttest.Serve(t, bin, image, m.Dir, nil)
		here.check(t, p, "here")
		there.check(t, p, "there")
		stop(t, m, bin, image)
	}
}

// slots are the pieces of a file that two write, in bytes, not at the bounds of pages.
const (
	slot  = 3000
	slots = 8
)

// Two write one file at the same time, one by each face, in pieces of their own and in common ones. Each reads what it
// has written by the other's face. In the end every piece is one that somebody wrote, and both faces have the same.
func TestServedTwoWriters(t *testing.T) {
	bin := mounttest.Build(t)
	m, image, c, p := served(t, bin)
	h := put(t, c, "f", strings.Repeat(".", slot*slots))
	f, err := os.OpenFile(p("f"), os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	t.Logf("-seed %d", *seed)
	read := func(i int) (string, error) {
		b := make([]byte, slot)
		_, err := f.ReadAt(b, int64(i*slot))
		return string(b), err
	}
	nfsRead := func(i int) (string, error) {
		b, _, _, err := c.Read(root, h, uint64(i*slot), slot)
		return string(b), err
	}
	// work writes with one face and reads with the other one. Pieces whose number is odd or even are its own, the last
	// two are everybody's.
	work := func(which int, write func(i int, data string) error, read func(i int) (string, error)) {
		random := rand.New(rand.NewPCG(*seed, uint64(which)))
		for n := range 500 {
			i := random.IntN(slots/2)*2 + which
			if random.IntN(4) == 0 {
				i = slots - 1 - random.IntN(2)
			}
			data := strings.Repeat(fmt.Sprintf("%c%05d", 'A'+which, n), slot/6)
			if err := write(i, data); err != nil {
				t.Error(err)
				return
			}
			got, err := read(i)
			if err != nil || i < slots-2 && got != data || !whole(got) {
				t.Errorf("writer %d, %d, piece %d: %.20q..., %v, want %.20q...", which, n, i, got, err, data)
				return
			}
		}
	}
	var working sync.WaitGroup
	working.Go(func() {
		work(0, func(i int, data string) error {
			_, _, _, err := c.Write(root, h, uint64(i*slot), []byte(data), tansyfs.Unstable)
			return err
		}, read)
	})
	working.Go(func() {
		work(1, func(i int, data string) error {
			_, err := f.WriteAt([]byte(data), int64(i*slot))
			return err
		}, nfsRead)
	})
	working.Wait()
	for i := range slots {
		here, err1 := read(i)
		there, err2 := nfsRead(i)
		if err := errors.Join(err1, err2); err != nil || here != there || !whole(here) {
			t.Errorf("piece %d: %.20q... here, %.20q... there, %v", i, here, there, err)
		}
	}
	must(t, f.Close())
	stop(t, m, bin, image)
}

// whole tells whether a piece is one that was written by one write.
func whole(piece string) bool {
	return len(piece) == slot && (strings.Count(piece, piece[:6]) == slot/6 || strings.Trim(piece, ".") == "")
}
