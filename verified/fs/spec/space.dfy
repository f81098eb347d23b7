// What the specification says of `used` in attributes: of a file it is not less than what its blocks take, nor more
// than what a file of its size takes without holes (Between); it is exact unless something that was cut off waits to be
// freed (Exact); and calls that cut nothing off let nothing wait (Writes, Grows): of a file that was never cut it is
// always exact.
include "nfs3.s.dfy"
module Space {
  import opened Machine
  import opened ByteSpec
  import opened NfsState
  import opened NfsPerm
  import opened NfsCommon
  import opened NfsData
  import NfsMake

  // the blocks that wait
  function Waiting(n: Node): int
    requires n.body.File?
  { n.blocks - |n.body.held| }
  // a file of a volume that can occur
  predicate Good(n: Node) { n.body.File? && Held(n.body.data, n.body.held) && |n.body.held| <= n.blocks }
  lemma GoodOf(f: FS, i: uint64)
    requires Sound(f) && IsFile(f, i)
    ensures Good(f.nodes[i])
  { assert Bodies(f); }

  lemma Between(n: Node)
    requires Good(n)
    ensures 4096 * |n.body.held| <= Used(n) < |n.body.data| + 4096
    ensures Used(n) == 0 ==> forall k: int | 0 <= k < |n.body.data| :: n.body.data[k] == 0
  {
    var h, all := n.body.held, (|n.body.data| + 4095) / 4096;
    forall b: int | b in h ensures 0 <= b < all { }
    Few(h, all);
    if Used(n) == 0 {
      assert |h| == 0 && h == {};
      forall k: int | 0 <= k < |n.body.data|
        ensures n.body.data[k] == 0 { if n.body.data[k] != 0 { assert k / 4096 in h; } }
    }
  }
  lemma Exact(n: Node)
    requires Good(n) && Waiting(n) == 0
    ensures Used(n) == 4096 * |n.body.held|
  {
    var h, all := n.body.held, (|n.body.data| + 4095) / 4096;
    forall b: int | b in h ensures 0 <= b < all { }
    Few(h, all);
  }
  // a cut shows at once, of a file without holes exactly
  lemma Cuts(c: Caller, n: Node, s: Sattr, now: Time, blocks: int)
    requires Good(n) && s.size.Some? && s.size.x as int < |n.body.data| && Leaves(n, s, blocks)
    ensures var m := SetNode(c, n, s, now, blocks);
      Used(m) <= Used(n) && Used(m) < s.size.x as int + 4096 && (s.size.x == 0 ==> Used(m) == 0) &&
        0 <= Waiting(m) <= Waiting(n) + |n.body.held| - |m.body.held|
  { }

  lemma Writes(c: Caller, n: Node, off: int, data: seq<byte>, now: Time)
    requires n.body.File? && 0 <= off
    ensures Waiting(Written(c, n, off, data, now)) == Waiting(n)
  {
    var h, b := n.body.held, Blocks(off, |data|);
    assert h + b == h + (b - h);
  }
  lemma Grows(c: Caller, n: Node, s: Sattr, now: Time, blocks: int)
    requires Good(n) && (s.size.Some? ==> s.size.x as int >= |n.body.data|) && Leaves(n, s, blocks)
    ensures Waiting(SetNode(c, n, s, now, blocks)) == Waiting(n)
  { if s.size.Some? { assert HeldBelow(n.body.held, s.size.x as int) == n.body.held; } }
  lemma Made(c: Caller, d: Node, how: uint32, s: Sattr, verf: uint64, now: Time)
    ensures Waiting(NfsMake.NewFile(c, d, how, s, verf, now)) == 0
  { }

  // numbers below n
  lemma Few(s: set<int>, n: int)
    requires 0 <= n && forall b: int {:trigger b in s} | b in s :: 0 <= b < n
    ensures |s| <= n
    decreases n
  {
    if n == 0 { assert s == {}; return; }
    var r := s - {n - 1};
    Few(r, n - 1);
    if n - 1 in s { assert s == r + {n - 1}; } else { assert s == r; }
  }
}
