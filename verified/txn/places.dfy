// Where on a volume what kind of objects may lie. A transaction that is kept to these places touches nothing else,
// whatever it is asked for.
//
// The file system's procedures ask for nothing outside on a sound volume: that is proved. On a damaged one they may
// come to any pointer at all, and then are refused here (WILD) before anything is locked, read, or written.
include "txn.dfy"

module Places {
  import opened Machine
  import opened ByteSlice
  import opened TxnSpec
  import opened ObjectsM
  import opened History
  import opened JournalM
  import opened TxnSysM
  import opened TxnM

  const WILD: uint32 := 9       // a status beside those of TxnM: there is no such object

  // what a place holds
  const BITS: uint32 := 0
  const INODES: uint32 := 1
  const RECORDS: uint32 := 2    // 256 bytes, too, but no inodes
  const BLOCKS: uint32 := 3
  const NOTHING: uint32 := 4
  function KindOf(w: uint32): Kind { if w == BITS then KBit else if w == BLOCKS then KBlock else KInode }

  datatype Range = Range(start: uint64, end: uint64, what: uint32)
  // what lies in block a: the first of the ranges that has it says
  function What(l: seq<Range>, a: uint64): uint32 {
    if l == [] then NOTHING else if l[0].start <= a < l[0].end then l[0].what else What(l[1..], a)
  }
  // and so the kind of its objects
  function KindsOf(l: seq<Range>): Kinds { map a: uint64 | What(l, a) != NOTHING :: KindOf(What(l, a)) }

  // A list of places: the blocks from start on, before end, and then those of next.
  class Place {
    const start: uint64
    const end: uint64
    const what: uint32
    const next: Place?
    ghost const all: seq<Range>

    constructor (start: uint64, end: uint64, what: uint32, next: Place?)
      requires next != null ==> next.Valid()
      ensures Valid() && all == [Range(start, end, what)] + (if next == null then [] else next.all)
    {
      this.start := start; this.end := end; this.what := what; this.next := next;
      all := [Range(start, end, what)] + (if next == null then [] else next.all);
    }
    predicate Valid() decreases |all| {
      |all| > 0 && all[0] == Range(start, end, what) &&
      if next == null then |all| == 1 else all[1..] == next.all && next.Valid()
    }

    // does block a hold what w says?
    method Holds(a: uint64, w: uint32) returns (ok: bool)
      requires Valid() && w != NOTHING
      ensures ok <==> What(all, a) == w
    {
      var p: Place? := this;
      while p != null
        invariant p != null ==> p.Valid() && What(all, a) == What(p.all, a)
        invariant p == null ==> What(all, a) == NOTHING
        decreases if p == null then 0 else |p.all|
      {
        if p.start <= a && a < p.end { return p.what == w; }
        assert p.next == null ==> p.all[1..] == [];
        p := p.next;
      }
      ok := false;
    }

    // are the n blocks from a on blocks, and if not, which is none?
    method HoldsAll(a: uint64, n: uint64) returns (ok: bool, at: uint64)
      requires Valid()
      ensures ok <==> AllBlocks(all, a, n)
    {
      ok, at := true, a;
      if 0x1_0000_0000_0000 < a || 0x1_0000_0000_0000 - a < n { ok := false; return; }
      while at < a + n
        invariant a <= at <= a + n && ok && AllBlocks(all, a, at - a)
      {
        ok := Holds(at, BLOCKS);
        if !ok { return; }
        at := at + 1;
      }
    }

    // the first place that holds what w says; (0, 0): there is none
    method First(w: uint32) returns (start: uint64, end: uint64)
      requires Valid()
      ensures (start, end) == FirstOf(all, w)
    {
      var p: Place? := this;
      while p != null
        invariant p != null ==> p.Valid() && FirstOf(all, w) == FirstOf(p.all, w)
        invariant p == null ==> FirstOf(all, w) == (0, 0)
        decreases if p == null then 0 else |p.all|
      {
        if p.what == w { return p.start, p.end; }
        assert p.next == null ==> p.all[1..] == [];
        p := p.next;
      }
      start, end := 0, 0;
    }

    // the transactions of s are kept to these places
    predicate Over(s: System) reads s { Valid() && s.kinds == KindsOf(all) }

    // the transactions over j that are kept to them; null: these are no places of j
    method Open(j: Journal) returns (s: System?)
      requires Valid() && j.Inv()
      ensures s != null ==> fresh(s) && fresh(s.locks) && s.Inv() && s.journal == j && Over(s) &&
        (|j.states| == 1 ==> Complete(s.logs, j.states))
      ensures s == null <==> !Within(all, j.home, j.size)
    {
      var p: Place? := this;
      while p != null
        invariant p != null ==> p.Valid() && (Within(all, j.home, j.size) <==> Within(p.all, j.home, j.size))
        invariant p == null ==> Within(all, j.home, j.size)
        decreases if p == null then 0 else |p.all|
      {
        if p.start < p.end && (p.start < j.home || j.size < p.end || 0x1_0000_0000_0000 < p.end) { return null; }
        assert p.next == null ==> p.all[1..] == [];
        p := p.next;
      }
      forall a: uint64 | a in KindsOf(all) ensures j.home <= a < j.size && a < 0x1_0000_0000_0000 {
        Inside(all, j.home, j.size, a);
      }
      s := TxnSysM.Open(j, KindsOf(all));
    }

    // an object of 256 bytes: an inode, or a record
    method ReadInode(t: Txn, w: uint32, a: uint64, off: uint64, excl: bool) returns (st: uint32, b: Bytes?)
      requires Over(t.system) && t.Inv() && !t.appended && !t.system.journal.mutex.held && (w == INODES || w == RECORDS)
      modifies t, t.system.journal, t.system.journal.logger, t.system.journal.installer, t.system.journal.disk,
        t.system.journal.seal, t.system.journal.cache, t.system.journal.tree.pages, t.system.journal.repr,
        t.system.journal.mutex, t.system.locks, t.system`lastStable, t.system`logs
      ensures t.Inv() && t.Steady() && t.system.journal.Mono() && !t.system.journal.mutex.held &&
        fresh(t.system.journal.repr - old(t.system.journal.repr)) && t.Answered(st)
      ensures st == WILD <==> !(What(all, a) == w && OffOk(KInode, off))
      ensures st != WILD ==> a in t.system.kinds && a < 0x1_0000_0000_0000 && off < 32768
      ensures st == WILD ==> b == null &&
        unchanged(t.buffer, t.system, t.system.journal, t.system.journal.disk, t.system.locks) && t.log == old(t.log)
      ensures st == OK ==> b != null && fresh(b) && |b.data| == 256 && t.system.locks.Holds(t.owner, Key(a, off)) &&
        t.View(Key(a, off)) == ObjData(b.data)
      ensures st == OK || st == WILD || st == IOERR || (st == CONFLICT && t.Below(Key(a, off)))
      ensures t.log == if st == OK then old(t.log) + [OpRead(Key(a, off), ObjData(b.data))] else old(t.log)
      decreases *
    {
      var ok := Holds(a, w);
      if !ok || off >= 32768 || off % 2048 != 0 { t.CutShort(WILD); return WILD, null; }
      st, b := t.ReadInode(a, off, excl);
    }
    method ReadBlock(t: Txn, a: uint64, excl: bool) returns (st: uint32, b: Blk?)
      requires Over(t.system) && t.Inv() && !t.appended && !t.system.journal.mutex.held
      modifies t, t.system.journal, t.system.journal.logger, t.system.journal.installer, t.system.journal.disk,
        t.system.journal.seal, t.system.journal.cache, t.system.journal.tree.pages, t.system.journal.repr,
        t.system.journal.mutex, t.system.locks, t.system`lastStable, t.system`logs
      ensures t.Inv() && t.Steady() && t.system.journal.Mono() && !t.system.journal.mutex.held &&
        fresh(t.system.journal.repr - old(t.system.journal.repr)) && t.Answered(st)
      ensures st == WILD <==> What(all, a) != BLOCKS
      ensures st != WILD ==> a in t.system.kinds && a < 0x1_0000_0000_0000
      ensures st == WILD ==> b == null &&
        unchanged(t.buffer, t.system, t.system.journal, t.system.journal.disk, t.system.locks) && t.log == old(t.log)
      ensures st == OK ==> b != null && |b.v| == 4096 && t.system.locks.Holds(t.owner, Key(a, 0)) &&
        t.View(Key(a, 0)) == ObjData(b.v)
      ensures st == OK || st == WILD || st == IOERR || (st == CONFLICT && t.Below(Key(a, 0)))
      ensures t.log == if st == OK then old(t.log) + [OpRead(Key(a, 0), ObjData(b.v))] else old(t.log)
      decreases *
    {
      var ok := Holds(a, BLOCKS);
      if !ok { t.CutShort(WILD); return WILD, null; }
      st, b := t.ReadBlock(a, excl);
    }
    // the n blocks from a on, which are added to p; at: the one for which that is not so
    method ReadBlocks(t: Txn, a: uint64, n: uint64, p: Pieces) returns (st: uint32, at: uint64, ghost bs: seq<Blk>)
      requires Over(t.system) && t.Inv() && !t.appended && !t.system.journal.mutex.held
      modifies p, t, t.system.journal, t.system.journal.logger, t.system.journal.installer, t.system.journal.disk,
        t.system.journal.seal, t.system.journal.cache, t.system.journal.tree.pages, t.system.journal.repr,
        t.system.journal.mutex, t.system.locks, t.system`lastStable, t.system`logs
      ensures t.Inv() && t.Steady() && t.system.journal.Mono() && !t.system.journal.mutex.held &&
        fresh(t.system.journal.repr - old(t.system.journal.repr)) && t.Answered(st)
      ensures st == WILD <==> !AllBlocks(all, a, n)
      ensures st != WILD ==> a as int + n as int <= 0x1_0000_0000_0000
      ensures st == WILD ==> unchanged(t.buffer, t.system, t.system.journal, t.system.journal.disk, t.system.locks,
        p) && t.log == old(t.log)
      ensures st == OK ==> |bs| == n as int && t.Saw(a, bs) && p.data == old(p.data) + Joined(bs)
      ensures st == OK || st == WILD || st == IOERR || (st == CONFLICT && a <= at < a + n && t.Below(Key(at, 0)))
      ensures t.log == if st == OK then old(t.log) + Reads(a, bs) else old(t.log)
      decreases *
    {
      var ok;
      ok, at := HoldsAll(a, n);
      if !ok { t.CutShort(WILD); return WILD, at, []; }
      st, at, bs := t.ReadBlocks(a, n, p);
    }
    method ReadBit(t: Txn, a: uint64, off: uint64, excl: bool) returns (st: uint32, b: bool)
      requires Over(t.system) && t.Inv() && !t.appended && !t.system.journal.mutex.held
      modifies t, t.system.journal, t.system.journal.logger, t.system.journal.installer, t.system.journal.disk,
        t.system.journal.seal, t.system.journal.cache, t.system.journal.tree.pages, t.system.journal.repr,
        t.system.journal.mutex, t.system.locks, t.system`lastStable, t.system`logs
      ensures t.Inv() && t.Steady() && t.system.journal.Mono() && !t.system.journal.mutex.held &&
        fresh(t.system.journal.repr - old(t.system.journal.repr)) && t.Answered(st)
      ensures st == WILD <==> !(What(all, a) == BITS && OffOk(KBit, off))
      ensures st != WILD ==> a in t.system.kinds && a < 0x1_0000_0000_0000 && off < 32768
      ensures st == WILD ==> unchanged(t.buffer, t.system, t.system.journal, t.system.journal.disk, t.system.locks) &&
        t.log == old(t.log)
      ensures st == OK ==> t.system.locks.Holds(t.owner, Key(a, off)) && t.View(Key(a, off)) == ObjBit(b)
      ensures st == OK || st == WILD || st == IOERR || (st == CONFLICT && t.Below(Key(a, off)))
      ensures t.log == if st == OK then old(t.log) + [OpRead(Key(a, off), ObjBit(b))] else old(t.log)
      decreases *
    {
      var ok := Holds(a, BITS);
      if !ok || off >= 32768 { t.CutShort(WILD); return WILD, false; }
      st, b := t.ReadBit(a, off, excl);
    }

    // writes b to an object of 256 bytes
    method WriteInode(t: Txn, w: uint32, a: uint64, off: uint64, b: Bytes) returns (st: uint32)
      requires Over(t.system) && t.Inv() && !t.appended && !t.system.journal.mutex.held &&
        (w == INODES || w == RECORDS) && |b.data| == 256
      modifies t, t.system.journal, t.system.journal.logger, t.system.journal.installer, t.system.journal.disk,
        t.system.journal.seal, t.system.journal.cache, t.system.journal.tree.pages, t.system.journal.repr,
        t.system.journal.mutex`settled, t.system.locks, t.system`lastStable, t.system`logs, t.buffer
      ensures t.Inv() && t.Steady() && t.system.journal.Mono() &&
        fresh(t.system.journal.repr - old(t.system.journal.repr)) && t.Answered(st)
      ensures st == WILD <==> !(What(all, a) == w && OffOk(KInode, off))
      ensures st != WILD ==> a in t.system.kinds && a < 0x1_0000_0000_0000 && off < 32768
      ensures st == WILD ==> unchanged(t.buffer, t.system, t.system.journal, t.system.journal.disk, t.system.locks) &&
        t.log == old(t.log)
      ensures st == OK ==> t.buffer.objects == old(t.buffer.objects)[Key(a, off) := ObjData(b.data)]
      ensures st != OK ==> t.buffer.objects == old(t.buffer.objects)
      ensures st == OK || st == WILD || (st == CONFLICT && t.Below(Key(a, off)))
      ensures t.log == if st == OK then old(t.log) + [OpWrite(Key(a, off), ObjData(b.data))] else old(t.log)
    {
      var ok := Holds(a, w);
      if !ok || off >= 32768 || off % 2048 != 0 { t.CutShort(WILD); return WILD; }
      st := t.WriteInode(a, off, b);
    }
    // record i: where it is, and what it is; it is locked exclusively
    method ReadRecord(t: Txn, i: uint64) returns (st: uint32, a: uint64, off: uint64, b: Bytes?)
      requires Over(t.system) && t.Inv() && !t.appended && !t.system.journal.mutex.held
      modifies t, t.system.journal, t.system.journal.logger, t.system.journal.installer, t.system.journal.disk,
        t.system.journal.seal, t.system.journal.cache, t.system.journal.tree.pages, t.system.journal.repr,
        t.system.journal.mutex, t.system.locks, t.system`lastStable, t.system`logs
      ensures t.Inv() && t.Steady() && t.system.journal.Mono() && !t.system.journal.mutex.held &&
        fresh(t.system.journal.repr - old(t.system.journal.repr)) && t.Answered(st)
      ensures st == WILD ==> unchanged(t.buffer, t.system, t.system.journal, t.system.journal.disk, t.system.locks) &&
        t.log == old(t.log)
      ensures st != WILD ==> IsRecord(all, i, a, off) && a in t.system.kinds && a < 0x1_0000_0000_0000
      ensures st == OK ==> b != null && fresh(b) && |b.data| == 256 && t.system.locks.Holds(t.owner, Key(a, off)) &&
        t.View(Key(a, off)) == ObjData(b.data)
      decreases *
    {
      var ok;
      ok, a, off := Record(i);
      if !ok { t.CutShort(WILD); return WILD, a, off, null; }
      st, b := ReadInode(t, RECORDS, a, off, true);
    }
    method WriteRecord(t: Txn, i: uint64, b: Bytes) returns (st: uint32, a: uint64, off: uint64)
      requires Over(t.system) && t.Inv() && !t.appended && !t.system.journal.mutex.held && |b.data| == 256
      modifies t, t.system.journal, t.system.journal.logger, t.system.journal.installer, t.system.journal.disk,
        t.system.journal.seal, t.system.journal.cache, t.system.journal.tree.pages, t.system.journal.repr,
        t.system.journal.mutex`settled, t.system.locks, t.system`lastStable, t.system`logs, t.buffer
      ensures t.Inv() && t.Steady() && t.system.journal.Mono() &&
        fresh(t.system.journal.repr - old(t.system.journal.repr)) && t.Answered(st)
      ensures st == WILD ==> unchanged(t.buffer, t.system, t.system.journal, t.system.journal.disk, t.system.locks) &&
        t.log == old(t.log)
      ensures st != WILD ==> IsRecord(all, i, a, off) && a in t.system.kinds && a < 0x1_0000_0000_0000
      ensures t.buffer.objects == if st == OK then old(t.buffer.objects)[Key(a, off) := ObjData(b.data)]
        else old(t.buffer.objects)
    {
      var ok;
      ok, a, off := Record(i);
      if !ok { t.CutShort(WILD); return WILD, a, off; }
      st := WriteInode(t, RECORDS, a, off, b);
    }
    method Record(i: uint64) returns (ok: bool, a: uint64, off: uint64)
      requires Valid()
      ensures off < 32768 && (ok ==> IsRecord(all, i, a, off))
    {
      var start, end := First(RECORDS);
      ok, a, off := true, end, i % 16 * 2048;
      if end <= start || end - start <= i / 16 { ok := false; } else { a := start + i / 16; }
    }
    // takes b over unless it fails
    method WriteBlock(t: Txn, a: uint64, b: Bytes) returns (st: uint32)
      requires Over(t.system) && t.Inv() && !t.appended && !t.system.journal.mutex.held && |b.data| == 4096
      modifies t, t.system.journal, t.system.journal.logger, t.system.journal.installer, t.system.journal.disk,
        t.system.journal.seal, t.system.journal.cache, t.system.journal.tree.pages, t.system.journal.repr,
        t.system.journal.mutex`settled, t.system.locks, t.system`lastStable, t.system`logs, t.buffer, b
      ensures t.Inv() && t.Steady() && t.system.journal.Mono() &&
        fresh(t.system.journal.repr - old(t.system.journal.repr)) && t.Answered(st)
      ensures st == WILD <==> What(all, a) != BLOCKS
      ensures st != WILD ==> a in t.system.kinds && a < 0x1_0000_0000_0000
      ensures st == WILD ==> unchanged(t.buffer, t.system, t.system.journal, t.system.journal.disk, t.system.locks) &&
        t.log == old(t.log)
      ensures st == OK ==> t.buffer.objects == old(t.buffer.objects)[Key(a, 0) := ObjData(old(b.data))] && b.data == []
      ensures st != OK ==> t.buffer.objects == old(t.buffer.objects)
      ensures st == OK || st == WILD || (st == CONFLICT && t.Below(Key(a, 0)))
      ensures t.log == if st == OK then old(t.log) + [OpWrite(Key(a, 0), ObjData(old(b.data)))] else old(t.log)
    {
      var ok := Holds(a, BLOCKS);
      if !ok { t.CutShort(WILD); return WILD; }
      st := t.WriteBlock(a, b);
    }
    method WriteBit(t: Txn, a: uint64, off: uint64, b: bool) returns (st: uint32)
      requires Over(t.system) && t.Inv() && !t.appended && !t.system.journal.mutex.held
      modifies t, t.system.journal, t.system.journal.logger, t.system.journal.installer, t.system.journal.disk,
        t.system.journal.seal, t.system.journal.cache, t.system.journal.tree.pages, t.system.journal.repr,
        t.system.journal.mutex`settled, t.system.locks, t.system`lastStable, t.system`logs, t.buffer
      ensures t.Inv() && t.Steady() && t.system.journal.Mono() &&
        fresh(t.system.journal.repr - old(t.system.journal.repr)) && t.Answered(st)
      ensures st == WILD <==> !(What(all, a) == BITS && OffOk(KBit, off))
      ensures st != WILD ==> a in t.system.kinds && a < 0x1_0000_0000_0000 && off < 32768
      ensures st == WILD ==> unchanged(t.buffer, t.system, t.system.journal, t.system.journal.disk, t.system.locks) &&
        t.log == old(t.log)
      ensures st == OK ==> t.buffer.objects == old(t.buffer.objects)[Key(a, off) := ObjBit(b)]
      ensures st != OK ==> t.buffer.objects == old(t.buffer.objects)
      ensures st == OK || st == WILD || (st == CONFLICT && t.Below(Key(a, off)))
      ensures t.log == if st == OK then old(t.log) + [OpWrite(Key(a, off), ObjBit(b))] else old(t.log)
    {
      var ok := Holds(a, BITS);
      if !ok || off >= 32768 { t.CutShort(WILD); return WILD; }
      st := t.WriteBit(a, off, b);
    }
    // So what a transaction has written lies in these places, each object in one of its kind.
    lemma Kept(t: Txn, k: uint64)
      requires Over(t.system) && t.Inv() && k in t.buffer.objects
      ensures What(all, KeyBlk(k)) != NOTHING && OffOk(KindOf(What(all, KeyBlk(k))), KeyOff(k)) &&
        ObjOk(KindOf(What(all, KeyBlk(k))), t.buffer.objects[k])
    { }
  }

  function FirstOf(l: seq<Range>, w: uint32): (uint64, uint64) {
    if l == [] then (0, 0) else if l[0].what == w then (l[0].start, l[0].end) else FirstOf(l[1..], w)
  }
  // record i lies at bit offset off of block a
  predicate IsRecord(l: seq<Range>, i: uint64, a: uint64, off: uint64)
  {
    var (start, end) := FirstOf(l, RECORDS);
    start <= a < end && a as int == start as int + i as int / 16 && off == i % 16 * 2048
  }
  lemma RecordsApart(l: seq<Range>, i: uint64, k: uint64, a: uint64, off: uint64)
    requires IsRecord(l, i, a, off) && IsRecord(l, k, a, off)
    ensures i == k
  { }

  // a list of places with one more before the others, if there are any
  method Before(start: uint64, end: uint64, what: uint32, others: Place?) returns (p: Place)
    requires others != null ==> others.Valid()
    ensures p.Valid() && p.all == [Range(start, end, what)] + (if others == null then [] else others.all)
  { p := new Place(start, end, what, others); }

  // the n blocks from a on are blocks
  predicate AllBlocks(l: seq<Range>, a: uint64, n: uint64) {
    a as int + n as int <= 0x1_0000_0000_0000 && forall b: uint64 {:trigger What(l, b)} :: a <= b < a + n ==>
      What(l, b) == BLOCKS
  }

  // all ranges are home blocks
  predicate Within(l: seq<Range>, lo: uint64, hi: uint64) {
    l == [] || ((l[0].start < l[0].end ==> lo <= l[0].start && l[0].end <= hi && l[0].end <= 0x1_0000_0000_0000) &&
      Within(l[1..], lo, hi))
  }
  lemma Inside(l: seq<Range>, lo: uint64, hi: uint64, a: uint64)
    requires Within(l, lo, hi) && What(l, a) != NOTHING
    ensures lo <= a < hi && a < 0x1_0000_0000_0000
  { if !(l[0].start <= a < l[0].end) { Inside(l[1..], lo, hi, a); } }
}
