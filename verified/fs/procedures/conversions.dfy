// What the server itself takes out of inodes and records, and puts into records: the attributes of replies, sizes that
// cannot be, and what tells calls and clients apart. So only this and the formats know where in them it lies.
include "records.dfy"
module Conversions {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened Marshal
  import opened InodeFormat
  import opened AttributeChanges
  import opened ProcedureBase
  import opened Records
  import N = NfsState
  import O = NfsOnce

  const MAXFILE: uint64 := 549755813888

  // The attributes of a reply, and the generation for a handle. They are fields of an object, since a caller may have
  // that on its stack: a datatype would be on the heap.
  class Attributes {
    var ty: uint32
    var mode: uint32
    var nlink: uint32
    var uid: uint32
    var gid: uint32
    var major: uint32
    var minor: uint32
    var size: uint64
    var used: uint64
    var gen: uint64
    var atime: uint64
    var atimens: uint32
    var mtime: uint64
    var mtimens: uint32
    var ctime: uint64
    var ctimens: uint32

    // These are what a reply has of inode i.
    predicate Show(i: uint64, reply: Option<N.Fattr>) reads this {
      reply == Some(N.Fattr(ty, mode, nlink, uid, gid, size as int, used as int, major, minor, i,
        N.Time(atime, atimens), N.Time(mtime, mtimens), N.Time(ctime, ctimens)))
    }
    // Takes them out of an inode. (On a volume that contradicts itself a mode is cut off, and what a file uses may be
    // 0.)
    method Decode(b: Bytes)
      modifies this
      requires |b.data| == 256
      ensures MetaOf(b.data).mode < 4096 && MetaOf(b.data).size <= 549755813888 ==>
        forall i: uint64 :: Show(i, Reply(i, b))
      ensures gen == MetaOf(b.data).gen
    {
      ty := GetTy(b); mode := GetMode(b); nlink := GetNlink(b); size := GetSize(b); gen := GetGen(b);
      uid := GetUid(b); gid := GetGid(b);
      mode := mode % 4096;
      if uid == 0xffff_ffff { uid := 65534; }
      if gid == 0xffff_ffff { gid := 65534; }
      used := Used(b);
      reveal Parse();
      major, minor := b.U32(20), b.U32(24);
      atime, mtime, ctime := b.U64(56), b.U64(64), b.U64(72);
      atimens, mtimens, ctimens := b.U32(80), b.U32(84), b.U32(88);
    }
  }
  // Can a file have such sizes? (One that cannot be would be walked through.)
  method SizesOk(b: Bytes) returns (ok: bool)
    requires |b.data| == 256
    ensures ok <==> MetaOf(b.data).size <= MAXFILE && MetaOf(b.data).shrink <= MAXFILE + 4096
  {
    var size := GetSize(b);
    var shrink := GetShrink(b);
    ok := size <= MAXFILE && shrink <= MAXFILE + 4096;
  }

  function KeyOf(k: seq<byte>): O.Key requires |k| == 32 { O.Key(U64At(k, 0), U64At(k, 8), U64At(k, 16), U64At(k, 24)) }
  lemma KeyIn(b: seq<byte>, k: seq<byte>)
    requires |b| == 256 && |k| == 32 && b[16..48] == k
    ensures KeyAt(b) == KeyOf(k)
  { Part(b, k, 0); Part(b, k, 8); Part(b, k, 16); Part(b, k, 24); }
  lemma Part(b: seq<byte>, k: seq<byte>, x: int)
    requires |b| == 256 && |k| == 32 && b[16..48] == k && 0 <= x <= 24
    ensures b[16 + x .. 24 + x] == k[x .. x + 8]
  { forall i | 0 <= i < 8 ensures b[16 + x .. 24 + x][i] == k[x .. x + 8][i]
    { assert k[x + i] == b[16..48][x + i] == b[16 + x + i]; } }
  // What comes with a call: a record of this time, key, and client, and of no file yet.
  method NewRecord(sec: uint64, nsec: uint32, key: Bytes, client: Bytes) returns (r: Bytes)
    requires |key.data| == 32 && |client.data| == 16
    ensures fresh(r) && |r.data| == 256 && !Full(r.data) && AtOf(r.data) == sec && U32At(r.data, 4) == nsec &&
      KeyAt(r.data) == KeyOf(key.data) && r.data[80..96] == client.data
  {
    r := NewBytes(256);
    U32AtZeros(256, 0);
    r.CopyFrom(16, key, 0, 32);
    r.CopyFrom(80, client, 0, 16);
    assert key.data[0..32] == key.data && client.data[0..16] == client.data;
    ghost var s := r.data;
    assert s[16..48] == key.data && s[80..96] == client.data && s[0..4] == Zeros(256)[0..4];
    r.PutU32(4, nsec);
    SpliceEnc32(s, 4, nsec); SpliceFrame(s, 4, Numbers.Enc32(nsec));
    ghost var u := r.data;
    assert u[16..48] == s[16..48] && u[80..96] == s[80..96];
    r.PutU64(8, sec);
    SpliceEnc64(u, 8, sec); SpliceFrame(u, 8, Numbers.Enc64(sec));
    assert r.data[16..48] == u[16..48] && r.data[80..96] == u[80..96];
    KeyIn(r.data, key.data);
  }
}
