// What local.s.dfy says in cases that one can follow: a file of three blocks, of which the middle one is a hole.
include "local.s.dfy"
module NfsLocalScenarios {
  import opened Machine import opened ByteSpec import opened NfsState import opened NfsPerm import opened NfsCommon import opened NfsLocal

  function Root(): Caller { Caller(0, 0, []) }
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
      n.body.File? && n.body.data == pre.nodes[h.ino].body.data && n.body.held == {0, 1, 2} && n.blocks == 3 && n.attr.ctime == n.attr.mtime == Stamp(now, pre.nodes[h.ino].attr.ctime)
    ensures !AllocateErr(pre, Root(), h, 0, 4096, NFS3ERR_NOSPC)
  {
    var d := pre.nodes[h.ino].body.data;
    assert d[..12288] == d;
    assert Blocks(100, 5000) == {0, 1}; assert {0, 1} - {0, 2} == {1}; assert {0, 2} + {0, 1} == {0, 1, 2}; assert Blocks(0, 4096) == {0};
  }
  lemma RoomBehindTheEnd(pre: FS, post: FS, h: Handle, now: Time)
    requires Sparse(pre, h) && AllocateOk(pre, post, Root(), h, 12288, 1, now)
    ensures h.ino in post.nodes && var n := post.nodes[h.ino];
      n.body.File? && n.body.data == pre.nodes[h.ino].body.data + [0] && n.body.held == {0, 2, 3} && n.blocks == 3
  { assert Blocks(12288, 1) == {3}; assert {3} - {0, 2} == {3}; assert {0, 2} + {3} == {0, 2, 3}; assert Zeros(1) == [0]; }

  lemma FirstBlockTaken(pre: FS, post: FS, h: Handle, now: Time)
    requires Sparse(pre, h) && PunchOk(pre, post, Root(), h, 0, 2, 0, now)
    ensures h.ino in post.nodes && var n := post.nodes[h.ino];
      n.body.File? && n.body.data == Zeros(8192) + pre.nodes[h.ino].body.data[8192..] && n.body.held == {2} && n.blocks == 1
  {
    var d := pre.nodes[h.ino].body.data;
    assert d[..0] == [];
    assert Span(0, 2) == {0, 1}; assert {0, 2} * {0, 1} == {0}; assert {0, 2} - {0, 1} == {2};
  }

  // Whatever they do to a file, no block lies behind its end, holes are zeros, and it counts no fewer blocks than it has.
  lemma StillABody(c: Caller, n: Node, off: int, len: int, now: Time)
    requires n.body.File? && Held(n.body.data, n.body.held) && |n.body.held| <= n.blocks && 0 <= off && 0 < len
    ensures var m := Allocated(c, n, off, len, now); Held(m.body.data, m.body.held) && |m.body.held| <= m.blocks
    ensures var m := Punched(c, n, off, off + len, now); Held(m.body.data, m.body.held) && |m.body.held| <= m.blocks
  {
    var h, b, s := n.body.held, Blocks(off, len), Span(off, off + len);
    assert h + b == h + (b - h) && h !! (b - h);
    assert h == (h - s) + (h * s) && (h - s) !! (h * s);
  }
}
