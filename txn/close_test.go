package txn_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"tansy/disk"
	"tansy/internal/lockorder"
	"tansy/journal"
	"tansy/txn"
)

// format makes a journal on d, and opens it.
func format(t *testing.T, d disk.Disk) (*journal.Journal, *txn.System) {
	t.Helper()
	if err := journal.Format(d, params); err != nil {
		t.Fatal(err)
	}
	return reopen(t, d)
}

func reopen(t *testing.T, d disk.Disk) (*journal.Journal, *txn.System) {
	t.Helper()
	j, s, err := open(d)
	if err != nil {
		t.Fatal(err)
	}
	return j, s
}

// add adds 1 to a counter, and returns what it is then.
func add(s *txn.System, i int, stable bool) (n uint64, err error) {
	err = s.Run(stable, func(x *txn.Txn) error {
		if n, err = get(x, counter(i), true); err != nil {
			return err
		}
		n++
		return put(x, counter(i), n)
	})
	return n, err
}

// read is a counter.
func read(t *testing.T, s *txn.System, i int) (n uint64) {
	t.Helper()
	if err := s.View(func(x *txn.Txn) (err error) { n, err = get(x, counter(i), false); return err }); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestClosed: after the journal is closed every call fails with ErrClosed, and takes no effect, neither on the journal
// nor on one that is opened on the same device; what that one acknowledges is there after a crash.
func TestClosed(t *testing.T) {
	d := disk.NewMem(size * disk.BlockSize)
	j, s := format(t, d)
	if n, err := add(s, 0, true); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	open := s.Begin() // and not ended
	if err := put(open, counter(1), 7); err != nil {
		t.Fatal(err)
	}
	idle := s.Begin()
	for range 2 {
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	nothing := func(*txn.Txn) error { return nil }
	late := s.Begin()
	calls := map[string]func() error{
		"Open":              func() error { _, err := txn.Open(j); return err },
		"Run":               func() error { _, err := add(s, 0, true); return err },
		"Run, unstable":     func() error { _, err := add(s, 0, false); return err },
		"Run of nothing":    func() error { return s.Run(true, nothing) },
		"View":              func() error { return s.View(nothing) },
		"Flush":             s.Flush,
		"Read":              func() error { _, err := late.Read(counter(0)); return err },
		"ReadForUpdate":     func() error { _, err := late.ReadForUpdate(counter(0)); return err },
		"Write":             func() error { return put(late, counter(0), 9) },
		"ReadBit":           func() error { _, err := late.ReadBit(txn.Addr{Block: bits}); return err },
		"WriteBit":          func() error { return late.WriteBit(txn.Addr{Block: bits}, true) },
		"Commit":            func() error { return late.Commit(true) },
		"Write of an open":  func() error { return put(open, counter(1), 8) },
		"Commit of an open": func() error { return open.Commit(true) },
		"Commit of an idle": func() error { return idle.Commit(false) },
		"Commit of another": func() error { return s.Begin().Commit(true) },
	}
	refused := func() {
		t.Helper()
		for name, call := range calls {
			for range 20 { // more than a group takes
				if err := call(); !errors.Is(err, txn.ErrClosed) || !errors.Is(err, journal.ErrClosed) {
					t.Fatalf("%s: %v", name, err)
				}
			}
		}
	}
	refused()
	j2, s2 := reopen(t, d)
	for want := uint64(2); want < 10; want++ {
		if n, err := add(s2, 0, true); n != want || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
		refused()
	}
	crashed := disk.NewMem(size * disk.BlockSize)
	for a := range uint64(size) {
		b := [][]byte{make([]byte, disk.BlockSize)}
		if err := errors.Join(d.ReadAt(a, b), crashed.WriteAt(a, b)); err != nil {
			t.Fatal(err)
		}
	}
	j3, s3 := reopen(t, crashed)
	if a, b := read(t, s3, 0), read(t, s3, 1); a != 9 || b != 0 {
		t.Errorf("after a crash: %d and %d", a, b)
	}
	for _, x := range []*txn.Txn{late, open, idle} {
		x.Abort()
	}
	for _, j := range []*journal.Journal{j2, j3} {
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCloseRace: transactions that race with Close end, and none says that it has committed what is not there
// afterwards; nobody hangs for what a transaction has locked that nobody ends.
func TestCloseRace(t *testing.T) {
	for round := range 40 {
		d := disk.NewMem(size * disk.BlockSize)
		j, s := format(t, d)
		abandoned := s.Begin()
		if err := put(abandoned, counter(70), 1); err != nil {
			t.Fatal(err)
		}
		const workers = 6
		var last [workers]uint64
		var all, begun sync.WaitGroup
		for w := range workers {
			begun.Add(1)
			all.Go(func() {
				var err error
				for i := 0; err == nil; i++ {
					if i == 10 {
						begun.Done()
					}
					var n uint64
					if w%3 == 0 {
						n, err = begin(s, w, i%2 == 0)
					} else {
						n, err = add(s, w, i%2 == 0)
					}
					if err == nil {
						last[w] = n
					}
				}
				if !errors.Is(err, txn.ErrClosed) {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		all.Go(func() { // waits for who has abandoned it
			if _, err := add(s, 70, true); err != nil && !errors.Is(err, txn.ErrClosed) {
				t.Error(err)
			}
		})
		begun.Wait()
		closed := make(chan error, 1)
		go func() { closed <- j.Close(); all.Wait(); close(closed) }()
		late := time.After(time.Minute) // it takes milliseconds
		for range 2 {
			select {
			case err := <-closed:
				if err != nil {
					t.Error(err)
				}
			case <-late:
				t.Fatal("Close, or a call, waits for what nobody ends")
			}
		}
		if err := abandoned.Commit(true); !errors.Is(err, txn.ErrClosed) {
			t.Error(err)
		}
		j, s = reopen(t, d)
		for w := range workers {
			if n := read(t, s, w); n != last[w] {
				t.Errorf("round %d: counter %d is %d, and %d was committed", round, w, n, last[w])
			}
		}
		if n := read(t, s, 70); n > 1 {
			t.Errorf("round %d: %d of a transaction that was not committed", round, n)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// begin is add by hand.
func begin(s *txn.System, i int, stable bool) (uint64, error) {
	x := s.Begin()
	defer x.Abort()
	n, err := get(x, counter(i), true)
	if err == nil {
		err = put(x, counter(i), n+1)
	}
	if err == nil {
		err = x.Commit(stable)
	}
	return n + 1, err
}

// TestWithin: a Run or View within a Run of the same System, and Close in one, end a program that checks the order of
// locks, with a message that says so; one of another System does not.
func TestWithin(t *testing.T) {
	if !lockorder.On {
		t.Skip("only with the race detector, or with the build tag lockorder")
	}
	const how = "TANSY_TEST_WITHIN"
	within := map[string]string{ // and what is said
		"Run":   "a transaction is run within another one of the same goroutine",
		"View":  "a transaction is run within another one of the same goroutine",
		"Close": "a journal is closed within a transaction of the same goroutine",
		"other": "",
	}
	what := os.Getenv(how)
	if what == "" {
		for what, want := range within {
			c := exec.Command(os.Args[0], "-test.run=^TestWithin$", "-test.timeout=1m")
			c.Env = append(os.Environ(), how+"="+what)
			out, err := c.CombinedOutput()
			_, ended := err.(*exec.ExitError)
			found := ended && strings.Contains(string(out), want) && strings.Count(string(out), "close_test.go:") >= 2
			if want == "" && err != nil || want != "" && !found {
				t.Errorf("%s: %v\n%s", what, err, out)
			}
		}
		return
	}
	j, s := format(t, disk.NewMem(size*disk.BlockSize))
	_, other := format(t, disk.NewMem(size*disk.BlockSize))
	nothing := func(*txn.Txn) error { return nil }
	err := s.Run(true, func(x *txn.Txn) error {
		switch what {
		case "Run":
			return s.Run(false, nothing)
		case "View":
			return s.View(nothing)
		case "Close":
			return j.Close()
		case "other":
			return other.View(nothing)
		}
		return fmt.Errorf("%q", what)
	})
	if err != nil {
		t.Fatal(err)
	}
}
