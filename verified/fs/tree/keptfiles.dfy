// The list of kept files: what a mount has open and what therefore stays when its names go. Keeping counts as a link,
// so that a file that loses its last name has one left.
include "orphans.dfy"
module KeptFiles {
  import opened Machine
  import opened VolumeGeometry
  import opened InodeFormat
  import opened AttributeChanges
  import opened NameTree
  import Orphans

  // file i, kept, has one link more, and is followed by inode `next` on the list
  predicate CanKeep(m: Meta) { Alive(m) && m.ty != 2 && !IsKept(m) && m.nlink < 0x7fff_ffff && m.flags < 0xffff_fffe }
  function KeptMeta(m: Meta, next: uint64, s: uint64, ns: uint32): Meta
    requires CanKeep(m)
  { Relinked(WithParent(WithList(m, m.flags + 2, m.next), next), m.nlink + 1, s, ns) }
  function Keeping(ms: Metas, i: uint64, s: uint64, ns: uint32): Metas
    requires i in ms && 2 in ms && CanKeep(ms[i])
  { ms[i := KeptMeta(ms[i], ms[2].parent, s, ns)][2 := WithParent(ms[2], i)] }

  // i comes to the head of the list
  lemma Pushed(geo: Geometry, ms: Metas, ms': Metas, q: seq<uint64>, i: uint64)
    requires KeptBy(geo, ms, q) && OkIno(geo, i) && 2 < i && i in ms && !IsKept(ms[i]) && !IsKept(ms[2])
    requires i in ms' && IsKept(ms'[i]) && ms'[i].parent == ms[2].parent &&
      ms' == ms[i := ms'[i]][2 := WithParent(ms[2], i)]
    ensures KeptBy(geo, ms', [i] + q)
  {
    var r := [i] + q;
    assert i !in q by { if i in q { var k :| 0 <= k < |q| && q[k] == i; } }
    forall k: int | 0 <= k < |r|
      ensures OkIno(geo, r[k]) && 2 < r[k] && r[k] in ms' && IsKept(ms'[r[k]]) &&
        ms'[r[k]].parent == (if k + 1 < |r| then r[k+1] else 0)
    {
      if 0 < k { assert r[k] == q[k-1] && r[k] != i; }
      if k + 1 < |r| { assert r[k+1] == q[k]; }
    }
    forall j: int, k: int | 0 <= j < k < |r| ensures r[j] != r[k]
    { assert r[k] == q[k-1]; if 0 < j { assert r[j] == q[j-1]; } }
    forall x: uint64 | OkIno(geo, x) && x in ms' && IsKept(ms'[x]) ensures x in r
    { if x != i { assert x != 2; assert x in q; } }
  }

  // a file is put at the head of the list
  lemma KeepOk(geo: Geometry, ms: Metas, dirs: Dirs, i: uint64, s: uint64, ns: uint32)
    requires TreeOk(geo, ms, dirs) && OkIno(geo, i) && 2 < i && i in ms && 2 in ms && CanKeep(ms[i])
    ensures TreeOk(geo, Keeping(ms, i, s, ns), dirs)
  {
    var w := Elim(geo, ms, dirs);
    var ms', q := Keeping(ms, i, s, ns), [i] + w.kept;
    assert Fits(i, ms[i]) && Fits(2, ms[2]) && i !in dirs;
    assert ms'[i].flags as int == ms[i].flags as int + 2;
    assert IsKept(ms'[i]) && (OnList(ms'[i]) <==> OnList(ms[i])) && Count(i, ms'[i]) == Count(i, ms[i]);
    assert KeptBy(geo, ms', q) by { Pushed(geo, ms, ms', w.kept, i); }
    assert Locals(geo, ms', dirs);
    assert Links(geo, ms', dirs, w.names) by { LinksSame(geo, ms, ms', dirs, dirs, w.names); }
    assert Counts(ms', dirs, w.subs) && Rooted(ms', dirs, w.depth) by
      { SameChildren(ms, ms', dirs, dirs, w.subs, w.depth); }
    assert Listed(geo, ms', w.orphans) by { ListedSame(geo, ms, ms', w.orphans); }
    Intro(geo, ms', dirs, Witness(w.names, w.subs, w.depth, w.orphans, q));
  }

  // A new file, i, without a name: its one link is that of a kept file.
  function Unnamed(ms: Metas, i: uint64, m: Meta): Metas
    requires i in ms && 2 in ms
  { ms[i := UnnamedMeta(m, ms[2].parent)][2 := WithParent(ms[2], i)] }
  function UnnamedMeta(m: Meta, next: uint64): Meta { WithParent(WithList(m, 2, m.next), next) }
  lemma UnnamedOk(geo: Geometry, ms: Metas, dirs: Dirs, i: uint64, m: Meta)
    requires TreeOk(geo, ms, dirs) && OkIno(geo, i) && 2 < i && i in ms && 2 in ms && ms[i].ty == 0
    requires Fits(i, m) && Alive(m) && m.ty != 2 && m.nlink == 1 && m.flags == 0
    ensures TreeOk(geo, Unnamed(ms, i, m), dirs)
  {
    var w := Elim(geo, ms, dirs);
    var ms' := Unnamed(ms, i, m);
    assert Fits(i, ms[i]) && Fits(2, ms[2]) && i !in dirs;
    assert IsKept(ms'[i]) && !OnList(ms'[i]) && Count(i, ms'[i]) == 0;
    assert KeptBy(geo, ms', [i] + w.kept) by { Pushed(geo, ms, ms', w.kept, i); }
    assert Locals(geo, ms', dirs);
    assert Of(w.names, i) == {} by { if l :| l in Of(w.names, i) { assert Has(dirs, l.dir, l.name); } }
    assert Links(geo, ms', dirs, w.names) by {
      forall d: uint64, n: Name | Has(dirs, d, n)
        ensures var j := dirs[d][n]; OkIno(geo, j) && 2 < j && InUse(ms', j) && InUse(ms', d) && N.Proper(n) &&
          Link(d, n) in Of(w.names, j) && (ms'[j].ty == 2 ==> ms'[j].parent == d)
      { assert Link(d, n) in Of(w.names, dirs[d][n]); }
    }
    assert Counts(ms', dirs, w.subs) && Rooted(ms', dirs, w.depth) by
      { SameChildren(ms, ms', dirs, dirs, w.subs, w.depth); }
    assert Listed(geo, ms', w.orphans) by { ListedSame(geo, ms, ms', w.orphans); }
    Intro(geo, ms', dirs, Witness(w.names, w.subs, w.depth, w.orphans, [i] + w.kept));
  }

  // file i is the next on the list after `at`, another kept file, or 2: it is the first
  predicate Before(ms: Metas, at: uint64, i: uint64)
  { at in ms && i in ms && (at == 2 || IsKept(ms[at])) && IsKept(ms[i]) && ms[at].parent == i && at != i }
  // i is not kept any more, but its link is counted still
  function Unkept(ms: Metas, at: uint64, i: uint64): Metas
    requires Before(ms, at, i)
  { ms[i := UnkeptMeta(ms[i])][at := WithParent(ms[at], ms[i].parent)] }
  function UnkeptMeta(m: Meta): Meta
    requires IsKept(m)
  { WithParent(WithList(m, m.flags - 2, m.next), 0) }

  // i leaves the list, and becomes m, which has a link less
  lemma LeaveOk(geo: Geometry, ms: Metas, dirs: Dirs, at: uint64, i: uint64, m: Meta)
    requires TreeOk(geo, ms, dirs) && OkIno(geo, i) && 2 < i && OkIno(geo, at) && Before(ms, at, i)
    requires Fits(i, m) && !IsKept(m) && m.nlink as int == ms[i].nlink as int - 1 && (OnList(m) <==> OnList(ms[i])) &&
      (OnList(m) ==> m.next == ms[i].next)
    requires m.ty == ms[i].ty || (m.ty == 0 && m.nlink == 0)
    ensures TreeOk(geo, ms[at := WithParent(ms[at], ms[i].parent)][i := m], dirs)
  {
    var w := Elim(geo, ms, dirs);
    var ms' := ms[at := WithParent(ms[at], ms[i].parent)][i := m];
    assert Fits(i, ms[i]) && Fits(at, ms[at]) && i !in dirs;
    var q := Taken(geo, ms, ms', w.kept, at, i);
    assert Locals(geo, ms', dirs);
    assert |Of(w.names, i)| == m.nlink as int;
    assert Links(geo, ms', dirs, w.names) by { LinkLess(geo, ms, ms', dirs, w.names, i); }
    assert Counts(ms', dirs, w.subs) && Rooted(ms', dirs, w.depth) by
      { SameChildren(ms, ms', dirs, dirs, w.subs, w.depth); }
    assert Listed(geo, ms', w.orphans) by { ListedSame(geo, ms, ms', w.orphans); }
    Intro(geo, ms', dirs, Witness(w.names, w.subs, w.depth, w.orphans, q));
  }
  lemma Taken(geo: Geometry, ms: Metas, ms': Metas, q: seq<uint64>, at: uint64, i: uint64) returns (r: seq<uint64>)
    requires KeptBy(geo, ms, q) && OkIno(geo, i) && 2 < i && OkIno(geo, at) && Before(ms, at, i) && i in ms' &&
      !IsKept(ms'[i]) && 2 in ms && !IsKept(ms[2])
    requires ms' == ms[at := WithParent(ms[at], ms[i].parent)][i := ms'[i]]
    ensures KeptBy(geo, ms', r)
  {
    var k :| 0 <= k < |q| && q[k] == i;
    assert if k == 0 then at == 2 else at == q[k-1] by {
      if at == 2 { assert q[0] == i; } else { var j :| 0 <= j < |q| && q[j] == at; assert j + 1 < |q| && q[j+1] == i; }
    }
    r := q[..k] + q[k+1..];
    forall x: int | 0 <= x < |r| ensures r[x] == q[if x < k then x else x + 1] && r[x] != i { }
    forall x: int | 0 <= x < |r|
      ensures OkIno(geo, r[x]) && 2 < r[x] && r[x] in ms' && IsKept(ms'[r[x]]) &&
        ms'[r[x]].parent == (if x + 1 < |r| then r[x+1] else 0)
    { var y := if x < k then x else x + 1; assert r[x] == q[y]; if x != k - 1 { assert q[y] != at; } }
    forall x: int, y: int | 0 <= x < y < |r| ensures r[x] != r[y] { }
    forall x: uint64 | OkIno(geo, x) && x in ms' && IsKept(ms'[x]) ensures x in r
    {
      assert x != i && x in q;
      var y :| 0 <= y < |q| && q[y] == x;
      assert r[if y < k then y else y - 1] == x;
    }
  }
  // i has as many links as names now, and if that is none it is not in use
  lemma LinkLess(geo: Geometry, ms: Metas, ms': Metas, dirs: Dirs, names: Names, i: uint64)
    requires Links(geo, ms, dirs, names) && i in ms && i in ms' && ms[i].ty != 2 && i !in dirs && !IsKept(ms'[i]) &&
      |Of(names, i)| == ms'[i].nlink as int
    requires if ms'[i].nlink == 0 then !InUse(ms', i) else InUse(ms, i) && InUse(ms', i) && ms'[i].ty == ms[i].ty
    requires forall x: uint64 {:trigger InUse(ms', x)} {:trigger InUse(ms, x)} | x != i ::
      (InUse(ms, x) <==> InUse(ms', x)) &&
      (InUse(ms, x) ==> ms[x].ty == ms'[x].ty && Count(x, ms[x]) == Count(x, ms'[x]) &&
        (ms[x].ty == 2 ==> ms[x].parent == ms'[x].parent))
    ensures Links(geo, ms', dirs, names)
  {
    if ms'[i].nlink == 0 { assert Of(names, i) == {}; }
    forall d: uint64, n: Name | Has(dirs, d, n)
      ensures var j := dirs[d][n]; OkIno(geo, j) && 2 < j && InUse(ms', j) && InUse(ms', d) && N.Proper(n) &&
        Link(d, n) in Of(names, j) && (ms'[j].ty == 2 ==> ms'[j].parent == d)
    { assert d != i; assert Link(d, n) in Of(names, dirs[d][n]); }
  }

  // A kept file is let go: it leaves the list, and loses a link (Dropped).
  lemma LetGoOk(geo: Geometry, ms: Metas, dirs: Dirs, at: uint64, i: uint64, s: uint64, ns: uint32, sh: Leftover,
    freed: bool)
    requires TreeOk(geo, ms, dirs) && OkIno(geo, i) && 2 < i && OkIno(geo, at) && Before(ms, at, i) && 2 in ms
    requires freed ==> LastLink(ms[i]) && !OnList(ms[i])
    ensures TreeOk(geo, Dropped(Unkept(ms, at, i), i, s, ns, sh, freed), dirs)
  {
    Basics(geo, ms, dirs);
    assert Fits(i, ms[i]) && Fits(at, ms[at]) && Fits(2, ms[2]);
    var u := Unkept(ms, at, i);
    var m := UnkeptMeta(ms[i]);
    var ms' := Dropped(u, i, s, ns, sh, freed);
    assert m.flags as int == ms[i].flags as int - 2 && !IsKept(m) && (OnList(m) <==> OnList(ms[i]));
    if !LastLink(m) {
      LeaveOk(geo, ms, dirs, at, i, Relinked(m, m.nlink - 1, s, ns));
      assert ms' == ms[at := WithParent(ms[at], ms[i].parent)][i := Relinked(m, m.nlink - 1, s, ns)];
    } else if freed {
      LeaveOk(geo, ms, dirs, at, i, NewMeta(0, m.gen));
      assert ms' == ms[at := WithParent(ms[at], ms[i].parent)][i := NewMeta(0, m.gen)];
    } else {
      Orphans.PutOn(geo, ms, dirs, i);
      var o := Orphaned(ms, i);
      var x := ms'[i];
      assert !IsKept(x) && OnList(x) && x.next == o[i].next && x.nlink == 0 && x.size == 0 && x.ty == m.ty;
      assert Before(o, at, i);
      LeaveOk(geo, o, dirs, at, i, x);
      assert ms' == o[at := WithParent(o[at], o[i].parent)][i := x];
    }
  }

  // the first kept file
  lemma FirstKept(geo: Geometry, ms: Metas, dirs: Dirs)
    requires TreeOk(geo, ms, dirs)
    ensures 2 in ms && (ms[2].parent != 0 ==> OkIno(geo, ms[2].parent) && 2 < ms[2].parent &&
      Before(ms, 2, ms[2].parent))
    ensures ms[2].parent == 0 ==> forall i: uint64 {:trigger OkIno(geo, i)} | OkIno(geo, i) && i in ms :: !IsKept(ms[i])
  {
    var w := Elim(geo, ms, dirs);
    if ms[2].parent != 0 { assert w.kept[0] == ms[2].parent; }
  }
}
