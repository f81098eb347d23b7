package txn_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"tansy/disk"
	"tansy/journal"
	"tansy/txn"
)

// openSmall returns transactions over bits in n blocks, with the least cache there is.
func openSmall(t *testing.T, n uint64) *txn.System {
	d := disk.NewMem((blocks + n) * disk.BlockSize)
	if err := journal.Format(d, params); err != nil {
		t.Fatal(err)
	}
	j, err := journal.Open(d, params, journal.Options{CacheBytes: 1, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	s, err := txn.Open(j, txn.Region{Start: blocks, Count: n, Kind: txn.Bits})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// setBits sets a bit in each of n blocks, in one transaction.
func setBits(s *txn.System, from, n uint64) error {
	return s.Run(true, func(x *txn.Txn) error {
		for b := from; b < from+n; b++ {
			if err := x.WriteBit(txn.Addr{Block: blocks + b, Index: int(b)}, true); err != nil {
				return err
			}
		}
		return nil
	})
}

// Transactions that write parts of as many blocks as they can need them in memory all at
// once when they commit, also with the least cache, and when there are several of them.
func TestPartsOfManyBlocks(t *testing.T) {
	const clients = 4
	s := openSmall(t, clients*txn.MaxBlocks)
	done := make(chan error, clients)
	for c := range uint64(clients) {
		go func() { done <- setBits(s, c*txn.MaxBlocks, txn.MaxBlocks) }()
	}
	late := time.After(2 * time.Minute) // it takes a second or so
	for range clients {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		case <-late:
			t.Fatal("the commits do not come to an end")
		}
	}
}

// Parts of more blocks than a transaction can write are too many, even if they are more
// than the cache can hold.
func TestPartsOfTooManyBlocks(t *testing.T) {
	s := openSmall(t, 2000)
	done := make(chan error, 1)
	for _, n := range []uint64{txn.MaxBlocks + 1, 2000} {
		go func() { done <- setBits(s, 0, n) }()
		select {
		case err := <-done:
			if !errors.Is(err, txn.ErrTooLarge) {
				t.Errorf("error %v, want ErrTooLarge", err)
			}
		case <-time.After(time.Minute):
			t.Fatal("the commit does not come to an end")
		}
	}
	if err := setBits(s, 0, 1); err != nil { // the locks are free again
		t.Error(err)
	}
}
