// TRUSTED: leave to commit, and what Go does at a transaction's end, which no proof needs. Go: dtxn.Txn is the Work.
include "../lib/machine.dfy"

module {:extern "dwork"} WorkS {
  import opened Machine
  // Leave to commit once. It is for proofs alone: whoever asks for a commit gives one along, and nothing here gives
  // another. So what was not given one commits nothing.
  class {:extern "Permit"} Permit {
    ghost var may: bool
    ghost method Spend() requires may modifies this ensures !may { may := false; }
  }

  trait {:extern "Work"} Work {          // tested: dtxn.TestErrors, TestHints
    ghost const txn: object           // the transaction
    // Of allocation hints and memory, which no proof needs: before a commit (false: it is too large), and after the
    // end.
    method {:extern "Admit"} Admit() returns (ok: bool)
    method {:extern "Ended"} Ended(committed: bool)
  }
}
