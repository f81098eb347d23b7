// That a volume gets its superblocks changes nothing of what its journal recovers to. Commission, in format/copies.dfy, leaves all blocks as they
// were but those two, of which the journal takes the second for a home block that nobody writes.
include "making.dfy"

module Commissioned {
  import opened DiskS
  import opened LogSpec
  import opened LogModel
  import opened SuperblockFormat
  import SuperblockCopies
  import Making
  import LogS

  // no group in the log wrote block a straight home
  predicate NoDirs(sg: set<Rec>, a: int) { forall r :: r in sg && DecDesc(r.b).SomeDesc? ==> a !in DecDesc(r.b).d.dirs }
  // s and t are the same but before the log, and in the last block
  predicate Same(p: Geo, s: Img, t: Img) { Fits(p, s) && Home(p) < |s| == |t| && forall a :: p.at <= a < |s| - 1 ==> s[a] == t[a] }

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
    forall i | 0 <= i < |ms| ensures GM(p, t, q + i, ms[i], sg) { assert GM(p, s, q + i, ms[i], sg); ValidSame(p, s, t, q + i, sg); }
    ValidSame(p, s, t, q + |ms|, sg);
    assert Log(p, t, q, ms, sg);
    forall a ensures IsDir(p, t, q, |ms|, a) == IsDir(p, s, q, |ms|, a) && (IsDir(p, s, q, |ms|, a) ==> p.at <= a < |s| - 1) {
      if IsDir(p, s, q, |ms|, a) {
        var i :| 0 <= i < |ms| && a in DirsOf(p, s, q + i);
        assert a in DirsOf(p, t, q + i);
        assert GM(p, s, q + i, ms[i], sg);
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
    requires RecOK(p, w, v, sg) && 0 < p.at && Home(p) < |w| && NoDirs(sg, |w| - 1) && |w| - 1 in p.torn
    requires SuperblockCopies.Whole(w, s, i)
    ensures RecOK(p, i, v, sg)
  {
    assert Same(p, w, i);
    Header(p, w, i, w[p.at], v, sg);
    Header(p, w, i, w[Copy(p)], v, sg);
  }
  // So it is for the journal that Prepare makes: the last block is torn to it, and it has no groups yet.
  lemma New(s: Super, seal: LogS.Seal, w: Img, i: Img, v: St)
    requires SuperOk(s) && Making.LogOk(s) && Making.SealOk(s, seal) && |w| == s.size as int && RecOK(Making.JGeo(s, seal), w, v, {}) && SuperblockCopies.Whole(w, s, i)
    ensures RecOK(Making.JGeo(s, seal), i, v, {})
  {
    Making.GeoFits(s, seal);
    Kept(Making.JGeo(s, seal), w, s, i, v, {});
  }
}
