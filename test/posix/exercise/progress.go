//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// progressStep is after how many operations a process tells the lead so, by a
// byte in a pipe; progressEvery is how often the lead says how many there are.
const (
	progressStep  = 500
	progressEvery = time.Minute
	progressFD    = 3 // of the pipe in the processes
)

// progress counts the bytes of the pipe, and reports until its last writer ends.
func progress(pipe io.Reader, ops int) {
	begin, said := time.Now(), time.Now()
	done := 0
	buf := make([]byte, 64)
	for {
		n, err := pipe.Read(buf)
		done += n * progressStep
		if time.Since(said) >= progressEvery {
			said = time.Now()
			fmt.Fprintf(os.Stderr, "# %d of %d operations in %v\n", done, ops, time.Since(begin).Round(time.Second))
		}
		if err != nil {
			return
		}
	}
}
