package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	tansyfs "tansy/fs"
	"tansy/internal/nearest"
)

// wrongCommand tells what is wrong with the arguments where no command is known.
func wrongCommand(what string) int {
	fmt.Fprintf(os.Stderr, "tansy: %s\n`tansy help` lists the commands.\n", what)
	return exitUsage
}

// otherNames are what other programs call what our commands do.
var otherNames = map[string]string{
	"fsck": "check", "verify": "check", "format": "mkfs", "create": "mkfs", "init": "mkfs", "start": "serve",
	"run": "serve", "nfsd": "serve", "fstrim": "trim", "status": "top", "stat": "top", "exportfs": "exports",
	"benchmark": "bench", "test": "conform", "fix": "repair",
}

// noCommand says that there is no command of that name, and which one may be meant.
func noCommand(name string) string {
	if flag := strings.TrimLeft(name, "-"); flag != name {
		flag, _, _ = strings.Cut(flag, "=")
		return fmt.Sprintf("a command is missing before %s%s", name, whoseFlag(flag))
	}
	var names []string
	for _, c := range commands {
		names = append(names, c.name)
	}
	best := otherNames[name]
	if best == "" {
		best = nearest.Of(name, names)
	}
	return fmt.Sprintf("there is no command %q", name) + didYouMean(best)
}

// didYouMean is the question for the end of an error, or "" if nothing is like what was given.
func didYouMean(best string) string {
	if best == "" {
		return ""
	}
	return ": did you mean " + best + "?"
}

// whoseFlag says which commands have a flag, for the end of an error, or "".
func whoseFlag(name string) string {
	var have []string
	for _, c := range commands {
		if helpOf(c).Lookup(name) != nil {
			have = append(have, "tansy "+c.name)
		}
	}
	switch len(have) {
	case 0:
		return ""
	case 1:
		return ": " + have[0] + " has it"
	}
	return ": " + strings.Join(have[:len(have)-1], ", ") + " and " + have[len(have)-1] + " have it"
}

// noFlag says that a command has no flag of that name, and which flag may be meant, or which command has it.
func noFlag(f *flagSet, name string) string {
	var names []string
	f.VisitAll(func(x *flag.Flag) { names = append(names, x.Name) })
	none := "there is no flag " + spelled(&flag.Flag{Name: name})
	if best := nearest.Of(name, names); best != "" {
		return none + didYouMean(spelled(f.Lookup(best)))
	}
	return none + whoseFlag(name)
}

// missingArguments says which arguments are missing after the first n. Their names are those of the synopsis.
func missingArguments(f *flagSet, n int) string {
	var names []string
	for _, word := range strings.Fields(f.synopsis) {
		if strings.HasPrefix(word, "[") {
			break
		}
		names = append(names, word)
	}
	if names = names[min(n, len(names)):]; len(names) == 1 {
		return "the argument " + names[0] + " is missing"
	}
	return "the arguments " + strings.Join(names, " and ") + " are missing"
}

// tooMany says that there is an argument too many, and which flag may be missing before it.
func tooMany(f *flagSet, arg string) string {
	what := fmt.Sprintf("%q is one argument too many", arg)
	switch {
	case f.Lookup("volume") != nil:
		return what + ": give --volume " + arg
	case f.Lookup("size") != nil && new(byteSize).Set(arg) == nil:
		return what + ": give --size " + arg
	}
	return what
}

// wrongArgument is an error that is about the arguments of a command, and not about what it met.
type wrongArgument struct{ error }

// Unwrap returns the error.
func (w wrongArgument) Unwrap() error { return w.error }

// failed prints the error of a command, and returns its exit code.
func failed(name string, err error) int {
	fail(name, err)
	return codeOf(err)
}

// codeOf is the exit code for an error.
func codeOf(err error) int {
	if errors.As(err, new(wrongArgument)) || errors.Is(err, tansyfs.ErrOptions) {
		return exitUsage
	}
	return exitFailure
}

// What package flag says of arguments that it does not understand. It writes flags with one hyphen, and not what a
// value may be.
var (
	unknownFlag = regexp.MustCompile(`^flag provided but not defined: -(.*)$`)
	noValue     = regexp.MustCompile(`^flag needs an argument: -(.*)$`)
	wrongValue  = regexp.MustCompile(`(?s)^invalid (?:boolean )?value (".*") for (?:flag )?-([^ ]*): (.*)$`)
)

// wrongFlag words an error of package flag as all other messages are worded.
func wrongFlag(f *flagSet, err error) string {
	if m := unknownFlag.FindStringSubmatch(err.Error()); m != nil {
		return noFlag(f, m[1])
	}
	if m := noValue.FindStringSubmatch(err.Error()); m != nil {
		x := f.Lookup(m[1])
		value, _ := describe(x)
		return spelled(x) + " needs a value: " + value
	}
	if m := wrongValue.FindStringSubmatch(err.Error()); m != nil {
		x := f.Lookup(m[2])
		why := m[3]
		switch value, _ := describe(x); {
		case why != "parse error" && why != "value out of range":
		case isDuration(x.Value):
			why = "give a time with its unit, such as 500ms, 90s, 10m or 24h"
		case value == "":
			why = "give true or false, or no value"
		default:
			why = "give a whole number that is not too large"
		}
		return spelled(x) + " " + m[1] + ": " + why
	}
	return err.Error()
}

// isDuration tells whether the value of a flag is one.
func isDuration(v any) bool {
	g, ok := v.(interface{ Get() any })
	if !ok {
		return false
	}
	_, ok = g.Get().(time.Duration)
	return ok
}
