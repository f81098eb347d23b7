//go:build linux

// Package linux measures Tansy's server beside the kernel's own (knfsd on ext4), both through the kernel's NFS client:
// what programs get. Servers, client, and disk are those of one machine that QEMU emulates, with a kernel of Debian's,
// for neither may be at hand where the measuring is done. An emulated processor is many times slower than the real one,
// so that times say nothing; ratios of them do.
//
//	main.go       flags
//	image.go      kernel and root file system of the guest, made once
//	machine.go    a run of QEMU
//	archive.go    the guest's first file system
//	guest.go      what this program is in the guest: its first process
//	contender.go  who is measured
//	workload.go   what is measured; steps.go: programs of it that are processes of their own
//	counts.go     what a run took, besides time
//	report.go     docs/evidence/performance.md
package linux

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"tansy/bench/internal/command"
)

// options say what is measured, and how.
type options struct {
	plan
	accelerator string
	write       string // folder of performance.md; empty for none
	silence     time.Duration
	verbose     bool
}

// A plan is what the guest is told.
type plan struct {
	Workloads, Contenders []string
	Rounds                int
	Quick                 bool
}

// Main is the sub-command; it returns the exit code.
func Main(args []string) int {
	var o options
	return command.Main("linux", func() (err error) {
		o, err = parseFlags(args, os.Stderr)
		return err
	}, func(ctx context.Context) error { return run(ctx, o, os.Stdout) })
}

// BeChild makes this process the first one of the guest, or one of its programs, if it is that.
func BeChild() {
	switch {
	case os.Getpid() == 1:
		beGuest()
		os.Exit(0)
	case len(os.Args) > 1 && os.Args[1] == stepsCommand:
		beSteps(os.Args[2:])
		os.Exit(0)
	}
}

func parseFlags(args []string, errs io.Writer) (o options, err error) {
	f := flag.NewFlagSet("linux", flag.ContinueOnError)
	f.SetOutput(errs)
	f.Func("run", "`workloads`, separated by commas (default: all)", command.List(&o.Workloads))
	f.Func("servers", "only these `servers`, separated by commas (default: all)", command.List(&o.Contenders))
	f.IntVar(&o.Rounds, "rounds", 3, "times that each measurement is repeated")
	f.BoolVar(&o.Quick, "quick", false, "see that everything runs: one round, a few files each")
	f.StringVar(&o.accelerator, "accel", "tcg,thread=multi",
		"QEMU's `accelerator`; kvm where the processor has it: then the guest is nearly as fast as the machine")
	f.DurationVar(&o.silence, "silence", 5*time.Minute, "give the guest up when it has said nothing for so long")
	f.StringVar(&o.write, "write", "",
		"put the figures into performance.md in this `folder`, instead of those of the same workloads there")
	f.BoolVar(&o.verbose, "v", false, "print each figure when it is known")
	f.Usage = func() { usage(f) }
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.Quick {
		o.Rounds = 1
	}
	err = cmp.Or(command.NoWords(f), command.Lasts("silence", o.silence), command.Within(
		command.Number{Flag: "rounds", Is: int64(o.Rounds), Least: 1, Most: command.MostRounds}))
	var wrong [2]error
	o.Workloads, wrong[0] = command.Chosen(o.Workloads, workloadNames(), "workload")
	o.Contenders, wrong[1] = command.Chosen(o.Contenders, contenderNames(), "server")
	err = errors.Join(err, wrong[0], wrong[1])
	if err != nil {
		fmt.Fprintln(errs, "bench linux:", err)
	}
	return o, err
}

func usage(f *flag.FlagSet) {
	fmt.Fprint(f.Output(), `bench linux measures Tansy's server beside the kernel's own (knfsd) through the kernel's NFS
client, in a machine that QEMU emulates.
It needs qemu-system-x86_64, mkfs.ext4 (version 1.43 or later) and, for making the guest's files the first time
(a few minutes), debootstrap and root.
These files are kept in $TANSY_CACHE/linux-client, or ~/.cache/tansy/linux-client.

usage: go run ./bench linux [flags]

flags:
`)
	f.PrintDefaults()
	fmt.Fprint(f.Output(), "\nworkloads:\n")
	for _, w := range workloads {
		fmt.Fprintf(f.Output(), "  %-12s %s\n", w.name, w.about)
	}
	fmt.Fprint(f.Output(), "\nservers:\n")
	for _, c := range contenders {
		fmt.Fprintf(f.Output(), "  %-16s %s\n", c.name, c.about)
	}
	fmt.Fprint(f.Output(), `
examples:
  sudo go run ./bench linux -quick                      does everything run? no figures to quote
  sudo go run ./bench linux -write docs/evidence                 everything, into docs/evidence/performance.md
  go run ./bench linux -run large,tree -rounds 5 -v     two workloads (the guest's files are there)
  go run ./bench linux -servers tansy,knfsd-ordered
  go run ./bench linux -accel kvm                       not emulated, where the machine allows
`)
}

// cacheFolder is where the guest's files are kept.
func cacheFolder() (string, error) {
	cache := os.Getenv("TANSY_CACHE")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("no folder for the guest's files: set TANSY_CACHE: %w", err)
		}
		cache = filepath.Join(home, ".cache", "tansy")
	}
	return filepath.Join(cache, "linux-client"), nil
}

// run measures until all is done or ctx ends, and leaves nothing behind but the guest's files and the report, if one is
// to be written.
func run(ctx context.Context, o options, out io.Writer) (err error) {
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
	cache, err := cacheFolder()
	if err != nil {
		return err
	}
	i, err := prepare(ctx, cache, out)
	if err != nil {
		return err
	}
	defer i.release()
	m, err := newMachine(ctx, i, o)
	if err != nil {
		return err
	}
	defer func() {
		if err == nil || ctx.Err() != nil {
			err = errors.Join(err, os.RemoveAll(m.dir))
		}
	}()
	about := describe(ctx, o, i)
	fmt.Fprintln(out, about)
	c := newCollection(o, about, out)
	if err := m.boot(ctx, c.take); err != nil {
		return err
	}
	printTargets(out, c.samples)
	return nil
}
