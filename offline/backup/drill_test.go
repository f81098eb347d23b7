package backup

import (
	"bytes"
	"path/filepath"
	"testing"

	"tansy/fs"
)

// The drill: random work on a volume, backups between, each added to the one before; then each of them, restored, has
// what the volume had. Some are of a volume whose server was killed.
func TestDrill(t *testing.T) {
	r := drawn(t)
	rounds, work := 10, 150
	if testing.Short() {
		rounds = 4
	}
	for _, most := range []uint64{0, 1 << 30} {
		w := newWorker(t, 48<<20, fs.MkfsOptions{MaxBytes: most}, r.Int63())
		folder := filepath.Join(t.TempDir(), "backups")
		var trees []map[string]string
		var paths []string
		for i := range rounds {
			w.run(work)
			trees = append(trees, tree(t, w.v))
			var path string
			var report Report
			if r.Intn(2) == 0 {
				path, report = add(t, folder, rest(t, w.killed()), i > 0 && r.Intn(8) == 0)
			} else {
				w.close()
				path, report = add(t, folder, rest(t, w.d), i > 0 && r.Intn(8) == 0)
				w.open()
			}
			if len(report.Damaged) > 0 || report.Number != uint64(i+1) {
				t.Errorf("%+v", report)
			}
			paths = append(paths, path)
		}
		for i, path := range paths {
			c := chain(t, path)
			clean(t, path, deviceIn(t, c))
			onePlace(t, c)
			sameTree(t, path+" as it lies", trees[i], treeOf(t, deviceIn(t, c)))
			v := restored(t, c, i%2 == 1)
			clean(t, path+" restored", v)
			sameTree(t, path+" restored", trees[i], treeOf(t, v))
		}
		if c := chain(t, folder); c.Name() != paths[rounds-1] {
			t.Errorf("the last backup of the folder is %s, and not %s", c.Name(), paths[rounds-1])
		}
		w.close()
	}
}

// onePlace makes sure that of the two blocks of a page of the tree of codes one is stored at most.
func onePlace(t *testing.T, c *Chain) {
	t.Helper()
	s, err := superOf(c)
	if err != nil {
		t.Fatal(err)
	}
	for p := range s.Pages() {
		_, first, _, err1 := c.find(1 + 2*p)
		_, second, _, err2 := c.find(2 + 2*p)
		if err1 != nil || err2 != nil || first.hasData() && second.hasData() {
			t.Errorf("%s: page %d: %+v, %+v (%v, %v)", c.Name(), p, first, second, err1, err2)
		}
	}
}

// A backup from a pipe is that in a file.
func TestStream(t *testing.T) {
	w := newWorker(t, 24<<20, fs.MkfsOptions{}, drawn(t).Int63())
	w.run(200)
	want := tree(t, w.v)
	b := full(t, rest(t, w.killed()))
	w.close()
	s, err := NewStream(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	v := restored(t, s, true)
	clean(t, "restored", v)
	sameTree(t, "restored", want, treeOf(t, v))
	if _, err := fs.AtRest(v, quiet); err != nil {
		t.Error(err)
	}
}
