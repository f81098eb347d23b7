package fs

import (
	"testing"

	"tansy/disk"
)

// A file begins to get capabilities, then a write begins, and only then are they there. The write comes after them, and
// ends while nobody has said yet that they are there: it takes them away all the same. Once that is over, a write need
// not look again.
func TestCapabilitiesUnderWay(t *testing.T) {
	d := disk.NewMem(4000 * disk.BlockSize)
	if err := Mkfs(d, MkfsOptions{Zeroed: true, Inodes: 64}); err != nil {
		t.Fatal(err)
	}
	v, err := Open(d, Options{Deferred: true})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	who := new(Cred)
	n, err := v.Create(who, v.Root(), []byte("f"), Guarded, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	comes := func() {
		t.Helper()
		if err := v.setXattr(n.Handle, capability, []byte("cap"), false, false); err != nil {
			t.Fatal(err)
		}
	}
	v.xattrs.some.Store(true)
	v.xattrs.capsBegun.Add(1)
	since := v.changing(who, n.Handle)
	comes()
	v.changed(n.Handle, since, nil)
	if v.capable(n.Handle) {
		t.Error("a write came last, and the file has capabilities")
	}
	v.xattrs.capsOver.Add(1)

	if err := v.SetXattr(n.Handle, capability, []byte("cap"), false, false); err != nil {
		t.Fatal(err)
	}
	if since := v.xattrs.capsSettled(); since != 2 {
		t.Errorf("%d times a file has got capabilities, want 2, all over", since)
	}
}
