// Package locks checks the locks between clients, through crashes: several machines lock bytes of one file at the same
// time, the server ends and starts again in between, and Porcupine looks for an order of all calls, within the times
// they ran, in which the model would have given the same answers.
//
// The model (model_test.go, grace_test.go, call_test.go) is what NLM and NSM have a server know: who has which bytes,
// who waits for some and in which order, reservations, whose address is on the volume, and the grace period. All of it
// is lost with the server but for the addresses. A crash at any operation of the device leaves those on the volume that
// have locks; who had some before may be there. Between calls, the server may learn that a client takes what it was
// offered, and the grace period may end.
//
// Answers count, and so do the server's calls: GRANTED must come where the model has offered the lock, and has to come
// (at the end all clients give all back, and each that waits is told). Who had a lock is told that the server has
// started, and reclaims it then.
//
//	go test ./test/locks                                # some seconds
//	go test ./test/locks -histories 2000                # long runs
//	go test ./test/locks -seed 17 -histories 1          # repeat one
//
// A seed fixes what the clients do, but not how their calls meet: repeat it with -count.
package locks

import (
	"flag"
	"testing"

	"github.com/anishathalye/porcupine"

	"tansy/test/kit/replay"
)

var histories = flag.Int("histories", 0, "number of histories; 0: few enough for a few seconds")

// TestHistories: the model explains each history.
func TestHistories(t *testing.T) {
	seed, n := replay.Seed(t), *histories
	switch {
	case n > 0:
	case testing.Short():
		n = 10
	default:
		n = 60
	}
	undecided, calls := 0, 0
	for i := range uint64(n) {
		h, done := newHistory(t, seed+i)
		err := h.run()
		done()
		if err != nil {
			t.Fatalf("-seed %d: %v", seed+i, err)
		}
		result, err := h.verdict()
		if err != nil {
			t.Fatalf("-seed %d: %v", seed+i, err)
		}
		if result == porcupine.Unknown {
			undecided++
		}
		calls += len(h.ops)
	}
	t.Logf("%d histories, %d calls, all explained", n, calls)
	if undecided > n/100 {
		t.Errorf("%d histories were not decided within %v", undecided, limit)
	}
}
