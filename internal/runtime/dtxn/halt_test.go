package dtxn

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"tansy/internal/gen/txn/txnm"
	"tansy/internal/runtime/dbytes"
)

// TestHalt: the process ends if the verified code fails at the end of a transaction, though somebody recovers from
// panics; when it fails before, in the work, the locks are given back, and others go on.
func TestHalt(t *testing.T) {
	const how = "TANSY_TEST_HALT"
	if os.Getenv(how) == "" {
		c := exec.Command(os.Args[0], "-test.run=^TestHalt$", "-test.timeout=1m")
		c.Env = append(os.Environ(), how+"=1")
		out, err := c.CombinedOutput()
		if _, ended := err.(*exec.ExitError); !ended || !strings.Contains(string(out), "its locks may be held: out of range") || strings.Contains(string(out), "went on") {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	s := newSystem(t)
	perform := func(work func(x *Txn), end func()) {
		defer func() { recover() }()
		s.Perform(false, func(_ *txnm.Txn, w *Txn) (st uint32) {
			w.Do(func(x *Txn) {
				x.WriteBlock(data, dbytes.NewBytes(4096))
				work(x)
			})
			end()
			return 0
		})
	}
	perform(func(*Txn) { panic("in the work") }, func() {})
	if n := s.held(); n != 0 {
		t.Fatalf("%d locks are held when the work has failed", n)
	}
	perform(func(*Txn) {}, func() { panic("out of range") })
	t.Fatal("it went on")
}
