//go:build linux

// Package eval measures Tansy's mount the way the papers about verified file systems measure theirs: the same
// workloads, against other local file systems on the same device, and says how much of each of them is reached.
//
// There is one device, a loop device on an image whose blocks are all written. Each measurement makes a fresh file
// system there, mounts it, runs one workload, and unmounts it, so that each file system has the same blocks and none
// has aged. The contenders take turns, and each round begins with the next one, so that a change of the machine's mood
// hits all alike.
//
//	main.go       flags, the list of workloads
//	options.go    how much is done, and for how long; prepared.go: what is made once for all
//	site.go       a file system made, mounted, and unmounted again
//	contender.go  what is compared: Tansy, ext4 and others, with FUSE between or not
//	passfuse.go   the process that passes everything through FUSE and does nothing else
//	turns.go      measuring in turns; repeat.go: clients side by side
//	targets.go    what is to be reached
//	report.go     docs/evidence/evaluation.md
//	smallfile.go largefile.go mailbench.go ...  a file for each workload
//
// What is measured on, and what is made of the figures, is in bench/internal.
package eval

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"tansy/bench/internal/command"
	"tansy/bench/internal/figures"
)

// A workload is a number of experiments with one set of contenders.
type workload struct {
	name, about string
	axis        string // what its plot is by, if it has one
	contenders  func(options) []contender
	experiments func(options) []experiment
	missing     func() error // says why it can't be run here; may be nil
}

// An experiment takes one site from nothing to its figures.
type experiment struct {
	metrics []figures.Metric
	run     func(context.Context, *site) ([]float64, error) // a figure for each of the metrics
}

const byClients = "the number of clients"

var workloads = []workload{
	{"smallfile", "look up, create, write 100 bytes, remove, each made durable; 1 to 32 clients", byClients,
		fileSystems, smallfile, nil},
	{"largefile", "a large file written and fsync'ed, read warm and cold", "", fileSystems, largefile, nil},
	{"mailbench", "mail spooled, delivered, picked up; 1 to 32 users", byClients, fileSystems, mailbench, nil},
	{"sqlite", "orders and payments as TPC-C has them, on SQLite, by one client", "",
		fileSystems, sqlite, programs("sqlite3")},
	{"pgbench", "PostgreSQL's own benchmark", byClients, fileSystems, pgbench, postgresMissing},
	{"random", "4 KiB written at random into a file, with an fdatasync for each", "", fileSystems, random, nil},
	{"app", "git clone of Tansy, and go build", "", fileSystems, app, inRepository},
	{"tree", "very many small files unpacked, read, and removed", "", fileSystems, tree, programs("tar")},
	{"libraries", "small durable updates by libraries for Go, on ext4; 1 to 32 writers", byClients,
		libraryContenders, libraries, programs("go")},
	{"ablations", "what each part of the design is worth: Tansy's mount without it", "",
		ablationContenders, ablations, programs("go")},
}

// Main is the sub-command; it returns the exit code.
func Main(args []string) int {
	var o options
	return command.Main("eval", func() (err error) {
		o, err = parseFlags(args, os.Stderr)
		return err
	}, func(ctx context.Context) error { return run(ctx, o, os.Stdout) })
}

// BeChild makes this process the one that passes everything through FUSE, if it was started to be that.
func BeChild() {
	if len(os.Args) == 4 && os.Args[1] == passCommand {
		os.Exit(passMain(os.Args[2], os.Args[3]))
	}
}

// run measures until all is done or ctx ends, and leaves nothing behind but the report, if one is to be written.
func run(ctx context.Context, o options, out io.Writer) (err error) {
	ws, err := chosen(o.workloads)
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("only root can make and mount file systems")
	}
	if o.write != "" {
		if err := report(o.write).Check(); err != nil {
			return err
		}
	}
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("interrupted (%w)", err)
		}
	}()
	m, err := newMachine(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	s := figures.Samples{}
	about := describe(o, m.device)
	fmt.Fprintln(out, about)
	for _, w := range ws {
		fmt.Fprintf(out, "\n%s: %s\n", w.name, w.about)
		if w.missing != nil {
			if err := w.missing(); err != nil {
				fmt.Fprintln(out, "  left out:", err)
				continue
			}
		}
		cs := w.contenders(o)
		if len(cs) == 0 {
			fmt.Fprintln(out, "  left out: none of the contenders is here")
			continue
		}
		measured, err := m.measure(ctx, w, cs, out)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		measured.Conditions = about
		s[w.name] = measured
		if o.write != "" { // now: what comes later may fail
			if err := report(o.write).Write(s); err != nil {
				return err
			}
		}
	}
	fmt.Fprintln(out)
	printTargets(out, s)
	return nil
}

// programs says which of them are not installed.
func programs(names ...string) func() error {
	return func() (err error) {
		for _, name := range names {
			_, wrong := exec.LookPath(name)
			err = errors.Join(err, wrong)
		}
		return err
	}
}
