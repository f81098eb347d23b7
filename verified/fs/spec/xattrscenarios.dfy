// What xattr.s.dfy says in cases that one can follow, and what it forbids; that no procedure touches extended
// attributes; and that a new file has none, whatever was set for the file that had its inode number before
// (NewHasNone).
include "xattr.s.dfy"
include "ctime.dfy"
module NfsXattrScenarios {
  import opened Machine import opened NfsState import opened NfsPerm import opened NfsCommon import opened NfsAttrs
  import opened NfsData
  import opened NfsMake import opened NfsUnlink import opened NfsRename import opened NfsLocal
  import X = NfsXattr
  import Ctime

  const a: Name := [117, 46, 97]       // "u.a"
  const b: Name := [117, 46, 98]
  lemma Names2()
    ensures a != b && X.Named(a) && X.Named(b) && !X.Named([]) && !X.Named([117, 0])
  { assert a[2] != b[2]; var n: Name := [117, 0]; assert n[1] == 0; }

  // ---- set, replaced, removed ----

  lemma SetTwo(pre: FS, mid: FS, post: FS, h: Handle, now: Time)
    requires X.XattrsOf(pre, h) == map[] && X.SetOk(pre, mid, h, a, [1], true, false, now) &&
      X.SetOk(mid, post, h, b, [2], false, false, now)
    ensures X.XattrsOf(mid, h) == map[a := [1]] && X.XattrsOf(post, h) == map[a := [1], b := [2]]
    ensures X.GetOk(post, h, a, [1]) && X.GetOk(post, h, b, [2]) && !X.GetOk(post, h, a, [2]) &&
      !X.GetErr(post, h, a, NFS3ERR_NOENT)
  { Names2(); assert map[a := [1], b := [2]] == map[a := [1]][b := [2]]; }
  lemma Replaced(pre: FS, post: FS, h: Handle, now: Time)
    requires X.XattrsOf(pre, h) == map[a := [1], b := [2]] && X.SetOk(pre, post, h, a, [3, 3], false, true, now)
    ensures X.XattrsOf(post, h) == map[a := [3, 3], b := [2]]
  { Names2(); assert map[a := [1], b := [2]][a := [3, 3]] == map[a := [3, 3], b := [2]]; }
  lemma Removed(pre: FS, mid: FS, post: FS, h: Handle, now: Time)
    requires X.XattrsOf(pre, h) == map[a := [1], b := [2]] && X.RemoveOk(pre, mid, h, a, now) &&
      X.RemoveOk(mid, post, h, b, now)
    ensures X.XattrsOf(mid, h) == map[b := [2]] && X.XattrsOf(post, h) == map[] && h.ino !in post.xattrs
    ensures X.GetErr(mid, h, a, NFS3ERR_NOENT) && !X.GetOk(mid, h, a, [1])
  { Names2(); assert X.Without(map[a := [1], b := [2]], a) == map[b := [2]];
    assert X.Without(map[b := [2]], b) == map[]; }

  // One change has one outcome. It is nothing that others see, and of the file itself the ctime.
  lemma Exact(pre: FS, post: FS, other: FS, h: Handle, name: Name, value: seq<byte>, c: bool, r: bool, now: Time)
    ensures X.SetOk(pre, post, h, name, value, c, r, now) && X.SetOk(pre, other, h, name, value, c, r, now) ==>
      post == other
    ensures X.RemoveOk(pre, post, h, name, now) && X.RemoveOk(pre, other, h, name, now) ==> post == other
  { }
  lemma OthersStay(pre: FS, post: FS, h: Handle, g: Handle, name: Name, value: seq<byte>, c: bool, r: bool, now: Time)
    requires X.SetOk(pre, post, h, name, value, c, r, now) || X.RemoveOk(pre, post, h, name, now)
    ensures Live(post, g) <==> Live(pre, g)
    ensures Live(pre, g) && g != h ==> X.XattrsOf(post, g) == X.XattrsOf(pre, g) &&
      post.nodes[g.ino] == pre.nodes[g.ino]
    ensures var n, m := pre.nodes[h.ino], post.nodes[h.ino];
      m.body == n.body && m.blocks == n.blocks && m.attr.ctime == Stamp(now, n.attr.ctime) &&
        m.attr == SetNlinkCtime(n.attr, n.attr.nlink, now)
    ensures forall m: Name {:trigger m in X.XattrsOf(post, h)} {:trigger m in X.XattrsOf(pre, h)} | m != name ::
      (m in X.XattrsOf(pre, h) <==> m in X.XattrsOf(post, h)) &&
      (m in X.XattrsOf(pre, h) ==> X.XattrsOf(post, h)[m] == X.XattrsOf(pre, h)[m])
  { }

  // ---- refused ----

  lemma Refused(pre: FS, post: FS, h: Handle, name: Name, value: seq<byte>, now: Time)
    ensures !Live(pre, h) ==> !X.SetOk(pre, post, h, name, value, false, false, now) &&
      !X.RemoveOk(pre, post, h, name, now) && !X.GetOk(pre, h, name, value) && !X.ListOk(pre, h, value) &&
      X.ListErr(pre, h, NFS3ERR_STALE)
    ensures !X.Named(name) ==> !X.SetOk(pre, post, h, name, value, false, false, now) &&
      X.SetErr(pre, h, name, value, false, false, NFS3ERR_INVAL)
    ensures Live(pre, h) && name in X.XattrsOf(pre, h) ==>
      !X.SetOk(pre, post, h, name, value, true, false, now) && X.SetErr(pre, h, name, value, true, false, NFS3ERR_EXIST)
    ensures Live(pre, h) && name !in X.XattrsOf(pre, h) ==>
      !X.SetOk(pre, post, h, name, value, false, true, now) && X.SetErr(pre, h, name, value, false, true, NFS3ERR_NOENT)
    ensures Live(pre, h) && name !in X.XattrsOf(pre, h) ==>
      !X.RemoveOk(pre, post, h, name, now) && X.RemoveErr(pre, h, name, NFS3ERR_NOENT) &&
      X.SetErr(pre, h, name, value, true, false, NFS3ERR_NOSPC)
  { }
  lemma NotRefused(f: FS, h: Handle, v: seq<byte>, st: uint32)
    requires Live(f, h)
    // without a reason
    ensures !X.SetErr(f, h, a, v, false, false, NFS3ERR_INVAL) && !X.SetErr(f, h, a, v, false, false, NFS3ERR_EXIST) &&
      !X.SetErr(f, h, a, v, false, false, NFS3ERR_NOENT) && !X.SetErr(f, h, a, v, false, false, NFS3ERR_STALE)
    ensures a in X.XattrsOf(f, h) ==> !X.SetErr(f, h, a, v, false, true, NFS3ERR_NOENT)
    ensures a !in X.XattrsOf(f, h) ==> !X.SetErr(f, h, a, v, true, false, NFS3ERR_EXIST)
    // for want of room, where something as long is there
    ensures a in X.XattrsOf(f, h) && |v| <= |X.XattrsOf(f, h)[a]| ==> !X.SetErr(f, h, a, v, false, false, st)
    ensures a in X.XattrsOf(f, h) ==> !X.RemoveErr(f, h, a, st) && !X.GetErr(f, h, a, st)
    ensures !X.ListErr(f, h, st)
  { Names2(); }

  // What attributes take, when that is too much for a file, and which files can have none.
  lemma Taken(v: seq<byte>, w: seq<byte>)
    ensures X.Bytes(map[]) == 0 && X.Bytes(map[a := v]) == 7 + |v|
    ensures X.Bytes(map[a := v, b := w]) == 14 + |v| + |w|
    ensures (X.Crowded(map[a := v]) <==> 4081 < |v|) && (X.Crowded(map[a := v, b := w]) <==> 4074 < |v| + |w|)
  {
    Names2();
    Single(a, v); Single(b, w);
    var l := map[a := v, b := w];
    assert X.Without(l, a) == map[b := w] && X.Without(l, b) == map[a := v];
    var n := Some1(l);
    assert n in l.Keys;
    assert l.Keys == {a, b};
  }
  lemma Single(n: Name, v: seq<byte>)
    ensures X.Bytes(map[n := v]) == 4 + |n| + |v|
  {
    assert n in map[n := v];
    var m := Some1(map[n := v]);
    assert m == n && X.Without(map[n := v], n) == map[];
  }
  lemma Some1(l: X.List) returns (n: Name)
    requires l != map[]
    ensures n in l && X.Bytes(l) == 4 + |n| + |l[n]| + X.Bytes(X.Without(l, n))
  { n :| n in l && X.Bytes(l) == 4 + |n| + |l[n]| + X.Bytes(X.Without(l, n)); }
  lemma NoneEver()
    ensures !X.Bare(Handle(1, 1)) && !X.Bare(Handle(134217727, 1)) && X.Bare(Handle(134217728, 1)) &&
      X.Bare(Handle(1, 0))
  { }

  // ---- lists ----

  lemma Joined1(n: Name)
    ensures X.Joined([n]) == n + [0]
  { assert [n][..0] == []; assert X.Joined([]) == []; assert X.Joined([n]) == X.Joined([n][..0]) + n + [0];
    assert [] + n + [0] == n + [0]; }
  lemma Listed(f: FS, h: Handle, data: seq<byte>)
    requires Live(f, h) && X.XattrsOf(f, h) == map[a := [1]]
    ensures X.ListOk(f, h, a + [0])
    ensures X.ListOk(f, h, data) ==> data == a + [0]
  {
    Joined1(a);
    assert X.Each([a], map[a := [1]]);
    if X.ListOk(f, h, data) {
      var ns: seq<Name> :| X.Each(ns, X.XattrsOf(f, h)) && data == X.Joined(ns);
      assert a in ns;
      if 1 < |ns| { assert ns[0] in ns && ns[1] in ns; }
      assert ns[0] in ns;
      assert ns == [a];
    }
  }
  lemma ListedNone(f: FS, h: Handle, data: seq<byte>)
    requires Live(f, h) && X.XattrsOf(f, h) == map[]
    ensures X.ListOk(f, h, data) <==> data == []
  {
    assert X.Each([], map[]) && X.Joined([]) == [];
    if X.ListOk(f, h, data) {
      var ns: seq<Name> :| X.Each(ns, X.XattrsOf(f, h)) && data == X.Joined(ns);
      if ns != [] { assert ns[0] in ns; }
    }
  }

  // ---- files that go, and new ones ----

  // What the server forgets nobody had.
  lemma Forgotten(pre: FS, post: FS, i: uint64, g: Handle)
    requires X.ForgetOk(pre, post, i)
    ensures post.nodes == pre.nodes && post.gens == pre.gens &&
      (Live(pre, g) ==> X.XattrsOf(post, g) == X.XattrsOf(pre, g))
    ensures i in post.xattrs ==> Live(post, Handle(i, post.xattrs[i].gen))
  { }
  // Nothing was set in a use of a number that is still to come.
  predicate Behind(f: FS)
  { forall i: uint64 {:trigger i in f.xattrs} | i in f.xattrs :: i in f.gens && f.xattrs[i].gen <= f.gens[i] }
  lemma StaysBehind(f: FS, g: FS)
    requires Behind(f) && Ctime.Step(f, g) && g.xattrs == f.xattrs
    ensures Behind(g)
  { forall i: uint64 | i in g.xattrs ensures i in g.gens &&
    g.xattrs[i].gen <= g.gens[i] { assert Ctime.Rises(f, g, i); } }
  lemma SetBehind(f: FS, g: FS, h: Handle, name: Name, value: seq<byte>, c: bool, r: bool, i: uint64, now: Time)
    requires Behind(f) && (X.SetOk(f, g, h, name, value, c, r, now) || X.RemoveOk(f, g, h, name, now) ||
      X.ForgetOk(f, g, i))
    ensures Behind(g)
  { }
  lemma SetMoves(f: FS, g: FS, h: Handle, name: Name, value: seq<byte>, c: bool, r: bool, now: Time)
    requires X.SetOk(f, g, h, name, value, c, r, now) || X.RemoveOk(f, g, h, name, now)
    ensures Ctime.Step(f, g)
    ensures var was, is := f.nodes[h.ino].attr.ctime, g.nodes[h.ino].attr.ctime; Earlier(was, is) || Ctime.Last(was)
  { Ctime.StampIsLater(now, f.nodes[h.ino].attr.ctime); }
  lemma NewHasNone(f: FS, g: FS, di: uint64, name: Name, h: Handle, n: Node, now: Time, na: Fattr, w: Wcc)
    requires Behind(f) && Made(f, g, di, name, h, n, now, na, w)
    ensures Live(g, h) && X.XattrsOf(g, h) == map[]
  { }
  lemma NamelessHasNone(f: FS, g: FS, c: Caller, dh: Handle, s: Sattr, now: Time, h: Handle, na: Fattr)
    requires Behind(f) && TmpfileOk(f, g, c, dh, s, now, h, na)
    ensures Live(g, h) && X.XattrsOf(g, h) == map[]
  { }

  // ---- no procedure touches them ----

  lemma Untouched(f: FS, g: FS, c: Caller, h: Handle, dh: Handle, name: Name, th: Handle, tname: Name, s: Sattr,
    off: uint64, len: uint64, data: seq<byte>, target: seq<byte>, how: uint32, x: uint64, y: uint32, z: uint32,
    guard: Option<Time>, now: Time, na: Fattr, w: Wcc, v: Wcc, more: bool)
    requires SetattrOk(f, g, c, h, s, guard, now, w) || WriteOk(f, g, c, h, off, data, now, w) ||
      CreateOk(f, g, c, dh, name, how, s, x, now, h, na, w) ||
      MkdirOk(f, g, c, dh, name, s, now, h, na, w) || SymlinkOk(f, g, c, dh, name, s, target, now, h, na, w) ||
        MknodOk(f, g, c, dh, name, how, s, y, z, now, h, na, w) ||
      LinkOk(f, g, c, h, dh, name, now, na, w) || RemoveOk(f, g, c, dh, name, now, w) ||
        RmdirOk(f, g, c, dh, name, now, w) || RenameOk(f, g, c, dh, name, th, tname, now, w, v) || Freed(f, g) ||
      AllocateOk(f, g, c, h, off, len, now) || PunchOk(f, g, c, h, off, len, x, now) || KeepOk(f, g, h, now) ||
        LetGoOk(f, g, h, now) || ClearOk(f, g, now, more) || TmpfileOk(f, g, c, dh, s, now, h, na) ||
      RemoveOpenOk(f, g, c, dh, name, h, now, w) || RenameOpenOk(f, g, c, dh, name, th, tname, h, now, w, v)
    ensures g.xattrs == f.xattrs
  { }
}
