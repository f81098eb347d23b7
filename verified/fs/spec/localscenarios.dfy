// What local.s.dfy says in cases that one can follow: a file of three blocks, of which the middle one is a hole; a file
// that loses its only name while it is open.
include "local.s.dfy"
module NfsLocalScenarios {
  import opened Machine import opened ByteSpec import opened NfsState import opened NfsPerm import opened NfsCommon
  import opened NfsUnlink import opened NfsRename import opened NfsLocal

  function Root(): Caller { Caller(0, 0, [], map[]) }
  predicate Sparse(f: FS, h: Handle)
  {
    Live(f, h) && var n := f.nodes[h.ino];
    n.body.File? && |n.body.data| == 12288 && n.body.held == {0, 2} && Held(n.body.data, n.body.held) && n.blocks == 2
  }

  lemma DataBehindTheHole(f: FS, h: Handle, at: uint64, found: bool)
    requires Sparse(f, h)
    ensures SeekOk(f, Root(), h, 4096, false, 8192, true)
    ensures SeekOk(f, Root(), h, 4096, false, at, found) ==> (if found then at == 8192 else 4096 < at <= 8192)
  { if SeekOk(f, Root(), h, 4096, false, at, found) && 8192 < at { assert 8192 / 4096 in f.nodes[h.ino].body.held; } }
  lemma DataHere(f: FS, h: Handle, at: uint64, found: bool)
    requires Sparse(f, h) && SeekOk(f, Root(), h, 100, false, at, found)
    ensures found && at == 100
  { if 100 < at { assert 100 / 4096 in f.nodes[h.ino].body.held; } }
  lemma HoleBehindData(f: FS, h: Handle, at: uint64, found: bool)
    requires Sparse(f, h) && SeekOk(f, Root(), h, 0, true, at, found)
    ensures if found then at == 4096 else 0 < at <= 4096
  { if 4096 < at { assert 4096 / 4096 !in f.nodes[h.ino].body.held; } }
  lemma EndIsHole(f: FS, h: Handle, at: uint64, found: bool)
    requires Sparse(f, h)
    ensures SeekOk(f, Root(), h, 8192, true, 12288, true)
    ensures SeekOk(f, Root(), h, 8192, true, at, found) && found ==> at == 12288
    ensures !SeekOk(f, Root(), h, 12288, true, at, found) && SeekErr(f, Root(), h, 12288, NFS3ERR_NOENT)
  { }

  lemma RoomForTheHole(pre: FS, post: FS, h: Handle, now: Time)
    requires Sparse(pre, h) && AllocateOk(pre, post, Root(), h, 100, 5000, now)
    ensures h.ino in post.nodes && var n := post.nodes[h.ino];
      n.body.File? && n.body.data == pre.nodes[h.ino].body.data && n.body.held == {0, 1, 2} && n.blocks == 3 &&
        n.attr.ctime == n.attr.mtime == Stamp(now, pre.nodes[h.ino].attr.ctime)
    ensures !AllocateErr(pre, Root(), h, 0, 4096, NFS3ERR_NOSPC)
  {
    var d := pre.nodes[h.ino].body.data;
    assert d[..12288] == d;
    assert Blocks(100, 5000) == {0, 1}; assert {0, 1} - {0, 2} == {1}; assert {0, 2} + {0, 1} == {0, 1, 2};
      assert Blocks(0, 4096) == {0};
  }
  lemma RoomBehindTheEnd(pre: FS, post: FS, h: Handle, now: Time)
    requires Sparse(pre, h) && AllocateOk(pre, post, Root(), h, 12288, 1, now)
    ensures h.ino in post.nodes && var n := post.nodes[h.ino];
      n.body.File? && n.body.data == pre.nodes[h.ino].body.data + [0] && n.body.held == {0, 2, 3} && n.blocks == 3
  { assert Blocks(12288, 1) == {3}; assert {3} - {0, 2} == {3}; assert {0, 2} + {3} == {0, 2, 3};
    assert Zeros(1) == [0]; }

  lemma FirstBlockTaken(pre: FS, post: FS, h: Handle, now: Time)
    requires Sparse(pre, h) && PunchOk(pre, post, Root(), h, 0, 2, 0, now)
    ensures h.ino in post.nodes && var n := post.nodes[h.ino];
      n.body.File? && n.body.data == Zeros(8192) + pre.nodes[h.ino].body.data[8192..] && n.body.held == {2} &&
        n.blocks == 1
  {
    var d := pre.nodes[h.ino].body.data;
    assert d[..0] == [];
    assert Span(0, 2) == {0, 1}; assert {0, 2} * {0, 1} == {0}; assert {0, 2} - {0, 1} == {2};
  }

  // Whatever they do to a file, no block lies behind its end, holes are zeros, and it counts no fewer blocks than it
  // has.
  lemma StillABody(c: Caller, n: Node, off: int, len: int, now: Time)
    requires n.body.File? && Held(n.body.data, n.body.held) && |n.body.held| <= n.blocks && 0 <= off && 0 < len
    ensures var m := Allocated(c, n, off, len, now); Held(m.body.data, m.body.held) && |m.body.held| <= m.blocks
    ensures var m := Punched(c, n, off, off + len, now); Held(m.body.data, m.body.held) && |m.body.held| <= m.blocks
  {
    var h, b, s := n.body.held, Blocks(off, len), Span(off, off + len);
    assert h + b == h + (b - h) && h !! (b - h);
    assert h == (h - s) + (h * s) && (h - s) !! (h * s);
  }

  // ---- open files ----

  // the file h has one name, and nobody has kept it
  predicate OneName(f: FS, h: Handle, dh: Handle, name: Name)
  {
    Live(f, h) && LiveDir(f, dh) && h.ino != dh.ino && name in f.nodes[dh.ino].body.names &&
      f.nodes[dh.ino].body.names[name] == h.ino &&
    f.nodes[h.ino].body.File? && f.nodes[h.ino].attr.nlink == 1 && Names(f, h.ino) == {(dh.ino, name)}
  }
  // It has no name any more, and all else.
  predicate Nameless(f: FS, was: Node, h: Handle, now: Time)
  { Live(f, h) && Kept(f, h.ino) && Names(f, h.ino) == {} &&
    f.nodes[h.ino] == Node(SetNlinkCtime(SetNlinkCtime(was.attr, 2, now), 1, now), was.body, was.blocks) }
  lemma Unlinked1(pre: FS, post: FS, dh: Handle, name: Name, h: Handle, now: Time, w: Wcc)
    requires OneName(pre, h, dh, name) && RemoveOpenOk(pre, post, Root(), dh, name, h, now, w)
    ensures Nameless(post, pre.nodes[h.ino], h, now)
    // REMOVE alone
    ensures forall g: FS {:trigger RemoveOk(pre, g, Root(), dh, name, now, w)}
      | RemoveOk(pre, g, Root(), dh, name, now, w) :: !Live(g, h)
  {
    forall d: uint64, n: Name ensures (d, n) !in Names(post, h.ino)
    { if (d, n) in Names(post, h.ino) { assert (d, n) != (dh.ino, name); assert (d, n) in Names(pre, h.ino); } }
    assert Names(post, h.ino) == {};
  }
  lemma Replaced1(pre: FS, post: FS, dh: Handle, fname: Name, name: Name, h: Handle, now: Time, v: Wcc, w: Wcc)
    requires OneName(pre, h, dh, name) && RenameOpenOk(pre, post, Root(), dh, fname, dh, name, h, now, v, w) &&
      !SameFile(pre, dh, fname, dh, name)
    ensures Nameless(post, pre.nodes[h.ino], h, now)
  {
    forall d: uint64, n: Name ensures (d, n) !in Names(post, h.ino)
    { if (d, n) in Names(post, h.ino) && d != dh.ino
      { assert (d, n) in Names(pre, h.ino); } if (dh.ino, n) in Names(post, h.ino) &&
      n != name { assert (dh.ino, n) in Names(pre, h.ino); } }
    assert Names(post, h.ino) == {};
  }
  // It is closed: gone, and its handle never means another file.
  lemma Closed(pre: FS, post: FS, was: Node, h: Handle, at: Time, now: Time)
    requires Nameless(pre, was, h, at) && LetGoOk(pre, post, h, now)
    ensures !Live(post, h) && h.ino !in post.nodes && post.gens == pre.gens
  { }
  // It got a name before: it stays, with that link alone.
  lemma ClosedWithName(pre: FS, post: FS, h: Handle, now: Time)
    requires Live(pre, h) && pre.nodes[h.ino].body.File? && pre.nodes[h.ino].attr.nlink == 2 &&
      |Names(pre, h.ino)| == 1 && LetGoOk(pre, post, h, now)
    ensures Live(post, h) && post.nodes[h.ino].attr.nlink == 1 && !Kept(post, h.ino)
  {
    forall d: uint64, n: Name ensures (d, n) in Names(post, h.ino) <==> (d, n) in Names(pre, h.ino) { }
    assert Names(post, h.ino) == Names(pre, h.ino);
  }
  // When it is opened, no file of a sound volume has more links than names.
  lemma Cleared(pre: FS, post: FS, now: Time, i: uint64)
    requires Sound(pre) && ClearOk(pre, post, now, false) && i in post.nodes && !post.nodes[i].body.Dir?
    ensures post.nodes[i].attr.nlink as int == |Names(post, i)| > 0
  { assert !Kept(post, i); }
  // Not of a directory, nor twice, nor of what is not kept.
  lemma Refused(f: FS, g: FS, h: Handle, now: Time)
    ensures Live(f, h) && f.nodes[h.ino].body.Dir? ==> !KeepOk(f, g, h, now) && KeepErr(f, h, NFS3ERR_INVAL)
    ensures Kept(f, h.ino) ==> !KeepOk(f, g, h, now)
    ensures Live(f, h) && Kept(f, h.ino) ==> KeepErr(f, h, NFS3ERR_EXIST) && !LetGoErr(f, h, true, NFS3ERR_NOENT)
    ensures Live(f, h) && !Kept(f, h.ino) ==> !LetGoOk(f, g, h, now) && LetGoErr(f, h, true, NFS3ERR_INVAL)
  { }

  // Names of two directories change places: a directory with entries, and a file.
  lemma DirectoryForFile(pre: FS, post: FS, fh: Handle, a: Name, th: Handle, b: Name, now: Time, fw: Wcc, tw: Wcc)
    requires ExchangeOk(pre, post, Root(), fh, a, th, b, now, fw, tw) && fh.ino != th.ino
    requires var x, y := pre.nodes[fh.ino].body.names[a], pre.nodes[th.ino].body.names[b];
      x in pre.nodes && pre.nodes[x].body.Dir? && y in pre.nodes && pre.nodes[y].body.File? && x != fh.ino &&
      x != th.ino && y != fh.ino && y != th.ino
    ensures var x, y := pre.nodes[fh.ino].body.names[a], pre.nodes[th.ino].body.names[b];
      IsDir(post, fh.ino) && IsDir(post, th.ino) &&
      post.nodes[fh.ino].body.names == pre.nodes[fh.ino].body.names[a := y] &&
      post.nodes[th.ino].body.names == pre.nodes[th.ino].body.names[b := x] &&
      IsDir(post, x) && post.nodes[x].body.parent == th.ino && post.nodes[x].body.names == pre.nodes[x].body.names &&
      y in post.nodes && post.nodes[y].body == pre.nodes[y].body &&
      post.nodes[fh.ino].attr.nlink as int == pre.nodes[fh.ino].attr.nlink as int - 1 &&
      post.nodes[th.ino].attr.nlink as int == pre.nodes[th.ino].attr.nlink as int + 1 &&
      post.nodes[x].attr.ctime == Stamp(now, pre.nodes[x].attr.ctime) &&
      post.nodes[y].attr.ctime == Stamp(now, pre.nodes[y].attr.ctime) &&
      post.nodes[fh.ino].attr.mtime == Stamp(now, pre.nodes[fh.ino].attr.ctime)
    ensures forall i: uint64 {:trigger i in post.nodes} | i != fh.ino && i != th.ino &&
      i != pre.nodes[fh.ino].body.names[a] && i != pre.nodes[th.ino].body.names[b] ::
      (i in post.nodes <==> i in pre.nodes) && (i in pre.nodes ==> post.nodes[i] == pre.nodes[i])
  { }
  // A directory and what lies below it do not, in whatever order; nor does a name and one that is not there.
  lemma NotWithItself(pre: FS, post: FS, fh: Handle, a: Name, th: Handle, b: Name, now: Time, fw: Wcc, tw: Wcc)
    requires LiveDir(pre, fh) && a in pre.nodes[fh.ino].body.names && LiveDir(pre, th)
    requires var x := pre.nodes[fh.ino].body.names[a];
      IsDir(pre, x) && Below(pre, th.ino, x) && !SameFile(pre, fh, a, th, b)
    ensures !ExchangeOk(pre, post, Root(), fh, a, th, b, now, fw, tw) &&
      !ExchangeOk(pre, post, Root(), th, b, fh, a, now, fw, tw)
    ensures b !in pre.nodes[th.ino].body.names ==> ExchangeErr(pre, Root(), fh, a, th, b, NFS3ERR_NOENT)
  { }
  // It needs no room, and what is wrong with it is never that a volume is full.
  lemma NeedsNoRoom(pre: FS, fh: Handle, a: Name, th: Handle, b: Name)
    ensures !ExchangeErr(pre, Root(), fh, a, th, b, NFS3ERR_NOSPC)
  { }

  // A file goes to a free name in another directory: a whiteout has its name, and its owner, and nobody may use it.
  lemma LeavesWhiteout(pre: FS, post: FS, owner: uint32, fh: Handle, a: Name, th: Handle, b: Name, now: Time, h: Handle)
    requires WhiteoutOk(pre, post, Root(), owner, fh, a, th, b, now, h) && fh.ino != th.ino && owner != NOID
    requires b !in pre.nodes[th.ino].body.names && a in pre.nodes[fh.ino].body.names &&
      var x := pre.nodes[fh.ino].body.names[a];
      x in pre.nodes && pre.nodes[x].body.File? && x != fh.ino && x != th.ino
    ensures IsDir(post, fh.ino) && IsDir(post, th.ino) && Live(post, h) && h.ino !in pre.nodes &&
      post.nodes[fh.ino].body.names == pre.nodes[fh.ino].body.names[a := h.ino] &&
      post.nodes[th.ino].body.names == pre.nodes[th.ino].body.names[b := pre.nodes[fh.ino].body.names[a]]
    ensures var n := post.nodes[h.ino];
      n.body == Special(4, 0, 0) && n.attr.mode == 0 && n.attr.uid == owner && n.attr.nlink == 1
    ensures var x := pre.nodes[fh.ino].body.names[a]; x in post.nodes && post.nodes[x].body == pre.nodes[x].body
  {
    var mid, fw, tw, na, w :| RenameOk(pre, mid, Root(), fh, a, th, b, now, fw, tw) &&
      Whiteout(mid, post, Root(), owner, fh, a, now, h, na, w);
    assert Del(pre.nodes[fh.ino].body.names, a)[a := h.ino] == pre.nodes[fh.ino].body.names[a := h.ino];
  }
  // Nothing becomes of two names of one file.
  lemma OneFileStays(pre: FS, post: FS, owner: uint32, fh: Handle, a: Name, th: Handle, b: Name, now: Time, h: Handle)
    requires WhiteoutOk(pre, post, Root(), owner, fh, a, th, b, now, h) && SameFile(pre, fh, a, th, b)
    ensures post == pre
  { }
  // Who is not root does not leave any; root is never refused for that, nor because the name is taken.
  lemma LeftByRoot(pre: FS, post: FS, c: Caller, owner: uint32, fh: Handle, a: Name, th: Handle, b: Name, now: Time,
    h: Handle)
    ensures c.uid != 0 && !SameFile(pre, fh, a, th, b) ==> !WhiteoutOk(pre, post, c, owner, fh, a, th, b, now, h) &&
      WhiteoutErr(pre, c, fh, a, th, b, NFS3ERR_PERM)
    ensures (Flagless(pre) ==> !WhiteoutErr(pre, Root(), fh, a, th, b, NFS3ERR_PERM)) &&
      !WhiteoutErr(pre, c, fh, a, th, b, NFS3ERR_EXIST)
  { }
  predicate Flagless(f: FS)
  { forall i: uint64 {:trigger i in f.nodes} | i in f.nodes :: f.nodes[i].attr.flags == 0 }
  // Over the only name of a file that is open: the file stays, without a name.
  lemma LeftOverOpen(pre: FS, post: FS, owner: uint32, dh: Handle, a: Name, b: Name, h: Handle, now: Time, wh: Handle)
    requires OneName(pre, h, dh, b) && WhiteoutOpenOk(pre, post, Root(), owner, dh, a, dh, b, h, now, wh) &&
      !SameFile(pre, dh, a, dh, b)
    ensures Live(post, h) && post.nodes[h.ino].body == pre.nodes[h.ino].body
  { }
}
