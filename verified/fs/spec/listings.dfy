// What pages of READDIR (nfs3.s.dfy) are together: a scan, from cookie 0 to eof,
// has every name that is there throughout exactly once, whatever else happens to
// the volume between the pages, and however large they are.
include "nfs3.s.dfy"
module Listings {
  import opened Machine
  import opened NfsState
  import opened NfsPerm
  import opened NfsCommon
  import opened NfsAttrs
  import opened NfsData
  import opened NfsList
  import opened NfsMake
  import opened NfsUnlink
  import opened NfsRename

  // where page j of a scan starts
  function From(pages: seq<seq<Item>>, j: int): int
    requires 0 <= j <= |pages| && forall k: int {:trigger pages[k]} | 0 <= k < j :: pages[k] != []
  { if j == 0 then 0 else var p := pages[j - 1]; p[|p| - 1].cookie }

  // Page j is of the directory as it was then, bs[j]. The client goes on while there is no eof.
  predicate Scan(i: uint64, bs: seq<Body>, pages: seq<seq<Item>>)
  {
    |bs| == |pages| > 0 && (forall j: int {:trigger pages[j]} | 0 <= j < |pages| - 1 :: pages[j] != []) &&
    forall j: int {:trigger bs[j]} | 0 <= j < |bs| ::
      bs[j].Dir? && Page(i, bs[j], From(pages, j), pages[j], j == |bs| - 1)
  }
  // name n is there all the time, and its cookie is the same (see below)
  predicate Stays(bs: seq<Body>, n: Name, c: int)
  { 3 <= c && !Dots(n) && forall j: int {:trigger bs[j]} | 0 <= j < |bs| ::
    bs[j].Dir? && n in bs[j].names && n in bs[j].cookies && bs[j].cookies[n] == c }

  predicate At(pages: seq<seq<Item>>, j: int, k: int, n: Name)
  { 0 <= j < |pages| && 0 <= k < |pages[j]| && pages[j][k].name == n }

  lemma Once(i: uint64, bs: seq<Body>, pages: seq<seq<Item>>, n: Name, c: int) returns (j: int, k: int)
    requires Scan(i, bs, pages) && Stays(bs, n, c)
    ensures At(pages, j, k, n)
    ensures forall j': int, k': int {:trigger At(pages, j', k', n)} | At(pages, j', k', n) :: j' == j && k' == k
  {
    j := 0;
    while j < |bs| - 1 && From(pages, j + 1) < c
      invariant 0 <= j < |bs| && From(pages, j) < c
    { j := j + 1; }
    assert bs[j].Dir?;
    var e := Item(bs[j].names[n], n, c);
    assert Listed(i, bs[j], e);
    assert e in pages[j];
    k :| 0 <= k < |pages[j]| && pages[j][k] == e;
    forall j': int, k': int | At(pages, j', k', n)
      ensures j' == j && k' == k
    {
      assert bs[j'].Dir? && Listed(i, bs[j'], pages[j'][k']);
      assert pages[j'][k'].cookie == c;
      if j' < j { Apart(i, bs, pages, j', k', j, k); }
      if j < j' { Apart(i, bs, pages, j, k, j', k'); }
    }
  }

  // cookies ascend from page to page
  lemma Apart(i: uint64, bs: seq<Body>, pages: seq<seq<Item>>, a: int, k: int, b: int, l: int)
    requires Scan(i, bs, pages) && 0 <= a < b < |pages| && 0 <= k < |pages[a]| && 0 <= l < |pages[b]|
    ensures pages[a][k].cookie < pages[b][l].cookie
  {
    assert bs[a].Dir? && bs[b].Dir?;
    var p := pages[b - 1];
    assert p[|p| - 1].cookie == From(pages, b) < pages[b][l].cookie;
    if a < b - 1 { Apart(i, bs, pages, a, k, b - 1, |p| - 1); }
  }

  // ---- why the cookie is the same ----

  // every directory that stays keeps the places of the names that stay
  predicate Kept(pre: FS, post: FS)
  { forall i: uint64 {:trigger IsDir(post, i)} | IsDir(pre, i) && IsDir(post, i) ::
    Stay(pre.nodes[i].body, post.nodes[i].body) }

  // so does every procedure that changes anything
  lemma Setattr(pre: FS, post: FS, c: Caller, h: Handle, s: Sattr, guard: Option<Time>, now: Time, w: Wcc)
    requires SetattrOk(pre, post, c, h, s, guard, now, w)
    ensures Kept(pre, post)
  { }
  lemma Write(pre: FS, post: FS, c: Caller, h: Handle, off: uint64, data: seq<byte>, now: Time, w: Wcc)
    requires WriteOk(pre, post, c, h, off, data, now, w)
    ensures Kept(pre, post)
  { }
  // CREATE of a file that is there
  lemma Reopen(pre: FS, post: FS, c: Caller, di: uint64, name: Name, how: uint32, s: Sattr, verf: uint64, now: Time,
    h: Handle, na: Fattr, w: Wcc)
    requires IsDir(pre, di) && name in pre.nodes[di].body.names &&
      Reopened(pre, post, c, di, name, how, s, verf, now, h, na, w)
    ensures Kept(pre, post)
  { }
  // CREATE of a new file, MKDIR, SYMLINK, MKNOD
  lemma Make(pre: FS, post: FS, di: uint64, name: Name, h: Handle, n: Node, now: Time, na: Fattr, w: Wcc)
    requires Made(pre, post, di, name, h, n, now, na, w)
    ensures Kept(pre, post)
  { }
  lemma Link(pre: FS, post: FS, c: Caller, h: Handle, dh: Handle, name: Name, now: Time, a: Fattr, w: Wcc)
    requires LinkOk(pre, post, c, h, dh, name, now, a, w)
    ensures Kept(pre, post)
  { }
  // REMOVE, RMDIR
  lemma Unlink(pre: FS, post: FS, di: uint64, name: Name, now: Time, w: Wcc)
    requires IsDir(pre, di) && name in pre.nodes[di].body.names && pre.nodes[di].body.names[name] in pre.nodes &&
      Unlinked(pre, post, di, name, now, w)
    ensures Kept(pre, post)
  { }
  lemma Rename(pre: FS, post: FS, c: Caller, fh: Handle, fname: Name, th: Handle, tname: Name, now: Time, fw: Wcc,
    tw: Wcc)
    requires RenameOk(pre, post, c, fh, fname, th, tname, now, fw, tw)
    ensures Kept(pre, post)
  { }

  // The volume as it was, state after state: each what a procedure made of one before. (After a crash, of one further
  // back.)
  predicate Came(fs: seq<FS>, j: int)
    requires 0 <= j < |fs|
  { j == 0 || exists p: int {:trigger fs[p]} :: 0 <= p < j && Kept(fs[p], fs[j]) }
  predicate History(fs: seq<FS>) { forall j: int {:trigger Came(fs, j)} | 0 <= j < |fs| :: Sound(fs[j]) && Came(fs, j) }
  predicate Throughout(fs: seq<FS>, i: uint64, n: Name)
  { forall j: int {:trigger Entry(fs[j], i, n)} | 0 <= j < |fs| :: Entry(fs[j], i, n) }

  lemma Proper3(f: FS, i: uint64, n: Name)
    requires Sound(f) && Entry(f, i, n)
    ensures var b := f.nodes[i].body; n in b.cookies && 3 <= b.cookies[n] && !Dots(n)
  { var depth: map<uint64, int> :| Tree(f, depth); }
  lemma Steady(fs: seq<FS>, i: uint64, n: Name, j: int)
    requires History(fs) && Throughout(fs, i, n) && 0 <= j < |fs|
    ensures Entry(fs[0], i, n) && Entry(fs[j], i, n)
    ensures var a, b := fs[0].nodes[i].body, fs[j].nodes[i].body;
      n in a.cookies && n in b.cookies && b.cookies[n] == a.cookies[n] && 3 <= b.cookies[n] && !Dots(n)
    decreases j
  {
    assert Entry(fs[0], i, n) && Entry(fs[j], i, n) && Came(fs, 0) && Came(fs, j);
    Proper3(fs[0], i, n);
    if 0 < j {
      var p: int :| 0 <= p < j && Kept(fs[p], fs[j]);
      Steady(fs, i, n, p);
    }
  }

  // A scan of directory i while the volume goes through fs, page j of it in the state at[j].
  lemma Scanned(fs: seq<FS>, at: seq<int>, i: uint64, bs: seq<Body>, pages: seq<seq<Item>>, n: Name)
    returns (j: int, k: int)
    requires History(fs) && Throughout(fs, i, n) && Scan(i, bs, pages) && |at| == |bs|
    requires forall j: int {:trigger bs[j]} | 0 <= j < |bs| ::
      0 <= at[j] < |fs| && IsDir(fs[at[j]], i) && bs[j] == fs[at[j]].nodes[i].body
    ensures At(pages, j, k, n)
    ensures forall j': int, k': int {:trigger At(pages, j', k', n)} | At(pages, j', k', n) :: j' == j && k' == k
  {
    assert bs[0].Dir?;
    Steady(fs, i, n, at[0]);
    forall j: int | 0 <= j < |bs|
      ensures bs[j].Dir? && n in bs[j].names && n in bs[j].cookies && bs[j].cookies[n] == fs[0].nodes[i].body.cookies[n]
    { assert bs[j].Dir?; Steady(fs, i, n, at[j]); }
    j, k := Once(i, bs, pages, n, fs[0].nodes[i].body.cookies[n]);
  }
}
