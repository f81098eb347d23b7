package clock

import (
	"testing"

	"golang.org/x/sys/unix"
)

// The clock counts the time in which the machine slept: it is the kernel's clock of that kind.
func TestWakes(t *testing.T) {
	var before, after unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &before); err != nil {
		t.Skipf("the system has no such clock: %v", err)
	}
	at := New().Now()
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &after); err != nil {
		t.Fatal(err)
	}
	if at < uint64(before.Nano()) || uint64(after.Nano()) < at {
		t.Errorf("%d, and the kernel says something between %d and %d", at, before.Nano(), after.Nano())
	}
}
