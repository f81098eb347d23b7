// What CREATE, MKDIR, SYMLINK and MKNOD do to the tree and to what clients see: a
// new inode, then a new entry.
include "entrysteps.dfy"
include "../tree/treemove.dfy"
module Creation {
  import opened Machine
  import opened VolumeGeometry
  import opened InodeFormat
  import opened AttributeChanges
  import opened NameTree
  import opened TreeMove
  import opened Abstraction
  import opened EntrySteps
  import opened DirSizes
  import N = NfsState
  import C = NfsCommon
  import P = NfsPerm
  import K = NfsMake

  // the attributes of a new object in a directory with the attributes dm (NfsMake.FirstAttr)
  function FirstS(c: P.Caller, dm: Meta, ty: uint32, mode: uint32, now: N.Time): N.Attr
  {
    N.Attr(mode, if ty == N.NF3DIR then 2 else 1, c.uid, if P.IsSetgid(dm.mode) then dm.gid else c.gid, now, now, now,
      P.Inherited(c, ty, dm.marks))
  }
  // the inode that is made
  function Born(c: P.Caller, dm: Meta, ty: uint32, gen: uint64, mode: uint32, s: N.Sattr, dino: uint64,
    now: N.Time): Meta
  {
    var given := C.Applied(c, ty, FirstS(c, dm, ty, mode, now), N.WithoutSize(K.Wanted(c, s)), now);
    var m := WithMode(WithAttr(NewMeta(ty, gen), given), P.InheritedMode(c, ty, dm.marks, given.mode));
    if ty != N.NF3DIR then m
    else WithParent(if P.IsSetgid(dm.mode) then WithMode(m, P.AddSetgid(m.mode)) else m, dino)
  }
  lemma BornIs(c: P.Caller, d: N.Node, dm: Meta, ty: uint32, gen: uint64, mode: uint32, s: N.Sattr, dino: uint64,
    now: N.Time)
    requires d.attr == MetaAttr(dm) && mode < 4096
    ensures var m := Born(c, dm, ty, gen, mode, s, dino, now); MetaAttr(m) == K.NewAttr(c, d, ty, mode, s, now) &&
      m.ty == ty && m.gen == gen && m.size == 0 && m.used == 0 && m.shrink == 0 && m.flags == 0 && m.next == 0 &&
        m.verf == 0 && m.major == 0 && m.minor == 0 &&
      m.nlink == (if ty == N.NF3DIR then 2 else 1) && m.mode < 4096 && (ty == N.NF3DIR ==> m.parent == dino)
  {
    var f := FirstS(c, dm, ty, mode, now);
    assert f == K.FirstAttr(c, d, ty, mode, now);
    var t := N.WithoutSize(K.Wanted(c, s));
    var a := C.Applied(c, ty, f, t, now);
    SmallMode(c, ty, f, t, now);
    var m := P.InheritedMode(c, ty, dm.marks, a.mode);
    SmallBounded(c, ty, dm.marks, a.mode);
    assert P.AddSetgid(m) < 4096;
  }
  lemma SmallBounded(c: P.Caller, ty: uint32, flags: uint32, mode: uint32)
    requires mode < 4096
    ensures P.InheritedMode(c, ty, flags, mode) < 4096
  {
    var n := P.DefaultNumber(flags) % 4096;
    if n in c.lists {
      var l := c.lists[n];
      SmallBoth(P.OwnerRights(mode), l.owner);
      SmallBoth(P.GroupRights(mode), if l.masked then l.mask else l.group);
      SmallBoth(P.OtherRights(mode), l.other);
    }
  }
  lemma SmallBoth(a: uint32, b: uint32)
    ensures P.Both(a, b) < 8
  { }
  lemma SmallMode(c: P.Caller, ty: uint32, a: N.Attr, s: N.Sattr, now: N.Time)
    requires a.mode < 4096
    ensures C.Applied(c, ty, a, s, now).mode < 4096 && C.Applied(c, ty, a, s, now).nlink == a.nlink
  { }

  // directory dm becomes m: an entry more, sub: for a directory
  predicate Entered(dm: Meta, m: Meta, sub: bool, s: uint64, ns: uint32)
  {
    (sub ==> dm.nlink < 0x7fff_ffff) &&
    m == Touched(WithNlink(WithSizeNent(dm, m.size, m.nent, m.used), if sub then dm.nlink + 1 else dm.nlink), s, ns)
  }

  // The effect of all four: inode i, free before, is m with the bytes b and the blocks h, and directory d,
  // now dm with the file df in the blocks dh, has it under the name n.
  lemma MadeOk(g: Geometry, ms: Metas, files: Files, held: Helds, dirs: Dirs, places: DirPlaces, d: uint64, n: Name,
    i: uint64,
    m: Meta, b: seq<byte>, h: set<int>, dm: Meta, df: seq<byte>, dh: set<int>, at: map<Name, int>, s: uint64,
    ns: uint32)
    returns (ms': Metas, files': Files, held': Helds, dirs': Dirs, places': DirPlaces)
    requires TreeOk(g, ms, dirs) && OkIno(g, d) && d != 2 && d in ms && d in dirs && InUse(ms, d) && n !in dirs[d] &&
      N.Proper(n)
    requires OkIno(g, i) && 2 < i && i in ms && ms[i].ty == 0 && ms[i].gen < 0xffff_ffff_ffff_ffff &&
      m.gen == ms[i].gen + 1
    requires Fits(i, m) && !OnList(m) && !IsKept(m) && m.ty != 0 &&
      (if m.ty == N.NF3DIR then m.nlink == 2 && m.parent == d else m.nlink == 1)
    requires Entered(ms[d], dm, m.ty == N.NF3DIR, s, ns)
    requires forall x: Name {:trigger x in dirs[d]} | x in dirs[d] && x in PlacesAt(places, d) ::
      x in at && at[x] == PlacesAt(places, d)[x]
    requires SizeFollows(dirs[d], dirs[d][n := i], at, ms[d], dm)
    ensures ms' == ms[i := m][d := dm] && files' == files[i := b][d := df] && held' == held[i := h][d := dh]
    ensures dirs' == (if m.ty == N.NF3DIR then dirs[i := map[]] else dirs)[d := dirs[d][n := i]] &&
      places' == (if m.ty == N.NF3DIR then places[i := map[]] else places)[d := at]
    ensures TreeOk(g, ms', dirs')
    ensures var p, q := Abs(g, ms, files, held, dirs, places), Abs(g, ms', files', held', dirs', places');
      N.IsDir(p, d) && N.IsDir(q, d) && i !in p.nodes && i in p.gens && i in q.gens &&
        q.gens == p.gens[i := q.gens[i]] && q.xattrs == p.xattrs && q.gens[i] as int == p.gens[i] as int + 1 &&
      q.nodes == p.nodes[i := NodeOf(m, b, h, if m.ty == N.NF3DIR then map[] else DirAt(dirs, i),
        if m.ty == N.NF3DIR then map[] else PlacesAt(places, i))][d := q.nodes[d]] &&
      p.nodes[d].body.names == dirs[d] && C.DirStep(p.nodes[d], q.nodes[d], dirs[d][n := i],
        p.nodes[d].attr.nlink as int + (if m.ty == N.NF3DIR then 1 else 0), N.Time(s, ns))
  {
    Basics(g, ms, dirs);
    assert i != d;
    assert Fits(d, ms[d]);
    var ms1, files1, held1 := ms[i := m], files[i := b], held[i := h];
    var dirs1, places1 := if m.ty == N.NF3DIR then dirs[i := map[]] else dirs,
      if m.ty == N.NF3DIR then places[i := map[]] else places;
    ms', files', held', dirs', places' := ms1[d := dm], files1[d := df], held1[d := dh], dirs1[d := dirs[d][n := i]],
      places1[d := at];
    if m.ty == N.NF3DIR {
      EnterDir(g, ms, dirs, d, n, i, m, dm);
    } else {
      EnterFile(g, ms, dirs, d, n, i, m);
      SetAttr(g, ms1, dirs', d, dm);
    }
    At(g, ms, files, held, dirs, places, i);
    At(g, ms, files, held, dirs, places, d);
    OneInode(g, ms, ms1, files, files1, held, held1, dirs, dirs1, places, places1, i);
    At(g, ms1, files1, held1, dirs1, places1, d);
    DirChange(g, ms1, files1, held1, dirs1, places1, d, dm, df, dh, dirs[d][n := i], at, N.Time(s, ns));
  }
}
