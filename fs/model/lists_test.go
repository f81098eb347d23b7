package model

import (
	"hash/maphash"
	"testing"

	"tansy/fs"
)

// TestListAllows: the entry of a user decides, then those of the groups, then the rights of others, and none of them
// gives more than the mask.
func TestListAllows(t *testing.T) {
	m := New(Options{})
	n, err := m.Create(root, m.Root(), []byte("f"), fs.Guarded, mode(0), 0)
	want(t, "create", err, 0)
	few, many := &fs.Cred{UID: 1002, GID: 30}, &fs.Cred{UID: 1003, GID: 30, GIDs: []uint32{40}}
	const read, write, exec = 1, 12, 32
	set := func(l *fs.AccessList) {
		t.Helper()
		want(t, "set", m.SetLists(root, n.Handle, fs.Lists{Access: l}, true, false), 0)
	}
	has := func(who *fs.Cred, rights uint32) {
		t.Helper()
		if got, _, err := m.Access(who, n.Handle, 0x3f); err != nil || got != rights {
			t.Errorf("%+v has %#x, %v, not %#x", who, got, err, rights)
		}
	}
	l := &fs.AccessList{Owner: 7, Group: 3, Mask: 6, Other: 1, Masked: true, Named: []fs.AccessEntry{
		{ID: alice.UID, Rights: 5}, {Group: true, ID: 30, Rights: 4}, {Group: true, ID: 40, Rights: 2},
	}}
	set(l)
	has(root, read|write|exec)
	has(alice, read)
	has(bob, exec)
	has(few, read)
	has(many, read|write)
	has(&fs.Cred{UID: 5, GID: 0}, write) // of the file's group, which the mask keeps from executing
	got, err := m.GetAccess(n.Handle)
	if err != nil || !got.Equal(l) {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = m.Setattr(root, n.Handle, mode(0o705), nil)
	want(t, "chmod", err, 0)
	has(alice, 0)
	has(bob, read|exec)
	if got, err := m.GetAccess(n.Handle); err != nil || got.Owner != 7 || got.Mask != 0 || got.Other != 5 {
		t.Errorf("after chmod: %+v, %v", got, err)
	}
	set(&fs.AccessList{Owner: 6, Group: 4, Other: 2})
	has(alice, write)
	if got, err := m.GetAccess(n.Handle); err != nil || got != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestListErrors: who may set which list, and of what.
func TestListErrors(t *testing.T) {
	m := New(Options{RootMode: 0o777})
	f, err := m.Create(alice, m.Root(), []byte("f"), fs.Guarded, mode(0o2770), 0)
	want(t, "create", err, 0)
	s, err := m.Symlink(root, m.Root(), []byte("s"), &fs.SetAttr{}, []byte("t"))
	want(t, "symlink", err, 0)
	l := &fs.AccessList{Owner: 7, Group: 5, Mask: 5, Other: 0, Masked: true}
	both := fs.Lists{Access: l, Default: l}
	want(t, "of a link", m.SetLists(root, s.Handle, both, true, false), fs.ErrInval)
	want(t, "by another", m.SetLists(bob, f.Handle, both, true, false), fs.ErrPerm)
	want(t, "a default list of a file", m.SetLists(alice, f.Handle, both, true, true), fs.ErrAcces)
	want(t, "none of a file", m.SetLists(alice, f.Handle, fs.Lists{}, false, true), 0)
	want(t, "no list", m.SetLists(root, f.Handle, fs.Lists{Access: &fs.AccessList{Mask: 1}}, true, false), fs.ErrInval)
	want(t, "of nothing", m.SetLists(root, fs.Handle{Ino: 99}, both, true, true), fs.ErrStale)
	if a, err := m.Getattr(f.Handle); err != nil || a.Mode != 0o2770 {
		t.Errorf("mode %o, %v", a.Mode, err)
	}
	_, err = m.Setattr(root, f.Handle, &fs.SetAttr{GID: &bob.GID}, nil)
	want(t, "chown", err, 0)
	_, err = m.Setattr(root, f.Handle, mode(0o2770), nil)
	want(t, "chmod", err, 0)
	want(t, "by the owner", m.SetLists(alice, f.Handle, both, true, false), 0)
	if a, err := m.Getattr(f.Handle); err != nil || a.Mode != 0o750 {
		t.Errorf("mode %o, %v", a.Mode, err)
	}
	if got, _, err := m.Access(alice, f.Handle, 0x3f); err != nil || got != 1|12|32 {
		t.Errorf("the owner has %#x, %v", got, err)
	}
}

// TestListSum: lists count in Sum.
func TestListSum(t *testing.T) {
	m := New(Options{Stamp: func(fs.Handle, fs.Time, fs.Time) fs.Time { return fs.Time{} }})
	named := []fs.AccessEntry{{ID: alice.UID, Rights: 7}}
	seed, seen := maphash.MakeSeed(), map[uint64]bool{}
	for i, l := range []fs.Lists{
		{},
		{Default: &fs.AccessList{Owner: 7, Group: 5, Mask: 5, Masked: true}},
		{Default: &fs.AccessList{Owner: 6, Group: 5, Mask: 5, Masked: true}},
		{Default: &fs.AccessList{Owner: 6, Group: 5}},
		{Default: &fs.AccessList{Owner: 6, Group: 5, Mask: 5, Masked: true, Named: named}},
		{Access: &fs.AccessList{Owner: 7, Group: 5, Mask: 5, Other: 5, Masked: true}},
		{Access: &fs.AccessList{Owner: 7, Group: 4, Mask: 5, Other: 5, Masked: true}},
		{Access: &fs.AccessList{Owner: 7, Group: 5, Mask: 5, Other: 5, Masked: true, Named: named}},
	} {
		want(t, "set", m.SetLists(root, m.Root(), l, true, true), 0)
		if sum := m.Sum(seed); seen[sum] {
			t.Errorf("lists %d: the sum is that of others", i)
		} else {
			seen[sum] = true
		}
	}
}

// TestInherit: what is made in a directory with a default list.
func TestInherit(t *testing.T) {
	m := New(Options{})
	masked := &fs.AccessList{
		Owner: 6, Group: 4, Mask: 4, Other: 1, Masked: true, Named: []fs.AccessEntry{{ID: alice.UID, Rights: 7}},
	}
	plain := &fs.AccessList{Owner: 7, Group: 4, Other: 0}
	for _, l := range []*fs.AccessList{masked, plain} {
		want(t, "set", m.SetLists(root, m.Root(), fs.Lists{Default: l}, false, true), 0)
		d, err := m.Mkdir(root, m.Root(), []byte("d"), mode(0o777))
		want(t, "mkdir", err, 0)
		f, err := m.Create(root, m.Root(), []byte("f"), fs.Guarded, mode(0o777), 0)
		want(t, "create", err, 0)
		s, err := m.Symlink(root, m.Root(), []byte("s"), &fs.SetAttr{}, []byte("t"))
		want(t, "symlink", err, 0)
		for h, bound := range map[fs.Handle]uint32{
			d.Handle: rightsOf(l), f.Handle: rightsOf(l), s.Handle: 0o777,
		} {
			access, err := m.GetAccess(h)
			dflt, e := m.GetDefault(h)
			a, _ := m.Getattr(h)
			inherits := l.Masked && h != s.Handle
			if err != nil || e != nil || (access != nil) != inherits || inherits && !access.Equal(l) ||
				(dflt != nil) != (h == d.Handle) || dflt != nil && !dflt.Equal(l) || a.Mode != bound {
				t.Errorf("%v: mode %o, access %+v, default %+v, %v %v", a.Type, a.Mode, access, dflt, err, e)
			}
		}
		want(t, "take away", m.SetLists(root, f.Handle, fs.Lists{}, true, false), 0)
		a, err := m.GetAccess(f.Handle)
		if err != nil || a != nil {
			t.Errorf("%+v, %v", a, err)
		}
		for _, name := range []string{"f", "s"} {
			_, err := m.Remove(root, m.Root(), []byte(name))
			want(t, "remove", err, 0)
		}
		_, err = m.Rmdir(root, m.Root(), []byte("d"))
		want(t, "rmdir", err, 0)
	}
}
