//go:build linux

package programs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// archive is extracted again and again by tar, into a folder that is synced then; the folder before the last goes.
type archive struct {
	client
	file     string
	oldest   int  // tree that is there
	removing bool // what was not reported is not whole any more
}

// newTar makes the archive, which does not lie on the volume.
func newTar(t *testing.T, seed uint64) func() program {
	if _, err := exec.LookPath("tar"); err != nil {
		t.Skip(err)
	}
	dir, r := t.TempDir(), rand.New(rand.NewPCG(seed, 0))
	tree := filepath.Join(dir, "tree")
	for i := range 120 {
		at := filepath.Join(tree, fmt.Sprint("d", i%7), fmt.Sprint("e", i%3))
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(at, fmt.Sprint("f", i))
		if err := os.WriteFile(name, []byte(text(r.IntN(1000))), 0o600+os.FileMode(i%64)); err != nil {
			t.Fatal(err)
		}
		if i%10 == 0 {
			for _, err := range []error{
				os.Link(name, name+".hard"), os.Symlink(fmt.Sprint("f", i), name+".soft"), os.Truncate(name, int64(r.IntN(1<<20))),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	file := filepath.Join(dir, "archive")
	if _, err := output(exec.Command("tar", "cSf", file, "-C", tree, ".")); err != nil {
		t.Fatal(err)
	}
	return func() program { return &archive{file: file} }
}

func (a *archive) flags(int) []string { return nil }

func (a *archive) String() string { return fmt.Sprintf("%d trees", a.done) }

func (a *archive) prepare(string) error { return nil }

func (a *archive) work(ctx context.Context, dir string, _ *rand.Rand, reported func() bool) error {
	c := exec.Command("sh", "-e", "-c", `while read n; do
	mkdir $n; tar xpf `+a.file+` -C $n; rm -rf -- $((n - 2)); sync $n
	echo done $n
done`)
	c.Dir = dir
	return a.run(ctx, c, func(n int) string { return fmt.Sprint(n) }, reported)
}

func (a *archive) check(_ context.Context, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		// The one that is to go when the next is there may have begun to.
		if n := e.Name(); n != fmt.Sprint(a.done-1) && n != fmt.Sprint(a.done) && n != fmt.Sprint(a.begun) {
			return fmt.Errorf("%s is there after %d", n, a.done)
		}
	}
	for n := max(1, a.oldest, a.done-1); n <= a.done; n++ {
		if n == a.done-1 && a.begun > a.done {
			continue
		}
		out, err := output(exec.Command("tar", "df", a.file, "-C", filepath.Join(dir, fmt.Sprint(n))))
		if err != nil || out != "" {
			return fmt.Errorf("%d is not what the archive has: %w %s", n, err, out)
		}
	}
	return a.goOn(dir)
}

// goOn looks at what was not reported: a beginning of the archive. Then it is removed.
func (a *archive) goOn(dir string) error {
	list, err := output(exec.Command("tar", "tf", a.file))
	if err != nil {
		return err
	}
	missing := ""
	for _, name := range strings.Fields(list) {
		switch _, err := os.Lstat(filepath.Join(dir, fmt.Sprint(a.begun), name)); {
		case err != nil && missing == "":
			missing = name
		case err == nil && missing != "" && !a.removing:
			return fmt.Errorf("%d has %s without %s, which was before", a.begun, name, missing)
		}
	}
	if a.begun == a.done {
		return nil
	}
	a.removing = true
	for _, n := range []int{a.begun, a.done - 1} {
		if err := os.RemoveAll(filepath.Join(dir, fmt.Sprint(n))); err != nil {
			return err
		}
	}
	if err := syncFolder(dir); err != nil {
		return err
	}
	a.begun, a.oldest, a.removing = a.done, a.done, false
	return nil
}
