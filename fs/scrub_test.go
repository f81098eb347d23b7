package fs

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tansy/disk"
	"tansy/journal"
	"tansy/test/kit/replay"
)

// TestScrubNames: a scrub finds what is damaged under a server, and the log says what it is, and of which file.
func TestScrubNames(t *testing.T) {
	for _, c := range []struct {
		what  string
		block func(x *rotten) uint64
		want  []string
	}{
		{"contents", func(x *rotten) uint64 { return x.pointer("f", 1) },
			[]string{"contents of a file", "offset=4096", "file=/f", "inode="}},
		{"below an indirect block", func(x *rotten) uint64 {
			return binary.LittleEndian.Uint64(x.block(x.pointer("g", 12))[8*5:])
		}, []string{"contents of a file", fmt.Sprint("offset=", 17*BlockSize), `file="/a/b/c/g\n`}},
		{"an indirect block", func(x *rotten) uint64 { return x.pointer("g", 12) },
			[]string{"block numbers of a file", fmt.Sprint("offset=", 12*BlockSize), `file="/a/b/c/g\n`}},
		{"a directory", func(x *rotten) uint64 { return x.pointer("b", 0) }, []string{"names in a directory", "file=/a/b"}},
		{"inodes", func(x *rotten) uint64 { return x.v.geo.InodeTable() + 1 }, []string{"inodes 16 to 31"}},
		{"the bitmap", func(x *rotten) uint64 { return x.v.geo.BlockBitmap() }, []string{"of the block bitmap"}},
	} {
		x := newRotten(t, Options{})
		a := c.block(x)
		x.rot(a)
		x.v.Scrub()
		if st := x.v.ScrubStatus(); !st.Running {
			t.Errorf("%s: the scrub that was asked for does not run: %+v", c.what, st)
		}
		named := append(c.want, "a damaged block is", fmt.Sprint("block=", a))
		line := x.log.awaitAll(t, named, []string{"the scrub has found damage", "damaged=1 "})[1]
		x.close()
		st := x.v.ScrubStatus()
		if st.Running || st.Passes != 1 || st.Pass.Damaged != 1 || st.Err != nil || st.Ended.IsZero() {
			t.Errorf("%s: %+v", c.what, st)
		}
		if got, want := st.Pass.Done(), st.Total; got != want && c.what != "the bitmap" {
			t.Errorf("%s: %d blocks, %d were expected; %s", c.what, got, want, line)
		}
	}
}

// TestScrubOff: without being asked nothing is scrubbed; and with a rate it is at once, and then every so often.
func TestScrubOff(t *testing.T) {
	x := newRotten(t, Options{})
	x.close()
	if st := x.v.ScrubStatus(); st.Running || !st.Began.IsZero() || st.Every != 0 || st.Rate != DefaultScrubRate {
		t.Errorf("%+v", st)
	}
	y := newRotten(t, Options{Scrub: ScrubOptions{Rate: 1 << 40}})
	y.log.await(t, "a scrub begins", "blocks=")
	y.log.await(t, "the scrub has found no damage")
	if st := y.v.ScrubStatus(); st.Every != DefaultScrubEvery || st.Passes != 1 || st.Checked != st.Pass.Good {
		t.Errorf("%+v", st)
	}
	y.v.Scrub()
	y.log.await(t, "the scrub has found no damage")
	y.close()
	if st := y.v.ScrubStatus(); st.Passes != 2 || st.Checked != 2*st.Pass.Good {
		t.Errorf("%+v", st)
	}
}

// TestScrubRate: a pass takes as long as its rate says.
func TestScrubRate(t *testing.T) {
	const rate = 1 << 20
	x := newRotten(t, Options{})
	x.v.scrub.Rate = rate
	start := time.Unix(1e9, 0)
	now := start // it goes on when somebody waits for it
	x.v.scrub.Now = func() time.Time { return now }
	x.v.scrub.After = func(d time.Duration) <-chan time.Time {
		now = now.Add(d)
		fired := make(chan time.Time, 1)
		fired <- now
		return fired
	}
	reads := x.v.Stats().Journal.ReadBlocks
	x.v.scrub.Pass(context.Background())
	bytes := float64(x.v.Stats().Journal.ReadBlocks-reads-journal.ScrubRun) * BlockSize // the last read is not waited for
	if took := now.Sub(start).Seconds(); took < bytes/rate || took == 0 {
		t.Errorf("%g bytes in %g s", bytes, took)
	}
	x.close()
}

// TestScrubStops: Close does not wait for the end of a pass.
func TestScrubStops(t *testing.T) {
	x := newRotten(t, Options{})
	waits := make(chan struct{}, 1000)
	x.v.scrub.After = func(time.Duration) <-chan time.Time {
		waits <- struct{}{}
		return nil
	}
	x.v.scrub.Rate = 1
	x.v.Scrub()
	<-waits
	x.close()
	x.log.await(t, "ends before its time, as the volume is served no more")
	if st := x.v.ScrubStatus(); st.Running || st.Passes != 0 || !st.Ended.IsZero() {
		t.Errorf("%+v", st)
	}
}

// TestScrubInUse: passes one after the other, while clients change everything: nothing is called damaged.
func TestScrubInUse(t *testing.T) {
	seed := replay.Seed(t)
	x := newRotten(t, Options{})
	rounds := 400
	if testing.Short() {
		rounds = 60
	}
	ctx, stop := context.WithCancel(context.Background())
	var clients, scrubs sync.WaitGroup
	for c := range uint64(3) {
		clients.Go(func() {
			r := rand.New(rand.NewPCG(seed, c))
			root, data := &Cred{}, make([]byte, 200*BlockSize)
			for i := range rounds {
				name := fmt.Appendf(nil, "n%d", r.IntN(4))
				n, err := x.v.Create(root, x.v.Root(), name, Unchecked, nil, 0)
				if err != nil {
					t.Error(err)
					return
				}
				data[0] = byte(i)
				size := r.IntN(len(data))
				how := []Stability{Unstable, FileSync}[r.IntN(2)]
				if _, _, _, err := x.v.Write(root, n.Handle, uint64(r.IntN(1<<16)), data[:size], how); err != nil && err != ErrStale && err != ErrNoSpc {
					t.Error(err)
				}
				if r.IntN(3) == 0 {
					if _, err := x.v.Remove(root, x.v.Root(), name); err != nil && err != ErrNoEnt {
						t.Error(err)
					}
				}
			}
		})
	}
	x.v.scrub.Rate = 1 << 50
	scrubs.Go(func() {
		for ctx.Err() == nil {
			x.v.scrub.Pass(ctx)
		}
	})
	clients.Wait()
	stop()
	scrubs.Wait()
	st := x.v.ScrubStatus()
	if x.v.DamagedBlocks() > 0 || st.Pass.Damaged > 0 || st.Passes == 0 {
		t.Errorf("%+v, %d damaged blocks", st, x.v.DamagedBlocks())
	}
	x.close()
	close(x.log)
	for line := range x.log {
		if strings.Contains(line, "level=ERROR") {
			t.Error(line)
		}
	}
	t.Logf("%d passes, %d blocks", st.Passes, st.Checked)
}

// TestScrubRenews: what the device has lost and memory has, be it a page of the tree of codes or a home block, a scrub
// has written anew: nothing is damaged then for a server that starts with nothing in memory, not even after a crash.
func TestScrubRenews(t *testing.T) {
	root := &Cred{}
	walk := func(x *rotten, v *FS) {
		t.Helper()
		if _, err := v.Lookup(root, v.Root(), []byte("f")); err != nil {
			t.Error(err)
		}
		if _, _, _, err := v.Read(root, Handle{x.ino["f"], 1}, 0, 3*BlockSize); err != nil {
			t.Error(err)
		}
	}
	for what, block := range map[string]func(x *rotten) uint64{
		"the root of the tree":           func(x *rotten) uint64 { return x.page(x.v.dmg.Params.Pages - 1) },
		"the page that bitmaps need":     func(x *rotten) uint64 { return x.page(0) },
		"a page with the codes of files": func(x *rotten) uint64 { return x.page((x.pointer("f", 0) - x.v.dmg.Params.Home()) / 255) },
		"the inode bitmap":               func(x *rotten) uint64 { return x.v.geo.InodeBitmap() },
		"the block bitmap":               func(x *rotten) uint64 { return x.v.geo.BlockBitmap() },
		"inodes":                         func(x *rotten) uint64 { return x.v.geo.InodeTable() },
		"contents of a file":             func(x *rotten) uint64 { return x.pointer("f", 1) },
	} {
		x := newRotten(t, Options{})
		if _, err := x.v.Create(root, x.v.Root(), []byte("new"), Guarded, nil, 0); err != nil {
			t.Fatal(err)
		}
		if err := x.v.sys.Settle(); err != nil {
			t.Fatal(err)
		}
		walk(x, x.v)
		x.v.scrub.Pass(context.Background()) // so that all pages are in memory
		a := block(x)
		x.rot(a)
		if a < x.v.dmg.Params.Start {
			x.rot(a + 1) // its other place: whichever counts
		}
		x.v.scrub.Pass(context.Background())
		if st := x.v.ScrubStatus(); st.Last.Damaged != 1 || x.v.Health() != nil || x.v.DamagedBlocks() > 0 {
			t.Errorf("%s: %+v, %v", what, st.Last, x.v.Health())
		}
		x.log.await(t, "was damaged on the device, and is written anew")
		x.log.await(t, "the scrub has found damage, and written it anew")
		crashed := disk.NewMem(rotBlocks * disk.BlockSize)
		for b := range uint64(rotBlocks) {
			if err := crashed.WriteAt(b, [][]byte{x.block(b)}); err != nil {
				t.Fatal(err)
			}
		}
		x.v.scrub.Pass(context.Background())
		if st := x.v.ScrubStatus(); st.Last.Damaged+st.Last.Unchecked > 0 {
			t.Errorf("%s, and after that: %+v", what, st.Last)
		}
		walk(x, x.v)
		x.close()
		v, err := Open(crashed, Options{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		walk(x, v)
		v.scrub.Pass(context.Background())
		if st := v.ScrubStatus(); st.Last.Damaged+st.Last.Unchecked > 0 {
			t.Errorf("%s, after a crash: %+v", what, st.Last)
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
}

// page is the first place of page p of the tree of codes.
func (x *rotten) page(p uint64) uint64 {
	return x.v.dmg.Params.Start - 2*(x.v.dmg.Params.Pages-p)
}

// TestFrozen: when a bitmap is damaged, or the tree of codes where the bitmaps need it, nothing is changed any more,
// and what can be read is.
func TestFrozen(t *testing.T) {
	root := &Cred{}
	for what, block := range map[string]func(x *rotten) uint64{
		"the inode bitmap": func(x *rotten) uint64 { return x.v.geo.InodeBitmap() },
		"the block bitmap": func(x *rotten) uint64 { return x.v.geo.BlockBitmap() },
	} {
		for _, how := range []string{"scrub", "change", "at rest"} {
			x := newRotten(t, Options{})
			a := block(x)
			if how == "at rest" {
				x.close()
			}
			x.rot(a)
			switch how {
			case "at rest":
				v, err := Open(x.d, Options{Log: slog.New(slog.NewTextHandler(x.log, nil))})
				if err != nil {
					t.Fatal(err)
				}
				x.v = v
			case "scrub":
				x.v.scrub.Pass(context.Background())
				if x.v.Health() == nil {
					t.Errorf("%s: the volume is said to be healthy", what)
				}
			}
			h := Handle{x.ino["f"], 1}
			changes := []func() error{
				func() error {
					_, err := x.v.Create(root, x.v.Root(), []byte("new"), Guarded, nil, 0)
					return err
				},
				func() error {
					_, _, _, err := x.v.Write(root, h, 1<<20, make([]byte, 2*BlockSize), FileSync)
					return err
				},
			}
			if what == "the block bitmap" { // first the one that needs it
				slices.Reverse(changes)
			}
			for i, change := range changes {
				if err := change(); err != ErrROFS {
					t.Errorf("%s, %s: change %d: %v", what, how, i, err)
				}
			}
			if _, err := x.v.Setattr(root, h, &SetAttr{Mode: new(uint32)}, nil); err != ErrROFS {
				t.Errorf("%s, %s: a change that needs no bitmap: %v", what, how, err)
			}
			if _, _, err := x.v.Access(root, h, 0x3f); err != nil {
				t.Errorf("%s, %s: %v", what, how, err)
			}
			if rights, _, _ := x.v.Access(root, h, 0x3f); rights&accessChange != 0 {
				t.Errorf("%s, %s: ACCESS grants changes", what, how)
			}
			if data, _, _, err := x.v.Read(root, h, 0, 3*BlockSize); err != nil || len(data) != 3*BlockSize {
				t.Errorf("%s, %s: reading: %v", what, how, err)
			}
			if err := x.v.Health(); err == nil || !strings.Contains(err.Error(), fmt.Sprint("block ", a)) || !strings.Contains(err.Error(), "tansy repair") {
				t.Errorf("%s, %s: %v", what, how, err)
			}
			x.close()
			close(x.log)
			told := 0
			for line := range x.log {
				if strings.Contains(line, "read-only from now on") && strings.Contains(line, fmt.Sprint("block=", a)) && strings.Contains(line, "tansy repair") {
					told++
				}
			}
			if told != 1 {
				t.Errorf("%s, %s: told %d times", what, how, told)
			}
		}
	}
}

// TestScrubOfGrowing: a pass over a volume that can grow takes what there is, and knows so before, whatever it may
// become; what it has grown by is looked at, too.
func TestScrubOfGrowing(t *testing.T) {
	const size, device = 6 << 20 / BlockSize, 24 << 20 / BlockSize
	d := disk.NewMem(device * BlockSize)
	if err := Mkfs(disk.NewPrefix(d, size), MkfsOptions{MaxBytes: 1 << 40}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []uint64{size, device} {
		if want > size {
			if _, err := Grow(d, GrowOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		v, err := Open(disk.NewPrefix(d, want), Options{})
		if err != nil {
			t.Fatal(err)
		}
		n, err := v.Create(&Cred{}, v.Root(), fmt.Append(nil, want), Unchecked, nil, 0)
		if err == nil {
			_, _, _, err = v.Write(&Cred{}, n.Handle, 0, make([]byte, 100_000), FileSync)
		}
		if err != nil {
			t.Fatal(err)
		}
		total, counted := duties{v}.InUse(), uint64(0)
		dealt, err := duties{v}.Check(context.Background(), journal.Scrub{
			Before:   func(_ context.Context, n uint64) error { counted += n; return nil },
			Found:    func(f journal.Finding) { t.Error(f) },
			Progress: func(journal.ScrubCounts) {},
		})
		if err != nil || dealt.Done() != total || total > want {
			t.Errorf("of %d blocks %+v are dealt with, %d were to be: %v", want, dealt, total, err)
		}
		if counted > 2*want {
			t.Errorf("of %d blocks %d are waited for", want, counted)
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
