package status

import (
	"cmp"
	"net"
	"slices"
	"strings"
	"time"

	"tansy/disk"
	"tansy/fs"
)

// Report is what the page shows. Sizes are in bytes, times in seconds, rates per second.
type Report struct {
	Release  string  `json:"release"`
	Revision string  `json:"revision"`
	Volume   string  `json:"volume"`
	Address  string  `json:"address"`
	State    State   `json:"state"`
	Problem  string  `json:"problem,omitempty"` // why a volume is not served, or refuses changes
	Uptime   float64 `json:"uptime"`

	Volumes []Volume `json:"volumes"`
	Memory  Memory   `json:"memory"`

	Accepted     uint64 `json:"accepted"`      // connections
	RefusedConns uint64 `json:"refused_conns"` // that were too many: not accepted, or closed to make room
	RefusedCalls uint64 `json:"refused_calls"`
	TLS          TLS    `json:"tls"`

	SampleEvery float64  `json:"sample_every"`
	Samples     []Sample `json:"samples"` // oldest first

	Procs      []Proc    `json:"procs"`   // that were called, those called most lately first
	Clients    []Client  `json:"clients"` // by address, the busiest first
	MoreHosts  int       `json:"more_clients"`
	Warnings   []Warning `json:"warnings"`    // newest first
	LostLog    uint64    `json:"lost_log"`    // messages that the reader of the log did not take
	CountedLog uint64    `json:"counted_log"` // messages that were so many that they were only counted
}

// TLS is how open connections are protected (xprtsec of exports(5)).
type TLS struct {
	None   int    `json:"none"`
	TLS    int    `json:"tls"`
	Mutual int    `json:"mtls"`
	Failed uint64 `json:"failed"` // handshakes
}

// Volume is a volume that is served, or that could not be opened.
type Volume struct {
	Path    string  `json:"path"`              // for clients
	Image   string  `json:"image"`             // where it lies
	Problem string  `json:"problem,omitempty"` // why it is not served, or refuses changes
	Open    bool    `json:"open"`              // there are the numbers that follow
	Space   Space   `json:"space"`
	Journal Journal `json:"journal"`
	Moments Moments `json:"moments"`
	Scrub   Scrub   `json:"scrub"`
	Cache   Cache   `json:"cache"`
}

// Space is the space of a volume, in bytes and in files.
type Space struct {
	Bytes     uint64 `json:"bytes"`
	FreeBytes uint64 `json:"free_bytes"`
	Files     uint64 `json:"files"`
	FreeFiles uint64 `json:"free_files"`
}

// Journal is the fill of the log, and what was written to it since the start.
type Journal struct {
	Groups    uint64 `json:"groups"`
	Commits   uint64 `json:"commits"`
	Barriers  uint64 `json:"barriers"`
	Units     uint64 `json:"units"` // groups that there is room for
	UnitsUsed uint64 `json:"units_used"`
	Ring      uint64 `json:"ring"` // for the data of large groups
	RingUsed  uint64 `json:"ring_used"`

	TriedBarrier float64 `json:"tried_barrier"` // a write and its barrier, at the start; 0: not known
	PastCache    bool    `json:"past_cache"`    // all writes go past the system's cache: that was so short
}

// Moments are those of a volume that checks and backups have open.
type Moments struct {
	Open   int    `json:"open"`
	Memory uint64 `json:"memory"` // bytes that are kept for them
	File   uint64 `json:"file"`
}

// Scrub is what is read from the device and checked in the background.
type Scrub struct {
	Rate      uint64  `json:"rate"`
	Every     float64 `json:"every"` // 0: only when asked for
	Running   bool    `json:"running"`
	Passes    uint64  `json:"passes"` // that came to their end
	Done      uint64  `json:"done"`   // blocks of the pass that runs, or of the last one; likewise:
	Total     uint64  `json:"total"`  // about; 0: not known
	Damaged   uint64  `json:"damaged"`
	Unchecked uint64  `json:"unchecked"` // for what has their codes is damaged
	Began     int64   `json:"began"`     // since 1970; 0: never
	Error     string  `json:"error,omitempty"`

	// Of the last pass that came to its end.
	Ended int64     `json:"ended"`
	Last  ScrubEnds `json:"last"`
}

// ScrubEnds is what a pass has found, in blocks.
type ScrubEnds struct {
	Good      uint64 `json:"good"`
	Damaged   uint64 `json:"damaged"`
	Unchecked uint64 `json:"unchecked"`
}

// scrubOf reports of a scrub.
func scrubOf(s fs.ScrubStatus) Scrub {
	r := Scrub{
		Rate: s.Rate, Every: s.Every.Seconds(), Running: s.Running, Passes: s.Passes, Done: s.Pass.Done(), Total: s.Total,
		Damaged: s.Pass.Damaged, Unchecked: s.Pass.Unchecked, Began: seconds(s.Began),
		Ended: seconds(s.Ended), Last: ScrubEnds{s.Last.Good, s.Last.Damaged, s.Last.Unchecked},
	}
	if s.Err != nil {
		r.Error = s.Err.Error()
	}
	return r
}

// seconds is a time since 1970, or 0 for none.
func seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// Cache is the block cache.
type Cache struct {
	Size   uint64 `json:"size"`
	Used   uint64 `json:"used"`
	Hits   uint64 `json:"hits"`
	Misses uint64 `json:"misses"`
}

// Memory is the memory that calls and replies take, in bytes.
type Memory struct {
	Calls     int    `json:"calls"`
	Receiving int    `json:"receiving"`
	Queued    int    `json:"queued"`
	Resident  uint64 `json:"resident"` // of the process; 0 if it is not known
}

// Proc is a procedure. Rates and latencies are of the last minute.
type Proc struct {
	Name   string  `json:"name"`
	Calls  uint64  `json:"calls"`
	Errors uint64  `json:"errors"`
	Rate   float64 `json:"rate"`
	P50    float64 `json:"p50"`
	P99    float64 `json:"p99"`
}

// Client is the connections of one address. Rates are of the last ten seconds.
type Client struct {
	Host       string  `json:"host"`
	Conns      int     `json:"conns"`
	Calls      float64 `json:"calls"`
	Received   float64 `json:"received"`
	Sent       float64 `json:"sent"`
	InProgress int     `json:"in_progress"`
	Queued     int     `json:"queued"`
}

// Warning is a message of the log.
type Warning struct {
	Time  time.Time `json:"time"`
	Level string    `json:"level"`
	Text  string    `json:"text"`
}

// maxClients is how many are listed.
const maxClients = 50

// Report returns the present status.
func (s *Status) Report() *Report {
	r := &Report{
		Release: s.cfg.Release, Revision: s.cfg.Revision, Volume: s.cfg.Volume,
		Uptime: time.Since(s.begin).Seconds(), SampleEvery: sampleEvery.Seconds(),
		Volumes: []Volume{}, Samples: []Sample{}, Procs: []Proc{}, Clients: []Client{}, Warnings: []Warning{},
	}
	for _, w := range slices.Backward(s.cfg.Log.Recent()) {
		r.Warnings = append(r.Warnings, Warning{w.Time, w.Level.String(), w.Message})
	}
	r.LostLog, r.CountedLog = s.cfg.Log.Lost()
	r.Memory.Resident = resident()

	s.mu.RLock()
	defer s.mu.RUnlock()
	r.State = s.state
	if s.from == nil {
		return r
	}
	r.Address = s.from.Address
	if err, _ := s.from.sick(); err != nil {
		r.Problem = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	for i := range s.from.Volumes {
		r.Volumes = append(r.Volumes, s.from.Volumes[i].report())
	}
	now := take(s.from, time.Now())
	r.numbers(&now)
	h := &s.history
	h.mu.Lock()
	defer h.mu.Unlock()
	r.Samples = append(r.Samples, h.samples...)
	if len(h.shots) > 0 {
		r.procs(h.before(maxShots), &now)
		r.clients(h.before(clientShots), &now)
	}
	return r
}

// report is the present status of a volume.
func (v *Source) report() Volume {
	r := Volume{Path: v.Path, Image: v.Image, Open: v.open()}
	if err := v.Health(); err != nil {
		r.Problem = err.Error()
	}
	if !r.Open {
		return r
	}
	if sp, err := v.Space(); err == nil {
		r.Space = Space{sp.TotalBytes, sp.FreeBytes, sp.TotalFiles, sp.FreeFiles}
	}
	r.Moments, r.Scrub = Moments(v.Moments()), scrubOf(v.Scrub())
	j := v.FS().Journal
	r.Journal = Journal{
		Groups: j.Groups, Commits: j.Commits, Barriers: v.Device().Barriers, Units: j.Units, UnitsUsed: j.UnitsUsed,
		Ring: j.Ring * disk.BlockSize, RingUsed: j.RingUsed * disk.BlockSize,
		TriedBarrier: j.TriedBarrier.Seconds(), PastCache: j.PastCache,
	}
	r.Cache = Cache{uint64(j.CacheLimit) * disk.BlockSize, uint64(j.Cached) * disk.BlockSize, j.CacheHits, j.CacheMisses}
	return r
}

// numbers sets what needs no history.
func (r *Report) numbers(now *shot) {
	r.Accepted, r.RefusedConns, r.RefusedCalls = now.rpc.Accepted, now.rpc.RefusedConns, now.rpc.RefusedCalls
	r.TLS = TLS{
		protected(now.rpc, "none"), protected(now.rpc, "tls"), protected(now.rpc, "mtls"), now.rpc.FailedShakes,
	}
	r.Memory.Calls, r.Memory.Receiving = now.rpc.CallMemory, now.rpc.ReceivingMemory
	for _, c := range now.rpc.Conns {
		r.Memory.Queued += c.Queued
	}
}

// procs lists the procedures.
func (r *Report) procs(before, now *shot) {
	seconds := now.at.Sub(before.at).Seconds()
	for i := range now.rpc.Procs {
		p := &now.rpc.Procs[i]
		if p.Calls == 0 {
			continue
		}
		d := since(before, now, i)
		name := p.Name
		if p.Program != "nfs3" {
			name = p.Program + " " + name
		}
		r.Procs = append(r.Procs, Proc{
			Name: name, Calls: p.Calls, Errors: p.Errors, Rate: per(0, d.Calls, seconds),
			P50: quantile(&d.Latency, 0.5), P99: quantile(&d.Latency, 0.99),
		})
	}
	slices.SortStableFunc(r.Procs, func(a, b Proc) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), cmp.Compare(b.Calls, a.Calls))
	})
}

// clients lists the connections by address.
func (r *Report) clients(before, now *shot) {
	seconds := now.at.Sub(before.at).Seconds()
	was := map[uint64]int{}
	for i := range before.rpc.Conns {
		was[before.rpc.Conns[i].ID] = i
	}
	hosts := map[string]*Client{}
	for i := range now.rpc.Conns {
		c := &now.rpc.Conns[i]
		host, _, err := net.SplitHostPort(c.Peer)
		if err != nil {
			host = c.Peer
		}
		h := hosts[host]
		if h == nil {
			h = &Client{Host: host}
			hosts[host] = h
		}
		h.Conns++
		h.InProgress += c.InProgress
		h.Queued += c.Queued
		var calls, received, sent uint64
		if k, ok := was[c.ID]; ok {
			b := &before.rpc.Conns[k]
			calls, received, sent = b.Calls, b.Received, b.Sent
		}
		h.Calls += per(calls, c.Calls, seconds)
		h.Received += per(received, c.Received, seconds)
		h.Sent += per(sent, c.Sent, seconds)
	}
	for _, h := range hosts {
		r.Clients = append(r.Clients, *h)
	}
	slices.SortFunc(r.Clients, func(a, b Client) int {
		return cmp.Or(cmp.Compare(b.Received+b.Sent, a.Received+a.Sent), cmp.Compare(a.Host, b.Host))
	})
	if n := len(r.Clients); n > maxClients {
		r.Clients, r.MoreHosts = r.Clients[:maxClients], n-maxClients
	}
}
