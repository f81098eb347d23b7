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
// while the role is played (KeepsLogger, KeepsInstaller).
include "groups.dfy"
include "says.dfy"
include "../trusted/cache.s.dfy"
include "../trusted/mutex.s.dfy"
include "../trusted/notes.s.dfy"

module JournalM {
  import opened Machine
  import opened ByteSlice
  import opened DiskS
  import opened CodeTreeSpec
  import opened RecordSpec
  import opened MapsOfBlocks
  import opened Mutexes
  import opened Clocks
  import opened Caches
  import opened JournalNotes
  import opened CodeLists
  import opened Seals
  import opened Ring
  import opened LogModel
  import opened LogSteps
  import opened Groups
  import opened TreeModel
  import opened TreeOfCodes

  // condition variables of the mutex
  const CLogger: uint32 := 0     // the logger thread has something to do
  const CInstaller: uint32 := 1  // the installer has
                                   // 2, 3: durability, for groups of alternating parity
  const CSpace: uint32 := 4  // there is room for transactions again

  const WINDOW: uint64 := 32  // Window

  datatype Observation = Observation(addr: int, ticket: int, contents: BV)

  // A pending group in memory: the two maps that it was made of, whose memory is seen until it is durable; what it has
  // in the log; and the one before it.
  class InLog {
    const body: BList
    const ring: BlockMap
    const direct: BlockMap
    const before: InLog?
    constructor (l: BList, r: BlockMap, f: BlockMap, w: InLog?)
      ensures body == l && ring == r && direct == f && before == w
    { body := l; ring := r; direct := f; before := w; }
  }
  // from w on, the last one, the pending groups have this in the log, and were made of these maps
  predicate Chain(w: InLog?, bodies: seq<BList>, maps: seq<BlockMap>) decreases |bodies| {
    if |bodies| == 0 then w == null && maps == []
    else w != null && |maps| >= 2 && w.body == bodies[|bodies|-1] && w.ring == maps[|maps|-2] &&
      w.direct == maps[|maps|-1] && Chain(w.before, bodies[..|bodies|-1], maps[..|maps|-2])
  }
  // How far the logger is with its work.
  datatype LoggerPhase =
    | NoLogger         // nobody is the logger
    | GroupFrozen      // a group is frozen
    | GroupWriting     // the last pending group is being written
    | GroupsDurable    // all pending groups are durable
    | GroupsWritten    // all pending groups are written
  // What was done with the two headers of an installation. The copy is written when the header is durable.
  datatype HeaderPhase = HeaderUntouched | HeaderWritten | HeaderDurable | CopyWritten | CopyDurable
  predicate HeaderOut(h: HeaderPhase) { h == HeaderDurable || CopyBegun(h) }
  predicate CopyBegun(h: HeaderPhase) { h == CopyWritten || h == CopyDurable }
  // the phase after a barrier
  function Secured(h: HeaderPhase): HeaderPhase { if h == HeaderWritten then HeaderDurable else CopyDurable }

  // What the logger alone changes, without the mutex.
  class Logger {
    var desc: Blk?                // the descriptor block of the group being logged
    var body: BList?              // its blocks for the log
    var directList: BList?        // its direct blocks by address
    var ring: BlockMap?           // the group that is frozen, or being written, in two parts: for the log,
    var direct: BlockMap?         // and straight home; they keep the blocks of the lists
    var pendingCount: uint64      // number of pending groups,
    var newest: InLog?            // and the last of them
    var endPos: uint64            // the log position after them
    var codes: Codes              // of their direct blocks
    var lookedAt: uint64          // what the clock said before the last look at the header; 0: there was none
    ghost var looked: Reading?    // that reading,
    ghost var reading: Reading?   // and the one for the next write
    ghost var pending: seq<Pend>  // the pending groups
    ghost var bodies: seq<BList>  // what they have in the log
    ghost var maps: seq<BlockMap>     // the maps that they were made of
    ghost var phase: LoggerPhase
    ghost var blocksWritten: int  // blocks for the log written so far
    ghost var directWritten: int  // direct ones
    ghost var descWritten: bool   // and the descriptor
    constructor ()
      ensures phase == NoLogger && pendingCount == 0 && newest == null && pending == [] && bodies == [] && maps == [] &&
        endPos == 0 && ring == null && direct == null && fresh(codes) && codes.s == [] && lookedAt == 0
    {
      var c := NewCodes();
      desc := null; body := null; directList := null; ring := null; direct := null; pendingCount := 0; newest := null;
      bodies := []; maps := []; endPos := 0; codes := c; lookedAt := 0; looked := null; reading := null;
      pending := []; phase := NoLogger; blocksWritten := 0; directWritten := 0; descWritten := false;
    }
  }
  // What the installer alone changes, without the mutex.
  class Installer {
    var list: BList?              // the blocks being installed by address
    var lookedAt: uint64          // as the logger's
    ghost var looked: Reading?
    ghost var reading: Reading?
    ghost var phase: InstallPhase
    ghost var blocksWritten: int  // installed blocks written so far
    ghost var headerPhase: HeaderPhase
    ghost var root: CV  // the root in the header, what its tree says, and the same after the installation
    ghost var treeState: St
    ghost var nextRoot: CV
    ghost var nextTreeState: St
    ghost var lost: bool          // what it needs of the tree of codes could not be had
    ghost var pagesWritten: BM    // the pages of the tree that it has written, as they are to be
    constructor ()
      ensures list == null && phase == NoInstall && blocksWritten == 0 && headerPhase == HeaderUntouched &&
        pagesWritten == map[] && !lost && lookedAt == 0
    {
      list := null; phase := NoInstall; blocksWritten := 0; headerPhase := HeaderUntouched; root := CV(0, 0);
      treeState := map[]; nextRoot := CV(0, 0); nextTreeState := map[]; lost := false; pagesWritten := map[];
      lookedAt := 0; looked := null; reading := null;
    }
    ghost method Begin(r0: CV, v: St)
      modifies this`root, this`treeState, this`nextRoot, this`nextTreeState
      ensures root == nextRoot == r0 && treeState == nextTreeState == v
    { root := r0; treeState := v; nextRoot := r0; nextTreeState := v; }
  }
  // what a step left alone of the blocks that role r owns
  twostate predicate DiskKept(d: Disk, r: Role) reads d {
    |d.cur| == |d.poss| == |old(d.poss)| == |old(d.cur)| &&
    (forall a :: 0 <= a < |d.poss| && Owns(old(d.owner), r, a) ==> d.poss[a] <= old(d.poss)[a]) &&
    (d.bad || (!old(d.bad) && forall a :: 0 <= a < |d.cur| && Owns(old(d.owner), r, a) ==> d.cur[a] == old(d.cur)[a]))
  }

  // t is the tree of a journal whose header is block at, with the first home block home, and sz blocks
  predicate TreeFor(t: Tree, d: Disk, seal: Seal, at: int, home: int, sz: int) {
    t.Ok() && t.disk == d && t.seal == seal && t.home as int == home && home + t.homeCount as int == sz &&
      t.first as int + 2 * t.pageCount as int == at
  }

  // pg, with the root r, are the newest pages, but for those in wr
  predicate NextPages(t: Tree, wr: BM, pg: seq<BV>, r: CV) reads t.pages`vs, t.pages`rs {
    t.Ok() && |t.pages.vs| == |t.pages.rs| > 0 && PagesOk(t.seal.t, pg) && PagesOk(t.seal.t, t.Now()) &&
    forall p :: 0 <= p < t.pageCount as int ==> if p in wr then pg[p] == wr[p]
      else pg[p] == t.Now()[p] && PageCode(t.seal.t, pg, r, p) == PageCode(t.seal.t, t.Now(), t.Root(), p)
  }
  // l is what pending group e has in the log
  predicate Body(l: BList, e: Pend) {
    l.addrs == e.desc.addrs && |l.blks| == |e.desc.addrs| && forall i :: 0 <= i < |l.blks| ==>
      e.desc.addrs[i] in e.blocks && l.blks[i] == e.blocks[e.desc.addrs[i]] && |l.blks[i]| == 4096
  }
  // pending group e was written: its record to the log, and its direct blocks home
  predicate Written(p: Geo, c: Img, e: Pend) requires GeoOk(p) && |c| >= Home(p) {
    c[DSlot(p, e.desc.sq)] == e.descBlock &&
      (forall i :: 0 <= i < |e.desc.addrs| ==> e.desc.addrs[i] in e.blocks &&
      c[DataBlock(p, e.desc, i)] == e.blocks[e.desc.addrs[i]]) &&
    forall a :: a in e.direct ==> 0 <= a < |c| && c[a] == e.direct[a]
  }
  // s has the codes of the blocks m
  predicate {:opaque} CodesOf(s: seq<Code>, m: BM, home: int, key: int) {
    (forall e :: e in s ==> e.x + home in m && Vouches(key, e.x, e.c, m[e.x + home])) &&
    forall a :: a in m ==> exists e :: e in s && e.x == a - home
  }
  // blocks that c has with other contents than w
  function Differ(c: Img, w: St): set<int> { set a | a in w && (0 <= a < |c| ==> c[a] != w[a]) }

  predicate IsHeader(key: int, b: BV) { DecHdr(key, b).Hdr? && 0 <= DecHdr(key, b).q < 0x4000_0000_0000_0000 }
  // whose the volume is, while the journal of p is open
  function GuardOf(p: Geo): Guard {
    Guard(iset a | p.headerAt < a < Copy(p), p.headerAt, Copy(p), iset b | IsHeader(p.key, b),
      iset b | DecHdr(p.key, b).Hdr? && DecHdr(p.key, b).ep == p.epoch)
  }

  // no two of the seven maps of a journal are the same
  predicate AllDiffer(a: BlockMap, b: BlockMap, c: BlockMap, d: BlockMap, e: BlockMap, f: BlockMap, g: BlockMap) {
    a !in {b, c, d, e, f, g} && b !in {c, d, e, f, g} && c !in {d, e, f, g} && d !in {e, f, g} && e !in {f, g} && f != g
  }

  class Journal {
    const disk: Disk
    const seal: Seal
    const mutex: Mutex
    const cache: Cache
    const clock: Clock
    const notes: Notes
    const tree: Tree        // the codes of what is home
    const logger: Logger
    const installer: Installer
    const size: uint64      // blocks of the device
    const headerAt: uint64  // the layout (Geo)
    const units: uint64
    const ringSize: uint64
    const bitmapAt: uint64  // the allocation bits (Geo)
    const allocFrom: uint64
    const allocEnd: uint64
    const home: uint64      // first home block
    const maxPin: uint64    // bound on the blocks logged but not installed
    const instAt: uint64    // install from so many on

    // changed under the mutex alone
    var running: BlockMap  // commits not yet being logged
    // the frozen group and the pending ones, merged (changed only by who is or becomes the logger)
    var frozen: BlockMap
    var frozenDirect: BlockMap  // their direct blocks (likewise)
    var logged: BlockMap        // logged groups not being installed, merged
    var installing: BlockMap          // being installed (frozen; replaced only by the installer)
    var loggedDirect: BlockMap       // direct blocks of logged groups not being installed, and
    var installingDirect: BlockMap   // of those being installed: their addresses
    var cachedCount: uint64      // so many of the blocks being installed are in the cache
    var firstSeq: uint64         // first live sequence number on disk
    var nextSeq: uint64          // next sequence number
    var seqAfterInstall: uint64  // sequence number after the groups being installed
    var logStart: uint64         // log positions: live from here to logEnd
    var posAfterInstall: uint64
    var logEnd: uint64
    var trims: uint64            // number of completed installs
    var lastCommit: uint64       // index of the last commit
    var lastFrozen: uint64       // ... last commit in the frozen group, or the pending ones
    var lastDurable: uint64      // ... last durable commit
    var busy: bool               // somebody is the logger
    var failed: bool             // for good: no commit is accepted any more
    var closed: bool             // nor is any once somebody has begun to close the journal

    ghost const layout: Geo
    ghost const whole: bool     // at the beginning the device had the pages of the tree where they say
    ghost var groups: seq<BM>   // logged groups, base and what is being installed
    ghost var descs: seq<Desc>
    ghost var directs: seq<BM>
    ghost var installCount: int
    ghost var base: St
    ghost var installBlocks: BM
    ghost var torn: set<int>
    ghost var states: seq<St>   // abstract states: after 0, 1, 2, ... commits
    ghost var durableIndex: int
    ghost var frozenIndex: int
    ghost var observed: set<Observation>
    ghost var cached: set<int>  // blocks being installed that are in the cache as they will be
    ghost var repr: set<BlockMap>   // every map this journal ever used

    // the state of the protocol
    function protocol(): Protocol reads this`firstSeq, this`groups, this`descs, this`directs, this`installCount,
      this`base,
      this`installBlocks, this`logStart, this`posAfterInstall, this`logEnd, this`torn, seal,
      logger`pending, installer`phase, installer`root, installer`treeState, installer`nextRoot, installer`nextTreeState
    {
      Protocol(layout, seal.signed, firstSeq as int, groups, descs, directs, installCount, logger.pending, base,
        installBlocks,
        installer.phase, logStart as int, posAfterInstall as int, logEnd as int,
        installer.root, installer.treeState, installer.nextRoot, installer.nextTreeState, torn)
    }

    // a map that is none of the seven
    predicate Kept(m: BlockMap) reads this {
      m in repr && m !in {running, logged, frozen, frozenDirect, installing, loggedDirect, installingDirect}
    }
    predicate MapsInv() reads this, installer, logger`maps, logger`ring, logger`direct, running, logged, frozen,
      frozenDirect, installing, loggedDirect, installingDirect {
      (forall m :: m in logger.maps ==> Kept(m)) && (logger.ring != null ==> Kept(logger.ring)) &&
        (logger.direct != null ==> Kept(logger.direct)) &&
      AllDiffer(running, logged, frozen, frozenDirect, installing, loggedDirect, installingDirect) &&
      running in repr && logged in repr && frozen in repr && frozenDirect in repr && installing in repr &&
        loggedDirect in repr && installingDirect in repr &&
      running.Ok() && logged.Ok() && frozen.Ok() && frozenDirect.Ok() && installing.Ok() && loggedDirect.Ok() &&
        installingDirect.Ok() && InHome(home as int, frozenDirect.m, size as int) &&
      InHome(home as int, running.m, size as int) && InHome(home as int, logged.m, size as int) &&
      InHome(home as int, frozen.m, size as int) && InHome(home as int, installing.m, size as int) &&
      (installer.list != null ==> |installer.list.addrs| == |installer.list.blks| < 0x8_0000_0000_0000 &&
        KeepsAll(installing, installer.list)) &&
      |running.addrs| <= 500 && |logged.addrs| + |frozen.addrs| <= maxPin as int < 0x1_0000_0000
    }
    predicate LayoutInv() reads seal {
      layout == Geo(headerAt as int, units as int, ringSize as int, seal.key, seal.ep, bitmapAt as int,
        allocFrom as int, allocEnd as int, seal.t, layout.torn) && GeoOk(layout) &&
        home as int == Home(layout) <= size as int &&
      (tree.pageCount == 0 ==> layout.torn == {}) &&
      TreeFor(tree, disk, seal, headerAt as int, home as int, size as int)
    }
    predicate DiskInv() reads this, disk, seal, logger, installer {
      LayoutInv() && disk.Valid() && Full(disk.poss, protocol()) && |disk.cur| == size as int && 0 <= durableIndex &&
        disk.ok == OkSet(layout, states, durableIndex, seal.signed)
    }
    predicate CounterInv() reads this, logger, installer {
      |groups| == |descs| == |directs| && 0 <= installCount <= |groups| &&
        nextSeq as int == firstSeq as int + |groups| &&
        (installer.phase != NoInstall ==> seqAfterInstall as int == firstSeq as int + installCount) &&
      lastCommit as int == |states| - 1 && lastFrozen as int == frozenIndex && lastDurable as int == durableIndex &&
        lastCommit < 0x4000_0000_0000_0000 &&
      trims < 0x4000_0000_0000_0000 && (busy <==> logger.phase != NoLogger)
    }
    predicate StatesInv() reads this, seal, logger, installer, running, logged, frozen, frozenDirect, installing {
      0 <= durableIndex <= frozenIndex < |states| && 0 <= installCount <= |groups| &&
      states[durableIndex] == DurState(protocol()) &&
        states[frozenIndex] == Over(Over(states[durableIndex], frozenDirect.m), frozen.m) &&
        states[|states|-1] == Over(states[frozenIndex], running.m) &&
      logged.m == Merge(groups[installCount..]) && installing.m == installBlocks &&
        AllAmong(protocol(), states, durableIndex, frozenIndex)
    }
    // who may write what: the logger the log and its direct blocks, the installer the tree, the headers, and what it
    // installs
    predicate {:opaque} OwnerInv()
      reads this`frozenDirect, this`installBlocks, logger`phase, logger`pending, installer`phase, frozenDirect,
      disk`owner {
      (forall a :: Owns(disk.owner, Logging, a) <==> (logger.phase != NoLogger || logger.pending != []) &&
        (layout.headerAt < a < Copy(layout) || a in frozenDirect.m)) &&
      (forall a :: Owns(disk.owner, Installing, a) <==> installer.phase != NoInstall &&
        (tree.first as int <= a < layout.headerAt || a == layout.headerAt || a == Copy(layout) ||
        a in installBlocks)) &&
      (forall a :: !Owns(disk.owner, Recovering, a))
    }
    predicate {:opaque} LoggerInv()
      reads this`firstSeq, this`groups, this`descs, this`directs, this`installCount, this`base, this`installBlocks,
      this`logStart, this`posAfterInstall, this`logEnd, this`torn, this`frozen, this`frozenDirect,
      logger, installer`phase, installer`root, installer`treeState, installer`nextRoot, installer`nextTreeState, seal,
        disk`cur, disk`poss, disk`bad, frozen, frozenDirect, logger.ring, logger.direct, logger.codes
    {
      GeoOk(layout) && |disk.cur| == |disk.poss| >= Home(layout) &&
      |logger.bodies| == |logger.pending| == logger.pendingCount as int &&
        Chain(logger.newest, logger.bodies, logger.maps) &&
        (logger.phase != GroupFrozen && logger.phase != GroupWriting ==>
        logger.ring == null && logger.direct == null) &&
        (logger.phase != NoLogger && logger.phase != GroupFrozen ==> logger.pending != []) &&
        |frozen.addrs| + |frozenDirect.addrs| <= 500 * (|logger.pending| + if logger.phase == GroupFrozen then 1
        else 0) && logger.endPos as int == PendEnd(protocol()) &&
        CodesOf(logger.codes.s, Merge(DirectMaps(logger.pending)), Home(layout), seal.key) &&
      End(protocol()) + |logger.pending| < 0x1FFF_FFFF_FFFF_FFFF && logger.endPos < 0x1FFF_FFFF_FFFF_0000 &&
        (forall i :: 0 <= i < |logger.pending| ==> Body(logger.bodies[i], logger.pending[i])) &&
      (if logger.phase == GroupFrozen then logger.ring != null && logger.direct != null &&
        FrozenParts(logger.ring, logger.direct) else frozen.m == Merge(BlockMaps(logger.pending)) &&
        frozenDirect.m == Merge(DirectMaps(logger.pending))) &&
      (logger.phase == GroupWriting ==> logger.pending != [] && logger.desc != null && logger.body != null &&
        logger.directList != null && logger.ring != null && logger.direct != null &&
        KeepsAll(logger.ring, logger.body) && KeepsAll(logger.direct, logger.directList) &&
        var e := logger.pending[|logger.pending|-1];
                    logger.desc.v == e.descBlock && |e.descBlock| == 4096 &&
                      logger.body == logger.bodies[|logger.pending|-1] && 0 <= logger.blocksWritten <= |e.desc.addrs| &&
                    Lists(logger.directList, e.direct, Home(layout), |disk.cur|) &&
                      0 <= logger.directWritten <= |logger.directList.addrs|) &&
      (logger.phase == GroupWriting && !disk.bad ==> var e := logger.pending[|logger.pending|-1];
                    (forall i :: 0 <= i < logger.blocksWritten ==>
                      disk.cur[DataBlock(layout, e.desc, i)] == logger.body.blks[i]) &&
                    (forall i :: 0 <= i < logger.directWritten ==>
                      disk.cur[logger.directList.addrs[i]] == logger.directList.blks[i]) &&
                    (logger.descWritten ==> disk.cur[DSlot(layout, e.desc.sq)] == e.descBlock)) &&
      (!disk.bad ==> forall i :: 0 <= i < (if logger.phase == GroupWriting then |logger.pending| - 1
        else |logger.pending|) ==> Written(layout, disk.cur, logger.pending[i])) &&
      (logger.phase == GroupsDurable ==> AllHome(disk.poss, protocol()))
    }
    // the frozen group, in two parts, and the pending ones are what is in frozen and frozenDirect
    predicate FrozenParts(ring: BlockMap, dir: BlockMap)
      reads this`firstSeq, this`groups, this`descs, this`directs, this`installCount, this`base, this`installBlocks,
      this`logStart, this`posAfterInstall, this`logEnd, this`torn, this`frozen, this`frozenDirect,
      logger`pending, logger`endPos, installer`phase, installer`root, installer`treeState, installer`nextRoot,
        installer`nextTreeState, seal, disk`cur, frozen, frozenDirect, ring, dir
    {
      ring != dir && ring.Ok() && dir.Ok() && |ring.addrs| + |dir.addrs| <= 500 &&
        InHome(Home(layout), ring.m, |disk.cur|) && InHome(Home(layout), dir.m, |disk.cur|) &&
      GeoOk(layout) && Ready(protocol(), ring.m, dir.m) && |logger.pending| < Window &&
        |groups| + |logger.pending| < layout.units &&
        logger.endPos as int + |ring.addrs| <= logStart as int + layout.ringSize &&
      logger.endPos as int + |ring.addrs| < 0x1FFF_FFFF_FFFF_0000 &&
        End(protocol()) + |logger.pending| + 1 < 0x1FFF_FFFF_FFFF_FFFF &&
      frozen.m == Overlaid(Merge(BlockMaps(logger.pending)), ring.m) &&
        frozenDirect.m == Overlaid(Merge(DirectMaps(logger.pending)), dir.m)
    }
    // a header block, for certain one that passes what is being installed
    predicate Passes(s: iset<BV>) reads this`firstSeq, this`installCount, installer`nextRoot {
      forall x :: x in s ==> DecHdr(layout.key, x) == Hdr(firstSeq as int + installCount, layout.epoch,
        installer.nextRoot)
    }
    predicate {:opaque} InstallerInv()
      reads this`firstSeq, this`installCount, this`installBlocks, this`cachedCount, this`cached, installer, disk`cur,
      disk`poss, disk`bad {
      GeoOk(layout) && |disk.cur| == |disk.poss| >= Home(layout) &&
      (installer.list != null && installer.phase != NoInstall ==>
        Lists(installer.list, installBlocks, home as int, |disk.cur|) &&
        0 <= installer.blocksWritten <= |installer.list.addrs| && cachedCount as int <= |installer.list.addrs| &&
                    forall i :: 0 <= i < cachedCount as int ==> installer.list.addrs[i] in cached) &&
      (installer.list == null ==> cachedCount == 0 && installer.blocksWritten == 0) &&
        (IsHome(installer.phase) ==> installer.list != null) &&
      (installer.phase == HomeWriting && !disk.bad ==> forall i :: 0 <= i < installer.blocksWritten ==>
        installer.list != null && i < |installer.list.addrs| && 0 <= installer.list.addrs[i] < |disk.cur| &&
                       disk.cur[installer.list.addrs[i]] == installer.list.blks[i]) &&
      (installer.headerPhase != HeaderUntouched ==> installer.phase == HeaderWriting) &&
      (installer.headerPhase != HeaderUntouched &&
        !disk.bad ==> DecHdr(layout.key, disk.cur[layout.headerAt]) == Hdr(firstSeq as int + installCount, layout.epoch,
        installer.nextRoot)) && (HeaderOut(installer.headerPhase) ==> Passes(disk.poss[layout.headerAt])) &&
      (CopyBegun(installer.headerPhase) &&
        !disk.bad ==> DecHdr(layout.key, disk.cur[Copy(layout)]) == Hdr(firstSeq as int + installCount, layout.epoch,
        installer.nextRoot)) && (installer.headerPhase == CopyDurable ==> Passes(disk.poss[Copy(layout)]))
    }
    // What the cache holds of a block is its home contents. Of blocks being installed it
    // may hold the old contents until they are put there (`cached`); of direct blocks it
    // holds what they will be.
    predicate {:opaque} CacheInv()
      reads this`frozenDirect, this`base, this`installBlocks, this`cached, cache, frozenDirect {
      forall a :: a in cache.m ==> a in base &&
        if a in frozenDirect.m then cache.m[a] == frozenDirect.m[a]
        else if a in installBlocks then a in cached ==> cache.m[a] == installBlocks[a]
        else cache.m[a] == base[a]
    }
    predicate Pending(a: int) reads this`running, this`logged, this`frozen, this`frozenDirect, this`installing, running,
      logged, frozen, frozenDirect, installing {
      a in running.m || a in frozen.m || a in frozenDirect.m || a in logged.m || a in installing.m
    }
    // the direct blocks of all records from the header's number on are held: in installingDirect those of the groups
    // being installed, in loggedDirect others
    predicate {:opaque} HeldInv() reads this`firstSeq, this`installCount, this`directs, this`frozenDirect,
      this`loggedDirect, this`installingDirect, seal, frozenDirect, loggedDirect, installingDirect {
      0 <= installCount <= |directs| &&
        (forall a :: a in installingDirect.m <==> a in Merge(directs[..installCount])) &&
        (forall a :: a in loggedDirect.m <==> a in Merge(directs[installCount..])) &&
      (forall a :: Direct(seal.signed, firstSeq as int, a) ==> a in loggedDirect.m || a in installingDirect.m ||
        a in frozenDirect.m) &&
      (forall a :: Direct(seal.signed, firstSeq as int + installCount, a) ==> a in loggedDirect.m ||
        a in frozenDirect.m)
    }
    // The tree of codes says what the header says; and blocks that went straight home since have their codes in memory.
    predicate {:opaque} TreeInv() reads this`base, this`loggedDirect, this`installingDirect, installer`root,
      installer`treeState, loggedDirect, installingDirect, tree.pages {
      tree.pageCount > 0 ==>
        |tree.pages.vs| == |tree.pages.rs| > 0 && tree.Root() == installer.root &&
          TreeSays(layout, tree.Now(), installer.root, installer.treeState) &&
        (forall x :: x in tree.pages.held <==> x + home as int in loggedDirect.m ||
          x + home as int in installingDirect.m) &&
        forall x :: x in tree.pages.held ==> x + home as int in base &&
          Vouches(seal.key, x, tree.pages.held[x], base[x + home as int])
    }
    predicate {:opaque} ReadsInv()
      reads this`observed, this`trims, this`base, this`running, this`logged, this`frozen, this`frozenDirect,
      this`installing, running, logged, frozen, frozenDirect, installing {
      forall r :: r in observed ==> r.ticket <= trims as int && r.addr in base &&
                              (r.ticket == trims as int ==> r.contents == base[r.addr] || Pending(r.addr))
    }
    // The device can be trusted to have returned what it holds, and what it holds of the tree is what is to be there.
    predicate Sound() { whole && !Erred(disk) }
    // Then the pages of the tree are where they say, and those that the installer has written where these say.
    predicate {:opaque} PagesInv()
      reads tree.pages`vs, tree.pages`rs, installer`phase, installer`pagesWritten, installer`nextRoot, disk`cur,
      disk`poss, disk`bad {
      Sound() && tree.pageCount > 0 ==> Sitting(tree, disk.poss) &&
        (installer.phase == HeaderWriting ==>
        exists pg :: NextPages(tree, installer.pagesWritten, pg, installer.nextRoot) &&
        IsTree(tree.seal.t, pg, installer.nextRoot)) && forall p :: p in installer.pagesWritten ==>
        0 <= p < tree.pageCount as int && |installer.pagesWritten[p]| == 4096 &&
        var a := PlaceOf(tree.first as int, p, installer.pagesWritten[p]); a < |disk.cur| == |disk.poss| &&
        (installer.phase == HomeWriting && !disk.bad ==> disk.cur[a] == installer.pagesWritten[p]) &&
          (IsHome(installer.phase) ==> disk.poss[a] <= iset{installer.pagesWritten[p]})
    }
    // a read of block a with ticket t was overtaken: others wrote the block, or are going to
    predicate Late(a: int, t: uint64) reads this`trims, this`observed {
      t < trims || exists r, s :: r in observed && s in observed && r.addr == a && s.addr == a &&
        r.contents != s.contents && r.ticket >= t as int && s.ticket >= t as int
    }
    // A read of block a with ticket t may have been: a block was written home since, or this one is in memory now. So
    // to read again finds it in memory, or waits for an installation.
    predicate Overtaken(a: int, t: uint64) reads this`trims, this`running, this`logged, this`frozen, this`frozenDirect,
      this`installing, running, logged, frozen, frozenDirect, installing, cache {
      t != trims || Pending(a) || a in cache.m
    }
    // What is known of a last look at the header: s is the reading of the clock before it, which said at.
    predicate LastLook(s: Reading?, at: uint64) {
      at > 0 ==> s != null && s.clock == clock && s.at == at as int && Looked(disk, GuardOf(layout), s)
    }
    predicate {:opaque} LooksInv() reads disk`guard, logger`looked, logger`lookedAt, installer`looked,
      installer`lookedAt {
      disk.guard == GuardOf(layout) && LastLook(logger.looked, logger.lookedAt) &&
        LastLook(installer.looked, installer.lookedAt)
    }
    // The next write to home blocks, to the tree, or of a header is not later than the bound after the last look.
    predicate {:opaque} InTime(since: Reading?, now: Reading?) reads now {
      Timely(disk, GuardOf(layout), since, now)
    }
    // why a journal may fail: the device did, the installer's tree cannot be read, or a counter is spent
    predicate Cause() reads this`trims, disk`bad, installer`lost {
      disk.bad || installer.lost || trims >= 0x3FFF_FFFF_FFFF_0000
    }
    predicate {:opaque} Inv() reads this, disk, seal, cache, tree.pages, logger, installer, running, logged, frozen,
      frozenDirect, installing, loggedDirect, installingDirect, logger.ring, logger.direct, logger.codes
      ensures Inv() ==> running.Ok() && frozen.Ok() && frozenDirect.Ok() && installing.Ok() && logged.Ok() &&
        loggedDirect.Ok() && installingDirect.Ok() && |states| > 0
      ensures Inv() ==> running in repr && logged in repr && frozen in repr && frozenDirect in repr &&
        installing in repr && loggedDirect in repr && installingDirect in repr
      ensures Inv() ==> (logger.ring != null ==> logger.ring in repr) &&
        (logger.direct != null ==> logger.direct in repr)
      ensures Inv() ==> (installer.phase != NoInstall && installer.list != null ==>
        |installer.list.addrs| == |installer.list.blks| < 0x8_0000_0000_0000)
    {
      MapsInv() && DiskInv() && CounterInv() && StatesInv() && OwnerInv() && LoggerInv() && InstallerInv() &&
        CacheInv() && HeldInv() && TreeInv() && PagesInv() && ReadsInv() && (failed ==> Cause()) &&
        (installer.lost ==> !Sound()) && LooksInv()
    }

    // what a step must not change about the logger / the installer / the history
    twostate predicate KeepsLogger()
      reads this, disk, logger, frozen, frozenDirect, logger.ring, logger.direct, logger.codes {
      (forall a :: Owns(disk.owner, Logging, a) == Owns(old(disk.owner), Logging, a)) &&
        unchanged(logger, logger.codes) && (logger.ring != null ==> unchanged(logger.ring)) &&
        (logger.direct != null ==> unchanged(logger.direct)) &&
      frozen == old(frozen) && frozenDirect == old(frozenDirect) && unchanged(frozen, frozenDirect) &&
        logEnd == old(logEnd) && nextSeq == old(nextSeq) && frozenIndex == old(frozenIndex)
    }
    twostate predicate KeepsInstaller() reads this, disk, installer, installing, tree.pages {
      (forall a :: Owns(disk.owner, Installing, a) == Owns(old(disk.owner), Installing, a)) && unchanged(installer) &&
      cachedCount == old(cachedCount) && installing == old(installing) && unchanged(installing) &&
        firstSeq == old(firstSeq) && seqAfterInstall == old(seqAfterInstall) &&
      tree.pages.vs == old(tree.pages.vs) && tree.pages.rs == old(tree.pages.rs)
    }
    twostate predicate Mono() reads this, disk, installer, logger {
      |old(states)| <= |states| && (forall i :: 0 <= i < |old(states)| ==> states[i] == old(states)[i]) &&
        old(durableIndex) <= durableIndex && old(trims) <= trims && old(observed) <= observed &&
      (old(failed) ==> failed) && (old(closed) ==> closed && states == old(states)) && (old(disk.bad) ==> disk.bad) &&
        (old(installer.lost) ==> installer.lost) && torn <= old(torn) &&
      (logger.codes == old(logger.codes) || fresh(logger.codes))
    }
    function Cur(): St requires |states| > 0 reads this { states[|states|-1] }
    predicate TxOk(tx: BlockMap) reads tx { tx.Ok() && InHome(home as int, tx.m, size as int) }
    // Block a was seen to hold v since the ticket t was given.
    predicate WasRead(a: int, t: uint64, v: BV) reads this {
      |v| == 4096 && exists r :: r in observed && r.addr == a && r.contents == v && r.ticket >= t as int
    }

    // after recovery: empty log, first sequence number q, state ins0.treeState, which the tree says
    constructor (d0: Disk, seal0: Seal, mu0: Mutex, cache0: Cache, tree0: Tree, n: uint64, at0: uint64, nd0: uint64,
      nr0: uint64, bit0: uint64, flo0: uint64, fhi0: uint64, q: uint64, maxPin0: uint64, instAt0: uint64,
      ins0: Installer)
      requires q < 0x1FFF_0000_0000_0000 && ins0.list == null && ins0.phase == NoInstall && ins0.blocksWritten == 0 &&
        ins0.headerPhase == HeaderUntouched && ins0.nextRoot == ins0.root && ins0.nextTreeState == ins0.treeState
      requires var v := ins0.treeState; var r := ins0.root; var torn0 := Differ(d0.cur, v);
        var p := Geo(at0 as int, nd0 as int, nr0 as int, seal0.key, seal0.ep, bit0 as int, flo0 as int, fhi0 as int,
        seal0.t, torn0);
        GeoOk(p) && d0.Valid() && |d0.cur| == n as int && d0.ok == OkSet(p, [v], 0, seal0.signed) &&
        Full(d0.poss, G0(p, seal0.signed, q as int, v, r)) && d0.guard == GuardOf(p) &&
        if tree0.pageCount == 0 then torn0 == {}
        else |tree0.pages.vs| == |tree0.pages.rs| > 0 && tree0.Root() == r && TreeSays(p, tree0.Now(), r, v) &&
          tree0.pages.held == map[]
      requires ins0.pagesWritten == map[] && !ins0.lost && ins0.lookedAt == 0 &&
        forall a :: !Direct(seal0.signed, q as int, a)
      requires TreeFor(tree0, d0, seal0, at0 as int, at0 as int + 2 + 16 * nd0 as int + nr0 as int, n as int)
      requires cache0.m == map[] && maxPin0 < 0x1_0000_0000 && forall x, a :: !Owns(d0.owner, x, a)
      ensures Inv() && disk == d0 && seal == seal0 && mutex == mu0 && cache == cache0 && tree == tree0
      ensures size == n && headerAt == at0 && units == nd0 && ringSize == nr0 &&
        home as int == at0 as int + 2 + 16 * nd0 as int + nr0 as int
      ensures bitmapAt == bit0 && allocFrom == flo0 && allocEnd == fhi0 && maxPin == maxPin0 && instAt == instAt0 &&
        !failed && !closed
      ensures states == [ins0.treeState] && layout.torn == Differ(d0.cur, ins0.treeState) && installer == ins0 &&
        durableIndex == 0 && logger.phase == NoLogger && installer.phase == NoInstall && observed == {} &&
        (whole <==> (tree.pageCount > 0 ==> Sitting(tree, disk.poss)))
      ensures fresh(logger) && fresh(logger.codes)
      ensures fresh(running) && fresh(logged) && fresh(frozen) && fresh(frozenDirect) && fresh(installing) &&
        fresh(loggedDirect) && fresh(installingDirect) && fresh(repr)
    {
      var nt := NewNotes();
      notes := nt;
      var c := NewClock();
      clock := c;
      logger := new Logger(); installer := ins0;
      disk := d0; seal := seal0; mutex := mu0; cache := cache0; tree := tree0; size := n; headerAt := at0;
      units := nd0; ringSize := nr0;
      bitmapAt := bit0; allocFrom := flo0; allocEnd := fhi0;
      home := at0 + 2 + 16 * nd0 + nr0; maxPin := maxPin0; instAt := instAt0;
      var m1 := NewBlockMap(); var m2 := NewBlockMap(); var m3 := NewBlockMap(); var m4 := NewBlockMap();
      var m5 := NewBlockMap(); var m6 := NewBlockMap(); var m7 := NewBlockMap();
      running := m1; logged := m2; frozen := m3; installing := m4; frozenDirect := m5; loggedDirect := m6;
      installingDirect := m7;
      cachedCount := 0; firstSeq := q; nextSeq := q; seqAfterInstall := q; logStart := 0; posAfterInstall := 0;
      logEnd := 0; trims := 0; lastCommit := 0; lastFrozen := 0; lastDurable := 0;
      busy := false; failed := false; closed := false;
      ghost var v := ins0.treeState; ghost var torn0 := Differ(d0.cur, v);
      layout := Geo(at0 as int, nd0 as int, nr0 as int, seal0.key, seal0.ep, bit0 as int, flo0 as int, fhi0 as int,
        seal0.t, torn0);
      torn := torn0;
      whole := tree0.pageCount > 0 ==> Sitting(tree0, d0.poss);
      groups := []; descs := []; directs := []; installCount := 0; base := v; installBlocks := map[];
      states := [v]; durableIndex := 0; frozenIndex := 0; observed := {}; cached := {};
      repr := {m1, m2, m3, m4, m5, m6, m7};
      new;
      Begun(v, ins0.root);
    }
    // an empty log
    lemma Begun(v: St, r: CV)
      requires protocol() == G0(layout, seal.signed, firstSeq as int, v, r) && states == [v] && durableIndex == 0 &&
        frozenIndex == 0 && observed == {} && LayoutInv()
      requires tree.pageCount > 0 ==> |tree.pages.vs| == |tree.pages.rs| > 0 && tree.Root() == r &&
        TreeSays(layout, tree.Now(), r, v) && tree.pages.held == map[]
      requires disk.Valid() && |disk.cur| == size as int && disk.ok == OkSet(layout, states, 0, seal.signed) &&
        Full(disk.poss, protocol())
      requires forall a :: !Direct(seal.signed, firstSeq as int, a)
      requires running.Ok() && logged.Ok() && frozen.Ok() && frozenDirect.Ok() && installing.Ok() &&
        loggedDirect.Ok() && installingDirect.Ok()
      requires running.m == logged.m == frozen.m == frozenDirect.m == map[] && cache.m == map[]
      requires installing.m == loggedDirect.m == installingDirect.m == map[]
      requires running.addrs == logged.addrs == frozen.addrs == frozenDirect.addrs == []
      requires AllDiffer(running, logged, frozen, frozenDirect, installing, loggedDirect, installingDirect)
      requires repr == {running, logged, frozen, frozenDirect, installing, loggedDirect, installingDirect} &&
        maxPin < 0x1_0000_0000 && forall x, a :: !Owns(disk.owner, x, a)
      requires nextSeq == firstSeq && trims == 0 && lastCommit == 0 && lastFrozen == 0 && lastDurable == 0 && !busy &&
        !failed && logger.phase == NoLogger && logger.pending == [] && logger.pendingCount == 0 &&
        logger.newest == null && logger.ring == null && logger.direct == null && logger.bodies == [] &&
        logger.maps == [] && logger.endPos == 0 && logger.codes.s == [] && firstSeq < 0x1FFF_0000_0000_0000
      requires disk.guard == GuardOf(layout) && logger.lookedAt == 0 && installer.lookedAt == 0
      requires installer.list == null && installer.blocksWritten == 0 && cachedCount == 0 &&
        installer.headerPhase == HeaderUntouched && installer.pagesWritten == map[] && !installer.lost &&
        (whole ==> tree.pageCount > 0 ==> Sitting(tree, disk.poss))
      ensures Inv()
    {
      reveal Inv(); reveal OwnerInv(); reveal PagesInv(); reveal LoggerInv(); reveal InstallerInv(); reveal CacheInv();
      reveal ReadsInv(); reveal HeldInv(); reveal TreeInv(); reveal LooksInv();
      assert Merge([]) == map[]; assert groups[installCount..] == []; assert directs[..installCount] == [];
      assert directs[installCount..] == [];
      assert Over(v, map[]) == v;
      AmongNone(protocol(), states, 0);
      assert BlockMaps(logger.pending) == [] && DirectMaps(logger.pending) == [];
      assert CodesOf([], map[], Home(layout), seal.key) by { reveal CodesOf(); }
    }
  }
}
