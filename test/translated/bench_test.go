package translated

import (
	"fmt"
	"testing"

	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/dtxn"
)

// Reading, overwriting and filling holes, with the block tree's depth: what the
// file layer costs on transactions in memory.
func BenchmarkFile(b *testing.B) {
	for _, at := range []struct {
		name string
		off  uint64
	}{{"direct", 0}, {"single", 12 << 12}, {"double", 524 << 12}, {"triple", 262668 << 12}} {
		for _, n := range []uint64{4 << 10, 64 << 10, 1 << 20} {
			if at.name == "direct" && n > 12<<12 {
				continue
			}
			v := newVolume(b, 200000, 64)
			ino := v.create()
			src := &dbytes.Bytes{Data: make([]byte, n)}
			if !v.write(ino, at.off, src.Data) {
				b.Fatal("write")
			}
			name := func(op string) string { return fmt.Sprintf("%s/%s/%dK", op, at.name, n>>10) }
			b.Run(name("read"), func(b *testing.B) {
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for range b.N {
					v.run(func(tx *dtxn.Txn) bool { v.fs.Read(tx, ino, at.off, n); return true })
				}
			})
			b.Run(name("overwrite"), func(b *testing.B) {
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for range b.N {
					v.run(func(tx *dtxn.Txn) bool { return v.fs.Write(tx, ino, at.off, src, 0, n) })
				}
			})
			b.Run(name("fill"), func(b *testing.B) {
				if !v.setSize(ino, 0) || !v.freeSome(ino, 1<<20) {
					b.Fatal("cut")
				}
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for range b.N { // never committed: a hole each time
					v.run(func(tx *dtxn.Txn) bool { v.fs.Write(tx, ino, at.off, src, 0, n); return false })
				}
			})
		}
	}
}

// Cutting a file of 64 MiB: per block given back.
func BenchmarkFree(b *testing.B) {
	const blocks = 16384
	v := newVolume(b, 40000, 64)
	ino := v.create()
	p := make([]byte, 1<<20)
	for i := 0; i < b.N; i += blocks {
		b.StopTimer()
		for off := uint64(0); off < blocks<<12; off += 1 << 20 {
			if !v.write(ino, off, p) {
				b.Fatal("write")
			}
		}
		b.StartTimer()
		v.setSize(ino, 0)
		for !v.freeSome(ino, 1024) {
		}
	}
}
