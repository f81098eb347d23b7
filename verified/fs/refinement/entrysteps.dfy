// How steps show to clients: one inode changes, comes, or goes; a directory gets
// other entries; an entry that goes takes a link of its file with it.
include "abstraction.dfy"
include "../directories/dirsizes.dfy"
module EntrySteps {
  import opened Machine
  import opened VolumeGeometry
  import opened InodeFormat
  import opened AttributeChanges
  import opened NameTree
  import opened Abstraction
  import opened DirSizes
  import N = NfsState
  import C = NfsCommon
  import U = NfsUnlink

  // What one inode is made of is the same, but for what never shows.
  predicate Alike(ms: Metas, ms': Metas, files: Files, files': Files, held: Helds, held': Helds, dirs: Dirs,
    dirs': Dirs, places: DirPlaces, places': DirPlaces, j: uint64)
  {
    (j in ms <==> j in ms') && (j in ms ==> Hidden(ms[j], ms'[j])) && FileAt(files', j) == FileAt(files, j) &&
      HeldAt(held', j) == HeldAt(held, j) && DirAt(dirs', j) == DirAt(dirs, j) &&
      PlacesAt(places', j) == PlacesAt(places, j)
  }
  function Minus(nodes: map<uint64, N.Node>, i: uint64): map<uint64, N.Node>
  { map x | x in nodes && x != i :: nodes[x] }

  // only inode i changes
  lemma OneInode(g: Geometry, ms: Metas, ms': Metas, files: Files, files': Files, held: Helds, held': Helds, dirs: Dirs,
    dirs': Dirs, places: DirPlaces, places': DirPlaces, i: uint64)
    requires OkIno(g, i) && i != 2 && i in ms && i in ms' && FileAt(files', 2) == FileAt(files, 2)
    requires forall j: uint64 {:trigger OkIno(g, j)} | OkIno(g, j) && j != i ::
      Alike(ms, ms', files, files', held, held', dirs, dirs', places, places', j)
    ensures var p, q := Abs(g, ms, files, held, dirs, places), Abs(g, ms', files', held', dirs', places');
      q.gens == p.gens[i := ms'[i].gen] && q.xattrs == p.xattrs &&
        q.nodes == if Alive(ms'[i]) then p.nodes[i := NodeAt(ms', files', held', dirs', places', i)]
        else Minus(p.nodes, i)
  {
    reveal Abs();
    var p, q := Abs(g, ms, files, held, dirs, places), Abs(g, ms', files', held', dirs', places');
    var r := if Alive(ms'[i]) then p.nodes[i := NodeAt(ms', files', held', dirs', places', i)] else Minus(p.nodes, i);
    forall j: uint64
      ensures (j in q.nodes <==> j in r) && (j in r ==> q.nodes[j] == r[j])
    {
      if j != i && OkIno(g, j) { assert Alike(ms, ms', files, files', held, held', dirs, dirs', places, places', j); }
    }
    assert q.nodes == r;
    forall j: uint64
      ensures (j in q.gens <==> j in p.gens[i := ms'[i].gen]) &&
        (j in q.gens ==> q.gens[j] == p.gens[i := ms'[i].gen][j])
    {
      if j != i && OkIno(g, j) { assert Alike(ms, ms', files, files', held, held', dirs, dirs', places, places', j); }
    }
    assert q.gens == p.gens[i := ms'[i].gen];
  }

  // Directory i has the entries e at the places at, and other time stamps and links.
  lemma DirChange(g: Geometry, ms: Metas, files: Files, held: Helds, dirs: Dirs, places: DirPlaces, i: uint64, m: Meta,
    f: seq<byte>, h: set<int>, e: map<Name, uint64>, at: map<Name, int>, now: N.Time)
    requires OkIno(g, i) && i != 2 && i in ms && Alive(ms[i]) && ms[i].ty == N.NF3DIR && m.ty == N.NF3DIR &&
      m.nlink != 0 &&
      m.gen == ms[i].gen && m.parent == ms[i].parent
    requires MetaAttr(m) == C.SetMtimeCtime(MetaAttr(ms[i]), m.nlink, now)
    requires forall n: Name {:trigger n in e} | n in e && n in DirAt(dirs, i) && n in PlacesAt(places, i) ::
      n in at && at[n] == PlacesAt(places, i)[n]
    requires SizeFollows(DirAt(dirs, i), e, at, ms[i], m)
    ensures var p, q := Abs(g, ms, files, held, dirs, places),
      Abs(g, ms[i := m], files[i := f], held[i := h], dirs[i := e], places[i := at]);
      i in p.nodes && i in q.nodes && q.gens == p.gens && q.xattrs == p.xattrs && q.nodes == p.nodes[i := q.nodes[i]] &&
        p.nodes[i].body.Dir? && C.DirStep(p.nodes[i], q.nodes[i], e, m.nlink as int, now)
  {
    At(g, ms, files, held, dirs, places, i);
    OneInode(g, ms, ms[i := m], files, files[i := f], held, held[i := h], dirs, dirs[i := e], places, places[i := at],
      i);
    var p := Abs(g, ms, files, held, dirs, places);
    assert p.gens[i := m.gen] == p.gens;
  }

  // An entry of inode i is gone, and with it a link (Dropped).
  lemma DropShows(g: Geometry, ms: Metas, files: Files, files': Files, held: Helds, held': Helds, dirs: Dirs,
    dirs': Dirs,
    places: DirPlaces, i: uint64, s: uint64, ns: uint32, sh: Leftover, freed: bool)
    requires OkIno(g, i) && 2 < i && i in ms && 2 in ms && Alive(ms[i]) && (freed ==> LastLink(ms[i]))
    requires files' == (if LastLink(ms[i]) then files[i := []] else files) &&
      held' == (if LastLink(ms[i]) then held[i := {}] else held)
    requires forall j: uint64 {:trigger j in dirs'} | j != i ::
      (j in dirs <==> j in dirs') && (j in dirs ==> dirs'[j] == dirs[j])
    requires DirAt(dirs', i) == DirAt(dirs, i)
    ensures var p, q := Abs(g, ms, files, held, dirs, places),
      Abs(g, Dropped(ms, i, s, ns, sh, freed), files', held', dirs', places);
      i in p.nodes && q.gens == p.gens && q.xattrs == p.xattrs && q.nodes == U.Dropped(p.nodes, i, N.Time(s, ns))
  {
    var ms' := Dropped(ms, i, s, ns, sh, freed);
    At(g, ms, files, held, dirs, places, i);
    forall j: uint64 | OkIno(g, j) && j != i
      ensures Alike(ms, ms', files, files', held, held', dirs, dirs', places, places, j)
    { assert j in dirs' || j !in dirs'; }
    OneInode(g, ms, ms', files, files', held, held', dirs, dirs', places, places, i);
    var p := Abs(g, ms, files, held, dirs, places);
    assert p.gens[i := ms[i].gen] == p.gens;
    assert ms'[i].gen == ms[i].gen;
  }

  // Of a step of the background (Stepped) nothing shows but that blocks were freed.
  lemma StepHides(g: Geometry, ms: Metas, files: Files, held: Helds, dirs: Dirs, dirs': Dirs, places: DirPlaces,
    sh: Leftover)
    requires 2 in ms && ms[2].next in ms && 2 < ms[2].next && OkIno(g, ms[2].next) && sh.used <= ms[ms[2].next].used
    requires dirs' == (if sh.shrink == 0 && ms[ms[2].next].nlink == 0 then map x | x in dirs && x != ms[2].next ::
      dirs[x] else dirs)
    ensures N.Freed(Abs(g, ms, files, held, dirs, places), Abs(g, Stepped(ms, sh), files, held, dirs', places))
  {
    var h, ms' := ms[2].next, Stepped(ms, sh);
    forall i: uint64
      ensures (Shown(g, ms, i) <==> Shown(g, ms', i)) &&
      (Shown(g, ms, i) ==> N.Shed(NodeAt(ms, files, held, dirs, places, i), NodeAt(ms', files, held, dirs', places, i)))
    { if i != h && i in dirs { assert dirs' == dirs || i in dirs'; } }
    SameButFreed(g, ms, ms', files, held, dirs, dirs', places);
  }

  // The directory changes before or after: it is all the same.
  lemma DropApart(ms: Metas, d: uint64, x: Meta, m: Meta, i: uint64, s: uint64, ns: uint32, sh: Leftover, freed: bool)
    requires i in ms && 2 in ms && d in ms && d != i && d != 2
    ensures Dropped(ms[d := x], i, s, ns, sh, freed)[d := m] == Dropped(ms, i, s, ns, sh, freed)[d := m]
    ensures Dropped(ms[d := x], i, s, ns, sh, freed)[d := x] == Dropped(ms[d := x], i, s, ns, sh, freed)
    ensures d in Dropped(ms[d := x], i, s, ns, sh, freed) && Dropped(ms[d := x], i, s, ns, sh, freed)[d] == x
  { }
  lemma DropNodes(nodes: map<uint64, N.Node>, d: uint64, n: N.Node, i: uint64, now: N.Time)
    requires i in nodes && d != i
    ensures U.Dropped(nodes[d := n], i, now) == U.Dropped(nodes, i, now)[d := n]
  { }
}
