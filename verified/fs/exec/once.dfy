include "call.dfy"
include "../../trusted/stamps.s.dfy"
include "../procedures/create.dfy"
include "../procedures/remove.dfy"
include "../procedures/rename.dfy"
include "../procedures/records.dfy"
// The procedures that must not be done twice: each looks whether it was done, or does it and leaves a record. What
// comes with a call is described at Comes in records.dfy; `look` says whether there may be a record of it. `again`:
// there was one. Without a place for a record (r is null) it is the plain procedure. What it comes to stands in the
// call, which is answered with that.
module OnceCalls {
  import opened Machine
  import opened ByteSlice
  import opened TxnS
  import opened Stamps
  import opened InodeFormat
  import opened AttributeChanges
  import opened Directories
  import opened Permissions
  import opened ProcedureBase
  import opened AttributeOps
  import opened Records
  import opened Abstraction
  import Calls
  import CO = CreateOps
  import RM = RemoveOps
  import RN = RenameOps
  import Room = NfsRoom
  import N = NfsState
  import A = NfsAttrs
  import K = NfsMake
  import U = NfsUnlink
  import R = NfsRename
  import O = NfsOnce
  import P = NfsPerm

  // what RENAME has done is there when it has been done
  lemma RenamedStands(pre: N.FS, post: N.FS, c: P.Caller, fh: N.Handle, fname: N.Name, th: N.Handle, tname: N.Name,
    now: N.Time, fw: N.Wcc, tw: N.Wcc)
    requires R.RenameOk(pre, post, c, fh, fname, th, tname, now, fw, tw)
    ensures N.LiveDir(post, fh) && N.LiveDir(post, th) && tname in post.nodes[th.ino].body.names
    ensures fname in post.nodes[fh.ino].body.names ==>
      post.nodes[fh.ino].body.names[fname] == post.nodes[th.ino].body.names[tname]
  { }

  // the record of a call that was done
  predicate Done(pre: O.Replies, s: Slots, i: uint64, r: Bytes, f: N.FS, c: O.Call) reads s, r
  { s.Valid() && i as int < |s.recs| && |r.data| == 256 &&
    O.Kept(pre, RepliesOf(s), i as int, KeyAt(r.data), AtOf(r.data), f, c) }
  // the call came again
  predicate Came(rs: O.Replies, i: uint64, r: Bytes, since: uint64, f: N.FS, c: O.Call) reads r
  { |r.data| == 256 && O.Again(rs, i as int, KeyAt(r.data), since, f, c) }

  // What a call finds: the files, and the records as they lie on disk and as they are read.
  datatype State = State(files: N.FS, slots: seq<seq<byte>>, replies: O.Replies)
  function StateOf(txn: Txn, d: DirFs): State reads d, d.fs, txn.slots
  { State(AbsOf(d), txn.slots.recs, RepliesOf(txn.slots)) }

  // what comes with a call is in order
  predicate Ready(txn: Txn, d: DirFs, i: uint64, r: Bytes?, look: bool)
    reads d, d.fs, d.fs.trees, d.fs.trees.store, d.fs.volume, txn.slots, r
  { Sound(d) && txn.volume == d.fs.volume && (if r == null then !look else Comes(txn.slots, i, r)) }

  // The contract of every procedure here. A call that came again is answered from its record, if it looks for one, and
  // changes nothing. One that is done leaves its record, if it has a place. One that failed leaves none.
  predicate Once(pre: State, txn: Txn, d: DirFs, i: uint64, r: Bytes?, look: bool, since: uint64, c: O.Call, st: uint32,
    again: bool)
    reads d, d.fs, d.fs.trees, d.fs.trees.store, d.fs.volume, txn.slots, r
  {
    (r == null ==> txn.slots.recs == pre.slots) &&
    (again <==> look && r != null && Came(pre.replies, i, r, since, pre.files, c)) &&
    (again ==> st == 0 && Sound(d) && AbsOf(d) == pre.files && RepliesOf(txn.slots) == pre.replies) &&
    (!again && st == 0 ==> Sound(d)) &&
    (!again && st == 0 && r != null ==> Done(pre.replies, txn.slots, i, r, AbsOf(d), c)) &&
    (st != 0 ==> RepliesOf(txn.slots) == pre.replies)
  }

  // What a procedure that enters a name comes to. node: the attributes of the file; before, after: of the directory.
  datatype Entered = Entered(status: uint32, again: bool, ino: uint64, node: Bytes?, before: Bytes?, after: Bytes?)
  // Its attributes are there when it was done. When it came again, they are those of now.
  predicate EnteredOnce(pre: State, txn: Txn, d: DirFs, i: uint64, r: Bytes?, look: bool, since: uint64, c: O.Call,
    dino: uint64, e: Entered)
    reads d, d.fs, d.fs.trees, d.fs.trees.store, d.fs.volume, txn.slots, r, e.node, e.before, e.after
  {
    Once(pre, txn, d, i, r, look, since, c, e.status, e.again) &&
    (e.again ==> e.before == null) &&
    (e.again ==> AnsweredMake(AbsOf(d), RepliesOf(txn.slots), i as int, dino, e.ino, Reply(e.ino, e.node),
      Reply(dino, e.after))) &&
    (!e.again && e.status == 0 ==> Calls.Whole(e.node) && Calls.Whole(e.before) && Calls.Whole(e.after)) &&
    (e.status != 0 ==> N.Seen(pre.files, dino, Reply(dino, e.before)))
  }

  // The same of a procedure that changes one file, with the attributes of that file before and after.
  predicate ChangedOnce(pre: State, txn: Txn, d: DirFs, i: uint64, r: Bytes?, look: bool, since: uint64, c: O.Call,
    ino: uint64, st: uint32, again: bool, before: Bytes?, after: Bytes?)
    reads d, d.fs, d.fs.trees, d.fs.trees.store, d.fs.volume, txn.slots, r, before, after
  {
    Once(pre, txn, d, i, r, look, since, c, st, again) &&
    (again ==> before == null && Current(d, ino, after)) &&
    (!again && st == 0 ==> Calls.Whole(before) && Calls.Whole(after)) &&
    (st != 0 ==> N.Seen(pre.files, ino, Reply(ino, before)))
  }
  // node has the attributes that file ino has now
  predicate Current(d: DirFs, ino: uint64, node: Bytes?) reads d, d.fs, node
  { ino in AbsOf(d).nodes && Reply(ino, node) == Some(N.FattrOf(ino, AbsOf(d).nodes[ino])) }

  // the record of a file that was made, or found by CREATE
  method KeepMade(txn: Txn, d: DirFs, i: uint64, r: Bytes, ghost dino: uint64, ghost dgen: uint64, ghost name: Bytes,
    ino: uint64, node: Bytes)
    modifies txn.slots
    requires Sound(d) && Comes(txn.slots, i, r) && |node.data| == 256
    requires O.Named(AbsOf(d), N.Handle(dino, dgen), name.data, N.Handle(ino, MetaOf(node.data).gen)) &&
      ReplyAttr(ino, MetaOf(node.data)) == N.FattrOf(ino, AbsOf(d).nodes[ino])
    ensures Done(old(RepliesOf(txn.slots)), txn.slots, i, r, AbsOf(d), O.Make(N.Handle(dino, dgen), name.data))
  {
    var gen := GetGen(node);
    var cs, cns := GetCtime(node);
    Keep(txn, i, r, ino, gen, cs, cns);
  }

  method Create(call: Calls.Call, txn: Txn, d: DirFs, i: uint64, r: Bytes?, look: bool, since: uint64, c: Cred, dino:
    uint64, dgen: uint64, name: Bytes, how: uint32, a: Sattr, verf: uint64)
    returns (again: bool, ghost now: N.Time)
    modifies call`result, call`ino, call`file, call`before, call`after, call`later, d.Repr(), txn.blocks, txn.inodes,
      txn.slots
    requires Ready(txn, d, i, r, look) && (how == CO.EXCLUSIVE ==> a.Empty())
    ensures Said(txn, now.seconds, now.nanoseconds)
    ensures EnteredOnce(old(StateOf(txn, d)), txn, d, i, r, look, since, O.Make(N.Handle(dino, dgen), name.data), dino,
      Entered(call.result, again, call.ino, call.file, call.before, call.after))
    ensures call.result == 0 ==> again || K.CreateOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(dino, dgen), name.data,
      how, SattrOf(a), verf, now, N.Handle(call.ino, MetaOf(call.file.data).gen),
      ReplyAttr(call.ino, MetaOf(call.file.data)), N.Wcc(ReplyAttr(dino, MetaOf(call.before.data)),
        ReplyAttr(dino, MetaOf(call.after.data))))
    ensures call.result != 0 ==> K.CreateErr(old(AbsOf(d)), WhoOf(c), N.Handle(dino, dgen), name.data, how, SattrOf(a),
      verf, call.result)
    ensures call.result == SHRINKFIRST ==> N.LiveDir(old(AbsOf(d)), N.Handle(dino, dgen)) &&
      name.data in old(AbsOf(d)).nodes[dino].body.names && call.ino ==
        old(AbsOf(d)).nodes[dino].body.names[name.data] &&
      var ino := call.ino; 0 < old(ToFree(d, ino))
    ensures call.result == 0 ==> Tells(old(d.fs.metas), d.fs.metas, call.later)
    ensures Lacking(txn, old(StockOf(txn, d)), Room.MakeNeeds(), call.result) || old(NoPlace(d, dino, name.data))
  {
    var s, ns := Now(txn);
    now := N.Time(s, ns);
    var st, ino, file, before, after, later := 0, 0, null, null, null, false;
    again := false;
    if look {
      again, ino, file, after := MadeAgain(txn, d, i, r, since, dino, dgen, name);
    }
    if !again {
      st, ino, file, before, after, later := CO.Create(txn, d, c, dino, dgen, name, how, a, verf, s, ns);
      if st == 0 && r != null { KeepMade(txn, d, i, r, dino, dgen, name, ino, file); }
    }
    call.Enter(st, ino, file, before, after, later);
  }

  method Mkdir(call: Calls.Call, txn: Txn, d: DirFs, i: uint64, r: Bytes?, look: bool, since: uint64, c: Cred, dino:
    uint64, dgen: uint64, name: Bytes, a: Sattr)
    returns (again: bool, ghost now: N.Time)
    modifies call`result, call`ino, call`file, call`before, call`after, call`later, d.Repr(), txn.blocks, txn.inodes,
      txn.slots
    requires Ready(txn, d, i, r, look)
    ensures Said(txn, now.seconds, now.nanoseconds)
    ensures call.later == old(call.later)
    ensures EnteredOnce(old(StateOf(txn, d)), txn, d, i, r, look, since, O.Make(N.Handle(dino, dgen), name.data), dino,
      Entered(call.result, again, call.ino, call.file, call.before, call.after))
    ensures call.result == 0 ==> again || K.MkdirOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(dino, dgen), name.data,
      SattrOf(a), now, N.Handle(call.ino, MetaOf(call.file.data).gen),
      ReplyAttr(call.ino, MetaOf(call.file.data)), N.Wcc(ReplyAttr(dino, MetaOf(call.before.data)),
        ReplyAttr(dino, MetaOf(call.after.data))))
    ensures call.result != 0 ==> K.MkdirErr(old(AbsOf(d)), WhoOf(c), N.Handle(dino, dgen), name.data, SattrOf(a),
      call.result)
    ensures Lacking(txn, old(StockOf(txn, d)), Room.MakeNeeds(), call.result) || old(NoPlace(d, dino, name.data))
  {
    var s, ns := Now(txn);
    now := N.Time(s, ns);
    var st, ino, file, before, after := 0, 0, null, null, null;
    again := false;
    if look {
      again, ino, file, after := MadeAgain(txn, d, i, r, since, dino, dgen, name);
    }
    if !again {
      st, ino, file, before, after := CO.Mkdir(txn, d, c, dino, dgen, name, a, s, ns);
      if st == 0 && r != null { KeepMade(txn, d, i, r, dino, dgen, name, ino, file); }
    }
    call.Enter(st, ino, file, before, after, call.later);
  }

  method Symlink(call: Calls.Call, txn: Txn, d: DirFs, i: uint64, r: Bytes?, look: bool, since: uint64, c: Cred, dino:
    uint64, dgen: uint64, name: Bytes, a: Sattr, target: Bytes)
    returns (again: bool, ghost now: N.Time)
    modifies call`result, call`ino, call`file, call`before, call`after, call`later, d.Repr(), txn.blocks, txn.inodes,
      txn.slots
    requires Ready(txn, d, i, r, look)
    ensures Said(txn, now.seconds, now.nanoseconds)
    ensures call.later == old(call.later)
    ensures EnteredOnce(old(StateOf(txn, d)), txn, d, i, r, look, since, O.Make(N.Handle(dino, dgen), name.data), dino,
      Entered(call.result, again, call.ino, call.file, call.before, call.after))
    ensures call.result == 0 ==> again || K.SymlinkOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(dino, dgen),
      name.data, SattrOf(a), target.data, now, N.Handle(call.ino, MetaOf(call.file.data).gen),
      ReplyAttr(call.ino, MetaOf(call.file.data)), N.Wcc(ReplyAttr(dino, MetaOf(call.before.data)),
        ReplyAttr(dino, MetaOf(call.after.data))))
    ensures call.result != 0 ==> K.SymlinkErr(old(AbsOf(d)), WhoOf(c), N.Handle(dino, dgen), name.data, SattrOf(a),
      target.data, call.result)
    ensures Lacking(txn, old(StockOf(txn, d)), Room.SymlinkNeeds(target.data), call.result) || old(NoPlace(d, dino,
      name.data))
  {
    var s, ns := Now(txn);
    now := N.Time(s, ns);
    var st, ino, file, before, after := 0, 0, null, null, null;
    again := false;
    if look {
      again, ino, file, after := MadeAgain(txn, d, i, r, since, dino, dgen, name);
    }
    if !again {
      st, ino, file, before, after := CO.Symlink(txn, d, c, dino, dgen, name, a, target, s, ns);
      if st == 0 && r != null { KeepMade(txn, d, i, r, dino, dgen, name, ino, file); }
    }
    call.Enter(st, ino, file, before, after, call.later);
  }

  method Mknod(call: Calls.Call, txn: Txn, d: DirFs, i: uint64, r: Bytes?, look: bool, since: uint64, c: Cred, dino:
    uint64, dgen: uint64, name: Bytes, ty: uint32, a: Sattr, maj: uint32, min: uint32)
    returns (again: bool, ghost now: N.Time)
    modifies call`result, call`ino, call`file, call`before, call`after, call`later, d.Repr(), txn.blocks, txn.inodes,
      txn.slots
    requires Ready(txn, d, i, r, look)
    ensures Said(txn, now.seconds, now.nanoseconds)
    ensures call.later == old(call.later)
    ensures EnteredOnce(old(StateOf(txn, d)), txn, d, i, r, look, since, O.Make(N.Handle(dino, dgen), name.data), dino,
      Entered(call.result, again, call.ino, call.file, call.before, call.after))
    ensures call.result == 0 ==> again || K.MknodOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(dino, dgen), name.data,
      ty, SattrOf(a), maj, min, now, N.Handle(call.ino, MetaOf(call.file.data).gen),
      ReplyAttr(call.ino, MetaOf(call.file.data)), N.Wcc(ReplyAttr(dino, MetaOf(call.before.data)),
        ReplyAttr(dino, MetaOf(call.after.data))))
    ensures call.result != 0 ==> K.MknodErr(old(AbsOf(d)), WhoOf(c), N.Handle(dino, dgen), name.data, ty, SattrOf(a),
      maj, min, call.result)
    ensures Lacking(txn, old(StockOf(txn, d)), Room.MakeNeeds(), call.result) || old(NoPlace(d, dino, name.data))
  {
    var s, ns := Now(txn);
    now := N.Time(s, ns);
    var st, ino, file, before, after := 0, 0, null, null, null;
    again := false;
    if look {
      again, ino, file, after := MadeAgain(txn, d, i, r, since, dino, dgen, name);
    }
    if !again {
      st, ino, file, before, after := CO.Mknod(txn, d, c, dino, dgen, name, ty, a, maj, min, s, ns);
      if st == 0 && r != null { KeepMade(txn, d, i, r, dino, dgen, name, ino, file); }
    }
    call.Enter(st, ino, file, before, after, call.later);
  }

  method Link(call: Calls.Call, txn: Txn, d: DirFs, i: uint64, r: Bytes?, look: bool, since: uint64, c: Cred, ino:
    uint64, gen: uint64, dino: uint64, dgen: uint64, name: Bytes)
    returns (again: bool, ghost now: N.Time)
    modifies call`result, call`ino, call`file, call`before, call`after, call`later, d.Repr(), txn.blocks, txn.slots
    requires Ready(txn, d, i, r, look)
    ensures Said(txn, now.seconds, now.nanoseconds)
    ensures call.ino == old(call.ino) && call.later == old(call.later)
    ensures EnteredOnce(old(StateOf(txn, d)), txn, d, i, r, look, since,
      O.Link(N.Handle(ino, gen), N.Handle(dino, dgen), name.data), dino, Entered(call.result, again, ino, call.file,
        call.before, call.after))
    ensures call.result != 0 ==> N.Seen(old(AbsOf(d)), ino, Reply(ino, call.file))
    ensures call.result == 0 ==> again || K.LinkOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(ino, gen), N.Handle(dino,
      dgen), name.data, now, ReplyAttr(ino, MetaOf(call.file.data)),
      N.Wcc(ReplyAttr(dino, MetaOf(call.before.data)), ReplyAttr(dino, MetaOf(call.after.data))))
    ensures call.result != 0 ==> K.LinkErr(old(AbsOf(d)), WhoOf(c), N.Handle(ino, gen), N.Handle(dino, dgen), name.data,
      call.result)
    ensures Lacking(txn, old(StockOf(txn, d)), Room.EntryNeeds(), call.result) || old(NoPlace(d, dino, name.data))
  {
    var s, ns := Now(txn);
    now := N.Time(s, ns);
    var st, file, before, after := 0, null, null, null;
    again := false;
    if look {
      again, file, after := LinkedAgain(txn, d, i, r, since, ino, gen, dino, dgen, name);
    }
    if !again {
      st, file, before, after := RM.Link(txn, d, c, ino, gen, dino, dgen, name, s, ns);
      if st == 0 && r != null {
        var cs, cns := GetCtime(file);
        Keep(txn, i, r, ino, gen, cs, cns);
      }
    }
    call.Enter(st, call.ino, file, before, after, call.later);
  }

  // sub: RMDIR, else REMOVE
  method Remove(call: Calls.Call, txn: Txn, d: DirFs, i: uint64, r: Bytes?, look: bool, since: uint64, c: Cred, dino:
    uint64, dgen: uint64, name: Bytes, sub: bool)
    returns (again: bool, ghost now: N.Time)
    modifies call`result, call`before, call`after, call`later, d.Repr(), txn.blocks, txn.slots
    requires Ready(txn, d, i, r, look)
    ensures Said(txn, now.seconds, now.nanoseconds)
    ensures ChangedOnce(old(StateOf(txn, d)), txn, d, i, r, look, since, O.Unlink(N.Handle(dino, dgen), name.data),
      dino, call.result, again, call.before, call.after)
    ensures call.result == 0 && !sub ==> again || U.RemoveOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(dino, dgen),
      name.data,
      now, N.Wcc(ReplyAttr(dino, MetaOf(call.before.data)), ReplyAttr(dino, MetaOf(call.after.data))))
    ensures call.result == 0 && sub ==> again || U.RmdirOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(dino, dgen),
      name.data,
      now, N.Wcc(ReplyAttr(dino, MetaOf(call.before.data)), ReplyAttr(dino, MetaOf(call.after.data))))
    ensures call.result != 0 && !sub ==> U.RemoveErr(old(AbsOf(d)), WhoOf(c), N.Handle(dino, dgen), name.data,
      call.result)
    ensures call.result != 0 && sub ==> U.RmdirErr(old(AbsOf(d)), WhoOf(c), N.Handle(dino, dgen), name.data,
      call.result)
    ensures call.result == 0 ==> Tells(old(d.fs.metas), d.fs.metas, call.later)
  {
    var s, ns := Now(txn);
    now := N.Time(s, ns);
    var st, before, after, later := 0, null, null, false;
    again := false;
    if look {
      again, after := UnlinkedAgain(txn, d, i, r, since, dino, dgen, name);
    }
    if !again {
      st, before, after, later := RM.Remove(txn, d, c, dino, dgen, name, sub, s, ns);
      if st == 0 && r != null { Keep(txn, i, r, 0, 0, 0, 0); }
    }
    call.Change(st, before, after, later);
  }

  method Rename(call: Calls.Call, txn: Txn, d: DirFs, i: uint64, r: Bytes?, look: bool, since: uint64, c: Cred, fino:
    uint64, fgen: uint64, fname: Bytes, tino: uint64, tgen: uint64, tname: Bytes)
    returns (again: bool, ghost now: N.Time)
    modifies call`result, call`before, call`after, call`before2, call`after2, call`later, d.Repr(), txn.blocks,
      txn.slots
    requires Ready(txn, d, i, r, look)
    ensures Said(txn, now.seconds, now.nanoseconds)
    ensures Once(old(StateOf(txn, d)), txn, d, i, r, look, since,
      O.Rename(N.Handle(fino, fgen), fname.data, N.Handle(tino, tgen), tname.data), call.result, again)
    ensures again ==> call.before == null && call.before2 == null && Current(d, fino, call.after) && Current(d, tino,
      call.after2)
    ensures !again && call.result == 0 ==> Reply(fino, call.before).Some? && Reply(fino, call.after).Some?
    ensures !again && call.result == 0 ==> Reply(tino, call.before2).Some? && Reply(tino, call.after2).Some?
    ensures call.result != 0 ==> N.Seen(old(AbsOf(d)), fino, Reply(fino, call.before)) &&
      N.Seen(old(AbsOf(d)), tino, Reply(tino, call.before2))
    ensures call.result == 0 ==> again || R.RenameOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(fino, fgen),
      fname.data, N.Handle(tino, tgen), tname.data, now,
        N.Wcc(Reply(fino, call.before).x, Reply(fino, call.after).x), N.Wcc(Reply(tino, call.before2).x, Reply(tino,
          call.after2).x))
    ensures call.result != 0 ==> R.RenameErr(old(AbsOf(d)), WhoOf(c), N.Handle(fino, fgen), fname.data, N.Handle(tino,
      tgen), tname.data, call.result)
    ensures call.result == 0 ==> Tells(old(d.fs.metas), d.fs.metas, call.later)
    ensures Lacking(txn, old(StockOf(txn, d)), Room.EntryNeeds(), call.result) || old(NoPlace(d, tino, tname.data))
  {
    var s, ns := Now(txn);
    now := N.Time(s, ns);
    var st, before, after, before2, after2, later := 0, null, null, null, null, false;
    again := false;
    if look {
      again, after, after2 := RenamedAgain(txn, d, i, r, since, fino, fgen, fname, tino, tgen, tname);
    }
    if !again {
      st, before, after, before2, after2, later := RenameAnew(txn, d, i, r, c, fino, fgen, fname, tino, tgen, tname, s,
        ns);
    }
    call.Move(st, before, after, before2, after2, later);
  }

  // RENAME, if it did not come again
  method RenameAnew(txn: Txn, d: DirFs, place: uint64, r: Bytes?, c: Cred, fino: uint64, fgen: uint64, fname: Bytes,
    tino: uint64, tgen: uint64, tname: Bytes, s: uint64, ns: uint32)
    returns (st: uint32, before: Bytes?, after: Bytes?, before2: Bytes?, after2: Bytes?, later: bool)
    modifies d.Repr(), txn.blocks, txn.slots
    requires Ready(txn, d, place, r, false)
    ensures r == null ==> txn.slots.recs == old(txn.slots.recs)
    ensures st == 0 ==> Sound(d)
    ensures st == 0 && r != null ==> Done(old(RepliesOf(txn.slots)), txn.slots, place, r, AbsOf(d),
      O.Rename(N.Handle(fino, fgen), fname.data, N.Handle(tino, tgen), tname.data))
    ensures st != 0 ==> RepliesOf(txn.slots) == old(RepliesOf(txn.slots))
    ensures st == 0 ==> Reply(fino, before).Some? && Reply(fino, after).Some?
    ensures st == 0 ==> Reply(tino, before2).Some? && Reply(tino, after2).Some?
    ensures st != 0 ==> N.Seen(old(AbsOf(d)), fino, Reply(fino, before)) &&
      N.Seen(old(AbsOf(d)), tino, Reply(tino, before2))
    ensures st == 0 ==> R.RenameOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(fino, fgen), fname.data,
      N.Handle(tino, tgen), tname.data, N.Time(s, ns), N.Wcc(Reply(fino, before).x, Reply(fino, after).x),
      N.Wcc(Reply(tino, before2).x, Reply(tino, after2).x))
    ensures st != 0 ==> R.RenameErr(old(AbsOf(d)), WhoOf(c), N.Handle(fino, fgen), fname.data, N.Handle(tino, tgen),
      tname.data, st)
    ensures st == 0 ==> Tells(old(d.fs.metas), d.fs.metas, later)
    ensures Lacking(txn, old(StockOf(txn, d)), Room.EntryNeeds(), st) || old(NoPlace(d, tino, tname.data))
  {
    ghost var pre := AbsOf(d);
    st, before, after, before2, after2, later := RN.Rename(txn, d, c, fino, fgen, fname, tino, tgen, tname, s, ns);
    if st != 0 || r == null { return; }
    RenamedStands(pre, AbsOf(d), WhoOf(c), N.Handle(fino, fgen), fname.data, N.Handle(tino, tgen), tname.data,
      N.Time(s, ns), N.Wcc(Reply(fino, before).x, Reply(fino, after).x), N.Wcc(Reply(tino, before2).x,
        Reply(tino, after2).x));
    var ok, found, ino, gen, node, dir := Entry(txn, d, tino, tgen, tname);
    Keep(txn, place, r, ino, gen, 0, 0);
  }

  method Setattr(call: Calls.Call, txn: Txn, d: DirFs, i: uint64, r: Bytes?, look: bool, since: uint64, c: Cred,
    ino: uint64, gen: uint64, a: Sattr, guard: bool, gs: uint64, gns: uint32)
    returns (again: bool, ghost now: N.Time)
    modifies call`result, call`ino, call`before, call`after, call`later, d.Repr(), txn.slots
    requires Ready(txn, d, i, r, look)
    ensures Said(txn, now.seconds, now.nanoseconds)
    ensures call.ino == ino
    ensures ChangedOnce(old(StateOf(txn, d)), txn, d, i, r, look, since, O.Set(N.Handle(ino, gen)), ino, call.result,
      again, call.before, call.after)
    ensures call.result == 0 ==> again || A.SetattrOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(ino, gen), SattrOf(a),
      Guard(guard, gs, gns), now,
      N.Wcc(ReplyAttr(ino, MetaOf(call.before.data)), ReplyAttr(ino, MetaOf(call.after.data))))
    ensures call.result != 0 ==> A.SetattrErr(old(AbsOf(d)), WhoOf(c), N.Handle(ino, gen), SattrOf(a), Guard(guard, gs,
      gns), call.result)
    ensures call.result == SHRINKFIRST ==> 0 < old(ToFree(d, ino))
    ensures call.result == 0 ==> Tells(old(d.fs.metas), d.fs.metas, call.later)
  {
    var s, ns := Now(txn);
    now := N.Time(s, ns);
    var st, before, after, later := 0, null, null, false;
    call.ino, again := ino, false;
    if look {
      again, after := SetAgain(txn, d, i, r, since, ino, gen);
    }
    if !again {
      st, before, after, later := AttributeOps.Setattr(txn, d, c, ino, gen, a, guard, gs, gns, s, ns);
      if st == 0 && r != null {
        var cs, cns := GetCtime(after);
        Keep(txn, i, r, ino, gen, cs, cns);
      }
    }
    call.Change(st, before, after, later);
  }
}
