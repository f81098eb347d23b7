//go:build linux

package mount

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"tansy/disk"
	"tansy/fs"
	"tansy/offline/check"
)

// kernel asks a file system as the kernel does, about files in the root directory.
type kernel struct {
	t *testing.T
	*fileSystem
}

func newKernel(t *testing.T, d disk.Disk, deferred, tracked bool) (k kernel, v *fs.FS) {
	t.Helper()
	v, err := fs.Open(d, fs.Options{Deferred: deferred})
	if err != nil {
		t.Fatal(err)
	}
	f, err := newFileSystem(v, Options{Sync: !deferred, Shared: tracked, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	f.nodes = newNodes(f.root, tracked) // whatever kernel this machine has
	return kernel{t, f}, v
}

func (k kernel) ok(what string, st fuse.Status) {
	k.t.Helper()
	if st != fuse.OK {
		k.t.Fatalf("%s: %v", what, st)
	}
}

var atRoot = fuse.InHeader{NodeId: fuse.FUSE_ROOT_ID}

func (k kernel) create(name string) (ino uint64) {
	var out fuse.CreateOut
	st := k.Create(nil, &fuse.CreateIn{InHeader: atRoot, Mode: 0o644}, name, &out)
	if st == fuse.ENOSYS && !k.nodes.tracked {
		st = k.Mknod(nil, &fuse.MknodIn{InHeader: atRoot, Mode: unix.S_IFREG | 0o644}, name, &out.EntryOut)
	}
	k.ok("create "+name, st)
	return out.NodeId
}

func (k kernel) lookup(name string) (ino uint64) {
	var out fuse.EntryOut
	k.ok("lookup "+name, k.Lookup(nil, &atRoot, name, &out))
	return out.NodeId
}

func (k kernel) open(ino uint64) {
	k.ok("open", k.Open(nil, &fuse.OpenIn{InHeader: fuse.InHeader{NodeId: ino}}, &fuse.OpenOut{}))
}

// release closes what has no name. The kernel then forgets it.
func (k kernel) release(ino uint64) {
	if !k.nodes.tracked {
		times := uint64(0)
		k.nodes.with(ino, func(x *node) { times = x.lookups })
		k.Forget(ino, times)
		return
	}
	k.Release(nil, &fuse.ReleaseIn{InHeader: fuse.InHeader{NodeId: ino}})
}

func (k kernel) write(ino uint64, data string) {
	n, st := k.Write(nil, &fuse.WriteIn{InHeader: fuse.InHeader{NodeId: ino}}, []byte(data))
	if k.ok("write", st); int(n) != len(data) {
		k.t.Fatalf("wrote %d bytes", n)
	}
}

func (k kernel) read(ino uint64) string {
	r, st := k.Read(nil, &fuse.ReadIn{InHeader: fuse.InHeader{NodeId: ino}, Size: 1000}, nil)
	k.ok("read", st)
	b, _ := r.Bytes(nil)
	return string(b)
}

func (k kernel) rename(name, to string) {
	k.ok("rename", k.Rename(nil, &fuse.RenameIn{InHeader: atRoot, Newdir: fuse.FUSE_ROOT_ID}, name, to))
}

func (k kernel) whiteout(name, to string) {
	k.ok("whiteout",
		k.Rename(nil, &fuse.RenameIn{InHeader: atRoot, Newdir: fuse.FUSE_ROOT_ID, Flags: renameWhiteout}, name, to))
}

func (k kernel) unlink(name string) { k.ok("unlink", k.Unlink(nil, &atRoot, name)) }

func (k kernel) link(ino uint64, name string) {
	k.ok("link", k.Link(nil, &fuse.LinkIn{InHeader: atRoot, Oldnodeid: ino}, name, &fuse.EntryOut{}))
}

func (k kernel) fsync() { k.ok("fsync", k.Fsync(nil, &fuse.FsyncIn{})) }

// picture is what programs see: names, contents, and numbers of links.
func (k kernel) picture() string {
	k.t.Helper()
	list := fuse.NewDirEntryList(make([]byte, 1<<16), 0)
	k.ok("readdir", k.ReadDir(nil, &fuse.ReadIn{InHeader: atRoot, Size: 1 << 16}, list))
	entries, err := fuse.ParseDirEntries(list.Bytes())
	if err != nil {
		k.t.Fatal(err)
	}
	var lines []string
	for _, e := range entries {
		if strings.Trim(e.Name, ".") == "" {
			continue
		}
		ino := k.lookup(e.Name)
		var a fuse.AttrOut
		k.ok("getattr", k.GetAttr(nil, &fuse.GetAttrIn{InHeader: fuse.InHeader{NodeId: ino}}, &a))
		what := fmt.Sprintf("mode %o", a.Mode)
		if a.Mode&syscall.S_IFMT == syscall.S_IFREG {
			what = strconv.Quote(k.read(ino))
		}
		lines = append(lines, fmt.Sprintf("%s: %s, %d links", e.Name, what, a.Nlink))
		k.Forget(ino, 1)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// steps take names from files that are open, in each way, one call at a time.
func steps() []func(k kernel) {
	var f, g, h uint64
	return []func(k kernel){
		func(k kernel) { f = k.create("f") },
		func(k kernel) { k.write(f, "first") },
		func(k kernel) { g = k.create("g") },
		func(k kernel) { k.write(g, "second") },
		func(k kernel) { k.rename("g", "f") }, // f is open
		func(k kernel) { k.write(f, "still there") },
		func(k kernel) { k.fsync() },
		func(k kernel) { k.link(g, "two") },
		func(k kernel) { k.unlink("f") }, // not the last name
		func(k kernel) { k.unlink("two") },
		func(k kernel) { k.release(f) },
		func(k kernel) { h = k.create("h") },
		func(k kernel) { k.write(h, "third") },
		func(k kernel) { k.rename("h", "i") },
		func(k kernel) { k.fsync() },
		func(k kernel) { k.release(g) },
		func(k kernel) { k.create("j") },
		func(k kernel) { k.rename("j", "i") },
		func(k kernel) { k.fsync() },
		func(k kernel) { k.release(h) },
		func(k kernel) { k.fsync() },
		func(k kernel) { f = k.create("k") },
		func(k kernel) { k.whiteout("i", "k") }, // k is open
		func(k kernel) { k.whiteout("k", "l") },
		func(k kernel) { k.fsync() },
		func(k kernel) { k.release(f) },
	}
}

// The machine crashes after every device operation while open files lose their names. Programs then see what they saw
// after one of the calls, none before the last that was durable, and nothing is left of what had lost its names.
func TestCrash(t *testing.T) {
	for _, c := range []struct{ deferred, tracked bool }{{false, true}, {true, true}, {true, false}} {
		deferred, tracked := c.deferred, c.tracked
		sim := disk.NewSim(6000 * disk.BlockSize)
		if err := fs.Mkfs(sim, fs.MkfsOptions{Inodes: 256, Zeroed: true}); err != nil {
			t.Fatal(err)
		}
		k, v := newKernel(t, sim, deferred, tracked)
		if err := v.Sync(); err != nil {
			t.Fatal(err)
		}
		sim.Record()
		pictures, begun, ended := []string{k.picture()}, []uint64{}, []uint64{}
		durable := []bool{}
		first := sim.Ops()
		syncs := 0
		for _, step := range steps() {
			begun = append(begun, sim.Ops())
			before := v.Stats().Transactions.Commits
			step(k)
			ended = append(ended, sim.Ops())
			durable = append(durable, !deferred || v.Stats().Transactions.Commits == before) // only fsync commits nothing
			if durable[len(durable)-1] {
				syncs++
			}
			pictures = append(pictures, k.picture())
		}
		if syncs < 4 {
			t.Fatalf("%d calls are durable", syncs)
		}
		end := sim.Ops()
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(1, 2))
		for n := first; n <= end; n++ {
			low, high := 0, 0
			for i := range ended {
				if ended[i] <= n && durable[i] {
					low = i + 1
				}
				if begun[i] <= n {
					high = i + 1
				}
			}
			for image := range sim.At(n).Crashes(4, random.Uint64(), true) {
				k, v := newKernel(t, image, false, false)
				if got := k.picture(); !slices.Contains(pictures[low:high+1], got) {
					t.Errorf("deferred %v, opens tracked %v, crash after %d operations: programs see\n%s\nwhich is not what they saw after call %d, nor up to call %d:\n%s",
						deferred, tracked, n, got, low, high, strings.Join(pictures[low:high+1], "\n\n"))
				}
				if err := v.Close(); err != nil {
					t.Fatal(err)
				}
				r, err := check.Volume(image, check.Options{Data: true})
				if err != nil || !r.Clean() {
					t.Fatalf("check: %v, %v", err, r.Problems)
				}
				if r.Kept != 0 {
					t.Errorf("%d files are kept that nobody has open", r.Kept)
				}
			}
		}
	}
}

// What an earlier mount left in its folder goes, and then the folder does, unless something else is there.
func TestOldFolder(t *testing.T) {
	d := disk.NewMem(6000 * disk.BlockSize)
	if err := fs.Mkfs(d, fs.MkfsOptions{Inodes: 256, Zeroed: true}); err != nil {
		t.Fatal(err)
	}
	v, err := fs.Open(d, fs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for _, c := range []struct {
		name  string
		mode  uint32
		files []string
		left  int // entries afterwards, "." and ".." included; 0: no folder
	}{
		{"a folder of somebody else's", 0o755, []string{"0123456789abcdef"}, 3},
		{"what is no mount's", 0o700, []string{"mine", "0123456789abcdef", "0123456789abcdeF"}, 4},
		{"what a mount left", 0o700, []string{"0123456789abcdef", "0000000000000001"}, 0},
		{"an empty folder", 0o700, nil, 0},
	} {
		folder, err := v.Mkdir(superuser, v.Root(), []byte(oldFolder), &fs.SetAttr{Mode: &c.mode})
		if err != nil {
			t.Fatal(c.name, err)
		}
		for _, name := range c.files {
			if _, err := v.Create(superuser, folder.Handle, []byte(name), fs.Guarded, nil, 0); err != nil {
				t.Fatal(c.name, err)
			}
		}
		before, err := v.Getattr(v.Root())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newFileSystem(v, Options{ReadOnly: true, Log: slog.New(slog.DiscardHandler)}); err != nil {
			t.Fatal(c.name, err)
		}
		if a, err := v.Getattr(v.Root()); err != nil || a.Ctime != before.Ctime {
			t.Errorf("%s: a read-only mount changed the root, %v", c.name, err)
		}
		if _, err := newFileSystem(v, Options{Log: slog.New(slog.DiscardHandler)}); err != nil {
			t.Fatal(c.name, err)
		}
		if a, err := v.Getattr(v.Root()); err != nil || a.Mtime != before.Mtime {
			t.Errorf("%s: the root's mtime became %v, %v", c.name, a.Mtime, err)
		}
		l, err := v.Readdir(superuser, folder.Handle, 0, 0, false, fs.Limit{Bytes: 10000, Size: func(int) int { return 1 }})
		if c.left == 0 {
			if err != fs.ErrStale {
				t.Errorf("%s: the folder is still there: %v", c.name, err)
			}
			continue
		}
		if err != nil || len(l.Entries) != c.left {
			t.Errorf("%s: %d entries, %v", c.name, len(l.Entries), err)
		}
		if _, _, err := v.Rename(superuser, v.Root(), []byte(oldFolder), v.Root(), []byte(c.name)); err != nil {
			t.Fatal(err)
		}
	}
}
