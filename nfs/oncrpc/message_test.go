package oncrpc

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	x "tansy/test/kit/xdrspec"
)

func TestDecoderIsTotal(t *testing.T) {
	d := NewDecoder([]byte{0, 0, 0, 7, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 0, 0, 0, 0, 2})
	if s := d.Opaque(7); string(s) != "abcdefg" || !d.Ok() {
		t.Errorf("opaque: %q", s)
	}
	if d.Bool(); d.Ok() {
		t.Error("2 is not a bool")
	}
	if d.Uint32() != 0 || d.Uint64() != 0 || d.Opaque(9) != nil || d.Fixed(3) != nil || d.Ok() {
		t.Error("a failed decoder must stay failed")
	}
	for _, b := range [][]byte{
		{0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4}, // a length of 2^32-1
		{0, 0, 0, 5, 1, 2, 3, 4, 5},          // no padding
		{0, 0, 0, 9, 1, 2, 3, 4},             // too short
	} {
		d := NewDecoder(b)
		if d.Opaque(math.MaxInt32); d.Ok() {
			t.Errorf("decoded % x", b)
		}
	}
	d = NewDecoder([]byte{0, 0, 0, 4, 1, 2, 3, 4})
	if d.Opaque(3); d.Ok() {
		t.Error("limit not kept")
	}
}

func TestEncoder(t *testing.T) {
	e := NewEncoder(nil)
	e.Uint64(0x0102030405060708)
	e.Opaque([]byte("abcde"))
	e.Bool(true)
	e.Data(Bytes("xyz"))
	want := []byte{1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 5, 'a', 'b', 'c', 'd', 'e', 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3}
	if !bytes.Equal(e.Bytes(), want) || string(e.data.(Bytes)) != "xyz" {
		t.Errorf("% x %q", e.Bytes(), e.data)
	}
	if whole := e.Whole(); !bytes.Equal(whole, append(want, 'x', 'y', 'z', 0)) {
		t.Errorf("% x", whole)
	}
}

func authSys(machine string, uid, gid uint32, gids ...uint32) []byte {
	e := NewEncoder(nil)
	e.Uint32(99)
	e.Opaque([]byte(machine))
	e.Uint32(uid)
	e.Uint32(gid)
	e.Uint32(uint32(len(gids)))
	for _, g := range gids {
		e.Uint32(g)
	}
	return e.Bytes()
}

func TestCred(t *testing.T) {
	good := authSys("host", 1, 2, 3, 4)
	var c Cred
	if stat := parseCred(uint32(AuthSys), good, &c); stat != AuthOK || c.Machine != "host" || c.UID != 1 || c.GID != 2 || len(c.GIDs) != 2 || c.GIDs[1] != 4 {
		t.Errorf("%d %+v", stat, c)
	}
	for name, body := range map[string][]byte{
		"empty":             nil,
		"short":             good[:len(good)-1],
		"long":              append(good[:len(good):len(good)], 0, 0, 0, 0),
		"machine too long":  authSys(string(make([]byte, 256)), 1, 2),
		"17 groups":         authSys("host", 1, 2, make([]uint32, 17)...),
		"groups not there":  append(authSys("host", 1, 2)[:20], 0xff, 0xff, 0xff, 0xff),
		"machine 2^32-1":    {0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4},
		"groups 0x40000001": append(authSys("host", 1, 2)[:20], 0x40, 0, 0, 1, 0, 0, 0, 5),
	} {
		if stat := parseCred(uint32(AuthSys), body, &c); stat != AuthBadCred {
			t.Errorf("%s: %d", name, stat)
		}
	}
	if stat := parseCred(6, nil, &c); stat != AuthRejectedCred {
		t.Errorf("unknown flavor: %d", stat)
	}
}

func TestCredCache(t *testing.T) {
	var k credCache
	a, _ := k.get(1, authSys("h", 1, 2))
	b, _ := k.get(1, authSys("h", 1, 2))
	c, _ := k.get(1, authSys("h", 3, 2))
	if a != b || c.UID != 3 || a.UID != 1 {
		t.Errorf("%v %v %v", a, b, c)
	}
	if _, stat := k.get(1, nil); stat != AuthBadCred {
		t.Error("bad credentials taken for the last ones")
	}
	if d, _ := k.get(1, authSys("h", 3, 2)); d != c {
		t.Error("lost the credentials")
	}
}

// A call and AUTH_SYS credentials as RFC 5531 has them (section 9 and appendix A),
// up to the arguments.
var (
	rfcAuth = x.Struct(x.Uint32, x.Opaque(maxAuthBody))
	rfcCall = x.Struct(x.Uint32, x.Uint32, x.Uint32, x.Uint32, x.Uint32, x.Uint32, rfcAuth, rfcAuth)
	rfcSys  = x.Struct(x.Uint32, x.Opaque(maxMachine), x.Uint32, x.Uint32, x.Uint32) // and the groups
)

// sameHeader compares parseHeader with the description.
func sameHeader(t *testing.T, rec []byte) {
	t.Helper()
	d := NewDecoder(rec)
	h, fault := parseHeader(&d)
	v, rest, ok := rfcCall.Decode(rec)
	ok = ok && v[1] == uint64(msgCall) && v[2] == uint64(rpcVersion)
	if ok != (fault == headerOK) {
		t.Fatalf("fault %d, but described %v: % x", fault, ok, rec)
	}
	if !ok {
		return
	}
	got := []any{uint64(h.xid), uint64(h.prog), uint64(h.vers), uint64(h.proc), uint64(h.flavor), string(h.cred)}
	want := append([]any{v[0]}, v[3:8]...)
	if !reflect.DeepEqual(got, want) || !bytes.Equal(d.Rest(), rest) {
		t.Fatalf("got %v, want %v, of % x", got, want, rec)
	}
	sameCred(t, h.flavor, h.cred)
}

// sameCred compares parseCred with the description.
func sameCred(t *testing.T, flavor uint32, body []byte) {
	t.Helper()
	var c Cred
	stat := parseCred(flavor, body, &c)
	switch Flavor(flavor) {
	case AuthNone:
		if stat != AuthOK {
			t.Fatalf("AUTH_NONE: %d", stat)
		}
		return
	case AuthSys:
	default:
		if stat != AuthRejectedCred {
			t.Fatalf("flavor %d: %d", flavor, stat)
		}
		return
	}
	v, rest, ok := rfcSys.Decode(body)
	ok = ok && v[4].(uint64) <= maxGroups && uint64(len(rest)) == 4*v[4].(uint64)
	if ok != (stat == AuthOK) {
		t.Fatalf("AUTH_SYS: %d, but described %v: % x", stat, ok, body)
	}
	if !ok {
		return
	}
	var groups []uint32
	for ; len(rest) > 0; rest = rest[4:] {
		groups = append(groups, binary.BigEndian.Uint32(rest))
	}
	if want := (IDs{uint32(v[2].(uint64)), uint32(v[3].(uint64)), groups}); !reflect.DeepEqual(c.IDs, want) {
		t.Fatalf("AUTH_SYS: %v, want %v", c.IDs, want)
	}
	if c.Machine != v[1].(string) {
		t.Fatalf("AUTH_SYS: machine %q, want %q", c.Machine, v[1])
	}
}

// TestCallDecodes: calls that the description encodes are decoded to the same;
// cut off or changed, they are what the description says.
func TestCallDecodes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 3000 {
		v := rfcCall.Random(r)
		v[1], v[2] = uint64(msgCall), uint64(rpcVersion)
		v[6] = uint64(r.IntN(3))
		if r.IntN(2) == 0 {
			sys := rfcSys.Random(r)
			n := r.IntN(18)
			sys[4] = uint64(n)
			v[6], v[7] = uint64(AuthSys), string(append(rfcSys.Encode(sys), make([]byte, 4*n)...))
		}
		rec := rfcCall.Encode(v)
		sameHeader(t, rec)
		sameHeader(t, rec[:r.IntN(len(rec))])
		rec[r.IntN(len(rec))] ^= byte(1 << r.IntN(8))
		sameHeader(t, rec)
	}
}

// TestHeaderFaults: what is wrong with a header decides how it is answered.
func TestHeaderFaults(t *testing.T) {
	long, short := string(make([]byte, maxAuthBody+1)), ""
	head := func(kind, version int, cred, verf string) []byte {
		free := x.Struct(x.Uint32, x.Opaque(1<<20))
		all := x.Struct(x.Uint32, x.Uint32, x.Uint32, x.Uint32, x.Uint32, x.Uint32, free, free)
		return all.Encode([]any{uint64(1), uint64(kind), uint64(version), uint64(7), uint64(2), uint64(0), uint64(0), cred,
			uint64(0), verf})
	}
	good := head(msgCall, rpcVersion, short, short)
	for name, c := range map[string]struct {
		rec  []byte
		want headerFault
	}{
		"good":                 {good, headerOK},
		"a reply":              {head(msgReply, rpcVersion, short, short), headerAlien},
		"another version":      {head(msgCall, rpcVersion+1, short, short), headerMismatch},
		"ends in the header":   {good[:20], headerShort},
		"ends in the verifier": {good[:len(good)-1], headerShort},
		"credentials too long": {head(msgCall, rpcVersion, long, short), headerCred},
		"verifier too long":    {head(msgCall, rpcVersion, short, long), headerVerf},
	} {
		d := NewDecoder(c.rec)
		if _, got := parseHeader(&d); got != c.want {
			t.Errorf("%s: fault %d, want %d", name, got, c.want)
		}
	}
}

// FuzzCall runs whole calls through the part of a connection that decodes them, and
// compares it with the description.
func FuzzCall(f *testing.F) {
	call := func(words ...uint32) []byte {
		e := NewEncoder(nil)
		for _, w := range words {
			e.Uint32(w)
		}
		return e.Bytes()
	}
	f.Add(call(1, 0, 2, 7, 1, 1, 0, 0, 0, 0))
	f.Add(append(call(1, 0, 2, 7, 1, 1, 1, 28), append(authSys("host", 1, 2, 3), 0, 0, 0, 0, 0, 0, 0, 0)...))
	f.Add(call(1, 0, 3, 7, 1, 1))
	f.Add(call(1, 1, 0))
	f.Add(call(1, 0, 2, 7, 1, 1, 0, 401))
	f.Fuzz(func(t *testing.T, rec []byte) {
		sameHeader(t, rec)
		d := NewDecoder(rec)
		if h, fault := parseHeader(&d); fault == headerOK {
			target(testPrograms, &h)
		}
	})
}

var testPrograms = []Program{
	{Number: 7, Version: 2, Procs: []Proc{NullProc, {}}},
	{Number: 7, Version: 4, Procs: []Proc{NullProc}},
}

func TestTarget(t *testing.T) {
	for _, c := range []struct {
		h        header
		want     Accept
		versions [2]uint32
	}{
		{header{prog: 7, vers: 2}, Success, [2]uint32{}},
		{header{prog: 7, vers: 4}, Success, [2]uint32{}},
		{header{prog: 7, vers: 2, proc: 1}, ProcUnavail, [2]uint32{}},
		{header{prog: 7, vers: 2, proc: math.MaxUint32}, ProcUnavail, [2]uint32{}},
		{header{prog: 7, vers: 3}, ProgMismatch, [2]uint32{2, 4}},
		{header{prog: 8, vers: 2}, ProgUnavail, [2]uint32{}},
	} {
		_, got, versions := target(testPrograms, &c.h)
		if got != c.want || versions != c.versions {
			t.Errorf("%+v: %v %v", c.h, got, versions)
		}
	}
}
