// A step that changes one file: what SETATTR, WRITE, and CREATE of a file that
// exists do to the tree (nothing) and to what clients see (this file, nothing else).
include "../tree/orphans.dfy"
include "abstraction.dfy"
module Resizing {
  import opened Machine
  import opened VolumeGeometry
  import opened InodeFormat
  import opened AttributeChanges
  import opened NameTree
  import opened Orphans
  import opened Abstraction
  import N = NfsState

  // inode i has other attributes, or other bytes
  lemma ChangeOk(g: Geometry, ms: Metas, files: Files, held: Helds, dirs: Dirs, places: DirPlaces, i: uint64, m: Meta,
    f: seq<byte>, h: set<int>)
    requires TreeOk(g, ms, dirs) && Shown(g, ms, i) && SameTree(ms[i], m) && Fits(i, m) && m.gen == ms[i].gen
    ensures TreeOk(g, ms[i := m], dirs)
    ensures var a := Abs(g, ms, files, held, dirs, places);
      Abs(g, ms[i := m], files[i := f], held[i := h], dirs, places) ==
      N.FS(a.nodes[i := NodeOf(m, f, h, DirAt(dirs, i), PlacesAt(places, i))], a.gens, a.xattrs)
  {
    SetAttr(g, ms, dirs, i, m);
    Changed(g, ms, files, held, dirs, places, i, m, f, h);
  }

  lemma OrphanedHides(g: Geometry, ms: Metas, files: Files, held: Helds, dirs: Dirs, places: DirPlaces, i: uint64)
    requires i in ms && 2 in ms
    ensures Abs(g, Orphaned(ms, i), files, held, dirs, places) == Abs(g, ms, files, held, dirs, places)
  { HiddenStep(g, ms, Orphaned(ms, i), files, held, dirs, places); }

  // A regular file is set to size sz and then has the attributes a, the bytes f, the blocks h, and no verifier.
  lemma ResizeOk(g: Geometry, ms: Metas, files: Files, held: Helds, dirs: Dirs, places: DirPlaces, i: uint64,
    sz: uint64,
    sh: Leftover, done: bool, a: N.Attr, f: seq<byte>, h: set<int>)
    requires TreeOk(g, ms, dirs) && Shown(g, ms, i) && ms[i].ty == N.NF3REG && 2 in ms &&
      (done && sz < ms[i].size ==> sh.shrink == 0) && a.mode < 4096 && a.nlink == ms[i].nlink
    ensures i in ResizedAll(ms, i, sz, sh, done)
    ensures var r := ResizedAll(ms, i, sz, sh, done); TreeOk(g, r[i := WithVerf(WithAttr(r[i], a), 0)], dirs)
    ensures var r, p := ResizedAll(ms, i, sz, sh, done), Abs(g, ms, files, held, dirs, places);
      Abs(g, r[i := WithVerf(WithAttr(r[i], a), 0)], files[i := f], held[i := h], dirs, places) ==
        N.FS(p.nodes[i := N.Node(a, N.File(f, 0, h), r[i].used as int)], p.gens, p.xattrs)
  {
    Basics(g, ms, dirs);
    var m := ms[i];
    assert Fits(i, m) && Fits(2, ms[2]);
    var r := ResizedAll(ms, i, sz, sh, done);
    var x := WithVerf(WithAttr(r[i], a), 0);
    var listed := sz < m.size && !done;
    var b := if listed then Orphaned(ms, i) else ms;
    if listed {
      PutOn(g, ms, dirs, i);
      OrphanedHides(g, ms, files, held, dirs, places, i);
    }
    assert r[i := x] == b[i := x];
    assert Fits(i, x);
    ChangeOk(g, b, files, held, dirs, places, i, x, f, h);
  }
}
