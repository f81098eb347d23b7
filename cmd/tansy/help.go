package main

import (
	"flag"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// How the help of a sub-command is set, in columns.
const (
	helpIndent = 22 // where the explanation of a flag begins
	helpWidth  = 80 // at which lines end
)

// flagGroup are flags of one subject.
type flagGroup struct {
	title string
	flags string // their names, with spaces between them
}

// of returns the flags of the group, which f has.
func (g *flagGroup) of(f *flagSet) (flags []*flag.Flag) {
	for _, name := range strings.Fields(g.flags) {
		flags = append(flags, f.Lookup(name))
	}
	return flags
}

// grouped are the groups of the flags of f, or one of all flags, or none if there are no flags.
func (f *flagSet) grouped() []flagGroup {
	if f.groups != nil {
		return f.groups
	}
	var names []string
	f.VisitAll(func(x *flag.Flag) { names = append(names, x.Name) })
	if names == nil {
		return nil
	}
	return []flagGroup{{"flags", strings.Join(names, " ")}}
}

// printFlags prints the flags of f as people type them, and tells what their units are.
func printFlags(w io.Writer, f *flagSet) {
	sizes, times := false, false
	for _, g := range f.grouped() {
		fmt.Fprintf(w, "\n%s:\n", g.title)
		for _, x := range g.of(f) {
			printFlag(w, x)
			_, size := x.Value.(*byteSize)
			sizes, times = sizes || size, times || isDuration(x.Value)
		}
	}
	if sizes || times {
		fmt.Fprintln(w)
	}
	if sizes {
		fmt.Fprintln(w, sizeUnits)
	}
	if times {
		fmt.Fprintln(w, timeUnits)
	}
}

// printFlag prints a flag, and what it means.
func printFlag(w io.Writer, x *flag.Flag) {
	value, _ := describe(x)
	left := strings.TrimRight("  "+spelled(x)+" "+value, " ")
	if len(left) > helpIndent-2 {
		fmt.Fprintf(w, "%s\n%*s", left, helpIndent, "")
	} else {
		fmt.Fprintf(w, "%-*s", helpIndent, left)
	}
	fmt.Fprintln(w, wrap(meaning(x), helpIndent, helpWidth))
}

// meaning is what a flag means, with its default.
func meaning(x *flag.Flag) string {
	_, usage := describe(x)
	if d := defaultOf(x); d != "" {
		usage += " (default " + d + ")"
	}
	return usage
}

const (
	sizeUnits = "SIZE is a number of bytes, or one with K, M, G, T, P or E (powers of 1024):\n4096, 64M, 64MiB, 1.5T"
	timeUnits = "TIME is a number with ms, s, m or h, or several: 500ms, 90s, 1h30m"
)

// helpOf returns what the help of a sub-command is made of.
func helpOf(c command) *flagSet {
	f, _ := c.make()
	return f
}

// spelled is a flag as it is typed.
func spelled(x *flag.Flag) string {
	if len(x.Name) == 1 {
		return "-" + x.Name
	}
	return "--" + x.Name
}

// describe returns what the value of a flag is called, "" if it takes none, and what the
// flag means. Its usage names the value between backquotes, unless its type says enough.
func describe(x *flag.Flag) (value, usage string) {
	value, usage = flag.UnquoteUsage(x)
	if strings.Contains(x.Usage, "`") {
		return value, usage
	}
	switch _, size := x.Value.(*byteSize); {
	case size:
		return "SIZE", usage
	case value == "uint" || value == "int":
		return "N", usage
	case value == "duration":
		return "TIME", usage
	}
	return strings.ToUpper(value), usage
}

var zeroSeconds = regexp.MustCompile(`([mh])(?:0m)?0s$`)

// defaultOf is what a flag is when it is not given, unless its usage tells, or it is nothing.
func defaultOf(x *flag.Flag) string {
	switch x.DefValue {
	case "", "0", "false", "0s":
		return ""
	}
	if strings.Contains(x.Usage, "default") {
		return ""
	}
	d := x.DefValue
	if isDuration(x.Value) { // without the zeros of 168h0m0s
		d = zeroSeconds.ReplaceAllString(d, "$1")
	}
	return d
}

// wrap breaks text into lines of at most width columns, of which those behind the first are
// indented. A word that is longer has a line for itself.
func wrap(text string, indent, width int) string {
	var b strings.Builder
	column := indent
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case column+1+len(word) > width:
			fmt.Fprintf(&b, "\n%*s", indent, "")
			column = indent
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
