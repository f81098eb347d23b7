// A call, from its first transaction to its answer: what is done next when one of its transactions has ended.
//
// Carrying (carrying.dfy) does what Ended and Shrunk name; Go answers with the call's status and attributes. Whatever
// is made of that: the call has taken at most one commit point over all its transactions, no status is a client's that
// means this server alone, and there are attributes only after a transaction that came to its end and saw nothing that
// can be taken back.
include "exec.dfy"

module Calls {
  import opened Machine
  import opened ByteSlice
  import opened JournalM
  import opened TxnSysM
  import opened TxnM
  import opened TxnEnding
  import opened WorkS
  import opened TxnRun
  import opened E = Exec
  import Durable = NfsDurable

  // What is next.
  const ANSWER: uint32 := 0        // it has its answer
  const AGAIN: uint32 := 1         // the same once more
  const SHRINK: uint32 := 2        // steps of Shrink on the file, until Shrunk says what is next
  const ROOM: uint32 := 3          // once more if blocks were freed; else NOSPC is the answer
  // once more without a record, if that may be what could not be read; else IO is the answer
  const ALONE: uint32 := 4

  const SHRINKFIRST: uint32 := 20001
  const NOSPC: uint32 := 28
  const SERVERFAULT: uint32 := 10006
  // no client's
  predicate method Inner(status: uint32) { status == TOOBIG || status == SHRINKFIRST }

  // b has the attributes of a file: its inode, serialized
  predicate Whole(b: Bytes?) reads b { b != null && |b.data| == 256 }

  class Call {
    var procedure: uint32
    var stability: uint32          // WRITE: how stable
    var deferred: bool             // nothing waits but COMMIT
    var bytes: uint64              // WRITE, LOCAL: how many bytes are stored
    var ino: uint64                // the file of which SHRINK is to free blocks
    var record: bool               // it leaves a record of itself
    // What the work of the transaction under way has come to: a procedure puts it here. Until then it is SERVERFAULT.
    var result: uint32
    var status: uint32             // the answer
    // the attributes that go with it: of the file, and before and after the call, of up to two; null: none
    var file: Bytes?
    var before: Bytes?
    var after: Bytes?
    var before2: Bytes?
    var after2: Bytes?
    var later: bool                // when it is done, blocks wait to be freed
    ghost var commits: int         // commit points taken

    method Make(procedure: uint32, stability: uint32, deferred: bool, bytes: uint64)
      modifies this
      ensures this.procedure == procedure && this.stability == stability && this.deferred == deferred
      ensures this.bytes == First(bytes) && !record && commits == 0 && status == Durable.IO && Bare() && !Came()
    {
      this.procedure, this.stability, this.deferred, this.bytes := procedure, stability, deferred, First(bytes);
      record, later, commits, result := false, false, 0, SERVERFAULT;
      Refuse(Durable.IO);
    }
    // What a procedure has come to, put here in one step: of one that enters a name, of one that changes a file, and of
    // RENAME.
    method Enter(result: uint32, ino: uint64, file: Bytes?, before: Bytes?, after: Bytes?, later: bool)
      modifies this`result, this`ino, this`file, this`before, this`after, this`later
      ensures this.result == result && this.ino == ino && this.file == file && this.before == before &&
        this.after == after && this.later == later
    {
      this.result, this.ino, this.file, this.later := result, ino, file, later;
      this.before, this.after := before, after;
    }
    method Change(result: uint32, before: Bytes?, after: Bytes?, later: bool)
      modifies this`result, this`before, this`after, this`later
      ensures this.result == result && this.before == before && this.after == after && this.later == later
    { this.result, this.before, this.after, this.later := result, before, after, later; }
    method Move(result: uint32, before: Bytes?, after: Bytes?, before2: Bytes?, after2: Bytes?, later: bool)
      modifies this`result, this`before, this`after, this`before2, this`after2, this`later
      ensures this.result == result && this.before == before && this.after == after &&
        this.before2 == before2 && this.after2 == after2 && this.later == later
    {
      this.result, this.before, this.after, this.later := result, before, after, later;
      this.before2, this.after2 := before2, after2;
    }
    // Work that is the server's own, and none of the procedures, has come to its end.
    method Done() modifies this`result ensures result == 0 { result := 0; }
    // the work under way has come to something
    predicate Came() reads this { result != SERVERFAULT }
    predicate Bare() reads this {
      file == null && before == null && after == null && before2 == null && after2 == null
    }
    // what the last transaction has put there is there, as far as the answer has any
    twostate predicate Shown() reads this {
      file == old(file) && before == old(before) && before2 == old(before2) &&
        (status == 0 ==> after == old(after) && after2 == old(after2))
    }
    predicate Same() reads this { after == before && after2 == before2 }
    twostate predicate Still() reads this {
      procedure == old(procedure) && stability == old(stability) && deferred == old(deferred) &&
        record == old(record) && ino == old(ino)
    }
    // the answer st, of which nothing is known
    method Refuse(st: uint32)
      modifies this`status, this`file, this`before, this`after, this`before2, this`after2
      ensures status == st && Bare()
    {
      status := st;
      file, before, after, before2, after2 := null, null, null, null, null;
    }
    // the answer st, after a transaction that came to it. If nothing was changed, the attributes afterwards are those
    // before.
    method Answer(st: uint32)
      modifies this`status, this`file, this`before, this`after, this`before2, this`after2
      ensures status == st && (if Durable.Shows(st) then Shown() else Bare()) && (st != 0 ==> Same())
    {
      if !Tells(st) { Refuse(st); return; }
      status := st;
      if st != 0 { after, after2 := before, before2; }
    }
  }

  // What is next when a transaction of a call has ended with `outcome`, after its work had come to the status `result`.
  // fewer: the call can store fewer bytes; record: it leaves a record.
  function Next(outcome: uint32, result: uint32, fewer: bool, record: bool): uint32 {
    var status := E.Status(outcome, result);
    if outcome == CONFLICT || (status == TOOBIG && fewer) then AGAIN
    else if status == SHRINKFIRST then SHRINK
    else if status == NOSPC then ROOM
    else if status == Durable.IO && outcome != UNSURE && record then ALONE
    else ANSWER
  }
  // what the client is told of status
  function Final(status: uint32): uint32 { if status == TOOBIG then SERVERFAULT else status }

  // The call when its transaction has ended with `outcome`, after its work had come to the status `result`. What the
  // work of the next one comes to is not known yet.
  method Conclude(call: Call, outcome: uint32, result: uint32) returns (next: uint32)
    modifies call`bytes, call`result, call`status, call`file, call`before, call`after, call`before2, call`after2
    ensures !call.Came()
    ensures next == Next(outcome, result, E.Dividable(call.procedure) && E.Fewer(old(call.bytes)) != 0, call.record)
    ensures call.status == (if next == AGAIN || next == SHRINK then Durable.IO else Final(E.Status(outcome, result)))
    ensures (if Durable.Shows(call.status) then call.Shown() else call.Bare()) && (call.status != 0 ==> call.Same())
    ensures call.bytes == old(call.bytes) ||
      (next == AGAIN && E.Dividable(call.procedure) && 0 < call.bytes < old(call.bytes))
  {
    var status := E.Status(outcome, result);
    next := ANSWER;
    if outcome == CONFLICT {
      next := AGAIN;
    } else if status == TOOBIG {
      var fewer := if E.Dividable(call.procedure) then Fewer(call.bytes) else 0;
      if fewer == 0 {
        status := SERVERFAULT;
      } else {
        call.bytes := fewer;
        next := AGAIN;
      }
    } else if status == SHRINKFIRST {
      next := SHRINK;
    } else if status == NOSPC {
      next := ROOM;
    } else if status == Durable.IO && outcome != UNSURE && call.record {
      next := ALONE;
    }
    if next == AGAIN || next == SHRINK { status := Durable.IO; }       // until there is one
    call.Answer(status);
    call.result := SERVERFAULT;
  }

  // A transaction of the call has ended: its work was cut short, as txn.cut says, or has come to call.result. That is
  // forgotten then, so that no other attempt is answered with it. `outcome` says more about an error.
  method Ended(call: Call, txn: Txn, work: Work, ghost permit: Permit)
    returns (next: uint32, outcome: uint32, ghost commit: int, ghost told: Told)
    requires Worked(txn) && For(work, txn) && permit.may && call.commits == 0
    modifies call, txn, txn.system.Shared(), txn.system.journal.mutex, txn.system`lastStable, txn.system`logs,
      txn.buffer, txn.writes, permit, work.fate, txn.hold
    // at most one commit, and none if it goes on, or was refused; one that says it was done, was
    ensures Rests(txn) && Commits(txn, permit, commit)
    ensures commit != 0 ==> |old(txn.system.journal.states)| <= commit && Made(txn.system, commit, told) &&
      old(txn.cut) == OK && old(call.result) == 0
    ensures call.commits == (if commit != 0 then 1 else 0)
    ensures commit != 0 && call.procedure < Durable.PROCEDURES ==> Durable.Changes(call.procedure)
    ensures old(txn.system.journal.closed) ==> commit == 0
    ensures call.commits == 0 || (next == ANSWER && (call.status == 0 || call.status == Durable.IO))
    ensures call.status == 0 ==> next == ANSWER && old(call.result) == 0 && (told.wrote != map[] ==> call.commits == 1)
    // it is durable if that was promised, or a WRITE's reply says so, and what is shown is
    ensures Keeps(txn, call.status, commit, call.procedure, call.stability, call.deferred)
    ensures call.status == 0 && commit != 0 && call.procedure == Durable.WRITE &&
      E.Committed(call.stability, call.deferred) != Durable.UNSTABLE ==> commit <= txn.system.journal.durableIndex
    ensures call.Bare() || (Durable.Shows(call.status) && old(txn.cut) == OK && Lasting(txn.system, told))
    // the answer is what the last transaction has come to, with its attributes
    ensures next == Next(outcome, old(call.result), E.Dividable(call.procedure) && E.Fewer(old(call.bytes)) != 0,
      call.record)
    ensures next != AGAIN && next != SHRINK ==> call.status == Final(E.Status(outcome, old(call.result)))
    ensures Durable.Shows(call.status) ==> call.Shown()
    ensures Heard(work, commit, told) && GivesBack(txn)
    ensures if old(txn.cut) == OK then Reason(txn, outcome, E.ReadOnly(call.procedure), told.wrote,
      old(txn.system.journal.torn)) else outcome == Short(old(txn.cut))
    ensures call.status != 0 ==> call.Same()
    // the answer is a client's, and counts what this transaction was to store
    ensures !Inner(call.status)
    // IO is the answer for a fault alone
    ensures old(txn.cut) == OK && old(call.result) != Durable.IO && call.status == Durable.IO && next == ANSWER ==>
      Fault(txn.system.journal, told, old(txn.system.journal.torn))
    ensures !call.Came() && call.Still() && (call.bytes == old(call.bytes) ||
      (next == AGAIN && E.Dividable(call.procedure) && 0 < call.bytes < old(call.bytes)))
    decreases *
  {
    var status;
    var result := call.result;
    status, outcome, commit, told := E.Exec(txn, work, result, call.procedure, call.stability, call.deferred, permit);
    next := Conclude(call, outcome, result);
    call.commits := if commit != 0 then 1 else 0;
  }

  // A step of Shrink for the call was answered with status; done: nothing is left to be freed.
  method Shrunk(call: Call, status: uint32, done: bool) returns (next: uint32)
    requires call.commits == 0 && !Inner(call.status) && !Inner(status)
    modifies call`status, call`file, call`before, call`after, call`before2, call`after2
    ensures call.Bare() && !Inner(call.status)
    ensures status != 0 ==> next == ANSWER && call.status == status
    ensures status == 0 ==> next == if done then AGAIN else SHRINK
  {
    call.Refuse(if status != 0 then status else Durable.IO);
    next := if status != 0 then ANSWER else if done then AGAIN else SHRINK;
  }
}
