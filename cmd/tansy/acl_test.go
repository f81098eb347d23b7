package main

import (
	"errors"
	"path/filepath"
	"testing"

	"tansy/nfs/nfs3"
	"tansy/nfs/oncrpc"
	"tansy/test/kit/nfsclient"
)

// Clients see access lists, unless --no-acl keeps them from it.
func TestNoACL(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		flags []string
		want  oncrpc.Accept
	}{{nil, oncrpc.Success}, {[]string{"--no-acl"}, oncrpc.ProgUnavail}} {
		p := startServe(t, append([]string{"--volume", filepath.Join(t.TempDir(), "v.img"), "--size", "8M"}, x.flags...)...)
		c, err := nfsclient.Dial(p.addr)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Call(nfs3.ACLProgram, nfs3.ACLVersion, nfs3.ProcACLNull, nil, nil)
		c.Close()
		got := oncrpc.Success
		var refused *nfsclient.RPCError
		if errors.As(err, &refused) {
			got = oncrpc.Accept(refused.Stat)
		} else if err != nil {
			t.Error(err)
		}
		if got != x.want {
			t.Errorf("%v: %v, want %v", x.flags, got, x.want)
		}
	}
}
