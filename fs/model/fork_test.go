package model

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"testing"
	"time"

	"tansy/fs"
)

var sumSeed = maphash.MakeSeed()

// change does one random operation.
func change(m *Model, r *rand.Rand) {
	size := uint64(r.IntN(10000))
	name := func() []byte { return []byte{'a' + byte(r.IntN(4))} }
	dir, file := m.Root(), m.Root()
	if n, err := m.Lookup(root, dir, name()); err == nil && n.Attr.Type == fs.Directory {
		dir = n.Handle
	}
	if n, err := m.Lookup(root, dir, name()); err == nil {
		file = n.Handle
	}
	switch r.IntN(9) {
	case 0:
		m.Create(root, dir, name(), fs.Exclusive, &fs.SetAttr{}, r.Uint64())
	case 1:
		m.Mkdir(root, dir, name(), &fs.SetAttr{})
	case 2:
		m.Symlink(root, dir, name(), &fs.SetAttr{}, name())
	case 3:
		m.Remove(root, dir, name())
	case 4:
		m.Rmdir(root, dir, name())
	case 5:
		m.Rename(root, dir, name(), m.Root(), name())
	case 6:
		m.Link(root, file, dir, name())
	case 7:
		m.Setattr(root, file, &fs.SetAttr{Size: &size}, nil)
	case 8:
		m.Write(root, file, size, fmt.Appendf(nil, "%d", size), fs.FileSync)
	}
}

// TestFork: a fork is equal; what happens to it does not happen to the original;
// and the same changes have the same sum.
func TestFork(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		m := New(Options{Clock: func() time.Time { return time.Unix(7, 0) }})
		for range 30 {
			change(m, r)
		}
		sum := m.Sum(sumSeed)
		a, b := m.Fork(Options{}), m.Fork(Options{})
		if a.Sum(sumSeed) != sum {
			t.Fatalf("seed %d: the fork is another", seed)
		}
		for i := range 30 {
			change(a, rand.New(rand.NewPCG(seed, uint64(i+1))))
			change(b, rand.New(rand.NewPCG(seed, uint64(i+1))))
			if a.Sum(sumSeed) != b.Sum(sumSeed) {
				t.Fatalf("seed %d: after %d changes the two forks differ", seed, i+1)
			}
		}
		if m.Sum(sumSeed) != sum {
			t.Fatalf("seed %d: a change of the fork changed the original", seed)
		}
	}
}

// TestSum: the sum tells states apart, and does not tell what cannot be observed.
func TestSum(t *testing.T) {
	base := func() *Model {
		m := New(Options{
			Clock: func() time.Time { return time.Unix(7, 0) },
			Stamp: func(_ fs.Handle, now, was fs.Time) fs.Time { return now },
		})
		m.Create(root, m.Root(), []byte("f"), fs.Guarded, mode(0o644), 0)
		return m
	}
	file := func(m *Model) fs.Handle {
		n, err := m.Lookup(root, m.Root(), []byte("f"))
		want(t, "lookup", err, 0)
		return n.Handle
	}
	size := func(n uint64) *fs.SetAttr { return &fs.SetAttr{Size: &n} }
	sum := base().Sum(sumSeed)
	for name, do := range map[string]func(m *Model){
		"mode": func(m *Model) { m.Setattr(root, file(m), mode(0o600), nil) },
		"size": func(m *Model) { m.Setattr(root, file(m), size(1), nil) },
		"data": func(m *Model) {
			m.Write(root, file(m), 0, []byte("x"), fs.FileSync)
			m.Setattr(root, file(m), size(0), nil)
			m.Setattr(root, file(m), size(1), nil)
		},
		"name":     func(m *Model) { m.Rename(root, m.Root(), []byte("f"), m.Root(), []byte("g")) },
		"link":     func(m *Model) { m.Link(root, file(m), m.Root(), []byte("g")) },
		"time":     func(m *Model) { m.Restamp(fs.Time{Sec: 7}, fs.Time{Sec: 8}) },
		"handle":   func(m *Model) { m.Rehandle(file(m), fs.Handle{Ino: 99, Gen: 98}) },
		"verifier": func(m *Model) { m.Remove(root, m.Root(), []byte("f")) },
	} {
		m := base()
		do(m)
		if m.Sum(sumSeed) == sum {
			t.Errorf("%s: the same sum", name)
		}
	}
	m := base()
	m.Link(root, file(m), m.Root(), []byte("g"))
	m.Remove(root, m.Root(), []byte("g"))
	m.Write(root, file(m), 5000, []byte{0}, fs.FileSync) // a page of zeros, and then none
	m.Setattr(root, file(m), size(0), nil)
	if m.Sum(sumSeed) != sum {
		t.Error("there and back, and another sum")
	}
}

// TestRehandle: the file is found by its new handle and no more by the old one.
func TestRehandle(t *testing.T) {
	m := New(Options{NewHandle: func() fs.Handle { return fs.Handle{Ino: 5, Gen: 6} }})
	r, next := m.Root(), fs.Handle{Ino: 7, Gen: 1}
	if r != (fs.Handle{Ino: 5, Gen: 6}) {
		t.Fatalf("root is %v", r)
	}
	m = m.Fork(Options{NewHandle: func() fs.Handle { return next }})
	n, err := m.Mkdir(root, r, []byte("d"), &fs.SetAttr{})
	want(t, "mkdir", err, 0)
	if n.Handle != next || !m.Live(7) {
		t.Fatalf("the new directory is %v", n.Handle)
	}
	if m.Rehandle(next, r) || m.Rehandle(fs.Handle{Ino: 7, Gen: 2}, fs.Handle{Ino: 8}) {
		t.Error("took another file's number, or an unknown handle")
	}
	number := fs.Handle{Ino: 8, Gen: 1} // learnt first, the generation later
	if !m.Rehandle(next, number) || !m.Rehandle(number, fs.Handle{Ino: 8, Gen: 3}) {
		t.Fatal("refused")
	}
	_, err = m.Getattr(next)
	want(t, "the old handle", err, fs.ErrStale)
	n, err = m.Lookup(root, r, []byte("d"))
	want(t, "lookup", err, 0)
	if n.Handle != (fs.Handle{Ino: 8, Gen: 3}) {
		t.Errorf("found %v", n.Handle)
	}
	if h, ok := m.Named(8); h != n.Handle || !ok {
		t.Errorf("inode 8 is %v, %v", h, ok)
	}
	if _, ok := m.Named(7); ok {
		t.Error("inode 7 is named, which no file has")
	}
}
