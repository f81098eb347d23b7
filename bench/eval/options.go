//go:build linux

package eval

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"tansy/bench/internal/command"
)

// options say what is measured, and how much of it.
type options struct {
	workloads  []string // empty for all
	contenders []string // empty for all that this machine has
	rounds     int
	duration   time.Duration // of what is not given by a size
	clients    []int
	quick      bool

	dir     string // where the image lies
	size    int64  // of the image, in bytes
	fileMB  int    // of the large file, in MB
	files   int    // in the tree
	write   string // folder of evaluation.md; empty for none
	tansy   string // the program; empty to build it
	verbose bool
}

// quickly is what -quick changes where no other flag does.
var quickly = map[string]string{
	"rounds": "1", "time": "250ms", "clients": "1,8", "size": "1073741824", "file": "50", "files": "1000",
}

func parseFlags(args []string, errs io.Writer) (o options, err error) {
	f := flag.NewFlagSet("eval", flag.ContinueOnError)
	f.SetOutput(errs)
	f.Func("run", "`workloads`, separated by commas (default: all)", command.List(&o.workloads))
	f.Func("peers", "only these `contenders`, separated by commas, where they belong to the workload "+
		"(default: all that this machine has)", command.List(&o.contenders))
	f.IntVar(&o.rounds, "rounds", 3, "times that each measurement is repeated")
	f.DurationVar(&o.duration, "time", time.Second, "length of one measurement, where it is not given by a size")
	f.BoolVar(&o.quick, "quick", false, "see that everything runs: "+quickFlags())
	clients := f.String("clients", "1,2,4,8,16,32", "`numbers` of clients in smallfile, mailbench, and the libraries")
	f.StringVar(&o.dir, "dir", ".", "`folder` for the image of the device; not one in memory")
	f.Int64Var(&o.size, "size", 4<<30, "size of the device in `bytes`")
	f.IntVar(&o.fileMB, "file", 300, "size of the large file in `MB`")
	f.IntVar(&o.files, "files", 50_000, "number of files in the tree")
	f.StringVar(&o.write, "write", "",
		"put the figures into evaluation.md in this `folder`, instead of those of the same workloads there")
	f.StringVar(&o.tansy, "tansy", "", "measure this `program` instead of building one")
	f.BoolVar(&o.verbose, "v", false, "print each figure when it is known")
	f.Usage = func() { usage(f) }
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.quick {
		given := map[string]bool{}
		f.Visit(func(g *flag.Flag) { given[g.Name] = true })
		for name, value := range quickly {
			if !given[name] {
				f.Set(name, value)
			}
		}
	}
	o.clients, err = numbers(*clients)
	err = cmp.Or(err, command.NoWords(f), command.Lasts("time", o.duration), command.Within(
		command.Number{Flag: "rounds", Is: int64(o.rounds), Least: 1, Most: command.MostRounds},
		command.Number{Flag: "size", Is: o.size, Least: 256 << 20, Most: 1 << 51},
		command.Number{Flag: "file", Is: int64(o.fileMB), Least: 1, Most: 500_000},
		command.Number{Flag: "files", Is: int64(o.files), Least: 1, Most: 100_000_000}))
	if err == nil {
		_, err = chosen(o.workloads)
	}
	for _, name := range o.contenders {
		if err == nil && !slices.ContainsFunc(allContenders(), func(c contender) bool { return c.name == name }) {
			err = fmt.Errorf("there is no contender %q", name)
		}
	}
	if err != nil {
		fmt.Fprintln(errs, "bench eval:", err)
	}
	return o, err
}

func usage(f *flag.FlagSet) {
	fmt.Fprint(f.Output(), "bench eval measures Tansy's mount against other local file systems. It needs root.\n\n"+
		"usage: go run ./bench eval [flags]\n\nflags:\n")
	f.PrintDefaults()
	fmt.Fprint(f.Output(), "\nworkloads:\n")
	for _, w := range workloads {
		fmt.Fprintf(f.Output(), "  %-10s %s\n", w.name, w.about)
	}
	fmt.Fprint(f.Output(), "\ncontenders:\n")
	for _, c := range allContenders() {
		fmt.Fprintf(f.Output(), "  %-18s %s\n", c.name, c.about)
	}
	fmt.Fprint(f.Output(), `
examples:
  go run ./bench eval -quick                               does everything run? no figures to quote
  go run ./bench eval -write docs/evidence                          everything, into docs/evidence/evaluation.md
  go run ./bench eval -run smallfile -peers tansy,ext4     two file systems, one workload
  go run ./bench eval -run ablations -peers whole,no-codes what one part of the design is worth
  go run ./bench eval -run largefile -file 1000 -rounds 5
`)
}

func quickFlags() string {
	var b strings.Builder
	for _, name := range []string{"rounds", "time", "clients", "size", "file", "files"} {
		fmt.Fprintf(&b, "-%s %s ", name, quickly[name])
	}
	return strings.TrimSpace(b.String())
}

const mostClients = 10_000

// numbers reads numbers of clients, separated by commas, and returns them in order.
func numbers(list string) (ns []int, err error) {
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > mostClients {
			return nil, fmt.Errorf("%q is no number of clients, which are from 1 to %d", s, mostClients)
		}
		ns = append(ns, n)
	}
	slices.Sort(ns)
	return slices.Compact(ns), nil
}

// chosen are the workloads of these names, in their own order.
func chosen(names []string) (ws []workload, err error) {
	for _, name := range names {
		if !slices.ContainsFunc(workloads, func(w workload) bool { return w.name == name }) {
			return nil, fmt.Errorf("there is no workload %q", name)
		}
	}
	for _, w := range workloads {
		if len(names) == 0 || slices.Contains(names, w.name) {
			ws = append(ws, w)
		}
	}
	return ws, nil
}
