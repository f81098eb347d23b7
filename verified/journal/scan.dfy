// Recovery reads: the groups that the log holds from a header's number on, each checked by its seal,
// merged into one map; and whether what ends them is the end of the log or damage.
//
// The device may return anything for the log, too (ReadAny). Seals decide what is a group, and numbers which
// one it is, as no number is used twice. What no seal can tell is where the log ends: a device that shows nothing
// of its last groups shows what it would if they had never got there. So of what is read the device is believed in one
// thing (ReadRun): what it holds of the last Window groups found, and in the place behind them. For where the log ends
// there may be groups that no barrier has covered, as many as Window, of which a crash leaves any: those behind the
// first that is gone are sealed, but none of the log. If the device does not lie there, the log that was found is the
// whole log, or it is said to be damaged, and nothing has been written.
include "state.dfy"
include "images.dfy"

module LogScan {
  import opened Machine
  import opened ByteSlice
  import opened DiskS
  import opened CodeTreeSpec
  import opened RecordSpec
  import opened MapsOfBlocks
  import opened CodeLists
  import opened Seals
  import opened Ring
  import opened LogModel
  import opened LogSteps
  import opened Groups
  import opened JournalM
  import opened RecoverImages
  import opened TreeModel
  import opened TreeOfCodes
  import opened TreeSaid


  predicate Still(d: Disk) reads d {
    d.Valid() && forall a :: 0 <= a < |d.cur| ==> d.poss[a] == iset{d.cur[a]}
  }
  // nobody but recovery writes
  predicate Alone(d: Disk) reads d { forall a :: 0 <= a < |d.cur| ==> Owns(d.owner, Recovering, a) }
  predicate Fit(d: Disk, p: Geo) reads d { GeoOk(p) && Still(d) && |d.cur| >= Home(p) }
  function GeoOf(key: int, ep: int, at: uint64, nd: uint64, nr: uint64, bit: uint64, flo: uint64, fhi: uint64,
    tree: TreeGeo, torn: set<int>): Geo {
    Geo(at as int, nd as int, nr as int, key, ep, bit as int, flo as int, fhi as int, tree, torn)
  }
  predicate IsGeo(p: Geo, seal: Seal, at: uint64, nd: uint64, nr: uint64) {
    GeoOk(p) && p.headerAt == at as int && p.units == nd as int && p.ringSize == nr as int && p.key == seal.key &&
      p.tree == seal.t
  }
  // n blocks from a on: what the device holds, if it is believed or honest
  method ReadLog(d: Disk, believe: bool, a: uint64, n: uint64) returns (io: bool, l: BList, ghost honest: bool)
    requires Still(d) && a as int + n as int <= |d.cur|
    ensures (believe ==> honest) &&
      (io ==> KeepsAll(l, l) && |l.blks| == n as int && forall i :: 0 <= i < n as int ==> |l.blks[i]| == 4096 &&
      (honest ==> l.blks[i] == d.cur[a as int + i]))
    ensures (io && honest) || Erred(d)
  {
    honest := true;
    if believe { io, l := d.ReadRun(a, n); } else { io, l, honest := d.ReadAny(a, n); }
  }
  // the n data blocks of group e, in at most two runs
  method ReadGroup(d: Disk, believe: bool, at: uint64, nd: uint64, nr: uint64, q: uint64, pos: uint64, n: uint64,
    ghost p: Geo, ghost e: Desc) returns (io: bool, x: BList, y: BList, ghost honest: bool)
    requires Fit(d, p) && p.headerAt == at as int && p.units == nd as int && p.ringSize == nr as int && n <= 500 &&
      pos < 0x2000_0000_0000_0000
    requires e.sq == q as int && e.pos == pos as int && |e.addrs| == n as int
    ensures (believe ==> honest) && (io && honest ==> x.blks + y.blks == ReadBlks(p, d.cur, e, n as int))
    ensures (io && honest) || Erred(d)
    ensures io ==> KeepsAll(x, x) && KeepsAll(y, y)
    ensures io ==> |x.blks + y.blks| == n as int && forall i :: 0 <= i < n as int ==> |(x.blks + y.blks)[i]| == 4096
  {
    var s := SlotOf(q, nd);
    var a := at + 2 + 16 * s;
    var k := n;
    if n > 15 {
      s := SlotOf(pos, nr);
      a := at + 1 + 16 * nd + s;
      if k > nr - s { k := nr - s; }
    }
    io, x, honest := ReadLog(d, believe, a, k);
    y := x;
    if !io { return; }
    ghost var h;
    io, y, h := ReadLog(d, believe, at + 1 + 16 * nd, n - k);
    honest := honest && h;
    if !io { return; }
    ghost var z := x.blks + y.blks;
    ghost var rb := ReadBlks(p, d.cur, e, n as int);
    assert |z| == n as int;
    forall i | 0 <= i < n as int ensures |z[i]| == 4096 {
      if i < k as int { assert z[i] == x.blks[i]; } else { assert z[i] == y.blks[i - k as int]; }
    }
    if honest {
      forall i | 0 <= i < n as int ensures z[i] == rb[i] {
        if n > 15 { SlotRun(pos as int, i, p.ringSize); }
        if i < k as int { assert z[i] == x.blks[i] == d.cur[a as int + i]; assert DataBlock(p, e, i) == a as int + i; }
        else { assert z[i] == y.blks[i - k as int] == d.cur[at as int + 1 + 16 * nd as int + (i - k as int)]; }
      }
      assert z == rb;
    }
  }
  // the m direct blocks at their homes, null if one is listed twice
  method ReadDirect(d: Disk, believe: bool, r: Descriptor, m: uint64, ghost p: Geo) returns (io: bool, z: BList?,
    ghost honest: bool)
    requires Fit(d, p) && m as int == |r.d.dirs| <= 500 && forall i :: 0 <= i < |r.d.dirs| ==>
      0 <= r.d.dirs[i] < |d.cur|
    ensures (believe ==> honest) && ((io && honest) || Erred(d))
    ensures io && z != null ==> |z.blks| == |r.d.dirs| && (honest ==> z.blks == HomeBlks(d.cur, r.d.dirs)) &&
      forall i, j :: 0 <= i < j < |r.d.dirs| ==> r.d.dirs[i] != r.d.dirs[j]
    ensures io && z == null ==> exists i, j :: 0 <= i < j < |r.d.dirs| && r.d.dirs[i] == r.d.dirs[j]
  {
    z := null; io := true; honest := true;
    var hm := NewBlockMap();
    var i: uint64 := 0;
    while i < m
      invariant i <= m && io && z == null && fresh(hm) && hm.Ok() && hm.addrs == r.d.dirs[..i as int] &&
        (believe ==> honest) && (honest || Erred(d))
      invariant forall a :: a in hm.m ==> 0 <= a < |d.cur| && (honest ==> hm.m[a] == d.cur[a])
    {
      var a, n := DirRun(r, i, m);
      assert r.d.dirs[i as int + (n as int - 1)] == a as int + (n as int - 1);
      var l; ghost var h;
      io, l, h := ReadLog(d, believe, a, n);
      honest := honest && h;
      if !io { return; }
      forall x | i as int <= x < i as int + n as int ensures honest ==> l.blks[x - i as int] == d.cur[r.d.dirs[x]] {
        assert r.d.dirs[x] == a as int + (x - i as int);
      }
      var ok := PutRun(hm, r, i, n, l, d.cur, honest);
      if !ok { return; }
      i := i + n;
    }
    assert r.d.dirs[..m as int] == r.d.dirs;
    assert forall x :: 0 <= x < |hm.addrs| ==> hm.addrs[x] in hm.m;
    z := hm.List();
    hm.Distinct();
    assert honest ==> z.blks == HomeBlks(d.cur, r.d.dirs);
  }
  // direct blocks from the i-th on that lie side by side
  method DirRun(r: Descriptor, i: uint64, m: uint64) returns (a: uint64, n: uint64)
    requires i < m && m as int == |r.d.dirs| <= 500 && forall x :: 0 <= x < |r.d.dirs| ==>
      r.d.dirs[x] < 0x8_0000_0000_0000
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
  method PutRun(hm: BlockMap, r: Descriptor, i: uint64, n: uint64, l: BList, ghost c: Img, ghost honest: bool)
    returns (ok: bool)
    requires hm.Ok() && i as int + n as int <= |r.d.dirs| <= 500 && hm.addrs == r.d.dirs[..i as int] &&
      n as int == |l.blks| && KeepsAll(l, l)
    requires forall x :: 0 <= x < |r.d.dirs| ==> 0 <= r.d.dirs[x] < |c|
    requires forall a :: a in hm.m ==> 0 <= a < |c| && (honest ==> hm.m[a] == c[a])
    requires forall x :: 0 <= x < n as int ==> |l.blks[x]| == 4096
    requires honest ==> forall x :: i as int <= x < i as int + n as int ==> l.blks[x - i as int] == c[r.d.dirs[x]]
    modifies hm
    ensures hm.Ok() && forall a :: a in hm.m ==> 0 <= a < |c| && (honest ==> hm.m[a] == c[a])
    ensures ok ==> hm.addrs == r.d.dirs[..i as int + n as int]
    ensures !ok ==> exists x, y :: 0 <= x < y < |r.d.dirs| && r.d.dirs[x] == r.d.dirs[y]
  {
    var k: uint64 := 0;
    while k < n
      invariant k <= n && hm.Ok() && hm.addrs == r.d.dirs[..i as int + k as int]
      invariant forall a :: a in hm.m ==> 0 <= a < |c| && (honest ==> hm.m[a] == c[a])
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
      var b := l.BlkAt(k, l);
      assert b.v == l.blks[e - i as int];
      hm.Put(a, b);
      assert r.d.dirs[..e + 1] == r.d.dirs[..e] + [r.d.dirs[e]];
      k := k + 1;
    }
    return true;
  }
  // a record with number q was sealed
  predicate Numbered(sg: set<Rec>, q: int) { exists r :: r in sg && HasNumber(r, q) }
  predicate HasNumber(r: Rec, q: int) { DecDesc(r.b).SomeDesc? && DecDesc(r.b).d.sq == q }
  // Read the group with sequence number q, null if there is none; cs gets the codes of its direct blocks. If the device
  // holds this group, then what is accepted is that, whatever the device returned.
  method ReadAt(d: Disk, believe: bool, seal: Seal, t: Tree, cs: Codes, hb: Blk, q: uint64, at: uint64, nd: uint64,
    nr: uint64, sz: uint64, ghost p: Geo) returns (io: bool, gm: BlockMap?, ghost honest: bool)
    requires Fit(d, p) && IsGeo(p, seal, at, nd, nr) && sz as int == |d.cur| && HdrWf(p.key, hb.v) &&
      p == Under(p, hb.v)
    requires TreeFor(t, d, seal, p.headerAt, Home(p), |d.cur|)
    modifies cs
    ensures (believe ==> honest) && (io && honest ==> (gm != null) == ValidAt(p, d.cur, q as int, seal.signed))
    ensures (io && honest) || Erred(d)
    ensures io && gm == null ==> cs.s == old(cs.s)
    ensures io && gm != null ==> Numbered(seal.signed, q as int) && gm.Ok() && InHome(Home(p), gm.m, sz as int) &&
      fresh(gm) && |gm.addrs| <= 500
    ensures io && gm != null && ValidAt(p, d.cur, q as int, seal.signed) ==>
      (t.pageCount > 0 ==> MoreCodes(p, d.cur, q as int, old(cs.s), cs.s)) &&
      forall m :: GroupAt(p, d.cur, q as int, m, seal.signed) ==> gm.m == m
  {
    gm := null;
    var s := SlotOf(q, nd);
    var l;
    io, l, honest := ReadLog(d, believe, at + 1 + 16 * s, 1);
    if !io { return; }
    var b := l.BlkAt(0, l);
    var r := Parse(b);
    if r == null { return; }
    var q2 := r.Sq(); var pos := r.Pos(); var n := r.N(); var dn := r.M();
    if q2 != q || pos >= 0x2000_0000_0000_0000 || n > 500 || dn > 500 - n { return; }
    var same := seal.Under(r, hb);
    if !same { return; }
    var inside := AddrsIn(r, n, dn, at + 2 + 16 * nd + nr, sz);
    if !inside { return; }
    var x, y; ghost var h;
    io, x, y, h := ReadGroup(d, believe, at, nd, nr, q, pos, n, p, r.d);
    honest := honest && h;
    if !io { return; }
    var z;
    io, z, h := ReadDirect(d, believe, r, dn, p);
    honest := honest && h;
    if !io || z == null { return; }
    assert DescWf(p, r.d, |d.cur|);
    var ok := seal.Check(r, x, y, z, cs);
    if !ok { return; }
    assert HasNumber(Rec(r.b, x.blks + y.blks + z.blks), q as int);
    gm := GroupMap(r, n, x, y);
    if ValidAt(p, d.cur, q as int, seal.signed) {
      TheRecord(p, d.cur, q as int, seal, r, x.blks + y.blks, z.blks);
      if t.pageCount > 0 { AddedCodes(p, d.cur, q as int, old(cs.s), cs.s, r.d.dirs); }
      forall m | GroupAt(p, d.cur, q as int, m, seal.signed) ensures gm.m == m {
        GroupIs(p, d.cur, q as int, m, gm.m, r.d, seal.signed);
      }
    }
  }
  // Of each number one record was sealed: that which the device holds is that which was read.
  lemma TheRecord(p: Geo, c: Img, q: int, seal: Seal, r: Descriptor, xy: seq<BV>, z: seq<BV>)
    requires Fits(p, c) && ValidAt(p, c, q, seal.signed) && Rec(r.b, xy + z) in seal.signed &&
      DecDesc(r.b) == SomeDesc(r.d) && r.d.sq == q && |xy| == |r.d.addrs| && |z| == |r.d.dirs|
    ensures c[DSlot(p, q)] == r.b && xy == ReadBlks(p, c, r.d, |r.d.addrs|) && z == HomeBlks(c, r.d.dirs)
  {
    seal.Once();
    var d := DecDesc(c[DSlot(p, q)]).d;
    assert Rec(c[DSlot(p, q)], RecBlks(p, c, d)) == Rec(r.b, xy + z);
    assert RecBlks(p, c, d) == ReadBlks(p, c, d, |d.addrs|) + HomeBlks(c, d.dirs);
    assert xy == (xy + z)[..|xy|]; assert z == (xy + z)[|xy|..];
  }
  // s2 is s and the codes of the direct blocks of group q, one of each
  predicate MoreCodes(p: Geo, c: Img, q: int, s: seq<Code>, s2: seq<Code>) requires Fits(p, c) {
    (Single(s) && (forall e :: e in s ==> e.x + Home(p) !in DirsOf(p, c, q)) ==> Single(s2)) &&
    (forall e :: e in s ==> e in s2) && (forall e :: e in s2 ==> e in s || CodeOfDir(p, c, q, e)) &&
      forall a :: a in DirsOf(p, c, q) ==> exists e :: e in s2 && e.x == a - Home(p)
  }
  predicate CodeOfDir(p: Geo, c: Img, q: int, e: Code) requires Fits(p, c) {
    var a := e.x + Home(p); a in DirsOf(p, c, q) && Home(p) <= a < |c| && Vouches(p.key, e.x, e.c, c[a])
  }
  lemma AddedCodes(p: Geo, c: Img, q: int, s: seq<Code>, s2: seq<Code>, dirs: seq<int>)
    requires Fits(p, c) && dirs == DirsOf(p, c, q) && |s2| == |s| + |dirs| && s2[..|s|] == s &&
      (forall i :: 0 <= i < |dirs| ==> Home(p) <= dirs[i] < |c|) && forall i, k :: 0 <= i < k < |dirs| ==>
      dirs[i] != dirs[k]
    requires forall i :: 0 <= i < |dirs| ==> var e := s2[|s| + i]; e.x == dirs[i] - Home(p) &&
      Vouches(p.key, e.x, e.c, c[dirs[i]])
    ensures MoreCodes(p, c, q, s, s2)
  {
    if Single(s) && forall e :: e in s ==> e.x + Home(p) !in DirsOf(p, c, q) {
      forall k, l | 0 <= k < l < |s2| ensures s2[k].x != s2[l].x {
        if k < |s| { assert s2[k] == s[k] && s[k] in s; } else {
          assert s2[k].x == dirs[k - |s|] - Home(p) by { assert s2[|s| + (k - |s|)] == s2[k]; }
        }
        if l < |s| { assert s2[l] == s[l]; } else {
          assert s2[l].x == dirs[l - |s|] - Home(p) by { assert s2[|s| + (l - |s|)] == s2[l]; }
        }
      }
    }
    forall e | e in s ensures e in s2 { var k :| 0 <= k < |s| && s[k] == e; assert s2[k] == s[k]; }
    forall e | e in s2 ensures e in s || CodeOfDir(p, c, q, e) {
      var k :| 0 <= k < |s2| && s2[k] == e;
      if k < |s| { assert s2[k] == s[k]; } else { assert s2[|s| + (k - |s|)] == e; }
    }
    forall a | a in dirs ensures exists e :: e in s2 && e.x == a - Home(p) {
      var i :| 0 <= i < |dirs| && dirs[i] == a; assert s2[|s| + i] in s2;
    }
  }
  // s are the codes of the direct blocks of n groups, from number q on, one of each
  predicate DirCodes(p: Geo, c: Img, q: int, n: int, s: seq<Code>) requires Fits(p, c) {
    Single(s) &&
    (forall e :: e in s ==> IsDir(p, c, q, n, e.x + Home(p)) && Home(p) <= e.x + Home(p) < |c| &&
      Vouches(p.key, e.x, e.c, c[e.x + Home(p)])) &&
    forall a :: IsDir(p, c, q, n, a) ==> exists e :: e in s && e.x == a - Home(p)
  }
  lemma DirCodesMore(p: Geo, c: Img, q: int, n: int, s: seq<Code>, s2: seq<Code>)
    requires Fits(p, c) && 0 <= n && DirCodes(p, c, q, n, s) && MoreCodes(p, c, q + n, s, s2) &&
      DirsApart(p, c, q, q + n + 1)
    ensures DirCodes(p, c, q, n + 1, s2)
  {
    forall e | e in s ensures e.x + Home(p) !in DirsOf(p, c, q + n) {
      assert IsDir(p, c, q, n, e.x + Home(p));
      var i :| 0 <= i < n && e.x + Home(p) in DirsOf(p, c, q + i);
      assert q <= q + i < q + n < q + n + 1;
    }
    forall e | e in s2 ensures IsDir(p, c, q, n + 1, e.x + Home(p)) && Home(p) <= e.x + Home(p) < |c| &&
      Vouches(p.key, e.x, e.c, c[e.x + Home(p)]) {
      if e in s { var i :| 0 <= i < n && e.x + Home(p) in DirsOf(p, c, q + i); } else {
        assert CodeOfDir(p, c, q + n, e);
      }
    }
    forall a | IsDir(p, c, q, n + 1, a) ensures exists e :: e in s2 && e.x == a - Home(p) {
      var i :| 0 <= i < n + 1 && a in DirsOf(p, c, q + i);
      if i < n { assert IsDir(p, c, q, n, a); var e :| e in s && e.x == a - Home(p); assert e in s2; }
    }
  }
  // are the addresses of a descriptor between lo and hi?
  method AddrsIn(r: Descriptor, n: uint64, m: uint64, lo: uint64, hi: uint64) returns (ok: bool)
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
  method GroupMap(r: Descriptor, n: uint64, x: BList, y: BList) returns (gm: BlockMap)
    requires n as int == |r.d.addrs| <= 500 && |x.blks + y.blks| == |r.d.addrs| && KeepsAll(x, x) && KeepsAll(y, y)
    requires forall i :: 0 <= i < n as int ==> |(x.blks + y.blks)[i]| == 4096
    requires forall i :: 0 <= i < n as int ==> 0 <= r.d.addrs[i]
    ensures fresh(gm) && gm.Ok() && |gm.addrs| <= n as int
    ensures forall i :: 0 <= i < |r.d.addrs| ==> r.d.addrs[i] in gm.m
    ensures forall a :: a in gm.m ==> a in r.d.addrs
    ensures forall a :: a in gm.m ==> exists i :: 0 <= i < n as int && r.d.addrs[i] == a &&
      gm.m[a] == (x.blks + y.blks)[i]
  {
    gm := NewBlockMap();
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
      if i < k { b := x.BlkAt(i, x); } else { b := y.BlkAt(i - k, y); }
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
  // What was found of the log ms: i groups, merged into mm, with the codes s of their direct blocks. Too many: the
  // device lied in the places behind the log's end, where groups may have been on their way.
  predicate Found(p: Geo, c: Img, q: int, ms: seq<BM>, mm: BM, s: seq<Code>, i: int) requires Fits(p, c) {
    0 <= i <= |ms| + Window && (i <= |ms| ==> mm == Merge(ms[..i]) && (p.tree.np > 0 ==> DirCodes(p, c, q, i, s)))
  }
  // The log is read and all its groups are merged into mm; cs gets the codes of their direct blocks.
  method Scan(d: Disk, seal: Seal, t: Tree, cs: Codes, hb: Blk, h: uint64, at: uint64, nd: uint64, nr: uint64,
    sz: uint64, ghost p: Geo, ghost ms: seq<BM>, ghost w: St, ghost v: St)
    returns (io: bool, damaged: bool, mm: BlockMap, i: uint64, ghost honest: bool)
    requires Fit(d, p) && IsGeo(p, seal, at, nd, nr) && sz as int == |d.cur| &&
      RecBy(p, d.cur, hb.v, ms, w, v, seal.signed) && cs.s == []
    requires h as int == DecHdr(p.key, hb.v).q && h < 0x1000_0000_0000_0000 &&
      TreeFor(t, d, seal, p.headerAt, Home(p), |d.cur|)
    modifies cs
    ensures mm.Ok() && fresh(mm) && InHome(Home(p), mm.m, sz as int) && (damaged ==> !honest) &&
      ((io && honest) || Erred(d))
    ensures io && !damaged ==> mm.m == Merge(ms) && i as int == |ms| && i <= 0x1_0000_0020
    ensures io && !damaged && t.pageCount > 0 ==> DirCodes(p, d.cur, h as int, |ms|, cs.s)
  {
    damaged := false;
    ghost var g;
    io, mm, i, honest := Follow(d, seal, t, cs, hb, h, at, nd, nr, sz, p, ms, w, v);
    if !io { return; }
    io, damaged, g := Beyond(d, seal, h + i, at, nd, p);
    honest := honest && g;
    if i as int < |ms| { assert GroupAt(p, d.cur, h as int + i as int, ms[i as int], seal.signed); }
    if !io || damaged { return; }
    if i as int == |ms| { LastOf(p, d.cur, h as int, ms, seal.signed); }
    io, damaged := Ends(d, seal, t, hb, h, i, at, nd, nr, sz, p);
    assert ms[..|ms|] == ms;
  }
  // the groups from number h on, as long as there is one
  method Follow(d: Disk, seal: Seal, t: Tree, cs: Codes, hb: Blk, h: uint64, at: uint64, nd: uint64, nr: uint64,
    sz: uint64, ghost p: Geo, ghost ms: seq<BM>, ghost w: St, ghost v: St)
    returns (io: bool, mm: BlockMap, i: uint64, ghost honest: bool)
    requires Fit(d, p) && IsGeo(p, seal, at, nd, nr) && sz as int == |d.cur| &&
      RecBy(p, d.cur, hb.v, ms, w, v, seal.signed) && cs.s == []
    requires h as int == DecHdr(p.key, hb.v).q && h < 0x1000_0000_0000_0000 &&
      TreeFor(t, d, seal, p.headerAt, Home(p), |d.cur|)
    modifies cs
    ensures mm.Ok() && fresh(mm) && InHome(Home(p), mm.m, sz as int)
    ensures io ==> Found(p, d.cur, h as int, ms, mm.m, cs.s, i as int) && i <= 0x1_0000_0020 &&
      (honest ==> i as int <= |ms| && !ValidAt(p, d.cur, h as int + i as int, seal.signed))
    ensures (io && honest) || Erred(d)
  {
    LogFits(p, d.cur, h as int, ms, seal.signed);
    mm := NewBlockMap();
    i := 0; io := true; honest := true;
    var done := false;
    while !done
      invariant mm.Ok() && fresh(mm) && InHome(Home(p), mm.m, sz as int) && |mm.addrs| <= 500 * i as int &&
        i <= 0x1_0000_0020 && (honest || Erred(d))
      invariant Found(p, d.cur, h as int, ms, mm.m, cs.s, i as int) && (honest ==> i as int <= |ms|) &&
        (done && io && honest ==> !ValidAt(p, d.cur, h as int + i as int, seal.signed))
      decreases !done, |ms| + Window - i as int
    {
      var gm; ghost var s := cs.s; ghost var g;
      io, gm, g := ReadAt(d, false, seal, t, cs, hb, h + i, at, nd, nr, sz, p);
      honest := honest && g;
      if !io { return; }
      if gm == null { done := true; }
      else {
        Numbers(seal.signed, h as int + i as int, h as int + |ms| + Window);
        if i as int < |ms| { assert GroupAt(p, d.cur, h as int + i as int, ms[i as int], seal.signed); }
        FoundMore(p, d.cur, h as int, ms, mm.m, gm.m, s, cs.s, i as int);
        MergeInto(mm, gm);
        i := i + 1;
      }
    }
  }
  // each group of a log has a unit of its own
  lemma LogFits(p: Geo, c: Img, q: int, ms: seq<BM>, sg: set<Rec>)
    requires Fits(p, c) && Log(p, c, q, ms, sg)
    ensures |ms| <= p.units
  {
    if |ms| > p.units {
      assert GroupAt(p, c, q + 0, ms[0], sg) && GroupAt(p, c, q + p.units, ms[p.units], sg);
      SlotRun(q, p.units, p.units);
    }
  }
  lemma FoundMore(p: Geo, c: Img, q: int, ms: seq<BM>, mm: BM, m: BM, s: seq<Code>, s2: seq<Code>, i: int)
    requires Fits(p, c) && Found(p, c, q, ms, mm, s, i) && i < |ms| + Window && DirsApart(p, c, q, q + |ms|) &&
      (i < |ms| ==> m == ms[i] && (p.tree.np > 0 ==> MoreCodes(p, c, q + i, s, s2)))
    ensures Found(p, c, q, ms, Overlaid(mm, m), s2, i + 1)
  {
    if i < |ms| {
      assert ms[..i + 1][..i] == ms[..i];
      if p.tree.np > 0 {
        assert DirsApart(p, c, q, q + i + 1);
        DirCodesMore(p, c, q, i, s, s2);
      }
    }
  }
  lemma Numbers(sg: set<Rec>, q: int, e: int)
    requires Numbered(sg, q) && forall r :: r in sg ==> Below(r, e)
    ensures q < e
  { var r :| r in sg && HasNumber(r, q); assert Below(r, e); }
  // Does a sealed descriptor, of any epoch, say that group e was durable when it was made? Then that this group cannot
  // be read is damage, not the end of the log. One with a number above e that does not say so may be that of a pending
  // group.
  method Beyond(d: Disk, seal: Seal, e: uint64, at: uint64, nd: uint64, ghost p: Geo) returns (io: bool, found: bool,
    ghost honest: bool)
    requires Fit(d, p) && p.headerAt == at as int && p.units == nd as int
    ensures (found ==> exists r :: r in seal.signed && SaysDurable(r, e as int)) && ((io && honest) || Erred(d))
    ensures io && honest && !found ==> NoneBeyond(p, d.cur, e as int, p.units, seal.signed)
  {
    var s: uint64 := 0;
    io := true; found := false; honest := true;
    while s < nd
      invariant s <= nd && io && !found && (honest || Erred(d))
      invariant honest ==> NoneBeyond(p, d.cur, e as int, s as int, seal.signed)
    {
      var l; ghost var g;
      io, l, g := ReadLog(d, false, at + 1 + 16 * s, 1);
      honest := honest && g;
      if !io { return; }
      var b := l.BlkAt(0, l);
      var r := Parse(b);
      if r != null {
        var u := r.Dur();
        if u > e {
          var ok := seal.Vouch(r);
          if ok {
            found := true;
            ghost var x :| Rec(r.b, x) in seal.signed;
            assert SaysDurable(Rec(r.b, x), e as int);
            return;
          }
        }
      }
      s := s + 1;
    }
  }
  // where the descriptor of unit s lies
  function UnitAt(p: Geo, s: int): (a: int)
    requires GeoOk(p) && 0 <= s < p.units
    ensures p.headerAt < a < Home(p)
  { p.headerAt + 1 + 16 * s }
  // Of the first n units of the log, none has a sealed descriptor that says so.
  predicate NoneBeyond(p: Geo, c: Img, e: int, n: int, sg: set<Rec>)
    requires GeoOk(p) && |c| >= Home(p) && n <= p.units
  {
    forall s {:trigger UnitAt(p, s)} :: 0 <= s < n ==>
      forall l :: Rec(c[UnitAt(p, s)], l) in sg ==> !SaysDurable(Rec(c[UnitAt(p, s)], l), e)
  }
  // r says that group e was durable
  predicate SaysDurable(r: Rec, e: int) { DecDesc(r.b).SomeDesc? && e < DecDesc(r.b).d.dur }
  // The last groups before number e, as many as Window, but from number h on: c holds all of them.
  predicate LastThere(p: Geo, c: Img, h: int, e: int, sg: set<Rec>) requires Fits(p, c) {
    forall q {:trigger ValidAt(p, c, q, sg)} :: h <= q < e && e - Window <= q ==> ValidAt(p, c, q, sg)
  }
  lemma LastOf(p: Geo, c: Img, h: int, ms: seq<BM>, sg: set<Rec>)
    requires Fits(p, c) && Log(p, c, h, ms, sg)
    ensures LastThere(p, c, h, h + |ms|, sg)
  { forall q | h <= q < h + |ms| ensures ValidAt(p, c, q, sg) { assert GroupAt(p, c, h + (q - h), ms[q - h], sg); } }
  // The log seems to end behind i groups. Believing the device: is there no group, and are the last ones there, among
  // which is the true end if the device has shown more than the log has? If not, it lied before.
  method Ends(d: Disk, seal: Seal, t: Tree, hb: Blk, h: uint64, i: uint64, at: uint64, nd: uint64, nr: uint64,
    sz: uint64, ghost p: Geo) returns (io: bool, lied: bool)
    requires Fit(d, p) && IsGeo(p, seal, at, nd, nr) && sz as int == |d.cur| && HdrWf(p.key, hb.v) &&
      p == Under(p, hb.v)
    requires TreeFor(t, d, seal, p.headerAt, Home(p), |d.cur|) && h < 0x1000_0000_0000_0000 && i <= 0x1_0000_0020
    ensures io || Erred(d)
    ensures (lied ==> io) && (io ==> lied == (ValidAt(p, d.cur, h as int + i as int, seal.signed) ||
      !LastThere(p, d.cur, h as int, h as int + i as int, seal.signed)))
  {
    var cs := NewCodes(); var gm; ghost var honest;
    lied := false;
    io, gm, honest := ReadAt(d, true, seal, t, cs, hb, h + i, at, nd, nr, sz, p);
    if !io { return; }
    lied := gm != null;
    var e := h + i;
    while !lied && e > h && h + i - e < WINDOW
      invariant h <= e <= h + i && io && h as int + i as int - e as int <= WINDOW as int
      invariant !lied ==> !ValidAt(p, d.cur, h as int + i as int, seal.signed) &&
        forall q {:trigger ValidAt(p, d.cur, q, seal.signed)} :: e as int <= q < h as int + i as int ==>
        ValidAt(p, d.cur, q, seal.signed)
      invariant lied ==> ValidAt(p, d.cur, h as int + i as int, seal.signed) ||
        !LastThere(p, d.cur, h as int, h as int + i as int, seal.signed)
      decreases !lied, e
    {
      io, gm, honest := ReadAt(d, true, seal, t, cs, hb, e - 1, at, nd, nr, sz, p);
      if !io { return; }
      lied := gm == null;
      e := e - 1;
    }
  }
}
