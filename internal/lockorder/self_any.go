//go:build (race || lockorder) && !amd64 && !arm64

package lockorder

import (
	"bytes"
	"runtime"
	"strconv"
)

// self is the number of this goroutine.
func self() uintptr {
	var b [32]byte
	s := bytes.TrimPrefix(b[:runtime.Stack(b[:], false)], []byte("goroutine "))
	n, err := strconv.ParseUint(string(s[:bytes.IndexByte(s, ' ')]), 10, 64)
	if err != nil {
		panic(err)
	}
	return uintptr(n)
}
