// That there is something for the proofs to speak of: volumes of this layout are possible, and on one whose objects are
// zeros, as a new journal has them, are 16 empty files. Without this, the contracts of simplenfs.dfy might demand
// what never is, and promise nothing.
include "simplenfs.dfy"

module SimpleNew {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened Numbers
  import opened TxnSpec
  import opened TxnS
  import opened SimpleSpec
  import opened SimpleOps

  // what VolumeObjects.Valid says of an object of that class, of which there are none in a proof
  predicate ValidWith(kinds: map<uint64, Kind>, d: Objects) {
    forall a: Addr | a.blkno in kinds && OffOk(kinds[a.blkno], a.off) :: a in d && ObjOk(kinds[a.blkno], d[a])
  }
  lemma SameAsValid(j: VolumeObjects) ensures j.Valid() <==> ValidWith(j.kinds, j.data) {}

  predicate Zero(d: Objects) { forall a | a in d :: match d[a] case ObjBit(b) => !b case ObjData(x) => x == Zeros(|x|) }

  // A valid volume of zeros satisfies the invariant, and its files are empty.
  lemma ZerosAreNew(first: uint64, kinds: map<uint64, Kind>, d: Objects)
    requires Layout(first, kinds) && ValidWith(kinds, d) && Zero(d)
    ensures Inv(first, d) && New(Abs(first, d))
  {
    forall f: uint64 | f < FILES ensures Sound(first, d, f) && FileOf(first, d, f) == File([], 0) {
      var a, b := Addr(first, MetaOff(f)), Addr(DataBlk(first, f), 0);
      assert a in d && ObjOk(KInode, d[a]) && b in d && ObjOk(KBlock, d[b]);
      assert d[a].bytes[0..8] == [0,0,0,0,0,0,0,0] == d[a].bytes[8..16];
      Dec64Zero();
    }
    var s := Abs(first, d);
    forall i | 0 <= i < |s| ensures s[i] == File([], 0) { assert s[i as uint64] == FileOf(first, d, i as uint64); }
  }

  // And there is one.
  function Objs(first: uint64, n: uint64): Objects
    requires Fits(first) && n <= FILES
    ensures forall f: uint64 {:trigger MetaOff(f)} | f < n :: Addr(first, MetaOff(f)) in Objs(first, n) &&
      Objs(first, n)[Addr(first, MetaOff(f))] == ObjData(Zeros(256))
    ensures forall f: uint64 {:trigger DataBlk(first, f)} | f < n :: Addr(DataBlk(first, f), 0) in Objs(first, n) &&
      Objs(first, n)[Addr(DataBlk(first, f), 0)] == ObjData(Zeros(4096))
    ensures Zero(Objs(first, n))
  {
    if n == 0 then map[]
    else Objs(first, n - 1)[Addr(first, MetaOff(n - 1)) := ObjData(Zeros(256))]
      [Addr(DataBlk(first, n - 1), 0) := ObjData(Zeros(4096))]
  }
  lemma Exists(first: uint64) returns (kinds: map<uint64, Kind>, d: Objects)
    requires Fits(first)
    ensures Layout(first, kinds) && ValidWith(kinds, d) && Inv(first, d) && New(Abs(first, d))
  {
    kinds := map b: uint64 | first <= b <= first + FILES :: if b == first then KInode else KBlock;
    d := Objs(first, FILES);
    forall a: Addr | a.blkno in kinds && OffOk(kinds[a.blkno], a.off) ensures a in d && ObjOk(kinds[a.blkno], d[a]) {
      if a.blkno == first { assert a.off == MetaOff(a.off / 2048); }
      else { assert a.blkno == DataBlk(first, a.blkno - first - 1) && a.off == 0; }
    }
    ZerosAreNew(first, kinds, d);
  }
}
