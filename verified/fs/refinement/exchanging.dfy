// What exchanging two names does to the attributes and entries of all inodes, and that it is the exchange of
// local.s.dfy.
include "../tree/treeexchange.dfy"
include "../spec/local.s.dfy"
include "renaming.dfy"
module Exchanging {
  import opened Machine
  import opened VolumeGeometry
  import opened InodeFormat
  import opened AttributeChanges
  import opened NameTree
  import opened TreeExchange
  import opened Abstraction
  import opened DirSizes
  import opened Renaming
  import N = NfsState
  import C = NfsCommon
  import R = NfsRename
  import L = NfsLocal

  // all attributes afterwards
  function After(ms: Metas, w: Swap, s: uint64, ns: uint32): Metas
    requires Ready(ms, w)
  { Timed(Swapped(ms, w), w, s, ns) }
  function Timed(p: Metas, w: Swap, s: uint64, ns: uint32): Metas
    requires w.from in p && w.to in p && w.source in p && w.target in p
  {
    var o := p[w.target := Marked(p[w.target], s, ns)];
    var q := o[w.source := Marked(o[w.source], s, ns)];
    var r := q[w.from := Touched(q[w.from], s, ns)];
    if w.from == w.to then r else r[w.to := Touched(r[w.to], s, ns)]
  }
  // what becomes of inode i
  lemma AfterAt(ms: Metas, w: Swap, s: uint64, ns: uint32, i: uint64)
    requires Ready(ms, w)
    ensures var m := After(ms, w, s, ns); (i in m <==> i in ms) && (i in ms ==> m[i].gen == ms[i].gen &&
      if i == w.source then m[i] == Marked(if Crosses(ms, w, i) then WithParent(ms[i], w.to) else ms[i], s, ns)
      else if i == w.target then m[i] == Marked(if Crosses(ms, w, i) then WithParent(ms[i], w.from) else ms[i], s, ns)
      else if i == w.from || i == w.to then m[i] == Touched(WithNlink(ms[i], m[i].nlink), s, ns) &&
        m[i].nlink == Swapped(ms, w)[i].nlink && 2 <= m[i].nlink
      else m[i] == ms[i])
  { SwappedAt(ms, w, i); }

  // The tree stays sound.
  lemma AfterTree(geo: Geometry, ms: Metas, dirs: Dirs, dirs': Dirs, w: Swap, s: uint64, ns: uint32)
    requires MaySwap(geo, ms, dirs, w) && SwappedTo(dirs, dirs', w) && Ready(ms, w)
    requires Swapped(ms, w)[w.from].nlink <= 0x7fff_ffff && Swapped(ms, w)[w.to].nlink <= 0x7fff_ffff
    ensures TreeOk(geo, After(ms, w, s, ns), dirs')
  {
    ReadyIs(geo, ms, dirs, w);
    SwapOk(geo, ms, dirs, dirs', w);
    var p := Swapped(ms, w);
    SwappedAt(ms, w, w.source); SwappedAt(ms, w, w.target); SwappedAt(ms, w, w.from); SwappedAt(ms, w, w.to);
    Basics(geo, p, dirs');
    var o := p[w.target := Marked(p[w.target], s, ns)];
    SetAttr(geo, p, dirs', w.target, o[w.target]);
    Basics(geo, o, dirs');
    var q := o[w.source := Marked(o[w.source], s, ns)];
    SetAttr(geo, o, dirs', w.source, q[w.source]);
    Basics(geo, q, dirs');
    var r := q[w.from := Touched(q[w.from], s, ns)];
    SetAttr(geo, q, dirs', w.from, r[w.from]);
    Basics(geo, r, dirs');
    if w.from != w.to { SetAttr(geo, r, dirs', w.to, Touched(r[w.to], s, ns)); }
  }

  // v becomes u by the exchange w
  predicate Exchanges(geo: Geometry, v: Volume, u: Volume, w: Swap, s: uint64, ns: uint32)
  {
    Ready(v.metas, w) && u.metas == After(v.metas, w, s, ns) && SwappedTo(v.dirs, u.dirs, w) &&
    2 in v.metas && w.source != 2 && w.target != 2 && w.from != 2 && w.to != 2 &&
    Shown(geo, v.metas, w.from) && Shown(geo, v.metas, w.to) && Shown(geo, v.metas, w.source) &&
      Shown(geo, v.metas, w.target) && v.metas[w.from].ty == N.NF3DIR && v.metas[w.to].ty == N.NF3DIR &&
    (v.metas[w.source].ty == N.NF3DIR ==> v.metas[w.source].parent == w.from) &&
      (v.metas[w.target].ty == N.NF3DIR ==> v.metas[w.target].parent == w.to) &&
    (forall i: uint64 {:trigger FileAt(u.files, i)} {:trigger HeldAt(u.held, i)} | i != w.from && i != w.to ::
      FileAt(u.files, i) == FileAt(v.files, i) && HeldAt(u.held, i) == HeldAt(v.held, i)) &&
    (forall i: uint64 {:trigger PlacesAt(u.places, i)} | i != w.from && i != w.to ::
      PlacesAt(u.places, i) == PlacesAt(v.places, i)) &&
    Placed(v, u, w.from) && Placed(v, u, w.to)
  }
  // entries of d stay where they are
  predicate Placed(v: Volume, u: Volume, d: uint64)
  {
    d in v.dirs && d in u.dirs && forall n: Name {:trigger n in u.dirs[d]} | n in u.dirs[d] && n in v.dirs[d] &&
      n in PlacesAt(v.places, d) ::
      n in PlacesAt(u.places, d) && PlacesAt(u.places, d)[n] == PlacesAt(v.places, d)[n]
  }
  // the entries of a directory that is not part of it stay
  lemma OtherEntries(geo: Geometry, v: Volume, u: Volume, w: Swap, s: uint64, ns: uint32, i: uint64)
    requires Exchanges(geo, v, u, w, s, ns) && i != w.from && i != w.to
    ensures DirAt(u.dirs, i) == DirAt(v.dirs, i)
  {
    var x, y := DirAt(u.dirs, i), DirAt(v.dirs, i);
    forall n: Name
      ensures (n in x <==> n in y) && (n in y ==> x[n] == y[n]) { assert Has(u.dirs, i, n) <==> Has(v.dirs, i, n); }
  }
  lemma SwappedNode(geo: Geometry, v: Volume, u: Volume, w: Swap, s: uint64, ns: uint32, i: uint64, d: uint64)
    requires Exchanges(geo, v, u, w, s, ns)
    requires (i == w.source && d == w.to) || (i == w.target && d == w.from)
    ensures Shown(geo, u.metas, i) && NodeIn(u, i) == R.MovedNode(NodeIn(v, i), d, N.Time(s, ns))
  {
    AfterAt(v.metas, w, s, ns, i);
    OtherEntries(geo, v, u, w, s, ns, i);
    assert FileAt(u.files, i) == FileAt(v.files, i) && HeldAt(u.held, i) == HeldAt(v.held, i) &&
      PlacesAt(u.places, i) == PlacesAt(v.places, i);
  }
  lemma StayingNode(geo: Geometry, v: Volume, u: Volume, w: Swap, s: uint64, ns: uint32, i: uint64)
    requires Exchanges(geo, v, u, w, s, ns) && i != w.from && i != w.to && i != w.source && i != w.target
    ensures Shown(geo, u.metas, i) <==> Shown(geo, v.metas, i)
    ensures Shown(geo, u.metas, i) ==> NodeIn(u, i) == NodeIn(v, i)
  {
    AfterAt(v.metas, w, s, ns, i);
    OtherEntries(geo, v, u, w, s, ns, i);
    assert FileAt(u.files, i) == FileAt(v.files, i) && HeldAt(u.held, i) == HeldAt(v.held, i) &&
      PlacesAt(u.places, i) == PlacesAt(v.places, i);
  }
  // the link count of directory d of the two
  function LinksAfter(v: Volume, w: Swap, d: uint64): int
    requires Ready(v.metas, w) && (d == w.from || d == w.to)
  { Swapped(v.metas, w)[d].nlink as int }
  lemma SwappedDir(geo: Geometry, v: Volume, u: Volume, w: Swap, s: uint64, ns: uint32, d: uint64)
    requires Exchanges(geo, v, u, w, s, ns) && (d == w.from || d == w.to)
    ensures Shown(geo, u.metas, d) && Shown(geo, v.metas, d)
    ensures var n := NodeIn(v, d); n.body.Dir? && C.DirStep(n, NodeIn(u, d), u.dirs[d], LinksAfter(v, w, d),
      N.Time(s, ns))
  {
    AfterAt(v.metas, w, s, ns, d);
    forall n: Name ensures n in u.dirs[d] <==> n in v.dirs[d]
    { assert Has(u.dirs, d, n) <==> n in u.dirs[d]; assert Has(v.dirs, d, n) <==> n in v.dirs[d]; }
  }
  lemma NewNames(v: Volume, u: Volume, w: Swap)
    requires SwappedTo(v.dirs, u.dirs, w)
    ensures u.dirs[w.from] == if w.from == w.to then v.dirs[w.to][w.fromName := w.target][w.toName := w.source]
      else v.dirs[w.from][w.fromName := w.target]
    ensures u.dirs[w.to] == if w.from == w.to then v.dirs[w.to][w.fromName := w.target][w.toName := w.source]
      else v.dirs[w.to][w.toName := w.source]
  {
    forall d: uint64, n: Name | d == w.from || d == w.to
      ensures n in u.dirs[d] <==> n in v.dirs[d]
      ensures n in u.dirs[d] ==> u.dirs[d][n] == if d == w.from && n == w.fromName then w.target
        else if d == w.to && n == w.toName then w.source else v.dirs[d][n]
    { assert Has(u.dirs, d, n) <==> n in u.dirs[d]; assert Has(v.dirs, d, n) <==> n in v.dirs[d]; }
  }

  // what is to be seen of inode i, before and after
  lemma Sight(geo: Geometry, v: Volume, i: uint64)
    ensures var f := See(geo, v); (i in f.nodes <==> Shown(geo, v.metas, i)) &&
      (i in f.nodes ==> f.nodes[i] == NodeIn(v, i))
  { At(geo, v.metas, v.files, v.held, v.dirs, v.places, i); }
  lemma SeenThere(geo: Geometry, v: Volume, u: Volume, w: Swap, s: uint64, ns: uint32)
    requires Exchanges(geo, v, u, w, s, ns)
    ensures var f := See(geo, v); L.BothThere(f, w.from, w.fromName, w.to, w.toName) && w.source in f.nodes &&
      w.target in f.nodes && f.nodes[w.from] == NodeIn(v, w.from) && f.nodes[w.to] == NodeIn(v, w.to) &&
      f.nodes[w.source] == NodeIn(v, w.source) && f.nodes[w.target] == NodeIn(v, w.target) &&
      f.nodes[w.from].body.names == v.dirs[w.from] && f.nodes[w.to].body.names == v.dirs[w.to]
  { Sight(geo, v, w.from); Sight(geo, v, w.to); Sight(geo, v, w.source); Sight(geo, v, w.target); }
  lemma SeenLinks(geo: Geometry, v: Volume, u: Volume, w: Swap, s: uint64, ns: uint32)
    requires Exchanges(geo, v, u, w, s, ns)
    ensures var f := See(geo, v); L.BothThere(f, w.from, w.fromName, w.to, w.toName) &&
      L.LinksGiven(f, w.from, w.fromName, w.to, w.toName) == LinksAfter(v, w, w.from) &&
      L.LinksGiven(f, w.to, w.toName, w.from, w.fromName) == LinksAfter(v, w, w.to)
  { SeenThere(geo, v, u, w, s, ns); SwappedAt(v.metas, w, w.from); }
  lemma SeenNodes(geo: Geometry, v: Volume, u: Volume, w: Swap, s: uint64, ns: uint32)
    requires Exchanges(geo, v, u, w, s, ns)
    ensures var f, g, now := See(geo, v).nodes, See(geo, u).nodes, N.Time(s, ns); w.source in f && w.target in f &&
      w.from in g && w.to in g &&
      g == f[w.source := R.MovedNode(f[w.source], w.to, now)][w.target :=
        R.MovedNode(f[w.target], w.from, now)][w.from := g[w.from]][w.to := g[w.to]]
  {
    var f, g, now := See(geo, v).nodes, See(geo, u).nodes, N.Time(s, ns);
    SeenThere(geo, v, u, w, s, ns);
    SwappedDir(geo, v, u, w, s, ns, w.from);
    SwappedDir(geo, v, u, w, s, ns, w.to);
    SwappedNode(geo, v, u, w, s, ns, w.source, w.to);
    SwappedNode(geo, v, u, w, s, ns, w.target, w.from);
    Sight(geo, u, w.from); Sight(geo, u, w.to); Sight(geo, u, w.source); Sight(geo, u, w.target);
    var want := f[w.source := R.MovedNode(f[w.source], w.to, now)][w.target :=
      R.MovedNode(f[w.target], w.from, now)][w.from := g[w.from]][w.to := g[w.to]];
    forall i: uint64
      ensures (i in g <==> i in want) && (i in want ==> g[i] == want[i])
    {
      if i != w.from && i != w.to && i != w.source && i != w.target {
        StayingNode(geo, v, u, w, s, ns, i);
        Sight(geo, v, i);
        Sight(geo, u, i);
      }
    }
    assert g == want;
  }
  lemma SeenDir(geo: Geometry, v: Volume, u: Volume, w: Swap, s: uint64, ns: uint32, d: uint64)
    requires Exchanges(geo, v, u, w, s, ns) && (d == w.from || d == w.to)
    ensures var f, g := See(geo, v), See(geo, u); N.IsDir(f, d) && N.IsDir(g, d) &&
      C.DirStep(f.nodes[d], g.nodes[d], u.dirs[d], LinksAfter(v, w, d), N.Time(s, ns))
  { SwappedDir(geo, v, u, w, s, ns, d); Sight(geo, v, d); Sight(geo, u, d); }

  lemma Seen(geo: Geometry, v: Volume, u: Volume, w: Swap, s: uint64, ns: uint32)
    requires Exchanges(geo, v, u, w, s, ns)
    ensures var pre, post := See(geo, v), See(geo, u);
      L.BothThere(pre, w.from, w.fromName, w.to, w.toName) && w.source in pre.nodes && w.target in pre.nodes &&
      pre.nodes[w.from].body.names[w.fromName] == w.source && pre.nodes[w.to].body.names[w.toName] == w.target &&
      L.LinksGiven(pre, w.from, w.fromName, w.to, w.toName) == LinksAfter(v, w, w.from) &&
      L.LinksGiven(pre, w.to, w.toName, w.from, w.fromName) == LinksAfter(v, w, w.to) &&
      L.Exchanged(pre, post, w.from, w.fromName, w.to, w.toName, N.Time(s, ns))
  {
    GensStay(geo, v, u, w, s, ns);
    SeenThere(geo, v, u, w, s, ns);
    SeenLinks(geo, v, u, w, s, ns);
    SeenNodes(geo, v, u, w, s, ns);
    SeenDir(geo, v, u, w, s, ns, w.from);
    SeenDir(geo, v, u, w, s, ns, w.to);
    NewNames(v, u, w);
    SwappedAt(v.metas, w, w.from);
  }
  lemma GensStay(geo: Geometry, v: Volume, u: Volume, w: Swap, s: uint64, ns: uint32)
    requires Exchanges(geo, v, u, w, s, ns)
    ensures See(geo, u).gens == See(geo, v).gens && See(geo, u).xattrs == See(geo, v).xattrs
  {
    var x, y := See(geo, u).gens, See(geo, v).gens;
    At(geo, v.metas, v.files, v.held, v.dirs, v.places, 2);
    At(geo, u.metas, u.files, u.held, u.dirs, u.places, 2);
    AfterAt(v.metas, w, s, ns, 2);
    assert FileAt(u.files, 2) == FileAt(v.files, 2);
    forall i: uint64 ensures (i in x <==> i in y) && (i in y ==> x[i] == y[i])
    {
      At(geo, v.metas, v.files, v.held, v.dirs, v.places, i);
      At(geo, u.metas, u.files, u.held, u.dirs, u.places, i);
      AfterAt(v.metas, w, s, ns, i);
    }
  }
}
