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
    modifies j, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.repr, j.mutex`settled
    ensures j.Inv() && j.KeepsLogger() && j.Mono() && fresh(j.repr - old(j.repr))
  { LYield(j); LYield(j); }
  method Installer2(j: Journal)
    requires j.Inv()
    modifies j, j.logger, j.disk, j.seal, j.cache, j.tree.pages, j.repr, j.mutex`settled
    ensures j.Inv() && j.KeepsInstaller() && j.Mono() && fresh(j.repr - old(j.repr))
  { IYield(j); IYield(j); }
  method Client2(j: Journal)
    requires j.Inv()
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.repr, j.mutex`settled
    ensures j.Inv() && j.Mono() && fresh(j.repr - old(j.repr))
  { CYield(j); CYield(j); }
  method Transaction2(s: System, ghost o: Owner)
    requires s.Inv()
    modifies s.journal, s.journal.logger, s.journal.installer, s.journal.disk, s.journal.seal, s.journal.cache,
      s.journal.tree.pages, s.journal.repr, s.journal.mutex`settled, s.locks, s`lastStable, s`logs
    ensures s.Inv() && s.journal.Mono() && fresh(s.journal.repr - old(s.journal.repr)) && s.Kept(o)
  { TYield(s, o); TYield(s, o); }
}
