include "base.dfy"
include "../refinement/resizing.dfy"
include "../spec/xattr.s.dfy"
// Extended attributes (xattr.s.dfy): one block of inode 2's file for each inode that has any (xattrlists.dfy).
//
// Who changes them holds inode 2 from the beginning, so that nobody has to wait for it twice.
module XattrOps {
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
  import opened XattrLists
  import Resizing
  import opened BlockStore
  import Room = NfsRoom
  import Marshal
  import NameTree
  import N = NfsState
  import C = NfsCommon
  import L = NfsLocal
  import X = NfsXattr

  const LIMIT: uint64 := 134217728     // inodes from this one on have no block: a file has no more

  // ---- what is stored, and what it means ----

  // inode 2, and its file
  lemma Reserved(d: DirFs)
    requires Sound(d)
    ensures OkIno(d.fs.geometry, ORPHANS) && ORPHANS in d.fs.metas && ORPHANS in d.fs.files && ORPHANS in d.fs.held &&
      ORPHANS !in d.dirs && NameTree.Fits(ORPHANS, d.fs.metas[ORPHANS])
    ensures var m, f := d.fs.metas[ORPHANS], d.fs.files[ORPHANS];
      |f| == m.size as int && |f| % 4096 == 0 && m.shrink == 0 && AbsOf(d).xattrs == All(f)
  {
    NameTree.Basics(d.fs.geometry, d.fs.metas, d.dirs);
    assert OkIno(d.fs.geometry, ORPHANS) && NameTree.Fits(ORPHANS, d.fs.metas[ORPHANS]);
    At(d.fs.geometry, d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places, ORPHANS);
  }

  // The block of an inode, or zeros where there is none.
  method Fetch(txn: Txn, d: DirFs, ino: uint64) returns (b: Bytes)
    requires Sound(d) && txn.volume == d.fs.volume
    ensures fresh(b) && |b.data| == 4096
    ensures ino in AbsOf(d).xattrs <==> U64At(b.data, 0) != 0
    ensures ino in AbsOf(d).xattrs ==> AbsOf(d).xattrs[ino] == Says(b.data)
  {
    Reserved(d);
    ghost var f := d.fs.files[ORPHANS];
    AllAt(f, ino);
    assert U64At(Zeros(4096), 0) == 0 by { Marshal.U64AtZeros(4096, 0); }
    if ino >= LIMIT { assert |f| <= 549755813888; b := NewBytes(4096); return; }
    var p := d.fs.Read(txn, ORPHANS, 4096 * ino, 4096);
    b := p.Join();
    var n := b.Len();
    if n != 4096 { b := NewBytes(4096); return; }
    assert b.data == BlockOf(f, ino as int);
  }
  // the list of a file, from offset 8 on
  method Current(txn: Txn, d: DirFs, ino: uint64, gen: uint64) returns (b: Bytes)
    requires Sound(d) && txn.volume == d.fs.volume
    ensures fresh(b) && |b.data| == 4096 && ListAt(b.data, 8) == X.XattrsOf(AbsOf(d), N.Handle(ino, gen))
    ensures ListAt(b.data, 8) != map[] ==> gen != 0
  {
    b := Fetch(txn, d, ino);
    ZerosList(8);
    var g := b.U64(0);
    if g != gen || g == 0 { b := NewBytes(4096); }
  }

  // ---- steps ----

  // Inode 2 has another file, and nothing else changes.
  lemma FileChanged(g: Geometry, ms: Metas, files: Files, held: Helds, dirs: NameTree.Dirs, places: DirPlaces, m: Meta,
    f: seq<byte>, h: set<int>, i: uint64, b: seq<byte>)
    requires NameTree.TreeOk(g, ms, dirs) && OkIno(g, 2) && 2 in ms && 2 in files && |files[2]| % 4096 == 0 &&
      Put(files[2], f, i as int, b)
    requires m == WithSizeUsed(ms[2], m.size, m.used) && m.size as int % 4096 == 0
    ensures NameTree.TreeOk(g, ms[2 := m], dirs)
    ensures var p := Abs(g, ms, files, held, dirs, places);
      Abs(g, ms[2 := m], files[2 := f], held[2 := h], dirs, places) ==
      N.FS(p.nodes, p.gens, XattrLists.Changed(files[2], i, b))
  {
    NameTree.Basics(g, ms, dirs);
    assert NameTree.Fits(2, ms[2]);
    NameTree.SetAttr(g, ms, dirs, 2, m);
    PutAll(files[2], f, i, b);
    var p, q := Abs(g, ms, files, held, dirs, places), Abs(g, ms[2 := m], files[2 := f], held[2 := h], dirs, places);
    forall j: uint64
      ensures (j in p.nodes <==> j in q.nodes) && (j in p.nodes ==> q.nodes[j] == p.nodes[j]) &&
      (j in p.gens <==> j in q.gens) && (j in p.gens ==> q.gens[j] == p.gens[j])
    {
      At(g, ms, files, held, dirs, places, j);
      At(g, ms[2 := m], files[2 := f], held[2 := h], dirs, places, j);
    }
    assert p.nodes == q.nodes && p.gens == q.gens;
    At(g, ms[2 := m], files[2 := f], held[2 := h], dirs, places, 2);
  }

  // The block of an inode becomes n; ok = false: it can have none, or there is no room. There is if it has one.
  method Store(txn: Txn, d: DirFs, ino: uint64, n: Bytes) returns (ok: bool)
    modifies d.Repr(), txn.blocks
    requires Sound(d) && txn.volume == d.fs.volume && |n.data| == 4096 && U64At(n.data, 0) != 0
    ensures ok ==> Sound(d) && AbsOf(d) == N.FS(old(AbsOf(d)).nodes, old(AbsOf(d)).gens,
      old(AbsOf(d)).xattrs[ino := Says(n.data)])
    ensures ino in old(AbsOf(d)).xattrs ==> ok
    ensures !ok && ino < LIMIT ==> Short(txn, old(GotBlocks(txn)), old(GotInodes(txn)), Room.XattrNeeds())
  {
    Reserved(d);
    ghost var g, ms, files, held := d.fs.geometry, d.fs.metas, d.fs.files, d.fs.held;
    ghost var f, h := files[ORPHANS], held[ORPHANS];
    AllAt(f, ino);
    if ino >= LIMIT { assert |f| <= 549755813888; return false; }
    assert Has(f, ino) ==> C.Blocks(4096 * ino as int, 4096) <= h by
      { d.fs.Bytes(ORPHANS); if Has(f, ino) { OneBlock(f, h, ino); } }
    ok := d.Write(txn, ORPHANS, 4096 * ino, n, 0, 4096);
    if !ok { return; }
    assert n.data[0..4096] == n.data;
    assert Put(f, d.fs.files[ORPHANS], ino as int, n.data);
    FileChanged(g, ms, files, held, d.dirs, d.places, d.fs.metas[ORPHANS], d.fs.files[ORPHANS], d.fs.held[ORPHANS], ino,
      n.data);
  }
  lemma OneBlock(f: seq<byte>, h: set<int>, i: uint64)
    requires N.Held(f, h) && Has(f, i)
    ensures C.Blocks(4096 * i as int, 4096) <= h
  {
    NotZero(f, i);
    var k: int :| 4096 * i as int <= k < 4096 * i as int + 8 && f[k] != 0;
    assert k / 4096 == i as int;
    forall b: int | b in C.Blocks(4096 * i as int, 4096) ensures b in h { assert b == i as int; }
  }

  // It becomes a hole.
  method Take(txn: Txn, d: DirFs, ino: uint64)
    modifies d.Repr()
    requires Sound(d) && txn.volume == d.fs.volume
    ensures Sound(d) && AbsOf(d) == N.FS(old(AbsOf(d)).nodes, old(AbsOf(d)).gens, X.Clean(old(AbsOf(d)), ino))
  {
    Reserved(d);
    ghost var g, ms, files, held := d.fs.geometry, d.fs.metas, d.fs.files, d.fs.held;
    ghost var f := files[ORPHANS];
    AllAt(f, ino);
    var hp := d.fs.GetInode(txn, ORPHANS, true);
    var size := GetSize(hp);
    if size / 4096 <= ino { assert X.Clean(AbsOf(d), ino) == AbsOf(d).xattrs; return; }
    var m := d.Punch(txn, ORPHANS, ino, ino + 1, 1);
    assert m == ino;
    ghost var z := Zeros(4096);
    assert U64At(z, 0) == 0 by { Marshal.U64AtZeros(4096, 0); }
    assert Put(f, d.fs.files[ORPHANS], ino as int, z);
    FileChanged(g, ms, files, held, d.dirs, d.places, d.fs.metas[ORPHANS], d.fs.files[ORPHANS], d.fs.held[ORPHANS], ino,
      z);
    assert XattrLists.Changed(f, ino, z) == X.Clean(old(AbsOf(d)), ino);
  }

  // The ctime of a file is now.
  function Later(f: N.FS, i: uint64, now: N.Time): map<uint64, N.Node>
    requires i in f.nodes
  { var n := f.nodes[i]; f.nodes[i := N.Node(C.SetNlinkCtime(n.attr, n.attr.nlink, now), n.body, n.blocks)] }
  method Mark(txn: Txn, d: DirFs, ino: uint64, ghost gen: uint64, s: uint64, ns: uint32)
    modifies d.Repr()
    requires Sound(d) && txn.volume == d.fs.volume && N.Live(AbsOf(d), N.Handle(ino, gen))
    ensures Sound(d) && ino in old(AbsOf(d)).nodes &&
      AbsOf(d) == N.FS(Later(old(AbsOf(d)), ino, N.Time(s, ns)), old(AbsOf(d)).gens, old(AbsOf(d)).xattrs)
  {
    Node(d, ino, gen);
    NameTree.Basics(d.fs.geometry, d.fs.metas, d.dirs);
    ghost var g, ms, files, held := d.fs.geometry, d.fs.metas, d.fs.files, d.fs.held;
    assert NameTree.Fits(ino, ms[ino]);
    var ip := d.fs.GetInode(txn, ino, true);
    var ts, tns := Stamp(ip, s, ns);
    SetCtime(ip, ts, tns);
    d.PutInode(txn, ino, ip);
    ghost var m := Marked(ms[ino], s, ns);
    assert d.fs.metas == ms[ino := m];
    Resizing.ChangeOk(g, ms, files, held, d.dirs, d.places, ino, m, files[ino], held[ino]);
    assert files[ino := files[ino]] == files && held[ino := held[ino]] == held;
  }

  // ---- the calls ----

  // the value of an attribute
  method Get(txn: Txn, d: DirFs, ino: uint64, gen: uint64, name: Bytes) returns (st: uint32, value: Bytes?)
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> value != null && X.GetOk(AbsOf(d), N.Handle(ino, gen), name.data, value.data)
    ensures st != 0 ==> X.GetErr(AbsOf(d), N.Handle(ino, gen), name.data, st)
  {
    Node(d, ino, gen);
    value := null;
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, false);
    if st != 0 { return; }
    var b := Current(txn, d, ino, gen);
    var found, at, len := Find(b, FIRST, name);
    if !found { st := NOENT; return; }
    var v := NewBytes(len);
    v.CopyFrom(0, b, at, len);
    assert v.data == b.data[at as int .. at as int + len as int];
    value := v;
  }

  // the names of all, each with a zero after it
  method List(txn: Txn, d: DirFs, ino: uint64, gen: uint64) returns (st: uint32, names: Bytes?)
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> names != null && X.ListOk(AbsOf(d), N.Handle(ino, gen), names.data)
    ensures st != 0 ==> X.ListErr(AbsOf(d), N.Handle(ino, gen), st)
  {
    Node(d, ino, gen);
    names := null;
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, false);
    if st != 0 { return; }
    var b := Current(txn, d, ino, gen);
    names := Names(b);
  }

  method IsNamed(name: Bytes) returns (r: bool)
    ensures r <==> X.Named(name.data)
  {
    var n, i := name.Len(), 0;
    if n == 0 || n > 255 { return false; }
    while i < n
      invariant i <= n && forall k: int {:trigger name.data[k]} | 0 <= k < i as int :: name.data[k] != 0
    {
      if name.Get(i) == 0 { return false; }
      i := i + 1;
    }
    return true;
  }

  // an attribute is set; create, replace: only if it is not there, only if it is
  method Set(txn: Txn, d: DirFs, ino: uint64, gen: uint64, name: Bytes, value: Bytes, create: bool, replace: bool,
    s: uint64, ns: uint32) returns (st: uint32)
    modifies d.Repr(), txn.blocks
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> Sound(d) && X.SetOk(old(AbsOf(d)), AbsOf(d), N.Handle(ino, gen), name.data, value.data, create,
      replace, N.Time(s, ns))
    ensures st != 0 ==> X.SetErr(old(AbsOf(d)), N.Handle(ino, gen), name.data, value.data, create, replace, st)
    ensures st == NOSPC ==> X.Bare(N.Handle(ino, gen)) ||
      X.Crowded(X.XattrsOf(old(AbsOf(d)), N.Handle(ino, gen))[name.data := value.data]) ||
      Lacking(txn, old(StockOf(txn, d)), Room.XattrNeeds(), st)
  {
    Node(d, ino, gen);
    Reserved(d);
    ghost var pre, h := AbsOf(d), N.Handle(ino, gen);
    ghost var l := X.XattrsOf(pre, h);
    var named := IsNamed(name);
    if !named { st := INVAL; return; }
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, true);
    if st != 0 { return; }
    var hp := d.fs.GetInode(txn, ORPHANS, true);
    var b := Current(txn, d, ino, gen);
    var found, at, len := Find(b, FIRST, name);
    if found && create { st := EXIST; return; }
    if !found && replace { st := NOENT; return; }
    if gen == 0 { st := NOSPC; return; }
    var ok, n := Build(b, gen, name, value);
    if !ok { st := NOSPC; return; }
    assert X.Without(l, name.data)[name.data := value.data] == l[name.data := value.data];
    ok := Store(txn, d, ino, n);
    if !ok {
      st := NOSPC;
      if ino < LIMIT { IsLacking(txn, old(StockOf(txn, d)), Room.XattrNeeds(), st); }
      return;
    }
    Mark(txn, d, ino, gen, s, ns);
    assert name.data in l[name.data := value.data];
    assert AbsOf(d) == X.With(pre, h, l[name.data := value.data], N.Time(s, ns));
  }

  // an attribute goes
  method Remove(txn: Txn, d: DirFs, ino: uint64, gen: uint64, name: Bytes, s: uint64, ns: uint32) returns (st: uint32)
    modifies d.Repr(), txn.blocks
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> Sound(d) && X.RemoveOk(old(AbsOf(d)), AbsOf(d), N.Handle(ino, gen), name.data, N.Time(s, ns))
    ensures st != 0 ==> X.RemoveErr(old(AbsOf(d)), N.Handle(ino, gen), name.data, st)
  {
    Node(d, ino, gen);
    Reserved(d);
    ghost var pre, h := AbsOf(d), N.Handle(ino, gen);
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, true);
    if st != 0 { return; }
    var hp := d.fs.GetInode(txn, ORPHANS, true);
    var b := Current(txn, d, ino, gen);
    var found, at, len := Find(b, FIRST, name);
    if !found { st := NOENT; return; }
    var n, empty := Drop(b, gen, name);
    if empty {
      Take(txn, d, ino);
    } else {
      var ok := Store(txn, d, ino, n);
    }
    Mark(txn, d, ino, gen, s, ns);
    assert AbsOf(d) == X.With(pre, h, X.Without(X.XattrsOf(pre, h), name.data), N.Time(s, ns));
  }

  // the attributes of an inode that is not there; empty: there are none
  method Spare(txn: Txn, d: DirFs, ino: uint64) returns (b: Bytes, empty: bool)
    requires Sound(d) && txn.volume == d.fs.volume
    ensures fresh(b) && |b.data| == 4096
    ensures if empty then ino !in AbsOf(d).xattrs
      else ino in AbsOf(d).xattrs && ListAt(b.data, 8) == AbsOf(d).xattrs[ino].list
  {
    b := Fetch(txn, d, ino);
    var g := b.U64(0);
    empty := g == 0;
  }

  // One of the table of access lists is added.
  method NewList(txn: Txn, d: DirFs, ino: uint64, name: Bytes, value: Bytes) returns (st: uint32)
    modifies d.Repr(), txn.blocks
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> Sound(d) && X.NewListOk(old(AbsOf(d)), AbsOf(d), ino, name.data, value.data)
    ensures st != 0 ==> X.NewListErr(old(AbsOf(d)), ino, name.data, st)
  {
    Reserved(d);
    At(d.fs.geometry, d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places, ino);
    NameTree.Basics(d.fs.geometry, d.fs.metas, d.dirs);
    ghost var pre, h := AbsOf(d), N.Handle(ino, 1);
    var named := IsNamed(name);
    if !named { return INVAL; }
    if OkIno(d.fs.geometry, ino) { assert ino in d.fs.metas; return EXIST; }
    var hp := d.fs.GetInode(txn, ORPHANS, true);
    var b := Current(txn, d, ino, 1);
    var found, at, len := Find(b, FIRST, name);
    if found { return EXIST; }
    var ok, n := Build(b, 1, name, value);
    if !ok { return NOSPC; }
    ghost var l := X.XattrsOf(pre, h);
    assert X.Without(l, name.data)[name.data := value.data] == l[name.data := value.data];
    ok := Store(txn, d, ino, n);
    if !ok { return NOSPC; }
    st := 0;
    assert Says(n.data) == N.Xattrs(1, l[name.data := value.data]);
  }

  // What is stored for an inode goes, unless it is of a file that is there.
  method Forget(txn: Txn, d: DirFs, ino: uint64) returns (st: uint32)
    modifies d.Repr()
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 && Sound(d) && X.ForgetOk(old(AbsOf(d)), AbsOf(d), ino)
  {
    Reserved(d);
    st := 0;
    var hp := d.fs.GetInode(txn, ORPHANS, true);
    var b := Fetch(txn, d, ino);
    var gen := b.U64(0);
    Node(d, ino, gen);
    if gen != 0 {
      var live, ip := OpenHandle(txn, d, ino, gen, false);
      if live == 0 { return; }
    }
    Take(txn, d, ino);
  }
}
