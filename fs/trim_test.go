package fs_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"tansy/disk"
	"tansy/fs"
)

// opTrim gives all free room back, while others work, and adds how much that was.
func opTrim(sum *atomic.Uint64) op {
	return op{"trim", false, func(v *fs.FS) error {
		n, err := v.Trim(nil)
		sum.Add(n)
		return err
	}}
}

// trims is a workload of files of several sizes, which are removed, and of giving back their room in between.
func trims(dir string, n int, sum *atomic.Uint64) (ops []op) {
	for i := range n {
		p := fmt.Sprint(dir, "/f", i%3)
		ops = append(ops, opCreate(p), opWrite(p, 0, (5+40*(i%2))*fs.BlockSize, fs.Stability(i%3)),
			opWrite(p, 50*fs.BlockSize, 20*fs.BlockSize, fs.FileSync),
			opRemove(p), opTrim(sum))
	}
	return ops
}

// The machine crashes at every moment while room is given back, and while others take the blocks whose room that
// is: on a small volume, where these are used again soon.
func TestCrashTrim(t *testing.T) {
	r := random(t)
	var sum atomic.Uint64
	testCrash(t, r, setting{blocks: 2200, used: 550, work: [][]op{trims(client(0), 3, &sum)}}, 2)
	testCrash(t, r, setting{blocks: 2200, used: 550,
		work: [][]op{trims(client(0), 3, &sum), bulk(r, client(1), 2, 20), trims(client(2), 2, &sum)}}, 9)
	if sum.Load() == 0 {
		t.Error("nothing was given back")
	}
}

// What is given back goes past the log: all of it is discarded, and no zeros are written.
func TestTrimGoesStraight(t *testing.T) {
	mem := disk.NewMem(20000 * disk.BlockSize)
	mkfs(t, mem, fs.MkfsOptions{Inodes: 256, Zeroed: true})
	v := open(t, mem, fs.Options{})
	for _, o := range []op{opCreate("/f"), opWrite("/f", 0, 200*fs.BlockSize, fs.FileSync), opWrite("/f", 200*fs.BlockSize, 200*fs.BlockSize, fs.FileSync),
		opCreate("/g"), opWrite("/g", 0, 100*fs.BlockSize, fs.FileSync), opRemove("/f")} {
		if err := o.do(v); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, v, "/")
	if _, err := v.Trim(nil); err != nil {
		t.Fatal(err)
	}
	first := v.Stats().Journal
	n, err := v.Trim(nil) // the same once more: nothing says that it is not needed
	if err != nil || n < 15000*fs.BlockSize {
		t.Fatalf("%d bytes were given back: %v", n, err)
	}
	if st := v.Stats().Journal; st.WrittenBlocks-first.WrittenBlocks > (st.DiscardedBlocks-first.DiscardedBlocks)/10 {
		t.Errorf("%d blocks were written to discard %d",
			st.WrittenBlocks-first.WrittenBlocks, st.DiscardedBlocks-first.DiscardedBlocks)
	}
	if after := tree(t, v, "/"); after != before {
		t.Errorf("then:\n%s\nbefore:\n%s", after, before)
	}
	closeFS(t, v)
	mustCheck(t, mem)
}

// Files that are written while the room of free blocks is given back all the time, on a volume that is nearly
// full, are what was written. No write fails for want of blocks that are only held.
func TestTrimBesideWriters(t *testing.T) {
	mem := disk.NewMem(4000 * disk.BlockSize)
	mkfs(t, mem, fs.MkfsOptions{Inodes: 256, Zeroed: true})
	v := open(t, mem, fs.Options{Log: slog.New(slog.DiscardHandler)})
	st, _, err := v.Fsstat(v.Root())
	if err != nil {
		t.Fatal(err)
	}
	const writers = 4
	size := int(st.FreeBytes) * 9 / 10 / writers / fs.BlockSize * fs.BlockSize
	var all sync.WaitGroup
	var ended atomic.Int32
	all.Go(func() {
		for ended.Load() < writers {
			if _, err := v.Trim(nil); err != nil {
				t.Error(err)
				return
			}
		}
	})
	rounds := 15
	if testing.Short() {
		rounds = 4
	}
	for w := range writers {
		all.Go(func() {
			defer ended.Add(1)
			for i := range rounds {
				name := []byte(fmt.Sprintf("f%d.%d", w, i))
				n, err := v.Create(root, v.Root(), name, fs.Guarded, &fs.SetAttr{}, 0)
				if err != nil {
					t.Error(err)
					return
				}
				data := bytes.Repeat([]byte{byte(16*w + i + 1)}, size)
				for off := 0; off < size; off += 48 << 10 {
					end := min(size, off+48<<10)
					if k, _, _, err := v.Write(root, n.Handle, uint64(off), data[off:end], fs.Unstable); err != nil || int(k) != end-off {
						t.Errorf("write at %d of %d: %d bytes, %v", off, size, k, err)
						return
					}
				}
				for off := 0; off < size; off += 512 << 10 {
					end := min(size, off+512<<10)
					if b, _, _, err := v.Read(root, n.Handle, uint64(off), uint32(end-off)); err != nil || !bytes.Equal(b, data[off:end]) {
						t.Errorf("read at %d: %d bytes, %v", off, len(b), err)
						return
					}
				}
				if _, err := v.Remove(root, v.Root(), name); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	closeFS(t, v)
	mustCheck(t, mem)
}

// When the device fails while room is given back, the volume refuses changes as after any such failure, and the
// next start finds it sound.
func TestTrimDeviceFails(t *testing.T) {
	step := uint64(1)
	if testing.Short() {
		step = 5
	}
	for n := uint64(1); ; n += step {
		mem := disk.NewMem(2200 * disk.BlockSize)
		mkfs(t, mem, fs.MkfsOptions{Inodes: 256, Zeroed: true})
		fault := disk.NewFault(mem, 1, nil)
		v, err := fs.Open(fault, fs.Options{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []op{
			opCreate("/keep"), opWrite("/keep", 0, 100000, fs.FileSync), opCreate("/f"), opWrite("/f", 0, 400000, fs.FileSync),
			opRemove("/f"), opCommit("/keep"),
		} {
			if err := o.do(v); err != nil {
				t.Fatal(err)
			}
		}
		before := tree(t, v, "/")
		fault.SetPlan(disk.FailFrom(fault.Ops()+n, disk.ErrInjected, disk.Write, disk.Barrier))
		_, err = v.Trim(nil)
		failed := v.Health() != nil
		if (err != nil) != failed {
			t.Errorf("failure %d: %v, and health %v", n, err, v.Health())
		}
		v.Close()
		v = open(t, mem, fs.Options{})
		if after := tree(t, v, "/"); after != before {
			t.Errorf("failure %d: then:\n%s\nbefore:\n%s", n, after, before)
		}
		closeFS(t, v)
		mustCheck(t, mem)
		if !failed {
			if n < 5 {
				t.Errorf("only %d operations", n)
			}
			return
		}
	}
}
