// A page of a listing as READDIR gives it ("." and "..", and what dirlist.dfy
// walked through) is a page in the sense of nfs3.s.dfy.
include "dirlist.dfy"
include "abs.dfy"
module PagesM {
  import opened Machine
  import opened DirListSpec
  import D = DirPageM
  import A = AbsM
  import N = NfsState
  import L = NfsList

  type Names = map<seq<byte>, uint64>
  type Places = map<seq<byte>, int>

  function Items(g: seq<Ent>): (r: seq<L.Item>)
    ensures |r| == |g| && forall k: int {:trigger r[k]} | 0 <= k < |g| :: r[k] == L.Item(g[k].ino, g[k].name, g[k].cookie as int)
  { if g == [] then [] else Items(g[..|g| - 1]) + [L.Item(g[|g| - 1].ino, g[|g| - 1].name, g[|g| - 1].cookie as int)] }

  // "." and ".." that come first
  function Head(i: uint64, up: uint64, cookie: int): seq<Ent>
  { if cookie == 0 then [Ent(i, [46], 1), Ent(up, [46, 46], 2)] else if cookie == 1 then [Ent(up, [46, 46], 2)] else [] }
  function After(cookie: int): int { if cookie < 2 then 2 else cookie }

  lemma PageIs(i: uint64, b: N.Body, at: Places, cookie: int, eof: bool, page: seq<Ent>, got: seq<Ent>)
    requires b.Dir? && b.cookies == A.Cookies(at) && 0 <= cookie && (forall n: seq<byte> {:trigger n in at} | n in b.names && n in at :: 0 <= at[n])
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
    forall e: L.Item | L.Listed(i, b, e) && cookie < e.cookie && (eof || (items != [] && e.cookie <= items[|items| - 1].cookie)) ensures e in items
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
  // only "." fitted
  lemma DotOnly(i: uint64, b: N.Body, at: Places)
    requires b.Dir? && b.cookies == A.Cookies(at) && (forall n: seq<byte> {:trigger n in at} | n in b.names && n in at :: 0 <= at[n])
    ensures L.Page(i, b, 0, Items([Ent(i, [46], 1)]), false)
  {
    var items := Items([Ent(i, [46], 1)]);
    assert items[0] == L.Item(i, [46], 1);
    forall e: L.Item | L.Listed(i, b, e) && 0 < e.cookie && e.cookie <= 1 ensures e in items { assert e == items[0]; }
  }
}
