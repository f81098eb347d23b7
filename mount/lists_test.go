//go:build linux || darwin

package mount

import (
	"encoding/binary"
	"testing"

	"tansy/fs"
)

// What is written of a list is read as that list, and what Linux does not take for a list is none.
func TestListBytes(t *testing.T) {
	user := func(id, rights uint32) fs.AccessEntry { return fs.AccessEntry{ID: id, Rights: rights} }
	group := func(id, rights uint32) fs.AccessEntry { return fs.AccessEntry{Group: true, ID: id, Rights: rights} }
	for _, l := range []*fs.AccessList{
		{}, {Owner: 7, Group: 5, Other: 1}, {Owner: 6, Group: 4, Mask: 7, Masked: true},
		{
			Owner: 1, Group: 2, Mask: 3, Other: 4, Masked: true,
			Named: []fs.AccessEntry{user(9, 7), user(5, 0), group(5, 6)},
		},
		{Masked: true, Named: []fs.AccessEntry{group(0, 1), group(1<<32-2, 7)}},
	} {
		b := listBytes(l)
		if got, ok := listOf(b); !ok || !got.Equal(l) {
			t.Errorf("%+v, %v, want %+v", got, ok, *l)
		}
		if _, ok := listOf(b[:len(b)-1]); ok {
			t.Errorf("%+v, cut off", *l)
		}
	}
	if l, ok := listOf(binary.LittleEndian.AppendUint32(nil, listVersion)); l != nil || !ok {
		t.Errorf("no entries: %+v, %v", l, ok)
	}
	of := func(entries ...uint32) []byte {
		b := binary.LittleEndian.AppendUint32(nil, listVersion)
		for ; len(entries) > 0; entries = entries[3:] {
			b = binary.LittleEndian.AppendUint16(b, uint16(entries[0]))
			b = binary.LittleEndian.AppendUint16(b, uint16(entries[1]))
			b = binary.LittleEndian.AppendUint32(b, entries[2])
		}
		return b
	}
	const no = fs.NoID
	for what, b := range map[string][]byte{
		"nothing":         nil,
		"no owner":        of(4, 7, no, 32, 7, no),
		"no group":        of(1, 7, no, 32, 7, no),
		"no others":       of(1, 7, no, 4, 7, no),
		"others twice":    of(1, 7, no, 4, 7, no, 32, 7, no, 32, 7, no),
		"mask before":     of(1, 7, no, 16, 7, no, 4, 7, no, 32, 7, no),
		"a user, no mask": of(1, 7, no, 2, 7, 5, 4, 7, no, 32, 7, no),
		"of nobody":       of(1, 7, no, 2, 7, no, 4, 7, no, 16, 7, no, 32, 7, no),
		"too many rights": of(1, 8, no, 4, 7, no, 32, 7, no),
		"another entry":   of(1, 7, no, 4, 7, no, 32, 7, no, 64, 7, no),
		"another version": append([]byte{3}, of(1, 7, no, 4, 7, no, 32, 7, no)[1:]...),
	} {
		if l, ok := listOf(b); ok {
			t.Errorf("%s: %+v", what, l)
		}
	}
}
