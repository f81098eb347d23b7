package floor

import (
	"fmt"
	"slices"
	"time"

	"tansy/tools/load"
)

// removal measures what others notice of a large file that is removed: calls of a client that waits for each, alone,
// and from the removal until the file's room is free again.
func removal(b *bench) error {
	conns, dirs, done, err := b.clients("removal", 2)
	if err != nil {
		return err
	}
	defer done()
	r := &remover{bench: b, c: conns[0], dir: dirs[0], watch: conns[1], buf: make([]byte, attackIO)}
	if r.small, err = newFile(conns[1], dirs[1], "small", r.buf[:smallWrite]); err != nil {
		return err
	}
	defer func() {
		r.watch.StartRemove(dirs[1], "small")
		r.watch.Wait(0)
	}()
	var alone, beside [len(watched)][]time.Duration
	var removing, freeing []float64 // ms, s
	for range b.rounds {
		before, err := r.free()
		if err != nil {
			return err
		}
		if err := r.fill(); err != nil {
			return err
		}
		for begin := time.Now(); len(alone[0]) == 0 || time.Since(begin) < b.duration; {
			if err := r.look(&alone); err != nil {
				return err
			}
		}
		begin := time.Now()
		r.c.StartRemove(r.dir, removed)
		if err := r.c.Wait(0); err != nil {
			return err
		}
		removing = append(removing, time.Since(begin).Seconds()*1000)
		for free := uint64(0); len(beside[0]) == 0 || free+freeSlack < before; {
			for range 50 { // of which FSSTAT is to be little
				if err := r.look(&beside); err != nil {
					return err
				}
			}
			if free, err = r.free(); err != nil {
				return err
			}
		}
		freeing = append(freeing, time.Since(begin).Seconds())
	}
	b.table.note(fmt.Sprintf("REMOVE of %d MB", b.fileMB), middle(removing), "ms")
	b.table.note("  until its room is free", middle(freeing), "s")
	for i, name := range watched {
		slices.Sort(alone[i])
		slices.Sort(beside[i])
		for _, q := range []struct {
			name    string
			percent int
		}{{"half within", 50}, {"99 of 100 within", 99}, {"the longest", 100}} {
			us := func(took []time.Duration) float64 { return took[(len(took)-1)*q.percent/100].Seconds() * 1e6 }
			b.table.row("  "+name+" meanwhile, "+q.name, us(beside[i]), us(alone[i]), "us", 0, true)
		}
	}
	return nil
}

const (
	removed    = "large"  // the name of the file
	smallWrite = 4096     // bytes that are written meanwhile
	freeSlack  = 16 << 20 // bytes: of directories, and what others have made meanwhile
)

// watched are the calls that are measured.
var watched = [...]string{"GETATTR", "WRITE of 4 KiB, FILE_SYNC"}

// remover is the two clients: one has the large file, the other watches.
type remover struct {
	*bench
	c     *load.Conn
	dir   load.Handle
	watch *load.Conn
	small load.Handle
	buf   []byte
}

// fill makes the large file, which is durable then.
func (r *remover) fill() (err error) {
	large, err := newFile(r.c, r.dir, removed, nil)
	if err != nil {
		return err
	}
	for off := uint64(0); off < uint64(r.fileMB)*1_000_000; off += uint64(len(r.buf)) {
		r.c.StartWrite(large, off, r.buf, load.Unstable, func(uint64) error { return nil })
		if err := r.c.Wait(r.depth - 1); err != nil {
			return err
		}
	}
	if err := r.c.Wait(0); err != nil {
		return err
	}
	_, err = r.c.Commit(large)
	return err
}

// look makes one call of each kind that is watched.
func (r *remover) look(took *[len(watched)][]time.Duration) error {
	for i := range watched {
		at := time.Now()
		if i == 0 {
			r.watch.StartGetattr(r.small, func(uint64) error { return nil })
		} else {
			r.watch.StartWrite(r.small, 0, r.buf[:smallWrite], load.FileSync, func(uint64) error { return nil })
		}
		if err := r.watch.Wait(0); err != nil {
			return err
		}
		took[i] = append(took[i], time.Since(at))
	}
	return nil
}

// free is how many bytes of the volume are free.
func (r *remover) free() (n uint64, err error) {
	r.watch.StartFsstat(r.small, func(free uint64) error {
		n = free
		return nil
	})
	return n, r.watch.Wait(0)
}
