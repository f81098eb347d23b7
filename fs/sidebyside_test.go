package fs_test

import (
	"bytes"
	"fmt"
	"testing"

	"tansy/disk"
	"tansy/fs"
)

// Files that are written over side by side go to the device once, too: what one has given up does not become
// another's before that is durable, as long as there are other free blocks.
func TestOverwriteSideBySide(t *testing.T) {
	const files, size, piece, passes = 8, 400 * fs.BlockSize, 20 * fs.BlockSize, 8
	mem := disk.NewMem(10 * files * size)
	mkfs(t, mem, fs.MkfsOptions{Zeroed: true, Inodes: 256})
	count := disk.NewStats(mem)
	v := open(t, count, fs.Options{})
	var hs [files]fs.Handle
	for i := range hs {
		n, err := v.Create(root, v.Root(), fmt.Append(nil, i), fs.Guarded, &fs.SetAttr{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		hs[i] = n.Handle
	}
	// pieces of all files in turns, two of each the other way round, as parallel calls have it
	write := func(fill byte) {
		for off := 0; off < size; off += 2 * piece {
			for _, h := range hs {
				for _, o := range []int{off + piece, off} {
					if n, _, _, err := v.Write(root, h, uint64(o), bytes.Repeat([]byte{fill}, piece), fs.Unstable); err != nil || n != piece {
						t.Fatalf("at %d: %d bytes, %v", o, n, err)
					}
				}
			}
		}
	}
	write(1)
	if _, err := v.Commit(hs[0], 0, 0); err != nil {
		t.Fatal(err)
	}
	before := count.Counts().WrittenBlocks
	for fill := range byte(passes) {
		write(2 + fill)
	}
	closeFS(t, v)
	per := float64(count.Counts().WrittenBlocks-before) / (passes * files * size / fs.BlockSize)
	t.Logf("%.2f blocks for each", per)
	if per > 1.08 {
		t.Errorf("%.2f blocks went to the device for each that was written over", per)
	}
	v = open(t, mem, fs.Options{})
	for _, h := range hs {
		for off := uint64(0); off < size; off += 1 << 20 {
			if got, _, _, err := v.Read(root, h, off, 1<<20); err != nil || len(bytes.Trim(got, string(rune(1+passes)))) != 0 {
				t.Fatalf("at %d there is something else: %v", off, err)
			}
		}
	}
	closeFS(t, v)
}
