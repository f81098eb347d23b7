// TRUSTED: notes by which the journal's threads tell each other what they wish. Go: internal/runtime/notes.
include "../lib/machine.dfy"

module {:extern "notes"} JournalNotes {
  import opened Machine

  // Notes steer when things are done, not what is done: what a method returns is what was set last, but no contract
  // promises that, except that nobody is Stopping unless told. They belong to the holder of the journal's mutex, but
  // for Bulk and Damaged.
  predicate {:axiom} Told(n: Notes)       // the threads of the background were told to end, at some time
  class {:extern "Notes"} Notes {         // tested: notes.TestNotes, TestRaise, TestClocks, TestWishes, TestDamaged
    // Commits up to this one are wanted written now. Raise: it becomes this one at least.
    method {:extern "WriteUpTo"} WriteUpTo() returns (commit: uint64)
    method {:extern "SetWriteUpTo"} SetWriteUpTo(commit: uint64)
    method {:extern "RaiseWriteUpTo"} RaiseWriteUpTo(commit: uint64)
    // Commits up to this one, of those that are not in the running group, are wanted durable now.
    method {:extern "DurableUpTo"} DurableUpTo() returns (commit: uint64)
    method {:extern "RaiseDurableUpTo"} RaiseDurableUpTo(commit: uint64)
    // ... and up to this one, of those that are in the running group.
    method {:extern "RunningDurableUpTo"} RunningDurableUpTo() returns (commit: uint64)
    method {:extern "RaiseRunningDurableUpTo"} RaiseRunningDurableUpTo(commit: uint64)

    // So many threads, at least, wait for the running group.
    method {:extern "Waiters"} Waiters() returns (n: uint64)
    method {:extern "SetWaiters"} SetWaiters(n: uint64)
    // The running group is an odd one, of which condition variable 3 tells: 2 tells of even ones.
    method {:extern "OddGroup"} OddGroup() returns (odd: bool)
    method {:extern "SetOddGroup"} SetOddGroup(odd: bool)
    // So many groups more leave room for commits that somebody waits for.
    method {:extern "RoomyGroups"} RoomyGroups() returns (n: uint64)
    method {:extern "SetRoomyGroups"} SetRoomyGroups(n: uint64)

    // The logged groups are to be installed now.
    method {:extern "InstallNow"} InstallNow() returns (now: bool)
    method {:extern "SetInstallNow"} SetInstallNow(now: bool)
    // The threads of the background should end.
    method {:extern "Stopping"} Stopping() returns (stopping: bool) ensures stopping ==> Told(this)
    method {:extern "Stop"} Stop() ensures Told(this)

    // Milliseconds since a look at the header before direct blocks; a large number before the first.
    method {:extern "SinceLook"} SinceLook() returns (ms: uint64)
    method {:extern "LookNow"} LookNow()
    // Milliseconds since the last barrier of the log began; a large number before the first.
    method {:extern "SinceBarrier"} SinceBarrier() returns (ms: uint64)
    method {:extern "BarrierNow"} BarrierNow()

    // So many direct blocks the last barrier of the log was for,
    method {:extern "BarrierBlocks"} BarrierBlocks() returns (n: uint64)
    method {:extern "SetBarrierBlocks"} SetBarrierBlocks(n: uint64)
    // all barriers since the last pause were for so many,
    method {:extern "StreamBlocks"} StreamBlocks() returns (n: uint64)
    method {:extern "SetStreamBlocks"} SetStreamBlocks(n: uint64)
    // and so many of a stream want the next barrier.
    method {:extern "StreamBound"} StreamBound() returns (n: uint64)
    method {:extern "SetStreamBound"} SetStreamBound(n: uint64)

    // One more group was committed, one more installation is over: for statistics.
    method {:extern "CountGroup"} CountGroup()
    method {:extern "CountInstallation"} CountInstallation()

    // Is block a wished to go straight home, not through the log? The wish is struck out.
    method {:extern "Bulk"} Bulk(a: uint64) returns (b: bool)
    // Block a is not what was written there.
    method {:extern "Damaged"} Damaged(a: uint64)
  }
  method {:extern "New"} NewNotes() returns (n: Notes)       // tested: notes.TestNotes, TestWishes
}
