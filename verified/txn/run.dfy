// The runner: a transaction from the end of its work to the answer.
//
// Run commits or aborts, and waits until what may be told of it is
// durable. No status comes back before, and whatever comes back, all locks are gone and the buffer is empty (Idle).
include "ending.dfy"
include "../trusted/work.s.dfy"

module TxnRun {
  import opened Machine
  import opened TxnSpec
  import opened ObjectsM
  import opened History
  import opened LogModel
  import opened JournalM
  import opened JournalThreads
  import opened TxnSysM
  import opened TxnM
  import opened TxnEnding
  import opened JournalCommit
  import opened WorkS

  // status beside those of TxnM: the device failed when it was waited for. What was committed has taken effect in
  // memory; whether the device has it, only the next recovery tells.
  const UNSURE: uint32 := 5

  // What a transaction was when its work had ended: what it did, what it wrote, and the last stable commits that wrote
  // what it held.
  datatype Told = Told(log: Log, wrote: Objs, seen: map<uint64, uint64>)
  function What(t: Txn): Told reads t, t.system, t.system.locks, t.buffer
  {
    Told(t.log, t.buffer.objects, map k | k in t.system.lastStable &&
      t.system.locks.Holds(t.owner, k) :: t.system.lastStable[k])
  }
  // commit `at` was made of what is told
  predicate Made(s: System, at: int, g: Told) reads s, s.journal
  {
    0 < at < |s.journal.states| && g.wrote != map[] && Recorded(s, at, g.log) &&
      Put(s.kinds, s.journal.states[at-1], s.journal.states[at], g.wrote, 0x1_0000_0000_0000_0000)
  }
  // How each method here leaves t: it holds no lock, the mutex is free, and no commit is forgotten.
  twostate predicate Rests(t: Txn) reads * {
    t.Inv() && t.Idle() && t.system.journal.Mono() && !t.system.journal.mutex.held &&
      fresh(t.system.journal.repr - old(t.system.journal.repr)) && t.system.Remembers() &&
      t.system.kinds == old(t.system.kinds)
  }
  // Its Hold was ended, once: of all that the transaction has read nothing is known to be seen any more, nor of its
  // copies, but where a map has them.
  twostate predicate GivesBack(t: Txn) reads t.hold { t.hold.ends == old(t.hold.ends) + 1 }
  // Its work has ended, and nothing of it is committed yet.
  predicate Worked(t: Txn) reads * { t.Inv() && t.ownCommit == 0 && !t.appended && !t.system.journal.mutex.held }
  // w is the work of t, which goes on
  predicate For(w: Work, t: Txn) reads w.fate { w.txn == t && w.buffer == t.buffer && !w.fate.known }
  // It has been told, once, what became of what t wrote: whether commit `at` was made, if there was anything to commit.
  predicate Heard(w: Work, at: int, g: Told) reads w.fate
  { w.fate.known && (at != 0 ==> w.fate.committed) && (w.fate.committed && g.wrote != map[] ==> at != 0) }
  // It took commit point `at`, which used p up, or none (0).
  twostate predicate Commits(t: Txn, p: Permit, at: int) reads t, p { Taken(t, at != 0) && (p.may <==> at == 0) }
  // nothing that was seen can be taken back any more
  predicate Lasting(s: System, g: Told) reads s, s.journal {
    forall k :: k in g.seen ==> g.seen[k] as int <= s.journal.durableIndex
  }
  // With these a reply may tell what the transaction saw; with the others it may tell nothing.
  predicate method MayTell(st: uint32) { st == OK || st == TOOLARGE }

  // how a transaction ends whose work was cut short: it tells nothing of what it saw
  function method Short(cut: uint32): uint32 { if MayTell(cut) then IOERR else cut }

  // Why a transaction whose work was not cut short, and which wrote m, ends with st: a failure is the device's. A block
  // could not be read, of a device that is not sound or that a crash had torn (torn, when it ended); or the journal has
  // failed, for which there is a cause. It is too large only with more than 500 objects.
  predicate Reason(t: Txn, st: uint32, ro: bool, m: Objs, torn: set<int>)
    reads t, t.system, t.system.journal, t.system.journal.disk, t.system.journal.installer
  {
    st == OK || (st == TOOLARGE && |m| > 500) || (st == IOERR && Unread(t.system.journal, m, torn)) ||
      (st == UNSURE && t.system.journal.failed && t.system.journal.Cause()) ||
    (st == READONLY && ((ro && m != map[]) || Closed(t.system.journal)))
  }
  lemma FailedFor(j: Journal)
    requires j.Inv() && j.failed
    ensures j.Cause()
  { reveal j.Inv(); }

  // Waits until commit need is durable, if the status says that something is told. At the end the transaction knows
  // what the others did meanwhile (settled): the Yields of WaitDurable say so of the journal alone.
  method Await(t: Txn, st: uint32, need: uint64) returns (end: uint32)
    requires t.Inv() && t.Idle() && !t.system.journal.mutex.held
    modifies t.system.Shared(), t.system.journal.mutex, t.system`lastStable, t.system`logs
    ensures Rests(t)
    ensures t.system.journal.mutex.settled == t.owner
    ensures MayTell(end) ==> end == st && (need > 0 ==> need as int <= t.system.journal.durableIndex)
    ensures end == st || (MayTell(st) && end == UNSURE && t.system.journal.failed)
    decreases *
  {
    var ok := true;
    if MayTell(st) && need > 0 {
      Lasts(t.system.kinds, t.system.logs, t.system.journal.states);
      ok := WaitDurable(t.system.journal, need);
    }
    TYield(t.system, t.owner);
    end := if ok then st else UNSURE;
  }

  // Ends a transaction whose work has come to status r: commits if that is 0, else aborts; a read-only one never
  // commits. If st is one of MayTell, r may be told when commit need is durable.
  method Conclude(t: Txn, w: Work, r: uint32, stable: bool, ro: bool, ghost p: Permit) returns (st: uint32,
    need: uint64, ghost at: int)
    requires Worked(t) && For(w, t) && p.may && t.cut == OK
    modifies t, t.system.Shared(), t.system.journal.mutex, t.system`lastStable, t.system`logs, t.buffer, t.writes, p,
      t.hold
    ensures Rests(t)
    ensures old(Covers(t, need as int))
    ensures Commits(t, p, at) &&
      (at != 0 ==> |old(t.system.journal.states)| <= at && Made(t.system, at, old(What(t))) && r == 0 && !ro &&
        st == OK)
    ensures st == OK && r == 0 && old(t.buffer.objects) != map[] ==> at != 0 && (stable ==> at <= need as int)
    ensures Reason(t, st, ro, old(t.buffer.objects), old(t.system.journal.torn)) && st != UNSURE &&
      (old(t.system.journal.closed) ==> at == 0)
    ensures t.hold.ends == old(t.hold.ends)
    decreases *
  {
    at := 0;
    ghost var g := What(t);
    if r != 0 || ro {
      var n := t.buffer.Len();
      assert n > 0 ==> t.buffer.keys[0] in t.buffer.objects;
      st := if r == 0 && n > 0 then READONLY else OK;
      need := Abort(t);
      return;
    }
    var ok := w.Admit();
    if !ok {
      need := Abort(t);
      st := TOOLARGE;
      return;
    }
    t.hold.EndSeen();       // here, for below it may wait long
    st, need, at := Finish(t, stable, p);
    if st != OK || g.wrote == map[] { at := 0; }
  }
  // The same, and waits. With st = OK, r may be told.
  method Close(t: Txn, w: Work, r: uint32, stable: bool, ro: bool, ghost p: Permit) returns (st: uint32, ghost at: int,
    ghost g: Told)
    requires Worked(t) && For(w, t) && p.may && t.cut == OK
    modifies t, t.system.Shared(), t.system.journal.mutex, t.system`lastStable, t.system`logs, t.buffer, t.writes, p,
      w.fate, t.hold
    ensures Rests(t)
    ensures g == old(What(t)) && Finds(old(t.system.kinds), g.log, old(t.system.journal.Cur()))
    ensures MayTell(st) ==> Lasting(t.system, g)
    ensures Commits(t, p, at) &&
      (at != 0 ==> |old(t.system.journal.states)| <= at && Made(t.system, at, g) && r == 0 && !ro &&
      (st == OK || st == UNSURE))
    ensures st == OK && r == 0 && g.wrote != map[] ==> at != 0 && (stable ==> at <= t.system.journal.durableIndex)
    ensures Reason(t, st, ro, g.wrote, old(t.system.journal.torn)) && (old(t.system.journal.closed) ==> at == 0)
    ensures Heard(w, at, g) && GivesBack(t)
    decreases *
  {
    g := What(t);
    DidThere(t.system.kinds, t.log, t.found, t.buffer.objects, t.system.journal.Cur());
    ghost var before := t.system.logs;
    var need;
    st, need, at := Conclude(t, w, r, stable, ro, p);
    ghost var between := t.system.logs;
    assert forall n {:trigger n in before} :: n in before ==> n in between && between[n] == before[n];
    t.hold.End();
    w.Ended(st == OK && r == 0);
    st := Await(t, st, need);
    assert forall n {:trigger n in between} :: n in between ==> n in t.system.logs && t.system.logs[n] == between[n];
    if st == UNSURE { FailedFor(t.system.journal); }
  }

  // Ends a transaction without effect. Nothing may be told of it.
  method Undo(t: Txn, w: Work)
    requires Worked(t) && For(w, t)
    modifies t, t.system.Shared(), t.system.journal.mutex`settled, t.system`lastStable, t.system`logs, t.buffer,
      t.writes, w.fate, t.hold
    ensures Rests(t) && Taken(t, false) && w.fate.known && !w.fate.committed && GivesBack(t)
  {
    var _ := Abort(t);
    t.hold.End();
    w.Ended(false);
  }

  // Ends a transaction. Its work was cut short, as t.cut says, or has come to status r. CONFLICT: it is to be run
  // again. Once the journal is closed, it has committed nothing.
  method Run(t: Txn, w: Work, r: uint32, stable: bool, ro: bool, ghost p: Permit) returns (st: uint32, ghost at: int,
    ghost g: Told)
    requires Worked(t) && For(w, t) && p.may
    modifies t, t.system.Shared(), t.system.journal.mutex, t.system`lastStable, t.system`logs, t.buffer, t.writes, p,
      w.fate, t.hold
    ensures Rests(t)
    ensures MayTell(st) ==> old(t.cut) == OK && Lasting(t.system, g)
    ensures Commits(t, p, at) &&
      (at != 0 ==> |old(t.system.journal.states)| <= at && Made(t.system, at, g) && old(t.cut) == OK && r == 0 &&
      !ro && (st == OK || st == UNSURE))
    ensures st == OK && r == 0 && g.wrote != map[] ==> at != 0 && (stable ==> at <= t.system.journal.durableIndex)
    ensures old(t.system.journal.closed) ==> at == 0
    ensures if old(t.cut) == OK then Reason(t, st, ro, g.wrote, old(t.system.journal.torn)) else st == Short(old(t.cut))
    ensures Heard(w, at, g) && GivesBack(t)
    decreases *
  {
    at := 0;
    var cut := t.cut;
    if cut == OK {
      st, at, g := Close(t, w, r, stable, ro, p);
    } else {
      g := What(t);
      st := Short(cut);
      Undo(t, w);
    }
  }
}
