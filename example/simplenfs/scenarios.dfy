// The specification, tried out: cases of which anybody can tell what is right.
include "spec.s.dfy"

module SimpleScenarios {
  import opened Machine
  import opened ByteSpec
  import opened SimpleSpec

  lemma WhatIsWrittenIsRead(s: State, s': State, data: seq<byte>, got: seq<byte>, eof: bool)
    requires Possible(s) && 0 < |data| <= 100
    requires Write(s, 3, 50, data, 7, OK, s') && Possible(s') && Read(s', 3, 50, |data| as uint64, OK, got, eof)
    ensures got == data && s'[2] == s[2] && s'[3].mtime == 7
  {}
  lemma BetweenAreZeros(s: State, s': State, got: seq<byte>, eof: bool)
    requires Possible(s) && s[0].bytes == [1, 2]
    requires Write(s, 0, 4, [3], 7, OK, s') && Possible(s') && Read(s', 0, 0, 100, OK, got, eof)
    ensures got == [1, 2, 0, 0, 3] && eof
  { assert Zeros(3)[0] == 0 == Zeros(3)[1]; }
  lemma WhatWasCutOffIsGone(s: State, t: State, u: State)
    requires Possible(s) && s[0].bytes == [1, 2]
    requires Setattr(s, 0, 1, 7, OK, t) && Possible(t) && Setattr(t, 0, 2, 8, OK, u)
    ensures u[0].bytes == [1, 0]
  { assert Zeros(1)[0] == 0; }
}
