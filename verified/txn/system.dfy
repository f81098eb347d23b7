// The shared state of all transactions, and what each may rely on.
//
// Ownership: the lock table's ghost maps say which transaction owns which object.
// While a transaction holds an object (shared or exclusively) no other changes
// it. TYield stands wherever other threads may run: its contract is what they
// may have done meanwhile (the rely). That they do no more is the guarantee:
// every step that locks, commits, or releases is verified to leave all that others hold as it
// was (Txn.Grab in txn.dfy, Point and LetGo in ending.dfy). No other step changes the newest
// state or the lock table.
//
// A commit is stable if its call waits until it is durable. It is noted when the lock table knows its number for what
// it wrote: whoever locks that next learns of it, and tells nothing of what it saw before that commit is durable.
//
// Steps are marked as the journal's are: [L] under its mutex, [F] without it.
include "history.dfy"
include "../trusted/locks.s.dfy"
include "../journal/threads.dfy"

module TxnSysM {
  import opened Machine
  import opened ByteSlice
  import opened TxnSpec
  import opened ObjectsM
  import opened History
  import opened LockS
  import opened DiskS
  import opened BlockHolds
  import opened JournalM
  import opened JournalReader

  class System {
    const journal: Journal
    const locks: Table
    ghost var kinds: Kinds                     // never changes
    ghost var lastStable: map<uint64, uint64>  // per object, the last stable commit that wrote it
    ghost var logs: Logs  // what each transaction did that has committed, by the number of its commit
    constructor (j0: Journal, t: Table)
      ensures journal == j0 && locks == t && kinds == map[] && lastStable == map[] && logs == map[]
    { journal := j0; locks := t; kinds := map[]; lastStable := map[]; logs := map[]; }

    predicate Inv() reads this, journal, journal.logger, journal.installer, journal.disk, journal.seal, journal.cache,
      journal.tree.pages, journal.running, journal.logged, journal.frozen, journal.frozenDirect, journal.installing,
      journal.loggedDirect, journal.installingDirect, journal.logger.ring, journal.logger.direct, journal.logger.codes,
      locks {
      journal.Inv() && |journal.states| > 0 && locks.Valid() &&
      (forall a: uint64 {:trigger a in kinds} :: a in kinds ==> journal.home <= a < journal.size &&
        a < 0x1_0000_0000_0000) &&
      (forall k: uint64 {:trigger k in locks.last} :: k in locks.last ==> locks.last[k] as int < |journal.states|) &&
      (forall k: uint64 {:trigger k in lastStable} :: k in lastStable ==> 0 < lastStable[k] as int < |journal.states| &&
        (k in locks.exclusive || Learned(k))) &&
      Upward() && Serial(kinds, logs, journal.states)
    }
    // The objects that the threads of a system share, beside the mutex: the frame of what any of them may change.
    function Shared(): set<object> reads journal {
      {journal, journal.logger, journal.installer, journal.disk, journal.seal, journal.cache, journal.tree.pages} +
        journal.repr + {locks}
    }
    // Whoever waits holds only what lies below what it waits for. What follows from that: waiting.dfy.
    predicate Upward() reads locks {
      forall o: Owner, k: uint64 {:trigger locks.Holds(o, k)} :: o in locks.wants &&
        locks.Holds(o, k) ==> k < locks.wants[o].key
    }
    // Who locks object k learns of the last stable commit that wrote it. So it is but for those
    // objects whose writer has not let go of them.
    predicate Learned(k: uint64) reads this, locks {
      k in lastStable ==> k in locks.last && lastStable[k] <= locks.last[k]
    }
    function Now(k: uint64): Object requires |journal.states| > 0 reads this, journal { Cell(journal.Cur(), kinds, k) }
    // what is noted stays noted, and never falls; nor does the last stable commit of an object; nor is a commit
    // forgotten
    twostate predicate Remembers() reads this, locks {
      (forall n {:trigger n in logs} {:trigger n in old(logs)} :: n in old(logs) ==> n in logs &&
        logs[n] == old(logs)[n]) &&
      (forall k: uint64 {:trigger k in locks.last} {:trigger k in old(locks.last)} :: k in old(locks.last) ==>
        k in locks.last && old(locks.last)[k] <= locks.last[k]) &&
      forall k: uint64 {:trigger k in lastStable} {:trigger k in old(lastStable)} :: k in old(lastStable) ==>
        k in lastStable && old(lastStable)[k] <= lastStable[k]
    }
    // if all commits were those of transactions, they still are
    twostate predicate NoOthers() reads this, journal {
      old(Complete(logs, journal.states)) ==> Complete(logs, journal.states)
    }
    // what the other threads leave alone
    twostate predicate Kept(o: Owner) reads this, journal, locks {
      |old(journal.states)| > 0 && |journal.states| > 0 && kinds == old(kinds) && Remembers() && NoOthers() &&
      (forall k :: locks.Holds(o, k) <==> old(locks.Holds(o, k))) &&
      (forall k :: locks.Owns(o, k) <==> old(locks.Owns(o, k))) &&
      (o in locks.wants <==> o in old(locks.wants)) && (o in locks.wants ==> locks.wants[o] == old(locks.wants[o])) &&
      (forall k :: locks.Holds(o, k) ==> Now(k) == old(Now(k))) &&
      (forall k {:trigger k in lastStable} {:trigger k in old(lastStable)} :: locks.Holds(o, k) ==>
        (k in lastStable <==> k in old(lastStable)) && (k in lastStable ==> lastStable[k] == old(lastStable)[k])) &&
      (forall k :: locks.Holds(o, k) && k in locks.last ==> k in old(locks.last) && locks.last[k] == old(locks.last[k]))
    }
  }
  // The transactions over the blocks of j: block a of ks holds objects of kind ks[a].
  method Open(j: Journal, ghost ks: Kinds) returns (s: System)
    requires j.Inv()
    requires forall a: uint64 {:trigger a in ks} :: a in ks ==> j.home <= a < j.size && a < 0x1_0000_0000_0000
    ensures fresh(s) && fresh(s.locks) && s.Inv() && s.journal == j && s.kinds == ks &&
      (|j.states| == 1 ==> Complete(s.logs, j.states))
  {
    var t := NewTable();
    s := new System(j, t);
    s.kinds := ks;
    SerialNone(ks, j.states);
  }

  // the other threads run
  method TYield(s: System, ghost o: Owner)
    requires s.Inv()
    modifies s.journal, s.journal.logger, s.journal.installer, s.journal.disk, s.journal.seal, s.journal.cache,
      s.journal.tree.pages, s.journal.repr, s.journal.mutex`settled, s.locks, s`lastStable, s`logs
    ensures s.Inv() && s.journal.Mono() && fresh(s.journal.repr - old(s.journal.repr)) && s.Kept(o) &&
      s.journal.mutex.settled == o
  { s.journal.mutex.Yielded(o); }

  // The latest value of block a if it is in memory, else a ticket for Fetch.
  method Peek(s: System, ghost o: Owner, h: Hold, a: uint64) returns (b: Blk?, t: uint64)
    requires s.Inv() && !s.journal.mutex.held && s.journal.home <= a < s.journal.size
    modifies s.journal, s.journal.logger, s.journal.installer, s.journal.disk, s.journal.seal, s.journal.cache,
      s.journal.tree.pages, s.journal.repr, s.journal.mutex, s.locks, s`lastStable, s`logs
    ensures s.Inv() && s.journal.Mono() && !s.journal.mutex.held && fresh(s.journal.repr - old(s.journal.repr)) &&
      s.Kept(o)
    ensures b != null ==> a as int in s.journal.Cur() && b.v == s.journal.Cur()[a as int] && |b.v| == 4096 &&
      Lasts(h, b)
    ensures t <= s.journal.trims
  {
    s.journal.mutex.Lock(); TYield(s, o);
    b, t := Lookup(s.journal, a);
    if b != null { h.Keep(s.journal.mutex, s.journal.cache, b); }
    s.journal.mutex.Unlock();
  }
  // [L] How many of the n blocks from a on are in memory, up to the first that is not: these are added to p.
  method FindRun(s: System, h: Hold, a: uint64, n: uint64, p: Pieces) returns (m: uint64, ghost bs: seq<Blk>)
    requires s.Inv() && s.journal.mutex.Inside() && s.journal.home <= a && a as int + n as int <= s.journal.size as int
    modifies p
    ensures m <= n && |bs| == m as int && p.data == old(p.data) + Joined(bs)
    ensures forall i :: 0 <= i < |bs| ==> Newest(s.journal, h, a as int + i, bs[i])
  {
    m, bs := 0, [];
    while m < n
      invariant m <= n && |bs| == m as int && p.data == old(p.data) + Joined(bs)
      invariant forall i :: 0 <= i < |bs| ==> Newest(s.journal, h, a as int + i, bs[i])
    {
      var b, _ := Lookup(s.journal, a + m);
      if b == null { return; }
      h.Keep(s.journal.mutex, s.journal.cache, b);
      p.Add(b, 0, 4096);
      JoinedMore(bs, b);
      bs := bs + [b];
      m := m + 1;
    }
  }
  // b is the latest value of block a, and may be seen until h ends
  predicate Newest(j: Journal, h: Hold, a: int, b: Blk) reads j, h {
    |j.states| > 0 && a in j.Cur() && b.v == j.Cur()[a] && |b.v| == 4096 && Lasts(h, b)
  }
  // The same, of their latest values.
  method PeekRun(s: System, ghost o: Owner, h: Hold, a: uint64, n: uint64, p: Pieces) returns (m: uint64,
    ghost bs: seq<Blk>)
    requires s.Inv() && !s.journal.mutex.held && s.journal.home <= a && a as int + n as int <= s.journal.size as int
    modifies p, s.journal, s.journal.logger, s.journal.installer, s.journal.disk, s.journal.seal, s.journal.cache,
      s.journal.tree.pages, s.journal.repr, s.journal.mutex, s.locks, s`lastStable, s`logs
    ensures s.Inv() && s.journal.Mono() && !s.journal.mutex.held && fresh(s.journal.repr - old(s.journal.repr)) &&
      s.Kept(o)
    ensures m <= n && |bs| == m as int && p.data == old(p.data) + Joined(bs)
    ensures forall i :: 0 <= i < |bs| ==> Newest(s.journal, h, a as int + i, bs[i])
  {
    s.journal.mutex.Lock(); TYield(s, o);
    m, bs := FindRun(s, h, a, n, p);
    s.journal.mutex.Unlock();
  }
  // What the device returns for block a and the n-1 behind it.
  method Load(s: System, ghost o: Owner, h: Hold, a: uint64, n: uint64, t: uint64) returns (ok: bool, l: BList)
    requires s.Inv() && !s.journal.mutex.held && s.journal.home <= a && 0 < n &&
      a as int + n as int <= s.journal.size as int && t <= s.journal.trims
    modifies s.journal, s.journal.logger, s.journal.installer, s.journal.disk, s.journal.seal, s.journal.cache,
      s.journal.tree.pages, s.journal.repr, s.journal.mutex`settled, s.locks, s`lastStable, s`logs
    ensures s.Inv() && s.journal.Mono() && fresh(s.journal.repr - old(s.journal.repr)) && s.Kept(o)
    ensures ok ==> KeepsAll(h, l) && n as int == |l.blks| &&
      (forall i :: 0 <= i < |l.blks| ==> |l.blks[i]| == 4096) &&
      WereRead(s.journal, a as int, t, l.blks, s.journal.torn)
    ensures !ok ==> !s.journal.Sound()
  {
    TYield(s, o);
    ok, l := ReadHome(s.journal, a, n, t);
    if ok { h.Take(l); }
  }
  // The same, and how many of these blocks, m, are what they should be; or block bad is not.
  method Device(s: System, ghost o: Owner, h: Hold, a: uint64, n: uint64, t: uint64) returns (ok: bool, l: BList,
    m: uint64, bad: uint64)
    requires s.Inv() && !s.journal.mutex.held && s.journal.home <= a && 0 < n &&
      a as int + n as int <= s.journal.size as int && t <= s.journal.trims
    modifies s.journal, s.journal.logger, s.journal.installer, s.journal.disk, s.journal.seal, s.journal.cache,
      s.journal.tree.pages, s.journal.repr, s.journal.mutex`settled, s.locks, s`lastStable, s`logs
    ensures s.Inv() && s.journal.Mono() && fresh(s.journal.repr - old(s.journal.repr)) && s.Kept(o)
    ensures ok ==> KeepsAll(h, l) && m <= n && n as int == |l.blks| &&
      forall k :: 0 <= k < m as int ==> s.journal.WasRead(a as int + k, t, l.blks[k])
    ensures !ok || m == 0 ==> !s.journal.Sound() || a as int in old(s.journal.torn) ||
      (ok && s.journal.Late(a as int, t))
  {
    m := 0; bad := a;
    ok, l := Load(s, o, h, a, n, t);
    if !ok { return; }
    ghost var lost := s.journal.torn;
    TYield(s, o);
    m, bad := CheckHome(s.journal, a, l, h, 0, t, lost);
  }
  // [L] The first m of the blocks l, read at a with ticket t, are in memory from now on; b: the first as it is now,
  // unless it is to be read again.
  method Bring(s: System, h: Hold, a: uint64, l: BList, m: uint64, t: uint64) returns (b: Blk?)
    requires s.Inv() && s.journal.mutex.Inside() && s.journal.home <= a && 0 < m && m as int <= |l.blks| &&
      a as int + m as int <= s.journal.size as int
    requires KeepsAll(h, l) && forall k :: 0 <= k < m as int ==>
      s.journal.WasRead(a as int + k, t, l.blks[k])
    modifies s.journal.cache
    ensures s.Inv() && s.journal.KeepsLogger() && s.journal.KeepsInstaller() && s.journal.Mono()
    ensures b != null ==> a as int in s.journal.Cur() && b.v == s.journal.Cur()[a as int] && |b.v| == 4096 &&
      Lasts(h, b)
  {
    b := null;
    var i := m;
    while 0 < i
      invariant i <= m && s.Inv() && s.journal.KeepsLogger() && s.journal.KeepsInstaller() && s.journal.Mono()
      invariant forall k :: 0 <= k < m as int ==> s.journal.WasRead(a as int + k, t, l.blks[k])
      invariant i == m ==> b == null
      invariant i < m && b != null ==> (a + i) as int in s.journal.Cur() && b.v == s.journal.Cur()[(a + i) as int] &&
        |b.v| == 4096 && (Lasts(h, b) || Shown(s.journal, b))
    {
      i := i - 1;
      var c := l.BlkAt(i, h);
      b := Lookup2(s.journal, a + i, t, c, h);
    }
    if b != null { h.Keep(s.journal.mutex, s.journal.cache, b); }
  }
  // The latest value of block a from the device; null, although the device did not fail: try again. The n-1
  // blocks behind it are read with it, as far as they are undamaged.
  method Fetch(s: System, ghost o: Owner, h: Hold, a: uint64, n: uint64, t: uint64) returns (ok: bool, b: Blk?)
    requires s.Inv() && !s.journal.mutex.held && s.journal.home <= a && 0 < n &&
      a as int + n as int <= s.journal.size as int && t <= s.journal.trims
    modifies s.journal, s.journal.logger, s.journal.installer, s.journal.disk, s.journal.seal, s.journal.cache,
      s.journal.tree.pages, s.journal.repr, s.journal.mutex, s.locks, s`lastStable, s`logs
    ensures s.Inv() && s.journal.Mono() && !s.journal.mutex.held && fresh(s.journal.repr - old(s.journal.repr)) &&
      s.Kept(o)
    ensures b != null ==> ok && a as int in s.journal.Cur() && b.v == s.journal.Cur()[a as int] && |b.v| == 4096 &&
      Lasts(h, b)
    ensures !ok ==> !s.journal.Sound() || a as int in old(s.journal.torn)
  {
    var l, m, bad;
    ok, l, m, bad := Device(s, o, h, a, n, t);
    if !ok { return false, null; }
    s.journal.mutex.Lock(); TYield(s, o);
    if m == 0 {
      var damaged := Confirm(s.journal, a, t, bad);
      ok, b := !damaged, null;
    } else {
      b := Bring(s, h, a, l, m, t);
    }
    s.journal.mutex.Unlock();
  }
  // The latest value of block a, from memory or the device; null when the device failed, or the block was torn. If it
  // is not in memory, the n-1 blocks behind it are read with it, as far as there are so many.
  method Latest(s: System, ghost o: Owner, h: Hold, a: uint64, n: uint64) returns (b: Blk?)
    requires s.Inv() && !s.journal.mutex.held && s.journal.home <= a < s.journal.size && 0 < n
    modifies s.journal, s.journal.logger, s.journal.installer, s.journal.disk, s.journal.seal, s.journal.cache,
      s.journal.tree.pages, s.journal.repr, s.journal.mutex, s.locks, s`lastStable, s`logs
    ensures s.Inv() && s.journal.Mono() && !s.journal.mutex.held && fresh(s.journal.repr - old(s.journal.repr)) &&
      s.Kept(o)
    ensures b != null ==> a as int in s.journal.Cur() && b.v == s.journal.Cur()[a as int] && |b.v| == 4096 &&
      Lasts(h, b)
    ensures b == null ==> !s.journal.Sound() || a as int in old(s.journal.torn)
    decreases *
  {
    var t;
    b, t := Peek(s, o, h, a);
    var ok := true;
    var r := if s.journal.size - a < n then s.journal.size - a else n;
    while b == null && ok
      invariant 0 < r && a as int + r as int <= s.journal.size as int && s.journal.home <= a
      invariant s.Inv() && s.journal.Mono() && !s.journal.mutex.held && fresh(s.journal.repr - old(s.journal.repr)) &&
        s.Kept(o) && t <= s.journal.trims
      invariant b != null ==> a as int in s.journal.Cur() && b.v == s.journal.Cur()[a as int] && |b.v| == 4096 &&
        Lasts(h, b)
      invariant !ok ==> !s.journal.Sound() || a as int in old(s.journal.torn)
      decreases *
    {
      ok, b := Fetch(s, o, h, a, r, t);
      if !ok && 1 < r { ok := true; }         // perhaps it is another that cannot be read
      r := 1;
      if ok && b == null { b, t := Peek(s, o, h, a); }
    }
  }
  // The latest value of block a, copied to dst; false: as null above.
  method LatestTo(s: System, ghost o: Owner, a: uint64, dst: Bytes) returns (ok: bool)
    requires s.Inv() && !s.journal.mutex.held && s.journal.home <= a < s.journal.size && |dst.data| == 4096
    modifies s.journal, s.journal.logger, s.journal.installer, s.journal.disk, s.journal.seal, s.journal.cache,
      s.journal.tree.pages, s.journal.repr, s.journal.mutex, s.locks, s`lastStable, s`logs, dst
    ensures s.Inv() && s.journal.Mono() && !s.journal.mutex.held && fresh(s.journal.repr - old(s.journal.repr)) &&
      s.Kept(o)
    ensures ok ==> a as int in s.journal.Cur() && dst.data == s.journal.Cur()[a as int]
    ensures !ok ==> !s.journal.Sound() || a as int in old(s.journal.torn)
    decreases *
  {
    var h := NewHold();
    var b := Latest(s, o, h, a, 1);
    ok := b != null;
    if ok { h.CopyTo(dst, b); }
    h.End();
  }
  // Brings the n blocks from a on to memory with one read, if the first is not there.
  method Ahead(s: System, ghost o: Owner, h: Hold, a: uint64, n: uint64)
    requires s.Inv() && !s.journal.mutex.held
    modifies s.journal, s.journal.logger, s.journal.installer, s.journal.disk, s.journal.seal, s.journal.cache,
      s.journal.tree.pages, s.journal.repr, s.journal.mutex, s.locks, s`lastStable, s`logs
    ensures s.Inv() && s.journal.Mono() && !s.journal.mutex.held && fresh(s.journal.repr - old(s.journal.repr)) &&
      s.Kept(o)
  {
    if n == 0 || a < s.journal.home || s.journal.size <= a { return; }
    var m := if s.journal.size - a < n then s.journal.size - a else n;
    var b, t := Peek(s, o, h, a);
    if b == null { var ok; ok, b := Fetch(s, o, h, a, m, t); }
  }
}
