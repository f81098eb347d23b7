// The shape of a sound volume, over plain values: `metas`, the attributes of every
// inode, and `dirs`, the entries of every directory. Every file in use has as many
// names as its link count says, or one less if it is kept: that link is of a mount, which has it
// open; directories form a tree under the root; what is in use without a link, or has
// blocks to be freed, is on the orphan list.
//
// The lemmas say that each kind of step keeps this so. A procedure is a few steps;
// its proof calls their lemmas one after the other, over values in between that need
// not occur on the volume. Moving directories is in treemove.dfy, the orphan list in orphans.dfy, kept files in
// keptfiles.dfy.
include "../files/attributechanges.dfy"
include "../format/geometry.dfy"
include "../spec/nfs3.s.dfy"
module NameTree {
  import opened Machine
  import opened VolumeGeometry
  import opened InodeFormat
  import opened AttributeChanges
  import N = NfsState

  type Name = seq<byte>
  type Dirs = map<uint64, map<Name, uint64>>
  datatype Link = Link(dir: uint64, name: Name)

  // in use, and reached by a name
  predicate Alive(m: Meta) { m.ty != 0 && m.nlink != 0 }
  predicate InUse(ms: Metas, i: uint64) { i in ms && Alive(ms[i]) }
  predicate OnList(m: Meta) { m.flags as int % 2 == 1 }
  predicate IsKept(m: Meta) { m.flags as int / 2 % 2 == 1 }

  // What can be said of one inode alone.
  predicate Fits(i: uint64, m: Meta)
  {
    m.nlink <= 0x7fff_ffff && (m.ty == 0 ==> m == NewMeta(0, m.gen)) &&
    (Alive(m) ==> 1 <= m.ty <= 7 && m.mode < 4096 && (m.ty == 5 ==> 0 < m.size <= 4095) &&
      (m.ty != 1 && m.ty != 2 && m.ty != 5 ==> m.size == 0)) &&
    (m.ty != 3 && m.ty != 4 ==> m.major == 0 && m.minor == 0) &&
    (m.shrink != 0 ==> OnList(m)) && (m.ty != 0 && m.nlink == 0 && i != 2 ==> m.size == 0 && OnList(m)) &&
    (i == 1 ==> Alive(m) && m.ty == 2) && (i == 2 ==>
      m.ty == 8 && m.nlink == 0 && m.size as int % 4096 == 0 && !OnList(m)) &&
    (IsKept(m) ==> Alive(m) && m.ty != 2 && 2 < i)
  }
  predicate Locals(geo: Geometry, ms: Metas, dirs: Dirs)
  {
    OkIno(geo, 1) && OkIno(geo, 2) &&
    (forall i: uint64 {:trigger OkIno(geo, i)} | OkIno(geo, i) ::
      i in ms && Fits(i, ms[i]) && (i in dirs <==> ms[i].ty == 2)) &&
    (forall d: uint64 {:trigger d in dirs} | d in dirs :: OkIno(geo, d))
  }

  // Names and link counts. names: the names of each inode, the inverse of dirs.
  type Names = map<uint64, set<Link>>
  function Of(names: Names, i: uint64): set<Link> { if i in names then names[i] else {} }
  predicate Has(dirs: Dirs, d: uint64, n: Name) { d in dirs && n in dirs[d] }
  function Count(i: uint64, m: Meta): int
  { if m.ty != 2 then m.nlink as int - (if IsKept(m) then 1 else 0) else if i == 1 then 0 else 1 }
  predicate Links(geo: Geometry, ms: Metas, dirs: Dirs, names: Names)
  {
    (forall d: uint64, n: Name {:trigger Has(dirs, d, n)} | Has(dirs, d, n) ::
      OkIno(geo, dirs[d][n]) && 2 < dirs[d][n] && InUse(ms, dirs[d][n]) && InUse(ms, d) && N.Proper(n) &&
        Link(d, n) in Of(names, dirs[d][n]) &&
      (ms[dirs[d][n]].ty == 2 ==> ms[dirs[d][n]].parent == d)) &&
    (forall i: uint64, l: Link {:trigger l in Of(names, i)} | l in Of(names, i) ::
      Has(dirs, l.dir, l.name) && dirs[l.dir][l.name] == i) &&
    (forall i: uint64 {:trigger Of(names, i)} {:trigger OkIno(geo, i)} | OkIno(geo, i) && InUse(ms, i) ::
      |Of(names, i)| == Count(i, ms[i]))
  }

  // Sub-directories, and the link counts of directories. subs: those of each directory.
  type Subdirs = map<uint64, set<uint64>>
  function SubdirsOf(subs: Subdirs, i: uint64): set<uint64> { if i in subs then subs[i] else {} }
  predicate Child(ms: Metas, dirs: Dirs, j: uint64) { j in dirs && j != 1 && InUse(ms, j) }
  predicate Counts(ms: Metas, dirs: Dirs, subs: Subdirs)
  {
    (forall j: uint64 {:trigger Child(ms, dirs, j)} | Child(ms, dirs, j) :: j in SubdirsOf(subs, ms[j].parent)) &&
    (forall i: uint64, j: uint64 {:trigger j in SubdirsOf(subs, i)} | j in SubdirsOf(subs, i) ::
      Child(ms, dirs, j) && ms[j].parent == i) &&
    (forall i: uint64 {:trigger i in dirs} | i in dirs &&
      InUse(ms, i) :: ms[i].nlink as int == 2 + |SubdirsOf(subs, i)|)
  }

  // No cycles: each directory is one deeper than its parent.
  type Depths = map<uint64, int>
  predicate Rooted(ms: Metas, dirs: Dirs, depth: Depths)
  {
    1 in dirs && InUse(ms, 1) && ms[1].parent == 1 && 1 in depth && depth[1] == 0 &&
    forall d: uint64 {:trigger Child(ms, dirs, d)} | Child(ms, dirs, d) ::
      var p := ms[d].parent;
      d in depth && p in dirs && InUse(ms, p) && p in depth && depth[d] == depth[p] + 1 && depth[d] > 0
  }

  // The orphan list: linked by `next` from inode 2 on, without repetition; exactly
  // the inodes with the bit set.
  predicate Listed(geo: Geometry, ms: Metas, o: seq<uint64>)
  {
    2 in ms && ms[2].next == (if o != [] then o[0] else 0) &&
    (forall k: int {:trigger o[k]} | 0 <= k < |o| :: OkIno(geo, o[k]) && 2 < o[k] && o[k] in ms && OnList(ms[o[k]]) &&
      ms[o[k]].next == (if k + 1 < |o| then o[k+1] else 0)) &&
    (forall j: int, k: int {:trigger o[j], o[k]} | 0 <= j < k < |o| :: o[j] != o[k]) &&
    (forall i: uint64 {:trigger OkIno(geo, i)} | OkIno(geo, i) && i in ms && OnList(ms[i]) :: i in o)
  }

  // Kept files: linked by `parent`, which they do not need otherwise, from inode 2 on, without repetition; exactly
  // the inodes with the second bit set.
  predicate KeptBy(geo: Geometry, ms: Metas, q: seq<uint64>)
  {
    2 in ms && ms[2].parent == (if q != [] then q[0] else 0) &&
    (forall k: int {:trigger q[k]} | 0 <= k < |q| :: OkIno(geo, q[k]) && 2 < q[k] && q[k] in ms && IsKept(ms[q[k]]) &&
      ms[q[k]].parent == (if k + 1 < |q| then q[k+1] else 0)) &&
    (forall j: int, k: int {:trigger q[j], q[k]} | 0 <= j < k < |q| :: q[j] != q[k]) &&
    (forall i: uint64 {:trigger OkIno(geo, i)} | OkIno(geo, i) && i in ms && IsKept(ms[i]) :: i in q)
  }

  datatype Witness = Witness(names: Names, subs: Subdirs, depth: Depths, orphans: seq<uint64>, kept: seq<uint64>)
  predicate TreeBy(geo: Geometry, ms: Metas, dirs: Dirs, w: Witness)
  { Locals(geo, ms, dirs) && Links(geo, ms, dirs, w.names) && Counts(ms, dirs, w.subs) && Rooted(ms, dirs, w.depth) &&
    Listed(geo, ms, w.orphans) && KeptBy(geo, ms, w.kept) }
  predicate {:opaque} TreeOk(geo: Geometry, ms: Metas, dirs: Dirs)
  { exists w: Witness {:trigger TreeBy(geo, ms, dirs, w)} :: TreeBy(geo, ms, dirs, w) }

  lemma Intro(geo: Geometry, ms: Metas, dirs: Dirs, w: Witness)
    requires TreeBy(geo, ms, dirs, w)
    ensures TreeOk(geo, ms, dirs)
  { reveal TreeOk(); }
  lemma Elim(geo: Geometry, ms: Metas, dirs: Dirs) returns (w: Witness)
    requires TreeOk(geo, ms, dirs)
    ensures TreeBy(geo, ms, dirs, w)
  { reveal TreeOk(); w :| TreeBy(geo, ms, dirs, w); }

  // ---- what procedures may rely on ----

  lemma Basics(geo: Geometry, ms: Metas, dirs: Dirs)
    requires TreeOk(geo, ms, dirs)
    ensures Locals(geo, ms, dirs) && 1 in dirs && ms[1].parent == 1
  { var w := Elim(geo, ms, dirs); }

  lemma EntryOk(geo: Geometry, ms: Metas, dirs: Dirs, d: uint64, n: Name)
    requires TreeOk(geo, ms, dirs) && d in dirs && n in dirs[d]
    ensures var i := dirs[d][n]; OkIno(geo, i) && 2 < i && i != d && InUse(ms, i) && InUse(ms, d) && N.Proper(n) &&
      (i in dirs <==> ms[i].ty == 2)
    ensures var i := dirs[d][n]; i in dirs ==> ms[i].parent == d && ms[d].nlink > 2
    ensures LastLink(ms[dirs[d][n]]) ==> !IsKept(ms[dirs[d][n]])
  {
    var w := Elim(geo, ms, dirs);
    assert Has(dirs, d, n);
    var i := dirs[d][n];
    assert Fits(i, ms[i]) && Of(w.names, i) != {};
    if i in dirs { assert Child(ms, dirs, i); }
  }

  // the parent of a directory is a directory in use
  lemma ParentOk(geo: Geometry, ms: Metas, dirs: Dirs, d: uint64)
    requires TreeOk(geo, ms, dirs) && d in dirs && InUse(ms, d)
    ensures var p := ms[d].parent; p in dirs && OkIno(geo, p) && InUse(ms, p)
  {
    var w := Elim(geo, ms, dirs);
    if d != 1 { assert Child(ms, dirs, d); }
  }

  lemma Subset<T>(a: set<T>, b: set<T>)
    requires a <= b
    ensures |a| <= |b|
  { assert b == a + (b - a); }

  // ---- steps ----

  // Attributes that have nothing to do with the tree change.
  predicate SameTree(a: Meta, b: Meta)
  { a.ty == b.ty && a.nlink == b.nlink && a.parent == b.parent && a.flags == b.flags && a.next == b.next }
  lemma LinksSame(geo: Geometry, ms: Metas, ms': Metas, dirs: Dirs, dirs': Dirs, names: Names)
    requires Links(geo, ms, dirs, names)
    requires forall d: uint64, n: Name {:trigger Has(dirs', d, n)} {:trigger Has(dirs, d, n)} ::
      (Has(dirs', d, n) <==> Has(dirs, d, n)) && (Has(dirs, d, n) ==> dirs'[d][n] == dirs[d][n])
    requires forall x: uint64 {:trigger InUse(ms', x)} {:trigger InUse(ms, x)} :: (InUse(ms, x) <==> InUse(ms', x)) &&
      (InUse(ms, x) ==> ms[x].ty == ms'[x].ty && Count(x, ms[x]) == Count(x, ms'[x]) &&
        (ms[x].ty == 2 ==> ms[x].parent == ms'[x].parent))
    ensures Links(geo, ms', dirs', names)
  {
    forall d: uint64, n: Name | Has(dirs', d, n)
      ensures var j := dirs'[d][n]; OkIno(geo, j) && 2 < j && InUse(ms', j) && InUse(ms', d) && N.Proper(n) &&
        Link(d, n) in Of(names, j) && (ms'[j].ty == 2 ==> ms'[j].parent == d)
    { assert Has(dirs, d, n); }
    forall i: uint64, l: Link | l in Of(names, i) ensures Has(dirs', l.dir, l.name) && dirs'[l.dir][l.name] == i
    { assert Has(dirs, l.dir, l.name); }
    forall i: uint64 | OkIno(geo, i) && InUse(ms', i)
      ensures |Of(names, i)| == Count(i, ms'[i]) { assert InUse(ms, i); }
  }
  // what is on the list, and its order, stay
  lemma ListedSame(geo: Geometry, ms: Metas, ms': Metas, o: seq<uint64>)
    requires Listed(geo, ms, o) && 2 in ms' && ms'[2].next == ms[2].next
    requires forall i: uint64 {:trigger OkIno(geo, i)} | OkIno(geo, i) && i in ms ::
      i in ms' && (OnList(ms[i]) <==> OnList(ms'[i])) && (OnList(ms[i]) ==> ms'[i].next == ms[i].next)
    requires forall i: uint64 {:trigger i in ms'} | i in ms' :: i in ms
    ensures Listed(geo, ms', o)
  { }
  lemma KeptSame(geo: Geometry, ms: Metas, ms': Metas, q: seq<uint64>)
    requires KeptBy(geo, ms, q) && 2 in ms' && ms'[2].parent == ms[2].parent
    requires forall i: uint64 {:trigger OkIno(geo, i)} | OkIno(geo, i) && i in ms ::
      i in ms' && (IsKept(ms[i]) <==> IsKept(ms'[i])) && (IsKept(ms[i]) ==> ms'[i].parent == ms[i].parent)
    requires forall i: uint64 {:trigger i in ms'} | i in ms' :: i in ms
    ensures KeptBy(geo, ms', q)
  { }

  lemma SetAttr(geo: Geometry, ms: Metas, dirs: Dirs, i: uint64, m: Meta)
    requires TreeOk(geo, ms, dirs) && OkIno(geo, i) && i in ms && SameTree(ms[i], m) && Fits(i, m)
    ensures TreeOk(geo, ms[i := m], dirs)
  {
    var w := Elim(geo, ms, dirs);
    var ms' := ms[i := m];
    assert Links(geo, ms', dirs, w.names) by { LinksSame(geo, ms, ms', dirs, dirs, w.names); }
    assert Counts(ms', dirs, w.subs) && Rooted(ms', dirs, w.depth) by
      { SameChildren(ms, ms', dirs, dirs, w.subs, w.depth); }
    assert Listed(geo, ms', w.orphans) && KeptBy(geo, ms', w.kept) by
      { ListedSame(geo, ms, ms', w.orphans); KeptSame(geo, ms, ms', w.kept); }
    Intro(geo, ms', dirs, w);
  }

  // A new file that is not a directory, entered in d.
  lemma EnterFile(geo: Geometry, ms: Metas, dirs: Dirs, d: uint64, n: Name, i: uint64, m: Meta)
    requires TreeOk(geo, ms, dirs) && d in dirs && InUse(ms, d) && n !in dirs[d] && N.Proper(n)
    requires OkIno(geo, i) && 2 < i && i in ms && ms[i].ty == 0 && Alive(m) && m.nlink == 1 && m.ty != 2 &&
      Fits(i, m) && !OnList(m) && !IsKept(m)
    ensures TreeOk(geo, ms[i := m], dirs[d := dirs[d][n := i]])
  {
    var w := Elim(geo, ms, dirs);
    var ms', dirs' := ms[i := m], dirs[d := dirs[d][n := i]];
    var v := Witness(w.names[i := Of(w.names, i) + {Link(d, n)}], w.subs, w.depth, w.orphans, w.kept);
    LinksAdd(geo, ms, ms', dirs, dirs', w.names, v.names, d, n, i);
    assert Counts(ms', dirs', v.subs) && Rooted(ms', dirs', v.depth) by
      { SameChildren(ms, ms', dirs, dirs', w.subs, w.depth); }
    assert Listed(geo, ms', v.orphans) && KeptBy(geo, ms', v.kept) by
      { ListedSame(geo, ms, ms', w.orphans); KeptSame(geo, ms, ms', w.kept); }
    Intro(geo, ms', dirs', v);
  }
  // one more name: for a new file, or (LINK) for an old one
  lemma LinksAdd(geo: Geometry, ms: Metas, ms': Metas, dirs: Dirs, dirs': Dirs, names: Names, names': Names, d: uint64,
    n: Name, i: uint64)
    requires Links(geo, ms, dirs, names) && d in dirs && InUse(ms, d) && InUse(ms', d) && n !in dirs[d] &&
      N.Proper(n) && OkIno(geo, i) && 2 < i && InUse(ms', i)
    requires dirs' == dirs[d := dirs[d][n := i]] && names' == names[i := Of(names, i) + {Link(d, n)}]
    requires forall x: uint64 {:trigger InUse(ms', x)} | InUse(ms', x) && x != i ::
      InUse(ms, x) && Count(x, ms[x]) == Count(x, ms'[x])
    requires forall x: uint64 {:trigger InUse(ms, x)} | InUse(ms, x) ::
      InUse(ms', x) && ms[x].ty == ms'[x].ty && (ms[x].ty == 2 ==> ms[x].parent == ms'[x].parent)
    requires Count(i, ms'[i]) == (if InUse(ms, i) then Count(i, ms[i]) else 0) + 1 &&
      (InUse(ms, i) ==> ms[i].ty != 2) && (ms'[i].ty == 2 ==> ms'[i].parent == d)
    ensures Links(geo, ms', dirs', names')
  {
    assert Link(d, n) !in Of(names, i) by { if Link(d, n) in Of(names, i) { assert Has(dirs, d, n); } }
    assert |Of(names', i)| == |Of(names, i)| + 1;
    if !InUse(ms, i) { assert Of(names, i) == {} by { if l :| l in Of(names, i) { assert Has(dirs, l.dir, l.name); } } }
    forall e: uint64, x: Name | Has(dirs', e, x)
      ensures var j := dirs'[e][x]; OkIno(geo, j) && 2 < j && InUse(ms', j) && InUse(ms', e) && N.Proper(x) &&
        Link(e, x) in Of(names', j) && (ms'[j].ty == 2 ==> ms'[j].parent == e)
    { if e != d || x != n { assert Has(dirs, e, x); } }
    forall j: uint64, l: Link | l in Of(names', j)
      ensures Has(dirs', l.dir, l.name) && dirs'[l.dir][l.name] == j
    {
      if j != i || l != Link(d, n) {
        assert l in Of(names, j);
        assert Has(dirs, l.dir, l.name);
      }
    }
  }
  // neither the directories nor their parents and link counts change
  lemma SameChildren(ms: Metas, ms': Metas, dirs: Dirs, dirs': Dirs, subs: Subdirs, depth: Depths)
    requires Counts(ms, dirs, subs) && Rooted(ms, dirs, depth)
    requires forall d: uint64 {:trigger d in dirs'} {:trigger d in dirs} | d in dirs || d in dirs' ::
      (d in dirs && InUse(ms, d) <==> d in dirs' && InUse(ms', d)) &&
        (d in dirs' && InUse(ms', d) ==> ms[d].parent == ms'[d].parent && ms[d].nlink == ms'[d].nlink)
    ensures Counts(ms', dirs', subs) && Rooted(ms', dirs', depth)
  {
    forall j: uint64 ensures Child(ms, dirs, j) <==> Child(ms', dirs', j) { assert j in dirs || j in dirs' ==> true; }
  }

  // One more name for a file that is not a directory.
  lemma AddName(geo: Geometry, ms: Metas, dirs: Dirs, d: uint64, n: Name, i: uint64, m: Meta)
    requires TreeOk(geo, ms, dirs) && d in dirs && InUse(ms, d) && n !in dirs[d] && N.Proper(n)
    requires OkIno(geo, i) && 2 < i && InUse(ms, i) && ms[i].ty != 2 && m.ty == ms[i].ty &&
      m.nlink as int == ms[i].nlink as int + 1 && m.flags == ms[i].flags && m.next == ms[i].next &&
      m.parent == ms[i].parent && Fits(i, m)
    ensures TreeOk(geo, ms[i := m], dirs[d := dirs[d][n := i]])
  {
    var w := Elim(geo, ms, dirs);
    var ms', dirs' := ms[i := m], dirs[d := dirs[d][n := i]];
    var v := Witness(w.names[i := Of(w.names, i) + {Link(d, n)}], w.subs, w.depth, w.orphans, w.kept);
    LinksAdd(geo, ms, ms', dirs, dirs', w.names, v.names, d, n, i);
    assert Counts(ms', dirs', v.subs) && Rooted(ms', dirs', v.depth) by
      { SameChildren(ms, ms', dirs, dirs', w.subs, w.depth); }
    assert Listed(geo, ms', v.orphans) && KeptBy(geo, ms', v.kept) by
      { ListedSame(geo, ms, ms', w.orphans); KeptSame(geo, ms, ms', w.kept); }
    Intro(geo, ms', dirs', v);
  }

  // The entry n of directory d is taken out; e are the entries that are left.
  predicate Less(dirs: Dirs, d: uint64, n: Name, e: map<Name, uint64>)
  { d in dirs && n in dirs[d] && n !in e && (forall x: Name {:trigger x in e} {:trigger x in dirs[d]} | x != n ::
    (x in e <==> x in dirs[d]) && (x in e ==> e[x] == dirs[d][x])) }
  lemma LinksDel(geo: Geometry, ms: Metas, ms': Metas, dirs: Dirs, dirs': Dirs, names: Names, names': Names, d: uint64,
    n: Name, i: uint64)
    requires Links(geo, ms, dirs, names) && Has(dirs, d, n) && dirs[d][n] == i && i != d
    requires d in dirs' && Less(dirs, d, n, dirs'[d]) && names' == names[i := Of(names, i) - {Link(d, n)}]
    requires forall x: uint64 {:trigger x in dirs} {:trigger x in dirs'} | x != d && x != i &&
      (x in dirs || x in dirs') :: x in dirs && x in dirs' && dirs'[x] == dirs[x]
    requires (i in dirs ==> dirs[i] == map[]) && (i in dirs' ==> dirs'[i] == map[])
    requires forall x: uint64 {:trigger InUse(ms', x)} {:trigger InUse(ms, x)} | x != i ::
      (InUse(ms', x) <==> InUse(ms, x)) &&
      (InUse(ms, x) ==> ms[x].ty == ms'[x].ty && Count(x, ms[x]) == Count(x, ms'[x]) &&
        (ms[x].ty == 2 ==> ms[x].parent == ms'[x].parent))
    requires InUse(ms, i) && if InUse(ms', i) then ms'[i].ty == ms[i].ty != 2 &&
      Count(i, ms'[i]) == Count(i, ms[i]) - 1 else Count(i, ms[i]) == 1
    ensures Links(geo, ms', dirs', names')
  {
    var l0 := Link(d, n);
    assert l0 in Of(names, i);
    assert |Of(names', i)| == |Of(names, i)| - 1;
    if !InUse(ms', i) { assert OkIno(geo, i); assert |Of(names, i)| == 1; assert Of(names', i) == {}; }
    forall e: uint64, x: Name | Has(dirs', e, x)
      ensures var j := dirs'[e][x]; OkIno(geo, j) && 2 < j && InUse(ms', j) && InUse(ms', e) && N.Proper(x) &&
        Link(e, x) in Of(names', j) && (ms'[j].ty == 2 ==> ms'[j].parent == e)
    {
      assert Has(dirs, e, x) && dirs[e][x] == dirs'[e][x] && Link(e, x) != l0;
      var j := dirs'[e][x];
      assert Link(e, x) in Of(names, j);
      assert Link(e, x) in Of(names', j);
      if e == i { assert e in dirs' && dirs'[e] != map[]; }
    }
    forall j: uint64, l: Link | l in Of(names', j)
      ensures Has(dirs', l.dir, l.name) && dirs'[l.dir][l.name] == j
    {
      assert l in Of(names, j) && l != l0;
      assert Has(dirs, l.dir, l.name);
    }
  }

  // A file that is not a directory loses a name, not the last one.
  lemma DropName(geo: Geometry, ms: Metas, dirs: Dirs, d: uint64, n: Name, e: map<Name, uint64>, i: uint64, m: Meta)
    requires TreeOk(geo, ms, dirs) && Less(dirs, d, n, e) && dirs[d][n] == i
    requires i in ms && ms[i].ty != 2 && m.ty == ms[i].ty && 1 < ms[i].nlink && m.nlink == ms[i].nlink - 1 &&
      m.flags == ms[i].flags && m.next == ms[i].next && m.parent == ms[i].parent && Fits(i, m)
    ensures TreeOk(geo, ms[i := m], dirs[d := e])
  {
    var w := Elim(geo, ms, dirs);
    var ms', dirs' := ms[i := m], dirs[d := e];
    assert Has(dirs, d, n);
    var v := Witness(w.names[i := Of(w.names, i) - {Link(d, n)}], w.subs, w.depth, w.orphans, w.kept);
    EntryOk(geo, ms, dirs, d, n);
    LinksDel(geo, ms, ms', dirs, dirs', w.names, v.names, d, n, i);
    assert Counts(ms', dirs', v.subs) && Rooted(ms', dirs', v.depth) by
      { SameChildren(ms, ms', dirs, dirs', w.subs, w.depth); }
    assert Listed(geo, ms', v.orphans) && KeptBy(geo, ms', v.kept) by
      { ListedSame(geo, ms, ms', w.orphans); KeptSame(geo, ms, ms', w.kept); }
    Intro(geo, ms', dirs', v);
  }

  // It loses the last one: free, or on the orphan list (put there before: orphans.dfy).
  predicate Gone(a: Meta, m: Meta)
  { m.nlink == 0 && m.flags as int % 2 == a.flags as int % 2 &&
    (if OnList(a) then m.ty == a.ty && m.next == a.next else m.ty == 0) }
  lemma DropLast(geo: Geometry, ms: Metas, dirs: Dirs, d: uint64, n: Name, e: map<Name, uint64>, i: uint64, m: Meta)
    requires TreeOk(geo, ms, dirs) && Less(dirs, d, n, e) && dirs[d][n] == i
    requires i in ms && ms[i].ty != 2 && ms[i].nlink == 1 && Gone(ms[i], m) && Fits(i, m)
    ensures TreeOk(geo, ms[i := m], dirs[d := e])
  {
    var w := Elim(geo, ms, dirs);
    var ms', dirs' := ms[i := m], dirs[d := e];
    assert Has(dirs, d, n);
    var v := Witness(w.names[i := Of(w.names, i) - {Link(d, n)}], w.subs, w.depth, w.orphans, w.kept);
    EntryOk(geo, ms, dirs, d, n);
    LinksDel(geo, ms, ms', dirs, dirs', w.names, v.names, d, n, i);
    assert Counts(ms', dirs', v.subs) && Rooted(ms', dirs', v.depth) by
      { SameChildren(ms, ms', dirs, dirs', w.subs, w.depth); }
    assert Listed(geo, ms', v.orphans) && KeptBy(geo, ms', v.kept) by
      { ListedSame(geo, ms, ms', w.orphans); KeptSame(geo, ms, ms', w.kept); }
    Intro(geo, ms', dirs', v);
  }

  // A new volume: the root, which is empty, the reserved inode 2, and free inodes.
  lemma FormatTree(geo: Geometry, ms: Metas)
    requires OkIno(geo, 1) && OkIno(geo, 2) && forall i: uint64 {:trigger OkIno(geo, i)} | OkIno(geo, i) ::
      i in ms && (2 < i ==> ms[i] == NewMeta(0, 0))
    requires ms[2] == NewMeta(8, 1) && Fits(1, ms[1]) && ms[1].parent == 1 && ms[1].nlink == 2 && !OnList(ms[1])
    ensures TreeOk(geo, ms, map[1 := map[]])
  {
    var dirs: Dirs := map[1 := map[]];
    var w := Witness(map[], map[], map[1 := 0], [], []);
    forall d: uint64, n: Name ensures !Has(dirs, d, n) { }
    assert Links(geo, ms, dirs, w.names) && Counts(ms, dirs, w.subs) && Rooted(ms, dirs, w.depth) &&
      Listed(geo, ms, w.orphans) && KeptBy(geo, ms, w.kept);
    Intro(geo, ms, dirs, w);
  }
}
