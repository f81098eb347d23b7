// The procedures that only read, as calls: what each of them comes to stands in the call, which is answered with that.
include "call.dfy"
include "../procedures/attributes.dfy"
include "../procedures/fileio.dfy"
include "../procedures/lookup.dfy"
include "../procedures/readdir.dfy"
include "../procedures/volume.dfy"

module Answers {
  import opened Machine
  import opened ByteSlice
  import opened TxnS
  import opened InodeFormat
  import opened Directories
  import opened Permissions
  import opened ProcedureBase
  import Listing
  import opened DirListS
  import ReaddirOps
  import opened Abstraction
  import opened VolumeOps
  import opened Calls
  import AttributeOps
  import FileOps
  import LookupOps
  import N = NfsState
  import A = NfsAttrs
  import D = NfsData
  import L = NfsList
  import V = NfsVolume
  import Room = NfsRoom

  // the attributes of the file that the call has
  function File(call: Calls.Call, ino: uint64): N.Fattr reads call, call.file requires Whole(call.file)
  { ReplyAttr(ino, MetaOf(call.file.data)) }

  method Getattr(call: Calls.Call, txn: Txn, d: DirFs, ino: uint64, gen: uint64)
    modifies call`result, call`file
    requires Sound(d) && txn.volume == d.fs.volume
    ensures call.result == 0 ==> Whole(call.file) && A.GetattrOk(AbsOf(d), N.Handle(ino, gen), File(call, ino))
    ensures call.result != 0 ==> A.GetattrErr(AbsOf(d), N.Handle(ino, gen), call.result) && call.file == null
  { call.result, call.file := AttributeOps.Getattr(txn, d, ino, gen); }

  method Access(call: Calls.Call, txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64)
    returns (bits: uint32)
    modifies call`result, call`file
    requires Sound(d) && txn.volume == d.fs.volume
    ensures bits < 64
    ensures call.result == 0 ==> Whole(call.file) && A.AccessOk(AbsOf(d), WhoOf(c), N.Handle(ino, gen), bits, File(call,
      ino))
    ensures call.result != 0 ==> A.AccessErr(AbsOf(d), N.Handle(ino, gen), call.result) && call.file == null
  { call.result, bits, call.file := AttributeOps.Access(txn, d, c, ino, gen); }

  method Readlink(call: Calls.Call, txn: Txn, d: DirFs, ino: uint64, gen: uint64)
    returns (target: Bytes?)
    modifies call`result, call`file
    requires Sound(d) && txn.volume == d.fs.volume
    ensures call.result == 0 ==> target != null && Whole(call.file) &&
      D.ReadlinkOk(AbsOf(d), N.Handle(ino, gen), target.data, File(call, ino))
    ensures call.result != 0 ==> D.ReadlinkErr(AbsOf(d), N.Handle(ino, gen), call.result) &&
      N.Seen(AbsOf(d), ino, Reply(ino, call.file))
  { call.result, target, call.file := FileOps.Readlink(txn, d, ino, gen); }

  method Read(call: Calls.Call, txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64, offset: uint64, length: uint64)
    returns (data: Pieces?, eof: bool)
    modifies call`result, call`file
    requires Sound(d) && txn.volume == d.fs.volume
    ensures call.result == 0 ==> data != null && Whole(call.file) && D.ReadOk(AbsOf(d), WhoOf(c), N.Handle(ino, gen),
      offset, length, data.data, eof, File(call, ino))
    ensures call.result != 0 ==> D.ReadErr(AbsOf(d), WhoOf(c), N.Handle(ino, gen), call.result) &&
      N.Seen(AbsOf(d), ino, Reply(ino, call.file))
  { call.result, data, eof, call.file := FileOps.Read(txn, d, c, ino, gen, offset, length); }

  // The attributes of the directory are those before and after the call.
  method Lookup(call: Calls.Call, txn: Txn, d: DirFs, c: Cred, dino: uint64, dgen: uint64, name: Bytes)
    modifies call`result, call`ino, call`file, call`before, call`after
    requires Sound(d) && txn.volume == d.fs.volume
    ensures call.after == call.before
    ensures call.result == 0 ==> Whole(call.file) && Whole(call.before) && L.LookupOk(AbsOf(d), WhoOf(c), N.Handle(dino,
      dgen), name.data, N.Handle(call.ino, MetaOf(call.file.data).gen), File(call, call.ino),
      ReplyAttr(dino, MetaOf(call.before.data)))
    ensures call.result != 0 ==> L.LookupErr(AbsOf(d), WhoOf(c), N.Handle(dino, dgen), name.data, call.result) &&
      N.Seen(AbsOf(d), dino, Reply(dino, call.before))
  {
    call.result, call.ino, call.file, call.before := LookupOps.Lookup(txn, d, c, dino, dgen, name);
    call.after := call.before;
  }

  // plus: READDIRPLUS, else READDIR
  method Readdir(call: Calls.Call, txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64, cookie: uint64,
    verifier: uint64, plus: bool, out: List)
    returns (eof: bool)
    modifies call`result, call`file, out
    requires Sound(d) && txn.volume == d.fs.volume && out.got == [] && out.attrs == map[]
    ensures call.result == 0 ==> Whole(call.file) && if plus then Listing.Given(out.got,
      out.attrs) else out.attrs == map[]
    ensures call.result == 0 && !plus ==> L.ReaddirOk(AbsOf(d), WhoOf(c), N.Handle(ino, gen), cookie, verifier,
      ReaddirOps.Lim(out), Listing.Items(out.got), eof, File(call, ino))
    ensures call.result == 0 && plus ==> L.ReaddirplusOk(AbsOf(d), WhoOf(c), N.Handle(ino, gen), cookie, verifier,
      ReaddirOps.Lim(out), Listing.Items(out.got), Listing.Handles(out.got, out.attrs),
      Listing.Fattrs(out.got, out.attrs), eof, File(call, ino))
    ensures call.result != 0 ==> N.Seen(AbsOf(d), ino, Reply(ino, call.file))
    ensures call.result != 0 && !plus ==>
      L.ReaddirErr(AbsOf(d), WhoOf(c), N.Handle(ino, gen), cookie, verifier, ReaddirOps.Lim(out), call.result)
    ensures call.result != 0 && plus ==>
      L.ReaddirplusErr(AbsOf(d), WhoOf(c), N.Handle(ino, gen), cookie, verifier, ReaddirOps.Lim(out), call.result)
  {
    if plus {
      call.result, eof, call.file := ReaddirOps.Readdirplus(txn, d, c, ino, gen, cookie, verifier, out);
    } else {
      call.result, eof, call.file := ReaddirOps.Readdir(txn, d, c, ino, gen, cookie, verifier, out);
    }
  }

  method Fsstat(call: Calls.Call, txn: Txn, d: DirFs, ino: uint64, gen: uint64, blocks: uint64, inodes: uint64,
    blocksEnd: uint64, inodesEnd: uint64) returns (space: V.Space)
    modifies call`result, call`file
    requires Sound(d) && txn.volume == d.fs.volume && Ends(d.fs.geometry, blocksEnd, inodesEnd)
    ensures call.result == 0 ==> Whole(call.file) && V.FsstatOk(AbsOf(d), N.Handle(ino, gen), File(call, ino), space)
    ensures call.result != 0 ==> V.FsstatErr(AbsOf(d), N.Handle(ino, gen), call.result) && call.file == null
    ensures Counted(d, blocks, inodes, blocksEnd, inodesEnd) ==>
      Room.Told(space, |FreeBlocks(d, blocksEnd)|, |FreeInodes(d, inodesEnd)|)
  { call.result, space, call.file := VolumeOps.Fsstat(txn, d, ino, gen, blocks, inodes, blocksEnd, inodesEnd); }

  method Fsinfo(call: Calls.Call, txn: Txn, d: DirFs, ino: uint64, gen: uint64) returns (info: V.Info)
    modifies call`result, call`file
    requires Sound(d) && txn.volume == d.fs.volume
    ensures call.result == 0 ==> Whole(call.file) && V.FsinfoOk(AbsOf(d), N.Handle(ino, gen), File(call, ino), info)
    ensures call.result != 0 ==> V.FsinfoErr(AbsOf(d), N.Handle(ino, gen), call.result) && call.file == null
  { call.result, info, call.file := VolumeOps.Fsinfo(txn, d, ino, gen); }

  method Pathconf(call: Calls.Call, txn: Txn, d: DirFs, ino: uint64, gen: uint64)
    returns (limits: V.Pathconf)
    modifies call`result, call`file
    requires Sound(d) && txn.volume == d.fs.volume
    ensures call.result == 0 ==> Whole(call.file) && V.PathconfOk(AbsOf(d), N.Handle(ino, gen), File(call, ino), limits)
    ensures call.result != 0 ==> V.PathconfErr(AbsOf(d), N.Handle(ino, gen), call.result) && call.file == null
  { call.result, limits, call.file := VolumeOps.Pathconf(txn, d, ino, gen); }

  // What COMMIT says. That it waits is Calls.Ended's.
  method Commit(call: Calls.Call, txn: Txn, d: DirFs, ino: uint64, gen: uint64)
    modifies call`result, call`file
    requires Sound(d) && txn.volume == d.fs.volume
    ensures call.result == 0 ==> Whole(call.file) &&
      V.CommitOk(AbsOf(d), N.Handle(ino, gen), N.Wcc(File(call, ino), File(call, ino)))
    ensures call.result != 0 ==> V.CommitErr(AbsOf(d), N.Handle(ino, gen), call.result) && call.file == null
  { call.result, call.file := VolumeOps.Commit(txn, d, ino, gen); }
}
