//go:build linux

// Package peers measures Tansy's server beside NFS-Ganesha and beside what the machine can do without a server: the
// same clients, on the same device, in turns. It writes docs/evidence/performance.md.
//
// Each measurement makes a fresh volume or file system on the device, starts the server, and ends it. All of it runs in
// name spaces of its own, where nobody else can reach the servers.
//
//	main.go      flags
//	inside.go    the name spaces
//	peer.go      who is measured; ganesha.go: NFS-Ganesha
//	workload.go  what is measured; clients.go, sizes.go, directories.go, tail.go: how
//	report.go    docs/evidence/performance.md
package peers

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"tansy/bench/internal/command"
	"tansy/bench/internal/figures"
	"tansy/bench/internal/rig"
)

// options say what is measured, and how much of it.
type options struct {
	workloads, peers []string // empty for all
	rounds           int
	duration         time.Duration // of a row
	quick            bool
	dir              string // where the image of the device lies, if it has one
	device           rig.Kind
	size             int64  // of it, in bytes
	entries          int    // in the largest directory
	largest          int64  // file, in bytes
	write            string // folder of performance.md; empty for none
	tansy            string // the program; empty to build it
	verbose          bool
}

// Main is the sub-command; it returns the exit code.
func Main(args []string) int {
	var o options
	inside := os.Getenv(insideVariable) != ""
	code := 0
	return max(command.Main("peers", func() (err error) {
		o, err = parseFlags(args, os.Stderr)
		return err
	}, func(ctx context.Context) error {
		if !inside {
			code = goInside()
			return nil
		}
		return run(ctx, o, os.Stdout)
	}), code)
}

func parseFlags(args []string, errs io.Writer) (o options, err error) {
	o.device = rig.Loop
	f := flag.NewFlagSet("peers", flag.ContinueOnError)
	f.SetOutput(errs)
	f.Func("run", "`workloads`, separated by commas (default: all)", command.List(&o.workloads))
	f.Func("peers", "only these `peers`, separated by commas (default: all that this machine has)", command.List(&o.peers))
	f.IntVar(&o.rounds, "rounds", 3, "times that each measurement is repeated")
	f.DurationVar(&o.duration, "time", time.Second, "length of one measurement, where it is not given by a number")
	f.BoolVar(&o.quick, "quick", false, "see that everything runs: one round, 100 ms, small files and directories")
	f.StringVar(&o.dir, "dir", ".", "`folder` for the image of the device; not one in memory")
	f.Var(&o.device, "device", rig.KindUsage)
	f.Int64Var(&o.size, "size", 8<<30, "size of the device in `bytes`")
	f.IntVar(&o.entries, "entries", 100_000, "number of entries of the largest directory")
	f.Int64Var(&o.largest, "largest", 1<<30, "size of the largest file in `bytes`")
	f.StringVar(&o.write, "write", "",
		"put the figures into performance.md in this `folder`, instead of those of the same workloads there")
	f.StringVar(&o.tansy, "tansy", "", "measure this `program` instead of building one")
	f.BoolVar(&o.verbose, "v", false, "print each figure when it is known")
	f.Usage = func() { usage(f) }
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.quick {
		o.rounds, o.duration, o.size, o.entries, o.largest = 1, 100*time.Millisecond, 1<<30, 1000, 1<<20
	}
	err = cmp.Or(command.NoWords(f), command.Lasts("time", o.duration), command.Within(
		command.Number{Flag: "rounds", Is: int64(o.rounds), Least: 1, Most: command.MostRounds},
		command.Number{Flag: "size", Is: o.size, Least: 512 << 20, Most: 1 << 51},
		command.Number{Flag: "entries", Is: int64(o.entries), Least: 1, Most: 100_000_000},
		command.Number{Flag: "largest", Is: o.largest, Least: leastFile, Most: o.size / 4})) // the device has more
	if !o.device.Device() {
		err = errors.New("-device file: Ganesha's ext4 needs a device")
	}
	for _, name := range o.workloads {
		if !slices.ContainsFunc(workloads, func(w workload) bool { return w.name == name }) {
			err = fmt.Errorf("there is no workload %q", name)
		}
	}
	for _, name := range o.peers {
		if !slices.ContainsFunc(everyPeer, func(p peer) bool { return p.name == name }) {
			err = fmt.Errorf("there is no peer %q", name)
		}
	}
	if err != nil {
		fmt.Fprintln(errs, "bench peers:", err)
	}
	return o, err
}

func usage(f *flag.FlagSet) {
	fmt.Fprint(f.Output(), "bench peers measures Tansy's server beside others. It needs root.\n\n"+
		"usage: go run ./bench peers [flags]\n\nflags:\n")
	f.PrintDefaults()
	fmt.Fprint(f.Output(), "\nworkloads:\n")
	for _, w := range workloads {
		fmt.Fprintf(f.Output(), "  %-12s %s\n", w.name, w.about)
	}
	fmt.Fprint(f.Output(), "\npeers:\n")
	for _, p := range everyPeer {
		fmt.Fprintf(f.Output(), "  %-16s %s\n", p.name, p.about)
	}
	fmt.Fprint(f.Output(), `
examples:
  go run ./bench peers -quick                                does everything run? no figures to quote
  go run ./bench peers -write docs/evidence                           everything, into docs/evidence/performance.md
  go run ./bench peers -run smallfile -peers tansy,ganesha   two servers, one workload
  go run ./bench peers -run randwrite,write -device zram     where a barrier costs nothing
  go run ./bench peers -run randwrite,smallfile -device 2ms  where each takes its time
  go run ./bench peers -run directories -entries 1000000
  go run ./bench peers -run filewrite,fileread -largest 10737418240 -size 43000000000
`)
}

// run measures until all is done or ctx ends, and leaves nothing behind but the report, if one is to be written.
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
	m, err := newMachine(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	about := describe(o, m.device)
	fmt.Fprintln(out, about)
	for _, w := range workloads {
		if len(o.workloads) > 0 && !slices.Contains(o.workloads, w.name) {
			continue
		}
		fmt.Fprintf(out, "\n%s: %s\n", w.name, w.about)
		measured, err := m.measure(ctx, w, out)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		if measured == nil {
			fmt.Fprintln(out, "  left out: none of the peers is here")
			continue
		}
		measured.Conditions = about
		if o.write != "" { // now: what comes later may fail
			if err := report(o.write).Write(figures.Samples{w.name: measured}); err != nil {
				return err
			}
		}
	}
	return nil
}
