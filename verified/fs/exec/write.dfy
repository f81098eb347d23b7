// WRITE as a call: what is stored of its data, and what its reply says of that.
include "call.dfy"
include "../procedures/fileio.dfy"

module WriteCall {
  import opened Machine
  import opened ByteSlice
  import opened TxnS
  import opened InodeFormat
  import opened Directories
  import opened Permissions
  import opened ProcedureBase
  import opened Abstraction
  import Exec
  import Calls
  import FileOps
  import N = NfsState
  import D = NfsData
  import U = NfsDurable

  // what the reply says: how many bytes were stored, and how stable they are
  function method Count(c: Calls.Call): uint32 reads c requires c.n <= Exec.MOST { c.n as uint32 }
  function method Committed(c: Calls.Call): uint32 reads c { Exec.Committed(c.how, c.deferred) }

  // The work of a transaction of c, whose status is st: the first c.n bytes of src are stored at off. If it was
  // committed, and so answered (Calls.Ended), what the reply says is true.
  method Store(c: Calls.Call, txn: Txn, d: DirFs, cred: Cred, ino: uint64, gen: uint64, off: uint64, src: Bytes, s: uint64, ns: uint32) returns (st: uint32)
    modifies c`before, c`after, d.Repr()
    requires Sound(d) && txn.jrnl == d.fs.jrnl && c.p == U.WRITE && c.how <= U.FILE_SYNC && Piece(c.n, |src.data|)
    ensures st == 0 ==> Sound(d) && c.before != null && |c.before.data| == 256 && c.after != null && |c.after.data| == 256
    ensures st == 0 ==> D.WriteOk(old(AbsOf(d)), AbsOf(d), WhoOf(cred), N.Handle(ino, gen), off, src.data[..Count(c)], N.Time(s, ns),
      N.Wcc(FattrM(ino, M(c.before.data)), FattrM(ino, M(c.after.data))))
    ensures st == 0 && !c.deferred ==> D.WriteReply(|src.data|, c.how, Count(c) as int, Committed(c))
    ensures Committed(c) != U.UNSTABLE ==> Durable(c)
    ensures st != 0 ==> D.WriteErr(old(AbsOf(d)), WhoOf(cred), N.Handle(ino, gen), off, src.data[..c.n], st) && N.Seen(old(AbsOf(d)), ino, Reply(ino, c.before))
  {
    Fits(c, |src.data|);
    st, c.before, c.after := FileOps.Write(txn, d, cred, ino, gen, off, src, 0, c.n, s, ns);
    assert src.data[0..c.n] == src.data[..c.n];
  }

  // n may be what is stored of `given` bytes
  predicate Piece(n: uint64, given: int) { n as int <= given && n <= Exec.MOST && (n == 0 ==> given == 0) }
  // It is so to begin with, and each time that Ended has lessened it.
  lemma Pieces(given: uint64, n: uint64)
    ensures Piece(Exec.First(given), given as int)
    ensures Piece(n, given as int) && Exec.Fewer(n) != 0 ==> Piece(Exec.Fewer(n), given as int)
  { }
  lemma Fits(c: Calls.Call, given: int)
    requires c.how <= U.FILE_SYNC && Piece(c.n, given)
    ensures !c.deferred ==> D.WriteReply(given, c.how, Count(c) as int, Committed(c))
    ensures Committed(c) != U.UNSTABLE ==> Durable(c)
  { }
  // its commit is durable before it is answered (Calls.Ended)
  predicate Durable(c: Calls.Call) reads c { U.Promised(U.WRITE, c.how) && !c.deferred }
}
