package backup

import (
	"context"
	"io"
	"time"
)

// paced is a writer that takes so many bytes a second at most.
type paced struct {
	w     io.Writer
	ctx   context.Context
	rate  uint64 // 0: any
	since time.Time
	sent  uint64
}

// pause is the least time worth waiting.
const pause = 10 * time.Millisecond

// Write implements io.Writer. It returns the cause of the end of the context.
func (p *paced) Write(b []byte) (int, error) {
	if p.ctx.Err() != nil {
		return 0, context.Cause(p.ctx)
	}
	if p.rate > 0 {
		if p.since.IsZero() {
			p.since = time.Now()
		}
		p.sent += uint64(len(b))
		due := time.Duration(float64(p.sent) / float64(p.rate) * float64(time.Second))
		if wait := due - time.Since(p.since); wait >= pause {
			select {
			case <-p.ctx.Done():
				return 0, context.Cause(p.ctx)
			case <-time.After(wait):
			}
		}
	}
	return p.w.Write(b)
}
