// What a volume means to its clients: the state of nfs3.s.dfy as a function of
// the attributes, bytes, blocks and entries of all inodes, and how changes of one inode show in it.
//
// Only what is in use and has a link is part of it: neither free inodes, nor what waits on the
// orphan list, nor the fields that serve the server alone (flags, next, shrink, nent).
include "../files/attributechanges.dfy"
include "../files/xattrlists.dfy"
include "../format/geometry.dfy"
include "../tree/tree.dfy"
module Abstraction {
  import opened Machine
  import opened VolumeGeometry
  import opened InodeFormat
  import opened AttributeChanges
  import opened NameTree
  import N = NfsState
  import Xattrs = XattrLists

  type Files = map<uint64, seq<byte>>
  type Helds = map<uint64, set<int>>
  type DirPlaces = map<uint64, map<Name, int>>

  // a handle may name inode i
  predicate Shown(g: Geometry, ms: Metas, i: uint64) { OkIno(g, i) && i != 2 && i in ms && Alive(ms[i]) }

  function FileAt(files: Files, i: uint64): seq<byte> { if i in files then files[i] else [] }
  function HeldAt(held: Helds, i: uint64): set<int> { if i in held then held[i] else {} }
  function DirAt(dirs: Dirs, i: uint64): map<Name, uint64> { if i in dirs then dirs[i] else map[] }
  function PlacesAt(places: DirPlaces, i: uint64): map<Name, int> { if i in places then places[i] else map[] }

  // of the names that are there: so that it is a function of what is on disk
  function Cookies(names: map<Name, uint64>, at: map<Name, int>): map<Name, int>
  { map n | n in at && n in names :: at[n] + 3 }
  function BodyOf(m: Meta, f: seq<byte>, h: set<int>, names: map<Name, uint64>, at: map<Name, int>): N.Body
  {
    if m.ty == N.NF3REG then N.File(f, m.verf, h)
    else if m.ty == N.NF3DIR then N.Dir(names, Cookies(names, at), m.parent, m.size)
    else if m.ty == N.NF3LNK then N.Symlink(f)
    else N.Special(m.ty, m.major, m.minor)
  }
  function NodeOf(m: Meta, f: seq<byte>, h: set<int>, names: map<Name, uint64>, at: map<Name, int>): N.Node
  { N.Node(MetaAttr(m), BodyOf(m, f, h, names, at), m.used as int) }
  function NodeAt(ms: Metas, files: Files, held: Helds, dirs: Dirs, places: DirPlaces, i: uint64): N.Node
    requires i in ms
  { NodeOf(ms[i], FileAt(files, i), HeldAt(held, i), DirAt(dirs, i), PlacesAt(places, i)) }

  function Nodes(g: Geometry, ms: Metas, files: Files, held: Helds, dirs: Dirs, places: DirPlaces): map<uint64, N.Node>
  { map i | i in ms && Shown(g, ms, i) :: NodeAt(ms, files, held, dirs, places, i) }
  function Gens(g: Geometry, ms: Metas): map<uint64, uint64> { map i | i in ms && OkIno(g, i) :: ms[i].gen }
  function {:opaque} Abs(g: Geometry, ms: Metas, files: Files, held: Helds, dirs: Dirs, places: DirPlaces): N.FS
  { N.FS(Nodes(g, ms, files, held, dirs, places), Gens(g, ms), Xattrs.All(FileAt(files, 2))) }

  // the attributes in a reply, as the server reads them off an inode
  function ReplyAttr(i: uint64, m: Meta): N.Fattr
  {
    N.Fattr(m.ty, m.mode, m.nlink, N.ShownId(m.uid), N.ShownId(m.gid), m.size as int, UsedOf(m), m.major, m.minor, i,
      N.Time(m.atime, m.atimens), N.Time(m.mtime, m.mtimens), N.Time(m.ctime, m.ctimens))
  }

  // ---- one inode ----

  lemma At(g: Geometry, ms: Metas, files: Files, held: Helds, dirs: Dirs, places: DirPlaces, i: uint64)
    ensures var f := Abs(g, ms, files, held, dirs, places);
      (i in f.nodes <==> Shown(g, ms, i)) && (Shown(g, ms, i) ==>
        f.nodes[i] == NodeAt(ms, files, held, dirs, places, i)) &&
      (i in f.gens <==> i in ms && OkIno(g, i)) && (i in f.gens ==> f.gens[i] == ms[i].gen) &&
        f.xattrs == Xattrs.All(FileAt(files, 2))
  { reveal Abs(); }

  // the same of a handle, and what is in the reply
  lemma AtHandle(g: Geometry, ms: Metas, files: Files, held: Helds, dirs: Dirs, places: DirPlaces, i: uint64,
    gen: uint64)
    requires Locals(g, ms, dirs)
    requires OkIno(g, i) ==> |FileAt(files, i)| == ms[i].size as int
    ensures var f := Abs(g, ms, files, held, dirs, places);
      (N.Live(f, N.Handle(i, gen)) <==> Shown(g, ms, i) && ms[i].gen == gen) &&
      (Shown(g, ms, i) ==> i in f.nodes && f.nodes[i] == NodeAt(ms, files, held, dirs, places, i) &&
        N.Type(f.nodes[i]) == ms[i].ty && ReplyAttr(i, ms[i]) == N.FattrOf(i, f.nodes[i]))
  {
    At(g, ms, files, held, dirs, places, i);
    if Shown(g, ms, i) { assert Fits(i, ms[i]); }
  }

  // ---- changes ----

  // nothing that shows
  lemma Same(g: Geometry, ms: Metas, ms': Metas, files: Files, files': Files, held: Helds, held': Helds, dirs: Dirs,
    dirs': Dirs, places: DirPlaces, places': DirPlaces)
    requires forall i: uint64 {:trigger OkIno(g, i)} | OkIno(g, i) ::
      (i in ms <==> i in ms') && (i in ms ==> ms'[i].gen == ms[i].gen)
    requires forall i: uint64 {:trigger Shown(g, ms', i)} {:trigger Shown(g, ms, i)} ::
      (Shown(g, ms, i) <==> Shown(g, ms', i)) &&
      (Shown(g, ms, i) ==> NodeAt(ms', files', held', dirs', places', i) == NodeAt(ms, files, held, dirs, places, i))
    requires FileAt(files', 2) == FileAt(files, 2)
    ensures Abs(g, ms', files', held', dirs', places') == Abs(g, ms, files, held, dirs, places)
  {
    reveal Abs();
    assert Gens(g, ms') == Gens(g, ms);
    var a, b := Nodes(g, ms, files, held, dirs, places), Nodes(g, ms', files', held', dirs', places');
    forall i: uint64
      ensures (i in a <==> i in b) && (i in a ==> a[i] == b[i]) { assert Shown(g, ms, i) <==> Shown(g, ms', i); }
    assert a == b;
  }

  // some have fewer blocks, and nothing else shows
  lemma SameButFreed(g: Geometry, ms: Metas, ms': Metas, files: Files, held: Helds, dirs: Dirs, dirs': Dirs,
    places: DirPlaces)
    requires forall i: uint64 {:trigger OkIno(g, i)} | OkIno(g, i) ::
      (i in ms <==> i in ms') && (i in ms ==> ms'[i].gen == ms[i].gen)
    requires forall i: uint64 {:trigger Shown(g, ms', i)} {:trigger Shown(g, ms, i)} ::
      (Shown(g, ms, i) <==> Shown(g, ms', i)) &&
      (Shown(g, ms, i) ==> N.Shed(NodeAt(ms, files, held, dirs, places, i), NodeAt(ms', files, held, dirs', places, i)))
    ensures N.Freed(Abs(g, ms, files, held, dirs, places), Abs(g, ms', files, held, dirs', places))
  {
    reveal Abs();
    assert Gens(g, ms') == Gens(g, ms);
    var a, b := Nodes(g, ms, files, held, dirs, places), Nodes(g, ms', files, held, dirs', places);
    forall i: uint64
      ensures (i in a <==> i in b) && (i in a ==> N.Shed(a[i], b[i])) { assert Shown(g, ms, i) <==> Shown(g, ms', i); }
  }

  // inode i, in use, becomes another one with the same generation
  lemma Changed(g: Geometry, ms: Metas, files: Files, held: Helds, dirs: Dirs, places: DirPlaces, i: uint64, m: Meta,
    f: seq<byte>,
    h: set<int>)
    requires Shown(g, ms, i) && Alive(m) && m.gen == ms[i].gen
    ensures Abs(g, ms[i := m], files[i := f], held[i := h], dirs, places) ==
      N.FS(Abs(g, ms, files, held, dirs, places).nodes[i := NodeOf(m, f, h, DirAt(dirs, i), PlacesAt(places, i))],
      Abs(g, ms, files, held, dirs, places).gens, Abs(g, ms, files, held, dirs, places).xattrs)
  {
    reveal Abs();
    var ms' := ms[i := m];
    assert Gens(g, ms') == Gens(g, ms);
    var a, b := Nodes(g, ms, files, held, dirs, places)[i := NodeOf(m, f, h, DirAt(dirs, i), PlacesAt(places, i))],
      Nodes(g, ms', files[i := f], held[i := h], dirs, places);
    forall j: uint64
      ensures (j in a <==> j in b) && (j in a ==> a[j] == b[j])
      { assert j != i ==> (Shown(g, ms, j) <==> Shown(g, ms', j)); }
    assert a == b;
  }

  // on or off the orphan list, something or nothing left to be freed
  predicate Hidden(m: Meta, m': Meta) { m' == WithInner(m, m'.flags, m'.next, m'.shrink, m'.nent) }
  function WithInner(m: Meta, fl: uint32, nx: uint64, sh: uint64, ne: uint64): Meta
  { m.(flags := fl, next := nx, shrink := sh, nent := ne) }
  lemma HiddenStep(g: Geometry, ms: Metas, ms': Metas, files: Files, held: Helds, dirs: Dirs, places: DirPlaces)
    requires forall i: uint64 {:trigger OkIno(g, i)} | OkIno(g, i) ::
      (i in ms <==> i in ms') && (i in ms ==> Hidden(ms[i], ms'[i]))
    ensures Abs(g, ms', files, held, dirs, places) == Abs(g, ms, files, held, dirs, places)
  {
    forall i: uint64
      ensures (Shown(g, ms, i) <==> Shown(g, ms', i)) &&
      (Shown(g, ms, i) ==> NodeAt(ms', files, held, dirs, places, i) == NodeAt(ms, files, held, dirs, places, i))
    { if OkIno(g, i) { } }
    Same(g, ms, ms', files, files, held, held, dirs, dirs, places, places);
  }
}
