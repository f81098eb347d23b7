include "opbase.dfy"
// REMOVE, RMDIR and LINK.
module RemoveOpM {
  import opened Machine
  import opened ByteSlice
  import opened TxnS
  import opened GeometryM
  import opened InodeM
  import opened ByteM
  import opened DirFsM
  import opened AccessM
  import opened OpM

  // dirs without ino when it was freed
  function Without(m: Dirs, ino: uint64, freed: bool): Dirs { if freed then map x | x in m && x != ino :: m[x] else m }

  // The entry that is to go: found, and the caller may take it out. ino is not the directory's.
  method Victim(txn: Txn, d: DirFs, c: Cred, dino: uint64, dir: Bytes, name: Bytes)
    returns (st: uint32, ino: uint64, ip: Bytes)
    requires d.Valid() && txn.jrnl == d.fs.jrnl && OkIno(d.fs.geo, dino) && dino in d.dirs && OkName(name.data) && |dir.data| == 256
    ensures fresh(ip)
    ensures st == 0 ==> name.data in d.dirs[dino] && ino == d.dirs[dino][name.data] && OkIno(d.fs.geo, ino) && 2 < ino
    ensures st == 0 ==> |ip.data| == 256 && ino in d.fs.metas && M(ip.data) == d.fs.metas[ino] && (ino in d.dirs <==> M(ip.data).ty == DIR)
  {
    var found: bool;
    found, ino := d.Lookup(txn, dino, name, true);
    if !found { st := NOENT; ip := NewBytes(0); return; }
    st, ip := OpenEntry(txn, d, ino, true);
    if st != 0 { return; }
    var no := Sticky(c, dir, ip);
    if no { st := ACCES; }
  }

  // sub: RMDIR, else REMOVE. later: the background has work
  method Remove(txn: Txn, d: DirFs, c: Cred, dino: uint64, dgen: uint64, name: Bytes, sub: bool, s: uint64, ns: uint32)
    returns (st: uint32, before: Bytes?, after: Bytes?, later: bool)
    modifies d, d.fs, d.fs.fs, d.fs.fs.fs, d.fs.jrnl
    requires d.Valid() && txn.jrnl == d.fs.jrnl
    ensures st == 0 ==> d.Valid() && dino in old(d.dirs) && name.data in old(d.dirs)[dino]
    // a directory goes by RMDIR only, and only when it is empty
    ensures st == 0 ==> var ino := old(d.dirs)[dino][name.data];
      (ino in old(d.dirs) <==> sub) && (sub ==> old(d.dirs)[ino] == map[]) &&
      (d.dirs == Without(old(d.dirs)[dino := DirDel(old(d.dirs)[dino], name.data)], ino, false) ||
       d.dirs == Without(old(d.dirs)[dino := DirDel(old(d.dirs)[dino], name.data)], ino, true))
  {
    after, later := null, false;
    var dots: uint32;
    st, before, dots := OpenDir(txn, d, dino, dgen, name, true);
    if st != 0 { return; }
    if dots != 0 { st := if sub && dots == 2 then EXIST else INVAL; return; }
    var w := May(c, before, MAYW + MAYX);
    if !w { st := ACCES; return; }
    var ino: uint64;
    var ip: Bytes;
    st, ino, ip := Victim(txn, d, c, dino, before, name);
    if st != 0 { return; }
    var ty := GetTy(ip);
    if ty == DIR && !sub { st := ISDIR; return; }
    if ty != DIR && sub { st := NOTDIR; return; }
    if sub {
      var e := d.IsEmpty(txn, ino);
      if !e { st := NOTEMPTY; return; }
    }
    assert ino != dino;
    var ok := d.Remove(txn, dino, name);
    if !ok { st := NOSPC; return; }
    var freed: bool;
    st, freed, later := DropLink(txn, d, ino, s, ns);
    if st != 0 { return; }
    assert d.dirs == Without(old(d.dirs)[dino := DirDel(old(d.dirs)[dino], name.data)], ino, freed);
    if sub {
      st := AddLink(txn, d, dino, false, s, ns);
      if st != 0 { return; }
    }
    after := Touch(txn, d, dino, s, ns);
  }

  // One more name for a file.
  method Link(txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64, dino: uint64, dgen: uint64, name: Bytes, s: uint64, ns: uint32)
    returns (st: uint32, node: Bytes?, before: Bytes?, after: Bytes?)
    modifies d, d.fs, d.fs.fs, d.fs.fs.fs, d.fs.jrnl
    requires d.Valid() && txn.jrnl == d.fs.jrnl
    ensures st == 0 ==> d.Valid() && dino in old(d.dirs) && ino !in d.dirs && name.data !in old(d.dirs)[dino]
    ensures st == 0 ==> d.dirs == old(d.dirs)[dino := old(d.dirs)[dino][name.data := ino]]
  {
    node, before, after := null, null, null;
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, true);
    if st != 0 { return; }
    node := ip;
    var ty := GetTy(ip);
    var dots: uint32;
    st, before, dots := OpenDir(txn, d, dino, dgen, name, true);
    if st != 0 { return; }
    if dots != 0 { st := EXIST; return; }
    if ty == DIR { st := INVAL; return; }
    var w := May(c, before, MAYW + MAYX);
    if !w { st := ACCES; return; }
    var found, x, hint := d.LookupHint(txn, dino, name, true);
    if found { st := EXIST; return; }
    var nl := GetNlink(ip);
    if nl >= MAXLINK { st := MLINK; return; }
    var ok := d.InsertAt(txn, dino, name, ino, hint);
    if !ok { st := NOSPC; return; }
    node := SetLinks(txn, d, ino, nl + 1, s, ns);
    after := Touch(txn, d, dino, s, ns);
  }
}
