// TRUSTED: what the journal keeps in memory (maps of blocks, a cache, a mutex), and the
// records of its log. Go: internal/runtime/dlog.
include "disk.s.dfy"

// The records of the log, as values.
module LogSpec {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened DiskS
  type BM = map<int, BV>
  // A descriptor: epoch, sequence number, position of its data if they lie on the ring, the home addresses
  // of these data, and those of the group's direct blocks, whose data lie there already. All groups with numbers below dur
  // were durable when it was made.
  datatype Desc = Desc(ep: int, sq: int, dur: int, pos: int, addrs: seq<int>, dirs: seq<int>)
  datatype OptDesc = NoDesc | SomeDesc(d: Desc)
  // A sealed record: the descriptor block and the data blocks of a group, direct ones last.
  datatype Rec = Rec(b: BV, blks: seq<BV>)
  function {:axiom} DecDesc(b: BV): OptDesc               // what a block says as a descriptor
  datatype Hdr = NoHdr | Hdr(q: int, ep: int, root: CV)   // first sequence number, the epoch it belongs to, the code of the tree's root
  function {:axiom} DecHdr(key: int, b: BV): Hdr          // what a block says as a header; its seal is a part of it
  predicate HdrTail(b: BV) { |b| == 4096 && b[512..] == Tail0() }
  function {:axiom} Tail0(): BV                           // 3584 zero bytes

  // The tree of codes of a volume (verified/journal/codes.dfy): n home blocks, np pages. Node x < n is a home block,
  // node n + p is page p, and the code of node x is in page x / 255.
  datatype CV = CV(c0: uint64, c1: uint64)
  datatype TreeGeo = TreeGeo(key: int, n: int, np: int)
  predicate TreeGeoOk(t: TreeGeo) { 1 <= t.np && 1 <= t.n <= 254 * t.np + 1 && 254 * t.np <= t.n + 252 }
  // c was at some time computed as the code of contents b of node x. THE ASSUMPTION: of two contents no code was the same.
  predicate {:axiom} Coded(key: int, x: int, b: BV, c: CV)
  lemma {:axiom} OneContents(key: int, x: int, b: BV, b2: BV, c: CV) requires Coded(key, x, b, c) && Coded(key, x, b2, c) ensures b == b2
  // a code of zeros stands for zeros
  predicate Vouches(key: int, x: int, c: CV, b: BV) { if c == CV(0, 0) then b == Zeros(4096) else Coded(key, x, b, c) }
  predicate PagesOk(t: TreeGeo, pg: seq<BV>) { TreeGeoOk(t) && |pg| == t.np && forall p :: 0 <= p < t.np ==> |pg[p]| == 4096 }
  function CodeAt(b: BV, k: int): CV requires |b| == 4096 && 0 <= k < 255 { CV(U64At(b, 16 + 16 * k), U64At(b, 24 + 16 * k)) }
  function CodeIn(t: TreeGeo, pg: seq<BV>, x: int): CV requires PagesOk(t, pg) && 0 <= x < t.n + t.np - 1 { CodeAt(pg[x / 255], x % 255) }
  // the pages pg are a tree whose root has the code r
  predicate IsTree(t: TreeGeo, pg: seq<BV>, r: CV) {
    PagesOk(t, pg) && Vouches(t.key, t.n + t.np - 1, r, pg[t.np - 1]) &&
    forall p :: 0 <= p < t.np - 1 ==> Vouches(t.key, t.n + p, CodeIn(t, pg, t.n + p), pg[p])
  }
  // page p, with contents b, was seen in the place that it says, or never written; its places are the blocks first + 2 p and the one after it
  predicate InPlace(first: int, p: int, b: BV) { |b| == 4096 && (b == Zeros(4096) || Saw(first + 2 * p + U64At(b, 0) as int % 2, b)) }
  predicate IsRoot(t: TreeGeo, r: CV) { t.np <= 0 || exists pg :: IsTree(t, pg, r) }

  function BlksOf(m: BM, addrs: seq<int>): (r: seq<BV>)
    requires forall i :: 0 <= i < |addrs| ==> addrs[i] in m
    ensures |r| == |addrs|
    ensures forall i :: 0 <= i < |addrs| ==> r[i] == m[addrs[i]]
  { if addrs == [] then [] else BlksOf(m, addrs[..|addrs|-1]) + [m[addrs[|addrs|-1]]] }
}

module {:extern "dlog"} LogS {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened DiskS
  import opened LogSpec

  // A map from block addresses to blocks that remembers the order of insertion.
  class {:extern "BMap"} BMap {           // tested: dlog.TestBMap, TestBMapLists
    ghost var m: BM
    ghost var addrs: seq<int>
    predicate Ok() reads this {
      |addrs| < 0x8_0000_0000_0000 &&
      (forall i :: 0 <= i < |addrs| ==> addrs[i] in m && 0 <= addrs[i] < 0x1_0000_0000_0000_0000) &&
      (forall a :: a in m ==> a in addrs && |m[a]| == 4096)
    }
    lemma {:axiom} Distinct()           // it is a map
      requires Ok() ensures forall i, j :: 0 <= i < j < |addrs| ==> addrs[i] != addrs[j]
    predicate {:axiom} Shows(b: Blk) reads this     // b may be seen until this map changes or the mutex is given back
    method {:extern "Put"} Put(a: uint64, b: Blk)
      requires Ok() && |b.v| == 4096
      modifies this
      ensures Ok() && m == old(m)[a as int := b.v]
      ensures addrs == if a as int in old(m) then old(addrs) else old(addrs) + [a as int]
    method {:extern "Get"} Get(a: uint64) returns (b: Blk?)
      requires Ok()
      ensures (b == null) == (a as int !in m)
      ensures b != null ==> b.v == m[a as int] && Shows(b)
    method {:extern "Len"} Len() returns (n: uint64)
      requires Ok() ensures n as int == |addrs|
    method {:extern "AddrAt"} AddrAt(i: uint64) returns (a: uint64)
      requires Ok() && i as int < |addrs| ensures a as int == addrs[i as int]
    method {:extern "BlkAt"} BlkAt(i: uint64) returns (b: Blk)
      requires Ok() && i as int < |addrs| ensures b.v == m[addrs[i as int]]
    method {:extern "Clear"} Clear()
      modifies this ensures Ok() && m == map[] && addrs == []
    // its blocks, in the order of insertion
    method {:extern "List"} List() returns (l: BList)
      requires Ok() ensures l.addrs == addrs && l.blks == BlksOf(m, addrs)
    // its blocks, in the order of their addresses
    method {:extern "Sorted"} Sorted() returns (l: BList)
      requires Ok()
      ensures |l.blks| == |l.addrs|
      ensures forall i :: 0 <= i < |l.addrs| ==> l.addrs[i] in m && l.blks[i] == m[l.addrs[i]]
      ensures forall a :: a in m ==> a in l.addrs
      ensures forall i, j :: 0 <= i < j < |l.addrs| ==> l.addrs[i] < l.addrs[j]
  }
  method {:extern "NewBMap"} NewBMap() returns (b: BMap)         // tested: dlog.TestBMap
    ensures fresh(b) && b.Ok() && b.m == map[] && b.addrs == []

  // Who sees blocks whose memory is used again. A block from Cache.Get, and one from a BMap that CopyOf (bytes.s.dfy) or Hold.Copy made, may be seen while the
  // journal's mutex is held and they do not change (Shows); what is kept for a Hold or taken to it, until that ends (Lasts). Only the runner of transactions ends it: when procedures and commit have returned, and
  // Ahead for what it kept or took, which all hand out no block (the types of their results). What CopyOf made may be seen besides until the WRITE is over, what Hold.Copy made until the transaction is, and both as long as a BMap has it: the logger and the installer
  // see those of the maps that do not change while they are at it (frozen, frozenDirect, installing), whose BLists they make. Put, Clear and the end of a map give back. All other blocks live as long as they are seen.
  // Tested: dlog.TestHold, TestHoldCopy, TestSmall, TestTake, TestBMapRetains, dbytes.TestPool, fs.TestWriteMemory.
  class {:extern "Hold"} Hold {
    method {:extern "Keep"} Keep(ghost mu: Mutex, c: Cache, b: Blk) requires mu.Inside() && (Lasts(this, b) || c.Shows(b) || exists m: BMap :: m.Shows(b)) ensures Lasts(this, b)
    method {:extern "Take"} Take(l: BList) requires !l.taken modifies l ensures l.taken && forall b: Blk :: l.Shows(b) ==> Lasts(this, b)
    // 256 bytes, which hold anything; their memory is used again when the results of the transaction's procedure have been looked at; tested: dlog.TestSmall
    method {:extern "Small"} Small() returns (b: Bytes) ensures fresh(b) && |b.data| == 256
    // a mutable copy, which may be seen until the transaction is over, and as long as a BMap has it; tested: dlog.TestHoldCopy
    method {:extern "Copy"} Copy(b: Blk) returns (c: Bytes) ensures fresh(c) && c.data == b.v
  }
  predicate {:axiom} Lasts(h: Hold, b: Blk)           // b may be seen until h ends
  // A bounded cache: it may forget at any time, and remembers nothing else than what was put there.
  class {:extern "Cache"} Cache {         // tested: dlog.TestCache
    ghost var m: BM
    predicate {:axiom} Shows(b: Blk) reads this     // as of a BMap
    method {:extern "Get"} Get(a: uint64) returns (b: Blk?)
      ensures b != null ==> a as int in m && b.v == m[a as int] && |b.v| == 4096 && Shows(b)
    method {:extern "Put"} Put(a: uint64, b: Blk)
      requires |b.v| == 4096 modifies this
      ensures forall x :: x in m ==> if x == a as int then m[x] == b.v else x in old(m) && m[x] == old(m)[x]
    method {:extern "Forget"} Forget(a: uint64)
      modifies this ensures forall x :: x in m ==> x != a as int && x in old(m) && m[x] == old(m)[x]
  }

  // A mutex with condition variables 0..4. `held`: by the calling thread. `settled`: what that thread knows of the shared state is up to date, as there was
  // a Yield (verified/journal/threads.dfy), whose thread this is; null: there was none since the mutex changed hands.
  class {:extern "Mutex"} Mutex {         // tested: dlog.TestMutex
    ghost var held: bool
    ghost var settled: object?
    predicate Inside() reads this { held && settled != null }
    method {:extern "Lock"} Lock()
      requires !held modifies this ensures held && settled == null
    method {:extern "Unlock"} Unlock()
      requires held modifies this ensures !held && settled == null
    // releases the mutex, waits for a wake-up (or returns for no reason), takes it again
    method {:extern "Wait"} Wait(c: uint32)
      requires held && c < 5 modifies this`settled ensures settled == null
    // for Yields alone
    ghost method Yielded(thread: object) modifies this`settled ensures settled == thread { settled := thread; }
    method {:extern "WakeOne"} WakeOne(c: uint32) requires c < 5
    method {:extern "WakeAll"} WakeAll(c: uint32) requires c < 5
  }

  // Numbers 0..14 that steer when things are done, not what is done: Get promises nothing. (10 and 11 grow by themselves: milliseconds.)
  // Bulk: is block a wished to go straight home, not through the log?
  class {:extern "Notes"} Notes {         // tested: dlog.TestNotes, TestAge, TestWishes
    method {:extern "Get"} Get(i: uint32) returns (x: uint64) requires i < 15
    method {:extern "Set"} Set(i: uint32, x: uint64) requires i < 15
    method {:extern "Bulk"} Bulk(a: uint64) returns (b: bool)
    method {:extern "Damaged"} Damaged(a: uint64)    // block a is not what was written there
  }
  method {:extern "NewNotes"} NewNotes() returns (n: Notes)       // tested: dlog.TestNotes, TestWishes

  // Codes of nodes of the tree of codes (verified/journal/codes.dfy).
  datatype Code = Code(x: int, c: CV)
  class {:extern "Codes"} Codes {         // tested: dlog.TestCodes
    ghost var s: seq<Code>
    method {:extern "Add"} Add(x: uint64, c0: uint64, c1: uint64) modifies this ensures s == old(s) + [Code(x as int, CV(c0, c1))]
    method {:extern "Len"} Len() returns (n: uint64) ensures n as int == |s|
    method {:extern "At"} At(i: uint64) returns (x: uint64, c0: uint64, c1: uint64) requires i as int < |s| ensures s[i as int] == Code(x as int, CV(c0, c1))
    method {:extern "Sort"} Sort()          // by node
      modifies this ensures |s| == |old(s)| && (forall e :: e in s <==> e in old(s)) && forall i, k :: 0 <= i < k < |s| ==> s[i].x <= s[k].x
  }
  method {:extern "NewCodes"} NewCodes() returns (c: Codes) ensures fresh(c) && c.s == []
  // the codes of x and, behind them, of y, which it may be. Tested: dlog.TestJoinCodes
  method {:extern "JoinCodes"} JoinCodes(x: Codes, y: Codes) returns (c: Codes) ensures (c == y || fresh(c)) && c.s == x.s + y.s
  // What is in memory of the tree: its root and some of its pages, of the newest version; and the codes of blocks that went
  // straight home and are not in the pages yet (held). Each call is atomic; versions are never taken back.
  class {:extern "Pages"} Pages {         // tested: dlog.TestPages, TestHeld
    ghost const t: TreeGeo
    ghost const first: int        // where they lie
    ghost var vs: seq<seq<BV>>    // the pages, and the root, of every version so far: at the beginning zeros
    ghost var rs: seq<CV>
    ghost var held: map<int, CV>
    lemma {:axiom} Trees() ensures |vs| == |rs| > 0 && (t.np > 0 ==> forall v :: 0 <= v < |vs| ==> IsTree(t, vs[v], rs[v]))
    method {:extern "Root"} Root() returns (version: uint64, r0: uint64, r1: uint64) ensures |rs| == |vs| && version as int == |vs| - 1 && rs[version as int] == CV(r0, r1)
    method {:extern "Get"} Get(version: uint64, p: uint64) returns (b: Blk?)
      ensures b != null ==> version as int < |vs| && p as int < |vs[version as int]| && b.v == vs[version as int][p as int] && InPlace(first, p as int, b.v)
    method {:extern "Put"} Put(version: uint64, p: uint64, b: Blk) requires version as int < |vs| && p as int < |vs[version as int]| && b.v == vs[version as int][p as int] && InPlace(first, p as int, b.v)
    // the root, and the code of node x if it is held
    method {:extern "Look"} Look(x: uint64) returns (has: bool, c0: uint64, c1: uint64, version: uint64, r0: uint64, r1: uint64)
      ensures |rs| == |vs| && version as int == |vs| - 1 && rs[version as int] == CV(r0, r1) && has == (x as int in held) && (has ==> held[x as int] == CV(c0, c1))
    method {:extern "HoldAll"} HoldAll(c: Codes)
      modifies this`held ensures forall x :: x in held <==> x in old(held) || exists i :: 0 <= i < |c.s| && c.s[i].x == x
      ensures forall x :: x in held ==> (x in old(held) && held[x] == old(held)[x]) || exists i :: 0 <= i < |c.s| && c.s[i] == Code(x, held[x])
    // the version that a header tells of
    method {:extern "Begin"} Begin(r0: uint64, r1: uint64, ghost pg: seq<BV>) requires t.np > 0 ==> IsTree(t, pg, CV(r0, r1))
      modifies this`vs, this`rs ensures vs == old(vs) + [pg] && rs == old(rs) + [CV(r0, r1)]
    // the next version: the codes of c, in the order of the nodes, are in its pages, which are nodes from n on; other pages are what
    // they were. The codes of the blocks of drop are held no longer; home is the address of node 0.
    method {:extern "Next"} Next(c: Codes, n: uint64, r0: uint64, r1: uint64, drop: BMap, home: uint64, ghost pg: seq<BV>)
      requires t.np > 0 ==> n as int == t.n && |vs| > 0 && IsTree(t, pg, CV(r0, r1)) && |vs[|vs| - 1]| == t.np &&
        forall p :: 0 <= p < t.np && pg[p] != vs[|vs| - 1][p] ==> exists i :: 0 <= i < |c.s| && c.s[i].x / 255 == p
      modifies this ensures vs == old(vs) + [pg] && rs == old(rs) + [CV(r0, r1)]
      ensures held == map x | x in old(held) && x + home as int !in drop.m :: old(held)[x]
  }

  // The seal of a volume's records: a message authentication code under the volume's
  // random key. THE ASSUMPTION ABOUT IT: Check and Vouch accept what was sealed with this key,
  // in whatever life of the server, and nothing else; so does DecHdr with headers. `signed` is what was sealed so
  // far; a crash does not change it. (AES-GMAC of 128 bits, a key for each epoch,
  // the sequence number as its nonce: hence Sign's second precondition; HMAC-SHA256 for headers.)
  class {:extern "Seal"} Seal {           // tested: dlog.TestSeal, TestSealDirect, TestEpochs; headers: TestHeader
    ghost const key: int
    ghost const t: TreeGeo          // the tree of its volume; np = 0: there is none
    ghost const home: int           // where node 0 lies
    ghost var ep: int               // the epoch: a random number for each opening of the volume
    ghost var signed: set<Rec>
    // of each number one record was sealed (Sign's second precondition)
    lemma {:axiom} Once() ensures forall r, s :: r in signed && s in signed && DecDesc(r.b).SomeDesc? && DecDesc(s.b).SomeDesc? && DecDesc(r.b).d.sq == DecDesc(s.b).d.sq ==> r == s
    method {:extern "NewEpoch"} NewEpoch() modifies this ensures signed == old(signed)
    // bm: the blocks in the log, hm: the direct ones, and c their codes. What is sealed of these is their codes: that
    // Check accepts no other data with the same code is the assumption about codes (OneContents).
    method {:extern "Sign"} Sign(sq: uint64, dur: uint64, pos: uint64, bm: BMap, hm: BMap) returns (b: Blk, c: Codes)
      requires bm.Ok() && hm.Ok() && |bm.addrs| + |hm.addrs| <= 500 && (forall a :: a in hm.m ==> home <= a) && dur <= sq && sq as int - dur as int < 1000
      requires forall r :: r in signed ==> DecDesc(r.b).SomeDesc? && DecDesc(r.b).d.sq < sq as int
      modifies this ensures |b.v| == 4096 && DecDesc(b.v) == SomeDesc(Desc(ep, sq as int, dur as int, pos as int, bm.addrs, hm.addrs))
      ensures ep == old(ep) && signed == old(signed) + {Rec(b.v, BlksOf(bm.m, bm.addrs) + BlksOf(hm.m, hm.addrs))}
      ensures fresh(c) && |c.s| == |hm.addrs| && forall i :: 0 <= i < |c.s| ==> c.s[i].x == hm.addrs[i] - home && Vouches(key, c.s[i].x, c.s[i].c, hm.m[hm.addrs[i]])
    // x, y: the blocks in the log, z: the direct ones, whose codes c gets if the record is a sealed one
    method {:extern "Check"} Check(d: DescR, x: BList, y: BList, z: BList, c: Codes) returns (ok: bool)
      requires |z.blks| == |d.d.dirs| modifies c ensures ok <==> Rec(d.b, x.blks + y.blks + z.blks) in signed
      ensures |c.s| == |old(c.s)| + (if ok then |z.blks| else 0) && c.s[..|old(c.s)|] == old(c.s) && forall i :: |old(c.s)| <= i < |c.s| ==> var k := i - |old(c.s)|; c.s[i].x == d.d.dirs[k] - home && Vouches(key, c.s[i].x, c.s[i].c, z.blks[k])
    // is the descriptor a sealed one, whatever became of its data?
    method {:extern "Vouch"} Vouch(d: DescR) returns (ok: bool) ensures ok ==> exists l :: Rec(d.b, l) in signed
    // headers: zero beyond their first sector. r0, r1: the code of the root of the tree of codes. A header that is one was made here.
    method {:extern "EncHdr"} EncHdr(q: uint64, r0: uint64, r1: uint64) returns (b: Blk)
      requires IsRoot(t, CV(r0, r1)) ensures HdrTail(b.v) && DecHdr(key, b.v) == Hdr(q as int, ep, CV(r0, r1))
    method {:extern "Root"} Root(h: Blk) returns (r0: uint64, r1: uint64) ensures DecHdr(key, h.v).Hdr? ==> DecHdr(key, h.v).root == CV(r0, r1) && IsRoot(t, CV(r0, r1))
    // the code of contents b of node x, always the same; tested: dlog.TestCode
    method {:extern "Code"} Code(x: uint64, b: Blk) returns (c0: uint64, c1: uint64)
      ensures CV(c0, c1) != CV(0, 0) && Coded(key, x as int, b.v, CV(c0, c1)) && forall c :: Coded(key, x as int, b.v, c) ==> c == CV(c0, c1)
    method {:extern "DecHdr"} DecHdrM(b: Blk) returns (ok: bool, q: uint64)
      ensures ok <==> DecHdr(key, b.v).Hdr? && 0 <= DecHdr(key, b.v).q < 0x4000_0000_0000_0000
      ensures ok ==> q as int == DecHdr(key, b.v).q
    // is header h of the epoch of descriptor d?  Ours: of this opening?
    method {:extern "Under"} Under(d: DescR, h: Blk) returns (ok: bool)
      ensures ok <==> DecHdr(key, h.v).Hdr? && DecHdr(key, h.v).ep == d.d.ep
    method {:extern "Ours"} Ours(h: Blk) returns (ok: bool)
      ensures ok <==> DecHdr(key, h.v).Hdr? && DecHdr(key, h.v).ep == ep
  }

  // A parsed descriptor (not checked yet)
  class {:extern "DescR"} DescR {         // tested: dlog.TestSeal
    ghost const b: BV
    ghost const d: Desc
    method {:extern "Sq"} Sq() returns (q: uint64) ensures q as int == d.sq
    method {:extern "Dur"} Dur() returns (q: uint64) ensures q as int == d.dur
    method {:extern "Pos"} Pos() returns (q: uint64) ensures q as int == d.pos
    method {:extern "N"} N() returns (q: uint64) ensures q as int == |d.addrs|
    method {:extern "Addr"} Addr(i: uint64) returns (a: uint64)
      requires i as int < |d.addrs| ensures a as int == d.addrs[i as int]
    method {:extern "M"} M() returns (q: uint64) ensures q as int == |d.dirs|
    method {:extern "Dir"} Dir(i: uint64) returns (a: uint64)
      requires i as int < |d.dirs| ensures a as int == d.dirs[i as int]
  }
  method {:extern "Parse"} Parse(b: Blk) returns (r: DescR?)     // tested: dlog.TestSeal, TestParse
    ensures (r == null) == (DecDesc(b.v) == NoDesc)
    ensures r != null ==> DecDesc(b.v) == SomeDesc(r.d) && r.b == b.v
}
