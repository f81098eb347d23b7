package dbytes

import (
	"math/bits"
	"strings"
	"unsafe"

	"tansy/internal/freelist"
)

// Memory of several blocks that is used again. What is read from the device, and what READs are answered with,
// comes and goes a thousand times a second: to clear that, to collect it, and to have it
// given back to the system and mapped anew took half of the server's time in a stream of reads.
//
// Whoever gives memory back says that nobody sees it any more. What is not given back is the
// garbage collector's.

// maxRecycled is log2 of the most blocks of one piece.
const maxRecycled = 8

// recycledBytes is the most that is kept of free pieces.
const recycledBytes = 6 << 20

// recycled has by i pieces of 1<<i blocks, as pointers to the first.
var recycled = func() (l [maxRecycled + 1]*freelist.List[*Blk]) {
	budget := freelist.NewBudget(recycledBytes)
	for i := range l {
		l[i] = freelist.New[*Blk](budget, BlkSize<<i)
	}
	return
}()

// class says of which pieces n blocks are taken; it is not ok if they are not worth it.
func class(n uint64) (i int, ok bool) {
	i = bits.Len64(n - 1)
	return i, 1 <= n && i <= maxRecycled && n > 3<<i/4
}

// AnyBlks returns n blocks side by side that hold anything: who asks writes all of each before anybody else sees it.
// They may be given to RecycleBlks, once.
func AnyBlks(n uint64) []Blk {
	if n == 0 {
		return nil
	}
	i, ok := class(n)
	if !ok {
		return newBlks(n)
	}
	if p, ok := recycled[i].Get(); ok {
		return unsafe.Slice(p, 1<<i)[:n]
	}
	return newBlks(1 << i)[:n]
}

func newBlks(n uint64) []Blk {
	var b strings.Builder // its memory is not cleared
	b.Grow(int(n) * BlkSize)
	b.WriteByte(0)
	return unsafe.Slice((*Blk)(unsafe.Pointer(unsafe.StringData(b.String()))), n)
}

// RecycleBlks takes back what AnyBlks gave.
func RecycleBlks(run []Blk) {
	if i, ok := class(uint64(len(run))); ok && cap(run) == 1<<i {
		run = run[:cap(run)]
		Spoil(run)
		recycled[i].Put(&run[0])
	}
}

// AnyBytes returns n bytes that hold anything: who asks writes all of them before anybody else sees them.
// They may be given to Recycle, once.
func AnyBytes(n uint64) *Bytes {
	if n <= BlkSize {
		return NewBytes(n)
	}
	run := AnyBlks((n + BlkSize - 1) / BlkSize)
	return &Bytes{Data: unsafe.Slice((*byte)(unsafe.Pointer(&run[0])), cap(run)*BlkSize)[:n]}
}

// Recycle takes back the data of what AnyBytes gave. Other memory is left alone, unless it is as large.
func Recycle(data []byte) {
	if n := cap(data); n > BlkSize && n%BlkSize == 0 && len(data) > 0 {
		run := unsafe.Slice((*Blk)(unsafe.Pointer(unsafe.SliceData(data))), n/BlkSize)
		RecycleBlks(run[:(len(data)+BlkSize-1)/BlkSize])
	}
}

// Poison says that memory is spoiled when it may be used again, so that who sees it yet gets caught, and
// that the race detector watches it. That is so in tests with that detector.
var Poison = raceDetector

// Spoil is called with blocks which nobody sees any more.
func Spoil(run []Blk) {
	if !Poison {
		return
	}
	for i := range run {
		SpoilBytes(run[i].v[:])
	}
}

// SpoilBytes is Spoil for other memory.
func SpoilBytes(b []byte) {
	if !Poison {
		return
	}
	for len(b) > 0 {
		b = b[copy(b, spoiled):]
	}
}

// spoiled is what memory has when it was spoiled. To copy it is one write of the whole to the race detector; a loop has
// it look at each byte, which was a tenth of what the tests with it took.
var spoiled = strings.Repeat("\xDB", BlkSize)
