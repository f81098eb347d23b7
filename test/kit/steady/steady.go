// Package steady is a load for servers that take over from each other: clients in folders of their own, which know what
// every call has to answer, and what every file holds. A pause is no error; anything else but that answer is, such as
// "File exists" of what a client has made itself, or an older state of a file.
package steady

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"tansy/fs"
	"tansy/test/kit/nfsclient"
)

// files is how many files a client keeps, and overwrites now and then.
const files = 8

// Client is one of the load. It works from Start to Stop, or to its first error.
type Client struct {
	fs   *nfsclient.Client
	rnd  *rand.Rand
	name string
	dir  fs.Handle
	keep [files]kept

	stopping chan struct{}
	ended    chan struct{}

	mu      sync.Mutex
	more    sync.Cond
	rounds  int
	calls   int
	longest time.Duration
	over    bool
	err     error
}

type kept struct {
	handle fs.Handle
	data   []byte
}

var root = &fs.Cred{}

// Start begins to work in a new folder of the root of c.
func Start(c *nfsclient.Client, name string, seed uint64) *Client {
	s := &Client{fs: c, rnd: rand.New(rand.NewPCG(seed, 1)), name: name, stopping: make(chan struct{}),
		ended: make(chan struct{})}
	s.more.L = &s.mu
	go s.run()
	return s
}

func (s *Client) run() {
	err := s.begin()
	for err == nil && !s.told() {
		if err = s.round(); err == nil {
			s.mu.Lock()
			s.rounds++
			s.more.Broadcast()
			s.mu.Unlock()
		}
	}
	if err == nil {
		err = s.verify()
	}
	if err != nil {
		err = fmt.Errorf("client %s, round %d: %w", s.name, s.rounds, err)
	}
	s.mu.Lock()
	s.over, s.err = true, err
	s.more.Broadcast()
	s.mu.Unlock()
	close(s.ended)
}

func (s *Client) told() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// Progress waits until n rounds more are done, from their first call on. Its error is the one that ended the work.
func (s *Client) Progress(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for want := s.rounds + 1 + n; s.rounds < want && !s.over; { // the one under way began before
		s.more.Wait()
	}
	return s.err
}

// Calls is how many were answered, and how long the slowest took.
func (s *Client) Calls() (n int, longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls, s.longest
}

// Stop ends the work with a look at all files. Its error is the first one that there was.
func (s *Client) Stop() error {
	close(s.stopping)
	<-s.ended
	return s.err
}

// do makes a call, whose error has to be want.
func (s *Client) do(what string, want error, call func() error) error {
	begin := time.Now()
	err := call()
	took := time.Since(begin)
	s.mu.Lock()
	s.calls++
	s.longest = max(s.longest, took)
	s.mu.Unlock()
	if !errors.Is(err, want) {
		return fmt.Errorf("%s: %v, want %v", what, err, want)
	}
	return nil
}

// begin makes the folder and the files that are kept.
func (s *Client) begin() error {
	err := s.do("mkdir", nil, func() (err error) { s.dir, err = s.mkdir(s.fs.Root(), []byte(s.name)); return err })
	for i := range s.keep {
		if err == nil {
			err = s.do("create", nil,
				func() (err error) { s.keep[i].handle, err = s.create(s.dir, fmt.Sprint("keep", i)); return err })
		}
	}
	return err
}

func (s *Client) mkdir(dir fs.Handle, name []byte) (fs.Handle, error) {
	n, err := s.fs.Mkdir(root, dir, name, &fs.SetAttr{})
	return n.Handle, err
}

func (s *Client) create(dir fs.Handle, name string) (fs.Handle, error) {
	n, err := s.fs.Create(root, dir, []byte(name), fs.Guarded, &fs.SetAttr{}, 0)
	return n.Handle, err
}

// round makes a folder with a file, moves it about, removes it, and overwrites and reads files that are kept.
func (s *Client) round() error {
	name := func(what string) []byte { return fmt.Append(nil, what, s.rounds) }
	var d, f fs.Handle
	steps := []struct {
		what string
		want error
		call func() error
	}{
		{"mkdir", nil, func() (err error) { d, err = s.mkdir(s.dir, name("d")); return err }},
		{"create", nil, func() (err error) { f, err = s.create(d, "f"); return err }},
		{"link", nil, func() error { _, _, err := s.fs.Link(root, f, s.dir, name("l")); return err }},
		{"rename", nil, func() error { _, _, err := s.fs.Rename(root, d, []byte("f"), s.dir, name("r")); return err }},
		{"lookup of what was renamed", fs.ErrNoEnt, func() error { _, err := s.fs.Lookup(root, d, []byte("f")); return err }},
		{"remove", nil, func() error { _, err := s.fs.Remove(root, s.dir, name("l")); return err }},
		{"overwrite", nil, func() error { return s.overwrite(&s.keep[s.rnd.IntN(files)]) }},
		{"read", nil, func() error { return s.read(&s.keep[s.rnd.IntN(files)]) }},
		{"remove the other name", nil, func() error { _, err := s.fs.Remove(root, s.dir, name("r")); return err }},
		{"rmdir", nil, func() error { _, err := s.fs.Rmdir(root, s.dir, name("d")); return err }},
	}
	for _, x := range steps {
		if err := s.do(x.what, x.want, x.call); err != nil {
			return err
		}
	}
	return nil
}

// overwrite has a file hold other bytes, of any length up to 40,000, durably.
func (s *Client) overwrite(k *kept) error {
	data := make([]byte, 1+s.rnd.IntN(40_000))
	for i := range data {
		data[i] = byte(s.rnd.Uint32())
	}
	n, _, _, err := s.fs.Write(root, k.handle, 0, data, fs.FileSync)
	if err == nil && int(n) != len(data) {
		err = fmt.Errorf("%d of %d bytes are written", n, len(data))
	}
	if len(data) < len(k.data) {
		data = append(data, k.data[len(data):]...)
	}
	k.data = data
	return err
}

func (s *Client) read(k *kept) error {
	got, _, _, err := s.fs.Read(root, k.handle, 0, 64<<10)
	if err == nil && !bytes.Equal(got, k.data) {
		err = errors.New("not the bytes that were written last")
	}
	return err
}

// verify reads all files, by their names, and looks that there is nothing else.
func (s *Client) verify() error {
	for i := range s.keep {
		n, err := s.fs.Lookup(root, s.dir, fmt.Append(nil, "keep", i))
		if err == nil && n.Handle != s.keep[i].handle {
			err = errors.New("another file")
		}
		if err == nil {
			err = s.read(&s.keep[i])
		}
		if err != nil {
			return fmt.Errorf("keep%d at the end: %w", i, err)
		}
	}
	list, err := s.fs.Readdir(root, s.dir, 0, 0, false, fs.Limit{Bytes: 64 << 10})
	if err == nil && (len(list.Entries) != 2+files || !list.EOF) {
		err = fmt.Errorf("%d names, want %d", len(list.Entries), 2+files)
	}
	return err
}
