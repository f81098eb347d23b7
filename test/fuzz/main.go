// Fuzz runs every fuzz target of the repository in turn, for as long as asked,
// and adds up the CPU time spent.
//
//	nice -n 19 go run ./test/fuzz -hours 10     # fuzz
//	go run ./test/fuzz -total                   # what the log adds up to
//	go run ./test/fuzz -keep                    # bring what was found into testdata/fuzz
//
// Each target gets a slice at a time, so that an interrupted run has treated all of
// them. One target runs at a time, with one worker. What a target learns is in
// Go's build cache and is there for the next slice. An input that fails is left in
// the package's testdata/fuzz by the testing package, where `go test` repeats it;
// the run goes on without that target, and fails at its end.
//
// A line of the log is one slice: when it ended, the target, its CPU time and the
// sum of all lines up to here, in seconds.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"tansy/test/kit/commandline"
)

var (
	hours   = flag.Float64("hours", 1, "how long to fuzz, in hours on the clock")
	slice   = flag.Duration("slice", 2*time.Minute, "how long a target runs before it is the next one's turn")
	only    = flag.String("only", ".", "regular expression of the targets (package/FuzzName)")
	logPath = flag.String("log", defaultLog(), "where CPU time is added up")
	total   = flag.Bool("total", false, "print the sums of the log and end")
	keepAll = flag.Bool("keep", false, "do not fuzz; copy what covers new code from the cache to testdata/fuzz")
)

func defaultLog() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "tansy", "fuzz.log")
}

func main() {
	commandline.Parse("usage: go run ./test/fuzz [flags]", 0, 0)
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

func run() error {
	if *total {
		return printTotal()
	}
	targets, err := findTargets(regexp.MustCompile(*only))
	if err != nil {
		return err
	}
	if *keepAll {
		return keep(targets)
	}
	if err := os.MkdirAll(filepath.Dir(*logPath), 0o755); err != nil {
		return err
	}
	bins, err := os.MkdirTemp("", "fuzz")
	if err != nil {
		return err
	}
	defer os.RemoveAll(bins)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, time.Duration(*hours*float64(time.Hour)))
	defer cancel()
	var failed []error
	for ctx.Err() == nil && len(targets) > 0 {
		var good []target
		for _, t := range targets {
			if ctx.Err() != nil {
				break
			}
			if err := t.fuzz(ctx, bins); err != nil {
				fmt.Fprintln(os.Stderr, "fuzz:", err)
				failed = append(failed, fmt.Errorf("%s failed", t))
			} else {
				good = append(good, t)
			}
		}
		targets = good
	}
	return errors.Join(append(failed, printTotal())...)
}

// target is one fuzz function.
type target struct {
	dir  string // of its package, from the root of the module
	name string
}

func (t target) String() string { return t.dir + "/" + t.name }

// findTargets lists the fuzz functions of the module in the working directory.
func findTargets(want *regexp.Regexp) (all []target, err error) {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	fuzz := regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)
	for dir := range strings.Lines(string(out)) {
		dir = strings.TrimSpace(dir)
		rel, err := filepath.Rel(root, dir)
		if err != nil {
			return nil, err
		}
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				return nil, err
			}
			for _, m := range fuzz.FindAllSubmatch(text, -1) {
				if t := (target{rel, string(m[1])}); want.MatchString(t.String()) {
					all = append(all, t)
				}
			}
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no targets here; run it at the root of the repository")
	}
	return all, nil
}

// cacheDir is where inputs are collected: the folder `go test -fuzz` uses, too.
func (t target) cacheDir() (string, error) {
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return "", err
	}
	return filepath.Join(strings.TrimSpace(string(out)), "fuzz", "tansy", t.dir), nil
}

// fuzz runs a target for a slice and logs the CPU time. The test binary is built
// once for a package, so a run does not see later changes of the sources.
func (t target) fuzz(ctx context.Context, bins string) error {
	bin := filepath.Join(bins, strings.ReplaceAll(t.dir, "/", "-"))
	if _, err := os.Stat(bin); err != nil {
		if out, err := exec.Command("go", "test", "-c", "-fuzz=.", "-o", bin, "./"+t.dir).CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", t.dir, err, out)
		}
	}
	cache, err := t.cacheDir()
	if err != nil {
		return err
	}
	cmd := exec.Command(bin, "-test.run=^$", "-test.fuzz=^"+t.name+"$", "-test.fuzztime="+slice.String(),
		"-test.fuzzcachedir="+cache, "-test.fuzzminimizetime=1s", "-test.parallel=1", "-test.timeout=0")
	cmd.Dir = t.dir
	out, err := runUntil(ctx, cmd)
	if cmd.ProcessState == nil {
		return err // it did not start
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if err := appendLog(t, cpu); err != nil {
		return err
	}
	if err != nil && ctx.Err() == nil && t.repeats(bin, out) {
		return fmt.Errorf("%s fails: %w\n%s", t, err, out)
	}
	return nil
}

// repeats tells if a failure happens again. The testing package gives an input ten
// seconds, also if the whole machine or this process is stopped for so long; such
// an input passes when it is run again, and is not kept. And it may report the end
// of the slice as a failure, without any input.
func (t target) repeats(bin, out string) bool {
	m := regexp.MustCompile(`Failing input written to (\S+)`).FindStringSubmatch(out)
	if m == nil {
		return !strings.Contains(out, "context deadline exceeded")
	}
	if !strings.Contains(out, "hung or terminated unexpectedly") {
		return true
	}
	path := filepath.Join(t.dir, m[1])
	cmd := exec.Command(bin, "-test.run=^"+t.name+"$/^"+filepath.Base(path)+"$", "-test.count=100")
	cmd.Dir = t.dir
	if cmd.Run() != nil {
		return true
	}
	fmt.Fprintf(os.Stderr, "fuzz: %s: an input was too slow once, and is not when it is run again\n", t)
	os.Remove(path)
	return false
}

// runUntil runs cmd, and interrupts it when ctx ends, as Ctrl-C would.
func runUntil(ctx context.Context, cmd *exec.Cmd) (string, error) {
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return "", err
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-ctx.Done():
			cmd.Process.Signal(os.Interrupt)
		case <-done:
		}
	}()
	err := cmd.Wait()
	return out.String(), err
}

// entry is one line of the log.
type entry struct {
	target string
	cpu    float64 // seconds
}

func readLog() (all []entry, sum float64, err error) {
	f, err := os.Open(*logPath)
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var when string
		var e entry
		var to float64
		if _, err := fmt.Sscan(s.Text(), &when, &e.target, &e.cpu, &to); err != nil {
			return nil, 0, fmt.Errorf("%s: %q: %w", *logPath, s.Text(), err)
		}
		all = append(all, e)
		sum += e.cpu
	}
	return all, sum, nil
}

func appendLog(t target, cpu time.Duration) error {
	_, sum, err := readLog()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(*logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %s %.1f %.1f\n", time.Now().UTC().Format(time.RFC3339), t, cpu.Seconds(),
		sum+cpu.Seconds())
	return errors.Join(err, f.Close())
}

func printTotal() error {
	all, sum, err := readLog()
	if err != nil {
		return err
	}
	by := map[string]float64{}
	var names []string
	for _, e := range all {
		if by[e.target] == 0 {
			names = append(names, e.target)
		}
		by[e.target] += e.cpu
	}
	for _, n := range names {
		fmt.Printf("%8.2f CPU minutes  %s\n", by[n]/60, n)
	}
	fmt.Printf("%8.2f CPU hours in all\n", sum/3600)
	return nil
}
