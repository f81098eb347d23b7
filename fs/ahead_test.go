package fs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"log/slog"
	"regexp"
	"runtime"
	"sync"
	"testing"
	"time"

	"tansy/disk"
	"tansy/fs/internal/background"
)

// numbered is a device that notes which blocks of a file were read, which begin with fileMark and their numbers.
type numbered struct {
	disk.Disk
	mu   sync.Mutex
	read map[uint64]int
	err  error         // of reads of the file
	gate chan struct{} // if not nil, reads of the file end when it is closed
}

const fileMark = 0x66a1b2c3

func (d *numbered) ReadAt(a uint64, bufs [][]byte) error {
	err := d.Disk.ReadAt(a, bufs)
	d.mu.Lock()
	var gate chan struct{}
	for _, b := range bufs {
		if binary.LittleEndian.Uint64(b) == fileMark {
			d.read[binary.LittleEndian.Uint64(b[8:])]++
			err, gate = errors.Join(err, d.err), d.gate
		}
	}
	d.mu.Unlock()
	if gate != nil {
		<-gate
	}
	return err
}

func (d *numbered) Unwrap() disk.Disk { return d.Disk }

// ahead tells whether the n blocks from b on were read.
func (d *numbered) ahead(b, n uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range n {
		if d.read[b+i] == 0 {
			return false
		}
	}
	return true
}

// coldFile is a volume with a file of n blocks that are not in the cache, on a device on which a READ that takes as
// long as slow waits.
func coldFile(t *testing.T, n uint64, slow time.Duration) (v *FS, d *numbered, h Handle) {
	mem := disk.NewMem(16384 * disk.BlockSize)
	if err := Mkfs(mem, MkfsOptions{Zeroed: true, Inodes: 256, LogBytes: 8 << 20}); err != nil {
		t.Fatal(err)
	}
	v, err := Open(mem, Options{})
	if err != nil {
		t.Fatal(err)
	}
	h = create(t, v, &Cred{}, v.Root(), "file")
	for b := range n {
		block := bytes.Repeat([]byte{byte(b)}, BlockSize)
		binary.LittleEndian.PutUint64(block, fileMark)
		binary.LittleEndian.PutUint64(block[8:], b)
		write(t, v, h, b*BlockSize, string(block))
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	d = &numbered{Disk: mem, read: map[uint64]int{}}
	if v, err = Open(d, Options{Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	v.ahead.Slow = slow
	return v, d, h
}

// readBlocks reads n blocks from b on, and waits for what is read ahead.
func readBlocks(t *testing.T, v *FS, h Handle, b, n uint64) {
	t.Helper()
	got := read(t, v, h, b*BlockSize, uint32(n*BlockSize))
	for i := range n {
		if x := binary.LittleEndian.Uint64([]byte(got[i*BlockSize+8:])); x != b+i {
			t.Fatalf("block %d is %d", b+i, x)
		}
	}
	v.ahead.Wait()
}

// A file on a slow device that is read in order, or in steps, was read before it is asked for, and once; on a quick one
// it is not.
func TestAhead(t *testing.T) {
	const n = 2048
	for _, c := range []struct {
		name  string
		slow  time.Duration
		size  uint64 // of a READ, blocks
		step  uint64 // to the next one
		after uint64 // READs after which all was read ahead
	}{
		{"in order", 0, 16, 16, 2},
		{"small", 0, 1, 1, 32},
		{"large", 0, 256, 256, 2},
		{"in steps", 0, 4, 300, 5},
		{"quick", time.Hour, 16, 16, n},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, d, h := coldFile(t, n, c.slow)
			reads := uint64(0)
			for b := uint64(0); b+c.size <= n; b += c.step {
				if was := d.ahead(b, c.size); was != (reads >= c.after) {
					t.Errorf("READ %d at block %d: read ahead: %v", reads, b, was)
				}
				readBlocks(t, v, h, b, c.size)
				reads++
			}
			if err := v.Close(); err != nil {
				t.Error(err)
			}
			for b, times := range d.read {
				if times != 1 {
					t.Errorf("block %d was read %d times", b, times)
				}
			}
			if want := int(reads * c.size); c.step == c.size && len(d.read) != want {
				t.Errorf("%d blocks were read, want %d", len(d.read), want)
			}
		})
	}
}

// A READ of what is being read ahead waits for that, and does not read it again.
func TestAheadMeets(t *testing.T) {
	v, d, h := coldFile(t, 512, 0)
	read(t, v, h, 0, 16*BlockSize)
	gate := make(chan struct{})
	d.mu.Lock()
	d.gate = gate
	d.mu.Unlock()
	v.ahead.Read(background.File(h), 16*BlockSize, 16*BlockSize, 512*BlockSize, true) // as if these had been read
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		read(t, v, h, 40*BlockSize, 16*BlockSize)
	}()
	for stacks := make([]byte, 1<<20); ; runtime.Gosched() { // until it waits for one or the other
		d.mu.Lock()
		twice := d.read[40] > 1
		d.mu.Unlock()
		if twice || regexp.MustCompile(`(?s)\[chan receive\]:\n[^[]*\(\*Ahead\)\.Await`).Match(stacks[:runtime.Stack(stacks, true)]) {
			break
		}
	}
	close(gate)
	<-answered
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	if d.read[40] != 1 {
		t.Errorf("what was read ahead was read %d times", d.read[40])
	}
}

// What cannot be read ahead does no harm: who asks for it hears of it. A file that is gone is nothing to read.
func TestAheadFails(t *testing.T) {
	v, d, h := coldFile(t, 512, 0)
	readBlocks(t, v, h, 0, 16)
	d.mu.Lock()
	d.err = errors.New("no")
	d.mu.Unlock()
	for want, h := range map[error]Handle{ErrStale: {h.Ino, h.Gen + 1}, ErrInval: v.Root(), nil: h} {
		if err := (duties{v}).Prefetch(background.File(h), 100*BlockSize, 10*BlockSize); err != want {
			t.Errorf("%v: %v, want %v", h, err, want)
		}
	}
	if _, _, _, err := v.Read(&Cred{}, h, 100*BlockSize, BlockSize); err != ErrIO {
		t.Errorf("a READ of what the device does not give: %v", err)
	}
	d.mu.Lock()
	d.err = nil
	d.mu.Unlock()
	readBlocks(t, v, h, 100, 16)
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}

// Close waits for what is being read, and nothing is read after it.
func TestAheadCloses(t *testing.T) {
	v, d, h := coldFile(t, 2048, 0)
	for b := uint64(0); b < 64; b += 16 {
		read(t, v, h, b*BlockSize, 16*BlockSize)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	before := len(d.read)
	v.ahead.Read(background.File(h), 64*BlockSize, 16*BlockSize, 2048*BlockSize, true)
	v.ahead.Wait()
	if len(d.read) != before {
		t.Error("it is read ahead on a volume that is closed")
	}
}
