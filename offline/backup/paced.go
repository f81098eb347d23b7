package backup

import (
	"context"
	"io"
	"time"
)

// paced is a writer that takes so many bytes a second at most, or leaves most of the time to others.
type paced struct {
	w      io.Writer
	ctx    context.Context
	rate   uint64 // 0: any
	gentle bool
	since  time.Time
	sent   uint64
	ended  time.Time // the last Write

	now   func() time.Time // tests replace both
	after func(time.Duration) <-chan time.Time
}

// newPaced is a writer to w.
func newPaced(ctx context.Context, w io.Writer, rate uint64, gentle bool) *paced {
	return &paced{w: w, ctx: ctx, rate: rate, gentle: gentle && rate == 0, now: time.Now, after: time.After}
}

// gentleShare: a gentle writer, and who writes to it, work for one part in so many of the time. What they do costs
// others more, the more there is to do beside: then it also takes longer, and so does the rest that follows.
const gentleShare = 8

// pause is the least time worth waiting.
const pause = 10 * time.Millisecond

// Write implements io.Writer. It returns the cause of the end of the context.
func (p *paced) Write(b []byte) (int, error) {
	if p.ctx.Err() != nil {
		return 0, context.Cause(p.ctx)
	}
	if p.rate > 0 {
		if p.since.IsZero() {
			p.since = p.now()
		}
		p.sent += uint64(len(b))
		due := time.Duration(float64(p.sent) / float64(p.rate) * float64(time.Second))
		if wait := due - p.now().Sub(p.since); wait >= pause {
			if err := p.wait(wait); err != nil {
				return 0, err
			}
		}
	}
	n, err := p.w.Write(b)
	if err == nil && p.gentle {
		err = p.rest()
	}
	return n, err
}

// rest waits in proportion to the time since the last Write.
func (p *paced) rest() error {
	if !p.ended.IsZero() {
		if err := p.wait((gentleShare - 1) * p.now().Sub(p.ended)); err != nil {
			return err
		}
	}
	p.ended = p.now()
	return nil
}

// wait waits, and returns the cause of the end of the context if that comes first.
func (p *paced) wait(d time.Duration) error {
	select {
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	case <-p.after(d):
		return nil
	}
}
