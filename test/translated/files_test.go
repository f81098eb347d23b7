package translated

import (
	"bytes"
	"flag"
	"math/rand"
	"testing"
	"time"

	"tansy/internal/runtime/dtxn"
)

var seed = flag.Int64("fsseed", 0, "seed of the random tests (0 = a new one)")

func random(t testing.TB) *rand.Rand {
	s := *seed
	if s == 0 {
		s = time.Now().UnixNano()
	}
	t.Logf("-fsseed=%d", s)
	return rand.New(rand.NewSource(s))
}

// A model is a file: its blocks that were written, and its size.
type model struct {
	size   uint64
	blocks map[uint64]*[4096]byte
}

func (m *model) write(off uint64, p []byte) {
	for len(p) > 0 {
		b := m.blocks[off/4096]
		if b == nil {
			b = new([4096]byte)
			m.blocks[off/4096] = b
		}
		n := copy(b[off%4096:], p)
		off, p = off+uint64(n), p[n:]
	}
	m.size = max(m.size, off)
}

func (m *model) read(off, n uint64) []byte {
	if off >= m.size {
		return nil
	}
	p := make([]byte, min(n, m.size-off))
	for i := uint64(0); i < uint64(len(p)); {
		c := 4096 - (off+i)%4096
		if b := m.blocks[(off+i)/4096]; b != nil {
			copy(p[i:], b[(off+i)%4096:])
		}
		i += c
	}
	return p
}

func (m *model) setSize(size uint64) {
	for n, b := range m.blocks {
		if n*4096 >= size {
			delete(m.blocks, n)
		} else if size < n*4096+4096 {
			clear(b[size%4096:])
		}
	}
	m.size = size
}

// where the levels of a block tree begin, in blocks
var starts = []uint64{0, 5, 11, 12, 12 + 511, 12 + 512, 12 + 512 + 511, 12 + 512 + 512*512 - 1, 12 + 512 + 512*512,
	12 + 512 + 512*512 + 512*512, 1<<27 - 3}

const maxSize = 1 << 39

func place(r *rand.Rand) uint64 {
	off := int64(starts[r.Intn(len(starts))]*4096) + int64(r.Intn(40000)) - 20000
	if r.Intn(3) == 0 {
		off = off / 4096 * 4096
	}
	return uint64(min(max(off, 0), maxSize))
}

// Files behave as the model says, at every level of the block trees, and give
// back every block.
func TestFiles(t *testing.T) {
	r := random(t)
	rounds := 6
	if testing.Short() {
		rounds = 1
	}
	for range rounds {
		v := newVolume(t, 20000, 64)
		files := map[uint64]*model{}
		pick := func() (uint64, *model) {
			i := r.Intn(len(files))
			for ino := uint64(0); ; ino++ {
				if m := files[ino]; m != nil {
					if i == 0 {
						return ino, m
					}
					i--
				}
			}
		}
		free := func(ino uint64) {
			for n := 0; ; n++ {
				before := v.inode(ino).shrink()
				done := v.freeSome(ino, uint64(1+r.Intn(40)))
				after := v.inode(ino).shrink()
				if done != (after == 0) {
					t.Fatalf("done %v, shrink %d", done, after)
				}
				if done {
					return
				}
				if after >= before && n > 0 {
					t.Fatalf("no progress at %d", after)
				}
			}
		}
		for step := range 1200 {
			if len(files) == 0 || len(files) < 6 && r.Intn(20) == 0 {
				ino := v.create()
				if files[ino] != nil {
					t.Fatalf("inode %d allocated twice", ino)
				}
				files[ino] = &model{blocks: map[uint64]*[4096]byte{}}
			}
			ino, m := pick()
			switch k := r.Intn(100); {
			case k < 45:
				off := place(r)
				p := make([]byte, 1+r.Intn([]int{10, 5000, 20000, 400000}[r.Intn(4)]))
				if r.Intn(3) == 0 {
					p = make([]byte, (len(p)+4095)/4096*4096)
				}
				r.Read(p)
				q := bytes.Clone(p)
				end := off + uint64(len(p))
				refuse := end > maxSize || v.inode(ino).shrink() != 0 && end > m.size
				if ok := v.write(ino, off, p); ok == refuse {
					t.Fatalf("step %d: write %d at %d: %v, expected %v", step, len(p), off, ok, !refuse)
				} else if ok {
					m.write(off, q)
				}
				if !bytes.Equal(p, q) {
					t.Fatal("write changed its source")
				}
			case k < 60:
				size := place(r)
				refuse := size > maxSize || size > m.size && v.inode(ino).shrink() != 0
				if ok := v.setSize(ino, size); ok == refuse {
					t.Fatalf("step %d: size %d -> %d: %v, expected %v", step, m.size, size, ok, !refuse)
				} else if ok {
					m.setSize(size)
				}
			case k < 65:
				free(ino)
			case k < 67:
				if m.size != 0 && v.remove(ino) {
					t.Fatal("inode with contents freed")
				}
				if !v.setSize(ino, 0) {
					t.Fatal("cannot cut to 0")
				}
				free(ino)
				gen := v.inode(ino).gen()
				if !v.remove(ino) {
					t.Fatal("cannot free")
				}
				if p := v.inode(ino); p.typ() != 0 || p.gen() != gen {
					t.Fatal("bad free inode")
				}
				delete(files, ino)
				continue
			case k < 70:
				if n := m.size / 4096; n > 0 {
					n = min(n-1, place(r)/4096)
					var p []byte
					v.run(func(tx *dtxn.Txn) bool {
						p = v.fs.ReadBlockOf(tx, v.fs.GetInode(tx, ino, false), ino, n, false).Data()
						return true
					})
					if !bytes.Equal(p, m.read(n*4096, 4096)) {
						t.Fatalf("step %d: block %d differs", step, n)
					}
				}
			default:
				off, n := place(r), uint64(r.Intn(50000))
				if got, want := v.read(ino, off, n), m.read(off, n); !bytes.Equal(got, want) {
					t.Fatalf("step %d: read %d at %d of inode %d differs (%d, %d bytes)", step, n, off, ino, len(got), len(want))
				}
			}
			if got := v.inode(ino).size(); got != m.size {
				t.Fatalf("step %d: size %d, expected %d", step, got, m.size)
			}
		}
		v.check()
		for ino := range files {
			if !v.setSize(ino, 0) {
				t.Fatal("cannot cut to 0")
			}
			free(ino)
			if !v.remove(ino) {
				t.Fatal("cannot free")
			}
		}
		if n := v.check(); n != 0 {
			t.Fatalf("%d blocks left over", n)
		}
	}
}

// A file of 512 GiB that is a hole but for its last byte is cut in a few steps.
func TestHugeHole(t *testing.T) {
	v := newVolume(t, 20000, 64)
	ino := v.create()
	if !v.write(ino, maxSize-1, []byte{1}) || v.write(ino, maxSize, []byte{1}) {
		t.Fatal("wrong limit")
	}
	if n := v.check(); n != 4 {
		t.Fatalf("%d blocks held", n)
	}
	if !v.setSize(ino, 10) {
		t.Fatal("cannot cut")
	}
	if v.write(ino, 5, make([]byte, 10)) || !v.write(ino, 5, make([]byte, 5)) {
		t.Fatal("only writes below the size go through before the file is shrunk")
	}
	for n := 0; !v.freeSome(ino, 4); n++ {
		if n == 100 {
			t.Fatal("too many steps")
		}
	}
	if n := v.check(); n != 1 {
		t.Fatalf("%d blocks held", n)
	}
}

// When the volume is full a write fails, and nothing leaks.
func TestFull(t *testing.T) {
	v := newVolume(t, 1000, 64)
	free, err := v.sys.Free(dtxn.Blocks)
	if err != nil {
		t.Fatal(err)
	}
	ino := v.create()
	var off uint64
	p := make([]byte, 10*4096)
	for v.write(ino, off, p) {
		off += uint64(len(p))
	}
	if n := v.check(); n < int(free)-12 {
		t.Fatalf("only %d of %d blocks could be used", n, free)
	}
	if !v.setSize(ino, 0) || !v.freeSome(ino, 10000) || !v.remove(ino) {
		t.Fatal("cannot remove")
	}
	if n := v.check(); n != 0 {
		t.Fatalf("%d blocks left over", n)
	}
	// every inode can be had, and no more
	inos := map[uint64]bool{}
	for {
		var ok bool
		v.run(func(tx *dtxn.Txn) bool {
			ok, ino = v.fs.AllocInode(tx, 0, 1)
			return ok
		})
		if !ok {
			break
		}
		inos[ino] = true
	}
	if len(inos) != 61 || inos[0] || inos[1] || inos[2] {
		t.Fatalf("%d inodes", len(inos))
	}
}
