package fs

import (
	"context"
	"errors"
	"sync"
	"time"

	"tansy/journal"
)

// ScrubOptions say how a volume is scrubbed: all that is in use is read from the device and checked, beside everything
// else. The zero value is: only when it is asked for.
type ScrubOptions struct {
	Rate  uint64        // bytes per second; 0: no pass but those asked for, at DefaultScrubRate
	Every time.Duration // from the start of a pass to that of the next; 0: DefaultScrubEvery
}

// Defaults of a scrub.
const (
	DefaultScrubRate  = 20 << 20
	DefaultScrubEvery = 7 * 24 * time.Hour
)

// ScrubStatus is how a scrub is doing. Times are zero as long as there was none.
type ScrubStatus struct {
	Rate    uint64        // bytes per second
	Every   time.Duration // 0: only when asked for
	Running bool
	Passes  uint64              // that came to their end
	Pass    journal.ScrubCounts // of the pass that runs, or else of the last one
	Last    journal.ScrubCounts // of the last one that came to its end
	Total   uint64              // blocks that the pass will have dealt with, about; 0: not known
	Began   time.Time
	Ended   time.Time // of the last pass that came to its end
	Checked uint64    // blocks that were read and checked since the start, in all passes
	Err     error     // why the last pass did not come to its end
}

// scrubber makes passes over a volume.
type scrubber struct {
	v     *FS
	rate  uint64
	every time.Duration // 0: only when asked for
	now   func() time.Time
	after func(time.Duration) <-chan time.Time
	ask   chan struct{}
	stop  context.CancelFunc
	ended sync.WaitGroup

	renewed uint64 // blocks that this pass has written anew

	mu     sync.Mutex
	status ScrubStatus
	before uint64 // blocks checked in passes before
	closed bool
}

func (v *FS) newScrubber(o ScrubOptions) *scrubber {
	s := &scrubber{v: v, rate: o.Rate, now: time.Now, after: time.After, ask: make(chan struct{}, 1), stop: func() {}}
	if o.Rate > 0 {
		s.every = o.Every
		if o.Every == 0 {
			s.every = DefaultScrubEvery
		}
	} else {
		s.rate = DefaultScrubRate
	}
	s.status.Rate, s.status.Every = s.rate, s.every
	return s
}

// start begins to make passes, the first at once.
func (s *scrubber) start() {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.ended.Go(func() {
		for wait := time.Duration(0); ; {
			var due <-chan time.Time
			if s.every > 0 {
				due = s.after(wait)
			}
			select {
			case <-ctx.Done():
				return
			case <-s.ask:
			case <-due:
			}
			began := s.now()
			s.pass(ctx)
			wait = max(0, s.every-s.now().Sub(began))
		}
	})
}

// close ends the pass that runs, and all. It may be called again.
func (s *scrubber) close() {
	s.stop()
	s.ended.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.status.Running = true, false // one that was asked for just now did not begin
}

// pass makes one.
func (s *scrubber) pass(ctx context.Context) {
	v := s.v
	total := v.scrubTotal()
	s.mu.Lock()
	s.begin()
	s.status.Total = total
	began, passes := s.status.Began, s.status.Passes
	s.mu.Unlock()
	select {
	case <-s.ask: // this is it
	default:
	}
	v.log.Info("a scrub begins", "blocks", total, "bytes_per_second", s.rate)
	s.renewed = 0
	pace := pacer{rate: s.rate, now: s.now, after: s.after}
	n, err := v.sys.Scrub(ctx, journal.Scrub{
		Limit:    v.dmg.Size - 1, // there is the superblock's copy
		Before:   pace.wait,
		Found:    s.found,
		Progress: s.progress,
	})
	s.progress(n)
	s.mu.Lock()
	s.before += n.Good
	s.status.Running, s.status.Err = false, err
	if err == nil {
		s.status.Ended, s.status.Passes, s.status.Last = s.now(), passes+1, n
	}
	s.mu.Unlock()
	attrs := []any{"checked", n.Good, "damaged", n.Damaged, "unchecked", n.Unchecked, "took", s.now().Sub(began).Round(time.Millisecond)}
	switch {
	case errors.Is(err, context.Canceled):
		v.log.Info("the scrub ends before its time, as the volume is served no more", attrs...)
	case err != nil:
		v.log.Error("the scrub ends before its time", append(attrs, "err", err)...)
	case n.Damaged > 0 && n.Damaged == s.renewed && n.Unchecked == 0:
		v.log.Warn("the scrub has found damage, and written it anew", attrs...)
	case n.Damaged > 0:
		v.log.Error("the scrub has found damage", append(attrs, "advice", "when it suits, stop the server and run tansy check --data")...)
	default:
		v.log.Info("the scrub has found no damage", attrs...)
	}
}

// begin says that a pass is to begin. The caller holds mu.
func (s *scrubber) begin() {
	s.status.Running, s.status.Began, s.status.Err = true, s.now(), nil
	s.status.Pass, s.status.Total = journal.ScrubCounts{}, 0
}

func (s *scrubber) progress(n journal.ScrubCounts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Pass, s.status.Checked = n, s.before+n.Good
}

// found logs what the journal has not: what is not needed by anybody now.
func (s *scrubber) found(f journal.Finding) {
	switch {
	case f.InMemory && s.v.renew(f.Block):
		s.renewed++
		s.v.log.Warn("a block was damaged on the device, and is written anew, as the server had it in memory still", "block", f.Block, "error", f.Err)
		s.v.dmg.Name(f.Block)
	case f.InMemory:
		s.v.log.Error("a block is damaged on the device; the server has it in memory still", "block", f.Block, "error", f.Err, "advice", "it is written anew when it changes; until then, keep the server running")
		s.v.dmg.Name(f.Block)
	case !errors.Is(f.Err, journal.ErrNotAsWritten):
		s.v.log.Error("a block cannot be read", "block", f.Block, "error", f.Err)
		s.v.dmg.Name(f.Block)
	}
}

// scrubTotal is the number of blocks that a pass deals with, or 0.
func (v *FS) scrubTotal() uint64 {
	free, err := v.sys.Count(0)
	if err != nil {
		return 0
	}
	return v.dmg.Params.Pages + v.geo.Data1() - v.dmg.Params.Home() - free
}

// Scrub asks for a pass now, which Running says from then on. If one runs already, that is it; after EndScrubs there is
// none.
func (v *FS) Scrub() {
	s := v.scrub
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.status.Running && !s.closed {
		s.begin()
		s.ask <- struct{}{}
	}
}

// EndScrubs ends the scrub that runs, and all to come: there is no sense in reading a volume that is not the server's
// any more.
func (v *FS) EndScrubs() { v.scrub.close() }

// ScrubStatus says how it is doing.
func (v *FS) ScrubStatus() ScrubStatus {
	v.scrub.mu.Lock()
	defer v.scrub.mu.Unlock()
	return v.scrub.status
}

// DamagedBlocks is the number of blocks that were found damaged since the volume was opened, by whomever.
func (v *FS) DamagedBlocks() int { return len(v.sys.Damaged()) }

// pacer holds reads back to a rate. What was not read in time is not made up for.
type pacer struct {
	rate  uint64 // bytes per second
	now   func() time.Time
	after func(time.Duration) <-chan time.Time
	next  time.Time // when the next read may begin
}

// wait waits until n blocks may be read, or until ctx is done.
func (p *pacer) wait(ctx context.Context, n uint64) error {
	now := p.now()
	if p.next.Before(now) {
		p.next = now
	}
	wait := p.next.Sub(now)
	p.next = p.next.Add(time.Duration(float64(n*BlockSize) / float64(p.rate) * float64(time.Second)))
	if wait <= 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.after(wait):
		return nil
	}
}
