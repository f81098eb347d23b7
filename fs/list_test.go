package fs_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"tansy/fs"
	"tansy/internal/lockorder"
)

// TestListingMemory: a Listing stays as it is until it is recycled, and the next one has its memory then.
func TestListingMemory(t *testing.T) {
	poison(t)
	v := newVolume(t, fs.Options{})
	for i := range 100 {
		if _, err := v.Create(&fs.Cred{}, v.Root(), fmt.Appendf(nil, "file-%03d", i), fs.Guarded, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	list := func(plus bool, n int) fs.Listing {
		l, err := v.Readdir(&fs.Cred{}, v.Root(), 0, 0, plus, fs.Limit{Bytes: n, Size: func(int) int { return 1 }})
		if err != nil || len(l.Entries) != n {
			t.Fatal(len(l.Entries), err)
		}
		return l
	}
	kept, want := list(true, 60), list(true, 60)
	copied := slices.Clone(want.Entries)
	for i := range copied {
		e := &copied[i]
		a := *e.Attr
		e.Name, e.Attr = slices.Clone(e.Name), &a
	}
	want.Recycle()
	for _, plus := range []bool{false, true, true, false} {
		l := list(plus, 30)
		for i, e := range l.Entries {
			if plus != (e.Attr != nil) || plus != (e.Handle == copied[i].Handle) || string(e.Name) != string(copied[i].Name) {
				t.Errorf("plus %v, number %d: %+v", plus, i, e)
			}
		}
		l.Recycle()
		l.Recycle() // which does nothing
	}
	if !reflect.DeepEqual(kept.Entries, copied) {
		t.Error("a listing changed that was not recycled")
	}
	// What is left are the caller, the call, the functions of the list, and the attributes of the directory.
	if n := testing.AllocsPerRun(100, func() { l := list(true, 90); l.Recycle() }); n > 16 && !lockorder.On {
		t.Errorf("%v allocations for 90 entries", n)
	}
}
