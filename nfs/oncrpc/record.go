package oncrpc

import (
	"encoding/binary"
	"errors"
	"io"
)

// Record marking (RFC 5531, section 11): a record is a sequence of fragments,
// each with a word in front that holds its length and, in the highest bit,
// whether it is the last.

var (
	errRecordSize = errors.New("record too large")
	errFragments  = errors.New("record in too many fragments")
)

// maxFragments bounds the fragments of one record, so that empty ones do not
// keep a connection busy for ever.
const maxFragments = 4096

// peek is how many bytes are asked for at the start of a record when the last
// one was large: its header, but little of its data, so that the data is received
// into a chunk of the right size and not moved.
const peek = 256

// recordReader cuts a stream into records. A record in one fragment is returned
// where it was received. Memory grows as data comes: a record gets the next larger
// chunk when one is full, or at once if the peer has sent a record of that size
// before.
type recordReader struct {
	r          io.Reader
	chunk      *chunk
	start, end int  // received, not yet returned
	largest    int  // bytes in the largest record so far, mark included
	large      bool // the last record was: the next one's header is received by itself (peek)
	assembling bool // a record of several fragments

	// What a record takes that does not fit smallChunk is reserved, if that is not nil, before
	// it is received, and released when the next one is asked for or handed over. The record is
	// long bytes long, or less if it comes in several fragments; its chunk takes bytes.
	reserve  func(long, bytes int) (reservation, error)
	release  func(reservation)
	reserved reservation
}

func newRecordReader(r io.Reader) *recordReader {
	return &recordReader{r: r, chunk: newChunk(smallChunk)}
}

// close lets go of the chunk.
func (rr *recordReader) close() {
	rr.chunk.release()
	rr.giveUp()
}

// giveUp gives back what was reserved.
func (rr *recordReader) giveUp() {
	if rr.reserved.bytes > 0 {
		rr.release(rr.reserved)
		rr.reserved = reservation{}
	}
}

// reserveFor reserves the room for a record of n bytes. A record is reserved at once, not as it
// comes, so that nobody holds a part and waits for more.
func (rr *recordReader) reserveFor(n int) (err error) {
	if 4+n <= smallChunk || rr.reserve == nil {
		return nil
	}
	rr.reserved, err = rr.reserve(4+n, chunkSize(4+n))
	return err
}

// handOver leaves the release of what is reserved to the caller.
func (rr *recordReader) handOver() (r reservation) {
	r, rr.reserved = rr.reserved, reservation{}
	return r
}

// buffered tells if next returns without waiting for the peer. It may say no
// for a record in several fragments.
func (rr *recordReader) buffered() bool {
	n := rr.end - rr.start
	if n < 4 {
		return false
	}
	mark := binary.BigEndian.Uint32(rr.chunk.b[rr.start:])
	return mark&lastFragment != 0 && int(mark&^lastFragment) <= n-4
}

// partial tells if the peer owes the rest of a record.
func (rr *recordReader) partial() bool { return rr.end > rr.start || rr.assembling }

// next returns the next record, which lies in rr.chunk: it stays valid until the
// next call of next, or for as long as the caller holds that chunk. The error
// is io.EOF only between records.
func (rr *recordReader) next() ([]byte, error) {
	rr.giveUp()
	if err := rr.need(4); err != nil {
		return nil, err
	}
	mark := binary.BigEndian.Uint32(rr.chunk.b[rr.start:])
	n := int(mark &^ lastFragment)
	if n > maxRecord {
		return nil, errRecordSize
	}
	if mark&lastFragment == 0 {
		return rr.assemble(n)
	}
	if err := rr.reserveFor(n); err != nil {
		return nil, err
	}
	if err := rr.need(4 + n); err != nil {
		return nil, noEOF(err)
	}
	rec := rr.chunk.b[rr.start+4 : rr.start+4+n : rr.start+4+n]
	rr.took(4 + n)
	return rec, nil
}

// took moves past the n bytes of a record.
func (rr *recordReader) took(n int) {
	rr.start += n
	rr.largest = max(rr.largest, n)
	rr.large = n > smallChunk
}

// assemble puts together a record of several fragments, of which the first has n
// bytes and was not the last. The record is moved to the front of a chunk of its
// own size step by step, as it comes.
func (rr *recordReader) assemble(n int) ([]byte, error) {
	rr.assembling = true
	defer func() { rr.assembling = false }()
	var rec []byte
	for fragments := 1; ; fragments++ {
		if fragments > maxFragments {
			return nil, errFragments
		}
		last := true
		if rec == nil {
			rec, last = make([]byte, 0, 512), false
		} else {
			if err := rr.need(4); err != nil {
				return nil, noEOF(err)
			}
			mark := binary.BigEndian.Uint32(rr.chunk.b[rr.start:])
			n, last = int(mark&^lastFragment), mark&lastFragment != 0
		}
		if n > maxRecord-len(rec) {
			return nil, errRecordSize
		}
		if len(rec)+n > smallChunk && rr.reserved.bytes == 0 {
			if err := rr.reserveFor(maxRecord); err != nil {
				return nil, err
			}
		}
		rr.start += 4
		for n > 0 {
			if err := rr.need(1); err != nil {
				return nil, noEOF(err)
			}
			k := min(n, rr.end-rr.start)
			rec = append(rec, rr.chunk.b[rr.start:rr.start+k]...)
			rr.start += k
			n -= k
		}
		if last {
			break
		}
	}
	// The caller expects a record in rr.chunk: hand over one that is.
	own := newChunk(len(rec) + rr.end - rr.start)
	k := copy(own.b, rec)
	rr.end = k + copy(own.b[k:], rr.chunk.b[rr.start:rr.end])
	rr.start = k
	rr.chunk.release()
	rr.chunk = own
	rr.largest = max(rr.largest, k)
	return own.b[:k:k], nil
}

// need receives until n bytes from start are there, n <= maxRecord+4.
func (rr *recordReader) need(n int) error {
	for rr.end-rr.start < n {
		rr.room(n)
		limit := len(rr.chunk.b)
		if n > smallChunk {
			limit = min(limit, rr.start+n) // the next record starts in its own chunk
		} else if rr.large {
			limit = min(limit, rr.end+peek)
		}
		k, err := rr.r.Read(rr.chunk.b[rr.end:limit])
		rr.end += k
		if k == 0 && err != nil {
			if rr.end > rr.start {
				return noEOF(err)
			}
			return err
		}
	}
	return nil
}

// room makes the chunk able to take more of the n bytes that start at start.
func (rr *recordReader) room(n int) {
	have := rr.end - rr.start
	mine := rr.chunk.refs.Load() == 1
	if have == 0 && mine {
		rr.start, rr.end = 0, 0
	}
	fits := len(rr.chunk.b)
	size := max(smallChunk, rr.largest, have+1)
	if have == fits {
		size = max(size, 2*have)
	}
	size = min(size, n)
	switch {
	case have == 0 && n <= smallChunk && fits > smallChunk:
		// A new one, for idle connections shall hold a small chunk.
	case rr.start+n <= fits:
		return
	case size <= fits && rr.start == 0 && rr.end < fits:
		return // a large record, of which little has come
	case size <= fits && mine:
		copy(rr.chunk.b, rr.chunk.b[rr.start:rr.end])
		rr.start, rr.end = 0, have
		return
	}
	next := newChunk(size)
	copy(next.b, rr.chunk.b[rr.start:rr.end])
	rr.start, rr.end = 0, have
	rr.chunk.release()
	rr.chunk = next
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
