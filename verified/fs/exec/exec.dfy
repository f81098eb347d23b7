// The runner of the procedures: which of them are read-only, which wait until they are durable, and what is answered.
include "../spec/durable.s.dfy"
include "../spec/nfs3.s.dfy"
include "../../txn/run.dfy"

module Exec {
  import opened Machine
  import opened JournalM
  import opened JournalThreads
  import opened TxnSysM
  import opened TxnM
  import opened CommitM
  import opened JournalCommit
  import opened WorkS
  import opened TxnRun
  import D = NfsDurable
  import NfsData

  // What the server does of its own accord, beside the procedures. FREE: blocks of removed files are freed, in the background, or are
  // written anew; none of it can be seen. TRIM: free blocks are written that are about to lose their room on the host.
  const FREE: uint32 := 100
  const TRIM: uint32 := 101
  // What a local mount asks for beside the procedures (local.s.dfy) and changes something: it waits as they do.
  const LOCAL: uint32 := 102
  // a status that no client sees: the transaction does not fit the journal
  const TOOBIG: uint32 := 20000

  predicate method ReadOnly(p: uint32) { p < D.PROCEDURES && p != D.SETATTR && !(D.WRITE <= p && p <= D.LINK) }
  // Does p wait until what it did is durable? deferred: the procedures do not.
  predicate method Stable(p: uint32, how: uint32, deferred: bool)
  { !ReadOnly(p) && p != FREE && (p == TRIM || (!deferred && !(p == D.WRITE && how == D.UNSTABLE))) }
  // The table says what the specification wants, and no procedure waits that need not.
  lemma Table(p: uint32, how: uint32)
    ensures p < D.PROCEDURES ==> (ReadOnly(p) <==> !D.Changes(p)) && (Stable(p, how, false) <==> D.Promised(p, how)) && !Stable(p, how, true)
    ensures Stable(TRIM, how, true) && !ReadOnly(TRIM) && !ReadOnly(FREE) && !Stable(FREE, how, false)
    ensures !ReadOnly(LOCAL) && Stable(LOCAL, how, false) && !Stable(LOCAL, how, true)
  {}

  // the answer to a call whose transaction ended with st, after its work had come to status r
  function method Status(st: uint32, r: uint32): uint32 {
    if st == OK then r else if st == READONLY then D.ROFS else if st == TOOLARGE then TOOBIG else D.IO
  }
  // whether attributes go into the reply
  predicate method Tells(status: uint32)
    ensures Tells(status) <==> D.Shows(status)
  { status != D.IO && status != D.ROFS }

  // Waits until all that was committed is durable (settled: as in Await).
  method Sync(t: Txn) returns (st: uint32)
    requires t.Inv() && t.Idle() && !t.system.journal.mutex.held
    modifies t.system.journal, t.system.journal.logger, t.system.journal.installer, t.system.journal.disk, t.system.journal.seal, t.system.journal.cache, t.system.journal.tree.pages, t.system.journal.repr, t.system.journal.mutex, t.system.locks, t.system`lastStable, t.system`logs
    ensures t.Inv() && t.Idle() && t.system.journal.Mono() && !t.system.journal.mutex.held && fresh(t.system.journal.repr - old(t.system.journal.repr)) && t.system.Remembers() && t.system.kinds == old(t.system.kinds)
    ensures t.system.journal.mutex.settled == t.owner
    ensures st == OK ==> |old(t.system.journal.states)| - 1 <= t.system.journal.durableIndex
    ensures st == OK || (st == UNSURE && t.system.journal.failed && t.system.journal.Cause())
    decreases *
  {
    Lasts(t.system.kinds, t.system.logs, t.system.journal.states);
    var ok, n := Flush(t.system.journal);
    TYield(t.system, t.owner);
    st := if ok then OK else UNSURE;
    if !ok { FailedFor(t.system.journal); }
  }
  // Ends the transaction of procedure p, a WRITE as stable as `how` says, whose work was cut short, as t.cut says, or has come to status r. The answer is `status`, which r alone may be too; st says more about an error.
  method Exec(t: Txn, w: Work, r: uint32, p: uint32, how: uint32, deferred: bool, ghost permit: Permit) returns (status: uint32, st: uint32, ghost at: int, ghost g: Told)
    requires t.Inv() && t.ownCommit == 0 && !t.appended && !t.system.journal.mutex.held && w.t == t && permit.may
    modifies t, t.system.journal, t.system.journal.logger, t.system.journal.installer, t.system.journal.disk, t.system.journal.seal, t.system.journal.cache, t.system.journal.tree.pages, t.system.journal.repr, t.system.journal.mutex, t.system.locks, t.system`lastStable, t.system`logs, t.buffer, t.writes, permit
    // on every path: no lock is held, and at most one commit was made, which is the one told of
    ensures t.Inv() && t.Idle() && t.system.journal.Mono() && !t.system.journal.mutex.held && fresh(t.system.journal.repr - old(t.system.journal.repr)) && t.system.Remembers() && t.system.kinds == old(t.system.kinds)
    ensures Taken(t, at != 0) && (permit.may <==> at == 0) && (at != 0 ==> old(t.cut) == OK && r == 0 && (st == OK || st == UNSURE) && |old(t.system.journal.states)| <= at && Made(t.system, at, g))
    ensures status == Status(st, r)
    // one that only reads, or was refused, changed nothing; one that says it was done, was
    ensures at != 0 && p < D.PROCEDURES ==> D.Changes(p)
    ensures old(t.system.journal.closed) ==> at == 0
    ensures status != 0 ==> at == 0 || status == D.IO
    ensures status == 0 ==> st == OK && r == 0 && (g.wrote != map[] ==> at != 0)
    // it is durable if that was promised, and what is shown is
    ensures status == 0 && at != 0 && p < D.PROCEDURES && D.Promised(p, how) && !deferred ==> at <= t.system.journal.durableIndex
    ensures status == 0 && at != 0 && (p == TRIM || (p == LOCAL && !deferred)) ==> at <= t.system.journal.durableIndex
    ensures D.Shows(status) ==> old(t.cut) == OK && Lasting(t.system, g)
    ensures status == 0 && p == D.COMMIT ==> |old(t.system.journal.states)| - 1 <= t.system.journal.durableIndex
    // If the work did not come to these itself: IO is the answer only for the device, or what a crash had torn; ROFS only if nothing can be committed any more, or to
    // what was not to write.
    ensures old(t.cut) == OK && status == D.IO && r != D.IO ==> (t.system.journal.failed && t.system.journal.Cause()) || Unread(t.system.journal, g.wrote, old(t.system.journal.torn))
    ensures old(t.cut) == OK && status == D.ROFS && r != D.ROFS ==> Closed(t.system.journal) || (ReadOnly(p) && g.wrote != map[])
    decreases *
  {
    Table(p, how);
    st, at, g := Run(t, w, r, Stable(p, how, deferred), ReadOnly(p), permit);
    if p == D.COMMIT && st == OK && r == 0 {
      st := Sync(t);
    }
    status := Status(st, r);
  }

  // ---- WRITE, and what a local mount asks for of many bytes ----
  const MOST: uint64 := 1048576         // bytes
  const LEAST: uint64 := 4096
  predicate method Dividable(p: uint32) { p == D.WRITE || p == LOCAL }
  // how many of n bytes a WRITE stores, unless they do not fit a transaction; after n were too many, it tries fewer (0: no)
  function method First(n: uint64): uint64 { if n > MOST then MOST else n }
  function method Fewer(n: uint64): uint64 { if n > LEAST then n / 2 else 0 }
  // what its reply says of how stable they are: Exec promises it
  function method Committed(how: uint32, deferred: bool): uint32 { if Stable(D.WRITE, how, deferred) then D.FILE_SYNC else D.UNSTABLE }
  // n: what has been tried so far; all of that may be stored
  lemma Reply(given: uint64, n: uint64, how: uint32)
    requires how <= D.FILE_SYNC
    ensures First(given) <= MOST && NfsData.WriteReply(given as int, how, First(given) as int, Committed(how, false))
    ensures NfsData.WriteReply(given as int, how, n as int, Committed(how, false)) && Fewer(n) != 0 ==>
      NfsData.WriteReply(given as int, how, Fewer(n) as int, Committed(how, false)) && Fewer(n) < n
    ensures n > LEAST ==> Fewer(n) != 0
    ensures Committed(how, false) != D.UNSTABLE <==> D.Promised(D.WRITE, how)
    ensures Committed(how, true) == D.UNSTABLE
  {}
}
