// Making a volume, up to the root directory: what goes to the device, and in which order.
//
// First the device ceases to be a volume; then bitmaps, inodes, and records become zeros, and the log an empty one, with a tree of codes
// that says of every block that it is zeros. No crash meanwhile leaves a volume. What the first transaction finds (Starts) is what mkfs.dfy
// makes the root directory of; at last come the superblocks (Commission in copies.dfy).
include "firstinodes.dfy"
include "../blocks/regions.dfy"
include "../format/copies.dfy"
include "../../txn/bridge.dfy"

module Making {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened DiskS
  import opened LogSpec
  import opened LogS
  import opened TxnSpec
  import opened Bits
  import opened ObjectsM
  import opened History
  import opened VolumeGeometry
  import opened SuperblockFormat
  import opened SuperblockCopies
  import J = LogModel
  import R = RecoverM
  import LogScan
  import Regions
  import P = Places
  import Bridge
  import BlockStore
  import FirstInodes
  import TxnS

  // ---- where what is to lie ----
  // can a journal have such a log?
  predicate LogOk(s: Super) { 1 + 2 * s.pages as int < 0x1_0000_0000 && 2 <= s.lognd < 0x1_0000_0000 && 1000 <= s.lognr < 0x1_0000_0000 }
  // the tree of codes has a code for each home block
  function TreeOf(s: Super, key: int): TreeGeo { TreeGeo(key, s.size as int - s.geo.ibm as int, s.pages as int) }

  const TOOSMALL: uint32 := 1
  const TOOLARGE: uint32 := 2
  // Lays out a volume of size blocks, of which log are for the log, two or less more where the tree would be too small or too large by so many. why: it cannot be.
  method Plan(size: uint64, log: uint64, ninode: uint64, slots: uint64, sec: uint64, nsec: uint32, uuid0: uint64, uuid1: uint64, key0: uint64, key1: uint64, key2: uint64, key3: uint64) returns (why: uint32, s: Super)
    requires size <= 0x1_0000_0000_0000 && 1034 <= log
    ensures why <= TOOLARGE && (why == 0 ==> SuperOk(s) && LogOk(s) && TreeGeoOk(TreeOf(s, 0)) && s.size == size && s.geo.ninode == ninode && slots as int <= Slots(s.geo))
    ensures why == 0 ==> log as int <= 2 + 16 * s.lognd as int + s.lognr as int <= log as int + 2
    ensures why == 0 ==> s == Super(size, s.lognd, s.lognr, s.geo, 1, sec, nsec, 0, uuid0, uuid1, key0, key1, key2, key3, s.pages)
  {
    s := Super(0, 0, 0, Geo(0, 0, 0, 0, 0, 0, 0), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    why := TOOSMALL;
    if size < 2 || size - 1 <= log { return; }
    var l, home := log, size - 1 - log;     // home: and the tree
    if home % 256 == 2 || home % 256 == 3 {
      l := log + home % 256 - 1;
      home := size - 1 - l;
    }
    var pages := (home + 254) / 256;
    var ok, g := Layout(size, l + 2 * pages, ninode, slots);
    if !ok { return; }
    // half of it for small groups, half for large ones, which need some room at least
    var small := if l / 2 < l - 1002 then l / 2 else l - 1002;
    var units := small / 16;
    s := Super(size, units, l - 2 - 16 * units, g, 1, sec, nsec, 0, uuid0, uuid1, key0, key1, key2, key3, pages);
    why := if pages < 0x7FFF_FFFF && l < 0x1_0000_0000 then 0 else TOOLARGE;
  }

  // ---- what goes to the device ----
  // what is of no transaction and need not be zeros: data blocks, and the superblock's copy
  function Torn(g: Geo, sz: int): set<int> { set a | g.data0 as int <= a < sz }
  function JGeo(s: Super, seal: Seal): J.Geo { J.Geo(1 + 2 * s.pages as int, s.lognd as int, s.lognr as int, seal.key, 0, s.geo.bbm as int, s.geo.data0 as int, s.geo.data1 as int, seal.t, Torn(s.geo, s.size as int)) }
  // the seal is for a journal of the volume
  predicate SealOk(s: Super, seal: Seal) reads seal { seal.signed == {} && seal.t == TreeOf(s, seal.key) && TreeGeoOk(seal.t) }

  // The device is no volume, holds zeros where bitmaps, inodes, and records are to be, and an empty log.
  // zeroed: it is all zeros.
  method Prepare(d: Disk, s: Super, seal: Seal, zeroed: bool) returns (io: bool)
    requires d.Valid() && |d.cur| == s.size as int && SuperOk(s) && LogOk(s) && SealOk(s, seal) && d.owner == map[] && (forall i: Img :: i in d.ok)
    requires zeroed ==> forall a :: 0 <= a < |d.cur| ==> d.poss[a] == iset{Zeros(4096)}
    modifies d, seal
    ensures d.Valid() && |d.cur| == s.size as int && (io ==> d.owner == map[])
    // no crash leaves a volume, from Blank on
    ensures io ==> d.ok == (iset i: Img | NoVolume(i)) && d.poss[0] == iset{Zeros(4096)} && forall i :: CrashImg(d.poss, i) ==> NoVolume(i)
    // the journal recovers to zeros, and all but data blocks can be read
    ensures io ==> forall i :: CrashImg(d.poss, i) ==> J.RecOK(JGeo(s, seal), i, R.NewHome(JGeo(s, seal), i), {})
    ensures io ==> forall a :: s.geo.ibm as int <= a < s.geo.data0 as int ==> d.poss[a] == iset{Zeros(4096)}
  {
    io := Blank(d);
    if !io { return; }
    ghost var p := JGeo(s, seal);
    GeoFits(s, seal);
    d.SetOk(iset i: Img | NoVolume(i));
    var log := Regions.Log(s);
    d.Take(Recovering, set a | 0 < a < |d.cur|);
    Empty();
    if !zeroed {
      forall i: Img | R.But(d.poss, s.geo.ibm as int, s.geo.data0 as int, i) ensures i in d.ok { assert i[0] in d.poss[0]; }
      io := R.Zero(d, s.geo.ibm, s.geo.data0);
      if !io { return; }
    }
    io := d.Barrier(Recovering);
    if !io { return; }
    assert forall a :: s.geo.ibm as int <= a < s.geo.data0 as int ==> d.poss[a] == iset{Zeros(4096)};
    d.Leave(Recovering);
    assert forall a :: a in d.owner ==> Owns(d.owner, d.owner[a], a);
    assert d.owner == map[];
    forall i: Img | R.But(d.poss, p.at, J.Home(p), i) ensures i in d.ok { assert i[0] in d.poss[0]; }
    io := R.Format(d, seal, log, s.lognd, s.lognr, p);
    d.Leave(Recovering);
    assert forall a :: a in d.owner ==> Owns(d.owner, d.owner[a], a);
    forall i | CrashImg(d.poss, i) ensures NoVolume(i) { assert i[0] in d.poss[0]; }
  }
  lemma GeoFits(s: Super, seal: Seal)
    requires SuperOk(s) && LogOk(s) && SealOk(s, seal)
    ensures var p := JGeo(s, seal); J.GeoOk(p) && LogScan.IsGeo(p, seal, 1 + 2 * s.pages, s.lognd, s.lognr) && J.Home(p) == s.geo.ibm as int
  { }

  // What mkfs.dfy starts with, if w is what the journal recovered to.
  lemma Starts(g: Geo, w: Vol, j: TxnS.Jrnl)
    requires GeoOk(g) && g.data1 as int < 0x1_0000_0000_0000 && j.kinds == P.KindsOf(Regions.Ranges(g)) && (forall a: int :: g.ibm as int <= a < g.data1 as int ==> a in w && w[a] == Zeros(4096))
    requires j.data == Bridge.DataOf(j.kinds, w)
    ensures j.Valid() && BlockStore.KindsOk(g, j.kinds) && FirstInodes.ZeroDisk(g, j.data)
  {
    Regions.Kinds(g);
    forall b: uint64 | b in j.kinds ensures g.ibm <= b < g.data1 { Regions.Each(g, b); }
    forall a: Addr | a.blkno in j.kinds && OffOk(j.kinds[a.blkno], a.off)
      ensures a in j.data && ObjOk(j.kinds[a.blkno], j.data[a]) && j.data[a] == Nought(j.kinds[a.blkno])
    {
      ZeroVal(j.kinds[a.blkno], a.off);
      assert w[a.blkno as int] == Zeros(4096);
      assert KeyBlk(Key(a.blkno, a.off)) == a.blkno && KeyOff(Key(a.blkno, a.off)) == a.off;
    }
  }
  function Nought(k: Kind): Object { match k case KBit => ObjBit(false) case KInode => ObjData(Zeros(256)) case KBlock => ObjData(Zeros(4096)) }
  lemma ZeroVal(k: Kind, off: uint64)
    requires OffOk(k, off)
    ensures Val(Zeros(4096), k, off) == Nought(k)
  {
    if k == KBit { ZeroBit(off % 8); }
    if k == KInode { assert Zeros(4096)[off as int / 8 .. off as int / 8 + 256] == Zeros(256); }
  }
  lemma ZeroBit(i: uint64)
    requires i < 8
    ensures !BitOf(0, i)
    decreases i
  { if i > 0 { ZeroBit(i - 1); } }
}
