package cluster

import (
	"fmt"
	"time"

	"tansy/test/kit/nfsclient"
	"tansy/test/kit/replay"
	"tansy/test/kit/steady"
)

// underLoad has faults happen, each n times or once less, while clients work. takeOver returns when another server
// serves. No client sees an error, and nothing is lost.
func (c *cluster) underLoad(n int, takeOver func(fault)) {
	t := c.t
	t.Helper()
	seed := replay.Seed(t)
	var load []*steady.Client
	var lines []*nfsclient.Hard
	for i := range 4 {
		h := nfsclient.NewHard(c.dial)
		m, err := nfsclient.MountOn(h)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		lines = append(lines, h)
		load = append(load, steady.Start(m, fmt.Sprint("client", i), seed+uint64(i)))
	}
	progress := func() {
		t.Helper()
		for _, l := range load {
			if err := l.Progress(3); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range n {
		progress()
		f := faults[i%len(faults)]
		begin := time.Now()
		takeOver(f)
		served := time.Since(begin)
		progress()
		t.Logf("%s: another server serves after %v, and its clients go on after %v",
			f.what, served.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond))
	}
	calls, made := 0, 0
	var longest time.Duration
	for i, l := range load {
		if err := l.Stop(); err != nil {
			t.Error(err)
		}
		n, pause := l.Calls()
		calls, made, longest = calls+n, made+lines[i].Made(), max(longest, pause)
	}
	t.Logf("%d takeovers: %d calls of %d clients over %d connections, each answered as it must be; the longest took %v",
		n, calls, len(load), made, longest.Round(time.Millisecond))
}
