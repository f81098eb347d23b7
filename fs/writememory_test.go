package fs_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand"
	"sync"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/internal/runtime/dbytes"
)

// The memory of WRITEs is used again as soon as nobody may see it, and not before: with clients that overwrite the same
// blocks and read them all the while, while they are in the log, on their way home, and read again, each block that is
// read is one that was written there; and when the volume is closed, none is in use any more. Memory that may be used
// again is spoiled.
func TestWriteMemory(t *testing.T) {
	poison(t)
	before := dbytes.WritesHeld()
	d := disk.NewMem(20000 * disk.BlockSize)
	mkfs(t, d, fs.MkfsOptions{Zeroed: true, Inodes: 256})
	v := open(t, d, fs.Options{CacheBytes: 4 << 20, PinnedBytes: 4 << 20})
	const clients, blocks = 6, 400
	s := seed(t)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			r := rand.New(rand.NewSource(s + int64(i)))
			n, err := v.Create(root, v.Root(), []byte{byte('a' + i/2)}, fs.Unchecked, nil, 0) // two share one
			if err != nil {
				t.Error(err)
				return
			}
			var seen []view // that have not ended
			for range 150 {
				at, k := r.Intn(blocks), 1+r.Intn(40)
				if r.Intn(2) == 0 {
					data := make([]byte, k*fs.BlockSize)
					for j := range k {
						mark(data[j*fs.BlockSize:][:fs.BlockSize], uint64(at+j), r.Uint64())
					}
					if _, _, _, err := v.Write(root, n.Handle, uint64(at*fs.BlockSize), data, fs.Stability(r.Intn(3))); err != nil {
						t.Error(err)
						return
					}
					continue
				}
				if len(seen) > r.Intn(8) {
					if err := seen[0].end(); err != nil {
						t.Error(err)
						return
					}
					seen = seen[1:]
				}
				data, _, _, err := v.View(root, n.Handle, uint64(at*fs.BlockSize), uint32(k*fs.BlockSize))
				if err != nil {
					t.Error(err)
					return
				}
				whole := bytes.Join(data.Pieces(), nil)
				for j := range len(whole) / fs.BlockSize {
					if b := whole[j*fs.BlockSize:][:fs.BlockSize]; !marked(b, uint64(at+j)) {
						t.Errorf("block %d was never written so: %x...", at+j, b[:32])
						return
					}
				}
				seen = append(seen, view{data, whole})
			}
			for _, s := range seen {
				if err := s.end(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	closeFS(t, v)
	// Those of volumes that other tests left behind may have been given back meanwhile.
	if n := dbytes.WritesHeld(); n > before {
		t.Errorf("%d blocks of WRITEs are in use when the volume is closed", n-before)
	}
}

// view is what a View found, and a copy of it.
type view struct {
	*fs.Data
	was []byte
}

// end ends a view, which must not have changed.
func (v view) end() error {
	defer v.Done()
	if !bytes.Equal(bytes.Join(v.Pieces(), nil), v.was) {
		return errors.New("what was read changed before it was done with")
	}
	return nil
}

// mark makes b what some client writes to block at: two numbers again and again.
func mark(b []byte, at, x uint64) {
	var two [16]byte
	binary.LittleEndian.PutUint64(two[:], at)
	binary.LittleEndian.PutUint64(two[8:], x)
	copy(b, bytes.Repeat(two[:], len(b)/16))
}

// marked tells if b is what mark makes, or zeros.
func marked(b []byte, at uint64) bool {
	want := bytes.Repeat(b[:16], len(b)/16)
	return bytes.Equal(b, want) && (binary.LittleEndian.Uint64(b) == at || bytes.Equal(b, make([]byte, len(b))))
}

// poison has memory that may be used again spoiled up to the end of the test. With the race detector it is anyway, and
// nothing is written, which that would find.
func poison(t *testing.T) {
	if !dbytes.Poison {
		dbytes.Poison = true
		t.Cleanup(func() { dbytes.Poison = false })
	}
}
