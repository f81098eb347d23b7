package fs

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"tansy/disk"
	"tansy/internal/gen/fs/exec/calls"
)

// The cost of the procedures themselves: transactions in memory, no journal.

func BenchmarkGetattr(b *testing.B) {
	v := newFS(b)
	for b.Loop() {
		if _, err := v.Getattr(v.Root()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	v := newFS(b)
	for i := range 500 {
		create(b, v, root, v.Root(), fmt.Sprint("f", i))
	}
	name := []byte("f250")
	for b.Loop() {
		if _, err := v.Lookup(alice, v.Root(), name); err != nil {
			b.Fatal(err)
		}
	}
}

// Names at random in a large directory: what the processor's caches do not know.
func BenchmarkLookupLarge(b *testing.B) {
	const files = 100_000
	v := memFS(b, 1<<17, 2*files, Options{})
	for i := range files {
		create(b, v, root, v.Root(), fmt.Sprint("f", i))
	}
	r := rand.New(rand.NewPCG(1, 1))
	name := make([]byte, 0, 10)
	for b.Loop() {
		name = strconv.AppendInt(append(name[:0], 'f'), r.Int64N(files), 10)
		if _, err := v.Lookup(root, v.Root(), name); err != nil {
			b.Fatal(err)
		}
	}
}

// A listing with attributes, each entry of it.
func BenchmarkReaddirplus(b *testing.B) {
	const files, page = 10_000, 64 << 10
	v := memFS(b, 1<<15, 2*files, Options{})
	for i := range files {
		create(b, v, root, v.Root(), fmt.Sprint("f", i))
	}
	size := func(n int) int { return 160 + n }
	var cookie, verf uint64
	b.ReportAllocs()
	for n := 0; n < b.N; {
		l, err := v.Readdir(root, v.Root(), cookie, verf, true, Limit{Bytes: page, Size: size})
		if err != nil {
			b.Fatal(err)
		}
		n += len(l.Entries)
		cookie, verf = l.Entries[len(l.Entries)-1].Cookie, l.Verf
		if l.EOF {
			cookie, verf = 0, 0
		}
	}
}

func BenchmarkCreateRemove(b *testing.B) {
	v := newFS(b)
	name := []byte("file")
	for b.Loop() {
		if _, err := v.Create(root, v.Root(), name, Unchecked, nil, 0); err != nil {
			b.Fatal(err)
		}
		if _, err := v.Remove(root, v.Root(), name); err != nil {
			b.Fatal(err)
		}
	}
}

// What the place of its record costs a call, of one of 100 clients.
func BenchmarkRecordPlace(b *testing.B) {
	d := disk.NewMem(1 << 15 * BlockSize)
	if err := Mkfs(d, MkfsOptions{Zeroed: true}); err != nil {
		b.Fatal(err)
	}
	v, err := Open(d, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer v.Close()
	r := v.replies
	id := &CallID{}
	for n := uint64(0); b.Loop(); n++ {
		id.client[15] = byte(n % 100)
		binary.LittleEndian.PutUint64(id.key[8:], n*0x9E3779B97F4A7C15)
		p := r.begin(id)
		if p == nil {
			b.Fatal("no place")
		}
		r.end(p, &calls.Call{Record: true}, false)
	}
}

func benchData(b *testing.B, n int, op func(v *FS, h Handle, off uint64, data []byte) error) {
	v := newFS(b)
	h := create(b, v, root, v.Root(), "f")
	data := make([]byte, n)
	for off := uint64(0); off < 8<<20; off += 1 << 20 {
		write(b, v, h, off, string(make([]byte, 1<<20)))
	}
	b.SetBytes(int64(n))
	off := uint64(0)
	for b.Loop() {
		if err := op(v, h, off, data); err != nil {
			b.Fatal(err)
		}
		off = (off + uint64(n)) % (8 << 20)
	}
}

func BenchmarkWrite(b *testing.B) {
	for _, n := range []int{4096, 65536, 1 << 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			benchData(b, n, func(v *FS, h Handle, off uint64, data []byte) error {
				_, _, _, err := v.Write(root, h, off, data, Unstable)
				return err
			})
		})
	}
}

func BenchmarkRead(b *testing.B) {
	for _, n := range []int{4096, 65536, 1 << 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			benchData(b, n, func(v *FS, h Handle, off uint64, data []byte) error {
				_, _, _, err := v.Read(root, h, off, uint32(len(data)))
				return err
			})
		})
	}
}
