package oncrpc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand"
	"testing"
	"testing/iotest"

	"tansy/test/kit/replay"
)

// mark makes one record of the given fragments.
func mark(fragments ...[]byte) []byte {
	var b []byte
	for i, f := range fragments {
		n := uint32(len(f))
		if i == len(fragments)-1 {
			n |= lastFragment
		}
		b = append(binary.BigEndian.AppendUint32(b, n), f...)
	}
	return b
}

// pieces reads from r at most a random number of bytes at a time.
type pieces struct {
	r   io.Reader
	rnd *rand.Rand
}

func (p pieces) Read(b []byte) (int, error) {
	return p.r.Read(b[:min(len(b), 1+p.rnd.Intn(3000))])
}

// TestRecordsRandom sends records of all sizes, whole and in fragments, and
// keeps some of the chunks, as calls in progress do: what was returned must not
// change until the chunk is released.
func TestRecordsRandom(t *testing.T) {
	rnd := rand.New(rand.NewSource(int64(replay.Seed(t))))
	var stream []byte
	var want [][]byte
	for range 400 {
		sizes := []int{rnd.Intn(200), rnd.Intn(smallChunk), rnd.Intn(100 << 10), maxRecord - rnd.Intn(3)}
		rec := make([]byte, sizes[rnd.Intn(100)*rnd.Intn(100)*4/10000])
		rnd.Read(rec)
		want = append(want, rec)
		if rnd.Intn(4) > 0 {
			stream = append(stream, mark(rec)...)
			continue
		}
		var fragments [][]byte
		for len(rec) > 0 && len(fragments) < maxFragments-2 {
			k := min(len(rec), rnd.Intn(len(rec)+2))
			fragments = append(fragments, rec[:k])
			rec = rec[k:]
		}
		stream = append(stream, mark(append(fragments, rec)...)...)
	}
	rr := newRecordReader(pieces{bytes.NewReader(stream), rnd})
	type kept struct {
		rec   []byte
		chunk *chunk
		i     int
	}
	var held []kept
	drop := func(k kept) {
		if !bytes.Equal(k.rec, want[k.i]) {
			t.Fatalf("record %d changed while it was held", k.i)
		}
		k.chunk.release()
	}
	for i := range want {
		buffered := rr.buffered()
		at := rr.end
		rec, err := rr.next()
		if err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		if buffered && rr.end != at {
			t.Fatalf("record %d was buffered, but more was read", i)
		}
		if !bytes.Equal(rec, want[i]) {
			t.Fatalf("record %d of %d bytes is wrong", i, len(want[i]))
		}
		if rnd.Intn(2) == 0 {
			rr.chunk.hold()
			held = append(held, kept{rec, rr.chunk, i})
		}
		if len(held) > 20 {
			j := rnd.Intn(len(held))
			drop(held[j])
			held = append(held[:j], held[j+1:]...)
		}
	}
	for _, k := range held {
		drop(k)
	}
	if _, err := rr.next(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

func TestRecordErrors(t *testing.T) {
	for _, x := range []struct {
		name  string
		input []byte
		want  error
	}{
		{"nothing", nil, io.EOF},
		{"half a mark", []byte{0x80, 0}, io.ErrUnexpectedEOF},
		{"half a record", mark(make([]byte, 100))[:50], io.ErrUnexpectedEOF},
		{"ends after a fragment", mark(make([]byte, 4), nil)[:8], io.ErrUnexpectedEOF},
		{"too large", []byte{0xff, 0xff, 0xff, 0xff}, errRecordSize},
		{"first fragment too large", []byte{0x7f, 0xff, 0xff, 0xff}, errRecordSize},
		{"fragments too large together", append(mark(make([]byte, maxRecord-1), nil)[:maxRecord+3], mark([]byte("xx"))...),
			errRecordSize},
		{"empty fragments for ever", make([]byte, 100000), errFragments},
	} {
		if _, err := newRecordReader(iotest.HalfReader(bytes.NewReader(x.input))).next(); !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", x.name, err, x.want)
		}
	}
}

// TestRecordMemory announces a large record and sends little of it.
func TestRecordMemory(t *testing.T) {
	announce := binary.BigEndian.AppendUint32(nil, lastFragment|maxRecord)
	rr := newRecordReader(bytes.NewReader(append(announce, make([]byte, 10000)...)))
	if _, err := rr.next(); err != io.ErrUnexpectedEOF {
		t.Fatal(err)
	}
	if n := len(rr.chunk.b); n > chunkSize(10000) {
		t.Errorf("10,000 bytes came and %d were allocated", n)
	}
}

// TestRecordCopies checks that in a run of large records the data is received
// where it stays.
func TestRecordCopies(t *testing.T) {
	var stream []byte
	for range 10 {
		stream = append(stream, mark(make([]byte, 64<<10+200))...)
	}
	cr := &countReader{r: bytes.NewReader(stream)}
	rr := newRecordReader(cr)
	moved := 0
	for i := range 10 {
		before := cr.n
		if _, err := rr.next(); err != nil {
			t.Fatal(err)
		}
		rr.chunk.hold() // a call in progress
		if i > 0 {
			moved = max(moved, cr.first-before)
		}
		cr.first = 0
	}
	if moved > peek {
		t.Errorf("%d bytes of a record were received into another chunk", moved)
	}
}

// countReader notes the bytes read so far, and how many after the first Read of
// a record.
type countReader struct {
	r        io.Reader
	n, first int
}

func (c *countReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += n
	if c.first == 0 {
		c.first = c.n
	}
	return n, err
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(mark([]byte("hello")))
	f.Add(mark([]byte("he"), nil, []byte("llo")))
	f.Add(append(mark(make([]byte, 5000)), mark(make([]byte, 100))...))
	f.Add([]byte{0x80, 0x10, 0, 0, 1, 2, 3})
	f.Fuzz(func(t *testing.T, stream []byte) {
		rr := newRecordReader(iotest.OneByteReader(bytes.NewReader(stream)))
		total := 0
		for {
			rec, err := rr.next()
			if err != nil {
				break
			}
			total += len(rec)
		}
		if total > len(stream) {
			t.Errorf("%d bytes of records from %d", total, len(stream))
		}
		if len(rr.chunk.b) > max(smallChunk, 5*len(stream)) {
			t.Errorf("a chunk of %d bytes for a stream of %d", len(rr.chunk.b), len(stream))
		}
	})
}

// readerFunc is an io.Reader.
type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// Between the fragments of a record the peer owes the rest, so the janitor's clock
// runs, however the fragments fall on reads.
func TestPartialBetweenFragments(t *testing.T) {
	var rr *recordReader
	reads := 0
	rr = newRecordReader(readerFunc(func(p []byte) (int, error) {
		if partial := rr.partial(); partial != (reads > 0) {
			t.Errorf("read %d: partial is %v", reads, partial)
		}
		if reads++; reads > 3 {
			return 0, io.EOF
		}
		return copy(p, []byte{0, 0, 0, 4, 1, 2, 3, 4}), nil // a fragment, not the last
	}))
	if _, err := rr.next(); err != io.ErrUnexpectedEOF {
		t.Error(err)
	}
	rr.close()
}
