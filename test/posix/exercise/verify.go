//go:build linux

package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Comparing a tree with its model, and the shared tree with what holds for all trees.

// compare is lstat against the model.
func (t *treeExercise) compare(d *node, name string) error {
	n := d.children[name]
	what := "lstat " + t.show(d, name)
	if n != nil && n.replaced {
		// The kernel's NFS client does not look up what a rename replaces. If it knows the file by
		// another name, it goes on for up to a minute to say that it has one link more; so it does
		// with the kernel's own server. It is made to ask the server.
		var st unix.Statx_t
		how := unix.AT_SYMLINK_NOFOLLOW | unix.AT_STATX_FORCE_SYNC
		if err := expect(what, unix.Statx(unix.AT_FDCWD, t.at(d, name), how, unix.STATX_BASIC_STATS, &st), 0); err != nil {
			return err
		}
		n.replaced = false
	}
	var st unix.Stat_t
	if err := expect(what, unix.Lstat(t.at(d, name), &st), exists(n)); err != nil || n == nil {
		return err
	}
	return n.compare(what, &st)
}

func (n *node) compare(what string, st *unix.Stat_t) error {
	if n.ino == 0 {
		n.ino = st.Ino
	}
	size := st.Size // a directory's is the file system's own
	switch n.kind {
	case unix.S_IFREG:
		size = int64(len(n.data))
	case unix.S_IFLNK:
		size = int64(len(n.target))
	}
	want := fmt.Sprintf("mode %o, %d links, user %d, group %d, size %d, inode %d", n.kind|n.mode, n.nlink(), n.uid,
		n.gid, size, n.ino)
	got := fmt.Sprintf("mode %o, %d links, user %d, group %d, size %d, inode %d", st.Mode, st.Nlink, st.Uid, st.Gid,
		st.Size, st.Ino)
	if n.mtime != nil {
		want += fmt.Sprintf(", mtime %d.%09d", n.mtime.Sec, n.mtime.Nsec)
		got += fmt.Sprintf(", mtime %d.%09d", st.Mtim.Sec, st.Mtim.Nsec)
	}
	if want != got {
		return fmt.Errorf("%s: expected %s, got %s", what, want, got)
	}
	return nil
}

// contents reads a file or symbolic link.
func (t *treeExercise) contents(d *node, name string) error {
	n := d.children[name]
	path, what := t.at(d, name), "read "+t.show(d, name)
	b := make([]byte, maxTreeFile+1)
	var got int
	var err error
	switch {
	case n == nil:
		var st unix.Stat_t
		return expect(what, unix.Lstat(path, &st), unix.ENOENT)
	case n.kind == unix.S_IFLNK:
		got, err = unix.Readlink(path, b)
		if err == nil && string(b[:got]) != n.target {
			return fmt.Errorf("%s: another target", what)
		}
		return expect(what, err, 0)
	case n.kind != unix.S_IFREG:
		return nil
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err := expect(what, err, 0); err != nil {
		return err
	}
	defer unix.Close(fd)
	got, err = readAll(fd, b, 0)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	case got != len(n.data):
		return fmt.Errorf("%s: expected %d bytes, got %d", what, len(n.data), got)
	case !bytes.Equal(b[:got], n.data):
		return fmt.Errorf("%s: %s", what, difference(n.data, b[:got], 0))
	}
	return nil
}

// listing is readdir against the model.
func (t *treeExercise) listing(d *node) error {
	got, err := list(d.path(t.dir0()))
	if err != nil {
		return err
	}
	want := slices.Clone(d.names)
	slices.Sort(want)
	if !slices.Equal(want, got) {
		return fmt.Errorf("readdir %s: expected %q, got %q", t.show(d, ""), want, got)
	}
	return nil
}

// list is the sorted names in a directory, as often as they are listed.
func list(path string) ([]string, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("readdir %s: %w", path, err)
	}
	defer unix.Close(fd)
	var names []string
	buf := make([]byte, 8192)
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err != nil {
			return nil, fmt.Errorf("readdir %s: %w", path, err)
		}
		if n <= 0 {
			break
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
	slices.Sort(names)
	return names, nil
}

// verify compares the whole tree.
func (t *treeExercise) verify() error {
	for _, d := range t.dirs {
		if err := t.listing(d); err != nil {
			return err
		}
		for _, name := range d.names {
			if err := t.compare(d, name); err != nil {
				return err
			}
			if err := t.contents(d, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// verifyShared checks, when nobody changes the shared tree, that every name is
// listed exactly once and is there, that link counts are exact, and that every
// file consists of whole records and holes. It tells the number of names.
func verifyShared(top string) (int, error) {
	type file struct {
		links, seen uint64
		path        string
	}
	files := map[uint64]*file{}
	dirs := []string{top}
	count := 0
	for len(dirs) > 0 {
		d := dirs[0]
		dirs = dirs[1:]
		names, err := list(d)
		if err != nil {
			return 0, err
		}
		sub := uint64(0)
		for i, name := range names {
			p := filepath.Join(d, name)
			if i > 0 && names[i-1] == name {
				return 0, fmt.Errorf("%s is listed twice", p)
			}
			if strings.HasPrefix(name, ".nfs") {
				return 0, fmt.Errorf("%s was left by the client, though nothing is open", p)
			}
			count++
			var st unix.Stat_t
			if err := unix.Lstat(p, &st); err != nil {
				return 0, fmt.Errorf("%s is listed: %w", p, err)
			}
			if st.Mode&unix.S_IFMT == unix.S_IFDIR {
				sub++
				dirs = append(dirs, p)
				continue
			}
			f := files[st.Ino]
			if f == nil {
				f = &file{links: uint64(st.Nlink), path: p}
				files[st.Ino] = f
				if st.Mode&unix.S_IFMT == unix.S_IFREG {
					if err := checkRecords(p); err != nil {
						return 0, err
					}
				}
			}
			f.seen++
		}
		var st unix.Stat_t
		if err := unix.Lstat(d, &st); err != nil {
			return 0, fmt.Errorf("%s: %w", d, err)
		}
		if uint64(st.Nlink) != sub+2 {
			return 0, fmt.Errorf("%s has %d links and %d directories in it", d, st.Nlink, sub)
		}
	}
	for _, f := range files {
		if f.links != f.seen {
			return 0, fmt.Errorf("%s has %d links, %d names were found", f.path, f.links, f.seen)
		}
	}
	return count, nil
}
