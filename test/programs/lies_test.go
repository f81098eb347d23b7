//go:build linux

package programs

import (
	"errors"
	"testing"

	"tansy/disk"
	"tansy/test/kit/mounttest"
)

// deaf is a device whose barriers do nothing.
type deaf struct{ *disk.Sim }

func (d deaf) WriteThrough(a uint64, bufs [][]byte) error { return d.WriteAt(a, bufs) }

func (d deaf) Barrier() error { return nil }

// hasty is a device that has its barriers, but answers writes that are to be durable by themselves (FUA) before they
// are.
type hasty struct{ *disk.Sim }

func (h hasty) WriteThrough(a uint64, bufs [][]byte) error { return h.WriteAt(a, bufs) }

// Faults that are planted below and above the volume are found.
func TestLies(t *testing.T) {
	bin := mounttest.Build(t)
	sloppy := func(t *testing.T, seed uint64) func() program {
		newProgram := newSqlite(t, seed)
		return func() program {
			p := newProgram().(*sqlite)
			p.synchronous = "off"
			return p
		}
	}
	honest := func(d *disk.Sim) disk.Disk { return d }
	deaf := func(d *disk.Sim) disk.Disk { return deaf{d} }
	hasty := func(d *disk.Sim) disk.Disk { return hasty{d} }
	for what, lie := range map[string]struct {
		prepared func(*testing.T, uint64) func() program
		device   func(*disk.Sim) disk.Disk
	}{
		"no barriers":             {newBbolt, deaf},
		"FUA does nothing":        {newMaildir, hasty},
		"SQLite without barriers": {sloppy, honest},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := newCutting(t)
			c := start(t, bin, lie.prepared(t, *seed)(), s, false)
			s.as(lie.device)
			const most = 30
			for round := range most {
				err := c.round(round)
				if errors.Is(err, errEarly) {
					t.Fatalf("-seed %d: %v", *seed, err)
				}
				if err != nil {
					t.Logf("round %d: %.500s", round, err.Error())
					return
				}
			}
			t.Errorf("%d rounds have not found it, -seed %d", most, *seed)
		})
	}
}
