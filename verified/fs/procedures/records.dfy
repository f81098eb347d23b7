include "base.dfy"
include "../spec/once.s.dfy"
// The records of calls that were answered: how they lie on disk, and how one is looked for.
//
//    0 u32       1; 0: there is none   4 u32 nanoseconds of at, for those who share the places out
//    8 at u64    seconds
//   16 key       32 bytes
//   48 ino 56 gen u64    the file   64 ctime u64 72 ctimens u32
//   80 client    16 bytes: whose it is, for those who share the places out; the proofs do not look at it
//   96 zero
module Records {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened Marshal
  import opened TxnS
  import opened VolumeGeometry
  import opened InodeFormat
  import opened AttributeChanges
  import opened Directories
  import opened Permissions
  import opened ProcedureBase
  import opened Abstraction
  import NameTree
  import N = NfsState
  import O = NfsOnce

  function KeyAt(b: seq<byte>): O.Key
    requires |b| == 256
  { O.Key(U64At(b, 16), U64At(b, 24), U64At(b, 32), U64At(b, 40)) }
  function AtOf(b: seq<byte>): uint64
    requires |b| == 256
  { U64At(b, 8) }
  function RecordAt(b: seq<byte>): O.Record
    requires |b| == 256
  { O.Record(KeyAt(b), AtOf(b), N.Handle(U64At(b, 48), U64At(b, 56)), N.Time(U64At(b, 64), U32At(b, 72))) }
  predicate Full(b: seq<byte>) { |b| == 256 && U32At(b, 0) == 1 }
  // what the volume has of them
  function {:opaque} RepliesOf(s: Slots): O.Replies reads s
  { map i | 0 <= i < |s.recs| && Full(s.recs[i]) :: RecordAt(s.recs[i]) }

  // What comes with a call: a record with the time and the key, and no file yet; the place it is to have; `look`: the
  // place may have the record of this very call, which counts if it is not older than `since`.
  predicate Comes(s: Slots, i: uint64, r: Bytes) reads s, r { s.Valid() && i as int < |s.recs| && |r.data| == 256 }

  // Whether place i has a record with the key of r that counts, and what it says.
  method Look(txn: Txn, i: uint64, r: Bytes, since: uint64) returns (found: bool, h: N.Handle, t: N.Time)
    requires Comes(txn.slots, i, r)
    ensures found <==> O.Counts(RepliesOf(txn.slots), i as int, KeyAt(r.data), since)
    ensures found ==> RepliesOf(txn.slots)[i as int].file == h && RepliesOf(txn.slots)[i as int].ctime == t
  {
    reveal RepliesOf();
    var b := txn.ReadSlot(i);
    var full, at := b.U32(0), b.U64(8);
    var a0, b0, c0, d0 := b.U64(16), b.U64(24), b.U64(32), b.U64(40);
    var a1, b1, c1, d1 := r.U64(16), r.U64(24), r.U64(32), r.U64(40);
    found := full == 1 && since <= at && a0 == a1 && b0 == b1 && c0 == c1 && d0 == d1;
    var ino, gen, s, ns := b.U64(48), b.U64(56), b.U64(64), b.U32(72);
    h, t := N.Handle(ino, gen), N.Time(s, ns);
  }

  // place i has the record r now, with this file and its ctime
  method Keep(txn: Txn, i: uint64, r: Bytes, ino: uint64, gen: uint64, s: uint64, ns: uint32)
    modifies txn.slots
    requires Comes(txn.slots, i, r)
    ensures txn.slots.Valid() && |txn.slots.recs| == |old(txn.slots.recs)|
    ensures RepliesOf(txn.slots) == old(RepliesOf(txn.slots))[i as int :=
      O.Record(KeyAt(r.data), AtOf(r.data), N.Handle(ino, gen), N.Time(s, ns))]
  {
    reveal RepliesOf();
    var b := NewBytes(256);
    b.CopyFrom(0, r, 0, 256);
    assert b.data == r.data;
    Put32(b, 0, 1);
    Put64(b, 48, ino);
    Put64(b, 56, gen);
    Put64(b, 64, s);
    Put32(b, 72, ns);
    ghost var pre := RepliesOf(txn.slots);
    txn.WriteSlot(i, b);
    assert RecordAt(b.data) == O.Record(KeyAt(r.data), AtOf(r.data), N.Handle(ino, gen), N.Time(s, ns));
    ghost var post := RepliesOf(txn.slots);
    assert i as int in post && post[i as int] == RecordAt(b.data);
    forall k: int
      ensures (k in post <==> k == i as int || k in pre) && (k in post && k != i as int ==> post[k] == pre[k]) { }
  }

  // A name in a directory. ok: it is one, and may have such a name. What the name stands for has handle (ino, gen), and
  // attributes in node.
  method Entry(txn: Txn, d: DirFs, dino: uint64, dgen: uint64, name: Bytes)
    returns (ok: bool, found: bool, ino: uint64, gen: uint64, node: Bytes?, dir: Bytes?)
    requires Sound(d) && txn.volume == d.fs.volume
    ensures ok <==> N.LiveDir(AbsOf(d), N.Handle(dino, dgen)) && N.Proper(name.data)
    ensures !ok ==> forall h :: !O.Named(AbsOf(d), N.Handle(dino, dgen), name.data, h)
    ensures ok ==> Reply(dino, dir) == Some(N.FattrOf(dino, AbsOf(d).nodes[dino]))
    ensures ok ==> (found <==> name.data in AbsOf(d).nodes[dino].body.names)
    ensures ok && !found ==> O.Absent(AbsOf(d), N.Handle(dino, dgen), name.data)
    ensures ok && found ==> O.Named(AbsOf(d), N.Handle(dino, dgen), name.data, N.Handle(ino, gen)) &&
      Reply(ino, node) == Some(N.FattrOf(ino, AbsOf(d).nodes[ino]))
  {
    DirStatus(d, dino, dgen, name.data);
    Node(d, dino, dgen);
    if N.LiveDir(AbsOf(d), N.Handle(dino, dgen)) && name.data in d.dirs[dino] {
      NameTree.EntryOk(d.fs.geometry, d.fs.metas, d.dirs, dino, name.data);
    }
    ok, found, ino, gen, node := false, false, 0, 0, null;
    var st, dots: uint32;
    st, dir, dots := OpenDir(txn, d, dino, dgen, name, false);
    if st != 0 || dots != 0 { return; }
    found, ino := d.Lookup(txn, dino, name, false);
    if !found { ok := true; return; }
    var ip: Bytes;
    st, ip := OpenEntry(txn, d, ino, false);
    if st != 0 { return; }
    node := ip;
    gen := GetGen(ip);
    Node(d, ino, gen);
    ok := true;
  }

  // Whether what the calls of each kind have done is still there, and the attributes for the answer.
  method MadeAgain(txn: Txn, d: DirFs, i: uint64, r: Bytes, since: uint64, dino: uint64, dgen: uint64, name: Bytes)
    returns (again: bool, ino: uint64, node: Bytes?, dir: Bytes?)
    requires Sound(d) && txn.volume == d.fs.volume && Comes(txn.slots, i, r)
    ensures again <==> O.Again(RepliesOf(txn.slots), i as int, KeyAt(r.data), since, AbsOf(d),
      O.Make(N.Handle(dino, dgen), name.data))
    ensures again ==> AnsweredMake(AbsOf(d), RepliesOf(txn.slots), i as int, dino, ino, Reply(ino, node),
      Reply(dino, dir))
  {
    again, ino, node, dir := false, 0, null, null;
    var found, h, t := Look(txn, i, r, since);
    if !found { return; }
    var ok, there, gen;
    ok, there, ino, gen, node, dir := Entry(txn, d, dino, dgen, name);
    if !ok || !there || h != N.Handle(ino, gen) { return; }
    var s, ns := GetCtime(node);
    again := t == N.Time(s, ns);
  }
  predicate AnsweredMake(f: N.FS, rs: O.Replies, i: int, dino: uint64, ino: uint64, node: Option<N.Fattr>,
    dir: Option<N.Fattr>)
  { i in rs && rs[i].file.ino == ino && ino in f.nodes && dino in f.nodes &&
    node == Some(N.FattrOf(ino, f.nodes[ino])) && dir == Some(N.FattrOf(dino, f.nodes[dino])) }

  method LinkedAgain(txn: Txn, d: DirFs, i: uint64, r: Bytes, since: uint64, fino: uint64, fgen: uint64, dino: uint64,
    dgen: uint64, name: Bytes)
    returns (again: bool, node: Bytes?, dir: Bytes?)
    requires Sound(d) && txn.volume == d.fs.volume && Comes(txn.slots, i, r)
    ensures again <==> O.Again(RepliesOf(txn.slots), i as int, KeyAt(r.data), since, AbsOf(d),
      O.Link(N.Handle(fino, fgen), N.Handle(dino, dgen), name.data))
    ensures again ==> AnsweredMake(AbsOf(d), RepliesOf(txn.slots), i as int, dino, fino, Reply(fino, node),
      Reply(dino, dir))
  {
    again, node, dir := false, null, null;
    var found, h, t := Look(txn, i, r, since);
    if !found || h != N.Handle(fino, fgen) { return; }
    var ok, there, ino, gen;
    ok, there, ino, gen, node, dir := Entry(txn, d, dino, dgen, name);
    again := ok && there && h == N.Handle(ino, gen);
  }

  method UnlinkedAgain(txn: Txn, d: DirFs, i: uint64, r: Bytes, since: uint64, dino: uint64, dgen: uint64, name: Bytes)
    returns (again: bool, dir: Bytes?)
    requires Sound(d) && txn.volume == d.fs.volume && Comes(txn.slots, i, r)
    ensures again <==> O.Again(RepliesOf(txn.slots), i as int, KeyAt(r.data), since, AbsOf(d),
      O.Unlink(N.Handle(dino, dgen), name.data))
    ensures again ==> dino in AbsOf(d).nodes && Reply(dino, dir) == Some(N.FattrOf(dino, AbsOf(d).nodes[dino]))
  {
    again, dir := false, null;
    var found, h, t := Look(txn, i, r, since);
    if !found { return; }
    var ok, there, ino, gen, node;
    ok, there, ino, gen, node, dir := Entry(txn, d, dino, dgen, name);
    again := ok && !there;
  }

  method RenamedAgain(txn: Txn, d: DirFs, i: uint64, r: Bytes, since: uint64, fino: uint64, fgen: uint64, fname: Bytes,
    tino: uint64, tgen: uint64, tname: Bytes)
    returns (again: bool, from: Bytes?, to: Bytes?)
    requires Sound(d) && txn.volume == d.fs.volume && Comes(txn.slots, i, r)
    ensures again <==> O.Again(RepliesOf(txn.slots), i as int, KeyAt(r.data), since, AbsOf(d),
      O.Rename(N.Handle(fino, fgen), fname.data, N.Handle(tino, tgen), tname.data))
    ensures again ==> fino in AbsOf(d).nodes && Reply(fino, from) == Some(N.FattrOf(fino, AbsOf(d).nodes[fino]))
    ensures again ==> tino in AbsOf(d).nodes && Reply(tino, to) == Some(N.FattrOf(tino, AbsOf(d).nodes[tino]))
  {
    again, from, to := false, null, null;
    var found, h, t := Look(txn, i, r, since);
    if !found { return; }
    var fok, there, ino, gen, node;
    fok, there, ino, gen, node, from := Entry(txn, d, fino, fgen, fname);
    if !fok || (there && h != N.Handle(ino, gen)) { return; }
    var tok, tthere;
    tok, tthere, ino, gen, node, to := Entry(txn, d, tino, tgen, tname);
    again := tok && tthere && h == N.Handle(ino, gen);
  }

  method SetAgain(txn: Txn, d: DirFs, i: uint64, r: Bytes, since: uint64, ino: uint64, gen: uint64)
    returns (again: bool, node: Bytes?)
    requires Sound(d) && txn.volume == d.fs.volume && Comes(txn.slots, i, r)
    ensures again <==> O.Again(RepliesOf(txn.slots), i as int, KeyAt(r.data), since, AbsOf(d),
      O.Set(N.Handle(ino, gen)))
    ensures again ==> ino in AbsOf(d).nodes && Reply(ino, node) == Some(N.FattrOf(ino, AbsOf(d).nodes[ino]))
  {
    again, node := false, null;
    var found, h, t := Look(txn, i, r, since);
    if !found { return; }
    Node(d, ino, gen);
    var st, ip := OpenHandle(txn, d, ino, gen, false);
    if st != 0 { return; }
    node := ip;
    var s, ns := GetCtime(ip);
    again := t == N.Time(s, ns);
  }
}
