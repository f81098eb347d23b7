// What RENAME does to the attributes and entries of all inodes, and that it is the
// move of nfs3.s.dfy.
include "../tree/treerename.dfy"
include "abstraction.dfy"
include "../directories/dirsizes.dfy"
module Renaming {
  import opened Machine
  import opened VolumeGeometry
  import opened InodeFormat
  import opened AttributeChanges
  import opened NameTree
  import opened TreeMove
  import opened TreeRename
  import opened Abstraction
  import opened DirSizes
  import N = NfsState
  import C = NfsCommon
  import U = NfsUnlink
  import R = NfsRename

  // the attributes before, but for the size and the number of entries of both directories
  predicate Sized(ms: Metas, ms': Metas, fd: uint64, td: uint64)
  {
    fd in ms && td in ms && fd in ms' && td in ms' && ms' == ms[td := ms'[td]][fd := ms'[fd]] &&
    ms'[td] == WithSizeNent(ms[td], ms'[td].size, ms'[td].nent, ms'[td].used) &&
      ms'[fd] == WithSizeNent(ms[fd], ms'[fd].size, ms'[fd].nent, ms'[fd].used)
  }
  datatype Action = Action(from: uint64, fromName: Name, to: uint64, toName: Name, source: uint64, found: bool,
    target: uint64, dir: bool,
    seconds: uint64, nanoseconds: uint32, left: Leftover, freed: bool)
  // no two of the inodes are one but that the directories may be
  predicate Apart(ms: Metas, a: Action)
  {
    a.from in ms && a.to in ms && a.source in ms && 2 in ms && a.from != 2 && a.to != 2 && a.source != 2 &&
      a.source != a.from && a.source != a.to &&
    (a.found ==> a.target in ms && a.target != 2 && a.target != a.source && a.target != a.from && a.target != a.to &&
      (a.dir ==> 2 < ms[a.to].nlink)) &&
    (a.dir && a.from != a.to ==> 2 < ms[a.from].nlink) && ms[a.from].nlink < 0xffff_ffff &&
      ms[a.to].nlink < 0xffff_ffff && (a.freed ==> a.found)
  }
  lemma ReplacedAt(ms: Metas, a: Action)
    requires Apart(ms, a)
    ensures var m := Replaced(ms, a.to, a.found, a.target, a.dir, a.seconds, a.nanoseconds, a.left, a.freed);
      a.source in m && a.from in m && a.to in m && (a.from != a.to ==> m[a.from] == ms[a.from]) &&
        m[a.to].nlink <= ms[a.to].nlink &&
      m[a.from].ty == ms[a.from].ty && m[a.to].ty == ms[a.to].ty && m[a.source].ty == ms[a.source].ty
  { }
  function Final(ms: Metas, a: Action): Metas
    requires Apart(ms, a)
  {
    ReplacedAt(ms, a);
    var m := Replaced(ms, a.to, a.found, a.target, a.dir, a.seconds, a.nanoseconds, a.left, a.freed);
    var p := if a.dir && a.from != a.to then Reparented(m, a.source, a.from, a.to) else m;
    Stamped(p, a)
  }
  function Stamped(p: Metas, a: Action): Metas
    requires a.from in p && a.to in p && a.source in p
  {
    var q := p[a.source := Marked(p[a.source], a.seconds, a.nanoseconds)];
    var r := q[a.from := Touched(q[a.from], a.seconds, a.nanoseconds)];
    if a.from == a.to then r else r[a.to := Touched(r[a.to], a.seconds, a.nanoseconds)]
  }
  function Now(a: Action): N.Time { N.Time(a.seconds, a.nanoseconds) }
  function One(a: Action): int { if a.dir && a.from != a.to then 1 else 0 }
  function Fewer(a: Action): int { if a.dir && a.found then 1 else 0 }

  // what becomes of each inode
  lemma FinalAt(ms: Metas, a: Action, i: uint64)
    requires Apart(ms, a)
    ensures i in Final(ms, a) <==> i in ms
    ensures i in ms ==> Final(ms, a)[i].gen == ms[i].gen && (i == 2 ==> !Alive(ms[i]) ==> !Alive(Final(ms, a)[i]))
    ensures i in ms && i != a.from && i != a.to && i != a.source && (a.found ==> i != a.target) && i != 2 ==>
      Final(ms, a)[i] == ms[i]
    ensures i == a.source ==> Final(ms, a)[i] == Marked(if a.dir &&
      a.from != a.to then WithParent(ms[i], a.to) else ms[i], a.seconds, a.nanoseconds)
    ensures a.found && i == a.target ==> Final(ms, a)[i] == Dropped(ms, i, a.seconds, a.nanoseconds, a.left, a.freed)[i]
  { }
  lemma FinalDir(ms: Metas, a: Action, i: uint64)
    requires Apart(ms, a) && (i == a.from || i == a.to)
    ensures i in Final(ms, a) && var m := Final(ms, a)[i];
      m.ty == ms[i].ty && m.parent == ms[i].parent && m.gen == ms[i].gen && m.size == ms[i].size &&
        m.used == ms[i].used && m.flags == ms[i].flags && m.next == ms[i].next &&
      m.nlink as int == ms[i].nlink as int - (if i == a.to then Fewer(a) else 0)
        + (if i == a.to then One(a) else -One(a)) &&
      MetaAttr(m) == C.SetMtimeCtime(MetaAttr(ms[i]), m.nlink, Now(a))
  { }

  // What is known of a rename that may be made.
  predicate Given(geo: Geometry, ms: Metas, dirs: Dirs, a: Action)
  {
    TreeOk(geo, ms, dirs) && Has(dirs, a.from, a.fromName) && dirs[a.from][a.fromName] == a.source && a.to in dirs &&
      InUse(ms, a.to) && N.Proper(a.toName) && a.source in ms && 2 in ms && a.from in ms &&
    (a.dir <==> a.source in dirs) && (a.dir ==> !Under(ms, a.to, a.source)) && (a.found <==> a.toName in dirs[a.to]) &&
    (a.found ==> dirs[a.to][a.toName] == a.target && a.target != a.source && a.target in ms &&
      (a.target in dirs <==> a.source in dirs) && (a.target in dirs ==> dirs[a.target] == map[])) &&
    (a.freed ==> a.found && LastLink(ms[a.target]) && !OnList(ms[a.target]))
  }
  lemma ApartOk(geo: Geometry, ms: Metas, dirs: Dirs, a: Action)
    requires Given(geo, ms, dirs, a)
    ensures a.from in ms && a.to in ms && ms[a.from].ty != 0 && ms[a.to].ty != 0 && ms[a.source].ty != 0
    ensures Apart(ms, a) && OkIno(geo, a.from) && OkIno(geo, a.to) && OkIno(geo, a.source) &&
      ms[a.to].nlink <= 0x7fff_ffff && (a.dir ==> ms[a.source].parent == a.from)
  {
    EntryOk(geo, ms, dirs, a.from, a.fromName);
    Basics(geo, ms, dirs);
    assert OkIno(geo, a.from) && OkIno(geo, a.to) && OkIno(geo, a.source) && Fits(a.from, ms[a.from]) &&
      Fits(a.to, ms[a.to]);
    if a.found {
      EntryOk(geo, ms, dirs, a.to, a.toName);
      if a.target == a.from { assert a.fromName in dirs[a.target]; }
    }
    if a.source == a.to { UnderSelf(ms, a.to); }
  }

  // The tree stays sound.
  lemma FinalTree(geo: Geometry, ms: Metas, dirs: Dirs, dirs': Dirs, a: Action)
    requires Given(geo, ms, dirs, a) && RenamedTo(dirs, dirs', a.from, a.fromName, a.to, a.toName, a.source, a.found,
      a.target, a.freed)
    requires a.dir && a.from != a.to ==> ms[a.to].nlink as int - (if a.found then 1 else 0) < 0x7fff_ffff
    ensures Apart(ms, a) && TreeOk(geo, Final(ms, a), dirs')
  {
    ApartOk(geo, ms, dirs, a);
    ReplacedAt(ms, a);
    RenameOk(geo, ms, dirs, dirs', a.from, a.fromName, a.to, a.toName, a.source, a.found, a.target, a.seconds,
      a.nanoseconds, a.left, a.freed);
    var m := Replaced(ms, a.to, a.found, a.target, a.dir, a.seconds, a.nanoseconds, a.left, a.freed);
    var p := if a.dir && a.from != a.to then Reparented(m, a.source, a.from, a.to) else m;
    StampedTree(geo, p, dirs', a);
  }
  lemma StampedTree(geo: Geometry, p: Metas, dirs: Dirs, a: Action)
    requires TreeOk(geo, p, dirs) && OkIno(geo, a.from) && OkIno(geo, a.to) && OkIno(geo, a.source) && a.from in p &&
      a.to in p && a.source in p && p[a.from].ty != 0 && p[a.to].ty != 0 && p[a.source].ty != 0
    ensures TreeOk(geo, Stamped(p, a), dirs)
  {
    Basics(geo, p, dirs);
    var q := p[a.source := Marked(p[a.source], a.seconds, a.nanoseconds)];
    SetAttr(geo, p, dirs, a.source, q[a.source]);
    Basics(geo, q, dirs);
    var r := q[a.from := Touched(q[a.from], a.seconds, a.nanoseconds)];
    SetAttr(geo, q, dirs, a.from, r[a.from]);
    Basics(geo, r, dirs);
    if a.from != a.to { SetAttr(geo, r, dirs, a.to, Touched(r[a.to], a.seconds, a.nanoseconds)); }
  }

  // ---- what a client sees ----

  datatype Volume = Volume(metas: Metas, files: Files, held: Helds, dirs: Dirs, places: DirPlaces)
  function See(geo: Geometry, v: Volume): N.FS { Abs(geo, v.metas, v.files, v.held, v.dirs, v.places) }
  function NodeIn(v: Volume, i: uint64): N.Node requires i in v.metas
  { NodeAt(v.metas, v.files, v.held, v.dirs, v.places, i) }
  // entries of d stay where they are, and its size is as it has to be
  predicate Kept(v: Volume, w: Volume, d: uint64)
  {
    d in v.dirs && d in w.dirs && d in v.metas && d in w.metas &&
    SizeFollows(v.dirs[d], w.dirs[d], PlacesAt(w.places, d), v.metas[d], w.metas[d]) &&
    forall n: Name {:trigger n in w.dirs[d]} | n in w.dirs[d] && n in v.dirs[d] &&
      n in PlacesAt(v.places, d) ::
      n in PlacesAt(w.places, d) && PlacesAt(w.places, d)[n] == PlacesAt(v.places, d)[n]
  }
  // v becomes w by the rename a. ms: as in v, but for the sizes of the directories.
  predicate Renames(geo: Geometry, v: Volume, ms: Metas, w: Volume, a: Action)
  {
    Sized(v.metas, ms, a.from, a.to) && Apart(ms, a) && w.metas == Final(ms, a) &&
    Shown(geo, v.metas, a.from) && Shown(geo, v.metas, a.to) && Shown(geo, v.metas, a.source) &&
      v.metas[a.from].ty == N.NF3DIR && v.metas[a.to].ty == N.NF3DIR && a.from in v.dirs &&
    RenamedTo(v.dirs, w.dirs, a.from, a.fromName, a.to, a.toName, a.source, a.found, a.target, a.freed) &&
      (a.dir <==> v.metas[a.source].ty == N.NF3DIR) && (a.dir && a.from == a.to ==> v.metas[a.source].parent == a.to) &&
    (a.found ==> Shown(geo, v.metas, a.target) && (v.metas[a.target].ty == N.NF3DIR <==> a.dir)) &&
      (a.freed ==> LastLink(ms[a.target])) &&
    (forall i: uint64 {:trigger FileAt(w.files, i)} {:trigger HeldAt(w.held, i)} | i != a.from && i != a.to &&
      (a.found && i == a.target ==> !LastLink(ms[i])) ::
      FileAt(w.files, i) == FileAt(v.files, i) && HeldAt(w.held, i) == HeldAt(v.held, i)) &&
    (forall i: uint64 {:trigger PlacesAt(w.places, i)} | i != a.from && i != a.to ::
      PlacesAt(w.places, i) == PlacesAt(v.places, i)) &&
    Kept(v, w, a.from) && Kept(v, w, a.to)
  }

  // the entries of a directory that is not part of it stay
  lemma SameEntries(geo: Geometry, v: Volume, ms: Metas, w: Volume, a: Action, i: uint64)
    requires Renames(geo, v, ms, w, a) && i != a.from && i != a.to && (a.found ==> i != a.target)
    ensures DirAt(w.dirs, i) == DirAt(v.dirs, i)
  {
    var x, y := DirAt(w.dirs, i), DirAt(v.dirs, i);
    forall n: Name
      ensures (n in x <==> n in y) && (n in y ==> x[n] == y[n]) { assert Has(w.dirs, i, n) <==> Has(v.dirs, i, n); }
  }
  lemma SrcNode(geo: Geometry, v: Volume, ms: Metas, w: Volume, a: Action)
    requires Renames(geo, v, ms, w, a)
    ensures Shown(geo, w.metas, a.source) && NodeIn(w, a.source) == R.MovedNode(NodeIn(v, a.source), a.to, Now(a))
  {
    FinalAt(ms, a, a.source);
    SameEntries(geo, v, ms, w, a, a.source);
    assert FileAt(w.files, a.source) == FileAt(v.files, a.source) &&
      HeldAt(w.held, a.source) == HeldAt(v.held, a.source) &&
      PlacesAt(w.places, a.source) == PlacesAt(v.places, a.source);
  }
  lemma OtherNode(geo: Geometry, v: Volume, ms: Metas, w: Volume, a: Action, i: uint64)
    requires Renames(geo, v, ms, w, a) && i != a.from && i != a.to && i != a.source && (a.found ==> i != a.target)
    ensures Shown(geo, w.metas, i) <==> Shown(geo, v.metas, i)
    ensures Shown(geo, w.metas, i) ==> NodeIn(w, i) == NodeIn(v, i)
  {
    FinalAt(ms, a, i);
    SameEntries(geo, v, ms, w, a, i);
    assert FileAt(w.files, i) == FileAt(v.files, i) && HeldAt(w.held, i) == HeldAt(v.held, i) &&
      PlacesAt(w.places, i) == PlacesAt(v.places, i);
  }
  lemma DstNode(geo: Geometry, v: Volume, ms: Metas, w: Volume, a: Action)
    requires Renames(geo, v, ms, w, a) && a.found
    ensures Shown(geo, w.metas, a.target) <==> !LastLink(ms[a.target])
    ensures LastLink(ms[a.target]) <==> NodeIn(v, a.target).body.Dir? || NodeIn(v, a.target).attr.nlink <= 1
    ensures !LastLink(ms[a.target]) ==> var n := NodeIn(v, a.target);
      NodeIn(w, a.target) == N.Node(C.SetNlinkCtime(n.attr, n.attr.nlink - 1, Now(a)), n.body, n.blocks)
  {
    FinalAt(ms, a, a.target);
    assert ms[a.target] == v.metas[a.target];
    if !LastLink(ms[a.target]) {
      assert FileAt(w.files, a.target) == FileAt(v.files, a.target);
      assert w.metas[a.target] == Relinked(ms[a.target], ms[a.target].nlink - 1, a.seconds, a.nanoseconds);
    }
  }
  lemma DirNodes(geo: Geometry, v: Volume, ms: Metas, w: Volume, a: Action)
    requires Renames(geo, v, ms, w, a)
    ensures Shown(geo, w.metas, a.from) && Shown(geo, w.metas, a.to)
    ensures var t := NodeIn(v, a.to); var links := t.attr.nlink as int - Fewer(a);
      if a.from == a.to then C.DirStep(t, NodeIn(w, a.to), C.Del(t.body.names[a.toName := a.source], a.fromName), links,
        Now(a))
      else C.DirStep(NodeIn(v, a.from), NodeIn(w, a.from), C.Del(NodeIn(v, a.from).body.names, a.fromName),
        NodeIn(v, a.from).attr.nlink as int - One(a), Now(a)) &&
        C.DirStep(t, NodeIn(w, a.to), t.body.names[a.toName := a.source], links + One(a), Now(a))
  {
    FinalDir(ms, a, a.from);
    FinalDir(ms, a, a.to);
    var f, t := NodeIn(v, a.from), NodeIn(v, a.to);
    var want := if a.from == a.to then C.Del(t.body.names[a.toName := a.source], a.fromName)
      else t.body.names[a.toName := a.source];
    forall n: Name ensures (n in w.dirs[a.to] <==> n in want) && (n in want ==> w.dirs[a.to][n] == want[n])
    { assert Has(w.dirs, a.to, n) <==> n in w.dirs[a.to]; assert Has(v.dirs, a.to, n) <==> n in v.dirs[a.to]; }
    assert w.dirs[a.to] == want;
    if a.from != a.to {
      var less := C.Del(f.body.names, a.fromName);
      forall n: Name ensures (n in w.dirs[a.from] <==> n in less) && (n in less ==> w.dirs[a.from][n] == less[n])
      { assert Has(w.dirs, a.from, n) <==> n in w.dirs[a.from]; assert Has(v.dirs, a.from, n) <==> n in v.dirs[a.from];
        }
      assert w.dirs[a.from] == less;
    }
  }

  lemma Sees(geo: Geometry, v: Volume, ms: Metas, w: Volume, a: Action)
    requires Renames(geo, v, ms, w, a)
    ensures var pre, post := See(geo, v), See(geo, w);
      N.IsDir(pre, a.from) && N.IsDir(pre, a.to) && N.Entry(pre, a.from, a.fromName) &&
        pre.nodes[a.from].body.names[a.fromName] == a.source && a.source in pre.nodes &&
      (a.found <==> a.toName in pre.nodes[a.to].body.names) &&
        (a.found ==> pre.nodes[a.to].body.names[a.toName] == a.target && a.target in pre.nodes) &&
      R.Moved(pre, post, a.from, a.fromName, a.to, a.toName, Now(a))
  {
    var pre, post := See(geo, v), See(geo, w);
    forall i: uint64
      ensures (i in pre.nodes <==> Shown(geo, v.metas, i)) && (i in pre.nodes ==> pre.nodes[i] == NodeIn(v, i))
      ensures (i in post.nodes <==> Shown(geo, w.metas, i)) && (i in post.nodes ==> post.nodes[i] == NodeIn(w, i))
    { At(geo, v.metas, v.files, v.held, v.dirs, v.places, i); At(geo, w.metas, w.files, w.held, w.dirs, w.places, i); }
    SameGens(geo, v, ms, w, a);
    DirNodes(geo, v, ms, w, a);
    SrcNode(geo, v, ms, w, a);
    if a.found { DstNode(geo, v, ms, w, a); }
    assert R.NewLinks(pre, a.to, a.toName) == v.metas[a.to].nlink as int - Fewer(a);
    var rest := if a.found then U.Dropped(pre.nodes, a.target, Now(a)) else pre.nodes;
    var want := rest[a.source := R.MovedNode(pre.nodes[a.source], a.to, Now(a))][a.from := post.nodes[a.from]][a.to :=
      post.nodes[a.to]];
    forall i: uint64
      ensures (i in post.nodes <==> i in want) && (i in want ==> post.nodes[i] == want[i])
    { if i != a.from && i != a.to && i != a.source && (a.found ==> i != a.target) { OtherNode(geo, v, ms, w, a, i); } }
    assert post.nodes == want;
  }
  lemma SameGens(geo: Geometry, v: Volume, ms: Metas, w: Volume, a: Action)
    requires Renames(geo, v, ms, w, a)
    ensures See(geo, w).gens == See(geo, v).gens && See(geo, w).xattrs == See(geo, v).xattrs
  {
    var x, y := See(geo, w).gens, See(geo, v).gens;
    At(geo, v.metas, v.files, v.held, v.dirs, v.places, 2);
    At(geo, w.metas, w.files, w.held, w.dirs, w.places, 2);
    assert FileAt(w.files, 2) == FileAt(v.files, 2);
    forall i: uint64 ensures (i in x <==> i in y) && (i in y ==> x[i] == y[i])
    {
      At(geo, v.metas, v.files, v.held, v.dirs, v.places, i);
      At(geo, w.metas, w.files, w.held, w.dirs, w.places, i);
      FinalAt(ms, a, i);
    }
  }
}
