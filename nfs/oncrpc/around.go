package oncrpc

import (
	"os"

	"tansy/internal/lockorder"
)

// around calls a function by way of the network poller of Go's runtime. The scheduler looks at
// that only when no goroutine can run, else every 10 ms. If each turn that ends made a goroutine
// able to run, as busy connections always have another call, the new call of a client that is not
// busy would be seen that late. What is asked for in this way comes when the poller is looked
// at, together with such calls.
type around struct {
	do func()

	mu     lockorder.Mutex[lockorder.Around]
	r, w   *os.File // a pipe, made when it is needed; nil
	failed bool     // the pipe could not be made, or is closed
}

// ask has do called once, or says that it cannot.
func (a *around) ask() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.r == nil && !a.failed {
		var err error
		if a.r, a.w, err = os.Pipe(); err != nil {
			a.failed = true
			return false
		}
		go a.serve(a.r)
	}
	if a.failed {
		return false
	}
	_, err := a.w.Write([]byte{0})
	return err == nil
}

func (a *around) serve(r *os.File) {
	defer r.Close()
	var b [16]byte
	for {
		if _, err := r.Read(b[:]); err != nil {
			return
		}
		a.do()
	}
}

// close closes the pipe. From then on ask says that it cannot.
func (a *around) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed = true
	if a.w != nil {
		a.w.Close()
	}
}
