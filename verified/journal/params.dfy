// Where a journal may lie: what Go is told of its place on a device, before anything is done there.
include "state.dfy"
include "scan.dfy"

module JournalParams {
  import opened Machine
  import opened DiskS
  import opened CodeTreeSpec
  import opened Seals
  import opened CodePages
  import opened LogModel
  import opened JournalM
  import opened LogScan
  import opened TreeOfCodes

  const MAXSIZE: uint64 := 0x1_0000_0000_0000   // blocks of a device: objects are named by block and bit in one number
  const MINRING: uint64 := 1000

  // ---- what is wrong ----
  const FINE: uint32 := 0
  const LOG: uint32 := 1      // the log is none
  const ROOM: uint32 := 2     // it does not fit the device
  const TREE: uint32 := 3     // the tree of codes does not fit the log and the device
  const BITMAP: uint32 := 4   // the bitmap of free blocks does not lie between the log and these

  predicate LogOk(at: uint64, units: uint64, ring: uint64) {
    at < 0x1_0000_0000 && 2 <= units < 0x1_0000_0000 && MINRING <= ring < 0x1_0000_0000
  }
  // the first block behind the log and the copy of its header
  function method HomeOf(at: uint64, units: uint64, ring: uint64): (home: uint64)
    requires LogOk(at, units, ring)
    ensures home < MAXSIZE
  { at + 2 + 16 * units + ring }
  predicate RoomOk(at: uint64, units: uint64, ring: uint64, size: uint64) {
    LogOk(at, units, ring) && HomeOf(at, units, ring) <= size <= MAXSIZE
  }
  // the pages lie before the log, and are as many as its home blocks need; no pages: there is no tree
  predicate TreeOk(at: uint64, pages: uint64, units: uint64, ring: uint64, size: uint64) {
    RoomOk(at, units, ring, size) && (pages > 0 ==>
      2 * pages as int <= at as int && PagesFit(size - HomeOf(at, units, ring), pages))
  }
  // each block that may be free has its bit in a home block before all of these; without such blocks there is no bitmap
  predicate BitmapOk(at: uint64, units: uint64, ring: uint64, bitmap: uint64, first: uint64, limit: uint64,
    size: uint64)
  {
    RoomOk(at, units, ring, size) && (first < limit ==>
      HomeOf(at, units, ring) <= bitmap && limit <= size && bitmap as int + limit as int / 32768 < first as int)
  }
  method Check(at: uint64, pages: uint64, units: uint64, ring: uint64, bitmap: uint64, first: uint64, limit: uint64,
    size: uint64) returns (wrong: uint32)
    ensures wrong == if !LogOk(at, units, ring) then LOG else if !RoomOk(at, units, ring, size) then ROOM
      else if !TreeOk(at, pages, units, ring, size) then TREE
      else if !BitmapOk(at, units, ring, bitmap, first, limit, size) then BITMAP else FINE
  {
    if at >= 0x1_0000_0000 || units < 2 || units >= 0x1_0000_0000 || ring < MINRING || ring >= 0x1_0000_0000 {
      return LOG;
    }
    var home := HomeOf(at, units, ring);
    if home > size || size > MAXSIZE { return ROOM; }
    if pages > 0 && (pages > at / 2 || !PagesFit(size - home, pages)) { return TREE; }
    if first < limit && (bitmap < home || limit > size || bitmap >= first || limit / 32768 >= first - bitmap) {
      return BITMAP;
    }
    wrong := FINE;
  }

  // ---- what follows ----
  // With them a journal can be made and opened (Format, Recover), over a tree that is made for them,
  method NewTree(d: Disk, seal: Seal, pages: Pages, at: uint64, np: uint64, units: uint64, ring: uint64, size: uint64)
    returns (t: Tree)
    requires TreeOk(at, np, units, ring, size)
    requires var home := HomeOf(at, units, ring) as int;
      seal.t == pages.t == TreeGeo(seal.key, size as int - home, np as int) && seal.home == home &&
      pages.first == at as int - 2 * np as int
    ensures fresh(t) && t.pages == pages && t.pageCount == np &&
      TreeFor(t, d, seal, at as int, HomeOf(at, units, ring) as int, size as int)
  {
    var home := HomeOf(at, units, ring);
    t := new Tree(d, seal, pages, at - 2 * np, np, home, size - home);
  }
  // and the bitmap as Recover has it.
  method BitmapFor(bitmap: uint64, first: uint64, limit: uint64) returns (b: uint64, lo: uint64, hi: uint64)
    ensures if first < limit then b == bitmap && lo == first && hi == limit else b == 0 && lo == 1 && hi == 0
  {
    b, lo, hi := bitmap, first, limit;
    if first >= limit { b, lo, hi := 0, 1, 0; }
  }
  // What is right is enough for Recover and Format; and what is refused they cannot do: the numbers are none of a log,
  // or something lies over something else, or behind the device's end.
  lemma Exactly(at: uint64, np: uint64, units: uint64, ring: uint64, bitmap: uint64, first: uint64, limit: uint64,
    size: uint64, key: int, epoch: int, torn: set<int>)
    requires first < limit && size <= MAXSIZE
    ensures var p := GeoOf(key, epoch, at, units, ring, bitmap, first, limit,
        TreeGeo(key, size as int - (at as int + 2 + 16 * units as int + ring as int), np as int), torn);
      (LogOk(at, units, ring) && TreeOk(at, np, units, ring, size) &&
        BitmapOk(at, units, ring, bitmap, first, limit, size)) <==>
      (GeoOk(p) && Home(p) <= size as int && Home(p) <= p.bitmapAt && p.allocEnd <= size as int &&
        (np > 0 ==> 2 * p.tree.np <= p.headerAt && TreeGeoOk(p.tree) && np < 0x8000_0000 &&
          p.tree.n < MAXSIZE as int))
  {}
  lemma NoBitmap(at: uint64, units: uint64, ring: uint64, key: int, epoch: int, tree: TreeGeo, torn: set<int>)
    requires LogOk(at, units, ring) && tree.key == key
    ensures GeoOk(GeoOf(key, epoch, at, units, ring, 0, 1, 0, tree, torn))
  {}
}
