// What squash.s.dfy promises an administrator: its properties, and concrete callers.
include "squash.s.dfy"
module SquashFacts {
  import opened Machine
  import opened NfsState
  import opened NfsPerm
  import opened NfsSquash

  // What is left of a list of groups: of each that is not NOID, what becomes of it.
  lemma Members(r: Rule, gs: seq<uint32>, g: uint32)
    ensures g in SquashedGroups(r, gs) <==> exists h: uint32 {:trigger h in gs} ::
      h in gs && h != NOID && g == SquashedGroup(r, h)
  {
    if gs != [] {
      var most, last := gs[..|gs| - 1], gs[|gs| - 1];
      Members(r, most, g);
      assert gs == most + [last];
      if g in SquashedGroups(r, most) {
        var h: uint32 :| h in most && h != NOID && g == SquashedGroup(r, h);
        assert h in gs;
      } else if last != NOID && g == SquashedGroup(r, last) {
        assert last in gs;
      } else {
        forall h: uint32 | h in gs ensures h == NOID || g != SquashedGroup(r, h) { assert h in most || h == last; }
      }
    }
  }
  // a list that no rule changes
  lemma Same(r: Rule, gs: seq<uint32>)
    requires NOID !in gs && (r.squashRoot ==> 0 !in gs)
    ensures SquashedGroups(r, gs) == gs
  {
    if gs != [] {
      var most, last := gs[..|gs| - 1], gs[|gs| - 1];
      assert gs == most + [last];
      Same(r, most);
    }
  }

  // 2^32 - 1 is nobody: nobody calls as that user, or with that group.
  predicate Somebodys(c: Caller) { c.uid != NOID && !InGroup(c, NOID) }
  lemma NobodyIsNobody(r: Rule, c: Claim)
    requires r.anonUid != NOID && r.anonGid != NOID
    ensures Somebodys(Squashed(r, c))
  { if c.Somebody? { Members(r, c.who.gids, NOID); } }

  // Nobody becomes user 0 who did not say so, unless the administrator made root of the
  // anonymous user; the same for group 0, supplementary groups included.
  lemma NobodyGainsRoot(r: Rule, c: Claim)
    ensures r.anonUid != 0 && Squashed(r, c).uid == 0 ==> c.Somebody? && c.who.uid == 0 && !r.squashRoot && !r.squashAll
    ensures r.anonGid != 0 && InGroup(Squashed(r, c), 0) ==>
      c.Somebody? && InGroup(c.who, 0) && !r.squashRoot && !r.squashAll
  { if c.Somebody? { Members(r, c.who.gids, 0); } }
  // Whoever is in a group afterwards was in it before, or it is the anonymous one.
  lemma NobodyGainsGroups(r: Rule, c: Claim, g: uint32)
    ensures InGroup(Squashed(r, c), g) && g != r.anonGid ==> c.Somebody? && InGroup(c.who, g)
  { if c.Somebody? { Members(r, c.who.gids, g); } }
  // all_squash: everybody is the same, in no other group, whatever they say.
  lemma AllAreOne(r: Rule, c: Claim)
    requires r.squashAll
    ensures Squashed(r, c) == Squashed(r, Nobody) == Caller(r.anonUid, r.anonGid, [], map[])
  { }
  // root_squash takes nothing from anybody but root: others stay who they say they are.
  lemma OthersStay(r: Rule, w: Caller)
    requires !r.squashAll && w.uid != 0 && !InGroup(w, 0) && Somebodys(w)
    ensures Squashed(r, Somebody(w)) == w
  { Same(r, w.gids); }
  // no_root_squash: everybody is who they say they are.
  lemma AsClaimed(r: Rule, w: Caller)
    requires !r.squashAll && !r.squashRoot && Somebodys(w)
    ensures Squashed(r, Somebody(w)) == w
  { Same(r, w.gids); }
  // Squashed twice is squashed once, as long as the anonymous user is not root.
  lemma Once(r: Rule, c: Claim)
    requires r.anonUid != 0 && r.anonGid != 0 && r.anonUid != NOID && r.anonGid != NOID && !r.squashAll
    ensures Squashed(r, Somebody(Squashed(r, c))) == Squashed(r, c)
  {
    NobodyIsNobody(r, c);
    if c.Somebody? {
      Members(r, c.who.gids, 0);
      Same(r, Squashed(r, c).gids);
    }
  }

  lemma Cases()
    ensures var r := Rule(true, false, 100, 200);
      Squashed(r, Nobody) == Caller(100, 200, [], map[]) &&
      Squashed(r, Somebody(Caller(0, 0, [], map[]))) == Caller(100, 200, [], map[]) &&
      Squashed(r, Somebody(Caller(0, 5, [6], map[]))) == Caller(100, 5, [6], map[]) &&
        Squashed(r, Somebody(Caller(5, 0, [6, 0], map[]))) == Caller(5, 200, [6, 200], map[]) &&
      Squashed(r, Somebody(Caller(5, 6, [7], map[]))) == Caller(5, 6, [7], map[])
    ensures Squashed(Rule(false, false, 100, 200), Somebody(Caller(0, 0, [0], map[]))) == Caller(0, 0, [0], map[]) &&
      Squashed(Rule(false, false, 100, 200), Nobody) == Caller(100, 200, [], map[])
    ensures Squashed(Rule(false, true, 100, 200), Somebody(Caller(7, 8, [9], map[]))) == Caller(100, 200, [], map[])
  {
    var r := Rule(true, false, 100, 200);
    Two(r, 6, 0);
    One(r, 6);
    One(r, 7);
    One(Rule(false, false, 100, 200), 0);
  }
  // 2^32 - 1, as a user, a group, and among the groups, also where root is root
  lemma NobodysCases()
    ensures var r := Rule(true, false, 100, 200); Squashed(r, Somebody(Caller(NOID, NOID, [6, NOID], map[]))) ==
      Caller(100, 200, [6], map[]) &&
      Squashed(r, Somebody(Caller(5, 6, [NOID, 0], map[]))) == Caller(5, 6, [200], map[])
    ensures var r := Rule(false, false, 100, 200);
      Squashed(r, Somebody(Caller(NOID, 5, [], map[]))) == Caller(100, 5, [], map[]) &&
      Squashed(r, Somebody(Caller(0, NOID, [NOID, 0], map[]))) == Caller(0, 200, [0], map[])
  {
    Two(Rule(true, false, 100, 200), 6, NOID);
    Two(Rule(true, false, 100, 200), NOID, 0);
    Two(Rule(false, false, 100, 200), NOID, 0);
  }
  lemma One(r: Rule, g: uint32)
    ensures SquashedGroups(r, [g]) == if g == NOID then [] else [SquashedGroup(r, g)]
  { assert [g][..0] == []; }
  lemma Two(r: Rule, g: uint32, h: uint32)
    ensures SquashedGroups(r, [g, h]) == (if g == NOID then [] else [SquashedGroup(r, g)])
      + (if h == NOID then [] else [SquashedGroup(r, h)])
  { One(r, g); assert [g, h][..1] == [g]; }
}
