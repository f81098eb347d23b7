// Package suitetest holds what the tests of those scripts share that run a suite of others, such as xfstests, on
// volumes.
package suitetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Exclusions is the test that in the file list each test that is not run has a reason, and stands there once. A name of
// a test matches the expression.
func Exclusions(t *testing.T, list, name string) {
	t.Helper()
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`^(` + name + `) {2}# \S.{15,}$`)
	var tests []string
	for l := range strings.Lines(string(text)) {
		if l = strings.TrimSuffix(l, "\n"); l == "" || strings.HasPrefix(l, "#") {
			continue
		}
		parts := line.FindStringSubmatch(l)
		if parts == nil {
			t.Errorf("no test with a reason: %q", l)
			continue
		}
		tests = append(tests, parts[1])
	}
	if len(tests) == 0 || !slices.IsSorted(tests) || len(slices.Compact(slices.Clone(tests))) != len(tests) {
		t.Errorf("not each once, in order: %s", tests)
	}
}

// Run runs the script run of the test's own folder, with these variables added to the environment, and returns its exit
// code, and what it said.
func Run(t *testing.T, env []string, args ...string) (status int, said string) {
	t.Helper()
	run := exec.CommandContext(t.Context(), "./run", args...)
	run.Env = append(os.Environ(), env...)
	out, err := run.CombinedOutput()
	if run.ProcessState == nil {
		t.Fatal(err)
	}
	return run.ProcessState.ExitCode(), string(out)
}

// Tools skips a test where one of these programs is missing.
func Tools(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("there is no %s", name)
		}
	}
}

// Folder makes a folder that other users can reach. It goes when the test ends.
func Folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "suite")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Program makes a program with this text, and the folder that it is in.
func Program(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}
