// What recovery rests on, as pure mathematics: images of the device that a crash of recovery leaves
// recover to the same state as the image that it began with, from either header, whatever part of its work is done.
include "groups.dfy"

module RecoverImages {
  import opened Machine
  import opened DiskS
  import opened CodeTreeSpec
  import opened RecordSpec
  import opened Ring
  import opened LogModel
  import opened LogSteps
  import opened Groups

  // s and t are the same but for blocks of m
  predicate SameBut(p: Geo, s: Img, t: Img, m: BM) {
    Fits(p, s) && |s| == |t| && (forall a :: p.headerAt < a < Copy(p) ==> s[a] == t[a]) &&
    forall a :: Home(p) <= a < |s| && a !in m ==> s[a] == t[a]
  }
  lemma ValidKept(p: Geo, s: Img, t: Img, q: int, h: int, ms: seq<BM>, sg: set<Rec>)
    requires SameBut(p, s, t, Merge(ms)) && Clear(ms, sg, h) && h <= q && ValidAt(p, s, q, sg)
    ensures ValidAt(p, t, q, sg)
  {
    var b := s[DSlot(p, q)]; var d := DecDesc(b).d;
    var r := Rec(b, RecBlks(p, s, d));
    assert ReadBlks(p, s, d, |d.addrs|) == ReadBlks(p, t, d, |d.addrs|);
    var x := HomeBlks(s, d.dirs); var y := HomeBlks(t, d.dirs);
    forall i | 0 <= i < |d.dirs| ensures x[i] == y[i] {
      assert r in sg && DirectOf(r, h, d.dirs[i]);
      ClearMerge(ms, sg, h, d.dirs[i]);
    }
    assert x == y;
  }
  lemma ValidSame(p: Geo, s: Img, t: Img, q: int, h: int, ms: seq<BM>, sg: set<Rec>)
    requires SameBut(p, s, t, Merge(ms)) && Clear(ms, sg, h) && h <= q
    ensures ValidAt(p, s, q, sg) == ValidAt(p, t, q, sg)
  {
    if ValidAt(p, s, q, sg) { ValidKept(p, s, t, q, h, ms, sg); }
    if ValidAt(p, t, q, sg) { ValidKept(p, t, s, q, h, ms, sg); }
  }
  lemma LogSame(p: Geo, s: Img, t: Img, q: int, ms: seq<BM>, sg: set<Rec>)
    requires SameBut(p, s, t, Merge(ms)) && Log(p, s, q, ms, sg)
    ensures Log(p, t, q, ms, sg)
  {
    forall i | 0 <= i < |ms| ensures GroupAt(p, t, q + i, ms[i], sg) {
      assert GroupAt(p, s, q + i, ms[i], sg); ValidSame(p, s, t, q + i, q, ms, sg);
    }
    ValidSame(p, s, t, q + |ms|, q, ms, sg);
    forall i ensures DirsOf(p, t, i) == DirsOf(p, s, i) { assert t[DSlot(p, i)] == s[DSlot(p, i)]; }
  }
  // direct blocks of valid groups are none of those that recovery installs
  lemma DirSame(p: Geo, s: Img, t: Img, q: int, ms: seq<BM>, sg: set<Rec>, a: int)
    requires SameBut(p, s, t, Merge(ms)) && Log(p, s, q, ms, sg)
    ensures IsDir(p, t, q, |ms|, a) == IsDir(p, s, q, |ms|, a)
    ensures IsDir(p, s, q, |ms|, a) ==> Home(p) <= a < |s| && s[a] == t[a] && a !in Merge(ms)
  {
    forall i ensures DirsOf(p, t, q + i) == DirsOf(p, s, q + i) { assert t[DSlot(p, q + i)] == s[DSlot(p, q + i)]; }
    if IsDir(p, s, q, |ms|, a) {
      var i :| 0 <= i < |ms| && a in DirsOf(p, s, q + i);
      assert GroupAt(p, s, q + i, ms[i], sg);
      var d := DecDesc(s[DSlot(p, q + i)]).d;
      assert DirectOf(Rec(s[DSlot(p, q + i)], RecBlks(p, s, d)), q, a);
      ClearMerge(ms, sg, q, a);
    }
  }
  // a crash while recovery installs: same recovered state
  lemma RecCrash(p: Geo, c: Img, s: Img, b: BV, ms: seq<BM>, w: St, v: St, sg: set<Rec>)
    requires RecBy(p, c, b, ms, w, v, sg) && SameBut(p, c, s, Merge(ms))
    ensures RecBy(p, s, b, ms, w, v, sg) && RecFrom(p, s, b, v, sg)
    ensures var q := DecHdr(p.key, b).q; Recovered(p, s, q, ms, w) == Recovered(p, c, q, ms, w)
  {
    var q := DecHdr(p.key, b).q;
    LogSame(p, c, s, q, ms, sg);
    forall a ensures IsDir(p, s, q, |ms|, a) == IsDir(p, c, q, |ms|, a) { DirSame(p, c, s, q, ms, sg, a); }
    forall a | IsDir(p, c, q, |ms|, a) ensures Home(p) <= a < |c| && c[a] == s[a] { DirSame(p, c, s, q, ms, sg, a); }
    assert WithDirs(p, s, q, |ms|, w) == WithDirs(p, c, q, |ms|, w);
    assert Recovered(p, s, q, ms, w) == Recovered(p, c, q, ms, w);
    assert HomeOf(p, s).Keys == HomeOf(p, c).Keys;
    forall a | a in w && Home(p) <= a < |s| && a !in p.torn && !FreeIn(p, v, a) && a !in Merge(ms) &&
      !IsDir(p, s, q, |ms|, a) ensures s[a] == w[a] {
      assert s[a] == c[a] && !IsDir(p, c, q, |ms|, a);
    }
    assert RecBy(p, s, b, ms, w, v, sg) && RecBy(Under(p, b), s, b, ms, w, v, sg);
  }
  // what is at home is w, but for what is free in v, or torn
  predicate HomeIs(p: Geo, s: Img, v: St, w: St) requires Fits(p, s) {
    forall a :: a in w && Home(p) <= a < |s| && a !in p.torn && !FreeIn(p, v, a) ==> s[a] == w[a]
  }
  // every record has a number below q, and does not say that group q, or one behind it, was durable
  predicate Past(sg: set<Rec>, q: int) { forall r :: r in sg ==> Below(r, q) && DecDesc(r.b).d.dur <= q }
  // no record has a number of those that come Window behind the end of a log
  lemma LogPast(p: Geo, s: Img, q: int, ms: seq<BM>, sg: set<Rec>)
    requires Fits(p, s) && Log(p, s, q, ms, sg)
    ensures Past(sg, q + |ms| + Window)
  {
    forall r | r in sg ensures Below(r, q + |ms| + Window) && DecDesc(r.b).d.dur <= q + |ms| + Window {
      assert Below(r, q + |ms| + Window);
    }
  }
  // an empty log
  lemma RecHdr(p: Geo, s: Img, b: BV, w: St, v: St, sg: set<Rec>)
    requires Fits(p, s) && HdrWf(p.key, b) && Says(p, DecHdr(p.key, b).root, w) && w.Keys == HomeOf(p, s).Keys &&
      Agree(p, v, w) && HomeIs(p, s, v, w)
    requires Past(sg, DecHdr(p.key, b).q)
    ensures RecFrom(p, s, b, v, sg)
  {
    var pb := Under(p, b); var q := DecHdr(p.key, b).q;
    var ms: seq<BM> := [];
    forall r | r in sg ensures Below(r, q + Window) && DecDesc(r.b).d.dur <= q { assert Below(r, q); }
    if ValidAt(pb, s, q, sg) {
      var x := s[DSlot(pb, q)]; var d := DecDesc(x).d;
      assert Below(Rec(x, RecBlks(pb, s, d)), q);
    }
    assert Log(pb, s, q, ms, sg);
    assert WithDirs(pb, s, q, 0, w) == w && Over(w, map[]) == w;
    AgreeEp(p, pb, v, w);
    SaysEp(p, pb, DecHdr(p.key, b).root, w);
    forall a ensures FreeIn(pb, v, a) == FreeIn(p, v, a) { reveal FreeIn(); }
    assert HomeOf(pb, s).Keys == HomeOf(p, s).Keys;
    assert RecBy(pb, s, b, ms, w, v, sg);
  }
  lemma SaysEp(p: Geo, p2: Geo, r: CV, w: St)
    requires Says(p, r, w) && p2 == p.(epoch := p2.epoch, torn := p2.torn)
    ensures Says(p2, r, w)
  { if p.tree.np > 0 { var pg :| TreeSays(p, pg, r, w); assert TreeSays(p2, pg, r, w); } }
  // which epoch counts, and what is torn, does not matter for what is free
  lemma AgreeEp(p: Geo, p2: Geo, v: St, w: St)
    requires Agree(p, v, w) && p2 == p.(epoch := p2.epoch, torn := p2.torn)
    ensures Agree(p2, v, w)
  { reveal FreeIn(); }
  // nor for what a crash may leave
  lemma OkEp(p: Geo, p2: Geo, vs: seq<St>, lb: int, sg: set<Rec>)
    requires 0 <= lb && p2 == p.(epoch := p2.epoch)
    ensures OkSet(p, vs, lb, sg) == OkSet(p2, vs, lb, sg)
  {
    reveal OkSet();
    forall s: Img, n | lb <= n < |vs| ensures RecOK(p, s, vs[n], sg) == RecOK(p2, s, vs[n], sg) {
      SameRec(p, p2, s, vs[n], sg);
    }
  }
  lemma SameRec(p: Geo, p2: Geo, s: Img, v: St, sg: set<Rec>)
    requires p2 == p.(epoch := p2.epoch)
    ensures RecOK(p, s, v, sg) == RecOK(p2, s, v, sg)
  {
    if Fits(p, s) {
      forall b | HdrWf(p.key, b) ensures RecFrom(p, s, b, v, sg) == RecFrom(p2, s, b, v, sg) {
        assert Under(p, b) == Under(p2, b);
      }
    }
  }
  lemma GroupIs(p: Geo, s: Img, q: int, m: BM, g: BM, e: Desc, sg: set<Rec>)
    requires Fits(p, s) && GroupAt(p, s, q, m, sg) && DecDesc(s[DSlot(p, q)]) == SomeDesc(e)
    requires forall i :: 0 <= i < |e.addrs| ==> e.addrs[i] in g
    requires forall a :: a in g ==> exists i :: 0 <= i < |e.addrs| && e.addrs[i] == a &&
      g[a] == ReadBlks(p, s, e, |e.addrs|)[i]
    ensures g == m
  {
    forall a | a in g ensures a in m && m[a] == g[a] {
      var i :| 0 <= i < |e.addrs| && e.addrs[i] == a && g[a] == ReadBlks(p, s, e, |e.addrs|)[i];
      assert m[e.addrs[i]] == s[DataBlock(p, e, i)];
    }
    forall a | a in m ensures a in g { assert a in e.addrs; }
  }
  // both headers are b
  predicate Heads(p: Geo, s: Img, b: BV) { Fits(p, s) && s[p.headerAt] == b && s[Copy(p)] == b }
  // s is c, but that each header may be b
  predicate Between(p: Geo, c: Img, s: Img, b: BV) {
    Fits(p, c) && |s| == |c| && (forall a :: 0 <= a < |c| && a != p.headerAt && a != Copy(p) ==> s[a] == c[a]) &&
    (s[p.headerAt] == c[p.headerAt] || s[p.headerAt] == b) && (s[Copy(p)] == c[Copy(p)] || s[Copy(p)] == b)
  }
  lemma HeadsOk(p: Geo, s: Img, b: BV, ms: seq<BM>, w: St, v: St, sg: set<Rec>)
    requires RecBy(p, s, b, ms, w, v, sg) && Heads(p, s, b)
    ensures RecOK(p, s, v, sg)
  {}
  // what a crash may leave of a device at rest, which recovers to vs[n]
  lemma AtRest(p: Geo, poss: Poss, cur: Img, vs: seq<St>, lb: int, n: int, sg: set<Rec>)
    requires 0 <= lb <= n < |vs| && |poss| == |cur| && RecOK(p, cur, vs[n], sg) &&
      forall a :: 0 <= a < |cur| ==> poss[a] == iset{cur[a]}
    ensures forall s :: CrashImg(poss, s) ==> s in OkSet(p, [vs[n]], 0, sg)
    ensures forall s :: s in OkSet(p, [vs[n]], 0, sg) ==> s in OkSet(p, vs, lb, sg)
  {
    reveal OkSet();
    forall s | CrashImg(poss, s) ensures s in OkSet(p, [vs[n]], 0, sg) {
      forall a | 0 <= a < |s| ensures s[a] == cur[a] { assert s[a] in poss[a]; }
      assert s == cur;
      assert RecOK(p, s, [vs[n]][0], sg);
    }
    forall s | s in OkSet(p, [vs[n]], 0, sg) ensures s in OkSet(p, vs, lb, sg) { assert RecOK(p, s, vs[n], sg); }
  }
  lemma NoDirect(sg: set<Rec>, q: int)
    requires forall r :: r in sg ==> Below(r, q)
    ensures forall a :: !Direct(sg, q, a)
  {
    forall a ensures !Direct(sg, q, a) {
      if Direct(sg, q, a) { var r :| r in sg && DirectOf(r, q, a); assert Below(r, q); }
    }
  }
  lemma OkLess(p: Geo, v: St, w: St, sg: set<Rec>)
    requires GeoOk(p) && Agree(p, v, w)
    ensures forall s :: s in OkSet(p, [w], 0, sg) ==> s in OkSet(p, [v], 0, sg)
  {
    reveal OkSet();
    forall s | s in OkSet(p, [w], 0, sg) ensures s in OkSet(p, [v], 0, sg) {
      assert RecOK(p, s, w, sg);
      FromLess(p, s, s[p.headerAt], v, w, sg);
      FromLess(p, s, s[Copy(p)], v, w, sg);
      assert RecOK(p, s, [v][0], sg);
    }
  }
  lemma FromLess(p: Geo, s: Img, b: BV, v: St, w: St, sg: set<Rec>)
    requires Fits(p, s) && HdrWf(p.key, b) && RecFrom(p, s, b, w, sg) && Agree(p, v, w)
    ensures RecFrom(p, s, b, v, sg)
  {
    var pb := Under(p, b);
    var ms, x :| RecBy(pb, s, b, ms, x, w, sg);
    AgreeEp(p, pb, v, w);
    AgreeTrans(pb, v, w, Recovered(pb, s, DecHdr(p.key, b).q, ms, x));
    AgreeFree(pb, v, w);
    assert RecBy(pb, s, b, ms, x, v, sg);
  }
  // what is torn, but free, is nothing that a crash must leave alone
  lemma TornLess(p: Geo, p2: Geo, v: St, sg: set<Rec>)
    requires p2 == p.(torn := p2.torn) && forall a :: a in p2.torn ==> a in p.torn || FreeIn(p, v, a)
    ensures forall s :: s in OkSet(p2, [v], 0, sg) ==> s in OkSet(p, [v], 0, sg)
  {
    reveal OkSet();
    forall s | s in OkSet(p2, [v], 0, sg) ensures s in OkSet(p, [v], 0, sg) {
      assert RecOK(p2, s, v, sg);
      FromTorn(p, p2, s, s[p.headerAt], v, sg);
      FromTorn(p, p2, s, s[Copy(p)], v, sg);
      assert RecOK(p, s, [v][0], sg);
    }
  }
  lemma FromTorn(p: Geo, p2: Geo, s: Img, b: BV, v: St, sg: set<Rec>)
    requires p2 == p.(torn := p2.torn) && forall a :: a in p2.torn ==> a in p.torn || FreeIn(p, v, a)
    requires Fits(p2, s) && HdrWf(p.key, b) && RecFrom(p2, s, b, v, sg)
    ensures RecFrom(p, s, b, v, sg)
  {
    var pb := Under(p, b); var p2b := Under(p2, b); var q := DecHdr(p.key, b).q;
    var ms, x :| RecBy(p2b, s, b, ms, x, v, sg);
    SameLog(p2b, pb, s, q, ms, sg);
    SaysEp(p2b, pb, DecHdr(p.key, b).root, x);
    forall i ensures DirsOf(pb, s, q + i) == DirsOf(p2b, s, q + i) {}
    forall a ensures IsDir(pb, s, q, |ms|, a) == IsDir(p2b, s, q, |ms|, a) {}
    assert WithDirs(pb, s, q, |ms|, x) == WithDirs(p2b, s, q, |ms|, x);
    AgreeEp(p2b, pb, v, Recovered(pb, s, q, ms, x));
    forall a ensures FreeIn(pb, v, a) == FreeIn(p, v, a) == FreeIn(p2b, v, a) { reveal FreeIn(); }
    assert HomeOf(pb, s).Keys == HomeOf(p2b, s).Keys;
    assert RecBy(pb, s, b, ms, x, v, sg);
  }
  lemma SameLog(p: Geo, p2: Geo, s: Img, q: int, ms: seq<BM>, sg: set<Rec>)
    requires p2 == p.(torn := p2.torn) && Fits(p, s) && Log(p, s, q, ms, sg)
    ensures Fits(p2, s) && Log(p2, s, q, ms, sg)
  {
    forall i ensures ValidAt(p2, s, i, sg) == ValidAt(p, s, i, sg) {
      if ValidAt(p, s, i, sg) { SameValid(p, p2, s, i, sg); }
      if ValidAt(p2, s, i, sg) { SameValid(p2, p, s, i, sg); }
    }
    forall i | 0 <= i < |ms| ensures GroupAt(p2, s, q + i, ms[i], sg) { assert GroupAt(p, s, q + i, ms[i], sg); }
    forall i ensures DirsOf(p2, s, i) == DirsOf(p, s, i) {}
  }
  lemma SameValid(p: Geo, p2: Geo, s: Img, q: int, sg: set<Rec>)
    requires p2 == p.(torn := p2.torn) && Fits(p, s) && ValidAt(p, s, q, sg)
    ensures ValidAt(p2, s, q, sg)
  {
    var d := DecDesc(s[DSlot(p, q)]).d;
    assert ReadBlks(p, s, d, |d.addrs|) == ReadBlks(p2, s, d, |d.addrs|);
  }
  lemma InstCrash(p: Geo, c: Img, s: Img, q: Poss, hb: BV, ms: seq<BM>, w: St, v: St, sg: set<Rec>)
    requires RecBy(p, c, hb, ms, w, v, sg) && Heads(p, c, hb) && |c| == |q| && CrashImg(q, s) &&
      InHome(Home(p), Merge(ms), |c|)
    requires forall a :: 0 <= a < |c| && a !in Merge(ms) ==> q[a] == iset{c[a]}
    ensures s in OkSet(p, [v], 0, sg)
  {
    forall a | 0 <= a < |c| && a !in Merge(ms) ensures s[a] == c[a] { assert s[a] in q[a]; }
    RecCrash(p, c, s, hb, ms, w, v, sg);
    reveal OkSet();
    assert RecOK(p, s, [v][0], sg);
  }
  // the log of a header is the same whatever the headers are, and the blocks before them
  lemma RecKept(p: Geo, c: Img, s: Img, b: BV, ms: seq<BM>, w: St, v: St, sg: set<Rec>)
    requires RecBy(p, c, b, ms, w, v, sg) && |s| == |c| && forall a :: p.headerAt < a < |c| &&
      a != Copy(p) ==> s[a] == c[a]
    ensures RecBy(p, s, b, ms, w, v, sg)
    ensures var q := DecHdr(p.key, b).q; Recovered(p, s, q, ms, w) == Recovered(p, c, q, ms, w)
  { RecCrash(p, c, s, b, ms, w, v, sg); }
  lemma FromKept(p: Geo, c: Img, s: Img, b: BV, v: St, sg: set<Rec>)
    requires Fits(p, c) && HdrWf(p.key, b) && RecFrom(p, c, b, v, sg)
    requires |s| == |c| && forall a :: p.headerAt < a < |c| && a != Copy(p) ==> s[a] == c[a]
    ensures RecFrom(p, s, b, v, sg)
  {
    var pb := Under(p, b);
    var ms, w :| RecBy(pb, c, b, ms, w, v, sg);
    RecKept(pb, c, s, b, ms, w, v, sg);
  }
  // a crash while blocks before the header are written
  lemma PagesCrash(p: Geo, c: Img, s: Img, v: St, sg: set<Rec>)
    requires RecOK(p, c, v, sg) && |s| == |c| && 0 <= p.headerAt && forall a :: p.headerAt <= a < |c| ==> s[a] == c[a]
    ensures s in OkSet(p, [v], 0, sg)
  {
    FromKept(p, c, s, c[p.headerAt], v, sg);
    FromKept(p, c, s, c[Copy(p)], v, sg);
    reveal OkSet();
    assert RecOK(p, s, [v][0], sg);
  }
  // a crash while both headers become one of the two
  lemma BothCrash(p: Geo, c: Img, s: Img, b: BV, v: St, sg: set<Rec>)
    requires RecOK(p, c, v, sg) && Between(p, c, s, b) && (b == c[p.headerAt] || b == c[Copy(p)])
    ensures s in OkSet(p, [v], 0, sg)
  {
    FromKept(p, c, s, c[p.headerAt], v, sg);
    FromKept(p, c, s, c[Copy(p)], v, sg);
    reveal OkSet();
    assert RecOK(p, s, [v][0], sg);
  }
  // c2 is c with the log ms installed
  predicate Installed(p: Geo, c: Img, c2: Img, ms: seq<BM>) {
    Fits(p, c) && |c2| == |c| && (forall a :: p.headerAt < a < Copy(p) ==> c2[a] == c[a]) &&
    forall a :: Home(p) <= a < |c| ==> c2[a] == if a in Merge(ms) then Merge(ms)[a] else c[a]
  }
  // ... and holds what it recovers to
  lemma InstalledIs(p: Geo, c: Img, c2: Img, b: BV, ms: seq<BM>, w: St, v: St, sg: set<Rec>)
    requires RecBy(p, c, b, ms, w, v, sg) && Installed(p, c, c2, ms)
    ensures HomeIs(p, c2, v, Recovered(p, c, DecHdr(p.key, b).q, ms, w)) &&
      Recovered(p, c, DecHdr(p.key, b).q, ms, w).Keys == HomeOf(p, c2).Keys
  {}
  // a crash while the headers become nb, which begins with an empty log, and whose tree says what is home now, w2
  lemma EmptyCrash(p: Geo, c: Img, c2: Img, s: Img, hb: BV, ms: seq<BM>, w: St, v: St, nb: BV, w2: St, sg: set<Rec>)
    requires RecBy(p, c, hb, ms, w, v, sg) && Heads(p, c2, hb) && Between(p, c2, s, nb) && HdrWf(p.key, nb) &&
      Installed(p, c, c2, ms)
    requires w2 == Recovered(p, c, DecHdr(p.key, hb).q, ms, w) && Says(p, DecHdr(p.key, nb).root, w2)
    requires DecHdr(p.key, nb).q == DecHdr(p.key, hb).q + |ms| + Window
    ensures s in OkSet(p, [v], 0, sg)
  {
    assert Installed(p, c, s, ms);
    InstalledIs(p, c, s, hb, ms, w, v, sg);
    LogPast(p, c, DecHdr(p.key, hb).q, ms, sg);
    RecHdr(p, s, nb, w2, v, sg);
    RecCrash(p, c, s, hb, ms, w, v, sg);
    reveal OkSet();
    assert RecOK(p, s, [v][0], sg);
  }
  // an empty log with number q; the tree of its header, with the root r, says v
  lemma InitFull(p: Geo, poss: Poss, cur: Img, q: int, v: St, r: CV, sg: set<Rec>)
    requires Fits(p, cur) && |poss| == |cur| && 0 <= q < 0x1FFF_0000_0000_0000
    requires forall a | a == p.headerAt || a == Copy(p) :: HdrTail(cur[a]) &&
      DecHdr(p.key, cur[a]) == Hdr(q, p.epoch, r)
    requires forall a :: 0 <= a < |poss| ==> poss[a] == iset{cur[a]}
    requires v.Keys == HomeOf(p, cur).Keys && Says(p, r, v) && (forall a :: a in v ==> cur[a] == v[a] || a in p.torn) &&
      Past(sg, q)
    ensures Full(poss, G0(p, sg, q, v, r))
  {
    reveal Full();
    var g := G0(p, sg, q, v, r);
    assert g.groups[..0] == [];
    assert Merge([]) == map[];
    forall r | r in g.signed ensures Below(r, End(g)) && DecDesc(r.b).d.dur <= End(g) {}
    forall x | x in poss[g.layout.headerAt] + poss[Copy(g.layout)] ensures HdrOk(x, g) {}
    assert g.base.Keys == (set a | Home(g.layout) <= a < |poss|);
    forall b | Home(g.layout) <= b < |poss| ensures HomePoss(poss[b], g, b) { assert b in v; }
    reveal Free();
    assert Trees(g) by { reveal Trees(); assert Over(v, map[]) == v; assert g.directs[0..] == []; }
  }
}
