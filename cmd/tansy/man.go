package main

import (
	"fmt"
	"io"
	"strings"
)

// man is `tansy man`: the manual page, made of what --help is made of.
func man() (*flagSet, action) {
	f := newFlags("man", "", `
  tansy man > /usr/local/share/man/man1/tansy.1   installs the manual page
  tansy man | man -l -                            shows it
`)
	return f, func(args []string) int {
		if _, code, done := parse(f, args, 0, 0); done {
			return code
		}
		manPage(stdout)
		return exitOK
	}
}

// manPage prints the page, in the macros of man(7).
func manPage(w io.Writer) {
	fmt.Fprint(w, ".\\\" Made by `tansy man`.\n.TH TANSY 1 \"\" Tansy \"User Commands\"\n.SH NAME\n")
	fmt.Fprintln(w, `tansy \- `+roff("crash-safe NFSv3 server in one binary"))
	fmt.Fprint(w, ".SH SYNOPSIS\n.B tansy\n.I COMMAND\n[flags]\n.SH DESCRIPTION\n")
	for _, c := range commands {
		fmt.Fprintf(w, ".TP\n.B %s\n%s\n", roff("tansy "+c.name), roff(c.summary))
	}
	fmt.Fprint(w, ".PP\nFlags may stand before and behind other arguments, with one hyphen or two.\n")
	fmt.Fprintf(w, "%s.\n%s.\n", roff(sizeUnits), roff(timeUnits))
	for _, c := range commands {
		f := helpOf(c)
		fmt.Fprintf(w, ".SH %s\n.B %s\n%s\n.PP\n%s.\n",
			roff("TANSY "+strings.ToUpper(c.name)), roff("tansy "+c.name), roff(f.synopsis), roff(c.summary))
		for _, g := range f.grouped() {
			if f.groups != nil {
				fmt.Fprintf(w, ".SS %q\n", roff(strings.ToUpper(g.title[:1])+g.title[1:]))
			}
			for _, x := range g.of(f) {
				value, _ := describe(x)
				fmt.Fprintf(w, ".TP\n.BI %s %q\n", roff(spelled(x)), strings.TrimRight(" "+roff(value), " "))
				fmt.Fprintln(w, roff(meaning(x)))
			}
		}
		fmt.Fprintf(w, ".PP\nExamples:\n.PP\n.EX\n")
		for _, line := range strings.Split(strings.TrimRight(f.examples, "\n"), "\n") {
			fmt.Fprintln(w, roff(line))
		}
		fmt.Fprint(w, ".EE\n")
	}
	fmt.Fprint(w, ".SH \"EXIT STATUS\"\n")
	for line := range strings.Lines(exitCodes) {
		if code, meaning, ok := strings.Cut(strings.TrimSpace(line), "  "); ok {
			fmt.Fprintf(w, ".TP\n.B %s\n", roff(code))
			line = meaning
		}
		if line = strings.TrimSpace(line); line != "" && line != "exit codes:" {
			fmt.Fprintln(w, roff(line))
		}
	}
	fmt.Fprint(w, ".SH \"SEE ALSO\"\n.BR exports (5),\n.BR nfs (5),\n.BR mount (8),\n.BR mount.nfs (8),\n"+
		".BR showmount (8)\n")
}

// roff escapes text for troff.
func roff(text string) string {
	lines := strings.Split(roffText.Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

var roffText = strings.NewReplacer(`\`, `\(rs`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)
