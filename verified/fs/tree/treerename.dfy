// RENAME in the tree: what had the new name goes (treeunlink.dfy), and then the
// entry moves (treemove.dfy).
include "treeunlink.dfy"
module TreeRename {
  import opened Machine
  import opened VolumeGeometry
  import opened InodeFormat
  import opened AttributeChanges
  import opened NameTree
  import opened TreeMove
  import opened TreeUnlink
  import N = NfsState

  // dirs after (fd, fn), of file src, became (td, tn), in place of dst if found. freed: the directory dst is no more.
  predicate RenamedTo(dirs: Dirs, dirs': Dirs, fd: uint64, fn: Name, td: uint64, tn: Name, src: uint64, found: bool,
    dst: uint64, freed: bool)
  {
    Has(dirs, fd, fn) && dirs[fd][fn] == src && td in dirs && (found <==> tn in dirs[td]) &&
      (found ==> dirs[td][tn] == dst) && (!found ==> !freed) &&
    (forall d: uint64 {:trigger d in dirs'} {:trigger d in dirs} :: d in dirs' <==>
      d in dirs && !(freed && d == dst)) &&
    (forall d: uint64, n: Name {:trigger Has(dirs', d, n)} {:trigger Has(dirs, d, n)} | (d != fd || n != fn) &&
      (d != td || n != tn) ::
      (Has(dirs', d, n) <==> Has(dirs, d, n)) && (Has(dirs, d, n) ==> dirs'[d][n] == dirs[d][n])) &&
    !Has(dirs', fd, fn) && Has(dirs', td, tn) && dirs'[td][tn] == src
  }

  // the attributes after the replaced entry is gone, and after the links of the directories are set
  function Replaced(ms: Metas, td: uint64, found: bool, dst: uint64, sub: bool, s: uint64, ns: uint32, sh: Leftover,
    freed: bool): Metas
    requires td in ms && 2 in ms && (found ==> dst in ms && dst != td) && td != 2 && (found && sub ==> 0 < ms[td].nlink)
  {
    var a := if found then Dropped(ms, dst, s, ns, sh, freed) else ms;
    if found && sub then a[td := WithNlink(a[td], a[td].nlink - 1)] else a
  }
  function Reparented(ms: Metas, src: uint64, fd: uint64, td: uint64): Metas
    requires src in ms && fd in ms && td in ms && src != fd && src != td && fd != td &&
      0 < ms[fd].nlink < 0xffff_ffff && ms[td].nlink < 0xffff_ffff
  { ms[src := WithParent(ms[src], td)][fd := WithNlink(ms[fd], ms[fd].nlink - 1)][td :=
    WithNlink(ms[td], ms[td].nlink + 1)] }

  // a directory that has no sub-directory is above none
  lemma AncSame(ms: Metas, ms': Metas, dirs: Dirs, depth: Depths, dst: uint64, x: uint64, k: nat)
    requires Rooted(ms, dirs, depth) && x in dirs && InUse(ms, x) && x != dst
    requires forall j: uint64 {:trigger Child(ms, dirs, j)} | Child(ms, dirs, j) :: ms[j].parent != dst
    requires dst != 1 && forall j: uint64 {:trigger j in ms'} {:trigger j in ms} | j in ms && j != dst ::
      j in ms' && ms'[j].parent == ms[j].parent
    ensures Ancestor(ms', x, k) == Ancestor(ms, x, k)
    decreases k
  {
    if 0 < k {
      if x == 1 { AncRoot(ms, k); AncRoot(ms', k); }
      else { assert Child(ms, dirs, x); AncSame(ms, ms', dirs, depth, dst, ms[x].parent, k - 1); }
    }
  }

  // what had the name tn is gone, and so is the name
  lemma ReplaceOk(geo: Geometry, ms: Metas, dirs: Dirs, mid: Dirs, td: uint64, tn: Name, dst: uint64, src: uint64,
    s: uint64,
    ns: uint32, sh: Leftover, freed: bool)
    requires TreeOk(geo, ms, dirs) && Has(dirs, td, tn) && dirs[td][tn] == dst && dst in ms && 2 in ms && td in ms
    requires (dst in dirs ==> dirs[dst] == map[]) && (freed ==> LastLink(ms[dst]) && !OnList(ms[dst]))
    requires mid == map d | d in dirs && !(freed && d == dst) :: Without(dirs, d, td, tn)
    ensures td != 2 && dst != td && (dst in dirs ==> 0 < ms[td].nlink)
    ensures TreeOk(geo, Replaced(ms, td, true, dst, dst in dirs, s, ns, sh, freed), mid)
    ensures var m := Replaced(ms, td, true, dst, dst in dirs, s, ns, sh, freed);
      forall x: uint64 {:trigger x in m} | x in ms ::
      x in m && (x != dst && x != td && x != 2 ==> m[x] == ms[x]) && (x != dst ==> m[x].parent == ms[x].parent)
    ensures var m := Replaced(ms, td, true, dst, dst in dirs, s, ns, sh, freed);
      td in dirs && InUse(m, td) && (td in mid && tn !in mid[td])
    ensures td in dirs && InUse(ms, td) && !Under(ms, td, src) ==>
      !Under(Replaced(ms, td, true, dst, dst in dirs, s, ns, sh, freed), td, src)
  {
    EntryOk(geo, ms, dirs, td, tn);
    Basics(geo, ms, dirs);
    assert OkIno(geo, td) && Fits(td, ms[td]) && Fits(dst, ms[dst]);
    if dst in dirs {
      DropSubdir(geo, ms, dirs, mid, td, tn, dst, s, ns, sh, freed, WithNlink(ms[td], ms[td].nlink - 1));
    } else {
      assert mid == dirs[td := Without(dirs, td, td, tn)];
      DropFile(geo, ms, dirs, td, tn, mid[td], dst, s, ns, sh, freed);
    }
    if !Under(ms, td, src) { StillAbove(geo, ms, Replaced(ms, td, true, dst, dst in dirs, s, ns, sh, freed), dirs, td,
      dst, src); }
  }
  function Without(dirs: Dirs, d: uint64, td: uint64, tn: Name): map<Name, uint64>
    requires d in dirs
  { if d == td then map n | n in dirs[d] && n != tn :: dirs[d][n] else dirs[d] }
  lemma StillAbove(geo: Geometry, ms: Metas, ms': Metas, dirs: Dirs, td: uint64, dst: uint64, src: uint64)
    requires TreeOk(geo, ms, dirs) && td in dirs && InUse(ms, td) && td != dst && dst != 1 &&
      (dst in dirs ==> dirs[dst] == map[]) && !Under(ms, td, src)
    requires forall j: uint64 {:trigger j in ms'} {:trigger j in ms} | j in ms && j != dst ::
      j in ms' && ms'[j].parent == ms[j].parent
    ensures !Under(ms', td, src)
  {
    var w := Elim(geo, ms, dirs);
    forall j: uint64 | Child(ms, dirs, j) ensures ms[j].parent != dst
    { if dst in dirs { NoChild(geo, ms, dirs, w, dst, j); } }
    if Under(ms', td, src) {
      var k: nat :| Ancestor(ms', td, k) == src;
      AncSame(ms, ms', dirs, w.depth, dst, td, k);
      assert Ancestor(ms, td, k) == src;
    }
  }

  // the whole: ms are the attributes before, but for the sizes of the directories
  lemma RenameOk(geo: Geometry, ms: Metas, dirs: Dirs, dirs': Dirs, fd: uint64, fn: Name, td: uint64, tn: Name,
    src: uint64,
    found: bool, dst: uint64, s: uint64, ns: uint32, sh: Leftover, freed: bool)
    requires TreeOk(geo, ms, dirs) && RenamedTo(dirs, dirs', fd, fn, td, tn, src, found, dst, freed) && InUse(ms, td) &&
      N.Proper(tn) && src in ms && 2 in ms && fd in ms
    requires found ==> dst != src && dst in ms && (dst in dirs <==> src in dirs) && (dst in dirs ==> dirs[dst] == map[])
    requires freed ==> found && dst in ms && LastLink(ms[dst]) && !OnList(ms[dst])
    requires src in dirs ==> !Under(ms, td, src)
    requires src in dirs && fd != td ==> ms[td].nlink as int - (if found then 1 else 0) < 0x7fff_ffff
    ensures td != 2 && (found ==> dst != td && dst != fd && (dst in dirs ==> 2 < ms[td].nlink))
    ensures var m := Replaced(ms, td, found, dst, found && dst in dirs, s, ns, sh, freed);
      if src in dirs && fd != td then src in m && fd in m && td in m && src != fd && src != td &&
        2 < m[fd].nlink < 0xffff_ffff && m[td].nlink < 0xffff_ffff && TreeOk(geo, Reparented(m, src, fd, td), dirs')
      else TreeOk(geo, m, dirs')
  {
    EntryOk(geo, ms, dirs, fd, fn);
    Basics(geo, ms, dirs);
    assert OkIno(geo, td) && OkIno(geo, fd) && Fits(td, ms[td]);
    if found { assert Has(dirs, td, tn); EntryOk(geo, ms, dirs, td, tn); if dst == fd { assert fn in dirs[dst]; } }
    var mid: Dirs := map d | d in dirs && !(freed && d == dst) :: Without(dirs, d, td, tn);
    if found { ReplaceOk(geo, ms, dirs, mid, td, tn, dst, src, s, ns, sh, freed); } else
      { NothingThere(dirs, mid, td, tn, dst, freed); }
    var m := Replaced(ms, td, found, dst, found && dst in dirs, s, ns, sh, freed);
    assert MovedTo(mid, dirs', fd, fn, td, tn, src) by {
      forall d: uint64, n: Name ensures Has(mid, d, n) <==> Has(dirs, d, n) && (d != td || n != tn)
      { if freed && d == dst { assert dst !in dirs || dirs[dst] == map[]; } }
    }
    if src in dirs && fd != td { MoveAcross(geo, m, mid, dirs', fd, fn, td, tn, src); } else
      { Rename(geo, m, mid, dirs', fd, fn, td, tn, src); }
  }
  lemma NothingThere(dirs: Dirs, mid: Dirs, td: uint64, tn: Name, dst: uint64, freed: bool)
    requires td in dirs && tn !in dirs[td] && !freed && mid == map d | d in dirs && !(freed && d == dst) ::
      Without(dirs, d, td, tn)
    ensures mid == dirs
  { assert mid[td] == dirs[td]; }
  lemma MoveAcross(geo: Geometry, m: Metas, mid: Dirs, dirs': Dirs, fd: uint64, fn: Name, td: uint64, tn: Name,
    src: uint64)
    requires TreeOk(geo, m, mid) && MovedTo(mid, dirs', fd, fn, td, tn, src) && InUse(m, td) && N.Proper(tn) &&
      fd != td && src in mid && !Under(m, td, src) && m[td].nlink < 0x7fff_ffff && fd in m
    ensures src in m && src != fd && src != td && 2 < m[fd].nlink < 0xffff_ffff &&
      TreeOk(geo, Reparented(m, src, fd, td), dirs')
  {
    EntryOk(geo, m, mid, fd, fn);
    Basics(geo, m, mid);
    UnderSelf(m, src);
    assert Fits(src, m[src]) && Fits(td, m[td]) && Fits(fd, m[fd]);
    MoveDir(geo, m, mid, dirs', fd, fn, td, tn, src, WithParent(m[src], td), WithNlink(m[fd], m[fd].nlink - 1),
      WithNlink(m[td], m[td].nlink + 1));
  }
}
