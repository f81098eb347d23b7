package conform

import (
	"strings"
	"testing"
)

// What many checks were skipped for is told once, with their groups; where these are few, they are named. No check, and
// no reason, is left out.
func TestSkippedForOneReason(t *testing.T) {
	skipped := func(group, name, reason string) Result {
		return Result{Check: Check{Group: group, Name: name}, Outcome: Skip, Reason: reason}
	}
	r := Report{Results: []Result{
		skipped("nlm", "a", "no locks"), skipped("link", "x", "no links"), skipped("nlm", "b", "no locks"),
		{Check: Check{Group: "nlm", Name: "passes"}, Outcome: Pass},
		skipped("share", "c", "no locks"), skipped("link", "y", "no links"), skipped("nlm", "d", "no locks"),
		skipped("link", "z", "no links"), skipped("nsm", "e", "no monitor"),
	}}
	var b strings.Builder
	r.WriteText(&b)
	const want = "SKIPPED\n\n4 checks of nlm, share: no locks\n" +
		"link/x: no links\nlink/y: no links\nlink/z: no links\nnsm/e: no monitor\n\n"
	if !strings.HasPrefix(b.String(), want) {
		t.Errorf("got %s", &b)
	}
}
