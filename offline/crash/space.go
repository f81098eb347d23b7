package crash

import (
	"fmt"
	"strings"
)

// The name space of the sequences. At the start there are the files foo and A/foo, with contents, and an attribute; the
// directories A and B; and a link L. bar, A/bar, B/foo, C, and A/C are not there.
var (
	files = []string{"foo", "bar", "A/foo", "A/bar", "B/foo"}
	dirs  = []string{"A", "B", "C", "A/C", "B/C"}
)

// first are the steps that make what there is at the start.
var first = []Step{
	"mkdir A", "mkdir B", "create foo", "create A/foo", "write foo 0 9000", "write A/foo 0 70000", "symlink foo L",
	"setxattr foo user.a old", "setxattr A/foo user.a old",
}

// Lists of the sequences. What is made in a directory with defaultList has the same mode as elsewhere; with narrowList
// it has another.
const (
	firstList   = "u::rw-,u:7:rw-,g::r--,m::rw-,o::r--"
	otherList   = "u::rw-,u:8:r--,g::r--,g:9:rwx,m::r--,o::---"
	plainList   = "u::rw-,g::r--,o::---" // no more than a mode
	defaultList = "u::rwx,u:7:rwx,g::r-x,m::r-x,o::r-x"
	narrowList  = "u::rwx,g::r-x,g:9:rwx,m::r-x,o::---"
)

// firstLists are the steps that come behind those on a volume that has lists at the start. What is made in A has one.
var firstLists = []Step{
	"setlist foo " + firstList, "setlist A/foo " + firstList, "setlists A " + defaultList + " " + defaultList,
}

// operation is what one place of a sequence has: a step, perhaps with the COMMIT of what it wrote, and the file that an
// fsync after it is of.
type operation struct {
	steps []Step
	file  string
}

// operations are those of NFS, or of a mount.
func operations(mounted bool) (ops []operation) {
	add := func(file, format string, a ...any) {
		ops = append(ops, operation{[]Step{Step(fmt.Sprintf(format, a...))}, file})
	}
	for _, f := range files {
		add(f, "create %s", f)
		add("A", "remove %s", f)
		add("A", "symlink target/of/link %s", f)
		for _, to := range files {
			if f != to {
				add(to, "link %s %s", f, to)
				add(to, "rename %s %s", f, to)
			}
		}
	}
	add("A", "mknod bar")
	add("A", "remove L")
	for _, d := range dirs {
		add("A", "mkdir %s", d)
		add("A", "rmdir %s", d)
		for _, to := range dirs {
			if d != to {
				add("A", "rename %s %s", d, to)
			}
		}
	}
	ops = append(ops, ofLists()...)
	if mounted {
		ops = append(ops, ofFlags()...)
	}
	for _, f := range []string{"foo", "A/foo"} {
		for _, at := range []string{"9000 3000", "100 50", "4000 200", "0 4096", "30000 5000", "0 65536"} {
			add(f, "write %s %s", f, at)
			if unstable := Step("unstable " + f + " " + at); !mounted {
				ops = append(ops, operation{[]Step{unstable}, f}, operation{[]Step{unstable, Step("commit " + f)}, f})
			}
		}
		for _, size := range []int{0, 2500, 4096, 9000, 100_000} {
			add(f, "truncate %s %d", f, size)
		}
		add(f, "chmod %s 600", f)
		if mounted {
			ops = append(ops, ofMounts(f)...)
		}
	}
	return ops
}

// ofLists are the operations on access lists, some of them two steps: a volume that has no lists at the start would see
// no mode of a file with one, and nothing that inherits one.
func ofLists() (ops []operation) {
	add := func(file string, steps ...Step) { ops = append(ops, operation{steps, file}) }
	set := func(how, file, lists string) Step { return Step(how + " " + file + " " + lists) }
	for _, f := range []string{"foo", "A/foo"} {
		for _, list := range []string{firstList, otherList, plainList, nothing} {
			add(f, set("setlist", f, list))
		}
		add(f, set("setlist", f, otherList), Step("chmod "+f+" 640"))
	}
	for _, d := range []string{"A", "B"} {
		for _, list := range []string{defaultList, narrowList, nothing} {
			add(d, set("setdefault", d, list))
		}
		add(d, set("setlists", d, otherList+" "+narrowList))
		add(d, set("setlists", d, nothing+" "+nothing))
	}
	add("A", set("setdefault", "A", narrowList), "create A/bar")
	add("A", set("setdefault", "A", narrowList), "mkdir A/C")
	add("B", set("setdefault", "B", narrowList), "create B/foo")
	return ops
}

// ofFlags are the operations on flags. Of A and of foo they forbid what comes after them.
func ofFlags() (ops []operation) {
	for _, s := range []string{"foo i", "foo a", "foo d", "foo -", "A/foo a", "A i", "A a", "A -"} {
		file, _, _ := strings.Cut(s, " ")
		ops = append(ops, operation{[]Step{Step("setflags " + s)}, file})
	}
	return ops
}

// ofMounts are the operations on a file that NFS does not have.
func ofMounts(file string) (ops []operation) {
	steps := []string{"setxattr %s user.a new", "setxattr %s user.b new", "removexattr %s user.a"}
	for _, how := range []string{"allocate", "punch", "zero"} {
		for _, at := range []string{"0 4096", "3000 3000", "8192 20000"} {
			steps = append(steps, how+" %s "+at)
		}
	}
	for _, s := range steps {
		ops = append(ops, operation{[]Step{Step(fmt.Sprintf(s, file))}, file})
	}
	return ops
}

// sequences are all of a length, each by a number. Behind each operation of a mount comes nothing, an fsync of its
// file, or a sync; behind the last never nothing.
type sequences struct {
	length     int
	nfs, mount []operation
}

func space(length int) sequences { return sequences{length, operations(false), operations(true)} }

// placements are the ways to go on after an operation of a mount.
const placements = 3

func power(n uint64, k int) uint64 {
	p := uint64(1)
	for range k {
		p *= n
	}
	return p
}

// sizes are the numbers of sequences of NFS and of a mount.
func (s sequences) sizes() (nfs, mount uint64) {
	return power(uint64(len(s.nfs)), s.length),
		power(uint64(len(s.mount))*placements, s.length) / placements * (placements - 1)
}

func (s sequences) size() uint64 {
	nfs, mount := s.sizes()
	return nfs + mount
}

// at is sequence n.
func (s sequences) at(n uint64) (steps []Step) {
	nfs, _ := s.sizes()
	if n < nfs {
		for range s.length {
			steps = append(steps, s.nfs[n%uint64(len(s.nfs))].steps...)
			n /= uint64(len(s.nfs))
		}
		return steps
	}
	n -= nfs
	for i := range s.length {
		x := s.mount[n%uint64(len(s.mount))]
		n /= uint64(len(s.mount))
		steps = append(steps, x.steps...)
		ways, least := uint64(placements), uint64(0)
		if i == s.length-1 {
			ways, least = placements-1, 1
		}
		switch n%ways + least {
		case 1:
			steps = append(steps, Step("fsync "+x.file))
		case 2:
			steps = append(steps, "sync")
		}
		n /= ways
	}
	return steps
}
