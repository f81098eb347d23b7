// What a page of a directory's listing holds: every entry between the cookie it
// starts after and the place it stops at, once, in the order of their places.
// Entries never move (directories.dfy), so that pages which continue each other return an
// entry that exists throughout exactly once, whatever else happens in between.
include "../../trusted/dirlist.s.dfy"
include "dirlayout.dfy"
module DirPages {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened DirListSpec
  import opened DirListS
  import opened DirLayout

  predicate Has(page: seq<DirEntry>, n: seq<byte>)
  { exists i: int {:trigger page[i]} :: 0 <= i < |page| && page[i].name == n }
  function Cookie(cell: int): int { cell + 3 }

  // what Sound says
  lemma SoundHas(m: Entries, at: Places, cookie: int, page: seq<DirEntry>)
    requires Sound(m, at, cookie, page)
    ensures forall i: int {:trigger page[i]} | 0 <= i < |page| ::
      var e := page[i]; e.name in m && m[e.name] == e.ino && e.name in at && e.cookie as int == Cookie(at[e.name]) &&
        cookie < e.cookie as int
    ensures forall i: int, j: int {:trigger page[i], page[j]} | 0 <= i < j < |page| :: page[i].cookie < page[j].cookie
  { reveal Sound(); }

  // the entries of the page are entries of the directory, after the cookie, and in order
  predicate {:opaque} Sound(m: Entries, at: Places, cookie: int, page: seq<DirEntry>) {
    && (forall i: int {:trigger page[i]} | 0 <= i < |page| ::
          var e := page[i]; e.name in m && m[e.name] == e.ino && e.name in at &&
            e.cookie as int == Cookie(at[e.name]) && cookie < e.cookie as int)
    && (forall i: int, j: int {:trigger page[i], page[j]} | 0 <= i < j < |page| :: page[i].cookie < page[j].cookie)
  }
  // no entry after the cookie and before the cell `end` is left out
  predicate {:opaque} Complete(m: Entries, at: Places, cookie: int, end: int, page: seq<DirEntry>) {
    forall n: seq<byte> {:trigger n in m} | n in m && n in at && cookie < Cookie(at[n]) && at[n] < end :: Has(page, n)
  }
  predicate PageOk(m: Entries, at: Places, cookie: int, eof: bool, page: seq<DirEntry>) {
    Sound(m, at, cookie, page) &&
    forall n: seq<byte> {:trigger n in m} | n in m && n in at && cookie < Cookie(at[n]) &&
      (eof || (page != [] && Cookie(at[n]) <= page[|page| - 1].cookie as int)) :: Has(page, n)
  }

  // entries are left after the cookie, and for the first of them there is no room any more
  predicate First(m: Entries, at: Places, cookie: int, n: seq<byte>) {
    n in m && n in at && cookie < Cookie(at[n]) && forall k: seq<byte> {:trigger k in m} | k in m && k in at &&
      cookie < Cookie(at[k]) :: at[n] <= at[k]
  }
  predicate IsFull(m: Entries, at: Places, cookie: int, room: Room, got: seq<DirEntry>)
  { exists n: seq<byte> {:trigger First(m, at, cookie, n)} ::
    First(m, at, cookie, n) && !Takes(room, got + [DirEntry(m[n], n, 0)]) }
  // where the page ends, that begins after the cookie
  function Last(cookie: int, page: seq<DirEntry>): int { if page == [] then cookie else page[|page| - 1].cookie as int }

  // what was taken is within the limit
  predicate Within(out: List)
    reads out
  { out.got == [] || Takes(out.room, out.got) }

  // all that was taken is what was taken before, and the page
  predicate {:opaque} Took(all: seq<DirEntry>, before: seq<DirEntry>, page: seq<DirEntry>) { all == before + page }
  lemma TookNone(before: seq<DirEntry>)
    ensures Took(before, before, [])
  { reveal Took(); }
  lemma TookMore(all: seq<DirEntry>, before: seq<DirEntry>, page: seq<DirEntry>, more: seq<DirEntry>)
    requires Took(all, before, page)
    ensures Took(all + more, before, page + more)
  { reveal Took(); assert before + page + more == before + (page + more); }
  lemma TookPage(all: seq<DirEntry>, before: seq<DirEntry>, page: seq<DirEntry>)
    requires Took(all, before, page)
    ensures |before| <= |all| && all[..|before|] == before && all[|before|..] == page
  { reveal Took(); }

  // the page after all cells before `end` were looked at
  predicate {:opaque} Upto(m: Entries, at: Places, cookie: int, end: int, page: seq<DirEntry>) {
    Sound(m, at, cookie, page) && Complete(m, at, cookie, end, page) &&
    (page != [] ==> page[|page| - 1].cookie as int < Cookie(end))
  }

  lemma UptoStart(m: Entries, at: Places, cookie: int, end: int)
    requires Cookie(end - 1) <= cookie || end <= 0
    requires forall n: seq<byte> | n in m && n in at :: 0 <= at[n]
    ensures Upto(m, at, cookie, end, [])
  { reveal Upto(); reveal Sound(); reveal Complete(); }

  // cells without entries
  lemma UptoSkip(f: seq<byte>, m: Entries, at: Places, cookie: int, end: int, to: int, page: seq<DirEntry>)
    requires DirOk(f, m, at) && Upto(m, at, cookie, end, page) && end <= to
    requires forall c: int {:trigger OkSlot(f, c)} | OkSlot(f, c) && end <= c < to :: Word(f, c) == 0
    ensures Upto(m, at, cookie, to, page)
  {
    reveal Upto(); reveal Complete(); reveal DirOk();
    forall n: seq<byte> | n in m && n in at && cookie < Cookie(at[n]) && at[n] < to
      ensures Has(page, n)
    { assert OkSlot(f, at[n]); }
  }

  // the entry at cell `end`
  lemma UptoAdd(f: seq<byte>, m: Entries, at: Places, cookie: int, end: int, to: int, page: seq<DirEntry>, e: DirEntry)
    requires DirOk(f, m, at) && Upto(m, at, cookie, end, page) && end < to && cookie < Cookie(end)
    requires OkSlot(f, end) && Word(f, end) != 0 && Name(f, end) == e.name && e.name in m && m[e.name] == e.ino &&
      e.cookie as int == Cookie(end)
    requires forall c: int {:trigger OkSlot(f, c)} | OkSlot(f, c) && end < c < to :: false
    ensures Upto(m, at, cookie, to, page + [e])
  {
    reveal Upto(); reveal Sound(); reveal Complete(); reveal DirOk();
    var q := page + [e];
    assert Good(f, end, m, at);
    assert q[|page|] == e;
    assert Has(q, e.name);
    forall n: seq<byte> | n in m && n in at && cookie < Cookie(at[n]) && at[n] < to
      ensures Has(q, n)
    {
      assert OkSlot(f, at[n]);
      if at[n] < end {
        var i :| 0 <= i < |page| && page[i].name == n;
        assert q[i].name == n;
      }
    }
    forall i: int, j: int | 0 <= i < j < |q|
      ensures q[i].cookie < q[j].cookie
    {
      if j == |page| {
        assert q[i] == page[i];
        if i < |page| - 1 { assert page[i].cookie < page[|page| - 1].cookie; }
      } else { assert q[i] == page[i] && q[j] == page[j]; }
    }
  }

  lemma UptoPage(f: seq<byte>, m: Entries, at: Places, cookie: int, end: int, eof: bool, page: seq<DirEntry>)
    requires DirOk(f, m, at) && Upto(m, at, cookie, end, page) && (eof ==> |f| <= 64 * end)
    ensures PageOk(m, at, cookie, eof, page)
  {
    reveal Upto();
    forall n: seq<byte> | n in m && n in at && cookie < Cookie(at[n]) &&
      (eof || (page != [] && Cookie(at[n]) <= page[|page| - 1].cookie as int))
      ensures Has(page, n)
    {
      reveal Complete(); reveal DirOk();
      assert OkSlot(f, at[n]);
    }
  }

  // The next entry, at cell `end`, does not fit.
  lemma UptoFull(f: seq<byte>, m: Entries, at: Places, cookie: int, end: int, page: seq<DirEntry>, room: Room,
    got: seq<DirEntry>, e: DirEntry)
    requires DirOk(f, m, at) && Upto(m, at, cookie, end, page) && cookie < Cookie(end)
    requires OkSlot(f, end) && Word(f, end) != 0 && Name(f, end) == e.name && !Takes(room, got + [e])
    ensures IsFull(m, at, Last(cookie, page), room, got)
  {
    reveal Upto(); reveal Sound(); reveal Complete(); reveal DirOk();
    assert Good(f, end, m, at);
    forall k: seq<byte> | k in m && k in at && Last(cookie, page) < Cookie(at[k]) ensures end <= at[k]
    {
      if at[k] < end {
        if page != [] { assert cookie < page[|page| - 1].cookie as int; }
        assert Has(page, k);
        var i :| 0 <= i < |page| && page[i].name == k;
        if i < |page| - 1 { assert page[i].cookie < page[|page| - 1].cookie; }
      }
    }
    assert First(m, at, Last(cookie, page), e.name);
    SameRoom(room, got, e, DirEntry(m[e.name], e.name, 0));
  }
  // room depends on the names alone
  lemma SameRoom(room: Room, got: seq<DirEntry>, a: DirEntry, b: DirEntry)
    requires a.name == b.name
    ensures Takes(room, got + [a]) <==> Takes(room, got + [b])
  { UsedMore(room.cost, got, a); UsedMore(room.cost, got, b);
    UsedMore(room.nameCost, got, a); UsedMore(room.nameCost, got, b); }
  lemma UsedMore(cost: int -> int, got: seq<DirEntry>, e: DirEntry)
    ensures Used(cost, got + [e]) == Used(cost, got) + cost(|e.name|)
  { assert (got + [e])[..|got|] == got; }

  // Offer the entries of block blk, from cell i on. fits = false: one did not fit, and the page ends at cell `end`.
  method ListBlock(b: Blk, blk: uint64, from: uint64, out: List, ghost f: seq<byte>, ghost m: Entries, ghost at: Places,
    ghost cookie: int, ghost page: seq<DirEntry>)
    returns (fits: bool, ghost end: int, ghost more: seq<DirEntry>)
    modifies out
    requires DirOk(f, m, at) && IsBlock(f, blk as int, b.v) && blk < 0x1000_0000 && from < 64
    requires Upto(m, at, cookie, 64 * blk as int + from as int, page) && cookie < Cookie(64 * blk as int + from as int)
    requires Within(out)
    ensures Within(out)
    ensures !fits ==> IsFull(m, at, Last(cookie, page + more), out.room, out.got)
    ensures out.attrs == old(out.attrs) && out.got == old(out.got) + more && Upto(m, at, cookie, end, page + more)
    ensures fits ==> end == 64 * blk as int + 64
  {
    var step: uint64, cap: uint64 := 1, 56;
    var i := from;
    more := [];
    assert page + more == page;
    if blk % 2 == 1 {
      step, cap := 8, 255;
      i := (i + 7) / 8 * 8;
      UptoSkip(f, m, at, cookie, 64 * blk as int + from as int, 64 * blk as int + i as int, page);
    }
    ghost var start := i;
    while i < 64
      invariant start <= i <= 64 && (step == 8 ==> i % 8 == 0)
      invariant out.attrs == old(out.attrs) && out.got == old(out.got) + more && Within(out)
      invariant Upto(m, at, cookie, 64 * blk as int + i as int, page + more)
      decreases 64 - i
    {
      ghost var c := 64 * blk as int + i as int;
      BlockSlot(f, blk as int, b.v, i as int);
      var w := b.U64(64 * i);
      if w != 0 {
        SlotWord(f, m, at, c);
        var l := w / 0x1_0000_0000_0000 % 256;
        if l > cap { l := cap; }
        fits := out.Offer(w % 0x1_0000_0000_0000, b, 64 * i + 8, l, 64 * blk + i + 3);
        ghost var e := DirEntry(w % 0x1_0000_0000_0000, Name(f, c), 64 * blk + i + 3);
        if !fits {
          UptoFull(f, m, at, cookie, c, page + more, out.room, out.got, e);
          end := c;
          return;
        }
        UptoAdd(f, m, at, cookie, c, c + step as int, page + more, e);
        assert page + more + [e] == page + (more + [e]);
        more := more + [e];
      } else {
        UptoSkip(f, m, at, cookie, c, c + step as int, page + more);
      }
      i := i + step;
    }
    fits, end := true, 64 * blk as int + 64;
  }

  lemma SlotWord(f: seq<byte>, m: Entries, at: Places, c: int)
    requires DirOk(f, m, at) && OkSlot(f, c) && Word(f, c) != 0
    ensures Name(f, c) in m && m[Name(f, c)] as int == Word(f, c) as int % 0x1_0000_0000_0000
  {
    reveal DirOk();
    assert Good(f, c, m, at);
  }
}
