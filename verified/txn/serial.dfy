// What the transactions are together: STRICTLY SERIALIZABLE, and after a crash so are those that were in time.
//
// The history of a volume since it was opened is the list of its commits, 1, 2, 3, ...: states[n] in the journal is the
// volume after n of them, and logs[n] what the transaction of commit n did: each object that it read and wrote, with
// what it found and left there.
//
// 1. History    Run alone, one after the other in this order, from states[0] on, all transactions would have read what
// they read,
//                 and the volume would be what it is.
// 2. Place      Each transaction has a place in that order at which it ran, so to say, alone; one that wrote nothing or
// was refused, too.
// 3. RealTime   The place of a transaction lies between its beginning and its end. So one that began when another had
// ended comes behind it.
// 4. Crash      Whatever a crash leaves on the device recovers to what the first n transactions made, for some n. Among
// them
// are all whose numbers somebody has waited for: stable ones that are told done, and stable ones whose effects were
// told.
//
// They rest on the invariants of the running code, which every step keeps: System.Inv has the history (Serial), TYield
// and each step that no commit is left out (NoOthers), Finish and Abort in ending.dfy what each call returns, and
// Journal.Inv what is on the device (DiskInv in journal/state.dfy).
include "ending.dfy"
include "../journal/recover.dfy"

module Serializability {
  import opened Machine
  import opened TxnSpec
  import opened ObjectsM
  import opened History
  import opened DiskS
  import opened LogModel
  import opened Groups
  import opened JournalM
  import opened RecoverM
  import opened TxnSysM
  import opened TxnM
  import opened TxnEnding

  // the history is whole: all commits are transactions'
  predicate Whole(s: System) reads s, s.journal, s.journal.logger, s.journal.installer, s.journal.disk, s.journal.seal,
    s.journal.cache, s.journal.tree.pages, s.journal.running, s.journal.logged, s.journal.frozen,
    s.journal.frozenDirect, s.journal.installing, s.journal.loggedDirect, s.journal.installingDirect,
    s.journal.logger.ring, s.journal.logger.direct, s.journal.logger.codes, s.locks {
    s.Inv() && Complete(s.logs, s.journal.states)
  }
  // what the first n transactions do, one after the other, is what makes states[n] of states[0]
  predicate Made(s: System, n: int) reads s, s.journal {
    0 <= n < |s.journal.states| && Leads(s.kinds, All(s.logs, n), s.journal.states[0], s.journal.states[n])
  }
  // l is what a transaction does alone after the first n
  predicate Follows(s: System, n: int, l: Log) reads s, s.journal {
    0 <= n < |s.journal.states| && Finds(s.kinds, All(s.logs, n) + l, s.journal.states[0])
  }

  // ---- 1. ----
  lemma History(s: System, n: int)
    requires Whole(s) && 0 <= n < |s.journal.states|
    ensures Made(s, n)
  { OneRun(s.kinds, s.logs, s.journal.states, n); }

  // ---- 2. ----
  // of one that Finish told committed, as number n
  lemma PlaceOfCommit(s: System, n: int, l: Log)
    requires Whole(s) && Recorded(s, n, l)
    ensures 0 < n < |s.journal.states| && Leads(s.kinds, l, s.journal.states[n - 1], s.journal.states[n])
    ensures Follows(s, n - 1, l) && All(s.logs, n) == All(s.logs, n - 1) + l
  {
    assert 0 < n < |s.journal.states| && Leads(s.kinds, l, s.journal.states[n - 1], s.journal.states[n]) by {
      reveal Serial();
    }
    History(s, n - 1);
    FindsCat(s.kinds, All(s.logs, n - 1), l, s.journal.states[0], s.journal.states[n - 1]);
  }
  // of one that wrote nothing, or failed: it comes behind all that there were when Finish or Abort was called (old)
  twostate lemma PlaceOfOther(s: System, l: Log)
    requires |old(s.journal.states)| > 0 && Finds(old(s.kinds), l, old(s.journal.Cur())) && Whole(s) &&
      s.kinds == old(s.kinds) && s.journal.Mono()
    ensures Follows(s, |old(s.journal.states)| - 1, l)
  {
    var n := |old(s.journal.states)| - 1;
    History(s, n);
    FindsCat(s.kinds, All(s.logs, n), l, s.journal.states[0], s.journal.states[n]);
  }

  // ---- 3. ----
  // One transaction had ended (old), with commit a; then another called Finish (now), and has its place behind b
  // others: the first one is among these. For b is not below the number of commits that there were when Finish was
  // called: Finish says it if it wrote something, PlaceOfOther if not.
  twostate lemma RealTime(s: System, a: int, b: int)
    requires a < |old(s.journal.states)| && s.journal.Mono() && |s.journal.states| - 1 <= b
    ensures a <= b
  {}

  // ---- 4. ----
  // told: a commit of which WaitDurable said (old, or before) that it is durable. img: what a crash may leave on the
  // device now, or at any operation of the next step (Disk.Valid).
  twostate lemma Crash(s: System, told: int, img: Img)
    requires told <= old(s.journal.durableIndex) && s.journal.Mono() && Whole(s) && img in s.journal.disk.ok
    ensures exists n :: told <= n && Made(s, n) &&
      RecOK(s.journal.layout, img, s.journal.states[n], s.journal.seal.signed)
  {
    reveal s.journal.Inv(); reveal OkSet();
    var n :| s.journal.durableIndex <= n < |s.journal.states| &&
      RecOK(s.journal.layout, img, s.journal.states[n], s.journal.seal.signed);
    History(s, n);
  }
  // Whoever has held an object has waited for the stable commits that wrote it. (old: some time after a stable commit
  // a, which wrote k; now: when Finish or Abort is called by a transaction that holds k. need is what they return, to
  // be waited for before a reply is sent.)
  twostate lemma Shown(t: Txn, k: uint64, a: int, need: int)
    requires k in old(t.system.lastStable) && a <= old(t.system.lastStable[k]) as int && t.system.Remembers() &&
      t.system.locks.Holds(t.owner, k) && Covers(t, need)
    ensures a <= need
  {}
  lemma EveryImage(s: System, img: Img)
    requires s.Inv() && CrashImg(s.journal.disk.poss, img)
    ensures img in s.journal.disk.ok
  { reveal s.journal.Inv(); }
  // Recover opens such a device as a volume w that agrees with states[n] (its contract in journal/recover.dfy). So
  // clients find the objects that the first n transactions made, but for those in free blocks.
  lemma Recovered(s: System, n: int, w: Vol, k: uint64)
    requires Whole(s) && Made(s, n) && Agree(s.journal.layout, s.journal.states[n], w) && OkKey(s.kinds, k) &&
      !FreeIn(s.journal.layout, s.journal.states[n], KeyBlk(k) as int)
    ensures Cell(w, s.kinds, k) == After(s.kinds, All(s.logs, n), s.journal.states[0], k)
  { assert Cell(s.journal.states[n], s.kinds, k) == After(s.kinds, All(s.logs, n), s.journal.states[0], k); }
}
