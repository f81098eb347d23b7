// TRUSTED: what is known of those whose calls have records, and of room on the host. Go: internal/runtime/peers.
include "../lib/machine.dfy"

module {:extern "peers"} PeersS {
  import opened Machine

  // What is said may be another thing the next time. The ghost fields have what was said last, since Anew.
  class {:extern "Peers"} Peers {         // tested: peers.TestPeers
    ghost var arrived: map<uint64, bool>
    ghost var elsewhere: map<uint64, bool>
    ghost var full: set<uint64>
    // a call begins
    ghost method Anew()
      modifies this ensures arrived == map[] && elsewhere == map[] && full == {}
    { arrived, elsewhere, full := map[], map[], {}; }
    // whether the reply of the call whose record is in a place has arrived, and who has it is still there
    method {:extern "Arrived"} Arrived(place: uint64) returns (yes: bool)
      modifies this
      ensures arrived == old(arrived)[place := yes] && elsewhere == old(elsewhere) && full == old(full)
    // whether it has, over another connection than that of the call that begins
    method {:extern "Elsewhere"} Elsewhere(place: uint64) returns (yes: bool)
      modifies this
      ensures elsewhere == old(elsewhere)[place := yes] && arrived == old(arrived) && full == old(full)
    // makes room for a block of records on the host; no: it is full
    method {:extern "Room"} Room(chunk: uint64) returns (yes: bool)
      modifies this
      ensures full == (if yes then old(full) - {chunk} else old(full) + {chunk})
      ensures arrived == old(arrived) && elsewhere == old(elsewhere)
  }
}
