// TRUSTED: an array of objects, each with its key: a transaction's write buffer lies in it (verified/txn/buffer.dfy).
// Go: internal/runtime/writebuffer.
include "txn.s.dfy"

module {:extern "writebuffer"} BufS {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened TxnSpec

  class {:extern "Buf"} Buf {             // tested: writebuffer.TestDeclarations, TestLarge
    ghost var keys: seq<uint64>          // of places 0, 1, ...
    ghost var objects: map<uint64, Object>     // by key

    // each place has a key of its own, and they ascend
    predicate Sorted() reads this {
      (forall i, j :: 0 <= i < j < |keys| ==> keys[i] < keys[j]) &&
        (forall i :: 0 <= i < |keys| ==> keys[i] in objects) &&
        forall k :: k in objects ==> k in keys
    }
    method {:extern "Clear"} Clear()
      modifies this ensures objects == map[] && keys == []
    method {:extern "Len"} Len() returns (n: uint64)
      ensures n as int == |keys| < 0x1_0000_0000
    // place i, with a value of no matter, before those that are there from i on
    method {:extern "Add"} Add(i: uint64, k: uint64)
      requires i as int <= |keys| && k !in objects
      modifies this
      ensures keys == old(keys)[..i as int] + [k] + old(keys)[i as int..] && objects == old(objects)[k := ObjBit(false)]
    method {:extern "SetBlk"} SetBlk(i: uint64, b: Blk)
      requires Sorted() && i as int < |keys|
      modifies this ensures keys == old(keys) && objects == old(objects)[keys[i as int] := ObjData(b.v)]
    // copies b
    method {:extern "SetBytes"} SetBytes(i: uint64, b: Bytes)
      requires Sorted() && i as int < |keys| && |b.data| == 256
      modifies this ensures keys == old(keys) && objects == old(objects)[keys[i as int] := ObjData(b.data)]
    method {:extern "SetBit"} SetBit(i: uint64, v: bool)
      requires Sorted() && i as int < |keys|
      modifies this ensures keys == old(keys) && objects == old(objects)[keys[i as int] := ObjBit(v)]
    method {:extern "KeyAt"} KeyAt(i: uint64) returns (k: uint64)
      requires i as int < |keys| ensures k == keys[i as int]
    // null: the object is not a whole block
    method {:extern "BlkAt"} BlkAt(i: uint64) returns (b: Blk?)
      requires Sorted() && i as int < |keys|
      ensures (b != null) == ObjOk(KBlock, objects[keys[i as int]])
      ensures b != null ==> objects[keys[i as int]] == ObjData(b.v)
    // is: the object is a bit
    method {:extern "BitAt"} BitAt(i: uint64) returns (is: bool, v: bool)
      requires Sorted() && i as int < |keys|
      ensures is == objects[keys[i as int]].ObjBit?
      ensures is ==> objects[keys[i as int]] == ObjBit(v)
    // lays the object of 256 bytes over w at off
    method {:extern "CopyAt"} CopyAt(i: uint64, w: Bytes, off: uint64)
      requires Sorted() && i as int < |keys| && ObjOk(KInode, objects[keys[i as int]])
      requires off as int + 256 <= |w.data|
      modifies w ensures w.data == Splice(old(w.data), off as int, objects[keys[i as int]].bytes)
  }
  method {:extern "NewBuf"} NewBuf() returns (b: Buf)       // tested: writebuffer.TestDeclarations
    ensures fresh(b) && b.keys == [] && b.objects == map[]
}
