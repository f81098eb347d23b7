// TRUSTED: the listing READDIR and READDIRPLUS fill. Go: internal/extern/ddir.
//
// Go keeps the entries and counts their encoded size; Offer says whether the
// entry still fitted within the caller's limits.
include "bytes.s.dfy"

module {:extern "ddir"} DirListS {
  import opened Machine
  import opened ByteSlice

  class {:extern "List"} List {
    // an entry: the name is blk[off .. off+len]; cookie resumes after it
    method {:extern "Offer"} Offer(ino: uint64, blk: Blk, off: uint64, len: uint64, cookie: uint64) returns (fits: bool)
      requires off as int + len as int <= |blk.v|
    // READDIRPLUS: the attributes (serialized inode) of the entry offered last
    method {:extern "Attr"} Attr(ip: Bytes)
      requires |ip.data| == 256
    // number of entries, and the inode number of entry i (in the order offered)
    method {:extern "Len"} Len() returns (n: uint64)
    method {:extern "InoAt"} InoAt(i: uint64) returns (ino: uint64)
    method {:extern "AttrAt"} AttrAt(i: uint64, ip: Bytes)
      requires |ip.data| == 256
  }
}
