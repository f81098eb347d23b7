// Command bench measures Tansy: beside the operating system alone, other local file systems, other servers.
package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"tansy/bench/floor"
	"tansy/bench/internal/rig"
)

// A measurement is a sub-command.
type measurement struct {
	name, about string
	run         func(args []string) int
}

var measurements = append([]measurement{
	{"floor", "a server beside what the operating system alone needs for the same; the default", floor.Main},
}, ofLinux...)

func main() {
	rig.BeEcho()
	floor.BeChild()
	beChild()
	os.Exit(run(os.Args[1:], os.Stderr))
}

// run runs the measurement that args begin with: that of the floor, if they begin with a flag. It returns the exit
// code.
func run(args []string, errs io.Writer) int {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") && !slices.Contains([]string{"-h", "-help", "--help"}, args[0]) {
		return floor.Main(args)
	}
	for _, m := range measurements {
		if m.name == args[0] {
			return m.run(args[1:])
		}
	}
	if strings.HasPrefix(args[0], "-") || args[0] == "help" {
		usage(errs)
		return 0
	}
	fmt.Fprintf(errs, "bench: there is no measurement %q; go run ./bench --help lists them\n", args[0])
	return 2
}

func usage(errs io.Writer) {
	fmt.Fprint(errs, "bench measures Tansy.\n\nusage: go run ./bench [measurement] [flags]\n\nmeasurements:\n")
	for _, m := range measurements {
		fmt.Fprintf(errs, "  %-6s %s\n", m.name, m.about)
	}
	fmt.Fprint(errs, `
examples:
  go run ./bench                     all workloads of floor
  go run ./bench floor --help        its flags
  go run ./bench peers -quick        does that measurement run here?
`)
}
