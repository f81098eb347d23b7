// What transactions did, as values: the objects that each read and wrote, in order, with what it found and left
// there; and what it is for such logs to be those of one run, each transaction alone, one after the other.
include "objects.dfy"

module History {
  import opened Machine
  import opened ByteSlice
  import opened TxnSpec
  import opened ObjectsM

  // the objects of a volume: each block holds objects of one kind
  type Kinds = map<uint64, Kind>
  type Vol = map<int, seq<byte>>       // a state of the volume
  type Objs = map<uint64, Object>
  predicate OkKey(kinds: Kinds, k: uint64) {
    KeyBlk(k) in kinds && OffOk(kinds[KeyBlk(k)], KeyOff(k))
  }
  // the value of an object in a state of the volume
  function Cell(st: Vol, kinds: Kinds, k: uint64): Object {
    var a := KeyBlk(k);
    if a in kinds && a as int in st then Val(st[a as int], kinds[a], KeyOff(k)) else ObjBit(false)
  }
  // st1 is st0 with the objects of m below lim replaced, and nothing else: not in their
  // blocks, and not in those that hold no objects
  predicate Put(kinds: Kinds, st0: Vol, st1: Vol, m: Objs, lim: int) {
    (forall k: uint64 {:trigger Cell(st1, kinds, k)} :: OkKey(kinds, k) ==>
      Cell(st1, kinds, k) == if k in m && k as int < lim then m[k] else Cell(st0, kinds, k)) &&
    st1.Keys == st0.Keys && forall a :: a in st0 && !(0 <= a < 0x1_0000_0000_0000 && a as uint64 in kinds) ==>
      st1[a] == st0[a]
  }

  datatype Op = OpRead(key: uint64, value: Object) | OpWrite(key: uint64, value: Object)
  type Log = seq<Op>
  // the reads of blocks side by side, from a on, which held bs
  function Reads(a: uint64, bs: seq<Blk>): Log requires a as int + |bs| <= 0x1_0000_0000_0000 {
    if bs == [] then [] else Reads(a, bs[..|bs|-1]) + [OpRead(Key(a + (|bs|-1) as uint64, 0), ObjData(bs[|bs|-1].v))]
  }
  function Joined(bs: seq<Blk>): seq<byte> { if bs == [] then [] else Joined(bs[..|bs|-1]) + bs[|bs|-1].v }
  lemma JoinedMore(bs: seq<Blk>, b: Blk)
    ensures Joined(bs + [b]) == Joined(bs) + b.v
  { assert (bs + [b])[..|bs|] == bs; }
  lemma JoinedAll(bs: seq<Blk>, cs: seq<Blk>)
    ensures Joined(bs + cs) == Joined(bs) + Joined(cs)
  {
    if cs == [] { assert bs + cs == bs; return; }
    JoinedAll(bs, cs[..|cs|-1]);
    assert (bs + cs)[..|bs + cs|-1] == bs + cs[..|cs|-1] && (bs + cs)[|bs + cs|-1] == cs[|cs|-1];
  }
  // what it wrote, and last
  function Writes(l: Log): Objs {
    if l == [] then map[] else var e := l[|l|-1];
    if e.OpWrite? then Writes(l[..|l|-1])[e.key := e.value] else Writes(l[..|l|-1])
  }
  // what object k is after l, run alone on state st: what was written there last, or what it was
  function After(kinds: Kinds, l: Log, st: Vol, k: uint64): Object {
    if k in Writes(l) then Writes(l)[k] else Cell(st, kinds, k)
  }
  // run alone on state st, every read of l finds what it found
  predicate Finds(kinds: Kinds, l: Log, st: Vol) {
    forall i {:trigger l[i]} :: 0 <= i < |l| && l[i].OpRead? ==> OkKey(kinds, l[i].key) &&
      l[i].value == After(kinds, l[..i], st, l[i].key)
  }
  // and it leads from state st0 to state st1
  predicate Leads(kinds: Kinds, l: Log, st0: Vol, st1: Vol) {
    Finds(kinds, l, st0) && Put(kinds, st0, st1, Writes(l), 0x1_0000_0000_0000_0000)
  }
  // What the transactions did that committed, by the numbers of their commits: each led from the state before its
  // commit to the one after it.
  type Logs = map<int, Log>
  predicate {:opaque} Serial(kinds: Kinds, logs: Logs, vs: seq<Vol>) {
    forall n {:trigger logs[n]} {:trigger n in logs} :: n in logs ==> 0 < n < |vs| &&
      Leads(kinds, logs[n], vs[n - 1], vs[n])
  }
  // there is no commit but theirs
  predicate Complete(logs: Logs, vs: seq<Vol>) { forall n :: 0 < n < |vs| ==> n in logs }
  lemma SerialNone(kinds: Kinds, vs: seq<Vol>)
    ensures Serial(kinds, map[], vs)
  { reveal Serial(); }
  lemma SerialMore(kinds: Kinds, logs: Logs, vs: seq<Vol>, l: Log, v: Vol)
    requires Serial(kinds, logs, vs) && |vs| > 0 && Leads(kinds, l, vs[|vs| - 1], v)
    ensures Serial(kinds, logs[|vs| := l], vs + [v]) && |vs| !in logs
  { reveal Serial(); }
  lemma SerialLonger(kinds: Kinds, logs: Logs, vs: seq<Vol>, ws: seq<Vol>)
    requires Serial(kinds, logs, vs) && |vs| <= |ws| && forall i :: 0 <= i < |vs| ==> ws[i] == vs[i]
    ensures Serial(kinds, logs, ws)
  { reveal Serial(); }

  // ---- a transaction while it runs ----
  // It did l: it wrote m, and in those objects that it read before it wrote them it found r.
  predicate {:opaque} Did(kinds: Kinds, l: Log, r: Objs, m: Objs) {
    m == Writes(l) && forall i {:trigger l[i]} :: 0 <= i < |l| && l[i].OpRead? ==> OkKey(kinds, l[i].key) &&
      DidRead(l[..i], r, l[i])
  }
  predicate DidRead(l: Log, r: Objs, e: Op) {
    if e.key in Writes(l) then e.value == Writes(l)[e.key] else e.key in r && e.value == r[e.key]
  }
  lemma DidNone(kinds: Kinds)
    ensures Did(kinds, [], map[], map[])
  { reveal Did(); }
  lemma DidOne(kinds: Kinds, l: Log, r: Objs, m: Objs, k: uint64, o: Object)
    requires Did(kinds, l, r, m) && OkKey(kinds, k) && if k in m then o == m[k] else k in r ==> o == r[k]
    ensures Did(kinds, l + [OpRead(k, o)], if k in m then r else r[k := o], m)
  {
    reveal Did();
    var l2 := l + [OpRead(k, o)];
    assert l2[..|l|] == l;
    forall i | 0 <= i < |l2| && l2[i].OpRead? ensures OkKey(kinds, l2[i].key) &&
      DidRead(l2[..i], if k in m then r else r[k := o], l2[i]) {
      if i < |l| { assert l2[i] == l[i] && l2[..i] == l[..i]; }
    }
  }
  lemma DidWrite(kinds: Kinds, l: Log, r: Objs, m: Objs, k: uint64, o: Object)
    requires Did(kinds, l, r, m)
    ensures Did(kinds, l + [OpWrite(k, o)], r, m[k := o])
  {
    reveal Did();
    var l2 := l + [OpWrite(k, o)];
    assert l2[..|l|] == l;
    forall i | 0 <= i < |l2| && l2[i].OpRead? ensures OkKey(kinds, l2[i].key) && DidRead(l2[..i], r, l2[i]) {
      if i < |l| { assert l2[i] == l[i] && l2[..i] == l[..i]; }
    }
  }
  // if what it found is what state st holds, it could as well have run there alone
  lemma DidThere(kinds: Kinds, l: Log, r: Objs, m: Objs, st: Vol)
    requires Did(kinds, l, r, m) && forall k {:trigger k in r} :: k in r ==> Cell(st, kinds, k) == r[k]
    ensures Finds(kinds, l, st) && m == Writes(l)
  { reveal Did(); }

  // ---- all that was done, as one run ----
  // what the first n commits did, one after the other
  function All(logs: Logs, n: int): Log { if n <= 0 then [] else All(logs, n - 1) + if n in logs then logs[n] else [] }
  lemma WritesCat(x: Log, y: Log, k: uint64)
    ensures k in Writes(x + y) <==> k in Writes(x) || k in Writes(y)
    ensures k in Writes(x + y) ==> Writes(x + y)[k] == if k in Writes(y) then Writes(y)[k] else Writes(x)[k]
  {
    if y == [] { assert x + y == x; }
    else {
      var z := x + y;
      assert z[..|z|-1] == x + y[..|y|-1] && z[|z|-1] == y[|y|-1];
      WritesCat(x, y[..|y|-1], k);
    }
  }
  lemma OneRun(kinds: Kinds, logs: Logs, vs: seq<Vol>, n: int)
    requires Serial(kinds, logs, vs) && Complete(logs, vs) && 0 <= n < |vs|
    ensures Leads(kinds, All(logs, n), vs[0], vs[n])
  {
    if n > 0 {
      OneRun(kinds, logs, vs, n - 1);
      assert Leads(kinds, logs[n], vs[n - 1], vs[n]) by { reveal Serial(); }
      LeadsCat(kinds, All(logs, n - 1), logs[n], vs[0], vs[n - 1], vs[n]);
    }
  }
  lemma FindsCat(kinds: Kinds, x: Log, y: Log, st0: Vol, st1: Vol)
    requires Leads(kinds, x, st0, st1) && Finds(kinds, y, st1)
    ensures Finds(kinds, x + y, st0)
  {
    var z := x + y;
    forall i | 0 <= i < |z| && z[i].OpRead? ensures OkKey(kinds, z[i].key) &&
      z[i].value == After(kinds, z[..i], st0, z[i].key) {
      if i < |x| { assert z[i] == x[i] && z[..i] == x[..i]; }
      else {
        assert z[i] == y[i - |x|] && z[..i] == x + y[..i - |x|];
        WritesCat(x, y[..i - |x|], z[i].key);
        assert Cell(st1, kinds, z[i].key) == After(kinds, x, st0, z[i].key);
      }
    }
  }
  lemma LeadsCat(kinds: Kinds, x: Log, y: Log, st0: Vol, st1: Vol, st2: Vol)
    requires Leads(kinds, x, st0, st1) && Leads(kinds, y, st1, st2)
    ensures Leads(kinds, x + y, st0, st2)
  {
    FindsCat(kinds, x, y, st0, st1);
    forall k: uint64 | OkKey(kinds, k) ensures Cell(st2, kinds, k) == After(kinds, x + y, st0, k) {
      WritesCat(x, y, k);
      assert Cell(st1, kinds, k) == After(kinds, x, st0, k);
    }
  }
}
