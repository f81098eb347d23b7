package listtable

import (
	"testing"
)

// TestTable: a number has no meaning until it is given one, and that one from then on, whatever comes later; others see
// a list whole.
func TestTable(t *testing.T) {
	var table Table
	lists := map[uint32]*List{
		1:    {Owner: 7, Group: 5, Mask: 6, Other: 4, Masked: true, Named: []Entry{{false, 10, 6}, {true, 20, 3}}},
		2:    {Owner: 6, Group: 4, Other: 1},
		4095: {Named: []Entry{{true, 1<<32 - 2, 7}}, Masked: true},
	}
	seen := make(chan struct{})
	go func() { // the race detector looks
		defer close(seen)
		for !table.Has(4095) {
		}
		if _, id, _ := table.Named(4095, 0); id != 1<<32-2 {
			t.Errorf("entry of %d", id)
		}
	}()
	for _, n := range []uint32{1, 2, 4095} {
		if table.Has(n) {
			t.Errorf("%d means something", n)
		}
		table.Add(n, lists[n])
		for m, l := range lists {
			if m > n {
				continue
			}
			owner, group, mask, other, masked, named := table.Rights(m)
			got := List{Owner: owner, Group: group, Mask: mask, Other: other, Masked: masked}
			for i := range named {
				var e Entry
				e.Group, e.ID, e.Rights = table.Named(m, i)
				got.Named = append(got.Named, e)
			}
			if !table.Has(m) || !got.Equal(l) {
				t.Errorf("%d: %+v, not %+v", m, got, *l)
			}
		}
	}
	if table.Has(0) || table.Has(3) || table.Has(4096) {
		t.Error("a number means something that nobody gave it")
	}
	<-seen
}
