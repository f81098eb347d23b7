package mount3

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"path"
	"strings"
	"testing"

	"tansy/fs"
	"tansy/fs/model"
	"tansy/nfs/exports"
	"tansy/nfs/nfs3"
	"tansy/nfs/oncrpc"
)

// tree is a small volume: by path, what is there. Only users that are not 0 and not the
// owner of private may not search it.
var tree = []struct {
	path string
	typ  fs.Type
	mode uint32
}{
	{"/a", fs.Directory, 0o755},
	{"/a/b", fs.Directory, 0o700}, // may be mounted, as it has not to be searched
	{"/a/b/c", fs.Directory, 0o755},
	{"/a/x y", fs.Directory, 0o755},
	{"/f", fs.Regular, 0o644},
	{"/s", fs.Symlink, 0o777}, // to "a"
	{"/p", fs.FIFO, 0o644},
	{"/private", fs.Directory, 0o700},
	{"/private/d", fs.Directory, 0o777},
	{"/" + strings.Repeat("n", 255), fs.Directory, 0o755},
}

// plant makes tree, and returns the file system and the handle of each path.
func plant(t testing.TB) (*model.Model, map[string]fs.Handle) {
	m, root := model.New(model.Options{}), &fs.Cred{}
	at := map[string]fs.Handle{"/": m.Root()}
	for _, x := range tree {
		dir, name, set := at[path.Dir(x.path)], []byte(path.Base(x.path)), &fs.SetAttr{Mode: &x.mode}
		var n fs.Node
		var err error
		switch x.typ {
		case fs.Directory:
			n, err = m.Mkdir(root, dir, name, set)
		case fs.Regular:
			n, err = m.Create(root, dir, name, fs.Guarded, set, 0)
		case fs.Symlink:
			n, err = m.Symlink(root, dir, name, set, []byte("a"))
		default:
			n, err = m.Mknod(root, dir, name, x.typ, set, 0, 0)
		}
		if err != nil {
			t.Fatal(x.path, err)
		}
		at[x.path] = n.Handle
	}
	return m, at
}

// expect is the status of MNT of dir for user uid, and the place it leads to: what a
// person would say who looks at tree.
func expect(dir, export string, uid uint32) (uint32, string) {
	names, inside := []string{}, []string{}
	for n := range strings.SplitSeq(dir, "/") {
		if n != "" && n != "." {
			names = append(names, n)
		}
	}
	for n := range strings.SplitSeq(export, "/") {
		if n != "" {
			if len(names) == 0 {
				return ErrAcces, "" // the way to the volume
			}
			if names[0] != n {
				return ErrNoEnt, ""
			}
			names = names[1:]
		}
	}
	for _, name := range names {
		here := "/" + strings.Join(inside, "/")
		switch {
		case strings.Contains(name, "\x00"):
			return ErrAcces, ""
		case len(name) > 255:
			return ErrNameTooLong, ""
		}
		for _, x := range tree {
			if x.path == here && uid != 0 && x.mode&1 == 0 {
				return ErrAcces, ""
			}
		}
		if name == ".." {
			inside = inside[:max(0, len(inside)-1)]
			continue
		}
		inside = append(inside, name)
		here = "/" + strings.Join(inside, "/")
		var typ fs.Type
		for _, x := range tree {
			if x.path == here {
				typ = x.typ
			}
		}
		switch typ {
		case 0:
			return ErrNoEnt, ""
		case fs.Directory:
		default:
			return ErrNotDir, ""
		}
	}
	return OK, "/" + strings.Join(inside, "/")
}

// FuzzPath: MNT of any path gives the directory that is there, or the error that says why
// not; DUMP has its name without detours, and UMNT by any name forgets it.
func FuzzPath(f *testing.F) {
	for _, dir := range []string{
		"/", "", ".", "//", "/..", "/../..", "/a", "a", "/a/", "/a//b/", "/a/./b/.", "/a/b/../b/c", "/a/b/c/../../..",
		"/nothing/..", "/nothing", "/a/nothing/c",
		"/f", "/f/", "/f/..", "/f/x", "/s", "/s/", "/s/b", "/p", "/private", "/private/d", "/private/..", "/a/x y", "/a/b/c",
		"/A", "/a\x00", "/...",
		tree[len(tree)-1].path, tree[len(tree)-1].path + "n", strings.Repeat("/a/..", 204),
		strings.Repeat("a/..//", 170) + "a//", "/vol/a", "/vol", "/volume/a", "/vol/../vol",
	} {
		for who := range byte(4) {
			f.Add(dir, who)
		}
	}
	m, at := plant(f)
	squash := exports.Rule{Squash: fs.Squash{Root: true, AnonUID: 5, AnonGID: 5}}
	nfs := nfs3.New(nfs3.Config{FS: m, Exports: exports.NewPolicy(exports.NewTable(exports.Everyone(squash), nil)),
		Log: slog.New(slog.DiscardHandler)})
	plain := nfs3.New(nfs3.Config{FS: m, Log: slog.New(slog.DiscardHandler)})
	f.Fuzz(func(t *testing.T, dir string, how byte) {
		export, walk := "/", plain.Walk
		cred, uid := &oncrpc.Cred{Flavor: oncrpc.AuthSys}, uint32(0)
		if how&1 != 0 {
			export = "/vol"
		}
		if how&2 != 0 { // user 0 is squashed
			walk, uid = nfs.Walk, 5
		}
		s := New(Config{Volumes: []Volume{{Path: export, Walk: walk}}, Log: slog.New(slog.DiscardHandler)})
		call := func(proc int, dir string) (*oncrpc.Decoder, oncrpc.Accept) {
			args := oncrpc.NewEncoder(nil)
			args.Opaque([]byte(dir))
			c := oncrpc.Call{Args: oncrpc.NewDecoder(args.Bytes()), Reply: oncrpc.NewEncoder(nil), Cred: cred,
				Peer: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}}
			accept := s.Program().Procs[proc].Serve(&c)
			d := oncrpc.NewDecoder(c.Reply.Whole())
			return &d, accept
		}
		d, accept := call(ProcMnt, dir)
		if len(dir) > maxPath {
			if accept != oncrpc.GarbageArgs {
				t.Errorf("a path of %d bytes: %v", len(dir), accept)
			}
			return
		}
		want, place := expect(dir, export, uid)
		if got := d.Uint32(); got != want {
			t.Fatalf("MNT %q of %s by %d: status %d, want %d", dir, export, uid, got, want)
		}
		if want != OK {
			if len(s.mounts) > 0 {
				t.Errorf("MNT %q is remembered", dir)
			}
			return
		}
		parts := split(place)
		if handle, err := plain.Walk(&oncrpc.Call{Cred: cred}, parts); err != nil || !bytes.Equal(handle, d.Opaque(64)) {
			t.Errorf("MNT %q is not %s (%v)", dir, place, err)
		}
		if a, err := m.Getattr(at[place]); err != nil || a.Type != fs.Directory {
			t.Errorf("MNT %q: %v", dir, err)
		}
		place = path.Join(export, place)
		l, _ := call(ProcDump, "")
		if !l.Bool() || len(l.Opaque(255)) == 0 || string(l.Opaque(1024)) != place || l.Bool() || !l.Ok() {
			t.Errorf("DUMP after MNT %q does not say %s", dir, place)
		}
		call(ProcMnt, place)
		if len(s.mounts) != 1 {
			t.Errorf("%q and %s are two", dir, place)
		}
		call(ProcUmnt, dir)
		if len(s.mounts) != 0 {
			t.Errorf("UMNT %q", dir)
		}
	})
}

// A walk that fails is what MOUNT can say of it.
func TestStatus(t *testing.T) {
	var failure error
	s := New(Config{Log: slog.New(slog.DiscardHandler),
		Volumes: []Volume{{Walk: func(*oncrpc.Call, []string) ([]byte, error) { return nil, failure }}}})
	for err, want := range map[error]uint32{
		fs.ErrPerm: ErrPerm, fs.ErrNoEnt: ErrNoEnt, fs.ErrIO: ErrIO, fs.ErrAcces: ErrAcces, fs.ErrNotDir: ErrNotDir,
		fs.ErrInval:       ErrInval,
		fs.ErrNameTooLong: ErrNameTooLong, fs.ErrNotSupp: ErrNotSupp, fs.ErrServerFault: ErrServerFault,
		fs.ErrStale: ErrNoEnt, fs.ErrNotSync: ErrServerFault, errors.New("the device"): ErrIO,
	} {
		failure = err
		c := oncrpc.Call{Args: oncrpc.NewDecoder([]byte{0, 0, 0, 0}), Reply: oncrpc.NewEncoder(nil), Peer: &net.TCPAddr{}}
		s.Program().Procs[ProcMnt].Serve(&c)
		if d := oncrpc.NewDecoder(c.Reply.Whole()); d.Uint32() != want || len(d.Rest()) != 0 {
			t.Errorf("%v: % x", err, c.Reply.Whole())
		}
	}
}

// The result of DUMP is bounded also when paths are long.
func TestDumpBounded(t *testing.T) {
	s := New(Config{Volumes: []Volume{{Walk: anywhere}}, Log: slog.New(slog.DiscardHandler)})
	call := func(proc, i int) int {
		e := oncrpc.NewEncoder(nil)
		e.Opaque([]byte(path.Join("/", strings.Repeat("/long", i%200), string(rune('a'+i%26)))))
		c := oncrpc.Call{Args: oncrpc.NewDecoder(e.Bytes()), Reply: oncrpc.NewEncoder(nil),
			Peer: &net.TCPAddr{IP: net.IPv4(10, 0, byte(i>>8), byte(i)), Port: 1}}
		s.Program().Procs[proc].Serve(&c)
		return len(c.Reply.Whole())
	}
	most := 0
	for i := range 3000 {
		call(ProcMnt, i)
		if i%3 == 0 {
			call(ProcUmnt, i/2)
		}
		if n := call(ProcDump, 0); n > maxDump || n != s.dump {
			t.Fatalf("DUMP of %d bytes (%d)", n, s.dump)
		} else {
			most = max(most, n)
		}
	}
	if most < maxDump-2000 {
		t.Errorf("no more than %d bytes are remembered", most)
	}
}
