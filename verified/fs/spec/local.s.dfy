// THE SPECIFICATION of what a local mount has beside the procedures of NFS: looking for holes, room set aside, and
// holes made
// (lseek(2) with SEEK_DATA and SEEK_HOLE; fallocate(2)); and files that stay while they are open, whatever becomes of
// their names.
//
// It continues nfs3.s.dfy, and reads as that does. The kernel asks for ranges of any length; each call here is one
// step, one transaction of bounded size, and is made again for the rest: AllocateOk for the next bytes, PunchOk for the
// blocks below `at`, SeekOk from `at`. A crash leaves the steps before some point, and none after it.
//
// When it is durable: nothing is before fsync, fdatasync, or sync has returned, unless the volume is mounted with
// --sync. There is one order of all changes, of data and of names, by whomever; a crash leaves a beginning of it that
// has all that was done before the last such call began. (That is COMMIT's promise in durable.s.dfy, and the theorem of
// the journal: after a crash the volume is as one of its commit points left it, not earlier than the last that somebody
// was told of.)
include "nfs3.s.dfy"
module NfsLocal {
  import opened Machine import opened ByteSpec import opened NfsState import opened NfsPerm import opened NfsCommon
  import opened NfsAttrs import opened NfsMake import opened NfsUnlink import opened NfsRename
  // SEEK_DATA, SEEK_HOLE: the first byte from off on whose block the file has, or (hole) has not. What lies from `at`
  // on is so, if found; else it was looked at up to there, and when that is the end, there are no more data. The end of
  // the file is a hole.
  predicate SeekOk(f: FS, c: Caller, h: Handle, off: uint64, hole: bool, at: uint64, found: bool)
  {
    Live(f, h) && var n := f.nodes[h.ino];
    n.body.File? && CanFetch(c, n) && off as int < |n.body.data| && off <= at && at as int <= |n.body.data| &&
    (forall k: int {:trigger k / 4096 in n.body.held} | off as int <= k < at as int :: k / 4096 in n.body.held <==>
      hole) &&
    (found ==> if at as int == |n.body.data| then hole else (at as int / 4096 in n.body.held <==> !hole)) &&
    (!found ==> off < at && (hole ==> (at as int) < |n.body.data|))
  }
  // (NOENT stands for the ENXIO of lseek(2), which NFS lacks: off is not before the end.)
  predicate SeekErr(f: FS, c: Caller, h: Handle, off: uint64, st: uint32)
  {
    HandleErr(f, h, st) ||
    (Live(f, h) && var n := f.nodes[h.ino];
      (st == NFS3ERR_INVAL && !n.body.File?) || (st == NFS3ERR_ACCES && !CanFetch(c, n)) ||
      (st == NFS3ERR_NOENT && n.body.File? && |n.body.data| <= off as int))
  }

  // fallocate, mode 0: the file has all blocks that the len bytes at off lie in, and is long enough for them; no byte
  // changes. To WRITE there needs no room then. The times are those of a WRITE.
  predicate AllocateOk(pre: FS, post: FS, c: Caller, h: Handle, off: uint64, len: uint64, now: Time)
  {
    Live(pre, h) && var n := pre.nodes[h.ino];
    n.body.File? && CanWriteData(c, n) && 0 < len && off as int + len as int <= FILEMAX &&
    post == Put(pre, h.ino, Allocated(c, n, off as int, len as int, now))
  }
  function Allocated(c: Caller, n: Node, off: int, len: int, now: Time): Node
    requires n.body.File? && 0 <= off && 0 <= len
  {
    Node(WrittenAttr(c, n.attr, now), File(Resized(n.body.data,
      if off + len > |n.body.data| then off + len else |n.body.data|), n.body.verf, n.body.held + Blocks(off, len)),
      n.blocks + |Blocks(off, len) - n.body.held|)
  }
  function WrittenAttr(c: Caller, was: Attr, now: Time): Attr
  { var t := Stamp(now, was.ctime); Attr(if c.uid != 0 then KillPriv(was.mode) else was.mode, was.nlink, was.uid,
    was.gid, was.atime, t, t, was.flags) }
  predicate AllocateErr(pre: FS, c: Caller, h: Handle, off: uint64, len: uint64, st: uint32)
  {
    HandleErr(pre, h, st) ||
    (Live(pre, h) && var n := pre.nodes[h.ino];
      (st == NFS3ERR_INVAL && (!n.body.File? || len == 0)) ||
      (st == NFS3ERR_FBIG && off as int + len as int > FILEMAX) ||
      (st == Denial(n) && n.body.File? && !CanWriteData(c, n)) ||
      (n.body.File? && ((Full(st) && !(Blocks(off as int, len as int) <= n.body.held)) ||
        (st == SHRINKFIRST && off as int + len as int > |n.body.data|))))
  }

  // FALLOC_FL_PUNCH_HOLE: of the blocks lo to hi - 1, those from `at` on are holes now: their bytes are zeros, and
  // their room is free.
  // (Of the parts of blocks at both ends of a range, zeros are written.) Blocks behind the end there are none.
  predicate PunchOk(pre: FS, post: FS, c: Caller, h: Handle, lo: uint64, hi: uint64, at: uint64, now: Time)
  {
    Live(pre, h) && var n := pre.nodes[h.ino];
    n.body.File? && CanCutData(c, n) && lo < hi && lo <= at && at < hi &&
      post == Put(pre, h.ino, Punched(c, n, at as int, hi as int, now))
  }
  function Punched(c: Caller, n: Node, lo: int, hi: int, now: Time): Node
    requires n.body.File? && 0 <= lo <= hi
  {
    Node(WrittenAttr(c, n.attr, now), File(Zeroed(n.body.data, 4096 * lo, 4096 * hi), n.body.verf,
      n.body.held - Span(lo, hi)),
      n.blocks - |n.body.held * Span(lo, hi)|)
  }
  function Span(lo: int, hi: int): set<int> { set b: int | lo <= b < hi }
  // the bytes from a to b - 1, as far as there are any, are zeros
  function Zeroed(d: seq<byte>, a: int, b: int): seq<byte>
    requires 0 <= a <= b
  { var e := if b < |d| then b else |d|; if |d| <= a then d else d[..a] + Zeros(e - a) + d[e..] }
  predicate PunchErr(pre: FS, c: Caller, h: Handle, lo: uint64, hi: uint64, st: uint32)
  {
    HandleErr(pre, h, st) ||
    (Live(pre, h) && var n := pre.nodes[h.ino];
      (st == NFS3ERR_INVAL && (!n.body.File? || hi <= lo)) ||
        (st == CutDenial(n) && n.body.File? && !CanCutData(c, n)))
  }

  // ---- open files ----
  // NFS knows no OPEN: REMOVE, or RENAME over it, takes a file away with its last name. unlink(2) and rename(2) leave
  // one that somebody has open until it is closed for the last time. A mount has the volume keep such a file (Kept in
  // nfs3.s.dfy): that counts as one link of it. So it stays when its names go, with its contents, attributes, and
  // handle, and may get a name again (LINK). To keep it, and to take the name away, is one transaction: no crash finds
  // it without either.
  function Keeping(f: FS, i: uint64, now: Time): FS
    requires i in f.nodes && f.nodes[i].attr.nlink < LINKMAX
  { var n := f.nodes[i]; Put(f, i, Node(SetNlinkCtime(n.attr, n.attr.nlink + 1, now), n.body, n.blocks)) }
  predicate MayKeep(f: FS, h: Handle)
  { Live(f, h) && var n := f.nodes[h.ino]; !n.body.Dir? && !Kept(f, h.ino) && n.attr.nlink < LINKMAX }
  predicate KeepErr(f: FS, h: Handle, st: uint32)
  {
    HandleErr(f, h, st) || (Live(f, h) && var n := f.nodes[h.ino];
      (st == NFS3ERR_INVAL && n.body.Dir?) || (st == NFS3ERR_EXIST && Kept(f, h.ino)) ||
        (st == NFS3ERR_MLINK && n.attr.nlink >= LINKMAX))
  }
  // The file h is kept from now on. Its ctime is now, for clients see the link.
  predicate KeepOk(pre: FS, post: FS, h: Handle, now: Time) { MayKeep(pre, h) && post == Keeping(pre, h.ino, now) }

  // unlink(2), and rename(2) to a name that is another file's, when the file that loses the name is open: h.
  predicate RemoveOpenOk(pre: FS, post: FS, c: Caller, dh: Handle, name: Name, h: Handle, now: Time, w: Wcc)
  { MayKeep(pre, h) && RemoveOk(Keeping(pre, h.ino, now), post, c, dh, name, now, w) }
  predicate RemoveOpenErr(pre: FS, c: Caller, dh: Handle, name: Name, h: Handle, now: Time, st: uint32)
  { KeepErr(pre, h, st) || (MayKeep(pre, h) && RemoveErr(Keeping(pre, h.ino, now), c, dh, name, st)) }
  predicate RenameOpenOk(pre: FS, post: FS, c: Caller, fh: Handle, fname: Name, th: Handle, tname: Name, h: Handle,
    now: Time, fw: Wcc, tw: Wcc)
  { MayKeep(pre, h) && RenameOk(Keeping(pre, h.ino, now), post, c, fh, fname, th, tname, now, fw, tw) }
  predicate RenameOpenErr(pre: FS, c: Caller, fh: Handle, fname: Name, th: Handle, tname: Name, h: Handle, now: Time,
    st: uint32)
  { KeepErr(pre, h, st) || (MayKeep(pre, h) && RenameErr(Keeping(pre, h.ino, now), c, fh, fname, th, tname, st)) }

  // open(2) with O_TMPFILE: a file as CREATE makes it in a directory, but without a name, and kept. na: its attributes.
  // The kernel has asked whether the caller may write in the directory, which does not change; of its flags the kernel
  // knows nothing.
  predicate TmpfileOk(pre: FS, post: FS, c: Caller, dh: Handle, s: Sattr, now: Time, h: Handle, na: Fattr)
  {
    LiveDir(pre, dh) && !Immutable(pre.nodes[dh.ino]) && ArgsOk(s) &&
      2 < h.ino && h.ino !in pre.nodes && h.ino in pre.gens &&
      h.gen as int == pre.gens[h.ino] as int + 1 &&
    var n := NewFile(c, pre.nodes[dh.ino], 0, s, 0, now);
    post == FS(pre.nodes[h.ino := n], pre.gens[h.ino := h.gen], pre.xattrs) && Kept(post, h.ino) &&
      na == FattrOf(h.ino, n)
  }
  predicate TmpfileErr(pre: FS, dh: Handle, s: Sattr, st: uint32)
  {
    DirErr(pre, dh, st) || ArgErr(s, st) || Full(st) ||
    (st == NFS3ERR_PERM && LiveDir(pre, dh) && Immutable(pre.nodes[dh.ino]))
  }

  // The last close: the file is not kept any more, and gone if it has no name. NOENT: the list of kept files was not
  // searched from its beginning, and the file was not found.
  predicate LetGoOk(pre: FS, post: FS, h: Handle, now: Time)
  { Live(pre, h) && Kept(pre, h.ino) && post == FS(Dropped(pre.nodes, h.ino, now), pre.gens, pre.xattrs) }
  predicate LetGoErr(f: FS, h: Handle, whole: bool, st: uint32)
  { HandleErr(f, h, st) || (st == NFS3ERR_INVAL && Live(f, h) && !Kept(f, h.ino)) || (st == NFS3ERR_NOENT && !whole) }

  // When a volume is opened, nobody has a file open: one after the other is let go, until (not more) none is kept. Only
  // then is anybody served.
  predicate ClearOk(pre: FS, post: FS, now: Time, more: bool)
  {
    if more then exists i: uint64 {:trigger Kept(pre, i)} ::
      Kept(pre, i) && post == FS(Dropped(pre.nodes, i, now), pre.gens, pre.xattrs)
    else post == pre && NoneKept(pre)
  }

  // ---- flags ----
  // What chattr(1) sets and lsattr(1) shows (ioctl(2) with FS_IOC_SETFLAGS and FS_IOC_GETFLAGS), with the numbers of
  // Linux: immutable and append-only, which nfs3.s.dfy obeys; and two that change nothing here: no dump, for programs
  // that make backups, and no atime, which no file's is ever updated for.
  ghost const NODUMP: uint32 := 64   ghost const NOATIME: uint32 := 128
  ghost const ALLFLAGS: uint32 := IMMUTABLE + APPENDONLY + NODUMP + NOATIME
  predicate FlagsOk(f: FS, h: Handle, flags: uint32) { Live(f, h) && flags == f.nodes[h.ino].attr.flags % 256 }
  predicate FlagsErr(f: FS, h: Handle, st: uint32) { HandleErr(f, h, st) }

  // The file has these flags from now on, no others. Its ctime is now.
  predicate SetFlagsOk(pre: FS, post: FS, c: Caller, h: Handle, flags: uint32, now: Time)
  {
    Live(pre, h) && var n := pre.nodes[h.ino];
    Known(flags) && MaySetFlags(c, n.attr, flags) &&
      post == Put(pre, h.ino, Node(SetFlagsCtime(n.attr, n.attr.flags / 256 * 256 + flags, now), n.body, n.blocks))
  }
  predicate Known(flags: uint32) { flags <= ALLFLAGS && flags % IMMUTABLE == 0 }
  function SetFlagsCtime(a: Attr, flags: uint32, now: Time): Attr
  { Attr(a.mode, a.nlink, a.uid, a.gid, a.atime, a.mtime, Stamp(now, a.ctime), flags) }
  // The owner may set those that change nothing, root all. While a file stays immutable, its other flags stay.
  predicate MaySetFlags(c: Caller, a: Attr, flags: uint32)
  {
    IsOwner(c, a.uid) && (c.uid != 0 ==> IsImmutable(flags) == IsImmutable(a.flags) &&
      IsAppendOnly(flags) == IsAppendOnly(a.flags)) &&
    (IsImmutable(flags) && IsImmutable(a.flags) ==> flags == a.flags % 256)
  }
  predicate SetFlagsErr(f: FS, c: Caller, h: Handle, flags: uint32, st: uint32)
  {
    HandleErr(f, h, st) || (st == NFS3ERR_INVAL && !Known(flags)) ||
    (st == NFS3ERR_PERM && Live(f, h) && !MaySetFlags(c, f.nodes[h.ino].attr, flags))
  }

  // ---- access lists ----
  // What they allow, and how new files get them, nfs3.s.dfy says. The numbers that a file has, and its mode
  // (acl_get_file(3)):
  predicate ListsOk(f: FS, h: Handle, flags: uint32, mode: uint32)
  { Live(f, h) && flags == f.nodes[h.ino].attr.flags && mode == f.nodes[h.ino].attr.mode }
  predicate ListsErr(f: FS, h: Handle, st: uint32) { HandleErr(f, h, st) }

  // The file has the access list of that number, or, if dflt, the directory has that default list, from now on; 0: it
  // has none. rights: those of owner, mask, and others in an access list, which are the mode's from now on (None: the
  // mode stays). Whoever sets them and is neither root nor of the file's group loses setgid, as with SETATTR. Its ctime
  // is now.
  predicate SetListOk(pre: FS, post: FS, c: Caller, h: Handle, dflt: bool, number: uint32, rights: Option<uint32>,
    now: Time)
  {
    Live(pre, h) && var n := pre.nodes[h.ino];
    number <= MAXLIST && (rights.Some? ==> rights.x < 512) && MaySetList(c, n) && !n.body.Symlink? &&
      (dflt && number != 0 ==> n.body.Dir?) &&
      post == Put(pre, h.ino, Node(ListAttr(c, n.attr, dflt, number, rights, now), n.body, n.blocks))
  }
  predicate MaySetList(c: Caller, n: Node) { IsOwner(c, n.attr.uid) && !Fixed(n) }
  function ListAttr(c: Caller, a: Attr, dflt: bool, number: uint32, rights: Option<uint32>, now: Time): Attr
    requires number <= MAXLIST
  {
    Attr(if rights.None? then a.mode else ListMode(c, a.mode, a.gid, rights.x), a.nlink, a.uid, a.gid, a.atime, a.mtime,
      Stamp(now, a.ctime), if dflt then WithDefault(a.flags, number) else WithAccess(a.flags, number))
  }
  function WithDefault(flags: uint32, number: uint32): uint32
    requires number <= MAXLIST
  { flags % 1048576 + number * 1048576 }
  function WithAccess(flags: uint32, number: uint32): uint32
    requires number <= MAXLIST
  { flags / 1048576 * 1048576 + number * 256 + flags % 256 }
  function ListMode(c: Caller, mode: uint32, gid: uint32, rights: uint32): uint32
  { var m := mode / 512 % 8 * 512 + rights % 512; if c.uid != 0 && !InGroup(c, gid) then DropSetgid(m) else m }
  predicate SetListErr(f: FS, c: Caller, h: Handle, dflt: bool, number: uint32, rights: Option<uint32>, st: uint32)
  {
    HandleErr(f, h, st) ||
    (st == NFS3ERR_INVAL && (number > MAXLIST || (rights.Some? && rights.x >= 512))) ||
    (Live(f, h) && var n := f.nodes[h.ino];
      (st == NFS3ERR_INVAL && n.body.Symlink?) || (st == NFS3ERR_PERM && !MaySetList(c, n)) ||
      (st == NFS3ERR_ACCES && dflt && number != 0 && !n.body.Dir?))
  }
  // Both at one instant, as clients set them (NFSACL's SETACL): what an access list comes to, and a default list then.
  predicate SetListsOk(pre: FS, post: FS, c: Caller, h: Handle, access: uint32, rights: Option<uint32>, dflt: uint32,
    now: Time)
  {
    Live(pre, h) && var n := pre.nodes[h.ino];
    access <= MAXLIST && dflt <= MAXLIST && (rights.Some? ==> rights.x < 512) && MaySetList(c, n) &&
      !n.body.Symlink? && (dflt != 0 ==> n.body.Dir?) &&
      var first := ListAttr(c, n.attr, false, access, rights, now);
      post == Put(pre, h.ino, Node(ListAttr(c, first, true, dflt, None, now), n.body, n.blocks))
  }
  predicate SetListsErr(f: FS, c: Caller, h: Handle, access: uint32, rights: Option<uint32>, dflt: uint32, st: uint32)
  { SetListErr(f, c, h, false, access, rights, st) || SetListErr(f, c, h, true, dflt, None, st) }

  // ---- two names change places ----
  // rename(2) with RENAME_EXCHANGE: each of two names gets what the other one had, whatever that is, also a directory
  // with entries. Neither directory may come to lie in itself or below. Both names keep their places in listings.
  predicate ExchangeOk(pre: FS, post: FS, c: Caller, fh: Handle, fname: Name, th: Handle, tname: Name, now: Time,
    fw: Wcc, tw: Wcc)
  {
    MayRename(pre, c, fh, fname, th, tname) && tname in pre.nodes[th.ino].body.names &&
    WccOk(pre, post, fh.ino, fw) && WccOk(pre, post, th.ino, tw) &&
    if SameFile(pre, fh, fname, th, tname) then post == pre
    else MayExchange(pre, c, fh.ino, fname, th.ino, tname) &&
      Exchanged(pre, post, fh.ino, fname, th.ino, tname, now)
  }
  predicate MayExchange(f: FS, c: Caller, fd: uint64, fname: Name, td: uint64, tname: Name)
  {
    MayLeave(f, c, fd, fname, td) && MayLeave(f, c, td, tname, fd) &&
    LinksGiven(f, fd, fname, td, tname) <= LINKMAX as int && LinksGiven(f, td, tname, fd, fname) <= LINKMAX as int
  }
  // link count of directory fd when it has what is (td, tname) in place of what is (fd, fname)
  function LinksGiven(f: FS, fd: uint64, fname: Name, td: uint64, tname: Name): int
    requires BothThere(f, fd, fname, td, tname)
  {
    f.nodes[fd].attr.nlink as int - (if fd != td && IsDir(f, f.nodes[fd].body.names[fname]) then 1 else 0) +
      (if fd != td && IsDir(f, f.nodes[td].body.names[tname]) then 1 else 0)
  }
  predicate BothThere(f: FS, fd: uint64, fname: Name, td: uint64, tname: Name)
  { IsDir(f, fd) && IsDir(f, td) && fname in f.nodes[fd].body.names && tname in f.nodes[td].body.names }
  // The ctime of both files is now, mtime and ctime of both directories, too. A directory's ".." is where it went.
  predicate Exchanged(pre: FS, post: FS, fd: uint64, fname: Name, td: uint64, tname: Name, now: Time)
    requires BothThere(pre, fd, fname, td, tname) && pre.nodes[fd].body.names[fname] in pre.nodes &&
      pre.nodes[td].body.names[tname] in pre.nodes
  {
    var f, t := pre.nodes[fd], pre.nodes[td];
    var one, other := f.body.names[fname], t.body.names[tname];
    IsDir(post, fd) && IsDir(post, td) && post.gens == pre.gens && post.xattrs == pre.xattrs &&
    post.nodes == pre.nodes[one := MovedNode(pre.nodes[one], td, now)][other :=
      MovedNode(pre.nodes[other], fd, now)][fd := post.nodes[fd]][td := post.nodes[td]] &&
    if fd == td then DirStep(t, post.nodes[td], t.body.names[fname := other][tname := one], t.attr.nlink as int, now)
    else DirStep(f, post.nodes[fd], f.body.names[fname := other], LinksGiven(pre, fd, fname, td, tname), now) &&
      DirStep(t, post.nodes[td], t.body.names[tname := one], LinksGiven(pre, td, tname, fd, fname), now)
  }
  predicate ExchangeErr(f: FS, c: Caller, fh: Handle, fname: Name, th: Handle, tname: Name, st: uint32)
  {
    DirErr(f, fh, st) || DirErr(f, th, st) || NameErr(fname, st) || NameErr(tname, st) ||
    (st == NFS3ERR_INVAL && (Dots(fname) || Dots(tname))) ||
    (LiveDir(f, fh) && LiveDir(f, th) &&
      (CannotErr(c, f.nodes[fh.ino], st) || CannotErr(c, f.nodes[th.ino], st) ||
       (st == NFS3ERR_NOENT && !BothThere(f, fh.ino, fname, th.ino, tname)) ||
       (BothThere(f, fh.ino, fname, th.ino, tname) && !SameFile(f, fh, fname, th, tname) &&
         (LeaveErr(f, c, fh.ino, fname, th.ino, st) || LeaveErr(f, c, th.ino, tname, fh.ino, st) ||
          (st == NFS3ERR_MLINK && (LinksGiven(f, fh.ino, fname, th.ino, tname) > LINKMAX as int ||
            LinksGiven(f, th.ino, tname, fh.ino, fname) > LINKMAX as int))))))
  }
  // why the entry may not leave fd for td
  predicate LeaveErr(f: FS, c: Caller, fd: uint64, fname: Name, td: uint64, st: uint32)
    requires IsDir(f, fd) && IsDir(f, td) && fname in f.nodes[fd].body.names
  {
    f.nodes[fd].body.names[fname] in f.nodes && var i := f.nodes[fd].body.names[fname];
    var dir := f.nodes[i].body.Dir?;
    (st == NFS3ERR_SERVERFAULT && dir && TooDeep(f, td)) || (st == NFS3ERR_INVAL && dir && Below(f, td, i)) ||
    (st == Refusal(f.nodes[fd], f.nodes[i]) && Refuses(c, f.nodes[fd], f.nodes[i])) ||
    (st == Denial(f.nodes[i]) && dir && fd != td && !Can(c, f.nodes[i], WRITE))
  }

  // ---- a name that goes and leaves a whiteout ----
  // rename(2) with RENAME_WHITEOUT: RENAME, and then MKNOD of a character device 0:0 without permissions under the name
  // that the file had, at one instant. (Overlay file systems say with it that the name below does not count any more.)
  // owner: whose it is; its group is the caller's, or that of a directory with setgid, as with any new file. Nothing is
  // done if both names are of one file. Only root may.
  predicate WhiteoutOk(pre: FS, post: FS, c: Caller, owner: uint32, fh: Handle, fname: Name, th: Handle, tname: Name,
    now: Time, h: Handle)
  {
    if SameFile(pre, fh, fname, th, tname) then MayRename(pre, c, fh, fname, th, tname) && post == pre
    else exists mid: FS, fw: Wcc, tw: Wcc, na: Fattr, w: Wcc
      {:trigger RenameOk(pre, mid, c, fh, fname, th, tname, now, fw, tw), Whiteout(mid, post, c, owner, fh, fname, now,
        h, na, w)} ::
      RenameOk(pre, mid, c, fh, fname, th, tname, now, fw, tw) &&
      Whiteout(mid, post, c, owner, fh, fname, now, h, na, w)
  }
  predicate Whiteout(pre: FS, post: FS, c: Caller, owner: uint32, dh: Handle, name: Name, now: Time, h: Handle,
    na: Fattr, w: Wcc)
  { MknodOk(pre, post, c, dh, name, NF3CHR, Unusable(owner), 0, 0, now, h, na, w) }
  function Unusable(owner: uint32): Sattr { Sattr(Some(0), Some(owner), None, None, DontChange, DontChange) }
  predicate WhiteoutErr(f: FS, c: Caller, fh: Handle, fname: Name, th: Handle, tname: Name, st: uint32)
  {
    RenameErr(f, c, fh, fname, th, tname, st) || (!SameFile(f, fh, fname, th, tname) &&
      (Full(st) || (st == NFS3ERR_PERM && c.uid != 0)))
  }
  // The same over a name of the file h, which is open.
  predicate WhiteoutOpenOk(pre: FS, post: FS, c: Caller, owner: uint32, fh: Handle, fname: Name, th: Handle,
    tname: Name, h: Handle, now: Time, wh: Handle)
  { MayKeep(pre, h) && WhiteoutOk(Keeping(pre, h.ino, now), post, c, owner, fh, fname, th, tname, now, wh) }
  predicate WhiteoutOpenErr(pre: FS, c: Caller, fh: Handle, fname: Name, th: Handle, tname: Name, h: Handle,
    now: Time, st: uint32)
  { KeepErr(pre, h, st) || (MayKeep(pre, h) && WhiteoutErr(Keeping(pre, h.ino, now), c, fh, fname, th, tname, st)) }
}
