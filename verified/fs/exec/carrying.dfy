// A call, carried out: which of its transactions comes after which, until it has its answer. Go does the work of each
// (attempts.s.dfy), and what frees blocks in between.
include "call.dfy"
include "../../trusted/attempts.s.dfy"

module Carrying {
  import opened Machine
  import opened JournalM
  import opened TxnSysM
  import opened TxnM
  import opened TxnEnding
  import opened WorkS
  import opened TxnRun
  import opened E = Exec
  import opened Calls
  import opened AttemptSpec
  import opened Attempts
  import Durable = NfsDurable

  // Does the work of a call in a transaction, and ends that; again as long as that is what is next. What is promised of
  // the last one is promised of all.
  method Perform(call: Call, txn: Txn, attempt: Attempt, ghost permit: Permit)
    returns (next: uint32, outcome: uint32, ghost commit: int, ghost told: Told)
    requires attempt.call == call && attempt.txn == txn && txn.Inv() && txn.Idle() && !txn.system.journal.mutex.held
    requires permit.may && call.commits == 0
    modifies call, txn, txn.system.Shared(), txn.system.journal.mutex, txn.system`lastStable, txn.system`logs,
      txn.buffer, txn.writes, permit, txn.hold
    ensures Rests(txn) && Commits(txn, permit, commit) && Tried(call, next)
    ensures commit != 0 ==> |old(txn.system.journal.states)| <= commit && Made(txn.system, commit, told)
    ensures call.commits == (if commit != 0 then 1 else 0)
    ensures commit != 0 && call.procedure < Durable.PROCEDURES ==> Durable.Changes(call.procedure)
    ensures old(txn.system.journal.closed) ==> commit == 0
    ensures call.status == 0 && told.wrote != map[] ==> call.commits == 1
    ensures commit != 0 ==> call.status == 0 || call.status == Durable.IO
    ensures Keeps(txn, call.status, commit, call.procedure, call.stability, call.deferred)
    ensures call.status == 0 && commit != 0 && call.procedure == Durable.WRITE &&
      E.Committed(call.stability, call.deferred) != Durable.UNSTABLE ==> commit <= txn.system.journal.durableIndex
    ensures call.Bare() || (Durable.Shows(call.status) && Lasting(txn.system, told))
    ensures call.status != 0 ==> call.Same()
    decreases *
  {
    while true
      invariant Rests(txn) && permit.may && call.commits == 0 && Asked(call) && call.record == old(call.record)
      invariant txn.points == old(txn.points)
      decreases *
    {
      var work := attempt.Do();
      next, outcome, commit, told := Ended(call, txn, work, permit);
      if next != AGAIN { return; }
    }
  }

  // Carries a call out. Its answer is the last attempt's, but for an error of freeing what was cut off. If it was for
  // want of room, none was found. If its record may be what could not be read, the device had failed.
  method Carry(call: Call, service: Service)
    requires service.call == call && call.commits == 0
    modifies call, service
    ensures 0 <= call.commits <= 1 && !Inner(call.status) && Asked(call)
    ensures service.last == SHRINK ==> service.stopped
    ensures service.last == ROOM ==> service.full
    ensures service.last == ALONE ==> service.broken
    decreases *
  {
    while true
      invariant call.commits == 0 && Asked(call)
      decreases *
    {
      var next := service.Try();
      while next == SHRINK
        invariant Shrinks(call, service, next) && Asked(call)
        decreases *
      {
        var status, done := service.Shrink();
        next := Shrunk(call, status, done);
      }
      var again := next == AGAIN;
      if next == ROOM {
        again := service.Room();
      } else if next == ALONE {
        again := service.Usable();
        if again { call.record := false; }
      }
      if !again { return; }
    }
  }
  // after an attempt, and steps of Shrink if these came next
  predicate Shrinks(call: Call, service: Service, next: uint32) reads call, service
  {
    !Inner(call.status) && (call.commits == 0 || (next == ANSWER && call.commits == 1)) &&
      (next == service.last || (service.last == SHRINK && next == AGAIN) ||
        (service.last == SHRINK && next == ANSWER && service.stopped))
  }
}
