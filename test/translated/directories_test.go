package translated

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand"
	"testing"

	"tansy/internal/gen/fs/blocks/regions"
	"tansy/internal/gen/fs/directories/directories"
	"tansy/internal/gen/fs/format/volumegeometry"
	"tansy/internal/gen/fs/procedures/opening"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/dirlist"
	"tansy/internal/runtime/dtxn"
	"tansy/test/kit/replay"
)

// The verified directories against a Go map, on a volume in memory. What the
// proofs do not say is tested here: how a listing behaves while the directory
// changes, and that the cost does not grow with the directory.

type dirVolume struct {
	sys *dtxn.System
	fs  *directories.DirFs
}

func newDirVolume(t testing.TB) *dirVolume {
	const size = 1 << 20
	g := volumegeometry.CreateGeometry(2, 3, 3+size/32768, 100, 100, size-1, 100*16-800)
	v := &dirVolume{sys: dtxn.NewMem(size, dtxn.Layout{Maps: [2]dtxn.Bitmap{{Start: 3, First: 100, Limit: size - 1}, {Start: 2, First: 3, Limit: 800}}, Places: regions.Of(g)})}
	v.fs = opening.Open(g, &dtxn.Jrnl{})
	t.Cleanup(func() { v.sys.Close() })
	return v
}

// do runs f in a transaction, which is aborted if f returns false.
func (v *dirVolume) do(t testing.TB, f func(tx *dtxn.Txn) bool) bool {
	t.Helper()
	ok := false
	err := v.sys.Run(false, false, func(tx *dtxn.Txn) error {
		if ok = f(tx); !ok {
			return fmt.Errorf("aborted")
		}
		return nil
	})
	if ok && err != nil {
		t.Fatal(err)
	}
	return ok
}

func (v *dirVolume) mkdir(t testing.TB) (ino uint64) {
	t.Helper()
	if !v.do(t, func(tx *dtxn.Txn) (ok bool) { ok, ino = v.fs.AllocInode(tx, 0, 2); return ok }) {
		t.Fatal("no inode")
	}
	return ino
}

func name(s string) *dbytes.Bytes { return &dbytes.Bytes{Data: []byte(s)} }

func (v *dirVolume) lookup(t testing.TB, d uint64, n string) (found bool, ino uint64) {
	v.do(t, func(tx *dtxn.Txn) bool { found, ino = v.fs.Lookup(tx, d, name(n), false); return true })
	return
}

func (v *dirVolume) insert(t testing.TB, d uint64, n string, ino uint64) bool {
	return v.do(t, func(tx *dtxn.Txn) bool {
		found, _, hint := v.fs.LookupHint(tx, d, name(n), true)
		return !found && v.fs.InsertAt(tx, d, name(n), ino, hint)
	})
}

func (v *dirVolume) remove(t testing.TB, d uint64, n string) bool {
	return v.do(t, func(tx *dtxn.Txn) bool { return v.fs.Remove(tx, d, name(n)) })
}

// list returns one page of at most room bytes after cookie.
func (v *dirVolume) list(t testing.TB, d, cookie uint64, room int) (es []dirlist.Entry, eof bool) {
	l := dirlist.New()
	l.Fill(true, func(n int) bool { room -= n + 24; return room >= 0 }, nil)
	v.do(t, func(tx *dtxn.Txn) bool { eof = v.fs.List(tx, d, cookie, l); return true })
	return l.Entries, eof
}

// all lists the whole directory.
func (v *dirVolume) all(t testing.TB, d uint64) map[string]uint64 {
	t.Helper()
	es, eof := v.list(t, d, 0, 1<<30)
	if !eof {
		t.Fatal("a listing with room for everything did not end")
	}
	m := map[string]uint64{}
	last := uint64(0)
	for _, e := range es {
		if _, twice := m[string(e.Name)]; twice || e.Cookie <= last || e.Cookie < 3 {
			t.Fatalf("entry %q, cookie %d after %d, twice: %v", e.Name, e.Cookie, last, twice)
		}
		m[string(e.Name)], last = e.Ino, e.Cookie
	}
	return m
}

func (v *dirVolume) mustEqual(t testing.TB, d uint64, want map[string]uint64) {
	t.Helper()
	got := v.all(t, d)
	if len(got) != len(want) {
		t.Fatalf("%d entries, want %d", len(got), len(want))
	}
	for n, ino := range want {
		if got[n] != ino {
			t.Fatalf("%q: inode %d, want %d", n, got[n], ino)
		}
	}
	empty := false
	v.do(t, func(tx *dtxn.Txn) bool { empty = v.fs.IsEmpty(tx, d); return true })
	if empty != (len(want) == 0) {
		t.Fatalf("IsEmpty = %v with %d entries", empty, len(want))
	}
}

func testRand(t *testing.T) *rand.Rand {
	return rand.New(rand.NewSource(int64(replay.Seed(t))))
}

// randomName is any bytes, 1 to 255 of them; short ones and those around the
// length that parts the two classes come often.
func randomName(r *rand.Rand) string {
	n := 1 + r.Intn(255)
	switch r.Intn(4) {
	case 0:
		n = 1 + r.Intn(3)
	case 1:
		n = 54 + r.Intn(5)
	}
	b := make([]byte, n)
	r.Read(b)
	return string(b)
}

func TestDirRandom(t *testing.T) {
	r := testRand(t)
	v := newDirVolume(t)
	dirs := []uint64{v.mkdir(t), v.mkdir(t)}
	want := []map[string]uint64{{}, {}}
	var names []string
	for range 3000 {
		names = append(names, randomName(r))
	}
	steps := 30000
	if testing.Short() {
		steps = 8000
	}
	for step := range steps {
		k := r.Intn(2)
		d, m, n := dirs[k], want[k], names[r.Intn(len(names))]
		ino, has := m[n]
		found, got := v.lookup(t, d, n)
		if found != has || found && got != ino {
			t.Fatalf("step %d: Lookup(%q) = %v, %d, want %v, %d", step, n, found, got, has, ino)
		}
		x := uint64(3 + r.Intn(700))
		var ok bool
		switch {
		case !has:
			ok = v.insert(t, d, n, x)
			m[n] = x
		case r.Intn(3) == 0:
			ok = v.do(t, func(tx *dtxn.Txn) bool { return v.fs.Replace(tx, d, name(n), x) })
			m[n] = x
		default:
			ok = v.remove(t, d, n)
			delete(m, n)
		}
		if !ok {
			t.Fatalf("step %d: %q: no success", step, n)
		}
		if step%3000 == 0 {
			v.mustEqual(t, d, m)
		}
	}
	for k, d := range dirs {
		v.mustEqual(t, d, want[k])
		for n := range want[k] {
			if !v.remove(t, d, n) {
				t.Fatal(n)
			}
		}
		v.mustEqual(t, d, nil)
		if !v.do(t, func(tx *dtxn.Txn) bool {
			return v.fs.SetSize(tx, d, 0) && v.fs.FreeSome(tx, d, 1<<30) && v.fs.FreeInode(tx, d)
		}) {
			t.Fatal("an emptied directory could not be freed")
		}
	}
}

func TestDirLarge(t *testing.T) {
	n := 100000
	if testing.Short() {
		n = 10000
	}
	v := newDirVolume(t)
	d := v.mkdir(t)
	want := map[string]uint64{}
	for i := range n {
		s := fmt.Sprintf("file%06d", i)
		if i%10 == 0 {
			s += string(bytes.Repeat([]byte{'x'}, 60))
		}
		want[s] = uint64(3 + i%700)
		if !v.insert(t, d, s, want[s]) {
			t.Fatalf("%q not inserted", s)
		}
	}
	v.mustEqual(t, d, want)
	for s, ino := range want {
		if found, got := v.lookup(t, d, s); !found || got != ino {
			t.Fatalf("Lookup(%q) = %v, %d", s, found, got)
		}
	}
	if found, _ := v.lookup(t, d, "absent"); found {
		t.Fatal("found what is not there")
	}
}

// Entries that exist during a whole scan are returned exactly once, whatever
// else changes between its pages.
func TestDirScanWhileChanging(t *testing.T) {
	r := testRand(t)
	rounds := 5
	if testing.Short() {
		rounds = 2
	}
	for range rounds {
		v := newDirVolume(t)
		d := v.mkdir(t)
		stable, others := map[string]bool{}, map[string]bool{}
		for range 2000 {
			s := randomName(r)
			if stable[s] || others[s] {
				continue
			}
			if !v.insert(t, d, s, 5) {
				t.Fatal(s)
			}
			if r.Intn(2) == 0 {
				stable[s] = true
			} else {
				others[s] = true
			}
		}
		seen := map[string]int{}
		for cookie, eof := uint64(0), false; !eof; {
			var es []dirlist.Entry
			es, eof = v.list(t, d, cookie, 300+r.Intn(8000))
			for _, e := range es {
				seen[string(e.Name)]++
				cookie = e.Cookie
			}
			for s := range others {
				if r.Intn(20) == 0 {
					if !v.remove(t, d, s) {
						t.Fatal(s)
					}
					delete(others, s)
				}
			}
			for range r.Intn(100) {
				s := randomName(r)
				if !stable[s] && !others[s] {
					v.insert(t, d, s, 6)
					others[s] = true
				}
			}
		}
		for s := range stable {
			if seen[s] != 1 {
				t.Fatalf("%q was returned %d times", s, seen[s])
			}
		}
	}
}

// A cookie may come from anybody.
func TestDirAnyCookie(t *testing.T) {
	v := newDirVolume(t)
	d := v.mkdir(t)
	for i := range 200 {
		v.insert(t, d, fmt.Sprint(i), 5)
		v.insert(t, d, fmt.Sprintf("%0100d", i), 5)
	}
	for _, c := range []uint64{0, 1, 2, 3, 4, 66, 67, 68, 1 << 30, 1 << 63, ^uint64(0)} {
		for _, e := range func() []dirlist.Entry { es, _ := v.list(t, d, c, 1<<30); return es }() {
			if e.Cookie <= c || e.Ino != 5 {
				t.Fatalf("cookie %d: entry %q with cookie %d, inode %d", c, e.Name, e.Cookie, e.Ino)
			}
		}
	}
}

// nameOfHash is a name of 8 bytes behind prefix (8 or 16 bytes, or none) with the hash
// h: the last steps of XXH64 can be undone.
func nameOfHash(prefix []byte, h uint64) string {
	const p1, p2, p3, p4, p5 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
	inv := func(x uint64) uint64 { // of an odd number, modulo 2^64
		y := x
		for range 6 {
			y *= 2 - x*y
		}
		return y
	}
	unshift := func(x uint64, k int) uint64 { // undoes x ^ x>>k
		for y, i := x, k; i < 64; i += k {
			x ^= y >> i
		}
		return x
	}
	h = unshift(h, 32) * inv(p3)
	h = unshift(h, 29) * inv(p2)
	h = unshift(h, 33)
	h = bits.RotateLeft64((h-p4)*inv(p1), -27)
	acc := uint64(p5) + uint64(len(prefix)+8)
	for s := prefix; len(s) > 0; s = s[8:] {
		k := bits.RotateLeft64(binary.LittleEndian.Uint64(s)*p2, 31)
		acc = bits.RotateLeft64(acc^k*p1, 27)*p1 + p4
	}
	x := bits.RotateLeft64((h^acc)*inv(p1), -31) * inv(p2)
	return string(binary.LittleEndian.AppendUint64(append([]byte{}, prefix...), x))
}

// Names made to collide fill one bucket of every level; then the directory
// refuses them, and only them.
func TestDirCollidingHashes(t *testing.T) {
	for _, same := range []string{"bucket", "hash"} {
		v := newDirVolume(t)
		d := v.mkdir(t)
		want := map[string]uint64{}
		for i := uint64(0); ; i++ {
			s := nameOfHash(nil, 12345+i<<24)
			if same == "hash" {
				s = nameOfHash(binary.LittleEndian.AppendUint64(nil, i), 0xfeedface12345678)
			}
			if h := dbytes.XXH64([]byte(s)); h != 12345+i<<24 && h != 0xfeedface12345678 {
				t.Fatalf("the hash of %x is %#x", s, h)
			}
			if !v.insert(t, d, s, 7) {
				if i != 9*64 {
					t.Fatalf("same %s: %d names fitted", same, i)
				}
				break
			}
			want[s] = 7
		}
		v.mustEqual(t, d, want)
		if !v.insert(t, d, "another", 8) {
			t.Fatal("another name did not fit")
		}
		want["another"] = 8
		for s := range want {
			if found, _ := v.lookup(t, d, s); !found {
				t.Fatalf("%x not found", s)
			}
		}
		for s := range want {
			if s != "another" {
				if !v.remove(t, d, s) || !v.insert(t, d, s, 9) {
					t.Fatal("a freed slot was not used again")
				}
				break
			}
		}
	}
}

func benchDir(b *testing.B, n int) (*dirVolume, uint64) {
	v := newDirVolume(b)
	d := v.mkdir(b)
	for i := range n {
		if !v.insert(b, d, fmt.Sprintf("file%06d", i), 5) {
			b.Fatal("full")
		}
	}
	return v, d
}

func BenchmarkDir(b *testing.B) {
	for _, n := range []int{10, 1000, 100000} {
		v, d := benchDir(b, n)
		b.Run(fmt.Sprintf("lookup/%d", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if found, _ := v.lookup(b, d, fmt.Sprintf("file%06d", i*7919%n)); !found {
					b.Fatal(i)
				}
			}
		})
		b.Run(fmt.Sprintf("absent/%d", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				v.lookup(b, d, fmt.Sprintf("none%06d", i))
			}
		})
		b.Run(fmt.Sprintf("create+remove/%d", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				s := fmt.Sprintf("new%06d", i)
				if !v.insert(b, d, s, 5) || !v.remove(b, d, s) {
					b.Fatal(i)
				}
			}
		})
	}
}
