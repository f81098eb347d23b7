//go:build linux

package main

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// typeBits are the file types by the names the scripts use.
var typeBits = map[string]uint32{
	"file": unix.S_IFREG, "dir": unix.S_IFDIR, "link": unix.S_IFLNK, "fifo": unix.S_IFIFO, "sock": unix.S_IFSOCK,
	"chr": unix.S_IFCHR, "blk": unix.S_IFBLK,
}

func typeName(mode uint32) string {
	for n, b := range typeBits {
		if mode&unix.S_IFMT == b {
			return n
		}
	}
	return "unknown"
}

// stat describes a path (not following a last symbolic link if l) or an open file (@H).
func (r *runner) stat(path string, l bool) (st unix.Stat_t, err error) {
	if h, ok := strings.CutPrefix(path, "@"); ok {
		err = unix.Fstat(r.fd(h), &st)
	} else if l {
		err = unix.Lstat(path, &st)
	} else {
		err = unix.Stat(path, &st)
	}
	return st, err
}

// statIs compares FIELD=VALUE pairs with what is there.
func statIs(r *runner, args []string, l bool) error {
	st, err := r.stat(args[0], l)
	if err != nil {
		return err
	}
	var want, got []string
	for _, a := range args[1:] {
		field, value, ok := strings.Cut(a, "=")
		if !ok {
			return fmt.Errorf("%s is not FIELD=VALUE", a)
		}
		have, same := compareField(&st, field, value)
		if !same {
			want, got = append(want, a), append(got, field+"="+have)
		}
	}
	if want != nil {
		return &mismatch{strings.Join(want, " "), strings.Join(got, " ")}
	}
	return nil
}

// compareField tells a field of st, and if it is the value given.
func compareField(st *unix.Stat_t, field, value string) (string, bool) {
	switch field {
	case "type":
		t := typeName(st.Mode)
		return t, t == value
	case "mode":
		return strconv.FormatUint(uint64(st.Mode&0o7777), 8), st.Mode&0o7777 == octal(value)
	case "nlink":
		return strconv.FormatUint(uint64(st.Nlink), 10), int64(st.Nlink) == number(value)
	case "size":
		return strconv.FormatInt(st.Size, 10), st.Size == number(value)
	case "uid":
		return strconv.Itoa(int(st.Uid)), int(st.Uid) == id(value)
	case "gid":
		return strconv.Itoa(int(st.Gid)), int(st.Gid) == id(value)
	case "rdev":
		s := fmt.Sprintf("%d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev))
		return s, s == value
	case "below": // kilobytes allocated
		return strconv.FormatInt(st.Blocks/2, 10), st.Blocks/2 < number(value)
	case "atleast":
		return strconv.FormatInt(st.Blocks/2, 10), st.Blocks/2 >= number(value)
	case "atime":
		return stamp(st.Atim), st.Atim == timespec(value)
	case "mtime":
		return stamp(st.Mtim), st.Mtim == timespec(value)
	}
	return "an unknown field", false
}

func stamp(t unix.Timespec) string { return fmt.Sprintf("%d.%09d", t.Sec, t.Nsec) }

func sameFile(r *runner, a []string, want bool) error {
	x, err := r.stat(a[0], true)
	if err != nil {
		return err
	}
	y, err := r.stat(a[1], true)
	if err != nil {
		return err
	}
	if (x.Dev == y.Dev && x.Ino == y.Ino) != want {
		names := map[bool]string{true: "one file", false: "two files"}
		return &mismatch{names[want], names[!want]}
	}
	return nil
}

// times are the time stamps of a file.
type times struct{ a, m, c unix.Timespec }

func timesOf(st *unix.Stat_t) times { return times{st.Atim, st.Mtim, st.Ctim} }

func later(a, b unix.Timespec) bool { return a.Sec > b.Sec || a.Sec == b.Sec && a.Nsec > b.Nsec }

// mark notes the time stamps of a path, and waits until a change that is made
// from now on gets a later one: it changes a file until that has a later ctime.
func (r *runner) mark(path string) error {
	st, err := r.stat(path, true)
	if err != nil {
		return err
	}
	r.marks[path] = timesOf(&st)
	now := []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}
	for {
		var clock unix.Stat_t
		if err := unix.UtimesNanoAt(unix.AT_FDCWD, r.clock(), now, 0); err != nil {
			return fmt.Errorf("clock: %w", err)
		}
		if err := unix.Lstat(r.clock(), &clock); err != nil {
			return fmt.Errorf("clock: %w", err)
		}
		if later(clock.Ctim, st.Ctim) {
			return nil
		}
	}
}

// moved compares the time stamps of a path with its mark, or that of another path.
func (r *runner) moved(a []string) error {
	of, letters := a[0], ""
	if len(a) > 1 {
		letters = a[1]
	}
	if len(a) > 2 {
		of = a[2]
	}
	old, ok := r.marks[of]
	if !ok {
		return fmt.Errorf("%s has no mark", of)
	}
	st, err := r.stat(a[0], true)
	if err != nil {
		return err
	}
	now := timesOf(&st)
	var problems []string
	for _, s := range []struct {
		name     string
		old, new unix.Timespec
	}{{"a", old.a, now.a}, {"m", old.m, now.m}, {"c", old.c, now.c}} {
		open := strings.Contains(letters, s.name+"?")
		want := strings.Contains(letters, s.name)
		switch {
		case open:
		case want && !later(s.new, s.old):
			problems = append(problems, fmt.Sprintf("%stime to move from %s, it is %s", s.name, stamp(s.old), stamp(s.new)))
		case !want && s.new != s.old:
			problems = append(problems, fmt.Sprintf("%stime to stay at %s, it is %s", s.name, stamp(s.old), stamp(s.new)))
		}
	}
	if problems != nil {
		return fmt.Errorf("expected %s", strings.Join(problems, "; "))
	}
	return nil
}
