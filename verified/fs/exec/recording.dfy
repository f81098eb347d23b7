// The record of a call, from its beginning to its end: the very record that its transaction writes (once.dfy) says
// which call it is, whose, and when it came. So what is known of records (replies/calls.dfy) and what is on the volume
// have one key.
include "call.dfy"
include "../replies/calls.dfy"
include "../replies/obeyed.dfy"
include "../procedures/records.dfy"

module Recording {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened Marshal
  import opened ReplyIndex
  import opened ReplySharing
  import opened KnownRecords
  import opened ReplyCalls
  import Obeyed = ObeyedRecords
  import Records
  import Exec
  import C = Calls
  import O = NfsOnce
  import Durable = NfsDurable

  // the key of a record, as it is known
  function KeyIn(r: seq<byte>): Key requires |r| == 256
  { Key(U64At(r, 16), U64At(r, 24), U64At(r, 32), U64At(r, 40)) }
  // It is the one that the volume has.
  lemma OneKey(r: seq<byte>)
    requires |r| == 256
    ensures Obeyed.KeyOf(KeyIn(r)) == Records.KeyAt(r)
  { }
  // what is known of it when the call has left it
  function RecordOf(r: seq<byte>): Record requires |r| == 256 { Record(KeyIn(r), Records.AtOf(r), false) }

  // ---- when the volume is opened ----

  // record k of a block
  function RecordIn(b: seq<byte>, k: int): seq<byte> requires |b| == 4096 && 0 <= k < 16
  { b[256 * k .. 256 * k + 256] }
  // m has the first k records of a block, or newer ones of the same calls
  predicate Has(m: Known, b: seq<byte>, k: int) requires |b| == 4096 && 0 <= k <= 16 {
    forall j {:trigger RecordIn(b, j)} | 0 <= j < k && Records.Full(RecordIn(b, j)) ::
      Remembers(m, KeyIn(RecordIn(b, j)), Records.AtOf(RecordIn(b, j)))
  }
  // What was known is known yet.
  predicate Keeps(m: Known, m': Known)
  { forall key: Key, at: uint64 {:trigger Remembers(m', key, at)} :: Remembers(m, key, at) ==> Remembers(m', key, at) }

  // Chunk i has the records of block b, of which nothing is known yet.
  method Opened(records: ReplyCalls.Calls, i: uint64, b: Bytes)
    requires records.Valid() && i < records.n && |b.data| == 4096 && b !in records.Repr()
    requires forall p {:trigger p in records.known} | p in records.known :: p / 16 != i
    modifies records, records.index, records.clients, records.Repr()
    ensures records.Valid() && records.table.taken.data == old(records.table.taken.data)
    ensures Has(records.known, b.data, 16) && Keeps(old(records.known), records.known)
    ensures forall p {:trigger p in records.known} | p in records.known && p !in old(records.known) :: p / 16 == i
  {
    var k: uint64 := 0;
    while k < 16
      invariant k <= 16 && records.Valid() && records.table.taken.data == old(records.table.taken.data)
      invariant b.data == old(b.data)
      invariant Has(records.known, b.data, k as int) && Keeps(old(records.known), records.known)
      invariant forall p {:trigger p in records.known} | p in records.known && p !in old(records.known) ::
        16 * i as int <= p as int < 16 * i as int + k as int
      decreases 16 - k
    {
      ghost var before := records.known;
      FoundAt(records, 16 * i + k, b, 256 * k);
      forall j | 0 <= j < k as int && Records.Full(RecordIn(b.data, j))
        ensures Remembers(records.known, KeyIn(RecordIn(b.data, j)), Records.AtOf(RecordIn(b.data, j)))
      { assert Remembers(before, KeyIn(RecordIn(b.data, j)), Records.AtOf(RecordIn(b.data, j))); }
      k := k + 1;
    }
  }
  // A place has the record at an offset of b, if there is one.
  method FoundAt(records: ReplyCalls.Calls, place: uint64, b: Bytes, offset: uint64)
    requires records.Valid() && place < 16 * records.n && place !in records.known && b !in records.Repr()
    requires |b.data| == 4096 && offset as int + 256 <= 4096
    modifies records, records.index, records.clients, records.Repr()
    ensures records.Valid() && records.table.taken.data == old(records.table.taken.data) && b.data == old(b.data)
    ensures Keeps(old(records.known), records.known)
    ensures forall p {:trigger p in records.known} | p in records.known && p !in old(records.known) :: p == place
    ensures var r := b.data[offset..offset + 256]; Records.Full(r) ==>
      Remembers(records.known, KeyIn(r), Records.AtOf(r))
  {
    ghost var r := b.data[offset..offset + 256];
    Inside(b.data, offset as int);
    var full := b.U32(offset);
    if full != 1 { return; }
    var at, nanoseconds := b.U64(offset + 8), b.U32(offset + 4);
    var first, second, third, fourth := b.U64(offset + 16), b.U64(offset + 24), b.U64(offset + 32), b.U64(offset + 40);
    var id0, id1 := b.U64(offset + 80), b.U64(offset + 88);
    records.Found(place, id0, id1, first, second, third, fourth, at, nanoseconds);
  }
  // numbers in a record are those in its block
  lemma Inside(b: seq<byte>, offset: int)
    requires |b| == 4096 && 0 <= offset && offset + 256 <= 4096
    ensures var r := b[offset..offset + 256]; U32At(r, 0) == U32At(b, offset) && U64At(r, 8) == U64At(b, offset + 8) &&
      U64At(r, 16) == U64At(b, offset + 16) && U64At(r, 24) == U64At(b, offset + 24) &&
      U64At(r, 32) == U64At(b, offset + 32) && U64At(r, 40) == U64At(b, offset + 40)
  {
    var r := b[offset..offset + 256];
    Part(b, r, offset, 0, 4);
    Part(b, r, offset, 8, 8);
    Part(b, r, offset, 16, 8);
    Part(b, r, offset, 24, 8);
    Part(b, r, offset, 32, 8);
    Part(b, r, offset, 40, 8);
  }
  lemma Part(b: seq<byte>, r: seq<byte>, offset: int, x: int, n: int)
    requires 0 <= offset && offset + |r| <= |b| && r == b[offset..offset + |r|] && 0 <= x && 0 <= n && x + n <= |r|
    ensures r[x..x + n] == b[offset + x..offset + x + n]
  {
    forall i | 0 <= i < n ensures r[x..x + n][i] == b[offset + x..offset + x + n][i]
    { var j := x + i; assert r[j] == b[offset..offset + |r|][j]; assert r[j] == b[offset + j]; }
  }

  // ---- a call ----

  // A call begins that comes with record r: as Begin of replies/calls.dfy says.
  method Begin(records: ReplyCalls.Calls, r: Bytes, up: uint64)
    returns (place: uint64, look: bool, since: uint64, ghost c: uint64)
    requires records.Valid() && |r.data| == 256 && r !in records.Repr()
    modifies records.table, records.table.rows, records.table.holders, records.table.taken, records.peers
    modifies records.clients`at, records.clients`chains, records.clients.keys, records.clients.heads
    modifies records.clients.next
    modifies records.clients.keys.memory, records.clients.heads.memory, records.clients.next.memory
    ensures records.Valid() && place <= 16 * records.n
    ensures place == 16 * records.n ==> records.table.taken.data == old(records.table.taken.data)
    ensures place < 16 * records.n ==> old(records.table.taken.data)[place] == 0 &&
      records.table.taken.data == old(records.table.taken.data)[place as int := 1]
    ensures forall p {:trigger records.known[p]} |
      p in records.known && records.known[p].key == KeyIn(r.data) &&
      old(records.table.taken.data)[p] == 0 :: var t := records.At(Records.AtOf(r.data), up);
      place == p && since == Since(records.known[p], t) &&
      (look <==> Counts(records.known[p], t) && !(p in records.peers.elsewhere && records.peers.elsewhere[p]))
    ensures look ==> place in records.known && records.known[place].key == KeyIn(r.data)
    ensures (forall p {:trigger records.known[p]} | p in records.known && old(records.table.taken.data)[p] == 0 ::
      records.known[p].key != KeyIn(r.data)) ==> records.Placed(place, c, U64At(r.data, 80), U64At(r.data, 88),
      Nanoseconds(Records.AtOf(r.data), U32At(r.data, 4)), records.At(Records.AtOf(r.data), up),
      old(records.Currents()), old(records.table.taken.data), old(records.table.chunks))
  {
    var first, second, third, fourth := r.U64(16), r.U64(24), r.U64(32), r.U64(40);
    var id0, id1, at, nanoseconds := r.U64(80), r.U64(88), r.U64(8), r.U32(4);
    place, look, since, c := records.Begin(id0, id1, first, second, third, fourth, at, nanoseconds, up);
  }

  // A call has left its record: it was done with one, and now, not before.
  predicate method Left(call: C.Call, again: bool) reads call { call.record && call.status == 0 && !again }
  // It was done, or refused, without the record that it was to have, so that was what could not be read.
  predicate method Spoilt(call: C.Call) reads call { !call.record && call.status != Durable.IO }
  // A call is over that came with record r, for a place; again: it was answered from there. What it left is known, and
  // where the record could not be read, that chunk is broken. answered: the reply is that of the call whose record is
  // in the place.
  method Over(records: ReplyCalls.Calls, call: C.Call, place: uint64, r: Bytes, again: bool) returns (answered: bool)
    requires records.Valid() && place < 16 * records.n && |r.data| == 256 && r !in records.Repr()
    modifies records, records.index, records.clients, records.Repr()
    ensures records.Valid() && records.table.taken.data == old(records.table.taken.data)[place as int := 0]
    ensures Left(call, again) ==> records.known == Noted(old(records.known), place, RecordOf(r.data))
    ensures Spoilt(call) ==> records.known == Lost(old(records.known), place / 16) &&
      records.table.chunks[place / 16].holder == BROKEN
    ensures !Left(call, again) && !Spoilt(call) ==> records.known == old(records.known)
    ensures if Left(call, again) || Spoilt(call) then
      SameBut(old(records.table.chunks), records.table.chunks, place as int / 16) else
      records.table.chunks == old(records.table.chunks)
    ensures Left(call, again) ==> records.table.chunks[place / 16].newest >=
      Nanoseconds(Records.AtOf(r.data), U32At(r.data, 4))
    ensures answered <==> Left(call, again) || again
  {
    var left, spoilt := Left(call, again), Spoilt(call);
    var first, second, third, fourth := r.U64(16), r.U64(24), r.U64(32), r.U64(40);
    var at, nanoseconds := r.U64(8), r.U32(4);
    records.End(place, first, second, third, fourth, at, nanoseconds, left);
    if spoilt { records.Broke(place / 16); }
    answered := left || again;
  }
  // What a call left is on the volume, by the transaction that did it (Done in once.dfy), and it is known.
  lemma LeftIsKnown(m: Known, pre: O.Replies, post: O.Replies, place: uint64, r: seq<byte>)
    requires |r| == 256 && Obeyed.OnVolume(m, pre)
    requires place as int in post && post == pre[place as int := post[place as int]]
    requires post[place as int].key == Records.KeyAt(r) && post[place as int].at == Records.AtOf(r)
    ensures Obeyed.OnVolume(Noted(m, place, RecordOf(r)), post)
  {
    OneKey(r);
    Obeyed.KeptIsKnown(m, pre, post, place, RecordOf(r));
  }
}
