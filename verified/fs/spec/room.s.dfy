// THE SPECIFICATION of when a volume is full: NFS3ERR_NOSPC is the answer only if less is free than the call needs
// (Lacks).
//
// What is free is a part of the volume's state: the blocks and inodes that no bitmap has, when the call begins, of
// those that the volume has so far. It may get more while it is served, and never fewer.
// Two things come off that: what other calls under way have been given, or are about to give back; and on a sparse
// image what has no room on its host yet, when the host gives no more.
include "nfs3.s.dfy"
module NfsRoom {
  import opened Machine
  import opened NfsState
  import opened NfsVolume
  import opened NfsCommon

  // blocks, inodes: what is free for a call. refused: the host gave no room for one of these.
  datatype Room = Room(blocks: int, inodes: int, refused: bool)
  datatype Need = Need(blocks: int, inodes: int)
  predicate Lacks(r: Room, n: Need) { r.refused || r.blocks < n.blocks || r.inodes < n.inodes }

  // Beside that: a number of an inode was given out so often that there is no other generation for it.
  predicate Worn(f: FS)
  { exists i: uint64 {:trigger i in f.gens} :: i in f.gens && f.gens[i] == 0xffff_ffff_ffff_ffff }

  // How many blocks lead to the blocks lo to end - 1 of a file, at most: none to the first 12, then one, two, or three
  // to each stretch of 512.
  function Leading(lo: int, end: int): int
    requires 0 <= lo
  {
    if end <= lo || end <= 12 then 0
    else
      var stretches := (end - 13) / 512 - (if lo < 12 then 0 else (lo - 12) / 512) + 1;
      if end <= 524 then stretches else if end <= 262668 then 2 * stretches else 3 * stretches
  }
  // n bytes at off: the blocks that they lie in, and what leads to these. It is so many also where the file has them:
  // what is written over may be put elsewhere.
  function Bytes(off: int, n: int): int
    requires 0 <= off && 0 <= n
  { var lo, end := off / 4096, (off + n + 4095) / 4096; end - lo + Leading(lo, end) }

  lemma Some(off: int, n: int)
    requires 0 <= off && 0 <= n
    ensures 0 <= Bytes(off, n) && (0 < n ==> 0 < Bytes(off, n))
  { }

  // an entry of a directory: a block, and what leads to it
  ghost const ENTRY: int := 4

  // 3.3.7 WRITE
  function WriteNeeds(off: uint64, data: seq<byte>): Need { Need(Bytes(off as int, |data|), 0) }
  // 3.3.8 CREATE, 3.3.9 MKDIR, 3.3.11 MKNOD
  function MakeNeeds(): Need { Need(ENTRY, 1) }
  // 3.3.10 SYMLINK
  function SymlinkNeeds(target: seq<byte>): Need { Need(ENTRY + Bytes(0, |target|), 1) }
  // 3.3.15 LINK, 3.3.14 RENAME: the entry alone
  function EntryNeeds(): Need { Need(ENTRY, 0) }
  // a file without a name, of a local mount
  function NamelessNeeds(): Need { Need(0, 1) }
  // an extended attribute that is set: the block of those of its file, and what leads to it
  function XattrNeeds(): Need { Need(ENTRY, 0) }
  // room set aside, of a local mount (local.s.dfy): each block that the file has not, and what leads to it
  function AllocateNeeds(off: int, len: int, held: set<int>): Need
    requires 0 <= off && 0 <= len
  { Need(4 * |Blocks(off, len) - held|, 0) }

  // 3.3.18 FSSTAT: what is free, where so many blocks and inodes are of those that the volume has so far
  predicate Told(s: Space, blocks: int, inodes: int)
  { s.fbytes as int == BLOCK as int * blocks && s.ffiles as int == inodes }
}
