package repair

import (
	"fmt"

	"tansy/internal/volumeend"
	"tansy/journal"
	"tansy/offline/check"
)

// log makes the log one that recovery accepts.
func (r *run) log() error {
	p := volumeend.Journal(r.sb)
	s, err := journal.NewSurvey(r.layout, p)
	if err != nil {
		return err
	}
	sealed, err := journal.Sealed(r.layout, p)
	if err != nil {
		return err
	}
	if !s.Sound() {
		return r.restart(p, sealed)
	}
	for i, h := range s.Headers {
		if !h.Sound {
			r.did(0, "the header of the log in block %d is restored from that in block %d", h.Block, s.Headers[1-i].Block)
		}
	}
	// Recovery reads every unit: one that cannot be read goes as well.
	damaged, from := false, s.First+uint64(len(s.Groups))
	for _, g := range sealed {
		damaged = damaged || !g.Sealed
	}
	last := s.Last()
	if n := len(s.Log()); n < len(s.Groups) && (s.Groups[n].Err != nil || s.Damaged() != nil) {
		damaged, from = true, s.Groups[n].Number
	}
	if !damaged {
		return nil
	}
	if err := journal.Cut(r.layout, p, from); err != nil {
		return err
	}
	if from == s.First+uint64(len(s.Groups)) {
		r.did(0, "units of the log that cannot be read are emptied: nothing is known to have been in them")
		return nil
	}
	lost := s.Groups[from-s.First:]
	return r.lose(lost, "the log is cut before group %d, which is damaged: "+
		"the last %d group commits (up to %d), each of one or more operations that were acknowledged, are LOST",
		from, last-from+1, last)
}

// restart makes the log empty, of which both headers are lost.
func (r *run) restart(p journal.Params, sealed []journal.Group) error {
	if _, err := journal.Restart(r.layout, p); err != nil {
		return err
	}
	var known []journal.Group
	for _, g := range sealed {
		if g.Sealed {
			known = append(known, g)
		}
	}
	what := "no group is sealed in it"
	if n := len(known); n > 0 {
		what = fmt.Sprintf("it has %d sealed groups, %d to %d, of which some or all may be home",
			n, known[0].Number, known[n-1].Number)
	}
	return r.lose(known, "both headers of the log are lost: "+
		"it is started empty, and everything in it that is not home is LOST (%s); "+
		"the tree of codes is made anew from what is home, "+
		"of which nothing tells any more whether it is what was last written there", what)
}

// lose tells of lost groups, and which files they may have changed, by the state without them.
func (r *run) lose(lost []journal.Group, format string, args ...any) error {
	a := Action{Text: fmt.Sprintf(format, args...)}
	if r.names {
		var blocks []uint64
		unknown := 0
		for _, g := range lost {
			blocks = append(append(blocks, g.Addrs...), g.Direct...)
			if !g.Sealed {
				unknown++
			}
		}
		files, err := check.Whose(r.d, blocks)
		if err != nil {
			return err
		}
		a.Files = files
		if len(files) > 0 {
			a.Text += "; changes of these files may be among them"
		}
		if unknown > 0 {
			a.Text += fmt.Sprintf("; of %d groups it is not known what they changed", unknown)
		}
	}
	r.actions = append(r.actions, a)
	return nil
}
