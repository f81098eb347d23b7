package control

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tansy/disk"
)

// Client is an HTTP client of the server on a socket, whatever the host of a URL.
func Client(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
		MaxIdleConnsPerHost: 8, DisableCompression: true,
	}}
}

// Which asks the server on a socket which volume it has.
func Which(socket string) (served Served, err error) {
	c := Client(socket)
	defer c.CloseIdleConnections()
	a, err := c.Get(URL("/volume"))
	if err != nil {
		return served, err
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return served, errors.New(said(a))
	}
	if err := json.NewDecoder(io.LimitReader(a.Body, mostSaid)).Decode(&served); err != nil {
		return served, fmt.Errorf("the answer is malformed: %w", err)
	}
	return served, nil
}

// SetLabel has the server on a socket give its volume a label.
func SetLabel(socket, label string) error {
	c := Client(socket)
	defer c.CloseIdleConnections()
	body, err := json.Marshal(Label{label})
	if err != nil {
		return err
	}
	a, err := c.Post(URL("/label"), "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return errors.New(said(a))
	}
	return nil
}

// URL is that of a path of a Server.
func URL(path string) string { return "http://tansy" + path }

// Moment is a moment of a volume that a server has, as a Disk that cannot be written: the layout at rest
// (fs.Moment.AtRest). It may be used concurrently. It is lost when the server stops, and ends with its process.
type Moment struct {
	Volume [16]byte // its UUID
	Image  string   // where the volume lies, for the server
	When   time.Time

	url  string
	size uint64
	http *http.Client
	end  context.CancelFunc

	lines  *json.Decoder // the answer that lasts as long as the moment
	answer io.Closer
	once   sync.Once
	why    string // what it says at its end
	closed atomic.Bool
}

// askEvery is how often something is asked of a moment, whatever its user does: well below idleAfter.
const askEvery = time.Minute

// Take has the server on a socket take a moment of its volume, which lasts until Close, or until ctx ends.
func Take(ctx context.Context, socket string) (*Moment, error) {
	return takeAsking(ctx, socket, askEvery)
}

func takeAsking(ctx context.Context, socket string, every time.Duration) (*Moment, error) {
	ctx, end := context.WithCancel(ctx)
	m, err := take(ctx, Client(socket))
	if err != nil {
		end()
		return nil, fmt.Errorf("a moment of the volume, from the server on %s: %w", socket, err)
	}
	m.end = end
	go m.goOnAsking(ctx, every)
	return m, nil
}

// goOnAsking has the server know that the process is not stopped, as long as the moment lasts.
func (m *Moment) goOnAsking(ctx context.Context, every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			m.Release(0, 0)
		}
	}
}

func take(ctx context.Context, c *http.Client) (*Moment, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, URL("/moment"), nil)
	if err != nil {
		return nil, err
	}
	a, err := c.Do(q)
	if err != nil {
		return nil, err
	}
	if a.StatusCode != http.StatusOK {
		defer a.Body.Close()
		return nil, errors.New(said(a))
	}
	m := &Moment{http: c, lines: json.NewDecoder(a.Body), answer: a.Body}
	var t Taken
	err = m.lines.Decode(&t)
	if err == nil {
		_, err = hex.Decode(m.Volume[:], []byte(t.Volume)[:min(len(t.Volume), 2*len(m.Volume))])
	}
	if err == nil {
		m.When, err = time.Parse(time.RFC3339, t.When)
	}
	if err != nil {
		a.Body.Close()
		return nil, fmt.Errorf("the answer is malformed: %w", err)
	}
	m.Image, m.size, m.url = t.Image, t.Blocks, URL(fmt.Sprintf("/moment/%d/", t.ID))
	return m, nil
}

// mostSaid bounds the text of an error.
const mostSaid = 4096

// said is the text of an answer that is an error.
func said(a *http.Response) string {
	text, _ := io.ReadAll(io.LimitReader(a.Body, mostSaid))
	if s := strings.TrimSpace(string(text)); s != "" {
		return s
	}
	return a.Status
}

// ask asks something about the moment, and takes the answer, unless that is an error about block from, or another.
func (m *Moment) ask(method, what string, from uint64, take func(io.Reader) error) error {
	fail := func(err error) error { return &disk.Error{Op: "read", Block: from, Err: err} }
	if m.closed.Load() {
		return fail(os.ErrClosed)
	}
	q, err := http.NewRequest(method, m.url+what, nil)
	if err != nil {
		return fail(err)
	}
	a, err := m.http.Do(q)
	if err != nil { // the server is gone
		return fail(fmt.Errorf("%w: %w", disk.ErrMomentLost, err))
	}
	defer a.Body.Close()
	if a.StatusCode == http.StatusOK {
		if err := take(a.Body); err != nil {
			return fail(err)
		}
		return nil
	}
	block, err := strconv.ParseUint(a.Header.Get(blockHeader), 10, 64)
	if err == nil {
		from = block
	}
	why := said(a)
	switch {
	case a.StatusCode == http.StatusGone && err != nil: // it has ended, and the answer to Take says why
		return fail(fmt.Errorf("%w: %s", disk.ErrMomentLost, m.ended()))
	case a.StatusCode == http.StatusGone:
		return fail(fmt.Errorf("%w: %s", disk.ErrMomentLost, strings.TrimPrefix(why, disk.ErrMomentLost.Error()+": ")))
	}
	return fail(errors.New(why))
}

// ended is why the server has ended the moment.
func (m *Moment) ended() string {
	m.once.Do(func() {
		var e Ended
		if err := m.lines.Decode(&e); err != nil {
			e.Why = "the answer broke off"
		}
		m.why = e.Why
	})
	return m.why
}

// ReadAt implements disk.Disk.
func (m *Moment) ReadAt(a uint64, bufs [][]byte) error {
	if err := disk.CheckTransfer("read", m.Image, m.size, a, bufs); err != nil {
		return err
	}
	for len(bufs) > 0 {
		n := min(len(bufs), MostBlocks)
		err := m.ask(http.MethodGet, fmt.Sprintf("blocks?from=%d&n=%d", a, n), a, func(r io.Reader) error {
			for _, b := range bufs[:n] {
				if _, err := io.ReadFull(r, b); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		a, bufs = a+uint64(n), bufs[n:]
	}
	return nil
}

// NextData implements disk.Holes.
func (m *Moment) NextData(a uint64) (next uint64, err error) {
	err = m.ask(http.MethodGet, fmt.Sprintf("data?from=%d", a), a, func(r io.Reader) error {
		_, err := fmt.Fscan(r, &next)
		return err
	})
	return next, err
}

// Release implements disk.Releaser. If it fails, more is kept than is needed.
func (m *Moment) Release(from, to uint64) {
	_ = m.ask(http.MethodPost, fmt.Sprintf("release?from=%d&to=%d", from, to), from, func(io.Reader) error { return nil })
}

// WriteAt implements disk.Disk. It is refused.
func (m *Moment) WriteAt(a uint64, _ [][]byte) error {
	return &disk.Error{Op: "write", Path: m.Image, Block: a, Err: disk.ErrReadOnly}
}

// Barrier implements disk.Disk. It is refused.
func (m *Moment) Barrier() error {
	return &disk.Error{Op: "barrier", Path: m.Image, Err: disk.ErrReadOnly}
}

// Size implements disk.Disk.
func (m *Moment) Size() uint64 { return m.size }

// Close implements disk.Disk. The server ends the moment soon.
func (m *Moment) Close() error {
	if m.closed.Swap(true) {
		return &disk.Error{Op: "close", Path: m.Image, Err: os.ErrClosed}
	}
	m.end()
	err := m.answer.Close()
	m.http.CloseIdleConnections()
	return err
}
