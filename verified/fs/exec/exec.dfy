// The runner of the procedures: which of them are read-only, which wait until they are durable, and what is answered.
//
// Words:
//   stability  what a WRITE asks for: UNSTABLE, DATA_SYNC, or FILE_SYNC (RFC 1813, stable_how)
//   deferred   of a call: nothing of it waits for the device; a COMMIT does, later
//   result     the status to which the work of a transaction has come
//   outcome    how the transaction ended: OK, or why not (TxnM)
//   status     the answer, which follows from both
//   commit     the number of the transaction's commit; 0: it has none
//   told       what the transaction did, wrote, and has seen (TxnRun.Told)
//   permit     leave to commit once (work.s.dfy)
include "../spec/durable.s.dfy"
include "../spec/nfs3.s.dfy"
include "../../txn/run.dfy"

module Exec {
  import opened Machine
  import opened JournalM
  import opened JournalThreads
  import opened TxnSysM
  import opened TxnM
  import opened TxnEnding
  import opened JournalCommit
  import opened WorkS
  import opened TxnRun
  import Durable = NfsDurable
  import NfsData

  // What the server does of its own accord, beside the procedures. FREE: blocks of removed files are freed, in the
  // background, or are written anew; none of it can be seen. TRIM: free blocks are written that are about to lose their
  // room on the host.
  const FREE: uint32 := 100
  const TRIM: uint32 := 101
  // What a local mount asks for beside the procedures (local.s.dfy) and changes something: it waits as they do.
  const LOCAL: uint32 := 102
  // a status that no client sees: the transaction does not fit the journal
  const TOOBIG: uint32 := 20000

  predicate method ReadOnly(procedure: uint32) {
    procedure < Durable.PROCEDURES && procedure != Durable.SETATTR &&
      !(Durable.WRITE <= procedure && procedure <= Durable.LINK)
  }
  // Does the procedure, a WRITE as stable as `stability` says, wait until what it did is durable? deferred: the
  // procedures do not.
  predicate method Stable(procedure: uint32, stability: uint32, deferred: bool)
  {
    !ReadOnly(procedure) && procedure != FREE &&
      (procedure == TRIM || (!deferred && !(procedure == Durable.WRITE && stability == Durable.UNSTABLE)))
  }
  // The table says what the specification wants, and no procedure waits that need not.
  lemma Table(procedure: uint32, stability: uint32)
    ensures procedure < Durable.PROCEDURES ==> (ReadOnly(procedure) <==> !Durable.Changes(procedure)) &&
      (Stable(procedure, stability, false) <==> Durable.Promised(procedure, stability)) &&
      !Stable(procedure, stability, true)
    ensures Stable(TRIM, stability, true) && !ReadOnly(TRIM) && !ReadOnly(FREE) && !Stable(FREE, stability, false)
    ensures !ReadOnly(LOCAL) && Stable(LOCAL, stability, false) && !Stable(LOCAL, stability, true)
  {}

  // the answer to a call whose work has come to the status `result`, and its transaction to `outcome`
  function method Status(outcome: uint32, result: uint32): uint32 {
    if outcome == OK then result else if outcome == READONLY then Durable.ROFS
    else if outcome == TOOLARGE then TOOBIG else Durable.IO
  }
  // whether attributes go into the reply
  predicate method Tells(status: uint32)
    ensures Tells(status) <==> Durable.Shows(status)
  { status != Durable.IO && status != Durable.ROFS }

  // Its success is told only when what it did is durable, as the specification promises, or as TRIM and LOCAL want it.
  predicate Waits(procedure: uint32, stability: uint32, deferred: bool) {
    (procedure < Durable.PROCEDURES && Durable.Promised(procedure, stability) && !deferred) ||
      procedure == TRIM || (procedure == LOCAL && !deferred)
  }
  // Success of the commit (0: none) is told as Waits says, and that of COMMIT when all is durable that was committed
  // before.
  twostate predicate Keeps(txn: Txn, status: uint32, commit: int, procedure: uint32, stability: uint32, deferred: bool)
    reads txn, txn.system, txn.system.journal
  {
    (status == 0 && commit != 0 && Waits(procedure, stability, deferred) ==>
      commit <= txn.system.journal.durableIndex) &&
    (status == 0 && procedure == Durable.COMMIT ==>
      |old(txn.system.journal.states)| - 1 <= txn.system.journal.durableIndex)
  }
  // A reason for IO: the device has failed, or a crash had torn what was to be written in part.
  // torn: those blocks, when the transaction ended.
  predicate Fault(journal: Journal, told: Told, torn: set<int>)
    reads journal, journal.disk, journal.installer
  { (journal.failed && journal.Cause()) || Unread(journal, told.wrote, torn) }

  // Waits until all that was committed is durable (settled: as in Await).
  method Sync(txn: Txn) returns (outcome: uint32)
    requires txn.Inv() && txn.Idle() && !txn.system.journal.mutex.held
    modifies txn.system.Shared(), txn.system.journal.mutex, txn.system`lastStable, txn.system`logs
    ensures Rests(txn)
    ensures txn.system.journal.mutex.settled == txn.owner
    ensures outcome == OK ==> |old(txn.system.journal.states)| - 1 <= txn.system.journal.durableIndex
    ensures outcome == OK || (outcome == UNSURE && txn.system.journal.failed && txn.system.journal.Cause())
    decreases *
  {
    Lasts(txn.system.kinds, txn.system.logs, txn.system.journal.states);
    var ok, commits := Flush(txn.system.journal);
    TYield(txn.system, txn.owner);
    outcome := if ok then OK else UNSURE;
    if !ok { FailedFor(txn.system.journal); }
  }
  // Ends the transaction of a procedure, a WRITE as stable as `stability` says, whose work was cut short, as txn.cut
  // says, or has come to the status `result`. The answer is `status`, which `result` alone may be too; `outcome` says
  // more about an error.
  method Exec(txn: Txn, work: Work, result: uint32, procedure: uint32, stability: uint32, deferred: bool,
    ghost permit: Permit)
    returns (status: uint32, outcome: uint32, ghost commit: int, ghost told: Told)
    requires Worked(txn) && For(work, txn) && permit.may
    modifies txn, txn.system.Shared(), txn.system.journal.mutex, txn.system`lastStable, txn.system`logs, txn.buffer,
      txn.writes, permit, work.fate, txn.hold
    // on every path: no lock is held, and at most one commit was made, which is the one told of
    ensures Rests(txn) && Commits(txn, permit, commit)
    ensures commit != 0 ==> |old(txn.system.journal.states)| <= commit && Made(txn.system, commit, told) &&
      old(txn.cut) == OK && result == 0 && (outcome == OK || outcome == UNSURE)
    ensures status == Status(outcome, result) && Heard(work, commit, told) && GivesBack(txn)
    ensures if old(txn.cut) == OK then Reason(txn, outcome, ReadOnly(procedure), told.wrote,
      old(txn.system.journal.torn)) else outcome == Short(old(txn.cut))
    // one that only reads, or was refused, changed nothing; one that says it was done, was
    ensures commit != 0 && procedure < Durable.PROCEDURES ==> Durable.Changes(procedure)
    ensures old(txn.system.journal.closed) ==> commit == 0
    ensures status != 0 ==> commit == 0 || status == Durable.IO
    ensures status == 0 ==> outcome == OK && result == 0 && (told.wrote != map[] ==> commit != 0)
    // it is durable if that was promised, and what is shown is
    ensures Keeps(txn, status, commit, procedure, stability, deferred)
    ensures Durable.Shows(status) ==> old(txn.cut) == OK && Lasting(txn.system, told)
    // If the work did not come to these itself: IO is the answer only for a fault; ROFS only if nothing can be
    // committed any more, or to what was not to write.
    ensures old(txn.cut) == OK && status == Durable.IO && result != Durable.IO ==>
      Fault(txn.system.journal, told, old(txn.system.journal.torn))
    ensures old(txn.cut) == OK && status == Durable.ROFS && result != Durable.ROFS ==>
      Closed(txn.system.journal) || (ReadOnly(procedure) && told.wrote != map[])
    decreases *
  {
    Table(procedure, stability);
    outcome, commit, told :=
      Run(txn, work, result, Stable(procedure, stability, deferred), ReadOnly(procedure), permit);
    if procedure == Durable.COMMIT && outcome == OK && result == 0 {
      outcome := Sync(txn);
    }
    status := Status(outcome, result);
  }

  // ---- WRITE, and what a local mount asks for of many bytes ----
  const MOST: uint64 := 1048576         // bytes
  const LEAST: uint64 := 4096
  predicate method Dividable(procedure: uint32) { procedure == Durable.WRITE || procedure == LOCAL }
  // How many of so many bytes a WRITE stores, unless they do not fit a transaction. After they were too many, it tries
  // fewer (0: no).
  function method First(bytes: uint64): uint64 { if bytes > MOST then MOST else bytes }
  function method Fewer(bytes: uint64): uint64 { if bytes > LEAST then bytes / 2 else 0 }
  // what its reply says of how stable they are: Exec promises it
  function method Committed(stability: uint32, deferred: bool): uint32
  { if Stable(Durable.WRITE, stability, deferred) then Durable.FILE_SYNC else Durable.UNSTABLE }
  // bytes: what has been tried so far; all of that may be stored
  lemma Reply(given: uint64, bytes: uint64, stability: uint32)
    requires stability <= Durable.FILE_SYNC
    ensures First(given) <= MOST &&
      NfsData.WriteReply(given as int, stability, First(given) as int, Committed(stability, false))
    ensures NfsData.WriteReply(given as int, stability, bytes as int, Committed(stability, false)) &&
      Fewer(bytes) != 0 ==>
      NfsData.WriteReply(given as int, stability, Fewer(bytes) as int, Committed(stability, false)) &&
      Fewer(bytes) < bytes
    ensures bytes > LEAST ==> Fewer(bytes) != 0
    ensures Committed(stability, false) != Durable.UNSTABLE <==> Durable.Promised(Durable.WRITE, stability)
    ensures Committed(stability, true) == Durable.UNSTABLE
  {}
}
