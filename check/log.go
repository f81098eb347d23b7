package check

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"

	"tansy/disk"
	"tansy/journal"
)

// openLog replays the log in memory, by the journal's own recovery. nil: the
// check cannot go on.
func (c *checker) openLog(d disk.Disk, sb *superblock) (*view, error) {
	p := sb.journal()
	log, err := journal.Inspect(d, p)
	if errors.Is(err, journal.ErrDamaged) || errors.Is(err, journal.ErrParams) {
		c.problem(0, p.Start, "%v", err)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	for a := range log {
		if a >= sb.data1 {
			c.problem(0, a, "the log has a block that lies outside of the volume's regions")
			delete(log, a)
		}
	}
	c.rep.Replayed = len(log)
	return &view{d: d, log: log}, nil
}

// journal is where the log lies, and the key of its records.
func (s *superblock) journal() journal.Params {
	return journal.Params{Start: 1, Units: s.lognd, Ring: s.lognr, UUID: s.uuid,
		Key:    sha256.Sum256(append(bytes.Clone(s.key[:]), "journal"...)),
		Bitmap: s.bbm, First: s.data0, Limit: s.data1}
}
