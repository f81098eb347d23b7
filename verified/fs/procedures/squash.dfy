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

  // root, all, anonUid, anonGid are the rule. known: the call has a user, uid, a group, gid,
  // and supplementary groups, gids, which stay as they are.
  method Squash(root: bool, all: bool, anonUid: uint32, anonGid: uint32, known: bool, uid: uint32, gid: uint32, gids: Bytes)
      returns (u: uint32, g: uint32, gs: Bytes)
    ensures P.Caller(u, g, Numbers32(gs.data)) ==
      S.Squashed(S.Rule(root, all, anonUid, anonGid), if known then S.Somebody(P.Caller(uid, gid, Numbers32(gids.data))) else S.Nobody)
    ensures gs == gids || fresh(gs)
  {
    ghost var r := S.Rule(root, all, anonUid, anonGid);
    ghost var ns := Numbers32(gids.data);
    if !known || all {
      u, g := anonUid, anonGid;
      gs := NewBytes(0);
      return;
    }
    u, g, gs := uid, gid, gids;
    if !root {
      assert S.SquashedGroups(r, ns) == ns;
      return;
    }
    if uid == 0 { u := anonUid; }
    if gid == 0 { g := anonGid; }
    var n: uint64 := gids.Len() / 4;
    var out := NewBytes(4 * n);
    var i: uint64 := 0;
    while i < n
      invariant 0 <= i <= n && n as int == |ns| && |out.data| == 4 * n as int
      invariant fresh(out) && out != gids && gids.data == old(gids.data)
      invariant forall k: int {:trigger U32At(out.data, 4 * k)} | 0 <= k < i as int :: U32At(out.data, 4 * k) == S.SquashedGroup(r, ns[k])
      decreases n - i
    {
      var x := gids.U32(4 * i);
      assert x == ns[i as int];
      if x == 0 { x := anonGid; }
      ghost var before := out.data;
      Put32(out, 4 * i, x);
      forall k: int {:trigger U32At(out.data, 4 * k)} | 0 <= k < i as int + 1 ensures U32At(out.data, 4 * k) == S.SquashedGroup(r, ns[k])
      {
        if k < i as int { assert U32At(out.data, 4 * k) == U32At(before, 4 * k); }
      }
      i := i + 1;
    }
    gs := out;
    ghost var q := Numbers32(gs.data);
    assert |q| == |ns|;
    forall k: int {:trigger q[k]} | 0 <= k < |q| ensures q[k] == S.SquashedGroups(r, ns)[k] {
      assert q[k] == U32At(gs.data, 4 * k);
    }
    assert q == S.SquashedGroups(r, ns);
  }
}
