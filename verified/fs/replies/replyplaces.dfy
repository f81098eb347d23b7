// Which place the record of a call gets: a table of chunks, and the steps that change it. Each does only what
// sharing.dfy allows.
//
// Go gives clients numbers, tells the time, and knows of which records the reply has arrived.
include "sharing.dfy"
include "../format/marshal.dfy"

module ReplyPlaces {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened Marshal
  import opened ReplySharing

  // as the numbers of a chunk lie in memory
  function Row(d: seq<byte>, i: int): Chunk requires 0 <= i && 40 * i + 40 <= |d|
  { Chunk(U64At(d, 40 * i), U64At(d, 40 * i + 8), U64At(d, 40 * i + 16), U64At(d, 40 * i + 24), U64At(d, 40 * i + 32)) }
  lemma Zero(n: nat, i: int)
    requires 0 <= i < n
    ensures Row(Zeros(40 * n), i) == Chunk(NOBODY, 0, 0, 0, 0)
  {
    var m, o := 40 * n, 40 * i;
    U64AtZeros(m, o); U64AtZeros(m, o + 8); U64AtZeros(m, o + 16); U64AtZeros(m, o + 24); U64AtZeros(m, o + 32);
  }

  class Chunks {
    const n: uint64                // chunks; as the number of one: none
    const window: uint64           // for so long a record counts
    const rows: Bytes              // of chunks
    const holders: Bytes           // how many chunks each holder has, and its last one: 16 bytes
    const taken: Bytes             // 1: a call under way is to have the place
    var gifts: uint64              // the largest `given`
    ghost var chunks: seq<Chunk>

    predicate Valid()
      reads this, rows, holders, taken
    {
      n < 0x1_0000_0000_0000 && |chunks| == n as int && |rows.data| == 40 * n as int &&
        |holders.data| == 16 * (n as int + 3) && |taken.data| == 16 * n as int &&
      rows != holders && rows != taken && holders != taken &&
      (forall i {:trigger chunks[i]} | 0 <= i < n as int ::
        chunks[i] == Row(rows.data, i) && chunks[i].holder < n + 3 && chunks[i].used <= PLACES) &&
      (forall h: uint64 {:trigger Has(chunks, h)} | h < n + 3 ::
        U64At(holders.data, 16 * h as int) as int == Has(chunks, h))
    }
    predicate Client(c: uint64) reads this { CLIENT <= c && c as int < n as int + 3 }
    function Last(h: uint64): uint64 reads this, rows, holders, taken requires Valid() && h < n + 3
    { U64At(holders.data, 16 * h as int + 8) }
    // the chunk that a client uses (n: none)
    function Current(c: uint64): uint64 reads this, rows, holders, taken requires Valid() && Client(c)
    { var i := Last(c); if i < n && chunks[i].holder == c then i else n }
    // all places of chunk i, from place k of it on, are calls'
    predicate AllBusy(i: uint64, k: uint64) reads this, rows, holders, taken requires Valid() && i < n
    { forall p {:trigger taken.data[p]} | 16 * i as int + k as int <= p < 16 * i as int + 16 :: taken.data[p] != 0 }

    // n chunks that are nobody's
    constructor (n: uint64, window: uint64)
      requires n < 0x1_0000_0000_0000
      ensures Valid() && this.n == n && this.window == window && fresh(rows) && fresh(holders) && fresh(taken)
      ensures chunks == Empty(n as int) && taken.data == Zeros(16 * n as int)
    {
      var r := NewBytes(40 * n);
      var h := NewBytes(16 * (n + 3));
      var b := NewBytes(16 * n);
      ghost var s := Empty(n as int);
      forall i | 0 <= i < n as int ensures s[i] == Row(r.data, i)
      { Zero(n as int, i); }
      forall c: uint64 | c < n + 3
        ensures U64At(h.data, 16 * c as int) == 0 { U64AtZeros(16 * (n as int + 3), 16 * c as int); }
      forall c: uint64 ensures Has(s, c) == if c == NOBODY then n as int else 0 { NobodyHasAll(s, c); }
      Put64(h, 0, n);
      this.n, this.window, rows, holders, taken, gifts, chunks := n, window, r, h, b, 0, s;
    }

    function method Holder(i: uint64): (x: uint64) reads this, rows, holders, taken requires Valid() && i < n
      ensures x == chunks[i].holder { rows.U64(40 * i) }
    function method Used(i: uint64): (x: uint64) reads this, rows, holders, taken requires Valid() && i < n
      ensures x == chunks[i].used { rows.U64(40 * i + 8) }
    function method Force(i: uint64): (x: uint64) reads this, rows, holders, taken requires Valid() && i < n
      ensures x == chunks[i].force { rows.U64(40 * i + 16) }
    function method Newest(i: uint64): (x: uint64) reads this, rows, holders, taken requires Valid() && i < n
      ensures x == chunks[i].newest { rows.U64(40 * i + 24) }
    function method Given(i: uint64): (x: uint64) reads this, rows, holders, taken requires Valid() && i < n
      ensures x == chunks[i].given { rows.U64(40 * i + 32) }
    // how many chunks a holder has
    function method Count(h: uint64): (x: uint64) reads this, rows, holders, taken requires Valid() && h < n + 3
      ensures x as int == Has(chunks, h)
    { assert Has(chunks, h) == Has(chunks, h); holders.U64(16 * h) }
    function method Busy(place: uint64): bool reads this, rows, holders, taken
      requires Valid() && place as int < 16 * n as int { taken.Get(place) != 0 }

    // the numbers of chunk i
    method Put(i: uint64, holder: uint64, used: uint64, force: uint64, newest: uint64, given: uint64)
      requires Valid() && i < n && holder < n + 3 && used <= PLACES
      modifies this`chunks, rows, holders
      ensures Valid() && chunks == old(chunks)[i as int := Chunk(holder, used, force, newest, given)]
      ensures forall h: uint64 {:trigger Last(h)} | h < n + 3 :: Last(h) == old(Last(h))
    {
      ghost var x := Chunk(holder, used, force, newest, given);
      var from := Holder(i);
      if from != holder {
        HasNow(chunks, i as int, x, from);
        HasAtMost(chunks, holder);
        var a, b := Count(from), Count(holder);
        Put64(holders, 16 * from, a - 1);
        Put64(holders, 16 * holder, b + 1);
      }
      Put64(rows, 40 * i, holder);
      Put64(rows, 40 * i + 8, used);
      Put64(rows, 40 * i + 16, force);
      Put64(rows, 40 * i + 24, newest);
      Put64(rows, 40 * i + 32, given);
      chunks := chunks[i as int := x];
      forall h: uint64 | h < n + 3 ensures U64At(holders.data, 16 * h as int) as int == Has(chunks, h)
      { HasNow(old(chunks), i as int, x, h); assert U64At(old(holders.data), 16 * h as int) as int ==
        Has(old(chunks), h); }
      forall j | 0 <= j < n as int && j != i as int
        ensures Row(rows.data, j) == chunks[j] { assert chunks[j] == old(chunks)[j]; }
    }
    // the chunk that a client uses (n: none), and from which of its places on it is to be told one that nobody waits
    // for (16: needs none)
    method InUse(client: uint64) returns (i: uint64, from: uint64)
      requires Valid() && Client(client)
      ensures i == Current(client) && i <= n && (i < n ==> chunks[i].holder == client) && from <= PLACES
      ensures i < n ==> from == if chunks[i].force == 0 then chunks[i].used else PLACES
    {
      i, from := holders.U64(16 * client + 8), PLACES;
      if i >= n { i := n; return; }
      var h, f := Holder(i), Force(i);
      if h != client { i := n; return; }
      if f == 0 { from := Used(i); }
    }
    // The next place of the chunk in use, which from now on is a call's: if it is not busy; and in a round without
    // force if it is place `spare` of the chunk, for whose record nobody waits.
    method Next(client: uint64, spare: uint64) returns (ok: bool, place: uint64)
      requires Valid() && Client(client)
      modifies this`chunks, rows, holders, taken
      ensures Valid() && SameButUsed(old(chunks), chunks)
      ensures !ok ==> taken.data == old(taken.data)
      ensures ok ==> place as int < 16 * n as int && old(taken.data)[place] == 0 &&
        taken.data == old(taken.data)[place as int := 1] &&
        chunks[place / 16].holder == client && (chunks[place / 16].force == 0 ==> place % 16 == spare)
      ensures Current(client) == old(Current(client)) && (ok ==> place / 16 == Current(client))
      // and whenever there is one
      ensures var i := Current(client); !ok && i < n && old(chunks)[i].force != 0 ==> AllBusy(i, old(chunks)[i].used)
      ensures var i := Current(client);
        !ok && i < n && old(chunks)[i].force == 0 && old(chunks)[i].used <= spare < PLACES ==>
        taken.data[16 * i + spare] != 0
    {
      ok, place := false, 0;
      var i, _ := InUse(client);
      if i == n { return; }
      var k, f := Used(i), Force(i);
      while k < PLACES && !ok
        invariant k <= PLACES && (ok ==> k < PLACES && taken.data[16 * i + k] == 0 && (f == 0 ==> k == spare))
        invariant forall p {:trigger taken.data[p]} |
          16 * i as int + chunks[i].used as int <= p < 16 * i as int + k as int ::
          taken.data[p] != 0 || (f == 0 && p != 16 * i as int + spare as int)
        decreases PLACES - k, !ok
      {
        var b := taken.Get(16 * i + k);
        if b == 0 && (f != 0 || k == spare) { ok := true; } else { k := k + 1; }
      }
      var newest, given := Newest(i), Given(i);
      if ok {
        place := 16 * i + k;
        taken.Set(place, 1);
        k := k + 1;
      }
      Put(i, client, k, f, newest, given);
    }
    // nothing was recorded in chunk i for as long as records count
    predicate Stale(i: uint64, now: uint64) reads this, rows, holders, taken requires Valid() && i < n
    { chunks[i].newest as int + window as int < now as int }
    // A chunk that a client is to get from others: nobody's; else the one that they have not used for longest, if that
    // is old; else, if it has none, the oldest one of who has most. Not (n), if it has many, or its own oldest one is
    // old: it goes on with its own.
    method More(client: uint64, now: uint64) returns (i: uint64, own: uint64)
      requires Valid() && Client(client)
      ensures i <= n && (i < n ==> chunks[i].holder != client && MayTake(chunks, client, now, i as int))
      ensures own <= n && (own < n ==> chunks[own].holder == client)
      ensures own == n ==> forall k {:trigger chunks[k]} | 0 <= k < n as int :: chunks[k].holder != client
      // and whenever there is one that it may take, if it has few and its own are new
      ensures i == n ==> Has(chunks, client) >= MOST as int || (own < n && Stale(own, now)) ||
        forall k {:trigger chunks[k]} | 0 <= k < n as int ::
          chunks[k].holder == client || !MayTake(chunks, client, now, k)
    {
      var none, oldest, most, j := n, n, n, 0;
      i, own := n, n;
      while j < n
        invariant j <= n && own <= n && none <= n && oldest <= n && most <= n
        invariant own < n ==> chunks[own].holder == client
        invariant own == n ==> forall k {:trigger chunks[k]} | 0 <= k < j as int :: chunks[k].holder != client
        invariant none < n ==> chunks[none].holder == NOBODY
        invariant none == n ==> forall k {:trigger chunks[k]} | 0 <= k < j as int :: chunks[k].holder != NOBODY
        invariant oldest < n ==> Others(chunks, client, oldest as int)
        invariant forall k {:trigger chunks[k]} | 0 <= k < j as int && Others(chunks, client, k) ::
          oldest < n && chunks[oldest].newest <= chunks[k].newest
        invariant most < n ==> Others(chunks, client, most as int)
        invariant forall k {:trigger chunks[k]} | 0 <= k < j as int && Others(chunks, client, k) ::
          most < n && Has(chunks, chunks[k].holder) <= Has(chunks, chunks[most].holder)
      {
        var h := Holder(j);
        if h == client {
          if own == n || Given(j) < Given(own) { own := j; }
        } else if h == NOBODY {
          if none == n { none := j; }
        } else if h != BROKEN {
          if oldest == n || Newest(j) < Newest(oldest) { oldest := j; }
          if most == n || Count(h) > Count(Holder(most)) ||
            (Count(h) == Count(Holder(most)) && Given(j) < Given(most)) { most := j; }
        }
        j := j + 1;
      }
      var has := Count(client);
      if has >= MOST || (own < n && Newest(own) < now && now - Newest(own) > window) { return; }
      if none < n { i := none; }
      else if oldest < n && Newest(oldest) < now && now - Newest(oldest) > KEEP { i := oldest; }
      else if own == n { i := most; }
    }
    // Chunk i, which it may take, becomes the one that a client uses: with force if it was not its own, or has no place
    // `spare` (16: none) for whose record nobody waits.
    method Take(client: uint64, ghost now: uint64, i: uint64, spare: uint64)
      requires Valid() && Client(client) && i < n && MayTake(chunks, client, now, i as int)
      modifies this, rows, holders
      ensures Valid() && taken.data == old(taken.data) && SameBut(old(chunks), chunks, i as int)
      ensures Current(client) == i && chunks[i].holder == client && chunks[i].newest == old(chunks)[i].newest &&
        chunks[i].used == 0
      ensures chunks[i].force == 0 <==> old(chunks)[i].holder == client && spare < PLACES &&
        taken.data[16 * i + spare] == 0
      ensures Has(chunks, client) <= MOST as int || Has(chunks, client) <= Has(old(chunks), client)
    {
      var h := Holder(i);
      var force := 1;
      if h == client && spare < PLACES {
        var b := taken.Get(16 * i + spare);
        if b == 0 { force := 0; }
      }
      if gifts < 0xFFFF_FFFF_FFFF_FFFF { gifts := gifts + 1; }
      var newest := Newest(i);
      Put(i, client, 0, force, newest, gifts);
      Put64(holders, 16 * client + 8, i);
      assert chunks == old(chunks)[i as int := chunks[i]];
      HasNow(old(chunks), i as int, chunks[i], client);
    }

    // The number of a client that has no chunks: there is one more than chunks.
    method Fresh() returns (c: uint64)
      requires Valid()
      ensures Client(c) && Has(chunks, c) == 0
    {
      c := CLIENT;
      while Count(c) > 0
        invariant Client(c) && Together(chunks, c) >= c as int - CLIENT as int
        decreases n + 3 - c
      {
        TogetherAtMost(chunks, c + 1);
        c := c + 1;
      }
    }

    // A place is a call's from now on, if it is no other's.
    method Hold(place: uint64) returns (ok: bool)
      requires Valid() && place as int < 16 * n as int
      modifies taken
      ensures Valid() && ok == (old(taken.data)[place] == 0)
      ensures taken.data == if ok then old(taken.data)[place as int := 1] else old(taken.data)
    {
      var b := taken.Get(place);
      ok := b == 0;
      if ok { taken.Set(place, 1); }
    }
    // It is no call's any more.
    method Release(place: uint64)
      requires Valid() && place as int < 16 * n as int
      modifies taken
      ensures Valid() && taken.data == old(taken.data)[place as int := 0]
    { taken.Set(place, 0); }
    // There is a record in it now, of this time.
    method Kept(place: uint64, time: uint64)
      requires Valid() && place as int < 16 * n as int
      modifies this`chunks, rows, holders
      ensures Valid() && SameBut(old(chunks), chunks, place as int / 16)
      ensures var x, y := old(chunks)[place / 16], chunks[place / 16];
        y == Chunk(x.holder, x.used, x.force, if x.newest < time then time else x.newest, x.given)
    {
      var i := place / 16;
      var h, used, force, given := Holder(i), Used(i), Force(i), Given(i);
      if Newest(i) < time { Put(i, h, used, force, time, given); }
    }
    // When the volume is opened, there is one. A chunk is the client's whose record is found first; the one with the
    // newest is in use.
    method Found(place: uint64, client: uint64, time: uint64)
      requires Valid() && Client(client) && place as int < 16 * n as int
      modifies this, rows, holders
      ensures Valid() && taken.data == old(taken.data) && SameBut(old(chunks), chunks, place as int / 16)
      ensures var x, y := old(chunks)[place / 16], chunks[place / 16];
        y.holder == (if x.holder == NOBODY then client else x.holder) && y.force == 0 &&
          y.newest == (if x.newest < time then time else x.newest)
    {
      var i := place / 16;
      var h, used, newest, given := Holder(i), Used(i), Newest(i), Given(i);
      if h == NOBODY { h := client; }
      if newest <= time { used, newest, given := place % 16 + 1, time, time; }
      Put(i, h, used, 0, newest, given);
      if gifts < time { gifts := time; }
      var last := holders.U64(16 * h + 8);
      if last >= n || Holder(last) != h || Newest(last) <= time { Put64(holders, 16 * h + 8, i); }
    }
    // The block of chunk i cannot be used.
    method Broke(i: uint64)
      requires Valid() && i < n
      modifies this`chunks, rows, holders
      ensures Valid() && SameBut(old(chunks), chunks, i as int) && chunks[i].holder == BROKEN
    { Put(i, BROKEN, 0, 0, 0, 0); }
  }
}
