package dtxn

import "testing"

func TestHints(t *testing.T) {
	s := NewMem(1000, Layout{Maps: [2]Bitmap{Blocks: {Start: 10, First: 100, Limit: 70000}, Inodes: {Start: 20, First: 1, Limit: 50}}})
	if n, _ := s.Free(Blocks); n != 69900 {
		t.Fatal(n)
	}
	s.Run(true, false, func(x *Txn) error {
		ok, a := x.AllocHint(Blocks, 0)
		ok2, b := x.AllocHint(Blocks, 65535)
		ok3, c := x.AllocHint(Blocks, 0)
		if !ok || !ok2 || !ok3 || a != 100 || b != 65536 || c != 65537 {
			t.Fatal(a, b, c)
		}
		x.WriteBit(10, a, true)
		x.WriteBit(12, 1, true)
		x.FreeHint(Blocks, b)
		return nil
	})
	if n, _ := s.Free(Blocks); n != 69898 {
		t.Fatal(n)
	}
}
