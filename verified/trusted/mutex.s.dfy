// TRUSTED: the journal's mutex. Go: internal/runtime/mutex.
include "../lib/machine.dfy"

module {:extern "mutex"} Mutexes {
  import opened Machine

  // One(c): of those who slept on condition variable c, one was woken, if there was any; All(c): all were
  datatype Wake = One(c: uint32) | All(c: uint32)
  // A mutex with condition variables 0..4. `held`: by the calling thread. `settled`: what that thread knows of the
  // shared state is up to date, as there was a Yield (verified/journal/threads.dfy), whose thread this is; null: there
  // was none since the mutex changed hands.
  class {:extern "Mutex"} Mutex {         // tested: mutex.TestMutex, TestWake
    ghost var held: bool
    ghost var settled: object?
    ghost var woken: set<Wake>            // since the mutex was taken last
    predicate Inside() reads this { held && settled != null }
    method {:extern "Lock"} Lock()
      requires !held modifies this ensures held && settled == null && woken == {}
    method {:extern "Unlock"} Unlock()
      requires held modifies this ensures !held && settled == null
    // releases the mutex, waits for a wake-up (or returns for no reason), takes it again
    method {:extern "Wait"} Wait(c: uint32)
      requires held && c < 5 modifies this`settled, this`woken ensures settled == null && woken == {}
    // for Yields alone
    ghost method Yielded(thread: object) modifies this`settled ensures settled == thread { settled := thread; }
    method {:extern "WakeOne"} WakeOne(c: uint32)
      requires c < 5 modifies this`woken ensures woken == old(woken) + {One(c)}
    method {:extern "WakeAll"} WakeAll(c: uint32)
      requires c < 5 modifies this`woken ensures woken == old(woken) + {One(c), All(c)}
  }
}
