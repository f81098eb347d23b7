// Package xdrspec describes XDR types (RFC 4506) as data, and encodes, decodes and
// makes up values by such a description. It is slow and shares no code with
// package oncrpc: tests compare the two.
//
// A value is the flat list of what stands in the encoding, in order: uint64 for
// every number, bool, mark and discriminant, string for every opaque.
package xdrspec

import (
	"encoding/binary"
	"math/rand/v2"
)

// Type is a description.
type Type struct {
	kind  kind
	limit uint64
	parts []Type
	arms  map[uint32]Type
	other *Type
}

type kind int

const (
	number kind = iota
	bounded
	hyper
	boolean
	opaque
	seq
	optional
	list
	array
	union
)

// Number is a number of at most most.
func Number(most uint64) Type { return Type{kind: bounded, limit: most} }

// The basic types.
var (
	Uint32 = Type{kind: number}
	Uint64 = Type{kind: hyper}
	Bool   = Type{kind: boolean}
	Void   = Type{kind: seq}
)

// Opaque is opaque<limit> or string<limit>.
func Opaque(limit uint64) Type { return Type{kind: opaque, limit: limit} }

// Struct is one after the other.
func Struct(parts ...Type) Type { return Type{kind: seq, parts: parts} }

// Optional is a bool, and t if it is true: also what XDR writes as a pointer.
func Optional(t Type) Type { return Type{kind: optional, parts: []Type{t}} }

// List is a linked list: each element follows a true, and a false ends it.
func List(t Type) Type { return Type{kind: list, parts: []Type{t}} }

// Array is t<limit>: how many there are, and so many.
func Array(limit uint64, t Type) Type { return Type{kind: array, limit: limit, parts: []Type{t}} }

// Union is a discriminant and its arm; other is the default arm, or nil if other
// discriminants are not allowed.
func Union(arms map[uint32]Type, other *Type) Type {
	return Type{kind: union, arms: arms, other: other}
}

func (t Type) arm(which uint32) (Type, bool) {
	if a, ok := t.arms[which]; ok {
		return a, true
	}
	if t.other != nil {
		return *t.other, true
	}
	return Type{}, false
}

// Decode decodes a value from the start of b. It returns the rest, or false if b
// does not start with a value of the type.
func (t Type) Decode(b []byte) (v []any, rest []byte, ok bool) {
	d := decoder{b: b, ok: true}
	d.get(t)
	return d.v, d.b, d.ok
}

type decoder struct {
	b  []byte
	v  []any
	ok bool
}

func (d *decoder) take(n uint64) []byte {
	if !d.ok || n > uint64(len(d.b)) {
		d.ok = false
		return nil
	}
	x := d.b[:n]
	d.b = d.b[n:]
	return x
}

func (d *decoder) word() uint32 {
	if x := d.take(4); d.ok {
		v := uint32(x[0])<<24 | uint32(x[1])<<16 | uint32(x[2])<<8 | uint32(x[3])
		d.v = append(d.v, uint64(v))
		return v
	}
	return 0
}

func (d *decoder) mark() bool {
	w := d.word()
	d.ok = d.ok && w <= 1
	return d.ok && w == 1
}

func (d *decoder) get(t Type) {
	if !d.ok {
		return
	}
	switch t.kind {
	case number:
		d.word()
	case bounded:
		n := uint64(d.word())
		d.ok = d.ok && n <= t.limit
	case hyper:
		hi, lo := d.word(), d.word()
		if d.ok {
			d.v = append(d.v[:len(d.v)-2], uint64(hi)<<32|uint64(lo))
		}
	case boolean:
		d.mark()
	case opaque:
		n := uint64(d.word())
		if d.ok && n > t.limit {
			d.ok = false
		}
		if !d.ok {
			return
		}
		d.v = d.v[:len(d.v)-1]
		s := d.take(n)
		d.take((4 - n%4) % 4)
		if d.ok {
			d.v = append(d.v, string(s))
		}
	case seq:
		for _, p := range t.parts {
			d.get(p)
		}
	case optional:
		if d.mark() {
			d.get(t.parts[0])
		}
	case list:
		for d.mark() {
			d.get(t.parts[0])
		}
	case array:
		n := uint64(d.word())
		d.ok = d.ok && n <= t.limit
		for ; d.ok && n > 0; n-- {
			d.get(t.parts[0])
		}
	case union:
		a, ok := t.arm(d.word())
		d.ok = d.ok && ok
		d.get(a)
	}
}

// Encode encodes a value of the type. It panics if v is none.
func (t Type) Encode(v []any) []byte {
	e := encoder{v: v}
	e.put(t)
	if len(e.v) > 0 {
		panic("xdrspec: values left over")
	}
	return e.b
}

type encoder struct {
	b []byte
	v []any
}

func (e *encoder) next() any {
	x := e.v[0]
	e.v = e.v[1:]
	return x
}

func (e *encoder) word() uint32 {
	v := uint32(e.next().(uint64))
	e.b = binary.BigEndian.AppendUint32(e.b, v)
	return v
}

func (e *encoder) put(t Type) {
	switch t.kind {
	case number, bounded, boolean:
		e.word()
	case hyper:
		e.b = binary.BigEndian.AppendUint64(e.b, e.next().(uint64))
	case opaque:
		s := e.next().(string)
		e.b = binary.BigEndian.AppendUint32(e.b, uint32(len(s)))
		e.b = append(e.b, s...)
		for len(e.b)%4 != 0 {
			e.b = append(e.b, 0)
		}
	case seq:
		for _, p := range t.parts {
			e.put(p)
		}
	case optional:
		if e.word() == 1 {
			e.put(t.parts[0])
		}
	case list:
		for e.word() == 1 {
			e.put(t.parts[0])
		}
	case array:
		for n := e.word(); n > 0; n-- {
			e.put(t.parts[0])
		}
	case union:
		a, ok := t.arm(e.word())
		if !ok {
			panic("xdrspec: no such arm")
		}
		e.put(a)
	}
}

// Random makes up a value. Lists and opaques are short; numbers are often at the
// ends of their range.
func (t Type) Random(r *rand.Rand) (v []any) {
	switch t.kind {
	case number:
		return []any{uint64([]uint32{0, 1, 2, r.Uint32(), 0x7fffffff, 0xffffffff}[r.IntN(6)])}
	case bounded:
		return []any{r.Uint64N(t.limit + 1)}
	case hyper:
		return []any{[]uint64{0, 1, r.Uint64(), 1 << 32, 1<<63 - 1, 1<<64 - 1}[r.IntN(6)]}
	case boolean:
		return []any{uint64(r.IntN(2))}
	case opaque:
		b := make([]byte, min(t.limit, []uint64{0, 1, 3, 4, 8, 32, 64, 255, 256, 1000}[r.IntN(10)]))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return []any{string(b)}
	case seq:
		for _, p := range t.parts {
			v = append(v, p.Random(r)...)
		}
		return v
	case optional:
		if r.IntN(2) == 0 {
			return []any{uint64(0)}
		}
		return append([]any{uint64(1)}, t.parts[0].Random(r)...)
	case list:
		for r.IntN(4) > 0 {
			v = append(append(v, uint64(1)), t.parts[0].Random(r)...)
		}
		return append(v, uint64(0))
	case array:
		n := min(t.limit, uint64(r.IntN(6)))
		v = []any{n}
		for range n {
			v = append(v, t.parts[0].Random(r)...)
		}
		return v
	}
	for {
		which := uint32(r.IntN(12))
		if a, ok := t.arm(which); ok {
			return append([]any{uint64(which)}, a.Random(r)...)
		}
	}
}
