package crash

import (
	"crypto/sha256"
	"fmt"
	"sort"
	"strings"

	"tansy/fs"
)

// Tree describes all that can be seen below a directory, a line for each name.
func Tree(v *fs.FS, dir fs.Handle) (string, error) {
	w := walker{v: v, lost: func(err error) error { return err }}
	if err := w.walk("", dir); err != nil {
		return "", err
	}
	sort.Strings(w.lines)
	return strings.Join(w.lines, "\n"), nil
}

// walker goes through a tree.
type walker struct {
	v     *fs.FS
	lines []string
	// lost is told why something cannot be read. It is left out if the answer is nil, and else that ends the walk.
	lost func(error) error
}

func (w *walker) walk(path string, h fs.Handle) error {
	limit := fs.Limit{Bytes: 4000, Size: func(name int) int { return name + 24 }}
	for cookie, end := uint64(0), false; !end; {
		l, err := w.v.Readdir(root, h, cookie, 0, true, limit)
		if err != nil {
			if err = w.lost(err); err != nil {
				err = fmt.Errorf("%s: %w", path, err)
			}
			return err
		}
		end = l.EOF
		for _, e := range l.Entries {
			cookie = e.Cookie
			if err := w.entry(path, e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *walker) entry(path string, e fs.Entry) error {
	if string(e.Name) == ".." {
		return nil
	}
	line, err := describe(w.v, e)
	if err == nil {
		w.lines = append(w.lines, path+string(e.Name)+line)
	} else if err = w.lost(err); err != nil {
		return fmt.Errorf("%s%s: %w", path, e.Name, err)
	}
	if e.Attr.Type == fs.Directory && string(e.Name) != "." {
		return w.walk(path+string(e.Name)+"/", e.Handle)
	}
	return nil
}

// describe is what there is of an entry but its name.
func describe(v *fs.FS, e fs.Entry) (string, error) {
	a := *e.Attr
	a.Used = 0 // changes while blocks are freed in the background
	line := fmt.Sprintf(": %+v", a)
	switch a.Type {
	case fs.Regular:
		sum, err := contents(v, e.Handle)
		if err != nil {
			return "", err
		}
		line += fmt.Sprintf(" contents %x", sum)
	case fs.Symlink:
		b, _, err := v.Readlink(root, e.Handle)
		if err != nil {
			return "", err
		}
		line += " to " + string(b)
	}
	flags, err := v.Flags(e.Handle)
	if err != nil {
		return "", err
	}
	if flags != 0 {
		line += fmt.Sprintf(" flags %#x", flags)
	}
	lists, err := listsOf(v, e.Handle)
	if err != nil {
		return "", err
	}
	line += lists
	names, err := v.ListXattr(e.Handle)
	if err != nil {
		return "", err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		if name == "" {
			continue
		}
		value, err := v.GetXattr(e.Handle, []byte(name))
		if err != nil {
			return "", err
		}
		line += fmt.Sprintf(" %s=%q", name, value)
	}
	return line, nil
}

// contents is a hash of what a file holds.
func contents(v fs.FileSystem, h fs.Handle) ([]byte, error) {
	sum := sha256.New()
	for off, end := uint64(0), false; !end; {
		var b []byte
		var err error
		if b, end, _, err = v.Read(root, h, off, 1<<20); err != nil {
			return nil, err
		}
		sum.Write(b)
		off += uint64(len(b))
	}
	return sum.Sum(nil)[:8], nil
}
