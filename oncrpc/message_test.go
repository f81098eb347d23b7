package oncrpc

import (
	"bytes"
	"math"
	"testing"
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
	e.Data([]byte("xyz"))
	want := []byte{1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 5, 'a', 'b', 'c', 'd', 'e', 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3}
	if !bytes.Equal(e.Bytes(), want) || string(e.data) != "xyz" {
		t.Errorf("% x %q", e.Bytes(), e.data)
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
	if stat := parseCred(uint32(AuthSys), good, &c); stat != AuthOK || c.UID != 1 || c.GID != 2 || len(c.GIDs) != 2 || c.GIDs[1] != 4 {
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

// FuzzCall runs whole calls through the part of a connection that decodes them.
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
		d := NewDecoder(rec)
		h, fault := parseHeader(&d)
		if fault != headerOK {
			return
		}
		var c Cred
		if parseCred(h.flavor, h.cred, &c) == AuthOK && len(c.GIDs) > maxGroups {
			t.Errorf("%d groups", len(c.GIDs))
		}
		target(testPrograms, &h)
	})
}

var testPrograms = []Program{
	{Number: 7, Version: 2, Procs: []Proc{NullProc, {}}},
	{Number: 7, Version: 4, Procs: []Proc{NullProc}},
}

func TestTarget(t *testing.T) {
	for _, x := range []struct {
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
		_, got, versions := target(testPrograms, &x.h)
		if got != x.want || versions != x.versions {
			t.Errorf("%+v: %v %v", x.h, got, versions)
		}
	}
}
