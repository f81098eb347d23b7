package ddisk

import (
	"sync/atomic"

	"tansy/disk"
)

// pace has writes reach the medium before the next barrier, which would write all that lies in the system's cache,
// while everybody waits: long ones at once, short ones in waves, each as soon as it is complete. What the installer
// writes is scattered over the volume, a thousand blocks and more; of what is written straight home, 32 MiB may have
// come since the last barrier.
type pace struct {
	on       bool
	from, to uint64 // what is written here is not paced: the log has a barrier soon
	busy     atomic.Bool
	n        uint64  // blocks of the wave that is being collected,
	wave     stretch // which are among these
	before   stretch // of the wave before, which may be on its way
}

// stretch is blocks a up to end, without the latter.
type stretch struct{ a, end uint64 }

const (
	waveBlocks = 64 // two waves at most are on their way, which a barrier may have to wait for
	longWrite  = 16 // so many blocks are worth an operation of their own
)

// Pace says that writes are to reach the medium soon, but those of the blocks from a up to end, without the latter.
// Call it before the first write. It begins a trial of the device, which Judge ends.
func (d *Disk) Pace(a, end uint64) {
	d.pace.on, d.pace.from, d.pace.to = true, a, end
	d.trial.on.Store(true)
	disk.BarrierFollows(d.d, a, end)
}

// push tells the pace that n blocks from a on were written. It may wait until the wave before the last is written.
// Writers side by side do not wait for each other: what one of them writes while another is here is left to the
// barrier.
func (d *Disk) push(a, n uint64) {
	p := &d.pace
	if !p.on || a >= p.from && a < p.to {
		return
	}
	if n >= longWrite {
		disk.Push(d.d, a, n, false)
		return
	}
	if !p.busy.CompareAndSwap(false, true) {
		return
	}
	defer p.busy.Store(false)
	if p.n == 0 {
		p.wave = stretch{a, a + n}
	}
	p.wave = stretch{min(p.wave.a, a), max(p.wave.end, a+n)}
	if p.n += n; p.n < waveBlocks {
		return
	}
	disk.Push(d.d, p.wave.a, p.wave.end-p.wave.a, false)
	if p.before.a < p.before.end {
		disk.Push(d.d, p.before.a, p.before.end-p.before.a, true)
	}
	p.before, p.n = p.wave, 0
}
