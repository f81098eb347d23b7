include "opbase.dfy"
// READ, WRITE and READLINK.
//
// Reading does not change the access time: one transaction less for every READ,
// and what clients that cache expect (as a mount with noatime).
module FileOpM {
  import opened Machine
  import opened ByteSlice
  import opened TxnS
  import opened GeometryM
  import opened InodeM
  import opened ByteM
  import opened DirFsM
  import opened AccessM
  import opened OpM

  // at most len bytes at off; eof: nothing lies behind them
  method Read(txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64, off: uint64, len: uint64)
    returns (st: uint32, data: Bytes?, eof: bool, after: Bytes?)
    requires d.Valid() && txn.jrnl == d.fs.jrnl
    ensures st == 0 ==> data != null && ino in d.fs.files &&
      (off as int >= |d.fs.files[ino]| ==> data.data == [] && eof) &&
      (off as int < |d.fs.files[ino]| ==> data.data == d.fs.files[ino][off as int .. if off as int + len as int < |d.fs.files[ino]| then off as int + len as int else |d.fs.files[ino]|]) &&
      (eof <==> off as int + len as int >= |d.fs.files[ino]|)
  {
    data, eof, after := null, false, null;
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, false);
    if st != 0 { return; }
    after := ip;
    var ty := GetTy(ip);
    if ty != REG { st := INVAL; return; }
    var r := MayData(c, ip, MAYR);
    var x := May(c, ip, MAYX);
    if !r && !x { st := ACCES; return; }
    var size := GetSize(ip);
    eof := off >= size || len >= size - off;
    data := d.fs.Read(txn, ino, off, len);
  }

  // write src[so..so+len] at off
  method Write(txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64, off: uint64, src: Bytes, so: uint64, len: uint64, s: uint64, ns: uint32)
    returns (st: uint32, before: Bytes?, after: Bytes?)
    modifies d, d.fs, d.fs.fs, d.fs.fs.fs, d.fs.jrnl
    requires d.Valid() && txn.jrnl == d.fs.jrnl && so as int + len as int <= |src.data|
    ensures st == 0 ==> d.Valid() && d.dirs == old(d.dirs) && ino in old(d.fs.files) && ino !in d.dirs
    ensures st == 0 ==> d.fs.files == (if len == 0 then old(d.fs.files) else old(d.fs.files)[ino := WriteSpec(old(d.fs.files)[ino], off as int, src.data[so as int..so as int+len as int])])
    ensures st == 0 ==> after != null && |after.data| == 256 && ino in d.fs.metas && M(after.data) == d.fs.metas[ino]
  {
    before, after := null, null;
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, true);
    if st != 0 { return; }
    before := ip;
    var ty := GetTy(ip);
    if ty != REG { st := INVAL; return; }
    if off > MAXFILE || len > MAXFILE - off { st := FBIG; return; }
    var w := MayData(c, ip, MAYW);
    if !w { st := ACCES; return; }
    if len == 0 { after := ip; return; }
    var size := GetSize(ip);
    var shrink := GetShrink(ip);
    if shrink != 0 && off + len > size { st := SHRINKFIRST; return; }
    var ok := d.Write(txn, ino, off, src, so, len);
    if !ok { st := NOSPC; return; }
    var np := d.fs.GetInode(txn, ino, true);
    SetMtime(np, s, ns);
    SetCtime(np, s, ns);
    if c.uid != 0 {
      var mode := GetMode(np);
      SetMode(np, KillPriv(mode));
    }
    d.PutInode(txn, ino, np);
    after := np;
  }

  method Readlink(txn: Txn, d: DirFs, ino: uint64, gen: uint64) returns (st: uint32, target: Bytes?, after: Bytes?)
    requires d.Valid() && txn.jrnl == d.fs.jrnl
    ensures st == 0 ==> target != null && ino in d.fs.files && target.data == d.fs.files[ino] && |target.data| <= 4096
  {
    target, after := null, null;
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, false);
    if st != 0 { return; }
    after := ip;
    var ty := GetTy(ip);
    if ty != LNK { st := INVAL; return; }
    var size := GetSize(ip);
    if size > 4096 { st := SERVERFAULT; return; }
    target := d.fs.Read(txn, ino, 0, 4096);
  }
}
