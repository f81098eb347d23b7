include "remove.dfy"
// RENAME, with all its cases: onto nothing, onto a file, onto an empty
// directory, onto another name of the same file; a directory never into itself
// or below.
module RenameOpM {
  import opened Machine
  import opened ByteSlice
  import opened TxnS
  import opened GeometryM
  import opened InodeM
  import opened ByteM
  import opened DirFsM
  import opened AccessM
  import opened OpM
  import opened RemoveOpM

  // Directories deeper than this cannot be renamed into.
  const MAXDEPTH: uint64 := 1_000_000

  // the directories after src moved from (fd, fn) to (td, tn)
  function Moved(m: Dirs, fd: uint64, fn: seq<byte>, td: uint64, tn: seq<byte>): Dirs
    requires fd in m && td in m && fn in m[fd]
  {
    var a := m[td := m[td][tn := m[fd][fn]]];
    a[fd := DirDel(a[fd], fn)]
  }

  // What a rename makes of the directories a: nothing when both names are of one
  // file; else the entry moves, and what it replaced (an empty directory, if it is
  // a directory) loses its name and, perhaps, its inode.
  predicate Renamed(a: Dirs, b: Dirs, fd: uint64, fn: seq<byte>, td: uint64, tn: seq<byte>)
  {
    fd in a && td in a && fn in a[fd] &&
    if tn !in a[td] then b == Moved(a, fd, fn, td, tn)
    else if a[fd][fn] == a[td][tn] then b == a
    else Replaced(a, b, fd, fn, td, tn, a[fd][fn], a[td][tn])
  }
  predicate Replaced(a: Dirs, b: Dirs, fd: uint64, fn: seq<byte>, td: uint64, tn: seq<byte>, src: uint64, dst: uint64)
    requires fd in a && td in a && fn in a[fd]
  {
    (src in a <==> dst in a) && (dst in a ==> a[dst] == map[]) &&
    (b == Without(Moved(a, fd, fn, td, tn), dst, false) || b == Without(Moved(a, fd, fn, td, tn), dst, true))
  }

  // Is directory x the directory top or below it? st != 0: the parents do not lead to the root.
  method Below(txn: Txn, d: DirFs, x: uint64, top: uint64) returns (st: uint32, below: bool)
    requires d.Valid() && txn.jrnl == d.fs.jrnl && OkIno(d.fs.geo, x)
  {
    st, below := 0, false;
    var at := x;
    var n: uint64 := 0;
    while n < MAXDEPTH
      invariant OkIno(d.fs.geo, at) && n <= MAXDEPTH
      decreases MAXDEPTH - n
    {
      if at == top { below := true; return; }
      if at == ROOT { return; }
      var ip := d.fs.GetInode(txn, at, false);
      at := GetParent(ip);
      if !OkIno(d.fs.geo, at) { st := SERVERFAULT; return; }
      n := n + 1;
    }
    st := SERVERFAULT;
  }

  // May the entry (tino, tname), if there is one, be replaced by src (of type ty)? dst == src: nothing to do.
  // Otherwise dst is 0 when there is none.
  method Target(txn: Txn, d: DirFs, c: Cred, tino: uint64, tdir: Bytes, tname: Bytes, ty: uint32, found: bool, dst: uint64)
    returns (st: uint32, dty: uint32)
    requires d.Valid() && txn.jrnl == d.fs.jrnl && OkIno(d.fs.geo, tino) && tino in d.dirs && OkName(tname.data) && |tdir.data| == 256
    requires found <==> tname.data in d.dirs[tino]
    requires found ==> d.dirs[tino][tname.data] == dst && OkIno(d.fs.geo, dst)
    ensures st == 0 && found ==> 2 < dst && (ty == DIR <==> dty == DIR) && (dst in d.dirs <==> dty == DIR) && (dty == DIR ==> d.dirs[dst] == map[])
    ensures st == 0 && !found ==> dty == 0
  {
    st, dty := 0, 0;
    if !found { return; }
    var ip: Bytes;
    st, ip := OpenEntry(txn, d, dst, true);
    if st != 0 { return; }
    dty := GetTy(ip);
    var no := Sticky(c, tdir, ip);
    if no { st := ACCES; return; }
    if ty == DIR && dty != DIR { st := NOTDIR; return; }
    if ty != DIR && dty == DIR { st := ISDIR; return; }
    if dty == DIR {
      var e := d.IsEmpty(txn, dst);
      if !e { st := NOTEMPTY; }
    }
  }

  // Enter src as (tino, tname), take (fino, fname) out, drop what was replaced.
  method Move(txn: Txn, d: DirFs, fino: uint64, fname: Bytes, tino: uint64, tname: Bytes, src: uint64, found: bool, dst: uint64, s: uint64, ns: uint32)
    returns (st: uint32, freed: bool, later: bool)
    modifies d, d.fs, d.fs.fs, d.fs.fs.fs, d.fs.jrnl
    requires d.Valid() && txn.jrnl == d.fs.jrnl && fino in d.dirs && tino in d.dirs && OkName(fname.data) && OkName(tname.data)
    requires fname.data in d.dirs[fino] && d.dirs[fino][fname.data] == src && OkIno(d.fs.geo, src)
    requires found <==> tname.data in d.dirs[tino]
    requires found ==> d.dirs[tino][tname.data] == dst && dst != src && OkIno(d.fs.geo, dst) && 2 < dst && (dst in d.dirs ==> d.dirs[dst] == map[])
    ensures !found ==> !freed
    ensures st == 0 ==> d.Valid() && fino in old(d.dirs) && tino in old(d.dirs) && fname.data in old(d.dirs)[fino] &&
      d.dirs == Without(Moved(old(d.dirs), fino, fname.data, tino, tname.data), dst, freed)
  {
    freed, later := false, false;
    var ok: bool;
    if found {
      assert dst != tino && dst != fino;
      ok := d.Replace(txn, tino, tname, src);
    } else {
      ok := d.Insert(txn, tino, tname, src);
    }
    if !ok { st := NOSPC; return; }
    assert fname.data in d.dirs[fino];
    ok := d.Remove(txn, fino, fname);
    if !ok { st := NOSPC; return; }
    assert d.dirs == Moved(old(d.dirs), fino, fname.data, tino, tname.data);
    st := 0;
    if found {
      assert dst in d.dirs ==> d.dirs[dst] == map[];
      st, freed, later := DropLink(txn, d, dst, s, ns);
    }
  }

  // Both names are of one file (done), or the rename may be made: src (a
  // directory if ty is DIR) takes the place of dst, if found.
  method Check(txn: Txn, d: DirFs, c: Cred, fino: uint64, fdir: Bytes, fname: Bytes, tino: uint64, tdir: Bytes, tname: Bytes)
    returns (st: uint32, done: bool, src: uint64, ty: uint32, found: bool, dst: uint64, dty: uint32)
    requires d.Valid() && txn.jrnl == d.fs.jrnl && OkIno(d.fs.geo, fino) && OkIno(d.fs.geo, tino) && fino in d.dirs && tino in d.dirs
    requires OkName(fname.data) && OkName(tname.data) && |fdir.data| == 256 && |tdir.data| == 256
    ensures st == 0 ==> fname.data in d.dirs[fino] && d.dirs[fino][fname.data] == src && OkIno(d.fs.geo, src)
    ensures st == 0 ==> (found <==> tname.data in d.dirs[tino]) && (found ==> d.dirs[tino][tname.data] == dst && OkIno(d.fs.geo, dst))
    ensures st == 0 ==> (done <==> found && dst == src)
    ensures st == 0 && !done && found ==> 2 < dst && (dst in d.dirs <==> dty == DIR) && (ty == DIR <==> dty == DIR) && (dty == DIR ==> d.dirs[dst] == map[])
    ensures st == 0 && !done ==> (src in d.dirs <==> ty == DIR)
  {
    done, src, ty, found, dst, dty := false, 0, 0, false, 0, 0;
    var wf := May(c, fdir, MAYW + MAYX);
    var wt := May(c, tdir, MAYW + MAYX);
    if !wf || !wt { st := ACCES; return; }
    var there: bool;
    there, src := d.Lookup(txn, fino, fname, true);
    if !there { st := NOENT; return; }
    found, dst := d.Lookup(txn, tino, tname, true);
    if found && dst == src { st, done := 0, true; return; }
    var ip: Bytes;
    st, ip := OpenEntry(txn, d, src, true);
    if st != 0 { return; }
    ty := GetTy(ip);
    var no := Sticky(c, fdir, ip);
    if no { st := ACCES; return; }
    if ty == DIR {
      var below: bool;
      st, below := Below(txn, d, tino, src);
      if st != 0 { return; }
      if below { st := INVAL; return; }
      var w := May(c, ip, MAYW);
      if fino != tino && !w { st := ACCES; return; }
    }
    st, dty := Target(txn, d, c, tino, tdir, tname, ty, found, dst);
  }

  // A directory has a new parent: its "..", and the link counts of both parents.
  method Reparent(txn: Txn, d: DirFs, src: uint64, fino: uint64, tino: uint64, s: uint64, ns: uint32) returns (st: uint32)
    modifies d, d.fs, d.fs.fs, d.fs.fs.fs, d.fs.jrnl
    requires d.Valid() && txn.jrnl == d.fs.jrnl && OkIno(d.fs.geo, src) && OkIno(d.fs.geo, fino) && OkIno(d.fs.geo, tino)
    ensures st == 0 ==> d.Valid() && d.dirs == old(d.dirs) && d.fs.files == old(d.fs.files)
  {
    var ip := d.fs.GetInode(txn, src, true);
    SetParent(ip, tino);
    d.PutInode(txn, src, ip);
    st := AddLink(txn, d, fino, false, s, ns);
    if st != 0 { return; }
    st := AddLink(txn, d, tino, true, s, ns);
  }

  // The link counts, "..", and time stamps that go with a rename. sub: the entry
  // that was replaced was a directory.
  method Finish(txn: Txn, d: DirFs, fino: uint64, tino: uint64, src: uint64, dir: bool, sub: bool, s: uint64, ns: uint32)
    returns (st: uint32, fafter: Bytes, tafter: Bytes)
    modifies d, d.fs, d.fs.fs, d.fs.fs.fs, d.fs.jrnl
    requires d.Valid() && txn.jrnl == d.fs.jrnl && OkIno(d.fs.geo, src) && OkIno(d.fs.geo, fino) && OkIno(d.fs.geo, tino)
    ensures st == 0 ==> d.Valid() && d.dirs == old(d.dirs) && d.fs.files == old(d.fs.files)
  {
    st := 0;
    fafter := NewBytes(0);
    tafter := fafter;
    if sub {
      st := AddLink(txn, d, tino, false, s, ns);
      if st != 0 { return; }
    }
    if dir && fino != tino {
      st := Reparent(txn, d, src, fino, tino, s, ns);
      if st != 0 { return; }
    }
    Stamp(txn, d, src, s, ns);
    fafter := Touch(txn, d, fino, s, ns);
    tafter := Touch(txn, d, tino, s, ns);
    if fino == tino { fafter := tafter; }
  }

  // both handles and both names
  method OpenBoth(txn: Txn, d: DirFs, fino: uint64, fgen: uint64, fname: Bytes, tino: uint64, tgen: uint64, tname: Bytes)
    returns (st: uint32, fdir: Bytes?, tdir: Bytes?)
    requires d.Valid() && txn.jrnl == d.fs.jrnl
    ensures st == 0 ==> OkIno(d.fs.geo, fino) && OkIno(d.fs.geo, tino) && fino in d.dirs && tino in d.dirs
    ensures st == 0 ==> OkName(fname.data) && OkName(tname.data)
    ensures st == 0 ==> fdir != null && tdir != null && |fdir.data| == 256 && |tdir.data| == 256
  {
    st, fdir := OpenDirHandle(txn, d, fino, fgen, true);
    var tst: uint32;
    tst, tdir := OpenDirHandle(txn, d, tino, tgen, true);
    if st != 0 { return; }
    if tst != 0 { st := tst; return; }
    var fdots: uint32;
    var tdots: uint32;
    st, fdots := NameStatus(fname);
    if st != 0 { return; }
    st, tdots := NameStatus(tname);
    if st == 0 && (fdots != 0 || tdots != 0) { st := INVAL; }
  }

  // later: the background has work
  method Rename(txn: Txn, d: DirFs, c: Cred, fino: uint64, fgen: uint64, fname: Bytes, tino: uint64, tgen: uint64, tname: Bytes, s: uint64, ns: uint32)
    returns (st: uint32, fbefore: Bytes?, fafter: Bytes?, tbefore: Bytes?, tafter: Bytes?, later: bool)
    modifies d, d.fs, d.fs.fs, d.fs.fs.fs, d.fs.jrnl
    requires d.Valid() && txn.jrnl == d.fs.jrnl
    ensures st == 0 ==> d.Valid() && Renamed(old(d.dirs), d.dirs, fino, fname.data, tino, tname.data)
  {
    fafter, tafter, later := null, null, false;
    st, fbefore, tbefore := OpenBoth(txn, d, fino, fgen, fname, tino, tgen, tname);
    if st != 0 { return; }
    var done: bool; var found: bool;
    var src: uint64; var dst: uint64;
    var ty: uint32; var dty: uint32;
    st, done, src, ty, found, dst, dty := Check(txn, d, c, fino, fbefore, fname, tino, tbefore, tname);
    if st != 0 { return; }
    if done { fafter, tafter := fbefore, tbefore; return; }
    ghost var a := d.dirs;
    var freed: bool;
    st, freed, later := Move(txn, d, fino, fname, tino, tname, src, found, dst, s, ns);
    if st != 0 { return; }
    assert Renamed(a, d.dirs, fino, fname.data, tino, tname.data);
    st, fafter, tafter := Finish(txn, d, fino, tino, src, ty == DIR, found && dty == DIR, s, ns);
  }

  // ctime of an inode
  method Stamp(txn: Txn, d: DirFs, ino: uint64, s: uint64, ns: uint32)
    modifies d, d.fs, d.fs.fs, d.fs.fs.fs, d.fs.jrnl
    requires d.Valid() && txn.jrnl == d.fs.jrnl && OkIno(d.fs.geo, ino)
    ensures d.Valid() && d.dirs == old(d.dirs) && d.fs.files == old(d.fs.files)
  {
    var ip := d.fs.GetInode(txn, ino, true);
    SetCtime(ip, s, ns);
    d.PutInode(txn, ino, ip);
  }
}
