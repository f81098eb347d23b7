package clock

import "time"

// began is some instant before all readings.
var began = time.Now().Add(-time.Nanosecond)

// monotonic is the time in nanoseconds by Go's clock, which may stand still while the machine sleeps.
func monotonic() uint64 { return uint64(time.Since(began)) }
