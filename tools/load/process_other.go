//go:build !linux

package load

import "time"

// serverProcess: other systems do not tell by the same means.
func serverProcess(string) int { return 0 }

// ProcessTime is not known.
func ProcessTime(int) time.Duration { return 0 }
