// A new volume, seen from the top: it satisfies the invariants of directories and
// of the tree too, its root directory is empty and has the attributes asked for.
include "../directories/directories.dfy"
include "firstinodes.dfy"
include "../tree/tree.dfy"
module Mkfs {
  import opened Machine
  import opened TxnSpec
  import opened TxnS
  import opened VolumeGeometry
  import opened InodeFormat
  import opened BlockStore
  import opened ByteFiles
  import opened DirLayout
  import opened Directories
  import FirstInodes
  import NameTree

  // the volume without files becomes one with an empty root directory
  method Format(txn: Txn, geo: Geo, jrnl: Jrnl, mode: uint32, uid: uint32, gid: uint32, s: uint64, ns: uint32) returns (d: DirFs)
    modifies jrnl
    requires GeoOk(geo) && jrnl.Valid() && KindsOk(geo, jrnl.kinds) && FirstInodes.ZeroDisk(geo, jrnl.data) && txn.jrnl == jrnl && mode < 4096
    ensures fresh(d) && d.Valid() && d.fs.geo == geo && d.fs.jrnl == jrnl
    ensures 1 in d.fs.metas && d.fs.metas[1] == FirstInodes.RootMeta(mode, uid, gid, s, ns)
    ensures d.dirs == map[1 := map[]] && NameTree.TreeOk(geo, d.fs.metas, d.dirs)
  {
    var f := FirstInodes.Format(txn, geo, jrnl, mode, uid, gid, s, ns);
    d := new DirFs.Recover(f);
    d.dirs, d.ats := map[1 := map[]], map[1 := map[]];
    DirEmpty(map[]);
    forall i: uint64 | OkIno(geo, i) ensures i in f.metas && (i in d.dirs <==> f.metas[i].ty == 2)
    { if 2 < i { assert f.metas[i] == NewMeta(0, 0); } }
    NameTree.FormatTree(geo, f.metas);
  }
}
