// mkfs and recovery. Recovery replays the log: it writes the newest contents of every
// logged block home, then empties the log. A crash at any moment of it leaves an image
// that recovers to the same state.
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
  import opened JournalM

  predicate SameLog(p: Geo, s: Img, t: Img) {
    Fits(p, s) && |s| == |t| && forall i :: p.at < i < Home(p) ==> s[i] == t[i]
  }
  lemma ValidSame(p: Geo, s: Img, t: Img, q: int, sg: set<Rec>)
    requires SameLog(p, s, t)
    ensures ValidAt(p, s, q, sg) == ValidAt(p, t, q, sg)
  {
    var o := DecDesc(s[DSlot(p, q)]);
    if o.SomeDesc? && DescWf(p, o.d, |s|) {
      assert ReadBlks(p, s, o.d.pos, |o.d.addrs|) == ReadBlks(p, t, o.d.pos, |o.d.addrs|);
    }
  }
  lemma LogSame(p: Geo, s: Img, t: Img, q: int, ms: seq<BM>, sg: set<Rec>)
    requires SameLog(p, s, t) && Log(p, s, q, ms, sg)
    ensures Log(p, t, q, ms, sg)
  {
    forall i | 0 <= i < |ms| ensures GM(p, t, q + i, ms[i], sg) { assert GM(p, s, q + i, ms[i], sg); ValidSame(p, s, t, q + i, sg); }
    ValidSame(p, s, t, q + |ms|, sg);
  }
  // image c: header h, log ms, recovers to v
  predicate RecLog(p: Geo, c: Img, h: int, ms: seq<BM>, v: St, sg: set<Rec>) {
    Fits(p, c) && HdrTail(c[p.at]) && h == DecHdr(p.key, c[p.at]) && 0 <= h < 0x2000_0000_0000_0000 &&
    Log(p, c, h, ms, sg) && v == Over(HomeOf(p, c), Merge(ms))
  }
  // a crash while recovery installs: same recovered state
  lemma RecCrash(p: Geo, c: Img, s: Img, h: int, ms: seq<BM>, v: St, sg: set<Rec>)
    requires RecLog(p, c, h, ms, v, sg) && SameLog(p, c, s) && c[p.at] == s[p.at]
    requires forall a :: Home(p) <= a < |c| && a !in Merge(ms) ==> s[a] == c[a]
    ensures RecOK(p, s, v, sg)
  {
    LogSame(p, c, s, h, ms, sg);
    forall a | Home(p) <= a < |c| ensures Over(HomeOf(p, s), Merge(ms))[a] == v[a] {}
    assert Over(HomeOf(p, s), Merge(ms)) == v;
  }
  // an empty log
  lemma RecHdr(p: Geo, s: Img, q: int, v: St, sg: set<Rec>)
    requires Fits(p, s) && HdrTail(s[p.at]) && DecHdr(p.key, s[p.at]) == q && 0 <= q < 0x3000_0000_0000_0000 && v == HomeOf(p, s)
    requires forall r :: r in sg ==> Below(r, q)
    ensures RecOK(p, s, v, sg)
  {
    var ms: seq<BM> := [];
    forall r | r in sg ensures Below(r, q + |ms| + 1) { assert Below(r, q); }
    if ValidAt(p, s, q, sg) {
      var b := s[DSlot(p, q)]; var d := DecDesc(b).d;
      assert Below(Rec(b, ReadBlks(p, s, d.pos, |d.addrs|)), q);
    }
    assert Log(p, s, q, ms, sg);
    assert Over(HomeOf(p, s), Merge(ms)) == v;
  }
  predicate Still(d: Disk) reads d {
    d.Valid() && forall a :: 0 <= a < |d.cur| ==> d.poss[a] == iset{d.cur[a]}
  }
  predicate Fit(d: Disk, p: Geo) reads d { GeoOk(p) && Still(d) && |d.cur| >= Home(p) }
  predicate IsGeo(p: Geo, seal: Seal, at: uint64, nd: uint64, nr: uint64) {
    GeoOk(p) && p == Geo(at as int, nd as int, nr as int, seal.key)
  }
  // the n data blocks from position pos on, in at most two runs
  method ReadGroup(d: Disk, at: uint64, nd: uint64, nr: uint64, pos: uint64, n: uint64, ghost p: Geo) returns (io: bool, x: BList, y: BList)
    requires Fit(d, p) && p.at == at as int && p.nd == nd as int && p.nr == nr as int && n <= 500 && pos < 0x2000_0000_0000_0000
    ensures io ==> x.blks + y.blks == ReadBlks(p, d.cur, pos as int, n as int)
    ensures io ==> forall i :: 0 <= i < n as int ==> |(x.blks + y.blks)[i]| == 4096
  {
    var s := SlotOf(pos, nr);
    var k := n;
    if k > nr - s { k := nr - s; }
    io, x := d.ReadRun(at + 1 + nd + s, k);
    y := x;
    if !io { return; }
    io, y := d.ReadRun(at + 1 + nd, n - k);
    if !io { return; }
    ghost var z := x.blks + y.blks;
    ghost var rb := ReadBlks(p, d.cur, pos as int, n as int);
    assert |z| == n as int;
    forall i | 0 <= i < n as int ensures |z[i]| == 4096 && z[i] == rb[i] {
      SlotRun(pos as int, i, p.nr);
      if i < k as int { assert z[i] == x.blks[i] == d.cur[at as int + 1 + nd as int + s as int + i]; }
      else { assert z[i] == y.blks[i - k as int] == d.cur[at as int + 1 + nd as int + (i - k as int)]; }
    }
    assert z == rb;
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
    io, b := d.Read(at + 1 + s);
    if !io { return; }
    var r := Parse(b);
    if r == null { return; }
    var q2 := r.Sq(); var pos := r.Pos(); var n := r.N();
    if q2 != q || pos >= 0x2000_0000_0000_0000 || n > 500 { return; }
    var inside := AddrsIn(r, n, at + 1 + nd + nr, sz);
    if !inside { return; }
    assert DescWf(p, r.d, |d.cur|);
    var x, y;
    io, x, y := ReadGroup(d, at, nd, nr, pos, n, p);
    if !io { return; }
    var ok := seal.Check(r, x, y);
    if !ok { return; }
    gm := GroupMap(r, n, x, y);
    forall m | GM(p, d.cur, q as int, m, seal.signed) ensures gm.m == m {
      forall a | a in gm.m ensures a in m && m[a] == gm.m[a] {
        var i :| 0 <= i < n as int && r.d.addrs[i] == a && gm.m[a] == (x.blks + y.blks)[i];
        assert m[r.d.addrs[i]] == d.cur[LSlot(p, pos as int + i)];
      }
      forall a | a in m ensures a in gm.m { assert a in r.d.addrs; }
      assert gm.m == m;
    }
  }
  // are the addresses of a descriptor between lo and hi?
  method AddrsIn(r: DescR, n: uint64, lo: uint64, hi: uint64) returns (ok: bool)
    requires n as int == |r.d.addrs|
    ensures ok <==> forall i :: 0 <= i < |r.d.addrs| ==> lo as int <= r.d.addrs[i] < hi as int
  {
    var i: uint64 := 0;
    while i < n
      invariant i <= n && forall j :: 0 <= j < i as int ==> lo as int <= r.d.addrs[j] < hi as int
    {
      var a := r.Addr(i);
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
    ensures io ==> Still(d) && HomeOf(p, d.cur) == v && d.bad == old(d.bad)
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
    forall a | Home(p) <= a < |c| ensures d.cur[a] == v[a] {
      if a in mm.m { assert a in l.addrs; var i :| 0 <= i < |l.addrs| && l.addrs[i] == a; assert d.cur[a] == l.blks[i]; }
    }
    assert HomeOf(p, d.cur) == v;
  }
  method WriteHdr(d: Disk, seal: Seal, at: uint64, q: uint64, ghost p: Geo, ghost c: Img, ghost h: int, ghost ms: seq<BM>, ghost v: St) returns (io: bool)
    requires Fit(d, p) && p.at == at as int && p.key == seal.key && RecLog(p, c, h, ms, v, seal.signed) && |c| == |d.cur| && q as int == h + |ms| + 1
    requires d.ok == OkSet(p, [v], 0, seal.signed) && HomeOf(p, d.cur) == v && q < 0x1FFF_0000_0000_0000
    requires forall a :: 0 <= a < Home(p) ==> d.cur[a] == c[a]
    modifies d
    ensures d.Valid() && d.ok == old(d.ok) && |d.cur| == |c|
    ensures io ==> HomeOf(p, d.cur) == v && Full(d.poss, G0(p, seal.signed, q as int, v))
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
    InitFull(p, d.poss, d.cur, q as int, v, seal.signed);
  }
  // Opens the volume: any state of the device that a crash may leave, also of the process
  // alone, which may leave writes that can be read and are not durable: hence the barrier,
  // without which a crash of the machine might take away in the middle of the replay what
  // the replay has found. The volume recovers to one of the states vs0[lb0..]. !io = a
  // device error, null = a log header that is none.
  method Recover(d: Disk, seal: Seal, mu: Mutex, cache: Cache, at: uint64, nd: uint64, nr: uint64, maxPin: uint64, instAt: uint64, ghost vs0: seq<St>, ghost lb0: int) returns (io: bool, j: Journal?)
    requires at < 0x1_0000_0000 && 2 <= nd < 0x1_0000_0000 && 1000 <= nr < 0x1_0000_0000 && maxPin < 0x1_0000_0000
    requires var p := Geo(at as int, nd as int, nr as int, seal.key); d.Valid() && |d.cur| >= Home(p) && 0 <= lb0 && d.ok == OkSet(p, vs0, lb0, seal.signed)
    requires cache.m == map[]
    modifies d
    ensures j != null ==> j.Inv() && j.d == d && j.seal == seal && j.mu == mu && j.cache == cache && j.lb == 0 && j.lph == 0 && j.g.ip == 0
    ensures j != null ==> exists n :: lb0 <= n < |vs0| && j.vs == [vs0[n]]
    ensures j != null ==> j.at == at && j.nd == nd && j.nr == nr
    ensures j != null ==> fresh(j) && fresh(j.running) && fresh(j.lgm) && fresh(j.cgm) && fresh(j.inm) && fresh(j.repr)
    ensures d.Valid()
  {
    ghost var p := Geo(at as int, nd as int, nr as int, seal.key);
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
    d.SetOk(OkSet(p, [v], 0, seal.signed));
    io, j := Replay(d, seal, mu, cache, at, nd, nr, maxPin, instAt, v);
  }
  ghost method Recovers(p: Geo, s: Img, vs: seq<St>, lb: int, sg: set<Rec>) returns (n: int)
    requires 0 <= lb && s in OkSet(p, vs, lb, sg)
    ensures lb <= n < |vs| && RecOK(p, s, vs[n], sg)
  {
    reveal OkSet();
    n :| lb <= n < |vs| && RecOK(p, s, vs[n], sg);
  }
  // Recovery of a device that is at rest. d.cur recovers to v.
  method Replay(d: Disk, seal: Seal, mu: Mutex, cache: Cache, at: uint64, nd: uint64, nr: uint64, maxPin: uint64, instAt: uint64, ghost v: St) returns (io: bool, j: Journal?)
    requires at < 0x1_0000_0000 && 2 <= nd < 0x1_0000_0000 && 1000 <= nr < 0x1_0000_0000 && maxPin < 0x1_0000_0000
    requires var p := Geo(at as int, nd as int, nr as int, seal.key); Fit(d, p) && RecOK(p, d.cur, v, seal.signed) && d.ok == OkSet(p, [v], 0, seal.signed)
    requires cache.m == map[]
    modifies d
    ensures j != null ==> j.Inv() && j.d == d && j.seal == seal && j.mu == mu && j.cache == cache && j.vs == [v] && j.lb == 0 && j.lph == 0 && j.g.ip == 0
    ensures j != null ==> j.at == at && j.nd == nd && j.nr == nr
    ensures j != null ==> fresh(j) && fresh(j.running) && fresh(j.lgm) && fresh(j.cgm) && fresh(j.inm) && fresh(j.repr)
    ensures d.Valid() && d.ok == old(d.ok)
  {
    ghost var p := Geo(at as int, nd as int, nr as int, seal.key);
    ghost var c := d.cur;
    j := null;
    var sz := d.Size();
    var hb;
    io, hb := d.Read(at);
    if !io { return; }
    var hok, h := seal.DecHdrM(hb);
    if !hok || h >= 0x1000_0000_0000_0000 { return; }
    ghost var ms :| Log(p, c, DecHdr(p.key, c[p.at]), ms, seal.signed) && v == Over(HomeOf(p, c), Merge(ms));
    var mm, i;
    io, mm, i := Scan(d, seal, h, at, nd, nr, sz, p, ms, v);
    if !io { return; }
    io := InstallAll(d, mm, p, h as int, ms, v, seal.signed);
    if !io { return; }
    io := WriteHdr(d, seal, at, h + i + 1, p, c, h as int, ms, v);
    if !io { return; }
    j := new Journal(d, seal, mu, cache, sz, at, nd, nr, h + i + 1, maxPin, instAt);
  }
  // Makes an empty log: the home blocks stay what they are. The key must be new.
  method Format(d: Disk, seal: Seal, at: uint64, nd: uint64, nr: uint64) returns (io: bool)
    requires at < 0x1_0000_0000 && 2 <= nd < 0x1_0000_0000 && 1000 <= nr < 0x1_0000_0000
    requires var p := Geo(at as int, nd as int, nr as int, seal.key); d.Valid() && |d.cur| >= Home(p) && seal.signed == {}
    requires forall s: Img :: s in d.ok             // nothing is promised before the end
    modifies d
    ensures d.Valid()
    ensures io ==> forall s :: CrashImg(d.poss, s) ==> RecOK(Geo(at as int, nd as int, nr as int, seal.key), s, HomeOf(Geo(at as int, nd as int, nr as int, seal.key), s), {})
  {
    ghost var p := Geo(at as int, nd as int, nr as int, seal.key);
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
    requires v == HomeOf(p, c2)
    requires forall a :: 0 <= a < Home(p) ==> c[a] == c2[a]
    requires forall a :: 0 <= a < |c| && a != p.at ==> q[a] == iset{c2[a]}
    requires q[p.at] == iset{c[p.at]} + iset{nb} && HdrTail(nb) && DecHdr(p.key, nb) == h + |ms| + 1 < 0x3000_0000_0000_0000
    ensures s in OkSet(p, [v], 0, sg)
  {
    forall a | 0 <= a < |c| && a != p.at ensures s[a] == c2[a] { assert s[a] in q[a]; }
    assert s[p.at] in q[p.at];
    reveal OkSet();
    assert HomeOf(p, s) == v;
    if s[p.at] == nb {
      RecHdr(p, s, h + |ms| + 1, v, sg);
    } else {
      forall a | Home(p) <= a < |c| && a !in Merge(ms) ensures s[a] == c[a] {
        assert s[a] == HomeOf(p, c2)[a] == v[a];
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
