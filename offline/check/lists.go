package check

import (
	"fmt"
	"strconv"
)

// The table of access lists lies in inode 2's file, in block 0 and in the blocks of inodes that no volume of this
// layout has: as extended attributes, whose names are the numbers of lists.

const (
	listGeneration = 1
	listDigits     = 3 // of a number, hexadecimal
	listHead       = 2 // bytes before the entries
	listEntry      = 5
	listMask       = 1 << 12 // of the first two bytes: there is a mask
	listGroup      = 8       // of an entry's first byte: it is a group's

	accessShift = 8 // of the numbers among the flags of chattr
	listMost    = 1<<12 - 1
	dfltShift   = 20
)

// IsListBlock tells whether a block of inode 2's file is one of the table of access lists, if the layout has so many
// inodes.
func IsListBlock(k, ninode uint64) bool { return k == 0 || k >= ninode }

// Lists are the numbers of the access lists in a block of their table, or what is wrong with it.
func Lists(b []byte) (numbers []uint32, wrong string) {
	if wrong := XattrsWrong(b); wrong != "" {
		return nil, wrong
	}
	if u64(b, 0) != listGeneration {
		return nil, fmt.Sprintf("they are of generation %d, not %d", u64(b, 0), listGeneration)
	}
	for o := xattrsFirst; o+xattrsHeader <= len(b) && b[o] != 0; {
		n, v := int(u32(b, o)&0xff), int(u32(b, o)>>8)
		name, value := string(b[o+xattrsHeader:][:n]), b[o+xattrsHeader+n:][:v]
		number, err := strconv.ParseUint(name, 16, 12)
		if err != nil || len(name) != listDigits || number == 0 || name != fmt.Sprintf("%03x", number) {
			return nil, fmt.Sprintf("%q is no number of a list", name)
		}
		if wrong := listWrong(value); wrong != "" {
			return nil, fmt.Sprintf("list %d %s", number, wrong)
		}
		numbers = append(numbers, uint32(number))
		o += xattrsHeader + n + v
	}
	return numbers, ""
}

// WithoutLists is a sound block of the table without the lists of some numbers, up to the last list that is left.
func WithoutLists(b []byte, gone func(number uint32) bool) []byte {
	kept := append([]byte(nil), b[:xattrsFirst]...)
	for o := xattrsFirst; o+xattrsHeader <= len(b) && b[o] != 0; {
		end := o + xattrsHeader + int(u32(b, o)&0xff) + int(u32(b, o)>>8)
		number, _ := strconv.ParseUint(string(b[o+xattrsHeader:][:listDigits]), 16, 12)
		if !gone(uint32(number)) {
			kept = append(kept, b[o:end]...)
		}
		o = end
	}
	return kept
}

// listWrong says what is wrong with a list, or "".
func listWrong(l []byte) string {
	if len(l) < listHead || (len(l)-listHead)%listEntry != 0 {
		return fmt.Sprintf("has %d bytes", len(l))
	}
	head := uint32(l[0]) | uint32(l[1])<<8
	switch {
	case head >= 2*listMask:
		return fmt.Sprintf("begins with %#x, which means nothing", head)
	case len(l) > listHead && head&listMask == 0:
		return "names somebody, and has no mask"
	}
	groups := false
	for e := l[listHead:]; len(e) > 0; e = e[listEntry:] {
		group := e[0]&listGroup != 0
		switch {
		case e[0] >= 2*listGroup:
			return fmt.Sprintf("has an entry %#x, which means nothing", e[0])
		case u32(e, 1) == noID:
			return "names nobody"
		case groups && !group:
			return "names a user behind a group"
		}
		groups = group
	}
	return ""
}

// listUse is what is known of access lists.
type listUse struct {
	users map[uint32]uint64 // by number: a file that has it
	there map[uint32]bool   // numbers in the table
	lost  bool              // some of the table is not known
}

// hasLists checks and remembers the numbers of an inode's lists.
func (c *checker) hasLists(ino uint64, n *inode, wrong func(format string, args ...any)) {
	access, dflt := n.marks>>accessShift&listMost, n.marks>>dfltShift
	if access != 0 && n.ty == typeLnk {
		wrong("a symbolic link has an access list")
	}
	if dflt != 0 && n.ty != typeDir {
		wrong("a file of type %d has a default list", n.ty)
	}
	for _, number := range []uint32{access, dflt} {
		if number != 0 && c.lists.users[number] == 0 {
			c.lists.users[number] = ino
		}
	}
}

// listBlock checks a block of the table.
func (c *checker) listBlock(b uint64, contents []byte) {
	numbers, wrong := Lists(contents)
	if wrong != "" {
		c.problem(orphansIno, b, "the table of access lists is damaged: %s", wrong)
		c.lists.lost = true
		return
	}
	for _, n := range numbers {
		if c.lists.there[n] {
			c.problem(orphansIno, b, "access list %d is in the table twice", n)
		}
		c.lists.there[n] = true
	}
}

// listsMissing reports files whose lists are not in the table, one for each number.
func (c *checker) listsMissing() {
	if c.lists.lost {
		return
	}
	for n := range uint32(listMost + 1) {
		if ino := c.lists.users[n]; ino != 0 && !c.lists.there[n] {
			c.problem(ino, 0, "there is no access list %d, which this file, and maybe others, have: "+
				"they are their owners' alone", n)
		}
	}
}
