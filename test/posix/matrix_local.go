//go:build linux

package main

import (
	"fmt"
	"strings"
)

// Tables of checks that are not for NFS.

var localGenerators = []generator{
	{"holes", sparseWrites},
	{"cut", cuts},
	{"map-tail", mapTails},
	{"map-cut", mapCuts},
	{"rename-flags", renameFlags},
	{"open-removed", openRemoved},
	{"direct", directWrites},
	{"ranges", ranges},
}

// sparseWrites: a write that leaves a hole before it, and one that leaves a hole between, at every alignment.
func sparseWrites() string {
	var w strings.Builder
	for _, at := range []int{1, 511, 512, 4095, 4096, 4097, 8191, 8192, 40959, 40960, 40961, 65535, 65536, 1048575} {
		for _, n := range []int{1, 4095, 4096, 4097} {
			fmt.Fprintf(&w, "check %d bytes at %d of an empty file\n", n, at)
			fmt.Fprintf(&w, "open h f rdwr,creat 0644\npwrite h %[1]d {x*%[2]d}\nstat f size=%[3]d\n"+
				"content f \"{\\x00*%[1]d}{x*%[2]d}\"\nevict h\n", at, n, at+n)
			fmt.Fprintf(&w, "stat f atleast=%d below=%d\ncontent f \"{\\x00*%d}{x*%d}\"\n", (n+1023)/1024, 40, at, n)
		}
		// two ends with a hole between, which is then filled but for a byte
		fmt.Fprintf(&w,
			"check a hole of %d bytes that is filled\nopen h f rdwr,creat 0644\nwrite h a\npwrite h %d b\n", at, at+1)
		fmt.Fprintf(&w, "content f \"a{\\x00*%d}b\"\nevict h\npwrite h 1 {c*%d}\nevict h\ncontent f \"a{c*%d}\\x00b\"\n",
			at, at-1, at-1)
	}
	return w.String()
}

// cuts: a file is cut or lengthened, and then lengthened: of what was beyond nothing comes back.
func cuts() string {
	var w strings.Builder
	sizes := []int{0, 1, 511, 4095, 4096, 4097, 12289, 49152, 65537}
	for _, from := range sizes[1:] {
		for _, to := range sizes {
			if from == to {
				continue
			}
			fmt.Fprintf(&w, "check from %d to %d\nopen h f rdwr,creat 0644\nwrite h {x*%d}\ntruncate @h %d\nstat f size=%d\n",
				from, to, from, to, to)
			kept := min(from, to)
			fmt.Fprintf(&w, "content f \"{x*%d}{\\x00*%d}\"\ntruncate f 70000\ncontent f \"{x*%d}{\\x00*%d}\"\nevict h\n"+
				"content f \"{x*%d}{\\x00*%d}\"\n",
				kept, to-kept, kept, 70000-kept, kept, 70000-kept)
		}
	}
	return w.String()
}

// mapTails: a shared map of a file of any size reads zeros up to the end of the last page, and SIGBUS comes behind it.
func mapTails() string {
	var w strings.Builder
	for _, size := range []int{1, 100, 4095, 4096, 4097, 8191, 8192, 10000} {
		pages := (size + 4095) / 4096 * 4096
		for _, how := range []string{"shared", "private"} {
			fmt.Fprintf(&w, "check a %s map of %d bytes\nfile f 0644 {x*%d}\nopen h f rdwr\nmap m h 0 16384 %s rw\n",
				how, size, size, how)
			fmt.Fprintf(&w, "peek m 0 \"{x*%d}{\\x00*%d}\"\npeek m %d x => SIGBUS\npoke m %d x => SIGBUS\n",
				size, pages-size, pages, pages)
			fmt.Fprintf(&w, "poke m 0 y\npeek m 0 y\n")
			if how == "shared" {
				fmt.Fprintf(&w, "content f y{x*%d}\nmsync m\nevict h\ncontent f y{x*%d}\n", size-1, size-1)
			} else {
				fmt.Fprintf(&w, "content f {x*%d}\nunmap m\nevict h\ncontent f {x*%d}\n", size, size)
			}
			fmt.Fprintf(&w, "stat f size=%d\n", size)
		}
	}
	return w.String()
}

// mapCuts: a file is cut and lengthened below a map.
func mapCuts() string {
	var w strings.Builder
	for _, how := range []string{"shared", "private"} {
		for _, to := range []int{0, 1, 4095, 4096, 4097, 8192} {
			pages := (to + 4095) / 4096 * 4096
			fmt.Fprintf(&w, "check a file below a %s map is cut to %d\nfile f 0644 {x*16384}\nopen h f rdwr\n"+
				"map m h 0 16384 %s rw\npeek m 0 {x*16384}\ntruncate f %d\n", how, to, how, to)
			fmt.Fprintf(&w, "peek m 0 \"{x*%d}{\\x00*%d}\"\npeek m %d x => SIGBUS\n", to, pages-to, pages)
			fmt.Fprintf(&w, "truncate f 16384\npeek m 0 \"{x*%d}{\\x00*%d}\"\n", to, 16384-to)
		}
	}
	return w.String()
}

// renameFlags: RENAME_NOREPLACE, RENAME_EXCHANGE, and RENAME_WHITEOUT of each kind of file.
func renameFlags() string {
	var w strings.Builder
	for _, k := range kinds {
		from := strings.ReplaceAll(k.make, "NAME", "p/x")
		fmt.Fprintf(&w,
			"check without replacing: %s over a file\nmkdir p 0755\nmkdir q 0755\n%s\nfile q/y 0644 old\n", k.name, from)
		fmt.Fprintf(&w, "mark p\nmark q\nmark p/x\nmark q/y\nrenamex p/x q/y noreplace => EEXIST\nmoved p a?\nmoved q a?\n"+
			"moved p/x a?\nmoved q/y a?\nlstat p/x type=%s\ncontent q/y old\n", k.typ)
		fmt.Fprintf(&w,
			"check without replacing: another file over %s\nmkdir p 0755\nmkdir q 0755\n%s\nfile q/y 0644 new\n", k.name, from)
		fmt.Fprintf(&w, "mark p\nmark q\nrenamex q/y p/x noreplace => EEXIST\nmoved p a?\nmoved q a?\nlstat p/x type=%s\n"+
			"content q/y new\n", k.typ)
		fmt.Fprintf(&w, "check without replacing: %s to a free name\nmkdir p 0755\nmkdir q 0755\n%s\nmark p\nmark q\n"+
			"renamex p/x q/y noreplace\nmoved p a?mc\nmoved q a?mc\nlist p\nlstat q/y type=%s\n", k.name, from, k.typ)
		fmt.Fprintf(&w, "check exchange: %s and a file\n"+
			"mkdir p 0755\nmkdir q 0755\n%s\nfile q/y 0644 other\nmark p\nmark q\n", k.name, from)
		fmt.Fprintf(&w, "renamex p/x q/y exchange\nmoved p a?mc\nmoved q a?mc\nlstat q/y type=%s\n"+
			"content p/x other\n", k.typ)
		fmt.Fprintf(&w, "check whiteout: %s to a free name\nmkdir p 0755\nmkdir q 0755\n%s\nmark p\nmark q\n"+
			"renamex p/x q/y both\nmoved p a?mc\nmoved q a?mc\nlist p x\nlstat q/y type=%s\nlstat p nlink=2\n",
			k.name, from, k.typ)
		fmt.Fprintf(&w, "lstat p/x type=chr mode=0 rdev=0:0 nlink=1\nunlink p/x\nrmdir p\n")
		fmt.Fprintf(&w, "check whiteout: %s over a file that is open\nmkdir p 0755\nmkdir q 0755\n%s\nfile q/y 0644 other\n"+
			"open h q/y rdonly\n", k.name, from)
		if k.typ == "dir" {
			fmt.Fprintf(&w, "renamex p/x q/y whiteout => ENOTDIR\nlstat p/x type=dir\ncontent q/y other\n")
			continue
		}
		fmt.Fprintf(&w, "renamex p/x q/y whiteout\nlstat p/x type=chr mode=0 rdev=0:0\nlstat q/y type=%s\n"+
			"lstat @h nlink=0\nread h 5 other\nclose h\n", k.typ)
	}
	return w.String()
}

// openRemoved: each thing that can be done with an open file, after it lost its name in each way.
func openRemoved() string {
	var w strings.Builder
	for _, how := range []struct{ name, lines string }{
		{"removed", "unlink f"},
		{"replaced", "file g 0600 new\nrename g f"},
		{"removed as its second name", "link f g\nunlink f\nunlink g"},
		{"renamed and removed", "rename f g\nunlink g"},
		{"removed with its directory", "mkdir d 0755\nrename f d/f\nunlink d/f\nrmdir d"},
	} {
		for _, t := range []struct{ name, lines string }{
			{"is read", "pread h 0 10 data\nread h 2 da"},
			{"is written", "pwrite h 2 TA!\npread h 0 10 daTA!\nstat @h size=5"},
			{"is written far behind",
				"pwrite h 100000 x\nstat @h size=100001 below=100\npread h 99999 5 \"\\x00x\"\nevict h\npread h 0 5 \"data\\x00\""},
			{"is cut", "truncate @h 2\npread h 0 10 da\nstat @h size=2"},
			{"is lengthened", "truncate @h 6\npread h 0 10 \"data\\x00\\x00\""},
			{"gets a mode", "chmod @h 0604\nstat @h mode=604"},
			{"gets an owner", "chown @h alice staff\nstat @h uid=alice gid=staff"},
			{"gets times", "utimens @h 5.25 6.75\nstat @h atime=5.25 mtime=6.75"},
			{"is synced", "write h DATA\nfsync h\nfdatasync h\npread h 0 10 DATA"},
			{"is opened again", "reopen h i rdwr\npwrite i 0 D\nclose h\npread i 0 10 Data\nstat @i nlink=0"},
			{"gets no name again", "linkh h again => ENOENT\nlstat again => ENOENT\nstat @h nlink=0"},
			{"is mapped", "map m h 0 4096 shared rw\npeek m 0 data\npoke m 0 D\npread h 0 10 Data\nclose h\npeek m 0 Data"},
			{"is locked", "flock h ex\nofdlock h write 0 0\nofdlock h un 0 0"},
		} {
			fmt.Fprintf(&w, "check a file that was %s %s\nfile f 0644 data\nopen h f rdwr\n%s\nstat @h nlink=0\n%s\n",
				how.name, t.name, how.lines, t.lines)
		}
	}
	return w.String()
}

// directWrites: O_DIRECT, whole blocks at whole blocks, with what the cache has of the file.
func directWrites() string {
	var w strings.Builder
	for _, at := range []int{0, 4096, 1048576} {
		for _, n := range []int{4096, 8192, 65536, 1048576} {
			fmt.Fprintf(&w, "check %d bytes at %d, read before and after by the cache\nfile f 0644 {x*10000}\nopen c f rdwr\n"+
				"pread c 0 3 xxx\nopen h f rdwr,direct\ndirect h %d %d\n", n, at, at, n)
			fmt.Fprintf(&w, "pread c %d 12 direct..dire\nstat f size=%d\n", at, max(10000, at+n))
		}
	}
	return w.String()
}

// ranges: room set aside, zeros, and holes at all alignments, within the file, over its end, and behind it.
func ranges() string {
	var w strings.Builder
	const size = 12289 // three blocks and a byte
	for _, mode := range []string{"allocate", "keep", "zero", "punch"} {
		for _, off := range []int{0, 1, 4095, 4096, 8000, 8192, 12288, 12289, 20000} {
			for _, n := range []int{1, 4095, 4096, 8193, 20000} {
				is := []byte(strings.Repeat("x", size))
				end := off + n
				if mode == "allocate" || mode == "zero" {
					is = append(is, make([]byte, max(0, end-size))...)
				}
				if mode == "zero" || mode == "punch" {
					clear(is[min(off, len(is)):min(end, len(is))])
				}
				fmt.Fprintf(&w, "check %s %d bytes at %d\n", mode, n, off)
				behind := mode == "keep" && end > size
				if behind {
					w.WriteString("why the mount has no room behind the end of a file\n")
				}
				fmt.Fprintf(&w, "open h f rdwr,creat 0644\nwrite h {x*%d}\nmark f\n", size)
				if behind {
					fmt.Fprintf(&w, "[ext4] fallocate h keep %d %d\n[mount] fallocate h keep %[1]d %[2]d => EOPNOTSUPP\n", off, n)
				} else {
					fmt.Fprintf(&w, "fallocate h %s %d %d\n", mode, off, n)
				}
				fmt.Fprintf(&w, "stat f size=%d\ncontent f \"%s\"\nevict h\ncontent f \"%[2]s\"\n", len(is), runs(is))
				first, last := (off+4095)/4096, end/4096 // blocks that are holes now
				if end >= size {
					last = (size + 4095) / 4096
				}
				if mode == "punch" && first < last && 4096*last <= end { // of a last block that is punched in part ext4 has the rest
					fmt.Fprintf(&w, "fsync h\nseek h 0 hole %d\n", 4096*first)
					if end < size {
						fmt.Fprintf(&w, "seek h %d data %d\n", 4096*first, 4096*last)
					} else {
						fmt.Fprintf(&w, "seek h %d data 0 => ENXIO\n", 4096*first)
					}
				}
				fmt.Fprintf(&w, "truncate f 30000\npwrite h 29999 y\ncontent f \"%s{\\x00*%d}y\"\n",
					runs(is[:min(len(is), 29999)]), 29999-min(len(is), 29999))
			}
		}
	}
	return w.String()
}

// runs is how a script has these bytes.
func runs(data []byte) string {
	var w strings.Builder
	for len(data) > 0 {
		n := 1
		for n < len(data) && data[n] == data[0] {
			n++
		}
		c := string(data[:1])
		if data[0] == 0 {
			c = "\\x00"
		}
		fmt.Fprintf(&w, "{%s*%d}", c, n)
		data = data[n:]
	}
	return w.String()
}
