package fs

import (
	"testing"

	"tansy/internal/gen/fs/format/volumegeometry"
	"tansy/internal/runtime/dtxn"
	"tansy/internal/runtime/stamps"
	"tansy/test/kit/memvolume"
)

// memFS is a volume on transactions in memory, without a journal.
func memFS(t testing.TB, blocks, inodes uint64, o Options) *FS {
	return endedFS(t, blocks, inodes, [2]uint64{}, o)
}

// endedFS is memFS with blocks for data and inodes that end there for now, if that is not 0.
func endedFS(t testing.TB, blocks, inodes uint64, ends [2]uint64, o Options) *FS {
	bits := (blocks + 32767) / 32768
	ibits := (inodes + 32767) / 32768
	itab := 2 + ibits + bits
	data0 := itab + (inodes+15)/16
	g := volumegeometry.CreateGeometry(2, 2+ibits, itab, data0, data0, blocks-1, inodes)
	l := regionsOf(g)
	for which, end := range ends {
		l.Maps[which].End = end
	}
	sys := dtxn.NewMem(blocks, l)
	var now Time
	if o.Clock != nil {
		now.Sec, now.Nsec = stamps.Of(o.Clock())
	}
	err := sys.Run(true, false, func(tx *dtxn.Txn) error {
		memvolume.Format(tx, g, now.Sec, now.Nsec)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	o.above(nil)
	v, err := start(sys, g, identity{}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

func newFS(t testing.TB) *FS { return memFS(t, 20000, 1000, Options{}) }

func TestSmoke(t *testing.T) {
	v := memFS(t, 20000, 1000, Options{})
	root := &Cred{}
	n, err := v.Create(root, v.Root(), []byte("a"), Guarded, &SetAttr{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 100000)
	for i := range data {
		data[i] = byte(i * 7)
	}
	k, _, _, err := v.Write(root, n.Handle, 5, data, FileSync)
	if err != nil || int(k) != len(data) {
		t.Fatal(k, err)
	}
	got, eof, a, err := v.Read(root, n.Handle, 5, 200000)
	if err != nil || !eof || string(got) != string(data) || a.Size != 100005 {
		t.Fatal(err, eof, len(got), a)
	}
	l, err := v.Readdir(root, v.Root(), 0, 0, true, Limit{Bytes: 10000, Size: func(n int) int { return n + 20 }})
	if err != nil || len(l.Entries) != 3 || !l.EOF {
		t.Fatal(l, err)
	}
	if _, err := v.Remove(root, v.Root(), []byte("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Getattr(n.Handle); err != ErrStale {
		t.Fatal(err)
	}
	s, _, err := v.Fsstat(v.Root())
	if err != nil || s.FreeFiles != s.TotalFiles || s.FreeBytes != s.TotalBytes-4096 {
		t.Fatal(s, err)
	}
}
