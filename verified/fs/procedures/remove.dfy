include "base.dfy"
include "../refinement/removal.dfy"
include "../refinement/creation.dfy"
// REMOVE, RMDIR and LINK.
module RemoveOps {
  import opened Machine
  import opened ByteSlice
  import opened TxnS
  import opened VolumeGeometry
  import opened InodeFormat
  import opened ByteFiles
  import opened Directories
  import opened Permissions
  import opened BlockStore
  import Room = NfsRoom
  import opened ProcedureBase
  import opened AttributeChanges
  import opened Abstraction
  import opened Removal
  import EntrySteps
  import NameTree
  import N = NfsState
  import C = NfsCommon
  import P = NfsPerm
  import K = NfsMake
  import U = NfsUnlink

  // The entry that is to go: found, and the caller may take it out. ino is not the directory's.
  method Victim(txn: Txn, d: DirFs, c: Cred, dino: uint64, dir: Bytes, name: Bytes)
    returns (st: uint32, ino: uint64, ip: Bytes)
    requires Sound(d) && txn.volume == d.fs.volume && OkIno(d.fs.geometry, dino) && dino in d.dirs &&
      OkName(name.data) &&
      |dir.data| == 256
    ensures fresh(ip)
    ensures st == 0 ==> name.data in d.dirs[dino] && ino == d.dirs[dino][name.data] && OkIno(d.fs.geometry, ino) &&
      2 < ino
    ensures st == 0 ==> |ip.data| == 256 && ino in d.fs.metas && MetaOf(ip.data) == d.fs.metas[ino] &&
      (ino in d.dirs <==> MetaOf(ip.data).ty == DIR)
    ensures if name.data !in d.dirs[dino] then st == NOENT
      else d.dirs[dino][name.data] in d.fs.metas &&
        st == RefusalS(WhoOf(c), MetaOf(dir.data), d.fs.metas[d.dirs[dino][name.data]])
  {
    var found: bool;
    found, ino := d.Lookup(txn, dino, name, true);
    if !found { st := NOENT; ip := NewBytes(0); return; }
    NameTree.EntryOk(d.fs.geometry, d.fs.metas, d.dirs, dino, name.data);
    st, ip := OpenEntry(txn, d, ino, true);
    if st != 0 { return; }
    st := Refusal(c, dir, ip);
  }

  // sub: RMDIR, else REMOVE. later: the background has work
  method Remove(txn: Txn, d: DirFs, c: Cred, dino: uint64, dgen: uint64, name: Bytes, sub: bool, s: uint64, ns: uint32)
    returns (st: uint32, before: Bytes?, after: Bytes?, later: bool)
    modifies d.Repr(), txn.blocks
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> Sound(d) && before != null && |before.data| == 256 && after != null && |after.data| == 256
    ensures st == 0 && !sub ==> U.RemoveOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(dino, dgen), name.data,
      N.Time(s, ns), N.Wcc(ReplyAttr(dino, MetaOf(before.data)), ReplyAttr(dino, MetaOf(after.data))))
    ensures st == 0 && sub ==> U.RmdirOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(dino, dgen), name.data,
      N.Time(s, ns), N.Wcc(ReplyAttr(dino, MetaOf(before.data)), ReplyAttr(dino, MetaOf(after.data))))
    ensures st != 0 && !sub ==> U.RemoveErr(old(AbsOf(d)), WhoOf(c), N.Handle(dino, dgen), name.data, st)
    ensures st != 0 && sub ==> U.RmdirErr(old(AbsOf(d)), WhoOf(c), N.Handle(dino, dgen), name.data, st)
    ensures st == 0 ==> Tells(old(d.fs.metas), d.fs.metas, later)
    ensures st != 0 ==> N.Seen(old(AbsOf(d)), dino, Reply(dino, before))
  {
    DirStatus(d, dino, dgen, name.data);
    Node(d, dino, dgen);
    after, later := null, false;
    var dots: uint32;
    st, before, dots := OpenDir(txn, d, dino, dgen, name, true);
    if st != 0 { return; }
    if dots != 0 { st := if sub && dots == 2 then EXIST else INVAL; return; }
    st := Deny(c, before, MAYWRITE + MAYEXEC);
    if st != 0 { return; }
    var ino: uint64;
    var ip: Bytes;
    st, ino, ip := Victim(txn, d, c, dino, before, name);
    if name.data in d.dirs[dino] {
      NameTree.EntryOk(d.fs.geometry, d.fs.metas, d.dirs, dino, name.data);
      Node(d, d.dirs[dino][name.data], d.fs.metas[d.dirs[dino][name.data]].gen);
    }
    if st != 0 { return; }
    var ty := GetTy(ip);
    if ty == DIR && !sub { st := ISDIR; return; }
    if ty != DIR && sub { st := NOTDIR; return; }
    if sub {
      var e := d.IsEmpty(txn, ino);
      if !e { st := NOTEMPTY; return; }
    }
    st, after, later := TakeOut(txn, d, dino, dgen, name, ino, sub, s, ns);
  }

  // The entry goes, and what it named loses a link.
  method TakeOut(txn: Txn, d: DirFs, dino: uint64, ghost dgen: uint64, name: Bytes, ino: uint64, sub: bool, s: uint64,
    ns: uint32)
    returns (st: uint32, after: Bytes?, later: bool)
    modifies d.Repr(), txn.blocks
    requires Sound(d) && txn.volume == d.fs.volume && OkIno(d.fs.geometry, dino) && dino != ORPHANS &&
      DirHandleS(d.fs.geometry, d.fs.metas, dino, dgen) == 0
    requires dino in d.dirs && OkName(name.data) && name.data in d.dirs[dino] && d.dirs[dino][name.data] == ino &&
      ino in d.fs.metas && (d.fs.metas[ino].ty == DIR <==> sub)
    requires sub ==> ino in d.dirs && d.dirs[ino] == map[]
    ensures st == 0 && Sound(d) && after != null && |after.data| == 256 && Tells(old(d.fs.metas), d.fs.metas, later)
    ensures N.IsDir(old(AbsOf(d)), dino) && old(AbsOf(d)).nodes[dino].body.names == old(d.dirs)[dino] &&
      ino in old(AbsOf(d)).nodes &&
      U.Unlinked(old(AbsOf(d)), AbsOf(d), dino, name.data, N.Time(s, ns),
        N.Wcc(ReplyAttr(dino, old(d.fs.metas)[dino]), ReplyAttr(dino, MetaOf(after.data))))
  {
    ghost var g, ms, files, held, dirs, places := d.fs.geometry, d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places;
    NameTree.Basics(g, ms, dirs);
    NameTree.EntryOk(g, ms, dirs, dino, name.data);
    assert OkIno(g, ORPHANS) && NameTree.Fits(dino, ms[dino]);
    DirStatus(d, dino, dgen, name.data);
    after, later := null, false;
    assert ino != dino;
    var ok := d.Remove(txn, dino, name);
    if !ok { st := SERVERFAULT; return; }
    ghost var e, at, df, dh, x := d.dirs[dino], d.places[dino], d.fs.files[dino], d.fs.held[dino], d.fs.metas[dino];
    assert d.fs.metas == ms[dino := x] && d.fs.files == files[dino := df] && d.fs.held == held[dino := dh] &&
      d.dirs == dirs[dino := e] && d.places == places[dino := at];
    assert e == C.Del(dirs[dino], name.data);
    forall y: seq<byte> | y in e && y in dirs[dino] && y in PlacesAt(places, dino)
      ensures y in at && at[y] == PlacesAt(places, dino)[y]
    { assert y in d.dirs[dino]; }
    ghost var m := ms[ino];
    var freed: bool;
    st, freed, later := DropLink(txn, d, ino, s, ns);
    if st != 0 { return; }
    ghost var sh, ms2 := LeftoverOf(d.fs.metas[ino]), d.fs.metas;
    assert ms2 == Dropped(ms[dino := x], ino, s, ns, sh, freed);
    EntrySteps.DropApart(ms, dino, x, x, ino, s, ns, sh, freed);
    assert freed ==> LastLink(m) && !NameTree.OnList(m);
    if sub {
      st := AddLink(txn, d, dino, false);
      if st != 0 { return; }
    }
    after := Touch(txn, d, dino, s, ns);
    ghost var dm, dir := d.fs.metas[dino], ms[dino];
    assert d.fs.metas == ms2[dino := dm];
    assert Left(dir, dm, sub, s, ns);
    Gone(g, ms, files, held, dirs, places, d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places, dino, name.data, ino, x,
      dm, df, dh, e, at, s, ns, sh, freed);
    DirStatus(d, dino, dgen, name.data);
  }

  // One more name for a file.
  method Link(txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64, dino: uint64, dgen: uint64, name: Bytes, s: uint64,
    ns: uint32)
    returns (st: uint32, node: Bytes?, before: Bytes?, after: Bytes?)
    modifies d.Repr(), txn.blocks
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> Sound(d) && node != null && |node.data| == 256 && before != null && |before.data| == 256 &&
      after != null && |after.data| == 256
    ensures st == 0 ==> K.LinkOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(ino, gen), N.Handle(dino, dgen), name.data,
      N.Time(s, ns), ReplyAttr(ino, MetaOf(node.data)),
      N.Wcc(ReplyAttr(dino, MetaOf(before.data)), ReplyAttr(dino, MetaOf(after.data))))
    ensures st != 0 ==> K.LinkErr(old(AbsOf(d)), WhoOf(c), N.Handle(ino, gen), N.Handle(dino, dgen), name.data, st)
    ensures st != 0 ==> N.Seen(old(AbsOf(d)), ino, Reply(ino, node)) && N.Seen(old(AbsOf(d)), dino, Reply(dino, before))
    ensures Lacking(txn, old(StockOf(txn, d)), Room.EntryNeeds(), st) || old(NoPlace(d, dino, name.data))
  {
    DirStatus(d, dino, dgen, name.data);
    Node(d, ino, gen);
    Node(d, dino, dgen);
    node, before, after := null, null, null;
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, true);
    if st != 0 { return; }
    node := ip;
    var ty := GetTy(ip);
    var dots: uint32;
    st, before, dots := OpenDir(txn, d, dino, dgen, name, true);
    if st != 0 { return; }
    if dots != 0 { st := EXIST; return; }
    if ty == DIR { st := INVAL; return; }
    ghost var who, dn := WhoOf(c), AbsOf(d).nodes[dino];
    var x := May(c, before, MAYEXEC);
    assert x <==> C.Can(who, dn, P.EXEC);
    if !x { st := ACCES; return; }
    var found, other, hint := d.LookupHint(txn, dino, name, true);
    if found { st := EXIST; return; }
    st := Deny(c, before, MAYWRITE + MAYEXEC);
    assert st == 0 <==> C.Can(who, dn, P.EXEC + P.WRITE);
    if st != 0 { return; }
    var immutable, append := Fixed(ip);
    if immutable || append { st := PERM; return; }
    var nl := GetNlink(ip);
    if nl >= MAXLINK { st := MLINK; return; }
    var np: Bytes?;
    st, np, after := AddName(txn, d, ino, gen, dino, dgen, name, hint, nl, s, ns);
    if st == 0 { node := np; }
    if !old(NoPlace(d, dino, name.data)) { IsLacking(txn, old(StockOf(txn, d)), Room.EntryNeeds(), st); }
  }

  // The name is entered, and the file has a link more.
  method AddName(txn: Txn, d: DirFs, ino: uint64, ghost gen: uint64, dino: uint64, ghost dgen: uint64, name: Bytes,
    hint: uint64, nl: uint32, s: uint64, ns: uint32)
    returns (st: uint32, node: Bytes?, after: Bytes?)
    modifies d.Repr(), txn.blocks
    requires Sound(d) && txn.volume == d.fs.volume && Live(d.fs.geometry, d.fs.metas, ino, gen) &&
      DirHandleS(d.fs.geometry, d.fs.metas, dino, dgen) == 0
    requires d.fs.metas[ino].ty != DIR && d.fs.metas[ino].nlink == nl < MAXLINK && dino in d.dirs &&
      N.Proper(name.data) && name.data !in d.dirs[dino]
    ensures st == 0 || st == NOSPC
    ensures st != 0 ==> Short(txn, old(GotBlocks(txn)), old(GotInodes(txn)), Room.EntryNeeds()) ||
      old(NoPlace(d, dino, name.data))
    ensures st == 0 ==> Sound(d) && node != null && |node.data| == 256 && after != null && |after.data| == 256 &&
      ino in AbsOf(d).nodes && dino in AbsOf(d).nodes
    ensures st == 0 ==> Linked(old(AbsOf(d)), AbsOf(d), ino, dino, name.data, N.Time(s, ns))
    ensures st == 0 ==> ReplyAttr(ino, MetaOf(node.data)) == N.FattrOf(ino, AbsOf(d).nodes[ino]) &&
      ReplyAttr(dino, MetaOf(after.data)) == N.FattrOf(dino, AbsOf(d).nodes[dino])
  {
    ghost var g, ms, files, held, dirs, places := d.fs.geometry, d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places;
    NameTree.Basics(g, ms, dirs);
    assert NameTree.Fits(2, ms[2]) && NameTree.Fits(ino, ms[ino]);
    Node(d, ino, gen);
    Node(d, dino, dgen);
    st, node, after := 0, null, null;
    var ok := d.InsertAt(txn, dino, name, ino, hint);
    if !ok { st := NOSPC; return; }
    ghost var x, df, dh, at := d.fs.metas[dino], d.fs.files[dino], d.fs.held[dino], d.places[dino];
    assert d.fs.metas == ms[dino := x] && d.fs.files == files[dino := df] && d.fs.held == held[dino := dh] &&
      d.places == places[dino := at];
    forall y: seq<byte> | y in dirs[dino] && y in PlacesAt(places, dino)
      ensures y in at && at[y] == PlacesAt(places, dino)[y]
    { assert y in d.dirs[dino]; }
    node := SetLinks(txn, d, ino, nl + 1, s, ns);
    after := Touch(txn, d, dino, s, ns);
    ghost var dm := d.fs.metas[dino];
    ghost var m := Relinked(ms[ino], nl + 1, s, ns);
    assert d.fs.metas == ms[ino := m][dino := dm];
    assert dm == Touched(WithSizeNent(ms[dino], dm.size, dm.nent, dm.used), s, ns);
    Named(g, ms, files, held, dirs, places, d.fs.metas, d.fs.files, d.fs.held, d.dirs, d.places, dino, name.data, ino,
      dm, df, dh, at, s, ns);
    Node(d, dino, dgen);
    Node(d, ino, gen);
  }
  predicate Linked(pre: N.FS, post: N.FS, i: uint64, di: uint64, name: seq<byte>, now: N.Time)
  {
    N.IsDir(pre, di) && N.IsDir(post, di) && i in pre.nodes && pre.nodes[i].attr.nlink < 0x7fff_ffff &&
      post.gens == pre.gens && post.xattrs == pre.xattrs &&
    post.nodes == pre.nodes[i := N.Node(C.SetNlinkCtime(pre.nodes[i].attr, pre.nodes[i].attr.nlink + 1, now),
      pre.nodes[i].body, pre.nodes[i].blocks)][di := post.nodes[di]] &&
    C.DirStep(pre.nodes[di], post.nodes[di], pre.nodes[di].body.names[name := i], pre.nodes[di].attr.nlink as int, now)
  }
}
