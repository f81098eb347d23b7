// THE SPECIFICATION of extended attributes (xattr(7)): names with values that a local mount gives to a file. Clients of
// NFS see nothing of them, but that the file's ctime is another.
//
// It continues nfs3.s.dfy, and reads as that does. Each call is one step. Who may do it is not said here: the kernel
// has asked, as for each namespace (user, trusted, security) the rules are its own, before a call comes. But of
// flags it knows nothing: MayHave, below. When it is durable, local.s.dfy says.
//
// The attributes of a file are those of the use of its inode number that its handle means. When a file goes, what was
// set for it may stay for a while, and shows no more: the next use of the number has another generation.
// (xattrscenarios.dfy proves it.)
include "local.s.dfy"
module NfsXattr {
  import opened Machine import opened NfsState import opened NfsCommon
  type List = map<Name, seq<byte>>

  // the extended attributes of the file h
  function XattrsOf(f: FS, h: Handle): List
  { if h.ino in f.xattrs && f.xattrs[h.ino].gen == h.gen then f.xattrs[h.ino].list else map[] }
  // a name: bytes without zero
  predicate Named(n: Name) { 0 < |n| <= 255 && (forall i: int {:trigger n[i]} | 0 <= i < |n| :: n[i] != 0) }
  function Without(l: List, n: Name): List { map x | x in l && x != n :: l[x] }

  // All attributes of a file lie in one block. Each takes the bytes of its name, those of its value, and four; so many
  // are all.
  function Bytes(l: List): int
    decreases l.Keys
  {
    if l == map[] then 0
    else var n: Name :| n in l; assert n !in Without(l, n).Keys; 4 + |n| + |l[n]| + Bytes(Without(l, n))
  }
  predicate Crowded(l: List) { 4088 < Bytes(l) }
  // There are none of a file whose block would lie behind the end of the largest file, by its inode's number, nor of
  // generation 0, which no file is given.
  predicate Bare(h: Handle) { 134217728 <= h.ino || h.gen == 0 }

  // getxattr(2), listxattr(2). (NOENT stands for ENODATA, which NFS lacks.)
  predicate GetOk(f: FS, h: Handle, name: Name, value: seq<byte>)
  { Live(f, h) && name in XattrsOf(f, h) && value == XattrsOf(f, h)[name] }
  predicate GetErr(f: FS, h: Handle, name: Name, st: uint32)
  { HandleErr(f, h, st) || (st == NFS3ERR_NOENT && Live(f, h) && name !in XattrsOf(f, h)) }
  // each name once, in any order, with a zero after it
  predicate ListOk(f: FS, h: Handle, data: seq<byte>)
  { Live(f, h) && exists ns: seq<Name> {:trigger Joined(ns)} :: Each(ns, XattrsOf(f, h)) && data == Joined(ns) }
  predicate Each(ns: seq<Name>, l: List)
  {
    (forall n: Name {:trigger n in l} {:trigger n in ns} :: n in ns <==> n in l) &&
    (forall i: int, j: int {:trigger ns[i], ns[j]} | 0 <= i < j < |ns| :: ns[i] != ns[j])
  }
  function Joined(ns: seq<Name>): seq<byte> { if ns == [] then [] else Joined(ns[..|ns| - 1]) + ns[|ns| - 1] + [0] }
  predicate ListErr(f: FS, h: Handle, st: uint32) { HandleErr(f, h, st) }

  // The file has these attributes from now on. Its ctime is now.
  function With(f: FS, h: Handle, l: List, now: Time): FS
    requires h.ino in f.nodes
  {
    var n := f.nodes[h.ino];
    FS(f.nodes[h.ino := Node(SetNlinkCtime(n.attr, n.attr.nlink, now), n.body, n.blocks)], f.gens,
      if l == map[] then Clean(f, h.ino) else f.xattrs[h.ino := Xattrs(h.gen, l)])
  }
  function Clean(f: FS, i: uint64): map<uint64, Xattrs> { map x | x in f.xattrs && x != i :: f.xattrs[x] }

  // setxattr(2). create: only if the file has no attribute of that name (XATTR_CREATE); replace: only if it has
  // (XATTR_REPLACE).
  predicate SetOk(pre: FS, post: FS, h: Handle, name: Name, value: seq<byte>, create: bool, replace: bool, now: Time)
  {
    Live(pre, h) && Named(name) && var l := XattrsOf(pre, h);
    (create ==> name !in l) && (replace ==> name in l) && post == With(pre, h, l[name := value], now)
  }
  // NOSPC: they would take more than one file's attributes may (Crowded); this file can have none (Bare); or what is
  // free on the volume is less than XattrNeeds says (room.s.dfy). There is always room for a value that is not longer
  // than what it replaces.
  predicate SetErr(pre: FS, h: Handle, name: Name, value: seq<byte>, create: bool, replace: bool, st: uint32)
  {
    HandleErr(pre, h, st) || (st == NFS3ERR_INVAL && !Named(name)) || (Live(pre, h) && var l := XattrsOf(pre, h);
      (st == NFS3ERR_EXIST && create && name in l) || (st == NFS3ERR_NOENT && replace && name !in l) ||
      (Full(st) && !(name in l && |value| <= |l[name]|)))
  }
  // removexattr(2)
  predicate RemoveOk(pre: FS, post: FS, h: Handle, name: Name, now: Time)
  { Live(pre, h) && name in XattrsOf(pre, h) && post == With(pre, h, Without(XattrsOf(pre, h), name), now) }
  predicate RemoveErr(pre: FS, h: Handle, name: Name, st: uint32) { GetErr(pre, h, name, st) }

  // So the server does for itself. What a program asks for changes none of a file whose flags forbid it.
  predicate MayHave(f: FS, h: Handle) { Live(f, h) && !Fixed(f.nodes[h.ino]) }
  predicate FixedErr(f: FS, h: Handle, st: uint32) { st == NFS3ERR_PERM && Live(f, h) && Fixed(f.nodes[h.ino]) }

  // The table of access lists lies where the attributes of inodes would lie that are not there: number i of them has
  // some of its lists, each under a name of its own. What is there, stays.
  predicate NewListOk(pre: FS, post: FS, i: uint64, name: Name, value: seq<byte>)
  {
    i !in pre.nodes && var l := XattrsOf(pre, Handle(i, 1));
    name !in l && post == FS(pre.nodes, pre.gens, pre.xattrs[i := Xattrs(1, l[name := value])])
  }
  predicate NewListErr(pre: FS, i: uint64, name: Name, st: uint32)
  {
    (st == NFS3ERR_INVAL && !Named(name)) || (st == NFS3ERR_EXIST && (i in pre.gens ||
      name in XattrsOf(pre, Handle(i, 1)))) || Full(st)
  }

  // What the server does of itself: what was set for a file that is gone goes, too, and gives its block back.
  predicate ForgetOk(pre: FS, post: FS, i: uint64)
  {
    if i in pre.xattrs && Live(pre, Handle(i, pre.xattrs[i].gen)) then post == pre
    else post == FS(pre.nodes, pre.gens, Clean(pre, i))
  }
}
