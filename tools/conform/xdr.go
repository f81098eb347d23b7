package conform

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// XDR (RFC 4506), written for this package alone: a client that shared its
// decoder with the server under test would not see a mistake they have in common.

// args builds the arguments of a call and, beside the bytes, a text of them for
// the report. Everything can be built, also what no decoder should accept.
type args struct {
	b    []byte
	text []string
}

func newArgs() *args { return new(args) }

func (a *args) say(format string, v ...any) *args {
	a.text = append(a.text, fmt.Sprintf(format, v...))
	return a
}

func (a *args) word(v uint32) { a.b = binary.BigEndian.AppendUint32(a.b, v) }

// u32 appends an unsigned int, an int or an enum.
func (a *args) u32(name string, v uint32) *args {
	a.word(v)
	return a.say("%s=%d", name, v)
}

// u64 appends an unsigned hyper.
func (a *args) u64(name string, v uint64) *args {
	a.b = binary.BigEndian.AppendUint64(a.b, v)
	return a.say("%s=%d", name, v)
}

// raw appends bytes as they are; text says what they are.
func (a *args) raw(text string, b ...byte) *args {
	a.b = append(a.b, b...)
	return a.say("%s", text)
}

// bytes appends opaque<> or string<>, without a text.
func (a *args) bytes(v string) {
	a.word(uint32(len(v)))
	a.b = append(a.b, v...)
	a.b = append(a.b, make([]byte, -len(v)&3)...)
}

func (a *args) opaque(name, v string) *args {
	a.bytes(v)
	return a.say("%s=%s", name, short(v))
}

func (a *args) fh(name string, h fh) *args {
	a.bytes(string(h))
	return a.say("%s=%s", name, h)
}

// dirop appends diropargs3.
func (a *args) dirop(dir fh, name string) *args { return a.fh("dir", dir).opaque("name", name) }

func (a *args) bool(name string, v bool) *args {
	if v {
		return a.u32(name, 1)
	}
	return a.u32(name, 0)
}

// String is the text of the arguments.
func (a *args) String() string { return strings.Join(a.text, " ") }

// short is a string for the report: quoted, and cut when it is long.
func short(s string) string {
	if len(s) <= 40 {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q... (%d bytes)", s[:16], len(s))
}

// reader decodes a result, strictly: the first thing that is not as RFC 4506
// wants it is kept in err, and what follows is zero.
type reader struct {
	b     []byte
	err   string
	empty bool // there is no result: all of it is zero
}

func (r *reader) bad(format string, v ...any) {
	if r.err == "" {
		r.err = fmt.Sprintf(format, v...)
	}
	r.b = nil
}

func (r *reader) u32() uint32 {
	if r.empty {
		return 0
	}
	if len(r.b) < 4 {
		r.bad("the result ends too early")
		return 0
	}
	v := binary.BigEndian.Uint32(r.b)
	r.b = r.b[4:]
	return v
}

func (r *reader) u64() uint64 {
	high := uint64(r.u32())
	return high<<32 | uint64(r.u32())
}

func (r *reader) bool() bool {
	v := r.u32()
	if v > 1 {
		r.bad("a bool is %d", v)
	}
	return v == 1
}

// fixed decodes opaque[n].
func (r *reader) fixed(n int) string {
	pad := -n & 3
	if len(r.b) < n+pad {
		r.bad("the result ends within an opaque of %d bytes", n)
		return ""
	}
	for _, c := range r.b[n : n+pad] {
		if c != 0 {
			r.bad("the padding of an opaque of %d bytes is not zero", n)
			return ""
		}
	}
	v := string(r.b[:n])
	r.b = r.b[n+pad:]
	return v
}

// opaque decodes opaque<limit>.
func (r *reader) opaque(limit int) string {
	n := r.u32()
	if uint64(n) > uint64(limit) {
		r.bad("an opaque has %d bytes, at most %d are allowed", n, limit)
		return ""
	}
	return r.fixed(int(n))
}

// end checks that nothing is left.
func (r *reader) end() {
	if len(r.b) > 0 {
		r.bad("%d bytes follow the result", len(r.b))
	}
}
