// Extended attributes as they are stored. Inode 2, which is reserved, has a file of blocks of 4096 bytes; block i,
// unless it is a hole, has those of inode i:
//
//   0 gen u64    the generation of inode i that they belong to; 0: there are none
//   8 entries:   +0 u32  the length of the name, and 256 times that of the value
//                +4 the name, then the value, then the next entry
//
// The list ends where a name has no length, or an entry would not fit. Of two entries of one name the first one counts
// (only a damaged list has such).
include "../format/marshal.dfy"
include "../spec/xattr.s.dfy"
module XattrLists {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened Numbers
  import opened Marshal
  import N = NfsState
  import X = NfsXattr

  const FIRST: uint64 := 8

  // ---- a list, from offset o of a block on ----

  function NameLen(b: seq<byte>, o: int): int requires 0 <= o && o + 4 <= |b| { U32At(b, o) as int % 256 }
  function Len(b: seq<byte>, o: int): int requires 0 <= o && o + 4 <= |b|
  { 4 + U32At(b, o) as int % 256 + U32At(b, o) as int / 256 }
  predicate Entry(b: seq<byte>, o: int) { 0 <= o && o + 4 <= |b| && NameLen(b, o) != 0 && o + Len(b, o) <= |b| }
  function NameAt(b: seq<byte>, o: int): seq<byte> requires Entry(b, o) { b[o + 4 .. o + 4 + NameLen(b, o)] }
  function ValueAt(b: seq<byte>, o: int): seq<byte> requires Entry(b, o) { b[o + 4 + NameLen(b, o) .. o + Len(b, o)] }
  function ListAt(b: seq<byte>, o: int): X.List
    decreases |b| - o
  { if !Entry(b, o) then map[] else ListAt(b, o + Len(b, o))[NameAt(b, o) := ValueAt(b, o)] }
  // what an entry takes
  function Size(n: seq<byte>, v: seq<byte>): int { 4 + |n| + |v| }
  // what all take is the sum, in whatever order
  lemma SumOf(l: X.List, n: N.Name)
    ensures 0 <= X.Bytes(l)
    ensures n in l ==> X.Bytes(l) == Size(n, l[n]) + X.Bytes(X.Without(l, n))
    decreases l.Keys
  {
    if l == map[] { return; }
    var m: N.Name :| m in l && X.Bytes(l) == Size(m, l[m]) + X.Bytes(X.Without(l, m));
    var k := X.Without(l, m);
    assert m !in k.Keys && k.Keys < l.Keys;
    SumOf(k, n);
    if n in l && n != m {
      var j := X.Without(l, n);
      assert n !in j.Keys && j.Keys < l.Keys;
      SumOf(j, m);
      assert X.Without(k, n) == X.Without(j, m);
    }
  }
  lemma SumWith(l: X.List, n: N.Name, v: seq<byte>)
    ensures X.Bytes(l[n := v]) == Size(n, v) + X.Bytes(X.Without(l, n)) && 0 <= X.Bytes(X.Without(l, n)) <= X.Bytes(l)
  {
    SumOf(l, n); SumOf(l[n := v], n); SumOf(X.Without(l, n), n);
    assert X.Without(l[n := v], n) == X.Without(l, n);
    if n !in l { assert X.Without(l, n) == l; }
  }
  lemma Fits(b: seq<byte>, o: int)
    requires 0 <= o <= |b|
    ensures X.Bytes(ListAt(b, o)) <= |b| - o
    decreases |b| - o
  {
    if Entry(b, o) {
      Fits(b, o + Len(b, o));
      SumWith(ListAt(b, o + Len(b, o)), NameAt(b, o), ValueAt(b, o));
    }
  }
  // a list without the names of a set
  function Minus(l: X.List, s: set<N.Name>): X.List { map x | x in l && x !in s :: l[x] }
  // the names of the entries from `at` on that begin before o, where one does (Reaches)
  function Before(b: seq<byte>, at: int, o: int): set<N.Name>
    decreases |b| - at
  { if o <= at || !Entry(b, at) then {} else {NameAt(b, at)} + Before(b, at + Len(b, at), o) }
  predicate Reaches(b: seq<byte>, at: int, o: int)
    decreases |b| - at
  { at == o || (at < o && Entry(b, at) && Reaches(b, at + Len(b, at), o)) }
  lemma OneMore(b: seq<byte>, at: int, o: int)
    requires Reaches(b, at, o) && Entry(b, o)
    ensures Reaches(b, at, o + Len(b, o)) && Before(b, at, o + Len(b, o)) == Before(b, at, o) + {NameAt(b, o)}
    decreases |b| - at
  {
    if at == o { assert Before(b, o + Len(b, o), o + Len(b, o)) == {}; }
    else { OneMore(b, at + Len(b, at), o); }
  }
  lemma ZerosList(o: int)
    requires 0 <= o
    ensures ListAt(Zeros(4096), o) == map[]
  { if o + 4 <= 4096 { U32AtZeros(4096, o); } }
  // zeros from o on
  predicate Clear(b: seq<byte>, o: int) { 0 <= o && forall i: int {:trigger b[i]} | o <= i < |b| :: b[i] == 0 }
  lemma ClearList(b: seq<byte>, o: int)
    requires Clear(b, o)
    ensures ListAt(b, o) == map[]
  { if o + 4 <= |b| { assert b[o..o + 4] == [0, 0, 0, 0]; Dec32Zero(); } }
  lemma PartOf(s: seq<byte>, o: int, t: seq<byte>, i: int, j: int)
    requires 0 <= o && o + |t| <= |s| && t == s[o .. o + |t|] && 0 <= i <= j <= |t|
    ensures t[i .. j] == s[o + i .. o + j]
  {
    forall x: int | 0 <= x < j - i ensures t[i .. j][x] == s[o + i .. o + j][x] { assert t[i + x] == s[o + i + x]; }
  }
  lemma Part(s: seq<byte>, o: int, l: int, i: int, j: int)
    requires 0 <= o && 0 <= i <= j <= l && o + l <= |s|
    ensures s[o .. o + l][i .. j] == s[o + i .. o + j]
  { PartOf(s, o, s[o .. o + l], i, j); }
  // an entry, somewhere else
  lemma SameEntry(a: seq<byte>, o: int, b: seq<byte>, p: int)
    requires Entry(a, o) && 0 <= p && p + Len(a, o) <= |b| && b[p .. p + Len(a, o)] == a[o .. o + Len(a, o)]
    ensures Entry(b, p) && Len(b, p) == Len(a, o) && NameAt(b, p) == NameAt(a, o) && ValueAt(b, p) == ValueAt(a, o)
  {
    var l, k := Len(a, o), NameLen(a, o);
    var s, t := a[o .. o + l], b[p .. p + l];
    Part(a, o, l, 0, 4); Part(b, p, l, 0, 4);
    Part(a, o, l, 4, 4 + k); Part(b, p, l, 4, 4 + k);
    Part(a, o, l, 4 + k, l); Part(b, p, l, 4 + k, l);
    assert s == t;
  }
  // the same where it was, when what changed lies behind
  lemma StillEntry(a: seq<byte>, b: seq<byte>, p: int, q: int)
    requires Entry(a, p) && p + Len(a, p) == q && |b| == |a| && b[..q] == a[..q]
    ensures Entry(b, p) && Len(b, p) == Len(a, p) && NameAt(b, p) == NameAt(a, p) && ValueAt(b, p) == ValueAt(a, p)
  {
    assert a[..q][p..q] == a[p..q] && b[..q][p..q] == b[p..q];
    SameEntry(a, p, b, p);
  }

  // the entry at o, if there is one: the lengths of its name and value
  method Look(b: Bytes, o: uint64) returns (ok: bool, n: uint64, v: uint64)
    requires |b.data| == 4096 && o <= 4096
    ensures ok <==> Entry(b.data, o as int)
    ensures ok ==> n as int == NameLen(b.data, o as int) && 4 + n as int + v as int == Len(b.data, o as int) &&
      o as int + 4 + n as int + v as int <= 4096
  {
    ok, n, v := false, 0, 0;
    if o + 4 > 4096 { return; }
    var x := b.U32(o) as uint64;
    n, v := x % 256, x / 256;
    ok := n != 0 && o + 4 + n + v <= 4096;
  }
  // does the entry at o, whose name has n bytes, have that name?
  method Is(b: Bytes, o: uint64, n: uint64, name: Bytes) returns (r: bool)
    requires Entry(b.data, o as int) && |b.data| == 4096 && n as int == NameLen(b.data, o as int)
    ensures r <==> NameAt(b.data, o as int) == name.data
  {
    var l := name.Len();
    if l != n { return false; }
    r := b.EqualAt(o + 4, name);
  }
  method Find(b: Bytes, from: uint64, name: Bytes) returns (found: bool, at: uint64, len: uint64)
    requires |b.data| == 4096 && from <= 4096
    ensures found <==> name.data in ListAt(b.data, from as int)
    ensures found ==> at as int + len as int <= 4096 &&
      ListAt(b.data, from as int)[name.data] == b.data[at as int .. at as int + len as int]
  {
    found, at, len := false, 0, 0;
    var o := from;
    ghost var l := ListAt(b.data, from as int);
    while true
      invariant from <= o <= 4096
      invariant name.data in l <==> name.data in ListAt(b.data, o as int)
      invariant name.data in l ==> l[name.data] == ListAt(b.data, o as int)[name.data]
      decreases 4096 - o
    {
      var ok, n, v := Look(b, o);
      if !ok { return; }
      var same := Is(b, o, n, name);
      if same { found, at, len := true, o + 4 + n, v; return; }
      o := o + 4 + n + v;
    }
  }

  // does an entry of that name come before the one at o, whose name has n bytes?
  method Comes(b: Bytes, o: uint64, n: uint64) returns (r: bool)
    requires |b.data| == 4096 && 8 <= o <= 4096 && Entry(b.data, o as int) && n as int == NameLen(b.data, o as int)
    ensures r <==> NameAt(b.data, o as int) in Before(b.data, 8, o as int)
  {
    var name := NewBytes(n);
    name.CopyFrom(0, b, o + 4, n);
    ghost var x := NameAt(b.data, o as int);
    assert name.data == x;
    var at := FIRST;
    while at < o
      invariant 8 <= at <= 4096 && name.data == x
      invariant x in Before(b.data, 8, o as int) <==> x in Before(b.data, at as int, o as int)
      decreases 4096 - at
    {
      var ok, k, v := Look(b, at);
      if !ok { return false; }
      r := Is(b, at, k, name);
      if r { return; }
      at := at + 4 + k + v;
    }
    r := false;
  }

  // Copies the entries from o on to offset p of the block n, which is clear there, but for those of that name, and of
  // a name that has come before. ok = false: they do not fit.
  method Copy(b: Bytes, o: uint64, name: Bytes, n: Bytes, p: uint64) returns (ok: bool, end: uint64)
    modifies n
    requires n != b && n != name && |b.data| == 4096 == |n.data| && 8 <= o <= 4096 && p <= 4096
    requires Clear(n.data, p as int) && Reaches(b.data, 8, o as int)
    ensures |n.data| == 4096 && n.data[..p as int] == old(n.data)[..p as int]
    ensures var l := Minus(ListAt(b.data, o as int), {name.data} + Before(b.data, 8, o as int));
      if ok then p <= end <= 4096 && ListAt(n.data, p as int) == l && (end == p <==> l == map[])
      else 4096 < p as int + X.Bytes(l)
    decreases 4096 - o
  {
    ok, end := true, p;
    ghost var had := {name.data} + Before(b.data, 8, o as int);
    var is, k, v := Look(b, o);
    if !is { ClearList(n.data, p as int); return; }
    var l := 4 + k + v;
    OneMore(b.data, 8, o as int);
    ghost var x, rest := NameAt(b.data, o as int), ListAt(b.data, o as int + l as int);
    ghost var later := Minus(rest, had + {x});
    assert had + {x} == {name.data} + Before(b.data, 8, o as int + l as int);
    var same := Is(b, o, k, name);
    if !same { same := Comes(b, o, k); }
    if same {
      assert had + {x} == had && Minus(ListAt(b.data, o as int), had) == later;
      ok, end := Copy(b, o + l, name, n, p);
      return;
    }
    assert Minus(ListAt(b.data, o as int), had) == later[x := ValueAt(b.data, o as int)];
    SumWith(later, x, ValueAt(b.data, o as int));
    assert X.Without(later, x) == later;
    if p + l > 4096 { ok := false; return; }
    n.CopyFrom(p, b, o, l);
    ghost var m, q := n.data, p as int + l as int;
    assert m[p as int .. q] == b.data[o as int .. o as int + l as int];
    SameEntry(b.data, o as int, m, p as int);
    assert m[..p as int] == old(n.data)[..p as int];
    ok, end := Copy(b, o + l, name, n, p + l);
    assert n.data[..q][..p as int] == n.data[..p as int] && m[..q][..p as int] == m[..p as int];
    if ok {
      StillEntry(m, n.data, p as int, q);
      assert x in ListAt(n.data, p as int);
    }
  }

  // what a block has room for
  lemma Room(l: X.List, b: seq<byte>, n: N.Name, v: seq<byte>)
    requires |b| == 4096 && l == ListAt(b, 8)
    ensures X.Bytes(l[n := v]) == Size(n, v) + X.Bytes(X.Without(l, n)) && 0 <= X.Bytes(X.Without(l, n)) <= 4088
    ensures n in l ==> Size(n, l[n]) + X.Bytes(X.Without(l, n)) <= 4088
  { Fits(b, 8); SumWith(l, n, v); SumOf(l, n); }
  lemma None(b: seq<byte>, n: N.Name)
    ensures Reaches(b, 8, 8) && Minus(ListAt(b, 8), {n} + Before(b, 8, 8)) == X.Without(ListAt(b, 8), n)
  { }

  // The block that the generation gen and an entry begin, and the entries of b follow, but for those of that name.
  method Build(b: Bytes, gen: uint64, name: Bytes, value: Bytes) returns (ok: bool, n: Bytes)
    requires |b.data| == 4096 && 0 < |name.data| < 256
    ensures fresh(n) && |n.data| == 4096
    ensures ok ==> U64At(n.data, 0) == gen && ListAt(n.data, 8) ==
      X.Without(ListAt(b.data, 8), name.data)[name.data := value.data]
    ensures !ok ==> X.Crowded(ListAt(b.data, 8)[name.data := value.data]) &&
      !(name.data in ListAt(b.data, 8) && |value.data| <= |ListAt(b.data, 8)[name.data]|)
  {
    Room(ListAt(b.data, 8), b.data, name.data, value.data);
    n := NewBytes(4096);
    var k, v := name.Len(), value.Len();
    ok := false;
    if v > 4096 || FIRST + 4 + k + v > 4096 { return; }
    assert name.data[0..k as int] == name.data;
    assert value.data[0..v as int] == value.data;
    ghost var none := n.data;
    n.PutU64(0, gen);
    SpliceEnc64(none, 0, gen);
    var l := 4 + k + v;
    ghost var z := n.data;
    assert Clear(z, 8);
    n.PutU32(8, (k + 256 * v) as uint32);
    ghost var h := n.data;
    SpliceEnc32(z, 8, (k + 256 * v) as uint32);
    assert Clear(h, 12);
    n.CopyFrom(12, name, 0, k);
    ghost var w, to := n.data, 12 + k as int;
    assert Clear(w, to);
    assert w[12..to] == name.data[0..k as int] == name.data;
    n.CopyFrom(12 + k, value, 0, v);
    ghost var e, q := n.data, 8 + l as int;
    assert Clear(e, q);
    assert e[8..12] == h[8..12];
    assert U32At(e, 8) as int == k as int + 256 * v as int;
    assert e[..to] == w[..to];
    assert e[12..to] == e[..to][12..] == w[..to][12..] == w[12..to];
    assert e[12..to] == name.data && e[to..q] == value.data[0..v as int];
    assert e[to..q] == value.data;
    assert Entry(e, 8) && NameAt(e, 8) == name.data && ValueAt(e, 8) == value.data;
    assert e[0..8] == z[0..8];
    None(b.data, name.data);
    var end;
    ok, end := Copy(b, FIRST, name, n, FIRST + l);
    if ok {
      StillEntry(e, n.data, 8, q);
      assert n.data[0..8] == n.data[..q][0..8] == e[..q][0..8] == e[0..8];
    }
  }
  // The block that the generation gen begins, and the entries of b follow, but for those of that name. empty: there are
  // no others.
  method Drop(b: Bytes, gen: uint64, name: Bytes) returns (n: Bytes, empty: bool)
    requires |b.data| == 4096
    ensures fresh(n) && |n.data| == 4096 && U64At(n.data, 0) == gen &&
      ListAt(n.data, 8) == X.Without(ListAt(b.data, 8), name.data)
    ensures empty <==> ListAt(n.data, 8) == map[]
  {
    Room(ListAt(b.data, 8), b.data, name.data, []);
    None(b.data, name.data);
    n := NewBytes(4096);
    ghost var none := n.data;
    n.PutU64(0, gen);
    SpliceEnc64(none, 0, gen);
    ghost var z := n.data;
    assert Clear(z, 8);
    var ok, end := Copy(b, FIRST, name, n, FIRST);
    assert n.data[0..8] == n.data[..8] == z[..8] == z[0..8];
    empty := end == FIRST;
  }

  // the names, each once, with a zero after it
  method Names(b: Bytes) returns (r: Bytes)
    requires |b.data| == 4096
    ensures fresh(r) && exists ns: seq<N.Name> {:trigger X.Joined(ns)} ::
      X.Each(ns, ListAt(b.data, 8)) && r.data == X.Joined(ns)
  {
    var z := NewBytes(4096);
    var o, q := FIRST, 0;
    ghost var ns: seq<N.Name> := [];
    ghost var l := ListAt(b.data, 8);
    assert z.data[..0] == [];
    while true
      invariant 8 <= o <= 4096 && q <= o && fresh(z) && |z.data| == 4096 && z.data[..q as int] == X.Joined(ns)
      invariant forall n: N.Name {:trigger n in l} {:trigger n in ns} :: n in l <==>
        n in ns || n in ListAt(b.data, o as int)
      invariant forall n: N.Name {:trigger n in ns} | n in ns :: n !in ListAt(b.data, o as int)
      invariant forall i: int, j: int {:trigger ns[i], ns[j]} | 0 <= i < j < |ns| :: ns[i] != ns[j]
      decreases 4096 - o
    {
      var ok, n, v := Look(b, o);
      if !ok { break; }
      var name := NewBytes(n);
      name.CopyFrom(0, b, o + 4, n);
      ghost var x := NameAt(b.data, o as int);
      assert name.data == x;
      var again, at, len := Find(b, o + 4 + n + v, name);
      if !again {
        ghost var was := z.data;
        z.CopyFrom(q, name, 0, n);
        z.Set(q + n, 0);
        assert name.data[0..n as int] == x;
        assert z.data[..(q + n + 1) as int] == was[..q as int] + x + [0];
        assert (ns + [x])[..|ns|] == ns;
        assert x !in ns;
        forall i: int, j: int | 0 <= i < j < |ns + [x]|
          ensures (ns + [x])[i] != (ns + [x])[j] { if j == |ns| { assert ns[i] in ns; } }
        ns := ns + [x];
        q := q + n + 1;
      }
      o := o + 4 + n + v;
    }
    assert X.Each(ns, l);
    r := NewBytes(q);
    r.CopyFrom(0, z, 0, q);
    assert r.data == z.data[..q as int];
  }

  // ---- the file ----

  function Upto(n: int): set<uint64> { set k: int | 0 <= k < n && k < 0x1_0000_0000_0000_0000 :: k as uint64 }
  function BlockOf(f: seq<byte>, i: int): seq<byte> requires 0 <= i && 4096 * i + 4096 <= |f|
  { f[4096 * i .. 4096 * i + 4096] }
  function Says(b: seq<byte>): N.Xattrs requires |b| == 4096 { N.Xattrs(U64At(b, 0), ListAt(b, 8)) }
  predicate Has(f: seq<byte>, i: uint64) { 4096 * i as int + 4096 <= |f| && U64At(BlockOf(f, i as int), 0) != 0 }
  function {:opaque} All(f: seq<byte>): map<uint64, N.Xattrs>
  { map i | i in Upto(|f| / 4096) && Has(f, i) :: Says(BlockOf(f, i as int)) }
  lemma AllAt(f: seq<byte>, i: uint64)
    ensures i in All(f) <==> Has(f, i)
    ensures Has(f, i) ==> All(f)[i] == Says(BlockOf(f, i as int))
  {
    reveal All();
    if Has(f, i) { assert 0 <= i as int < |f| / 4096;
      assert i in Upto(|f| / 4096) by { var k := i as int; assert 0 <= k < |f| / 4096 && k as uint64 == i; } }
  }
  lemma AllNone()
    ensures All([]) == map[]
  { reveal All(); }

  // Block i becomes b; what comes between it and the end that was is zeros.
  predicate Put(f: seq<byte>, h: seq<byte>, i: int, b: seq<byte>)
  {
    0 <= i && |b| == 4096 && |f| <= |h| && 4096 * i + 4096 <= |h| &&
    forall k: int {:trigger h[k]} | 0 <= k < |h| ::
      h[k] == (if 4096 * i <= k < 4096 * i + 4096 then b[k - 4096 * i] else if k < |f| then f[k] else 0)
  }
  function Changed(f: seq<byte>, i: uint64, b: seq<byte>): map<uint64, N.Xattrs>
    requires |b| == 4096
  { if U64At(b, 0) == 0 then map x | x in All(f) && x != i :: All(f)[x] else All(f)[i := Says(b)] }
  lemma PutBlock(f: seq<byte>, h: seq<byte>, i: uint64, b: seq<byte>, j: uint64)
    requires Put(f, h, i as int, b) && |f| % 4096 == 0
    ensures Has(h, j) <==> if j == i then U64At(b, 0) != 0 else Has(f, j)
    ensures Has(h, j) ==> BlockOf(h, j as int) == if j == i then b else BlockOf(f, j as int)
  {
    if 4096 * j as int + 4096 <= |h| {
      var c := BlockOf(h, j as int);
      if j == i { assert c == b; }
      else if 4096 * j as int + 4096 <= |f| { assert c == BlockOf(f, j as int); }
      else { assert c[0..8] == [0, 0, 0, 0, 0, 0, 0, 0]; Dec64Zero(); }
    }
  }
  lemma PutAll(f: seq<byte>, h: seq<byte>, i: uint64, b: seq<byte>)
    requires Put(f, h, i as int, b) && |f| % 4096 == 0
    ensures All(h) == Changed(f, i, b)
  {
    var want := Changed(f, i, b);
    forall j: uint64 ensures (j in All(h) <==> j in want) && (j in want ==> All(h)[j] == want[j])
    { AllAt(f, j); AllAt(h, j); PutBlock(f, h, i, b, j); }
    assert All(h) == want;
  }
  // a block that has a generation is not all zeros
  lemma NotZero(f: seq<byte>, i: uint64)
    requires Has(f, i)
    ensures exists k: int {:trigger f[k]} :: 4096 * i as int <= k < 4096 * i as int + 8 && f[k] != 0
  {
    var o := 4096 * i as int;
    if forall k: int {:trigger f[k]} | o <= k < o + 8 :: f[k] == 0 {
      assert BlockOf(f, i as int)[0..8] == [0, 0, 0, 0, 0, 0, 0, 0];
      Dec64Zero();
    }
  }
}
