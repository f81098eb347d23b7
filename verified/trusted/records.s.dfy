// TRUSTED: the records of the journal's log, as values. Without Go of its own: internal/runtime/seal has the format.
include "codetree.s.dfy"

module RecordSpec {
  import opened Machine
  import opened ByteSpec
  import opened DiskS
  import opened CodeTreeSpec

  // Contents of blocks, by address.
  type BM = map<int, BV>
  // A descriptor: epoch, sequence number, position of its data if they lie on the ring, the home addresses of these
  // data, and those of the group's direct blocks, whose data lie there already. All groups with numbers below dur were
  // durable when it was made.
  datatype Desc = Desc(ep: int, sq: int, dur: int, pos: int, addrs: seq<int>, dirs: seq<int>)
  datatype OptDesc = NoDesc | SomeDesc(d: Desc)
  // A sealed record: the descriptor block and the data blocks of a group, direct ones last.
  datatype Rec = Rec(b: BV, blks: seq<BV>)
  function {:axiom} DecDesc(b: BV): OptDesc               // what a block says as a descriptor
  // A header: first sequence number, the epoch it belongs to, the code of the tree's root.
  datatype Hdr = NoHdr | Hdr(q: int, ep: int, root: CV)
  function {:axiom} DecHdr(key: int, b: BV): Hdr          // what a block says as a header; its seal is a part of it
  predicate HdrTail(b: BV) { |b| == 4096 && b[512..] == Tail0() }
  function {:axiom} Tail0(): BV                           // 3584 zero bytes

  function BlksOf(m: BM, addrs: seq<int>): (r: seq<BV>)
    requires forall i :: 0 <= i < |addrs| ==> addrs[i] in m
    ensures |r| == |addrs|
    ensures forall i :: 0 <= i < |addrs| ==> r[i] == m[addrs[i]]
  { if addrs == [] then [] else BlksOf(m, addrs[..|addrs|-1]) + [m[addrs[|addrs|-1]]] }
}
