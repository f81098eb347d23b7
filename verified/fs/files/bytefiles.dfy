// Files as byte sequences: the face of the file layer to directories and to the
// NFS procedures.
//
// Every inode of the volume has attributes (metas), bytes (files), and blocks that are
// there (held); those of a free inode (type 0) mean nothing. Times and attributes other than size and
// shrink are the callers' business. ok = false means: abort the transaction.
include "reading.dfy"
include "writing.dfy"
include "shrinking.dfy"
include "punching.dfy"
include "attributechanges.dfy"
module ByteFiles {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened TxnSpec
  import opened TxnS
  import opened VolumeGeometry
  import opened InodeFormat
  import opened BlockStore
  import opened Positions
  import opened BlockTreeSpec
  import opened BlockTree
  import opened ByteMap
  import opened Reading
  import opened Writing
  import opened Unmapping
  import opened Shrinking
  import Seeking
  import Punching
  import opened AttributeChanges
  import opened AllocatedRange
  import opened CountedBlocks
  import opened HeldBlocks
  import C = NfsCommon
  import N = NfsState
  import Local = NfsLocal
  import Room = NfsRoom

  // what writing s at off makes of f
  function WriteSpec(f: seq<byte>, off: int, s: seq<byte>): (r: seq<byte>)
    requires 0 <= off
    ensures |r| == (if off + |s| > |f| then off + |s| else |f|)
    ensures forall i: int | 0 <= i < |r| :: r[i] ==
      (if off <= i < off + |s| then s[i - off] else if i < |f| then f[i] else 0)
  {
    var g := if off + |s| > |f| then f + Zeros(off + |s| - |f|) else f;
    Splice(g, off, s)
  }

  // may bytes up to end be written? (No file is so long, or what was cut off has to be freed first.)
  predicate MayWrite(m: Meta, end: int) { end <= 549755813888 && (end <= m.size as int || m.shrink == 0) }

  // bytes [off, off+len) lie within one block of f which is not all zeros: it is there,
  // and overwriting it needs no space
  predicate Settled(f: seq<byte>, off: int, len: int)
  { 0 <= off && 0 < len && off + len <= |f| && off % 4096 + len <= 4096 && exists i: int {:trigger f[i]} ::
    off / 4096 * 4096 <= i < off / 4096 * 4096 + 4096 && i < |f| && f[i] != 0 }

  // a file cut to sz, or grown by zeros
  function SizeSpec(f: seq<byte>, sz: int): (r: seq<byte>)
    requires 0 <= sz
    ensures |r| == sz
    ensures forall i: int | 0 <= i < sz :: r[i] == (if i < |f| then f[i] else 0)
  { if sz <= |f| then f[..sz] else f + Zeros(sz - |f|) }

  lemma FileWrite(d0: Data, d: Data, ino: uint64, f: seq<byte>, off: int, s: seq<byte>, shrink: int)
    requires FileMatch(d0, ino, f, shrink) && 0 <= off && off + |s| <= 549755813888
    requires shrink == 0 || off + |s| <= |f|
    requires Wrote(d0, d, ino, off, s)
    ensures FileMatch(d, ino, WriteSpec(f, off, s), shrink)
  { reveal FileMatch(); reveal Wrote(); }

  // cut to sz, the rest of its last block zeroed: what lies beyond waits to be freed
  lemma FileCut(d0: Data, d: Data, ino: uint64, f: seq<byte>, sz: int, shrink: int, shrink': int)
    requires FileMatch(d0, ino, f, shrink) && 0 <= sz < |f|
    requires Wrote(d0, d, ino, sz, Zeros(Up(sz) - sz))
    requires 0 <= shrink && shrink' <= 549755813888 &&
      (if shrink' == 0 then shrink == 0 && Up(sz) == Up(|f|) else shrink <= shrink' && |f| <= shrink')
    ensures FileMatch(d, ino, f[..sz], shrink')
  { reveal FileMatch(); reveal Wrote(); }

  lemma FileGrow(d: Data, ino: uint64, f: seq<byte>, sz: int)
    requires FileMatch(d, ino, f, 0) && |f| <= sz <= 549755813888
    ensures FileMatch(d, ino, f + Zeros(sz - |f|), 0)
  { reveal FileMatch(); }

  // the blocks m to n freed
  lemma FileFreed(d0: Data, d: Data, ino: uint64, f: seq<byte>, shrink: int, m: int, n: int, shrink': int)
    requires FileMatch(d0, ino, f, shrink) && shrink <= 4096 * n <= 549755813888 && Up(|f|) <= 4096 * m <= 4096 * n
    requires Cut(d0, d, ino, 4096 * m, 4096 * n)
    requires shrink' == 4096 * m || (shrink' == 0 && 4096 * m == Up(|f|))
    ensures FileMatch(d, ino, f, shrink')
  { reveal FileMatch(); reveal Cut(); }

  // the blocks m to n - 1 became holes
  lemma FilePunched(d0: Data, d: Data, ino: uint64, f: seq<byte>, shrink: int, m: int, n: int)
    requires FileMatch(d0, ino, f, shrink) && 0 <= m <= n && 4096 * n <= Up(|f|)
    requires Cut(d0, d, ino, 4096 * m, 4096 * n)
    ensures FileMatch(d, ino, Local.Zeroed(f, 4096 * m, 4096 * n), shrink)
  { reveal FileMatch(); reveal Cut(); }

  // a block that is not all zeros is there
  lemma HeldBytes(x: BlockTreeFs, ino: uint64, f: seq<byte>, shrink: int, h: set<int>)
    requires Ok(x) && FileMatch(x.data, ino, f, shrink) && IsHeld(x.blockMap, ino, |f|, h)
    ensures N.Held(f, h)
  {
    reveal FileMatch();
    forall b: int | b in h ensures 0 <= b && 4096 * b < |f| { assert There(x.blockMap, ino, b); }
    forall k: int | 0 <= k < |f| && f[k] != 0 ensures k / 4096 in h
    {
      assert ByteAt(x.data, ino, k) == f[k];
      BlockByte(x.data, ino, k);
      var p := PosOf(ino, (k / 4096) as uint64);
      assert IsData(p) && OkPos(p);
      if x.blockMap[p] == 0 {
        assert x.data[p] == Zeros(4096) by { reveal DataOk(); }
      }
      assert There(x.blockMap, ino, k / 4096);
    }
  }
  lemma SettledHeld(f: seq<byte>, h: set<int>, off: int, len: int)
    requires N.Held(f, h) && Settled(f, off, len)
    ensures C.Blocks(off, len) <= h
  {
    var i: int :| off / 4096 * 4096 <= i < off / 4096 * 4096 + 4096 && i < |f| && f[i] != 0;
    assert i / 4096 == off / 4096;
  }

  // a free inode has something that it would not have, or no generation left
  predicate Unfit(g: Geometry, metas: map<uint64, Meta>)
  {
    exists i: uint64 {:trigger OkIno(g, i)} :: OkIno(g, i) && i in metas && metas[i].ty == 0 &&
      (metas[i].size != 0 || metas[i].shrink != 0 || metas[i].gen == 0xffff_ffff_ffff_ffff)
  }

  class ByteFs {
    const geometry: Geometry
    const volume: VolumeObjects
    // for every inode number of the volume
    ghost var metas: map<uint64, Meta>
    ghost var files: map<uint64, seq<byte>>
    ghost var held: Helds
    const trees: BlockTreeFs       // the layers below: block trees over inodes and blocks (trees.store)

    constructor Recover(trees: BlockTreeFs, geometry: Geometry, volume: VolumeObjects)
      ensures this.trees == trees && this.geometry == geometry && this.volume == volume
    { this.trees := trees; this.geometry := geometry; this.volume := volume; }

    function Repr(): set<object> { {this} + trees.Repr() }

    predicate Below() reads trees, trees.store, volume
    { trees.store.geometry == geometry && trees.store.volume == volume && trees.Valid() && DataDom(trees.data) }

    predicate Valid() reads this, trees, trees.store, volume
      ensures Valid() ==> GeometryOk(geometry)
      ensures Valid() ==> forall i: uint64 {:trigger OkIno(geometry, i)} | OkIno(geometry, i) ::
        i in files && i in metas && i in held &&
                            |files[i]| == metas[i].size as int <= 549755813888
    {
      Below() && FilesOk(geometry, trees.data, trees.store.inodes, metas, files) &&
        ReachOk(geometry, trees.blockMap, metas) &&
        HeldOk(geometry, trees.blockMap, metas, held) &&
      (forall i: uint64 {:trigger OkIno(geometry, i)} | OkIno(geometry, i) :: i in held && |files[i]| <= 549755813888)
    }

    // what is not zero lies in a block that is there
    lemma Bytes(i: uint64)
      requires Valid() && OkIno(geometry, i)
      ensures i in files && i in held && N.Held(files[i], held[i])
    {
      HeldOf(geometry, trees.blockMap, metas, held, i);
      HeldBytes(trees, i, files[i], metas[i].shrink as int, held[i]);
    }

    // the count of an inode: never less than its blocks, and no more when nothing waits to be freed
    lemma Count(i: uint64)
      requires Valid() && OkIno(geometry, i)
      ensures i in metas && i in held && |held[i]| <= metas[i].used as int &&
        (metas[i].shrink == 0 ==> |held[i]| == metas[i].used as int)
    { HeldCount(geometry, trees.blockMap, metas, held, i); }
    // an inode as it is stored
    lemma Stored(ino: uint64, ip: Bytes)
      requires Valid() && OkIno(geometry, ino) && |ip.data| == 256 && ino in trees.store.inodes &&
        Parse(ip.data) == trees.store.inodes[ino]
      ensures trees.IsInode(ino, ip)
    { HeldOf(geometry, trees.blockMap, metas, held, ino); }

    // where no space is needed
    lemma Enough(i: uint64, off: uint64, len: uint64)
      requires Valid() && OkIno(geometry, i)
      ensures i in files && i in held && (Settled(files[i], off as int, len as int) ||
        C.Blocks(off as int, len as int) <= held[i] ==> Mapped(trees.blockMap, i, off, len))
    {
      Bytes(i);
      if Settled(files[i], off as int, len as int) { SettledHeld(files[i], held[i], off as int, len as int); }
      if C.Blocks(off as int, len as int) <= held[i] { HeldMapped(geometry, trees.blockMap, metas, held, i, off, len); }
    }

    // b (256 bytes) has the block slots of inode ino; GetInode ensures it, setters keep it
    predicate SameBlks(ino: uint64, b: seq<byte>) reads this, trees, trees.store, volume
    { |b| == 256 && ino in trees.store.inodes && Parse(b).blks == trees.store.inodes[ino].blks }

    // the serialized inode
    method GetInode(txn: Txn, ino: uint64, excl: bool) returns (ip: Bytes)
      requires Valid() && txn.volume == volume && OkIno(geometry, ino)
      ensures fresh(ip) && |ip.data| == 256 && ino in metas && MetaOf(ip.data) == metas[ino] && SameBlks(ino, ip.data)
    {
      ip := trees.store.ReadInode(txn, ino, excl);
    }

    // store changed attributes (not size, shrink, used, slots; the type stays)
    method PutInode(txn: Txn, ino: uint64, ip: Bytes)
      modifies Repr()
      requires Valid() && txn.volume == volume && OkIno(geometry, ino) && |ip.data| == 256
      requires ino in metas && MetaOf(ip.data).size == metas[ino].size && MetaOf(ip.data).shrink == metas[ino].shrink &&
        MetaOf(ip.data).used == metas[ino].used && MetaOf(ip.data).ty == metas[ino].ty
      requires SameBlks(ino, ip.data)
      ensures Valid() && files == old(files) && held == old(held) && metas == old(metas)[ino := MetaOf(ip.data)]
      ensures forall b {:trigger SameBlks(ino, b)} :: SameBlks(ino, b) == old(SameBlks(ino, b))
      ensures trees.store.used == old(trees.store.used)
    {
      trees.SetMeta(txn, ip, ino);
      ReachSame(geometry, trees.blockMap, metas, ino, MetaOf(ip.data));
      HeldSame(geometry, trees.blockMap, metas, held, ino, MetaOf(ip.data));
      metas := metas[ino := MetaOf(ip.data)];
      FilesStep(geometry, trees.data, trees.data, ino, old(trees.store.inodes), old(metas), files,
        trees.store.inodes[ino],
        files[ino]);
      assert files[ino := files[ino]] == files;
    }

    // bytes [off, off+len) of the file, cut at its end, where they lie
    method Read(txn: Txn, ino: uint64, off: uint64, len: uint64) returns (b: Pieces)
      requires Valid() && txn.volume == volume && OkIno(geometry, ino)
      ensures fresh(b) && ino in files
      ensures off as int >= |files[ino]| ==> b.data == []
      ensures off as int < |files[ino]| ==>
        b.data == files[ino][off as int .. if off as int + len as int < |files[ino]| then off as int + len as int
          else |files[ino]|]
    {
      var ip := trees.store.ReadInode(txn, ino, false);
      ghost var f := files[ino];
      Stored(ino, ip);
      var size := GetSize(ip);
      if off >= size { b := NewPieces(); return; }
      var n := Min(len, size - off);
      b := Fetch(trees, txn, ip, ino, off, n);
      forall i: int | 0 <= i < n as int
        ensures b.data[i] == f[off as int + i]
      {
        reveal FileMatch();
        assert b.data[i] == ByteAt(trees.data, ino, off as int + i);
      }
      assert b.data == f[off as int .. off as int + n as int];
    }

    // bytes [off, off+len) of the file, cut at its end, are about to be read
    method Prefetch(txn: Txn, ino: uint64, off: uint64, len: uint64)
      requires Valid() && txn.volume == volume && OkIno(geometry, ino)
    {
      var ip := trees.store.ReadInode(txn, ino, false);
      Stored(ino, ip);
      var size := GetSize(ip);
      if off >= size { return; }
      var n := Min(len, size - off);
      Reading.Prefetch(trees, txn, ip, ino, off, n);
    }

    // block n of the file, whose inode is ip, without a copy; all of it must lie below the file's size
    method ReadBlockOf(txn: Txn, ip: Bytes, ino: uint64, n: uint64, excl: bool) returns (b: Blk)
      requires Valid() && txn.volume == volume && trees.IsInode(ino, ip) && ino in files &&
        4096 * n as int + 4096 <= |files[ino]|
      ensures b.v == files[ino][4096 * n as int .. 4096 * n as int + 4096]
    {
      assert OkIno(geometry, ino);
      b := trees.ReadData(txn, ip, ino, n, excl);
      ghost var f := files[ino];
      ghost var o := 4096 * n as int;
      forall i: int | 0 <= i < 4096
        ensures b.v[i] == f[o + i]
      {
        DivMod(o, i);
        BlockByte(trees.data, ino, o + i);
        reveal FileMatch();
        assert ByteAt(trees.data, ino, o + i) == f[o + i];
      }
    }

    // write src[so..so+len] at off. ok = false: no space, too large, or the file must be
    // shrunk first (metas[ino].shrink != 0 and the write extends it): abort the transaction.
    // Space is never wanting where bytes that are there are overwritten (Settled).
    method Write(txn: Txn, ino: uint64, off: uint64, src: Bytes, so: uint64, len: uint64) returns (ok: bool)
      modifies Repr(), txn.blocks
      requires Valid() && txn.volume == volume && OkIno(geometry, ino) && so as int + len as int <= |src.data|
      ensures ok ==> Valid() && ino in old(files) &&
        files == (if len == 0 then old(files) else old(files)[ino :=
          WriteSpec(old(files)[ino], off as int, src.data[so as int..so as int+len as int])])
      ensures ok ==> ino in old(metas) && ino in old(files) && ino in metas
      ensures ok && len == 0 ==> metas == old(metas) && held == old(held)
      ensures ok && len != 0 ==> ino in old(held) &&
        held == old(held)[ino := old(held)[ino] + C.Blocks(off as int, len as int)]
      ensures ok && len != 0 ==> off as int + len as int <= 549755813888 && |files[ino]| < 0x1_0000_0000_0000_0000 &&
        CanSize(old(metas)[ino], |files[ino]| as uint64) &&
        metas == old(metas)[ino := WithSizeUsed(old(metas)[ino], |files[ino]| as uint64, metas[ino].used)]
      ensures ok && len != 0 ==> metas[ino].used as int == old(metas)[ino].used as int
        + |C.Blocks(off as int, len as int) - old(held)[ino]|
      ensures ino in old(files) && Settled(old(files)[ino], off as int, len as int) ==> ok
      ensures ino in old(metas) && ino in old(held) && len != 0 && MayWrite(old(metas)[ino], off as int + len as int) &&
        C.Blocks(off as int, len as int) <= old(held)[ino] ==> ok
      // what it takes; and there is no more, if nothing else is the matter
      ensures GotBlocks(txn) <= old(GotBlocks(txn)) + Room.Bytes(off as int, len as int)
      ensures ino in old(metas) && (!ok && MayWrite(old(metas)[ino], off as int + len as int) ==>
        txn.blocks.Dry() && GotBlocks(txn) < old(GotBlocks(txn)) + Room.Bytes(off as int, len as int))
    {
      Room.Some(off as int, len as int);
      if len == 0 { return true; }
      if len > 549755813888 || off > 549755813888 - len { return false; }
      var ip := trees.store.ReadInode(txn, ino, true);
      Stored(ino, ip);
      var size := GetSize(ip);
      var shrink := GetShrink(ip);
      if shrink != 0 && off + len > size { return false; }
      ghost var f := files[ino];
      ghost var d0 := trees.data;
      ghost var i0 := trees.store.inodes;
      ghost var b0 := trees.blockMap;
      Enough(ino, off, len);
      TakenAll(off as int, len as int);
      ok := Store(trees, txn, ip, ino, off, src, so, len);
      if !ok { return; }
      ok := true;
      if off + len > size { SetFileSize(ip, off + len); }
      trees.SetMeta(txn, ip, ino);
      ghost var s := src.data[so as int .. so as int + len as int];
      FileWrite(d0, trees.data, ino, f, off as int, s, shrink as int);
      files := files[ino := WriteSpec(f, off as int, s)];
      ReachGrown(geometry, b0, trees.blockMap, metas, ino, trees.store.inodes[ino].meta, off as int / 4096,
        BlocksFor(off as int + len as int));
      HeldWritten(geometry, b0, trees.blockMap, metas, held, ino, trees.store.inodes[ino].meta, off, len);
      held := held[ino := held[ino] + C.Blocks(off as int, len as int)];
      metas := metas[ino := trees.store.inodes[ino].meta];
      assert Others(d0, trees.data, ino) by { reveal Wrote(); }
      FilesStep(geometry, d0, trees.data, ino, i0, old(metas), old(files), trees.store.inodes[ino], files[ino]);
      assert trees.store.inodes[ino].meta == WithSizeUsed(old(metas)[ino], |files[ino]| as uint64,
        trees.store.inodes[ino].meta.used);
    }

    // set the size: cut, or extend with zeros (a hole). ok = false: too large, or must be shrunk first.
    method SetSize(txn: Txn, ino: uint64, sz: uint64) returns (ok: bool)
      modifies Repr()
      requires Valid() && txn.volume == volume && OkIno(geometry, ino)
      ensures ino in old(metas) && (ok <==> CanSize(old(metas)[ino], sz))
      ensures ok ==> Valid() && ino in old(files) && files == old(files)[ino := SizeSpec(old(files)[ino], sz as int)]
      ensures ok ==> ino in old(held) && held == old(held)[ino := C.HeldBelow(old(held)[ino], sz as int)]
      ensures ok ==> metas == old(metas)[ino := Resized(old(metas)[ino], sz)]
    {
      if sz > 549755813888 { return false; }
      var ip := trees.store.ReadInode(txn, ino, true);
      Stored(ino, ip);
      var size := GetSize(ip);
      var shrink := GetShrink(ip);
      ghost var f := files[ino];
      ghost var g := f;
      ghost var d0 := trees.data;
      ghost var i0 := trees.store.inodes;
      assert FileMatch(d0, ino, f, shrink as int);
      ok := true;
      if sz > size {
        if shrink != 0 { return false; }
        FileGrow(d0, ino, f, sz as int);
        g := f + Zeros(sz as int - |f|);
        assert Others(d0, trees.data, ino);
      } else if sz < size {
        ZeroTail(trees, txn, ip, ino, sz);
        var shrink' := shrink;
        if shrink < size && (shrink != 0 || (sz + 4095) / 4096 != (size + 4095) / 4096) { shrink' := size; }
        assert shrink <= 549755813888 by { reveal FileMatch(); }
        FileCut(d0, trees.data, ino, f, sz as int, shrink as int, shrink' as int);
        g := f[..sz];
        assert Others(d0, trees.data, ino) by { reveal Wrote(); }
        SetShrink(ip, shrink');
      } else {
        assert SizeSpec(f, sz as int) == f && files[ino := f] == files && metas[ino := metas[ino]] == metas;
        HeldAll(geometry, trees.blockMap, metas, held, ino);
        return;
      }
      assert g == SizeSpec(f, sz as int);
      SetFileSize(ip, sz);
      trees.SetMeta(txn, ip, ino);
      files := files[ino := g];
      HeldResized(geometry, trees.blockMap, metas, held, ino, trees.store.inodes[ino].meta);
      held := held[ino := C.HeldBelow(held[ino], sz as int)];
      ReachSame(geometry, trees.blockMap, metas, ino, trees.store.inodes[ino].meta);
      metas := metas[ino := trees.store.inodes[ino].meta];
      FilesStep(geometry, d0, trees.data, ino, i0, old(metas), old(files), trees.store.inodes[ino], files[ino]);
    }

    // Makes holes of the blocks n - 1 down to m >= lo, none of which lies behind the end: of about max of them.
    method Punch(txn: Txn, ino: uint64, lo: uint64, n: uint64, max: uint64) returns (m: uint64)
      modifies Repr()
      requires Valid() && txn.volume == volume && OkIno(geometry, ino) && ino in files && lo <= n &&
        n as int <= BlocksFor(|files[ino]|)
      ensures Valid() && lo <= m <= n && (lo < n && 0 < max ==> m < n)
      ensures ino in old(files) && files == old(files)[ino :=
        Local.Zeroed(old(files)[ino], 4096 * m as int, 4096 * n as int)]
      ensures ino in old(held) && held == old(held)[ino := old(held)[ino] - Local.Span(m as int, n as int)]
      ensures ino in old(metas) && ino in metas &&
        metas == old(metas)[ino := WithUsed(old(metas)[ino], metas[ino].used)]
      ensures metas[ino].used as int == old(metas)[ino].used as int - |old(held)[ino] * Local.Span(m as int, n as int)|
    {
      var ip := trees.store.ReadInode(txn, ino, true);
      Stored(ino, ip);
      ghost var f := files[ino];
      ghost var d0 := trees.data;
      ghost var i0 := trees.store.inodes;
      ghost var b0 := trees.blockMap;
      m := Punching.Punch(trees, txn, ip, ino, n, lo, max);
      trees.SetMeta(txn, ip, ino);
      ghost var x := trees.store.inodes[ino].meta;
      FilePunched(d0, trees.data, ino, f, x.shrink as int, m as int, n as int);
      EmptiedShrank(b0, trees.blockMap, ino, m as int, n as int, lo as int);
      ReachOf(geometry, b0, metas, ino);
      StillWithin(b0, trees.blockMap, ino, lo as int, Limit(metas[ino]));
      ReachShrunk(geometry, b0, trees.blockMap, metas, ino, x, lo as int);
      HeldPunched(geometry, b0, trees.blockMap, metas, held, ino, x, m as int, n as int);
      files := files[ino := Local.Zeroed(f, 4096 * m as int, 4096 * n as int)];
      held := held[ino := held[ino] - Local.Span(m as int, n as int)];
      metas := metas[ino := x];
      assert Others(d0, trees.data, ino) by { reveal Cut(); }
      FilesStep(geometry, d0, trees.data, ino, i0, old(metas), old(files), trees.store.inodes[ino], files[ino]);
    }

    // Passes the blocks from n on that are there, or (there: false) the holes, up to the first other one (found), but
    // not beyond `top`, and in at most max steps.
    method Pass(txn: Txn, ino: uint64, n: uint64, top: uint64, there: bool, max: uint64, excl: bool)
      returns (m: uint64, found: bool)
      requires Valid() && txn.volume == volume && OkIno(geometry, ino) && ino in files && n <= top &&
        top as int <= BlocksFor(|files[ino]|)
      ensures n <= m <= top && (n < top && 0 < max ==> found || n < m) && ino in held
      ensures forall i: int {:trigger i in held[ino]} | n as int <= i < m as int :: i in held[ino] <==> there
      ensures found ==> m < top && (m as int in held[ino] <==> !there)
    {
      var ip := trees.store.ReadInode(txn, ino, excl);
      Stored(ino, ip);
      HeldOf(geometry, trees.blockMap, metas, held, ino);
      m, found := Seeking.Pass(trees, txn, ip, ino, n, top, there, max, excl);
      forall i: int | n as int <= i < m as int ensures i in held[ino] <==> there
      { assert There(trees.blockMap, ino, i) <==> there; }
      if found { assert There(trees.blockMap, ino, m as int) <==> !there; }
    }

    // free up to about max blocks beyond the size; done: nothing is left to free (shrink == 0). Each time less is left.
    // What lies in no more than max blocks is freed at once.
    method FreeSome(txn: Txn, ino: uint64, max: uint64) returns (done: bool)
      modifies Repr()
      requires Valid() && txn.volume == volume && OkIno(geometry, ino)
      ensures Valid() && files == old(files) && held == old(held)
      ensures ino in old(metas) && ino in metas && metas == old(metas)[ino := metas[ino]] &&
        metas[ino] == WithLeftover(old(metas)[ino], LeftoverOf(metas[ino])) && metas[ino].used <= old(metas)[ino].used
      ensures done <==> metas[ino].shrink == 0
      ensures old(metas)[ino].shrink == 0 ==> metas == old(metas)
      ensures !done && 0 < max ==> metas[ino].shrink < old(metas)[ino].shrink
      ensures Little(old(metas)[ino], max) ==> done
    {
      var ip := trees.store.ReadInode(txn, ino, true);
      Stored(ino, ip);
      var size := GetSize(ip);
      var shrink := GetShrink(ip);
      if shrink == 0 { return true; }
      ghost var f := files[ino];
      ghost var d0 := trees.data;
      ghost var i0 := trees.store.inodes;
      assert FileMatch(d0, ino, f, shrink as int);
      assert shrink <= 549755813888 by { reveal FileMatch(); }
      var lo := (size + 4095) / 4096;
      var n := (shrink + 4095) / 4096;
      if n < lo { n := lo; }
      ghost var b0 := trees.blockMap;
      ReachOf(geometry, b0, metas, ino);
      var m := CutDown(trees, txn, ip, ino, n, lo, max);
      var shrink' := 4096 * m;
      if m == lo { shrink' := 0; }
      FileFreed(d0, trees.data, ino, f, shrink as int, m as int, n as int, shrink' as int);
      done := shrink' == 0;
      SetShrink(ip, shrink');
      trees.SetMeta(txn, ip, ino);
      ReachShrunk(geometry, b0, trees.blockMap, metas, ino, trees.store.inodes[ino].meta, lo as int);
      HeldFreed(geometry, b0, trees.blockMap, metas, held, ino, trees.store.inodes[ino].meta, lo as int);
      metas := metas[ino := trees.store.inodes[ino].meta];
      assert Others(d0, trees.data, ino) by { reveal Cut(); }
      FilesStep(geometry, d0, trees.data, ino, i0, old(metas), old(files), trees.store.inodes[ino], f);
      assert files[ino := f] == files;
    }

    // take a free inode: type ty, a new generation, everything else zero. ok = false: none is free.
    method AllocInode(txn: Txn, near: uint64, ty: uint32) returns (ok: bool, ino: uint64)
      modifies Repr(), txn.inodes
      requires Valid() && txn.volume == volume && ty != 0
      ensures ok ==> Valid() && OkIno(geometry, ino) && 2 < ino && ino in old(metas) && old(metas)[ino].ty == 0
      ensures ok ==> ino in old(files) && old(files)[ino] == [] && files == old(files)[ino := []] &&
        held == old(held)[ino := {}]
      ensures ok ==> old(metas)[ino].gen < 0xffff_ffff_ffff_ffff &&
        metas == old(metas)[ino := NewMeta(ty, old(metas)[ino].gen + 1)]
      ensures GotInodes(txn) <= old(GotInodes(txn)) + 1
      ensures !ok ==> (txn.inodes.Dry() && GotInodes(txn) <= old(GotInodes(txn))) || Unfit(geometry, old(metas))
    {
      ok, ino := trees.store.FindInode(txn, near);
      if !ok { return; }
      var ip := trees.store.ReadInode(txn, ino, true);
      Stored(ino, ip);
      var size := GetSize(ip);
      var shrink := GetShrink(ip);
      var gen := GetGen(ip);
      var bare := NoSlots(ip);
      // never so in a sound volume (a free inode holds nothing: Fits in tree.dfy), but that a number was given out 2^64
      // times
      if size == 0 && shrink == 0 { Bare(geometry, trees.blockMap, trees.store.inodes, metas, ino); }
      if size != 0 || shrink != 0 || !bare || gen == 0xffff_ffff_ffff_ffff { return false, 0; }
      Blank(txn, ip, ino, ty, gen + 1);
    }

    // give an inode back, which is empty and shrunk; always ok
    method FreeInode(txn: Txn, ino: uint64) returns (ok: bool)
      modifies Repr()
      requires Valid() && txn.volume == volume && OkIno(geometry, ino) && 2 < ino && ino in files && files[ino] == [] &&
        ino in metas && metas[ino].shrink == 0
      ensures ok && Valid() && files == old(files) && held == old(held) &&
        metas == old(metas)[ino := NewMeta(0, old(metas)[ino].gen)]
    {
      var ip := trees.store.ReadInode(txn, ino, true);
      Stored(ino, ip);
      var size := GetSize(ip);
      var shrink := GetShrink(ip);
      var gen := GetGen(ip);
      var bare := NoSlots(ip);
      Bare(geometry, trees.blockMap, trees.store.inodes, metas, ino);
      if size != 0 || shrink != 0 || !bare { return false; }     // never so in a sound volume
      Blank(txn, ip, ino, 0, gen);
      assert files == old(files) && held == old(held);
      ok := true;
    }

    // replace an empty inode by a new one of type ty (0 = free)
    method Blank(txn: Txn, ip: Bytes, ino: uint64, ty: uint32, gen: uint64)
      modifies Repr()
      requires Valid() && txn.volume == volume && OkIno(geometry, ino) && trees.IsInode(ino, ip)
      requires MetaOf(ip.data).size == 0 && MetaOf(ip.data).shrink == 0 && forall k: int | 0 <= k < 15 ::
        Parse(ip.data).blks[k] == 0
      ensures Valid() && ino in old(files) && old(files)[ino] == [] && files == old(files)[ino := []]
      ensures metas == old(metas)[ino := NewMeta(ty, gen)] && ino in old(held) && old(held)[ino] == {} &&
        held == old(held)[ino := {}]
      ensures ino in trees.store.inodes && trees.store.inodes == old(trees.store.inodes)[ino := trees.store.inodes[ino]]
    {
      ghost var i0 := trees.store.inodes;
      var z := NewBytes(256);
      ParseZeros();
      SetTy(z, ty);
      SetGen(z, gen);
      assert Parse(z.data).meta == NewMeta(ty, gen);
      assert Parse(z.data).blks == Parse(ip.data).blks;
      trees.SetInode(txn, z, ino, ty != 0);
      ReachSame(geometry, trees.blockMap, metas, ino, NewMeta(ty, gen));
      HeldNone(geometry, trees.blockMap, metas, held, ino);
      HeldSame(geometry, trees.blockMap, metas, held, ino, NewMeta(ty, gen));
      held := held[ino := {}];
      assert held == old(held);
      files := files[ino := []];
      metas := metas[ino := trees.store.inodes[ino].meta];
      assert old(files)[ino] == [];
      FilesStep(geometry, trees.data, trees.data, ino, i0, old(metas), old(files), trees.store.inodes[ino], []);
    }
  }
}
