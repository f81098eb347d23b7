// TRUSTED: a transaction's write buffer. Go: internal/extern/dbuf.
//
// A map from an object's key to its new value, a set of keys with an order.
include "txn.s.dfy"

module {:extern "dbuf"} BufS {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened TxnSpec

  class {:extern "Buf"} Buf {             // tested: dbuf.TestDeclarations, TestLarge
    ghost var m: map<uint64, Object>
    ghost var keys: seq<uint64>          // in ascending order, after Sort

    predicate Sorted() reads this {
      (forall i, j :: 0 <= i < j < |keys| ==> keys[i] < keys[j]) &&
      (forall i :: 0 <= i < |keys| ==> keys[i] in m) &&
      (forall k :: k in m ==> k in keys) && |keys| < 0x1_0000_0000
    }
    method {:extern "Clear"} Clear()
      modifies this ensures m == map[]
    method {:extern "Len"} Len() returns (n: uint64)
      ensures n as int == |m|
    method {:extern "PutBlk"} PutBlk(k: uint64, b: Blk)
      modifies this ensures m == old(m)[k := ObjData(b.v)]
    // copies b
    method {:extern "PutBytes"} PutBytes(k: uint64, b: Bytes)
      requires |b.data| == 256
      modifies this ensures m == old(m)[k := ObjData(b.data)]
    method {:extern "PutBit"} PutBit(k: uint64, v: bool)
      modifies this
      ensures m == old(m)[k := ObjBit(v)]

    // null, or found = false: not in the buffer
    method {:extern "GetBlk"} GetBlk(k: uint64) returns (b: Blk?)
      requires k in m ==> ObjOk(KBlock, m[k])
      ensures (b != null) == (k in m)
      ensures b != null ==> m[k] == ObjData(b.v)
    method {:extern "GetBytes"} GetBytes(k: uint64, b: Bytes) returns (found: bool)
      requires (k in m ==> ObjOk(KInode, m[k])) && |b.data| == 256
      modifies b ensures found == (k in m) && if found then m[k] == ObjData(b.data) else b.data == old(b.data)
    method {:extern "GetBit"} GetBit(k: uint64) returns (found: bool, v: bool)
      requires k in m ==> ObjOk(KBit, m[k])
      ensures found == (k in m)
      ensures found ==> m[k] == ObjBit(v)

    // the objects in ascending order of their keys
    method {:extern "Sort"} Sort()
      modifies this ensures m == old(m) && Sorted() && |keys| == |m|
    method {:extern "KeyAt"} KeyAt(i: uint64) returns (k: uint64)
      requires Sorted() && i as int < |keys| ensures k == keys[i as int]
    // null: the object is not a whole block
    method {:extern "BlkAt"} BlkAt(i: uint64) returns (b: Blk?)
      requires Sorted() && i as int < |keys|
      ensures (b != null) == ObjOk(KBlock, m[keys[i as int]])
      ensures b != null ==> m[keys[i as int]] == ObjData(b.v)
    // is: the object is a bit
    method {:extern "BitAt"} BitAt(i: uint64) returns (is: bool, v: bool)
      requires Sorted() && i as int < |keys|
      ensures is == m[keys[i as int]].ObjBit?
      ensures is ==> m[keys[i as int]] == ObjBit(v)
    // lays the object of 256 bytes over w at off
    method {:extern "CopyAt"} CopyAt(i: uint64, w: Bytes, off: uint64)
      requires Sorted() && i as int < |keys| && ObjOk(KInode, m[keys[i as int]])
      requires off as int + 256 <= |w.data|
      modifies w ensures w.data == Splice(old(w.data), off as int, m[keys[i as int]].bs)
  }
  method {:extern "NewBuf"} NewBuf() returns (b: Buf)       // tested: dbuf.TestDeclarations
    ensures fresh(b) && b.m == map[]
}
