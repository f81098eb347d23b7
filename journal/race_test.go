//go:build race

package journal

// few is a divisor for the number of random runs: the race detector is slow.
const few = 4
