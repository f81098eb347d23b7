package backup

import (
	"bytes"
	"context"
	"errors"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tansy/disk"
	"tansy/fs"
)

func keep(t *testing.T, rules string) Keep {
	t.Helper()
	k, err := ParseKeep(rules)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Which of some days' backups are kept.
func TestKeep(t *testing.T) {
	day := func(text string) time.Time {
		at, err := time.Parse("2006-01-02 15", text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	var all []Listed
	for _, text := range []string{
		"2025-12-31 10", "2026-01-30 10", "2026-02-01 10", "2026-02-02 09", "2026-02-02 10", "2026-02-08 10", "2026-02-09 10",
		"2026-02-10 08", "2026-02-10 09", "2026-02-10 10",
	} {
		all = append(all, Listed{Info: Info{When: day(text)}})
	}
	for rules, want := range map[string]string{
		"last=1":           "..........x"[1:],
		"last=3":           ".......xxx",
		"daily=1":          ".........x",
		"daily=3":          ".....xx..x",
		"hourly=2":         "........xx",
		"weekly=2":         ".....x...x",
		"weekly=3":         "..x..x...x",
		"monthly=2":        ".x.......x",
		"yearly=9":         "x........x",
		"daily=2,yearly=2": "x.....x..x",
		"daily=100":        "xxx.xxx..x",
	} {
		got := ""
		for _, k := range keep(t, rules).of(all) {
			got += map[bool]string{true: "x", false: "."}[k]
		}
		if got != want {
			t.Errorf("%s: %s, want %s", rules, got, want)
		}
	}
	if got := (Keep{}).of(all); !got[len(all)-1] || slices.Contains(got[:len(all)-1], true) {
		t.Errorf("without rules: %v", got)
	}
	for _, wrong := range []string{"", "daily", "daily=", "daily=0", "daily=-1", "daily=x", "fortnightly=1", "=1",
		"daily=1,"} {
		if k, err := ParseKeep(wrong); err == nil {
			t.Errorf("%q: %v", wrong, k)
		}
	}
}

// history is a folder with backups of one volume, and what the volume had at each.
type history struct {
	t      *testing.T
	r      *rand.Rand
	w      *worker
	folder string
	trees  map[ID]map[string]string
	when   time.Time
}

func newHistory(t *testing.T) *history {
	t.Helper()
	r := drawn(t)
	return &history{t, r, newWorker(t, 48<<20, fs.MkfsOptions{}, r.Int63()), t.TempDir(), map[ID]map[string]string{},
		time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
}

// day works on the volume, and makes a backup, a day later than the last.
func (h *history) day(full bool) {
	h.t.Helper()
	h.w.run(100)
	f := h.open()
	defer f.Close()
	h.when = h.when.Add(24 * time.Hour)
	_, r, err := f.Backup(context.Background(), rest(h.t, h.w.killed()), full, Options{When: h.when})
	if err != nil {
		h.t.Fatal(err)
	}
	h.trees[r.ID] = tree(h.t, h.w.v)
}

func (h *history) open() *Folder {
	h.t.Helper()
	f, err := OpenFolder(h.folder)
	if err != nil {
		h.t.Fatal(err)
	}
	return f
}

// prune prunes, and returns what is left.
func (h *history) prune(rules string) []Listed {
	h.t.Helper()
	f := h.open()
	defer f.Close()
	before, err := List(h.folder)
	if err != nil {
		h.t.Fatal(err)
	}
	p, err := f.Prune(context.Background(), keep(h.t, rules), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	after, err := List(h.folder)
	if err != nil || len(before)-len(after) != len(p.Gone) {
		h.t.Errorf("%d backups, of which %q are gone, and %d are there (%v)", len(before), p.Gone, len(after), err)
	}
	wanted := keep(h.t, rules).of(before)
	for i, l := range before {
		there := slices.ContainsFunc(after, func(x Listed) bool { return x.ID == l.ID && x.Path == l.Path })
		if base := slices.Contains(p.Base, l.Path); there != (wanted[i] || base) || base && (!l.Full() || wanted[i]) {
			h.t.Errorf("%s: it is to be kept: %v, base: %v, there: %v", l.Path, wanted[i], base, there)
		}
	}
	return after
}

// check makes sure that each backup has what the volume had then.
func (h *history) check(all []Listed) {
	h.t.Helper()
	for _, l := range all {
		c := chain(h.t, l.Path)
		v := restored(h.t, c, h.r.Intn(2) == 0)
		clean(h.t, l.Path, v)
		clean(h.t, l.Path+" as it lies", deviceIn(h.t, c))
		sameTree(h.t, l.Path, h.trees[l.ID], treeOf(h.t, v))
	}
}

// Backups that are not kept go, and all others stay what they were, day by day. A full one that is not kept stays as
// long as little is added to it.
func TestPrune(t *testing.T) {
	h := newHistory(t)
	days := 16
	if testing.Short() {
		days = 6
	}
	for i := range days {
		h.day(i == 10)
		all := h.prune([]string{"daily=3", "daily=2,weekly=2", "last=4", "daily=2"}[h.r.Intn(4)])
		if i%3 == 2 {
			h.check(all)
		}
	}
	all := h.prune("last=1")
	h.check(all)
	if len(all) > 2 || !all[0].Full() {
		t.Errorf("left: %v", all)
	}
}

// A full backup to which much is added becomes one with what was added first; another stays for a while.
func TestBase(t *testing.T) {
	d := made(t, 64<<20, fs.MkfsOptions{}, func(v *fs.FS) { put(t, v, "a", make([]byte, 0)) })
	folder := t.TempDir()
	fill := func(name string, blocks int) {
		change(t, d, func(v *fs.FS) { put(t, v, name, []byte(strings.Repeat(name, blocks*disk.BlockSize))) })
		add(t, folder, rest(t, d), false)
	}
	fill("b", 1000)
	fill("c", 100)
	for i, want := range []int{2, 1} {
		f, err := OpenFolder(folder)
		if err != nil {
			t.Fatal(err)
		}
		p, err := f.Prune(context.Background(), keep(t, "last=1"), nil)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		all, err := List(folder)
		if err != nil || len(all) != want || len(p.Base) != want-1 {
			t.Errorf("round %d: %v, %d are left, want %d (%v)", i, p, len(all), want, err)
		}
		c := chain(t, folder)
		clean(t, "pruned", deviceIn(t, c))
		sameTree(t, "pruned", treeOf(t, d), treeOf(t, restored(t, c, true)))
		if i == 0 {
			fill("d", 400)
		}
	}
}

// A prune that is interrupted at any place leaves all that is kept whole, and the next one does the rest.
func TestPruneInterrupted(t *testing.T) {
	h := newHistory(t)
	for range 4 {
		h.day(false)
	}
	all, err := List(h.folder)
	if err != nil {
		t.Fatal(err)
	}
	f := h.open()
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	if _, err := f.Prune(ctx, keep(t, "last=1"), func(_, _ uint64) { cancel(why) }); !errors.Is(err, why) {
		t.Errorf("interrupted: %v", err)
	}
	// a crash between the last two steps: the third is put into the fourth, and there yet
	if _, err := f.merge(context.Background(), all[2], all[3], nil); err != nil {
		t.Error(err)
	}
	f.Close()
	left, err := List(h.folder)
	if err != nil || len(left) != 4 {
		t.Errorf("%v, %v", left, err)
	}
	h.check(left)
	left = h.prune("last=1")
	if len(left) > 2 {
		t.Errorf("%v", left)
	}
	h.check(left)
}

// Nothing is pruned where a file is damaged, and nothing is put together with what is not as it was written.
func TestPruneDamaged(t *testing.T) {
	folder, _ := twoFiles(t)
	all, err := List(folder)
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range all {
		sound, err := os.ReadFile(l.Path)
		if err != nil {
			t.Fatal(err)
		}
		contents := bytes.Index(sound, bytes.Repeat([]byte{"ad"[i]}, disk.BlockSize)) // that counts in the end
		for _, at := range []int{100, disk.BlockSize + 100, contents + 100, len(sound) - 100} {
			b := slices.Clone(sound)
			b[at] ^= 1
			if err := os.WriteFile(l.Path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := OpenFolder(folder)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.Prune(context.Background(), keep(t, "last=1"), nil)
			f.Close()
			names, err2 := filepath.Glob(filepath.Join(folder, "*"))
			if now, err3 := List(folder); err3 != nil || err2 != nil || len(now) != 2 || len(names) != 2 ||
				!errors.Is(err, ErrDamaged) {
				t.Errorf("%s, byte %d: %v; then there are %v (%v, %v)", l.Path, at, err, names, err2, err3)
			}
		}
		if err := os.WriteFile(l.Path, sound, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
