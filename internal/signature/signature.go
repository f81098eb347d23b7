// Package signature recognizes what a file or block device holds, by the magic numbers of file systems, volume managers
// and partition tables, so that nobody makes a volume over it by mistake. Places and numbers are those of the formats'
// own documents, which blkid(8) goes by as well. It is only for people: what is not known is not found, and what was
// left behind by an earlier use may be.
package signature

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// Find returns what the first size bytes of r hold, for people, such as `ext4 "home"`; nothing if nothing is known.
// What cannot be read is passed over.
func Find(r io.ReaderAt, size int64) (found []string) {
	d := &device{r, size}
	for _, s := range table {
		for _, at := range s.at {
			if string(d.read(at, len(s.magic))) != s.magic {
				continue
			}
			name := s.name
			if s.more != nil {
				name = s.more(d)
			}
			if name != "" {
				found = append(found, name)
			}
			break
		}
	}
	for _, look := range []func(*device) string{raid, zfs, partitions} {
		if name := look(d); name != "" {
			found = append(found, name)
		}
	}
	return found
}

// device is what is looked at.
type device struct {
	r    io.ReaderAt
	size int64
}

// read returns n bytes at a place, counted from the end if it is negative; or zeros if they cannot be read.
func (d *device) read(at int64, n int) []byte {
	b := make([]byte, n)
	if at < 0 {
		at += d.size
	}
	if at < 0 || at > d.size-int64(n) {
		return b
	}
	if _, err := d.r.ReadAt(b, at); err != nil && err != io.EOF {
		return make([]byte, n)
	}
	return b
}

// label is a name of at most n bytes at a place, in quotes behind a space, or "".
func (d *device) label(at int64, n int) string {
	b, _, _ := bytes.Cut(d.read(at, n), []byte{0})
	text := strings.TrimSpace(string(bytes.ToValidUTF8(b, nil)))
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return ""
	}
	return fmt.Sprintf(" %q", text)
}

// signature is a magic number at one of several places.
type signature struct {
	name  string
	magic string
	at    []int64
	more  func(*device) string // if not nil, its result is the name, "" for none
}

var table = []signature{
	{"a Tansy volume", "TansyFS\x00", []int64{0, -4096}, nil},
	{"", "\x53\xef", []int64{1080}, ext},
	{"", "XFSB", []int64{0}, func(d *device) string { return "xfs" + d.label(108, 12) }},
	{"", "_BHRfS_M", []int64{0x10040}, func(d *device) string { return "btrfs" + d.label(0x1012b, 256) }},
	{"", "LABELONE", []int64{0, 512, 1024, 1536}, lvm},
	{"", "LUKS\xba\xbe", []int64{0}, luks},
	{"", "SWAPSPACE2", []int64{4086, 8182, 16374, 32758, 65526}, swap},
	{"swap", "SWAP-SPACE", []int64{4086, 8182, 16374, 32758, 65526}, nil},
	{"swap with a suspended system", "S1SUSPEND", []int64{4086, 8182, 16374, 32758, 65526}, nil},
	{"ntfs", "NTFS    ", []int64{3}, nil},
	{"exfat", "EXFAT   ", []int64{3}, nil},
	{"", "FAT12   ", []int64{54}, func(d *device) string { return "vfat" + d.label(43, 11) }},
	{"", "FAT16   ", []int64{54}, func(d *device) string { return "vfat" + d.label(43, 11) }},
	{"", "FAT32   ", []int64{82}, func(d *device) string { return "vfat" + d.label(71, 11) }},
	{"iso9660", "CD001", []int64{32769}, nil},
	{"squashfs", "hsqs", []int64{0}, nil},
	{"f2fs", "\x10\x20\xf5\xf2", []int64{1024}, nil},
	{"erofs", "\xe2\xe1\xf5\xe0", []int64{1024}, nil},
	{"reiserfs", "ReIsEr", []int64{65588}, nil},
	{"jfs", "JFS1", []int64{32768}, nil},
	{"gfs2", "\x01\x16\x19\x70\x00\x00\x00\x01", []int64{65536}, nil},
	{"hfsplus", "H+\x00\x04", []int64{1024}, nil},
	{"apfs", "NXSB", []int64{32}, nil},
	{"bcache or bcachefs", "\xc6\x85\x73\xf6", []int64{4120}, nil},
	{"Ceph's BlueStore", "bluestore block device", []int64{0}, nil},
	{"an image in the format qcow2", "QFI\xfb", []int64{0}, nil},
}

// ext tells the versions of ext apart, by what they cannot do without.
func ext(d *device) string {
	word := func(at int64) uint32 { return binary.LittleEndian.Uint32(d.read(1024+at, 4)) }
	const (
		journal     = 0x4  // compatible
		journalOnly = 0x8  // incompatible: the journal of another one
		ext3        = 0x16 // incompatible, of ext3: filetype, recover, meta_bg
		ext3Write   = 0x7  // to write, of ext3: sparse_super, large_file, btree_dir
	)
	name := "ext2"
	switch {
	case word(0x60)&journalOnly != 0:
		name = "the journal of an ext4"
	case word(0x60)&^ext3 != 0 || word(0x64)&^ext3Write != 0:
		name = "ext4"
	case word(0x5c)&journal != 0:
		name = "ext3"
	}
	return name + d.label(1024+0x78, 16)
}

// lvm is a physical volume of LVM2, in one of whose first sectors the label is.
func lvm(d *device) string {
	for at := int64(0); at < 2048; at += 512 {
		if b := d.read(at, 32); string(b[:8]) == "LABELONE" && string(b[24:]) == "LVM2 001" {
			return "a part of a volume group of LVM2"
		}
	}
	return ""
}

func luks(d *device) string {
	switch version := binary.BigEndian.Uint16(d.read(6, 2)); version {
	case 1:
		return "LUKS"
	case 2:
		return "LUKS" + d.label(24, 48)
	}
	return ""
}

func swap(d *device) string { return "swap" + d.label(1024+28, 16) }

// raid is a part of an array of Linux's md, whose superblock lies at the beginning, near it, or near the end.
func raid(d *device) string {
	const magic = 0xa92b4efc
	const name = "a part of an array of md (RAID)"
	for _, at := range []int64{0, 4096, (d.size - 8192) &^ 4095} { // versions 1.1, 1.2 and 1.0
		if b := d.read(max(at, 0), 8); binary.LittleEndian.Uint32(b) == magic && binary.LittleEndian.Uint32(b[4:]) == 1 {
			return name
		}
	}
	b := d.read(max(d.size&^65535-65536, 0), 8) // version 0.90, of either byte order
	if binary.LittleEndian.Uint64(b) == magic || binary.BigEndian.Uint64(b) == magic<<32 {
		return name
	}
	return ""
}

// zfs is a member of a pool: one of its labels, two at each end, has an uberblock.
func zfs(d *device) string {
	const label, first, step = 256 << 10, 128 << 10, 1 << 10
	end := d.size &^ (label - 1)
	for _, at := range []int64{0, label, end - 2*label, end - label} {
		ring := d.read(max(at, 0)+first, label-first)
		for ; len(ring) >= step; ring = ring[step:] {
			const magic = 0x00bab10c
			if binary.LittleEndian.Uint64(ring) == magic || binary.BigEndian.Uint64(ring) == magic {
				return "a part of a pool of ZFS"
			}
		}
	}
	return ""
}

// partitions is a table of partitions: GPT, of sectors of 512 or 4096 bytes, at the beginning or the end, or that of
// MBR.
func partitions(d *device) string {
	for _, at := range []int64{512, 4096, -512, -4096} {
		if string(d.read(at, 8)) == "EFI PART" {
			return "a table of partitions (GPT)"
		}
	}
	b := d.read(0, 512)
	if b[510] != 0x55 || b[511] != 0xaa || bootSector(b) {
		return ""
	}
	used := 0
	for e := b[446:510]; len(e) > 0; e = e[16:] {
		if e[0]&0x7f != 0 { // what is started from is marked by one bit
			return ""
		}
		if e[4] != 0 {
			used++
		}
	}
	if used == 0 {
		return "an empty table of partitions (MBR)"
	}
	return fmt.Sprintf("a table of partitions (MBR, %d in use)", used)
}

// bootSector tells whether a first sector is that of a file system of the FAT kind, which has the same mark at its end.
func bootSector(b []byte) bool {
	return string(b[3:7]) == "NTFS" || string(b[3:8]) == "EXFAT" || string(b[54:57]) == "FAT" || string(b[82:85]) == "FAT"
}
