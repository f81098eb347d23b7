package repair

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/internal/volumeend"
	"tansy/journal"
	"tansy/offline/check"
	"tansy/test/kit/replay"
)

// crashed is a volume with files a.0 to a.n, whose server was killed when all of them were in the log.
func crashed(t *testing.T, n int) *disk.Sim {
	t.Helper()
	d := disk.NewSim(8_000 * disk.BlockSize)
	if err := fs.Mkfs(d, fs.MkfsOptions{LogBytes: 8 << 20, Inodes: 500}); err != nil {
		t.Fatal(err)
	}
	v, err := fs.Open(d, fs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	old, err := v.Create(&fs.Cred{}, v.Root(), []byte("old"), fs.Guarded, &fs.SetAttr{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil { // the log is empty
		t.Fatal(err)
	}
	if v, err = fs.Open(d, fs.Options{}); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		f, err := v.Create(&fs.Cred{}, v.Root(), fmt.Appendf(nil, "a.%d", i), fs.Guarded, &fs.SetAttr{}, 0)
		if err == nil {
			_, _, _, err = v.Write(&fs.Cred{}, f.Handle, 0, []byte(fmt.Sprint(i)), fs.FileSync)
		}
		if err == nil && i == n-1 {
			_, _, _, err = v.Write(&fs.Cred{}, old.Handle, 0, []byte("changed"), fs.FileSync)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	dead := d.Crash(disk.KeepAll)
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	return dead
}

func journalParams(t testing.TB, d disk.Disk) journal.Params {
	t.Helper()
	s, _, err := superblocks(d)
	if err != nil {
		t.Fatal(err)
	}
	return volumeend.Journal(s)
}

func survey(t *testing.T, d disk.Disk) *journal.Survey {
	t.Helper()
	s, err := journal.NewSurvey(d, journalParams(t, d))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// names is the names in the root directory.
func names(t *testing.T, d disk.Disk) (found []string) {
	t.Helper()
	v, err := fs.Open(d, fs.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	l, err := v.Readdir(&fs.Cred{}, v.Root(), 0, 0, false, fs.Limit{Bytes: 1 << 20, Size: func(n int) int { return n }})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range l.Entries {
		found = append(found, string(e.Name))
	}
	return found
}

// repaired repairs d, which is left clean, and makes sure that it can be undone. It returns the actions.
func repaired(t *testing.T, d disk.Disk) []Action {
	t.Helper()
	was := contents(t, d)
	p, err := NewPlan(d, Options{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, d, was)
	undo := filepath.Join(t.TempDir(), "undo")
	after, err := p.Apply(d, undo)
	if err != nil {
		t.Fatal(err)
	}
	if !after.Clean() {
		t.Fatalf("left: %v\nafter %v", after.Problems, p.Actions)
	}
	if p2, err := NewPlan(d, Options{}); err != nil || len(p2.Actions) > 0 {
		t.Fatalf("a second repair does %v, %v", p2.Actions, err)
	}
	now := contents(t, d)
	u, err := LoadUndo(undo)
	if err == nil {
		err = u.Apply(d)
	}
	if err != nil {
		t.Fatal(err)
	}
	same(t, d, was)
	for a := range d.Size() {
		b := now[a]
		if b == nil {
			b = make([]byte, disk.BlockSize)
		}
		put(t, d, a, b)
	}
	if err := d.Barrier(); err != nil {
		t.Fatal(err)
	}
	return p.Actions
}

func has(as []Action, text string) bool {
	return slices.ContainsFunc(as, func(a Action) bool { return strings.Contains(a.String(), text) })
}

// TestCut: a log with a damaged group is cut there. All operations before are there, and none behind; what
// is lost was said.
func TestCut(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	whole := crashed(t, 12)
	g := survey(t, whole).Groups
	if len(g) < 20 {
		t.Fatalf("%d groups", len(g))
	}
	places := []int{0, len(g) - 2, len(g) / 2}
	if testing.Short() {
		places = places[2:]
	}
	for _, at := range places {
		for _, harm := range []string{"descriptor", "data", "zeroed"} {
			d := whole.Crash(disk.KeepAll)
			a := g[at].Block
			if harm == "data" {
				a++
			}
			b := block(t, d, a)
			b[100+r.IntN(100)] ^= 4
			if harm == "zeroed" {
				clear(b)
			}
			put(t, d, a, b)
			if err := d.Barrier(); err != nil {
				t.Fatal(err)
			}
			if _, err := fs.Open(d, fs.Options{}); err == nil {
				t.Fatal("the damaged log was opened")
			}
			acts := repaired(t, d)
			lost := fmt.Sprintf("cut before group %d, which is damaged: the last %d group commits (up to %d)", g[at].Number,
				len(g)-at, g[len(g)-1].Number)
			if !has(acts, lost) || !has(acts, `"/old"`) {
				t.Errorf("%s of group %d: %v, want %q", harm, at, acts, lost)
			}
			found := names(t, d)
			if !slices.Contains(found, "old") || slices.Contains(found, "a.11") != (at == len(g)-2) {
				t.Errorf("%s of group %d: %v", harm, at, found)
			}
			for i, prefix := 0, true; i < 12; i++ {
				here := slices.Contains(found, fmt.Sprintf("a.%d", i))
				if here && !prefix {
					t.Errorf("%s of group %d: a.%d is there, but not all before it", harm, at, i)
				}
				prefix = here
			}
		}
	}
}

// TestOneHeader: the header is restored from its copy, or the other way round, and nothing is lost.
func TestOneHeader(t *testing.T) {
	whole := crashed(t, 3)
	for _, h := range survey(t, whole).Headers {
		d := whole.Crash(disk.KeepAll)
		b := block(t, d, h.Block)
		b[40] ^= 1
		put(t, d, h.Block, b)
		if err := d.Barrier(); err != nil {
			t.Fatal(err)
		}
		if acts := repaired(t, d); len(acts) != 1 || !has(acts, fmt.Sprintf("the header of the log in block %d is restored", h.Block)) {
			t.Errorf("%v", acts)
		}
		if found := names(t, d); len(found) != 2+4 && len(found) != 4 {
			t.Errorf("%v", found)
		}
	}
}

// TestNoHeader: with both headers lost the log is started empty, and it is said what that costs. What
// was home before is there, and old groups never come back.
func TestNoHeader(t *testing.T) {
	d := crashed(t, 5)
	s := survey(t, d)
	for _, h := range s.Headers {
		put(t, d, h.Block, make([]byte, disk.BlockSize))
	}
	if err := d.Barrier(); err != nil {
		t.Fatal(err)
	}
	acts := repaired(t, d)
	if !has(acts, fmt.Sprintf("both headers of the log are lost: it is started empty, and everything in it that is not home is LOST (it has %d sealed groups", len(s.Groups))) &&
		!has(acts, fmt.Sprintf("to %d, of which some or all may be home)", s.Last())) || !has(acts, `"/old"`) {
		t.Errorf("%v", acts)
	}
	if found := names(t, d); !slices.Contains(found, "old") || slices.Contains(found, "a.0") {
		t.Errorf("%v", found)
	}
	if rep, err := check.Volume(d, check.Options{}); err != nil || !rep.Clean() {
		t.Error(rep.Problems, err)
	}
}

// TestUnreadableLog: a block of the log that cannot be read, which recovery does not get past, costs the groups from
// its own on; if it is a group's that is home already, or the last one's, no more than that.
func TestUnreadableLog(t *testing.T) {
	whole := crashed(t, 6)
	s := survey(t, whole)
	p := journalParams(t, whole)
	for _, c := range []struct {
		what  string
		block uint64
		want  string
	}{
		{"descriptor", s.Groups[2].Block, fmt.Sprintf("cut before group %d", s.Groups[2].Number)},
		{"data", s.Groups[2].Block + 1, fmt.Sprintf("cut before group %d", s.Groups[2].Number)},
		{"last group's data", s.Groups[len(s.Groups)-1].Block + 1, "the last 1 group commits"},
		{"unused unit", p.Start + 1 + journal.UnitBlocks*((s.Last()+5)%p.Units), "nothing is known to have been in them"},
		{"header", p.Start, fmt.Sprintf("the header of the log in block %d is restored", p.Start)},
	} {
		t.Run(c.what, func(t *testing.T) {
			written := false
			d := disk.NewFault(whole.Crash(disk.KeepAll), 1, func(op disk.Op, _ *rand.Rand) disk.Harm {
				if op.Addr <= c.block && c.block < op.Addr+uint64(op.Blocks) {
					written = written || op.Kind == disk.Write
					if op.Kind == disk.Read && !written {
						return disk.Harm{Err: syscall.EIO}
					}
				}
				return disk.Harm{}
			})
			p, err := NewPlan(d, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if !has(p.Actions, c.want) {
				t.Errorf("%v, want %q", p.Actions, c.want)
			}
			after, err := p.Apply(d, filepath.Join(t.TempDir(), "undo"))
			if err != nil || !after.Clean() {
				t.Errorf("%v, %v", after.Problems, err)
			}
			found := names(t, d)
			if !slices.Contains(found, "old") || slices.Contains(found, "a.5") != (c.what != "descriptor" && c.what != "data") {
				t.Errorf("%v", found)
			}
		})
	}
}

// TestForeignGroup: a sealed group of another life of the volume, with a number beyond all live ones, keeps the journal
// from opening. Cutting it off costs nothing that is there.
func TestForeignGroup(t *testing.T) {
	whole := crashed(t, 4)
	later := whole.Crash(disk.KeepAll)
	v, err := fs.Open(later, fs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if _, err := v.Create(&fs.Cred{}, v.Root(), fmt.Appendf(nil, "later %d", i), fs.Guarded, &fs.SetAttr{}, 0); err != nil {
			t.Fatal(err)
		}
	}
	dead := later.Crash(disk.KeepAll)
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	groups := survey(t, dead).Groups
	if len(groups) == 0 {
		t.Fatal("no groups")
	}
	foreign := groups[len(groups)-1]
	for i := range uint64(journal.UnitBlocks) {
		put(t, whole, foreign.Block+i, block(t, dead, foreign.Block+i))
	}
	if err := whole.Barrier(); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Open(whole, fs.Options{}); !errors.Is(err, journal.ErrDamaged) {
		t.Fatal(err)
	}
	if acts := repaired(t, whole); !has(acts, "the log is cut before group") {
		t.Errorf("%v", acts)
	}
	if found := names(t, whole); !slices.Contains(found, "a.3") || slices.Contains(found, "later 4") {
		t.Errorf("%v", found)
	}
}

// TestPendingGroups: groups that were pending when a crash came, and survived one before them, are no damage: nothing
// is to be repaired.
func TestPendingGroups(t *testing.T) {
	d := crashed(t, 6)
	p := journalParams(t, d)
	groups := survey(t, d).Groups
	last := groups[len(groups)-3:]
	for i, g := range last { // none of them was durable when it was sealed
		b := block(t, d, g.Block)
		binary.LittleEndian.PutUint16(b[42:], uint16(i))
		key := sha256.Sum256(slices.Concat([]byte("tansy journal seal v3"), p.Key[:], b[48:64]))
		c, err := aes.NewCipher(key[:])
		if err != nil {
			t.Fatal(err)
		}
		seal, err := cipher.NewGCM(c)
		if err != nil {
			t.Fatal(err)
		}
		clear(b[80:96])
		copy(b[80:], seal.Seal(nil, append(slices.Clone(b[24:32]), 0, 0, 0, 0), nil, b))
		put(t, d, g.Block, b)
	}
	if s := survey(t, d); len(s.Log()) != len(groups) || s.Durable != last[0].Number {
		t.Fatalf("%+v", s)
	}
	put(t, d, last[0].Block+1, make([]byte, disk.BlockSize))
	if err := d.Barrier(); err != nil {
		t.Fatal(err)
	}
	rep, err := check.Volume(d, check.Options{})
	if err != nil || !rep.Clean() {
		t.Fatal(rep.Problems, err)
	}
	if want := fmt.Sprintf("groups %d to %d of the log, the last, are not all whole", last[0].Number, last[2].Number); !strings.Contains(strings.Join(rep.Unchecked, "\n"), want) {
		t.Errorf("%q, want %q", rep.Unchecked, want)
	}
	if plan, err := NewPlan(d, Options{}); err != nil || len(plan.Actions) > 0 {
		t.Errorf("%v, %v", plan.Actions, err)
	}
	if found := names(t, d); !slices.Contains(found, "a.4") {
		t.Errorf("%v", found)
	}
}
