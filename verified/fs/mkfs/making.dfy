// Making a volume, up to its superblocks: what goes to the device, and in which order.
//
// First the device ceases to be a volume; then bitmaps, inodes, and records become zeros but for the first inodes, and
// after them the tree of codes, which says of every block that it is so, and an empty log. No crash meanwhile leaves a
// volume, so that nothing of it needs a transaction. At last come the superblocks (commissioned.dfy).
include "firstinodes.dfy"
include "../blocks/regions.dfy"
include "../format/copies.dfy"
include "../../journal/recover.dfy"

module Making {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened DiskS
  import opened CodeTreeSpec
  import opened RecordSpec
  import opened CodeLists
  import opened CodePages
  import opened Seals
  import opened VolumeGeometry
  import opened SuperblockFormat
  import opened SuperblockCopies
  import InodeFormat
  import J = LogModel
  import JI = RecoverImages
  import R = RecoverM
  import LogScan
  import TM = TreeModel
  import TC = TreeOfCodes
  import TreeSaid
  import JournalM
  import Regions
  import FirstInodes

  // ---- where what is to lie ----
  // can a journal have such a log?
  predicate LogOk(s: Super)
  { 1 + 2 * s.pages as int < 0x1_0000_0000 && 2 <= s.lognd < 0x1_0000_0000 && 1000 <= s.lognr < 0x1_0000_0000 }
  // the tree of codes has a code for each home block
  function TreeOf(s: Super, key: int): TreeGeo
    { TreeGeo(key, s.size as int - s.geometry.inodeBitmap as int, s.pages as int) }

  const TOOSMALL: uint32 := 1
  const TOOLARGE: uint32 := 2
  // Lays out a volume of size blocks, of which log are for the log, two or less more where the tree would be too small
  // or too large by so many. why: it cannot be.
  method Plan(size: uint64, log: uint64, ninode: uint64, slots: uint64, sec: uint64, nsec: uint32, uuid0: uint64,
    uuid1: uint64, key0: uint64, key1: uint64, key2: uint64, key3: uint64) returns (why: uint32, s: Super)
    requires size <= 0x1_0000_0000_0000 && 1034 <= log
    ensures why <= TOOLARGE && (why == 0 ==> SuperOk(s) && LogOk(s) && TreeGeoOk(TreeOf(s, 0)) && s.size == size &&
      s.geometry.ninode == ninode && slots as int <= Slots(s.geometry))
    // There can be one if it has room for all with two blocks more of a log, and the tree of the largest home; and if
    // the counters of a header hold it.
    ensures var l := log as int + 2 + 2 * ((size as int + 254) / 256);
      InRange(size as int, l, ninode as int, slots as int) &&
      Needed(size as int, l, ninode as int, slots as int) <= size as int ==> why != TOOSMALL
    ensures why == TOOLARGE ==> size as int >= 256 * 0x7FFF_FFFE || log >= 0xFFFF_FFFE
    ensures why == 0 ==> log as int <= 2 + 16 * s.lognd as int + s.lognr as int <= log as int + 2
    ensures why == 0 ==> s == Super(size, s.lognd, s.lognr, s.geometry, 1, sec, nsec, 0, uuid0, uuid1, key0, key1, key2,
      key3, s.pages, All(size, s.geometry))
  {
    var none := Geometry(0, 0, 0, 0, 0, 0, 0);
    s := Super(0, 0, 0, none, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, All(0, none));
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
    s := Super(size, units, l - 2 - 16 * units, g, 1, sec, nsec, 0, uuid0, uuid1, key0, key1, key2, key3, pages,
      All(size, g));
    why := if pages < 0x7FFF_FFFF && l < 0x1_0000_0000 then 0 else TOOLARGE;
  }

  // ---- what goes to the device ----
  // what is of no transaction and need not be zeros: data blocks, and the superblock's copy
  function Torn(g: Geometry, sz: int): set<int> { set a | g.data0 as int <= a < sz }
  function JGeo(s: Super, seal: Seal): J.Geo
  { J.Geo(1 + 2 * s.pages as int, s.lognd as int, s.lognr as int, seal.key, 0, s.geometry.blockBitmap as int,
    s.geometry.data0 as int,
    s.geometry.data1 as int, seal.t, Torn(s.geometry, s.size as int)) }
  // the seal is for a journal of the volume
  predicate SealOk(s: Super, seal: Seal) reads seal
  { seal.signed == {} && seal.t == TreeOf(s, seal.key) && TreeGeoOk(seal.t) &&
    seal.home == s.geometry.inodeBitmap as int }
  // The state of a new volume's home blocks: zeros, but for the first inodes. m: the attributes of the root directory
  predicate First(s: Super, m: InodeFormat.Meta, v: J.St) {
    s.geometry.inodeBitmap < s.geometry.inodeTable && s.geometry.inodeTable < s.size &&
      v.Keys == (set a | s.geometry.inodeBitmap as int <= a < s.size as int) &&
    FirstInodes.Bitmap(v[s.geometry.inodeBitmap as int]) && FirstInodes.Table(v[s.geometry.inodeTable as int], m) &&
    forall a {:trigger v[a]} :: a in v && a != s.geometry.inodeBitmap as int && a != s.geometry.inodeTable as int ==>
      v[a] == Zeros(4096)
  }

  // The device, which is blank, gets a journal that recovers to v, a new volume's home blocks. No crash meanwhile
  // leaves a volume. zeroed: what home blocks but data are to lie in is all zeros.
  method Prepare(d: Disk, s: Super, seal: Seal, pages: Pages, zeroed: bool, mode: uint32, uid: uint32, gid: uint32)
    returns (io: bool, ghost v: J.St)
    requires d.Valid() && |d.cur| == s.size as int && SuperOk(s) && LogOk(s) && SealOk(s, seal) && d.owner == map[] &&
      (forall i: Img :: NoVolume(i) ==> i in d.ok)
    requires d.poss[0] == iset{Zeros(4096)} &&
      (zeroed ==> forall a :: s.geometry.inodeBitmap as int <= a < s.geometry.data0 as int ==>
      d.poss[a] == iset{Zeros(4096)})
    requires pages.t == seal.t && pages.first == 1
    modifies d, seal, pages
    ensures d.Valid() && |d.cur| == s.size as int && d.owner == map[] && d.ok == (iset i: Img | NoVolume(i)) &&
      SealOk(s, seal)
    // the journal recovers to v, all but data blocks can be read, and so can the tree
    ensures io ==> First(s, FirstInodes.RootMeta(mode, uid, gid, s.ctime, s.ctimens), v) && forall i ::
      CrashImg(d.poss, i) ==> J.RecOK(JGeo(s, seal), i, v, {})
    ensures io ==> d.poss[0] == iset{Zeros(4096)} &&
      (Erred(d) || forall i :: CrashImg(d.poss, i) ==> TreeSaid.HeadersSit(JGeo(s, seal), 1, i))
    ensures !io ==> d.bad || Erred(d)
  {
    v := map[];
    ghost var p := JGeo(s, seal);
    GeoFits(s, seal);
    Empty();
    forall i | CrashImg(d.poss, i) ensures NoVolume(i) { assert i[0] in d.poss[0]; }
    d.SetOk(iset i: Img | NoVolume(i));
    d.Take(Recovering, set a | 0 <= a < |d.cur|);
    var bits := FirstInodes.FirstBitmap();
    var table := FirstInodes.FirstTable(mode, uid, gid, s.ctime, s.ctimens);
    io := Homes(d, s, zeroed, bits, table);
    if io {
      var r0, r1;
      ghost var pg;
      io, r0, r1, pg := Codes(d, s, seal, pages, bits, table);
      if io {
        v := State(s, bits.v, table.v);
        var log := Regions.Log(s);
        ghost var c := d.cur; ghost var poss := d.poss; ghost var nb;
        forall i: Img | R.But(d.poss, p.headerAt, J.Home(p), i) ensures i in d.ok { assert i[0] in d.poss[0]; }
        IsRootOf(s, seal, pg, CV(r0, r1), v);
        io, nb := R.EmptyLog(d, seal, log, s.lognd, s.lognr, r0, r1, p);
        if io {
          forall i | CrashImg(d.poss, i)
            ensures J.RecOK(p, i, v, {}) { Recovers(s, seal, c, d.poss, i, nb, pg, CV(r0, r1), v); }
          if !Erred(d) { TM.PagesLess(seal.t, 1, poss, d.poss, pg, CV(r0, r1)); forall i | CrashImg(d.poss, i)
            ensures TreeSaid.HeadersSit(p, 1, i) { Sits(s, seal, c, d.poss, i, nb, pg, CV(r0, r1), v); } }
          assert d.cur[0] in d.poss[0];
        }
      }
    }
    d.Leave(Recovering);
    assert forall a :: a in d.owner ==> Owns(d.owner, d.owner[a], a);
  }
  function State(s: Super, bits: BV, table: BV): J.St
  { map a | s.geometry.inodeBitmap as int <= a < s.size as int ::
    if a == s.geometry.inodeBitmap as int then bits else if a == s.geometry.inodeTable as int then table
      else Zeros(4096) }
  // Home blocks, but for data, become what they are to be, durably.
  method Homes(d: Disk, s: Super, zeroed: bool, bits: Blk, table: Blk) returns (io: bool)
    requires d.Valid() && |d.cur| == s.size as int && SuperOk(s) && LogScan.Alone(d) &&
      d.ok == (iset i: Img | NoVolume(i)) && d.poss[0] == iset{Zeros(4096)} && |bits.v| == |table.v| == 4096
    requires zeroed ==> forall a :: s.geometry.inodeBitmap as int <= a < s.geometry.data0 as int ==>
      d.poss[a] == iset{Zeros(4096)}
    modifies d`poss, d`cur, d`bad
    ensures d.Valid() && |d.cur| == s.size as int
    ensures if io then LogScan.Still(d) && d.cur[0] == Zeros(4096) && forall a ::
      s.geometry.inodeBitmap as int <= a < s.geometry.data0 as int ==> d.cur[a] == State(s, bits.v, table.v)[a]
        else d.bad
  {
    io := true;
    Empty();
    if !zeroed {
      forall i: Img | R.But(d.poss, s.geometry.inodeBitmap as int, s.geometry.data0 as int, i)
        ensures i in d.ok { assert i[0] in d.poss[0]; }
      io := R.Zero(d, s.geometry.inodeBitmap, s.geometry.data0);
      if !io { return; }
    }
    assert forall a :: s.geometry.inodeBitmap as int <= a < s.geometry.data0 as int ==> d.cur[a] in d.poss[a];
    assert d.poss[0] <= iset{Zeros(4096)};
    forall i | CrashImg(Fuzzy(d.poss, s.geometry.inodeBitmap as int, 1), i)
      ensures i in d.ok { assert i[0] in Fuzzy(d.poss, s.geometry.inodeBitmap as int, 1)[0]; }
    io := d.Write(Recovering, s.geometry.inodeBitmap, bits, null, null);
    if !io { return; }
    forall i | CrashImg(Fuzzy(d.poss, s.geometry.inodeTable as int, 1), i)
      ensures i in d.ok { assert i[0] in Fuzzy(d.poss, s.geometry.inodeTable as int, 1)[0]; }
    io := d.Write(Recovering, s.geometry.inodeTable, table, null, null);
    if !io { return; }
    assert d.cur[0] in d.poss[0];
    io := d.Barrier(Recovering);
  }
  // The tree of codes becomes one that says so, durably: its pages pg, and the code of the root.
  method Codes(d: Disk, s: Super, seal: Seal, pages: Pages, bits: Blk, table: Blk)
    returns (io: bool, r0: uint64, r1: uint64, ghost pg: seq<BV>)
    requires LogScan.Still(d) && |d.cur| == s.size as int && SuperOk(s) && LogOk(s) && SealOk(s, seal) &&
      LogScan.Alone(d) && d.ok == (iset i: Img | NoVolume(i)) && d.cur[0] == Zeros(4096)
    requires pages.t == seal.t && pages.first == 1
    modifies d, pages
    ensures d.Valid() && d.ok == old(d.ok) && |d.cur| == |old(d.cur)| && d.owner == old(d.owner)
    ensures io ==> LogScan.Still(d) && forall a :: 0 <= a < |d.cur| &&
      (a == 0 || s.geometry.inodeBitmap as int <= a) ==>
      d.cur[a] == old(d.cur)[a]
    ensures io ==> J.TreeSays(JGeo(s, seal), pg, CV(r0, r1), State(s, bits.v, table.v))
    ensures Erred(d) || if io then TM.PagesAt(seal.t, 1, d.poss, pg, CV(r0, r1)) else d.bad
  {
    ghost var p := JGeo(s, seal);
    GeoFits(s, seal);
    TM.ZeroTree(seal.t);
    pages.Trees();
    pages.Begin(0, 0, TM.ZeroPages(seal.t.np));
    var t := new TC.Tree(d, seal, pages, 1, s.pages, s.geometry.inodeBitmap, s.size - s.geometry.inodeBitmap);
    var cs := NewCodes();
    var c0, c1 := seal.Code(0, bits);
    cs.Add(0, c0, c1);
    c0, c1 := seal.Code(s.geometry.inodeTable - s.geometry.inodeBitmap, table);
    cs.Add(s.geometry.inodeTable - s.geometry.inodeBitmap, c0, c1);
    ghost var l := cs.s;
    ghost var w := NoBlocks(s);
    ghost var W;
    forall i | R.Beside(t, d.cur, i) ensures i in d.ok { Empty(); assert !R.InTree(t, 0); }
    NotYet(seal.t, d.poss);
    io, r0, r1, W, pg := R.UpdatePages(d, t, cs);
    if !io { return; }
    assert J.TreeSays(p, t.Now(), t.Root(), w);
    TreeSaid.Restated(p, t, cs, l, W, pg, CV(r0, r1), w, State(s, bits.v, table.v));
    forall a | 0 <= a < |d.cur| && (a == 0 || s.geometry.inodeBitmap as int <= a)
      ensures d.cur[a] == old(d.cur)[a] { assert !R.InTree(t, a); }
  }
  function NoBlocks(s: Super): J.St { map a | s.geometry.inodeBitmap as int <= a < s.size as int :: Zeros(4096) }
  // pages of zeros that were never written sit
  lemma NotYet(t: TreeGeo, poss: Poss)
    requires TreeGeoOk(t)
    ensures TM.PagesAt(t, 1, poss, TM.ZeroPages(t.np), CV(0, 0))
  {
    TM.ZeroTree(t);
    forall x | 0 <= x < t.np
      ensures TM.Sits(1, poss, x, TM.PageCode(t, TM.ZeroPages(t.np), CV(0, 0), x), TM.ZeroPages(t.np)[x]) {}
  }
  lemma IsRootOf(s: Super, seal: Seal, pg: seq<BV>, r: CV, v: J.St)
    requires J.TreeSays(JGeo(s, seal), pg, r, v)
    ensures IsRoot(seal.t, r)
  { assert IsTree(seal.t, pg, r); }
  // what an image holds that a crash leaves of the device, which held c before the log was emptied
  predicate Emptied(s: Super, seal: Seal, c: Img, poss: Poss, nb: BV, r: CV) {
    var p := JGeo(s, seal);
    SuperOk(s) && LogOk(s) && J.GeoOk(p) && TreeGeoOk(p.tree) && J.Home(p) == s.geometry.inodeBitmap as int &&
      |poss| == |c| == s.size as int && (forall a :: 0 <= a < |c| && !(p.headerAt <= a < J.Home(p)) ==>
      poss[a] <= iset{c[a]}) &&
    J.HdrWf(p.key, nb) && DecHdr(p.key, nb).root == r && poss[p.headerAt] == poss[J.Copy(p)] == iset{nb}
  }
  lemma Recovers(s: Super, seal: Seal, c: Img, poss: Poss, i: Img, nb: BV, pg: seq<BV>, r: CV, v: J.St)
    requires Emptied(s, seal, c, poss, nb, r) && CrashImg(poss, i) && J.TreeSays(JGeo(s, seal), pg, r, v)
    requires v.Keys == (set a | s.geometry.inodeBitmap as int <= a < s.size as int) && forall a ::
      s.geometry.inodeBitmap as int <= a < s.geometry.data0 as int ==> a in v && c[a] == v[a]
    ensures J.RecOK(JGeo(s, seal), i, v, {})
  {
    var p := JGeo(s, seal);
    assert i[p.headerAt] in poss[p.headerAt] && i[J.Copy(p)] in poss[J.Copy(p)];
    forall a | a in v && a !in p.torn ensures i[a] == v[a] { assert i[a] in poss[a]; }
    assert v.Keys == J.HomeOf(p, i).Keys;
    JI.RecHdr(p, i, nb, v, v, {});
  }
  lemma Sits(s: Super, seal: Seal, c: Img, poss: Poss, i: Img, nb: BV, pg: seq<BV>, r: CV, v: J.St)
    requires Emptied(s, seal, c, poss, nb, r) && CrashImg(poss, i) && J.TreeSays(JGeo(s, seal), pg, r, v) &&
      TM.PagesAt(seal.t, 1, poss, pg, r)
    ensures TreeSaid.HeadersSit(JGeo(s, seal), 1, i)
  {
    var p := JGeo(s, seal);
    assert i[p.headerAt] in poss[p.headerAt] && i[J.Copy(p)] in poss[J.Copy(p)];
    forall x | 0 <= x < p.tree.np && TM.PageCode(p.tree, pg, r, x) != CV(0, 0)
      ensures 0 <= TM.PlaceOf(1, x, pg[x]) < |i| && i[TM.PlaceOf(1, x, pg[x])] == pg[x] {
      assert TM.Sits(1, poss, x, TM.PageCode(p.tree, pg, r, x), pg[x]);
      assert i[TM.PlaceOf(1, x, pg[x])] in poss[TM.PlaceOf(1, x, pg[x])];
    }
    assert TM.PagesOn(p.tree, 1, i, pg, r);
  }
  lemma GeoFits(s: Super, seal: Seal)
    requires SuperOk(s) && LogOk(s) && SealOk(s, seal)
    ensures var p := JGeo(s, seal); J.GeoOk(p) && LogScan.IsGeo(p, seal, 1 + 2 * s.pages, s.lognd, s.lognr) &&
      J.Home(p) == s.geometry.inodeBitmap as int
  { }
}
