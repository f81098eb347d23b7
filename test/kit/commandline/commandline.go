// Package commandline reads the command lines of the programs that work on Tansy.
package commandline

import (
	"flag"
	"fmt"
	"os"
)

// Parse parses the flags, and returns the words beside them, of which there have to be at least and at most so many; a
// negative most means any number. With --help it prints usage and the flags, and ends the program with 0. With what is
// wrong it ends with 2.
func Parse(usage string, least, most int) []string {
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	switch n := flag.NArg(); {
	case n < least:
		fail("too few words: %d, and not %d", n, least)
	case most >= 0 && n > most:
		fail("there is a word too many: %s", flag.Arg(most))
	}
	return flag.Args()
}

func fail(format string, a ...any) {
	fmt.Fprintf(flag.CommandLine.Output(), format+"\n", a...)
	flag.Usage()
	os.Exit(2)
}
