package dtxn

import (
	"log/slog"

	"tansy/disk"
	"tansy/internal/gen/txn/places"
	"tansy/journal"
)

// memLog is the number of blocks before those of the volume that NewMem makes.
const memLog = 2048

var memParams = journal.Params{Start: 0, Units: 64, Ring: memLog - 2 - 64*journal.UnitBlocks}

// NewMem returns the transactions of a volume of size zero blocks in memory,
// with a journal outside of it, for tests.
func NewMem(size uint64, l Layout) *System {
	s, err := newOn(disk.NewMem((memLog+size)*disk.BlockSize), l)
	if err != nil {
		panic(err) // memory does not fail
	}
	return s
}

// newOn is NewMem on a device of zeros.
func newOn(d disk.Disk, l Layout) (*System, error) {
	if err := journal.Format(d, memParams); err != nil {
		return nil, err
	}
	return reopen(d, l)
}

// reopen opens what newOn has made.
func reopen(d disk.Disk, l Layout) (*System, error) {
	j, err := journal.Open(d, memParams, journal.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	l.Places = shifted(l.Places)
	s, err := newAt(j, l, memLog)
	if err != nil {
		return nil, err
	}
	s.close = j.Close
	return s, nil
}

// shifted is the places as far from the beginning of the device as the volume is.
func shifted(p *places.Place) *places.Place {
	if p == nil {
		return nil
	}
	return places.Before(memLog+p.Start, memLog+p.End, p.What, shifted(p.Next))
}

// Close closes the journal, if it came with the system.
func (s *System) Close() error { return s.close() }
