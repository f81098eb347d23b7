package journal

import (
	"sync"

	"tansy/internal/closing"
)

// closer tells the calls that may begin from those that come too late. Those that commit the verified code refuses as
// well.
type closer struct {
	calls *closing.Gate
	once  sync.Once
	err   error // what Close returns

	mu    sync.Mutex
	hooks []func() // see OnClose
}

func newCloser() closer { return closer{calls: closing.New()} }

// Enter begins a call of a layer above. Close waits for it until Leave. The error is ErrClosed if Close has begun.
func (j *Journal) Enter() error {
	if !j.closing.calls.Enter() {
		return ErrClosed
	}
	return nil
}

// Leave ends a call that Enter has begun.
func (j *Journal) Leave() { j.closing.calls.Leave() }

// OnClose has f called when Close has begun, before Close waits for calls. Nothing else begins from then on.
func (j *Journal) OnClose(f func()) {
	j.closing.mu.Lock()
	defer j.closing.mu.Unlock()
	j.closing.hooks = append(j.closing.hooks, f)
}

// await lets no call begin any more, and waits for those under way.
func (c *closer) await() {
	c.calls.Shut()
	c.mu.Lock()
	hooks := c.hooks
	c.mu.Unlock()
	for _, f := range hooks {
		f()
	}
	c.calls.Close()
}
