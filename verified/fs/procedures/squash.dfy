include "permissions.dfy"
include "../spec/squash.s.dfy"
// From the credentials of a call to the caller of a procedure, by the rule of the export.
module SquashOps {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened Numbers
  import opened Marshal
  import opened Permissions
  import P = NfsPerm
  import S = NfsSquash

  const NOID: uint32 := 0xffff_ffff // nobody's number
  // root, all, anonUid, anonGid are the rule. known: the call has a user, uid, a group, gid,
  // and supplementary groups, gids, which stay as they are.
  method Squash(root: bool, all: bool, anonUid: uint32, anonGid: uint32, known: bool, uid: uint32, gid: uint32,
    gids: Bytes)
      returns (u: uint32, g: uint32, gs: Bytes)
    ensures P.Caller(u, g, Numbers32(gs.data), map[]) ==
      S.Squashed(S.Rule(root, all, anonUid, anonGid),
        if known then S.Somebody(P.Caller(uid, gid, Numbers32(gids.data), map[])) else S.Nobody)
    ensures fresh(gs)
  {
    if !known || all {
      u, g := anonUid, anonGid;
      gs := NewBytes(0);
      return;
    }
    u, g := uid, gid;
    if uid == NOID || (root && uid == 0) { u := anonUid; }
    if gid == NOID || (root && gid == 0) { g := anonGid; }
    gs := Groups(root, all, anonUid, anonGid, gids);
  }

  // the supplementary groups of such a call
  method Groups(root: bool, ghost all: bool, ghost anonUid: uint32, anonGid: uint32, gids: Bytes) returns (gs: Bytes)
    ensures fresh(gs) && Numbers32(gs.data) == S.SquashedGroups(S.Rule(root, all, anonUid, anonGid),
      Numbers32(gids.data))
  {
    ghost var r, ns := S.Rule(root, all, anonUid, anonGid), Numbers32(gids.data);
    var n: uint64 := gids.Len() / 4;
    var m := Count(r, gids);
    gs := NewBytes(4 * m);
    var i: uint64, j: uint64 := 0, 0;
    while i < n
      invariant 0 <= i <= n && n as int == |ns| && j as int == |S.SquashedGroups(r, ns[..i])| <= m as int &&
        |gs.data| == 4 * m as int
      invariant fresh(gs) && gs != gids && gids.data == old(gids.data)
      invariant forall k: int {:trigger U32At(gs.data, 4 * k)} | 0 <= k < j as int ::
        U32At(gs.data, 4 * k) == S.SquashedGroups(r, ns[..i])[k]
      decreases n - i
    {
      var x := gids.U32(4 * i);
      assert x == ns[i as int];
      Next(r, ns, i as int);
      if x != NOID {
        if root && x == 0 { x := anonGid; }
        ghost var before := gs.data;
        Put32(gs, 4 * j, x);
        forall k: int {:trigger U32At(gs.data, 4 * k)} | 0 <= k < j as int + 1
          ensures U32At(gs.data, 4 * k) == S.SquashedGroups(r, ns[..i + 1])[k]
        {
          if k < j as int { assert U32At(gs.data, 4 * k) == U32At(before, 4 * k); }
        }
        j := j + 1;
      }
      i := i + 1;
    }
    assert ns[..n] == ns;
    ghost var q := Numbers32(gs.data);
    forall k: int {:trigger q[k]} | 0 <= k < |q| ensures q[k] == S.SquashedGroups(r, ns)[k] {
      assert q[k] == U32At(gs.data, 4 * k);
    }
    assert q == S.SquashedGroups(r, ns);
  }

  // how many there will be
  method Count(ghost r: S.Rule, gids: Bytes) returns (m: uint64)
    ensures m as int == |S.SquashedGroups(r, Numbers32(gids.data))| <= |gids.data| / 4
  {
    ghost var ns := Numbers32(gids.data);
    var n: uint64 := gids.Len() / 4;
    var i: uint64 := 0;
    m := 0;
    while i < n
      invariant 0 <= i <= n && n as int == |ns| && m as int == |S.SquashedGroups(r, ns[..i])| && m <= i
      decreases n - i
    {
      var x := gids.U32(4 * i);
      assert x == ns[i as int];
      Next(r, ns, i as int);
      if x != NOID { m := m + 1; }
      i := i + 1;
    }
    assert ns[..n] == ns;
  }

  // what one group more adds
  lemma Next(r: S.Rule, ns: seq<uint32>, i: int)
    requires 0 <= i < |ns|
    ensures S.SquashedGroups(r, ns[..i + 1]) == S.SquashedGroups(r, ns[..i])
      + (if ns[i] == NOID then [] else [S.SquashedGroup(r, ns[i])])
    ensures |S.SquashedGroups(r, ns[..i + 1])| <= |S.SquashedGroups(r, ns)|
    decreases |ns| - i
  {
    assert ns[..i + 1][..i] == ns[..i];
    if i + 1 < |ns| { Next(r, ns, i + 1); } else { assert ns[..i + 1] == ns; }
  }
}
