//go:build !race

package journal

const few = 1
