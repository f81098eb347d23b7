// TRUSTED: a clock. Go: internal/runtime/clock.
include "../lib/machine.dfy"

module {:extern "clock"} Clocks {
  import opened Machine

  // What a clock said at one instant. A write that must not come late uses its reading up (disk.s.dfy).
  class {:extern "Reading"} Reading {
    ghost const clock: Clock?
    ghost const at: int           // nanoseconds
    ghost var used: bool
  }
  // A clock that is never put back, and goes on while the machine sleeps.
  class {:extern "Clock"} Clock {         // tested: clock.TestClock, TestWakes
    // A reading is no earlier than those before it.
    method {:extern "Now"} Now() returns (ns: uint64, ghost r: Reading)
      ensures fresh(r) && r.clock == this && r.at == ns as int && !r.used
      ensures forall q: Reading {:trigger q.at} :: old(allocated(q)) && q.clock == this ==> q.at <= r.at
  }
  method {:extern "New"} NewClock() returns (c: Clock)    // tested: clock.TestClock
}
