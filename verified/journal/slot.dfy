// flags: /nlarith
// Positions on a ring of n slots. Positions count up for ever; a position's slot is its
// remainder. This is the only file that knows so: the others see the facts below, so
// that their proofs need no nonlinear arithmetic.
include "../lib/machine.dfy"

module Ring {
  import opened Machine
  export provides Slot, SlotOf, SlotDistinct, SlotRun, Machine

  function Slot(p: int, n: int): (s: int)
    requires n > 0
    ensures 0 <= s < n
  { p % n }

  lemma MulAtLeast(k: int, n: int)
    requires k >= 1 && n > 0
    ensures k * n >= n
    decreases k
  { if k > 1 { MulAtLeast(k - 1, n); assert k * n == (k - 1) * n + n; } }
  lemma Unique(p: int, q: int, r: int, n: int)
    requires n > 0 && p == q * n + r && 0 <= r < n
    ensures p % n == r
  {
    var q' := p / n; var r' := p % n;
    assert p == q' * n + r' && 0 <= r' < n;
    var e := q' - q;
    assert e * n == q' * n - q * n;
    assert r - r' == e * n;
    if e > 0 { MulAtLeast(e, n); }
    if e < 0 { MulAtLeast(-e, n); assert (-e) * n == -(e * n); }
    assert e == 0;
  }
  // k slots further: with a wrap-around or without
  lemma SlotRun(p: int, k: int, n: int)
    requires 0 <= k <= n && 0 < n
    ensures Slot(p + k, n) == if Slot(p, n) + k < n then Slot(p, n) + k else Slot(p, n) + k - n
  {
    var q := p / n; var r := p % n;
    assert p == q * n + r;
    if r + k < n { Unique(p + k, q, r + k, n); }
    else { assert (q + 1) * n == q * n + n; Unique(p + k, q + 1, r + k - n, n); }
  }
  lemma SlotDistinct(p: int, q: int, n: int)
    requires 0 < n && p < q < p + n
    ensures Slot(p, n) != Slot(q, n)
  { SlotRun(p, q - p, n); }

  method SlotOf(p: uint64, n: uint64) returns (s: uint64)
    requires n > 0
    ensures s as int == Slot(p as int, n as int)
  { s := p % n; }
}
