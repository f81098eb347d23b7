// TRUSTED: the superblock's checksum. Go: internal/runtime/checksum (SHA-256).
//
// Nothing is assumed about it but that it is a function: a proof never rests on
// a damaged superblock being noticed.
include "bytes.s.dfy"

module {:extern "checksum"} SumS {
  import opened Machine
  import opened ByteSlice

  function {:axiom} SumOf(s: seq<byte>): (r: seq<byte>) ensures |r| == 32

  // the checksum of the first n bytes; tested: checksum.TestSum
  method {:extern "Sum"} Sum(b: Bytes, n: uint64) returns (r: Bytes)
    requires n as int <= |b.data|
    ensures fresh(r) && r.data == SumOf(b.data[..n])
}
