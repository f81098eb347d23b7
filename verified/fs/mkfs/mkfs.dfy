// A new volume, seen from the top: whatever its journal recovers to when it is first opened satisfies all invariants,
// and its root directory is empty and has the attributes asked for. Everything but the first inodes is zeros, and right
// already, which also shows that the invariants can be satisfied. All data blocks are free, so it does not matter what
// they hold.
include "commissioned.dfy"
include "../procedures/remount.dfy"
include "../../txn/bridge.dfy"
module Mkfs {
  import opened Machine
  import opened ByteSpec
  import opened TxnSpec
  import opened Bits
  import opened ObjectsM
  import opened VolumeGeometry
  import opened SuperblockFormat
  import opened InodeFormat
  import opened BlockStore
  import opened Positions
  import opened BlockTreeSpec
  import opened ByteMap
  import opened AllocatedRange
  import opened HeldBlocks
  import opened CountedBlocks
  import opened FirstInodes
  import opened Remount
  import J = LogModel
  import Seals
  import Making
  import Bridge
  import Regions
  import P = Places
  import DirLayout
  import NameTree
  import F = Directories

  // The objects of a volume whose root directory has the attributes m, and is empty: there are two inodes, and data
  // blocks hold anything.
  predicate Fresh(g: Geometry, m: Meta, o: Objects) {
    GeometryOk(g) && (forall i: uint64 {:trigger OkIno(g, i)} | OkIno(g, i) ::
      InodeAddr(g, i) in o && o[InodeAddr(g, i)].ObjData? &&
        IsEmpty(o[InodeAddr(g, i)].bytes, FirstMeta(m, i as int)) &&
      InoBit(g, i) in o && o[InoBit(g, i)] == ObjBit(i == 1 || i == 2)) &&
    forall b: uint64 {:trigger OkBlk(g, b)} | OkBlk(g, b) ::
      BlkBit(g, b) in o && o[BlkBit(g, b)] == ObjBit(false) && Addr(b, 0) in o && o[Addr(b, 0)].ObjData? &&
      |o[Addr(b, 0)].bytes| == 4096
  }
  // what they are
  function NewVolume(g: Geometry, m: Meta, o: Objects): Volume
    requires Fresh(g, m, o)
  {
    var none: Option<Pos> := None; var bare: set<int> := {};
    Volume(map i: uint64 | OkIno(g, i) :: Parse(o[InodeAddr(g, i)].bytes), map b: uint64 | OkBlk(g, b) ::
      o[Addr(b, 0)].bytes, map b: uint64 | OkBlk(g, b) :: false,
      imap p: Pos | OkPos(p) :: 0 as uint64, map b: uint64 | OkBlk(g, b) :: none, imap p: Pos | IsData(p) ::
        Zeros(4096),
      map i: uint64 | OkIno(g, i) :: FirstMeta(m, i as int), map i: uint64 | OkIno(g, i) ::
        [], map i: uint64 | OkIno(g, i) :: bare, map[1 := map[]], map[1 := map[]])
  }
  lemma Valid(g: Geometry, mode: uint32, uid: uint32, gid: uint32, s: uint64, ns: uint32, o: Objects)
    requires var m := RootMeta(mode, uid, gid, s, ns); Fresh(g, m, o) && mode < 4096
    ensures var m := RootMeta(mode, uid, gid, s, ns); Holds(g, o, NewVolume(g, m, o))
  {
    var m := RootMeta(mode, uid, gid, s, ns);
    var v := NewVolume(g, m, o);
    assert OkIno(g, 1) && OkIno(g, 2);
    Stores(g, m, o);
    assert OwnerOk(g, v.blockMap, v.owner, v.used) by { reveal OwnerOk(); }
    assert RootsOk(g, v.blockMap, v.inodes) by { reveal RootsOk(); }
    assert LinksOk(v.blockMap, v.blocks) by { reveal LinksOk(); }
    assert DataOk(v.blockMap, v.blocks, v.data) by { reveal DataOk(); }
    assert ReachOk(g, v.blockMap, v.metas) by { reveal ReachOk(); }
    assert HeldOk(g, v.blockMap, v.metas, v.held) by {
      reveal HeldOk();
      forall i: uint64
        ensures Counted(v.blockMap, i, 0) { assert AllThere(v.blockMap, i, {}); CountIs(v.blockMap, i, {}); }
    }
    forall i: uint64 | OkIno(g, i) ensures FileMatch(v.data, i, [], 0) { reveal FileMatch(); }
    DirLayout.DirEmpty(map[]);
    NameTree.FormatTree(g, v.metas);
  }
  lemma Stores(g: Geometry, m: Meta, o: Objects)
    requires Fresh(g, m, o) && m.ty == 2
    ensures var v := NewVolume(g, m, o); InodesMatch(g, o, v.inodes) && InoBitsMatch(g, o, v.inodes) &&
      BlocksMatch(g, o, v.blocks) && UsedMatch(g, o, v.used)
  { reveal InodesMatch(); reveal InoBitsMatch(); reveal BlocksMatch(); reveal UsedMatch(); }

  // What recovery makes of v, which mkfs left: the same but for what is free.
  predicate Found(s: Super, seal: Seals.Seal, m: Meta, w: J.St) {
    SuperOk(s) && s.size <= 0x1_0000_0000_0000 && (forall a :: a in w ==> |w[a]| == 4096) && exists v ::
      Making.First(s, m, v) && J.Agree(Making.JGeo(s, seal), v, w)
  }
  lemma Objects(s: Super, seal: Seals.Seal, m: Meta, w: J.St)
    requires Found(s, seal, m, w)
    ensures Fresh(s.geometry, m, Bridge.DataOf(P.KindsOf(Regions.Ranges(s.geometry)), w))
  {
    var g := s.geometry; var kinds := P.KindsOf(Regions.Ranges(g));
    var o := Bridge.DataOf(kinds, w);
    var v :| Making.First(s, m, v) && J.Agree(Making.JGeo(s, seal), v, w);
    forall a | g.inodeBitmap as int <= a < g.data0 as int
      ensures a in w && w[a] == v[a] { assert !J.FreeIn(Making.JGeo(s, seal), v, a) by { reveal J.FreeIn(); } }
    Regions.Kinds(g);
    forall i: uint64 | OkIno(g, i)
      ensures InodeAddr(g, i) in o && o[InodeAddr(g, i)].ObjData? &&
      IsEmpty(o[InodeAddr(g, i)].bytes, FirstMeta(m, i as int)) &&
      InoBit(g, i) in o && o[InoBit(g, i)] == ObjBit(i == 1 || i == 2)
    { AnInode(s, m, v, w, kinds, i); AnInodesBit(s, m, v, w, kinds, i); }
    forall b: uint64 | OkBlk(g, b)
      ensures BlkBit(g, b) in o && o[BlkBit(g, b)] == ObjBit(false) && Addr(b, 0) in o && o[Addr(b, 0)].ObjData? &&
      |o[Addr(b, 0)].bytes| == 4096
    { ABlock(s, m, v, w, kinds, b); }
  }
  // what is to be shown of one object
  predicate Looked(s: Super, m: Meta, v: J.St, w: J.St, kinds: map<uint64, Kind>) {
    SuperOk(s) && s.size <= 0x1_0000_0000_0000 && Making.First(s, m, v) &&
      kinds == P.KindsOf(Regions.Ranges(s.geometry)) &&
      KindsOk(s.geometry, kinds) && w.Keys == v.Keys &&
    (forall a :: a in w ==> |w[a]| == 4096) &&
      forall a :: s.geometry.inodeBitmap as int <= a < s.geometry.data0 as int ==>
      a in w && a in v && w[a] == v[a]
  }
  lemma At(s: Super, m: Meta, v: J.St, w: J.St, kinds: map<uint64, Kind>, a: Addr, k: Kind)
    requires Looked(s, m, v, w, kinds) && a.blkno in kinds && kinds[a.blkno] == k && OffOk(k, a.off) &&
      a.blkno as int in w
    ensures a in Bridge.DataOf(kinds, w) && Bridge.DataOf(kinds, w)[a] == Val(w[a.blkno as int], k, a.off)
  { assert a.blkno < 0x1_0000_0000_0000; assert KeyBlk(Key(a.blkno, a.off)) == a.blkno &&
    KeyOff(Key(a.blkno, a.off)) == a.off; }
  lemma AnInode(s: Super, m: Meta, v: J.St, w: J.St, kinds: map<uint64, Kind>, i: uint64)
    requires Looked(s, m, v, w, kinds) && OkIno(s.geometry, i)
    ensures var o := Bridge.DataOf(kinds, w); var a := InodeAddr(s.geometry, i);
      a in o && o[a].ObjData? && IsEmpty(o[a].bytes, FirstMeta(m, i as int))
  {
    var a := InodeAddr(s.geometry, i); var b := w[a.blkno as int]; var x := i as int % 16;
    At(s, m, v, w, kinds, a, KInode);
    assert a.off as int / 8 == 256 * x;
    if i >= 16 { assert b[256 * x .. 256 * x + 256] == Zeros(256); NoInode(); } else
      { assert FirstMeta(m, x) == FirstMeta(m, i as int); }
  }
  lemma AnInodesBit(s: Super, m: Meta, v: J.St, w: J.St, kinds: map<uint64, Kind>, i: uint64)
    requires Looked(s, m, v, w, kinds) && OkIno(s.geometry, i)
    ensures var o := Bridge.DataOf(kinds, w); var a := InoBit(s.geometry, i); a in o && o[a] == ObjBit(i == 1 || i == 2)
  {
    var a := InoBit(s.geometry, i);
    At(s, m, v, w, kinds, a, KBit);
    if i >= 32768 { ZeroBit(a.off % 8); } else { assert BlockBit(w[a.blkno as int], i as int) == (i == 1 || i == 2); }
  }
  lemma ABlock(s: Super, m: Meta, v: J.St, w: J.St, kinds: map<uint64, Kind>, b: uint64)
    requires Looked(s, m, v, w, kinds) && OkBlk(s.geometry, b)
    ensures var o := Bridge.DataOf(kinds, w); var a := BlkBit(s.geometry, b);
      a in o && o[a] == ObjBit(false) && Addr(b, 0) in o && o[Addr(b, 0)].ObjData? && |o[Addr(b, 0)].bytes| == 4096
  {
    var a := BlkBit(s.geometry, b);
    At(s, m, v, w, kinds, a, KBit);
    At(s, m, v, w, kinds, Addr(b, 0), KBlock);
    ZeroBit(a.off % 8);
  }
  // THE THEOREM: what is found of a volume that mkfs made is valid; there is an empty root directory, which has the
  // mode, owner, and times asked for, and nothing else.
  lemma New(s: Super, seal: Seals.Seal, mode: uint32, uid: uint32, gid: uint32, w: J.St) returns (v: Volume)
    requires Found(s, seal, RootMeta(mode, uid, gid, s.ctime, s.ctimens), w) && mode < 4096
    ensures Holds(s.geometry, Bridge.DataOf(P.KindsOf(Regions.Ranges(s.geometry)), w), v)
    ensures v.dirs == map[1 := map[]] && 1 in v.metas && v.metas[1] == RootMeta(mode, uid, gid, s.ctime, s.ctimens)
    ensures forall i: uint64 {:trigger OkIno(s.geometry, i)} | OkIno(s.geometry, i) ::
      i in v.metas && i in v.files && v.files[i] == [] && (2 < i ==> v.metas[i].ty == 0)
  {
    var m := RootMeta(mode, uid, gid, s.ctime, s.ctimens);
    Objects(s, seal, m, w);
    v := NewVolume(s.geometry, m, Bridge.DataOf(P.KindsOf(Regions.Ranges(s.geometry)), w));
    Valid(s.geometry, mode, uid, gid, s.ctime, s.ctimens, Bridge.DataOf(P.KindsOf(Regions.Ranges(s.geometry)), w));
    assert OkIno(s.geometry, 1);
  }
}
