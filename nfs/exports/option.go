package exports

import (
	"fmt"
	"strconv"
	"strings"

	"tansy/internal/nearest"
)

// option applies one option.
func (r *Rule) option(word string) error {
	switch word {
	case "", "sync": // what Tansy does anyway
		return nil
	case "ro", "rw":
		r.ReadOnly = word == "ro"
		return nil
	case "secure", "insecure":
		r.Secure = word == "secure"
		return nil
	case "root_squash", "no_root_squash":
		r.Root = word == "root_squash"
		return nil
	case "all_squash", "no_all_squash":
		r.All = word == "all_squash"
		return nil
	}
	switch name, value, has := strings.Cut(word, "="); name {
	case "anonuid", "anongid":
		n, err := strconv.ParseUint(value, 10, 32)
		if !has || err != nil || n == 1<<32-1 {
			return fmt.Errorf("%s: give a number from 0 to 4294967294, such as %s=%d", word, name, Anonymous)
		}
		if name == "anonuid" {
			r.AnonUID = uint32(n)
		} else {
			r.AnonGID = uint32(n)
		}
		return nil
	case "xprtsec":
		var err error
		r.Transports, err = ParseTransports(value)
		return err
	}
	if idleOption(word) != "" {
		return nil
	}
	if name, _, _ := strings.Cut(word, "="); refused[name] != "" {
		return fmt.Errorf("%s: %s", word, refused[name])
	}
	guess := ""
	if n := nearest.Of(word, known); n != "" {
		guess = fmt.Sprintf(": did you mean %s?", n)
	}
	return fmt.Errorf("unknown option %q%s (there are %s; tansy exports --help)", word, guess, strings.Join(known, ", "))
}

// known are the options that say something.
var known = []string{"ro", "rw", "root_squash", "no_root_squash", "all_squash", "no_all_squash", "anonuid=", "anongid=",
	"secure", "insecure", "sync", "xprtsec="}

// idle are options of exports(5) that change nothing here, and why. Who asks for one of them gets no less than with
// the kernel's server.
var idle = map[string]string{
	"async":            "a stable operation is answered when it is durable, as with sync",
	"sec=sys":          "there are AUTH_SYS and AUTH_NONE alone",
	"crossmnt":         noMounts,
	"nocrossmnt":       noMounts,
	"hide":             noMounts,
	"nohide":           noMounts,
	"wdelay":           "commits are shared by those who wait for one, without a delay",
	"no_wdelay":        "commits are shared by those who wait for one, without a delay",
	"acl":              "clients see and set ACLs, but for serve --no-acl",
	"no_acl":           "clients see and set ACLs, but for serve --no-acl",
	"subtree_check":    "handles are sealed for their export, and nobody can make one of a file outside",
	"no_subtree_check": "handles are sealed for their export, and nobody can make one of a file outside",
	"secure_locks":     noLocks,
	"insecure_locks":   noLocks,
	"auth_nlm":         noLocks,
	"no_auth_nlm":      noLocks,
	"pnfs":             onlyVersion3,
	"no_pnfs":          onlyVersion3,
	"security_label":   onlyVersion3,
}

const (
	noMounts     = "nothing is mounted below a directory of a volume"
	noLocks      = "there is no lock protocol"
	onlyVersion3 = "the option is of NFSv4"
)

// refused are options of exports(5) that would promise what is not kept, and why. With them the kernel's server lets
// fewer in, or sends them elsewhere.
var refused = map[string]string{
	"sec":        "there is no Kerberos, and whoever calls can claim any user: remove the option, or give sec=sys",
	"mountpoint": noMountpoint,
	"mp":         noMountpoint,
	"refer":      "there are no referrals, which are of NFSv4",
	"replicas":   "there are no replicas, which are of NFSv4",
}

const noMountpoint = "an export is a directory of a volume, and never a mount point: remove the option"

// idleOption is the warning about an option that changes nothing; "" for any other.
func idleOption(word string) string {
	why := idle[word]
	if strings.HasPrefix(word, "fsid=") {
		why = "a volume has an identity of its own, and there is no root of NFSv4"
	}
	if why == "" {
		return ""
	}
	return word + " changes nothing here: " + why
}
