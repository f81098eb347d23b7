package ablation

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"

	"tansy/disk"
)

// oneAtATime is a device on which whoever writes has it for himself until his next barrier. The journal's two threads,
// which write the log and what goes home, end all that they write with a barrier.
type oneAtATime struct {
	disk.Disk
	turn sync.Mutex
	who  atomic.Pointer[string] // whose turn it is
}

// Unwrap is the device itself.
func (o *oneAtATime) Unwrap() disk.Disk { return o.Disk }

// WriteAt waits for its turn.
func (o *oneAtATime) WriteAt(a uint64, bufs [][]byte) error {
	if !o.mine() {
		o.turn.Lock()
		me := goroutine()
		o.who.Store(&me)
	}
	return o.Disk.WriteAt(a, bufs)
}

// Barrier ends the turn.
func (o *oneAtATime) Barrier() error {
	err := o.Disk.Barrier()
	if o.mine() {
		o.who.Store(nil)
		o.turn.Unlock()
	}
	return err
}

func (o *oneAtATime) mine() bool {
	w := o.who.Load()
	return w != nil && *w == goroutine()
}

// goroutine names the one that asks: "goroutine 17". There is no other way to tell, and next to a write it takes no
// time.
func goroutine() string {
	var buf [64]byte
	text, _, _ := bytes.Cut(buf[:runtime.Stack(buf[:], false)], []byte(" ["))
	return string(text)
}
