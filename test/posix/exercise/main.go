//go:build linux

// Command exercise does random file operations with several processes at the
// same time, on whatever file system a directory is on, and checks every
// outcome.
//
// Half of the processes write, read, map, truncate, append to, make holes in,
// rename and reopen a file each and compare it with a copy in memory (file.go,
// ranges.go), as fsx does. The others, as those of fsstress, change
// a tree each, of which an exact model predicts every errno, attribute and
// listing (model.go, tree.go), and between that a tree that all of them share,
// where only the kinds of errors are checked while they run (shared.go), and
// at the end that every name is listed once, every link count is right, and
// every file holds what was written (verify.go).
//
// All choices come from -seed: a failure prints the command that repeats its
// process alone.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// config is what the command line says.
type config struct {
	seed   uint64
	ops    int    // of all processes together
	procs  int    // how many
	worker int    // the only process to run, or -1
	size   int    // of the largest file, in bytes
	kinds  string // file, tree or all
	drop   bool   // drop the kernel's caches now and then
	keep   bool   // leave the trees there
	dir    string
	other  string // the same directory by another mount, for half of the shared operations
}

// childVariable is set in the environment of the processes that lead starts.
const childVariable = "EXERCISE_CHILD"

func main() {
	c := parse(os.Args[1:])
	if os.Getenv(childVariable) != "" {
		os.Exit(runWorker(c, c.worker))
	}
	os.Exit(lead(c))
}

// parse reads a command line; it ends the program if that is no good.
func parse(args []string) *config {
	var c config
	f := flag.NewFlagSet("exercise", flag.ExitOnError)
	f.Uint64Var(&c.seed, "seed", 0, "seed; 0 takes one from the clock")
	f.IntVar(&c.ops, "ops", 20000, "operations of all processes together")
	f.IntVar(&c.procs, "procs", 6, "processes")
	f.IntVar(&c.worker, "worker", -1, "run only this process, to repeat its operations")
	f.IntVar(&c.size, "size", 512<<10, "largest size of a file, in bytes")
	f.StringVar(&c.kinds, "kind", "all", "file, tree, or all (half of the processes each)")
	f.BoolVar(&c.drop, "drop", false, "drop the kernel's caches now and then")
	f.BoolVar(&c.keep, "keep", false, "leave the files there at the end")
	f.StringVar(&c.other, "other", "", "the same directory through another mount, for half of the shared operations")
	f.Usage = func() {
		fmt.Fprintln(f.Output(), "usage: exercise [flags] DIRECTORY")
		f.PrintDefaults()
	}
	f.Parse(args)
	if f.NArg() != 1 || c.kinds != "file" && c.kinds != "tree" && c.kinds != "all" || c.procs < 1 || c.size < 1 {
		f.Usage()
		os.Exit(2)
	}
	c.dir = f.Arg(0)
	return &c
}

// lead starts the processes, waits for them and checks what they share.
func lead(c *config) int {
	if c.seed == 0 {
		c.seed = uint64(time.Now().UnixNano())
	}
	fmt.Printf("# seed %d\n", c.seed)
	if err := os.MkdirAll(filepath.Join(c.dir, "shared"), 0o777); err != nil {
		return fail(err)
	}
	told, tell, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	defer told.Close()
	go progress(told, c.ops)
	begin := time.Now()
	var wait sync.WaitGroup
	broken := make([]error, c.procs)
	for i := range c.procs {
		if c.worker >= 0 && c.worker != i {
			continue
		}
		p := exec.Command("/proc/self/exe", append(c.flags(i), c.dir)...)
		p.Env = append(os.Environ(), childVariable+"=1")
		p.Stdout, p.Stderr = os.Stdout, os.Stderr
		p.ExtraFiles = []*os.File{tell} // progressFD
		wait.Go(func() { broken[i] = p.Run() })
	}
	wait.Wait()
	tell.Close()
	took := time.Since(begin)
	failed := 0
	for i, err := range broken {
		if err != nil {
			failed++
			fmt.Printf("not ok process %d: %v\n", i, err)
		}
	}
	if c.worker < 0 && c.kinds != "file" {
		if c.drop {
			dropCaches()
		}
		names, err := verifyShared(filepath.Join(c.dir, "shared"))
		if err != nil {
			failed++
			fmt.Println("not ok the shared tree:", err)
		} else {
			fmt.Printf("# the shared tree is in order, %d names\n", names)
		}
	}
	fmt.Printf("EXERCISE: seed %d, %d operations by %d processes in %.0f s (%.0f/s): %d failed\n",
		c.seed, c.ops, c.procs, took.Seconds(), float64(c.ops)/took.Seconds(), failed)
	if failed > 0 {
		return 1
	}
	if !c.keep {
		entries, err := os.ReadDir(c.dir)
		if err != nil {
			return fail(err)
		}
		for _, e := range entries {
			if err := os.RemoveAll(filepath.Join(c.dir, e.Name())); err != nil {
				return fail(err)
			}
		}
	}
	return 0
}

// flags is the command line that runs one process.
func (c *config) flags(worker int) []string {
	a := []string{
		"-seed", strconv.FormatUint(c.seed, 10), "-ops", strconv.Itoa(c.ops), "-procs", strconv.Itoa(c.procs),
		"-size", strconv.Itoa(c.size), "-kind", c.kinds, "-worker", strconv.Itoa(worker),
	}
	if c.drop {
		a = append(a, "-drop")
	}
	if c.other != "" {
		a = append(a, "-other", c.other)
	}
	return a
}

// runWorker does the operations of process i in this process.
func runWorker(c *config, i int) int {
	unix.Umask(0)
	w := &worker{
		config: c, number: i, rnd: rand.New(rand.NewPCG(c.seed, uint64(2*i))),
		dir:  filepath.Join(c.dir, "process-"+strconv.Itoa(i)),
		tell: os.NewFile(progressFD, "progress"),
	}
	if err := os.Mkdir(w.dir, 0o755); err != nil {
		return fail(err)
	}
	var err error
	ops := c.ops / c.procs
	if c.kinds == "file" || c.kinds == "all" && i%2 == 0 {
		err = exerciseFile(w, ops)
	} else {
		shared := filepath.Join(c.dir, "shared")
		if c.other != "" && i%4 == 1 {
			shared = filepath.Join(c.other, "shared")
		}
		err = exerciseTree(w, ops, newSharer(w, shared))
	}
	if err != nil {
		w.explain(err)
		return 1
	}
	return 0
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "exercise:", err)
	return 1
}
