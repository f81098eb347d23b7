package fs

import "testing"

// What the operations that clients make most take of the heap: a number that grows costs all of them.
func TestAllocs(t *testing.T) {
	if testing.Short() {
		t.Skip("under the race detector, which runs with -short, pools lose things on purpose")
	}
	v := newFS(t)
	root, mode := &Cred{}, uint32(0o600)
	n, err := v.Create(root, v.Root(), []byte("a"), Guarded, &SetAttr{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 64<<10)
	if _, _, _, err := v.Write(root, n.Handle, 0, data, Unstable); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		most float64
		op   func() error
	}{
		{"GETATTR", 0, func() error { _, err := v.Getattr(n.Handle); return err }},
		{"ACCESS", 0, func() error { _, _, err := v.Access(root, n.Handle, 1); return err }},
		{"LOOKUP", 0, func() error { _, err := v.Lookup(root, v.Root(), []byte("a")); return err }},
		{"READ of 64 KiB", 1, func() error {
			data, _, _, err := v.View(root, n.Handle, 0, 64<<10)
			if err == nil {
				data.Done()
			}
			return err
		}},
		{"WRITE of 4 KiB", 5, func() error { _, _, _, err := v.Write(root, n.Handle, 0, data[:4096], Unstable); return err }},
		{"SETATTR", 46, func() error { _, err := v.Setattr(root, n.Handle, &SetAttr{Mode: &mode}, nil); return err }},
		{"LINK and REMOVE", 95, func() error {
			if _, _, err := v.Link(root, n.Handle, v.Root(), []byte("b")); err != nil {
				return err
			}
			_, err := v.Remove(root, v.Root(), []byte("b"))
			return err
		}},
	} {
		got := c.most + 1
		for try := 0; try < 10 && got > c.most; try++ { // the journal's goroutines are counted, too, which commit more groups on a busy machine
			got = testing.AllocsPerRun(200, func() {
				if err := c.op(); err != nil {
					t.Fatal(c.name, err)
				}
			})
		}
		if got > c.most {
			t.Errorf("%s: %v allocations, not %v", c.name, got, c.most)
		}
	}
}
