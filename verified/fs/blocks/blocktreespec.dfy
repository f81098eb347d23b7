// Block trees: an imap from positions to block numbers in which no block is
// referenced twice, and the contents of every data block.
//
// The invariant consists of predicates over plain values; the lemmas say what
// one step of blocktree.dfy or unmapping.dfy does to them.
include "blockstore.dfy"
include "positions.dfy"
module BlockTreeSpec {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened VolumeGeometry
  import opened Marshal
  import opened InodeFormat
  import opened BlockStore
  import opened Positions

  type BlkMap = imap<Pos, uint64>
  type Owner = map<uint64, Option<Pos>>
  type Data = imap<Pos, seq<byte>>

  predicate IsDom(bm: BlkMap) { forall p: Pos {:trigger OkPos(p)} {:trigger bm[p]} | OkPos(p) :: p in bm }
  predicate BlocksDom(g: Geo, bs: Blocks) { forall b: uint64 {:trigger OkBlk(g, b)} | OkBlk(g, b) :: b in bs && |bs[b]| == 4096 }

  // no block is referenced twice, and exactly the referenced ones are used
  predicate {:opaque} OwnerOk(g: Geo, bm: BlkMap, owner: Owner, used: map<uint64, bool>)
    requires IsDom(bm)
  {
    && (forall b: uint64 {:trigger OkBlk(g, b)} | OkBlk(g, b) ::
          b in owner && b in used && (owner[b].Some? <==> used[b]) &&
          (owner[b].Some? ==> OkPos(owner[b].x) && bm[owner[b].x] == b))
    && (forall p: Pos {:trigger OkPos(p)} | OkPos(p) && bm[p] != 0 ::
          OkBlk(g, bm[p]) && bm[p] in owner && owner[bm[p]] == Some(p))
  }

  // the slots of the inodes
  predicate {:opaque} RootsOk(g: Geo, bm: BlkMap, inodes: map<uint64, Inode>)
    requires IsDom(bm)
  {
    forall p: Pos {:trigger OkPos(p)} | OkPos(p) && p.lev == 0 ::
      if OkIno(g, p.ino) then p.ino in inodes && |inodes[p.ino].blks| == 15 && bm[p] == inodes[p.ino].blks[p.k]
      else bm[p] == 0
  }

  function Entry(bs: Blocks, bn: uint64, i: uint64): uint64
    requires i < 512
  { if bn == 0 || bn !in bs || |bs[bn]| != 4096 then 0 else U64At(bs[bn], 8 * i as int) }

  // the entries of the indirect blocks
  predicate {:opaque} LinksOk(bm: BlkMap, bs: Blocks)
    requires IsDom(bm)
  {
    forall p: Pos {:trigger OkPos(p)} | OkPos(p) && p.lev > 0 ::
      OkPos(Parent(p)) && bm[p] == Entry(bs, bm[Parent(p)], p.j % 512)
  }

  function BlockOf(bm: BlkMap, bs: Blocks, p: Pos): seq<byte>
    requires p in bm
  { if bm[p] in bs then bs[bm[p]] else Zeros(4096) }

  predicate {:opaque} DataOk(bm: BlkMap, bs: Blocks, data: Data)
    requires IsDom(bm)
  {
    forall p: Pos {:trigger IsData(p)} | IsData(p) ::
      OkPos(p) && p in data && |data[p]| == 4096 && data[p] == (if bm[p] == 0 then Zeros(4096) else BlockOf(bm, bs, p))
  }

  // the whole invariant over the blocks bs
  predicate TreesOk(g: Geo, bm: BlkMap, owner: Owner, used: map<uint64, bool>, bs: Blocks, data: Data) {
    IsDom(bm) && BlocksDom(g, bs) && OwnerOk(g, bm, owner, used) && LinksOk(bm, bs) && DataOk(bm, bs, data)
  }

  // bs' is bs with nb holding c, and below the indirect block pn (0 = none) the
  // entry i changed to x
  predicate Linked(g: Geo, bs: Blocks, bs': Blocks, pn: uint64, i: uint64, x: uint64)
    requires i < 512
  {
    && OkBlk(g, pn) && pn in bs
    && (forall b: uint64 {:trigger OkBlk(g, b)} | OkBlk(g, b) && b != pn :: b in bs && b in bs' && bs'[b] == bs[b])
    && Entry(bs', pn, i) == x
    && forall e: uint64 {:trigger Entry(bs', pn, e)} | e < 512 && e != i :: Entry(bs', pn, e) == Entry(bs, pn, e)
  }

  // --- the steps ---

  // a new block nb with contents c hung at p: the inode slot, or entry p.j%512 of its parent
  lemma OwnerAlloc(g: Geo, bm: BlkMap, owner: Owner, used: map<uint64, bool>, p: Pos, nb: uint64)
    requires GeoOk(g) && IsDom(bm) && OwnerOk(g, bm, owner, used)
    requires OkPos(p) && bm[p] == 0 && OkBlk(g, nb) && nb in used && !used[nb]
    ensures IsDom(bm[p := nb])
    ensures OwnerOk(g, bm[p := nb], owner[nb := Some(p)], used[nb := true])
  { reveal OwnerOk(); }

  // the roots after a change at p (x: the new block number, 0 when freed)
  lemma RootsStep(g: Geo, bm: BlkMap, inodes: map<uint64, Inode>, p: Pos, x: uint64, i': Inode)
    requires IsDom(bm) && RootsOk(g, bm, inodes) && OkIno(g, p.ino)
    requires OkPos(p) && p.ino in inodes && |inodes[p.ino].blks| == 15
    requires p.lev == 0 ==> i'.blks == inodes[p.ino].blks[p.k as int := x]
    requires p.lev != 0 ==> i'.blks == inodes[p.ino].blks
    ensures IsDom(bm[p := x])
    ensures RootsOk(g, bm[p := x], inodes[p.ino := i'])
  {
    reveal RootsOk();
    var bm' := bm[p := x];
    var inodes' := inodes[p.ino := i'];
    forall q: Pos | OkPos(q) && q.lev == 0
      ensures if OkIno(g, q.ino) then q.ino in inodes' && |inodes'[q.ino].blks| == 15 && bm'[q] == inodes'[q.ino].blks[q.k] else bm'[q] == 0
    {
      if q.ino == p.ino && q.k == p.k && p.lev == 0 { assert q.j == 0 && p.j == 0; assert q == p; }
    }
  }

  lemma LinksAlloc(g: Geo, bm: BlkMap, owner: Owner, used: map<uint64, bool>, bs: Blocks, bs': Blocks, p: Pos, nb: uint64, c: seq<byte>)
    requires GeoOk(g) && IsDom(bm) && OwnerOk(g, bm, owner, used) && LinksOk(bm, bs) && BlocksDom(g, bs)
    requires OkPos(p) && bm[p] == 0 && OkBlk(g, nb) && nb in used && !used[nb]
    requires |c| == 4096 && (IsData(p) || c == Zeros(4096))
    requires p.lev == 0 ==> bs' == bs[nb := c]
    requires p.lev > 0 ==> OkPos(Parent(p)) && bm[Parent(p)] != 0 && bm[Parent(p)] != nb &&
      Linked(g, bs[nb := c], bs', bm[Parent(p)], p.j % 512, nb)
    requires BlocksDom(g, bs')
    ensures IsDom(bm[p := nb])
    ensures LinksOk(bm[p := nb], bs')
  {
    var bm' := bm[p := nb];
    reveal LinksOk();
    reveal OwnerOk();
    if p.lev > 0 { assert OkPos(Parent(p)); assert OkBlk(g, bm[Parent(p)]); assert bm[Parent(p)] != nb; }
    assert bs'[nb] == c;
    forall q: Pos | OkPos(q) && q.lev > 0
      ensures OkPos(Parent(q)) && bm'[q] == Entry(bs', bm'[Parent(q)], q.j % 512)
    {
      ParentOk(q);
      assert bm[q] == Entry(bs, bm[Parent(q)], q.j % 512);
      if Parent(q) == p {
        assert bm[q] == 0;
        assert q != p;
        assert bs'[nb] == Zeros(4096);
        U64AtZeros(4096, 8 * (q.j % 512) as int);
      } else if q == p {
      } else if p.lev > 0 && Parent(q) == Parent(p) {
        if q.j % 512 == p.j % 512 { Siblings(p, q); }
        var pn := bm[Parent(p)];
        assert Entry(bs', pn, q.j % 512) == Entry(bs[nb := c], pn, q.j % 512) == Entry(bs, pn, q.j % 512);
      } else {
        var b := bm[Parent(q)];
        if b != 0 {
          assert owner[b] == Some(Parent(q));
          assert b != nb;
          if p.lev > 0 { assert owner[bm[Parent(p)]] == Some(Parent(p)); assert b != bm[Parent(p)]; }
          assert OkBlk(g, b);
          assert bs'[b] == bs[b];
        }
      }
    }
  }

  lemma DataAlloc(g: Geo, bm: BlkMap, owner: Owner, used: map<uint64, bool>, bs: Blocks, bs': Blocks, data: Data, p: Pos, nb: uint64, c: seq<byte>)
    requires GeoOk(g) && IsDom(bm) && OwnerOk(g, bm, owner, used) && BlocksDom(g, bs) && DataOk(bm, bs, data)
    requires OkPos(p) && bm[p] == 0 && OkBlk(g, nb) && nb in used && !used[nb] && |c| == 4096
    requires BlocksDom(g, bs')
    requires p.lev == 0 ==> bs' == bs[nb := c]
    requires p.lev > 0 ==> OkPos(Parent(p)) && bm[Parent(p)] != 0 && bm[Parent(p)] != nb &&
      Linked(g, bs[nb := c], bs', bm[Parent(p)], p.j % 512, nb)
    ensures IsDom(bm[p := nb])
    ensures DataOk(bm[p := nb], bs', if IsData(p) then data[p := c] else data)
  {
    var bm' := bm[p := nb];
    var data' := if IsData(p) then data[p := c] else data;
    reveal OwnerOk(); reveal DataOk();
    assert bs'[nb] == c;
    forall q: Pos | IsData(q)
      ensures OkPos(q) && q in data' && |data'[q]| == 4096 && data'[q] == (if bm'[q] == 0 then Zeros(4096) else BlockOf(bm', bs', q))
    {
      assert OkPos(q);
      if p.lev > 0 { ParentOk(p); assert q != Parent(p); assert OkPos(Parent(p)); }
      if q == p {
      } else if bm[q] != 0 {
        assert owner[bm[q]] == Some(q);
        assert bm[q] != nb;
        assert OkBlk(g, bm[q]);
        if p.lev > 0 { assert owner[bm[Parent(p)]] == Some(Parent(p)); assert bm[q] != bm[Parent(p)]; }
        assert bs'[bm[q]] == bs[bm[q]];
      }
    }
  }

  // the data block at p overwritten
  lemma WriteOne(g: Geo, bm: BlkMap, owner: Owner, used: map<uint64, bool>, bs: Blocks, data: Data, p: Pos, c: seq<byte>)
    requires GeoOk(g) && TreesOk(g, bm, owner, used, bs, data)
    requires IsData(p) && p in bm && bm[p] != 0 && |c| == 4096
    ensures TreesOk(g, bm, owner, used, bs[bm[p] := c], data[p := c])
  {
    var bs' := bs[bm[p] := c];
    assert OkPos(p);
    assert DataOk(bm, bs', data[p := c]) by {
      reveal OwnerOk(); reveal DataOk();
      forall q: Pos | IsData(q) && q != p
        ensures bm[q] != 0 ==> bm[q] != bm[p]
      { assert OkPos(q); }
    }
    assert LinksOk(bm, bs') by {
      reveal OwnerOk(); reveal LinksOk();
      forall q: Pos | OkPos(q) && q.lev > 0
        ensures OkPos(Parent(q)) && bm[q] == Entry(bs', bm[Parent(q)], q.j % 512)
      { ParentOk(q); assert Parent(q) != p; assert bm[Parent(q)] == bm[p] ==> bm[p] == 0; }
    }
  }
}
