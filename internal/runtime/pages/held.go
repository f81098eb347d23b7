package pages

import (
	"tansy/internal/runtime/blockmap"
	"tansy/internal/runtime/codes"
)

// held has codes of nodes, of which neighbours come together: a large write's blocks lie side by side. So it is a
// map of chunks, and a group of 500 codes makes some 32 accesses to it.
type held map[uint64]*chunk

const chunkLen = 16

// chunk has the codes of the nodes from chunkLen times its key on.
type chunk struct {
	has   uint16 // a bit for each
	codes [chunkLen][2]uint64
}

// put adds the codes of c.
func (h held) put(c *codes.Codes) {
	var at *chunk
	key := uint64(0)
	for _, e := range c.Nodes() {
		if k := e.X / chunkLen; at == nil || k != key {
			if key, at = k, h[k]; at == nil {
				at = new(chunk)
				h[k] = at
			}
		}
		at.has |= 1 << (e.X % chunkLen)
		at.codes[e.X%chunkLen] = [2]uint64{e.C0, e.C1}
	}
}

// get returns the code of node x, if it is there.
func (h held) get(x uint64) (has bool, c0, c1 uint64) {
	at := h[x/chunkLen]
	if at == nil || at.has>>(x%chunkLen)&1 == 0 {
		return false, 0, 0
	}
	c := &at.codes[x%chunkLen]
	return true, c[0], c[1]
}

// drop removes the codes of the blocks of m; home is the address of node 0.
func (h held) drop(m *blockmap.Map, home uint64) {
	var at *chunk
	key := ^uint64(0)
	for _, a := range m.Addrs() {
		x := a - home
		if k := x / chunkLen; k != key {
			key, at = k, h[k]
		}
		if at == nil {
			continue
		}
		if at.has &^= 1 << (x % chunkLen); at.has == 0 {
			delete(h, key)
			at = nil
		}
	}
}
