package fs

import (
	"sync"

	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/dtxn"
)

// Data is the bytes that a read found, in pieces that follow each other. They lie where they are kept: in the cache, or
// among blocks that are not home yet. Nothing was copied, and this memory is put to no other use before Done is called.
// One goroutine at a time may use it.
type Data struct {
	pieces *dbytes.Pieces
	lent   dtxn.Lent
	own    []byte // a copy, when it is little, or too much was lent
}

// Viewer is a FileSystem that reads without a copy.
type Viewer interface {
	// View is Read, but that the data is the caller's only until it calls Done, which it has to.
	View(c *Cred, h Handle, off uint64, count uint32) (data *Data, eof bool, a *Attr, err error)
}

var idleData = sync.Pool{New: func() any { return new(Data) }}

// take makes d what t has found.
func (d *Data) take(t *txn, p *dbytes.Pieces) {
	d.pieces = p
	if p.Len() > 0 && !t.Lend(&d.lent, p.Len()) {
		d.own = p.Copy()
	}
}

// drop ends with what d has.
func (d *Data) drop() {
	if d.pieces == nil {
		return
	}
	d.pieces.Recycle()
	d.lent.End()
	dbytes.Recycle(d.own)
	d.pieces, d.own = nil, nil
}

// Len is the number of bytes.
func (d *Data) Len() int { return d.pieces.Len() }

// Pieces are the bytes, which must not be changed.
func (d *Data) Pieces() [][]byte { return d.pieces.List() }

// Done is called once, when nobody uses d any more.
func (d *Data) Done() {
	d.drop()
	idleData.Put(d)
}
