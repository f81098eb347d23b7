package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A volume has the label that it was made with, and then another, or none; what is no label is refused.
func TestLabel(t *testing.T) {
	img := filepath.Join(t.TempDir(), "v.img")
	says(t, exitUsage, `--label: that cannot be a label: it is no name of a file`, "mkfs", img, "--size", "8M",
		"--label", "a/b")
	says(t, exitOK, "made a volume", "mkfs", img, "--size", "8M", "--label", "my data ä")
	is := func(want string, args ...string) {
		t.Helper()
		if got := says(t, exitOK, "", append([]string{"label", img}, args...)...); got != want {
			t.Errorf("label %q: %q, want %q", args, got, want)
		}
	}
	is("my data ä\n")
	is("", "backups")
	is("backups\n")
	says(t, exitUsage, "it begins or ends with a space", "label", img, " x")
	says(t, exitUsage, "argument 2 is empty", "label", img, "")
	says(t, exitUsage, "exclude each other", "label", img, "x", "--clear")
	says(t, exitUsage, "exclude each other", "label", img, "--udev", "--clear")
	is("backups\n")
	is("", "--clear")
	is("")
	is("", "my data ä$")
	lines := strings.Split(strings.TrimSpace(says(t, exitOK, "", "label", img, "--udev")), "\n")
	uuid := regexp.MustCompile(`ID_FS_UUID=([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})`).FindStringSubmatch(
		strings.Join(lines, "\n"))
	if uuid == nil {
		t.Fatalf("no UUID in %q", lines)
	}
	want := []string{"ID_FS_TYPE=tansy", "ID_FS_USAGE=filesystem", uuid[0], "ID_FS_UUID_ENC=" + uuid[1],
		"ID_FS_LABEL=my_data_ä_", `ID_FS_LABEL_ENC=my\x20data\x20ä\x24`}
	if strings.Join(lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("udev is told %q, want %q", lines, want)
	}
	says(t, exitOK, uuid[1], "dump", img)
	if says(t, exitOK, ": clean; 0 files", "check", img, "--data"); t.Failed() {
		return
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := says(t, exitFailure, "no superblock", "label", other, "--udev"); out != "" {
		t.Errorf("udev is told %q of what is no volume", out)
	}
	says(t, exitFailure, "no such file", "label", other+"x")
	backups := filepath.Join(t.TempDir(), "backups")
	says(t, exitOK, "", "backup", img, backups)
	if got := says(t, exitOK, "", "label", backups); got != "my data ä$\n" {
		t.Errorf("the label of a backup is %q", got)
	}
}

// The label of a volume that is served can be seen and changed.
func TestLabelServed(t *testing.T) {
	t.Parallel()
	img := newImage(t)
	p := startServe(t, "--volume", img)
	for _, x := range []struct{ args, want string }{
		{"", ""}, {"one", ""}, {"", "one\n"}, {"--udev", "ID_FS_LABEL_ENC=one\n"}, {"two", ""}, {"--clear", ""},
		{"", ""}, {"three", ""},
	} {
		args := append([]string{"label", img}, strings.Fields(x.args)...)
		if code, said := tool(t, args...); code != exitOK || !strings.HasSuffix(said, x.want) || x.want == "" && said != "" {
			t.Errorf("label %q: exit code %d, %q, want %q", x.args, code, said, x.want)
		}
	}
	p.stop(t)
	if code, said := tool(t, "label", img); code != exitOK || said != "three\n" {
		t.Errorf("afterwards: exit code %d, %q", code, said)
	}
}
