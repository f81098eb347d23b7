// TRUSTED: the time of day, for the stamps of files. Go: internal/runtime/stamps.
include "txn.s.dfy"

module {:extern "stamps"} Stamps {
  import opened Machine
  import opened TxnS

  // The clock of the volume has said this while the work of the transaction was under way: since it began, so after all
  // that was before it, such as an attempt that came to nothing.
  predicate {:axiom} Said(txn: Txn, seconds: uint64, nanoseconds: uint32)
  // What it says now, as time since 1970. It may have been put back. Tested: stamps.TestNow
  method {:extern "Now"} Now(txn: Txn) returns (seconds: uint64, nanoseconds: uint32)
    ensures Said(txn, seconds, nanoseconds)
}
