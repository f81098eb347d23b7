include "opbase.dfy"
// GETATTR, ACCESS, SETATTR, and the attributes new objects get.
module AttrOpM {
  import opened Machine
  import opened ByteSlice
  import opened TxnS
  import opened GeometryM
  import opened InodeM
  import opened ByteM
  import opened DirFsM
  import opened AccessM
  import opened OpM

  // The attributes to set (RFC 1813, sattr3). Times: 0 leave, 1 server's, 2 the client's. mode below 4096.
  class Sattr {
    var hasMode: bool  var mode: uint32
    var hasUid: bool   var uid: uint32
    var hasGid: bool   var gid: uint32
    var hasSize: bool  var size: uint64
    var atimeHow: uint32  var atime: uint64  var atimens: uint32
    var mtimeHow: uint32  var mtime: uint64  var mtimens: uint32
    constructor Make() {
      hasMode, hasUid, hasGid, hasSize := false, false, false, false;
      mode, uid, gid, size := 0, 0, 0, 0;
      atimeHow, atime, atimens := 0, 0, 0;
      mtimeHow, mtime, mtimens := 0, 0, 0;
    }
    method SetMode(x: uint32) modifies this { hasMode, mode := true, x % 4096; }
    method SetUid(x: uint32) modifies this { hasUid, uid := true, x; }
    method SetGid(x: uint32) modifies this { hasGid, gid := true, x; }
    method SetSize(x: uint64) modifies this { hasSize, size := true, x; }
    method SetAtime(how: uint32, s: uint64, ns: uint32) modifies this { atimeHow, atime, atimens := how, s, ns; }
    method SetMtime(how: uint32, s: uint64, ns: uint32) modifies this { mtimeHow, mtime, mtimens := how, s, ns; }
    predicate method Empty() reads this {
      !hasMode && !hasUid && !hasGid && !hasSize && atimeHow == 0 && mtimeHow == 0
    }
  }

  method Getattr(txn: Txn, d: DirFs, ino: uint64, gen: uint64) returns (st: uint32, after: Bytes?)
    requires d.Valid() && txn.jrnl == d.fs.jrnl
    ensures st == 0 ==> after != null && |after.data| == 256 && ino in d.fs.metas && M(after.data) == d.fs.metas[ino] && d.fs.metas[ino].gen == gen
  {
    after := null;
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, false);
    if st == 0 { after := ip; }
  }

  method Access(txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64) returns (st: uint32, bits: uint32, after: Bytes?)
    requires d.Valid() && txn.jrnl == d.fs.jrnl
    ensures bits < 64
  {
    after, bits := null, 0;
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, false);
    if st != 0 { return; }
    after := ip;
    bits := AccessBits(c, ip);
  }

  // what can be said of the values without knowing the file
  method ArgStatus(a: Sattr) returns (st: uint32)
    ensures st == 0 && a.hasSize ==> a.size as int <= MAXFILE as int
  {
    st := 0;
    if (a.atimeHow == 2 && a.atimens >= 1_000_000_000) || (a.mtimeHow == 2 && a.mtimens >= 1_000_000_000) { st := INVAL; return; }
    if a.hasSize && a.size > MAXFILE { st := FBIG; }
  }

  // may the caller set these attributes of ip?
  method MaySetattr(c: Cred, ip: Bytes, a: Sattr) returns (st: uint32)
    requires |ip.data| == 256
  {
    st := 0;
    var own := IsOwner(c, ip);
    if a.hasMode && !own { st := PERM; return; }
    if a.hasUid && c.uid != 0 {
      var u := GetUid(ip);
      if !own || a.uid != u { st := PERM; return; }
    }
    if a.hasGid && c.uid != 0 {
      var g := GetGid(ip);
      var mine := InGroup(c, a.gid);
      if !own || (a.gid != g && !mine) { st := PERM; return; }
    }
    if (a.atimeHow == 2 || a.mtimeHow == 2) && !own { st := PERM; return; }
    if a.hasSize || a.atimeHow == 1 || a.mtimeHow == 1 {
      var w := MayData(c, ip, MAYW);
      if !w { st := ACCES; }
    }
  }

  // the time stamps of a
  method ApplyTimes(ip: Bytes, a: Sattr, s: uint64, ns: uint32)
    modifies ip
    requires |ip.data| == 256
    ensures Keeps(old(ip.data), ip.data)
  {
    if a.atimeHow == 2 { InodeM.SetAtime(ip, a.atime, a.atimens); } else if a.atimeHow != 0 { InodeM.SetAtime(ip, s, ns); }
    if a.mtimeHow == 2 { InodeM.SetMtime(ip, a.mtime, a.mtimens); } else if a.mtimeHow != 0 { InodeM.SetMtime(ip, s, ns); }
  }

  // all of a but the size, which the caller has set (and checked the rest)
  method Apply(c: Cred, ip: Bytes, a: Sattr, s: uint64, ns: uint32)
    modifies ip
    requires |ip.data| == 256
    ensures Keeps(old(ip.data), ip.data)
  {
    if a.hasUid { InodeM.SetUid(ip, a.uid); }
    if a.hasGid { InodeM.SetGid(ip, a.gid); }
    var mode := GetMode(ip);
    if a.hasMode {
      mode := a.mode;
      var g := GetGid(ip);
      var mine := InGroup(c, g);
      if c.uid != 0 && !mine { mode := DropSetgid(mode); }
    }
    var ty := GetTy(ip);
    if ty != DIR && (a.hasUid || a.hasGid || (a.hasSize && c.uid != 0)) { mode := KillPriv(mode); }
    InodeM.SetMode(ip, mode);
    if a.hasSize { InodeM.SetMtime(ip, s, ns); }
    ApplyTimes(ip, a, s, ns);
    SetCtime(ip, s, ns);
  }

  // Set the size of a regular file for SETATTR and CREATE. later: the background has blocks to free.
  method Resize(txn: Txn, d: DirFs, ino: uint64, size: uint64) returns (st: uint32, later: bool)
    modifies d, d.fs, d.fs.fs, d.fs.fs.fs, d.fs.jrnl
    requires d.Valid() && txn.jrnl == d.fs.jrnl && OkIno(d.fs.geo, ino) && ino !in d.dirs
    ensures st == 0 ==> d.Valid() && d.dirs == old(d.dirs)
    ensures st == 0 ==> ino in old(d.fs.files) && ino in d.fs.files && d.fs.files == old(d.fs.files)[ino := d.fs.files[ino]] && |d.fs.files[ino]| == size as int
    ensures st == 0 ==> forall i | 0 <= i < size as int :: d.fs.files[ino][i] == (if i < |old(d.fs.files)[ino]| then old(d.fs.files)[ino][i] else 0)
  {
    later := false;
    var ip := d.fs.GetInode(txn, ino, true);
    var was := GetSize(ip);
    var shrink := GetShrink(ip);
    if size > was && shrink != 0 { st := SHRINKFIRST; return; }
    var ok := d.SetSize(txn, ino, size);
    if !ok { st := FBIG; return; }
    st := 0;
    if size < was {
      var done := Release(txn, d, ino, was - size);
      later := !done;
    }
  }

  method Setattr(txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64, a: Sattr, guard: bool, gs: uint64, gns: uint32, s: uint64, ns: uint32)
    returns (st: uint32, before: Bytes?, after: Bytes?, later: bool)
    modifies d, d.fs, d.fs.fs, d.fs.fs.fs, d.fs.jrnl
    requires d.Valid() && txn.jrnl == d.fs.jrnl
    ensures st == 0 ==> d.Valid() && d.dirs == old(d.dirs)
    ensures st == 0 && !a.hasSize ==> d.fs.files == old(d.fs.files)
    ensures st == 0 && a.hasSize ==> ino in old(d.fs.files) && ino in d.fs.files && d.fs.files == old(d.fs.files)[ino := d.fs.files[ino]] && |d.fs.files[ino]| == a.size as int
    ensures st == 0 && a.hasSize ==> forall i | 0 <= i < a.size as int :: d.fs.files[ino][i] == (if i < |old(d.fs.files)[ino]| then old(d.fs.files)[ino][i] else 0)
    ensures st == 0 ==> after != null && |after.data| == 256 && ino in d.fs.metas && M(after.data) == d.fs.metas[ino]
  {
    before, after, later := null, null, false;
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, true);
    if st != 0 { return; }
    before := ip;
    if guard {
      var cs, cns := GetCtime(ip);
      if cs != gs || cns != gns { st := NOTSYNC; return; }
    }
    var ty := GetTy(ip);
    if a.hasSize && ty != REG { st := INVAL; return; }
    st := ArgStatus(a);
    if st != 0 { return; }
    st := MaySetattr(c, ip, a);
    if st != 0 { return; }
    if a.Empty() { after := ip; return; }
    if a.hasSize {
      assert ino !in d.dirs;
      st, later := Resize(txn, d, ino, a.size);
      if st != 0 { return; }
    }
    var np := d.fs.GetInode(txn, ino, true);
    Apply(c, np, a, s, ns);
    d.PutInode(txn, ino, np);
    after := np;
  }

  // The attributes of a new object in directory dp before the caller's wishes:
  // owner and group, mode, link count, times. The group of a setgid directory is inherited.
  method InitAttr(c: Cred, dp: Bytes, ip: Bytes, mode: uint32, s: uint64, ns: uint32)
    modifies ip
    requires |ip.data| == 256 && |dp.data| == 256 && dp != ip
    ensures Keeps(old(ip.data), ip.data)
  {
    var ty := GetTy(ip);
    var dmode := GetMode(dp);
    var dgid := GetGid(dp);
    InodeM.SetUid(ip, c.uid);
    InodeM.SetGid(ip, if dmode / 1024 % 2 == 1 then dgid else c.gid);
    InodeM.SetMode(ip, mode);
    SetNlink(ip, if ty == DIR then 2 else 1);
    InodeM.SetAtime(ip, s, ns);
    InodeM.SetMtime(ip, s, ns);
    SetCtime(ip, s, ns);
  }

  // a directory made in a setgid directory is one itself
  method InheritSetgid(dp: Bytes, ip: Bytes)
    modifies ip
    requires |ip.data| == 256 && |dp.data| == 256 && dp != ip
    ensures Keeps(old(ip.data), ip.data)
  {
    var dmode := GetMode(dp);
    var m := GetMode(ip);
    if dmode / 1024 % 2 == 1 && m / 1024 % 2 == 0 && m < 4096 { InodeM.SetMode(ip, m + 1024); }
  }
}
