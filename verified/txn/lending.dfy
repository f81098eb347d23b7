// What a READ has found, for its reply: the blocks that its transaction has read may be seen until the reply is sent.
// They pass from the transaction's Hold to one of their own, which is ended once, however often that is asked for.
include "txn.dfy"

module TxnLending {
  import opened Machine
  import opened ByteSlice
  import opened BlockHolds
  import opened BufferM
  import opened TxnM

  class Lent {
    const hold: Hold        // nobody else's
    var open: bool          // it has been lent blocks, and has not ended

    constructor (h: Hold)
      requires h.buffer == null
      ensures hold == h && !open
    { hold := h; open := false; }

    // Whoever sees a block that t has read may see it up to End. Not, if this has blocks already; nor if t has written,
    // as what it reads of that is its own, and ends with it.
    method Take(t: Txn) returns (ok: bool)
      requires t.buffer.Sorted() && t.hold != hold
      modifies this`open, hold, t.hold
      ensures ok <==> !old(open) && t.buffer.objects == map[]
      ensures ok ==> open && forall b: Blk {:trigger Lasts(hold, b)} ::
        old(allocated(b)) && old(Lasts(t.hold, b)) ==> Lasts(hold, b)
      ensures !ok ==> open == old(open) && unchanged(hold, t.hold)
      ensures hold.ends == old(hold.ends) && t.hold.ends == old(t.hold.ends)
    {
      var n := t.buffer.Len();
      assert n == 0 <==> t.buffer.objects == map[] by {
        if n > 0 { assert t.buffer.keys[0] in t.buffer.objects; }
      }
      ok := !open && n == 0;
      if ok {
        t.hold.Pass(hold);
        open := true;
      }
    }
    // What a transaction with an empty buffer has read of a run of blocks (Txn.ReadBlocks), Take passes on.
    lemma Passes(t: Txn, k: uint64, b: Blk)
      requires |t.system.journal.states| > 0 && t.Sees(k, b) && t.buffer.objects == map[]
      ensures Lasts(t.hold, b)
    {}
    // Nobody sees them any more.
    method End()
      requires hold.buffer == null
      modifies this`open, hold
      ensures !open && hold.ends == old(hold.ends) + if old(open) then 1 else 0
    {
      if open {
        open := false;
        hold.End();
      }
    }
  }
}
