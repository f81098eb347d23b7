include "create.dfy"
include "remove.dfy"
include "rename.dfy"
include "soundness.dfy"
include "../spec/local.s.dfy"
include "../tree/keptfiles.dfy"
// Files that are open while they lose their names (local.s.dfy): they are kept on a list of their own, which inode 2
// heads.
module KeptOps {
  import opened Machine
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
  import opened KeptFiles
  import EntrySteps
  import NameTree
  import Soundness
  import AttributeOps
  import Creation
  import CreateOps
  import RemoveOps
  import RenameOps
  import Room = NfsRoom
  import BlockStore
  import P = NfsPerm
  import N = NfsState
  import C = NfsCommon
  import K = NfsMake
  import U = NfsUnlink
  import R = NfsRename
  import L = NfsLocal

  // ---- what shows ----

  // what serves the lists alone
  predicate Inner(m: Meta, m': Meta) { m.ty != DIR && m' == WithParent(WithList(m, m'.flags, m'.next), m'.parent) }
  lemma Unseen(g: Geometry, ms: Metas, files: Files, held: Helds, dirs: NameTree.Dirs, places: DirPlaces, i: uint64,
    m: Meta)
    requires i in ms && Inner(ms[i], m)
    ensures Abs(g, ms[i := m], files, held, dirs, places) == Abs(g, ms, files, held, dirs, places)
  { Same(g, ms, ms[i := m], files, files, held, held, dirs, dirs, places, places); }
  lemma KeepShows(g: Geometry, ms: Metas, files: Files, held: Helds, dirs: NameTree.Dirs, places: DirPlaces, i: uint64,
    s: uint64,
    ns: uint32)
    requires Shown(g, ms, i) && 2 in ms && ms[2].ty != DIR && CanKeep(ms[i]) && i in files && i in held
    ensures var p := Abs(g, ms, files, held, dirs, places);
      i in p.nodes && p.nodes[i].attr.nlink < 0x7fff_ffff &&
      Abs(g, Keeping(ms, i, s, ns), files, held, dirs, places) == L.Keeping(p, i, N.Time(s, ns))
  {
    At(g, ms, files, held, dirs, places, i);
    var m := Relinked(ms[i], ms[i].nlink + 1, s, ns);
    var k := KeptMeta(ms[i], ms[2].parent, s, ns);
    Changed(g, ms, files, held, dirs, places, i, m, files[i], held[i]);
    assert files[i := files[i]] == files && held[i := held[i]] == held;
    Unseen(g, ms[i := m], files, held, dirs, places, i, k);
    assert ms[i := m][i := k] == ms[i := k];
    Unseen(g, ms[i := k], files, held, dirs, places, 2, WithParent(ms[2], i));
  }

  // The file is kept: at the head of the list, with a link more. first: what was there before, or 0.
  method Keep(txn: Txn, d: DirFs, ino: uint64, gen: uint64, s: uint64, ns: uint32) returns (st: uint32, first: uint64)
    modifies d.Repr()
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> Sound(d) && L.KeepOk(old(AbsOf(d)), AbsOf(d), N.Handle(ino, gen), N.Time(s, ns))
    ensures st != 0 ==> L.KeepErr(old(AbsOf(d)), N.Handle(ino, gen), st)
    ensures st == 0 ==> Tells(old(d.fs.metas), d.fs.metas, false)
    // nothing is taken of what is free
    ensures st == 0 ==> FreeBlocks(d, txn.blocks.end) == old(FreeBlocks(d, txn.blocks.end)) &&
      FreeInodes(d, txn.inodes.end) == old(FreeInodes(d, txn.inodes.end))
    ensures st == 0 ==> forall i: uint64, n: seq<byte> {:trigger NoPlace(d, i, n)} ::
      NoPlace(d, i, n) <==> old(NoPlace(d, i, n))
  {
    ghost var ms := d.fs.metas;
    first := 0;
    Node(d, ino, gen);
    Soundness.KeptIs(d, ino);
    NameTree.Basics(d.fs.geometry, ms, d.dirs);
    assert OkIno(d.fs.geometry, ORPHANS) && NameTree.Fits(2, ms[2]);
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, true);
    if st != 0 { return; }
    var ty := GetTy(ip);
    if ty == DIR { st := INVAL; return; }
    var fl := GetFlags(ip);
    if fl / 2 % 2 == 1 { st := EXIST; return; }
    var nl := GetNlink(ip);
    if nl >= MAXLINK { st := MLINK; return; }
    assert NameTree.Fits(ino, ms[ino]) && fl < 0xffff_fffe;
    first := PutKept(txn, d, ino, ip, fl, nl, s, ns);
    TakesNothing(ms, ino, s, ns);
    assert FreeInodes(d, txn.inodes.end) == old(FreeInodes(d, txn.inodes.end));
    KeepOk(d.fs.geometry, ms, d.dirs, ino, s, ns);
    KeepShows(d.fs.geometry, ms, d.fs.files, d.fs.held, d.dirs, d.places, ino, s, ns);
  }
  // The inode ip of a file, with these flags and links, comes to the head of the list.
  method PutKept(txn: Txn, d: DirFs, ino: uint64, ip: Bytes, fl: uint32, nl: uint32, s: uint64, ns: uint32)
    returns (first: uint64)
    modifies d.Repr(), ip
    requires d.Valid() && txn.volume == d.fs.volume && OkIno(d.fs.geometry, ORPHANS) && OkIno(d.fs.geometry, ino) &&
      2 < ino && ip !in d.Repr()
    requires |ip.data| == 256 && ino in d.fs.metas && MetaOf(ip.data) == d.fs.metas[ino] && d.fs.SameBlks(ino, ip.data)
    requires CanKeep(d.fs.metas[ino]) && d.fs.metas[ino].flags == fl && d.fs.metas[ino].nlink == nl
    ensures d.Valid() && d.dirs == old(d.dirs) && d.places == old(d.places) && d.fs.files == old(d.fs.files) &&
      d.fs.held == old(d.fs.held) && d.fs.trees.store.used == old(d.fs.trees.store.used)
    ensures ino in old(d.fs.metas) && ORPHANS in old(d.fs.metas) && d.fs.metas == Keeping(old(d.fs.metas), ino, s, ns)
  {
    d.fs.Bytes(ino);
    var hp := d.fs.GetInode(txn, ORPHANS, true);
    first := GetParent(hp);
    SetFlags(ip, fl + 2);
    SetParent(ip, first);
    SetNlink(ip, nl + 1);
    var ts, tns := Stamp(ip, s, ns);
    SetCtime(ip, ts, tns);
    d.PutInode(txn, ino, ip);
    hp := d.fs.GetInode(txn, ORPHANS, true);
    SetParent(hp, ino);
    d.PutInode(txn, ORPHANS, hp);
  }
  // Nothing is taken of what is free.
  lemma TakesNothing(ms: Metas, i: uint64, s: uint64, ns: uint32)
    requires i in ms && 2 in ms && 2 < i && CanKeep(ms[i])
    ensures var ms' := Keeping(ms, i, s, ns);
      (forall j: uint64 {:trigger j in ms'} :: (j in ms <==> j in ms') && (j in ms ==> ms'[j].ty == ms[j].ty &&
        (Stuck(ms'[j]) <==> Stuck(ms[j]))))
  { }

  // REMOVE of a name of a file that is open, which is kept.
  method RemoveOpen(txn: Txn, d: DirFs, c: Cred, dino: uint64, dgen: uint64, name: Bytes, ino: uint64, gen: uint64,
    s: uint64, ns: uint32)
    returns (st: uint32, before: Bytes?, after: Bytes?, later: bool, first: uint64)
    modifies d.Repr(), txn.blocks
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> Sound(d) && before != null && |before.data| == 256 && after != null && |after.data| == 256 &&
      L.RemoveOpenOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(dino, dgen), name.data, N.Handle(ino, gen),
        N.Time(s, ns), N.Wcc(ReplyAttr(dino, MetaOf(before.data)), ReplyAttr(dino, MetaOf(after.data))))
    ensures st != 0 ==> L.RemoveOpenErr(old(AbsOf(d)), WhoOf(c), N.Handle(dino, dgen), name.data, N.Handle(ino, gen),
      N.Time(s, ns), st)
    ensures st == 0 ==> Tells(old(d.fs.metas), d.fs.metas, later)
  {
    before, after, later := null, null, false;
    st, first := Keep(txn, d, ino, gen, s, ns);
    if st != 0 { return; }
    assert OkIno(d.fs.geometry, ORPHANS) by { NameTree.Basics(d.fs.geometry, d.fs.metas, d.dirs); }
    st, before, after, later := RemoveOps.Remove(txn, d, c, dino, dgen, name, false, s, ns);
  }

  // RENAME to a name of a file that is open, which is kept.
  method RenameOpen(txn: Txn, d: DirFs, c: Cred, fino: uint64, fgen: uint64, fname: Bytes, tino: uint64, tgen: uint64,
    tname: Bytes, ino: uint64, gen: uint64, s: uint64, ns: uint32)
    returns (st: uint32, fbefore: Bytes?, fafter: Bytes?, tbefore: Bytes?, tafter: Bytes?, later: bool, first: uint64)
    modifies d.Repr(), txn.blocks
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> Sound(d)
    ensures st == 0 ==> Reply(fino, fbefore).Some? && Reply(fino, fafter).Some? && Reply(tino, tbefore).Some? &&
      Reply(tino, tafter).Some? &&
      L.RenameOpenOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(fino, fgen), fname.data, N.Handle(tino, tgen),
        tname.data, N.Handle(ino, gen), N.Time(s, ns),
        N.Wcc(Reply(fino, fbefore).x, Reply(fino, fafter).x), N.Wcc(Reply(tino, tbefore).x, Reply(tino, tafter).x))
    ensures st != 0 ==> L.RenameOpenErr(old(AbsOf(d)), WhoOf(c), N.Handle(fino, fgen), fname.data, N.Handle(tino, tgen),
      tname.data, N.Handle(ino, gen), N.Time(s, ns), st)
    ensures st == 0 ==> Tells(old(d.fs.metas), d.fs.metas, later)
    ensures Lacking(txn, old(StockOf(txn, d)), Room.EntryNeeds(), st) || old(NoPlace(d, tino, tname.data))
  {
    fbefore, fafter, tbefore, tafter, later := null, null, null, null, false;
    st, first := Keep(txn, d, ino, gen, s, ns);
    if st != 0 { return; }
    assert OkIno(d.fs.geometry, ORPHANS) by { NameTree.Basics(d.fs.geometry, d.fs.metas, d.dirs); }
    st, fbefore, fafter, tbefore, tafter, later :=
      RenameOps.Rename(txn, d, c, fino, fgen, fname, tino, tgen, tname, s, ns);
  }

  // A new file without a name, kept; it is made near the directory, and takes its group if that says so.
  method Tmpfile(txn: Txn, d: DirFs, c: Cred, dino: uint64, dgen: uint64, a: AttributeOps.Sattr, s: uint64, ns: uint32)
    returns (st: uint32, ino: uint64, node: Bytes?, first: uint64)
    modifies d.Repr(), txn.inodes
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> Sound(d) && node != null && |node.data| == 256 &&
      L.TmpfileOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(dino, dgen), AttributeOps.SattrOf(a), N.Time(s, ns),
        N.Handle(ino, MetaOf(node.data).gen), ReplyAttr(ino, MetaOf(node.data)))
    ensures st != 0 ==> L.TmpfileErr(old(AbsOf(d)), N.Handle(dino, dgen), AttributeOps.SattrOf(a), st)
    ensures Lacking(txn, old(StockOf(txn, d)), Room.NamelessNeeds(), st)
  {
    DirStatus(d, dino, dgen, [46]);
    ino, node, first := 0, null, 0;
    var dir: Bytes?;
    st, dir := OpenDirHandle(txn, d, dino, dgen, false);
    if st != 0 { return; }
    var immutable, append := Fixed(dir);
    if immutable { st := PERM; return; }
    st := AttributeOps.ArgStatus(a);
    if st != 0 { return; }
    if Unfit(d.fs.geometry, d.fs.metas) { IsWorn(d); }
    st, ino, node, first := Nameless(txn, d, c, dino, dgen, dir, a, s, ns);
    IsLacking(txn, old(StockOf(txn, d)), Room.NamelessNeeds(), st);
  }
  // The directory and the arguments allow it.
  method Nameless(txn: Txn, d: DirFs, c: Cred, dino: uint64, ghost dgen: uint64, dir: Bytes, a: AttributeOps.Sattr,
    s: uint64, ns: uint32)
    returns (st: uint32, ino: uint64, node: Bytes?, first: uint64)
    modifies d.Repr(), txn.inodes
    requires Sound(d) && txn.volume == d.fs.volume && DirHandleS(d.fs.geometry, d.fs.metas, dino, dgen) == 0 &&
      dino in d.fs.metas && |dir.data| == 256 && MetaOf(dir.data) == d.fs.metas[dino] &&
      !P.IsImmutable(d.fs.metas[dino].marks) && C.ArgsOk(AttributeOps.SattrOf(a)) && (a.hasSize ==> a.size <= MAXFILE)
    ensures st == 0 ==> Sound(d) && node != null && |node.data| == 256 &&
      L.TmpfileOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(dino, dgen), AttributeOps.SattrOf(a), N.Time(s, ns),
        N.Handle(ino, MetaOf(node.data).gen), ReplyAttr(ino, MetaOf(node.data)))
    ensures st == 0 || st == NOSPC
    ensures st != 0 ==> (txn.inodes.Dry() && BlockStore.GotInodes(txn) <= old(BlockStore.GotInodes(txn))) ||
      Unfit(d.fs.geometry, old(d.fs.metas))
  {
    ghost var g, ms, files, held, dirs, places := d.fs.geometry, d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places;
    ghost var pre, w, sa, now := AbsOf(d), WhoOf(c), AttributeOps.SattrOf(a), N.Time(s, ns);
    DirStatus(d, dino, dgen, [46]);
    NameTree.Basics(g, ms, dirs);
    assert OkIno(g, ORPHANS) && NameTree.Fits(2, ms[2]);
    node, first := null, 0;
    st, ino := CreateOps.NewData(txn, d, c, dino, dir, a, CreateOps.GUARDED, 0, s, ns);
    if st != 0 { return; }
    ghost var m, b := d.fs.metas[ino], d.fs.files[ino];
    Creation.BornIs(w, pre.nodes[dino], ms[dino], REG, ms[ino].gen + 1, CreateOps.FILEMODE, sa, dino, now);
    assert NameTree.Fits(ino, m);
    assert d.fs.metas == ms[ino := m];
    node, first := PutFirst(txn, d, ino);
    assert d.fs.metas == Unnamed(ms, ino, m);
    UnnamedOk(g, ms, dirs, ino, m);
    Unnamed1(g, ms, files, held, dirs, places, ino, m, b);
    Node(d, ino, m.gen);
    Soundness.KeptIs(d, ino);
    assert NodeOf(m, b, {}, map[], map[]) == K.NewFile(w, pre.nodes[dino], 0, sa, 0, now);
  }
  // A new file comes to the head of the list.
  method PutFirst(txn: Txn, d: DirFs, ino: uint64) returns (node: Bytes, first: uint64)
    modifies d.Repr()
    requires d.Valid() && txn.volume == d.fs.volume && OkIno(d.fs.geometry, ino) && 2 < ino &&
      OkIno(d.fs.geometry, ORPHANS)
    ensures d.Valid() && d.dirs == old(d.dirs) && d.places == old(d.places) && d.fs.files == old(d.fs.files) &&
      d.fs.held == old(d.fs.held)
    ensures ino in old(d.fs.metas) && ORPHANS in old(d.fs.metas) &&
      d.fs.metas == Unnamed(old(d.fs.metas), ino, old(d.fs.metas)[ino])
    ensures |node.data| == 256 && MetaOf(node.data) == d.fs.metas[ino]
  {
    var hp := d.fs.GetInode(txn, ORPHANS, true);
    first := GetParent(hp);
    var ip := d.fs.GetInode(txn, ino, true);
    SetFlags(ip, 2);
    SetParent(ip, first);
    d.PutInode(txn, ino, ip);
    hp := d.fs.GetInode(txn, ORPHANS, true);
    SetParent(hp, ino);
    d.PutInode(txn, ORPHANS, hp);
    node := d.fs.GetInode(txn, ino, false);
  }
  lemma Unnamed1(g: Geometry, ms: Metas, files: Files, held: Helds, dirs: NameTree.Dirs, places: DirPlaces, i: uint64,
    m: Meta,
    b: seq<byte>)
    requires OkIno(g, i) && 2 < i && i in ms && 2 in ms && ms[2].ty != DIR && ms[i].ty == 0 && NameTree.Alive(m) &&
      m.ty == REG
    ensures var p := Abs(g, ms, files, held, dirs, places); i !in p.nodes && i in p.gens && p.gens[i] == ms[i].gen &&
      Abs(g, Unnamed(ms, i, m), files[i := b], held[i := {}], dirs, places) ==
        N.FS(p.nodes[i := NodeOf(m, b, {}, map[], map[])], p.gens[i := m.gen], p.xattrs)
  {
    At(g, ms, files, held, dirs, places, i);
    var k := UnnamedMeta(m, ms[2].parent);
    EntrySteps.OneInode(g, ms, ms[i := k], files, files[i := b], held, held[i := {}], dirs, dirs, places, places, i);
    Unseen(g, ms[i := k], files[i := b], held[i := {}], dirs, places, 2, WithParent(ms[2], i));
  }

  // ---- the last close ----

  // the place j of the list q, before which, at -1, is inode 2
  function Place(q: seq<uint64>, j: int): uint64
    requires -1 <= j < |q|
  { if j < 0 then 2 else q[j] }

  // what comes after that place, and whether that is ino
  lemma Follows(g: Geometry, ms: Metas, q: seq<uint64>, j: int, ino: uint64)
    requires NameTree.KeptBy(g, ms, q) && OkIno(g, 2) && OkIno(g, ino) && 2 < ino && -1 <= j < |q|
    ensures var at := Place(q, j); OkIno(g, at) && at in ms && ms[at].parent == (if j + 1 < |q| then q[j + 1] else 0) &&
      (ms[at].parent == ino ==> Before(ms, at, ino))
    ensures if j + 1 < |q| then OkIno(g, q[j + 1]) && q[j + 1] != 0 &&
      q[..j + 2] == q[..j + 1] + [q[j + 1]] else q[..j + 1] == q
    ensures ino !in q && ino in ms ==> !NameTree.IsKept(ms[ino])
  {
    if j + 1 < |q| {
      if q[j + 1] == ino && 0 <= j { assert q[j] != q[j + 1]; }
    } else { assert q[..j + 1] == q; }
  }

  // What precedes ino on the list, looked for from `from` on: 2, or another kept file.
  method Predecessor(txn: Txn, d: DirFs, ino: uint64, from: uint64) returns (found: bool, at: uint64)
    requires Sound(d) && txn.volume == d.fs.volume && OkIno(d.fs.geometry, ino) && 2 < ino
    ensures found ==> OkIno(d.fs.geometry, at) && Before(d.fs.metas, at, ino)
    ensures !found && from == ORPHANS ==> ino in d.fs.metas && !NameTree.IsKept(d.fs.metas[ino])
  {
    ghost var g, ms := d.fs.geometry, d.fs.metas;
    ghost var w := NameTree.Elim(g, ms, d.dirs);
    ghost var q := w.kept;
    found, at := false, from;
    if !OkIno(d.fs.geometry, from) { return; }
    assert OkIno(g, ORPHANS) && OkIno(g, ino);
    var ip := d.fs.GetInode(txn, at, false);
    var fl := GetFlags(ip);
    if at != ORPHANS && fl / 2 % 2 == 0 { return; }
    ghost var j: int := -1;
    if at != ORPHANS { j :| 0 <= j < |q| && q[j] == at; }
    while true
      invariant -1 <= j < |q| && at == Place(q, j) && |ip.data| == 256 && at in ms && MetaOf(ip.data) == ms[at]
      invariant from == ORPHANS ==> ino !in q[..j + 1]
      decreases |q| - j
    {
      Follows(g, ms, q, j, ino);
      var next := GetParent(ip);
      if next == ino { found := true; return; }
      if next == 0 || !OkIno(d.fs.geometry, next) { return; }
      ip := d.fs.GetInode(txn, next, false);
      at := next;
      j := j + 1;
    }
  }

  // The file is not kept any more, and loses that link. It was between `at` and next (or 0) on the list. later: the
  // background has work.
  method LetGo(txn: Txn, d: DirFs, ino: uint64, gen: uint64, from: uint64, s: uint64, ns: uint32)
    returns (st: uint32, later: bool, at: uint64, next: uint64)
    modifies d.Repr()
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> Sound(d) && L.LetGoOk(old(AbsOf(d)), AbsOf(d), N.Handle(ino, gen), N.Time(s, ns))
    ensures st != 0 ==> L.LetGoErr(old(AbsOf(d)), N.Handle(ino, gen), from == ORPHANS, st)
    ensures st == 0 ==> Tells(old(d.fs.metas), d.fs.metas, later)
  {
    later, at, next := false, 0, 0;
    Node(d, ino, gen);
    Soundness.KeptIs(d, ino);
    NameTree.Basics(d.fs.geometry, d.fs.metas, d.dirs);
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, true);
    if st != 0 { return; }
    var fl := GetFlags(ip);
    if fl / 2 % 2 == 0 { st := INVAL; return; }
    assert NameTree.Fits(ino, d.fs.metas[ino]);
    var found;
    found, at := Predecessor(txn, d, ino, from);
    if !found { st := NOENT; return; }
    later, next := Drop(txn, d, ino, at, s, ns);
  }
  method Drop(txn: Txn, d: DirFs, ino: uint64, at: uint64, s: uint64, ns: uint32) returns (later: bool, next: uint64)
    modifies d.Repr()
    requires Sound(d) && txn.volume == d.fs.volume && OkIno(d.fs.geometry, ino) && 2 < ino &&
      OkIno(d.fs.geometry, at) &&
      Before(d.fs.metas, at, ino)
    ensures Sound(d) && ino in old(AbsOf(d)).nodes &&
      AbsOf(d) == N.FS(U.Dropped(old(AbsOf(d)).nodes, ino, N.Time(s, ns)), old(AbsOf(d)).gens, old(AbsOf(d)).xattrs)
    ensures Tells(old(d.fs.metas), d.fs.metas, later)
  {
    ghost var g, ms, files, held, dirs, places := d.fs.geometry, d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places;
    NameTree.Basics(g, ms, dirs);
    assert NameTree.Fits(ino, ms[ino]) && NameTree.Fits(at, ms[at]) && OkIno(g, ORPHANS) && NameTree.Fits(2, ms[2]);
    var ip := d.fs.GetInode(txn, ino, true);
    var fl := GetFlags(ip);
    next := GetParent(ip);
    SetFlags(ip, fl - 2);
    SetParent(ip, 0);
    d.PutInode(txn, ino, ip);
    var hp := d.fs.GetInode(txn, at, true);
    SetParent(hp, next);
    d.PutInode(txn, at, hp);
    ghost var u := d.fs.metas;
    assert u == Unkept(ms, at, ino);
    Unseen(g, ms, files, held, dirs, places, ino, UnkeptMeta(ms[ino]));
    Unseen(g, ms[ino := UnkeptMeta(ms[ino])], files, held, dirs, places, at, WithParent(ms[at], next));
    var st, freed;
    st, freed, later := DropLink(txn, d, ino, s, ns);
    ghost var sh := LeftoverOf(d.fs.metas[ino]);
    assert d.dirs == dirs;
    LetGoOk(g, ms, dirs, at, ino, s, ns, sh, freed);
    EntrySteps.DropShows(g, u, files, d.fs.files, held, d.fs.held, dirs, dirs, places, ino, s, ns, sh, freed);
  }

  // A step of clearing the list, when the volume is opened: its first file is let go. more: there was one.
  method Clear(txn: Txn, d: DirFs, s: uint64, ns: uint32) returns (st: uint32, more: bool, later: bool, first: uint64)
    modifies d.Repr()
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 && Sound(d) && L.ClearOk(old(AbsOf(d)), AbsOf(d), N.Time(s, ns), more)
    ensures more ==> N.Kept(old(AbsOf(d)), first)
    ensures Tells(old(d.fs.metas), d.fs.metas, later)
  {
    ghost var g, ms, pre := d.fs.geometry, d.fs.metas, AbsOf(d);
    NameTree.Basics(g, ms, d.dirs);
    FirstKept(g, ms, d.dirs);
    assert OkIno(g, ORPHANS);
    var hp := d.fs.GetInode(txn, ORPHANS, true);
    first := GetParent(hp);
    st, more, later := 0, first != 0, false;
    if !more {
      forall i: uint64 ensures i in pre.nodes ==> !N.Kept(pre, i) { Soundness.KeptIs(d, i); }
      return;
    }
    assert NameTree.Fits(first, ms[first]);
    Soundness.KeptIs(d, first);
    // never on a sound volume; on another one the list could come back to where it was, for ever
    if !OkIno(d.fs.geometry, first) || first <= ORPHANS { st := SERVERFAULT; return; }
    var ip := d.fs.GetInode(txn, first, true);
    var fl := GetFlags(ip);
    if fl / 2 % 2 == 0 { st := SERVERFAULT; return; }
    var next;
    later, next := Drop(txn, d, first, ORPHANS, s, ns);
    assert N.Kept(pre, first);
  }
}
