package check

import (
	"errors"
	"runtime"
	"slices"
	"sync"

	"tansy/disk"
	"tansy/journal"
)

// codes is the pass over the tree of codes. It finds the damaged pages, and which of the blocks before the data are
// not zeros.
func (c *checker) codes() error {
	if c.snap == nil {
		return nil
	}
	done, all := uint64(0), c.sb.pagesThere(c.v.d)
	for p := range c.snap.Pages() {
		done++
		c.progress(done, all)
		why := p.Err
		if e := new(disk.Error); errors.As(why, &e) {
			why = e.Err
		}
		switch {
		case p.Lost:
			c.unreadable(0, p.Block, why, "a page of the tree of codes, in this block or the next "+
				"(the server reads nothing that is below it)")
		case errors.Is(why, journal.ErrMisplaced):
			c.rep.Damaged++
			c.problem(0, p.Block, "a page of the tree of codes: %v", why)
		case why != nil:
			c.unreadable(0, p.Block, why, "a page of the tree of codes")
		}
		for _, a := range p.Homes {
			if a < c.geo.data0 {
				c.coded.add(a)
			}
		}
	}
	return nil
}

// nextCoded is the first block at or behind a, before the data, that is not zeros by its code.
func (c *checker) nextCoded(a uint64) uint64 { return c.coded.nextBlock(a, 0, 1) }

// markUsed remembers which of the 64 blocks from base on are to be looked at by the pass over the data.
func (c *checker) markUsed(base, w uint64) {
	if c.opt.Data {
		c.used.addWord(base, w&below(c.geo.dataEnd, base)&^below(c.geo.data0, base))
	}
}

const (
	dataChunk = 64 // blocks read at once
	dataBatch = 16 // chunks between which nothing is reported: 4 MiB
)

// A chunk is some neighbouring blocks, and what is wrong with each.
type chunk struct {
	from, n uint64
	bufs    [][]byte
	err     [dataChunk]error
}

// data is the pass over the contents of all blocks in use, if it is wanted.
func (c *checker) data() error {
	if !c.opt.Data {
		return nil
	}
	if c.snap == nil {
		c.note("the contents of files, because without the log it is not known what was last written")
		return nil
	}
	damaged := runs{c: c, text: "not what was last written there", owned: true}
	var batch [dataBatch]chunk
	for at := c.geo.data0; at < c.geo.dataEnd; {
		n := 0
		for n < dataBatch {
			if batch[n].from, batch[n].n = c.nextUsed(at); batch[n].n == 0 {
				at = c.geo.dataEnd
				break
			}
			at = batch[n].from + batch[n].n
			batch[n].reserve()
			n++
		}
		c.readChunks(batch[:n])
		for i := range batch[:n] {
			for k := range batch[i].n {
				if err := c.judge(batch[i].from+k, batch[i].err[k], &damaged); err != nil {
					return err
				}
			}
		}
	}
	damaged.flush()
	return nil
}

// reserve makes the memory of a chunk, which a volume with little data needs for few of them.
func (c *chunk) reserve() {
	if c.bufs != nil {
		return
	}
	mem := make([]byte, dataChunk*disk.BlockSize)
	for b := range slices.Chunk(mem, disk.BlockSize) {
		c.bufs = append(c.bufs, b)
	}
}

// nextUsed is the next run of blocks in use, at or behind a; n is 0 if there is none.
func (c *checker) nextUsed(a uint64) (from, n uint64) {
	from, ok := c.used.next(a)
	if !ok {
		return 0, 0
	}
	for n = 1; n < dataChunk && from+n < c.geo.dataEnd && c.used.has(from+n); n++ {
	}
	return from, n
}

// readChunks reads chunks, and looks at the contents.
func (c *checker) readChunks(batch []chunk) {
	var readers sync.WaitGroup
	workers := min(len(batch), max(4, runtime.GOMAXPROCS(0))) // a few reads at once, for the device's sake
	for w := range workers {
		readers.Go(func() {
			for i := w; i < len(batch); i += workers {
				c.readChunk(&batch[i])
			}
		})
	}
	readers.Wait()
}

func (c *checker) readChunk(k *chunk) {
	whole := c.v.d.ReadAt(k.from, k.bufs[:k.n]) == nil
	for i := range k.n {
		a := k.from + i
		k.err[i] = nil
		if c.v.log[a] != nil {
			continue
		}
		if !whole {
			k.err[i] = c.v.d.ReadAt(a, k.bufs[i:i+1])
		}
		if k.err[i] != nil {
			continue
		}
		if ok, bad := c.v.genuine(a, k.bufs[i]); !ok {
			k.err[i] = journal.ErrNotAsWritten
			if bad != a {
				k.err[i] = errUncoded
			}
		}
	}
}

var errUncoded = errors.New("the block's code is lost")

// judge reports what is wrong with data block a, if nobody has yet.
func (c *checker) judge(a uint64, err error, damaged *runs) error {
	c.rep.DataChecked++
	c.progress(c.rep.DataChecked, c.used.n)
	if err == nil || c.told[a] {
		c.v.failed = 0
		return nil
	}
	switch {
	case errors.Is(err, errUncoded):
		c.v.uncoded.add(a)
	case errors.Is(err, journal.ErrNotAsWritten):
		c.rep.Damaged++
		damaged.add(a, a+1)
	default:
		err = c.v.fail(a, err)
		l := asLost(err)
		if l == nil {
			return err
		}
		damaged.flush() // in order
		c.unreadable(0, a, l.err, "a block in use")
		c.ownersWanted(a, a+1)
		return nil
	}
	c.v.failed = 0
	return nil
}
