// The superblock: what is fixed when a volume is made. Block 0, with a copy in
// the last block. A superblock that was read is used only if Decode accepts it.
//
//    0 magic u64 ("TansyFS\0")  8 version u32: 5; 4 if there are no runs
//   12 incompatible flags u32 (unknown ones are refused)  16 zero u64
//   24 size u64        blocks of the layout
//   32 lognd u64       the log: units of 16 blocks   40 lognr u64 ring blocks (between a header and its copy)
//   48 inodeBitmap 56 blockBitmap 64 inodeTable 72 data0 80 data1 88 ninode u64     geometry
//   96 rootgen u64     generation of inode 1
//  104 ctime u64 112 ctimens u32     when the volume was made
//  116 compatible flags u32 (unknown ones are ignored)
//  120 uuid 16 bytes   136 key 32 bytes (random: seals of the log, authentication of handles)
//  168 pages u64      the tree of codes: pages of two blocks each, from block 1 on; behind them is the log
//  176 slot0 u64      geometry, too: records of replies; 0: there are none
//  184 room u64       blocks of the device that the volume uses, the copy of the superblock is the last
//  192 dataEnd u64    data blocks from here on are not there yet, nor are inodes from 200 inodeEnd u64 on
//  208 number of runs u64; 0: the layout is there as a whole, and the three numbers before are 0
//  216 the runs, 16 bytes each (runs.dfy): block of the layout u64, number of blocks u64
// 4056 zero
// 4064 SHA-256 of the 4064 bytes before
include "marshal.dfy"
include "geometry.dfy"
include "runs.dfy"
include "../../trusted/checksum.s.dfy"
module SuperblockFormat {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened Marshal
  import opened VolumeGeometry
  import opened DeviceRuns
  import opened SumS

  const MAGIC: uint64 := 0x0053_4679_736e_6154
  const VERSION: uint32 := 5
  const WHOLE: uint32 := 4        // the version of a volume that is there as a whole, and cannot grow

  datatype Super = Super(size: uint64, lognd: uint64, lognr: uint64, geometry: Geometry,
    rootgen: uint64, ctime: uint64, ctimens: uint32, compat: uint32, uuid0: uint64, uuid1: uint64, key0: uint64,
      key1: uint64, key2: uint64, key3: uint64, pages: uint64, extent: Extent)
  // How much of the layout is there. room: blocks of the device. No data blocks from dataEnd on, and no inodes from
  // inodeEnd on, are there yet.
  datatype Extent = Extent(room: uint64, dataEnd: uint64, inodeEnd: uint64, runs: Runs)

  // all of it
  function method All(size: uint64, g: Geometry): Extent { Extent(size, g.data1, g.ninode, NoRun) }
  predicate ExtentOk(e: Extent, size: uint64, g: Geometry) {
    if e.runs.NoRun? then e == All(size, g)
    else Bounded(e.runs) && Count(e.runs) <= MAXRUNS as int && Total(e.runs) + 1 == e.room as int &&
      e.room < size <= BOUND && e.runs.at == 0 && g.data0 < e.dataEnd <= g.data1 && 16 < e.inodeEnd <= g.ninode
  }
  // Where block a of the layout lies on the device. The copy of the superblock lies behind all runs.
  function Place(s: Super, a: int): Option<int> {
    if s.extent.runs.NoRun? then Some(a)
    else if a == s.size as int - 1 then Some(s.extent.room as int - 1)
    else Where(s.extent.runs, 0, a)
  }
  // No two blocks of a volume lie in one place, none outside of its room; block 0 is block 0.
  lemma Places(s: Super, a: int, b: int)
    requires SuperOk(s) && 0 <= a < s.size as int && 0 <= b < s.size as int
    ensures Place(s, a) != None ==> 0 <= Place(s, a).x < s.extent.room as int
    ensures Place(s, a) != None && Place(s, a) == Place(s, b) ==> a == b
    ensures Place(s, 0) == Some(0) && Place(s, s.size as int - 1) == Some(s.extent.room as int - 1)
  {
    var r := s.extent.runs;
    if r.Run? {
      Within(r, 0, a);
      Within(r, 0, b);
      if Where(r, 0, a) != None && Where(r, 0, a) == Where(r, 0, b) { Apart(r, 0, a, b); }
    }
  }
  // Block a of the layout: is it there, and where? So it is for n blocks from a on.
  method Locate(s: Super, a: uint64) returns (there: bool, at: uint64, n: uint64)
    requires SuperOk(s) && a < s.size
    ensures 0 < n && a as int + n as int <= s.size as int && (there <==> Place(s, a as int) != None)
    ensures there ==> at as int + n as int <= s.extent.room as int
    ensures forall x {:trigger Place(s, x)} :: a as int <= x < a as int + n as int ==>
      Place(s, x) == if there then Some(at as int + (x - a as int)) else None
  {
    if s.extent.runs.NoRun? { return true, a, s.size - a; }
    if a == s.size - 1 { return true, s.extent.room - 1, 1; }
    there, at, n := Find(s.extent.runs, a, s.size - 1);
  }

  // the regions follow each other and fill the layout
  predicate SuperOk(s: Super) {
    GeometryOk(s.geometry) && s.geometry.data1 as int + 1 == s.size as int && 1 <= s.lognd && 1 <= s.lognr &&
    ExtentOk(s.extent, s.size, s.geometry) &&
    3 + 2 * s.pages as int + 16 * s.lognd as int + s.lognr as int == s.geometry.inodeBitmap as int
  }

  // k runs, from the i-th on
  function RunsAt(s: seq<byte>, i: nat, k: nat): Runs
    requires |s| == 4096 && i + k <= MAXRUNS as int
    decreases k
  {
    if k == 0 then NoRun
    else Run(U64At(s, 216 + 16 * i), U64At(s, 224 + 16 * i), RunsAt(s, i + 1, k - 1))
  }
  function GeometryAt(s: seq<byte>): Geometry
    requires |s| == 4096
  {
    Geometry(U64At(s, 48), U64At(s, 56), U64At(s, 64), if U64At(s, 176) == 0 then U64At(s, 72) else U64At(s, 176),
      U64At(s, 72), U64At(s, 80), U64At(s, 88))
  }
  function ExtentAt(s: seq<byte>): Extent
    requires |s| == 4096
  {
    if U64At(s, 208) == 0 || U64At(s, 208) > MAXRUNS then All(U64At(s, 24), GeometryAt(s))
    else Extent(U64At(s, 184), U64At(s, 192), U64At(s, 200), RunsAt(s, 0, U64At(s, 208) as int))
  }
  function SuperAt(s: seq<byte>): Super
    requires |s| == 4096
  {
    Super(U64At(s, 24), U64At(s, 32), U64At(s, 40), GeometryAt(s), U64At(s, 96), U64At(s, 104), U32At(s, 112),
      U32At(s, 116), U64At(s, 120), U64At(s, 128), U64At(s, 136),
        U64At(s, 144), U64At(s, 152), U64At(s, 160), U64At(s, 168), ExtentAt(s))
  }
  predicate Sealed(s: seq<byte>)
    requires |s| == 4096
  { s[4064..] == SumOf(s[..4064]) }

  // what the bytes must be for the volume to be used
  predicate Acceptable(s: seq<byte>)
    requires |s| == 4096
  {
    U64At(s, 0) == MAGIC && U32At(s, 8) == (if U64At(s, 208) == 0 then WHOLE else VERSION) && U32At(s, 12) == 0 &&
    U64At(s, 208) <= MAXRUNS && Sealed(s) && SuperOk(SuperAt(s))
  }

  method Encode(s: Super) returns (b: Bytes)
    requires SuperOk(s)
    ensures fresh(b) && |b.data| == 4096 && Acceptable(b.data) && SuperAt(b.data) == s
  {
    b := Fields(s);
    var r := s.extent.runs;
    if r.Run? {
      Put64(b, 184, s.extent.room);
      Put64(b, 192, s.extent.dataEnd);
      Put64(b, 200, s.extent.inodeEnd);
    }
    PutRuns(b, r, 0);
    ghost var body := b.data;
    Seal(b);
    RunsFrame(body, b.data, 0, Count(r));
    assert U64At(b.data, 208) as int == Count(r);
    assert GeometryAt(b.data) == s.geometry;
    assert ExtentAt(b.data) == s.extent;
  }
  // all but what is there
  predicate FieldsAt(b: seq<byte>, s: Super)
    requires |b| == 4096
  {
    U64At(b, 0) == MAGIC && U32At(b, 8) == (if s.extent.runs.NoRun? then WHOLE else VERSION) && U32At(b, 12) == 0 &&
    U64At(b, 24) == s.size && U64At(b, 32) == s.lognd && U64At(b, 40) == s.lognr && GeometryAt(b) == s.geometry &&
    U64At(b, 96) == s.rootgen && U64At(b, 104) == s.ctime && U32At(b, 112) == s.ctimens && U32At(b, 116) == s.compat &&
    U64At(b, 120) == s.uuid0 && U64At(b, 128) == s.uuid1 && U64At(b, 136) == s.key0 && U64At(b, 144) == s.key1 &&
    U64At(b, 152) == s.key2 && U64At(b, 160) == s.key3 && U64At(b, 168) == s.pages
  }
  method Fields(s: Super) returns (b: Bytes)
    requires SuperOk(s)
    ensures fresh(b) && |b.data| == 4096 && FieldsAt(b.data, s)
  {
    b := NewBytes(4096);
    Put64(b, 0, MAGIC);
    Put32(b, 8, if s.extent.runs.NoRun? then WHOLE else VERSION);
    Put32(b, 12, 0);
    Put64(b, 24, s.size);
    Put64(b, 32, s.lognd);
    Put64(b, 40, s.lognr);
    Put64(b, 48, s.geometry.inodeBitmap);
    Put64(b, 56, s.geometry.blockBitmap);
    Put64(b, 64, s.geometry.inodeTable);
    Put64(b, 72, s.geometry.data0);
    Put64(b, 80, s.geometry.data1);
    Put64(b, 88, s.geometry.ninode);
    Put64(b, 96, s.rootgen);
    Put64(b, 104, s.ctime);
    Put32(b, 112, s.ctimens);
    Put32(b, 116, s.compat);
    Put64(b, 120, s.uuid0);
    Put64(b, 128, s.uuid1);
    Put64(b, 136, s.key0);
    Put64(b, 144, s.key1);
    Put64(b, 152, s.key2);
    Put64(b, 160, s.key3);
    Put64(b, 168, s.pages);
    Put64(b, 176, s.geometry.slot0);
  }

  // The runs r come behind i others, and their number before them.
  method PutRuns(b: Bytes, r: Runs, i: uint64)
    requires |b.data| == 4096 && i as int + Count(r) <= MAXRUNS as int
    modifies b
    ensures |b.data| == 4096 && RunsAt(b.data, i as int, Count(r)) == r
    ensures U64At(b.data, 208) as int == i as int + Count(r)
    ensures forall o: int {:trigger U64At(b.data, o)} | 0 <= o <= 200 || 216 <= o <= 208 + 16 * i as int ::
      U64At(b.data, o) == U64At(old(b.data), o)
    ensures forall o: int {:trigger U32At(b.data, o)} | 0 <= o <= 204 :: U32At(b.data, o) == U32At(old(b.data), o)
    decreases r
  {
    if r.NoRun? { Put64(b, 208, i); return; }
    PutRuns(b, r.later, i + 1);
    ghost var before := b.data;
    Put64(b, 216 + 16 * i, r.at);
    Put64(b, 224 + 16 * i, r.n);
    RunsFrame(before, b.data, i as int + 1, Count(r.later));
  }
  lemma RunsFrame(s: seq<byte>, t: seq<byte>, i: nat, k: nat)
    requires |s| == |t| == 4096 && i + k <= MAXRUNS as int
    requires forall o: int {:trigger U64At(t, o)} | 216 + 16 * i <= o <= 208 + 16 * (i + k) ::
      U64At(t, o) == U64At(s, o)
    ensures RunsAt(s, i, k) == RunsAt(t, i, k)
    decreases k
  { if k > 0 { RunsFrame(s, t, i + 1, k - 1); } }

  method Seal(b: Bytes)
    modifies b
    requires |b.data| == 4096
    ensures |b.data| == 4096 && Sealed(b.data)
    ensures forall o: int {:trigger U64At(b.data, o)} | 0 <= o && o + 8 <= 4064 ::
      U64At(b.data, o) == U64At(old(b.data), o)
    ensures forall o: int {:trigger U32At(b.data, o)} | 0 <= o && o + 4 <= 4064 ::
      U32At(b.data, o) == U32At(old(b.data), o)
  {
    var sum := Sum(b, 4064);
    ghost var s := b.data;
    ghost var e := sum.data;
    b.CopyFrom(4064, sum, 0, 32);
    assert sum.data[0..32] == e;
    SpliceFrame(s, 4064, e);
    assert b.data[..4064] == s[..4064];
    assert b.data[4064..] == e;
  }

  // why = 0: s is the superblock in b. Otherwise the first reason why it is not
  // usable: 1 not a Tansy volume, 2 damaged (checksum), 3 another version,
  // 4 unknown incompatible flags, 5 inconsistent geometry.
  method Decode(b: Bytes) returns (why: uint32, s: Super)
    requires |b.data| == 4096
    ensures (why == 0 <==> Acceptable(b.data)) && why <= 5 && (why == 1 <==> U64At(b.data, 0) != MAGIC) &&
      (why == 2 <==> U64At(b.data, 0) == MAGIC && !Sealed(b.data))
    ensures why == 0 ==> s == SuperAt(b.data) && SuperOk(s)
  {
    var slot0, data0 := b.U64(176), b.U64(72);
    if slot0 == 0 { slot0 := data0; }
    var g := Geometry(b.U64(48), b.U64(56), b.U64(64), slot0, data0, b.U64(80), b.U64(88));
    var extent := All(b.U64(24), g);
    var count := b.U64(208);
    if 0 < count && count <= MAXRUNS {
      var runs := TakeRuns(b, 0, count);
      extent := Extent(b.U64(184), b.U64(192), b.U64(200), runs);
    }
    s := Super(b.U64(24), b.U64(32), b.U64(40), g, b.U64(96), b.U64(104), b.U32(112), b.U32(116),
      b.U64(120), b.U64(128), b.U64(136), b.U64(144), b.U64(152),
        b.U64(160), b.U64(168), extent);
    if b.U64(0) != MAGIC { return 1, s; }
    var sum := Sum(b, 4064);
    var sealed := b.EqualAt(4064, sum);
    assert b.data[4064..4064 + 32] == b.data[4064..];
    if !sealed { return 2, s; }
    if b.U32(8) != (if count == 0 then WHOLE else VERSION) { return 3, s; }
    if b.U32(12) != 0 { return 4, s; }
    var ok := CheckGeo(s.geometry);
    if !ok || s.size != s.geometry.data1 + 1 { return 5, s; }
    // no sum below overflows: block numbers are below 2^52
    if s.lognd < 1 || s.lognr < 1 || s.lognd >= s.geometry.inodeBitmap || s.lognr >= s.geometry.inodeBitmap ||
      s.pages >= s.geometry.inodeBitmap { return 5, s; }
    if 3 + 2 * s.pages + 16 * s.lognd + s.lognr != s.geometry.inodeBitmap { return 5, s; }
    if count > MAXRUNS { return 5, s; }
    ok := CheckExtent(s.extent, s.size, s.geometry);
    why := if ok then 0 else 5;
  }
  method TakeRuns(b: Bytes, i: uint64, k: uint64) returns (r: Runs)
    requires |b.data| == 4096 && i as int + k as int <= MAXRUNS as int
    ensures r == RunsAt(b.data, i as int, k as int) && Count(r) == k as int
    decreases k
  {
    if k == 0 { return NoRun; }
    var later := TakeRuns(b, i + 1, k - 1);
    r := Run(b.U64(216 + 16 * i), b.U64(224 + 16 * i), later);
  }
  method CheckExtent(e: Extent, size: uint64, g: Geometry) returns (ok: bool)
    requires Count(e.runs) <= MAXRUNS as int
    ensures ok <==> ExtentOk(e, size, g)
  {
    if e.runs.NoRun? { return e.room == size && e.dataEnd == g.data1 && e.inodeEnd == g.ninode; }
    ok := false;
    if !(e.room < size && size <= BOUND && e.runs.at == 0) { return; }
    if !(g.data0 < e.dataEnd && e.dataEnd <= g.data1 && 16 < e.inodeEnd && e.inodeEnd <= g.ninode) { return; }
    var total := 0;
    var r := e.runs;
    while r.Run?
      invariant total as int + Total(r) == Total(e.runs) && total <= BOUND && (Bounded(e.runs) <==> Bounded(r))
      decreases r
    {
      if r.n == 0 || r.n >= BOUND || r.at >= BOUND || total + r.n > BOUND { return; }
      total := total + r.n;
      r := r.later;
    }
    ok := total + 1 == e.room;
  }
}
