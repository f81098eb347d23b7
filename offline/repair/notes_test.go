package repair

import (
	"bytes"
	"strings"
	"testing"

	"tansy/fs"
	"tansy/offline/check"
)

// A note of clients with locks that no server can read is told, and goes; all else of the root directory stays. A note
// that can be read stays, and so does one of another name.
func TestLocksNote(t *testing.T) {
	four, six := "\xc0\x00\x02\x01", strings.Repeat("\x20", 16)
	for _, c := range []struct {
		what, note string
		wrong      string // "": nothing
	}{
		{"nobody", "\x01\x00\x00\x00\x03", ""},
		{"clients", "\x01\x00\x00\x00\x03" + "\x00" + four + "\x04" + four + four + "\x0c" + four + "\x05" + six + four +
			"\x07" + six + six + "\x0f" + six + "\x02" + four + "\x0a" + four, ""},
		{"nothing", "", "it is too short"},
		{"half a head", "\x01\x00\x00\x00", "it is too short"},
		{"a later version", "\x02\x00\x00\x00\x03", "of version 2"},
		{"a bit", "\x01\x00\x00\x00\x03" + "\x10" + four, "bits 0x10"},
		{"half an address", "\x01\x00\x00\x00\x03" + "\x04" + four + four + "\x0c\xc0\x00\x02", "ends within a client"},
		{"half a long address", "\x01\x00\x00\x00\x03" + "\x01" + six[1:], "ends within a client"},
		{"half the address that it called", "\x01\x00\x00\x00\x03" + "\x04" + four + four[1:], "ends within a client"},
		{"half the long address that it called", "\x01\x00\x00\x00\x03" + "\x06" + four + six[1:], "ends within a client"},
	} {
		for _, beside := range []bool{true, false} {
			s := newSmall(t)
			v, err := fs.Open(s.d, fs.Options{})
			if err != nil {
				t.Fatal(err)
			}
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatalf("%s: %v", c.what, err)
				}
			}
			if beside {
				must(v.SetXattr(v.Root(), []byte("user.before"), []byte("1"), false, false))
			}
			must(v.SetNote("locks", []byte(c.note)))
			if beside {
				must(v.SetXattr(v.Root(), []byte("user.behind"), []byte("2"), false, false))
				must(v.SetNote("other", []byte("3")))
			}
			must(v.Close())
			r, err := check.Volume(s.d, check.Options{})
			must(err)
			if c.wrong == "" {
				if p, err := NewPlan(s.d, Options{}); !r.Clean() || err != nil || len(p.Actions) > 0 {
					t.Errorf("%s: check says %v, and a repair would do %v, %v", c.what, r.Problems, p.Actions, err)
				}
				continue
			}
			if len(r.Problems) != 1 || !strings.Contains(r.Problems[0].String(), c.wrong) {
				t.Errorf("%s: check says %v, want %q", c.what, r.Problems, c.wrong)
			}
			if acts := repaired(t, s.d); !has(acts, "can reclaim locks") || !has(acts, c.wrong) || has(acts, "damaged") {
				t.Errorf("%s: a repair does %v", c.what, acts)
			}
			v, err = fs.Open(s.d, fs.Options{})
			must(err)
			if _, err := v.Note("locks"); err != fs.ErrNoEnt {
				t.Errorf("%s: the note is there: %v", c.what, err)
			}
			if beside {
				for name, want := range map[string]string{"user.before": "1", "user.behind": "2"} {
					if got, err := v.GetXattr(v.Root(), []byte(name)); err != nil || string(got) != want {
						t.Errorf("%s: %s is %q, %v", c.what, name, got, err)
					}
				}
				if got, err := v.Note("other"); err != nil || !bytes.Equal(got, []byte("3")) {
					t.Errorf("%s: another note is %q, %v", c.what, got, err)
				}
			}
			must(v.SetNote("locks", []byte("\x01\x00\x00\x00\x03")))
			must(v.Close())
		}
	}
}
