package main

import (
	"os/exec"
	"strings"
	"testing"
)

// The manual page has every command with every flag and its value, and troff finds no fault with it.
func TestManPage(t *testing.T) {
	page := tansy(t, "man")
	for _, c := range commands {
		_, section, ok := strings.Cut(page, "\n.SH TANSY "+strings.ToUpper(c.name)+"\n")
		if !ok {
			t.Errorf("no section of %s", c.name)
			continue
		}
		section, _, _ = strings.Cut(section, "\n.SH ")
		for _, g := range helpOf(c).groups {
			want := strings.ToUpper(g.title[:1]) + g.title[1:]
			if !strings.Contains(section, "\n.SS \""+roff(want)+"\"\n.TP\n") {
				t.Errorf("%s: no part %q", c.name, want)
			}
		}
		for _, f := range flagsOf(c) {
			value, _ := describe(f)
			if want := "\n.BI " + roff(spelled(f)) + ` "` + strings.TrimRight(" "+roff(value), " ") + "\"\n"; !strings.Contains(section, want) {
				t.Errorf("%s: no %q", c.name, want)
			}
		}
	}
	for _, line := range strings.Split(page, "\n") {
		if strings.HasPrefix(line, "'") || strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("troff would not print %q", line)
		}
	}
	checked := false
	for _, check := range [][]string{{"groff", "-man", "-ww", "-z", "-Tutf8"}, {"mandoc", "-Tlint", "-Wwarning"}} {
		program, err := exec.LookPath(check[0])
		if err != nil {
			continue
		}
		checked = true
		command := exec.Command(program, check[1:]...)
		command.Stdin = strings.NewReader(page)
		if out, err := command.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%v: %v\n%s", check, err, out)
		}
	}
	if !checked {
		t.Skip("neither groff nor mandoc here")
	}
}
