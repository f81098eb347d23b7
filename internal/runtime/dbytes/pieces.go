package dbytes

import (
	"bytes"
	"sync"
)

// Pieces is bytes that lie in blocks. Whoever uses them sees to it that the blocks' memory is not used again meanwhile.
type Pieces struct {
	list [][]byte
	n    int
}

var idlePieces = sync.Pool{New: func() any { return new(Pieces) }}

// NewPieces returns none.
func NewPieces() *Pieces { return idlePieces.Get().(*Pieces) }

// Add adds the n bytes of b from so on.
func (p *Pieces) Add(b *Blk, so, n uint64) {
	if n > 0 {
		p.list = append(p.list, b.v[so:so+n])
		p.n += int(n)
	}
}

// Join returns a copy.
func (p *Pieces) Join() *Bytes { return &Bytes{Data: bytes.Join(p.list, nil)} }

// Len is the number of bytes.
func (p *Pieces) Len() int { return p.n }

// List is the pieces. It is p's.
func (p *Pieces) List() [][]byte { return p.list }

// Copy has p be a copy of its bytes, which is returned, too: memory of AnyBytes.
func (p *Pieces) Copy() (own []byte) {
	own = AnyBytes(uint64(p.n)).Data
	at := own
	for _, piece := range p.list {
		at = at[copy(at, piece):]
	}
	clear(p.list)
	p.list = append(p.list[:0], own)
	return own
}

// Recycle takes p back.
func (p *Pieces) Recycle() {
	clear(p.list)
	p.list, p.n = p.list[:0], 0
	idlePieces.Put(p)
}
