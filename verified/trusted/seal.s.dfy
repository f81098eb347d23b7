// TRUSTED: the seal of the records of the journal's log, and the assumption about it. Go: internal/runtime/seal.
include "blockmap.s.dfy"
include "codes.s.dfy"

module {:extern "seal"} Seals {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened DiskS
  import opened CodeTreeSpec
  import opened RecordSpec
  import opened MapsOfBlocks
  import opened CodeLists

  // The seal of a volume's records: a message authentication code under the volume's random key.
  // THE ASSUMPTION ABOUT IT: Check and Vouch accept what was sealed with this key, in whatever life of the server, and
  // nothing else; so does DecHdr with headers. `signed` is what was sealed so far; a crash does not change it.
  // (AES-GMAC of 128 bits, a key for each epoch, the sequence number as its nonce: hence Sign's second precondition;
  // HMAC-SHA256 for headers.)
  class {:extern "Seal"} Seal {           // tested: seal.TestSeal, TestSealDirect, TestEpochs; headers: TestHeader
    ghost const key: int
    ghost const t: TreeGeo          // the tree of its volume; np = 0: there is none
    ghost const home: int           // where node 0 lies
    ghost var ep: int               // the epoch: a random number for each opening of the volume
    ghost var epochs: set<int>      // those of all who have opened the volume
    ghost var signed: set<Rec>
    // of each number one record was sealed (Sign's second precondition)
    lemma {:axiom} Once()
      ensures forall r, s :: r in signed && s in signed && DecDesc(r.b).SomeDesc? && DecDesc(s.b).SomeDesc? &&
        DecDesc(r.b).d.sq == DecDesc(s.b).d.sq ==> r == s
    // The write verifier of each opening (life), made of its epoch: 64 bits. No two had the same.
    lemma {:axiom} Lives()
      ensures forall e: int, f: int {:trigger Life(key, e), Life(key, f)} ::
        e in epochs && f in epochs && Life(key, e) == Life(key, f) ==> e == f
    // tested: seal.TestLife
    method {:extern "Verifier"} Verifier() returns (v: uint64) ensures v == Life(key, ep)
    method {:extern "NewEpoch"} NewEpoch()
      modifies this
      ensures signed == old(signed) && ep !in old(epochs) && epochs == old(epochs) + {ep}
    // bm: the blocks in the log, hm: the direct ones, and c their codes. What is sealed of these is their codes: that
    // Check accepts no other data with the same code is the assumption about codes (OneContents).
    method {:extern "Sign"} Sign(sq: uint64, dur: uint64, pos: uint64, bm: BlockMap, hm: BlockMap)
      returns (b: Blk, c: Codes)
      requires bm.Ok() && hm.Ok() && |bm.addrs| + |hm.addrs| <= 500 && (forall a :: a in hm.m ==> home <= a) &&
        dur <= sq && sq as int - dur as int < 1000
      requires forall r :: r in signed ==> DecDesc(r.b).SomeDesc? && DecDesc(r.b).d.sq < sq as int
      modifies this
      ensures |b.v| == 4096 &&
        DecDesc(b.v) == SomeDesc(Desc(ep, sq as int, dur as int, pos as int, bm.addrs, hm.addrs))
      ensures ep == old(ep) && epochs == old(epochs) &&
        signed == old(signed) + {Rec(b.v, BlksOf(bm.m, bm.addrs) + BlksOf(hm.m, hm.addrs))}
      ensures fresh(c) && |c.s| == |hm.addrs| && forall i :: 0 <= i < |c.s| ==>
        c.s[i].x == hm.addrs[i] - home && Vouches(key, c.s[i].x, c.s[i].c, hm.m[hm.addrs[i]])
    // x, y: the blocks in the log, z: the direct ones, whose codes c gets if the record is a sealed one
    method {:extern "Check"} Check(d: Descriptor, x: BList, y: BList, z: BList, c: Codes) returns (ok: bool)
      requires |z.blks| == |d.d.dirs|
      modifies c
      ensures ok <==> Rec(d.b, x.blks + y.blks + z.blks) in signed
      ensures |c.s| == |old(c.s)| + (if ok then |z.blks| else 0) && c.s[..|old(c.s)|] == old(c.s) &&
        forall i :: |old(c.s)| <= i < |c.s| ==> var k := i - |old(c.s)|;
          c.s[i].x == d.d.dirs[k] - home && Vouches(key, c.s[i].x, c.s[i].c, z.blks[k])
    // is the descriptor a sealed one, whatever became of its data?
    method {:extern "Vouch"} Vouch(d: Descriptor) returns (ok: bool)
      ensures ok <==> exists l :: Rec(d.b, l) in signed
    // headers: zero beyond their first sector. r0, r1: the code of the root of the tree of codes. A header that is one
    // was made here.
    method {:extern "EncHdr"} EncHdr(q: uint64, r0: uint64, r1: uint64) returns (b: Blk)
      requires IsRoot(t, CV(r0, r1)) ensures HdrTail(b.v) && DecHdr(key, b.v) == Hdr(q as int, ep, CV(r0, r1))
    method {:extern "Root"} Root(h: Blk) returns (r0: uint64, r1: uint64)
      ensures DecHdr(key, h.v).Hdr? ==> DecHdr(key, h.v).root == CV(r0, r1) && IsRoot(t, CV(r0, r1))
    // the code of contents b of node x, always the same; tested: seal.TestCode
    method {:extern "Code"} Code(x: uint64, b: Blk) returns (c0: uint64, c1: uint64)
      ensures CV(c0, c1) != CV(0, 0) && Coded(key, x as int, b.v, CV(c0, c1)) &&
        forall c :: Coded(key, x as int, b.v, c) ==> c == CV(c0, c1)
    method {:extern "DecHdr"} DecHdrM(b: Blk) returns (ok: bool, q: uint64)
      ensures ok <==> DecHdr(key, b.v).Hdr? && 0 <= DecHdr(key, b.v).q < 0x4000_0000_0000_0000
      ensures ok ==> q as int == DecHdr(key, b.v).q
    // is header h of the epoch of descriptor d?  Ours: of this opening?
    method {:extern "Under"} Under(d: Descriptor, h: Blk) returns (ok: bool)
      ensures ok <==> DecHdr(key, h.v).Hdr? && DecHdr(key, h.v).ep == d.d.ep
    method {:extern "Ours"} Ours(h: Blk) returns (ok: bool)
      ensures ok <==> DecHdr(key, h.v).Hdr? && DecHdr(key, h.v).ep == ep
  }

  function {:axiom} Life(key: int, ep: int): uint64

  // A parsed descriptor (not checked yet)
  class {:extern "Descriptor"} Descriptor {       // tested: seal.TestSeal
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
  method {:extern "Parse"} Parse(b: Blk) returns (r: Descriptor?)     // tested: seal.TestSeal, TestParse
    ensures (r == null) == (DecDesc(b.v) == NoDesc)
    ensures r != null ==> DecDesc(b.v) == SomeDesc(r.d) && r.b == b.v
}
