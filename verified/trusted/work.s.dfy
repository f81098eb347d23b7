// TRUSTED: what Go does at the end of a transaction, which no proof needs. Go: txn/dtxn, whose Txn is the Work of one after another.
include "../lib/machine.dfy"

module {:extern "dwork"} WorkS {
  import opened Machine
  trait {:extern "Work"} Work {          // tested: dtxn.TestErrors, TestHints
    ghost const t: object             // the transaction
    // Of allocation hints and memory, which no proof needs: before a commit (false: it is too large), and after the end.
    method {:extern "Admit"} Admit() returns (ok: bool)
    method {:extern "Ended"} Ended(committed: bool)
  }
}
