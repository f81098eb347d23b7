include "base.dfy"
include "../refinement/resizing.dfy"
include "../refinement/creation.dfy"
// GETATTR, ACCESS, SETATTR, and the attributes new objects get.
module AttributeOps {
  import opened Machine
  import opened ByteSlice
  import opened TxnS
  import opened VolumeGeometry
  import opened InodeFormat
  import opened ByteFiles
  import opened Directories
  import opened Permissions
  import opened AttributeChanges
  import opened ProcedureBase
  import N = NfsState
  import C = NfsCommon
  import P = NfsPerm
  import A = NfsAttrs
  import opened Abstraction
  import NameTree
  import opened Resizing
  import Creation

  // The attributes to set (RFC 1813, sattr3). Times: 0 leave, 1 server's, 2 the client's. mode below 4096.
  class Sattr {
    var hasMode: bool  var mode: uint32
    var hasUid: bool   var uid: uint32
    var hasGid: bool   var gid: uint32
    var hasSize: bool  var size: uint64
    var atimeHow: uint32  var atime: uint64  var atimens: uint32
    var mtimeHow: uint32  var mtime: uint64  var mtimens: uint32
    constructor Make()
      ensures SattrOf(this) == N.NoSattr()
    {
      hasMode, hasUid, hasGid, hasSize := false, false, false, false;
      mode, uid, gid, size := 0, 0, 0, 0;
      atimeHow, atime, atimens := 0, 0, 0;
      mtimeHow, mtime, mtimens := 0, 0, 0;
    }
    method SetMode(x: uint32) modifies this ensures SattrOf(this) == old(SattrOf(this)).(mode := Some(x % 4096))
    { hasMode, mode := true, x % 4096; }
    method SetUid(x: uint32) modifies this ensures SattrOf(this) == old(SattrOf(this)).(uid := Some(x))
    { hasUid, uid := true, x; }
    method SetGid(x: uint32) modifies this ensures SattrOf(this) == old(SattrOf(this)).(gid := Some(x))
    { hasGid, gid := true, x; }
    method SetSize(x: uint64) modifies this ensures SattrOf(this) == old(SattrOf(this)).(size := Some(x))
    { hasSize, size := true, x; }
    method SetAtime(how: uint32, s: uint64, ns: uint32) modifies this
      ensures SattrOf(this) == old(SattrOf(this)).(atime := TimeOf(how, s, ns))
      { atimeHow, atime, atimens := how, s, ns; }
    method SetMtime(how: uint32, s: uint64, ns: uint32) modifies this
      ensures SattrOf(this) == old(SattrOf(this)).(mtime := TimeOf(how, s, ns))
      { mtimeHow, mtime, mtimens := how, s, ns; }
    predicate method Empty() reads this {
      !hasMode && !hasUid && !hasGid && !hasSize && atimeHow == 0 && mtimeHow == 0
    }
  }

  function TimeOf(how: uint32, s: uint64, ns: uint32): N.SetTime
  { if how == 0 then N.DontChange else if how == 2 then N.ClientTime(N.Time(s, ns)) else N.ServerTime }
  // the attributes to set as a value, for specifications
  function SattrOf(a: Sattr): N.Sattr reads a
  {
    N.Sattr(if a.hasMode then Some(a.mode) else None, if a.hasUid then Some(a.uid) else None,
      if a.hasGid then Some(a.gid) else None,
      if a.hasSize then Some(a.size) else None, TimeOf(a.atimeHow, a.atime, a.atimens),
        TimeOf(a.mtimeHow, a.mtime, a.mtimens))
  }

  // a without its size, and without its mode or its owner and group: a itself if it has none of these
  method Without(a: Sattr, mode: bool, ids: bool) returns (r: Sattr)
    ensures SattrOf(r) == Less(SattrOf(a), mode, ids)
  {
    if !a.hasSize && !(mode && a.hasMode) && !(ids && (a.hasUid || a.hasGid)) { return a; }
    r := new Sattr.Make();
    r.hasSize, r.hasMode, r.mode := false, a.hasMode && !mode, a.mode;
    r.hasUid, r.uid, r.hasGid, r.gid := a.hasUid && !ids, a.uid, a.hasGid && !ids, a.gid;
    r.atimeHow, r.atime, r.atimens := a.atimeHow, a.atime, a.atimens;
    r.mtimeHow, r.mtime, r.mtimens := a.mtimeHow, a.mtime, a.mtimens;
  }
  function Less(s: N.Sattr, mode: bool, ids: bool): N.Sattr
  { var t := if ids then N.WithoutIds(s) else s; N.WithoutSize(if mode then N.WithoutMode(t) else t) }

  // what a means: a itself, if it has no owner and no group that is nobody's
  method WithoutNobody(a: Sattr) returns (r: Sattr)
    ensures SattrOf(r) == N.WithoutNobody(SattrOf(a))
  {
    var uid, gid := a.hasUid && a.uid != 0xffff_ffff, a.hasGid && a.gid != 0xffff_ffff;
    if uid == a.hasUid && gid == a.hasGid { return a; }
    r := new Sattr.Make();
    r.hasSize, r.size, r.hasMode, r.mode := a.hasSize, a.size, a.hasMode, a.mode;
    r.hasUid, r.uid, r.hasGid, r.gid := uid, a.uid, gid, a.gid;
    r.atimeHow, r.atime, r.atimens := a.atimeHow, a.atime, a.atimens;
    r.mtimeHow, r.mtime, r.mtimens := a.mtimeHow, a.mtime, a.mtimens;
  }

  method Getattr(txn: Txn, d: DirFs, ino: uint64, gen: uint64) returns (st: uint32, after: Bytes?)
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> after != null && |after.data| == 256 &&
      A.GetattrOk(AbsOf(d), N.Handle(ino, gen), ReplyAttr(ino, MetaOf(after.data)))
    ensures st != 0 ==> A.GetattrErr(AbsOf(d), N.Handle(ino, gen), st) && after == null
  {
    Node(d, ino, gen);
    after := null;
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, false);
    if st == 0 { after := ip; }
  }

  method Access(txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64) returns (st: uint32, bits: uint32, after: Bytes?)
    requires Sound(d) && txn.volume == d.fs.volume
    ensures bits < 64
    ensures st == 0 ==> after != null && |after.data| == 256 &&
      A.AccessOk(AbsOf(d), WhoOf(c), N.Handle(ino, gen), bits, ReplyAttr(ino, MetaOf(after.data)))
    ensures st != 0 ==> A.AccessErr(AbsOf(d), N.Handle(ino, gen), st) && after == null
  {
    Node(d, ino, gen);
    after, bits := null, 0;
    var ip: Bytes;
    st, ip := OpenHandle(txn, d, ino, gen, false);
    if st != 0 { return; }
    after := ip;
    bits := AccessBits(c, ip);
  }

  // what can be said of the values without knowing the file
  method ArgStatus(a: Sattr) returns (st: uint32)
    ensures st == 0 <==> C.ArgsOk(SattrOf(a))
    ensures st != 0 ==> C.ArgErr(SattrOf(a), st)
    ensures st == 0 && a.hasSize ==> a.size as int <= MAXFILE as int
  {
    st := 0;
    if (a.atimeHow == 2 && a.atimens >= 1_000_000_000) ||
      (a.mtimeHow == 2 && a.mtimens >= 1_000_000_000) { st := INVAL; return; }
    if a.hasSize && a.size > MAXFILE { st := FBIG; }
  }

  // may the caller set these attributes of ip?
  method MaySetattr(c: Cred, ip: Bytes, a: Sattr) returns (st: uint32)
    requires |ip.data| == 256
    ensures var m := MetaOf(ip.data); st == 0 <==> C.SetPerm(WhoOf(c), MetaAttr(m), SattrOf(a)) &&
      C.SetAcces(WhoOf(c), m.ty, MetaAttr(m), SattrOf(a))
    ensures var m := MetaOf(ip.data); st != 0 ==> C.SetErr(WhoOf(c), m.ty, MetaAttr(m), SattrOf(a), st)
  {
    st := MayAtAll(ip, a);
    if st != 0 { return; }
    var own := IsOwner(c, ip);
    if a.hasMode && !own { st := PERM; return; }
    if a.hasUid && c.uid != 0 {
      var u := GetUid(ip);
      if !own || a.uid != u { st := PERM; return; }
    }
    if a.hasGid && c.uid != 0 {
      var g := GetGid(ip);
      var mine := InGroup(c, a.gid);
      if !own || (a.gid != g && !mine) { st := PERM; return; }
    }
    if (a.atimeHow == 2 || a.mtimeHow == 2) && !own { st := PERM; return; }
    if a.hasSize || (a.atimeHow != 0 && a.atimeHow != 2) || (a.mtimeHow != 0 && a.mtimeHow != 2) {
      var w := MayData(c, ip, MAYWRITE);
      if !w { st := ACCES; }
    }
  }

  // do flags let anybody set these attributes?
  method MayAtAll(ip: Bytes, a: Sattr) returns (st: uint32)
    requires |ip.data| == 256
    ensures var flags := MetaOf(ip.data).marks;
      st == if (P.IsImmutable(flags) ==> SattrOf(a) == N.NoSattr()) &&
        (P.IsAppendOnly(flags) ==> C.OnlyTouches(SattrOf(a))) then 0 else PERM
  {
    st := 0;
    var immutable, append := Fixed(ip);
    if immutable && !a.Empty() { st := PERM; }
    if append && (a.hasMode || a.hasUid || a.hasGid || a.hasSize || a.atimeHow == 2 || a.mtimeHow == 2) { st := PERM; }
  }

  function WithTimes(m: Meta, a: N.Time, t: N.Time): Meta
  { m.(atime := a.seconds, atimens := a.nanoseconds, mtime := t.seconds, mtimens := t.nanoseconds) }

  // the time stamps of a
  method ApplyTimes(ip: Bytes, a: Sattr, s: uint64, ns: uint32)
    modifies ip
    requires |ip.data| == 256
    ensures Keeps(old(ip.data), ip.data)
    ensures MetaOf(ip.data) == WithTimes(MetaOf(old(ip.data)),
      C.TimeAs(SattrOf(a).atime, MetaAttr(MetaOf(old(ip.data))).atime, N.Time(s, ns)),
      C.TimeAs(SattrOf(a).mtime, MetaAttr(MetaOf(old(ip.data))).mtime, N.Time(s, ns)))
  {
    if a.atimeHow == 2 { InodeFormat.SetAtime(ip, a.atime, a.atimens); } else if a.atimeHow != 0
      { InodeFormat.SetAtime(ip, s, ns); }
    if a.mtimeHow == 2 { InodeFormat.SetMtime(ip, a.mtime, a.mtimens); } else if a.mtimeHow != 0
      { InodeFormat.SetMtime(ip, s, ns); }
  }

  // the mode part of NfsCommon.Applied
  function FirstMode(c: P.Caller, mode: uint32, gid: uint32, s: N.Sattr): uint32
  { if s.mode.None? then mode else var x := s.mode.x % 4096;
    if c.uid != 0 && !P.InGroup(c, gid) then P.DropSetgid(x) else x }
  function NewMode(c: P.Caller, ty: uint32, mode: uint32, gid: uint32, s: N.Sattr): uint32
  { var m := FirstMode(c, mode, gid, s); if ty != DIR &&
    (s.uid.Some? || s.gid.Some? || (s.size.Some? && c.uid != 0)) then P.KillPriv(m) else m }

  lemma AppliedIs(c: P.Caller, ty: uint32, a: N.Attr, s: N.Sattr, now: N.Time)
    ensures var gid := if s.gid.Some? then s.gid.x else a.gid;
      C.Applied(c, ty, a, s, now) == N.Attr(NewMode(c, ty, a.mode, gid, s), a.nlink,
        if s.uid.Some? then s.uid.x else a.uid, gid,
        C.TimeAs(s.atime, a.atime, now), C.TimeAs(s.mtime, if s.size.Some? then now else a.mtime, now), now, a.flags)
  { }

  // owner, group and mode of a
  function WithIds(m: Meta, u: uint32, g: uint32, mode: uint32): Meta { m.(uid := u, gid := g, mode := mode) }
  function UidOf(s: N.Sattr, u: uint32): uint32 { if s.uid.Some? then s.uid.x else u }
  function GidOf(s: N.Sattr, g: uint32): uint32 { if s.gid.Some? then s.gid.x else g }
  predicate IdsDone(c: P.Caller, m: Meta, q: Meta, s: N.Sattr)
  { q == WithIds(m, UidOf(s, m.uid), GidOf(s, m.gid), NewMode(c, m.ty, m.mode, GidOf(s, m.gid), s)) }
  lemma IdsSteps(c: P.Caller, m: Meta, q: Meta, s: N.Sattr, x: uint32, y: uint32)
    requires x == FirstMode(c, m.mode, GidOf(s, m.gid), s)
    requires y == if m.ty != DIR && (s.uid.Some? || s.gid.Some? || (s.size.Some? && c.uid != 0)) then P.KillPriv(x)
      else x
    requires q == WithIds(m, UidOf(s, m.uid), GidOf(s, m.gid), y)
    ensures IdsDone(c, m, q, s)
  { }
  method ApplyIds(c: Cred, ip: Bytes, a: Sattr)
    modifies ip
    requires |ip.data| == 256 && ip != c.gids
    ensures Keeps(old(ip.data), ip.data)
    ensures IdsDone(WhoOf(c), MetaOf(old(ip.data)), MetaOf(ip.data), SattrOf(a))
  {
    ghost var m0, w, sa := MetaOf(ip.data), WhoOf(c), SattrOf(a);
    ghost var u, g := UidOf(sa, m0.uid), GidOf(sa, m0.gid);
    if a.hasUid { InodeFormat.SetUid(ip, a.uid); }
    if a.hasGid { InodeFormat.SetGid(ip, a.gid); }
    ghost var p := MetaOf(ip.data);
    assert p.uid == u && p.gid == g && p.ty == m0.ty && p.mode == m0.mode;
    var mode := GetMode(ip);
    if a.hasMode {
      mode := a.mode % 4096;
      var gid := GetGid(ip);
      var mine := InGroup(c, gid);
      if c.uid != 0 && !mine { mode := DropSetgid(mode); }
    }
    ghost var x, mode0 := mode, m0.mode;
    assert x == FirstMode(w, mode0, g, sa);
    var ty := GetTy(ip);
    if ty != DIR && (a.hasUid || a.hasGid || (a.hasSize && c.uid != 0)) { mode := KillPriv(mode); }
    InodeFormat.SetMode(ip, mode);
    ghost var r := WithIds(m0, u, g, mode);
    assert MetaOf(ip.data) == r;
    IdsSteps(w, m0, MetaOf(ip.data), sa, x, mode);
  }

  // all of a but the size, which the caller has set (and checked the rest)
  method Apply(c: Cred, ip: Bytes, a: Sattr, s: uint64, ns: uint32)
    modifies ip
    requires |ip.data| == 256 && ip != c.gids
    ensures Keeps(old(ip.data), ip.data)
    ensures IsApplied(WhoOf(c), MetaOf(old(ip.data)), MetaOf(ip.data), SattrOf(a), N.Time(s, ns))
  {
    ghost var m0, w, sa, now := MetaOf(ip.data), WhoOf(c), SattrOf(a), N.Time(s, ns);
    ApplyIds(c, ip, a);
    ghost var m1 := MetaOf(ip.data);
    if a.hasSize { InodeFormat.SetMtime(ip, s, ns); }
    ghost var m2 := MetaOf(ip.data);
    ApplyTimes(ip, a, s, ns);
    ghost var m3 := MetaOf(ip.data);
    SetCtime(ip, s, ns);
    AppliedSteps(w, m0, m1, m2, m3, MetaOf(ip.data), sa, now);
  }
  predicate IsApplied(c: P.Caller, m: Meta, q: Meta, s: N.Sattr, now: N.Time)
  { q == WithAttr(m, C.Applied(c, m.ty, MetaAttr(m), s, now)) }
  lemma AppliedSteps(c: P.Caller, m0: Meta, m1: Meta, m2: Meta, m3: Meta, m4: Meta, s: N.Sattr, now: N.Time)
    requires IdsDone(c, m0, m1, s)
    requires m2 == if s.size.Some? then WithTimes(m1, N.Time(m1.atime, m1.atimens), now) else m1
    requires m3 == WithTimes(m2, C.TimeAs(s.atime, N.Time(m2.atime, m2.atimens), now),
      C.TimeAs(s.mtime, N.Time(m2.mtime, m2.mtimens), now))
    requires m4 == WithCtime(m3, now.seconds, now.nanoseconds)
    ensures IsApplied(c, m0, m4, s, now)
  {
    var a0 := MetaAttr(m0);
    var at := C.Applied(c, m0.ty, a0, s, now);
    AppliedIs(c, m0.ty, a0, s, now);
    var gid := GidOf(s, m0.gid);
    assert at.gid == gid && at.uid == UidOf(s, m0.uid);
    assert at.mode == m1.mode;
    assert N.Time(m2.atime, m2.atimens) == a0.atime;
    assert N.Time(m2.mtime, m2.mtimens) == if s.size.Some? then now else a0.mtime;
    assert N.Time(m4.atime, m4.atimens) == at.atime && N.Time(m4.mtime, m4.mtimens) == at.mtime;
  }

  // Set the size of a regular file for SETATTR and CREATE. later: the background has blocks to free.
  method Resize(txn: Txn, d: DirFs, ino: uint64, size: uint64) returns (st: uint32, later: bool)
    modifies d.Repr()
    requires d.Valid() && txn.volume == d.fs.volume && OkIno(d.fs.geometry, ino) && ino !in d.dirs
    ensures ino in old(d.fs.metas) && st == var m := old(d.fs.metas)[ino];
      if size > m.size && m.shrink != 0 then SHRINKFIRST else if size <= MAXFILE then 0 else FBIG
    ensures st == 0 ==> d.Valid() && d.dirs == old(d.dirs) && d.places == old(d.places) && ino in d.fs.metas &&
      ORPHANS in old(d.fs.metas)
    ensures st == 0 ==> ino in old(d.fs.files) && d.fs.files ==
      old(d.fs.files)[ino := SizeSpec(old(d.fs.files)[ino], size as int)]
    ensures st == 0 ==> ino in old(d.fs.held) && d.fs.held ==
      old(d.fs.held)[ino := C.HeldBelow(old(d.fs.held)[ino], size as int)]
    ensures st == 0 ==> d.fs.metas == ResizedAll(old(d.fs.metas), ino, size, LeftoverOf(d.fs.metas[ino]), !later) &&
      (later ==> size < old(d.fs.metas)[ino].size)
    ensures st == 0 && !later && size < old(d.fs.metas)[ino].size ==> d.fs.metas[ino].shrink == 0
    ensures st == 0 ==> Tells(old(d.fs.metas), d.fs.metas, later)
    ensures var m := old(d.fs.metas)[ino]; m.shrink == 0 && m.size as int <= size as int + SMALL as int ==> !later
    ensures st == 0 ==> d.fs.metas[ino].used <= old(d.fs.metas)[ino].used &&
      |d.fs.held[ino]| <= d.fs.metas[ino].used as int
  {
    assert OkIno(d.fs.geometry, ino) && OkIno(d.fs.geometry, ORPHANS);
    later := false;
    var ip := d.fs.GetInode(txn, ino, true);
    var was := GetSize(ip);
    var shrink := GetShrink(ip);
    if size > was && shrink != 0 { st := SHRINKFIRST; return; }
    var ok := d.SetSize(txn, ino, size);
    if !ok { st := FBIG; return; }
    st := 0;
    if size < was {
      var done := Release(txn, d, ino, was - size);
      later := !done;
    }
    d.fs.Count(ino);
  }

  // the effect of SETATTR
  lemma SetattrEffect(c: P.Caller, g: Geometry, ms: Metas, ms': Metas, files: Files, files': Files, held: Helds,
    held': Helds, dirs: NameTree.Dirs, places: DirPlaces, i: uint64, sa: N.Sattr, now: N.Time, sh: Leftover, done: bool)
    requires NameTree.TreeOk(g, ms, dirs) && Shown(g, ms, i) && 2 in ms && i in files && i in held && i in ms'
    requires sa.size.Some? ==> ms[i].ty == REG && (done && sa.size.x < ms[i].size ==> sh.shrink == 0) &&
      files' == files[i := SizeSpec(files[i], sa.size.x as int)] &&
      held' == held[i := C.HeldBelow(held[i], sa.size.x as int)]
    requires sa.size.Some? && sa.size.x < ms[i].size ==>
      |C.HeldBelow(held[i], sa.size.x as int)| <= sh.used as int <= ms[i].used as int
    requires sa.size.None? ==> files' == files && held' == held
    requires |files[i]| == ms[i].size as int
    requires var r := if sa.size.Some? then ResizedAll(ms, i, sa.size.x, sh, done) else ms;
      i in r && ms' == r[i := WithVerf(WithAttr(r[i],
        C.Applied(c, r[i].ty, MetaAttr(r[i]), sa, N.Stamp(now, MetaAttr(r[i]).ctime))), 0)]
    ensures NameTree.TreeOk(g, ms', dirs)
    ensures var p := Abs(g, ms, files, held, dirs, places); i in p.nodes && (sa.size.Some? ==> p.nodes[i].body.File?) &&
      C.Set(p, Abs(g, ms', files', held', dirs, places), c, i, sa, now)
  {
    NameTree.Basics(g, ms, dirs);
    var m := ms[i];
    assert NameTree.Fits(i, m);
    At(g, ms, files, held, dirs, places, i);
    var t := N.Stamp(now, MetaAttr(m).ctime);
    var a := C.Applied(c, m.ty, MetaAttr(m), sa, t);
    AppliedIs(c, m.ty, MetaAttr(m), sa, t);
    Creation.SmallMode(c, m.ty, MetaAttr(m), sa, t);
    if sa.size.Some? {
      ResizeOk(g, ms, files, held, dirs, places, i, sa.size.x, sh, done, a, files'[i], held'[i]);
      assert files'[i] == C.Resized(files[i], sa.size.x as int);
    } else {
      ChangeOk(g, ms, files, held, dirs, places, i, WithVerf(WithAttr(m, a), 0), files[i], held[i]);
      assert files[i := files[i]] == files && held[i := held[i]] == held;
    }
  }
  // what SETATTR asks before it changes anything
  predicate Allowed(f: N.FS, c: P.Caller, h: N.Handle, s: N.Sattr, guard: Option<N.Time>)
  {
    N.Live(f, h) && (guard.Some? ==> guard.x == f.nodes[h.ino].attr.ctime) &&
      (s.size.Some? ==> f.nodes[h.ino].body.File?) && C.ArgsOk(s) &&
    C.SetPerm(c, f.nodes[h.ino].attr, s) && C.SetAcces(c, N.Type(f.nodes[h.ino]), f.nodes[h.ino].attr, s)
  }
  method MayChange(txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64, a: Sattr, guard: bool, gs: uint64,
    gns: uint32)
    returns (st: uint32, ip: Bytes?)
    requires Sound(d) && txn.volume == d.fs.volume && SattrOf(a) == N.WithoutNobody(SattrOf(a))
    ensures ip != null ==> fresh(ip) && |ip.data| == 256
    ensures st == 0 ==> ip != null && Live(d.fs.geometry, d.fs.metas, ino, gen) && MetaOf(ip.data) == d.fs.metas[ino]
    ensures st == 0 ==> Allowed(AbsOf(d), WhoOf(c), N.Handle(ino, gen), SattrOf(a), Guard(guard, gs, gns))
    ensures st != 0 ==> A.SetattrErr(AbsOf(d), WhoOf(c), N.Handle(ino, gen), SattrOf(a), Guard(guard, gs, gns), st) &&
      N.Seen(AbsOf(d), ino, Reply(ino, ip)) && st != SHRINKFIRST
  {
    Node(d, ino, gen);
    ip := null;
    var p: Bytes;
    st, p := OpenHandle(txn, d, ino, gen, true);
    if st != 0 { return; }
    ip := p;
    if guard {
      var cs, cns := GetCtime(p);
      if cs != gs || cns != gns { st := NOTSYNC; return; }
    }
    var ty := GetTy(p);
    if a.hasSize && ty != REG { st := INVAL; return; }
    st := ArgStatus(a);
    if st != 0 { return; }
    st := MaySetattr(c, p, a);
  }

  // set the attributes
  method Change(txn: Txn, d: DirFs, c: Cred, ino: uint64, a: Sattr, s: uint64, ns: uint32, ghost gen: uint64)
    returns (st: uint32, after: Bytes?, later: bool)
    modifies d.Repr()
    requires Sound(d) && txn.volume == d.fs.volume && Live(d.fs.geometry, d.fs.metas, ino, gen) &&
      (a.hasSize ==> d.fs.metas[ino].ty == REG && a.size <= MAXFILE)
    ensures st == 0 || (st == SHRINKFIRST && a.hasSize && a.size > old(d.fs.metas)[ino].size &&
      0 < old(ToFree(d, ino)))
    ensures st == 0 ==> Sound(d) && after != null && |after.data| == 256 && ino in AbsOf(d).nodes &&
      ReplyAttr(ino, MetaOf(after.data)) == N.FattrOf(ino, AbsOf(d).nodes[ino])
    ensures st == 0 ==> Tells(old(d.fs.metas), d.fs.metas, later)
    ensures st == 0 ==> Changed(old(AbsOf(d)), AbsOf(d), WhoOf(c), ino, SattrOf(a), N.Time(s, ns))
  {
    ghost var ms, files, held := d.fs.metas, d.fs.files, d.fs.held;
    after, later := null, false;
    ghost var sh := Leftover(0, 0);
    assert OkIno(d.fs.geometry, ORPHANS) by { NameTree.Basics(d.fs.geometry, d.fs.metas, d.dirs); }
    if a.hasSize {
      assert ino !in d.dirs;
      st, later := Resize(txn, d, ino, a.size);
      if st != 0 { return; }
      sh := LeftoverOf(d.fs.metas[ino]);
    }
    st := 0;
    var np := d.fs.GetInode(txn, ino, true);
    var ts, tns := Stamp(np, s, ns);
    Apply(c, np, a, ts, tns);
    SetVerf(np, 0);
    d.PutInode(txn, ino, np);
    after := np;
    SetattrEffect(WhoOf(c), d.fs.geometry, ms, d.fs.metas, files, d.fs.files, held, d.fs.held, d.dirs, d.places, ino,
      SattrOf(a), N.Time(s, ns), sh, !later);
    Node(d, ino, gen);
  }
  predicate Changed(f: N.FS, post: N.FS, c: P.Caller, i: uint64, s: N.Sattr, now: N.Time)
  { i in f.nodes && (s.size.Some? ==> f.nodes[i].body.File?) && C.Set(f, post, c, i, s, now) }

  method Setattr(txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64, a: Sattr, guard: bool, gs: uint64, gns: uint32,
    s: uint64, ns: uint32)
    returns (st: uint32, before: Bytes?, after: Bytes?, later: bool)
    modifies d.Repr()
    requires Sound(d) && txn.volume == d.fs.volume
    ensures st == 0 ==> Sound(d) && before != null && |before.data| == 256 && after != null && |after.data| == 256
    ensures st == 0 ==> A.SetattrOk(old(AbsOf(d)), AbsOf(d), WhoOf(c), N.Handle(ino, gen), SattrOf(a),
      Guard(guard, gs, gns), N.Time(s, ns),
      N.Wcc(ReplyAttr(ino, MetaOf(before.data)), ReplyAttr(ino, MetaOf(after.data))))
    ensures st != 0 ==> A.SetattrErr(old(AbsOf(d)), WhoOf(c), N.Handle(ino, gen), SattrOf(a), Guard(guard, gs, gns),
      st) && N.Seen(old(AbsOf(d)), ino, Reply(ino, before))
    ensures st == SHRINKFIRST ==> 0 < old(ToFree(d, ino))
    ensures st == 0 ==> Tells(old(d.fs.metas), d.fs.metas, later)
  {
    Node(d, ino, gen);
    after, later := null, false;
    var m := WithoutNobody(a);
    st, before := MayChange(txn, d, c, ino, gen, m, guard, gs, gns);
    if st != 0 { return; }
    if m.Empty() { after := before; return; }
    st, after, later := Change(txn, d, c, ino, m, s, ns, gen);
  }
  function Guard(guard: bool, gs: uint64, gns: uint32): Option<N.Time> { if guard then Some(N.Time(gs, gns)) else None }

  // The attributes of a new object in directory dp before the caller's wishes:
  // owner and group, mode, link count, times. The group of a setgid directory is inherited.
  method InitAttr(c: Cred, dp: Bytes, ip: Bytes, mode: uint32, s: uint64, ns: uint32)
    modifies ip
    requires |ip.data| == 256 && |dp.data| == 256 && dp != ip && ip != c.gids && MetaOf(ip.data).marks == 0
    ensures Keeps(old(ip.data), ip.data)
    ensures MetaOf(ip.data) == WithAttr(MetaOf(old(ip.data)),
      Creation.FirstS(WhoOf(c), MetaOf(dp.data), MetaOf(old(ip.data)).ty, mode, N.Time(s, ns)))
  {
    var ty := GetTy(ip);
    var dmode := GetMode(dp);
    var dgid := GetGid(dp);
    InodeFormat.SetUid(ip, c.uid);
    InodeFormat.SetGid(ip, if dmode / 1024 % 2 == 1 then dgid else c.gid);
    InodeFormat.SetMode(ip, mode);
    SetNlink(ip, if ty == DIR then 2 else 1);
    var dflags := GetMarks(dp);
    var flags := Inherited(c, ty, dflags);
    if flags != 0 { SetMarks(ip, flags); }
    InodeFormat.SetAtime(ip, s, ns);
    InodeFormat.SetMtime(ip, s, ns);
    SetCtime(ip, s, ns);
  }

  // what the mode of ip is bounded by, if directory dp has a default list
  method InheritMode(c: Cred, dp: Bytes, ip: Bytes)
    modifies ip
    requires |ip.data| == 256 && |dp.data| == 256 && dp != ip && ip != c.gids
    ensures Keeps(old(ip.data), ip.data)
    ensures var m := MetaOf(old(ip.data)); MetaOf(ip.data) ==
      WithMode(m, P.InheritedMode(WhoOf(c), m.ty, MetaOf(dp.data).marks, m.mode))
  {
    var dflags := GetMarks(dp);
    var ty := GetTy(ip);
    var mode := GetMode(ip);
    if dflags < 1048576 { return; }
    mode := Permissions.InheritedMode(c, ty, dflags, mode);
    InodeFormat.SetMode(ip, mode);
  }

  // a directory made in a setgid directory is one itself
  method InheritSetgid(dp: Bytes, ip: Bytes)
    modifies ip
    requires |ip.data| == 256 && |dp.data| == 256 && dp != ip
    ensures Keeps(old(ip.data), ip.data)
    ensures var m := MetaOf(old(ip.data)); MetaOf(ip.data) == if MetaOf(dp.data).mode / 1024 % 2 == 1 then
      WithMode(m, P.AddSetgid(m.mode)) else m
  {
    var dmode := GetMode(dp);
    var m := GetMode(ip);
    if dmode / 1024 % 2 == 1 && m / 1024 % 2 == 0 && m < 4096 { InodeFormat.SetMode(ip, m + 1024); }
  }
}
