// What recovery rests on, as pure mathematics: images of the device that a crash of recovery leaves
// recover to the same state as the image that it began with, from either header, whatever part of its work is done.
include "groups.dfy"

module RecoverImages {
  import opened Machine
  import opened DiskS
  import opened LogSpec
  import opened Ring
  import opened LogModel
  import opened LogSteps
  import opened Groups

  // s and t are the same but for blocks of m
  predicate SameBut(p: Geo, s: Img, t: Img, m: BM) {
    Fits(p, s) && |s| == |t| && (forall a :: p.at < a < Copy(p) ==> s[a] == t[a]) &&
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
    forall i | 0 <= i < |ms| ensures GM(p, t, q + i, ms[i], sg) { assert GM(p, s, q + i, ms[i], sg); ValidSame(p, s, t, q + i, q, ms, sg); }
    ValidSame(p, s, t, q + |ms|, q, ms, sg);
  }
  // what image c with the log ms recovers to
  function Merged(p: Geo, c: Img, ms: seq<BM>): St { Over(HomeOf(p, c), Merge(ms)) }
  // image c: header b, log ms, recovers to v
  predicate RecLog(p: Geo, c: Img, b: BV, ms: seq<BM>, v: St, sg: set<Rec>) {
    Fits(p, c) && HdrWf(p.key, b) && p == Under(p, b) && Log(p, c, DecHdr(p.key, b).q, ms, sg) && Agree(p, v, Merged(p, c, ms))
  }
  // a crash while recovery installs: same recovered state
  lemma RecCrash(p: Geo, c: Img, s: Img, b: BV, ms: seq<BM>, v: St, sg: set<Rec>)
    requires RecLog(p, c, b, ms, v, sg) && SameBut(p, c, s, Merge(ms))
    ensures RecFrom(p, s, b, v, sg)
  {
    LogSame(p, c, s, DecHdr(p.key, b).q, ms, sg);
    assert Merged(p, s, ms) == Merged(p, c, ms);
  }
  // an empty log
  lemma RecHdr(p: Geo, s: Img, b: BV, v: St, sg: set<Rec>)
    requires Fits(p, s) && HdrWf(p.key, b) && Agree(p, v, HomeOf(p, s))
    requires forall r :: r in sg ==> Below(r, DecHdr(p.key, b).q)
    ensures RecFrom(p, s, b, v, sg)
  {
    var pb := Under(p, b); var q := DecHdr(p.key, b).q;
    var ms: seq<BM> := [];
    forall r | r in sg ensures Below(r, q + |ms| + 1) { assert Below(r, q); }
    if ValidAt(pb, s, q, sg) {
      var x := s[DSlot(pb, q)]; var d := DecDesc(x).d;
      assert Below(Rec(x, RecBlks(pb, s, d)), q);
    }
    assert Log(pb, s, q, ms, sg);
    assert HomeOf(pb, s) == HomeOf(p, s) && Over(HomeOf(pb, s), Merge(ms)) == HomeOf(p, s);
    AgreeEp(p, pb, v, HomeOf(p, s));
  }
  // which epoch counts does not matter for what is free
  lemma AgreeEp(p: Geo, p2: Geo, v: St, w: St)
    requires Agree(p, v, w) && p2 == p.(ep := p2.ep)
    ensures Agree(p2, v, w)
  { reveal FreeIn(); }
  // nor for what a crash may leave
  lemma OkEp(p: Geo, p2: Geo, vs: seq<St>, lb: int, sg: set<Rec>)
    requires 0 <= lb && p2 == p.(ep := p2.ep)
    ensures OkSet(p, vs, lb, sg) == OkSet(p2, vs, lb, sg)
  {
    reveal OkSet();
    forall s: Img, n | lb <= n < |vs| ensures RecOK(p, s, vs[n], sg) == RecOK(p2, s, vs[n], sg) { SameRec(p, p2, s, vs[n], sg); }
  }
  lemma SameRec(p: Geo, p2: Geo, s: Img, v: St, sg: set<Rec>)
    requires p2 == p.(ep := p2.ep)
    ensures RecOK(p, s, v, sg) == RecOK(p2, s, v, sg)
  {
    if Fits(p, s) {
      forall b | HdrWf(p.key, b) ensures RecFrom(p, s, b, v, sg) == RecFrom(p2, s, b, v, sg) { assert Under(p, b) == Under(p2, b); }
    }
  }
  lemma GroupIs(p: Geo, s: Img, q: int, m: BM, g: BM, e: Desc, sg: set<Rec>)
    requires Fits(p, s) && GM(p, s, q, m, sg) && DecDesc(s[DSlot(p, q)]) == SomeDesc(e)
    requires forall i :: 0 <= i < |e.addrs| ==> e.addrs[i] in g
    requires forall a :: a in g ==> exists i :: 0 <= i < |e.addrs| && e.addrs[i] == a && g[a] == ReadBlks(p, s, e, |e.addrs|)[i]
    ensures g == m
  {
    forall a | a in g ensures a in m && m[a] == g[a] {
      var i :| 0 <= i < |e.addrs| && e.addrs[i] == a && g[a] == ReadBlks(p, s, e, |e.addrs|)[i];
      assert m[e.addrs[i]] == s[At(p, e, i)];
    }
    forall a | a in m ensures a in g { assert a in e.addrs; }
  }
  // both headers are b
  predicate Heads(p: Geo, s: Img, b: BV) { Fits(p, s) && s[p.at] == b && s[Copy(p)] == b }
  // s is c, but that each header may be b
  predicate Between(p: Geo, c: Img, s: Img, b: BV) {
    Fits(p, c) && |s| == |c| && (forall a :: 0 <= a < |c| && a != p.at && a != Copy(p) ==> s[a] == c[a]) &&
    (s[p.at] == c[p.at] || s[p.at] == b) && (s[Copy(p)] == c[Copy(p)] || s[Copy(p)] == b)
  }
  lemma HeadsOk(p: Geo, s: Img, b: BV, ms: seq<BM>, v: St, sg: set<Rec>)
    requires RecLog(p, s, b, ms, v, sg) && Heads(p, s, b)
    ensures RecOK(p, s, v, sg)
  {}
  // what a crash may leave of a device at rest, which recovers to vs[n]
  lemma AtRest(p: Geo, poss: Poss, cur: Img, vs: seq<St>, lb: int, n: int, sg: set<Rec>)
    requires 0 <= lb <= n < |vs| && |poss| == |cur| && RecOK(p, cur, vs[n], sg) && forall a :: 0 <= a < |cur| ==> poss[a] == iset{cur[a]}
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
      FromLess(p, s, s[p.at], v, w, sg);
      FromLess(p, s, s[Copy(p)], v, w, sg);
      assert RecOK(p, s, [v][0], sg);
    }
  }
  lemma FromLess(p: Geo, s: Img, b: BV, v: St, w: St, sg: set<Rec>)
    requires Fits(p, s) && HdrWf(p.key, b) && RecFrom(p, s, b, w, sg) && Agree(p, v, w)
    ensures RecFrom(p, s, b, v, sg)
  {
    var pb := Under(p, b);
    var ms :| Log(pb, s, DecHdr(p.key, b).q, ms, sg) && Agree(pb, w, Over(HomeOf(pb, s), Merge(ms)));
    AgreeEp(p, pb, v, w);
    AgreeTrans(pb, v, w, Over(HomeOf(pb, s), Merge(ms)));
  }
  lemma InstCrash(p: Geo, c: Img, s: Img, q: Poss, hb: BV, ms: seq<BM>, v: St, sg: set<Rec>)
    requires RecLog(p, c, hb, ms, v, sg) && Heads(p, c, hb) && |c| == |q| && CrashImg(q, s) && InHome(Home(p), Merge(ms), |c|)
    requires forall a :: 0 <= a < |c| && a !in Merge(ms) ==> q[a] == iset{c[a]}
    ensures s in OkSet(p, [v], 0, sg)
  {
    forall a | 0 <= a < |c| && a !in Merge(ms) ensures s[a] == c[a] { assert s[a] in q[a]; }
    RecCrash(p, c, s, hb, ms, v, sg);
    reveal OkSet();
    assert RecOK(p, s, [v][0], sg);
  }
  // the log of a header is the same whatever the headers are, and the blocks before them
  lemma RecLogKept(p: Geo, c: Img, s: Img, b: BV, ms: seq<BM>, v: St, sg: set<Rec>)
    requires RecLog(p, c, b, ms, v, sg) && |s| == |c| && forall a :: p.at < a < |c| && a != Copy(p) ==> s[a] == c[a]
    ensures RecLog(p, s, b, ms, v, sg)
  {
    LogSame(p, c, s, DecHdr(p.key, b).q, ms, sg);
    assert HomeOf(p, s) == HomeOf(p, c);
  }
  lemma FromKept(p: Geo, c: Img, s: Img, b: BV, v: St, sg: set<Rec>)
    requires Fits(p, c) && HdrWf(p.key, b) && RecFrom(p, c, b, v, sg)
    requires |s| == |c| && forall a :: p.at < a < |c| && a != Copy(p) ==> s[a] == c[a]
    ensures RecFrom(p, s, b, v, sg)
  {
    var pb := Under(p, b);
    var ms :| Log(pb, c, DecHdr(p.key, b).q, ms, sg) && Agree(pb, v, Over(HomeOf(pb, c), Merge(ms)));
    RecLogKept(pb, c, s, b, ms, v, sg);
  }
  // a crash while blocks before the header are written
  lemma PagesCrash(p: Geo, c: Img, s: Img, v: St, sg: set<Rec>)
    requires RecOK(p, c, v, sg) && |s| == |c| && 0 <= p.at && forall a :: p.at <= a < |c| ==> s[a] == c[a]
    ensures s in OkSet(p, [v], 0, sg)
  {
    FromKept(p, c, s, c[p.at], v, sg);
    FromKept(p, c, s, c[Copy(p)], v, sg);
    reveal OkSet();
    assert RecOK(p, s, [v][0], sg);
  }
  // a crash while both headers become one of the two
  lemma BothCrash(p: Geo, c: Img, s: Img, b: BV, v: St, sg: set<Rec>)
    requires RecOK(p, c, v, sg) && Between(p, c, s, b) && (b == c[p.at] || b == c[Copy(p)])
    ensures s in OkSet(p, [v], 0, sg)
  {
    FromKept(p, c, s, c[p.at], v, sg);
    FromKept(p, c, s, c[Copy(p)], v, sg);
    reveal OkSet();
    assert RecOK(p, s, [v][0], sg);
  }
  // a crash while the headers become nb, which begins with an empty log
  lemma EmptyCrash(p: Geo, c: Img, c2: Img, s: Img, hb: BV, ms: seq<BM>, v: St, nb: BV, sg: set<Rec>)
    requires RecLog(p, c, hb, ms, v, sg) && |c| == |c2| && Heads(p, c2, hb) && Between(p, c2, s, nb) && HdrWf(p.key, nb)
    requires HomeOf(p, c2) == Merged(p, c, ms) && forall a :: p.at < a < Copy(p) ==> c2[a] == c[a]
    requires DecHdr(p.key, nb).q == DecHdr(p.key, hb).q + |ms| + 1
    ensures s in OkSet(p, [v], 0, sg)
  {
    assert HomeOf(p, s) == HomeOf(p, c2);
    RecHdr(p, s, nb, v, sg);
    forall a | Home(p) <= a < |c| && a !in Merge(ms) ensures s[a] == c[a] {
      assert s[a] == HomeOf(p, c2)[a] == Merged(p, c, ms)[a];
    }
    RecCrash(p, c, s, hb, ms, v, sg);
    reveal OkSet();
    assert RecOK(p, s, [v][0], sg);
  }
  lemma InitFull(p: Geo, poss: Poss, cur: Img, q: int, v: St, sg: set<Rec>)
    requires Fits(p, cur) && |poss| == |cur| && 0 <= q < 0x1FFF_0000_0000_0000
    requires forall a | a == p.at || a == Copy(p) :: HdrTail(cur[a]) && DecHdr(p.key, cur[a]) == Hdr(q, p.ep)
    requires forall a :: 0 <= a < |poss| ==> poss[a] == iset{cur[a]}
    requires v == HomeOf(p, cur) && forall r :: r in sg ==> Below(r, q)
    ensures Full(poss, G0(p, sg, q, v))
  {
    reveal Full();
    var g := G0(p, sg, q, v);
    assert g.gs[..0] == [];
    assert Merge([]) == map[];
    forall r | r in g.sg ensures Below(r, End(g)) {}
    forall x | x in poss[g.p.at] + poss[Copy(g.p)] ensures HdrOk(x, g) {}
    forall b | Home(p) <= b < |poss| ensures HomePoss(poss[b], g, b) {}
    assert g.base.Keys == (set a | Home(p) <= a < |poss|);
  }
}
