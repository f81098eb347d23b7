package fs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"

	"tansy/disk"
	"tansy/fs/internal/background"
	"tansy/internal/runtime/dtxn"
	"tansy/journal"
)

// statOf is what FSSTAT says, which is also what Space does.
func statOf(t *testing.T, v *FS) Stat {
	t.Helper()
	s, _, err := v.Fsstat(v.Root())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := v.Space(); err != nil || again != s {
		t.Errorf("%+v, but %+v: %v", again, s, err)
	}
	return s
}

// highest is the last bit that is set of a bitmap.
func highest(t *testing.T, v *FS, start, limit uint64) (last uint64) {
	t.Helper()
	for b := range (limit + 32767) / 32768 {
		bitmap, err := v.sys.Committed(start + b)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range bitmap {
			for k := range 8 {
				if c>>k&1 != 0 {
					last = b*32768 + uint64(8*i+k)
				}
			}
		}
	}
	return last
}

// TestExtend: a volume has what lies before its ends: so much FSSTAT tells of, and so much can be used, to the last
// block and inode. When the ends grow, there is more at once, and what was there stays.
func TestExtend(t *testing.T) {
	const inodes = 1000
	v := endedFS(t, 20000, inodes, [2]uint64{500, 40}, Options{})
	g := v.geo
	data := bytes.Repeat([]byte("0123456789abcdef"), 4*BlockSize/16)
	var files []Handle
	for _, ends := range [][2]uint64{{500, 40}, {700, 41}, {701, 200}, {6000, 200}} {
		if err := v.extend(ends[0], ends[1]); err != nil {
			t.Fatal(err)
		}
		s := statOf(t, v)
		if s.TotalBytes != (ends[0]-g.Data0())*BlockSize || s.TotalFiles != ends[1]-3 {
			t.Errorf("ends %d: %+v", ends, s)
		}
		for s.FreeFiles > 0 {
			h := create(t, v, root, v.Root(), fmt.Sprint("f", len(files)))
			files = append(files, h)
			s.FreeFiles--
		}
		_, err := v.Create(root, v.Root(), []byte("more"), Guarded, nil, 0)
		want(t, err, ErrNoSpc)
		if n := highest(t, v, g.InodeBitmap(), inodes); n != ends[1]-1 {
			t.Errorf("the last inode in use is %d, the end is %d", n, ends[1])
		}
		big := files[len(files)-1]
		for off := uint64(0); ; off += BlockSize {
			if _, _, _, err = v.Write(root, big, off, data[:BlockSize], Unstable); err != nil {
				want(t, err, ErrNoSpc)
				break
			}
		}
		_, _, _, err = v.Write(root, files[0], uint64(len(files))<<20, data[:1], FileSync)
		want(t, err, ErrNoSpc)
		if s = statOf(t, v); s.FreeBytes > BlockSize || s.FreeFiles != 0 { // it would have needed an indirect one, too
			t.Errorf("ends %d: %+v", ends, s)
		}
		if n := highest(t, v, g.BlockBitmap(), g.Data1()); n != ends[0]-1 && n != ends[0]-2 {
			t.Errorf("the last block in use is %d, the end is %d", n, ends[0])
		}
		if _, err := v.Remove(root, v.Root(), fmt.Append(nil, "f", len(files)-1)); err != nil {
			t.Fatal(err)
		}
		files = files[:len(files)-1]
		for v.free.Step() {
		}
		if n, _, _, err := v.Write(root, files[0], 0, data, FileSync); int(n) != len(data) || err != nil {
			t.Fatal(n, err)
		}
	}
	got, _, _, err := v.Read(root, files[0], 0, uint32(len(data)))
	if err != nil || !bytes.Equal(got, data) {
		t.Error("the file is not what was written: ", err)
	}
	for _, ends := range [][2]uint64{{5999, 200}, {6000, 199}, {g.Data1() + 1, 200}, {6000, inodes + 1}} {
		if err := v.extend(ends[0], ends[1]); err == nil {
			t.Errorf("ends %d are taken", ends)
		}
	}
	if s := statOf(t, v); s.TotalBytes != (6000-g.Data0())*BlockSize || s.TotalFiles != 197 {
		t.Errorf("%+v", s)
	}
}

// roomy is a host that has room for so many blocks, and gives no more.
type roomy uint64

func (roomy) Reserve(uint64, uint64) error               { return nil }
func (roomy) Keep(uint64)                                {}
func (h roomy) Backed(a uint64) (lo, hi uint64, ok bool) { return a, uint64(h), a < uint64(h) }
func (h roomy) Room() (free, backed uint64)              { return 0, uint64(h) }
func (h roomy) Below(end uint64) uint64                  { return end }

// TestExtendOnHost: what the host has room for beside what is in use, and the volume has not, counts when it has it.
func TestExtendOnHost(t *testing.T) {
	const room = 10000
	v := endedFS(t, 20000, 1000, [2]uint64{5000, 0}, Options{host: roomy(room)})
	for _, c := range []struct{ end, free uint64 }{
		{5000, 5000 - v.geo.Data0()},
		{12000, room - room/256 - 1 - v.geo.Data0() - 1}, // one for the superblock's copy
	} {
		if err := v.extend(c.end, 1000); err != nil {
			t.Fatal(err)
		}
		if s := statOf(t, v); s.FreeBytes != c.free*BlockSize {
			t.Errorf("end %d: %d blocks are free, not %d", c.end, s.FreeBytes/BlockSize, c.free)
		}
	}
}

// TestExtendUnderLoad: files are made, written, and removed while the ends grow. What a call was told is there, and
// when all is gone, all is free.
func TestExtendUnderLoad(t *testing.T) {
	v := endedFS(t, 20000, 1000, [2]uint64{600, 20}, Options{})
	const workers = 4
	var wg sync.WaitGroup
	for w := range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			data := bytes.Repeat([]byte{byte('a' + w)}, 40*BlockSize)
			for i := range 60 {
				name := fmt.Append(nil, w, "-", i%7)
				n, err := v.Create(root, v.Root(), name, Unchecked, nil, 0)
				if err == nil {
					_, _, _, err = v.Write(root, n.Handle, uint64(i)*BlockSize, data, Unstable)
				}
				var got []byte
				if err == nil {
					got, _, _, err = v.Read(root, n.Handle, uint64(i)*BlockSize, uint32(len(data)))
				}
				if err == nil && !bytes.Equal(got, data) {
					t.Errorf("%s is not what was written", name)
				}
				if err != nil && err != ErrNoSpc {
					t.Error(err)
				}
				if i%3 == 0 {
					if _, err := v.Remove(root, v.Root(), name); err != nil && err != ErrNoEnt {
						t.Error(err)
					}
				}
			}
		}()
	}
	wg.Add(1)
	go func() {
		defer wg.Done()
		for i := uint64(1); i <= 100; i++ {
			if err := v.extend(600+i*50, 20+i); err != nil {
				t.Error(err)
			}
			s, _, err := v.Fsstat(v.Root())
			if err != nil || s.TotalBytes != (600+i*50-v.geo.Data0())*BlockSize || s.TotalFiles != 17+i ||
				s.FreeBytes > s.TotalBytes || s.FreeFiles > s.TotalFiles {
				t.Errorf("%+v, %v", s, err)
			}
		}
	}()
	wg.Wait()
	for w := range workers {
		for i := range 7 {
			if _, err := v.Remove(root, v.Root(), fmt.Append(nil, w, "-", i)); err != nil && err != ErrNoEnt {
				t.Error(err)
			}
		}
	}
	for v.free.Step() {
	}
	if s := statOf(t, v); s.FreeBytes != s.TotalBytes-BlockSize || s.FreeFiles != s.TotalFiles {
		t.Errorf("%+v", s)
	}
}

// TestScrubEnds: a pass looks at what the volume has so far, and says how much that is.
func TestScrubEnds(t *testing.T) {
	d := disk.NewMem(rotBlocks * disk.BlockSize)
	if err := Mkfs(d, MkfsOptions{Zeroed: true, Inodes: 256}); err != nil {
		t.Fatal(err)
	}
	s, _, err := readSuper(d)
	if err != nil {
		t.Fatal(err)
	}
	g := s.Geometry()
	if b, i := endsOf(s); b != g.Data1() || i != g.Ninode() {
		t.Error(b, i)
	}
	o := Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	o.dmg = background.NewDamage(g, journalParams(s), d.Size(), o.Log)
	l := layoutOf(s)
	l.Maps[dtxn.Blocks].End = g.Data0() + 100
	sys, stop, err := openSystem(d, s, l, o)
	if err != nil {
		t.Fatal(err)
	}
	o.above(d)
	v, err := start(sys, g, identity{}, o)
	if err != nil {
		t.Fatal(err)
	}
	v.stop = stop
	// a bit behind the end: were it looked at, it would be one that is in use
	at := g.Data0() + 200
	err = v.sys.Run(true, false, func(x *dtxn.Txn) error {
		return x.TryWriteBit(g.BlockBitmap()+at/32768, at%32768, true)
	})
	if err != nil {
		t.Fatal(err)
	}
	var before uint64
	for i, end := range []uint64{g.Data0() + 100, g.Data1()} {
		if err := v.extend(end, g.Ninode()); err != nil {
			t.Fatal(err)
		}
		total := duties{v}.InUse()
		n, err := duties{v}.Check(context.Background(), journal.Scrub{
			Before: func(context.Context, uint64) error { return nil },
			Found:  func(journal.Finding) {}, Progress: func(journal.ScrubCounts) {},
		})
		if err != nil || n.Done() != total || i > 0 && total != before+1 {
			t.Errorf("%d of %d, %d before: %v", n.Done(), total, before, err)
		}
		before = total
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}
