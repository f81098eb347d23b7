// EXACTLY ONCE: the part of the specification about calls that come again.
//
// A client that gets no reply sends its call again, perhaps after the server was started anew. GETATTR or READ may be
// done twice. MKDIR may not: the second time the answer would be EXIST, of a directory that the client has just made.
// So a volume keeps records of the calls that changed it, in the transactions that did the work; a crash leaves both or
// neither. A call that has a record is answered again and changes nothing: NFS3_OK, the file that it made, and the
// attributes that files have now.
//
//   a call comes ==> Again(...), or the procedure's XOk(...) and Kept(...), or its XErr(...) and no record changes
//
// and the first of these whenever the server looks for its record and Again holds.
//
// What is a call come again? A transaction number (xid) alone does not tell: a client may begin with the same one each
// time it starts. So
//   - the key has the client's address, the name that its machine has in the credential, xid, procedure, caller, and
//     all arguments in it: another client or other arguments have another key. Several clients may be behind one
//     address, and begin with the same number; their names tell them apart. (The port is not in it; after a crash the
//     client comes from another one. Nor is the credential's stamp: some clients put the time there. Who makes the
//     key is fs/callid.go.)
//   - a record is as old as `since` at most. (Some minutes; and if the volume was opened meanwhile, some minutes before
//     that and after.)
//   - what the call did must still be there (Stands). MKDIR d, RMDIR d, and then MKDIR d with the same bytes: that is a
//     new call, for d is gone. And what it made must be untouched: whoever takes a new call for an old one then has
//     what the new call would have made.
//   - the server may say no for reasons of its own: the client has got the reply, for the connection that it went over
//     is open and has taken it (fs/once.go).
// Where records are kept is a number of places set by mkfs. The server chooses which place a call is to have, and what
// was there is forgotten: a call whose record is gone is done as one that is new.
include "nfs3.s.dfy"
module NfsOnce {
  import opened Machine import opened NfsState
  // SHA-256 of what is above, as four numbers
  datatype Key = Key(first: uint64, second: uint64, third: uint64, fourth: uint64)
  // at: the server's clock in seconds. file: what was made, linked, moved, or set; (0, 0) if nothing.
  // ctime: of it, when the call had been done.
  datatype Record = Record(key: Key, at: uint64, file: Handle, ctime: Time)
  // by place
  type Replies = map<int, Record>

  // the calls that have records, as their arguments have them
  datatype Call =
    // CREATE but EXCLUSIVE, which its verifier makes so; MKDIR, SYMLINK, MKNOD
    | Make(dir: Handle, name: Name)
    | Link(file: Handle, dir: Handle, name: Name)
    | Unlink(dir: Handle, name: Name)                                 // REMOVE, RMDIR
    | Rename(from: Handle, fname: Name, to: Handle, tname: Name)
    | Set(file: Handle)                                               // SETATTR with a guard

  // file h has this name
  predicate Named(f: FS, dir: Handle, name: Name, h: Handle)
  { LiveDir(f, dir) && name in f.nodes[dir.ino].body.names && f.nodes[dir.ino].body.names[name] == h.ino && Live(f, h) }
  // it may have this name, and has it not
  predicate Absent(f: FS, dir: Handle, name: Name)
  { LiveDir(f, dir) && Proper(name) && name !in f.nodes[dir.ino].body.names }
  // nothing of file h was changed since its ctime was t (ctime.dfy)
  predicate Untouched(f: FS, h: Handle, t: Time) { Live(f, h) && f.nodes[h.ino].attr.ctime == t }

  // what call c has done, as its record r says, is still there
  predicate Stands(f: FS, c: Call, r: Record)
  {
    match c
    case Make(dir, name) => Named(f, dir, name, r.file) && Untouched(f, r.file, r.ctime)
    case Link(file, dir, name) => Named(f, dir, name, file) && r.file == file
    case Unlink(dir, name) => Absent(f, dir, name)
    case Rename(from, fname, to, tname) => Named(f, to, tname, r.file) &&
      (Absent(f, from, fname) || Named(f, from, fname, r.file))
    case Set(file) => Untouched(f, file, r.ctime)
  }
  // place i has a record of a call with this key, and it is not too old
  predicate Counts(rs: Replies, i: int, key: Key, since: uint64)
  { i in rs && rs[i].key == key && since <= rs[i].at }
  // place i has the record of call c, which came with this key, and it counts
  predicate Again(rs: Replies, i: int, key: Key, since: uint64, f: FS, c: Call)
  { Counts(rs, i, key, since) && Stands(f, c, rs[i]) }
  // call c was done, and place i has its record; all others are as they were
  predicate Kept(pre: Replies, post: Replies, i: int, key: Key, at: uint64, f: FS, c: Call)
  { i in post && post == pre[i := post[i]] && post[i].key == key && post[i].at == at && Stands(f, c, post[i]) }
}
