// The superblock: what is fixed when a volume is made. Block 0, with a copy in
// the last block. A superblock that was read is used only if Decode accepts it.
//
//    0 magic u64 ("TansyFS\0")  8 version u32  12 incompatible flags u32 (unknown ones are refused)  16 zero u64
//   24 size u64        blocks of the whole volume
//   32 lognd u64       the log: units of 16 blocks   40 lognr u64 ring blocks (between a header and its copy)
//   48 inodeBitmap 56 blockBitmap 64 inodeTable 72 data0 80 data1 88 ninode u64     geometry
//   96 rootgen u64     generation of inode 1
//  104 ctime u64 112 ctimens u32     when the volume was made
//  116 compatible flags u32 (unknown ones are ignored)
//  120 uuid 16 bytes   136 key 32 bytes (random: seals of the log, authentication of handles)
//  168 pages u64      the tree of codes: pages of two blocks each, from block 1 on; behind them is the log
//  176 slot0 u64      geometry, too: records of replies; 0: there are none
//  184 zero
// 4064 SHA-256 of the 4064 bytes before
include "marshal.dfy"
include "geometry.dfy"
include "../../trusted/checksum.s.dfy"
module SuperblockFormat {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened Marshal
  import opened VolumeGeometry
  import opened SumS

  const MAGIC: uint64 := 0x0053_4679_736e_6154
  const VERSION: uint32 := 4

  datatype Super = Super(size: uint64, lognd: uint64, lognr: uint64, geometry: Geometry,
    rootgen: uint64, ctime: uint64, ctimens: uint32, compat: uint32, uuid0: uint64, uuid1: uint64, key0: uint64,
      key1: uint64, key2: uint64, key3: uint64, pages: uint64)

  // the regions follow each other and fill the volume
  predicate SuperOk(s: Super) {
    GeometryOk(s.geometry) && s.geometry.data1 as int + 1 == s.size as int && 1 <= s.lognd && 1 <= s.lognr &&
    3 + 2 * s.pages as int + 16 * s.lognd as int + s.lognr as int == s.geometry.inodeBitmap as int
  }

  function SuperAt(s: seq<byte>): Super
    requires |s| == 4096
  {
    Super(U64At(s, 24), U64At(s, 32), U64At(s, 40),
      Geometry(U64At(s, 48), U64At(s, 56), U64At(s, 64), if U64At(s, 176) == 0 then U64At(s, 72) else U64At(s, 176),
        U64At(s, 72), U64At(s, 80), U64At(s, 88)),
      U64At(s, 96), U64At(s, 104), U32At(s, 112), U32At(s, 116), U64At(s, 120), U64At(s, 128), U64At(s, 136),
        U64At(s, 144), U64At(s, 152), U64At(s, 160), U64At(s, 168))
  }
  predicate Sealed(s: seq<byte>)
    requires |s| == 4096
  { s[4064..] == SumOf(s[..4064]) }

  // what the bytes must be for the volume to be used
  predicate Acceptable(s: seq<byte>)
    requires |s| == 4096
  { U64At(s, 0) == MAGIC && U32At(s, 8) == VERSION && U32At(s, 12) == 0 && Sealed(s) && SuperOk(SuperAt(s)) }

  method Encode(s: Super) returns (b: Bytes)
    requires SuperOk(s)
    ensures fresh(b) && |b.data| == 4096 && Acceptable(b.data) && SuperAt(b.data) == s
  {
    b := NewBytes(4096);
    Put64(b, 0, MAGIC);
    Put32(b, 8, VERSION);
    Put32(b, 12, 0);
    Put64(b, 24, s.size);
    Put64(b, 32, s.lognd);
    Put64(b, 40, s.lognr);
    Put64(b, 48, s.geometry.inodeBitmap);
    Put64(b, 56, s.geometry.blockBitmap);
    Put64(b, 64, s.geometry.inodeTable);
    Put64(b, 72, s.geometry.data0);
    Put64(b, 80, s.geometry.data1);
    Put64(b, 88, s.geometry.ninode);
    Put64(b, 96, s.rootgen);
    Put64(b, 104, s.ctime);
    Put32(b, 112, s.ctimens);
    Put32(b, 116, s.compat);
    Put64(b, 120, s.uuid0);
    Put64(b, 128, s.uuid1);
    Put64(b, 136, s.key0);
    Put64(b, 144, s.key1);
    Put64(b, 152, s.key2);
    Put64(b, 160, s.key3);
    Put64(b, 168, s.pages);
    Put64(b, 176, s.geometry.slot0);
    Seal(b);
  }

  method Seal(b: Bytes)
    modifies b
    requires |b.data| == 4096
    ensures |b.data| == 4096 && Sealed(b.data)
    ensures forall o: int {:trigger U64At(b.data, o)} | 0 <= o && o + 8 <= 4064 ::
      U64At(b.data, o) == U64At(old(b.data), o)
    ensures forall o: int {:trigger U32At(b.data, o)} | 0 <= o && o + 4 <= 4064 ::
      U32At(b.data, o) == U32At(old(b.data), o)
  {
    var sum := Sum(b, 4064);
    ghost var s := b.data;
    ghost var e := sum.data;
    b.CopyFrom(4064, sum, 0, 32);
    assert sum.data[0..32] == e;
    SpliceFrame(s, 4064, e);
    assert b.data[..4064] == s[..4064];
    assert b.data[4064..] == e;
  }

  // why = 0: s is the superblock in b. Otherwise the first reason why it is not
  // usable: 1 not a Tansy volume, 2 damaged (checksum), 3 another version,
  // 4 unknown incompatible flags, 5 inconsistent geometry.
  method Decode(b: Bytes) returns (why: uint32, s: Super)
    requires |b.data| == 4096
    ensures (why == 0 <==> Acceptable(b.data)) && why <= 5 && (why == 1 <==> U64At(b.data, 0) != MAGIC) &&
      (why == 2 <==> U64At(b.data, 0) == MAGIC && !Sealed(b.data))
    ensures why == 0 ==> s == SuperAt(b.data) && SuperOk(s)
  {
    var slot0, data0 := b.U64(176), b.U64(72);
    if slot0 == 0 { slot0 := data0; }
    s := Super(b.U64(24), b.U64(32), b.U64(40),
      Geometry(b.U64(48), b.U64(56), b.U64(64), slot0, data0, b.U64(80), b.U64(88)),
      b.U64(96), b.U64(104), b.U32(112), b.U32(116), b.U64(120), b.U64(128), b.U64(136), b.U64(144), b.U64(152),
        b.U64(160), b.U64(168));
    if b.U64(0) != MAGIC { return 1, s; }
    var sum := Sum(b, 4064);
    var sealed := b.EqualAt(4064, sum);
    assert b.data[4064..4064 + 32] == b.data[4064..];
    if !sealed { return 2, s; }
    if b.U32(8) != VERSION { return 3, s; }
    if b.U32(12) != 0 { return 4, s; }
    var ok := CheckGeo(s.geometry);
    if !ok || s.size != s.geometry.data1 + 1 { return 5, s; }
    // no sum below overflows: block numbers are below 2^52
    if s.lognd < 1 || s.lognr < 1 || s.lognd >= s.geometry.inodeBitmap || s.lognr >= s.geometry.inodeBitmap ||
      s.pages >= s.geometry.inodeBitmap { return 5, s; }
    if 3 + 2 * s.pages + 16 * s.lognd + s.lognr != s.geometry.inodeBitmap { return 5, s; }
    why := 0;
  }
}
