// A volume as the procedures take it: the layers are put one on the other, over the objects that are there. What these
// hold is what the procedures start from, whoever left it: mkfs, a crash, or transactions.
include "remount.dfy"
module Opening {
  import opened Machine
  import opened TxnS
  import opened VolumeGeometry
  import opened BlockStore
  import opened BlockTree
  import opened ByteFiles
  import opened Directories
  import opened Remount
  import Op = ProcedureBase

  // v: what the objects of volume hold
  method Open(g: Geometry, volume: VolumeObjects, ghost v: Volume) returns (d: DirFs)
    requires volume.Valid() && GeometryOk(g) && KindsOk(g, volume.kinds) && BitmapsOk(g, volume) &&
      Holds(g, volume.data, v)
    ensures fresh(d) && fresh(d.Repr() - {volume}) && d.fs.geometry == g && d.fs.volume == volume && VolumeOf(d) == v
    ensures Op.Sound(d) && Op.AbsOf(d) == Meaning(g, v)
  {
    var store := new BlockFs.Recover(g, volume);
    store.inodes, store.blocks, store.used := v.inodes, v.blocks, v.used;
    var trees := new BlockTreeFs.Recover(store);
    trees.blockMap, trees.owner, trees.data := v.blockMap, v.owner, v.data;
    var files := new ByteFs.Recover(trees, g, volume);
    files.metas, files.files, files.held := v.metas, v.files, v.held;
    d := new DirFs.Recover(files);
    d.dirs, d.places := v.dirs, v.places;
    SoundOf(d);
  }
}
