package dtxn

import (
	"errors"
	"testing"

	"tansy/disk"
)

// A read that fails says which block, and why.
func TestReadErrorNamesTheBlock(t *testing.T) {
	boom := errors.New("boom")
	f := disk.NewFault(disk.NewMem((memLog+size)*disk.BlockSize), 1, nil)
	s, err := newOn(f, layout)
	if err != nil {
		t.Fatal(err)
	}
	f.SetPlan(disk.FailFrom(1, boom, disk.Read))
	err = s.Run(false, true, func(x *Txn) error {
		x.ReadBlock(data+7, false)
		return nil
	})
	var e *disk.Error
	if !errors.Is(err, ErrIO) || !errors.Is(err, boom) || !errors.As(err, &e) || e.Block != memLog+data+7 {
		t.Error(err)
	}
	if _, err := s.Free(Blocks); !errors.Is(err, ErrIO) || !errors.Is(err, boom) {
		t.Error(err)
	}
	f.SetPlan(nil)
	must(t, s.Close())
}
