//go:build linux

package mount

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	tansyfs "tansy/fs"
	"tansy/test/kit/mounttest"
)

// xattrs are the names of a file's extended attributes.
func xattrs(t *testing.T, path string) (names []string) {
	t.Helper()
	b := make([]byte, 1<<16)
	n, err := unix.Llistxattr(path, b)
	must(t, err)
	for name := range strings.SplitSeq(string(b[:n]), "\x00") {
		if name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// xattr fails the test unless an attribute of a file has this value.
func xattr(t *testing.T, path, name, want string) {
	t.Helper()
	b := make([]byte, 1<<16)
	if n, err := unix.Lgetxattr(path, name, b); err != nil || string(b[:n]) != want {
		t.Errorf("%s of %s: %q, %v, want %q", name, path, b[:max(n, 0)], err, want)
	}
}

// Extended attributes, on a mount alone and on one that is served as well, where they outlive unmounting, and NFS shows
// nothing of them but the file's ctime.
func TestXattrs(t *testing.T) {
	bin := mounttest.Build(t)
	for _, face := range []string{"mount", "serve"} {
		t.Run(face, func(t *testing.T) {
			image := mounttest.Volume(t, bin, "64M")
			begin := func() *mounttest.Mount {
				if face == "serve" {
					return mounttest.Serve(t, bin, image, t.TempDir(), nil)
				}
				return mounttest.New(t, bin, image)
			}
			end := func(m *mounttest.Mount) {
				t.Helper()
				if face == "serve" {
					stop(t, m, bin, image)
				} else {
					m.Unmount(t, bin, image)
				}
			}
			m := begin()
			f, d, l := filepath.Join(m.Dir, "f"), filepath.Join(m.Dir, "d"), filepath.Join(m.Dir, "l")
			must(t, os.WriteFile(f, []byte("data"), 0o644))
			must(t, os.Mkdir(d, 0o755))
			must(t, os.Symlink("f", l))
			var before tansyfs.Attr
			if face == "serve" {
				c := client(t, m)
				n, err := c.Lookup(root, c.Root(), []byte("f"))
				must(t, err)
				before = n.Attr
			}
			if got := xattrs(t, f); len(got) != 0 {
				t.Errorf("a new file has %q", got)
			}
			if _, err := unix.Getxattr(f, "user.x", nil); err != unix.ENODATA {
				t.Errorf("none: %v", err)
			}
			for name, value := range map[string]string{
				"user.a": "value", "user.empty": "", "trusted.t": strings.Repeat("t", 1000), "security.s": "\x00\xff",
			} {
				must(t, unix.Setxattr(f, name, []byte(value), 0))
				xattr(t, f, name, value)
			}
			if got := xattrs(t, f); !slices.Equal(got, []string{"security.s", "trusted.t", "user.a", "user.empty"}) {
				t.Errorf("%q", got)
			}
			must(t, unix.Setxattr(d, "user.d", []byte("of a directory"), 0))
			must(t, unix.Lsetxattr(l, "trusted.l", []byte("of a link"), 0))
			if got := xattrs(t, l); !slices.Equal(got, []string{"trusted.l"}) {
				t.Errorf("a link has %q", got)
			}
			// what is refused
			for _, c := range []struct {
				path, name string
				size, how  int
				want       error
			}{
				{f, "user.a", 1, unix.XATTR_CREATE, unix.EEXIST}, {f, "user.b", 1, unix.XATTR_REPLACE, unix.ENODATA},
				{f, "user.b", 4000, 0, unix.ENOSPC},
				{f, "user.b", 1<<16 + 1, 0, unix.E2BIG}, {f, "user." + strings.Repeat("n", 251), 1, 0, unix.ERANGE},
				{f, "nonsense.b", 1, 0, unix.EOPNOTSUPP},
				{f, "system.b", 1, 0, unix.EOPNOTSUPP}, {l, "user.b", 1, 0, unix.EPERM},
			} {
				if err := unix.Lsetxattr(c.path, c.name, make([]byte, c.size), c.how); err != c.want {
					t.Errorf("setxattr %s, %d bytes: %v, want %v", c.name[:min(20, len(c.name))], c.size, err, c.want)
				}
			}
			if err := unix.Removexattr(f, "user.b"); err != unix.ENODATA {
				t.Errorf("removexattr: %v", err)
			}
			// sizes
			if n, err := unix.Getxattr(f, "user.a", nil); n != 5 || err != nil {
				t.Errorf("the size of a value: %d, %v", n, err)
			}
			if _, err := unix.Getxattr(f, "user.a", make([]byte, 4)); err != unix.ERANGE {
				t.Errorf("too little room for a value: %v", err)
			}
			if n, err := unix.Listxattr(f, nil); n != len("security.s trusted.t user.a user.empty ") || err != nil {
				t.Errorf("the size of the list: %d, %v", n, err)
			}
			if _, err := unix.Listxattr(f, make([]byte, 10)); err != unix.ERANGE {
				t.Errorf("too little room for the list: %v", err)
			}
			// replaced, removed
			must(t, unix.Setxattr(f, "user.a", []byte("another"), unix.XATTR_REPLACE))
			must(t, unix.Removexattr(f, "user.empty"))
			if face == "serve" {
				c := client(t, m)
				n, err := c.Lookup(root, c.Root(), []byte("f"))
				must(t, err)
				if n.Attr.Ctime == before.Ctime {
					t.Error("the file has the ctime that it had")
				}
				if n.Attr.Ctime = before.Ctime; n.Attr != before {
					t.Errorf("by NFS the file was %+v and is %+v", before, n.Attr)
				}
			}
			end(m)
			if said := mounttest.Run(t, bin, "check", image); !strings.Contains(said, "3 files with extended attributes") {
				t.Error(said)
			}
			m = begin()
			f, d, l = filepath.Join(m.Dir, "f"), filepath.Join(m.Dir, "d"), filepath.Join(m.Dir, "l")
			xattr(t, f, "user.a", "another")
			xattr(t, f, "security.s", "\x00\xff")
			xattr(t, d, "user.d", "of a directory")
			xattr(t, l, "trusted.l", "of a link")
			if got := xattrs(t, f); !slices.Equal(got, []string{"security.s", "trusted.t", "user.a"}) {
				t.Errorf("%q", got)
			}
			open, err := os.Open(f)
			must(t, err)
			must(t, os.Remove(f))
			if n, err := unix.Fgetxattr(int(open.Fd()), "user.a", make([]byte, 10)); n != 7 || err != nil {
				t.Errorf("an open file without a name: %d, %v", n, err)
			}
			must(t, open.Close())
			must(t, os.Remove(l))
			must(t, os.Remove(d))
			end(m)
			if said := mounttest.Run(t, bin, "check", image); strings.Contains(said, "extended attributes") {
				t.Error(said)
			}
		})
	}
}

// The kernel says who may do what: user attributes are as the file's permissions have it, trusted ones root's.
func TestXattrsOfUsers(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "64M")
	m := mounttest.New(t, bin, image, "--allow-other")
	f := filepath.Join(m.Dir, "f")
	must(t, os.WriteFile(f, []byte("data"), 0o644))
	must(t, unix.Setxattr(f, "user.a", []byte("x"), 0))
	must(t, unix.Setxattr(f, "trusted.t", []byte("x"), 0))
	folder, err := os.MkdirTemp("", "mount") // where others may go
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(folder) })
	must(t, os.Chmod(folder, 0o755))
	program, err := os.ReadFile(os.Args[0])
	must(t, err)
	must(t, os.WriteFile(filepath.Join(folder, "test"), program, 0o755))
	as := func(what string) string {
		t.Helper()
		tool := exec.Command(filepath.Join(folder, "test"), "-test.run=TestXattrTool$", "-test.v")
		tool.Env = append(os.Environ(), "XATTR_TOOL="+what, "XATTR_FILE="+f)
		tool.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		tool.Dir = "/"
		out, err := tool.CombinedOutput()
		if err != nil {
			t.Errorf("as another user: %v\n%s", err, out)
		}
		_, said, _ := strings.Cut(string(out), "says: ")
		said, _, _ = strings.Cut(said, "\n")
		return said
	}
	must(t, os.Chmod(filepath.Dir(m.Dir), 0o755))
	for what, want := range map[string]string{
		"list": "user.a", "get user.a": "x", "get trusted.t": "ENODATA", "set user.a": "EACCES", "set trusted.t": "EPERM",
		"set security.x": "EPERM",
	} {
		if got := as(what); got != want {
			t.Errorf("another user, %s: %s, want %s", what, got, want)
		}
	}
	m.Unmount(t, bin, image)
}

// TestXattrTool is the other user of TestXattrsOfUsers.
func TestXattrTool(t *testing.T) {
	what, name, _ := strings.Cut(os.Getenv("XATTR_TOOL"), " ")
	f := os.Getenv("XATTR_FILE")
	if f == "" {
		t.Skip("it is called by another test")
	}
	b := make([]byte, 100)
	var n int
	var err error
	switch what {
	case "list":
		n, err = unix.Listxattr(f, b)
	case "get":
		n, err = unix.Getxattr(f, name, b)
	case "set":
		err = unix.Setxattr(f, name, []byte("y"), 0)
	}
	said := strings.TrimRight(string(b[:max(n, 0)]), "\x00")
	var e syscall.Errno
	if errors.As(err, &e) {
		said = unix.ErrnoName(e)
	}
	fmt.Printf("says: %s\n", said)
}

// capabilities of a program: cap_net_raw, permitted and effective.
var capabilities = "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// Capabilities, setuid, and setgid end with a write and a cut, here and by NFS, and with them what they gave: also for
// who may write to the file and is not root.
func TestPrivilegesEnd(t *testing.T) {
	bin := mounttest.Build(t)
	for _, face := range []string{"mount", "serve"} {
		t.Run(face, func(t *testing.T) {
			image := mounttest.Volume(t, bin, "64M")
			var m *mounttest.Mount
			if face == "serve" {
				m = mounttest.Serve(t, bin, image, t.TempDir(), nil, "--mount-options", "allow_other,suid")
			} else {
				m = mounttest.New(t, bin, image, "--allow-other")
			}
			must(t, os.Chmod(filepath.Dir(m.Dir), 0o755))
			f := filepath.Join(m.Dir, "f")
			nobody := func(script string) func() {
				return func() {
					t.Helper()
					c := exec.Command("sh", "-e", "-c", script, "sh", f)
					c.Dir, c.SysProcAttr = "/", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
					if out, err := c.CombinedOutput(); err != nil {
						t.Errorf("%s: %v\n%s", script, err, out)
					}
				}
			}
			type change struct {
				what   string
				do     func()
				setuid bool // stays
			}
			changes := []change{
				{"write by root", func() { must(t, os.WriteFile(f, []byte("new data"), 0)) }, true},
				{"append by another", nobody(`echo more >>"$1"`), false},
				{"cut by another", nobody(`: >"$1"`), false},
				{"one open file", func() {
					o, err := os.OpenFile(f, os.O_RDWR, 0)
					must(t, err)
					defer o.Close()
					for range 3 {
						must(t, unix.Setxattr(f, "security.capability", []byte(capabilities), 0))
						_, err = o.WriteString("x")
						must(t, err)
						if _, err := unix.Getxattr(f, "security.capability", nil); err != unix.ENODATA {
							t.Errorf("after a write to an open file: %v", err)
						}
					}
				}, true},
				{"chown", func() { must(t, os.Chown(f, 3, 4)) }, false},
			}
			if face == "serve" {
				c := client(t, m)
				changes = append(changes, change{"write by NFS", func() {
					n, err := c.Lookup(root, c.Root(), []byte("f"))
					must(t, err)
					_, _, _, err = c.Write(root, n.Handle, 0, []byte("x"), tansyfs.FileSync)
					must(t, err)
				}, true})
			}
			for _, c := range changes {
				must(t, os.WriteFile(f, []byte("data"), 0o644))
				must(t, os.Chmod(f, 0o777|os.ModeSetuid|os.ModeSetgid))
				must(t, unix.Setxattr(f, "security.capability", []byte(capabilities), 0))
				must(t, unix.Setxattr(f, "user.stays", nil, 0))
				xattr(t, f, "security.capability", capabilities)
				c.do()
				if got := xattrs(t, f); !slices.Equal(got, []string{"user.stays"}) {
					t.Errorf("%s: %q", c.what, got)
				}
				st, err := os.Stat(f)
				must(t, err)
				if got := st.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0; got != c.setuid {
					t.Errorf("%s: mode %v", c.what, st.Mode())
				}
			}
			if face == "serve" {
				stop(t, m, bin, image)
			} else {
				m.Unmount(t, bin, image)
			}
		})
	}
}

// setgid without the group's x is left by who is in the group, by whichever of its groups, and by nobody else, as on
// ext4, however the file is changed.
func TestSetgidOfMembers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs other users")
	}
	const group = 50
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "64M")
	m := mounttest.New(t, bin, image, "--allow-other")
	must(t, os.Chmod(filepath.Dir(m.Dir), 0o755))
	f, from := filepath.Join(m.Dir, "f"), filepath.Join(m.Dir, "from")
	must(t, os.WriteFile(from, []byte("data"), 0o644))
	for _, change := range []string{
		`echo more >>"$1"`, `: >"$1"`, `fallocate -l 100 "$1"`, `fallocate -p -l 100 "$1"`, `cp "$2" "$1"`,
	} {
		for _, c := range []struct {
			who         string
			as          syscall.Credential
			mode, after uint32
		}{
			{"a stranger", syscall.Credential{Uid: 1000, Gid: 1000}, 0o6666, 0o666},
			{"a stranger of several groups", syscall.Credential{Uid: 1000, Gid: 1000, Groups: []uint32{5, 500}}, 0o2666, 0o666},
			{"a member", syscall.Credential{Uid: 1000, Gid: group}, 0o6666, 0o2666},
			{"a member by another group", syscall.Credential{Uid: 1000, Gid: 1000, Groups: []uint32{5, group}}, 0o6666, 0o2666},
			{"a member, of a program", syscall.Credential{Uid: 1000, Gid: group}, 0o6676, 0o676},
			{"root", syscall.Credential{}, 0o6666, 0o6666},
		} {
			must(t, os.WriteFile(f, []byte("some data"), 0o644))
			must(t, os.Chown(f, 1, group))
			must(t, unix.Chmod(f, c.mode))
			run := exec.Command("sh", "-e", "-c", change, "sh", f, from)
			run.Dir, run.SysProcAttr = "/", &syscall.SysProcAttr{Credential: &c.as}
			if out, err := run.CombinedOutput(); err != nil {
				t.Fatalf("%s by %s: %v\n%s", change, c.who, err, out)
			}
			var st unix.Stat_t
			must(t, unix.Stat(f, &st))
			if got := st.Mode & 0o7777; got != c.after {
				t.Errorf("%s by %s: mode %o becomes %o, want %o", change, c.who, c.mode, got, c.after)
			}
		}
	}
	m.Unmount(t, bin, image)
}

// A program that another user has written to does not run as its owner any more, though nobody has looked at it since.
func TestSetuidProgram(t *testing.T) {
	bin := mounttest.Build(t)
	program, err := exec.LookPath("id")
	if err != nil {
		t.Skip(err)
	}
	for _, face := range []string{"mount", "serve", "device"} {
		image := mounttest.Volume(t, bin, "64M")
		var m *mounttest.Mount
		switch face {
		case "serve":
			m = mounttest.Serve(t, bin, image, t.TempDir(), nil, "--mount-options", "allow_other,suid")
		case "device":
			image = loop(t, image)
			m = mounttest.New(t, bin, image, "-o", "blkdev,allow_other,suid")
		default:
			m = mounttest.New(t, bin, image, "--allow-other")
		}
		must(t, os.Chmod(filepath.Dir(m.Dir), 0o755))
		f := filepath.Join(m.Dir, "f")
		data, err := os.ReadFile(program)
		must(t, err)
		for _, c := range []struct{ script, want string }{
			{`"$1" -u`, "0"}, {`"$1" -u; printf x >>"$1"; "$1" -u`, "0 65534"},
			{`"$1" -u; printf x | dd of="$1" bs=1 seek=$(($(wc -c <"$1") + 10)) conv=notrunc status=none; "$1" -u`, "0 65534"},
			{`"$1" -u; fallocate -l $(($(wc -c <"$1") + 10)) "$1" && "$1" -u`, "0 65534"},
			{`"$1" -u; truncate -s +10 "$1"; "$1" -u`, "0 65534"},
		} {
			must(t, os.WriteFile(f, data, 0o755))
			must(t, os.Chmod(f, 0o777|os.ModeSetuid))
			tool := exec.Command("sh", "-c", c.script, "sh", f)
			tool.Dir, tool.SysProcAttr = "/", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			if out, err := tool.CombinedOutput(); err != nil || strings.Join(strings.Fields(string(out)), " ") != c.want {
				t.Errorf("%s: %s: %q, %v, want %q", face, c.script, out, err, c.want)
			}
		}
		if face == "serve" {
			stop(t, m, bin, image)
		} else {
			m.Unmount(t, bin, image)
		}
	}
}

// Without them, by an option.
func TestNoXattrs(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "64M")
	m := mounttest.New(t, bin, image, "-o", "noxattr")
	f := filepath.Join(m.Dir, "f")
	must(t, os.WriteFile(f, []byte("data"), 0o644))
	if err := unix.Setxattr(f, "user.x", []byte("y"), 0); err != unix.EOPNOTSUPP {
		t.Errorf("setxattr: %v", err)
	}
	if _, err := unix.Getxattr(f, "user.x", make([]byte, 10)); err != unix.EOPNOTSUPP {
		t.Errorf("getxattr: %v", err)
	}
	must(t, os.Chmod(f, 0o755|os.ModeSetuid))
	must(t, os.WriteFile(f, []byte("more"), 0))
	m.Unmount(t, bin, image)
}
