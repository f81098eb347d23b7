package nfs3

import (
	"reflect"
	"testing"

	"tansy/fs"
	"tansy/oncrpc"
)

// With RootSquash neither user 0 nor group 0 comes through, wherever it stands, and
// all other numbers do. The credentials of a connection are shared: they stay.
func TestCaller(t *testing.T) {
	sys := func(uid, gid uint32, gids ...uint32) *oncrpc.Cred {
		return &oncrpc.Cred{Flavor: oncrpc.AuthSys, IDs: oncrpc.IDs{UID: uid, GID: gid, GIDs: gids}}
	}
	anon := fs.Cred{UID: 100, GID: 200}
	for _, x := range []struct {
		cred            *oncrpc.Cred
		squashed, plain fs.Cred // with RootSquash, and without
	}{
		{&oncrpc.Cred{Flavor: oncrpc.AuthNone}, anon, anon},
		{sys(0, 0), anon, fs.Cred{}},
		{sys(0, 0, 0, 0, 0), fs.Cred{UID: 100, GID: 200, GIDs: []uint32{200, 200, 200}}, fs.Cred{GIDs: []uint32{0, 0, 0}}},
		{sys(0, 5, 6), fs.Cred{UID: 100, GID: 5, GIDs: []uint32{6}}, fs.Cred{GID: 5, GIDs: []uint32{6}}},
		{sys(5, 0, 6), fs.Cred{UID: 5, GID: 200, GIDs: []uint32{6}}, fs.Cred{UID: 5, GIDs: []uint32{6}}},
		{sys(5, 6, 7, 0, 8), fs.Cred{UID: 5, GID: 6, GIDs: []uint32{7, 200, 8}}, fs.Cred{UID: 5, GID: 6, GIDs: []uint32{7, 0, 8}}},
		{sys(5, 6, 7), fs.Cred{UID: 5, GID: 6, GIDs: []uint32{7}}, fs.Cred{UID: 5, GID: 6, GIDs: []uint32{7}}},
	} {
		for range 2 {
			for _, squash := range []bool{true, false} {
				want := x.plain
				if squash {
					want = x.squashed
				}
				s := New(Config{AnonUID: anon.UID, AnonGID: anon.GID, RootSquash: squash})
				if got := s.caller(x.cred); !reflect.DeepEqual(*got, want) {
					t.Errorf("%v, squash %v: %v, want %v", *x.cred, squash, *got, want)
				}
			}
		}
	}
}
