// mkfs and recovery. Recovery makes both headers the same, replays the log (it writes the
// newest contents of every logged block home), then empties the log, for a new epoch. That begins behind all numbers
// which groups may have that a crash left behind the log's end: none of them can be given again. A crash
// at any moment of it leaves an image that recovers to the same state. It writes no direct block of a group that it may
// find valid (model.dfy, Clear): so what it finds valid does not change while it runs.
include "scan.dfy"

module RecoverM {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened DiskS
  import opened CodeTreeSpec
  import opened RecordSpec
  import opened MapsOfBlocks
  import opened Mutexes
  import opened Caches
  import opened CodeLists
  import opened Seals
  import opened Ring
  import opened LogModel
  import opened LogSteps
  import opened Groups
  import opened JournalM
  import opened RecoverImages
  import opened LogScan
  import opened TreeModel
  import opened TreeOfCodes
  import opened TreeSaid

  // a new life: with an epoch that nobody had
  twostate predicate Anew(seal: Seal) reads seal
  { seal.ep !in old(seal.epochs) && seal.epochs == old(seal.epochs) + {seal.ep} }

  // Writes the pages of the tree that change by the codes cs, of the direct blocks of the log ms, and those of its
  // blocks, mm. r0, r1: the new root.
  method UpdateTree(d: Disk, t: Tree, cs: Codes, mm: BlockMap, ghost p: Geo, ghost hb: BV, ghost ms: seq<BM>,
    ghost w: St, ghost v: St, ghost sg: set<Rec>) returns (io: bool, r0: uint64, r1: uint64, ghost pg: seq<BV>)
    requires Fit(d, p) && TreeFor(t, d, t.seal, p.headerAt, Home(p), |d.cur|) && RecOK(p, d.cur, v, sg) &&
      d.ok == OkSet(p, [v], 0, sg) && Alone(d) && p.tree == t.seal.t && p.key == t.seal.key
    requires mm.Ok() && InHome(Home(p), mm.m, |d.cur|) && mm.m == Merge(ms) && RecBy(p, d.cur, hb, ms, w, v, sg)
    requires t.pageCount > 0 ==> |t.pages.vs| == |t.pages.rs| > 0 && TreeSays(p, t.Now(), t.Root(), w) &&
      DirCodes(p, d.cur, DecHdr(p.key, hb).q, |ms|, cs.s)
    modifies d, cs
    ensures d.Valid() && d.ok == old(d.ok) && |d.cur| == |old(d.cur)| && d.owner == old(d.owner)
    ensures io ==> Still(d) && forall a :: p.headerAt <= a < |d.cur| ==> d.cur[a] == old(d.cur)[a]
    ensures !io ==> t.pageCount > 0 && (d.bad || Erred(d) || !old(Sitting(t, d.poss)))
    ensures io && t.pageCount > 0 ==> Erred(d) || !old(Sitting(t, d.poss)) ||
      PagesAt(t.seal.t, t.first as int, d.poss, pg, CV(r0, r1))
    ensures io ==> NextTree(t, cs, CV(r0, r1), pg) &&
      (t.pageCount > 0 ==> TreeSays(p, pg, CV(r0, r1), Recovered(p, old(d.cur), DecHdr(p.key, hb).q, ms, w)))
  {
    ghost var c := d.cur;
    var version;
    t.pages.Trees();
    version, r0, r1 := t.pages.Root();
    pg := t.Now();
    io := true;
    if t.pageCount == 0 { return; }
    ghost var w2 := Recovered(p, c, DecHdr(p.key, hb).q, ms, w);
    forall a | IsDir(p, c, DecHdr(p.key, hb).q, |ms|, a) ensures a !in Merge(ms) {
      DirSame(p, c, c, DecHdr(p.key, hb).q, ms, sg, a);
    }
    LogCodes(t, cs, mm, p, c, DecHdr(p.key, hb).q, ms, w);
    ghost var s := cs.s;
    forall x | Beside(t, c, x) ensures x in d.ok { PagesCrash(p, c, x, v, sg); }
    ghost var W;
    io, r0, r1, W, pg := UpdatePages(d, t, cs);
    if io { Restated(p, t, cs, s, W, pg, CV(r0, r1), w, w2); }
  }
  // ... for whatever it is done. The room of the tree alone is written to.
  method UpdatePages(d: Disk, t: Tree, cs: Codes) returns (io: bool, r0: uint64, r1: uint64, ghost W: set<int>,
    ghost pg: seq<BV>)
    requires t.Fits() && t.disk == d && t.pageCount > 0 && |t.pages.vs| == |t.pages.rs| > 0 && Still(d) && Alone(d)
    requires ListOk(t.seal.t, cs.s) && forall k :: 0 <= k < |cs.s| ==> cs.s[k].x < t.homeCount as int
    requires forall s :: Beside(t, d.cur, s) ==> s in d.ok
    modifies d, cs
    ensures d.Valid() && d.ok == old(d.ok) && |d.cur| == |old(d.cur)| && d.owner == old(d.owner)
    ensures io ==> Still(d) && Beside(t, old(d.cur), d.cur)
    ensures !io ==> d.bad || Erred(d) || !old(Sitting(t, d.poss))
    ensures io ==> Erred(d) || !old(Sitting(t, d.poss)) || PagesAt(t.seal.t, t.first as int, d.poss, pg, CV(r0, r1))
    ensures io ==> Halfway(t, cs, |cs.s|, W, pg, CV(r0, r1)) && WithPages(old(cs.s), cs.s, t.homeCount as int)
  {
    ghost var c := d.cur; ghost var s := cs.s;
    var version;
    t.pages.Trees();
    version, r0, r1 := t.pages.Root();
    pg := t.Now();
    io := true;
    Started(t, cs, pg, CV(r0, r1));
    W := {};
    ghost var top := 0;
    var i: uint64 := 0; var n := cs.Len();
    while i < n
      invariant 0 <= top <= t.pageCount as int && (forall x :: x in W ==> x < top) && (top == 0 || top - 1 in W)
      invariant Erred(d) || !old(Sitting(t, d.poss)) || (Sitting(t, d.poss) && PagesWritten(t, d.cur, W, pg))
      invariant i <= n && n as int == |cs.s| && Halfway(t, cs, i as int, W, pg, CV(r0, r1)) &&
        WithPages(s, cs.s, t.homeCount as int)
      invariant d.Valid() && d.ok == old(d.ok) && |d.cur| == |c| && d.owner == old(d.owner) && LogIs(d, c, t)
      decreases t.pageCount as int - top
    {
      io, i, r0, r1, W, pg, top := UpdatePage(d, t, cs, i, r0, r1, W, pg, s, c, top);
      if !io { return; }
      n := cs.Len();
    }
    AllDone(t, cs, W, pg, CV(r0, r1));
    ghost var poss := d.poss;
    io := d.Barrier(Recovering);
    if io && !Erred(d) && old(Sitting(t, d.poss)) { PagesThere(t, poss, d.poss, d.cur, W, pg, CV(r0, r1)); }
  }
  // the pages that were written, durably, and those that were not: all sit
  lemma PagesThere(t: Tree, poss: Poss, poss2: Poss, c: Img, W: set<int>, pg: seq<BV>, r: CV)
    requires t.Ok() && t.pageCount > 0 && Sitting(t, poss) && PagesWritten(t, c, W, pg) && |poss2| == |poss| == |c| &&
      PagesOk(t.seal.t, pg)
    requires (forall a :: 0 <= a < |c| ==> poss2[a] <= poss[a] && poss2[a] == iset{c[a]})
    requires forall p :: 0 <= p < t.pageCount as int && p !in W ==> pg[p] == t.Now()[p] &&
      PageCode(t.seal.t, pg, r, p) == PageCode(t.seal.t, t.Now(), t.Root(), p)
    ensures PagesAt(t.seal.t, t.first as int, poss2, pg, r)
  {
    PagesLess(t.seal.t, t.first as int, poss, poss2, t.Now(), t.Root());
    forall x | 0 <= x < t.pageCount as int ensures Sits(t.first as int, poss2, x, PageCode(t.seal.t, pg, r, x), pg[x]) {
      if x in W { assert poss2[PlaceOf(t.first as int, x, pg[x])] == iset{c[PlaceOf(t.first as int, x, pg[x])]}; }
      else { assert Sits(t.first as int, poss2, x, PageCode(t.seal.t, t.Now(), t.Root(), x), t.Now()[x]); }
    }
  }
  // s and c are the same but in the room of the tree
  predicate Beside(t: Tree, c: Img, s: Img) { |s| == |c| && forall a :: 0 <= a < |c| && !InTree(t, a) ==> s[a] == c[a] }
  predicate InTree(t: Tree, a: int) { t.first as int <= a < t.first as int + 2 * t.pageCount as int }
  // the pages W of pg are on the device where they say
  predicate PagesWritten(t: Tree, c: Img, W: set<int>, pg: seq<BV>) {
    forall x :: x in W ==> 0 <= x < |pg| && |pg[x]| == 4096 && 0 <= PlaceOf(t.first as int, x, pg[x]) < |c| &&
      c[PlaceOf(t.first as int, x, pg[x])] == pg[x]
  }
  // Adds the codes of the blocks of the log, mm, to those of its direct blocks.
  method LogCodes(t: Tree, cs: Codes, mm: BlockMap, ghost p: Geo, ghost c: Img, ghost q: int, ghost ms: seq<BM>,
    ghost w: St)
    requires t.Ok() && t.pageCount > 0 && Fits(p, c) && p.key == t.seal.key && t.home as int == Home(p) &&
      |c| == Home(p) + t.homeCount as int
    requires mm.Ok() && InHome(Home(p), mm.m, |c|) && mm.m == Merge(ms) && DirCodes(p, c, q, |ms|, cs.s) &&
      w.Keys == HomeOf(p, c).Keys
    requires forall a :: IsDir(p, c, q, |ms|, a) ==> a !in Merge(ms)
    modifies cs
    ensures ListOk(t.seal.t, cs.s) && (forall k :: 0 <= k < |cs.s| ==> cs.s[k].x < t.homeCount as int) &&
      Restates(cs.s, Home(p), p.key, w, Recovered(p, c, q, ms, w))
  {
    var l := mm.Sorted();
    SortedLen(l.addrs, |c|);
    AddList(t, cs, l, mm);
    ghost var s := cs.s; ghost var w2 := Recovered(p, c, q, ms, w); ghost var n := |old(cs.s)|;
    forall i, e | 0 <= i < |l.addrs| && e in old(cs.s) ensures e.x != l.addrs[i] - Home(p) {
      assert l.addrs[i] in mm.m;
    }
    forall e | e in s ensures e.x + Home(p) in w2 && Vouches(p.key, e.x, e.c, w2[e.x + Home(p)]) {
      var k :| 0 <= k < |s| && s[k] == e;
      if k < n { assert old(cs.s)[k] == e; assert e in old(cs.s); } else {
        assert s[n + (k - n)] == e; assert l.addrs[k - n] in mm.m;
      }
    }
    forall a | a in w2 && (forall e :: e in s ==> e.x != a - Home(p)) ensures a in w && w2[a] == w[a] {
      if a in mm.m { assert a in l.addrs; var k :| 0 <= k < |l.addrs| && l.addrs[k] == a; assert s[n + k] in s; }
      if IsDir(p, c, q, |ms|, a) {
        var e :| e in old(cs.s) && e.x == a - Home(p); var k :| 0 <= k < n && old(cs.s)[k] == e; assert s[..n][k] == e;
        assert s[k] in s;
      }
    }
    OneOfEach(old(cs.s), s, l.addrs, Home(p));
    cs.Sort();
    SortedRises(s, cs.s);
    forall k | 0 <= k < |cs.s| ensures 0 <= cs.s[k].x < t.homeCount as int { assert cs.s[k] in s; }
  }
  // s2 is s and codes of the blocks with the addresses l, of which s has none
  lemma OneOfEach(s: seq<Code>, s2: seq<Code>, l: seq<int>, home: int)
    requires Single(s) && |s2| == |s| + |l| && s2[..|s|] == s && forall i :: 0 <= i < |l| ==>
      s2[|s| + i].x == l[i] - home
    requires (forall i, k :: 0 <= i < k < |l| ==> l[i] < l[k]) && forall i, e :: 0 <= i < |l| &&
      e in s ==> e.x != l[i] - home
    ensures Single(s2)
  {
    forall k, m | 0 <= k < m < |s2| ensures s2[k].x != s2[m].x {
      if k < |s| { assert s2[k] == s[k] && s[k] in s; } else { assert s2[k] == s2[|s| + (k - |s|)]; }
      if m < |s| { assert s2[m] == s[m]; } else { assert s2[m] == s2[|s| + (m - |s|)]; }
    }
  }
  // but for the tree the device holds c, durably
  predicate LogIs(d: Disk, c: Img, t: Tree) reads d {
    |d.cur| == |d.poss| == |c| && forall a :: 0 <= a < |c| && !InTree(t, a) ==> d.poss[a] == iset{c[a]} &&
      d.cur[a] == c[a]
  }
  lemma Started(t: Tree, cs: Codes, pg: seq<BV>, r: CV)
    requires t.Ok() && t.pageCount > 0 && |t.pages.vs| == |t.pages.rs| > 0 && pg == t.Now() && r == t.Root() &&
      IsTree(t.seal.t, pg, r)
    requires ListOk(t.seal.t, cs.s) && forall k :: 0 <= k < |cs.s| ==> cs.s[k].x < t.homeCount as int
    ensures Halfway(t, cs, 0, {}, pg, r)
  { reveal Halfway(); Begun(t.seal.t, pg, r, cs.s); }
  // one page of it: that of the i-th code
  method UpdatePage(d: Disk, t: Tree, cs: Codes, i: uint64, q0: uint64, q1: uint64, ghost W0: set<int>,
    ghost pg0: seq<BV>, ghost s0: seq<Code>, ghost c: Img, ghost top0: int)
    returns (io: bool, j: uint64, r0: uint64, r1: uint64, ghost W: set<int>, ghost pg: seq<BV>, ghost top: int)
    requires t.Fits() && t.disk == d && LogIs(d, c, t) && Alone(d) && forall s :: Beside(t, c, s) ==> s in d.ok
    requires i as int < |cs.s| && Halfway(t, cs, i as int, W0, pg0, CV(q0, q1)) &&
      WithPages(s0, cs.s, t.homeCount as int)
    requires 0 <= top0 <= t.pageCount as int && (forall y :: y in W0 ==> y < top0) && (top0 == 0 || top0 - 1 in W0)
    modifies d, cs
    ensures !io ==> d.bad || Erred(d) || !old(Sitting(t, d.poss))
    ensures io ==> top0 < top <= t.pageCount as int && (forall y :: y in W ==> y < top) && top - 1 in W
    ensures io ==> Erred(d) || !(old(Sitting(t, d.poss)) && old(PagesWritten(t, d.cur, W0, pg0))) ||
      (Sitting(t, d.poss) && PagesWritten(t, d.cur, W, pg))
    ensures d.Valid() && d.ok == old(d.ok) && |d.cur| == |old(d.cur)| && d.owner == old(d.owner)
    ensures io ==> LogIs(d, c, t) && j as int <= |cs.s| && Halfway(t, cs, j as int, W, pg, CV(r0, r1)) &&
      WithPages(s0, cs.s, t.homeCount as int)
  {
    r0, r1, W, pg, top := q0, q1, W0, pg0, top0;
    var x, a, b;
    io, x, a, b, j := Changed(t, cs, i);
    if !io { return; }
    NextUp(t, cs, i as int, W0, pg0, CV(q0, q1), x as int, top0);
    io := PutPage(d, t, x, a, b, W0, pg0, c);
    if !io { return; }
    var root, c0, c1 := Upwards(t, cs, x, b);
    if root { r0, r1 := c0, c1; }
    Further(t, cs, i as int, W0, pg0, CV(q0, q1), j as int, x as int, b.v, CV(c0, c1), CV(r0, r1));
    W := W0 + {x as int}; pg := pg0[x as int := b.v]; top := x as int + 1;
  }
  // ... it is written: b, which is page x, to block a
  method PutPage(d: Disk, t: Tree, x: uint64, a: uint64, b: Blk, ghost W0: set<int>, ghost pg0: seq<BV>, ghost c: Img)
    returns (io: bool)
    requires t.Fits() && t.disk == d && LogIs(d, c, t) && Alone(d) && forall s :: Beside(t, c, s) ==> s in d.ok
    requires x < t.pageCount && |pg0| == t.pageCount as int && |b.v| == 4096 && Spares(t, x, a) &&
      a as int == PlaceOf(t.first as int, x as int, b.v) && forall y :: y in W0 ==> y < x as int
    requires |t.pages.vs| == |t.pages.rs| > 0 && IsTree(t.seal.t, t.Now(), t.Root())
    requires Sitting(t, d.poss) ==> Erred(d) || a as int != PlaceOf(t.first as int, x as int, t.Now()[x])
    modifies d
    ensures d.Valid() && d.ok == old(d.ok) && |d.cur| == |old(d.cur)| && d.owner == old(d.owner)
    ensures if io then LogIs(d, c, t) else d.bad
    ensures io ==> Erred(d) || !(old(Sitting(t, d.poss)) && old(PagesWritten(t, d.cur, W0, pg0))) ||
      (Sitting(t, d.poss) && PagesWritten(t, d.cur, W0 + {x as int}, pg0[x as int := b.v]))
  {
    ghost var q := Fuzzy(d.poss, a as int, 1);
    forall s | CrashImg(q, s) ensures s in d.ok {
      forall y | 0 <= y < |c| && !InTree(t, y) ensures s[y] == c[y] { assert s[y] in q[y]; }
    }
    ghost var poss, cur := d.poss, d.cur;
    io := d.Write(Recovering, a, b, null, null);
    if !io { return; }
    Spared(t, poss, cur, d.poss, d.cur, W0, pg0, x as int, a as int, b.v);
  }
  // what the write of page x does to the newest tree, and to the pages written before: nothing
  lemma Spared(t: Tree, poss: Poss, cur: Img, poss2: Poss, cur2: Img, W: set<int>, pg: seq<BV>, x: int, a: int, b: BV)
    requires t.Ok() && 0 <= x < t.pageCount as int == |pg| && |b| == 4096 &&
      a == PlaceOf(t.first as int, x, b) < |cur| == |poss| == |cur2| && poss2 == Fuzzy(poss, a, 1) &&
      (forall y :: y in W ==> y < x)
    requires cur2[a] == b && forall y :: 0 <= y < |cur| && y != a ==> cur2[y] == cur[y]
    ensures Sitting(t, poss) && x < |t.Now()| && |t.Now()[x]| == 4096 && a != PlaceOf(t.first as int, x, t.Now()[x]) ==>
      Sitting(t, poss2)
    ensures PagesWritten(t, cur, W, pg) ==> PagesWritten(t, cur2, W + {x}, pg[x := b])
  {
    if Sitting(t, poss) && a != PlaceOf(t.first as int, x, t.Now()[x]) {
      PagesSpare(t.seal.t, t.first as int, poss, t.Now(), t.Root(), x, b);
    }
  }
  // a page that is to be written lies above all that were
  lemma NextUp(t: Tree, cs: Codes, i: int, W: set<int>, pg: seq<BV>, r: CV, x: int, top: int)
    requires Halfway(t, cs, i, W, pg, r) && i < |cs.s| && cs.s[i].x / 255 == x && (top == 0 || top - 1 in W)
    ensures top <= x && |pg| == t.pageCount as int && forall y :: y in W ==> y < x
  { reveal Halfway(); }
  method InstallAll(d: Disk, mm: BlockMap, ghost p: Geo, ghost hb: BV, ghost ms: seq<BM>, ghost w: St, ghost v: St,
    ghost sg: set<Rec>) returns (io: bool)
    requires Fit(d, p) && RecBy(p, d.cur, hb, ms, w, v, sg) && Heads(p, d.cur, hb) && mm.Ok() &&
      InHome(Home(p), mm.m, |d.cur|) && mm.m == Merge(ms)
    requires d.ok == OkSet(p, [v], 0, sg) && Alone(d)
    modifies d
    ensures d.Valid() && d.ok == old(d.ok) && |d.cur| == |old(d.cur)| && d.owner == old(d.owner)
    ensures io ==> Still(d) && Installed(p, old(d.cur), d.cur, ms) && d.bad == old(d.bad)
    ensures (io ==> forall a :: 0 <= a < Home(p) ==> d.cur[a] == old(d.cur)[a]) && (!io ==> d.bad)
  {
    ghost var c := d.cur;
    var l := mm.Sorted();
    SortedLen(l.addrs, |d.cur|);
    assert Lists(l, mm.m, Home(p), |c|);
    var n := l.Len();
    var k: uint64 := 0;
    while k < n
      invariant 0 <= k <= n && n as int == |l.addrs| && d.Valid() && d.ok == old(d.ok) && |d.cur| == |c| &&
        d.bad == old(d.bad) && d.owner == old(d.owner)
      invariant forall a :: 0 <= a < |c| && a !in mm.m ==> d.poss[a] == iset{c[a]} && d.cur[a] == c[a]
      invariant forall x :: 0 <= x < k as int ==> d.cur[l.addrs[x]] == l.blks[x]
    {
      var a, m := Adjacent(l, k);
      forall x | a as int <= x < a as int + m as int ensures x in mm.m && x < |c| {
        assert l.addrs[k as int + (x - a as int)] == x;
      }
      assert l.addrs[k as int + m as int - 1] == a as int + (m as int - 1);
      ghost var q := Fuzzy(d.poss, a as int, m as int);
      forall s | CrashImg(q, s) ensures s in d.ok { InstCrash(p, c, s, q, hb, ms, w, v, sg); }
      io := d.WriteRun(Recovering, a, l, mm, k, m, null, null);
      if !io { return; }
      forall x | 0 <= x < k as int + m as int ensures d.cur[l.addrs[x]] == l.blks[x] {
        if x >= k as int { assert l.addrs[x] == a as int + (x - k as int); }
        else { assert l.addrs[x] < l.addrs[k as int]; }
      }
      k := k + m;
    }
    io := d.Barrier(Recovering);
    if !io { return; }
    forall a | Home(p) <= a < |c| ensures d.cur[a] == if a in Merge(ms) then Merge(ms)[a] else c[a] {
      if a in mm.m {
        assert a in l.addrs; var i :| 0 <= i < |l.addrs| && l.addrs[i] == a; assert d.cur[a] == l.blks[i];
      }
    }
  }
  // The header to start from: that with the larger number. The device may return anything for the two, but is believed
  // in what it holds at the place that is chosen: no seal tells an old header from a new one. null = there is none.
  method Choose(d: Disk, seal: Seal, at: uint64, cp: uint64, ghost p: Geo) returns (io: bool, hb: Blk?, h: uint64,
    ghost honest: bool)
    requires Fit(d, p) && p.headerAt == at as int && Copy(p) == cp as int && p.key == seal.key &&
      HdrWf(p.key, d.cur[p.headerAt]) && HdrWf(p.key, d.cur[Copy(p)])
    ensures hb != null ==> (hb.v == d.cur[p.headerAt] || hb.v == d.cur[Copy(p)]) && h as int == DecHdr(p.key, hb.v).q
    ensures (io && honest ==> hb != null) && ((io && honest) || Erred(d))
  {
    hb := null; h := 0;
    var i1, ok1, q1, h1 := HeaderIn(d, seal, at, p);
    var i2, ok2, q2, h2 := HeaderIn(d, seal, cp, p);
    io := i1 || i2; honest := h1 && h2;
    if !ok1 && !ok2 { return; }
    var l; ghost var g;
    io, l, g := ReadLog(d, true, if ok1 && (!ok2 || q1 >= q2) then at else cp, 1);
    if !io { return; }
    hb := l.BlkAt(0, l);
    var ok;
    ok, h := seal.DecHdrM(hb);
    if !ok { hb := null; }
  }
  // the number of the header at block a, as the device returns it
  method HeaderIn(d: Disk, seal: Seal, a: uint64, ghost p: Geo) returns (io: bool, ok: bool, q: uint64,
    ghost honest: bool)
    requires Fit(d, p) && a as int < |d.cur| && p.key == seal.key && HdrWf(p.key, d.cur[a])
    ensures (io && honest ==> ok) && ((io && honest) || Erred(d))
  {
    var b;
    ok, q := false, 0;
    io, b, honest := d.Read(a);
    if io { ok, q := seal.DecHdrM(b); }
  }
  // Both headers become hb, one after the other, so that one is always whole.
  method WriteHeads(d: Disk, hb: Blk, at: uint64, cp: uint64, ghost p: Geo) returns (io: bool)
    requires Fit(d, p) && p.headerAt == at as int && Copy(p) == cp as int && HdrTail(d.cur[p.headerAt]) &&
      HdrTail(d.cur[Copy(p)]) && HdrTail(hb.v)
    requires Alone(d) && forall s :: Between(p, d.cur, s, hb.v) ==> s in d.ok
    modifies d
    ensures d.Valid() && d.ok == old(d.ok) && |d.cur| == |old(d.cur)| && d.owner == old(d.owner)
    ensures if io then Still(d) && d.cur == old(d.cur)[p.headerAt := hb.v][Copy(p) := hb.v] else d.bad
  {
    ghost var c := d.cur;
    io := WriteHead(d, hb, at, p);
    if !io { return; }
    forall s | Between(p, d.cur, s, hb.v) ensures s in d.ok { assert Between(p, c, s, hb.v); }
    io := WriteHead(d, hb, cp, p);
  }
  method WriteHead(d: Disk, hb: Blk, a: uint64, ghost p: Geo) returns (io: bool)
    requires Fit(d, p) && (a as int == p.headerAt || a as int == Copy(p)) && HdrTail(d.cur[a]) && HdrTail(hb.v)
    requires Alone(d) && forall s :: Between(p, d.cur, s, hb.v) ==> s in d.ok
    modifies d
    ensures d.Valid() && d.ok == old(d.ok) && |d.cur| == |old(d.cur)| && d.owner == old(d.owner)
    ensures if io then Still(d) && d.cur == old(d.cur)[a as int := hb.v] else d.bad
  {
    ghost var c := d.cur;
    ghost var q := d.poss[a as int := d.poss[a as int] + iset{hb.v}];
    forall s | CrashImg(q, s) ensures s in d.ok {
      forall x | 0 <= x < |c| && x != a as int ensures s[x] == c[x] { assert s[x] in q[x]; }
      assert s[a as int] in q[a as int];
      assert Between(p, c, s, hb.v);
    }
    io := d.WriteSector(Recovering, a, hb, null, null);
    if !io { return; }
    io := d.Barrier(Recovering);
  }
  // The state that the journal begins with (w1), and what is torn in it: blocks whose contents are not what the tree
  // says. Without a tree what is at home is believed.
  predicate Begins(p: Geo, c: Img, v: St, w: St, w1: St, torn: set<int>) {
    Fits(p, c) && Agree(p, v, w1) && w1.Keys == HomeOf(p, c).Keys &&
      (forall a :: a in torn ==> a in p.torn || FreeIn(p, v, a)) && torn == Differ(c, w1) &&
    if p.tree.np > 0 then w1 == w else torn == {}
  }
  ghost method Beginning(p: Geo, c: Img, v: St, w: St) returns (w1: St, torn: set<int>)
    requires Fits(p, c) && HomeIs(p, c, v, w) && Agree(p, v, w) && w.Keys == HomeOf(p, c).Keys &&
      (p.tree.np <= 0 ==> p.torn == {})
    ensures Begins(p, c, v, w, w1, torn)
  {
    w1 := if p.tree.np > 0 then w else HomeOf(p, c);
    torn := Differ(c, w1);
  }
  // Empties the log: both headers become those of a new epoch, from number q on. c: the image before
  // the log was installed, with header hb. The tree with the root r0, r1 says what is home now.
  method Empty(d: Disk, seal: Seal, q: uint64, r0: uint64, r1: uint64, at: uint64, cp: uint64, ghost p: Geo,
    ghost c: Img, ghost hb: BV, ghost ms: seq<BM>, ghost w: St, ghost v: St) returns (io: bool, ghost w1: St,
    ghost torn: set<int>)
    requires Fit(d, p) && p.headerAt == at as int && Copy(p) == cp as int && p.key == seal.key && p.tree == seal.t &&
      RecBy(p, c, hb, ms, w, v, seal.signed) && Heads(p, d.cur, hb)
    requires q as int == DecHdr(p.key, hb).q + |ms| + Window && q < 0x1FFF_0000_0000_0000 &&
      d.ok == OkSet(p, [v], 0, seal.signed)
    requires Installed(p, c, d.cur, ms) && Alone(d) &&
      Says(p, CV(r0, r1), Recovered(p, c, DecHdr(p.key, hb).q, ms, w)) && (p.tree.np <= 0 ==> p.torn == {})
    modifies d, seal
    ensures d.Valid() && d.ok == old(d.ok) && |d.cur| == |c| && d.owner == old(d.owner) &&
      seal.signed == old(seal.signed)
    ensures Anew(seal)
    ensures io ==> Begins(p, d.cur, v, Recovered(p, c, DecHdr(p.key, hb).q, ms, w), w1, torn) &&
      Full(d.poss, G0(p.(epoch := seal.ep, torn := torn), seal.signed, q as int, w1, CV(r0, r1)))
    ensures if io then Still(d) && forall a :: 0 <= a < p.headerAt ==> d.cur[a] == old(d.cur)[a] else d.bad
  {
    ghost var c2 := d.cur;
    ghost var w2 := Recovered(p, c, DecHdr(p.key, hb).q, ms, w);
    w1, torn := w2, {};
    seal.NewEpoch();
    assert IsRoot(seal.t, CV(r0, r1)) by { IsRootOf(p, CV(r0, r1), w2); }
    var nb := seal.EncHdr(q, r0, r1);
    forall s | Between(p, d.cur, s, nb.v) ensures s in d.ok {
      EmptyCrash(p, c, c2, s, hb, ms, w, v, nb.v, w2, seal.signed);
    }
    io := WriteHeads(d, nb, at, cp, p);
    if !io { return; }
    assert Installed(p, c, d.cur, ms);
    InstalledIs(p, c, d.cur, hb, ms, w, v, seal.signed);
    LogPast(p, c, DecHdr(p.key, hb).q, ms, seal.signed);
    w1, torn := Beginning(p, d.cur, v, w2);
    ghost var p1 := p.(epoch := seal.ep, torn := torn);
    SaysEp(p, p1, CV(r0, r1), w2);
    assert HomeOf(p1, d.cur).Keys == HomeOf(p, d.cur).Keys;
    InitFull(p1, d.poss, d.cur, q as int, w1, CV(r0, r1), seal.signed);
  }
  // Opens the volume: any state of the device that a crash may leave, also of the process
  // alone, which may leave writes that can be read and are not durable: hence the barrier,
  // without which a crash of the machine might take away in the middle of the replay what
  // the replay has found. The volume recovers to one of the states vs0[lb0..], but for what
  // is free in it. !io = a device error (or 2^32 - 1 groups, more than a log has room for),
  // null = a log header that is none.
  method Recover(d: Disk, seal: Seal, mu: Mutex, cache: Cache, t: Tree, at: uint64, nd: uint64, nr: uint64, bit: uint64,
    flo: uint64, fhi: uint64,
    maxPin: uint64, instAt: uint64, ghost vs0: seq<St>, ghost lb0: int, ghost torn0: set<int>) returns (io: bool,
      damaged: bool, j: Journal?, ghost honest: bool)
    requires var p := GeoOf(seal.key, seal.ep, at, nd, nr, bit, flo, fhi, seal.t, torn0); GeoOk(p) &&
      maxPin < 0x1_0000_0000 && d.Valid() && |d.cur| >= Home(p) && 0 <= lb0 && d.ok == OkSet(p, vs0, lb0, seal.signed)
    requires cache.m == map[] && d.owner == map[] &&
      TreeFor(t, d, seal, at as int, at as int + 2 + 16 * nd as int + nr as int, |d.cur|) && t.pages.held == map[] &&
      (t.pageCount == 0 ==> torn0 == {})
    modifies d, seal, t.pages
    // it has an epoch that nobody had, so that others can be told from it
    ensures j != null ==> Anew(seal)
    ensures j != null ==> j.Inv() && j.disk == d && j.seal == seal && j.mutex == mu && j.cache == cache &&
      j.tree == t && j.durableIndex == 0 && j.logger.phase == NoLogger && j.installer.phase == NoInstall
    ensures j != null ==> |j.states| == 1 && exists n :: lb0 <= n < |vs0| &&
      var p := GeoOf(seal.key, seal.ep, at, nd, nr, bit, flo, fhi, seal.t, torn0);
      Agree(p, vs0[n], j.states[0]) && forall a :: a in j.layout.torn ==> a in torn0 || FreeIn(p, vs0[n], a)
    ensures j != null ==> j.headerAt == at && j.units == nd && j.ringSize == nr && j.bitmapAt == bit &&
      j.allocFrom == flo && j.allocEnd == fhi && j.maxPin == maxPin && j.instAt == instAt && !j.failed
    ensures j != null ==> fresh(j) && fresh(j.logger) && fresh(j.installer) && fresh(j.running) && fresh(j.logged) &&
      fresh(j.frozen) && fresh(j.frozenDirect) && fresh(j.installing) && fresh(j.loggedDirect) &&
      fresh(j.installingDirect) && fresh(j.repr)
    ensures (damaged ==> !honest) && seal.signed == old(seal.signed)
    ensures io && honest ==> j != null ||
      OutOfNumbers(seal.key, at as int, at as int + 1 + 16 * nd as int + nr as int, old(d.cur))
    ensures (io && honest) || d.bad || Erred(d) ||
      !HeadersSit(GeoOf(seal.key, seal.ep, at, nd, nr, bit, flo, fhi, seal.t, torn0), t.first as int, old(d.cur))
    ensures j != null ==> Erred(d) ||
      !HeadersSit(GeoOf(seal.key, seal.ep, at, nd, nr, bit, flo, fhi, seal.t, torn0), t.first as int, old(d.cur)) ||
      j.whole
    ensures d.Valid() && forall s :: s in d.ok ==> s in old(d.ok)
  {
    ghost var p := GeoOf(seal.key, seal.ep, at, nd, nr, bit, flo, fhi, seal.t, torn0);
    j := null; damaged := false; honest := true;
    d.Take(Recovering, set a | 0 <= a < |d.cur|);
    io := d.Barrier(Recovering);
    if !io { return; }
    assert CrashImg(d.poss, d.cur);
    ghost var n := Recovers(p, d.cur, vs0, lb0, seal.signed);
    ghost var v := vs0[n];
    AtRest(p, d.poss, d.cur, vs0, lb0, n, seal.signed);
    d.SetOk(OkSet(p, [v], 0, seal.signed));
    io, damaged, j, honest := Replay(d, seal, mu, cache, t, at, nd, nr, bit, flo, fhi, maxPin, instAt, p, v);
    if j != null {
      ghost var p2 := GeoOf(seal.key, seal.ep, at, nd, nr, bit, flo, fhi, seal.t, torn0);
      AgreeEp(p, p2, v, j.states[0]);
      forall a ensures FreeIn(p2, v, a) == FreeIn(p, v, a) { reveal FreeIn(); }
    }
  }
  ghost method Recovers(p: Geo, s: Img, vs: seq<St>, lb: int, sg: set<Rec>) returns (n: int)
    requires 0 <= lb && s in OkSet(p, vs, lb, sg)
    ensures lb <= n < |vs| && RecOK(p, s, vs[n], sg)
  {
    reveal OkSet();
    n :| lb <= n < |vs| && RecOK(p, s, vs[n], sg);
  }
  // one of the headers has a number beyond those that groups get: no recovery goes on from there
  predicate OutOfNumbers(key: int, at: int, cp: int, c: Img)
  {
    exists a :: 0 <= a < |c| && (a == at || a == cp) && DecHdr(key, c[a]).Hdr? &&
      DecHdr(key, c[a]).q >= 0x1000_0000_0000_0000
  }
  // Recovery of a device that is at rest. d.cur recovers to v.
  method Replay(d: Disk, seal: Seal, mu: Mutex, cache: Cache, t: Tree, at: uint64, nd: uint64, nr: uint64, bit: uint64,
    flo: uint64, fhi: uint64,
    maxPin: uint64, instAt: uint64, ghost p: Geo, ghost v: St) returns (io: bool, damaged: bool, j: Journal?,
      ghost honest: bool)
    requires p == GeoOf(seal.key, seal.ep, at, nd, nr, bit, flo, fhi, seal.t, p.torn) && GeoOk(p) &&
      maxPin < 0x1_0000_0000 && Fit(d, p)
    requires TreeFor(t, d, seal, p.headerAt, Home(p), |d.cur|) && t.pages.held == map[] &&
      (t.pageCount == 0 ==> p.torn == {})
    requires RecOK(p, d.cur, v, seal.signed) && d.ok == OkSet(p, [v], 0, seal.signed) && cache.m == map[] && Alone(d) &&
      forall x, a :: Owns(d.owner, x, a) ==> x == Recovering
    modifies d, seal, t.pages
    // it has an epoch that nobody had, so that others can be told from it
    ensures j != null ==> Anew(seal)
    ensures j != null ==> j.Inv() && j.disk == d && j.seal == seal && j.mutex == mu && j.cache == cache &&
      j.tree == t && j.durableIndex == 0 && j.logger.phase == NoLogger && j.installer.phase == NoInstall
    ensures j != null ==> |j.states| == 1 && Agree(p, v, j.states[0]) && forall a :: a in j.layout.torn ==>
      a in p.torn || FreeIn(p, v, a)
    ensures j != null ==> j.headerAt == at && j.units == nd && j.ringSize == nr && j.bitmapAt == bit &&
      j.allocFrom == flo && j.allocEnd == fhi && j.maxPin == maxPin && j.instAt == instAt && !j.failed
    ensures j != null ==> fresh(j) && fresh(j.logger) && fresh(j.installer) && fresh(j.running) && fresh(j.logged) &&
      fresh(j.frozen) && fresh(j.frozenDirect) && fresh(j.installing) && fresh(j.loggedDirect) &&
      fresh(j.installingDirect) && fresh(j.repr)
    ensures (damaged ==> !honest && d.cur == old(d.cur) && d.poss == old(d.poss)) && seal.signed == old(seal.signed)
    ensures io && honest ==> j != null || OutOfNumbers(seal.key, p.headerAt, Copy(p), old(d.cur))
    ensures (io && honest) || d.bad || Erred(d) || !HeadersSit(p, t.first as int, old(d.cur))
    ensures j != null ==> Erred(d) || !HeadersSit(p, t.first as int, old(d.cur)) || j.whole
    ensures d.Valid() && forall s :: s in d.ok ==> s in old(d.ok)
  {
    j := null; damaged := false; honest := true;
    var sz := d.Size();
    var cp := at + 1 + 16 * nd + nr;
    var hb, h;
    io, hb, h, honest := Choose(d, seal, at, cp, p);
    if hb == null || h >= 0x1000_0000_0000_0000 { return; }
    ghost var q := Under(p, hb.v);
    ghost var ms, w :| RecBy(q, d.cur, hb.v, ms, w, v, seal.signed);
    var r0, r1 := seal.Root(hb);
    var cs := NewCodes();
    ghost var pg :| t.pageCount > 0 ==> TreeSays(q, pg, CV(r0, r1), w);
    t.pages.Begin(r0, r1, pg);
    t.pages.Trees();
    if t.pageCount > 0 && HeadersSit(p, t.first as int, d.cur) {
      OnSits(t.seal.t, t.first as int, d.cur, d.poss, pg, CV(r0, r1));
    }
    var mm, i; ghost var g;
    io, damaged, mm, i, g := Scan(d, seal, t, cs, hb, h, at, nd, nr, sz, q, ms, w, v);
    honest := honest && g;
    if !io || damaged { return; }
    io, j := Rebuild(d, seal, mu, cache, t, cs, hb, h + i + WINDOW, mm, sz, at, nd, nr, bit, flo, fhi, maxPin, instAt,
      p, ms, w, v);
  }
  // The journal over the device, whose log, ms, is installed and emptied; it goes on with number e.
  method Rebuild(d: Disk, seal: Seal, mu: Mutex, cache: Cache, t: Tree, cs: Codes, hb: Blk, e: uint64, mm: BlockMap,
    sz: uint64, at: uint64, nd: uint64, nr: uint64, bit: uint64, flo: uint64, fhi: uint64,
    maxPin: uint64, instAt: uint64, ghost p: Geo, ghost ms: seq<BM>, ghost w: St, ghost v: St) returns (io: bool,
      j: Journal?)
    requires p == GeoOf(seal.key, seal.ep, at, nd, nr, bit, flo, fhi, seal.t, p.torn) && GeoOk(p) &&
      maxPin < 0x1_0000_0000 && Fit(d, p) && sz as int == |d.cur|
    requires TreeFor(t, d, seal, p.headerAt, Home(p), |d.cur|) && t.pages.held == map[] &&
      (t.pageCount == 0 ==> p.torn == {})
    requires RecOK(p, d.cur, v, seal.signed) && d.ok == OkSet(p, [v], 0, seal.signed) && cache.m == map[] && Alone(d) &&
      forall x, a :: Owns(d.owner, x, a) ==> x == Recovering
    requires HdrWf(p.key, hb.v) && (hb.v == d.cur[p.headerAt] || hb.v == d.cur[Copy(p)]) &&
      RecBy(Under(p, hb.v), d.cur, hb.v, ms, w, v, seal.signed)
    requires mm.Ok() && InHome(Home(p), mm.m, |d.cur|) && mm.m == Merge(ms) &&
      e as int == DecHdr(p.key, hb.v).q + |ms| + Window && e < 0x1FFF_0000_0000_0000
    requires t.pageCount > 0 ==> |t.pages.vs| == |t.pages.rs| > 0 && TreeSays(Under(p, hb.v), t.Now(), t.Root(), w) &&
      DirCodes(Under(p, hb.v), d.cur, DecHdr(p.key, hb.v).q, |ms|, cs.s)
    modifies d, seal, cs, t.pages
    // it has an epoch that nobody had, so that others can be told from it
    ensures j != null ==> Anew(seal)
    ensures j != null ==> j.Inv() && j.disk == d && j.seal == seal && j.mutex == mu && j.cache == cache &&
      j.tree == t && j.durableIndex == 0 && j.logger.phase == NoLogger && j.installer.phase == NoInstall
    ensures j != null ==> |j.states| == 1 && Agree(p, v, j.states[0]) && forall a :: a in j.layout.torn ==>
      a in p.torn || FreeIn(p, v, a)
    ensures j != null ==> j.headerAt == at && j.units == nd && j.ringSize == nr && j.bitmapAt == bit &&
      j.allocFrom == flo && j.allocEnd == fhi && j.maxPin == maxPin && j.instAt == instAt && !j.failed
    ensures j != null ==> fresh(j) && fresh(j.logger) && fresh(j.installer) && fresh(j.running) && fresh(j.logged) &&
      fresh(j.frozen) && fresh(j.frozenDirect) && fresh(j.installing) && fresh(j.loggedDirect) &&
      fresh(j.installingDirect) && fresh(j.repr)
    ensures seal.signed == old(seal.signed) && (io ==> j != null)
    ensures !io ==> d.bad || Unsound(t, old(Sitting(t, d.poss)))
    ensures j != null ==> Unsound(t, old(Sitting(t, d.poss))) || j.whole
    ensures d.Valid() && forall s :: s in d.ok ==> s in old(d.ok)
  {
    j := null;
    ghost var q := Under(p, hb.v);
    OkEp(p, q, [v], 0, seal.signed);
    forall s | Between(q, d.cur, s, hb.v) ensures s in d.ok { BothCrash(p, d.cur, s, hb.v, v, seal.signed); }
    ghost var w1, torn, r;
    io, w1, torn, r := Install(d, seal, t, cs, hb, e, mm, at, at + 1 + 16 * nd + nr, q, ms, w, v);
    if !io { return; }
    FreeEp(q, p, v);
    AgreeEp(q, p, v, w1);
    OkEp(q, p, [v], 0, seal.signed);
    j := Begin(d, seal, mu, cache, t, sz, at, nd, nr, bit, flo, fhi, e, maxPin, instAt, p, v, w1, torn, r);
  }
  lemma FreeEp(p: Geo, p2: Geo, v: St)
    requires p2 == p.(epoch := p2.epoch, torn := p2.torn)
    ensures forall a :: FreeIn(p2, v, a) == FreeIn(p, v, a)
  { reveal FreeIn(); }
  // Installs the log that was found, ms, and begins an empty one with number e; the tree says what is home then (w1),
  // and its root is r.
  method Install(d: Disk, seal: Seal, t: Tree, cs: Codes, hb: Blk, e: uint64, mm: BlockMap, at: uint64, cp: uint64,
    ghost q: Geo, ghost ms: seq<BM>, ghost w: St, ghost v: St)
    returns (io: bool, ghost w1: St, ghost torn: set<int>, ghost r: CV)
    requires Fit(d, q) && q.headerAt == at as int && Copy(q) == cp as int && q.key == seal.key && q.tree == seal.t &&
      TreeFor(t, d, seal, q.headerAt, Home(q), |d.cur|) && (t.pageCount == 0 ==> q.torn == {})
    requires RecBy(q, d.cur, hb.v, ms, w, v, seal.signed) && d.ok == OkSet(q, [v], 0, seal.signed) && Alone(d) &&
      mm.Ok() && InHome(Home(q), mm.m, |d.cur|) && mm.m == Merge(ms)
    requires e as int == DecHdr(q.key, hb.v).q + |ms| + Window && e < 0x1FFF_0000_0000_0000 &&
      HdrTail(d.cur[q.headerAt]) && HdrTail(d.cur[Copy(q)])
    requires forall s :: Between(q, d.cur, s, hb.v) ==> s in d.ok
    requires t.pageCount > 0 ==> |t.pages.vs| == |t.pages.rs| > 0 && t.pages.held == map[] &&
      TreeSays(q, t.Now(), t.Root(), w) && DirCodes(q, d.cur, DecHdr(q.key, hb.v).q, |ms|, cs.s)
    modifies d, seal, cs, t.pages
    ensures d.Valid() && d.ok == old(d.ok) && |d.cur| == |old(d.cur)| && d.owner == old(d.owner) &&
      seal.signed == old(seal.signed)
    ensures io ==> Agree(q, v, w1) && torn == Differ(d.cur, w1) &&
      (forall a :: a in torn ==> a in q.torn || FreeIn(q, v, a)) && (t.pageCount == 0 ==> torn == {}) &&
      Full(d.poss, G0(q.(epoch := seal.ep, torn := torn), seal.signed, e as int, w1, r))
    ensures io && t.pageCount > 0 ==> |t.pages.vs| == |t.pages.rs| > 0 && t.pages.held == map[] && t.Root() == r &&
      TreeSays(q, t.Now(), r, w1)
    ensures io ==> Anew(seal)
    ensures !io ==> d.bad || Unsound(t, old(Sitting(t, d.poss)))
    ensures io ==> Unsound(t, old(Sitting(t, d.poss))) || t.pageCount == 0 || Sitting(t, d.poss)
  {
    w1, torn, r := w, {}, CV(0, 0);
    ghost var c := d.cur;
    io := SameHeads(d, t, cs, hb, at, cp, q, ms, w, v, seal.signed);
    if !io { return; }
    c := d.cur;
    var r0, r1; ghost var pg;
    io, r0, r1, pg := UpdateTree(d, t, cs, mm, q, hb.v, ms, w, v, seal.signed);
    if !io { return; }
    RecKept(q, c, d.cur, hb.v, ms, w, v, seal.signed);
    c := d.cur;
    ghost var poss := d.poss;
    io := InstallAll(d, mm, q, hb.v, ms, w, v, seal.signed);
    if !io { return; }
    r := CV(r0, r1);
    io, w1, torn := Empty(d, seal, e, r0, r1, at, cp, q, c, hb.v, ms, w, v);
    if !io { return; }
    Advance(t, cs, r0, r1, mm, pg);
    if t.pageCount > 0 { SitsStill(t, poss, d.poss, pg, r); }
  }
  // Both headers become hb; the log is what it was, and so is the tree.
  method SameHeads(d: Disk, t: Tree, cs: Codes, hb: Blk, at: uint64, cp: uint64, ghost q: Geo, ghost ms: seq<BM>,
    ghost w: St, ghost v: St, ghost sg: set<Rec>) returns (io: bool)
    requires Fit(d, q) && q.headerAt == at as int && Copy(q) == cp as int &&
      TreeFor(t, d, t.seal, q.headerAt, Home(q), |d.cur|) && RecBy(q, d.cur, hb.v, ms, w, v, sg)
    requires HdrTail(d.cur[q.headerAt]) && HdrTail(d.cur[Copy(q)]) && Alone(d) &&
      forall s :: Between(q, d.cur, s, hb.v) ==> s in d.ok
    requires t.pageCount > 0 ==> |t.pages.vs| == |t.pages.rs| > 0 &&
      DirCodes(q, d.cur, DecHdr(q.key, hb.v).q, |ms|, cs.s)
    modifies d
    ensures d.Valid() && d.ok == old(d.ok) && |d.cur| == |old(d.cur)| && d.owner == old(d.owner) && (!io ==> d.bad)
    ensures io ==> Still(d) && Heads(q, d.cur, hb.v) && RecBy(q, d.cur, hb.v, ms, w, v, sg) && RecOK(q, d.cur, v, sg)
    ensures io && t.pageCount > 0 ==> DirCodes(q, d.cur, DecHdr(q.key, hb.v).q, |ms|, cs.s) &&
      (old(Sitting(t, d.poss)) ==> Sitting(t, d.poss))
  {
    ghost var c := d.cur;
    io := WriteHeads(d, hb, at, cp, q);
    if !io { return; }
    if t.pageCount > 0 { SitsStill(t, old(d.poss), d.poss, t.Now(), t.Root()); }
    RecKept(q, c, d.cur, hb.v, ms, w, v, sg);
    HeadsOk(q, d.cur, hb.v, ms, w, v, sg);
    if t.pageCount > 0 { DirCodesKept(q, c, d.cur, DecHdr(q.key, hb.v).q, ms, cs.s, sg); }
  }
  // the device erred, or had not the tree where its pages say
  predicate Unsound(t: Tree, sits: bool) { Erred(t.disk) || (t.pageCount > 0 && !sits) }
  lemma SitsStill(t: Tree, poss: Poss, poss2: Poss, pg: seq<BV>, r: CV)
    requires t.Ok() && |poss| == |poss2| && forall a :: 0 <= a < |poss| &&
      a < t.first as int + 2 * t.pageCount as int ==> poss2[a] == poss[a]
    ensures PagesAt(t.seal.t, t.first as int, poss, pg, r) ==> PagesAt(t.seal.t, t.first as int, poss2, pg, r)
  { if PagesAt(t.seal.t, t.first as int, poss, pg, r) { PagesLess(t.seal.t, t.first as int, poss, poss2, pg, r); } }
  lemma DirCodesKept(p: Geo, c: Img, c2: Img, q: int, ms: seq<BM>, s: seq<Code>, sg: set<Rec>)
    requires Fits(p, c) && SameBut(p, c, c2, Merge(ms)) && Log(p, c, q, ms, sg) && DirCodes(p, c, q, |ms|, s)
    ensures DirCodes(p, c2, q, |ms|, s)
  {
    forall a ensures IsDir(p, c2, q, |ms|, a) == IsDir(p, c, q, |ms|, a) &&
      (IsDir(p, c, q, |ms|, a) ==> Home(p) <= a < |c| && c[a] == c2[a]) {
      DirSame(p, c, c2, q, ms, sg, a);
    }
  }
  // The journal over an empty log that starts with number q.
  method Begin(d: Disk, seal: Seal, mu: Mutex, cache: Cache, t: Tree, sz: uint64, at: uint64, nd: uint64, nr: uint64,
    bit: uint64, flo: uint64, fhi: uint64,
    q: uint64, maxPin: uint64, instAt: uint64, ghost p: Geo, ghost v: St, ghost w: St, ghost torn: set<int>,
      ghost r: CV) returns (j: Journal)
    requires p == GeoOf(seal.key, p.epoch, at, nd, nr, bit, flo, fhi, seal.t, p.torn) && GeoOk(p) &&
      maxPin < 0x1_0000_0000 && d.Valid() && |d.cur| == sz as int && cache.m == map[]
    requires TreeFor(t, d, seal, p.headerAt, Home(p), |d.cur|)
    requires q < 0x1FFF_0000_0000_0000 &&
      Full(d.poss, G0(p.(epoch := seal.ep, torn := torn), seal.signed, q as int, w, r)) &&
      forall a :: a in torn ==> a in p.torn || FreeIn(p, v, a)
    requires torn == Differ(d.cur, w) && if t.pageCount == 0 then torn == {} else |t.pages.vs| == |t.pages.rs| > 0 &&
      t.pages.held == map[] && t.Root() == r && TreeSays(p, t.Now(), r, w)
    requires Agree(p, v, w) && d.ok == OkSet(p, [v], 0, seal.signed) && forall x, a :: Owns(d.owner, x, a) ==>
      x == Recovering
    modifies d
    ensures j.Inv() && j.disk == d && j.seal == seal && j.mutex == mu && j.cache == cache && j.tree == t &&
      j.durableIndex == 0 && j.logger.phase == NoLogger && j.installer.phase == NoInstall
    ensures |j.states| == 1 && Agree(p, v, j.states[0]) && j.layout.torn == torn && d.poss == old(d.poss) &&
      (j.whole <==> (t.pageCount > 0 ==> Sitting(t, d.poss)))
    ensures j.headerAt == at && j.units == nd && j.ringSize == nr && j.bitmapAt == bit && j.allocFrom == flo &&
      j.allocEnd == fhi && j.maxPin == maxPin && j.instAt == instAt && !j.failed
    ensures fresh(j) && fresh(j.logger) && fresh(j.installer) && fresh(j.running) && fresh(j.logged) &&
      fresh(j.frozen) && fresh(j.frozenDirect) && fresh(j.installing) && fresh(j.loggedDirect) &&
      fresh(j.installingDirect) && fresh(j.repr)
    ensures d.Valid() && forall s :: s in d.ok ==> s in old(d.ok)
  {
    ghost var p1 := p.(epoch := seal.ep); ghost var p2 := p1.(torn := torn);
    ghost var g0 := G0(p2, seal.signed, q as int, w, r);
    FullD(d.poss, g0);
    assert DurState(g0) == w;
    AmongNone(g0, [w], 0);
    CrashAll(d.poss, g0, [w], 0, 0);
    AgreeEp(p, p1, v, w);
    FreeEp(p, p1, v); AgreeFree(p, v, w);
    OkEp(p, p1, [v], 0, seal.signed);
    OkLess(p1, v, w, seal.signed);
    FreeEp(p, p1, w);
    TornLess(p1, p2, w, seal.signed);
    NoDirect(seal.signed, q as int);
    d.SetGuard(GuardOf(p2));
    d.SetOk(OkSet(p2, [w], 0, seal.signed));
    d.Leave(Recovering);
    if t.pageCount > 0 { assert TreeSays(p2, t.Now(), r, w); }
    var i := new Installer();
    i.Begin(r, w);
    j := new Journal(d, seal, mu, cache, t, sz, at, nd, nr, bit, flo, fhi, q, maxPin, instAt, i);
  }
  // what a new volume's home blocks are: zeros, as its tree says; without a tree what is there
  function NewHome(p: Geo, s: Img): St {
    if p.tree.np > 0 then map a | a in HomeOf(p, s) :: Zeros(4096) else HomeOf(p, s)
  }
  // s is a crash image of poss but for the blocks [a, end)
  predicate But(poss: Poss, a: int, end: int, s: Img) {
    |s| == |poss| && forall x :: 0 <= x < |s| && !(a <= x < end) ==> s[x] in poss[x]
  }
  const CHUNK: uint64 := 256    // blocks that are zeroed in one write
  method ZeroList() returns (l: BList, ghost k: BlockMap)
    ensures fresh(k) && KeepsAll(k, l) && |l.blks| == CHUNK as int && forall i :: 0 <= i < |l.blks| ==>
      l.blks[i] == Zeros(4096)
  {
    var m := NewBlockMap();
    var z := ZeroBlk();
    var i: uint64 := 0;
    while i < CHUNK
      invariant i <= CHUNK && fresh(m) && m.Ok() && |m.addrs| == i as int &&
        (forall a :: a in m.m ==> 0 <= a < i as int && m.m[a] == Zeros(4096))
    {
      m.Put(i, z);
      i := i + 1;
    }
    l := m.List();
    k := m;
  }
  // Writes zeros to the blocks [a, end).
  method Zero(d: Disk, a: uint64, end: uint64) returns (io: bool)
    requires d.Valid() && a <= end && end as int <= |d.cur| &&
      (forall x :: a as int <= x < end as int ==> Owns(d.owner, Recovering, x))
    requires forall s: Img :: But(d.poss, a as int, end as int, s) ==> s in d.ok
    modifies d`poss, d`cur, d`bad
    ensures d.Valid() && |d.cur| == |old(d.cur)| && forall x :: 0 <= x < |d.cur| &&
      !(a as int <= x < end as int) ==> d.poss[x] <= old(d.poss)[x]
    ensures if io then forall x :: a as int <= x < end as int ==> d.cur[x] == Zeros(4096) else d.bad
  {
    var l; ghost var k;
    l, k := ZeroList();
    var b := a;
    io := true;
    while io && b < end
      invariant KeepsAll(k, l)
      invariant a <= b <= end && d.Valid() && |d.cur| == |old(d.cur)| && forall x :: 0 <= x < |d.cur| &&
        !(a as int <= x < end as int) ==> d.poss[x] <= old(d.poss)[x]
      invariant if io then forall x :: a as int <= x < b as int ==> d.cur[x] == Zeros(4096) else d.bad
      decreases end - b, io
    {
      var n := if end - b < CHUNK then end - b else CHUNK;
      forall s | CrashImg(Fuzzy(d.poss, b as int, n as int), s) ensures s in d.ok {
        assert But(old(d.poss), a as int, end as int, s);
      }
      io := d.WriteRun(Recovering, b, l, k, 0, n, null, null);
      if io { b := b + n; }
    }
  }
  // Makes an empty log, of zeros (so that what is below the device finds room for it now), and with it an empty tree:
  // home blocks that are not zeros (p.torn) cannot be read before they are written; without a tree they stay what they
  // are. The key must be new.
  method Format(d: Disk, seal: Seal, at: uint64, nd: uint64, nr: uint64, ghost p: Geo) returns (io: bool)
    requires IsGeo(p, seal, at, nd, nr) && d.Valid() && |d.cur| >= Home(p) && seal.signed == {} && d.owner == map[]
    // nothing is promised of the log before the end
    requires forall s: Img :: But(d.poss, p.headerAt, Home(p), s) ==> s in d.ok
    requires seal.t.np > 0 ==> TreeGeoOk(seal.t) && |d.cur| == Home(p) + seal.t.n &&
      forall a :: Home(p) <= a < |d.cur| ==> a in p.torn || d.poss[a] <= iset{Zeros(4096)}
    modifies d, seal
    ensures d.Valid() && |d.cur| == |old(d.cur)| && d.ok == old(d.ok) &&
      (forall a :: 0 <= a < |d.cur| && !(p.headerAt <= a < Home(p)) ==> d.poss[a] <= old(d.poss)[a]) &&
      forall x, a :: Owns(d.owner, x, a) ==> x == Recovering
    ensures io ==> Anew(seal)
    ensures io ==> forall s :: CrashImg(d.poss, s) ==> RecOK(p, s, NewHome(p, s), {}) &&
      forall first :: HeadersSit(p, first, s)
  {
    if seal.t.np > 0 { ZeroTree(seal.t); }
    d.Take(Recovering, set a | p.headerAt <= a < Home(p));
    ghost var nb;
    io, nb := EmptyLog(d, seal, at, nd, nr, 0, 0, p);
    if !io { return; }
    forall s | CrashImg(d.poss, s) ensures RecOK(p, s, NewHome(p, s), {}) && forall first :: HeadersSit(p, first, s) {
      forall first ensures SitsOn(p.tree, first, s, CV(0, 0)) { if p.tree.np > 0 { NewSits(p.tree, first, s); } }
      assert s[p.headerAt] in d.poss[p.headerAt] && s[Copy(p)] in d.poss[Copy(p)];
      forall a | Home(p) <= a < |s| ensures s[a] in d.poss[a] {}
      var w := NewHome(p, s);
      if p.tree.np > 0 { NewSays(p, w); }
      RecHdr(p, s, nb, w, w, {});
    }
  }
  // The log becomes an empty one, durably: zeros, and the header nb in both its places, whose tree has the root r0, r1.
  method EmptyLog(d: Disk, seal: Seal, at: uint64, nd: uint64, nr: uint64, r0: uint64, r1: uint64,
    ghost p: Geo) returns (io: bool, ghost nb: BV)
    requires IsGeo(p, seal, at, nd, nr) && d.Valid() && |d.cur| >= Home(p) && IsRoot(seal.t, CV(r0, r1)) &&
      forall a :: p.headerAt <= a < Home(p) ==> Owns(d.owner, Recovering, a)
    requires forall s: Img :: But(d.poss, p.headerAt, Home(p), s) ==> s in d.ok
    modifies d, seal
    ensures d.Valid() && |d.cur| == |old(d.cur)| && d.ok == old(d.ok) && d.owner == old(d.owner) &&
      seal.signed == old(seal.signed)
    ensures forall a :: 0 <= a < |d.cur| && !(p.headerAt <= a < Home(p)) ==> d.poss[a] <= old(d.poss)[a]
    ensures Anew(seal)
    ensures io ==> HdrWf(p.key, nb) && DecHdr(p.key, nb) == Hdr(1, seal.ep, CV(r0, r1)) &&
      d.poss[p.headerAt] == d.poss[Copy(p)] == iset{nb}
    ensures !io ==> d.bad
  {
    seal.NewEpoch();
    var b := seal.EncHdr(1, r0, r1);
    nb := b.v;
    var cp := at + 1 + 16 * nd + nr;
    io := Zero(d, at, cp + 1);
    if !io { return; }
    ghost var c := d.poss;
    forall s | CrashImg(Fuzzy(c, at as int, 1), s) || CrashImg(Fuzzy(Fuzzy(c, at as int, 1), cp as int, 1), s)
      ensures s in d.ok {
      assert But(old(d.poss), p.headerAt, Home(p), s);
    }
    io := d.Write(Recovering, at, b, null, null);
    if !io { return; }
    io := d.Write(Recovering, cp, b, null, null);
    if !io { return; }
    io := d.Barrier(Recovering);
  }
  // pages that were never written lie nowhere
  lemma NewSits(t: TreeGeo, first: int, s: Img)
    requires TreeGeoOk(t)
    ensures SitsOn(t, first, s, CV(0, 0))
  { ZeroTree(t); assert PagesOn(t, first, s, ZeroPages(t.np), CV(0, 0)); }
  lemma NewSays(p: Geo, w: St)
    requires TreeGeoOk(p.tree) && p.tree.key == p.key && forall a :: a in w ==> 0 <= a - Home(p) < p.tree.n &&
      w[a] == Zeros(4096)
    ensures Says(p, CV(0, 0), w)
  { ZeroTree(p.tree); assert TreeSays(p, ZeroPages(p.tree.np), CV(0, 0), w); }
}
