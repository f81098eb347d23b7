include "../directories/directories.dfy"
include "../spec/nfs3.s.dfy"
include "../../trusted/listtable.s.dfy"
// Who may do what: the caller, the permission bits, access lists, and the legality of names.
//
// The rules are those of a Linux server. User 0 may read, write and search
// everything. Anyone else has the class of the owner, the group or the others,
// whichever fits first. The owner of a file may always read and write its data:
// NFS has no OPEN, so a file that was opened and then lost its permission bits
// must go on working for the program that opened it.
module Permissions {
  import opened Machine
  import opened ByteSlice
  import opened AccessLists
  import opened ListTableS
  import opened InodeFormat
  import opened Directories
  import P = NfsPerm
  import N = NfsState

  // NFS statuses (RFC 1813, nfsstat3)
  const PERM: uint32 := 1
  const NOENT: uint32 := 2
  const ACCES: uint32 := 13
  const EXIST: uint32 := 17
  const NOTDIR: uint32 := 20
  const ISDIR: uint32 := 21
  const INVAL: uint32 := 22
  const FBIG: uint32 := 27
  const NOSPC: uint32 := 28
  const MLINK: uint32 := 31
  const NAMETOOLONG: uint32 := 63
  const NOTEMPTY: uint32 := 66
  const STALE: uint32 := 70
  const NOTSYNC: uint32 := 10002
  const BADCOOKIE: uint32 := 10003
  const SERVERFAULT: uint32 := 10006
  const BADTYPE: uint32 := 10007
  // Not for the wire: blocks cut off earlier have to be freed before this can be
  // done. The caller frees them in transactions of their own and tries again.
  const SHRINKFIRST: uint32 := 20001

  // File types (RFC 1813, ftype3)
  const REG: uint32 := 1
  const DIR: uint32 := 2
  const BLK: uint32 := 3
  const CHR: uint32 := 4
  const LNK: uint32 := 5
  const SOCK: uint32 := 6
  const FIFO: uint32 := 7

  // Largest file, in bytes (512 GiB; the block trees would reach a little further).
  const MAXFILE: uint64 := 549755813888

  // Rights, as EXEC, WRITE, and READ in the specification; a want is a sum of these.
  const MAYEXEC: uint32 := 1
  const MAYWRITE: uint32 := 2
  const MAYREAD: uint32 := 4

  // Most links of a file, and most sub-directories of a directory.
  const MAXLINK: uint32 := 0x7fff_ffff

  // The caller: user, group, and supplementary groups as little-endian 32-bit numbers; and the volume's access lists.
  class Cred {
    const uid: uint32
    const gid: uint32
    const gids: Bytes
    const lists: Table
    constructor Make(uid: uint32, gid: uint32, gids: Bytes, lists: Table)
      ensures this.uid == uid && this.gid == gid && this.gids == gids && this.lists == lists
    { this.uid, this.gid, this.gids, this.lists := uid, gid, gids, lists; }
  }

  // the caller as a value, for specifications
  function WhoOf(c: Cred): P.Caller reads c.gids
  { P.Caller(c.uid, c.gid, Numbers32(c.gids.data), c.lists.table) }

  // the little-endian 32-bit numbers in s
  function Numbers32(s: seq<byte>): (r: seq<uint32>)
    ensures |r| == |s| / 4
    ensures forall k: int {:trigger r[k]} | 0 <= k < |r| :: r[k] == U32At(s, 4 * k)
    decreases |s|
  { if |s| < 4 then [] else [U32At(s, 0)] + Numbers32Tail(s) }
  function Numbers32Tail(s: seq<byte>): (r: seq<uint32>)
    requires 4 <= |s|
    ensures |r| == |s| / 4 - 1
    ensures forall k: int {:trigger r[k]} | 0 <= k < |r| :: r[k] == U32At(s, 4 * k + 4)
    decreases |s|, -1
  {
    assert forall k: int {:trigger U32At(s[4..], 4 * k)} | 0 <= k && 4 * k + 8 <= |s| ::
      s[4..][4 * k .. 4 * k + 4] == s[4 * k + 4 .. 4 * k + 8];
    Numbers32(s[4..])
  }

  // the rights that mode, access list, and flags leave
  predicate Unbarred(m: Meta, want: uint32) { want / 2 % 2 == 1 ==> !P.IsImmutable(m.marks) }
  predicate MayS(w: P.Caller, m: Meta, want: uint32)
  { P.May(w, m.ty, m.mode, m.uid, m.gid, m.marks, want) && Unbarred(m, want) }
  predicate MayDataS(w: P.Caller, m: Meta, want: uint32)
  { P.MayData(w, m.ty, m.mode, m.uid, m.gid, m.marks, want) && Unbarred(m, want) }
  function DenialS(m: Meta): uint32 { if P.IsImmutable(m.marks) then PERM else ACCES }
  predicate FixedS(m: Meta) { P.IsImmutable(m.marks) || P.IsAppendOnly(m.marks) }
  // may the entry of m leave the directory dm? 0, or why not
  function RefusalS(w: P.Caller, dm: Meta, m: Meta): uint32
  {
    if FixedS(m) || P.IsAppendOnly(dm.marks) then PERM
    else if P.StickyRefuses(w, dm.mode, dm.uid, m.uid) then ACCES else 0
  }

  // the error for a name that no procedure accepts; 0: legal
  function NameS(n: seq<byte>): (st: uint32)
    ensures (st == 0 <==> N.Legal(n)) && (st == NAMETOOLONG ==> |n| > 255) && (st == ACCES ==> !N.Legal(n)) &&
      (st == 0 || st == ACCES || st == NAMETOOLONG)
  { if |n| == 0 then ACCES else if |n| > 255 then NAMETOOLONG else if 0 in n || 47 in n then ACCES else 0 }

  method InGroup(c: Cred, g: uint32) returns (r: bool)
    ensures r <==> P.InGroup(WhoOf(c), g)
  {
    ghost var w := WhoOf(c);
    if c.gid == g { r := true; return; }
    r := false;
    var n: uint64 := c.gids.Len();
    var i: uint64 := 0;
    while n - i >= 4
      invariant 0 <= i <= n && n as int == |c.gids.data| && i % 4 == 0
      invariant forall k: int {:trigger w.gids[k]} | 0 <= k < i as int / 4 :: w.gids[k] != g
      decreases n - i
    {
      var x := c.gids.U32(i);
      assert x == w.gids[i as int / 4];
      if x == g { r := true; return; }
      i := i + 4;
    }
  }

  // the three bits of the caller's class
  method ClassBits(c: Cred, ip: Bytes) returns (p: uint32)
    requires |ip.data| == 256
    ensures var w, m := WhoOf(c), MetaOf(ip.data); p == if w.uid == m.uid then m.mode / 64 % 8
      else if P.InGroup(w, m.gid) then m.mode / 8 % 8 else m.mode % 8
  {
    var mode := GetMode(ip);
    var u := GetUid(ip);
    if c.uid == u { p := mode / 64 % 8; return; }
    var g := GetGid(ip);
    var m := InGroup(c, g);
    if m { p := mode / 8 % 8; } else { p := mode % 8; }
  }

  // the bits of want (MAYREAD, MAYWRITE, MAYEXEC) that the caller has
  method Granted(c: Cred, ip: Bytes) returns (p: uint32)
    requires |ip.data| == 256
    ensures var m := MetaOf(ip.data); p == P.Granted(WhoOf(c), m.ty, m.mode, m.uid, m.gid)
    ensures 0 <= p < 8
  {
    if c.uid == 0 {
      var ty := GetTy(ip);
      var mode := GetMode(ip);
      if ty == DIR || mode % 2 == 1 || mode / 8 % 2 == 1 || mode / 64 % 2 == 1 { p := 7; } else { p := 6; }
      return;
    }
    p := ClassBits(c, ip);
  }

  // does p have all bits of want?
  predicate method Covers(p: uint32, want: uint32)
    ensures Covers(p, want) <==> P.Within(p, want)
  {
    (want % 2 == 0 || p % 2 == 1) && (want / 2 % 2 == 0 || p / 2 % 2 == 1) && (want / 4 % 2 == 0 || p / 4 % 2 == 1)
  }

  // What an access list says of a caller who is not the owner: `own` is the rights of the caller's entry, if there is
  // one; else `in` tells whether a group of the caller's has one, and `some` whether one of these gives all of want.
  method OfNamed(c: Cred, number: uint32, n: uint64, want: uint32)
    returns (has: bool, own: uint32, found: bool, some: bool)
    requires number in c.lists.table && n as int == |c.lists.table[number].named|
    ensures var es, w := c.lists.table[number].named, WhoOf(c);
      P.OfUser(es, c.uid) == (if has then Some(own) else None) &&
      (!has ==> found == P.InSome(w, es) && some == P.SomeAllows(w, es, want))
  {
    ghost var es, w := c.lists.table[number].named, WhoOf(c);
    has, own, found, some := false, 0, false, false;
    var i: uint64 := 0;
    assert es[0..] == es;
    while i < n
      invariant i <= n && !has
      invariant P.OfUser(es, c.uid) == P.OfUser(es[i..], c.uid)
      invariant P.InSome(w, es) == (found || P.InSome(w, es[i..]))
      invariant P.SomeAllows(w, es, want) == (some || P.SomeAllows(w, es[i..], want))
      decreases n - i
    {
      var group, id, rights := c.lists.Named(number, i);
      assert es[i..][0] == es[i as int] && es[i..][1..] == es[i as int + 1..];
      if !group && id == c.uid { has, own := true, rights; return; }
      if group {
        var mine := InGroup(c, id);
        found := found || mine;
        some := some || (mine && Covers(rights, want));
      }
      i := i + 1;
    }
  }
  // what the access list of ip, which is not the caller's, allows
  method Listed(c: Cred, ip: Bytes, number: uint32, want: uint32) returns (ok: bool)
    requires |ip.data| == 256
    ensures var m := MetaOf(ip.data); ok <==> P.Allows(WhoOf(c), number, m.mode, m.gid, want)
  {
    ghost var w, fmode, fgid := WhoOf(c), MetaOf(ip.data).mode, MetaOf(ip.data).gid;
    assert w.lists == c.lists.table;
    var there := c.lists.Has(number);
    if !there { assert !P.Allows(w, number, fmode, fgid, want); return false; }
    var mode := GetMode(ip);
    var gid := GetGid(ip);
    var owner, group, mask, other, masked, n := c.lists.Rights(number);
    var has, own, found, some := OfNamed(c, number, n, want);
    if has { return Covers(own, want) && Covers(mode / 8 % 8, want); }
    var mine := InGroup(c, gid);
    if mine || found { return ((mine && Covers(group, want)) || some) && Covers(mode / 8 % 8, want); }
    ok := Covers(mode % 8, want);
  }
  // by mode and access list, whatever flags say
  method Lets(c: Cred, ip: Bytes, want: uint32) returns (ok: bool)
    requires |ip.data| == 256 && 0 <= want < 8
    ensures var m := MetaOf(ip.data); ok <==> P.May(WhoOf(c), m.ty, m.mode, m.uid, m.gid, m.marks, want)
  {
    var number, listed := ListFor(c, ip);
    if listed { ok := Listed(c, ip, number, want); return; }
    var p := Granted(c, ip);
    ok := Covers(p, want);
  }
  // is it an access list that decides for the caller?
  method ListFor(c: Cred, ip: Bytes) returns (number: uint32, listed: bool)
    requires |ip.data| == 256
    ensures var m := MetaOf(ip.data);
      number == P.AccessNumber(m.marks) && listed == P.IsListed(WhoOf(c), m.uid, m.marks)
  {
    var flags := GetMarks(ip);
    number, listed := flags / 256 % 4096, false;
    if number == 0 || c.uid == 0 { return; }
    var u := GetUid(ip);
    listed := c.uid != u;
  }

  method May(c: Cred, ip: Bytes, want: uint32) returns (ok: bool)
    requires |ip.data| == 256 && 0 <= want < 8
    ensures ok <==> MayS(WhoOf(c), MetaOf(ip.data), want)
  {
    ok := Lets(c, ip, want);
    if ok && want / 2 % 2 == 1 {
      var flags := GetMarks(ip);
      ok := flags / 16 % 2 == 0;
    }
  }
  // May, as a status
  method Deny(c: Cred, ip: Bytes, want: uint32) returns (st: uint32)
    requires |ip.data| == 256 && 0 <= want < 8
    ensures st == if MayS(WhoOf(c), MetaOf(ip.data), want) then 0 else DenialS(MetaOf(ip.data))
  {
    var ok := May(c, ip, want);
    if ok { return 0; }
    st := Denial(ip);
  }
  method Denial(ip: Bytes) returns (st: uint32)
    requires |ip.data| == 256
    ensures st == DenialS(MetaOf(ip.data))
  {
    var flags := GetMarks(ip);
    st := if flags / 16 % 2 == 1 then PERM else ACCES;
  }
  method Fixed(ip: Bytes) returns (immutable: bool, append: bool)
    requires |ip.data| == 256
    ensures (immutable <==> P.IsImmutable(MetaOf(ip.data).marks)) && (append <==> P.IsAppendOnly(MetaOf(ip.data).marks))
  {
    var flags := GetMarks(ip);
    immutable, append := flags / 16 % 2 == 1, flags / 32 % 2 == 1;
  }

  // May, or the caller owns it: for the data of files
  method MayData(c: Cred, ip: Bytes, want: uint32) returns (ok: bool)
    requires |ip.data| == 256 && 0 <= want < 8
    ensures ok <==> MayDataS(WhoOf(c), MetaOf(ip.data), want)
  {
    var u := GetUid(ip);
    if c.uid == u {
      var flags := GetMarks(ip);
      ok := want / 2 % 2 == 0 || flags / 16 % 2 == 0;
      return;
    }
    ok := May(c, ip, want);
  }
  // may the data of a file be changed? cut: taken away or replaced
  method DenyData(c: Cred, ip: Bytes, cut: bool) returns (st: uint32)
    requires |ip.data| == 256
    ensures var m := MetaOf(ip.data); st == if cut && FixedS(m) then PERM
      else if MayDataS(WhoOf(c), m, MAYWRITE) then 0 else DenialS(m)
  {
    var immutable, append := Fixed(ip);
    if immutable || (cut && append) { return PERM; }
    var ok := MayData(c, ip, MAYWRITE);
    st := if ok then 0 else ACCES;
  }

  method IsOwner(c: Cred, ip: Bytes) returns (ok: bool)
    requires |ip.data| == 256
    ensures ok <==> P.IsOwner(WhoOf(c), MetaOf(ip.data).uid)
  {
    var u := GetUid(ip);
    ok := c.uid == 0 || c.uid == u;
  }

  // May the entry of ip be removed from directory dp, or renamed there?
  method Refusal(c: Cred, dp: Bytes, ip: Bytes) returns (st: uint32)
    requires |dp.data| == 256 && |ip.data| == 256
    ensures st == RefusalS(WhoOf(c), MetaOf(dp.data), MetaOf(ip.data))
  {
    var immutable, append := Fixed(ip);
    var dirImmutable, dirAppend := Fixed(dp);
    if immutable || append || dirAppend { return PERM; }
    var sticky := Sticky(c, dp, ip);
    st := if sticky then ACCES else 0;
  }
  // In a sticky directory only root, its owner and the entry's owner remove or rename an entry.
  method Sticky(c: Cred, dp: Bytes, ip: Bytes) returns (refuse: bool)
    requires |dp.data| == 256 && |ip.data| == 256
    ensures refuse <==> P.StickyRefuses(WhoOf(c), MetaOf(dp.data).mode, MetaOf(dp.data).uid, MetaOf(ip.data).uid)
  {
    var mode := GetMode(dp);
    if mode / 512 % 2 == 0 {
      ghost var dm, u := MetaOf(dp.data), MetaOf(ip.data).uid;
      ghost var dmode, duid := dm.mode, dm.uid;
      assert !P.StickyRefuses(WhoOf(c), dmode, duid, u);
      refuse := false;
      return;
    }
    var a := IsOwner(c, dp);
    var b := IsOwner(c, ip);
    refuse := !a && !b;
  }

  // The ACCESS3 bits the caller has: 1 READ, 2 LOOKUP, 4 MODIFY, 8 EXTEND, 16 DELETE, 32 EXECUTE.
  method AccessBits(c: Cred, ip: Bytes) returns (bits: uint32)
    requires |ip.data| == 256
    ensures var m := MetaOf(ip.data); bits < 64 &&
      bits == P.AccessBits(WhoOf(c), m.ty, m.mode, m.uid, m.gid, m.marks)
  {
    var read, write, exec, change := Each(c, ip);
    var ty := GetTy(ip);
    var immutable, append := Fixed(ip);
    bits := 0;
    if read { bits := 1; }
    if ty == DIR {
      if exec { bits := bits + 2; }
      if change && !immutable { bits := bits + 28; }
    } else {
      if write && !immutable { bits := bits + 12; }
      if exec { bits := bits + 32; }
    }
  }
  // each right, whatever flags say; change: to write and search
  method Each(c: Cred, ip: Bytes) returns (read: bool, write: bool, exec: bool, change: bool)
    requires |ip.data| == 256
    ensures var m, w := MetaOf(ip.data), WhoOf(c); read == P.May(w, m.ty, m.mode, m.uid, m.gid, m.marks, MAYREAD) &&
      write == P.May(w, m.ty, m.mode, m.uid, m.gid, m.marks, MAYWRITE) &&
      exec == P.May(w, m.ty, m.mode, m.uid, m.gid, m.marks, MAYEXEC) &&
      change == P.May(w, m.ty, m.mode, m.uid, m.gid, m.marks, MAYWRITE + MAYEXEC)
  {
    var number, listed := ListFor(c, ip);
    if listed {
      read := Listed(c, ip, number, MAYREAD);
      write := Listed(c, ip, number, MAYWRITE);
      exec := Listed(c, ip, number, MAYEXEC);
      change := Listed(c, ip, number, MAYWRITE + MAYEXEC);
      return;
    }
    var p := Granted(c, ip);
    read, write, exec := p / 4 == 1, p / 2 % 2 == 1, p % 2 == 1;
    change := write && exec;
  }

  // ---- what a new file gets from its directory's default list ----

  function method Both(a: uint32, b: uint32): (r: uint32)
    ensures r == P.Both(a, b) && r < 8
  {
    (if a % 2 == 1 && b % 2 == 1 then 1 else 0) + (if a / 2 % 2 == 1 && b / 2 % 2 == 1 then 2 else 0) +
      (if a / 4 % 2 == 1 && b / 4 % 2 == 1 then 4 else 0)
  }
  // the numbers, as flags
  method Inherited(c: Cred, ty: uint32, dflags: uint32) returns (flags: uint32)
    ensures flags == P.Inherited(WhoOf(c), ty, dflags)
  {
    var n := dflags / 1048576 % 4096;
    if n == 0 || ty == LNK { return 0; }
    var there := c.lists.Has(n);
    flags := 256 * n;
    if there {
      var owner, group, mask, other, masked, named := c.lists.Rights(n);
      if !masked { flags := 0; }
    }
    if ty == DIR { flags := flags + 1048576 * n; }
  }
  // the mode
  method InheritedMode(c: Cred, ty: uint32, dflags: uint32, mode: uint32) returns (r: uint32)
    ensures r == P.InheritedMode(WhoOf(c), ty, dflags, mode)
  {
    var n := dflags / 1048576 % 4096;
    if n == 0 || ty == LNK { return mode; }
    var there := c.lists.Has(n);
    if !there { return mode; }
    var owner, group, mask, other, masked, named := c.lists.Rights(n);
    var most := if masked then mask else group;
    r := mode / 512 % 8 * 512 + Both(mode / 64 % 8, owner) * 64 + Both(mode / 8 % 8, most) * 8 + Both(mode % 8, other);
  }

  // The mode after somebody else than root changed data or owner: without setuid,
  // and without setgid unless it stands for mandatory locking (no g+x).
  function method KillPriv(mode: uint32): (r: uint32)
    ensures r == P.KillPriv(mode)
  {
    var a := if mode / 2048 % 2 == 1 then mode - 2048 else mode;
    if mode / 1024 % 2 == 1 && mode / 8 % 2 == 1 then a - 1024 else a
  }
  function method DropSetgid(mode: uint32): (r: uint32) ensures r == P.DropSetgid(mode)
  { if mode / 1024 % 2 == 1 then mode - 1024 else mode }

  // st: 0 or the error for a name no procedure accepts; dots: 1 for ".", 2 for ".."
  method NameStatus(n: Bytes) returns (st: uint32, dots: uint32)
    ensures st == NameS(n.data) && (st == 0 ==> OkName(n.data))
    ensures dots <= 2
    ensures dots == 1 <==> st == 0 && n.data == [46]
    ensures dots == 2 <==> st == 0 && n.data == [46, 46]
  {
    dots := 0;
    var len: uint64 := n.Len();
    if len == 0 { st := ACCES; return; }
    if len > 255 { st := NAMETOOLONG; return; }
    var i: uint64 := 0;
    while i < len
      invariant 0 <= i <= len && len as int == |n.data|
      invariant forall k: int {:trigger n.data[k]} | 0 <= k < i as int :: n.data[k] != 0 && n.data[k] != 47
    {
      var b := n.Get(i);
      if b == 0 || b == 47 { st := ACCES; return; }
      i := i + 1;
    }
    st := 0;
    if len == 1 && n.Get(0) == 46 { dots := 1; }
    if len == 2 && n.Get(0) == 46 && n.Get(1) == 46 { dots := 2; }
  }
}
