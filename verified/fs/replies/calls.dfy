// Where the record of a call is, and which place the record of a call gets: what decides whether a call that comes
// again is answered from its record. procedures/records.dfy has what is on the volume; here is what is known of it.
//
//   Found     a record is on the volume when it is opened
//   Begin     a call is told a place, and whether it may find its record there
//   End       its record is in its place, or is not
//   Broke     the records of a chunk cannot be read
//
// A record that is known and counts is found (Begin), and is known until one of these says otherwise, each for one
// reason. A call gets a place whenever there is one for it (Nothing). The record of a client that may yet ask again is
// replaced only if the client has no other place, or if the chunk was another's, which that one may lose (sharing.dfy).
//
// All calls hold one mutex of Go, which has a call wait as long as the same one is under way.
include "replyplaces.dfy"
include "known.dfy"
include "../../trusted/peers.s.dfy"

module ReplyCalls {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened Marshal
  import opened ReplySharing
  import opened ReplyPlaces
  import opened ReplyIndex
  import opened KnownRecords
  import opened PeersS

  class Calls {
    const n: uint64                // chunks; 16 times that are places, and as a place: none
    const table: Chunks            // whose they are
    const index: Index             // the key of the record in each place
    const clients: Index           // which client has which number in table
    const times: Words             // when the record in each place was made, in seconds
    const olds: Bytes              // 1: before the volume was opened
    const peers: Peers
    var last: uint64               // what was done last before the volume was opened, in seconds
    ghost var known: Known

    // all that it is made of
    function Repr(): set<object>
    { {table, table.rows, table.holders, table.taken, times, times.memory, olds, peers} + index.Repr + clients.Repr }

    predicate Valid()
      reads this, table, table.rows, table.holders, table.taken, times, times.memory, olds
      reads index, index.keys, index.heads, index.next, index.keys.memory, index.heads.memory, index.next.memory
      reads clients, clients.keys, clients.heads, clients.next
      reads clients.keys.memory, clients.heads.memory, clients.next.memory
    {
      0 < n < 0x1000_0000_0000 && table.n == n && table.Valid() && index.n == 16 * n && index.Valid() &&
      clients.n == n + 3 && clients.Valid() && times.n == 16 * n && times.Valid() && |olds.data| == 16 * n as int &&
      table.window as int == WINDOW as int * SECOND as int &&
      index != clients && index.Repr !! clients.Repr && index !in clients.Repr && clients !in index.Repr &&
      times !in index.Repr + clients.Repr && times.memory !in index.Repr + clients.Repr &&
      olds !in index.Repr + clients.Repr && olds != times.memory &&
      table.rows !in index.Repr + clients.Repr + {times.memory, olds} &&
      table.holders !in index.Repr + clients.Repr + {times.memory, olds} &&
      table.taken !in index.Repr + clients.Repr + {times.memory, olds} &&
      (forall p: uint64 {:trigger p in known} {:trigger p in index.at} | p < 16 * n :: p in known <==> p in index.at) &&
      (forall p: uint64 {:trigger known[p]} | p in known :: p < 16 * n &&
        known[p] == Record(index.at[p], times.v[p], olds.data[p] == 1)) &&
      (forall c: uint64 {:trigger c in clients.at} | c in clients.at :: table.Client(c))
    }
    // n chunks, of whose records nothing is known
    constructor (n: uint64, peers: Peers)
      requires 0 < n < 0x1000_0000_0000
      ensures Valid() && this.n == n && this.peers == peers && known == map[] && last == 0
      ensures fresh(Repr() - {peers}) && table.taken.data == Zeros(16 * n as int) && table.chunks == Empty(n as int)
    {
      var t := new Chunks(n, WINDOW * SECOND);
      var i := new Index(16 * n);
      var c := new Index(n + 3);
      var w := new Words(16 * n);
      var o := NewBytes(16 * n);
      this.n, this.peers, table, index, clients, times, olds, last, known := n, peers, t, i, c, w, o, 0, map[];
    }
    predicate Client(c: uint64, id0: uint64, id1: uint64)
      reads this, table, clients
    { table.Client(c) && c in clients.at && clients.at[c] == Key(id0, id1, 0, 0) }
    function At(now: uint64, up: uint64): Time reads this { Time(now, up, last) }
    predicate Fits(p: uint64, t: Time) reads this, table, table.taken, peers
    { p as int < |table.taken.data| && Fit(table.taken.data, known, peers.arrived, t, p) }
    // no place of chunk i can be given, before place `end` and from place k of it on
    predicate Unfits(i: uint64, k: uint64, end: uint64, t: Time) reads this, table, table.taken, peers
    { 16 * i as int + end as int <= |table.taken.data| &&
      NoneFit(table.taken.data, known, peers.arrived, t, i, k, end) }

    // whether the record in a place counts, and since when those count that are like it
    method Look(p: uint64, now: uint64, up: uint64) returns (counts: bool, since: uint64)
      requires Valid() && p in known
      ensures since == Since(known[p], At(now, up)) && counts == Counts(known[p], At(now, up))
    {
      var before, at := olds.Get(p), times.Get(p);
      since := now;
      if before == 1 { since := last; }
      if since < WINDOW { since := 0; } else { since := since - WINDOW; }
      counts := since <= at && (before != 1 || up < WINDOW * SECOND);
    }
    // The first place of chunk i, from one on, that can be given; or none.
    method Spare(i: uint64, from: uint64, now: uint64, up: uint64) returns (k: uint64)
      requires Valid() && i < n && from <= PLACES
      modifies peers
      ensures peers.elsewhere == old(peers.elsewhere) && peers.full == old(peers.full)
      ensures SaidIn(i, old(peers.arrived), peers.arrived)
      ensures from <= k <= PLACES && (k < PLACES ==> Fits(16 * i + k, At(now, up))) && Unfits(i, from, k, At(now, up))
    {
      k := from;
      while k < PLACES
        invariant from <= k <= PLACES
        invariant peers.elsewhere == old(peers.elsewhere) && peers.full == old(peers.full)
        invariant SaidIn(i, old(peers.arrived), peers.arrived) && Unfits(i, from, k, At(now, up))
      {
        var p := 16 * i + k;
        ghost var arrived := peers.arrived;
        var fit := true;
        if table.Busy(p) {
          fit := false;
        } else if index.Full(p) {
          var counts, _ := Look(p, now, up);
          if counts { fit := peers.Arrived(p); }
        }
        forall q: uint64 | 16 * i as int + from as int <= q as int < p as int
          ensures Unfit(table.taken.data, known, peers.arrived, At(now, up), q)
        { assert q in arrived <==> q in peers.arrived;
          assert Unfit(table.taken.data, known, arrived, At(now, up), q); }
        if fit { return; }
        k := k + 1;
      }
    }
    // The oldest chunk of a client with a place that can be given, and that place of it; or none.
    method Oldest(c: uint64, now: uint64, up: uint64) returns (i: uint64, k: uint64)
      requires Valid() && table.Client(c)
      modifies peers
      ensures peers.elsewhere == old(peers.elsewhere) && peers.full == old(peers.full)
      ensures i <= n && (i < n ==> table.chunks[i].holder == c && k < PLACES && Fits(16 * i + k, At(now, up)))
      ensures forall j: uint64 {:trigger table.chunks[j]} | j < n && table.chunks[j].holder == c &&
        (i == n || table.chunks[j].given < table.chunks[i].given) :: Unfits(j, 0, PLACES, At(now, up))
    {
      i, k := n, PLACES;
      var j := 0;
      while j < n
        invariant j <= n && i <= n && (i < n ==> i < j)
        invariant peers.elsewhere == old(peers.elsewhere) && peers.full == old(peers.full)
        invariant i < n ==> table.chunks[i].holder == c && k < PLACES && Fits(16 * i + k, At(now, up))
        invariant forall x: uint64 {:trigger table.chunks[x]} | x < j && table.chunks[x].holder == c &&
          (i == n || table.chunks[x].given < table.chunks[i].given) :: Unfits(x, 0, PLACES, At(now, up))
      {
        ghost var arrived := peers.arrived;
        var h := table.Holder(j);
        if h == c && (i == n || table.Given(j) < table.Given(i)) {
          var s := Spare(j, 0, now, up);
          forall x: uint64 | x < j && table.chunks[x].holder == c &&
            (i == n || table.chunks[x].given < table.chunks[i].given) ensures Unfits(x, 0, PLACES, At(now, up))
          { StillNoneFit(table.taken.data, known, arrived, peers.arrived, At(now, up), x, 0, PLACES, j); }
          if s < PLACES { i, k := j, s; }
        }
        j := j + 1;
      }
    }
    // The oldest chunk of a client with a place that is no call's; or none.
    method OldestNotBusy(c: uint64) returns (i: uint64)
      requires Valid() && table.Client(c)
      ensures i <= n && (i < n ==> table.chunks[i].holder == c && !table.AllBusy(i, 0))
      ensures forall j: uint64 {:trigger table.chunks[j]} | j < n && table.chunks[j].holder == c &&
        (i == n || table.chunks[j].given < table.chunks[i].given) :: table.AllBusy(j, 0)
    {
      i := n;
      var j := 0;
      while j < n
        invariant j <= n && i <= n && (i < n ==> i < j)
        invariant i < n ==> table.chunks[i].holder == c && !table.AllBusy(i, 0)
        invariant forall x: uint64 {:trigger table.chunks[x]} | x < j && table.chunks[x].holder == c &&
          (i == n || table.chunks[x].given < table.chunks[i].given) :: table.AllBusy(x, 0)
      {
        var h := table.Holder(j);
        if h == c && (i == n || table.Given(j) < table.Given(i)) {
          var k := 0;
          while k < PLACES && table.Busy(16 * j + k)
            invariant k <= PLACES
            invariant forall p {:trigger table.taken.data[p]} | 16 * j as int <= p < 16 * j as int + k as int ::
              table.taken.data[p] != 0
            decreases PLACES - k
          { k := k + 1; }
          if k < PLACES { i := j; assert table.taken.data[16 * j as int + k as int] == 0; }
        }
        j := j + 1;
      }
    }

    // The number of a client, its own as long as it has chunks.
    method Number(id0: uint64, id1: uint64) returns (c: uint64)
      requires Valid()
      modifies clients`at, clients`chains, clients.keys, clients.heads, clients.next
      modifies clients.keys.memory, clients.heads.memory, clients.next.memory
      ensures Valid() && Client(c, id0, id1)
      ensures forall d: uint64 {:trigger d in clients.at} | table.Client(d) && d != c &&
        (Has(table.chunks, d) > 0 || c in old(clients.at)) ::
        (d in clients.at <==> d in old(clients.at)) && (d in clients.at ==> clients.at[d] == old(clients.at)[d])
      ensures c !in old(clients.at) || old(clients.at)[c] != Key(id0, id1, 0, 0) ==> Has(table.chunks, c) == 0 &&
        forall d :: d in old(clients.at) ==> old(clients.at)[d] != Key(id0, id1, 0, 0)
    {
      c := clients.Find(id0, id1, 0, 0);
      if c < n + 3 { return; }
      c := table.Fresh();
      clients.Drop(c);
      clients.Put(c, id0, id1, 0, 0);
    }

    // There is no place for a call of client c: each of its own is a call's. And if it has none, there is nothing that
    // it may take, or what it was to get has no room on the host.
    predicate Nothing(c: uint64, ns: uint64)
      reads this, table, table.rows, table.holders, table.taken, peers
      requires table.Valid() && table.n == n
    {
      (forall j: uint64 {:trigger table.chunks[j]} | j < n && table.chunks[j].holder == c :: table.AllBusy(j, 0)) &&
      ((forall j {:trigger table.chunks[j]} | 0 <= j < n as int :: table.chunks[j].holder != c) ==>
        (forall j | 0 <= j < n as int :: !MayTake(table.chunks, c, ns, j)) ||
        (exists j: uint64 {:trigger j in peers.full} ::
          j < n && j in peers.full && MayTake(table.chunks, c, ns, j as int)))
    }
    // What client c gets for its record: a place that can be given. Else, a place for whose record a client may yet
    // wait: if the chunk was another's; or in a round that has begun with force; or if no chunk of its own had another
    // place, and it is to get none of others.
    predicate Replaces(place: uint64, c: uint64, ns: uint64, t: Time, current: uint64, taken: seq<byte>,
      chunks: seq<Chunk>)
      reads this, peers
    {
      var j := place / 16;
      |taken| == 16 * n as int && |chunks| == n as int && place as int < 16 * n as int &&
      (Fit(taken, known, peers.arrived, t, place) || chunks[j].holder != c ||
        (current == j && chunks[j].force != 0) ||
        (NoOther(c, ns, taken, chunks) && forall x: uint64 {:trigger chunks[x]} | x < n && chunks[x].holder == c ::
          NoneFit(taken, known, peers.arrived, t, x, 0, PLACES)))
    }
    // Client c is to get no chunk of others: it has many; or nothing was recorded in one of its own for as long as
    // records count; or there is none that it may take; or what it was to get has no room on the host, or is full of
    // places that are calls'.
    predicate NoOther(c: uint64, ns: uint64, taken: seq<byte>, chunks: seq<Chunk>)
      reads this, peers
      requires |taken| == 16 * n as int && |chunks| == n as int
    {
      Has(chunks, c) >= MOST as int ||
      (exists j {:trigger chunks[j]} :: 0 <= j < n as int && chunks[j].holder == c &&
        chunks[j].newest as int + WINDOW as int * SECOND as int < ns as int) ||
      (forall j {:trigger chunks[j]} | 0 <= j < n as int :: chunks[j].holder == c || !MayTake(chunks, c, ns, j)) ||
      (exists j: uint64 {:trigger chunks[j]} :: j < n && chunks[j].holder != c && MayTake(chunks, c, ns, j as int) &&
        (j in peers.full || forall p {:trigger taken[p]} | 16 * j as int <= p < 16 * j as int + 16 :: taken[p] != 0))
    }
    // A place in a chunk that is the client's: in the oldest one with a place that can be given; else in the oldest one
    // that has a place.
    method Own(c: uint64, ghost ns: uint64, now: uint64, up: uint64) returns (ok: bool, place: uint64)
      requires Valid() && table.Client(c)
      modifies table, table.rows, table.holders, table.taken, peers
      ensures Valid() && peers.elsewhere == old(peers.elsewhere)
      ensures forall x: uint64 {:trigger x in peers.full} | x < n && old(table.chunks)[x].holder != c ::
        x in peers.full <==> x in old(peers.full)
      ensures !ok ==> table.taken.data == old(table.taken.data) && table.chunks == old(table.chunks) &&
        peers.full == old(peers.full) &&
        forall j: uint64 {:trigger table.chunks[j]} | j < n && table.chunks[j].holder == c :: table.AllBusy(j, 0)
      ensures ok ==> place < 16 * n && old(table.taken.data)[place] == 0 &&
        table.taken.data == old(table.taken.data)[place as int := 1] && old(table.chunks)[place / 16].holder == c &&
        table.chunks[place / 16].holder == c
      ensures ok ==> Fit(old(table.taken.data), known, peers.arrived, At(now, up), place) ||
        forall x: uint64 {:trigger old(table.chunks)[x]} | x < n && old(table.chunks)[x].holder == c ::
          NoneFit(old(table.taken.data), known, peers.arrived, At(now, up), x, 0, PLACES)
    {
      ok, place := false, 0;
      var i, k := Oldest(c, now, up);
      if i == n {
        assert forall x: uint64 {:trigger table.chunks[x]} | x < n && table.chunks[x].holder == c ::
          NoneFit(table.taken.data, known, peers.arrived, At(now, up), x, 0, PLACES);
        i := OldestNotBusy(c);
      }
      if i == n { return; }
      var _ := peers.Room(i);      // if it can be; it is the client's all the same
      table.Take(c, ns, i, k);
      ok, place := table.Next(c, k);
    }
    // A place in a chunk that was not the client's, if it is to get one.
    method Another(c: uint64, ns: uint64) returns (ok: bool, place: uint64)
      requires Valid() && table.Client(c)
      modifies table, table.rows, table.holders, table.taken, peers
      ensures Valid() && peers.elsewhere == old(peers.elsewhere) && peers.arrived == old(peers.arrived)
      ensures forall x: uint64 {:trigger table.chunks[x]} | x < n && old(table.chunks)[x].holder == c ::
        table.chunks[x].holder == c
      ensures forall x: uint64 {:trigger x in peers.full} | x < n && x in peers.full &&
        old(table.chunks)[x].holder != c :: table.chunks[x].holder != c
      ensures !ok ==> table.taken.data == old(table.taken.data) &&
        NoOther(c, ns, old(table.taken.data), old(table.chunks))
      ensures !ok && (forall j {:trigger table.chunks[j]} | 0 <= j < n as int :: table.chunks[j].holder != c) ==>
        (forall j | 0 <= j < n as int :: !MayTake(table.chunks, c, ns, j)) ||
        (exists j: uint64 {:trigger j in peers.full} ::
          j < n && j in peers.full && MayTake(table.chunks, c, ns, j as int))
      ensures ok ==> place < 16 * n && old(table.taken.data)[place] == 0 &&
        table.taken.data == old(table.taken.data)[place as int := 1] && old(table.chunks)[place / 16].holder != c &&
        table.chunks[place / 16].holder == c
    {
      ok, place := false, 0;
      var i, own := table.More(c, ns);
      if i == n { return; }
      var room := peers.Room(i);
      if room {
        table.Take(c, ns, i, PLACES);
        ok, place := table.Next(c, PLACES);
      }
    }
    // A place for a record of a client; ns: the time in nanoseconds.
    method Pick(c: uint64, ns: uint64, now: uint64, up: uint64) returns (ok: bool, place: uint64)
      requires Valid() && table.Client(c)
      modifies table, table.rows, table.holders, table.taken, peers
      ensures Valid() && peers.elsewhere == old(peers.elsewhere)
      ensures !ok ==> table.taken.data == old(table.taken.data) && Nothing(c, ns)
      ensures ok ==> place < 16 * n && old(table.taken.data)[place] == 0 &&
        table.taken.data == old(table.taken.data)[place as int := 1] && table.chunks[place / 16].holder == c
      ensures ok ==> Replaces(place, c, ns, At(now, up), old(table.Current(c)), old(table.taken.data),
        old(table.chunks))
    {
      var i, from := table.InUse(c);
      var k := PLACES;
      if i < n { k := Spare(i, from, now, up); }
      ok, place := table.Next(c, k);
      if ok { return; }
      UsedKeepsMayTake(old(table.chunks), table.chunks, c, ns);
      ghost var before := table.chunks;
      ok, place := Another(c, ns);
      if ok { return; }
      assert NoOther(c, ns, old(table.taken.data), before);
      assert NoOther(c, ns, old(table.taken.data), old(table.chunks));
      ghost var chunks := table.chunks;
      ok, place := Own(c, ns, now, up);
      forall x: uint64 | x < n && old(table.chunks)[x].holder == c ensures chunks[x].holder == c { }
      assert NoOther(c, ns, old(table.taken.data), old(table.chunks));
    }

    // c is the client's number, and there is no place for it, or it has got one.
    predicate Placed(place: uint64, c: uint64, id0: uint64, id1: uint64, ns: uint64, t: Time,
      currents: map<uint64, uint64>, taken: seq<byte>, chunks: seq<Chunk>)
      reads this, table, table.rows, table.holders, table.taken, peers, clients
      requires table.Valid() && table.n == n
    {
      Client(c, id0, id1) && c in currents &&
      if place as int == 16 * n as int then Nothing(c, ns) else place as int < 16 * n as int &&
        table.chunks[place / 16].holder == c && Replaces(place, c, ns, t, currents[c], taken, chunks)
    }
    // the chunk that each client uses
    function Currents(): map<uint64, uint64>
      reads this, table, table.rows, table.holders, table.taken
      requires table.Valid()
    { map c: uint64 | 2 <= c && c as int < table.n as int + 3 :: table.Current(c) }
    // A call begins, by a client (two numbers), with a key (four): in which place its record is to be (16 * n: none),
    // and whether a record of this very call that is there counts, if it is not older than `since`. sec, nsec: the
    // time; up: so many nanoseconds after the volume was opened; c: the client's number, if a place was picked. The
    // same call is not under way.
    method Begin(id0: uint64, id1: uint64, k0: uint64, k1: uint64, k2: uint64, k3: uint64, sec: uint64, nsec: uint32,
      up: uint64) returns (place: uint64, look: bool, since: uint64, ghost c: uint64)
      requires Valid()
      modifies table, table.rows, table.holders, table.taken, peers
      modifies clients`at, clients`chains, clients.keys, clients.heads, clients.next
      modifies clients.keys.memory, clients.heads.memory, clients.next.memory
      ensures Valid()
      ensures place <= 16 * n
      ensures place == 16 * n ==> table.taken.data == old(table.taken.data)
      ensures place < 16 * n ==> old(table.taken.data)[place] == 0 &&
        table.taken.data == old(table.taken.data)[place as int := 1]
      // A record that is known is found, unless another's call is about to replace it; and it is looked for if it
      // counts, and its client has not got the reply over another connection.
      ensures forall p {:trigger known[p]} | p in known && known[p].key == Key(k0, k1, k2, k3) &&
        old(table.taken.data)[p] == 0 :: place == p && since == Since(known[p], At(sec, up)) &&
        (look <==> Counts(known[p], At(sec, up)) && !(p in peers.elsewhere && peers.elsewhere[p]))
      // No other record is looked for.
      ensures look ==> place in known && known[place].key == Key(k0, k1, k2, k3)
      // Without one, the call gets a place for its record, whenever there is one.
      ensures (forall p {:trigger known[p]} | p in known && old(table.taken.data)[p] == 0 ::
        known[p].key != Key(k0, k1, k2, k3)) ==> Placed(place, c, id0, id1, Nanoseconds(sec, nsec), At(sec, up),
        old(Currents()), old(table.taken.data), old(table.chunks))
    {
      look, since, c := false, 0, 0;
      place := index.Find(k0, k1, k2, k3);
      if place == 16 * n || table.Busy(place) {
        place, c := Place(id0, id1, Nanoseconds(sec, nsec), sec, up);
        return;
      }
      assert place in known && known[place].key == Key(k0, k1, k2, k3) && table.taken.data[place] == 0;
      peers.Anew();
      var _ := table.Hold(place);
      look, since := Look(place, sec, up);
      if look {
        var elsewhere := peers.Elsewhere(place);
        look := !elsewhere;
      }
      assert place in known && known[place].key == Key(k0, k1, k2, k3) && old(table.taken.data)[place] == 0;
    }
    // The same of a call without a record.
    method Place(id0: uint64, id1: uint64, ns: uint64, now: uint64, up: uint64)
      returns (place: uint64, ghost c: uint64)
      requires Valid()
      modifies table, table.rows, table.holders, table.taken, peers
      modifies clients`at, clients`chains, clients.keys, clients.heads, clients.next
      modifies clients.keys.memory, clients.heads.memory, clients.next.memory
      ensures Valid() && place <= 16 * n
      ensures place == 16 * n ==> table.taken.data == old(table.taken.data)
      ensures place < 16 * n ==> old(table.taken.data)[place] == 0 &&
        table.taken.data == old(table.taken.data)[place as int := 1]
      ensures Placed(place, c, id0, id1, ns, At(now, up), old(Currents()), old(table.taken.data), old(table.chunks))
    {
      var d := Number(id0, id1);
      c := d;
      peers.Anew();
      var ok;
      ok, place := Pick(d, ns, now, up);
      if !ok { place := 16 * n; }
    }
    // The call is over that the place was told. kept: its record is there now.
    method End(place: uint64, k0: uint64, k1: uint64, k2: uint64, k3: uint64, sec: uint64, nsec: uint32, kept: bool)
      requires Valid() && place < 16 * n
      modifies this`known, table, table.rows, table.holders, table.taken, olds, times`v, times.memory
      modifies index`at, index`chains, index.keys, index.heads, index.next
      modifies index.keys.memory, index.heads.memory, index.next.memory
      ensures Valid() && table.taken.data == old(table.taken.data)[place as int := 0]
      ensures known == if kept then Noted(old(known), place, Record(Key(k0, k1, k2, k3), sec, false)) else old(known)
      ensures if kept then SameBut(old(table.chunks), table.chunks, place as int / 16) &&
        table.chunks[place / 16].newest >= Nanoseconds(sec, nsec) else table.chunks == old(table.chunks)
    {
      table.Release(place);
      if kept {
        Note(place, k0, k1, k2, k3, sec, false);
        table.Kept(place, Nanoseconds(sec, nsec));
      }
    }
    // from now on there is this record in the place, and no other of the same call is known
    method Note(place: uint64, k0: uint64, k1: uint64, k2: uint64, k3: uint64, sec: uint64, before: bool)
      requires Valid() && place < 16 * n
      modifies this`known, olds, times`v, times.memory
      modifies index`at, index`chains, index.keys, index.heads, index.next
      modifies index.keys.memory, index.heads.memory, index.next.memory
      ensures Valid() && known == Noted(old(known), place, Record(Key(k0, k1, k2, k3), sec, before))
    {
      var other := index.Find(k0, k1, k2, k3);
      if other < 16 * n { index.Drop(other); }
      index.Drop(place);
      assert index.at == map p | p in known && p != place && known[p].key != Key(k0, k1, k2, k3) :: known[p].key;
      index.Put(place, k0, k1, k2, k3);
      assert clients.Valid() && table.Valid() && times.Valid();
      times.Put(place, sec);
      assert clients.Valid() && table.Valid() && index.Valid();
      olds.Set(place, if before then 1 else 0);
      known := Noted(known, place, Record(Key(k0, k1, k2, k3), sec, before));
    }
    // When the volume is opened, there is this record in a place. Of two of the same call the newer one is known.
    method Found(place: uint64, id0: uint64, id1: uint64, k0: uint64, k1: uint64, k2: uint64, k3: uint64, sec: uint64,
      nsec: uint32)
      requires Valid() && place < 16 * n && place !in known
      modifies this, table, table.rows, table.holders, olds, times`v, times.memory
      modifies index`at, index`chains, index.keys, index.heads, index.next
      modifies index.keys.memory, index.heads.memory, index.next.memory
      modifies clients`at, clients`chains, clients.keys, clients.heads, clients.next
      modifies clients.keys.memory, clients.heads.memory, clients.next.memory
      ensures Valid() && table.taken.data == old(table.taken.data)
      ensures known == old(known) || known == Noted(old(known), place, Record(Key(k0, k1, k2, k3), sec, true))
      ensures Remembers(known, Key(k0, k1, k2, k3), sec)
      ensures forall k: Key, at: uint64 {:trigger Remembers(known, k, at)} ::
        Remembers(old(known), k, at) ==> Remembers(known, k, at)
      ensures last == if place in known && sec > old(last) then sec else old(last)
      // its chunk has a holder: that client, if it had none
      ensures place in known ==> var x, y := old(table.chunks)[place / 16], table.chunks[place / 16];
        y.holder != NOBODY && (x.holder == NOBODY ==> Client(y.holder, id0, id1)) &&
        y.newest >= Nanoseconds(sec, nsec)
    {
      var other := index.Find(k0, k1, k2, k3);
      if other < 16 * n && times.Get(other) > sec { assert other in known; return; }
      forall p | p in known && known[p].key == Key(k0, k1, k2, k3) ensures known[p].at <= sec
      { assert index.at[p] == Key(k0, k1, k2, k3) && p == other; }
      Note(place, k0, k1, k2, k3, sec, true);
      if last < sec { last := sec; }
      var c := Number(id0, id1);
      table.Found(place, c, Nanoseconds(sec, nsec));
      assert place in known;
      forall k: Key, at: uint64 | Remembers(old(known), k, at) ensures Remembers(known, k, at)
      {
        var p :| p in old(known) && old(known)[p].key == k && old(known)[p].at >= at;
        assert if k == Key(k0, k1, k2, k3) then known[place].at >= at else p in known && known[p] == old(known)[p];
      }
    }
    // The records of chunk i cannot be read.
    method Broke(i: uint64)
      requires Valid() && i < n
      modifies this`known, table`chunks, table.rows, table.holders
      modifies index`at, index`chains, index.heads, index.next, index.heads.memory, index.next.memory
      ensures Valid() && known == Lost(old(known), i)
      ensures SameBut(old(table.chunks), table.chunks, i as int) && table.chunks[i].holder == BROKEN
    {
      table.Broke(i);
      var k := 0;
      while k < PLACES
        invariant k <= PLACES && Valid()
        invariant table.chunks == old(table.chunks)[i as int := table.chunks[i]] && table.chunks[i].holder == BROKEN
        invariant known == map p | p in old(known) && !(16 * i <= p < 16 * i + k) :: old(known)[p]
      {
        index.Drop(16 * i + k);
        known := map p | p in known && p != 16 * i + k :: known[p];
        k := k + 1;
      }
    }
  }

  // a time as the table of chunks has it
  function method Nanoseconds(sec: uint64, nsec: uint32): uint64
  { (if sec > 0x4_0000_0000 then 0x4_0000_0000 else sec) * SECOND + nsec as uint64 }
}
