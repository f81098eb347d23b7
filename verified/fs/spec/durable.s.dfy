// THE SPECIFICATION of when a reply may be sent: what must be on stable storage before (RFC 1813, sections 4.7 and
// 4.8).
//
// A procedure is one transaction, and nfs3.s.dfy says what it does. When its reply is sent:
//
//   - What the reply says was done is durable, if the procedure is one of those that promise this (Promised).
//   - What the reply shows is durable, as far as others were promised it: no crash takes back what somebody was told. A
//     reply with a status that shows nothing (Shows) has no attributes, so that it need not wait, nor be right, when
//     the device has failed.
//   - COMMIT: all that took effect before the call is durable.
//
// A life of the server is from an opening of the volume until the server ends or crashes. Each has a write verifier
// that no other life has (Begins), and the replies of WRITE and COMMIT carry it (Carries). So a client sees whether a
// crash may have taken what it wrote UNSTABLE.
//
// A volume may be opened such that nothing waits but COMMIT (a local mount, which has fsync); then nothing is promised.
include "../../lib/machine.dfy"

module NfsDurable {
  import opened Machine
  // the procedures that have to do with it, by their numbers in the RFC
  const SETATTR: uint32 := 2   const WRITE: uint32 := 7    const CREATE: uint32 := 8   const MKDIR: uint32 := 9
  const SYMLINK: uint32 := 10  const MKNOD: uint32 := 11   const REMOVE: uint32 := 12  const RMDIR: uint32 := 13
  const RENAME: uint32 := 14   const LINK: uint32 := 15    const COMMIT: uint32 := 21
  const PROCEDURES: uint32 := 22        // NULL to COMMIT are 0 to 21
  // how stable a WRITE is to be, and was (3.3.7, stable_how)
  const UNSTABLE: uint32 := 0  const DATA_SYNC: uint32 := 1  const FILE_SYNC: uint32 := 2

  // the procedures that change something; all others only read
  predicate Changes(p: uint32) { p == SETATTR || WRITE <= p <= LINK }
  // "When a procedure returns to the client, the client can assume that the operation has completed and any data
  // associated with the request is now on stable storage" (4.7), but for a WRITE that does not ask for it.
  predicate Promised(p: uint32, how: uint32) { Changes(p) && (p == WRITE ==> how != UNSTABLE) }
  // (What a WRITE's reply says of its bytes is WriteReply of nfs3.s.dfy. It says that they are stable only if they
  // are.)

  const IO: uint32 := 5  const ROFS: uint32 := 30
  predicate Shows(status: uint32) { status != IO && status != ROFS }

  // The verifier of a life is none of those of lives before; replies have that of the life in which they are made.
  predicate Begins(before: set<uint64>, life: uint64) { life !in before }
  predicate Carries(life: uint64, verifier: uint64) { verifier == life }
}
