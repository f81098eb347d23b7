// What squash.s.dfy promises an administrator: its properties, and concrete callers.
include "squash.s.dfy"
module SquashFacts {
  import opened Machine
  import opened NfsPerm
  import opened NfsSquash

  // Nobody becomes user 0 who did not say so, unless the administrator made root of the
  // anonymous user; the same for group 0, supplementary groups included.
  lemma NobodyGainsRoot(r: Rule, c: Claim)
    ensures r.anonUid != 0 && Squashed(r, c).uid == 0 ==> c.Somebody? && c.who.uid == 0 && !r.squashRoot && !r.squashAll
    ensures r.anonGid != 0 && InGroup(Squashed(r, c), 0) ==> c.Somebody? && InGroup(c.who, 0) && !r.squashRoot && !r.squashAll
  {
    var s := Squashed(r, c);
    if r.anonGid != 0 && InGroup(s, 0) && s.gid != 0 {
      var k: int :| 0 <= k < |s.gids| && s.gids[k] == 0;
      assert s.gids[k] == SquashedGroup(r, c.who.gids[k]);
      assert c.who.gids[k] == 0;
    }
  }
  // Whoever is in a group afterwards was in it before, or it is the anonymous one.
  lemma NobodyGainsGroups(r: Rule, c: Claim, g: uint32)
    ensures InGroup(Squashed(r, c), g) && g != r.anonGid ==> c.Somebody? && InGroup(c.who, g)
  {
    var s := Squashed(r, c);
    if InGroup(s, g) && g != r.anonGid && s.gid != g {
      var k: int :| 0 <= k < |s.gids| && s.gids[k] == g;
      assert s.gids[k] == SquashedGroup(r, c.who.gids[k]);
      assert c.who.gids[k] == g;
    }
  }
  // all_squash: everybody is the same, in no other group, whatever they say.
  lemma AllAreOne(r: Rule, c: Claim)
    requires r.squashAll
    ensures Squashed(r, c) == Squashed(r, Nobody) == Caller(r.anonUid, r.anonGid, [])
  { }
  // root_squash takes nothing from anybody but root: others stay who they say they are.
  lemma OthersStay(r: Rule, w: Caller)
    requires !r.squashAll && w.uid != 0 && !InGroup(w, 0)
    ensures Squashed(r, Somebody(w)) == w
  {
    var q := SquashedGroups(r, w.gids);
    forall k: int | 0 <= k < |q| ensures q[k] == w.gids[k] { assert w.gids[k] in w.gids; }
    assert q == w.gids;
  }
  // no_root_squash: everybody is who they say they are.
  lemma AsClaimed(r: Rule, w: Caller)
    requires !r.squashAll && !r.squashRoot
    ensures Squashed(r, Somebody(w)) == w
  {
    var q := SquashedGroups(r, w.gids);
    forall k: int | 0 <= k < |q| ensures q[k] == w.gids[k] { }
    assert q == w.gids;
  }
  // Squashed twice is squashed once, as long as the anonymous user is not root.
  lemma Once(r: Rule, c: Claim)
    requires r.anonUid != 0 && r.anonGid != 0 && !r.squashAll
    ensures Squashed(r, Somebody(Squashed(r, c))) == Squashed(r, c)
  {
    var s := Squashed(r, c);
    var q := SquashedGroups(r, s.gids);
    forall k: int | 0 <= k < |q| ensures q[k] == s.gids[k] {
      if c.Somebody? { assert s.gids[k] == SquashedGroup(r, c.who.gids[k]); }
    }
    assert q == s.gids;
  }

  lemma Cases()
    ensures var r := Rule(true, false, 100, 200);
      Squashed(r, Nobody) == Caller(100, 200, []) && Squashed(r, Somebody(Caller(0, 0, []))) == Caller(100, 200, []) &&
      Squashed(r, Somebody(Caller(0, 5, [6]))) == Caller(100, 5, [6]) && Squashed(r, Somebody(Caller(5, 0, [6, 0]))) == Caller(5, 200, [6, 200]) &&
      Squashed(r, Somebody(Caller(5, 6, [7]))) == Caller(5, 6, [7])
    ensures Squashed(Rule(false, false, 100, 200), Somebody(Caller(0, 0, [0]))) == Caller(0, 0, [0]) && Squashed(Rule(false, false, 100, 200), Nobody) == Caller(100, 200, [])
    ensures Squashed(Rule(false, true, 100, 200), Somebody(Caller(7, 8, [9]))) == Caller(100, 200, [])
  {
    var r := Rule(true, false, 100, 200);
    assert SquashedGroups(r, [6]) == [6];
    assert SquashedGroups(r, [7]) == [7];
    assert SquashedGroups(r, [6, 0]) == [6, 200];
    assert SquashedGroups(Rule(false, false, 100, 200), [0]) == [0];
  }
}
