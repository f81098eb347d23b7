// Package lists says how long lists in the journal's memory become as they grow: of blocks, and of codes.
package lists

import "slices"

// Short is the length of the shortest lists.
const Short = 8

// Push is append, but a slice that is full grows to the length that Longer says. By a quarter at a time, as append has
// long ones grow, it would leave more than twice as much behind for the garbage collector.
func Push[T any](s []T, x T) []T {
	if n := len(s); n == cap(s) {
		s = slices.Grow(s, Longer(n)-n)
	}
	return append(s, x)
}

// Longer is how long a list of n becomes when it grows: short ones, as most are, to four times that.
func Longer(n int) int {
	if n < 256 {
		return max(Short, 4*n)
	}
	return 2 * n
}
