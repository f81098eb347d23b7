package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"tansy/disk"
	"tansy/fs"
	"tansy/ops/status"
)

// Volume is what a Server gives access to. Its functions may be called concurrently.
type Volume struct {
	ID     [16]byte
	Take   func(ctx context.Context) (*fs.Moment, error)
	Label  Labels
	Source status.Source // of which Image and Grow are used
}

// Labels are where the label of a volume is: its fs.FS.
type Labels interface {
	Label() (string, error)
	SetLabel(label string) error
}

// Server answers on the socket of a volume.
type Server struct {
	v       Volume
	log     *slog.Logger
	socket  *socket
	http    http.Server
	ctx     context.Context // ends with Close
	end     context.CancelCauseFunc
	working sync.WaitGroup // what uses the volume
	idle    time.Duration  // idleAfter, less in tests

	mu    sync.Mutex
	taken uint64 // moments so far
	open  int    // of them, or about to be
	held  map[uint64]*held
}

// held is a moment that somebody has.
type held struct {
	disk.Disk
	idle *time.Timer
}

const (
	mostMoments = 4                // of a volume at a time
	idleAfter   = 10 * time.Minute // a moment that nobody asks for anything ends
	grace       = time.Second      // that a client has to take its answer when the server stops
)

// Why a moment ends.
var (
	errStops = errors.New("the server stops")
	errGone  = errors.New("the reader has gone")
	errIdle  = fmt.Errorf("nothing was asked of it for %v", idleAfter)
)

// Serve answers on the socket of a volume in a folder, until Close. The folder is made, if it is not there; the socket
// of a server that ended is replaced. It is an error if others may write to the folder, or if another server answers.
func Serve(dir string, v Volume, log *slog.Logger) (*Server, error) {
	return serve(dir, v, log, idleAfter)
}

func serve(dir string, v Volume, logger *slog.Logger, idle time.Duration) (*Server, error) {
	at, err := listen(dir, name(v.ID))
	if err != nil {
		return nil, err
	}
	s := &Server{v: v, log: logger, socket: at, idle: idle, held: map[uint64]*held{}}
	s.ctx, s.end = context.WithCancelCause(context.Background())
	m := http.NewServeMux()
	m.HandleFunc("POST /moment", s.take)
	m.HandleFunc("GET /moment/{id}/blocks", s.blocks)
	m.HandleFunc("GET /moment/{id}/data", s.data)
	m.HandleFunc("POST /moment/{id}/release", s.release)
	m.HandleFunc("GET /volume", s.which)
	m.HandleFunc("POST /label", s.label)
	m.HandleFunc("POST /grow", s.grow)
	s.http = http.Server{
		Handler: s.counted(m), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10,
		ErrorLog: log.New(logWriter{logger}, "", 0),
	}
	go func() { _ = s.http.Serve(at) }() // until Close
	return s, nil
}

// logWriter has what the HTTP server says in the log of the volume's.
type logWriter struct{ log *slog.Logger }

func (w logWriter) Write(b []byte) (int, error) {
	w.log.Debug("control", "err", string(b))
	return len(b), nil
}

// Close ends all moments, and all else that is asked for; nothing uses the volume when it has returned. A nil Server
// has nothing to close.
func (s *Server) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.end(errStops)
	s.mu.Unlock() // whoever comes later sees it
	s.socket.remove()
	s.working.Wait()
	_ = s.http.Close()
}

// counted has Close wait for what h does, and tells it that the server stops.
func (s *Server) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		stops := s.ctx.Err() != nil
		if !stops {
			s.working.Add(1)
		}
		s.mu.Unlock()
		if stops {
			http.Error(w, errStops.Error(), http.StatusServiceUnavailable)
			return
		}
		defer s.working.Done()
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		defer context.AfterFunc(s.ctx, func() {
			cancel(errStops)
			c, end := http.NewResponseController(w), time.Now().Add(grace)
			_, _ = c.SetReadDeadline(end), c.SetWriteDeadline(end) // the client may be stopped, and take nothing
		})()
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}

// take gives a moment to who asked for it, until he goes.
func (s *Server) take(w http.ResponseWriter, r *http.Request) {
	if !s.place() {
		http.Error(w, fmt.Sprintf("%d moments of the volume are open already", mostMoments), http.StatusServiceUnavailable)
		return
	}
	defer s.leave()
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	m, err := s.v.Take(ctx)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer m.Close()
	h := &held{m.AtRest(), time.AfterFunc(s.idle, func() { cancel(errIdle) })}
	defer h.idle.Stop()
	id := s.add(h)
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines := json.NewEncoder(w)
	_ = lines.Encode(Taken{
		ID: id, Served: s.v.served(), Blocks: h.Size(), When: m.Taken.Format(time.RFC3339),
	})
	_ = http.NewResponseController(w).Flush()
	s.log.Info("a moment of the volume is held", "moment", id)
	<-ctx.Done()
	why := context.Cause(ctx)
	if errors.Is(why, context.Canceled) {
		why = errGone
	}
	s.remove(id) // before anybody is told
	_ = lines.Encode(Ended{why.Error()})
	if lost := m.Err(); lost != nil {
		s.log.Warn("a moment of the volume was lost", "moment", id, "err", lost)
	}
	s.log.Info("a moment of the volume ends",
		"moment", id, "held", time.Since(m.Taken).Round(time.Millisecond), "why", why)
}

// place is for one more moment, if there may be one.
func (s *Server) place() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == mostMoments {
		return false
	}
	s.open++
	return true
}

// leave gives back what place took.
func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
}

// add gives a moment its number.
func (s *Server) add(h *held) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken++
	s.held[s.taken] = h
	return s.taken
}

// remove ends what is asked of a moment.
func (s *Server) remove(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, id)
}

// asked is the moment that a request names, with its first number; nil: it was answered, as there is none.
func (s *Server) asked(w http.ResponseWriter, r *http.Request) (h *held, from uint64) {
	id, _ := strconv.ParseUint(r.PathValue("id"), 10, 64)
	s.mu.Lock()
	h = s.held[id]
	s.mu.Unlock()
	if h == nil {
		http.Error(w, "there is no such moment any more", http.StatusGone)
		return nil, 0
	}
	h.idle.Reset(s.idle)
	return h, number(r, "from")
}

// number is a number of a request; what is none is beyond all blocks.
func number(r *http.Request, name string) uint64 {
	n, err := strconv.ParseUint(r.URL.Query().Get(name), 10, 64)
	if err != nil {
		return ^uint64(0)
	}
	return n
}

// blocks gives blocks of the layout at rest.
func (s *Server) blocks(w http.ResponseWriter, r *http.Request) {
	h, from := s.asked(w, r)
	if h == nil {
		return
	}
	n := number(r, "n")
	if n == 0 || n > MostBlocks {
		http.Error(w, fmt.Sprintf("n has to be from 1 to %d", MostBlocks), http.StatusBadRequest)
		return
	}
	all := make([]byte, n*disk.BlockSize)
	bufs := make([][]byte, n)
	for i := range bufs {
		bufs[i] = all[i*disk.BlockSize:][:disk.BlockSize]
	}
	if err := h.ReadAt(from, bufs); err != nil {
		refuse(w, from, err)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(all)))
	_, _ = w.Write(all)
}

// data tells where data come next.
func (s *Server) data(w http.ResponseWriter, r *http.Request) {
	h, from := s.asked(w, r)
	if h == nil {
		return
	}
	next, err := disk.NextData(h.Disk, from)
	if err != nil {
		refuse(w, from, err)
		return
	}
	fmt.Fprintln(w, next)
}

// release has blocks not be kept any more.
func (s *Server) release(w http.ResponseWriter, r *http.Request) {
	if h, from := s.asked(w, r); h != nil {
		disk.Release(h.Disk, from, number(r, "to"))
	}
}

// refuse answers with an error of the layout.
func refuse(w http.ResponseWriter, from uint64, err error) {
	code := http.StatusInternalServerError
	if errors.Is(err, disk.ErrMomentLost) {
		code = http.StatusGone
	}
	if e := new(disk.Error); errors.As(err, &e) {
		from, err = e.Block, e.Err
	}
	w.Header().Set(blockHeader, strconv.FormatUint(from, 10))
	http.Error(w, err.Error(), code)
}

// served says which volume it is.
func (v *Volume) served() Served {
	label, _ := v.Label.Label() // a volume that fails is served for all that, and says what it is
	return Served{fmt.Sprintf("%x", v.ID), v.Source.Image, label}
}

// which says which volume there is.
func (s *Server) which(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.v.served())
}

// label gives the volume a label.
func (s *Server) label(w http.ResponseWriter, r *http.Request) {
	var asked Label
	err := json.NewDecoder(io.LimitReader(r.Body, mostSaid)).Decode(&asked)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch err := s.v.Label.SetLabel(asked.Label); {
	case err == nil:
		s.log.Info("the volume has another label", "label", asked.Label)
	case errors.Is(err, fs.ErrLabel):
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// grow has the volume use what its device became larger by.
func (s *Server) grow(w http.ResponseWriter, r *http.Request) {
	if asked, ok := status.ReadGrowth(w, r); ok {
		s.v.Source.AnswerGrowth(r.Context(), w, asked)
	}
}
