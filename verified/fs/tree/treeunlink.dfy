// An entry goes, and what it named loses a link (Dropped in attributechanges.dfy): the
// common step of REMOVE, RMDIR, and of a RENAME that replaces something.
include "orphans.dfy"
include "treemove.dfy"
module TreeUnlink {
  import opened Machine
  import opened VolumeGeometry
  import opened InodeFormat
  import opened AttributeChanges
  import opened NameTree
  import opened Orphans
  import opened TreeMove

  // what is left of inode i when it waits on the orphan list
  function Waits(ms: Metas, i: uint64, s: uint64, ns: uint32, sh: Leftover): Meta
    requires i in ms && 2 in ms
  { var o := Orphaned(ms, i)[i]; WithList(WithLeftover(Unlinked(ms[i], s, ns), sh), o.flags, o.next) }
  lemma WaitsIs(geo: Geometry, ms: Metas, dirs: Dirs, i: uint64, s: uint64, ns: uint32, sh: Leftover)
    requires TreeOk(geo, ms, dirs) && i in ms && 2 in ms && 2 < i && OkIno(geo, i) && Alive(ms[i]) && LastLink(ms[i]) &&
      !IsKept(ms[i])
    ensures TreeOk(geo, Orphaned(ms, i), dirs)
    ensures var m := Waits(ms, i, s, ns, sh); Orphaned(ms, i)[i := m] == Dropped(ms, i, s, ns, sh, false) &&
      Gone(Orphaned(ms, i)[i], m) && Fits(i, m)
  {
    Basics(geo, ms, dirs);
    assert Fits(i, ms[i]);
    PutOn(geo, ms, dirs, i);
  }

  lemma DropFile(geo: Geometry, ms: Metas, dirs: Dirs, d: uint64, n: Name, e: map<Name, uint64>, i: uint64, s: uint64,
    ns: uint32, sh: Leftover, freed: bool)
    requires TreeOk(geo, ms, dirs) && Less(dirs, d, n, e) && dirs[d][n] == i && i in ms && 2 in ms && ms[i].ty != 2
    requires freed ==> LastLink(ms[i]) && !OnList(ms[i])
    ensures TreeOk(geo, Dropped(ms, i, s, ns, sh, freed), dirs[d := e])
  {
    EntryOk(geo, ms, dirs, d, n);
    Basics(geo, ms, dirs);
    var m := ms[i];
    assert Fits(i, m);
    if !LastLink(m) {
      DropName(geo, ms, dirs, d, n, e, i, Relinked(m, m.nlink - 1, s, ns));
    } else if freed {
      DropLast(geo, ms, dirs, d, n, e, i, NewMeta(0, m.gen));
    } else {
      WaitsIs(geo, ms, dirs, i, s, ns, sh);
      DropLast(geo, Orphaned(ms, i), dirs, d, n, e, i, Waits(ms, i, s, ns, sh));
    }
  }

  // An empty directory; md: the attributes of d with one link less.
  lemma DropSubdir(geo: Geometry, ms: Metas, dirs: Dirs, dirs': Dirs, d: uint64, n: Name, i: uint64, s: uint64,
    ns: uint32,
    sh: Leftover, freed: bool, md: Meta)
    requires TreeOk(geo, ms, dirs) && Has(dirs, d, n) && dirs[d][n] == i && i in dirs && dirs[i] == map[] && i in ms &&
      d in ms && 2 in ms
    requires freed ==> !OnList(ms[i])
    requires Linked(ms[d], md, -1) && Fits(d, md)
    requires d in dirs' && Less(dirs, d, n, dirs'[d]) && (i in dirs' <==> !freed) && (i in dirs' ==> dirs'[i] == map[])
    requires forall x: uint64 {:trigger x in dirs} {:trigger x in dirs'} | x != d && x != i &&
      (x in dirs || x in dirs') :: x in dirs && x in dirs' && dirs'[x] == dirs[x]
    ensures TreeOk(geo, Dropped(ms, i, s, ns, sh, freed)[d := md], dirs')
  {
    EntryOk(geo, ms, dirs, d, n);
    Basics(geo, ms, dirs);
    assert Fits(i, ms[i]) && d != 2;
    if freed {
      DropDir(geo, ms, dirs, dirs', d, n, i, NewMeta(0, ms[i].gen), md);
    } else {
      WaitsIs(geo, ms, dirs, i, s, ns, sh);
      DropDir(geo, Orphaned(ms, i), dirs, dirs', d, n, i, Waits(ms, i, s, ns, sh), md);
    }
  }
}
