package journal

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tansy/disk"
	"tansy/internal/gen/journal/journalthreads"
	"tansy/internal/runtime/clock"
)

// bound is how long after a look at the header something may be written that counts whoever wrote it.
const bound = time.Second

// slowDevice is a device whose writes take two seconds of a clock that the test moves. It notes what is written outside
// of the log, and what of that later than the bound after the last look at the header.
type slowDevice struct {
	disk.Disk
	p         Params
	now       atomic.Int64 // nanoseconds, by the clock
	looked    int64        // when the last read of the header began
	looks     int          // reads of the header
	slowLooks int          // so many reads of the header take two seconds, too
	guarded   []uint64     // writes outside of the log
	late      []uint64     // ... too late
	home      func()       // called at the first write of a home block
}

func newSlowDevice(t *testing.T, p Params) *slowDevice {
	t.Helper()
	d := &slowDevice{Disk: disk.NewMem(deviceOf(p) * disk.BlockSize), p: p}
	if err := Format(d.Disk, p); err != nil {
		t.Fatal(err)
	}
	d.now.Store(int64(time.Hour))
	return d
}

func (d *slowDevice) takesLong() { d.now.Add(int64(2 * time.Second)) }

func (d *slowDevice) ReadAt(a uint64, bufs [][]byte) error {
	if a == d.p.Start {
		d.looked = d.now.Load()
		d.looks++
		if d.slowLooks > 0 {
			d.slowLooks--
			d.takesLong()
		}
	}
	return d.Disk.ReadAt(a, bufs)
}

func (d *slowDevice) WriteAt(a uint64, bufs [][]byte) error {
	if a <= d.p.Start || a >= d.p.copy() {
		d.guarded = append(d.guarded, a)
		if d.now.Load()-d.looked > int64(bound) {
			d.late = append(d.late, a)
		}
	}
	err := d.Disk.WriteAt(a, bufs)
	d.takesLong()
	if a >= d.p.Home() && d.home != nil {
		home := d.home
		d.home = nil
		home()
	}
	return err
}

// open opens the journal on d by d's clock.
func (d *slowDevice) open(t *testing.T) *Journal {
	t.Helper()
	o := quiet
	o.clock = clock.Of(func() uint64 { return uint64(d.now.Load()) })
	j, err := Open(d, d.p, o)
	if err != nil {
		t.Fatal(err)
	}
	readVolume(t, j, d.p) // so that it is known what is free
	d.guarded, d.late, d.looks = nil, nil, 0
	return j
}

// scattered are writes of blocks of which no two lie side by side.
func scattered(p Params) (ws []Write) {
	for i := range uint64(4) {
		ws = append(ws, Write{p.First + 2*i, contents(i + 1)})
	}
	return ws
}

// writesHome are the ways by which j writes blocks home, with codes and headers or without.
var writesHome = map[string]func(j *Journal, p Params) error{
	"straight": func(j *Journal, p Params) error {
		ws := scattered(p)
		for _, w := range ws {
			j.Bulk(w.Addr)
		}
		return j.Commit(ws, true)
	},
	"installation": func(j *Journal, p Params) error {
		if err := j.Commit(scattered(p), true); err != nil {
			return err
		}
		journalthreads.Settle(j.core)
		journalthreads.Drain(j.core) // ends also because the journal has failed
		return j.Lost()
	},
}

// TestLooksAgain: where each write takes two seconds the header is looked at again before each that counts whoever
// wrote it; and once more where the look takes as long.
func TestLooksAgain(t *testing.T) {
	for name, write := range writesHome {
		for _, slowLooks := range []int{0, 3} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := bitmapped(64)
					d := newSlowDevice(t, p)
					j := d.open(t)
					d.slowLooks = slowLooks
					if err := write(j, p); err != nil {
						t.Fatal(err)
					}
					if len(d.late) > 0 {
						t.Errorf("blocks written too long after the last look at the header: %d", d.late)
					}
					if n := len(d.guarded); n < len(scattered(p)) || d.looks < n+slowLooks {
						t.Errorf("%d looks, %d of them slow, for %d writes", d.looks, slowLooks, n)
					}
					if err := j.Close(); err != nil {
						t.Fatal(err)
					}
				})
			})
		}
	}
}

// TestTakenMeanwhile: another server opens the volume while the first one writes, and time passes: the first one's
// device takes long, or its machine sleeps. What the first one was about to write next it does not write.
func TestTakenMeanwhile(t *testing.T) {
	for name, write := range writesHome {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := bitmapped(64)
				d := newSlowDevice(t, p)
				first := d.open(t)
				var second *Journal
				d.home = func() {
					opened := make(chan error)
					go func() {
						var err error
						second, err = Open(d.Disk, p, quiet)
						opened <- err
					}()
					if err := <-opened; err != nil {
						t.Error(err)
					}
					d.guarded = nil
				}
				if err := write(first, p); !errors.Is(err, ErrNotOwner) {
					t.Errorf("acknowledged, or another error: %v", err)
				}
				if len(d.guarded) > 0 {
					t.Errorf("blocks written after another server had taken the volume: %d", d.guarded)
				}
				first.Close()
				if second == nil {
					t.Fatal("nothing was written home")
				}
				if err := second.Close(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}
