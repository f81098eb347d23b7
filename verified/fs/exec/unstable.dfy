// What a client knows of data that it wrote UNSTABLE (RFC 1813, 3.3.7 and 3.3.21). If COMMIT answers with the verifier
// of the WRITE, they are durable. If a crash took them, the verifier is another.
include "exec.dfy"
include "../../journal/lives.dfy"

module Unstable {
  import opened Machine
  import opened Seals
  import opened TxnM
  import E = Exec
  import Durable = NfsDurable
  import RecoverM
  import Lives

  // A reply that says OK, made in the life with this epoch. index, of a WRITE: its commit; of a COMMIT: up to which
  // commit all was durable.
  datatype Reply = Reply(epoch: int, verifier: uint64, index: int)
  predicate Real(s: Seal, r: Reply) reads s { r.epoch in s.epochs && Durable.Carries(Life(s.key, r.epoch), r.verifier) }

  // The life that begins with an opening of the volume (Recover) is as the specification wants it.
  twostate lemma Reborn(s: Seal)
    requires RecoverM.Anew(s)
    ensures Durable.Begins(old(Lives.Verifiers(s)), Life(s.key, s.ep))
  { Lives.Another(s); }

  // In one life, a COMMIT after the WRITE makes it durable.
  twostate lemma Kept(txn: Txn, write: Reply, commit: Reply)
    requires write.index < |old(txn.system.journal.states)| && commit.index == txn.system.journal.durableIndex
    requires E.Keeps(txn, 0, 0, Durable.COMMIT, 0, false)
    ensures write.index <= commit.index
  { }

  // Whoever sees one verifier in both has lost nothing.
  lemma Sees(s: Seal, write: Reply, commit: Reply)
    requires Real(s, write) && Real(s, commit)
    requires write.epoch == commit.epoch ==> write.index <= commit.index
    ensures write.verifier == commit.verifier ==> write.epoch == commit.epoch && write.index <= commit.index
  { s.Lives(); }

  // what the specification allows, and forbids
  lemma Scenarios()
    ensures Durable.Begins({1, 2}, 3) && !Durable.Begins({1, 2}, 2)
    ensures Durable.Carries(7, 7) && !Durable.Carries(7, 8)
  { }
}
