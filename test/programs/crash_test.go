//go:build linux

// Package programs runs real programs on a mounted volume, and ends the process of the mount or of the server, or the
// power of its device, at random instants. After each crash the programs check what is there by themselves, and all
// that they have reported as durable must be there. README's table of tests and docs/evidence/programs.md say what was
// run.
//
//	go test ./test/programs -crashes 100 -timeout 2h
//	go test ./test/programs -run Crashes/sqlite/cut -seed 7 -v
//	CRASHES=20 test/linux/run programs
package programs

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tansy/test/kit/mounttest"
)

var (
	crashes = flag.Int("crashes", 3, "rounds of each kind of crash, for each program")
	seed    = flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of loads and crashes")
)

// A program stores something in a directory, and says of what it is durable.
type program interface {
	// prepare is done once, in an empty directory.
	prepare(dir string) error
	// flags are those of the next mount.
	flags(round int) []string
	// work goes on until the file system is gone or ctx is done, and returns why it ended. It calls reported when the
	// program has reported something more as durable, which counts if that returns true.
	work(ctx context.Context, dir string, r *rand.Rand, reported func() bool) error
	// check has the program check itself, and looks for all that it has reported.
	check(ctx context.Context, dir string) error
	// String tells how much that was.
	String() string
}

// programs return what makes one for each volume, or skip the test.
var programs = map[string]func(t *testing.T, seed uint64) func() program{
	"sqlite":     newSqlite,
	"postgresql": newPostgres,
	"git":        newGit,
	"bbolt":      newBbolt,
	"maildir":    newMaildir,
	"tar":        newTar,
}

// A storage holds the volume, and knows a kind of crash.
type storage interface {
	// volume is what tansy is told.
	volume() string
	// due is closed at a random instant of what comes now, which may be counted in reports.
	due(r *rand.Rand, soon bool) (crash <-chan struct{}, reported func())
	// crash is called when the process of the mount has ended: what next one finds is what the crash left.
	crash(r *rand.Rand)
}

// few is a number from 1 to most, small ones as likely as large ones.
func few(r *rand.Rand, most float64) uint64 { return uint64(math.Exp(r.Float64() * math.Log(most))) }

// A killing is an image, of which the host loses nothing when the process is killed.
type killing string

func (k killing) volume() string { return string(k) }

func (k killing) crash(*rand.Rand) {}

func (k killing) due(r *rand.Rand, soon bool) (<-chan struct{}, func()) {
	due := make(chan struct{})
	crash := func() { close(due) }
	after := time.Duration(r.IntN(30)) * time.Millisecond // any instant of what comes then
	if soon {
		time.AfterFunc(after, crash)
		return due, func() {}
	}
	var left atomic.Int64
	left.Store(int64(few(r, 60)))
	return due, func() {
		if left.Add(-1) == 0 {
			time.AfterFunc(after, crash)
		}
	}
}

// A campaign is a program, its volume, and what goes wrong with it.
type campaign struct {
	bin, dir string
	program
	storage
	nfs     bool // mounted by the kernel's client from tansy serve, not by tansy mount
	random  *rand.Rand
	crashes int
}

// errEarly is that a program stopped before the crash.
var errEarly = errors.New("the program stopped by itself")

// mount mounts the volume.
func (c *campaign) mount(round int) (*mounttest.Mount, error) {
	if c.nfs {
		return c.mountNFS()
	}
	m, err := mounttest.Start(c.bin, c.volume(), c.dir, append(c.flags(round), "--allow-other", "--cache", "32M")...)
	if err != nil {
		err = fmt.Errorf("mount: %w", err)
	}
	return m, err
}

// end ends the process of a mount at once, and waits for the programs that were at work there: wait returns when they
// have ended.
func (c *campaign) end(m *mounttest.Mount, wait func()) error {
	if c.nfs {
		return c.endNFS(m, wait)
	}
	m.Kill()
	wait() // what goes on fails; where nothing is mounted any more it would find an empty folder
	syscall.Unmount(c.dir, syscall.MNT_DETACH)
	return nil
}

// tansy runs a command.
func (c *campaign) tansy(args ...string) error {
	if out, err := exec.Command(c.bin, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("tansy %v: %w\n%s", args, err, out)
	}
	return nil
}

// mounted has something done while the volume is mounted.
func (c *campaign) mounted(round int, do func(dir string) error) error {
	m, err := c.mount(round)
	if err != nil {
		return err
	}
	if err = do(c.dir); err == nil {
		err = c.unmount(m)
	}
	if err != nil {
		err = errors.Join(err, c.end(m, func() {}))
	}
	return err
}

// unmount unmounts, and waits until the volume is closed.
func (c *campaign) unmount(m *mounttest.Mount) error {
	if c.nfs {
		return c.unmountNFS(m)
	}
	if err := c.tansy("umount", c.dir); err != nil {
		return err
	}
	if code := m.Wait(); code != 0 { // of a device elsewhere umount cannot say when it is closed
		return fmt.Errorf("the mount ended with exit code %d\n%s", code, &m.Log)
	}
	return nil
}

// round has the program work until a crash, and whoever comes then find what it left.
func (c *campaign) round(round int) error {
	if err := c.until(round, false, func(ctx context.Context, reported func() bool) error {
		r := rand.New(rand.NewPCG(c.random.Uint64(), 1))
		return fmt.Errorf("%w: %w", errEarly, c.work(ctx, c.dir, r, reported))
	}); err != nil {
		return err
	}
	for c.random.IntN(3) == 0 { // the program's recovery is cut short, too
		if err := c.until(round, true, func(ctx context.Context, _ func() bool) error { return c.check(ctx, c.dir) }); err != nil {
			return err
		}
	}
	if c.random.IntN(3) == 0 {
		if err := c.interrupted(round); err != nil {
			return err
		}
	}
	if err := c.tansy("check", c.volume(), "--data"); err != nil {
		return err
	}
	return c.mounted(round, func(dir string) error {
		if err := c.check(context.Background(), dir); err != nil {
			return fmt.Errorf("after the crash: %w", err)
		}
		return nil
	})
}

// until has something done until a crash, which comes soon, or at the end of it.
func (c *campaign) until(round int, soon bool, do func(ctx context.Context, reported func() bool) error) error {
	m, err := c.mount(round)
	if err != nil {
		return err
	}
	due, count := c.due(c.random, soon)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var before sync.Mutex
	over := false
	ended := make(chan error, 1)
	go func() {
		ended <- do(ctx, func() bool {
			before.Lock()
			defer before.Unlock()
			if !over {
				count()
			}
			return !over
		})
	}()
	if c.nfs && !soon {
		select {
		case <-due: // they wait for the server, and go on
			before.Lock()
			if m, err = c.restartNFS(m); err == nil {
				due, count = c.due(c.random, soon)
			}
			before.Unlock()
		case early := <-ended: // looked at below
			ended <- early
		}
	}
	wait := func() {}
	select {
	case <-due:
		// The programs live on, other than those of a machine that goes down, and their words count no more: SQLite
		// says that a transaction is durable when it cannot even open the folder that it has to sync for that.
		before.Lock()
		over = true
		before.Unlock()
		wait = func() {
			stop()
			<-ended
		}
	case early := <-ended:
		if early != nil {
			err = fmt.Errorf("%w\n%s", early, &m.Log)
		}
	}
	if err = errors.Join(err, c.end(m, wait)); err != nil {
		return err
	}
	c.crash(c.random)
	c.crashes++
	return nil
}

// interrupted has a crash come while the volume is mounted, which may be during its recovery.
func (c *campaign) interrupted(round int) error {
	due, _ := c.due(c.random, true)
	args := append([]string{"mount", c.volume(), c.dir}, c.flags(round)...)
	if c.nfs {
		args = []string{"serve", "--volume", c.volume(), "--listen", "127.0.0.1:0"}
	}
	mount := exec.Command(c.bin, args...)
	out, err := mount.StdoutPipe()
	if err != nil {
		return err
	}
	if err := mount.Start(); err != nil {
		return err
	}
	mounted := make(chan struct{})
	go func() {
		out.Read(make([]byte, 1))
		close(mounted)
	}()
	select {
	case <-due:
	case <-mounted:
	}
	mount.Process.Kill()
	mount.Wait()
	syscall.Unmount(c.dir, syscall.MNT_DETACH)
	c.crash(c.random)
	c.crashes++
	return nil
}

// start makes a campaign, whose seed is that of the test and of its name.
func start(t *testing.T, bin string, p program, s storage, nfs bool) *campaign {
	h := fnv.New64()
	h.Write([]byte(t.Name()))
	c := &campaign{bin: bin, dir: folder(t), program: p, storage: s, nfs: nfs,
		random: rand.New(rand.NewPCG(*seed, h.Sum64()))}
	t.Cleanup(func() { syscall.Unmount(c.dir, syscall.MNT_DETACH) })
	if err := errors.Join(c.tansy("mkfs", c.volume(), "--force", "--size", fmt.Sprint(size)), c.mounted(0, c.prepare)); err != nil {
		t.Fatal(err)
	}
	return c
}

// run does the rounds.
func (c *campaign) run(t *testing.T) {
	for round := range rounds() {
		if err := c.round(round); err != nil {
			t.Fatalf("round %d, -seed %d: %v", round, *seed, err)
		}
	}
	t.Logf("%d crashes: %v", c.crashes, c.program)
}

// size is that of a volume, in bytes.
const size = 512 << 20

// kinds are those of crashes.
var kinds = map[string]func(t *testing.T) storage{
	"kill": func(t *testing.T) storage { return killing(filepath.Join(t.TempDir(), "image")) },
	"cut":  func(t *testing.T) storage { return newCutting(t) },
}

// folder is one that other users may enter.
func folder(t *testing.T) string {
	dir, err := os.MkdirTemp("", "programs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// rounds is how often each program is crashed in each way, at least.
func rounds() int {
	if testing.Short() {
		return 1
	}
	return *crashes
}

// Nothing is lost that a program has reported, and nothing is torn.
func TestCrashes(t *testing.T) {
	bin := mounttest.Build(t)
	t.Logf("-seed %d", *seed)
	for name, prepared := range programs {
		t.Run(name, func(t *testing.T) {
			newProgram := prepared(t, *seed)
			for kind, newStorage := range kinds {
				t.Run(kind, func(t *testing.T) {
					t.Parallel()
					start(t, bin, newProgram(), newStorage(t), false).run(t)
				})
			}
		})
	}
}
