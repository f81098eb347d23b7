// The crash lemma: every image that a crash may leave recovers to the durable state, or to that after some of the
// pending groups, in their order. If the first pending group got there whole, it is as if a barrier had made it
// durable (steps.dfy, Finished), and there is one less; if not, recovery ends before it, whatever became of those
// behind.
include "steps.dfy"

module LogCrashes {
  import opened Machine
  import opened DiskS
  import opened RecordSpec
  import opened Ring
  import opened LogModel
  import opened LogSteps

  // what an image that a crash leaves holds of a logged group
  lemma CrashBlks(poss: Poss, g: Protocol, s: Img, i: int)
    requires DInv(poss, g) && CrashImg(poss, s) && 0 <= i < |g.groups|
    ensures Fits(g.layout, s) && DescWf(g.layout, g.descs[i], |s|) &&
      Logged(poss, g, g.groups[i], g.directs[i], g.descs[i], g.firstSeq + i)
    ensures RecBlks(g.layout, s, g.descs[i]) == GroupBlks(g.groups[i], g.directs[i], g.descs[i])
    ensures forall j :: 0 <= j < |g.descs[i].addrs| ==>
      s[DataBlock(g.layout, g.descs[i], j)] == g.groups[i][g.descs[i].addrs[j]]
  {
    var d := g.descs[i]; var m := g.groups[i]; var h := g.directs[i]; var p := g.layout;
    assert Logged(poss, g, m, h, d, g.firstSeq + i);
    var rb := ReadBlks(p, s, d, |d.addrs|);
    forall j | 0 <= j < |d.addrs| ensures rb[j] == m[d.addrs[j]] && s[DataBlock(p, d, j)] == m[d.addrs[j]] {
      assert s[DataBlock(p, d, j)] in poss[DataBlock(p, d, j)];
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
  lemma CrashLogged(poss: Poss, g: Protocol, s: Img, i: int)
    requires DInv(poss, g) && CrashImg(poss, s) && 0 <= i < |g.groups|
    ensures GroupAt(g.layout, s, g.firstSeq + i, g.groups[i], g.signed)
  {
    CrashBlks(poss, g, s, i);
    assert s[DSlot(g.layout, g.firstSeq + i)] in poss[DSlot(g.layout, g.firstSeq + i)];
  }
  // the direct blocks that a crash image lists for the i-th live group
  lemma DirsLive(poss: Poss, g: Protocol, s: Img, i: int)
    requires DInv(poss, g) && CrashImg(poss, s) && 0 <= i < |g.groups|
    ensures Fits(g.layout, s) && forall a :: a in DirsOf(g.layout, s, g.firstSeq + i) <==> a in g.directs[i]
  {
    CrashBlks(poss, g, s, i);
    assert s[DSlot(g.layout, g.firstSeq + i)] in poss[DSlot(g.layout, g.firstSeq + i)];
    assert GroupWf(g.layout, g.groups[i], g.directs[i], g.descs[i], g.firstSeq + i, |poss|);
  }
  // ... and for all from the c-th on
  lemma DirsAre(poss: Poss, g: Protocol, s: Img, c: int)
    requires DInv(poss, g) && CrashImg(poss, s) && 0 <= c <= |g.groups|
    ensures Fits(g.layout, s) && forall a :: IsDir(g.layout, s, g.firstSeq + c, |g.groups| - c, a) <==>
      a in Merge(g.directs[c..])
  {
    forall a ensures IsDir(g.layout, s, g.firstSeq + c, |g.groups| - c, a) <==> a in Merge(g.directs[c..]) {
      DirOne(poss, g, s, c, a);
    }
  }
  lemma DirOne(poss: Poss, g: Protocol, s: Img, c: int, a: int)
    requires DInv(poss, g) && CrashImg(poss, s) && 0 <= c <= |g.groups|
    ensures Fits(g.layout, s) && (IsDir(g.layout, s, g.firstSeq + c, |g.groups| - c, a) <==> a in Merge(g.directs[c..]))
  {
    var n := |g.groups| - c; var q := g.firstSeq + c;
    MergeFrom(g.directs, c, a);
    if IsDir(g.layout, s, q, n, a) {
      var i :| 0 <= i < n && a in DirsOf(g.layout, s, q + i);
      DirsLive(poss, g, s, c + i); assert q + i == g.firstSeq + (c + i); assert a in g.directs[c + i];
    }
    if a in Merge(g.directs[c..]) {
      var i :| c <= i < |g.directs| && a in g.directs[i];
      DirsLive(poss, g, s, i);
      assert a in DirsOf(g.layout, s, q + (i - c)) by { assert q + (i - c) == g.firstSeq + i; }
    }
  }
  // what the header says that has passed the groups being installed (late), or has not
  function SaidBy(g: Protocol, late: bool): St { if late then g.nextTreeState else g.treeState }
  function HomeBy(g: Protocol, late: bool): St { if late then Over(g.base, g.installBlocks) else g.base }
  lemma SaidHome(g: Protocol, n: int, late: bool)
    requires GInv(g, n) && (late ==> g.phase == HeaderWriting)
    ensures var c := if late then g.installCount else 0;
      HomeBy(g, late) == Over(SaidBy(g, late), Merge(g.directs[c..])) && SaidBy(g, late).Keys == g.base.Keys
    ensures Over(HomeBy(g, late), Merge(g.groups[if late then g.installCount else 0..])) == DurState(g)
  {
    reveal Trees();
    assert g.directs[0..] == g.directs && g.groups[0..] == g.groups;
    if late {
      assert g.groups == g.groups[..g.installCount] + g.groups[g.installCount..];
      MergeCat(g.groups[..g.installCount], g.groups[g.installCount..]);
      OverOv(g.base, g.installBlocks, Merge(g.groups[g.installCount..]));
    }
  }
  // what a crash image holds of a live group's direct block
  lemma CrashDir(poss: Poss, g: Protocol, s: Img, c: int, a: int)
    requires DInv(poss, g) && CrashImg(poss, s) && 0 <= c <= |g.directs| && a in Merge(g.directs[c..])
    ensures Home(g.layout) <= a < |s| && a in g.base && s[a] == g.base[a] && a !in g.installBlocks
  {
    MergeFrom(g.directs, c, a);
    var i :| c <= i < |g.directs| && a in g.directs[i];
    KeptHome(g, |poss|, i, a);
    assert s[a] in poss[a];
    assert HomePoss(poss[a], g, a);
  }
  lemma CrashWith(poss: Poss, g: Protocol, s: Img, late: bool)
    requires DInv(poss, g) && CrashImg(poss, s) && (late ==> g.phase == HeaderWriting)
    ensures var c := if late then g.installCount else 0; Fits(g.layout, s) &&
      WithDirs(g.layout, s, g.firstSeq + c, |g.groups| - c, SaidBy(g, late)) == HomeBy(g, late)
  {
    var c := if late then g.installCount else 0; var w := SaidBy(g, late);
    DirsAre(poss, g, s, c); SaidHome(g, |poss|, late);
    var x := WithDirs(g.layout, s, g.firstSeq + c, |g.groups| - c, w); var y := HomeBy(g, late);
    forall a | a in w ensures x[a] == y[a] {
      if a in Merge(g.directs[c..]) { CrashDir(poss, g, s, c, a); }
    }
  }
  lemma CrashAtHome(poss: Poss, g: Protocol, s: Img, late: bool)
    requires DInv(poss, g) && CrashImg(poss, s) && (late ==> g.phase == HeaderWriting)
    ensures var c := if late then g.installCount else 0; Fits(g.layout, s) &&
      AtHome(g.layout, s, g.firstSeq + c, g.groups[c..], DurState(g), SaidBy(g, late))
  {
    var c := if late then g.installCount else 0; var w := SaidBy(g, late); var ms := g.groups[c..];
    DirsAre(poss, g, s, c); SaidHome(g, |poss|, late);
    reveal Trees();
    assert g.groups[0..] == g.groups;
    forall a | a in w && Home(g.layout) <= a < |s| && a !in g.layout.torn && !FreeIn(g.layout, DurState(g), a) &&
      a !in Merge(ms) && !IsDir(g.layout, s, g.firstSeq + c, |ms|, a) ensures s[a] == w[a] {
      assert s[a] in poss[a];
      assert HomePoss(poss[a], g, a);
      if a in g.installBlocks && !late {
        MergeKeys(g.groups[..g.installCount], a);
        var i :| 0 <= i < g.installCount && a in g.groups[..g.installCount][i]; MergeHas(g.groups, i, a);
      }
      if InPend(g.pending, a) { var j :| 0 <= j < |g.pending| && a in g.pending[j].direct; PendHome(g, |poss|, j, a); }
    }
  }
  lemma LogTail(poss: Poss, g: Protocol, s: Img, c: int)
    requires DInv(poss, g) && CrashImg(poss, s) && 0 <= c <= |g.groups| && Fits(g.layout, s) &&
      !ValidAt(g.layout, s, End(g), g.signed)
    ensures Log(g.layout, s, g.firstSeq + c, g.groups[c..], g.signed)
  {
    var tail := g.groups[c..];
    forall r | r in g.signed ensures Below(r, End(g) + Window) && DecDesc(r.b).d.dur <= End(g) {
      if !Below(r, End(g)) {
        var i :| 0 <= i < |g.pending| && IsPend(g.pending[i], r); assert PendWf(g, g.pending[i], End(g) + i, |poss|);
      }
    }
    assert g.firstSeq + c + |tail| == End(g);
    assert EndsAt(g.signed, g.firstSeq + c + |tail|);
    forall i | 0 <= i < |tail| ensures GroupAt(g.layout, s, g.firstSeq + c + i, tail[i], g.signed) {
      CrashLogged(poss, g, s, c + i); assert g.firstSeq + (c + i) == g.firstSeq + c + i;
    }
    ClearTail(g.groups, g.signed, g.firstSeq, c);
    DirsTail(poss, g, s, c);
  }
  lemma DirsTail(poss: Poss, g: Protocol, s: Img, c: int)
    requires DInv(poss, g) && CrashImg(poss, s) && 0 <= c <= |g.groups|
    ensures Fits(g.layout, s) && DirsApart(g.layout, s, g.firstSeq + c, End(g))
  {
    forall i, j, a | g.firstSeq + c <= i < j < End(g) && a in DirsOf(g.layout, s, i)
      ensures a !in DirsOf(g.layout, s, j) {
      DirTwo(poss, g, s, i - g.firstSeq, j - g.firstSeq, a);
    }
  }
  lemma DirTwo(poss: Poss, g: Protocol, s: Img, x: int, y: int, a: int)
    requires DInv(poss, g) && CrashImg(poss, s) && 0 <= x < y < |g.groups| && Fits(g.layout, s) &&
      a in DirsOf(g.layout, s, g.firstSeq + x)
    ensures a !in DirsOf(g.layout, s, g.firstSeq + y)
  {
    DirsLive(poss, g, s, x);
    DirsLive(poss, g, s, y);
    reveal Trees();
    OneDir(g.directs, x, y, a);
  }
  lemma OneDir(hs: seq<BM>, x: int, y: int, a: int)
    requires Apart(hs) && 0 <= x < y < |hs| && a in hs[x]
    ensures a !in hs[y]
  {}
  lemma CrashState(poss: Poss, g: Protocol, s: Img, late: bool)
    requires DInv(poss, g) && CrashImg(poss, s) && (late ==> g.phase == HeaderWriting)
    ensures var c := if late then g.installCount else 0; Fits(g.layout, s) && 0 <= c <= |g.groups| &&
      Recovered(g.layout, s, g.firstSeq + c, g.groups[c..], SaidBy(g, late)) == DurState(g)
  {
    CrashWith(poss, g, s, late);
    SaidHome(g, |poss|, late);
  }
  // what a header block says
  lemma CrashHead(g: Protocol, n: int, b: BV)
    requires GInv(g, n) && HdrOk(b, g)
    ensures HdrWf(g.layout.key, b) && Under(g.layout, b) == g.layout
    ensures var late := DecHdr(g.layout.key, b) != Hdr(g.firstSeq, g.layout.epoch, g.root);
      (late ==> g.phase == HeaderWriting) &&
      DecHdr(g.layout.key, b).q == (g.firstSeq + if late then g.installCount else 0) &&
      DecHdr(g.layout.key, b).root == if late then g.nextRoot else g.root
  {}
  // s, read from header block b on, if the first pending group did not get there
  lemma CrashFrom(poss: Poss, g: Protocol, s: Img, b: BV)
    requires DInv(poss, g) && CrashImg(poss, s) && HdrOk(b, g) && Fits(g.layout, s) &&
      !ValidAt(g.layout, s, End(g), g.signed)
    ensures HdrWf(g.layout.key, b) && RecFrom(g.layout, s, b, DurState(g), g.signed)
  {
    CrashHead(g, |poss|, b);
    var late := DecHdr(g.layout.key, b) != Hdr(g.firstSeq, g.layout.epoch, g.root);
    var c := if late then g.installCount else 0;
    CrashState(poss, g, s, late);
    LogTail(poss, g, s, c);
    CrashAtHome(poss, g, s, late);
    HeaderSays(g, |poss|, late);
    Readable(g.layout, s, b, g.groups[c..], SaidBy(g, late), DurState(g), g.signed);
  }
  lemma Readable(p: Geo, s: Img, b: BV, ms: seq<BM>, w: St, v: St, sg: set<Rec>)
    requires Fits(p, s) && HdrWf(p.key, b) && p == Under(p, b) && w.Keys == HomeOf(p, s).Keys
    requires var hdr := DecHdr(p.key, b); Log(p, s, hdr.q, ms, sg) && Says(p, hdr.root, w) &&
      Recovered(p, s, hdr.q, ms, w) == v && AtHome(p, s, hdr.q, ms, v, w)
    ensures RecFrom(p, s, b, v, sg)
  { assert Agree(p, v, v); assert RecBy(p, s, b, ms, w, v, sg); }
  // what the tree says whose root the header has; late: the header of the installation
  lemma HeaderSays(g: Protocol, n: int, late: bool)
    requires GInv(g, n) && (late ==> g.phase == HeaderWriting)
    ensures Says(g.layout, if late then g.nextRoot else g.root, SaidBy(g, late)) &&
      SaidBy(g, late).Keys == (set a | Home(g.layout) <= a < n)
  { reveal Trees(); }
  // only the image s is possible
  function Only(s: Img): (r: Poss) ensures |r| == |s| && forall a :: 0 <= a < |s| ==> r[a] == iset{s[a]} {
    if s == [] then [] else Only(s[..|s|-1]) + [iset{s[|s|-1]}]
  }
  // the first pending group got there
  lemma CrashPend(poss: Poss, g: Protocol, s: Img)
    requires Full(poss, g) && CrashImg(poss, s) && Fits(g.layout, s) && ValidAt(g.layout, s, End(g), g.signed)
    ensures Full(Only(s), g) && g.pending != [] && var e := g.pending[0];
      Logged(Only(s), g, e.blocks, e.direct, e.desc, End(g)) && DirHome(Only(s), e.direct)
  {
    BarrierPres(Only(s), poss, g);
    FullD(poss, g);
    var x := s[DSlot(g.layout, End(g))];
    var d := DecDesc(x).d;
    var r := Rec(x, RecBlks(g.layout, s, d));
    assert r in g.signed && !Below(r, End(g));
    var i :| 0 <= i < |g.pending| && IsPend(g.pending[i], r);
    assert PendWf(g, g.pending[i], End(g) + i, |poss|);
    assert i == 0 && d == g.pending[0].desc;
    PendBlks(g, s, g.pending[0], d);
  }
  // ... with all its blocks
  lemma PendBlks(g: Protocol, s: Img, e: Pend, d: Desc)
    requires Fits(g.layout, s) && DescWf(g.layout, d, |s|) && e.desc == d &&
      GroupWf(g.layout, e.blocks, e.direct, d, End(g), |s|) &&
      RecBlks(g.layout, s, d) == GroupBlks(e.blocks, e.direct, d)
    requires DecDesc(s[DSlot(g.layout, End(g))]) == SomeDesc(d) &&
      Rec(s[DSlot(g.layout, End(g))], RecBlks(g.layout, s, d)) in g.signed
    ensures Logged(Only(s), g, e.blocks, e.direct, d, End(g)) && DirHome(Only(s), e.direct)
  {
    var rb := ReadBlks(g.layout, s, d, |d.addrs|);
    var hb := HomeBlks(s, d.dirs);
    var cb := BlksOf(e.blocks, d.addrs);
    var ch := BlksOf(e.direct, d.dirs);
    assert rb == (rb + hb)[..|d.addrs|] == (cb + ch)[..|d.addrs|] == cb;
    assert hb == (rb + hb)[|d.addrs|..] == (cb + ch)[|d.addrs|..] == ch;
    forall j | 0 <= j < |d.addrs| ensures s[DataBlock(g.layout, d, j)] == e.blocks[d.addrs[j]] {
      assert rb[j] == s[DataBlock(g.layout, d, j)]; assert cb[j] == e.blocks[d.addrs[j]];
    }
    forall a | a in e.direct ensures 0 <= a < |s| && s[a] == e.direct[a] {
      assert a in d.dirs;
      var j :| 0 <= j < |d.dirs| && d.dirs[j] == a;
      assert hb[j] == s[a] && ch[j] == e.direct[a];
    }
  }
  // j of the pending groups got there, and all before them
  lemma CrashLemma(poss: Poss, g: Protocol, s: Img) returns (j: int)
    requires Full(poss, g) && CrashImg(poss, s) && End(g) + |g.pending| < 0x1FFF_FFFF_FFFF_FFFF &&
      PendEnd(g) < 0x1FFF_FFFF_FFFF_0000
    ensures 0 <= j <= |g.pending| && RecOK(g.layout, s, PState(g, j), g.signed)
    decreases |g.pending|
  {
    FullD(poss, g);
    assert Fits(g.layout, s);
    if ValidAt(g.layout, s, End(g), g.signed) {
      CrashPend(poss, g, s);
      FullD(Only(s), g);
      PendBound(g, |poss|);
      FinishPres(Only(s), g);
      j := CrashLemma(Only(s), Finished(g), s);
      FinishAfter(g, j);
      j := j + 1;
    } else {
      assert s[g.layout.headerAt] in poss[g.layout.headerAt] && s[Copy(g.layout)] in poss[Copy(g.layout)];
      CrashFrom(poss, g, s, s[g.layout.headerAt]);
      CrashFrom(poss, g, s, s[Copy(g.layout)]);
      PStates(g);
      j := 0;
    }
  }
  lemma PendBound(g: Protocol, n: int)
    requires GInv(g, n) && PInv(g) && g.pending != []
    ensures g.pending[0].desc.pos <= PendEnd(g)
  {}
}
