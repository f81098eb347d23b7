// mkfs and recovery. Recovery replays the log: it writes the newest contents of every
// logged block home, then empties the log. A crash at any moment of it leaves an image
// that recovers to the same state. It writes no direct block of a group that it may find
// valid (model.dfy, Clear): so what it finds valid does not change while it runs.
include "journal.dfy"

module RecoverM {
  import opened Machine
  import opened ByteSlice
  import opened DiskS
  import opened LogSpec
  import opened LogS
  import opened Ring
  import opened LogModel
  import opened LogSteps
  import opened Groups
  import opened JournalM

  // s and t are the same but for blocks of m
  predicate SameBut(p: Geo, s: Img, t: Img, m: BM) {
    Fits(p, s) && |s| == |t| && (forall a :: p.at <= a < Home(p) ==> s[a] == t[a]) &&
    forall a :: Home(p) <= a < |s| && a !in m ==> s[a] == t[a]
  }
  lemma ValidKept(p: Geo, s: Img, t: Img, q: int, h: int, ms: seq<BM>, sg: set<Rec>)
    requires SameBut(p, s, t, Merge(ms)) && Clear(ms, sg, h) && h <= q && ValidAt(p, s, q, sg)
    ensures ValidAt(p, t, q, sg)
  {
    var b := s[DSlot(p, q)]; var d := DecDesc(b).d;
    var r := Rec(b, RecBlks(p, s, d));
    assert ReadBlks(p, s, d, |d.addrs|) == ReadBlks(p, t, d, |d.addrs|);
    var x := HomeBlks(s, d.dirs); var y := HomeBlks(t, d.dirs);
    forall i | 0 <= i < |d.dirs| ensures x[i] == y[i] {
      assert r in sg && DirectOf(r, h, d.dirs[i]);
      ClearMerge(ms, sg, h, d.dirs[i]);
    }
    assert x == y;
  }
  lemma ValidSame(p: Geo, s: Img, t: Img, q: int, h: int, ms: seq<BM>, sg: set<Rec>)
    requires SameBut(p, s, t, Merge(ms)) && Clear(ms, sg, h) && h <= q
    ensures ValidAt(p, s, q, sg) == ValidAt(p, t, q, sg)
  {
    if ValidAt(p, s, q, sg) { ValidKept(p, s, t, q, h, ms, sg); }
    if ValidAt(p, t, q, sg) { ValidKept(p, t, s, q, h, ms, sg); }
  }
  lemma LogSame(p: Geo, s: Img, t: Img, q: int, ms: seq<BM>, sg: set<Rec>)
    requires SameBut(p, s, t, Merge(ms)) && Log(p, s, q, ms, sg)
    ensures Log(p, t, q, ms, sg)
  {
    forall i | 0 <= i < |ms| ensures GM(p, t, q + i, ms[i], sg) { assert GM(p, s, q + i, ms[i], sg); ValidSame(p, s, t, q + i, q, ms, sg); }
    ValidSame(p, s, t, q + |ms|, q, ms, sg);
  }
  // what image c with the log ms recovers to
  function Merged(p: Geo, c: Img, ms: seq<BM>): St { Over(HomeOf(p, c), Merge(ms)) }
  // image c: header h, log ms, recovers to v
  predicate RecLog(p: Geo, c: Img, h: int, ms: seq<BM>, v: St, sg: set<Rec>) {
    Fits(p, c) && HdrTail(c[p.at]) && h == DecHdr(p.key, c[p.at]) && 0 <= h < 0x2000_0000_0000_0000 &&
    Log(p, c, h, ms, sg) && Agree(p, v, Merged(p, c, ms))
  }
  // a crash while recovery installs: same recovered state
  lemma RecCrash(p: Geo, c: Img, s: Img, h: int, ms: seq<BM>, v: St, sg: set<Rec>)
    requires RecLog(p, c, h, ms, v, sg) && SameBut(p, c, s, Merge(ms))
    ensures RecOK(p, s, v, sg)
  {
    LogSame(p, c, s, h, ms, sg);
    assert Merged(p, s, ms) == Merged(p, c, ms);
  }
  // an empty log
  lemma RecHdr(p: Geo, s: Img, q: int, v: St, sg: set<Rec>)
    requires Fits(p, s) && HdrTail(s[p.at]) && DecHdr(p.key, s[p.at]) == q && 0 <= q < 0x3000_0000_0000_0000 && Agree(p, v, HomeOf(p, s))
    requires forall r :: r in sg ==> Below(r, q)
    ensures RecOK(p, s, v, sg)
  {
    var ms: seq<BM> := [];
    forall r | r in sg ensures Below(r, q + |ms| + 1) { assert Below(r, q); }
    if ValidAt(p, s, q, sg) {
      var b := s[DSlot(p, q)]; var d := DecDesc(b).d;
      assert Below(Rec(b, RecBlks(p, s, d)), q);
    }
    assert Log(p, s, q, ms, sg);
    assert Over(HomeOf(p, s), Merge(ms)) == HomeOf(p, s);
  }
  predicate Still(d: Disk) reads d {
    d.Valid() && forall a :: 0 <= a < |d.cur| ==> d.poss[a] == iset{d.cur[a]}
  }
  predicate Fit(d: Disk, p: Geo) reads d { GeoOk(p) && Still(d) && |d.cur| >= Home(p) }
  function GeoOf(key: int, at: uint64, nd: uint64, nr: uint64, bit: uint64, flo: uint64, fhi: uint64): Geo {
    Geo(at as int, nd as int, nr as int, key, bit as int, flo as int, fhi as int)
  }
  predicate IsGeo(p: Geo, seal: Seal, at: uint64, nd: uint64, nr: uint64) {
    GeoOk(p) && p.at == at as int && p.nd == nd as int && p.nr == nr as int && p.key == seal.key
  }
  // the n data blocks of group e, in at most two runs
  method ReadGroup(d: Disk, at: uint64, nd: uint64, nr: uint64, q: uint64, pos: uint64, n: uint64, ghost p: Geo, ghost e: Desc) returns (io: bool, x: BList, y: BList)
    requires Fit(d, p) && p.at == at as int && p.nd == nd as int && p.nr == nr as int && n <= 500 && pos < 0x2000_0000_0000_0000
    requires e.sq == q as int && e.pos == pos as int && |e.addrs| == n as int
    ensures io ==> x.blks + y.blks == ReadBlks(p, d.cur, e, n as int)
    ensures io ==> forall i :: 0 <= i < n as int ==> |(x.blks + y.blks)[i]| == 4096
  {
    var s := SlotOf(q, nd);
    var a := at + 2 + 16 * s;
    var k := n;
    if n > 15 {
      s := SlotOf(pos, nr);
      a := at + 1 + 16 * nd + s;
      if k > nr - s { k := nr - s; }
    }
    io, x := d.ReadRun(a, k);
    y := x;
    if !io { return; }
    io, y := d.ReadRun(at + 1 + 16 * nd, n - k);
    if !io { return; }
    ghost var z := x.blks + y.blks;
    ghost var rb := ReadBlks(p, d.cur, e, n as int);
    assert |z| == n as int;
    forall i | 0 <= i < n as int ensures |z[i]| == 4096 && z[i] == rb[i] {
      if n > 15 { SlotRun(pos as int, i, p.nr); }
      if i < k as int { assert z[i] == x.blks[i] == d.cur[a as int + i]; assert At(p, e, i) == a as int + i; }
      else { assert z[i] == y.blks[i - k as int] == d.cur[at as int + 1 + 16 * nd as int + (i - k as int)]; }
    }
    assert z == rb;
  }
  // the m direct blocks at their homes, null if one is listed twice
  method ReadDirect(d: Disk, r: DescR, m: uint64, ghost p: Geo) returns (io: bool, z: BList?)
    requires Fit(d, p) && m as int == |r.d.dirs| <= 500 && forall i :: 0 <= i < |r.d.dirs| ==> 0 <= r.d.dirs[i] < |d.cur|
    ensures io && z != null ==> z.blks == HomeBlks(d.cur, r.d.dirs) && forall i, j :: 0 <= i < j < |r.d.dirs| ==> r.d.dirs[i] != r.d.dirs[j]
    ensures io && z == null ==> exists i, j :: 0 <= i < j < |r.d.dirs| && r.d.dirs[i] == r.d.dirs[j]
  {
    z := null; io := true;
    var hm := NewBMap();
    var i: uint64 := 0;
    while i < m
      invariant i <= m && io && z == null && fresh(hm) && hm.Ok() && hm.addrs == r.d.dirs[..i as int]
      invariant forall a :: a in hm.m ==> 0 <= a < |d.cur| && hm.m[a] == d.cur[a]
    {
      var a, n := DirRun(r, i, m);
      assert r.d.dirs[i as int + (n as int - 1)] == a as int + (n as int - 1);
      var l;
      io, l := d.ReadRun(a, n);
      if !io { return; }
      forall x | i as int <= x < i as int + n as int ensures l.blks[x - i as int] == d.cur[r.d.dirs[x]] { assert r.d.dirs[x] == a as int + (x - i as int); }
      var ok := PutRun(hm, r, i, n, l, d.cur);
      if !ok { return; }
      i := i + n;
    }
    assert r.d.dirs[..m as int] == r.d.dirs;
    assert forall x :: 0 <= x < |hm.addrs| ==> hm.addrs[x] in hm.m;
    z := hm.List();
    hm.Distinct();
    assert z.blks == HomeBlks(d.cur, r.d.dirs);
  }
  // direct blocks from the i-th on that lie side by side
  method DirRun(r: DescR, i: uint64, m: uint64) returns (a: uint64, n: uint64)
    requires i < m && m as int == |r.d.dirs| <= 500 && forall x :: 0 <= x < |r.d.dirs| ==> r.d.dirs[x] < 0x8_0000_0000_0000
    ensures 1 <= n && i as int + n as int <= m as int
    ensures forall x :: i as int <= x < i as int + n as int ==> r.d.dirs[x] == a as int + (x - i as int)
  {
    a := r.Dir(i);
    n := 1;
    while i + n < m
      invariant 1 <= n && i as int + n as int <= m as int
      invariant forall x :: i as int <= x < i as int + n as int ==> r.d.dirs[x] == a as int + (x - i as int)
    {
      var b := r.Dir(i + n);
      if b != a + n { break; }
      n := n + 1;
    }
  }
  // n direct blocks, from the i-th on, into hm, which has those before them; false if hm has one already
  method PutRun(hm: BMap, r: DescR, i: uint64, n: uint64, l: BList, ghost c: Img) returns (ok: bool)
    requires hm.Ok() && i as int + n as int <= |r.d.dirs| <= 500 && hm.addrs == r.d.dirs[..i as int] && n as int == |l.blks|
    requires forall x :: 0 <= x < |r.d.dirs| ==> 0 <= r.d.dirs[x] < |c|
    requires forall a :: a in hm.m ==> 0 <= a < |c| && hm.m[a] == c[a]
    requires forall x :: 0 <= x < n as int ==> |l.blks[x]| == 4096
    requires forall x :: i as int <= x < i as int + n as int ==> l.blks[x - i as int] == c[r.d.dirs[x]]
    modifies hm
    ensures hm.Ok() && forall a :: a in hm.m ==> 0 <= a < |c| && hm.m[a] == c[a]
    ensures ok ==> hm.addrs == r.d.dirs[..i as int + n as int]
    ensures !ok ==> exists x, y :: 0 <= x < y < |r.d.dirs| && r.d.dirs[x] == r.d.dirs[y]
  {
    var k: uint64 := 0;
    while k < n
      invariant k <= n && hm.Ok() && hm.addrs == r.d.dirs[..i as int + k as int]
      invariant forall a :: a in hm.m ==> 0 <= a < |c| && hm.m[a] == c[a]
    {
      ghost var e := i as int + k as int;
      var a := r.Dir(i + k);
      var o := hm.Get(a);
      if o != null {
        assert a as int in hm.addrs;
        ghost var x :| 0 <= x < |hm.addrs| && hm.addrs[x] == a as int;
        assert x < e && r.d.dirs[x] == r.d.dirs[e];
        return false;
      }
      var b := l.BlkAt(k);
      assert b.v == l.blks[e - i as int] == c[r.d.dirs[e]];
      hm.Put(a, b);
      assert r.d.dirs[..e + 1] == r.d.dirs[..e] + [r.d.dirs[e]];
      k := k + 1;
    }
    return true;
  }
  lemma GroupIs(p: Geo, s: Img, q: int, m: BM, g: BM, e: Desc, sg: set<Rec>)
    requires Fits(p, s) && GM(p, s, q, m, sg) && DecDesc(s[DSlot(p, q)]) == SomeDesc(e)
    requires forall i :: 0 <= i < |e.addrs| ==> e.addrs[i] in g
    requires forall a :: a in g ==> exists i :: 0 <= i < |e.addrs| && e.addrs[i] == a && g[a] == ReadBlks(p, s, e, |e.addrs|)[i]
    ensures g == m
  {
    forall a | a in g ensures a in m && m[a] == g[a] {
      var i :| 0 <= i < |e.addrs| && e.addrs[i] == a && g[a] == ReadBlks(p, s, e, |e.addrs|)[i];
      assert m[e.addrs[i]] == s[At(p, e, i)];
    }
    forall a | a in m ensures a in g { assert a in e.addrs; }
  }
  // read the group with sequence number q, null if there is none
  method ReadAt(d: Disk, seal: Seal, q: uint64, at: uint64, nd: uint64, nr: uint64, sz: uint64, ghost p: Geo) returns (io: bool, gm: BMap?)
    requires Fit(d, p) && IsGeo(p, seal, at, nd, nr) && sz as int == |d.cur|
    ensures io ==> (gm != null) == ValidAt(p, d.cur, q as int, seal.signed)
    ensures io && gm != null ==> gm.Ok() && InHome(Home(p), gm.m, sz as int) && fresh(gm) && |gm.addrs| <= 500
    ensures io && gm != null ==> forall m :: GM(p, d.cur, q as int, m, seal.signed) ==> gm.m == m
  {
    gm := null;
    var s := SlotOf(q, nd);
    var b;
    io, b := d.Read(at + 1 + 16 * s);
    if !io { return; }
    var r := Parse(b);
    if r == null { return; }
    var q2 := r.Sq(); var pos := r.Pos(); var n := r.N(); var dn := r.M();
    if q2 != q || pos >= 0x2000_0000_0000_0000 || n > 500 || dn > 500 - n { return; }
    var inside := AddrsIn(r, n, dn, at + 1 + 16 * nd + nr, sz);
    if !inside { return; }
    var x, y;
    io, x, y := ReadGroup(d, at, nd, nr, q, pos, n, p, r.d);
    if !io { return; }
    var z;
    io, z := ReadDirect(d, r, dn, p);
    if !io || z == null { return; }
    assert DescWf(p, r.d, |d.cur|);
    var ok := seal.Check(r, x, y, z);
    if !ok { return; }
    gm := GroupMap(r, n, x, y);
    forall m | GM(p, d.cur, q as int, m, seal.signed) ensures gm.m == m { GroupIs(p, d.cur, q as int, m, gm.m, r.d, seal.signed); }
  }
  // are the addresses of a descriptor between lo and hi?
  method AddrsIn(r: DescR, n: uint64, m: uint64, lo: uint64, hi: uint64) returns (ok: bool)
    requires n as int == |r.d.addrs| && m as int == |r.d.dirs|
    ensures ok <==> (forall i :: 0 <= i < |r.d.addrs| ==> lo as int <= r.d.addrs[i] < hi as int) &&
                    (forall i :: 0 <= i < |r.d.dirs| ==> lo as int <= r.d.dirs[i] < hi as int)
  {
    var i: uint64 := 0;
    while i < n
      invariant i <= n && forall j :: 0 <= j < i as int ==> lo as int <= r.d.addrs[j] < hi as int
    {
      var a := r.Addr(i);
      if a < lo || a >= hi { return false; }
      i := i + 1;
    }
    i := 0;
    while i < m
      invariant i <= m && forall j :: 0 <= j < i as int ==> lo as int <= r.d.dirs[j] < hi as int
    {
      var a := r.Dir(i);
      if a < lo || a >= hi { return false; }
      i := i + 1;
    }
    return true;
  }
  method GroupMap(r: DescR, n: uint64, x: BList, y: BList) returns (gm: BMap)
    requires n as int == |r.d.addrs| <= 500 && |x.blks + y.blks| == |r.d.addrs|
    requires forall i :: 0 <= i < n as int ==> |(x.blks + y.blks)[i]| == 4096
    requires forall i :: 0 <= i < n as int ==> 0 <= r.d.addrs[i]
    ensures fresh(gm) && gm.Ok() && |gm.addrs| <= n as int
    ensures forall i :: 0 <= i < |r.d.addrs| ==> r.d.addrs[i] in gm.m
    ensures forall a :: a in gm.m ==> a in r.d.addrs
    ensures forall a :: a in gm.m ==> exists i :: 0 <= i < n as int && r.d.addrs[i] == a && gm.m[a] == (x.blks + y.blks)[i]
  {
    gm := NewBMap();
    var k := x.Len();
    var i: uint64 := 0;
    ghost var bs := x.blks + y.blks;
    while i < n
      invariant i <= n && gm.Ok() && fresh(gm) && |gm.addrs| <= i as int
      invariant forall j :: 0 <= j < i as int ==> r.d.addrs[j] in gm.m
      invariant forall a :: a in gm.m ==> exists j :: 0 <= j < i as int && r.d.addrs[j] == a && gm.m[a] == bs[j]
    {
      var a := r.Addr(i);
      var b;
      if i < k { b := x.BlkAt(i); } else { b := y.BlkAt(i - k); }
      assert b.v == bs[i as int];
      gm.Put(a, b);
      i := i + 1;
    }
    assert i == n && i as int == |r.d.addrs|;
    assert forall j :: 0 <= j < i as int ==> r.d.addrs[j] in gm.m;
    forall a | a in gm.m ensures a in r.d.addrs {
      var j :| 0 <= j < n as int && r.d.addrs[j] == a && gm.m[a] == bs[j];
    }
  }
  // scan the log, merging all its groups
  method Scan(d: Disk, seal: Seal, h: uint64, at: uint64, nd: uint64, nr: uint64, sz: uint64, ghost p: Geo, ghost ms: seq<BM>, ghost v: St)
    returns (io: bool, mm: BMap, i: uint64)
    requires Fit(d, p) && IsGeo(p, seal, at, nd, nr) && sz as int == |d.cur| && RecLog(p, d.cur, h as int, ms, v, seal.signed)
    ensures mm.Ok() && fresh(mm) && InHome(Home(p), mm.m, sz as int)
    ensures io ==> mm.m == Merge(ms) && i as int == |ms| && i < 0x1_0000_0000
  {
    mm := NewBMap();
    i := 0; io := true;
    var done := false;
    while !done
      invariant 0 <= i as int <= |ms| && mm.Ok() && fresh(mm) && InHome(Home(p), mm.m, sz as int)
      invariant mm.m == Merge(ms[..i as int]) && |mm.addrs| <= 500 * i as int && i < 0x1_0000_0000
      invariant done && io ==> i as int == |ms|
      decreases !done, |ms| - i as int
    {
      if i >= 0xFFFF_FFFF { io := false; return; }
      var gm;
      io, gm := ReadAt(d, seal, h + i, at, nd, nr, sz, p);
      if !io { return; }
      if gm == null { done := true; assert i as int < |ms| ==> GM(p, d.cur, h as int + i as int, ms[i as int], seal.signed); }
      else {
        assert i as int < |ms|;
        assert GM(p, d.cur, h as int + i as int, ms[i as int], seal.signed);
        MergeInto(mm, gm);
        assert ms[..i as int + 1][..i as int] == ms[..i as int];
        i := i + 1;
      }
    }
    assert ms[..|ms|] == ms;
  }
  method InstallAll(d: Disk, mm: BMap, ghost p: Geo, ghost h: int, ghost ms: seq<BM>, ghost v: St, ghost sg: set<Rec>) returns (io: bool)
    requires Fit(d, p) && RecLog(p, d.cur, h, ms, v, sg) && mm.Ok() && InHome(Home(p), mm.m, |d.cur|) && mm.m == Merge(ms)
    requires d.ok == OkSet(p, [v], 0, sg)
    modifies d
    ensures d.Valid() && d.ok == old(d.ok) && |d.cur| == |old(d.cur)|
    ensures io ==> Still(d) && HomeOf(p, d.cur) == Merged(p, old(d.cur), ms) && d.bad == old(d.bad)
    ensures io ==> forall a :: 0 <= a < Home(p) ==> d.cur[a] == old(d.cur)[a]
  {
    ghost var c := d.cur;
    var l := mm.Sorted();
    SortedLen(l.addrs, |d.cur|);
    assert Lists(l, mm.m, Home(p), |c|);
    var n := l.Len();
    var k: uint64 := 0;
    while k < n
      invariant 0 <= k <= n && n as int == |l.addrs| && d.Valid() && d.ok == old(d.ok) && |d.cur| == |c| && d.bad == old(d.bad)
      invariant forall a :: 0 <= a < |c| && a !in mm.m ==> d.poss[a] == iset{c[a]} && d.cur[a] == c[a]
      invariant forall x :: 0 <= x < k as int ==> d.cur[l.addrs[x]] == l.blks[x]
    {
      var a, m := Adjacent(l, k);
      forall x | a as int <= x < a as int + m as int ensures x in mm.m && x < |c| { assert l.addrs[k as int + (x - a as int)] == x; }
      assert l.addrs[k as int + m as int - 1] == a as int + (m as int - 1);
      ghost var q := Fuzzy(d.poss, a as int, m as int);
      forall s | CrashImg(q, s) ensures s in d.ok { InstCrash(p, c, s, q, h, ms, v, sg); }
      io := d.WriteRun(a, l, k, m);
      if !io { return; }
      forall x | 0 <= x < k as int + m as int ensures d.cur[l.addrs[x]] == l.blks[x] {
        if x >= k as int { assert l.addrs[x] == a as int + (x - k as int); }
        else { assert l.addrs[x] < l.addrs[k as int]; }
      }
      k := k + m;
    }
    io := d.Barrier(set a | 0 <= a < |d.cur|);
    if !io { return; }
    forall a | Home(p) <= a < |c| ensures d.cur[a] == Merged(p, c, ms)[a] {
      if a in mm.m { assert a in l.addrs; var i :| 0 <= i < |l.addrs| && l.addrs[i] == a; assert d.cur[a] == l.blks[i]; }
    }
    assert HomeOf(p, d.cur) == Merged(p, c, ms);
  }
  method WriteHdr(d: Disk, seal: Seal, at: uint64, q: uint64, ghost p: Geo, ghost c: Img, ghost h: int, ghost ms: seq<BM>, ghost v: St) returns (io: bool)
    requires Fit(d, p) && p.at == at as int && p.key == seal.key && RecLog(p, c, h, ms, v, seal.signed) && |c| == |d.cur| && q as int == h + |ms| + 1
    requires d.ok == OkSet(p, [v], 0, seal.signed) && HomeOf(p, d.cur) == Merged(p, c, ms) && q < 0x1FFF_0000_0000_0000
    requires forall a :: 0 <= a < Home(p) ==> d.cur[a] == c[a]
    modifies d
    ensures d.Valid() && d.ok == old(d.ok) && |d.cur| == |c|
    ensures io ==> HomeOf(p, d.cur) == Merged(p, c, ms) && Full(d.poss, G0(p, seal.signed, q as int, HomeOf(p, d.cur)))
  {
    ghost var c2 := d.cur;
    var nb := seal.EncHdr(q);
    ghost var p2 := d.poss[p.at := d.poss[p.at] + iset{nb.v}];
    forall s | CrashImg(p2, s) ensures s in d.ok { HdrCrash(p, c, c2, s, p2, h, ms, v, nb.v, seal.signed); }
    io := d.WriteSector(at, nb);
    if !io { return; }
    io := d.Barrier(set a | 0 <= a < |d.cur|);
    if !io { return; }
    assert HomeOf(p, d.cur) == HomeOf(p, c2);
    InitFull(p, d.poss, d.cur, q as int, HomeOf(p, d.cur), seal.signed);
  }
  // Opens the volume: any state of the device that a crash may leave, also of the process
  // alone, which may leave writes that can be read and are not durable: hence the barrier,
  // without which a crash of the machine might take away in the middle of the replay what
  // the replay has found. The volume recovers to one of the states vs0[lb0..], but for what
  // is free in it. !io = a device error (or 2^32 - 1 groups, more than a log has room for),
  // null = a log header that is none.
  method Recover(d: Disk, seal: Seal, mu: Mutex, cache: Cache, at: uint64, nd: uint64, nr: uint64, bit: uint64, flo: uint64, fhi: uint64,
    maxPin: uint64, instAt: uint64, ghost vs0: seq<St>, ghost lb0: int) returns (io: bool, j: Journal?)
    requires var p := GeoOf(seal.key, at, nd, nr, bit, flo, fhi); GeoOk(p) && maxPin < 0x1_0000_0000 && d.Valid() && |d.cur| >= Home(p) && 0 <= lb0 && d.ok == OkSet(p, vs0, lb0, seal.signed)
    requires cache.m == map[]
    modifies d
    ensures j != null ==> j.Inv() && j.d == d && j.seal == seal && j.mu == mu && j.cache == cache && j.lb == 0 && j.lph == 0 && j.g.ip == 0
    ensures j != null ==> |j.vs| == 1 && exists n :: lb0 <= n < |vs0| && Agree(GeoOf(seal.key, at, nd, nr, bit, flo, fhi), vs0[n], j.vs[0])
    ensures j != null ==> j.at == at && j.nd == nd && j.nr == nr && j.bit == bit && j.flo == flo && j.fhi == fhi
    ensures j != null ==> fresh(j) && fresh(j.running) && fresh(j.lgm) && fresh(j.cgm) && fresh(j.cdm) && fresh(j.inm) && fresh(j.lho) && fresh(j.iho) && fresh(j.repr)
    ensures d.Valid() && forall s :: s in d.ok ==> s in old(d.ok)
  {
    ghost var p := GeoOf(seal.key, at, nd, nr, bit, flo, fhi);
    j := null;
    io := d.Barrier(set a | 0 <= a < |d.cur|);
    if !io { return; }
    assert CrashImg(d.poss, d.cur);
    ghost var n := Recovers(p, d.cur, vs0, lb0, seal.signed);
    ghost var v := vs0[n];
    forall s | CrashImg(d.poss, s) ensures s in OkSet(p, [v], 0, seal.signed) {
      forall a | 0 <= a < |s| ensures s[a] == d.cur[a] { assert s[a] in d.poss[a]; }
      assert s == d.cur;
      reveal OkSet();
      assert RecOK(p, s, [v][0], seal.signed);
    }
    forall s | s in OkSet(p, [v], 0, seal.signed) ensures s in d.ok { reveal OkSet(); assert RecOK(p, s, vs0[n], seal.signed); }
    d.SetOk(OkSet(p, [v], 0, seal.signed));
    io, j := Replay(d, seal, mu, cache, at, nd, nr, bit, flo, fhi, maxPin, instAt, v);
  }
  ghost method Recovers(p: Geo, s: Img, vs: seq<St>, lb: int, sg: set<Rec>) returns (n: int)
    requires 0 <= lb && s in OkSet(p, vs, lb, sg)
    ensures lb <= n < |vs| && RecOK(p, s, vs[n], sg)
  {
    reveal OkSet();
    n :| lb <= n < |vs| && RecOK(p, s, vs[n], sg);
  }
  // Recovery of a device that is at rest. d.cur recovers to v.
  method Replay(d: Disk, seal: Seal, mu: Mutex, cache: Cache, at: uint64, nd: uint64, nr: uint64, bit: uint64, flo: uint64, fhi: uint64,
    maxPin: uint64, instAt: uint64, ghost v: St) returns (io: bool, j: Journal?)
    requires var p := GeoOf(seal.key, at, nd, nr, bit, flo, fhi); GeoOk(p) && maxPin < 0x1_0000_0000 && Fit(d, p) && RecOK(p, d.cur, v, seal.signed) && d.ok == OkSet(p, [v], 0, seal.signed)
    requires cache.m == map[]
    modifies d
    ensures j != null ==> j.Inv() && j.d == d && j.seal == seal && j.mu == mu && j.cache == cache && j.lb == 0 && j.lph == 0 && j.g.ip == 0
    ensures j != null ==> |j.vs| == 1 && Agree(GeoOf(seal.key, at, nd, nr, bit, flo, fhi), v, j.vs[0])
    ensures j != null ==> j.at == at && j.nd == nd && j.nr == nr && j.bit == bit && j.flo == flo && j.fhi == fhi
    ensures j != null ==> fresh(j) && fresh(j.running) && fresh(j.lgm) && fresh(j.cgm) && fresh(j.cdm) && fresh(j.inm) && fresh(j.lho) && fresh(j.iho) && fresh(j.repr)
    ensures d.Valid() && forall s :: s in d.ok ==> s in old(d.ok)
  {
    ghost var p := GeoOf(seal.key, at, nd, nr, bit, flo, fhi);
    ghost var c := d.cur;
    j := null;
    var sz := d.Size();
    var hb;
    io, hb := d.Read(at);
    if !io { return; }
    var hok, h := seal.DecHdrM(hb);
    if !hok || h >= 0x1000_0000_0000_0000 { return; }
    ghost var ms :| Log(p, c, DecHdr(p.key, c[p.at]), ms, seal.signed) && Agree(p, v, Over(HomeOf(p, c), Merge(ms)));
    var mm, i;
    io, mm, i := Scan(d, seal, h, at, nd, nr, sz, p, ms, v);
    if !io { return; }
    io := InstallAll(d, mm, p, h as int, ms, v, seal.signed);
    if !io { return; }
    io := WriteHdr(d, seal, at, h + i + 1, p, c, h as int, ms, v);
    if !io { return; }
    ghost var w := HomeOf(p, d.cur);
    ghost var g0 := G0(p, seal.signed, h as int + i as int + 1, w);
    assert DurState(g0) == w;
    CrashAll(d.poss, g0, [w], 0, 0);
    OkLess(p, v, w, seal.signed);
    NoDirect(seal.signed, h as int + i as int + 1);
    d.SetOk(OkSet(p, [w], 0, seal.signed));
    j := new Journal(d, seal, mu, cache, sz, at, nd, nr, bit, flo, fhi, h + i + 1, maxPin, instAt);
  }
  lemma NoDirect(sg: set<Rec>, q: int)
    requires forall r :: r in sg ==> Below(r, q)
    ensures forall a :: !Direct(sg, q, a)
  {
    forall a ensures !Direct(sg, q, a) {
      if Direct(sg, q, a) { var r :| r in sg && DirectOf(r, q, a); assert Below(r, q); }
    }
  }
  lemma OkLess(p: Geo, v: St, w: St, sg: set<Rec>)
    requires GeoOk(p) && Agree(p, v, w)
    ensures forall s :: s in OkSet(p, [w], 0, sg) ==> s in OkSet(p, [v], 0, sg)
  {
    reveal OkSet();
    forall s | s in OkSet(p, [w], 0, sg) ensures s in OkSet(p, [v], 0, sg) {
      assert RecOK(p, s, w, sg);
      var h := DecHdr(p.key, s[p.at]);
      var ms :| Log(p, s, h, ms, sg) && Agree(p, w, Over(HomeOf(p, s), Merge(ms)));
      AgreeTrans(p, v, w, Over(HomeOf(p, s), Merge(ms)));
      assert RecOK(p, s, [v][0], sg);
    }
  }
  // Makes an empty log: the home blocks stay what they are. The key must be new.
  method Format(d: Disk, seal: Seal, at: uint64, nd: uint64, nr: uint64, ghost p: Geo) returns (io: bool)
    requires IsGeo(p, seal, at, nd, nr) && d.Valid() && |d.cur| >= Home(p) && seal.signed == {}
    requires forall s: Img :: s in d.ok             // nothing is promised before the end
    modifies d
    ensures d.Valid()
    ensures io ==> forall s :: CrashImg(d.poss, s) ==> RecOK(p, s, HomeOf(p, s), {})
  {
    var nb := seal.EncHdr(1);
    io := d.Write(at, nb);
    if !io { return; }
    io := d.Barrier({at as int});
    if !io { return; }
    forall s | CrashImg(d.poss, s) ensures RecOK(p, s, HomeOf(p, s), {}) {
      assert s[p.at] in d.poss[p.at];
      RecHdr(p, s, 1, HomeOf(p, s), {});
    }
  }
  lemma InstCrash(p: Geo, c: Img, s: Img, q: Poss, h: int, ms: seq<BM>, v: St, sg: set<Rec>)
    requires RecLog(p, c, h, ms, v, sg) && |c| == |q| && CrashImg(q, s) && InHome(Home(p), Merge(ms), |c|)
    requires forall a :: 0 <= a < |c| && a !in Merge(ms) ==> q[a] == iset{c[a]}
    ensures s in OkSet(p, [v], 0, sg)
  {
    forall a | 0 <= a < |c| && a !in Merge(ms) ensures s[a] == c[a] { assert s[a] in q[a]; }
    RecCrash(p, c, s, h, ms, v, sg);
    reveal OkSet();
    assert RecOK(p, s, [v][0], sg);
  }
  lemma HdrCrash(p: Geo, c: Img, c2: Img, s: Img, q: Poss, h: int, ms: seq<BM>, v: St, nb: BV, sg: set<Rec>)
    requires RecLog(p, c, h, ms, v, sg) && |c| == |c2| == |q| && CrashImg(q, s)
    requires HomeOf(p, c2) == Merged(p, c, ms)
    requires forall a :: 0 <= a < Home(p) ==> c[a] == c2[a]
    requires forall a :: 0 <= a < |c| && a != p.at ==> q[a] == iset{c2[a]}
    requires q[p.at] == iset{c[p.at]} + iset{nb} && HdrTail(nb) && DecHdr(p.key, nb) == h + |ms| + 1 < 0x3000_0000_0000_0000
    ensures s in OkSet(p, [v], 0, sg)
  {
    forall a | 0 <= a < |c| && a != p.at ensures s[a] == c2[a] { assert s[a] in q[a]; }
    assert s[p.at] in q[p.at];
    reveal OkSet();
    assert HomeOf(p, s) == HomeOf(p, c2);
    if s[p.at] == nb {
      RecHdr(p, s, h + |ms| + 1, v, sg);
    } else {
      forall a | Home(p) <= a < |c| && a !in Merge(ms) ensures s[a] == c[a] {
        assert s[a] == HomeOf(p, c2)[a] == Merged(p, c, ms)[a];
      }
      RecCrash(p, c, s, h, ms, v, sg);
    }
    assert RecOK(p, s, [v][0], sg);
  }
  lemma InitFull(p: Geo, poss: Poss, cur: Img, q: int, v: St, sg: set<Rec>)
    requires Fits(p, cur) && |poss| == |cur| && HdrTail(cur[p.at]) && DecHdr(p.key, cur[p.at]) == q && 0 <= q < 0x1FFF_0000_0000_0000
    requires forall a :: 0 <= a < |poss| ==> poss[a] == iset{cur[a]}
    requires v == HomeOf(p, cur) && forall r :: r in sg ==> Below(r, q)
    ensures Full(poss, G0(p, sg, q, v))
  {
    reveal Full();
    var g := G0(p, sg, q, v);
    assert g.gs[..0] == [];
    assert Merge([]) == map[];
    forall r | r in g.sg ensures Below(r, End(g)) {}
    forall x | x in poss[g.p.at] ensures HdrOk(x, g) {}
    forall b | Home(p) <= b < |poss| ensures HomePoss(poss[b], g, b) {}
    assert g.base.Keys == (set a | Home(p) <= a < |poss|);
  }
}
