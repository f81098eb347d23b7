//go:build linux

package mount

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	tansyfs "tansy/fs"
	"tansy/test/kit/mounttest"
)

// setFlags gives a file flags, as chattr(1) does: it leaves those that it does not know as they are.
func setFlags(path string, flags uint32) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	was, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil {
		return err
	}
	return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(was&^tansyfs.AllFlags|flags))
}

// A flagStep is something that a program may do in a directory that has the files f and o, and the directories d and p,
// which have a file e each. f and d have a flag.
type flagStep struct {
	name              string
	do                func(p func(string) string) error
	immutable, append error // what comes of it, by the flag
}

// toWrite opens a file and does something to it.
func toWrite(path string, how int, do func(fd int) error) error {
	fd, err := unix.Open(path, unix.O_WRONLY|how, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(do(fd), unix.Close(fd))
}

func nothing(int) error { return nil }

const perm = unix.EPERM

// flagSteps are all that flags forbid to files and directories, and what they do not.
var flagSteps = []flagStep{
	{"read", func(p func(string) string) error { _, err := os.ReadFile(p("f")); return err }, nil, nil},
	{"append", func(p func(string) string) error {
		return toWrite(p("f"), unix.O_APPEND, func(fd int) error {
			_, err := unix.Write(fd, []byte("more"))
			return err
		})
	}, perm, nil},
	{"write", func(p func(string) string) error {
		return toWrite(p("f"), 0, func(fd int) error { _, err := unix.Pwrite(fd, []byte("m"), 1); return err })
	}, perm, perm},
	{"truncate", func(p func(string) string) error { return unix.Truncate(p("f"), 1) }, perm, perm},
	{"truncate to more", func(p func(string) string) error { return unix.Truncate(p("f"), 100) }, perm, perm},
	{"open to truncate", func(p func(string) string) error {
		return toWrite(p("f"), unix.O_TRUNC, nothing)
	}, perm, perm},
	{"allocate", func(p func(string) string) error {
		return toWrite(p("f"), unix.O_APPEND, func(fd int) error { return unix.Fallocate(fd, 0, 0, 9000) })
	}, perm, nil},
	{"punch", func(p func(string) string) error {
		return toWrite(p("f"), unix.O_APPEND, func(fd int) error {
			return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 4096)
		})
	}, perm, perm},
	{"chmod", func(p func(string) string) error { return unix.Chmod(p("f"), 0o600) }, perm, perm},
	{"chown", func(p func(string) string) error { return unix.Chown(p("f"), 5, -1) }, perm, perm},
	{"chgrp", func(p func(string) string) error { return unix.Chown(p("f"), -1, 5) }, perm, perm},
	{"utimes", func(p func(string) string) error {
		return unix.UtimesNano(p("f"), []unix.Timespec{{Sec: 1}, {Sec: 2}})
	}, perm, perm},
	{"touch", func(p func(string) string) error {
		return unix.UtimesNano(p("f"), []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}})
	}, perm, nil},
	{"touch of atime alone", func(p func(string) string) error {
		return unix.UtimesNano(p("f"), []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_OMIT}})
	}, perm, perm},
	{"touch of mtime alone", func(p func(string) string) error {
		return unix.UtimesNano(p("f"), []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Nsec: unix.UTIME_NOW}})
	}, perm, perm},
	{"setxattr", func(p func(string) string) error {
		return unix.Setxattr(p("f"), "user.n", []byte("v"), 0)
	}, perm, perm},
	{"removexattr", func(p func(string) string) error { return unix.Removexattr(p("f"), "user.x") }, perm, perm},
	{"link", func(p func(string) string) error { return unix.Link(p("f"), p("g")) }, perm, perm},
	{"unlink", func(p func(string) string) error { return unix.Unlink(p("f")) }, perm, perm},
	{"rename", func(p func(string) string) error { return unix.Rename(p("f"), p("g")) }, perm, perm},
	{"rename over", func(p func(string) string) error { return unix.Rename(p("o"), p("f")) }, perm, perm},
	{"exchange", func(p func(string) string) error {
		return unix.Renameat2(unix.AT_FDCWD, p("o"), unix.AT_FDCWD, p("f"), unix.RENAME_EXCHANGE)
	}, perm, perm},
	{"whiteout", func(p func(string) string) error {
		return unix.Renameat2(unix.AT_FDCWD, p("f"), unix.AT_FDCWD, p("g"), unix.RENAME_WHITEOUT)
	}, perm, perm},
	{"create in a directory", func(p func(string) string) error {
		return toWrite(p("d/n"), unix.O_CREAT, nothing)
	}, perm, nil},
	{"open what is there", func(p func(string) string) error {
		return toWrite(p("d/e"), unix.O_CREAT, nothing)
	}, nil, nil},
	{"mkdir in a directory", func(p func(string) string) error { return unix.Mkdir(p("d/n"), 0o755) }, perm, nil},
	{"mkdir of what is there", func(p func(string) string) error {
		return unix.Mkdir(p("d/e"), 0o755)
	}, unix.EEXIST, unix.EEXIST},
	{"symlink in a directory", func(p func(string) string) error { return unix.Symlink("x", p("d/n")) }, perm, nil},
	{"mkfifo in a directory", func(p func(string) string) error { return unix.Mkfifo(p("d/n"), 0o644) }, perm, nil},
	{"link into a directory", func(p func(string) string) error { return unix.Link(p("o"), p("d/n")) }, perm, nil},
	{"rename into a directory", func(p func(string) string) error {
		return unix.Rename(p("o"), p("d/n"))
	}, perm, nil},
	{"rename over an entry", func(p func(string) string) error {
		return unix.Rename(p("o"), p("d/e"))
	}, perm, perm},
	{"rename out of a directory", func(p func(string) string) error {
		return unix.Rename(p("d/e"), p("n"))
	}, perm, perm},
	{"rename in a directory", func(p func(string) string) error {
		return unix.Rename(p("d/e"), p("d/n"))
	}, perm, perm},
	{"unlink in a directory", func(p func(string) string) error { return unix.Unlink(p("d/e")) }, perm, perm},
	{"no name in a directory", func(p func(string) string) error {
		return toWrite(p("d"), unix.O_TMPFILE, nothing)
	}, perm, nil},
	{"write in a directory", func(p func(string) string) error {
		return os.WriteFile(p("d/e"), []byte("new"), 0o644)
	}, nil, nil},
	{"chmod of a directory", func(p func(string) string) error { return unix.Chmod(p("d"), 0o700) }, perm, perm},
	{"rmdir", func(p func(string) string) error { return unix.Rmdir(p("d")) }, perm, perm},
	{"rename of a directory", func(p func(string) string) error {
		return unix.Rename(p("d"), p("p/d"))
	}, perm, perm},
	{"a read of a directory", func(p func(string) string) error {
		_, err := os.ReadDir(p("d"))
		return err
	}, nil, nil},
}

// tried fails the test unless all steps come to what they are to come to, in the directory of some file system.
func tried(t *testing.T, dir string) {
	t.Helper()
	for _, s := range flagSteps {
		for _, c := range []struct {
			name string
			flag uint32
			want error
		}{{"immutable", tansyfs.FlagImmutable, s.immutable}, {"append-only", tansyfs.FlagAppendOnly, s.append}} {
			base, err := os.MkdirTemp(dir, "flags")
			must(t, err)
			p := func(name string) string { return filepath.Join(base, name) }
			for _, d := range []string{"d", "p"} {
				must(t, os.Mkdir(p(d), 0o755))
				must(t, os.WriteFile(p(d+"/e"), []byte("entry"), 0o644))
			}
			must(t, os.WriteFile(p("f"), []byte("data"), 0o644))
			must(t, os.WriteFile(p("o"), []byte("other"), 0o644))
			must(t, unix.Setxattr(p("f"), "user.x", []byte("v"), 0))
			must(t, setFlags(p("f"), c.flag))
			must(t, setFlags(p("d"), c.flag))
			if err := s.do(p); !errors.Is(err, c.want) {
				t.Errorf("%s, %s: %v, want %v", s.name, c.name, err, c.want)
			}
			for _, name := range []string{"f", "d"} {
				if err := setFlags(p(name), 0); err != nil {
					t.Errorf("%s, %s: %v", s.name, c.name, err)
				}
			}
			must(t, os.RemoveAll(base))
		}
	}
}

// What flags forbid on a mount, root as well, and what they do not.
func TestFlags(t *testing.T) {
	bin := mounttest.Build(t)
	t.Run("mount", func(t *testing.T) {
		image := mounttest.Volume(t, bin, "64M")
		m := mounttest.New(t, bin, image)
		tried(t, m.Dir)
		m.Unmount(t, bin, image)
	})
	t.Run("serve", func(t *testing.T) {
		m, image, _, _ := served(t, bin)
		tried(t, m.Dir)
		stop(t, m, bin, image)
	})
}

// The same list holds of ext4, which is the measure.
func TestFlagsOfExt4(t *testing.T) { tried(t, ext4(t)) }

// listed is what lsattr(1) shows of a file, without the flags that are not set.
func listed(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.Command("lsattr", "-d", path).CombinedOutput()
	if err != nil {
		t.Fatalf("lsattr: %v\n%s", err, out)
	}
	return strings.ReplaceAll(strings.Fields(string(out))[0], "-", "")
}

// chattr(1) and lsattr(1), whose flags outlive unmounting; who may set which; and what NFS says of them.
func TestChattr(t *testing.T) {
	if _, err := exec.LookPath("chattr"); err != nil {
		t.Skip(err)
	}
	bin := mounttest.Build(t)
	m, image, c, p := served(t, bin)
	chattr := func(want int, args ...string) {
		t.Helper()
		out, err := exec.Command("chattr", args...).CombinedOutput()
		if (err != nil) != (want != 0) {
			t.Errorf("chattr %q: %v, want exit code %d\n%s", args, err, want, out)
		}
	}
	must(t, os.WriteFile(p("f"), []byte("data"), 0o666))
	must(t, os.Mkdir(p("d"), 0o777))
	if got := listed(t, p("f")); got != "" {
		t.Errorf("a new file has %q", got)
	}
	for _, s := range []struct{ how, want string }{
		{"+iad", "iad"}, {"-id", "a"}, {"+A", "aA"}, {"=A", "A"}, {"=", ""}, {"+i", "i"},
	} {
		chattr(0, s.how, p("f"))
		chattr(0, s.how, p("d"))
		for _, name := range []string{"f", "d"} {
			if got := listed(t, p(name)); got != s.want {
				t.Errorf("%s after %s: %q, want %q", name, s.how, got, s.want)
			}
		}
	}
	chattr(1, "+c", p("d")) // compression is not here
	n, err := c.Lookup(root, c.Root(), []byte("f"))
	must(t, err)
	d, err := c.Lookup(root, c.Root(), []byte("d"))
	must(t, err)
	mode, g := uint32(0o600), []byte("g")
	put := func(off uint64) error {
		_, _, _, err := c.Write(root, n.Handle, off, []byte("x"), tansyfs.FileSync)
		return err
	}
	for name, do := range map[string]func() error{
		"WRITE":   func() error { return put(4) },
		"SETATTR": func() error { _, err := c.Setattr(root, n.Handle, &tansyfs.SetAttr{Mode: &mode}, nil); return err },
		"REMOVE":  func() error { _, err := c.Remove(root, c.Root(), []byte("f")); return err },
		"RENAME":  func() error { _, _, err := c.Rename(root, c.Root(), []byte("f"), c.Root(), g); return err },
		"MKDIR":   func() error { _, err := c.Mkdir(root, d.Handle, []byte("n"), &tansyfs.SetAttr{}); return err },
		"RMDIR":   func() error { _, err := c.Rmdir(root, c.Root(), []byte("d")); return err },
	} {
		if err := do(); err != tansyfs.ErrPerm {
			t.Errorf("%s by NFS: %v", name, err)
		}
	}
	chattr(0, "=a", p("f"))
	if err := put(3); err != tansyfs.ErrPerm {
		t.Errorf("WRITE before the end: %v", err)
	}
	if err := put(4); err != nil {
		t.Errorf("WRITE at the end: %v", err)
	}
	content(t, p("f"), "datax")
	chattr(0, "+i", p("d"))
	stop(t, m, bin, image)
	m = mounttest.New(t, bin, image)
	for name, want := range map[string]string{"f": "a", "d": "i"} {
		path := filepath.Join(m.Dir, name)
		if got := listed(t, path); got != want {
			t.Errorf("%s, mounted again: %q, want %q", name, got, want)
		}
		if err := os.Remove(path); !errors.Is(err, perm) {
			t.Errorf("%s, mounted again, is removed: %v", name, err)
		}
	}
	m.Unmount(t, bin, image)
}
