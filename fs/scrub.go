package fs

import (
	"time"

	"tansy/journal"
)

// ScrubOptions say how a volume is scrubbed: all that is in use is read from the device and checked, beside everything
// else. The zero value is: only when it is asked for.
type ScrubOptions struct {
	Rate  uint64        // bytes per second; 0: no pass but those asked for, at DefaultScrubRate
	Every time.Duration // from the start of a pass to that of the next; 0: DefaultScrubEvery
}

// Defaults of a scrub.
const (
	DefaultScrubRate  = 20 << 20
	DefaultScrubEvery = 7 * 24 * time.Hour
)

// schedule is the rate of passes in bytes per second, and the time from the start of one to that of the next; 0: only
// when asked for.
func (o ScrubOptions) schedule() (rate uint64, every time.Duration) {
	switch {
	case o.Rate == 0:
		return DefaultScrubRate, 0
	case o.Every == 0:
		return o.Rate, DefaultScrubEvery
	}
	return o.Rate, o.Every
}

// ScrubStatus is how a scrub is doing. Times are zero as long as there was none.
type ScrubStatus struct {
	Rate    uint64        // bytes per second
	Every   time.Duration // 0: only when asked for
	Running bool
	Passes  uint64              // that came to their end
	Pass    journal.ScrubCounts // of the pass that runs, or else of the last one
	Last    journal.ScrubCounts // of the last one that came to its end
	Total   uint64              // blocks that the pass will have dealt with, about; 0: not known
	Began   time.Time
	Ended   time.Time // of the last pass that came to its end
	Checked uint64    // blocks that were read and checked since the start, in all passes
	Err     error     // why the last pass did not come to its end
}

// Scrub asks for a pass now, which Running says from then on. If one runs already, that is it; after EndScrubs there is
// none.
func (v *FS) Scrub() { v.scrub.Ask() }

// EndScrubs ends the scrub that runs, and all to come: there is no sense in reading a volume that is not the server's
// any more.
func (v *FS) EndScrubs() { v.scrub.Close() }

// ScrubStatus says how it is doing.
func (v *FS) ScrubStatus() ScrubStatus { return ScrubStatus(v.scrub.Status()) }

// DamagedBlocks is the number of blocks that were found damaged since the volume was opened, by whomever.
func (v *FS) DamagedBlocks() int { return len(v.sys.Damaged()) }
