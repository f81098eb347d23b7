package nfs3

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"reflect"
	"testing"

	"tansy/fs"
	"tansy/nfs/oncrpc"
	"tansy/test/kit/replay"
	"tansy/test/kit/rfc1813"
)

// made makes up results of the file system.
type made struct{ *rand.Rand }

func (r made) u32() uint32 {
	return []uint32{0, 1, r.Uint32(), math.MaxInt32, math.MaxUint32}[r.IntN(5)]
}
func (r made) u64() uint64 { return []uint64{0, 1, r.Uint64(), 1 << 40, math.MaxUint64}[r.IntN(5)] }
func (r made) coin() bool  { return r.IntN(2) == 0 }

func (r made) bytes(most int) []byte {
	b := make([]byte, min(most, []int{0, 1, 2, 3, 4, 5, 100, 255}[r.IntN(8)]))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func (r made) time() fs.Time { return fs.Time{Sec: r.u64(), Nsec: uint32(r.IntN(1e9))} }

func (r made) attr() fs.Attr {
	return fs.Attr{
		Type: fs.Type(1 + r.IntN(7)), Mode: r.u32(), Nlink: r.u32(), UID: r.u32(), GID: r.u32(), Size: r.u64(), Used: r.u64(),
		Major: r.u32(), Minor: r.u32(), Ino: r.u64(), Gen: r.u64(), Atime: r.time(), Mtime: r.time(), Ctime: r.time(),
	}
}

func (r made) maybe() *fs.Attr {
	if r.IntN(3) == 0 {
		return nil
	}
	a := r.attr()
	return &a
}

// orZero makes attributes, or none.
func (r made) orZero() (a fs.Attr) {
	if m := r.maybe(); m != nil {
		a = *m
	}
	return a
}

func (r made) wcc() fs.WCC { return fs.WCC{Before: r.maybe(), After: r.maybe()} }

func (r made) handle() fs.Handle { return fs.Handle{Ino: r.u64(), Gen: r.u64()} }

func (r made) node() fs.Node {
	return fs.Node{Handle: r.handle(), Attr: r.attr(), Dir: r.wcc(), Parent: r.orZero()}
}

func (r made) listing(plus bool) (l fs.Listing) {
	l = fs.Listing{Dir: r.maybe(), EOF: r.IntN(2) == 0, Verf: r.u64()}
	for range r.IntN(6) {
		e := fs.Entry{Ino: r.u64(), Name: r.bytes(255), Cookie: r.u64()}
		if plus && r.IntN(4) > 0 {
			e.Attr, e.Handle = r.maybe(), r.handle()
		}
		l.Entries = append(l.Entries, e)
	}
	return l
}

// The same results as the RFC has them: expect builds on values of decode_test.go.
type expect struct {
	values
	s *Service
}

// stamp is a time on the wire: nfstime3 begins with 1970 and ends in 2106. Seconds before 1970 are those that are
// negative as signed numbers.
func (v *expect) stamp(t fs.Time) {
	if t.Sec >= 1<<63 {
		t = fs.Time{}
	}
	v.num(min(t.Sec, math.MaxUint32), uint64(t.Nsec))
}

func (v *expect) attr(a *fs.Attr) {
	v.num(uint64(a.Type), uint64(a.Mode), uint64(a.Nlink), uint64(a.UID), uint64(a.GID), a.Size, a.Used, uint64(a.Major),
		uint64(a.Minor), v.s.fsid, a.Ino)
	v.stamp(a.Atime)
	v.stamp(a.Mtime)
	v.stamp(a.Ctime)
}

func (v *expect) postOp(a *fs.Attr) {
	if v.mark(a != nil) {
		v.attr(a)
	}
}

func (v *expect) wcc(w fs.WCC) {
	if v.mark(w.Before != nil) {
		v.num(w.Before.Size)
		v.stamp(w.Before.Mtime)
		v.stamp(w.Before.Ctime)
	}
	v.postOp(w.After)
}

func (v *expect) handle(h fs.Handle) {
	b := make([]byte, HandleSize)
	v.s.ring().list[0].handles.put(b, h, new([64]byte))
	v.bytes(b)
}

// encoded makes up a result of a procedure, encodes it by the table's encoder, and
// returns what the RFC's description must find in it.
func encoded(s *Service, proc int, r made, oc *oncrpc.Call, err error) []any {
	c := call{Call: oc, export: s.ring().list[0]}
	v := &expect{s: s}
	ok := err == nil
	switch proc {
	case ProcGetattr:
		a := r.attr()
		s.putGetattr(c, a, err)
		if ok {
			v.attr(&a)
		}
	case ProcSetattr, ProcRemove, ProcRmdir:
		w := r.wcc()
		s.putWCCOnly(c, w, err)
		v.wcc(w)
	case ProcLookup:
		n := r.node()
		s.putLookup(c, n, err)
		if ok {
			v.handle(n.Handle)
			v.postOp(&n.Attr)
		}
		v.postOp(n.Parent.OrNil())
	case ProcAccess:
		x := accessResult{r.u32(), r.orZero()}
		s.putAccess(c, x, err)
		v.postOp(x.attr.OrNil())
		if ok {
			v.num(uint64(x.granted))
		}
	case ProcReadlink:
		x := readlinkResult{r.bytes(4095), r.maybe()}
		s.putReadlink(c, x, err)
		v.postOp(x.attr)
		if ok {
			v.bytes(x.target)
		}
	case ProcRead:
		x := readResult{oncrpc.Bytes(r.bytes(4095)), r.IntN(2) == 0, r.maybe()}
		s.putRead(c, x, err)
		v.postOp(x.attr)
		if ok {
			v.num(uint64(x.data.Len()))
			v.mark(x.eof)
			v.bytes(x.data.(oncrpc.Bytes))
		}
	case ProcWrite:
		x := writeResult{r.wcc(), r.u32(), fs.Stability(r.IntN(3)), r.u64()}
		s.putWrite(c, x, err)
		v.wcc(x.wcc)
		if ok {
			v.num(uint64(x.n), uint64(x.committed), x.verf)
		}
	case ProcCreate, ProcMkdir, ProcSymlink, ProcMknod:
		n := r.node()
		s.putCreated(c, n, err)
		if ok {
			v.num(1)
			v.handle(n.Handle)
			v.postOp(&n.Attr)
		}
		v.wcc(n.Dir)
	case ProcRename:
		x := renameResult{r.wcc(), r.wcc()}
		s.putRename(c, x, err)
		v.wcc(x.from)
		v.wcc(x.to)
	case ProcLink:
		x := linkResult{r.maybe(), r.wcc()}
		s.putLink(c, x, err)
		v.postOp(x.attr)
		v.wcc(x.wcc)
	case ProcReaddir, ProcReaddirplus:
		plus := proc == ProcReaddirplus
		l := r.listing(plus)
		if plus {
			s.putReaddirplus(c, l, err)
		} else {
			s.putReaddir(c, l, err)
		}
		v.postOp(l.Dir)
		if !ok {
			break
		}
		v.num(l.Verf)
		for _, e := range l.Entries {
			v.num(1, e.Ino)
			v.bytes(e.Name)
			v.num(e.Cookie)
			if plus {
				v.postOp(e.Attr)
				if v.mark(e.Attr != nil) {
					v.handle(e.Handle)
				}
			}
		}
		v.num(0)
		v.mark(l.EOF)
	case ProcFsstat:
		st := fs.Stat{TotalBytes: r.u64(), FreeBytes: r.u64(), TotalFiles: r.u64(), FreeFiles: r.u64()}
		x := fsstatResult{st, r.maybe()}
		s.putFsstat(c, x, err)
		v.postOp(x.attr)
		if ok {
			v.num(st.TotalBytes, st.FreeBytes, st.FreeBytes, st.TotalFiles, st.FreeFiles, st.FreeFiles, 0)
		}
	case ProcFsinfo:
		x := fsinfoResult{fs.Info{
			RtMax: r.u32(), RtPref: r.u32(), RtMult: r.u32(), WtMax: r.u32(), WtPref: r.u32(), WtMult: r.u32(), DtPref: r.u32(),
			MaxFileSize: r.u64(), TimeDelta: fs.Time{Sec: uint64(r.u32()), Nsec: r.u32()}, Properties: r.u32(),
		}, r.maybe()}
		s.putFsinfo(c, x, err)
		v.postOp(x.attr)
		if i := x.info; ok {
			for _, n := range []uint32{i.RtMax, i.RtPref, i.RtMult, i.WtMax, i.WtPref, i.WtMult, i.DtPref} {
				v.num(uint64(n))
			}
			v.num(i.MaxFileSize, i.TimeDelta.Sec, uint64(i.TimeDelta.Nsec), uint64(i.Properties))
		}
	case ProcPathconf:
		x := pathconfResult{fs.Pathconf{LinkMax: r.u32(), NameMax: r.u32(), NoTrunc: r.coin(), ChownRestricted: r.coin(),
			CaseInsensitive: r.coin(), CasePreserving: r.coin()}, r.maybe()}
		s.putPathconf(c, x, err)
		v.postOp(x.attr)
		if p := x.conf; ok {
			v.num(uint64(p.LinkMax), uint64(p.NameMax))
			for _, b := range []bool{p.NoTrunc, p.ChownRestricted, p.CaseInsensitive, p.CasePreserving} {
				v.mark(b)
			}
		}
	case ProcCommit:
		x := commitResult{r.wcc(), r.u64()}
		s.putCommit(c, x, err)
		v.wcc(x.wcc)
		if ok {
			v.num(x.verf)
		}
	}
	return v.values
}

// sameEncoding encodes a made-up result and compares it with the description: it
// decodes to the same values, and nothing is left.
func sameEncoding(t *testing.T, s *Service, proc int, r made) {
	t.Helper()
	var err error
	status := uint64(0)
	if r.IntN(3) == 0 {
		err, status = fs.ErrAcces, 13
	}
	c := &oncrpc.Call{Peer: &net.TCPAddr{}}
	c.Reply.Uint32(s.status(c, "test", err))
	want := append([]any{status}, encoded(s, proc, r, c, err)...)
	got, rest, ok := rfc1813.Results[proc].Decode(c.Reply.Whole())
	if !ok || len(rest) > 0 || !reflect.DeepEqual(got, want) {
		t.Fatalf("procedure %d: decoded %v, %d bytes left, got\n%v, want\n%v", proc, ok, len(rest), got, want)
	}
}

// TestEncode: every result of every procedure, encoded by the table, is what the
// RFC's description decodes.
func TestEncode(t *testing.T) {
	seed := replay.Seed(t)
	s, _ := testService()
	r := made{rand.New(rand.NewPCG(seed, 0))}
	for proc := 1; proc < int(procCount); proc++ {
		for range 500 {
			sameEncoding(t, s, proc, r)
		}
	}
}

// FuzzEncode does the same for results made up from a fuzzer's numbers.
func FuzzEncode(f *testing.F) {
	for proc := range byte(procCount) {
		f.Add(proc, uint64(1), uint64(2))
	}
	s, _ := testService()
	f.Fuzz(func(t *testing.T, proc byte, a, b uint64) {
		sameEncoding(t, s, 1+int(proc)%(int(procCount)-1), made{rand.New(rand.NewPCG(a, b))})
	})
}

// TestStatus: an Errno goes to the client as it is, wrapped or not; anything else is
// NFS3ERR_IO.
func TestStatus(t *testing.T) {
	s, _ := testService()
	s.log = slog.New(slog.DiscardHandler)
	c := &oncrpc.Call{Peer: &net.TCPAddr{}}
	for _, x := range []struct {
		err  error
		want uint32
	}{{nil, 0}, {fs.ErrStale, 70}, {fmt.Errorf("wrapped: %w", fs.ErrNoSpc), 28}, {errors.New("disk on fire"), 5}} {
		if got := s.status(c, "X", x.err); got != x.want {
			t.Errorf("%v: %d", x.err, got)
		}
	}
}

// TestTable: there is a row for every procedure, with the name the RFC gives it.
func TestTable(t *testing.T) {
	names := []string{
		"NULL", "GETATTR", "SETATTR", "LOOKUP", "ACCESS", "READLINK", "READ", "WRITE", "CREATE", "MKDIR", "SYMLINK", "MKNOD",
		"REMOVE", "RMDIR", "RENAME", "LINK", "READDIR", "READDIRPLUS", "FSSTAT", "FSINFO", "PATHCONF", "COMMIT",
	}
	s, _ := testService()
	procs := s.Program().Procs
	if len(procs) != len(names) {
		t.Fatalf("%d rows", len(procs))
	}
	for i, p := range procs {
		if p.Name != names[i] || p.Serve == nil {
			t.Errorf("row %d is %q", i, p.Name)
		}
	}
}
