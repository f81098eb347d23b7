// More of a volume's layout comes to be: what goes to the device, and in which order.
//
// First what is new becomes zeros, but for data blocks, and then the copy of the new superblock comes behind it.
// Nothing of the volume as it was is touched by that. At last block 0 says how much there is. A crash leaves the
// volume as it was, or with all that is new (Growing). What it holds is the same either way (SameVolume).
include "extents.dfy"
include "../format/copies.dfy"
include "../../journal/recover.dfy"
module Growing {
  import opened Machine
  import opened ByteSpec
  import opened DiskS
  import opened VolumeGeometry
  import opened DeviceRuns
  import opened SuperblockFormat
  import Copies = SuperblockCopies
  import R = RecoverM

  // t is volume s with more of its layout
  predicate Longer(s: Super, t: Super) {
    SuperOk(s) && SuperOk(t) && s.extent.runs.Run? && t == s.(extent := t.extent) &&
    Grew(s.extent.runs, t.extent.runs) && s.extent.room < t.extent.room && s.extent.dataEnd < t.extent.dataEnd
  }
  // so many new data blocks lie where those of s end: from the place of its superblock's copy on
  predicate DataFirst(s: Super, t: Super, n: int) {
    SuperOk(s) && SuperOk(t) && 0 < n && s.extent.dataEnd as int + n < s.size as int &&
    s.extent.room as int + n <= t.extent.room as int &&
    forall x {:trigger Where(t.extent.runs, 0, x)} :: s.extent.dataEnd as int <= x < s.extent.dataEnd as int + n ==>
      Where(t.extent.runs, 0, x) == Some(s.extent.room as int - 1 + x - s.extent.dataEnd as int)
  }
  predicate Is(b: BV, s: Super) { |b| == 4096 && Acceptable(b) && SuperAt(b) == s }
  // the device held w, on which volume s is, before all this
  predicate Old(w: Img, s: Super, i: Img) {
    |i| == |w| && s.extent.room as int <= |w| &&
    forall a {:trigger i[a]} :: 0 <= a < s.extent.room as int ==> i[a] == w[a]
  }
  // all of t is there, but that block 0 may not say it yet
  predicate New(w: Img, s: Super, t: Super, n: int, i: Img) {
    |i| == |w| && 0 < s.extent.room < t.extent.room && t.extent.room as int <= |w| && 0 < n &&
    Is(i[t.extent.room as int - 1], t) &&
    (forall a {:trigger i[a]} :: 0 < a < s.extent.room as int - 1 ==> i[a] == w[a]) &&
    forall a {:trigger i[a]} :: s.extent.room as int - 1 + n <= a < t.extent.room as int - 1 ==> i[a] == Zeros(4096)
  }

  // how many; 0: the new data do not begin there
  method First(s: Super, t: Super) returns (n: uint64)
    requires Longer(s, t)
    ensures 0 < n ==> DataFirst(s, t, n as int)
  {
    var there, at, k := Locate(t, s.extent.dataEnd);
    n := 0;
    if there && at == s.extent.room - 1 && k <= t.extent.room - s.extent.room && k < s.size - s.extent.dataEnd {
      n := k;
      forall x {:trigger Where(t.extent.runs, 0, x)} | s.extent.dataEnd as int <= x < s.extent.dataEnd as int + n as int
        ensures Where(t.extent.runs, 0, x) == Some(s.extent.room as int - 1 + x - s.extent.dataEnd as int)
      { assert Place(t, x) == Where(t.extent.runs, 0, x); }
    }
  }

  // The device d, whose volume is s, gets volume t. zeroed: what is behind s reads as zeros, and a crash leaves it so.
  method Grow(d: Disk, s: Super, t: Super, n: uint64, zeroed: bool) returns (io: bool)
    requires d.Valid() && d.owner == map[] && Longer(s, t) && DataFirst(s, t, n as int) &&
      t.extent.room as int <= |d.cur| && (forall i: Img :: i in d.ok)
    requires forall a :: 0 <= a < s.extent.room as int ==> d.poss[a] == iset{d.cur[a]}
    requires zeroed ==> forall a :: s.extent.room as int <= a < t.extent.room as int ==> d.poss[a] == iset{Zeros(4096)}
    modifies d
    ensures d.Valid() && d.owner == map[] && |d.cur| == |old(d.cur)|
    ensures forall i :: CrashImg(d.poss, i) ==> Old(old(d.cur), s, i) || New(old(d.cur), s, t, n as int, i)
    ensures io ==> forall i :: CrashImg(d.poss, i) ==> New(old(d.cur), s, t, n as int, i) && Is(i[0], t)
    ensures !io ==> d.bad
  {
    ghost var w := d.cur;
    var z := s.extent.room - 1 + n;
    var end := t.extent.room - 1;
    ghost var m := s.extent.room as int;
    forall i | CrashImg(d.poss, i) ensures Old(w, s, i) { IsOld(w, s, d.poss, i); }
    d.SetOk(iset i: Img | Old(w, s, i));
    d.Take(Recovering, {0} + set a | m <= a < t.extent.room as int);
    io := Clear(d, w, s, z, end, zeroed);
    if io { io := Copy(d, w, s, t, z, end); }
    if io {
      forall i | CrashImg(d.poss, i) ensures New(w, s, t, n as int, i) || Old(w, s, i) { IsOld(w, s, d.poss, i); }
      io := Commit(d, w, s, t, n);
    } else {
      forall i | CrashImg(d.poss, i) ensures Old(w, s, i) { assert i in d.ok; }
    }
    d.Leave(Recovering);
    assert forall a :: a in d.owner ==> Owns(d.owner, d.owner[a], a);
  }
  // The copy of superblock t is in its place, and what is new is zeros.
  predicate Ready(poss: Poss, t: Super, z: int) {
    0 <= z && 0 < t.extent.room as int <= |poss| &&
    (forall a {:trigger poss[a]} :: z <= a < t.extent.room as int - 1 ==>
      poss[a] <= iset{Zeros(4096)}) &&
    exists copy :: Is(copy, t) && poss[t.extent.room as int - 1] <= iset{copy}
  }
  method Copy(d: Disk, ghost w: Img, s: Super, t: Super, ghost z: uint64, end: uint64) returns (io: bool)
    requires d.Valid() && SuperOk(t) && s.extent.room <= z <= end && end as int < |d.cur| && t.extent.room == end + 1 &&
      Stay(w, s.extent.room as int, d.poss) && d.ok == (iset i: Img | Old(w, s, i))
    requires Owns(d.owner, Recovering, end as int) && forall a :: z as int <= a < end as int ==>
      d.poss[a] == iset{Zeros(4096)}
    modifies d`poss, d`cur, d`bad
    ensures d.Valid() && |d.cur| == |old(d.cur)| && Stay(w, s.extent.room as int, d.poss)
    ensures if io then Ready(d.poss, t, z as int) else d.bad
  {
    ghost var before := Fuzzy(d.poss, end as int, 1);
    forall i | CrashImg(before, i) ensures i in d.ok { IsOld(w, s, before, i); }
    io := Copies.Put(d, t, end);
    forall a {:trigger d.poss[a]} | 0 <= a < |d.poss| ensures d.poss[a] <= before[a] { }
    if io {
      ghost var copy := d.cur[end as int];
      assert Is(copy, t) && d.poss[end as int] <= iset{copy};
    }
  }
  method Commit(d: Disk, ghost w: Img, s: Super, t: Super, n: uint64) returns (io: bool)
    requires d.Valid() && SuperOk(t) && s.extent.room as int - 1 + n as int >= s.extent.room as int > 0 &&
      s.extent.room < t.extent.room && t.extent.room as int <= |d.cur| && Stay(w, s.extent.room as int, d.poss) &&
      Ready(d.poss, t, s.extent.room as int - 1 + n as int) && Owns(d.owner, Recovering, 0)
    modifies d`ok, d`poss, d`cur, d`bad
    ensures d.Valid() && |d.cur| == |old(d.cur)|
    ensures forall i :: CrashImg(d.poss, i) ==> Old(w, s, i) || New(w, s, t, n as int, i)
    ensures io ==> forall i :: CrashImg(d.poss, i) ==> New(w, s, t, n as int, i) && Is(i[0], t)
    ensures !io ==> d.bad
  {
    ghost var copy :| Is(copy, t) && d.poss[t.extent.room as int - 1] <= iset{copy};
    ghost var before := Fuzzy(d.poss, 0, 1);
    forall i | CrashImg(before, i) ensures New(w, s, t, n as int, i) { IsNew(w, s, t, n as int, before, i, copy); }
    forall i | CrashImg(d.poss, i) ensures Old(w, s, i) { IsOld(w, s, d.poss, i); }
    d.SetOk(iset i: Img | Old(w, s, i) || New(w, s, t, n as int, i));
    io := Copies.Put(d, t, 0);
    if io {
      forall i | CrashImg(d.poss, i) ensures New(w, s, t, n as int, i) && Is(i[0], t) {
        forall a {:trigger d.poss[a]} | 0 < a < |d.poss| ensures d.poss[a] <= before[a] { }
        IsNew(w, s, t, n as int, d.poss, i, copy);
        assert i[0] in d.poss[0];
      }
    }
  }
  // the first m blocks can only be what w has
  predicate Stay(w: Img, m: int, poss: Poss)
  { |poss| == |w| && 0 <= m <= |w| && forall a {:trigger poss[a]} :: 0 <= a < m ==> poss[a] <= iset{w[a]} }
  lemma IsOld(w: Img, s: Super, poss: Poss, i: Img)
    requires Stay(w, s.extent.room as int, poss) && CrashImg(poss, i)
    ensures Old(w, s, i)
  { forall a {:trigger i[a]} | 0 <= a < s.extent.room as int ensures i[a] == w[a] { assert i[a] in poss[a]; } }
  lemma IsNew(w: Img, s: Super, t: Super, n: int, poss: Poss, i: Img, copy: BV)
    requires 0 < s.extent.room < t.extent.room && t.extent.room as int <= |w| == |poss| && 0 < n && CrashImg(poss, i)
    requires forall a {:trigger poss[a]} :: 0 < a < s.extent.room as int - 1 ==> poss[a] <= iset{w[a]}
    requires forall a {:trigger poss[a]} :: s.extent.room as int - 1 + n <= a < t.extent.room as int - 1 ==>
      poss[a] <= iset{Zeros(4096)}
    requires poss[t.extent.room as int - 1] <= iset{copy} && Is(copy, t)
    ensures New(w, s, t, n, i)
  {
    forall a {:trigger i[a]} | 0 < a < s.extent.room as int - 1 ensures i[a] == w[a] { assert i[a] in poss[a]; }
    forall a {:trigger i[a]} | s.extent.room as int - 1 + n <= a < t.extent.room as int - 1 ensures i[a] == Zeros(4096)
    { assert i[a] in poss[a]; }
    assert i[t.extent.room as int - 1] in poss[t.extent.room as int - 1];
  }
  // Blocks z to end - 1 become zeros, durably.
  method Clear(d: Disk, ghost w: Img, s: Super, z: uint64, end: uint64, zeroed: bool) returns (io: bool)
    requires d.Valid() && s.extent.room <= z <= end && end as int < |d.cur| && Stay(w, s.extent.room as int, d.poss) &&
      d.ok == (iset i: Img | Old(w, s, i))
    requires forall a :: z as int <= a < end as int ==> Owns(d.owner, Recovering, a)
    requires zeroed ==> forall a :: z as int <= a < end as int ==> d.poss[a] == iset{Zeros(4096)}
    modifies d`poss, d`cur, d`bad
    ensures d.Valid() && |d.cur| == |old(d.cur)| && Stay(w, s.extent.room as int, d.poss)
    ensures if io then forall a :: z as int <= a < end as int ==> d.poss[a] == iset{Zeros(4096)} else d.bad
  {
    io := true;
    if !zeroed {
      forall i: Img | R.But(d.poss, z as int, end as int, i) ensures i in d.ok {
        forall a {:trigger i[a]} | 0 <= a < s.extent.room as int ensures i[a] == w[a] { assert i[a] in d.poss[a]; }
      }
      io := R.Zero(d, z, end);
      if !io { return; }
    }
    assert forall a :: z as int <= a < end as int ==> d.cur[a] in d.poss[a];
    ghost var before := d.poss;
    io := d.Barrier(Recovering);
    forall a {:trigger d.poss[a]} | 0 <= a < s.extent.room as int ensures d.poss[a] <= iset{w[a]} {
      assert d.poss[a] <= before[a];
    }
  }

  // Home blocks of s lo to end - 1, as far as they are there, become zeros, durably. The device is no volume meanwhile.
  method ClearHome(d: Disk, s: Super, lo: uint64, end: uint64) returns (io: bool)
    requires d.Valid() && d.owner == map[] && SuperOk(s) && s.extent.room as int <= |d.cur| && lo <= end < s.size &&
      forall i: Img :: i in d.ok
    modifies d
    ensures d.Valid() && d.owner == map[] && |d.cur| == |old(d.cur)|
    ensures if io then Cleared(d, s, lo as int, end as int) else d.bad
  {
    d.Take(Recovering, set a | 0 <= a < |d.cur|);
    io := true;
    var a := lo;
    while io && a < end
      invariant lo <= a <= end && d.Valid() && |d.cur| == |old(d.cur)| && (!io ==> d.bad) &&
        (forall i: Img :: i in d.ok)
      invariant (forall x :: 0 <= x < |d.cur| ==> Owns(d.owner, Recovering, x)) &&
        forall x, r :: Owns(d.owner, r, x) ==> r == Recovering
      invariant io ==> Cleared(d, s, lo as int, a as int)
      decreases end - a, io
    {
      var there, at, n := Locate(s, a);
      if n > end - a { n := end - a; }
      if there {
        ghost var before := d.poss;
        io := R.Zero(d, at, at + n);
        if io { io := d.Barrier(Recovering); }
        if io {
          forall x {:trigger Place(s, x)} | lo as int <= x < a as int + n as int && Place(s, x) != None
            ensures 0 <= Place(s, x).x < |d.cur| && d.poss[Place(s, x).x] == iset{Zeros(4096)} {
            var y := Place(s, x).x;
            Places(s, x, x);
            assert d.cur[y] in d.poss[y];
          }
        }
      }
      if io { a := a + n; }
    }
    d.Leave(Recovering);
    assert forall x :: x in d.owner ==> Owns(d.owner, d.owner[x], x);
  }
  predicate Cleared(d: Disk, s: Super, lo: int, end: int)
    requires SuperOk(s)
    reads d
  {
    |d.poss| == |d.cur| && forall a {:trigger Place(s, a)} :: lo <= a < end && Place(s, a) != None ==>
      0 <= Place(s, a).x < |d.cur| && d.poss[Place(s, a).x] == iset{Zeros(4096)}
  }

  // What block a of the layout holds, on a device with the image i.
  function Holds(s: Super, i: Img, a: int): BV
    requires SuperOk(s) && s.extent.room as int <= |i| && 0 <= a < s.size as int
  { Places(s, a, a); if Place(s, a) == None then Zeros(4096) else i[Place(s, a).x] }
  // THE THEOREM: a volume that grew holds what it held, but for its superblocks, and data blocks that it had not.
  lemma SameVolume(w: Img, s: Super, t: Super, n: int, i: Img, a: int)
    requires Longer(s, t) && DataFirst(s, t, n) && s.extent.room as int <= |w| && New(w, s, t, n, i)
    requires 0 < a < s.size as int - 1 && !(s.extent.dataEnd as int <= a < s.extent.dataEnd as int + n)
    ensures Holds(t, i, a) == Holds(s, w, a)
  {
    Places(s, a, a);
    Places(t, a, a);
    var r, u := s.extent.runs, t.extent.runs;
    assert Where(u, 0, a) == Where(u, 0, a);
    if Where(r, 0, a) != None {
      Within(r, 0, a);
      Places(s, a, 0);
    } else if Where(u, 0, a) != None {
      Within(u, 0, a);
      var x := Where(u, 0, a).x;
      if x < s.extent.room as int - 1 + n {
        var b := s.extent.dataEnd as int + x - (s.extent.room as int - 1);
        assert Where(u, 0, b) == Some(x);
        Apart(u, 0, a, b);
      }
    }
  }
  // A volume may grow while it is in use. Growth touches the superblocks, and what is behind them; all else that uses
  // the volume touches what lies between: so the device is j but for the former, and i but for the latter. What growth
  // alone would have left of w is left of j then.
  lemma Beside(w: Img, j: Img, s: Super, t: Super, n: int, i: Img, k: Img)
    requires |j| == |w| == |i| == |k| && 2 <= s.extent.room as int <= |w| && (Old(w, s, i) || New(w, s, t, n, i))
    requires j[0] == w[0] && j[s.extent.room as int - 1] == w[s.extent.room as int - 1]
    requires forall a {:trigger k[a]} :: 0 <= a < |k| ==>
      k[a] == if 0 < a < s.extent.room as int - 1 then j[a] else i[a]
    ensures Old(w, s, i) ==> Old(j, s, k)
    ensures New(w, s, t, n, i) ==> New(j, s, t, n, k)
  { }
}
