// The crash lemma: every image that a crash may leave recovers to the durable state, or to that after some of the
// pending groups, in their order. If the first pending group got there whole, it is as if a barrier had made it
// durable (steps.dfy, Finished), and there is one less; if not, recovery ends before it, whatever became of those behind.
include "steps.dfy"

module LogCrashes {
  import opened Machine
  import opened DiskS
  import opened LogSpec
  import opened Ring
  import opened LogModel
  import opened LogSteps

  // what an image that a crash leaves holds of a logged group
  lemma CrashBlks(poss: Poss, g: G, s: Img, i: int)
    requires DInv(poss, g) && CrashImg(poss, s) && 0 <= i < |g.gs|
    ensures Fits(g.p, s) && DescWf(g.p, g.ds[i], |s|) && Logged(poss, g, g.gs[i], g.hs[i], g.ds[i], g.hq + i)
    ensures RecBlks(g.p, s, g.ds[i]) == GroupBlks(g.gs[i], g.hs[i], g.ds[i])
    ensures forall j :: 0 <= j < |g.ds[i].addrs| ==> s[At(g.p, g.ds[i], j)] == g.gs[i][g.ds[i].addrs[j]]
  {
    var d := g.ds[i]; var m := g.gs[i]; var h := g.hs[i]; var p := g.p;
    assert Logged(poss, g, m, h, d, g.hq + i);
    var rb := ReadBlks(p, s, d, |d.addrs|);
    forall j | 0 <= j < |d.addrs| ensures rb[j] == m[d.addrs[j]] && s[At(p, d, j)] == m[d.addrs[j]] {
      assert s[At(p, d, j)] in poss[At(p, d, j)];
    }
    assert rb == BlksOf(m, d.addrs);
    var hb := HomeBlks(s, d.dirs);
    forall j | 0 <= j < |d.dirs| ensures hb[j] == h[d.dirs[j]] {
      var a := d.dirs[j];
      KeptHome(g, |poss|, i, a);
      assert s[a] in poss[a];
      assert HomePoss(poss[a], g, a);
    }
    assert hb == BlksOf(h, d.dirs);
  }
  lemma CrashLogged(poss: Poss, g: G, s: Img, i: int)
    requires DInv(poss, g) && CrashImg(poss, s) && 0 <= i < |g.gs|
    ensures GM(g.p, s, g.hq + i, g.gs[i], g.sg)
  {
    CrashBlks(poss, g, s, i);
    assert s[DSlot(g.p, g.hq + i)] in poss[DSlot(g.p, g.hq + i)];
  }
  // the direct blocks that a crash image lists for the i-th live group
  lemma DirsLive(poss: Poss, g: G, s: Img, i: int)
    requires DInv(poss, g) && CrashImg(poss, s) && 0 <= i < |g.gs|
    ensures Fits(g.p, s) && forall a :: a in DirsOf(g.p, s, g.hq + i) <==> a in g.hs[i]
  {
    CrashBlks(poss, g, s, i);
    assert s[DSlot(g.p, g.hq + i)] in poss[DSlot(g.p, g.hq + i)];
    assert GroupWf(g.p, g.gs[i], g.hs[i], g.ds[i], g.hq + i, |poss|);
  }
  // ... and for all from the c-th on
  lemma DirsAre(poss: Poss, g: G, s: Img, c: int)
    requires DInv(poss, g) && CrashImg(poss, s) && 0 <= c <= |g.gs|
    ensures Fits(g.p, s) && forall a :: IsDir(g.p, s, g.hq + c, |g.gs| - c, a) <==> a in Merge(g.hs[c..])
  {
    forall a ensures IsDir(g.p, s, g.hq + c, |g.gs| - c, a) <==> a in Merge(g.hs[c..]) { DirOne(poss, g, s, c, a); }
  }
  lemma DirOne(poss: Poss, g: G, s: Img, c: int, a: int)
    requires DInv(poss, g) && CrashImg(poss, s) && 0 <= c <= |g.gs|
    ensures Fits(g.p, s) && (IsDir(g.p, s, g.hq + c, |g.gs| - c, a) <==> a in Merge(g.hs[c..]))
  {
    var n := |g.gs| - c; var q := g.hq + c;
    MergeFrom(g.hs, c, a);
    if IsDir(g.p, s, q, n, a) {
      var i :| 0 <= i < n && a in DirsOf(g.p, s, q + i);
      DirsLive(poss, g, s, c + i); assert q + i == g.hq + (c + i); assert a in g.hs[c + i];
    }
    if a in Merge(g.hs[c..]) {
      var i :| c <= i < |g.hs| && a in g.hs[i];
      DirsLive(poss, g, s, i);
      assert a in DirsOf(g.p, s, q + (i - c)) by { assert q + (i - c) == g.hq + i; }
    }
  }
  // what the header says that has passed the groups being installed (late), or has not
  function SaidBy(g: G, late: bool): St { if late then g.tb2 else g.tb }
  function HomeBy(g: G, late: bool): St { if late then Over(g.base, g.im) else g.base }
  lemma SaidHome(g: G, n: int, late: bool)
    requires GInv(g, n) && (late ==> g.ip == 3)
    ensures var c := if late then g.k else 0; HomeBy(g, late) == Over(SaidBy(g, late), Merge(g.hs[c..])) && SaidBy(g, late).Keys == g.base.Keys
    ensures Over(HomeBy(g, late), Merge(g.gs[if late then g.k else 0..])) == DurState(g)
  {
    reveal Trees();
    assert g.hs[0..] == g.hs && g.gs[0..] == g.gs;
    if late {
      assert g.gs == g.gs[..g.k] + g.gs[g.k..];
      MergeCat(g.gs[..g.k], g.gs[g.k..]);
      OverOv(g.base, g.im, Merge(g.gs[g.k..]));
    }
  }
  // what a crash image holds of a live group's direct block
  lemma CrashDir(poss: Poss, g: G, s: Img, c: int, a: int)
    requires DInv(poss, g) && CrashImg(poss, s) && 0 <= c <= |g.hs| && a in Merge(g.hs[c..])
    ensures Home(g.p) <= a < |s| && a in g.base && s[a] == g.base[a] && a !in g.im
  {
    MergeFrom(g.hs, c, a);
    var i :| c <= i < |g.hs| && a in g.hs[i];
    KeptHome(g, |poss|, i, a);
    assert s[a] in poss[a];
    assert HomePoss(poss[a], g, a);
  }
  lemma CrashWith(poss: Poss, g: G, s: Img, late: bool)
    requires DInv(poss, g) && CrashImg(poss, s) && (late ==> g.ip == 3)
    ensures var c := if late then g.k else 0; Fits(g.p, s) && WithDirs(g.p, s, g.hq + c, |g.gs| - c, SaidBy(g, late)) == HomeBy(g, late)
  {
    var c := if late then g.k else 0; var w := SaidBy(g, late);
    DirsAre(poss, g, s, c); SaidHome(g, |poss|, late);
    var x := WithDirs(g.p, s, g.hq + c, |g.gs| - c, w); var y := HomeBy(g, late);
    forall a | a in w ensures x[a] == y[a] {
      if a in Merge(g.hs[c..]) { CrashDir(poss, g, s, c, a); }
    }
  }
  lemma CrashAtHome(poss: Poss, g: G, s: Img, late: bool)
    requires DInv(poss, g) && CrashImg(poss, s) && (late ==> g.ip == 3)
    ensures var c := if late then g.k else 0; Fits(g.p, s) && AtHome(g.p, s, g.hq + c, g.gs[c..], DurState(g), SaidBy(g, late))
  {
    var c := if late then g.k else 0; var w := SaidBy(g, late); var ms := g.gs[c..];
    DirsAre(poss, g, s, c); SaidHome(g, |poss|, late);
    reveal Trees();
    assert g.gs[0..] == g.gs;
    forall a | a in w && Home(g.p) <= a < |s| && a !in g.p.torn && !FreeIn(g.p, DurState(g), a) && a !in Merge(ms) && !IsDir(g.p, s, g.hq + c, |ms|, a) ensures s[a] == w[a] {
      assert s[a] in poss[a];
      assert HomePoss(poss[a], g, a);
      if a in g.im && !late { MergeKeys(g.gs[..g.k], a); var i :| 0 <= i < g.k && a in g.gs[..g.k][i]; MergeHas(g.gs, i, a); }
      if InPend(g.ps, a) { var j :| 0 <= j < |g.ps| && a in g.ps[j].h; PendHome(g, |poss|, j, a); }
    }
  }
  lemma LogTail(poss: Poss, g: G, s: Img, c: int)
    requires DInv(poss, g) && CrashImg(poss, s) && 0 <= c <= |g.gs| && Fits(g.p, s) && !ValidAt(g.p, s, End(g), g.sg)
    ensures Log(g.p, s, g.hq + c, g.gs[c..], g.sg)
  {
    var tail := g.gs[c..];
    forall r | r in g.sg ensures Below(r, End(g) + Window) && DecDesc(r.b).d.dur <= End(g) {
      if !Below(r, End(g)) { var i :| 0 <= i < |g.ps| && IsPend(g.ps[i], r); assert PendWf(g, g.ps[i], End(g) + i, |poss|); }
    }
    assert g.hq + c + |tail| == End(g);
    assert EndsAt(g.sg, g.hq + c + |tail|);
    forall i | 0 <= i < |tail| ensures GM(g.p, s, g.hq + c + i, tail[i], g.sg) { CrashLogged(poss, g, s, c + i); assert g.hq + (c + i) == g.hq + c + i; }
    ClearTail(g.gs, g.sg, g.hq, c);
    DirsTail(poss, g, s, c);
  }
  lemma DirsTail(poss: Poss, g: G, s: Img, c: int)
    requires DInv(poss, g) && CrashImg(poss, s) && 0 <= c <= |g.gs|
    ensures Fits(g.p, s) && DirsApart(g.p, s, g.hq + c, End(g))
  {
    forall i, j, a | g.hq + c <= i < j < End(g) && a in DirsOf(g.p, s, i) ensures a !in DirsOf(g.p, s, j) { DirTwo(poss, g, s, i - g.hq, j - g.hq, a); }
  }
  lemma DirTwo(poss: Poss, g: G, s: Img, x: int, y: int, a: int)
    requires DInv(poss, g) && CrashImg(poss, s) && 0 <= x < y < |g.gs| && Fits(g.p, s) && a in DirsOf(g.p, s, g.hq + x)
    ensures a !in DirsOf(g.p, s, g.hq + y)
  {
    DirsLive(poss, g, s, x);
    DirsLive(poss, g, s, y);
    reveal Trees();
    OneDir(g.hs, x, y, a);
  }
  lemma OneDir(hs: seq<BM>, x: int, y: int, a: int)
    requires Apart(hs) && 0 <= x < y < |hs| && a in hs[x]
    ensures a !in hs[y]
  {}
  lemma CrashState(poss: Poss, g: G, s: Img, late: bool)
    requires DInv(poss, g) && CrashImg(poss, s) && (late ==> g.ip == 3)
    ensures var c := if late then g.k else 0; Fits(g.p, s) && 0 <= c <= |g.gs| && Recovered(g.p, s, g.hq + c, g.gs[c..], SaidBy(g, late)) == DurState(g)
  {
    CrashWith(poss, g, s, late);
    SaidHome(g, |poss|, late);
  }
  // what a header block says
  lemma CrashHead(g: G, n: int, b: BV)
    requires GInv(g, n) && HdrOk(b, g)
    ensures HdrWf(g.p.key, b) && Under(g.p, b) == g.p
    ensures var late := DecHdr(g.p.key, b) != Hdr(g.hq, g.p.ep, g.r); (late ==> g.ip == 3) && DecHdr(g.p.key, b).q == (g.hq + if late then g.k else 0) && DecHdr(g.p.key, b).root == if late then g.r2 else g.r
  {}
  // s, read from header block b on, if the first pending group did not get there
  lemma CrashFrom(poss: Poss, g: G, s: Img, b: BV)
    requires DInv(poss, g) && CrashImg(poss, s) && HdrOk(b, g) && Fits(g.p, s) && !ValidAt(g.p, s, End(g), g.sg)
    ensures HdrWf(g.p.key, b) && RecFrom(g.p, s, b, DurState(g), g.sg)
  {
    CrashHead(g, |poss|, b);
    var late := DecHdr(g.p.key, b) != Hdr(g.hq, g.p.ep, g.r);
    var c := if late then g.k else 0;
    CrashState(poss, g, s, late);
    LogTail(poss, g, s, c);
    CrashAtHome(poss, g, s, late);
    HeaderSays(g, |poss|, late);
    Readable(g.p, s, b, g.gs[c..], SaidBy(g, late), DurState(g), g.sg);
  }
  lemma Readable(p: Geo, s: Img, b: BV, ms: seq<BM>, w: St, v: St, sg: set<Rec>)
    requires Fits(p, s) && HdrWf(p.key, b) && p == Under(p, b) && w.Keys == HomeOf(p, s).Keys
    requires var hdr := DecHdr(p.key, b); Log(p, s, hdr.q, ms, sg) && Says(p, hdr.root, w) && Recovered(p, s, hdr.q, ms, w) == v && AtHome(p, s, hdr.q, ms, v, w)
    ensures RecFrom(p, s, b, v, sg)
  { assert Agree(p, v, v); assert RecBy(p, s, b, ms, w, v, sg); }
  // what the tree says whose root the header has; late: the header of the installation
  lemma HeaderSays(g: G, n: int, late: bool)
    requires GInv(g, n) && (late ==> g.ip == 3)
    ensures Says(g.p, if late then g.r2 else g.r, SaidBy(g, late)) && SaidBy(g, late).Keys == (set a | Home(g.p) <= a < n)
  { reveal Trees(); }
  // only the image s is possible
  function Only(s: Img): (r: Poss) ensures |r| == |s| && forall a :: 0 <= a < |s| ==> r[a] == iset{s[a]} { if s == [] then [] else Only(s[..|s|-1]) + [iset{s[|s|-1]}] }
  // the first pending group got there
  lemma CrashPend(poss: Poss, g: G, s: Img)
    requires Full(poss, g) && CrashImg(poss, s) && Fits(g.p, s) && ValidAt(g.p, s, End(g), g.sg)
    ensures Full(Only(s), g) && g.ps != [] && var e := g.ps[0]; Logged(Only(s), g, e.m, e.h, e.d, End(g)) && DirHome(Only(s), e.h)
  {
    BarrierPres(Only(s), poss, g);
    FullD(poss, g);
    var x := s[DSlot(g.p, End(g))];
    var d := DecDesc(x).d;
    var r := Rec(x, RecBlks(g.p, s, d));
    assert r in g.sg && !Below(r, End(g));
    var i :| 0 <= i < |g.ps| && IsPend(g.ps[i], r);
    assert PendWf(g, g.ps[i], End(g) + i, |poss|);
    assert i == 0 && d == g.ps[0].d;
    PendBlks(g, s, g.ps[0], d);
  }
  // ... with all its blocks
  lemma PendBlks(g: G, s: Img, e: Pend, d: Desc)
    requires Fits(g.p, s) && DescWf(g.p, d, |s|) && e.d == d && GroupWf(g.p, e.m, e.h, d, End(g), |s|) && RecBlks(g.p, s, d) == GroupBlks(e.m, e.h, d)
    requires DecDesc(s[DSlot(g.p, End(g))]) == SomeDesc(d) && Rec(s[DSlot(g.p, End(g))], RecBlks(g.p, s, d)) in g.sg
    ensures Logged(Only(s), g, e.m, e.h, d, End(g)) && DirHome(Only(s), e.h)
  {
    var rb := ReadBlks(g.p, s, d, |d.addrs|);
    var hb := HomeBlks(s, d.dirs);
    var cb := BlksOf(e.m, d.addrs);
    var ch := BlksOf(e.h, d.dirs);
    assert rb == (rb + hb)[..|d.addrs|] == (cb + ch)[..|d.addrs|] == cb;
    assert hb == (rb + hb)[|d.addrs|..] == (cb + ch)[|d.addrs|..] == ch;
    forall j | 0 <= j < |d.addrs| ensures s[At(g.p, d, j)] == e.m[d.addrs[j]] { assert rb[j] == s[At(g.p, d, j)]; assert cb[j] == e.m[d.addrs[j]]; }
    forall a | a in e.h ensures 0 <= a < |s| && s[a] == e.h[a] {
      assert a in d.dirs;
      var j :| 0 <= j < |d.dirs| && d.dirs[j] == a;
      assert hb[j] == s[a] && ch[j] == e.h[a];
    }
  }
  // j of the pending groups got there, and all before them
  lemma CrashLemma(poss: Poss, g: G, s: Img) returns (j: int)
    requires Full(poss, g) && CrashImg(poss, s) && End(g) + |g.ps| < 0x1FFF_FFFF_FFFF_FFFF && PendEnd(g) < 0x1FFF_FFFF_FFFF_0000
    ensures 0 <= j <= |g.ps| && RecOK(g.p, s, PState(g, j), g.sg)
    decreases |g.ps|
  {
    FullD(poss, g);
    assert Fits(g.p, s);
    if ValidAt(g.p, s, End(g), g.sg) {
      CrashPend(poss, g, s);
      FullD(Only(s), g);
      PendBound(g, |poss|);
      FinishPres(Only(s), g);
      j := CrashLemma(Only(s), Finished(g), s);
      FinishAfter(g, j);
      j := j + 1;
    } else {
      assert s[g.p.at] in poss[g.p.at] && s[Copy(g.p)] in poss[Copy(g.p)];
      CrashFrom(poss, g, s, s[g.p.at]);
      CrashFrom(poss, g, s, s[Copy(g.p)]);
      PStates(g);
      j := 0;
    }
  }
  lemma PendBound(g: G, n: int)
    requires GInv(g, n) && PInv(g) && g.ps != []
    ensures g.ps[0].d.pos <= PendEnd(g)
  {}
}
