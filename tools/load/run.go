// Package load measures any NFSv3 server as its clients see it: rates, and how long calls take. All data that is read
// is compared with what was written; a wrong byte ends the run.
//
//	run.go        what is measured, and how
//	workloads.go  what clients do
//	client.go     one of them: a connection, a directory, a file
//	rpc.go nfs.go list.go stream.go status.go  the protocol, with many calls in flight
//	pattern.go    file contents that tell where they belong
//	histogram.go report.go plot.go  what came out
package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"tansy/internal/nearest"
)

// Config says what is measured.
type Config struct {
	Addr      string        // HOST:PORT of NFS, over TCP
	MountAddr string        // of MOUNT; empty: Addr
	TLS       *tls.Config   // how connections to Addr are protected (RFC 9289); nil: not at all
	Export    string        // the directory that is mounted; empty: /
	Workloads []string      // names; none: all
	Clients   int           // each with a connection, a directory, and a file of its own; 0: 8
	Depth     int           // calls in flight of a client, for workloads in which it does not wait for each; 0: 16
	Duration  time.Duration // of a workload; 0: 5 s
	FileSize  uint64        // of each client's file in bytes; 0: 32 MiB
	IOSize    int           // of READs and WRITEs in order, in bytes, a multiple of 4096; 0: 64 KiB

	// Progress is called before each workload and when all are over, unless it is nil.
	Progress func(done, total int, name string)

	run int // makes the names of directories different from another run's
}

// Result is what was measured of a workload.
type Result struct {
	Workload string        `json:"workload"`
	Clients  int           `json:"clients"`
	Depth    int           `json:"callsInFlight"` // of each client
	Ops      uint64        `json:"operations"`
	Bytes    uint64        `json:"bytes"` // of data
	Elapsed  time.Duration `json:"elapsedNanoseconds"`
	CPU      time.Duration `json:"serverCPUNanoseconds"` // of the server in all; 0: not known, as of another host's
	Latency  Latency       `json:"latencyNanoseconds"`
	about    Workload
}

// Latency is how long operations took, from the start of the call to its reply: what the half of them, nine tenths, and
// so on took at most.
type Latency struct {
	Half       time.Duration `json:"p50"`
	Tenth      time.Duration `json:"p90"`
	Hundredth  time.Duration `json:"p99"`
	Thousandth time.Duration `json:"p999"`
	Longest    time.Duration `json:"max"`
}

// maxIO is the largest READ or WRITE, in bytes.
const maxIO = 1 << 20

// dial connects to a server of the configuration. MOUNT on a port of its own has no TLS.
func (cfg *Config) dial(addr string, alone bool) (*Conn, error) {
	if cfg.TLS != nil && addr == cfg.Addr {
		return DialTLS(addr, cfg.TLS)
	}
	return Dial(addr, alone)
}

// Check says what is wrong with a Config, if anything is.
func (cfg Config) Check() error {
	_, err := cfg.prepare()
	return err
}

// most is how many clients there may be, and how many calls of each in flight.
const most = 10_000

// What a workload may take.
const (
	leastTime = time.Millisecond
	mostTime  = 24 * time.Hour
)

// prepare sets defaults, and finds what is wrong.
func (cfg *Config) prepare() (chosen []Workload, err error) {
	if cfg.MountAddr == "" {
		cfg.MountAddr = cfg.Addr
	}
	if cfg.Export == "" {
		cfg.Export = "/"
	}
	setDefault(&cfg.Clients, 8)
	setDefault(&cfg.Depth, 16)
	setDefault(&cfg.Duration, 5*time.Second)
	setDefault(&cfg.FileSize, 32<<20)
	setDefault(&cfg.IOSize, 64<<10)
	cfg.run = os.Getpid()
	switch {
	case cfg.Clients < 1 || cfg.Clients > most || cfg.Depth < 1 || cfg.Depth > most:
		return nil, fmt.Errorf("the number of clients and that of calls in flight must be from 1 to %d", most)
	case cfg.Duration < leastTime || cfg.Duration > mostTime:
		return nil, fmt.Errorf("the time of a workload must be from %v to %v", leastTime, mostTime)
	case cfg.IOSize < PatternBlock || cfg.IOSize > maxIO || cfg.IOSize%PatternBlock != 0:
		return nil, fmt.Errorf("the size of READs and WRITEs must be a multiple of %d, up to %d", PatternBlock, maxIO)
	case cfg.FileSize < uint64(cfg.IOSize):
		return nil, errors.New("the file must not be smaller than a READ")
	}
	if len(cfg.Workloads) == 0 {
		return workloads, nil
	}
	for _, name := range cfg.Workloads {
		i := slices.IndexFunc(workloads, func(w Workload) bool { return w.Name == name })
		if i < 0 {
			return nil, noWorkload(name)
		}
		chosen = append(chosen, workloads[i])
	}
	return chosen, nil
}

// noWorkload is the error about a name that no workload has.
func noWorkload(name string) error {
	var names []string
	for _, w := range workloads {
		names = append(names, w.Name)
	}
	if n := nearest.Of(name, names); n != "" {
		return fmt.Errorf("there is no workload %q: did you mean %s?", name, n)
	}
	return fmt.Errorf("there is no workload %q: give some of %s", name, strings.Join(names, ", "))
}

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// Run measures one workload after the other, and removes what it has made on the server. The results are those of the
// workloads that came to their end before ctx did.
func Run(ctx context.Context, cfg Config) (results []Result, err error) {
	chosen, err := cfg.prepare()
	if err != nil {
		return nil, err
	}
	root, err := mountRoot(&cfg)
	if err != nil {
		return nil, err
	}
	var clients []*client
	defer func() {
		errs := together(clients, func(c *client) error { return c.close(root) })
		if err == nil && errs != nil {
			err = fmt.Errorf("removing what was made: %w", errs)
		}
	}()
	for i := range cfg.Clients {
		c, err := connect(&cfg, root, i)
		if err != nil {
			return nil, err
		}
		clients = append(clients, c)
	}
	process := serverProcess(cfg.Addr)
	for i, w := range chosen {
		if cfg.Progress != nil {
			cfg.Progress(i, len(chosen), w.Name)
		}
		r, err := measure(ctx, &cfg, &w, clients, process)
		if ctx.Err() != nil {
			return results, errors.New("interrupted")
		}
		if err != nil {
			return results, fmt.Errorf("%s: %w", w.Name, err)
		}
		results = append(results, r)
	}
	if cfg.Progress != nil {
		cfg.Progress(len(chosen), len(chosen), "")
	}
	return results, nil
}

// together has all of them do the same side by side.
func together(clients []*client, do func(c *client) error) error {
	errs := make([]error, len(clients))
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() { errs[i] = do(c) })
	}
	wg.Wait()
	i := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if i < 0 {
		return nil
	}
	return errs[i] // the others are of the same kind
}

// warmUp is the part of the duration that comes before what is measured.
const warmUp = 10

// measure has all clients do w for a while, and removes what that made.
func measure(ctx context.Context, cfg *Config, w *Workload, clients []*client, process int) (r Result, err error) {
	depth := 1
	if w.Deep {
		depth = cfg.Depth
	}
	if w.file {
		err = together(clients, func(c *client) error {
			if c.file != nil {
				return nil
			}
			return c.makeFile(ctx)
		})
	}
	repeat := func(d time.Duration) error {
		begin := time.Now()
		return together(clients, func(c *client) error {
			for i := 0; time.Since(begin) < d; i++ {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := w.begin(c, i); err != nil {
					return err
				}
				if err := c.Wait(depth - 1); err != nil {
					return err
				}
			}
			if err := c.Wait(0); err != nil || w.end == nil {
				return err
			}
			return w.end(c)
		})
	}
	if err == nil {
		err = repeat(cfg.Duration / warmUp)
	}
	if err == nil {
		err = together(clients, (*client).forget)
	}
	if err != nil {
		return r, err
	}
	cpu, begin := ProcessTime(process), time.Now()
	if err := repeat(cfg.Duration); err != nil {
		return r, err
	}
	r = Result{Workload: w.Name, Clients: len(clients), Depth: depth, Elapsed: time.Since(begin), about: *w}
	if process != 0 {
		r.CPU = ProcessTime(process) - cpu
	}
	var all Histogram
	for _, c := range clients {
		all.Merge(&c.latency)
		r.Bytes += c.bytes
	}
	r.Ops = all.n
	r.Latency = Latency{all.Quantile(0.5), all.Quantile(0.9), all.Quantile(0.99), all.Quantile(0.999), all.max}
	return r, together(clients, (*client).forget)
}
