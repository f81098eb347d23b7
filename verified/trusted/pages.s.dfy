// TRUSTED: what is in memory of the tree of codes. Go: internal/runtime/pages.
include "blockmap.s.dfy"
include "codes.s.dfy"

module {:extern "pages"} CodePages {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened DiskS
  import opened CodeTreeSpec
  import opened MapsOfBlocks
  import opened CodeLists

  // What is in memory of the tree: its root and some of its pages, of the newest version; and the codes of blocks that
  // went straight home and are not in the pages yet (held). Each call is atomic; versions are never taken back.
  class {:extern "Pages"} Pages {         // tested: pages.TestPages, TestHeld
    ghost const t: TreeGeo
    ghost const first: int        // where they lie
    ghost var vs: seq<seq<BV>>    // the pages, and the root, of every version so far: at the beginning zeros
    ghost var rs: seq<CV>
    ghost var held: map<int, CV>
    lemma {:axiom} Trees()
      ensures |vs| == |rs| > 0 && (t.np > 0 ==> forall v :: 0 <= v < |vs| ==> IsTree(t, vs[v], rs[v]))
    method {:extern "Root"} Root() returns (version: uint64, r0: uint64, r1: uint64)
      ensures |rs| == |vs| && version as int == |vs| - 1 && rs[version as int] == CV(r0, r1)
    method {:extern "Get"} Get(version: uint64, p: uint64) returns (b: Blk?)
      ensures b != null ==> version as int < |vs| && p as int < |vs[version as int]| &&
        b.v == vs[version as int][p as int] && InPlace(first, p as int, b.v)
    method {:extern "Put"} Put(version: uint64, p: uint64, b: Blk)
      requires version as int < |vs| && p as int < |vs[version as int]| && b.v == vs[version as int][p as int] &&
        InPlace(first, p as int, b.v)
    // the root, and the code of node x if it is held
    method {:extern "Look"} Look(x: uint64)
      returns (has: bool, c0: uint64, c1: uint64, version: uint64, r0: uint64, r1: uint64)
      ensures |rs| == |vs| && version as int == |vs| - 1 && rs[version as int] == CV(r0, r1) &&
        has == (x as int in held) && (has ==> held[x as int] == CV(c0, c1))
    method {:extern "HoldAll"} HoldAll(c: Codes)
      modifies this`held
      ensures forall x :: x in held <==> x in old(held) || exists i :: 0 <= i < |c.s| && c.s[i].x == x
      ensures forall x :: x in held ==>
        (x in old(held) && held[x] == old(held)[x]) || exists i :: 0 <= i < |c.s| && c.s[i] == Code(x, held[x])
    // the version that a header tells of
    method {:extern "Begin"} Begin(r0: uint64, r1: uint64, ghost pg: seq<BV>)
      requires t.np > 0 ==> IsTree(t, pg, CV(r0, r1))
      modifies this`vs, this`rs ensures vs == old(vs) + [pg] && rs == old(rs) + [CV(r0, r1)]
    // the next version: the codes of c, in the order of the nodes, are in its pages, which are nodes from n on; other
    // pages are what they were. The codes of the blocks of drop are held no longer; home is the address of node 0.
    method {:extern "Next"} Next(c: Codes, n: uint64, r0: uint64, r1: uint64, drop: BlockMap, home: uint64,
        ghost pg: seq<BV>)
      requires t.np > 0 ==> n as int == t.n && |vs| > 0 && IsTree(t, pg, CV(r0, r1)) && |vs[|vs| - 1]| == t.np &&
        forall p :: 0 <= p < t.np && pg[p] != vs[|vs| - 1][p] ==> exists i :: 0 <= i < |c.s| && c.s[i].x / 255 == p
      modifies this ensures vs == old(vs) + [pg] && rs == old(rs) + [CV(r0, r1)]
      ensures held == map x | x in old(held) && x + home as int !in drop.m :: old(held)[x]
  }
}
