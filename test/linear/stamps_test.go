package linear

import (
	"fmt"

	"tansy/fs"
	"tansy/fs/model"
)

// stamps are those that one operation gave to files. The reply shows most of them, as the
// ctime of a file after the operation; for the others stand-ins are put, one for each.
type stamps struct {
	call  *call
	shown map[uint64]fs.Time // by inode number
	given []given
}

// given is one stamp, and the ctime that the file had; new files had none.
type given struct{ was, t fs.Time }

func stampsIn(r *reply, c *call) *stamps {
	s := &stamps{call: c, shown: map[uint64]fs.Time{}}
	if r.err != nil {
		return s
	}
	for _, a := range []*fs.Attr{r.node.Dir.After, &r.node.Parent, r.wcc.After, &r.node.Attr, r.wcc2.After, r.attr} {
		if a != nil && a.Type != 0 {
			s.shown[a.Ino] = a.Ctime
		}
	}
	return s
}

// next is model.Options.Stamp.
func (s *stamps) next(h fs.Handle, _, was fs.Time) fs.Time {
	t, ok := s.shown[h.Ino]
	if !ok {
		t = unknownTime(s.call.id)
		t.Nsec = uint32(len(s.given) + 1) // 0 is that of a new file
	}
	s.given = append(s.given, given{was, t})
	return t
}

// check tells if one time, read while the operation ran, explains all stamps that are known. If
// there is one, the least stamp does: it is that time, or was put above it.
func (s *stamps) check() error {
	var now *fs.Time
	for _, g := range s.given {
		if standIn(g.t.Sec) || !s.call.stamped(g.t) && s.call.lifted(g.t) {
			continue
		}
		if !s.call.stamped(g.t) {
			return fmt.Errorf("stamped %s, but the clock went from %d to %d", stamp(g.t), s.call.begun, s.call.ended)
		}
		if now == nil || model.Stamp(*now, g.t) == *now { // g.t is before it
			now = &g.t
		}
	}
	for _, g := range s.given {
		if standIn(g.t.Sec) || standIn(g.was.Sec) {
			continue
		}
		least := g.was // a reading that is not after the ctime
		if now != nil {
			least = *now
		}
		if t := model.Stamp(least, g.was); g.t != t {
			return fmt.Errorf("stamped %s, not %s, where the ctime was %s", stamp(g.t), stamp(t), stamp(g.was))
		}
	}
	return nil
}
