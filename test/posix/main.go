//go:build linux

// Command posix checks what POSIX says about files, on whatever file system a
// directory is on: it is run in the directory of a mounted Tansy server, of the
// kernel's own NFS server, and of a local file system, and tells where they
// differ.
//
// The checks are scripts (checks/*.txt, and tables in matrix*.go that write
// scripts); README.md describes their language. Each runs in a new directory,
// as root and as five other users. Started by somebody else than root it runs
// those that need nobody else and no privilege.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.on, "on", "local", "what the directory is on: local, mount (tansy mount), "+
		"served (tansy serve --mount --locks), tansy (tansy serve, by NFS), locks (the same with locks), "+
		"or knfsd (the kernel's NFS server)")
	flag.StringVar(&o.only, "only", "", "run only the checks whose \"group/name\" matches this regular expression")
	flag.IntVar(&o.far, "far", 0, "a process whose name spaces are those of another host, "+
		"which has the directory at the same place")
	flag.BoolVar(&o.list, "list", false, "list the checks instead of running them")
	flag.BoolVar(&o.deviations, "deviations", false, "list the checks that expect something else over NFS, and why")
	flag.BoolVar(&o.verbose, "v", false, "print a line for every check")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: posix [flags] DIRECTORY")
		flag.PrintDefaults()
	}
	flag.Parse()
	os.Exit(run(o, flag.Args()))
}

// options are the flags of the command.
type options struct {
	on, only                  string
	far                       int // 0: none
	list, deviations, verbose bool
}

func run(o options, args []string) int {
	checks, err := allChecks()
	if err != nil {
		return misused(err)
	}
	pattern, err := regexp.Compile(o.only)
	if err != nil {
		return misused(err)
	}
	tags, ok := flavours[o.on]
	if !ok {
		return misused(fmt.Errorf("-on %s: give local, mount, served, tansy, locks, or knfsd", o.on))
	}
	var chosen []*check
	for _, c := range checks {
		if pattern.MatchString(c.String()) {
			chosen = append(chosen, c)
		}
	}
	switch {
	case o.list:
		for _, c := range chosen {
			fmt.Println(c)
		}
		return 0
	case o.deviations:
		for _, c := range chosen {
			if c.why != "" {
				fmt.Printf("%s: %s\n", c, c.why)
			}
		}
		return 0
	case len(args) != 1:
		return misused(fmt.Errorf("name one directory"))
	}
	r, err := newRunner(args[0], tags, o.far)
	if err != nil {
		return misused(err)
	}
	defer r.stop()
	begin := time.Now()
	t := tally{begin: begin}
	group := ""
	for _, c := range chosen {
		if c.group != group {
			if group != "" {
				t.report(group)
			}
			group = c.group
		}
		problems, ran := r.run(c)
		t.count(len(problems), ran)
		if !ran && o.verbose {
			fmt.Printf("skip %s: %s\n", c, c.why)
		} else if len(problems) == 0 && o.verbose {
			fmt.Printf("ok %s\n", c)
		} else if len(problems) > 0 {
			fmt.Printf("not ok %s (%s)\n#   %s\n", c, c.where(), strings.Join(problems, "\n#   "))
		}
	}
	if group != "" {
		t.report(group)
	}
	fmt.Printf("POSIX: %d checks on %s: %d passed, %d failed, %d not applicable, %.0f s\n",
		len(chosen), o.on, t.passed, t.failed, t.skipped, time.Since(begin).Seconds())
	if t.failed > 0 || t.passed == 0 {
		return 1
	}
	return 0
}

// flavours are the tags that lines of a script can be conditioned on. The locks of flock and fcntl are apart where the
// kernel has them by itself, and joined where a server has one table for all. Where they are late, the server hears of
// the last close of an open file a moment after who closed it: FUSE does not wait for that.
var flavours = map[string]map[string]bool{
	"local":  {"local": true, "locks": true, "apart": true, "ext4": true},
	"mount":  {"local": true, "locks": true, "apart": true, "mount": true},
	"served": {"local": true, "locks": true, "joined": true, "late": true, "mount": true},
	"tansy":  {"nfs": true, "tansy": true},
	"locks":  {"nfs": true, "locks": true, "joined": true, "tansy": true},
	"knfsd":  {"nfs": true, "knfsd": true},
}

// tally counts checks, in all and (the fields with in) of the group under way.
type tally struct {
	passed, failed, skipped int
	inPassed, inAll         int
	begin                   time.Time
}

func (t *tally) count(problems int, ran bool) {
	switch {
	case problems > 0:
		t.failed++
	case ran:
		t.passed++
		t.inPassed++
	default:
		t.skipped++
		return
	}
	t.inAll++
}

func (t *tally) report(group string) {
	fmt.Printf("# %-12s %d of %d, %.1f s\n", group, t.inPassed, t.inAll, time.Since(t.begin).Seconds())
	t.inPassed, t.inAll, t.begin = 0, 0, time.Now()
}

func misused(err error) int {
	fmt.Fprintln(os.Stderr, "posix:", err)
	return 2
}
