// TRUSTED: what the runner is given: the work of a transaction. Go: txn/dtxn, whose Txn is the Work of one transaction after another.
include "../txn/txn.dfy"

module {:extern "dwork"} WorkS {
  import opened Machine
  import TxnM
  trait {:extern "Work"} Work {          // tested: dtxn.TestErrors, TestHints
    ghost const t: TxnM.Txn
    // It does nothing to t but call its methods: takes locks, reads, writes. st = 0: it came to its end, with status r; else t
    // could not do something, and the work says nothing of what it saw. (If it panics, t is aborted.)
    method {:extern "Do"} Do() returns (st: uint32, r: uint32)
      requires t.Inv() && t.Idle() && !t.s.j.mu.held
      modifies t, t.s.j, t.s.j.lg, t.s.j.ins, t.s.j.d, t.s.j.seal, t.s.j.cache, t.s.j.tree.pages, t.s.j.repr, t.s.j.mu, t.s.tbl, t.s`stab, t.s`logs, t.buf
      ensures t.Inv() && t.Steady() && t.s.j.Mono() && !t.s.j.mu.held && fresh(t.s.j.repr - old(t.s.j.repr))
    // Of allocation hints and memory, which no proof needs: before a commit (false: it is too large), and after the end.
    method {:extern "Admit"} Admit() returns (ok: bool)
    method {:extern "Ended"} Ended(committed: bool)
  }
}
