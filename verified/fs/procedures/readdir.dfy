include "base.dfy"
include "../refinement/listing.dfy"
// READDIR and READDIRPLUS. The List that they fill is empty at first; Items, Handles
// and Fattrs (listing.dfy) say what it means to a client.
module ReaddirOps {
  import opened Machine
  import opened ByteSlice
  import opened TxnS
  import opened VolumeGeometry
  import opened InodeFormat
  import opened ByteFiles
  import opened Directories
  import opened DirListSpec
  import opened DirListS
  import opened Permissions
  import opened ProcedureBase
  import opened Abstraction
  import opened Listing
  import NameTree
  import D = DirPages
  import N = NfsState
  import C = NfsCommon
  import L = NfsList

  const TOOSMALL: uint32 := 10005

  method DotNames() returns (b: Blk)
    ensures |b.v| == 4096 && b.v[0..1] == [46] && b.v[0..2] == [46, 46]
  {
    var w := NewBytes(4096);
    w.Set(0, 46);
    w.Set(1, 46);
    b := Freeze(w);
  }

  // ".", with cookie 1, and "..", with cookie 2, as far as they come after the cookie and fit
  method Offer2(ino: uint64, up: uint64, cookie: uint64, out: List) returns (fits: bool)
    modifies out
    requires out.got == []
    ensures D.Within(out) && out.attrs == old(out.attrs) && (fits ==> out.got == Head(ino, up, cookie as int))
    ensures !fits ==> cookie < 2 && |out.got| < |Head(ino, up, cookie as int)| &&
      out.got == Head(ino, up, cookie as int)[..|out.got|] &&
      !Takes(out.room, out.got + [Head(ino, up, cookie as int)[|out.got|]])
  {
    fits := true;
    if cookie >= 2 { return; }
    var dots := DotNames();
    assert [] + [DirEntry(ino, [46], 1)] == [DirEntry(ino, [46], 1)] &&
      [] + [DirEntry(up, [46, 46], 2)] == [DirEntry(up, [46, 46], 2)];
    if cookie == 0 { fits := out.Offer(ino, dots, 0, 1, 1); }
    if fits { fits := out.Offer(up, dots, 0, 2, 2); }
  }

  // the limits that a List has
  function Lim(out: List): L.Limit { LimOf(out.room) }

  // A page of a directory. Its caller refuses one without an entry and without eof.
  method Page(txn: Txn, d: DirFs, ino: uint64, gen: uint64, dp: Bytes, cookie: uint64, out: List) returns (eof: bool)
    modifies out
    requires Sound(d) && txn.volume == d.fs.volume && out.got == []
    requires DirHandleS(d.fs.geometry, d.fs.metas, ino, gen) == 0 && |dp.data| == 256 &&
      MetaOf(dp.data) == d.fs.metas[ino]
    ensures D.Within(out) && out.attrs == old(out.attrs) && N.IsDir(AbsOf(d), ino)
    ensures eof || out.got != [] ==> L.Page(ino, AbsOf(d).nodes[ino].body, cookie as int, Items(out.got), eof)
    ensures !eof ==> L.IsFull(ino, AbsOf(d).nodes[ino].body, cookie as int, Lim(out), Items(out.got))
  {
    Node(d, ino, gen);
    ghost var b := AbsOf(d).nodes[ino].body;
    ghost var at := d.places[ino];
    PlaceOf(d.fs.files[ino], d.dirs[ino], at);
    eof := false;
    var up := GetParent(dp);
    var fits := Offer2(ino, up, cookie, out);
    if !fits {
      if out.got != [] { DotOnly(ino, b, at); }
      DotsFull(ino, b, at, cookie as int, out.room, out.got, Head(ino, up, cookie as int)[|out.got|]);
      return;
    }
    ghost var head := out.got;
    eof := d.List(txn, ino, if cookie < 2 then 0 else cookie, out);
    ghost var page := out.got[|head|..];
    assert out.got == head + page;
    PageIs(ino, b, at, cookie as int, eof, page, out.got);
    if !eof { FullIs(ino, b, at, cookie as int, page, out.room, out.got); }
  }

  // Offer the entries after cookie to out. The cookie of an entry is its place for ever, so any
  // cookie may be resumed, and the verifier is always 0.
  method Readdir(txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64, cookie: uint64, verf: uint64, out: List)
    returns (st: uint32, eof: bool, dir: Bytes?)
    modifies out
    requires Sound(d) && txn.volume == d.fs.volume && out.got == []
    ensures out.attrs == old(out.attrs)
    ensures st == 0 ==> dir != null && |dir.data| == 256 && ino in d.fs.metas && MetaOf(dir.data) == d.fs.metas[ino]
    ensures st == 0 ==> L.ReaddirOk(AbsOf(d), WhoOf(c), N.Handle(ino, gen), cookie, verf, Lim(out), Items(out.got), eof,
      ReplyAttr(ino, MetaOf(dir.data)))
    ensures st != 0 ==> L.ReaddirErr(AbsOf(d), WhoOf(c), N.Handle(ino, gen), cookie, verf, Lim(out), st) &&
      N.Seen(AbsOf(d), ino, Reply(ino, dir))
  {
    DirStatus(d, ino, gen, []);
    Node(d, ino, gen);
    eof := false;
    st, dir := OpenDirHandle(txn, d, ino, gen, false);
    if st != 0 { return; }
    var ok := May(c, dir, MAYREAD);
    if !ok { st := ACCES; return; }
    if cookie != 0 && verf != 0 { st := BADCOOKIE; return; }
    var room := out.Fits();
    if !room { st := TOOSMALL; return; }
    eof := Page(txn, d, ino, gen, dir, cookie, out);
    var n := out.Len();
    if n == 0 && !eof { st := TOOSMALL; }
    FitsIs(out.room, out.got);
  }

  // all that a page lists is in use
  lemma AllShown(d: DirFs, ino: uint64, gen: uint64, cookie: int, eof: bool, got: seq<DirEntry>)
    requires Sound(d) && DirHandleS(d.fs.geometry, d.fs.metas, ino, gen) == 0 && N.IsDir(AbsOf(d), ino)
    requires L.Page(ino, AbsOf(d).nodes[ino].body, cookie, Items(got), eof)
    ensures forall k: int {:trigger got[k]} | 0 <= k < |got| :: Shown(d.fs.geometry, d.fs.metas, got[k].ino)
  {
    Node(d, ino, gen);
    NameTree.Basics(d.fs.geometry, d.fs.metas, d.dirs);
    NameTree.ParentOk(d.fs.geometry, d.fs.metas, d.dirs, ino);
    assert NameTree.Fits(2, d.fs.metas[2]);
    ghost var items, b := Items(got), AbsOf(d).nodes[ino].body;
    forall k: int | 0 <= k < |got| ensures Shown(d.fs.geometry, d.fs.metas, got[k].ino)
    {
      var e := items[k];
      assert L.Listed(ino, b, e) && e.ino == got[k].ino;
      if e.name in d.dirs[ino] { NameTree.EntryOk(d.fs.geometry, d.fs.metas, d.dirs, ino, e.name); }
    }
  }

  // the attributes of all entries
  method Attrs(txn: Txn, d: DirFs, out: List)
    modifies out
    requires Sound(d) && txn.volume == d.fs.volume
    requires forall k: int {:trigger out.got[k]} | 0 <= k < |out.got| ::
      Shown(d.fs.geometry, d.fs.metas, out.got[k].ino)
    ensures out.got == old(out.got) && Whole(out.got, out.attrs)
    ensures forall k: int {:trigger out.got[k]} | 0 <= k < |out.got| ::
      MetaOf(out.attrs[k]) == d.fs.metas[out.got[k].ino]
  {
    var n := out.Len();
    var i: uint64 := 0;
    while i < n
      invariant i <= n && n as int == |out.got| && out.got == old(out.got)
      invariant forall k: int {:trigger k in out.attrs} {:trigger out.attrs[k]} {:trigger out.got[k]}
        | 0 <= k < i as int ::
        k in out.attrs && |out.attrs[k]| == 256 && MetaOf(out.attrs[k]) == d.fs.metas[out.got[k].ino]
    {
      var x := out.InoAt(i);
      assert x == out.got[i].ino;
      var p := d.fs.GetInode(txn, x, false);
      out.AttrAt(i, p);
      i := i + 1;
    }
  }

  // READDIR, and the attributes and generations of the entries for who may search the directory
  method Readdirplus(txn: Txn, d: DirFs, c: Cred, ino: uint64, gen: uint64, cookie: uint64, verf: uint64, out: List)
    returns (st: uint32, eof: bool, dir: Bytes?)
    modifies out
    requires Sound(d) && txn.volume == d.fs.volume && out.got == [] && out.attrs == map[]
    ensures st == 0 ==> dir != null && |dir.data| == 256 && Given(out.got, out.attrs)
    ensures st == 0 ==> L.ReaddirplusOk(AbsOf(d), WhoOf(c), N.Handle(ino, gen), cookie, verf, Lim(out), Items(out.got),
      Handles(out.got, out.attrs), Fattrs(out.got, out.attrs), eof, ReplyAttr(ino, MetaOf(dir.data)))
    ensures st != 0 ==> L.ReaddirplusErr(AbsOf(d), WhoOf(c), N.Handle(ino, gen), cookie, verf, Lim(out), st) &&
      N.Seen(AbsOf(d), ino, Reply(ino, dir))
  {
    DirStatus(d, ino, gen, []);
    st, eof, dir := Readdir(txn, d, c, ino, gen, cookie, verf, out);
    if st != 0 { return; }
    var ok := May(c, dir, MAYEXEC);
    if !ok { return; }
    ghost var got := out.got;
    AllShown(d, ino, gen, cookie as int, eof, got);
    Attrs(txn, d, out);
    assert out.got == got;
    forall k: int | 0 <= k < |got| ensures Known(AbsOf(d), got[k].ino, MetaOf(out.attrs[k]))
    { Node(d, got[k].ino, d.fs.metas[got[k].ino].gen); }
    PlusIs(AbsOf(d), WhoOf(c), N.Handle(ino, gen), cookie, verf, Lim(out), got, out.attrs, eof,
      ReplyAttr(ino, MetaOf(dir.data)));
  }
}
