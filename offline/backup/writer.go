package backup

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"

	"tansy/disk"
)

// writer writes the file of a backup, from its beginning to its end. It keeps 24 bytes of each segment in memory, which
// is up to 1 MiB of data.
type writer struct {
	w        io.Writer
	info     Info
	at       uint64 // blocks written
	segments []span
	sums     hash.Hash // of the sums of all blocks that have one
	end      ending
	next     uint64 // the least block that the next entry may have
	entries  []entry
	data     [][]byte // of the entries that have some
	memory   []byte   // for these
}

// newWriter writes the header.
func newWriter(w io.Writer, info Info) (*writer, error) {
	x := &writer{w: w, info: info, sums: sha256.New(), memory: make([]byte, perHead*disk.BlockSize)}
	return x, x.block(encodeHeader(info))
}

// block writes a block with a sum.
func (w *writer) block(b []byte) error {
	w.sums.Write(b[sumAt:])
	return w.put(b)
}

func (w *writer) put(b []byte) error {
	_, err := w.w.Write(b)
	w.at++
	return err
}

// errOrder is the error of an entry that comes too late.
var errOrder = errors.New("blocks have to be written in their order")

// room is memory for the data of the entry that comes after the next i, as long as no segment is full before.
func (w *writer) room(i int) []byte {
	return w.memory[(len(w.entries)+i)*disk.BlockSize:][:disk.BlockSize]
}

// add appends an entry: blocks come in their order. data is that of the entry, if it has some, and must stay what it is
// until the segment is written: the last of perHead entries does that.
func (w *writer) add(e entry, data []byte) error {
	if e.block < w.next || e.end() > w.info.Size {
		return fmt.Errorf("block %d: %w", e.block, errOrder)
	}
	w.next = e.end()
	w.entries = append(w.entries, e)
	if e.hasData() {
		w.data = append(w.data, data)
		w.end.stored++
	}
	if e.kind == notWritten || e.kind == unreadable {
		w.end.damaged++
	}
	if len(w.entries) == perHead {
		return w.flush()
	}
	return nil
}

// addGone appends that n blocks from a on mean nothing any more.
func (w *writer) addGone(a, n uint64) error {
	for n > 0 {
		k := min(n, 1<<32-1)
		if i := len(w.entries) - 1; i >= 0 && w.entries[i].kind == gone && w.next == a && w.entries[i].sum < 1<<31 {
			k = min(k, 1<<31)
			w.entries[i].sum += uint32(k)
			w.next += k
		} else if err := w.add(entry{a, gone, uint32(k)}, nil); err != nil {
			return err
		}
		a, n = a+k, n-k
	}
	return nil
}

// flush writes the segment that is held.
func (w *writer) flush() error {
	if len(w.entries) == 0 {
		return nil
	}
	w.segments = append(w.segments, span{w.entries[0].block, w.next, w.at})
	if err := w.block(encodeHead(w.info.ID, w.at, w.entries)); err != nil {
		return err
	}
	for _, b := range w.data {
		if err := w.put(b); err != nil {
			return err
		}
	}
	w.entries, w.data = w.entries[:0], w.data[:0]
	return nil
}

// close writes what is held, the index, and the end.
func (w *writer) close() error {
	if err := w.flush(); err != nil {
		return err
	}
	w.end.index, w.end.segments = w.at, uint64(len(w.segments))
	for part := range slices.Chunk(w.segments, perIndex) {
		if err := w.block(encodeIndex(w.info.ID, w.at, part)); err != nil {
			return err
		}
	}
	copy(w.end.digest[:], w.sums.Sum(nil))
	w.end.info = w.info
	return w.put(w.end.encode(w.at))
}

// bytes is what was written so far.
func (w *writer) bytes() uint64 { return w.at * disk.BlockSize }
