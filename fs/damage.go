package fs

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"tansy/internal/gen/fs/format/volumegeometry"
	"tansy/internal/lockorder"
	"tansy/journal"
)

// damage is what a volume does about blocks that were found not to be what was last written there. The log tells what
// each is for, and of which file it is: that is looked for in the background, as only inodes know which blocks they
// have. And when a bitmap is damaged, or what the code of a bitmap or of everything depends on, nothing is changed any
// more: nobody knows what is free.
type damage struct {
	geo    volumegeometry.Geometry
	params journal.Params
	size   uint64 // blocks of the device
	log    *slog.Logger

	frozen atomic.Pointer[error] // why nothing is changed any more

	mu    lockorder.Mutex[lockorder.Damage]
	todo  []uint64 // blocks that are not named yet
	kick  chan struct{}
	stop  context.CancelFunc
	ended sync.WaitGroup
}

// maxUnnamed bounds the blocks that wait to be named.
const maxUnnamed = 4096

func newDamage(g volumegeometry.Geometry, p journal.Params, size uint64, log *slog.Logger) *damage {
	return &damage{geo: g, params: p, size: size, log: log, kick: make(chan struct{}, 1), stop: func() {}}
}

// err is why nothing is changed any more, or nil.
func (d *damage) err() error {
	if e := d.frozen.Load(); e != nil {
		return *e
	}
	return nil
}

// met notes that block a is damaged. It does not wait: the journal's mutex may be held.
func (d *damage) met(a uint64) {
	if what := d.vital(a); what != "" {
		err := fmt.Errorf("%w: block %d, of %s, is not what was last written there; stop the server and run tansy repair", errDamaged, a, what)
		if d.frozen.CompareAndSwap(nil, &err) {
			d.log.Error("the volume is read-only from now on", "block", a, "damaged", what, "advice", "stop the server and run tansy repair")
		}
	}
	d.name(a)
}

// name has the log tell whose block a is.
func (d *damage) name(a uint64) {
	d.mu.Lock()
	if len(d.todo) < maxUnnamed {
		d.todo = append(d.todo, a)
	}
	d.mu.Unlock()
	select {
	case d.kick <- struct{}{}:
	default:
	}
}

// vital says what block a is if nothing may be changed without it, and else nothing.
func (d *damage) vital(a uint64) string {
	g, p := d.geo, d.params
	switch {
	case a >= g.InodeBitmap() && a < g.BlockBitmap():
		return "the inode bitmap"
	case a >= g.BlockBitmap() && a < g.InodeTable():
		return "the block bitmap"
	case p.Depends(a, g.InodeBitmap(), g.InodeTable(), d.size): // the root above all
		return "the tree of codes"
	}
	return ""
}

// restFor is how many times as long as it took nothing is looked for after the owners of blocks were.
const restFor = 10

// start begins to name what was met, and what will be, on v.
func (d *damage) start(v *FS) {
	ctx, stop := context.WithCancel(context.Background())
	d.stop = stop
	d.ended.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-d.kick:
			}
			d.mu.Lock()
			blocks := d.todo
			d.todo = nil
			d.mu.Unlock()
			begin := time.Now()
			for _, o := range v.owners(ctx, blocks) {
				d.log.Error("a damaged block is "+o.what, append([]any{"block", o.block}, o.attrs()...)...)
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(restFor * time.Since(begin)):
			}
		}
	})
}

// close ends that. It may be called again.
func (d *damage) close() {
	d.stop()
	d.ended.Wait()
}
