// TRUSTED: lists of codes of nodes of the tree of codes (verified/journal/codes.dfy). Go: internal/runtime/codes.
include "codetree.s.dfy"

module {:extern "codes"} CodeLists {
  import opened Machine
  import opened CodeTreeSpec

  datatype Code = Code(x: int, c: CV)     // of node x
  class {:extern "Codes"} Codes {         // tested: codes.TestCodes
    ghost var s: seq<Code>
    method {:extern "Add"} Add(x: uint64, c0: uint64, c1: uint64)
      modifies this ensures s == old(s) + [Code(x as int, CV(c0, c1))]
    method {:extern "Len"} Len() returns (n: uint64)
      ensures n as int == |s|
    method {:extern "At"} At(i: uint64) returns (x: uint64, c0: uint64, c1: uint64)
      requires i as int < |s| ensures s[i as int] == Code(x as int, CV(c0, c1))
    method {:extern "Sort"} Sort()          // by node
      modifies this
      ensures |s| == |old(s)| && (forall e :: e in s <==> e in old(s)) &&
        forall i, k :: 0 <= i < k < |s| ==> s[i].x <= s[k].x
  }
  method {:extern "New"} NewCodes() returns (c: Codes)
    ensures fresh(c) && c.s == []
  // the codes of x and, behind them, of y, which it may be. Tested: codes.TestJoin
  method {:extern "Join"} JoinCodes(x: Codes, y: Codes) returns (c: Codes)
    ensures (c == y || fresh(c)) && c.s == x.s + y.s
}
