package main

import (
	"bytes"
	"strings"
	"testing"
)

// Each measurement is named by the help, and a wrong one is told.
func TestCommands(t *testing.T) {
	var said bytes.Buffer
	if code := run([]string{"--help"}, &said); code != 0 {
		t.Errorf("--help: exit code %d", code)
	}
	for _, m := range measurements {
		if !strings.Contains(said.String(), "  "+m.name) {
			t.Errorf("--help does not name %s:\n%s", m.name, &said)
		}
		if code := m.run([]string{"-no-such-flag"}); code != 2 {
			t.Errorf("%s with a wrong flag: exit code %d, want 2", m.name, code)
		}
		if code := m.run([]string{"-run", "nothing"}); code != 2 {
			t.Errorf("%s with a wrong workload: exit code %d, want 2", m.name, code)
		}
	}
	said.Reset()
	if code := run([]string{"nothing"}, &said); code != 2 || !strings.Contains(said.String(), `"nothing"`) {
		t.Errorf("a measurement that is not there: exit code %d, %q", code, &said)
	}
}
