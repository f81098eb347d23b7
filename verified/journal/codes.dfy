// The tree of codes: by it a block at home that is not what was last written there is told from
// one that is, whatever the device returns: rotten, zeroed, another block, or an old one.
//
// A code is a MAC of a block's contents and place. The codes of all home blocks lie in pages of one block, 255
// to a page; a page's own code lies in a page, too, and that of the last page, the root, in the
// header of the log. So nothing that is read is believed but the header. Nodes are numbered:
// 0..n are the home blocks, n+p is page p, and the code of node x is in page x / 255. So a page
// comes after what it has the codes of, but the root, which has none of its own.
//
// A page has two places side by side. A new version of it is written where the one that
// counts was not found, whatever that says of itself; what decides is the code, so that both are read. All pages that
// an installation changes change with the header: a crash before it leaves the tree as it was, and the log to install
// again. (The log is sealed by itself. Blocks that went straight home are covered by the seal of their group, and their
// codes are kept in memory, until the header passes the group.)
//
//   page:  0 which of its two places u64   8 zero u64   16 255 codes of 16 bytes
//
// A code of 0 stands for a block or page of zeros: a new volume's pages need not be written.
//
// What is proved here, of a device that may return anything: a page that is accepted is the newest
// one (Page), a block that is accepted has the code that the tree has of it (Genuine), and the pages that a
// change writes are a tree with exactly these codes changed (Changed, Upwards; codetree.dfy). And if the device has
// every page in the place that it says (Sitting), it is found, unless the device has erred, and what is written in its
// stead goes to the other place.
include "codetree.dfy"
include "../trusted/pages.s.dfy"
include "../trusted/seal.s.dfy"

module TreeOfCodes {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened Numbers
  import opened DiskS
  import opened CodeTreeSpec
  import opened MapsOfBlocks
  import opened CodeLists
  import opened CodePages
  import opened Seals
  import opened TreeModel

  // np pages for n home blocks: room for the code of every node but the root
  predicate method PagesFit(n: uint64, np: uint64) {
    1 <= np < 0x8000_0000 && 1 <= n < 0x1_0000_0000_0000 && n <= 254 * np + 1 && 254 * np <= n + 252
  }
  class Tree {
    const disk: Disk
    const seal: Seal
    const pages: Pages
    const first: uint64  // where the pages lie: page p in the blocks first + 2 p and the one after it
    const pageCount: uint64       // pages; 0 = there is no tree, and nothing is looked at
    const home: uint64       // first home block
    const homeCount: uint64  // home blocks
    constructor (d0: Disk, seal0: Seal, pages0: Pages, first0: uint64, np0: uint64, home0: uint64, n0: uint64)
      ensures disk == d0 && seal == seal0 && pages == pages0 && first == first0 && pageCount == np0 && home == home0 &&
        homeCount == n0
    { disk := d0; seal := seal0; pages := pages0; first := first0; pageCount := np0; home := home0; homeCount := n0; }
    predicate Ok() {
      (pageCount > 0 ==> PagesFit(homeCount, pageCount)) && first as int + 2 * pageCount as int <= home as int &&
        home as int + homeCount as int < 0x8_0000_0000_0000 &&
      seal.t == pages.t == TreeGeo(seal.key, homeCount as int, pageCount as int) && seal.home == home as int &&
        pages.first == first as int
    }
    predicate Fits() reads disk { Ok() && disk.Valid() && |disk.cur| == home as int + homeCount as int }
    // the newest pages, and the code of their root
    function Now(): seq<BV> reads pages`vs requires |pages.vs| > 0 { pages.vs[|pages.vs| - 1] }
    function Root(): CV reads pages`rs requires |pages.rs| > 0 { pages.rs[|pages.rs| - 1] }
  }

  // ---- reading ----
  function method Parent(t: Tree, p: uint64): (q: uint64)
    requires t.Ok() && p as int + 1 < t.pageCount as int
    ensures p < q < t.pageCount && q as int == Up(t.seal.t, p as int)
  { (t.homeCount + p) / 255 }
  method GetCode(b: Blk, k: uint64) returns (c0: uint64, c1: uint64)
    requires |b.v| == 4096 && k < 255
    ensures CV(c0, c1) == CodeAt(b.v, k as int)
  { c0 := b.U64(16 + 16 * k); c1 := b.U64(24 + 16 * k); }
  // is c0, c1 the code of contents b of node x?
  method Matches(t: Tree, x: uint64, b: Blk, c0: uint64, c1: uint64) returns (ok: bool)
    requires |b.v| == 4096
    ensures ok <==> Vouches(t.seal.key, x as int, CV(c0, c1), b.v)
  {
    if c0 == 0 && c1 == 0 {
      var z := ZeroBlk();
      ok := Same(b, z);
      return;
    }
    var d0, d1 := t.seal.Code(x, b);
    ok := c0 == d0 && c1 == d1;
  }
  method Same(b: Blk, c: Blk) returns (ok: bool)
    requires |b.v| == |c.v| == 4096
    ensures ok <==> b.v == c.v
  {
    var y := c.Thaw();
    ok := b.EqualAt(0, y);
    assert b.v[0..4096] == b.v;
  }
  // contents b of page p were seen in this place of it, or it was never written
  predicate Found(t: Tree, p: uint64, place: uint64, b: BV) {
    place < 2 && (b == Zeros(4096) || Saw(t.first as int + 2 * p as int + place as int, b))
  }
  // the device has the newest pages where they say
  predicate Sitting(t: Tree, poss: Poss) reads t.pages`vs, t.pages`rs {
    |t.pages.vs| == |t.pages.rs| > 0 && PagesAt(t.seal.t, t.first as int, poss, t.Now(), t.Root())
  }
  // page p, whose code is c0, c1, and the place where it was found; !ok = neither of its places has it. want: what has
  // this code
  method Load(t: Tree, p: uint64, c0: uint64, c1: uint64, ghost want: BV) returns (ok: bool, b: Blk, place: uint64)
    requires t.Fits() && p < t.pageCount && |want| == 4096 &&
      Vouches(t.seal.key, t.homeCount as int + p as int, CV(c0, c1), want)
    ensures |b.v| == 4096 && (ok ==> Vouches(t.seal.key, t.homeCount as int + p as int, CV(c0, c1), b.v) &&
      Found(t, p, place, b.v))
    ensures Sits(t.first as int, t.disk.poss, p as int, CV(c0, c1), want) ==> Erred(t.disk) ||
      (ok && place as int == SaidPlace(want))
  {
    b := ZeroBlk();
    ok := true; place := 0;
    if c0 == 0 && c1 == 0 { ZeroPlace(); return; }
    var l; ghost var honest;
    ok, l, honest := t.disk.ReadAny(t.first + 2 * p, 2);
    if !ok { ok, b := Place(t, p, 0, c0, c1); if !ok { place := 1; ok, b := Place(t, p, 1, c0, c1); } return; }
    ok, b, place := OneOf(t, p, l, c0, c1, want);
    assert Erred(t.disk) || (l.blks[0] in t.disk.poss[t.first as int + 2 * p as int] &&
      l.blks[1] in t.disk.poss[t.first as int + 2 * p as int + 1]);
  }
  // ... one of the blocks l that were read in its places; if both are it, that which is in the place that it says
  method OneOf(t: Tree, p: uint64, l: BList, c0: uint64, c1: uint64, ghost want: BV) returns (ok: bool, b: Blk,
    place: uint64)
    requires t.Fits() && p < t.pageCount && |want| == 4096 &&
      Vouches(t.seal.key, t.homeCount as int + p as int, CV(c0, c1), want)
    requires |l.blks| == 2 && KeepsAll(l, l) && forall i :: 0 <= i < 2 ==> |l.blks[i]| == 4096 &&
      Saw(t.first as int + 2 * p as int + i, l.blks[i])
    ensures |b.v| == 4096 && (ok ==> Vouches(t.seal.key, t.homeCount as int + p as int, CV(c0, c1), b.v) &&
      Found(t, p, place, b.v))
    ensures l.blks[SaidPlace(want)] == want ==> ok && place as int == SaidPlace(want)
  {
    b := l.BlkAt(0, l); place := 0;
    ok := Matches(t, t.homeCount + p, b, c0, c1);
    if ok {
      VouchOne(t.seal.key, t.homeCount as int + p as int, CV(c0, c1), b.v, want); if PlaceSaid(b) == 0 { return; }
    }
    var c := l.BlkAt(1, l);
    var also := Matches(t, t.homeCount + p, c, c0, c1);
    if also { ok, b, place := true, c, 1; }
  }
  // ... from one of its places: the other cannot be read
  method Place(t: Tree, p: uint64, place: uint64, c0: uint64, c1: uint64) returns (ok: bool, b: Blk)
    requires t.Fits() && p < t.pageCount && place < 2
    ensures |b.v| == 4096 && (ok ==> Vouches(t.seal.key, t.homeCount as int + p as int, CV(c0, c1), b.v) &&
      Found(t, p, place, b.v))
  {
    b := ZeroBlk();
    var l; ghost var honest;
    ok, l, honest := t.disk.ReadAny(t.first + 2 * p + place, 1);
    if !ok { return; }
    b := l.BlkAt(0, l);
    ok := Matches(t, t.homeCount + p, b, c0, c1);
  }
  // version is the newest one of the tree, and r0, r1 is its root
  predicate IsNewest(t: Tree, version: uint64, r0: uint64, r1: uint64) reads t.pages {
    |t.pages.vs| == |t.pages.rs| && version as int == |t.pages.vs| - 1 && t.Root() == CV(r0, r1) &&
      IsTree(t.seal.t, t.Now(), t.Root())
  }
  // Page p, which was found in this place, is remembered, if that is the one that it says: so that it is known
  // of what is in memory where it was found. (One in the other's place is read each time, until it is written again.)
  method Keep(t: Tree, version: uint64, p: uint64, place: uint64, b: Blk)
    requires t.Ok() && version as int < |t.pages.vs| && p as int < |t.pages.vs[version as int]| &&
      b.v == t.pages.vs[version as int][p as int]
    requires |b.v| == 4096 && Found(t, p, place, b.v)
  {
    var says := PlaceSaid(b);
    if says == place { t.pages.Put(version, p, b); }
  }
  // the place that a page says it is for
  function method PlaceSaid(b: Blk): (place: uint64)
    requires |b.v| == 4096
    ensures place < 2
  { b.U64(0) % 2 }
  // the lowest page that is in memory of those from p up to the root; if none is, the root, read
  method Known(t: Tree, p: uint64, version: uint64, r0: uint64, r1: uint64) returns (ok: bool, q: uint64, b: Blk,
    place: uint64)
    requires t.Fits() && p < t.pageCount && IsNewest(t, version, r0, r1)
    ensures |b.v| == 4096 && Above(t.seal.t, p as int, q as int) &&
      (ok ==> b.v == t.Now()[q] && Found(t, q, place, b.v))
    ensures Sitting(t, t.disk.poss) ==> Erred(t.disk) || (ok && place as int == SaidPlace(t.Now()[q]))
  {
    q := p; ok := true;
    var c := t.pages.Get(version, q);
    while c == null && q + 1 < t.pageCount
      invariant Above(t.seal.t, p as int, q as int) &&
        (c != null ==> c.v == t.Now()[q] && InPlace(t.pages.first, q as int, c.v))
      decreases t.pageCount - q, c == null
    {
      AboveUp(t.seal.t, p as int, q as int);
      q := Parent(t, q);
      c := t.pages.Get(version, q);
    }
    if c != null { b := c; place := PlaceSaid(b); return; }
    assert Sitting(t, t.disk.poss) ==>
      Sits(t.first as int, t.disk.poss, q as int, PageCode(t.seal.t, t.Now(), t.Root(), q as int), t.Now()[q]);
    ok, b, place := Load(t, q, r0, r1, t.Now()[q]);
    if ok {
      VouchOne(t.seal.key, t.homeCount as int + q as int, CV(r0, r1), b.v, t.Now()[q]);
      Keep(t, version, q, place, b);
    }
  }
  // Page p of the newest version, and where it was found. !ok = page bad of those it depends on cannot be read, or is
  // damaged.
  method Page(t: Tree, p: uint64, version: uint64, r0: uint64, r1: uint64) returns (ok: bool, b: Blk, place: uint64,
    bad: uint64)
    requires t.Fits() && p < t.pageCount && IsNewest(t, version, r0, r1)
    ensures |b.v| == 4096 && bad < t.pageCount && (ok ==> b.v == t.Now()[p] && Found(t, p, place, b.v))
    ensures Sitting(t, t.disk.poss) ==> Erred(t.disk) || (ok && place as int == SaidPlace(t.Now()[p]))
  {
    ok, bad, b, place := Known(t, p, version, r0, r1);
    while ok && bad != p
      invariant |b.v| == 4096 && Above(t.seal.t, p as int, bad as int) &&
        (ok ==> b.v == t.Now()[bad] && Found(t, bad, place, b.v))
      invariant Sitting(t, t.disk.poss) ==> Erred(t.disk) || (ok && place as int == SaidPlace(t.Now()[bad]))
      decreases bad, ok
    {
      var q := Towards(t, bad, p);
      var c0, c1 := GetCode(b, (t.homeCount + q) % 255);
      ghost var c := CodeIn(t.seal.t, t.Now(), t.homeCount as int + q as int);
      assert c == CV(c0, c1);
      bad := q;
      assert Sitting(t, t.disk.poss) ==>
        Sits(t.first as int, t.disk.poss, q as int, PageCode(t.seal.t, t.Now(), t.Root(), q as int), t.Now()[q]);
      ok, b, place := Load(t, q, c0, c1, t.Now()[q]);
      if ok {
        VouchOne(t.seal.key, t.homeCount as int + q as int, c, b.v, t.Now()[q]);
        Keep(t, version, q, place, b);
      }
    }
  }
  // of the pages from p up to q, the one before q
  method Towards(t: Tree, q: uint64, p: uint64) returns (r: uint64)
    requires t.Ok() && p < q < t.pageCount && Above(t.seal.t, p as int, q as int)
    ensures p <= r < q && Above(t.seal.t, p as int, r as int) && Up(t.seal.t, r as int) == q as int
  {
    r := p;
    while true
      invariant p <= r < q && Above(t.seal.t, p as int, r as int) && Above(t.seal.t, r as int, q as int)
      decreases q - r
    {
      var u := Parent(t, r);
      if u >= q { return; }
      AboveUp(t.seal.t, p as int, r as int);
      r := u;
    }
  }
  // the code of node x: that in memory if it went straight home since the last version of the tree, else that in the
  // tree
  function CodeNow(t: Tree, x: int): CV
    requires t.Ok() && 0 <= x < t.homeCount as int && |t.pages.vs| > 0 && PagesOk(t.seal.t, t.Now())
    reads t.pages
  { if x in t.pages.held then t.pages.held[x] else CodeIn(t.seal.t, t.Now(), x) }
  // The code that block a must have. !ok = not known: page bad is damaged. (One look at what is in memory decides which
  // version counts, and versions are never taken back: so what others do meanwhile does not matter.)
  method CodeOf(t: Tree, a: uint64) returns (ok: bool, c0: uint64, c1: uint64, bad: uint64)
    requires t.Fits() && t.pageCount > 0 && t.home <= a && a as int < t.home as int + t.homeCount as int
    ensures bad < t.pageCount && |t.pages.vs| == |t.pages.rs| > 0 && IsTree(t.seal.t, t.Now(), t.Root())
    ensures ok ==> CV(c0, c1) == CodeNow(t, a as int - t.home as int)
    ensures Sitting(t, t.disk.poss) ==> Erred(t.disk) || ok
  {
    var x := a - t.home;
    bad := 0;
    t.pages.Trees();
    var held, version, r0, r1;
    held, c0, c1, version, r0, r1 := t.pages.Look(x);
    if held { ok := true; return; }
    var b, place;
    ok, b, place, bad := Page(t, x / 255, version, r0, r1);
    c0, c1 := GetCode(b, x % 255);
  }
  // Is b what block a holds at home? If not, bad says which block is damaged: a, or one of the tree.
  method Genuine(t: Tree, a: uint64, b: Blk) returns (ok: bool, bad: uint64)
    requires t.Fits() && t.home <= a && a as int < t.home as int + t.homeCount as int && |b.v| == 4096
    ensures ok && t.pageCount > 0 ==> |t.pages.vs| == |t.pages.rs| > 0 && IsTree(t.seal.t, t.Now(), t.Root())
    ensures ok && t.pageCount > 0 ==>
      Vouches(t.seal.key, a as int - t.home as int, CodeNow(t, a as int - t.home as int), b.v)
    ensures !ok ==> t.pageCount > 0 &&
      (Sitting(t, t.disk.poss) ==> Erred(t.disk) ||
      !Vouches(t.seal.key, a as int - t.home as int, CodeNow(t, a as int - t.home as int), b.v))
  {
    if t.pageCount == 0 { return true, a; }
    var c0, c1;
    ok, c0, c1, bad := CodeOf(t, a);
    if !ok { bad := t.first + 2 * bad; return; }
    ok := Matches(t, a - t.home, b, c0, c1);
    bad := a;
  }

  // ---- changes ----
  lemma U64Spliced(s: seq<byte>, off: int, x: uint64, o: int)
    requires 0 <= off && off + 8 <= |s| && 0 <= o && o + 8 <= |s|
    ensures var r := Splice(s, off, Enc64(x)); |r| == |s| && (o == off ==> U64At(r, o) == x) &&
      (o + 8 <= off || off + 8 <= o ==> U64At(r, o) == U64At(s, o))
  {
    var r := Splice(s, off, Enc64(x));
    if o == off { assert r[o..o+8] == Enc64(x); }
    if o + 8 <= off || off + 8 <= o {
      forall k | o <= k < o + 8 ensures r[k] == s[k] {}
      assert r[o..o+8] == s[o..o+8];
    }
  }
  method PutCode(y: Bytes, k: uint64, c0: uint64, c1: uint64)
    requires |y.data| == 4096 && k < 255
    modifies y
    ensures |y.data| == 4096 && CodeAt(y.data, k as int) == CV(c0, c1)
    ensures forall q :: 0 <= q < 255 && q != k as int ==> CodeAt(y.data, q) == CodeAt(old(y.data), q)
  {
    ghost var s := y.data;
    y.PutU64(16 + 16 * k, c0);
    ghost var s1 := y.data;
    y.PutU64(24 + 16 * k, c1);
    U64Spliced(s, 16 + 16 * k as int, c0, 16 + 16 * k as int);
    U64Spliced(s1, 24 + 16 * k as int, c1, 16 + 16 * k as int);
    U64Spliced(s1, 24 + 16 * k as int, c1, 24 + 16 * k as int);
    forall q | 0 <= q < 255 && q != k as int ensures CodeAt(y.data, q) == CodeAt(s, q) {
      U64Spliced(s, 16 + 16 * k as int, c0, 16 + 16 * q); U64Spliced(s, 16 + 16 * k as int, c0, 24 + 16 * q);
      U64Spliced(s1, 24 + 16 * k as int, c1, 16 + 16 * q); U64Spliced(s1, 24 + 16 * k as int, c1, 24 + 16 * q);
    }
  }
  // says in a page which of its places it is for
  method PutPlace(y: Bytes, place: uint64)
    requires |y.data| == 4096
    modifies y
    ensures |y.data| == 4096 && U64At(y.data, 0) == place && forall q :: 0 <= q < 255 ==>
      CodeAt(y.data, q) == CodeAt(old(y.data), q)
  {
    ghost var s := y.data;
    y.PutU64(0, place);
    U64Spliced(s, 0, place, 0);
    forall q | 0 <= q < 255 ensures CodeAt(y.data, q) == CodeAt(s, q) {
      U64Spliced(s, 0, place, 16 + 16 * q); U64Spliced(s, 0, place, 24 + 16 * q);
    }
  }
  // a is a place of page p, and not that in which the newest version of it was seen, if that was ever written
  predicate Spares(t: Tree, p: uint64, a: uint64) reads t.pages`vs {
    |t.pages.vs| > 0 && p as int < |t.Now()| &&
      exists place :: a as int == t.first as int + 2 * p as int + 1 - place as int && Found(t, p, place, t.Now()[p])
  }
  // The page p of the i-th code of c with the codes from there on, as far as they belong there (j: the first that does
  // not), and the address where it is to be written.
  method Changed(t: Tree, c: Codes, i: uint64) returns (ok: bool, p: uint64, a: uint64, b: Blk, j: uint64)
    requires t.Fits() && t.pageCount > 0 && i as int < |c.s| && ListOk(t.seal.t, c.s)
    ensures |b.v| == 4096 && i <= j && j as int <= |c.s| && |t.pages.vs| == |t.pages.rs| > 0 &&
      IsTree(t.seal.t, t.Now(), t.Root())
    ensures ok ==> p < t.pageCount && Spares(t, p, a) && a as int == PlaceOf(t.first as int, p as int, b.v)
    ensures Sitting(t, t.disk.poss) ==> Erred(t.disk) ||
      (ok && a as int != PlaceOf(t.first as int, p as int, t.Now()[p]))
    ensures ok ==> Wrote(c.s, i as int, j as int, p as int, t.Now()[p], b.v)
  {
    b := ZeroBlk();
    var x, _, _ := c.At(i);
    p := x / 255; a := 0; j := i;
    t.pages.Trees();
    var version, r0, r1 := t.pages.Root();
    var old_, place, bad;
    ok, old_, place, bad := Page(t, p, version, r0, r1);
    if !ok { a := t.first + 2 * bad; return; }
    var y := old_.Thaw();
    j := Fill(c, i, p, y);
    ghost var s := y.data;
    PutPlace(y, 1 - place);
    a := t.first + 2 * p + (1 - place);
    b := Freeze(y);
  }
  // lays the codes from the i-th on that belong in page p over y
  method Fill(c: Codes, i: uint64, p: uint64, y: Bytes) returns (j: uint64)
    requires i as int < |c.s| && |y.data| == 4096 && Rising(c.s) && c.s[i].x >= 0 && c.s[i].x / 255 == p as int
    modifies y
    ensures i < j && Wrote(c.s, i as int, j as int, p as int, old(y.data), y.data)
  {
    j := i;
    var n := c.Len();
    while j < n
      invariant i <= j && j as int <= n as int == |c.s| && |y.data| == 4096
      invariant forall k :: i as int <= k < j as int ==> 0 <= c.s[k].x && c.s[k].x / 255 == p as int &&
        CodeAt(y.data, c.s[k].x % 255) == c.s[k].c
      invariant forall q :: 0 <= q < 255 && (forall k :: i as int <= k < j as int ==> c.s[k].x % 255 != q) ==>
        CodeAt(y.data, q) == CodeAt(old(y.data), q)
    {
      var u, c0, c1 := c.At(j);
      if u / 255 != p { break; }
      forall k | i as int <= k < j as int ensures c.s[k].x % 255 != u as int % 255 { assert c.s[k].x < c.s[j].x; }
      PutCode(y, u % 255, c0, c1);
      j := j + 1;
    }
  }
  // The code of page p with contents b: it is to change, too; or it is the new root's.
  method Upwards(t: Tree, c: Codes, p: uint64, b: Blk) returns (root: bool, c0: uint64, c1: uint64)
    requires t.Ok() && p < t.pageCount && |b.v| == 4096
    modifies c
    ensures Vouches(t.seal.key, t.homeCount as int + p as int, CV(c0, c1), b.v) &&
      root == (p as int == t.pageCount as int - 1)
    ensures c.s == if root then old(c.s) else old(c.s) + [Code(t.homeCount as int + p as int, CV(c0, c1))]
  {
    c0, c1 := t.seal.Code(t.homeCount + p, b);
    root := p + 1 == t.pageCount;
    if !root { c.Add(t.homeCount + p, c0, c1); }
  }
  // the pages pg, with the root r, are a tree, and but for the pages that the codes c are in the newest one
  predicate NextTree(t: Tree, c: Codes, r: CV, pg: seq<BV>) reads t.pages`vs, t.pages`rs, c {
    t.Ok() && IsRoot(t.seal.t, r) && (t.pageCount > 0 ==>
      |t.pages.vs| == |t.pages.rs| > 0 && IsTree(t.seal.t, pg, r) && |t.Now()| == t.pageCount as int &&
      forall p :: 0 <= p < t.pageCount as int && pg[p] != t.Now()[p] ==> exists i :: 0 <= i < |c.s| &&
        c.s[i].x / 255 == p)
  }
  // ... and becomes it; the codes of the blocks of drop, which it has, are held no longer
  method Advance(t: Tree, c: Codes, r0: uint64, r1: uint64, drop: BlockMap, ghost pg: seq<BV>)
    requires NextTree(t, c, CV(r0, r1), pg)
    modifies t.pages
    ensures t.pages.vs == old(t.pages.vs) + [pg] && t.pages.rs == old(t.pages.rs) + [CV(r0, r1)]
    ensures t.pages.held == map x | x in old(t.pages.held) && x + t.home as int !in drop.m :: old(t.pages.held)[x]
  {
    t.pages.Next(c, t.homeCount, r0, r1, drop, t.home, pg);
  }
  // one page of a change (Step, of the tree now)
  lemma Stepped(t: Tree, s: seq<Code>, i: int, W: set<int>, pg: seq<BV>, r: CV, j: int, p: int, b: BV, c: CV,
    s2: seq<Code>, r2: CV)
    requires t.Ok() && t.pageCount > 0 && |t.pages.vs| == |t.pages.rs| > 0
    requires Changing(t.seal.t, t.Now(), t.Root(), s, i, W, pg, r) && 0 <= p < t.pageCount as int &&
      Wrote(s, i, j, p, t.Now()[p], b)
    requires Vouches(t.seal.key, t.homeCount as int + p, c, b) && Passes(t.seal.t, s, p, c, r, s2, r2)
    ensures Changing(t.seal.t, t.Now(), t.Root(), s2, j, W + {p}, pg[p := b], r2)
  {
    assert s[i].x / 255 == p;
    if p in W { assert p < s[i].x / 255; }
    Step(t.seal.t, t.Now(), t.Root(), s, i, W, pg, r, j, p, b, c, s2, r2);
  }
  // the codes c.s[..i] of a change of the newest tree are done: the pages W are written, pg are the pages now, r is the
  // root
  predicate {:opaque} Halfway(t: Tree, c: Codes, i: int, W: set<int>, pg: seq<BV>, r: CV)
    reads t.pages`vs, t.pages`rs, c
    ensures Halfway(t, c, i, W, pg, r) ==> t.Ok() && t.pageCount > 0 && 0 <= i <= |c.s| && ListOk(t.seal.t, c.s)
  {
    t.Ok() && t.pageCount > 0 && |t.pages.vs| == |t.pages.rs| > 0 && IsTree(t.seal.t, t.Now(), t.Root()) &&
    Changing(t.seal.t, t.Now(), t.Root(), c.s, i, W, pg, r)
  }
  // all of them are
  lemma AllDone(t: Tree, c: Codes, W: set<int>, pg: seq<BV>, r: CV)
    requires Halfway(t, c, |c.s|, W, pg, r)
    ensures NextTree(t, c, r, pg) && PagesOk(t.seal.t, t.Now()) && PagesOk(t.seal.t, pg)
    ensures forall x :: 0 <= x < t.homeCount as int ==> CodeIn(t.seal.t, pg, x) == if x in Done(c.s) then Done(c.s)[x]
      else CodeIn(t.seal.t, t.Now(), x)
    ensures forall p :: 0 <= p < t.pageCount as int && p !in W ==> pg[p] == t.Now()[p] &&
      PageCode(t.seal.t, pg, r, p) == PageCode(t.seal.t, t.Now(), t.Root(), p)
  { reveal Halfway(); Ended(t.seal.t, t.Now(), t.Root(), c.s, W, pg, r); }
  twostate lemma Further(t: Tree, c: Codes, i: int, W: set<int>, pg: seq<BV>, r: CV, j: int, p: int, b: BV, k: CV,
    r2: CV)
    requires old(Halfway(t, c, i, W, pg, r)) && t.pages.vs == old(t.pages.vs) && t.pages.rs == old(t.pages.rs) &&
      0 <= p < t.pageCount as int
    requires 0 < |t.pages.vs| && p < |t.Now()| && Wrote(old(c.s), i, j, p, t.Now()[p], b)
    requires Vouches(t.seal.key, t.homeCount as int + p, k, b) && Passes(t.seal.t, old(c.s), p, k, r, c.s, r2)
    ensures p < |pg| && Halfway(t, c, j, W + {p}, pg[p := b], r2)
  {
    reveal Halfway();
    Stepped(t, old(c.s), i, W, pg, r, j, p, b, k, c.s, r2);
  }
  // the codes of the blocks of l, which k keeps
  method AddList(t: Tree, c: Codes, l: BList, ghost k: object)
    requires KeepsAll(k, l) && k != c
    requires t.Ok() && |l.addrs| == |l.blks| < 0x8_0000_0000_0000 && forall i :: 0 <= i < |l.addrs| ==>
      t.home as int <= l.addrs[i]
    modifies c
    ensures |c.s| == |old(c.s)| + |l.addrs| && c.s[..|old(c.s)|] == old(c.s)
    ensures forall i :: 0 <= i < |l.addrs| ==> var e := c.s[|old(c.s)| + i]; e.x == l.addrs[i] - t.home as int &&
      Vouches(t.seal.key, e.x, e.c, l.blks[i])
  {
    var n := l.Len();
    var i: uint64 := 0;
    while i < n
      invariant i <= n && |c.s| == |old(c.s)| + i as int && c.s[..|old(c.s)|] == old(c.s) && KeepsAll(k, l)
      invariant forall x :: 0 <= x < i as int ==> var e := c.s[|old(c.s)| + x]; e.x == l.addrs[x] - t.home as int &&
        Vouches(t.seal.key, e.x, e.c, l.blks[x])
    {
      var a := l.AddrAt(i);
      var b := l.BlkAt(i, k);
      var c0, c1 := t.seal.Code(a - t.home, b);
      c.Add(a - t.home, c0, c1);
      i := i + 1;
    }
  }
}
