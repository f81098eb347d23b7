package fs

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"tansy/disk"
)

// logLines is a log of which a test takes the lines that it waits for.
type logLines chan string

func (l logLines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

// await returns the next line that has all texts.
func (l logLines) await(t *testing.T, texts ...string) string {
	t.Helper()
	return l.awaitAll(t, texts)[0]
}

// awaitAll returns the next line for each list of texts, which has all of the list. The lines may come in any order, as
// those of several goroutines do.
func (l logLines) awaitAll(t *testing.T, lists ...[]string) []string {
	t.Helper()
	found := make([]string, len(lists))
	late := time.After(time.Minute)
	for left := len(lists); left > 0; {
		select {
		case line := <-l:
			for i, texts := range lists {
				missing := func(s string) bool { return !strings.Contains(line, s) }
				if found[i] == "" && !slices.ContainsFunc(texts, missing) {
					found[i] = line
					left--
					break
				}
			}
		case <-late:
			t.Fatal("the log has no line with one of", lists, "but", found)
		}
	}
	return found
}

// A rotten is a volume in use whose device a test damages.
type rotten struct {
	t   *testing.T
	d   *disk.Mem
	v   *FS
	log logLines
	ino map[string]uint64
}

const rotBlocks = 6000

// newRotten makes /f (three blocks), /a/b/c/g (with indirect blocks), /a/b/link, and opens the volume anew, so that
// nothing is in memory.
func newRotten(t *testing.T, o Options) *rotten {
	t.Helper()
	x := &rotten{t: t, d: disk.NewMem(rotBlocks * disk.BlockSize), log: make(logLines, 10000), ino: map[string]uint64{}}
	if err := Mkfs(x.d, MkfsOptions{Zeroed: true, Inodes: 256}); err != nil {
		t.Fatal(err)
	}
	v, err := Open(x.d, Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	must := func(n Node, err error) Handle {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return n.Handle
	}
	root := &Cred{}
	write := func(h Handle, size int) {
		t.Helper()
		if n, _, _, err := v.Write(root, h, 0, bytes.Repeat([]byte("rotten!\n"), size/8), Unstable); err != nil || int(n) != size {
			t.Fatal(n, err)
		}
	}
	f := must(v.Create(root, v.Root(), []byte("f"), Guarded, nil, 0))
	write(f, 3*BlockSize)
	at := v.Root()
	for _, name := range []string{"a", "b", "c"} {
		at = must(v.Mkdir(root, at, []byte(name), nil))
		x.ino[name] = at.Ino
	}
	g := must(v.Create(root, at, []byte("g\n\xff"), Guarded, nil, 0))
	write(g, 40*BlockSize)
	x.ino["f"], x.ino["g"] = f.Ino, g.Ino
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	o.Log = slog.New(slog.NewTextHandler(x.log, nil))
	if x.v, err = Open(x.d, o); err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *rotten) block(a uint64) []byte {
	b := make([]byte, BlockSize)
	if err := x.d.ReadAt(a, [][]byte{b}); err != nil {
		x.t.Fatal(err)
	}
	return b
}

// pointer is block pointer i of a file, on the device.
func (x *rotten) pointer(file string, i uint64) uint64 {
	ino := x.ino[file]
	return binary.LittleEndian.Uint64(x.block(x.v.geo.InodeTable() + ino/16)[ino%16*256+136+8*i:])
}

func (x *rotten) rot(a uint64) {
	b := x.block(a)
	b[77] ^= 4
	if err := x.d.WriteAt(a, [][]byte{b}); err != nil {
		x.t.Fatal(err)
	}
}

func (x *rotten) close() {
	x.t.Helper()
	if err := x.v.Close(); err != nil {
		x.t.Error(err)
	}
}

// TestReadNames: when a read meets it, too.
func TestReadNames(t *testing.T) {
	x := newRotten(t, Options{})
	x.rot(x.pointer("f", 1))
	for range 3 {
		if _, _, _, err := x.v.Read(&Cred{}, Handle{x.ino["f"], 1}, 0, 3*BlockSize); err != ErrIO {
			t.Error(err)
		}
	}
	x.log.await(t, "contents of a file", "file=/f", "offset=4096")
	x.close()
	close(x.log)
	for line := range x.log {
		if strings.Contains(line, "a damaged block is") {
			t.Error("told twice:", line)
		}
	}
}

// TestVital says what a volume cannot do without.
func TestVital(t *testing.T) {
	x := newRotten(t, Options{})
	defer x.close()
	d, g := x.v.dmg, x.v.geo
	first := d.Params.Start - 2*d.Params.Pages
	for a := range uint64(rotBlocks) {
		vital := a >= g.InodeBitmap() && a < g.InodeTable() || a >= d.Params.Start-2 && a < d.Params.Start || a >= first && a < first+2
		if (d.Vital(a) != "") != vital {
			t.Errorf("block %d: %q", a, d.Vital(a))
		}
	}
}
