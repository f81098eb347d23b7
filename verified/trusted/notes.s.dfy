// TRUSTED: notes by which the journal's threads tell each other what they wish. Go: internal/runtime/notes.
include "../lib/machine.dfy"

module {:extern "notes"} JournalNotes {
  import opened Machine

  // Numbers 0..14 that steer when things are done, not what is done: Get promises nothing. (10 and 11 grow by
  // themselves: milliseconds.) Bulk: is block a wished to go straight home, not through the log?
  class {:extern "Notes"} Notes {         // tested: notes.TestNotes, TestAge, TestWishes
    method {:extern "Get"} Get(i: uint32) returns (x: uint64) requires i < 15
    method {:extern "Set"} Set(i: uint32, x: uint64) requires i < 15
    method {:extern "Bulk"} Bulk(a: uint64) returns (b: bool)
    method {:extern "Damaged"} Damaged(a: uint64)    // block a is not what was written there
  }
  method {:extern "New"} NewNotes() returns (n: Notes)       // tested: notes.TestNotes, TestWishes
}
