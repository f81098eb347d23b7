package background

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"tansy/disk"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/gen/fs/mkfs/making"
	"tansy/internal/layout"
	"tansy/journal"
)

// lines are what is written to a log.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

// blocks are those of a volume that can be read; all others cannot.
type blocks map[uint64][]byte

func (b blocks) Committed(a uint64) ([]byte, error) {
	if data, ok := b[a]; ok {
		return data, nil
	}
	return nil, errors.New("it cannot be read")
}

// some is a volume that has the blocks and inodes before these ends.
type some struct {
	blocks
	ends [2]uint64
}

func (s some) End(which uint64) uint64 { return s.ends[which] }

// planned is a volume as mkfs would lay it out.
func planned(t *testing.T) (s superblockformat.Super) {
	why, s := making.Plan(8192, 2048, 256, 64, 0, 0, 0, 0, 0, 0, 0, 0)
	if why != 0 {
		t.Fatal("there is no such volume")
	}
	return s
}

// What is damaged is named, however often it was met, and whatever else cannot be read: with its file where that is
// known. Damage to data stops nothing; damage to a bitmap stops all changes, and is told once.
func TestDamageAlone(t *testing.T) {
	g := planned(t).Geometry()
	log := make(lines, 100)
	d := NewDamage(g, journal.Params{}, g.Data1()+1, slog.New(slog.NewTextHandler(log, nil)))
	root := make([]byte, disk.BlockSize) // the first inodes, of which the root has a block of data
	inode := root[layout.RootInode*layout.InodeSize:]
	inode[layout.Type] = directory
	data := g.Data0() + 7
	for i := range 8 {
		inode[int(layout.Pointers)+i] = byte(data >> (8 * i))
	}
	used := make([]byte, disk.BlockSize)
	used[0] = 1 << layout.RootInode

	d.Met(data)
	d.Met(data)
	d.Met(data + 1)
	if err := d.Err(); err != nil {
		t.Errorf("data are damaged: %v", err)
	}
	d.Start(some{blocks{g.InodeBitmap(): used, g.InodeTable(): root}, [2]uint64{g.Data1(), g.Ninode()}})
	for _, want := range []string{fmt.Sprintf(`"a damaged block is names in a directory" block=%d inode=1 offset=0 file=/`, data),
		fmt.Sprintf(`"a damaged block is in use by no file any more" block=%d`, data+1)} {
		if line := <-log; !strings.Contains(line, want) {
			t.Errorf("%q, not %q", line, want)
		}
	}
	d.Close()
	if len(log) > 0 {
		t.Error("told twice: ", <-log)
	}

	d.Met(g.BlockBitmap())
	d.Met(g.InodeBitmap())
	err := d.Err()
	said := fmt.Sprintf("block %d, of the block bitmap", g.BlockBitmap())
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), said) {
		t.Error(err)
	}
	if len(log) != 1 {
		t.Errorf("told %d times", len(log))
	}
	d.Close()
}

// Blocks that nobody has named yet are remembered up to a bound.
func TestDamageBound(t *testing.T) {
	g := planned(t).Geometry()
	d := NewDamage(g, journal.Params{}, g.Data1()+1, slog.New(slog.DiscardHandler))
	for a := range uint64(2 * maxUnnamed) {
		d.Name(a)
	}
	if len(d.todo) != maxUnnamed {
		t.Errorf("%d are remembered", len(d.todo))
	}
}
