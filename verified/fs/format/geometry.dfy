// Where things lie on the volume, in blocks of 4096 bytes:
//
//   0            superblock
//   1            the tree of codes, two blocks a page; the log: a header, lognd units of 16 blocks, lognr ring blocks,
//                a copy of the header
//   inodeBitmap  bit i = inode i
//   blockBitmap  bit b = block b, absolute block number
//   inodeTable   16 inodes of 256 bytes a block
//   slot0        records of replies, 16 of 256 bytes a block
//   data0        data blocks
//   data1        the superblock's copy
include "../../lib/machine.dfy"
module VolumeGeometry {
  import opened Machine
  datatype Geometry = Geometry(
    inodeBitmap: uint64,
    blockBitmap: uint64,
    inodeTable: uint64,
    slot0: uint64,
    data0: uint64,
    data1: uint64,
    ninode: uint64)

  predicate GeometryOk(g: Geometry) {
    2 <= g.inodeBitmap < g.blockBitmap < g.inodeTable < g.slot0 <= g.data0 < g.data1 < 0x10_0000_0000_0000 &&
    16 < g.ninode < 0x1_0000_0000_0000 &&
    g.ninode as int <= 32768 * (g.blockBitmap as int - g.inodeBitmap as int) &&
    g.data1 as int <= 32768 * (g.inodeTable as int - g.blockBitmap as int) &&
    g.ninode as int <= 16 * (g.slot0 as int - g.inodeTable as int)
  }
  // inode 0 does not exist; inode 1 is the root directory; inode 2 is reserved: its `next` heads the orphan list, its
  // `parent` the list of kept files, and its file has the extended attributes (xattrlists.dfy)
  predicate method OkIno(g: Geometry, i: uint64) { 1 <= i < g.ninode }
  predicate method OkBlk(g: Geometry, b: uint64) { g.data0 <= b < g.data1 }
  // how many replies have room; none on a volume made before there were any
  function Slots(g: Geometry): int { 16 * (g.data0 as int - g.slot0 as int) }

  // the same at run time, for numbers read from a volume
  method CheckGeo(g: Geometry) returns (ok: bool)
    ensures ok <==> GeometryOk(g)
  {
    if !(2 <= g.inodeBitmap && g.inodeBitmap < g.blockBitmap && g.blockBitmap < g.inodeTable &&
      g.inodeTable < g.slot0 && g.slot0 <= g.data0 && g.data0 < g.data1 &&
      g.data1 < 0x10_0000_0000_0000) { return false; }
    if !(16 < g.ninode && g.ninode < 0x1_0000_0000_0000) { return false; }
    var ib := g.blockBitmap - g.inodeBitmap;
    var bb := g.inodeTable - g.blockBitmap;
    var it := g.slot0 - g.inodeTable;
    // no product overflows: a block number is below 2^52, 32768 is 2^15
    if ib < 0x1_0000_0000_0000 && 32768 * ib < g.ninode { return false; }
    if bb < 0x1_0000_0000_0000 && 32768 * bb < g.data1 { return false; }
    if 16 * it < g.ninode { return false; }
    ok := true;
  }

  // What a volume of `size` blocks takes: both superblocks, `log` blocks for the tree of codes and the log, the bitmaps
  // of `ninode` inodes and of all blocks, inodes, the records of `slots` replies, and a block of data.
  function Needed(size: int, log: int, ninode: int, slots: int): int
  {
    3 + log + (ninode + 32767) / 32768 + (size + 32767) / 32768 + (ninode + 15) / 16 + (slots + 15) / 16
  }
  predicate InRange(size: int, log: int, ninode: int, slots: int)
  {
    1 <= log < 0x10_0000_0000_0000 && 16 < ninode < 0x1_0000_0000_0000 && 0 <= slots < 0x1_0000_0000_0000 &&
      2 <= size < 0x10_0000_0000_0000
  }
  // lay out a volume of `size` blocks with `log` blocks for the tree of codes and the log, and room for
  // `ninode` inodes and the records of `slots` replies at least; ok = false: they do not fit, or are out of range
  method Layout(size: uint64, log: uint64, ninode: uint64, slots: uint64) returns (ok: bool, g: Geometry)
    ensures ok ==> GeometryOk(g) && g.inodeBitmap as int == 1 + log as int && g.data1 as int + 1 == size as int &&
      g.ninode == ninode && slots as int <= Slots(g)
    ensures ok <==> InRange(size as int, log as int, ninode as int, slots as int) &&
      Needed(size as int, log as int, ninode as int, slots as int) <= size as int
  {
    g := Geometry(0, 0, 0, 0, 0, 0, 0);
    ok := false;
    if !(1 <= log && log < 0x10_0000_0000_0000 && 16 < ninode && ninode < 0x1_0000_0000_0000 &&
      slots < 0x1_0000_0000_0000 && 2 <= size && size < 0x10_0000_0000_0000) { return; }
    var inodeBitmap := 1 + log;
    var blockBitmap := inodeBitmap + (ninode + 32767) / 32768;
    var inodeTable := blockBitmap + (size + 32767) / 32768;
    var slot0 := inodeTable + (ninode + 15) / 16;
    var data0 := slot0 + (slots + 15) / 16;
    if data0 >= size - 1 { return; }
    g := Geometry(inodeBitmap, blockBitmap, inodeTable, slot0, data0, size - 1, ninode);
    ok := true;
  }

  // how many inodes a volume of `size` blocks gets unless told otherwise: one per 16 KiB
  method DefaultInodes(size: uint64) returns (n: uint64)
    ensures 16 < n < 0x1_0000_0000_0000
  {
    n := size / 4 / 16 * 16;
    if n < 64 { n := 64; }
    if n > 0xffff_ffff_fff0 { n := 0xffff_ffff_fff0; }
  }
}
