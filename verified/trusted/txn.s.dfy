// TRUSTED: the contract of a transaction, as the file system sees it.
// Go: internal/runtime/dtxn, a thin cover of the generated code of verified/txn.
//
// A procedure of the file system is a sequential program over the objects of the volume. It
// runs as one transaction: no other transaction is seen in the middle of it, and it takes effect
// as a whole or not at all. So `data` below is the volume as this transaction sees it.
//
// A call that cannot keep its promise (a lock that must not be waited for, a device error) does
// not return: it unwinds to the runner outside the verified code, which aborts the transaction
// and then runs it again or reports the error.
include "bytes.s.dfy"

module TxnSpec {
  import opened Machine
  datatype Kind = KBit | KInode | KBlock
  datatype Addr = Addr(blkno: uint64, off: uint64)      // off in bits
  datatype Object = ObjData(bytes: seq<byte>) | ObjBit(bit: bool)
  // An allocation bitmap: the block of bit 0, and the bits that may be handed out, [first, limit).
  datatype Bitmap = Bitmap(start: uint64, first: uint64, limit: uint64)
  predicate IsBit(a: Addr, m: Bitmap, x: uint64)
  { a.blkno as int == m.start as int + x as int / 32768 && a.off == x % 32768 }

  predicate OffOk(k: Kind, off: uint64) {
    off < 32768 &&
    match k case KBit => true case KInode => off % 2048 == 0 case KBlock => off == 0
  }
  predicate ObjOk(k: Kind, o: Object) {
    match k
    case KBit => o.ObjBit?
    case KInode => o.ObjData? && |o.bytes| == 256
    case KBlock => o.ObjData? && |o.bytes| == 4096
  }
  // what the n blocks from a on hold, one behind the other
  function Run(data: map<Addr, Object>, a: uint64, n: uint64): seq<byte>
    requires a as int + n as int < 0x1_0000_0000_0000_0000
    requires forall b: uint64 {:trigger Addr(b, 0)} ::
      a <= b < a + n ==> Addr(b, 0) in data && data[Addr(b, 0)].ObjData?
  { if n == 0 then [] else Run(data, a, n - 1) + data[Addr(a + n - 1, 0)].bytes }
}

module {:extern "dtxn"} TxnS {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened TxnSpec

  // The objects of a volume. Each block holds objects of one kind.
  class {:extern "Jrnl"} VolumeObjects {
    ghost var data: map<Addr, Object>
    ghost var written: set<Addr>            // by this transaction, be it with what was there
    ghost const kinds: map<uint64, Kind>
    ghost const blockBits: Bitmap           // the bitmaps that AllocHint is about
    ghost const inodeBits: Bitmap

    predicate Valid() reads this {
      forall a: Addr | a.blkno in kinds && OffOk(kinds[a.blkno], a.off) ::
        a in data && ObjOk(kinds[a.blkno], data[a])
    }
    predicate Has(k: Kind, blkno: uint64, off: uint64) {
      blkno in kinds && kinds[blkno] == k && OffOk(k, off)
    }
  }

  // What the server keeps beside the objects of the file system, in blocks of its own: records of 256 bytes. They
  // change in the same transactions.
  class {:extern "Slots"} Slots {
    ghost var recs: seq<seq<byte>>
    predicate Valid() reads this { forall i {:trigger recs[i]} :: 0 <= i < |recs| ==> |recs[i]| == 256 }
  }

  // What one transaction can have of an allocation bitmap. For proofs alone.
  class {:extern "Supply"} Supply {
    ghost const end: uint64                 // what may be handed out to it ends there, at the bitmap's limit or before
    ghost const clear: set<uint64>          // the bits before that which were clear when it began
    ghost var given: set<uint64>            // those of them that were proposed to it
    ghost var left: nat                     // so often one can yet be proposed to it: none is twice
    // When it was last told that there is none: the bits that other transactions under way had been proposed, or had
    // cleared; and whether the host of a sparse image refused room for one of those that were left.
    ghost var others: set<uint64>
    ghost var refused: bool
    // It has all that was clear, but for what others have, or the host has no room for.
    predicate Dry() reads this { refused || clear - others <= given }
  }

  class {:extern "Txn"} Txn {             // tested: dtxn.TestDeclarations, TestErrors, TestBank
    ghost const volume: VolumeObjects
    ghost const slots: Slots
    ghost const blocks: Supply
    ghost const inodes: Supply

    // Objects. `excl` says that the object will be written too, so that its lock
    // is taken exclusively at once.
    method {:extern "ReadInode"} ReadInode(blkno: uint64, off: uint64, excl: bool) returns (b: Bytes)
      requires volume.Valid() && volume.Has(KInode, blkno, off)
      ensures fresh(b) && |b.data| == 256
      ensures Addr(blkno, off) in volume.data && volume.data[Addr(blkno, off)] == ObjData(b.data)
    method {:extern "ReadBlock"} ReadBlock(blkno: uint64, excl: bool) returns (b: Blk)
      requires volume.Valid() && volume.Has(KBlock, blkno, 0)
      ensures |b.v| == 4096
      ensures Addr(blkno, 0) in volume.data && volume.data[Addr(blkno, 0)] == ObjData(b.v)
    // n blocks, from blkno on, which are added to p. Tested: dtxn.TestReadBlocks
    method {:extern "ReadBlocks"} ReadBlocks(blkno: uint64, n: uint64, p: Pieces)
      modifies p
      requires volume.Valid() && blkno as int + n as int < 0x1_0000_0000_0000_0000
      requires forall b: uint64 {:trigger Addr(b, 0)} :: blkno <= b < blkno + n ==> volume.Has(KBlock, b, 0)
      ensures forall b: uint64 {:trigger Addr(b, 0)} :: blkno <= b < blkno + n ==>
        Addr(b, 0) in volume.data && volume.data[Addr(b, 0)].ObjData?
      ensures p.data == old(p.data) + Run(volume.data, blkno, n)
    method {:extern "ReadBit"} ReadBit(blkno: uint64, off: uint64, excl: bool) returns (b: bool)
      requires volume.Valid() && volume.Has(KBit, blkno, off)
      ensures Addr(blkno, off) in volume.data && volume.data[Addr(blkno, off)] == ObjBit(b)
    // a mutable copy
    method {:extern "Copy"} Copy(b: Blk) returns (c: Bytes) ensures fresh(c) && c.data == b.v
    // copies b
    method {:extern "WriteInode"} WriteInode(blkno: uint64, off: uint64, b: Bytes)
      modifies volume
      requires volume.Valid() && volume.Has(KInode, blkno, off) && |b.data| == 256
      ensures volume.data == old(volume.data)[Addr(blkno, off) := ObjData(b.data)]
      ensures volume.written == old(volume.written) + {Addr(blkno, off)}
      ensures volume.Valid()
    // takes b over: the caller's view of it becomes empty
    method {:extern "WriteBlock"} WriteBlock(blkno: uint64, b: Bytes)
      modifies volume, b
      requires volume.Valid() && volume.Has(KBlock, blkno, 0) && |b.data| == 4096
      ensures volume.data == old(volume.data)[Addr(blkno, 0) := ObjData(old(b.data))]
      ensures volume.written == old(volume.written) + {Addr(blkno, 0)}
      ensures b.data == []
      ensures volume.Valid()
    method {:extern "WriteBit"} WriteBit(blkno: uint64, off: uint64, b: bool)
      modifies volume
      requires volume.Valid() && volume.Has(KBit, blkno, off)
      ensures volume.data == old(volume.data)[Addr(blkno, off) := ObjBit(b)]
      ensures volume.written == old(volume.written) + {Addr(blkno, off)}
      ensures volume.Valid()
    // Records. To read one takes its lock exclusively. WriteSlot copies b. Tested: dtxn.TestSlots
    method {:extern "ReadSlot"} ReadSlot(i: uint64) returns (b: Bytes)
      requires slots.Valid() && i as int < |slots.recs|
      ensures fresh(b) && b.data == slots.recs[i]
    method {:extern "WriteSlot"} WriteSlot(i: uint64, b: Bytes)
      modifies slots
      requires slots.Valid() && i as int < |slots.recs| && |b.data| == 256
      ensures slots.recs == old(slots.recs)[i as int := b.data]

    // Allocation hints: which = 0 blocks, 1 inodes, 2 blocks to take in the place of others (on a sparse image
    // perhaps only what has room on its host already). No data rests on them; the bitmap is the truth. near: a wish
    // (0 = none). What is proposed is in the bitmap's range, and this transaction has not written its bit. ok = false:
    // nothing is left, unless which is 2. What was not taken, or a committed transaction freed, goes back by
    // itself. Tested: dtxn.TestHints, TestNear, TestExchange, TestNoneLeft, TestEnds.
    method {:extern "AllocHint"} AllocHint(which: uint64, near: uint64) returns (ok: bool, x: uint64)
      requires which <= 2
      modifies if which == 1 then inodes else blocks
      ensures var s, m := if which == 1 then inodes else blocks, if which == 1 then volume.inodeBits
          else volume.blockBits;
        if ok then m.first <= x < s.end <= m.limit && s.left < old(s.left) && s.given == old(s.given) + {x} * s.clear &&
          (x in s.clear ==> forall a: Addr {:trigger volume.data[a]} | a in volume.data && IsBit(a, m, x) ::
            volume.data[a] == ObjBit(false))
        else s.given == old(s.given) && (which < 2 ==> s.Dry())
    // Wishes, which promise nothing: what is written to block blkno, newly allocated, should go straight to
    // its place, not through the log; the next block of which a hint is asked for is to be block n of the file, or what
    // leads to that; n blocks from blkno on are about to be read. Tested: dtxn.TestBulk, TestPositions, TestAhead.
    method {:extern "Bulk"} Bulk(blkno: uint64)
    method {:extern "Position"} Position(n: uint64, leads: bool)
    method {:extern "Ahead"} Ahead(blkno: uint64, n: uint64)
  }
}
