package background

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"tansy/journal"
)

// Contents is what a scrubber needs of a volume.
type Contents interface {
	// Check makes one pass over all that is in use.
	Check(ctx context.Context, pass journal.Scrub) (journal.ScrubCounts, error)
	// InUse is how many blocks a pass deals with, about; 0: not known.
	InUse() uint64
	// Renew has a block written anew that the device has lost and memory has. False: that could not be done.
	Renew(block uint64) bool
}

// ScrubStatus is how a scrub is doing, with the fields of fs.ScrubStatus, which is made of it. Times are zero as long
// as there was none.
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

// Scrubber makes passes over a volume. Its methods may be called concurrently.
type Scrubber struct {
	Rate  uint64                               // bytes per second
	Now   func() time.Time                     // time.Now, another in tests
	After func(time.Duration) <-chan time.Time // time.After, another in tests

	v     Contents
	name  func(block uint64) // has the log tell whose a damaged block is
	log   *slog.Logger
	every time.Duration // 0: only when asked for
	ask   chan struct{}
	stop  context.CancelFunc
	ended sync.WaitGroup

	renewed uint64 // blocks that this pass has written anew

	mu     sync.Mutex
	status ScrubStatus
	before uint64 // blocks checked in passes before
	closed bool
}

// NewScrubber is of volume v, at a rate in bytes per second, and with so much time from the start of a pass to that of
// the next; 0: only when asked for. name is told of blocks that are damaged. It does nothing before Start.
func NewScrubber(v Contents, rate uint64, every time.Duration, name func(block uint64), log *slog.Logger) *Scrubber {
	s := &Scrubber{Rate: rate, Now: time.Now, After: time.After, v: v, name: name, log: log, every: every}
	s.ask, s.stop = make(chan struct{}, 1), func() {}
	s.status.Rate, s.status.Every = rate, every
	return s
}

// Start begins to make passes, the first at once, or when it is asked for.
func (s *Scrubber) Start() {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.ended.Go(func() {
		for wait := time.Duration(0); ; {
			var due <-chan time.Time
			if s.every > 0 {
				due = s.After(wait)
			}
			select {
			case <-ctx.Done():
				return
			case <-s.ask:
			case <-due:
			}
			began := s.Now()
			s.Pass(ctx)
			wait = max(0, s.every-s.Now().Sub(began))
		}
	})
}

// Close ends the pass that runs, and all to come. It may be called again.
func (s *Scrubber) Close() {
	s.stop()
	s.ended.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.status.Running = true, false // one that was asked for just now did not begin
}

// Pass makes one.
func (s *Scrubber) Pass(ctx context.Context) {
	total := s.v.InUse()
	s.mu.Lock()
	s.begin()
	s.status.Total = total
	began, passes := s.status.Began, s.status.Passes
	s.mu.Unlock()
	select {
	case <-s.ask: // this is it
	default:
	}
	s.log.Info("a scrub begins", "blocks", total, "bytes_per_second", s.Rate)
	s.renewed = 0
	pace := pacer{rate: s.Rate, now: s.Now, after: s.After}
	n, err := s.v.Check(ctx, journal.Scrub{Before: pace.wait, Found: s.found, Progress: s.progress})
	s.progress(n)
	s.mu.Lock()
	s.before += n.Good
	s.status.Running, s.status.Err = false, err
	if err == nil {
		s.status.Ended, s.status.Passes, s.status.Last = s.Now(), passes+1, n
	}
	s.mu.Unlock()
	attrs := []any{"checked", n.Good, "damaged", n.Damaged, "unchecked", n.Unchecked,
		"took", s.Now().Sub(began).Round(time.Millisecond)}
	switch {
	case errors.Is(err, context.Canceled):
		s.log.Info("the scrub ends before its time, as the volume is served no more", attrs...)
	case err != nil:
		s.log.Error("the scrub ends before its time", append(attrs, "err", err)...)
	case n.Damaged > 0 && n.Damaged == s.renewed && n.Unchecked == 0:
		s.log.Warn("the scrub has found damage, and written it anew", attrs...)
	case n.Damaged > 0:
		s.log.Error("the scrub has found damage", append(attrs,
			"advice", "when it suits, stop the server and run tansy check --data")...)
	default:
		s.log.Info("the scrub has found no damage", attrs...)
	}
}

// begin says that a pass is to begin. The caller holds mu.
func (s *Scrubber) begin() {
	s.status.Running, s.status.Began, s.status.Err = true, s.Now(), nil
	s.status.Pass, s.status.Total = journal.ScrubCounts{}, 0
}

func (s *Scrubber) progress(n journal.ScrubCounts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Pass, s.status.Checked = n, s.before+n.Good
}

// found logs what the journal has not: what is not needed by anybody now.
func (s *Scrubber) found(f journal.Finding) {
	switch {
	case f.InMemory && s.v.Renew(f.Block):
		s.renewed++
		s.log.Warn("a block was damaged on the device, and is written anew, as the server had it in memory still",
			"block", f.Block, "error", f.Err)
		s.name(f.Block)
	case f.InMemory:
		s.log.Error("a block is damaged on the device; the server has it in memory still", "block", f.Block, "error", f.Err,
			"advice", "it is written anew when it changes; until then, keep the server running")
		s.name(f.Block)
	case !errors.Is(f.Err, journal.ErrNotAsWritten):
		s.log.Error("a block cannot be read", "block", f.Block, "error", f.Err)
		s.name(f.Block)
	}
}

// Ask asks for a pass now, which Status says from then on. If one runs already, that is it; after Close there is none.
func (s *Scrubber) Ask() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.status.Running && !s.closed {
		s.begin()
		s.ask <- struct{}{}
	}
}

// Status says how it is doing.
func (s *Scrubber) Status() ScrubStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

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
	p.next = p.next.Add(time.Duration(float64(n*blockSize) / float64(p.rate) * float64(time.Second)))
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
