package background

import (
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// orphans is a volume with so many steps of blocks to be freed.
type orphans struct {
	steps  atomic.Int64
	others atomic.Int64
	err    error
}

// plenty is more than the freer gets through in a few turns.
const plenty = 1 << 22

func (o *orphans) OtherCommits() int64 { return o.others.Load() }

func (o *orphans) FreeSome() (more bool, err error) { return o.steps.Add(-1) > 0, o.err }

// The freer rests now and then, so that others get on. Meanwhile who needs room can go on with its work, and it can be
// stopped.
func TestFreerRests(t *testing.T) {
	v := &orphans{}
	f := NewFreer(v, slog.New(slog.DiscardHandler))
	rests := make(chan chan time.Time)
	var long time.Duration // the last rest
	f.rest = func(d time.Duration) <-chan time.Time {
		over := make(chan time.Time)
		long = d
		rests <- over
		return over
	}
	v.steps.Store(plenty)
	f.Start()
	over := <-rests
	next := func() {
		close(over)
		over = <-rests
	}
	for f.Steps() == 0 { // its turn may be over before it got a processor
		next()
	}
	if !f.Waiting() {
		t.Fatalf("it is done after %d steps", f.Steps())
	}
	n := f.Steps()
	if f.Help(3); f.Steps() != n+3 {
		t.Error("nobody can help")
	}
	if next(); long != freeRest {
		t.Errorf("it rests for %v though it is alone", long)
	}
	v.others.Add(1)
	if next(); long != freeYield {
		t.Errorf("it rests for %v beside others", long)
	}
	if next(); long != freeRest {
		t.Errorf("it rests for %v when the others are gone", long)
	}
	for v.steps.Store(1); f.Waiting(); {
		next()
	}
	n = f.Steps()
	close(over)
	v.steps.Store(plenty)
	f.Wake() // there is more
	for over = <-rests; f.Steps() == n; {
		next()
	}
	f.Close()
	if !f.Waiting() {
		t.Error("it went on to the end")
	}
}

// A volume that cannot be freed is left alone, and the log says why. Who is not started does nothing.
func TestFreerFails(t *testing.T) {
	var log strings.Builder
	v := &orphans{err: errors.New("no such list")}
	v.steps.Store(10)
	f := NewFreer(v, slog.New(slog.NewTextHandler(&log, nil)))
	if f.Help(3); f.Steps() > 0 || v.steps.Load() != 10 {
		t.Error("there was nothing to do, and it did it")
	}
	f.Wake()
	if f.Help(3); f.Steps() > 0 || v.steps.Load() != 9 || f.Waiting() {
		t.Errorf("%d steps, %d blocks are left", f.Steps(), v.steps.Load())
	}
	if !strings.Contains(log.String(), "no such list") {
		t.Errorf("the log: %q", log.String())
	}
	f.Close()
	f.Close()
}
