package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Steps of a file are tried. A file that was saved is shown with what must be and what is, and judged by its image.
func TestCrashCommand(t *testing.T) {
	dir := t.TempDir()
	steps, saved := filepath.Join(dir, "steps"), filepath.Join(dir, "saved.json")
	writeFile(t, steps, "# a comment\ncreate bar\n\nfsync bar\n")
	writeFile(t, saved, `{"Problem": "was there", "Steps": ["create bar", "sync"], "Local": true}`)
	wrong := filepath.Join(dir, "wrong")
	writeFile(t, wrong, "create foo bar\n")
	absent := filepath.Join(dir, "absent")
	writeFile(t, absent, "remove bar\n")
	for _, x := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{steps, "--seed", "3"}, exitOK, "distinct states, 0 faults (seed 3), "},
		{[]string{"--length", "1", "--for", "1ns"}, exitOK, "0 sequences, 0 images, 0 distinct states, 0 faults (seed 1)"},
		{[]string{"--replay", saved}, exitOK, "the fault is no more"},
		{[]string{wrong}, exitUsage, "line 1: create: 2 words stand behind it, not 1"},
		{[]string{absent}, exitUsage, `the step "remove bar" is refused where it stands`},
		{[]string{"--replay", steps}, exitUsage, "is not what `tansy crash` saves"},
		{[]string{"--save", saved}, exitUsage, "exists: give another FILE with --save"},
		{[]string{"--clients", "2", "--for", "200ms"}, exitOK, "distinct states, 0 faults (seed 1), "},
		{[]string{"--clients", "5"}, exitUsage, "--clients has to be from 2 to 4"},
		{[]string{"--clients", "2", "--length", "1"}, exitUsage, "--clients is for steps that are drawn"},
		{[]string{"--clients", "2", "--for", "0"}, exitUsage, "--clients never ends by itself"},
		{[]string{"--length", "4"}, exitUsage, "--length has to be 1, 2, or 3"},
		{[]string{"--replay", saved, steps}, exitUsage, "leave STEPS, --length, and --save out"},
	} {
		t.Chdir(dir)
		code, out, errs := saying(t, append([]string{"crash"}, x.args...)...)
		if code != x.code || !strings.Contains(out+errs, x.says) {
			t.Errorf("tansy crash %q: exit code %d, want %d and %q\n%s%s", x.args, code, x.code, x.says, out, errs)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 4 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
