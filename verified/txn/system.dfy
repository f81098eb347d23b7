// The shared state of all transactions, and what each may rely on.
//
// Ownership: the lock table's ghost maps say which transaction owns which object.
// While a transaction holds an object (shared or exclusively) no other changes
// it. TYield stands wherever other threads may run: its contract is what they
// may have done meanwhile (the rely). That they do no more is the guarantee:
// every step that locks, commits, or releases is verified to leave all that others hold as it
// was (Txn.Grab in txn.dfy, Point and LetGo in commit.dfy). No other step changes the newest
// state or the lock table. Steps are marked as the journal's are: [L] under its mutex, [F] without it.
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
  import opened LogS
  import opened JournalM
  import opened JournalReader

  class Sys {
    const j: Journal
    const tbl: Table
    ghost var kinds: Kinds       // never changes
    ghost var stab: map<uint64, uint64>   // per object, the last stable commit that wrote it
    ghost var logs: Logs         // what each transaction did that has committed, by the number of its commit
    constructor (j0: Journal, t: Table)
      ensures j == j0 && tbl == t && kinds == map[] && stab == map[] && logs == map[]
    { j := j0; tbl := t; kinds := map[]; stab := map[]; logs := map[]; }

    predicate Inv() reads this, j, j.lg, j.ins, j.d, j.seal, j.cache, j.tree.pages, j.running, j.lgm, j.cgm, j.cdm, j.inm, j.lho, j.iho, j.lg.ring, j.lg.dir, j.lg.codes, tbl {
      j.Inv() && |j.vs| > 0 && tbl.Valid() &&
      (forall a: uint64 {:trigger a in kinds} :: a in kinds ==> j.home <= a < j.sz && a < 0x1_0000_0000_0000) &&
      (forall k: uint64 {:trigger k in tbl.last} :: k in tbl.last ==> tbl.last[k] as int < |j.vs|) &&
      (forall k: uint64 {:trigger k in stab} :: k in stab ==> 0 < stab[k] as int < |j.vs| && (k in tbl.ex || Learned(k))) &&
      Upward() && Serial(kinds, logs, j.vs)
    }
    // Whoever waits holds only what lies below what it waits for. What follows from that: waiting.dfy.
    predicate Upward() reads tbl { forall o: Owner, k: uint64 {:trigger tbl.Holds(o, k)} :: o in tbl.wants && tbl.Holds(o, k) ==> k < tbl.wants[o].k }
    // Who locks object k learns of the last stable commit that wrote it. So it is but for those
    // objects whose writer has not let go of them.
    predicate Learned(k: uint64) reads this, tbl { k in stab ==> k in tbl.last && stab[k] <= tbl.last[k] }
    function Now(k: uint64): Object requires |j.vs| > 0 reads this, j { Cell(j.Cur(), kinds, k) }
    // what is noted stays noted, and never falls; nor does the last stable commit of an object; nor is a commit forgotten
    twostate predicate Remembers() reads this, tbl {
      (forall n {:trigger n in logs} {:trigger n in old(logs)} :: n in old(logs) ==> n in logs && logs[n] == old(logs)[n]) &&
      (forall k: uint64 {:trigger k in tbl.last} {:trigger k in old(tbl.last)} :: k in old(tbl.last) ==> k in tbl.last && old(tbl.last)[k] <= tbl.last[k]) &&
      forall k: uint64 {:trigger k in stab} {:trigger k in old(stab)} :: k in old(stab) ==> k in stab && old(stab)[k] <= stab[k]
    }
    // if all commits were those of transactions, they still are
    twostate predicate NoOthers() reads this, j { old(Complete(logs, j.vs)) ==> Complete(logs, j.vs) }
    // what the other threads leave alone
    twostate predicate Kept(o: Owner) reads this, j, tbl {
      |old(j.vs)| > 0 && |j.vs| > 0 && kinds == old(kinds) && Remembers() && NoOthers() &&
      (forall k :: tbl.Holds(o, k) <==> old(tbl.Holds(o, k))) &&
      (forall k :: tbl.Owns(o, k) <==> old(tbl.Owns(o, k))) &&
      (o in tbl.wants <==> o in old(tbl.wants)) && (o in tbl.wants ==> tbl.wants[o] == old(tbl.wants[o])) &&
      (forall k :: tbl.Holds(o, k) ==> Now(k) == old(Now(k))) &&
      (forall k {:trigger k in stab} {:trigger k in old(stab)} :: tbl.Holds(o, k) ==> (k in stab <==> k in old(stab)) && (k in stab ==> stab[k] == old(stab)[k])) &&
      (forall k :: tbl.Holds(o, k) && k in tbl.last ==> k in old(tbl.last) && tbl.last[k] == old(tbl.last[k]))
    }
  }
  // The transactions over the blocks of j: block a of ks holds objects of kind ks[a].
  method Open(j: Journal, ghost ks: Kinds) returns (s: Sys)
    requires j.Inv()
    requires forall a: uint64 {:trigger a in ks} :: a in ks ==> j.home <= a < j.sz && a < 0x1_0000_0000_0000
    ensures fresh(s) && fresh(s.tbl) && s.Inv() && s.j == j && s.kinds == ks && (|j.vs| == 1 ==> Complete(s.logs, j.vs))
  {
    var t := NewTable();
    s := new Sys(j, t);
    s.kinds := ks;
    SerialNone(ks, j.vs);
  }

  // the other threads run
  method TYield(s: Sys, ghost o: Owner)
    requires s.Inv()
    modifies s.j, s.j.lg, s.j.ins, s.j.d, s.j.seal, s.j.cache, s.j.tree.pages, s.j.repr, s.j.mu`settled, s.tbl, s`stab, s`logs
    ensures s.Inv() && s.j.Mono() && fresh(s.j.repr - old(s.j.repr)) && s.Kept(o) && s.j.mu.settled == o
  { s.j.mu.Yielded(o); }

  // The latest value of block a if it is in memory, else a ticket for Fetch.
  method Peek(s: Sys, ghost o: Owner, h: Hold, a: uint64) returns (b: Blk?, t: uint64)
    requires s.Inv() && !s.j.mu.held && s.j.home <= a < s.j.sz
    modifies s.j, s.j.lg, s.j.ins, s.j.d, s.j.seal, s.j.cache, s.j.tree.pages, s.j.repr, s.j.mu, s.tbl, s`stab, s`logs
    ensures s.Inv() && s.j.Mono() && !s.j.mu.held && fresh(s.j.repr - old(s.j.repr)) && s.Kept(o)
    ensures b != null ==> a as int in s.j.Cur() && b.v == s.j.Cur()[a as int] && |b.v| == 4096 && Lasts(h, b)
    ensures t <= s.j.trims
  {
    s.j.mu.Lock(); TYield(s, o);
    b, t := Lookup(s.j, a);
    if b != null { h.Keep(s.j.mu, s.j.cache, b); }
    s.j.mu.Unlock();
  }
  // [L] How many of the n blocks from a on are in memory, up to the first that is not: these are added to p.
  method FindRun(s: Sys, h: Hold, a: uint64, n: uint64, p: Pieces) returns (m: uint64, ghost bs: seq<Blk>)
    requires s.Inv() && s.j.mu.Inside() && s.j.home <= a && a as int + n as int <= s.j.sz as int
    modifies p
    ensures m <= n && |bs| == m as int && p.data == old(p.data) + Joined(bs)
    ensures forall i :: 0 <= i < |bs| ==> Newest(s.j, h, a as int + i, bs[i])
  {
    m, bs := 0, [];
    while m < n
      invariant m <= n && |bs| == m as int && p.data == old(p.data) + Joined(bs)
      invariant forall i :: 0 <= i < |bs| ==> Newest(s.j, h, a as int + i, bs[i])
    {
      var b, _ := Lookup(s.j, a + m);
      if b == null { return; }
      h.Keep(s.j.mu, s.j.cache, b);
      p.Add(b, 0, 4096);
      JoinedMore(bs, b);
      bs := bs + [b];
      m := m + 1;
    }
  }
  // b is the latest value of block a, and may be seen until h ends
  predicate Newest(j: Journal, h: Hold, a: int, b: Blk) reads j { |j.vs| > 0 && a in j.Cur() && b.v == j.Cur()[a] && |b.v| == 4096 && Lasts(h, b) }
  // The same, of their latest values.
  method PeekRun(s: Sys, ghost o: Owner, h: Hold, a: uint64, n: uint64, p: Pieces) returns (m: uint64, ghost bs: seq<Blk>)
    requires s.Inv() && !s.j.mu.held && s.j.home <= a && a as int + n as int <= s.j.sz as int
    modifies p, s.j, s.j.lg, s.j.ins, s.j.d, s.j.seal, s.j.cache, s.j.tree.pages, s.j.repr, s.j.mu, s.tbl, s`stab, s`logs
    ensures s.Inv() && s.j.Mono() && !s.j.mu.held && fresh(s.j.repr - old(s.j.repr)) && s.Kept(o)
    ensures m <= n && |bs| == m as int && p.data == old(p.data) + Joined(bs)
    ensures forall i :: 0 <= i < |bs| ==> Newest(s.j, h, a as int + i, bs[i])
  {
    s.j.mu.Lock(); TYield(s, o);
    m, bs := FindRun(s, h, a, n, p);
    s.j.mu.Unlock();
  }
  // What the device returns for block a and the n-1 behind it.
  method Load(s: Sys, ghost o: Owner, h: Hold, a: uint64, n: uint64, t: uint64) returns (ok: bool, l: BList)
    requires s.Inv() && !s.j.mu.held && s.j.home <= a && 0 < n && a as int + n as int <= s.j.sz as int && t <= s.j.trims
    modifies s.j, s.j.lg, s.j.ins, s.j.d, s.j.seal, s.j.cache, s.j.tree.pages, s.j.repr, s.j.mu`settled, s.tbl, s`stab, s`logs
    ensures s.Inv() && s.j.Mono() && fresh(s.j.repr - old(s.j.repr)) && s.Kept(o)
    ensures ok ==> (forall b :: l.Shows(b) ==> Lasts(h, b)) && n as int == |l.blks| && (forall i :: 0 <= i < |l.blks| ==> |l.blks[i]| == 4096) && WereRead(s.j, a as int, t, l.blks, s.j.torn)
    ensures !ok ==> !s.j.Sound()
  {
    TYield(s, o);
    ok, l := ReadHome(s.j, a, n, t);
    if ok { h.Take(l); }
  }
  // The same, and how many of these blocks, m, are what they should be; or block bad is not.
  method Device(s: Sys, ghost o: Owner, h: Hold, a: uint64, n: uint64, t: uint64) returns (ok: bool, l: BList, m: uint64, bad: uint64)
    requires s.Inv() && !s.j.mu.held && s.j.home <= a && 0 < n && a as int + n as int <= s.j.sz as int && t <= s.j.trims
    modifies s.j, s.j.lg, s.j.ins, s.j.d, s.j.seal, s.j.cache, s.j.tree.pages, s.j.repr, s.j.mu`settled, s.tbl, s`stab, s`logs
    ensures s.Inv() && s.j.Mono() && fresh(s.j.repr - old(s.j.repr)) && s.Kept(o)
    ensures ok ==> (forall b :: l.Shows(b) ==> Lasts(h, b)) && m <= n && n as int == |l.blks| && forall k :: 0 <= k < m as int ==> s.j.WasRead(a as int + k, t, l.blks[k])
    ensures !ok || m == 0 ==> !s.j.Sound() || a as int in old(s.j.torn) || (ok && s.j.Late(a as int, t))
  {
    m := 0; bad := a;
    ok, l := Load(s, o, h, a, n, t);
    if !ok { return; }
    ghost var lost := s.j.torn;
    TYield(s, o);
    m, bad := CheckHome(s.j, a, l, 0, t, lost);
  }
  // [L] The first m of the blocks l, read at a with ticket t, are in memory from now on; b: the first as it is now, unless it is
  // to be read again.
  method Bring(s: Sys, h: Hold, a: uint64, l: BList, m: uint64, t: uint64) returns (b: Blk?)
    requires s.Inv() && s.j.mu.Inside() && s.j.home <= a && 0 < m && m as int <= |l.blks| && a as int + m as int <= s.j.sz as int
    requires (forall b :: l.Shows(b) ==> Lasts(h, b)) && forall k :: 0 <= k < m as int ==> s.j.WasRead(a as int + k, t, l.blks[k])
    modifies s.j.cache
    ensures s.Inv() && s.j.LKeep() && s.j.IKeep() && s.j.Mono()
    ensures b != null ==> a as int in s.j.Cur() && b.v == s.j.Cur()[a as int] && |b.v| == 4096 && Lasts(h, b)
  {
    b := null;
    var i := m;
    while 0 < i
      invariant i <= m && s.Inv() && s.j.LKeep() && s.j.IKeep() && s.j.Mono()
      invariant forall k :: 0 <= k < m as int ==> s.j.WasRead(a as int + k, t, l.blks[k])
      invariant i == m ==> b == null
      invariant i < m && b != null ==> (a + i) as int in s.j.Cur() && b.v == s.j.Cur()[(a + i) as int] && |b.v| == 4096 && (Lasts(h, b) || Shown(s.j, b))
    {
      i := i - 1;
      var c := l.BlkAt(i);
      b := Lookup2(s.j, a + i, t, c);
    }
    if b != null { h.Keep(s.j.mu, s.j.cache, b); }
  }
  // The latest value of block a from the device; null, although the device did not fail: try again. The n-1
  // blocks behind it are read with it, as far as they are undamaged.
  method Fetch(s: Sys, ghost o: Owner, h: Hold, a: uint64, n: uint64, t: uint64) returns (ok: bool, b: Blk?)
    requires s.Inv() && !s.j.mu.held && s.j.home <= a && 0 < n && a as int + n as int <= s.j.sz as int && t <= s.j.trims
    modifies s.j, s.j.lg, s.j.ins, s.j.d, s.j.seal, s.j.cache, s.j.tree.pages, s.j.repr, s.j.mu, s.tbl, s`stab, s`logs
    ensures s.Inv() && s.j.Mono() && !s.j.mu.held && fresh(s.j.repr - old(s.j.repr)) && s.Kept(o)
    ensures b != null ==> ok && a as int in s.j.Cur() && b.v == s.j.Cur()[a as int] && |b.v| == 4096 && Lasts(h, b)
    ensures !ok ==> !s.j.Sound() || a as int in old(s.j.torn)
  {
    var l, m, bad;
    ok, l, m, bad := Device(s, o, h, a, n, t);
    if !ok { return false, null; }
    s.j.mu.Lock(); TYield(s, o);
    if m == 0 {
      var damaged := Confirm(s.j, a, t, bad);
      ok, b := !damaged, null;
    } else {
      b := Bring(s, h, a, l, m, t);
    }
    s.j.mu.Unlock();
  }
  // The latest value of block a, from memory or the device; null when the device failed, or the block was torn. If it is not in memory,
  // the n-1 blocks behind it are read with it, as far as there are so many.
  method Latest(s: Sys, ghost o: Owner, h: Hold, a: uint64, n: uint64) returns (b: Blk?)
    requires s.Inv() && !s.j.mu.held && s.j.home <= a < s.j.sz && 0 < n
    modifies s.j, s.j.lg, s.j.ins, s.j.d, s.j.seal, s.j.cache, s.j.tree.pages, s.j.repr, s.j.mu, s.tbl, s`stab, s`logs
    ensures s.Inv() && s.j.Mono() && !s.j.mu.held && fresh(s.j.repr - old(s.j.repr)) && s.Kept(o)
    ensures b != null ==> a as int in s.j.Cur() && b.v == s.j.Cur()[a as int] && |b.v| == 4096 && Lasts(h, b)
    ensures b == null ==> !s.j.Sound() || a as int in old(s.j.torn)
    decreases *
  {
    var t;
    b, t := Peek(s, o, h, a);
    var ok := true;
    var r := if s.j.sz - a < n then s.j.sz - a else n;
    while b == null && ok
      invariant 0 < r && a as int + r as int <= s.j.sz as int && s.j.home <= a
      invariant s.Inv() && s.j.Mono() && !s.j.mu.held && fresh(s.j.repr - old(s.j.repr)) && s.Kept(o) && t <= s.j.trims
      invariant b != null ==> a as int in s.j.Cur() && b.v == s.j.Cur()[a as int] && |b.v| == 4096 && Lasts(h, b)
      invariant !ok ==> !s.j.Sound() || a as int in old(s.j.torn)
      decreases *
    {
      ok, b := Fetch(s, o, h, a, r, t);
      if !ok && 1 < r { ok := true; }         // perhaps it is another that cannot be read
      r := 1;
      if ok && b == null { b, t := Peek(s, o, h, a); }
    }
  }
  // Brings the n blocks from a on to memory with one read, if the first is not there.
  method Ahead(s: Sys, ghost o: Owner, h: Hold, a: uint64, n: uint64)
    requires s.Inv() && !s.j.mu.held
    modifies s.j, s.j.lg, s.j.ins, s.j.d, s.j.seal, s.j.cache, s.j.tree.pages, s.j.repr, s.j.mu, s.tbl, s`stab, s`logs
    ensures s.Inv() && s.j.Mono() && !s.j.mu.held && fresh(s.j.repr - old(s.j.repr)) && s.Kept(o)
  {
    if n == 0 || a < s.j.home || s.j.sz <= a { return; }
    var m := if s.j.sz - a < n then s.j.sz - a else n;
    var b, t := Peek(s, o, h, a);
    if b == null { var ok; ok, b := Fetch(s, o, h, a, m, t); }
  }
}
