package crash

import (
	"slices"
	"strings"
)

// names is what there is of names while a sequence runs: so much of the specification that it tells which steps must
// succeed. All others are refused, and a sequence with one of them is not run.
type names map[string]*file

// file is a file, which may have several names.
type file struct {
	kind  byte // f: regular, d: directory, o: other
	attrs []string
}

// atFirst are the names that there are before the first step.
func atFirst() names {
	n := names{"": {kind: 'd'}}
	for _, s := range first {
		n.step(s)
	}
	return n
}

// refused is the first step that does not succeed, or -1.
func refused(steps []Step) int {
	n := atFirst()
	return slices.IndexFunc(steps, func(s Step) bool { return !n.step(s) })
}

// step does a step, and tells whether it succeeds.
func (n names) step(s Step) bool {
	a := strings.Fields(string(s))
	switch name, a := a[0], a[1:]; name {
	case "create":
		return n.enter(a[0], &file{kind: 'f'})
	case "mkdir":
		return n.enter(a[0], &file{kind: 'd'})
	case "mknod":
		return n.enter(a[0], &file{kind: 'o'})
	case "symlink":
		return n.enter(a[1], &file{kind: 'o'})
	case "link":
		f := n[a[0]]
		return f != nil && f.kind != 'd' && n.enter(a[1], f)
	case "remove", "rmdir":
		f := n[a[0]]
		if f == nil || (f.kind == 'd') != (name == "rmdir") || len(n.below(a[0])) > 0 {
			return false
		}
		delete(n, a[0])
		return true
	case "rename":
		return n.rename(a[0], a[1])
	case "sync":
		return true
	case "fsync":
		return n[a[0]] != nil
	default:
		f := n[a[0]]
		return f != nil && f.kind == 'f' && f.change(name, a[1:])
	}
}

// change is a step on a regular file.
func (f *file) change(step string, a []string) bool {
	switch step {
	case "setxattr":
		f.attrs = append(f.attrs, a[0])
	case "removexattr":
		if !slices.Contains(f.attrs, a[0]) {
			return false
		}
		f.attrs = slices.DeleteFunc(f.attrs, func(x string) bool { return x == a[0] })
	}
	return true
}

// parent is the directory that a path is in.
func parent(path string) string { return path[:max(0, strings.LastIndexByte(path, '/'))] }

// enter gives a file a name.
func (n names) enter(path string, f *file) bool {
	if dir := n[parent(path)]; dir == nil || dir.kind != 'd' || n[path] != nil {
		return false
	}
	n[path] = f
	return true
}

// below are the names below a directory.
func (n names) below(path string) (all []string) {
	for p := range n {
		if strings.HasPrefix(p, path+"/") {
			all = append(all, p)
		}
	}
	return all
}

// rename moves a name, with all below it.
func (n names) rename(from, to string) bool {
	f, old, dir := n[from], n[to], n[parent(to)]
	switch {
	case f == nil || dir == nil || dir.kind != 'd' || strings.HasPrefix(to, from+"/"):
		return false
	case f == old: // two names of one file: nothing is done
		return true
	case old != nil && ((f.kind == 'd') != (old.kind == 'd') || len(n.below(to)) > 0):
		return false
	}
	for _, p := range n.below(from) {
		n[to+strings.TrimPrefix(p, from)] = n[p]
		delete(n, p)
	}
	delete(n, from)
	n[to] = f
	return true
}
