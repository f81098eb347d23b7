// TRUSTED: the listing READDIR and READDIRPLUS fill. Go: internal/extern/ddir.
//
// Go keeps the entries and counts their encoded size; Offer says whether the
// entry still fitted within the caller's limits.
include "bytes.s.dfy"

module DirListSpec {
  import opened Machine
  datatype Ent = Ent(ino: uint64, name: seq<byte>, cookie: uint64)
}

module {:extern "ddir"} DirListS {
  import opened Machine
  import opened ByteSlice
  import opened DirListSpec

  class {:extern "List"} List {           // tested: ddir.TestList
    // the entries that fitted, in the order offered
    ghost var got: seq<Ent>
    // the attributes (serialized inode) that entries were given, by their index
    ghost var attrs: map<int, seq<byte>>

    // an entry: the name is blk[off .. off+len]; cookie resumes after it
    method {:extern "Offer"} Offer(ino: uint64, blk: Blk, off: uint64, len: uint64, cookie: uint64) returns (fits: bool)
      modifies this
      requires off as int + len as int <= |blk.v|
      ensures got == if fits then old(got) + [Ent(ino, blk.v[off as int .. off as int + len as int], cookie)] else old(got)
      ensures attrs == old(attrs)
    // number of entries, and the inode number of entry i
    method {:extern "Len"} Len() returns (n: uint64)
      ensures n as int == |got|
    method {:extern "InoAt"} InoAt(i: uint64) returns (ino: uint64)
      ensures i as int < |got| ==> ino == got[i].ino
    // READDIRPLUS: the attributes of entry i; copies ip
    method {:extern "AttrAt"} AttrAt(i: uint64, ip: Bytes)
      modifies this
      requires |ip.data| == 256 && i as int < |got|
      ensures got == old(got) && attrs == old(attrs)[i as int := ip.data]
  }
}
