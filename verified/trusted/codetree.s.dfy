// TRUSTED: the tree of codes of a volume, as values, and the assumption about codes. Without Go of its own:
// internal/runtime/seal makes codes, internal/runtime/pages has the tree's pages in memory.
include "disk.s.dfy"

// The tree of codes of a volume (verified/journal/codes.dfy): n home blocks, np pages. Node x < n is a home block,
// node n + p is page p, and the code of node x is in page x / 255.
module CodeTreeSpec {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened DiskS

  datatype CV = CV(c0: uint64, c1: uint64)
  datatype TreeGeo = TreeGeo(key: int, n: int, np: int)
  predicate TreeGeoOk(t: TreeGeo) { 1 <= t.np && 1 <= t.n <= 254 * t.np + 1 && 254 * t.np <= t.n + 252 }
  // c was at some time computed as the code of contents b of node x. THE ASSUMPTION: of two contents no code was the
  // same.
  predicate {:axiom} Coded(key: int, x: int, b: BV, c: CV)
  lemma {:axiom} OneContents(key: int, x: int, b: BV, b2: BV, c: CV)
    requires Coded(key, x, b, c) && Coded(key, x, b2, c) ensures b == b2
  // a code of zeros stands for zeros
  predicate Vouches(key: int, x: int, c: CV, b: BV) { if c == CV(0, 0) then b == Zeros(4096) else Coded(key, x, b, c) }
  predicate PagesOk(t: TreeGeo, pg: seq<BV>) {
    TreeGeoOk(t) && |pg| == t.np && forall p :: 0 <= p < t.np ==> |pg[p]| == 4096
  }
  function CodeAt(b: BV, k: int): CV
    requires |b| == 4096 && 0 <= k < 255
  { CV(U64At(b, 16 + 16 * k), U64At(b, 24 + 16 * k)) }
  function CodeIn(t: TreeGeo, pg: seq<BV>, x: int): CV
    requires PagesOk(t, pg) && 0 <= x < t.n + t.np - 1
  { CodeAt(pg[x / 255], x % 255) }
  // the pages pg are a tree whose root has the code r
  predicate IsTree(t: TreeGeo, pg: seq<BV>, r: CV) {
    PagesOk(t, pg) && Vouches(t.key, t.n + t.np - 1, r, pg[t.np - 1]) &&
    forall p :: 0 <= p < t.np - 1 ==> Vouches(t.key, t.n + p, CodeIn(t, pg, t.n + p), pg[p])
  }
  // page p, with contents b, was seen in the place that it says, or never written; its places are the blocks
  // first + 2 p and the one after it
  predicate InPlace(first: int, p: int, b: BV) {
    |b| == 4096 && (b == Zeros(4096) || Saw(first + 2 * p + U64At(b, 0) as int % 2, b))
  }
  predicate IsRoot(t: TreeGeo, r: CV) { t.np <= 0 || exists pg :: IsTree(t, pg, r) }
}
