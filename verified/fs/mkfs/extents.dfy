// How much of a volume's layout is there, and how more of it comes to be.
//
// Data blocks from dataEnd on, and inodes from inodeEnd on, are not there. What is below needs more than itself: its
// bits, and in the tree of codes the pages from its code up to the root. All of that is there (Serves).
include "../format/superblock.dfy"
module Extents {
  import opened Machine
  import opened VolumeGeometry
  import opened DeviceRuns
  import opened SuperblockFormat

  // pages of the tree of codes, for n home blocks
  datatype Tree = Tree(n: uint64, pages: uint64)
  function method TreeOf(s: Super): Tree
    requires s.geometry.inodeBitmap <= s.size
  { Tree(s.size - s.geometry.inodeBitmap, s.pages) }
  predicate TreeFits(t: Tree) {
    1 <= t.pages < 0x7FFF_FFFF && 1 <= t.n as int <= 254 * t.pages as int + 1 &&
    254 * t.pages as int <= t.n as int + 252
  }
  // The pages that have the codes of nodes lo to end - 1, and those above them, are there, in both places of each.
  predicate Known(r: Runs, t: Tree, lo: int, end: int)
    requires TreeFits(t)
    decreases t.pages as int - lo / 255
  {
    0 <= lo < end <= t.n as int + t.pages as int - 1 ==>
      var p, q := lo / 255, (end - 1) / 255;
      Covers(r, 1 + 2 * p, 3 + 2 * q) &&
      (p < t.pages as int - 1 ==>
        Known(r, t, t.n as int + p, t.n as int + (if q < t.pages as int - 1 then q + 1 else t.pages as int - 1)))
  }
  // Home blocks lo to end - 1 are there, and all that their codes are known by.
  predicate HomeThere(s: Super, r: Runs, lo: int, end: int)
    requires s.geometry.inodeBitmap <= s.size && TreeFits(TreeOf(s))
  {
    var home := s.geometry.inodeBitmap as int;
    Covers(r, lo, end) && Known(r, TreeOf(s), lo - home, end - home)
  }
  // All that a volume needs is there, if it has no data blocks from dataEnd on, and no inodes from inodeEnd on: the
  // superblock, the log, both bitmaps, inodes, records of replies, data, and the pages of their codes.
  predicate Serves(s: Super, r: Runs, dataEnd: int, inodeEnd: int)
    requires s.geometry.inodeBitmap <= s.size && TreeFits(TreeOf(s))
  { Rest(s, r, dataEnd, inodeEnd) && HomeThere(s, r, s.geometry.data0 as int, dataEnd) }
  // the same but for data
  predicate Rest(s: Super, r: Runs, dataEnd: int, inodeEnd: int)
    requires s.geometry.inodeBitmap <= s.size && TreeFits(TreeOf(s))
  {
    var g := s.geometry;
    There(r, 0) && Covers(r, 1 + 2 * s.pages as int, g.inodeBitmap as int) &&
    HomeThere(s, r, g.inodeBitmap as int, g.inodeBitmap as int + (inodeEnd + 32767) / 32768) &&
    HomeThere(s, r, g.blockBitmap as int + g.data0 as int / 32768, g.blockBitmap as int + (dataEnd + 32767) / 32768) &&
    HomeThere(s, r, g.inodeTable as int, g.inodeTable as int + (inodeEnd + 15) / 16) &&
    HomeThere(s, r, g.slot0 as int, g.data0 as int)
  }

  lemma Kept(r: Runs, u: Runs, lo: int, end: int)
    requires Grew(r, u) && Covers(r, lo, end)
    ensures Covers(u, lo, end)
  { forall x | lo <= x < end ensures There(u, x) { assert There(r, x); } }
  lemma KnownKept(r: Runs, u: Runs, t: Tree, lo: int, end: int)
    requires Grew(r, u) && TreeFits(t) && Known(r, t, lo, end)
    ensures Known(u, t, lo, end)
    decreases t.pages as int - lo / 255
  {
    if 0 <= lo < end <= t.n as int + t.pages as int - 1 {
      var p, q := lo / 255, (end - 1) / 255;
      Kept(r, u, 1 + 2 * p, 3 + 2 * q);
      if p < t.pages as int - 1 {
        Up(t, p);
        KnownKept(r, u, t, t.n as int + p, t.n as int + (if q < t.pages as int - 1 then q + 1 else t.pages as int - 1));
      }
    }
  }
  lemma Up(t: Tree, p: int)
    requires TreeFits(t) && 0 <= p < t.pages as int - 1
    ensures p < (t.n as int + p) / 255
  { }
  lemma HomeKept(s: Super, r: Runs, u: Runs, lo: int, end: int)
    requires s.geometry.inodeBitmap <= s.size && TreeFits(TreeOf(s)) && Grew(r, u) && HomeThere(s, r, lo, end)
    ensures HomeThere(s, u, lo, end)
  {
    Kept(r, u, lo, end);
    KnownKept(r, u, TreeOf(s), lo - s.geometry.inodeBitmap as int, end - s.geometry.inodeBitmap as int);
  }
  lemma GrewOn(r: Runs, s: Runs, t: Runs)
    requires Grew(r, s) && Grew(s, t)
    ensures Grew(r, t)
  {
    forall x {:trigger Where(t, 0, x)} ensures if Where(r, 0, x) != None then Where(t, 0, x) == Where(r, 0, x)
      else Where(t, 0, x) == None || Total(r) <= Where(t, 0, x).x
    { assert Where(s, 0, x) == Where(s, 0, x); }
  }

  method CoverKnown(r: Runs, t: Tree, lo: uint64, end: uint64) returns (ok: bool, u: Runs)
    requires Bounded(r) && Total(r) < BOUND as int && TreeFits(t) && t.n <= BOUND &&
      lo as int < end as int <= t.n as int + t.pages as int - 1
    ensures Bounded(u) && Total(u) < BOUND as int && Grew(r, u) && (ok ==> Known(u, t, lo as int, end as int))
    decreases t.pages as int - lo as int / 255
  {
    var p, q := lo / 255, (end - 1) / 255;
    ok, u := Cover(r, 1 + 2 * p, 3 + 2 * q);
    if !ok || p >= t.pages - 1 { return; }
    Up(t, p as int);
    var v;
    ok, v := CoverKnown(u, t, t.n + p, t.n + (if q < t.pages - 1 then q + 1 else t.pages - 1));
    if ok { Kept(u, v, 1 + 2 * p as int, 3 + 2 * q as int); }
    GrewOn(r, u, v);
    u := v;
  }
  method CoverHome(s: Super, r: Runs, lo: uint64, end: uint64) returns (ok: bool, u: Runs)
    requires Bounded(r) && Total(r) < BOUND as int && SuperOk(s) && s.size <= BOUND && TreeFits(TreeOf(s)) &&
      s.geometry.inodeBitmap <= lo < end < s.size
    ensures Bounded(u) && Total(u) < BOUND as int && Grew(r, u) && (ok ==> HomeThere(s, u, lo as int, end as int))
  {
    ok, u := Cover(r, lo, end);
    if !ok { return; }
    var v;
    ok, v := CoverKnown(u, TreeOf(s), lo - s.geometry.inodeBitmap, end - s.geometry.inodeBitmap);
    Kept(u, v, lo as int, end as int);
    GrewOn(r, u, v);
    u := v;
  }

  // Home blocks lo to end - 1 are there; those up to reach, too, if they fit.
  method CoverReach(s: Super, r: Runs, lo: uint64, end: uint64, reach: uint64) returns (ok: bool, u: Runs)
    requires Bounded(r) && Total(r) < BOUND as int && SuperOk(s) && s.size <= BOUND && TreeFits(TreeOf(s)) &&
      s.geometry.inodeBitmap <= lo <= end <= reach < s.size
    ensures Bounded(u) && Total(u) < BOUND as int && Grew(r, u) && (ok ==> HomeThere(s, u, lo as int, end as int))
  {
    ok, u := true, r;
    if lo < reach { ok, u := CoverHome(s, r, lo, reach); }
    if !ok || lo == end { return; }
    var v;
    ok, v := CoverHome(s, u, lo, end);
    GrewOn(r, u, v);
    u := v;
  }
  method CoverRest(s: Super, r: Runs, dataEnd: uint64, inodeEnd: uint64, dataReach: uint64, inodeReach: uint64)
    returns (ok: bool, u: Runs)
    requires Bounded(r) && Total(r) < BOUND as int && SuperOk(s) && s.size <= BOUND && TreeFits(TreeOf(s)) &&
      There(r, 0)
    requires s.geometry.data0 < dataEnd <= dataReach <= s.geometry.data1 &&
      16 < inodeEnd <= inodeReach <= s.geometry.ninode
    ensures Bounded(u) && Total(u) < BOUND as int && Grew(r, u) && (ok ==> Rest(s, u, dataEnd as int, inodeEnd as int))
  {
    var g := s.geometry;
    ok, u := Cover(r, 1 + 2 * s.pages, g.inodeBitmap);
    if !ok { return; }
    var v;
    ok, v := CoverReach(s, u, g.inodeBitmap, g.inodeBitmap + (inodeEnd + 32767) / 32768,
      g.inodeBitmap + (inodeReach + 32767) / 32768);
    GrewOn(r, u, v);
    if !ok { u := v; return; }
    var w;
    ok, w := CoverReach(s, v, g.blockBitmap + g.data0 / 32768, g.blockBitmap + (dataEnd + 32767) / 32768,
      g.blockBitmap + (dataReach + 32767) / 32768);
    GrewOn(r, v, w);
    if !ok { u := w; return; }
    var x;
    ok, x := CoverReach(s, w, g.inodeTable, g.inodeTable + (inodeEnd + 15) / 16, g.inodeTable + (inodeReach + 15) / 16);
    GrewOn(r, w, x);
    if !ok { u := x; return; }
    var y;
    ok, y := CoverReach(s, x, g.slot0, g.data0, g.data0);
    GrewOn(r, x, y);
    if !ok { u := y; return; }
    var z := y;
    ok, z := CoverKnown(y, TreeOf(s), g.data0 - g.inodeBitmap, dataReach - g.inodeBitmap);
    GrewOn(r, y, z);
    if ok {
      GrewOn(v, w, x); GrewOn(v, x, y); GrewOn(v, y, z); GrewOn(w, x, y); GrewOn(w, y, z); GrewOn(x, y, z);
      GrewOn(u, v, z);
      Kept(u, z, 1 + 2 * s.pages as int, g.inodeBitmap as int);
      HomeKept(s, v, z, g.inodeBitmap as int, g.inodeBitmap as int + (inodeEnd as int + 32767) / 32768);
      HomeKept(s, w, z, g.blockBitmap as int + g.data0 as int / 32768,
        g.blockBitmap as int + (dataEnd as int + 32767) / 32768);
      HomeKept(s, x, z, g.inodeTable as int, g.inodeTable as int + (inodeEnd as int + 15) / 16);
      HomeKept(s, y, z, g.slot0 as int, g.data0 as int);
      Kept(r, z, 0, 1);
    }
    u := z;
  }
  lemma RestKept(s: Super, r: Runs, u: Runs, dataEnd: int, inodeEnd: int)
    requires s.geometry.inodeBitmap <= s.size && TreeFits(TreeOf(s)) && Rest(s, r, dataEnd, inodeEnd) && Grew(r, u)
    ensures Rest(s, u, dataEnd, inodeEnd)
  {
    var g := s.geometry;
    Kept(r, u, 0, 1);
    Kept(r, u, 1 + 2 * s.pages as int, g.inodeBitmap as int);
    HomeKept(s, r, u, g.inodeBitmap as int, g.inodeBitmap as int + (inodeEnd + 32767) / 32768);
    HomeKept(s, r, u, g.blockBitmap as int + g.data0 as int / 32768, g.blockBitmap as int + (dataEnd + 32767) / 32768);
    HomeKept(s, r, u, g.inodeTable as int, g.inodeTable as int + (inodeEnd + 15) / 16);
    HomeKept(s, r, u, g.slot0 as int, g.data0 as int);
  }
  lemma FirstKept(r: Runs, u: Runs)
    requires r.Run? && r.at == 0 && Bounded(r) && Bounded(u) && Grew(r, u)
    ensures u.Run? && u.at == 0
  {
    assert Where(r, 0, 0) == Some(0);
    assert Where(u, 0, 0) == Some(0);
    if u.at != 0 { Within(u.later, u.n as int, 0); }
  }
  // are they more than a superblock has room for?
  method Many(r: Runs) returns (many: bool)
    ensures many <==> Count(r) > MAXRUNS as int
  {
    var n: uint64 := 0;
    var u := r;
    while u.Run? && n <= MAXRUNS
      invariant n <= MAXRUNS + 1 && n as int + Count(u) == Count(r)
      decreases u
    { n := n + 1; u := u.later; }
    many := n > MAXRUNS;
  }

  const NOROOM: uint32 := 1     // the layout has not so many blocks
  const MANYRUNS: uint32 := 2   // the superblock has no room for so many runs

  // Volume s with so much more that its data reach to dataEnd and its inodes to inodeEnd. What belongs to them is made
  // ready as far as dataReach and inodeReach, so that less has to come the next time. Data come first, and go on where
  // the others end, unless the volume is new.
  method Plan(s: Super, dataEnd: uint64, inodeEnd: uint64, dataReach: uint64, inodeReach: uint64, new_: bool)
    returns (why: uint32, t: Super)
    requires SuperOk(s) && s.extent.runs.Run? && TreeFits(TreeOf(s)) && s.extent.dataEnd <= dataEnd &&
      s.extent.inodeEnd <= inodeEnd
    requires dataEnd <= dataReach <= s.geometry.data1 && inodeEnd <= inodeReach <= s.geometry.ninode
    ensures why <= MANYRUNS && (why == 0 ==> SuperOk(t) && t == s.(extent := t.extent) &&
      t.extent.dataEnd == dataEnd && t.extent.inodeEnd == inodeEnd && Grew(s.extent.runs, t.extent.runs) &&
      Serves(t, t.extent.runs, dataEnd as int, inodeEnd as int))
  {
    t := s;
    why := NOROOM;
    var g := s.geometry;
    var r, u := s.extent.runs, s.extent.runs;
    var ok := true;
    if !new_ {
      ok, u := CoverHome(s, r, g.data0, dataEnd);
      if !ok { return; }
    }
    var v, w;
    ok, v := CoverRest(s, u, dataEnd, inodeEnd, dataReach, inodeReach);
    if !ok { return; }
    GrewOn(r, u, v);
    ok, w := CoverHome(s, v, g.data0, dataEnd);
    if !ok { return; }
    GrewOn(r, v, w);
    RestKept(s, v, w, dataEnd as int, inodeEnd as int);
    var room := Blocks(w);
    var many := Many(w);
    if room + 1 >= s.size { return; }
    if many { why := MANYRUNS; return; }
    FirstKept(r, w);
    t := s.(extent := Extent(room + 1, dataEnd, inodeEnd, w));
    why := 0;
  }
}
