// Policy: when things are done, who is woken, and the numbers by which the threads tell each other what they wish.
// That threads are woken and go on depends on it (theorem 5a). What a commit, a crash, or a read leaves does not.
include "state.dfy"

module JournalPolicy {
  import opened Machine
  import opened ByteSlice
  import opened DiskS
  import opened MapsOfBlocks
  import opened JournalNotes
  import opened Mutexes
  import opened JournalM

  // an older one does not count any more: a look takes longer than a small write, and we may have stood still
  const LookAfter: uint64 := 100
  const PauseAfter: uint64 := 1000 // milliseconds without direct blocks are a pause
  const Stream: uint64 := 32768    // direct blocks without a pause are a stream
  const StreamMin: uint64 := 2048  // direct blocks of a stream that want a barrier where it is quick:
  const PerMs: uint64 := 1024      // it takes less than a millisecond for so many
  const HoldMax: uint64 := 32768   // so many direct blocks are read by a recovery, plus those that were pending

  const GroupMin: uint64 := 375    // so many blocks are written though nobody waits for them

  // the most blocks of a group; with one more commit that nobody waits for at most Part, for
  const GroupMax: uint64 := 500
  // HasteFor groups after one of fewer than Part that somebody waited for. Else such a one would find every group
  const Part: uint64 := 128
  // full, and wait until that is written as well, and its own, which fills up, too. (A larger one takes its time
  // anyway.)
  const HasteFor: uint64 := 64

  // [L] how many blocks may the running group have with one more commit that nobody waits for?
  method Share(j: Journal) returns (n: uint64)
    requires j.mutex.Inside()
    ensures Part <= n <= GroupMax
  {
    var h := j.notes.RoomyGroups();
    n := if h > 0 then Part else GroupMax;
  }
  // [L] somebody is about to wait for a commit, which is small
  method Haste(j: Journal)
    requires j.mutex.Inside()
  { j.notes.SetRoomyGroups(HasteFor); }

  // [L] is the running group to be written now?
  method WantCommit(j: Journal) returns (b: bool)
    requires j.Inv() && j.mutex.Inside()
    ensures |j.running.addrs| >= GroupMin as int ==> b
  {
    var k := j.running.Len();
    var want := j.notes.WriteUpTo();
    var stop := j.notes.Stopping();
    b := k > 0 && (want > j.lastFrozen || k >= GroupMin || stop);
  }
  // The pending groups have so many blocks that they are made durable though nobody waits for it.
  predicate Heavy(j: Journal) reads j, j.frozen, j.frozenDirect {
    |j.frozen.addrs| >= j.instAt as int || |j.frozenDirect.addrs| / 2 >= j.instAt as int
  }
  // [L] are the pending groups to become durable now: does somebody wait for that, or do they take much memory?
  method WantDurable(j: Journal) returns (b: bool)
    requires j.Inv() && j.mutex.Inside()
    ensures Heavy(j) ==> b
  {
    var need := j.notes.DurableUpTo();
    var stop := j.notes.Stopping();
    var c := j.frozen.Len(); var h := j.frozenDirect.Len();
    b := need > j.lastDurable || stop || c >= j.instAt || h / 2 >= j.instAt;
    if !b {
      // Memory that is used again soon is still in the processor's caches. A stream goes on for long enough to gain by
      // that, where barriers are quick.
      var stream := j.notes.StreamBlocks(); var bound := j.notes.StreamBound();
      b := stream >= Stream && h >= StreamMin && h >= bound;
    }
  }
  // [L] the pending groups are about to be made durable
  method NoteBarrier(j: Journal)
    requires j.Inv() && j.mutex.Inside()
  {
    var h := j.frozenDirect.Len(); var stream := j.notes.StreamBlocks();
    if stream < Stream { j.notes.SetStreamBlocks(stream + (if h < Stream then h else Stream)); }
    j.notes.SetBarrierBlocks(h);
    j.notes.BarrierNow();
  }
  // [L] they are: the next barrier of a stream comes after half as many, if this one was quick, or after twice as many
  method NotePace(j: Journal)
    requires j.mutex.Inside()
  {
    var h := j.notes.BarrierBlocks(); var ms := j.notes.SinceBarrier(); var bound := j.notes.StreamBound();
    if h < StreamMin { return; }
    if ms <= h / PerMs { bound := bound / 2; } else if bound < Stream {
      bound := 2 * (if bound < StreamMin then StreamMin else bound);
    }
    j.notes.SetStreamBound(bound);
  }
  // [L] commit n is wanted durable now
  method Want(j: Journal, n: uint64)
    requires j.mutex.Inside()
  {
    j.notes.RaiseWriteUpTo(n);
    if n <= j.lastFrozen { j.notes.RaiseDurableUpTo(n); } else { j.notes.RaiseRunningDurableUpTo(n); }
  }
  // [L] everything appended so far is wanted durable now
  method Nudge(j: Journal)
    requires j.mutex.Inside()
    modifies j.mutex`woken
    ensures j.busy || One(CLogger) in j.mutex.woken
  {
    Want(j, j.lastCommit);
    j.notes.RaiseDurableUpTo(j.lastFrozen);
    if !j.busy { j.mutex.WakeOne(CLogger); }
  }
  // [L] somebody waits for room in the running group (after this: mutex.Wait(CSpace)): it is wanted written, durable or
  // not
  method AskSpace(j: Journal)
    requires j.mutex.Inside()
    modifies j.mutex`woken
    ensures j.busy || One(CLogger) in j.mutex.woken
  {
    j.notes.SetWriteUpTo(j.lastCommit);
    if !j.busy { j.mutex.WakeOne(CLogger); }
  }
  // [L] the logged groups are wanted installed now
  method Urge(j: Journal)
    requires j.mutex.Inside()
    modifies j.mutex`woken
    ensures j.mutex.woken == old(j.mutex.woken) + {One(CInstaller)}
  {
    j.notes.SetInstallNow(true);
    j.mutex.WakeOne(CInstaller);
  }
  // [L] the threads of the background should end
  method SetStop(j: Journal)
    requires j.mutex.Inside()
    modifies j.mutex`woken
    ensures Told(j.notes) && All(CLogger) in j.mutex.woken && All(CInstaller) in j.mutex.woken
  {
    j.notes.Stop();
    j.mutex.WakeAll(CLogger); j.mutex.WakeAll(CInstaller);
  }
  // The threads of the background may end: they were told to, or the journal has failed.
  predicate MayEnd(j: Journal) reads j { j.failed || Told(j.notes) }
  // [L] should the thread go on?
  method Alive(j: Journal) returns (b: bool)
    requires j.mutex.Inside()
    ensures if b then !j.failed else MayEnd(j)
  {
    var stop := j.notes.Stopping();
    b := !stop && !j.failed;
  }
  // [L] is the header to be looked at before the frozen group is written? (After this it is.)
  method LookDue(j: Journal) returns (due: bool)
    requires j.Inv() && j.mutex.Inside()
  {
    var n := j.frozenDirect.Len();
    var age := j.notes.SinceLook();
    due := n > 0 && age >= LookAfter;
    if due { j.notes.LookNow(); }
    if due && age >= PauseAfter { j.notes.SetStreamBlocks(0); }
  }
  // [L] has the journal failed?
  method Failed(j: Journal) returns (b: bool)
    requires j.mutex.Inside()
    ensures b == j.failed
  { b := j.failed; }
  // All who slept were woken, whatever they waited for.
  predicate EveryoneTold(m: Mutex) reads m {
    All(CLogger) in m.woken && All(CInstaller) in m.woken && All(2) in m.woken && All(3) in m.woken &&
      All(CSpace) in m.woken
  }
  // [L] all who sleep are woken
  method WakeEveryone(m: Mutex)
    requires m.Inside()
    modifies m`woken
    ensures EveryoneTold(m)
  {
    m.WakeAll(CLogger); m.WakeAll(CInstaller); m.WakeAll(2); m.WakeAll(3); m.WakeAll(CSpace);
  }
  // [L] the journal fails: no commit is accepted any more
  method Fail(j: Journal)
    requires j.Inv() && j.mutex.Inside() && j.Cause()
    modifies j`failed, j.mutex`woken
    ensures j.Inv() && j.KeepsLogger() && j.KeepsInstaller() && j.Mono() && j.failed
    ensures EveryoneTold(j.mutex)
  {
    j.failed := true;
    WakeEveryone(j.mutex);
    assert j.Inv() by { reveal j.Inv(); }
  }
  // [L] the journal is closed: no commit is accepted any more, not even of those who wait for room
  method Shut(j: Journal)
    requires j.Inv() && j.mutex.Inside()
    modifies j`closed, j.mutex`woken
    ensures j.Inv() && j.KeepsLogger() && j.KeepsInstaller() && j.Mono() && j.closed
    ensures All(CSpace) in j.mutex.woken
  {
    j.closed := true;
    j.mutex.WakeAll(CSpace);
    assert j.Inv() by { reveal j.Inv(); }
  }
  // [L] the condition variable that tells of commit n
  method WaitOn(j: Journal, n: uint64) returns (c: uint32)
    requires j.mutex.Inside()
    ensures c < 5
  {
    var odd := j.notes.OddGroup();
    if n <= j.lastFrozen { odd := !odd; }
    else {
      var w := j.notes.Waiters();
      if w < 0x1_0000_0000 { j.notes.SetWaiters(w + 1); }
    }
    c := if odd then 3 else 2;
  }
  // [L] the running group becomes the frozen one
  method NoteStart(j: Journal)
    requires j.mutex.Inside()
    modifies j.mutex`woken
    ensures All(CSpace) in j.mutex.woken
  {
    var later := j.notes.RunningDurableUpTo();
    j.notes.RaiseDurableUpTo(later);
    var odd := j.notes.OddGroup();
    j.notes.SetOddGroup(!odd);
    j.notes.SetWaiters(0);
    var h := j.notes.RoomyGroups();
    if h > 0 { j.notes.SetRoomyGroups(h - 1); }
    j.mutex.WakeAll(CSpace);
  }
  // [L] the pending groups are durable
  method NoteFinish(j: Journal) returns (odd: bool)
    requires j.Inv() && j.mutex.Inside()
    modifies j.mutex`woken
    ensures DurableTold(j.mutex, odd) && NextTold(j, odd) && (Filled(j) ==> One(CInstaller) in j.mutex.woken)
  {
    j.notes.CountGroup();
    NotePace(j);
    var full := FillsUp(j);
    var urge := j.notes.InstallNow();
    if full || urge { j.mutex.WakeOne(CInstaller); }
    odd := j.notes.OddGroup();
    NextLogger(j, odd);
    // after the one that goes on with the next group: the device should not wait
    if odd { j.mutex.WakeAll(2); } else { j.mutex.WakeAll(3); }
  }
  // All were woken who wait for the group before an odd or an even running one to become durable.
  predicate DurableTold(m: Mutex, odd: bool) reads m { All(if odd then 2 else 3) in m.woken }
  // If the running group, odd or even, is to be written though nobody waits for it, somebody was woken who may become
  // the logger: the thread, or one who waits for that group.
  predicate NextTold(j: Journal, odd: bool) reads j, j.running, j.mutex {
    |j.running.addrs| >= GroupMin as int ==>
      One(CLogger) in j.mutex.woken || One(if odd then 3 else 2) in j.mutex.woken
  }
  // [L] nobody is the logger: who goes on with the running group, an odd or an even one, if it is to be written, is
  // woken
  method NextLogger(j: Journal, odd: bool)
    requires j.Inv() && j.mutex.Inside()
    modifies j.mutex`woken
    ensures NextTold(j, odd) && old(j.mutex.woken) <= j.mutex.woken
  {
    var more := WantCommit(j);
    if !more { return; }
    var w := j.notes.Waiters();
    if w == 0 { j.mutex.WakeOne(CLogger); }
    else if odd { j.mutex.WakeOne(3); }
    else { j.mutex.WakeOne(2); }
  }
  // So much is logged that an installation should begin.
  predicate Filled(j: Journal) reads j, j.logged, j.loggedDirect {
    |j.logged.addrs| >= j.instAt as int || |j.loggedDirect.addrs| >= HoldMax as int ||
      j.nextSeq as int - j.firstSeq as int >= j.units as int / 2 ||
      j.logEnd as int - j.logStart as int >= j.ringSize as int / 2
  }
  // [L] is so much logged that an installation should begin? Then there is room in the log for what comes while it
  // runs: if it began when something is full, all commits would wait for the whole of it.
  method FillsUp(j: Journal) returns (b: bool)
    requires j.Inv() && j.mutex.Inside()
    ensures b == Filled(j)
  {
    var k := j.logged.Len(); var h := j.loggedDirect.Len();
    b := k >= j.instAt || h >= HoldMax || (j.firstSeq <= j.nextSeq && j.nextSeq - j.firstSeq >= j.units / 2) ||
      (j.logStart <= j.logEnd && j.logEnd - j.logStart >= j.ringSize / 2);
  }
  // There are blocks to install.
  predicate Installable(j: Journal) reads j, j.logged, j.loggedDirect {
    |j.logged.addrs| > 0 || |j.loggedDirect.addrs| > 0
  }
  // [L] are there logged groups that should be installed?
  method WantInstall(j: Journal) returns (b: bool)
    requires j.Inv() && j.mutex.Inside() && j.firstSeq <= j.nextSeq && j.logStart <= j.logEnd
    ensures !j.failed && Filled(j) && Installable(j) ==> b
    ensures b ==> !j.failed && Installable(j)
  {
    var k := j.logged.Len(); var h := j.loggedDirect.Len();
    var urge := j.notes.InstallNow();
    var full := FillsUp(j);
    b := !j.failed && (k > 0 || h > 0) && (urge || full);
    if b { j.notes.SetInstallNow(false); }
  }
  // [L] an installation is over
  method NoteInstall(j: Journal)
    requires j.mutex.Inside()
    modifies j.mutex`woken
    ensures All(CSpace) in j.mutex.woken && One(CLogger) in j.mutex.woken
  {
    j.notes.CountInstallation();
    j.mutex.WakeAll(CSpace);
    j.mutex.WakeOne(CLogger);
  }
  // Everything is home: no group has blocks that are not.
  predicate Empty(j: Journal)
    reads j, j.running, j.frozen, j.frozenDirect, j.logged, j.installing
  {
    j.running.m == j.frozen.m == j.frozenDirect.m == j.logged.m == j.installing.m == map[]
  }
  // [L] is everything home?
  method Drained(j: Journal) returns (b: bool)
    requires j.Inv() && j.mutex.Inside()
    ensures b <==> Empty(j)
  {
    assert j.MapsInv() by { reveal j.Inv(); }
    var r := j.running.Len(); var c := j.frozen.Len(); var h := j.frozenDirect.Len(); var l := j.logged.Len();
    var i := j.installing.Len();
    b := r == 0 && c == 0 && h == 0 && l == 0 && i == 0;
    NoBlocks(j.running); NoBlocks(j.frozen); NoBlocks(j.frozenDirect); NoBlocks(j.logged); NoBlocks(j.installing);
  }
  // a map that lists no addresses is empty, and only that
  lemma NoBlocks(m: BlockMap)
    requires m.Ok()
    ensures |m.addrs| == 0 <==> m.m == map[]
  {
    if m.addrs == [] { forall a | a in m.m ensures false { assert a in m.addrs; } } else { assert m.addrs[0] in m.m; }
  }
}
