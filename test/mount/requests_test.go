//go:build linux

package mount

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	tansymount "tansy/mount"
	"tansy/test/kit/mounttest"
)

// A task is what a program does with one file, by its system calls, and what the kernel may ask for it.
type task struct {
	name    string
	prepare func(t *testing.T, path string) // is not counted
	do      func(t *testing.T, path string)
	asks    map[string]int // requests for one file
	noXattr map[string]int // of which there are fewer, on a mount without extended attributes
}

const some = 1000 // bytes of a file

// fileOf makes a file with something in it.
func fileOf(t *testing.T, path string) { must(t, os.WriteFile(path, make([]byte, some), 0o644)) }

// opened calls do with an open file, and closes it.
func opened(t *testing.T, path string, flags int, mode uint32, do func(fd int)) {
	t.Helper()
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, mode)
	must(t, err)
	do(fd)
	must(t, unix.Close(fd))
}

// written writes something at an offset.
func written(t *testing.T, fd int, at int64) {
	t.Helper()
	if n, err := unix.Pwrite(fd, make([]byte, some), at); err != nil || n != some {
		t.Fatal(n, err)
	}
}

// readAll reads all of a file, as cat(1) does.
func readAll(t *testing.T, path string) {
	t.Helper()
	opened(t, path, unix.O_RDONLY, 0, func(fd int) {
		for b, n := make([]byte, 1<<17), 1; n > 0; {
			var err error
			n, err = unix.Read(fd, b)
			must(t, err)
		}
	})
}

// unpack is what GNU tar does with a file, as root or not.
func unpack(asRoot bool) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		opened(t, path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOCTTY|unix.O_NONBLOCK, 0o600, func(fd int) {
			written(t, fd, 0)
			times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: 1e9}}
			must(t, unix.UtimesNanoAt(unix.AT_FDCWD, fmt.Sprint("/proc/self/fd/", fd), times, 0))
			if asRoot {
				must(t, unix.Fchown(fd, 0, 0))
				must(t, unix.Fchmod(fd, 0o644))
			}
		})
	}
}

// rollback is what SQLite does with a rollback journal, and its database, in a transaction.
func rollback(t *testing.T, path string) {
	opened(t, path+"-journal", unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW, 0o644, func(fd int) {
		for i := range 3 {
			written(t, fd, int64(i*some))
		}
		must(t, unix.Fdatasync(fd))
	})
	must(t, unix.Unlink(path+"-journal"))
}

// object is what git does with an object: a file of another name first.
func object(t *testing.T, path string) {
	opened(t, path+".tmp", unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, 0o444, func(fd int) { written(t, fd, 0) })
	must(t, unix.Rename(path+".tmp", path))
}

// duplicate is what cp does.
func duplicate(t *testing.T, path string) {
	opened(t, path, unix.O_RDONLY, 0, func(from int) {
		opened(t, path+".copy", unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o644, func(to int) {
			for n := 1; n > 0; {
				var err error
				n, err = unix.CopyFileRange(from, nil, to, nil, 1<<30, 0)
				must(t, err)
			}
		})
	})
}

// tasks are in the order in which they are done, each in a folder of its own.
var tasks = []task{
	{
		name: "unpack as root", do: unpack(true),
		asks:    map[string]int{"GETATTR": 1, "LOOKUP": 1, "MKNOD": 1, "WRITE": 1, "SETATTR": 3, "GETXATTR": 2},
		noXattr: map[string]int{"GETXATTR": 0},
	},
	{
		name: "unpack", do: unpack(false),
		asks:    map[string]int{"GETATTR": 1, "LOOKUP": 1, "MKNOD": 1, "WRITE": 1, "SETATTR": 1, "GETXATTR": 1},
		noXattr: map[string]int{"GETXATTR": 0},
	},
	{
		name: "first look", prepare: fileOf,
		do:   func(t *testing.T, path string) { must(t, unix.Lstat(path, new(unix.Stat_t))) },
		asks: map[string]int{"GETATTR": 1}, // the size has changed since the kernel was told
	},
	{
		name: "another look", prepare: func(t *testing.T, path string) {
			fileOf(t, path)
			must(t, unix.Lstat(path, new(unix.Stat_t)))
		},
		do: func(t *testing.T, path string) { must(t, unix.Lstat(path, new(unix.Stat_t))) },
	},
	{
		name: "read", prepare: func(t *testing.T, path string) {
			fileOf(t, path)
			readAll(t, path)
		},
		do: readAll,
	},
	{
		name: "copy", prepare: fileOf, do: duplicate,
		asks:    map[string]int{"GETATTR": 1, "LOOKUP": 1, "MKNOD": 1, "COPY_FILE_RANGE": 1, "GETXATTR": 1},
		noXattr: map[string]int{"GETXATTR": 0},
	},
	{
		name: "write anew", prepare: fileOf, do: fileOf,
		asks:    map[string]int{"SETATTR": 1, "WRITE": 1, "GETXATTR": 1},
		noXattr: map[string]int{"GETXATTR": 0},
	},
	{
		name: "SQLite's journal", do: rollback,
		asks: map[string]int{
			"GETATTR": 2, "LOOKUP": 1, "MKNOD": 1, "WRITE": 3, "FSYNC": 1, "UNLINK": 1, "GETXATTR": 1, "FORGET": 1,
		},
		noXattr: map[string]int{"GETXATTR": 0},
	},
	{
		name: "git's object", do: object,
		asks:    map[string]int{"GETATTR": 2, "LOOKUP": 2, "MKNOD": 1, "WRITE": 1, "RENAME": 1, "GETXATTR": 1},
		noXattr: map[string]int{"GETXATTR": 0},
	},
}

// askings are how many requests of which kind the log of a mount with the option debug has between two names that were
// looked up.
func askings(t *testing.T, log, from, to string) map[string]int {
	t.Helper()
	_, log, ok1 := strings.Cut(log, fmt.Sprintf(`\"%s\"`, from))
	log, _, ok2 := strings.Cut(log, fmt.Sprintf(`\"%s\"`, to))
	if !ok1 || !ok2 || strings.Contains(log, "messages were lost") {
		t.Fatalf("the log does not have all between %s and %s", from, to)
	}
	n := map[string]int{}
	for _, found := range regexp.MustCompile(`msg="rx \d+: ([A-Z0-9_]+) `).FindAllStringSubmatch(log, -1) {
		n[found[1]]++
	}
	delete(n, "INTERRUPT")    // by signals of Go's scheduler
	delete(n, "BATCH_FORGET") // of any files, when it is the kernel's turn: nobody waits for it
	return n
}

// asked does all tasks with so many files each on a new mount, and returns what the kernel asked for each of them.
func asked(t *testing.T, bin, options string, files int) []map[string]int {
	t.Helper()
	image := mounttest.Volume(t, bin, "64M")
	m := mounttest.New(t, bin, image, "-o", options)
	for i, task := range tasks {
		dir := filepath.Join(m.Dir, fmt.Sprint("d", i))
		must(t, os.Mkdir(dir, 0o755))
		path := func(j int) string { return filepath.Join(dir, fmt.Sprint("f", j)) }
		mark := func(name string) { unix.Stat(filepath.Join(m.Dir, fmt.Sprint(name, i)), new(unix.Stat_t)) }
		for j := range files {
			if task.prepare != nil {
				task.prepare(t, path(j))
			}
		}
		mark("begin")
		for j := range files {
			task.do(t, path(j))
		}
		mark("end")
	}
	m.Unmount(t, bin, image)
	var all []map[string]int
	for i := range tasks {
		all = append(all, askings(t, m.Log.String(), fmt.Sprint("begin", i), fmt.Sprint("end", i)))
	}
	return all
}

// tooMany says which requests for a task's files are more than it may ask for, but for a few that are not for one file.
func (k *task) tooMany(asked map[string]int, options string, files int) (said []string) {
	const besides = 3 // of each kind
	may := maps.Clone(k.asks)
	if strings.Contains(options, "noxattr") {
		maps.Copy(may, k.noXattr)
	}
	for _, kind := range slices.Sorted(maps.Keys(asked)) {
		if n := asked[kind]; n > may[kind]*files+besides {
			said = append(said, fmt.Sprintf("%s, %s: %d %s for %d files", options, k.name, n, kind, files))
		}
	}
	return said
}

// The kernel asks no more for what programs do with small files than it has to. What is counted are requests, not time.
// A kernel that is short of memory, or busy for longer than it may keep attributes, asks again: no task may ask
// for more in each of several trials.
func TestRequests(t *testing.T) {
	const files, trials = 20, 4
	if !tansymount.ForgetsInOrder() {
		t.Skip("this kernel has files opened")
	}
	bin := mounttest.Build(t)
	for _, options := range []string{"debug", "debug,noxattr"} {
		open := map[int][]string{} // by task: what the last trial found
		for i := range tasks {
			open[i] = nil
		}
		for trial := 0; trial < trials && len(open) > 0; trial++ {
			all := asked(t, bin, options, files)
			for i := range open {
				if open[i] = tasks[i].tooMany(all[i], options, files); open[i] == nil {
					delete(open, i)
				}
				t.Logf("%s, %s, for %d files: %v", options, tasks[i].name, files, all[i])
			}
		}
		for _, said := range open {
			t.Error(strings.Join(said, "\n"))
		}
	}
}
