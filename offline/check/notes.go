package check

import "fmt"

// Notes are attributes of the root directory that the server keeps for itself (docs/design/format.md, of inode 2's
// file). A name that is not known here is a later server's.

// LocksNote is the name of the attribute that has the clients with locks.
const LocksNote = "tansy.locks"

// Sizes of what is in it.
const (
	locksHead  = 5 // the version and the state number
	shortBytes = 4 // of an address
	longBytes  = 16
)

// Attribute is where a block of extended attributes, with which nothing is wrong, has the attribute of a name: its
// entry b[from:to], of which b[value:to] is its value. There is none if to is 0.
func Attribute(b []byte, name string) (from, value, to int) {
	for o := xattrsFirst; o+xattrsHeader <= len(b); {
		n, v := int(u32(b, o)&0xff), int(u32(b, o)>>8)
		if n == 0 {
			break
		}
		value = o + xattrsHeader + n
		if string(b[o+xattrsHeader:value]) == name {
			return o, value, value + v
		}
		o = value + v
	}
	return 0, 0, 0
}

// LocksWrong says what is wrong with the clients with locks in the root directory's block of extended attributes, with
// which else nothing is wrong; "": nothing, or there are none.
func LocksWrong(b []byte) string {
	_, value, to := Attribute(b, LocksNote)
	if to == 0 {
		return ""
	}
	note := b[value:to]
	switch {
	case len(note) < locksHead:
		return "it is too short"
	case note[0] != 1:
		return fmt.Sprintf("it is of version %d, which is not known here", note[0])
	}
	for rest := note[locksHead:]; len(rest) > 0; {
		n, bits := 1+shortBytes, rest[0]
		if bits&1 != 0 {
			n = 1 + longBytes
		}
		switch {
		case bits >= 16:
			return fmt.Sprintf("a client has bits %#x, which mean nothing", bits)
		case bits&4 == 0 || bits&8 != 0:
		case bits&2 != 0:
			n += longBytes
		default:
			n += shortBytes
		}
		if len(rest) < n {
			return "it ends within a client"
		}
		rest = rest[n:]
	}
	return ""
}

// locksNote checks the clients with locks in the root directory's block b of extended attributes.
func (c *checker) locksNote(b uint64, contents []byte) {
	if wrong := LocksWrong(contents); wrong != "" {
		c.problem(rootIno, b, "the server's note of clients with locks cannot be read, so that nobody gets locks: %s", wrong)
	}
}
