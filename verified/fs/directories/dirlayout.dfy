// What a directory's file says: the map from names to inode numbers that its bytes
// stand for, and how storing, replacing and clearing one slot changes that map.
//
// The file is whole blocks of 4096 bytes in two interleaved classes. Block 2*b
// is bucket b of the short names (up to 56 bytes) and holds 64 slots of 64 bytes;
// block 2*b+1 is bucket b of the long names and holds 8 slots of 512 bytes.
// A slot:
//   +0  word u64   0 = free; else inode number + name length * 2^48 + tag * 2^56,
//                  tag = the highest byte of the name's hash
//   +8  the name
// In each class the buckets form levels: 1, 8, 64, ... 8^8 of them, one level
// after the other. At each level a name has one bucket, its hash modulo the number
// of buckets there. An entry is put into the first level whose bucket has a free
// slot and never moves, so its place can serve as a readdir cookie. Buckets nobody
// used are holes of the file.
//
// A cell is 64 bytes, and a slot is named by the number of its first cell. Words
// are compared first: one load tells nearly always whether a slot has the name.
include "../format/marshal.dfy"
module DirLayout {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened Numbers
  import opened Marshal

  type Entries = map<seq<byte>, uint64>
  type Places = map<seq<byte>, int>       // where each name lies: shows that no name is there twice

  // ---- where a name may lie ----
  function Class(n: seq<byte>): int { if |n| <= 56 then 0 else 1 }
  function Bucket(h: int, lev: int): int {
    if lev == 0 then 0 else if lev == 1 then 1 + h % 8 else if lev == 2 then 9 + h % 64
    else if lev == 3 then 73 + h % 512 else if lev == 4 then 585 + h % 4096 else if lev == 5 then 4681 + h % 32768
    else if lev == 6 then 37449 + h % 262144 else if lev == 7 then 299593 + h % 2097152 else 2396745 + h % 16777216
  }
  function Level(b: int): int {
    if b < 1 then 0 else if b < 9 then 1 else if b < 73 then 2 else if b < 585 then 3 else if b < 4681 then 4
    else if b < 37449 then 5 else if b < 299593 then 6 else if b < 2396745 then 7 else 8
  }
  predicate Placed(blk: int, n: seq<byte>) { blk == 2 * Bucket(HashOf(n) as int, Level(blk / 2)) + Class(n) }

  lemma BucketPlaced(n: seq<byte>, lev: int)
    requires 0 <= lev < 9
    ensures var blk := 2 * Bucket(HashOf(n) as int, lev) + Class(n);
      0 <= blk < 38347922 && Level(blk / 2) == lev && Placed(blk, n) && blk % 2 == Class(n)
  {}

  // the block of a name's bucket
  method BucketBlock(h: uint64, lev: uint64, kind: uint64) returns (blk: uint64)
    requires lev < 9 && kind < 2
    ensures blk as int == 2 * Bucket(h as int, lev as int) + kind as int && blk < 38347922
  {
    var b: uint64;
    if lev == 0 { b := 0; }
    else if lev == 1 { b := 1 + h % 8; }
    else if lev == 2 { b := 9 + h % 64; }
    else if lev == 3 { b := 73 + h % 512; }
    else if lev == 4 { b := 585 + h % 4096; }
    else if lev == 5 { b := 4681 + h % 32768; }
    else if lev == 6 { b := 37449 + h % 262144; }
    else if lev == 7 { b := 299593 + h % 2097152; }
    else { b := 2396745 + h % 16777216; }
    blk := 2 * b + kind;
  }

  // ---- slots ----
  function Size(c: int): int { if (c / 64) % 2 == 0 then 64 else 512 }
  function Cap(c: int): int { if (c / 64) % 2 == 0 then 56 else 255 }
  predicate OkSlot(f: seq<byte>, c: int) { 0 <= c && 64 * c + Size(c) <= |f| && ((c / 64) % 2 == 0 || c % 8 == 0) }

  function LenOf(w: uint64, cap: int): int { var l := w as int / 0x1_0000_0000_0000 % 256; if l > cap then cap else l }
  function KeyOf(n: seq<byte>): int { |n| + 256 * (HashOf(n) as int / 0x100_0000_0000_0000) }
  function WordOf(ino: uint64, n: seq<byte>): int { ino as int + 0x1_0000_0000_0000 * KeyOf(n) }

  function Word(f: seq<byte>, c: int): uint64 requires OkSlot(f, c) { U64At(f, 64 * c) }
  function Name(f: seq<byte>, c: int): seq<byte> requires OkSlot(f, c)
  { f[64 * c + 8 .. 64 * c + 8 + LenOf(Word(f, c), Cap(c))] }

  // a slot in use agrees with the map and lies where its name belongs
  predicate Good(f: seq<byte>, c: int, m: Entries, at: Places) requires OkSlot(f, c) {
    var own := Name(f, c);
    0 < |own| && own in m && own in at && at[own] == c && 0 < m[own] < 0x1_0000_0000_0000 &&
    Word(f, c) as int == WordOf(m[own], own) && Placed(c / 64, own)
  }
  // there is no free slot in a block,
  predicate FullBlock(f: seq<byte>, blk: int)
  { 4096 * blk < |f| && forall i: int {:trigger OkSlot(f, 64 * blk + i)} | 0 <= i < 64 && OkSlot(f, 64 * blk + i) ::
    Word(f, 64 * blk + i) != 0 }
  // nor in any of those where the name may lie
  predicate Crowded(f: seq<byte>, n: seq<byte>)
  { forall lev: int {:trigger Bucket(HashOf(n) as int, lev)} | 0 <= lev < 9 ::
    FullBlock(f, 2 * Bucket(HashOf(n) as int, lev) + Class(n)) }
  // the bytes f stand for the map m
  predicate {:opaque} DirOk(f: seq<byte>, m: Entries, at: Places) {
    && |f| % 4096 == 0
    && (forall c: int {:trigger OkSlot(f, c)} | OkSlot(f, c) && Word(f, c) != 0 :: Good(f, c, m, at))
    && (forall n: seq<byte> {:trigger n in m} | n in m ::
          n in at && OkSlot(f, at[n]) && Word(f, at[n]) != 0 && Name(f, at[n]) == n)
  }

  // ---- one slot changes ----
  lemma Frame(f: seq<byte>, g: seq<byte>, k: int, c: int)
    requires |f| == |g| && |f| % 4096 == 0 && OkSlot(f, k) && OkSlot(f, c) && c != k
    requires forall x: int | 0 <= x < |f| && !(64 * k <= x < 64 * k + Size(k)) :: g[x] == f[x]
    ensures OkSlot(g, c) && Word(g, c) == Word(f, c) && Name(g, c) == Name(f, c)
  {
    assert 64 * c + Size(c) <= 64 * k || 64 * k + Size(k) <= 64 * c;
    assert f[64*c .. 64*c+8] == g[64*c .. 64*c+8];
    assert Name(f, c) == Name(g, c);
  }

  lemma DirInsert(f: seq<byte>, g: seq<byte>, m: Entries, at: Places, k: int, ino: uint64, n: seq<byte>)
    requires DirOk(f, m, at) && |f| == |g| && OkSlot(f, k) && Word(f, k) == 0
    requires forall x: int | 0 <= x < |f| && !(64 * k <= x < 64 * k + Size(k)) :: g[x] == f[x]
    requires OkSlot(g, k) && Word(g, k) as int == WordOf(ino, n) && Name(g, k) == n
    requires 0 < ino < 0x1_0000_0000_0000 && 0 < |n| <= 255 && n !in m && Placed(k / 64, n)
    ensures DirOk(g, m[n := ino], at[n := k])
  {
    reveal DirOk();
    var m' := m[n := ino]; var at' := at[n := k];
    forall c: int | OkSlot(g, c) && Word(g, c) != 0
      ensures Good(g, c, m', at')
    { assert OkSlot(f, c); if c != k { Frame(f, g, k, c); } }
    forall s: seq<byte> | s in m'
      ensures s in at' && OkSlot(g, at'[s]) && Word(g, at'[s]) != 0 && Name(g, at'[s]) == s
    { if s != n { assert s in m; assert OkSlot(f, at[s]); assert at[s] != k; Frame(f, g, k, at[s]); } }
  }

  lemma DirReplace(f: seq<byte>, g: seq<byte>, m: Entries, at: Places, k: int, ino: uint64, n: seq<byte>)
    requires DirOk(f, m, at) && |f| == |g| && OkSlot(f, k) && Word(f, k) != 0 && Name(f, k) == n
    requires forall x: int | 0 <= x < |f| && !(64 * k <= x < 64 * k + Size(k)) :: g[x] == f[x]
    requires OkSlot(g, k) && Word(g, k) as int == WordOf(ino, n) && Name(g, k) == n
    requires 0 < ino < 0x1_0000_0000_0000
    ensures n in m && DirOk(g, m[n := ino], at)
  {
    reveal DirOk();
    assert Good(f, k, m, at);
    var m' := m[n := ino];
    forall c: int | OkSlot(g, c) && Word(g, c) != 0
      ensures Good(g, c, m', at)
    { assert OkSlot(f, c); if c != k { Frame(f, g, k, c); assert Good(f, c, m, at); } }
    forall s: seq<byte> | s in m'
      ensures s in at && OkSlot(g, at[s]) && Word(g, at[s]) != 0 && Name(g, at[s]) == s
    { if s != n { assert s in m; assert OkSlot(f, at[s]); assert at[s] != k; Frame(f, g, k, at[s]); } }
  }

  lemma DirRemove(f: seq<byte>, g: seq<byte>, m: Entries, at: Places, k: int, n: seq<byte>)
    requires DirOk(f, m, at) && |f| == |g| && OkSlot(f, k) && Word(f, k) != 0 && Name(f, k) == n
    requires forall x: int | 0 <= x < |f| && !(64 * k <= x < 64 * k + Size(k)) :: g[x] == f[x]
    requires OkSlot(g, k) && Word(g, k) == 0
    ensures n in m && DirOk(g, map s | s in m && s != n :: m[s], at)
  {
    reveal DirOk();
    assert Good(f, k, m, at);
    var m' := map s | s in m && s != n :: m[s];
    forall c: int | OkSlot(g, c) && Word(g, c) != 0
      ensures Good(g, c, m', at)
    { assert OkSlot(f, c); Frame(f, g, k, c); assert Good(f, c, m, at); }
    forall s: seq<byte> | s in m'
      ensures s in at && OkSlot(g, at[s]) && Word(g, at[s]) != 0 && Name(g, at[s]) == s
    { assert s in m; assert OkSlot(f, at[s]); assert at[s] != k; Frame(f, g, k, at[s]); }
  }

  // a slot of a file to which something is added
  lemma SlotBefore(f: seq<byte>, g: seq<byte>, c: int)
    requires |f| % 4096 == 0 && |f| <= |g| && OkSlot(g, c) && 64 * c < |f|
    requires forall x: int | 0 <= x < |f| :: g[x] == f[x]
    ensures OkSlot(f, c) && Word(g, c) == Word(f, c) && Name(g, c) == Name(f, c)
  {
    assert OkSlot(f, c);
    assert f[64*c .. 64*c+8] == g[64*c .. 64*c+8];
    assert Name(f, c) == Name(g, c);
  }
  lemma SlotBehind(f: seq<byte>, g: seq<byte>, c: int)
    requires |f| <= |g| && OkSlot(g, c) && |f| <= 64 * c
    requires forall x: int | |f| <= x < |g| :: g[x] == 0
    ensures Word(g, c) == 0
  { assert g[64*c .. 64*c+8] == [0,0,0,0,0,0,0,0]; Dec64Zero(); }
  // free slots at the end change nothing
  lemma DirGrow(f: seq<byte>, g: seq<byte>, m: Entries, at: Places)
    requires DirOk(f, m, at) && |f| <= |g| && |g| % 4096 == 0
    requires forall x: int | 0 <= x < |g| :: g[x] == if x < |f| then f[x] else 0
    ensures DirOk(g, m, at)
    ensures forall c: int | OkSlot(g, c) && |f| <= 64 * c :: Word(g, c) == 0
  {
    reveal DirOk();
    forall c: int | OkSlot(g, c) && |f| <= 64 * c
      ensures Word(g, c) == 0
    { SlotBehind(f, g, c); }
    forall c: int | OkSlot(g, c) && Word(g, c) != 0
      ensures Good(g, c, m, at)
    { SlotBefore(f, g, c); assert Good(f, c, m, at); }
    forall n: seq<byte> | n in m
      ensures n in at && OkSlot(g, at[n]) && Word(g, at[n]) != 0 && Name(g, at[n]) == n
    { assert OkSlot(f, at[n]); assert OkSlot(g, at[n]); SlotBefore(f, g, at[n]); }
  }

  lemma DirEmpty(at: Places)
    ensures DirOk([], map[], at)
  { reveal DirOk(); }

  // ---- one block is searched ----
  predicate IsBlock(f: seq<byte>, blk: int, v: seq<byte>)
  { 0 <= blk && 4096 * blk + 4096 <= |f| && v == f[4096 * blk .. 4096 * blk + 4096] }

  lemma SubSlice(f: seq<byte>, b: int, v: seq<byte>, i: int, j: int)
    requires 0 <= b && b + |v| <= |f| && v == f[b .. b + |v|] && 0 <= i <= j <= |v|
    ensures f[b + i .. b + j] == v[i .. j]
  {
    forall x | 0 <= x < j - i ensures f[b + i .. b + j][x] == v[i .. j][x] { assert v[i + x] == f[b + i + x]; }
  }

  lemma BlockSlot(f: seq<byte>, blk: int, v: seq<byte>, i: int)
    requires IsBlock(f, blk, v) && 0 <= i < 64 && (blk % 2 == 0 || i % 8 == 0)
    ensures OkSlot(f, 64 * blk + i) && |v| == 4096 && 64 * i + 8 + Cap(64 * blk + i) <= 4096
    ensures var c := 64 * blk + i; c / 64 == blk && Word(f, c) == U64At(v, 64 * i) &&
      Name(f, c) == v[64 * i + 8 .. 64 * i + 8 + LenOf(U64At(v, 64 * i), Cap(c))]
  {
    var c := 64 * blk + i;
    assert c / 64 == blk;
    SubSlice(f, 4096 * blk, v, 64*i, 64*i+8);
    var l := LenOf(U64At(v, 64*i), Cap(c));
    SubSlice(f, 4096 * blk, v, 64*i+8, 64*i+8+l);
  }

  // the name's length and tag, as they stand in the word of its slot
  method KeyFor(name: Bytes, h: uint64) returns (key: uint64)
    requires 0 < |name.data| <= 255 && h == HashOf(name.data)
    ensures key as int == KeyOf(name.data) && 0 < key < 65536
  { var l := name.Len(); key := l + 256 * (h / 0x100_0000_0000_0000); }

  // does slot i of the block hold the name?
  lemma SlotHas(f: seq<byte>, m: Entries, at: Places, blk: int, v: seq<byte>, i: int, n: seq<byte>)
    requires DirOk(f, m, at) && IsBlock(f, blk, v) && 0 <= i < 64 && (blk % 2 == 0 || i % 8 == 0)
    requires 0 < |n| <= (if blk % 2 == 0 then 56 else 255)
    ensures |v| == 4096 && 64 * i + 8 + |n| <= 4096 && OkSlot(f, 64 * blk + i)
    ensures var c := 64 * blk + i; var w := U64At(v, 64 * i);
      w == Word(f, c) && (w != 0 ==> Name(f, c) in m && Name(f, c) in at && at[Name(f, c)] == c &&
        m[Name(f, c)] as int == w as int % 0x1_0000_0000_0000) &&
      ((w as int / 0x1_0000_0000_0000 == KeyOf(n) && v[64 * i + 8 .. 64 * i + 8 + |n|] == n) <==>
        (w != 0 && Name(f, c) == n))
  {
    BlockSlot(f, blk, v, i);
    var c := 64 * blk + i;
    var w := U64At(v, 64 * i);
    if w != 0 {
      reveal DirOk();
      assert Good(f, c, m, at);
      assert Word(f, c) as int == WordOf(m[Name(f, c)], Name(f, c));
    }
    if w as int / 0x1_0000_0000_0000 == KeyOf(n) {
      assert KeyOf(n) % 256 == |n|;
      assert LenOf(w, Cap(c)) == |n|;
    }
  }

  // found: cell i of the block has the name, and w is its word. Else fr is a free cell, or 64.
  method Search(b: Blk, blk: uint64, name: Bytes, key: uint64, ghost f: seq<byte>, ghost m: Entries, ghost at: Places)
    returns (found: bool, i: uint64, w: uint64, fr: uint64)
    requires DirOk(f, m, at) && IsBlock(f, blk as int, b.v) && 0 < |name.data| <= (if blk % 2 == 0 then 56 else 255) &&
      key as int == KeyOf(name.data)
    ensures found ==> i < 64 && OkSlot(f, 64 * blk as int + i as int) && Word(f, 64 * blk as int + i as int) == w &&
      w != 0 &&
      Name(f, 64 * blk as int + i as int) == name.data && name.data in m &&
        m[name.data] as int == w as int % 0x1_0000_0000_0000 && 
      name.data in at && at[name.data] == 64 * blk as int + i as int
    ensures !found ==> forall c: int {:trigger OkSlot(f, c)} | OkSlot(f, c) && c / 64 == blk as int &&
      Word(f, c) != 0 :: Name(f, c) != name.data
    ensures fr <= 64
  {
    var step: uint64 := 1;
    if blk % 2 == 1 { step := 8; }
    i, w, fr, found := 0, 0, 64, false;
    while i < 64
      invariant i <= 64 && fr <= 64 && (step == 8 ==> i % 8 == 0)
      invariant forall c: int {:trigger OkSlot(f, c)} | OkSlot(f, c) &&
        64 * blk as int <= c < 64 * blk as int + i as int && Word(f, c) != 0 :: Name(f, c) != name.data
      decreases 64 - i
    {
      SlotHas(f, m, at, blk as int, b.v, i as int, name.data);
      w := b.U64(64 * i);
      if w / 0x1_0000_0000_0000 == key {
        found := b.EqualAt(64 * i + 8, name);
        if found { return; }
      } else if w == 0 && fr == 64 {
        fr := i;
      }
      i := i + step;
    }
    found := false;
  }

  // a free cell of the block, or 64
  method SearchFree(b: Blk, blk: uint64, ghost f: seq<byte>) returns (i: uint64)
    requires IsBlock(f, blk as int, b.v)
    ensures i <= 64
    ensures i < 64 ==> OkSlot(f, 64 * blk as int + i as int) && Word(f, 64 * blk as int + i as int) == 0
    ensures i == 64 ==> FullBlock(f, blk as int)
  {
    var step: uint64 := 1;
    if blk % 2 == 1 { step := 8; }
    i := 0;
    while i < 64
      invariant i <= 64 && (step == 8 ==> i % 8 == 0)
      invariant forall x: int {:trigger OkSlot(f, 64 * blk as int + x)} | 0 <= x < i as int &&
        OkSlot(f, 64 * blk as int + x) :: Word(f, 64 * blk as int + x) != 0
      decreases 64 - i
    {
      BlockSlot(f, blk as int, b.v, i as int);
      var w := b.U64(64 * i);
      if w == 0 { return; }
      i := i + step;
    }
  }

  // ---- one slot is made ----
  // s begins with a slot for the name; the rest is zeros
  predicate IsSlot(s: seq<byte>, ino: uint64, n: seq<byte>) {
    8 + |n| <= |s| && U64At(s, 0) as int == WordOf(ino, n) && s[8 .. 8 + |n|] == n &&
      forall x: int | 8 + |n| <= x < |s| :: s[x] == 0
  }
  method MakeSlot(size: uint64, ino: uint64, name: Bytes, key: uint64) returns (s: Bytes)
    requires 0 < |name.data| <= 255 && key as int == KeyOf(name.data) && 8 + |name.data| <= size as int &&
      ino < 0x1_0000_0000_0000
    ensures fresh(s) && |s.data| == size as int && IsSlot(s.data, ino, name.data)
  {
    assert KeyOf(name.data) < 65536;
    s := NewBytes(size);
    var l := name.Len();
    s.CopyFrom(8, name, 0, l);
    ghost var d := s.data;
    assert d[8 .. 8 + |name.data|] == name.data;
    s.PutU64(0, ino + 0x1_0000_0000_0000 * key);
    SpliceEnc64(d, 0, ino + 0x1_0000_0000_0000 * key);
    assert s.data[8 .. 8 + |name.data|] == name.data;
  }

  // a slot (or a whole block that begins with one) laid over the file at cell c
  lemma SlotLaid(g: seq<byte>, c: int, s: seq<byte>, ino: uint64, n: seq<byte>)
    requires OkSlot(g, c) && |s| >= Size(c) && 64 * c + |s| <= |g| && g[64 * c .. 64 * c + |s|] == s &&
      IsSlot(s, ino, n)
    requires 0 < |n| <= Cap(c) && ino < 0x1_0000_0000_0000
    ensures Word(g, c) as int == WordOf(ino, n) && Name(g, c) == n
  {
    SubSlice(g, 64 * c, s, 0, 8);
    SubSlice(g, 64 * c, s, 8, 8 + |n|);
    assert KeyOf(n) % 256 == |n|;
  }
}
