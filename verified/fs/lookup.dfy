include "opbase.dfy"
// LOOKUP, READDIR and READDIRPLUS.
module LookupOpM {
  import opened Machine
  import opened ByteSlice
  import opened TxnS
  import opened GeometryM
  import opened InodeM
  import opened ByteM
  import opened DirFsM
  import opened DirListS
  import opened AccessM
  import opened EffectM
  import opened OpM
  import opened AbsM
  import TreeM
  import N = NfsState
  import C = NfsCommon
  import L = NfsList

  // "." is the directory itself, ".." its parent
  method Lookup(txn: Txn, d: DirFs, c: Cred, dino: uint64, dgen: uint64, name: Bytes)
    returns (st: uint32, ino: uint64, node: Bytes?, dir: Bytes?)
    requires Sound(d) && txn.jrnl == d.fs.jrnl
    ensures st == 0 ==> node != null && |node.data| == 256 && dir != null && |dir.data| == 256
    ensures st == 0 ==> L.LookupOk(AbsOf(d), WhoOf(c), N.Handle(dino, dgen), name.data, N.Handle(ino, M(node.data).gen), FattrM(ino, M(node.data)), FattrM(dino, M(dir.data)))
    ensures st != 0 ==> L.LookupErr(AbsOf(d), WhoOf(c), N.Handle(dino, dgen), name.data, st)
  {
    DirStatus(d, dino, dgen, name.data);
    ino, node := 0, null;
    var dots: uint32;
    st, dir, dots := OpenDir(txn, d, dino, dgen, name, false);
    if st != 0 { return; }
    var ok := May(c, dir, MAYX);
    if !ok { st := ACCES; return; }
    var ip: Bytes;
    if dots == 1 { ino, node := dino, dir; return; }
    if dots == 2 {
      ino := GetParent(dir);
      TreeM.Basics(d.fs.geo, d.fs.metas, d.dirs);
      TreeM.ParentOk(d.fs.geo, d.fs.metas, d.dirs, dino);
      assert TreeM.Fits(2, d.fs.metas[2]);
      if !OkIno(d.fs.geo, ino) { st := SERVERFAULT; return; }
      ip := d.fs.GetInode(txn, ino, false);
      node := ip;
      Node(d, ino, M(node.data).gen);
      return;
    }
    var found: bool;
    found, ino := d.Lookup(txn, dino, name, false);
    if !found { st := NOENT; return; }
    TreeM.EntryOk(d.fs.geo, d.fs.metas, d.dirs, dino, name.data);
    st, ip := OpenEntry(txn, d, ino, false);
    if st != 0 { return; }
    node := ip;
    Node(d, ino, M(node.data).gen);
  }

  // Offer the entries after cookie to out; "." and ".." have the cookies 1 and 2.
  // plus: with attributes. The cookie of an entry is its place for ever, so any cookie may be resumed,
  // and the verifier is always 0.
  method Readdir(txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64, cookie: uint64, verf: uint64, plus: bool, out: List)
    returns (st: uint32, eof: bool, after: Bytes?)
    modifies out
    requires d.Valid() && txn.jrnl == d.fs.jrnl
  {
    eof := false;
    st, after := OpenDirHandle(txn, d, ino, gen, false);
    if st != 0 { return; }
    var ok := May(c, after, MAYR);
    if !ok { st := ACCES; return; }
    if cookie != 0 && verf != 0 { st := BADCOOKIE; return; }
    var k := cookie;
    var fits := true;
    if cookie < 2 {
      var up := GetParent(after);
      var b := NewBytes(4096);
      b.Set(0, 46);
      b.Set(1, 46);
      var dots := Freeze(b);
      if cookie == 0 { fits := out.Offer(ino, dots, 0, 1, 1); }
      if fits { fits := out.Offer(up, dots, 0, 2, 2); }
      k := 0;
    } else if cookie == 2 {
      k := 0;
    }
    if fits { eof := d.List(txn, ino, k, out); }
    if plus { st := ListAttrs(txn, d, out); }
  }

  // the attributes of all entries of a listing
  method ListAttrs(txn: Txn, d: DirFs, out: List) returns (st: uint32)
    modifies out
    requires d.Valid() && txn.jrnl == d.fs.jrnl
  {
    st := 0;
    var n := out.Len();
    var i: uint64 := 0;
    while i < n
      invariant i <= n && n as int == |out.got|
    {
      var x := out.InoAt(i);
      if OkIno(d.fs.geo, x) {
        var p := d.fs.GetInode(txn, x, false);
        out.AttrAt(i, p);
      }
      i := i + 1;
    }
  }
}
