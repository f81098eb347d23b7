package fs

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"tansy/disk"
	"tansy/journal"
)

// grownBlocks is the size of the volumes here, and grownBy what their devices have more.
const grownBlocks, grownBy = 4096, 300

// filled is a device with a volume on its first blocks, and a pattern behind them.
func filled(t *testing.T) (d *disk.Mem, behind [][]byte) {
	t.Helper()
	d = disk.NewMem((grownBlocks + grownBy) * disk.BlockSize)
	if err := Mkfs(disk.NewPrefix(d, grownBlocks), MkfsOptions{}); err != nil {
		t.Fatal(err)
	}
	behind = make([][]byte, grownBy)
	for i := range behind {
		behind[i] = bytes.Repeat([]byte{byte(i) | 1}, BlockSize)
	}
	if err := d.WriteAt(grownBlocks, behind); err != nil {
		t.Fatal(err)
	}
	return d, behind
}

// A volume on a device that has grown is what it was: as large, with its files, and with one warning. Nothing behind it
// is written, also when it is full.
func TestOpenGrown(t *testing.T) {
	d, behind := filled(t)
	for _, end := range []uint64{grownBlocks, grownBlocks + grownBy, grownBlocks + 1} {
		var log bytes.Buffer
		v, err := Open(disk.NewPrefix(d, end), Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatalf("%d blocks: %v", end, err)
		}
		h := root
		n, err := v.Create(h, v.Root(), []byte("f"), Unchecked, &SetAttr{}, 0)
		data := make([]byte, MaxIO)
		for off := uint64(0); err == nil; off += MaxIO {
			_, _, _, err = v.Write(h, n.Handle, off, data, FileSync)
		}
		want(t, err, ErrNoSpc)
		if err := v.Close(); err != nil {
			t.Errorf("%d blocks: %v", end, err)
		}
		if warned := strings.Count(log.String(), "they are left alone"); warned != min(int(end-grownBlocks), 1) {
			t.Errorf("%d blocks: %d warnings\n%s", end, warned, &log)
		}
	}
	for i, b := range behind {
		got := make([]byte, BlockSize)
		if err := d.ReadAt(grownBlocks+uint64(i), [][]byte{got}); err != nil || !bytes.Equal(got, b) {
			t.Fatalf("block %d, behind the volume, was changed: %v", grownBlocks+i, err)
		}
	}
}

// The copy of another volume's superblock, where the device ends now, is not taken for that of this one, and nothing is
// written: block 0 stays as it is.
func TestOpenForeignCopy(t *testing.T) {
	d, _ := filled(t)
	other := disk.NewMem(d.Size() * disk.BlockSize)
	if err := Mkfs(other, MkfsOptions{}); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, BlockSize)
	move := func(from, to disk.Disk, a uint64, change func()) {
		t.Helper()
		if err := from.ReadAt(a, [][]byte{b}); err != nil {
			t.Fatal(err)
		}
		change()
		if err := to.WriteAt(a, [][]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	move(other, d, d.Size()-1, func() {})
	move(d, d, grownBlocks-1, func() { clear(b) })
	move(d, d, 0, func() { b[25] ^= 1 })
	damaged := bytes.Clone(b)
	if _, err := Open(d, Options{}); !errors.Is(err, journal.ErrDamaged) || !strings.Contains(err.Error(), "tansy repair") {
		t.Errorf("%v; want %v, and advice", err, journal.ErrDamaged)
	}
	move(d, d, 0, func() {})
	if !bytes.Equal(b, damaged) {
		t.Error("block 0 was written")
	}
}
