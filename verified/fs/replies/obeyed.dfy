// What is known of records, and what is on the volume: each that is known is there, so a call that is told to look
// finds its record by Look of procedures/records.dfy exactly when the record counts; and what a call leaves is known.
include "known.dfy"
include "../spec/once.s.dfy"

module ObeyedRecords {
  import opened Machine
  import opened ReplyIndex
  import opened KnownRecords
  import O = NfsOnce

  function KeyOf(k: Key): O.Key { O.Key(k.first, k.second, k.third, k.fourth) }
  // what is known is on the volume
  predicate OnVolume(m: Known, rs: O.Replies)
  {
    forall p {:trigger m[p]} | p in m ::
      p as int in rs && rs[p as int].key == KeyOf(m[p].key) && rs[p as int].at == m[p].at
  }

  // A record that is known and counts is found there, and one that does not count is not.
  lemma Found(m: Known, rs: O.Replies, p: uint64, t: Time)
    requires OnVolume(m, rs) && p in m
    ensures O.Counts(rs, p as int, KeyOf(m[p].key), Since(m[p], t)) <==> Since(m[p], t) <= m[p].at
  {}
  // A call that was done has its record on the volume, by the transaction that did it (O.Kept), and it is known (End).
  lemma KeptIsKnown(m: Known, pre: O.Replies, post: O.Replies, p: uint64, r: Record)
    requires OnVolume(m, pre) && p as int in post && post == pre[p as int := post[p as int]]
    requires post[p as int].key == KeyOf(r.key) && post[p as int].at == r.at
    ensures OnVolume(Noted(m, p, r), post)
  {}
  // One that failed, or came again, changes neither. What is forgotten may stay on the volume.
  lemma LostIsForgotten(m: Known, rs: O.Replies, i: uint64)
    requires OnVolume(m, rs)
    ensures OnVolume(Lost(m, i), rs)
  {}
}
