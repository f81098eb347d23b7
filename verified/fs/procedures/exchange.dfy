include "rename.dfy"
include "../refinement/exchanging.dfy"
// RENAME_EXCHANGE. Two names change places: ExchangeOk and ExchangeErr of local.s.dfy say what that does. An entry is
// written over where it lies, so nothing is allocated.
module ExchangeOps {
  import opened Machine
  import opened ByteSlice
  import opened TxnS
  import opened VolumeGeometry
  import opened InodeFormat
  import opened ByteFiles
  import opened Directories
  import opened Permissions
  import opened ProcedureBase
  import opened RenameOps
  import AttributeChanges
  import A = Abstraction
  import T = NameTree
  import TM = TreeMove
  import TX = TreeExchange
  import RA = Renaming
  import X = Exchanging
  import P = NfsPerm
  import N = NfsState
  import C = NfsCommon
  import R = NfsRename
  import L = NfsLocal

  // What the two names are of. done: both are of one file. Checks all but the link counts.
  method CheckBoth(txn: Txn, d: DirFs, c: Cred, fino: uint64, fdir: Bytes, fname: Bytes, tino: uint64, tdir: Bytes,
    tname: Bytes)
    returns (st: uint32, done: bool, one: uint64, oneDir: bool, other: uint64, otherDir: bool)
    requires Sound(d) && txn.volume == d.fs.volume && fino in d.dirs && tino in d.dirs && Used(d, fino) &&
      Used(d, tino) && OkName(fname.data) && OkName(tname.data)
    requires |fdir.data| == 256 && |tdir.data| == 256 && MetaOf(fdir.data) == d.fs.metas[fino] &&
      MetaOf(tdir.data) == d.fs.metas[tino]
    ensures N.IsDir(AbsOf(d), fino) && N.IsDir(AbsOf(d), tino)
    ensures st == 0 ==> CanBoth(AbsOf(d), WhoOf(c), fino, tino) && fname.data in d.dirs[fino] &&
      d.dirs[fino][fname.data] == one && Used(d, one) && tname.data in d.dirs[tino] &&
      d.dirs[tino][tname.data] == other && Used(d, other) && (done <==> one == other)
    ensures st == 0 && !done ==> R.MayLeave(AbsOf(d), WhoOf(c), fino, fname.data, tino) &&
      R.MayLeave(AbsOf(d), WhoOf(c), tino, tname.data, fino) && (oneDir <==> one in d.dirs) &&
      (otherDir <==> other in d.dirs) && (oneDir ==> !TM.Under(d.fs.metas, tino, one)) &&
      (otherDir ==> !TM.Under(d.fs.metas, fino, other))
    ensures st != 0 ==> CheckBothErr(AbsOf(d), WhoOf(c), fino, fname.data, tino, tname.data, st)
  {
    ghost var f, w := AbsOf(d), WhoOf(c);
    SeeNode(d, fino);
    SeeNode(d, tino);
    done, one, oneDir, other, otherDir := false, 0, false, 0, false;
    st := Deny(c, fdir, MAYWRITE + MAYEXEC);
    assert st == 0 <==> C.Can(w, f.nodes[fino], P.EXEC + P.WRITE);
    if st != 0 { return; }
    st := Deny(c, tdir, MAYWRITE + MAYEXEC);
    assert st == 0 <==> C.Can(w, f.nodes[tino], P.EXEC + P.WRITE);
    if st != 0 { return; }
    var there: bool;
    there, one := d.Lookup(txn, fino, fname, true);
    if !there { st := NOENT; return; }
    SeeEntry(d, fino, fname.data);
    there, other := d.Lookup(txn, tino, tname, true);
    if !there { st := NOENT; return; }
    SeeEntry(d, tino, tname.data);
    if one == other { st, done := 0, true; return; }
    st, oneDir := Source(txn, d, c, fino, fdir, fname, tino, one);
    if st != 0 { return; }
    st, otherDir := Source(txn, d, c, tino, tdir, tname, fino, other);
  }
  predicate CheckBothErr(f: N.FS, w: P.Caller, fd: uint64, fn: seq<byte>, td: uint64, tn: seq<byte>, st: uint32)
    requires N.IsDir(f, fd) && N.IsDir(f, td)
  {
    CannotBoth(f, w, fd, td, st) || (st == NOENT && !L.BothThere(f, fd, fn, td, tn)) ||
    (L.BothThere(f, fd, fn, td, tn) && f.nodes[fd].body.names[fn] != f.nodes[td].body.names[tn] &&
      (L.LeaveErr(f, w, fd, fn, td, st) || L.LeaveErr(f, w, td, tn, fd, st)))
  }

  // both entries
  method Swap(txn: Txn, d: DirFs, fname: Bytes, tname: Bytes, from: uint64, to: uint64, one: uint64, other: uint64)
    modifies d.Repr(), txn.blocks
    requires d.Valid() && txn.volume == d.fs.volume && OkName(fname.data) && OkName(tname.data) &&
      OkIno(d.fs.geometry, one) && OkIno(d.fs.geometry, other) && one != other
    requires T.Has(d.dirs, from, fname.data) && d.dirs[from][fname.data] == one
    requires T.Has(d.dirs, to, tname.data) && d.dirs[to][tname.data] == other
    ensures d.Valid() && d.fs.metas == old(d.fs.metas) &&
      TX.SwappedTo(old(d.dirs), d.dirs, TX.Swap(from, fname.data, to, tname.data, one, other))
    ensures var v := RA.Volume(old(d.fs.metas), old(d.fs.files), old(d.fs.held), old(d.dirs), old(d.places));
      var u := RA.Volume(d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places);
      X.Placed(v, u, from) && X.Placed(v, u, to)
    ensures forall i: uint64 {:trigger A.FileAt(d.fs.files, i)} {:trigger A.HeldAt(d.fs.held, i)} | i != from &&
      i != to ::
      A.FileAt(d.fs.files, i) == A.FileAt(old(d.fs.files), i) && A.HeldAt(d.fs.held, i) == A.HeldAt(old(d.fs.held), i)
    ensures forall i: uint64 {:trigger A.PlacesAt(d.places, i)} | i != from && i != to ::
      A.PlacesAt(d.places, i) == A.PlacesAt(old(d.places), i)
  {
    assert from == to ==> fname.data != tname.data;
    var ok := d.Replace(txn, to, tname, one);
    assert T.Has(d.dirs, from, fname.data);
    ok := d.Replace(txn, from, fname, other);
  }

  // what ".." of a directory is
  method Reparent(txn: Txn, d: DirFs, ino: uint64, parent: uint64)
    modifies d.Repr()
    requires d.Valid() && txn.volume == d.fs.volume && OkIno(d.fs.geometry, ino)
    ensures d.Valid() && d.dirs == old(d.dirs) && d.places == old(d.places) && d.fs.files == old(d.fs.files) &&
      d.fs.held == old(d.fs.held) && d.fs.geometry == old(d.fs.geometry)
    ensures ino in old(d.fs.metas) && d.fs.metas == old(d.fs.metas)[ino := WithParent(old(d.fs.metas)[ino], parent)]
  {
    var ip := d.fs.GetInode(txn, ino, true);
    SetParent(ip, parent);
    d.PutInode(txn, ino, ip);
  }
  // the link counts, and ".."
  method RecountBoth(txn: Txn, d: DirFs, from: uint64, to: uint64, one: uint64, oneDir: bool, other: uint64,
    otherDir: bool, ghost w: TX.Swap) returns (st: uint32)
    modifies d.Repr()
    requires d.Valid() && txn.volume == d.fs.volume && OkIno(d.fs.geometry, one) && OkIno(d.fs.geometry, other) &&
      OkIno(d.fs.geometry, from) && OkIno(d.fs.geometry, to)
    requires w.from == from && w.to == to && w.source == one && w.target == other && TX.Ready(d.fs.metas, w)
    requires (oneDir <==> d.fs.metas[one].ty == DIR) && (otherDir <==> d.fs.metas[other].ty == DIR)
    ensures TX.Ready(old(d.fs.metas), w) && var m := TX.Swapped(old(d.fs.metas), w);
      st == (if m[from].nlink > MAXLINK || m[to].nlink > MAXLINK then MLINK else 0)
    ensures st == 0 ==> d.Valid() && d.dirs == old(d.dirs) && d.places == old(d.places) &&
      d.fs.files == old(d.fs.files) && d.fs.held == old(d.fs.held) &&
      d.fs.metas == TX.Swapped(old(d.fs.metas), w)
  {
    ghost var ms := d.fs.metas;
    TX.SwappedAt(ms, w, from); TX.SwappedAt(ms, w, to);
    st := 0;
    if from == to { return; }
    if oneDir { Reparent(txn, d, one, to); }
    if otherDir { Reparent(txn, d, other, from); }
    if oneDir == otherDir { AsTheyWere(ms, d.fs.metas, w); return; }
    st := AddLink(txn, d, from, otherDir);
    if st != 0 { return; }
    st := AddLink(txn, d, to, oneDir);
    if st != 0 { return; }
    assert d.fs.metas == TX.Swapped(ms, w);
  }
  // a sub-directory for another one changes no link count
  lemma AsTheyWere(ms: AttributeChanges.Metas, m: AttributeChanges.Metas, w: TX.Swap)
    requires TX.Ready(ms, w) && w.from != w.to && (ms[w.source].ty == 2 <==> ms[w.target].ty == 2)
    requires m == if ms[w.source].ty == 2 then ms[w.source := WithParent(ms[w.source], w.to)][w.target :=
      WithParent(ms[w.target], w.from)] else ms
    ensures m == TX.Swapped(ms, w)
  {
    var n := TX.Swapped(ms, w);
    forall x: uint64 ensures (x in m <==> x in n) && (x in m ==> m[x] == n[x]) { TX.SwappedAt(ms, w, x); }
  }

  // the time stamps
  method StampBoth(txn: Txn, d: DirFs, from: uint64, to: uint64, one: uint64, other: uint64, s: uint64, ns: uint32,
    ghost w: TX.Swap) returns (fafter: Bytes, tafter: Bytes)
    modifies d.Repr()
    requires d.Valid() && txn.volume == d.fs.volume && OkIno(d.fs.geometry, one) && OkIno(d.fs.geometry, other) &&
      OkIno(d.fs.geometry, from) && OkIno(d.fs.geometry, to)
    requires w.from == from && w.to == to && w.source == one && w.target == other && one != from && one != to
    ensures d.Valid() && d.dirs == old(d.dirs) && d.places == old(d.places) && d.fs.files == old(d.fs.files) &&
      d.fs.held == old(d.fs.held)
    ensures var ms := old(d.fs.metas); from in ms && to in ms && one in ms && other in ms &&
      d.fs.metas == X.Timed(ms, w, s, ns)
    ensures |fafter.data| == 256 && |tafter.data| == 256 && from in d.fs.metas && to in d.fs.metas &&
      MetaOf(fafter.data) == d.fs.metas[from] && MetaOf(tafter.data) == d.fs.metas[to]
  {
    var ip := d.fs.GetInode(txn, other, true);
    var ts, tns := AttributeChanges.Stamp(ip, s, ns);
    SetCtime(ip, ts, tns);
    d.PutInode(txn, other, ip);
    fafter, tafter := Stamps(txn, d, from, to, one, s, ns);
  }

  // all that is written
  method Rewrite(txn: Txn, d: DirFs, from: uint64, fname: Bytes, to: uint64, tname: Bytes, one: uint64, oneDir: bool,
    other: uint64, otherDir: bool, s: uint64, ns: uint32, ghost w: TX.Swap)
    returns (st: uint32, fafter: Bytes?, tafter: Bytes?)
    modifies d.Repr(), txn.blocks
    requires d.Valid() && txn.volume == d.fs.volume && OkName(fname.data) && OkName(tname.data) &&
      OkIno(d.fs.geometry, one) && OkIno(d.fs.geometry, other) && OkIno(d.fs.geometry, from) && OkIno(d.fs.geometry, to)
    requires w == TX.Swap(from, fname.data, to, tname.data, one, other) && TX.Ready(d.fs.metas, w)
    requires T.Has(d.dirs, from, fname.data) && d.dirs[from][fname.data] == one
    requires T.Has(d.dirs, to, tname.data) && d.dirs[to][tname.data] == other
    requires (oneDir <==> d.fs.metas[one].ty == DIR) && (otherDir <==> d.fs.metas[other].ty == DIR)
    ensures TX.Ready(old(d.fs.metas), w) && var m := TX.Swapped(old(d.fs.metas), w);
      st == (if m[from].nlink > MAXLINK || m[to].nlink > MAXLINK then MLINK else 0)
    ensures st == 0 ==> d.Valid() && Rewritten(
      RA.Volume(old(d.fs.metas), old(d.fs.files), old(d.fs.held), old(d.dirs), old(d.places)),
      RA.Volume(d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places), w, s, ns)
    ensures st == 0 ==> fafter != null && tafter != null && |fafter.data| == 256 && |tafter.data| == 256 &&
      from in d.fs.metas && to in d.fs.metas &&
      MetaOf(fafter.data) == d.fs.metas[from] && MetaOf(tafter.data) == d.fs.metas[to]
  {
    fafter, tafter := null, null;
    Swap(txn, d, fname, tname, from, to, one, other);
    st := RecountBoth(txn, d, from, to, one, oneDir, other, otherDir, w);
    if st != 0 { return; }
    fafter, tafter := StampBoth(txn, d, from, to, one, other, s, ns, w);
  }
  predicate Rewritten(v: RA.Volume, u: RA.Volume, w: TX.Swap, s: uint64, ns: uint32)
  {
    TX.Ready(v.metas, w) && u.metas == X.After(v.metas, w, s, ns) && TX.SwappedTo(v.dirs, u.dirs, w) &&
    X.Placed(v, u, w.from) && X.Placed(v, u, w.to) &&
    (forall i: uint64 {:trigger A.FileAt(u.files, i)} {:trigger A.HeldAt(u.held, i)} | i != w.from &&
      i != w.to :: A.FileAt(u.files, i) == A.FileAt(v.files, i) && A.HeldAt(u.held, i) == A.HeldAt(v.held, i)) &&
    (forall i: uint64 {:trigger A.PlacesAt(u.places, i)} | i != w.from && i != w.to ::
      A.PlacesAt(u.places, i) == A.PlacesAt(v.places, i))
  }

  // The exchange that CheckBoth has found possible, but for the link counts of the directories.
  method CarryBoth(txn: Txn, d: DirFs, ghost c: Cred, fino: uint64, fname: Bytes, tino: uint64, tname: Bytes,
    one: uint64, oneDir: bool, other: uint64, otherDir: bool, s: uint64, ns: uint32)
    returns (st: uint32, fafter: Bytes?, tafter: Bytes?)
    modifies d.Repr(), txn.blocks
    requires Sound(d) && txn.volume == d.fs.volume && OkName(fname.data) && OkName(tname.data)
    requires TX.MaySwap(d.fs.geometry, d.fs.metas, d.dirs, TX.Swap(fino, fname.data, tino, tname.data, one, other))
    requires Used(d, fino) && Used(d, tino) && Used(d, one) && Used(d, other)
    requires (oneDir <==> one in d.dirs) && (otherDir <==> other in d.dirs)
    ensures var pre := old(AbsOf(d)); L.BothThere(pre, fino, fname.data, tino, tname.data)
    ensures st == 0 ==> Sound(d) && Current(d, fino, fafter) && Current(d, tino, tafter) &&
      CarriedBoth(old(AbsOf(d)), AbsOf(d), fino, fname.data, tino, tname.data, N.Time(s, ns))
    ensures st == 0 <==> TooMany(old(AbsOf(d)), fino, fname.data, tino, tname.data) == false
    ensures st == 0 || st == MLINK
    ensures st == 0 ==> Tells(old(d.fs.metas), d.fs.metas, false)
  {
    fafter, tafter := null, null;
    ghost var g, v := d.fs.geometry, RA.Volume(d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places);
    ghost var w := TX.Swap(fino, fname.data, tino, tname.data, one, other);
    TX.ReadyIs(g, v.metas, v.dirs, w);
    T.Basics(g, v.metas, v.dirs);
    assert OkIno(g, ORPHANS);
    SeenLinks(d, w);
    st, fafter, tafter := Rewrite(txn, d, fino, fname, tino, tname, one, oneDir, other, otherDir, s, ns, w);
    if st != 0 { return; }
    CarriedIs(g, v, RA.Volume(d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places), w, s, ns);
    SeeNode(d, fino);
    SeeNode(d, tino);
  }
  // what comes of it
  lemma CarriedIs(g: Geometry, v: RA.Volume, u: RA.Volume, w: TX.Swap, s: uint64, ns: uint32)
    requires TX.MaySwap(g, v.metas, v.dirs, w) && Rewritten(v, u, w, s, ns)
    requires var m := TX.Swapped(v.metas, w); m[w.from].nlink <= MAXLINK && m[w.to].nlink <= MAXLINK
    requires A.Shown(g, v.metas, w.from) && A.Shown(g, v.metas, w.to) && A.Shown(g, v.metas, w.source) &&
      A.Shown(g, v.metas, w.target)
    ensures T.TreeOk(g, u.metas, u.dirs) && Tells(v.metas, u.metas, false)
    ensures CarriedBoth(RA.See(g, v), RA.See(g, u), w.from, w.fromName, w.to, w.toName, N.Time(s, ns))
  {
    TX.ReadyIs(g, v.metas, v.dirs, w);
    T.Basics(g, v.metas, v.dirs);
    assert OkIno(g, ORPHANS);
    X.AfterTree(g, v.metas, v.dirs, u.dirs, w, s, ns);
    X.AfterAt(v.metas, w, s, ns, ORPHANS);
    X.Seen(g, v, u, w, s, ns);
  }
  predicate TooMany(f: N.FS, fd: uint64, fn: seq<byte>, td: uint64, tn: seq<byte>)
    requires L.BothThere(f, fd, fn, td, tn)
  { L.LinksGiven(f, fd, fn, td, tn) > N.LINKMAX as int || L.LinksGiven(f, td, tn, fd, fn) > N.LINKMAX as int }
  predicate CarriedBoth(pre: N.FS, post: N.FS, fd: uint64, fn: seq<byte>, td: uint64, tn: seq<byte>, now: N.Time)
  {
    L.BothThere(pre, fd, fn, td, tn) && pre.nodes[fd].body.names[fn] in pre.nodes &&
    pre.nodes[td].body.names[tn] in pre.nodes && L.Exchanged(pre, post, fd, fn, td, tn, now)
  }
  // the link counts to be, in the words of the specification
  lemma SeenLinks(d: DirFs, w: TX.Swap)
    requires Sound(d) && TX.MaySwap(d.fs.geometry, d.fs.metas, d.dirs, w)
    requires Used(d, w.from) && Used(d, w.to) && Used(d, w.source) && Used(d, w.target)
    ensures TX.Ready(d.fs.metas, w) && var f, m := AbsOf(d), TX.Swapped(d.fs.metas, w);
      L.BothThere(f, w.from, w.fromName, w.to, w.toName) &&
      L.LinksGiven(f, w.from, w.fromName, w.to, w.toName) == m[w.from].nlink as int &&
      L.LinksGiven(f, w.to, w.toName, w.from, w.fromName) == m[w.to].nlink as int
  {
    TX.ReadyIs(d.fs.geometry, d.fs.metas, d.dirs, w);
    SeeNode(d, w.from); SeeNode(d, w.to); SeeNode(d, w.source); SeeNode(d, w.target);
    TX.SwappedAt(d.fs.metas, w, w.from);
  }

  method Exchange(txn: Txn, d: DirFs, c: Cred, fino: uint64, fgen: uint64, fname: Bytes, tino: uint64, tgen: uint64,
    tname: Bytes, s: uint64, ns: uint32)
    returns (st: uint32, fbefore: Bytes?, fafter: Bytes?, tbefore: Bytes?, tafter: Bytes?)
    modifies d.Repr(), txn.blocks
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> Sound(d)
    ensures st == 0 ==> Reply(fino, fbefore).Some? && Reply(fino, fafter).Some? && Reply(tino, tbefore).Some? &&
      Reply(tino, tafter).Some? &&
      L.ExchangeOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(fino, fgen), fname.data, N.Handle(tino, tgen),
        tname.data, N.Time(s, ns),
        N.Wcc(Reply(fino, fbefore).x, Reply(fino, fafter).x), N.Wcc(Reply(tino, tbefore).x, Reply(tino, tafter).x))
    ensures st != 0 ==> L.ExchangeErr(old(AbsOf(d)), WhoOf(c), N.Handle(fino, fgen), fname.data, N.Handle(tino, tgen),
      tname.data, st)
    ensures st == 0 ==> Tells(old(d.fs.metas), d.fs.metas, false)
  {
    fafter, tafter := null, null;
    ghost var pre, w := AbsOf(d), WhoOf(c);
    assert OkIno(d.fs.geometry, ORPHANS) by { T.Basics(d.fs.geometry, d.fs.metas, d.dirs); }
    st, fbefore, tbefore := OpenBoth(txn, d, fino, fgen, fname, tino, tgen, tname);
    if fbefore != null { SeeNode(d, fino); }
    if tbefore != null { SeeNode(d, tino); }
    if st != 0 { return; }
    var done: bool; var one: uint64; var other: uint64; var oneDir: bool; var otherDir: bool;
    st, done, one, oneDir, other, otherDir := CheckBoth(txn, d, c, fino, fbefore, fname, tino, tbefore, tname);
    if st != 0 { return; }
    if done { fafter, tafter := fbefore, tbefore; return; }
    st, fafter, tafter := CarryBoth(txn, d, c, fino, fname, tino, tname, one, oneDir, other, otherDir, s, ns);
  }
}
