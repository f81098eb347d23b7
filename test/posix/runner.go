//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// runner runs checks, one after the other, each in a directory of its own.
type runner struct {
	base   string // where the checks' directories are made; removed at the end
	tags   map[string]bool
	actors map[string]*actor
	checks int // run so far

	// of the check under way
	dir     string // its directory
	dirFD   int
	handles map[string]int    // open files of who is at work
	mapped  map[string][]byte // memory maps
	marks   map[string]times  // time stamps noted
}

// newRunner makes a directory for the checks in dir. far is a process on another host, or 0.
func newRunner(dir string, tags map[string]bool, far int) (*runner, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	base, err := os.MkdirTemp(dir, "posix-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(base, 0o755); err != nil {
		return nil, err
	}
	r := &runner{base: base, tags: tags, actors: map[string]*actor{}}
	for _, u := range users {
		if u.uid != 0 && os.Getuid() != 0 {
			continue
		}
		a, err := newActor(u, far)
		if err != nil {
			return nil, err
		}
		r.actors[u.name] = a
	}
	return r, os.WriteFile(r.clock(), nil, 0o600)
}

func (r *runner) stop() {
	for _, a := range r.actors {
		a.stop()
	}
	if err := os.RemoveAll(r.base); err != nil {
		fmt.Println("# left behind:", err)
	}
}

// clock is the file whose time stamps tell the server's time.
func (r *runner) clock() string { return filepath.Join(r.base, "clock") }

// mismatch is an operation that succeeded and delivered something else than expected.
type mismatch struct{ want, got string }

func (m *mismatch) Error() string { return "expected " + m.want + ", got " + m.got }

// run runs the lines of c that are for this file system, and describes the
// ones that failed. ran is false if there are none.
func (r *runner) run(c *check) (problems []string, ran bool) {
	if c.only != "" && !r.tags[c.only] || os.Getuid() != 0 && (c.only == "" || c.needsRoot()) {
		return nil, false
	}
	if err := r.enter(); err != nil {
		return []string{err.Error()}, true
	}
	for _, l := range c.lines {
		if l.tag != "" && !r.tags[l.tag] {
			continue
		}
		ran = true
		p := r.step(l)
		for late := time.Now().Add(patience); p != "" && l.soon && r.tags["late"] && time.Now().Before(late); {
			p = r.step(l)
		}
		if p != "" {
			problems = append(problems, fmt.Sprintf("line %d: %s: %s", l.number, abridge(l.text), p))
		}
	}
	if err := r.leave(); err != nil {
		problems = append(problems, err.Error())
	}
	return problems, ran
}

// step does a line and says what is wrong with the outcome, if anything.
func (r *runner) step(l line) string {
	a, o := r.actors[l.user], operations[l.op]
	_, begins := waitOperations[l.op]
	_, told := waiterOperations[l.op]
	act := func() error {
		if a.check != r.checks {
			if err := r.come(a); err != nil {
				return err
			}
		}
		r.handles = a.handles
		return o.do(r, a, l.args)
	}
	var err error
	switch {
	case told:
		err = o.do(r, a, l.args)
	case a.waits:
		err = errWaits
	case begins:
		err = a.begin(act)
	default:
		a.do(func() { err = act() })
	}
	got := "ok"
	var e unix.Errno
	var m *mismatch
	switch {
	case err == nil:
	case errors.As(err, &e):
		got = errnoName(e)
	case err == errBus:
		got = bus
	case errors.As(err, &m) && slices.Equal(l.want, []string{"ok"}):
		return m.Error()
	default:
		got = err.Error()
	}
	if slices.Contains(l.want, got) {
		return ""
	}
	return "expected " + strings.Join(l.want, " or ") + ", got " + got
}

// come brings the actor, on its thread, to the check's directory.
func (r *runner) come(a *actor) (err error) {
	if a.apart { // the number of a descriptor says nothing to it
		err = unix.Chdir(r.dir)
	} else {
		err = unix.Fchdir(r.dirFD)
	}
	if err == nil {
		a.check = r.checks
	}
	return err
}

// enter makes the directory of the next check, writable for everybody.
func (r *runner) enter() error {
	r.checks++
	r.dir = filepath.Join(r.base, strconv.Itoa(r.checks))
	r.mapped, r.marks = map[string][]byte{}, map[string]times{}
	shared := map[string]int{}
	for _, a := range r.actors {
		a.handles = shared
		if a.apart {
			a.handles = map[string]int{}
		}
	}
	if err := os.Mkdir(r.dir, 0o777); err != nil {
		return err
	}
	if err := os.Chmod(r.dir, 0o777); err != nil {
		return err
	}
	fd, err := unix.Open(r.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	r.dirFD = fd
	return os.NewSyscallError("open", err)
}

// leave closes and removes everything the check left.
func (r *runner) leave() error {
	var late error
	for _, a := range r.actors {
		late = errors.Join(late, a.giveUp())
	}
	for _, m := range r.mapped {
		unix.Munmap(m)
	}
	for _, a := range r.actors {
		a.do(func() {
			for h, fd := range a.handles {
				unix.Close(fd)
				delete(a.handles, h)
			}
			if a.apart { // it would keep the last check's directory
				unix.Chdir("/")
			}
		})
		if a.umask {
			a.do(func() { unix.Umask(0) })
			a.umask = false
		}
	}
	unix.Close(r.dirFD)
	if err := os.RemoveAll(r.dir); err != nil {
		late = errors.Join(late, fmt.Errorf("cleaning up: %w", err))
	}
	return late
}

// abridge shortens a line with long names in it.
func abridge(s string) string {
	if len(s) > 120 {
		return s[:100] + "..." + s[len(s)-15:]
	}
	return s
}
