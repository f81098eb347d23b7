include "kept.dfy"
// RENAME_WHITEOUT. A name goes, and a device 0:0 takes its place: WhiteoutOk and WhiteoutErr of local.s.dfy say what
// that does. It is RENAME and MKNOD in one transaction.
module WhiteoutOps {
  import opened Machine
  import opened AccessLists
  import opened ByteSlice
  import opened TxnS
  import opened VolumeGeometry
  import opened InodeFormat
  import opened Directories
  import opened Permissions
  import opened ProcedureBase
  import opened Abstraction
  import AttributeOps
  import CreateOps
  import KeptOps
  import RenameOps
  import NameTree
  import P = NfsPerm
  import C = NfsCommon
  import N = NfsState
  import K = NfsMake
  import R = NfsRename
  import L = NfsLocal

  // the attributes of a whiteout
  method Unusable(owner: uint32) returns (a: AttributeOps.Sattr)
    ensures fresh(a) && AttributeOps.SattrOf(a) == L.Unusable(owner)
  {
    a := new AttributeOps.Sattr.Make();
    a.SetMode(0);
    a.SetUid(owner);
  }

  // The name is free, and becomes a whiteout's.
  method Leave(txn: Txn, d: DirFs, c: Cred, owner: uint32, dino: uint64, dgen: uint64, name: Bytes, s: uint64,
    ns: uint32) returns (st: uint32, ghost left: N.Handle, ghost attr: N.Fattr, ghost w: N.Wcc)
    modifies d.Repr(), txn.blocks, txn.inodes
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> Sound(d) && L.Whiteout(old(AbsOf(d)), AbsOf(d), WhoOf(c), owner, N.Handle(dino, dgen),
      name.data, N.Time(s, ns), left, attr, w)
    ensures st != 0 ==> K.MknodErr(old(AbsOf(d)), WhoOf(c), N.Handle(dino, dgen), name.data, CHR, L.Unusable(owner), 0,
      0, st)
  {
    var a := Unusable(owner);
    var ino: uint64;
    var node, before, after: Bytes?;
    st, ino, node, before, after := CreateOps.Mknod(txn, d, c, dino, dgen, name, CHR, a, 0, 0, s, ns);
    if st != 0 { return; }
    left, attr := N.Handle(ino, MetaOf(node.data).gen), ReplyAttr(ino, MetaOf(node.data));
    w := N.Wcc(ReplyAttr(dino, MetaOf(before.data)), ReplyAttr(dino, MetaOf(after.data)));
  }
  // After RENAME the name is free, unless both were of one file.
  lemma IsFree(f: N.FS, g: N.FS, c: P.Caller, fh: N.Handle, fname: seq<byte>, th: N.Handle, tname: seq<byte>,
    now: N.Time, fw: N.Wcc, tw: N.Wcc)
    requires R.RenameOk(f, g, c, fh, fname, th, tname, now, fw, tw)
    ensures N.LiveDir(g, fh) && g.nodes[fh.ino].attr.mode == f.nodes[fh.ino].attr.mode && N.Proper(fname) &&
      g.nodes[fh.ino].attr.uid == f.nodes[fh.ino].attr.uid && g.nodes[fh.ino].attr.gid == f.nodes[fh.ino].attr.gid &&
      g.nodes[fh.ino].attr.flags == f.nodes[fh.ino].attr.flags
    ensures fname in g.nodes[fh.ino].body.names <==> R.SameFile(f, fh, fname, th, tname)
    ensures fname in g.nodes[fh.ino].body.names ==> g == f
  { }
  // Who may write and search may search.
  lemma Narrower(c: P.Caller, n: N.Node)
    ensures C.Can(c, n, P.WRITE + P.EXEC) ==> C.Can(c, n, P.EXEC)
  {
    var number := P.AccessNumber(n.attr.flags);
    if number in c.lists { NarrowerEntries(c, c.lists[number].named); }
  }
  lemma NarrowerEntries(c: P.Caller, es: seq<Entry>)
    ensures P.SomeAllows(c, es, P.WRITE + P.EXEC) ==> P.SomeAllows(c, es, P.EXEC)
  { if es != [] { NarrowerEntries(c, es[1..]); } }
  // So all that the whiteout may lack is room, and root's rights.
  lemma Lacks(f: N.FS, g: N.FS, c: P.Caller, owner: uint32, fh: N.Handle, fname: seq<byte>, th: N.Handle,
    tname: seq<byte>, now: N.Time, fw: N.Wcc, tw: N.Wcc, st: uint32)
    requires R.RenameOk(f, g, c, fh, fname, th, tname, now, fw, tw) && !R.SameFile(f, fh, fname, th, tname)
    requires K.MknodErr(g, c, fh, fname, CHR, L.Unusable(owner), 0, 0, st)
    ensures N.Full(st) || (st == PERM && c.uid != 0)
  {
    IsFree(f, g, c, fh, fname, th, tname, now, fw, tw);
    Narrower(c, g.nodes[fh.ino]);
  }

  lemma SeeDir(d: DirFs, dino: uint64, dgen: uint64)
    requires Sound(d) && N.LiveDir(AbsOf(d), N.Handle(dino, dgen))
    ensures dino in d.dirs && OkIno(d.fs.geometry, dino) && d.dirs[dino] == AbsOf(d).nodes[dino].body.names
  { DirStatus(d, dino, dgen, [46]); }

  // RENAME. same: both names are of one file.
  method Go(txn: Txn, d: DirFs, c: Cred, fino: uint64, fgen: uint64, fname: Bytes, tino: uint64, tgen: uint64,
    tname: Bytes, s: uint64, ns: uint32)
    returns (st: uint32, same: bool, ghost fw: N.Wcc, ghost tw: N.Wcc)
    modifies d.Repr(), txn.blocks
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> Sound(d) && R.RenameOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(fino, fgen), fname.data,
      N.Handle(tino, tgen), tname.data, N.Time(s, ns), fw, tw)
    ensures st == 0 ==>
      (same <==> R.SameFile(old(AbsOf(d)), N.Handle(fino, fgen), fname.data, N.Handle(tino, tgen), tname.data))
    ensures st != 0 ==> R.RenameErr(old(AbsOf(d)), WhoOf(c), N.Handle(fino, fgen), fname.data, N.Handle(tino, tgen),
      tname.data, st)
  {
    ghost var pre := AbsOf(d);
    same := false;
    var fbefore, fafter, tbefore, tafter: Bytes?;
    var later: bool;
    st, fbefore, fafter, tbefore, tafter, later :=
      RenameOps.Rename(txn, d, c, fino, fgen, fname, tino, tgen, tname, s, ns);
    if st != 0 { return; }
    fw := N.Wcc(Reply(fino, fbefore).x, Reply(fino, fafter).x);
    tw := N.Wcc(Reply(tino, tbefore).x, Reply(tino, tafter).x);
    IsFree(pre, AbsOf(d), WhoOf(c), N.Handle(fino, fgen), fname.data, N.Handle(tino, tgen), tname.data, N.Time(s, ns),
      fw, tw);
    SeeDir(d, fino, fgen);
    var ino: uint64;
    same, ino := d.Lookup(txn, fino, fname, true);
  }

  // The file under fname gets the name tname, and a whiteout, `left`, the name fname, unless both names were of one
  // file. later: the background has work. (It may have none: MKNOD does not say, and to be told is cheap.)
  method Whiteout(txn: Txn, d: DirFs, c: Cred, owner: uint32, fino: uint64, fgen: uint64, fname: Bytes, tino: uint64,
    tgen: uint64, tname: Bytes, s: uint64, ns: uint32)
    returns (st: uint32, later: bool, ghost left: N.Handle)
    modifies d.Repr(), txn.blocks, txn.inodes
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> Sound(d) && L.WhiteoutOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), owner, N.Handle(fino, fgen),
      fname.data, N.Handle(tino, tgen), tname.data, N.Time(s, ns), left)
    ensures st != 0 ==> L.WhiteoutErr(old(AbsOf(d)), WhoOf(c), N.Handle(fino, fgen), fname.data, N.Handle(tino, tgen),
      tname.data, st)
    ensures later
  {
    ghost var pre, w, now, fh, th := AbsOf(d), WhoOf(c), N.Time(s, ns), N.Handle(fino, fgen), N.Handle(tino, tgen);
    ghost var fn, tn := fname.data, tname.data;
    ghost var fw, tw, attr, dw;
    left, later := N.Handle(0, 0), true;
    var same: bool;
    st, same, fw, tw := Go(txn, d, c, fino, fgen, fname, tino, tgen, tname, s, ns);
    if st != 0 { return; }
    ghost var mid := AbsOf(d);
    if same { IsFree(pre, mid, w, fh, fn, th, tn, now, fw, tw); return; }
    st, left, attr, dw := Leave(txn, d, c, owner, fino, fgen, fname, s, ns);
    if st != 0 { Lacks(pre, mid, w, owner, fh, fn, th, tn, now, fw, tw, st); }
  }

  // The same to a name of a file that is open, which is kept. first: as Keep has it
  method WhiteoutOpen(txn: Txn, d: DirFs, c: Cred, owner: uint32, fino: uint64, fgen: uint64, fname: Bytes,
    tino: uint64, tgen: uint64, tname: Bytes, ino: uint64, gen: uint64, s: uint64, ns: uint32)
    returns (st: uint32, later: bool, first: uint64, ghost left: N.Handle)
    modifies d.Repr(), txn.blocks, txn.inodes
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> Sound(d) && L.WhiteoutOpenOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), owner, N.Handle(fino, fgen),
      fname.data, N.Handle(tino, tgen), tname.data, N.Handle(ino, gen), N.Time(s, ns), left)
    ensures st != 0 ==> L.WhiteoutOpenErr(old(AbsOf(d)), WhoOf(c), N.Handle(fino, fgen), fname.data,
      N.Handle(tino, tgen), tname.data, N.Handle(ino, gen), N.Time(s, ns), st)
    ensures st == 0 ==> later
  {
    later, left := false, N.Handle(0, 0);
    st, first := KeptOps.Keep(txn, d, ino, gen, s, ns);
    if st != 0 { return; }
    assert OkIno(d.fs.geometry, ORPHANS) by { NameTree.Basics(d.fs.geometry, d.fs.metas, d.dirs); }
    st, later, left := Whiteout(txn, d, c, owner, fino, fgen, fname, tino, tgen, tname, s, ns);
  }
}
