// How clients share the places for records of calls (procedures/records.dfy), so that none pushes out what others may
// yet ask for.
//
// Places come in chunks, each the 16 records of a block: place p is in chunk p / 16. A chunk has one holder, who fills
// it from its first place to its last, and then goes on with another: which it may take is MayTake; what that means for
// the others is SafeFromFlood.
include "../../lib/machine.dfy"

module ReplySharing {
  import opened Machine

  const PLACES: uint64 := 16       // in a chunk
  const MOST: uint64 := 32         // chunks of a client
  // a minute: what one client has is not another's earlier. (Times are in nanoseconds.)
  const KEEP: uint64 := 60_000_000_000

  // holders
  const NOBODY: uint64 := 0
  const BROKEN: uint64 := 1        // nobody may have it: the block cannot be used
  const CLIENT: uint64 := 2        // the first client; of n chunks n + 1 clients are known at a time

  datatype Chunk = Chunk(
    holder: uint64,
    used: uint64,                  // places, in this round
    force: uint64,                 // 1: in this round, places of records that are waited for are used, too
    newest: uint64,                // when its newest record was made
    // a number larger than before, each time that it becomes the one in use: a client's oldest chunk has the least
    given: uint64)

  // how many chunks a holder has
  function Has(s: seq<Chunk>, holder: uint64): nat
  { if s == [] then 0 else Has(s[..|s| - 1], holder) + (if s[|s| - 1].holder == holder then 1 else 0) }

  // chunk i is another client's,
  predicate Others(s: seq<Chunk>, client: uint64, i: int) requires 0 <= i < |s|
  { s[i].holder >= CLIENT && s[i].holder != client }
  // and something was recorded in it within the last minute
  predicate Recent(s: seq<Chunk>, client: uint64, now: uint64, i: int) requires 0 <= i < |s|
  { Others(s, client, i) && s[i].newest as int + KEEP as int >= now as int }
  // chunk i is nobody's, or another's who has recorded nothing in it for so long
  predicate Available(s: seq<Chunk>, client: uint64, now: uint64, i: int) requires 0 <= i < |s|
  { s[i].holder == NOBODY || (Others(s, client, i) && s[i].newest as int + KEEP as int < now as int) }
  // chunk i is another's who has as many as each of the others
  predicate OfLargest(s: seq<Chunk>, client: uint64, i: int) requires 0 <= i < |s|
  { Others(s, client, i) && forall j {:trigger s[j]} | 0 <= j < |s| && Others(s, client, j) ::
    Has(s, s[j].holder) <= Has(s, s[i].holder) }

  // What a client may take at time now: a chunk of its own; or, up to MOST, one that is available; or, if there is none
  // of either, one of who has most.
  predicate MayTake(s: seq<Chunk>, client: uint64, now: uint64, i: int) requires 0 <= i < |s|
  {
    s[i].holder == client ||
    (Has(s, client) < MOST as int &&
      (Available(s, client, now, i) ||
        (OfLargest(s, client, i) && forall j {:trigger s[j]} | 0 <= j < |s| ::
          s[j].holder != client && !Available(s, client, now, j))))
  }
  // A client that floods us has a chunk; so it pushes out nothing that others have recorded within the last minute.
  lemma SafeFromFlood(s: seq<Chunk>, client: uint64, now: uint64, i: int)
    requires 0 <= i < |s| && Recent(s, client, now, i)
    requires exists j :: 0 <= j < |s| && s[j].holder == client
    ensures !MayTake(s, client, now, i)
  {}
  // Nor does one that has none yet, as long as there is something for it elsewhere: what is available, or who has more.
  lemma SafeFromNewcomer(s: seq<Chunk>, client: uint64, now: uint64, i: int)
    requires 0 <= i < |s| && Recent(s, client, now, i)
    requires exists j :: 0 <= j < |s| && (Available(s, client, now, j) ||
      (Others(s, client, j) && Has(s, s[j].holder) > Has(s, s[i].holder)))
    ensures !MayTake(s, client, now, i)
  {}
  // Nobody may take what is broken.
  lemma SafeIfBroken(s: seq<Chunk>, client: uint64, now: uint64, i: int)
    requires 0 <= i < |s| && s[i].holder == BROKEN && CLIENT <= client
    ensures !MayTake(s, client, now, i)
  {}

  // chunk i becomes x: who has how many
  lemma HasNow(s: seq<Chunk>, i: int, x: Chunk, holder: uint64)
    requires 0 <= i < |s|
    ensures Has(s[i := x], holder) == Has(s, holder)
      + (if x.holder == holder then 1 else 0) - (if s[i].holder == holder then 1 else 0)
  {
    var t, m := s[i := x], |s| - 1;
    if i == m { assert t[..m] == s[..m]; } else {
      HasNow(s[..m], i, x, holder);
      assert t[..m] == s[..m][i := x];
    }
  }
  lemma HasAtMost(s: seq<Chunk>, holder: uint64) ensures Has(s, holder) <= |s| {}
  // how many chunks holders below h have together
  function Together(s: seq<Chunk>, h: uint64): nat { if h == 0 then 0 else Together(s, h - 1) + Has(s, h - 1) }
  lemma TogetherAtMost(s: seq<Chunk>, h: uint64)
    ensures Together(s, h) <= |s|
    ensures s != [] ==> Together(s, h) == Together(s[..|s| - 1], h) + (if s[|s| - 1].holder < h then 1 else 0)
    decreases |s|, h
  {
    if h > 0 {
      TogetherAtMost(s, h - 1);
      assert Together(s, h) == Together(s, h - 1) + Has(s, h - 1);
    }
    if s != [] {
      var t, x := s[..|s| - 1], s[|s| - 1].holder;
      TogetherAtMost(t, h);
      if h > 0 { assert Together(s, h) == Together(t, h) + (if x < h then 1 else 0); }
    }
  }
  lemma NobodyHasAll(s: seq<Chunk>, holder: uint64)
    requires forall i | 0 <= i < |s| :: s[i].holder == NOBODY
    ensures Has(s, holder) == if holder == NOBODY then |s| else 0
  {}

  function Empty(n: nat): (s: seq<Chunk>)
    ensures |s| == n && forall i | 0 <= i < n :: s[i] == Chunk(NOBODY, 0, 0, 0, 0)
  { if n == 0 then [] else Empty(n - 1) + [Chunk(NOBODY, 0, 0, 0, 0)] }

  // chunks go on in their round, and nothing else changes
  predicate SameButUsed(s: seq<Chunk>, t: seq<Chunk>)
  { |s| == |t| && forall i {:trigger t[i]} | 0 <= i < |s| ::
    t[i] == Chunk(s[i].holder, t[i].used, s[i].force, s[i].newest, s[i].given) }
  lemma UsedKeepsHas(s: seq<Chunk>, t: seq<Chunk>, holder: uint64)
    requires SameButUsed(s, t)
    ensures Has(s, holder) == Has(t, holder)
  { if s != [] { UsedKeepsHas(s[..|s| - 1], t[..|s| - 1], holder); } }
  lemma UsedKeepsMayTake(s: seq<Chunk>, t: seq<Chunk>, client: uint64, now: uint64)
    requires SameButUsed(s, t)
    ensures Has(s, client) == Has(t, client) && SameButUsed(t, s)
    ensures forall i {:trigger s[i]} {:trigger t[i]} | 0 <= i < |s| ::
      MayTake(s, client, now, i) <==> MayTake(t, client, now, i)
  {
    forall h: uint64 ensures Has(s, h) == Has(t, h) { UsedKeepsHas(s, t, h); }
    forall i | 0 <= i < |s| ensures s[i] == Chunk(t[i].holder, s[i].used, t[i].force, t[i].newest, t[i].given)
    { assert t[i] == t[i]; }
    assert SameButUsed(t, s);
  }
  predicate SameBut(s: seq<Chunk>, t: seq<Chunk>, i: int)
  { |s| == |t| && forall j {:trigger t[j]} | 0 <= j < |s| && j != i :: t[j] == s[j] }
}
