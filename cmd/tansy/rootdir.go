package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	tansyfs "tansy/fs"
)

// rootDir are the flags about the root directory of a new volume.
type rootDir struct {
	owner owner
	mode  mode
}

// flags adds the flags to f. when says in which case they matter.
func (r *rootDir) flags(f *flag.FlagSet, when string) {
	f.Var(&r.owner, "owner", "owner and group of the root directory"+when+", as `UID:GID` (default: the user and group who make it; 0:0 for root)")
	f.Var(&r.mode, "mode", "permission bits of the root directory"+when+", in `OCTAL` (default 0755)")
}

// apply sets them in o.
func (r *rootDir) apply(o *tansyfs.MkfsOptions) {
	by := r.owner
	if uid := os.Geteuid(); !by.given && uid > 0 {
		by.uid, by.gid = uint32(uid), uint32(os.Getegid())
	}
	o.RootUID, o.RootGID, o.RootMode = by.uid, by.gid, uint32(r.mode)
}

// owner is a flag value: numbers of a user and a group.
type owner struct {
	uid, gid uint32
	given    bool
}

func (o *owner) String() string {
	if !o.given {
		return ""
	}
	return fmt.Sprintf("%d:%d", o.uid, o.gid)
}

func (o *owner) Set(text string) error {
	user, group, _ := strings.Cut(text, ":")
	uid, err1 := strconv.ParseUint(user, 10, 32)
	gid, err2 := strconv.ParseUint(group, 10, 32)
	if err1 != nil || err2 != nil || uid == math.MaxUint32 || gid == math.MaxUint32 { // those mean nobody and no group
		return fmt.Errorf("%q is no owner: give the numbers of a user and a group, such as 1000:1000", text)
	}
	*o = owner{uint32(uid), uint32(gid), true}
	return nil
}

// mode is a flag value: permission bits; 0 if it is not given.
type mode uint32

func (m *mode) String() string {
	if *m == 0 {
		return ""
	}
	return fmt.Sprintf("%04o", uint32(*m))
}

func (m *mode) Set(text string) error {
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || n == 0 || n > 0o7777 {
		return fmt.Errorf("%q is no mode: give permission bits in octal, such as 0755 or 1777", text)
	}
	*m = mode(n)
	return nil
}
