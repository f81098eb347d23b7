// What RENAME does to the attributes and entries of all inodes, and that it is the
// move of nfs3.s.dfy.
include "../tree/treerename.dfy"
include "abstraction.dfy"
module Renaming {
  import opened Machine
  import opened VolumeGeometry
  import opened InodeFormat
  import opened AttributeChanges
  import opened NameTree
  import opened TreeMove
  import opened TreeRename
  import opened Abstraction
  import N = NfsState
  import C = NfsCommon
  import U = NfsUnlink
  import R = NfsRename

  // the attributes before, but for the size and the number of entries of both directories
  predicate Sized(ms: Metas, ms': Metas, fd: uint64, td: uint64)
  {
    fd in ms && td in ms && fd in ms' && td in ms' && ms' == ms[td := ms'[td]][fd := ms'[fd]] &&
    ms'[td] == WithSizeNent(ms[td], ms'[td].size, ms'[td].nent, ms'[td].used) && ms'[fd] == WithSizeNent(ms[fd], ms'[fd].size, ms'[fd].nent, ms'[fd].used)
  }
  datatype Act = Act(fd: uint64, fn: Name, td: uint64, tn: Name, src: uint64, found: bool, dst: uint64, dir: bool, s: uint64, ns: uint32, sh: Leftover, freed: bool)
  // no two of the inodes are one but that the directories may be
  predicate Apart(ms: Metas, a: Act)
  {
    a.fd in ms && a.td in ms && a.src in ms && 2 in ms && a.fd != 2 && a.td != 2 && a.src != 2 && a.src != a.fd && a.src != a.td &&
    (a.found ==> a.dst in ms && a.dst != 2 && a.dst != a.src && a.dst != a.fd && a.dst != a.td && (a.dir ==> 2 < ms[a.td].nlink)) &&
    (a.dir && a.fd != a.td ==> 2 < ms[a.fd].nlink) && ms[a.fd].nlink < 0xffff_ffff && ms[a.td].nlink < 0xffff_ffff && (a.freed ==> a.found)
  }
  lemma ReplacedAt(ms: Metas, a: Act)
    requires Apart(ms, a)
    ensures var m := Replaced(ms, a.td, a.found, a.dst, a.dir, a.s, a.ns, a.sh, a.freed);
      a.src in m && a.fd in m && a.td in m && (a.fd != a.td ==> m[a.fd] == ms[a.fd]) && m[a.td].nlink <= ms[a.td].nlink &&
      m[a.fd].ty == ms[a.fd].ty && m[a.td].ty == ms[a.td].ty && m[a.src].ty == ms[a.src].ty
  { }
  function Final(ms: Metas, a: Act): Metas
    requires Apart(ms, a)
  {
    ReplacedAt(ms, a);
    var m := Replaced(ms, a.td, a.found, a.dst, a.dir, a.s, a.ns, a.sh, a.freed);
    var p := if a.dir && a.fd != a.td then Reparented(m, a.src, a.fd, a.td) else m;
    Stamped(p, a)
  }
  function Stamped(p: Metas, a: Act): Metas
    requires a.fd in p && a.td in p && a.src in p
  {
    var q := p[a.src := Marked(p[a.src], a.s, a.ns)];
    var r := q[a.fd := Touched(q[a.fd], a.s, a.ns)];
    if a.fd == a.td then r else r[a.td := Touched(r[a.td], a.s, a.ns)]
  }
  function Now(a: Act): N.Time { N.Time(a.s, a.ns) }
  function One(a: Act): int { if a.dir && a.fd != a.td then 1 else 0 }
  function Fewer(a: Act): int { if a.dir && a.found then 1 else 0 }

  // what becomes of each inode
  lemma FinalAt(ms: Metas, a: Act, i: uint64)
    requires Apart(ms, a)
    ensures i in Final(ms, a) <==> i in ms
    ensures i in ms ==> Final(ms, a)[i].gen == ms[i].gen && (i == 2 ==> !Alive(ms[i]) ==> !Alive(Final(ms, a)[i]))
    ensures i in ms && i != a.fd && i != a.td && i != a.src && (a.found ==> i != a.dst) && i != 2 ==> Final(ms, a)[i] == ms[i]
    ensures i == a.src ==> Final(ms, a)[i] == Marked(if a.dir && a.fd != a.td then WithParent(ms[i], a.td) else ms[i], a.s, a.ns)
    ensures a.found && i == a.dst ==> Final(ms, a)[i] == Dropped(ms, i, a.s, a.ns, a.sh, a.freed)[i]
  { }
  lemma FinalDir(ms: Metas, a: Act, i: uint64)
    requires Apart(ms, a) && (i == a.fd || i == a.td)
    ensures i in Final(ms, a) && var m := Final(ms, a)[i];
      m.ty == ms[i].ty && m.parent == ms[i].parent && m.gen == ms[i].gen && m.size == ms[i].size && m.flags == ms[i].flags && m.next == ms[i].next &&
      m.nlink as int == ms[i].nlink as int - (if i == a.td then Fewer(a) else 0) + (if i == a.td then One(a) else -One(a)) &&
      MetaAttr(m) == C.SetMtimeCtime(MetaAttr(ms[i]), m.nlink, Now(a))
  { }

  // What is known of a rename that may be made.
  predicate Given(geo: Geo, ms: Metas, dirs: Dirs, a: Act)
  {
    TreeOk(geo, ms, dirs) && Has(dirs, a.fd, a.fn) && dirs[a.fd][a.fn] == a.src && a.td in dirs && InUse(ms, a.td) && N.Proper(a.tn) && a.src in ms && 2 in ms && a.fd in ms &&
    (a.dir <==> a.src in dirs) && (a.dir ==> !Under(ms, a.td, a.src)) && (a.found <==> a.tn in dirs[a.td]) &&
    (a.found ==> dirs[a.td][a.tn] == a.dst && a.dst != a.src && a.dst in ms && (a.dst in dirs <==> a.src in dirs) && (a.dst in dirs ==> dirs[a.dst] == map[])) &&
    (a.freed ==> a.found && LastLink(ms[a.dst]) && !OnList(ms[a.dst]))
  }
  lemma ApartOk(geo: Geo, ms: Metas, dirs: Dirs, a: Act)
    requires Given(geo, ms, dirs, a)
    ensures a.fd in ms && a.td in ms && ms[a.fd].ty != 0 && ms[a.td].ty != 0 && ms[a.src].ty != 0
    ensures Apart(ms, a) && OkIno(geo, a.fd) && OkIno(geo, a.td) && OkIno(geo, a.src) && ms[a.td].nlink <= 0x7fff_ffff && (a.dir ==> ms[a.src].parent == a.fd)
  {
    EntryOk(geo, ms, dirs, a.fd, a.fn);
    Basics(geo, ms, dirs);
    assert OkIno(geo, a.fd) && OkIno(geo, a.td) && OkIno(geo, a.src) && Fits(a.fd, ms[a.fd]) && Fits(a.td, ms[a.td]);
    if a.found {
      EntryOk(geo, ms, dirs, a.td, a.tn);
      if a.dst == a.fd { assert a.fn in dirs[a.dst]; }
    }
    if a.src == a.td { UnderSelf(ms, a.td); }
  }

  // The tree stays sound.
  lemma FinalTree(geo: Geo, ms: Metas, dirs: Dirs, dirs': Dirs, a: Act)
    requires Given(geo, ms, dirs, a) && RenamedTo(dirs, dirs', a.fd, a.fn, a.td, a.tn, a.src, a.found, a.dst, a.freed)
    requires a.dir && a.fd != a.td ==> ms[a.td].nlink as int - (if a.found then 1 else 0) < 0x7fff_ffff
    ensures Apart(ms, a) && TreeOk(geo, Final(ms, a), dirs')
  {
    ApartOk(geo, ms, dirs, a);
    ReplacedAt(ms, a);
    RenameOk(geo, ms, dirs, dirs', a.fd, a.fn, a.td, a.tn, a.src, a.found, a.dst, a.s, a.ns, a.sh, a.freed);
    var m := Replaced(ms, a.td, a.found, a.dst, a.dir, a.s, a.ns, a.sh, a.freed);
    var p := if a.dir && a.fd != a.td then Reparented(m, a.src, a.fd, a.td) else m;
    StampedTree(geo, p, dirs', a);
  }
  lemma StampedTree(geo: Geo, p: Metas, dirs: Dirs, a: Act)
    requires TreeOk(geo, p, dirs) && OkIno(geo, a.fd) && OkIno(geo, a.td) && OkIno(geo, a.src) && a.fd in p && a.td in p && a.src in p && p[a.fd].ty != 0 && p[a.td].ty != 0 && p[a.src].ty != 0
    ensures TreeOk(geo, Stamped(p, a), dirs)
  {
    Basics(geo, p, dirs);
    var q := p[a.src := Marked(p[a.src], a.s, a.ns)];
    SetAttr(geo, p, dirs, a.src, q[a.src]);
    Basics(geo, q, dirs);
    var r := q[a.fd := Touched(q[a.fd], a.s, a.ns)];
    SetAttr(geo, q, dirs, a.fd, r[a.fd]);
    Basics(geo, r, dirs);
    if a.fd != a.td { SetAttr(geo, r, dirs, a.td, Touched(r[a.td], a.s, a.ns)); }
  }

  // ---- what a client sees ----

  datatype Vol = Vol(ms: Metas, files: Files, held: Helds, dirs: Dirs, ats: Ats)
  function See(geo: Geo, v: Vol): N.FS { Abs(geo, v.ms, v.files, v.held, v.dirs, v.ats) }
  function NodeIn(v: Vol, i: uint64): N.Node requires i in v.ms { NodeAt(v.ms, v.files, v.held, v.dirs, v.ats, i) }
  // entries of d stay where they are
  predicate Kept(v: Vol, w: Vol, d: uint64)
  {
    d in v.dirs && d in w.dirs && forall n: Name {:trigger n in w.dirs[d]} | n in w.dirs[d] && n in v.dirs[d] && n in PlacesAt(v.ats, d) ::
      n in PlacesAt(w.ats, d) && PlacesAt(w.ats, d)[n] == PlacesAt(v.ats, d)[n]
  }
  // v becomes w by the rename a. ms: as in v, but for the sizes of the directories.
  predicate Renames(geo: Geo, v: Vol, ms: Metas, w: Vol, a: Act)
  {
    Sized(v.ms, ms, a.fd, a.td) && Apart(ms, a) && w.ms == Final(ms, a) &&
    Shown(geo, v.ms, a.fd) && Shown(geo, v.ms, a.td) && Shown(geo, v.ms, a.src) && v.ms[a.fd].ty == 2 && v.ms[a.td].ty == 2 && a.fd in v.dirs &&
    RenamedTo(v.dirs, w.dirs, a.fd, a.fn, a.td, a.tn, a.src, a.found, a.dst, a.freed) && (a.dir <==> v.ms[a.src].ty == 2) && (a.dir && a.fd == a.td ==> v.ms[a.src].parent == a.td) &&
    (a.found ==> Shown(geo, v.ms, a.dst) && (v.ms[a.dst].ty == 2 <==> a.dir)) && (a.freed ==> LastLink(ms[a.dst])) &&
    (forall i: uint64 {:trigger FileAt(w.files, i)} {:trigger HeldAt(w.held, i)} | i != a.fd && i != a.td && (a.found && i == a.dst ==> !LastLink(ms[i])) :: FileAt(w.files, i) == FileAt(v.files, i) && HeldAt(w.held, i) == HeldAt(v.held, i)) &&
    (forall i: uint64 {:trigger PlacesAt(w.ats, i)} | i != a.fd && i != a.td :: PlacesAt(w.ats, i) == PlacesAt(v.ats, i)) &&
    Kept(v, w, a.fd) && Kept(v, w, a.td)
  }

  // the entries of a directory that is not part of it stay
  lemma SameEntries(geo: Geo, v: Vol, ms: Metas, w: Vol, a: Act, i: uint64)
    requires Renames(geo, v, ms, w, a) && i != a.fd && i != a.td && (a.found ==> i != a.dst)
    ensures DirAt(w.dirs, i) == DirAt(v.dirs, i)
  {
    var x, y := DirAt(w.dirs, i), DirAt(v.dirs, i);
    forall n: Name ensures (n in x <==> n in y) && (n in y ==> x[n] == y[n]) { assert Has(w.dirs, i, n) <==> Has(v.dirs, i, n); }
  }
  lemma SrcNode(geo: Geo, v: Vol, ms: Metas, w: Vol, a: Act)
    requires Renames(geo, v, ms, w, a)
    ensures Shown(geo, w.ms, a.src) && NodeIn(w, a.src) == R.MovedNode(NodeIn(v, a.src), a.td, Now(a))
  {
    FinalAt(ms, a, a.src);
    SameEntries(geo, v, ms, w, a, a.src);
    assert FileAt(w.files, a.src) == FileAt(v.files, a.src) && HeldAt(w.held, a.src) == HeldAt(v.held, a.src) && PlacesAt(w.ats, a.src) == PlacesAt(v.ats, a.src);
  }
  lemma OtherNode(geo: Geo, v: Vol, ms: Metas, w: Vol, a: Act, i: uint64)
    requires Renames(geo, v, ms, w, a) && i != a.fd && i != a.td && i != a.src && (a.found ==> i != a.dst)
    ensures Shown(geo, w.ms, i) <==> Shown(geo, v.ms, i)
    ensures Shown(geo, w.ms, i) ==> NodeIn(w, i) == NodeIn(v, i)
  {
    FinalAt(ms, a, i);
    SameEntries(geo, v, ms, w, a, i);
    assert FileAt(w.files, i) == FileAt(v.files, i) && HeldAt(w.held, i) == HeldAt(v.held, i) && PlacesAt(w.ats, i) == PlacesAt(v.ats, i);
  }
  lemma DstNode(geo: Geo, v: Vol, ms: Metas, w: Vol, a: Act)
    requires Renames(geo, v, ms, w, a) && a.found
    ensures Shown(geo, w.ms, a.dst) <==> !LastLink(ms[a.dst])
    ensures LastLink(ms[a.dst]) <==> NodeIn(v, a.dst).body.Dir? || NodeIn(v, a.dst).attr.nlink <= 1
    ensures !LastLink(ms[a.dst]) ==> var n := NodeIn(v, a.dst); NodeIn(w, a.dst) == N.Node(C.SetNlinkCtime(n.attr, n.attr.nlink - 1, Now(a)), n.body, n.blocks)
  {
    FinalAt(ms, a, a.dst);
    assert ms[a.dst] == v.ms[a.dst];
    if !LastLink(ms[a.dst]) {
      assert FileAt(w.files, a.dst) == FileAt(v.files, a.dst);
      assert w.ms[a.dst] == Relinked(ms[a.dst], ms[a.dst].nlink - 1, a.s, a.ns);
    }
  }
  lemma DirNodes(geo: Geo, v: Vol, ms: Metas, w: Vol, a: Act)
    requires Renames(geo, v, ms, w, a)
    ensures Shown(geo, w.ms, a.fd) && Shown(geo, w.ms, a.td)
    ensures var t := NodeIn(v, a.td); var links := t.attr.nlink as int - Fewer(a);
      if a.fd == a.td then C.DirStep(t, NodeIn(w, a.td), C.Del(t.body.names[a.tn := a.src], a.fn), links, Now(a))
      else C.DirStep(NodeIn(v, a.fd), NodeIn(w, a.fd), C.Del(NodeIn(v, a.fd).body.names, a.fn), NodeIn(v, a.fd).attr.nlink as int - One(a), Now(a)) &&
        C.DirStep(t, NodeIn(w, a.td), t.body.names[a.tn := a.src], links + One(a), Now(a))
  {
    FinalDir(ms, a, a.fd);
    FinalDir(ms, a, a.td);
    var f, t := NodeIn(v, a.fd), NodeIn(v, a.td);
    var want := if a.fd == a.td then C.Del(t.body.names[a.tn := a.src], a.fn) else t.body.names[a.tn := a.src];
    forall n: Name ensures (n in w.dirs[a.td] <==> n in want) && (n in want ==> w.dirs[a.td][n] == want[n])
    { assert Has(w.dirs, a.td, n) <==> n in w.dirs[a.td]; assert Has(v.dirs, a.td, n) <==> n in v.dirs[a.td]; }
    assert w.dirs[a.td] == want;
    if a.fd != a.td {
      var less := C.Del(f.body.names, a.fn);
      forall n: Name ensures (n in w.dirs[a.fd] <==> n in less) && (n in less ==> w.dirs[a.fd][n] == less[n])
      { assert Has(w.dirs, a.fd, n) <==> n in w.dirs[a.fd]; assert Has(v.dirs, a.fd, n) <==> n in v.dirs[a.fd]; }
      assert w.dirs[a.fd] == less;
    }
  }

  lemma Sees(geo: Geo, v: Vol, ms: Metas, w: Vol, a: Act)
    requires Renames(geo, v, ms, w, a)
    ensures var pre, post := See(geo, v), See(geo, w);
      N.IsDir(pre, a.fd) && N.IsDir(pre, a.td) && N.Entry(pre, a.fd, a.fn) && pre.nodes[a.fd].body.names[a.fn] == a.src && a.src in pre.nodes &&
      (a.found <==> a.tn in pre.nodes[a.td].body.names) && (a.found ==> pre.nodes[a.td].body.names[a.tn] == a.dst && a.dst in pre.nodes) &&
      R.Moved(pre, post, a.fd, a.fn, a.td, a.tn, Now(a))
  {
    var pre, post := See(geo, v), See(geo, w);
    forall i: uint64
      ensures (i in pre.nodes <==> Shown(geo, v.ms, i)) && (i in pre.nodes ==> pre.nodes[i] == NodeIn(v, i))
      ensures (i in post.nodes <==> Shown(geo, w.ms, i)) && (i in post.nodes ==> post.nodes[i] == NodeIn(w, i))
    { At(geo, v.ms, v.files, v.held, v.dirs, v.ats, i); At(geo, w.ms, w.files, w.held, w.dirs, w.ats, i); }
    SameGens(geo, v, ms, w, a);
    DirNodes(geo, v, ms, w, a);
    SrcNode(geo, v, ms, w, a);
    if a.found { DstNode(geo, v, ms, w, a); }
    assert R.NewLinks(pre, a.td, a.tn) == v.ms[a.td].nlink as int - Fewer(a);
    var rest := if a.found then U.Dropped(pre.nodes, a.dst, Now(a)) else pre.nodes;
    var want := rest[a.src := R.MovedNode(pre.nodes[a.src], a.td, Now(a))][a.fd := post.nodes[a.fd]][a.td := post.nodes[a.td]];
    forall i: uint64
      ensures (i in post.nodes <==> i in want) && (i in want ==> post.nodes[i] == want[i])
    { if i != a.fd && i != a.td && i != a.src && (a.found ==> i != a.dst) { OtherNode(geo, v, ms, w, a, i); } }
    assert post.nodes == want;
  }
  lemma SameGens(geo: Geo, v: Vol, ms: Metas, w: Vol, a: Act)
    requires Renames(geo, v, ms, w, a)
    ensures See(geo, w).gens == See(geo, v).gens && See(geo, w).xattrs == See(geo, v).xattrs
  {
    var x, y := See(geo, w).gens, See(geo, v).gens;
    At(geo, v.ms, v.files, v.held, v.dirs, v.ats, 2);
    At(geo, w.ms, w.files, w.held, w.dirs, w.ats, 2);
    assert FileAt(w.files, 2) == FileAt(v.files, 2);
    forall i: uint64 ensures (i in x <==> i in y) && (i in y ==> x[i] == y[i])
    {
      At(geo, v.ms, v.files, v.held, v.dirs, v.ats, i);
      At(geo, w.ms, w.files, w.held, w.dirs, w.ats, i);
      FinalAt(ms, a, i);
    }
  }
}
