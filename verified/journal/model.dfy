// The log, as pure mathematics: where things lie, what a disk image recovers to, the
// ghost state of the protocol, what the disk may hold in each state of the protocol
// (DInv), and the crash lemma: every image that a crash may leave recovers to the last
// durable state, or to the one of the group that is just being committed.
include "../trusted/log.s.dfy"
include "slot.dfy"

module LogModel {
  import opened Machine
  import opened DiskS
  import opened LogSpec
  import opened Ring
  type St = map<int, BV>                    // contents of the home blocks

  // Header at block at, then nd descriptor slots, then a ring of nr data blocks. All
  // blocks after it are home blocks; those before it are none of the journal's business.
  // key stands for the volume's key.
  datatype Geo = Geo(at: int, nd: int, nr: int, key: int)
  predicate GeoOk(p: Geo) { 0 <= p.at < 0x1_0000_0000 && 2 <= p.nd < 0x1_0000_0000 && 1000 <= p.nr < 0x1_0000_0000 }
  function DSlot(p: Geo, q: int): (s: int) requires GeoOk(p) ensures p.at < s <= p.at + p.nd { p.at + 1 + Slot(q, p.nd) }
  function LSlot(p: Geo, x: int): (s: int) requires GeoOk(p) ensures p.at + p.nd < s < Home(p) { p.at + 1 + p.nd + Slot(x, p.nr) }
  function Home(p: Geo): int { p.at + 1 + p.nd + p.nr }

  function Ov(x: BM, y: BM): BM {            // y overrides x
    map a | a in x.Keys + y.Keys :: if a in y then y[a] else x[a]
  }
  function Over(x: St, y: BM): St {          // y applied to state x
    map a | a in x :: if a in y then y[a] else x[a]
  }
  function Merge(ms: seq<BM>): BM {
    if ms == [] then map[] else Ov(Merge(ms[..|ms|-1]), ms[|ms|-1])
  }
  lemma MergeCat(x: seq<BM>, y: seq<BM>)
    ensures Merge(x + y) == Ov(Merge(x), Merge(y))
  {
    if y == [] { assert x + y == x; }
    else {
      var y' := y[..|y|-1]; var l := y[|y|-1];
      assert (x + y)[..|x+y|-1] == x + y';
      MergeCat(x, y');
      assert Merge(x + y) == Ov(Merge(x + y'), l);
    }
  }
  function HomeOf(p: Geo, s: Img): St { map a | 0 <= a < |s| && Home(p) <= a :: s[a] }

  // ---- what an image recovers to ----
  function ReadBlks(p: Geo, s: Img, pos: int, n: int): (r: seq<BV>)
    requires GeoOk(p) && |s| >= Home(p) && 0 <= n
    ensures |r| == n
    ensures forall i :: 0 <= i < n ==> r[i] == s[LSlot(p, pos + i)]
  {
    if n == 0 then [] else ReadBlks(p, s, pos, n-1) + [s[LSlot(p, pos + n - 1)]]
  }
  predicate DescWf(p: Geo, d: Desc, n: int) {
    0 <= d.pos < 0x2000_0000_0000_0000 && |d.addrs| <= 500 && forall i :: 0 <= i < |d.addrs| ==> Home(p) <= d.addrs[i] < n
  }
  predicate Fits(p: Geo, s: Img) { GeoOk(p) && |s| >= Home(p) }
  predicate ValidAt(p: Geo, s: Img, q: int, sg: set<Rec>)
    requires Fits(p, s)
  {
    var b := s[DSlot(p, q)];
    var o := DecDesc(b);
    o.SomeDesc? && o.d.sq == q && DescWf(p, o.d, |s|) && Rec(b, ReadBlks(p, s, o.d.pos, |o.d.addrs|)) in sg
  }
  predicate GM(p: Geo, s: Img, q: int, m: BM, sg: set<Rec>)
    requires Fits(p, s)
  {
    ValidAt(p, s, q, sg) && var d := DecDesc(s[DSlot(p, q)]).d;
    (forall i :: 0 <= i < |d.addrs| ==> d.addrs[i] in m && m[d.addrs[i]] == s[LSlot(p, d.pos + i)]) &&
    (forall a :: a in m ==> a in d.addrs)
  }
  predicate Below(r: Rec, e: int) { DecDesc(r.b).SomeDesc? && DecDesc(r.b).d.sq < e }
  predicate Log(p: Geo, s: Img, q: int, ms: seq<BM>, sg: set<Rec>)
    requires Fits(p, s)
  {
    (forall i :: 0 <= i < |ms| ==> GM(p, s, q + i, ms[i], sg)) && !ValidAt(p, s, q + |ms|, sg) &&
    (forall r :: r in sg ==> Below(r, q + |ms| + 1))
  }
  // s recovers to state v
  predicate RecOK(p: Geo, s: Img, v: St, sg: set<Rec>) {
    Fits(p, s) && HdrTail(s[p.at]) && 0 <= DecHdr(p.key, s[p.at]) < 0x3000_0000_0000_0000 &&
    exists ms :: Log(p, s, DecHdr(p.key, s[p.at]), ms, sg) && v == Over(HomeOf(p, s), Merge(ms))
  }

  // ---- ghost state of the on-disk protocol ----
  datatype G = G(p: Geo, sg: set<Rec>,       // layout; all records sealed so far
                 hq: int,                    // first live sequence number (header)
                 gs: seq<BM>, ds: seq<Desc>, // logged groups and their descriptors
                 k: int,                     // gs[..k] are being installed
                 com: bool, cg: BM, cd: Desc, cb: BV, // committing group, its descriptor and block
                 base: St, im: BM, ip: int,  // installer: 0 idle, 1 writing, 2 home durable, 3 header written
                 lo: int, ilo: int, wp: int) // live log positions [lo, wp), after install [ilo, wp)

  predicate GroupWf(p: Geo, m: BM, d: Desc, sq: int, n: int) {
    DescWf(p, d, n) && d.sq == sq &&
    (forall i :: 0 <= i < |d.addrs| ==> d.addrs[i] in m) &&
    (forall a :: a in m ==> a in d.addrs)
  }
  predicate Logged(poss: Poss, g: G, m: BM, d: Desc, sq: int)
    requires GeoOk(g.p) && |poss| >= Home(g.p)
  {
    GroupWf(g.p, m, d, sq, |poss|) &&
    (forall x :: x in poss[DSlot(g.p, sq)] ==> DecDesc(x) == SomeDesc(d) && Rec(x, BlksOf(m, d.addrs)) in g.sg) &&
    (forall i :: 0 <= i < |d.addrs| ==> poss[LSlot(g.p, d.pos + i)] <= iset{m[d.addrs[i]]})
  }
  function End(g: G): int { g.hq + |g.gs| }
  // every record sealed so far has a number below End, or is that of the committing group
  predicate Sealed(g: G) {
    forall r :: r in g.sg ==> Below(r, End(g)) || (g.com && IsCom(g, r))
  }
  predicate IsCom(g: G, r: Rec) {
    (forall i :: 0 <= i < |g.cd.addrs| ==> g.cd.addrs[i] in g.cg) && r == Rec(g.cb, BlksOf(g.cg, g.cd.addrs))
  }
  // well-formedness of the ghost state alone
  predicate GInv(g: G, n: int) {
    GeoOk(g.p) && n >= Home(g.p) && 0 <= g.hq && |g.ds| == |g.gs| && 0 <= g.k <= |g.gs| <= g.p.nd && End(g) < 0x2000_0000_0000_0000 &&
    g.base.Keys == (set a | Home(g.p) <= a < n) &&
    g.im == Merge(g.gs[..g.k]) && 0 <= g.ip <= 3 && (g.ip == 0 ==> g.k == 0) &&
    (forall i :: 0 <= i < |g.gs| ==> GroupWf(g.p, g.gs[i], g.ds[i], g.hq + i, n)) &&
    (g.com ==> GroupWf(g.p, g.cg, g.cd, End(g), n) && |g.gs| < g.p.nd && DecDesc(g.cb) == SomeDesc(g.cd) && Rec(g.cb, BlksOf(g.cg, g.cd.addrs)) in g.sg) &&
    Sealed(g)
  }
  // log space: live groups do not overlap, and the committing group does not overwrite them
  predicate PInv(g: G)
    requires |g.ds| == |g.gs| && 0 <= g.k <= |g.gs|
  {
    0 <= g.lo <= g.ilo <= g.wp <= g.lo + g.p.nr && g.wp < 0x2000_0000_0000_0000 && (g.ip == 0 ==> g.ilo == g.lo) &&
    (forall i :: 0 <= i < g.k ==> g.lo <= g.ds[i].pos && g.ds[i].pos + |g.ds[i].addrs| <= g.ilo) &&
    (forall i :: g.k <= i < |g.gs| ==> g.ilo <= g.ds[i].pos && g.ds[i].pos + |g.ds[i].addrs| <= g.wp) &&
    (g.com ==> g.cd.pos == g.wp && g.wp + |g.cd.addrs| <= g.lo + g.p.nr)
  }
  predicate HdrOk(x: BV, g: G) {
    HdrTail(x) && (DecHdr(g.p.key, x) == g.hq || (g.ip == 3 && DecHdr(g.p.key, x) == g.hq + g.k))
  }
  // what the disk may hold
  predicate DInv(poss: Poss, g: G) {
    GInv(g, |poss|) &&
    (forall x :: x in poss[g.p.at] ==> HdrOk(x, g)) &&
    (forall i :: 0 <= i < |g.gs| ==> Logged(poss, g, g.gs[i], g.ds[i], g.hq + i)) &&
    (forall a :: Home(g.p) <= a < |poss| ==> HomePoss(poss[a], g, a))
  }
  predicate HomePoss(s: iset<BV>, g: G, a: int)
    requires a in g.base
  {
    if a !in g.im || g.ip == 0 then s <= iset{g.base[a]}
    else if g.ip == 1 then true
    else s <= iset{g.im[a]}
  }
  function DurState(g: G): St { Over(g.base, Merge(g.gs)) }
  function ComState(g: G): St { Over(DurState(g), g.cg) }

  lemma CrashLogged(poss: Poss, g: G, s: Img, i: int)
    requires DInv(poss, g) && CrashImg(poss, s) && 0 <= i < |g.gs|
    ensures GM(g.p, s, g.hq + i, g.gs[i], g.sg)
  {
    var q := g.hq + i; var d := g.ds[i]; var m := g.gs[i]; var p := g.p;
    assert Logged(poss, g, m, d, q);
    assert s[DSlot(p, q)] in poss[DSlot(p, q)];
    var rb := ReadBlks(p, s, d.pos, |d.addrs|);
    forall j | 0 <= j < |d.addrs| ensures rb[j] == m[d.addrs[j]] && s[LSlot(p, d.pos + j)] == m[d.addrs[j]] {
      assert s[LSlot(p, d.pos + j)] in poss[LSlot(p, d.pos + j)];
    }
    assert rb == BlksOf(m, d.addrs);
  }
  lemma CrashCom(poss: Poss, g: G, s: Img)
    requires DInv(poss, g) && CrashImg(poss, s)
    ensures ValidAt(g.p, s, End(g), g.sg) ==> g.com && GM(g.p, s, End(g), g.cg, g.sg)
    ensures !ValidAt(g.p, s, End(g) + 1, g.sg)
  {
    if ValidAt(g.p, s, End(g), g.sg) {
      var x := s[DSlot(g.p, End(g))];
      var d := DecDesc(x).d;
      var rb := ReadBlks(g.p, s, d.pos, |d.addrs|);
      var r := Rec(x, rb);
      assert r in g.sg && !Below(r, End(g));
      assert g.com && IsCom(g, r);
      assert d == g.cd;
      forall j | 0 <= j < |d.addrs| ensures s[LSlot(g.p, d.pos + j)] == g.cg[d.addrs[j]] {
        assert rb[j] == s[LSlot(g.p, d.pos + j)];
      }
    }
    if ValidAt(g.p, s, End(g) + 1, g.sg) {
      var x := s[DSlot(g.p, End(g) + 1)];
      var d := DecDesc(x).d;
      var r := Rec(x, ReadBlks(g.p, s, d.pos, |d.addrs|));
      assert r in g.sg;
    }
  }
  lemma CrashHome(poss: Poss, g: G, s: Img, c: int)
    requires DInv(poss, g) && CrashImg(poss, s) && (c == 0 || (g.ip == 3 && c == g.k))
    ensures Over(HomeOf(g.p, s), Merge(g.gs[c..])) == DurState(g)
  {
    var tail := g.gs[c..];
    assert g.gs == g.gs[..g.k] + g.gs[g.k..];
    MergeCat(g.gs[..g.k], g.gs[g.k..]);
    assert c == 0 ==> tail == g.gs;
    var hs := HomeOf(g.p, s);
    forall a | Home(g.p) <= a < |s| ensures a in hs && Over(hs, Merge(tail))[a] == DurState(g)[a] {
      assert s[a] in poss[a];
      assert HomePoss(poss[a], g, a);
    }
  }
  lemma OverOv(x: St, y: BM, z: BM)
    ensures Over(x, Ov(y, z)) == Over(Over(x, y), z)
  {}
  lemma LogTail(poss: Poss, g: G, s: Img, c: int)
    requires DInv(poss, g) && CrashImg(poss, s) && 0 <= c <= |g.gs|
    ensures !ValidAt(g.p, s, End(g), g.sg) ==> Log(g.p, s, g.hq + c, g.gs[c..], g.sg)
    ensures ValidAt(g.p, s, End(g), g.sg) ==> g.com && Log(g.p, s, g.hq + c, g.gs[c..] + [g.cg], g.sg)
  {
    var tail := g.gs[c..];
    CrashCom(poss, g, s);
    forall r | r in g.sg ensures Below(r, End(g) + 1) { }
    forall i | 0 <= i < |tail| ensures GM(g.p, s, g.hq + c + i, tail[i], g.sg) { CrashLogged(poss, g, s, c + i); }
  }
  lemma CrashLemma(poss: Poss, g: G, s: Img)
    requires DInv(poss, g) && CrashImg(poss, s)
    ensures RecOK(g.p, s, DurState(g), g.sg) || (g.com && RecOK(g.p, s, ComState(g), g.sg))
  {
    assert s[g.p.at] in poss[g.p.at];
    assert HdrOk(s[g.p.at], g);
    var h := DecHdr(g.p.key, s[g.p.at]);
    var c := h - g.hq;
    CrashHome(poss, g, s, c);
    LogTail(poss, g, s, c);
    RecIntro(s, h, g, c);
  }
  lemma RecIntro(s: Img, h: int, g: G, c: int)
    requires Fits(g.p, s) && HdrTail(s[g.p.at]) && 0 <= h < 0x3000_0000_0000_0000 && h == DecHdr(g.p.key, s[g.p.at]) && 0 <= c <= |g.gs|
    requires Over(HomeOf(g.p, s), Merge(g.gs[c..])) == DurState(g)
    requires Log(g.p, s, h, g.gs[c..], g.sg) || (g.com && Log(g.p, s, h, g.gs[c..] + [g.cg], g.sg))
    ensures RecOK(g.p, s, DurState(g), g.sg) || (g.com && RecOK(g.p, s, ComState(g), g.sg))
  {
    var tail := g.gs[c..];
    if !Log(g.p, s, h, tail, g.sg) {
      var ms := tail + [g.cg];
      assert ms[..|ms|-1] == tail;
      OverOv(HomeOf(g.p, s), Merge(tail), g.cg);
    }
  }
}
