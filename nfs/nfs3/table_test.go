package nfs3

import (
	"slices"
	"testing"
)

// TestChanges: which procedures change something, or wait as those do (RFC 1813, 3.3); what is told of them is what
// keeps one host from the locks and commits of the others.
func TestChanges(t *testing.T) {
	changing := []string{"SETATTR", "WRITE", "CREATE", "MKDIR", "SYMLINK", "MKNOD", "REMOVE", "RMDIR", "RENAME",
		"LINK", "COMMIT", "SETACL"}
	s := New(Config{})
	lists, _ := s.ACLProgram()
	for _, p := range append(s.Program().Procs, lists.Procs...) {
		if want := slices.Contains(changing, p.Name); p.Changes != want {
			t.Errorf("%s: %v, want %v", p.Name, p.Changes, want)
		}
		if p.Changes && p.Inline {
			t.Errorf("%s would be carried out by the goroutine that reads", p.Name)
		}
	}
}
