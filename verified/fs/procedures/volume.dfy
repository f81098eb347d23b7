include "attributes.dfy"
// FSSTAT, FSINFO, PATHCONF, COMMIT: what is said of the volume as a whole. (NULL
// does nothing: there is nothing to prove.) None of them changes anything.
module VolumeOps {
  import opened Machine
  import opened ByteSlice
  import opened TxnS
  import opened VolumeGeometry
  import opened InodeFormat
  import opened ByteFiles
  import opened Directories
  import opened Permissions
  import opened ProcedureBase
  import opened AttributeOps
  import opened Abstraction
  import Room = NfsRoom
  import N = NfsState
  import V = NfsVolume

  const MAXIO: uint32 := 1048576         // bytes in one READ or WRITE
  const BLOCK: uint32 := 4096
  const LISTING: uint32 := 65536         // bytes in one READDIR or READDIRPLUS
  const NAMEMAX: uint32 := 255           // bytes in a name

  // blocks, inodes: how many are free, as the allocator has counted (Counted): as committed, when no other transaction
  // that changes it is under way, and on a sparse image no more than its host has room for. Nothing checks that, so no
  // more is reported than there are. The volume has those before the ends so far.
  method Fsstat(txn: Txn, d: DirFs, ino: uint64, gen: uint64, blocks: uint64, inodes: uint64, blocksEnd: uint64,
    inodesEnd: uint64) returns (st: uint32, s: V.Space, after: Bytes?)
    requires Sound(d) && txn.volume == d.fs.volume && Ends(d.fs.geometry, blocksEnd, inodesEnd)
    ensures st == 0 ==> after != null && |after.data| == 256 &&
      V.FsstatOk(AbsOf(d), N.Handle(ino, gen), ReplyAttr(ino, MetaOf(after.data)), s)
    ensures s.tbytes as int == 4096 * (blocksEnd - d.fs.geometry.data0) as int && s.tfiles == inodesEnd - 3
    ensures st != 0 ==> V.FsstatErr(AbsOf(d), N.Handle(ino, gen), st) && after == null
    ensures Counted(d, blocks, inodes, blocksEnd, inodesEnd) ==>
      Room.Told(s, |FreeBlocks(d, blocksEnd)|, |FreeInodes(d, inodesEnd)|)
  {
    if Counted(d, blocks, inodes, blocksEnd, inodesEnd) {
      AtMost(FreeBlocks(d, blocksEnd), d.fs.geometry.data0 as int, blocksEnd as int);
      AtMost(FreeInodes(d, inodesEnd), 3, inodesEnd as int);
    }
    st, after := Getattr(txn, d, ino, gen);
    var all := blocksEnd - d.fs.geometry.data0;
    var files := inodesEnd - 3;    // 0 to 2 are not given out
    var b := Least(blocks, all);
    var i := Least(inodes, files);
    s := V.Space(4096 * all, 4096 * b, 4096 * b, files, i, i, 0);
  }
  // where what a volume has so far may end
  predicate Ends(g: Geometry, blocksEnd: uint64, inodesEnd: uint64)
  { g.data0 <= blocksEnd <= g.data1 && 3 <= inodesEnd }
  predicate Counted(d: DirFs, blocks: uint64, inodes: uint64, blocksEnd: uint64, inodesEnd: uint64)
    reads d.fs, d.fs.trees.store
  { blocks as int == |FreeBlocks(d, blocksEnd)| && inodes as int == |FreeInodes(d, inodesEnd)| }
  lemma AtMost(s: set<uint64>, lo: int, hi: int)
    requires 0 <= lo <= hi < 0x1_0000_0000_0000_0000
    requires forall x: uint64 {:trigger x in s} | x in s :: lo <= x as int < hi
    ensures |s| <= hi - lo
    decreases hi
  {
    if lo == hi {
      if s != {} { var x :| x in s; assert false; }
      return;
    }
    var top := (hi - 1) as uint64;
    AtMost(s - {top}, lo, hi - 1);
    if top in s { assert s == (s - {top}) + {top}; } else { assert s == s - {top}; }
  }
  function method Least(a: uint64, b: uint64): uint64 { if a < b then a else b }

  method Fsinfo(txn: Txn, d: DirFs, ino: uint64, gen: uint64) returns (st: uint32, i: V.Info, after: Bytes?)
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> after != null && |after.data| == 256 &&
      V.FsinfoOk(AbsOf(d), N.Handle(ino, gen), ReplyAttr(ino, MetaOf(after.data)), i)
    ensures st != 0 ==> V.FsinfoErr(AbsOf(d), N.Handle(ino, gen), st) && after == null
  {
    st, after := Getattr(txn, d, ino, gen);
    i := V.Info(MAXIO, MAXIO, BLOCK, MAXIO, MAXIO, BLOCK, LISTING, MAXFILE, N.Time(0, 1), 27);
  }

  method Pathconf(txn: Txn, d: DirFs, ino: uint64, gen: uint64) returns (st: uint32, p: V.Pathconf, after: Bytes?)
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> after != null && |after.data| == 256 &&
      V.PathconfOk(AbsOf(d), N.Handle(ino, gen), ReplyAttr(ino, MetaOf(after.data)), p)
    ensures st != 0 ==> V.PathconfErr(AbsOf(d), N.Handle(ino, gen), st) && after == null
  {
    st, after := Getattr(txn, d, ino, gen);
    p := V.Pathconf(MAXLINK, NAMEMAX, true, true, false, true);
  }

  // What COMMIT says. What it does, waiting until all that was committed is durable, comes next
  // (Exec in fs/exec/exec.dfy).
  method Commit(txn: Txn, d: DirFs, ino: uint64, gen: uint64) returns (st: uint32, after: Bytes?)
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> after != null && |after.data| == 256 &&
      V.CommitOk(AbsOf(d), N.Handle(ino, gen), N.Wcc(ReplyAttr(ino, MetaOf(after.data)),
        ReplyAttr(ino, MetaOf(after.data))))
    ensures st != 0 ==> V.CommitErr(AbsOf(d), N.Handle(ino, gen), st) && after == null
  {
    Node(d, ino, gen);
    after := null;
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, false);
    if st != 0 { return; }
    var ty := GetTy(ip);
    if ty != REG { st := INVAL; return; }
    after := ip;
  }
}
