package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"tansy/disk"
	"tansy/internal/closing"
)

// openPlain makes a journal for a few blocks, unless there is one, and opens it.
func openPlain(t *testing.T, d disk.Disk, format bool) *Journal {
	t.Helper()
	if format {
		if err := Format(d, plain); err != nil {
			t.Fatal(err)
		}
	}
	j, err := Open(d, plain, Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

var plain = Params{Units: 64, Ring: MinRing}

func numbered(n uint64) []byte {
	b := make([]byte, disk.BlockSize)
	binary.LittleEndian.PutUint64(b, n)
	return b
}

// TestClosed: what begins after Close fails with ErrClosed; Close may be called again, and at the same time.
func TestClosed(t *testing.T) {
	d := disk.NewMem(4000 * disk.BlockSize)
	j := openPlain(t, d, true)
	scrub := Scrub{
		Before: func(context.Context, uint64) error { return nil },
		Found:  func(Finding) {}, Progress: func(ScrubCounts) {},
	}
	calls := map[string]func() error{
		"Commit":   func() error { return j.Commit([]Write{{plain.Home(), numbered(1)}}, true) },
		"unwaited": func() error { return j.Commit([]Write{{plain.Home(), numbered(2)}}, false) },
		"empty":    func() error { return j.Commit(nil, true) },
		"Read":     func() error { return j.Read(plain.Home(), make([]byte, disk.BlockSize)) },
		"Flush":    j.Flush,
		"Settle":   j.Settle,
		"Enter":    j.Enter,
		"Scrub":    func() error { _, err := scrub.Run(context.Background(), j); return err },
	}
	for name, call := range calls {
		if err := call(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	j.Leave()
	for range 2 {
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, call := range calls {
		for range 20 { // more than a group takes
			if err := call(); !errors.Is(err, ErrClosed) {
				t.Fatalf("%s after Close: %v", name, err)
			}
		}
	}
	if err := j.Look(); err != nil {
		t.Error(err)
	}
	if lo, hi := j.Written(plain.Home(), plain.Home()+3); hi < lo {
		t.Error(lo, hi)
	}
}

// TestEmptyCommit: a commit of nothing ends, whether anything was committed before or not.
func TestEmptyCommit(t *testing.T) {
	j := openPlain(t, disk.NewMem(4000*disk.BlockSize), true)
	defer j.Close()
	for range 2 {
		for _, wait := range []bool{true, false, true} {
			if err := j.Commit(nil, wait); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Commit([]Write{{plain.Home(), numbered(1)}}, false); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCloseRefuses: whoever goes past the gate of the calls, to the verified code, commits nothing once that is closed.
func TestCloseRefuses(t *testing.T) {
	d := disk.NewMem(4000 * disk.BlockSize)
	j := openPlain(t, d, true)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	before := j.Position()
	j.closing.calls = closing.New()
	if err := j.Commit([]Write{{plain.Home(), numbered(3)}}, false); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if after := j.Position(); after != before {
		t.Errorf("%v, before %v", after, before)
	}
}

// TestCloseRace: calls that race with Close end, and what they say is durable: also that of a commit that is not waited
// for.
func TestCloseRace(t *testing.T) {
	for range 40 {
		d := disk.NewMem(4000 * disk.BlockSize)
		j := openPlain(t, d, true)
		const workers = 6
		var last [workers]uint64 // that Commit said nil to
		var all, begun sync.WaitGroup
		for w := range uint64(workers) {
			begun.Add(1)
			all.Go(func() {
				for n := uint64(1); ; n++ {
					err := j.Commit([]Write{{plain.Home() + w, numbered(n)}}, (n+w)%3 == 0)
					if errors.Is(err, ErrClosed) {
						break
					}
					if err != nil {
						t.Errorf("under way: %v", err)
						break
					}
					if last[w] = n; n == 10 {
						begun.Done()
					}
				}
				if err := j.Flush(); !errors.Is(err, ErrClosed) {
					t.Errorf("Flush after Close has begun: %v", err)
				}
			})
		}
		begun.Wait()
		for range 2 {
			all.Go(func() {
				if err := j.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		again := openPlain(t, d, false)
		for w := range uint64(workers) {
			b := make([]byte, disk.BlockSize)
			if err := again.Read(plain.Home()+w, b); err != nil {
				t.Fatal(err)
			}
			if n := binary.LittleEndian.Uint64(b); n != last[w] {
				t.Errorf("block %d: %d, last committed %d", w, n, last[w])
			}
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCloseFails: a device that fails while a journal is being closed is the error of each Close, and nobody hangs.
func TestCloseFails(t *testing.T) {
	boom := errors.New("boom")
	fault := disk.NewFault(disk.NewMem(4000*disk.BlockSize), 1, nil)
	j := openPlain(t, fault, true)
	if err := j.Commit([]Write{{plain.Home(), numbered(1)}}, false); err != nil {
		t.Fatal(err)
	}
	fault.SetPlan(disk.FailFrom(1, boom, disk.Barrier))
	for range 2 {
		if err := j.Close(); !errors.Is(err, boom) || !errors.Is(err, ErrReadOnly) {
			t.Error(err)
		}
	}
	if err := j.Commit([]Write{{plain.Home(), numbered(1)}}, false); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}
