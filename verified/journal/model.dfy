// The log, as pure mathematics: where things lie, what a disk image recovers to, the
// ghost state of the protocol, what the disk may hold in each state of the protocol
// (DInv), and the crash lemma: every image that a crash may leave recovers to the last
// durable state, or to the one of the group that is just being committed.
//
// Direct blocks. A block whose allocation bit is clear in the durable state holds nothing
// that a crash must leave alone. If a group writes such a block, its data may go straight
// home, as part of the group's record: the descriptor's seal covers them there. So while the
// group is live (its number is not below the header's), its direct blocks must not be
// written again: no live group has them in the log, and no other live group has them direct.
// A volume recovers to a state but for the blocks that are free in it (Agree).
include "../trusted/log.s.dfy"
include "../lib/bits.dfy"
include "slot.dfy"

module LogModel {
  import opened Machine
  import opened DiskS
  import opened LogSpec
  import opened Ring
  import opened Bits
  type St = map<int, BV>                    // contents of the home blocks
  const Window := 32                        // at most so many groups are written that are not known to be durable

  // Header at block at, then nd units of 16 blocks, then a ring of nr data blocks, then a copy of the header. A unit has
  // the descriptor of a group in its first block. Behind it lie the data of a group that has no
  // more than 15 blocks of them, so that they are written in one run; those of a larger group lie on
  // the ring. (16 and 15 stand here as they are, and wherever addresses are computed: a product with
  // a name would be nonlinear for the verifier.) All blocks after the copy are home blocks; those before the header are none of the journal's business.
  // key stands for the volume's key, ep for the epoch whose groups count: that of the header. Blocks lo..hi have allocation bits, in the blocks from
  // bit on, which come before them: block a has bit a % 32768 of block bit + a / 32768.
  // tree: the volume's tree of codes. torn: blocks that a crash may leave with other contents than the tree says: those
  // that were free and being written straight home when an earlier crash came.
  datatype Geo = Geo(at: int, nd: int, nr: int, key: int, ep: int, bit: int, flo: int, fhi: int, tree: TreeGeo, torn: set<int>)
  predicate GeoOk(p: Geo) {
    0 <= p.at < 0x1_0000_0000 && 2 <= p.nd < 0x1_0000_0000 && 1000 <= p.nr < 0x1_0000_0000 &&
    0 <= p.bit && 0 <= p.flo && 0 <= p.fhi && p.bit + p.fhi / 32768 < p.flo && p.tree.key == p.key
  }
  function DSlot(p: Geo, q: int): (s: int) requires GeoOk(p) ensures p.at < s <= p.at + 16 * p.nd - 15 { p.at + 1 + 16 * Slot(q, p.nd) }
  function LSlot(p: Geo, x: int): (s: int) requires GeoOk(p) ensures p.at + 16 * p.nd < s < Copy(p) { p.at + 1 + 16 * p.nd + Slot(x, p.nr) }
  function Copy(p: Geo): int { p.at + 1 + 16 * p.nd + p.nr }
  function Home(p: Geo): int { Copy(p) + 1 }
  // where the i-th data block of a group lies
  function At(p: Geo, d: Desc, i: int): (s: int)
    requires GeoOk(p)
    ensures 0 <= i < |d.addrs| ==> p.at < s < Copy(p)
  { if |d.addrs| <= 15 then DSlot(p, d.sq) + 1 + i else LSlot(p, d.pos + i) }

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
  // block a is free in state v
  predicate {:opaque} FreeIn(p: Geo, v: St, a: int) {
    0 <= p.flo <= a < p.fhi && var b := p.bit + a / 32768; b in v && |v[b]| == 4096 && !BlockBit(v[b], a % 32768)
  }
  // v and w are the same but for what is free
  predicate Agree(p: Geo, v: St, w: St) {
    v.Keys == w.Keys && forall a :: a in v && !FreeIn(p, v, a) ==> w[a] == v[a]
  }
  lemma AgreeFree(p: Geo, v: St, w: St)        // and both say the same about what is free
    requires GeoOk(p) && Agree(p, v, w)
    ensures forall a :: FreeIn(p, w, a) == FreeIn(p, v, a)
  {
    reveal FreeIn();
    forall a ensures FreeIn(p, w, a) == FreeIn(p, v, a) {
      if p.flo <= a < p.fhi {
        var b := p.bit + a / 32768;
        assert b < p.flo;
        assert !FreeIn(p, v, b);
      }
    }
  }
  lemma AgreeTrans(p: Geo, u: St, v: St, w: St)
    requires GeoOk(p) && Agree(p, u, v) && Agree(p, v, w)
    ensures Agree(p, u, w)
  { AgreeFree(p, u, v); }
  function HomeOf(p: Geo, s: Img): St { map a | 0 <= a < |s| && Home(p) <= a :: s[a] }

  // ---- what an image recovers to ----
  // the first n data blocks of a group
  function ReadBlks(p: Geo, s: Img, d: Desc, n: int): (r: seq<BV>)
    requires GeoOk(p) && |s| >= Home(p) && 0 <= n <= |d.addrs|
    ensures |r| == n
    ensures forall i :: 0 <= i < n ==> r[i] == s[At(p, d, i)]
  {
    if n == 0 then [] else ReadBlks(p, s, d, n-1) + [s[At(p, d, n - 1)]]
  }
  function HomeBlks(s: Img, l: seq<int>): (r: seq<BV>)
    requires forall i :: 0 <= i < |l| ==> 0 <= l[i] < |s|
    ensures |r| == |l|
    ensures forall i :: 0 <= i < |l| ==> r[i] == s[l[i]]
  {
    if l == [] then [] else HomeBlks(s, l[..|l|-1]) + [s[l[|l|-1]]]
  }
  predicate DescWf(p: Geo, d: Desc, n: int)
    requires GeoOk(p)
    ensures DescWf(p, d, n) ==> forall i :: 0 <= i < |d.dirs| ==> 0 <= d.dirs[i] < n
  {
    d.ep == p.ep && 0 <= d.pos < 0x2000_0000_0000_0000 && |d.addrs| + |d.dirs| <= 500 &&
    (forall i :: 0 <= i < |d.addrs| ==> Home(p) <= d.addrs[i] < n) &&
    (forall i :: 0 <= i < |d.dirs| ==> Home(p) <= d.dirs[i] < n) &&
    (forall i, j :: 0 <= i < j < |d.dirs| ==> d.dirs[i] != d.dirs[j])
  }
  function RecBlks(p: Geo, s: Img, d: Desc): seq<BV>
    requires Fits(p, s) && DescWf(p, d, |s|)
  { ReadBlks(p, s, d, |d.addrs|) + HomeBlks(s, d.dirs) }
  predicate Fits(p: Geo, s: Img) { GeoOk(p) && |s| >= Home(p) }
  predicate ValidAt(p: Geo, s: Img, q: int, sg: set<Rec>)
    requires Fits(p, s)
  {
    var b := s[DSlot(p, q)];
    var o := DecDesc(b);
    o.SomeDesc? && o.d.sq == q && DescWf(p, o.d, |s|) && Rec(b, RecBlks(p, s, o.d)) in sg
  }
  // m: what the log holds for the group with number q
  predicate GM(p: Geo, s: Img, q: int, m: BM, sg: set<Rec>)
    requires Fits(p, s)
  {
    ValidAt(p, s, q, sg) && var d := DecDesc(s[DSlot(p, q)]).d;
    (forall i :: 0 <= i < |d.addrs| ==> d.addrs[i] in m && m[d.addrs[i]] == s[At(p, d, i)]) &&
    (forall a :: a in m ==> a in d.addrs)
  }
  predicate Below(r: Rec, e: int) { DecDesc(r.b).SomeDesc? && DecDesc(r.b).d.sq < e }
  // a is a direct block of a record in sg, with a number not below q
  predicate Direct(sg: set<Rec>, q: int, a: int) {
    exists r :: r in sg && DirectOf(r, q, a)
  }
  predicate DirectOf(r: Rec, q: int, a: int) { DecDesc(r.b).SomeDesc? && DecDesc(r.b).d.sq >= q && a in DecDesc(r.b).d.dirs }
  predicate Clear(ms: seq<BM>, sg: set<Rec>, q: int) {
    forall a, i {:trigger a in ms[i]} :: 0 <= i < |ms| && a in ms[i] ==> !Direct(sg, q, a)
  }
  predicate Log(p: Geo, s: Img, q: int, ms: seq<BM>, sg: set<Rec>)
    requires Fits(p, s)
  {
    (forall i :: 0 <= i < |ms| ==> GM(p, s, q + i, ms[i], sg)) && !ValidAt(p, s, q + |ms|, sg) &&
    EndsAt(sg, q + |ms|) && Clear(ms, sg, q) && DirsApart(p, s, q, q + |ms|)
  }
  // The log may end where group e should be: no record says that it was durable, and none has a number much larger.
  predicate EndsAt(sg: set<Rec>, e: int) { forall r :: r in sg ==> Below(r, e + Window) && DecDesc(r.b).d.dur <= e }
  // no two of the groups with numbers from q up to e have the same direct block
  predicate DirsApart(p: Geo, s: Img, q: int, e: int) requires Fits(p, s) {
    forall i, j, a {:trigger a in DirsOf(p, s, i), a in DirsOf(p, s, j)} :: q <= i < j < e && a in DirsOf(p, s, i) ==> a !in DirsOf(p, s, j)
  }
  // a block is a header that can be started from
  predicate HdrWf(key: int, b: BV) { HdrTail(b) && DecHdr(key, b).Hdr? && 0 <= DecHdr(key, b).q < 0x3000_0000_0000_0000 }
  // the layout with the epoch of header b
  function Under(p: Geo, b: BV): Geo requires DecHdr(p.key, b).Hdr? { p.(ep := DecHdr(p.key, b).ep) }
  // the tree with the pages pg and the root r has the codes of the contents w of the home blocks
  predicate TreeSays(p: Geo, pg: seq<BV>, r: CV, w: St) {
    IsTree(p.tree, pg, r) && forall a :: a in w ==> 0 <= a - Home(p) < p.tree.n && Vouches(p.key, a - Home(p), CodeIn(p.tree, pg, a - Home(p)), w[a])
  }
  // the root r is that of a tree which has the codes of w
  predicate Says(p: Geo, r: CV, w: St) { p.tree.np <= 0 || exists pg :: TreeSays(p, pg, r, w) }
  // the direct blocks of the group with number q
  function DirsOf(p: Geo, s: Img, q: int): seq<int> requires Fits(p, s) {
    var o := DecDesc(s[DSlot(p, q)]); if o.SomeDesc? then o.d.dirs else []
  }
  // a is a direct block of one of n groups, from number q on
  predicate IsDir(p: Geo, s: Img, q: int, n: int, a: int) requires Fits(p, s) { exists i :: 0 <= i < n && a in DirsOf(p, s, q + i) }
  // the contents w that a tree says, but of the direct blocks of n groups what is at their homes
  function WithDirs(p: Geo, s: Img, q: int, n: int, w: St): St requires Fits(p, s) {
    map a | a in w :: if IsDir(p, s, q, n, a) && 0 <= a < |s| then s[a] else w[a]
  }
  // ... and over it the blocks of these groups, ms
  function Recovered(p: Geo, s: Img, q: int, ms: seq<BM>, w: St): St requires Fits(p, s) { Over(WithDirs(p, s, q, |ms|, w), Merge(ms)) }
  // What the tree says is at home, but for what is free in v, or torn.
  predicate AtHome(p: Geo, s: Img, q: int, ms: seq<BM>, v: St, w: St) requires Fits(p, s) {
    forall a :: a in w && Home(p) <= a < |s| && a !in p.torn && !FreeIn(p, v, a) && a !in Merge(ms) && !IsDir(p, s, q, |ms|, a) ==> s[a] == w[a]
  }
  // s, read from header block b on, has the log ms and recovers to state v, but for what is free in it. w is what the tree of
  // this header says. So the state comes from codes, whatever the home blocks hold; and AtHome says that they hold it.
  predicate RecBy(p: Geo, s: Img, b: BV, ms: seq<BM>, w: St, v: St, sg: set<Rec>) {
    Fits(p, s) && HdrWf(p.key, b) && p == Under(p, b) && var hdr := DecHdr(p.key, b);
    Log(p, s, hdr.q, ms, sg) && Says(p, hdr.root, w) && w.Keys == HomeOf(p, s).Keys && Agree(p, v, Recovered(p, s, hdr.q, ms, w)) && AtHome(p, s, hdr.q, ms, v, w)
  }
  predicate RecFrom(p: Geo, s: Img, b: BV, v: St, sg: set<Rec>)
    requires Fits(p, s) && HdrWf(p.key, b)
  { exists ms, w :: RecBy(Under(p, b), s, b, ms, w, v, sg) }
  // s recovers to state v, from whichever of its two headers
  predicate RecOK(p: Geo, s: Img, v: St, sg: set<Rec>) {
    Fits(p, s) && HdrWf(p.key, s[p.at]) && HdrWf(p.key, s[Copy(p)]) &&
    RecFrom(p, s, s[p.at], v, sg) && RecFrom(p, s, s[Copy(p)], v, sg)
  }

  // ---- ghost state of the on-disk protocol ----
  // A pending group: its blocks in the log, its direct ones, its descriptor, and the block of that.
  datatype Pend = Pend(m: BM, h: BM, d: Desc, b: BV)
  datatype G = G(p: Geo, sg: set<Rec>,       // layout; all records sealed so far
                 hq: int,                    // first live sequence number (header)
                 gs: seq<BM>, ds: seq<Desc>, // logged groups: their blocks in the log, and their descriptors
                 hs: seq<BM>,                // their direct blocks
                 k: int,                     // gs[..k] are being installed
                 ps: seq<Pend>,              // groups that no barrier has covered yet; the last one may be being written
                 base: St, im: BM, ip: int,  // installer: 0 idle, 1 writing, 2 home durable, 3 header written
                 lo: int, ilo: int, wp: int, // live log positions [lo, wp), after install [ilo, wp)
                 r: CV, tb: St,              // the root in the header, and what its tree says of the home blocks
                 r2: CV, tb2: St,            // the same after the installation
                 torn: set<int>)             // blocks that may not hold what base says

  predicate GroupWf(p: Geo, m: BM, h: BM, d: Desc, sq: int, n: int)
    requires GeoOk(p)
  {
    DescWf(p, d, n) && d.sq == sq &&
    (forall i :: 0 <= i < |d.addrs| ==> d.addrs[i] in m) &&
    (forall a :: a in m ==> a in d.addrs) &&
    (forall i :: 0 <= i < |d.dirs| ==> d.dirs[i] in h) &&
    (forall a :: a in h ==> a in d.dirs)
  }
  function GroupBlks(m: BM, h: BM, d: Desc): seq<BV>
    requires forall i :: 0 <= i < |d.addrs| ==> d.addrs[i] in m
    requires forall i :: 0 <= i < |d.dirs| ==> d.dirs[i] in h
  { BlksOf(m, d.addrs) + BlksOf(h, d.dirs) }
  predicate Logged(poss: Poss, g: G, m: BM, h: BM, d: Desc, sq: int)
    requires GeoOk(g.p) && |poss| >= Home(g.p)
  {
    GroupWf(g.p, m, h, d, sq, |poss|) &&
    (forall x :: x in poss[DSlot(g.p, sq)] ==> DecDesc(x) == SomeDesc(d) && Rec(x, GroupBlks(m, h, d)) in g.sg) &&
    (forall i :: 0 <= i < |d.addrs| ==> poss[At(g.p, d, i)] <= iset{m[d.addrs[i]]})
  }
  function End(g: G): int { g.hq + |g.gs| }
  // r is the record of pending group e
  predicate IsPend(e: Pend, r: Rec) {
    (forall i :: 0 <= i < |e.d.addrs| ==> e.d.addrs[i] in e.m) && (forall i :: 0 <= i < |e.d.dirs| ==> e.d.dirs[i] in e.h) &&
    r == Rec(e.b, GroupBlks(e.m, e.h, e.d))
  }
  // every record sealed so far has a number below End, or is that of a pending group; and what it says to be durable is
  predicate Sealed(g: G) {
    forall r :: r in g.sg ==> DecDesc(r.b).SomeDesc? && DecDesc(r.b).d.dur <= End(g) && (Below(r, End(g)) || exists i :: 0 <= i < |g.ps| && IsPend(g.ps[i], r))
  }
  predicate PendWf(g: G, e: Pend, sq: int, n: int) requires GeoOk(g.p) {
    GroupWf(g.p, e.m, e.h, e.d, sq, n) && e.d.dur <= End(g) && DecDesc(e.b) == SomeDesc(e.d) && Rec(e.b, GroupBlks(e.m, e.h, e.d)) in g.sg
  }
  // a is a direct block of a pending group
  predicate InPend(ps: seq<Pend>, a: int) { exists j :: 0 <= j < |ps| && a in ps[j].h }
  function Ms(ps: seq<Pend>): (r: seq<BM>) ensures |r| == |ps| && forall i :: 0 <= i < |ps| ==> r[i] == ps[i].m { if ps == [] then [] else Ms(ps[..|ps|-1]) + [ps[|ps|-1].m] }
  function Hs(ps: seq<Pend>): (r: seq<BM>) ensures |r| == |ps| && forall i :: 0 <= i < |ps| ==> r[i] == ps[i].h { if ps == [] then [] else Hs(ps[..|ps|-1]) + [ps[|ps|-1].h] }
  function DurState(g: G): St { Over(g.base, Merge(g.gs)) }
  // state v after the pending groups ps
  function Applied(v: St, ps: seq<Pend>): St { if ps == [] then v else var e := ps[|ps|-1]; Over(Over(Applied(v, ps[..|ps|-1]), e.h), e.m) }
  function ComState(g: G): St { Applied(DurState(g), g.ps) }
  // the state after the first i of them
  function {:opaque} PState(g: G, i: int): St requires 0 <= i <= |g.ps| { Applied(DurState(g), g.ps[..i]) }
  lemma PStates(g: G)
    ensures PState(g, 0) == DurState(g) && PState(g, |g.ps|) == ComState(g)
  { reveal PState(); assert g.ps[..0] == [] && g.ps[..|g.ps|] == g.ps; }
  // the direct blocks of live groups are at home, and no live group has them in the log
  predicate Kept(g: G) {
    (forall i, a {:trigger a in g.hs[i]} :: 0 <= i < |g.hs| && a in g.hs[i] ==> a in g.base && g.base[a] == g.hs[i][a] && !InPend(g.ps, a)) &&
    Clear(g.gs, g.sg, g.hq) && Clear(Ms(g.ps), g.sg, g.hq) &&
    (forall i, a {:trigger a in g.hs[i]} :: 0 <= i < |g.hs| && a in g.hs[i] ==> Direct(g.sg, g.hq + i, a)) && Free(g)
  }
  // the direct blocks of a pending group are free in each state that a crash may leave without it
  predicate {:opaque} Free(g: G) {
    (forall j, a :: DirPend(g.ps, j, a) ==> Direct(g.sg, End(g) + j, a)) &&
    (forall i, j, a {:trigger PState(g, i), DirPend(g.ps, j, a)} :: 0 <= i <= j && DirPend(g.ps, j, a) ==> FreeIn(g.p, PState(g, i), a)) &&
    (forall i, j, a {:trigger DirPend(g.ps, i, a), DirPend(g.ps, j, a)} :: i < j && DirPend(g.ps, i, a) ==> !DirPend(g.ps, j, a))
  }
  // a is a direct block of the j-th pending group
  predicate DirPend(ps: seq<Pend>, j: int, a: int) { 0 <= j < |ps| && a in ps[j].h }
  // What the trees say: that of the header, and that of the next one. Direct blocks of groups that the
  // header has not passed are not in the tree yet.
  predicate {:opaque} Trees(g: G) {
    Says(g.p, g.r, g.tb) && g.tb.Keys == g.tb2.Keys == g.base.Keys && g.base == Over(g.tb, Merge(g.hs)) && 0 <= g.k <= |g.hs| &&
    (g.ip >= 1 ==> Over(g.base, g.im) == Over(g.tb2, Merge(g.hs[g.k..])) && forall a :: a in g.base && a !in g.im && a !in Merge(g.hs[..g.k]) ==> g.tb2[a] == g.tb[a]) &&
    (g.ip == 3 ==> Says(g.p, g.r2, g.tb2)) && Apart(g.hs) &&
    g.torn <= g.p.torn && forall i, a {:trigger a in g.hs[i]} :: 0 <= i < |g.hs| && a in g.hs[i] ==> a !in g.torn
  }
  // no two groups have the same direct block
  predicate Apart(hs: seq<BM>) { forall i, j, a {:trigger a in hs[i], a in hs[j]} :: 0 <= i < j < |hs| && a in hs[i] ==> a !in hs[j] }
  // well-formedness of the ghost state alone
  predicate GInv(g: G, n: int) {
    GeoOk(g.p) && n >= Home(g.p) && 0 <= g.hq && |g.ds| == |g.gs| == |g.hs| && 0 <= g.k <= |g.gs| <= g.p.nd && End(g) < 0x2000_0000_0000_0000 &&
    g.base.Keys == (set a | Home(g.p) <= a < n) &&
    g.im == Merge(g.gs[..g.k]) && 0 <= g.ip <= 3 && (g.ip == 0 ==> g.k == 0) &&
    (forall i :: 0 <= i < |g.gs| ==> GroupWf(g.p, g.gs[i], g.hs[i], g.ds[i], g.hq + i, n)) &&
    (forall j :: 0 <= j < |g.ps| ==> PendWf(g, g.ps[j], End(g) + j, n)) && |g.ps| <= Window && |g.gs| + |g.ps| <= g.p.nd &&
    Sealed(g) && Kept(g) && Trees(g)
  }
  // the log position after the last pending group
  function PendEnd(g: G): int { if g.ps == [] then g.wp else var d := g.ps[|g.ps|-1].d; d.pos + |d.addrs| }
  // log space: live groups do not overlap, and pending groups overwrite neither them nor each other
  predicate PInv(g: G)
    requires |g.ds| == |g.gs| && 0 <= g.k <= |g.gs|
  {
    0 <= g.lo <= g.ilo <= g.wp <= g.lo + g.p.nr && g.wp < 0x2000_0000_0000_0000 && (g.ip == 0 ==> g.ilo == g.lo) &&
    (forall i :: 0 <= i < g.k ==> g.lo <= g.ds[i].pos && g.ds[i].pos + |g.ds[i].addrs| <= g.ilo) &&
    (forall i :: g.k <= i < |g.gs| ==> g.ilo <= g.ds[i].pos && g.ds[i].pos + |g.ds[i].addrs| <= g.wp) &&
    (forall j :: 0 <= j < |g.ps| ==> g.wp <= g.ps[j].d.pos && g.ps[j].d.pos + |g.ps[j].d.addrs| <= g.lo + g.p.nr) &&
    (forall i, j :: 0 <= i < j < |g.ps| ==> g.ps[i].d.pos + |g.ps[i].d.addrs| <= g.ps[j].d.pos)
  }
  predicate HdrOk(x: BV, g: G) {
    HdrTail(x) && (DecHdr(g.p.key, x) == Hdr(g.hq, g.p.ep, g.r) || (g.ip == 3 && DecHdr(g.p.key, x) == Hdr(g.hq + g.k, g.p.ep, g.r2)))
  }
  // what the disk may hold
  predicate DInv(poss: Poss, g: G) {
    GInv(g, |poss|) &&
    (forall x :: x in poss[g.p.at] ==> HdrOk(x, g)) &&
    (forall x :: x in poss[Copy(g.p)] ==> HdrOk(x, g)) &&
    (forall i :: 0 <= i < |g.gs| ==> Logged(poss, g, g.gs[i], g.hs[i], g.ds[i], g.hq + i)) &&
    (forall a :: Home(g.p) <= a < |poss| ==> HomePoss(poss[a], g, a))
  }
  predicate HomePoss(s: iset<BV>, g: G, a: int)
    requires a in g.base
  {
    if InPend(g.ps, a) then true
    else if a !in g.im || g.ip == 0 then a in g.torn || s <= iset{g.base[a]}
    else if g.ip == 1 then true
    else s <= iset{g.im[a]}
  }
  lemma MergeKeys(ms: seq<BM>, a: int)
    requires a in Merge(ms)
    ensures exists i :: 0 <= i < |ms| && a in ms[i]
  {
    if a in ms[|ms|-1] {} else { MergeKeys(ms[..|ms|-1], a); var i :| 0 <= i < |ms| - 1 && a in ms[..|ms|-1][i]; assert a in ms[i]; }
  }
  lemma MergeHas(ms: seq<BM>, i: int, a: int)
    requires 0 <= i < |ms| && a in ms[i]
    ensures a in Merge(ms)
  { if i < |ms| - 1 { assert a in ms[..|ms|-1][i]; MergeHas(ms[..|ms|-1], i, a); } }
  lemma MergeFrom(ms: seq<BM>, c: int, a: int)
    requires 0 <= c <= |ms|
    ensures a in Merge(ms[c..]) <==> exists i :: c <= i < |ms| && a in ms[i]
  {
    var t := ms[c..];
    forall i | c <= i < |ms| && a in ms[i] ensures a in Merge(t) { assert t[i - c] == ms[i]; MergeHas(t, i - c, a); }
    if a in Merge(t) { MergeKeys(t, a); var i :| 0 <= i < |t| && a in t[i]; assert t[i] == ms[c + i]; }
  }
  lemma ClearMerge(ms: seq<BM>, sg: set<Rec>, q: int, a: int)
    requires Clear(ms, sg, q) && Direct(sg, q, a)
    ensures a !in Merge(ms)
  { if a in Merge(ms) { MergeKeys(ms, a); } }
  lemma DirectFrom(sg: set<Rec>, q: int, q2: int, a: int)
    requires Direct(sg, q2, a) && q <= q2
    ensures Direct(sg, q, a)
  { var r :| r in sg && DirectOf(r, q2, a); assert DirectOf(r, q, a); }
  lemma OverOv(x: St, y: BM, z: BM)
    ensures Over(x, Ov(y, z)) == Over(Over(x, y), z)
  {}
  lemma ClearFrom(ms: seq<BM>, sg: set<Rec>, q: int, q2: int)
    requires Clear(ms, sg, q) && q <= q2
    ensures Clear(ms, sg, q2)
  {
    forall a, i | 0 <= i < |ms| && a in ms[i] ensures !Direct(sg, q2, a) { if Direct(sg, q2, a) { DirectFrom(sg, q, q2, a); } }
  }
  lemma ClearTail(ms: seq<BM>, sg: set<Rec>, q: int, c: int)
    requires Clear(ms, sg, q) && 0 <= c <= |ms|
    ensures Clear(ms[c..], sg, q + c)
  {
    forall a, i | 0 <= i < |ms[c..]| && a in ms[c..][i] ensures !Direct(sg, q, a) { assert a in ms[c + i]; }
    ClearFrom(ms[c..], sg, q, q + c);
  }
  lemma ClearCat(x: seq<BM>, y: seq<BM>, sg: set<Rec>, q: int)
    requires Clear(x, sg, q) && Clear(y, sg, q)
    ensures Clear(x + y, sg, q)
  {}
  // a live group's direct block a is at home, and nobody writes it
  lemma KeptHome(g: G, n: int, i: int, a: int)
    requires GInv(g, n) && 0 <= i < |g.hs| && a in g.hs[i]
    ensures a in g.base && g.base[a] == g.hs[i][a] && a !in g.im && a !in Merge(g.gs) && !InPend(g.ps, a) && a !in g.torn
  {
    reveal Trees();
    DirectFrom(g.sg, g.hq, g.hq + i, a);
    ClearMerge(g.gs, g.sg, g.hq, a);
    assert Clear(g.gs[..g.k], g.sg, g.hq);
    ClearMerge(g.gs[..g.k], g.sg, g.hq, a);
  }
  // nor that of a pending group, which is free
  lemma PendHome(g: G, n: int, j: int, a: int)
    requires GInv(g, n) && 0 <= j < |g.ps| && a in g.ps[j].h
    ensures a !in g.im && a !in Merge(g.gs) && a !in Merge(Ms(g.ps)) && FreeIn(g.p, DurState(g), a)
  {
    assert DirPend(g.ps, j, a);
    reveal Free();
    DirectFrom(g.sg, g.hq, End(g) + j, a);
    ClearMerge(g.gs, g.sg, g.hq, a);
    ClearMerge(Ms(g.ps), g.sg, g.hq, a);
    assert Clear(g.gs[..g.k], g.sg, g.hq);
    ClearMerge(g.gs[..g.k], g.sg, g.hq, a);
    PStates(g);
    assert FreeIn(g.p, PState(g, 0), a);
  }
  lemma AfterFirst(v: St, ps: seq<Pend>)
    requires ps != []
    ensures Applied(Over(Over(v, ps[0].h), ps[0].m), ps[1..]) == Applied(v, ps)
  {
    var t := ps[1..];
    if t == [] { assert ps[..|ps|-1] == []; }
    else { AfterFirst(v, ps[..|ps|-1]); assert ps[..|ps|-1][1..] == t[..|t|-1]; assert ps[..|ps|-1][0] == ps[0]; }
  }
  // all pending groups at once
  lemma AfterAll(v: St, ps: seq<Pend>)
    requires forall a, i, j {:trigger a in ps[i].h, a in ps[j].m} :: 0 <= i < |ps| && 0 <= j < |ps| && a in ps[i].h ==> a !in ps[j].m
    ensures Applied(v, ps) == Over(Over(v, Merge(Hs(ps))), Merge(Ms(ps)))
  {
    if ps == [] { assert Over(Over(v, map[]), map[]) == v; }
    else {
      var t := ps[..|ps|-1]; var e := ps[|ps|-1];
      AfterAll(v, t);
      var x := Over(Over(Applied(v, t), e.h), e.m); var y := Over(Over(v, Ov(Merge(Hs(t)), e.h)), Ov(Merge(Ms(t)), e.m));
      assert Hs(ps)[..|ps|-1] == Hs(t) && Ms(ps)[..|ps|-1] == Ms(t);
      forall a | a in x ensures x[a] == y[a] {
        if a in e.h && a in Merge(Ms(t)) { MergeKeys(Ms(t), a); var j :| 0 <= j < |t| && a in Ms(t)[j]; assert a in ps[j].m && a in ps[|ps|-1].h; }
      }
      assert x == y;
    }
  }
  lemma ComAll(g: G, n: int)
    requires GInv(g, n)
    ensures ComState(g) == Over(Over(DurState(g), Merge(Hs(g.ps))), Merge(Ms(g.ps)))
  {
    forall a, i, j | 0 <= i < |g.ps| && 0 <= j < |g.ps| && a in g.ps[i].h ensures a !in g.ps[j].m { PendHome(g, n, i, a); if a in g.ps[j].m { MergeHas(Ms(g.ps), j, a); } }
    AfterAll(DurState(g), g.ps);
  }
}
