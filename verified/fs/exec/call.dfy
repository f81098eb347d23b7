// A call, from its first transaction to its answer: what is done next when one of its transactions has ended.
//
// Go carries out what Ended and Shrunk name, and answers with the call's status and attributes. Whatever it makes of that: the call
// has taken at most one commit point over all its transactions, no status is a client's that means this server alone, and there are
// attributes only after a transaction that came to its end and saw nothing that can be taken back.
include "exec.dfy"

module Calls {
  import opened Machine
  import opened ByteSlice
  import opened JournalM
  import opened TxnSysM
  import opened TxnM
  import opened CommitM
  import opened WorkS
  import opened TxnRun
  import opened E = Exec
  import D = NfsDurable

  // What is next.
  const ANSWER: uint32 := 0        // it has its answer
  const AGAIN: uint32 := 1         // the same once more
  const SHRINK: uint32 := 2        // steps of Shrink on the file, until Shrunk says what is next
  const ROOM: uint32 := 3          // once more if blocks were freed; else NOSPC is the answer
  const ALONE: uint32 := 4         // once more without a record, if that may be what could not be read; else IO is the answer

  const SHRINKFIRST: uint32 := 20001
  const NOSPC: uint32 := 28
  const SERVERFAULT: uint32 := 10006
  // no client's
  predicate method Inner(status: uint32) { status == TOOBIG || status == SHRINKFIRST }

  class Call {
    var p: uint32                  // the procedure
    var how: uint32                // WRITE: how stable
    var deferred: bool             // nothing waits but COMMIT
    var n: uint64                  // WRITE, LOCAL: the bytes that are stored
    var ino: uint64                // the file of which SHRINK is to free blocks
    var record: bool               // it leaves a record of itself
    var status: uint32             // the answer
    // the attributes that go with it: of the file, and before and after the call, of up to two; null: none
    var file: Bytes?
    var before: Bytes?
    var after: Bytes?
    var before2: Bytes?
    var after2: Bytes?
    var later: bool                // when it is done, blocks wait to be freed
    ghost var commits: int         // commit points taken

    method Make(p: uint32, how: uint32, deferred: bool, bytes: uint64)
      modifies this
      ensures this.p == p && this.how == how && this.deferred == deferred && n == First(bytes) && !record && commits == 0 && status == D.IO && Bare()
    {
      this.p, this.how, this.deferred, n, record, later, commits := p, how, deferred, First(bytes), false, false, 0;
      Refuse(D.IO);
    }
    predicate Bare() reads this { file == null && before == null && after == null && before2 == null && after2 == null }
    predicate Same() reads this { after == before && after2 == before2 }
    twostate predicate Still() reads this { p == old(p) && how == old(how) && deferred == old(deferred) && record == old(record) && ino == old(ino) }
    // the answer st, of which nothing is known
    method Refuse(st: uint32)
      modifies this`status, this`file, this`before, this`after, this`before2, this`after2
      ensures status == st && Bare()
    {
      status := st;
      file, before, after, before2, after2 := null, null, null, null, null;
    }
    // the answer st, after a transaction that came to it. If nothing was changed, the attributes afterwards are those before.
    method Answer(st: uint32)
      modifies this`status, this`file, this`before, this`after, this`before2, this`after2
      ensures status == st && (D.Shows(st) || Bare()) && (st != 0 ==> Same())
    {
      if !Tells(st) { Refuse(st); return; }
      status := st;
      if st != 0 { after, after2 := before, before2; }
    }
  }

  // A transaction of c has ended: its work was cut short, as t.cut says, or has come to status r. st says more about an error.
  method Ended(c: Call, t: Txn, w: Work, r: uint32, ghost p: Permit) returns (next: uint32, st: uint32, ghost at: int, ghost g: Told)
    requires t.Inv() && t.ownCommit == 0 && !t.appended && !t.system.journal.mutex.held && w.t == t && p.may && c.commits == 0
    modifies c, t, t.system.journal, t.system.journal.logger, t.system.journal.installer, t.system.journal.disk, t.system.journal.seal, t.system.journal.cache, t.system.journal.tree.pages, t.system.journal.repr, t.system.journal.mutex, t.system.locks, t.system`lastStable, t.system`logs, t.buffer, t.writes, p
    ensures t.Inv() && t.Idle() && t.system.journal.Mono() && !t.system.journal.mutex.held && fresh(t.system.journal.repr - old(t.system.journal.repr)) && t.system.Remembers() && t.system.kinds == old(t.system.kinds)
    // at most one commit, and none if it goes on, or was refused; one that says it was done, was
    ensures Taken(t, at != 0) && (p.may <==> at == 0) && (at != 0 ==> old(t.cut) == OK && r == 0 && |old(t.system.journal.states)| <= at && Made(t.system, at, g))
    ensures c.commits == (if at != 0 then 1 else 0) && (at != 0 && c.p < D.PROCEDURES ==> D.Changes(c.p))
    ensures old(t.system.journal.closed) ==> at == 0
    ensures c.commits == 0 || (next == ANSWER && (c.status == 0 || c.status == D.IO))
    ensures c.status == 0 ==> next == ANSWER && r == 0 && (g.wrote != map[] ==> c.commits == 1)
    // it is durable if that was promised, or a WRITE's reply says so, and what is shown is
    ensures c.status == 0 && at != 0 && c.p < D.PROCEDURES && D.Promised(c.p, c.how) && !c.deferred ==> at <= t.system.journal.durableIndex
    ensures c.status == 0 && at != 0 && c.p == D.WRITE && E.Committed(c.how, c.deferred) != D.UNSTABLE ==> at <= t.system.journal.durableIndex
    ensures c.status == 0 && at != 0 && (c.p == TRIM || (c.p == LOCAL && !c.deferred)) ==> at <= t.system.journal.durableIndex
    ensures c.status == 0 && c.p == D.COMMIT ==> |old(t.system.journal.states)| - 1 <= t.system.journal.durableIndex
    ensures c.Bare() || (D.Shows(c.status) && old(t.cut) == OK && Lasting(t.system, g))
    ensures c.status != 0 ==> c.Same()
    // the answer is a client's, and counts what this transaction was to store
    ensures !Inner(c.status) && (st == CONFLICT ==> next == AGAIN)
    ensures next == ANSWER || next == AGAIN || next == SHRINK || (next == ROOM && c.status == NOSPC) || (next == ALONE && c.record && c.status == D.IO)
    // IO is the answer for the device's sake, or what a crash had torn (Exec)
    ensures old(t.cut) == OK && r != D.IO && c.status == D.IO && next == ANSWER ==> (t.system.journal.failed && t.system.journal.Cause()) || Unread(t.system.journal, g.wrote, old(t.system.journal.torn))
    ensures c.Still() && (c.n == old(c.n) || (next == AGAIN && E.Dividable(c.p) && 0 < c.n < old(c.n)))
    decreases *
  {
    var status;
    status, st, at, g := E.Exec(t, w, r, c.p, c.how, c.deferred, p);
    c.commits := if at != 0 then 1 else 0;
    next := ANSWER;
    if st == CONFLICT {
      next := AGAIN;
    } else if status == TOOBIG {
      var fewer := if E.Dividable(c.p) then Fewer(c.n) else 0;
      if fewer == 0 {
        status := SERVERFAULT;
      } else {
        c.n := fewer;
        next := AGAIN;
      }
    } else if status == SHRINKFIRST {
      next := SHRINK;
    } else if status == NOSPC {
      next := ROOM;
    } else if status == D.IO && st != UNSURE && c.record {
      next := ALONE;
    }
    if next == AGAIN || next == SHRINK { status := D.IO; }       // until there is one
    c.Answer(status);
  }

  // A step of Shrink for c was answered with status; done: nothing is left to be freed.
  method Shrunk(c: Call, status: uint32, done: bool) returns (next: uint32)
    requires c.commits == 0 && !Inner(c.status) && !Inner(status)
    modifies c`status, c`file, c`before, c`after, c`before2, c`after2
    ensures c.Bare() && !Inner(c.status)
    ensures (status != 0 ==> next == ANSWER && c.status == status) && (status == 0 ==> next == if done then AGAIN else SHRINK)
  {
    c.Refuse(if status != 0 then status else D.IO);
    next := if status != 0 then ANSWER else if done then AGAIN else SHRINK;
  }
}
