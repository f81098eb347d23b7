include "attributes.dfy"
include "../refinement/creation.dfy"
// CREATE, MKDIR, SYMLINK and MKNOD.
module CreateOps {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened TxnS
  import opened VolumeGeometry
  import opened InodeFormat
  import opened ByteFiles
  import opened Directories
  import opened Permissions
  import opened BlockStore
  import Room = NfsRoom
  import opened ProcedureBase
  import opened AttributeOps
  import opened AttributeChanges
  import opened DirSizes
  import opened Abstraction
  import opened Creation
  import NameTree
  import N = NfsState
  import C = NfsCommon
  import P = NfsPerm
  import K = NfsMake

  const GUARDED: uint32 := 1
  const EXCLUSIVE: uint32 := 2
  // what a new file, directory, or symbolic link may be used for unless the call says otherwise: 0644, 0755, 0777
  const FILEMODE: uint32 := 420
  const DIRMODE: uint32 := 493
  const LINKMODE: uint32 := 511

  // Can name be made in directory dino? found: it is there already (ino), and keep
  // wants to use what is there; else that is EXIST, also where the caller may not write. bad is an error in the
  // arguments. hint is for Enter.
  method Vacant(txn: Txn, d: DirFs, c: Cred, dino: uint64, dgen: uint64, name: Bytes, bad: uint32, a: Sattr, keep: bool)
    returns (st: uint32, dir: Bytes?, found: bool, ino: uint64, hint: uint64)
    requires Sound(d) && txn.volume == d.fs.volume
    ensures dir != null ==> fresh(dir) && |dir.data| == 256 && Live(d.fs.geometry, d.fs.metas, dino, dgen) &&
      MetaOf(dir.data) == d.fs.metas[dino]
    ensures st == 0 ==> OkIno(d.fs.geometry, dino) && dino in d.dirs && dino in d.fs.metas && OkName(name.data) &&
      bad == 0 && dir != null && |dir.data| == 256 && MetaOf(dir.data) == d.fs.metas[dino]
    ensures st == 0 ==> DirHandleS(d.fs.geometry, d.fs.metas, dino, dgen) == 0 && N.Proper(name.data) &&
      C.ArgsOk(SattrOf(a))
    ensures st == 0 ==> N.LiveDir(AbsOf(d), N.Handle(dino, dgen)) && AbsOf(d).nodes[dino].body.names == d.dirs[dino] &&
      C.Can(WhoOf(c), AbsOf(d).nodes[dino], P.EXEC)
    ensures st == 0 ==> (found ==> keep) && (!found ==> C.Can(WhoOf(c), AbsOf(d).nodes[dino], P.EXEC + P.WRITE))
    ensures st == 0 ==> (found <==> name.data in d.dirs[dino])
    ensures st == 0 && found ==> d.dirs[dino][name.data] == ino && OkIno(d.fs.geometry, ino)
    ensures st == 0 && a.hasSize ==> a.size as int <= MAXFILE as int
    ensures st != 0 ==> VacantErr(AbsOf(d), WhoOf(c), N.Handle(dino, dgen), name.data, bad, SattrOf(a), keep, st)
  {
    DirStatus(d, dino, dgen, name.data);
    found, ino, hint := false, 0, 0;
    var dots: uint32;
    st, dir, dots := OpenDir(txn, d, dino, dgen, name, true);
    if st != 0 { return; }
    if dots != 0 { st := EXIST; return; }
    if bad != 0 { st := bad; return; }
    st := ArgStatus(a);
    if st != 0 { return; }
    ghost var who, dn, names := WhoOf(c), AbsOf(d).nodes[dino], d.dirs[dino];
    var x := May(c, dir, MAYEXEC);
    assert x <==> C.Can(who, dn, P.EXEC);
    if !x { st := ACCES; return; }
    found, ino, hint := d.LookupHint(txn, dino, name, true);
    if found {
      if !keep { st := EXIST; }
      return;
    }
    st := Deny(c, dir, MAYWRITE + MAYEXEC);
    assert st == 0 <==> C.Can(who, dn, P.EXEC + P.WRITE);
  }
  predicate EntryErr(n: N.Node, c: P.Caller, name: seq<byte>, keep: bool, st: uint32)
    requires n.body.Dir?
  { if !C.Can(c, n, P.EXEC) then st == ACCES else if name in n.body.names then st == EXIST && !keep else
    st == C.Denial(n) && !C.Can(c, n, P.EXEC + P.WRITE) }
  predicate VacantErr(f: N.FS, c: P.Caller, h: N.Handle, name: seq<byte>, bad: uint32, a: N.Sattr, keep: bool,
    st: uint32)
  {
    C.DirErr(f, h, st) || C.NameErr(name, st) || (st == EXIST && N.Dots(name)) || (bad != 0 && st == bad) ||
      C.ArgErr(a, st) ||
    (N.LiveDir(f, h) && EntryErr(f.nodes[h.ino], c, name, keep, st))
  }

  // A new inode of type ty with its first attributes; mode is what it has unless a says otherwise.
  method NewNode(txn: Txn, d: DirFs, c: Cred, dino: uint64, dir: Bytes, ty: uint32, a: Sattr, mode: uint32, s: uint64,
    ns: uint32)
    returns (st: uint32, ino: uint64)
    modifies d.Repr(), txn.inodes
    requires d.Valid() && txn.volume == d.fs.volume && ty != 0 && |dir.data| == 256
    ensures st == 0 ==> d.Valid() && OkIno(d.fs.geometry, ino) && 2 < ino && ino !in old(d.dirs) &&
      ino in old(d.fs.files) &&
      old(d.fs.files)[ino] == []
    ensures st == 0 ==> d.dirs == (if ty == DIR then old(d.dirs)[ino := map[]] else old(d.dirs)) &&
      d.places == (if ty == DIR then old(d.places)[ino := map[]] else old(d.places))
    ensures st == 0 ==> d.fs.files == old(d.fs.files)[ino := []] && d.fs.held == old(d.fs.held)[ino := {}]
    ensures st == 0 ==> ino in old(d.fs.metas) && old(d.fs.metas)[ino].ty == 0 &&
      old(d.fs.metas)[ino].gen < 0xffff_ffff_ffff_ffff
    ensures st == 0 ==> d.fs.metas == old(d.fs.metas)[ino :=
      Born(WhoOf(c), MetaOf(dir.data), ty, old(d.fs.metas)[ino].gen + 1, mode, SattrOf(a), dino, N.Time(s, ns))]
    ensures st == 0 || st == NOSPC
    ensures st != 0 ==> (txn.inodes.Dry() && GotInodes(txn) <= old(GotInodes(txn))) ||
      Unfit(d.fs.geometry, old(d.fs.metas))
  {
    var ok: bool;
    st := 0;
    ghost var g := d.fs.metas;
    ok, ino := d.AllocInode(txn, dino, ty);
    if !ok { st := NOSPC; return; }
    var ip := d.fs.GetInode(txn, ino, true);
    FirstAttrs(c, dino, dir, ip, ty, g[ino].gen + 1, a, mode, s, ns);
    d.PutInode(txn, ino, ip);
  }

  // ip, an inode just taken in directory dino, which is dir, gets its first attributes.
  method FirstAttrs(c: Cred, dino: uint64, dir: Bytes, ip: Bytes, ty: uint32, ghost g: uint64, a: Sattr, mode: uint32,
    s: uint64, ns: uint32)
    modifies ip
    requires |dir.data| == 256 && |ip.data| == 256 && dir != ip && ip != c.gids && MetaOf(ip.data) == NewMeta(ty, g)
    ensures Keeps(old(ip.data), ip.data)
    ensures MetaOf(ip.data) == Born(WhoOf(c), MetaOf(dir.data), ty, g, mode, SattrOf(a), dino, N.Time(s, ns))
  {
    var m := WithoutNobody(a);
    var t := Without(m, false, c.uid != 0);
    ghost var w, dm, sa, now := WhoOf(c), MetaOf(dir.data), SattrOf(a), N.Time(s, ns);
    ghost var m0 := MetaOf(ip.data);
    InitAttr(c, dir, ip, mode, s, ns);
    ghost var f := FirstS(w, dm, ty, mode, now);
    ghost var m1 := MetaOf(ip.data);
    assert m1 == WithAttr(m0, f);
    assert MetaAttr(m1) == f && m1.ty == ty;
    Apply(c, ip, t, s, ns);
    ghost var sw := N.WithoutSize(K.Wanted(w, sa));
    assert SattrOf(t) == sw;
    ghost var at := C.Applied(w, ty, f, sw, now);
    ghost var m2 := MetaOf(ip.data);
    assert IsApplied(w, m1, m2, sw, now);
    assert m2 == WithAttr(m1, at);
    InheritMode(c, dir, ip);
    assert MetaOf(ip.data) == WithMode(WithAttr(m0, at), P.InheritedMode(w, ty, dm.marks, at.mode));
    if ty == DIR {
      InheritSetgid(dir, ip);
      SetParent(ip, dino);
    }
    assert MetaOf(ip.data) == Born(w, dm, ty, g, mode, sa, dino, now);
  }

  // Enter a new inode into its directory, and read both back for the reply.
  method Enter(txn: Txn, d: DirFs, dino: uint64, name: Bytes, hint: uint64, ino: uint64, sub: bool, s: uint64,
    ns: uint32)
    returns (st: uint32, node: Bytes, after: Bytes)
    modifies d.Repr(), txn.blocks
    requires d.Valid() && txn.volume == d.fs.volume && OkIno(d.fs.geometry, dino) && OkIno(d.fs.geometry, ino)
    requires dino in d.dirs && OkName(name.data) && name.data !in d.dirs[dino] && ino != dino
    ensures fresh(node) && fresh(after)
    ensures st == 0 ==> d.Valid() && dino in old(d.dirs) &&
      d.dirs == old(d.dirs)[dino := old(d.dirs)[dino][name.data := ino]]
    // the entries that were there stay where they are
    ensures st == 0 ==> dino in old(d.places) && dino in d.places && d.places == old(d.places)[dino := d.places[dino]]
    ensures st == 0 ==> forall x: seq<byte> {:trigger x in old(d.dirs)[dino]} | x in old(d.dirs)[dino] &&
      x in old(d.places)[dino] :: x in d.places[dino] && d.places[dino][x] == old(d.places)[dino][x]
    ensures st == 0 ==> dino in old(d.fs.files) && dino in d.fs.files &&
      d.fs.files == old(d.fs.files)[dino := d.fs.files[dino]] && dino in d.fs.held &&
      d.fs.held == old(d.fs.held)[dino := d.fs.held[dino]]
    ensures st == 0 ==> |node.data| == 256 && ino in d.fs.metas && MetaOf(node.data) == d.fs.metas[ino]
    ensures st == 0 ==> |after.data| == 256 && dino in d.fs.metas && MetaOf(after.data) == d.fs.metas[dino]
    ensures dino in old(d.fs.metas) && (st == 0 ==>
      d.fs.metas == old(d.fs.metas)[dino := d.fs.metas[dino]] &&
      Entered(old(d.fs.metas)[dino], d.fs.metas[dino], sub, s, ns) &&
      SizeFollows(old(d.dirs)[dino], d.dirs[dino], d.places[dino], old(d.fs.metas)[dino], d.fs.metas[dino]))
    ensures st != 0 ==> st == NOSPC || (st == MLINK && sub && old(d.fs.metas)[dino].nlink >= MAXLINK)
    ensures st == 0 && sub ==> old(d.fs.metas)[dino].nlink < MAXLINK
    ensures d.NoEntry(txn, dino, name.data, old(GotBlocks(txn)), old(d.fs.files), old(d.fs.metas), st != NOSPC)
  {
    var ok := d.InsertAt(txn, dino, name, ino, hint);
    node := NewBytes(0);
    after := node;
    if !ok { st := NOSPC; return; }
    forall x: seq<byte> | x in old(d.dirs)[dino] && x in old(d.places)[dino]
      ensures x in d.places[dino] && d.places[dino][x] == old(d.places)[dino][x]
    { assert x in d.dirs[dino]; }
    st := 0;
    if sub {
      st := AddLink(txn, d, dino, true);
      if st != 0 { return; }
    }
    after := Touch(txn, d, dino, s, ns);
    node := d.fs.GetInode(txn, ino, false);
  }

  predicate EmptyNode(n: N.Node, a: N.Attr, parent: uint64)
  { n == N.Node(a, N.Dir(map[], map[], parent, 0), 0) }

  // The last step of all four: d is the volume with inode ino (attributes m, bytes b, blocks h)
  // entered in directory dino; ms, files, held, dirs, places are from before.
  lemma Conclude(d: DirFs, ms: Metas, files: Files, held: Helds, dirs: NameTree.Dirs, places: DirPlaces, dino: uint64,
    dgen: uint64, name: seq<byte>, ino: uint64, m: Meta, b: seq<byte>, h: set<int>, s: uint64, ns: uint32)
    requires d.Valid() && NameTree.TreeOk(d.fs.geometry, ms, dirs) && DirHandleS(d.fs.geometry, ms, dino, dgen) == 0 &&
      dino in dirs && name !in dirs[dino] && N.Proper(name)
    requires dino in files && |files[dino]| == ms[dino].size as int
    requires OkIno(d.fs.geometry, ino) && 2 < ino && ino in ms && ms[ino].ty == 0 &&
      ms[ino].gen < 0xffff_ffff_ffff_ffff &&
      m.gen == ms[ino].gen + 1 && ino != dino
    requires NameTree.Fits(ino, m) && !NameTree.OnList(m) && !NameTree.IsKept(m) && REG <= m.ty <= FIFO &&
      (if m.ty == DIR then m.nlink == 2 && m.parent == dino else m.nlink == 1)
    requires dino in d.fs.metas && d.fs.metas == ms[ino := m][dino := d.fs.metas[dino]] &&
      Entered(ms[dino], d.fs.metas[dino], m.ty == DIR, s, ns)
    requires dino in d.fs.files && d.fs.files == files[ino := b][dino := d.fs.files[dino]] && dino in d.fs.held &&
      d.fs.held == held[ino := h][dino := d.fs.held[dino]]
    requires d.dirs == (if m.ty == DIR then dirs[ino := map[]] else dirs)[dino := dirs[dino][name := ino]]
    requires dino in d.places && d.places == (if m.ty == DIR then places[ino := map[]]
      else places)[dino := d.places[dino]]
    requires forall x: seq<byte> {:trigger x in dirs[dino]} | x in dirs[dino] && x in PlacesAt(places, dino) ::
      x in d.places[dino] && d.places[dino][x] == PlacesAt(places, dino)[x]
    requires SizeFollows(dirs[dino], dirs[dino][name := ino], d.places[dino], ms[dino], d.fs.metas[dino])
    ensures Sound(d) && ino in AbsOf(d).nodes
    ensures K.Made(Abs(d.fs.geometry, ms, files, held, dirs, places), AbsOf(d), dino, name, N.Handle(ino, m.gen),
      AbsOf(d).nodes[ino], N.Time(s, ns), ReplyAttr(ino, m),
        N.Wcc(ReplyAttr(dino, ms[dino]), ReplyAttr(dino, d.fs.metas[dino])))
    ensures N.Live(AbsOf(d), N.Handle(ino, m.gen))
    ensures if m.ty == DIR then m.used == 0 && m.size == 0 ==> EmptyNode(AbsOf(d).nodes[ino], MetaAttr(m), dino)
      else AbsOf(d).nodes[ino] == NodeOf(m, b, h, map[], map[])
  {
    ghost var ms', files', held', dirs', places' :=
      MadeOk(d.fs.geometry, ms, files, held, dirs, places, dino, name, ino, m, b, h, d.fs.metas[dino], d.fs.files[dino],
      d.fs.held[dino], d.places[dino], s, ns);
    assert d.fs.metas == ms' && d.fs.files == files' && d.fs.held == held' && d.dirs == dirs' && d.places == places';
    NameTree.Basics(d.fs.geometry, ms, dirs);
    AtHandle(d.fs.geometry, ms, files, held, dirs, places, dino, dgen);
    Node(d, dino, dgen);
    Node(d, ino, m.gen);
  }

  // how: createmode3; verf is for EXCLUSIVE. An existing file counts as made when
  // UNCHECKED (its size is set, nothing else), or when EXCLUSIVE made it with this verf.
  // ino is the file also with SHRINKFIRST. later: the background has work. With EXCLUSIVE, a is empty.
  method Create(txn: Txn, d: DirFs, c: Cred, dino: uint64, dgen: uint64, name: Bytes, how: uint32, a: Sattr,
    verf: uint64, s: uint64, ns: uint32)
    returns (st: uint32, ino: uint64, node: Bytes?, before: Bytes?, after: Bytes?, later: bool)
    modifies d.Repr(), txn.blocks, txn.inodes
    requires Sound(d) && txn.volume == d.fs.volume && (how == EXCLUSIVE ==> a.Empty())
    ensures st == 0 ==> Sound(d) && node != null && |node.data| == 256 && before != null && |before.data| == 256 &&
      after != null && |after.data| == 256
    ensures st == 0 ==> K.CreateOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(dino, dgen), name.data, how, SattrOf(a),
      verf, N.Time(s, ns), N.Handle(ino, MetaOf(node.data).gen),
      ReplyAttr(ino, MetaOf(node.data)), N.Wcc(ReplyAttr(dino, MetaOf(before.data)),
        ReplyAttr(dino, MetaOf(after.data))))
    ensures st != 0 ==> K.CreateErr(old(AbsOf(d)), WhoOf(c), N.Handle(dino, dgen), name.data, how, SattrOf(a), verf, st)
    ensures st != 0 ==> N.Seen(old(AbsOf(d)), dino, Reply(dino, before))
    ensures Lacking(txn, old(StockOf(txn, d)), Room.MakeNeeds(), st) || old(NoPlace(d, dino, name.data))
    // the caller has its blocks freed then, and calls again
    ensures st == SHRINKFIRST ==> N.LiveDir(old(AbsOf(d)), N.Handle(dino, dgen)) &&
      name.data in old(AbsOf(d)).nodes[dino].body.names && ino == old(AbsOf(d)).nodes[dino].body.names[name.data] &&
      0 < old(ToFree(d, ino))
    ensures st == 0 ==> Tells(old(d.fs.metas), d.fs.metas, later)
  {
    DirStatus(d, dino, dgen, name.data);
    Node(d, dino, dgen);
    ghost var pre, w, sa, now := AbsOf(d), WhoOf(c), SattrOf(a), N.Time(s, ns);
    node, after, later := null, null, false;
    var found: bool;
    var hint: uint64;
    st, before, found, ino, hint := Vacant(txn, d, c, dino, dgen, name, if how > EXCLUSIVE then INVAL else 0, a,
      how != GUARDED);
    if st != 0 { return; }
    ghost var dn := pre.nodes[dino];
    ghost var dm := d.fs.metas[dino];
    if found {
      var p: Bytes;
      NameTree.EntryOk(d.fs.geometry, d.fs.metas, d.dirs, dino, name.data);
      st, p, later := Existing(txn, d, c, ino, how, a, verf, s, ns);
      if st == 0 { node, after := p, before; }
      return;
    }
    assert how == EXCLUSIVE ==> sa == N.NoSattr();
    if Unfit(d.fs.geometry, d.fs.metas) { IsWorn(d); }
    st, ino, node, after := NewFile(txn, d, c, dino, dgen, before, name, hint, a, how, verf, s, ns);
    if !old(NoPlace(d, dino, name.data)) { IsLacking(txn, old(StockOf(txn, d)), Room.MakeNeeds(), st); }
  }

  // the inode of a new file, with its verifier or size
  method NewData(txn: Txn, d: DirFs, c: Cred, dino: uint64, dir: Bytes, a: Sattr, how: uint32, verf: uint64, s: uint64,
    ns: uint32)
    returns (st: uint32, ino: uint64)
    modifies d.Repr(), txn.inodes
    requires d.Valid() && txn.volume == d.fs.volume && |dir.data| == 256 && (how == EXCLUSIVE ==> a.Empty()) &&
      (a.hasSize ==> a.size <= MAXFILE)
    ensures st == 0 ==> d.Valid() && OkIno(d.fs.geometry, ino) && 2 < ino && ino !in old(d.dirs) &&
      d.dirs == old(d.dirs) &&
      d.places == old(d.places)
    ensures st == 0 ==> ino in old(d.fs.metas) && old(d.fs.metas)[ino].ty == 0 &&
      old(d.fs.metas)[ino].gen < 0xffff_ffff_ffff_ffff && ino in d.fs.metas && ino in d.fs.files
    ensures st == 0 ==> d.fs.files == old(d.fs.files)[ino := if a.hasSize then Zeros(a.size as int) else []] &&
      d.fs.held == old(d.fs.held)[ino := {}]
    ensures st == 0 ==> d.fs.metas == old(d.fs.metas)[ino :=
      DataMeta(Born(WhoOf(c), MetaOf(dir.data), REG, old(d.fs.metas)[ino].gen + 1, if how == EXCLUSIVE then 0
        else FILEMODE,
        SattrOf(a), dino, N.Time(s, ns)), how, a.hasSize, a.size, verf)]
    ensures st == 0 || st == NOSPC
    ensures st != 0 ==> (txn.inodes.Dry() && GotInodes(txn) <= old(GotInodes(txn))) ||
      Unfit(d.fs.geometry, old(d.fs.metas))
  {
    ghost var ms, w, dm, sa, now := d.fs.metas, WhoOf(c), MetaOf(dir.data), SattrOf(a), N.Time(s, ns);
    var mode: uint32 := if how == EXCLUSIVE then 0 else FILEMODE;
    st, ino := NewNode(txn, d, c, dino, dir, REG, a, mode, s, ns);
    if st != 0 { return; }
    ghost var gen := ms[ino].gen + 1;
    ghost var m := Born(w, dm, REG, gen, mode, sa, dino, now);
    BornIs(w, N.Node(MetaAttr(dm), N.File([], 0, {}), 0), dm, 1, gen, mode, sa, dino, now);
    if how == EXCLUSIVE {
      var ip := d.fs.GetInode(txn, ino, true);
      SetVerf(ip, verf);
      d.PutInode(txn, ino, ip);
    } else if a.hasSize {
      var later: bool;
      st, later := Resize(txn, d, ino, a.size);
      if st != 0 { return; }
      assert [] + Zeros(a.size as int) == Zeros(a.size as int) && d.fs.files[ino] == Zeros(a.size as int);
      assert C.HeldBelow({}, a.size as int) == {};
    }
  }
  function DataMeta(m: Meta, how: uint32, sized: bool, size: uint64, verf: uint64): Meta
  { if how == 2 then WithVerf(m, verf) else if sized then Resized(m, size) else m }

  // CREATE of a name that is not there
  method NewFile(txn: Txn, d: DirFs, c: Cred, dino: uint64, ghost dgen: uint64, dir: Bytes, name: Bytes, hint: uint64,
    a: Sattr, how: uint32, verf: uint64, s: uint64, ns: uint32)
    returns (st: uint32, ino: uint64, node: Bytes?, after: Bytes?)
    modifies d.Repr(), txn.blocks, txn.inodes
    requires Sound(d) && txn.volume == d.fs.volume && DirHandleS(d.fs.geometry, d.fs.metas, dino, dgen) == 0 &&
      dino in d.dirs &&
      how <= 2 && (how == EXCLUSIVE ==> a.Empty()) && (a.hasSize ==> a.size <= MAXFILE)
    requires |dir.data| == 256 && MetaOf(dir.data) == d.fs.metas[dino] && N.Proper(name.data) &&
      name.data !in d.dirs[dino]
    ensures dino in old(AbsOf(d)).nodes && old(AbsOf(d)).nodes[dino].body.Dir?
    ensures st == 0 ==> Sound(d) && node != null && |node.data| == 256 && after != null && |after.data| == 256
    ensures st == 0 ==> ino in AbsOf(d).nodes && AbsOf(d).nodes[ino] ==
      K.NewFile(WhoOf(c), old(AbsOf(d)).nodes[dino], how, SattrOf(a), verf, N.Time(s, ns))
    ensures st == 0 ==> K.Made(old(AbsOf(d)), AbsOf(d), dino, name.data, N.Handle(ino, MetaOf(node.data).gen),
      AbsOf(d).nodes[ino], N.Time(s, ns),
      ReplyAttr(ino, MetaOf(node.data)), N.Wcc(ReplyAttr(dino, MetaOf(dir.data)), ReplyAttr(dino, MetaOf(after.data))))
    ensures st == 0 || st == NOSPC
    ensures st == NOSPC && txn.blocks != txn.inodes ==>
      Short(txn, old(GotBlocks(txn)), old(GotInodes(txn)), Room.MakeNeeds()) ||
      old(NoPlace(d, dino, name.data)) || Unfit(d.fs.geometry, old(d.fs.metas))
    ensures st == 0 ==> Tells(old(d.fs.metas), d.fs.metas, false)
  {
    DirStatus(d, dino, dgen, name.data);
    ghost var ms, files, held, dirs, places, w, sa, now := d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places,
      WhoOf(c), SattrOf(a), N.Time(s, ns);
    ghost var dn, dm := AbsOf(d).nodes[dino], MetaOf(dir.data);
    assert how == EXCLUSIVE ==> sa == N.NoSattr();
    node, after := null, null;
    var mode: uint32 := if how == EXCLUSIVE then 0 else FILEMODE;
    st, ino := NewData(txn, d, c, dino, dir, a, how, verf, s, ns);
    BornIs(w, dn, dm, REG, 0, mode, sa, dino, now);
    if st != 0 { return; }
    ghost var gen := ms[ino].gen + 1;
    BornIs(w, dn, dm, REG, gen, mode, sa, dino, now);
    ghost var m, b := d.fs.metas[ino], d.fs.files[ino];
    assert NameTree.Fits(ino, m);
    assert ino != dino && d.fs.files[dino] == files[dino] && d.fs.metas[dino] == ms[dino];
    st, node, after := Enter(txn, d, dino, name, hint, ino, false, s, ns);
    if st != 0 { return; }
    Conclude(d, ms, files, held, dirs, places, dino, dgen, name.data, ino, m, b, {}, s, ns);
  }

  predicate Reused(pre: N.FS, post: N.FS, c: P.Caller, ino: uint64, gen: uint64, how: uint32, sized: bool, size: uint64,
    verf: uint64, now: N.Time, na: N.Fattr)
  {
    N.IsFile(pre, ino) && N.Live(post, N.Handle(ino, gen)) && na == N.FattrOf(ino, post.nodes[ino]) &&
    if how == 2 then verf != 0 && pre.nodes[ino].body.verf == verf && post == pre
    else if !sized then post == pre
    else C.CanCutData(c, pre.nodes[ino]) && C.Set(pre, post, c, ino, N.OnlySize(size), now)
  }
  predicate ReuseErr(pre: N.FS, c: P.Caller, ino: uint64, how: uint32, sized: bool, size: uint64, verf: uint64,
    st: uint32)
  {
    (st == EXIST && (!N.IsFile(pre, ino) || (how == 2 && (verf == 0 || pre.nodes[ino].body.verf != verf)))) ||
    (N.IsFile(pre, ino) && how == 0 && sized &&
      ((st == C.CutDenial(pre.nodes[ino]) && !C.CanCutData(c, pre.nodes[ino])) ||
        (st == SHRINKFIRST && size as int > |pre.nodes[ino].body.data|)))
  }

  // CREATE of a name that is there
  method Existing(txn: Txn, d: DirFs, c: Cred, ino: uint64, how: uint32, a: Sattr, verf: uint64, s: uint64, ns: uint32)
    returns (st: uint32, node: Bytes, later: bool)
    modifies d.Repr()
    requires Sound(d) && txn.volume == d.fs.volume && OkIno(d.fs.geometry, ino) && 2 < ino &&
      NameTree.InUse(d.fs.metas, ino) &&
      how != GUARDED && how <= 2 && (a.hasSize ==> a.size <= MAXFILE)
    ensures fresh(node)
    ensures st == 0 ==> Sound(d) && |node.data| == 256
    ensures st == 0 ==> Reused(old(AbsOf(d)), AbsOf(d), WhoOf(c), ino, MetaOf(node.data).gen, how, a.hasSize, a.size,
      verf,
      N.Time(s, ns), ReplyAttr(ino, MetaOf(node.data)))
    ensures st != 0 ==> ReuseErr(old(AbsOf(d)), WhoOf(c), ino, how, a.hasSize, a.size, verf, st)
    ensures st == SHRINKFIRST ==> 0 < old(ToFree(d, ino))
    ensures st == 0 ==> Tells(old(d.fs.metas), d.fs.metas, later)
  {
    Node(d, ino, d.fs.metas[ino].gen);
    assert OkIno(d.fs.geometry, ORPHANS) by { NameTree.Basics(d.fs.geometry, d.fs.metas, d.dirs); }
    ghost var ms, files, held, w, now := d.fs.metas, d.fs.files, d.fs.held, WhoOf(c), N.Time(s, ns);
    later := false;
    st, node := OpenEntry(txn, d, ino, true);
    if st != 0 { return; }
    var ty := GetTy(node);
    if ty != REG { st := EXIST; return; }
    if how == EXCLUSIVE {
      var v := GetVerf(node);
      if v != verf || v == 0 { st := EXIST; }
      return;
    }
    if !a.hasSize { return; }
    st := DenyData(c, node, true);
    if st != 0 { return; }
    st, later := Resize(txn, d, ino, a.size);
    if st != 0 { return; }
    ghost var r := d.fs.metas;
    ghost var m := r[ino];
    ghost var sh := LeftoverOf(m);
    node := d.fs.GetInode(txn, ino, true);
    var ts, tns := Stamp(node, s, ns);
    SetMtime(node, ts, tns);
    SetCtime(node, ts, tns);
    if c.uid != 0 {
      var mode := GetMode(node);
      InodeFormat.SetMode(node, KillPriv(mode));
    }
    SetVerf(node, 0);
    d.PutInode(txn, ino, node);
    ghost var sa := N.OnlySize(a.size);
    ghost var t := N.Stamp(now, MetaAttr(m).ctime);
    ghost var e, mode := C.Applied(w, m.ty, MetaAttr(m), sa, t), m.mode;
    assert e == N.Attr(if w.uid != 0 then P.KillPriv(mode) else mode, m.nlink, m.uid, m.gid, N.Time(m.atime, m.atimens),
      t, t, m.marks);
    assert MetaOf(node.data) == WithVerf(WithAttr(m, e), 0);
    SetattrEffect(w, d.fs.geometry, ms, d.fs.metas, files, d.fs.files, held, d.fs.held, d.dirs, d.places, ino, sa, now,
      sh,
      !later);
    Node(d, ino, d.fs.metas[ino].gen);
  }

  // a size in a is ignored, here and in Symlink and Mknod
  method Mkdir(txn: Txn, d: DirFs, c: Cred, dino: uint64, dgen: uint64, name: Bytes, a: Sattr, s: uint64, ns: uint32)
    returns (st: uint32, ino: uint64, node: Bytes?, before: Bytes?, after: Bytes?)
    modifies d.Repr(), txn.blocks, txn.inodes
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> Sound(d) && node != null && |node.data| == 256 && before != null && |before.data| == 256 &&
      after != null && |after.data| == 256
    ensures st == 0 ==> K.MkdirOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(dino, dgen), name.data, SattrOf(a),
      N.Time(s, ns), N.Handle(ino, MetaOf(node.data).gen),
      ReplyAttr(ino, MetaOf(node.data)), N.Wcc(ReplyAttr(dino, MetaOf(before.data)),
        ReplyAttr(dino, MetaOf(after.data))))
    ensures st != 0 ==> K.MkdirErr(old(AbsOf(d)), WhoOf(c), N.Handle(dino, dgen), name.data, SattrOf(a), st)
    ensures st != 0 ==> N.Seen(old(AbsOf(d)), dino, Reply(dino, before))
    ensures Lacking(txn, old(StockOf(txn, d)), Room.MakeNeeds(), st) || old(NoPlace(d, dino, name.data))
  {
    DirStatus(d, dino, dgen, name.data);
    Node(d, dino, dgen);
    var t := Without(a, false, false);
    node, after, ino := null, null, 0;
    var found: bool;
    var x: uint64;
    var hint: uint64;
    st, before, found, x, hint := Vacant(txn, d, c, dino, dgen, name, 0, t, false);
    if st != 0 { return; }
    if Unfit(d.fs.geometry, d.fs.metas) { IsWorn(d); }
    st, ino, node, after := NewDir(txn, d, c, dino, dgen, before, name, hint, t, s, ns);
    if !old(NoPlace(d, dino, name.data)) { IsLacking(txn, old(StockOf(txn, d)), Room.MakeNeeds(), st); }
  }

  // the target is stored as the link's data, 1 to 4095 bytes; a mode in a is ignored, too (links have 0777)
  method Symlink(txn: Txn, d: DirFs, c: Cred, dino: uint64, dgen: uint64, name: Bytes, a: Sattr, target: Bytes,
    s: uint64, ns: uint32)
    returns (st: uint32, ino: uint64, node: Bytes?, before: Bytes?, after: Bytes?)
    modifies d.Repr(), txn.blocks, txn.inodes
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> Sound(d) && node != null && |node.data| == 256 && before != null && |before.data| == 256 &&
      after != null && |after.data| == 256
    ensures st == 0 ==> K.SymlinkOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(dino, dgen), name.data, SattrOf(a),
      target.data, N.Time(s, ns), N.Handle(ino, MetaOf(node.data).gen),
      ReplyAttr(ino, MetaOf(node.data)), N.Wcc(ReplyAttr(dino, MetaOf(before.data)),
        ReplyAttr(dino, MetaOf(after.data))))
    ensures st != 0 ==> K.SymlinkErr(old(AbsOf(d)), WhoOf(c), N.Handle(dino, dgen), name.data, SattrOf(a), target.data,
      st)
    ensures st != 0 ==> N.Seen(old(AbsOf(d)), dino, Reply(dino, before))
    ensures Lacking(txn, old(StockOf(txn, d)), Room.SymlinkNeeds(target.data), st) || old(NoPlace(d, dino, name.data))
  {
    DirStatus(d, dino, dgen, name.data);
    Node(d, dino, dgen);
    var t := Without(a, true, false);
    node, after, ino := null, null, 0;
    var found: bool;
    var x: uint64;
    var hint: uint64;
    var bad := TargetStatus(target);
    st, before, found, x, hint := Vacant(txn, d, c, dino, dgen, name, bad, t, false);
    if st != 0 { return; }
    if Unfit(d.fs.geometry, d.fs.metas) { IsWorn(d); }
    st, ino, node, after := NewLink(txn, d, c, dino, dgen, before, name, hint, t, target, s, ns);
    if !old(NoPlace(d, dino, name.data)) { IsLacking(txn, old(StockOf(txn, d)), Room.SymlinkNeeds(target.data), st); }
  }

  // the error for what cannot be a symbolic link's target
  method TargetStatus(target: Bytes) returns (st: uint32)
    ensures st == if target.data == [] then INVAL else if |target.data| > 4095 then NAMETOOLONG
      else if 0 in target.data then INVAL else 0
  {
    var len: uint64 := target.Len();
    if len == 0 { st := INVAL; return; }
    if len > 4095 { st := NAMETOOLONG; return; }
    var i: uint64 := 0;
    while i < len
      invariant 0 <= i <= len && len as int == |target.data|
      invariant forall k: int {:trigger target.data[k]} | 0 <= k < i as int :: target.data[k] != 0
      decreases len - i
    {
      var b := target.Get(i);
      if b == 0 { st := INVAL; return; }
      i := i + 1;
    }
    st := 0;
  }

  // devices (root only), FIFOs and sockets
  method Mknod(txn: Txn, d: DirFs, c: Cred, dino: uint64, dgen: uint64, name: Bytes, ty: uint32, a: Sattr, maj: uint32,
    min: uint32, s: uint64, ns: uint32)
    returns (st: uint32, ino: uint64, node: Bytes?, before: Bytes?, after: Bytes?)
    modifies d.Repr(), txn.blocks, txn.inodes
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> Sound(d) && node != null && |node.data| == 256 && before != null && |before.data| == 256 &&
      after != null && |after.data| == 256
    ensures st == 0 ==> K.MknodOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(dino, dgen), name.data, ty, SattrOf(a),
      maj, min, N.Time(s, ns), N.Handle(ino, MetaOf(node.data).gen),
      ReplyAttr(ino, MetaOf(node.data)), N.Wcc(ReplyAttr(dino, MetaOf(before.data)),
        ReplyAttr(dino, MetaOf(after.data))))
    ensures st != 0 ==> K.MknodErr(old(AbsOf(d)), WhoOf(c), N.Handle(dino, dgen), name.data, ty, SattrOf(a), maj, min,
      st)
    ensures st != 0 ==> N.Seen(old(AbsOf(d)), dino, Reply(dino, before))
    ensures Lacking(txn, old(StockOf(txn, d)), Room.MakeNeeds(), st) || old(NoPlace(d, dino, name.data))
  {
    DirStatus(d, dino, dgen, name.data);
    Node(d, dino, dgen);
    var t := Without(a, false, false);
    node, after, ino := null, null, 0;
    var found: bool;
    var x: uint64;
    var hint: uint64;
    var dev := ty == BLK || ty == CHR;
    var bad: uint32 := if !dev && ty != SOCK && ty != FIFO then BADTYPE
      else if dev && c.uid != 0 then PERM else if dev && (maj >= 0x1000 || min >= 0x10_0000) then INVAL else 0;
    st, before, found, x, hint := Vacant(txn, d, c, dino, dgen, name, bad, t, false);
    if st != 0 { return; }
    if Unfit(d.fs.geometry, d.fs.metas) { IsWorn(d); }
    st, ino, node, after := NewDev(txn, d, c, dino, dgen, before, name, hint, t, ty, maj, min, s, ns);
    if !old(NoPlace(d, dino, name.data)) { IsLacking(txn, old(StockOf(txn, d)), Room.MakeNeeds(), st); }
  }

  // the new inode, and its entry
  method NewDir(txn: Txn, d: DirFs, c: Cred, dino: uint64, ghost dgen: uint64, dir: Bytes, name: Bytes, hint: uint64,
    a: Sattr, s: uint64, ns: uint32)
    returns (st: uint32, ino: uint64, node: Bytes?, after: Bytes?)
    modifies d.Repr(), txn.blocks, txn.inodes
    requires Sound(d) && txn.volume == d.fs.volume && DirHandleS(d.fs.geometry, d.fs.metas, dino, dgen) == 0 &&
      dino in d.dirs
    requires |dir.data| == 256 && MetaOf(dir.data) == d.fs.metas[dino] && N.Proper(name.data) &&
      name.data !in d.dirs[dino]
    ensures dino in old(AbsOf(d)).nodes && old(AbsOf(d)).nodes[dino].body.Dir?
    ensures st == 0 ==> Sound(d) && node != null && |node.data| == 256 && after != null && |after.data| == 256
    ensures st == 0 ==> ino in AbsOf(d).nodes && EmptyNode(AbsOf(d).nodes[ino],
      K.NewAttr(WhoOf(c), old(AbsOf(d)).nodes[dino], DIR, DIRMODE, SattrOf(a), N.Time(s, ns)), dino) &&
      old(AbsOf(d)).nodes[dino].attr.nlink < MAXLINK
    ensures st == 0 ==> K.Made(old(AbsOf(d)), AbsOf(d), dino, name.data, N.Handle(ino, MetaOf(node.data).gen),
      AbsOf(d).nodes[ino], N.Time(s, ns),
      ReplyAttr(ino, MetaOf(node.data)), N.Wcc(ReplyAttr(dino, MetaOf(dir.data)), ReplyAttr(dino, MetaOf(after.data))))
    ensures st == 0 || st == NOSPC || (st == MLINK && old(AbsOf(d)).nodes[dino].attr.nlink >= MAXLINK)
    ensures st == NOSPC && txn.blocks != txn.inodes ==>
      Short(txn, old(GotBlocks(txn)), old(GotInodes(txn)), Room.MakeNeeds()) ||
      old(NoPlace(d, dino, name.data)) || Unfit(d.fs.geometry, old(d.fs.metas))
  {
    DirStatus(d, dino, dgen, name.data);
    ghost var ms, files, held, dirs, places, w, sa, now := d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places,
      WhoOf(c), SattrOf(a), N.Time(s, ns);
    ghost var dn, dm := AbsOf(d).nodes[dino], MetaOf(dir.data);
    node, after := null, null;
    BornIs(w, dn, dm, DIR, 0, DIRMODE, sa, dino, now);
    st, ino := NewNode(txn, d, c, dino, dir, DIR, a, DIRMODE, s, ns);
    if st != 0 { return; }
    ghost var gen := ms[ino].gen + 1;
    BornIs(w, dn, dm, DIR, gen, DIRMODE, sa, dino, now);
    ghost var m := d.fs.metas[ino];
    assert d.fs.metas == ms[ino := m] && d.fs.files == files[ino := []] && d.fs.held == held[ino := {}];
    assert ino != dino && d.fs.files[dino] == files[dino] && d.fs.metas[dino] == ms[dino];
    st, node, after := Enter(txn, d, dino, name, hint, ino, true, s, ns);
    if st != 0 { return; }
    Conclude(d, ms, files, held, dirs, places, dino, dgen, name.data, ino, m, [], {}, s, ns);
  }

  // the new inode, and its entry
  method NewLink(txn: Txn, d: DirFs, c: Cred, dino: uint64, ghost dgen: uint64, dir: Bytes, name: Bytes, hint: uint64,
    a: Sattr, target: Bytes, s: uint64, ns: uint32)
    returns (st: uint32, ino: uint64, node: Bytes?, after: Bytes?)
    modifies d.Repr(), txn.blocks, txn.inodes
    requires Sound(d) && txn.volume == d.fs.volume && DirHandleS(d.fs.geometry, d.fs.metas, dino, dgen) == 0 &&
      dino in d.dirs &&
      0 < |target.data| <= 4095
    requires |dir.data| == 256 && MetaOf(dir.data) == d.fs.metas[dino] && N.Proper(name.data) &&
      name.data !in d.dirs[dino]
    ensures dino in old(AbsOf(d)).nodes && old(AbsOf(d)).nodes[dino].body.Dir?
    ensures st == 0 ==> Sound(d) && node != null && |node.data| == 256 && after != null && |after.data| == 256
    ensures st == 0 ==> ino in AbsOf(d).nodes && AbsOf(d).nodes[ino] ==
      N.Node(K.NewAttr(WhoOf(c), old(AbsOf(d)).nodes[dino], LNK, LINKMODE, SattrOf(a), N.Time(s, ns)),
        N.Symlink(target.data),
      1)
    ensures st == 0 ==> K.Made(old(AbsOf(d)), AbsOf(d), dino, name.data, N.Handle(ino, MetaOf(node.data).gen),
      AbsOf(d).nodes[ino], N.Time(s, ns),
      ReplyAttr(ino, MetaOf(node.data)), N.Wcc(ReplyAttr(dino, MetaOf(dir.data)), ReplyAttr(dino, MetaOf(after.data))))
    ensures st == 0 || st == NOSPC
    ensures st == NOSPC && txn.blocks != txn.inodes ==>
      Short(txn, old(GotBlocks(txn)), old(GotInodes(txn)), Room.SymlinkNeeds(target.data)) ||
      old(NoPlace(d, dino, name.data)) || Unfit(d.fs.geometry, old(d.fs.metas))
  {
    DirStatus(d, dino, dgen, name.data);
    ghost var ms, files, held, dirs, places, w, sa, now := d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places,
      WhoOf(c), SattrOf(a), N.Time(s, ns);
    ghost var dn, dm := AbsOf(d).nodes[dino], MetaOf(dir.data);
    node, after := null, null;
    BornIs(w, dn, dm, LNK, 0, LINKMODE, sa, dino, now);
    st, ino := NewNode(txn, d, c, dino, dir, LNK, a, LINKMODE, s, ns);
    if st != 0 { return; }
    ghost var gen := ms[ino].gen + 1;
    BornIs(w, dn, dm, LNK, gen, LINKMODE, sa, dino, now);
    ghost var m := WithSizeUsed(d.fs.metas[ino], |target.data| as uint64, 1);
    var len: uint64 := target.Len();
    var ok := d.Write(txn, ino, 0, target, 0, len);
    if !ok { st := NOSPC; return; }
    assert d.fs.files[ino] == target.data;
    assert C.Blocks(0, |target.data|) - {} == {0};
    assert d.fs.metas == ms[ino := m] && d.fs.files == files[ino := target.data] &&
      d.fs.held == held[ino := d.fs.held[ino]];
    ghost var h := d.fs.held[ino];
    assert ino != dino && d.fs.files[dino] == files[dino] && d.fs.metas[dino] == ms[dino];
    st, node, after := Enter(txn, d, dino, name, hint, ino, false, s, ns);
    if st != 0 { return; }
    Conclude(d, ms, files, held, dirs, places, dino, dgen, name.data, ino, m, target.data, h, s, ns);
  }

  // the new inode, and its entry
  method NewDev(txn: Txn, d: DirFs, c: Cred, dino: uint64, ghost dgen: uint64, dir: Bytes, name: Bytes, hint: uint64,
    a: Sattr, ty: uint32, maj: uint32, min: uint32, s: uint64, ns: uint32)
    returns (st: uint32, ino: uint64, node: Bytes?, after: Bytes?)
    modifies d.Repr(), txn.blocks, txn.inodes
    requires Sound(d) && txn.volume == d.fs.volume && DirHandleS(d.fs.geometry, d.fs.metas, dino, dgen) == 0 &&
      dino in d.dirs &&
      (ty == BLK || ty == CHR || ty == SOCK || ty == FIFO)
    requires |dir.data| == 256 && MetaOf(dir.data) == d.fs.metas[dino] && N.Proper(name.data) &&
      name.data !in d.dirs[dino]
    ensures dino in old(AbsOf(d)).nodes && old(AbsOf(d)).nodes[dino].body.Dir?
    ensures st == 0 ==> Sound(d) && node != null && |node.data| == 256 && after != null && |after.data| == 256
    ensures st == 0 ==> ino in AbsOf(d).nodes && AbsOf(d).nodes[ino] ==
      DevNode(K.NewAttr(WhoOf(c), old(AbsOf(d)).nodes[dino], ty, FILEMODE, SattrOf(a), N.Time(s, ns)), ty, maj, min)
    ensures st == 0 ==> K.Made(old(AbsOf(d)), AbsOf(d), dino, name.data, N.Handle(ino, MetaOf(node.data).gen),
      AbsOf(d).nodes[ino], N.Time(s, ns),
      ReplyAttr(ino, MetaOf(node.data)), N.Wcc(ReplyAttr(dino, MetaOf(dir.data)), ReplyAttr(dino, MetaOf(after.data))))
    ensures st == 0 || st == NOSPC
    ensures st == NOSPC && txn.blocks != txn.inodes ==>
      Short(txn, old(GotBlocks(txn)), old(GotInodes(txn)), Room.MakeNeeds()) ||
      old(NoPlace(d, dino, name.data)) || Unfit(d.fs.geometry, old(d.fs.metas))
  {
    DirStatus(d, dino, dgen, name.data);
    ghost var ms, files, held, dirs, places, w, sa, now := d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places,
      WhoOf(c), SattrOf(a), N.Time(s, ns);
    ghost var dn, dm := AbsOf(d).nodes[dino], MetaOf(dir.data);
    node, after := null, null;
    BornIs(w, dn, dm, ty, 0, FILEMODE, sa, dino, now);
    st, ino := NewNode(txn, d, c, dino, dir, ty, a, FILEMODE, s, ns);
    if st != 0 { return; }
    ghost var gen := ms[ino].gen + 1;
    BornIs(w, dn, dm, ty, gen, FILEMODE, sa, dino, now);
    ghost var m := d.fs.metas[ino];
    if ty == BLK || ty == CHR {
      var ip := d.fs.GetInode(txn, ino, true);
      SetRdev(ip, maj, min);
      d.PutInode(txn, ino, ip);
      m := WithRdev(m, maj, min);
    }
    assert d.fs.metas == ms[ino := m] && d.fs.files == files[ino := []] && d.fs.held == held[ino := {}];
    assert ino != dino && d.fs.files[dino] == files[dino] && d.fs.metas[dino] == ms[dino];
    st, node, after := Enter(txn, d, dino, name, hint, ino, false, s, ns);
    if st != 0 { return; }
    Conclude(d, ms, files, held, dirs, places, dino, dgen, name.data, ino, m, [], {}, s, ns);
  }

  function DevNode(a: N.Attr, ty: uint32, maj: uint32, min: uint32): N.Node
  { N.Node(a, if ty == BLK || ty == CHR then N.Special(ty, maj, min) else N.Special(ty, 0, 0), 0) }
}
