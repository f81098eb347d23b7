package layout

import (
	"bytes"
	"testing"

	"tansy/internal/gen/fs/format/inodeformat"
	"tansy/internal/runtime/dbytes"
)

// The proved code writes each field where this package reads it, and nothing else.
func TestInode(t *testing.T) {
	const x = 0x0807060504030201
	for _, f := range []struct {
		name         string
		offset, size int
		set          func(b *dbytes.Bytes)
	}{
		{"type", Type, 4, func(b *dbytes.Bytes) { inodeformat.SetTy(b, x&(1<<32-1)) }},
		{"mode", Mode, 4, func(b *dbytes.Bytes) { inodeformat.SetMode(b, x&(1<<32-1)) }},
		{"links", Links, 4, func(b *dbytes.Bytes) { inodeformat.SetNlink(b, x&(1<<32-1)) }},
		{"user", UID, 4, func(b *dbytes.Bytes) { inodeformat.SetUid(b, x&(1<<32-1)) }},
		{"group", GID, 4, func(b *dbytes.Bytes) { inodeformat.SetGid(b, x&(1<<32-1)) }},
		{"major", Major, 4, func(b *dbytes.Bytes) { inodeformat.SetRdev(b, x&(1<<32-1), 0) }},
		{"minor", Minor, 4, func(b *dbytes.Bytes) { inodeformat.SetRdev(b, 0, x&(1<<32-1)) }},
		{"flags", Flags, 4, func(b *dbytes.Bytes) { inodeformat.SetFlags(b, x&(1<<32-1)) }},
		{"size", Size, 8, func(b *dbytes.Bytes) { inodeformat.SetFileSize(b, x) }},
		{"used", Used, 8, func(b *dbytes.Bytes) { inodeformat.SetUsed(b, x) }},
		{"generation", Generation, 8, func(b *dbytes.Bytes) { inodeformat.SetGen(b, x) }},
		{"nanoseconds of the last access", Nanoseconds, 4, func(b *dbytes.Bytes) { inodeformat.SetAtime(b, 0, x&(1<<32-1)) }},
		{"nanoseconds of the last change", Nanoseconds + 8, 4,
			func(b *dbytes.Bytes) { inodeformat.SetCtime(b, 0, x&(1<<32-1)) }},
		{"verifier", Verifier, 8, func(b *dbytes.Bytes) { inodeformat.SetVerf(b, x) }},
		{"parent", Parent, 8, func(b *dbytes.Bytes) { inodeformat.SetParent(b, x) }},
		{"next", Next, 8, func(b *dbytes.Bytes) { inodeformat.SetNext(b, x) }},
		{"shrink", Shrink, 8, func(b *dbytes.Bytes) { inodeformat.SetShrink(b, x) }},
		{"entries", Entries, 8, func(b *dbytes.Bytes) { inodeformat.SetNent(b, x) }},
		{"first pointer", Pointers, 8, func(b *dbytes.Bytes) { inodeformat.SetSlot(b, 0, x) }},
		{"last pointer", Pointers + 8*(PointerCount-1), 8,
			func(b *dbytes.Bytes) { inodeformat.SetSlot(b, PointerCount-1, x) }},
	} {
		got := dbytes.NewBytes(InodeSize)
		f.set(got)
		want := make([]byte, InodeSize)
		for i := range f.size {
			want[f.offset+i] = byte(i + 1)
		}
		if !bytes.Equal(got.Data, want) {
			t.Errorf("%s: the proved code wrote %x, want %x", f.name, got.Data, want)
		}
		if f.size == 4 && Uint32(got.Data, f.offset) != x&(1<<32-1) || f.size == 8 && Uint64(got.Data, f.offset) != x {
			t.Errorf("%s is not read as it was written", f.name)
		}
	}
}

// A slot is read as docs/design/format.md has it, whatever it says of its length.
func TestEntry(t *testing.T) {
	slot := make([]byte, ShortSlot)
	copy(slot, []byte{1, 2, 0, 0, 0, 0, 3, 0xaa, 'a', 'b', 'c'})
	ino, length, hash := Entry(slot)
	if ino != 0x201 || length != 3 || hash != 0xaa || string(Name(slot, length, ShortName)) != "abc" {
		t.Errorf("inode %#x, length %d, hash %#x", ino, length, hash)
	}
	slot[6] = 255
	if _, length, _ := Entry(slot); len(Name(slot, length, ShortName)) != ShortName {
		t.Error("a length beyond the slot")
	}
	for k, want := range []int{ShortSlot, LongSlot, ShortSlot} {
		if size, longest := Slot(uint64(k)); size != want || longest > size-8 {
			t.Errorf("block %d has slots of %d bytes for names of %d", k, size, longest)
		}
	}
}
