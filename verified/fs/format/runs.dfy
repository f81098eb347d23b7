// Where the blocks of a volume lie on its device.
//
// A volume that can grow is laid out for the most blocks that it may ever have. Of this layout only some runs of blocks
// are there: those that its data, so far as they may reach, and all that belongs to them need. They lie on the device
// one behind the other, in the order in which they came. So the place of a block never changes, whatever comes later,
// and no two blocks have the same. A block that is not there reads as zeros.
//
// The superblock lists the runs. Its copy, the last block of the layout, is not among them: it lies behind them all.
include "../../lib/machine.dfy"
module DeviceRuns {
  import opened Machine

  // n blocks of the layout, from block `at` on, and the runs that came later
  datatype Runs = NoRun | Run(at: uint64, n: uint64, later: Runs)

  const MAXRUNS: uint64 := 240            // that a superblock has room for
  const BOUND: uint64 := 0x1_0000_0000_0000 // more blocks than any layout, and any device, has

  function Count(r: Runs): nat { if r.NoRun? then 0 else 1 + Count(r.later) }
  // blocks of all runs together
  function Total(r: Runs): nat { if r.NoRun? then 0 else r.n as int + Total(r.later) }
  predicate Bounded(r: Runs)
  { r.Run? ==> 0 < r.n < BOUND && r.at < BOUND && Bounded(r.later) }

  // where block a of the layout lies, if the first of the runs begins in block p of the device
  function Where(r: Runs, p: int, a: int): Option<int> {
    if r.NoRun? then None
    else if r.at as int <= a < r.at as int + r.n as int then Some(p + a - r.at as int)
    else Where(r.later, p + r.n as int, a)
  }
  predicate There(r: Runs, a: int) { Where(r, 0, a) != None }

  lemma Within(r: Runs, p: int, a: int)
    ensures Where(r, p, a) != None ==> p <= Where(r, p, a).x < p + Total(r)
  { if r.Run? { Within(r.later, p + r.n as int, a); } }
  // No two blocks lie in the same place.
  lemma Apart(r: Runs, p: int, a: int, b: int)
    requires Where(r, p, a) != None && Where(r, p, a) == Where(r, p, b)
    ensures a == b
  {
    Within(r.later, p + r.n as int, a);
    Within(r.later, p + r.n as int, b);
    var inA, inB := r.at as int <= a < r.at as int + r.n as int, r.at as int <= b < r.at as int + r.n as int;
    if !inA && !inB { Apart(r.later, p + r.n as int, a, b); }
  }
  // Block a of the layout: is it there, and where? So it is for n blocks from a on, which lie in order if they are.
  method Find(r: Runs, a: uint64, end: uint64) returns (there: bool, at: uint64, n: uint64)
    requires Bounded(r) && Total(r) < BOUND as int && a < end <= BOUND
    ensures there <==> There(r, a as int)
    ensures 0 < n && a as int + n as int <= end as int
    ensures there ==> at as int + n as int <= Total(r)
    ensures forall x {:trigger Where(r, 0, x)} :: a as int <= x < a as int + n as int ==>
      Where(r, 0, x) == if there then Some(at as int + (x - a as int)) else None
  {
    var s := r;
    at := 0;
    n := end - a;
    while s.Run?
      invariant Bounded(s) && at as int + Total(s) == Total(r) && 0 < n && a as int + n as int <= end as int
      invariant forall x {:trigger Where(r, 0, x)} :: a as int <= x < a as int + n as int ==>
        Where(r, 0, x) == Where(s, at as int, x)
      decreases s
    {
      if s.at <= a && a < s.at + s.n {
        at := at + (a - s.at);
        if s.n - (a - s.at) < n { n := s.n - (a - s.at); }
        there := true;
        return;
      }
      if a < s.at && s.at - a < n { n := s.at - a; }
      at := at + s.n;
      s := s.later;
    }
    there := false;
  }

  // The runs with another one behind them. (One that goes on where the last one ends becomes a part of it.)
  function method Add(r: Runs, at: uint64, n: uint64): Runs
    requires Bounded(r) && 0 < n < BOUND && at < BOUND
    decreases r
  {
    if r.NoRun? then Run(at, n, NoRun)
    else if r.later.NoRun? && at >= r.at && at - r.at == r.n && r.n + n < BOUND then Run(r.at, r.n + n, NoRun)
    else Run(r.at, r.n, Add(r.later, at, n))
  }
  lemma Sums(r: Runs, at: uint64, n: uint64)
    requires Bounded(r) && 0 < n < BOUND && at < BOUND
    ensures Bounded(Add(r, at, n)) && Total(Add(r, at, n)) == Total(r) + n as int &&
      Count(Add(r, at, n)) <= Count(r) + 1
    decreases r
  { if r.Run? { Sums(r.later, at, n); } }
  // It moves nothing, and lies behind all that was there.
  lemma Behind(r: Runs, at: uint64, n: uint64, p: int, x: int)
    requires Bounded(r) && 0 < n < BOUND && at < BOUND
    ensures Where(Add(r, at, n), p, x) == if Where(r, p, x) != None then Where(r, p, x)
      else if at as int <= x < at as int + n as int then Some(p + Total(r) + x - at as int) else None
    decreases r
  { if r.Run? { Behind(r.later, at, n, p + r.n as int, x); } }
  // Runs of which s came later than r: all blocks of r stay where they are.
  predicate Grew(r: Runs, s: Runs)
  {
    Total(r) <= Total(s) && forall x {:trigger Where(s, 0, x)} ::
      if Where(r, 0, x) != None then Where(s, 0, x) == Where(r, 0, x)
      else Where(s, 0, x) == None || Total(r) <= Where(s, 0, x).x
  }
  predicate Covers(r: Runs, lo: int, hi: int) { forall x {:trigger There(r, x)} :: lo <= x < hi ==> There(r, x) }
  // Blocks lo to hi - 1 are there, with runs more for those that were not. ok = false: they would be too many.
  method Cover(r: Runs, lo: uint64, hi: uint64) returns (ok: bool, t: Runs)
    requires Bounded(r) && Total(r) < BOUND as int && lo <= hi <= BOUND
    ensures Bounded(t) && Total(t) < BOUND as int && Grew(r, t)
    ensures ok ==> Covers(t, lo as int, hi as int)
    // nothing more is there than what was, and these
    ensures forall x {:trigger There(t, x)} :: There(t, x) ==> There(r, x) || lo as int <= x < hi as int
    ensures !ok ==> Total(r) + (hi - lo) as int >= BOUND as int
  {
    ok, t := true, r;
    var a := lo;
    while a < hi
      invariant lo <= a <= hi && Bounded(t) && Total(t) < BOUND as int && Grew(r, t) && Covers(t, lo as int, a as int)
      invariant forall x {:trigger There(t, x)} :: There(t, x) ==> There(r, x) || lo as int <= x < hi as int
      invariant Total(t) <= Total(r) + (a - lo) as int
    {
      var there, at, n := Find(t, a, hi);
      if !there {
        var total := Blocks(t);
        if n >= BOUND || total >= BOUND - n { ok := false; return; }
        ghost var before := t;
        t := Add(t, a, n);
        Added(r, before, a, n);
        Sums(before, a, n);
        forall x | lo as int <= x < a as int + n as int ensures There(t, x) {
          if x < a as int { assert There(before, x); }
        }
        forall x {:trigger There(t, x)} | There(t, x) ensures There(r, x) || lo as int <= x < hi as int {
          if There(before, x) { }
        }
      } else {
        forall x | lo as int <= x < a as int + n as int ensures There(t, x) {
          if x >= a as int { assert Where(t, 0, x) == Some(at as int + (x - a as int)); }
        }
      }
      a := a + n;
    }
  }
  lemma Added(r: Runs, s: Runs, a: uint64, n: uint64)
    requires Bounded(s) && 0 < n < BOUND && a < BOUND && Grew(r, s)
    ensures var t := Add(s, a, n); Grew(r, t) && forall x {:trigger Where(t, 0, x)} ::
      Where(t, 0, x) == if Where(s, 0, x) != None then Where(s, 0, x)
        else if a as int <= x < a as int + n as int then Some(Total(s) + x - a as int) else None
  {
    var t := Add(s, a, n);
    Sums(s, a, n);
    forall x {:trigger Where(t, 0, x)} ensures Where(t, 0, x) == if Where(s, 0, x) != None then Where(s, 0, x)
        else if a as int <= x < a as int + n as int then Some(Total(s) + x - a as int) else None
    { Behind(s, a, n, 0, x); }
  }
  method Blocks(r: Runs) returns (n: uint64)
    requires Bounded(r) && Total(r) < BOUND as int
    ensures n as int == Total(r)
  {
    n := 0;
    var s := r;
    while s.Run?
      invariant Bounded(s) && n as int + Total(s) == Total(r)
      decreases s
    {
      n := n + s.n;
      s := s.later;
    }
  }
}
