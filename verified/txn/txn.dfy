// A transaction while it runs: reads and writes of objects.
//
// It locks an object before it touches it and keeps all locks to the end (two-phase
// locking). Writes stay in a buffer. A lock is waited for only when it lies above all
// those held; else it is tried, and CONFLICT tells the caller to abort and to run
// again, after locking the object that was in its way (Lock) at the start.
include "system.dfy"
include "buffer.dfy"

module TxnM {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened TxnSpec
  import opened Bits
  import opened ObjectsM
  import opened History
  import opened LockS
  import opened MapsOfBlocks
  import opened BlockHolds
  import opened JournalM
  import opened BufS
  import opened BufferM
  import opened TxnSysM

  // status
  const OK: uint32 := 0
  const CONFLICT: uint32 := 1  // run again
  const IOERR: uint32 := 2     // the device failed (or a crash had torn a block that was free)
  const TOOLARGE: uint32 := 3  // more than a group of the log can take
  const READONLY: uint32 := 4  // the journal has failed before

  class Txn {
    const system: System
    const owner: Owner
    const buffer: Buf
    const writes: BlockMap  // for the commit
    const hold: Hold    // of the blocks that it has read, and of its copies
    const aside: Hold   // of the blocks that it has read ahead, which it does not look at
    var topLock: uint64     // the lock held that no other lies above; 0: none is
    ghost var ownCommit: int // the transaction's own commit, if it is stable, until that is noted; else 0
    ghost var appended: bool  // it has taken its one commit point
    // how many it has taken, ever: one object is used for many transactions, one after the other
    ghost var points: int
    ghost var log: Log     // what it did so far
    ghost var found: Objs  // what it found in objects that it read before it wrote them
    var seen: uint64       // all stable commits whose effects were read are numbered up to here
    // why its work cannot go on: the first status but OK that it was answered. Then it never commits
    var cut: uint32

    constructor (s0: System, o: Owner, b: Buf, x: BlockMap, h: Hold, f: Hold)
      requires h.buffer == b && f.buffer == null && h != f
      requires s0.Inv() && b.objects == map[] && b.keys == [] && x !in s0.journal.repr && o !in s0.locks.wants &&
        forall k :: !s0.locks.Holds(o, k)
      ensures system == s0 && owner == o && buffer == b && writes == x && hold == h && aside == f && Inv() && Idle()
    {
      system := s0; owner := o; buffer := b; writes := x; hold := h; aside := f; topLock := 0; ownCommit := 0;
      appended := false; points := 0; log := []; found := map[]; seen := 0; cut := OK; new;
      assert forall k :: system.locks.Owns(owner, k) ==> system.locks.Holds(owner, k);
      DidNone(system.kinds);
    }

    predicate Inv() reads this, system, system.journal, system.journal.logger, system.journal.installer,
      system.journal.disk, system.journal.seal, system.journal.cache, system.journal.tree.pages, system.journal.running,
      system.journal.logged, system.journal.frozen, system.journal.frozenDirect, system.journal.installing,
      system.journal.loggedDirect, system.journal.installingDirect, system.journal.logger.ring,
      system.journal.logger.direct, system.journal.logger.codes, system.locks, buffer
    { InvAs(false) }
    // waits: for a lock
    predicate InvAs(waits: bool) reads this, system, system.journal, system.journal.logger, system.journal.installer,
      system.journal.disk, system.journal.seal, system.journal.cache, system.journal.tree.pages, system.journal.running,
      system.journal.logged, system.journal.frozen, system.journal.frozenDirect, system.journal.installing,
      system.journal.loggedDirect, system.journal.installingDirect, system.journal.logger.ring,
      system.journal.logger.direct, system.journal.logger.codes, system.locks, buffer {
      hold.buffer == buffer && hold != aside && aside.buffer == null &&
      (owner in system.locks.wants <==> waits) && system.Inv() && writes !in system.journal.repr &&
        seen as int < |system.journal.states| && (topLock == 0 || system.locks.Holds(owner, topLock)) &&
      (forall k {:trigger system.locks.Holds(owner, k)} :: system.locks.Holds(owner, k) ==>
        OkKey(system.kinds, k) && k <= topLock && (k in system.locks.last ==> system.locks.last[k] <= seen)) &&
      (forall k {:trigger k in system.lastStable} :: system.locks.Owns(owner, k) ==> system.Learned(k) ||
        system.lastStable[k] as int <= ownCommit) &&
      buffer.Sorted() && Did(system.kinds, log, found, buffer.objects) &&
        (!appended ==> forall k {:trigger k in found} :: k in found ==> system.locks.Holds(owner, k) &&
        system.Now(k) == found[k]) &&
      (forall k {:trigger k in buffer.objects} :: k in buffer.objects ==>
        OkKey(system.kinds, k) && system.locks.Owns(owner, k) && ObjOk(system.kinds[KeyBlk(k)], buffer.objects[k]))
    }
    predicate Idle() reads this, system, system.locks, buffer {
      buffer.objects == map[] && log == [] && found == map[] && ownCommit == 0 && !appended && cut == OK &&
        (forall k :: !system.locks.Holds(owner, k))
    }
    // The transaction has seen the last stable commit of every object that it holds.
    lemma Known(k: uint64)
      requires Inv() && ownCommit == 0 && system.locks.Holds(owner, k) && k in system.lastStable
      ensures system.lastStable[k] <= seen
    {}
    // the volume as this transaction sees it: what TxnS.VolumeObjects.data stands for
    function View(k: uint64): Object requires |system.journal.states| > 0 reads this, system, system.journal, buffer {
      if k in buffer.objects then buffer.objects[k] else system.Now(k)
    }
    // Progress of the transaction itself: it loses no lock, and what it holds keeps its value.
    twostate predicate Steady() reads this, system, system.journal, system.locks {
      |old(system.journal.states)| > 0 && |system.journal.states| > 0 && system.kinds == old(system.kinds) &&
        old(seen) <= seen && ownCommit == old(ownCommit) && appended == old(appended) && points == old(points) &&
        system.Remembers() && system.NoOthers() &&
      (forall k :: old(system.locks.Holds(owner, k)) ==> system.locks.Holds(owner, k) &&
        system.Now(k) == old(system.Now(k))) &&
      (forall k :: old(system.locks.Owns(owner, k)) ==> system.locks.Owns(owner, k))
    }

    lemma NotZero(k: uint64)
      requires Inv() && OkKey(system.kinds, k)
      ensures k > 0
    { reveal system.journal.Inv(); }
    // it held a lock that k does not lie above
    twostate predicate Below(k: uint64) reads this, system, system.locks {
      exists x {:trigger old(system.locks.Holds(owner, x))} :: k <= x && old(system.locks.Holds(owner, x))
    }
    // It took no other lock than that of object k, and if it could not have that, k does not lie above all it had.
    twostate predicate Took(k: uint64, ok: bool) reads this, system, system.locks {
      (forall x :: system.locks.Holds(owner, x) ==> old(system.locks.Holds(owner, x)) || (ok && x == k)) &&
      (forall x :: system.locks.Owns(owner, x) ==> old(system.locks.Owns(owner, x)) || (ok && x == k)) &&
        (ok || Below(k))
    }

    // Its work was answered with st, and knows it.
    twostate predicate Answered(st: uint32) reads this`cut { cut == if old(cut) == OK then st else old(cut) }
    // its work cannot go on, because of st
    method CutShort(st: uint32)
      modifies this`cut
      ensures Answered(st)
    { if cut == OK { cut := st; } }

    // Locks an object, or says that it would have to wait out of order.
    method Lock(k: uint64, excl: bool) returns (ok: bool)
      requires Inv() && !system.journal.mutex.held && OkKey(system.kinds, k)
      modifies this, system.journal, system.journal.logger, system.journal.installer, system.journal.disk,
        system.journal.seal, system.journal.cache, system.journal.tree.pages, system.journal.repr,
        system.journal.mutex`settled, system.locks, system`lastStable, system`logs
      ensures Inv() && Steady() && system.journal.Mono() && fresh(system.journal.repr - old(system.journal.repr))
      ensures ok ==> system.locks.Holds(owner, k) && (excl ==> system.locks.Owns(owner, k))
      ensures Took(k, ok) && log == old(log) && Answered(if ok then OK else CONFLICT)
    {
      TYield(system, owner);
      ghost var h, w := iset x | system.locks.Holds(owner, x), iset x | system.locks.Owns(owner, x);
      var queued;
      ok, queued := Grab(k, excl);
      if queued {
        TYield(system, owner);
        Granted(k);
        ok := true;
      }
      if !ok { CutShort(CONFLICT); }
      forall x | old(system.locks.Holds(owner, x))
        ensures system.locks.Holds(owner, x) && system.Now(x) == old(system.Now(x))
      { assert x in h; }
      forall x | old(system.locks.Owns(owner, x)) ensures system.locks.Owns(owner, x)
      { assert x in w; }
    }
    // [F] takes the lock, or is refused, or begins to wait: then k lies above all that it holds
    method Grab(k: uint64, excl: bool) returns (ok: bool, queued: bool)
      requires Inv() && system.journal.mutex.settled == owner && OkKey(system.kinds, k)
      modifies this, system.locks, system.journal.mutex`settled
      ensures InvAs(queued) && old(seen) <= seen && ownCommit == old(ownCommit) && appended == old(appended) &&
        points == old(points) && log == old(log) && found == old(found) && cut == old(cut)
      ensures forall x :: old(system.locks.Holds(owner, x)) ==> system.locks.Holds(owner, x)
      ensures forall x :: old(system.locks.Owns(owner, x)) ==> system.locks.Owns(owner, x)
      ensures ok ==> system.locks.Holds(owner, k) && (excl ==> system.locks.Owns(owner, k))
      ensures queued ==> !ok && k > topLock && system.locks.wants[owner].key == k &&
        system.locks.wants[owner].exclusive == excl
      ensures Took(k, ok || queued) && system.Remembers()
      // the guarantee
      ensures forall o: Owner {:trigger system.Kept(o)} :: o != owner && old(allocated(o)) ==> system.Kept(o)
    {
      var wait := k > topLock;
      NotZero(k);
      ghost var h := iset x | system.locks.Holds(owner, x);
      var n;
      ok, queued, n := system.locks.Lock(owner, k, excl, wait);
      if ok {
        if n > seen { seen := n; }
        if wait { topLock := k; }
      }
      forall x | system.locks.Holds(owner, x)
        ensures OkKey(system.kinds, x) && x <= topLock && (x in system.locks.last ==> system.locks.last[x] <= seen)
      { if !(ok && x == k) { assert x in h; } }
      forall o: Owner, x | o in system.locks.wants && system.locks.Holds(o, x) ensures x < system.locks.wants[o].key
      { assert old(system.locks.Holds(o, x)); if o == owner { assert x in h; } }
    }
    // [F] the wait is over
    method Granted(k: uint64)
      requires InvAs(true) && system.journal.mutex.settled == owner && system.locks.wants[owner].key == k &&
        OkKey(system.kinds, k) && topLock < k
      modifies this, system.locks, system.journal.mutex`settled
      ensures Inv() && old(seen) <= seen && ownCommit == old(ownCommit) && appended == old(appended) &&
        points == old(points) && log == old(log) && found == old(found) && cut == old(cut)
      ensures forall x :: old(system.locks.Holds(owner, x)) ==> system.locks.Holds(owner, x)
      ensures forall x :: old(system.locks.Owns(owner, x)) ==> system.locks.Owns(owner, x)
      ensures system.locks.Holds(owner, k) &&
        (old(system.locks.wants[owner].exclusive) ==> system.locks.Owns(owner, k)) &&
        Took(k, true)
      ensures system.Remembers()
      // the guarantee
      ensures forall o: Owner {:trigger system.Kept(o)} :: o != owner && old(allocated(o)) ==> system.Kept(o)
    {
      ghost var h := iset x | system.locks.Holds(owner, x);
      var n := system.locks.Await(owner);
      if n > seen { seen := n; }
      topLock := k;
      forall x | system.locks.Holds(owner, x)
        ensures OkKey(system.kinds, x) && x <= topLock && (x in system.locks.last ==> system.locks.last[x] <= seen)
      { if x != k { assert x in h; } }
      forall o: Owner, x | o in system.locks.wants && system.locks.Holds(o, x) ensures x < system.locks.wants[o].key {
        assert old(system.locks.Holds(o, x));
      }
    }

    // It has read o in object k.
    ghost method Note(k: uint64, o: Object)
      requires Inv() && !appended && system.locks.Holds(owner, k) && o == View(k)
      modifies this`log, this`found
      ensures Inv() && log == old(log) + [OpRead(k, o)]
    {
      DidOne(system.kinds, log, found, buffer.objects, k, o);
      if k !in buffer.objects { found := found[k := o]; }
      log := log + [OpRead(k, o)];
    }

    // a whole block; null unless st is OK
    method ReadBlock(a: uint64, excl: bool) returns (st: uint32, b: Blk?)
      requires Inv() && !appended && !system.journal.mutex.held && a in system.kinds && system.kinds[a] == KBlock
      modifies this, system.journal, system.journal.logger, system.journal.installer, system.journal.disk,
        system.journal.seal, system.journal.cache, system.journal.tree.pages, system.journal.repr, system.journal.mutex,
        system.locks, system`lastStable, system`logs
      ensures Inv() && Steady() && system.journal.Mono() && !system.journal.mutex.held &&
        fresh(system.journal.repr - old(system.journal.repr))
      ensures st == OK ==> b != null && |b.v| == 4096 && system.locks.Holds(owner, Key(a, 0)) &&
        View(Key(a, 0)) == ObjData(b.v)
      ensures st == OK && Key(a, 0) !in buffer.objects ==> Lasts(hold, b)
      ensures st == OK || (st == IOERR && (!system.journal.Sound() || a as int in old(system.journal.torn))) ||
        (st == CONFLICT && Below(Key(a, 0)))
      ensures log == if st == OK then old(log) + [OpRead(Key(a, 0), ObjData(b.v))] else old(log)
      ensures Answered(st)
      decreases *
    {
      var k := Key(a, 0);
      var ok := Lock(k, excl);
      if !ok { return CONFLICT, null; }
      b := One(a, 1);
      if b == null { CutShort(IOERR); return IOERR, null; }
      assert [b][0] == b;
      Note(k, ObjData(b.v));
      return OK, b;
    }

    // the n blocks from a on, which are added to p; at: the one for which that is not so
    method ReadBlocks(a: uint64, n: uint64, p: Pieces) returns (st: uint32, at: uint64, ghost bs: seq<Blk>)
      requires Inv() && !appended && !system.journal.mutex.held && InBlocks(a, n)
      modifies p, this, system.journal, system.journal.logger, system.journal.installer, system.journal.disk,
        system.journal.seal, system.journal.cache, system.journal.tree.pages, system.journal.repr, system.journal.mutex,
        system.locks, system`lastStable, system`logs
      ensures Inv() && Steady() && system.journal.Mono() && !system.journal.mutex.held &&
        fresh(system.journal.repr - old(system.journal.repr))
      ensures st == OK ==> |bs| == n as int && Saw(a, bs) && p.data == old(p.data) + Joined(bs)
      ensures st == OK || (a <= at < a + n &&
        ((st == IOERR && (!system.journal.Sound() || at as int in old(system.journal.torn))) ||
        (st == CONFLICT && Below(Key(at, 0)))))
      ensures log == if st == OK then old(log) + Reads(a, bs) else old(log)
      ensures Answered(st)
      decreases *
    {
      bs := [];
      st, at := LockRun(a, n);
      if st != OK { return; }
      at, bs := Gather(a, n, p);
      if at < a + n { CutShort(IOERR); st := IOERR; return; }
      NoteRun(a, bs);
    }
    // the same of blocks that it holds, up to one that cannot be read
    method Gather(a: uint64, n: uint64, p: Pieces) returns (at: uint64, ghost bs: seq<Blk>)
      requires Inv() && !system.journal.mutex.held && InBlocks(a, n) && HoldsRun(a, n)
      modifies p, system.journal, system.journal.logger, system.journal.installer, system.journal.disk,
        system.journal.seal, system.journal.cache, system.journal.tree.pages, system.journal.repr, system.journal.mutex,
        system.locks, system`lastStable, system`logs
      ensures Inv() && Steady() && system.journal.Mono() && !system.journal.mutex.held &&
        fresh(system.journal.repr - old(system.journal.repr))
      ensures a <= at <= a + n && |bs| == (at - a) as int && Saw(a, bs) && p.data == old(p.data) + Joined(bs)
      ensures at < a + n ==> !system.journal.Sound() || at as int in old(system.journal.torn)
      decreases *
    {
      at, bs := a, [];
      while at < a + n
        invariant a <= at <= a + n && Inv() && Steady() && system.journal.Mono() && !system.journal.mutex.held &&
          fresh(system.journal.repr - old(system.journal.repr))
        invariant |bs| == (at - a) as int && Saw(a, bs) && p.data == old(p.data) + Joined(bs)
        decreases a + n - at
      {
        var m; ghost var more;
        m, more := Next(at, a + n - at, p);
        if m == 0 { return; }
        SawMore(a, bs, more); JoinedAll(bs, more);
        at, bs := at + m, bs + more;
      }
    }
    // At least one of them, and as many as are in memory; 0: the first cannot be read.
    method Next(a: uint64, n: uint64, p: Pieces) returns (m: uint64, ghost bs: seq<Blk>)
      requires Inv() && !system.journal.mutex.held && InBlocks(a, n) && HoldsRun(a, n) && 0 < n
      modifies p, system.journal, system.journal.logger, system.journal.installer, system.journal.disk,
        system.journal.seal, system.journal.cache, system.journal.tree.pages, system.journal.repr, system.journal.mutex,
        system.locks, system`lastStable, system`logs
      ensures Inv() && Steady() && system.journal.Mono() && !system.journal.mutex.held &&
        fresh(system.journal.repr - old(system.journal.repr))
      ensures m <= n && |bs| == m as int && Saw(a, bs) && p.data == old(p.data) + Joined(bs)
      ensures m == 0 ==> !system.journal.Sound() || a as int in old(system.journal.torn)
      decreases *
    {
      var wrote := buffer.Len();
      if wrote == 0 {
        m, bs := InMemory(a, n, p);
        if 0 < m { return; }
      }
      m, bs := 0, [];
      var b := One(a, if wrote == 0 then n else 1);
      if b == null { return; }
      m, bs := 1, [b];
      assert bs[0] == b;
      p.Add(b, 0, 4096);
      JoinedMore([], b);
      assert [] + [b] == bs;
    }
    // block a, which it holds; null: the device failed. The n-1 blocks behind it are read with it, if it has to be
    // read.
    method One(a: uint64, n: uint64) returns (b: Blk?)
      requires Inv() && !system.journal.mutex.held && InBlocks(a, 1) && HoldsRun(a, 1) && 0 < n
      modifies system.journal, system.journal.logger, system.journal.installer, system.journal.disk,
        system.journal.seal, system.journal.cache, system.journal.tree.pages, system.journal.repr, system.journal.mutex,
        system.locks, system`lastStable, system`logs
      ensures Inv() && Steady() && system.journal.Mono() && !system.journal.mutex.held &&
        fresh(system.journal.repr - old(system.journal.repr))
      ensures b != null ==> Saw(a, [b])
      ensures b == null ==> !system.journal.Sound() || a as int in old(system.journal.torn)
      decreases *
    {
      assert a in system.kinds && system.locks.Holds(owner, Key(a, 0));
      b := BufferedBlk(buffer, Key(a, 0));
      if b != null { return; }
      b := Latest(system, owner, hold, a, n);
      assert system.NoOthers();
    }
    // As many of these blocks as are in memory, up to the first that is not, if it has written nothing.
    method InMemory(a: uint64, n: uint64, p: Pieces) returns (m: uint64, ghost bs: seq<Blk>)
      requires Inv() && !system.journal.mutex.held && InBlocks(a, n) && HoldsRun(a, n) && 0 < n &&
        buffer.objects == map[]
      modifies p, system.journal, system.journal.logger, system.journal.installer, system.journal.disk,
        system.journal.seal, system.journal.cache, system.journal.tree.pages, system.journal.repr, system.journal.mutex,
        system.locks, system`lastStable, system`logs
      ensures Inv() && Steady() && system.journal.Mono() && !system.journal.mutex.held &&
        fresh(system.journal.repr - old(system.journal.repr))
      ensures m <= n && |bs| == m as int && Saw(a, bs) && p.data == old(p.data) + Joined(bs)
    {
      assert a in system.kinds && a + n - 1 in system.kinds;
      m, bs := PeekRun(system, owner, hold, a, n, p);
      forall i | 0 <= i < |bs| ensures Sees(Key(a + i as uint64, 0), bs[i])
      { assert a + i as uint64 in system.kinds; }
    }
    lemma SawMore(a: uint64, bs: seq<Blk>, cs: seq<Blk>)
      requires Saw(a, bs) && a as int + |bs| + |cs| <= 0x1_0000_0000_0000 && Saw(a + |bs| as uint64, cs)
      ensures Saw(a, bs + cs)
    {
      forall i | 0 <= i < |bs + cs| ensures Sees(Key(a + i as uint64, 0), (bs + cs)[i]) {
        if i >= |bs| { assert cs[i - |bs|] == (bs + cs)[i]; }
      }
    }
    predicate HoldsRun(a: uint64, n: uint64) requires a as int + n as int <= 0x1_0000_0000_0000
      reads this, system, system.locks {
      forall b: uint64 {:trigger Key(b, 0)} :: a <= b < a + n ==> system.locks.Holds(owner, Key(b, 0))
    }
    // the n blocks from a on are blocks
    predicate InBlocks(a: uint64, n: uint64) reads system {
      a as int + n as int <= 0x1_0000_0000_0000 && forall b: uint64 {:trigger b in system.kinds} :: a <= b < a + n ==>
        b in system.kinds && system.kinds[b] == KBlock
    }
    // it holds the blocks from a on, sees bs there, and may do so until its end
    predicate Saw(a: uint64, bs: seq<Blk>) reads this, system, system.journal, system.locks, buffer, hold {
      a as int + |bs| <= 0x1_0000_0000_0000 && |system.journal.states| > 0 &&
        forall i {:trigger bs[i]} :: 0 <= i < |bs| ==> Sees(Key(a + i as uint64, 0), bs[i])
    }
    predicate Sees(k: uint64, b: Blk) requires |system.journal.states| > 0
      reads this, system, system.journal, system.locks, buffer, hold {
      |b.v| == 4096 && system.locks.Holds(owner, k) && View(k) == ObjData(b.v) &&
        (k in buffer.objects || Lasts(hold, b))
    }
    // locks them, up to the one at at
    method LockRun(a: uint64, n: uint64) returns (st: uint32, at: uint64)
      requires Inv() && !system.journal.mutex.held && InBlocks(a, n)
      modifies this, system.journal, system.journal.logger, system.journal.installer, system.journal.disk,
        system.journal.seal, system.journal.cache, system.journal.tree.pages, system.journal.repr,
        system.journal.mutex`settled, system.locks, system`lastStable, system`logs
      ensures Inv() && Steady() && system.journal.Mono() && fresh(system.journal.repr - old(system.journal.repr))
      ensures st == OK ==> HoldsRun(a, n)
      ensures st == OK || (st == CONFLICT && a <= at < a + n && Below(Key(at, 0)))
      ensures log == old(log) && Answered(st)
    {
      st, at := OK, a;
      while at < a + n
        invariant a <= at <= a + n && Inv() && Steady() && system.journal.Mono() &&
          fresh(system.journal.repr - old(system.journal.repr)) && log == old(log) && cut == old(cut)
        invariant HoldsRun(a, at - a)
        invariant forall k {:trigger system.locks.Holds(owner, k)} :: system.locks.Holds(owner, k) ==>
          old(system.locks.Holds(owner, k)) || KeyBlk(k) < at
      {
        assert at in system.kinds;
        var ok := Lock(Key(at, 0), false);
        if !ok { st := CONFLICT; return; }
        at := at + 1;
      }
    }
    // It has read bs in the blocks from a on.
    ghost method NoteRun(a: uint64, bs: seq<Blk>)
      requires Inv() && !appended && Saw(a, bs)
      modifies this`log, this`found
      ensures Inv() && log == old(log) + Reads(a, bs)
    {
      var i := 0;
      while i < |bs|
        invariant i <= |bs| && Inv() && Saw(a, bs) && log == old(log) + Reads(a, bs[..i])
      {
        assert bs[..i + 1][..i] == bs[..i];
        Note(Key(a + i as uint64, 0), ObjData(bs[i].v));
        i := i + 1;
      }
      assert bs[..|bs|] == bs;
    }

    // A wish: the n blocks from a on are about to be read.
    method Ahead(a: uint64, n: uint64)
      requires Inv() && !system.journal.mutex.held
      modifies this, system.journal, system.journal.logger, system.journal.installer, system.journal.disk,
        system.journal.seal, system.journal.cache, system.journal.tree.pages, system.journal.repr, system.journal.mutex,
        system.locks, system`lastStable, system`logs, aside
      ensures Inv() && Steady() && system.journal.Mono() && !system.journal.mutex.held &&
        fresh(system.journal.repr - old(system.journal.repr))
      ensures log == old(log) && cut == old(cut)
    {
      TxnSysM.Ahead(system, owner, aside, a, n);
      aside.End();        // they are in the cache
    }

    // an object of 256 bytes; null unless st is OK
    method ReadInode(a: uint64, off: uint64, excl: bool) returns (st: uint32, b: Bytes?)
      requires Inv() && !appended && !system.journal.mutex.held && a in system.kinds && system.kinds[a] == KInode &&
        OffOk(KInode, off)
      modifies this, system.journal, system.journal.logger, system.journal.installer, system.journal.disk,
        system.journal.seal, system.journal.cache, system.journal.tree.pages, system.journal.repr, system.journal.mutex,
        system.locks, system`lastStable, system`logs
      ensures Inv() && Steady() && system.journal.Mono() && !system.journal.mutex.held &&
        fresh(system.journal.repr - old(system.journal.repr))
      ensures st == OK ==> b != null && fresh(b) && |b.data| == 256 && system.locks.Holds(owner, Key(a, off)) &&
        View(Key(a, off)) == ObjData(b.data)
      ensures st == OK || (st == IOERR && (!system.journal.Sound() || a as int in old(system.journal.torn))) ||
        (st == CONFLICT && Below(Key(a, off)))
      ensures log == if st == OK then old(log) + [OpRead(Key(a, off), ObjData(b.data))] else old(log)
      ensures Answered(st)
      decreases *
    {
      var k := Key(a, off);
      var ok := Lock(k, excl);
      if !ok { return CONFLICT, null; }
      var c := hold.Small();
      var found := BufferedBytes(buffer, k, c);
      if found { Note(k, ObjData(c.data)); return OK, c; }
      var v := Latest(system, owner, hold, a, 1);
      if v == null { CutShort(IOERR); return IOERR, null; }
      ghost var o := ObjData(v.v[off as int / 8 .. off as int / 8 + 256]);
      assert View(k) == o;
      Note(k, o);
      c.CopyBlk(0, v, off / 8, 256);
      assert c.data == o.bytes;
      return OK, c;
    }

    method ReadBit(a: uint64, off: uint64, excl: bool) returns (st: uint32, b: bool)
      requires Inv() && !appended && !system.journal.mutex.held && a in system.kinds && system.kinds[a] == KBit &&
        OffOk(KBit, off)
      modifies this, system.journal, system.journal.logger, system.journal.installer, system.journal.disk,
        system.journal.seal, system.journal.cache, system.journal.tree.pages, system.journal.repr, system.journal.mutex,
        system.locks, system`lastStable, system`logs
      ensures Inv() && Steady() && system.journal.Mono() && !system.journal.mutex.held &&
        fresh(system.journal.repr - old(system.journal.repr))
      ensures st == OK ==> system.locks.Holds(owner, Key(a, off)) && View(Key(a, off)) == ObjBit(b)
      ensures st == OK || (st == IOERR && (!system.journal.Sound() || a as int in old(system.journal.torn))) ||
        (st == CONFLICT && Below(Key(a, off)))
      ensures log == if st == OK then old(log) + [OpRead(Key(a, off), ObjBit(b))] else old(log)
      ensures Answered(st)
      decreases *
    {
      var k := Key(a, off);
      var ok := Lock(k, excl);
      if !ok { return CONFLICT, false; }
      var found;
      found, b := BufferedBit(buffer, k);
      if found { Note(k, ObjBit(b)); return OK, b; }
      var v := Latest(system, owner, hold, a, 1);
      if v == null { CutShort(IOERR); return IOERR, false; }
      var c := v.Get(off / 8);
      Note(k, ObjBit(BitOf(c, off % 8)));
      return OK, BitOf(c, off % 8);
    }

    // takes b over unless it fails
    method WriteBlock(a: uint64, b: Bytes) returns (st: uint32)
      requires Inv() && !appended && !system.journal.mutex.held && a in system.kinds && system.kinds[a] == KBlock &&
        |b.data| == 4096
      modifies this, system.journal, system.journal.logger, system.journal.installer, system.journal.disk,
        system.journal.seal, system.journal.cache, system.journal.tree.pages, system.journal.repr,
        system.journal.mutex`settled, system.locks, system`lastStable, system`logs, buffer, b
      ensures Inv() && Steady() && system.journal.Mono() && fresh(system.journal.repr - old(system.journal.repr))
      ensures st == OK ==> buffer.objects == old(buffer.objects)[Key(a, 0) := ObjData(old(b.data))] && b.data == []
      ensures st != OK ==> buffer.objects == old(buffer.objects)
      ensures st == OK || (st == CONFLICT && Below(Key(a, 0)))
      ensures log == if st == OK then old(log) + [OpWrite(Key(a, 0), ObjData(old(b.data)))] else old(log)
      ensures Answered(st)
    {
      var k := Key(a, 0);
      var ok := Lock(k, true);
      if !ok { return CONFLICT; }
      var v := Freeze(b);
      DidWrite(system.kinds, log, found, buffer.objects, k, ObjData(v.v));
      BufferBlk(buffer, k, v);
      log := log + [OpWrite(k, ObjData(v.v))];
      return OK;
    }
    method WriteInode(a: uint64, off: uint64, b: Bytes) returns (st: uint32)
      requires Inv() && !appended && !system.journal.mutex.held && a in system.kinds && system.kinds[a] == KInode &&
        OffOk(KInode, off) && |b.data| == 256
      modifies this, system.journal, system.journal.logger, system.journal.installer, system.journal.disk,
        system.journal.seal, system.journal.cache, system.journal.tree.pages, system.journal.repr,
        system.journal.mutex`settled, system.locks, system`lastStable, system`logs, buffer
      ensures Inv() && Steady() && system.journal.Mono() && fresh(system.journal.repr - old(system.journal.repr))
      ensures st == OK ==> buffer.objects == old(buffer.objects)[Key(a, off) := ObjData(b.data)]
      ensures st != OK ==> buffer.objects == old(buffer.objects)
      ensures st == OK || (st == CONFLICT && Below(Key(a, off)))
      ensures log == if st == OK then old(log) + [OpWrite(Key(a, off), ObjData(b.data))] else old(log)
      ensures Answered(st)
    {
      var k := Key(a, off);
      var ok := Lock(k, true);
      if !ok { return CONFLICT; }
      DidWrite(system.kinds, log, found, buffer.objects, k, ObjData(b.data));
      BufferBytes(buffer, k, b);
      log := log + [OpWrite(k, ObjData(b.data))];
      return OK;
    }
    method WriteBit(a: uint64, off: uint64, b: bool) returns (st: uint32)
      requires Inv() && !appended && !system.journal.mutex.held && a in system.kinds && system.kinds[a] == KBit &&
        OffOk(KBit, off)
      modifies this, system.journal, system.journal.logger, system.journal.installer, system.journal.disk,
        system.journal.seal, system.journal.cache, system.journal.tree.pages, system.journal.repr,
        system.journal.mutex`settled, system.locks, system`lastStable, system`logs, buffer
      ensures Inv() && Steady() && system.journal.Mono() && fresh(system.journal.repr - old(system.journal.repr))
      ensures st == OK ==> buffer.objects == old(buffer.objects)[Key(a, off) := ObjBit(b)]
      ensures st != OK ==> buffer.objects == old(buffer.objects)
      ensures st == OK || (st == CONFLICT && Below(Key(a, off)))
      ensures log == if st == OK then old(log) + [OpWrite(Key(a, off), ObjBit(b))] else old(log)
      ensures Answered(st)
    {
      var k := Key(a, off);
      var ok := Lock(k, true);
      if !ok { return CONFLICT; }
      DidWrite(system.kinds, log, found, buffer.objects, k, ObjBit(b));
      BufferBit(buffer, k, b);
      log := log + [OpWrite(k, ObjBit(b))];
      return OK;
    }
  }
}
