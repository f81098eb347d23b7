// From the history of the transactions to the contract that the file system is verified against, trusted/txn.s.dfy:
// there a procedure is a sequential program over `data`, the volume as its transaction sees it.
//
// Let l be what a transaction did, and st the state at its place in the history (serial.dfy): it found in st what it
// found. If `data` is st when the procedure begins (Is), then each of its calls kept the contract: every read returned
// what `data` held then (Kept), every write replaced one object of it (Written), and with the last one `data` is the
// state after its commit.
//
// What is left to believe is of programs, not of transactions. Which st it is, is known at the commit point alone, when
// all calls have returned; the proof of a procedure speaks of a `data` that is there from the beginning, but of any,
// and it does not look at it but through these calls. So it holds of this one.
include "history.dfy"

module Bridge {
  import opened Machine
  import opened ByteSlice
  import opened TxnSpec
  import opened ObjectsM
  import opened History
  import TxnS

  type Data = map<Addr, Object>
  predicate OkAddr(kinds: Kinds, a: Addr) { a.blkno in kinds && OffOk(kinds[a.blkno], a.off) }
  predicate OkKinds(kinds: Kinds) { forall a :: a in kinds ==> a < 0x1_0000_0000_0000 }   // System.Inv
  function AddrOf(k: uint64): Addr { Addr(KeyBlk(k), KeyOff(k)) }
  // data is the state st of the volume
  predicate Is(kinds: Kinds, data: Data, st: Vol) {
    OkKinds(kinds) && forall a: Addr {:trigger a in data} | OkAddr(kinds, a) :: a in data &&
      data[a] == Cell(st, kinds, Key(a.blkno, a.off))
  }
  // data after the calls l, as the contracts of the writes have it
  function Written(l: Log, data: Data): Data {
    if l == [] then data else var e := l[|l|-1];
    if e.OpWrite? then Written(l[..|l|-1], data)[AddrOf(e.key) := e.value] else Written(l[..|l|-1], data)
  }
  // the objects that the calls l write
  function Touched(l: Log): set<Addr> {
    if l == [] then {} else Touched(l[..|l|-1]) + if l[|l|-1].OpWrite? then {AddrOf(l[|l|-1].key)} else {}
  }
  // each read of l returned what the contracts of the reads say
  predicate Kept(l: Log, data: Data) {
    forall i {:trigger l[i]} :: 0 <= i < |l| && l[i].OpRead? ==> AddrOf(l[i].key) in Written(l[..i], data) &&
      Written(l[..i], data)[AddrOf(l[i].key)] == l[i].value
  }

  lemma Keys(k: uint64, a: Addr)
    requires a.blkno < 0x1_0000_0000_0000 && a.off < 32768
    ensures AddrOf(k) == a <==> k == Key(a.blkno, a.off)
  {}
  lemma WrittenSo(kinds: Kinds, l: Log, data: Data, st: Vol, a: Addr)
    requires Is(kinds, data, st) && OkAddr(kinds, a)
    ensures a in Written(l, data) && Written(l, data)[a] == After(kinds, l, st, Key(a.blkno, a.off))
  {
    if l != [] {
      WrittenSo(kinds, l[..|l|-1], data, st, a);
      Keys(l[|l|-1].key, a);
    }
  }

  // The bridge: what a transaction found at its place, to the contract of its calls; and what it made there, to `data`
  // at its end.
  lemma Contract(kinds: Kinds, l: Log, data: Data, st: Vol)
    requires Is(kinds, data, st) && Finds(kinds, l, st)
    ensures Kept(l, data)
  {
    forall i | 0 <= i < |l| && l[i].OpRead? ensures AddrOf(l[i].key) in Written(l[..i], data) &&
      Written(l[..i], data)[AddrOf(l[i].key)] == l[i].value {
      assert OkAddr(kinds, AddrOf(l[i].key));
      WrittenSo(kinds, l[..i], data, st, AddrOf(l[i].key));
      Keys(l[i].key, AddrOf(l[i].key));
    }
  }
  lemma AtCommit(kinds: Kinds, l: Log, data: Data, st: Vol, st1: Vol)
    requires Is(kinds, data, st) && Leads(kinds, l, st, st1)
    ensures Kept(l, data) && Is(kinds, Written(l, data), st1)
  {
    Contract(kinds, l, data, st);
    forall a: Addr | OkAddr(kinds, a) ensures a in Written(l, data) &&
      Written(l, data)[a] == Cell(st1, kinds, Key(a.blkno, a.off)) {
      WrittenSo(kinds, l, data, st, a);
      assert OkKey(kinds, Key(a.blkno, a.off));
    }
  }

  // there is such a `data` for each state
  function DataOf(kinds: Kinds, st: Vol): Data {
    var s := set b: uint64, o: uint64 | b in kinds && 0 <= o < 32768 && OffOk(kinds[b], o) :: Addr(b, o);
    map a | a in s && OkAddr(kinds, a) && a.blkno < 0x1_0000_0000_0000 :: Cell(st, kinds, Key(a.blkno, a.off))
  }
  lemma DataIs(kinds: Kinds, st: Vol)
    requires OkKinds(kinds)
    ensures Is(kinds, DataOf(kinds, st), st)
  {}

  // ---- the contracts, word for word ----
  // call number i of l begins
  predicate Before(j: TxnS.VolumeObjects, l: Log, i: int, data: Data) reads j {
    0 <= i <= |l| && j.data == Written(l[..i], data) && j.written == Touched(l[..i])
  }
  // ReadInode, ReadBlock (with off = 0), and ReadBit
  lemma Read(j: TxnS.VolumeObjects, l: Log, i: int, data: Data, blkno: uint64, off: uint64, o: Object)
    requires Kept(l, data) && Before(j, l, i, data) && i < |l| && blkno < 0x1_0000_0000_0000 && off < 32768 &&
      l[i] == OpRead(Key(blkno, off), o)
    ensures Addr(blkno, off) in j.data && j.data[Addr(blkno, off)] == o
  { Keys(l[i].key, Addr(blkno, off)); }
  lemma Front(l: Log, i: int, n: int)
    requires 0 <= i && 0 <= n && i + n < |l|
    ensures l[i..i + n] == l[i..i + n + 1][..n] && l[i + n] == l[i..i + n + 1][n]
  {}
  // ReadBlocks
  lemma ReadRun(j: TxnS.VolumeObjects, l: Log, i: int, data: Data, blkno: uint64, bs: seq<Blk>)
    requires Kept(l, data) && Before(j, l, i, data) && blkno as int + |bs| <= 0x1_0000_0000_0000 && i + |bs| <= |l| &&
      l[i..i + |bs|] == Reads(blkno, bs)
    ensures forall b: uint64 {:trigger Addr(b, 0)} :: blkno <= b < blkno + |bs| as uint64 ==> Addr(b, 0) in j.data &&
      j.data[Addr(b, 0)].ObjData?
    ensures Run(j.data, blkno, |bs| as uint64) == Joined(bs) && Before(j, l, i + |bs|, data)
  {
    if bs == [] { return; }
    var n := |bs| - 1;
    var b := blkno + n as uint64;
    Front(l, i, n);
    ReadRun(j, l, i, data, blkno, bs[..n]);
    Read(j, l, i + n, data, b, 0, ObjData(bs[n].v));
    assert l[..i + n + 1][..i + n] == l[..i + n];
  }
  // WriteInode, WriteBlock (with off = 0), and WriteBit
  twostate lemma Write(j: TxnS.VolumeObjects, l: Log, i: int, data: Data, blkno: uint64, off: uint64, o: Object)
    requires old(Before(j, l, i, data)) && Before(j, l, i + 1, data) && blkno < 0x1_0000_0000_0000 && off < 32768 &&
      l[i] == OpWrite(Key(blkno, off), o)
    ensures j.data == old(j.data)[Addr(blkno, off) := o] && j.written == old(j.written) + {Addr(blkno, off)}
  {
    Keys(l[i].key, Addr(blkno, off));
    assert l[..i + 1][..i] == l[..i] && l[..i + 1][i] == l[i];
  }
}
