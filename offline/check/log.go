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
	s, err := journal.NewSurvey(d, p)
	if err != nil {
		c.problem(0, p.Start, "the log cannot be used: %v", err)
		c.logLost = true
		return newView(d, nil)
	}
	c.survey(s)
	snap, err := journal.Inspect(d, p)
	if err != nil {
		at := p.Start
		if e := new(disk.Error); errors.As(err, &e) {
			at = e.Block
		}
		c.problem(0, at, "the log cannot be used: %v", err)
		c.logLost = true
		return newView(d, nil)
	}
	for a := range snap.Blocks {
		if there, _, _ := sb.locate(min(a, sb.size-1)); a >= sb.dataEnd || !there {
			c.problem(0, a, "the log has a block that lies outside of the volume's regions, or is not there yet")
			delete(snap.Blocks, a)
		}
	}
	c.rep.Replayed = len(snap.Blocks)
	v := newView(d, snap.Blocks)
	v.genuine = snap.Genuine
	c.snap = snap
	return v
}

// survey reports what is wrong with the log's parts.
func (c *checker) survey(s *journal.Survey) {
	for i, h := range s.Headers {
		name := [2]string{"the log's header", "the copy of the log's header"}[i]
		switch {
		case h.Err != nil:
			c.unreadable(0, h.Block, h.Err, "%s", name)
		case !h.Sound:
			c.problem(0, h.Block, "%s is damaged", name)
		}
	}
	log := s.Log()
	for _, g := range s.Groups {
		switch {
		case g.Sound:
		case g.Err != nil:
			c.unreadable(0, g.Block, g.Err, "group %d of the log", g.Number)
		case g.Number < s.Durable:
			c.problem(0, g.Block, "group %d of the log is damaged, and groups up to %d behind it were acknowledged",
				g.Number, s.Last())
		}
	}
	if behind := s.Groups[len(log):]; len(behind) > 0 && behind[0].Number >= s.Durable && behind[0].Err == nil {
		if len(behind) == 1 {
			c.note("group %d of the log, the last, is not whole: a crash interrupted its commit, or it is damaged",
				behind[0].Number)
		} else {
			c.note("groups %d to %d of the log, the last, are not all whole: "+
				"a crash interrupted their commits, or they are damaged", behind[0].Number, s.Last())
		}
	}
}

// journal is where the log lies, and the key of its records.
func (s *superblock) journal() journal.Params {
	return journal.Params{Start: 1 + 2*s.pages, Pages: s.pages, Units: s.lognd, Ring: s.lognr, UUID: s.uuid,
		Key:    sha256.Sum256(append(bytes.Clone(s.key[:]), "journal"...)),
		Bitmap: s.bbm, First: s.data0, Limit: s.data1}
}
