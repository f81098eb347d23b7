// TRUSTED: the device, and what a crash may leave on it. Go: internal/runtime/ddisk.
//
// The model is the weakest device that Tansy runs on. Per block, `poss` is the set
// of contents that a crash may leave. A write may be torn in any way, so from then on
// anything is possible in that block, until a barrier that began after the write
// returned leaves only what was written. Writes of different blocks reach the
// medium in any order. The only atomic write is that of a header, which changes
// nothing beyond the first 512-byte sector of its block.
//
// Errors: after the first failed write or barrier (`bad`), all further ones fail. A
// failed write leaves anything in its blocks. A failed barrier promises nothing: what
// was not durable before it may even be read back as it was before it was written.
//
// Another server may take the volume. So what this server cannot take back it writes only if it has looked of late
// whether the volume is still its own: see Guard.
include "bytes.s.dfy"
include "clock.s.dfy"

module {:extern "ddisk"} DiskS {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened Clocks

  type BV = seq<byte>               // contents of a block
  type Img = seq<BV>                // contents of a device
  type Poss = seq<iset<BV>>         // per block: what a crash may leave there

  predicate {:axiom} Saw(a: int, b: BV)
  // d refused a read, or returned what it did not hold, at some time. (Nothing else says so: what follows if not,
  // follows for a device that never does.)
  predicate {:axiom} Erred(d: Disk)
  function Any(): iset<BV> { iset x: BV | |x| == 4096 }
  predicate CrashImg(poss: Poss, s: Img) {
    |s| == |poss| && forall a :: 0 <= a < |s| ==> s[a] in poss[a]
  }
  // p allows no more than q
  predicate SubPoss(p: Poss, q: Poss) {
    |p| == |q| && forall a :: 0 <= a < |p| ==> p[a] <= q[a]
  }
  // blocks a..a+n are being written
  function Fuzzy(poss: Poss, a: int, n: int): (r: Poss)
    requires 0 <= a && 0 <= n && a + n <= |poss|
    ensures |r| == |poss|
    ensures forall x :: 0 <= x < |poss| ==> r[x] == if a <= x < a + n then Any() else poss[x]
  { if n == 0 then poss else Fuzzy(poss, a, n-1)[a + n - 1 := Any()] }
  datatype Role = Recovering | Logging | Installing
  predicate Owns(owner: map<int, Role>, r: Role, a: int) { a in owner && owner[a] == r }
  // x and y differ at most within their first sector
  predicate SameTail(x: BV, y: BV) { |x| == |y| == 4096 && x[512..] == y[512..] }

  // Whose the volume is. The mark of its owner stands in block `header`, or, if that has none of `marks`, in block
  // `copy`; `ours` are this server's marks. What is written outside of `log` counts whoever wrote it.
  datatype Guard = Guard(log: iset<int>, header: int, copy: int, marks: iset<BV>, ours: iset<BV>)
  // After the reading r was taken a read of block a from the medium began that returned b; or one that failed.
  predicate {:axiom} Returned(d: Disk, a: int, r: Reading, b: BV)
  predicate {:axiom} Refused(d: Disk, a: int, r: Reading)
  // After r a look began that saw no mark but ours. (What cannot be read tells nothing.)
  predicate Looked(d: Disk, g: Guard, r: Reading) {
    (exists b :: Returned(d, g.header, r, b) && b in g.marks && b in g.ours) ||
    ((Refused(d, g.header, r) || exists b :: Returned(d, g.header, r, b) && b !in g.marks) &&
      (Refused(d, g.copy, r) || exists b :: Returned(d, g.copy, r, b) && b in g.ours))
  }
  const LookBound: int := 1_000_000_000 // nanoseconds
  // The reading `now` was taken for one write, which is yet to come, and no later than the bound after `since`, which
  // was taken before the last look began.
  predicate Timely(d: Disk, g: Guard, since: Reading?, now: Reading?) reads now {
    since != null && now != null && !now.used && since.clock == now.clock && Looked(d, g, since) &&
      since.at <= now.at <= since.at + LookBound
  }

  // The memory of block b is put to no other use before k changes; the same of all blocks of l. That holds of whatever
  // keeps blocks: a map, a cache, a Hold, and a list that no Hold has taken, of its own blocks.
  predicate {:axiom} Keeps(k: object, b: Blk) reads k
  predicate {:axiom} KeepsAll(k: object, l: BList) reads k

  // An immutable list of blocks and their addresses.
  class {:extern "BList"} BList {         // tested: ddisk.TestContents
    ghost const addrs: seq<int>
    ghost const blks: seq<BV>
    ghost var taken: bool                 // a Hold has taken it (hold.s.dfy)
    method {:extern "Len"} Len() returns (n: uint64)
      ensures n as int == |blks|
    method {:extern "AddrAt"} AddrAt(i: uint64) returns (a: uint64)
      requires i as int < |addrs| ensures a as int == addrs[i as int]
    // k: what keeps its blocks; null: b is not seen when the mutex is given back, nor any other step is taken
    method {:extern "BlkAt"} BlkAt(i: uint64, ghost k: object?) returns (b: Blk)
      requires i as int < |blks| && (k != null ==> KeepsAll(k, this))
      ensures b.v == blks[i as int] && (k != null ==> Keeps(k, b))
  }

  // tested: ddisk.TestContents, TestErrorsStick, TestStop; Barrier: TestBarrierIsADeviceBarrier
  class {:extern "Disk"} Disk {
    ghost var poss: Poss
    ghost var cur: Img
    ghost var bad: bool
    ghost var ok: iset<Img>         // crash condition: the images a crash is allowed to leave
    ghost var owner: map<int, Role>
    ghost var guard: Guard

    // Role r may write n blocks from a on: a recovery may, and else it is to the log, or there was a look.
    predicate Allowed(r: Role, a: int, n: int, since: Reading?, now: Reading?) reads this, now {
      r == Recovering || (forall x :: a <= x < a + n ==> x in guard.log) || Timely(this, guard, since, now)
    }
    predicate Valid() reads this {
      |cur| == |poss| < 0x8_0000_0000_0000 &&
      (forall a :: 0 <= a < |cur| ==> cur[a] in poss[a] && |cur[a]| == 4096) &&
      forall s :: CrashImg(poss, s) ==> s in ok
    }
    // what every write and barrier is
    twostate predicate Operation(ok_: bool) reads this {
      Valid() && |cur| == |old(cur)| && bad == !ok_ && (old(bad) ==> !ok_)
    }
    method {:extern "Size"} Size() returns (n: uint64)
      requires Valid()
      ensures n as int == |cur|

    // Block a, from the medium itself: any bytes at all, unless the device was honest.
    method {:extern "Read"} Read(a: uint64) returns (ok_: bool, b: Blk, ghost honest: bool)
      requires Valid() && a as int < |cur| ensures ok_ ==> |b.v| == 4096 && (honest ==> b.v in poss[a as int])
      ensures (ok_ && honest) || Erred(this)
      ensures forall r: Reading {:trigger Returned(this, a as int, r, b.v)} {:trigger Refused(this, a as int, r)} ::
        old(allocated(r)) ==> if ok_ then Returned(this, a as int, r, b.v) else Refused(this, a as int, r)
    // n blocks from a on. A read that runs beside a write of the same block may see any mixture, hence poss.
    method {:extern "ReadRun"} ReadRun(a: uint64, n: uint64) returns (ok_: bool, l: BList)
      requires Valid() && a as int + n as int <= |cur| ensures ok_ || Erred(this)
      ensures ok_ ==> fresh(l) && !l.taken && KeepsAll(l, l) && |l.blks| == n as int &&
        forall i :: 0 <= i < n as int ==> l.blks[i] in poss[a as int + i] && |l.blks[i]| == 4096
    // the same from a device that may lie; Saw: that is what it returned for this block, at some time
    method {:extern "ReadAny"} ReadAny(a: uint64, n: uint64) returns (ok_: bool, l: BList, ghost honest: bool)
      requires Valid() && a as int + n as int <= |cur| ensures (ok_ && honest) || Erred(this)
      ensures ok_ ==> fresh(l) && !l.taken && KeepsAll(l, l) && |l.blks| == n as int &&
        forall i :: 0 <= i < n as int ==>
        |l.blks[i]| == 4096 && Saw(a as int + i, l.blks[i]) && (honest ==> l.blks[i] in poss[a as int + i])
    // n blocks, from l[i] on, to the blocks from a on, in any order; k keeps them
    method {:extern "WriteRun"} WriteRun(ghost r: Role, a: uint64, l: BList, ghost k: object, i: uint64, n: uint64,
      ghost since: Reading?, ghost now: Reading?) returns (ok_: bool)
      requires KeepsAll(k, l)
      requires Valid() && a as int + n as int <= |cur| && i as int + n as int <= |l.blks|
      requires forall x :: i as int <= x < i as int + n as int ==> |l.blks[x]| == 4096
      requires forall x :: a as int <= x < a as int + n as int ==> Owns(owner, r, x)
      requires forall s :: CrashImg(Fuzzy(poss, a as int, n as int), s) ==> s in ok
      requires Allowed(r, a as int, n as int, since, now)
      modifies this`poss, this`cur, this`bad, now
      ensures now != null ==> now.used
      ensures Operation(ok_) && poss == Fuzzy(old(poss), a as int, n as int)
      ensures forall x :: 0 <= x < |cur| && !(a as int <= x < a as int + n as int) ==> cur[x] == old(cur)[x]
      ensures ok_ ==> forall x :: a as int <= x < a as int + n as int ==> cur[x] == l.blks[i as int + (x - a as int)]
    method {:extern "Write"} Write(ghost r: Role, a: uint64, b: Blk, ghost since: Reading?, ghost now: Reading?)
      returns (ok_: bool)
      requires Valid() && a as int < |cur| && |b.v| == 4096 && Owns(owner, r, a as int)
      requires forall s :: CrashImg(Fuzzy(poss, a as int, 1), s) ==> s in ok
      requires Allowed(r, a as int, 1, since, now)
      modifies this`poss, this`cur, this`bad, now
      ensures now != null ==> now.used
      ensures Operation(ok_) && poss == Fuzzy(old(poss), a as int, 1)
      ensures (ok_ ==> cur[a as int] == b.v) && forall x :: 0 <= x < |cur| && x != a as int ==> cur[x] == old(cur)[x]
    // a write within one sector: the old contents or the new
    method {:extern "WriteSector"} WriteSector(ghost r: Role, a: uint64, b: Blk, ghost since: Reading?,
      ghost now: Reading?) returns (ok_: bool)
      requires Valid() && a as int < |cur| && Owns(owner, r, a as int)
      requires forall x :: x in poss[a as int] ==> SameTail(x, b.v)
      requires forall s :: CrashImg(poss[a as int := poss[a as int] + iset{b.v}], s) ==> s in ok
      requires Allowed(r, a as int, 1, since, now)
      modifies this`poss, this`cur, this`bad, now
      ensures now != null ==> now.used
      ensures Operation(ok_) && poss == old(poss)[a as int := old(poss)[a as int] + iset{b.v}]
      ensures (ok_ ==> cur[a as int] == b.v) && forall x :: 0 <= x < |cur| && x != a as int ==> cur[x] == old(cur)[x]
    // makes durable what role r owns
    method {:extern "Barrier"} Barrier(ghost r: Role) returns (ok_: bool)
      requires Valid()
      modifies this`poss, this`cur, this`bad
      ensures Operation(ok_) && SubPoss(poss, old(poss))
      ensures ok_ ==> cur == old(cur) && forall a :: 0 <= a < |cur| && Owns(owner, r, a) ==> poss[a] == iset{cur[a]}
    // as if a barrier had failed: nothing is written or durable any more
    method {:extern "Stop"} Stop()
      modifies this`bad ensures bad
    ghost method Take(r: Role, s: set<int>)
      requires forall a :: a in s ==> a !in owner
      modifies this`owner
      ensures forall x, a :: Owns(owner, x, a) <==> Owns(old(owner), x, a) || (x == r && a in s)
    { owner := map a | a in owner.Keys + s :: if a in s then r else owner[a]; }
    ghost method Leave(r: Role)
      modifies this`owner ensures forall x, a :: Owns(owner, x, a) <==> Owns(old(owner), x, a) && x != r
    { owner := map a | a in owner && owner[a] != r :: owner[a]; }
    // before the server begins to serve
    ghost method SetGuard(g: Guard)
      requires forall r, a :: Owns(owner, r, a) ==> r == Recovering
      modifies this`guard ensures guard == g
    { guard := g; }
    ghost method SetOk(o: iset<Img>)
      requires Valid() && forall s :: CrashImg(poss, s) ==> s in o
      modifies this`ok ensures ok == o && Valid()
    { ok := o; }
  }
}
