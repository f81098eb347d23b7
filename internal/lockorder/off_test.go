//go:build !race && !lockorder

package lockorder

import (
	"sync"
	"testing"
	"unsafe"
)

// TestFree: without the check, locks have the size of those of package sync, and the rest has none.
func TestFree(t *testing.T) {
	if unsafe.Sizeof(Mutex[Journal]{}) != unsafe.Sizeof(sync.Mutex{}) || unsafe.Sizeof(RWMutex[Gates]{}) != unsafe.Sizeof(sync.RWMutex{}) || unsafe.Sizeof(Held[Objects]{}) != 0 {
		t.Error("the check takes room although it is off")
	}
}

func BenchmarkLock(b *testing.B) {
	var j Mutex[Journal]
	n := 0
	for range b.N {
		j.Lock()
		n++
		j.Unlock()
	}
}

func BenchmarkSyncLock(b *testing.B) {
	var j sync.Mutex
	n := 0
	for range b.N {
		j.Lock()
		n++
		j.Unlock()
	}
}

func BenchmarkWait(b *testing.B) {
	for range b.N {
		Wait[Device]()
	}
}
