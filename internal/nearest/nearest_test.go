package nearest

import (
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	words := []string{"serve", "mount", "umount", "mkfs", "check", "repair", "scrub", "top", "man",
		"max-calls", "max-connections", "max-connections-per-host"}
	for word, want := range map[string]string{
		"srve": "serve", "server": "serve", "sevre": "serve", "unmount": "umount", "muont": "mount",
		"mkf": "mkfs", "mkfss": "mkfs", "chekc": "check", "rep": "repair", "tp": "top", "to": "top",
		"max-cals": "max-calls", "max-call": "max-calls", "max-conections": "max-connections",
		"": "", "x": "", "s": "", "ls": "", "max": "man", "nothing": "", "volume": "", "max-": "",
		strings.Repeat("serve", 100): "",
	} {
		if got := Of(word, words); got != want {
			t.Errorf("%.20q is like %q, want %q", word, got, want)
		}
	}
	for _, x := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"", "abc", 3}, {"abc", "acb", 1}, {"abc", "abd", 1}, {"kitten", "sitting", 3}} {
		if got := distance(x.a, x.b); got != x.want {
			t.Errorf("from %q to %q it is %d, want %d", x.a, x.b, got, x.want)
		}
	}
}
