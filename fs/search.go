package fs

import (
	"tansy/internal/gen/fs/exec/exec"
	"tansy/internal/gen/fs/exec/localcalls"
)

// What an operation does itself about blocks that wait to be freed, which is else the background's.

// shrink is a step of freeing what was cut off the file of call c earlier, so that it can grow again, in a transaction
// of its own; it returns what that was answered with, and whether nothing is left. Other operations go on meanwhile,
// and the freer may be at the same file. However much there is (some 3 GiB in a second), no client is told to come
// again: many programs take that for an error.
func (v *FS) shrink(c *call) (status uint32, done bool) {
	var step call
	step.Make(exec.FREE(), 0, v.deferred, 0)
	v.attempt(&step, func(t *txn) {
		done = localcalls.ShrinkSome(&step.Call, t, v.dirs, c.Ino, v.freeStep)
	})
	return step.Status, done
}

// maxHelp bounds the steps that an operation helps with at a time, all blocks there
// are: then others have taken what was freed, and it gives up.
const maxHelp = 1 << 40

// A search is for room for a call that found none. What waits to be freed is room, too; each time more of it is.
type search struct {
	v              *FS
	steps          int
	refused, given uint64 // by the host, and to it
}

func (v *FS) search() search { return search{v, 8, v.sys.Refused(), 0} }

// found tells that there may be more now than the call could find. freed: the steps of the freer before.
func (s *search) found(freed uint64) bool {
	v := s.v
	if s.steps <= maxHelp {
		v.free.Help(s.steps)
		if v.free.Steps() != freed { // here, or in the background
			s.steps *= 2
			return true
		}
	}
	// Room that was given back may be the host's only after a barrier.
	if now := v.sys.Discarded(); now != s.given && v.sys.Flush() == nil {
		s.given = now
		return true
	}
	if v.sys.Refused() != s.refused {
		v.hostLog.full()
	}
	return false
}
