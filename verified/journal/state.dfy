// The state of the journal, what is always true of it (Inv), and what its threads may rely on.
//
// A transaction is merged into the `running` group. A group goes the way running ->
// frozen -> pending (being written to the log, or written and not durable yet) -> logged (durable) ->
// installing (being written home) -> clean. One barrier makes all pending groups durable. At most one group is
// being written, and at most one merged one is installing. A group that is
// frozen, pending, or installing does not change. The direct blocks of a group (model.dfy) are written home
// when it is written to the log; when it is logged only their addresses are held, until the header passes
// the group: blocks with these addresses cannot be committed before that.
//
// Roles. Whoever gets true from StartCommit is the logger until Defer or FinishCommit: a thread that
// waits for its commit, or the logger thread of the background. The installer is one thread.
// Each role has an object for what it changes without the mutex, and owns the blocks of the
// device that it writes. One method is one atomic step. [L] runs under the mutex. [F] runs
// without it and does at most one operation of the device: its `modifies` clause names nothing
// but the role's object and the device (and the seal), and it reads of the rest only what is frozen
// while the role is played (LKeep, IKeep).
include "groups.dfy"
include "says.dfy"

module JournalM {
  import opened Machine
  import opened ByteSlice
  import opened DiskS
  import opened LogSpec
  import opened LogS
  import opened Ring
  import opened LogModel
  import opened LogSteps
  import opened Groups
  import opened TreeModel
  import opened TreeOfCodes

  // condition variables of the mutex
  const CLogger: uint32 := 0       // the logger thread has something to do
  const CInstaller: uint32 := 1    // the installer has
                                   // 2, 3: durability, for groups of alternating parity
  const CSpace: uint32 := 4        // there is room for transactions again

  const WINDOW: uint64 := 32       // Window

  datatype Rd = Rd(a: int, t: int, v: BV)

  // A pending group in memory: the two maps that it was made of, whose memory is seen until it is durable; what it has in the log; and the one before it.
  class InLog {
    const body: BList
    const ring: BMap
    const dir: BMap
    const before: InLog?
    constructor (l: BList, r: BMap, f: BMap, w: InLog?)
      ensures body == l && ring == r && dir == f && before == w
    { body := l; ring := r; dir := f; before := w; }
  }
  // from w on, the last one, the pending groups have this in the log, and were made of these maps
  predicate Chain(w: InLog?, bodies: seq<BList>, maps: seq<BMap>) decreases |bodies| {
    if |bodies| == 0 then w == null && maps == []
    else w != null && |maps| >= 2 && w.body == bodies[|bodies|-1] && w.ring == maps[|maps|-2] && w.dir == maps[|maps|-1] && Chain(w.before, bodies[..|bodies|-1], maps[..|maps|-2])
  }
  // What the logger alone changes, without the mutex.
  class Logger {
    var desc: Blk?         // the descriptor block of the group being logged
    var body: BList?       // its blocks for the log
    var dirs: BList?       // its direct blocks by address
    var ring: BMap?        // the frozen group in two parts: for the log,
    var dir: BMap?         // and straight home
    var np: uint64         // number of pending groups,
    var newest: InLog?   // and the last of them
    var pos: uint64        // the log position after them
    var codes: Codes       // of their direct blocks
    ghost var ps: seq<Pend>   // the pending groups: G
    ghost var bodies: seq<BList>  // what they have in the log
    ghost var maps: seq<BMap>     // the maps that they were made of
    ghost var ph: int      // 0 nobody is the logger 1 a group is frozen 2 the last pending one is being written 3 all are durable 4 all are written
    ghost var wn: int      // blocks for the log written so far
    ghost var dn: int      // direct ones
    ghost var wd: bool     // and the descriptor
    constructor ()
      ensures ph == 0 && np == 0 && newest == null && ps == [] && bodies == [] && maps == [] && pos == 0 && ring == null && dir == null && fresh(codes) && codes.s == []
    {
      var c := NewCodes();
      desc := null; body := null; dirs := null; ring := null; dir := null; np := 0; newest := null; bodies := []; maps := []; pos := 0; codes := c;
      ps := []; ph := 0; wn := 0; dn := 0; wd := false;
    }
  }
  // What the installer alone changes, without the mutex.
  class Installer {
    var list: BList?       // the blocks being installed by address
    ghost var ip: int      // phase: G
    ghost var wn: int      // installed blocks written so far
    ghost var hph: int     // the header: 1 written 2 durable, 3 its copy written 4 and durable
    ghost var r: CV        // the root in the header, what its tree says, and the same after the installation: G
    ghost var tb: St
    ghost var r2: CV
    ghost var tb2: St
    ghost var lost: bool   // what it needs of the tree of codes could not be had
    ghost var wr: BM       // the pages of the tree that it has written, as they are to be
    constructor ()
      ensures list == null && ip == 0 && wn == 0 && hph == 0 && wr == map[] && !lost
    { list := null; ip := 0; wn := 0; hph := 0; r := CV(0, 0); tb := map[]; r2 := CV(0, 0); tb2 := map[]; lost := false; wr := map[]; }
    ghost method Begin(r0: CV, v: St)
      modifies this`r, this`tb, this`r2, this`tb2
      ensures r == r2 == r0 && tb == tb2 == v
    { r := r0; tb := v; r2 := r0; tb2 := v; }
  }
  // what a step left alone of the blocks that role r owns
  twostate predicate DiskKept(d: Disk, r: Role) reads d {
    |d.cur| == |d.poss| == |old(d.poss)| == |old(d.cur)| &&
    (forall a :: 0 <= a < |d.poss| && Owns(old(d.owner), r, a) ==> d.poss[a] <= old(d.poss)[a]) &&
    (d.bad || (!old(d.bad) && forall a :: 0 <= a < |d.cur| && Owns(old(d.owner), r, a) ==> d.cur[a] == old(d.cur)[a]))
  }

  // t is the tree of a journal whose header is block at, with the first home block home, and sz blocks
  predicate TreeFor(t: Tree, d: Disk, seal: Seal, at: int, home: int, sz: int) {
    t.Ok() && t.d == d && t.seal == seal && t.home as int == home && home + t.n as int == sz && t.first as int + 2 * t.np as int == at
  }

  // pg, with the root r, are the newest pages, but for wr
  predicate NextPages(t: Tree, wr: BM, pg: seq<BV>, r: CV) reads t.pages`vs, t.pages`rs {
    t.Ok() && |t.pages.vs| == |t.pages.rs| > 0 && PagesOk(t.seal.t, pg) && PagesOk(t.seal.t, t.Now()) &&
    forall p :: 0 <= p < t.np as int ==> if p in wr then pg[p] == wr[p]
      else pg[p] == t.Now()[p] && PageCode(t.seal.t, pg, r, p) == PageCode(t.seal.t, t.Now(), t.Root(), p)
  }
  // l is what pending group e has in the log
  predicate Body(l: BList, e: Pend) {
    l.addrs == e.d.addrs && |l.blks| == |e.d.addrs| && forall i :: 0 <= i < |l.blks| ==> e.d.addrs[i] in e.m && l.blks[i] == e.m[e.d.addrs[i]] && |l.blks[i]| == 4096
  }
  // pending group e was written: its record to the log, and its direct blocks home
  predicate Written(p: Geo, c: Img, e: Pend) requires GeoOk(p) && |c| >= Home(p) {
    c[DSlot(p, e.d.sq)] == e.b && (forall i :: 0 <= i < |e.d.addrs| ==> e.d.addrs[i] in e.m && c[At(p, e.d, i)] == e.m[e.d.addrs[i]]) &&
    forall a :: a in e.h ==> 0 <= a < |c| && c[a] == e.h[a]
  }
  // s has the codes of the blocks m
  predicate {:opaque} CodesOf(s: seq<Code>, m: BM, home: int, key: int) {
    (forall e :: e in s ==> e.x + home in m && Vouches(key, e.x, e.c, m[e.x + home])) &&
    forall a :: a in m ==> exists e :: e in s && e.x == a - home
  }
  // blocks that c has with other contents than w
  function Differ(c: Img, w: St): set<int> { set a | a in w && (0 <= a < |c| ==> c[a] != w[a]) }

  class Journal {
    const d: Disk
    const seal: Seal
    const mu: Mutex
    const cache: Cache
    const notes: Notes
    const tree: Tree       // the codes of what is home
    const lg: Logger
    const ins: Installer
    const sz: uint64       // blocks of the device
    const at: uint64       // the layout: Geo
    const nd: uint64
    const nr: uint64
    const bit: uint64      // the allocation bits: Geo
    const flo: uint64
    const fhi: uint64
    const home: uint64     // first home block
    const maxPin: uint64   // bound on the blocks logged but not installed
    const instAt: uint64   // install from so many on

    // changed under the mutex alone
    var running: BMap      // commits not yet being logged
    var cgm: BMap          // the frozen group and the pending ones, merged (changed only by who is or becomes the logger)
    var cdm: BMap          // their direct blocks (likewise)
    var lgm: BMap          // logged groups not being installed, merged
    var inm: BMap          // being installed (frozen; replaced only by the installer)
    var lho: BMap          // direct blocks of logged groups not being installed, and
    var iho: BMap          // of those being installed: their addresses
    var icnr: uint64       // so many of the blocks being installed are in the cache
    var hq: uint64         // first live sequence number on disk
    var eq: uint64         // next sequence number
    var ieq: uint64        // sequence number after the groups being installed
    var lo: uint64         // log positions: live [lo, wp)
    var ilo: uint64
    var wp: uint64
    var trims: uint64      // number of completed installs
    var nvs: uint64        // index of the last commit
    var ncl: uint64        // ... last commit in the frozen group, or the pending ones
    var nlb: uint64        // ... last durable commit
    var busy: bool         // somebody is the logger
    var failed: bool       // for good: no commit is accepted any more
    var closed: bool       // nor is any once somebody has begun to close the journal

    ghost const geo: Geo
    ghost const whole: bool      // at the beginning the device had the pages of the tree where they say
    ghost var gs: seq<BM>  // logged groups, base and what is being installed: G
    ghost var ds: seq<Desc>
    ghost var hs: seq<BM>
    ghost var k: int
    ghost var base: St
    ghost var im: BM
    ghost var torn: set<int>
    ghost var vs: seq<St>  // abstract states: after 0, 1, 2, ... commits
    ghost var lb: int
    ghost var cl: int
    ghost var rds: set<Rd>
    ghost var cached: set<int>   // blocks being installed that are in the cache as they will be
    ghost var repr: set<BMap>    // every map this journal ever used

    // the state of the protocol
    function g(): G reads this`hq, this`gs, this`ds, this`hs, this`k, this`base, this`im, this`lo, this`ilo, this`wp, this`torn, seal,
      lg`ps, ins`ip, ins`r, ins`tb, ins`r2, ins`tb2
    {
      G(geo, seal.signed, hq as int, gs, ds, hs, k, lg.ps, base, im, ins.ip, lo as int, ilo as int, wp as int,
        ins.r, ins.tb, ins.r2, ins.tb2, torn)
    }

    // a map that is none of the seven
    predicate Kept(m: BMap) reads this { m in repr && m !in {running, lgm, cgm, cdm, inm, lho, iho} }
    predicate Shape() reads this, ins, lg`maps, lg`ring, lg`dir, running, lgm, cgm, cdm, inm, lho, iho {
      (forall m :: m in lg.maps ==> Kept(m)) && (lg.ring != null ==> Kept(lg.ring)) && (lg.dir != null ==> Kept(lg.dir)) &&
      running != lgm && running != cgm && running != cdm && running != inm && running != lho && running != iho &&
      lgm != cgm && lgm != cdm && lgm != inm && lgm != lho && lgm != iho && lho != cgm && lho != cdm && lho != inm && lho != iho &&
      cgm != cdm && cgm != inm && cgm != iho && cdm != inm && cdm != iho &&
      running in repr && lgm in repr && cgm in repr && cdm in repr && inm in repr && lho in repr && iho in repr &&
      running.Ok() && lgm.Ok() && cgm.Ok() && cdm.Ok() && inm.Ok() && lho.Ok() && iho.Ok() && InHome(home as int, cdm.m, sz as int) &&
      InHome(home as int, running.m, sz as int) && InHome(home as int, lgm.m, sz as int) &&
      InHome(home as int, cgm.m, sz as int) && InHome(home as int, inm.m, sz as int) &&
      (ins.list != null ==> |ins.list.addrs| == |ins.list.blks| < 0x8_0000_0000_0000) &&
      |running.addrs| <= 500 && |lgm.addrs| + |cgm.addrs| <= maxPin as int < 0x1_0000_0000
    }
    predicate GeoI() reads seal {
      geo == Geo(at as int, nd as int, nr as int, seal.key, seal.ep, bit as int, flo as int, fhi as int, seal.t, geo.torn) && GeoOk(geo) && home as int == Home(geo) <= sz as int &&
      (tree.np == 0 ==> geo.torn == {}) &&
      TreeFor(tree, d, seal, at as int, home as int, sz as int)
    }
    predicate DiskI() reads this, d, seal, lg, ins {
      GeoI() && d.Valid() && Full(d.poss, g()) && |d.cur| == sz as int && 0 <= lb && d.ok == OkSet(geo, vs, lb, seal.signed)
    }
    predicate Reals() reads this, lg, ins {
      |gs| == |ds| == |hs| && 0 <= k <= |gs| && eq as int == hq as int + |gs| && (ins.ip > 0 ==> ieq as int == hq as int + k) &&
      nvs as int == |vs| - 1 && ncl as int == cl && nlb as int == lb && nvs < 0x4000_0000_0000_0000 &&
      trims < 0x4000_0000_0000_0000 && (busy <==> lg.ph != 0)
    }
    predicate Abs() reads this, seal, lg, ins, running, lgm, cgm, cdm, inm {
      0 <= lb <= cl < |vs| && 0 <= k <= |gs| &&
      vs[lb] == DurState(g()) && vs[cl] == Over(Over(vs[lb], cdm.m), cgm.m) && vs[|vs|-1] == Over(vs[cl], running.m) &&
      lgm.m == Merge(gs[k..]) && inm.m == im && AllAmong(g(), vs, lb, cl)
    }
    // who may write what: the logger the log and its direct blocks, the installer the tree, the headers, and what it installs
    predicate {:opaque} OwnI() reads this`cdm, this`im, lg`ph, lg`ps, ins`ip, cdm, d`owner {
      (forall a :: Owns(d.owner, Logging, a) <==> (lg.ph >= 1 || lg.ps != []) && (geo.at < a < Copy(geo) || a in cdm.m)) &&
      (forall a :: Owns(d.owner, Installing, a) <==> ins.ip > 0 && (tree.first as int <= a < geo.at || a == geo.at || a == Copy(geo) || a in im)) &&
      (forall a :: !Owns(d.owner, Recovering, a))
    }
    predicate {:opaque} LogI() reads this`hq, this`gs, this`ds, this`hs, this`k, this`base, this`im, this`lo, this`ilo, this`wp, this`torn, this`cgm, this`cdm,
      lg, ins`ip, ins`r, ins`tb, ins`r2, ins`tb2, seal, d`cur, d`poss, d`bad, cgm, cdm, lg.ring, lg.dir, lg.codes
    {
      GeoOk(geo) && |d.cur| == |d.poss| >= Home(geo) && 0 <= lg.ph <= 4 &&
      |lg.bodies| == |lg.ps| == lg.np as int && Chain(lg.newest, lg.bodies, lg.maps) && (lg.ph != 1 ==> lg.ring == null && lg.dir == null) && (lg.ph >= 2 ==> lg.ps != []) && |cgm.addrs| + |cdm.addrs| <= 500 * (|lg.ps| + if lg.ph == 1 then 1 else 0) && lg.pos as int == PendEnd(g()) && CodesOf(lg.codes.s, Merge(Hs(lg.ps)), Home(geo), seal.key) &&
      End(g()) + |lg.ps| < 0x1FFF_FFFF_FFFF_FFFF && lg.pos < 0x1FFF_FFFF_FFFF_0000 && (forall i :: 0 <= i < |lg.ps| ==> Body(lg.bodies[i], lg.ps[i])) &&
      (if lg.ph == 1 then lg.ring != null && lg.dir != null && Frozen(lg.ring, lg.dir) else cgm.m == Merge(Ms(lg.ps)) && cdm.m == Merge(Hs(lg.ps))) &&
      (lg.ph == 2 ==> lg.ps != [] && lg.desc != null && lg.body != null && lg.dirs != null && var e := lg.ps[|lg.ps|-1];
                    lg.desc.v == e.b && |e.b| == 4096 && lg.body == lg.bodies[|lg.ps|-1] && 0 <= lg.wn <= |e.d.addrs| &&
                    Lists(lg.dirs, e.h, Home(geo), |d.cur|) && 0 <= lg.dn <= |lg.dirs.addrs|) &&
      (lg.ph == 2 && !d.bad ==> var e := lg.ps[|lg.ps|-1];
                    (forall i :: 0 <= i < lg.wn ==> d.cur[At(geo, e.d, i)] == lg.body.blks[i]) &&
                    (forall i :: 0 <= i < lg.dn ==> d.cur[lg.dirs.addrs[i]] == lg.dirs.blks[i]) &&
                    (lg.wd ==> d.cur[DSlot(geo, e.d.sq)] == e.b)) &&
      (!d.bad ==> forall i :: 0 <= i < (if lg.ph == 2 then |lg.ps| - 1 else |lg.ps|) ==> Written(geo, d.cur, lg.ps[i])) &&
      (lg.ph == 3 ==> AllHome(d.poss, g()))
    }
    // the frozen group, in two parts, and the pending ones are what is in cgm and cdm
    predicate Frozen(ring: BMap, dir: BMap) reads this`hq, this`gs, this`ds, this`hs, this`k, this`base, this`im, this`lo, this`ilo, this`wp, this`torn, this`cgm, this`cdm,
      lg`ps, lg`pos, ins`ip, ins`r, ins`tb, ins`r2, ins`tb2, seal, d`cur, cgm, cdm, ring, dir
    {
      ring != dir && ring.Ok() && dir.Ok() && |ring.addrs| + |dir.addrs| <= 500 && InHome(Home(geo), ring.m, |d.cur|) && InHome(Home(geo), dir.m, |d.cur|) &&
      GeoOk(geo) && Ready(g(), ring.m, dir.m) && |lg.ps| < Window && |gs| + |lg.ps| < geo.nd && lg.pos as int + |ring.addrs| <= lo as int + geo.nr &&
      lg.pos as int + |ring.addrs| < 0x1FFF_FFFF_FFFF_0000 && End(g()) + |lg.ps| + 1 < 0x1FFF_FFFF_FFFF_FFFF &&
      cgm.m == Ov(Merge(Ms(lg.ps)), ring.m) && cdm.m == Ov(Merge(Hs(lg.ps)), dir.m)
    }
    // a header block, for certain one that passes what is being installed
    predicate Passes(s: iset<BV>) reads this`hq, this`k, ins`r2 { forall x :: x in s ==> DecHdr(geo.key, x) == Hdr(hq as int + k, geo.ep, ins.r2) }
    predicate {:opaque} InsI() reads this`hq, this`k, this`im, this`icnr, this`cached, ins, d`cur, d`poss, d`bad {
      GeoOk(geo) && |d.cur| == |d.poss| >= Home(geo) &&
      (ins.list != null && ins.ip > 0 ==> Lists(ins.list, im, home as int, |d.cur|) && 0 <= ins.wn <= |ins.list.addrs| && icnr as int <= |ins.list.addrs| &&
                    forall i :: 0 <= i < icnr as int ==> ins.list.addrs[i] in cached) &&
      (ins.list == null ==> icnr == 0 && ins.wn == 0) && (ins.ip >= 2 ==> ins.list != null) &&
      (ins.ip == 1 && !d.bad ==> forall i :: 0 <= i < ins.wn ==> ins.list != null && i < |ins.list.addrs| && 0 <= ins.list.addrs[i] < |d.cur| &&
                       d.cur[ins.list.addrs[i]] == ins.list.blks[i]) &&
      0 <= ins.hph <= 4 && (ins.hph > 0 ==> ins.ip == 3) &&
      (ins.hph >= 1 && !d.bad ==> DecHdr(geo.key, d.cur[geo.at]) == Hdr(hq as int + k, geo.ep, ins.r2)) && (ins.hph >= 2 ==> Passes(d.poss[geo.at])) &&
      (ins.hph >= 3 && !d.bad ==> DecHdr(geo.key, d.cur[Copy(geo)]) == Hdr(hq as int + k, geo.ep, ins.r2)) && (ins.hph >= 4 ==> Passes(d.poss[Copy(geo)]))
    }
    // What the cache holds of a block is its home contents. Of blocks being installed it
    // may hold the old contents until they are put there (`cached`); of direct blocks it
    // holds what they will be.
    predicate {:opaque} CacheI() reads this`cdm, this`base, this`im, this`cached, cache, cdm {
      forall a :: a in cache.m ==> a in base &&
        if a in cdm.m then cache.m[a] == cdm.m[a]
        else if a in im then a in cached ==> cache.m[a] == im[a]
        else cache.m[a] == base[a]
    }
    predicate Pending(a: int) reads this`running, this`lgm, this`cgm, this`cdm, this`inm, running, lgm, cgm, cdm, inm {
      a in running.m || a in cgm.m || a in cdm.m || a in lgm.m || a in inm.m
    }
    // the direct blocks of all records from the header's number on are held: in iho those of the groups being installed, in lho others
    predicate {:opaque} HoldI() reads this`hq, this`k, this`hs, this`cdm, this`lho, this`iho, seal, cdm, lho, iho {
      0 <= k <= |hs| && (forall a :: a in iho.m <==> a in Merge(hs[..k])) && (forall a :: a in lho.m <==> a in Merge(hs[k..])) &&
      (forall a :: Direct(seal.signed, hq as int, a) ==> a in lho.m || a in iho.m || a in cdm.m) &&
      (forall a :: Direct(seal.signed, hq as int + k, a) ==> a in lho.m || a in cdm.m)
    }
    // The tree of codes says what the header says; and blocks that went straight home since have their codes in memory.
    predicate {:opaque} TreeI() reads this`base, this`lho, this`iho, ins`r, ins`tb, lho, iho, tree.pages {
      tree.np > 0 ==>
        |tree.pages.vs| == |tree.pages.rs| > 0 && tree.Root() == ins.r && TreeSays(geo, tree.Now(), ins.r, ins.tb) &&
        (forall x :: x in tree.pages.held <==> x + home as int in lho.m || x + home as int in iho.m) &&
        forall x :: x in tree.pages.held ==> x + home as int in base && Vouches(seal.key, x, tree.pages.held[x], base[x + home as int])
    }
    predicate {:opaque} RdI() reads this`rds, this`trims, this`base, this`running, this`lgm, this`cgm, this`cdm, this`inm, running, lgm, cgm, cdm, inm {
      forall r :: r in rds ==> r.t <= trims as int && r.a in base &&
                              (r.t == trims as int ==> r.v == base[r.a] || Pending(r.a))
    }
    // The device can be trusted to have returned what it holds, and what it holds of the tree is what is to be there.
    predicate Sound() { whole && !Erred(d) }
    // Then the pages of the tree are where they say, and those that the installer has written where these say.
    predicate {:opaque} PagesI() reads tree.pages`vs, tree.pages`rs, ins`ip, ins`wr, ins`r2, d`cur, d`poss, d`bad {
      Sound() && tree.np > 0 ==> Sitting(tree, d.poss) && (ins.ip == 3 ==> exists pg :: NextPages(tree, ins.wr, pg, ins.r2) && IsTree(tree.seal.t, pg, ins.r2)) && forall p :: p in ins.wr ==> 0 <= p < tree.np as int && |ins.wr[p]| == 4096 &&
        var a := PlaceOf(tree.first as int, p, ins.wr[p]); a < |d.cur| == |d.poss| &&
        (ins.ip == 1 && !d.bad ==> d.cur[a] == ins.wr[p]) && (ins.ip >= 2 ==> d.poss[a] <= iset{ins.wr[p]})
    }
    // a read of block a with ticket t was overtaken: others wrote the block, or are going to
    predicate Late(a: int, t: uint64) reads this`trims, this`rds {
      t < trims || exists r, s :: r in rds && s in rds && r.a == a && s.a == a && r.v != s.v && r.t >= t as int && s.t >= t as int
    }
    // why a journal may fail: the device did, the installer's tree cannot be read, or a counter is spent
    predicate Cause() reads this`trims, d`bad, ins`lost { d.bad || ins.lost || trims >= 0x3FFF_FFFF_FFFF_0000 }
    predicate {:opaque} Inv() reads this, d, seal, cache, tree.pages, lg, ins, running, lgm, cgm, cdm, inm, lho, iho, lg.ring, lg.dir, lg.codes
      ensures Inv() ==> running.Ok() && cgm.Ok() && cdm.Ok() && inm.Ok() && lgm.Ok() && lho.Ok() && iho.Ok() && |vs| > 0
      ensures Inv() ==> running in repr && lgm in repr && cgm in repr && cdm in repr && inm in repr && lho in repr && iho in repr
      ensures Inv() ==> (lg.ring != null ==> lg.ring in repr) && (lg.dir != null ==> lg.dir in repr)
      ensures Inv() ==> (ins.ip > 0 && ins.list != null ==> |ins.list.addrs| == |ins.list.blks| < 0x8_0000_0000_0000)
    {
      Shape() && DiskI() && Reals() && Abs() && OwnI() && LogI() && InsI() && CacheI() && HoldI() && TreeI() && PagesI() && RdI() && (failed ==> Cause()) && (ins.lost ==> !Sound())
    }

    // what a step must not change about the logger / the installer / the history
    twostate predicate LKeep() reads this, d, lg, cgm, cdm, lg.ring, lg.dir, lg.codes {
      (forall a :: Owns(d.owner, Logging, a) == Owns(old(d.owner), Logging, a)) && unchanged(lg, lg.codes) && (lg.ring != null ==> unchanged(lg.ring)) && (lg.dir != null ==> unchanged(lg.dir)) &&
      cgm == old(cgm) && cdm == old(cdm) && unchanged(cgm, cdm) && wp == old(wp) && eq == old(eq) && cl == old(cl)
    }
    twostate predicate IKeep() reads this, d, ins, inm, tree.pages {
      (forall a :: Owns(d.owner, Installing, a) == Owns(old(d.owner), Installing, a)) && unchanged(ins) &&
      icnr == old(icnr) && inm == old(inm) && unchanged(inm) && hq == old(hq) && ieq == old(ieq) &&
      tree.pages.vs == old(tree.pages.vs) && tree.pages.rs == old(tree.pages.rs)
    }
    twostate predicate Mono() reads this, d, ins, lg {
      |old(vs)| <= |vs| && (forall i :: 0 <= i < |old(vs)| ==> vs[i] == old(vs)[i]) && old(lb) <= lb && old(trims) <= trims && old(rds) <= rds &&
      (old(failed) ==> failed) && (old(closed) ==> closed && vs == old(vs)) && (old(d.bad) ==> d.bad) && (old(ins.lost) ==> ins.lost) && torn <= old(torn) &&
      (lg.codes == old(lg.codes) || fresh(lg.codes))
    }
    function Cur(): St requires |vs| > 0 reads this { vs[|vs|-1] }
    predicate TxOk(tx: BMap) reads tx { tx.Ok() && InHome(home as int, tx.m, sz as int) }
    // Block a was seen to hold v since the ticket t was given.
    predicate WasRead(a: int, t: uint64, v: BV) reads this { |v| == 4096 && exists r :: r in rds && r.a == a && r.v == v && r.t >= t as int }

    // after recovery: empty log, first sequence number q, state ins0.tb, which the tree says
    constructor (d0: Disk, seal0: Seal, mu0: Mutex, cache0: Cache, tree0: Tree, n: uint64, at0: uint64, nd0: uint64, nr0: uint64, bit0: uint64, flo0: uint64, fhi0: uint64, q: uint64, maxPin0: uint64, instAt0: uint64, ins0: Installer)
      requires q < 0x1FFF_0000_0000_0000 && ins0.list == null && ins0.ip == 0 && ins0.wn == 0 && ins0.hph == 0 && ins0.r2 == ins0.r && ins0.tb2 == ins0.tb
      requires var v := ins0.tb; var r := ins0.r; var torn0 := Differ(d0.cur, v); var p := Geo(at0 as int, nd0 as int, nr0 as int, seal0.key, seal0.ep, bit0 as int, flo0 as int, fhi0 as int, seal0.t, torn0);
        GeoOk(p) && d0.Valid() && |d0.cur| == n as int && d0.ok == OkSet(p, [v], 0, seal0.signed) &&
        Full(d0.poss, G0(p, seal0.signed, q as int, v, r)) &&
        if tree0.np == 0 then torn0 == {}
        else |tree0.pages.vs| == |tree0.pages.rs| > 0 && tree0.Root() == r && TreeSays(p, tree0.Now(), r, v) && tree0.pages.held == map[]
      requires ins0.wr == map[] && !ins0.lost && forall a :: !Direct(seal0.signed, q as int, a)
      requires TreeFor(tree0, d0, seal0, at0 as int, at0 as int + 2 + 16 * nd0 as int + nr0 as int, n as int)
      requires cache0.m == map[] && maxPin0 < 0x1_0000_0000 && forall x, a :: !Owns(d0.owner, x, a)
      ensures Inv() && d == d0 && seal == seal0 && mu == mu0 && cache == cache0 && tree == tree0
      ensures sz == n && at == at0 && nd == nd0 && nr == nr0 && home as int == at0 as int + 2 + 16 * nd0 as int + nr0 as int
      ensures bit == bit0 && flo == flo0 && fhi == fhi0 && maxPin == maxPin0 && instAt == instAt0 && !failed && !closed
      ensures vs == [ins0.tb] && geo.torn == Differ(d0.cur, ins0.tb) && ins == ins0 && lb == 0 && lg.ph == 0 && ins.ip == 0 && rds == {} && (whole <==> (tree.np > 0 ==> Sitting(tree, d.poss)))
      ensures fresh(lg) && fresh(lg.codes)
      ensures fresh(running) && fresh(lgm) && fresh(cgm) && fresh(cdm) && fresh(inm) && fresh(lho) && fresh(iho) && fresh(repr)
    {
      var nt := NewNotes();
      notes := nt;
      lg := new Logger(); ins := ins0;
      d := d0; seal := seal0; mu := mu0; cache := cache0; tree := tree0; sz := n; at := at0; nd := nd0; nr := nr0;
      bit := bit0; flo := flo0; fhi := fhi0;
      home := at0 + 2 + 16 * nd0 + nr0; maxPin := maxPin0; instAt := instAt0;
      var m1 := NewBMap(); var m2 := NewBMap(); var m3 := NewBMap(); var m4 := NewBMap();
      var m5 := NewBMap(); var m6 := NewBMap(); var m7 := NewBMap();
      running := m1; lgm := m2; cgm := m3; inm := m4; cdm := m5; lho := m6; iho := m7;
      icnr := 0; hq := q; eq := q; ieq := q; lo := 0; ilo := 0; wp := 0; trims := 0; nvs := 0; ncl := 0; nlb := 0;
      busy := false; failed := false; closed := false;
      ghost var v := ins0.tb; ghost var torn0 := Differ(d0.cur, v);
      geo := Geo(at0 as int, nd0 as int, nr0 as int, seal0.key, seal0.ep, bit0 as int, flo0 as int, fhi0 as int, seal0.t, torn0); torn := torn0;
      whole := tree0.np > 0 ==> Sitting(tree0, d0.poss);
      gs := []; ds := []; hs := []; k := 0; base := v; im := map[];
      vs := [v]; lb := 0; cl := 0; rds := {}; cached := {};
      repr := {m1, m2, m3, m4, m5, m6, m7};
      new;
      Begun(v, ins0.r);
    }
    // an empty log
    lemma Begun(v: St, r: CV)
      requires g() == G0(geo, seal.signed, hq as int, v, r) && vs == [v] && lb == 0 && cl == 0 && rds == {} && GeoI()
      requires tree.np > 0 ==> |tree.pages.vs| == |tree.pages.rs| > 0 && tree.Root() == r && TreeSays(geo, tree.Now(), r, v) && tree.pages.held == map[]
      requires d.Valid() && |d.cur| == sz as int && d.ok == OkSet(geo, vs, 0, seal.signed) && Full(d.poss, g())
      requires forall a :: !Direct(seal.signed, hq as int, a)
      requires running.Ok() && lgm.Ok() && cgm.Ok() && cdm.Ok() && inm.Ok() && lho.Ok() && iho.Ok()
      requires running.m == lgm.m == cgm.m == cdm.m == inm.m == lho.m == iho.m == map[] && cache.m == map[]
      requires running.addrs == lgm.addrs == cgm.addrs == cdm.addrs == []
      requires running !in {lgm, cgm, cdm, inm, lho, iho} && lgm !in {cgm, cdm, inm, lho, iho} && lho !in {cgm, cdm, inm, iho} && cgm !in {cdm, inm, iho} && cdm !in {inm, iho}
      requires repr == {running, lgm, cgm, cdm, inm, lho, iho} && maxPin < 0x1_0000_0000 && forall x, a :: !Owns(d.owner, x, a)
      requires eq == hq && trims == 0 && nvs == 0 && ncl == 0 && nlb == 0 && !busy && !failed && lg.ph == 0 && lg.ps == [] && lg.np == 0 && lg.newest == null && lg.ring == null && lg.dir == null && lg.bodies == [] && lg.maps == [] && lg.pos == 0 && lg.codes.s == [] && hq < 0x1FFF_0000_0000_0000
      requires ins.list == null && ins.wn == 0 && icnr == 0 && ins.hph == 0 && ins.wr == map[] && !ins.lost && (whole ==> tree.np > 0 ==> Sitting(tree, d.poss))
      ensures Inv()
    {
      reveal Inv(); reveal OwnI(); reveal PagesI(); reveal LogI(); reveal InsI(); reveal CacheI(); reveal RdI(); reveal HoldI(); reveal TreeI();
      assert Merge([]) == map[]; assert gs[k..] == []; assert hs[..k] == []; assert hs[k..] == [];
      assert Over(v, map[]) == v;
      AmongNone(g(), vs, 0);
      assert Ms(lg.ps) == [] && Hs(lg.ps) == [];
      assert CodesOf([], map[], Home(geo), seal.key) by { reveal CodesOf(); }
    }
  }
}
