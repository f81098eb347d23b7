// What the server knows of the records on a volume: in which place the record of a call is, when it was made, and
// whether that was before the volume was opened. What is forgotten, and when a record counts.
include "index.dfy"
include "sharing.dfy"

module KnownRecords {
  import opened Machine
  import opened ReplyIndex
  import opened ReplySharing

  // How long a client may take to send a call again, in seconds: since it was done, or since the volume was opened if
  // it was done that long before what was done last. Clients wait up to five minutes until they try to connect again.
  const WINDOW: uint64 := 360
  const SECOND: uint64 := 1_000_000_000

  // at: seconds. before: from before the volume was opened
  datatype Record = Record(key: Key, at: uint64, before: bool)
  type Known = map<uint64, Record>          // by place

  // Time, as a call that begins has it. now: the clock, in seconds. up: nanoseconds since the volume was opened. last:
  // when what was done last before that was done, in seconds.
  datatype Time = Time(now: uint64, up: uint64, last: uint64)

  // from when on records count: old ones do not age while no server runs
  function Since(r: Record, t: Time): uint64
  { var from := if r.before then t.last else t.now; if from < WINDOW then 0 else from - WINDOW }
  predicate Counts(r: Record, t: Time)
  { Since(r, t) <= r.at && (r.before ==> t.up as int < WINDOW as int * SECOND as int) }

  // A record is in a place now. What was in the place is forgotten; and the record of the same call that was elsewhere,
  // which another's call was about to replace, but did not.
  function Noted(m: Known, place: uint64, r: Record): Known
  { (map p | p in m && p != place && m[p].key != r.key :: m[p])[place := r] }
  // all in chunk i are forgotten
  function Lost(m: Known, i: uint64): Known { map p | p in m && p / PLACES != i :: m[p] }
  // there is a record of a call that is as new as at
  predicate Remembers(m: Known, key: Key, at: uint64) { exists p :: p in m && m[p].key == key && m[p].at >= at }

  // What was said of the replies of the calls whose records are in places: whether they have arrived.
  type Said = map<uint64, bool>
  // The client of what is recorded in place p may yet ask again: the record counts, and the reply has not arrived.
  predicate Awaited(m: Known, said: Said, t: Time, p: uint64)
  { p in m && Counts(m[p], t) && p in said && !said[p] }
  // Place p cannot be given, as it is a call's under way, or its client may yet ask again; it can, as neither is so.
  predicate Unfit(taken: seq<byte>, m: Known, said: Said, t: Time, p: uint64) requires p as int < |taken|
  { taken[p] != 0 || Awaited(m, said, t, p) }
  predicate Fit(taken: seq<byte>, m: Known, said: Said, t: Time, p: uint64) requires p as int < |taken|
  { taken[p] == 0 && (p !in m || !Counts(m[p], t) || (p in said && said[p])) }
  // no place of chunk i can be given, from place k of it on and before place end
  predicate NoneFit(taken: seq<byte>, m: Known, said: Said, t: Time, i: uint64, k: uint64, end: uint64)
    requires 16 * i as int + end as int <= |taken|
  { forall p: uint64 {:trigger p in said} | 16 * i as int + k as int <= p as int < 16 * i as int + end as int ::
    Unfit(taken, m, said, t, p) }
  // nothing else was said of places of other chunks
  predicate SaidIn(i: uint64, a: Said, b: Said)
  { forall p: uint64 {:trigger p in b} | p / PLACES != i ::
    (p in b <==> p in a) && (p in b ==> b[p] == a[p]) }
  lemma StillNoneFit(taken: seq<byte>, m: Known, said: Said, said': Said, t: Time, i: uint64, k: uint64, end: uint64,
    j: uint64)
    requires 16 * i as int + end as int <= |taken| && end <= 16 && i != j && SaidIn(j, said, said')
    requires NoneFit(taken, m, said, t, i, k, end)
    ensures NoneFit(taken, m, said', t, i, k, end)
  {
    forall p: uint64 | 16 * i as int + k as int <= p as int < 16 * i as int + end as int
      ensures Unfit(taken, m, said', t, p)
    { assert p in said <==> p in said'; assert Unfit(taken, m, said, t, p); }
  }

  // Of a call there is one record at most.
  predicate Single(m: Known)
  { forall p, q {:trigger m[p], m[q]} | p in m && q in m && m[p].key == m[q].key :: p == q }
  lemma NotedIsSingle(m: Known, place: uint64, r: Record)
    requires Single(m)
    ensures Single(Noted(m, place, r))
  {}
  // Nothing is forgotten but what Noted says, for it says so of all others.
  lemma OthersStay(m: Known, place: uint64, r: Record, p: uint64)
    requires p in m && p != place && m[p].key != r.key
    ensures p in Noted(m, place, r) && Noted(m, place, r)[p] == m[p]
  {}
  // What counts when the volume is opened counts for the whole window after.
  lemma CountsAfterOpening(r: Record, t: Time)
    requires r.before && r.at <= t.last && t.last - r.at <= WINDOW && t.up as int < WINDOW as int * SECOND as int
    ensures Counts(r, t)
  {}
  // What was done since counts for the whole window, unless the clock was set forward.
  lemma CountsAfterDone(r: Record, t: Time)
    requires !r.before && t.now as int <= r.at as int + WINDOW as int
    ensures Counts(r, t)
  {}
  // Nothing counts longer.
  lemma AgesOut(r: Record, t: Time)
    requires if r.before then t.up as int >= WINDOW as int * SECOND as int
      else t.now as int > r.at as int + WINDOW as int
    ensures !Counts(r, t)
  {}
}
