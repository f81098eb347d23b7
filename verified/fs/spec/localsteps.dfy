// What ctime.dfy and listings.dfy say of each procedure of NFS, of what a local mount has beside (local.s.dfy,
// xattr.s.dfy): it gives a later ctime to all that it changes (Ctime.Step), and moves no entry of a directory
// (Listings.Kept). So histories and scans of these may have such calls as well.
//
// A whiteout is two states of a scan's history: in the one between, the name that it leaves behind is not there
// (Leaves). It may come back at another place.
include "xattr.s.dfy"
include "ctime.dfy"
include "listings.dfy"
module LocalSteps {
  import opened Machine
  import opened NfsState
  import opened NfsPerm
  import opened NfsCommon
  import opened NfsAttrs
  import opened NfsMake
  import opened NfsUnlink
  import opened NfsRename
  import opened NfsLocal
  import Xattr = NfsXattr
  import Ctime
  import Listings

  predicate Goes(f: FS, g: FS) { Ctime.Step(f, g) && Listings.Kept(f, g) }

  // ---- two steps in one call ----

  lemma Both(f: FS, m: FS, g: FS)
    requires Ctime.Step(f, m) && Ctime.Step(m, g)
    ensures Ctime.Step(f, g)
  {
    forall i: uint64 ensures Ctime.Rises(f, g, i) { assert Ctime.Rises(f, m, i) && Ctime.Rises(m, g, i); }
    forall i: uint64 | Ctime.Stays(f, g, i)
      ensures Ctime.Moves(f.nodes[i], g.nodes[i])
    {
      assert Ctime.Rises(f, m, i) && Ctime.Rises(m, g, i);
      assert Ctime.Stays(f, m, i) && Ctime.Stays(m, g, i);
    }
  }
  // the first changes no directory
  lemma After(f: FS, m: FS, g: FS)
    requires forall i: uint64 {:trigger IsDir(f, i)} | IsDir(f, i) :: IsDir(m, i) && m.nodes[i].body == f.nodes[i].body
    requires Listings.Kept(m, g)
    ensures Listings.Kept(f, g)
  {
    forall i: uint64 | IsDir(f, i) && IsDir(g, i)
      ensures Stay(f.nodes[i].body, g.nodes[i].body) { assert IsDir(m, i); }
  }

  // ---- the bytes of files ----

  lemma Allocates(f: FS, g: FS, c: Caller, h: Handle, off: uint64, len: uint64, now: Time)
    requires AllocateOk(f, g, c, h, off, len, now)
    ensures Goes(f, g)
  { Ctime.StampIsLater(now, f.nodes[h.ino].attr.ctime); }
  lemma Punches(f: FS, g: FS, c: Caller, h: Handle, lo: uint64, hi: uint64, at: uint64, now: Time)
    requires PunchOk(f, g, c, h, lo, hi, at, now)
    ensures Goes(f, g)
  { Ctime.StampIsLater(now, f.nodes[h.ino].attr.ctime); }

  // ---- open files ----

  lemma Keeps(f: FS, g: FS, h: Handle, now: Time)
    requires KeepOk(f, g, h, now)
    ensures Goes(f, g)
  { Ctime.StampIsLater(now, f.nodes[h.ino].attr.ctime); }
  lemma RemovesOpen(f: FS, g: FS, c: Caller, dh: Handle, name: Name, h: Handle, now: Time, w: Wcc)
    requires RemoveOpenOk(f, g, c, dh, name, h, now, w)
    ensures Goes(f, g)
  {
    var m := Keeping(f, h.ino, now);
    Keeps(f, m, h, now);
    Ctime.Remove(m, g, c, dh, name, now, w);
    Both(f, m, g);
    Listings.Unlink(m, g, dh.ino, name, now, w);
    After(f, m, g);
  }
  lemma RenamesOpen(f: FS, g: FS, c: Caller, fh: Handle, fname: Name, th: Handle, tname: Name, h: Handle, now: Time,
    v: Wcc, w: Wcc)
    requires RenameOpenOk(f, g, c, fh, fname, th, tname, h, now, v, w)
    ensures Goes(f, g)
  {
    var m := Keeping(f, h.ino, now);
    Keeps(f, m, h, now);
    Ctime.Rename(m, g, c, fh, fname, th, tname, now, v, w);
    Both(f, m, g);
    Listings.Rename(m, g, c, fh, fname, th, tname, now, v, w);
    After(f, m, g);
  }
  lemma Tmpfiles(f: FS, g: FS, c: Caller, dh: Handle, s: Sattr, now: Time, h: Handle, na: Fattr)
    requires TmpfileOk(f, g, c, dh, s, now, h, na)
    ensures Goes(f, g)
  { }
  lemma LetsGo(f: FS, g: FS, h: Handle, now: Time)
    requires LetGoOk(f, g, h, now)
    ensures Goes(f, g)
  { Ctime.StampIsLater(now, f.nodes[h.ino].attr.ctime); }
  lemma Clears(f: FS, g: FS, now: Time, more: bool)
    requires ClearOk(f, g, now, more)
    ensures Goes(f, g)
  {
    if more {
      var i: uint64 :| NfsState.Kept(f, i) && g == FS(Dropped(f.nodes, i, now), f.gens, f.xattrs);
      Ctime.StampIsLater(now, f.nodes[i].attr.ctime);
    }
  }

  // ---- names ----

  lemma Exchanges(f: FS, g: FS, c: Caller, fh: Handle, fname: Name, th: Handle, tname: Name, now: Time, v: Wcc, w: Wcc)
    requires ExchangeOk(f, g, c, fh, fname, th, tname, now, v, w)
    ensures Goes(f, g)
  { if !SameFile(f, fh, fname, th, tname) { Changes(f, g, fh.ino, fname, th.ino, tname, now); } }
  lemma Changes(f: FS, g: FS, fd: uint64, fname: Name, td: uint64, tname: Name, now: Time)
    requires BothThere(f, fd, fname, td, tname)
    requires f.nodes[fd].body.names[fname] in f.nodes && f.nodes[td].body.names[tname] in f.nodes
    requires Exchanged(f, g, fd, fname, td, tname, now)
    ensures Goes(f, g)
  {
    var x, y := f.nodes[fd], f.nodes[td];
    var one, other := x.body.names[fname], y.body.names[tname];
    Ctime.StampIsLater(now, f.nodes[one].attr.ctime);
    Ctime.StampIsLater(now, f.nodes[other].attr.ctime);
    if fd == td {
      Ctime.Dirs(y, g.nodes[td], y.body.names[fname := other][tname := one], y.attr.nlink as int, now);
    } else {
      Ctime.Dirs(x, g.nodes[fd], x.body.names[fname := other], LinksGiven(f, fd, fname, td, tname), now);
      Ctime.Dirs(y, g.nodes[td], y.body.names[tname := one], LinksGiven(f, td, tname, fd, fname), now);
    }
  }

  // The states that a whiteout goes through, for a scan: m lies between f and g, and lacks the name, unless both names
  // are of one file.
  predicate Leaves(f: FS, m: FS, g: FS, fh: Handle, fname: Name, th: Handle, tname: Name)
  {
    Listings.Kept(f, m) && Listings.Kept(m, g) &&
      (SameFile(f, fh, fname, th, tname) || !Entry(m, fh.ino, fname))
  }
  lemma Whiteouts(f: FS, g: FS, c: Caller, owner: uint32, fh: Handle, fname: Name, th: Handle, tname: Name, now: Time,
    h: Handle) returns (m: FS)
    requires WhiteoutOk(f, g, c, owner, fh, fname, th, tname, now, h)
    ensures Ctime.Step(f, g) && Leaves(f, m, g, fh, fname, th, tname)
  {
    m := f;
    if SameFile(f, fh, fname, th, tname) { return; }
    var mid, fw, tw, na, w :| RenameOk(f, mid, c, fh, fname, th, tname, now, fw, tw) &&
      Whiteout(mid, g, c, owner, fh, fname, now, h, na, w);
    m := mid;
    Ctime.Rename(f, m, c, fh, fname, th, tname, now, fw, tw);
    Ctime.Mknod(m, g, c, fh, fname, NF3CHR, Unusable(owner), 0, 0, now, h, na, w);
    Both(f, m, g);
    Listings.Rename(f, m, c, fh, fname, th, tname, now, fw, tw);
    Listings.Make(m, g, fh.ino, fname, h, g.nodes[h.ino], now, na, w);
  }
  lemma WhiteoutsOpen(f: FS, g: FS, c: Caller, owner: uint32, fh: Handle, fname: Name, th: Handle, tname: Name,
    h: Handle, now: Time, wh: Handle) returns (m: FS)
    requires WhiteoutOpenOk(f, g, c, owner, fh, fname, th, tname, h, now, wh)
    ensures Ctime.Step(f, g) && Leaves(f, m, g, fh, fname, th, tname)
  {
    var k := Keeping(f, h.ino, now);
    Keeps(f, k, h, now);
    m := Whiteouts(k, g, c, owner, fh, fname, th, tname, now, wh);
    Both(f, k, g);
    After(f, k, m);
  }

  // ---- extended attributes ----

  lemma SetsXattr(f: FS, g: FS, h: Handle, name: Name, value: seq<byte>, create: bool, replace: bool, now: Time)
    requires Xattr.SetOk(f, g, h, name, value, create, replace, now)
    ensures Goes(f, g)
  { Ctime.StampIsLater(now, f.nodes[h.ino].attr.ctime); }
  lemma RemovesXattr(f: FS, g: FS, h: Handle, name: Name, now: Time)
    requires Xattr.RemoveOk(f, g, h, name, now)
    ensures Goes(f, g)
  { Ctime.StampIsLater(now, f.nodes[h.ino].attr.ctime); }
  lemma Forgets(f: FS, g: FS, i: uint64)
    requires Xattr.ForgetOk(f, g, i)
    ensures Goes(f, g)
  { }
}
