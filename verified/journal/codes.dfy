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
// counts is not; what decides is the code, so that both are read. All pages that an installation changes change
// with the header: a crash before it leaves the tree as it was, and the log to install again.
// (The log is sealed by itself. Blocks that went straight home are covered by the seal of their group, and
// their codes are kept in memory, until the header passes the group.)
//
//   page:  0 which of its two places u64   8 zero u64   16 255 codes of 16 bytes
//
// A code of 0 stands for a block or page of zeros: a new volume's pages need not be written.
include "../trusted/log.s.dfy"

module TreeOfCodes {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened DiskS
  import opened LogS

  // np pages for n home blocks: room for the code of every node but the root
  predicate method PagesFit(n: uint64, np: uint64) {
    1 <= np < 0x8000_0000 && 1 <= n < 0x1_0000_0000_0000 && n <= 254 * np + 1 && 254 * np <= n + 252
  }
  class Tree {
    const d: Disk
    const seal: Seal
    const pages: Pages
    const first: uint64    // where the pages lie: page p in the blocks first + 2 p and the one after it
    const np: uint64       // pages; 0 = there is no tree, and nothing is looked at
    const home: uint64     // first home block
    const n: uint64        // home blocks
    constructor (d0: Disk, seal0: Seal, pages0: Pages, first0: uint64, np0: uint64, home0: uint64, n0: uint64)
      ensures d == d0 && seal == seal0 && pages == pages0 && first == first0 && np == np0 && home == home0 && n == n0
    { d := d0; seal := seal0; pages := pages0; first := first0; np := np0; home := home0; n := n0; }
    predicate Ok() {
      (np == 0 || PagesFit(n, np)) && first as int + 2 * np as int <= home as int && home as int + n as int < 0x8_0000_0000_0000
    }
    predicate Fits() reads d { Ok() && d.Valid() && |d.cur| == home as int + n as int }
  }

  // ---- pages ----
  function method Parent(t: Tree, p: uint64): (q: uint64)
    requires t.Ok() && p as int + 1 < t.np as int
    ensures p < q < t.np
  { (t.n + p) / 255 }
  // the code at place k
  method CodeAt(b: Blk, k: uint64) returns (c0: uint64, c1: uint64)
    requires |b.v| == 4096 && k < 255
  { c0 := b.U64(16 + 16 * k); c1 := b.U64(24 + 16 * k); }
  // are these the codes of contents b of node x?
  method Fit(t: Tree, x: uint64, b: Blk, c0: uint64, c1: uint64) returns (ok: bool)
    requires |b.v| == 4096
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
  // page p, whose code is c0, c1; !ok = neither of its places has it
  method Load(t: Tree, p: uint64, c0: uint64, c1: uint64) returns (ok: bool, b: Blk)
    requires t.Fits() && p < t.np
    ensures |b.v| == 4096
  {
    b := ZeroBlk();
    ok := true;
    if c0 == 0 && c1 == 0 { return; }
    var l;
    ok, l := t.d.ReadRun(t.first + 2 * p, 2);
    if ok {
      b := l.BlkAt(0);
      ok := Fit(t, t.n + p, b, c0, c1);
      if ok { return; }
      b := l.BlkAt(1);
      ok := Fit(t, t.n + p, b, c0, c1);
      return;
    }
    ok, b := LoadPlace(t, p, 1, c0, c1);      // it may be but the other that cannot be read
    if !ok { ok, b := LoadPlace(t, p, 0, c0, c1); }
  }
  // page p, whose code is c0, c1, if it is in the given one of its places
  method LoadPlace(t: Tree, p: uint64, place: uint64, c0: uint64, c1: uint64) returns (ok: bool, b: Blk)
    requires t.Fits() && p < t.np && place < 2
    ensures |b.v| == 4096
  {
    ok, b := t.d.Read(t.first + 2 * p + place);
    if ok { ok := Fit(t, t.n + p, b, c0, c1); } else { b := ZeroBlk(); }
  }
  // the lowest page that is in memory of those from p up to the root; if none is, the root, read
  method Known(t: Tree, p: uint64) returns (ok: bool, q: uint64, b: Blk, version: uint64)
    requires t.Fits() && p < t.np
    ensures |b.v| == 4096 && p <= q < t.np
  {
    q := p; ok := true;
    var r0, r1;
    version, r0, r1 := t.pages.Root();
    var c := t.pages.Get(q);
    while c == null && q + 1 < t.np
      invariant p <= q < t.np && (c != null ==> |c.v| == 4096)
      decreases t.np - q, c == null
    {
      q := Parent(t, q);
      c := t.pages.Get(q);
    }
    if c != null { b := c; return; }
    ok, b := Load(t, q, r0, r1);
    if ok { t.pages.Put(version, q, b); }
  }
  // The newest page p. !ok = page bad of those it depends on cannot be read, or is damaged.
  method Page(t: Tree, p: uint64) returns (ok: bool, b: Blk, bad: uint64)
    requires t.Fits() && p < t.np
    ensures |b.v| == 4096 && bad < t.np
  {
    var version;
    ok, bad, b, version := Known(t, p);
    while ok && bad != p
      invariant |b.v| == 4096 && p <= bad < t.np
      decreases bad, ok
    {
      var q := Towards(t, bad, p);
      var c0, c1 := CodeAt(b, (t.n + q) % 255);
      bad := q;
      ok, b := Load(t, q, c0, c1);
      if ok { t.pages.Put(version, q, b); }
    }
  }
  // of the pages from p up to q, the one before q
  method Towards(t: Tree, q: uint64, p: uint64) returns (r: uint64)
    requires t.Ok() && p < q < t.np
    ensures p <= r < q
  {
    r := p;
    while true
      invariant p <= r < q
      decreases q - r
    {
      var u := Parent(t, r);
      if u >= q { return; }
      r := u;
    }
  }
  // The code that block a must have. !ok = not known: page bad is damaged.
  method CodeOf(t: Tree, a: uint64) returns (ok: bool, c0: uint64, c1: uint64, bad: uint64)
    requires t.Fits() && t.np > 0 && t.home <= a && a as int < t.home as int + t.n as int
    ensures bad < t.np
  {
    var x := a - t.home;
    bad := 0;
    ok, c0, c1 := t.pages.Held(x);
    if ok { return; }
    var b;
    ok, b, bad := Page(t, x / 255);
    c0, c1 := CodeAt(b, x % 255);
  }
  // Is b what block a holds at home? If not, bad says which block is damaged: a, or one of the tree.
  method Genuine(t: Tree, a: uint64, b: Blk) returns (ok: bool, bad: uint64)
    requires t.Fits() && t.home <= a && a as int < t.home as int + t.n as int && |b.v| == 4096
  {
    if t.np == 0 { return true, a; }
    var c0, c1;
    ok, c0, c1, bad := CodeOf(t, a);
    if !ok { bad := t.first + 2 * bad; return; }
    ok := Fit(t, a - t.home, b, c0, c1);
    bad := a;
  }

  // ---- changes ----
  // Page p with the codes of c from the i-th on, as far as they belong there (i1: the first that does not),
  // and the address where it belongs.
  method Changed(t: Tree, c: Codes, i: uint64) returns (ok: bool, p: uint64, a: uint64, b: Blk, i1: uint64)
    requires t.Fits() && i as int < |c.s|
    ensures |b.v| == 4096 && i <= i1 && i1 as int <= |c.s|
    ensures ok ==> p < t.np && t.first <= a && a as int < t.first as int + 2 * t.np as int && i < i1
  {
    b := ZeroBlk();
    var x, _, _ := c.At(i);
    p := x / 255; a := 0; i1 := i;
    if p >= t.np { return false, p, a, b, i1; }
    var old_, bad;
    ok, old_, bad := Page(t, p);
    if !ok { a := t.first + 2 * bad; return; }
    var y := old_.Thaw();
    var n := c.Len();
    while i1 < n
      invariant i <= i1 && i1 as int <= n as int == |c.s| && |y.data| == 4096 && fresh(y)
      invariant i1 == i ==> c.s[i as int].x == x as int
    {
      var u, c0, c1 := c.At(i1);
      if u / 255 != p { break; }
      y.PutU64(16 + 16 * (u % 255), c0);
      y.PutU64(24 + 16 * (u % 255), c1);
      i1 := i1 + 1;
    }
    var place := 1 - y.U64(0) % 2;
    y.PutU64(0, place);
    a := t.first + 2 * p + place;
    b := Freeze(y);
  }
  // The code of page p with contents b: it is to change, too; or it is the new root's.
  method Upwards(t: Tree, c: Codes, p: uint64, b: Blk) returns (root: bool, c0: uint64, c1: uint64)
    requires t.Ok() && p < t.np && |b.v| == 4096
    modifies c
    ensures |old(c.s)| <= |c.s| <= |old(c.s)| + 1
  {
    c0, c1 := t.seal.Code(t.n + p, b);
    root := p + 1 == t.np;
    if !root { c.Add(t.n + p, c0, c1); }
  }
  // the codes of the blocks of l
  method AddList(t: Tree, c: Codes, l: BList)
    requires t.Ok() && |l.addrs| == |l.blks| < 0x8_0000_0000_0000 && forall i :: 0 <= i < |l.addrs| ==> t.home as int <= l.addrs[i]
    modifies c
    ensures |c.s| == |old(c.s)| + |l.addrs|
  {
    var n := l.Len();
    var i: uint64 := 0;
    while i < n
      invariant i <= n && |c.s| == |old(c.s)| + i as int
    {
      var a := l.AddrAt(i);
      var b := l.BlkAt(i);
      var c0, c1 := t.seal.Code(a - t.home, b);
      c.Add(a - t.home, c0, c1);
      i := i + 1;
    }
  }
}
