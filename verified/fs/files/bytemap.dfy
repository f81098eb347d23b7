// From data blocks to bytes: what the block trees say about the bytes of a file,
// and how a file matches them.
//
// A file matches when every byte below its size is in place and every byte above
// reads as zero. Cutting a file leaves the blocks it gives up in place for later
// (FreeSome): the bytes from the size, rounded up to a block, to `shrink` are
// exempt, and the file cannot grow before they are gone.
include "../blocks/blocktreespec.dfy"
module ByteMap {
  import opened Machine
  import opened ByteSpec
  import opened VolumeGeometry
  import opened InodeFormat
  import opened Positions
  import opened BlockTreeSpec

  predicate DataDom(d: Data) { forall p: Pos {:trigger IsData(p)} | IsData(p) :: p in d && |d[p]| == 4096 }

  function ByteAt(d: Data, ino: uint64, i: int): byte
    requires 0 <= i < 549755813888
  {
    var p := PosOf(ino, (i / 4096) as uint64);
    if p in d && |d[p]| == 4096 then d[p][i % 4096] else 0
  }

  lemma BlockByte(d: Data, ino: uint64, i: int)
    requires DataDom(d) && 0 <= i < 549755813888
    ensures var p := PosOf(ino, (i / 4096) as uint64);
      IsData(p) && p in d && |d[p]| == 4096 && ByteAt(d, ino, i) == d[p][i % 4096]
  {
    PosOfOk(ino, (i / 4096) as uint64);
  }

  lemma DivMod(pos: int, i: int)
    requires 0 <= pos && 0 <= pos % 4096 + i < 4096
    ensures (pos + i) / 4096 == pos / 4096 && (pos + i) % 4096 == pos % 4096 + i
  { }

  // the bytes of ino from off on became s, and nothing else changed
  predicate {:opaque} Wrote(d0: Data, d: Data, ino: uint64, off: int, s: seq<byte>) {
    && (forall i: int {:trigger ByteAt(d, ino, i)} | 0 <= i < 549755813888 ::
          ByteAt(d, ino, i) == (if off <= i < off + |s| then s[i - off] else ByteAt(d0, ino, i)))
    && Others(d0, d, ino)
  }
  // the bytes of all other inodes are the same
  predicate Others(d0: Data, d: Data, ino: uint64) {
    forall o: uint64, i: int {:trigger ByteAt(d, o, i)} | o != ino && 0 <= i < 549755813888 ::
      ByteAt(d, o, i) == ByteAt(d0, o, i)
  }

  lemma WroteNone(d: Data, ino: uint64, off: int)
    ensures Wrote(d, d, ino, off, [])
  { reveal Wrote(); }
  lemma WroteMore(d0: Data, d1: Data, d2: Data, ino: uint64, off: int, s: seq<byte>, t: seq<byte>)
    requires Wrote(d0, d1, ino, off, s) && Wrote(d1, d2, ino, off + |s|, t)
    ensures Wrote(d0, d2, ino, off, s + t)
  {
    reveal Wrote();
    forall i: int {:trigger ByteAt(d2, ino, i)} | 0 <= i < 549755813888
      ensures ByteAt(d2, ino, i) == (if off <= i < off + |s + t| then (s + t)[i - off] else ByteAt(d0, ino, i))
    { assert ByteAt(d1, ino, i) == ByteAt(d1, ino, i); }
    forall o: uint64, i: int {:trigger ByteAt(d2, o, i)} | o != ino && 0 <= i < 549755813888
      ensures ByteAt(d2, o, i) == ByteAt(d0, o, i)
    { assert ByteAt(d1, o, i) == ByteAt(d1, o, i); }
  }

  // block n replaced by e, which is the old block but for s at pos % 4096
  lemma WroteBlock(d0: Data, ino: uint64, pos: int, s: seq<byte>, e: seq<byte>)
    requires DataDom(d0) && 0 <= pos && pos + |s| <= 549755813888 && pos % 4096 + |s| <= 4096 && |e| == 4096 &&
      pos < 549755813888
    requires var p := PosOf(ino, (pos / 4096) as uint64); p in d0 && |d0[p]| == 4096 &&
      forall r: int {:trigger e[r]} | 0 <= r < 4096 ::
        e[r] == (if pos % 4096 <= r < pos % 4096 + |s| then s[r - pos % 4096] else d0[p][r])
    ensures var d := d0[PosOf(ino, (pos / 4096) as uint64) := e]; DataDom(d) && Wrote(d0, d, ino, pos, s)
  {
    var n := (pos / 4096) as uint64;
    var d := d0[PosOf(ino, n) := e];
    PosOfOk(ino, n);
    reveal Wrote();
    forall i: int {:trigger ByteAt(d, ino, i)} | 0 <= i < 549755813888
      ensures ByteAt(d, ino, i) == (if pos <= i < pos + |s| then s[i - pos] else ByteAt(d0, ino, i))
    {
      var m := (i / 4096) as uint64;
      BlockByte(d0, ino, i);
      if m == n {
        var r := i % 4096;
        assert i == n as int * 4096 + r && pos == n as int * 4096 + pos % 4096;
        assert e[r] == (if pos % 4096 <= r < pos % 4096 + |s| then s[r - pos % 4096] else d0[PosOf(ino, n)][r]);
      } else {
        if PosOf(ino, m) == PosOf(ino, n) { PosOfInj(ino, m, ino, n); }
      }
    }
  }

  // n rounded up to a block
  function Up(n: int): int { (n + 4095) / 4096 * 4096 }

  predicate {:opaque} FileMatch(d: Data, ino: uint64, f: seq<byte>, shrink: int) {
    |f| <= 549755813888 && shrink <= 549755813888 &&
    forall i: int {:trigger ByteAt(d, ino, i)} | 0 <= i < 549755813888 && !(Up(|f|) <= i < shrink) ::
      ByteAt(d, ino, i) == (if i < |f| then f[i] else 0)
  }

  predicate FilesOk(g: Geometry, d: Data, inodes: map<uint64, Inode>, metas: map<uint64, Meta>,
    files: map<uint64, seq<byte>>) {
    forall i: uint64 {:trigger OkIno(g, i)} | OkIno(g, i) ::
      i in files && i in inodes && i in metas && metas[i] == inodes[i].meta &&
      |files[i]| == metas[i].size as int && FileMatch(d, i, files[i], metas[i].shrink as int)
  }

  // a step that concerns one inode leaves the others' files matched
  lemma FilesStep(g: Geometry, d0: Data, d: Data, ino: uint64, inodes: map<uint64, Inode>, metas: map<uint64, Meta>,
    files: map<uint64, seq<byte>>, i': Inode, f': seq<byte>)
    requires FilesOk(g, d0, inodes, metas, files) && Others(d0, d, ino)
    requires |f'| == i'.meta.size as int && FileMatch(d, ino, f', i'.meta.shrink as int)
    ensures FilesOk(g, d, inodes[ino := i'], metas[ino := i'.meta], files[ino := f'])
  {
    forall o: uint64 | OkIno(g, o) && o != ino
      ensures o in files && o in metas && FileMatch(d, o, files[o], metas[o].shrink as int)
    { reveal FileMatch(); }
  }
}
