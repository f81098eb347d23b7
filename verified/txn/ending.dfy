// The end of a transaction.
//
// Commit has one commit point: the Append, under the journal's mutex. There the
// objects written are spliced into the latest contents of their blocks, so
// that neighbours in the same block, owned by others, keep what they have just
// got. Then the locks go, and only then the disk is waited for.
include "txn.dfy"

module TxnEnding {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened TxnSpec
  import opened ObjectsM
  import opened History
  import opened LockS
  import opened RecordSpec
  import opened MapsOfBlocks
  import opened BlockHolds
  import opened WorkS
  import opened LogModel
  import opened JournalM
  import opened JournalReader
  import opened JournalPolicy
  import opened JournalCommit
  import opened JournalThreads
  import opened BufS
  import opened TxnSysM
  import opened TxnM

  // What a commit of o's objects changes, nobody else holds.
  lemma Guarantee(t: Table, kinds: Kinds, st0: Vol, st1: Vol, m: Objs, o: Owner, p: Owner, k: uint64)
    requires t.Valid() && Put(kinds, st0, st1, m, 0x1_0000_0000_0000_0000) && forall x :: x in m ==> t.Owns(o, x)
    requires o != p && t.Holds(p, k)
    ensures Cell(st1, kinds, k) == Cell(st0, kinds, k)
  { assert !t.Owns(o, k); }
  function Lim(keys: seq<uint64>, i: int): int
    requires 0 <= i <= |keys|
  { if i < |keys| then keys[i] as int else 0x1_0000_0000_0000_0000 }
  // between two neighbours of a sorted sequence there is nothing
  lemma NextKey(b: Buf, i: int)
    requires b.Sorted() && 0 <= i < |b.keys|
    ensures b.keys[i] in b.objects && Lim(b.keys, i) < Lim(b.keys, i + 1)
    ensures forall k: uint64 {:trigger k in b.objects} :: k in b.objects ==>
      (k as int < Lim(b.keys, i + 1) <==> k as int < Lim(b.keys, i) || k == b.keys[i])
  {
    forall k: uint64 | k in b.objects
      ensures k as int < Lim(b.keys, i + 1) <==> k as int < Lim(b.keys, i) || k == b.keys[i]
    {
      assert k in b.keys;
      var x :| 0 <= x < |b.keys| && b.keys[x] == k;
      if x < i { assert b.keys[x] < b.keys[i]; }
      if x > i + 1 { assert b.keys[i+1] < b.keys[x]; }
      if x == i + 1 { assert b.keys[i] < b.keys[x]; }
    }
  }
  // one block more: w has block a's objects of m from lo to hi
  predicate BlockPut(kinds: Kinds, a: uint64, v: seq<byte>, w: seq<byte>, m: Objs, lo: int, hi: int)
    requires a in kinds && a < 0x1_0000_0000_0000
  {
    |w| == 4096 &&
    forall off: uint64 {:trigger Val(w, kinds[a], off)} :: OffOk(kinds[a], off) ==>
      Val(w, kinds[a], off) == if Key(a, off) in m && lo <= Key(a, off) as int < hi then m[Key(a, off)]
        else Val(v, kinds[a], off)
  }
  lemma AddBlock(kinds: Kinds, st: Vol, y: BM, a: uint64, w: seq<byte>, m: Objs, lo: int, hi: int)
    requires a in kinds && a < 0x1_0000_0000_0000 && a as int in st && a as int !in y
    requires lo <= hi && Put(kinds, st, Over(st, y), m, lo)
    requires BlockPut(kinds, a, st[a as int], w, m, lo, hi)
    requires forall k: uint64 :: k in m && lo <= k as int < hi ==> KeyBlk(k) == a
    requires forall k: uint64 :: k in m && KeyBlk(k) == a ==> lo <= k as int
    ensures Put(kinds, st, Over(st, y[a as int := w]), m, hi)
  {
    var s0 := Over(st, y);
    var s1 := Over(st, y[a as int := w]);
    forall k: uint64 | OkKey(kinds, k)
      ensures Cell(s1, kinds, k) == if k in m && k as int < hi then m[k] else Cell(st, kinds, k)
    {
      if KeyBlk(k) == a {
        assert k == Key(a, KeyOff(k));
        assert Cell(s1, kinds, k) == Val(w, kinds[a], KeyOff(k));
      } else {
        assert Cell(s1, kinds, k) == Cell(s0, kinds, k);
      }
    }
  }

  // lays the objects from i0 on that lie in block a over w; i = the first one beyond
  method Splice1(t: Txn, i0: uint64, a: uint64, w: Bytes) returns (i: uint64)
    requires t.Inv() && i0 as int < |t.buffer.keys| && KeyBlk(t.buffer.keys[i0 as int]) == a
    requires a in t.system.kinds && t.system.kinds[a] != KBlock && |w.data| == 4096
    modifies w
    ensures i0 < i && i as int <= |t.buffer.keys|
    ensures i as int < |t.buffer.keys| ==> KeyBlk(t.buffer.keys[i as int]) > a
    ensures BlockPut(t.system.kinds, a, old(w.data), w.data, t.buffer.objects, Lim(t.buffer.keys, i0 as int),
      Lim(t.buffer.keys, i as int))
    ensures forall k: uint64 :: k in t.buffer.objects &&
      Lim(t.buffer.keys, i0 as int) <= k as int < Lim(t.buffer.keys, i as int) ==> KeyBlk(k) == a
  {
    ghost var kinds, m, keys := t.system.kinds, t.buffer.objects, t.buffer.keys;
    ghost var lo := Lim(keys, i0 as int);
    var n := t.buffer.Len();
    LenKeys(t.buffer);
    i := i0;
    var go := true;
    while go
      invariant i0 <= i && i as int <= |keys| && (go ==> i as int < |keys| && KeyBlk(keys[i as int]) == a) &&
        (i == i0 ==> go)
      invariant !go && i as int < |keys| ==> KeyBlk(keys[i as int]) > a
      invariant BlockPut(kinds, a, old(w.data), w.data, m, lo, Lim(keys, i as int))
      invariant forall k: uint64 :: k in m && lo <= k as int < Lim(keys, i as int) ==> KeyBlk(k) == a
      decreases |keys| - i as int, go
    {
      var k := t.buffer.KeyAt(i);
      NextKey(t.buffer, i as int);
      assert OkKey(kinds, k);
      var off := KeyOff(k);
      assert k == Key(a, off);
      ghost var w0 := w.data;
      var is, v := t.buffer.BitAt(i);
      if is {
        PutBit(w, off, v);
      } else {
        t.buffer.CopyAt(i, w, off / 8);
        PutBytes(w0, w.data, off, m[k].bytes);
      }
      assert Replaced(w0, w.data, kinds[a], off, m[k]);
      OneMore(kinds, a, old(w.data), w0, w.data, m, keys, i as int, lo, off, t.buffer);
      i := i + 1;
      if i == n { go := false; }
      else {
        var k2 := t.buffer.KeyAt(i);
        assert k < k2;
        go := KeyBlk(k2) == a;
      }
    }
  }
  lemma LenKeys(b: Buf)
    requires b.Sorted()
    ensures |b.keys| == |b.objects|
  {
    var ks := set i | 0 <= i < |b.keys| :: b.keys[i];
    Distinct(b.keys);
    assert ks == b.objects.Keys;
    assert |b.objects.Keys| == |b.objects|;
  }
  lemma Distinct(s: seq<uint64>)
    requires forall i, j :: 0 <= i < j < |s| ==> s[i] < s[j]
    ensures |set i | 0 <= i < |s| :: s[i]| == |s|
  {
    var ks := set i | 0 <= i < |s| :: s[i];
    if s == [] { assert ks == {}; }
    else {
      var s' := s[..|s|-1];
      var ks' := set i | 0 <= i < |s'| :: s'[i];
      Distinct(s');
      assert forall i :: 0 <= i < |s'| ==> s'[i] == s[i];
      assert s[|s|-1] !in ks';
      assert ks == ks' + {s[|s|-1]};
    }
  }
  lemma OneMore(kinds: Kinds, a: uint64, v: seq<byte>, w0: seq<byte>, w1: seq<byte>, m: Objs, keys: seq<uint64>, i: int,
    lo: int, off: uint64, b: Buf)
    requires b.Sorted() && b.objects == m && b.keys == keys && 0 <= i < |keys| && a in kinds &&
      a < 0x1_0000_0000_0000 &&
      OffOk(kinds[a], off)
    requires keys[i] == Key(a, off) && lo <= Lim(keys, i)
    requires BlockPut(kinds, a, v, w0, m, lo, Lim(keys, i))
    requires Replaced(w0, w1, kinds[a], off, m[keys[i]])
    ensures BlockPut(kinds, a, v, w1, m, lo, Lim(keys, i + 1))
  {
    NextKey(b, i);
    forall x: uint64 | OffOk(kinds[a], x)
      ensures Val(w1, kinds[a], x) == if Key(a, x) in m && lo <= Key(a, x) as int < Lim(keys, i + 1) then m[Key(a, x)]
        else Val(v, kinds[a], x)
    {
      if x != off { assert Val(w1, kinds[a], x) == Val(w0, kinds[a], x); }
    }
  }

  // an object of m is in block a
  predicate Needs(m: map<uint64, Object>, a: uint64) { exists k: uint64 :: k in m && KeyBlk(k) == a }
  // a block that m needs could not be read: the device cannot be trusted, or it was torn
  predicate Unread(j: Journal, m: map<uint64, Object>, torn: set<int>) {
    !j.Sound() || exists a: uint64 :: Needs(m, a) && a as int in torn
  }
  // [L] tx becomes the blocks to append. Not ok: block miss is not in memory.
  method Build(t: Txn, tx: BlockMap) returns (ok: bool, miss: uint64)
    requires t.Inv() && t.system.journal.mutex.Inside() && tx !in t.system.journal.repr
    modifies tx
    ensures tx.Ok()
    ensures !ok ==> t.system.journal.home <= miss < t.system.journal.size && Needs(t.buffer.objects, miss)
    ensures ok ==> forall a :: a in tx.m ==> t.system.journal.home as int <= a < t.system.journal.size as int
    ensures ok ==> Put(t.system.kinds, t.system.journal.Cur(), Over(t.system.journal.Cur(), tx.m), t.buffer.objects,
      0x1_0000_0000_0000_0000)
    ensures |tx.addrs| <= |t.buffer.objects|
  {
    ghost var kinds, m, keys, st := t.system.kinds, t.buffer.objects, t.buffer.keys, t.system.journal.Cur();
    tx.Clear();
    var n := t.buffer.Len();
    LenKeys(t.buffer);
    var i: uint64 := 0;
    forall k: uint64 | k in m && k as int < Lim(keys, 0) ensures false {
      assert k in keys;
      var x :| 0 <= x < |keys| && keys[x] == k;
      if x > 0 { assert keys[0] < keys[x]; }
    }
    assert Over(st, tx.m) == st;
    miss := 0;
    while i < n
      invariant i <= n && tx.Ok() && miss == 0 && |tx.addrs| <= i as int
      invariant forall a :: a in tx.m ==> t.system.journal.home as int <= a < t.system.journal.size as int &&
        (i < n ==> a < KeyBlk(keys[i as int]) as int)
      invariant Put(kinds, st, Over(st, tx.m), m, Lim(keys, i as int))
      invariant i < n ==> forall x: uint64 {:trigger x in m} :: x in m && x as int < Lim(keys, i as int) ==>
        KeyBlk(x) < KeyBlk(keys[i as int])
    {
      var k := t.buffer.KeyAt(i);
      NextKey(t.buffer, i as int);
      assert OkKey(kinds, k);
      var a := KeyBlk(k);
      InCur(t.system.journal, a);
      ghost var lo := Lim(keys, i as int);
      ghost var y := tx.m;
      var b := t.buffer.BlkAt(i);
      if b != null {
        assert kinds[a] == KBlock && k == Key(a, 0) && m[k] == ObjData(b.v);
        tx.Put(a, b);
        i := i + 1;
        AddBlock(kinds, st, y, a, b.v, m, lo, Lim(keys, i as int));
        if i < n { assert k < keys[i as int]; assert OkKey(kinds, keys[i as int]); }
      } else {
        var c, _ := Lookup(t.system.journal, a);
        if c == null { assert k in m && KeyBlk(k) == a; return false, a; }
        ghost var k: object := KeeperOf(t.system.journal, c);
        var w := t.hold.Copy(c, k);
        i := Splice1(t, i, a, w);
        ghost var wd := w.data;
        var f := Freeze(w);
        tx.Put(a, f);
        AddBlock(kinds, st, y, a, wd, m, lo, Lim(keys, i as int));
      }
    }
    return true, 0;
  }

  // Gives up all locks of a transaction that has ended; with n > 0, those held exclusively note commit n.
  method Drop(t: Txn, n: uint64)
    requires t.Inv() && t.ownCommit <= n as int < |t.system.journal.states|
    modifies t, t.system.journal, t.system.journal.logger, t.system.journal.installer, t.system.journal.disk,
      t.system.journal.seal, t.system.journal.cache, t.system.journal.tree.pages, t.system.journal.repr,
      t.system.journal.mutex`settled, t.system.locks, t.system`lastStable, t.system`logs, t.buffer, t.writes
    ensures t.Inv() && t.Idle() && t.system.journal.Mono() && fresh(t.system.journal.repr - old(t.system.journal.repr))
    ensures n > 0 ==> forall k :: old(t.system.locks.Owns(t.owner, k)) ==> Noted(t.system.locks, k, n as int)
    ensures NoEffect(t) && t.system.Remembers() && t.system.NoOthers() && t.points == old(t.points)
  {
    TYield(t.system, t.owner);
    ghost var h := iset k | t.system.locks.Holds(t.owner, k);
    LetGo(t, n);
    forall k | old(t.system.locks.Holds(t.owner, k)) ensures t.system.Now(k) == old(t.system.Now(k)) { assert k in h; }
  }
  // every object that the transaction held has the value that it had
  twostate predicate NoEffect(t: Txn) reads t, t.system, t.system.journal, t.system.locks {
    |old(t.system.journal.states)| > 0 && |t.system.journal.states| > 0 &&
      forall k :: old(t.system.locks.Holds(t.owner, k)) ==> t.system.Now(k) == old(t.system.Now(k))
  }
  // whoever locks object k learns of commit n
  predicate Noted(t: Table, k: uint64, n: int) reads t { k in t.last && n <= t.last[k] as int }
  // [F] the step itself
  method LetGo(t: Txn, n: uint64)
    requires t.Inv() && t.system.journal.mutex.settled == t.owner && t.ownCommit <= n as int < |t.system.journal.states|
    modifies t, t.system.locks, t.buffer, t.writes, t.system.journal.mutex`settled
    ensures t.Inv() && t.Idle() && t.points == old(t.points)
    ensures n > 0 ==> forall k :: old(t.system.locks.Owns(t.owner, k)) ==> Noted(t.system.locks, k, n as int)
    ensures t.system.Remembers()
    // the guarantee
    ensures forall o: Owner {:trigger t.system.Kept(o)} :: o != t.owner && old(allocated(o)) ==> t.system.Kept(o)
  {
    t.buffer.Clear();
    t.writes.Clear();
    t.system.locks.Release(t.owner, n);
    forall o: Owner, k | o in t.system.locks.wants && t.system.locks.Holds(o, k) ensures k < t.system.locks.wants[o].key
      {
      assert old(t.system.locks.Holds(o, k));
    }
    t.topLock := 0; t.seen := 0; t.ownCommit := 0; t.appended := false; t.log := []; t.found := map[]; t.cut := OK;
    DidNone(t.system.kinds);
  }
  // no object that the transaction holds was written by a stable commit beyond n
  predicate Covers(t: Txn, n: int) reads t, t.system, t.system.locks {
    forall k :: t.system.locks.Holds(t.owner, k) && k in t.system.lastStable ==> t.system.lastStable[k] as int <= n
  }
  // Ends the transaction without effect. A reply that tells what it has read, if only that
  // something is not there, may be sent when commit `need` is durable.
  method Abort(t: Txn) returns (need: uint64)
    requires t.Inv() && t.ownCommit == 0 && !t.appended
    modifies t, t.system.journal, t.system.journal.logger, t.system.journal.installer, t.system.journal.disk,
      t.system.journal.seal, t.system.journal.cache, t.system.journal.tree.pages, t.system.journal.repr,
      t.system.journal.mutex`settled, t.system.locks, t.system`lastStable, t.system`logs, t.buffer, t.writes
    ensures t.Inv() && t.Idle() && t.system.journal.Mono() && fresh(t.system.journal.repr - old(t.system.journal.repr))
    ensures need == old(t.seen) && need as int < |t.system.journal.states| && old(Covers(t, need as int))
    ensures NoEffect(t) && t.system.Remembers() && t.system.NoOthers() && t.points == old(t.points)
    ensures Finds(old(t.system.kinds), old(t.log), old(t.system.journal.Cur()))
  {
    need := t.seen;
    DidThere(t.system.kinds, t.log, t.found, t.buffer.objects, t.system.journal.Cur());
    forall k | t.system.locks.Holds(t.owner, k) && k in t.system.lastStable ensures t.system.lastStable[k] <= need {
      t.Known(k);
    }
    Drop(t, 0);
  }

  // What the commit with number at did: it replaced exactly the objects written (w), and
  // found every object that the transaction held as the transaction had seen it.
  predicate Committed(kinds: Kinds, vs: seq<Vol>, at: int, w: Objs, held: iset<uint64>, st: Vol) {
    0 < at < |vs| && Put(kinds, vs[at-1], vs[at], w, 0x1_0000_0000_0000_0000) &&
    forall k :: k in held ==> Cell(vs[at-1], kinds, k) == Cell(st, kinds, k)
  }

  function Raised(stab: map<uint64, uint64>, m: Objs, n: uint64): map<uint64, uint64> {
    map k: uint64 | k in stab.Keys + m.Keys :: if k in m then n else stab[k]
  }
  // the transaction's stable commit n is the last one of all that it wrote; or it has none
  predicate Stabled(t: Txn, yes: bool, n: int) reads t, t.system, t.buffer {
    t.ownCommit == (if yes then n else 0) &&
      (yes ==> forall k :: k in t.buffer.objects ==> k in t.system.lastStable && t.system.lastStable[k] as int == n)
  }
  twostate predicate Taken(t: Txn, yes: bool) reads t { t.points == old(t.points) + (if yes then 1 else 0) }
  // a commit is refused only for what it would write, or because there are no more
  predicate Refused(t: Txn, st: uint32) reads t, t.system, t.system.journal, t.buffer {
    st <= AFailed && (st == ATooLarge ==> |t.buffer.objects| > 500) && (st == AFailed ==> Closed(t.system.journal))
  }
  // The commit point, if st = AOk: n is the number of the commit. AFull: try again. If a
  // block is not in memory, st = AFull and get is set, and the block is miss.
  method TryAppend(t: Txn, stable: bool, ghost p: Permit) returns (st: uint32, n: uint64, get: bool, miss: uint64)
    requires t.Inv() && t.ownCommit == 0 && !t.appended && !t.system.journal.mutex.held && p.may && t.cut == OK
    modifies t.system.journal, t.system.journal.logger, t.system.journal.installer, t.system.journal.disk,
      t.system.journal.seal, t.system.journal.cache, t.system.journal.tree.pages, t.system.journal.repr,
      t.system.journal.mutex, t.system.locks, t.system`lastStable, t.system`logs, t`ownCommit, t`appended, t`points,
      t.writes, p
    ensures t.Inv() && t.system.journal.Mono() && !t.system.journal.mutex.held &&
      fresh(t.system.journal.repr - old(t.system.journal.repr))
    ensures get ==> st == AFull && t.system.journal.home <= miss < t.system.journal.size &&
      Needs(t.buffer.objects, miss)
    ensures st != AOk ==> t.system.Kept(t.owner)
    ensures Stabled(t, stable && st == AOk, n as int) && t.appended == (st == AOk) && Taken(t, st == AOk) &&
      p.may == (st != AOk)
    ensures t.system.Remembers() && t.system.NoOthers() && forall k :: old(t.system.locks.Owns(t.owner, k)) ==>
      t.system.locks.Owns(t.owner, k)
    ensures st == AOk ==> |old(t.system.journal.states)| <= n as int < |t.system.journal.states| &&
      Recorded(t.system, n as int, t.log) &&
      Put(t.system.kinds, t.system.journal.states[n-1], t.system.journal.states[n], t.buffer.objects,
        0x1_0000_0000_0000_0000) &&
      forall k :: old(t.system.locks.Holds(t.owner, k)) ==>
        Cell(t.system.journal.states[n-1], t.system.kinds, k) == old(t.system.Now(k))
    ensures Refused(t, st) && (old(t.system.journal.closed) ==> st != AOk)
  {
    var j := t.system.journal;
    j.mutex.Lock(); TYield(t.system, t.owner);
    ghost var v := j.states;
    forall k | old(t.system.locks.Holds(t.owner, k))
      ensures Cell(v[|v|-1], t.system.kinds, k) == old(t.system.Now(k))
    { assert t.system.locks.Holds(t.owner, k); assert t.system.Now(k) == old(t.system.Now(k)); }
    st, n, get, miss := Point(t, stable, p);
    if st == AFull && !get { AwaitRoom(t); }
    j.mutex.Unlock();
  }
  // Waits until there may be room for it in the log. The mutex is held, before and after.
  method AwaitRoom(t: Txn)
    requires t.Inv() && t.system.journal.mutex.Inside()
    modifies t.system.journal, t.system.journal.logger, t.system.journal.installer, t.system.journal.disk,
      t.system.journal.seal, t.system.journal.cache, t.system.journal.tree.pages, t.system.journal.repr,
      t.system.journal.mutex`settled, t.system.journal.mutex`woken, t.system.locks, t.system`lastStable,
      t.system`logs
    ensures t.Inv() && t.system.journal.Mono() && t.system.journal.mutex.Inside() &&
      fresh(t.system.journal.repr - old(t.system.journal.repr)) && t.system.Kept(t.owner)
  {
    AskSpace(t.system.journal);
    t.system.journal.mutex.Wait(CSpace); TYield(t.system, t.owner);
  }
  // [L] the step itself
  method Point(t: Txn, stable: bool, ghost p: Permit) returns (st: uint32, n: uint64, get: bool, miss: uint64)
    requires t.Inv() && t.ownCommit == 0 && !t.appended && t.system.journal.mutex.Inside() && p.may && t.cut == OK
    modifies t.system.journal, t.system.journal.running, t.system.journal.disk, t.system.journal.mutex`woken, t.writes,
      t.system`lastStable, t.system`logs, t`ownCommit, t`appended, t`points, p
    ensures t.Inv() && t.system.journal.Mono() && t.system.journal.KeepsLogger() && t.system.journal.KeepsInstaller() &&
      t.system.journal.repr == old(t.system.journal.repr)
    ensures get ==> st == AFull && t.system.journal.home <= miss < t.system.journal.size &&
      Needs(t.buffer.objects, miss)
    ensures st != AOk ==> t.system.journal.states == old(t.system.journal.states) &&
      t.system.lastStable == old(t.system.lastStable)
    ensures t.system.Remembers() && t.system.NoOthers() && Stabled(t, stable && st == AOk, n as int) &&
      t.appended == (st == AOk) && Taken(t, st == AOk) && p.may == (st != AOk)
    ensures st != AOk ==> t.system.logs == old(t.system.logs)
    ensures st == AOk ==> n as int == |old(t.system.journal.states)| == |t.system.journal.states| - 1 &&
      Recorded(t.system, n as int, t.log) &&
      Put(t.system.kinds, t.system.journal.states[n-1], t.system.journal.states[n], t.buffer.objects,
        0x1_0000_0000_0000_0000)
    ensures Refused(t, st) && (st == AFull && !get ==> Crowded(t.system.journal, t.writes, stable)) &&
      (old(t.system.journal.closed) ==> st != AOk)
    // the guarantee
    ensures forall o: Owner {:trigger t.system.Kept(o)} :: o != t.owner && old(allocated(o)) ==> t.system.Kept(o)
  {
    var j := t.system.journal;
    n := 0;
    var ok;
    ok, miss := Build(t, t.writes);
    get := !ok;
    if !ok { st := AFull; return; }
    ghost var st0 := j.Cur();
    st, n := Append(j, t.writes, stable, p);
    if st == AOk {
      t.appended := true;
      t.points := t.points + 1;
      DidThere(t.system.kinds, t.log, t.found, t.buffer.objects, st0);
      SerialMore(t.system.kinds, t.system.logs, old(j.states), t.log, j.Cur());
      assert j.states == old(j.states) + [j.Cur()];
      t.system.logs := t.system.logs[n as int := t.log];
      if stable { t.system.lastStable := Raised(t.system.lastStable, t.buffer.objects, n); t.ownCommit := n as int; }
      forall o: Owner, k | o != t.owner && t.system.locks.Holds(o, k) ensures t.system.Now(k) == old(t.system.Now(k)) {
        Guarantee(t.system.locks, t.system.kinds, st0, j.Cur(), t.buffer.objects, t.owner, o, k);
      }
    }
  }
  // The same, waiting for room and fetching blocks.
  method AppendAll(t: Txn, ghost held: iset<uint64>, stable: bool, ghost p: Permit) returns (st: uint32, n: uint64)
    requires t.Inv() && t.ownCommit == 0 && !t.appended && !t.system.journal.mutex.held && p.may && t.cut == OK
    requires forall k :: k in held ==> t.system.locks.Holds(t.owner, k)
    modifies t.system.journal, t.system.journal.logger, t.system.journal.installer, t.system.journal.disk,
      t.system.journal.seal, t.system.journal.cache, t.system.journal.tree.pages, t.system.journal.repr,
      t.system.journal.mutex, t.system.locks, t.system`lastStable, t.system`logs, t`ownCommit, t`appended, t`points,
      t.writes, p
    ensures t.Inv() && t.system.journal.Mono() && !t.system.journal.mutex.held &&
      fresh(t.system.journal.repr - old(t.system.journal.repr))
    ensures forall k :: old(t.system.locks.Owns(t.owner, k)) ==> t.system.locks.Owns(t.owner, k)
    ensures st == OK ==> Committed(t.system.kinds, t.system.journal.states, n as int, t.buffer.objects, held,
      old(t.system.journal.Cur()))
    ensures st == OK ==> |old(t.system.journal.states)| <= n as int && Recorded(t.system, n as int, t.log)
    ensures Stabled(t, stable && st == OK, n as int) && t.appended == (st == OK) && Taken(t, st == OK) &&
      p.may == (st != OK)
    ensures st != OK ==> forall k :: k in held ==> t.system.locks.Holds(t.owner, k) &&
      t.system.Now(k) == Cell(old(t.system.journal.Cur()), t.system.kinds, k)
    ensures t.system.Remembers() && t.system.NoOthers()
    ensures st == OK || (st == IOERR && Unread(t.system.journal, t.buffer.objects, old(t.system.journal.torn))) ||
      (st == TOOLARGE && |t.buffer.objects| > 500) || (st == READONLY && Closed(t.system.journal))
    ensures old(t.system.journal.closed) ==> st != OK
    decreases *
  {
    var j := t.system.journal;
    ghost var st0 := j.Cur();
    var get, miss;
    st := AFull; n := 0;
    while st == AFull
      invariant t.Inv() && j.Mono() && !j.mutex.held && fresh(j.repr - old(j.repr))
      invariant forall k :: old(t.system.locks.Owns(t.owner, k)) ==> t.system.locks.Owns(t.owner, k)
      invariant Refused(t, st) && (old(j.closed) ==> st != AOk)
      invariant t.system.Remembers() && t.system.NoOthers() && Stabled(t, stable && st == AOk, n as int) &&
        t.appended == (st == AOk) && Taken(t, st == AOk) && p.may == (st != AOk)
      invariant st != AOk ==> forall k :: k in held ==> t.system.locks.Holds(t.owner, k) &&
        t.system.Now(k) == Cell(st0, t.system.kinds, k)
      invariant st == AOk ==> Committed(t.system.kinds, j.states, n as int, t.buffer.objects, held, st0) &&
        |old(j.states)| <= n as int && Recorded(t.system, n as int, t.log)
      decreases *
    {
      st, n, get, miss := TryAppend(t, stable, p);
      if get {
        var b := Latest(t.system, t.owner, t.hold, miss, 1);
        if b == null { return IOERR, 0; }
      }
    }
    if st == AOk { return OK, n; }
    if st == ATooLarge { return TOOLARGE, 0; }
    return READONLY, 0;
  }

  // commit n is that of a transaction that did l
  predicate Recorded(s: System, n: int, l: Log) reads s { n in s.logs && s.logs[n] == l }
  // Ends the transaction: with st = OK all its writes took effect at one instant, at the
  // commit numbered at; else none did. All its locks go, and if stable, whoever gets one that
  // it held exclusively learns of this commit. No reply may be sent before commit `need` is durable.
  method Finish(t: Txn, stable: bool, ghost p: Permit) returns (st: uint32, need: uint64, ghost at: int)
    requires t.Inv() && t.ownCommit == 0 && !t.appended && !t.system.journal.mutex.held && p.may && t.cut == OK
    modifies t, t.system.journal, t.system.journal.logger, t.system.journal.installer, t.system.journal.disk,
      t.system.journal.seal, t.system.journal.cache, t.system.journal.tree.pages, t.system.journal.repr,
      t.system.journal.mutex, t.system.locks, t.system`lastStable, t.system`logs, t.buffer, t.writes, p
    ensures t.Inv() && t.Idle() && t.system.journal.Mono() && !t.system.journal.mutex.held &&
      fresh(t.system.journal.repr - old(t.system.journal.repr))
    ensures st == OK && old(t.buffer.objects) != map[] ==>
      |old(t.system.journal.states)| <= at &&
      Committed(t.system.kinds, t.system.journal.states, at, old(t.buffer.objects),
        old(iset k | t.system.locks.Holds(t.owner, k)), old(t.system.journal.Cur())) &&
      (stable ==> at <= need as int && forall k :: old(t.system.locks.Owns(t.owner, k)) ==>
        Noted(t.system.locks, k, at))
    ensures st == OK && stable ==> forall k :: k in old(t.buffer.objects) ==> k in t.system.lastStable &&
      at <= t.system.lastStable[k] as int
    ensures st == OK && old(t.buffer.objects) != map[] ==> Recorded(t.system, at, old(t.log))
    ensures Finds(old(t.system.kinds), old(t.log), old(t.system.journal.Cur()))
    ensures old(t.seen) <= need && need as int < |t.system.journal.states| && old(Covers(t, need as int))
    ensures st != OK || old(t.buffer.objects) == map[] ==> NoEffect(t)
    ensures t.system.Remembers() && t.system.NoOthers() && Taken(t, st == OK && old(t.buffer.objects) != map[]) &&
      (p.may <==> st != OK || old(t.buffer.objects) == map[])
    ensures st == OK || (st == IOERR && Unread(t.system.journal, old(t.buffer.objects), old(t.system.journal.torn))) ||
      (st == TOOLARGE && |old(t.buffer.objects)| > 500) || (st == READONLY && Closed(t.system.journal))
    ensures old(t.system.journal.closed) && old(t.buffer.objects) != map[] ==> st != OK
    decreases *
  {
    need := t.seen;
    DidThere(t.system.kinds, t.log, t.found, t.buffer.objects, t.system.journal.Cur());
    forall k | t.system.locks.Holds(t.owner, k) && k in t.system.lastStable ensures t.system.lastStable[k] <= need {
      t.Known(k);
    }
    at := 0;
    var w := t.buffer.Len();
    var n: uint64 := 0;
    ghost var m := t.buffer.objects;
    if w > 0 {
      assert t.buffer.keys[0] in m;
      ghost var held := iset k | t.system.locks.Holds(t.owner, k);
      st, n := AppendAll(t, held, stable, p);
      if st != OK { need := Abort(t); return; }
      at := n as int;
      if !stable { n := 0; }
    } else {
      assert m == map[];
    }
    assert forall k :: old(t.system.locks.Owns(t.owner, k)) ==> t.system.locks.Owns(t.owner, k);
    Drop(t, n);
    if n > need { need := n; }
    st := OK;
  }
  // what is recorded stays true when others commit
  lemma Lasts(kinds: Kinds, logs: Logs, vs: seq<Vol>)
    requires Serial(kinds, logs, vs)
    ensures forall ws {:trigger Serial(kinds, logs, ws)} :: |vs| <= |ws| &&
      (forall i :: 0 <= i < |vs| ==> ws[i] == vs[i]) ==> Serial(kinds, logs, ws)
  {
    forall ws | |vs| <= |ws| && forall i :: 0 <= i < |vs| ==> ws[i] == vs[i] ensures Serial(kinds, logs, ws) {
      SerialLonger(kinds, logs, vs, ws);
    }
  }
}
