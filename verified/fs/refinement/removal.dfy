// What REMOVE, RMDIR and LINK do to the tree and to what clients see.
include "entrysteps.dfy"
include "../tree/treeunlink.dfy"
module Removal {
  import opened Machine
  import opened VolumeGeometry
  import opened InodeFormat
  import opened AttributeChanges
  import opened NameTree
  import opened TreeMove
  import opened TreeUnlink
  import opened Abstraction
  import opened EntrySteps
  import opened DirSizes
  import N = NfsState
  import C = NfsCommon
  import U = NfsUnlink

  // the directory dm becomes m when an entry goes; sub: of a directory
  predicate Left(dm: Meta, m: Meta, sub: bool, s: uint64, ns: uint32)
  {
    (sub ==> 2 < dm.nlink) &&
    m == Touched(WithNlink(WithSizeNent(dm, m.size, m.nent, m.used), if sub then dm.nlink - 1 else dm.nlink), s, ns)
  }

  // The entry n of d, of inode i, goes; the directory is then dm with the file df in the blocks dh, the entries e and
  // the places at.
  lemma Gone(g: Geometry, ms: Metas, files: Files, held: Helds, dirs: Dirs, places: DirPlaces, ms': Metas,
    files': Files,
    held': Helds, dirs': Dirs, places': DirPlaces,
      d: uint64, n: Name, i: uint64, x: Meta, dm: Meta, df: seq<byte>, dh: set<int>, e: map<Name, uint64>,
        at: map<Name, int>, s: uint64, ns: uint32, sh: Leftover, freed: bool)
    requires TreeOk(g, ms, dirs) && OkIno(g, d) && d != 2 && d in ms && d in dirs && InUse(ms, d) && n in dirs[d] &&
      dirs[d][n] == i && i in ms && 2 in ms
    requires ms[i].ty == N.NF3DIR ==> i in dirs && dirs[i] == map[]
    requires freed ==> LastLink(ms[i]) && !OnList(ms[i])
    requires Left(ms[d], dm, ms[i].ty == N.NF3DIR, s, ns) && e == C.Del(dirs[d], n)
    requires forall y: Name {:trigger y in e} | y in e && y in dirs[d] && y in PlacesAt(places, d) ::
      y in at && at[y] == PlacesAt(places, d)[y]
    requires SizeFollows(dirs[d], e, at, ms[d], dm)
    requires d != i && ms' == Dropped(ms[d := x], i, s, ns, sh, freed)[d := dm]
    requires var f1 := files[d := df]; files' == if LastLink(ms[i]) then f1[i := []] else f1
    requires var h1 := held[d := dh]; held' == if LastLink(ms[i]) then h1[i := {}] else h1
    requires var d1 := dirs[d := e]; dirs' == if freed then map x | x in d1 && x != i :: d1[x] else d1
    requires places' == places[d := at]
    ensures TreeOk(g, ms', dirs')
    ensures var p, q := Abs(g, ms, files, held, dirs, places), Abs(g, ms', files', held', dirs', places');
      N.IsDir(p, d) && N.IsDir(q, d) && i in p.nodes && q.gens == p.gens && q.xattrs == p.xattrs &&
        q.nodes == U.Dropped(p.nodes, i, N.Time(s, ns))[d := q.nodes[d]] && p.nodes[d].body.names == dirs[d] &&
      C.DirStep(p.nodes[d], q.nodes[d], e, p.nodes[d].attr.nlink as int - (if p.nodes[i].body.Dir? then 1 else 0),
        N.Time(s, ns))
  {
    Basics(g, ms, dirs);
    EntryOk(g, ms, dirs, d, n);
    assert Fits(d, ms[d]);
    var now := N.Time(s, ns);
    assert Has(dirs, d, n) && Less(dirs, d, n, e);
    DropApart(ms, d, x, dm, i, s, ns, sh, freed);
    DropApart(ms, d, dm, dm, i, s, ns, sh, freed);
    GoneTree(g, ms, dirs, ms', dirs', d, n, i, dm, e, s, ns, sh, freed);
    At(g, ms, files, held, dirs, places, d);
    At(g, ms, files, held, dirs, places, i);
    var ms1, f1, h1, d1 := ms[d := dm], files[d := df], held[d := dh], dirs[d := e];
    DirChange(g, ms, files, held, dirs, places, d, dm, df, dh, e, at, now);
    DropShows(g, ms1, f1, files', h1, held', d1, dirs', places', i, s, ns, sh, freed);
    var p, q1, q := Abs(g, ms, files, held, dirs, places), Abs(g, ms1, f1, h1, d1, places'),
      Abs(g, ms', files', held', dirs', places');
    DropNodes(p.nodes, d, q1.nodes[d], i, now);
    assert q.nodes[d] == q1.nodes[d];
  }
  lemma GoneTree(g: Geometry, ms: Metas, dirs: Dirs, ms': Metas, dirs': Dirs, d: uint64, n: Name, i: uint64, dm: Meta,
    e: map<Name, uint64>, s: uint64, ns: uint32, sh: Leftover, freed: bool)
    requires TreeOk(g, ms, dirs) && OkIno(g, d) && d != 2 && d in ms && d in dirs && InUse(ms, d) && n in dirs[d] &&
      dirs[d][n] == i && i in ms && 2 in ms && i != d
    requires ms[i].ty == N.NF3DIR ==> i in dirs && dirs[i] == map[]
    requires freed ==> LastLink(ms[i]) && !OnList(ms[i])
    requires Left(ms[d], dm, ms[i].ty == N.NF3DIR, s, ns) && Less(dirs, d, n, e)
    requires ms' == Dropped(ms, i, s, ns, sh, freed)[d := dm]
    requires var d1 := dirs[d := e]; dirs' == if freed then map x | x in d1 && x != i :: d1[x] else d1
    ensures TreeOk(g, ms', dirs')
  {
    Basics(g, ms, dirs);
    EntryOk(g, ms, dirs, d, n);
    assert Fits(d, ms[d]) && Fits(i, ms[i]);
    if ms[i].ty == N.NF3DIR {
      DropSubdir(g, ms, dirs, dirs', d, n, i, s, ns, sh, freed, dm);
    } else {
      assert dirs' == dirs[d := e];
      DropFile(g, ms, dirs, d, n, e, i, s, ns, sh, freed);
      var m1 := Dropped(ms, i, s, ns, sh, freed);
      assert m1[d] == ms[d];
      SetAttr(g, m1, dirs', d, dm);
    }
  }

  // One more name, n in d, for inode i, which is not a directory.
  lemma Named(g: Geometry, ms: Metas, files: Files, held: Helds, dirs: Dirs, places: DirPlaces, ms': Metas,
    files': Files,
    held': Helds, dirs': Dirs, places': DirPlaces,
      d: uint64, n: Name, i: uint64, dm: Meta, df: seq<byte>, dh: set<int>, at: map<Name, int>, s: uint64, ns: uint32)
    requires TreeOk(g, ms, dirs) && OkIno(g, d) && d != 2 && d in ms && d in dirs && InUse(ms, d) && n !in dirs[d] &&
      N.Proper(n)
    requires OkIno(g, i) && 2 < i && InUse(ms, i) && ms[i].ty != N.NF3DIR && ms[i].nlink < 0x7fff_ffff
    requires dm == Touched(WithSizeNent(ms[d], dm.size, dm.nent, dm.used), s, ns)
    requires forall x: Name {:trigger x in dirs[d]} | x in dirs[d] && x in PlacesAt(places, d) ::
      x in at && at[x] == PlacesAt(places, d)[x]
    requires SizeFollows(dirs[d], dirs[d][n := i], at, ms[d], dm)
    requires ms' == ms[d := dm][i := Relinked(ms[i], ms[i].nlink + 1, s, ns)] ||
      ms' == ms[i := Relinked(ms[i], ms[i].nlink + 1, s, ns)][d := dm]
    requires files' == files[d := df] && held' == held[d := dh] && dirs' == dirs[d := dirs[d][n := i]] &&
      places' == places[d := at]
    ensures TreeOk(g, ms', dirs')
    ensures var p, q := Abs(g, ms, files, held, dirs, places), Abs(g, ms', files', held', dirs', places');
      N.IsDir(p, d) && N.IsDir(q, d) && i in p.nodes && q.gens == p.gens && q.xattrs == p.xattrs &&
        p.nodes[d].body.names == dirs[d] &&
      q.nodes == p.nodes[i := N.Node(C.SetNlinkCtime(p.nodes[i].attr, ms[i].nlink + 1, N.Time(s, ns)), p.nodes[i].body,
        p.nodes[i].blocks)][d := q.nodes[d]] &&
      C.DirStep(p.nodes[d], q.nodes[d], dirs[d][n := i], p.nodes[d].attr.nlink as int, N.Time(s, ns))
  {
    Basics(g, ms, dirs);
    assert i != d;
    assert Fits(d, ms[d]) && Fits(i, ms[i]);
    var m := Relinked(ms[i], ms[i].nlink + 1, s, ns);
    var ms1 := ms[i := m];
    assert ms' == ms1[d := dm];
    AddName(g, ms, dirs, d, n, i, m);
    SetAttr(g, ms1, dirs', d, dm);
    At(g, ms, files, held, dirs, places, i);
    At(g, ms, files, held, dirs, places, d);
    OneInode(g, ms, ms1, files, files, held, held, dirs, dirs, places, places, i);
    var p := Abs(g, ms, files, held, dirs, places);
    assert p.gens[i := m.gen] == p.gens;
    At(g, ms1, files, held, dirs, places, d);
    DirChange(g, ms1, files, held, dirs, places, d, dm, df, dh, dirs[d][n := i], at, N.Time(s, ns));
  }
}
