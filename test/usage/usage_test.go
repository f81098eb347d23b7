// Package usage holds the test that each program of this repository says what it is for when it is asked with --help,
// and does nothing when it is given an option that it does not know.
package usage

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const root = "../.."

// passing are programs that pass all of their words on to another, or are started by others alone.
var passing = []string{"packaging/entrypoint", "test/kit/rbdtest/nbdkit", "test/linux/guest/probe"}

func TestGoPrograms(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{if eq .Name "main"}}{{.ImportPath}}{{end}}`, "tansy/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	programs := strings.Fields(string(out))
	if len(programs) < 10 {
		t.Fatalf("there are only %d programs: %s", len(programs), programs)
	}
	programs = slices.DeleteFunc(programs, func(p string) bool {
		return slices.Contains(passing, strings.TrimPrefix(p, "tansy/"))
	})
	bin := t.TempDir()
	build := exec.Command("go", append([]string{"build", "-o", bin + "/"}, programs...)...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, p := range programs {
		t.Run(strings.TrimPrefix(p, "tansy/"), func(t *testing.T) {
			// an empty PATH: whatever a program starts in error does no harm
			try(t, []string{"PATH="}, filepath.Join(bin, filepath.Base(p)))
		})
	}
}

// ofFiles are programs whose words are files.
var ofFiles = []string{"lines.py", "sources.py", "verify.py"}

func TestPythonPrograms(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	files, err := filepath.Glob(root + "/verified/tools/*.py")
	if err != nil || len(files) < 10 {
		t.Fatalf("there are only %d tools: %v", len(files), err)
	}
	for _, f := range append(files, root+"/metatheory/check.py", root+"/docs/design/pictures/draw.py") {
		t.Run(filepath.Base(f), func(t *testing.T) {
			if filepath.Base(f) == "solver.py" { // what it does not know, Z3 may
				help(t, os.Environ(), python, f)
				return
			}
			try(t, os.Environ(), python, f)
			if slices.Contains(ofFiles, filepath.Base(f)) {
				status, out, complaint := run(t, os.Environ(), python, f, "no/such/file")
				if status != 2 || out != "" || !strings.Contains(complaint, "no file to read: no/such/file\n") {
					t.Errorf("of a file that is not there it says, and ends with %d: %s%s", status, out, complaint)
				}
			}
		})
	}
}

func TestShellPrograms(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	path := t.TempDir()
	for _, name := range []string{"sed", "dirname"} { // all that is needed to say what a program is for
		file, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(file, filepath.Join(path, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{".ci/run", "disk/rbd/plugin/build", "packaging/release", "packaging/revision",
		"test/ceph/cluster", "test/linux/run", "test/ltp/run", "test/xfstests/run",
		"verified/tools/gen-check", "verified/tools/hooks/pre-commit", "verified/tools/install"} {
		t.Run(f, func(t *testing.T) {
			try(t, []string{"PATH=" + path, "HOME=" + t.TempDir()}, bash, filepath.Join(root, f))
		})
	}
}

// try runs a program with --help and with an option that no program has.
func try(t *testing.T, env []string, command ...string) {
	help(t, env, command...)
	status, out, complaint := run(t, env, append(command, "--no-such-option")...)
	if status != 2 || out != "" || complaint == "" {
		t.Errorf("with an unknown option it ends with %d, and not 2\noutput: %s\nerrors: %s", status, out, complaint)
	}
}

func help(t *testing.T, env []string, command ...string) {
	status, out, complaint := run(t, env, append(command, "--help")...)
	if text := out + complaint; status != 0 || !strings.Contains(strings.ToLower(text), "usage") &&
		!strings.Contains(text, filepath.Base(command[len(command)-1])) {
		t.Errorf("with --help it ends with %d and says: %s", status, text)
	}
}

// run returns the exit status of a command, or -1 if it did not end by itself, and what it said.
func run(t *testing.T, env []string, command ...string) (status int, out, complaint string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr, c.Env, c.WaitDelay = &stdout, &stderr, env, time.Second
	var exit *exec.ExitError
	if err := c.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), stdout.String(), stderr.String()
}
