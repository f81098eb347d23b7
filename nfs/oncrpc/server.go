package oncrpc

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"tansy/internal/lockorder"
	"tansy/nfs/fair"
)

// Config sets up a Server. Zero values stand for the defaults.
type Config struct {
	Programs []Program
	Log      *slog.Logger // default slog.Default()

	// TLS, if not nil, returns how a handshake is made that begins now: with a certificate, and with TLS 1.3 at least.
	// It may be called concurrently. nil: callers who ask for TLS are told that there is none.
	TLS func() *tls.Config

	// MayReply, if not nil, is asked before replies leave. It may wait; false ends the connection, without a reply.
	MayReply func() bool

	MaxConns        int // connections at a time, default 1024; a new one takes the place of the longest idle
	MaxConnsPerHost int // of them from one address, or one IPv6 network (/64), default 128
	MaxInFlight     int // calls in progress per connection, default 64
	MaxHandshakes   int // of TLS, begun and not ended, default a quarter of MaxConns; a new one ends another

	// Memory over all connections, in bytes; fair.Memory says how it is shared out.
	//
	// RecordBytes is for large calls, such as WRITE, being received or carried out, default 16 MiB. A third as much
	// more goes to what carrying out takes, and a sixteenth to calls that are small for large ones.
	RecordBytes int
	ReplyBytes  int // of other calls in progress, and of replies until the peer has taken them, default 12 MiB

	IdleTimeout   time.Duration // without a call, default 10 minutes
	RecordTimeout time.Duration // for the next 32 KiB of a record, or the rest of it, default 1 minute
	WriteTimeout  time.Duration // for the peer to take a reply, or 256 KiB of it, default 1 minute

	HandshakeTimeout time.Duration // for the handshake of TLS, default 10 seconds

	// CrowdedTimeout is in place of RecordTimeout when others wait for memory, and a third of it in place of
	// WriteTimeout; default 5 seconds.
	CrowdedTimeout time.Duration
}

// ErrClosed is what Serve returns after Shutdown.
var ErrClosed = errors.New("oncrpc: server closed")

// Server answers calls on any number of listeners.
type Server struct {
	cfg            Config
	records, calls *fair.Memory
	small          *fair.Memory // in place of records when that has no room: of whole calls up to soonBytes
	copies         *fair.Memory // of large calls that are carried out
	turns          *fair.Turns
	shakes         *fair.Turns // of what handshakes compute, beside calls
	changes        *fair.Changes
	around         around
	work           workers
	began          time.Time
	count          counters

	// tick counts seconds, so that connections can note the time for nothing; lately is when the janitor last
	// looked who is slow, by now.
	tick, lately atomic.Int64

	mu        lockorder.Mutex[lockorder.Connections]
	closing   bool
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	hosts     map[netip.Prefix]*host // of connections that have not ended
	shaking   int                    // handshakes of TLS that have not ended
	done      sync.WaitGroup         // connections
	stop      chan struct{}          // closed when Shutdown begins
	janitor   sync.Once
	ended     sync.Once
	end       chan struct{} // closed when all connections are
}

// NewServer makes a server that listens nowhere yet.
func NewServer(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	setDefault(&cfg.MaxConns, 1024)
	setDefault(&cfg.MaxConnsPerHost, 128)
	setDefault(&cfg.MaxInFlight, 64)
	setDefault(&cfg.MaxHandshakes, max(1, cfg.MaxConns/4))
	setDefault(&cfg.HandshakeTimeout, 10*time.Second)
	setDefault(&cfg.RecordBytes, 16<<20)
	setDefault(&cfg.ReplyBytes, 12<<20)
	setDefault(&cfg.IdleTimeout, 10*time.Minute)
	setDefault(&cfg.RecordTimeout, time.Minute)
	setDefault(&cfg.WriteTimeout, time.Minute)
	setDefault(&cfg.CrowdedTimeout, 5*time.Second)
	cfg.Programs = withStats(cfg.Programs)
	received := fair.Parts{fair.Slow: 4, fair.Fresh: 7, fair.Proven: 8}
	alike := fair.Parts{fair.Slow: 8, fair.Fresh: 8, fair.Proven: 8}
	s := &Server{
		cfg: cfg, began: time.Now(),
		records:   fair.NewMemory(cfg.RecordBytes, cfg.RecordBytes/3, received),
		copies:    fair.NewMemory(cfg.RecordBytes/3, cfg.RecordBytes/3, alike),
		small:     fair.NewMemory(cfg.RecordBytes/16, cfg.RecordBytes/64, alike),
		calls:     fair.NewMemory(cfg.ReplyBytes, cfg.ReplyBytes/4, fair.Parts{fair.Slow: 6, fair.Fresh: 7, fair.Proven: 8}),
		changes:   fair.NewChanges(),
		turns:     fair.NewTurns(fair.RoomPerProcessor * max(2, runtime.GOMAXPROCS(0))),
		shakes:    fair.NewTurns(shakeRoom),
		listeners: map[net.Listener]struct{}{}, conns: map[*conn]struct{}{}, hosts: map[netip.Prefix]*host{},
		stop: make(chan struct{}), end: make(chan struct{}),
	}
	s.tick.Store(1)
	s.work.init()
	s.around.do = s.turns.LookAround
	s.turns.Soon = s.around.ask
	return s
}

func (s *Server) mayReply() bool { return s.cfg.MayReply == nil || s.cfg.MayReply() }

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// Serve accepts connections until Shutdown, or until l fails. It closes l.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		l.Close()
		return ErrClosed
	}
	s.listeners[l] = struct{}{}
	s.janitor.Do(func() { go s.clean() })
	s.mu.Unlock()
	defer l.Close()

	pause := time.Millisecond
	for {
		nc, err := l.Accept()
		if err == nil {
			pause = time.Millisecond
			s.open(nc)
			continue
		}
		s.mu.Lock()
		closing := s.closing
		s.mu.Unlock()
		if closing {
			return ErrClosed
		}
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		s.cfg.Log.Warn("accept failed", "err", err)
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			s.mu.Lock()
			s.evict(nil) // which closes a descriptor soon
			s.mu.Unlock()
		}
		select {
		case <-s.stop:
		case <-time.After(pause):
		}
		pause = min(2*pause, time.Second)
	}
}

// now is the time in nanoseconds, more than 0, by a clock that is never set.
func (s *Server) now() int64 { return s.at(time.Now()) }

func (s *Server) at(t time.Time) int64 { return int64(t.Sub(s.began)) + 1 }

// open starts a connection, or refuses it.
func (s *Server) open(nc net.Conn) {
	s.mu.Lock()
	c, refused := s.admit(nc)
	if c != nil {
		s.done.Add(1)
		go s.run(c)
	}
	closing := s.closing
	s.mu.Unlock()
	if c == nil {
		if !closing {
			s.count.refusedConns.Add(1)
			s.cfg.Log.Warn("connection refused", "peer", nc.RemoteAddr(), "why", refused)
		}
		nc.Close()
	}
}

// run serves a connection to its end, unless another goroutine takes that over.
func (s *Server) run(c *conn) {
	if !c.run() {
		return
	}
	s.mu.Lock()
	s.leave(c)
	s.countEnded(c)
	s.mu.Unlock()
	s.done.Done()
}

// Shutdown stops listening and reading. It lets the calls in progress finish, sends their replies, and closes the
// connections. A peer that takes nothing of a reply for stallTime, or nothing of 256 KiB of it, is closed. If ctx ends
// first, Shutdown closes all connections and returns the error of ctx; procedures may run still. It may be called
// again.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if !s.closing {
		s.closing = true
		close(s.stop)
		go s.closeStalled()
	}
	for l := range s.listeners {
		l.Close()
	}
	for c := range s.conns {
		c.stopReading()
	}
	s.mu.Unlock()

	go func() {
		s.done.Wait()
		s.ended.Do(func() {
			s.work.close()
			s.around.close()
			close(s.end)
		})
	}()
	select {
	case <-s.end:
		return nil
	case <-ctx.Done():
		s.mu.Lock()
		for c := range s.conns {
			c.hangUp()
		}
		s.mu.Unlock()
		return ctx.Err()
	}
}

// stallTime is what Shutdown waits for a peer to take a reply.
const stallTime = 700 * time.Millisecond

// closeStalled closes the connections of a stopping server whose peers take nothing, until all
// have ended.
func (s *Server) closeStalled() {
	t := time.NewTicker(stallTime)
	defer t.Stop()
	for last := map[*conn]uint64{}; ; {
		s.mu.Lock()
		for c := range s.conns {
			sent := c.link.sent.Load()
			writing := c.writeSince.Load() != 0
			if before, was := last[c]; was && writing && before == sent {
				s.cfg.Log.Info("connection closed",
					"peer", c.nc.RemoteAddr(), "why", "the server stops, and the peer does not take its replies")
				c.hangUp()
			}
			delete(last, c)
			if writing {
				last[c] = sent
			}
		}
		s.mu.Unlock()
		select {
		case <-s.end:
			return
		case <-t.C:
		}
	}
}

// Conns is the number of open connections.
func (s *Server) Conns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// clean closes connections that ran into a timeout, and reads on where the reader is
// busy with a call. One goroutine with a clock of seconds does it for all, since a
// deadline for every read would cost more than a cheap call.
func (s *Server) clean() {
	t := time.NewTicker(time.Second / judgements)
	defer t.Stop()
	for i := 1; ; i++ {
		select {
		case <-s.end:
			return
		case <-t.C:
			now := s.now()
			s.lately.Store(now)
			s.judge(now)
			if i%judgements == 0 {
				s.sweep(s.tick.Add(1))
			}
		}
	}
}

// judgements is how often in a second the janitor looks who is slow.
const judgements = 4

func (s *Server) judge(now int64) {
	s.changes.Look()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.judge(now)
		c.lookAtReplies(now)
	}
}

// sweep closes the connections that are overdue at second now, and has another
// goroutine read those whose own is busy with a call.
func (s *Server) sweep(now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if why := c.overdue(now); why != "" {
			s.cfg.Log.Info("connection closed", "peer", c.nc.RemoteAddr(), "why", why)
			c.hangUp()
		}
		if c.takeOver(now) {
			go s.run(c)
		}
	}
}

// workers is a pool of goroutines. A goroutine that ran a procedure once has the
// stack it needs, which a new one would have to grow.
type workers struct {
	ch   chan *task
	idle atomic.Int32
}

const maxIdleWorkers = 128

func (w *workers) init() { w.ch = make(chan *task) }

func (w *workers) start(t *task) {
	select {
	case w.ch <- t:
	default:
		go w.loop(t)
	}
}

func (w *workers) loop(t *task) {
	for t != nil {
		c := t.c
		c.send(t.run(), &t.turn)
		t.end()
		if w.idle.Add(1) > maxIdleWorkers {
			w.idle.Add(-1)
			return
		}
		t = <-w.ch
		w.idle.Add(-1)
	}
}

// close ends the workers. No task may be started after it.
func (w *workers) close() { close(w.ch) }
