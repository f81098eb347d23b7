include "../lib/machine.dfy"
module GeometryM {
  import opened Machine
  // blocks: [0] superblock, [1, ibm) log, then the regions below, then the superblock's copy
  datatype Geo = Geo(
    ibm: uint64,     // first block of the inode bitmap (bit i = inode i)
    bbm: uint64,     // first block of the block bitmap (bit b = block b, absolute block number)
    itab: uint64,    // first block of the inode table, 16 inodes of 256 bytes a block
    data0: uint64,   // data blocks: [data0, data1)
    data1: uint64,
    ninode: uint64)
  predicate GeoOk(g: Geo) {
    2 <= g.ibm < g.bbm < g.itab < g.data0 < g.data1 < 0x10_0000_0000_0000 &&
    16 < g.ninode < 0x1_0000_0000_0000 &&
    g.ninode as int <= 32768 * (g.bbm as int - g.ibm as int) &&
    g.data1 as int <= 32768 * (g.itab as int - g.bbm as int) &&
    g.ninode as int <= 16 * (g.data0 as int - g.itab as int)
  }
  // inode 0 does not exist; inode 1 is the root directory; inode 2 is reserved: its `next` heads the orphan list
  predicate method OkIno(g: Geo, i: uint64) { 1 <= i < g.ninode }
  predicate method OkBlk(g: Geo, b: uint64) { g.data0 <= b < g.data1 }
}
