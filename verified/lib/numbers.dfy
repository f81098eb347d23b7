// Little-endian numbers in bytes. What the rest of the proof may know of them is that
// decoding gives back what was encoded, and that zeros are 0; the definitions make sure
// that there are such functions, and say which (the Go is tested against them).
include "machine.dfy"

module Numbers {
  export provides Machine, Dec64, Enc64, Dec32, Enc32, Dec64Zero, Dec32Zero
  import opened Machine

  function Four(a: byte, b: byte, c: byte, d: byte): int
  { a as int + 256 * (b as int + 256 * (c as int + 256 * d as int)) }
  function Enc4(x: int): (s: seq<byte>)
    requires 0 <= x < 0x1_0000_0000
    ensures |s| == 4 && Four(s[0], s[1], s[2], s[3]) == x
  { [(x % 256) as byte, (x / 256 % 256) as byte, (x / 0x1_0000 % 256) as byte, (x / 0x100_0000) as byte] }

  function Dec32(s: seq<byte>): uint32 requires |s| == 4
  { Four(s[0], s[1], s[2], s[3]) as uint32 }
  function Enc32(x: uint32): (s: seq<byte>) ensures |s| == 4 && Dec32(s) == x
  { Enc4(x as int) }
  function Dec64(s: seq<byte>): uint64 requires |s| == 8
  { (Four(s[0], s[1], s[2], s[3]) + 0x1_0000_0000 * Four(s[4], s[5], s[6], s[7])) as uint64 }
  function Enc64(x: uint64): (s: seq<byte>) ensures |s| == 8 && Dec64(s) == x
  { Enc4(x as int % 0x1_0000_0000) + Enc4(x as int / 0x1_0000_0000) }

  lemma Dec32Zero() ensures Dec32([0,0,0,0]) == 0 {}
  lemma Dec64Zero() ensures Dec64([0,0,0,0,0,0,0,0]) == 0 {}
}
