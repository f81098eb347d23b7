// TRUSTED: what Go does for a call between verified steps: its work, once, and what has changed before it is done
// again. Go: internal/runtime/attempts, whose functions are of dtxn and fs.
include "../fs/exec/call.dfy"

module AttemptSpec {
  import opened Machine
  import opened Calls
  // what was asked for
  twostate predicate Asked(call: Call) reads call
  {
    call.procedure == old(call.procedure) && call.stability == old(call.stability) &&
      call.deferred == old(call.deferred) && call.bytes <= old(call.bytes)
  }
  // An attempt at a call has come to what is next: it has committed once at most, and then the call has its answer.
  twostate predicate Tried(call: Call, next: uint32) reads call
  {
    next != AGAIN && (call.commits == 0 || (next == ANSWER && call.commits == 1)) &&
      (call.status == 0 ==> next == ANSWER) && !Inner(call.status) && Asked(call) && call.record == old(call.record)
  }
}

module {:extern "attempts"} Attempts {
  import opened Machine
  import opened TxnSysM
  import opened TxnM
  import opened TxnRun
  import opened WorkS
  import opened Calls
  import opened AttemptSpec

  trait {:extern "Attempt"} Attempt {       // tested: dtxn.TestHalt, TestErrors, TestRefused
    ghost const txn: Txn
    ghost const call: Call
    // Does the work of the call in the transaction, once: to its end, with what it has come to in the call, or up to
    // where it cannot go on, of which the transaction was told.
    method {:extern "Do"} Do() returns (work: Work)
      requires txn.Inv() && txn.Idle() && !txn.system.journal.mutex.held
      modifies call`result, call`ino, call`file, call`before, call`after, call`before2, call`after2, call`later, txn,
        txn.system.Shared(), txn.system.journal.mutex, txn.system`lastStable, txn.system`logs, txn.buffer, txn.writes,
        txn.hold
      ensures Worked(txn) && For(work, txn) && fresh(work.fate) && txn.points == old(txn.points)
      ensures txn.system.journal.Mono() && fresh(txn.system.journal.repr - old(txn.system.journal.repr)) &&
        txn.system.Remembers() && txn.system.kinds == old(txn.system.kinds)
      decreases *
  }

  // What a call is carried out with.
  trait {:extern "Service"} Service {       // tested: fs.TestGrowingAgain, TestFreedWhileFull, TestRecordsDamagedInUse
    ghost const call: Call
    // What was next after the last attempt. Whether since then freeing was answered with an error, no room was found,
    // and the device was seen to be broken.
    ghost var last: uint32
    ghost var stopped: bool
    ghost var full: bool
    ghost var broken: bool
    // An attempt: a transaction by Perform (fs/exec/carrying.dfy), or none if the volume takes no changes any more.
    method {:extern "Try"} Try() returns (next: uint32)
      requires call.commits == 0
      modifies this, call
      ensures Tried(call, next) && last == next && !stopped && !full && !broken
      decreases *
    // A step of freeing what was cut off the file of the call, and what that was answered with; done: nothing is left.
    method {:extern "Shrink"} Shrink() returns (status: uint32, done: bool)
      modifies this`stopped ensures !Inner(status) && stopped == (status != 0)
      decreases *
    // There may be more room than the last attempt found.
    method {:extern "Room"} Room() returns (found: bool)
      modifies this`full ensures full == !found
    // The device has not failed for good: what could not be read may be the call's record alone.
    method {:extern "Usable"} Usable() returns (usable: bool)
      modifies this`broken ensures broken == !usable
  }
}
