// Directories in the tree: making, removing, and moving one. A directory moves
// with all that is below it, so every depth there changes by the same amount.
include "tree.dfy"
module TreeMove {
  import opened Machine
  import opened VolumeGeometry
  import opened InodeFormat
  import opened AttributeChanges
  import opened NameTree
  import N = NfsState

  // md is the attributes of a directory that gets (k = 1) or loses (k = -1) a sub-directory
  predicate Linked(a: Meta, md: Meta, k: int)
  { md.ty == a.ty && md.nlink as int == a.nlink as int + k && md.parent == a.parent && md.flags == a.flags &&
    md.next == a.next }

  // A new directory i, entered in d.
  lemma EnterDir(geo: Geometry, ms: Metas, dirs: Dirs, d: uint64, n: Name, i: uint64, m: Meta, md: Meta)
    requires TreeOk(geo, ms, dirs) && d in dirs && InUse(ms, d) && n !in dirs[d] && N.Proper(n)
    requires OkIno(geo, i) && 2 < i && i in ms && ms[i].ty == 0 && m.ty == 2 && m.nlink == 2 && m.parent == d &&
      Fits(i, m) && !OnList(m)
    requires Linked(ms[d], md, 1) && Fits(d, md)
    ensures TreeOk(geo, ms[i := m][d := md], dirs[i := map[]][d := dirs[d][n := i]])
  {
    var w := Elim(geo, ms, dirs);
    assert i !in dirs && i != d;
    var mid := dirs[i := map[]];
    var ms', dirs' := ms[i := m][d := md], mid[d := mid[d][n := i]];
    assert Links(geo, ms, mid, w.names) by { LinksSame(geo, ms, ms, dirs, mid, w.names); }
    var v := Witness(w.names[i := Of(w.names, i) + {Link(d, n)}], w.subs[d := SubdirsOf(w.subs, d) + {i}][i := {}],
      w.depth[i := DepthOf(w.depth, d) + 1], w.orphans, w.kept);
    LinksAdd(geo, ms, ms', mid, dirs', w.names, v.names, d, n, i);
    assert Counts(ms', dirs', v.subs) && Rooted(ms', dirs', v.depth) by
      { Grow(ms, ms', dirs, dirs', w.subs, v.subs, w.depth, v.depth, d, i); }
    assert Listed(geo, ms', v.orphans) && KeptBy(geo, ms', v.kept) by
      { ListedSame(geo, ms, ms', w.orphans); KeptSame(geo, ms, ms', w.kept); }
    Intro(geo, ms', dirs', v);
  }
  function DepthOf(depth: Depths, d: uint64): int { if d in depth then depth[d] else 0 }
  // directory d got the new directory i
  predicate Grown(ms: Metas, ms': Metas, dirs: Dirs, dirs': Dirs, d: uint64, i: uint64)
  {
    d in dirs && InUse(ms, d) && i in ms && !InUse(ms, i) && i !in dirs && i != 1 &&
    i in ms' && InUse(ms', i) && ms'[i].parent == d && ms'[i].nlink == 2 && d in ms' && Linked(ms[d], ms'[d], 1) &&
      ms' == ms[i := ms'[i]][d := ms'[d]] &&
    d in dirs' && i in dirs' && dirs' == dirs[i := dirs'[i]][d := dirs'[d]]
  }
  lemma Grow(ms: Metas, ms': Metas, dirs: Dirs, dirs': Dirs, subs: Subdirs, subs': Subdirs, depth: Depths,
    depth': Depths,
    d: uint64, i: uint64)
    requires Counts(ms, dirs, subs) && Rooted(ms, dirs, depth) && Grown(ms, ms', dirs, dirs', d, i)
    requires subs' == subs[d := SubdirsOf(subs, d) + {i}][i := {}] && depth' == depth[i := DepthOf(depth, d) + 1]
    ensures Counts(ms', dirs', subs') && Rooted(ms', dirs', depth')
  {
    GrowCounts(ms, ms', dirs, dirs', subs, subs', depth, d, i);
    GrowRooted(ms, ms', dirs, dirs', depth, depth', d, i);
  }
  lemma GrowCounts(ms: Metas, ms': Metas, dirs: Dirs, dirs': Dirs, subs: Subdirs, subs': Subdirs, depth: Depths,
    d: uint64,
    i: uint64)
    requires Counts(ms, dirs, subs) && Rooted(ms, dirs, depth) && Grown(ms, ms', dirs, dirs', d, i) &&
      subs' == subs[d := SubdirsOf(subs, d) + {i}][i := {}]
    ensures Counts(ms', dirs', subs')
  {
    assert i !in SubdirsOf(subs, d) by { if i in SubdirsOf(subs, d) { assert Child(ms, dirs, i); } }
    assert |SubdirsOf(subs', d)| == |SubdirsOf(subs, d)| + 1;
    forall j: uint64 | Child(ms', dirs', j) ensures j in SubdirsOf(subs', ms'[j].parent)
    { if j != i { assert Child(ms, dirs, j); } }
    forall x: uint64, j: uint64 | j in SubdirsOf(subs', x)
      ensures Child(ms', dirs', j) && ms'[j].parent == x
    { if j != i || x != d { assert j in SubdirsOf(subs, x); assert Child(ms, dirs, j); } }
    forall x: uint64 | x in dirs' && InUse(ms', x) ensures ms'[x].nlink as int == 2 + |SubdirsOf(subs', x)|
    { if x != i { assert x in dirs && InUse(ms, x); if x != d { assert SubdirsOf(subs', x) == SubdirsOf(subs, x); } } }
  }
  lemma GrowRooted(ms: Metas, ms': Metas, dirs: Dirs, dirs': Dirs, depth: Depths, depth': Depths, d: uint64, i: uint64)
    requires Rooted(ms, dirs, depth) && Grown(ms, ms', dirs, dirs', d, i) && depth' == depth[i := DepthOf(depth, d) + 1]
    ensures Rooted(ms', dirs', depth')
  {
    assert d == 1 || Child(ms, dirs, d);
    forall j: uint64 | Child(ms', dirs', j)
      ensures j in depth' && var p := ms'[j].parent;
        p in dirs' && InUse(ms', p) && p in depth' && depth'[j] == depth'[p] + 1 && depth'[j] > 0
    { if j != i { assert Child(ms, dirs, j); } }
  }

  // An empty directory has no sub-directories.
  lemma NoChild(geo: Geometry, ms: Metas, dirs: Dirs, w: Witness, i: uint64, j: uint64)
    requires TreeBy(geo, ms, dirs, w) && i in dirs && dirs[i] == map[] && Child(ms, dirs, j)
    ensures ms[j].parent != i
  {
    assert OkIno(geo, j);
    assert |Of(w.names, j)| == 1;
    var l :| l in Of(w.names, j);
    assert Has(dirs, l.dir, l.name);
  }

  // The empty directory i is removed from d: free, or on the orphan list.
  lemma DropDir(geo: Geometry, ms: Metas, dirs: Dirs, dirs': Dirs, d: uint64, n: Name, i: uint64, m: Meta, md: Meta)
    requires TreeOk(geo, ms, dirs) && Has(dirs, d, n) && dirs[d][n] == i && i in dirs && dirs[i] == map[] && i in ms &&
      d in ms
    requires Gone(ms[i], m) && Fits(i, m) && Linked(ms[d], md, -1) && Fits(d, md)
    requires d in dirs' && Less(dirs, d, n, dirs'[d]) && (i in dirs' <==> m.ty == 2) &&
      (i in dirs' ==> dirs'[i] == map[])
    requires forall x: uint64 {:trigger x in dirs} {:trigger x in dirs'} | x != d && x != i &&
      (x in dirs || x in dirs') :: x in dirs && x in dirs' && dirs'[x] == dirs[x]
    ensures TreeOk(geo, ms[i := m][d := md], dirs')
  {
    var w := Elim(geo, ms, dirs);
    EntryOk(geo, ms, dirs, d, n);
    var ms' := ms[i := m][d := md];
    var v := Witness(w.names[i := Of(w.names, i) - {Link(d, n)}], w.subs[d := SubdirsOf(w.subs, d) - {i}], w.depth,
      w.orphans,
      w.kept);
    assert Locals(geo, ms', dirs');
    LinksDel(geo, ms, ms', dirs, dirs', w.names, v.names, d, n, i);
    forall j: uint64 | Child(ms, dirs, j) ensures ms[j].parent != i { NoChild(geo, ms, dirs, w, i, j); }
    assert Counts(ms', dirs', v.subs) && Rooted(ms', dirs', v.depth) by
      { Prune(ms, ms', dirs, dirs', w.subs, v.subs, w.depth, d, i); }
    ListStays(geo, ms, i, m, d, md, w.orphans, w.kept);
    Intro(geo, ms', dirs', v);
  }
  // neither inode comes on the list or leaves it
  lemma ListStays(geo: Geometry, ms: Metas, i: uint64, m: Meta, d: uint64, md: Meta, o: seq<uint64>, q: seq<uint64>)
    requires Listed(geo, ms, o) && KeptBy(geo, ms, q) && 2 in ms && i in ms && d in ms && i != 2
    requires (OnList(m) <==> OnList(ms[i])) && (OnList(m) ==> m.next == ms[i].next) &&
      (OnList(md) <==> OnList(ms[d])) && md.next == ms[d].next
    requires !IsKept(m) && !IsKept(ms[i]) && (IsKept(md) <==> IsKept(ms[d])) && md.parent == ms[d].parent
    ensures Listed(geo, ms[i := m][d := md], o) && KeptBy(geo, ms[i := m][d := md], q)
  { ListedSame(geo, ms, ms[i := m][d := md], o); KeptSame(geo, ms, ms[i := m][d := md], q); }
  lemma Prune(ms: Metas, ms': Metas, dirs: Dirs, dirs': Dirs, subs: Subdirs, subs': Subdirs, depth: Depths, d: uint64,
    i: uint64)
    requires Counts(ms, dirs, subs) && Rooted(ms, dirs, depth) && d in dirs && InUse(ms, d) && Child(ms, dirs, i) &&
      ms[i].parent == d && d != i
    requires forall j: uint64 {:trigger Child(ms, dirs, j)} | Child(ms, dirs, j) :: ms[j].parent != i
    requires i in ms' && !InUse(ms', i) && d in ms' && InUse(ms', d) && Linked(ms[d], ms'[d], -1) &&
      ms' == ms[i := ms'[i]][d := ms'[d]] && d in dirs'
    requires forall x: uint64 {:trigger x in dirs} {:trigger x in dirs'} | x != d && x != i &&
      (x in dirs || x in dirs') :: x in dirs && x in dirs'
    requires subs' == subs[d := SubdirsOf(subs, d) - {i}]
    ensures Counts(ms', dirs', subs') && Rooted(ms', dirs', depth)
  {
    assert |SubdirsOf(subs', d)| == |SubdirsOf(subs, d)| - 1;
    forall j: uint64 | Child(ms', dirs', j)
      ensures j in SubdirsOf(subs', ms'[j].parent) && j in depth && var p := ms'[j].parent;
        p in dirs' && InUse(ms', p) && p in depth && depth[j] == depth[p] + 1 && depth[j] > 0
    { assert Child(ms, dirs, j); }
    forall x: uint64, j: uint64 | j in SubdirsOf(subs', x)
      ensures Child(ms', dirs', j) && ms'[j].parent == x
    { assert j in SubdirsOf(subs, x) && j != i; assert Child(ms, dirs, j); }
    forall x: uint64 | x in dirs' && InUse(ms', x) ensures ms'[x].nlink as int == 2 + |SubdirsOf(subs', x)|
    { assert x in dirs && InUse(ms, x); }
  }

  // ---- above and below ----

  // the k-th directory above x
  function Ancestor(ms: Metas, x: uint64, k: nat): uint64 decreases k
  { if k == 0 || x !in ms then x else Ancestor(ms, ms[x].parent, k - 1) }
  predicate Under(ms: Metas, x: uint64, top: uint64) { exists k: nat {:trigger Ancestor(ms, x, k)} ::
    Ancestor(ms, x, k) == top }

  lemma AncNext(ms: Metas, x: uint64, k: nat)
    requires Ancestor(ms, x, k) in ms
    ensures Ancestor(ms, x, k + 1) == ms[Ancestor(ms, x, k)].parent
    decreases k
  { if 0 < k && x in ms { AncNext(ms, ms[x].parent, k - 1); } }
  lemma UnderSelf(ms: Metas, x: uint64) ensures Under(ms, x, x) { assert Ancestor(ms, x, 0) == x; }
  lemma UnderUp(ms: Metas, x: uint64, top: uint64)
    requires x in ms && x != top
    ensures Under(ms, x, top) <==> Under(ms, ms[x].parent, top)
  {
    if Under(ms, x, top) {
      var k: nat :| Ancestor(ms, x, k) == top;
      assert Ancestor(ms, ms[x].parent, k - 1) == top;
    }
    if Under(ms, ms[x].parent, top) {
      var k: nat :| Ancestor(ms, ms[x].parent, k) == top;
      assert Ancestor(ms, x, k + 1) == top;
    }
  }
  lemma AncRoot(ms: Metas, k: nat)
    requires 1 in ms && ms[1].parent == 1
    ensures Ancestor(ms, 1, k) == 1
    decreases k
  { if 0 < k { AncRoot(ms, k - 1); } }
  lemma UnderRoot(ms: Metas, top: uint64)
    requires 1 in ms && ms[1].parent == 1
    ensures Under(ms, 1, top) <==> top == 1
  {
    if Under(ms, 1, top) { var k: nat :| Ancestor(ms, 1, k) == top; AncRoot(ms, k); }
    if top == 1 { UnderSelf(ms, 1); }
  }
  predicate NotDeeper(ms: Metas, dirs: Dirs, depth: Depths, t: uint64, x: uint64)
  { t in dirs && InUse(ms, t) && t in depth && x in depth && depth[x] >= depth[t] }
  lemma Deeper(ms: Metas, dirs: Dirs, depth: Depths, x: uint64, k: nat)
    requires Rooted(ms, dirs, depth) && x in dirs && InUse(ms, x)
    ensures NotDeeper(ms, dirs, depth, Ancestor(ms, x, k), x)
    decreases k
  {
    if x == 1 { AncRoot(ms, k); } else {
      assert Child(ms, dirs, x);
      if 0 < k { Deeper(ms, dirs, depth, ms[x].parent, k - 1); }
    }
  }

  // RENAME walks up from a directory to see whether another one is above it: it is
  // above the directory if it is the parent or above that, and the walk is over at the root.
  lemma WalkUp(geo: Geometry, ms: Metas, dirs: Dirs, at: uint64, top: uint64)
    requires TreeOk(geo, ms, dirs) && at in dirs && InUse(ms, at) && at != top && at != 1
    ensures var p := ms[at].parent; p in dirs && OkIno(geo, p) && InUse(ms, p) &&
      (Under(ms, at, top) <==> Under(ms, p, top))
  {
    ParentOk(geo, ms, dirs, at);
    UnderUp(ms, at, top);
  }
  lemma WalkEnd(geo: Geometry, ms: Metas, dirs: Dirs, top: uint64)
    requires TreeOk(geo, ms, dirs)
    ensures 1 in ms && (Under(ms, 1, top) <==> top == 1)
  { var w := Elim(geo, ms, dirs); UnderRoot(ms, top); }

  // ---- moving ----

  // dirs after directory i moved from (fd, fn) to (td, tn), which was free
  predicate MovedTo(dirs: Dirs, dirs': Dirs, fd: uint64, fn: Name, td: uint64, tn: Name, i: uint64)
  {
    Has(dirs, fd, fn) && dirs[fd][fn] == i && td in dirs && tn !in dirs[td] && fd in dirs' && td in dirs' &&
    (forall d: uint64 {:trigger d in dirs'} {:trigger d in dirs} | d in dirs || d in dirs' ::
      d in dirs && d in dirs') &&
    (forall d: uint64, n: Name {:trigger Has(dirs', d, n)} {:trigger Has(dirs, d, n)} | (d != fd || n != fn) &&
      (d != td || n != tn) ::
      (Has(dirs', d, n) <==> Has(dirs, d, n)) && (Has(dirs, d, n) ==> dirs'[d][n] == dirs[d][n])) &&
    !Has(dirs', fd, fn) && Has(dirs', td, tn) && dirs'[td][tn] == i
  }
  lemma LinksMove(geo: Geometry, ms: Metas, ms': Metas, dirs: Dirs, dirs': Dirs, names: Names, names': Names,
    fd: uint64,
    fn: Name, td: uint64, tn: Name, i: uint64)
    requires Links(geo, ms, dirs, names) && MovedTo(dirs, dirs', fd, fn, td, tn, i) && InUse(ms, td) && N.Proper(tn) &&
      i != 1
    requires names' == names[i := Of(names, i) - {Link(fd, fn)} + {Link(td, tn)}] && i in ms' &&
      (ms'[i].ty == 2 ==> ms'[i].parent == td)
    requires forall x: uint64 {:trigger InUse(ms', x)} {:trigger InUse(ms, x)} :: (InUse(ms, x) <==> InUse(ms', x)) &&
      (InUse(ms, x) ==> ms[x].ty == ms'[x].ty && Count(x, ms[x]) == Count(x, ms'[x]) &&
        (x != i && ms[x].ty == 2 ==> ms[x].parent == ms'[x].parent))
    ensures Links(geo, ms', dirs', names')
  {
    var was := Of(names, i);
    assert Link(fd, fn) in was && Link(td, tn) !in was by { if Link(td, tn) in was { assert Has(dirs, td, tn); } }
    assert |was - {Link(fd, fn)}| == |was| - 1;
    assert |Of(names', i)| == |was|;
    forall l: Link | l in was && ms[i].ty == 2 ensures l == Link(fd, fn)
    { if l != Link(fd, fn) { Subset({l, Link(fd, fn)}, was); assert |{l, Link(fd, fn)}| == 2; } }
    forall d: uint64, n: Name | Has(dirs', d, n)
      ensures var j := dirs'[d][n]; OkIno(geo, j) && 2 < j && InUse(ms', j) && InUse(ms', d) && N.Proper(n) &&
        Link(d, n) in Of(names', j) && (ms'[j].ty == 2 ==> ms'[j].parent == d)
    {
      if d != td || n != tn {
        assert Has(dirs, d, n);
        assert Link(d, n) in Of(names, dirs[d][n]) && Link(d, n) != Link(fd, fn);
      }
    }
    forall j: uint64, l: Link | l in Of(names', j)
      ensures Has(dirs', l.dir, l.name) && dirs'[l.dir][l.name] == j
    {
      if j != i || l != Link(td, tn) {
        assert l in Of(names, j);
        assert Has(dirs, l.dir, l.name);
        assert l != Link(fd, fn) && l != Link(td, tn);
      }
    }
  }

  // A file that is not a directory; or a directory within its directory. Nothing but the name changes.
  lemma Rename(geo: Geometry, ms: Metas, dirs: Dirs, dirs': Dirs, fd: uint64, fn: Name, td: uint64, tn: Name, i: uint64)
    requires TreeOk(geo, ms, dirs) && MovedTo(dirs, dirs', fd, fn, td, tn, i) && InUse(ms, td) &&
      (i !in dirs || fd == td) && N.Proper(tn)
    ensures TreeOk(geo, ms, dirs')
  {
    var w := Elim(geo, ms, dirs);
    EntryOk(geo, ms, dirs, fd, fn);
    var v := Witness(w.names[i := Of(w.names, i) - {Link(fd, fn)} + {Link(td, tn)}], w.subs, w.depth, w.orphans,
      w.kept);
    LinksMove(geo, ms, ms, dirs, dirs', w.names, v.names, fd, fn, td, tn, i);
    assert Counts(ms, dirs', v.subs) && Rooted(ms, dirs', v.depth) by
      { SameChildren(ms, ms, dirs, dirs', w.subs, w.depth); }
    Intro(geo, ms, dirs', v);
  }

  // To another one: its parent changes, and the link counts of both.
  lemma MoveDir(geo: Geometry, ms: Metas, dirs: Dirs, dirs': Dirs, fd: uint64, fn: Name, td: uint64, tn: Name,
    i: uint64,
    m: Meta, mf: Meta, mt: Meta)
    requires TreeOk(geo, ms, dirs) && MovedTo(dirs, dirs', fd, fn, td, tn, i) && i in dirs && N.Proper(tn) &&
      fd != td && InUse(ms, td) && !Under(ms, td, i)
    requires i in ms && fd in ms && Linked(ms[fd], mf, -1) && Linked(ms[td], mt, 1) && Fits(fd, mf) && Fits(td, mt)
    requires m.parent == td && m.ty == ms[i].ty && m.nlink == ms[i].nlink && m.flags == ms[i].flags &&
      m.next == ms[i].next && Fits(i, m)
    ensures TreeOk(geo, ms[i := m][fd := mf][td := mt], dirs')
  {
    var w := Elim(geo, ms, dirs);
    EntryOk(geo, ms, dirs, fd, fn);
    assert i != td by { UnderSelf(ms, i); }
    var ms' := ms[i := m][fd := mf][td := mt];
    assert Locals(geo, ms', dirs');
    MovesIs(ms, fd, td, i, m, mf, mt);
    assert ms'[i].parent == td && Listed(geo, ms', w.orphans) &&
      KeptBy(geo, ms', w.kept) by { ListedSame(geo, ms, ms', w.orphans); KeptSame(geo, ms, ms', w.kept); }
    assert ms[fd].ty == 2 && ms[td].ty == 2 && ms[i].ty == 2 && Child(ms, dirs, i);
    MoveParts(geo, ms, ms', dirs, dirs', w, fd, fn, td, tn, i);
  }
  lemma MoveParts(geo: Geometry, ms: Metas, ms': Metas, dirs: Dirs, dirs': Dirs, w: Witness, fd: uint64, fn: Name,
    td: uint64, tn: Name, i: uint64)
    requires TreeBy(geo, ms, dirs, w) && MovedTo(dirs, dirs', fd, fn, td, tn, i) && Child(ms, dirs, i) &&
      ms[i].parent == fd && N.Proper(tn) && fd != td && i != td && i != fd && InUse(ms, fd) && InUse(ms, td) &&
      !Under(ms, td, i)
    requires Moves(ms, ms', fd, td, i) && Locals(geo, ms', dirs') && Listed(geo, ms', w.orphans) &&
      KeptBy(geo, ms', w.kept) && i in ms' && ms'[i].parent == td && ms[fd].ty == 2 && ms[td].ty == 2 && ms[i].ty == 2
    ensures TreeOk(geo, ms', dirs')
  {
    var v := Witness(w.names[i := Of(w.names, i) - {Link(fd, fn)} + {Link(td, tn)}],
      w.subs[fd := SubdirsOf(w.subs, fd) - {i}][td := SubdirsOf(w.subs, td) + {i}], Shifted(ms, w.depth, td, i),
        w.orphans, w.kept);
    LinksMove(geo, ms, ms', dirs, dirs', w.names, v.names, fd, fn, td, tn, i);
    CountsMove(ms, ms', dirs, dirs', w.subs, v.subs, fd, td, i);
    RootedMove(ms, ms', dirs, dirs', w.depth, td, i);
    Intro(geo, ms', dirs', v);
  }
  // the attributes that matter, after the move
  predicate Moves(ms: Metas, ms': Metas, fd: uint64, td: uint64, i: uint64)
  {
    forall x: uint64 {:trigger InUse(ms', x)} {:trigger InUse(ms, x)} :: (InUse(ms, x) <==> InUse(ms', x)) &&
      (InUse(ms, x) ==> ms'[x].ty == ms[x].ty && (IsKept(ms'[x]) <==> IsKept(ms[x])) &&
        ms'[x].parent == (if x == i then td else ms[x].parent) &&
        ms'[x].nlink as int == ms[x].nlink as int + (if x == td then 1 else if x == fd then -1 else 0))
  }
  lemma MovesIs(ms: Metas, fd: uint64, td: uint64, i: uint64, m: Meta, mf: Meta, mt: Meta)
    requires i in ms && fd in ms && td in ms && i != fd && i != td && fd != td && Linked(ms[fd], mf, -1) &&
      Linked(ms[td], mt, 1) && 1 < ms[fd].nlink && Alive(ms[td])
    requires m.parent == td && m.ty == ms[i].ty && m.nlink == ms[i].nlink && m.flags == ms[i].flags
    ensures Moves(ms, ms[i := m][fd := mf][td := mt], fd, td, i)
  { }
  lemma CountsMove(ms: Metas, ms': Metas, dirs: Dirs, dirs': Dirs, subs: Subdirs, subs': Subdirs, fd: uint64,
    td: uint64,
    i: uint64)
    requires Counts(ms, dirs, subs) && Child(ms, dirs, i) && ms[i].parent == fd && fd != td && i != td && i != fd &&
      fd in dirs && td in dirs && InUse(ms, fd) && InUse(ms, td)
    requires Moves(ms, ms', fd, td, i)
    requires forall d: uint64 {:trigger d in dirs'} {:trigger d in dirs} :: d in dirs <==> d in dirs'
    requires forall x: uint64 {:trigger SubdirsOf(subs', x)} ::
      SubdirsOf(subs', x) == (if x == td then SubdirsOf(subs, td) + {i} else if x == fd then SubdirsOf(subs, fd) - {i}
        else SubdirsOf(subs, x))
    ensures Counts(ms', dirs', subs')
  {
    assert i in SubdirsOf(subs, fd) && i !in SubdirsOf(subs, td);
    assert |SubdirsOf(subs', fd)| == |SubdirsOf(subs, fd)| - 1 && |SubdirsOf(subs', td)| == |SubdirsOf(subs, td)| + 1;
    forall j: uint64 | Child(ms', dirs', j) ensures j in SubdirsOf(subs', ms'[j].parent)
    { assert Child(ms, dirs, j); assert j in SubdirsOf(subs, ms[j].parent); }
    forall x: uint64, j: uint64 | j in SubdirsOf(subs', x) ensures Child(ms', dirs', j) && ms'[j].parent == x
    { if j != i || x != td { assert j in SubdirsOf(subs, x); assert Child(ms, dirs, j); } }
    forall x: uint64 | x in dirs' && InUse(ms', x)
      ensures ms'[x].nlink as int == 2 + |SubdirsOf(subs', x)| { assert x in dirs && InUse(ms, x); }
  }
  function Shifted(ms: Metas, depth: Depths, td: uint64, i: uint64): Depths
  { map x: uint64 | x in depth :: if Under(ms, x, i) then depth[x] + DepthOf(depth, td) + 1 - DepthOf(depth, i)
    else depth[x] }
  lemma RootedMove(ms: Metas, ms': Metas, dirs: Dirs, dirs': Dirs, depth: Depths, td: uint64, i: uint64)
    requires Rooted(ms, dirs, depth) && Child(ms, dirs, i) && td in dirs && InUse(ms, td) && !Under(ms, td, i)
    requires forall d: uint64 {:trigger d in dirs'} {:trigger d in dirs} :: d in dirs <==> d in dirs'
    requires forall x: uint64 {:trigger InUse(ms', x)} {:trigger InUse(ms, x)} ::
      (InUse(ms, x) <==> InUse(ms', x)) && (InUse(ms, x) ==> ms'[x].parent == (if x == i then td else ms[x].parent))
    ensures Rooted(ms', dirs', Shifted(ms, depth, td, i))
  {
    var depth' := Shifted(ms, depth, td, i);
    UnderRoot(ms, i);
    UnderSelf(ms, i);
    assert td == 1 || Child(ms, dirs, td);
    forall d: uint64 | Child(ms', dirs', d)
      ensures d in depth' && var p := ms'[d].parent;
        p in dirs' && InUse(ms', p) && p in depth' && depth'[d] == depth'[p] + 1 && depth'[d] > 0
    {
      assert Child(ms, dirs, d);
      if d != i {
        UnderUp(ms, d, i);
        if Under(ms, d, i) { var k: nat :| Ancestor(ms, d, k) == i; Deeper(ms, dirs, depth, d, k); }
      }
    }
  }
}
