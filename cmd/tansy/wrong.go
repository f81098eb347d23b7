package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
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
	"resize": "grow", "extend": "grow", "benchmark": "bench", "test": "conform", "fix": "repair",
}

// notYet are commands that there are none of, with what to do in their place.
var notYet = map[string]string{
	"snapshot": backUp, "clone": backUp,
	"shrink": sizeKept,
}

const (
	backUp   = "tansy backup keeps a state of a volume, and tansy restore makes a volume of it"
	sizeKept = "a volume never becomes smaller: make a smaller one, serve or mount both, and copy the files"
)

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
	if instead := notYet[name]; instead != "" {
		return fmt.Sprintf("there is no command %q yet; %s", name, instead)
	}
	best := otherNames[name]
	if best == "" {
		best = nearest.Of(strings.ToLower(name), names)
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

// otherFlags are flags of programs like ours, by our command and their name, with what to do in their place.
var otherFlags = map[string]string{
	"umount f": byForce, "umount force": byForce,
	"mount t": noType, "mount type": noType, "mount types": noType,
	"mount n": "nothing is written to /etc/mtab", "mount r": "give --read-only", "mount a": noTable,
	"mount f": foreground, "mount fake": foreground, "mount foreground": foreground,
	"umount a": "give one directory", "umount A": "give one directory",
	"umount t": noTypes, "umount types": noTypes, "umount R": "give one directory",
	"umount timeout": waits, "umount wait": waits,
	"check y": "tansy repair --yes mends a volume", "check f": "the whole volume is checked in any case",
	"check p": "tansy repair --yes mends a volume", "check n": "nothing is written to the volume in any case",
}

const (
	byForce = "--lazy takes a file system out of sight that is in use; " +
		"one whose process has ended is unmounted without a flag"
	noType = "leave the type out, which is that of a volume; mount -t tansy is for mount(8), with a link " +
		"/sbin/mount.tansy"
	foreground = "the mount is made, and stays in the foreground without --background"
	noTypes    = "leave the type out: it unmounts volumes alone"
	waits      = "it waits until the volume is closed, for a minute at most"
	noTable    = "mount(8) mounts what is in /etc/fstab, with a link /sbin/mount.tansy"
)

// noFlag says that a command has no flag of that name, and which flag may be meant, or which command has it.
func noFlag(f *flagSet, name string) string {
	var names []string
	f.VisitAll(func(x *flag.Flag) { names = append(names, x.Name) })
	none := "there is no flag " + spelled(&flag.Flag{Name: name})
	if instead := otherFlags[f.Name()+" "+name]; instead != "" {
		return none + ": " + instead
	}
	if best := nearest.Of(name, names); best != "" {
		return none + didYouMean(spelled(f.Lookup(best)))
	}
	return none + whoseFlag(name)
}

// needed are the arguments that a command cannot do without, as its synopsis names them.
func needed(f *flagSet) (names []string) {
	for _, word := range strings.Fields(f.synopsis) {
		if strings.HasPrefix(word, "[") {
			break
		}
		names = append(names, word)
	}
	return names
}

// missingArguments says which arguments are missing after the first n. Their names are those of the synopsis.
func missingArguments(f *flagSet, n int) string {
	names := needed(f)
	if names = names[min(n, len(names)):]; len(names) == 1 {
		return "the argument " + names[0] + " is missing"
	}
	return "the arguments " + strings.Join(names, " and ") + " are missing"
}

// tooMany says that there is an argument too many, and which flag may be missing before it.
func tooMany(f *flagSet, arg string) string {
	what := fmt.Sprintf("%q is one argument too many", arg)
	switch {
	case arg == "":
	case f.Lookup("volume") != nil:
		return what + ": give --volume " + arg
	case f.Lookup("size") != nil && new(byteSize).Set(arg) == nil:
		return what + ": give --size " + arg
	}
	return what
}

// emptyArgument says that the argument behind the first n is empty.
func emptyArgument(f *flagSet, n int) string {
	names := needed(f)
	switch {
	case n >= len(names):
		return fmt.Sprintf("argument %d is empty", n+1)
	case strings.ToUpper(names[n]) != names[n] && !strings.Contains(names[n], "|"): // a word that is to be given
		return fmt.Sprintf("argument %d is empty: give %s", n+1, strings.Join(names[n:], " "))
	}
	return "the argument " + names[n] + " is empty"
}

// need is a flag that means nothing without one of others.
type need struct {
	flag, of string // of: those, with spaces between them
}

// wrongTogether says which flag that is given needs another one, or a value, or nothing.
func wrongTogether(f *flagSet) (what string) {
	f.Visit(func(x *flag.Flag) {
		if g, ok := x.Value.(flag.Getter); ok && g.Get() == "" {
			value, _ := describe(x)
			what = spelled(x) + " is empty: give " + value + ", or leave it out"
		}
	})
	for _, n := range f.needs {
		of := strings.Fields(n.of)
		if what != "" || !given(f, n.flag) || slices.ContainsFunc(of, func(name string) bool { return given(f, name) }) {
			continue
		}
		for i, name := range of {
			value, _ := describe(f.Lookup(name))
			of[i] = strings.TrimRight(spelled(f.Lookup(name))+" "+value, " ")
		}
		what = uselessAlone("--"+n.flag, of...)
	}
	return what
}

// uselessAlone says that a flag means nothing without one of others.
func uselessAlone(flag string, of ...string) string {
	that := "that"
	if len(of) > 1 {
		that = "one of them"
	}
	return fmt.Sprintf("%s counts only with %s: give %s, too, or leave %[1]s out", flag, strings.Join(of, " or "), that)
}

// wrongArgument is an error that is about the arguments of a command, and not about what it met.
type wrongArgument struct{ error }

// Unwrap returns the error.
func (w wrongArgument) Unwrap() error { return w.error }

// codeOf is the exit code for an error.
func codeOf(err error) int {
	if by := new(interrupted); errors.As(err, by) {
		return exitSignal + int(by.by)
	}
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

// timeLike is a time as package time reads it, but for its length.
var timeLike = regexp.MustCompile(`^[-+]?(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|ms|s|m|h))+$`)

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
		case isDuration(x.Value) && timeLike.MatchString(strings.Trim(m[1], `"`)):
			why = "too long a time: " + strings.TrimSuffix(time.Duration(math.MaxInt64).Truncate(time.Hour).String(), "0m0s") +
				" is the longest there is"
		case isDuration(x.Value):
			why = "give a time with its unit, such as 500ms, 90s, 10m or 24h"
		case value == "":
			why = "give true or false, or no value"
		default:
			why = "give a whole number that is not too large"
		}
		value, err := strconv.Unquote(m[1])
		if err != nil {
			return spelled(x) + " " + m[1] + ": " + why
		}
		return spelled(x) + " " + wrongly(value, why)
	}
	return err.Error()
}

// wrongly says why a value is wrong, and names it once.
func wrongly(value, why string) string {
	for _, named := range []string{strconv.Quote(value), value} {
		if named != "" && (strings.HasPrefix(why, named+" ") || strings.HasPrefix(why, named+": ")) {
			return why
		}
	}
	return strconv.Quote(value) + ": " + why
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
