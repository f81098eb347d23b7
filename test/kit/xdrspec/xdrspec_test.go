package xdrspec

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"
)

var all = Struct(Uint32, Uint64, Bool, Opaque(9), Optional(Uint64), List(Struct(Opaque(100), Uint32)),
	Union(map[uint32]Type{0: Void, 2: Uint32}, nil), Union(map[uint32]Type{0: Bool}, &Uint64),
	Array(2, Uint32), Number(7))

// TestExample: an encoding done by hand after RFC 4506.
func TestExample(t *testing.T) {
	v := []any{uint64(5), uint64(1 << 33), uint64(1), "abcde", uint64(1), uint64(7), uint64(1), "x", uint64(3), uint64(0),
		uint64(2), uint64(9), uint64(4), uint64(8),
		uint64(2), uint64(6), uint64(1), uint64(7)}
	b := []byte{
		0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 5, 'a', 'b', 'c', 'd', 'e', 0, 0, 0,
		0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 1, 'x', 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0,
		0, 0, 0, 2, 0, 0, 0, 9, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 8,
		0, 0, 0, 2, 0, 0, 0, 6, 0, 0, 0, 1, 0, 0, 0, 7,
	}
	if got := all.Encode(v); !bytes.Equal(got, b) {
		t.Errorf("% x", got)
	}
	got, rest, ok := all.Decode(append(b, 1, 2))
	if !ok || !reflect.DeepEqual(got, v) || !bytes.Equal(rest, []byte{1, 2}) {
		t.Errorf("%v % x %v", got, rest, ok)
	}
}

// TestBounds: what is above a limit is no value.
func TestBounds(t *testing.T) {
	b := []byte{0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	for what, x := range map[string]struct {
		is Type
		ok bool
	}{
		"a number": {Number(3), true}, "a number above": {Number(2), false},
		"an array": {Array(3, Uint32), true}, "an array above": {Array(2, Uint32), false},
	} {
		if _, _, ok := x.is.Decode(b); ok != x.ok {
			t.Errorf("%s: %v", what, ok)
		}
	}
}

func TestRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		v := all.Random(r)
		b := all.Encode(v)
		got, rest, ok := all.Decode(b)
		if !ok || len(rest) > 0 || !reflect.DeepEqual(got, v) {
			t.Fatalf("%v: %v % x %v", v, got, rest, ok)
		}
		for n := range b {
			if _, _, ok := all.Decode(b[:n]); ok {
				t.Fatalf("decoded %d of %d bytes of %v", n, len(b), v)
			}
		}
	}
}
