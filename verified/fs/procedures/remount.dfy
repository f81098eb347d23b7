// What a volume means depends on nothing but its bytes, and not on those of free blocks: the step from a
// crash of the journal, which leaves a state of the past but for the contents of free blocks (Agree in
// journal/model.dfy), to the file system that clients find after it.
//
// The layers above the transactions keep what the volume means in ghost variables. Here they
// are values, so that those of before a crash and those of after it can be compared.
include "../blocks/crash.dfy"
include "soundness.dfy"
module Remount {
  import opened Machine
  import opened TxnSpec
  import opened VolumeGeometry
  import opened InodeFormat
  import opened BlockStore
  import opened Positions
  import opened BlockTreeSpec
  import opened ByteMap
  import R = AllocatedRange
  import H = HeldBlocks
  import CountedBlocks
  import Crash
  import D = DirLayout
  import F = Directories
  import A = Abstraction
  import T = NameTree
  import Op = ProcedureBase
  import N = NfsState

  type Objects = map<Addr, Object>
  datatype Volume = Volume(inodes: map<uint64, Inode>, blocks: Blocks, used: map<uint64, bool>, blockMap: BlkMap,
    owner: Owner, data: Data,
    metas: map<uint64, Meta>, files: A.Files, held: A.Helds, dirs: F.Dirs, places: A.DirPlaces)

  // the objects o are a valid volume, and v is what it holds
  predicate Holds(g: Geometry, o: Objects, v: Volume) {
    GeometryOk(g) && InodesMatch(g, o, v.inodes) && InoBitsMatch(g, o, v.inodes) && BlocksMatch(g, o, v.blocks) &&
      UsedMatch(g, o, v.used) &&
    TreesOk(g, v.blockMap, v.owner, v.used, v.blocks, v.data) && RootsOk(g, v.blockMap, v.inodes) &&
    DataDom(v.data) && FilesOk(g, v.data, v.inodes, v.metas, v.files) && R.ReachOk(g, v.blockMap, v.metas) &&
      H.HeldOk(g, v.blockMap, v.metas, v.held) &&
    (forall i: uint64 {:trigger OkIno(g, i)} | OkIno(g, i) :: i in v.held && |v.files[i]| <= 549755813888) &&
    F.TypesOk(g, v.metas, v.dirs) && F.DirsOk(g, v.files, v.metas, v.dirs, v.places) && T.TreeOk(g, v.metas, v.dirs)
  }
  function Meaning(g: Geometry, v: Volume): N.FS { A.Abs(g, v.metas, v.files, v.held, v.dirs, v.places) }

  function VolumeOf(d: F.DirFs): Volume reads d, d.fs, d.fs.trees, d.fs.trees.store
  { Volume(d.fs.trees.store.inodes, d.fs.trees.store.blocks, d.fs.trees.store.used, d.fs.trees.blockMap,
    d.fs.trees.owner, d.fs.trees.data, d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places) }
  lemma HoldsOf(d: F.DirFs)
    requires Op.Sound(d)
    ensures Holds(d.fs.geometry, d.fs.volume.data, VolumeOf(d)) && Meaning(d.fs.geometry, VolumeOf(d)) == Op.AbsOf(d)
  { }
  // And the other way about: if the layers stand one on the other, over one geometry and the objects of one volume
  // whose blocks have their kinds, and have the values of what these objects hold, then that is all that the procedures
  // start from.
  predicate Wired(d: F.DirFs) reads d.fs.volume
  {
    var g, store := d.fs.geometry, d.fs.trees.store;
    GeometryOk(g) && store.geometry == g && store.volume == d.fs.volume && d.fs.volume.Valid() &&
      KindsOk(g, d.fs.volume.kinds) && BitmapsOk(g, d.fs.volume)
  }
  lemma SoundOf(d: F.DirFs)
    requires Wired(d) && Holds(d.fs.geometry, d.fs.volume.data, VolumeOf(d))
    ensures Op.Sound(d)
  { }

  // o2 is o but for blocks that are free in it
  predicate ButFree(g: Geometry, used: map<uint64, bool>, o: Objects, o2: Objects) {
    forall a: Addr {:trigger a in o2} | a in o && !FreeBlock(g, used, a) :: a in o2 && o2[a] == o[a]
  }
  predicate FreeBlock(g: Geometry, used: map<uint64, bool>, a: Addr)
  { OkBlk(g, a.blkno) && a.off == 0 && a.blkno in used && !used[a.blkno] }

  // THE THEOREM: d is a volume, and e the one that is found when its bytes are looked at anew, after a crash has
  // changed free blocks: it means the same.
  lemma MeansTheSame(d: F.DirFs, e: F.DirFs)
    requires Op.Sound(d) && Op.Sound(e) && d.fs.geometry == e.fs.geometry &&
      ButFree(d.fs.geometry, d.fs.trees.store.used, d.fs.volume.data, e.fs.volume.data)
    ensures Op.AbsOf(d) == Op.AbsOf(e)
  {
    HoldsOf(d); HoldsOf(e);
    AfterCrash(d.fs.geometry, d.fs.volume.data, e.fs.volume.data, VolumeOf(d), VolumeOf(e).blocks);
    Unique(d.fs.geometry, e.fs.volume.data, VolumeOf(d).(blocks := VolumeOf(e).blocks), VolumeOf(e));
  }
  // And there is one to find: what was valid is so after the crash, and holds the same. (bs: what the blocks are then.)
  lemma AfterCrash(g: Geometry, o: Objects, o2: Objects, v: Volume, bs: Blocks)
    requires Holds(g, o, v) && ButFree(g, v.used, o, o2) && BlocksMatch(g, o2, bs)
    ensures Holds(g, o2, v.(blocks := bs)) && Meaning(g, v.(blocks := bs)) == Meaning(g, v)
  {
    Apart(g);
    reveal InodesMatch(); reveal InoBitsMatch(); reveal BlocksMatch(); reveal UsedMatch();
    forall i: uint64 | OkIno(g, i)
      ensures InodeAddr(g, i) in o2 && o2[InodeAddr(g, i)] == o[InodeAddr(g, i)] && InoBit(g, i) in o2 &&
      o2[InoBit(g, i)] == o[InoBit(g, i)] {
      assert !FreeBlock(g, v.used, InodeAddr(g, i)) && !FreeBlock(g, v.used, InoBit(g, i));
    }
    forall b: uint64 | OkBlk(g, b)
      ensures BlkBit(g, b) in o2 && o2[BlkBit(g, b)] == o[BlkBit(g, b)] && (v.used[b] ==> bs[b] == v.blocks[b]) {
      assert !FreeBlock(g, v.used, BlkBit(g, b));
      if v.used[b] { assert !FreeBlock(g, v.used, Addr(b, 0)); }
    }
    Crash.FreeBlocksDoNotMatter(g, v.blockMap, v.owner, v.used, v.blocks, bs, v.data);
  }

  // ---- of one volume there is one meaning ----
  lemma Unique(g: Geometry, o: Objects, v: Volume, w: Volume)
    requires Holds(g, o, v) && Holds(g, o, w)
    ensures Meaning(g, v) == Meaning(g, w)
  {
    SameObjects(g, o, v, w);
    forall p: Pos | OkPos(p) ensures v.blockMap[p] == w.blockMap[p] { SameTree(g, v, w, p); }
    forall p: Pos | IsData(p) ensures v.data[p] == w.data[p] { SameData(g, v, w, p); }
    forall i: uint64 | OkIno(g, i)
      ensures v.files[i] == w.files[i] { SameFile(v.data, w.data, i, v.files[i], w.files[i], v.metas[i].shrink as int);
      }
    forall i: uint64 | OkIno(g, i) ensures v.held[i] == w.held[i] { SameHeld(g, v, w, i); }
    forall i: uint64 | OkIno(g, i) && i in v.dirs
      ensures i in w.dirs && v.dirs[i] == w.dirs[i] &&
      A.Cookies(v.dirs[i], v.places[i]) == A.Cookies(w.dirs[i], w.places[i]) {
      SameDir(v.files[i], v.dirs[i], v.places[i], w.dirs[i], w.places[i]);
    }
    forall i: uint64 ensures (A.Shown(g, v.metas, i) <==> A.Shown(g, w.metas, i)) &&
      (A.Shown(g, v.metas, i) ==> A.NodeAt(w.metas, w.files, w.held, w.dirs, w.places, i) ==
        A.NodeAt(v.metas, v.files, v.held, v.dirs, v.places, i)) {}
    T.Basics(g, v.metas, v.dirs);
    assert OkIno(g, 2);
    A.Same(g, v.metas, w.metas, v.files, w.files, v.held, w.held, v.dirs, w.dirs, v.places, w.places);
  }
  predicate Alike(g: Geometry, v: Volume, w: Volume) {
    (forall i: uint64 {:trigger OkIno(g, i)} | OkIno(g, i) ::
      i in v.inodes && i in w.inodes && v.inodes[i] == w.inodes[i] && i in v.metas && i in w.metas &&
      v.metas[i] == w.metas[i]) &&
    forall b: uint64 {:trigger OkBlk(g, b)} | OkBlk(g, b) ::
      b in v.blocks && b in w.blocks && v.blocks[b] == w.blocks[b]
  }
  lemma SameObjects(g: Geometry, o: Objects, v: Volume, w: Volume)
    requires Holds(g, o, v) && Holds(g, o, w)
    ensures Alike(g, v, w)
  { reveal InodesMatch(); reveal BlocksMatch(); }
  lemma SameTree(g: Geometry, v: Volume, w: Volume, p: Pos)
    requires Alike(g, v, w) && OkPos(p) && Rooted(g, v) && Rooted(g, w)
    ensures v.blockMap[p] == w.blockMap[p]
    decreases p.level
  {
    reveal RootsOk(); reveal LinksOk(); reveal OwnerOk();
    if p.level > 0 {
      ParentOk(p);
      SameTree(g, v, w, Parent(p));
      var b := v.blockMap[Parent(p)];
      if b != 0 { assert OkBlk(g, b); }
    }
  }
  predicate Rooted(g: Geometry, v: Volume)
  { TreesOk(g, v.blockMap, v.owner, v.used, v.blocks, v.data) && RootsOk(g, v.blockMap, v.inodes) }
  lemma SameData(g: Geometry, v: Volume, w: Volume, p: Pos)
    requires Alike(g, v, w) && IsData(p) && Rooted(g, v) && Rooted(g, w) && v.blockMap[p] == w.blockMap[p]
    ensures p in v.data && p in w.data && v.data[p] == w.data[p]
  {
    reveal DataOk(); reveal OwnerOk();
    assert OkPos(p);
    if v.blockMap[p] != 0 { assert OkBlk(g, v.blockMap[p]); }
  }
  lemma SameFile(d: Data, e: Data, i: uint64, f: seq<byte>, h: seq<byte>, shrink: int)
    requires FileMatch(d, i, f, shrink) && FileMatch(e, i, h, shrink) && |f| == |h| &&
      forall p: Pos {:trigger IsData(p)} | IsData(p) :: p in d && p in e && d[p] == e[p]
    ensures f == h
  {
    reveal FileMatch();
    forall k: int | 0 <= k < |f| ensures f[k] == h[k] {
      PosOfOk(i, (k / 4096) as uint64);
      assert ByteAt(d, i, k) == ByteAt(e, i, k);
    }
  }
  lemma SameHeld(g: Geometry, v: Volume, w: Volume, i: uint64)
    requires H.HeldOk(g, v.blockMap, v.metas, v.held) && H.HeldOk(g, w.blockMap, w.metas, w.held) && OkIno(g, i) &&
      Alike(g, v, w)
    requires IsDom(v.blockMap) && IsDom(w.blockMap) && forall p: Pos {:trigger v.blockMap[p]} | OkPos(p) ::
      v.blockMap[p] == w.blockMap[p]
    ensures i in v.held && i in w.held && v.held[i] == w.held[i]
  {
    H.HeldOf(g, v.blockMap, v.metas, v.held, i); H.HeldOf(g, w.blockMap, w.metas, w.held, i);
    forall b: int ensures b in v.held[i] <==> b in w.held[i] {
      if 0 <= b < 134480396 { PosOfOk(i, b as uint64); }
      assert CountedBlocks.There(v.blockMap, i, b) <==> CountedBlocks.There(w.blockMap, i, b);
    }
  }
  // the bytes of a directory stand for one map, and say where its names lie
  lemma SameDir(f: seq<byte>, m: D.Entries, at: D.Places, m2: D.Entries, at2: D.Places)
    requires D.DirOk(f, m, at) && D.DirOk(f, m2, at2)
    ensures m == m2 && A.Cookies(m, at) == A.Cookies(m2, at2)
  {
    InBoth(f, m, at, m2, at2);
    InBoth(f, m2, at2, m, at);
    reveal D.DirOk();
    assert forall n: seq<byte> :: n in m <==> n in m2;
  }
  lemma InBoth(f: seq<byte>, m: D.Entries, at: D.Places, m2: D.Entries, at2: D.Places)
    requires D.DirOk(f, m, at) && D.DirOk(f, m2, at2)
    ensures forall n: seq<byte> {:trigger n in m} | n in m ::
      n in at && n in m2 && n in at2 && m2[n] == m[n] && at2[n] == at[n]
  {
    reveal D.DirOk();
    forall n: seq<byte> | n in m ensures n in at && n in m2 && n in at2 && m2[n] == m[n] && at2[n] == at[n] {
      var c := at[n];
      assert D.OkSlot(f, c) && D.Word(f, c) != 0;
      assert D.Good(f, c, m, at) && D.Good(f, c, m2, at2);
    }
  }
}
