//go:build (race || lockorder) && (amd64 || arm64)

package lockorder

// self is this goroutine: where Go's run time has what it knows of it. It is another's when this one has ended, and
// holds nothing.
func self() uintptr
