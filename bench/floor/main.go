// Package floor measures a Tansy server beside what the operating system alone needs, and prints a table.
//
// Every number stands next to a floor that is measured in the same run, in turns with it, on the same machine and
// folder: what the operating system alone needs for the same durable steps. The ratio of the two says what the server
// costs, whatever the machine. The client is that of package load (`tansy bench`). All data read back is compared with
// what was written; a wrong byte ends the run.
//
//	main.go       flags, the list of workloads
//	table.go      measuring in turns, medians, the table
//	release.go    the figures of the last release
//	server.go     the server under test as a child process; device.go: what its volume lies on
//	against.go    two servers side by side: what a change costs
//	smallfile.go large.go random.go streams.go roundtrip.go directory.go removal.go attack.go newcomers.go changes.go
//	              the workloads, and what they are compared with
package floor

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
	"tansy/bench/internal/rig"
)

// options are the flags.
type options struct {
	out       io.Writer // not a flag
	addr      string
	server    string
	cache     string
	size      string
	dir       string
	device    rig.Kind
	workloads []string
	rounds    int
	best      bool
	duration  time.Duration
	depth     int
	fileMB    int
	entries   int
	peers     int
	attack    string
	debug     bool
	rpcDepth  int
	against   string
	release   string
	record    bool

	// Of the started server, and not flags.
	flags       []string
	volume      string // where it has its volume; "": a file of its own
	descriptors int    // its limit; 0: none
}

// A workload measures one thing and adds rows to the table.
type workload struct {
	name, about string
	run         func(*bench) error
}

var workloads = []workload{
	{"smallfile", "LOOKUP, CREATE, WRITE 100 bytes FILE_SYNC, REMOVE; 1, 8 and 32 clients", smallfile},
	{"large", "a large file written (UNSTABLE + COMMIT, FILE_SYNC) and read (in order, at random)", large},
	{"random", "WRITE of 4 KiB at random, FILE_SYNC; 2, 8 and 32 clients", random},
	{"streams", "large files written and read by 32 clients side by side", streams},
	{"rpc", "NULL and GETATTR on 8 connections", roundTrips},
	{"directory", "CREATE, LOOKUP, REMOVE, and listings of directories of 1,000, 10,000 and 100,000 entries", directory},
	{"removal", "GETATTR and WRITE while the room of a large file is given back", removal},
	{"attack", "READ, WRITE, and GETATTR beside peers that are slow, broken, or hostile", underAttack},
}

func workloadNames() (names []string) {
	for _, w := range workloads {
		names = append(names, w.name)
	}
	return names
}

// bench is a run: a server to talk to and a table to fill.
type bench struct {
	options
	dir   string // scratch folder for the volume and the floors
	child *child // nil with -addr
	table table
}

// Main is the sub-command; it returns the exit code.
func Main(args []string) int {
	var o options
	return command.Main("floor", func() (err error) {
		o, err = parseFlags(args, os.Stderr)
		return err
	}, func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		o.out = untilGone{os.Stdout, cancel}
		return run(ctx, o)
	})
}

// BeChild makes this process the peers of an attack, if it was started to be that.
func BeChild() {
	if len(os.Args) == 8 && os.Args[1] == peersCommand {
		os.Exit(peersMain(os.Args[2], os.Args[3], os.Args[4], os.Args[5], os.Args[6], os.Args[7]))
	}
}

// untilGone calls gone when nobody reads any more.
type untilGone struct {
	io.Writer
	gone func()
}

func (u untilGone) Write(b []byte) (int, error) {
	n, err := u.Writer.Write(b)
	if err != nil {
		u.gone()
	}
	return n, err
}

func parseFlags(args []string, errs io.Writer) (o options, err error) {
	f := flag.NewFlagSet("floor", flag.ContinueOnError)
	f.SetOutput(errs)
	f.StringVar(&o.addr, "addr", "", "measure the server at this `address` (default: build and start one)")
	f.StringVar(&o.server, "server", "", "start this `binary` instead of building one")
	f.StringVar(&o.against, "against", "",
		"measure beside this other server's `binary`: smallfile, large, random and files, with the servers' CPU time")
	f.StringVar(&o.cache, "cache", "64M", "the started server's block cache")
	f.StringVar(&o.size, "size", "4G", "the started server's volume")
	f.StringVar(&o.dir, "dir", ".", "`folder` for the volume and for the floors; not one in memory")
	f.Var(&o.device, "device", "what volumes and floors lie on: file (an ordinary one), or, as root, a "+rig.KindUsage)
	f.Func("run", "`workloads`, separated by commas (default: all)", command.List(&o.workloads))
	f.IntVar(&o.rounds, "rounds", 3, "times each measurement is repeated; the median counts")
	f.BoolVar(&o.best, "best", false, "let the best of the rounds count: for a machine that others use too")
	f.DurationVar(&o.duration, "time", 2*time.Second, "length of one measurement, where it is not given by a size")
	f.IntVar(&o.depth, "depth", 16, "calls in flight per connection in the directory workload")
	f.IntVar(&o.fileMB, "file", 300, "size of the large file in `MB`")
	f.IntVar(&o.entries, "entries", 100_000, "size of the largest directory")
	f.IntVar(&o.rpcDepth, "rpc-depth", 1, "calls in flight per connection in the rpc workload")
	f.IntVar(&o.peers, "peers", 1100, "at most so many peers in the attack workload")
	f.StringVar(&o.attack, "attack", "",
		"only those `peers` of the attack workload whose name has this in it: flood, stream ...")
	f.StringVar(&o.release, "release", "bench/floor/release.json", "say which rows are worse than the figures "+
		"in this `file`, which are those of the last release, if it is there")
	f.BoolVar(&o.record, "record", false,
		"add the figures of this run to that file; those that were measured otherwise go")
	f.BoolVar(&o.debug, "debug", false, "print the address of the started server's profiler")
	f.Usage = func() {
		fmt.Fprint(f.Output(), "bench floor measures a Tansy server against the operating system alone.\n\n"+
			"usage: go run ./bench [floor] [flags]\n\nflags:\n")
		f.PrintDefaults()
		fmt.Fprint(f.Output(), "\nworkloads:\n")
		for _, w := range workloads {
			fmt.Fprintf(f.Output(), "  %-10s %s\n", w.name, w.about)
		}
		fmt.Fprint(f.Output(), `
examples:
  go run ./bench                                everything; some minutes
  go run ./bench -run smallfile -time 5s        one workload, longer
  go run ./bench -addr 127.0.0.1:2049 -dir /mnt/disk
  go run ./bench -against ./tansy-before        what a change costs
  go run ./bench -device zram -against ./tansy-before   the same where a barrier costs nothing
  go run ./bench -record                        for a release: keep the figures in bench/floor/release.json
`)
	}
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch err = cmp.Or(command.NoWords(f), command.Lasts("time", o.duration), command.Within(o.numbers()...)); {
	case err != nil:
	case o.record && (o.addr != "" || o.against != "" || o.device.Device()):
		err = errors.New("-record is for a server that is started, beside no other, and on a file")
	case o.addr != "" && o.device.Device():
		err = errors.New("-device is for a server that is started")
	case o.against != "":
		if len(o.workloads) > 0 {
			o.workloads, err = command.Chosen(o.workloads, besideAnother, "workload beside another server")
		}
	default:
		o.workloads, err = command.Chosen(o.workloads, workloadNames(), "workload")
	}
	if err != nil {
		fmt.Fprintln(errs, "bench floor:", err)
	}
	return o, err
}

// numbers are those among the options, and what they may be.
func (o options) numbers() []command.Number {
	return []command.Number{
		{Flag: "rounds", Is: int64(o.rounds), Least: 1, Most: command.MostRounds},
		{Flag: "depth", Is: int64(o.depth), Least: 1, Most: 10_000},
		{Flag: "rpc-depth", Is: int64(o.rpcDepth), Least: 1, Most: 10_000},
		{Flag: "file", Is: int64(o.fileMB), Least: 1, Most: 500_000}, // a file has at most 512 GiB
		{Flag: "entries", Is: int64(o.entries), Least: 1000, Most: 100_000_000},
		{Flag: "peers", Is: int64(o.peers), Least: 1, Most: 60_000}, // each has a port
	}
}

// run measures until done or until ctx ends, and leaves nothing behind.
func run(ctx context.Context, o options) (err error) {
	released, err := readFigures(o.release)
	if err != nil {
		return err
	}
	b := &bench{options: o, table: table{out: o.out, now: recorded{How: o.how()}}}
	if released != nil && released.How == o.how() && o.addr == "" && !o.device.Device() {
		b.table.release = released
	}
	if b.dir, err = os.MkdirTemp(o.dir, "tansy-bench-"); err != nil {
		return err
	}
	scratch := b.dir
	defer func() { os.RemoveAll(scratch) }()
	if o.against != "" {
		return against(ctx, o, b.dir)
	}
	if o.addr == "" {
		end, err := o.volumeDevice(ctx, b.dir)
		defer end()
		if err != nil {
			return err
		}
		if b.child, err = startServer(o, b.dir); err != nil {
			return err
		}
		defer b.child.stop()
		b.addr = b.child.addr
	}
	folder, end, err := o.floorFolder(ctx, b.dir)
	defer end()
	if err != nil {
		return err
	}
	b.dir = folder
	finished := make(chan error, 1)
	go func() { finished <- b.measure(o.workloads) }()
	select {
	case err = <-finished:
	case <-ctx.Done():
		return errors.New("interrupted")
	}
	if err != nil && b.child != nil {
		err = fmt.Errorf("%w%s", err, b.child.lastWords())
	}
	if err == nil && o.record {
		err = b.table.now.write(o.release, released)
	}
	return err
}

func (b *bench) measure(names []string) error {
	b.table.header(b.options)
	for _, w := range workloads {
		if !slices.Contains(names, w.name) {
			continue
		}
		if err := b.collected(w); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	if b.child != nil {
		b.memory()
	}
	b.table.footer()
	return nil
}
