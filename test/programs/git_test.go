//go:build linux

package programs

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// git commits. It does not make the name of a commit durable, so that it counts when the folder is synced behind it, or
// at once where the mount makes every change durable.
type git struct {
	client
	round int
}

func newGit(t *testing.T, _ uint64) func() program {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	return func() program { return &git{} }
}

func (g *git) String() string { return fmt.Sprintf("%d commits", g.done) }

// every tells whether every change is durable.
func (g *git) every() bool { return g.round%2 == 1 }

func (g *git) flags(round int) []string {
	g.round = round
	if g.every() {
		return []string{"--sync"}
	}
	return nil
}

func (g *git) shell(dir, script string) *exec.Cmd {
	c := exec.Command("sh", "-e", "-c", script)
	c.Dir = dir
	c.Env = append(os.Environ(), "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a")
	return c
}

func (g *git) prepare(dir string) error {
	_, err := output(g.shell(dir, "git init -q; git config gc.auto 0; git commit -q --allow-empty -m 0; sync ."))
	return err
}

// numbers is how many numbers a file has in a commit.
func numbers(n int) int { return n % 500 }

func (g *git) work(ctx context.Context, dir string, r *rand.Rand, reported func() bool) error {
	sync := "sync .git"
	if g.every() {
		sync = ""
	}
	// What git makes durable by itself does not matter: a crash leaves a beginning of all that it has done.
	fsync := []string{"committed,loose-object", "none", "all"}[r.IntN(3)]
	return g.run(ctx, g.shell(dir, `git config core.fsync `+fsync+`
while read n; do
	mkdir -p d$((n % 3))
	seq $((n % 500)) >d$((n % 3))/f$((n % 11))
	echo $n >last
	git add -A; git commit -q -m $n
	if [ $((n % 13)) = 0 ]; then git branch -f b$((n % 5)); git tag t$n; git gc -q --prune=now; fi
	`+sync+`
	echo done $n
done`), func(n int) string { return fmt.Sprint(n) }, reported)
}

// besides are lines of git fsck that tell of nothing wrong.
var besides = regexp.MustCompile(`(?m)^(dangling|unreachable|notice:) .*\n`)

func (g *git) check(_ context.Context, dir string) error {
	// Like the user of a machine that has come up again: nobody holds these.
	if err := filepath.WalkDir(filepath.Join(dir, ".git"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && (filepath.Ext(path) == ".lock" || d.Name() == "gc.pid" || d.Name() == "packed-refs.new") {
			err = os.Remove(path)
		}
		return err
	}); err != nil {
		return err
	}
	out, err := output(g.shell(dir, "git fsck --full --strict 2>&1"))
	if err != nil {
		return err
	}
	if out = besides.ReplaceAllString(out, ""); out != "" {
		return fmt.Errorf("git fsck: %s", out)
	}
	out, err = output(g.shell(dir, "git log --format=%s"))
	if err != nil {
		return err
	}
	subjects := strings.Fields(out)
	last := len(subjects) - 1
	for i, s := range subjects {
		if s != fmt.Sprint(last-i) {
			return fmt.Errorf("the commits are %s", out)
		}
	}
	if err := g.found(last); err != nil || last == 0 {
		return err
	}
	out, err = output(g.shell(dir, "git reset -q --hard; git clean -qfd; git status --short; cat last"))
	if err != nil || out != fmt.Sprintln(last) {
		return fmt.Errorf("the tree of commit %d: %q, %v", last, out, err)
	}
	for n := max(1, last-2); n <= last; n++ { // no later one has written to their files
		file := fmt.Sprintf("d%d/f%d", n%3, n%11)
		out, err := output(g.shell(dir, "cat "+file))
		if err != nil || len(strings.Fields(out)) != numbers(n) {
			return fmt.Errorf("%s of commit %d: %q, %v", file, n, out, err)
		}
	}
	return nil
}
