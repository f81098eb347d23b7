// Sequences of bytes, as specifications speak of them.
include "machine.dfy"

module ByteSpec {
  import opened Machine

  function Zeros(n: nat): (s: seq<byte>)
    ensures |s| == n && forall i | 0 <= i < n :: s[i] == 0
  { if n == 0 then [] else Zeros(n-1) + [0] }

  // dst with src laid over it at off
  function Splice(dst: seq<byte>, off: int, src: seq<byte>): (r: seq<byte>)
    requires 0 <= off && off + |src| <= |dst|
    ensures |r| == |dst|
  { dst[..off] + src + dst[off+|src|..] }
}
