package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tansy/disk"
	tansyfs "tansy/fs"
	"tansy/journal"
	"tansy/nfs/oncrpc"
	"tansy/ops/daemon"
	"tansy/test/kit/promtest"
)

// fake is a server whose numbers a test sets.
type fake struct {
	rpc    oncrpc.Stats
	sick   atomic.Pointer[error]
	scrub  tansyfs.ScrubStatus
	asked  atomic.Int64 // for scrubs
	status *Status
	log    *daemon.Log
}

func newFake(t *testing.T) *fake {
	t.Helper()
	log, err := daemon.NewLog(io.Discard, "text", slog.LevelInfo)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close(time.Minute) })
	f := &fake{log: log, status: New(Config{Release: `1 "x"`, Revision: "abc", Volume: `<b>v\`, Log: log})}
	f.rpc.Procs = []oncrpc.ProcStats{{Program: "nfs3", Name: "GETATTR"}, {Program: "nfs3", Name: "READ"},
		{Program: "mount3", Name: "MNT"}}
	return f
}

// serve lets the status serve, but note history only when the test says so.
func (f *fake) serve() {
	f.status.mu.Lock()
	defer f.status.mu.Unlock()
	f.status.state = Serving
	f.status.from = &Sources{
		Address: "192.0.2.1:2049",
		RPC:     func() oncrpc.Stats { s := f.rpc; s.Procs = append([]oncrpc.ProcStats(nil), s.Procs...); return s },
		Volumes: []Source{{
			Path: "/", Image: "v.img",
			FS: func() (s tansyfs.Stats) {
				s.Journal.Units, s.Journal.UnitsUsed, s.Journal.CacheHits = 512, 7, 3
				s.Journal.TriedBarrier, s.Journal.PastCache = 20*time.Microsecond, true
				return s
			},
			Space: func() (tansyfs.Stat, error) {
				return tansyfs.Stat{TotalBytes: 1 << 30, FreeBytes: 1 << 29, TotalFiles: 100, FreeFiles: 90}, nil
			},
			Health: func() error { return *cmpOr(f.sick.Load(), new(error)) },
			Device: func() disk.Counts {
				return disk.Counts{Barriers: 5, WrittenBlocks: 10, DiscardedBlocks: 3, BarrierTime: time.Second}
			},
			Moments:    func() tansyfs.Moments { return tansyfs.Moments{Open: 2, Memory: 8192, File: 4096} },
			Scrub:      func() tansyfs.ScrubStatus { return f.scrub },
			StartScrub: func() { f.asked.Add(1) },
			Damaged:    func() int { return 4 },
		}},
	}
}

func cmpOr(a, b *error) *error {
	if a != nil {
		return a
	}
	return b
}

// call counts n calls of procedure i in a bucket of latency.
func (f *fake) call(i, bucket int, n uint64) {
	p := &f.rpc.Procs[i]
	p.Calls += n
	p.Latency[bucket] += n
	p.Time += time.Duration(n) * oncrpc.LatencyBound(bucket)
}

func get(t *testing.T, url string) (int, string, http.Header) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b), r.Header
}

// The probes follow the server from its start to its end.
func TestProbes(t *testing.T) {
	f := newFake(t)
	s := httptest.NewServer(f.status.Handler())
	defer s.Close()
	want := func(when string, health, ready int, text string) {
		t.Helper()
		h, _, _ := get(t, s.URL+"/healthz")
		r, body, _ := get(t, s.URL+"/readyz")
		if h != health || r != ready || strings.TrimSpace(body) != text {
			t.Errorf("%s: health %d, ready %d %q", when, h, r, body)
		}
		if code, _, _ := get(t, s.URL+"/metrics"); code != 200 {
			t.Errorf("%s: metrics %d", when, code)
		}
		if code, _, _ := get(t, s.URL+"/status.json"); code != 200 {
			t.Errorf("%s: report %d", when, code)
		}
	}
	want("at the start", 200, 503, "the server is starting")
	f.status.StandBy(true)
	want("while another one has the volume", 200, 503, "the server is standing by")
	f.status.StandBy(false)
	want("when it has gone", 200, 503, "the server is starting")
	f.serve()
	want("serving", 200, 200, "ok")
	err := errors.New("the device failed")
	f.sick.Store(&err)
	want("after a failure", 503, 503, "the device failed")
	f.sick.Store(nil)
	f.status.Stop()
	f.status.Stop()
	want("stopping", 200, 503, "the server is stopping")
}

// Of several volumes each has its numbers and its failure. The server is ready if none failed, and to
// start it anew helps if all have.
func TestSeveralVolumes(t *testing.T) {
	f := newFake(t)
	f.serve()
	var second atomic.Pointer[error]
	f.status.from.Volumes = append(f.status.from.Volumes,
		Source{Path: "/b", Image: "b.img", Health: func() error { return *cmpOr(second.Load(), new(error)) }})
	s := httptest.NewServer(f.status.Handler())
	defer s.Close()
	err := errors.New("in use")
	for _, x := range []struct {
		first, second *error
		health, ready int
		text          string
	}{
		{nil, nil, 200, 200, "ok\n"}, {nil, &err, 200, 503, "/b: in use\n"}, {&err, nil, 200, 503, "/: in use\n"},
		{&err, &err, 503, 503, "/: in use\n/b: in use\n"},
	} {
		f.sick.Store(x.first)
		second.Store(x.second)
		health, _, _ := get(t, s.URL+"/healthz")
		if ready, text, _ := get(t, s.URL+"/readyz"); health != x.health || ready != x.ready || text != x.text {
			t.Errorf("%d, %d %q: want %+v", health, ready, text, x)
		}
		_, metrics, _ := get(t, s.URL+"/metrics")
		for path, sick := range map[string]*error{"/": x.first, "/b": x.second} {
			if want := fmt.Sprintf("\ntansy_healthy{volume=%q} %v\n", path, flag(sick == nil)); !strings.Contains(metrics, want) {
				t.Errorf("no %s", want)
			}
		}
		if strings.Contains(metrics, `tansy_volume_bytes{volume="/b"}`) || !strings.Contains(metrics, `tansy_volume_bytes{volume="/"}`) {
			t.Error("there are numbers of a volume that is not open, or none of the other")
		}
		r := f.status.Report()
		if len(r.Volumes) != 2 || r.Volumes[1].Image != "b.img" || r.Volumes[1].Open || (r.Volumes[1].Problem == "") != (x.second == nil) || strings.Contains(r.Problem, "\n") {
			t.Errorf("%+v", r.Volumes)
		}
	}
}

func TestPaths(t *testing.T) {
	f := newFake(t)
	s := httptest.NewServer(f.status.Handler())
	defer s.Close()
	for path, kind := range map[string]string{
		"/": "text/html", "/page.js": "text/javascript", "/page.css": "text/css", "/status.json": "application/json",
		"/metrics": "text/plain",
	} {
		code, body, h := get(t, s.URL+path)
		if code != 200 || len(body) < 100 || !strings.HasPrefix(h.Get("Content-Type"), kind) || !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %d, %d bytes, %v", path, code, len(body), h)
		}
	}
	for _, path := range []string{"/page", "/page/", "/page/page.js", "/nothing", "/index.html"} {
		if code, _, _ := get(t, s.URL+path); code != 404 {
			t.Errorf("%s: %d", path, code)
		}
	}
	r, err := http.Post(s.URL+"/metrics", "text/plain", nil)
	if err != nil || r.StatusCode != 405 {
		t.Error(r, err)
	}
}

// A scrub is asked for with a POST that comes from no page but this one.
func TestScrub(t *testing.T) {
	f := newFake(t)
	s := httptest.NewServer(f.status.Handler())
	defer s.Close()
	post := func(from string) (int, []Volume) {
		t.Helper()
		q, err := http.NewRequest(http.MethodPost, s.URL+"/scrub", nil)
		if err != nil {
			t.Fatal(err)
		}
		if from != "" {
			q.Header.Set("Sec-Fetch-Site", from)
		}
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		var got []Volume
		_ = json.NewDecoder(r.Body).Decode(&got) // of a refusal there is none
		return r.StatusCode, got
	}
	if code, _ := post(""); code != 503 {
		t.Error("at the start:", code)
	}
	f.scrub = tansyfs.ScrubStatus{
		Rate: 5, Every: time.Hour, Running: true, Passes: 2, Total: 100, Began: time.Unix(70, 0),
		Ended: time.Unix(60, 0), Checked: 33,
		Pass: journal.ScrubCounts{Good: 7, Pending: 1, Damaged: 2, Unchecked: 3}, Err: errors.New("why"),
		Last: journal.ScrubCounts{Good: 4, Pending: 3, Damaged: 2, Unchecked: 1},
	}
	f.serve()
	f.status.from.Volumes = append(f.status.from.Volumes,
		Source{Path: "/closed", Health: func() error { return errors.New("not there") }})
	want := Scrub{Rate: 5, Every: 3600, Running: true, Passes: 2, Done: 13, Total: 100, Damaged: 2, Unchecked: 3,
		Began: 70, Error: "why", Ended: 60, Last: ScrubEnds{4, 2, 1}}
	if code, got := post(""); code != 202 || len(got) != 2 || got[0].Scrub != want || got[1].Open || got[1].Problem != "not there" {
		t.Error(code, got)
	}
	if code, _ := post("cross-site"); code != 403 {
		t.Error("from another site:", code)
	}
	if code, _, _ := get(t, s.URL+"/scrub"); code != 405 {
		t.Error("GET:", code)
	}
	if n := f.asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	if got := f.status.Report().Volumes; len(got) != 2 || got[0].Scrub != want || got[1].Scrub != (Scrub{}) {
		t.Error(got)
	}
	_, text, _ := get(t, s.URL+"/metrics")
	promtest.Parse(t, text)
	for name, v := range map[string]int{
		"tansy_damaged_blocks": 4, "tansy_scrub_running": 1, "tansy_scrub_blocks_total": 33, "tansy_scrub_damaged_blocks": 2,
		"tansy_scrub_unchecked_blocks": 3, "tansy_scrub_passes_total": 2, "tansy_scrub_end_time_seconds": 60,
	} {
		if want := fmt.Sprintf("\n%s{volume=\"/\"} %d\n", name, v); !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestMetrics(t *testing.T) {
	f := newFake(t)
	promtest.Parse(t, string(f.status.metrics()))
	f.call(1, 3, 10)
	f.call(1, oncrpc.LatencyBuckets-1, 1)
	f.rpc.Procs[1].Statuses = map[uint32]uint64{2: 4, 77777: 1}
	f.rpc.Procs[1].Failed[oncrpc.GarbageArgs] = 2
	f.rpc.RefusedConns = 9
	f.rpc.Conns = []oncrpc.ConnStats{
		{InProgress: 2, Queued: 100, Transport: "mtls"}, {InProgress: 1, Queued: 11, Transport: "none"},
	}
	f.rpc.Handshakes, f.rpc.FailedShakes = [2]uint64{5, 6}, 7
	f.serve()
	m := promtest.Parse(t, string(f.status.metrics()))
	for name, want := range map[string]float64{
		`tansy_build_info{release="1 \"x\"",revision="abc",format="5",goversion="` + runtime.Version() + `"}`: 1,
		`tansy_serving{}`: 1, `tansy_healthy{volume="/"}`: 1, `tansy_connections{}`: 2,
		`tansy_connections_refused_total{}`: 9, `tansy_tls_handshakes_failed_total{}`: 7,
		`tansy_connections_by_xprtsec{xprtsec="none"}`: 1, `tansy_connections_by_xprtsec{xprtsec="tls"}`: 0,
		`tansy_connections_by_xprtsec{xprtsec="mtls"}`: 1,
		`tansy_tls_handshakes_total{xprtsec="tls"}`:    5, `tansy_tls_handshakes_total{xprtsec="mtls"}`: 6,
		`tansy_calls_in_progress{}`: 3, `tansy_queued_bytes{}`: 111,
		`tansy_calls_total{program="nfs3",proc="GETATTR"}`:                              0,
		`tansy_calls_total{program="nfs3",proc="READ"}`:                                 11,
		`tansy_call_errors_total{program="nfs3",proc="READ",status="NOENT"}`:            4,
		`tansy_call_errors_total{program="nfs3",proc="READ",status="77777"}`:            1,
		`tansy_call_errors_total{program="nfs3",proc="READ",status="GARBAGE_ARGS"}`:     2,
		`tansy_call_duration_seconds_bucket{program="nfs3",proc="READ",le="3.2e-05"}`:   0,
		`tansy_call_duration_seconds_bucket{program="nfs3",proc="READ",le="6.4e-05"}`:   10,
		`tansy_call_duration_seconds_bucket{program="nfs3",proc="READ",le="16.777216"}`: 10,
		`tansy_call_duration_seconds_bucket{program="nfs3",proc="READ",le="+Inf"}`:      11,
		`tansy_call_duration_seconds_count{program="nfs3",proc="READ"}`:                 11,
		`tansy_journal_units_used{volume="/"}`:                                          7, `tansy_cache_hits_total{volume="/"}`: 3, `tansy_volume_free_bytes{volume="/"}`: 1 << 29, `tansy_volume_free_inodes{volume="/"}`: 90,
		`tansy_moments{volume="/"}`: 2, `tansy_moment_memory_bytes{volume="/"}`: 8192,
		`tansy_moment_file_bytes{volume="/"}`:     4096,
		`tansy_device_barriers_total{volume="/"}`: 5, `tansy_device_written_bytes_total{volume="/"}`: 40960,
		`tansy_device_discarded_bytes_total{volume="/"}`: 12288, `tansy_device_seconds_total{volume="/",kind="barrier"}`: 1,
	} {
		if got, ok := m[name]; !ok || got != want {
			t.Errorf("%s is %v (%v), want %v", name, got, ok, want)
		}
	}
	if _, ok := m[`tansy_call_duration_seconds_count{program="nfs3",proc="GETATTR"}`]; ok {
		t.Error("a histogram of no calls")
	}
}

func TestQuantile(t *testing.T) {
	var b [oncrpc.LatencyBuckets]uint64
	if q := quantile(&b, 0.5); q != 0 {
		t.Error("of nothing:", q)
	}
	b[3] = 100 // 32 to 64 µs
	if q := quantile(&b, 0.5); q < 47e-6 || q > 49e-6 {
		t.Error("median", q)
	}
	b[10] = 1
	if q := quantile(&b, 0.99); q > 64e-6 {
		t.Error("99 %", q)
	}
	b[10] = 2
	if q := quantile(&b, 0.99); q < 4e-3 || q > 8.2e-3 {
		t.Error("99 %", q)
	}
	b[oncrpc.LatencyBuckets-1] = 1000
	if q := quantile(&b, 0.99); q != oncrpc.LatencyBound(oncrpc.LatencyBuckets-2).Seconds() {
		t.Error("beyond the last", q)
	}
}

// Rates come from the differences between samples.
func TestReport(t *testing.T) {
	f := newFake(t)
	f.serve()
	at := time.Now().Add(-10 * time.Second)
	f.rpc.Conns = []oncrpc.ConnStats{{ID: 1, Peer: "10.0.0.1:5", Calls: 1000, Sent: 1 << 30}}
	f.call(0, 2, 1000)
	f.status.sample(at)
	f.call(0, 2, 400)
	f.call(1, 5, 100)
	f.rpc.Procs[1].Errors = 20
	f.rpc.Sent = 2 << 20
	f.status.sample(at.Add(2 * time.Second))
	f.rpc.Conns = []oncrpc.ConnStats{
		{ID: 1, Peer: "10.0.0.1:5", Calls: 2000, Sent: 1<<30 + 10<<20, InProgress: 1},
		{ID: 2, Peer: "10.0.0.1:6", Calls: 1000},
		{ID: 3, Peer: "[2001:db8::1]:7", Received: 1 << 30, Queued: 5},
	}
	f.log.Warn("first")
	f.log.Error("second", "peer", "10.0.0.1:5")
	r := f.status.Report()
	if len(r.Samples) != 1 || r.Samples[0].Calls != 250 || r.Samples[0].Errors != 10 || r.Samples[0].Sent != 1<<20 {
		t.Errorf("%+v", r.Samples)
	}
	if len(r.Procs) != 2 || r.Procs[0].Name != "GETATTR" || r.Procs[0].Calls != 1400 || int(r.Procs[0].Rate+0.5) != 40 || r.Procs[1].Name != "READ" || r.Procs[1].P50 < 128e-6 {
		t.Errorf("%+v", r.Procs)
	}
	if len(r.Clients) != 2 || r.Clients[0].Host != "2001:db8::1" || r.Clients[0].Queued != 5 {
		t.Fatalf("%+v", r.Clients)
	}
	if c := r.Clients[1]; c.Host != "10.0.0.1" || c.Conns != 2 || c.InProgress != 1 || int(c.Calls+0.5) != 200 || int(c.Sent/(1<<20)+0.5) != 1 {
		t.Errorf("%+v", c)
	}
	if len(r.Warnings) != 2 || r.Warnings[0].Text != "second peer=10.0.0.1:5" || r.Warnings[0].Level != "ERROR" {
		t.Errorf("%+v", r.Warnings)
	}
	if r.Volumes[0].Journal.UnitsUsed != 7 || r.Volumes[0].Space.FreeFiles != 90 || r.Volume != `<b>v\` || r.Problem != "" {
		t.Errorf("%+v", r)
	}
	if j := r.Volumes[0].Journal; j.TriedBarrier != 20e-6 || !j.PastCache {
		t.Errorf("%+v", j)
	}
	b, err := json.Marshal(r)
	var back Report
	if err != nil || json.Unmarshal(b, &back) != nil || back.Procs[0].Calls != 1400 {
		t.Error(err)
	}
}

// Memory stays bounded however long a server runs, and however many connect.
func TestHistoryBounded(t *testing.T) {
	f := newFake(t)
	f.serve()
	f.rpc.Conns = make([]oncrpc.ConnStats, 1000)
	for i := range f.rpc.Conns {
		f.rpc.Conns[i] = oncrpc.ConnStats{ID: uint64(i), Peer: fmt.Sprintf("10.0.%d.%d:1", i/256, i%256)}
	}
	at := time.Now()
	for i := range 2 * maxSamples {
		f.status.sample(at.Add(time.Duration(i) * sampleEvery))
	}
	h := &f.status.history
	conns := 0
	for _, s := range h.shots {
		conns += len(s.rpc.Conns)
	}
	if len(h.samples) != maxSamples || cap(h.samples) > 4*maxSamples || len(h.shots) != maxShots || conns != (clientShots+1)*1000 {
		t.Errorf("%d samples (%d), %d shots with %d connections", len(h.samples), cap(h.samples), len(h.shots), conns)
	}
	if r := f.status.Report(); len(r.Clients) != maxClients || r.MoreHosts != 1000-maxClients {
		t.Errorf("%d clients, %d more", len(r.Clients), r.MoreHosts)
	}
}
