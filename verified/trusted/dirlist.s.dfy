// TRUSTED: the listing READDIR and READDIRPLUS fill. Go: internal/runtime/dirlist, and fs.Limit, which says what fits.
// It keeps the entries and counts their encoded size; Offer takes an entry only if it still fits. Go makes the List
// (New, Fill).
include "bytes.s.dfy"

module DirListSpec {
  import opened Machine
  datatype DirEntry = DirEntry(ino: uint64, name: seq<byte>, cookie: uint64)
  // the bytes that entries take
  function Used(cost: int -> int, g: seq<DirEntry>): int
  { if g == [] then 0 else Used(cost, g[..|g| - 1]) + cost(|g[|g| - 1].name|) }
  // How much there is room for: max bytes, of which an entry takes cost of the length of its name, and beyond the first
  // entry not more than names of nameCost.
  datatype Room = Room(max: int, cost: int -> int, names: int, nameCost: int -> int)
  predicate Takes(r: Room, g: seq<DirEntry>)
  { Used(r.cost, g) <= r.max && (|g| <= 1 || Used(r.nameCost, g) <= r.names) }
}

module {:extern "dirlist"} DirListS {
  import opened Machine
  import opened ByteSlice
  import opened DirListSpec

  class {:extern "List"} List {           // tested: dirlist.TestList, fs.TestLimit
    // the entries that fitted, in the order offered
    ghost var got: seq<DirEntry>
    // the attributes (serialized inode) that entries were given, by their index
    ghost var attrs: map<int, seq<byte>>
    // what there is room for (max below 0: not even for no entry)
    ghost const room: Room

    // an entry: the name is blk[off .. off+len]; cookie resumes after it. It is taken exactly if there is room for it.
    method {:extern "Offer"} Offer(ino: uint64, blk: Blk, off: uint64, len: uint64, cookie: uint64) returns (fits: bool)
      modifies this
      requires off as int + len as int <= |blk.v|
      ensures var g := old(got) + [DirEntry(ino, blk.v[off as int .. off as int + len as int], cookie)];
        fits == Takes(room, g) && got == (if fits then g else old(got)) && attrs == old(attrs)
    // whether there is room for what it has; number of entries, and the inode number of entry i
    method {:extern "Fits"} Fits() returns (fits: bool) ensures fits == Takes(room, got)
    method {:extern "Len"} Len() returns (n: uint64)
      ensures n as int == |got|
    method {:extern "InoAt"} InoAt(i: uint64) returns (ino: uint64)
      ensures i as int < |got| ==> ino == got[i].ino
    // READDIRPLUS: the attributes of entry i; takes ip over: the caller's view of it becomes empty
    method {:extern "AttrAt"} AttrAt(i: uint64, ip: Bytes)
      modifies this, ip
      requires |ip.data| == 256 && i as int < |got|
      ensures got == old(got) && attrs == old(attrs)[i as int := old(ip.data)] && ip.data == []
  }
}
