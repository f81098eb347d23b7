// Package status tells over HTTP how a server does: metrics for Prometheus, answers for
// whoever supervises it, and a page for people.
//
//	/             the page; it needs nothing from anywhere else
//	/status.json  what it shows (Report)
//	/metrics      every number, in Prometheus' text format
//	/healthz      200 unless every volume refuses changes for good: restart or look after it
//	/readyz       200 while the server serves, and all volumes are well: a balancer may send clients
//	/scrub        POST: a scrub of every open volume is asked for; the answer is how each was before ([]Volume)
//	/grow         POST: a volume uses what its device became larger by (Growth; the answer is a Growing a line)
//
// All else is read only, and nothing but /grow waits for the device. That is for requests from a loopback address
// alone. Requests have to name an address, localhost, or a name that
// the server knows as its own (AnswerTo). There is no other access control: whoever reaches the address sees the
// addresses of the clients, and names that warnings contain. Keep it on loopback or a network of administrators.
package status

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"tansy/disk"
	"tansy/fs"
	"tansy/internal/lockorder"
	"tansy/nfs/oncrpc"
	"tansy/ops/daemon"
)

// Config says whose status it is.
type Config struct {
	Release, Revision string
	Volume            string   // its name, or those of several
	Names             []string // that requests may give as their Host, besides addresses, localhost, and this machine's
	Log               *daemon.Log
}

// Sources are where the numbers of a server come from. All of them but Grow return at once, and all may be called
// concurrently.
type Sources struct {
	Address string // of NFS
	RPC     func() oncrpc.Stats
	Volumes []Source // at least one
}

// Source is where the numbers of a volume come from. If the volume could not be opened, all but Health are nil.
type Source struct {
	Path, Image string       // for clients; where it lies
	Health      func() error // why the volume is not served, or refuses changes
	FS          func() fs.Stats
	Space       func() (fs.Stat, error)
	Device      func() disk.Counts

	Moments    func() fs.Moments
	Scrub      func() fs.ScrubStatus
	StartScrub func()
	Damaged    func() int // blocks found damaged so far

	// Grow has the volume use what its device became larger by, but for the bytes behind it that are of no use. An error
	// says why not; it wraps ErrMisuse if g is wrong. It does not return at once, but soon after ctx ended.
	Grow func(ctx context.Context, g Growth, progress func(done, total uint64)) (_ fs.Growth, behind uint64, err error)
}

// open tells if there are numbers.
func (v *Source) open() bool { return v.FS != nil }

// sick is what is wrong with the volumes, and whether that is so of all.
func (s *Sources) sick() (err error, all bool) {
	var list []error
	for _, v := range s.Volumes {
		e := v.Health()
		if e != nil && len(s.Volumes) > 1 {
			e = fmt.Errorf("%s: %w", v.Path, e)
		}
		if e != nil {
			list = append(list, e)
		}
	}
	return errors.Join(list...), len(list) == len(s.Volumes)
}

// State is what a server is about.
type State string

// The states of a server, in this order.
const (
	Standby  State = "standing by" // another server has the volume
	Starting State = "starting"    // the volume is not open yet
	Serving  State = "serving"
	Stopping State = "stopping"
)

// Status is the status of one server.
type Status struct {
	cfg   Config
	begin time.Time

	mu    lockorder.RWMutex[lockorder.Sources] // held, shared, while the sources are asked
	state State
	from  *Sources // nil but when Serving
	quit  chan struct{}

	history history
	asking  sync.WaitGroup // requests that ask a source without mu
}

// New returns the status of a server that starts.
func New(cfg Config) *Status {
	return &Status{cfg: cfg, begin: time.Now(), state: Starting, quit: make(chan struct{})}
}

// StandBy says whether the server that starts waits for another one to go.
func (s *Status) StandBy(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state = Starting; on {
		s.state = Standby
	}
}

// Serve says that the server serves from now on, and begins to note its history.
func (s *Status) Serve(from Sources) {
	s.mu.Lock()
	s.state, s.from = Serving, &from
	s.mu.Unlock()
	s.sample(time.Now())
	go s.run()
}

// Stop says that the server stops. The sources are asked no more when it has returned.
func (s *Status) Stop() {
	s.mu.Lock()
	if s.state == Serving {
		close(s.quit)
	}
	s.state, s.from = Stopping, nil
	s.mu.Unlock()
	s.asking.Wait()
}

// run notes the history until Stop.
func (s *Status) run() {
	t := time.NewTicker(sampleEvery)
	defer t.Stop()
	for {
		select {
		case <-s.quit:
			return
		case now := <-t.C:
			s.sample(now)
		}
	}
}

// sample notes the present numbers.
func (s *Status) sample(now time.Time) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.from != nil {
		s.history.add(take(s.from, now))
	}
}

// ready returns the state, what is wrong with volumes, and whether that is so of all of them.
func (s *Status) ready() (state State, sick error, all bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.from == nil {
		return s.state, nil, false
	}
	sick, all = s.from.sick()
	return s.state, sick, all
}

//go:embed page
var page embed.FS

// contentPolicy has a browser load for the page what this server has, and nothing else.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// Handler answers the requests.
func (s *Status) Handler() http.Handler {
	m := http.NewServeMux()
	for path, name := range map[string]string{"/{$}": "index.html", "/page.css": "page.css", "/page.js": "page.js"} {
		m.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, page, "page/"+name) })
	}
	m.HandleFunc("GET /status.json", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(s.Report())
	})
	m.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		w.Write(s.metrics())
	})
	m.HandleFunc("POST /scrub", s.startScrub)
	m.HandleFunc("POST /grow", s.grow)
	m.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		_, err, all := s.ready()
		if !all {
			err = nil // to start anew would help none of the others
		}
		answer(w, err)
	})
	m.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		state, err, _ := s.ready()
		if err == nil && state != Serving {
			err = fmt.Errorf("the server is %s", state)
		}
		answer(w, err)
	})
	ours := http.NewCrossOriginProtection().Handler(m) // no page of others starts anything
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		ours.ServeHTTP(w, r)
	})
}

// startScrub asks for a scrub of each volume that is open. If one runs already, that is it. Who asked knows by the
// number of passes before when it has come to its end.
func (s *Status) startScrub(w http.ResponseWriter, _ *http.Request) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.from == nil {
		http.Error(w, fmt.Sprintf("the server is %s", s.state), http.StatusServiceUnavailable)
		return
	}
	before := []Volume{}
	for i := range s.from.Volumes {
		v := &s.from.Volumes[i]
		before = append(before, v.report())
		if v.open() {
			v.StartScrub()
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	json.NewEncoder(w).Encode(before)
}

// answer answers a probe.
func answer(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, err)
		return
	}
	fmt.Fprintln(w, "ok")
}

// Listen answers on l until it fails or is closed.
func (s *Status) Listen(l net.Listener) {
	Serve(l, s.Handler(), s.cfg.Names, 30*time.Second, slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug))
}

// Serve answers on l by h, until l fails or is closed: requests to known names alone (AnswerTo), on maxConns
// connections at most. An answer may take as long as longest.
func Serve(l net.Listener, h http.Handler, names []string, longest time.Duration, errors *log.Logger) error {
	places := newBounded(l, maxConns)
	s := http.Server{
		Handler: AnswerTo(names, h), ErrorLog: errors,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: longest,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, ConnState: places.note,
	}
	return s.Serve(places)
}
