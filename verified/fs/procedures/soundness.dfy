// What the procedures start from and keep (Sound in base.dfy: the invariant of
// tree.dfy, and what the layers below know of files and directories) makes a volume
// sound in the sense of nfs3.s.dfy.
include "base.dfy"
module Soundness {
  import opened Machine
  import opened VolumeGeometry
  import opened InodeFormat
  import opened AttributeChanges
  import D = DirLayout
  import F = Directories
  import A = Abstraction
  import Op = ProcedureBase
  import R = AllocatedRange
  import T = NameTree
  import N = NfsState

  lemma OfVolume(d: F.DirFs)
    requires Op.Sound(d)
    ensures N.Sound(Op.AbsOf(d))
  {
    forall i: uint64 | OkIno(d.fs.geometry, i)
      ensures i in d.fs.files && i in d.fs.held && N.Held(d.fs.files[i], d.fs.held[i]) && i in d.fs.metas &&
      |d.fs.held[i]| <= d.fs.metas[i].used as int { d.fs.Bytes(i); d.fs.Count(i); }
    assert Layers(d.fs.geometry, d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places);
    SoundAbs(d.fs.geometry, d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places);
  }

  // and no free inode holds a block
  lemma FreeHolds(d: F.DirFs, i: uint64)
    requires Op.Sound(d) && OkIno(d.fs.geometry, i) && i in d.fs.metas && d.fs.metas[i].ty == 0
    ensures i in d.fs.files && d.fs.files[i] == [] && i in d.fs.trees.store.inodes
    ensures |d.fs.trees.store.inodes[i].blks| == 15 && forall k: int | 0 <= k < 15 ::
      d.fs.trees.store.inodes[i].blks[k] == 0
  {
    T.Basics(d.fs.geometry, d.fs.metas, d.dirs);
    assert T.Fits(i, d.fs.metas[i]);
    R.Bare(d.fs.geometry, d.fs.trees.blockMap, d.fs.trees.store.inodes, d.fs.metas, i);
  }

  // What the layers below keep: sizes, blocks, types, and directories that stand for their maps.
  predicate Layers(g: Geometry, ms: Metas, files: A.Files, held: A.Helds, dirs: T.Dirs, places: A.DirPlaces)
  {
    (forall i: uint64 {:trigger OkIno(g, i)} | OkIno(g, i) ::
      i in files && i in held && i in ms && |files[i]| == ms[i].size as int <= 549755813888 &&
      N.Held(files[i], held[i]) && |held[i]| <= ms[i].used as int) &&
    (forall d: uint64 {:trigger d in dirs} | d in dirs ::
      d in files && d in places && D.DirOk(files[d], dirs[d], places[d]))
  }

  lemma SoundAbs(g: Geometry, ms: Metas, files: A.Files, held: A.Helds, dirs: T.Dirs, places: A.DirPlaces)
    requires Layers(g, ms, files, held, dirs, places) && T.TreeOk(g, ms, dirs)
    ensures N.Sound(A.Abs(g, ms, files, held, dirs, places))
  {
    var f := A.Abs(g, ms, files, held, dirs, places);
    var w := T.Elim(g, ms, dirs);
    SeenAbs(g, ms, files, held, dirs, places);
    Shape(g, ms, files, held, dirs, places, f, w);
    Numbers(g, ms, files, held, dirs, places, f, w);
    Insides(g, ms, files, held, dirs, places, f);
    assert N.Tree(f, w.depth);
  }
  // f is what is seen of the volume
  predicate Seen(g: Geometry, ms: Metas, files: A.Files, held: A.Helds, dirs: T.Dirs, places: A.DirPlaces, f: N.FS)
  {
    (forall i: uint64 {:trigger i in f.nodes} {:trigger A.Shown(g, ms, i)} ::
      (i in f.nodes <==> A.Shown(g, ms, i)) && (A.Shown(g, ms, i) ==>
      f.nodes[i] == A.NodeAt(ms, files, held, dirs, places, i))) &&
    (forall i: uint64 {:trigger i in f.gens} :: i in f.gens <==> i in ms && OkIno(g, i)) &&
    (forall i: uint64 {:trigger N.IsDir(f, i)} {:trigger i in dirs} :: N.IsDir(f, i) <==> i in dirs && T.InUse(ms, i))
  }
  lemma SeenAbs(g: Geometry, ms: Metas, files: A.Files, held: A.Helds, dirs: T.Dirs, places: A.DirPlaces)
    requires T.Locals(g, ms, dirs)
    ensures Seen(g, ms, files, held, dirs, places, A.Abs(g, ms, files, held, dirs, places))
  {
    var f := A.Abs(g, ms, files, held, dirs, places);
    forall i: uint64
      ensures (i in f.nodes <==> A.Shown(g, ms, i)) &&
        (A.Shown(g, ms, i) ==> f.nodes[i] == A.NodeAt(ms, files, held, dirs, places, i)) &&
        (i in f.gens <==> i in ms && OkIno(g, i))
    { A.At(g, ms, files, held, dirs, places, i); }
    forall i: uint64 ensures N.IsDir(f, i) <==> i in dirs && T.InUse(ms, i)
    { if i in dirs { assert OkIno(g, i); assert T.Fits(i, ms[i]); } if A.Shown(g, ms, i) { assert T.Fits(i, ms[i]); } }
  }
  lemma Shape(g: Geometry, ms: Metas, files: A.Files, held: A.Helds, dirs: T.Dirs, places: A.DirPlaces, f: N.FS,
    w: T.Witness)
    requires T.TreeBy(g, ms, dirs, w) && Seen(g, ms, files, held, dirs, places, f)
    ensures N.Tree(f, w.depth)
  {
    assert 1 in dirs && N.IsDir(f, 1);
    forall d: uint64, n: N.Name | N.Entry(f, d, n)
      ensures var i := f.nodes[d].body.names[n]; N.Proper(n) && i in f.nodes && i != 1 &&
        (f.nodes[i].body.Dir? ==> f.nodes[i].body.parent == d && d in w.depth && i in w.depth &&
          w.depth[i] == w.depth[d] + 1)
    {
      assert d in dirs && T.Has(dirs, d, n);
      var i := dirs[d][n];
      assert A.Shown(g, ms, i);
      if i in dirs { assert T.Child(ms, dirs, i); } else { assert !N.IsDir(f, i); }
    }
  }
  // one by one: as many pairs as links
  lemma Pairs(s: set<T.Link>, p: set<(uint64, N.Name)>)
    requires forall d: uint64, n: N.Name {:trigger (d, n) in p} {:trigger T.Link(d, n) in s} :: (d, n) in p <==>
      T.Link(d, n) in s
    ensures |p| == |s|
    decreases |s|
  {
    if s == {} {
      if p != {} { var x :| x in p; assert (x.0, x.1) in p; assert T.Link(x.0, x.1) in s; }
    } else {
      var l :| l in s;
      var x := (l.dir, l.name);
      assert T.Link(l.dir, l.name) in s && x in p;
      Pairs(s - {l}, p - {x});
    }
  }
  lemma NamesOf(g: Geometry, ms: Metas, files: A.Files, held: A.Helds, dirs: T.Dirs, places: A.DirPlaces, f: N.FS,
    w: T.Witness,
    i: uint64)
    requires T.TreeBy(g, ms, dirs, w) && Seen(g, ms, files, held, dirs, places, f)
    ensures |N.Names(f, i)| == |T.Of(w.names, i)|
  {
    var p, s := N.Names(f, i), T.Of(w.names, i);
    forall d: uint64, n: N.Name ensures (d, n) in p <==> T.Link(d, n) in s
    {
      if (d, n) in p { assert N.IsDir(f, d); assert T.Has(dirs, d, n); }
      if T.Link(d, n) in s { assert T.Has(dirs, d, n);
        assert A.Shown(g, ms, d) by { assert OkIno(g, d); assert T.Fits(d, ms[d]); } assert N.IsDir(f, d); }
    }
    Pairs(s, p);
  }
  // A kept file is one that has the bit.
  lemma KeptIs(d: F.DirFs, i: uint64)
    requires Op.Sound(d)
    ensures N.Kept(Op.AbsOf(d), i) <==> A.Shown(d.fs.geometry, d.fs.metas, i) && T.IsKept(d.fs.metas[i])
  {
    var g, ms, dirs := d.fs.geometry, d.fs.metas, d.dirs;
    var w := T.Elim(g, ms, dirs);
    SeenAbs(g, ms, d.fs.files, d.fs.held, dirs, d.places);
    NamesOf(g, ms, d.fs.files, d.fs.held, dirs, d.places, Op.AbsOf(d), w, i);
    if A.Shown(g, ms, i) { assert OkIno(g, i); assert T.Fits(i, ms[i]); assert N.IsDir(Op.AbsOf(d), i) <==> i in dirs; }
  }
  lemma Numbers(g: Geometry, ms: Metas, files: A.Files, held: A.Helds, dirs: T.Dirs, places: A.DirPlaces, f: N.FS,
    w: T.Witness)
    requires T.TreeBy(g, ms, dirs, w) && Seen(g, ms, files, held, dirs, places, f)
    ensures N.Counts(f)
  {
    forall i: uint64 | i in f.nodes
      ensures if f.nodes[i].body.Dir? then f.nodes[i].attr.nlink as int == 2 + |N.SubDirs(f, i)| &&
        (i == 1 || |N.Names(f, i)| == 1)
        else f.nodes[i].attr.nlink as int == |N.Names(f, i)| > 0 || N.Kept(f, i)
    {
      assert A.Shown(g, ms, i) && OkIno(g, i);
      assert T.Fits(i, ms[i]);
      NamesOf(g, ms, files, held, dirs, places, f, w, i);
      assert N.IsDir(f, i) <==> i in dirs;
      if i in dirs {
        var a, b := N.SubDirs(f, i), T.SubdirsOf(w.subs, i);
        forall d: uint64 ensures d in a <==> d in b
        {
          if d in a { assert N.IsDir(f, d); assert T.Child(ms, dirs, d); }
          if d in b { assert T.Child(ms, dirs, d); assert N.IsDir(f, d); }
        }
        assert a == b;
      }
    }
  }
  lemma Insides(g: Geometry, ms: Metas, files: A.Files, held: A.Helds, dirs: T.Dirs, places: A.DirPlaces, f: N.FS)
    requires Layers(g, ms, files, held, dirs, places) && T.Locals(g, ms, dirs) &&
      Seen(g, ms, files, held, dirs, places, f)
    ensures N.Bodies(f)
  {
    forall i: uint64 | i in f.nodes
      ensures i in f.gens && f.nodes[i].attr.mode < 4096 && match f.nodes[i].body
        case File(d, v, h) => |d| <= 549755813888 && N.Held(d, h)
        case Dir(e, k, p, z) => N.Places(f.nodes[i].body) && z % 4096 == 0 && z as int <= 549755813888
        case Symlink(t) => 0 < |t| <= 4095
        case Special(k, a, b) => k == 3 || k == 4 || k == 6 || k == 7
    {
      assert A.Shown(g, ms, i) && OkIno(g, i);
      assert T.Fits(i, ms[i]);
      if ms[i].ty == N.NF3DIR { assert i in dirs; Distinct(files[i], dirs[i], places[i], f.nodes[i].body); }
    }
  }
  lemma Distinct(file: seq<byte>, m: map<N.Name, uint64>, at: map<N.Name, int>, b: N.Body)
    requires D.DirOk(file, m, at) && |file| <= 549755813888
    requires b.Dir? && b.names == m && b.cookies == A.Cookies(m, at) && b.bytes as int == |file|
    ensures N.Places(b) && b.bytes % 4096 == 0
  {
    reveal D.DirOk();
    forall n: N.Name | n in b.names
      ensures n in b.cookies && 3 <= b.cookies[n] && N.BlockEnd(b.cookies[n]) <= |file| {
      assert D.OkSlot(file, at[n]); }
    forall m1: N.Name, n: N.Name | m1 in b.names && n in b.names && m1 in b.cookies && n in b.cookies &&
      b.cookies[m1] == b.cookies[n] ensures m1 == n
    { assert at[m1] == at[n]; assert D.Name(file, at[m1]) == m1 && D.Name(file, at[n]) == n; }
  }
}
