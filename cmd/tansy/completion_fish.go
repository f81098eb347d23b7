package main

import (
	"fmt"
	"io"
	"strings"
)

// fishCompletion prints a script for fish, to be sourced, or put into a folder of fish_complete_path.
func fishCompletion(w io.Writer, all []completed) {
	fmt.Fprint(w, `# completion of tansy's arguments for fish
function __tansy_command
	set -l words (commandline -opc)
	test (count $words) -gt 1 -a "$words[2]" = "$argv[1]"
end
function __tansy_no_command
	test (count (commandline -opc)) -eq 1
end
`)
	for _, c := range all {
		fmt.Fprintf(w, "complete -c tansy -f -n __tansy_no_command -a %s -d %s\n", c.name, fishQuote(c.summary))
	}
	for _, c := range all {
		of := fmt.Sprintf("complete -c tansy -n '__tansy_command %s'", c.name)
		fmt.Fprintf(w, "%s -l help -d 'explain the command'\n", of)
		for _, f := range c.flags {
			name := "-l " + strings.TrimPrefix(f.name, "--")
			if short, ok := strings.CutPrefix(f.name, "-"); ok && len(short) == 1 {
				name = "-s " + short
			}
			switch ws := f.words(); {
			case ws != nil:
				name += " -x -a " + fishQuote(strings.Join(ws, " "))
			case f.value == "FILE":
				name += " -r -F"
			case f.value != "":
				name += " -x"
			}
			fmt.Fprintf(w, "%s %s -d %s\n", of, name, fishQuote(f.usage))
		}
		if c.words != "" {
			fmt.Fprintf(w, "%s -a %s\n", of, fishQuote(c.words))
		}
	}
}

// fishQuote returns a word of fish.
func fishQuote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}
