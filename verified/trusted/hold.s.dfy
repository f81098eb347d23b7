// TRUSTED: who sees blocks whose memory is used again. Go: internal/runtime/hold.
include "blockmap.s.dfy"
include "cache.s.dfy"
include "mutex.s.dfy"

// How long blocks may be seen:
//   - A block from Cache.Get, and one from a BlockMap that CopyOf (bytes.s.dfy) or Hold.Copy made, may be seen while
//     the journal's mutex is held and they do not change (Shows).
//   - What is kept for a Hold or taken to it may be seen until that ends (Lasts). Only the runner of transactions ends
//     it: when procedures and commit have returned, and Ahead for what it kept or took, which all hand out no block
//     (the types of their results).
//   - What CopyOf made may be seen besides until the WRITE is over, what Hold.Copy made until the transaction is, and
//     both as long as a BlockMap has it: the logger and the installer see those of the maps that do not change while
//     they are at it (frozen, frozenDirect, installing), whose BLists they make. Put, Clear and the end of a map give
//     back.
//   - All other blocks live as long as they are seen.
module {:extern "hold"} BlockHolds {
  import opened ByteSlice
  import opened DiskS
  import opened MapsOfBlocks
  import opened Caches
  import opened Mutexes

  // tested: hold.TestHold, TestHoldCopy, TestSmall, TestTake, TestRetains, dbytes.TestPool, fs.TestWriteMemory
  class {:extern "Hold"} Hold {
    method {:extern "Keep"} Keep(ghost mu: Mutex, c: Cache, b: Blk)
      requires mu.Inside() && (Lasts(this, b) || c.Shows(b) || exists m: BlockMap :: m.Shows(b))
      ensures Lasts(this, b)
    method {:extern "Take"} Take(l: BList)
      requires !l.taken modifies l ensures l.taken && forall b: Blk :: l.Shows(b) ==> Lasts(this, b)
    // 256 bytes, which hold anything; their memory is used again when the results of the transaction's procedure have
    // been looked at; tested: hold.TestSmall
    method {:extern "Small"} Small() returns (b: Bytes) ensures fresh(b) && |b.data| == 256
    // a mutable copy, which may be seen until the transaction is over, and as long as a BlockMap has it;
    // tested: hold.TestHoldCopy
    method {:extern "Copy"} Copy(b: Blk) returns (c: Bytes) ensures fresh(c) && c.data == b.v
  }
  predicate {:axiom} Lasts(h: Hold, b: Blk)           // b may be seen until h ends
}
