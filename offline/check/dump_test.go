package check

import (
	"bytes"
	"fmt"
	"io"
	"math/rand"
	"strings"
	"testing"

	"tansy/disk"
	"tansy/test/kit/replay"
)

func TestDump(t *testing.T) {
	s := newSample(t)
	p, err := NewDumper(s.image())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		show func(w io.Writer) error
		want []string
	}{
		{"super", p.Super, []string{"5000 blocks", "inodes      600", "superblock copy  blocks 4999 to 4999"}},
		{"log", p.Log, []string{"0 blocks are newer"}},
		{"file", func(w io.Writer) error { return p.Inode(w, s.file) },
			[]string{"regular file", "links       3", "size        80004", "indirect block of level 1", "0 to 11 of the file"}},
		{"holey file", func(w io.Writer) error { return p.Inode(w, s.holey) },
			[]string{"indirect block of level 3", "300000 to 300000 of the file"}},
		{"shrunk file",
			func(w io.Writer) error { return p.Inode(w, s.shrunk) }, []string{"wait to be freed", "flags       0x1"}},
		{"directory", func(w io.Writer) error { return p.Dir(w, s.dir) }, []string{`"f17"`, `"symlink"`}},
	} {
		var b bytes.Buffer
		if err := c.show(&b); err != nil {
			t.Error(err)
		}
		for _, x := range c.want {
			if !strings.Contains(b.String(), x) {
				t.Errorf("%s: %q is not in\n%s", c.what, x, b.String())
			}
		}
	}
	if p.Dir(io.Discard, s.file) == nil || p.Inode(io.Discard, 0) == nil || p.Inode(io.Discard, 600) == nil {
		t.Error("no error for what is not there")
	}
}

// No content makes a dump panic, or run for ever.
func TestDumpRandomDamage(t *testing.T) {
	r := rand.New(rand.NewSource(int64(replay.Seed(t))))
	s := newSample(t)
	clean := s.image()
	var used []uint64
	for a := s.geo.InodeTable(); a < s.geo.Data1(); a++ {
		if !zeros(get(t, clean, a)) {
			used = append(used, a)
		}
	}
	for range 100 {
		d := newOverlay(s.image())
		for range 1 + r.Intn(5) {
			b := get(t, d, used[r.Intn(len(used))])
			for range r.Intn(20) { // pointers into the volume, mostly
				off := r.Intn(512) * 8
				clear(b[off : off+8])
				b[off], b[off+1] = byte(r.Intn(256)), byte(r.Intn(12))
			}
			put(t, d, used[r.Intn(len(used))], b)
		}
		p, err := NewDumper(d)
		if err != nil {
			t.Fatal(err)
		}
		p.Super(io.Discard)
		for ino := range uint64(320) {
			p.Inode(io.Discard, ino)
			p.Dir(io.Discard, ino)
		}
	}
}

func TestDumpWithoutSuperblock(t *testing.T) {
	if _, err := NewDumper(disk.NewMem(100 * disk.BlockSize)); err == nil {
		t.Error("no error")
	}
	s := newSample(t)
	d := s.image()
	put(t, d, 0, make([]byte, disk.BlockSize))
	if _, err := NewDumper(d); err != nil {
		t.Error("the copy of the superblock was not used:", err)
	}
	const warning = "its copy may be of a volume that was here before"
	said := func(show func(p *Dumper, w io.Writer) error) string {
		t.Helper()
		p, err := NewDumper(d)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := show(p, &b); err != nil {
			t.Error(err)
		}
		return b.String()
	}
	shows := []func(p *Dumper, w io.Writer) error{
		(*Dumper).Super, (*Dumper).Log,
		func(p *Dumper, w io.Writer) error { return p.Inode(w, rootIno) },
		func(p *Dumper, w io.Writer) error { return p.Dir(w, rootIno) },
	}
	for i, show := range shows {
		if text := said(show); strings.Contains(text, warning) {
			t.Errorf("%d: without a reason:\n%s", i, text)
		}
	}
	for _, a := range []uint64{1, 2} { // both places of the first page of codes: another volume's beginning was here
		put(t, d, a, make([]byte, disk.BlockSize))
	}
	for i, show := range shows {
		if text := said(show); !strings.Contains(text, warning) {
			t.Errorf("%d: nothing is said of whose copy it may be:\n%s", i, text)
		}
	}
}

// short is a device that has lost its end.
type short struct{ disk.Disk }

func (short) Size() uint64 { return 4000 }

// What is wrong is told as a check tells it, and what can be shown is shown.
func TestDumpOfShortDevice(t *testing.T) {
	p, err := NewDumper(short{newSample(t).image()})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := p.Super(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"superblock: the volume has 5000 blocks, but the device only 4000", "inodes      600"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}

// A log that cannot be used, and one that cannot be read, keep nothing else from being
// printed, and are named.
func TestDumpWithoutLog(t *testing.T) {
	s := newSample(t)
	damaged := s.image()
	both := []uint64{s.log(), s.sb.Geometry().InodeBitmap() - 1} // the header and its copy
	for _, a := range both {
		header := get(t, damaged, a)
		header[30] ^= 1
		put(t, damaged, a, header)
	}
	for _, c := range []struct {
		what string
		d    disk.Disk
	}{
		{"damaged", damaged},
		{"unreadable", badBlocks(s.image(), append(both, s.log()+1, s.log()+2)...)},
	} {
		for _, show := range []struct {
			what string
			f    func(p *Dumper, w io.Writer) error
			want []string
		}{
			{"super", (*Dumper).Super, []string{"inodes      600"}},
			{"log", (*Dumper).Log, []string{fmt.Sprintf("problem     log: block %d: the log", s.log()), "warning"}},
			{"inode", func(p *Dumper, w io.Writer) error { return p.Inode(w, s.file) },
				[]string{fmt.Sprintf("log: block %d", s.log()), "warning", "links       3"}},
			{"dir", func(p *Dumper, w io.Writer) error { return p.Dir(w, s.dir) },
				[]string{fmt.Sprintf("log: block %d", s.log()), "warning", `"f17"`}},
		} {
			p, err := NewDumper(c.d)
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := show.f(p, &b); err != nil {
				t.Errorf("%s of a volume with a log %s: %v", show.what, c.what, err)
			}
			for _, x := range show.want {
				if !strings.Contains(b.String(), x) {
					t.Errorf("%s of a volume with a log %s: %q is not in\n%s", show.what, c.what, x, b.String())
				}
			}
		}
	}
}
