//go:build !linux

package clock

// elapsed is the time in nanoseconds.
var elapsed = monotonic
