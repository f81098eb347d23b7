package floor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"tansy/bench/internal/rig"
	"tansy/tools/load"
)

// side is one of the two servers of -against.
type side struct {
	*bench
	small  map[int]*smallClients
	large  *largeFile
	files  []*largeFile   // made when they are needed
	random *randomWriters // likewise
	dones  []func()
}

type smallClients struct {
	conns []*load.Conn
	dirs  []load.Handle
}

// pairing is something both servers do: once does it on one of them, for about d where its size
// does not give its length, and returns how much it did in units.
type pairing struct {
	workload, name, unit string
	once                 func(s *side, d time.Duration) (units float64, err error)
	tail                 func(s *side) time.Duration // or nil: what 99 of 100 took at most since it was last asked
}

// besideAnother are the workloads of -against.
var besideAnother = []string{"smallfile", "large", "random", "files"}

// against measures this server and another one piece by piece in turns: what a machine that
// others use too does to one of them, it does to both. The server's time on the CPUs says what
// rates on such a machine cannot.
func against(ctx context.Context, o options, dir string) error {
	var sides [2]*side
	for i, server := range []string{o.server, o.against} {
		o.server = server
		sub := filepath.Join(dir, strconv.Itoa(i))
		if err := os.Mkdir(sub, 0o777); err != nil {
			return err
		}
		end, err := o.volumeDevice(ctx, sub)
		defer end()
		if err != nil {
			return err
		}
		child, err := startServer(o, sub)
		if err != nil {
			return err
		}
		defer child.stop()
		s := &side{bench: &bench{options: o, dir: sub, child: child}, small: map[int]*smallClients{}}
		s.addr = child.addr
		defer s.end()
		err = s.prepare()
		if err != nil {
			return err
		}
		sides[i] = s
	}
	fmt.Fprintf(o.out, "medians of %d rounds, the ratio that of a round\n\n", o.rounds)
	fmt.Fprintf(o.out, "%-28s %13s %13s %6s   %15s %15s %6s\n",
		"", "this", "other", "ratio", "CPU of this", "CPU of other", "ratio")
	for _, p := range pairings(o) {
		if len(o.workloads) > 0 && !slices.Contains(o.workloads, p.workload) {
			continue
		}
		if err := p.row(ctx, o, sides); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

var smallCounts = []int{1, 8, 32}

// end ends what prepare and the pairings have begun.
func (s *side) end() {
	for _, d := range s.dones {
		d()
	}
}

// prepare makes what most pairings work on.
func (s *side) prepare() error {
	for _, n := range smallCounts {
		conns, dirs, d, err := s.clients(fmt.Sprint("small", n), n)
		if err != nil {
			return err
		}
		s.dones = append(s.dones, d)
		s.small[n] = &smallClients{conns, dirs}
	}
	conns, dirs, d, err := s.clients("large", 1)
	if err != nil {
		return err
	}
	s.dones = append(s.dones, d)
	s.large = &largeFile{
		bench: s.bench, c: conns[0], dir: dirs[0], depth: largeDepth,
		chunks: max(1, s.fileMB*1_000_000/ioSize), buf: make([]byte, ioSize),
	}
	return nil
}

func pairings(o options) (ps []pairing) {
	for _, n := range smallCounts {
		name := fmt.Sprintf("smallfile, clients: %d", n)
		ps = append(ps, pairing{"smallfile", name, "", func(s *side, d time.Duration) (float64, error) {
			c := s.small[n]
			_, count, err := rig.Repeat(context.Background(), d, n, func(i, k int) error {
				return c.conns[i].SmallFile(c.dirs[i], fmt.Sprint("file", k))
			})
			return count, err
		}, nil})
	}
	for _, n := range randomCounts {
		ps = append(ps, pairing{"random", fmt.Sprintf("random 4 KiB, clients: %d", n), "",
			func(s *side, d time.Duration) (float64, error) { return s.writeRandom(d, n) },
			func(s *side) time.Duration { return s.random.tail() }})
	}
	ps = append(ps, pairing{"files", fmt.Sprintf("%d files, UNSTABLE", besideFiles), "MB", (*side).writeFiles, nil})
	for _, stable := range []uint32{load.Unstable, load.FileSync} {
		name := map[uint32]string{load.Unstable: "write, UNSTABLE + COMMIT", load.FileSync: "write, FILE_SYNC"}[stable]
		ps = append(ps, pairing{"large", name, "MB", func(s *side, _ time.Duration) (float64, error) {
			if s.large.kept != nil {
				s.large.c.StartRemove(s.large.dir, "kept")
				if err := s.large.c.Wait(0); err != nil {
					return 0, err
				}
			}
			h, p, err := s.large.create("kept")
			if err != nil {
				return 0, err
			}
			s.large.kept, s.large.keptPattern = h, p
			return s.large.megabytes(), s.large.fillFile(h, p, stable, inOrder(s.large.chunks))
		}, nil})
	}
	order := inOrder(max(1, o.fileMB*1_000_000/ioSize))
	shuffled := shuffle(order)
	read := func(name string, order []int) pairing {
		return pairing{"large", name, "MB", func(s *side, _ time.Duration) (float64, error) {
			return s.large.megabytes(), s.large.readServer(s.large.kept, s.large.keptPattern, order)
		}, nil}
	}
	return append(ps, read("read in order, warm", order), read("read at random, warm", shuffled))
}

// writeRandom has n clients write at random, and returns how many WRITEs there were.
func (s *side) writeRandom(d time.Duration, n int) (count float64, err error) {
	if s.random == nil {
		w, done, err := s.randomWriters(slices.Max(randomCounts))
		s.dones = append(s.dones, done)
		if err != nil {
			return 0, err
		}
		s.random = w
	}
	return s.random.run(d, n)
}

// besideFiles is how many files are written side by side.
const besideFiles = 8

// writeFiles has clients write a file each, together as long as the large one.
func (s *side) writeFiles(time.Duration) (megabytes float64, err error) {
	if s.files == nil {
		conns, dirs, d, err := s.clients("files", besideFiles)
		if err != nil {
			return 0, err
		}
		s.dones = append(s.dones, d)
		for i, c := range conns {
			s.files = append(s.files, &largeFile{bench: s.bench, c: c, dir: dirs[i], depth: streamDepth,
				chunks: max(1, s.large.chunks/besideFiles), buf: make([]byte, ioSize), serial: uint64(i) << 32})
		}
	}
	err = together(s.files, func(l *largeFile) error { return l.stream(load.Unstable) })
	return besideFiles * s.files[0].megabytes(), err
}

// row measures and prints one pairing.
func (p *pairing) row(ctx context.Context, o options, sides [2]*side) error {
	var rates, costs, tails [2][]float64
	for r := -1; r < o.rounds; r++ { // the first to warm up
		for k := range sides {
			i := (r + 1 + k) % 2
			cpu, begin := sides[i].child.cpu(), time.Now()
			units, err := p.once(sides[i], o.duration)
			if err != nil {
				return err
			}
			if ctx.Err() != nil {
				return errors.New("interrupted")
			}
			var tail float64
			if p.tail != nil {
				tail = microseconds(p.tail(sides[i]))
			}
			if r >= 0 {
				tails[i] = append(tails[i], tail)
				rates[i] = append(rates[i], units/time.Since(begin).Seconds())
				costs[i] = append(costs[i], float64((sides[i].child.cpu()-cpu).Microseconds())/units)
			}
		}
	}
	per := p.unit
	switch {
	case p.tail != nil:
		per = "call"
	case per == "":
		per = "file"
	}
	fmt.Fprintf(o.out, "%-28s %13s %13s %6.2f   %15s %15s %6.2f\n", p.name,
		load.Number(middle(rates[0]))+" "+p.unit+"/s", load.Number(middle(rates[1]))+" "+p.unit+"/s", medianRatio(rates),
		load.Number(middle(costs[0]))+" us/"+per, load.Number(middle(costs[1]))+" us/"+per, medianRatio(costs))
	if p.tail != nil {
		fmt.Fprintf(o.out, "%-28s %13s %13s %6.2f\n", "  99 of 100 within",
			load.Number(middle(tails[0]))+" us", load.Number(middle(tails[1]))+" us", medianRatio(tails))
	}
	return nil
}

func middle(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

func medianRatio(v [2][]float64) float64 {
	ratios := make([]float64, len(v[0]))
	for i := range ratios {
		ratios[i] = v[0][i] / v[1][i]
	}
	return middle(ratios)
}

// cpu is the time that the server has had on the CPUs so far; 0 where the system does not tell.
func (c *child) cpu() time.Duration { return load.ProcessTime(c.cmd.Process.Pid) }
