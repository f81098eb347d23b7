include "permissions.dfy"
include "../refinement/entrysteps.dfy"
include "../tree/orphans.dfy"
include "../spec/room.s.dfy"
// What all procedures share: opening a handle, touching time stamps, the list of
// files that wait to be freed (the orphan list).
//
// A procedure is a method over one transaction. It returns an NFS status; 0 is
// success, and only then does the volume stay valid and may the caller commit.
// On every other status the caller aborts, so a procedure may stop anywhere.
// Attributes are returned as copies of serialized inodes; null: not known.
//
// Names that all procedures use:
//   d           the volume as the code has it: its entries are d.dirs, files and attributes d.fs. Sound(d): it is one
//               that can occur; AbsOf(d) is what it means in nfs3.s.dfy
//   txn         the transaction. Its `volume` is that of d
//   ip          the 256 bytes of an inode; MetaOf(ip.data) has its attributes as a value (Meta)
//   c           the caller; WhoOf(c) is the same as a value
//   dino, dgen  number and generation of a directory's inode; ino, gen: of another file's
//   s, ns       the server's clock: seconds and nanoseconds
//   st          an NFS status; 0: no error
//   ...S        what the method without the S does, as a function of values: NameS of NameStatus, MayS of May
module ProcedureBase {
  import opened Machine
  import opened ByteSlice
  import opened TxnS
  import opened VolumeGeometry
  import opened InodeFormat
  import opened AttributeChanges
  import opened ByteFiles
  import opened Directories
  import opened Permissions
  import Abstraction
  import NameTree
  import Orphans
  import EntrySteps
  import N = NfsState
  import C = NfsCommon
  import BlockStore
  import DirLayout
  import Room = NfsRoom

  // Blocks freed in the transaction that removes or cuts a file; more wait for the background.
  const FREENOW: uint64 := 80
  const SMALL: uint64 := 262144          // a file of up to this many bytes is freed at once
  const ROOT: uint64 := 1
  const ORPHANS: uint64 := 2             // the inode whose `next` heads the orphan list

  // what the procedures start from and keep, and what it means to a client
  predicate Sound(d: DirFs) reads d, d.fs, d.fs.trees, d.fs.trees.store, d.fs.volume
  { d.Valid() && NameTree.TreeOk(d.fs.geometry, d.fs.metas, d.dirs) }
  function AbsOf(d: DirFs): N.FS reads d, d.fs
  { Abstraction.Abs(d.fs.geometry, d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places) }

  // How much of what was cut off file i is still to be freed: up to where its blocks may lie (bytes). 0: nothing is.
  function ToFree(d: DirFs, i: uint64): uint64 reads d, d.fs
  { if OkIno(d.fs.geometry, i) && i in d.fs.metas then d.fs.metas[i].shrink else 0 }

  // what is free of the blocks, or inodes, that the volume has so far: those before end
  function FreeBlocks(d: DirFs, end: uint64): set<uint64> reads d.fs.trees.store
  { var store := d.fs.trees.store; set b | b in store.used && OkBlk(d.fs.geometry, b) && b < end && !store.used[b] }
  function FreeInodes(d: DirFs, end: uint64): set<uint64> reads d.fs
  { set i | i in d.fs.metas && OkIno(d.fs.geometry, i) && 2 < i < end && d.fs.metas[i].ty == 0 }
  // the transaction begins with this volume
  predicate Begins(txn: Txn, d: DirFs) reads d.fs, d.fs.trees.store, txn.blocks, txn.inodes
  {
    txn.blocks != txn.inodes && txn.blocks.clear == FreeBlocks(d, txn.blocks.end) && txn.blocks.given == {} &&
    txn.inodes.clear == FreeInodes(d, txn.inodes.end) && txn.inodes.given == {}
  }
  // what a procedure finds of what it may need. worn: see Worn
  datatype Stock = Stock(begins: bool, blocks: set<uint64>, inodes: set<uint64>, worn: bool)
  function StockOf(txn: Txn, d: DirFs): Stock reads d, d.fs, d.fs.trees.store, txn.blocks, txn.inodes
  {
    Stock(Begins(txn, d), FreeBlocks(d, txn.blocks.end), FreeInodes(d, txn.inodes.end), Room.Worn(AbsOf(d)))
  }
  // what others have left of it, if the allocator has said that there is no more
  function Remains(txn: Txn, k: Stock): Room.Room reads txn.blocks, txn.inodes
  {
    Room.Room(|k.blocks - txn.blocks.others|, |k.inodes - txn.inodes.others|, txn.blocks.refused || txn.inodes.refused)
  }
  // If the status is NOSPC, there was less than is needed.
  predicate Lacking(txn: Txn, k: Stock, need: Room.Need, st: uint32) reads txn.blocks, txn.inodes
  { k.begins && st == NOSPC ==> Room.Lacks(Remains(txn, k), need) || (0 < need.inodes && k.worn) }
  // The allocator said that there is no more before it had given what is needed, with b blocks and i inodes before.
  predicate Short(txn: Txn, b: int, i: int, need: Room.Need) reads txn.blocks, txn.inodes
  {
    (txn.blocks.Dry() && BlockStore.GotBlocks(txn) < b + need.blocks) ||
    (txn.inodes.Dry() && BlockStore.GotInodes(txn) < i + need.inodes)
  }
  lemma IsLacking(txn: Txn, k: Stock, need: Room.Need, st: uint32)
    requires k.begins ==> txn.blocks.clear == k.blocks && txn.inodes.clear == k.inodes
    requires k.begins && st == NOSPC ==> Short(txn, 0, 0, need) || (0 < need.inodes && k.worn)
    ensures Lacking(txn, k, need, st)
  {
    if k.begins && st == NOSPC && Short(txn, 0, 0, need) {
      if txn.blocks.Dry() && !txn.blocks.refused {
        BlockStore.Fewer(k.blocks - txn.blocks.others, txn.blocks.given);
      }
      if txn.inodes.Dry() && !txn.inodes.refused {
        BlockStore.Fewer(k.inodes - txn.inodes.others, txn.inodes.given);
      }
    }
  }
  lemma IsWorn(d: DirFs)
    requires Sound(d) && Unfit(d.fs.geometry, d.fs.metas)
    ensures Room.Worn(AbsOf(d))
  {
    var g, ms := d.fs.geometry, d.fs.metas;
    NameTree.Basics(g, ms, d.dirs);
    var i: uint64 :| OkIno(g, i) && i in ms && ms[i].ty == 0 &&
      (ms[i].size != 0 || ms[i].shrink != 0 || ms[i].gen == 0xffff_ffff_ffff_ffff);
    assert NameTree.Fits(i, ms[i]);
    Abstraction.At(g, ms, d.fs.files, d.fs.held, d.dirs, d.places, i);
    assert i in AbsOf(d).gens;
  }
  // The directory has no place for the name: all where it may lie are taken (dirlayout.dfy).
  predicate NoPlace(d: DirFs, dino: uint64, name: seq<byte>) reads d.fs
  { dino in d.fs.files && dino in d.fs.metas && (DirLayout.Crowded(d.fs.files[dino], name) || Stuck(d.fs.metas[dino])) }

  // The background is told of what it is to free: if another file is the first on the orphan list, then `later`. (If
  // there was one before, the background was told then.)
  predicate Tells(ms: Metas, ms': Metas, later: bool)
  { ORPHANS in ms && ORPHANS in ms' && ms'[ORPHANS].next != ms[ORPHANS].next ==> later }
  // A step of the background got somewhere: less is to be freed of the first file of the list, or that has left it.
  predicate Ahead(ms: Metas, ms': Metas)
    requires ORPHANS in ms
  {
    var h := ms[ORPHANS].next;
    h in ms && h in ms' && ORPHANS in ms' && (ms'[h].shrink < ms[h].shrink ||
      (ms[h].flags % 2 == 1 && ms'[h].flags % 2 == 0 && ms'[ORPHANS].next == ms[h].next))
  }

  // what AbsOf says of inode i, and of a handle for it
  lemma Node(d: DirFs, i: uint64, gen: uint64)
    requires Sound(d)
    ensures Live(d.fs.geometry, d.fs.metas, i, gen) <==> N.Live(AbsOf(d), N.Handle(i, gen))
    ensures Live(d.fs.geometry, d.fs.metas, i, gen) ==>
      i in d.fs.metas && d.fs.metas[i].mode < 4096 && 1 <= d.fs.metas[i].ty <= 7 && i in AbsOf(d).nodes &&
      i in d.fs.files &&
      var m, n := d.fs.metas[i], AbsOf(d).nodes[i];
      N.Type(n) == m.ty && Abstraction.ReplyAttr(i, m) == N.FattrOf(i, n) &&
        n == Abstraction.NodeAt(d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places, i) && n.attr == MetaAttr(m)
  {
    NameTree.Basics(d.fs.geometry, d.fs.metas, d.dirs);
    Abstraction.AtHandle(d.fs.geometry, d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places, i, gen);
    if Live(d.fs.geometry, d.fs.metas, i, gen) { assert NameTree.Fits(i, d.fs.metas[i]); }
  }

  // the status of OpenDirHandle and OpenDir in the words of the specification
  lemma DirStatus(d: DirFs, i: uint64, gen: uint64, name: seq<byte>)
    requires Sound(d)
    ensures var st, f, h := DirHandleS(d.fs.geometry, d.fs.metas, i, gen), AbsOf(d), N.Handle(i, gen);
      (st == 0 <==> N.LiveDir(f, h)) && (st != 0 ==> C.DirErr(f, h, st))
    ensures var st, f, h := DirS(d.fs.geometry, d.fs.metas, i, gen, name), AbsOf(d), N.Handle(i, gen);
      (st == 0 <==> N.LiveDir(f, h) && N.Legal(name)) && (st != 0 ==> C.DirErr(f, h, st) || C.NameErr(name, st))
    ensures var f := AbsOf(d); DirHandleS(d.fs.geometry, d.fs.metas, i, gen) == 0 ==>
      i in d.dirs && i in d.fs.metas && i in f.nodes && f.nodes[i].body.Dir? &&
      f.nodes[i].body.names == d.dirs[i] && f.nodes[i].body.parent == d.fs.metas[i].parent &&
        f.nodes[i].attr == MetaAttr(d.fs.metas[i]) && d.fs.metas[i].mode < 4096 &&
      Abstraction.ReplyAttr(i, d.fs.metas[i]) == N.FattrOf(i, f.nodes[i])
  { Node(d, i, gen); }

  // attributes in a reply, as they are given: a serialized inode, or null
  function Reply(i: uint64, b: Bytes?): Option<N.Fattr> reads b
  { if b == null || |b.data| != 256 then None else Some(Abstraction.ReplyAttr(i, MetaOf(b.data))) }

  // b is a with only such fields changed as PutInode may store
  predicate Keeps(a: seq<byte>, b: seq<byte>)
  {
    |a| == 256 && |b| == 256 && Parse(a).blks == Parse(b).blks &&
    var m, n := MetaOf(a), MetaOf(b);
    m.ty == n.ty && m.size == n.size && m.shrink == n.shrink && m.used == n.used && m.nent == n.nent
  }

  // the handle (ino, gen) names an object in use
  predicate Live(g: Geometry, ms: Metas, ino: uint64, gen: uint64)
  { OkIno(g, ino) && ino != ORPHANS && ino in ms && ms[ino].ty != 0 && ms[ino].nlink != 0 && ms[ino].gen == gen }
  function DirHandleS(g: Geometry, ms: Metas, ino: uint64, gen: uint64): uint32
  { if !Live(g, ms, ino, gen) then STALE else if ms[ino].ty != DIR then NOTDIR else 0 }
  function DirS(g: Geometry, ms: Metas, ino: uint64, gen: uint64, name: seq<byte>): uint32
  { if DirHandleS(g, ms, ino, gen) != 0 then DirHandleS(g, ms, ino, gen) else NameS(name) }

  // the inode of a handle; STALE when the handle does not name a file in use
  method OpenHandle(txn: Txn, d: DirFs, ino: uint64, gen: uint64, excl: bool) returns (st: uint32, ip: Bytes)
    requires d.Valid() && txn.volume == d.fs.volume
    ensures fresh(ip) && |ip.data| == 256
    ensures st == if Live(d.fs.geometry, d.fs.metas, ino, gen) then 0 else STALE
    ensures st == 0 ==> OkIno(d.fs.geometry, ino) && ino != ORPHANS && ino in d.fs.metas &&
      MetaOf(ip.data) == d.fs.metas[ino] &&
      d.fs.SameBlks(ino, ip.data)
    ensures st == 0 ==> (ino in d.dirs <==> MetaOf(ip.data).ty == DIR)
    ensures st == 0 ==> ino in d.fs.files && |d.fs.files[ino]| == MetaOf(ip.data).size as int
  {
    st := STALE;
    if !OkIno(d.fs.geometry, ino) || ino == ORPHANS { ip := NewBytes(256); return; }
    ip := d.fs.GetInode(txn, ino, excl);
    var ty := GetTy(ip);
    var nl := GetNlink(ip);
    var g := GetGen(ip);
    if ty == 0 || nl == 0 || g != gen { return; }
    st := 0;
  }

  // the inode of a directory entry; SERVERFAULT when the entry names nothing in use
  method OpenEntry(txn: Txn, d: DirFs, ino: uint64, excl: bool) returns (st: uint32, ip: Bytes)
    requires d.Valid() && txn.volume == d.fs.volume && OkIno(d.fs.geometry, ino)
    ensures fresh(ip) && |ip.data| == 256
    ensures ino in d.fs.metas && st == if 2 < ino && d.fs.metas[ino].ty != 0 &&
      d.fs.metas[ino].nlink != 0 then 0 else SERVERFAULT
    ensures MetaOf(ip.data) == d.fs.metas[ino] && d.fs.SameBlks(ino, ip.data)
    ensures ino in d.dirs <==> MetaOf(ip.data).ty == DIR
    ensures st == 0 ==> ino in d.fs.files && |d.fs.files[ino]| == MetaOf(ip.data).size as int
  {
    ip := d.fs.GetInode(txn, ino, excl);
    var ty := GetTy(ip);
    var nl := GetNlink(ip);
    st := if ty == 0 || nl == 0 || ino <= 2 then SERVERFAULT else 0;
  }

  // the directory of an operation on a name: handle, type, legality of the name
  method OpenDir(txn: Txn, d: DirFs, ino: uint64, gen: uint64, name: Bytes, excl: bool)
    returns (st: uint32, ip: Bytes?, dots: uint32)
    requires d.Valid() && txn.volume == d.fs.volume
    ensures st == DirS(d.fs.geometry, d.fs.metas, ino, gen, name.data) && dots <= 2
    ensures ip != null <==> Live(d.fs.geometry, d.fs.metas, ino, gen)
    ensures ip != null ==> fresh(ip) && |ip.data| == 256 && ino in d.fs.metas && MetaOf(ip.data) == d.fs.metas[ino]
    ensures st == 0 ==> OkIno(d.fs.geometry, ino) && ino != ORPHANS && ino in d.dirs && OkName(name.data) && ip != null
    ensures st == 0 ==> (dots == 1 <==> name.data == [46]) && (dots == 2 <==> name.data == [46, 46])
  {
    dots := 0;
    st, ip := OpenDirHandle(txn, d, ino, gen, excl);
    if st != 0 { return; }
    st, dots := NameStatus(name);
  }

  // a handle that must be a directory's; ip: null when the handle is stale
  method OpenDirHandle(txn: Txn, d: DirFs, ino: uint64, gen: uint64, excl: bool) returns (st: uint32, ip: Bytes?)
    requires d.Valid() && txn.volume == d.fs.volume
    ensures st == DirHandleS(d.fs.geometry, d.fs.metas, ino, gen)
    ensures ip != null <==> Live(d.fs.geometry, d.fs.metas, ino, gen)
    ensures ip != null ==> fresh(ip) && |ip.data| == 256 && ino in d.fs.metas && MetaOf(ip.data) == d.fs.metas[ino]
    ensures st == 0 ==> OkIno(d.fs.geometry, ino) && ino != ORPHANS && ino in d.dirs && ip != null
  {
    ip := null;
    var p: Bytes;
    st, p := OpenHandle(txn, d, ino, gen, excl);
    if st != 0 { return; }
    ip := p;
    var ty := GetTy(p);
    if ty != DIR { st := NOTDIR; }
  }

  // mtime and ctime of an inode
  method Touch(txn: Txn, d: DirFs, ino: uint64, s: uint64, ns: uint32) returns (ip: Bytes)
    modifies d.Repr()
    requires d.Valid() && txn.volume == d.fs.volume && OkIno(d.fs.geometry, ino)
    ensures fresh(ip) && |ip.data| == 256
    ensures d.Valid() && d.dirs == old(d.dirs) && d.places == old(d.places) && d.fs.files == old(d.fs.files) &&
      d.fs.held == old(d.fs.held)
    ensures ino in old(d.fs.metas) && d.fs.metas == old(d.fs.metas)[ino := Touched(old(d.fs.metas)[ino], s, ns)] &&
      MetaOf(ip.data) == d.fs.metas[ino]
  {
    ip := d.fs.GetInode(txn, ino, true);
    var ts, tns := Stamp(ip, s, ns);
    SetMtime(ip, ts, tns);
    SetCtime(ip, ts, tns);
    d.PutInode(txn, ino, ip);
  }

  // link count and ctime of an inode
  method SetLinks(txn: Txn, d: DirFs, ino: uint64, nl: uint32, s: uint64, ns: uint32) returns (ip: Bytes)
    modifies d.Repr()
    requires d.Valid() && txn.volume == d.fs.volume && OkIno(d.fs.geometry, ino)
    ensures fresh(ip) && |ip.data| == 256
    ensures d.Valid() && d.dirs == old(d.dirs) && d.places == old(d.places) && d.fs.files == old(d.fs.files) &&
      d.fs.held == old(d.fs.held)
    ensures ino in old(d.fs.metas) && d.fs.metas == old(d.fs.metas)[ino := Relinked(old(d.fs.metas)[ino], nl, s, ns)] &&
      MetaOf(ip.data) == d.fs.metas[ino]
  {
    ip := d.fs.GetInode(txn, ino, true);
    SetNlink(ip, nl);
    var ts, tns := Stamp(ip, s, ns);
    SetCtime(ip, ts, tns);
    d.PutInode(txn, ino, ip);
  }

  // one link more or less to a directory (a sub-directory came or went); st: MLINK or SERVERFAULT when it cannot be
  method AddLink(txn: Txn, d: DirFs, ino: uint64, up: bool) returns (st: uint32)
    modifies d.Repr()
    requires d.Valid() && txn.volume == d.fs.volume && OkIno(d.fs.geometry, ino)
    ensures d.Valid() && d.dirs == old(d.dirs) && d.places == old(d.places) && d.fs.files == old(d.fs.files) &&
      d.fs.held == old(d.fs.held) && ino in old(d.fs.metas)
    ensures var m := old(d.fs.metas)[ino];
      if up && m.nlink >= MAXLINK then st == MLINK else if !up && m.nlink <= 2 then st == SERVERFAULT
      else st == 0 && d.fs.metas == old(d.fs.metas)[ino := WithNlink(m, if up then m.nlink + 1 else m.nlink - 1)]
  {
    var ip := d.fs.GetInode(txn, ino, true);
    var nl := GetNlink(ip);
    if up && nl >= MAXLINK { st := MLINK; return; }
    if !up && nl <= 2 { st := SERVERFAULT; return; }
    st := 0;
    SetNlink(ip, if up then nl + 1 else nl - 1);
    d.PutInode(txn, ino, ip);
  }

  // put a file at the head of the orphan list, unless it is on it
  method AddOrphan(txn: Txn, d: DirFs, ino: uint64)
    modifies d.Repr()
    requires d.Valid() && txn.volume == d.fs.volume && OkIno(d.fs.geometry, ino) && OkIno(d.fs.geometry, ORPHANS)
    ensures d.Valid() && d.dirs == old(d.dirs) && d.places == old(d.places) && d.fs.files == old(d.fs.files) &&
      d.fs.held == old(d.fs.held)
    ensures ino in old(d.fs.metas) && ORPHANS in old(d.fs.metas) && d.fs.metas == Orphaned(old(d.fs.metas), ino)
  {
    var ip := d.fs.GetInode(txn, ino, true);
    assert OkIno(d.fs.geometry, ORPHANS);
    var fl := GetFlags(ip);
    if fl % 2 == 1 || ino == ORPHANS { return; }
    var hp := d.fs.GetInode(txn, ORPHANS, true);
    var h := GetNext(hp);
    SetNext(ip, h);
    SetFlags(ip, fl + 1);
    d.PutInode(txn, ino, ip);
    hp := d.fs.GetInode(txn, ORPHANS, true);
    SetNext(hp, ino);
    d.PutInode(txn, ORPHANS, hp);
  }

  // after a file was cut: free what is beyond its end, now when it is little, else in the background. done: all is free
  method Release(txn: Txn, d: DirFs, ino: uint64, cut: uint64) returns (done: bool)
    modifies d.Repr()
    requires d.Valid() && txn.volume == d.fs.volume && OkIno(d.fs.geometry, ino) && OkIno(d.fs.geometry, ORPHANS)
    ensures d.Valid() && d.dirs == old(d.dirs) && d.places == old(d.places) && d.fs.files == old(d.fs.files) &&
      d.fs.held == old(d.fs.held)
    ensures ino in old(d.fs.metas) && ORPHANS in old(d.fs.metas) && ino in d.fs.metas
    ensures d.fs.metas == Released(old(d.fs.metas), ino, LeftoverOf(d.fs.metas[ino]), done) &&
      (done ==> d.fs.metas[ino].shrink == 0)
    ensures d.fs.metas[ino].used <= old(d.fs.metas)[ino].used
    ensures cut <= SMALL && Little(old(d.fs.metas)[ino], FREENOW) ==> done
  {
    assert OkIno(d.fs.geometry, ORPHANS);
    ghost var ms := d.fs.metas;
    assert ms[ino := WithLeftover(ms[ino], LeftoverOf(ms[ino]))] == ms;
    done := false;
    if cut <= SMALL { done := d.FreeSome(txn, ino, FREENOW); }
    if !done { AddOrphan(txn, d, ino); }
  }

  // nothing of it waits, and it is not on the list
  predicate Listless(m: Meta) { m.shrink == 0 && m.flags % 2 == 0 }
  // One link to ino is gone (dir: the only one). A file without links is freed at
  // once when it is small, and not on the orphan list; else it is on that. freed: the inode is free;
  // later: the background has work.
  method DropLink(txn: Txn, d: DirFs, ino: uint64, s: uint64, ns: uint32) returns (st: uint32, freed: bool, later: bool)
    modifies d.Repr()
    requires d.Valid() && txn.volume == d.fs.volume && OkIno(d.fs.geometry, ino) && 2 < ino
    requires ino in d.dirs ==> d.dirs[ino] == map[]
    requires ino in d.fs.metas && d.fs.metas[ino].nlink != 0
    ensures st == 0 && d.Valid() && ino in old(d.fs.metas) && ORPHANS in old(d.fs.metas) && ino in old(d.fs.files) &&
      ino in d.fs.metas
    ensures st == 0 ==> d.fs.metas == Dropped(old(d.fs.metas), ino, s, ns, LeftoverOf(d.fs.metas[ino]), freed)
    ensures st == 0 ==> d.fs.files == (if LastLink(old(d.fs.metas)[ino]) then old(d.fs.files)[ino := []]
      else old(d.fs.files))
    ensures st == 0 ==> d.fs.held == (if LastLink(old(d.fs.metas)[ino]) then old(d.fs.held)[ino := {}]
      else old(d.fs.held))
    ensures st == 0 && freed ==> LastLink(old(d.fs.metas)[ino]) && old(d.fs.metas)[ino].flags % 2 == 0
    ensures var m := old(d.fs.metas)[ino]; LastLink(m) && Listless(m) && m.size <= SMALL ==> freed
    ensures later <==> LastLink(old(d.fs.metas)[ino]) && !freed
    ensures st == 0 ==> d.places == old(d.places)
    ensures st == 0 && !freed ==> d.dirs == old(d.dirs)
    ensures st == 0 && freed ==> d.dirs == map x | x in old(d.dirs) && x != ino :: old(d.dirs)[x]
  {
    assert OkIno(d.fs.geometry, ORPHANS);
    ghost var m := d.fs.metas[ino];
    ghost var ms := d.fs.metas;
    freed, later := false, false;
    var ip := d.fs.GetInode(txn, ino, true);
    var nl := GetNlink(ip);
    var ty := GetTy(ip);
    var size := GetSize(ip);
    var fl := GetFlags(ip);
    if nl == 0 { st := SERVERFAULT; return; }
    st := 0;
    if ty != DIR && nl > 1 {
      ip := SetLinks(txn, d, ino, nl - 1, s, ns);
      assert OkIno(d.fs.geometry, ino);
      return;
    }
    ip := SetLinks(txn, d, ino, 0, s, ns);
    var ok := d.SetSize(txn, ino, 0);
    if !ok { st := SERVERFAULT; return; }
    assert d.fs.files[ino] == [];
    assert d.fs.held[ino] == {} by { d.fs.Bytes(ino); }
    assert d.fs.metas == ms[ino := Unlinked(m, s, ns)];
    if fl % 2 == 1 { later := true; return; }
    var done := Release(txn, d, ino, size);
    if done {
      ok := d.FreeInode(txn, ino);
      if !ok { st := SERVERFAULT; return; }
      freed := true;
    } else {
      later := true;
    }
  }

  // One step of the background: free up to max blocks of the first file of the
  // orphan list. more: the list is not empty yet. A client can see nothing
  // of it but fewer blocks. st is 0 on a sound volume. Each step leaves less to be done.
  method OrphanStep(txn: Txn, d: DirFs, max: uint64) returns (st: uint32, more: bool)
    modifies d.Repr()
    requires Sound(d) && txn.volume == d.fs.volume && OkIno(d.fs.geometry, ORPHANS)
    ensures st == 0 && Sound(d) && N.Freed(old(AbsOf(d)), AbsOf(d))
    ensures ORPHANS in old(d.fs.metas) && ORPHANS in d.fs.metas && (more <==> d.fs.metas[ORPHANS].next != 0)
    ensures 0 < max && old(d.fs.metas)[ORPHANS].next != 0 ==> Ahead(old(d.fs.metas), d.fs.metas)
  {
    assert OkIno(d.fs.geometry, ORPHANS);
    ghost var ms, dirs := d.fs.metas, d.dirs;
    var hp := d.fs.GetInode(txn, ORPHANS, true);
    var h := GetNext(hp);
    st, more := 0, false;
    if h == 0 { return; }
    Orphans.HeadOk(d.fs.geometry, ms, d.dirs);
    NameTree.Basics(d.fs.geometry, ms, d.dirs);
    assert NameTree.Fits(h, ms[h]);
    if !OkIno(d.fs.geometry, h) || h <= 2 { st := SERVERFAULT; return; }
    more := true;
    var done := d.FreeSome(txn, h, max);
    ghost var sh := LeftoverOf(d.fs.metas[h]);
    assert d.fs.metas == ms[h := WithLeftover(ms[h], sh)];
    if !done {
      StepEffect(d.fs.geometry, ms, d.fs.files, d.fs.held, dirs, d.dirs, d.places, sh);
      return;
    }
    st, more := OffList(txn, d, h);
    if st != 0 { return; }
    assert d.fs.metas == Stepped(ms, sh);
    StepEffect(d.fs.geometry, ms, d.fs.files, d.fs.held, dirs, d.dirs, d.places, sh);
  }

  // The first file of the orphan list, h, of which nothing is left to be freed, leaves it; it is free if it has no
  // links.
  method OffList(txn: Txn, d: DirFs, h: uint64) returns (st: uint32, more: bool)
    modifies d.Repr()
    requires d.Valid() && txn.volume == d.fs.volume && OkIno(d.fs.geometry, ORPHANS) && OkIno(d.fs.geometry, h) && 2 < h
    requires h in d.fs.metas && d.fs.metas[h].flags % 2 == 1 &&
      (d.fs.metas[h].nlink == 0 ==> d.fs.metas[h].size == 0 && d.fs.metas[h].shrink == 0)
    ensures st == 0 && d.Valid() && d.places == old(d.places) && d.fs.files == old(d.fs.files) &&
      d.fs.held == old(d.fs.held) && ORPHANS in old(d.fs.metas) && h in old(d.fs.metas)
    ensures old(d.fs.metas)[h].flags as int % 2 == 1 && d.fs.metas == Unlisted(old(d.fs.metas), h)
    ensures ORPHANS in d.fs.metas && (more <==> d.fs.metas[ORPHANS].next != 0)
    ensures d.dirs == (if old(d.fs.metas)[h].nlink == 0 then map x | x in old(d.dirs) && x != h ::
      old(d.dirs)[x] else old(d.dirs))
  {
    more := false;
    st := 0;
    assert OkIno(d.fs.geometry, ORPHANS);
    var ip := d.fs.GetInode(txn, h, true);
    var fl := GetFlags(ip);
    var nl := GetNlink(ip);
    var next := GetNext(ip);
    if fl % 2 == 0 { st := SERVERFAULT; return; }
    SetFlags(ip, fl - 1);
    SetNext(ip, 0);
    d.PutInode(txn, h, ip);
    var hp := d.fs.GetInode(txn, ORPHANS, true);
    SetNext(hp, next);
    d.PutInode(txn, ORPHANS, hp);
    if nl == 0 {
      var ok := d.FreeInode(txn, h);
      if !ok { st := SERVERFAULT; return; }
    }
    more := next != 0;
  }
  lemma StepEffect(g: Geometry, ms: Metas, files: Abstraction.Files, held: Abstraction.Helds, dirs: Dirs, dirs': Dirs,
    places: Abstraction.DirPlaces, sh: Leftover)
    requires NameTree.TreeOk(g, ms, dirs) && ORPHANS in ms && ms[ORPHANS].next != 0 && ms[ORPHANS].next in ms &&
      2 < ms[ORPHANS].next && OkIno(g, ms[ORPHANS].next) && sh.used <= ms[ms[ORPHANS].next].used
    requires dirs' == (if sh.shrink == 0 && ms[ms[ORPHANS].next].nlink == 0 then map x | x in dirs &&
      x != ms[ORPHANS].next :: dirs[x] else dirs)
    ensures NameTree.TreeOk(g, Stepped(ms, sh), dirs') &&
      N.Freed(Abstraction.Abs(g, ms, files, held, dirs, places),
      Abstraction.Abs(g, Stepped(ms, sh), files, held, dirs', places))
  {
    Orphans.StepOk(g, ms, dirs, dirs', sh);
    EntrySteps.StepHides(g, ms, files, held, dirs, dirs', places, sh);
  }

  // Free up to max blocks cut off file ino earlier (SHRINKFIRST was returned for it). done: it has no others than those
  // of `held`. Until then less is to be freed each time, so a call that waits for it makes a bounded number of steps.
  method Shrink(txn: Txn, d: DirFs, ino: uint64, max: uint64) returns (done: bool)
    modifies d.Repr()
    requires Sound(d) && txn.volume == d.fs.volume && 0 < max
    ensures Sound(d) && N.Freed(old(AbsOf(d)), AbsOf(d))
    ensures if done then ToFree(d, ino) == 0 else 0 < ToFree(d, ino) < old(ToFree(d, ino))
    ensures done && N.IsFile(AbsOf(d), ino) ==> AbsOf(d).nodes[ino].blocks == |AbsOf(d).nodes[ino].body.held|
  {
    done := true;
    Abstraction.At(d.fs.geometry, d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places, ino);
    if !OkIno(d.fs.geometry, ino) { return; }
    ghost var ms := d.fs.metas;
    NameTree.Basics(d.fs.geometry, ms, d.dirs);
    assert NameTree.Fits(ino, ms[ino]);
    done := d.FreeSome(txn, ino, max);
    NameTree.SetAttr(d.fs.geometry, ms, d.dirs, ino, d.fs.metas[ino]);
    Abstraction.SameButFreed(d.fs.geometry, ms, d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.dirs, d.places);
    Abstraction.At(d.fs.geometry, d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places, ino);
    d.fs.Count(ino);
  }
}
