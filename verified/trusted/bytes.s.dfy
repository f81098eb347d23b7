// TRUSTED: byte buffers. Go: internal/runtime/dbytes.
//
// Bytes is a mutable buffer, Blk an immutable block of 4096 bytes (as it lies
// in the cache and on the device). Numbers in them are little-endian.
//
// In all trusted files: `tested:` names the Go test of a declaration, or of all those
// of a class. Nobody else may assign the ghost fields. That a length fits its counter
// (Len) holds because memory is finite.
include "../lib/numbers.dfy"
include "../lib/bytespec.dfy"

module {:extern "dbytes"} ByteSlice {
  import opened Machine
  import opened ByteSpec
  import opened Numbers

  // the 8- or 4-byte number at an offset
  function U64At(s: seq<byte>, off: int): uint64
    requires 0 <= off && off + 8 <= |s|
  { Dec64(s[off..off+8]) }
  function U32At(s: seq<byte>, off: int): uint32
    requires 0 <= off && off + 4 <= |s|
  { Dec32(s[off..off+4]) }

  class {:extern "Bytes"} Bytes {         // tested: dbytes.TestBytesReads, TestBytesWrites, TestCopyOf
    ghost var data: seq<byte>

    function method {:extern "Len"} Len(): (n: uint64)
      reads this
      ensures n as int == |data|
    function method {:extern "Get"} Get(i: uint64): (b: byte)
      reads this
      requires i as int < |data|
      ensures b == data[i]
    function method {:extern "U64"} U64(off: uint64): (x: uint64)
      reads this
      requires off as int + 8 <= |data|
      ensures x == U64At(data, off as int)
    function method {:extern "U32"} U32(off: uint64): (x: uint32)
      reads this
      requires off as int + 4 <= |data|
      ensures x == U32At(data, off as int)

    // this[off..off+|o|] == o
    method {:extern "EqualAt"} EqualAt(off: uint64, o: Bytes) returns (r: bool)
      requires off as int + |o.data| <= |data|
      ensures r <==> data[off as int .. off as int + |o.data|] == o.data
    method {:extern "Set"} Set(i: uint64, b: byte)
      modifies this
      requires i as int < |data|
      ensures data == old(data)[i as int := b]
    method {:extern "PutU64"} PutU64(off: uint64, x: uint64)
      modifies this
      requires off as int + 8 <= |data|
      ensures data == Splice(old(data), off as int, Enc64(x))
    method {:extern "PutU32"} PutU32(off: uint64, x: uint32)
      modifies this
      requires off as int + 4 <= |data|
      ensures data == Splice(old(data), off as int, Enc32(x))
    // copy(this[dst:dst+len], src[so:so+len])
    method {:extern "CopyFrom"} CopyFrom(dst: uint64, src: Bytes, so: uint64, len: uint64)
      modifies this
      requires src != this
      requires dst as int + len as int <= |data|
      requires so as int + len as int <= |src.data|
      ensures data == Splice(old(data), dst as int, src.data[so as int..so as int + len as int])
    // the same from an immutable block
    method {:extern "CopyBlk"} CopyBlk(dst: uint64, src: Blk, so: uint64, len: uint64)
      modifies this
      requires dst as int + len as int <= |data|
      requires so as int + len as int <= |src.v|
      ensures data == Splice(old(data), dst as int, src.v[so as int..so as int + len as int])
    // a mutable copy of the 4096 bytes from so on, whose memory is used again: hold.s.dfy says when
    method {:extern "CopyOf"} CopyOf(so: uint64) returns (b: Bytes) requires so as int + 4096 <= |data|
      ensures fresh(b) && b.data == data[so as int..so as int + 4096]
  }

  method {:extern "NewBytes"} NewBytes(n: uint64) returns (b: Bytes)         // tested: dbytes.TestNewBytes
    ensures fresh(b) && b.data == Zeros(n as int)

  // An immutable block.
  class {:extern "Blk"} Blk {             // tested: dbytes.TestBlk
    ghost const v: seq<byte>

    function method {:extern "Get"} Get(i: uint64): (b: byte)
      requires i as int < |v|
      ensures b == v[i]
    function method {:extern "U64"} U64(off: uint64): (x: uint64)
      requires off as int + 8 <= |v|
      ensures x == U64At(v, off as int)
    function method {:extern "U32"} U32(off: uint64): (x: uint32)
      requires off as int + 4 <= |v|
      ensures x == U32At(v, off as int)
    // v[off..off+|o|] == o
    method {:extern "EqualAt"} EqualAt(off: uint64, o: Bytes) returns (r: bool)
      requires off as int + |o.data| <= |v|
      ensures r <==> v[off as int .. off as int + |o.data|] == o.data
    // a mutable copy
    method {:extern "Thaw"} Thaw() returns (b: Bytes)
      ensures fresh(b) && b.data == v
  }
  // Bytes that lie in blocks, one piece after the other, which are not copied.
  class {:extern "Pieces"} Pieces {       // tested: dbytes.TestPieces
    ghost var data: seq<byte>

    // b's bytes from so on, len of them, behind those that are there
    method {:extern "Add"} Add(b: Blk, so: uint64, len: uint64)
      modifies this
      requires so as int + len as int <= |b.v|
      ensures data == old(data) + b.v[so as int..so as int + len as int]
    // a mutable copy
    method {:extern "Join"} Join() returns (b: Bytes)
      ensures fresh(b) && b.data == data
  }
  // tested: dbytes.TestPieces
  method {:extern "NewPieces"} NewPieces() returns (p: Pieces) ensures fresh(p) && p.data == []
  // the block of zeros; tested: dbytes.TestBlk
  method {:extern "ZeroBlk"} ZeroBlk() returns (b: Blk)
    ensures b.v == Zeros(4096)
  // b becomes immutable; the caller's view of it becomes empty (no copy); tested: dbytes.TestBlk
  method {:extern "Freeze"} Freeze(b: Bytes) returns (r: Blk)
    requires |b.data| == 4096
    modifies b
    ensures r.v == old(b.data) && b.data == []

  // A hash of directory-entry names: any fixed function will do. Tested: dbytes.TestNameHash.
  function method {:extern "NameHash"} NameHash(name: Bytes): (h: uint64)
    reads name
    ensures h == HashOf(name.data)
  function {:axiom} HashOf(s: seq<byte>): uint64
}
