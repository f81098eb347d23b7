// TRUSTED: leave to commit, and what Go does at the end of a transaction. Go: dtxn.Txn is the Work of several in turn.
include "writebuffer.s.dfy"

module {:extern "work"} WorkS {
  import opened Machine
  import opened BufS
  // Leave to commit once. It is for proofs alone: whoever asks for a commit gives one along, and nothing here gives
  // another. So what was not given one commits nothing.
  class {:extern "Permit"} Permit {
    ghost var may: bool
    ghost method Spend() requires may modifies this ensures !may { may := false; }
  }

  // What Work has been told of the end of a transaction. For proofs alone.
  class {:extern "Fate"} Fate {
    ghost var known: bool
    ghost var committed: bool
  }

  trait {:extern "Work"} Work {          // tested: dtxn.TestErrors, TestHints, TestLend
    ghost const txn: object           // the transaction
    ghost const buffer: Buf           // what it writes
    ghost const fate: Fate
    // Before a commit. False: it is too large, with more objects than a group of the log can have blocks.
    method {:extern "Admit"} Admit() returns (ok: bool)
      requires !fate.known ensures ok || |buffer.objects| > 500
    // The transaction is over, so nothing may lie in its buffer that could yet be committed. committed: what it wrote
    // has taken effect; bits that it set stay taken.
    method {:extern "Ended"} Ended(committed: bool)
      requires !fate.known && buffer.objects == map[]
      modifies fate ensures fate.known && fate.committed == committed
  }
}
