include "fileio.dfy"
// What a local mount has beside the procedures of NFS (local.s.dfy): looking for holes, room set aside, and holes made.
module LocalOps {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened TxnS
  import opened VolumeGeometry
  import opened InodeFormat
  import opened ByteFiles
  import opened Directories
  import opened Permissions
  import opened AttributeChanges
  import opened ProcedureBase
  import opened Abstraction
  import opened Resizing
  import opened FileOps
  import opened BlockStore
  import Room = NfsRoom
  import NameTree
  import N = NfsState
  import C = NfsCommon
  import P = NfsPerm
  import L = NfsLocal

  const STEPS: uint64 := 65536     // at most so many looks at a block in one transaction
  const RUN: uint64 := 64          // blocks that are set aside by one write of zeros

  // the first byte from off on whose block is there, or (hole) is not
  method Seek(txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64, off: uint64, hole: bool)
    returns (st: uint32, at: uint64, found: bool)
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> L.SeekOk(AbsOf(d), WhoOf(c), N.Handle(ino, gen), off, hole, at, found)
    ensures st != 0 ==> L.SeekErr(AbsOf(d), WhoOf(c), N.Handle(ino, gen), off, st)
  {
    Node(d, ino, gen);
    at, found := off, false;
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, false);
    if st != 0 { return; }
    var ty := GetTy(ip);
    if ty != REG { st := INVAL; return; }
    var r := MayData(c, ip, MAYREAD);
    var x := May(c, ip, MAYEXEC);
    if !r && !x { st := ACCES; return; }
    var size := GetSize(ip);
    if size <= off { st := NOENT; return; }
    var n, top := off / 4096, (size + 4095) / 4096;
    var m;
    m, found := d.fs.Pass(txn, ino, n, top, hole, STEPS, false);
    ghost var held := d.fs.held[ino];
    if n < m { at := if m == top then size else 4096 * m; }
    forall k: int {:trigger k / 4096 in held} | off as int <= k < at as int ensures k / 4096 in held <==> hole
    { assert n as int <= k / 4096 < m as int; }
    if m == top && hole { found := true; }
  }

  // What a change of its bytes or blocks makes of a file: size and used are those that it then has.
  lemma Effect(c: P.Caller, g: Geometry, ms: Metas, files: Files, held: Helds, dirs: NameTree.Dirs, places: DirPlaces,
    i: uint64,
    f: seq<byte>, h: set<int>, size: uint64, used: uint64, s: uint64, ns: uint32)
    requires NameTree.TreeOk(g, ms, dirs) && Shown(g, ms, i) && ms[i].ty == REG && i in files && i in held
    ensures NameTree.TreeOk(g, ms[i := WrittenMeta(ms[i], size, used, c.uid != 0, s, ns)], dirs)
    ensures var p := Abs(g, ms, files, held, dirs, places); i in p.nodes && p.nodes[i].body.File? &&
      Abs(g, ms[i := WrittenMeta(ms[i], size, used, c.uid != 0, s, ns)], files[i := f], held[i := h], dirs, places) ==
        C.Put(p, i, N.Node(L.WrittenAttr(c, p.nodes[i].attr, N.Time(s, ns)), N.File(f, p.nodes[i].body.verf, h),
          used as int))
  {
    NameTree.Basics(g, ms, dirs);
    var m := ms[i];
    assert NameTree.Fits(i, m);
    At(g, ms, files, held, dirs, places, i);
    var mode := m.mode;
    assert P.KillPriv(mode) < 4096;
    ChangeOk(g, ms, files, held, dirs, places, i, WrittenMeta(m, size, used, c.uid != 0, s, ns), f, h);
  }

  // the attributes after that
  method Mark(txn: Txn, d: DirFs, c: Cred, ino: uint64, s: uint64, ns: uint32)
    modifies d.Repr()
    requires d.Valid() && txn.volume == d.fs.volume && OkIno(d.fs.geometry, ino)
    ensures d.Valid() && d.dirs == old(d.dirs) && d.places == old(d.places) && d.fs.files == old(d.fs.files) &&
      d.fs.held == old(d.fs.held)
    ensures ino in old(d.fs.metas) && var m := old(d.fs.metas)[ino];
      d.fs.metas == old(d.fs.metas)[ino := WrittenMeta(m, m.size, m.used, c.uid != 0, s, ns)]
  {
    var np := d.fs.GetInode(txn, ino, true);
    var ts, tns := Stamp(np, s, ns);
    SetMtime(np, ts, tns);
    SetCtime(np, ts, tns);
    if c.uid != 0 {
      var mode := GetMode(np);
      SetMode(np, KillPriv(mode));
    }
    d.PutInode(txn, ino, np);
  }

  // ---- room set aside ----

  // zeros written where they are already
  lemma ZerosOver(f: seq<byte>, h: set<int>, b: int, m: int, to: int)
    requires N.Held(f, h) && 0 <= b < m && to <= |f| && 4096 * b <= to <= 4096 * m &&
      forall i: int {:trigger i in h} | b <= i < m :: i !in h
    ensures WriteSpec(f, 4096 * b, Zeros(to - 4096 * b)) == f
  {
    var r := WriteSpec(f, 4096 * b, Zeros(to - 4096 * b));
    forall k: int | 0 <= k < |f| ensures r[k] == f[k]
    { if 4096 * b <= k < to { assert k / 4096 !in h; } }
  }
  // the blocks a to m - 1 in place of a to b - 1
  lemma SpanMore(h: set<int>, a: int, b: int, m: int)
    requires a <= b <= m
    ensures h + L.Span(a, b) + L.Span(b, m) == h + L.Span(a, m)
    ensures |L.Span(a, b) - h| + |L.Span(b, m) - (h + L.Span(a, b))| == |L.Span(a, m) - h|
  {
    var x, y := L.Span(a, b) - h, L.Span(b, m) - (h + L.Span(a, b));
    assert L.Span(a, m) - h == x + y;
  }
  lemma FewerBlocks(a: set<int>, b: set<int>)
    requires a <= b
    ensures |a| <= |b|
  { assert b == a + (b - a); }
  lemma BlocksAre(off: int, len: int)
    requires 0 <= off && 0 <= len
    ensures C.Blocks(off, len) == L.Span(off / 4096, (off + len + 4095) / 4096)
  { }

  lemma SpanSize(a: int, b: int)
    requires a <= b
    ensures |L.Span(a, b)| == b - a
    decreases b - a
  {
    if a == b { assert L.Span(a, b) == {}; return; }
    SpanSize(a, b - 1);
    assert L.Span(a, b) == L.Span(a, b - 1) + {b - 1};
  }
  // n bytes in the blocks b to m - 1 need no more than four blocks for each of them
  lemma Led(b: int, m: int, n: int)
    requires 0 <= b < m && 4096 * (m - 1 - b) < n <= 4096 * (m - b)
    ensures 0 < Room.Bytes(4096 * b, n) <= 4 * (m - b)
  { assert (4096 * b + n + 4095) / 4096 == m; }

  // the file f, long enough for bytes up to end
  function Grown(f: seq<byte>, end: int): seq<byte> { if |f| < end then f + Zeros(end - |f|) else f }

  // the hole at block b, and those behind it up to m, are filled with zeros; ok = false: no room
  method FillHoles(txn: Txn, d: DirFs, ino: uint64, b: uint64, top: uint64, z: Bytes, size: uint64)
    returns (ok: bool, m: uint64)
    modifies d.Repr(), txn.blocks
    requires d.Valid() && txn.volume == d.fs.volume && OkIno(d.fs.geometry, ino) && ino !in d.dirs &&
      z.data == Zeros(4096 * RUN as int)
    requires |d.fs.files[ino]| == size as int && b < top && top as int <= (size as int + 4095) / 4096 &&
      top <= 134217728 && b as int !in d.fs.held[ino]
    ensures b < m <= top && ino in old(d.fs.held) && ino in old(d.fs.metas)
    ensures ok ==> d.Valid() && d.dirs == old(d.dirs) && d.places == old(d.places) && d.fs.files == old(d.fs.files)
    ensures ok ==> d.fs.held == old(d.fs.held)[ino := old(d.fs.held)[ino] + L.Span(b as int, m as int)]
    ensures ok ==> ino in d.fs.metas && d.fs.metas ==
      old(d.fs.metas)[ino := WithSizeUsed(old(d.fs.metas)[ino], size, d.fs.metas[ino].used)]
    ensures ok ==> d.fs.metas[ino].used as int == old(d.fs.metas)[ino].used as int
      + |L.Span(b as int, m as int) - old(d.fs.held)[ino]|
    ensures var most := old(GotBlocks(txn)) + 4 * |L.Span(b as int, m as int) - old(d.fs.held)[ino]|;
      GotBlocks(txn) <= most && (!ok ==> txn.blocks.Dry() && GotBlocks(txn) < most)
  {
    d.fs.Bytes(ino);
    ghost var g, h := d.fs.files[ino], d.fs.held[ino];
    var lim := if top - b > RUN then b + RUN else top;
    var found;
    m, found := d.fs.Pass(txn, ino, b, lim, false, RUN, true);
    var to := if size < 4096 * m then size else 4096 * m;
    var n := to - 4096 * b;
    assert z.data[0 .. n as int] == Zeros(n as int);
    ZerosOver(g, h, b as int, m as int, to as int);
    BlocksAre(4096 * b as int, n as int);
    assert (to as int + 4095) / 4096 == m as int;
    assert L.Span(b as int, m as int) - h == L.Span(b as int, m as int);
    SpanSize(b as int, m as int);
    Led(b as int, m as int, n as int);
    ok := d.Write(txn, ino, 4096 * b, z, 0, n);
    if ok { assert old(d.fs.files)[ino := g] == old(d.fs.files); }
  }

  method Fill(txn: Txn, d: DirFs, ino: uint64, off: uint64, len: uint64) returns (st: uint32)
    modifies d.Repr(), txn.blocks
    requires d.Valid() && txn.volume == d.fs.volume && OkIno(d.fs.geometry, ino) && ino !in d.dirs && 0 < len
    requires MayWrite(d.fs.metas[ino], off as int + len as int)
    ensures st == 0 || (st == NOSPC && ino in old(d.fs.held) &&
      !(C.Blocks(off as int, len as int) <= old(d.fs.held)[ino]))
    ensures st != 0 ==> Short(txn, old(GotBlocks(txn)), old(GotInodes(txn)),
      Room.AllocateNeeds(off as int, len as int, old(d.fs.held)[ino]))
    ensures st == 0 ==> d.Valid() && d.dirs == old(d.dirs) && d.places == old(d.places) && ino in old(d.fs.files) &&
      ino in old(d.fs.held) && ino in old(d.fs.metas) && ino in d.fs.metas
    ensures st == 0 ==> d.fs.files == old(d.fs.files)[ino := Grown(old(d.fs.files)[ino], off as int + len as int)]
    ensures st == 0 ==> d.fs.held == old(d.fs.held)[ino := old(d.fs.held)[ino] + C.Blocks(off as int, len as int)]
    ensures st == 0 ==> d.fs.metas == old(d.fs.metas)[ino :=
      WithSizeUsed(old(d.fs.metas)[ino], |d.fs.files[ino]| as uint64, d.fs.metas[ino].used)]
    ensures st == 0 ==> d.fs.metas[ino].used as int == old(d.fs.metas)[ino].used as int
      + |C.Blocks(off as int, len as int) - old(d.fs.held)[ino]|
  {
    ghost var ms, files, held := d.fs.metas, d.fs.files, d.fs.held;
    ghost var f, h := files[ino], held[ino];
    ghost var g := Grown(f, off as int + len as int);
    var end := off + len;
    d.fs.Bytes(ino);
    var ip := d.fs.GetInode(txn, ino, true);
    var size := GetSize(ip);
    if size < end {
      var ok := d.SetSize(txn, ino, end);
      assert C.HeldBelow(h, end as int) == h;
      size := end;
    } else {
      assert files[ino := f] == files;
    }
    var first, top := off / 4096, (end + 4095) / 4096;
    var b := first;
    BlocksAre(off as int, len as int);
    assert h + L.Span(first as int, b as int) == h;
    assert held[ino := h] == held;
    assert L.Span(first as int, b as int) - h == {};
    var z := NewBytes(4096 * RUN);
    while b < top
      invariant first <= b <= top && fresh(z) && z.data == Zeros(4096 * RUN as int)
      invariant d.Valid() && d.dirs == old(d.dirs) && d.places == old(d.places) && |g| == size as int
      invariant d.fs.files == files[ino := g] && d.fs.held == held[ino := h + L.Span(first as int, b as int)]
      invariant ino in d.fs.metas && d.fs.metas == ms[ino := WithSizeUsed(ms[ino], size, d.fs.metas[ino].used)]
      invariant d.fs.metas[ino].used as int == ms[ino].used as int + |L.Span(first as int, b as int) - h|
      invariant GotBlocks(txn) <= old(GotBlocks(txn)) + 4 * |L.Span(first as int, b as int) - h|
      decreases top - b
    {
      d.fs.Bytes(ino);
      ghost var now := d.fs.held[ino];
      var m, found := d.fs.Pass(txn, ino, b, top, true, STEPS, true);
      if b < m {
        assert L.Span(b as int, m as int) <= now;
        SpanMore(h, first as int, b as int, m as int);
        assert L.Span(b as int, m as int) - now == {};
        assert now + L.Span(b as int, m as int) == now;
      } else {
          var ok;
        ok, m := FillHoles(txn, d, ino, b, top, z, size);
        if !ok {
          assert b as int in C.Blocks(off as int, len as int) && b as int !in h;
          SpanMore(h, first as int, b as int, m as int);
          FewerBlocks(L.Span(first as int, m as int) - h, C.Blocks(off as int, len as int) - h);
          return NOSPC;
        }
        SpanMore(h, first as int, b as int, m as int);
      }
      b := m;
    }
    st := 0;
  }

  // the file gets all blocks that the len bytes at off lie in
  method Allocate(txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64, off: uint64, len: uint64, s: uint64,
    ns: uint32) returns (st: uint32)
    modifies d.Repr(), txn.blocks
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> Sound(d) && L.AllocateOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(ino, gen), off, len,
      N.Time(s, ns))
    ensures st != 0 ==> L.AllocateErr(old(AbsOf(d)), WhoOf(c), N.Handle(ino, gen), off, len, st)
    ensures st == SHRINKFIRST ==> 0 < old(ToFree(d, ino))
    ensures st == NOSPC ==> N.IsFile(old(AbsOf(d)), ino) && Lacking(txn, old(StockOf(txn, d)),
      Room.AllocateNeeds(off as int, len as int, old(AbsOf(d)).nodes[ino].body.held), st)
  {
    Node(d, ino, gen);
    ghost var ms, files, held := d.fs.metas, d.fs.files, d.fs.held;
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, true);
    if st != 0 { return; }
    var ty := GetTy(ip);
    if ty != REG || len == 0 { st := INVAL; return; }
    if off > MAXFILE || len > MAXFILE - off { st := FBIG; return; }
    st := DenyData(c, ip, false);
    if st != 0 { return; }
    var size := GetSize(ip);
    var shrink := GetShrink(ip);
    if shrink != 0 && off + len > size { st := SHRINKFIRST; return; }
    st := Fill(txn, d, ino, off, len);
    if st != 0 {
      IsLacking(txn, old(StockOf(txn, d)), Room.AllocateNeeds(off as int, len as int, held[ino]), st);
      return;
    }
    Mark(txn, d, c, ino, s, ns);
    ghost var f, h, used := d.fs.files[ino], d.fs.held[ino], d.fs.metas[ino].used;
    assert d.fs.metas == ms[ino := WrittenMeta(ms[ino], |f| as uint64, used, c.uid != 0, s, ns)];
    Effect(WhoOf(c), d.fs.geometry, ms, files, held, d.dirs, d.places, ino, f, h, |f| as uint64, used, s, ns);
    assert f == C.Resized(files[ino], if off as int + len as int > |files[ino]| then off as int + len as int
      else |files[ino]|);
    Node(d, ino, gen);
  }

  // ---- holes made ----

  // Makes holes of the blocks hi - 1 down to `at`, at most max or so of them; from lo on if that is done.
  method Punch(txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64, lo: uint64, hi: uint64, max: uint64, s: uint64,
    ns: uint32) returns (st: uint32, at: uint64)
    modifies d.Repr()
    requires Sound(d) && txn.volume == d.fs.volume && 0 < max
    ensures st == 0 ==> Sound(d) && L.PunchOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(ino, gen), lo, hi, at,
      N.Time(s, ns))
    ensures st != 0 ==> L.PunchErr(old(AbsOf(d)), WhoOf(c), N.Handle(ino, gen), lo, hi, st)
  {
    Node(d, ino, gen);
    ghost var ms, files, held := d.fs.metas, d.fs.files, d.fs.held;
    at := lo;
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, true);
    if st != 0 { return; }
    var ty := GetTy(ip);
    if ty != REG || hi <= lo { st := INVAL; return; }
    st := DenyData(c, ip, true);
    if st != 0 { return; }
    var size := GetSize(ip);
    var top := (size + 4095) / 4096;
    var n := if hi < top then hi else top;
    d.fs.Bytes(ino);
    if lo < n {
      at := d.Punch(txn, ino, lo, n, max);
    } else {
      Nothing(files[ino], held[ino], lo as int, hi as int);
      assert files[ino := files[ino]] == files && held[ino := held[ino]] == held;
    }
    Behind(files[ino], held[ino], at as int, n as int, hi as int);
    Mark(txn, d, c, ino, s, ns);
    ghost var f, h, used := d.fs.files[ino], d.fs.held[ino], d.fs.metas[ino].used;
    assert d.fs.metas == ms[ino := WrittenMeta(ms[ino], |f| as uint64, used, c.uid != 0, s, ns)];
    Effect(WhoOf(c), d.fs.geometry, ms, files, held, d.dirs, d.places, ino, f, h, |f| as uint64, used, s, ns);
    Node(d, ino, gen);
  }
  // a range behind the end
  lemma Nothing(f: seq<byte>, h: set<int>, lo: int, hi: int)
    requires N.Held(f, h) && 0 <= lo <= hi && |f| <= 4096 * lo
    ensures L.Zeroed(f, 4096 * lo, 4096 * hi) == f && h - L.Span(lo, hi) == h && h * L.Span(lo, hi) == {}
  { }
  // what of a range lies behind the end does not matter
  lemma Behind(f: seq<byte>, h: set<int>, at: int, n: int, hi: int)
    requires N.Held(f, h) && 0 <= at && n <= hi && (n == hi || |f| <= 4096 * n)
    ensures at <= n ==> L.Zeroed(f, 4096 * at, 4096 * hi) == L.Zeroed(f, 4096 * at, 4096 * n) &&
      h - L.Span(at, hi) == h - L.Span(at, n) && h * L.Span(at, hi) == h * L.Span(at, n)
  { }
}
