include "base.dfy"
include "../refinement/resizing.dfy"
// READ, WRITE and READLINK.
//
// Reading does not change the access time: one transaction less for every READ,
// and what clients that cache expect (as a mount with noatime).
module FileOps {
  import opened Machine
  import opened ByteSlice
  import opened TxnS
  import opened VolumeGeometry
  import opened InodeFormat
  import opened ByteFiles
  import opened Directories
  import opened Permissions
  import opened AttributeChanges
  import opened BlockStore
  import Room = NfsRoom
  import opened ProcedureBase
  import opened Abstraction
  import opened Resizing
  import NameTree
  import N = NfsState
  import C = NfsCommon
  import P = NfsPerm
  import D = NfsData

  // at most len bytes at off; eof: nothing lies behind them
  method Read(txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64, off: uint64, len: uint64)
    returns (st: uint32, data: Pieces?, eof: bool, after: Bytes?)
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> data != null && after != null && |after.data| == 256 &&
      D.ReadOk(AbsOf(d), WhoOf(c), N.Handle(ino, gen), off, len, data.data, eof, ReplyAttr(ino, MetaOf(after.data)))
    ensures st != 0 ==> D.ReadErr(AbsOf(d), WhoOf(c), N.Handle(ino, gen), st) &&
      N.Seen(AbsOf(d), ino, Reply(ino, after))
  {
    Node(d, ino, gen);
    data, eof, after := null, false, null;
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, false);
    if st != 0 { return; }
    after := ip;
    var ty := GetTy(ip);
    if ty != REG { st := INVAL; return; }
    var r := MayData(c, ip, MAYREAD);
    var x := May(c, ip, MAYEXEC);
    if !r && !x { st := ACCES; return; }
    var size := GetSize(ip);
    eof := off >= size || len >= size - off;
    data := d.fs.Read(txn, ino, off, len);
  }

  // Len bytes at off are about to be read, by whom they may be shown to: nobody sees them, and nothing changes.
  method Prefetch(txn: Txn, d: DirFs, ino: uint64, gen: uint64, off: uint64, len: uint64) returns (st: uint32)
    requires Sound(d) && txn.volume == d.fs.volume
  {
    Node(d, ino, gen);
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, false);
    if st != 0 { return; }
    var ty := GetTy(ip);
    if ty != REG { st := INVAL; return; }
    d.fs.Prefetch(txn, ino, off, len);
  }

  // What WRITE makes of the attributes: k = not root.
  function WrittenMeta(m: Meta, size: uint64, used: uint64, k: bool, s: uint64, ns: uint32): Meta
  { WithMode(Touched(WithSizeUsed(m, size, used), s, ns), if k then P.KillPriv(m.mode) else m.mode) }
  lemma WriteEffect(c: P.Caller, g: Geometry, ms: Metas, files: Files, held: Helds, dirs: NameTree.Dirs,
    places: DirPlaces,
    i: uint64, off: int, bytes: seq<byte>, size: uint64, used: uint64, s: uint64, ns: uint32)
    requires NameTree.TreeOk(g, ms, dirs) && Shown(g, ms, i) && ms[i].ty == REG && i in files && i in held && 0 <= off
    requires used as int == ms[i].used as int + |C.Blocks(off, |bytes|) - held[i]|
    ensures NameTree.TreeOk(g, ms[i := WrittenMeta(ms[i], size, used, c.uid != 0, s, ns)], dirs)
    ensures var p := Abs(g, ms, files, held, dirs, places); i in p.nodes && p.nodes[i].body.File? &&
      Abs(g, ms[i := WrittenMeta(ms[i], size, used, c.uid != 0, s, ns)], files[i := WriteSpec(files[i], off, bytes)],
        held[i := held[i] + C.Blocks(off, |bytes|)], dirs, places) ==
        C.Put(p, i, D.Written(c, p.nodes[i], off, bytes, N.Time(s, ns)))
  {
    NameTree.Basics(g, ms, dirs);
    var m := ms[i];
    assert NameTree.Fits(i, m);
    At(g, ms, files, held, dirs, places, i);
    var f := WriteSpec(files[i], off, bytes);
    WriteIs(files[i], off, bytes);
    var mode := m.mode;
    assert P.KillPriv(mode) < 4096;
    ChangeOk(g, ms, files, held, dirs, places, i, WrittenMeta(m, size, used, c.uid != 0, s, ns), f,
      held[i] + C.Blocks(off, |bytes|));
  }
  lemma WriteIs(f: seq<byte>, off: int, s: seq<byte>)
    requires 0 <= off
    ensures WriteSpec(f, off, s) == C.WriteAt(f, off, s)
  { }

  // write src[so..so+len] at off
  method Write(txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64, off: uint64, src: Bytes, so: uint64, len: uint64,
    s: uint64, ns: uint32)
    returns (st: uint32, before: Bytes?, after: Bytes?)
    modifies d.Repr(), txn.blocks
    requires Sound(d) && txn.volume == d.fs.volume && so as int + len as int <= |src.data|
    ensures st == 0 ==> Sound(d) && before != null && |before.data| == 256 && after != null && |after.data| == 256
    ensures st == 0 ==> D.WriteOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(ino, gen), off,
      src.data[so as int .. so as int + len as int], N.Time(s, ns),
      N.Wcc(ReplyAttr(ino, MetaOf(before.data)), ReplyAttr(ino, MetaOf(after.data))))
    ensures st != 0 ==> D.WriteErr(old(AbsOf(d)), WhoOf(c), N.Handle(ino, gen), off,
      src.data[so as int .. so as int + len as int], st) && N.Seen(old(AbsOf(d)), ino, Reply(ino, before))
    ensures st == SHRINKFIRST ==> 0 < old(ToFree(d, ino))
    ensures Lacking(txn, old(StockOf(txn, d)), Room.WriteNeeds(off, src.data[so as int .. so as int + len as int]), st)
  {
    Node(d, ino, gen);
    before, after := null, null;
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, true);
    if st != 0 { return; }
    before := ip;
    var ty := GetTy(ip);
    if ty != REG { st := INVAL; return; }
    if off > MAXFILE || len > MAXFILE - off { st := FBIG; return; }
    st := DenyData(c, ip, false);
    if st != 0 { return; }
    var size := GetSize(ip);
    if off != size {
      var immutable, append := Fixed(ip);
      if append { st := PERM; return; }
    }
    if len == 0 { after := ip; return; }
    var shrink := GetShrink(ip);
    if shrink != 0 && off + len > size { st := SHRINKFIRST; return; }
    st, after := Put(txn, d, c, ino, gen, off, src, so, len, s, ns);
    IsLacking(txn, old(StockOf(txn, d)), Room.WriteNeeds(off, src.data[so as int .. so as int + len as int]), st);
  }

  // the bytes, and the attributes that go with them
  method Put(txn: Txn, d: DirFs, c: Cred, ino: uint64, ghost gen: uint64, off: uint64, src: Bytes, so: uint64,
    len: uint64, s: uint64, ns: uint32)
    returns (st: uint32, after: Bytes?)
    modifies d.Repr(), txn.blocks
    requires Sound(d) && txn.volume == d.fs.volume && so as int + len as int <= |src.data| && 0 < len
    requires Live(d.fs.geometry, d.fs.metas, ino, gen) && d.fs.metas[ino].ty == REG &&
      MayWrite(d.fs.metas[ino], off as int + len as int)
    ensures st == 0 || (st == NOSPC && ino in old(d.fs.held) &&
      !(C.Blocks(off as int, len as int) <= old(d.fs.held)[ino]))
    ensures st != 0 ==> txn.blocks.Dry() && GotBlocks(txn) < old(GotBlocks(txn)) + Room.Bytes(off as int, len as int)
    ensures st == 0 ==> Sound(d) && after != null && |after.data| == 256 && ino in AbsOf(d).nodes &&
      ReplyAttr(ino, MetaOf(after.data)) == N.FattrOf(ino, AbsOf(d).nodes[ino])
    ensures st == 0 ==> Stored(old(AbsOf(d)), AbsOf(d), WhoOf(c), ino, off as int,
      src.data[so as int .. so as int + len as int], N.Time(s, ns))
  {
    ghost var ms, files, held, bytes := d.fs.metas, d.fs.files, d.fs.held,
      src.data[so as int .. so as int + len as int];
    st, after := 0, null;
    Node(d, ino, gen);
    var ok := d.Write(txn, ino, off, src, so, len);
    if !ok { st := NOSPC; return; }
    var np := d.fs.GetInode(txn, ino, true);
    var ts, tns := Stamp(np, s, ns);
    SetMtime(np, ts, tns);
    SetCtime(np, ts, tns);
    if c.uid != 0 {
      var mode := GetMode(np);
      SetMode(np, KillPriv(mode));
    }
    d.PutInode(txn, ino, np);
    after := np;
    assert d.fs.metas == ms[ino := WrittenMeta(ms[ino], |d.fs.files[ino]| as uint64, d.fs.metas[ino].used, c.uid != 0,
      s, ns)];
    WriteEffect(WhoOf(c), d.fs.geometry, ms, files, held, d.dirs, d.places, ino, off as int, bytes,
      |d.fs.files[ino]| as uint64, d.fs.metas[ino].used, s, ns);
    Node(d, ino, gen);
  }
  predicate Stored(f: N.FS, post: N.FS, c: P.Caller, i: uint64, off: int, data: seq<byte>, now: N.Time)
  { i in f.nodes && f.nodes[i].body.File? && 0 <= off && post == C.Put(f, i, D.Written(c, f.nodes[i], off, data, now)) }

  method Readlink(txn: Txn, d: DirFs, ino: uint64, gen: uint64) returns (st: uint32, target: Bytes?, after: Bytes?)
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> target != null && after != null && |after.data| == 256 &&
      D.ReadlinkOk(AbsOf(d), N.Handle(ino, gen), target.data, ReplyAttr(ino, MetaOf(after.data)))
    ensures st != 0 ==> D.ReadlinkErr(AbsOf(d), N.Handle(ino, gen), st) && N.Seen(AbsOf(d), ino, Reply(ino, after))
  {
    Node(d, ino, gen);
    target, after := null, null;
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, false);
    if st != 0 { return; }
    after := ip;
    var ty := GetTy(ip);
    if ty != LNK { st := INVAL; return; }
    var size := GetSize(ip);
    // not on a sound volume
    if size > 4096 {
      NameTree.Basics(d.fs.geometry, d.fs.metas, d.dirs);
      assert NameTree.Fits(ino, d.fs.metas[ino]);
      st := SERVERFAULT;
      return;
    }
    var p := d.fs.Read(txn, ino, 0, 4096);
    target := p.Join();
    assert d.fs.files[ino][0 .. |d.fs.files[ino]|] == d.fs.files[ino];
  }
}
