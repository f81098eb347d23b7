// Numbers in byte sequences: what a store changes, and what it leaves alone.
include "../../trusted/bytes.s.dfy"
module Marshal {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened Numbers

  lemma U64AtZeros(n: nat, off: int)
    requires 0 <= off && off + 8 <= n
    ensures U64At(Zeros(n), off) == 0
  {
    assert Zeros(n)[off..off+8] == [0,0,0,0,0,0,0,0];
    Dec64Zero();
  }
  lemma U32AtZeros(n: nat, off: int)
    requires 0 <= off && off + 4 <= n
    ensures U32At(Zeros(n), off) == 0
  {
    assert Zeros(n)[off..off+4] == [0,0,0,0];
    Dec32Zero();
  }

  lemma SpliceEnc64(s: seq<byte>, off: int, x: uint64)
    requires 0 <= off && off + 8 <= |s|
    ensures U64At(Splice(s, off, Enc64(x)), off) == x
  {
    assert Splice(s, off, Enc64(x))[off..off+8] == Enc64(x);
  }
  lemma SpliceEnc32(s: seq<byte>, off: int, x: uint32)
    requires 0 <= off && off + 4 <= |s|
    ensures U32At(Splice(s, off, Enc32(x)), off) == x
  {
    assert Splice(s, off, Enc32(x))[off..off+4] == Enc32(x);
  }
  // numbers that do not overlap a splice are unchanged
  lemma SpliceFrame(s: seq<byte>, off: int, e: seq<byte>)
    requires 0 <= off && off + |e| <= |s|
    ensures var t := Splice(s, off, e);
      (forall o: int {:trigger U64At(t, o)} | 0 <= o && o + 8 <= |s| && (o + 8 <= off || off + |e| <= o) ::
        U64At(t, o) == U64At(s, o)) &&
      (forall o: int {:trigger U32At(t, o)} | 0 <= o && o + 4 <= |s| && (o + 4 <= off || off + |e| <= o) ::
        U32At(t, o) == U32At(s, o))
  {
    var t := Splice(s, off, e);
    forall o: int {:trigger U64At(t, o)} | 0 <= o && o + 8 <= |s| && (o + 8 <= off || off + |e| <= o)
      ensures U64At(t, o) == U64At(s, o)
    {
      forall i | 0 <= i < 8 ensures t[o..o+8][i] == s[o..o+8][i] { assert t[o+i] == s[o+i]; }
      assert t[o..o+8] == s[o..o+8];
    }
    forall o: int {:trigger U32At(t, o)} | 0 <= o && o + 4 <= |s| && (o + 4 <= off || off + |e| <= o)
      ensures U32At(t, o) == U32At(s, o)
    {
      forall i | 0 <= i < 4 ensures t[o..o+4][i] == s[o..o+4][i] { assert t[o+i] == s[o+i]; }
      assert t[o..o+4] == s[o..o+4];
    }
  }

  method Put64(b: Bytes, off: uint64, x: uint64)
    modifies b
    requires off as int + 8 <= |b.data|
    ensures |b.data| == |old(b.data)|
    ensures U64At(b.data, off as int) == x
    ensures forall o: int {:trigger U64At(b.data, o)} | 0 <= o && o + 8 <= |b.data| &&
      (o + 8 <= off as int || off as int + 8 <= o) :: U64At(b.data, o) == U64At(old(b.data), o)
    ensures forall o: int {:trigger U32At(b.data, o)} | 0 <= o && o + 4 <= |b.data| &&
      (o + 4 <= off as int || off as int + 8 <= o) :: U32At(b.data, o) == U32At(old(b.data), o)
  {
    b.PutU64(off, x);
    SpliceEnc64(old(b.data), off as int, x);
    SpliceFrame(old(b.data), off as int, Enc64(x));
  }
  method Put32(b: Bytes, off: uint64, x: uint32)
    modifies b
    requires off as int + 4 <= |b.data|
    ensures |b.data| == |old(b.data)|
    ensures U32At(b.data, off as int) == x
    ensures forall o: int {:trigger U64At(b.data, o)} | 0 <= o && o + 8 <= |b.data| &&
      (o + 8 <= off as int || off as int + 4 <= o) :: U64At(b.data, o) == U64At(old(b.data), o)
    ensures forall o: int {:trigger U32At(b.data, o)} | 0 <= o && o + 4 <= |b.data| &&
      (o + 4 <= off as int || off as int + 4 <= o) :: U32At(b.data, o) == U32At(old(b.data), o)
  {
    b.PutU32(off, x);
    SpliceEnc32(old(b.data), off as int, x);
    SpliceFrame(old(b.data), off as int, Enc32(x));
  }
}
