// The orphan list: putting a file on it, and a step of the background, which works off its head.
include "tree.dfy"
module Orphans {
  import opened Machine
  import opened VolumeGeometry
  import opened InodeFormat
  import opened AttributeChanges
  import opened NameTree

  // only `flags`, but for the bit of kept files, `next`, and `shrink` change
  predicate SameLinks(a: Meta, b: Meta)
  { a.ty == b.ty && a.nlink == b.nlink && a.parent == b.parent && (IsKept(a) <==> IsKept(b)) }
  lemma Relist(geo: Geometry, ms: Metas, ms': Metas, dirs: Dirs, w: Witness, o: seq<uint64>)
    requires TreeBy(geo, ms, dirs, w) && Listed(geo, ms', o)
    requires forall i: uint64 {:trigger i in ms'} {:trigger i in ms} ::
      (i in ms <==> i in ms') && (i in ms ==> SameLinks(ms[i], ms'[i]) && (OkIno(geo, i) ==> Fits(i, ms'[i])))
    ensures TreeOk(geo, ms', dirs)
  {
    assert Links(geo, ms', dirs, w.names) by { LinksSame(geo, ms, ms', dirs, dirs, w.names); }
    assert Counts(ms', dirs, w.subs) && Rooted(ms', dirs, w.depth) by
      { SameChildren(ms, ms', dirs, dirs, w.subs, w.depth); }
    assert KeptBy(geo, ms', w.kept) by { KeptSame(geo, ms, ms', w.kept); }
    Intro(geo, ms', dirs, Witness(w.names, w.subs, w.depth, o, w.kept));
  }

  // the list with a file before all others, of which nothing else changes
  lemma Front(geo: Geometry, ms: Metas, ms': Metas, rest: seq<uint64>, i: uint64)
    requires Listed(geo, ms, rest) && OkIno(geo, i) && 2 < i && i in ms && !OnList(ms[i]) && i in ms' && OnList(ms'[i])
    requires ms'[i].next == ms[2].next && 2 in ms' && ms'[2].next == i && !OnList(ms'[2])
    requires forall x: uint64 {:trigger x in ms'} {:trigger x in ms} ::
      x != 2 && x != i ==> (x in ms <==> x in ms') && (x in ms ==> ms'[x] == ms[x])
    ensures Listed(geo, ms', [i] + rest)
  {
    var o := [i] + rest;
    assert i !in rest;
    forall k: int | 0 <= k < |o|
      ensures OkIno(geo, o[k]) && 2 < o[k] && o[k] in ms' && OnList(ms'[o[k]]) &&
        ms'[o[k]].next == (if k + 1 < |o| then o[k+1] else 0)
    {
      if 0 < k { assert o[k] == rest[k-1] && o[k] != i; }
      if k + 1 < |o| { assert o[k+1] == rest[k]; }
    }
    forall j: int, k: int | 0 <= j < k < |o| ensures o[j] != o[k]
    { assert o[k] == rest[k-1]; if 0 < j { assert o[j] == rest[j-1]; } }
    forall x: uint64 | OkIno(geo, x) && x in ms' && OnList(ms'[x]) ensures x in o
    { if x != i { assert x != 2; assert x in rest; } }
  }

  // a file is put at the head of the list, unless it is on it
  lemma PutOn(geo: Geometry, ms: Metas, dirs: Dirs, i: uint64)
    requires TreeOk(geo, ms, dirs) && OkIno(geo, i) && 2 < i && i in ms && ms[i].ty != 0 && 2 in ms
    ensures TreeOk(geo, Orphaned(ms, i), dirs)
  {
    if OnList(ms[i]) { return; }
    var w := Elim(geo, ms, dirs);
    var ms', o := Orphaned(ms, i), [i] + w.orphans;
    assert Fits(i, ms[i]) && Fits(2, ms[2]);
    Front(geo, ms, ms', w.orphans, i);
    Relist(geo, ms, ms', dirs, w, o);
  }

  // the head of the list: a file whose blocks are to be freed
  lemma HeadOk(geo: Geometry, ms: Metas, dirs: Dirs)
    requires TreeOk(geo, ms, dirs)
    ensures 2 in ms && (ms[2].next != 0 ==> var h := ms[2].next;
      OkIno(geo, h) && 2 < h && h in ms && OnList(ms[h]) && (ms[h].nlink == 0 && h in dirs ==> dirs[h] == map[]))
  {
    var w := Elim(geo, ms, dirs);
    if ms[2].next != 0 {
      var h := ms[2].next;
      assert h == w.orphans[0];
      if ms[h].nlink == 0 && h in dirs && dirs[h] != map[] {
        var n :| n in dirs[h];
        assert Has(dirs, h, n);
      }
    }
  }

  // the list without its head, of which nothing else changes
  lemma Rest(geo: Geometry, ms: Metas, mid: Metas, all: seq<uint64>)
    requires Listed(geo, ms, all) && all != [] && 2 in mid && !OnList(mid[2]) && mid[2].next == ms[all[0]].next
    requires all[0] in mid && !OnList(mid[all[0]])
    requires forall i: uint64 {:trigger i in mid} {:trigger i in ms} ::
      i != 2 && i != all[0] ==> (i in ms <==> i in mid) && (i in ms ==> mid[i] == ms[i])
    ensures Listed(geo, mid, all[1..])
  {
    var o := all[1..];
    forall k: int | 0 <= k < |o|
      ensures OkIno(geo, o[k]) && 2 < o[k] && o[k] in mid && OnList(mid[o[k]]) &&
        mid[o[k]].next == (if k + 1 < |o| then o[k+1] else 0)
    {
      assert o[k] == all[k+1] && o[k] != all[0];
      if k + 1 < |o| { assert o[k+1] == all[k+2]; }
    }
    forall j: int, k: int | 0 <= j < k < |o| ensures o[j] != o[k] { assert o[j] == all[j+1] && o[k] == all[k+1]; }
    forall x: uint64 | OkIno(geo, x) && x in mid && OnList(mid[x]) ensures x in o
    {
      assert x != all[0] && x != 2 && x in all;
      var k :| 0 <= k < |all| && all[k] == x;
      assert o[k-1] == x;
    }
    if o != [] { assert o[0] == all[1]; }
  }

  // One step of the background (Stepped in attributechanges.dfy): sh is left to be freed of
  // the head; when that is nothing it leaves the list, and is free if it has no links.
  lemma StepOk(geo: Geometry, ms: Metas, dirs: Dirs, dirs': Dirs, sh: Leftover)
    requires TreeOk(geo, ms, dirs) && 2 in ms && ms[2].next != 0 && ms[2].next in ms
    requires dirs' == (if sh.shrink == 0 && ms[ms[2].next].nlink == 0 then map x | x in dirs && x != ms[2].next ::
      dirs[x] else dirs)
    ensures TreeOk(geo, Stepped(ms, sh), dirs')
  {
    var w := Elim(geo, ms, dirs);
    HeadOk(geo, ms, dirs);
    var h := ms[2].next;
    if sh.shrink != 0 { SetAttr(geo, ms, dirs, h, WithLeftover(ms[h], sh)); return; }
    var m := ms[h];
    var mid := ms[h := WithLeftover(WithList(m, m.flags - 1, 0), sh)][2 := WithList(ms[2], ms[2].flags, m.next)];
    var o := w.orphans[1..];
    assert h == w.orphans[0];
    Rest(geo, ms, mid, w.orphans);
    if m.nlink != 0 { Relist(geo, ms, mid, dirs, w, o); } else { Free(geo, ms, mid, dirs, dirs', w, o, h); }
  }

  // the head, which has no links, is free
  lemma Free(geo: Geometry, ms: Metas, mid: Metas, dirs: Dirs, dirs': Dirs, w: Witness, o: seq<uint64>, h: uint64)
    requires TreeBy(geo, ms, dirs, w) && Listed(geo, mid, o) && OkIno(geo, h) && 2 < h && h in ms && ms[h].nlink == 0 &&
      h in mid && !OnList(mid[h])
    requires forall i: uint64 {:trigger i in mid} {:trigger i in ms} ::
      (i in ms <==> i in mid) && (i in ms && i != h ==> SameLinks(ms[i], mid[i]) && (OkIno(geo, i) ==> Fits(i, mid[i])))
    requires dirs' == map x | x in dirs && x != h :: dirs[x]
    ensures TreeOk(geo, mid[h := NewMeta(0, ms[h].gen)], dirs')
  {
    var ms' := mid[h := NewMeta(0, ms[h].gen)];
    assert Locals(geo, ms', dirs');
    assert Links(geo, ms', dirs', w.names) by {
      forall d: uint64, n: Name ensures Has(dirs, d, n) ==> d != h { }
      LinksSame(geo, ms, ms', dirs, dirs', w.names);
    }
    assert Counts(ms', dirs', w.subs) && Rooted(ms', dirs', w.depth) by
      { SameChildren(ms, ms', dirs, dirs', w.subs, w.depth); }
    assert Listed(geo, ms', o) by { assert h !in o; }
    assert KeptBy(geo, ms', w.kept) by { KeptSame(geo, ms, ms', w.kept); }
    Intro(geo, ms', dirs', Witness(w.names, w.subs, w.depth, o, w.kept));
  }
}
