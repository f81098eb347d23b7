include "base.dfy"
include "../refinement/resizing.dfy"
include "../spec/xattr.s.dfy"
// What chattr(1) sets and lsattr(1) shows: FlagsOk and SetFlagsOk of local.s.dfy. The procedures that obey flags ask
// for them with permissions (permissions.dfy).
module FlagOps {
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
  import X = NfsXattr

  method Flags(txn: Txn, d: DirFs, ino: uint64, gen: uint64) returns (st: uint32, flags: uint32)
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> L.FlagsOk(AbsOf(d), N.Handle(ino, gen), flags)
    ensures st != 0 ==> L.FlagsErr(AbsOf(d), N.Handle(ino, gen), st)
  {
    Node(d, ino, gen);
    flags := 0;
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, false);
    if st == 0 {
      flags := GetMarks(ip);
      flags := flags % 256;
    }
  }

  // may a program change the extended attributes of a file?
  method MayHave(txn: Txn, d: DirFs, ino: uint64, gen: uint64) returns (st: uint32)
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> X.MayHave(AbsOf(d), N.Handle(ino, gen))
    ensures st != 0 ==> C.HandleErr(AbsOf(d), N.Handle(ino, gen), st) || X.FixedErr(AbsOf(d), N.Handle(ino, gen), st)
  {
    Node(d, ino, gen);
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, true);
    if st != 0 { return; }
    var immutable, append := Fixed(ip);
    if immutable || append { st := PERM; }
  }

  method MaySet(c: Cred, ip: Bytes, flags: uint32) returns (ok: bool)
    requires |ip.data| == 256
    ensures ok <==> L.MaySetFlags(WhoOf(c), MetaAttr(MetaOf(ip.data)), flags)
  {
    var own := IsOwner(c, ip);
    var was := GetMarks(ip);
    was := was % 256;
    var immutable, append := Fixed(ip);
    ok := own && (c.uid == 0 || ((flags / 16 % 2 == 1) == immutable && (flags / 32 % 2 == 1) == append)) &&
      (flags / 16 % 2 == 0 || !immutable || flags == was);
  }

  // The file has these flags from now on.
  method SetFlags(txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64, flags: uint32, s: uint64, ns: uint32)
    returns (st: uint32)
    modifies d.Repr()
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> Sound(d) && L.SetFlagsOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(ino, gen), flags,
      N.Time(s, ns))
    ensures st != 0 ==> L.SetFlagsErr(old(AbsOf(d)), WhoOf(c), N.Handle(ino, gen), flags, st)
  {
    Node(d, ino, gen);
    NameTree.Basics(d.fs.geometry, d.fs.metas, d.dirs);
    ghost var g, ms, files, held, w := d.fs.geometry, d.fs.metas, d.fs.files, d.fs.held, WhoOf(c);
    if flags > 240 || flags % 16 != 0 { return INVAL; }
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, true);
    if st != 0 { return; }
    assert NameTree.Fits(ino, ms[ino]);
    var may := MaySet(c, ip, flags);
    if !may { return PERM; }
    var marks := GetMarks(ip);
    marks := marks / 256 * 256 + flags;
    SetMarks(ip, marks);
    var ts, tns := Stamp(ip, s, ns);
    SetCtime(ip, ts, tns);
    d.PutInode(txn, ino, ip);
    ghost var m := Marked(WithMarks(ms[ino], marks), s, ns);
    assert d.fs.metas == ms[ino := m];
    Resizing.ChangeOk(g, ms, files, held, d.dirs, d.places, ino, m, files[ino], held[ino]);
    assert files[ino := files[ino]] == files && held[ino := held[ino]] == held;
  }
}
