// Package stamps is the Go behind verified/trusted/stamps.s.dfy: the time of day, for the stamps of files.
package stamps

import (
	"time"

	"tansy/internal/runtime/dtxn"
)

// Now is what the clock of t's volume says now. A stamp is that if it is after the file's ctime, and t may have waited
// for the file: so an earlier time would not do.
func Now(t *dtxn.Txn) (seconds uint64, nanoseconds uint32) { return Of(t.Time()) }

// Of is a time as the file system has it. Its times begin with 1970: a clock from before shows that.
func Of(t time.Time) (seconds uint64, nanoseconds uint32) {
	if t.Unix() < 0 {
		return 0, 0
	}
	return uint64(t.Unix()), uint32(t.Nanosecond())
}
