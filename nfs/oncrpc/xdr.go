package oncrpc

import (
	"bytes"
	"encoding/binary"
)

// Decoder reads XDR (RFC 4506) from a byte slice. Input that ends too early, or exceeds a bound, makes it fail for
// good: every method returns zero values from then on. So a caller may decode a whole structure, and ask Ok once. A
// length in the input never decides how much is allocated.
type Decoder struct {
	b   []byte
	bad bool
}

// NewDecoder returns a decoder of b. What it returns aliases b.
func NewDecoder(b []byte) Decoder { return Decoder{b: b} }

// Ok tells if all that was asked for so far was there.
func (d *Decoder) Ok() bool { return !d.bad }

// Fail marks the input as bad, for a rule the caller checks.
func (d *Decoder) Fail() { d.bad, d.b = true, nil }

// Rest returns the bytes not yet decoded.
func (d *Decoder) Rest() []byte { return d.b }

// Uint32 decodes an unsigned int, an int or an enum.
func (d *Decoder) Uint32() uint32 {
	if len(d.b) < 4 {
		d.Fail()
		return 0
	}
	v := binary.BigEndian.Uint32(d.b)
	d.b = d.b[4:]
	return v
}

// Uint64 decodes an unsigned hyper.
func (d *Decoder) Uint64() uint64 {
	if len(d.b) < 8 {
		d.Fail()
		return 0
	}
	v := binary.BigEndian.Uint64(d.b)
	d.b = d.b[8:]
	return v
}

// Bool decodes a bool. Anything but 0 and 1 is bad.
func (d *Decoder) Bool() bool {
	v := d.Uint32()
	if v > 1 {
		d.Fail()
	}
	return v == 1
}

// Fixed decodes opaque[n].
func (d *Decoder) Fixed(n int) []byte {
	padded := (n + 3) &^ 3
	if n < 0 || len(d.b) < padded {
		d.Fail()
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[padded:]
	return v
}

// Opaque decodes opaque<limit> or string<limit>.
func (d *Decoder) Opaque(limit int) []byte {
	n := d.Uint32()
	if uint64(n) > uint64(limit) || uint64(n) > uint64(len(d.b)) {
		d.Fail()
		return nil
	}
	return d.Fixed(int(n))
}

// Encoder appends XDR to a byte slice. A reply may end in data that is not
// copied (Data); everything else goes to the slice.
type Encoder struct {
	b    []byte
	data Data // follows b, then padding to a multiple of 4; or nil
}

// Data is bytes that a reply ends in, which are not copied. They lie in pieces, one behind the other.
type Data interface {
	Len() int         // bytes, of all pieces
	Pieces() [][]byte // which do not change, and are not changed
	Done()            // nobody uses them any more; called once
}

// Bytes is Data in one piece, which is the garbage collector's.
type Bytes []byte

func (b Bytes) Len() int         { return len(b) }
func (b Bytes) Pieces() [][]byte { return [][]byte{b} }
func (b Bytes) Done()            {}

// lenOf is the number of bytes of d.
func lenOf(d Data) int {
	if d == nil {
		return 0
	}
	return d.Len()
}

// NewEncoder returns an encoder that appends to b.
func NewEncoder(b []byte) Encoder { return Encoder{b: b} }

// Bytes returns what was encoded, without Data's data.
func (e *Encoder) Bytes() []byte { return e.b }

// Whole returns a copy of all that was encoded, as it goes to the peer.
func (e *Encoder) Whole() []byte {
	b := append([]byte(nil), e.b...)
	if e.data != nil {
		b = append(b, bytes.Join(e.data.Pieces(), nil)...)
	}
	return append(b, padding[:-lenOf(e.data)&3]...)
}

// Len is the number of bytes encoded, without Data's data.
func (e *Encoder) Len() int { return len(e.b) }

// Truncate takes back all but the first n bytes, and ends with Data's data.
func (e *Encoder) Truncate(n int) {
	if e.data != nil {
		e.data.Done()
	}
	e.b, e.data = e.b[:n], nil
}

// Uint32 encodes an unsigned int, an int or an enum.
func (e *Encoder) Uint32(v uint32) { e.b = binary.BigEndian.AppendUint32(e.b, v) }

// Uint64 encodes an unsigned hyper.
func (e *Encoder) Uint64(v uint64) { e.b = binary.BigEndian.AppendUint64(e.b, v) }

// Bool encodes a bool.
func (e *Encoder) Bool(v bool) {
	if v {
		e.Uint32(1)
	} else {
		e.Uint32(0)
	}
}

var padding [4]byte

// Fixed encodes opaque[len(v)].
func (e *Encoder) Fixed(v []byte) {
	e.b = append(e.b, v...)
	e.b = append(e.b, padding[:-len(v)&3]...)
}

// Opaque encodes opaque<> or string<>.
func (e *Encoder) Opaque(v []byte) {
	e.Uint32(uint32(len(v)))
	e.Fixed(v)
}

// Data encodes opaque<> as Opaque does, but keeps d instead of copying it, until the reply is sent or given up. It
// must be the last thing encoded.
func (e *Encoder) Data(d Data) {
	e.Uint32(uint32(d.Len()))
	if d.Len() == 0 {
		d.Done()
		return
	}
	e.data = d
}
