// Two names change places in the tree: the links of two files, and for directories that get another parent the link
// counts and depths, as if one moved after the other (treemove.dfy).
include "treemove.dfy"
module TreeExchange {
  import opened Machine
  import opened VolumeGeometry
  import opened InodeFormat
  import opened AttributeChanges
  import opened NameTree
  import opened TreeMove
  import N = NfsState

  // what is (from, fromName), source, and what is (to, toName), target, change places
  datatype Swap = Swap(from: uint64, fromName: Name, to: uint64, toName: Name, source: uint64, target: uint64)

  // dirs after that
  predicate SwappedTo(dirs: Dirs, dirs': Dirs, w: Swap)
  {
    Has(dirs, w.from, w.fromName) && dirs[w.from][w.fromName] == w.source && Has(dirs, w.to, w.toName) &&
      dirs[w.to][w.toName] == w.target && w.source != w.target &&
    (forall d: uint64 {:trigger d in dirs'} {:trigger d in dirs} :: d in dirs <==> d in dirs') &&
    (forall d: uint64, n: Name {:trigger Has(dirs', d, n)} {:trigger Has(dirs, d, n)} | (d != w.from ||
      n != w.fromName) && (d != w.to || n != w.toName) ::
      (Has(dirs', d, n) <==> Has(dirs, d, n)) && (Has(dirs, d, n) ==> dirs'[d][n] == dirs[d][n])) &&
    Has(dirs', w.from, w.fromName) && dirs'[w.from][w.fromName] == w.target &&
    Has(dirs', w.to, w.toName) && dirs'[w.to][w.toName] == w.source
  }

  // a directory that gets another parent, and the link counts of both parents
  predicate Crosses(ms: Metas, w: Swap, i: uint64) { w.from != w.to && i in ms && ms[i].ty == 2 }
  function Adopted(ms: Metas, i: uint64, fd: uint64, td: uint64): Metas
    requires i in ms && fd in ms && td in ms && 0 < ms[fd].nlink && ms[td].nlink < 0xffff_ffff
  { ms[i := WithParent(ms[i], td)][fd := WithNlink(ms[fd], ms[fd].nlink - 1)][td :=
      WithNlink(ms[td], ms[td].nlink + 1)] }
  // the directories that hold the names are in use, and hold neither themselves nor what is to leave them
  predicate Ready(ms: Metas, w: Swap)
  {
    w.from in ms && w.to in ms && w.source in ms && w.target in ms && w.source != w.target &&
      w.source != w.from && w.source != w.to && w.target != w.from && w.target != w.to &&
    2 <= ms[w.from].nlink <= 0x7fff_ffff && 2 <= ms[w.to].nlink <= 0x7fff_ffff &&
    (Crosses(ms, w, w.source) ==> 2 < ms[w.from].nlink) && (Crosses(ms, w, w.target) ==> 2 < ms[w.to].nlink)
  }
  function First(ms: Metas, w: Swap): Metas
    requires Ready(ms, w)
  { if Crosses(ms, w, w.source) then Adopted(ms, w.source, w.from, w.to) else ms }
  function Swapped(ms: Metas, w: Swap): Metas
    requires Ready(ms, w)
  { var m := First(ms, w); if Crosses(ms, w, w.target) then Adopted(m, w.target, w.to, w.from) else m }

  // what becomes of inode x
  lemma SwappedAt(ms: Metas, w: Swap, x: uint64)
    requires Ready(ms, w)
    ensures var m := Swapped(ms, w); (x in m <==> x in ms) && (x in ms ==>
      if x == w.source then m[x] == (if Crosses(ms, w, x) then WithParent(ms[x], w.to) else ms[x])
      else if x == w.target then m[x] == (if Crosses(ms, w, x) then WithParent(ms[x], w.from) else ms[x])
      else if x == w.from || x == w.to then m[x] == WithNlink(ms[x], m[x].nlink) && 2 <= m[x].nlink
      else m[x] == ms[x])
    ensures var m := Swapped(ms, w); var one, other := if Crosses(ms, w, w.source) then 1 else 0,
      if Crosses(ms, w, w.target) then 1 else 0;
      m[w.from].nlink as int == ms[w.from].nlink as int - one + other &&
      m[w.to].nlink as int == ms[w.to].nlink as int + one - other
  { }

  function NamesSwapped(names: Names, w: Swap): Names
  {
    names[w.source := Of(names, w.source) - {Link(w.from, w.fromName)} + {Link(w.to, w.toName)}][w.target :=
      Of(names, w.target) - {Link(w.to, w.toName)} + {Link(w.from, w.fromName)}]
  }
  lemma LinksSwap(geo: Geometry, ms: Metas, ms': Metas, dirs: Dirs, dirs': Dirs, names: Names, w: Swap)
    requires Links(geo, ms, dirs, names) && SwappedTo(dirs, dirs', w) && w.source in ms' && w.target in ms'
    requires (ms'[w.source].ty == 2 ==> ms'[w.source].parent == w.to) &&
      (ms'[w.target].ty == 2 ==> ms'[w.target].parent == w.from)
    requires forall x: uint64 {:trigger InUse(ms', x)} {:trigger InUse(ms, x)} :: (InUse(ms, x) <==> InUse(ms', x)) &&
      (InUse(ms, x) ==> ms[x].ty == ms'[x].ty && Count(x, ms[x]) == Count(x, ms'[x]) &&
        (x != w.source && x != w.target && ms[x].ty == 2 ==> ms[x].parent == ms'[x].parent))
    ensures Links(geo, ms', dirs', NamesSwapped(names, w))
  {
    var f, t := Link(w.from, w.fromName), Link(w.to, w.toName);
    var names' := NamesSwapped(names, w);
    var a, b := Of(names, w.source), Of(names, w.target);
    assert f != t && f in a && t in b;
    assert t !in a by { if t in a { assert Has(dirs, t.dir, t.name); } }
    assert f !in b by { if f in b { assert Has(dirs, f.dir, f.name); } }
    assert Of(names', w.source) == a - {f} + {t} && Of(names', w.target) == b - {t} + {f};
    assert |a - {f}| == |a| - 1 && |b - {t}| == |b| - 1;
    assert |Of(names', w.source)| == |a| && |Of(names', w.target)| == |b|;
    Alone(geo, ms, dirs, names, w.source, f);
    Alone(geo, ms, dirs, names, w.target, t);
    forall d: uint64, n: Name | Has(dirs', d, n)
      ensures var j := dirs'[d][n]; OkIno(geo, j) && 2 < j && InUse(ms', j) && InUse(ms', d) && N.Proper(n) &&
        Link(d, n) in Of(names', j) && (ms'[j].ty == 2 ==> ms'[j].parent == d)
    {
      assert Has(dirs, d, n);
      if Link(d, n) != f && Link(d, n) != t { assert Link(d, n) in Of(names, dirs[d][n]); }
    }
    forall j: uint64, l: Link | l in Of(names', j)
      ensures Has(dirs', l.dir, l.name) && dirs'[l.dir][l.name] == j
    {
      if j != w.source && j != w.target { assert l in Of(names, j); }
      if l in Of(names, j) { assert Has(dirs, l.dir, l.name); }
    }
  }
  // a directory has one name
  lemma Alone(geo: Geometry, ms: Metas, dirs: Dirs, names: Names, i: uint64, l: Link)
    requires Links(geo, ms, dirs, names) && l in Of(names, i) && InUse(ms, i) && OkIno(geo, i)
    ensures forall x: Link {:trigger x in Of(names, i)} | x in Of(names, i) && ms[i].ty == 2 :: x == l
  {
    forall x: Link | x in Of(names, i) && ms[i].ty == 2 ensures x == l
    { if x != l { Subset({x, l}, Of(names, i)); assert |{x, l}| == 2; } }
  }

  // Directories count their sub-directories, and lie below the root.
  predicate Hangs(ms: Metas, dirs: Dirs, subs: Subdirs, depth: Depths)
  { Counts(ms, dirs, subs) && Rooted(ms, dirs, depth) }
  lemma Adopt(ms: Metas, ms': Metas, dirs: Dirs, subs: Subdirs, depth: Depths, i: uint64, fd: uint64, td: uint64)
    returns (subs': Subdirs, depth': Depths)
    requires Hangs(ms, dirs, subs, depth) && Child(ms, dirs, i) && ms[i].parent == fd && fd != td && i != td &&
      i != fd && fd in dirs && td in dirs && InUse(ms, fd) && InUse(ms, td) && !Under(ms, td, i) &&
      Moves(ms, ms', fd, td, i)
    ensures Hangs(ms', dirs, subs', depth')
  {
    subs', depth' := subs[fd := SubdirsOf(subs, fd) - {i}][td := SubdirsOf(subs, td) + {i}], Shifted(ms, depth, td, i);
    CountsMove(ms, ms', dirs, dirs, subs, subs', fd, td, i);
    RootedMove(ms, ms', dirs, dirs, depth, td, i);
  }
  lemma AdoptedMoves(ms: Metas, i: uint64, fd: uint64, td: uint64)
    requires i in ms && fd in ms && td in ms && i != fd && i != td && fd != td && 1 < ms[fd].nlink && Alive(ms[td]) &&
      ms[td].nlink < 0xffff_ffff
    ensures Moves(ms, Adopted(ms, i, fd, td), fd, td, i)
  { var m := Adopted(ms, i, fd, td); MovesIs(ms, fd, td, i, m[i], m[fd], m[td]); }
  // the way up from what is not below top does not change with top's parent
  lemma AncStays(ms: Metas, ms': Metas, x: uint64, top: uint64, k: nat)
    requires !Under(ms, x, top) && forall j: uint64 {:trigger j in ms'} {:trigger j in ms} ::
      (j in ms <==> j in ms') && (j in ms && j != top ==> ms'[j].parent == ms[j].parent)
    ensures Ancestor(ms', x, k) == Ancestor(ms, x, k)
    decreases k
  {
    if 0 < k && x in ms {
      UnderSelf(ms, x);
      UnderUp(ms, x, top);
      AncStays(ms, ms', ms[x].parent, top, k - 1);
    }
  }
  lemma NotBelowChild(ms: Metas, dirs: Dirs, depth: Depths, i: uint64)
    requires Rooted(ms, dirs, depth) && Child(ms, dirs, i)
    ensures !Under(ms, ms[i].parent, i)
  {
    var p := ms[i].parent;
    if Under(ms, p, i) { var k: nat :| Ancestor(ms, p, k) == i; Deeper(ms, dirs, depth, p, k); }
  }

  // who may change places
  predicate MaySwap(geo: Geometry, ms: Metas, dirs: Dirs, w: Swap)
  {
    TreeOk(geo, ms, dirs) && Has(dirs, w.from, w.fromName) && dirs[w.from][w.fromName] == w.source &&
    Has(dirs, w.to, w.toName) && dirs[w.to][w.toName] == w.target && w.source != w.target &&
    (w.source in dirs ==> !Under(ms, w.to, w.source)) && (w.target in dirs ==> !Under(ms, w.from, w.target))
  }
  lemma ReadyIs(geo: Geometry, ms: Metas, dirs: Dirs, w: Swap)
    requires MaySwap(geo, ms, dirs, w)
    ensures Ready(ms, w) && InUse(ms, w.from) && InUse(ms, w.to) && InUse(ms, w.source) && InUse(ms, w.target) &&
      OkIno(geo, w.from) && OkIno(geo, w.to) && OkIno(geo, w.source) && OkIno(geo, w.target) && 2 < w.source &&
      2 < w.target && w.from != 2 && w.to != 2
    ensures (w.source in dirs <==> ms[w.source].ty == 2) && (w.target in dirs <==> ms[w.target].ty == 2) &&
      ms[w.from].ty == 2 && ms[w.to].ty == 2
    ensures (w.source in dirs ==> ms[w.source].parent == w.from) && (w.target in dirs ==> ms[w.target].parent == w.to)
  {
    EntryOk(geo, ms, dirs, w.from, w.fromName);
    EntryOk(geo, ms, dirs, w.to, w.toName);
    Basics(geo, ms, dirs);
    assert OkIno(geo, w.from) && OkIno(geo, w.to) && Fits(w.from, ms[w.from]) && Fits(w.to, ms[w.to]) && Fits(2, ms[2]);
    if w.source == w.to { UnderSelf(ms, w.to); }
    if w.target == w.from { UnderSelf(ms, w.from); }
    var t := Elim(geo, ms, dirs);
    assert ms[w.from].nlink as int == 2 + |SubdirsOf(t.subs, w.from)|;
    assert ms[w.to].nlink as int == 2 + |SubdirsOf(t.subs, w.to)|;
  }
  lemma HangsSwapped(geo: Geometry, ms: Metas, dirs: Dirs, t: Witness, w: Swap) returns (subs: Subdirs, depth: Depths)
    requires MaySwap(geo, ms, dirs, w) && TreeBy(geo, ms, dirs, t)
    ensures Ready(ms, w) && Hangs(Swapped(ms, w), dirs, subs, depth)
  {
    ReadyIs(geo, ms, dirs, w);
    subs, depth := t.subs, t.depth;
    var m := First(ms, w);
    if Crosses(ms, w, w.source) {
      assert Child(ms, dirs, w.source);
      AdoptedMoves(ms, w.source, w.from, w.to);
      subs, depth := Adopt(ms, m, dirs, subs, depth, w.source, w.from, w.to);
    }
    if Crosses(ms, w, w.target) {
      StillApart(ms, dirs, t.depth, w);
      assert Child(m, dirs, w.target);
      AdoptedMoves(m, w.target, w.to, w.from);
      subs, depth := Adopt(m, Swapped(ms, w), dirs, subs, depth, w.target, w.to, w.from);
    }
  }
  // what is not above from is not above it either when the other one has gone
  lemma StillApart(ms: Metas, dirs: Dirs, depth: Depths, w: Swap)
    requires Ready(ms, w) && Rooted(ms, dirs, depth) && !Under(ms, w.from, w.target)
    requires Crosses(ms, w, w.source) ==> Child(ms, dirs, w.source) && ms[w.source].parent == w.from
    ensures !Under(First(ms, w), w.from, w.target)
  {
    var m := First(ms, w);
    if Under(m, w.from, w.target) {
      var k: nat :| Ancestor(m, w.from, k) == w.target;
      if Crosses(ms, w, w.source) {
        NotBelowChild(ms, dirs, depth, w.source);
        AncStays(ms, m, w.from, w.source, k);
      }
    }
  }
  // inode x after the exchange as far as lists and the names of others go
  predicate Alike(ms: Metas, ms': Metas, w: Swap, x: uint64)
    requires x in ms && x in ms'
  {
    ms'[x].ty == ms[x].ty && ms'[x].flags == ms[x].flags && ms'[x].next == ms[x].next &&
      (Alive(ms[x]) <==> Alive(ms'[x])) && Count(x, ms'[x]) == Count(x, ms[x]) &&
    ((x != w.source && x != w.target) || ms[x].ty != 2 ==> ms'[x].parent == ms[x].parent) &&
    (Fits(x, ms[x]) && ms'[x].nlink <= 0x7fff_ffff && (x == w.source || x == w.target ==> 2 < x) ==> Fits(x, ms'[x]))
  }
  lemma SwappedLike(ms: Metas, w: Swap, x: uint64)
    requires Ready(ms, w) && ms[w.from].ty == 2 && ms[w.to].ty == 2
    ensures var m := Swapped(ms, w); (x in m <==> x in ms) && (x in ms ==> Alike(ms, m, w, x))
    ensures x in ms && x != w.from && x != w.to ==> Swapped(ms, w)[x].nlink == ms[x].nlink
  { SwappedAt(ms, w, x); }
  lemma SwapLocals(geo: Geometry, ms: Metas, ms': Metas, dirs: Dirs, dirs': Dirs, w: Swap)
    requires Locals(geo, ms, dirs) && Ready(ms, w) && ms' == Swapped(ms, w) && ms[w.from].ty == 2 &&
      ms[w.to].ty == 2 && 2 < w.source && 2 < w.target && ms'[w.from].nlink <= 0x7fff_ffff &&
      ms'[w.to].nlink <= 0x7fff_ffff
    requires forall d: uint64 {:trigger d in dirs'} {:trigger d in dirs} :: d in dirs <==> d in dirs'
    ensures Locals(geo, ms', dirs')
  {
    forall i: uint64 | OkIno(geo, i) ensures i in ms' && Fits(i, ms'[i]) && (i in dirs' <==> ms'[i].ty == 2)
    { SwappedLike(ms, w, i); }
  }
  lemma SwapLinks(geo: Geometry, ms: Metas, ms': Metas, dirs: Dirs, dirs': Dirs, names: Names, w: Swap)
    requires Ready(ms, w) && ms' == Swapped(ms, w) && ms[w.from].ty == 2 && ms[w.to].ty == 2
    requires Links(geo, ms, dirs, names) && SwappedTo(dirs, dirs', w)
    requires (ms[w.source].ty == 2 ==> ms[w.source].parent == w.from) && (ms[w.target].ty == 2 ==>
      ms[w.target].parent == w.to)
    ensures Links(geo, ms', dirs', NamesSwapped(names, w))
  {
    SwappedAt(ms, w, w.source);
    SwappedAt(ms, w, w.target);
    forall x: uint64 ensures (InUse(ms, x) <==> InUse(ms', x)) &&
      (InUse(ms, x) ==> ms[x].ty == ms'[x].ty && Count(x, ms[x]) == Count(x, ms'[x]) &&
        (x != w.source && x != w.target && ms[x].ty == 2 ==> ms[x].parent == ms'[x].parent))
    { SwappedLike(ms, w, x); }
    LinksSwap(geo, ms, ms', dirs, dirs', names, w);
  }
  lemma SwapLists(geo: Geometry, ms: Metas, ms': Metas, dirs: Dirs, o: seq<uint64>, q: seq<uint64>, w: Swap)
    requires Ready(ms, w) && ms' == Swapped(ms, w) && ms[w.from].ty == 2 && ms[w.to].ty == 2
    requires Locals(geo, ms, dirs) && Listed(geo, ms, o) && KeptBy(geo, ms, q)
    requires w.source != 2 && w.target != 2 && w.from != 2 && w.to != 2
    ensures Listed(geo, ms', o) && KeptBy(geo, ms', q)
  {
    SwappedAt(ms, w, 2);
    forall x: uint64 ensures (x in ms' <==> x in ms) && (x in ms ==> Alike(ms, ms', w, x)) { SwappedLike(ms, w, x); }
    assert forall i: uint64 {:trigger OkIno(geo, i)} | OkIno(geo, i) && IsKept(ms[i]) ::
      Fits(i, ms[i]) && ms[i].ty != 2;
    ListedSame(geo, ms, ms', o);
    KeptSame(geo, ms, ms', q);
  }
  // The tree stays sound.
  lemma SwapOk(geo: Geometry, ms: Metas, dirs: Dirs, dirs': Dirs, w: Swap)
    requires MaySwap(geo, ms, dirs, w) && SwappedTo(dirs, dirs', w) && Ready(ms, w)
    requires Swapped(ms, w)[w.from].nlink <= 0x7fff_ffff && Swapped(ms, w)[w.to].nlink <= 0x7fff_ffff
    ensures TreeOk(geo, Swapped(ms, w), dirs')
  {
    ReadyIs(geo, ms, dirs, w);
    var t := Elim(geo, ms, dirs);
    var subs, depth := HangsSwapped(geo, ms, dirs, t, w);
    var ms' := Swapped(ms, w);
    SwapLocals(geo, ms, ms', dirs, dirs', w);
    SwapLinks(geo, ms, ms', dirs, dirs', t.names, w);
    SameChildren(ms', ms', dirs, dirs', subs, depth);
    SwapLists(geo, ms, ms', dirs, t.orphans, t.kept, w);
    Intro(geo, ms', dirs', Witness(NamesSwapped(t.names, w), subs, depth, t.orphans, t.kept));
  }
}
