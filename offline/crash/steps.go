package crash

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"tansy/fs"
)

// A Step is an operation, or what makes those before it durable. Its text is its name and its arguments, with a space
// between: `write foo 100 5000`. Paths begin at the root, and have no slash there.
type Step string

// volume is what steps are done on.
type volume interface {
	fs.FileSystem
	Allocate(who *fs.Cred, h fs.Handle, off, n uint64) error
	PunchHole(who *fs.Cred, h fs.Handle, off, n uint64) error
	ZeroRange(who *fs.Cred, h fs.Handle, off, n uint64) error
	SetXattr(h fs.Handle, name, value []byte, create, replace bool) error
	RemoveXattr(h fs.Handle, name []byte) error
	SetLists(who *fs.Cred, h fs.Handle, l fs.Lists, access, dflt bool) error
	SetFlags(who *fs.Cred, h fs.Handle, flags uint32) error
	Sync() error
	Grow(ctx context.Context, o fs.GrowOptions) (fs.Growth, error)
}

// grow has the volume take what its device has behind it, once.
const grow = Step("grow")

// root is who does all.
var root = &fs.Cred{}

// local is what a mount does beyond NFS, or otherwise.
var local = map[string]bool{
	"fsync": true, "sync": true, "setxattr": true, "removexattr": true, "allocate": true, "punch": true, "zero": true,
	"setflags": true,
}

// kinds are the steps by their names, and how many arguments they have.
var kinds = map[string]struct {
	args int
	do   func(v volume, a []string) error
}{
	"create": {1, func(v volume, a []string) error {
		return within(v, a[0], func(dir fs.Handle, name []byte) error {
			_, err := v.Create(root, dir, name, fs.Guarded, &fs.SetAttr{}, 0)
			return err
		})
	}},
	"mkdir": {1, func(v volume, a []string) error {
		return within(v, a[0], func(dir fs.Handle, name []byte) error {
			_, err := v.Mkdir(root, dir, name, &fs.SetAttr{})
			return err
		})
	}},
	"symlink": {2, func(v volume, a []string) error {
		return within(v, a[1], func(dir fs.Handle, name []byte) error {
			_, err := v.Symlink(root, dir, name, &fs.SetAttr{}, []byte(a[0]))
			return err
		})
	}},
	"mknod": {1, func(v volume, a []string) error {
		return within(v, a[0], func(dir fs.Handle, name []byte) error {
			_, err := v.Mknod(root, dir, name, fs.FIFO, &fs.SetAttr{}, 0, 0)
			return err
		})
	}},
	"link": {2, func(v volume, a []string) error {
		h, err := find(v, a[0])
		if err != nil {
			return err
		}
		return within(v, a[1], func(dir fs.Handle, name []byte) error {
			_, _, err := v.Link(root, h, dir, name)
			return err
		})
	}},
	"remove": {1, func(v volume, a []string) error {
		return within(v, a[0], func(dir fs.Handle, name []byte) error {
			_, err := v.Remove(root, dir, name)
			return err
		})
	}},
	"rmdir": {1, func(v volume, a []string) error {
		return within(v, a[0], func(dir fs.Handle, name []byte) error {
			_, err := v.Rmdir(root, dir, name)
			return err
		})
	}},
	"rename": {2, func(v volume, a []string) error {
		return within(v, a[0], func(from fs.Handle, fromName []byte) error {
			return within(v, a[1], func(to fs.Handle, toName []byte) error {
				_, _, err := v.Rename(root, from, fromName, to, toName)
				return err
			})
		})
	}},
	"write":    {3, func(v volume, a []string) error { return write(v, a, fs.FileSync) }},
	"unstable": {3, func(v volume, a []string) error { return write(v, a, fs.Unstable) }},
	"truncate": {2, func(v volume, a []string) error {
		n, err := numbers(a[1:])
		if err != nil {
			return err
		}
		return on(v, a[0], func(h fs.Handle) error {
			_, err := v.Setattr(root, h, &fs.SetAttr{Size: &n[0]}, nil)
			return err
		})
	}},
	"chmod": {2, func(v volume, a []string) error {
		mode, err := strconv.ParseUint(a[1], 8, 12)
		if err != nil {
			return err
		}
		m := uint32(mode)
		return on(v, a[0], func(h fs.Handle) error {
			_, err := v.Setattr(root, h, &fs.SetAttr{Mode: &m}, nil)
			return err
		})
	}},
	"allocate": {3, func(v volume, a []string) error {
		return ranged(v, a, func(h fs.Handle, off, n uint64) error { return v.Allocate(root, h, off, n) })
	}},
	"punch": {3, func(v volume, a []string) error {
		return ranged(v, a, func(h fs.Handle, off, n uint64) error { return v.PunchHole(root, h, off, n) })
	}},
	"zero": {3, func(v volume, a []string) error {
		return ranged(v, a, func(h fs.Handle, off, n uint64) error { return v.ZeroRange(root, h, off, n) })
	}},
	"setxattr": {3, func(v volume, a []string) error {
		return on(v, a[0], func(h fs.Handle) error { return v.SetXattr(h, []byte(a[1]), []byte(a[2]), false, false) })
	}},
	"removexattr": {2, func(v volume, a []string) error {
		return on(v, a[0], func(h fs.Handle) error { return v.RemoveXattr(h, []byte(a[1])) })
	}},
	"setlist":    {2, func(v volume, a []string) error { return setLists(v, a[0], a[1], nothing, true, false) }},
	"setdefault": {2, func(v volume, a []string) error { return setLists(v, a[0], nothing, a[1], false, true) }},
	"setlists":   {3, func(v volume, a []string) error { return setLists(v, a[0], a[1], a[2], true, true) }},
	"setflags": {2, func(v volume, a []string) error {
		flags, err := parseFlags(a[1])
		if err != nil {
			return err
		}
		return on(v, a[0], func(h fs.Handle) error { return v.SetFlags(root, h, flags) })
	}},
	"commit": {1, func(v volume, a []string) error {
		return on(v, a[0], func(h fs.Handle) error {
			_, err := v.Commit(h, 0, 0)
			return err
		})
	}},
	"fsync": {1, func(v volume, a []string) error { // of the mount, which has one order of all changes
		return on(v, a[0], func(fs.Handle) error { return v.Sync() })
	}},
	"sync": {0, func(v volume, _ []string) error { return v.Sync() }},
	string(grow): {0, func(v volume, _ []string) error {
		_, err := v.Grow(context.Background(), fs.GrowOptions{})
		return err
	}},
}

// Parse reads steps, one a line. Empty lines and those that begin with # count for nothing. There has to be one, and
// each has to be possible where it stands.
func Parse(text string) ([]Step, error) {
	steps, err := parse(text)
	if err != nil {
		return nil, err
	}
	if len(steps) == 0 {
		return nil, errors.New("there are no steps")
	}
	if i := refused(steps); i >= 0 {
		return nil, fmt.Errorf("the step %q is refused where it stands: for a name that is there, or one that is not, "+
			"by flags, or as it is done once", steps[i])
	}
	return steps, nil
}

// parse reads steps, whatever they are.
func parse(text string) ([]Step, error) {
	var steps []Step
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		k, ok := kinds[words[0]]
		if !ok {
			return nil, fmt.Errorf("line %d: there is no step %q: give one of %s", i+1, words[0],
				strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
		}
		if len(words)-1 != k.args {
			return nil, fmt.Errorf("line %d: %s: %d words stand behind it, not %d", i+1, words[0], len(words)-1, k.args)
		}
		if err := bounded(words); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		steps = append(steps, Step(strings.Join(words, " ")))
	}
	return steps, nil
}

// mostBytes is the largest range of bytes of a step: one that a transaction takes at once.
const mostBytes = 256 << 10

// bounded looks at the numbers, lists, and flags of a step.
func bounded(words []string) error {
	switch words[0] {
	case "write", "unstable", "allocate", "punch", "zero":
		n, err := numbers(words[2:])
		if err == nil && n[1] > mostBytes {
			err = fmt.Errorf("a step has at most %d bytes", mostBytes)
		}
		return err
	case "truncate":
		_, err := numbers(words[2:])
		return err
	case "chmod":
		if _, err := strconv.ParseUint(words[2], 8, 12); err != nil {
			return fmt.Errorf("%q is no mode in octal", words[2])
		}
	case "setlist", "setdefault", "setlists":
		for _, w := range words[2:] {
			if _, err := parseList(w); err != nil {
				return err
			}
		}
	case "setflags":
		_, err := parseFlags(words[2])
		return err
	}
	return nil
}

// name is the first word of a step.
func (s Step) name() string {
	name, _, _ := strings.Cut(string(s), " ")
	return name
}

// do does a step.
func (s Step) do(v volume) error {
	words := strings.Fields(string(s))
	return kinds[words[0]].do(v, words[1:])
}

// mounted tells whether a sequence is that of a local mount: nothing is durable before it is asked for.
func mounted(steps []Step) bool {
	for _, s := range steps {
		if local[s.name()] {
			return true
		}
	}
	return false
}

// alone tells whether no one of several clients does a step.
func (s Step) alone() bool { return s == grow || local[s.name()] && s.name() != "setflags" }

// promises tells whether what was done is durable when the step has returned.
func (s Step) promises(mounted bool) bool {
	switch s.name() {
	case "commit", "fsync", "sync":
		return true
	case "unstable", string(grow): // to grow is no change of a file, and waits for none
		return false
	}
	return !mounted
}

// find looks a path up.
func find(v volume, path string) (fs.Handle, error) {
	h := v.Root()
	for name := range strings.SplitSeq(path, "/") {
		x, err := v.Lookup(root, h, []byte(name))
		if err != nil {
			return h, err
		}
		h = x.Handle
	}
	return h, nil
}

// on does something with the file of a path.
func on(v volume, path string, do func(fs.Handle) error) error {
	h, err := find(v, path)
	if err != nil {
		return err
	}
	return do(h)
}

// within does something with the directory of a path, and its last name.
func within(v volume, path string, do func(dir fs.Handle, name []byte) error) error {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return do(v.Root(), []byte(path))
	}
	return on(v, path[:i], func(dir fs.Handle) error { return do(dir, []byte(path[i+1:])) })
}

// ranged does something with bytes of a file.
func ranged(v volume, a []string, do func(h fs.Handle, off, n uint64) error) error {
	n, err := numbers(a[1:])
	if err != nil {
		return err
	}
	return on(v, a[0], func(h fs.Handle) error { return do(h, n[0], n[1]) })
}

// write writes bytes that tell where they belong and that no other write of the sequence has.
func write(v volume, a []string, how fs.Stability) error {
	return ranged(v, a, func(h fs.Handle, off, n uint64) error {
		b := make([]byte, n)
		r := rand.New(rand.NewPCG(off, n))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		k, _, _, err := v.Write(root, h, off, b, how)
		if err == nil && uint64(k) != n {
			err = fmt.Errorf("%d of %d bytes were written", k, n)
		}
		return err
	})
}

func numbers(words []string) (n []uint64, err error) {
	for _, w := range words {
		x, err := strconv.ParseUint(w, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%q is no number of bytes", w)
		}
		n = append(n, x)
	}
	return n, nil
}
