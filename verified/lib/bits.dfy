// Bits of bytes, and of blocks as bitmaps.
include "machine.dfy"

module Bits {
  import opened Machine

  // bit i of a byte
  function method BitOf(b: byte, i: uint64): bool
    requires i < 8
    decreases i
  { if i == 0 then b % 2 == 1 else BitOf(b / 2, i - 1) }
  // bit i of a block
  predicate BlockBit(v: seq<byte>, i: int)
    requires |v| == 4096 && 0 <= i < 32768
  { BitOf(v[i / 8], (i % 8) as uint64) }
}
