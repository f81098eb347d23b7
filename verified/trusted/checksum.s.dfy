// TRUSTED: the superblock's checksum. Go: internal/runtime/dsum (SHA-256).
//
// Nothing is assumed about it but that it is a function: a proof never rests on
// a damaged superblock being noticed.
include "bytes.s.dfy"

module {:extern "dsum"} SumS {
  import opened Machine
  import opened ByteSlice

  function {:axiom} SumOf(s: seq<byte>): (r: seq<byte>) ensures |r| == 32

  // the checksum of the first n bytes; tested: dsum.TestSum
  method {:extern "Sum"} Sum(b: Bytes, n: uint64) returns (r: Bytes)
    requires n as int <= |b.data|
    ensures fresh(r) && r.data == SumOf(b.data[..n])
}
