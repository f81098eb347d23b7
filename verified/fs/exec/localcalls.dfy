// What a local mount asks for beside the procedures of NFS (local.s.dfy, xattr.s.dfy), and what the server does of
// itself, as calls: what each of them comes to stands in the call, which is answered with that.
include "call.dfy"
include "../../trusted/stamps.s.dfy"
include "../procedures/local.dfy"
include "../procedures/kept.dfy"
include "../procedures/exchange.dfy"
include "../procedures/whiteout.dfy"
include "../procedures/xattrs.dfy"
include "../procedures/flags.dfy"
include "../procedures/lists.dfy"

module LocalCalls {
  import opened Machine
  import opened ByteSlice
  import opened TxnS
  import opened Stamps
  import opened VolumeGeometry
  import opened InodeFormat
  import opened Directories
  import opened Permissions
  import opened ProcedureBase
  import opened Abstraction
  import Exec
  import Calls
  import AttributeOps
  import FileOps
  import LocalOps
  import KeptOps
  import ExchangeOps
  import WhiteoutOps
  import XattrOps
  import XattrLists
  import FlagOps
  import ListOps
  import N = NfsState
  import L = NfsLocal
  import X = NfsXattr
  import Room = NfsRoom

  const NOTSYNC: uint32 := 10002

  // ---- ranges of bytes ----

  method Seek(call: Calls.Call, txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64, off: uint64, hole: bool)
    returns (at: uint64, found: bool)
    modifies call`result
    requires Sound(d) && txn.volume == d.fs.volume
    ensures call.result == 0 ==> L.SeekOk(AbsOf(d), WhoOf(c), N.Handle(ino, gen), off, hole, at, found)
    ensures call.result != 0 ==> L.SeekErr(AbsOf(d), WhoOf(c), N.Handle(ino, gen), off, call.result)
  { call.result, at, found := LocalOps.Seek(txn, d, c, ino, gen, off, hole); }

  // the ctime of a file
  predicate Changed(f: N.FS, h: N.Handle, at: N.Time) { N.Live(f, h) && f.nodes[h.ino].attr.ctime == at }
  method Ctime(txn: Txn, d: DirFs, ino: uint64, gen: uint64) returns (live: bool, s: uint64, ns: uint32)
    requires Sound(d) && txn.volume == d.fs.volume
    ensures live <==> N.Live(AbsOf(d), N.Handle(ino, gen))
    ensures live ==> Changed(AbsOf(d), N.Handle(ino, gen), N.Time(s, ns))
  {
    Node(d, ino, gen);
    s, ns := 0, 0;
    var st, ip := OpenHandle(txn, d, ino, gen, true);
    live := st == 0;
    if live { s, ns := GetCtime(ip); }
  }

  // Makes holes of blocks below hi, as many as call.bytes says, down to `at`. guard: only if the ctime is gs, gns, else
  // it comes to NOTSYNC. s2, ns2: the ctime that the file has then.
  method Punch(call: Calls.Call, txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64, lo: uint64, hi: uint64,
    guard: bool, gs: uint64, gns: uint32) returns (at: uint64, s2: uint64, ns2: uint32, ghost now: N.Time)
    modifies call`result, d.Repr()
    requires Sound(d) && txn.volume == d.fs.volume && 0 < call.bytes <= Exec.MOST
    ensures Said(txn, now.seconds, now.nanoseconds)
    ensures call.result == 0 ==> Sound(d) && L.PunchOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(ino, gen), lo, hi,
      at, now) && Changed(AbsOf(d), N.Handle(ino, gen), N.Time(s2, ns2))
    ensures call.result == 0 && guard ==> Changed(old(AbsOf(d)), N.Handle(ino, gen), N.Time(gs, gns))
    ensures call.result != 0 ==> L.PunchErr(old(AbsOf(d)), WhoOf(c), N.Handle(ino, gen), lo, hi, call.result) ||
      (call.result == NOTSYNC && guard && !Changed(old(AbsOf(d)), N.Handle(ino, gen), N.Time(gs, gns)))
  {
    var s, ns := Now(txn);
    now := N.Time(s, ns);
    at := hi;
    var live;
    live, s2, ns2 := Ctime(txn, d, ino, gen);
    if guard && live && (s2 != gs || ns2 != gns) { call.result := NOTSYNC; return; }
    call.result, at := LocalOps.Punch(txn, d, c, ino, gen, lo, hi, (call.bytes + 4095) / 4096, s, ns);
    if call.result == 0 { live, s2, ns2 := Ctime(txn, d, ino, gen); }
  }

  // The file gets the blocks of call.bytes bytes at off. s1, ns1: its ctime before; s2, ns2: then.
  method Allocate(call: Calls.Call, txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64, off: uint64)
    returns (s1: uint64, ns1: uint32, s2: uint64, ns2: uint32, ghost now: N.Time)
    modifies call`result, call`ino, d.Repr(), txn.blocks
    requires Sound(d) && txn.volume == d.fs.volume
    ensures Said(txn, now.seconds, now.nanoseconds)
    ensures call.ino == ino
    ensures call.result == 0 ==> Sound(d) && L.AllocateOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(ino, gen), off,
      call.bytes, now)
    ensures call.result == 0 ==> Changed(old(AbsOf(d)), N.Handle(ino, gen), N.Time(s1, ns1)) &&
      Changed(AbsOf(d), N.Handle(ino, gen), N.Time(s2, ns2))
    ensures call.result != 0 ==>
      L.AllocateErr(old(AbsOf(d)), WhoOf(c), N.Handle(ino, gen), off, call.bytes, call.result)
    ensures call.result == SHRINKFIRST ==> 0 < old(ToFree(d, ino))
    ensures call.result == NOSPC ==> N.IsFile(old(AbsOf(d)), ino) && Lacking(txn, old(StockOf(txn, d)),
      Room.AllocateNeeds(off as int, call.bytes as int, old(AbsOf(d)).nodes[ino].body.held), call.result)
  {
    var s, ns := Now(txn);
    now := N.Time(s, ns);
    call.ino := ino;
    var live;
    live, s1, ns1 := Ctime(txn, d, ino, gen);
    s2, ns2 := 0, 0;
    call.result := LocalOps.Allocate(txn, d, c, ino, gen, off, call.bytes, s, ns);
    if call.result == 0 { live, s2, ns2 := Ctime(txn, d, ino, gen); }
  }

  // ---- two names change places ----

  method Exchange(call: Calls.Call, txn: Txn, d: DirFs, c: Cred, fino: uint64, fgen: uint64, fname: Bytes,
    tino: uint64, tgen: uint64, tname: Bytes) returns (ghost now: N.Time)
    modifies call`result, call`before, call`after, call`before2, call`after2, d.Repr(), txn.blocks
    requires Sound(d) && txn.volume == d.fs.volume
    ensures Said(txn, now.seconds, now.nanoseconds)
    ensures call.result == 0 ==> Sound(d) && Reply(fino, call.before).Some? && Reply(fino, call.after).Some? &&
      Reply(tino, call.before2).Some? && Reply(tino, call.after2).Some? &&
      L.ExchangeOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(fino, fgen), fname.data, N.Handle(tino, tgen),
        tname.data, now, N.Wcc(Reply(fino, call.before).x, Reply(fino, call.after).x),
        N.Wcc(Reply(tino, call.before2).x, Reply(tino, call.after2).x))
    ensures call.result != 0 ==> L.ExchangeErr(old(AbsOf(d)), WhoOf(c), N.Handle(fino, fgen), fname.data,
      N.Handle(tino, tgen), tname.data, call.result)
    ensures call.result == 0 ==> Tells(old(d.fs.metas), d.fs.metas, false)
  {
    var s, ns := Now(txn);
    now := N.Time(s, ns);
    call.result, call.before, call.after, call.before2, call.after2 := ExchangeOps.Exchange(txn, d, c, fino, fgen,
      fname, tino, tgen, tname, s, ns);
  }

  // ---- a name that goes and leaves a whiteout ----

  method Whiteout(call: Calls.Call, txn: Txn, d: DirFs, c: Cred, owner: uint32, fino: uint64, fgen: uint64,
    fname: Bytes, tino: uint64, tgen: uint64, tname: Bytes) returns (ghost left: N.Handle, ghost now: N.Time)
    modifies call`result, call`later, d.Repr(), txn.blocks, txn.inodes
    requires Sound(d) && txn.volume == d.fs.volume
    ensures Said(txn, now.seconds, now.nanoseconds)
    ensures call.result == 0 ==> Sound(d) && L.WhiteoutOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), owner,
      N.Handle(fino, fgen), fname.data, N.Handle(tino, tgen), tname.data, now, left)
    ensures call.result != 0 ==> L.WhiteoutErr(old(AbsOf(d)), WhoOf(c), N.Handle(fino, fgen), fname.data,
      N.Handle(tino, tgen), tname.data, call.result)
    ensures call.later
  {
    var s, ns := Now(txn);
    now := N.Time(s, ns);
    call.result, call.later, left := WhiteoutOps.Whiteout(txn, d, c, owner, fino, fgen, fname, tino, tgen, tname, s,
      ns);
  }

  // The same to a name of a file that is open. first: as below
  method WhiteoutOpen(call: Calls.Call, txn: Txn, d: DirFs, c: Cred, owner: uint32, fino: uint64, fgen: uint64,
    fname: Bytes, tino: uint64, tgen: uint64, tname: Bytes, ino: uint64, gen: uint64)
    returns (first: uint64, ghost left: N.Handle, ghost now: N.Time)
    modifies call`result, call`later, d.Repr(), txn.blocks, txn.inodes
    requires Sound(d) && txn.volume == d.fs.volume
    ensures Said(txn, now.seconds, now.nanoseconds)
    ensures call.result == 0 ==> Sound(d) && L.WhiteoutOpenOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), owner,
      N.Handle(fino, fgen), fname.data, N.Handle(tino, tgen), tname.data, N.Handle(ino, gen), now, left)
    ensures call.result != 0 ==> L.WhiteoutOpenErr(old(AbsOf(d)), WhoOf(c), N.Handle(fino, fgen), fname.data,
      N.Handle(tino, tgen), tname.data, N.Handle(ino, gen), now, call.result)
    ensures call.result == 0 ==> call.later
  {
    var s, ns := Now(txn);
    now := N.Time(s, ns);
    call.result, call.later, first, left := WhiteoutOps.WhiteoutOpen(txn, d, c, owner, fino, fgen, fname, tino, tgen,
      tname, ino, gen, s, ns);
  }

  // ---- open files. first: which one was at the head of the list before, or 0 ----

  method Keep(call: Calls.Call, txn: Txn, d: DirFs, ino: uint64, gen: uint64)
    returns (first: uint64, ghost now: N.Time)
    modifies call`result, d.Repr()
    requires Sound(d) && txn.volume == d.fs.volume
    ensures Said(txn, now.seconds, now.nanoseconds)
    ensures call.result == 0 ==> Sound(d) && L.KeepOk(old(AbsOf(d)), AbsOf(d), N.Handle(ino, gen), now)
    ensures call.result != 0 ==> L.KeepErr(old(AbsOf(d)), N.Handle(ino, gen), call.result)
    ensures call.result == 0 ==> Tells(old(d.fs.metas), d.fs.metas, false)
  {
    var s, ns := Now(txn);
    now := N.Time(s, ns);
    call.result, first := KeptOps.Keep(txn, d, ino, gen, s, ns);
  }

  // at, next: next comes behind `at` now, if it is not 0
  method LetGo(call: Calls.Call, txn: Txn, d: DirFs, ino: uint64, gen: uint64, from: uint64)
    returns (at: uint64, next: uint64, ghost now: N.Time)
    modifies call`result, call`later, d.Repr()
    requires Sound(d) && txn.volume == d.fs.volume
    ensures Said(txn, now.seconds, now.nanoseconds)
    ensures call.result == 0 ==> Sound(d) && L.LetGoOk(old(AbsOf(d)), AbsOf(d), N.Handle(ino, gen), now)
    ensures call.result != 0 ==> L.LetGoErr(old(AbsOf(d)), N.Handle(ino, gen), from == ORPHANS, call.result)
    ensures call.result == 0 ==> Tells(old(d.fs.metas), d.fs.metas, call.later)
  {
    var s, ns := Now(txn);
    now := N.Time(s, ns);
    call.result, call.later, at, next := KeptOps.LetGo(txn, d, ino, gen, from, s, ns);
  }

  method RemoveOpen(call: Calls.Call, txn: Txn, d: DirFs, c: Cred, dino: uint64, dgen: uint64, name: Bytes, ino: uint64,
    gen: uint64) returns (first: uint64, ghost now: N.Time)
    modifies call`result, call`before, call`after, call`later, d.Repr(), txn.blocks
    requires Sound(d) && txn.volume == d.fs.volume
    ensures Said(txn, now.seconds, now.nanoseconds)
    ensures call.result == 0 ==> Sound(d) && Calls.Whole(call.before) && Calls.Whole(call.after) &&
      L.RemoveOpenOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(dino, dgen), name.data, N.Handle(ino, gen),
        now, N.Wcc(ReplyAttr(dino, MetaOf(call.before.data)), ReplyAttr(dino, MetaOf(call.after.data))))
    ensures call.result != 0 ==> L.RemoveOpenErr(old(AbsOf(d)), WhoOf(c), N.Handle(dino, dgen), name.data,
      N.Handle(ino, gen), now, call.result)
    ensures call.result == 0 ==> Tells(old(d.fs.metas), d.fs.metas, call.later)
  {
    var s, ns := Now(txn);
    now := N.Time(s, ns);
    call.result, call.before, call.after, call.later, first := KeptOps.RemoveOpen(txn, d, c, dino, dgen, name, ino, gen,
      s, ns);
  }

  method RenameOpen(call: Calls.Call, txn: Txn, d: DirFs, c: Cred, fino: uint64, fgen: uint64, fname: Bytes,
    tino: uint64, tgen: uint64, tname: Bytes, ino: uint64, gen: uint64) returns (first: uint64, ghost now: N.Time)
    modifies call`result, call`before, call`after, call`before2, call`after2, call`later, d.Repr(), txn.blocks
    requires Sound(d) && txn.volume == d.fs.volume
    ensures Said(txn, now.seconds, now.nanoseconds)
    ensures call.result == 0 ==> Sound(d) && Reply(fino, call.before).Some? && Reply(fino, call.after).Some? &&
      Reply(tino, call.before2).Some? && Reply(tino, call.after2).Some? &&
      L.RenameOpenOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(fino, fgen), fname.data, N.Handle(tino, tgen),
        tname.data, N.Handle(ino, gen), now, N.Wcc(Reply(fino, call.before).x, Reply(fino, call.after).x),
        N.Wcc(Reply(tino, call.before2).x, Reply(tino, call.after2).x))
    ensures call.result != 0 ==> L.RenameOpenErr(old(AbsOf(d)), WhoOf(c), N.Handle(fino, fgen), fname.data,
      N.Handle(tino, tgen), tname.data, N.Handle(ino, gen), now, call.result)
    ensures call.result == 0 ==> Tells(old(d.fs.metas), d.fs.metas, call.later)
    ensures Lacking(txn, old(StockOf(txn, d)), Room.EntryNeeds(), call.result) || old(NoPlace(d, tino, tname.data))
  {
    var s, ns := Now(txn);
    now := N.Time(s, ns);
    call.result, call.before, call.after, call.before2, call.after2, call.later, first := KeptOps.RenameOpen(txn, d, c,
      fino, fgen, fname, tino, tgen, tname, ino, gen, s, ns);
  }

  method Tmpfile(call: Calls.Call, txn: Txn, d: DirFs, c: Cred, dino: uint64, dgen: uint64, a: AttributeOps.Sattr)
    returns (first: uint64, ghost now: N.Time)
    modifies call`result, call`ino, call`file, d.Repr(), txn.inodes
    requires Sound(d) && txn.volume == d.fs.volume
    ensures Said(txn, now.seconds, now.nanoseconds)
    ensures call.result == 0 ==> Sound(d) && Calls.Whole(call.file) &&
      L.TmpfileOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(dino, dgen), AttributeOps.SattrOf(a), now,
        N.Handle(call.ino, MetaOf(call.file.data).gen), ReplyAttr(call.ino, MetaOf(call.file.data)))
    ensures call.result != 0 ==>
      L.TmpfileErr(old(AbsOf(d)), N.Handle(dino, dgen), AttributeOps.SattrOf(a), call.result)
    ensures Lacking(txn, old(StockOf(txn, d)), Room.NamelessNeeds(), call.result)
  {
    var s, ns := Now(txn);
    now := N.Time(s, ns);
    call.result, call.ino, call.file, first := KeptOps.Tmpfile(txn, d, c, dino, dgen, a, s, ns);
  }

  // more: `first` was let go, and there may be others
  method Clear(call: Calls.Call, txn: Txn, d: DirFs) returns (more: bool, first: uint64, ghost now: N.Time)
    modifies call`result, call`later, d.Repr()
    requires Sound(d) && txn.volume == d.fs.volume
    ensures Said(txn, now.seconds, now.nanoseconds)
    ensures call.result == 0 && Sound(d) && L.ClearOk(old(AbsOf(d)), AbsOf(d), now, more)
    ensures more ==> N.Kept(old(AbsOf(d)), first)
    ensures Tells(old(d.fs.metas), d.fs.metas, call.later)
  {
    var s, ns := Now(txn);
    now := N.Time(s, ns);
    call.result, more, call.later, first := KeptOps.Clear(txn, d, s, ns);
  }

  // ---- extended attributes ----

  method GetXattr(call: Calls.Call, txn: Txn, d: DirFs, ino: uint64, gen: uint64, name: Bytes) returns (value: Bytes?)
    modifies call`result
    requires Sound(d) && txn.volume == d.fs.volume
    ensures call.result == 0 ==> value != null && X.GetOk(AbsOf(d), N.Handle(ino, gen), name.data, value.data)
    ensures call.result != 0 ==> X.GetErr(AbsOf(d), N.Handle(ino, gen), name.data, call.result)
  { call.result, value := XattrOps.Get(txn, d, ino, gen, name); }

  method ListXattr(call: Calls.Call, txn: Txn, d: DirFs, ino: uint64, gen: uint64) returns (names: Bytes?)
    modifies call`result
    requires Sound(d) && txn.volume == d.fs.volume
    ensures call.result == 0 ==> names != null && X.ListOk(AbsOf(d), N.Handle(ino, gen), names.data)
    ensures call.result != 0 ==> X.ListErr(AbsOf(d), N.Handle(ino, gen), call.result)
  { call.result, names := XattrOps.List(txn, d, ino, gen); }

  // own: the server's, not for a program: flags do not forbid it
  method SetXattr(call: Calls.Call, txn: Txn, d: DirFs, ino: uint64, gen: uint64, name: Bytes, value: Bytes,
    create: bool, replace: bool, own: bool) returns (ghost now: N.Time)
    modifies call`result, d.Repr(), txn.blocks
    requires Sound(d) && txn.volume == d.fs.volume
    ensures Said(txn, now.seconds, now.nanoseconds)
    ensures call.result == 0 ==> Sound(d) && X.SetOk(old(AbsOf(d)), AbsOf(d), N.Handle(ino, gen), name.data, value.data,
      create, replace, now) && (own || X.MayHave(old(AbsOf(d)), N.Handle(ino, gen)))
    ensures call.result != 0 ==>
      X.SetErr(old(AbsOf(d)), N.Handle(ino, gen), name.data, value.data, create, replace, call.result) ||
      (!own && X.FixedErr(old(AbsOf(d)), N.Handle(ino, gen), call.result))
    ensures call.result == NOSPC ==> X.Bare(N.Handle(ino, gen)) ||
      X.Crowded(X.XattrsOf(old(AbsOf(d)), N.Handle(ino, gen))[name.data := value.data]) ||
      Lacking(txn, old(StockOf(txn, d)), Room.XattrNeeds(), call.result)
  {
    var s, ns := Now(txn);
    now := N.Time(s, ns);
    if !own {
      call.result := FlagOps.MayHave(txn, d, ino, gen);
      if call.result != 0 { return; }
    }
    call.result := XattrOps.Set(txn, d, ino, gen, name, value, create, replace, s, ns);
  }

  method RemoveXattr(call: Calls.Call, txn: Txn, d: DirFs, ino: uint64, gen: uint64, name: Bytes, own: bool)
    returns (ghost now: N.Time)
    modifies call`result, d.Repr(), txn.blocks
    requires Sound(d) && txn.volume == d.fs.volume
    ensures Said(txn, now.seconds, now.nanoseconds)
    ensures call.result == 0 ==> Sound(d) && X.RemoveOk(old(AbsOf(d)), AbsOf(d), N.Handle(ino, gen), name.data,
      now) && (own || X.MayHave(old(AbsOf(d)), N.Handle(ino, gen)))
    ensures call.result != 0 ==> X.RemoveErr(old(AbsOf(d)), N.Handle(ino, gen), name.data, call.result) ||
      (!own && X.FixedErr(old(AbsOf(d)), N.Handle(ino, gen), call.result))
  {
    var s, ns := Now(txn);
    now := N.Time(s, ns);
    if !own {
      call.result := FlagOps.MayHave(txn, d, ino, gen);
      if call.result != 0 { return; }
    }
    call.result := XattrOps.Remove(txn, d, ino, gen, name, s, ns);
  }

  // some: inode ino has a block of them
  method HasXattrs(call: Calls.Call, txn: Txn, d: DirFs, ino: uint64) returns (some: bool)
    modifies call`result
    requires Sound(d) && txn.volume == d.fs.volume
    ensures call.result == 0 && (some <==> ino in AbsOf(d).xattrs)
  {
    var b := XattrOps.Fetch(txn, d, ino);
    some, call.result := b.U64(0) != 0, 0;
  }

  // ---- flags ----

  method Flags(call: Calls.Call, txn: Txn, d: DirFs, ino: uint64, gen: uint64) returns (flags: uint32)
    modifies call`result
    requires Sound(d) && txn.volume == d.fs.volume
    ensures call.result == 0 ==> L.FlagsOk(AbsOf(d), N.Handle(ino, gen), flags)
    ensures call.result != 0 ==> L.FlagsErr(AbsOf(d), N.Handle(ino, gen), call.result)
  { call.result, flags := FlagOps.Flags(txn, d, ino, gen); }

  method SetFlags(call: Calls.Call, txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64, flags: uint32)
    returns (ghost now: N.Time)
    modifies call`result, d.Repr()
    requires Sound(d) && txn.volume == d.fs.volume
    ensures Said(txn, now.seconds, now.nanoseconds)
    ensures call.result == 0 ==> Sound(d) && L.SetFlagsOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(ino, gen), flags,
      now)
    ensures call.result != 0 ==> L.SetFlagsErr(old(AbsOf(d)), WhoOf(c), N.Handle(ino, gen), flags, call.result)
  {
    var s, ns := Now(txn);
    now := N.Time(s, ns);
    call.result := FlagOps.SetFlags(txn, d, c, ino, gen, flags, s, ns);
  }

  // ---- access lists ----

  method Lists(call: Calls.Call, txn: Txn, d: DirFs, ino: uint64, gen: uint64) returns (flags: uint32, mode: uint32)
    modifies call`result
    requires Sound(d) && txn.volume == d.fs.volume
    ensures call.result == 0 ==> L.ListsOk(AbsOf(d), N.Handle(ino, gen), flags, mode)
    ensures call.result != 0 ==> L.ListsErr(AbsOf(d), N.Handle(ino, gen), call.result)
  { call.result, flags, mode := ListOps.Lists(txn, d, ino, gen); }

  method SetList(call: Calls.Call, txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64, dflt: bool, number: uint32,
    sets: bool, rights: uint32) returns (ghost now: N.Time)
    modifies call`result, d.Repr()
    requires Sound(d) && txn.volume == d.fs.volume
    ensures Said(txn, now.seconds, now.nanoseconds)
    ensures call.result == 0 ==> Sound(d) && L.SetListOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(ino, gen), dflt,
      number, if sets then Some(rights) else None, now)
    ensures call.result != 0 ==> L.SetListErr(old(AbsOf(d)), WhoOf(c), N.Handle(ino, gen), dflt, number,
      if sets then Some(rights) else None, call.result)
  {
    var s, ns := Now(txn);
    now := N.Time(s, ns);
    call.result := ListOps.SetList(txn, d, c, ino, gen, dflt, number, sets, rights, s, ns);
  }

  method SetLists(call: Calls.Call, txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64, access: uint32, sets: bool,
    rights: uint32, dflt: uint32) returns (ghost now: N.Time)
    modifies call`result, d.Repr()
    requires Sound(d) && txn.volume == d.fs.volume
    ensures Said(txn, now.seconds, now.nanoseconds)
    ensures call.result == 0 ==> Sound(d) && L.SetListsOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(ino, gen), access,
      if sets then Some(rights) else None, dflt, now)
    ensures call.result != 0 ==> L.SetListsErr(old(AbsOf(d)), WhoOf(c), N.Handle(ino, gen), access,
      if sets then Some(rights) else None, dflt, call.result)
  {
    var s, ns := Now(txn);
    now := N.Time(s, ns);
    call.result := ListOps.SetLists(txn, d, c, ino, gen, access, sets, rights, dflt, s, ns);
  }

  // The table of access lists: what of it lies where the attributes of an inode would that is not there; and one more.
  method Table(call: Calls.Call, txn: Txn, d: DirFs, ino: uint64) returns (b: Bytes, empty: bool)
    modifies call`result
    requires Sound(d) && txn.volume == d.fs.volume
    ensures call.result == 0 && |b.data| == 4096
    ensures if empty then ino !in AbsOf(d).xattrs
      else ino in AbsOf(d).xattrs && XattrLists.ListAt(b.data, 8) == AbsOf(d).xattrs[ino].list
  {
    b, empty := XattrOps.Spare(txn, d, ino);
    call.result := 0;
  }
  method NewList(call: Calls.Call, txn: Txn, d: DirFs, ino: uint64, name: Bytes, value: Bytes)
    modifies call`result, d.Repr(), txn.blocks
    requires Sound(d) && txn.volume == d.fs.volume
    ensures call.result == 0 ==> Sound(d) && X.NewListOk(old(AbsOf(d)), AbsOf(d), ino, name.data, value.data)
    ensures call.result != 0 ==> X.NewListErr(old(AbsOf(d)), ino, name.data, call.result)
  { call.result := XattrOps.NewList(txn, d, ino, name, value); }

  // ---- what the server does of itself ----

  method ForgetXattrs(call: Calls.Call, txn: Txn, d: DirFs, ino: uint64)
    modifies call`result, d.Repr()
    requires Sound(d) && txn.volume == d.fs.volume
    ensures call.result == 0 && Sound(d) && X.ForgetOk(old(AbsOf(d)), AbsOf(d), ino)
  { call.result := XattrOps.Forget(txn, d, ino); }

  // a step of the background; more: there is more to be freed
  method FreeSome(call: Calls.Call, txn: Txn, d: DirFs, max: uint64) returns (more: bool)
    modifies call`result, d.Repr()
    requires Sound(d) && txn.volume == d.fs.volume && OkIno(d.fs.geometry, ORPHANS)
    ensures call.result == 0 && Sound(d) && N.Freed(old(AbsOf(d)), AbsOf(d))
    ensures ORPHANS in d.fs.metas && (more <==> d.fs.metas[ORPHANS].next != 0)
  { call.result, more := OrphanStep(txn, d, max); }

  // a step for a call that waits until what was cut off its file is free (Calls.Shrunk)
  method ShrinkSome(call: Calls.Call, txn: Txn, d: DirFs, ino: uint64, max: uint64) returns (done: bool)
    modifies call`result, d.Repr()
    requires Sound(d) && txn.volume == d.fs.volume && 0 < max
    ensures call.result == 0 && Sound(d) && N.Freed(old(AbsOf(d)), AbsOf(d))
    ensures if done then ToFree(d, ino) == 0 else 0 < ToFree(d, ino) < old(ToFree(d, ino))
  {
    done := Shrink(txn, d, ino, max);
    call.result := 0;
  }

  method Prefetch(call: Calls.Call, txn: Txn, d: DirFs, ino: uint64, gen: uint64, off: uint64, len: uint64)
    modifies call`result
    requires Sound(d) && txn.volume == d.fs.volume
  { call.result := FileOps.Prefetch(txn, d, ino, gen, off, len); }
}
