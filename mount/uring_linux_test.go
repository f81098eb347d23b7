package mount

import (
	"bytes"
	"encoding/binary"
	"errors"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"tansy/disk"
	"tansy/fs"
	"tansy/test/kit/mounttest"
)

// Lists of processors are read as the kernel writes them.
func TestProcessors(t *testing.T) {
	for list, want := range map[string][]int{"0": {0}, "0-3": {0, 1, 2, 3}, "0-1,4,6-7": {0, 1, 4, 6, 7}} {
		all, err := numbers(list)
		if got := slices.Sorted(maps.Keys(all)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", list, got, err)
		}
	}
	for _, list := range []string{"", "a", "0-", "1,,2"} {
		if all, err := numbers(list); err == nil {
			t.Errorf("%q: %v", list, all)
		}
	}
	queues, online, err := processors()
	if err != nil || queues < len(online) || !online[0] {
		t.Errorf("this machine: %d, %v, %v", queues, online, err)
	}
}

// Every queue has a worker, those of processors that are online several, and the memory of all is bounded.
func TestWorkersOf(t *testing.T) {
	for n := 1; n <= 1024; n++ {
		each := workersOf(true, n)
		if each < 4 || n <= 16 && each*n*maxIO > ringMemory || workersOf(false, n) != 1 {
			t.Errorf("%d processors: %d workers each, %d if offline", n, each, workersOf(false, n))
		}
	}
}

// Why a mount does without rings is said, with what to do.
func TestWhyNoRings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "enable_uring")
	says := func(what string, o *Options) {
		t.Helper()
		if err := whyNoRings(o, path); !errors.Is(err, errNoRing) || !strings.Contains(err.Error(), what) {
			t.Errorf("no %q in %v", what, err)
		}
	}
	says("Linux 6.14", &Options{})
	for _, off := range []string{"N\n", ""} {
		if err := os.WriteFile(path, []byte(off), 0o600); err != nil {
			t.Fatal(err)
		}
		says("echo Y >", &Options{})
	}
	if err := os.WriteFile(path, []byte("Y\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := whyNoRings(&Options{}, path); err != nil {
		t.Error(err)
	}
	says("locks", &Options{Locks: true})
}

// echo is a file system whose ioctl answers what it was given, backwards.
type echo struct{ fuse.RawFileSystem }

func (echo) Ioctl(_ <-chan struct{}, _ *fuse.IoctlIn, data []byte, _ *fuse.IoctlOut, out []byte) fuse.Status {
	for i := range out {
		out[i] = data[len(data)-1-i]
	}
	return fuse.OK
}

func (echo) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	if in.Offset != 7 || !bytes.Equal(data, bytes.Repeat([]byte{'w'}, maxIO)) {
		return 0, fuse.EINVAL
	}
	return uint32(len(data)), fuse.OK
}

// asks puts a request into a worker's memory, as the kernel does.
func (w *worker) asks(op uint32, argument, payload []byte) {
	h := w.headers
	clear(h)
	binary.NativeEndian.PutUint32(h[0:], uint32(headerSize+len(argument)+len(payload)))
	binary.NativeEndian.PutUint32(h[4:], op)
	binary.NativeEndian.PutUint64(h[8:], 42)
	copy(h[argumentAt:], argument)
	binary.NativeEndian.PutUint64(h[commitAt:], 43)
	binary.NativeEndian.PutUint32(h[sizeAt:], uint32(len(payload)))
	copy(w.payload, payload)
}

// replies is what is in a worker's memory then.
func (w *worker) replies(t *testing.T) (errno unix.Errno, payload []byte) {
	t.Helper()
	commit := w.answer()
	h := w.headers
	n := native(h[sizeAt:])
	if commit != 43 || binary.NativeEndian.Uint64(h[8:]) != 42 || native(h) != replySize+n {
		t.Errorf("a reply to %d of %d bytes, %d of payload, handed over by %d",
			binary.NativeEndian.Uint64(h[8:]), native(h), n, commit)
	}
	return unix.Errno(-int32(native(h[4:]))), w.payload[:n]
}

// Requests are answered in the worker's memory, in which the reply may lie where the request does; what is none is
// answered with an error.
func TestWorkerAnswers(t *testing.T) {
	e := echo{fuse.NewDefaultRawFileSystem()}
	how := &fuse.MountOptions{Logger: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}
	f := &fileSystem{log: slog.New(slog.DiscardHandler)}
	w := &worker{
		rings:   &rings{connection: connection{files: f, protocol: fuse.NewProtocolServer(e, how)}},
		headers: make([]byte, headersSize), payload: make([]byte, maxIO),
	}
	const opGetattr, opWrite = 3, 16
	ioctl := make([]byte, 32) // struct fuse_ioctl_in
	asked := []byte("what is longer than the first part of the reply, which lies where this does")
	backwards := slices.Clone(asked)
	slices.Reverse(backwards)
	binary.NativeEndian.PutUint32(ioctl[24:], uint32(len(asked)))
	binary.NativeEndian.PutUint32(ioctl[28:], uint32(len(asked)))
	w.asks(opIoctl, ioctl, asked)
	if errno, payload := w.replies(t); errno != 0 || !bytes.HasSuffix(payload, backwards) {
		t.Errorf("ioctl: %v, %q", errno, payload)
	}
	write := make([]byte, 40) // struct fuse_write_in
	binary.NativeEndian.PutUint64(write[8:], 7)
	binary.NativeEndian.PutUint32(write[16:], maxIO)
	w.asks(opWrite, write, bytes.Repeat([]byte{'w'}, maxIO))
	if errno, payload := w.replies(t); errno != 0 || len(payload) != 8 || native(payload) != maxIO {
		t.Errorf("write: %v, %d", errno, payload)
	}
	w.asks(opGetattr, make([]byte, 16), nil)
	if errno, payload := w.replies(t); errno != unix.ENOSYS || len(payload) > 0 {
		t.Errorf("getattr: %v, %d", errno, payload)
	}
	for what, wrong := range map[string]func(){
		"a payload beyond the memory": func() {
			binary.NativeEndian.PutUint32(w.headers, headerSize+16+maxIO+1)
			binary.NativeEndian.PutUint32(w.headers[sizeAt:], maxIO+1)
		},
		"more payload than request": func() { binary.NativeEndian.PutUint32(w.headers, headerSize) },
		"too long an argument": func() {
			binary.NativeEndian.PutUint32(w.headers, headerSize+argumentMax+1+4)
		},
	} {
		w.asks(opGetattr, make([]byte, 16), []byte("data"))
		wrong()
		if errno, payload := w.replies(t); errno != unix.EIO || len(payload) > 0 {
			t.Errorf("%s: %v, %d", what, errno, payload)
		}
	}
}

// refusingVariable has, in the environment of this program when it runs once more, a volume, a directory, and how many
// rings are offered that the kernel refuses.
const refusingVariable = "TANSY_TEST_REFUSING"

// TestHelperRefusing mounts a volume with such rings, until it is unmounted.
func TestHelperRefusing(t *testing.T) {
	image, rest, ok := strings.Cut(os.Getenv(refusingVariable), "\n")
	if !ok {
		t.Skip("for other tests")
	}
	dir, which, _ := strings.Cut(rest, "\n")
	d, err := disk.OpenFile(image, disk.FileOptions{})
	if err == nil {
		err = refusing(d, dir, which == "all")
	}
	if err != nil {
		t.Log(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// refusing mounts the volume of a device on a directory, with memory too small for the kernel in one ring, or in all.
func refusing(d disk.Disk, dir string, all bool) error {
	v, err := fs.Open(d, fs.Options{Deferred: true})
	if err != nil {
		return err
	}
	o := Options{Source: "refusing", Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	f, err := newFileSystem(v, o)
	if err != nil {
		return err
	}
	how := ringOptions(&o)
	r, err := newRings(connection{files: f, protocol: fuse.NewProtocolServer(f, how), gone: new(gone)})
	if err != nil {
		return err
	}
	for _, w := range r.workers {
		if all || w == r.workers[0] {
			w.payload = w.payload[:maxIO/2]
		}
	}
	serve, err := r.mount(dir, how, &o)
	if errors.Is(err, errNoRing) { // nothing is mounted
		os.Stderr.WriteString("why: " + err.Error() + "\n")
		serve, err = f.mount(dir, &o)
	}
	if err != nil {
		return err
	}
	os.Stdout.WriteString("it is mounted on " + dir + "\n")
	serve()
	return v.Close()
}

// If the kernel refuses all rings when it has been told of them, the volume can be mounted anew without; if it refuses
// one of several, the others do.
func TestRefusedRings(t *testing.T) {
	mounttest.Rings(t)
	for _, which := range []string{"all", "one"} {
		image := filepath.Join(t.TempDir(), "v.img")
		file, err := disk.CreateFile(image, 64<<20)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(fs.Mkfs(file, fs.MkfsOptions{Inodes: 256}), file.Close()); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		helper := exec.Command(os.Args[0], "-test.run=^TestHelperRefusing$")
		helper.Env = append(os.Environ(), refusingVariable+"="+image+"\n"+dir+"\n"+which)
		m := mounttest.By(t, helper, dir)
		name := filepath.Join(dir, "f")
		data := bytes.Repeat([]byte("data"), 1<<20)
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Error(err)
		}
		if b, err := os.ReadFile(name); err != nil || !bytes.Equal(b, data) {
			t.Errorf("%d bytes, %v", len(b), err)
		}
		if err := Unmount(dir, false); err != nil {
			t.Error(err)
		}
		code := m.Wait()
		if read := strings.Contains(m.Log.String(), "why: "+errNoRing.Error()); code != 0 || read != (which == "all") {
			t.Errorf("%s refused: exit code %d\n%s", which, code, &m.Log)
		}
	}
}

// Who serves the volume besides may have something for the kernel to forget after the mount has ended: nothing is
// written then to what has got the number of its descriptor.
func TestForgetBehindTheEnd(t *testing.T) {
	name := filepath.Join(t.TempDir(), "other")
	fd, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := connection{fd: fd, gone: new(gone)}
	c.close()
	other, err := unix.Open(name, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(other)
	if other != fd {
		if err := unix.Dup3(other, fd, unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
	}
	if status := c.forget(1, 0, 0); status != fuse.OK {
		t.Error(status)
	}
	if b, err := os.ReadFile(name); err != nil || len(b) > 0 {
		t.Errorf("%d bytes were written to another file, %v", len(b), err)
	}
}
