package fs

import (
	"reflect"
	"testing"
)

// Who a caller is by each kind of rule. What callers say may be shared: it stays.
func TestSquash(t *testing.T) {
	as := func(uid, gid uint32, gids ...uint32) *Cred { return &Cred{uid, gid, gids} }
	plain := Squash{AnonUID: 100, AnonGID: 200}
	root, all, both := plain, plain, plain
	root.Root, all.All, both.Root, both.All = true, true, true, true
	anon := as(100, 200)
	for _, x := range []struct {
		rule              Squash
		claim, same, want *Cred
	}{
		{plain, nil, nil, anon},
		{root, nil, nil, anon},
		{all, nil, nil, anon},
		{plain, as(0, 0, 0, 0, 0), as(0, 0, 0, 0, 0), as(0, 0, 0, 0, 0)},
		{root, as(0, 0), as(0, 0), anon},
		{root, as(0, 0, 0, 0, 0), as(0, 0, 0, 0, 0), as(100, 200, 200, 200, 200)},
		{root, as(0, 5, 6), as(0, 5, 6), as(100, 5, 6)},
		{root, as(5, 0, 6), as(5, 0, 6), as(5, 200, 6)},
		{root, as(5, 6, 7, 0, 8), as(5, 6, 7, 0, 8), as(5, 6, 7, 200, 8)},
		{root, as(5, 6, 1<<32-2), as(5, 6, 1<<32-2), as(5, 6, 1<<32-2)},
		// 2^32-1 is nobody, whatever the rule, and no group
		{plain, as(NoID, 6, 7), as(NoID, 6, 7), as(100, 6, 7)},
		{plain, as(0, NoID, 7), as(0, NoID, 7), as(0, 200, 7)},
		{plain, as(5, 6, NoID, 0, NoID, 7), as(5, 6, NoID, 0, NoID, 7), as(5, 6, 0, 7)},
		{root, as(NoID, NoID, NoID), as(NoID, NoID, NoID), anon},
		{root, as(5, 6, 0, NoID, 7), as(5, 6, 0, NoID, 7), as(5, 6, 200, 7)},
		{all, as(NoID, 6, NoID), as(NoID, 6, NoID), anon},
		{all, as(5, 6, 7), as(5, 6, 7), anon},
		{both, as(0, 0, 0), as(0, 0, 0), anon},
	} {
		for range 2 {
			if got := x.rule.Caller(x.claim); !reflect.DeepEqual(got, x.want) {
				t.Errorf("%+v, %v: %v, want %v", x.rule, x.claim, got, x.want)
			}
		}
		if !reflect.DeepEqual(x.claim, x.same) {
			t.Errorf("%+v changed %v to %v", x.rule, x.same, x.claim)
		}
	}
}
