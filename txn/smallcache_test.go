package txn_test

import (
	"log/slog"
	"testing"
	"time"

	"tansy/disk"
	"tansy/journal"
	"tansy/txn"
)

// A transaction that writes parts of as many blocks as it can needs them in memory all at
// once when it commits, also with the least cache.
func TestPartsOfManyBlocks(t *testing.T) {
	d := disk.NewMem(size)
	if err := journal.Format(d, params); err != nil {
		t.Fatal(err)
	}
	j, err := journal.Open(d, params, journal.Options{CacheBytes: 1, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := txn.Open(j, txn.Region{Start: blocks, Count: txn.MaxBlocks, Kind: txn.Bits})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		done <- s.Run(true, func(x *txn.Txn) error {
			for b := range uint64(txn.MaxBlocks) {
				if err := x.WriteBit(txn.Addr{Block: blocks + b, Index: int(b)}, true); err != nil {
					return err
				}
			}
			return nil
		})
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(time.Minute): // it takes far less than a second
		t.Fatal("the commit does not come to an end")
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}
