package oncrpc

import (
	"sync/atomic"

	"tansy/internal/freelist"
)

// chunk is a receive buffer shared by the connection that fills it and the calls
// whose arguments lie in it. It goes back to the free ones when the last of them lets
// go, so a call may use its arguments in place, however long it takes, and
// nothing is ever received over them.
type chunk struct {
	b    []byte
	refs atomic.Int32
	free *freelist.List[*chunk] // nil: left to the garbage collector
}

// Sizes of chunks in bytes. The last holds the largest record.
var chunkSizes = [...]int{smallChunk, 20 << 10, 72 << 10, 264 << 10, maxRecord + 4}

const (
	smallChunk = 4 << 10 // that of an idle connection

	// maxRecord is the size of the largest record taken, in bytes: a WRITE of
	// 1 MiB and what is around it.
	maxRecord = 1<<20 + 16<<10
)

// freeChunkBytes is the most that is kept of free chunks.
const freeChunkBytes = 4 << 20

var freeChunks = func() (l [len(chunkSizes)]*freelist.List[*chunk]) {
	budget := freelist.NewBudget(freeChunkBytes)
	for i, size := range chunkSizes {
		l[i] = freelist.New[*chunk](budget, size)
	}
	return
}()

// chunkSize is the size of the chunk for n bytes, in bytes.
func chunkSize(n int) int {
	for _, size := range chunkSizes {
		if n <= size {
			return size
		}
	}
	return n
}

// newChunk returns a chunk of at least n bytes, held once.
func newChunk(n int) *chunk {
	for i, size := range chunkSizes {
		if n <= size {
			c, ok := freeChunks[i].Get()
			if !ok {
				c = &chunk{b: make([]byte, size), free: freeChunks[i]}
			}
			c.refs.Store(1)
			return c
		}
	}
	// A record of several fragments with more behind it.
	c := &chunk{b: make([]byte, n)}
	c.refs.Store(1)
	return c
}

func (c *chunk) hold() { c.refs.Add(1) }

func (c *chunk) release() {
	if c.refs.Add(-1) == 0 && c.free != nil {
		c.free.Put(c)
	}
}
