// The first block of the inode bitmap and that of the inode table of a new volume: the root directory, and the reserved
// inode.
include "../format/inode.dfy"
include "../../lib/bits.dfy"
module FirstInodes {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened Bits
  import opened Marshal
  import opened InodeFormat

  // An inode with the attributes m, and without blocks. Type 8 is none of RFC 1813's, so that no request reaches the
  // reserved inode.
  predicate IsEmpty(b: seq<byte>, m: Meta)
  { |b| == 256 && Parse(b).meta == m && forall k: int | 0 <= k < 15 :: Parse(b).blks[k] == 0 }
  function RootMeta(mode: uint32, uid: uint32, gid: uint32, s: uint64, ns: uint32): Meta
  { Meta(2, mode, 2, uid, gid, 0, 0, 0, 0, 1, s, s, s, ns, ns, ns, 0, 1, 0, 0, 0, 0, 0) }
  // what inode i is, if the root directory has the attributes m
  function FirstMeta(m: Meta, i: int): Meta { if i == 1 then m else if i == 2 then NewMeta(8, 1) else NewMeta(0, 0) }
  predicate Table(b: seq<byte>, m: Meta)
  { |b| == 4096 && forall i: int {:trigger FirstMeta(m, i)} | 0 <= i < 16 ::
    IsEmpty(b[256 * i .. 256 * i + 256], FirstMeta(m, i)) }
  predicate Bitmap(b: seq<byte>)
  { |b| == 4096 && forall i: int {:trigger BlockBit(b, i)} | 0 <= i < 32768 :: BlockBit(b, i) == (i == 1 || i == 2) }

  lemma NoInode()
    ensures IsEmpty(Zeros(256), NewMeta(0, 0))
  { ParseZeros(); }

  // The root directory, made at time s, ns.
  method Root(mode: uint32, uid: uint32, gid: uint32, s: uint64, ns: uint32) returns (ip: Bytes)
    ensures fresh(ip) && IsEmpty(ip.data, RootMeta(mode, uid, gid, s, ns))
  {
    ip := NewBytes(256);
    ParseZeros();
    SetTy(ip, 2);
    SetGen(ip, 1);
    SetMode(ip, mode);
    SetNlink(ip, 2);
    SetUid(ip, uid);
    SetGid(ip, gid);
    SetAtime(ip, s, ns);
    SetMtime(ip, s, ns);
    SetCtime(ip, s, ns);
    SetParent(ip, 1);
  }
  method Reserved() returns (ip: Bytes)
    ensures fresh(ip) && IsEmpty(ip.data, NewMeta(8, 1))
  {
    ip := NewBytes(256);
    ParseZeros();
    SetTy(ip, 8);
    SetGen(ip, 1);
  }
  method FirstTable(mode: uint32, uid: uint32, gid: uint32, s: uint64, ns: uint32) returns (b: Blk)
    ensures Table(b.v, RootMeta(mode, uid, gid, s, ns))
  {
    ghost var m := RootMeta(mode, uid, gid, s, ns);
    var r := Root(mode, uid, gid, s, ns);
    var x := Reserved();
    var y := NewBytes(4096);
    y.CopyFrom(256, r, 0, 256);
    assert r.data[0..256] == r.data && x.data[0..256] == x.data;
    assert y.data[256..512] == r.data && forall k :: 0 <= k < 4096 && !(256 <= k < 512) ==> y.data[k] == 0;
    y.CopyFrom(512, x, 0, 256);
    assert y.data[512..768] == x.data;
    assert y.data[256..512] == r.data && forall k :: 0 <= k < 4096 && !(256 <= k < 768) ==> y.data[k] == 0;
    forall i: int | 0 <= i < 16 ensures IsEmpty(y.data[256 * i .. 256 * i + 256], FirstMeta(m, i)) {
      if i != 1 && i != 2 { assert y.data[256 * i .. 256 * i + 256] == Zeros(256); NoInode(); }
    }
    b := Freeze(y);
  }
  method FirstBitmap() returns (b: Blk)
    ensures Bitmap(b.v)
  {
    var y := NewBytes(4096);
    y.Set(0, 6);
    forall i: int | 0 <= i < 32768
      ensures BlockBit(y.data, i) == (i == 1 || i == 2)
      { if i < 8 { Six(i as uint64); } else { ZeroBit((i % 8) as uint64); } }
    b := Freeze(y);
  }
  lemma ZeroBit(i: uint64)
    requires i < 8
    ensures !BitOf(0, i)
    decreases i
  { if i > 0 { ZeroBit(i - 1); } }
  lemma Six(i: uint64)
    requires i < 8
    ensures BitOf(6, i) == (i == 1 || i == 2)
  {
    if i == 1 { assert BitOf(6, 1) == BitOf(3, 0); }
    if i == 2 { assert BitOf(6, 2) == BitOf(3, 1) == BitOf(1, 0); }
    if i > 2 { assert BitOf(6, i) == BitOf(3, i - 1) == BitOf(1, i - 2) == BitOf(0, i - 3); ZeroBit(i - 3); }
  }
}
