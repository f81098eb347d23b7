// Which of some slots has a key, and which slot a key has: a hash table in arrays, without allocation once it is made.
// A key is in one slot at most; a slot has one key, or none. Whatever is asked for is found if and only if it is there.
include "../format/marshal.dfy"

module ReplyIndex {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened Marshal

  // n numbers in memory
  class Words {
    const n: uint64
    const memory: Bytes
    ghost var v: seq<uint64>

    predicate Valid() reads this, memory
    {
      n < 0x100_0000_0000_0000 && |v| == n as int && |memory.data| == 8 * n as int &&
      forall i {:trigger v[i]} | 0 <= i < |v| :: v[i] == U64At(memory.data, 8 * i)
    }
    constructor (n: uint64)
      requires n < 0x100_0000_0000_0000
      ensures Valid() && this.n == n && fresh(memory) && forall i {:trigger v[i]} | 0 <= i < |v| :: v[i] == 0
    {
      var b := NewBytes(8 * n);
      ghost var s := Nulls(n as int);
      forall i | 0 <= i < |s| ensures s[i] == U64At(b.data, 8 * i) { U64AtZeros(8 * n as int, 8 * i); }
      this.n, memory, v := n, b, s;
    }
    function method Get(i: uint64): (x: uint64) reads this, memory
      requires Valid() && i < n ensures x == v[i] { assert v[i] == v[i]; memory.U64(8 * i) }
    method Put(i: uint64, x: uint64)
      requires Valid() && i < n
      modifies this`v, memory
      ensures Valid() && v == old(v)[i as int := x]
    {
      Put64(memory, 8 * i, x);
      v := v[i as int := x];
      forall j | 0 <= j < |v| ensures v[j] == U64At(memory.data, 8 * j)
      { if j != i as int { assert v[j] == old(v)[j] == U64At(old(memory.data), 8 * j); } }
    }
  }
  function Nulls(n: nat): (s: seq<uint64>) ensures |s| == n && forall i | 0 <= i < n :: s[i] == 0
  { if n == 0 then [] else Nulls(n - 1) + [0] }

  datatype Key = Key(first: uint64, second: uint64, third: uint64, fourth: uint64)

  // which of m lists a key is in: any will do
  function method Bucket(m: uint64, first: uint64, second: uint64): (b: uint64)
    requires m > 0
    ensures b < m
  {
    var h := (first / 0x1_0000_0000 + second / 0x1_0000_0000 + second / 0x100_0000_0000_0000) % m;
    if h < m then h else 0
  }
  function In(m: uint64, k: Key): uint64 requires m > 0 { Bucket(m, k.first, k.second) }

  // x says what comes in list c at its place j: its slot, and 2; or that nothing does
  predicate Points(x: uint64, c: seq<uint64>, j: int)
    requires 0 <= j <= |c|
  { if j < |c| then x as int == c[j] as int + 2 else x == 1 }

  // Place j of list c has a slot whose key belongs there, and which says what comes next.
  predicate Link(c: seq<uint64>, j: int, b: uint64, m: uint64, at: map<uint64, Key>, next: seq<uint64>)
    requires m > 0 && 0 <= j < |c|
  { c[j] in at && In(m, at[c[j]]) == b && c[j] as int < |next| && Points(next[c[j]], c, j + 1) }
  // The slots of a list have keys that belong there; each is there once. The trigger is Link, and not c[j]: Points has
  // c[j + 1], so each place would bring the next one, without end.
  predicate Chain(c: seq<uint64>, b: uint64, m: uint64, at: map<uint64, Key>, head: uint64, next: seq<uint64>)
    requires m > 0
  {
    Points(head, c, 0) &&
    (forall j {:trigger Link(c, j, b, m, at, next)} | 0 <= j < |c| :: Link(c, j, b, m, at, next)) &&
    (forall i, j {:trigger c[i], c[j]} | 0 <= i < j < |c| :: c[i] != c[j])
  }
  predicate Inside(s: uint64, at: map<uint64, Key>, m: uint64, chains: seq<seq<uint64>>)
    requires s in at && m > 0 && |chains| == m as int
  { s in chains[In(m, at[s])] }

  class Index {
    const n: uint64                        // slots; as the number of one: none
    const keys: Words                      // four numbers of each slot
    const heads: Words                     // of each list: 1, or its first slot and 2
    const next: Words                      // of each slot: 0 if it has no key; the next one of its list as in heads
    ghost var at: map<uint64, Key>         // the key of each slot that has one
    ghost var chains: seq<seq<uint64>>     // lists of slots
    ghost const Repr: set<object>          // the memory

    predicate Apart() reads this, keys, heads, next
    {
      keys != heads && keys != next && heads != next &&
      keys.memory != heads.memory && keys.memory != next.memory && heads.memory != next.memory &&
      Repr == {keys, heads, next, keys.memory, heads.memory, next.memory}
    }
    // The memory says which slot has which key, and each list has the slots whose keys belong there.
    predicate {:opaque} Says()
      reads this, keys, heads, next, keys.memory, heads.memory, next.memory
    {
      0 < n < 0x1_0000_0000_0000 && |chains| == n as int && keys.n == 4 * n && heads.n == n && next.n == n &&
      keys.Valid() && heads.Valid() && next.Valid() &&
      (forall s: uint64 {:trigger s in at} | s in at :: s < n && Inside(s, at, n, chains) &&
        at[s] == Key(keys.v[4 * s as int], keys.v[4 * s as int + 1], keys.v[4 * s as int + 2],
          keys.v[4 * s as int + 3])) &&
      (forall s: uint64 {:trigger next.v[s]} | s < n :: (next.v[s] == 0 <==> s !in at)) &&
      (forall b: uint64 {:trigger chains[b]} | b < n :: Chain(chains[b], b, n, at, heads.v[b], next.v))
    }
    predicate Valid()
      reads this, keys, heads, next, keys.memory, heads.memory, next.memory
    {
      0 < n < 0x1_0000_0000_0000 && Apart() && Says() &&
      (forall s: uint64 {:trigger s in at} | s in at :: s < n) &&
      (forall s, t: uint64 {:trigger at[s], at[t]} | s in at && t in at && at[s] == at[t] :: s == t)
    }

    // n slots without keys
    constructor (n: uint64)
      requires 0 < n < 0x1_0000_0000_0000
      ensures Valid() && this.n == n && at == map[] && fresh(Repr)
    {
      var k := new Words(4 * n);
      var h := new Words(n);
      var x := new Words(n);
      var i := 0;
      while i < n
        invariant i <= n && h.Valid() && h.n == n && fresh(h) && fresh(h.memory)
        invariant k.Valid() && k.n == 4 * n && x.Valid() && x.n == n
        invariant k.memory != h.memory && x.memory != h.memory
        invariant forall j {:trigger x.v[j]} | 0 <= j < n as int :: x.v[j] == 0
        invariant forall j {:trigger h.v[j]} | 0 <= j < i as int :: h.v[j] == 1
      {
        h.Put(i, 1);
        i := i + 1;
      }
      this.n, keys, heads, next, at, chains := n, k, h, x, map[], Empties(n as int);
      Repr := {k, h, x, k.memory, h.memory, x.memory};
      new;
      reveal Says();
    }

    function method KeyOf(s: uint64): (k: Key) reads this, keys, heads, next, keys.memory, heads.memory, next.memory
      requires Valid() && s in at
      ensures k == at[s]
    { reveal Says(); Key(keys.Get(4 * s), keys.Get(4 * s + 1), keys.Get(4 * s + 2), keys.Get(4 * s + 3)) }
    // whether a slot has a key
    function method Full(s: uint64): (yes: bool) reads this, keys, heads, next, keys.memory, heads.memory, next.memory
      requires Valid() && s < n
      ensures yes <==> s in at
    { reveal Says(); next.Get(s) != 0 }

    // the slot that has a key (n: none has it)
    method Find(first: uint64, second: uint64, third: uint64, fourth: uint64) returns (s: uint64)
      requires Valid()
      ensures s <= n && (s < n ==> s in at && at[s] == Key(first, second, third, fourth))
      ensures s == n ==> forall t: uint64 {:trigger t in at} | t in at :: at[t] != Key(first, second, third, fourth)
    {
      reveal Says();
      ghost var k := Key(first, second, third, fourth);
      var b := Bucket(n, first, second);
      ghost var c, j := chains[b], 0;
      var x := heads.Get(b);
      while x >= 2
        invariant 0 <= j <= |c| && Points(x, c, j)
        invariant forall i {:trigger c[i]} | 0 <= i < j :: c[i] in at && at[c[i]] != k
        decreases |c| - j
      {
        s := x - 2;
        assert Link(c, j, b, n, at, next.v);
        var k0, k1, k2, k3 := keys.Get(4 * s), keys.Get(4 * s + 1), keys.Get(4 * s + 2), keys.Get(4 * s + 3);
        if k0 == first && k1 == second && k2 == third && k3 == fourth { return; }
        x := next.Get(s);
        j := j + 1;
      }
      s := n;
      forall t: uint64 | t in at ensures at[t] != k
      { if at[t] == k { assert Inside(t, at, n, chains) && t in c; } }
    }
    // a slot without a key gets one that no other has
    method Put(s: uint64, first: uint64, second: uint64, third: uint64, fourth: uint64)
      requires Valid() && s < n && s !in at
      requires forall t: uint64 {:trigger t in at} | t in at :: at[t] != Key(first, second, third, fourth)
      modifies this`at, this`chains, keys, heads, next, keys.memory, heads.memory, next.memory
      ensures Valid() && at == old(at)[s := Key(first, second, third, fourth)]
    {
      reveal Says();
      ghost var k := Key(first, second, third, fourth);
      ghost var at0, chains0, head0, next0 := at, chains, heads.v, next.v;
      var b := Bucket(n, first, second);
      var x := heads.Get(b);
      keys.Put(4 * s, first);
      keys.Put(4 * s + 1, second);
      keys.Put(4 * s + 2, third);
      keys.Put(4 * s + 3, fourth);
      next.Put(s, x);
      heads.Put(b, s + 2);
      at, chains := at[s := k], chains[b as int := [s] + chains[b]];
      forall d: uint64 | d < n ensures Chain(chains[d], d, n, at, heads.v[d], next.v)
      {
        assert Chain(chains0[d], d, n, at0, head0[d], next0);
        AddLeavesChain(chains0[d], d, n, at0, head0[d], next0, s, k, x);
        if d == b { AddKeepsChain(chains0[d], d, n, at, x, next.v, s); }
      }
    }
    // a slot has no key any more
    method Drop(s: uint64)
      requires Valid() && s < n
      modifies this`at, this`chains, heads, next, heads.memory, next.memory
      ensures Valid() && at == Without(old(at), s)
    {
      reveal Says();
      var y := next.Get(s);
      if y == 0 { return; }
      ghost var k := at[s];
      assert Inside(s, at, n, chains);
      var b := Bucket(n, keys.Get(4 * s), keys.Get(4 * s + 1));
      ghost var c, j := chains[b], 0;
      var x := heads.Get(b);
      if x == s + 2 {
        heads.Put(b, y);
      } else {
        assert Link(c, j, b, n, at, next.v);
        while next.Get(x - 2) != s + 2
          invariant 0 <= j < |c| && x as int == c[j] as int + 2 && (forall i | 0 <= i <= j :: c[i] != s)
          invariant Link(c, j, b, n, at, next.v)
          decreases |c| - j
        {
          x := next.Get(x - 2);
          j := j + 1;
          assert j < |c| ==> Link(c, j, b, n, at, next.v);
        }
        next.Put(x - 2, y);
        j := j + 1;
      }
      next.Put(s, 0);
      ghost var at0, chains0, head0, next0 := at, chains, old(heads.v), old(next.v);
      assert c[j] == s;
      at, chains := Without(at, s), chains[b as int := Cut(c, j)];
      CutKeepsChain(c, b, n, at0, head0[b], next0, j, heads.v[b], next.v);
      forall d: uint64 | d < n ensures Chain(chains[d], d, n, at, heads.v[d], next.v)
      {
        assert Chain(chains0[d], d, n, at0, head0[d], next0);
        if d != b { CutLeavesChain(chains[d], d, n, at0, head0[d], next0, s, if j == 0 then s else c[j - 1], next.v); }
      }
      forall t: uint64 | t in at ensures Inside(t, at, n, chains)
      {
        assert Inside(t, at0, n, chains0);
        if In(n, at0[t]) == b { CutKeeps(c, j, t); }
      }
    }
  }
  function Cut(c: seq<uint64>, j: int): seq<uint64> requires 0 <= j < |c| { c[..j] + c[j + 1..] }
  lemma CutKeeps(c: seq<uint64>, j: int, t: uint64)
    requires 0 <= j < |c| && t in c && t != c[j]
    ensures t in Cut(c, j)
  { var i :| 0 <= i < |c| && c[i] == t; assert Cut(c, j)[if i < j then i else i - 1] == t; }
  // place j of a list is cut out
  lemma CutKeepsChain(c: seq<uint64>, b: uint64, m: uint64, at: map<uint64, Key>, head: uint64, next: seq<uint64>,
    j: int, head': uint64, next': seq<uint64>)
    requires m > 0 && Chain(c, b, m, at, head, next) && 0 <= j < |c|
    requires Link(c, 0, b, m, at, next) && Link(c, j, b, m, at, next)
    requires j > 0 ==> Link(c, j - 1, b, m, at, next)
    requires head' == if j == 0 then next[c[0]] else head
    requires next' == (if j == 0 then next else next[c[j - 1] as int := next[c[j]]])[c[j] as int := 0]
    ensures Chain(Cut(c, j), b, m, Without(at, c[j]), head', next')
  {
    var d := Cut(c, j);
    forall i | 0 <= i < |d| ensures Link(d, i, b, m, Without(at, c[j]), next')
    {
      var k := if i < j then i else i + 1;
      assert Link(c, k, b, m, at, next) && Link(c, j, b, m, at, next);
      assert d[i] == c[k] && c[k] != c[j];
      if i + 1 < |d| { assert d[i + 1] == c[if i + 1 < j then i + 1 else i + 2]; }
    }
    forall i, k | 0 <= i < k < |d| ensures d[i] != d[k]
    { assert d[i] == c[if i < j then i else i + 1] && d[k] == c[if k < j then k else k + 1]; }
  }
  // what changes in one list is in no other
  lemma CutLeavesChain(c: seq<uint64>, b: uint64, m: uint64, at: map<uint64, Key>, head: uint64, next: seq<uint64>,
    s: uint64, before: uint64, next': seq<uint64>)
    requires m > 0 && Chain(c, b, m, at, head, next)
    requires s in at && before in at && In(m, at[s]) != b && In(m, at[before]) != b
    requires |next'| == |next| && forall i: uint64 {:trigger next'[i]} | i as int < |next| && i != s && i != before ::
      next'[i] == next[i]
    ensures Chain(c, b, m, Without(at, s), head, next')
  {
    forall j | 0 <= j < |c| ensures Link(c, j, b, m, Without(at, s), next')
    { assert Link(c, j, b, m, at, next) && next'[c[j]] == next[c[j]]; }
  }
  // A new slot is in no list yet,
  lemma AddLeavesChain(c: seq<uint64>, b: uint64, m: uint64, at: map<uint64, Key>, head: uint64, next: seq<uint64>,
    s: uint64, k: Key, x: uint64)
    requires m > 0 && Chain(c, b, m, at, head, next) && s !in at && s as int < |next|
    ensures Chain(c, b, m, at[s := k], head, next[s as int := x]) && s !in c
  {
    forall j | 0 <= j < |c| ensures Link(c, j, b, m, at[s := k], next[s as int := x])
    { assert Link(c, j, b, m, at, next); }
    if s in c { var j :| 0 <= j < |c| && c[j] == s; assert Link(c, j, b, m, at, next); }
  }
  // and comes to be the first of its own.
  lemma AddKeepsChain(c: seq<uint64>, b: uint64, m: uint64, at: map<uint64, Key>, head: uint64, next: seq<uint64>,
    s: uint64)
    requires m > 0 && Chain(c, b, m, at, head, next) && s in at && In(m, at[s]) == b && s !in c
    requires s as int < |next| && s as int + 2 <= 0xffff_ffff_ffff_ffff && next[s] == head
    ensures Chain([s] + c, b, m, at, s + 2, next)
  {
    var d := [s] + c;
    forall j | 0 <= j < |d| ensures Link(d, j, b, m, at, next)
    { if j > 0 { assert Link(c, j - 1, b, m, at, next); } }
  }
  function Without(at: map<uint64, Key>, s: uint64): map<uint64, Key> { map t | t in at && t != s :: at[t] }
  function Empties(n: nat): (c: seq<seq<uint64>>) ensures |c| == n && forall i | 0 <= i < n :: c[i] == []
  { if n == 0 then [] else Empties(n - 1) + [[]] }
}
