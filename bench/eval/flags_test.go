//go:build linux

package eval

import (
	"io"
	"strings"
	"testing"
)

// Numbers and times that nothing can be measured with are told, and not tried.
func TestFlags(t *testing.T) {
	for _, args := range []string{"-time 0", "-time -1s", "-time 90h", "-rounds 0", "-rounds 100000", "-clients 0",
		"-clients 1,100000", "-size 1000", "-file 0", "-files -1", "-run nothing", "-peers nobody", "more"} {
		if _, err := parseFlags(strings.Fields(args), io.Discard); err == nil {
			t.Errorf("%s is taken", args)
		}
	}
	if _, err := parseFlags([]string{"-quick"}, io.Discard); err != nil {
		t.Error(err)
	}
}
