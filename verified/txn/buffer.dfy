// A transaction's write buffer: the objects that it has written, in the order of their keys, which is that in
// which a commit lays them over their blocks.
include "../trusted/writebuffer.s.dfy"

module BufferM {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened TxnSpec
  import opened BufS

  // The place of object k; if it is not there, the one that it belongs in.
  method Locate(b: Buf, k: uint64) returns (i: uint64, found: bool)
    requires b.Sorted()
    ensures i as int <= |b.keys| && found == (k in b.objects)
    ensures found ==> i as int < |b.keys| && b.keys[i as int] == k
    ensures !found ==> Between(b.keys, i as int, k)
  {
    var hi := b.Len();
    i := 0;
    while i < hi
      invariant i <= hi && hi as int <= |b.keys| < 0x1_0000_0000
      invariant forall j :: 0 <= j < i as int ==> b.keys[j] < k
      invariant forall j :: hi as int <= j < |b.keys| ==> k < b.keys[j]
    {
      var mid := i + (hi - i) / 2;
      var x := b.KeyAt(mid);
      if x == k { return mid, true; }
      if x < k { i := mid + 1; } else { hi := mid; }
    }
    found := false;
  }
  predicate Between(keys: seq<uint64>, i: int, k: uint64) {
    0 <= i <= |keys| && (forall j :: 0 <= j < i ==> keys[j] < k) && forall j :: i <= j < |keys| ==> k < keys[j]
  }

  // The place of object k, which is made if need be.
  method Make(b: Buf, k: uint64) returns (i: uint64)
    requires b.Sorted()
    modifies b
    ensures b.Sorted() && i as int < |b.keys| && b.keys[i as int] == k
    ensures forall v :: b.objects[k := v] == old(b.objects)[k := v]
  {
    var found;
    i, found := Locate(b, k);
    if found { return; }
    ghost var keys := b.keys;
    b.Add(i, k);
    forall x | x in b.objects ensures x in b.keys {
      if x == k { assert b.keys[i as int] == k; }
      else {
        var j :| 0 <= j < |keys| && keys[j] == x;
        assert b.keys[if j < i as int then j else j + 1] == x;
      }
    }
  }
  method BufferBlk(b: Buf, k: uint64, v: Blk)
    requires b.Sorted()
    modifies b
    ensures b.Sorted() && b.objects == old(b.objects)[k := ObjData(v.v)]
  {
    var i := Make(b, k);
    b.SetBlk(i, v);
  }
  // copies v
  method BufferBytes(b: Buf, k: uint64, v: Bytes)
    requires b.Sorted() && |v.data| == 256
    modifies b
    ensures b.Sorted() && b.objects == old(b.objects)[k := ObjData(v.data)]
  {
    var i := Make(b, k);
    b.SetBytes(i, v);
  }
  method BufferBit(b: Buf, k: uint64, v: bool)
    requires b.Sorted()
    modifies b
    ensures b.Sorted() && b.objects == old(b.objects)[k := ObjBit(v)]
  {
    var i := Make(b, k);
    b.SetBit(i, v);
  }

  // null, or found = false: it is not in the buffer
  method BufferedBlk(b: Buf, k: uint64) returns (v: Blk?)
    requires b.Sorted() && (k in b.objects ==> ObjOk(KBlock, b.objects[k]))
    ensures (v != null) == (k in b.objects)
    ensures v != null ==> b.objects[k] == ObjData(v.v)
  {
    var i, found := Locate(b, k);
    if !found { return null; }
    v := b.BlkAt(i);
  }
  method BufferedBytes(b: Buf, k: uint64, v: Bytes) returns (found: bool)
    requires b.Sorted() && (k in b.objects ==> ObjOk(KInode, b.objects[k])) && |v.data| == 256
    modifies v
    ensures found == (k in b.objects) && if found then b.objects[k] == ObjData(v.data) else v.data == old(v.data)
  {
    var i;
    i, found := Locate(b, k);
    if found { b.CopyAt(i, v, 0); }
  }
  method BufferedBit(b: Buf, k: uint64) returns (found: bool, v: bool)
    requires b.Sorted() && (k in b.objects ==> ObjOk(KBit, b.objects[k]))
    ensures found == (k in b.objects)
    ensures found ==> b.objects[k] == ObjBit(v)
  {
    var i, is;
    i, found := Locate(b, k);
    v := false;
    if found { is, v := b.BitAt(i); }
  }
}
