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
  import opened LogS
  import opened JournalM
  import opened BufS
  import opened BufferM
  import opened TxnSysM

  // status
  const OK: uint32 := 0
  const CONFLICT: uint32 := 1   // run again
  const IOERR: uint32 := 2      // the device failed (or a crash had torn a block that was free)
  const TOOLARGE: uint32 := 3   // more than a group of the log can take
  const READONLY: uint32 := 4   // the journal has failed before

  class Txn {
    const s: Sys
    const own: Owner
    const buf: Buf
    const tx: BMap      // for the commit
    const hold: Hold    // of the blocks that it has read
    var top: uint64     // the lock held that no other lies above; 0: none is
    ghost var pend: int // the transaction's own commit, if it is stable, until that is noted; else 0
    ghost var appended: bool   // it has taken its one commit point
    ghost var points: int      // how many it has taken, ever: one object is used for many transactions, one after the other
    ghost var log: Log         // what it did so far
    ghost var found: Objs      // what it found in objects that it read before it wrote them
    var seen: uint64    // all stable commits whose effects were read are numbered up to here
    var cut: uint32     // why its work cannot go on: the first status but OK that it was answered. Then it never commits

    constructor (s0: Sys, o: Owner, b: Buf, x: BMap, h: Hold)
      requires s0.Inv() && b.m == map[] && b.keys == [] && x !in s0.j.repr && o !in s0.tbl.wants && forall k :: !s0.tbl.Holds(o, k)
      ensures s == s0 && own == o && buf == b && tx == x && hold == h && Inv() && Idle()
    {
      s := s0; own := o; buf := b; tx := x; hold := h; top := 0; pend := 0; appended := false; points := 0; log := []; found := map[]; seen := 0; cut := OK; new;
      assert forall k :: s.tbl.Owns(own, k) ==> s.tbl.Holds(own, k);
      DidNone(s.kinds);
    }

    predicate Inv() reads this, s, s.j, s.j.lg, s.j.ins, s.j.d, s.j.seal, s.j.cache, s.j.tree.pages, s.j.running, s.j.lgm, s.j.cgm, s.j.cdm, s.j.inm, s.j.lho, s.j.iho, s.j.lg.ring, s.j.lg.dir, s.j.lg.codes, s.tbl, buf
    { InvAs(false) }
    // waits: for a lock
    predicate InvAs(waits: bool) reads this, s, s.j, s.j.lg, s.j.ins, s.j.d, s.j.seal, s.j.cache, s.j.tree.pages, s.j.running, s.j.lgm, s.j.cgm, s.j.cdm, s.j.inm, s.j.lho, s.j.iho, s.j.lg.ring, s.j.lg.dir, s.j.lg.codes, s.tbl, buf {
      (own in s.tbl.wants <==> waits) && s.Inv() && tx !in s.j.repr && seen as int < |s.j.vs| && (top == 0 || s.tbl.Holds(own, top)) &&
      (forall k {:trigger s.tbl.Holds(own, k)} :: s.tbl.Holds(own, k) ==>
        OkKey(s.kinds, k) && k <= top && (k in s.tbl.last ==> s.tbl.last[k] <= seen)) &&
      (forall k {:trigger k in s.stab} :: s.tbl.Owns(own, k) ==> s.Learned(k) || s.stab[k] as int <= pend) &&
      buf.Sorted() && Did(s.kinds, log, found, buf.m) && (!appended ==> forall k {:trigger k in found} :: k in found ==> s.tbl.Holds(own, k) && s.Now(k) == found[k]) &&
      (forall k {:trigger k in buf.m} :: k in buf.m ==>
        OkKey(s.kinds, k) && s.tbl.Owns(own, k) && ObjOk(s.kinds[KeyBlk(k)], buf.m[k]))
    }
    predicate Idle() reads this, s, s.tbl, buf {
      buf.m == map[] && log == [] && found == map[] && pend == 0 && !appended && cut == OK && (forall k :: !s.tbl.Holds(own, k))
    }
    // The transaction has seen the last stable commit of every object that it holds.
    lemma Known(k: uint64)
      requires Inv() && pend == 0 && s.tbl.Holds(own, k) && k in s.stab
      ensures s.stab[k] <= seen
    {}
    // the volume as this transaction sees it: what TxnS.Jrnl.data stands for
    function View(k: uint64): Object requires |s.j.vs| > 0 reads this, s, s.j, buf {
      if k in buf.m then buf.m[k] else s.Now(k)
    }
    // Progress of the transaction itself: it loses no lock, and what it holds keeps its value.
    twostate predicate Steady() reads this, s, s.j, s.tbl {
      |old(s.j.vs)| > 0 && |s.j.vs| > 0 && s.kinds == old(s.kinds) && old(seen) <= seen && pend == old(pend) && appended == old(appended) && points == old(points) && s.Remembers() && s.NoOthers() &&
      (forall k :: old(s.tbl.Holds(own, k)) ==> s.tbl.Holds(own, k) && s.Now(k) == old(s.Now(k))) &&
      (forall k :: old(s.tbl.Owns(own, k)) ==> s.tbl.Owns(own, k))
    }

    lemma NotZero(k: uint64)
      requires Inv() && OkKey(s.kinds, k)
      ensures k > 0
    { reveal s.j.Inv(); }
    // it held a lock that k does not lie above
    twostate predicate Below(k: uint64) reads this, s, s.tbl { exists x {:trigger old(s.tbl.Holds(own, x))} :: k <= x && old(s.tbl.Holds(own, x)) }
    // It took no other lock than that of object k, and if it could not have that, k does not lie above all it had.
    twostate predicate Took(k: uint64, ok: bool) reads this, s, s.tbl {
      (forall x :: s.tbl.Holds(own, x) ==> old(s.tbl.Holds(own, x)) || (ok && x == k)) &&
      (forall x :: s.tbl.Owns(own, x) ==> old(s.tbl.Owns(own, x)) || (ok && x == k)) && (ok || Below(k))
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
      requires Inv() && !s.j.mu.held && OkKey(s.kinds, k)
      modifies this, s.j, s.j.lg, s.j.ins, s.j.d, s.j.seal, s.j.cache, s.j.tree.pages, s.j.repr, s.j.mu`settled, s.tbl, s`stab, s`logs
      ensures Inv() && Steady() && s.j.Mono() && fresh(s.j.repr - old(s.j.repr))
      ensures ok ==> s.tbl.Holds(own, k) && (excl ==> s.tbl.Owns(own, k))
      ensures Took(k, ok) && log == old(log) && Answered(if ok then OK else CONFLICT)
    {
      TYield(s, own);
      ghost var h, w := iset x | s.tbl.Holds(own, x), iset x | s.tbl.Owns(own, x);
      var queued;
      ok, queued := Grab(k, excl);
      if queued {
        TYield(s, own);
        Granted(k);
        ok := true;
      }
      if !ok { CutShort(CONFLICT); }
      forall x | old(s.tbl.Holds(own, x))
        ensures s.tbl.Holds(own, x) && s.Now(x) == old(s.Now(x))
      { assert x in h; }
      forall x | old(s.tbl.Owns(own, x)) ensures s.tbl.Owns(own, x)
      { assert x in w; }
    }
    // [F] takes the lock, or is refused, or begins to wait: then k lies above all that it holds
    method Grab(k: uint64, excl: bool) returns (ok: bool, queued: bool)
      requires Inv() && s.j.mu.settled == own && OkKey(s.kinds, k)
      modifies this, s.tbl, s.j.mu`settled
      ensures InvAs(queued) && old(seen) <= seen && pend == old(pend) && appended == old(appended) && points == old(points) && log == old(log) && found == old(found) && cut == old(cut)
      ensures forall x :: old(s.tbl.Holds(own, x)) ==> s.tbl.Holds(own, x)
      ensures forall x :: old(s.tbl.Owns(own, x)) ==> s.tbl.Owns(own, x)
      ensures ok ==> s.tbl.Holds(own, k) && (excl ==> s.tbl.Owns(own, k))
      ensures queued ==> !ok && k > top && s.tbl.wants[own].k == k && s.tbl.wants[own].excl == excl
      ensures Took(k, ok || queued) && s.Remembers()
      ensures forall o: Owner {:trigger s.Kept(o)} :: o != own && old(allocated(o)) ==> s.Kept(o)       // the guarantee
    {
      var wait := k > top;
      NotZero(k);
      ghost var h := iset x | s.tbl.Holds(own, x);
      var n;
      ok, queued, n := s.tbl.Lock(own, k, excl, wait);
      if ok {
        if n > seen { seen := n; }
        if wait { top := k; }
      }
      forall x | s.tbl.Holds(own, x)
        ensures OkKey(s.kinds, x) && x <= top && (x in s.tbl.last ==> s.tbl.last[x] <= seen)
      { if !(ok && x == k) { assert x in h; } }
      forall o: Owner, x | o in s.tbl.wants && s.tbl.Holds(o, x) ensures x < s.tbl.wants[o].k
      { assert old(s.tbl.Holds(o, x)); if o == own { assert x in h; } }
    }
    // [F] the wait is over
    method Granted(k: uint64)
      requires InvAs(true) && s.j.mu.settled == own && s.tbl.wants[own].k == k && OkKey(s.kinds, k) && top < k
      modifies this, s.tbl, s.j.mu`settled
      ensures Inv() && old(seen) <= seen && pend == old(pend) && appended == old(appended) && points == old(points) && log == old(log) && found == old(found) && cut == old(cut)
      ensures forall x :: old(s.tbl.Holds(own, x)) ==> s.tbl.Holds(own, x)
      ensures forall x :: old(s.tbl.Owns(own, x)) ==> s.tbl.Owns(own, x)
      ensures s.tbl.Holds(own, k) && (old(s.tbl.wants[own].excl) ==> s.tbl.Owns(own, k)) && Took(k, true)
      ensures s.Remembers()
      ensures forall o: Owner {:trigger s.Kept(o)} :: o != own && old(allocated(o)) ==> s.Kept(o)       // the guarantee
    {
      ghost var h := iset x | s.tbl.Holds(own, x);
      var n := s.tbl.Await(own);
      if n > seen { seen := n; }
      top := k;
      forall x | s.tbl.Holds(own, x)
        ensures OkKey(s.kinds, x) && x <= top && (x in s.tbl.last ==> s.tbl.last[x] <= seen)
      { if x != k { assert x in h; } }
      forall o: Owner, x | o in s.tbl.wants && s.tbl.Holds(o, x) ensures x < s.tbl.wants[o].k { assert old(s.tbl.Holds(o, x)); }
    }

    // It has read o in object k.
    ghost method Note(k: uint64, o: Object)
      requires Inv() && !appended && s.tbl.Holds(own, k) && o == View(k)
      modifies this`log, this`found
      ensures Inv() && log == old(log) + [OpRead(k, o)]
    {
      DidOne(s.kinds, log, found, buf.m, k, o);
      if k !in buf.m { found := found[k := o]; }
      log := log + [OpRead(k, o)];
    }

    // a whole block; null unless st is OK
    method ReadBlock(a: uint64, excl: bool) returns (st: uint32, b: Blk?)
      requires Inv() && !appended && !s.j.mu.held && a in s.kinds && s.kinds[a] == KBlock
      modifies this, s.j, s.j.lg, s.j.ins, s.j.d, s.j.seal, s.j.cache, s.j.tree.pages, s.j.repr, s.j.mu, s.tbl, s`stab, s`logs
      ensures Inv() && Steady() && s.j.Mono() && !s.j.mu.held && fresh(s.j.repr - old(s.j.repr))
      ensures st == OK ==> b != null && |b.v| == 4096 && s.tbl.Holds(own, Key(a, 0)) && View(Key(a, 0)) == ObjData(b.v)
      ensures st == OK && Key(a, 0) !in buf.m ==> Lasts(hold, b)
      ensures st == OK || (st == IOERR && (!s.j.Sound() || a as int in old(s.j.torn))) || (st == CONFLICT && Below(Key(a, 0)))
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
      requires Inv() && !appended && !s.j.mu.held && InBlocks(a, n)
      modifies p, this, s.j, s.j.lg, s.j.ins, s.j.d, s.j.seal, s.j.cache, s.j.tree.pages, s.j.repr, s.j.mu, s.tbl, s`stab, s`logs
      ensures Inv() && Steady() && s.j.Mono() && !s.j.mu.held && fresh(s.j.repr - old(s.j.repr))
      ensures st == OK ==> |bs| == n as int && Saw(a, bs) && p.data == old(p.data) + Joined(bs)
      ensures st == OK || (a <= at < a + n && ((st == IOERR && (!s.j.Sound() || at as int in old(s.j.torn))) || (st == CONFLICT && Below(Key(at, 0)))))
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
      requires Inv() && !s.j.mu.held && InBlocks(a, n) && HoldsRun(a, n)
      modifies p, s.j, s.j.lg, s.j.ins, s.j.d, s.j.seal, s.j.cache, s.j.tree.pages, s.j.repr, s.j.mu, s.tbl, s`stab, s`logs
      ensures Inv() && Steady() && s.j.Mono() && !s.j.mu.held && fresh(s.j.repr - old(s.j.repr))
      ensures a <= at <= a + n && |bs| == (at - a) as int && Saw(a, bs) && p.data == old(p.data) + Joined(bs)
      ensures at < a + n ==> !s.j.Sound() || at as int in old(s.j.torn)
      decreases *
    {
      at, bs := a, [];
      while at < a + n
        invariant a <= at <= a + n && Inv() && Steady() && s.j.Mono() && !s.j.mu.held && fresh(s.j.repr - old(s.j.repr))
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
      requires Inv() && !s.j.mu.held && InBlocks(a, n) && HoldsRun(a, n) && 0 < n
      modifies p, s.j, s.j.lg, s.j.ins, s.j.d, s.j.seal, s.j.cache, s.j.tree.pages, s.j.repr, s.j.mu, s.tbl, s`stab, s`logs
      ensures Inv() && Steady() && s.j.Mono() && !s.j.mu.held && fresh(s.j.repr - old(s.j.repr))
      ensures m <= n && |bs| == m as int && Saw(a, bs) && p.data == old(p.data) + Joined(bs)
      ensures m == 0 ==> !s.j.Sound() || a as int in old(s.j.torn)
      decreases *
    {
      var wrote := buf.Len();
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
    // block a, which it holds; null: the device failed. The n-1 blocks behind it are read with it, if it has to be read.
    method One(a: uint64, n: uint64) returns (b: Blk?)
      requires Inv() && !s.j.mu.held && InBlocks(a, 1) && HoldsRun(a, 1) && 0 < n
      modifies s.j, s.j.lg, s.j.ins, s.j.d, s.j.seal, s.j.cache, s.j.tree.pages, s.j.repr, s.j.mu, s.tbl, s`stab, s`logs
      ensures Inv() && Steady() && s.j.Mono() && !s.j.mu.held && fresh(s.j.repr - old(s.j.repr))
      ensures b != null ==> Saw(a, [b])
      ensures b == null ==> !s.j.Sound() || a as int in old(s.j.torn)
      decreases *
    {
      assert a in s.kinds && s.tbl.Holds(own, Key(a, 0));
      b := BufferedBlk(buf, Key(a, 0));
      if b != null { return; }
      b := Latest(s, own, hold, a, n);
      assert s.NoOthers();
    }
    // As many of these blocks as are in memory, up to the first that is not, if it has written nothing.
    method InMemory(a: uint64, n: uint64, p: Pieces) returns (m: uint64, ghost bs: seq<Blk>)
      requires Inv() && !s.j.mu.held && InBlocks(a, n) && HoldsRun(a, n) && 0 < n && buf.m == map[]
      modifies p, s.j, s.j.lg, s.j.ins, s.j.d, s.j.seal, s.j.cache, s.j.tree.pages, s.j.repr, s.j.mu, s.tbl, s`stab, s`logs
      ensures Inv() && Steady() && s.j.Mono() && !s.j.mu.held && fresh(s.j.repr - old(s.j.repr))
      ensures m <= n && |bs| == m as int && Saw(a, bs) && p.data == old(p.data) + Joined(bs)
    {
      assert a in s.kinds && a + n - 1 in s.kinds;
      m, bs := PeekRun(s, own, hold, a, n, p);
      forall i | 0 <= i < |bs| ensures Sees(Key(a + i as uint64, 0), bs[i])
      { assert a + i as uint64 in s.kinds; }
    }
    lemma SawMore(a: uint64, bs: seq<Blk>, cs: seq<Blk>)
      requires Saw(a, bs) && a as int + |bs| + |cs| <= 0x1_0000_0000_0000 && Saw(a + |bs| as uint64, cs)
      ensures Saw(a, bs + cs)
    { forall i | 0 <= i < |bs + cs| ensures Sees(Key(a + i as uint64, 0), (bs + cs)[i]) { if i >= |bs| { assert cs[i - |bs|] == (bs + cs)[i]; } } }
    predicate HoldsRun(a: uint64, n: uint64) requires a as int + n as int <= 0x1_0000_0000_0000 reads this, s, s.tbl { forall b: uint64 {:trigger Key(b, 0)} :: a <= b < a + n ==> s.tbl.Holds(own, Key(b, 0)) }
    // the n blocks from a on are blocks
    predicate InBlocks(a: uint64, n: uint64) reads s { a as int + n as int <= 0x1_0000_0000_0000 && forall b: uint64 {:trigger b in s.kinds} :: a <= b < a + n ==> b in s.kinds && s.kinds[b] == KBlock }
    // it holds the blocks from a on, sees bs there, and may do so until its end
    predicate Saw(a: uint64, bs: seq<Blk>) reads this, s, s.j, s.tbl, buf {
      a as int + |bs| <= 0x1_0000_0000_0000 && |s.j.vs| > 0 && forall i {:trigger bs[i]} :: 0 <= i < |bs| ==> Sees(Key(a + i as uint64, 0), bs[i])
    }
    predicate Sees(k: uint64, b: Blk) requires |s.j.vs| > 0 reads this, s, s.j, s.tbl, buf { |b.v| == 4096 && s.tbl.Holds(own, k) && View(k) == ObjData(b.v) && (k in buf.m || Lasts(hold, b)) }
    // locks them, up to the one at at
    method LockRun(a: uint64, n: uint64) returns (st: uint32, at: uint64)
      requires Inv() && !s.j.mu.held && InBlocks(a, n)
      modifies this, s.j, s.j.lg, s.j.ins, s.j.d, s.j.seal, s.j.cache, s.j.tree.pages, s.j.repr, s.j.mu`settled, s.tbl, s`stab, s`logs
      ensures Inv() && Steady() && s.j.Mono() && fresh(s.j.repr - old(s.j.repr))
      ensures st == OK ==> HoldsRun(a, n)
      ensures st == OK || (st == CONFLICT && a <= at < a + n && Below(Key(at, 0)))
      ensures log == old(log) && Answered(st)
    {
      st, at := OK, a;
      while at < a + n
        invariant a <= at <= a + n && Inv() && Steady() && s.j.Mono() && fresh(s.j.repr - old(s.j.repr)) && log == old(log) && cut == old(cut)
        invariant HoldsRun(a, at - a)
        invariant forall k {:trigger s.tbl.Holds(own, k)} :: s.tbl.Holds(own, k) ==> old(s.tbl.Holds(own, k)) || KeyBlk(k) < at
      {
        assert at in s.kinds;
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
      requires Inv() && !s.j.mu.held
      modifies this, s.j, s.j.lg, s.j.ins, s.j.d, s.j.seal, s.j.cache, s.j.tree.pages, s.j.repr, s.j.mu, s.tbl, s`stab, s`logs
      ensures Inv() && Steady() && s.j.Mono() && !s.j.mu.held && fresh(s.j.repr - old(s.j.repr))
      ensures log == old(log) && cut == old(cut)
    {
      TxnSysM.Ahead(s, own, hold, a, n);
    }

    // an object of 256 bytes; null unless st is OK
    method ReadInode(a: uint64, off: uint64, excl: bool) returns (st: uint32, b: Bytes?)
      requires Inv() && !appended && !s.j.mu.held && a in s.kinds && s.kinds[a] == KInode && OffOk(KInode, off)
      modifies this, s.j, s.j.lg, s.j.ins, s.j.d, s.j.seal, s.j.cache, s.j.tree.pages, s.j.repr, s.j.mu, s.tbl, s`stab, s`logs
      ensures Inv() && Steady() && s.j.Mono() && !s.j.mu.held && fresh(s.j.repr - old(s.j.repr))
      ensures st == OK ==> b != null && fresh(b) && |b.data| == 256 && s.tbl.Holds(own, Key(a, off)) && View(Key(a, off)) == ObjData(b.data)
      ensures st == OK || (st == IOERR && (!s.j.Sound() || a as int in old(s.j.torn))) || (st == CONFLICT && Below(Key(a, off)))
      ensures log == if st == OK then old(log) + [OpRead(Key(a, off), ObjData(b.data))] else old(log)
      ensures Answered(st)
      decreases *
    {
      var k := Key(a, off);
      var ok := Lock(k, excl);
      if !ok { return CONFLICT, null; }
      var c := hold.Small();
      var found := BufferedBytes(buf, k, c);
      if found { Note(k, ObjData(c.data)); return OK, c; }
      var v := Latest(s, own, hold, a, 1);
      if v == null { CutShort(IOERR); return IOERR, null; }
      ghost var o := ObjData(v.v[off as int / 8 .. off as int / 8 + 256]);
      assert View(k) == o;
      Note(k, o);
      c.CopyBlk(0, v, off / 8, 256);
      assert c.data == o.bs;
      return OK, c;
    }

    method ReadBit(a: uint64, off: uint64, excl: bool) returns (st: uint32, b: bool)
      requires Inv() && !appended && !s.j.mu.held && a in s.kinds && s.kinds[a] == KBit && OffOk(KBit, off)
      modifies this, s.j, s.j.lg, s.j.ins, s.j.d, s.j.seal, s.j.cache, s.j.tree.pages, s.j.repr, s.j.mu, s.tbl, s`stab, s`logs
      ensures Inv() && Steady() && s.j.Mono() && !s.j.mu.held && fresh(s.j.repr - old(s.j.repr))
      ensures st == OK ==> s.tbl.Holds(own, Key(a, off)) && View(Key(a, off)) == ObjBit(b)
      ensures st == OK || (st == IOERR && (!s.j.Sound() || a as int in old(s.j.torn))) || (st == CONFLICT && Below(Key(a, off)))
      ensures log == if st == OK then old(log) + [OpRead(Key(a, off), ObjBit(b))] else old(log)
      ensures Answered(st)
      decreases *
    {
      var k := Key(a, off);
      var ok := Lock(k, excl);
      if !ok { return CONFLICT, false; }
      var found;
      found, b := BufferedBit(buf, k);
      if found { Note(k, ObjBit(b)); return OK, b; }
      var v := Latest(s, own, hold, a, 1);
      if v == null { CutShort(IOERR); return IOERR, false; }
      var c := v.Get(off / 8);
      Note(k, ObjBit(BitOf(c, off % 8)));
      return OK, BitOf(c, off % 8);
    }

    // takes b over unless it fails
    method WriteBlock(a: uint64, b: Bytes) returns (st: uint32)
      requires Inv() && !appended && !s.j.mu.held && a in s.kinds && s.kinds[a] == KBlock && |b.data| == 4096
      modifies this, s.j, s.j.lg, s.j.ins, s.j.d, s.j.seal, s.j.cache, s.j.tree.pages, s.j.repr, s.j.mu`settled, s.tbl, s`stab, s`logs, buf, b
      ensures Inv() && Steady() && s.j.Mono() && fresh(s.j.repr - old(s.j.repr))
      ensures st == OK ==> buf.m == old(buf.m)[Key(a, 0) := ObjData(old(b.data))] && b.data == []
      ensures st != OK ==> buf.m == old(buf.m)
      ensures st == OK || (st == CONFLICT && Below(Key(a, 0)))
      ensures log == if st == OK then old(log) + [OpWrite(Key(a, 0), ObjData(old(b.data)))] else old(log)
      ensures Answered(st)
    {
      var k := Key(a, 0);
      var ok := Lock(k, true);
      if !ok { return CONFLICT; }
      var v := Freeze(b);
      DidWrite(s.kinds, log, found, buf.m, k, ObjData(v.v));
      BufferBlk(buf, k, v);
      log := log + [OpWrite(k, ObjData(v.v))];
      return OK;
    }
    method WriteInode(a: uint64, off: uint64, b: Bytes) returns (st: uint32)
      requires Inv() && !appended && !s.j.mu.held && a in s.kinds && s.kinds[a] == KInode && OffOk(KInode, off) && |b.data| == 256
      modifies this, s.j, s.j.lg, s.j.ins, s.j.d, s.j.seal, s.j.cache, s.j.tree.pages, s.j.repr, s.j.mu`settled, s.tbl, s`stab, s`logs, buf
      ensures Inv() && Steady() && s.j.Mono() && fresh(s.j.repr - old(s.j.repr))
      ensures st == OK ==> buf.m == old(buf.m)[Key(a, off) := ObjData(b.data)]
      ensures st != OK ==> buf.m == old(buf.m)
      ensures st == OK || (st == CONFLICT && Below(Key(a, off)))
      ensures log == if st == OK then old(log) + [OpWrite(Key(a, off), ObjData(b.data))] else old(log)
      ensures Answered(st)
    {
      var k := Key(a, off);
      var ok := Lock(k, true);
      if !ok { return CONFLICT; }
      DidWrite(s.kinds, log, found, buf.m, k, ObjData(b.data));
      BufferBytes(buf, k, b);
      log := log + [OpWrite(k, ObjData(b.data))];
      return OK;
    }
    method WriteBit(a: uint64, off: uint64, b: bool) returns (st: uint32)
      requires Inv() && !appended && !s.j.mu.held && a in s.kinds && s.kinds[a] == KBit && OffOk(KBit, off)
      modifies this, s.j, s.j.lg, s.j.ins, s.j.d, s.j.seal, s.j.cache, s.j.tree.pages, s.j.repr, s.j.mu`settled, s.tbl, s`stab, s`logs, buf
      ensures Inv() && Steady() && s.j.Mono() && fresh(s.j.repr - old(s.j.repr))
      ensures st == OK ==> buf.m == old(buf.m)[Key(a, off) := ObjBit(b)]
      ensures st != OK ==> buf.m == old(buf.m)
      ensures st == OK || (st == CONFLICT && Below(Key(a, off)))
      ensures log == if st == OK then old(log) + [OpWrite(Key(a, off), ObjBit(b))] else old(log)
      ensures Answered(st)
    {
      var k := Key(a, off);
      var ok := Lock(k, true);
      if !ok { return CONFLICT; }
      DidWrite(s.kinds, log, found, buf.m, k, ObjBit(b));
      BufferBit(buf, k, b);
      log := log + [OpWrite(k, ObjBit(b))];
      return OK;
    }
  }
}
