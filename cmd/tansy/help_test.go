package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"
	"unicode/utf8"
)

// tansy runs a sub-command as a process, and returns what it prints.
func tansy(t *testing.T, args ...string) string {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestHelperTansy$")
	c.Env = append(os.Environ(), "TANSY_ARGS="+strings.Join(args, "\n"))
	out, err := c.Output()
	if err != nil {
		t.Fatalf("tansy %v: %v", args, err)
	}
	return string(out)
}

// Help shows flags as they are typed, what their values are, and the units of these.
func TestHelp(t *testing.T) {
	overview := tansy(t, "--help")
	for _, args := range []string{"help help", "help --help", "--help --help", "--help help", "-h -h", "help -help"} {
		if text := tansy(t, strings.Fields(args)...); text != overview {
			t.Errorf("tansy %s says\n%s", args, text)
		}
	}
	for _, c := range commands {
		text := tansy(t, c.name, "--help")
		for _, f := range flagsOf(c) {
			value, _ := describe(f)
			line := strings.TrimRight("\n  "+spelled(f)+" "+value, " ")
			if !strings.Contains(text, line) {
				t.Errorf("%s: no %q in\n%s", c.name, line, text)
			}
			if value == "" != isBool(f.Value) || strings.ContainsAny(value, "`\" ") || value == "STRING" || value == "VALUE" || value == "DURATION" {
				t.Errorf("%s --%s: its value is called %q", c.name, f.Name, value)
			}
		}
		narrow(t, c.name, text)
		if groups := helpOf(c).groups; groups != nil {
			names := map[string]int{}
			for _, g := range groups {
				if !strings.Contains(text, "\n\n"+g.title+":\n  -") {
					t.Errorf("%s: no group %q", c.name, g.title)
				}
				for _, name := range strings.Fields(g.flags) {
					names[name]++
				}
			}
			for _, f := range flagsOf(c) {
				if names[f.Name] != 1 {
					t.Errorf("%s --%s is in %d groups", c.name, f.Name, names[f.Name])
				}
				delete(names, f.Name)
			}
			for name := range names {
				t.Errorf("%s has no flag %s", c.name, name)
			}
		}
	}
	narrow(t, "help", tansy(t, "help"))
	serve := tansy(t, "serve", "--help")
	for _, want := range []string{"\nvolumes:\n  --volume FILE ", "\nclients:\n  --listen HOST:PORT",
		"\n  --cache SIZE        size of the block cache; several volumes get an equal part\n" +
			"                      each (default a quarter of the memory there is for the\n                      server)\n", "\nSIZE is a number of bytes", "\nTIME is a number with ms", "(default 10m)\n", "(default 168h)\n", "default 5s)\n", "\n  -v                  log more\n"} {
		if !strings.Contains(serve, want) {
			t.Errorf("no %q in\n%s", want, serve)
		}
	}
}

// narrow looks at the width of each line of a help.
func narrow(t *testing.T, name, text string) {
	t.Helper()
	for i, line := range strings.Split(text, "\n") {
		if utf8.RuneCountInString(line) > helpWidth {
			t.Errorf("%s, line %d has more than %d columns: %s", name, i+1, helpWidth, line)
		}
	}
}

// What is wrong with a flag is said with the flag as it is typed, and what would be right.
func TestWrongFlags(t *testing.T) {
	for args, want := range map[string]string{
		"serve --nope":                "there is no flag --nope",
		"serve --volum x":             "there is no flag --volum: did you mean --volume?",
		"check --force x":             "there is no flag --force: tansy mkfs and tansy restore have it",
		"serve -nope=3":               "there is no flag --nope",
		"serve --cache":               "--cache needs a value: SIZE",
		"serve --idle-timeout":        "--idle-timeout needs a value: TIME",
		"serve --idle-timeout 5":      `--idle-timeout "5": give a time with its unit, such as 500ms, 90s, 10m or 24h`,
		"serve --max-calls many":      `--max-calls "many": give a whole number that is not too large`,
		"serve --max-calls 1e99":      `--max-calls "1e99": give a whole number that is not too large`,
		"serve --read-only=perhaps":   `--read-only "perhaps": give true or false, or no value`,
		"mkfs v.img --size 10X":       `--size "10X": not a size: give bytes, or a number with K, M, G, T, P, or E, such as 10G or 1.5T`,
		"serve --discard perhaps":     `--discard "perhaps": auto, on or off is meant`,
		"serve --portmapper-port 1:2": `--portmapper-port "1:2": give a whole number that is not too large`,
	} {
		c := exec.Command(os.Args[0], "-test.run=^TestHelperTansy$")
		c.Env = append(os.Environ(), "TANSY_ARGS="+strings.Join(strings.Fields(args), "\n"))
		var errs bytes.Buffer
		c.Stderr = &errs
		command, _, _ := strings.Cut(args, " ")
		if err := c.Run(); c.ProcessState.ExitCode() != exitUsage || errs.String() != fmt.Sprintf("tansy %s: %s\n`tansy %s --help` explains the command and shows examples.\n", command, want, command) {
			t.Errorf("%s: %v, %s", args, err, &errs)
		}
	}
	if got, want := tansy(t, "help", "serve"), tansy(t, "serve", "--help"); got != want {
		t.Errorf("help serve: %s", got)
	}
}

func TestVersion(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"--version"}} {
		got := tansy(t, args...)
		const format = "\nvolume format 5\ngo"
		if !strings.HasPrefix(got, "tansy ") || !strings.Contains(got, format) || strings.Count(got, "\n") != 4 {
			t.Errorf("%q", got)
		}
	}
	setting := func(k, v string) debug.BuildSetting { return debug.BuildSetting{Key: k, Value: v} }
	for want, info := range map[string]*debug.BuildInfo{
		"unreleased, unknown":                           nil,
		"unreleased, abc":                               {Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{setting("vcs.revision", "abc"), setting("vcs.modified", "false")}},
		"v1.2.3, abc of 2026-01-02T03:04:05Z, modified": {Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{setting("vcs.revision", "abc"), setting("vcs.modified", "true"), setting("vcs.time", "2026-01-02T03:04:05Z")}},
	} {
		r, rev := versionOf(info)
		if got := r + ", " + rev; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	release, revision = "1.0", "abc of yesterday"
	defer func() { release, revision = "", "" }()
	var b bytes.Buffer
	info := &debug.BuildInfo{Settings: []debug.BuildSetting{setting("vcs.revision", "def")}}
	if printVersion(&b, info); !strings.HasPrefix(b.String(), "tansy 1.0\nrevision abc of yesterday\n") {
		t.Errorf("%q", &b)
	}
}

// What bash proposes: sub-commands, flags, values. For the rest it has names of files.
func TestBashCompletion(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	script := tansy(t, "completion", "bash")
	for line, want := range map[string]string{
		"tansy ser":               "serve",
		"tansy completion ":       "bash zsh fish",
		"tansy serve --ca":        "--cache",
		"tansy serve --log ":      "text json",
		"tansy serve --log = j":   "json", // bash makes three words of --log=j
		"tansy serve --cache ":    "",
		"tansy serve -v --volu":   "--volume",
		"tansy repair d.img --un": "--undo --undo-from",
		"tansy dump d.img in":     "inode",
		"tansy check ":            "",
		"tansy nothing --":        "",
	} {
		words := strings.Split(line, " ")
		quoted := ""
		for _, w := range words {
			quoted += fmt.Sprintf(" %q", w)
		}
		out, err := exec.Command(bash, "-c", fmt.Sprintf("%s\nCOMP_WORDS=(%s) COMP_CWORD=%d\n_tansy\necho \"${COMPREPLY[*]}\"", script, quoted, len(words)-1)).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%q: %q (%v), want %q", line, got, err, want)
		}
	}
}

// zsh, in a terminal, completes what is given.
func TestZshCompletion(t *testing.T) {
	t.Parallel()
	zsh, err := exec.LookPath("zsh")
	if err != nil {
		t.Skip("no zsh here")
	}
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/_tansy", []byte(tansy(t, "completion", "zsh")), 0o600); err != nil {
		t.Fatal(err)
	}
	// The line that stands in the terminal after the tabulator key; ^U and q end it.
	const driver = `
zmodload zsh/zpty || exit 9
zpty z "PS1=; TERM=dumb; zsh -f -i"
say() { zpty -w z "$1" }
say "PS1=; fpath=($DIR \$fpath); autoload -U compinit; compinit -u -D; LISTMAX=0; tansy() { print -r -- got \"\$*\" got }; echo rea''dy"
zpty -r -m z out '*ready*'
zpty -w -n z "$LINE"$'\t'$'\n'
zpty -r -m z out '*got*got*'
print -r -- "$out"
zpty -d z
`
	for line, want := range map[string]string{
		"tansy ser":            "got serve got",
		"tansy serve --cach":   "got serve --cache got",
		"tansy serve --log j":  "got serve --log json got",
		"tansy dump d.img sup": "got dump d.img super got",
		"tansy completion zs":  "got completion zsh got",
	} {
		c := exec.Command(zsh, "-f", "-c", driver)
		c.Env = append(os.Environ(), "DIR="+dir, "LINE="+line)
		out, err := c.CombinedOutput()
		if !strings.Contains(string(out), want) {
			t.Errorf("%q: %q (%v), want %q", line, out, err, want)
		}
	}
}

// What fish proposes: sub-commands, flags, values, and names of files.
func TestFishCompletion(t *testing.T) {
	fish, err := exec.LookPath("fish")
	if err != nil {
		t.Skip("no fish here")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"tansy.fish": tansy(t, "completion", "fish"), "data.img": ""} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var ask strings.Builder
	ask.WriteString("source tansy.fish\n")
	lines := map[string]string{
		"tansy ser":            "serve",
		"tansy completion f":   "fish",
		"tansy serve --cach":   "--cache",
		"tansy serve --log j":  "json",
		"tansy serve --cache ": "",
		"tansy serve --exp":    "--exports",
		"tansy dump x.img sup": "super",
		"tansy check dat":      "data.img",
		"tansy nothing --h":    "",
	}
	for line := range lines {
		fmt.Fprintf(&ask, "echo '>%s'\ncomplete -C '%[1]s'\n", line)
	}
	c := exec.Command(fish, "--no-config", "-c", ask.String())
	c.Dir = dir
	c.Env = append(os.Environ(), "HOME="+dir)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, answer := range strings.Split(string(out), ">")[1:] {
		line, rest, _ := strings.Cut(answer, "\n")
		got := ""
		for _, proposal := range strings.Split(strings.TrimSpace(rest), "\n") {
			word, _, _ := strings.Cut(proposal, "\t")
			got = strings.TrimSpace(got + " " + word)
		}
		if want, ok := lines[line]; !ok || got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
