package main

import (
	"path/filepath"
	"testing"

	"tansy/fs"
	"tansy/nfs/nlm"
	"tansy/nfs/oncrpc"
	"tansy/test/kit/nfsclient"
)

// A client that had a lock when the server was killed reclaims it from the next one, and does not get another before
// the end of the grace period; with --grace 0 it gets what it asks for, and reclaims nothing.
func TestLocksOutlive(t *testing.T) {
	t.Parallel()
	img := filepath.Join(t.TempDir(), "v.img")
	serve := func(flags ...string) *process {
		return startServe(t, append([]string{"--volume", img, "--locks", "--portmapper", "--portmapper-port", "0"},
			flags...)...)
	}
	locks := func(p *process, reclaim bool, want uint32) {
		t.Helper()
		c, err := nfsclient.Mount(p.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		who := &fs.Cred{}
		n, err := c.Create(who, c.Root(), []byte("file"), fs.Unchecked, &fs.SetAttr{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		d, err := c.Call(nlm.Program, 4, nlm.ProcLock, who, func(e *oncrpc.Encoder) {
			e.Opaque(nil)
			e.Bool(false) // do not wait
			e.Bool(true)
			e.Opaque([]byte("client"))
			e.Opaque(c.Raw(n.Handle))
			e.Opaque([]byte("owner"))
			e.Uint32(1)
			e.Uint64(0)
			e.Uint64(0)
			e.Bool(reclaim)
			e.Uint32(1)
		})
		if err != nil {
			t.Fatal(err)
		}
		d.Opaque(64)
		if got := d.Uint32(); got != want {
			t.Errorf("reclaim %v: status %d, want %d", reclaim, got, want)
		}
	}
	p := serve("--size", "8M")
	locks(p, false, nlm.Granted)
	p.cmd.Process.Kill()
	p.wait(t)
	p = serve("--grace", "1h")
	locks(p, false, nlm.DeniedGrace)
	locks(p, true, nlm.Granted)
	p.stop(t)
	p = serve("--grace", "0")
	locks(p, true, nlm.Denied)
	locks(p, false, nlm.Granted)
	p.stop(t)
	p = serve("--read-only", "--grace", "1h")
	p.stop(t)
}
