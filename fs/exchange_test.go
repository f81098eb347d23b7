package fs_test

import (
	"bytes"
	"testing"

	"tansy/disk"
	"tansy/fs"
)

// What is written over an old file, much at a time, goes to the device once, not to the log and from there home; little
// at a time twice. On a full volume it goes where it was, and nothing is lost.
func TestOverwrite(t *testing.T) {
	const blocks, size = 6000, 1000 * fs.BlockSize
	for _, c := range []struct {
		name       string
		piece      int // bytes of each WRITE
		full       bool
		least, max float64 // blocks on the device for each that is written over
	}{
		{"MuchAtATime", 50 * fs.BlockSize, false, 1, 1.2},
		{"LittleAtATime", 10 * fs.BlockSize, false, 2, 2.6},
		{"Full", 50 * fs.BlockSize, true, 2, 2.6},
	} {
		t.Run(c.name, func(t *testing.T) {
			mem := disk.NewMem(blocks * disk.BlockSize)
			mkfs(t, mem, fs.MkfsOptions{Zeroed: true, Inodes: 256})
			count := disk.NewStats(mem)
			v := open(t, count, fs.Options{})
			h, err := v.Create(root, v.Root(), []byte("f"), fs.Guarded, &fs.SetAttr{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			write := func(fill byte) {
				for off := 0; off < size; off += c.piece {
					if n, _, _, err := v.Write(root, h.Handle, uint64(off), bytes.Repeat([]byte{fill}, c.piece), fs.Unstable); err != nil || int(n) != c.piece {
						t.Fatalf("at %d: %d bytes, %v", off, n, err)
					}
				}
				if _, err := v.Commit(h.Handle, 0, 0); err != nil {
					t.Fatal(err)
				}
			}
			write(1)
			if c.full {
				g, err := v.Create(root, v.Root(), []byte("g"), fs.Guarded, &fs.SetAttr{}, 0)
				if err != nil {
					t.Fatal(err)
				}
				for off := uint64(0); err == nil; off += fs.BlockSize {
					_, _, _, err = v.Write(root, g.Handle, off, make([]byte, fs.BlockSize), fs.Unstable)
				}
				if err != fs.ErrNoSpc {
					t.Fatal(err)
				}
			}
			// all that waits to be written home is there once the volume is closed
			closeFS(t, v)
			v = open(t, count, fs.Options{})
			before := count.Counts().WrittenBlocks
			for fill := byte(2); fill < 5; fill++ {
				write(fill)
			}
			closeFS(t, v)
			per := float64(count.Counts().WrittenBlocks-before) / (3 * size / fs.BlockSize)
			t.Logf("%.2f blocks for each", per)
			if per < c.least || per > c.max {
				t.Errorf("%.2f blocks went to the device for each that was written over, not %.1f to %.1f", per, c.least, c.max)
			}
			v = open(t, mem, fs.Options{})
			for off := uint64(0); off < size; off += 1 << 20 {
				if got, _, _, err := v.Read(root, h.Handle, off, 1<<20); err != nil || len(bytes.Trim(got, "\x04")) != 0 {
					t.Fatalf("at %d there is something else: %v", off, err)
				}
			}
			closeFS(t, v)
			mustCheck(t, mem)
		})
	}
}
