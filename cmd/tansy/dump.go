package main

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"

	"tansy/disk"
	"tansy/internal/nearest"
	volcheck "tansy/offline/check"
)

func dump() (*flagSet, action) {
	f := newFlags("dump", "VOLUME [super | log | block N | inode N | dir N]", `
  tansy dump data.img            the superblock and the regions
  tansy dump data.img log        which blocks are newer in the log than at home
  tansy dump data.img block 99   a block: what for, and where on the device
  tansy dump data.img inode 17   an inode and where its blocks lie
  tansy dump data.img dir 1      the entries of a directory (1 is the root)

exit codes:
  0  printed
  1  could not be printed, or no volume
  2  wrong arguments

The volume is only read. Damage keeps nothing from being printed that can be
found without what is damaged: super needs only the superblock or its copy;
without the log the blocks are shown as they lie at home. Blocks have the
numbers of the layout: in a volume that can grow, others than on the device.
What is printed is meant for people, and may change.
`)
	return f, func(args []string) int {
		pos, code, done := parse(f, args, 1, 3)
		if done {
			return code
		}
		what, want := "super", 2
		if len(pos) > 1 {
			what = pos[1]
		}
		var show func(p *volcheck.Dumper, w *bufio.Writer, n uint64) error
		switch what {
		case "super":
			show = func(p *volcheck.Dumper, w *bufio.Writer, _ uint64) error { return p.Super(w) }
		case "log":
			show = func(p *volcheck.Dumper, w *bufio.Writer, _ uint64) error { return p.Log(w) }
		case "block":
			want = 3
			show = func(p *volcheck.Dumper, w *bufio.Writer, n uint64) error { return p.Block(w, n) }
		case "inode":
			want = 3
			show = func(p *volcheck.Dumper, w *bufio.Writer, n uint64) error { return p.Inode(w, n) }
		case "dir":
			want = 3
			show = func(p *volcheck.Dumper, w *bufio.Writer, n uint64) error { return p.Dir(w, n) }
		}
		if show == nil || len(pos) > want {
			guess := didYouMean(nearest.Of(what, []string{"super", "log", "block", "inode", "dir"}))
			if guess == "" {
				guess = ": give super, log, block N, inode N, or dir N"
			}
			return misused(f, fmt.Sprintf("there is no %q to print", strings.Join(pos[1:], " "))+guess)
		}
		var n uint64
		if want == 3 {
			var err error
			if len(pos) == 3 {
				n, err = strconv.ParseUint(pos[2], 0, 64)
			}
			if len(pos) < 3 || err != nil {
				return misused(f, what+" needs a number, such as "+what+" 1")
			}
		}
		d, err := openVolume(pos[0], disk.FileOptions{ReadOnly: true, Warn: warning("dump")})
		if err != nil {
			return fail("dump", err)
		}
		defer d.Close()
		p, err := volcheck.NewDumper(d)
		if err != nil {
			return fail("dump", fmt.Errorf("%s: %w%s", pos[0], err, adviceFor(d, err)))
		}
		w := bufio.NewWriter(stdout)
		err = show(p, w, n)
		w.Flush()
		if err != nil && stdout.lost.Load() == nil { // which is told in the end
			return fail("dump", fmt.Errorf("%s: %w%s", pos[0], err, adviceFor(d, err)))
		}
		return exitOK
	}
}
