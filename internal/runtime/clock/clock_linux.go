package clock

import "golang.org/x/sys/unix"

// elapsed is the time in nanoseconds since the machine was started, with that in which it slept.
var elapsed = chosen()

// chosen is the first clock that the system has: those of one kind are never mixed.
func chosen() func() uint64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return monotonic
	}
	return boottime
}

// boottime is the time by CLOCK_BOOTTIME.
func boottime() uint64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic("clock: the time since the start of the machine: " + err.Error())
	}
	return uint64(t.Nano())
}
