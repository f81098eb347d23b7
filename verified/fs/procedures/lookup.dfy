include "base.dfy"
// LOOKUP.
module LookupOps {
  import opened Machine
  import opened ByteSlice
  import opened TxnS
  import opened VolumeGeometry
  import opened InodeFormat
  import opened ByteFiles
  import opened Directories
  import opened Permissions
  import opened AttributeChanges
  import opened ProcedureBase
  import opened Abstraction
  import NameTree
  import N = NfsState
  import L = NfsList

  // "." is the directory itself, ".." its parent
  method Lookup(txn: Txn, d: DirFs, c: Cred, dino: uint64, dgen: uint64, name: Bytes)
    returns (st: uint32, ino: uint64, node: Bytes?, dir: Bytes?)
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> node != null && |node.data| == 256 && dir != null && |dir.data| == 256
    ensures st == 0 ==> L.LookupOk(AbsOf(d), WhoOf(c), N.Handle(dino, dgen), name.data,
      N.Handle(ino, MetaOf(node.data).gen),
      ReplyAttr(ino, MetaOf(node.data)), ReplyAttr(dino, MetaOf(dir.data)))
    ensures st != 0 ==> L.LookupErr(AbsOf(d), WhoOf(c), N.Handle(dino, dgen), name.data, st) &&
      N.Seen(AbsOf(d), dino, Reply(dino, dir))
  {
    DirStatus(d, dino, dgen, name.data);
    Node(d, dino, dgen);
    ino, node := 0, null;
    var dots: uint32;
    st, dir, dots := OpenDir(txn, d, dino, dgen, name, false);
    if st != 0 { return; }
    var ok := May(c, dir, MAYEXEC);
    if !ok { st := ACCES; return; }
    var ip: Bytes;
    if dots == 1 { ino, node := dino, dir; return; }
    if dots == 2 {
      ino := GetParent(dir);
      NameTree.Basics(d.fs.geometry, d.fs.metas, d.dirs);
      NameTree.ParentOk(d.fs.geometry, d.fs.metas, d.dirs, dino);
      assert NameTree.Fits(2, d.fs.metas[2]);
      if !OkIno(d.fs.geometry, ino) { st := SERVERFAULT; return; }
      ip := d.fs.GetInode(txn, ino, false);
      node := ip;
      Node(d, ino, MetaOf(node.data).gen);
      return;
    }
    var found: bool;
    found, ino := d.Lookup(txn, dino, name, false);
    if !found { st := NOENT; return; }
    NameTree.EntryOk(d.fs.geometry, d.fs.metas, d.dirs, dino, name.data);
    st, ip := OpenEntry(txn, d, ino, false);
    if st != 0 { return; }
    node := ip;
    Node(d, ino, MetaOf(node.data).gen);
  }
}
