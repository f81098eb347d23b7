package conformance

import (
	"testing"

	"tansy/fs"
	"tansy/tools/conform"
)

// listFault is a volume with something wrong about access lists.
type listFault struct {
	*fs.FS
	get func(l *fs.Lists, a *fs.Attr)
	set func(c *fs.Cred, h fs.Handle, l fs.Lists, access, dflt bool) error
}

func (f listFault) GetLists(h fs.Handle, access, dflt bool) (fs.Lists, fs.Attr, error) {
	l, a, err := f.FS.GetLists(h, access, dflt)
	if err == nil && f.get != nil {
		f.get(&l, &a)
	}
	return l, a, err
}

func (f listFault) SetLists(c *fs.Cred, h fs.Handle, l fs.Lists, access, dflt bool) error {
	if f.set != nil {
		return f.set(c, h, l, access, dflt)
	}
	return f.FS.SetLists(c, h, l, access, dflt)
}

// listFaults are faults, and the check that finds each.
var listFaults = []struct {
	what, check string
	make        func(v *fs.FS, f *listFault)
}{
	{"a file without a list has one of a group", "acl/of-mode", func(_ *fs.FS, f *listFault) {
		f.get = func(_ *fs.Lists, a *fs.Attr) { a.Mode |= 0o060 }
	}},
	{"the owner is root", "acl/owner", func(_ *fs.FS, f *listFault) {
		f.get = func(_ *fs.Lists, a *fs.Attr) { a.UID = 0 }
	}},
	{"nobody is named", "acl/set", func(_ *fs.FS, f *listFault) {
		f.get = func(l *fs.Lists, _ *fs.Attr) { l.Access = nil }
	}},
	{"the mode stays", "acl/plain", func(v *fs.FS, f *listFault) {
		f.set = func(c *fs.Cred, h fs.Handle, l fs.Lists, access, dflt bool) error {
			l.Access = nil
			return v.SetLists(c, h, l, access, dflt)
		}
	}},
	{"chmod leaves the mask", "acl/chmod", func(_ *fs.FS, f *listFault) {
		f.get = func(l *fs.Lists, _ *fs.Attr) {
			if l.Access != nil {
				l.Access.Mask = 7
			}
		}
	}},
	{"nothing is set", "acl/ctime", func(v *fs.FS, f *listFault) {
		f.set = func(*fs.Cred, fs.Handle, fs.Lists, bool, bool) error { return nil }
	}},
	{"set by whomever", "acl/by-other", func(v *fs.FS, f *listFault) {
		f.set = func(_ *fs.Cred, h fs.Handle, l fs.Lists, access, dflt bool) error {
			return v.SetLists(&fs.Cred{}, h, l, access, dflt)
		}
	}},
	{"groups are users", "acl/decides", func(v *fs.FS, f *listFault) {
		f.set = func(c *fs.Cred, h fs.Handle, l fs.Lists, access, dflt bool) error {
			for i := range l.Access.Named {
				l.Access.Named[i].Group = false
			}
			return v.SetLists(c, h, l, access, dflt)
		}
	}},
	{"no default list", "acl/default", func(v *fs.FS, f *listFault) {
		f.set = func(c *fs.Cred, h fs.Handle, l fs.Lists, access, _ bool) error {
			return v.SetLists(c, h, l, access, false)
		}
	}},
	{"a default list stays", "acl/default-removed", func(v *fs.FS, f *listFault) {
		f.set = func(c *fs.Cred, h fs.Handle, l fs.Lists, access, dflt bool) error {
			return v.SetLists(c, h, l, access, dflt && l.Default != nil)
		}
	}},
	{"a default list of a file is passed over", "acl/default-of-file", func(v *fs.FS, f *listFault) {
		f.set = func(c *fs.Cred, h fs.Handle, l fs.Lists, access, dflt bool) error {
			if err := v.SetLists(c, h, l, access, dflt); err != fs.ErrAcces {
				return err
			}
			return nil
		}
	}},
	{"one after the other", "acl/both-or-none", func(v *fs.FS, f *listFault) {
		f.set = func(c *fs.Cred, h fs.Handle, l fs.Lists, access, dflt bool) error {
			if err := v.SetLists(c, h, l, access, false); err != nil {
				return err
			}
			return v.SetLists(c, h, l, false, dflt)
		}
	}},
}

// TestListFaultsAreFound: each fault in what NFSACL stands on is found by its check.
func TestListFaultsAreFound(t *testing.T) {
	for _, x := range listFaults {
		v := volume(t).(*fs.FS)
		f := &listFault{FS: v}
		x.make(v, f)
		if got := run(t, serveFS(t, f), x.check); got != conform.Fail && got != conform.Differ {
			t.Errorf("%s: %s: %s", x.what, x.check, got)
		}
	}
}
