include "base.dfy"
include "../refinement/renaming.dfy"
// RENAME, with all its cases: onto nothing, onto a file, onto an empty
// directory, onto another name of the same file; a directory never into itself
// or below. RenameOk and RenameErr of nfs3.s.dfy say what it does.
module RenameOps {
  import opened Machine
  import opened ByteSlice
  import opened TxnS
  import opened VolumeGeometry
  import opened InodeFormat
  import opened AttributeChanges
  import opened DirSizes
  import opened ByteFiles
  import opened Directories
  import opened Permissions
  import opened ProcedureBase
  import opened BlockStore
  import Room = NfsRoom
  import A = Abstraction
  import T = NameTree
  import TM = TreeMove
  import TR = TreeRename
  import RA = Renaming
  import P = NfsPerm
  import N = NfsState
  import C = NfsCommon
  import R = NfsRename

  // Directories deeper than this cannot be renamed into.
  const MAXDEPTH: uint64 := 1_000_000

  // ---- what the procedure sees of inodes is what the specification speaks of ----

  predicate Used(d: DirFs, i: uint64) reads d, d.fs { A.Shown(d.fs.geometry, d.fs.metas, i) }
  lemma SeeNode(d: DirFs, i: uint64)
    requires Sound(d) && Used(d, i)
    ensures i in AbsOf(d).nodes && var n, m := AbsOf(d).nodes[i], d.fs.metas[i];
      n.attr == MetaAttr(m) && N.Type(n) == m.ty && (n.body.Dir? <==> i in d.dirs) &&
        (n.body.Dir? ==> n.body.names == d.dirs[i] && n.body.parent == m.parent) && A.ReplyAttr(i, m) == N.FattrOf(i, n)
  { Node(d, i, d.fs.metas[i].gen); }
  lemma SeeEntry(d: DirFs, dir: uint64, name: seq<byte>)
    requires Sound(d) && dir in d.dirs && name in d.dirs[dir]
    ensures var i := d.dirs[dir][name]; Used(d, i) && 2 < i && i != dir && Used(d, dir) && i in AbsOf(d).nodes
  {
    T.EntryOk(d.fs.geometry, d.fs.metas, d.dirs, dir, name);
    assert OkIno(d.fs.geometry, dir);
    T.Basics(d.fs.geometry, d.fs.metas, d.dirs);
    assert T.Fits(dir, d.fs.metas[dir]);
    SeeNode(d, d.dirs[dir][name]);
  }
  lemma SameUp(d: DirFs, x: uint64, k: nat)
    requires Sound(d) && x in d.dirs && Used(d, x)
    ensures R.Up(AbsOf(d), x, k) == TM.Ancestor(d.fs.metas, x, k)
    decreases k
  {
    SeeNode(d, x);
    if 0 < k {
      T.ParentOk(d.fs.geometry, d.fs.metas, d.dirs, x);
      T.Basics(d.fs.geometry, d.fs.metas, d.dirs);
      var p := d.fs.metas[x].parent;
      assert T.Fits(p, d.fs.metas[p]);
      SameUp(d, p, k - 1);
    }
  }
  lemma SameBelow(d: DirFs, x: uint64, top: uint64)
    requires Sound(d) && x in d.dirs && Used(d, x)
    ensures R.Below(AbsOf(d), x, top) <==> TM.Under(d.fs.metas, x, top)
  {
    if R.Below(AbsOf(d), x, top) { var k: nat :| R.Up(AbsOf(d), x, k) == top; SameUp(d, x, k); }
    if TM.Under(d.fs.metas, x, top) { var k: nat :| TM.Ancestor(d.fs.metas, x, k) == top; SameUp(d, x, k); }
  }

  // Is directory x the directory top or below it? st != 0: x lies too deep.
  method Below(txn: Txn, d: DirFs, x: uint64, top: uint64) returns (st: uint32, below: bool)
    requires Sound(d) && txn.volume == d.fs.volume && x in d.dirs && Used(d, x)
    ensures st == 0 || (st == SERVERFAULT && R.TooDeep(AbsOf(d), x))
    ensures st == 0 ==> (below <==> TM.Under(d.fs.metas, x, top))
  {
    st, below := 0, false;
    var at := x;
    var n: uint64 := 0;
    ghost var g, ms, dirs := d.fs.geometry, d.fs.metas, d.dirs;
    while n < MAXDEPTH
      invariant OkIno(d.fs.geometry, at) && n <= MAXDEPTH && at in dirs && T.InUse(ms, at)
      invariant TM.Under(ms, x, top) <==> TM.Under(ms, at, top)
      invariant at == TM.Ancestor(ms, x, n as int) && forall k: nat {:trigger TM.Ancestor(ms, x, k)} | k < n as int ::
        TM.Ancestor(ms, x, k) != 1
      decreases MAXDEPTH - n
    {
      if at == top { below := true; TM.UnderSelf(ms, top); return; }
      if at == ROOT { TM.WalkEnd(g, ms, dirs, top); return; }
      TM.WalkUp(g, ms, dirs, at, top);
      TM.AncNext(ms, x, n as int);
      var ip := d.fs.GetInode(txn, at, false);
      at := GetParent(ip);
      if !OkIno(d.fs.geometry, at) { st := SERVERFAULT; return; }
      n := n + 1;
    }
    st := SERVERFAULT;
    forall k: nat | k < 1_000_000 ensures R.Up(AbsOf(d), x, k) != 1 { SameUp(d, x, k); }
  }

  // May the entry (tino, tname), if there is one, be replaced by a file (dir: a directory)?
  method Target(txn: Txn, d: DirFs, c: Cred, tino: uint64, tdir: Bytes, tname: Bytes, dir: bool, found: bool,
    dst: uint64)
    returns (st: uint32)
    requires Sound(d) && txn.volume == d.fs.volume && tino in d.dirs && Used(d, tino) && OkName(tname.data) &&
      |tdir.data| == 256 && MetaOf(tdir.data) == d.fs.metas[tino]
    requires found <==> tname.data in d.dirs[tino]
    requires found ==> d.dirs[tino][tname.data] == dst
    ensures tino in AbsOf(d).nodes && AbsOf(d).nodes[tino].body.Dir?
    ensures st == 0 ==> R.MayReplace(AbsOf(d), WhoOf(c), tino, tname.data, dir)
    ensures st != 0 ==> found && dst in AbsOf(d).nodes && R.ReplaceErr(AbsOf(d), WhoOf(c), tino, dst, dir, st)
  {
    ghost var f := AbsOf(d);
    SeeNode(d, tino);
    st := 0;
    if !found { return; }
    SeeEntry(d, tino, tname.data);
    SeeNode(d, dst);
    var ip: Bytes;
    st, ip := OpenEntry(txn, d, dst, true);
    var ty := GetTy(ip);
    st := Refusal(c, tdir, ip);
    assert st != 0 <==> C.Refuses(WhoOf(c), f.nodes[tino], f.nodes[dst]);
    if st != 0 { return; }
    if dir && ty != DIR { st := NOTDIR; return; }
    if !dir && ty == DIR { st := ISDIR; return; }
    if dir {
      var e := d.IsEmpty(txn, dst);
      if !e { st := NOTEMPTY; }
    }
  }

  // May the entry (fino, fname), of inode src, leave for directory tino?
  method Source(txn: Txn, d: DirFs, c: Cred, fino: uint64, fdir: Bytes, fname: Bytes, tino: uint64, src: uint64)
    returns (st: uint32, dir: bool)
    requires Sound(d) && txn.volume == d.fs.volume && fino in d.dirs && tino in d.dirs && Used(d, fino) &&
      Used(d, tino) &&
      OkName(fname.data) && |fdir.data| == 256 && MetaOf(fdir.data) == d.fs.metas[fino]
    requires fname.data in d.dirs[fino] && d.dirs[fino][fname.data] == src
    ensures fino in AbsOf(d).nodes && tino in AbsOf(d).nodes && src in AbsOf(d).nodes &&
      AbsOf(d).nodes[fino].body.Dir? && AbsOf(d).nodes[tino].body.Dir?
    ensures st == 0 ==> R.MayLeave(AbsOf(d), WhoOf(c), fino, fname.data, tino) && (dir <==> src in d.dirs) &&
      (dir ==> !TM.Under(d.fs.metas, tino, src))
    ensures st != 0 ==> LeaveErr(AbsOf(d), WhoOf(c), fino, tino, src, st)
  {
    ghost var f := AbsOf(d);
    dir := false;
    SeeEntry(d, fino, fname.data);
    SeeNode(d, fino);
    SeeNode(d, tino);
    SeeNode(d, src);
    var ip: Bytes;
    st, ip := OpenEntry(txn, d, src, true);
    var ty := GetTy(ip);
    st := Refusal(c, fdir, ip);
    assert st != 0 <==> C.Refuses(WhoOf(c), f.nodes[fino], f.nodes[src]);
    if st != 0 { return; }
    if ty == DIR {
      dir := true;
      var below: bool;
      st, below := Below(txn, d, tino, src);
      if st != 0 { return; }
      SameBelow(d, tino, src);
      if below { st := INVAL; return; }
      var w := May(c, ip, MAYWRITE);
      assert w <==> C.Can(WhoOf(c), f.nodes[src], P.WRITE);
      if fino != tino && !w { st := ACCES; return; }
    }
  }
  predicate LeaveErr(f: N.FS, w: P.Caller, fd: uint64, td: uint64, src: uint64, st: uint32)
    requires fd in f.nodes && td in f.nodes && src in f.nodes
  {
    var dir := f.nodes[src].body.Dir?;
    (C.Refuses(w, f.nodes[fd], f.nodes[src]) && st == C.Refusal(f.nodes[fd], f.nodes[src])) ||
      (dir && fd != td && !C.Can(w, f.nodes[src], P.WRITE) && st == C.Denial(f.nodes[src])) ||
    (st == INVAL && dir && R.Below(f, td, src)) || (st == SERVERFAULT && dir && R.TooDeep(f, td))
  }

  // What is to move, and what it replaces. done: both names are of one file. Checks all but the link count of the new
  // parent.
  method Check(txn: Txn, d: DirFs, c: Cred, fino: uint64, fdir: Bytes, fname: Bytes, tino: uint64, tdir: Bytes,
    tname: Bytes)
    returns (st: uint32, done: bool, src: uint64, dir: bool, found: bool, dst: uint64)
    requires Sound(d) && txn.volume == d.fs.volume && fino in d.dirs && tino in d.dirs && Used(d, fino) &&
      Used(d, tino) &&
      OkName(fname.data) && OkName(tname.data)
    requires |fdir.data| == 256 && |tdir.data| == 256 && MetaOf(fdir.data) == d.fs.metas[fino] &&
      MetaOf(tdir.data) == d.fs.metas[tino]
    ensures N.IsDir(AbsOf(d), fino) && N.IsDir(AbsOf(d), tino)
    ensures st == 0 ==> CanBoth(AbsOf(d), WhoOf(c), fino, tino) && fname.data in d.dirs[fino] &&
      d.dirs[fino][fname.data] == src && Used(d, src)
    ensures st == 0 ==> (found <==> tname.data in d.dirs[tino]) &&
      (found ==> d.dirs[tino][tname.data] == dst && Used(d, dst)) && (done <==> found && dst == src)
    ensures st == 0 && !done ==> R.MayLeave(AbsOf(d), WhoOf(c), fino, fname.data, tino) && (dir <==> src in d.dirs) &&
      (dir ==> !TM.Under(d.fs.metas, tino, src)) &&
      R.MayReplace(AbsOf(d), WhoOf(c), tino, tname.data, dir)
    ensures st != 0 ==> CheckErr(AbsOf(d), WhoOf(c), fino, fname.data, tino, tname.data, st) && st != NOSPC
  {
    ghost var f, w := AbsOf(d), WhoOf(c);
    SeeNode(d, fino);
    SeeNode(d, tino);
    done, src, dir, found, dst := false, 0, false, false, 0;
    st := Deny(c, fdir, MAYWRITE + MAYEXEC);
    assert st == 0 <==> C.Can(w, f.nodes[fino], P.EXEC + P.WRITE);
    if st != 0 { return; }
    st := Deny(c, tdir, MAYWRITE + MAYEXEC);
    assert st == 0 <==> C.Can(w, f.nodes[tino], P.EXEC + P.WRITE);
    if st != 0 { return; }
    var there: bool;
    there, src := d.Lookup(txn, fino, fname, true);
    if !there { st := NOENT; return; }
    SeeEntry(d, fino, fname.data);
    found, dst := d.Lookup(txn, tino, tname, true);
    if found { SeeEntry(d, tino, tname.data); }
    if found && dst == src { st, done := 0, true; return; }
    st, dir := Source(txn, d, c, fino, fdir, fname, tino, src);
    SeeNode(d, src);
    if st != 0 { return; }
    st := Target(txn, d, c, tino, tdir, tname, dir, found, dst);
  }
  predicate CanBoth(f: N.FS, w: P.Caller, fd: uint64, td: uint64)
    requires fd in f.nodes && td in f.nodes
  { C.Can(w, f.nodes[fd], P.EXEC + P.WRITE) && C.Can(w, f.nodes[td], P.EXEC + P.WRITE) }
  predicate CannotBoth(f: N.FS, w: P.Caller, fd: uint64, td: uint64, st: uint32)
    requires fd in f.nodes && td in f.nodes
  { R.CannotErr(w, f.nodes[fd], st) || R.CannotErr(w, f.nodes[td], st) }
  predicate CheckErr(f: N.FS, w: P.Caller, fd: uint64, fn: seq<byte>, td: uint64, tn: seq<byte>, st: uint32)
    requires N.IsDir(f, fd) && N.IsDir(f, td)
  {
    CannotBoth(f, w, fd, td, st) || (st == NOENT && fn !in f.nodes[fd].body.names) ||
    (fn in f.nodes[fd].body.names && !(tn in f.nodes[td].body.names &&
      f.nodes[fd].body.names[fn] == f.nodes[td].body.names[tn]) && R.MoveErr(f, w, fd, fn, td, tn, st))
  }

  // Enter src as (tino, tname), take (fino, fname) out, drop what was replaced. ms: the
  // attributes before that was dropped.
  method Move(txn: Txn, d: DirFs, fino: uint64, fname: Bytes, tino: uint64, tname: Bytes, src: uint64, found: bool,
    dst: uint64, s: uint64, ns: uint32)
    returns (st: uint32, freed: bool, later: bool, ghost ms: Metas)
    modifies d.Repr(), txn.blocks
    requires d.Valid() && txn.volume == d.fs.volume && fino in d.dirs && tino in d.dirs && OkName(fname.data) &&
      OkName(tname.data)
    requires fname.data in d.dirs[fino] && d.dirs[fino][fname.data] == src && OkIno(d.fs.geometry, src)
    requires found <==> tname.data in d.dirs[tino]
    requires found ==> d.dirs[tino][tname.data] == dst && dst != src && OkIno(d.fs.geometry, dst) && 2 < dst &&
      (dst in d.dirs ==> d.dirs[dst] == map[])
    requires found ==> dst != tino && dst != fino && dst in d.fs.metas && d.fs.metas[dst].nlink != 0
    ensures st == 0 || (st == NOSPC && !found)
    ensures st != 0 ==> Short(txn, old(GotBlocks(txn)), old(GotInodes(txn)), Room.EntryNeeds()) ||
      old(NoPlace(d, tino, tname.data))
    ensures st == 0 ==> d.Valid() && TR.RenamedTo(old(d.dirs), d.dirs, fino, fname.data, tino, tname.data, src, found,
      dst, freed)
    ensures st == 0 ==> RA.Sized(old(d.fs.metas), ms, fino, tino) && 2 in ms &&
      (found ==> dst in ms && dst in d.fs.metas)
    ensures st == 0 ==> d.fs.metas == if found then Dropped(ms, dst, s, ns, LeftoverOf(d.fs.metas[dst]), freed) else ms
    ensures st == 0 && freed ==> LastLink(ms[dst]) && !T.OnList(ms[dst])
    ensures st == 0 ==> Tells(old(d.fs.metas), d.fs.metas, later)
    ensures st == 0 ==> RA.Kept(RA.Volume(old(d.fs.metas), old(d.fs.files), old(d.fs.held), old(d.dirs), old(d.places)),
      RA.Volume(d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places), fino)
    ensures st == 0 ==> RA.Kept(RA.Volume(old(d.fs.metas), old(d.fs.files), old(d.fs.held), old(d.dirs), old(d.places)),
      RA.Volume(d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places), tino)
    ensures st == 0 ==> forall i: uint64 {:trigger A.PlacesAt(d.places, i)} | i != fino && i != tino ::
      A.PlacesAt(d.places, i) == A.PlacesAt(old(d.places), i)
    ensures st == 0 ==> forall i: uint64 {:trigger A.FileAt(d.fs.files, i)} {:trigger A.HeldAt(d.fs.held, i)}
      | i != fino && i != tino && (found && i == dst ==> !LastLink(ms[i])) ::
      A.FileAt(d.fs.files, i) == A.FileAt(old(d.fs.files), i) && A.HeldAt(d.fs.held, i) == A.HeldAt(old(d.fs.held), i)
  {
    freed, later, ms := false, false, d.fs.metas;
    ghost var m0, dirs0, places0 := d.fs.metas, d.dirs, d.places;
    var ok: bool;
    if found {
      assert dst != tino && dst != fino;
      ok := d.Replace(txn, tino, tname, src);
    } else {
      ok := d.Insert(txn, tino, tname, src);
    }
    if !ok { st := NOSPC; return; }
    ghost var m1, dirs1, places1 := d.fs.metas, d.dirs, d.places;
    assert fname.data in d.dirs[fino];
    ok := d.Remove(txn, fino, fname);
    if !ok { st := NOSPC; return; }
    ms := d.fs.metas;
    assert OkIno(d.fs.geometry, 2);
    ghost var dirs2, places2 := d.dirs, d.places;
    assert RA.Sized(m0, ms, fino, tino) by { assert ms == m0[tino := ms[tino]][fino := ms[fino]]; }
    assert Moved(dirs0, dirs2, fino, fname.data, tino, tname.data, src);
    assert Kept2(dirs0, dirs2, places0, places2, fino) && Kept2(dirs0, dirs2, places0, places2, tino);
    if fino == tino {
      MovedWithin(dirs0[fino], dirs1[fino], dirs2[fino], places1[fino], places2[fino], m0[fino], m1[fino], ms[fino],
        fname.data, tname.data, src);
    } else {
      assert dirs1[fino] == dirs0[fino] && m1[fino] == m0[fino];
      assert dirs2[tino] == dirs1[tino] && places2[tino] == places1[tino] && ms[tino] == m1[tino];
    }
    assert SizeFollows(dirs0[fino], dirs2[fino], places2[fino], m0[fino], ms[fino]) &&
      SizeFollows(dirs0[tino], dirs2[tino], places2[tino], m0[tino], ms[tino]);
    st := 0;
    if found {
      assert dst in d.dirs ==> d.dirs[dst] == map[];
      st, freed, later := DropLink(txn, d, dst, s, ns);
      if st != 0 { return; }
    }
    MovedIs(dirs0, dirs2, d.dirs, fino, fname.data, tino, tname.data, src, found, dst, freed);
  }
  // the entries after the move, but for what is freed then
  predicate Moved(a: Dirs, b: Dirs, fd: uint64, fn: seq<byte>, td: uint64, tn: seq<byte>, src: uint64)
  {
    fd in a && td in a && fd in b && td in b && b ==
      Entered(a, td, tn, src)[fd := DirDel(Entered(a, td, tn, src)[fd], fn)]
  }
  function Entered(a: Dirs, td: uint64, tn: seq<byte>, src: uint64): Dirs
    requires td in a
  { a[td := a[td][tn := src]] }
  predicate Kept2(a: Dirs, b: Dirs, at: map<uint64, map<seq<byte>, int>>, bt: map<uint64, map<seq<byte>, int>>,
    d: uint64)
  {
    d in a && d in b && forall n: seq<byte> {:trigger n in b[d]} | n in b[d] && n in a[d] && n in A.PlacesAt(at, d) ::
      n in A.PlacesAt(bt, d) && A.PlacesAt(bt, d)[n] == A.PlacesAt(at, d)[n]
  }
  lemma MovedIs(a: Dirs, b: Dirs, e: Dirs, fd: uint64, fn: seq<byte>, td: uint64, tn: seq<byte>, src: uint64,
    found: bool, dst: uint64, freed: bool)
    requires Moved(a, b, fd, fn, td, tn, src) && fn in a[fd] && a[fd][fn] == src && (found <==> tn in a[td]) &&
      (!found ==> !freed)
    requires found ==> a[td][tn] == dst && dst != src && dst != td && dst != fd && (dst in a ==> a[dst] == map[])
    requires e == if freed then map x | x in b && x != dst :: b[x] else b
    ensures TR.RenamedTo(a, e, fd, fn, td, tn, src, found, dst, freed)
  {
    assert fd == td ==> fn != tn;
    forall d: uint64, n: seq<byte> | (d != fd || n != fn) && (d != td || n != tn)
      ensures (T.Has(e, d, n) <==> T.Has(a, d, n)) && (T.Has(a, d, n) ==> e[d][n] == a[d][n])
    { if freed && d == dst { } else if d == fd { } else if d == td { } }
    assert T.Has(a, fd, fn) && T.Has(e, td, tn) && !T.Has(e, fd, fn);
  }

  // The link counts, "..", and time stamps that go with a rename. a: what was done.
  method Finish(txn: Txn, d: DirFs, fino: uint64, tino: uint64, src: uint64, dir: bool, sub: bool, s: uint64,
    ns: uint32)
    returns (st: uint32, fafter: Bytes, tafter: Bytes)
    modifies d.Repr()
    requires d.Valid() && txn.volume == d.fs.volume && OkIno(d.fs.geometry, src) && OkIno(d.fs.geometry, fino) &&
      OkIno(d.fs.geometry, tino) && src != fino && src != tino
    ensures st == 0 ==> d.Valid() && d.dirs == old(d.dirs) && d.places == old(d.places) &&
      d.fs.files == old(d.fs.files) && d.fs.held == old(d.fs.held)
    ensures fino in old(d.fs.metas) && tino in old(d.fs.metas) && src in old(d.fs.metas)
    ensures var ms := old(d.fs.metas); var acr := dir && fino != tino;
      st == (if (sub && ms[tino].nlink <= 2) || (acr && ms[fino].nlink <= 2) then SERVERFAULT else if acr &&
        ms[tino].nlink as int - (if sub then 1 else 0) >= MAXLINK as int then MLINK else 0)
    ensures st == 0 ==> d.fs.metas == Finished(old(d.fs.metas), fino, tino, src, dir, sub, s, ns)
    ensures st == 0 ==> |fafter.data| == 256 && |tafter.data| == 256 && fino in d.fs.metas && tino in d.fs.metas &&
      MetaOf(fafter.data) == d.fs.metas[fino] && MetaOf(tafter.data) == d.fs.metas[tino]
  {
    fafter := NewBytes(0);
    tafter := fafter;
    st := Recount(txn, d, fino, tino, src, dir, sub);
    if st != 0 { return; }
    fafter, tafter := Stamps(txn, d, fino, tino, src, s, ns);
  }
  // the link counts, and ".."
  method Recount(txn: Txn, d: DirFs, fino: uint64, tino: uint64, src: uint64, dir: bool, sub: bool) returns (st: uint32)
    modifies d.Repr()
    requires d.Valid() && txn.volume == d.fs.volume && OkIno(d.fs.geometry, src) && OkIno(d.fs.geometry, fino) &&
      OkIno(d.fs.geometry, tino) && src != fino && src != tino
    ensures st == 0 ==> d.Valid() && d.dirs == old(d.dirs) && d.places == old(d.places) &&
      d.fs.files == old(d.fs.files) && d.fs.held == old(d.fs.held)
    ensures fino in old(d.fs.metas) && tino in old(d.fs.metas) && src in old(d.fs.metas)
    ensures var ms := old(d.fs.metas); var acr := dir && fino != tino;
      st == (if (sub && ms[tino].nlink <= 2) || (acr && ms[fino].nlink <= 2) then SERVERFAULT else if acr &&
        ms[tino].nlink as int - (if sub then 1 else 0) >= MAXLINK as int then MLINK else 0)
    ensures st == 0 ==> d.fs.metas == Recounted(old(d.fs.metas), fino, tino, src, dir, sub)
  {
    st := 0;
    if sub {
      st := AddLink(txn, d, tino, false);
      if st != 0 { return; }
    }
    if dir && fino != tino {
      var ip := d.fs.GetInode(txn, src, true);
      SetParent(ip, tino);
      d.PutInode(txn, src, ip);
      st := AddLink(txn, d, fino, false);
      if st != 0 { return; }
      st := AddLink(txn, d, tino, true);
      if st != 0 { return; }
    }
  }
  // the time stamps
  method Stamps(txn: Txn, d: DirFs, fino: uint64, tino: uint64, src: uint64, s: uint64, ns: uint32)
    returns (fafter: Bytes, tafter: Bytes)
    modifies d.Repr()
    requires d.Valid() && txn.volume == d.fs.volume && OkIno(d.fs.geometry, src) && OkIno(d.fs.geometry, fino) &&
      OkIno(d.fs.geometry, tino) && src != fino && src != tino
    ensures d.Valid() && d.dirs == old(d.dirs) && d.places == old(d.places) && d.fs.files == old(d.fs.files) &&
      d.fs.held == old(d.fs.held)
    ensures fino in old(d.fs.metas) && tino in old(d.fs.metas) && src in old(d.fs.metas) &&
      d.fs.metas == Stamped(old(d.fs.metas), fino, tino, src, s, ns)
    ensures |fafter.data| == 256 && |tafter.data| == 256 && fino in d.fs.metas && tino in d.fs.metas &&
      MetaOf(fafter.data) == d.fs.metas[fino] && MetaOf(tafter.data) == d.fs.metas[tino]
  {
    var ip := d.fs.GetInode(txn, src, true);
    var ts, tns := Stamp(ip, s, ns);
    SetCtime(ip, ts, tns);
    d.PutInode(txn, src, ip);
    fafter := Touch(txn, d, fino, s, ns);
    tafter := fafter;
    if fino != tino { tafter := Touch(txn, d, tino, s, ns); }
  }
  function Finished(ms: Metas, fd: uint64, td: uint64, src: uint64, dir: bool, sub: bool, s: uint64, ns: uint32): Metas
    requires fd in ms && td in ms && src in ms && src != fd && src != td && (sub ==> 2 < ms[td].nlink) &&
      (dir && fd != td ==> 2 < ms[fd].nlink && ms[td].nlink as int - (if sub then 1 else 0) < 0x7fff_ffff)
  { Stamped(Recounted(ms, fd, td, src, dir, sub), fd, td, src, s, ns) }
  lemma FinishedSizes(ms: Metas, fd: uint64, td: uint64, src: uint64, dir: bool, sub: bool, s: uint64, ns: uint32)
    requires fd in ms && td in ms && src in ms && src != fd && src != td && (sub ==> 2 < ms[td].nlink) &&
      (dir && fd != td ==> 2 < ms[fd].nlink && ms[td].nlink as int - (if sub then 1 else 0) < 0x7fff_ffff)
    ensures var f := Finished(ms, fd, td, src, dir, sub, s, ns); fd in f && td in f &&
      f[fd].size == ms[fd].size && f[fd].used == ms[fd].used && f[td].size == ms[td].size && f[td].used == ms[td].used
  { }
  function Recounted(ms: Metas, fd: uint64, td: uint64, src: uint64, dir: bool, sub: bool): Metas
    requires fd in ms && td in ms && src in ms && src != fd && src != td && (sub ==> 2 < ms[td].nlink) &&
      (dir && fd != td ==> 2 < ms[fd].nlink && ms[td].nlink as int - (if sub then 1 else 0) < 0x7fff_ffff)
  {
    var a := if sub then ms[td := WithNlink(ms[td], ms[td].nlink - 1)] else ms;
    if dir && fd != td then a[src := WithParent(a[src], td)][fd := WithNlink(a[fd], a[fd].nlink - 1)][td :=
      WithNlink(a[td], a[td].nlink + 1)] else a
  }
  function Stamped(b: Metas, fd: uint64, td: uint64, src: uint64, s: uint64, ns: uint32): Metas
    requires fd in b && td in b && src in b
  {
    var q := b[src := Marked(b[src], s, ns)];
    var r := q[fd := Touched(q[fd], s, ns)];
    if fd == td then r else r[td := Touched(r[td], s, ns)]
  }

  // Both handles and both names. fdir, tdir: null when the handle is stale.
  method OpenBoth(txn: Txn, d: DirFs, fino: uint64, fgen: uint64, fname: Bytes, tino: uint64, tgen: uint64,
    tname: Bytes)
    returns (st: uint32, fdir: Bytes?, tdir: Bytes?)
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> fino in d.dirs && tino in d.dirs && Used(d, fino) && Used(d, tino) && OkName(fname.data) &&
      OkName(tname.data)
    ensures st == 0 ==> N.LiveDir(AbsOf(d), N.Handle(fino, fgen)) && N.LiveDir(AbsOf(d), N.Handle(tino, tgen)) &&
      N.Proper(fname.data) && N.Proper(tname.data)
    ensures st == 0 ==> fdir != null && tdir != null
    ensures fdir != null ==> |fdir.data| == 256 && Used(d, fino) && MetaOf(fdir.data) == d.fs.metas[fino]
    ensures tdir != null ==> |tdir.data| == 256 && Used(d, tino) && MetaOf(tdir.data) == d.fs.metas[tino]
    ensures st != 0 ==> st != NOSPC &&
      OpenErr(AbsOf(d), N.Handle(fino, fgen), fname.data, N.Handle(tino, tgen), tname.data, st)
  {
    Node(d, fino, fgen);
    Node(d, tino, tgen);
    st, fdir := OpenDirHandle(txn, d, fino, fgen, true);
    var tst: uint32;
    tst, tdir := OpenDirHandle(txn, d, tino, tgen, true);
    if st != 0 { return; }
    if tst != 0 { st := tst; return; }
    var fdots: uint32;
    var tdots: uint32;
    st, fdots := NameStatus(fname);
    if st != 0 { return; }
    st, tdots := NameStatus(tname);
    if st == 0 && (fdots != 0 || tdots != 0) { st := INVAL; }
  }
  predicate OpenErr(f: N.FS, fh: N.Handle, fn: seq<byte>, th: N.Handle, tn: seq<byte>, st: uint32)
  {
    C.DirErr(f, fh, st) || C.DirErr(f, th, st) || C.NameErr(fn, st) || C.NameErr(tn, st) ||
      (st == INVAL && (N.Dots(fn) || N.Dots(tn)))
  }

  // The move that Check has found possible, but for the link count of the new parent.
  method Carry(txn: Txn, d: DirFs, ghost c: Cred, fino: uint64, fname: Bytes, tino: uint64, tname: Bytes, src: uint64,
    dir: bool, found: bool, dst: uint64, s: uint64, ns: uint32)
    returns (st: uint32, fafter: Bytes?, tafter: Bytes?, later: bool)
    modifies d.Repr(), txn.blocks
    requires Sound(d) && txn.volume == d.fs.volume && fino in d.dirs && tino in d.dirs && Used(d, fino) &&
      Used(d, tino) && OkName(fname.data) && OkName(tname.data) && N.Proper(tname.data)
    requires fname.data in d.dirs[fino] && d.dirs[fino][fname.data] == src && Used(d, src)
    requires (found <==> tname.data in d.dirs[tino]) &&
      (found ==> d.dirs[tino][tname.data] == dst != src && Used(d, dst))
    requires (dir <==> src in d.dirs) && (dir ==> !TM.Under(d.fs.metas, tino, src)) &&
      R.MayReplace(AbsOf(d), WhoOf(c), tino, tname.data, dir)
    ensures var pre := old(AbsOf(d)); N.IsDir(pre, fino) && N.IsDir(pre, tino)
    ensures st == 0 ==> Sound(d) && Current(d, fino, fafter) && Current(d, tino, tafter) &&
      Carried(old(AbsOf(d)), AbsOf(d), fino, fname.data, tino, tname.data, N.Time(s, ns))
    ensures st == 0 && dir && fino != tino ==> R.NewLinks(old(AbsOf(d)), tino, tname.data) < N.LINKMAX as int
    ensures st == 0 || (st == NOSPC && !found) ||
      (st == MLINK && dir && fino != tino && R.NewLinks(old(AbsOf(d)), tino, tname.data) >= N.LINKMAX as int)
    ensures st == NOSPC ==> Short(txn, old(GotBlocks(txn)), old(GotInodes(txn)), Room.EntryNeeds()) ||
      old(NoPlace(d, tino, tname.data))
    ensures st == 0 ==> Tells(old(d.fs.metas), d.fs.metas, later)
  {
    fafter, tafter, later := null, null, false;
    ghost var pre := AbsOf(d);
    ghost var v := RA.Volume(d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places);
    SeeNode(d, fino);
    SeeNode(d, tino);
    SeeEntry(d, fino, fname.data);
    if found { SeeEntry(d, tino, tname.data); SeeNode(d, dst); }
    SeeNode(d, src);
    assert R.NewLinks(pre, tino, tname.data) == v.metas[tino].nlink as int - (if found && dir then 1 else 0);
    ghost var freed: bool;
    ghost var ms: Metas;
    var fr: bool;
    st, fr, later, ms := Move(txn, d, fino, fname, tino, tname, src, found, dst, s, ns);
    freed := fr;
    if st != 0 { return; }
    ghost var m2 := d.fs.metas;
    ghost var a := RA.Action(fino, fname.data, tino, tname.data, src, found, dst, dir, s, ns,
      if found then LeftoverOf(d.fs.metas[dst]) else Leftover(0, 0), freed);
    Before(d.fs.geometry, v, ms, m2, d.dirs, a);
    st, fafter, tafter := Finish(txn, d, fino, tino, src, dir, found && dir, s, ns);
    if st != 0 { return; }
    FinishedSizes(m2, fino, tino, src, dir, found && dir, s, ns);
    Finale(d.fs.geometry, v, ms, m2, RA.Volume(d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places), a);
    SeeNode(d, fino);
    SeeNode(d, tino);
  }
  // file i's attributes are those in node
  predicate Current(d: DirFs, i: uint64, node: Bytes?) reads d, d.fs, node
  { i in AbsOf(d).nodes && Reply(i, node) == Some(N.FattrOf(i, AbsOf(d).nodes[i])) }
  predicate Carried(pre: N.FS, post: N.FS, fd: uint64, fn: seq<byte>, td: uint64, tn: seq<byte>, now: N.Time)
  {
    N.IsDir(pre, fd) && N.IsDir(pre, td) && fn in pre.nodes[fd].body.names &&
      pre.nodes[fd].body.names[fn] in pre.nodes &&
      (tn in pre.nodes[td].body.names ==> pre.nodes[td].body.names[tn] in pre.nodes) &&
      R.Moved(pre, post, fd, fn, td, tn, now)
  }

  // later: the background has work
  method Rename(txn: Txn, d: DirFs, c: Cred, fino: uint64, fgen: uint64, fname: Bytes, tino: uint64, tgen: uint64,
    tname: Bytes, s: uint64, ns: uint32)
    returns (st: uint32, fbefore: Bytes?, fafter: Bytes?, tbefore: Bytes?, tafter: Bytes?, later: bool)
    modifies d.Repr(), txn.blocks
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> Sound(d)
    ensures st == 0 ==> Reply(fino, fbefore).Some? && Reply(fino, fafter).Some? && Reply(tino, tbefore).Some? &&
      Reply(tino, tafter).Some? &&
      R.RenameOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(fino, fgen), fname.data, N.Handle(tino, tgen), tname.data,
        N.Time(s, ns),
        N.Wcc(Reply(fino, fbefore).x, Reply(fino, fafter).x), N.Wcc(Reply(tino, tbefore).x, Reply(tino, tafter).x))
    ensures st != 0 ==> R.RenameErr(old(AbsOf(d)), WhoOf(c), N.Handle(fino, fgen), fname.data, N.Handle(tino, tgen),
      tname.data, st)
    ensures st == 0 ==> Tells(old(d.fs.metas), d.fs.metas, later)
    ensures st != 0 ==> N.Seen(old(AbsOf(d)), fino, Reply(fino, fbefore)) &&
      N.Seen(old(AbsOf(d)), tino, Reply(tino, tbefore))
    ensures Lacking(txn, old(StockOf(txn, d)), Room.EntryNeeds(), st) || old(NoPlace(d, tino, tname.data))
  {
    fafter, tafter, later := null, null, false;
    ghost var pre, w := AbsOf(d), WhoOf(c);
    st, fbefore, tbefore := OpenBoth(txn, d, fino, fgen, fname, tino, tgen, tname);
    if fbefore != null { SeeNode(d, fino); }
    if tbefore != null { SeeNode(d, tino); }
    if st != 0 { return; }
    var done: bool; var found: bool;
    var src: uint64; var dst: uint64;
    var dir: bool;
    st, done, src, dir, found, dst := Check(txn, d, c, fino, fbefore, fname, tino, tbefore, tname);
    if st != 0 { return; }
    if done { fafter, tafter := fbefore, tbefore; return; }
    SeeEntry(d, fino, fname.data);
    SeeNode(d, src);
    st, fafter, tafter, later := Carry(txn, d, c, fino, fname, tino, tname, src, dir, found, dst, s, ns);
    if !old(NoPlace(d, tino, tname.data)) { IsLacking(txn, old(StockOf(txn, d)), Room.EntryNeeds(), st); }
  }

  // the rename a was made from v, but for link counts and time stamps
  predicate Made(geo: Geometry, v: RA.Volume, ms: Metas, m2: Metas, dirs: Dirs, a: RA.Action)
  {
    T.TreeOk(geo, v.metas, v.dirs) && RA.Sized(v.metas, ms, a.from, a.to) && 2 in ms && A.Shown(geo, v.metas, a.from) &&
      A.Shown(geo, v.metas, a.to) && A.Shown(geo, v.metas, a.source) && N.Proper(a.toName) &&
    TR.RenamedTo(v.dirs, dirs, a.from, a.fromName, a.to, a.toName, a.source, a.found, a.target, a.freed) &&
      (a.dir <==> a.source in v.dirs) && (a.dir ==> !TM.Under(v.metas, a.to, a.source)) &&
    (a.found ==> a.target != a.source && A.Shown(geo, v.metas, a.target) && (a.target in v.dirs <==> a.dir) &&
      (a.dir ==> v.dirs[a.target] == map[])) &&
    (a.freed ==> a.found && a.target in ms && LastLink(ms[a.target]) && !T.OnList(ms[a.target])) &&
    (a.found ==> a.target in ms) && m2 == if a.found then
      Dropped(ms, a.target, a.seconds, a.nanoseconds, a.left, a.freed) else ms
  }
  lemma SizedTree(geo: Geometry, v: RA.Volume, ms: Metas, a: RA.Action)
    requires T.TreeOk(geo, v.metas, v.dirs) && RA.Sized(v.metas, ms, a.from, a.to) && A.Shown(geo, v.metas, a.from) &&
      A.Shown(geo, v.metas, a.to) && a.from in v.dirs && a.to in v.dirs
    ensures T.TreeOk(geo, ms, v.dirs)
  {
    T.Basics(geo, v.metas, v.dirs);
    var m1 := v.metas[a.to := WithSizeNent(v.metas[a.to], ms[a.to].size, ms[a.to].nent, ms[a.to].used)];
    T.SetAttr(geo, v.metas, v.dirs, a.to, m1[a.to]);
    T.Basics(geo, m1, v.dirs);
    T.SetAttr(geo, m1, v.dirs, a.from, ms[a.from]);
    assert m1[a.from := ms[a.from]] == ms;
  }
  // what Finish needs
  lemma Before(geo: Geometry, v: RA.Volume, ms: Metas, m2: Metas, dirs: Dirs, a: RA.Action)
    requires Made(geo, v, ms, m2, dirs, a)
    ensures RA.Given(geo, ms, v.dirs, a) && RA.Apart(ms, a)
    ensures a.from in m2 && a.to in m2 && a.source in m2 && m2[a.to].nlink == v.metas[a.to].nlink &&
      m2[a.from].nlink == v.metas[a.from].nlink
    ensures (a.found && a.dir ==> 2 < m2[a.to].nlink) && (a.dir && a.from != a.to ==> 2 < m2[a.from].nlink)
    ensures a.dir ==> v.metas[a.source].parent == a.from
  {
    SizedTree(geo, v, ms, a);
    T.Basics(geo, v.metas, v.dirs);
    T.EntryOk(geo, v.metas, v.dirs, a.from, a.fromName);
    if a.found { T.EntryOk(geo, v.metas, v.dirs, a.to, a.toName); }
    if a.dir { SameParents(v.metas, ms, a.to, a.source); }
    RA.ApartOk(geo, ms, v.dirs, a);
  }
  lemma SameParents(ms: Metas, ms': Metas, x: uint64, top: uint64)
    requires !TM.Under(ms, x, top) && forall i: uint64 {:trigger i in ms} {:trigger i in ms'} ::
      (i in ms <==> i in ms') && (i in ms ==> ms[i].parent == ms'[i].parent)
    ensures !TM.Under(ms', x, top)
  { if TM.Under(ms', x, top) { var k: nat :| TM.Ancestor(ms', x, k) == top; SameAnc(ms, ms', x, k); } }
  lemma SameAnc(ms: Metas, ms': Metas, x: uint64, k: nat)
    requires forall i: uint64 {:trigger i in ms} {:trigger i in ms'} ::
      (i in ms <==> i in ms') && (i in ms ==> ms[i].parent == ms'[i].parent)
    ensures TM.Ancestor(ms, x, k) == TM.Ancestor(ms', x, k)
    decreases k
  { if 0 < k && x in ms { SameAnc(ms, ms', ms[x].parent, k - 1); } }
  // and what comes of it
  lemma Finale(geo: Geometry, v: RA.Volume, ms: Metas, m2: Metas, u: RA.Volume, a: RA.Action)
    requires Made(geo, v, ms, m2, u.dirs, a) && a.from in m2 && a.to in m2 && a.source in m2 && a.source != a.from &&
      a.source != a.to
    requires (a.found && a.dir ==> 2 < m2[a.to].nlink) &&
      (a.dir && a.from != a.to ==> 2 < m2[a.from].nlink &&
      m2[a.to].nlink as int - (if a.found && a.dir then 1 else 0) < 0x7fff_ffff)
    requires u.metas == Finished(m2, a.from, a.to, a.source, a.dir, a.found && a.dir, a.seconds, a.nanoseconds)
    requires forall i: uint64 {:trigger A.FileAt(u.files, i)} {:trigger A.HeldAt(u.held, i)} | i != a.from &&
      i != a.to && (a.found && i == a.target ==> !LastLink(ms[i])) ::
      A.FileAt(u.files, i) == A.FileAt(v.files, i) && A.HeldAt(u.held, i) == A.HeldAt(v.held, i)
    requires forall i: uint64 {:trigger A.PlacesAt(u.places, i)} | i != a.from && i != a.to ::
      A.PlacesAt(u.places, i) == A.PlacesAt(v.places, i)
    requires RA.Kept(v, u, a.from) && RA.Kept(v, u, a.to)
    ensures T.TreeOk(geo, u.metas, u.dirs)
    ensures var pre, post := RA.See(geo, v), RA.See(geo, u);
      N.IsDir(pre, a.from) && N.IsDir(pre, a.to) && N.Entry(pre, a.from, a.fromName) &&
        pre.nodes[a.from].body.names[a.fromName] == a.source && a.source in pre.nodes &&
      (a.found <==> a.toName in pre.nodes[a.to].body.names) &&
        (a.found ==> pre.nodes[a.to].body.names[a.toName] == a.target && a.target in pre.nodes) &&
      R.Moved(pre, post, a.from, a.fromName, a.to, a.toName, N.Time(a.seconds, a.nanoseconds))
  {
    Before(geo, v, ms, m2, u.dirs, a);
    RA.ReplacedAt(ms, a);
    RA.FinalTree(geo, ms, v.dirs, u.dirs, a);
    assert u.metas == RA.Final(ms, a);
    T.Basics(geo, v.metas, v.dirs);
    RA.Sees(geo, v, ms, u, a);
  }
}
