// Command tansy serves a volume over NFSv3, or mounts it on this machine. It makes, checks, repairs, and prints
// volumes, and it checks and measures any NFSv3 server.
//
// Each sub-command has a file. The packages that it calls do the work.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tansy/disk"
)

// exit codes
const (
	exitOK      = 0
	exitFailure = 1  // the command ran and failed, or check found damage
	exitUsage   = 2  // wrong arguments; of a command that judges: it could not
	exitLost    = 3  // serve, mount: the volume was deleted, replaced or cut, or the device went away
	exitTaken   = 75 // serve: the volume went to another server, or may have

	exitSignal = 128 // and the number of the signal that ended the command
)

// action does what a sub-command is for, with the arguments that follow its name, and returns the exit code. It fills
// the flags that were made with it, and is called once.
type action func(args []string) int

// command is a sub-command.
type command struct {
	name, summary string
	make          func() (*flagSet, action) // its flags, and what it does with them
	words         string                    // arguments that are no names of files, with spaces between them
}

// run does what the sub-command is for.
func (c *command) run(args []string) int {
	_, act := c.make()
	return act(args)
}

var commands []command

// judging are the commands whose exit code is a verdict, which exitUsage is not.
var judging = map[string]bool{"check": true, "repair": true, "scrub": true, "exports": true, "conform": true,
	"crash": true}

func init() { // not in the declaration, for completion prints them
	commands = []command{
		{"serve", "export volumes over NFSv3", serve, ""},
		{"mount", "make a volume a file system of this machine (Linux, macOS)", mountCommand, ""},
		{"umount", "unmount a volume, and wait until it is closed", umount, ""},
		{"mkfs", "make a new volume", mkfs, ""},
		{"grow", "have a volume use what its device became larger by", grow, ""},
		{"label", "print or change the label of a volume", label, ""},
		{"backup", "keep the state of a volume, in a folder of such states", backup, ""},
		{"receive", "keep a backup that comes from another machine", receive, ""},
		{"restore", "make a volume of a backup", restore, ""},
		{"check", "verify every invariant of a volume", check, ""},
		{"repair", "mend a damaged volume, with a way back", repair, ""},
		{"scrub", "have a server check all that its volume holds, now", scrub, ""},
		{"trim", "give the room of free blocks back to where the volume lies", trim, ""},
		{"exports", "check a file of exports, which says who may mount what", exportsCommand, "check"},
		{"cert", "make certificates for TLS: an authority, servers, clients", cert, "ca server client"},
		{"crash", "try what crashes may leave of a volume, in memory", crashes, ""},
		{"dump", "print a volume's structures", dump, "super log inode dir"},
		{"conform", "check any NFSv3 server against the RFCs", conformance, ""},
		{"bench", "measure any NFSv3 server: rates, and how long calls take", benchmark, workloadNames()},
		{"top", "show what a server does, in a terminal", top, ""},
		{"completion", "print a script that completes these commands and their flags", completion, "bash zsh fish"},
		{"man", "print the manual page", man, ""},
		{"version", "print release, revision, format of volumes, and Go version", version, ""},
	}
}

func main() {
	switch filepath.Base(os.Args[0]) {
	case "mount.tansy", "mount.fuse.tansy", "mount.fuseblk.tansy": // links, for mount(8)
		os.Exit(mountHelper(os.Args[1:]))
	}
	os.Exit(run(os.Args[1:]))
}

// run does what the arguments say, and returns the exit code.
func run(args []string) int {
	if len(args) == 0 {
		usage(os.Stderr)
		return exitUsage
	}
	return stdout.delivered(strings.TrimLeft(args[0], "-"), dispatch(args))
}

// dispatch runs the sub-command that the arguments name.
func dispatch(args []string) int {
	switch {
	case isHelp(args[0]) && len(args) > 2:
		return wrongCommand(fmt.Sprintf("%q is one argument too many", args[2]))
	case isHelp(args[0]) && len(args) == 2 && !isHelp(args[1]): // help COMMAND
		return dispatch([]string{args[1], "--help"})
	case isHelp(args[0]):
		usage(stdout)
		return exitOK
	case args[0] == "-version" || args[0] == "--version":
		args = append([]string{"version"}, args[1:]...)
	}
	for _, c := range commands {
		if c.name == args[0] {
			return c.run(args[1:])
		}
	}
	if len(args) == 4 && args[2] == "-o" && isVolume(args[0]) { // as mount.fuse3 has a program called
		return mountHelper(args) // tansy VOLUME DIR -o OPTIONS
	}
	return wrongCommand(noCommand(args[0]))
}

// isVolume tells whether a word may be that of a volume, and no mistyped command. One that is not there has a path.
func isVolume(word string) bool {
	_, err := os.Stat(word)
	return err == nil || remote(word) || strings.ContainsRune(word, '/')
}

// isHelp says whether a word asks for help.
func isHelp(word string) bool {
	return slices.Contains([]string{"-h", "-help", "--help", "help"}, word)
}

const exitCodes = `
exit codes:
  0   done
  1   failed, or damage was found or is left; or it is done, and could not be
      printed: standard error says what was done
  2   wrong arguments; of check, repair, scrub, conform, crash and exports:
      there is no verdict, as nothing could be read, or a good one could not be
      printed
  3   serve, mount: the volume was deleted, renamed, replaced or cut while it
      was in use
  75  serve: another server has the volume on Ceph, or may have
      (docs/guide/standby.md); elsewhere serve is refused, with 1
  129, 130, 143
      ended by SIGHUP, SIGINT (Ctrl-C) or SIGTERM: conform, bench and crash
      when they have printed what they found; serve and mount only before they
      serve, or by a second signal, while they stop
`

func usage(w io.Writer) {
	fmt.Fprint(w, "Tansy is a crash-safe NFSv3 server in one binary.\n\nusage: tansy COMMAND [flags]\n\n")
	for _, c := range commands {
		fmt.Fprintf(w, "  %-11s %s\n", c.name, c.summary)
	}
	fmt.Fprint(w, "\n`tansy COMMAND --help` explains a command and shows examples.\n"+exitCodes)
}

// flagSet are the flags of a sub-command, and what its help says around them.
type flagSet struct {
	*flag.FlagSet
	synopsis, examples string
	groups             []flagGroup // in which help shows the flags; nil: in one
	needs              []need
}

// newFlags makes the flags of a sub-command; synopsis and examples frame their list.
func newFlags(name, synopsis, examples string) *flagSet {
	f := &flagSet{FlagSet: flag.NewFlagSet(name, flag.ContinueOnError), synopsis: synopsis}
	f.examples = strings.TrimPrefix(examples, "\n")
	f.SetOutput(io.Discard) // parse says what is wrong, and how to get help
	f.Usage = func() {
		fmt.Fprintln(stdout, strings.TrimRight("usage: tansy "+name+" "+synopsis, " "))
		fmt.Fprintf(stdout, "\n%s\n", summaryOf(name))
		printFlags(stdout, f)
		fmt.Fprintf(stdout, "\nexamples:\n%s", f.examples)
	}
	return f
}

// summaryOf says in a line what a sub-command does.
func summaryOf(name string) string {
	for _, c := range commands {
		if c.name == name {
			return strings.ToUpper(c.summary[:1]) + c.summary[1:] + "."
		}
	}
	return ""
}

// parse parses args, flags before or after the positional ones, of which there
// are low to high. done means that the command ends now, with that exit code.
func parse(f *flagSet, args []string, low, high int) (pos []string, code int, done bool) {
	usage := f.Usage
	f.Usage = func() {} // Parse calls it on every error
	if what := swallowed(f, args); what != "" {
		return nil, misused(f, what), true
	}
	for {
		err := f.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			usage()
			return nil, exitOK, true
		}
		if err != nil {
			return nil, misused(f, wrongFlag(f, err)), true
		}
		args = f.Args()
		if len(args) == 0 {
			break
		}
		pos, args = append(pos, args[0]), args[1:]
	}
	what := wrongTogether(f)
	switch {
	case len(pos) < low:
		what = missingArguments(f, len(pos))
	case len(pos) > high:
		what = tooMany(f, pos[high])
	case slices.Contains(pos, ""):
		what = emptyArgument(f, slices.Index(pos, ""))
	}
	if what != "" {
		return nil, misused(f, what), true
	}
	return pos, exitOK, false
}

// swallowed says which flag would take the next one for its value, or nothing.
func swallowed(f *flagSet, args []string) string {
	named := func(arg string) *flag.Flag {
		if name := strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"); name != arg {
			return f.Lookup(name)
		}
		return nil
	}
	for i := 0; i+1 < len(args) && args[i] != "--"; i++ {
		x := named(args[i])
		if x == nil || isBool(x.Value) {
			continue
		}
		if named(args[i+1]) != nil {
			return fmt.Sprintf("--%s needs a value, and what follows is %s (--%s=%s gives it that value)",
				x.Name, args[i+1], x.Name, args[i+1])
		}
		i++
	}
	return ""
}

// isBool tells whether the value of a flag needs no word of its own.
func isBool(v flag.Value) bool {
	b, ok := v.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// given tells if a flag was among the arguments.
func given(f *flagSet, name string) (found bool) {
	f.Visit(func(x *flag.Flag) { found = found || x.Name == name })
	return found
}

// misused tells what is wrong with the arguments of a sub-command.
func misused(f *flagSet, what string) int {
	return fail(f.Name(), wrongArgument{errors.New(what)})
}

// fail prints the error of a sub-command, and returns its exit code.
func fail(name string, err error) int {
	fmt.Fprint(os.Stderr, worded(name, err))
	return codeOf(err)
}

// worded is what is said of the error of a sub-command. Its help has what can be done about wrong arguments.
func worded(name string, err error) string {
	said := fmt.Sprintf("tansy %s: %s\n", name, plain(err.Error()))
	if errors.Is(err, disk.ErrLocked) {
		said += "End that first: tansy umount ends a mount, and Ctrl-C or SIGTERM a server.\n"
	}
	if codeOf(err) == exitUsage {
		said += fmt.Sprintf("`tansy %s --help` explains the command and shows examples.\n", name)
	}
	return said
}

// warning returns a function that prints a warning of a sub-command.
func warning(name string) func(error) {
	return func(err error) { fmt.Fprintf(os.Stderr, "tansy %s: warning: %s\n", name, plain(err.Error())) }
}
