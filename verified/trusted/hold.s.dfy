// TRUSTED: who sees blocks whose memory is used again. Go: internal/runtime/hold.
include "blockmap.s.dfy"
include "cache.s.dfy"
include "mutex.s.dfy"
include "writebuffer.s.dfy"

// How long blocks may be seen:
//   - A block from Cache.Get, and one from a BlockMap that CopyOf (bytes.s.dfy) or Hold.Copy made, may be seen while
//     the journal's mutex is held and they do not change (Shows).
//   - What is kept for a Hold or taken to it may be seen until that ends (Lasts). The ends stand in verified code; what
//     was known to last before is not known to after them. Who could not end a Hold, as his `modifies` does not have
//     it, need not ask.
//   - What CopyOf made may be seen besides until the WRITE is over, what Hold.Copy made until the transaction is, and
//     both as long as a BlockMap has it: the logger and the installer see those of the maps that they have made their
//     BLists of, which do not change while they are at it (KeepsAll). Put, Clear and the end of a map give back.
//   - All other blocks live as long as they are seen.
module {:extern "hold"} BlockHolds {
  import opened ByteSlice
  import opened DiskS
  import opened MapsOfBlocks
  import opened Caches
  import opened Mutexes
  import opened BufS

  // tested: hold.TestHold, TestHoldCopy, TestSmall, TestTake, TestRetains, dbytes.TestPool, fs.TestWriteMemory
  class {:extern "Hold"} Hold {
    ghost const buffer: Buf?    // the writes of the transaction whose Hold it is: its copies lie there
    ghost var ends: nat         // so often it was ended
    method {:extern "Keep"} Keep(ghost mu: Mutex, c: Cache, b: Blk)
      requires mu.Inside() && (Lasts(this, b) || c.Shows(b) || exists m: BlockMap :: m.Shows(b))
      ensures Lasts(this, b)
    method {:extern "Take"} Take(l: BList)
      requires !l.taken modifies l ensures l.taken && KeepsAll(this, l)
    // 256 bytes, which hold anything; their memory is used again when the results of the transaction's procedure have
    // been looked at; tested: hold.TestSmall
    method {:extern "Small"} Small() returns (b: Bytes) ensures fresh(b) && |b.data| == 256
    // A mutable copy of b, which k keeps. It may be seen until the transaction is over, and as long as a BlockMap has
    // it; tested: hold.TestHoldCopy
    method {:extern "Copy"} Copy(b: Blk, ghost k: object) returns (c: Bytes)
      requires Keeps(k, b) ensures fresh(c) && c.data == b.v
    // copies b to dst; tested: hold.TestCopyTo
    method {:extern "CopyTo"} CopyTo(dst: Bytes, b: Blk)
      requires Lasts(this, b) && |dst.data| == |b.v| modifies dst ensures dst.data == b.v
    // Nobody sees what was kept for it or taken to it any more.
    method {:extern "EndSeen"} EndSeen()
      modifies this ensures ends == old(ends)
    // Nor does anybody see a copy, but where a map has it: none lies in the buffer, to be committed yet.
    method {:extern "End"} End()
      requires buffer != null ==> buffer.objects == map[] modifies this ensures ends == old(ends) + 1
    // Gives all that was kept for it or taken to it to a Hold that has none; tested: hold.TestHold
    method {:extern "Pass"} Pass(to: Hold)
      requires to != this modifies this, to
      ensures ends == old(ends) && to.ends == old(to.ends)
      ensures forall b: Blk {:trigger Lasts(to, b)} :: old(allocated(b)) && old(Lasts(this, b)) ==> Lasts(to, b)
  }
  method {:extern "New"} NewHold() returns (h: Hold)      // tested: hold.TestHold
    ensures fresh(h) && h.buffer == null && h.ends == 0
  predicate Lasts(h: Hold, b: Blk) reads h { Keeps(h, b) }        // b may be seen until h ends
}
