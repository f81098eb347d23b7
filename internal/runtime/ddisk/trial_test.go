package ddisk

import (
	"testing"
	"time"

	"tansy/disk"
	"tansy/internal/runtime/dbytes"
)

// cached is a disk with a cache below it, whose barriers and writes take their time.
type cached struct {
	disk.Disk
	takes, writing time.Duration
	cannot         bool
	past           bool
	pushed         int
}

func (c *cached) PastCache() bool {
	c.past = !c.cannot
	return c.past
}

func (c *cached) Push(_, _ uint64, _ bool) { c.pushed++ }

func (c *cached) WriteAt(a uint64, bufs [][]byte) error {
	time.Sleep(c.writing)
	return c.Disk.WriteAt(a, bufs)
}

func (c *cached) Barrier() error {
	time.Sleep(c.takes)
	return c.Disk.Barrier()
}

// begun is a Disk that goes through a recovery on c: a barrier with nothing to write, and two headers with theirs.
func begun(c *cached, most time.Duration) *Disk {
	c.Disk = disk.NewMem(100 * disk.BlockSize)
	d := New(disk.NewStats(c))
	d.trial.most = most
	d.Pace(10, 20)
	d.Barrier()
	for a := range uint64(2) {
		d.Write(10+a, block(1))
		d.Barrier()
	}
	return d
}

// Where a write and its barrier are quick, all writes go past the cache, and nothing is pushed out of it. Only the
// trial counts, and only barriers behind a write do.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		what   string
		device cached
		most   time.Duration
		want   bool
	}{
		{"a quick one", cached{}, time.Hour, true},
		{"a slow one", cached{takes: quickBarrier + 1}, 0, false},
		{"one that cannot", cached{cannot: true}, time.Hour, false},
	} {
		d := begun(&c.device, c.most)
		tried, past := d.Judgement()
		if past || tried == 0 {
			t.Errorf("%s, before it is judged: %v, %v", c.what, tried, past)
		}
		d.Judge()
		if _, past = d.Judgement(); past != c.want || c.device.past != c.want {
			t.Errorf("%s: past the cache %v, the device %v; want %v", c.what, past, c.device.past, c.want)
		}
		c.device.pushed = 0
		d.WriteRun(30, &BList{Blks: blocksOf(longWrite)}, 0, longWrite)
		if pushed := c.device.pushed > 0; pushed == c.want {
			t.Errorf("%s: pushed out of the cache: %v", c.what, pushed)
		}
		d.Barrier()
		if again, _ := d.Judgement(); again != tried {
			t.Errorf("%s: it is tried after the trial: %v, before %v", c.what, again, tried)
		}
	}
}

// What counts is the quickest of the writes with a barrier behind each, both together; not a barrier that has nothing
// to write, nor what comes after the trial.
func TestTrial(t *testing.T) {
	const takes = 2 * time.Millisecond
	c := &cached{Disk: disk.NewMem(100 * disk.BlockSize)}
	d := New(c)
	d.Pace(10, 20)
	try := func(barrier, write time.Duration) time.Duration {
		d.trial.best.Store(0)
		c.takes, c.writing = barrier, write
		d.Write(10, block(1))
		d.Barrier()
		c.takes, c.writing = 0, 0
		d.Barrier()
		tried, _ := d.Judgement()
		return tried
	}
	if tried := try(takes, 0); tried < takes {
		t.Errorf("tried: %v, where the only barrier behind a write took %v", tried, takes)
	}
	if tried := try(0, takes); tried < takes {
		t.Errorf("tried: %v, where the only write took %v", tried, takes)
	}
	d.trial.best.Store(int64(time.Hour))
	d.Write(10, block(1))
	d.Barrier()
	if tried, _ := d.Judgement(); tried == time.Hour {
		t.Error("a quicker one does not count")
	}
	d.Judge()
	if d.trial.on.Load() {
		t.Error("the trial goes on")
	}
	d = New(c) // who never paces, as mkfs, tries nothing
	d.Write(10, block(1))
	d.Barrier()
	d.Judge()
	if tried, past := d.Judgement(); tried != 0 || past {
		t.Errorf("tried %v, past the cache: %v", tried, past)
	}
}

func blocksOf(n uint64) (l []*dbytes.Blk) {
	for range n {
		l = append(l, block(2))
	}
	return l
}
