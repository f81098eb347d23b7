// What the specification says of ctime: whatever the clock does, each call that changes something of a file gives it
// a later ctime than it had (Step), and so a later one than it ever had (NeverBack). Whoever sees a ctime that they
// have seen before sees the same file, of the same bytes, entries, and attributes (SameCtime): that is what caches and
// the guard of SETATTR rest on. Only `used` may be less: the server frees blocks between calls (Frees).
include "nfs3.s.dfy"
module Ctime {
  import opened Machine
  import opened NfsState
  import opened NfsPerm
  import opened NfsCommon
  import opened NfsAttrs
  import opened NfsData
  import opened NfsMake
  import opened NfsUnlink
  import opened NfsRename

  // the last time that can be stored: there is none later
  predicate Last(t: Time) { t.seconds == 0xffff_ffff_ffff_ffff && t.nanoseconds >= 999_999_999 }
  // file i of f, in the same use of its number, is also in g
  predicate Stays(f: FS, g: FS, i: uint64)
  { i in f.nodes && i in g.nodes && i in f.gens && i in g.gens && f.gens[i] == g.gens[i] }
  // n became m: nothing changed, but that blocks were freed, or the ctime is a later one
  predicate Moves(n: Node, m: Node) { Shed(n, m) || Earlier(n.attr.ctime, m.attr.ctime) || Last(m.attr.ctime) }
  // a number keeps its generation or gets a higher one, as it does when it is given out
  predicate Rises(f: FS, g: FS, i: uint64)
  { i in f.gens ==> i in g.gens && f.gens[i] <= g.gens[i] && (i in g.nodes && i !in f.nodes ==> f.gens[i] < g.gens[i]) }
  predicate Step(f: FS, g: FS)
  {
    (forall i: uint64 {:trigger Stays(f, g, i)} | Stays(f, g, i) :: Moves(f.nodes[i], g.nodes[i])) &&
    (forall i: uint64 {:trigger Rises(f, g, i)} :: Rises(f, g, i))
  }

  lemma StampIsLater(now: Time, was: Time)
    ensures Earlier(was, Stamp(now, was)) || (Last(was) && Last(Stamp(now, was)))
    // it is the clock's, unless that stands still or goes back
    ensures Earlier(was, now) ==> Stamp(now, was) == now
  { }

  // ---- each procedure that changes something ----

  lemma Setattr(f: FS, g: FS, c: Caller, h: Handle, s: Sattr, guard: Option<Time>, now: Time, w: Wcc)
    requires SetattrOk(f, g, c, h, s, guard, now, w)
    ensures Step(f, g)
  { StampIsLater(now, f.nodes[h.ino].attr.ctime); }
  lemma Write(f: FS, g: FS, c: Caller, h: Handle, off: uint64, data: seq<byte>, now: Time, w: Wcc)
    requires WriteOk(f, g, c, h, off, data, now, w)
    ensures Step(f, g)
  { StampIsLater(now, f.nodes[h.ino].attr.ctime); }

  lemma Dirs(d: Node, e: Node, names: map<Name, uint64>, nlink: int, now: Time)
    requires d.body.Dir? && DirStep(d, e, names, nlink, now)
    ensures Moves(d, e)
  { StampIsLater(now, d.attr.ctime); }
  lemma Makes(f: FS, g: FS, di: uint64, name: Name, h: Handle, n: Node, now: Time, na: Fattr, w: Wcc)
    requires Made(f, g, di, name, h, n, now, na, w)
    ensures Step(f, g)
  {
    var dir := f.nodes[di];
    Dirs(dir, g.nodes[di], dir.body.names[name := h.ino], dir.attr.nlink as int + (if n.body.Dir? then 1 else 0), now);
  }
  lemma Create(f: FS, g: FS, c: Caller, dh: Handle, name: Name, how: uint32, s: Sattr, verf: uint64, now: Time,
    h: Handle, na: Fattr, w: Wcc)
    ensures CreateOk(f, g, c, dh, name, how, s, verf, now, h, na, w) ==> Step(f, g)
  {
    if CreateOk(f, g, c, dh, name, how, s, verf, now, h, na, w) {
      var dir := f.nodes[dh.ino];
      if name in dir.body.names { StampIsLater(now, f.nodes[h.ino].attr.ctime); }
      else { Makes(f, g, dh.ino, name, h, NewFile(c, dir, how, s, verf, now), now, na, w); }
    }
  }
  lemma Mkdir(f: FS, g: FS, c: Caller, dh: Handle, name: Name, s: Sattr, now: Time, h: Handle, na: Fattr, w: Wcc)
    ensures MkdirOk(f, g, c, dh, name, s, now, h, na, w) ==> Step(f, g)
  {
    if MkdirOk(f, g, c, dh, name, s, now, h, na, w) {
      Makes(f, g, dh.ino, name, h, Node(NewAttr(c, f.nodes[dh.ino], 2, 493, WithoutSize(s), now), g.nodes[h.ino].body,
        0), now, na, w);
    }
  }
  lemma Symlinks(f: FS, g: FS, c: Caller, dh: Handle, name: Name, s: Sattr, target: seq<byte>, now: Time, h: Handle,
    na: Fattr, w: Wcc)
    ensures SymlinkOk(f, g, c, dh, name, s, target, now, h, na, w) ==> Step(f, g)
  {
    if SymlinkOk(f, g, c, dh, name, s, target, now, h, na, w) {
      Makes(f, g, dh.ino, name, h, Node(NewAttr(c, f.nodes[dh.ino], 5, 511, WithoutSize(WithoutMode(s)), now),
        Symlink(target), 1), now, na, w);
    }
  }
  lemma Mknod(f: FS, g: FS, c: Caller, dh: Handle, name: Name, kind: uint32, s: Sattr, maj: uint32, min: uint32,
    now: Time, h: Handle, na: Fattr, w: Wcc)
    ensures MknodOk(f, g, c, dh, name, kind, s, maj, min, now, h, na, w) ==> Step(f, g)
  {
    if MknodOk(f, g, c, dh, name, kind, s, maj, min, now, h, na, w) {
      Makes(f, g, dh.ino, name, h, Node(NewAttr(c, f.nodes[dh.ino], kind, 420, WithoutSize(s), now),
        if Device(kind) then Special(kind, maj, min) else Special(kind, 0, 0), 0), now, na, w);
    }
  }
  lemma Link(f: FS, g: FS, c: Caller, h: Handle, dh: Handle, name: Name, now: Time, a: Fattr, w: Wcc)
    requires LinkOk(f, g, c, h, dh, name, now, a, w)
    ensures Step(f, g)
  {
    var dir := f.nodes[dh.ino];
    StampIsLater(now, f.nodes[h.ino].attr.ctime);
    Dirs(dir, g.nodes[dh.ino], dir.body.names[name := h.ino], dir.attr.nlink as int, now);
  }

  lemma Drops(f: FS, g: FS, di: uint64, name: Name, now: Time, w: Wcc)
    requires IsDir(f, di) && name in f.nodes[di].body.names && f.nodes[di].body.names[name] in f.nodes
    requires Unlinked(f, g, di, name, now, w)
    ensures Step(f, g)
  {
    var dir, i := f.nodes[di], f.nodes[di].body.names[name];
    StampIsLater(now, f.nodes[i].attr.ctime);
    Dirs(dir, g.nodes[di], Del(dir.body.names, name), dir.attr.nlink as int - (if f.nodes[i].body.Dir? then 1 else 0),
      now);
  }
  lemma Remove(f: FS, g: FS, c: Caller, dh: Handle, name: Name, now: Time, w: Wcc)
    requires RemoveOk(f, g, c, dh, name, now, w) || RmdirOk(f, g, c, dh, name, now, w)
    ensures Step(f, g)
  { Drops(f, g, dh.ino, name, now, w); }

  lemma Rename(f: FS, g: FS, c: Caller, fh: Handle, fname: Name, th: Handle, tname: Name, now: Time, v: Wcc, w: Wcc)
    requires RenameOk(f, g, c, fh, fname, th, tname, now, v, w)
    ensures Step(f, g)
  { if !SameFile(f, fh, fname, th, tname) { Renames(f, g, fh.ino, fname, th.ino, tname, now); } }
  lemma Renames(f: FS, g: FS, fd: uint64, fname: Name, td: uint64, tname: Name, now: Time)
    requires IsDir(f, fd) && IsDir(f, td) && fname in f.nodes[fd].body.names && f.nodes[fd].body.names[fname] in f.nodes
    requires tname in f.nodes[td].body.names ==> f.nodes[td].body.names[tname] in f.nodes
    requires Moved(f, g, fd, fname, td, tname, now)
    ensures Step(f, g)
  {
    var x, y := f.nodes[fd], f.nodes[td];
    var src := x.body.names[fname];
    var one := if f.nodes[src].body.Dir? && fd != td then 1 else 0;
    StampIsLater(now, f.nodes[src].attr.ctime);
    if tname in y.body.names { StampIsLater(now, f.nodes[y.body.names[tname]].attr.ctime); }
    if fd == td { Dirs(y, g.nodes[td], Del(y.body.names[tname := src], fname), NewLinks(f, td, tname), now); }
    else {
      Dirs(x, g.nodes[fd], Del(x.body.names, fname), x.attr.nlink as int - one, now);
      Dirs(y, g.nodes[td], y.body.names[tname := src], NewLinks(f, td, tname) + one, now);
    }
  }

  // what the server does between calls
  lemma Frees(f: FS, g: FS)
    requires Freed(f, g)
    ensures Step(f, g)
  { }

  // ---- any number of calls ----

  // the states of a volume, each one call after the one before, or a step of the server's own
  predicate History(vs: seq<FS>) { forall k: int {:trigger vs[k]} | 0 < k < |vs| :: Step(vs[k - 1], vs[k]) }

  // no ctime of a file is before one that it had earlier, and none is one that it had, unless nothing was changed since
  lemma NeverBack(vs: seq<FS>, a: int, b: int, i: uint64)
    requires History(vs) && 0 <= a <= b < |vs| && i in vs[a].gens
    ensures i in vs[b].gens && vs[a].gens[i] <= vs[b].gens[i]
    ensures Stays(vs[a], vs[b], i) ==> Moves(vs[a].nodes[i], vs[b].nodes[i])
    decreases b - a
  {
    if a < b {
      NeverBack(vs, a, b - 1, i);
      assert Step(vs[b - 1], vs[b]) && Rises(vs[b - 1], vs[b], i);
      if Stays(vs[a], vs[b], i) { assert Stays(vs[b - 1], vs[b], i) && Stays(vs[a], vs[b - 1], i); }
    }
  }
  lemma SameCtime(vs: seq<FS>, a: int, b: int, i: uint64)
    requires History(vs) && 0 <= a <= b < |vs| && Stays(vs[a], vs[b], i)
    requires vs[a].nodes[i].attr.ctime == vs[b].nodes[i].attr.ctime && !Last(vs[a].nodes[i].attr.ctime)
    ensures Shed(vs[a].nodes[i], vs[b].nodes[i])
  { NeverBack(vs, a, b, i); }
}
