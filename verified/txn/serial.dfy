// What the transactions are together: STRICTLY SERIALIZABLE, and after a crash so are those that were in time.
//
// The history of a volume since it was opened is the list of its commits, 1, 2, 3, ...: vs[n] in the journal is the volume
// after n of them, and logs[n] what the transaction of commit n did: each object that it read and wrote, with what it found and left there.
//
//   1. History    Run alone, one after the other in this order, from vs[0] on, all transactions would have read what they read,
//                 and the volume would be what it is.
//   2. Place      Each transaction has a place in that order at which it ran, so to say, alone; one that wrote nothing or was refused, too.
//   3. RealTime   The place of a transaction lies between its beginning and its end. So one that began when another had ended comes behind it.
//   4. Crash      Whatever a crash leaves on the device recovers to what the first n transactions made, for some n. Among them
//                 are all whose numbers somebody has waited for: stable ones that are told done, and stable ones whose effects were told.
//
// They rest on the invariants of the running code, which every step keeps: Sys.Inv has the history (Serial), TYield and each step
// that no commit is left out (NoOthers), Finish and Abort in commit.dfy what each call returns, and Journal.Inv what is on the device (DiskI in journal/state.dfy).
include "commit.dfy"
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
  import opened CommitM

  // the history is whole: all commits are transactions'
  predicate Whole(s: Sys) reads s, s.j, s.j.lg, s.j.ins, s.j.d, s.j.seal, s.j.cache, s.j.tree.pages, s.j.running, s.j.lgm, s.j.cgm, s.j.cdm, s.j.inm, s.j.lho, s.j.iho, s.j.lg.ring, s.j.lg.dir, s.j.lg.codes, s.tbl {
    s.Inv() && Complete(s.logs, s.j.vs)
  }
  // what the first n transactions do, one after the other, is what makes vs[n] of vs[0]
  predicate Made(s: Sys, n: int) reads s, s.j { 0 <= n < |s.j.vs| && Leads(s.kinds, All(s.logs, n), s.j.vs[0], s.j.vs[n]) }
  // l is what a transaction does alone after the first n
  predicate Follows(s: Sys, n: int, l: Log) reads s, s.j { 0 <= n < |s.j.vs| && Finds(s.kinds, All(s.logs, n) + l, s.j.vs[0]) }

  // ---- 1. ----
  lemma History(s: Sys, n: int)
    requires Whole(s) && 0 <= n < |s.j.vs|
    ensures Made(s, n)
  { OneRun(s.kinds, s.logs, s.j.vs, n); }

  // ---- 2. ----
  // of one that Finish told committed, as number n
  lemma PlaceOfCommit(s: Sys, n: int, l: Log)
    requires Whole(s) && Recorded(s, n, l)
    ensures 0 < n < |s.j.vs| && Leads(s.kinds, l, s.j.vs[n - 1], s.j.vs[n])
    ensures Follows(s, n - 1, l) && All(s.logs, n) == All(s.logs, n - 1) + l
  {
    assert 0 < n < |s.j.vs| && Leads(s.kinds, l, s.j.vs[n - 1], s.j.vs[n]) by { reveal Serial(); }
    History(s, n - 1);
    FindsCat(s.kinds, All(s.logs, n - 1), l, s.j.vs[0], s.j.vs[n - 1]);
  }
  // of one that wrote nothing, or failed: it comes behind all that there were when Finish or Abort was called (old)
  twostate lemma PlaceOfOther(s: Sys, l: Log)
    requires |old(s.j.vs)| > 0 && Finds(old(s.kinds), l, old(s.j.Cur())) && Whole(s) && s.kinds == old(s.kinds) && s.j.Mono()
    ensures Follows(s, |old(s.j.vs)| - 1, l)
  {
    var n := |old(s.j.vs)| - 1;
    History(s, n);
    FindsCat(s.kinds, All(s.logs, n), l, s.j.vs[0], s.j.vs[n]);
  }

  // ---- 3. ----
  // One transaction had ended (old), with commit a; then another called Finish (now), and has its place behind b others: the
  // first one is among these. For b is not below the number of commits that there were when Finish was called: Finish says it if
  // it wrote something, PlaceOfOther if not.
  twostate lemma RealTime(s: Sys, a: int, b: int)
    requires a < |old(s.j.vs)| && s.j.Mono() && |s.j.vs| - 1 <= b
    ensures a <= b
  {}

  // ---- 4. ----
  // told: a commit of which WaitDurable said (old, or before) that it is durable. img: what a crash may leave on the device now, or
  // at any operation of the next step (Disk.Valid).
  twostate lemma Crash(s: Sys, told: int, img: Img)
    requires told <= old(s.j.lb) && s.j.Mono() && Whole(s) && img in s.j.d.ok
    ensures exists n :: told <= n && Made(s, n) && RecOK(s.j.geo, img, s.j.vs[n], s.j.seal.signed)
  {
    reveal s.j.Inv(); reveal OkSet();
    var n :| s.j.lb <= n < |s.j.vs| && RecOK(s.j.geo, img, s.j.vs[n], s.j.seal.signed);
    History(s, n);
  }
  // Whoever has held an object has waited for the stable commits that wrote it. (old: some time after a stable commit a, which wrote k;
  // now: when Finish or Abort is called by a transaction that holds k. need is what they return, to be waited for before a reply is sent.)
  twostate lemma Shown(t: Txn, k: uint64, a: int, need: int)
    requires k in old(t.s.stab) && a <= old(t.s.stab[k]) as int && t.s.Remembers() && t.s.tbl.Holds(t.own, k) && Covers(t, need)
    ensures a <= need
  {}
  lemma EveryImage(s: Sys, img: Img)
    requires s.Inv() && CrashImg(s.j.d.poss, img)
    ensures img in s.j.d.ok
  { reveal s.j.Inv(); }
  // Recover opens such a device as a volume w that agrees with vs[n] (its contract in journal/recover.dfy). So clients find the objects that
  // the first n transactions made, but for those in free blocks.
  lemma Recovered(s: Sys, n: int, w: Vol, k: uint64)
    requires Whole(s) && Made(s, n) && Agree(s.j.geo, s.j.vs[n], w) && OkKey(s.kinds, k) && !FreeIn(s.j.geo, s.j.vs[n], KeyBlk(k) as int)
    ensures Cell(w, s.kinds, k) == After(s.kinds, All(s.logs, n), s.j.vs[0], k)
  { assert Cell(s.j.vs[n], s.kinds, k) == After(s.kinds, All(s.logs, n), s.j.vs[0], k); }
}
