//go:build linux

package mount

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	tansyfs "tansy/fs"
	"tansy/nfs/nfs3"
	"tansy/test/kit/mounttest"
	"tansy/test/kit/nfsclient"
)

const (
	accessName  = "system.posix_acl_access"
	defaultName = "system.posix_acl_default"
)

// aclBytes is an access list as an attribute: what for, rights, and for whom, one after the other.
func aclBytes(entries ...uint32) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 2)
	for ; len(entries) > 0; entries = entries[3:] {
		b = binary.LittleEndian.AppendUint16(b, uint16(entries[0]))
		b = binary.LittleEndian.AppendUint16(b, uint16(entries[1]))
		b = binary.LittleEndian.AppendUint32(b, entries[2])
	}
	return b
}

const nobody = 1<<32 - 1

// someACL is a list of random rights, of random users and groups; now and then it is none.
func someACL(r *rand.Rand) []byte {
	rights := func() uint32 { return r.Uint32N(8) }
	e := []uint32{0x01, rights(), nobody}
	named := false
	for u := range uint32(4) {
		if r.IntN(3) == 0 {
			e, named = append(e, 0x02, rights(), 1001+u), true
		}
	}
	e = append(e, 0x04, rights(), nobody)
	for g := range uint32(4) {
		if r.IntN(3) == 0 {
			e, named = append(e, 0x08, rights(), 2001+g), true
		}
	}
	if named != (r.IntN(20) == 0) || r.IntN(6) == 0 { // a list with names and without a mask is none
		e = append(e, 0x10, rights(), nobody)
	}
	e = append(e, 0x20, rights(), nobody)
	b := aclBytes(e...)
	switch r.IntN(40) {
	case 0:
		return b[:len(b)-1]
	case 1:
		b[0] = 3
	case 2:
		b[4+8*r.IntN(len(e)/3)] = 0x40
	case 3:
		return b[:4]
	}
	return b
}

// A person is who does something: with a user, a group, and other groups.
type person struct {
	uid, gid int
	gids     []uint32
}

var people = []person{
	{0, 0, nil}, {1001, 2001, nil}, {1002, 2002, []uint32{2001, 2003}}, {1003, 2003, []uint32{2004}},
	{1004, 2004, []uint32{2002}}, {1005, 2005, nil},
}

// as does something in the name of somebody, on the thread of the caller, which is nobody else's.
func as(t *testing.T, p person, do func() error) error {
	t.Helper()
	groups := func(gids []uint32) {
		var first *uint32
		if len(gids) > 0 {
			first = &gids[0]
		}
		if err := setGroups(len(gids), first); err != nil {
			t.Fatal(err)
		}
	}
	groups(p.gids)
	must(t, unix.Setfsgid(p.gid))
	must(t, unix.Setfsuid(p.uid))
	defer func() {
		must(t, unix.Setfsuid(0))
		must(t, unix.Setfsgid(0))
		groups(nil)
	}()
	return do()
}

// A listWorld is a directory in which random steps are done, and what came of them.
type listWorld struct {
	t   *testing.T
	r   *rand.Rand
	dir string
}

func (w *listWorld) p(name string) string { return filepath.Join(w.dir, name) }

// someName is a name of a file or directory that may be there.
func (w *listWorld) someName() string {
	name := []string{"f", "g", "d", "e", "s"}[w.r.IntN(5)]
	if w.r.IntN(2) == 0 {
		name = []string{"d/", "e/", "d/d/"}[w.r.IntN(3)] + name
	}
	return name
}

// step is one that a person does; it returns what it was, and what came of it.
func (w *listWorld) step() (what string, do func() error) {
	r, name := w.r, w.someName()
	at := w.p(name)
	mode := []uint32{0, 0o600, 0o640, 0o664, 0o666, 0o755, 0o770, 0o777, 0o2775, 0o4711, 0o2766, 0o1777}[r.IntN(12)]
	switch n := r.IntN(20); n {
	case 0, 1, 2:
		acl := someACL(r)
		return fmt.Sprintf("access %s %x", name, acl), func() error { return unix.Setxattr(at, accessName, acl, 0) }
	case 3, 4, 5:
		acl := someACL(r)
		return fmt.Sprintf("default %s %x", name, acl), func() error { return unix.Setxattr(at, defaultName, acl, 0) }
	case 6:
		which := []string{accessName, defaultName}[r.IntN(2)]
		return "remove " + name + which, func() error { return unix.Removexattr(at, which) }
	case 7, 8:
		return fmt.Sprintf("chmod %s %o", name, mode), func() error { return unix.Chmod(at, mode) }
	case 9:
		gid := 2001 + r.IntN(5)
		return fmt.Sprintf("chgrp %s %d", name, gid), func() error { return unix.Lchown(at, -1, gid) }
	case 10, 11:
		return fmt.Sprintf("create %s %o", name, mode), func() error {
			fd, err := unix.Open(at, unix.O_CREAT|unix.O_RDWR|unix.O_EXCL, mode)
			if err != nil {
				return err
			}
			_, err = unix.Write(fd, []byte("data"))
			return errors.Join(err, unix.Close(fd))
		}
	case 12, 13:
		return fmt.Sprintf("mkdir %s %o", name, mode), func() error { return unix.Mkdir(at, mode) }
	case 14:
		return fmt.Sprintf("mkfifo %s %o", name, mode), func() error { return unix.Mkfifo(at, mode) }
	case 15:
		return "symlink " + name, func() error { return unix.Symlink("f", at) }
	case 16:
		return fmt.Sprintf("tmpfile %s %o", name, mode), func() error {
			fd, err := unix.Open(filepath.Dir(at), unix.O_TMPFILE|unix.O_RDWR, mode)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			from := fmt.Sprintf("/proc/self/fd/%d", fd)
			return unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, at, unix.AT_SYMLINK_FOLLOW)
		}
	case 17:
		return "remove " + name, func() error {
			if err := unix.Unlink(at); err != unix.EISDIR {
				return err
			}
			return unix.Rmdir(at)
		}
	default:
		how := []int{unix.O_RDONLY, unix.O_WRONLY, unix.O_RDWR}[r.IntN(3)]
		return fmt.Sprintf("open %s %d", name, how), func() error {
			fd, err := unix.Open(at, how|unix.O_NONBLOCK, 0)
			if err != nil {
				return err
			}
			if how != unix.O_RDONLY {
				_, err = unix.Write(fd, []byte("more"))
			}
			return errors.Join(err, unix.Close(fd))
		}
	}
}

// state is what is there: modes, owners, and lists, and who may do what.
func (w *listWorld) state() string {
	var b strings.Builder
	for _, name := range []string{"", "f", "g", "d", "e", "s"} {
		w.stateOf(&b, name)
		for _, d := range []string{"d", "e", "d/d"} {
			w.stateOf(&b, d+"/"+name)
		}
	}
	return b.String()
}

func (w *listWorld) stateOf(b *strings.Builder, name string) {
	var s unix.Stat_t
	if unix.Lstat(w.p(name), &s) != nil {
		return
	}
	fmt.Fprintf(b, "%s: %o %d %d", name, s.Mode, s.Uid, s.Gid)
	value, names := make([]byte, 1000), make([]byte, 1000)
	for _, x := range []string{accessName, defaultName} {
		n, err := unix.Lgetxattr(w.p(name), x, value)
		fmt.Fprintf(b, " %x %v", value[:max(n, 0)], err)
	}
	n, err := unix.Llistxattr(w.p(name), names)
	listed := strings.Split(string(names[:max(n, 0)]), "\x00")
	slices.Sort(listed) // they are in any order
	fmt.Fprintf(b, " %q %v", listed, err)
	for _, who := range people[1:] {
		for want := uint32(1); want < 8; want++ {
			if s.Mode&unix.S_IFMT != unix.S_IFLNK && as(w.t, who, func() error {
				return unix.Faccessat2(unix.AT_FDCWD, w.p(name), want, unix.AT_EACCESS)
			}) == nil {
				fmt.Fprintf(b, " %d:%d", who.uid, want)
			}
		}
	}
	b.WriteByte('\n')
}

// walk does random steps of one seed in a directory, and returns what came of each.
func walk(t *testing.T, dir string, seed uint64, steps int) (said, states []string) {
	t.Helper()
	w := &listWorld{t: t, r: rand.New(rand.NewPCG(seed, 0)), dir: filepath.Join(dir, fmt.Sprint(seed))}
	must(t, os.Mkdir(w.dir, 0o777))
	must(t, os.Chmod(w.dir, 0o777))
	for i, name := range []string{"d", "e", "d/d", "f", "g", "d/f", "d/g", "e/f", "d/d/f"} {
		if i < 3 {
			must(t, os.Mkdir(w.p(name), 0o777))
		} else {
			must(t, os.WriteFile(w.p(name), []byte("data"), 0o666))
		}
		must(t, os.Chown(w.p(name), 1001+i%2, 2001+i%3))
	}
	for range steps {
		who, mask := people[w.r.IntN(len(people))], []int{0, 0o022, 0o027, 0o077}[w.r.IntN(4)]
		what, do := w.step()
		unix.Umask(mask)
		err := as(t, who, do)
		unix.Umask(0)
		var number unix.Errno
		if err != nil && !errors.As(err, &number) {
			number = unix.EIO
		}
		said = append(said, fmt.Sprintf("%d, umask %o: %s: %v", who.uid, mask, what, number))
		states = append(states, w.state())
	}
	return said, states
}

// What random steps of random people with random access lists come to on a mount is what they come to on ext4.
func TestAccessLists(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer unix.Umask(unix.Umask(0))
	other := ext4(t)
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "64M")
	m := mounttest.New(t, bin, image, "--allow-other")
	for _, dir := range []string{m.Dir, other} { // everybody is to reach both
		must(t, os.Chmod(dir, 0o755))
		must(t, os.Chmod(filepath.Dir(dir), 0o755))
	}
	t.Logf("-seed %d", *seed)
	const steps = 120
	for i := range uint64(4) {
		said, states := walk(t, m.Dir, *seed+i, steps)
		wanted, is := walk(t, other, *seed+i, steps)
		for k := range said {
			if said[k] != wanted[k] || states[k] != is[k] {
				t.Fatalf("seed %d, step %d:\n%s; ext4: %s\n%s\next4:\n%s",
					*seed+i, k, said[k], wanted[k], states[k], is[k])
			}
		}
	}
	m.Unmount(t, bin, image)
	mounttest.Run(t, bin, "check", image, "--data")

	// They are there when it is mounted again.
	m = mounttest.New(t, bin, image, "--allow-other")
	for i := range uint64(4) {
		a := listWorld{t: t, dir: filepath.Join(m.Dir, fmt.Sprint(*seed+i))}
		b := listWorld{t: t, dir: filepath.Join(other, fmt.Sprint(*seed+i))}
		if x, y := a.state(), b.state(); x != y {
			t.Errorf("seed %d, mounted again:\n%s\next4:\n%s", *seed+i, x, y)
		}
	}
	m.Unmount(t, bin, image)
}

// A default list bounds the mode of what is made in its directory, in place of the maker's umask, as on ext4.
func TestUmaskBesideDefaultLists(t *testing.T) {
	runtime.LockOSThread() // who somebody is, a thread is
	defer runtime.UnlockOSThread()
	other := ext4(t)
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "64M")
	m := mounttest.New(t, bin, image)
	defer unix.Umask(unix.Umask(0))
	w := &listWorld{t: t, dir: m.Dir}
	got := w.underMasks()
	w.dir = other
	if want := w.underMasks(); got != want {
		t.Errorf("made under default lists and umasks:\n%s\next4:\n%s", got, want)
	}
	m.Unmount(t, bin, image)
}

// underMasks makes files in directories with default lists and without, under umasks, and returns what they are.
func (w *listWorld) underMasks() string {
	lists := [][]byte{
		nil,
		aclBytes(0x01, 7, nobody, 0x04, 7, nobody, 0x20, 7, nobody),
		aclBytes(0x01, 7, nobody, 0x04, 5, nobody, 0x20, 2, nobody),
		aclBytes(0x01, 6, nobody, 0x02, 7, 1001, 0x04, 7, nobody, 0x10, 6, nobody, 0x20, 5, nobody),
	}
	made := map[string]func(at string) error{
		"mkdir":  func(at string) error { return unix.Mkdir(at, 0o777) },
		"mkfifo": func(at string) error { return unix.Mkfifo(at, 0o777) },
		"create": func(at string) error { return os.WriteFile(at, nil, 0o777) },
	}
	var b strings.Builder
	for i, list := range lists {
		dir := fmt.Sprint("under", i)
		must(w.t, os.Mkdir(w.p(dir), 0o777))
		if list != nil {
			must(w.t, unix.Setxattr(w.p(dir), defaultName, list, 0))
		}
		for _, mask := range []int{0, 0o022, 0o027, 0o077} {
			unix.Umask(mask)
			for _, how := range []string{"mkdir", "mkfifo", "create"} {
				name := fmt.Sprintf("%s/%s under %03o", dir, how, mask)
				must(w.t, made[how](w.p(name)))
				w.stateOf(&b, name)
			}
			unix.Umask(0)
		}
	}
	return b.String()
}

// ext4 is a directory with a new file system of ext4, or the test is skipped.
func ext4(t *testing.T) (dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		t.Skip(err)
	}
	image, dir := filepath.Join(t.TempDir(), "image"), t.TempDir()
	must(t, os.WriteFile(image, nil, 0o644))
	must(t, os.Truncate(image, 32<<20))
	if out, err := exec.Command("mkfs.ext4", "-q", image).CombinedOutput(); err != nil {
		t.Skipf("mkfs.ext4: %v\n%s", err, out)
	}
	if out, err := exec.Command("mount", "-o", "loop,acl", image, dir).CombinedOutput(); err != nil {
		t.Skipf("no loop device, or no ext4: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v\n%s", err, out)
		}
	})
	return dir
}

// setGroups sets the other groups of this thread alone, which the library's function does for all.
func setGroups(n int, first *uint32) error {
	if _, _, err := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(n), uintptr(unsafe.Pointer(first)), 0); err != 0 {
		return err
	}
	return nil
}

// Lists that clients of NFS set are those of the mount at once, also of what is open there, and the other way round.
func TestServedLists(t *testing.T) {
	bin := mounttest.Build(t)
	m, image, c, p := served(t, bin)
	h := put(t, c, "f", "data")
	made, err := c.Mkdir(root, c.Root(), []byte("d"), &tansyfs.SetAttr{})
	must(t, err)
	f, err := os.Open(p("f"))
	must(t, err)
	defer f.Close()
	value := make([]byte, 1000)
	shown := func(want []byte, get func() (int, error)) {
		t.Helper()
		n, err := get()
		if want == nil && err != unix.ENODATA || want != nil && (err != nil || string(value[:n]) != string(want)) {
			t.Errorf("%x, %v, want %x", value[:max(n, 0)], err, want)
		}
	}
	r := rand.New(rand.NewPCG(*seed, 7))
	t.Logf("-seed %d", *seed)
	for i := range 40 {
		words := []uint32{0x01, r.Uint32N(8), nobody, 0x02, r.Uint32N(8), 1001 + r.Uint32N(9), 0x04, r.Uint32N(8), nobody,
			0x08, r.Uint32N(8), 2001 + r.Uint32N(9), 0x10, r.Uint32N(8), nobody, 0x20, r.Uint32N(8), nobody}
		attribute := aclBytes(words...)
		wire := func(of uint32) (l nfsclient.ACL) {
			for w := words; len(w) > 0; w = w[3:] {
				id := w[2]
				if id == nobody {
					id = 0 // root's files
				}
				l.Entries = append(l.Entries, nfsclient.ACLEntry{For: w[0] | of, ID: id, Rights: w[1]})
			}
			l.Count = uint32(len(l.Entries))
			return l
		}
		if i%2 == 0 {
			_, err = c.SetACL(root, h, nfs3.ACLAccess, wire(0), nfsclient.ACL{})
			must(t, err)
			_, err = c.SetACL(root, made.Handle, nfs3.ACLDefault, nfsclient.ACL{}, wire(0x1000))
			must(t, err)
		} else {
			must(t, unix.Setxattr(p("f"), accessName, attribute, 0))
			must(t, unix.Setxattr(p("d"), defaultName, attribute, 0))
		}
		shown(attribute, func() (int, error) { return unix.Fgetxattr(int(f.Fd()), accessName, value) })
		shown(attribute, func() (int, error) { return unix.Getxattr(p("f"), accessName, value) })
		shown(attribute, func() (int, error) { return unix.Getxattr(p("d"), defaultName, value) })
		_, _, access, _, err := c.GetACL(root, h, nfs3.ACLAccess)
		if err != nil || !reflect.DeepEqual(access, wire(0)) {
			t.Errorf("%+v, %v, want %+v", access, err, wire(0))
		}
		_, _, _, dflt, err := c.GetACL(root, made.Handle, nfs3.ACLDefault)
		if err != nil || !reflect.DeepEqual(dflt, wire(0x1000)) {
			t.Errorf("%+v, %v, want %+v", dflt, err, wire(0x1000))
		}
	}
	masked := aclBytes(0x01, 6, nobody, 0x02, 7, 1001, 0x04, 5, nobody, 0x10, 4, nobody, 0x20, 0, nobody)
	must(t, unix.Setxattr(p("f"), accessName, masked, 0))
	shown(masked, func() (int, error) { return unix.Fgetxattr(int(f.Fd()), accessName, value) })
	mode := uint32(0o621)
	_, err = c.Setattr(root, h, &tansyfs.SetAttr{Mode: &mode}, nil)
	must(t, err)
	masked = aclBytes(0x01, 6, nobody, 0x02, 7, 1001, 0x04, 5, nobody, 0x10, 2, nobody, 0x20, 1, nobody)
	shown(masked, func() (int, error) { return unix.Fgetxattr(int(f.Fd()), accessName, value) })
	_, err = c.SetACL(root, h, nfs3.ACLAccess, nfsclient.ACL{}, nfsclient.ACL{})
	must(t, err)
	shown(nil, func() (int, error) { return unix.Fgetxattr(int(f.Fd()), accessName, value) })
	must(t, unix.Removexattr(p("d"), defaultName))
	if _, _, _, dflt, err := c.GetACL(root, made.Handle, nfs3.ACLDefault); err != nil || dflt.Count != 0 {
		t.Errorf("%+v, %v, want none", dflt, err)
	}
	must(t, f.Close())
	stop(t, m, bin, image)
}
