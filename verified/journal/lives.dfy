// The write verifier: each life of the server, from an opening of the volume until it ends or crashes, has one of its
// own. A life is an epoch of the seal.
include "recover.dfy"

module Lives {
  import opened Machine
  import opened Seals
  import opened JournalM
  import opened RecoverM

  method Verifier(j: Journal) returns (v: uint64)
    requires j.Inv()
    ensures v == Life(j.layout.key, j.layout.epoch)
  {
    assert j.layout.key == j.seal.key && j.layout.epoch == j.seal.ep by { reveal j.Inv(); }
    v := j.seal.Verifier();
  }

  // the verifiers of all lives up to now
  function Verifiers(s: Seal): set<uint64> reads s { set e | e in s.epochs :: Life(s.key, e) }
  // That of a volume that was opened is none of those before (Recover).
  twostate lemma Another(s: Seal)
    requires Anew(s)
    ensures Life(s.key, s.ep) !in old(Verifiers(s))
  {
    s.Lives();
    if Life(s.key, s.ep) in old(Verifiers(s)) {
      var e :| e in old(s.epochs) && Life(s.key, e) == Life(s.key, s.ep);
      assert e in s.epochs && s.ep in s.epochs;
    }
  }
}
