//go:build linux

package mount

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tansy/test/kit/mounttest"
)

var (
	rounds = flag.Int("rounds", 3, "how often the process of a mount is killed")
	seed   = flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of the load")
)

// A worker changes a directory by one system call after the other, and remembers what the directory was after each.
type worker struct {
	dir    string
	random *rand.Rand

	mu     sync.Mutex
	states [][32]byte // after each change that was begun
	done   int        // changes that have returned
	synced int        // changes that are durable
	enough int        // changes after which reached is closed
	files  map[string]string

	reached chan struct{}
}

// picture is what the directory is, for comparison.
func picture(files map[string]string) (sum [32]byte) {
	for name, data := range files {
		one := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", len(name), name, data))
		for i := range sum {
			sum[i] ^= one[i]
		}
	}
	return sum
}

// step makes one call, which makes the changes of the files, in this order. It is false if the process of the mount is
// gone.
func (w *worker) step(call func() error, changes ...func()) bool {
	w.mu.Lock()
	for _, change := range changes {
		change()
		w.states = append(w.states, picture(w.files))
	}
	w.mu.Unlock()
	if err := call(); err != nil {
		return false
	}
	w.mu.Lock()
	if w.done < w.enough && w.enough <= len(w.states) {
		close(w.reached)
	}
	w.done = len(w.states)
	w.mu.Unlock()
	return true
}

// page is the size of the kernel's pages, in bytes.
var page = os.Getpagesize()

// appends are the changes of a write that appends data to file f. The kernel asks for what lies in a page that it does
// not have first, and then for the rest.
func (w *worker) appends(f, data string) (changes []func()) {
	for rest, size := data, len(w.files[f]); rest != ""; {
		n := min(len(rest), page-size%page)
		piece := rest[:n]
		changes = append(changes, func() { w.files[f] += piece })
		rest, size = rest[n:], size+n
	}
	return changes
}

// run works until the process is gone; others are the workers of the volume.
func (w *worker) run(others []*worker) {
	p := func(name string) string { return filepath.Join(w.dir, name) }
	for i := 0; ; i++ {
		f, g, data := fmt.Sprint("f", w.random.IntN(20)), fmt.Sprint("g", w.random.IntN(5)), fmt.Sprint("data ", i,
			make([]int, w.random.IntN(3000)))
		var fd int
		ok := w.step(func() (err error) {
			fd, err = unix.Open(p(f), unix.O_CREAT|unix.O_TRUNC|unix.O_RDWR|unix.O_APPEND, 0o644)
			return err
		}, func() { w.files[f] = "" })
		for range 1 + w.random.IntN(3) {
			ok = ok && w.step(func() error {
				_, err := unix.Write(fd, []byte(data))
				return err
			}, w.appends(f, data)...)
		}
		if ok && w.random.IntN(2) == 0 {
			before := make([]int, len(others))
			for i, o := range others {
				o.mu.Lock()
				before[i] = o.done
				o.mu.Unlock()
			}
			if ok = unix.Fsync(fd) == nil; ok { // what all have done before is durable
				for i, o := range others {
					o.mu.Lock()
					o.synced = max(o.synced, before[i])
					o.mu.Unlock()
				}
			}
		}
		if ok && w.random.IntN(2) == 0 { // over something, which is open now and then
			ok = w.step(func() error { return unix.Rename(p(f), p(g)) }, func() { w.files[g] = w.files[f]; delete(w.files, f) })
		} else if ok && w.random.IntN(2) == 0 {
			ok = w.step(func() error { return unix.Unlink(p(f)) }, func() { delete(w.files, f) })
		}
		unix.Close(fd)
		if !ok {
			return
		}
	}
}

// check fails the test unless the directory is what it was after one of the changes, none of which is before the last
// that is durable.
func (w *worker) check(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(w.dir)
	must(t, err)
	found := map[string]string{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(w.dir, e.Name()))
		must(t, err)
		found[e.Name()] = string(b)
	}
	now := picture(found)
	for n := len(w.states); n >= w.synced; n-- {
		if n == 0 && len(found) == 0 || n > 0 && w.states[n-1] == now {
			t.Logf("%s: %d changes of %d are there; %d were durable", filepath.Base(w.dir), n, len(w.states), w.synced)
			return
		}
	}
	t.Errorf("%s: %d files are those after none of the changes %d to %d (-seed %d)",
		filepath.Base(w.dir), len(found), w.synced, len(w.states), *seed)
}

// The process of a mount is killed while several others work: what was fsync'ed, by whomever, and all that was done
// before is there, and for each of them it is a beginning of what it did.
func TestKill(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "256M")
	random := rand.New(rand.NewPCG(*seed, 0))
	for round := range *rounds {
		m := mounttest.New(t, bin, image)
		var all []*worker
		for i := range 4 {
			w := &worker{dir: filepath.Join(m.Dir, fmt.Sprintf("round%d-%d", round, i)), files: map[string]string{},
				random: rand.New(rand.NewPCG(*seed, uint64(4*round+i+1)))}
			must(t, os.Mkdir(w.dir, 0o755))
			w.enough, w.reached = 20+random.IntN(200), make(chan struct{})
			all = append(all, w)
		}
		d, err := os.Open(m.Dir)
		must(t, err)
		must(t, d.Sync())
		d.Close()
		var working sync.WaitGroup
		for _, w := range all {
			working.Go(func() { w.run(all) })
		}
		<-all[0].reached
		m.Kill()
		working.Wait()
		must(t, unix.Unmount(m.Dir, unix.MNT_DETACH))
		mounttest.Run(t, bin, "check", image, "--data")
		again := mounttest.New(t, bin, image)
		for _, w := range all {
			w.dir = filepath.Join(again.Dir, filepath.Base(w.dir))
			w.check(t)
		}
		again.Unmount(t, bin, image)
	}
}
