package journal

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"tansy/disk"
	"tansy/internal/gen/journal/journalreader"
	"tansy/internal/gen/journal/journalthreads"
)

func benchJournal(b *testing.B, d disk.Disk) *Journal {
	p := Params{Units: 512, Ring: 8191, Key: [32]byte{1}}
	if err := Format(d, p); err != nil {
		b.Fatal(err)
	}
	j, err := Open(d, p, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := j.Close(); err != nil {
			b.Error(err)
		}
		d.Close()
	})
	return j
}

func benchFile(b *testing.B, blocks uint64) disk.Disk {
	d, err := disk.CreateFile(filepath.Join(b.TempDir(), "img"), blocks*disk.BlockSize)
	if err != nil {
		b.Fatal(err)
	}
	return d
}

// A read of a cached block.
func BenchmarkReadCached(b *testing.B) {
	j := benchJournal(b, disk.NewMem(40000*disk.BlockSize))
	buf := make([]byte, disk.BlockSize)
	for i := uint64(0); i < 1000; i++ {
		j.Read(j.home+i, buf)
	}
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		if err := j.Read(j.home+uint64(i)%1000, buf); err != nil {
			b.Fatal(err)
		}
	}
}

// A look-up of the layer above: no copy.
func BenchmarkLookupCached(b *testing.B) {
	j := benchJournal(b, disk.NewMem(40000*disk.BlockSize))
	buf := make([]byte, disk.BlockSize)
	for i := uint64(0); i < 1000; i++ {
		j.Read(j.home+i, buf)
	}
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		j.core.Mutex.Lock()
		x, _ := journalreader.Lookup(j.core, j.home+uint64(i)%1000)
		j.core.Mutex.Unlock()
		if x == nil {
			b.Fatal("not cached")
		}
	}
}

// One block, nobody waits.
func BenchmarkCommitAsync(b *testing.B) {
	j := benchJournal(b, benchFile(b, 40000))
	data := make([]byte, disk.BlockSize)
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		if err := j.Commit([]Write{{j.home + uint64(i)%300, data}}, false); err != nil {
			b.Fatal(err)
		}
	}
}

// Three blocks, durable, with so many clients at a time.
func BenchmarkCommitDurable(b *testing.B) {
	for _, n := range []int{1, 8, 32} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			j := benchJournal(b, benchFile(b, 40000))
			data := make([]byte, disk.BlockSize)
			b.ResetTimer()
			var next atomic.Int64
			var wg sync.WaitGroup
			for c := 0; c < n; c++ {
				wg.Add(1)
				go func() {
					defer wg.Done()
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						a := j.home + uint64(i*7%20000)
						if err := j.Commit([]Write{{a, data}, {a + 1, data}, {a + 2, data}}, true); err != nil {
							b.Error(err)
						}
					}
				}()
			}
			wg.Wait()
			b.StopTimer()
			s := j.Stats()
			b.ReportMetric(float64(s.Barriers)/float64(b.N), "barriers/op")
		})
	}
}

// Transactions of 64 KiB one after the other, against the same bytes written
// sequentially with a barrier each 2 MiB.
func BenchmarkStream(b *testing.B) {
	const tx = 16
	b.Run("device", func(b *testing.B) {
		d := benchFile(b, 100000)
		defer d.Close()
		bufs := make([][]byte, tx)
		for i := range bufs {
			bufs[i] = make([]byte, disk.BlockSize)
		}
		b.SetBytes(tx * disk.BlockSize)
		b.ResetTimer()
		for i := 0; i < b.N; i++ {
			if err := d.WriteAt(uint64(i*tx%80000), bufs); err != nil {
				b.Fatal(err)
			}
			if i%32 == 31 {
				d.Barrier()
			}
		}
		d.Barrier()
	})
	b.Run("journal", func(b *testing.B) {
		j := benchJournal(b, benchFile(b, 100000))
		data := make([]byte, disk.BlockSize)
		b.SetBytes(tx * disk.BlockSize)
		b.ResetTimer()
		for i := 0; i < b.N; i++ {
			ws := make([]Write, tx)
			for k := range ws {
				ws[k] = Write{j.home + uint64((i*tx+k)%80000), data}
			}
			if err := j.Commit(ws, false); err != nil {
				b.Fatal(err)
			}
		}
		if err := j.Flush(); err != nil {
			b.Fatal(err)
		}
	})
}

// The verified code's share of a commit: the device is memory.
func BenchmarkCommitAsyncMem(b *testing.B) {
	j := benchJournal(b, disk.NewMem(40000*disk.BlockSize))
	data := make([]byte, disk.BlockSize)
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		if err := j.Commit([]Write{{j.home + uint64(i)%300, data}}, false); err != nil {
			b.Fatal(err)
		}
	}
}

// Commits of large new data, which go straight home, and the look at the header that comes before each.
func BenchmarkDirect(b *testing.B) {
	const free = 30000
	p := Params{Units: 512, Ring: 8191, Key: [32]byte{1}}
	p = coded(p, free+254)
	p.Bitmap = p.Home()
	p.First, p.Limit = p.Bitmap+2, p.Bitmap+2+free
	d := benchFile(b, sizeOf(p))
	if err := Format(d, p); err != nil {
		b.Fatal(err)
	}
	j, err := Open(d, p, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := j.Close(); err != nil {
			b.Error(err)
		}
		d.Close()
	})
	for a := p.Bitmap; a < p.First; a++ { // so that it is known what is free
		if err := j.Read(a, make([]byte, disk.BlockSize)); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("look", func(b *testing.B) {
		for b.Loop() {
			if !journalthreads.Guard(j.core) {
				b.Fatal(j.Failure())
			}
		}
	})
	for _, n := range []uint64{8, 64, 256} {
		b.Run(fmt.Sprintf("commit%d", n), func(b *testing.B) {
			data, at := make([]byte, disk.BlockSize), uint64(0)
			ws := make([]Write, n)
			for b.Loop() {
				for i := range ws {
					ws[i] = Write{p.First + at%free, data}
					j.Bulk(ws[i].Addr)
					at++
				}
				if err := j.Commit(ws, true); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
