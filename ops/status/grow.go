package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"tansy/fs"
)

// Growth is what a volume is asked to become: the body of POST /grow, in JSON.
type Growth struct {
	Volume string `json:"volume"` // its path for clients, or where it lies; "": the only one
	Size   uint64 `json:"size"`   // an image file is made so many bytes long first; 0: it stays
	Inodes uint64 `json:"inodes"` // at least so many afterwards; 0: in proportion to the size
}

// Growing is how far a volume is with that: the answer has one a line. The last one has Ended.
type Growing struct {
	Done  uint64 `json:"done"` // bytes written, of
	Total uint64 `json:"total"`

	Ended  bool   `json:"ended"`
	Image  string `json:"image,omitempty"`  // where the volume lies
	Before Size   `json:"before,omitzero"`  // how much there was of it
	After  Size   `json:"after,omitzero"`   // and is; as before, and no Error: there is no more to be had
	Behind uint64 `json:"behind,omitempty"` // bytes of the device that it cannot use
	Error  string `json:"error,omitempty"`  // why it has not grown
	Misuse bool   `json:"misuse,omitempty"` // for what was asked for is wrong
}

// Size is how much there is of a volume, as fs.VolumeSize.
type Size struct {
	Bytes  uint64 `json:"bytes"`
	Data   uint64 `json:"data"`
	Inodes uint64 `json:"inodes"`
	Most   uint64 `json:"most"`
}

// ErrMisuse is wrapped by an error of a Source for what was asked for.
var ErrMisuse = errors.New("wrong arguments")

// mostAsked bounds the length of a request, in bytes.
const mostAsked = 64 << 10

// errStops ends what a server does for a request.
var errStops = errors.New("the server stops")

// grow has a volume grow, and tells how far it is. It ends when the client goes, or the server stops: then the volume
// stays as it was, or has grown. It is for who is on this machine alone.
func (s *Status) grow(w http.ResponseWriter, r *http.Request) {
	if !nearby(r.RemoteAddr) {
		http.Error(w, "a volume grows only for who asks on the server's own machine", http.StatusForbidden)
		return
	}
	asked, ok := ReadGrowth(w, r)
	if !ok {
		return
	}
	v, done, err := s.volume(asked.Volume)
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	defer done()
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	go func() {
		select {
		case <-s.quit:
			cancel(errStops)
		case <-ctx.Done():
		}
	}()
	v.AnswerGrowth(ctx, w, asked)
}

// ReadGrowth is what a request asks for. Not ok: it is malformed, and was answered.
func ReadGrowth(w http.ResponseWriter, r *http.Request) (asked Growth, ok bool) {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostAsked)).Decode(&asked); err != nil {
		http.Error(w, fmt.Sprintf("the request is malformed: %v", err), http.StatusBadRequest)
		return asked, false
	}
	return asked, true
}

// AnswerGrowth has the volume grow, and answers with a Growing a line.
func (v *Source) AnswerGrowth(ctx context.Context, w http.ResponseWriter, asked Growth) {
	answer := newLines(w)
	g, behind, err := v.Grow(ctx, asked, answer.progress)
	end := Growing{Ended: true, Image: v.Image, Before: Size(g.Before), After: Size(g.After), Behind: behind}
	if err != nil {
		end.Error, end.Misuse = err.Error(), errors.Is(err, ErrMisuse) || errors.Is(err, fs.ErrOptions)
	}
	answer.put(&end)
}

// nearby tells whether who asks from this address is on the server's machine.
func nearby(remote string) bool {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return false
	}
	at, err := netip.ParseAddr(host)
	return err == nil && at.Unmap().IsLoopback()
}

// volume finds a volume that is open, by a name of it; "" is the only one there is. Stop waits until done was called.
func (s *Status) volume(name string) (v *Source, done func(), err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.from == nil {
		return nil, nil, fmt.Errorf("the server is %s", s.state)
	}
	var paths []string
	for i := range s.from.Volumes {
		x := &s.from.Volumes[i]
		paths = append(paths, x.Path)
		if name == "" && len(s.from.Volumes) == 1 || name != "" && (name == x.Path || name == x.Image) {
			v = x
		}
	}
	switch {
	case v != nil && v.open():
		s.asking.Add(1)
		return v, s.asking.Done, nil
	case v != nil:
		return nil, nil, fmt.Errorf("%s is not served: %w", v.Path, v.Health())
	case name == "":
		return nil, nil, fmt.Errorf("the server has several volumes: give --volume and one of %s", strings.Join(paths, ", "))
	}
	return nil, nil, fmt.Errorf("the server has no volume %q: it has %s", name, strings.Join(paths, ", "))
}

// tellEvery is how often progress is told at most.
const tellEvery = 200 * time.Millisecond

// lines is an answer that comes line by line, as long as it takes.
type lines struct {
	w    http.ResponseWriter
	c    *http.ResponseController
	next time.Time
}

func newLines(w http.ResponseWriter) *lines {
	c := http.NewResponseController(w)
	c.SetReadDeadline(time.Time{}) // as that of the request, which is over; a client that goes is noticed further
	w.Header().Set("Content-Type", "application/x-ndjson")
	return &lines{w, c, time.Now()}
}

// progress tells how far it is, if that is new.
func (l *lines) progress(done, total uint64) {
	if now := time.Now(); !now.Before(l.next) {
		l.next = now.Add(tellEvery)
		l.put(&Growing{Done: done, Total: total})
	}
}

// longestLine is how long a client may take for a line.
const longestLine = 10 * time.Second

// put sends a line. Who does not take it is let go, which the request's context tells.
func (l *lines) put(g *Growing) {
	l.c.SetWriteDeadline(time.Now().Add(longestLine))
	_ = json.NewEncoder(l.w).Encode(g)
	_ = l.c.Flush()
}
