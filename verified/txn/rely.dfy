// What others may do in two steps, they may do in one: the relations of the Yields are transitive. So
// one Yield stands for any number of steps of any number of threads. (That each step keeps to them is in its
// contract; tools/threads.py checks that it is named there.)
include "system.dfy"

module Rely {
  import opened LockS
  import opened JournalM
  import opened JournalThreads
  import opened TxnSysM

  method Logger2(j: Journal)
    requires j.Inv()
    modifies j, j.ins, j.d, j.seal, j.cache, j.tree.pages, j.repr, j.mu`settled
    ensures j.Inv() && j.LKeep() && j.Mono() && fresh(j.repr - old(j.repr))
  { LYield(j); LYield(j); }
  method Installer2(j: Journal)
    requires j.Inv()
    modifies j, j.lg, j.d, j.seal, j.cache, j.tree.pages, j.repr, j.mu`settled
    ensures j.Inv() && j.IKeep() && j.Mono() && fresh(j.repr - old(j.repr))
  { IYield(j); IYield(j); }
  method Client2(j: Journal)
    requires j.Inv()
    modifies j, j.lg, j.ins, j.d, j.seal, j.cache, j.tree.pages, j.repr, j.mu`settled
    ensures j.Inv() && j.Mono() && fresh(j.repr - old(j.repr))
  { CYield(j); CYield(j); }
  method Transaction2(s: Sys, ghost o: Owner)
    requires s.Inv()
    modifies s.j, s.j.lg, s.j.ins, s.j.d, s.j.seal, s.j.cache, s.j.tree.pages, s.j.repr, s.j.mu`settled, s.tbl, s`stab, s`logs
    ensures s.Inv() && s.j.Mono() && fresh(s.j.repr - old(s.j.repr)) && s.Kept(o)
  { TYield(s, o); TYield(s, o); }
}
