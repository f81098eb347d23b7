//go:build race

package dbytes

const raceDetector = true
