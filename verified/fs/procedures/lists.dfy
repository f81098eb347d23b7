include "base.dfy"
include "../refinement/resizing.dfy"
include "../spec/xattr.s.dfy"
// The access lists that a file has: ListsOk, SetListOk, and SetListsOk of local.s.dfy. What they allow is asked for
// with permissions (permissions.dfy); new files get theirs in attributes.dfy.
module ListOps {
  import opened Machine
  import opened ByteSlice
  import opened TxnS
  import opened VolumeGeometry
  import opened InodeFormat
  import opened Directories
  import opened Permissions
  import opened AttributeChanges
  import opened ProcedureBase
  import opened Abstraction
  import Resizing
  import NameTree
  import N = NfsState
  import P = NfsPerm
  import C = NfsCommon
  import L = NfsLocal

  // the numbers that a file has, among its flags, and its mode
  method Lists(txn: Txn, d: DirFs, ino: uint64, gen: uint64) returns (st: uint32, flags: uint32, mode: uint32)
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> L.ListsOk(AbsOf(d), N.Handle(ino, gen), flags, mode)
    ensures st != 0 ==> L.ListsErr(AbsOf(d), N.Handle(ino, gen), st)
  {
    Node(d, ino, gen);
    flags, mode := 0, 0;
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, false);
    if st != 0 { return; }
    flags := GetMarks(ip);
    mode := GetMode(ip);
  }

  // 0, or why the caller may not give ip that list
  method MaySet(c: Cred, ip: Bytes, dflt: bool, number: uint32) returns (st: uint32)
    requires |ip.data| == 256
    ensures var m := MetaOf(ip.data); var may := P.IsOwner(WhoOf(c), m.uid) && !FixedS(m);
      (st == 0 <==> m.ty != LNK && may && (dflt && number != 0 ==> m.ty == DIR)) &&
      (st != 0 ==> (st == INVAL && m.ty == LNK) || (st == PERM && !may) ||
        (st == ACCES && dflt && number != 0 && m.ty != DIR))
  {
    var ty := GetTy(ip);
    if ty == LNK { return INVAL; }
    var own := IsOwner(c, ip);
    var immutable, append := Fixed(ip);
    if !own || immutable || append { return PERM; }
    st := if dflt && number != 0 && ty != DIR then ACCES else 0;
  }

  // the mode after an access list with these rights of owner, mask, and others was set
  method NewMode(c: Cred, ip: Bytes, rights: uint32) returns (mode: uint32)
    requires |ip.data| == 256
    ensures var m := MetaOf(ip.data); mode == L.ListMode(WhoOf(c), m.mode, m.gid, rights) && mode < 4096
  {
    mode := GetMode(ip);
    mode := mode / 512 % 8 * 512 + rights % 512;
    var gid := GetGid(ip);
    var mine := InGroup(c, gid);
    if c.uid != 0 && !mine { mode := DropSetgid(mode); }
  }

  function NewMarks(flags: uint32, dflt: bool, number: uint32): uint32
    requires number <= 4095
  { if dflt then L.WithDefault(flags, number) else L.WithAccess(flags, number) }
  // m with the list
  function Given(w: P.Caller, m: Meta, dflt: bool, number: uint32, sets: bool, rights: uint32, s: uint64,
    ns: uint32): Meta
    requires number <= 4095
  {
    Marked(WithMarks(WithMode(m, if sets then L.ListMode(w, m.mode, m.gid, rights) else m.mode),
      NewMarks(m.marks, dflt, number)), s, ns)
  }
  lemma GivenIs(w: P.Caller, m: Meta, dflt: bool, number: uint32, sets: bool, rights: uint32, s: uint64, ns: uint32)
    requires number <= 4095
    ensures var q := Given(w, m, dflt, number, sets, rights, s, ns); MetaAttr(q) == L.ListAttr(w, MetaAttr(m), dflt,
      number, if sets then Some(rights) else None, N.Time(s, ns)) && NameTree.SameTree(m, q) && q.gen == m.gen &&
      q == WithAttr(m, MetaAttr(q))
  { }
  lemma GivenFits(i: uint64, w: P.Caller, m: Meta, dflt: bool, number: uint32, sets: bool, rights: uint32, s: uint64,
    ns: uint32)
    requires number <= 4095 && NameTree.Fits(i, m) && m.ty != 0 &&
      Given(w, m, dflt, number, sets, rights, s, ns).mode < 4096
    ensures NameTree.Fits(i, Given(w, m, dflt, number, sets, rights, s, ns))
  { }
  // the same of a node, as the specification has it
  lemma NodeGiven(w: P.Caller, m: Meta, f: seq<byte>, h: set<int>, names: map<seq<byte>, uint64>,
    at: map<seq<byte>, int>, dflt: bool, number: uint32, sets: bool, rights: uint32, s: uint64, ns: uint32)
    requires number <= 4095
    ensures var n := NodeOf(m, f, h, names, at); NodeOf(Given(w, m, dflt, number, sets, rights, s, ns), f, h, names,
      at) == N.Node(L.ListAttr(w, n.attr, dflt, number, if sets then Some(rights) else None, N.Time(s, ns)), n.body,
      n.blocks)
  { GivenIs(w, m, dflt, number, sets, rights, s, ns); }

  // ip with the list
  method Give(c: Cred, ip: Bytes, dflt: bool, number: uint32, sets: bool, rights: uint32, s: uint64, ns: uint32)
    modifies ip
    requires |ip.data| == 256 && ip != c.gids && number <= 4095
    ensures Keeps(old(ip.data), ip.data) && (MetaOf(old(ip.data)).mode < 4096 ==> MetaOf(ip.data).mode < 4096)
    ensures MetaOf(ip.data) == Given(WhoOf(c), MetaOf(old(ip.data)), dflt, number, sets, rights, s, ns)
  {
    if sets {
      var mode := NewMode(c, ip, rights);
      InodeFormat.SetMode(ip, mode);
    }
    var flags := GetMarks(ip);
    flags := if dflt then flags % 1048576 + number * 1048576
      else flags / 1048576 * 1048576 + number * 256 + flags % 256;
    SetMarks(ip, flags);
    var ts, tns := Stamp(ip, s, ns);
    SetCtime(ip, ts, tns);
  }

  // The file has this list from now on. sets: rights are those of its mode.
  method SetList(txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64, dflt: bool, number: uint32, sets: bool,
    rights: uint32, s: uint64, ns: uint32) returns (st: uint32)
    modifies d.Repr()
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> Sound(d) && L.SetListOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(ino, gen), dflt, number,
      if sets then Some(rights) else None, N.Time(s, ns))
    ensures st != 0 ==> L.SetListErr(old(AbsOf(d)), WhoOf(c), N.Handle(ino, gen), dflt, number,
      if sets then Some(rights) else None, st)
  {
    Node(d, ino, gen);
    NameTree.Basics(d.fs.geometry, d.fs.metas, d.dirs);
    ghost var g, ms, files, held, w := d.fs.geometry, d.fs.metas, d.fs.files, d.fs.held, WhoOf(c);
    if number > 4095 || (sets && rights >= 512) { return INVAL; }
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, true);
    if st != 0 { return; }
    assert NameTree.Fits(ino, ms[ino]);
    st := MaySet(c, ip, dflt, number);
    if st != 0 { return; }
    ghost var was := ms[ino];
    ghost var m := Given(w, was, dflt, number, sets, rights, s, ns);
    Give(c, ip, dflt, number, sets, rights, s, ns);
    assert MetaOf(ip.data) == m && m.mode < 4096;
    GivenIs(w, was, dflt, number, sets, rights, s, ns);
    GivenFits(ino, w, was, dflt, number, sets, rights, s, ns);
    NodeGiven(w, was, FileAt(files, ino), HeldAt(held, ino), DirAt(d.dirs, ino), PlacesAt(d.places, ino), dflt, number,
      sets, rights, s, ns);
    d.PutInode(txn, ino, ip);
    assert d.fs.metas == ms[ino := m];
    Resizing.ChangeOk(g, ms, files, held, d.dirs, d.places, ino, m, files[ino], held[ino]);
    assert files[ino := files[ino]] == files && held[ino := held[ino]] == held;
  }

  // An access list leaves what flags forbid.
  lemma LowFlags(flags: uint32)
    ensures P.IsImmutable(flags) == P.IsImmutable(flags % 256) && P.IsAppendOnly(flags) == P.IsAppendOnly(flags % 256)
  {
    var high, low := flags / 256, flags % 256;
    assert flags == 256 * high + low;
    assert flags / 16 == 16 * high + low / 16;
    assert flags / 32 == 8 * high + low / 32;
  }
  lemma ForbidsAsMuch(flags: uint32, number: uint32)
    requires number <= 4095
    ensures var q := L.WithAccess(flags, number); P.IsImmutable(q) == P.IsImmutable(flags) &&
      P.IsAppendOnly(q) == P.IsAppendOnly(flags)
  {
    var q := L.WithAccess(flags, number);
    assert q % 256 == flags % 256;
    LowFlags(q);
    LowFlags(flags);
  }
  // What the second list comes to after the first: what both come to, or what forbids it by itself.
  lemma SecondList(f: N.FS, mid: N.FS, post: N.FS, w: P.Caller, h: N.Handle, access: uint32, rights: Option<uint32>,
    dflt: uint32, now: N.Time, st: uint32)
    requires L.SetListOk(f, mid, w, h, false, access, rights, now)
    requires if st == 0 then L.SetListOk(mid, post, w, h, true, dflt, None, now)
      else L.SetListErr(mid, w, h, true, dflt, None, st)
    ensures st == 0 ==> L.SetListsOk(f, post, w, h, access, rights, dflt, now)
    ensures st != 0 ==> L.SetListErr(f, w, h, true, dflt, None, st)
  {
    ForbidsAsMuch(f.nodes[h.ino].attr.flags, access);
    var n, m := f.nodes[h.ino], mid.nodes[h.ino];
    assert m.attr.uid == n.attr.uid && m.body == n.body;
    assert L.MaySetList(w, m) == L.MaySetList(w, n);
  }

  // The file has both lists from now on. sets: rights are those of its mode.
  method SetLists(txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64, access: uint32, sets: bool, rights: uint32,
    dflt: uint32, s: uint64, ns: uint32) returns (st: uint32)
    modifies d.Repr()
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> Sound(d) && L.SetListsOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(ino, gen), access,
      if sets then Some(rights) else None, dflt, N.Time(s, ns))
    ensures st != 0 ==> L.SetListsErr(old(AbsOf(d)), WhoOf(c), N.Handle(ino, gen), access,
      if sets then Some(rights) else None, dflt, st)
  {
    st := SetList(txn, d, c, ino, gen, false, access, sets, rights, s, ns);
    if st != 0 { return; }
    ghost var mid := AbsOf(d);
    st := SetList(txn, d, c, ino, gen, true, dflt, false, 0, s, ns);
    SecondList(old(AbsOf(d)), mid, AbsOf(d), WhoOf(c), N.Handle(ino, gen), access, if sets then Some(rights) else None,
      dflt, N.Time(s, ns), st);
  }
}
