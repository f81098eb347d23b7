// A page of a listing as READDIR gives it ("." and "..", and what dirpages.dfy
// walked through) is a page in the sense of nfs3.s.dfy.
include "../directories/dirpages.dfy"
include "abstraction.dfy"
module Listing {
  import opened Machine
  import opened DirListSpec
  import opened InodeFormat
  import opened DirLayout
  import D = DirPages
  import A = Abstraction
  import N = NfsState
  import L = NfsList
  import C = NfsCommon
  import P = NfsPerm

  function Items(g: seq<DirEntry>): (r: seq<L.Item>)
    ensures |r| == |g| && forall k: int {:trigger r[k]} | 0 <= k < |g| ::
      r[k] == L.Item(g[k].ino, g[k].name, g[k].cookie as int)
  { if g == [] then [] else Items(g[..|g| - 1]) + [L.Item(g[|g| - 1].ino, g[|g| - 1].name, g[|g| - 1].cookie as int)] }

  lemma BytesAre(cost: int -> int, g: seq<DirEntry>)
    ensures L.Bytes(cost, Items(g)) == Used(cost, g)
  {
    if g != [] {
      var p, n := Items(g), |g| - 1;
      assert p[..n] == Items(g[..n]) && p[n].name == g[n].name;
      BytesAre(cost, g[..n]);
    }
  }

  // "." and ".." that come first
  function Head(i: uint64, up: uint64, cookie: int): seq<DirEntry>
  { if cookie == 0 then [DirEntry(i, [46], 1), DirEntry(up, [46, 46], 2)] else if cookie == 1
    then [DirEntry(up, [46, 46], 2)]
    else [] }
  function After(cookie: int): int { if cookie < 2 then 2 else cookie }

  lemma PageIs(i: uint64, b: N.Body, at: Places, cookie: int, eof: bool, page: seq<DirEntry>, got: seq<DirEntry>)
    requires b.Dir? && b.cookies == A.Cookies(b.names, at) && 0 <= cookie &&
      (forall n: seq<byte> {:trigger n in at} | n in b.names && n in at :: 0 <= at[n])
    requires D.PageOk(b.names, at, After(cookie), eof, page) && got == Head(i, b.parent, cookie) + page
    ensures L.Page(i, b, cookie, Items(got), eof)
  {
    var items, h := Items(got), Head(i, b.parent, cookie);
    D.SoundHas(b.names, at, After(cookie), page);
    forall k: int | 0 <= k < |items| ensures L.Listed(i, b, items[k]) && cookie < items[k].cookie
    { if |h| <= k { assert got[k] == page[k - |h|]; } else { assert got[k] == h[k]; } }
    forall j: int, k: int | 0 <= j < k < |items| ensures items[j].cookie < items[k].cookie
    {
      if |h| <= j { assert got[j] == page[j - |h|] && got[k] == page[k - |h|]; }
      else if |h| <= k { assert got[j] == h[j] && got[k] == page[k - |h|]; }
      else { assert got[j] == h[j] && got[k] == h[k]; }
    }
    forall e: L.Item | L.Listed(i, b, e) && cookie < e.cookie &&
      (eof || (items != [] && e.cookie <= items[|items| - 1].cookie)) ensures e in items
    {
      if e == L.Item(i, [46], 1) { assert got[0] == h[0]; assert items[0] == e; }
      else if e == L.Item(b.parent, [46, 46], 2) { var k := |h| - 1; assert got[k] == h[k]; assert items[k] == e; }
      else {
        assert e.cookie == D.Cookie(at[e.name]) && After(cookie) < e.cookie;
        if !eof { assert page != [] && got[|got| - 1] == page[|page| - 1]; }
        assert D.Has(page, e.name);
        var k :| 0 <= k < |page| && page[k].name == e.name;
        assert got[k + |h|] == page[k];
        assert items[k + |h|] == e;
      }
    }
  }
  // The limits of a List, as a client knows them, and what is within them.
  function LimOf(r: Room): L.Limit { L.Limit(r.max, r.cost, r.names, r.nameCost) }
  lemma FitsIs(r: Room, g: seq<DirEntry>)
    ensures L.Fits(Items(g), LimOf(r)) <==> Takes(r, g)
  { BytesAre(r.cost, g); BytesAre(r.nameCost, g); }
  // x is the next entry, and one of its name is refused
  lemma RefusedIs(i: uint64, b: N.Body, cookie: int, r: Room, got: seq<DirEntry>, e: DirEntry, x: L.Item)
    requires b.Dir? && !Takes(r, got + [e]) && x.name == e.name && L.First(i, b, L.Last(cookie, Items(got)), x)
    ensures L.IsFull(i, b, cookie, LimOf(r), Items(got))
  {
    D.UsedMore(r.cost, got, e); D.UsedMore(r.nameCost, got, e);
    BytesAre(r.cost, got); BytesAre(r.nameCost, got);
    assert (Items(got) + [x])[..|got|] == Items(got);
  }
  // the next entry of the directory does not fit
  lemma FullIs(i: uint64, b: N.Body, at: Places, cookie: int, page: seq<DirEntry>, r: Room, got: seq<DirEntry>)
    requires b.Dir? && b.cookies == A.Cookies(b.names, at) && 0 <= cookie && got == Head(i, b.parent, cookie) + page &&
      (forall n: seq<byte> {:trigger n in at} | n in b.names && n in at :: 0 <= at[n])
    requires D.Sound(b.names, at, After(cookie), page) &&
      D.IsFull(b.names, at, D.Last(After(cookie), page), r, got)
    ensures L.IsFull(i, b, cookie, LimOf(r), Items(got))
  {
    var last := D.Last(After(cookie), page);
    var n :| D.First(b.names, at, last, n) && !Takes(r, got + [DirEntry(b.names[n], n, 0)]);
    D.SoundHas(b.names, at, After(cookie), page);
    if page != [] {
      assert got[|got| - 1] == page[|page| - 1];
    } else { assert got == Head(i, b.parent, cookie); }
    assert L.Last(cookie, Items(got)) == last && 2 <= last;
    var x := L.Item(b.names[n], n, b.cookies[n]);
    assert L.Listed(i, b, x);
    RefusedIs(i, b, cookie, r, got, DirEntry(b.names[n], n, 0), x);
  }
  // "." or "..", which comes next, does not fit
  lemma DotsFull(i: uint64, b: N.Body, at: Places, cookie: int, r: Room, got: seq<DirEntry>, e: DirEntry)
    requires b.Dir? && b.cookies == A.Cookies(b.names, at) &&
      (forall n: seq<byte> {:trigger n in at} | n in b.names && n in at :: 0 <= at[n])
    requires 0 <= cookie < 2 && !Takes(r, got + [e])
    requires (got == [] && e == Head(i, b.parent, cookie)[0]) || (cookie == 0 && got == [DirEntry(i, [46], 1)] &&
      e == DirEntry(b.parent, [46, 46], 2))
    ensures L.IsFull(i, b, cookie, LimOf(r), Items(got))
  {
    var x := L.Item(e.ino, e.name, e.cookie as int);
    assert L.Listed(i, b, x);
    RefusedIs(i, b, cookie, r, got, e, x);
  }
  // only "." fitted
  lemma DotOnly(i: uint64, b: N.Body, at: Places)
    requires b.Dir? && b.cookies == A.Cookies(b.names, at) &&
      (forall n: seq<byte> {:trigger n in at} | n in b.names && n in at :: 0 <= at[n])
    ensures L.Page(i, b, 0, Items([DirEntry(i, [46], 1)]), false)
  {
    var items := Items([DirEntry(i, [46], 1)]);
    assert items[0] == L.Item(i, [46], 1);
    forall e: L.Item | L.Listed(i, b, e) && 0 < e.cookie && e.cookie <= 1 ensures e in items { assert e == items[0]; }
  }
  // ---- READDIRPLUS ----

  // a: the attributes (serialized inodes) by the index of the entry; of all entries or of none
  type Inodes = map<int, seq<byte>>
  predicate Whole(g: seq<DirEntry>, a: Inodes)
  { forall k: int {:trigger k in a} {:trigger a[k]} {:trigger g[k]} | 0 <= k < |g| :: k in a && |a[k]| == 256 }
  predicate Given(g: seq<DirEntry>, a: Inodes) { a == map[] || Whole(g, a) }

  function Handles(g: seq<DirEntry>, a: Inodes): seq<N.Handle>
    requires Given(g, a)
  { if a == map[] then [] else HandleSeq(g, a) }
  function HandleSeq(g: seq<DirEntry>, a: Inodes): (r: seq<N.Handle>)
    requires Whole(g, a)
    ensures |r| == |g| && forall k: int {:trigger r[k]} | 0 <= k < |g| :: r[k] == N.Handle(g[k].ino, MetaOf(a[k]).gen)
  { if g == [] then [] else HandleSeq(g[..|g| - 1], a) + [N.Handle(g[|g| - 1].ino, MetaOf(a[|g| - 1]).gen)] }
  function Fattrs(g: seq<DirEntry>, a: Inodes): seq<N.Fattr>
    requires Given(g, a)
  { if a == map[] then [] else FattrSeq(g, a) }
  function FattrSeq(g: seq<DirEntry>, a: Inodes): (r: seq<N.Fattr>)
    requires Whole(g, a)
    ensures |r| == |g| && forall k: int {:trigger r[k]} | 0 <= k < |g| :: r[k] == A.ReplyAttr(g[k].ino, MetaOf(a[k]))
  { if g == [] then [] else FattrSeq(g[..|g| - 1], a) + [A.ReplyAttr(g[|g| - 1].ino, MetaOf(a[|g| - 1]))] }

  // m is what the specification says of file i
  predicate Known(f: N.FS, i: uint64, m: Meta)
  { N.Live(f, N.Handle(i, m.gen)) && A.ReplyAttr(i, m) == N.FattrOf(i, f.nodes[i]) }

  lemma PlusIs(f: N.FS, c: P.Caller, dh: N.Handle, cookie: uint64, verf: uint64, lim: L.Limit, g: seq<DirEntry>,
    a: Inodes,
    eof: bool, da: N.Fattr)
    requires L.ReaddirOk(f, c, dh, cookie, verf, lim, Items(g), eof, da) && C.Can(c, f.nodes[dh.ino], P.EXEC)
    requires Whole(g, a) && forall k: int {:trigger g[k]} | 0 <= k < |g| :: Known(f, g[k].ino, MetaOf(a[k]))
    ensures L.ReaddirplusOk(f, c, dh, cookie, verf, lim, Items(g), Handles(g, a), Fattrs(g, a), eof, da)
  {
    var items, hs, fs := Items(g), Handles(g, a), Fattrs(g, a);
    if g != [] { assert g[0] in g && 0 in a; }
    forall k: int | 0 <= k < |items|
      ensures hs[k].ino == items[k].ino && N.Live(f, hs[k]) && fs[k] == N.FattrOf(hs[k].ino, f.nodes[hs[k].ino])
    { assert Known(f, g[k].ino, MetaOf(a[k])); }
  }
}
