// What a hole of bytes is made of: blocks that lie in it whole, which are given back, and what it has of the blocks at
// both ends, which is overwritten with zeros.
include "../../lib/machine.dfy"

module HoleParts {
  import opened Machine

  const BLOCK: uint64 := 4096      // bytes
  const MAXBYTES: uint64 := 0x4000_0000_0000_0000

  // Zeros go to the bytes from the first up to head, and from tail up to end; blocks lo up to hi - 1 are given back.
  datatype Parts = Parts(head: uint64, lo: uint64, hi: uint64, tail: uint64, end: uint64)
  // byte x is made zero by these
  predicate Covers(p: Parts, off: uint64, x: int) {
    off as int <= x < p.head as int || p.tail as int <= x < p.end as int || 4096 * p.lo as int <= x < 4096 * p.hi as int
  }
  // no two of these bytes are in different blocks
  predicate InOneBlock(from: uint64, to: uint64)
  { from < to ==> from as int / 4096 == (to as int - 1) / 4096 }

  // A hole of n bytes from off on, in a file of `size` bytes: just these become zeros, up to the end of the file. Only
  // the last block that is given back may reach over that end, where it has nothing but zeros.
  method Of(off: uint64, n: uint64, size: uint64)
    returns (head: uint64, lo: uint64, hi: uint64, tail: uint64, end: uint64)
    requires off < size <= MAXBYTES
    ensures end as int == if off as int + n as int < size as int then off as int + n as int else size as int
    ensures forall x {:trigger Covers(Parts(head, lo, hi, tail, end), off, x)} | 0 <= x < size as int ::
      Covers(Parts(head, lo, hi, tail, end), off, x) <==> off as int <= x < end as int
    ensures off <= head <= end && off <= tail <= end && InOneBlock(off, head) && InOneBlock(tail, end)
    ensures lo < hi ==> 4096 * (hi as int - 1) < size as int
    // as few bytes are written as can be: each whole block is given back
    ensures forall b {:trigger b * 4096} | off as int <= b * 4096 && (b * 4096 + 4096 <= end as int ||
      (end == size && b * 4096 < size as int)) :: lo as int <= b < hi as int
  {
    lo := (off + 4095) / BLOCK;
    if n < size - off {
      end := off + n;
      hi := end / BLOCK;
    } else {
      end := size;
      hi := (end + 4095) / BLOCK;
    }
    if hi < lo {        // all of it lies within one block
      head, tail, hi := end, end, lo;
      return;
    }
    head, tail := lo * BLOCK, hi * BLOCK;
    if head > end { head := end; }
    if tail > end { tail := end; }
  }
}
