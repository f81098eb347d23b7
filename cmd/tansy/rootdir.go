package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/user"
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
	f.Var(&r.owner, "owner", "owner and group of the root directory"+when+
		", as `USER:GROUP`, by names or numbers (default: the user and group who make it; 0:0 for root)")
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
	name, group, _ := strings.Cut(text, ":")
	u, known := findUser(name)
	uid, err := id(name)
	if err != nil && known {
		uid, err = id(u.Uid)
	}
	if err != nil {
		return fmt.Errorf("this machine knows no user %q: give the numbers of a user and a group, such as 1000:1000", name)
	}
	gid := uint32(0)
	switch g, e := user.LookupGroup(group); {
	case group == "" && known:
		gid, err = id(u.Gid)
	case group == "":
		return errors.New("the group is missing: give the numbers of a user and a group, such as 1000:1000")
	case e == nil:
		gid, err = id(g.Gid)
	default:
		gid, err = id(group)
	}
	if err != nil {
		return fmt.Errorf("this machine knows no group %q: give the numbers of a user and a group, such as 1000:1000", group)
	}
	*o = owner{uid, gid, true}
	return nil
}

// findUser returns the user of a name, or of a number.
func findUser(name string) (*user.User, bool) {
	u, err := user.Lookup(name)
	if _, bad := id(name); err != nil && bad == nil { // of a number that is too large the system takes a part
		u, err = user.LookupId(name)
	}
	return u, err == nil
}

// id is the number of a user or a group. The highest one means nobody and no group.
func id(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err == nil && n == math.MaxUint32 {
		err = errors.New("nobody's number")
	}
	return uint32(n), err
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
