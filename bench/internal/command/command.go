// Package command is what the sub-commands of bench have in common: how they begin and end, and flags of lists.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Main parses the flags of a sub-command and runs it. It returns the exit code: 0, 2 for wrong flags, which parse has
// complained of, and 1 for anything else that fails. The context ends with a signal that ends programs, so that run can
// end the servers and unmount the file systems that it has started and mounted.
func Main(name string, parse func() error, run func(context.Context) error) int {
	switch err := parse(); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	signal.Ignore(syscall.SIGPIPE) // with its reader gone the run must still take down what it has put up
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx); err != nil {
		stop()
		fmt.Fprintf(os.Stderr, "bench %s: %v\n", name, err)
		return 1
	}
	return 0
}

// List is a flag whose value is a list with commas between.
func List(into *[]string) func(string) error {
	return func(s string) error {
		*into = strings.Split(s, ",")
		return nil
	}
}

// Chosen returns those of all that are wanted, in the order of all; all, if none is named.
func Chosen(wanted, all []string, what string) ([]string, error) {
	if len(wanted) == 0 {
		return all, nil
	}
	for _, w := range wanted {
		if !slices.Contains(all, w) {
			return nil, fmt.Errorf("there is no %s %q, but %s", what, w, strings.Join(all, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(a string) bool { return !slices.Contains(wanted, a) }), nil
}

// A Number is the value of a flag, and what it may be.
type Number struct {
	Flag            string
	Is, Least, Most int64
}

// Within complains of the first number that is not what it may be.
func Within(numbers ...Number) error {
	for _, n := range numbers {
		if n.Is < n.Least || n.Is > n.Most {
			return fmt.Errorf("-%s is %d, and has to be from %d to %d", n.Flag, n.Is, n.Least, n.Most)
		}
	}
	return nil
}

// MostRounds is how often a measurement may be repeated.
const MostRounds = 1000

// Lasts complains of a length of time that no measurement has.
func Lasts(flag string, d time.Duration) error {
	if d < time.Millisecond || d > 24*time.Hour {
		return fmt.Errorf("-%s is %v, and has to be from 1ms to 24h", flag, d)
	}
	return nil
}

// NoWords complains of words that are no flags.
func NoWords(f *flag.FlagSet) error {
	if f.NArg() > 0 {
		return fmt.Errorf("%q is no flag, and there are no arguments besides flags", f.Arg(0))
	}
	return nil
}
