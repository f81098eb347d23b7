package check

import (
	"cmp"
	"slices"
	"sync"

	"tansy/disk"
)

// tails checks the last blocks of files that do not fill them. They lie far from each
// other, and a device is faster with many such reads at once than one by one.
type tails struct {
	wanted []tail
	mem    []byte // a block for each of wanted
}

// tail is a last block.
type tail struct {
	ino, size, block uint64
	buf              []byte
	err              error
}

const (
	tailBatch   = 256 // read before any is looked at: 1 MiB
	tailReaders = 16  // reads at once
)

// add has the last block of a file checked, at the latest by flush.
func (t *tails) add(c *checker, ino, size, block uint64) error {
	t.wanted = append(t.wanted, tail{ino: ino, size: size, block: block})
	if len(t.wanted) < tailBatch {
		return nil
	}
	return t.flush(c)
}

func (t *tails) flush(c *checker) error {
	if n := len(t.wanted) * disk.BlockSize; len(t.mem) < n {
		t.mem = make([]byte, n)
	}
	slices.SortFunc(t.wanted, func(a, b tail) int { return cmp.Compare(a.block, b.block) })
	var readers sync.WaitGroup
	for r := range min(tailReaders, len(t.wanted)) {
		readers.Go(func() {
			for i := r; i < len(t.wanted); i += tailReaders {
				w := &t.wanted[i]
				w.buf = t.mem[i*disk.BlockSize : (i+1)*disk.BlockSize]
				w.err = c.v.d.ReadAt(w.block, [][]byte{w.buf})
			}
		})
	}
	readers.Wait()
	for _, w := range t.wanted {
		var err error
		if w.err != nil || c.v.log[w.block] != nil {
			err = c.v.read(w.block, w.buf)
		} else {
			c.tick()
			err = c.v.accept(w.block, w.buf)
		}
		if l := asLost(err); l != nil {
			c.unreadable(w.ino, w.block, l.err, "the last block of the file")
		} else if err != nil {
			return err
		} else if !zeros(w.buf[w.size%disk.BlockSize:]) {
			c.problem(w.ino, w.block, "the bytes behind the file's end (size %d) are not zeros", w.size)
		}
	}
	t.wanted = t.wanted[:0]
	return nil
}
