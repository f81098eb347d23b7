// TRUSTED: what Go does at the end of a transaction, which no proof needs. Go: txn/dtxn, whose Txn is the Work of one after another.
include "../txn/txn.dfy"

module {:extern "dwork"} WorkS {
  import opened Machine
  import TxnM
  trait {:extern "Work"} Work {          // tested: dtxn.TestErrors, TestHints
    ghost const t: TxnM.Txn
    // Of allocation hints and memory, which no proof needs: before a commit (false: it is too large), and after the end.
    method {:extern "Admit"} Admit() returns (ok: bool)
    method {:extern "Ended"} Ended(committed: bool)
  }
}
