package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
)

func completion() (*flagSet, action) {
	f := newFlags("completion", "bash|zsh|fish", `
  source <(tansy completion bash)
      for this shell; in ~/.bashrc for all
  tansy completion bash > /etc/bash_completion.d/tansy
      for everybody
  tansy completion zsh > "${fpath[1]}/_tansy"
      for zsh, with compinit
  tansy completion fish > ~/.config/fish/completions/tansy.fish
      for fish
`)
	return f, func(args []string) int {
		pos, code, done := parse(f, args, 1, 1)
		if done {
			return code
		}
		switch pos[0] {
		case "bash":
			bashCompletion(stdout, complete())
		case "zsh":
			zshCompletion(stdout, complete())
		case "fish":
			fishCompletion(stdout, complete())
		default:
			return misused(f, fmt.Sprintf("no completion for %q: give bash, zsh or fish", pos[0]))
		}
		return exitOK
	}
}

// complete returns the sub-commands with their flags.
func complete() []completed {
	var all []completed
	for _, c := range commands {
		x := completed{command: c}
		for _, f := range flagsOf(c) {
			value, usage := describe(f)
			x.flags = append(x.flags, completedFlag{spelled(f), value, usage})
		}
		all = append(all, x)
	}
	return all
}

// completed is what can be completed of a sub-command.
type completed struct {
	command
	flags []completedFlag
}

// completedFlag is a flag. value is what its value is called, "" for none; that of several words with |
// between them is one of these, and all but files are not completed.
type completedFlag struct{ name, value, usage string }

func (f completedFlag) words() []string {
	if strings.Contains(f.value, "|") {
		return strings.Split(f.value, "|")
	}
	return nil
}

// flagsOf returns the flags of a sub-command.
func flagsOf(c command) (flags []*flag.Flag) {
	helpOf(c).VisitAll(func(x *flag.Flag) { flags = append(flags, x) })
	return flags
}

// bashCompletion prints a script for bash. Where it proposes nothing, bash completes names of files.
func bashCompletion(w io.Writer, all []completed) {
	var names []string
	for _, c := range all {
		names = append(names, c.name)
	}
	fmt.Fprintf(w, `# completion of tansy's arguments for bash
_tansy() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=
	if [[ $cur == = ]]; then
		cur=
	elif [[ $prev == = ]]; then
		prev=${COMP_WORDS[COMP_CWORD-2]}
	fi
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		words=%q
	else
		case "${COMP_WORDS[1]} $prev" in
`, strings.Join(names, " "))
	for _, c := range all {
		for _, f := range c.flags {
			if ws := f.words(); ws != nil {
				fmt.Fprintf(w, "\t\t\"%s %s\") words=%q ;;\n", c.name, f.name, strings.Join(ws, " "))
			} else if f.value != "" {
				fmt.Fprintf(w, "\t\t\"%s %s\") return ;;\n", c.name, f.name)
			}
		}
	}
	fmt.Fprint(w, "\t\t*)\n\t\t\tcase \"${COMP_WORDS[1]} $cur\" in\n")
	for _, c := range all {
		flags := []string{"--help"}
		for _, f := range c.flags {
			flags = append(flags, f.name)
		}
		fmt.Fprintf(w, "\t\t\t\"%s -\"*) words=%q ;;\n", c.name, strings.Join(flags, " "))
		if c.words != "" {
			fmt.Fprintf(w, "\t\t\t\"%s \"*) words=%q ;;\n", c.name, c.words)
		}
	}
	fmt.Fprint(w, `			esac
			;;
		esac
	fi
	[[ $words ]] && COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o bashdefault -o default -F _tansy tansy
`)
}

// zshCompletion prints a function for zsh, to be sourced, or put into a folder of fpath.
func zshCompletion(w io.Writer, all []completed) {
	fmt.Fprint(w, "#compdef tansy\n# completion of tansy's arguments for zsh\n_tansy() {\n\tif ((CURRENT == 2)); "+
		"then\n\t\tlocal -a commands=(\n")
	for _, c := range all {
		fmt.Fprintf(w, "\t\t\t%s\n", zshQuote(c.name+":"+c.summary))
	}
	fmt.Fprint(w, "\t\t)\n\t\t_describe command commands\n\t\treturn\n\tfi\n\tlocal command=$words[2]\n\tshift "+
		"words\n\t((CURRENT--))\n\tcase $command in\n")
	for _, c := range all {
		fmt.Fprintf(w, "\t%s)\n\t\t_arguments '--help[explain the command]'", c.name)
		for _, f := range c.flags {
			spec := f.name + "[" + zshText.Replace(f.usage) + "]"
			switch ws := f.words(); {
			case ws != nil:
				spec += ":" + "value:(" + strings.Join(ws, " ") + ")"
			case f.value == "FILE":
				spec += ":FILE:_files"
			case f.value != "":
				spec += ":" + zshText.Replace(f.value) + ":"
			}
			fmt.Fprintf(w, " \\\n\t\t\t%s", zshQuote(spec))
		}
		rest := "'*:FILE:_files'"
		if c.words != "" {
			rest = fmt.Sprintf(`'*: :_alternative "words:argument:(%s)" "files:FILE:_files"'`, c.words)
		}
		fmt.Fprintf(w, " \\\n\t\t\t%s\n\t\t;;\n", rest)
	}
	fmt.Fprint(w, "\tesac\n}\nif [[ $funcstack[1] == _tansy ]]; then\n\t_tansy \"$@\"\nelse\n\tcompdef _tansy tansy\nfi\n")
}

// zshText escapes what means something in the specifications of _arguments.
var zshText = strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, ":", `\:`)

// zshQuote returns a word of a shell.
func zshQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
