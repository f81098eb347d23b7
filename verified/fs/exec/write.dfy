// WRITE as a call: what is stored of its data, and what its reply says of that.
include "call.dfy"
include "../../trusted/stamps.s.dfy"
include "../procedures/fileio.dfy"

module WriteCall {
  import opened Machine
  import opened ByteSlice
  import opened TxnS
  import opened Stamps
  import opened InodeFormat
  import opened Directories
  import opened Permissions
  import opened ProcedureBase
  import opened Abstraction
  import Exec
  import Calls
  import FileOps
  import N = NfsState
  import Data = NfsData
  import Room = NfsRoom
  import Durable = NfsDurable

  // what the reply says: how many bytes were stored, and how stable they are
  function method Count(call: Calls.Call): uint32 reads call requires call.bytes <= Exec.MOST { call.bytes as uint32 }
  function method Committed(call: Calls.Call): uint32 reads call { Exec.Committed(call.stability, call.deferred) }

  // The work of a transaction of the call: the first call.bytes bytes of source are stored at offset. If it was
  // committed, and so answered (Calls.Ended), what the reply says is true.
  method Store(call: Calls.Call, txn: Txn, d: DirFs, cred: Cred, ino: uint64, gen: uint64, offset: uint64,
    source: Bytes) returns (ghost now: N.Time)
    modifies call`result, call`ino, call`before, call`after, d.Repr(), txn.blocks
    requires Sound(d) && txn.volume == d.fs.volume
    requires call.procedure == Durable.WRITE && call.stability <= Durable.FILE_SYNC && Piece(call.bytes, |source.data|)
    ensures Said(txn, now.seconds, now.nanoseconds)
    ensures call.ino == ino
    ensures call.result == 0 ==> Sound(d) && call.before != null && |call.before.data| == 256 && call.after != null &&
      |call.after.data| == 256
    ensures call.result == 0 ==> Data.WriteOk(old(AbsOf(d)), AbsOf(d), WhoOf(cred), N.Handle(ino, gen), offset,
      source.data[..Count(call)], now,
      N.Wcc(ReplyAttr(ino, MetaOf(call.before.data)), ReplyAttr(ino, MetaOf(call.after.data))))
    ensures call.result == 0 && !call.deferred ==>
      Data.WriteReply(|source.data|, call.stability, Count(call) as int, Committed(call))
    ensures Committed(call) != Durable.UNSTABLE ==> Waits(call)
    ensures call.result != 0 ==>
      Data.WriteErr(old(AbsOf(d)), WhoOf(cred), N.Handle(ino, gen), offset, source.data[..call.bytes], call.result) &&
      N.Seen(old(AbsOf(d)), ino, Reply(ino, call.before))
    ensures Lacking(txn, old(StockOf(txn, d)), Room.WriteNeeds(offset, source.data[..call.bytes]), call.result)
  {
    var seconds, nanoseconds := Now(txn);
    now := N.Time(seconds, nanoseconds);
    Fits(call, |source.data|);
    call.ino := ino;
    call.result, call.before, call.after := FileOps.Write(txn, d, cred, ino, gen, offset, source, 0, call.bytes,
      seconds, nanoseconds);
    assert source.data[0..call.bytes] == source.data[..call.bytes];
  }

  // so many bytes may be what is stored of those that were given
  predicate Piece(bytes: uint64, given: int) {
    bytes as int <= given && bytes <= Exec.MOST && (bytes == 0 ==> given == 0)
  }
  // It is so to begin with, and each time that Ended has lessened it.
  lemma Pieces(given: uint64, bytes: uint64)
    ensures Piece(Exec.First(given), given as int)
    ensures Piece(bytes, given as int) && Exec.Fewer(bytes) != 0 ==> Piece(Exec.Fewer(bytes), given as int)
  { }
  lemma Fits(call: Calls.Call, given: int)
    requires call.stability <= Durable.FILE_SYNC && Piece(call.bytes, given)
    ensures !call.deferred ==> Data.WriteReply(given, call.stability, Count(call) as int, Committed(call))
    ensures Committed(call) != Durable.UNSTABLE ==> Waits(call)
  { }
  // its commit is durable before it is answered (Calls.Ended)
  predicate Waits(call: Calls.Call) reads call { Durable.Promised(Durable.WRITE, call.stability) && !call.deferred }
}
