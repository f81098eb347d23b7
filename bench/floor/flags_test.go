package floor

import (
	"io"
	"strings"
	"testing"
)

// Numbers and times that nothing can be measured with are told, and not tried.
func TestFlags(t *testing.T) {
	for _, args := range []string{
		"-time 0", "-time -1s", "-time 1ns", "-time 90h", "-rounds 0", "-rounds 100000", "-depth 0", "-rpc-depth -1",
		"-file 0", "-entries 10", "-peers 0", "-run nothing", "-record -addr localhost", "more", "-device tape",
		"-record -device zram", "-addr localhost -device zram", "-against old -run removal", "-run files",
	} {
		if _, err := parseFlags(strings.Fields(args), io.Discard); err == nil {
			t.Errorf("%s is taken", args)
		}
	}
	if _, err := parseFlags(strings.Fields("-time 1ms -rounds 1"), io.Discard); err != nil {
		t.Error(err)
	}
}
