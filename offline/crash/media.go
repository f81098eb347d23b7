package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"

	"tansy/disk"
	"tansy/fs"
)

// The medium may fail, too, when the machine crashes or after that. What is then seen of the volume must be what would
// have been seen without that, or an error. A volume that is not opened is one.

// Damage is what became of a block of an image.
type Damage struct {
	How   string // one of the harms
	Block uint64
	Other uint64 // with which it was exchanged
}

// harms are what may become of a block.
const (
	flipped    = "a bit is another one"
	zeroed     = "zeros"
	exchanged  = "exchanged with another block"
	unreadable = "it cannot be read"
)

var harms = []string{flipped, zeroed, exchanged, unreadable}

// hit chooses a damage of an image: half of the time of a block that the sequence has written.
func hit(image *disk.Sim, written []uint64, r *rand.Rand) *Damage {
	var all []uint64
	for a := range image.Contents() {
		all = append(all, a)
	}
	slices.Sort(all) // so that a seed chooses the same
	x := &Damage{How: harms[r.IntN(len(harms))], Block: all[r.IntN(len(all))], Other: all[r.IntN(len(all))]}
	if len(written) > 0 && r.IntN(2) == 0 {
		x.Block = written[r.IntN(len(written))]
	}
	return x
}

// to does it to a copy of an image, and returns the device.
func (x *Damage) to(image *disk.Sim) (disk.Disk, error) {
	d := image.Crash(disk.KeepAll)
	if x.Block >= d.Size() || x.Other >= d.Size() {
		return nil, errors.New("the damaged block is behind the end of the device")
	}
	blocks := [][]byte{make([]byte, disk.BlockSize), make([]byte, disk.BlockSize)}
	err := errors.Join(d.ReadAt(x.Block, blocks[:1]), d.ReadAt(x.Other, blocks[1:]))
	switch x.How {
	case flipped:
		blocks[0][x.Other%disk.BlockSize] ^= 1
		err = errors.Join(err, d.WriteAt(x.Block, blocks[:1]))
	case zeroed:
		clear(blocks[0])
		err = errors.Join(err, d.WriteAt(x.Block, blocks[:1]))
	case exchanged:
		err = errors.Join(err, d.WriteAt(x.Block, blocks[1:]), d.WriteAt(x.Other, blocks[:1]))
	case unreadable:
		return disk.NewFault(d, 1, func(op disk.Op, _ *rand.Rand) (h disk.Harm) {
			if op.Kind == disk.Read && op.Addr <= x.Block && x.Block < op.Addr+uint64(op.Blocks) {
				h.Err = syscall.EIO
			}
			return h
		}), err
	default:
		err = fmt.Errorf("no such damage: %q", x.How)
	}
	return d, errors.Join(err, d.Barrier())
}

func (x *Damage) String() string {
	if x.How == exchanged {
		return fmt.Sprintf("block %d is exchanged with block %d", x.Block, x.Other)
	}
	return fmt.Sprintf("block %d: %s", x.Block, x.How)
}

// within tells if it is one of a log's.
func (x *Damage) within(p logPlace) bool {
	return p.has(x.Block) || x.How == exchanged && p.has(x.Other)
}

func (p logPlace) has(a uint64) bool { return p.first <= a && a < p.behind }

// rotten judges the image once more, with a damage.
func (j *judge) rotten(x *Damage) error {
	d, err := x.to(j.image)
	if err != nil {
		return err
	}
	j.damage, j.got = x, ""
	v, err := fs.Open(d, options)
	if err != nil {
		j.count.Refused++
		return nil
	}
	seen, failed, err := partly(v)
	if e := v.Close(); err == nil && e != nil && !failed {
		err = fmt.Errorf("the volume cannot be closed: %w", e)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", x, err)
	}
	if j.got = strings.Join(seen, "\n"); failed {
		j.count.Partly++
	}
	lo, hi := j.h.allowed(j.moment)
	might := j.h.states[lo : hi+1]
	if x.within(j.same.log) { // the last groups of a log are not told from such that the crash interrupted
		might = append(j.h.before(), j.h.states[:hi+1]...)
	}
	for _, s := range might {
		if s == j.got || failed && subset(seen, strings.Split(s, "\n")) {
			return nil
		}
	}
	return fmt.Errorf("%s: what is seen is no part of a state that there may be", x)
}

// before are the states before the first step: those of the commits that came before it.
func (h *history) before() (states []string) {
	for _, foo := range h.earlier {
		lines := strings.Split(h.states[0], "\n")
		for i, line := range lines {
			if strings.HasPrefix(line, setAside+":") {
				lines[i] = foo
			}
		}
		slices.Sort(lines)
		states = append(states, strings.Join(lines, "\n"))
	}
	return states
}

// subset tells if all of some lines, in order, are among others, in order.
func subset(some, all []string) bool {
	for _, line := range some {
		i, ok := slices.BinarySearch(all, line)
		if !ok {
			return false
		}
		all = all[i+1:]
	}
	return true
}

// partly is Tree, without what the medium has lost: failed tells that there is something. What else fails than the
// medium is an error.
func partly(v *fs.FS) (lines []string, failed bool, err error) {
	w := walker{v: v, lost: func(e error) error {
		if failed = true; errors.Is(e, fs.ErrIO) {
			return nil
		}
		return e
	}}
	err = w.walk("", v.Root())
	slices.Sort(w.lines)
	return w.lines, failed, err
}
