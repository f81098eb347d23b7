package server_test

import (
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/nfs/exports"
	"tansy/nfs/nfs3"
	"tansy/nfs/oncrpc"
	"tansy/nfs/portmap"
	"tansy/nfs/server"
	"tansy/test/kit/nfsclient"
)

// listVolume is a volume with a file, a directory, and a link, which are Bob's.
func listVolume(t *testing.T) (v *fs.FS, file, dir, link fs.Handle) {
	t.Helper()
	d := disk.NewMem(16384 * disk.BlockSize)
	if err := fs.Mkfs(d, fs.MkfsOptions{Zeroed: true}); err != nil {
		t.Fatal(err)
	}
	v, err := fs.Open(d, fs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	set := &fs.SetAttr{UID: &bob.UID, GID: &bob.GID}
	f, err1 := v.Create(root, v.Root(), []byte("file"), fs.Guarded, set, 0)
	s, err2 := v.Mkdir(root, v.Root(), []byte("dir"), set)
	l, err3 := v.Symlink(root, v.Root(), []byte("link"), set, []byte("file"))
	_, err4 := v.Setattr(root, f.Handle, mode(0o640), nil)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	return v, f.Handle, s.Handle, l.Handle
}

// knowing has c know the handles of a volume of listVolume.
func knowing(t *testing.T, c *nfsclient.Client) *nfsclient.Client {
	t.Helper()
	for _, name := range []string{"file", "dir", "link"} {
		find(t, c, name)
	}
	return c
}

const (
	accessToo  = nfs3.ACLAccess | nfs3.ACLAccessCount
	defaultToo = nfs3.ACLDefault | nfs3.ACLDefaultCount
)

// hasLists fails the test unless a file has such lists, by the volume and by NFSACL.
func hasLists(t *testing.T, c *nfsclient.Client, v *fs.FS, h fs.Handle, access, dflt *fs.AccessList) {
	t.Helper()
	l, a, err := v.GetLists(h, true, true)
	one, err1 := v.GetAccess(h)
	other, err2 := v.GetDefault(h)
	if err := errors.Join(err, err1, err2); err != nil {
		t.Fatal(err)
	}
	for _, x := range [][2]*fs.AccessList{{l.Access, access}, {l.Default, dflt}, {one, access}, {other, dflt}} {
		if (x[0] == nil) != (x[1] == nil) || x[0] != nil && !x[0].Equal(x[1]) {
			t.Errorf("%+v, want %+v", x[0], x[1])
		}
	}
	if access == nil {
		access = &fs.AccessList{Owner: a.Mode >> 6 & 7, Group: a.Mode >> 3 & 7, Other: a.Mode & 7}
	}
	shown, mask, gotAccess, gotDefault, err := c.GetACL(bob, h, accessToo|defaultToo)
	if err != nil || mask != accessToo|defaultToo || shown == nil || shown.Mode != a.Mode || shown.Ctime != a.Ctime {
		t.Errorf("GETACL: %v, mask %x, %+v", err, mask, shown)
	}
	for _, x := range []struct {
		got  nfsclient.ACL
		want *fs.AccessList
		of   uint32
	}{{gotAccess, access, 0}, {gotDefault, dflt, 0x1000}} {
		if want := onTheWire(x.want, &a, x.of); x.got.Count != want.Count || !slices.Equal(x.got.Entries, want.Entries) {
			t.Errorf("GETACL: %+v, want %+v", x.got, want)
		}
	}
}

// onTheWire is a list as NFSACL has it.
func onTheWire(l *fs.AccessList, a *fs.Attr, of uint32) nfsclient.ACL {
	if l == nil {
		return nfsclient.ACL{}
	}
	mask := l.Mask
	if !l.Masked {
		mask = l.Group
	}
	words := []uint32{0x01 | of, a.UID, l.Owner}
	named := func(group bool, what uint32) {
		for _, e := range l.Named {
			if e.Group == group {
				words = append(words, what|of, e.ID, e.Rights)
			}
		}
	}
	named(false, 0x02)
	words = append(words, 0x04|of, a.GID, l.Group)
	named(true, 0x08)
	return nfsclient.ACLOf(append(words, 0x10|of, 0, mask, 0x20|of, 0, l.Other)...)
}

// Lists that clients set are those of the volume, and the other way round: of a file and of a directory, the access
// list, the default list, or both at once.
func TestACL(t *testing.T) {
	v, file, dir, _ := listVolume(t)
	c := knowing(t, mount(t, start(t, v)))
	hasLists(t, c, v, file, nil, nil)
	hasLists(t, c, v, dir, nil, nil)

	// in any order, and with bits in the mask that are no rights
	before, _ := v.Getattr(file)
	a, err := c.SetACL(bob, file, nfs3.ACLAccess, nfsclient.ACLOf(0x20, 0, 1, 0x10, 9, 0xfffffff6, 8, 70, 2, 2, 60, 7,
		2, 50, 4, 1, 5, 7, 4, 5, 3), nfsclient.ACL{})
	wantErr(t, "SETACL", err, nil)
	if a == nil || a.Mode != 0o761 || a.Mtime != before.Mtime || a.Ctime == before.Ctime {
		t.Errorf("SETACL: %+v", a)
	}
	full := &fs.AccessList{Owner: 7, Group: 3, Mask: 6, Other: 1, Masked: true, Named: []fs.AccessEntry{
		{ID: 50, Rights: 4}, {ID: 60, Rights: 7}, {Group: true, ID: 70, Rights: 2}}}
	hasLists(t, c, v, file, full, nil)

	// what is asked for, and no more
	for mask, want := range map[uint32][4]int{
		nfs3.ACLAccess: {7, 7, 0, 0}, nfs3.ACLAccessCount: {7, 0, 0, 0}, nfs3.ACLDefault: {}, 0: {},
	} {
		_, got, access, dflt, err := c.GetACL(bob, file, mask)
		is := [4]int{int(access.Count), len(access.Entries), int(dflt.Count), len(dflt.Entries)}
		if err != nil || got != mask || is != want {
			t.Errorf("GETACL, mask %x: %v, mask %x, %v, want %v", mask, err, got, is, want)
		}
	}

	// a mask that says what the group has is none
	plain := nfsclient.ACLOf(1, 0, 6, 4, 0, 4, 0x10, 0, 4, 0x20, 0, 0)
	_, err = c.SetACL(bob, file, nfs3.ACLAccess, plain, nfsclient.ACL{})
	wantErr(t, "SETACL of a mode", err, nil)
	hasLists(t, c, v, file, nil, nil)
	if a, _ := v.Getattr(file); a.Mode != 0o640 {
		t.Errorf("mode %o", a.Mode)
	}

	// of a directory, one, both, and none
	small := &fs.AccessList{Owner: 7, Group: 5, Other: 1}
	attr, _ := v.Getattr(dir)
	_, err = c.SetACL(bob, dir, nfs3.ACLDefault, nfsclient.ACL{}, onTheWire(full, &attr, 0x1000))
	wantErr(t, "SETACL of a default list", err, nil)
	hasLists(t, c, v, dir, nil, full)
	_, err = c.SetACL(bob, dir, nfs3.ACLAccess|nfs3.ACLDefault, onTheWire(full, &attr, 0), onTheWire(small, &attr, 0x1000))
	wantErr(t, "SETACL of both", err, nil)
	hasLists(t, c, v, dir, full, small)
	if a, _ := v.Getattr(dir); a.Mode != 0o761 {
		t.Errorf("mode %o", a.Mode)
	}
	_, err = c.SetACL(bob, dir, 0, nfsclient.ACL{}, nfsclient.ACL{})
	wantErr(t, "SETACL of nothing", err, nil)
	hasLists(t, c, v, dir, full, small)
	for mask, want := range map[uint32][4]int{
		accessToo: {7, 7, 0, 0}, defaultToo: {0, 0, 4, 4}, nfs3.ACLDefaultCount: {0, 0, 4, 0},
	} {
		_, _, access, dflt, err := c.GetACL(bob, dir, mask)
		is := [4]int{int(access.Count), len(access.Entries), int(dflt.Count), len(dflt.Entries)}
		if err != nil || is != want {
			t.Errorf("GETACL of a directory, mask %x: %v, %v, want %v", mask, err, is, want)
		}
	}
	made, err := c.Create(bob, dir, []byte("new"), fs.Guarded, mode(0o666), 0)
	wantErr(t, "CREATE", err, nil)
	if made.Attr.Mode != 0o640 {
		t.Errorf("a new file has mode %o", made.Attr.Mode)
	}
	_, err = c.SetACL(bob, dir, nfs3.ACLAccess|nfs3.ACLDefault, onTheWire(full, &attr, 0), nfsclient.ACL{})
	wantErr(t, "SETACL without a default list", err, nil)
	hasLists(t, c, v, dir, full, nil)
	_, err = c.SetACL(bob, dir, nfs3.ACLAccess|nfs3.ACLDefault, nfsclient.ACL{}, onTheWire(full, &attr, 0x1000))
	wantErr(t, "SETACL without an access list", err, nil)
	hasLists(t, c, v, dir, nil, full)
}

// Random lists, set by clients or on the volume, are the same by both.
func TestRandomACL(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Int64()
	}
	t.Logf("-seed %d", seed)
	r := rand.New(rand.NewPCG(uint64(seed), 0))
	v, _, dir, _ := listVolume(t)
	c := knowing(t, mount(t, start(t, v)))
	some := func() *fs.AccessList {
		if r.IntN(4) == 0 {
			return nil
		}
		l := &fs.AccessList{Owner: r.Uint32N(8), Group: r.Uint32N(8), Other: r.Uint32N(8), Mask: r.Uint32N(8), Masked: true}
		for i := range 1 + r.Uint32N(6) {
			l.Named = append(l.Named, fs.AccessEntry{Group: i > 2, ID: i*7 + r.Uint32N(7), Rights: r.Uint32N(8)})
		}
		return l
	}
	for range 200 {
		l := fs.Lists{Access: some(), Default: some()}
		if r.IntN(2) == 0 {
			a, _ := v.Getattr(dir)
			_, err := c.SetACL(bob, dir, nfs3.ACLAccess|nfs3.ACLDefault, onTheWire(l.Access, &a, 0), onTheWire(l.Default, &a, 0))
			wantErr(t, "SETACL", err, nil)
		} else {
			wantErr(t, "SetLists", v.SetLists(bob, dir, l, true, true), nil)
		}
		hasLists(t, c, v, dir, l.Access, l.Default)
	}
}

// What is no list, and what a caller may not set, changes nothing: neither of the two lists.
func TestACLErrors(t *testing.T) {
	v, file, dir, link := listVolume(t)
	c := knowing(t, mount(t, start(t, v)))
	const both = nfs3.ACLAccess | nfs3.ACLDefault
	gone, err := c.Create(root, c.Root(), []byte("gone"), fs.Guarded, mode(0o644), 0)
	wantErr(t, "CREATE", err, nil)
	_, err = c.Remove(root, c.Root(), []byte("gone"))
	wantErr(t, "REMOVE", err, nil)
	fine := nfsclient.ACLOf(1, 0, 6, 2, 50, 4, 4, 0, 5, 0x10, 0, 6, 0x20, 0, 4)
	long := func(n uint32) nfsclient.ACL {
		words := []uint32{1, 0, 7, 4, 0, 7, 0x10, 0, 7, 0x20, 0, 7}
		for i := range n {
			words = append(words, 2, i, 7)
		}
		return nfsclient.ACLOf(words...)
	}
	miscounted := fine
	miscounted.Count--
	eve := &fs.Cred{UID: 1002, GID: 1002}
	var none nfsclient.ACL
	of := nfsclient.ACLOf
	for what, x := range map[string]struct {
		who    *fs.Cred
		h      fs.Handle
		mask   uint32
		access nfsclient.ACL
		dflt   nfsclient.ACL
		want   error
	}{
		"by another":               {eve, file, nfs3.ACLAccess, fine, none, fs.ErrPerm},
		"taken away by another":    {eve, file, nfs3.ACLAccess, none, none, fs.ErrPerm},
		"a default list of a file": {bob, file, both, fine, fine, fs.ErrAcces},
		"of a link":                {bob, link, nfs3.ACLAccess, fine, none, fs.ErrInval},
		"an unknown mask":          {bob, file, 0x11, fine, none, fs.ErrInval},
		"miscounted":               {bob, file, nfs3.ACLAccess, miscounted, none, fs.ErrInval},
		"no owner":                 {bob, file, nfs3.ACLAccess, of(4, 0, 5, 0x20, 0, 4), none, fs.ErrInval},
		"too many rights":          {bob, file, nfs3.ACLAccess, of(1, 0, 8, 4, 0, 5, 0x20, 0, 4), none, fs.ErrInval},
		"of nothing known": {bob, file, nfs3.ACLAccess, of(1, 0, 6, 4, 0, 5, 0x20, 0, 4, 0x40, 0, 4), none,
			fs.ErrInval},
		"two masks": {bob, file, nfs3.ACLAccess, of(1, 0, 6, 4, 0, 5, 0x10, 0, 4, 0x10, 0, 4, 0x20, 0, 4), none,
			fs.ErrInval},
		"a user without a mask": {bob, file, nfs3.ACLAccess, of(1, 0, 6, 2, 5, 4, 4, 0, 5, 0x20, 0, 4), none,
			fs.ErrInval},
		"a second list that is none": {bob, dir, both, fine, of(1, 0, 6), fs.ErrInval},
		"longer than a mount has":    {bob, dir, both, fine, long(fs.MaxNamed + 1), fs.ErrNoSpc},
		"a handle of nothing":        {bob, fs.Handle{}, 0x11, fine, fine, fs.ErrStale},
		"of what is gone":            {bob, gone.Handle, 0x11, fine, fine, fs.ErrStale},
	} {
		a, err := c.SetACL(x.who, x.h, x.mask, x.access, x.dflt)
		wantErr(t, what, err, x.want)
		if (a == nil) != (x.want == fs.ErrStale) {
			t.Errorf("%s: attributes %+v", what, a)
		}
		hasLists(t, c, v, file, nil, nil)
		hasLists(t, c, v, dir, nil, nil)
		if at, _ := v.Getattr(file); at.Mode != 0o640 {
			t.Errorf("%s: mode %o", what, at.Mode)
		}
	}
	_, _, _, _, err = c.GetACL(bob, file, 0x10)
	wantErr(t, "GETACL, an unknown mask", err, fs.ErrInval)
	_, _, _, _, err = c.GetACL(bob, gone.Handle, 0x10)
	wantErr(t, "GETACL of what is gone", err, fs.ErrStale)
	_, _, _, _, err = c.GetACL(bob, fs.Handle{}, 0x10)
	wantErr(t, "GETACL, a handle of nothing", err, fs.ErrStale)
	_, err = c.SetACL(bob, dir, both, fine, long(fs.MaxNamed))
	wantErr(t, "as long as a mount has", err, nil)

	// what is not in the form of an argument
	for _, l := range []nfsclient.ACL{long(1021), {Count: 1025}, {Entries: long(1021).Entries}} {
		_, err = c.SetACL(bob, file, 0, l, nfsclient.ACL{})
		var rpc *nfsclient.RPCError
		if !errors.As(err, &rpc) || rpc.Stat != uint32(oncrpc.GarbageArgs) {
			t.Errorf("%d entries: %v", l.Count, err)
		}
	}
	if _, err = c.SetACL(bob, file, 0, long(1020), nfsclient.ACL{}); err != nil {
		t.Errorf("1024 entries: %v", err)
	}
}

// The rules of exports hold for NFSACL as for NFS.
func TestACLExports(t *testing.T) {
	v, file, _, _ := listVolume(t)
	policy := exports.NewPolicy(parse(t, "/ 10.0.0.1(rw,insecure,no_root_squash) 10.0.0.2(ro,insecure) "+
		"10.0.0.3(rw,insecure) 10.0.0.4(rw)"))
	l, _ := startOn(t, server.Volume{FS: v, ID: [8]byte{1, 2, 3}, Key: [16]byte{4, 5, 6}, Exports: policy})
	may := knowing(t, l.mustMount(t, "10.0.0.1:2000", "/"))
	fine := nfsclient.ACLOf(1, 0, 6, 2, 50, 4, 4, 0, 5, 0x10, 0, 6, 0x20, 0, 4)
	for what, x := range map[string]struct {
		peer     string
		get, set error
	}{
		"all":             {"10.0.0.1:2000", nil, nil},
		"read-only":       {"10.0.0.2:2000", nil, fs.ErrROFS},
		"root is nobody":  {"10.0.0.3:2000", nil, fs.ErrPerm},
		"not privileged":  {"10.0.0.4:2000", fs.ErrPerm, fs.ErrPerm},
		"not in the file": {"10.0.0.5:2000", fs.ErrAcces, fs.ErrAcces},
	} {
		c := may.On(l.dial(t, x.peer))
		_, _, _, _, err := c.GetACL(root, file, accessToo)
		wantErr(t, what+": GETACL", err, x.get)
		_, err = c.SetACL(root, file, nfs3.ACLAccess, fine, nfsclient.ACL{})
		wantErr(t, what+": SETACL", err, x.set)
	}
	policy.Set(parse(t, "/other *(rw,insecure)"))
	_, _, _, _, err := may.GetACL(root, file, accessToo)
	wantErr(t, "the export is no more", err, fs.ErrStale)
}

// Each volume has its own lists.
func TestACLOfVolumes(t *testing.T) {
	a, file, _, _ := listVolume(t)
	b, other, _, _ := listVolume(t)
	l, _ := startOn(t, server.Volume{Path: "/a", FS: a, ID: [8]byte{1}, Key: [16]byte{1}},
		server.Volume{Path: "/b", FS: b, ID: [8]byte{2}, Key: [16]byte{2}})
	inA, inB := knowing(t, l.mustMount(t, "10.0.0.1:900", "/a")), knowing(t, l.mustMount(t, "10.0.0.1:901", "/b"))
	full := &fs.AccessList{Owner: 7, Group: 3, Mask: 6, Other: 1, Masked: true,
		Named: []fs.AccessEntry{{ID: 50, Rights: 4}}}
	_, err := inB.SetACL(bob, other, nfs3.ACLAccess, onTheWire(full, &fs.Attr{}, 0), nfsclient.ACL{})
	wantErr(t, "SETACL", err, nil)
	hasLists(t, inA, a, file, nil, nil)
	hasLists(t, inB, b, other, full, nil)
}

// Only a server of files with lists has the program, unless it is not to; it is version 3, over TCP.
func TestACLProgram(t *testing.T) {
	v, _, _, _ := listVolume(t)
	m, _ := planted(t)
	tcp := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2049}
	for what, x := range map[string]struct {
		cfg     server.Config
		version uint32
		want    oncrpc.Accept
		listed  bool
	}{
		"served":        {server.Config{Volumes: []server.Volume{{FS: v}}}, 3, oncrpc.Success, true},
		"another one":   {server.Config{Volumes: []server.Volume{{FS: v}}}, 2, oncrpc.ProgMismatch, true},
		"not wanted":    {server.Config{Volumes: []server.Volume{{FS: v}}, NoLists: true}, 3, oncrpc.ProgUnavail, false},
		"without lists": {server.Config{Volumes: []server.Volume{{FS: m}}}, 3, oncrpc.ProgUnavail, false},
		"one without": {server.Config{Volumes: []server.Volume{{Path: "/a", FS: v}, {Path: "/b", FS: m}}}, 3,
			oncrpc.ProgUnavail, false},
	} {
		addr, s := startServer(t, x.cfg)
		c, err := nfsclient.Dial(addr)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Call(nfs3.ACLProgram, x.version, nfs3.ProcACLNull, nil, nil)
		c.Close()
		got := oncrpc.Success
		var rpc *nfsclient.RPCError
		if errors.As(err, &rpc) {
			got = oncrpc.Accept(rpc.Stat)
		} else if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if got != x.want {
			t.Errorf("%s: %v, want %v", what, got, x.want)
		}
		listed := slices.ContainsFunc(s.Registered(tcp, tcp), func(e portmap.Entry) bool {
			return e.Program == nfs3.ACLProgram && e.Version == 3
		})
		if listed != x.listed {
			t.Errorf("%s: registered: %v", what, listed)
		}
	}
}
