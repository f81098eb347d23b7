// Objects within blocks: what a block says about an object, and changing one
// object of a block while all others keep their values.
include "../trusted/txn.s.dfy"
include "../lib/bits.dfy"

module ObjectsM {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened TxnSpec
  import opened Bits

  // The key of an object orders the locks and names the object in memory.
  function method Key(a: uint64, off: uint64): uint64
    requires a < 0x1_0000_0000_0000 && off < 32768
  { a * 32768 + off }
  function method KeyBlk(k: uint64): uint64 { k / 32768 }
  function method KeyOff(k: uint64): uint64 { k % 32768 }

  function method Pow2(i: uint64): (p: byte)
    requires i < 8
    ensures p as int <= Bound(i)
    decreases i
  { if i == 0 then 1 else 2 * Pow2(i - 1) }
  function Bound(i: uint64): int
    requires i < 8
  {
    if i == 0 then 1 else if i == 1 then 2 else if i == 2 then 4 else if i == 3 then 8 else if i == 4 then 16
      else if i == 5 then 32 else if i == 6 then 64 else 128
  }

  // adding or taking away 2^i, whichever stays clear of the other bits, changes bit i only
  lemma FlipOn(b: byte, i: uint64, max: int)
    requires i < 8 && !BitOf(b, i)
    requires (max == 255 || max == 127 || max == 63 || max == 31 || max == 15 || max == 7 || max == 3 || max == 1) &&
      b as int <= max && Bound(i) <= max
    ensures b as int + Pow2(i) as int <= max
    ensures forall j: uint64 :: j < 8 ==> BitOf(b + Pow2(i), j) == (if j == i then true else BitOf(b, j))
    decreases i
  {
    if i > 0 {
      FlipOn(b / 2, i - 1, max / 2);
      assert (b + Pow2(i)) / 2 == b / 2 + Pow2(i - 1);
      forall j: uint64 | j < 8 ensures BitOf(b + Pow2(i), j) == (if j == i then true else BitOf(b, j)) {
        if j > 0 { assert BitOf(b + Pow2(i), j) == BitOf(b / 2 + Pow2(i - 1), j - 1); }
      }
    } else {
      assert (b + 1) / 2 == b / 2;
    }
  }
  lemma FlipOff(b: byte, i: uint64)
    requires i < 8 && BitOf(b, i)
    ensures b >= Pow2(i)
    ensures forall j: uint64 :: j < 8 ==> BitOf(b - Pow2(i), j) == (if j == i then false else BitOf(b, j))
    decreases i
  {
    if i > 0 {
      FlipOff(b / 2, i - 1);
      assert (b - Pow2(i)) / 2 == b / 2 - Pow2(i - 1);
      forall j: uint64 | j < 8 ensures BitOf(b - Pow2(i), j) == (if j == i then false else BitOf(b, j)) {
        if j > 0 { assert BitOf(b - Pow2(i), j) == BitOf(b / 2 - Pow2(i - 1), j - 1); }
      }
    } else {
      assert (b - 1) / 2 == b / 2;
    }
  }

  // what block contents v say about the object at bit offset off
  function Val(v: seq<byte>, kd: Kind, off: uint64): Object {
    if |v| != 4096 || !OffOk(kd, off) then ObjBit(false) else
    match kd
    case KBit => ObjBit(BitOf(v[off as int / 8], off % 8))
    case KInode => ObjData(v[off as int / 8 .. off as int / 8 + 256])
    case KBlock => ObjData(v)
  }
  // w is v with the object at off replaced by o, and nothing else
  predicate Replaced(v: seq<byte>, w: seq<byte>, kd: Kind, off: uint64, o: Object) {
    |w| == 4096 && Val(w, kd, off) == o &&
    forall x {:trigger Val(w, kd, x)} :: OffOk(kd, x) && x != off ==> Val(w, kd, x) == Val(v, kd, x)
  }

  method PutBit(w: Bytes, off: uint64, v: bool)
    requires |w.data| == 4096 && off < 32768
    modifies w
    ensures Replaced(old(w.data), w.data, KBit, off, ObjBit(v))
  {
    var b := w.Get(off / 8);
    var i := off % 8;
    var is := BitOf(b, i);
    ghost var v0 := w.data;
    if is != v {
      var c: byte;
      if v { FlipOn(b, i, 255); c := b + Pow2(i); } else { FlipOff(b, i); c := b - Pow2(i); }
      w.Set(off / 8, c);
      forall x: uint64 | OffOk(KBit, x) && x != off
        ensures Val(w.data, KBit, x) == Val(v0, KBit, x)
      {
        if x / 8 == off / 8 { assert x % 8 != off % 8; }
      }
    }
  }
  // after 256 bytes at off/8 were replaced by s
  lemma PutBytes(v: seq<byte>, w: seq<byte>, off: uint64, s: seq<byte>)
    requires |v| == 4096 && OffOk(KInode, off) && |s| == 256
    requires w == Splice(v, off as int / 8, s)
    ensures Replaced(v, w, KInode, off, ObjData(s))
  {
    var p := off as int / 8;
    assert w[p .. p + 256] == s;
    forall x: uint64 | OffOk(KInode, x) && x != off
      ensures Val(w, KInode, x) == Val(v, KInode, x)
    {
      var q := x as int / 8;
      assert q + 256 <= p || p + 256 <= q;
      assert w[q .. q + 256] == v[q .. q + 256];
    }
  }
}
