package oracle

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tansy/fs"
)

// span is when a name may have been in the directory, in ticks of one counter:
// surely between there and gone, perhaps between begun and ended.
type span struct{ begun, there, gone, ended uint64 }

const never = ^uint64(0)

// board is where those who change a directory write down what they do. No name is
// used twice.
type board struct {
	tick  atomic.Uint64
	mu    sync.Mutex
	names map[string]*span
}

func (b *board) begin(name string) *span {
	s := &span{begun: b.tick.Add(1), there: never, gone: never, ended: never}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.names[name] = s
	return s
}

func (b *board) note(p *uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	*p = b.tick.Add(1)
}

// judge compares one scan, made between two ticks, with the board.
func (b *board) judge(seen map[string]int, start, end uint64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, s := range b.names {
		k := seen[name]
		delete(seen, name)
		switch {
		case k > 1:
			return fmt.Errorf("%s comes %d times", name, k)
		case k == 0 && s.there <= start && s.gone >= end:
			return fmt.Errorf("%s was there all the time, and does not come", name)
		case k == 1 && (s.begun > end || s.ended < start):
			return fmt.Errorf("%s comes, but was there at no time", name)
		}
	}
	for name, k := range seen {
		if name != "." && name != ".." || k != 1 {
			return fmt.Errorf("%s comes %d times", name, k)
		}
	}
	return nil
}

// TestScan reads a directory in pages of many sizes while others fill and empty
// it: a name that is there all the time comes exactly once, no name comes twice,
// and none that was never there. Now and then the server is started again in the
// middle of a scan.
func TestScan(t *testing.T) {
	s := seed(t)
	v := newVolume(t, 20000, 5000, time.Now)
	first := v.mount()
	b := &board{names: map[string]*span{}}
	add := func(c fs.FileSystem, name string) error {
		x := b.begin(name)
		_, err := c.Mknod(root, c.Root(), []byte(name), fs.FIFO, &fs.SetAttr{}, 0, 0)
		b.note(&x.there)
		return err
	}
	for i := range 150 {
		want(t, "MKNOD", add(first, fmt.Sprint("stays", i)), nil)
	}
	scans := 0
	for round := range 3 {
		r := rand.New(rand.NewPCG(uint64(s), uint64(round)))
		var stop atomic.Bool
		var wg sync.WaitGroup
		for k := range 3 {
			c := v.again(first)
			r := rand.New(rand.NewPCG(uint64(s), uint64(100+10*round+k)))
			wg.Go(func() {
				if err := b.churn(c, r, fmt.Sprintf("%d-%d", round, k), &stop, add); err != nil {
					t.Error(err)
				}
			})
		}
		c := v.again(first)
		for range 25 {
			if err := b.scan(c, r, nil); err != nil {
				t.Fatal(err)
			}
			scans++
		}
		stop.Store(true)
		wg.Wait()
		restarted := false
		if err := b.scan(c, r, func() fs.FileSystem {
			restarted = true
			v.stop()
			v.start()
			return v.again(first)
		}); err != nil {
			t.Fatalf("with a restart: %v", err)
		}
		if !restarted {
			t.Error("the scan was over before the restart")
		}
	}
	t.Logf("%d scans, %d names", scans, len(b.names))
	v.check()
}

// churn adds, renames and removes names of its own.
func (b *board) churn(
	c fs.FileSystem, r *rand.Rand, prefix string, stop *atomic.Bool, add func(fs.FileSystem, string) error,
) error {
	var mine []string
	for i := 0; !stop.Load(); i++ {
		name := fmt.Sprintf("%s-%d", prefix, i)
		k := 0
		if len(mine) > 0 {
			k = r.IntN(len(mine))
		}
		switch what := r.IntN(4); {
		case len(mine) < 5 || what < 2 && len(mine) < 60:
			if err := add(c, name); err != nil {
				return err
			}
			mine = append(mine, name)
		case what == 2:
			b.mu.Lock()
			old := b.names[mine[k]]
			b.mu.Unlock()
			x := b.begin(name)
			b.note(&old.gone)
			if _, _, err := c.Rename(root, c.Root(), []byte(mine[k]), c.Root(), []byte(name)); err != nil {
				return err
			}
			b.note(&old.ended)
			b.note(&x.there)
			mine[k] = name
		default:
			b.mu.Lock()
			old := b.names[mine[k]]
			b.mu.Unlock()
			b.note(&old.gone)
			if _, err := c.Remove(root, c.Root(), []byte(mine[k])); err != nil {
				return err
			}
			b.note(&old.ended)
			mine = append(mine[:k], mine[k+1:]...)
		}
	}
	return nil
}

// scan reads the directory once. restart, if not nil, starts the server again
// after some page.
func (b *board) scan(c fs.FileSystem, r *rand.Rand, restart func() fs.FileSystem) error {
	seen := map[string]int{}
	start := b.tick.Add(1)
	at, size := r.IntN(4), 3000
	if restart != nil {
		size = 700 // more pages than that, with the names that stay alone
	}
	var cookie uint64
	for page := 0; ; page++ {
		if page == at && restart != nil {
			c = restart()
		}
		plus := r.IntN(2) == 0
		l, err := c.Readdir(root, c.Root(), cookie, 0, plus, fs.Limit{Bytes: 500 + r.IntN(size)})
		if err != nil {
			return err
		}
		if len(l.Entries) == 0 && !l.EOF {
			return fmt.Errorf("an empty page before the end")
		}
		for _, e := range l.Entries {
			seen[string(e.Name)]++
			cookie = e.Cookie
		}
		if l.EOF {
			break
		}
	}
	return b.judge(seen, start, b.tick.Add(1))
}
