include "access.dfy"
// What all procedures share: opening a handle, touching time stamps, the list of
// files that wait to be freed (the orphan list).
//
// A procedure is a method over one transaction. It returns an NFS status; 0 is
// success, and only then does the volume stay valid and may the caller commit.
// On every other status the caller aborts, so a procedure may stop anywhere.
// Attributes are returned as copies of serialized inodes; null: not known.
module OpM {
  import opened Machine
  import opened ByteSlice
  import opened TxnS
  import opened GeometryM
  import opened InodeM
  import opened ByteM
  import opened DirFsM
  import opened AccessM

  // Blocks freed in the transaction that removes or cuts a file; more wait for the background.
  const FREENOW: uint64 := 80
  const SMALL: uint64 := 262144          // a file of up to this many bytes is freed at once
  const ROOT: uint64 := 1
  const ORPHANS: uint64 := 2             // the inode whose `next` heads the orphan list

  // b is a with only such fields changed as PutInode may store
  predicate Keeps(a: seq<byte>, b: seq<byte>)
  {
    |a| == 256 && |b| == 256 && Parse(a).blks == Parse(b).blks &&
    var m, n := M(a), M(b);
    m.ty == n.ty && m.size == n.size && m.shrink == n.shrink && m.nent == n.nent
  }

  // the inode of a handle; STALE when the handle does not name a file in use
  method OpenHandle(txn: Txn, d: DirFs, ino: uint64, gen: uint64, excl: bool) returns (st: uint32, ip: Bytes)
    requires d.Valid() && txn.jrnl == d.fs.jrnl
    ensures fresh(ip) && |ip.data| == 256
    ensures st == 0 ==> OkIno(d.fs.geo, ino) && ino != ORPHANS && ino in d.fs.metas && M(ip.data) == d.fs.metas[ino] && d.fs.SameBlks(ino, ip.data)
    ensures st == 0 ==> M(ip.data).gen == gen && M(ip.data).ty != 0 && M(ip.data).nlink != 0
    ensures st == 0 ==> (ino in d.dirs <==> M(ip.data).ty == DIR)
    ensures st == 0 ==> ino in d.fs.files && |d.fs.files[ino]| == M(ip.data).size as int
  {
    st := STALE;
    if !OkIno(d.fs.geo, ino) || ino == ORPHANS { ip := NewBytes(256); return; }
    ip := d.fs.GetInode(txn, ino, excl);
    var ty := GetTy(ip);
    var nl := GetNlink(ip);
    var g := GetGen(ip);
    if ty == 0 || nl == 0 || g != gen { return; }
    st := 0;
  }

  // the inode of a directory entry; SERVERFAULT when the entry names nothing in use
  method OpenEntry(txn: Txn, d: DirFs, ino: uint64, excl: bool) returns (st: uint32, ip: Bytes)
    requires d.Valid() && txn.jrnl == d.fs.jrnl && OkIno(d.fs.geo, ino)
    ensures fresh(ip) && |ip.data| == 256
    ensures st == 0 ==> 2 < ino && ino in d.fs.metas && M(ip.data) == d.fs.metas[ino] && d.fs.SameBlks(ino, ip.data)
    ensures st == 0 ==> M(ip.data).ty != 0 && M(ip.data).nlink != 0 && (ino in d.dirs <==> M(ip.data).ty == DIR)
    ensures st == 0 ==> ino in d.fs.files && |d.fs.files[ino]| == M(ip.data).size as int
  {
    ip := d.fs.GetInode(txn, ino, excl);
    var ty := GetTy(ip);
    var nl := GetNlink(ip);
    st := if ty == 0 || nl == 0 || ino <= 2 then SERVERFAULT else 0;
  }

  // the directory of an operation on a name: handle, type, legality of the name
  method OpenDir(txn: Txn, d: DirFs, ino: uint64, gen: uint64, name: Bytes, excl: bool)
    returns (st: uint32, ip: Bytes?, dots: uint32)
    requires d.Valid() && txn.jrnl == d.fs.jrnl
    ensures ip != null ==> fresh(ip) && |ip.data| == 256
    ensures st == 0 ==> OkIno(d.fs.geo, ino) && ino != ORPHANS && ino in d.dirs && OkName(name.data)
    ensures st == 0 ==> ip != null && ino in d.fs.metas && M(ip.data) == d.fs.metas[ino]
    ensures st == 0 ==> (dots == 1 <==> name.data == [46]) && (dots == 2 <==> name.data == [46, 46])
  {
    dots := 0;
    st, ip := OpenDirHandle(txn, d, ino, gen, excl);
    if st != 0 { return; }
    st, dots := NameStatus(name);
  }

  // a handle that must be a directory's; ip: null when the handle is stale
  method OpenDirHandle(txn: Txn, d: DirFs, ino: uint64, gen: uint64, excl: bool) returns (st: uint32, ip: Bytes?)
    requires d.Valid() && txn.jrnl == d.fs.jrnl
    ensures ip != null ==> fresh(ip) && |ip.data| == 256
    ensures st == 0 ==> OkIno(d.fs.geo, ino) && ino != ORPHANS && ino in d.dirs
    ensures st == 0 ==> ip != null && ino in d.fs.metas && M(ip.data) == d.fs.metas[ino]
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
    modifies d, d.fs, d.fs.fs, d.fs.fs.fs, d.fs.jrnl
    requires d.Valid() && txn.jrnl == d.fs.jrnl && OkIno(d.fs.geo, ino)
    ensures fresh(ip) && |ip.data| == 256
    ensures d.Valid() && d.dirs == old(d.dirs) && d.fs.files == old(d.fs.files)
    ensures ino in d.fs.metas && M(ip.data) == d.fs.metas[ino] && d.fs.metas == old(d.fs.metas)[ino := d.fs.metas[ino]]
  {
    ip := d.fs.GetInode(txn, ino, true);
    SetMtime(ip, s, ns);
    SetCtime(ip, s, ns);
    d.PutInode(txn, ino, ip);
  }

  // link count and ctime of an inode
  method SetLinks(txn: Txn, d: DirFs, ino: uint64, nl: uint32, s: uint64, ns: uint32) returns (ip: Bytes)
    modifies d, d.fs, d.fs.fs, d.fs.fs.fs, d.fs.jrnl
    requires d.Valid() && txn.jrnl == d.fs.jrnl && OkIno(d.fs.geo, ino)
    ensures fresh(ip) && |ip.data| == 256
    ensures d.Valid() && d.dirs == old(d.dirs) && d.fs.files == old(d.fs.files)
    ensures ino in d.fs.metas && M(ip.data) == d.fs.metas[ino] && d.fs.metas == old(d.fs.metas)[ino := d.fs.metas[ino]]
    ensures d.fs.metas[ino].nlink == nl
  {
    ip := d.fs.GetInode(txn, ino, true);
    SetNlink(ip, nl);
    SetCtime(ip, s, ns);
    d.PutInode(txn, ino, ip);
  }

  // one link more or less to a directory (a sub-directory came or went); st: MLINK or SERVERFAULT when it cannot be
  method AddLink(txn: Txn, d: DirFs, ino: uint64, up: bool, s: uint64, ns: uint32) returns (st: uint32)
    modifies d, d.fs, d.fs.fs, d.fs.fs.fs, d.fs.jrnl
    requires d.Valid() && txn.jrnl == d.fs.jrnl && OkIno(d.fs.geo, ino)
    ensures d.Valid() && d.dirs == old(d.dirs) && d.fs.files == old(d.fs.files)
  {
    var ip := d.fs.GetInode(txn, ino, true);
    var nl := GetNlink(ip);
    if up && nl >= MAXLINK { st := MLINK; return; }
    if !up && nl <= 2 { st := SERVERFAULT; return; }
    st := 0;
    ip := SetLinks(txn, d, ino, if up then nl + 1 else nl - 1, s, ns);
  }

  // put a file at the head of the orphan list, unless it is on it
  method AddOrphan(txn: Txn, d: DirFs, ino: uint64)
    modifies d, d.fs, d.fs.fs, d.fs.fs.fs, d.fs.jrnl
    requires d.Valid() && txn.jrnl == d.fs.jrnl && OkIno(d.fs.geo, ino) && OkIno(d.fs.geo, ORPHANS)
    ensures d.Valid() && d.dirs == old(d.dirs) && d.fs.files == old(d.fs.files)
  {
    var ip := d.fs.GetInode(txn, ino, true);
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

  // after a file was cut: free what is beyond its end, now when it is little, else in the background
  method Release(txn: Txn, d: DirFs, ino: uint64, cut: uint64) returns (done: bool)
    modifies d, d.fs, d.fs.fs, d.fs.fs.fs, d.fs.jrnl
    requires d.Valid() && txn.jrnl == d.fs.jrnl && OkIno(d.fs.geo, ino) && OkIno(d.fs.geo, ORPHANS)
    ensures d.Valid() && d.dirs == old(d.dirs) && d.fs.files == old(d.fs.files)
  {
    done := false;
    if cut <= SMALL { done := d.FreeSome(txn, ino, FREENOW); }
    if !done { AddOrphan(txn, d, ino); }
  }

  // One link to ino is gone (dir: the only one). A file without links is freed at
  // once when it is small, else it goes to the orphan list. freed: the inode is free;
  // later: the background has work.
  method DropLink(txn: Txn, d: DirFs, ino: uint64, s: uint64, ns: uint32) returns (st: uint32, freed: bool, later: bool)
    modifies d, d.fs, d.fs.fs, d.fs.fs.fs, d.fs.jrnl
    requires d.Valid() && txn.jrnl == d.fs.jrnl && OkIno(d.fs.geo, ino) && 2 < ino
    requires ino in d.dirs ==> d.dirs[ino] == map[]
    ensures st == 0 ==> d.Valid()
    ensures st == 0 && !freed ==> d.dirs == old(d.dirs)
    ensures st == 0 && freed ==> d.dirs == map x | x in old(d.dirs) && x != ino :: old(d.dirs)[x]
    ensures st == 0 ==> ino in d.fs.files && d.fs.files == old(d.fs.files)[ino := d.fs.files[ino]]
  {
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
      assert OkIno(d.fs.geo, ino);
      return;
    }
    ip := SetLinks(txn, d, ino, 0, s, ns);
    var ok := d.SetSize(txn, ino, 0);
    if !ok { st := SERVERFAULT; return; }
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
  // orphan list. more: the list is not empty yet. st != 0: the list is damaged.
  method OrphanStep(txn: Txn, d: DirFs, max: uint64) returns (st: uint32, more: bool)
    modifies d, d.fs, d.fs.fs, d.fs.fs.fs, d.fs.jrnl
    requires d.Valid() && txn.jrnl == d.fs.jrnl && OkIno(d.fs.geo, ORPHANS)
    ensures st == 0 ==> d.Valid() && d.fs.files == old(d.fs.files)
  {
    var hp := d.fs.GetInode(txn, ORPHANS, true);
    var h := GetNext(hp);
    st, more := 0, false;
    if h == 0 { return; }
    if !OkIno(d.fs.geo, h) || h <= 2 { st := SERVERFAULT; return; }
    more := true;
    var done := d.FreeSome(txn, h, max);
    if !done { return; }
    var ip := d.fs.GetInode(txn, h, true);
    var fl := GetFlags(ip);
    var nl := GetNlink(ip);
    var next := GetNext(ip);
    if fl % 2 == 0 { st := SERVERFAULT; return; }
    SetFlags(ip, fl - 1);
    SetNext(ip, 0);
    d.PutInode(txn, h, ip);
    hp := d.fs.GetInode(txn, ORPHANS, true);
    SetNext(hp, next);
    d.PutInode(txn, ORPHANS, hp);
    if nl == 0 {
      var ok := d.FreeInode(txn, h);
      if !ok { st := SERVERFAULT; return; }
    }
    more := next != 0;
  }

  // Free up to max blocks cut off file ino earlier (SHRINKFIRST was returned for it).
  method Shrink(txn: Txn, d: DirFs, ino: uint64, max: uint64) returns (done: bool)
    modifies d, d.fs, d.fs.fs, d.fs.fs.fs, d.fs.jrnl
    requires d.Valid() && txn.jrnl == d.fs.jrnl
    ensures d.Valid() && d.dirs == old(d.dirs) && d.fs.files == old(d.fs.files)
  {
    done := true;
    if !OkIno(d.fs.geo, ino) { return; }
    done := d.FreeSome(txn, ino, max);
  }
}
