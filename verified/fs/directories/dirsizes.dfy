// The size of a directory and the number of its blocks, when names come and go: Grown of nfs3.s.dfy, of what a volume
// holds.
include "../files/attributechanges.dfy"
include "../spec/nfs3.s.dfy"
module DirSizes {
  import opened Machine
  import opened InodeFormat
  import N = NfsState
  import C = NfsCommon

  // The directory x with the entries m becomes y, which has the entries e at the places at.
  predicate SizeFollows(m: map<N.Name, uint64>, e: map<N.Name, uint64>, at: map<N.Name, int>, x: Meta, y: Meta)
  {
    (forall n: N.Name {:trigger n in e} | n in e && n !in m ::
      n in at && y.size as int == C.Larger(x.size as int, N.BlockEnd(at[n] + 3))) &&
    (C.Within(e, m) ==> y.size == x.size && y.used <= x.used) && (C.Within(m, e) ==> x.used <= y.used) &&
    x.used as int - 1 <= y.used as int <= x.used as int + 1
  }

  // The name t is entered, or its entry replaced, and then the name f goes.
  lemma MovedWithin(m: map<N.Name, uint64>, k: map<N.Name, uint64>, e: map<N.Name, uint64>, mid: map<N.Name, int>,
    at: map<N.Name, int>, x: Meta, y: Meta, z: Meta, f: N.Name, t: N.Name, i: uint64)
    requires f in m && f != t && k == m[t := i] && t in e && f !in e
    requires forall n: N.Name {:trigger n in e} :: n in e <==> n in k && n != f
    requires SizeFollows(m, k, mid, x, y) && SizeFollows(k, e, at, y, z) && (t in mid ==> t in at && at[t] == mid[t])
    ensures SizeFollows(m, e, at, x, z)
  {
    assert C.Within(e, k) && C.Within(m, k) && !C.Within(m, e);
    if t in m { assert C.Within(k, m); } else { assert t in k && !C.Within(e, m); }
  }
}
