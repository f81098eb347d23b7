// The four procedures, each of which is the work of one transaction, and the proof that they do as spec.s.dfy says.
//
// On disk a volume is 17 blocks, from `first` on:
//   first            16 objects of 256 bytes: of each file its size (u64, at 0) and mtime (u64, at 8)
//   first + 1 + f    the bytes of file f; those behind its size may be anything
include "spec.s.dfy"
include "../../verified/trusted/txn.s.dfy"

module SimpleOps {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened Numbers
  import opened TxnSpec
  import opened TxnS
  import opened SimpleSpec

  // ---- What the objects of a volume mean: its state is a function of their bytes ----
  type Objects = map<Addr, Object>

  function method MetaOff(f: uint64): uint64 requires f < FILES { f * 2048 }
  function method DataBlk(first: uint64, f: uint64): uint64 requires f < FILES && Fits(first) { first + 1 + f }
  predicate Fits(first: uint64) { first as int + 17 < 0x1_0000_0000_0000_0000 }

  // The blocks are of the kinds that are asked for.
  predicate Layout(first: uint64, kinds: map<uint64, Kind>) {
    Fits(first) && first in kinds && kinds[first] == KInode &&
    forall f: uint64 {:trigger DataBlk(first, f)} | f < FILES :: DataBlk(first, f) in kinds &&
      kinds[DataBlk(first, f)] == KBlock
  }
  function Meta(first: uint64, d: Objects, f: uint64): seq<byte> requires f < FILES
  { var a := Addr(first, MetaOff(f)); if a in d && d[a].ObjData? then d[a].bytes else [] }
  function Data(first: uint64, d: Objects, f: uint64): seq<byte> requires f < FILES && Fits(first)
  { var a := Addr(DataBlk(first, f), 0); if a in d && d[a].ObjData? then d[a].bytes else [] }
  // what every transaction may rely on, and has to leave behind
  predicate Inv(first: uint64, d: Objects) {
    Fits(first) && forall f: uint64 {:trigger Sound(first, d, f)} | f < FILES :: Sound(first, d, f)
  }
  predicate Sound(first: uint64, d: Objects, f: uint64) requires f < FILES && Fits(first)
  { |Meta(first, d, f)| == 256 && |Data(first, d, f)| == 4096 && U64At(Meta(first, d, f), 0) <= MAX }

  function FileOf(first: uint64, d: Objects, f: uint64): File
    requires f < FILES && Fits(first) && Sound(first, d, f)
  { File(Data(first, d, f)[..U64At(Meta(first, d, f), 0)], U64At(Meta(first, d, f), 8)) }
  function Files(first: uint64, d: Objects, n: uint64): (s: State)
    requires Inv(first, d) && n <= FILES
    ensures |s| == n as int && forall i | 0 <= i < |s| :: |s[i].bytes| <= MAX as int
    ensures forall f: uint64 {:trigger FileOf(first, d, f)} {:trigger s[f]} | f < n :: s[f] == FileOf(first, d, f)
  { if n == 0 then [] else assert Sound(first, d, n - 1); Files(first, d, n - 1) + [FileOf(first, d, n - 1)] }
  function Abs(first: uint64, d: Objects): (s: State)
    requires Inv(first, d)
    ensures Possible(s)
  { Files(first, d, FILES) }

  // ---- The procedures ----
  method Getattr(t: Txn, first: uint64, f: uint64) returns (st: uint32, size: uint64, mtime: uint64)
    requires t.volume.Valid() && Layout(first, t.volume.kinds) && Inv(first, t.volume.data)
    ensures SimpleSpec.Getattr(Abs(first, t.volume.data), f, st, size, mtime)
  {
    if f >= FILES { return STALE, 0, 0; }
    assert Sound(first, t.volume.data, f);
    var m := t.ReadInode(first, MetaOff(f), false);
    return OK, m.U64(0), m.U64(8);
  }

  method Read(t: Txn, first: uint64, f: uint64, off: uint64, count: uint64) returns (st: uint32, data: Bytes, eof: bool)
    requires t.volume.Valid() && Layout(first, t.volume.kinds) && Inv(first, t.volume.data)
    ensures fresh(data) && SimpleSpec.Read(Abs(first, t.volume.data), f, off, count, st, data.data, eof)
  {
    if f >= FILES { data := NewBytes(0); return STALE, data, false; }
    assert Sound(first, t.volume.data, f);
    var m := t.ReadInode(first, MetaOff(f), false);
    var size := m.U64(0);
    var n := if off >= size then 0 else if count >= size - off then size - off else count;
    data := NewBytes(n);
    if n > 0 {
      var b := t.ReadBlock(DataBlk(first, f), false);
      data.CopyBlk(0, b, off, n);
    }
    assert data.data == Part(Abs(first, t.volume.data)[f].bytes, off as int, count as int);
    return OK, data, off >= size || n == size - off;
  }

  // The bytes of file f, of which `size` count, with zeros behind them up to `end`; and its other object.
  method Grown(t: Txn, first: uint64, f: uint64, end: uint64) returns (b: Bytes, m: Bytes, size: uint64)
    requires t.volume.Valid() && Layout(first, t.volume.kinds) && Inv(first, t.volume.data) && f < FILES && end <= MAX
    ensures fresh(b) && fresh(m) && b != m && m.data == Meta(first, t.volume.data, f) && size == U64At(m.data, 0)
    ensures size <= MAX && |b.data| == 4096 && b.data[..size] == Data(first, t.volume.data, f)[..size]
    ensures forall i | size as int <= i < end as int :: b.data[i] == 0
  {
    assert Sound(first, t.volume.data, f);
    m := t.ReadInode(first, MetaOff(f), true);
    size := m.U64(0);
    var v := t.ReadBlock(DataBlk(first, f), true);
    b := v.Thaw();
    if size < end {
      var z := NewBytes(end - size);
      b.CopyFrom(size, z, 0, end - size);
    }
  }
  // Gives file f these bytes, of which `size` count.
  method Put(t: Txn, first: uint64, f: uint64, b: Bytes, m: Bytes, size: uint64, now: uint64)
    requires t.volume.Valid() && Layout(first, t.volume.kinds) && Inv(first, t.volume.data) && f < FILES && size <= MAX
    requires b != m && |b.data| == 4096 && |m.data| == 256
    modifies t.volume, b, m
    ensures t.volume.Valid() && Inv(first, t.volume.data)
    ensures Abs(first, t.volume.data) == old(Abs(first, t.volume.data))[f as int := File(old(b.data)[..size], now)]
  {
    ghost var d := t.volume.data;
    m.PutU64(0, size);
    m.PutU64(8, now);
    assert m.data[0..8] == Enc64(size) && m.data[8..16] == Enc64(now);
    t.WriteInode(first, MetaOff(f), m);
    t.WriteBlock(DataBlk(first, f), b);
    ghost var d' := t.volume.data;
    forall g: uint64 | g < FILES ensures Sound(first, d', g)
    { assert Sound(first, d, g);
      assert g != f ==> Meta(first, d', g) == Meta(first, d, g) && Data(first, d', g) == Data(first, d, g); }
    assert forall g: uint64 | g < FILES && g != f :: Sound(first, d, g) && FileOf(first, d', g) == FileOf(first, d, g);
    ghost var s, s' := Abs(first, d), Abs(first, d');
    assert forall i | 0 <= i < |s| :: s'[i] == s'[i as uint64] && s[i] == s[i as uint64];
    assert s' == s[f as int := File(old(b.data)[..size], now)];
  }

  method Write(t: Txn, first: uint64, f: uint64, off: uint64, data: Bytes, now: uint64) returns (st: uint32)
    requires t.volume.Valid() && Layout(first, t.volume.kinds) && Inv(first, t.volume.data)
    modifies t.volume
    ensures t.volume.Valid() && Inv(first, t.volume.data)
    ensures SimpleSpec.Write(old(Abs(first, t.volume.data)), f, off, data.data, now, st, Abs(first, t.volume.data))
  {
    if f >= FILES { return STALE; }
    var n := data.Len();
    if n > MAX || off > MAX - n { return FBIG; }
    if n == 0 { return OK; }
    var b, m, size := Grown(t, first, f, off);
    b.CopyFrom(off, data, 0, n);
    var end := if size > off + n then size else off + n;
    ghost var old' := Abs(first, t.volume.data)[f].bytes;
    assert b.data[..end] == Laid(old', off as int, data.data);
    Put(t, first, f, b, m, end, now);
    return OK;
  }

  method Setattr(t: Txn, first: uint64, f: uint64, size: uint64, now: uint64) returns (st: uint32)
    requires t.volume.Valid() && Layout(first, t.volume.kinds) && Inv(first, t.volume.data)
    modifies t.volume
    ensures t.volume.Valid() && Inv(first, t.volume.data)
    ensures SimpleSpec.Setattr(old(Abs(first, t.volume.data)), f, size, now, st, Abs(first, t.volume.data))
  {
    if f >= FILES { return STALE; }
    if size > MAX { return FBIG; }
    var b, m, was := Grown(t, first, f, size);
    assert b.data[..size] == Resized(Abs(first, t.volume.data)[f].bytes, size as int);
    Put(t, first, f, b, m, size, now);
    return OK;
  }
}
