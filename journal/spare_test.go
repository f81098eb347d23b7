package journal

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"

	"tansy/disk"
)

// Settle brings home what was committed before, while others commit.
func TestSettle(t *testing.T) {
	mem := disk.NewMem(4000 * disk.BlockSize)
	p := Params{Units: 64, Ring: MinRing}
	if err := Format(mem, p); err != nil {
		t.Fatal(err)
	}
	j, err := Open(mem, p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	block := func(v byte) []byte { return bytes.Repeat([]byte{v}, disk.BlockSize) }
	var others sync.WaitGroup
	stop := make(chan struct{})
	others.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := j.Commit([]Write{{p.Home() + 1, block(byte(i))}}, true); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range 50 {
		if err := j.Commit([]Write{{p.Home(), block(byte(i + 1))}}, false); err != nil {
			t.Fatal(err)
		}
		if err := j.Settle(); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, disk.BlockSize)
		if err := mem.ReadAt(p.Home(), [][]byte{got}); err != nil || got[0] != byte(i+1) {
			t.Fatalf("round %d: %d at home, %v", i, got[0], err)
		}
	}
	close(stop)
	others.Wait()
	if at := j.Position(); at.Durable > at.Commits || at.Home > at.Logged || at.Commits == 0 {
		t.Error(at)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	if err := j.Settle(); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// If the device fails, nobody waits for it.
func TestSettleFails(t *testing.T) {
	fault := disk.NewFault(disk.NewMem(4000*disk.BlockSize), 1, nil)
	p := Params{Units: 64, Ring: MinRing}
	if err := Format(fault, p); err != nil {
		t.Fatal(err)
	}
	j, err := Open(fault, p, Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := j.Commit([]Write{{p.Home(), make([]byte, disk.BlockSize)}}, true); err != nil {
		t.Fatal(err)
	}
	fault.SetPlan(disk.FailFrom(0, disk.ErrInjected, disk.Write))
	if err := j.Settle(); !errors.Is(err, disk.ErrInjected) {
		t.Error(err)
	}
}
