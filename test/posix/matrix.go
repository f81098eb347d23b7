//go:build linux

package main

import (
	"fmt"
	"strings"
)

// Checks that come in tables: every operation with every kind of bad path,
// every class of user with every combination of permission bits, every type of
// file renamed over every other. Each generator writes a script, which is then
// parsed like those in checks/.

type generator struct {
	group  string
	script func() string
}

var generators = []generator{
	{"path", badPaths},
	{"names", longNames},
	{"permission", filePermissions},
	{"directory", directoryPermissions},
	{"needs", neededPermissions},
	{"rename-over", renameOver},
	{"types", wrongTypes},
	{"sticky", stickyDirectories},
	{"mode", modes},
	{"privilege", privilegeBits},
	{"owner", owners},
}

// pathOp is an operation on the path PATH; it may use the file "old" and the free name "new".
type pathOp struct {
	name, line string
	creates    bool // PATH must not exist; otherwise it must
}

var pathOps = []pathOp{
	{"open", "open - PATH rdonly", false},
	{"open for writing", "open - PATH wronly", false},
	{"open with O_TRUNC", "open - PATH rdwr,trunc", false},
	{"open with O_CREAT", "open - PATH rdwr,creat 0644", true},
	{"open with O_CREAT and O_EXCL", "open - PATH rdwr,creat,excl 0644", true},
	{"mkdir", "mkdir PATH 0755", true},
	{"rmdir", "rmdir PATH", false},
	{"unlink", "unlink PATH", false},
	{"link from", "link PATH new", false},
	{"link to", "link old PATH", true},
	{"rename from", "rename PATH new", false},
	{"rename to", "rename old PATH", true},
	{"symlink", "symlink target PATH", true},
	{"readlink", "readlink PATH target", false},
	{"chmod", "chmod PATH 0600", false},
	{"chown", "chown PATH alice staff", false},
	{"lchown", "lchown PATH alice staff", false},
	{"truncate", "truncate PATH 0", false},
	{"mkfifo", "mkfifo PATH 0644", true},
	{"mknod of a socket", "mknod PATH sock 0644", true},
	{"mknod of a device", "mknod PATH chr 0644 1 3", true},
	{"utimensat", "utimens PATH 1 2", false},
	{"utimensat of the link itself", "lutimens PATH 1 2", false},
	{"access", "access PATH f", false},
	{"stat", "stat PATH", false},
	{"lstat", "lstat PATH", false},
	{"reading a directory", "list PATH", false},
	{"statfs", "statfs PATH", false},
}

func on(op pathOp, path string) string { return strings.ReplaceAll(op.line, "PATH", path) }

// badPaths: each operation with each way a path can be wrong.
func badPaths() string {
	var w strings.Builder
	for _, bad := range []struct{ name, setup, path, errno string }{
		{"below a missing directory", "", "missing/x", "ENOENT"},
		{"below a file", "file plain", "plain/x", "ENOTDIR"},
		{"below a dangling link", "symlink nowhere dangling", "dangling/x", "ENOENT"},
		{"below a loop of links", "symlink b a\nsymlink a b", "a/x", "ELOOP"},
		{"below a name of 256 bytes", "", "{n*256}/x", "ENAMETOOLONG"},
		{"at a name of 256 bytes", "", "{n*256}", "ENAMETOOLONG"},
		{"at a path of 4096 bytes", "", "{./*2047}xy", "ENAMETOOLONG"},
		{"at an empty path", "", `""`, "ENOENT"},
	} {
		for _, op := range pathOps {
			fmt.Fprintf(&w, "check %s %s\nfile old\n%s\n%s => %s\n", op.name, bad.name, bad.setup, on(op, bad.path), bad.errno)
		}
	}
	for _, op := range pathOps {
		if !op.creates {
			fmt.Fprintf(&w, "check %s of a missing name\n%s => ENOENT\n", op.name, on(op, "missing"))
		}
	}
	for _, op := range pathOps {
		fmt.Fprintf(&w, "check %s below a directory without search permission\nfile old\nmkdir d 0777\n", op.name)
		if !op.creates {
			fmt.Fprintf(&w, "file d/x\n")
		}
		fmt.Fprintf(&w, "chown d alice staff\nchmod d 0600\nalice: %s => EACCES\n", on(op, "d/x"))
	}
	return w.String()
}

// longNames: names of 255 bytes and paths of 4095 serve for everything.
func longNames() string {
	var w strings.Builder
	for _, op := range pathOps {
		for _, p := range []struct{ name, path string }{
			{"a name of 255 bytes", "{n*255}"},
			{"a path of 4095 bytes", "{./*2046}xyz"},
		} {
			if strings.HasPrefix(op.line, "list") || strings.HasPrefix(op.line, "rmdir") {
				fmt.Fprintf(&w, "check %s with %s\nmkdir %s 0755\n%s\n", op.name, p.name, p.path, on(op, p.path))
				continue
			}
			fmt.Fprintf(&w, "check %s with %s\nfile old\n", op.name, p.name)
			switch {
			case strings.HasPrefix(op.line, "readlink"):
				fmt.Fprintf(&w, "symlink target %s\n", p.path)
			case !op.creates:
				fmt.Fprintf(&w, "file %s\n", p.path)
			}
			fmt.Fprintf(&w, "%s\n", on(op, p.path))
		}
	}
	return w.String()
}

// class is a user, and the position of its bits in the mode of a file of alice and staff.
type class struct {
	user, name string
	shift      uint
}

var classes = []class{
	{"alice", "owner", 6},
	{"carol", "group", 3},
	{"dave", "supplementary group", 3},
	{"bob", "others", 0},
}

// modeFor gives the class the bits, and all other classes the opposite ones,
// so that a server that consults the wrong class is found out.
func modeFor(c class, bits uint) uint {
	return 0o777&^(0o777&(7<<c.shift)) - (0o777 &^ (7 << c.shift) & (bits<<6 | bits<<3 | bits)) | bits<<c.shift
}

func outcome(ok bool) string {
	if ok {
		return "ok"
	}
	return "EACCES"
}

// filePermissions: what each class may do with a file, by its bits.
func filePermissions() string {
	var w strings.Builder
	for _, c := range classes {
		for bits := uint(0); bits < 8; bits++ {
			r, wr, x := bits&4 != 0, bits&2 != 0, bits&1 != 0
			fmt.Fprintf(&w, "check %s with bits %o of a file\n", c.name, bits)
			fmt.Fprintf(&w, "file f 0777 data\nchown f alice staff\nchmod f %o\n", modeFor(c, bits))
			for _, t := range []struct {
				line string
				ok   bool
			}{
				{"open - f rdonly", r}, {"open - f wronly", wr}, {"open - f rdwr", r && wr},
				{"access f r", r}, {"access f w", wr}, {"access f x", x}, {"access f rw", r && wr}, {"access f rwx", r && wr && x},
				{"open - f wronly,append", wr}, {"truncate f 3", wr}, {"open - f rdonly,trunc", r && wr},
			} {
				fmt.Fprintf(&w, "%s: %s => %s\n", c.user, t.line, outcome(t.ok))
			}
			fmt.Fprintf(&w, "%s: access f f\n%s: stat f uid=alice\n", c.user, c.user)
		}
	}
	for _, m := range []string{"0000", "0100", "0010", "0001", "0444", "0777"} {
		x := strings.Trim(m, "04") != ""
		fmt.Fprintf(&w, "check root with a file of mode %s\nfile f 0644 data\nchown f alice staff\nchmod f %s\n"+
			"open - f rdwr\naccess f rw\naccess f x => %s\ntruncate f 0\n", m, m, outcome(x))
	}
	return w.String()
}

// directoryPermissions: what each class may do in a directory, by its bits.
func directoryPermissions() string {
	var w strings.Builder
	for _, c := range classes {
		for bits := uint(0); bits < 8; bits++ {
			r, wx, x := bits&4 != 0, bits&3 == 3, bits&1 != 0
			fmt.Fprintf(&w, "check %s with bits %o of a directory\n", c.name, bits)
			fmt.Fprintf(&w, "mkdir d 0777\nfile d/f 0666\nmkdir d/e 0777\nchown d/e %s -\nfile f 0666\nchown f %s -\n"+
				"chown d/f %s -\nchown d alice staff\nchmod d %o\n", c.user, c.user, c.user, modeFor(c, bits))
			for _, t := range []struct {
				line string
				ok   bool
			}{
				{"open - d rdonly,directory", r}, {"stat d/f", x}, {"stat d/missing => ENOENT", x}, {"open - d/f rdwr", x},
				{"access d r", r}, {"access d x", x}, {"stat d/.", x},
				{"file d/new", wx}, {"mkdir d/newdir 0755", wx}, {"symlink x d/newlink", wx}, {"mkfifo d/fifo 0644", wx},
				{"link f d/newname", wx}, {"rename f d/moved", wx}, {"unlink d/f", wx}, {"rmdir d/e", wx},
			} {
				line, want := t.line, "ok"
				if before, after, found := strings.Cut(line, " => "); found {
					line, want = before, after
				}
				if !t.ok {
					want = "EACCES"
				}
				fmt.Fprintf(&w, "%s: %s => %s\n", c.user, line, want)
			}
		}
	}
	return w.String()
}

// neededPermissions: each operation by somebody who may do everything in its
// directory but write, and by somebody who may not change the file.
func neededPermissions() string {
	var w strings.Builder
	for _, t := range []struct{ name, setup, line, errno string }{
		{"create", "", "creat d/x 0644", "EACCES"},
		{"exclusive create", "", "file d/x", "EACCES"},
		{"mkdir", "", "mkdir d/x 0755", "EACCES"},
		{"symlink", "", "symlink t d/x", "EACCES"},
		{"mkfifo", "", "mkfifo d/x 0644", "EACCES"},
		{"socket", "", "mknod d/x sock 0644", "EACCES"},
		{"unlink of an own file", "file d/f\nchown d/f bob guests", "unlink d/f", "EACCES"},
		{"rmdir of an own directory", "mkdir d/e 0777\nchown d/e bob guests", "rmdir d/e", "EACCES"},
		{"link into", "file f 0666\nchown f bob guests", "link f d/x", "EACCES"},
		{"rename into", "file f 0666\nchown f bob guests", "rename f d/x", "EACCES"},
		{"rename out of", "file d/f 0666\nchown d/f bob guests", "rename d/f x", "EACCES"},
		{"rename within", "file d/f 0666\nchown d/f bob guests", "rename d/f d/g", "EACCES"},
		{"rename over", "file d/f\nfile f\nchown f bob guests\nchown d/f bob guests", "rename f d/f", "EACCES"},
	} {
		fmt.Fprintf(&w, "check %s needs write permission on the directory\nmkdir d 0755\n%s\nmark d\nbob: %s => %s\n"+
			"moved d a?\n", t.name, t.setup, t.line, t.errno)
	}
	for _, t := range []struct{ name, line, errno string }{
		{"chmod", "chmod f 0666", "EPERM"},
		{"chmod to what it is", "chmod f 0640", "EPERM"},
		{"chown of the owner", "chown f bob -", "EPERM"},
		{"chown of the group", "chown f - guests", "EPERM"},
		{"utimensat with times", "utimens f 1 2", "EPERM"},
		{"utimensat with omit and 5", "utimens f omit 5", "EPERM"},
		{"utimensat with now", "utimens f now now", "EACCES"},
		{"truncate", "truncate f 0", "EACCES"},
		{"open with O_TRUNC", "open - f rdonly,trunc", "EACCES"},
		{"open for writing", "open - f wronly", "EACCES"},
		{"open for reading", "open - f rdonly", "EACCES"},
	} {
		fmt.Fprintf(&w, "check %s needs the owner or a permission\nfile f 0640 data\nchown f alice staff\nmark f\n"+
			"bob: %s => %s\nmoved f a?\nstat f uid=alice gid=staff mode=640 size=4\n", t.name, t.line, t.errno)
	}
	return w.String()
}

// kinds of file, as the rename and type checks make them at NAME.
var kinds = []struct{ name, make, typ string }{
	{"a file", "file NAME 0644 data", "file"},
	{"an empty directory", "mkdir NAME 0755", "dir"},
	{"a full directory", "mkdir NAME 0755\nfile NAME/inside", "dir"},
	{"a symbolic link", "symlink target NAME", "link"},
	{"a fifo", "mkfifo NAME 0644", "fifo"},
	{"a socket", "mknod NAME sock 0644", "sock"},
	{"a character device", "mknod NAME chr 0644 5 7", "chr"},
	{"a block device", "mknod NAME blk 0644 8 9", "blk"},
}

// renameOver: each kind of file over each kind, in one directory and across two.
func renameOver() string {
	var w strings.Builder
	for _, from := range kinds {
		for _, to := range kinds {
			errno := "ok"
			switch {
			case from.typ == "dir" && to.typ != "dir":
				errno = "ENOTDIR"
			case from.typ != "dir" && to.typ == "dir":
				errno = "EISDIR"
			case to.name == "a full directory":
				errno = "ENOTEMPTY"
			}
			fmt.Fprintf(&w, "check %s over %s\nmkdir p 0755\nmkdir q 0755\n%s\n%s\n", from.name, to.name,
				strings.ReplaceAll(from.make, "NAME", "p/x"), strings.ReplaceAll(to.make, "NAME", "q/y"))
			fmt.Fprintf(&w, "link-probe\n")
			fmt.Fprintf(&w, "mark p/x\nmark q/y\nmark p\nmark q\nrename p/x q/y => %s\n", errno)
			if errno == "ok" {
				fmt.Fprintf(&w, "lstat p/x => ENOENT\nlstat q/y type=%s\nmoved p a?mc\nmoved q a?mc\nmoved q/y a?mc? p/x\nlist p\n"+
					"list q y\n", from.typ)
				if from.typ == "dir" {
					fmt.Fprintf(&w, "stat p nlink=2\nstat q nlink=3\n")
				}
			} else {
				fmt.Fprintf(&w, "moved p a?\nmoved q a?\nmoved p/x a?\nmoved q/y a?\nlist p x\nlist q y\nlstat p/x type=%s\n"+
					"lstat q/y type=%s\n", from.typ, to.typ)
			}
		}
	}
	s := strings.ReplaceAll(w.String(), "link-probe\n", "")
	// renaming does not touch mtime of what is renamed, and ctime is left open by POSIX
	return strings.ReplaceAll(s, "moved q/y a?mc? p/x", "moved q/y a?c? p/x")
}

// wrongTypes: operations on kinds of file they are not for.
func wrongTypes() string {
	var w strings.Builder
	for _, k := range kinds {
		dir, link := k.typ == "dir", k.typ == "link"
		for _, t := range []struct{ name, line, want string }{
			{"unlink", "unlink x", pick(dir, "EISDIR", "ok")},
			{"rmdir", "rmdir x", pick(k.name == "an empty directory", "ok", pick(dir, "ENOTEMPTY", "ENOTDIR"))},
			{"link", "link x y", pick(dir, "EPERM", "ok")},
			{"readlink", "readlink x target", pick(link, "ok", "EINVAL")},
			{"mkdir", "mkdir x 0755", "EEXIST"},
			{"mkfifo", "mkfifo x 0644", "EEXIST"},
			{"mknod", "mknod x chr 0644 1 3", "EEXIST"},
			{"symlink", "symlink t x", "EEXIST"},
			{"exclusive create", "open - x rdwr,creat,excl 0644", "EEXIST"},
			{"link to", "link other x", "EEXIST"},
			{"open O_DIRECTORY", "open - x rdonly,directory,nonblock", pick(dir, "ok", pick(link, "ENOENT", "ENOTDIR"))},
			{"open O_NOFOLLOW", "open - x rdonly,nofollow,directory", pick(dir, "ok", pick(link, "ENOTDIR", "ENOTDIR"))},
			{"chmod", "chmod x 0600", pick(link, "ENOENT", "ok")},
			{"lchown", "lchown x alice staff", "ok"},
			{"lutimens", "lutimens x 5.25 6.75", "ok"},
			{"truncate", "truncate x 0", pick(dir, "EISDIR", pick(link, "ENOENT", pick(k.typ == "file", "ok", "EINVAL")))},
			{"a path through", "stat x/y", pick(dir, "ENOENT", pick(link, "ENOENT", "ENOTDIR"))},
		} {
			fmt.Fprintf(&w, "check %s of %s\nfile other\n%s\n%s => %s\n",
				t.name, k.name, strings.ReplaceAll(k.make, "NAME", "x"), t.line, t.want)
			switch {
			case t.want != "ok":
				fmt.Fprintf(&w, "lstat x type=%s\n", k.typ)
			case t.name == "unlink" || t.name == "rmdir":
				fmt.Fprintf(&w, "lstat x => ENOENT\n")
			case t.name == "link":
				fmt.Fprintf(&w, "same x y\nlstat y type=%s nlink=2\nunlink x\nlstat y nlink=1\n", k.typ)
			case t.name == "chmod":
				fmt.Fprintf(&w, "lstat x mode=600 type=%s\n", k.typ)
			case t.name == "lchown":
				fmt.Fprintf(&w, "lstat x uid=alice gid=staff type=%s\n", k.typ)
			case t.name == "lutimens":
				fmt.Fprintf(&w, "lstat x atime=5.25 mtime=6.75 type=%s\n", k.typ)
			}
		}
	}
	return w.String()
}

func pick[T any](c bool, yes, no T) T {
	if c {
		return yes
	}
	return no
}

// stickyDirectories: who removes and renames what in a sticky directory.
func stickyDirectories() string {
	var w strings.Builder
	for _, dirOwner := range []string{"root", "alice", "bob"} {
		for _, fileOwner := range []string{"root", "alice", "bob"} {
			for _, user := range []string{"root", "alice"} {
				may := user == "root" || dirOwner == user || fileOwner == user
				fmt.Fprintf(&w, "check %s's file in %s's directory, by %s\nmkdir d 1777\nmkdir away 0777\nchmod d 1777\n"+
					"chown d %s -\n", fileOwner, dirOwner, user, dirOwner)
				for i, make := range []string{"file d/u", "file d/r", "file d/o", "mkdir d/e 0777", "file d/a"} {
					fmt.Fprintf(&w, "%s\nchown %s %s -\n", make, []string{"d/u", "d/r", "d/o", "d/e", "d/a"}[i], fileOwner)
				}
				want := pick(may, "ok", "EPERM")
				fmt.Fprintf(&w, "%[1]s: file mine\n%[1]s: unlink d/u => %[2]s\n%[1]s: rename d/r d/s => %[2]s\n"+
					"%[1]s: rename mine d/o => %[2]s\n%[1]s: rmdir d/e => %[2]s\n%[1]s: rename d/a away/a => %[2]s\n", user, want)
				fmt.Fprintf(&w, "lstat d/u => %s\nlstat d/s => %s\nlstat d/e => %s\nlstat away/a => %s\n",
					pick(may, "ENOENT", "ok"), pick(may, "ok", "ENOENT"), pick(may, "ENOENT", "ok"), pick(may, "ok", "ENOENT"))
			}
		}
	}
	return w.String()
}

// modes: chmod sets exactly the bits, whatever was there; creation takes the umask off.
func modes() string {
	var w strings.Builder
	for _, m := range []string{
		"0", "1", "10", "100", "111", "222", "444", "644", "755", "777", "1000", "1777", "2000", "2755", "4000", "4755",
		"6711", "7777",
	} {
		for _, k := range kinds {
			if k.typ == "link" || k.name == "a full directory" || len(m) > 3 && k.typ != "file" && k.typ != "dir" {
				continue
			}
			fmt.Fprintf(&w, "check chmod of %s to %s\n%s\nmark x\nmark .\nchmod x %s\nlstat x mode=%s type=%s uid=root\n"+
				"moved x a?c\nmoved . a?\n", k.name, m, strings.ReplaceAll(k.make, "NAME", "x"), m, m, k.typ)
		}
	}
	for _, k := range []struct{ name, line string }{
		{"open", "open - x rdwr,creat 0777"}, {"exclusive open", "open - x rdwr,creat,excl 0777"}, {"mkdir", "mkdir x 0777"},
		{"mkfifo", "mkfifo x 0777"}, {"mknod", "mknod x sock 0777"},
	} {
		for _, u := range []struct{ mask, mode string }{
			{"0000", "777"}, {"0022", "755"}, {"0077", "700"}, {"0777", "0"}, {"0121", "656"},
		} {
			fmt.Fprintf(&w, "check %s with umask %s\nalice: umask %s\nalice: %s\nlstat x mode=%s uid=alice gid=staff\n",
				k.name, u.mask, u.mask, k.line, u.mode)
		}
	}
	return w.String()
}

// privilegeBits: setuid and setgid go when data or owner change, unless root does it to data.
func privilegeBits() string {
	var w strings.Builder
	for _, m := range []struct{ mode, after string }{
		{"4755", "755"}, {"2755", "755"}, {"6755", "755"}, {"2745", "2745"}, {"6745", "2745"}, {"4644", "644"},
		{"1755", "1755"},
	} {
		for _, t := range []struct{ name, user, line, after string }{
			{"chown of the owner by root", "root", "chown f bob -", m.after},
			{"chown of the group by root", "root", "chown f - guests", m.after},
			{"chown of both by root", "root", "chown f bob guests", m.after},
			{"chown of the group by the owner", "alice", "chown f - extra", m.after},
			{"a write by another user", "carol", "open h f wronly\ncarol: write h x\nclose h", m.after},
			{"a write by root", "root", "open h f wronly\nwrite h x\nclose h", m.mode},
			{"truncate by another user", "carol", "truncate f 1", m.after},
		} {
			setup := fmt.Sprintf("file f 0777 data\nchown f alice staff\nchmod f %s\n", m.mode)
			if t.user == "carol" { // she is in the group, which must be able to write
				setup = fmt.Sprintf("file f 0777 data\nchown f alice staff\nchmod f %s\n", orBits(m.mode, 0o20))
				t.after = orBits(t.after, 0o20)
			}
			fmt.Fprintf(&w, "check %s, mode %s\n%s%s: %s\n", t.name, m.mode, setup, t.user, t.line)
			if kept := orBits(m.mode, 0o20); strings.HasPrefix(t.line, "truncate") && kept != t.after {
				fmt.Fprintf(&w, "why POSIX allows to clear the bits; the kernel's server keeps them\n[knfsd] lstat f mode=%s\n"+
					"[tansy] lstat f mode=%s\n[local] lstat f mode=%s\n",
					kept, t.after, t.after)
			} else {
				fmt.Fprintf(&w, "lstat f mode=%s\n", t.after)
			}
		}
	}
	return w.String()
}

func orBits(mode string, bits uint32) string { return fmt.Sprintf("%o", octal(mode)|bits) }

// owners: who may give which file to whom.
func owners() string {
	var w strings.Builder
	for _, k := range []string{"file", "dir", "fifo", "link"} {
		make := map[string]string{"file": "file x", "dir": "mkdir x 0755", "fifo": "mkfifo x 0644", "link": "symlink t x"}[k]
		for _, t := range []struct{ name, user, owner, group, want string }{
			{"root gives the owner away", "root", "bob", "-", "ok"},
			{"root gives the group away", "root", "-", "guests", "ok"},
			{"root gives both away", "root", "carol", "guests", "ok"},
			{"the owner to another owner", "alice", "bob", "-", "EPERM"},
			{"the owner to its own group", "alice", "-", "staff", "ok"},
			{"the owner to a supplementary group", "alice", "-", "extra", "ok"},
			{"the owner to a group it is not in", "alice", "-", "guests", "EPERM"},
			{"the owner to itself and its group", "alice", "alice", "staff", "ok"},
			{"somebody else takes it", "bob", "bob", "-", "EPERM"},
			{"somebody else gives its group", "bob", "-", "guests", "EPERM"},
			{"a group member changes the group", "carol", "-", "staff", "EPERM"},
		} {
			owner, group := "alice", "staff"
			if t.want == "ok" {
				owner, group = pick(t.owner == "-", owner, t.owner), pick(t.group == "-", group, t.group)
			}
			fmt.Fprintf(&w, "check %s: %s\n%s\nlchown x alice staff\nmark x\n%s: lchown x %s %s => %s\n"+
				"lstat x uid=%s gid=%s type=%s\nmoved x %s\n",
				k, t.name, make, t.user, t.owner, t.group, t.want, owner, group, k, pick(t.want == "ok", "a?c", "a?"))
		}
	}
	return w.String()
}
