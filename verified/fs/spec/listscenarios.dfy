// What access lists allow, who gets them, and who sets them, in cases. The files are Ann's, of group 20.
include "xattr.s.dfy"
module ListScenarios {
  import opened Machine import opened AccessLists import opened NfsState import opened NfsPerm import opened NfsCommon
  import opened NfsAttrs import opened NfsMake import opened NfsLocal
  import P = NfsPerm import X = NfsXattr

  // List 1: the file's group reads; user 11 does all, user 12 nothing; group 30 writes and executes. 2 is as a mode.
  function Named(): seq<Entry> { [Entry(false, 11, 7), Entry(false, 12, 0), Entry(true, 30, 3)] }
  function Table(): map<uint32, AccessList>
  { map[1 := AccessList(6, 4, 5, 1, true, Named()), 2 := AccessList(6, 5, 0, 1, false, [])] }
  function Who(uid: uint32, gid: uint32, gids: seq<uint32>): Caller { Caller(uid, gid, gids, Table()) }
  ghost const MODE0754: uint32 := 492

  lemma Entries(c: Caller, u: uint32, want: uint32)
    ensures OfUser(Named(), u) == if u == 11 then Some(7) else if u == 12 then Some(0) else None
    ensures InSome(c, Named()) == InGroup(c, 30)
    ensures SomeAllows(c, Named(), want) == (InGroup(c, 30) && P.Within(3, want))
  {
    var es := Named();
    var two, one := es[1..], es[1..][1..];
    assert two == [Entry(false, 12, 0), Entry(true, 30, 3)];
    assert one == [Entry(true, 30, 3)] && one[1..] == [];
    assert OfUser(one, u) == None && InSome(c, one) == InGroup(c, 30);
    assert SomeAllows(c, one, want) == (InGroup(c, 30) && P.Within(3, want));
    assert OfUser(two, u) == if u == 12 then Some(0) else None;
    assert InSome(c, two) == InSome(c, one) && SomeAllows(c, two, want) == SomeAllows(c, one, want);
    assert InSome(c, es) == InSome(c, two) && SomeAllows(c, es, want) == SomeAllows(c, two, want);
  }
  // the rights of c to a file with that list, of mode 0754
  predicate Has(c: Caller, number: uint32, want: uint32)
    requires number <= MAXLIST
  { May(c, NF3REG, MODE0754, 10, 20, number * 256 + 128, want) }

  lemma Owner(want: uint32)
    ensures Has(Who(10, 30, [20]), 1, 7) && Has(Who(0, 0, []), 1, 7)
  { }
  // The entry of a user decides alone, and the mask bounds it.
  lemma Users()
    ensures var c := Who(11, 30, [20]); Has(c, 1, READ) && Has(c, 1, READ + EXEC) && !Has(c, 1, WRITE)
    ensures var c := Who(12, 30, [20]); !Has(c, 1, READ) && !Has(c, 1, EXEC)
  { Entries(Who(11, 30, [20]), 11, 1); Entries(Who(12, 30, [20]), 12, 1); }
  // Of groups one must give all that is wanted; others' rights are for who is in none.
  lemma Groups()
    ensures var c := Who(13, 20, []); Has(c, 1, READ) && !Has(c, 1, EXEC) && !Has(c, 1, WRITE)
    ensures var c := Who(13, 7, [30]); !Has(c, 1, READ) && Has(c, 1, EXEC) && !Has(c, 1, WRITE)
    ensures var c := Who(13, 20, [30]); Has(c, 1, READ) && Has(c, 1, EXEC) && !Has(c, 1, READ + EXEC)
    ensures var c := Who(13, 7, [8]); Has(c, 1, READ) && !Has(c, 1, EXEC)
  {
    forall c: Caller, want: uint32 ensures OfUser(Named(), 13) == None && InSome(c, Named()) == InGroup(c, 30) &&
      SomeAllows(c, Named(), want) == (InGroup(c, 30) && P.Within(3, want)) { Entries(c, 13, want); }
  }
  // Who is in the file's group has nothing of others' rights, of mode 0751 here.
  lemma GroupAlone()
    ensures var c := Who(13, 20, []); May(c, NF3REG, 489, 10, 20, 256, READ) && !May(c, NF3REG, 489, 10, 20, 256, EXEC)
  { Entries(Who(13, 20, []), 13, READ); Entries(Who(13, 20, []), 13, EXEC); }
  // A list that is not there leaves the file to its owner and to root.
  lemma Missing(want: uint32)
    ensures !Has(Who(13, 20, [30]), 3, READ) && !Has(Who(11, 7, []), 3, READ) && Has(Who(10, 7, []), 3, 7)
  { }
  // Without a list the mode says all: 2 and 1 are numbers of default lists here.
  lemma ModeAlone()
    ensures May(Who(13, 20, []), NF3REG, MODE0754, 10, 20, 1048576, READ + EXEC) &&
      !May(Who(11, 7, []), NF3REG, MODE0754, 10, 20, 2097152, EXEC)
  { }
  // To change a directory is to write and search it at once.
  lemma Changes()
    ensures AccessBits(Who(13, 20, [30]), NF3DIR, 511, 10, 20, 256) == ACCESS3_READ + ACCESS3_LOOKUP + 28
    ensures AccessBits(Who(13, 20, []), NF3DIR, 511, 10, 20, 256) == ACCESS3_READ
  {
    forall c: Caller, want: uint32 ensures OfUser(Named(), 13) == None && InSome(c, Named()) == InGroup(c, 30) &&
      SomeAllows(c, Named(), want) == (InGroup(c, 30) && P.Within(3, want)) { Entries(c, 13, want); }
  }

  // ---- what is made in a directory ----

  // The list and the mode are the default list's; a directory gets that, too; a symbolic link nothing.
  lemma Inheriting(c: Caller, mode: uint32)
    requires c.lists == Table()
    ensures Inherited(c, NF3REG, 1048576 + 0x80) == 256 && Inherited(c, NF3DIR, 1048576) == 1048576 + 256
    ensures Inherited(c, NF3REG, 2097152) == 0 && Inherited(c, NF3DIR, 2097152) == 2097152
    ensures Inherited(c, NF3LNK, 1048576) == 0 && Inherited(c, NF3REG, 256 + 0xf0) == 0
    ensures InheritedMode(c, NF3REG, 1048576, 511) == 425 && InheritedMode(c, NF3REG, 2097152, 511) == 425
    ensures InheritedMode(c, NF3REG, 1048576, 2486) == 2464
    ensures InheritedMode(c, NF3LNK, 1048576, 511) == 511 && InheritedMode(c, NF3REG, 256, mode) == mode
    ensures Inherited(c, NF3REG, 3145728) == 768 && InheritedMode(c, NF3REG, 3145728, mode) == mode
  { }
  lemma Made(c: Caller, d: Node, s: Sattr, now: Time)
    requires c.lists == Table() && c.uid == 10 && d.attr.flags == 1048576 && s == Sattr(Some(511), None, None, None,
      DontChange, DontChange)
    ensures var a := NewAttr(c, d, NF3REG, 420, s, now); a.flags == 256 && a.mode % 512 == 425
    ensures var a := NewAttr(c, d, NF3DIR, 493, s, now); a.flags == 1048832 && a.mode % 512 == 425
  { }

  // ---- who sets them, and how ----

  predicate Owned(f: FS, h: Handle, mode: uint32, flags: uint32)
  {
    Live(f, h) && var n := f.nodes[h.ino];
    n.body.File? && n.attr.uid == 10 && n.attr.gid == 20 && n.attr.mode == mode && n.attr.flags == flags
  }
  lemma Setting(pre: FS, post: FS, h: Handle, now: Time)
    requires Owned(pre, h, 1504, 64)
    ensures var ann := Who(10, 20, []); SetListOk(pre, post, ann, h, false, 1, Some(425), now) ==>
      Owned(post, h, 1449, 256 + 64) && post.nodes[h.ino].attr.ctime == Stamp(now, pre.nodes[h.ino].attr.ctime) &&
      post.nodes[h.ino].attr.mtime == pre.nodes[h.ino].attr.mtime && SetFlagsErr(post, Who(0, 0, []), h, 1, 22)
    ensures SetListOk(pre, post, Who(10, 21, []), h, false, 1, Some(425), now) ==> Owned(post, h, 425, 256 + 64)
    ensures SetListOk(pre, post, Who(0, 0, []), h, false, 1, None, now) ==> Owned(post, h, 1504, 256 + 64)
    ensures SetListOk(pre, post, Who(10, 20, []), h, true, 0, None, now) ==> Owned(post, h, 1504, 64)
    ensures !SetListOk(pre, post, Who(10, 20, []), h, true, 1, None, now) &&
      SetListErr(pre, Who(10, 20, []), h, true, 1, None, NFS3ERR_ACCES)
    ensures !SetListErr(pre, Who(10, 20, []), h, true, 0, None, NFS3ERR_ACCES)
    ensures !SetListOk(pre, post, Who(11, 20, []), h, false, 1, Some(425), now) &&
      SetListErr(pre, Who(11, 20, []), h, false, 1, Some(425), NFS3ERR_PERM) &&
      !SetListErr(pre, Who(0, 0, []), h, false, 1, Some(425), NFS3ERR_PERM)
    ensures !SetListOk(pre, post, Who(10, 20, []), h, false, 4096, None, now) &&
      SetListErr(pre, Who(10, 20, []), h, false, 4096, None, NFS3ERR_INVAL) &&
      SetListErr(pre, Who(10, 20, []), h, false, 1, Some(512), NFS3ERR_INVAL) &&
      !SetListErr(pre, Who(10, 20, []), h, false, 4095, Some(511), NFS3ERR_INVAL)
  { }
  // Both at once: each as if it were alone, or neither.
  lemma SettingBoth(pre: FS, post: FS, h: Handle, now: Time)
    requires Owned(pre, h, 1504, 64)
    ensures var ann := Who(10, 20, []);
      (SetListsOk(pre, post, ann, h, 1, Some(425), 0, now) ==> Owned(post, h, 1449, 256 + 64)) &&
      (SetListsOk(pre, post, ann, h, 1, None, 0, now) ==> Owned(post, h, 1504, 256 + 64)) &&
      !SetListsOk(pre, post, ann, h, 1, None, 1, now) && SetListsErr(pre, ann, h, 1, None, 1, NFS3ERR_ACCES) &&
      !SetListsOk(pre, post, ann, h, 4096, None, 0, now) && SetListsErr(pre, ann, h, 4096, None, 0, NFS3ERR_INVAL) &&
      !SetListsOk(pre, post, ann, h, 1, None, 4096, now) && SetListsErr(pre, ann, h, 1, None, 4096, NFS3ERR_INVAL) &&
      !SetListsOk(pre, post, ann, h, 1, Some(512), 0, now) && !SetListsErr(pre, ann, h, 1, None, 0, NFS3ERR_PERM)
    ensures !SetListsOk(pre, post, Who(11, 20, []), h, 1, None, 0, now) &&
      SetListsErr(pre, Who(11, 20, []), h, 1, None, 0, NFS3ERR_PERM)
  { }
  lemma SettingBothOfDirectory(pre: FS, post: FS, h: Handle, now: Time)
    requires Live(pre, h) && var n := pre.nodes[h.ino]; n.body.Dir? && n.attr.uid == 10 && n.attr.gid == 20 &&
      n.attr.mode == 493 && n.attr.flags == 3 * 256 + 64
    ensures SetListsOk(pre, post, Who(10, 20, []), h, 1, Some(425), 2, now) ==>
      Live(post, h) && var n, m := pre.nodes[h.ino], post.nodes[h.ino]; m.attr.mode == 425 && m.body == n.body &&
      m.attr.flags == 2 * 1048576 + 256 + 64 && m.attr.mtime == n.attr.mtime &&
      m.attr.ctime == Stamp(now, Stamp(now, n.attr.ctime))
    ensures !SetListsErr(pre, Who(10, 20, []), h, 1, Some(425), 2, NFS3ERR_ACCES) &&
      !SetListsOk(pre, post, Who(10, 20, []), h, 1, Some(425), 4096, now)
  { }
  lemma SettingBothOfLink(pre: FS, post: FS, h: Handle, now: Time)
    requires Live(pre, h) && pre.nodes[h.ino].body.Symlink?
    ensures !SetListsOk(pre, post, Who(0, 0, []), h, 0, None, 0, now) &&
      SetListsErr(pre, Who(0, 0, []), h, 0, None, 0, NFS3ERR_INVAL)
  { }
  // Flags forbid it, and are not changed; and who changes flags leaves the lists.
  lemma Flagged(pre: FS, post: FS, h: Handle, now: Time)
    requires Owned(pre, h, 420, 256 + 16)
    ensures !SetListOk(pre, post, Who(0, 0, []), h, false, 0, None, now) &&
      SetListErr(pre, Who(0, 0, []), h, false, 0, None, NFS3ERR_PERM)
    ensures SetFlagsOk(pre, post, Who(0, 0, []), h, 0x40, now) ==> Owned(post, h, 420, 256 + 64)
    ensures FlagsOk(pre, h, 16) && !FlagsOk(pre, h, 272) && ListsOk(pre, h, 272, 420)
    ensures !ListsOk(pre, h, 16, 420) && !ListsOk(pre, h, 272, 421)
    ensures !SetFlagsErr(pre, Who(0, 0, []), h, 16, NFS3ERR_PERM)
  { }
  // Of both lists each is set alone.
  lemma Both(flags: uint32, n: uint32)
    requires n <= MAXLIST
    ensures DefaultNumber(WithAccess(flags, n)) == DefaultNumber(flags) && AccessNumber(WithAccess(flags, n)) == n
    ensures DefaultNumber(WithDefault(flags, n)) == n && AccessNumber(WithDefault(flags, n)) == AccessNumber(flags)
    ensures WithAccess(flags, n) % 256 == flags % 256 == WithDefault(flags, n) % 256
  {
    var d, a, f := (flags / 1048576) as int, (flags / 256 % 4096) as int, (flags % 256) as int;
    Parts(d, n as int, f);
    Parts(n as int, a, f);
    Parts(d, a, f);
  }
  lemma Parts(d: int, a: int, f: int)
    requires 0 <= d < 4096 && 0 <= a < 4096 && 0 <= f < 256
    ensures var x := d * 1048576 + a * 256 + f;
      x / 1048576 == d && x / 256 == d * 4096 + a && x / 256 % 4096 == a && x % 1048576 == a * 256 + f && x % 256 == f
  {
    var x := d * 1048576 + a * 256 + f;
    assert x / 256 == d * 4096 + a;
  }

  // ---- the table ----

  // A list is added where no inode is, and what is there stays.
  lemma Adding(pre: FS, post: FS, i: uint64, name: Name, other: Name, v: seq<byte>)
    ensures X.NewListOk(pre, post, i, name, v) && other != name && other in X.XattrsOf(pre, Handle(i, 1)) ==>
      other in X.XattrsOf(post, Handle(i, 1)) &&
      X.XattrsOf(post, Handle(i, 1))[other] == X.XattrsOf(pre, Handle(i, 1))[other]
    ensures X.NewListOk(pre, post, i, name, v) ==> name in X.XattrsOf(post, Handle(i, 1)) &&
      X.XattrsOf(post, Handle(i, 1))[name] == v && post.nodes == pre.nodes && post.gens == pre.gens
    ensures name in X.XattrsOf(pre, Handle(i, 1)) ==> !X.NewListOk(pre, post, i, name, v) &&
      X.NewListErr(pre, i, name, NFS3ERR_EXIST)
    ensures i in pre.nodes ==> !X.NewListOk(pre, post, i, name, v)
    ensures i !in pre.gens && i !in pre.xattrs ==> !X.NewListErr(pre, i, name, NFS3ERR_EXIST)
  { }
}
