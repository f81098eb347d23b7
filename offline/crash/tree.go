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
	var lines []string
	var walk func(path string, h fs.Handle) error
	walk = func(path string, h fs.Handle) error {
		limit := fs.Limit{Bytes: 4000, Size: func(name int) int { return name + 24 }}
		for cookie, end := uint64(0), false; !end; {
			l, err := v.Readdir(root, h, cookie, 0, true, limit)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			end = l.EOF
			for _, e := range l.Entries {
				cookie = e.Cookie
				if string(e.Name) == ".." {
					continue
				}
				line, err := describe(v, e)
				if err != nil {
					return fmt.Errorf("%s%s: %w", path, e.Name, err)
				}
				lines = append(lines, path+string(e.Name)+line)
				if e.Attr.Type == fs.Directory && string(e.Name) != "." {
					if err := walk(path+string(e.Name)+"/", e.Handle); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}
	if err := walk("", dir); err != nil {
		return "", err
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n"), nil
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
