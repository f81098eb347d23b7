// The 256-byte inode. Its abstract value is the parse of its bytes, so that only
// decoding appears in specifications and updates happen in place.
//
//   0 ty u32     0 free; else RFC 1813 ftype3: 1 REG 2 DIR 3 BLK 4 CHR 5 LNK 6 SOCK 7 FIFO; 8 reserved (inode 2)
//   4 mode u32   8 nlink u32  12 uid u32  16 gid u32  20 major u32  24 minor u32
//  28 flags u32  bit 0: on the orphan list
//  32 size u64   bytes
//  40 used u64   blocks of data in the tree, those that were cut off and still have to be freed as well
//  48 gen u64    generation: a new one each time the inode is allocated
//  56 atime 64 mtime 72 ctime u64 (seconds)  80 atimens 84 mtimens 88 ctimens u32 (nanoseconds)
//  92 marks u32  what chattr(1) sets, with Linux's numbers: 16 immutable 32 append-only 64 no dump 128 no atime;
//                bits 8 to 19: number of the access list; 20 to 31: of the default list
//  96 verf u64   verifier of an exclusive CREATE
// 104 parent u64 directories: the inode of ".."
// 112 next u64   the orphan list
// 120 shrink u64 bytes: blocks from size (rounded up) to shrink still have to be freed; 0 = none
// 128 nent u64   directories: number of entries
// 136 slots      15 block numbers u64: 12 direct, then single, double, triple indirect; 0 = a hole
include "marshal.dfy"
module InodeFormat {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened Marshal

  datatype Meta = Meta(ty: uint32, mode: uint32, nlink: uint32, uid: uint32, gid: uint32, major: uint32, minor: uint32,
    flags: uint32,
    size: uint64, gen: uint64, atime: uint64, mtime: uint64, ctime: uint64, atimens: uint32, mtimens: uint32,
      ctimens: uint32,
    verf: uint64, parent: uint64, next: uint64, shrink: uint64, nent: uint64, used: uint64, marks: uint32)
  datatype Inode = Inode(meta: Meta, blks: seq<uint64>)

  function Slots(s: seq<byte>, n: nat): (r: seq<uint64>)
    requires 136 + 8 * n <= |s|
    ensures |r| == n
    ensures forall k: int {:trigger r[k]} | 0 <= k < n :: r[k] == U64At(s, 136 + 8 * k)
  { if n == 0 then [] else Slots(s, n-1) + [U64At(s, 136 + 8 * (n-1))] }

  function ParseMeta(s: seq<byte>): Meta
    requires |s| == 256
  {
    Meta(U32At(s, 0), U32At(s, 4), U32At(s, 8), U32At(s, 12), U32At(s, 16), U32At(s, 20), U32At(s, 24), U32At(s, 28),
      U64At(s, 32), U64At(s, 48), U64At(s, 56), U64At(s, 64), U64At(s, 72), U32At(s, 80), U32At(s, 84), U32At(s, 88),
      U64At(s, 96), U64At(s, 104), U64At(s, 112), U64At(s, 120), U64At(s, 128), U64At(s, 40), U32At(s, 92))
  }

  function {:opaque} Parse(s: seq<byte>): (i: Inode)
    requires |s| == 256
    ensures |i.blks| == 15
  { Inode(ParseMeta(s), Slots(s, 15)) }
  function MetaOf(s: seq<byte>): Meta requires |s| == 256 { Parse(s).meta }

  // a Meta with some fields replaced (functions: datatype updates in two-state contexts trip Dafny 2.3.0)
  function WithSize(m: Meta, sz: uint64): Meta { m.(size := sz) }
  function WithSizeUsed(m: Meta, sz: uint64, u: uint64): Meta { m.(size := sz, used := u) }
  function WithUsed(m: Meta, u: uint64): Meta { m.(used := u) }
  function WithSizeShrink(m: Meta, sz: uint64, sh: uint64): Meta { m.(size := sz, shrink := sh) }
  function WithSizeNent(m: Meta, sz: uint64, n: uint64, u: uint64): Meta { m.(size := sz, nent := n, used := u) }
  // what is left of a file to be freed, and how many blocks it has until then
  datatype Leftover = Leftover(shrink: uint64, used: uint64)
  function LeftoverOf(m: Meta): Leftover { Leftover(m.shrink, m.used) }
  function WithLeftover(m: Meta, l: Leftover): Meta { m.(shrink := l.shrink, used := l.used) }
  function WithNlink(m: Meta, nl: uint32): Meta { m.(nlink := nl) }
  function WithTouch(m: Meta, s: uint64, ns: uint32): Meta { m.(mtime := s, mtimens := ns, ctime := s, ctimens := ns) }
  function WithCtime(m: Meta, s: uint64, ns: uint32): Meta { m.(ctime := s, ctimens := ns) }
  function WithList(m: Meta, fl: uint32, nx: uint64): Meta { m.(flags := fl, next := nx) }
  function WithParent(m: Meta, p: uint64): Meta { m.(parent := p) }
  function WithVerf(m: Meta, v: uint64): Meta { m.(verf := v) }
  function WithRdev(m: Meta, a: uint32, b: uint32): Meta { m.(major := a, minor := b) }
  function WithMode(m: Meta, x: uint32): Meta { m.(mode := x) }
  function WithMarks(m: Meta, x: uint32): Meta { m.(marks := x) }
  // the attributes of an inode just allocated (ty != 0) or just freed (ty == 0)
  function NewMeta(t: uint32, g: uint64): Meta { Meta(t, 0,0,0,0,0,0,0, 0, g, 0,0,0,0,0,0,0,0,0,0,0,0, 0) }

  lemma ParseZeros()
    ensures Parse(Zeros(256)).meta == NewMeta(0, 0)
    ensures forall k: int | 0 <= k < 15 :: Parse(Zeros(256)).blks[k] == 0
  {
    reveal Parse();
    forall o: int {:trigger U32At(Zeros(256), o)} | 0 <= o <= 252
      ensures U32At(Zeros(256), o) == 0 { U32AtZeros(256, o); }
    forall o: int {:trigger U64At(Zeros(256), o)} | 0 <= o <= 248
      ensures U64At(Zeros(256), o) == 0 { U64AtZeros(256, o); }
  }

  // --- getters ---

  method GetTy(b: Bytes) returns (x: uint32) requires |b.data| == 256 ensures x == MetaOf(b.data).ty
  { reveal Parse(); x := b.U32(0); }
  method GetMode(b: Bytes) returns (x: uint32) requires |b.data| == 256 ensures x == MetaOf(b.data).mode
  { reveal Parse(); x := b.U32(4); }
  method GetNlink(b: Bytes) returns (x: uint32) requires |b.data| == 256 ensures x == MetaOf(b.data).nlink
  { reveal Parse(); x := b.U32(8); }
  method GetUid(b: Bytes) returns (x: uint32) requires |b.data| == 256 ensures x == MetaOf(b.data).uid
  { reveal Parse(); x := b.U32(12); }
  method GetGid(b: Bytes) returns (x: uint32) requires |b.data| == 256 ensures x == MetaOf(b.data).gid
  { reveal Parse(); x := b.U32(16); }
  method GetFlags(b: Bytes) returns (x: uint32) requires |b.data| == 256 ensures x == MetaOf(b.data).flags
  { reveal Parse(); x := b.U32(28); }
  method GetMarks(b: Bytes) returns (x: uint32) requires |b.data| == 256 ensures x == MetaOf(b.data).marks
  { reveal Parse(); x := b.U32(92); }
  method GetSize(b: Bytes) returns (x: uint64) requires |b.data| == 256 ensures x == MetaOf(b.data).size
  { reveal Parse(); x := b.U64(32); }
  method GetGen(b: Bytes) returns (x: uint64) requires |b.data| == 256 ensures x == MetaOf(b.data).gen
  { reveal Parse(); x := b.U64(48); }
  method GetVerf(b: Bytes) returns (x: uint64) requires |b.data| == 256 ensures x == MetaOf(b.data).verf
  { reveal Parse(); x := b.U64(96); }
  method GetParent(b: Bytes) returns (x: uint64) requires |b.data| == 256 ensures x == MetaOf(b.data).parent
  { reveal Parse(); x := b.U64(104); }
  method GetNext(b: Bytes) returns (x: uint64) requires |b.data| == 256 ensures x == MetaOf(b.data).next
  { reveal Parse(); x := b.U64(112); }
  method GetShrink(b: Bytes) returns (x: uint64) requires |b.data| == 256 ensures x == MetaOf(b.data).shrink
  { reveal Parse(); x := b.U64(120); }
  method GetNent(b: Bytes) returns (x: uint64) requires |b.data| == 256 ensures x == MetaOf(b.data).nent
  { reveal Parse(); x := b.U64(128); }
  method GetCtime(b: Bytes) returns (s: uint64, ns: uint32)
    requires |b.data| == 256
    ensures s == MetaOf(b.data).ctime && ns == MetaOf(b.data).ctimens
  { reveal Parse(); s := b.U64(72); ns := b.U32(88); }
  method GetUsed(b: Bytes) returns (x: uint64) requires |b.data| == 256 ensures x == MetaOf(b.data).used
  { reveal Parse(); x := b.U64(40); }
  method GetSlot(b: Bytes, k: uint64) returns (x: uint64)
    requires |b.data| == 256 && k < 15
    ensures x == Parse(b.data).blks[k]
  { reveal Parse(); x := b.U64(136 + 8 * k); }
  // no block at all
  method NoSlots(b: Bytes) returns (r: bool)
    requires |b.data| == 256
    ensures r <==> forall k: int | 0 <= k < 15 :: Parse(b.data).blks[k] == 0
  {
    var k: uint64 := 0;
    while k < 15
      invariant k <= 15
      invariant forall i: int | 0 <= i < k as int :: Parse(b.data).blks[i] == 0
      decreases 15 - k
    {
      var x := GetSlot(b, k);
      if x != 0 { return false; }
      k := k + 1;
    }
    r := true;
  }

  // --- setters: each changes its field and nothing else ---

  method SetTy(b: Bytes, x: uint32)
    modifies b
    requires |b.data| == 256
    ensures |b.data| == 256
    ensures Parse(b.data) == (var i := Parse(old(b.data)); i.(meta := i.meta.(ty := x)))
  { reveal Parse(); Put32(b, 0, x); assert Slots(b.data, 15) == Slots(old(b.data), 15); }
  method SetMode(b: Bytes, x: uint32)
    modifies b
    requires |b.data| == 256
    ensures |b.data| == 256
    ensures Parse(b.data) == (var i := Parse(old(b.data)); i.(meta := i.meta.(mode := x)))
  { reveal Parse(); Put32(b, 4, x); assert Slots(b.data, 15) == Slots(old(b.data), 15); }
  method SetNlink(b: Bytes, x: uint32)
    modifies b
    requires |b.data| == 256
    ensures |b.data| == 256
    ensures Parse(b.data) == (var i := Parse(old(b.data)); i.(meta := i.meta.(nlink := x)))
  { reveal Parse(); Put32(b, 8, x); assert Slots(b.data, 15) == Slots(old(b.data), 15); }
  method SetUid(b: Bytes, x: uint32)
    modifies b
    requires |b.data| == 256
    ensures |b.data| == 256
    ensures Parse(b.data) == (var i := Parse(old(b.data)); i.(meta := i.meta.(uid := x)))
  { reveal Parse(); Put32(b, 12, x); assert Slots(b.data, 15) == Slots(old(b.data), 15); }
  method SetGid(b: Bytes, x: uint32)
    modifies b
    requires |b.data| == 256
    ensures |b.data| == 256
    ensures Parse(b.data) == (var i := Parse(old(b.data)); i.(meta := i.meta.(gid := x)))
  { reveal Parse(); Put32(b, 16, x); assert Slots(b.data, 15) == Slots(old(b.data), 15); }
  method SetFlags(b: Bytes, x: uint32)
    modifies b
    requires |b.data| == 256
    ensures |b.data| == 256
    ensures Parse(b.data) == (var i := Parse(old(b.data)); i.(meta := i.meta.(flags := x)))
  { reveal Parse(); Put32(b, 28, x); assert Slots(b.data, 15) == Slots(old(b.data), 15); }
  method SetMarks(b: Bytes, x: uint32)
    modifies b
    requires |b.data| == 256
    ensures |b.data| == 256
    ensures Parse(b.data) == (var i := Parse(old(b.data)); i.(meta := i.meta.(marks := x)))
  { reveal Parse(); Put32(b, 92, x); assert Slots(b.data, 15) == Slots(old(b.data), 15); }
  method SetRdev(b: Bytes, maj: uint32, min: uint32)
    modifies b
    requires |b.data| == 256
    ensures |b.data| == 256
    ensures Parse(b.data) == (var i := Parse(old(b.data)); i.(meta := i.meta.(major := maj, minor := min)))
  { reveal Parse(); Put32(b, 20, maj); Put32(b, 24, min); assert Slots(b.data, 15) == Slots(old(b.data), 15); }
  method SetFileSize(b: Bytes, x: uint64)
    modifies b
    requires |b.data| == 256
    ensures |b.data| == 256
    ensures Parse(b.data) == (var i := Parse(old(b.data)); i.(meta := i.meta.(size := x)))
  { reveal Parse(); Put64(b, 32, x); assert Slots(b.data, 15) == Slots(old(b.data), 15); }
  method SetGen(b: Bytes, x: uint64)
    modifies b
    requires |b.data| == 256
    ensures |b.data| == 256
    ensures Parse(b.data) == (var i := Parse(old(b.data)); i.(meta := i.meta.(gen := x)))
  { reveal Parse(); Put64(b, 48, x); assert Slots(b.data, 15) == Slots(old(b.data), 15); }
  method SetVerf(b: Bytes, x: uint64)
    modifies b
    requires |b.data| == 256
    ensures |b.data| == 256
    ensures Parse(b.data) == (var i := Parse(old(b.data)); i.(meta := i.meta.(verf := x)))
  { reveal Parse(); Put64(b, 96, x); assert Slots(b.data, 15) == Slots(old(b.data), 15); }
  method SetParent(b: Bytes, x: uint64)
    modifies b
    requires |b.data| == 256
    ensures |b.data| == 256
    ensures Parse(b.data) == (var i := Parse(old(b.data)); i.(meta := i.meta.(parent := x)))
  { reveal Parse(); Put64(b, 104, x); assert Slots(b.data, 15) == Slots(old(b.data), 15); }
  method SetNext(b: Bytes, x: uint64)
    modifies b
    requires |b.data| == 256
    ensures |b.data| == 256
    ensures Parse(b.data) == (var i := Parse(old(b.data)); i.(meta := i.meta.(next := x)))
  { reveal Parse(); Put64(b, 112, x); assert Slots(b.data, 15) == Slots(old(b.data), 15); }
  method SetShrink(b: Bytes, x: uint64)
    modifies b
    requires |b.data| == 256
    ensures |b.data| == 256
    ensures Parse(b.data) == (var i := Parse(old(b.data)); i.(meta := i.meta.(shrink := x)))
  { reveal Parse(); Put64(b, 120, x); assert Slots(b.data, 15) == Slots(old(b.data), 15); }
  method SetNent(b: Bytes, x: uint64)
    modifies b
    requires |b.data| == 256
    ensures |b.data| == 256
    ensures Parse(b.data) == (var i := Parse(old(b.data)); i.(meta := i.meta.(nent := x)))
  { reveal Parse(); Put64(b, 128, x); assert Slots(b.data, 15) == Slots(old(b.data), 15); }
  method SetAtime(b: Bytes, s: uint64, ns: uint32)
    modifies b
    requires |b.data| == 256
    ensures |b.data| == 256
    ensures Parse(b.data) == (var i := Parse(old(b.data)); i.(meta := i.meta.(atime := s, atimens := ns)))
  { reveal Parse(); Put64(b, 56, s); Put32(b, 80, ns); assert Slots(b.data, 15) == Slots(old(b.data), 15); }
  method SetMtime(b: Bytes, s: uint64, ns: uint32)
    modifies b
    requires |b.data| == 256
    ensures |b.data| == 256
    ensures Parse(b.data) == (var i := Parse(old(b.data)); i.(meta := i.meta.(mtime := s, mtimens := ns)))
  { reveal Parse(); Put64(b, 64, s); Put32(b, 84, ns); assert Slots(b.data, 15) == Slots(old(b.data), 15); }
  method SetCtime(b: Bytes, s: uint64, ns: uint32)
    modifies b
    requires |b.data| == 256
    ensures |b.data| == 256
    ensures Parse(b.data) == (var i := Parse(old(b.data)); i.(meta := i.meta.(ctime := s, ctimens := ns)))
  { reveal Parse(); Put64(b, 72, s); Put32(b, 88, ns); assert Slots(b.data, 15) == Slots(old(b.data), 15); }
  method SetUsed(b: Bytes, x: uint64)
    modifies b
    requires |b.data| == 256
    ensures |b.data| == 256
    ensures Parse(b.data) == (var i := Parse(old(b.data)); i.(meta := i.meta.(used := x)))
  { reveal Parse(); Put64(b, 40, x); assert Slots(b.data, 15) == Slots(old(b.data), 15); }
  // one block more, one block less
  method IncUsed(b: Bytes)
    modifies b
    requires |b.data| == 256 && MetaOf(b.data).used < 0xffff_ffff_ffff_ffff
    ensures |b.data| == 256
    ensures Parse(b.data) == (var i := Parse(old(b.data)); i.(meta := i.meta.(used := i.meta.used + 1)))
  { var u := GetUsed(b); SetUsed(b, u + 1); }
  method DecUsed(b: Bytes)
    modifies b
    requires |b.data| == 256 && 0 < MetaOf(b.data).used
    ensures |b.data| == 256
    ensures Parse(b.data) == (var i := Parse(old(b.data)); i.(meta := i.meta.(used := i.meta.used - 1)))
  { var u := GetUsed(b); SetUsed(b, u - 1); }
  method SetSlot(b: Bytes, k: uint64, x: uint64)
    modifies b
    requires |b.data| == 256 && k < 15
    ensures |b.data| == 256
    ensures Parse(b.data) == (var i := Parse(old(b.data)); i.(blks := i.blks[k as int := x]))
  {
    reveal Parse();
    Put64(b, 136 + 8 * k, x);
    assert Slots(b.data, 15) == Slots(old(b.data), 15)[k as int := x];
  }
}
