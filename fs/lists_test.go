package fs_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/offline/check"
	"tansy/test/kit/replay"
)

// allowed is what POSIX 1003.1e, draft 17, says of who is not root: whether they have all of want, by the mode of a
// file, its owner and group, and its access list, which may be nil.
func allowed(c *fs.Cred, mode, uid, gid uint32, l *fs.AccessList, want uint32) bool {
	in := func(g uint32) bool { return c.GID == g || slices.Contains(c.GIDs, g) }
	has := func(rights uint32) bool { return rights&want == want }
	if c.UID == uid {
		return has(mode >> 6)
	}
	if l == nil {
		if in(gid) {
			return has(mode >> 3)
		}
		return has(mode)
	}
	mask := mode >> 3
	for _, e := range l.Named {
		if !e.Group && e.ID == c.UID {
			return has(e.Rights & mask)
		}
	}
	member, some := in(gid), in(gid) && has(l.Group&mask)
	for _, e := range l.Named {
		if e.Group && in(e.ID) {
			member, some = true, some || has(e.Rights&mask)
		}
	}
	if member {
		return some
	}
	return has(mode)
}

// someList is a list of random rights of random users 11 to 14 and groups 21 to 24.
func someList(r *rand.Rand) *fs.AccessList {
	l := &fs.AccessList{Owner: r.Uint32N(8), Group: r.Uint32N(8), Other: r.Uint32N(8)}
	for i := range uint32(8) {
		if r.IntN(3) == 0 {
			l.Named = append(l.Named, fs.AccessEntry{Group: i >= 4, ID: 11 + i%4 + i/4*10, Rights: r.Uint32N(8)})
		}
	}
	if len(l.Named) > 0 || r.IntN(2) == 0 {
		l.Masked, l.Mask = true, r.Uint32N(8)
	}
	return l
}

func access(mode uint32, group uint32, l *fs.AccessList) *fs.AccessList {
	if !l.Masked {
		return nil
	}
	return &fs.AccessList{Owner: mode >> 6 & 7, Group: group, Mask: mode >> 3 & 7, Other: mode & 7, Masked: true,
		Named: l.Named}
}

// listFS is a volume with a file and a directory, which are Ann's.
func listFS(t *testing.T) (d *disk.Sim, v *fs.FS, file, dir fs.Node) {
	d = disk.NewSim(6000 * disk.BlockSize)
	mkfs(t, d, fs.MkfsOptions{Zeroed: true, Inodes: 1024})
	v = open(t, d, fs.Options{})
	set := &fs.SetAttr{UID: some(uint32(10)), GID: some(uint32(20))}
	file, err := v.Create(&fs.Cred{}, v.Root(), []byte("f"), fs.Unchecked, set, 0)
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = v.Mkdir(&fs.Cred{}, v.Root(), []byte("d"), set); err != nil {
		t.Fatal(err)
	}
	return d, v, file, dir
}

var ann = &fs.Cred{UID: 10, GID: 20}

// sameList fails the test unless a file has such lists.
func sameLists(t *testing.T, v *fs.FS, h fs.Handle, access, dflt *fs.AccessList) {
	t.Helper()
	for _, c := range []struct {
		name string
		get  func(fs.Handle) (*fs.AccessList, error)
		want *fs.AccessList
	}{{"access", v.GetAccess, access}, {"default", v.GetDefault, dflt}} {
		got, err := c.get(h)
		if err != nil || (got == nil) != (c.want == nil) || got != nil && !got.Equal(c.want) {
			t.Errorf("%s list %+v, %v, want %+v", c.name, got, err, c.want)
		}
	}
}

// Who may do what to a file and a directory with random lists is what the standard says: by ACCESS, and by what comes
// of calls. So it is after the mode or the group has changed, and after the volume is opened again.
func TestAccessLists(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	d, v, file, dir := listFS(t)
	for range 150 {
		l := someList(r)
		for _, h := range []fs.Handle{file.Handle, dir.Handle} {
			if err := v.SetAccess(ann, h, l); err != nil {
				t.Fatal(err)
			}
		}
		mode, gid := l.Owner<<6|l.Mask<<3|l.Other, 20+r.Uint32N(5)
		if !l.Masked {
			mode = l.Owner<<6 | l.Group<<3 | l.Other
		}
		if r.IntN(3) == 0 {
			mode = r.Uint32N(512)
		}
		for _, h := range []fs.Handle{file.Handle, dir.Handle} {
			a, err := v.Getattr(h)
			if want := l.Owner<<6 | l.Other; err != nil || a.Mode&0o707 != want {
				t.Errorf("mode %o, %v, with list %+v", a.Mode, err, l)
			}
			if _, err := v.Setattr(&fs.Cred{}, h, &fs.SetAttr{Mode: &mode, GID: &gid}, nil); err != nil {
				t.Fatal(err)
			}
			sameLists(t, v, h, access(mode, l.Group, l), nil)
		}
		if r.IntN(30) == 0 {
			closeFS(t, v)
			v = open(t, d, fs.Options{})
		}
		for range 20 {
			c := &fs.Cred{UID: 10 + r.Uint32N(6), GID: 20 + r.Uint32N(6)}
			for range r.IntN(3) {
				c.GIDs = append(c.GIDs, 20+r.Uint32N(6))
			}
			may := func(want uint32) bool { return allowed(c, mode, 10, gid, access(mode, l.Group, l), want) }
			askFile(t, v, file.Handle, c, may)
			askDir(t, v, dir.Handle, c, may)
			if t.Failed() {
				t.Fatalf("mode %o, group %d, list %+v, caller %+v", mode, gid, l, c)
			}
		}
	}
	closeFS(t, v)
	if rep, err := check.Volume(d, check.Options{Data: true}); err != nil || !rep.Clean() {
		t.Errorf("%v, %v", rep.Problems, err)
	}
}

const (
	exec  = 1
	write = 2
	read  = 4
)

func askFile(t *testing.T, v *fs.FS, h fs.Handle, c *fs.Cred, may func(want uint32) bool) {
	t.Helper()
	var want uint32
	for _, b := range []struct{ right, bits uint32 }{{read, 1}, {write, 4 + 8}, {exec, 32}} {
		if may(b.right) {
			want |= b.bits
		}
	}
	if bits, _, err := v.Access(c, h, 63); err != nil || bits != want {
		t.Errorf("ACCESS of the file: %d, %v, want %d", bits, err, want)
	}
	owner := c.UID == 10
	if _, _, _, err := v.Write(c, h, 0, []byte("data"), fs.Unstable); (err == nil) != (owner || may(write)) {
		t.Errorf("WRITE: %v", err)
	}
	if _, _, _, err := v.Read(c, h, 0, 4); (err == nil) != (owner || may(read) || may(exec)) {
		t.Errorf("READ: %v", err)
	}
}

func askDir(t *testing.T, v *fs.FS, h fs.Handle, c *fs.Cred, may func(want uint32) bool) {
	t.Helper()
	var want uint32
	for _, b := range []struct{ right, bits uint32 }{{read, 1}, {exec, 2}, {write + exec, 4 + 8 + 16}} {
		if may(b.right) {
			want |= b.bits
		}
	}
	if bits, _, err := v.Access(c, h, 63); err != nil || bits != want {
		t.Errorf("ACCESS of the directory: %d, %v, want %d", bits, err, want)
	}
	if _, err := v.Lookup(c, h, []byte("none")); (err == fs.ErrNoEnt) != may(exec) {
		t.Errorf("LOOKUP: %v", err)
	}
	_, err := v.Mkdir(c, h, []byte("x"), &fs.SetAttr{})
	if (err == nil) != may(write+exec) {
		t.Errorf("MKDIR: %v", err)
	}
	if err == nil {
		if _, err := v.Rmdir(c, h, []byte("x")); err != nil {
			t.Errorf("RMDIR: %v", err)
		}
	}
}

// What is made in a directory gets its default list, bounds its mode by that, and directories hand it on.
func TestDefaultLists(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	_, v, file, dir := listFS(t)
	defer closeFS(t, v)
	if err := v.SetDefault(ann, file.Handle, someList(r)); err != fs.ErrAcces {
		t.Errorf("of a file: %v", err)
	}
	for i := range 100 {
		l := someList(r)
		if err := v.SetDefault(ann, dir.Handle, l); err != nil {
			t.Fatal(err)
		}
		if has, err := v.HasDefault(dir.Handle); !has || err != nil {
			t.Errorf("it has none, %v", err)
		}
		sameLists(t, v, dir.Handle, nil, l)
		mode, name := r.Uint32N(512), []byte(fmt.Sprint(i))
		group := l.Group
		if l.Masked {
			group = l.Mask
		}
		bounded := mode & (l.Owner<<6 | group<<3 | l.Other)
		root, set := &fs.Cred{}, &fs.SetAttr{Mode: &mode}
		for _, m := range []struct {
			name string
			make func() (fs.Node, error)
			mode uint32
			a, d *fs.AccessList
		}{
			{"CREATE", func() (fs.Node, error) { return v.Create(root, dir.Handle, name, fs.Guarded, set, 0) }, bounded,
				access(bounded, l.Group, l), nil},
			{"MKNOD", func() (fs.Node, error) { return v.Mknod(root, dir.Handle, name, fs.FIFO, set, 0, 0) }, bounded,
				access(bounded, l.Group, l), nil},
			{"MKDIR", func() (fs.Node, error) { return v.Mkdir(root, dir.Handle, name, set) }, bounded,
				access(bounded, l.Group, l), l},
			{"SYMLINK", func() (fs.Node, error) { return v.Symlink(root, dir.Handle, name, set, []byte("x")) }, 0o777,
				nil, nil},
		} {
			n, err := m.make()
			if err != nil || n.Attr.Mode != m.mode {
				t.Fatalf("%s: mode %o, %v, want %o by %+v", m.name, n.Attr.Mode, err, m.mode, l)
			}
			sameLists(t, v, n.Handle, m.a, m.d)
			gone := v.Remove
			if m.name == "MKDIR" {
				gone = v.Rmdir
			}
			if _, err := gone(root, dir.Handle, name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := v.SetDefault(ann, dir.Handle, nil); err != nil {
		t.Error(err)
	}
	sameLists(t, v, dir.Handle, nil, nil)
}

// Both lists of a directory are set at one instant, or neither; one of them alone leaves the other.
func TestSetsBothLists(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	d, v, file, dir := listFS(t)
	var is fs.Lists
	some := func() *fs.AccessList {
		if r.IntN(4) == 0 {
			return nil
		}
		l := someList(r)
		l.Masked = true
		return l
	}
	for range 100 {
		l, access, dflt := fs.Lists{Access: some(), Default: some()}, r.IntN(2) == 0, r.IntN(2) == 0
		before, err := v.Getattr(dir.Handle)
		if err == nil {
			err = v.SetLists(ann, dir.Handle, l, access, dflt)
		}
		if err != nil {
			t.Fatal(err)
		}
		mode := before.Mode
		if access {
			is.Access = l.Access
			if l.Access != nil {
				mode = l.Access.Owner<<6 | l.Access.Mask<<3 | l.Access.Other
			}
		}
		if dflt {
			is.Default = l.Default
		}
		sameLists(t, v, dir.Handle, is.Access, is.Default)
		got, a, err := v.GetLists(dir.Handle, true, true)
		if err != nil || a.Mode != mode || (a.Ctime == before.Ctime) != (!access && !dflt) ||
			(got.Access == nil) != (is.Access == nil) || got.Access != nil && !got.Access.Equal(is.Access) ||
			(got.Default == nil) != (is.Default == nil) || got.Default != nil && !got.Default.Equal(is.Default) {
			t.Fatalf("%+v, mode %o, %v, want %+v, mode %o", got, a.Mode, err, is, mode)
		}
	}
	a := &fs.AccessList{Owner: 7, Group: 1, Mask: 1, Other: 1, Masked: true}
	none := &fs.AccessList{Named: []fs.AccessEntry{{ID: 5}}}
	nothing := fs.Handle{Ino: file.Handle.Ino, Gen: 77}
	for what, c := range map[string]struct {
		who  *fs.Cred
		h    fs.Handle
		l    fs.Lists
		want error
	}{
		"a default list of a file": {ann, file.Handle, fs.Lists{Access: a, Default: a}, fs.ErrAcces},
		"by another":               {&fs.Cred{UID: 11}, dir.Handle, fs.Lists{Access: a, Default: a}, fs.ErrPerm},
		"none":                     {ann, dir.Handle, fs.Lists{Access: a, Default: none}, fs.ErrInval},
		"none at first":            {ann, dir.Handle, fs.Lists{Access: none, Default: a}, fs.ErrInval},
		"of nothing":               {ann, nothing, fs.Lists{Access: a, Default: a}, fs.ErrStale},
	} {
		if err := v.SetLists(c.who, c.h, c.l, true, true); err != c.want {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
		sameLists(t, v, file.Handle, nil, nil)
		sameLists(t, v, dir.Handle, is.Access, is.Default)
	}
	if err := v.SetLists(ann, nothing, fs.Lists{}, false, false); err != fs.ErrStale {
		t.Errorf("nothing of nothing: %v", err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	v = open(t, d, fs.Options{})
	sameLists(t, v, dir.Handle, is.Access, is.Default)
}

// A list that is none takes no number of the table, whichever of two it is.
func TestSetsBothListsNumbers(t *testing.T) {
	_, v, _, dir := listFS(t)
	a := &fs.AccessList{Owner: 7, Group: 1, Mask: 1, Other: 1, Masked: true}
	none := &fs.AccessList{Named: []fs.AccessEntry{{ID: 5}}}
	before, err := v.Space()
	if err != nil {
		t.Fatal(err)
	}
	if err := v.SetLists(ann, dir.Handle, fs.Lists{Access: a, Default: none}, true, true); err != fs.ErrInval {
		t.Error(err)
	}
	if after, err := v.Space(); err != nil || after != before { // the table takes its first block with the first list
		t.Errorf("%+v, %v, want %+v", after, err, before)
	}
}

// Who may set lists; what is none; and that flags forbid it, and keep the lists.
func TestWhoSetsLists(t *testing.T) {
	d, v, file, dir := listFS(t)
	l := &fs.AccessList{
		Owner: 7, Group: 5, Mask: 6, Other: 1, Masked: true, Named: []fs.AccessEntry{{ID: 11, Rights: 6}},
	}
	eve, root, mate := &fs.Cred{UID: 12, GID: 22}, &fs.Cred{}, &fs.Cred{UID: 10, GID: 29}
	link, err := v.Symlink(root, v.Root(), []byte("s"), nil, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		who  *fs.Cred
		h    fs.Handle
		l    *fs.AccessList
		want error
	}{
		{eve, file.Handle, l, fs.ErrPerm}, {eve, dir.Handle, nil, fs.ErrPerm}, {root, link.Handle, l, fs.ErrInval},
		{ann, file.Handle, &fs.AccessList{Owner: 8}, fs.ErrInval},
		{ann, file.Handle, &fs.AccessList{Named: l.Named}, fs.ErrInval},
		{ann, file.Handle, &fs.AccessList{Masked: true, Named: []fs.AccessEntry{{ID: fs.NoID}}}, fs.ErrInval},
		{ann, file.Handle, &fs.AccessList{Masked: true, Named: []fs.AccessEntry{{Group: true}, {}}}, fs.ErrInval},
		{ann, fs.Handle{Ino: file.Handle.Ino, Gen: 77}, l, fs.ErrStale},
		{ann, file.Handle, l, nil}, {root, dir.Handle, l, nil},
	} {
		if err := v.SetAccess(c.who, c.h, c.l); err != c.want {
			t.Errorf("user %d sets %+v: %v, want %v", c.who.UID, c.l, err, c.want)
		}
	}
	sameLists(t, v, file.Handle, l, nil)
	mode := uint32(0o2755)
	if _, err := v.Setattr(ann, file.Handle, &fs.SetAttr{Mode: &mode}, nil); err != nil {
		t.Fatal(err)
	}
	sets := func(who *fs.Cred, want uint32) {
		t.Helper()
		if err := v.SetAccess(who, file.Handle, l); err != nil {
			t.Error(err)
		}
		if a, err := v.Getattr(file.Handle); err != nil || a.Mode != want {
			t.Errorf("mode %o, %v, want %o", a.Mode, err, want)
		}
	}
	sets(ann, 0o2761)
	sets(root, 0o2761)
	sets(mate, 0o761)
	for _, flag := range []uint32{fs.FlagImmutable, fs.FlagAppendOnly, fs.FlagNoDump} {
		if err := v.SetFlags(root, file.Handle, flag); err != nil {
			t.Error(err)
		}
		if got, err := v.Flags(file.Handle); err != nil || got != flag {
			t.Errorf("flags %#x, %v, want %#x", got, err, flag)
		}
		if err := v.SetAccess(root, file.Handle, nil); (err == fs.ErrPerm) != (flag != fs.FlagNoDump) {
			t.Errorf("with flag %#x: %v", flag, err)
		}
		if flag != fs.FlagNoDump {
			sameLists(t, v, file.Handle, l, nil)
		}
		if err := v.SetFlags(root, file.Handle, 0); err != nil {
			t.Error(err)
		}
	}
	sameLists(t, v, file.Handle, nil, nil)
	closeFS(t, v)
	if rep, err := check.Volume(d, check.Options{Data: true}); err != nil || !rep.Clean() {
		t.Errorf("%v, %v", rep.Problems, err)
	}
}

// Default lists that differ in what a mode would say alone are different.
func TestDefaultListsAlike(t *testing.T) {
	_, v, _, dir := listFS(t)
	for _, l := range []fs.AccessList{{}, {Owner: 7}, {Mask: 3}, {Other: 5}, {Owner: 7, Mask: 3, Other: 5}} {
		l.Masked, l.Named = true, []fs.AccessEntry{{ID: 1, Rights: 7}}
		if err := v.SetDefault(ann, dir.Handle, &l); err != nil {
			t.Fatal(err)
		}
		sameLists(t, v, dir.Handle, nil, &l)
	}
	closeFS(t, v)
}

// refusesLists has lists refused, which must take no numbers.
func refusesLists(t *testing.T, v *fs.FS, file fs.Handle, l func(i int) *fs.AccessList) {
	t.Helper()
	link, err := v.Symlink(root, v.Root(), []byte("link"), &fs.SetAttr{UID: some(uint32(10))}, []byte("f"))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct{ got, want error }{
		{v.SetAccess(&fs.Cred{UID: 11, GID: 20}, file, l(0)), fs.ErrPerm},
		{v.SetAccess(ann, link.Handle, l(1)), fs.ErrInval},
		{v.SetDefault(ann, file, l(2)), fs.ErrAcces},
		{v.SetFlags(root, file, fs.FlagImmutable), nil},
		{v.SetAccess(ann, file, l(4)), fs.ErrPerm},
		{v.SetAccess(root, file, l(5)), fs.ErrPerm},
		{v.SetFlags(root, file, 0), nil},
	} {
		if c.got != c.want {
			t.Errorf("step %d: %v, not %v", i, c.got, c.want)
		}
	}
}

// A volume has 4,095 lists at most, of which root alone adds the last 1,024, of any length that one block has room for;
// each has a number once.
func TestManyLists(t *testing.T) {
	d, v, file, dir := listFS(t)
	l := func(i, n int) *fs.AccessList {
		l := &fs.AccessList{Group: uint32(i) % 8, Masked: true}
		for k := range n {
			l.Named = append(l.Named, fs.AccessEntry{ID: uint32(i + k), Rights: 7})
		}
		return l
	}
	if err := v.SetAccess(ann, file.Handle, l(9, 816)); err != fs.ErrNoSpc {
		t.Errorf("a list that no block has room for: %v", err)
	}
	size := func(i int) int {
		if i%1000 == 7 {
			return 815
		}
		return 1 + i%3
	}
	refusesLists(t, v, file.Handle, func(i int) *fs.AccessList { return l(5000+i, 1) })
	dflt := l(6000, 1) // a new file there has it, of which SetAccess knows less
	dflt.Owner, dflt.Mask, dflt.Other = 7, 6, 5
	if err := v.SetDefault(ann, dir.Handle, dflt); err != nil {
		t.Fatal(err)
	}
	who := ann
	for i := 1; i < 4095; i++ { // so many there are
		if i == 4095-1024-1 { // the last of all others: one of those who come at once gets it
			var wg sync.WaitGroup
			var got atomic.Int32
			for k := range 8 {
				wg.Go(func() {
					if v.SetAccess(ann, file.Handle, l(7000+k, 1)) == nil {
						got.Add(1)
					}
				})
			}
			if wg.Wait(); got.Load() != 1 {
				t.Fatalf("%d got the last one", got.Load())
			}
			continue
		}
		if i == 4095-1024 {
			if err := v.SetAccess(ann, file.Handle, l(i, size(i))); err != fs.ErrNoSpc {
				t.Errorf("one of root's: %v", err)
			}
			who = root
		}
		if err := v.SetAccess(who, file.Handle, l(i, size(i))); err != nil {
			t.Fatalf("list %d: %v", i, err)
		}
		if i == 2000 {
			closeFS(t, v)
			v = open(t, d, fs.Options{})
		}
	}
	if err := v.SetAccess(root, file.Handle, l(5000, 1)); err != fs.ErrNoSpc {
		t.Errorf("one more: %v", err)
	}
	n, err := v.Create(ann, dir.Handle, []byte("new"), fs.Guarded, &fs.SetAttr{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	has, err := v.GetAccess(n.Handle)
	if err == nil {
		err = v.SetAccess(ann, n.Handle, has) // as clients do
	}
	if err != nil {
		t.Errorf("the list that a new file has: %v", err)
	}
	closeFS(t, v)
	v = open(t, d, fs.Options{})
	for _, i := range []int{1, 7, 999, 3007, 4094} {
		if err := v.SetAccess(ann, file.Handle, l(i, size(i))); err != nil {
			t.Errorf("list %d: %v", i, err)
		}
		sameLists(t, v, file.Handle, l(i, size(i)), nil)
	}
	closeFS(t, v)
	if rep, err := check.Volume(d, check.Options{Data: true}); err != nil || !rep.Clean() {
		t.Errorf("%v, %v", rep.Problems, err)
	}
}
