// The two superblocks of a volume: block 0, and the copy in the last block. When they are written, and which of them
// counts.
//
// A device without the magic number in block 0 holds no volume, whatever else it holds. Making a volume takes it away
// first, and puts it back last: when all else is in its place, durably, and the copy too (Blank, Commission). The copy
// counts only where block 0 is known to have been a superblock, or cannot be read (Find).
include "superblock.dfy"
include "../../trusted/disk.s.dfy"
module SuperblockCopies {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened DiskS
  import opened Marshal
  import opened SuperblockFormat

  predicate NoVolume(s: Img) { |s| > 0 && |s[0]| == 4096 && U64At(s[0], 0) != MAGIC }
  // all but block 0 is as in w, and the copy says that it is volume v
  predicate Whole(w: Img, v: Super, s: Img) {
    2 <= |s| == |w| && (forall a {:trigger s[a]} :: 0 < a < |s| - 1 ==> s[a] == w[a]) &&
    |s[|s|-1]| == 4096 && Acceptable(s[|s|-1]) && SuperAt(s[|s|-1]) == v
  }
  lemma Empty() ensures U64At(Zeros(4096), 0) != MAGIC
  { U64AtZeros(4096, 0); }

  // The device ceases to be a volume. Other blocks stay.
  method Blank(d: Disk) returns (io: bool)
    // what it held is given up
    requires d.Valid() && 2 <= |d.cur| && d.owner == map[] && forall s: Img :: s in d.ok
    modifies d
    ensures d.Valid() && d.owner == map[] && |d.cur| == |old(d.cur)| && (forall s: Img :: s in d.ok)
    ensures forall a :: 0 < a < |d.cur| - 1 ==> d.poss[a] <= old(d.poss)[a]
    ensures if io then d.poss[0] == d.poss[|d.cur|-1] == iset{Zeros(4096)} && forall s :: CrashImg(d.poss, s) ==>
      NoVolume(s) else d.bad
  {
    var n := d.Size();
    var z := ZeroBlk();
    Empty();
    d.Take(Recovering, {0, n as int - 1});
    io := d.Write(Recovering, 0, z, null, null);
    if io { io := d.Write(Recovering, n - 1, z, null, null); }
    if io { io := d.Barrier(Recovering); }
    d.Leave(Recovering);
    assert forall a :: a in d.owner ==> Owns(d.owner, d.owner[a], a);
  }

  // The device becomes volume s, which it holds but for the superblocks. Until then it is none (d.ok), and from the
  // first write of block 0 on all is there.
  method Commission(d: Disk, s: Super) returns (io: bool)
    requires d.Valid() && 2 <= |d.cur| == s.size as int && SuperOk(s) && d.owner == map[] &&
      d.poss[0] == iset{Zeros(4096)} && forall i: Img :: NoVolume(i) ==> i in d.ok
    modifies d
    ensures d.Valid() && d.owner == map[] && |d.cur| == |old(d.cur)|
    ensures forall i :: CrashImg(d.poss, i) ==> NoVolume(i) || Whole(old(d.cur), s, i)
    ensures io ==> forall i :: CrashImg(d.poss, i) ==>
      Whole(old(d.cur), s, i) && |i[0]| == 4096 && Acceptable(i[0]) && SuperAt(i[0]) == s
    ensures !io ==> d.bad
  {
    ghost var w := d.cur;
    Empty();
    d.SetOk(iset i: Img | NoVolume(i));
    d.Take(Recovering, set a | 0 <= a < |d.cur|);
    io := d.Barrier(Recovering);
    if io {
      io := Put(d, s, s.size - 1);
      if io {
        d.SetOk(iset i: Img | Whole(w, s, i));
        io := Put(d, s, 0);
      }
    }
    d.Leave(Recovering);
    assert forall a :: a in d.owner ==> Owns(d.owner, d.owner[a], a);
  }

  // Block 0 is made anew from the copy, which stays, whatever happens.
  method Restore(d: Disk, s: Super, ghost w: Img) returns (io: bool)
    requires d.Valid() && 2 <= |d.cur| && SuperOk(s) && d.owner == map[] && forall i :: CrashImg(d.poss, i) ==>
      Whole(w, s, i)
    requires forall i: Img :: i in d.ok
    modifies d
    ensures d.Valid() && d.owner == map[] && forall i :: CrashImg(d.poss, i) ==> Whole(w, s, i)
    // and so that only the copy's superblock may be there
    ensures io ==> forall i :: CrashImg(d.poss, i) ==> |i[0]| == 4096 && Acceptable(i[0]) && SuperAt(i[0]) == s
    ensures !io ==> d.bad
  {
    d.SetOk(iset i: Img | Whole(w, s, i));
    d.Take(Recovering, {0});
    forall i | CrashImg(Fuzzy(d.poss, 0, 1), i) ensures Whole(w, s, i) {
      var k := i[0 := d.cur[0]];
      assert CrashImg(d.poss, k) && Whole(w, s, k);
      assert forall a {:trigger i[a]} :: 0 < a < |i| ==> i[a] == k[a];
    }
    io := Put(d, s, 0);
    d.Leave(Recovering);
    assert forall a :: a in d.owner ==> Owns(d.owner, d.owner[a], a);
  }

  // block a becomes superblock s
  method Put(d: Disk, s: Super, a: uint64) returns (io: bool)
    requires d.Valid() && a as int < |d.cur| && SuperOk(s) && Owns(d.owner, Recovering, a as int)
    requires forall i :: CrashImg(Fuzzy(d.poss, a as int, 1), i) ==> i in d.ok
    modifies d`poss, d`cur, d`bad
    ensures d.Valid() && |d.cur| == |old(d.cur)| && SubPoss(d.poss, Fuzzy(old(d.poss), a as int, 1))
    ensures io ==> forall x :: 0 <= x < |d.cur| && x != a as int ==> d.cur[x] == old(d.cur)[x]
    ensures io ==> |d.cur[a]| == 4096 && Acceptable(d.cur[a]) && SuperAt(d.cur[a]) == s && d.poss[a] == iset{d.cur[a]}
    ensures !io ==> d.bad
  {
    var e := Encode(s);
    var b := Freeze(e);
    io := d.Write(Recovering, a, b, null, null);
    if io { io := d.Barrier(Recovering); }
  }

  // Which superblock counts.
  const NONE: uint32 := 0         // none; why says it of block 0, as Decode does
  const FIRST: uint32 := 1
  const COPY: uint32 := 2
  const UNREAD: uint32 := 100     // it cannot be read
  const LARGER: uint32 := 101     // there is one, of a volume that is larger than the device

  function Says(why: uint32, b: seq<byte>): bool
  { why == UNREAD || (|b| == 4096 && (why == 0 <==> Acceptable(b)) && (why == 1 <==> U64At(b, 0) != MAGIC) &&
    (why == 2 <==> U64At(b, 0) == MAGIC && !Sealed(b))) }

  // a superblock that is like that may have been one, so the copy is asked
  predicate Asks(why: uint32) { why == UNREAD || why == 2 }

  method Look(d: Disk, a: uint64) returns (why: uint32, s: Super, ghost b: seq<byte>)
    requires d.Valid() && a as int < |d.cur|
    ensures Says(why, b) && why != LARGER && (why == 0 ==> s == SuperAt(b) && SuperOk(s))
    ensures why == UNREAD ==> Erred(d)
  {
    var io, c, honest := d.Read(a);
    b := c.v;
    var e: Bytes;
    if io { e := c.Thaw(); } else { e := NewBytes(4096); }
    why, s := Decode(e);
    if !io { why := UNREAD; }
  }

  // first and copy are what Look says of block 0, whose bytes are b, and of the last block, whose bytes are c.
  method Find(d: Disk) returns (which: uint32, why: uint32, s: Super, ghost b: seq<byte>, ghost c: seq<byte>,
    ghost first: uint32, ghost copy: uint32)
    requires d.Valid() && 2 <= |d.cur|
    ensures which <= COPY && (which != NONE ==> SuperOk(s) && s.extent.room as int <= |d.cur|)
    ensures Says(first, b) && (Asks(first) ==> Says(copy, c)) && (first == UNREAD || copy == UNREAD ==> Erred(d))
    // block 0 counts where it is a superblock; else the copy, where block 0 may have been one
    ensures which == FIRST ==> first == 0 && s == SuperAt(b)
    ensures which == COPY ==> Asks(first) && copy == 0 && s == SuperAt(c)
    ensures which == NONE && why != LARGER ==> first != 0 && !(Asks(first) && copy == 0)
    ensures if why != LARGER then why == first else which == NONE &&
      if first == 0 then SuperAt(b).extent.room as int > |d.cur| else
        Asks(first) && copy == 0 && SuperAt(c).extent.room as int > |d.cur|
    // where there is no volume none is found, and what is found after a crash of Commission or Restore is the volume
    ensures why != UNREAD && |b| == 4096 && U64At(b, 0) != MAGIC ==> which == NONE
  {
    var n := d.Size();
    c, copy := [], 1;
    why, s, b := Look(d, 0);
    first := why;
    which := if why == 0 then FIRST else NONE;
    if why == UNREAD || why == 2 {
      var last;
      last, s, c := Look(d, n - 1);
      copy := last;
      which := if last == 0 then COPY else NONE;
    }
    if which != NONE && s.extent.room > n {
      which, why := NONE, LARGER;
    }
  }
  // What Find takes for the volume that was made, after a crash while it was, is it.
  lemma Found(w: Img, v: Super, i: Img, which: uint32, s: Super)
    requires NoVolume(i) || Whole(w, v, i)
    requires which == COPY ==> 2 <= |i| && |i[|i|-1]| == 4096 && Acceptable(i[|i|-1]) && s == SuperAt(i[|i|-1]) &&
      |i[0]| == 4096 && U64At(i[0], 0) == MAGIC
    ensures which == COPY ==> s == v && Whole(w, v, i)
  { }
}
