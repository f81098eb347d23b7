// Making the file system on a volume whose bitmaps and inodes are zeros: the root
// directory and the reserved inode. Everything else is right already, which also
// shows that the invariants can be satisfied. All data blocks are free, so it does
// not matter what they hold.
include "../files/bytefiles.dfy"
module FirstInodes {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened TxnSpec
  import opened TxnS
  import opened Marshal
  import opened VolumeGeometry
  import opened InodeFormat
  import opened BlockStore
  import opened Positions
  import opened BlockTreeSpec
  import opened BlockTree
  import opened ByteMap
  import opened ByteFiles
  import opened AllocatedRange
  import opened HeldBlocks
  import opened CountedBlocks

  predicate ZeroDisk(geo: Geo, d: map<Addr, Object>) {
    forall a: Addr {:trigger d[a]} | a in d && a.blkno < geo.data0 ::
      match d[a] case ObjBit(b) => !b case ObjData(bs) => bs == Zeros(|bs|)
  }

  // what a data block holds: anything
  function BlockIn(d: map<Addr, Object>, b: uint64): seq<byte> { if Addr(b, 0) in d && d[Addr(b, 0)].ObjData? then d[Addr(b, 0)].bs else [] }
  lemma BlocksThere(geo: Geo, jrnl: Jrnl)
    requires GeoOk(geo) && jrnl.Valid() && KindsOk(geo, jrnl.kinds)
    ensures forall b: uint64 {:trigger OkBlk(geo, b)} | OkBlk(geo, b) :: Addr(b, 0) in jrnl.data && jrnl.data[Addr(b, 0)] == ObjData(BlockIn(jrnl.data, b)) && |BlockIn(jrnl.data, b)| == 4096
  {
    forall b: uint64 | OkBlk(geo, b) ensures Addr(b, 0) in jrnl.data && ObjOk(KBlock, jrnl.data[Addr(b, 0)])
    { assert b in jrnl.kinds && jrnl.kinds[b] == KBlock; assert Addr(b, 0).blkno in jrnl.kinds && OffOk(jrnl.kinds[Addr(b, 0).blkno], Addr(b, 0).off); }
  }

  // the layers over such a volume: every inode is free and empty, and so is every block
  method Blank(geo: Geo, jrnl: Jrnl) returns (f: ByteFs)
    requires GeoOk(geo) && jrnl.Valid() && KindsOk(geo, jrnl.kinds) && ZeroDisk(geo, jrnl.data)
    ensures fresh(f) && fresh(f.fs) && fresh(f.fs.fs) && f.Valid() && f.jrnl == jrnl && f.geo == geo
    ensures forall i: uint64 {:trigger OkIno(geo, i)} | OkIno(geo, i) :: i in f.files && f.files[i] == [] && i in f.metas && f.metas[i] == NewMeta(0, 0)
    ensures forall i: uint64 {:trigger OkIno(geo, i)} | OkIno(geo, i) :: i in f.fs.fs.inodes && f.fs.fs.inodes[i] == Parse(Zeros(256))
  {
    ghost var zi := Parse(Zeros(256));
    ghost var zm := NewMeta(0, 0);
    ghost var z := Zeros(4096);
    ghost var inodes: map<uint64, Inode> := map i: uint64 | OkIno(geo, i) :: zi;
    ghost var metas: map<uint64, Meta> := map i: uint64 | OkIno(geo, i) :: zm;
    BlocksThere(geo, jrnl);
    ghost var blocks: Blocks := map b: uint64 | OkBlk(geo, b) :: BlockIn(jrnl.data, b);
    ghost var used: map<uint64, bool> := map b: uint64 | OkBlk(geo, b) :: false;
    ghost var bm: BlkMap := imap p: Pos | OkPos(p) :: 0 as uint64;
    ghost var none: Option<Pos> := None;
    ghost var owner: Owner := map b: uint64 | OkBlk(geo, b) :: none;
    ghost var data: Data := imap p: Pos | IsData(p) :: z;
    ghost var files: map<uint64, seq<byte>> := map i: uint64 | OkIno(geo, i) :: [];
    ghost var bare: set<int> := {};
    ghost var held: Helds := map i: uint64 | OkIno(geo, i) :: bare;
    ParseZeros();
    assert InodesMatch(geo, jrnl.data, inodes) by { reveal InodesMatch(); }
    assert InoBitsMatch(geo, jrnl.data, inodes) by { reveal InoBitsMatch(); }
    assert BlocksMatch(geo, jrnl.data, blocks) by { reveal BlocksMatch(); }
    assert UsedMatch(geo, jrnl.data, used) by { reveal UsedMatch(); }
    assert OwnerOk(geo, bm, owner, used) by { reveal OwnerOk(); }
    assert RootsOk(geo, bm, inodes) by { reveal RootsOk(); }
    assert LinksOk(bm, blocks) by { reveal LinksOk(); }
    assert DataOk(bm, blocks, data) by { reveal DataOk(); }
    assert ReachOk(geo, bm, metas) by { reveal ReachOk(); }
    assert HeldOk(geo, bm, metas, held) by {
      reveal HeldOk();
      forall i: uint64 ensures Counted(bm, i, 0) { assert AllThere(bm, i, bare); CountIs(bm, i, bare); }
    }
    forall i: uint64 | OkIno(geo, i) ensures FileMatch(data, i, [], 0) { reveal FileMatch(); }
    var bf := new BlockFs.Recover(geo, jrnl);
    bf.inodes, bf.blocks, bf.used := inodes, blocks, used;
    var xf := new BlockTreeFs.Recover(bf);
    xf.bm, xf.owner, xf.data := bm, owner, data;
    f := new ByteFs.Recover(xf, geo, jrnl);
    f.files, f.metas, f.held := files, metas, held;
  }

  function RootMeta(mode: uint32, uid: uint32, gid: uint32, s: uint64, ns: uint32): Meta
  { Meta(2, mode, 2, uid, gid, 0, 0, 0, 0, 1, s, s, s, ns, ns, ns, 0, 1, 0, 0, 0, 0) }

  // make the root directory (empty) and the reserved inode, made at time s, ns.
  // Type 8 is none of RFC 1813's, so that no request reaches the reserved inode.
  method Format(txn: Txn, geo: Geo, jrnl: Jrnl, mode: uint32, uid: uint32, gid: uint32, s: uint64, ns: uint32) returns (f: ByteFs)
    modifies jrnl
    requires GeoOk(geo) && jrnl.Valid() && KindsOk(geo, jrnl.kinds) && ZeroDisk(geo, jrnl.data) && txn.jrnl == jrnl
    ensures fresh(f) && f.Valid() && f.jrnl == jrnl && f.geo == geo
    ensures forall i: uint64 {:trigger OkIno(geo, i)} | OkIno(geo, i) :: i in f.files && f.files[i] == [] && i in f.metas
    ensures forall i: uint64 {:trigger OkIno(geo, i)} | OkIno(geo, i) && 2 < i :: f.metas[i] == NewMeta(0, 0)
    ensures OkIno(geo, 1) && OkIno(geo, 2) && f.metas[2] == NewMeta(8, 1) && f.metas[1] == RootMeta(mode, uid, gid, s, ns)
  {
    f := Blank(geo, jrnl);
    assert OkIno(geo, 1) && OkIno(geo, 2);
    ParseZeros();
    var z := f.fs.fs.ReadInode(txn, 2, true);
    f.Stored(2, z);
    f.Blank(txn, z, 2, 8, 1);
    z := f.fs.fs.ReadInode(txn, 1, true);
    f.Stored(1, z);
    f.Blank(txn, z, 1, 2, 1);
    var ip := f.GetInode(txn, 1, true);
    SetMode(ip, mode);
    SetNlink(ip, 2);
    SetUid(ip, uid);
    SetGid(ip, gid);
    SetAtime(ip, s, ns);
    SetMtime(ip, s, ns);
    SetCtime(ip, s, ns);
    SetParent(ip, 1);
    f.PutInode(txn, 1, ip);
  }
}
