package check

import (
	"bytes"
	"crypto/sha256"
	"errors"

	"tansy/disk"
	"tansy/journal"
)

// openLog replays the log in memory, by the journal's own recovery. If that is not
// possible, c.logLost says so, and the view is that of the blocks at home.
func (c *checker) openLog(d disk.Disk, sb *superblock) *view {
	p := sb.journal()
	log, err := journal.Inspect(d, p)
	if err != nil {
		at := p.Start
		if e := new(disk.Error); errors.As(err, &e) {
			at = e.Block
			c.rep.Unreadable++
		}
		c.problem(0, at, "the log cannot be used: %v", err)
		c.logLost = true
		return newView(d, nil)
	}
	for a := range log {
		if a >= sb.data1 {
			c.problem(0, a, "the log has a block that lies outside of the volume's regions")
			delete(log, a)
		}
	}
	c.rep.Replayed = len(log)
	return newView(d, log)
}

// journal is where the log lies, and the key of its records.
func (s *superblock) journal() journal.Params {
	return journal.Params{Start: 1, Units: s.lognd, Ring: s.lognr, UUID: s.uuid,
		Key:    sha256.Sum256(append(bytes.Clone(s.key[:]), "journal"...)),
		Bitmap: s.bbm, First: s.data0, Limit: s.data1}
}
