// Package hooks holds the test that what git runs before a commit (`make hooks`) looks at what is committed.
package hooks

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// check stands for verified/tools/gen-check: it takes time, and needs Dafny. A translation is a copy here.
const check = `#!/bin/sh
set -eu
cd "$(dirname "$0")/../.."
echo looked
cmp verified/a.dfy internal/gen/a.go
`

// TestPreCommit commits a source and its translation, together and by halves, beside other changes of the working tree.
func TestPreCommit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	hook, err := os.ReadFile("../../verified/tools/hooks/pre-commit")
	if err != nil {
		t.Fatal(err)
	}
	r := repository{t, t.TempDir()}
	r.write("verified/tools/hooks/pre-commit", string(hook))
	r.write("verified/tools/gen-check", check)
	r.write("bin/dafny", "#!/bin/sh\n")
	r.translated("one")
	r.git("init", "-q")
	r.git("config", "core.hooksPath", "verified/tools/hooks")
	r.git("config", "user.name", "Nobody")
	r.git("config", "user.email", "nobody@localhost")
	r.git("add", "--all")
	r.commit("all of it", true, true)

	r.translated("two")
	r.git("add", "verified/a.dfy")
	r.commit("half of a change, whose other half is in the working tree", false, true)
	r.git("add", "internal/gen/a.go")
	r.commit("the whole change", true, true)

	r.translated("three")
	r.commit("half of a change, named", false, true, "verified/a.dfy")
	r.commit("both halves, named", true, true, "verified/a.dfy", "internal/gen/a.go")

	r.translated("four")
	r.git("add", "--all")
	r.write("verified/a.dfy", "not added yet")
	r.commit("a whole change, and the next half one begun", true, true)

	r.write("notes", "")
	r.git("add", "notes")
	r.commit("what has nothing to do with it", true, false)
	r.commit("a source alone", false, true, "--all")
}

type repository struct {
	t   *testing.T
	dir string
}

func (r repository) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o755)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// translated writes a source and its translation.
func (r repository) translated(text string) {
	r.write("verified/a.dfy", text)
	r.write("internal/gen/a.go", text)
}

func (r repository) run(args ...string) (string, error) {
	c := exec.CommandContext(r.t.Context(), "git", args...)
	c.Dir = r.dir
	for _, v := range os.Environ() { // without the repository that this test may be run in
		if !strings.HasPrefix(v, "GIT_") {
			c.Env = append(c.Env, v)
		}
	}
	c.Env = append(c.Env, "PATH="+filepath.Join(r.dir, "bin")+":"+os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := c.CombinedOutput()
	return string(out), err
}

func (r repository) git(args ...string) {
	r.t.Helper()
	if out, err := r.run(args...); err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// commit commits, and checks whether that was allowed, and whether the translation was looked at.
func (r repository) commit(what string, allowed, looked bool, args ...string) {
	r.t.Helper()
	out, err := r.run(append([]string{"commit", "-q", "-m", what}, args...)...)
	if (err == nil) != allowed || strings.Contains(out, "looked") != looked {
		r.t.Errorf("%s: %v\n%s", what, err, out)
	}
}
