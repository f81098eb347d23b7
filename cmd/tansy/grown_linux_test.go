package main

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tansy/disk"
	tansyfs "tansy/fs"
	"tansy/test/kit/hosttest"
	"tansy/test/kit/nbdtest"
	"tansy/test/kit/nfsclient"
)

// larger is the warning about a device that is larger than its volume.
const larger = "bytes more than the volume uses"

// volumeBytes is the size of the volumes here.
const volumeBytes = 16 << 20

// A growing device has a volume of volumeBytes on it.
type growing struct {
	name func() string // of the device, as large as it is now
	size func(more int64)
}

// resize gives a file its size and more.
func resize(t *testing.T, path string) func(more int64) {
	return func(more int64) {
		t.Helper()
		if err := os.Truncate(path, volumeBytes+more); err != nil {
			t.Fatal(err)
		}
	}
}

// newImage makes a volume in an image.
func newImage(t *testing.T, flags ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "v.img")
	if code, said := tool(t, append([]string{"mkfs", path, "--size", "16M"}, flags...)...); code != exitOK {
		t.Fatal(said)
	}
	return path
}

func growingImage(t *testing.T, flags ...string) growing {
	path := newImage(t, flags...)
	return growing{func() string { return path }, resize(t, path)}
}

func growingLoop(t *testing.T, flags ...string) growing {
	path := newImage(t, flags...)
	dev := hosttest.Loop(t, path)
	return growing{func() string { return dev }, func(more int64) {
		resize(t, path)(more)
		hosttest.Run(t, "losetup", "-c", dev)
	}}
}

func growingExport(t *testing.T, flags ...string) growing {
	var s nbdtest.Server
	const most = 1 << 30
	whole := disk.NewMem(most)
	name := s.Start(t, disk.NewPrefix(whole, volumeBytes/disk.BlockSize))
	if code, said := tool(t, append([]string{"mkfs", name, "--force"}, flags...)...); code != exitOK {
		t.Fatal(said)
	}
	return growing{func() string { return name }, func(more int64) {
		size := uint64(volumeBytes + more)
		s := nbdtest.Server{Tail: size % disk.BlockSize}
		name = s.Start(t, disk.NewPrefix(whole, size/disk.BlockSize))
	}}
}

func growingCeph(t *testing.T, flags ...string) growing {
	image, name := onCeph(t, flags...)
	return growing{func() string { return name }, resize(t, image)}
}

// used has a server on a volume write a file, and end, and returns what the server said.
func used(t *testing.T, file string, flags ...string) string {
	t.Helper()
	p := startServe(t, flags...)
	c, err := nfsclient.Mount(p.addr)
	if err != nil {
		t.Fatal(err)
	}
	writeTo(t, c, file)
	c.Close()
	p.stop(t)
	return p.stderr.String()
}

// writeTo writes a file.
func writeTo(t *testing.T, c *nfsclient.Client, name string) {
	t.Helper()
	root := &tansyfs.Cred{}
	n, err := c.Create(root, c.Root(), []byte(name), tansyfs.Unchecked, &tansyfs.SetAttr{}, 0)
	if err == nil {
		_, _, _, err = c.Write(root, n.Handle, 0, make([]byte, 100000), tansyfs.FileSync)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Whatever opens a volume on a device that has grown says so once, and goes on as before; cut to its size again, the
// device holds a volume that was never larger.
func TestGrown(t *testing.T) {
	t.Parallel()
	for kind, x := range map[string]struct {
		of   func(*testing.T, ...string) growing
		more []int64
	}{
		"image":       {growingImage, []int64{4096, 512 << 20, 5000}},
		"loop device": {growingLoop, []int64{512 << 20}},
		"NBD":         {growingExport, []int64{4096, 5000}},
		"Ceph":        {growingCeph, []int64{512 << 20}},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			g := x.of(t)
			for _, more := range x.more {
				g.size(more)
				volume := []string{"--volume", g.name()}
				if kind == "Ceph" {
					volume = append(volume, "--lease", "1s")
				}
				said := map[string]string{"serve": used(t, "a", volume...)}
				for _, args := range [][]string{
					{"check", g.name(), "--data"}, {"repair", g.name()}, {"dump", g.name()}, {"dump", g.name(), "log"},
					{"dump", g.name(), "dir", "1"}, {"trim", g.name()},
				} {
					code, text := tool(t, args...)
					if code != exitOK {
						t.Errorf("%d more bytes: tansy %q: exit code %d", more, args, code)
					}
					said[strings.Join(args, " ")] = text
				}
				last := "--read-only"
				if kind == "Ceph" {
					last = "--standby"
				}
				p := startServe(t, append(volume, last)...)
				p.stop(t)
				said["serve "+last] = p.stderr.String()
				for what, text := range said {
					if strings.Count(text, larger) != 1 || strings.Contains(text, "damage") {
						t.Errorf("%d more bytes: tansy %s: want one warning, and no word of damage\n%s", more, what, text)
					}
				}
			}
			g.size(0)
			if code, said := tool(t, "check", g.name(), "--data"); code != exitOK || strings.Contains(said, larger) {
				t.Errorf("cut back: exit code %d\n%s", code, said)
			}
			g.size(100) // less than a block is never used
			if code, said := tool(t, "check", g.name(), "--data"); code != exitOK || strings.Contains(said, larger) {
				t.Errorf("100 more bytes: exit code %d\n%s", code, said)
			}
			g.size(-4096)
			for _, args := range [][]string{
				{"check", g.name()}, {"serve", "--volume", g.name()}, {"trim", g.name()},
			} {
				code, said := tool(t, args...)
				if code == exitOK || !strings.Contains(said, "the volume has 4096 blocks, but the device only 4095") {
					t.Errorf("cut short: tansy %q: exit code %d\n%s", args, code, said)
				}
			}
		})
	}
}

// A volume that was made to grow uses what its device became larger by, after tansy grow, again and again. Files stay.
func TestGrow(t *testing.T) {
	t.Parallel()
	for kind, of := range map[string]func(*testing.T, ...string) growing{
		"image": growingImage, "loop device": growingLoop, "NBD": growingExport, "Ceph": growingCeph,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			g := of(t, "--max-size", "1T")
			before := uint64(0)
			for i, more := range []int64{0, 8 << 20, 64 << 20, 512 << 20} {
				g.size(more)
				if code, said := tool(t, "grow", g.name()); code != exitOK || i > 0 && !strings.Contains(said, "before") {
					t.Fatalf("%d bytes more: exit code %d\n%s", more, code, said)
				}
				volume := []string{"--volume", g.name()}
				if kind == "Ceph" {
					volume = append(volume, "--lease", "1s")
				}
				p := startServe(t, volume...)
				c, err := nfsclient.Mount(p.addr)
				if err != nil {
					t.Fatal(err)
				}
				for k := range i {
					if _, err := c.Lookup(&tansyfs.Cred{}, c.Root(), []byte{'a' + byte(k)}); err != nil {
						t.Errorf("%d bytes more: a file is gone: %v", more, err)
					}
				}
				writeTo(t, c, string([]byte{'a' + byte(i)}))
				now, _, err := c.Fsstat(c.Root())
				if err != nil || now.TotalBytes <= before || i > 0 && now.TotalBytes < uint64(more)*9/10 {
					t.Errorf("%d bytes more: %d bytes in all, before %d: %v", more, now.TotalBytes, before, err)
				}
				before = now.TotalBytes
				c.Close()
				p.stop(t)
				if strings.Contains(p.stderr.String(), larger) {
					t.Errorf("%d bytes more: not all is used: %s", more, p.stderr.String())
				}
			}
		})
	}
}

// A block that would hold nothing but what itself needs stays behind the volume, which tansy grow says.
func TestGrowByTooLittle(t *testing.T) {
	t.Parallel()
	path := newImage(t, "--max-size", "3G")
	for i := range 200 {
		size := strconv.Itoa(volumeBytes + (i+1)*tansyfs.BlockSize)
		code, said := tool(t, "grow", path, "--size", size)
		if code != exitOK {
			t.Fatalf("%s bytes: exit code %d: %s", size, code, said)
		}
		if strings.HasSuffix(said, "already; the 4096 bytes behind it are too few to be of use\n") {
			return
		}
	}
	t.Error("each block was of use, also those that data needs a page of codes for")
}

// What a volume cannot use of what came is said: here as it was made to become no larger.
func TestGrowInPart(t *testing.T) {
	t.Parallel()
	path := newImage(t, "--max-size", "32M")
	if err := os.Truncate(path, 48<<20); err != nil {
		t.Fatal(err)
	}
	code, said := tool(t, "grow", path)
	if code != exitOK || !strings.HasSuffix(said, " bytes behind it are not used\n") {
		t.Errorf("exit code %d\n%s", code, said)
	}
}

// tansy grow makes an image larger, as far as the volume can become, and changes nothing where it cannot.
func TestGrowImage(t *testing.T) {
	t.Parallel()
	path := newImage(t, "--max-size", "1G")
	for _, x := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--size", "64M"}, exitOK, "has 64M now, and 4093 inodes; before 16M and 1021"},
		{[]string{"--size", "64M"}, exitOK, "has 64M already"},
		{nil, exitOK, "has 64M already\n"},
		{[]string{"--size", "32M"}, exitUsage, "never becomes smaller"},
		{[]string{"--size", "2G"}, exitUsage, "was made to become no larger than 1G"},
		{[]string{"--size", "100000001"}, exitUsage, "no multiple of 4096"},
		{[]string{"--size", "0"}, exitUsage, "--size is 0"},
		{[]string{"--size", "128M", "--inodes", "20000"}, exitOK, "19997 inodes"},
		{[]string{"--inodes", "2000000000"}, exitUsage, "more than the 65536"},
		{[]string{"--size", "256M", "--inodes", "2000000000"}, exitUsage, "more than the 65536"},
		{nil, exitOK, "has 128M already\n"}, // it did not become longer
	} {
		code, said := tool(t, append([]string{"grow", path}, x.args...)...)
		if code != x.code || !strings.Contains(said, x.says) {
			t.Errorf("%q: exit code %d, want %d and %q\n%s", x.args, code, x.code, x.says, said)
		}
	}
	fixed := newImage(t, "--max-size", "16M")
	code, said := tool(t, "grow", fixed, "--size", "64M")
	st, err := os.Stat(fixed)
	if code != exitFailure || !strings.Contains(said, "--max-size") || err != nil || st.Size() != volumeBytes {
		t.Errorf("a volume of one size: exit code %d\n%s", code, said)
	}
}

// A device that grows under a server changes nothing for it, nor does one that is cut back to its volume.
func TestGrownWhileServed(t *testing.T) {
	path := newImage(t)
	for _, steps := range [][]int64{{4096, 512 << 20, 0}, {0, 4096, 0}} {
		resize(t, path)(steps[0])
		p := startServe(t, "--volume", path)
		c, err := nfsclient.Mount(p.addr)
		if err != nil {
			t.Fatal(err)
		}
		for _, more := range steps {
			resize(t, path)(more)
			writeTo(t, c, "a")
			writeTo(t, c, "b")
		}
		c.Close()
		p.stop(t)
		if code, said := tool(t, "check", path, "--data"); code != exitOK {
			t.Errorf("exit code %d\n%s", code, said)
		}
	}
}

// mkfs on a device that has grown uses all of it.
func TestMkfsOfGrown(t *testing.T) {
	path := newImage(t)
	resize(t, path)(16 << 20)
	if code, said := tool(t, "mkfs", path, "--force"); code != exitOK || strings.Contains(said, larger) {
		t.Errorf("mkfs: exit code %d\n%s", code, said)
	}
	code, said := tool(t, "dump", path)
	if code != exitOK || !strings.Contains(said, "8192 blocks") || strings.Contains(said, larger) {
		t.Errorf("dump: exit code %d\n%s", code, said)
	}
	if code, said := tool(t, "check", path); code != exitOK {
		t.Errorf("check: exit code %d\n%s", code, said)
	}
}

// A preallocated image that has grown keeps its room.
func TestGrownPreallocated(t *testing.T) {
	path := newImage(t, "--preallocate")
	resize(t, path)(16 << 20)
	before := room(t, path)
	if code, said := tool(t, "trim", path); code != exitFailure || !strings.Contains(said, "keeps its room") {
		t.Errorf("trim: exit code %d\n%s", code, said)
	}
	used(t, "a", "--volume", path)
	if after := room(t, path); after < before {
		t.Errorf("%d bytes before, %d after", before, after)
	}
}

// With a damaged superblock on a device that has grown, the copy is found, near the end by whatever opens the volume,
// and anywhere by repair, with the superblock damaged in all of its bytes.
func TestGrownAndDamaged(t *testing.T) {
	t.Parallel()
	junk := make([]byte, disk.BlockSize)
	rand.Read(junk)
	magic := []byte("TansyFS\x00")
	for what, x := range map[string]struct {
		more   int64
		super  []byte
		serves string // what serve says; nothing: it serves
	}{
		"near":               {4096, append(magic, junk[8:]...), ""},
		"near, written over": {4096, junk, "there is no superblock in block 0, but the copy of one in block 4095"},
		"far":                {512 << 20, append(magic, junk[8:]...), "tansy repair searches it for the copy"},
		"far, written over":  {512 << 20, junk, "not a Tansy volume: no superblock"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			path := newImage(t)
			used(t, "a", "--volume", path)
			resize(t, path)(x.more)
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteAt(x.super, 0); err != nil {
				t.Fatal(err)
			}
			if x.serves != "" {
				code, said := tool(t, "serve", "--volume", path, "--listen", "127.0.0.1:0")
				if code != exitFailure || !strings.Contains(said, x.serves) {
					t.Errorf("serve: exit code %d, want %q\n%s", code, x.serves, said)
				}
				code, said = tool(t, "repair", path, "--yes")
				if code != exitOK || !strings.Contains(said, "restored from its copy in block") {
					t.Errorf("repair: exit code %d\n%s", code, said)
				}
				if searched := strings.Contains(said, "searching all of the device"); searched != (x.more > 64<<20) {
					t.Errorf("repair: searched %v\n%s", searched, said)
				}
				if code, said := tool(t, "repair", path, "--undo-from", path+".undo", "--yes"); code != exitOK {
					t.Errorf("undo: exit code %d\n%s", code, said)
				}
				if code, said := tool(t, "repair", path, "--yes", "--undo", path+".again"); code != exitOK {
					t.Errorf("repair again: exit code %d\n%s", code, said)
				}
			}
			used(t, "b", "--volume", path)
			if code, said := tool(t, "check", path, "--data"); code != exitOK || strings.Count(said, larger) != 1 {
				t.Errorf("check: exit code %d\n%s", code, said)
			}
		})
	}
	t.Run("nothing to find", func(t *testing.T) {
		path := newImage(t)
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, at := range []int64{0, volumeBytes - disk.BlockSize} {
			if _, err := f.WriteAt(junk, at); err != nil {
				t.Fatal(err)
			}
		}
		const want = "no copy of the superblock of a volume that is there was found (0 blocks cannot be read)"
		if code, said := tool(t, "repair", path); code != exitUsage || !strings.Contains(said, want) {
			t.Errorf("repair: exit code %d\n%s", code, said)
		}
	})
}
