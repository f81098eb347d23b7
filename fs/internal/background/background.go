// Package background decides when the work of a volume is done that nobody waits for: blocks are freed, their room is
// given back to the host, and what is damaged is looked for and named. What that work does to the volume is the
// volume's own, in transactions that are verified. Each part says in an interface what it needs of a volume, so that
// each can be read, and tested, alone.
//
//	Scrubber  reads what is in use, at a rate, and checks it
//	Damage    what is done about blocks that are not what was written: the log names them and their files
//	Ahead     reads what will be asked for next, where the device is slow
//	Freer     gives back the blocks of files that were removed or cut
//	Trimmer   gives the room of free blocks back to the host
package background

import "tansy/disk"

const blockSize = disk.BlockSize // bytes

// others are those who use a volume beside the background.
type others interface {
	// OtherCommits is how many commits were theirs. One of the background that is under way may be missing.
	OtherCommits() int64
}

// A commitWatch tells whether others use a volume.
type commitWatch struct{ seen int64 }

// seesOthers tells that they have committed since it was asked last; not for certain, as one commit of the background
// may be under way.
func (w *commitWatch) seesOthers(v others) bool {
	n := v.OtherCommits()
	some := n > w.seen
	w.seen = n
	return some
}
