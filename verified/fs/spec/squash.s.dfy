// THE SPECIFICATION, who a caller is: from what a call says of its caller, and the rule of
// the export for the caller's host, to the Caller that the rest (nfs3.s.dfy) knows. This is
// what root_squash, all_squash, anonuid and anongid of exports(5) mean.
include "nfs3.s.dfy"
module NfsSquash {
  import opened Machine
  import opened NfsState
  import opened NfsPerm

  // What access lists say is the volume's matter, and no part of a claim: claims have no lists here.
  //
  // The credentials of a call (RFC 5531): AUTH_NONE says nothing, AUTH_SYS a user, a
  // group and supplementary groups, which the server may have replaced by its own list of them.
  datatype Claim = Nobody | Somebody(who: Caller)
  // squashRoot: user 0 and group 0 are not root here. squashAll: nobody is who they say. The anonymous user and group
  // are not NOID, which is nobody's number (nfs/exports/parse.go refuses such a rule).
  datatype Rule = Rule(squashRoot: bool, squashAll: bool, anonUid: uint32, anonGid: uint32)

  function Squashed(r: Rule, c: Claim): Caller
  {
    if c.Nobody? || r.squashAll then Caller(r.anonUid, r.anonGid, [], map[])
    else Caller(SquashedUser(r, c.who.uid), SquashedGroup(r, c.who.gid), SquashedGroups(r, c.who.gids), c.who.lists)
  }
  // Who says to be NOID is anonymous, whatever the rule.
  function SquashedUser(r: Rule, u: uint32): uint32 { if u == NOID || (r.squashRoot && u == 0) then r.anonUid else u }
  function SquashedGroup(r: Rule, g: uint32): uint32 { if g == NOID || (r.squashRoot && g == 0) then r.anonGid else g }
  // each of them, wherever it stands; NOID is left out
  function SquashedGroups(r: Rule, gs: seq<uint32>): seq<uint32>
  {
    if gs == [] then []
    else SquashedGroups(r, gs[..|gs| - 1]) + (if gs[|gs| - 1] == NOID then [] else [SquashedGroup(r, gs[|gs| - 1])])
  }
}
