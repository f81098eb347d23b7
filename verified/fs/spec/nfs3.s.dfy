// THE SPECIFICATION: what the 22 procedures of NFS version 3 (RFC 1813) do.
//
// It is written for people who know file systems and not Dafny. A volume is a
// mathematical value (FS, in section 1). A procedure is described by two predicates:
//
//   XOk(before, after, who calls, arguments, now, results)   the call succeeded
//   XErr(before, who calls, arguments, status)               the call failed with this status
//
// and the promise, for every call and every sound volume (Sound, section 1), is
//
//   status == NFS3_OK ==> XOk(...), and the volume is sound again
//   status != NFS3_OK ==> XErr(...) or Outside(status, ...), and the volume is as before;
//                         attributes in the reply are Seen (section 1)
//
// A procedure is one transaction. On an error its caller aborts the transaction, so nothing it did is left; that is why
// XErr knows only the state before. One error is another: NFS3ERR_IO because the device failed when a change was to be
// made durable. No reply shows that change, nothing more is written, and whether it is there turns out when the volume
// is served again. Read procedures change nothing, and their XOk has one state.
//
// XOk names every condition of success, so when a condition is not met the answer is an error. When several
// errors apply, XErr leaves open which of them is given, as RFC 1813 does; but EXIST goes before the missing right to
// write in the directory (MakeErr, section 7). Numbers such as "3.3.8" are sections of the RFC.
//
// Times: `now` is the server's clock (seconds, nanoseconds), read when the call begins. What a call changes is stamped
// with it, or, where that is not later than the ctime which the file has, with the nanosecond after that ctime (Stamp,
// section 1); "is now" means this stamp below. So every change gives a file a later ctime than it ever had, whatever
// the clock does, and mtime goes with it: who finds the ctime of a file unchanged knows that nothing of it was changed
// (ctime.dfy proves it).
//
// Notation: |s| is the length of s, s[a..b] its elements a to b - 1, m[k := v] the map m with v at k, ==> implies;
// {:trigger ...} is for the prover. m / 512 % 2 == 1 says that bit 512, octal 01000, of m is set; 64, 8, and 1 stand
// for owner, group, and others.
//
// Words of this project's own:
//   sound   of a volume: it can occur. A tree of directories, with right link counts (Sound, section 1)
//   held    the blocks of a file that are there; where it has none, a hole, its bytes are zeros (Body, Held)
//   kept    of a file: open on a local mount, which counts as a link, so that it outlives its names (Kept)
//   places  where the entries of a directory stand in listings, their cookies. An entry never moves (Places, Stay)
//   use     of an inode number: numbers are given out again, each time with another generation (Live)
//   live    of a handle: its file exists, in this use of its number (Live)
//   stamp   the time that a change gives to what it changes (Stamp)
//   Seen    attributes in a reply are none, or those that the file has
//   Shed    a file is as it was, but for blocks behind its end that were freed (Freed)
//   Full    the status that a procedure may give when it needs a block or an inode and there is none
//   Outside the statuses that any procedure may give, because the device failed
//
// Constants have the names of the RFC where it has one. 4096, the bytes of a block (BLOCK), and the weights of the bits
// of a mode stand as numbers where something is multiplied or divided by them, because the prover wants them so.
include "../../lib/bytespec.dfy"
include "../../lib/accesslists.dfy"
// ---------------------------------------------------------------- 1. the volume, statuses, results
module NfsState {
  import opened Machine
  type Name = seq<byte>
  datatype Time = Time(seconds: uint64, nanoseconds: uint32)
  predicate Earlier(a: Time, b: Time)
  { a.seconds < b.seconds || (a.seconds == b.seconds && a.nanoseconds < b.nanoseconds) }
  // The time of a change made at `now` to a file with the ctime `was`. (After the last time of all, in the year 584
  // billion, there is none.)
  function Stamp(now: Time, was: Time): Time { if Earlier(was, now) then now else Next(was) }
  function Next(t: Time): Time
  { if t.nanoseconds < 999_999_999 then Time(t.seconds, t.nanoseconds + 1) else if t.seconds < 0xffff_ffff_ffff_ffff
    then Time(t.seconds + 1, 0) else t }

  // 2^32 - 1 is nobody's number: in POSIX an id of -1 means "no change", and the clients' kernels refuse to show a
  // file that has it. So nobody calls with it (squash.s.dfy), and nobody can set it (WithoutNobody, below). Volumes of
  // old may have files with such an owner or group. They belong to nobody, and replies show another number, 65534.
  ghost const NOID: uint32 := 0xffff_ffff
  ghost const NOBODY: uint32 := 65534
  function ShownId(id: uint32): uint32 { if id == NOID then NOBODY else id }

  // What every file has (2.5, fattr3), as far as it does not follow from the rest.
  // mode: the 12 bits rwxrwxrwx with setuid 04000, setgid 02000, sticky 01000.
  // flags: what chattr(1) sets on a local mount, with the numbers of Linux (Immutable and AppendOnly, section 3), below
  // 256; and the numbers of the file's access lists (section 2).
  ghost const ALLMODES: uint32 := 4095                 // 07777
  datatype Attr = Attr(mode: uint32, nlink: uint32, uid: uint32, gid: uint32, atime: Time, mtime: Time, ctime: Time,
    flags: uint32)

  // What a file is.
  //   File      verf: the verifier of the EXCLUSIVE CREATE that made it, until attributes are set; else 0;
  //             held: the blocks it has. Block b is of the bytes from 4096 * b on; where it has none, a hole, they are
  //             zeros
  //   Dir       names: the entries; cookies: the place of each entry in listings;
  //             parent: the directory ".." means; bytes: the size that is reported, of all blocks up to the last that
  //             ever had an entry
  //   Special   kind: NF3BLK, NF3CHR, NF3SOCK, or NF3FIFO
  datatype Body =
    | File(data: seq<byte>, verf: uint64, held: set<int>)
    | Dir(names: map<Name, uint64>, cookies: map<Name, int>, parent: uint64, bytes: uint64)
    | Symlink(target: seq<byte>)
    | Special(kind: uint32, major: uint32, minor: uint32)
  // blocks: how many blocks of 4096 bytes of disk it takes for its bytes or entries: those of held, and after a cut
  // those behind the end that are still to be freed
  datatype Node = Node(attr: Attr, body: Body, blocks: int)

  // nodes: the files that exist, by inode number. gens: for every inode number of
  // the volume, how often it has been given out; kept when the file is removed. The root is inode 1. xattrs: the
  // extended attributes that a local mount has set (xattr.s.dfy), by inode number; no procedure of NFS changes or shows
  // them.
  datatype FS = FS(nodes: map<uint64, Node>, gens: map<uint64, uint64>, xattrs: map<uint64, Xattrs>)
  // gen: the use of the inode number that they were set in. In another one they mean nothing.
  datatype Xattrs = Xattrs(gen: uint64, list: map<Name, seq<byte>>)

  // A file handle: an inode number, and which of its uses is meant. (On the wire it
  // also has the volume's identity, and a code that makes forgery evident: nfs/nfs3/handle.go.)
  datatype Handle = Handle(ino: uint64, gen: uint64)

  // The handle is of a file that exists, in this use of its number. Since a number is given out with
  // a new generation each time, a handle never means another file (2.3.3, NFS3ERR_STALE).
  predicate Live(f: FS, h: Handle) { h.ino in f.nodes && h.ino in f.gens && f.gens[h.ino] == h.gen }
  predicate IsDir(f: FS, i: uint64) { i in f.nodes && f.nodes[i].body.Dir? }
  predicate IsFile(f: FS, i: uint64) { i in f.nodes && f.nodes[i].body.File? }
  predicate LiveDir(f: FS, h: Handle) { Live(f, h) && f.nodes[h.ino].body.Dir? }

  // file types (2.5, ftype3)
  ghost const NF3REG: uint32 := 1   ghost const NF3DIR: uint32 := 2   ghost const NF3BLK: uint32 := 3
  ghost const NF3CHR: uint32 := 4   ghost const NF3LNK: uint32 := 5   ghost const NF3SOCK: uint32 := 6
  ghost const NF3FIFO: uint32 := 7

  function Type(n: Node): uint32
  { match n.body case File(data, verf, held) => NF3REG case Dir(names, cookies, parent, bytes) => NF3DIR
    case Symlink(target) => NF3LNK case Special(kind, major, minor) => kind }
  function Size(n: Node): int
  { match n.body case File(data, verf, held) => |data| case Dir(names, cookies, parent, bytes) => bytes as int
    case Symlink(target) => |target| case Special(kind, major, minor) => 0 }

  // the root's inode number
  ghost const ROOT: uint64 := 1

  // the limits that FSINFO and PATHCONF report
  ghost const NAMEMAX: int := 255                      // bytes in a name
  ghost const TARGETMAX: int := 4095                   // bytes in the target of a symbolic link
  ghost const FILEMAX: int := 549755813888             // bytes in a file: 512 GiB
  ghost const LINKMAX: uint32 := 0x7fff_ffff           // links of a file; sub-directories of a directory

  // Names are bytes; "/" and zero cannot occur (3.2, "filenames")
  ghost const SLASH: byte := 47
  ghost const DOT: Name := [46]                        // "."
  ghost const DOTDOT: Name := [46, 46]                 // ".."
  predicate Legal(n: Name)
  { 0 < |n| <= NAMEMAX && (forall i: int {:trigger n[i]} | 0 <= i < |n| :: n[i] != 0 && n[i] != SLASH) }
  predicate Dots(n: Name) { n == DOT || n == DOTDOT }
  // a name for an entry that is made, removed, or renamed
  predicate Proper(n: Name) { Legal(n) && !Dots(n) }

  // ---- the volumes that can occur ----
  // Every procedure keeps a volume sound, and mkfs makes it so: a tree of directories under the root without
  // cycles; every file has a name; link counts are exact, but that a file counts one link more while a local mount of
  // the volume keeps it (Kept), and that it may have no name then. (depth is a witness for "no cycles".)
  predicate Sound(f: FS)
  { exists depth: map<uint64, int> {:trigger Tree(f, depth)} :: Tree(f, depth) && Counts(f) && Bodies(f) }

  predicate Tree(f: FS, depth: map<uint64, int>)
  {
    IsDir(f, ROOT) && f.nodes[ROOT].body.parent == ROOT &&
    forall d: uint64, n: Name {:trigger Entry(f, d, n)} | Entry(f, d, n) ::
      var i := f.nodes[d].body.names[n];
      Proper(n) && i in f.nodes && i != ROOT &&
      (f.nodes[i].body.Dir? ==> f.nodes[i].body.parent == d && d in depth && i in depth && depth[i] == depth[d] + 1)
  }
  predicate Entry(f: FS, d: uint64, n: Name) { IsDir(f, d) && n in f.nodes[d].body.names }
  // the names (directory, name) of file i, and the sub-directories of i
  function Names(f: FS, i: uint64): set<(uint64, Name)>
  { set d, n | d in f.nodes && f.nodes[d].body.Dir? && n in f.nodes[d].body.names && f.nodes[d].body.names[n] == i ::
    (d, n) }
  function SubDirs(f: FS, i: uint64): set<uint64>
  { set d | d in f.nodes && d != ROOT && f.nodes[d].body.Dir? && f.nodes[d].body.parent == i :: d }

  predicate Counts(f: FS)
  {
    forall i: uint64 {:trigger i in f.nodes} | i in f.nodes ::
      if f.nodes[i].body.Dir? then f.nodes[i].attr.nlink as int == 2 + |SubDirs(f, i)| &&
        (i == ROOT || |Names(f, i)| == 1)
      else f.nodes[i].attr.nlink as int == |Names(f, i)| > 0 || Kept(f, i)
  }
  // Somebody has file i open on a mount, which keeps it (local.s.dfy): that is a link, so the file outlives its names.
  // Clients see the count, and no other difference: the handle is good, and by it all goes on, LINK too. Where nothing
  // is mounted, no file is kept.
  predicate Kept(f: FS, i: uint64)
  { i in f.nodes && !f.nodes[i].body.Dir? && f.nodes[i].attr.nlink as int == |Names(f, i)| + 1 }
  predicate NoneKept(f: FS)
  { forall i: uint64 {:trigger i in f.nodes} {:trigger Kept(f, i)} :: i in f.nodes ==> !Kept(f, i) }
  predicate Bodies(f: FS)
  {
    forall i: uint64 {:trigger i in f.nodes} | i in f.nodes ::
      i in f.gens && f.nodes[i].attr.mode <= ALLMODES && 0 <= f.nodes[i].blocks &&
      match f.nodes[i].body
      case File(d, v, h) => |d| <= FILEMAX && Held(d, h) && |h| <= f.nodes[i].blocks
      case Dir(names, cookies, parent, bytes) => Places(f.nodes[i].body) && bytes % 4096 == 0 && bytes as int <= FILEMAX
      case Symlink(t) => 0 < |t| <= TARGETMAX
      case Special(k, a, b) => k == NF3BLK || k == NF3CHR || k == NF3SOCK || k == NF3FIFO
  }
  // no block lies behind the end, and a byte in a hole is zero
  predicate Held(d: seq<byte>, held: set<int>)
  {
    (forall b: int {:trigger b in held} | b in held :: 0 <= b && 4096 * b < |d|) &&
    (forall k: int {:trigger d[k]} | 0 <= k < |d| && d[k] != 0 :: k / 4096 in held)
  }
  // each entry has a cookie of its own, above those of "." and ".." (3.3.16)
  ghost const DOTCOOKIE: int := 1   ghost const DOTDOTCOOKIE: int := 2
  // A cookie says where its entry stands: it counts the bytes before that by 64. Here the entry's block ends. No entry
  // stands behind the directory's size, so clients may keep cookies in signed numbers.
  function BlockEnd(cookie: int): int { 4096 * ((cookie - DOTDOTCOOKIE - 1) / 64 + 1) }
  predicate Places(b: Body)
    requires b.Dir?
  {
    (forall n: Name {:trigger n in b.names} | n in b.names ::
      n in b.cookies && DOTDOTCOOKIE < b.cookies[n] && BlockEnd(b.cookies[n]) <= b.bytes as int) &&
    (forall m: Name, n: Name {:trigger m in b.names, n in b.names} | m in b.names && n in b.names && m in b.cookies &&
      n in b.cookies && b.cookies[m] == b.cookies[n] :: m == n)
  }

  // ---- statuses, results, arguments ----
  // nfsstat3 (2.6). Not used: NXIO, NODEV, REMOTE, DQUOT (no quotas), XDEV (one
  // volume per server), BADHANDLE and NOTSUPP (the protocol layer).
  ghost const NFS3_OK: uint32 := 0   ghost const NFS3ERR_PERM: uint32 := 1   ghost const NFS3ERR_NOENT: uint32 := 2
  ghost const NFS3ERR_IO: uint32 := 5   ghost const NFS3ERR_ACCES: uint32 := 13
  ghost const NFS3ERR_EXIST: uint32 := 17
  ghost const NFS3ERR_NOTDIR: uint32 := 20   ghost const NFS3ERR_ISDIR: uint32 := 21
  ghost const NFS3ERR_INVAL: uint32 := 22
  ghost const NFS3ERR_FBIG: uint32 := 27   ghost const NFS3ERR_NOSPC: uint32 := 28
  ghost const NFS3ERR_ROFS: uint32 := 30
  ghost const NFS3ERR_MLINK: uint32 := 31   ghost const NFS3ERR_NAMETOOLONG: uint32 := 63
  ghost const NFS3ERR_NOTEMPTY: uint32 := 66
  ghost const NFS3ERR_STALE: uint32 := 70   ghost const NFS3ERR_NOT_SYNC: uint32 := 10002
  ghost const NFS3ERR_BAD_COOKIE: uint32 := 10003
  ghost const NFS3ERR_TOOSMALL: uint32 := 10005   ghost const NFS3ERR_SERVERFAULT: uint32 := 10006
  ghost const NFS3ERR_BADTYPE: uint32 := 10007

  // Never on the wire. The file was cut lately and blocks behind its end are still
  // to be freed, so it cannot grow yet. The server frees them in transactions of their own, however many
  // there are, and calls the procedure again (fs/search.go). That some are to be freed the state does not tell: the
  // procedures do (ToFree in procedures/base.dfy).
  ghost const SHRINKFIRST: uint32 := 20001
  // What that changes, and what the server frees of itself between calls: some files have fewer blocks.
  predicate Freed(pre: FS, post: FS)
  {
    post.gens == pre.gens && post.xattrs == pre.xattrs &&
      (forall i: uint64 {:trigger i in post.nodes} :: i in post.nodes <==> i in pre.nodes) &&
    forall i: uint64 {:trigger post.nodes[i]} | i in post.nodes && i in pre.nodes :: Shed(pre.nodes[i], post.nodes[i])
  }
  predicate Shed(n: Node, m: Node) { m == Node(n.attr, n.body, m.blocks) && m.blocks <= n.blocks }

  // What any procedure may answer in any state, since it is not decided by the state: the device failed. One that
  // changes something: the volume is served read-only, or became so when the device failed. (Nobody is told to come
  // again, NFS3ERR_JUKEBOX.)
  predicate Outside(st: uint32, changes: bool) { st == NFS3ERR_IO || (changes && st == NFS3ERR_ROFS) }

  // NOSPC is allowed to the procedures that may need a block or an inode, when they do, and there are too few: that is
  // room.s.dfy's. Making a file and entering a name may need them. WRITE needs none for blocks that the file has: what
  // was written can be overwritten on a full volume. SETATTR, REMOVE, RMDIR, and RENAME to a name that is there never
  // need one.
  predicate Full(st: uint32) { st == NFS3ERR_NOSPC }
  // SERVERFAULT: the volume contradicts itself. It is proved that no procedure answers
  // so on a sound volume, but RENAME of a directory to a place too deep (section 9).

  // The attributes in replies (2.5, fattr3), of inode i. One is left out: `fsid`, a constant of the volume.
  datatype Fattr = Fattr(ty: uint32, mode: uint32, nlink: uint32, uid: uint32, gid: uint32, size: int, used: int,
    major: uint32, minor: uint32, fileid: uint64, atime: Time, mtime: Time, ctime: Time)
  function FattrOf(i: uint64, n: Node): Fattr
  {
    Fattr(Type(n), n.attr.mode, n.attr.nlink, ShownId(n.attr.uid), ShownId(n.attr.gid), Size(n), Used(n),
      if n.body.Special? then n.body.major else 0, if n.body.Special? then n.body.minor
        else 0, i, n.attr.atime, n.attr.mtime, n.attr.ctime)
  }

  // `used`: the bytes of its blocks, but not more than a file of this size takes without holes. So a cut shows at once,
  // of a file without holes exactly; when nothing waits to be freed, it is that of `held`, and it is never less: a file
  // with used 0 has no bytes but zeros, as some programs believe (space.dfy proves it). Blocks that tell where others
  // lie do not count. Of a directory it is what its entries take; of a symbolic link, one block; of the others nothing.
  function Used(n: Node): int { var all := (Size(n) + 4095) / 4096; 4096 * (if n.blocks < all then n.blocks else all) }

  // Weak cache consistency data (2.6, wcc_data): since a call is one transaction,
  // they are exactly the attributes before and after, and nobody's change is in between.
  datatype Wcc = Wcc(before: Fattr, after: Fattr)
  predicate WccOk(pre: FS, post: FS, i: uint64, w: Wcc)
  {
    i in pre.nodes && w.before == FattrOf(i, pre.nodes[i]) &&
    i in post.nodes && w.after == FattrOf(i, post.nodes[i])
  }
  // Attributes in the reply of a call that failed: none, or those that the file has.
  predicate Seen(f: FS, i: uint64, a: Option<Fattr>)
  { a.None? || (i in f.nodes && a.x == FattrOf(i, f.nodes[i])) }

  // The attributes to set (2.6, sattr3).
  datatype SetTime = DontChange | ServerTime | ClientTime(time: Time)
  datatype Sattr = Sattr(mode: Option<uint32>, uid: Option<uint32>, gid: Option<uint32>, size: Option<uint64>,
    atime: SetTime, mtime: SetTime)
  function NoSattr(): Sattr { Sattr(None, None, None, None, DontChange, DontChange) }
  function OnlySize(n: uint64): Sattr { Sattr(None, None, None, Some(n), DontChange, DontChange) }
  function WithoutSize(s: Sattr): Sattr { Sattr(s.mode, s.uid, s.gid, None, s.atime, s.mtime) }
  function WithoutMode(s: Sattr): Sattr { Sattr(None, s.uid, s.gid, s.size, s.atime, s.mtime) }
  function WithoutIds(s: Sattr): Sattr { Sattr(s.mode, None, None, s.size, s.atime, s.mtime) }
  // What s means: an owner or group of 2^32 - 1 is as if it were not set, as in chown(2).
  function WithoutNobody(s: Sattr): Sattr { Sattr(s.mode, RealId(s.uid), RealId(s.gid), s.size, s.atime, s.mtime) }
  function RealId(id: Option<uint32>): Option<uint32> { if id == Some(NOID) then None else id }
}

// ---------------------------------------------------------------------------------- 2. permissions
module NfsPerm {
  import opened Machine import opened AccessLists import opened NfsState
  // The caller (AUTH_SYS, after squashing): user, group, supplementary groups. lists is no matter of theirs: it says
  // what the numbers of access lists mean, the same for all who call, and for as long as the volume is there.
  datatype Caller = Caller(uid: uint32, gid: uint32, gids: seq<uint32>, lists: map<uint32, AccessList>)

  // The rules of a Linux server (RFC 1813, 4.4, leaves them to the server), over plain
  // values: type, mode, owner, group of the file. Rights are these, and sums of them; of a directory EXEC is the right
  // to search it.
  ghost const EXEC: uint32 := 1   ghost const WRITE: uint32 := 2   ghost const READ: uint32 := 4
  // the bits of a mode that these rules ask for
  predicate IsSetuid(mode: uint32) { mode / 2048 % 2 == 1 }
  predicate IsSetgid(mode: uint32) { mode / 1024 % 2 == 1 }
  predicate IsSticky(mode: uint32) { mode / 512 % 2 == 1 }
  predicate GroupExecutes(mode: uint32) { mode / 8 % 2 == 1 }
  predicate SomebodyExecutes(mode: uint32) { mode % 2 == 1 || GroupExecutes(mode) || mode / 64 % 2 == 1 }
  function OwnerRights(mode: uint32): uint32 { mode / 64 % 8 }
  function GroupRights(mode: uint32): uint32 { mode / 8 % 8 }
  function OtherRights(mode: uint32): uint32 { mode % 8 }

  // flags of a file (Attr.flags)
  ghost const IMMUTABLE: uint32 := 16   ghost const APPENDONLY: uint32 := 32
  predicate IsImmutable(flags: uint32) { flags / 16 % 2 == 1 }
  predicate IsAppendOnly(flags: uint32) { flags / 32 % 2 == 1 }

  predicate InGroup(c: Caller, g: uint32) { c.gid == g || g in c.gids }
  predicate IsOwner(c: Caller, uid: uint32) { c.uid == 0 || c.uid == uid }

  // The rights the mode bits give. The class that fits first decides alone: an owner without read permission may
  // not read although everybody else may. Root has all rights, but to execute a file that nobody may execute.
  function Granted(c: Caller, ty: uint32, mode: uint32, uid: uint32, gid: uint32): uint32
  {
    if c.uid == 0 then (if ty == NF3DIR || SomebodyExecutes(mode) then READ + WRITE + EXEC else READ + WRITE)
    else if c.uid == uid then OwnerRights(mode)
    else if InGroup(c, gid) then GroupRights(mode)
    else OtherRights(mode)
  }
  predicate Within(p: uint32, want: uint32)
  { (want % 2 == 1 ==> p % 2 == 1) && (want / 2 % 2 == 1 ==> p / 2 % 2 == 1) && (want / 4 % 2 == 1 ==> p / 4 % 2 == 1) }
  predicate May(c: Caller, ty: uint32, mode: uint32, uid: uint32, gid: uint32, flags: uint32, want: uint32)
  {
    if IsListed(c, uid, flags) then Allows(c, AccessNumber(flags), mode, gid, want)
    else Within(Granted(c, ty, mode, uid, gid), want)
  }

  // Access lists (ACLs) are those of POSIX 1003.1e, draft 17, as Linux has them. A file may have one, and a directory
  // another beside it, its default list, which what is made in it gets. Attr.flags has their numbers; 0: there is none.
  // Of a file with a list the mode has the rights of owner and others, and in place of the group's the mask: the most
  // that the group, and users and groups that the list names, may have. So what the list says of owner, mask, and
  // others counts in a default list alone.
  ghost const MAXLIST: uint32 := 4095                  // the largest number
  function AccessNumber(flags: uint32): uint32 { flags / 256 % 4096 }
  function DefaultNumber(flags: uint32): uint32 { flags / 1048576 }
  predicate IsListed(c: Caller, uid: uint32, flags: uint32) { AccessNumber(flags) != 0 && c.uid != 0 && c.uid != uid }

  // The first that fits decides: the entry of the user; else those of the groups that the caller is in, the file's
  // among them, of which one must give all that is wanted; else the rights of others. Of a list that is not there,
  // nobody has anything.
  predicate Allows(c: Caller, number: uint32, mode: uint32, gid: uint32, want: uint32)
  {
    number in c.lists && var l := c.lists[number]; var own := OfUser(l.named, c.uid);
    if own.Some? then Within(own.x, want) && Within(GroupRights(mode), want)
    else if InGroup(c, gid) || InSome(c, l.named) then
      ((InGroup(c, gid) && Within(l.group, want)) || SomeAllows(c, l.named, want)) && Within(GroupRights(mode), want)
    else Within(OtherRights(mode), want)
  }
  function OfUser(es: seq<Entry>, uid: uint32): Option<uint32>
  { if es == [] then None else if !es[0].group && es[0].id == uid then Some(es[0].rights) else OfUser(es[1..], uid) }
  predicate InSome(c: Caller, es: seq<Entry>)
  { es != [] && ((es[0].group && InGroup(c, es[0].id)) || InSome(c, es[1..])) }
  predicate SomeAllows(c: Caller, es: seq<Entry>, want: uint32)
  {
    es != [] && ((es[0].group && InGroup(c, es[0].id) && Within(es[0].rights, want)) || SomeAllows(c, es[1..], want))
  }

  // What a new file of type ty gets from its directory's default list: the list, if that has a mask (another says no
  // more than a mode), and of the mode that it is made with what the list has as well; a directory gets the default
  // list, too. Symbolic links get nothing.
  function Inherited(c: Caller, ty: uint32, dflags: uint32): uint32
  {
    var n := DefaultNumber(dflags) % 4096;
    if ty == NF3LNK then 0
    else (if n in c.lists && !c.lists[n].masked then 0 else n * 256) + (if ty == NF3DIR then n * 1048576 else 0)
  }
  function InheritedMode(c: Caller, ty: uint32, dflags: uint32, mode: uint32): uint32
  {
    var n := DefaultNumber(dflags) % 4096;
    if ty == NF3LNK || n == 0 || n !in c.lists then mode else Bounded(mode, c.lists[n])
  }
  function Bounded(mode: uint32, l: AccessList): uint32
  {
    mode / 512 % 8 * 512 + Both(OwnerRights(mode), l.owner) * 64 +
      Both(GroupRights(mode), if l.masked then l.mask else l.group) * 8 + Both(OtherRights(mode), l.other)
  }
  function Both(a: uint32, b: uint32): uint32
  {
    (if a % 2 == 1 && b % 2 == 1 then 1 else 0) + (if a / 2 % 2 == 1 && b / 2 % 2 == 1 then 2 else 0) +
      (if a / 4 % 2 == 1 && b / 4 % 2 == 1 then 4 else 0)
  }

  // For the data of a file: its owner may always read and write. There is no OPEN in NFS, so a file that lost its
  // permission bits while it was open must go on working; the client checks ACCESS when it opens (4.4).
  predicate MayData(c: Caller, ty: uint32, mode: uint32, uid: uint32, gid: uint32, flags: uint32, want: uint32)
  { c.uid == uid || May(c, ty, mode, uid, gid, flags, want) }
  // To run a program is to READ it: execute permission is enough (4.4).
  predicate MayFetch(c: Caller, ty: uint32, mode: uint32, uid: uint32, gid: uint32, flags: uint32)
  { MayData(c, ty, mode, uid, gid, flags, READ) || May(c, ty, mode, uid, gid, flags, EXEC) }
  // In a sticky directory an entry is taken away or replaced only by root, the
  // directory's owner, or the file's owner.
  predicate StickyRefuses(c: Caller, dmode: uint32, duid: uint32, uid: uint32)
  { IsSticky(dmode) && !IsOwner(c, duid) && !IsOwner(c, uid) }

  // The rights of ACCESS (3.3.4). By mode and access list; and what is immutable, nobody may change. To change a
  // directory is to write and search it.
  ghost const ACCESS3_READ: uint32 := 1     ghost const ACCESS3_LOOKUP: uint32 := 2
  ghost const ACCESS3_MODIFY: uint32 := 4
  ghost const ACCESS3_EXTEND: uint32 := 8   ghost const ACCESS3_DELETE: uint32 := 16
  ghost const ACCESS3_EXECUTE: uint32 := 32
  function AccessBits(c: Caller, ty: uint32, mode: uint32, uid: uint32, gid: uint32, flags: uint32): uint32
  {
    var read, exec := May(c, ty, mode, uid, gid, flags, READ), May(c, ty, mode, uid, gid, flags, EXEC);
    var write := May(c, ty, mode, uid, gid, flags, WRITE) && !IsImmutable(flags);
    var change := May(c, ty, mode, uid, gid, flags, WRITE + EXEC) && !IsImmutable(flags);
    (if read then ACCESS3_READ else 0) +
    if ty == NF3DIR then
      (if exec then ACCESS3_LOOKUP else 0) +
      (if change then ACCESS3_MODIFY + ACCESS3_EXTEND + ACCESS3_DELETE else 0)
    else (if write then ACCESS3_MODIFY + ACCESS3_EXTEND else 0) + (if exec then ACCESS3_EXECUTE else 0)
  }

  // A mode after a change by somebody who is not root, or of the owner: without
  // setuid, and without setgid unless that stands for mandatory locking (no g+x).
  function KillPriv(mode: uint32): uint32
  {
    var rest := if IsSetuid(mode) then mode - 2048 else mode;
    if IsSetgid(mode) && GroupExecutes(mode) then rest - 1024 else rest
  }
  function DropSetgid(mode: uint32): uint32 { if IsSetgid(mode) then mode - 1024 else mode }
  function AddSetgid(mode: uint32): uint32 { if !IsSetgid(mode) && mode <= ALLMODES then mode + 1024 else mode }
}

// ----------------------------------------------------------- 3. what the procedures have in common
module NfsCommon {
  import opened Machine import opened ByteSpec import opened NfsState import opened NfsPerm
  // What flags forbid, they forbid everybody, root as well. An immutable file is not changed: neither its bytes nor its
  // attributes nor its names; a directory gets and loses no entries. A file that is append-only gets bytes at its end,
  // a directory entries, and that is all. The status is PERM then. The rules are those of Linux. (SetFlagsOk in
  // local.s.dfy sets flags.)
  predicate Immutable(n: Node) { IsImmutable(n.attr.flags) }
  predicate AppendOnly(n: Node) { IsAppendOnly(n.attr.flags) }
  predicate Fixed(n: Node) { Immutable(n) || AppendOnly(n) }

  // the rules of section 2 for nodes, with their flags
  predicate Can(c: Caller, n: Node, want: uint32)
  { May(c, Type(n), n.attr.mode, n.attr.uid, n.attr.gid, n.attr.flags, want) && (want / 2 % 2 == 1 ==> !Immutable(n)) }
  predicate CanWriteData(c: Caller, n: Node)
  { MayData(c, Type(n), n.attr.mode, n.attr.uid, n.attr.gid, n.attr.flags, WRITE) && !Immutable(n) }
  // to take bytes of a file away, or to replace them
  predicate CanCutData(c: Caller, n: Node) { CanWriteData(c, n) && !AppendOnly(n) }
  // the status for who may not change n, or cut it
  function Denial(n: Node): uint32 { if Immutable(n) then NFS3ERR_PERM else NFS3ERR_ACCES }
  function CutDenial(n: Node): uint32 { if Fixed(n) then NFS3ERR_PERM else NFS3ERR_ACCES }
  predicate CanFetch(c: Caller, n: Node) { MayFetch(c, Type(n), n.attr.mode, n.attr.uid, n.attr.gid, n.attr.flags) }
  // The entry of n may not be taken out of directory d, or be replaced there.
  predicate Refuses(c: Caller, d: Node, n: Node)
  { StickyRefuses(c, d.attr.mode, d.attr.uid, n.attr.uid) || Stays(d, n) }
  predicate Stays(d: Node, n: Node) { Fixed(n) || AppendOnly(d) }
  function Refusal(d: Node, n: Node): uint32 { if Stays(d, n) then NFS3ERR_PERM else NFS3ERR_ACCES }
  predicate HandleErr(f: FS, h: Handle, st: uint32) { st == NFS3ERR_STALE && !Live(f, h) }
  // of the handle of a directory
  predicate DirErr(f: FS, h: Handle, st: uint32)
  { HandleErr(f, h, st) || (st == NFS3ERR_NOTDIR && Live(f, h) && !f.nodes[h.ino].body.Dir?) }
  predicate NameErr(n: Name, st: uint32)
  { (st == NFS3ERR_ACCES && !Legal(n)) || (st == NFS3ERR_NAMETOOLONG && |n| > NAMEMAX) }
  function SetMtimeCtime(a: Attr, nlink: uint32, now: Time): Attr
  { var t := Stamp(now, a.ctime); Attr(a.mode, nlink, a.uid, a.gid, a.atime, t, t, a.flags) }
  function SetNlinkCtime(a: Attr, nlink: uint32, now: Time): Attr
  { Attr(a.mode, nlink, a.uid, a.gid, a.atime, a.mtime, Stamp(now, a.ctime), a.flags) }
  function Put(f: FS, i: uint64, n: Node): FS { FS(f.nodes[i := n], f.gens, f.xattrs) }

  // ("post.nodes == pre.nodes[..][di := post.nodes[di]]", below, says that all but di is as in pre; what became of di,
  // DirStep says.) A directory d that became e: other entries and link count, mtime and ctime are
  // the stamp of the change. All entries that it had before and still has are where they were in
  // listings (3.3.16: cookies stay valid). What becomes of its size, Grown says.
  predicate DirStep(d: Node, e: Node, names: map<Name, uint64>, nlink: int, now: Time)
    requires d.body.Dir?
  {
    e.body.Dir? && e.body.names == names && e.body.parent == d.body.parent && e.attr.nlink as int == nlink &&
    e.attr == SetMtimeCtime(d.attr, e.attr.nlink, now) && Stay(d.body, e.body) && Grown(d, e)
  }
  predicate Stay(b: Body, e: Body)
    requires b.Dir? && e.Dir?
  {
    forall n: Name {:trigger n in e.names} | n in b.names && n in e.names && n in b.cookies ::
      n in e.cookies && e.cookies[n] == b.cookies[n]
  }
  // A new name makes the directory as long as its block needs, and nothing makes it shorter. A name that comes may take
  // a block, and one that goes may free one.
  predicate Grown(d: Node, e: Node)
    requires d.body.Dir? && e.body.Dir?
  {
    (forall n: Name {:trigger n in e.body.names} | n in e.body.names && n !in d.body.names ::
      n in e.body.cookies && e.body.bytes as int == Larger(d.body.bytes as int, BlockEnd(e.body.cookies[n]))) &&
    (Within(e.body.names, d.body.names) ==> e.body.bytes == d.body.bytes && e.blocks <= d.blocks) &&
    (Within(d.body.names, e.body.names) ==> d.blocks <= e.blocks) && d.blocks - 1 <= e.blocks <= d.blocks + 1
  }
  predicate Within(a: map<Name, uint64>, b: map<Name, uint64>) { forall n: Name {:trigger n in a} :: n in a ==> n in b }
  function Larger(a: int, b: int): int { if a < b then b else a }
  function Del(m: map<Name, uint64>, n: Name): map<Name, uint64> { map x | x in m && x != n :: m[x] }

  // Attributes after those in s are set by c, on a file of type ty (3.3.2). ctime is now; atime and mtime move only
  // as s says, but a new size sets mtime. A mode set by one who is neither root nor of the file's group loses
  // setgid; a new owner or group, or a size set by another than root, ends setuid and setgid (not of directories).
  function Applied(c: Caller, ty: uint32, a: Attr, s: Sattr, now: Time): Attr
  {
    var uid := if s.uid.Some? then s.uid.x else a.uid;
    var gid := if s.gid.Some? then s.gid.x else a.gid;
    var m := if s.mode.None? then a.mode
             else if c.uid != 0 && !InGroup(c, gid) then DropSetgid(s.mode.x % 4096)
             else s.mode.x % 4096;
    var mode := if ty != NF3DIR && (s.uid.Some? || s.gid.Some? || (s.size.Some? && c.uid != 0)) then KillPriv(m) else m;
    var mtime := if s.size.Some? then now else a.mtime;
    Attr(mode, a.nlink, uid, gid, TimeAs(s.atime, a.atime, now), TimeAs(s.mtime, mtime, now), now,
      a.flags)
  }
  function TimeAs(how: SetTime, was: Time, now: Time): Time
  {
    match how
    case DontChange => was
    case ServerTime => now
    case ClientTime(t) => t
  }

  // s can be set on no file (3.3.2: INVAL, FBIG)
  ghost const SECOND: uint32 := 1_000_000_000          // in nanoseconds
  predicate BadTime(t: SetTime) { t.ClientTime? && t.time.nanoseconds >= SECOND }
  predicate ArgErr(s: Sattr, st: uint32)
  {
    (st == NFS3ERR_INVAL && (BadTime(s.atime) || BadTime(s.mtime))) ||
    (st == NFS3ERR_FBIG && s.size.Some? && s.size.x as int > FILEMAX)
  }
  predicate ArgsOk(s: Sattr) { !BadTime(s.atime) && !BadTime(s.mtime) && (s.size.Some? ==> s.size.x as int <= FILEMAX) }

  // c may not set s on a file of type ty with attributes a (3.3.2: PERM, ACCES). The owner sets the mode, gives the
  // file to a group of theirs, and sets times to given values; root sets all. Setting the owner or group to what it
  // is, is allowed to the owner. The size and "the server's time" are for all who may write. Flags forbid it to all.
  predicate SetPerm(c: Caller, a: Attr, s: Sattr)
  {
    (s.mode.Some? || s.atime.ClientTime? || s.mtime.ClientTime? ==> IsOwner(c, a.uid)) &&
    (s.uid.Some? && c.uid != 0 ==> c.uid == a.uid && s.uid.x == a.uid) &&
    (s.gid.Some? && c.uid != 0 ==> c.uid == a.uid && (s.gid.x == a.gid || InGroup(c, s.gid.x))) &&
    (IsImmutable(a.flags) ==> s == NoSattr()) && (IsAppendOnly(a.flags) ==> OnlyTouches(s))
  }
  // Nothing is set but times, to the server's.
  predicate OnlyTouches(s: Sattr)
  { s.mode.None? && s.uid.None? && s.gid.None? && s.size.None? && !s.atime.ClientTime? && !s.mtime.ClientTime? }
  predicate SetAcces(c: Caller, ty: uint32, a: Attr, s: Sattr)
  {
    s.size.Some? || s.atime.ServerTime? || s.mtime.ServerTime? ==>
      MayData(c, ty, a.mode, a.uid, a.gid, a.flags, WRITE)
  }
  predicate SetErr(c: Caller, ty: uint32, a: Attr, s: Sattr, st: uint32)
  { (st == NFS3ERR_PERM && !SetPerm(c, a, s)) || (st == NFS3ERR_ACCES && !SetAcces(c, ty, a, s)) }

  // the blocks that n bytes from off on lie in, one or more; what is left of a file's blocks when it is cut to n bytes
  function Blocks(off: int, n: int): set<int> { set b: int | off / 4096 <= b < (off + n + 4095) / 4096 }
  function HeldBelow(held: set<int>, n: int): set<int> { set b: int | b in held && 4096 * b < n }
  // bytes of a file: cut or extended with zeros; overwritten from off on, where
  // a gap between the end and off is zeros
  function Resized(d: seq<byte>, n: int): seq<byte>
    requires 0 <= n
  { if n <= |d| then d[..n] else d + Zeros(n - |d|) }
  function WriteAt(d: seq<byte>, off: int, s: seq<byte>): seq<byte>
    requires 0 <= off
  { Resized(d, if off + |s| > |d| then off else |d|)[..off] + s + (if off + |s| < |d| then d[off + |s| ..] else []) }

  // A file with s set. Growing takes no blocks, cutting gives up those behind the new end. Whoever made it EXCLUSIVE
  // has the answer, and sets attributes next (3.3.8): its verifier has served.
  function SetNode(c: Caller, n: Node, s: Sattr, now: Time, blocks: int): Node
    requires s.size.Some? ==> n.body.File?
  {
    Node(Applied(c, Type(n), n.attr, s, Stamp(now, n.attr.ctime)),
      if !n.body.File? then n.body else if s.size.None? then File(n.body.data, 0, n.body.held)
      else File(Resized(n.body.data, s.size.x as int), 0, HeldBelow(n.body.held, s.size.x as int)), blocks)
  }
  // blocks: those that it then has. Of those that a cut gives up, any number may still wait to be freed.
  predicate Leaves(n: Node, s: Sattr, blocks: int)
  {
    if n.body.File? && s.size.Some? && s.size.x as int < |n.body.data| then
      |HeldBelow(n.body.held, s.size.x as int)| <= blocks <= n.blocks
    else blocks == n.blocks
  }
  predicate Set(pre: FS, post: FS, c: Caller, i: uint64, s: Sattr, now: Time)
    requires i in pre.nodes && (s.size.Some? ==> pre.nodes[i].body.File?)
  {
    i in post.nodes && var n, blocks := pre.nodes[i], post.nodes[i].blocks;
    Leaves(n, s, blocks) && post == Put(pre, i, SetNode(c, n, s, now, blocks))
  }
}

// --------------------------------------------------------------- 4. NULL, GETATTR, SETATTR, ACCESS
module NfsAttrs {
  import opened Machine import opened NfsState import opened NfsPerm import opened NfsCommon
  // 3.3.0 NULL: does nothing.
  predicate NullOk(pre: FS, post: FS) { post == pre }

  // 3.3.1 GETATTR
  predicate GetattrOk(f: FS, h: Handle, a: Fattr) { Live(f, h) && a == FattrOf(h.ino, f.nodes[h.ino]) }
  predicate GetattrErr(f: FS, h: Handle, st: uint32) { HandleErr(f, h, st) }

  // 3.3.2 SETATTR. guard: the ctime that the caller believes the file has. The size
  // is of regular files only. Setting nothing changes nothing, not even ctime.
  predicate SetattrOk(pre: FS, post: FS, c: Caller, h: Handle, s: Sattr, guard: Option<Time>, now: Time, w: Wcc)
  {
    Live(pre, h) && var n, meant := pre.nodes[h.ino], WithoutNobody(s);
    (guard.Some? ==> guard.x == n.attr.ctime) && (meant.size.Some? ==> n.body.File?) && ArgsOk(meant) &&
    SetPerm(c, n.attr, meant) && SetAcces(c, Type(n), n.attr, meant) &&
    (if meant == NoSattr() then post == pre else Set(pre, post, c, h.ino, meant, now)) && WccOk(pre, post, h.ino, w)
  }
  predicate SetattrErr(pre: FS, c: Caller, h: Handle, s: Sattr, guard: Option<Time>, st: uint32)
  {
    HandleErr(pre, h, st) ||
    (Live(pre, h) && var n, meant := pre.nodes[h.ino], WithoutNobody(s);
      (st == NFS3ERR_NOT_SYNC && guard.Some? && guard.x != n.attr.ctime) ||
      (st == NFS3ERR_INVAL && meant.size.Some? && !n.body.File?) ||
      ArgErr(meant, st) || SetErr(c, Type(n), n.attr, meant, st) ||
      (st == SHRINKFIRST && meant.size.Some? && n.body.File? && meant.size.x as int > |n.body.data|))
  }

  // 3.3.4 ACCESS. bits: all the caller has; the reply has those that were asked for, without 4, 8, 16 if the
  // volume is served read-only or its device failed.
  predicate AccessOk(f: FS, c: Caller, h: Handle, bits: uint32, a: Fattr)
  {
    Live(f, h) && var n := f.nodes[h.ino];
    bits == AccessBits(c, Type(n), n.attr.mode, n.attr.uid, n.attr.gid, n.attr.flags) && a == FattrOf(h.ino, n)
  }
  predicate AccessErr(f: FS, h: Handle, st: uint32) { HandleErr(f, h, st) }
}

// ------------------------------------------------------------------------ 5. READLINK, READ, WRITE
module NfsData {
  import opened Machine import opened NfsState import opened NfsPerm import opened NfsCommon
  // 3.3.5 READLINK. Needs no permission, as everywhere.
  predicate ReadlinkOk(f: FS, h: Handle, target: seq<byte>, a: Fattr)
  {
    Live(f, h) && var n := f.nodes[h.ino];
    n.body.Symlink? && target == n.body.target && a == FattrOf(h.ino, n)
  }
  predicate ReadlinkErr(f: FS, h: Handle, st: uint32)
  { HandleErr(f, h, st) || (st == NFS3ERR_INVAL && Live(f, h) && !f.nodes[h.ino].body.Symlink?) }

  // 3.3.6 READ: the bytes from off on, count of them or up to the end. eof: there
  // are none behind them. (The protocol layer has cut count to rtmax.) Reading
  // changes nothing: atime stays, as on a file system mounted with noatime.
  predicate ReadOk(f: FS, c: Caller, h: Handle, off: uint64, count: uint64, data: seq<byte>, eof: bool, a: Fattr)
  {
    Live(f, h) && var n := f.nodes[h.ino];
    n.body.File? && CanFetch(c, n) && a == FattrOf(h.ino, n) &&
    var d, end := n.body.data, off as int + count as int;
    data == (if off as int >= |d| then [] else d[off as int .. if end < |d| then end else |d|]) &&
    (eof <==> end >= |d|)
  }
  predicate ReadErr(f: FS, c: Caller, h: Handle, st: uint32)
  {
    HandleErr(f, h, st) ||
    (Live(f, h) && var n := f.nodes[h.ino]; (st == NFS3ERR_INVAL && !n.body.File?) ||
      (st == NFS3ERR_ACCES && !CanFetch(c, n)))
  }

  // 3.3.7 WRITE: all of data, at off; the file then has all blocks that these bytes lie in. mtime and ctime are now;
  // another than root ends setuid and setgid. No bytes: no change. The protocol layer may store fewer bytes than it was
  // given, by calling this with a prefix, and says so: WriteReply, which is its own to keep. An append-only file is
  // written at its end alone.
  predicate WriteOk(pre: FS, post: FS, c: Caller, h: Handle, off: uint64, data: seq<byte>, now: Time, w: Wcc)
  {
    Live(pre, h) && var n := pre.nodes[h.ino];
    n.body.File? && CanWriteData(c, n) && (AppendOnly(n) ==> off as int == |n.body.data|) &&
      off as int + |data| <= FILEMAX &&
    post == (if data == [] then pre else Put(pre, h.ino, Written(c, n, off as int, data, now))) &&
      WccOk(pre, post, h.ino, w)
  }
  function Written(c: Caller, n: Node, off: int, data: seq<byte>, now: Time): Node
    requires n.body.File? && 0 <= off
  {
    var was := n.attr;
    var t := Stamp(now, was.ctime);
    Node(Attr(if c.uid != 0 then KillPriv(was.mode) else was.mode, was.nlink, was.uid, was.gid, was.atime, t, t,
      was.flags),
      File(WriteAt(n.body.data, off, data), n.body.verf, n.body.held + Blocks(off, |data|)),
        n.blocks + |Blocks(off, |data|) - n.body.held|)
  }
  // How much was stored, and how stable it is (stable_how; what that means: see COMMIT): as was asked, or more.
  ghost const UNSTABLE: uint32 := 0   ghost const DATA_SYNC: uint32 := 1   ghost const FILE_SYNC: uint32 := 2
  predicate WriteReply(asked: int, how: uint32, count: int, committed: uint32)
  { 0 <= count <= asked && (0 < asked ==> 0 < count) && how <= committed <= FILE_SYNC }
  predicate WriteErr(pre: FS, c: Caller, h: Handle, off: uint64, data: seq<byte>, st: uint32)
  {
    HandleErr(pre, h, st) ||
    (Live(pre, h) && var n := pre.nodes[h.ino];
      (st == NFS3ERR_INVAL && !n.body.File?) ||
      (st == NFS3ERR_FBIG && off as int + |data| > FILEMAX) ||
      (st == Denial(n) && n.body.File? && !CanWriteData(c, n)) ||
      (st == NFS3ERR_PERM && n.body.File? && AppendOnly(n) && off as int != |n.body.data|) ||
      (n.body.File? && data != [] && ((Full(st) && !(Blocks(off as int, |data|) <= n.body.held)) ||
        (st == SHRINKFIRST && off as int + |data| > |n.body.data|))))
  }
}

// ----------------------------------------------------------------- 6. LOOKUP, READDIR, READDIRPLUS
module NfsList {
  import opened Machine import opened NfsState import opened NfsPerm import opened NfsCommon
  // 3.3.3 LOOKUP. Needs search permission. "." is the directory itself, ".." its
  // parent, and the root's parent is the root. h, a: the file found; da: the directory.
  predicate LookupOk(f: FS, c: Caller, dh: Handle, name: Name, h: Handle, a: Fattr, da: Fattr)
  {
    LiveDir(f, dh) && var d := f.nodes[dh.ino];
    Legal(name) && Can(c, d, EXEC) && da == FattrOf(dh.ino, d) &&
    (if name == DOT then h.ino == dh.ino else if name == DOTDOT then h.ino == d.body.parent
     else name in d.body.names && h.ino == d.body.names[name]) &&
    Live(f, h) && a == FattrOf(h.ino, f.nodes[h.ino])
  }
  predicate LookupErr(f: FS, c: Caller, dh: Handle, name: Name, st: uint32)
  {
    DirErr(f, dh, st) || NameErr(name, st) ||
    (LiveDir(f, dh) && var d := f.nodes[dh.ino];
      (st == NFS3ERR_ACCES && !Can(c, d, EXEC)) ||
      (st == NFS3ERR_NOENT && name !in d.body.names && !Dots(name)))
  }

  // A listing of directory i: ".", "..", and the entries, each with its cookie.
  datatype Item = Item(ino: uint64, name: Name, cookie: int)
  predicate Listed(i: uint64, b: Body, e: Item)
    requires b.Dir?
  {
    e == Item(i, DOT, DOTCOOKIE) || e == Item(b.parent, DOTDOT, DOTDOTCOOKIE) ||
    (e.name in b.names && e.name in b.cookies && e.ino == b.names[e.name] && e.cookie == b.cookies[e.name])
  }
  // A page: some entries after the cookie, in the order of their cookies (so none comes twice), and none is skipped
  // between the cookie and the page's end. With Stay (section 3) this makes scans exact: of the pages of a scan,
  // each starting at the last cookie of the one before, exactly one has an entry that exists throughout, whatever
  // is made, removed, and renamed meanwhile, and across restarts of the server, since cookies are part of the
  // volume (listings.dfy proves it).
  predicate Page(i: uint64, b: Body, cookie: int, items: seq<Item>, eof: bool)
    requires b.Dir?
  {
    (forall k: int {:trigger items[k]} | 0 <= k < |items| :: Listed(i, b, items[k]) && cookie < items[k].cookie) &&
    (forall j: int, k: int {:trigger items[j], items[k]} | 0 <= j < k < |items| :: items[j].cookie < items[k].cookie) &&
    (forall e: Item {:trigger Listed(i, b, e)} | Listed(i, b, e) && cookie < e.cookie &&
      (eof || (items != [] && e.cookie <= items[|items| - 1].cookie)) :: e in items)
  }

  // How much is asked for: a page has room for so many bytes of entries, and an
  // entry takes `cost` of the length of its name. Beyond the first entry, a page has no more than `names` bytes as
  // nameCost counts them.
  datatype Limit = Limit(room: int, cost: int -> int, names: int, nameCost: int -> int)
  function Bytes(cost: int -> int, items: seq<Item>): int
  { if items == [] then 0 else Bytes(cost, items[..|items| - 1]) + cost(|items[|items| - 1].name|) }
  predicate Fits(items: seq<Item>, lim: Limit)
  { Bytes(lim.cost, items) <= lim.room && (|items| <= 1 || Bytes(lim.nameCost, items) <= lim.names) }
  // What the protocol layer makes of `count` of READDIR (3.3.16) and `maxcount` of READDIRPLUS (3.3.17), after
  // it has cut them to 64 KiB: the result has 104 bytes beside its entries, those of a page without entries too. An
  // entry has 24 (another follows, fileid, length of the name, cookie) and its name, which XDR pads; READDIRPLUS counts
  // 128 for attributes and handle, even of an entry that is given none. `dircount` bounds what READDIR would count of
  // them.
  function Padded(n: int): int { (n + 3) / 4 * 4 }
  ghost const RESULTSIZE: int := 104   ghost const ENTRYSIZE: int := 24   ghost const PLUSSIZE: int := 128
  function Count(count: int): Limit { Limit(count - RESULTSIZE, n => ENTRYSIZE + Padded(n), 0, n => 0) }
  function Maxcount(count: int, dircount: int): Limit
  { Limit(count - RESULTSIZE, n => ENTRYSIZE + PLUSSIZE + Padded(n), dircount, n => ENTRYSIZE + Padded(n)) }

  // the first entry after the cookie
  predicate First(i: uint64, b: Body, cookie: int, e: Item)
    requires b.Dir?
  {
    Listed(i, b, e) && cookie < e.cookie &&
    forall x: Item {:trigger Listed(i, b, x)} | Listed(i, b, x) && cookie < x.cookie :: e.cookie <= x.cookie
  }
  // entries are left after those, and the first of them does not fit any more
  predicate IsFull(i: uint64, b: Body, cookie: int, lim: Limit, items: seq<Item>)
    requires b.Dir?
  { exists e: Item {:trigger First(i, b, Last(cookie, items), e)} ::
    First(i, b, Last(cookie, items), e) && !Fits(items + [e], lim) }
  function Last(cookie: int, items: seq<Item>): int { if items == [] then cookie else items[|items| - 1].cookie }
  // no room for a result, or not for the first entry
  predicate NoneFits(i: uint64, b: Body, cookie: int, lim: Limit)
    requires b.Dir?
  { lim.room < 0 || IsFull(i, b, cookie, lim, []) }

  // 3.3.16 READDIR. Needs read permission. Any cookie may be resumed at any time, so
  // the cookie verifier is always 0, in replies too, and another one cannot be ours. A page has an entry, or
  // eof: a scan comes to an end. And it has all that fit, or eof. Not one fits within the bytes asked for: TOOSMALL.
  predicate ReaddirOk(f: FS, c: Caller, dh: Handle, cookie: uint64, verf: uint64, lim: Limit, items: seq<Item>,
    eof: bool, a: Fattr)
  {
    LiveDir(f, dh) && var d := f.nodes[dh.ino];
    Can(c, d, READ) && (cookie == 0 || verf == 0) && a == FattrOf(dh.ino, d) &&
    Page(dh.ino, d.body, cookie as int, items, eof) && Fits(items, lim) &&
    (eof || (items != [] && IsFull(dh.ino, d.body, cookie as int, lim, items)))
  }
  predicate ReaddirErr(f: FS, c: Caller, dh: Handle, cookie: uint64, verf: uint64, lim: Limit, st: uint32)
  {
    DirErr(f, dh, st) || (st == NFS3ERR_BAD_COOKIE && cookie != 0 && verf != 0) ||
    (LiveDir(f, dh) && var d := f.nodes[dh.ino];
      (st == NFS3ERR_ACCES && !Can(c, d, READ)) ||
      (st == NFS3ERR_TOOSMALL && Can(c, d, READ) && NoneFits(dh.ino, d.body, cookie as int, lim)))
  }

  // 3.3.17 READDIRPLUS: READDIR with the handle and the attributes of every entry,
  // all of the same instant. Who may not search the directory gets none of them.
  predicate ReaddirplusOk(f: FS, c: Caller, dh: Handle, cookie: uint64, verf: uint64, lim: Limit, items: seq<Item>,
    hs: seq<Handle>, attrs: seq<Fattr>, eof: bool, a: Fattr)
  {
    ReaddirOk(f, c, dh, cookie, verf, lim, items, eof, a) &&
    if !Can(c, f.nodes[dh.ino], EXEC) then hs == [] && attrs == []
    else |hs| == |items| && |attrs| == |items| && forall k: int {:trigger items[k]} | 0 <= k < |items| ::
      hs[k].ino == items[k].ino && Live(f, hs[k]) && attrs[k] == FattrOf(hs[k].ino, f.nodes[hs[k].ino])
  }
  predicate ReaddirplusErr(f: FS, c: Caller, dh: Handle, cookie: uint64, verf: uint64, lim: Limit, st: uint32)
  { ReaddirErr(f, c, dh, cookie, verf, lim, st) }
}

// ---------------------------------------------------------- 7. CREATE, MKDIR, SYMLINK, MKNOD, LINK
module NfsMake {
  import opened Machine import opened ByteSpec import opened NfsState import opened NfsPerm import opened NfsCommon
  // The attributes of a new file of type ty in directory d (3.3.8 to 3.3.11). It
  // belongs to the caller; its group is the caller's, or the directory's if that is setgid. mode: unless
  // s has one; the directory's default list bounds it. All three times are now, unless s has them.
  //
  // Another owner or group is for root to give. From anybody else uid and gid in s are ignored, and no error (SETATTR
  // refuses what they may not set): some clients send with every new file the ids they think it will get, as macOS does
  // the directory's group, and would otherwise make none. Linux's server does the same.
  function FirstAttr(c: Caller, d: Node, ty: uint32, mode: uint32, now: Time): Attr
  { Attr(mode, if ty == NF3DIR then 2 else 1, c.uid, if IsSetgid(d.attr.mode) then d.attr.gid else c.gid, now, now,
    now, Inherited(c, ty, d.attr.flags)) }
  function NewAttr(c: Caller, d: Node, ty: uint32, mode: uint32, s: Sattr, now: Time): Attr
  {
    // a size is of the bytes alone: nobody's are cut off here, and so setuid stays
    var given := Applied(c, ty, FirstAttr(c, d, ty, mode, now), WithoutSize(Wanted(c, s)), now);
    var bounded := InheritedMode(c, ty, d.attr.flags, given.mode);
    // a directory made in a setgid directory is one itself
    Attr(if ty == NF3DIR && IsSetgid(d.attr.mode) then AddSetgid(bounded) else bounded, given.nlink, given.uid,
      given.gid, given.atime, given.mtime, given.ctime, given.flags)
  }
  // what of s counts for a new file of c
  function Wanted(c: Caller, s: Sattr): Sattr { if c.uid == 0 then WithoutNobody(s) else WithoutIds(s) }

  // The numbers up to this one are no files' that clients make: ROOT, and 2, where the server keeps what it has to
  // free.
  ghost const LASTRESERVED: uint64 := 2
  // The directory di gets the entry name for the new node n with the handle h: an inode
  // number that no file had, and a generation that no handle has. na: its attributes.
  predicate Made(pre: FS, post: FS, di: uint64, name: Name, h: Handle, n: Node, now: Time, na: Fattr, w: Wcc)
  {
    IsDir(pre, di) && IsDir(post, di) && h.ino != di && LASTRESERVED < h.ino && h.ino !in pre.nodes &&
      h.ino in pre.gens &&
    post.gens == pre.gens[h.ino := h.gen] && post.xattrs == pre.xattrs && h.gen as int == pre.gens[h.ino] as int + 1 &&
    post.nodes == pre.nodes[h.ino := n][di := post.nodes[di]] &&
    var home := pre.nodes[di];
    name !in home.body.names &&
    DirStep(home, post.nodes[di], home.body.names[name := h.ino],
      home.attr.nlink as int + (if n.body.Dir? then 1 else 0), now) &&
    na == FattrOf(h.ino, n) && WccOk(pre, post, di, w)
  }
  // the directory, the name, and the right to enter it
  predicate MayMake(f: FS, c: Caller, dh: Handle, name: Name)
  {
    LiveDir(f, dh) && Proper(name) && var at := f.nodes[dh.ino];
    Can(c, at, WRITE + EXEC) && name !in at.body.names
  }
  // Who may search the directory is told that the name is taken, although they may not write there: "mkdir -p" and the
  // like ask so whether it is there, and take another error for a failure. Who may not search it is told nothing.
  // It is what the calls of Linux say.
  predicate MakeErr(f: FS, c: Caller, dh: Handle, name: Name, st: uint32)
  {
    DirErr(f, dh, st) || NameErr(name, st) || (st == NFS3ERR_EXIST && Dots(name)) ||
    (LiveDir(f, dh) && var folder := f.nodes[dh.ino];
      if !Can(c, folder, EXEC) then st == NFS3ERR_ACCES else if name in folder.body.names then st == NFS3ERR_EXIST
      else (st == Denial(folder) && !Can(c, folder, WRITE + EXEC)) || Full(st))
  }

  // the ways of CREATE (createmode3)
  ghost const UNCHECKED: uint32 := 0   ghost const GUARDED: uint32 := 1   ghost const EXCLUSIVE: uint32 := 2
  // the modes that files are made with
  ghost const MODE0644: uint32 := 420   ghost const MODE0755: uint32 := 493   ghost const MODE0777: uint32 := 511

  // 3.3.8 CREATE. EXCLUSIVE sets no attributes but remembers verf: a call that
  // comes twice, with no SETATTR between, finds the file it made and succeeds. (0 is no verifier: it never matches.)
  // UNCHECKED of a regular file that exists sets its size if s has one, as SETATTR would, and nothing else. h, na: the
  // file.
  predicate CreateOk(pre: FS, post: FS, c: Caller, dh: Handle, name: Name, how: uint32, s: Sattr, verf: uint64,
    now: Time, h: Handle, na: Fattr, w: Wcc)
  {
    LiveDir(pre, dh) && Proper(name) && how <= EXCLUSIVE && ArgsOk(s) && var folder := pre.nodes[dh.ino];
    Can(c, folder, EXEC) &&
    if name in folder.body.names then Reopened(pre, post, c, dh.ino, name, how, s, verf, now, h, na, w)
    else MayMake(pre, c, dh, name) && Made(pre, post, dh.ino, name, h, NewFile(c, folder, how, s, verf, now), now, na,
      w)
  }
  function CreateMode(how: uint32): uint32 { if how == EXCLUSIVE then 0 else MODE0644 }
  function CreateAttr(how: uint32, s: Sattr): Sattr { if how == EXCLUSIVE then NoSattr() else s }
  function NewFile(c: Caller, d: Node, how: uint32, s: Sattr, verf: uint64, now: Time): Node
  {
    var t := CreateAttr(how, s);
    Node(NewAttr(c, d, NF3REG, CreateMode(how), t, now),
      File(if t.size.Some? then Zeros(t.size.x as int) else [], if how == EXCLUSIVE then verf else 0, {}), 0)
  }
  predicate Reopened(pre: FS, post: FS, c: Caller, di: uint64, name: Name, how: uint32, s: Sattr, verf: uint64,
    now: Time, h: Handle, na: Fattr, w: Wcc)
    requires IsDir(pre, di) && name in pre.nodes[di].body.names
  {
    h.ino == pre.nodes[di].body.names[name] && IsFile(pre, h.ino) && how != GUARDED && var n := pre.nodes[h.ino];
    (if how == EXCLUSIVE then verf != 0 && n.body.verf == verf && post == pre
     else if s.size.None? then post == pre
     else CanCutData(c, n) && Set(pre, post, c, h.ino, OnlySize(s.size.x), now)) &&
    Live(post, h) && na == FattrOf(h.ino, post.nodes[h.ino]) && WccOk(pre, post, di, w)
  }
  predicate CreateErr(pre: FS, c: Caller, dh: Handle, name: Name, how: uint32, s: Sattr, verf: uint64, st: uint32)
  {
    DirErr(pre, dh, st) || NameErr(name, st) || (st == NFS3ERR_EXIST && Dots(name)) ||
      (st == NFS3ERR_INVAL && how > EXCLUSIVE) || ArgErr(s, st) ||
    (LiveDir(pre, dh) && var folder := pre.nodes[dh.ino];
      if !Can(c, folder, EXEC) then st == NFS3ERR_ACCES
        else if name in folder.body.names then ReopenErr(pre, c, folder, name, how, s, verf, st)
      else (st == Denial(folder) && !Can(c, folder, WRITE + EXEC)) || Full(st))
  }
  predicate ReopenErr(pre: FS, c: Caller, d: Node, name: Name, how: uint32, s: Sattr, verf: uint64, st: uint32)
    requires d.body.Dir? && name in d.body.names
  {
    var ino := d.body.names[name];
    (st == NFS3ERR_EXIST && (how == GUARDED || !IsFile(pre, ino) ||
      (how == EXCLUSIVE && (verf == 0 || pre.nodes[ino].body.verf != verf)))) ||
    (IsFile(pre, ino) && how == UNCHECKED && s.size.Some? && var n := pre.nodes[ino];
      (st == CutDenial(n) && !CanCutData(c, n)) || (st == SHRINKFIRST && s.size.x as int > |n.body.data|))
  }

  // 3.3.9 MKDIR. Mode 0755 if s has none; a size in s is ignored. A directory without entries has size 0.
  predicate MkdirOk(pre: FS, post: FS, c: Caller, dh: Handle, name: Name, s: Sattr, now: Time, h: Handle, na: Fattr,
    w: Wcc)
  {
    MayMake(pre, c, dh, name) && var folder, t := pre.nodes[dh.ino], WithoutSize(s);
    ArgsOk(t) && folder.attr.nlink < LINKMAX &&
    Made(pre, post, dh.ino, name, h, Node(NewAttr(c, folder, NF3DIR, MODE0755, t, now),
      Dir(map[], map[], dh.ino, 0), 0), now, na, w)
  }
  predicate MkdirErr(pre: FS, c: Caller, dh: Handle, name: Name, s: Sattr, st: uint32)
  {
    MakeErr(pre, c, dh, name, st) || ArgErr(WithoutSize(s), st) ||
    (st == NFS3ERR_MLINK && LiveDir(pre, dh) && pre.nodes[dh.ino].attr.nlink >= LINKMAX)
  }

  // 3.3.10 SYMLINK. The mode is 0777, whatever s says; a size in s is ignored. A target with a zero byte would end
  // there to clients, and is refused.
  predicate SymlinkOk(pre: FS, post: FS, c: Caller, dh: Handle, name: Name, s: Sattr, target: seq<byte>, now: Time,
    h: Handle, na: Fattr, w: Wcc)
  {
    MayMake(pre, c, dh, name) && var folder, t := pre.nodes[dh.ino], WithoutSize(WithoutMode(s));
    0 < |target| <= TARGETMAX && 0 !in target && ArgsOk(t) &&
    Made(pre, post, dh.ino, name, h, Node(NewAttr(c, folder, NF3LNK, MODE0777, t, now), Symlink(target), 1), now, na, w)
  }
  predicate SymlinkErr(pre: FS, c: Caller, dh: Handle, name: Name, s: Sattr, target: seq<byte>, st: uint32)
  {
    MakeErr(pre, c, dh, name, st) || ArgErr(WithoutSize(WithoutMode(s)), st) ||
    (st == NFS3ERR_INVAL && (target == [] || 0 in target)) || (st == NFS3ERR_NAMETOOLONG && |target| > TARGETMAX)
  }

  // 3.3.11 MKNOD. Devices are root's; sockets and FIFOs anybody's. Mode 0644 if s has none; a size in s is ignored.
  // A device has a number that clients can take: 12 bits and 20, as in Linux.
  predicate Device(kind: uint32) { kind == NF3BLK || kind == NF3CHR }
  ghost const MAJORMAX: uint32 := 0xfff   ghost const MINORMAX: uint32 := 0xf_ffff
  predicate DeviceNumber(maj: uint32, min: uint32) { maj <= MAJORMAX && min <= MINORMAX }
  predicate MknodOk(pre: FS, post: FS, c: Caller, dh: Handle, name: Name, kind: uint32, s: Sattr, maj: uint32,
    min: uint32, now: Time, h: Handle, na: Fattr, w: Wcc)
  {
    MayMake(pre, c, dh, name) && var folder, t := pre.nodes[dh.ino], WithoutSize(s);
    (Device(kind) || kind == NF3SOCK || kind == NF3FIFO) &&
    (Device(kind) ==> c.uid == 0 && DeviceNumber(maj, min)) && ArgsOk(t) &&
    Made(pre, post, dh.ino, name, h, Node(NewAttr(c, folder, kind, MODE0644, t, now),
      if Device(kind) then Special(kind, maj, min) else Special(kind, 0, 0), 0), now, na, w)
  }
  predicate MknodErr(pre: FS, c: Caller, dh: Handle, name: Name, kind: uint32, s: Sattr, maj: uint32, min: uint32,
    st: uint32)
  {
    MakeErr(pre, c, dh, name, st) || ArgErr(WithoutSize(s), st) ||
    (st == NFS3ERR_BADTYPE && !Device(kind) && kind != NF3SOCK && kind != NF3FIFO) ||
    (st == NFS3ERR_PERM && Device(kind) && c.uid != 0) ||
    (st == NFS3ERR_INVAL && Device(kind) && !DeviceNumber(maj, min))
  }

  // 3.3.15 LINK: one more name for a file that is not a directory. Its ctime is now. a: the file.
  predicate LinkOk(pre: FS, post: FS, c: Caller, h: Handle, dh: Handle, name: Name, now: Time, a: Fattr, w: Wcc)
  {
    Live(pre, h) && MayMake(pre, c, dh, name) && var n, folder := pre.nodes[h.ino], pre.nodes[dh.ino];
    !n.body.Dir? && !Fixed(n) && n.attr.nlink < LINKMAX && IsDir(post, dh.ino) &&
      var m := Node(SetNlinkCtime(n.attr, n.attr.nlink + 1, now), n.body, n.blocks);
    post.gens == pre.gens && post.xattrs == pre.xattrs &&
      post.nodes == pre.nodes[h.ino := m][dh.ino := post.nodes[dh.ino]] &&
    DirStep(folder, post.nodes[dh.ino], folder.body.names[name := h.ino], folder.attr.nlink as int, now) &&
    a == FattrOf(h.ino, m) && WccOk(pre, post, dh.ino, w)
  }
  predicate LinkErr(pre: FS, c: Caller, h: Handle, dh: Handle, name: Name, st: uint32)
  {
    HandleErr(pre, h, st) || MakeErr(pre, c, dh, name, st) ||
    (Live(pre, h) && var n := pre.nodes[h.ino]; (st == NFS3ERR_INVAL && n.body.Dir?) ||
      (st == NFS3ERR_PERM && Fixed(n)) || (st == NFS3ERR_MLINK && n.attr.nlink >= LINKMAX))
  }
}

// -------------------------------------------------------------------------------- 8. REMOVE, RMDIR
module NfsUnlink {
  import opened Machine import opened NfsState import opened NfsPerm import opened NfsCommon
  // File i loses a name: the last one, and it is gone; else one link less, and ctime
  // is now. A directory has one name. (The handles of a file that is gone are stale at
  // once, though its blocks may be freed later; gens remembers its generation.)
  function Dropped(nodes: map<uint64, Node>, i: uint64, now: Time): map<uint64, Node>
    requires i in nodes
  {
    var n := nodes[i];
    if n.body.Dir? || n.attr.nlink <= 1 then map x | x in nodes && x != i :: nodes[x]
    else nodes[i := Node(SetNlinkCtime(n.attr, n.attr.nlink - 1, now), n.body, n.blocks)]
  }
  // what REMOVE and RMDIR have in common: the entry is there and c may take it away
  predicate MayUnlink(f: FS, c: Caller, dh: Handle, name: Name)
  {
    LiveDir(f, dh) && Proper(name) && var d := f.nodes[dh.ino];
    Can(c, d, WRITE + EXEC) && name in d.body.names && d.body.names[name] in f.nodes &&
      !Refuses(c, d, f.nodes[d.body.names[name]])
  }
  predicate Unlinked(pre: FS, post: FS, di: uint64, name: Name, now: Time, w: Wcc)
    requires IsDir(pre, di) && name in pre.nodes[di].body.names && pre.nodes[di].body.names[name] in pre.nodes
  {
    var folder := pre.nodes[di];
    var i := folder.body.names[name];
    IsDir(post, di) && post.gens == pre.gens && post.xattrs == pre.xattrs &&
      post.nodes == Dropped(pre.nodes, i, now)[di := post.nodes[di]] &&
    DirStep(folder, post.nodes[di], Del(folder.body.names, name),
      folder.attr.nlink as int - (if pre.nodes[i].body.Dir? then 1 else 0), now) &&
    WccOk(pre, post, di, w)
  }
  predicate UnlinkErr(f: FS, c: Caller, dh: Handle, name: Name, st: uint32)
  {
    DirErr(f, dh, st) || NameErr(name, st) ||
    (LiveDir(f, dh) && var folder := f.nodes[dh.ino];
      (st == Denial(folder) && !Can(c, folder, WRITE + EXEC)) || (st == NFS3ERR_NOENT && name !in folder.body.names) ||
      (name in folder.body.names && folder.body.names[name] in f.nodes && var n := f.nodes[folder.body.names[name]];
        st == Refusal(folder, n) && Refuses(c, folder, n)))
  }
  // the file that a name of directory dh means, if that has the property
  predicate Meant(f: FS, dh: Handle, name: Name, dir: bool)
  {
    LiveDir(f, dh) && name in f.nodes[dh.ino].body.names && var i := f.nodes[dh.ino].body.names[name];
    i in f.nodes && (f.nodes[i].body.Dir? <==> dir)
  }
  predicate EmptyDir(f: FS, i: uint64) { IsDir(f, i) && f.nodes[i].body.names == map[] }

  // 3.3.12 REMOVE: of anything but a directory.
  predicate RemoveOk(pre: FS, post: FS, c: Caller, dh: Handle, name: Name, now: Time, w: Wcc)
  { MayUnlink(pre, c, dh, name) && Meant(pre, dh, name, false) && Unlinked(pre, post, dh.ino, name, now, w) }
  predicate RemoveErr(pre: FS, c: Caller, dh: Handle, name: Name, st: uint32)
  {
    UnlinkErr(pre, c, dh, name, st) || (st == NFS3ERR_INVAL && Dots(name)) ||
    (st == NFS3ERR_ISDIR && Meant(pre, dh, name, true))
  }

  // 3.3.13 RMDIR: of an empty directory. (The RFC wants INVAL for "." and EXIST for "..".)
  predicate RmdirOk(pre: FS, post: FS, c: Caller, dh: Handle, name: Name, now: Time, w: Wcc)
  {
    MayUnlink(pre, c, dh, name) && Meant(pre, dh, name, true) && EmptyDir(pre, pre.nodes[dh.ino].body.names[name]) &&
    Unlinked(pre, post, dh.ino, name, now, w)
  }
  predicate RmdirErr(pre: FS, c: Caller, dh: Handle, name: Name, st: uint32)
  {
    UnlinkErr(pre, c, dh, name, st) || (st == NFS3ERR_INVAL && name == DOT) ||
      (st == NFS3ERR_EXIST && name == DOTDOT) ||
    (st == NFS3ERR_NOTDIR && Meant(pre, dh, name, false)) ||
    (st == NFS3ERR_NOTEMPTY && Meant(pre, dh, name, true) && !EmptyDir(pre, pre.nodes[dh.ino].body.names[name]))
  }
}

// --------------------------------------------------------------------------------------- 9. RENAME
module NfsRename {
  import opened Machine import opened NfsState import opened NfsPerm import opened NfsCommon import opened NfsUnlink
  // the k-th directory above x; above the root is the root
  function Up(f: FS, x: uint64, k: nat): uint64
    decreases k
  { if k == 0 || !IsDir(f, x) then x else Up(f, f.nodes[x].body.parent, k - 1) }
  // x is the directory top, or below it
  predicate Below(f: FS, x: uint64, top: uint64) { exists k: nat {:trigger Up(f, x, k)} :: Up(f, x, k) == top }
  ghost const DEPTHMAX: int := 1_000_000
  // The root is a million directories above x, or more. The server does not look that far for what is above.
  predicate TooDeep(f: FS, x: uint64) { forall k: nat {:trigger Up(f, x, k)} | k < DEPTHMAX :: Up(f, x, k) != ROOT }

  // 3.3.14 RENAME of fname in directory fh to tname in directory th.
  //
  // When both names are of one file already, nothing happens (the RFC's rule). Else the file moves, over what had
  // the name tname. The RFC suggests EXIST when that is of the wrong kind or a directory with entries; this server
  // gives the more telling ISDIR, NOTDIR, and NOTEMPTY, which the RFC lists for RENAME too, as Linux does.
  predicate RenameOk(pre: FS, post: FS, c: Caller, fh: Handle, fname: Name, th: Handle, tname: Name, now: Time, fw: Wcc,
    tw: Wcc)
  {
    MayRename(pre, c, fh, fname, th, tname) && WccOk(pre, post, fh.ino, fw) && WccOk(pre, post, th.ino, tw) &&
    if SameFile(pre, fh, fname, th, tname) then post == pre
    else MayMove(pre, c, fh.ino, fname, th.ino, tname) && Moved(pre, post, fh.ino, fname, th.ino, tname, now)
  }
  // both directories may be changed, and there is something to rename
  predicate MayRename(f: FS, c: Caller, fh: Handle, fname: Name, th: Handle, tname: Name)
  {
    LiveDir(f, fh) && LiveDir(f, th) && Proper(fname) && Proper(tname) &&
    Can(c, f.nodes[fh.ino], WRITE + EXEC) && Can(c, f.nodes[th.ino], WRITE + EXEC) &&
      fname in f.nodes[fh.ino].body.names
  }
  predicate SameFile(f: FS, fh: Handle, fname: Name, th: Handle, tname: Name)
  {
    LiveDir(f, fh) && LiveDir(f, th) && fname in f.nodes[fh.ino].body.names && tname in f.nodes[th.ino].body.names &&
    f.nodes[fh.ino].body.names[fname] == f.nodes[th.ino].body.names[tname]
  }
  // The entry may be taken from fd. A directory does not move into itself or below;
  // to move to another parent it must be writable, for its ".." changes.
  predicate MayLeave(f: FS, c: Caller, fd: uint64, fname: Name, td: uint64)
  {
    IsDir(f, fd) && fname in f.nodes[fd].body.names && var i := f.nodes[fd].body.names[fname];
    i in f.nodes && !Refuses(c, f.nodes[fd], f.nodes[i]) &&
    (f.nodes[i].body.Dir? ==> !Below(f, td, i) && (fd != td ==> Can(c, f.nodes[i], WRITE)))
  }
  // what is there under tname, if anything, may be replaced
  predicate MayReplace(f: FS, c: Caller, td: uint64, tname: Name, dir: bool)
  {
    IsDir(f, td) && (tname in f.nodes[td].body.names ==> var i := f.nodes[td].body.names[tname];
      i in f.nodes && !Refuses(c, f.nodes[td], f.nodes[i]) && (f.nodes[i].body.Dir? <==> dir) &&
        (dir ==> EmptyDir(f, i)))
  }
  predicate MayMove(f: FS, c: Caller, fd: uint64, fname: Name, td: uint64, tname: Name)
  {
    MayLeave(f, c, fd, fname, td) && var dir := f.nodes[f.nodes[fd].body.names[fname]].body.Dir?;
    MayReplace(f, c, td, tname, dir) && (dir && fd != td ==> NewLinks(f, td, tname) < LINKMAX as int)
  }
  // link count of the directory td when the directory tname, if it is one, is gone
  function NewLinks(f: FS, td: uint64, tname: Name): int
    requires IsDir(f, td)
  { f.nodes[td].attr.nlink as int - (if tname in f.nodes[td].body.names &&
    IsDir(f, f.nodes[td].body.names[tname]) then 1 else 0) }

  // The effect. The file's ctime is now, and a directory's ".." is td. mtime and ctime of both directories are now;
  // a directory that comes or goes counts in their links. A name that is replaced keeps its place in listings.
  predicate Moved(pre: FS, post: FS, fd: uint64, fname: Name, td: uint64, tname: Name, now: Time)
    requires IsDir(pre, fd) && IsDir(pre, td) && fname in pre.nodes[fd].body.names &&
      pre.nodes[fd].body.names[fname] in pre.nodes
    requires tname in pre.nodes[td].body.names ==> pre.nodes[td].body.names[tname] in pre.nodes
  {
    var f, t := pre.nodes[fd], pre.nodes[td];
    var src := f.body.names[fname];
    var one := if pre.nodes[src].body.Dir? && fd != td then 1 else 0;
    var rest := if tname in t.body.names then Dropped(pre.nodes, t.body.names[tname], now) else pre.nodes;
    IsDir(post, fd) && IsDir(post, td) && post.gens == pre.gens && post.xattrs == pre.xattrs &&
    post.nodes == rest[src := MovedNode(pre.nodes[src], td, now)][fd := post.nodes[fd]][td := post.nodes[td]] &&
    if fd == td then DirStep(t, post.nodes[td], Del(t.body.names[tname := src], fname), NewLinks(pre, td, tname), now)
    else DirStep(f, post.nodes[fd], Del(f.body.names, fname), f.attr.nlink as int - one, now) &&
      DirStep(t, post.nodes[td], t.body.names[tname := src], NewLinks(pre, td, tname) + one, now)
  }
  function MovedNode(n: Node, td: uint64, now: Time): Node
  { Node(SetNlinkCtime(n.attr, n.attr.nlink, now),
    if n.body.Dir? then Dir(n.body.names, n.body.cookies, td, n.body.bytes) else n.body, n.blocks) }

  predicate RenameErr(f: FS, c: Caller, fh: Handle, fname: Name, th: Handle, tname: Name, st: uint32)
  {
    DirErr(f, fh, st) || DirErr(f, th, st) || NameErr(fname, st) || NameErr(tname, st) ||
    (st == NFS3ERR_INVAL && (Dots(fname) || Dots(tname))) ||
    (LiveDir(f, fh) && LiveDir(f, th) &&
      (CannotErr(c, f.nodes[fh.ino], st) || CannotErr(c, f.nodes[th.ino], st) ||
       (st == NFS3ERR_NOENT && fname !in f.nodes[fh.ino].body.names) ||
       (!SameFile(f, fh, fname, th, tname) && MoveErr(f, c, fh.ino, fname, th.ino, tname, st))))
  }
  // of a directory that c may not change
  predicate CannotErr(c: Caller, d: Node, st: uint32) { st == Denial(d) && !Can(c, d, WRITE + EXEC) }
  predicate MoveErr(f: FS, c: Caller, fd: uint64, fname: Name, td: uint64, tname: Name, st: uint32)
    requires IsDir(f, fd) && IsDir(f, td)
  {
    fname in f.nodes[fd].body.names && f.nodes[fd].body.names[fname] in f.nodes &&
    var src := f.nodes[fd].body.names[fname];
    var dir := f.nodes[src].body.Dir?;
    (Full(st) && tname !in f.nodes[td].body.names) || (st == NFS3ERR_SERVERFAULT && dir && TooDeep(f, td)) ||
    (st == Refusal(f.nodes[fd], f.nodes[src]) && Refuses(c, f.nodes[fd], f.nodes[src])) ||
    (st == Denial(f.nodes[src]) && dir && fd != td && !Can(c, f.nodes[src], WRITE)) ||
    (st == NFS3ERR_INVAL && dir && Below(f, td, src)) ||
    (st == NFS3ERR_MLINK && dir && fd != td && NewLinks(f, td, tname) >= LINKMAX as int) ||
    (tname in f.nodes[td].body.names && f.nodes[td].body.names[tname] in f.nodes &&
      ReplaceErr(f, c, td, f.nodes[td].body.names[tname], dir, st))
  }
  predicate ReplaceErr(f: FS, c: Caller, td: uint64, dst: uint64, dir: bool, st: uint32)
    requires td in f.nodes && dst in f.nodes
  {
    var n := f.nodes[dst];
    (st == Refusal(f.nodes[td], n) && Refuses(c, f.nodes[td], n)) ||
    (st == NFS3ERR_NOTDIR && dir && !n.body.Dir?) || (st == NFS3ERR_ISDIR && !dir && n.body.Dir?) ||
    (st == NFS3ERR_NOTEMPTY && dir && n.body.Dir? && !EmptyDir(f, dst))
  }
}

// ------------------------------------------------------------ 10. FSSTAT, FSINFO, PATHCONF, COMMIT
module NfsVolume {
  import opened Machine import opened NfsState import opened NfsCommon import opened NfsAttrs
  // 3.3.18 FSSTAT. How much is free is not part of this state (room.s.dfy has it); what is said of it is
  // possible, nothing is reserved for root, and it may change at once (invarsec 0).
  datatype Space = Space(tbytes: uint64, fbytes: uint64, abytes: uint64, tfiles: uint64, ffiles: uint64, afiles: uint64,
    invarsec: uint32)
  predicate FsstatOk(f: FS, h: Handle, a: Fattr, s: Space)
  { GetattrOk(f, h, a) && s.fbytes <= s.tbytes && s.ffiles <= s.tfiles && s.abytes == s.fbytes &&
    s.afiles == s.ffiles && s.invarsec == 0 }
  predicate FsstatErr(f: FS, h: Handle, st: uint32) { HandleErr(f, h, st) }

  // 3.3.19 FSINFO: one READ or WRITE of up to 1 MiB; blocks of 4096; listings up to dtpref; times exact to the
  // nanosecond; the properties: hard links, symbolic links, the same for the whole volume, times can be set.
  ghost const IOMAX: uint32 := 1048576   ghost const BLOCK: uint32 := 4096
  ghost const FSF3_LINK: uint32 := 1   ghost const FSF3_SYMLINK: uint32 := 2   ghost const FSF3_HOMOGENEOUS: uint32 := 8
  ghost const FSF3_CANSETTIME: uint32 := 16
  ghost const PROPERTIES: uint32 := FSF3_LINK + FSF3_SYMLINK + FSF3_HOMOGENEOUS + FSF3_CANSETTIME
  datatype Info = Info(rtmax: uint32, rtpref: uint32, rtmult: uint32, wtmax: uint32, wtpref: uint32, wtmult: uint32,
    dtpref: uint32, maxfilesize: uint64, delta: Time, properties: uint32)
  predicate FsinfoOk(f: FS, h: Handle, a: Fattr, i: Info)
  {
    GetattrOk(f, h, a) && i.dtpref > 0 && i == Info(IOMAX, IOMAX, BLOCK, IOMAX, IOMAX, BLOCK, i.dtpref, i.maxfilesize,
      Time(0, 1), PROPERTIES) &&
    i.maxfilesize as int == FILEMAX
  }
  predicate FsinfoErr(f: FS, h: Handle, st: uint32) { HandleErr(f, h, st) }

  // 3.3.20 PATHCONF: too long a name is an error; only root gives files away; names are bytes, and "a" is not "A".
  datatype Pathconf = Pathconf(linkmax: uint32, namemax: uint32, notrunc: bool, chownrestricted: bool,
    caseinsensitive: bool, casepreserving: bool)
  predicate PathconfOk(f: FS, h: Handle, a: Fattr, p: Pathconf)
  { GetattrOk(f, h, a) && p == Pathconf(LINKMAX, NAMEMAX as uint32, true, true, false, true) }
  predicate PathconfErr(f: FS, h: Handle, st: uint32) { HandleErr(f, h, st) }

  // 3.3.21 COMMIT changes nothing that can be seen. What it promises is of crashes: a crash takes the volume back
  // to a state that some call left, not older than the last one whose reply said OK to a COMMIT, or to a call that
  // changed something other than by an UNSTABLE WRITE, nor older than what a reply has shown of such a call (theorems 3
  // and 9 in verified/THEOREMS.md). The write verifier in the replies of WRITE and COMMIT stays the same until the
  // server starts again, and is another then, so that the client sends its unstable data again.
  //
  // The file is a regular one. No permission is needed: what becomes durable was written by those who had it, and may
  // have lost it since (a chown must not make their data volatile); and the caller learns nothing that GETATTR keeps
  // from anybody.
  predicate CommitOk(f: FS, h: Handle, w: Wcc) { Live(f, h) && IsFile(f, h.ino) && WccOk(f, f, h.ino, w) }
  predicate CommitErr(f: FS, h: Handle, st: uint32)
  { HandleErr(f, h, st) || (st == NFS3ERR_INVAL && Live(f, h) && !IsFile(f, h.ino)) }
}
