// What flags forbid, and what they leave, in cases: a file that is immutable, and one that is append-only; an entry of
// theirs; a directory that is one or the other. `c` is anybody, root as well, where it is not said who.
include "xattr.s.dfy"
module FlagScenarios {
  import opened Machine import opened NfsState import opened NfsPerm import opened NfsCommon import opened NfsAttrs
  import opened NfsData import opened NfsMake import opened NfsUnlink import opened NfsRename import opened NfsLocal
  import X = NfsXattr

  predicate Is(f: FS, h: Handle, flags: uint32) { Live(f, h) && f.nodes[h.ino].attr.flags == flags }
  // the entry `name` of directory dh is h
  predicate Entry(f: FS, dh: Handle, name: Name, h: Handle)
  { LiveDir(f, dh) && Live(f, h) && Proper(name) && name in f.nodes[dh.ino].body.names &&
    f.nodes[dh.ino].body.names[name] == h.ino }
  function Root(): Caller { Caller(0, 0, [], map[]) }
  function Sized(n: uint64): Sattr { OnlySize(n) }
  function Chmod(m: uint32): Sattr { Sattr(Some(m), None, None, None, DontChange, DontChange) }
  function Utimes(t: Time): Sattr { Sattr(None, None, None, None, DontChange, ClientTime(t)) }
  function Touch(): Sattr { Sattr(None, None, None, None, ServerTime, ServerTime) }
  function Chown(): Sattr { Sattr(None, Some(5), None, None, DontChange, DontChange) }
  function Chgrp(): Sattr { Sattr(None, None, Some(5), None, DontChange, DontChange) }

  lemma NumbersOfLinux()
    ensures IMMUTABLE == 0x10 && APPENDONLY == 0x20 && NODUMP == 0x40 && NOATIME == 0x80
    ensures IsImmutable(0x10) && !IsImmutable(0xe0) && IsAppendOnly(0x20) && !IsAppendOnly(0xd0)
    ensures Known(0) && Known(0xf0) && Known(0x30) && !Known(1) && !Known(0x100) && !Known(0x18)
  { }

  // ---- an immutable file ----

  lemma ImmutableData(pre: FS, post: FS, c: Caller, h: Handle, off: uint64, data: seq<byte>, n: uint64, now: Time,
    w: Wcc)
    requires Is(pre, h, 0x10) && IsFile(pre, h.ino)
    ensures !WriteOk(pre, post, c, h, off, data, now, w) && WriteErr(pre, c, h, off, data, NFS3ERR_PERM) &&
      !(0 < |data| && off as int + |data| < 9 && WriteErr(pre, c, h, off, data, NFS3ERR_ACCES))
    ensures !AllocateOk(pre, post, c, h, off, n, now) && AllocateErr(pre, c, h, off, n, NFS3ERR_PERM)
    ensures !PunchOk(pre, post, c, h, off, n, off, now) && PunchErr(pre, c, h, off, n, NFS3ERR_PERM)
  { }
  lemma ImmutableAttributes(pre: FS, post: FS, c: Caller, h: Handle, s: Sattr, now: Time, w: Wcc)
    requires Is(pre, h, 0x10) && WithoutNobody(s) != NoSattr()
    ensures !SetattrOk(pre, post, c, h, s, None, now, w) && SetattrErr(pre, c, h, s, None, NFS3ERR_PERM)
  { }
  // What asks for no change gets it.
  lemma ImmutableUnasked(f: FS, c: Caller, h: Handle, now: Time, w: Wcc)
    requires Is(f, h, 0x10) && WccOk(f, f, h.ino, w)
    ensures SetattrOk(f, f, c, h, NoSattr(), None, now, w)
  { }
  lemma ImmutableAccess(f: FS, h: Handle, bits: uint32, a: Fattr)
    requires Is(f, h, 0x10) && IsFile(f, h.ino) && f.nodes[h.ino].attr.mode == 511
    ensures AccessOk(f, Root(), h, bits, a) ==> bits == ACCESS3_READ + ACCESS3_EXECUTE
  { }
  lemma ImmutableNames(pre: FS, post: FS, c: Caller, h: Handle, dh: Handle, name: Name, to: Name, now: Time, a: Fattr,
    w: Wcc, v: Wcc)
    requires Is(pre, h, 0x10) && Entry(pre, dh, name, h) && to != name && Proper(to)
    ensures !RemoveOk(pre, post, c, dh, name, now, w) && RemoveErr(pre, c, dh, name, NFS3ERR_PERM)
    ensures !RmdirOk(pre, post, c, dh, name, now, w) && RmdirErr(pre, c, dh, name, NFS3ERR_PERM)
    ensures !LinkOk(pre, post, c, h, dh, to, now, a, w) && LinkErr(pre, c, h, dh, to, NFS3ERR_PERM)
    ensures !(to in pre.nodes[dh.ino].body.names) ==> !RenameOk(pre, post, c, dh, name, dh, to, now, w, v) &&
      RenameErr(pre, c, dh, name, dh, to, NFS3ERR_PERM)
  { }
  // Nothing takes its name: not RENAME, not an exchange.
  lemma ImmutableTarget(pre: FS, post: FS, c: Caller, h: Handle, other: Handle, dh: Handle, name: Name, to: Name,
    now: Time, w: Wcc, v: Wcc)
    requires Is(pre, h, 0x10) && Entry(pre, dh, to, h) && Entry(pre, dh, name, other) && h.ino != other.ino
    ensures !RenameOk(pre, post, c, dh, name, dh, to, now, w, v) && RenameErr(pre, c, dh, name, dh, to, NFS3ERR_PERM)
    ensures !ExchangeOk(pre, post, c, dh, name, dh, to, now, w, v) &&
      ExchangeErr(pre, c, dh, name, dh, to, NFS3ERR_PERM)
  { }
  lemma ImmutableXattrs(f: FS, h: Handle)
    requires Is(f, h, 0x10) || Is(f, h, 0x20)
    ensures !X.MayHave(f, h) && X.FixedErr(f, h, NFS3ERR_PERM) && !X.FixedErr(f, h, NFS3ERR_ACCES)
  { }

  // ---- a directory ----

  // An immutable one gets no entry and loses none.
  lemma ImmutableDirectory(pre: FS, post: FS, c: Caller, dh: Handle, name: Name, s: Sattr, now: Time, h: Handle,
    a: Fattr, w: Wcc)
    requires Is(pre, dh, 0x10) && IsDir(pre, dh.ino) && Can(c, pre.nodes[dh.ino], EXEC) && Proper(name)
    ensures var there := name in pre.nodes[dh.ino].body.names;
      !MkdirOk(pre, post, c, dh, name, s, now, h, a, w) && !RemoveOk(pre, post, c, dh, name, now, w) &&
      !TmpfileOk(pre, post, c, dh, s, now, h, a) && TmpfileErr(pre, dh, s, NFS3ERR_PERM) &&
      RemoveErr(pre, c, dh, name, NFS3ERR_PERM) &&
      if there then MkdirErr(pre, c, dh, name, s, NFS3ERR_EXIST) else MkdirErr(pre, c, dh, name, s, NFS3ERR_PERM) &&
        !CreateOk(pre, post, c, dh, name, UNCHECKED, s, 0, now, h, a, w)
  { }
  // One that is append-only gets entries, and loses none.
  lemma AppendDirectory(pre: FS, post: FS, c: Caller, h: Handle, dh: Handle, name: Name, now: Time, w: Wcc)
    requires Is(pre, dh, 0x20) && Is(pre, h, 0) && Entry(pre, dh, name, h)
    ensures !RemoveOk(pre, post, c, dh, name, now, w) && RemoveErr(pre, c, dh, name, NFS3ERR_PERM)
    ensures Can(c, pre.nodes[dh.ino], WRITE + EXEC) == May(c, NF3DIR, pre.nodes[dh.ino].attr.mode,
      pre.nodes[dh.ino].attr.uid, pre.nodes[dh.ino].attr.gid, 0x20, WRITE + EXEC)
  { }

  // ---- an append-only file ----

  // Root writes at its end, and nowhere else.
  lemma AppendData(pre: FS, post: FS, h: Handle, off: uint64, data: seq<byte>, n: uint64, now: Time, w: Wcc)
    requires Is(pre, h, 0x20) && IsFile(pre, h.ino) && off as int + |data| <= FILEMAX
    ensures var size := |pre.nodes[h.ino].body.data|;
      (off as int != size ==> !WriteOk(pre, post, Root(), h, off, data, now, w) &&
        WriteErr(pre, Root(), h, off, data, NFS3ERR_PERM)) &&
      (off as int == size && 0 < |data| && WccOk(pre, post, h.ino, w) &&
        post == Put(pre, h.ino, Written(Root(), pre.nodes[h.ino], size, data, now)) ==>
        WriteOk(pre, post, Root(), h, off, data, now, w)) &&
      (off as int == size ==> !WriteErr(pre, Root(), h, off, data, NFS3ERR_PERM))
    ensures !PunchOk(pre, post, Root(), h, off, n, off, now) && PunchErr(pre, Root(), h, off, n, NFS3ERR_PERM)
    ensures !AllocateErr(pre, Root(), h, off, n, NFS3ERR_PERM)
  { }
  lemma AppendAttributes(pre: FS, post: FS, h: Handle, s: Sattr, t: Time, now: Time, w: Wcc)
    requires Is(pre, h, 0x20) && IsFile(pre, h.ino)
    requires s == Sized(0) || s == Chmod(420) || s == Utimes(t) || s == Chown() || s == Chgrp()
    ensures !SetattrOk(pre, post, Root(), h, s, None, now, w) && SetattrErr(pre, Root(), h, s, None, NFS3ERR_PERM)
    ensures SetPerm(Root(), pre.nodes[h.ino].attr, Touch())
  { }
  lemma AppendNames(pre: FS, post: FS, c: Caller, h: Handle, dh: Handle, name: Name, to: Name, s: Sattr, now: Time,
    a: Fattr, w: Wcc)
    requires Is(pre, h, 0x20) && Entry(pre, dh, name, h) && Proper(to)
    ensures !RemoveOk(pre, post, c, dh, name, now, w) && !LinkOk(pre, post, c, h, dh, to, now, a, w)
    ensures IsFile(pre, h.ino) && s.size.Some? && Can(c, pre.nodes[dh.ino], EXEC) && WccOk(pre, post, dh.ino, w) ==>
      !CreateOk(pre, post, c, dh, name, UNCHECKED, s, 0, now, h, a, w) &&
      CreateErr(pre, c, dh, name, UNCHECKED, s, 0, NFS3ERR_PERM)
  { }

  // ---- who sets them ----

  predicate Owned(f: FS, h: Handle, flags: uint32, uid: uint32) { Is(f, h, flags) && f.nodes[h.ino].attr.uid == uid }
  lemma Setting(pre: FS, post: FS, h: Handle, now: Time)
    requires Owned(pre, h, 0, 10)
    ensures SetFlagsOk(pre, post, Root(), h, 0x30, now) ==> Is(post, h, 0x30) &&
      post.nodes[h.ino].attr.ctime == Stamp(now, pre.nodes[h.ino].attr.ctime) &&
      post.nodes[h.ino].attr.mtime == pre.nodes[h.ino].attr.mtime
    ensures var ann, eve := Caller(10, 20, [], map[]), Caller(12, 22, [], map[]);
      !SetFlagsErr(pre, ann, h, 0xc0, NFS3ERR_PERM) && SetFlagsErr(pre, ann, h, 0x10, NFS3ERR_PERM) &&
      SetFlagsErr(pre, ann, h, 0x20, NFS3ERR_PERM) && SetFlagsErr(pre, eve, h, 0xc0, NFS3ERR_PERM) &&
      !SetFlagsOk(pre, post, ann, h, 0x10, now) && !SetFlagsOk(pre, post, ann, h, 0x20, now) &&
      !SetFlagsOk(pre, post, eve, h, 0, now) && !SetFlagsOk(pre, post, Root(), h, 1, now) &&
      SetFlagsErr(pre, Root(), h, 1, NFS3ERR_INVAL) && !SetFlagsErr(pre, Root(), h, 0xf0, NFS3ERR_INVAL)
  { }
  lemma Clearing(pre: FS, post: FS, h: Handle, now: Time)
    requires Owned(pre, h, 0x10, 10)
    ensures !SetFlagsErr(pre, Root(), h, 0, NFS3ERR_PERM) && !SetFlagsErr(pre, Root(), h, 0x10, NFS3ERR_PERM)
    ensures SetFlagsErr(pre, Root(), h, 0x50, NFS3ERR_PERM) && !SetFlagsOk(pre, post, Root(), h, 0x50, now)
    ensures SetFlagsErr(pre, Caller(10, 20, [], map[]), h, 0, NFS3ERR_PERM)
  { }
  // A new file has none. (Numbers of access lists it may have.)
  lemma NewHasNone(c: Caller, d: Node, ty: uint32, mode: uint32, s: Sattr, now: Time)
    ensures NewAttr(c, d, ty, mode, s, now).flags % 256 == 0
    ensures DefaultNumber(d.attr.flags) == 0 ==> NewAttr(c, d, ty, mode, s, now).flags == 0
  { }
  // No call but this one changes them.
  lemma OthersKeep(c: Caller, n: Node, s: Sattr, off: int, data: seq<byte>, td: uint64, now: Time, blocks: int)
    requires n.body.File? && 0 <= off
    ensures SetNode(c, n, s, now, blocks).attr.flags == n.attr.flags &&
      Written(c, n, off, data, now).attr.flags == n.attr.flags && MovedNode(n, td, now).attr.flags == n.attr.flags &&
      Allocated(c, n, off, |data|, now).attr.flags == n.attr.flags &&
      Punched(c, n, off, off, now).attr.flags == n.attr.flags &&
      SetMtimeCtime(n.attr, 1, now).flags == n.attr.flags && SetNlinkCtime(n.attr, 1, now).flags == n.attr.flags
  { }
}
