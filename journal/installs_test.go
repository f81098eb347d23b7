package journal

import (
	"testing"
	"testing/synctest"

	"tansy/disk"
)

// stuck is a device on which writes home do not end until it is let go.
type stuck struct {
	disk.Disk
	home    uint64
	arrived chan struct{} // closed when one comes
	free    chan struct{}
}

func (d *stuck) WriteAt(a uint64, bufs [][]byte) error {
	if a >= d.home {
		select {
		case <-d.arrived:
		default:
			close(d.arrived)
		}
		<-d.free
	}
	return d.Disk.WriteAt(a, bufs)
}

// An installation begins when half of the log's units, or of its ring, are used, though few blocks wait for it; and
// while it runs there is room for as much again: no commit waits for it.
func TestInstallsBeforeTheLogIsFull(t *testing.T) {
	for _, c := range []struct {
		name           string
		blocks, groups uint64 // blocks of a group; how many groups half of the log takes
	}{
		{"units", 1, 20},
		{"ring", 100, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := Params{Units: 40, Ring: 1000, Key: [32]byte{7}}
				d := &stuck{disk.NewMem((p.Home() + 200) * disk.BlockSize), p.Home(), make(chan struct{}), make(chan struct{})}
				if err := Format(d.Disk, p); err != nil {
					t.Fatal(err)
				}
				j, err := Open(d, p, Options{Log: quiet.Log, PinnedBytes: 1 << 30})
				if err != nil {
					t.Fatal(err)
				}
				var ws []Write
				for a := range c.blocks {
					ws = append(ws, Write{p.Home() + a, contents(a)})
				}
				for range c.groups {
					if err := j.Commit(ws, true); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				select {
				case <-d.arrived:
				default:
					t.Error("half of the log is used, and no installation has begun")
				}
				for range c.groups - 1 { // the clock stands still while one of these can go on: nothing else starts an installation
					if err := j.Commit(ws, true); err != nil {
						t.Fatal(err)
					}
				}
				if n := j.Stats().Installs; n != 0 {
					t.Errorf("%d installations, and one was to be running", n)
				}
				close(d.free)
				if err := j.Close(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}
