// The whole of mkfs: a blank device is prepared, and then gets its superblocks.
//
// That it gets them changes nothing of what its journal recovers to. Commission, in format/copies.dfy, leaves all
// blocks as they were but those two, of which the journal takes the second for a home block that nobody writes.
include "making.dfy"

module Commissioned {
  import opened DiskS
  import opened CodeTreeSpec
  import opened RecordSpec
  import opened LogModel
  import opened SuperblockFormat
  import SuperblockCopies
  import Making
  import CodePages
  import Seals
  import opened Machine
  import opened ByteSpec
  import opened TreeModel
  import TreeSaid
  import FirstInodes

  // no group in the log wrote block a straight home
  predicate NoDirs(sg: set<Rec>, a: int) { forall r :: r in sg && DecDesc(r.b).SomeDesc? ==> a !in DecDesc(r.b).d.dirs }
  // s and t are the same but before the log, and in the last block
  predicate Same(p: Geo, s: Img, t: Img)
  { Fits(p, s) && Home(p) < |s| == |t| && forall a :: p.headerAt <= a < |s| - 1 ==> s[a] == t[a] }

  lemma ValidKept(p: Geo, s: Img, t: Img, q: int, sg: set<Rec>)
    requires Same(p, s, t) && NoDirs(sg, |s| - 1) && ValidAt(p, s, q, sg)
    ensures ValidAt(p, t, q, sg)
  {
    var d := DecDesc(s[DSlot(p, q)]).d;
    assert Rec(s[DSlot(p, q)], RecBlks(p, s, d)) in sg;
    assert ReadBlks(p, s, d, |d.addrs|) == ReadBlks(p, t, d, |d.addrs|);
    assert HomeBlks(s, d.dirs) == HomeBlks(t, d.dirs);
  }
  lemma ValidSame(p: Geo, s: Img, t: Img, q: int, sg: set<Rec>)
    requires Same(p, s, t) && NoDirs(sg, |s| - 1)
    ensures ValidAt(p, s, q, sg) == ValidAt(p, t, q, sg)
  {
    if ValidAt(p, s, q, sg) { ValidKept(p, s, t, q, sg); }
    if ValidAt(p, t, q, sg) { ValidKept(p, t, s, q, sg); }
  }
  lemma FromKept(p: Geo, s: Img, t: Img, hb: BV, ms: seq<BM>, w: St, v: St, sg: set<Rec>)
    requires Same(p, s, t) && NoDirs(sg, |s| - 1) && |s| - 1 in p.torn && RecBy(p, s, hb, ms, w, v, sg)
    ensures RecBy(p, t, hb, ms, w, v, sg)
  {
    var q := DecHdr(p.key, hb).q;
    forall x ensures DirsOf(p, t, x) == DirsOf(p, s, x) { assert t[DSlot(p, x)] == s[DSlot(p, x)]; }
    forall i | 0 <= i < |ms|
      ensures GroupAt(p, t, q + i, ms[i], sg) { assert GroupAt(p, s, q + i, ms[i], sg); ValidSame(p, s, t, q + i, sg); }
    ValidSame(p, s, t, q + |ms|, sg);
    assert Log(p, t, q, ms, sg);
    forall a ensures IsDir(p, t, q, |ms|, a) == IsDir(p, s, q, |ms|, a) &&
      (IsDir(p, s, q, |ms|, a) ==> p.headerAt <= a < |s| - 1) {
      if IsDir(p, s, q, |ms|, a) {
        var i :| 0 <= i < |ms| && a in DirsOf(p, s, q + i);
        assert a in DirsOf(p, t, q + i);
        assert GroupAt(p, s, q + i, ms[i], sg);
        var d := DecDesc(s[DSlot(p, q + i)]).d;
        assert Rec(s[DSlot(p, q + i)], RecBlks(p, s, d)) in sg;
      }
      if IsDir(p, t, q, |ms|, a) {
        var i :| 0 <= i < |ms| && a in DirsOf(p, t, q + i);
        assert a in DirsOf(p, s, q + i);
      }
    }
    assert WithDirs(p, t, q, |ms|, w) == WithDirs(p, s, q, |ms|, w);
    assert HomeOf(p, t).Keys == HomeOf(p, s).Keys;
  }
  lemma Header(p: Geo, s: Img, t: Img, hb: BV, v: St, sg: set<Rec>)
    requires Same(p, s, t) && NoDirs(sg, |s| - 1) && |s| - 1 in p.torn && HdrWf(p.key, hb) && RecFrom(p, s, hb, v, sg)
    ensures RecFrom(p, t, hb, v, sg)
  {
    var q := Under(p, hb);
    var ms, w :| RecBy(q, s, hb, ms, w, v, sg);
    FromKept(q, s, t, hb, ms, w, v, sg);
  }
  // The journal of w, which becomes a volume, recovers to what it did.
  lemma Kept(p: Geo, w: Img, s: Super, i: Img, v: St, sg: set<Rec>)
    requires RecOK(p, w, v, sg) && 0 < p.headerAt && Home(p) < |w| && NoDirs(sg, |w| - 1) && |w| - 1 in p.torn
    requires SuperblockCopies.Whole(w, s, i)
    ensures RecOK(p, i, v, sg)
  {
    assert Same(p, w, i);
    Header(p, w, i, w[p.headerAt], v, sg);
    Header(p, w, i, w[Copy(p)], v, sg);
  }
  // So it is for the journal that Prepare makes: the last block is torn to it, and it has no groups yet.
  lemma New(s: Super, seal: Seals.Seal, w: Img, i: Img, v: St)
    requires SuperOk(s) && Making.LogOk(s) && Making.SealOk(s, seal) && |w| == s.size as int &&
      RecOK(Making.JGeo(s, seal), w, v, {}) && SuperblockCopies.Whole(w, s, i)
    ensures RecOK(Making.JGeo(s, seal), i, v, {})
  {
    Making.GeoFits(s, seal);
    Kept(Making.JGeo(s, seal), w, s, i, v, {});
  }
  // ... and its tree can be read, if it could be
  lemma Sits(s: Super, seal: Seals.Seal, w: Img, i: Img)
    requires SuperOk(s) && Making.LogOk(s) && Making.SealOk(s, seal) && |w| == s.size as int &&
      SuperblockCopies.Whole(w, s, i) && TreeSaid.HeadersSit(Making.JGeo(s, seal), 1, w)
    ensures TreeSaid.HeadersSit(Making.JGeo(s, seal), 1, i)
  {
    var p := Making.JGeo(s, seal);
    Making.GeoFits(s, seal);
    forall a | (a == p.headerAt || a == Copy(p)) && DecHdr(p.key, i[a]).Hdr?
      ensures SitsOn(p.tree, 1, i, DecHdr(p.key, i[a]).root) {
      assert i[a] == w[a];
      var r := DecHdr(p.key, i[a]).root;
      var pg :| IsTree(p.tree, pg, r) && PagesOn(p.tree, 1, w, pg, r);
      assert PagesOn(p.tree, 1, i, pg, r);
    }
  }

  // the image i is the volume s, or was: it lacks block 0 at most. It recovers to v.
  predicate Made(s: Super, seal: Seals.Seal, v: St, i: Img) {
    2 <= |i| && |i[|i|-1]| == 4096 && Acceptable(i[|i|-1]) && SuperAt(i[|i|-1]) == s &&
      RecOK(Making.JGeo(s, seal), i, v, {})
  }
  // Makes the volume s, with an empty root directory. zeroed: bitmaps, inodes, and records are all zeros. blank: what
  // it held is no volume any more, durably; from then on a crash at any operation leaves none, or from the one that
  // writes block 0 on all of this one.
  method Make(d: Disk, s: Super, seal: Seals.Seal, pages: CodePages.Pages, zeroed: bool, mode: uint32, uid: uint32,
    gid: uint32) returns (io: bool, ghost blank: bool, ghost v: St)
    requires d.Valid() && |d.cur| == s.size as int && SuperOk(s) && Making.LogOk(s) && Making.SealOk(s, seal) &&
      d.owner == map[] && (forall i: Img :: i in d.ok)
    requires zeroed ==> forall a :: s.geometry.inodeBitmap as int <= a < s.geometry.data0 as int ==>
      d.poss[a] == iset{Zeros(4096)}
    requires pages.t == seal.t && pages.first == 1
    modifies d, seal, pages
    ensures d.Valid() && (if io then blank else d.bad || Erred(d))
    ensures blank ==> forall i :: CrashImg(d.poss, i) ==> SuperblockCopies.NoVolume(i) || Made(s, seal, v, i)
    ensures io ==> Making.First(s, FirstInodes.RootMeta(mode, uid, gid, s.ctime, s.ctimens), v)
    ensures io ==> forall i :: CrashImg(d.poss, i) ==>
      Made(s, seal, v, i) && |i[0]| == 4096 && Acceptable(i[0]) && SuperAt(i[0]) == s
    ensures io ==> Erred(d) || forall i :: CrashImg(d.poss, i) ==> TreeSaid.HeadersSit(Making.JGeo(s, seal), 1, i)
  {
    v := map[];
    io := SuperblockCopies.Blank(d);
    blank := io;
    if !io { return; }
    io, v := Making.Prepare(d, s, seal, pages, zeroed, mode, uid, gid);
    if !io { return; }
    ghost var w := d.cur;
    assert CrashImg(d.poss, w);
    io := SuperblockCopies.Commission(d, s);
    forall i | CrashImg(d.poss, i) && SuperblockCopies.Whole(w, s, i)
      ensures Made(s, seal, v, i) && (Erred(d) || TreeSaid.HeadersSit(Making.JGeo(s, seal), 1, i)) {
      New(s, seal, w, i, v);
      if !Erred(d) { Sits(s, seal, w, i); }
    }
  }
}
