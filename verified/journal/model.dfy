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
include "../trusted/records.s.dfy"
include "../lib/bits.dfy"
include "slot.dfy"

module LogModel {
  import opened Machine
  import opened DiskS
  import opened CodeTreeSpec
  import opened RecordSpec
  import opened Ring
  import opened Bits
  type St = map<int, BV>                    // contents of the home blocks
  const Window := 32                        // at most so many groups are written that are not known to be durable

  // The layout. The header, then units of 16 blocks, then a ring of data blocks, then a copy of the header. A unit has
  // the descriptor of a group in its first block. Behind it lie the data of a group that has no more than 15 blocks of
  // them, so that they are written in one run; those of a larger group lie on the ring. (16 and 15 stand here as they
  // are, and wherever addresses are computed: a product with a name would be nonlinear for the verifier.) All blocks
  // after the copy are home blocks; those before the header are none of the journal's business.
  datatype Geo = Geo(
    headerAt: int,                 // the block of the header
    units: int, ringSize: int,     // how many units, and how many blocks of the ring
    key: int, epoch: int,          // stands for the volume's key; the epoch whose groups count, that of the header
    bitmapAt: int,                 // block a has the allocation bit a % 32768 of block bitmapAt + a / 32768,
    allocFrom: int, allocEnd: int, // if it is one of the blocks from allocFrom to allocEnd, which come after the bits
    tree: TreeGeo,                 // the volume's tree of codes
    torn: set<int>)                // blocks that a crash may leave with other contents than the tree says: those that
                                   // were free and being written straight home when an earlier crash came
  predicate GeoOk(p: Geo) {
    0 <= p.headerAt < 0x1_0000_0000 && 2 <= p.units < 0x1_0000_0000 && 1000 <= p.ringSize < 0x1_0000_0000 &&
    0 <= p.bitmapAt && 0 <= p.allocFrom && 0 <= p.allocEnd && p.bitmapAt + p.allocEnd / 32768 < p.allocFrom &&
      p.tree.key == p.key
  }
  function DSlot(p: Geo, q: int): (s: int) requires GeoOk(p) ensures p.headerAt < s <= p.headerAt + 16 * p.units - 15 {
    p.headerAt + 1 + 16 * Slot(q, p.units)
  }
  function LSlot(p: Geo, x: int): (s: int) requires GeoOk(p) ensures p.headerAt + 16 * p.units < s < Copy(p) {
    p.headerAt + 1 + 16 * p.units + Slot(x, p.ringSize)
  }
  function Copy(p: Geo): int { p.headerAt + 1 + 16 * p.units + p.ringSize }
  function Home(p: Geo): int { Copy(p) + 1 }
  // where the i-th data block of a group lies
  function DataBlock(p: Geo, d: Desc, i: int): (s: int)
    requires GeoOk(p)
    ensures 0 <= i < |d.addrs| ==> p.headerAt < s < Copy(p)
  { if |d.addrs| <= 15 then DSlot(p, d.sq) + 1 + i else LSlot(p, d.pos + i) }

  function Overlaid(x: BM, y: BM): BM {            // y overrides x
    map a | a in x.Keys + y.Keys :: if a in y then y[a] else x[a]
  }
  function Over(x: St, y: BM): St {          // y applied to state x
    map a | a in x :: if a in y then y[a] else x[a]
  }
  function Merge(ms: seq<BM>): BM {
    if ms == [] then map[] else Overlaid(Merge(ms[..|ms|-1]), ms[|ms|-1])
  }
  lemma MergeCat(x: seq<BM>, y: seq<BM>)
    ensures Merge(x + y) == Overlaid(Merge(x), Merge(y))
  {
    if y == [] { assert x + y == x; }
    else {
      var y' := y[..|y|-1]; var l := y[|y|-1];
      assert (x + y)[..|x+y|-1] == x + y';
      MergeCat(x, y');
      assert Merge(x + y) == Overlaid(Merge(x + y'), l);
    }
  }
  // block a is free in state v
  predicate {:opaque} FreeIn(p: Geo, v: St, a: int) {
    0 <= p.allocFrom <= a < p.allocEnd && var b := p.bitmapAt + a / 32768;
    b in v && |v[b]| == 4096 && !BlockBit(v[b], a % 32768)
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
      if p.allocFrom <= a < p.allocEnd {
        var b := p.bitmapAt + a / 32768;
        assert b < p.allocFrom;
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
    ensures forall i :: 0 <= i < n ==> r[i] == s[DataBlock(p, d, i)]
  {
    if n == 0 then [] else ReadBlks(p, s, d, n-1) + [s[DataBlock(p, d, n - 1)]]
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
    d.ep == p.epoch && 0 <= d.pos < 0x2000_0000_0000_0000 && |d.addrs| + |d.dirs| <= 500 &&
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
  predicate GroupAt(p: Geo, s: Img, q: int, m: BM, sg: set<Rec>)
    requires Fits(p, s)
  {
    ValidAt(p, s, q, sg) && var d := DecDesc(s[DSlot(p, q)]).d;
    (forall i :: 0 <= i < |d.addrs| ==> d.addrs[i] in m && m[d.addrs[i]] == s[DataBlock(p, d, i)]) &&
    (forall a :: a in m ==> a in d.addrs)
  }
  predicate Below(r: Rec, e: int) { DecDesc(r.b).SomeDesc? && DecDesc(r.b).d.sq < e }
  // a is a direct block of a record in sg, with a number not below q
  predicate Direct(sg: set<Rec>, q: int, a: int) {
    exists r :: r in sg && DirectOf(r, q, a)
  }
  predicate DirectOf(r: Rec, q: int, a: int) {
    DecDesc(r.b).SomeDesc? && DecDesc(r.b).d.sq >= q && a in DecDesc(r.b).d.dirs
  }
  predicate Clear(ms: seq<BM>, sg: set<Rec>, q: int) {
    forall a, i {:trigger a in ms[i]} :: 0 <= i < |ms| && a in ms[i] ==> !Direct(sg, q, a)
  }
  predicate Log(p: Geo, s: Img, q: int, ms: seq<BM>, sg: set<Rec>)
    requires Fits(p, s)
  {
    (forall i :: 0 <= i < |ms| ==> GroupAt(p, s, q + i, ms[i], sg)) && !ValidAt(p, s, q + |ms|, sg) &&
    EndsAt(sg, q + |ms|) && Clear(ms, sg, q) && DirsApart(p, s, q, q + |ms|)
  }
  // The log may end where group e should be: no record says that it was durable, and none has a number much larger.
  predicate EndsAt(sg: set<Rec>, e: int) { forall r :: r in sg ==> Below(r, e + Window) && DecDesc(r.b).d.dur <= e }
  // no two of the groups with numbers from q up to e have the same direct block
  predicate DirsApart(p: Geo, s: Img, q: int, e: int) requires Fits(p, s) {
    forall i, j, a {:trigger a in DirsOf(p, s, i), a in DirsOf(p, s, j)} :: q <= i < j < e &&
      a in DirsOf(p, s, i) ==> a !in DirsOf(p, s, j)
  }
  // a block is a header that can be started from
  predicate HdrWf(key: int, b: BV) {
    HdrTail(b) && DecHdr(key, b).Hdr? && 0 <= DecHdr(key, b).q < 0x3000_0000_0000_0000
  }
  // the layout with the epoch of header b
  function Under(p: Geo, b: BV): Geo requires DecHdr(p.key, b).Hdr? { p.(epoch := DecHdr(p.key, b).ep) }
  // the tree with the pages pg and the root r has the codes of the contents w of the home blocks
  predicate TreeSays(p: Geo, pg: seq<BV>, r: CV, w: St) {
    IsTree(p.tree, pg, r) && forall a :: a in w ==> 0 <= a - Home(p) < p.tree.n &&
      Vouches(p.key, a - Home(p), CodeIn(p.tree, pg, a - Home(p)), w[a])
  }
  // the root r is that of a tree which has the codes of w
  predicate Says(p: Geo, r: CV, w: St) { p.tree.np <= 0 || exists pg :: TreeSays(p, pg, r, w) }
  // the direct blocks of the group with number q
  function DirsOf(p: Geo, s: Img, q: int): seq<int> requires Fits(p, s) {
    var o := DecDesc(s[DSlot(p, q)]); if o.SomeDesc? then o.d.dirs else []
  }
  // a is a direct block of one of n groups, from number q on
  predicate IsDir(p: Geo, s: Img, q: int, n: int, a: int) requires Fits(p, s) {
    exists i :: 0 <= i < n && a in DirsOf(p, s, q + i)
  }
  // the contents w that a tree says, but of the direct blocks of n groups what is at their homes
  function WithDirs(p: Geo, s: Img, q: int, n: int, w: St): St requires Fits(p, s) {
    map a | a in w :: if IsDir(p, s, q, n, a) && 0 <= a < |s| then s[a] else w[a]
  }
  // ... and over it the blocks of these groups, ms
  function Recovered(p: Geo, s: Img, q: int, ms: seq<BM>, w: St): St requires Fits(p, s) {
    Over(WithDirs(p, s, q, |ms|, w), Merge(ms))
  }
  // What the tree says is at home, but for what is free in v, or torn.
  predicate AtHome(p: Geo, s: Img, q: int, ms: seq<BM>, v: St, w: St) requires Fits(p, s) {
    forall a :: a in w && Home(p) <= a < |s| && a !in p.torn && !FreeIn(p, v, a) && a !in Merge(ms) &&
      !IsDir(p, s, q, |ms|, a) ==> s[a] == w[a]
  }
  // s, read from header block b on, has the log ms and recovers to state v, but for what is free in it. w is what the
  // tree of this header says. So the state comes from codes, whatever the home blocks hold; and AtHome says that they
  // hold it.
  predicate RecBy(p: Geo, s: Img, b: BV, ms: seq<BM>, w: St, v: St, sg: set<Rec>) {
    Fits(p, s) && HdrWf(p.key, b) && p == Under(p, b) && var hdr := DecHdr(p.key, b);
    Log(p, s, hdr.q, ms, sg) && Says(p, hdr.root, w) && w.Keys == HomeOf(p, s).Keys &&
      Agree(p, v, Recovered(p, s, hdr.q, ms, w)) && AtHome(p, s, hdr.q, ms, v, w)
  }
  predicate RecFrom(p: Geo, s: Img, b: BV, v: St, sg: set<Rec>)
    requires Fits(p, s) && HdrWf(p.key, b)
  { exists ms, w :: RecBy(Under(p, b), s, b, ms, w, v, sg) }
  // s recovers to state v, from whichever of its two headers
  predicate RecOK(p: Geo, s: Img, v: St, sg: set<Rec>) {
    Fits(p, s) && HdrWf(p.key, s[p.headerAt]) && HdrWf(p.key, s[Copy(p)]) &&
    RecFrom(p, s, s[p.headerAt], v, sg) && RecFrom(p, s, s[Copy(p)], v, sg)
  }

  // ---- ghost state of the on-disk protocol ----
  // A pending group: its blocks in the log, its direct ones, its descriptor, and the block of that.
  datatype Pend = Pend(blocks: BM, direct: BM, desc: Desc, descBlock: BV)
  // How far an installation is: nobody installs; the blocks are being written home; they are durable there; the
  // header is being written, or was.
  datatype InstallPhase = NoInstall | HomeWriting | HomeDurable | HeaderWriting
  predicate IsHome(p: InstallPhase) { p == HomeDurable || p == HeaderWriting }
  datatype Protocol = Protocol(
    layout: Geo, signed: set<Rec>,          // all records sealed so far
    firstSeq: int,                          // first live sequence number (header)
    groups: seq<BM>, descs: seq<Desc>,      // logged groups: their blocks in the log, and their descriptors
    directs: seq<BM>,                       // their direct blocks
    installCount: int,                      // groups[..installCount] are being installed
    pending: seq<Pend>,                     // groups that no barrier has covered yet; the last may be being written
    base: St, installBlocks: BM, phase: InstallPhase,
    logStart: int, posAfterInstall: int,    // live log positions are those from logStart to logEnd; after the
    logEnd: int,                            // installation those from posAfterInstall
    root: CV, treeState: St,                // the root in the header, and what its tree says of the home blocks
    nextRoot: CV, nextTreeState: St,        // the same after the installation
    torn: set<int>)                         // blocks that may not hold what base says

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
  predicate Logged(poss: Poss, g: Protocol, m: BM, h: BM, d: Desc, sq: int)
    requires GeoOk(g.layout) && |poss| >= Home(g.layout)
  {
    GroupWf(g.layout, m, h, d, sq, |poss|) &&
    (forall x :: x in poss[DSlot(g.layout, sq)] ==> DecDesc(x) == SomeDesc(d) &&
      Rec(x, GroupBlks(m, h, d)) in g.signed) &&
    (forall i :: 0 <= i < |d.addrs| ==> poss[DataBlock(g.layout, d, i)] <= iset{m[d.addrs[i]]})
  }
  function End(g: Protocol): int { g.firstSeq + |g.groups| }
  // r is the record of pending group e
  predicate IsPend(e: Pend, r: Rec) {
    (forall i :: 0 <= i < |e.desc.addrs| ==> e.desc.addrs[i] in e.blocks) &&
      (forall i :: 0 <= i < |e.desc.dirs| ==> e.desc.dirs[i] in e.direct) &&
    r == Rec(e.descBlock, GroupBlks(e.blocks, e.direct, e.desc))
  }
  // every record sealed so far has a number below End, or is that of a pending group; and what it says to be durable is
  predicate Sealed(g: Protocol) {
    forall r :: r in g.signed ==> DecDesc(r.b).SomeDesc? && DecDesc(r.b).d.dur <= End(g) &&
      (Below(r, End(g)) || exists i :: 0 <= i < |g.pending| && IsPend(g.pending[i], r))
  }
  predicate PendWf(g: Protocol, e: Pend, sq: int, n: int) requires GeoOk(g.layout) {
    GroupWf(g.layout, e.blocks, e.direct, e.desc, sq, n) && e.desc.dur <= End(g) &&
      DecDesc(e.descBlock) == SomeDesc(e.desc) && Rec(e.descBlock, GroupBlks(e.blocks, e.direct, e.desc)) in g.signed
  }
  // a is a direct block of a pending group
  predicate InPend(ps: seq<Pend>, a: int) { exists j :: 0 <= j < |ps| && a in ps[j].direct }
  function BlockMaps(ps: seq<Pend>): (r: seq<BM>) ensures |r| == |ps| && forall i :: 0 <= i < |ps| ==>
    r[i] == ps[i].blocks {
    if ps == [] then [] else BlockMaps(ps[..|ps|-1]) + [ps[|ps|-1].blocks]
  }
  function DirectMaps(ps: seq<Pend>): (r: seq<BM>) ensures |r| == |ps| && forall i :: 0 <= i < |ps| ==>
    r[i] == ps[i].direct {
    if ps == [] then [] else DirectMaps(ps[..|ps|-1]) + [ps[|ps|-1].direct]
  }
  function DurState(g: Protocol): St { Over(g.base, Merge(g.groups)) }
  // state v after the pending groups ps
  function Applied(v: St, ps: seq<Pend>): St {
    if ps == [] then v else var e := ps[|ps|-1]; Over(Over(Applied(v, ps[..|ps|-1]), e.direct), e.blocks)
  }
  function ComState(g: Protocol): St { Applied(DurState(g), g.pending) }
  // the state after the first i of them
  function {:opaque} PState(g: Protocol, i: int): St requires 0 <= i <= |g.pending| {
    Applied(DurState(g), g.pending[..i])
  }
  lemma PStates(g: Protocol)
    ensures PState(g, 0) == DurState(g) && PState(g, |g.pending|) == ComState(g)
  { reveal PState(); assert g.pending[..0] == [] && g.pending[..|g.pending|] == g.pending; }
  // the direct blocks of live groups are at home, and no live group has them in the log
  predicate Kept(g: Protocol) {
    (forall i, a {:trigger a in g.directs[i]} :: 0 <= i < |g.directs| && a in g.directs[i] ==> a in g.base &&
      g.base[a] == g.directs[i][a] && !InPend(g.pending, a)) &&
    Clear(g.groups, g.signed, g.firstSeq) && Clear(BlockMaps(g.pending), g.signed, g.firstSeq) &&
    (forall i, a {:trigger a in g.directs[i]} :: 0 <= i < |g.directs| && a in g.directs[i] ==>
      Direct(g.signed, g.firstSeq + i, a)) && Free(g)
  }
  // the direct blocks of a pending group are free in each state that a crash may leave without it
  predicate {:opaque} Free(g: Protocol) {
    (forall j, a :: DirPend(g.pending, j, a) ==> Direct(g.signed, End(g) + j, a)) &&
    (forall i, j, a {:trigger PState(g, i), DirPend(g.pending, j, a)} :: 0 <= i <= j &&
      DirPend(g.pending, j, a) ==> FreeIn(g.layout, PState(g, i), a)) &&
    (forall i, j, a {:trigger DirPend(g.pending, i, a), DirPend(g.pending, j, a)} :: i < j &&
      DirPend(g.pending, i, a) ==> !DirPend(g.pending, j, a))
  }
  // a is a direct block of the j-th pending group
  predicate DirPend(ps: seq<Pend>, j: int, a: int) { 0 <= j < |ps| && a in ps[j].direct }
  // What the trees say: that of the header, and that of the next one. Direct blocks of groups that the
  // header has not passed are not in the tree yet.
  predicate {:opaque} Trees(g: Protocol) {
    Says(g.layout, g.root, g.treeState) && g.treeState.Keys == g.nextTreeState.Keys == g.base.Keys &&
      g.base == Over(g.treeState, Merge(g.directs)) && 0 <= g.installCount <= |g.directs| &&
    (g.phase != NoInstall ==> Over(g.base, g.installBlocks) == Over(g.nextTreeState,
      Merge(g.directs[g.installCount..])) && forall a :: a in g.base && a !in g.installBlocks &&
      a !in Merge(g.directs[..g.installCount]) ==> g.nextTreeState[a] == g.treeState[a]) &&
    (g.phase == HeaderWriting ==> Says(g.layout, g.nextRoot, g.nextTreeState)) && Apart(g.directs) &&
    g.torn <= g.layout.torn && forall i, a {:trigger a in g.directs[i]} :: 0 <= i < |g.directs| &&
      a in g.directs[i] ==> a !in g.torn
  }
  // no two groups have the same direct block
  predicate Apart(hs: seq<BM>) {
    forall i, j, a {:trigger a in hs[i], a in hs[j]} :: 0 <= i < j < |hs| && a in hs[i] ==> a !in hs[j]
  }
  // well-formedness of the ghost state alone
  predicate GInv(g: Protocol, n: int) {
    GeoOk(g.layout) && n >= Home(g.layout) && 0 <= g.firstSeq && |g.descs| == |g.groups| == |g.directs| &&
      0 <= g.installCount <= |g.groups| <= g.layout.units && End(g) < 0x2000_0000_0000_0000 &&
    g.base.Keys == (set a | Home(g.layout) <= a < n) &&
    g.installBlocks == Merge(g.groups[..g.installCount]) && (g.phase == NoInstall ==> g.installCount == 0) &&
    (forall i :: 0 <= i < |g.groups| ==> GroupWf(g.layout, g.groups[i], g.directs[i], g.descs[i], g.firstSeq + i, n)) &&
    (forall j :: 0 <= j < |g.pending| ==> PendWf(g, g.pending[j], End(g) + j, n)) && |g.pending| <= Window &&
      |g.groups| + |g.pending| <= g.layout.units &&
    Sealed(g) && Kept(g) && Trees(g)
  }
  // the log position after the last pending group
  function PendEnd(g: Protocol): int {
    if g.pending == [] then g.logEnd else var d := g.pending[|g.pending|-1].desc; d.pos + |d.addrs|
  }
  // log space: live groups do not overlap, and pending groups overwrite neither them nor each other
  predicate PInv(g: Protocol)
    requires |g.descs| == |g.groups| && 0 <= g.installCount <= |g.groups|
  {
    0 <= g.logStart <= g.posAfterInstall <= g.logEnd <= g.logStart + g.layout.ringSize &&
      g.logEnd < 0x2000_0000_0000_0000 && (g.phase == NoInstall ==> g.posAfterInstall == g.logStart) &&
    (forall i :: 0 <= i < g.installCount ==> g.logStart <= g.descs[i].pos &&
      g.descs[i].pos + |g.descs[i].addrs| <= g.posAfterInstall) &&
    (forall i :: g.installCount <= i < |g.groups| ==> g.posAfterInstall <= g.descs[i].pos &&
      g.descs[i].pos + |g.descs[i].addrs| <= g.logEnd) &&
    (forall j :: 0 <= j < |g.pending| ==> g.logEnd <= g.pending[j].desc.pos &&
      g.pending[j].desc.pos + |g.pending[j].desc.addrs| <= g.logStart + g.layout.ringSize) &&
    (forall i, j :: 0 <= i < j < |g.pending| ==>
      g.pending[i].desc.pos + |g.pending[i].desc.addrs| <= g.pending[j].desc.pos)
  }
  predicate HdrOk(x: BV, g: Protocol) {
    HdrTail(x) && (DecHdr(g.layout.key, x) == Hdr(g.firstSeq, g.layout.epoch, g.root) ||
      (g.phase == HeaderWriting && DecHdr(g.layout.key, x) == Hdr(g.firstSeq + g.installCount, g.layout.epoch,
      g.nextRoot)))
  }
  // what the disk may hold
  predicate DInv(poss: Poss, g: Protocol) {
    GInv(g, |poss|) &&
    (forall x :: x in poss[g.layout.headerAt] ==> HdrOk(x, g)) &&
    (forall x :: x in poss[Copy(g.layout)] ==> HdrOk(x, g)) &&
    (forall i :: 0 <= i < |g.groups| ==> Logged(poss, g, g.groups[i], g.directs[i], g.descs[i], g.firstSeq + i)) &&
    (forall a :: Home(g.layout) <= a < |poss| ==> HomePoss(poss[a], g, a))
  }
  predicate HomePoss(s: iset<BV>, g: Protocol, a: int)
    requires a in g.base
  {
    if InPend(g.pending, a) then true
    else if a !in g.installBlocks || g.phase == NoInstall then a in g.torn || s <= iset{g.base[a]}
    else if g.phase == HomeWriting then true
    else s <= iset{g.installBlocks[a]}
  }
  lemma MergeKeys(ms: seq<BM>, a: int)
    requires a in Merge(ms)
    ensures exists i :: 0 <= i < |ms| && a in ms[i]
  {
    if a in ms[|ms|-1] {} else {
      MergeKeys(ms[..|ms|-1], a); var i :| 0 <= i < |ms| - 1 && a in ms[..|ms|-1][i]; assert a in ms[i];
    }
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
    ensures Over(x, Overlaid(y, z)) == Over(Over(x, y), z)
  {}
  lemma ClearFrom(ms: seq<BM>, sg: set<Rec>, q: int, q2: int)
    requires Clear(ms, sg, q) && q <= q2
    ensures Clear(ms, sg, q2)
  {
    forall a, i | 0 <= i < |ms| && a in ms[i] ensures !Direct(sg, q2, a) {
      if Direct(sg, q2, a) { DirectFrom(sg, q, q2, a); }
    }
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
  lemma KeptHome(g: Protocol, n: int, i: int, a: int)
    requires GInv(g, n) && 0 <= i < |g.directs| && a in g.directs[i]
    ensures a in g.base && g.base[a] == g.directs[i][a] && a !in g.installBlocks && a !in Merge(g.groups) &&
      !InPend(g.pending, a) && a !in g.torn
  {
    reveal Trees();
    DirectFrom(g.signed, g.firstSeq, g.firstSeq + i, a);
    ClearMerge(g.groups, g.signed, g.firstSeq, a);
    assert Clear(g.groups[..g.installCount], g.signed, g.firstSeq);
    ClearMerge(g.groups[..g.installCount], g.signed, g.firstSeq, a);
  }
  // nor that of a pending group, which is free
  lemma PendHome(g: Protocol, n: int, j: int, a: int)
    requires GInv(g, n) && 0 <= j < |g.pending| && a in g.pending[j].direct
    ensures a !in g.installBlocks && a !in Merge(g.groups) && a !in Merge(BlockMaps(g.pending)) &&
      FreeIn(g.layout, DurState(g), a)
  {
    assert DirPend(g.pending, j, a);
    reveal Free();
    DirectFrom(g.signed, g.firstSeq, End(g) + j, a);
    ClearMerge(g.groups, g.signed, g.firstSeq, a);
    ClearMerge(BlockMaps(g.pending), g.signed, g.firstSeq, a);
    assert Clear(g.groups[..g.installCount], g.signed, g.firstSeq);
    ClearMerge(g.groups[..g.installCount], g.signed, g.firstSeq, a);
    PStates(g);
    assert FreeIn(g.layout, PState(g, 0), a);
  }
  lemma AfterFirst(v: St, ps: seq<Pend>)
    requires ps != []
    ensures Applied(Over(Over(v, ps[0].direct), ps[0].blocks), ps[1..]) == Applied(v, ps)
  {
    var t := ps[1..];
    if t == [] { assert ps[..|ps|-1] == []; }
    else { AfterFirst(v, ps[..|ps|-1]); assert ps[..|ps|-1][1..] == t[..|t|-1]; assert ps[..|ps|-1][0] == ps[0]; }
  }
  // all pending groups at once
  lemma AfterAll(v: St, ps: seq<Pend>)
    requires forall a, i, j {:trigger a in ps[i].direct, a in ps[j].blocks} :: 0 <= i < |ps| && 0 <= j < |ps| &&
      a in ps[i].direct ==> a !in ps[j].blocks
    ensures Applied(v, ps) == Over(Over(v, Merge(DirectMaps(ps))), Merge(BlockMaps(ps)))
  {
    if ps == [] { assert Over(Over(v, map[]), map[]) == v; }
    else {
      var t := ps[..|ps|-1]; var e := ps[|ps|-1];
      AfterAll(v, t);
      var x := Over(Over(Applied(v, t), e.direct), e.blocks);
      var y := Over(Over(v, Overlaid(Merge(DirectMaps(t)), e.direct)), Overlaid(Merge(BlockMaps(t)), e.blocks));
      assert DirectMaps(ps)[..|ps|-1] == DirectMaps(t) && BlockMaps(ps)[..|ps|-1] == BlockMaps(t);
      forall a | a in x ensures x[a] == y[a] {
        if a in e.direct && a in Merge(BlockMaps(t)) {
          MergeKeys(BlockMaps(t), a); var j :| 0 <= j < |t| && a in BlockMaps(t)[j];
          assert a in ps[j].blocks && a in ps[|ps|-1].direct;
        }
      }
      assert x == y;
    }
  }
  lemma ComAll(g: Protocol, n: int)
    requires GInv(g, n)
    ensures ComState(g) == Over(Over(DurState(g), Merge(DirectMaps(g.pending))), Merge(BlockMaps(g.pending)))
  {
    forall a, i, j | 0 <= i < |g.pending| && 0 <= j < |g.pending| && a in g.pending[i].direct
      ensures a !in g.pending[j].blocks {
      PendHome(g, n, i, a); if a in g.pending[j].blocks { MergeHas(BlockMaps(g.pending), j, a); }
    }
    AfterAll(DurState(g), g.pending);
  }
}
