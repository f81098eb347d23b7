package fs

import (
	"tansy/internal/gen/fs/exec/exec"
	"tansy/internal/gen/fs/exec/localcalls"
)

// Flags of a file, as chattr(1) sets them and lsattr(1) shows them, with the numbers of Linux (FS_IOC_GETFLAGS). What
// the first two forbid, they forbid everybody, clients of NFS as well: verified/fs/spec/nfs3.s.dfy says what.
const (
	FlagImmutable  uint32 = 0x10 // nothing of it is changed
	FlagAppendOnly uint32 = 0x20 // bytes come at the end, entries to a directory, and nothing else is changed
	FlagNoDump     uint32 = 0x40 // means something to programs alone
	FlagNoAtime    uint32 = 0x80 // no reading changes the atime; it changes none anyhow
	AllFlags              = FlagImmutable | FlagAppendOnly | FlagNoDump | FlagNoAtime
)

// Flags returns the flags of a file.
func (v *FS) Flags(h Handle) (flags uint32, err error) {
	var c call
	err = v.run(&c, procGetattr, func(t *txn) {
		flags = localcalls.Flags(&c.Call, t, v.dirs, h.Ino, h.Gen)
	})
	return flags, err
}

// SetFlags gives a file these flags, and no others. The error is ErrInval if there is none of that number, and ErrPerm
// unless who owns the file and changes neither FlagImmutable nor FlagAppendOnly, or is root. While a file stays
// immutable, nobody changes its other flags.
func (v *FS) SetFlags(who *Cred, h Handle, flags uint32) error {
	vc := v.cred(new(vcred), who)
	var c call
	return v.run(&c, exec.LOCAL(), func(t *txn) {
		localcalls.SetFlags(&c.Call, t, v.dirs, vc, h.Ino, h.Gen, flags)
	})
}
