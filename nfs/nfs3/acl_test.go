package nfs3

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"testing"

	"tansy/fs"
	"tansy/fs/model"
	"tansy/nfs/oncrpc"
	"tansy/test/kit/replay"
	"tansy/test/kit/rfc1813"
)

// listed is a model whose files all have the same lists.
type listed struct {
	*model.Model
	lists fs.Lists
}

func (m *listed) GetLists(h fs.Handle, access, dflt bool) (fs.Lists, fs.Attr, error) {
	a, err := m.Getattr(h)
	return m.lists, a, err
}

func (m *listed) SetLists(_ *fs.Cred, h fs.Handle, l fs.Lists, access, dflt bool) error {
	_, err := m.Getattr(h)
	if err == nil && access {
		m.lists.Access = l.Access
	}
	if err == nil && dflt {
		m.lists.Default = l.Default
	}
	return err
}

// someList is a list of random rights of random users and groups, in the order of their numbers.
func someList(r *rand.Rand) *fs.AccessList {
	l := &fs.AccessList{Owner: r.Uint32N(8), Group: r.Uint32N(8), Other: r.Uint32N(8)}
	for _, group := range []bool{false, true} {
		for id, n := r.Uint32N(1000), r.IntN(4); n > 0; n-- {
			l.Named = append(l.Named, fs.AccessEntry{Group: group, ID: id, Rights: r.Uint32N(8)})
			id += 1 + r.Uint32N(1<<20)
		}
	}
	if len(l.Named) > 0 || r.IntN(3) == 0 {
		l.Masked, l.Mask = true, r.Uint32N(8)
	}
	return l
}

// What is written of a list is read as that list, whatever the order of its entries. A mask that says what the group
// has already, where nobody is named, is none.
func TestACLWire(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	a := &fs.Attr{UID: 17, GID: 18}
	for range 2000 {
		l := someList(r)
		e := oncrpc.NewEncoder(nil)
		putACL(&e, l, a, ACLAccess, []uint32{0, ofDefault}[r.IntN(2)])
		d := oncrpc.NewDecoder(e.Whole())
		w := getACL(&d)
		if !d.Ok() || len(d.Rest()) > 0 || int(w.count) != len(w.entries) || w.count < 4 {
			t.Fatalf("%+v: % x", *l, e.Whole())
		}
		r.Shuffle(len(w.entries), func(i, j int) { w.entries[i], w.entries[j] = w.entries[j], w.entries[i] })
		for i := range w.entries {
			if x := &w.entries[i]; x.For == fs.ForMask {
				x.Rights |= r.Uint32() &^ 7
			}
		}
		want := *l
		if len(l.Named) == 0 && l.Mask == l.Group {
			want.Mask, want.Masked = 0, false
		}
		if got, err := w.list(); err != nil || !got.Equal(&want) {
			t.Fatalf("%+v, %v, want %+v", got, err, want)
		}
	}
}

// The bytes of a list, which others write and read, too.
func TestACLBytes(t *testing.T) {
	words := func(w ...uint32) (b []byte) {
		for _, x := range w {
			b = binary.BigEndian.AppendUint32(b, x)
		}
		return b
	}
	l := &fs.AccessList{Owner: 7, Group: 5, Mask: 6, Other: 1, Masked: true, Named: []fs.AccessEntry{
		{ID: 100, Rights: 4}, {Group: true, ID: 200, Rights: 2}}}
	small := &fs.AccessList{Owner: 6, Group: 4}
	for what, x := range map[string]struct {
		l          *fs.AccessList
		wanted, of uint32
		want       []byte
	}{
		"all": {l, ACLAccess, 0, words(6, 6, 1, 17, 7, 2, 100, 4, 4, 18, 5, 8, 200, 2, 16, 0, 6, 32, 0, 1)},
		"of a directory": {small, ACLAccess | ACLAccessCount, ofDefault,
			words(4, 4, 0x1001, 17, 6, 0x1004, 18, 4, 0x1010, 0, 4, 0x1020, 0, 0)},
		"how many":       {l, ACLAccessCount, 0, words(6, 0)},
		"nothing wanted": {l, 0, 0, words(0, 0)},
		"none":           {nil, ACLAccess, 0, words(0, 0)},
	} {
		e := oncrpc.NewEncoder(nil)
		putACL(&e, x.l, &fs.Attr{UID: 17, GID: 18}, x.wanted, x.of)
		if !bytes.Equal(e.Whole(), x.want) {
			t.Errorf("%s: % x, want % x", what, e.Whole(), x.want)
		}
	}
}

// FuzzACL gives the procedures of NFSACL arbitrary arguments: those that are not of their form are refused, and the
// result is always of its form. In the input, "@n!" stands for a handle, as for FuzzArguments.
func FuzzACL(f *testing.F) {
	file := []byte{0, 0, 0, 32, '@', 2, '!'}
	add := func(proc byte, w ...uint32) {
		b := bytes.Clone(file)
		for _, x := range w {
			b = binary.BigEndian.AppendUint32(b, x)
		}
		f.Add(proc, b)
	}
	add(ProcGetACL, 0xf)
	add(ProcGetACL, 0x10)
	add(ProcSetACL, 0x1, 4, 4, 1, 0, 6, 4, 0, 4, 16, 0, 4, 32, 0, 4, 0, 0)
	add(ProcSetACL, 0x5, 5, 5, 1, 0, 6, 2, 9, 7, 4, 0, 4, 16, 0, 4, 32, 0, 4, 3, 3, 1, 0, 6, 4, 0, 4, 32, 0, 4)
	add(ProcSetACL, 0x1, 1025, 0, 0, 0)
	add(ProcSetACL, 0x1, 1, 0xffffffff, 0, 0)
	add(ProcSetACL, 0x1, 1, 1, 0x1001, 0xffffffff, 0xffffffff, 0, 0)
	f.Fuzz(func(t *testing.T, proc byte, args []byte) {
		s, m := testService()
		l := &listed{Model: m}
		s.fs = l
		p, ok := s.ACLProgram()
		if !ok {
			t.Fatal("no lists")
		}
		number := int(proc) % len(p.Procs)
		args = withHandles(s, m, args)
		c := oncrpc.Call{
			Args: oncrpc.NewDecoder(args), Reply: oncrpc.NewEncoder(nil), Peer: &net.TCPAddr{},
			Cred: &oncrpc.Cred{Flavor: oncrpc.AuthSys},
		}
		accept, want := p.Procs[number].Serve(&c), oncrpc.Success
		if _, _, ok := rfc1813.ACLArgs[number].Decode(args); !ok {
			want = oncrpc.GarbageArgs
		}
		if accept != want {
			t.Errorf("%s: %v, want %v", p.Procs[number].Name, accept, want)
		}
		_, rest, ok := rfc1813.ACLResults[number].Decode(c.Reply.Whole())
		if want == oncrpc.Success && (!ok || len(rest) > 0) {
			t.Errorf("%s: the result is not of its form: % x", p.Procs[number].Name, c.Reply.Whole())
		}
		for _, x := range []*fs.AccessList{l.lists.Access, l.lists.Default} {
			if x != nil && !x.Valid() {
				t.Errorf("%+v was set", *x)
			}
		}
	})
}

// What a call claims to have takes no memory before it is there.
func TestACLClaims(t *testing.T) {
	claim := make([]byte, 8+aclEntry)
	binary.BigEndian.PutUint32(claim, maxACL)
	binary.BigEndian.PutUint32(claim[4:], maxACL)
	d := new(oncrpc.Decoder)
	if n := testing.AllocsPerRun(10, func() { *d = oncrpc.NewDecoder(claim); getACL(d) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
