// Directories in files, and the ghost side of every other change of an inode: the
// layer the procedures of the file system are written on.
//
// Names are 1..255 bytes, any bytes: ".", ".." and '/' are the caller's business.
// dirlayout.dfy says how a directory lies in its file.
include "../files/bytefiles.dfy"
include "dirpages.dfy"
include "dirsizes.dfy"
module Directories {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened Numbers
  import opened TxnSpec
  import opened TxnS
  import opened VolumeGeometry
  import opened InodeFormat
  import opened Positions
  import opened BlockTreeSpec
  import opened BlockTree
  import opened ByteMap
  import opened AttributeChanges
  import opened ByteFiles
  import opened HeldBlocks
  import Writing
  import C = NfsCommon
  import Local = NfsLocal
  import Needs = NfsRoom
  import N = NfsState
  import opened BlockStore
  import opened DirSizes
  import opened DirLayout
  import opened DirListSpec
  import opened DirListS
  import opened DirPages

  type Dir = map<seq<byte>, uint64>
  type Dirs = map<uint64, Dir>
  predicate OkName(n: seq<byte>) { 0 < |n| <= 255 }
  function DirDel(m: Dir, n: seq<byte>): Dir { map s | s in m && s != n :: m[s] }

  // exactly the inodes of type 2 are directories
  predicate TypesOk(geo: Geometry, metas: map<uint64, Meta>, dirs: Dirs) {
    (forall i: uint64 {:trigger OkIno(geo, i)} | OkIno(geo, i) :: i in metas && (i in dirs <==> metas[i].ty == 2)) &&
    (forall d: uint64 {:trigger d in dirs} | d in dirs :: OkIno(geo, d))
  }
  predicate EntriesOk(geo: Geometry, m: Dir) {
    forall n: seq<byte> {:trigger n in m} | n in m :: OkIno(geo, m[n]) && OkName(n)
  }
  // a directory's file stands for its map, and its inode has the number of entries
  predicate DirsOk(geo: Geometry, files: map<uint64, seq<byte>>, metas: map<uint64, Meta>, dirs: Dirs,
    places: map<uint64, Places>) {
    forall d: uint64 {:trigger d in dirs} | d in dirs ::
      d in files && d in metas && d in places && DirOk(files[d], dirs[d], places[d]) &&
      metas[d].nent as int == |dirs[d]| && EntriesOk(geo, dirs[d])
  }

  lemma CardDel(m: Dir, n: seq<byte>)
    requires n in m
    ensures |DirDel(m, n)| == |m| - 1
  {
    var r := DirDel(m, n);
    assert r[n := m[n]] == m;
  }

  // the file of one directory changes, and its map with it
  lemma DirsStep(geo: Geometry, files: map<uint64, seq<byte>>, metas: map<uint64, Meta>, dirs: Dirs,
    places: map<uint64, Places>, d: uint64, f: seq<byte>, x: Meta, m: Dir, at: Places)
    requires TypesOk(geo, metas, dirs) && DirsOk(geo, files, metas, dirs, places) && d in dirs
    requires DirOk(f, m, at) && x.nent as int == |m| && x.ty == 2 && EntriesOk(geo, m)
    ensures TypesOk(geo, metas[d := x], dirs[d := m]) &&
      DirsOk(geo, files[d := f], metas[d := x], dirs[d := m], places[d := at])
  { }

  class DirFs {
    const fs: ByteFs
    ghost var dirs: Dirs
    ghost var places: map<uint64, Places>

    constructor Recover(fs: ByteFs) ensures this.fs == fs { this.fs := fs; }

    function Repr(): set<object> { {this} + fs.Repr() }

    predicate Valid() reads this, fs, fs.trees, fs.trees.store, fs.volume
      ensures Valid() ==> fs.Valid()
      ensures Valid() ==> forall i: uint64 {:trigger OkIno(fs.geometry, i)} | OkIno(fs.geometry, i) ::
        i in fs.metas && (i in dirs <==> fs.metas[i].ty == 2)
      ensures Valid() ==> forall d: uint64 {:trigger d in dirs} | d in dirs ::
        OkIno(fs.geometry, d) && d in fs.metas && fs.metas[d].nent as int == |dirs[d]|
      ensures Valid() ==> forall d: uint64, n: seq<byte> {:trigger dirs[d][n]} | d in dirs && n in dirs[d] ::
        OkIno(fs.geometry, dirs[d][n]) && OkName(n)
    { fs.Valid() && TypesOk(fs.geometry, fs.metas, dirs) && DirsOk(fs.geometry, fs.files, fs.metas, dirs, places) }

    // what Insert, Replace and Remove change below: the file of d, its size and its entry count
    twostate predicate OnlyDir(d: uint64)
      reads this, fs
    { d in old(fs.metas) && d in fs.metas && fs.metas == old(fs.metas)[d := fs.metas[d]] &&
      fs.metas[d] == WithSizeNent(old(fs.metas[d]), fs.metas[d].size, fs.metas[d].nent, fs.metas[d].used) &&
        old(fs.metas[d]).size <= fs.metas[d].size &&
      d in old(fs.files) && d in fs.files && fs.files == old(fs.files)[d := fs.files[d]] &&
      d in fs.held && fs.held == old(fs.held)[d := fs.held[d]] }

    // its size and blocks follow from the names that came and went
    twostate predicate Grew(d: uint64)
      reads this, fs
    { d in old(dirs) && d in dirs && d in places && d in old(fs.metas) && d in fs.metas &&
      SizeFollows(old(dirs)[d], dirs[d], places[d], old(fs.metas)[d], fs.metas[d]) }

    // entries never move (so that their places can be cookies)
    twostate predicate StayPut(d: uint64)
      reads this
    { d in old(dirs) && d in dirs && d in old(places) && d in places && places == old(places)[d := places[d]] &&
      forall n: seq<byte> {:trigger n in dirs[d]} | n in dirs[d] && n in old(dirs[d]) && n in old(places[d]) ::
        n in places[d] && places[d][n] == old(places[d])[n] }

    // ---- search ----

    // the inode, and the number of blocks of the file
    method Open(txn: Txn, d: uint64, excl: bool) returns (ip: Bytes, n: uint64)
      requires Valid() && txn.volume == fs.volume && d in dirs
      ensures fresh(ip) && fs.trees.IsInode(d, ip)
      ensures d in fs.files && 4096 * n as int == |fs.files[d]| && n <= 0x800_0000
    {
      ip := fs.GetInode(txn, d, excl);
      fs.Stored(d, ip);
      n := GetSize(ip);
      assert |fs.files[d]| % 4096 == 0 by { reveal DirOk(); }
      n := n / 4096;
    }

    // The cell of the name's slot. lev: the first level with room for the name (a hint for InsertAt).
    method Find(txn: Txn, d: uint64, name: Bytes, excl: bool)
      returns (found: bool, ino: uint64, cell: uint64, lev: uint64)
      requires Valid() && txn.volume == fs.volume && d in dirs && OkName(name.data)
      ensures found <==> name.data in dirs[d]
      ensures found ==> ino == dirs[d][name.data] && OkIno(fs.geometry, ino)
      ensures d in fs.files && (found ==> cell < 0x40_0000_0000 && OkSlot(fs.files[d], cell as int) &&
        Word(fs.files[d], cell as int) != 0 && Name(fs.files[d], cell as int) == name.data)
      ensures lev <= 9
    {
      ghost var f := fs.files[d];
      ghost var m := dirs[d];
      ghost var at := places[d];
      var ip, nb := Open(txn, d, excl);
      var h := NameHash(name);
      var key := KeyFor(name, h);
      var kind: uint64 := 0;
      var l := name.Len();
      if l > 56 { kind := 1; }
      found, ino, cell, lev := false, 0, 0, 9;
      // deepest level first: most entries of a large directory are there
      var n: uint64 := 9;
      while n > 0
        invariant n <= 9 && lev <= 9 && fs.trees.IsInode(d, ip)
        invariant forall k: int, c: int {:trigger OkSlot(f, c), Bucket(h as int, k)} | n as int <= k < 9 &&
          OkSlot(f, c) && c / 64 == 2 * Bucket(h as int, k) + Class(name.data) && Word(f, c) != 0 ::
          Name(f, c) != name.data
        decreases n
      {
        n := n - 1;
        var blk := BucketBlock(h, n, kind);
        var fr: uint64 := 0;
        if blk < nb {
          var b := fs.ReadBlockOf(txn, ip, d, blk, excl);
          var i, w;
          found, i, w, fr := Search(b, blk, name, key, f, m, at);
          if found {
            ino, cell := w % 0x1_0000_0000_0000, 64 * blk + i;
            return;
          }
        }
        if fr < 64 { lev := n; }
      }
      if name.data in m {
        reveal DirOk();
        var c := at[name.data];
        assert OkSlot(f, c) && Good(f, c, m, at);
        var k := Level(c / 64 / 2);
        assert 0 <= k < 9;
        assert c / 64 == 2 * Bucket(h as int, k) + Class(name.data);
        assert false;
      }
    }

    method Lookup(txn: Txn, d: uint64, name: Bytes, excl: bool) returns (found: bool, ino: uint64)
      requires Valid() && txn.volume == fs.volume && d in dirs && OkName(name.data)
      ensures found <==> name.data in dirs[d]
      ensures found ==> ino == dirs[d][name.data] && OkIno(fs.geometry, ino)
    {
      var cell, lev;
      found, ino, cell, lev := Find(txn, d, name, excl);
    }

    // Lookup that also says where InsertAt should start to look for room
    method LookupHint(txn: Txn, d: uint64, name: Bytes, excl: bool) returns (found: bool, ino: uint64, hint: uint64)
      requires Valid() && txn.volume == fs.volume && d in dirs && OkName(name.data)
      ensures found <==> name.data in dirs[d]
      ensures found ==> ino == dirs[d][name.data] && OkIno(fs.geometry, ino)
    {
      var cell;
      found, ino, cell, hint := Find(txn, d, name, excl);
    }

    // ---- change ----

    // The entry count of d goes up or down by one. ok = false: it cannot go up (it has 64 bits).
    method Count(txn: Txn, d: uint64, down: bool) returns (ok: bool)
      modifies fs.Repr()
      requires fs.Valid() && txn.volume == fs.volume && OkIno(fs.geometry, d) && d in fs.metas &&
        (down ==> 0 < fs.metas[d].nent)
      ensures ok ==> fs.Valid() && fs.files == old(fs.files) && fs.held == old(fs.held) && d in old(fs.metas) &&
        d in fs.metas && fs.metas == old(fs.metas)[d := fs.metas[d]]
      ensures ok ==> fs.metas[d] == WithSizeNent(old(fs.metas)[d], old(fs.metas)[d].size, fs.metas[d].nent,
        old(fs.metas)[d].used)
      ensures ok ==> fs.metas[d].nent as int == old(fs.metas)[d].nent as int + (if down then -1 else 1)
      ensures down ==> ok
      ensures !ok ==> d in old(fs.metas) && old(fs.metas)[d].nent == 0xFFFF_FFFF_FFFF_FFFF
    {
      var ip := fs.GetInode(txn, d, true);
      var n := GetNent(ip);
      if !down && n == 0xFFFF_FFFF_FFFF_FFFF { return false; }
      if down { n := n - 1; } else { n := n + 1; }
      SetNent(ip, n);
      fs.PutInode(txn, d, ip);
      ok := true;
    }

    // bytes of d's file are replaced; its map becomes m, which has one entry more or fewer if count is set
    method Store(txn: Txn, d: uint64, off: uint64, s: Bytes, count: bool, down: bool, ghost m: Dir, ghost at: Places)
      returns (ok: bool)
      modifies Repr(), txn.blocks
      requires Valid() && txn.volume == fs.volume && d in dirs && d in fs.files && 0 < |s.data| < 0x1_0000_0000
      requires DirOk(WriteSpec(fs.files[d], off as int, s.data), m, at) && EntriesOk(fs.geometry, m)
      requires |m| == |dirs[d]| + (if !count then 0 else if down then -1 else 1)
      ensures ok ==> Valid() && d in old(dirs) && dirs == old(dirs)[d := m] && OnlyDir(d) &&
        places == old(places)[d := at]
      ensures Settled(old(fs.files)[d], off as int, |old(s.data)|) && (count ==> down) ==>
        ok && fs.metas[d].size == old(fs.metas)[d].size && fs.metas[d].used == old(fs.metas)[d].used
      ensures ok ==> fs.metas[d].size as int == |WriteSpec(old(fs.files)[d], off as int, old(s.data))|
      ensures ok && InBlock(off, |old(s.data)|) ==>
        old(fs.metas)[d].used <= fs.metas[d].used && fs.metas[d].used as int <= old(fs.metas)[d].used as int + 1
      ensures d in old(fs.metas) && InBlock(off, |old(s.data)|) ==>
        GotBlocks(txn) <= old(GotBlocks(txn)) + Needs.ENTRY &&
        (ok || Stuck(old(fs.metas)[d]) || (txn.blocks.Dry() && GotBlocks(txn) < old(GotBlocks(txn)) + Needs.ENTRY))
    {
      if InBlock(off, |s.data|) {
        OneBlock(off, |s.data|);
        AtMostOne(C.Blocks(off as int, |s.data|) - fs.held[d], off as int / 4096);
      }
      var len := s.Len();
      ghost var src := s.data;
      ghost var g := WriteSpec(fs.files[d], off as int, src);
      assert src[0 .. len as int] == src;
      assert OkIno(fs.geometry, d);
      fs.Bytes(d);
      if Settled(fs.files[d], off as int, |src|) {
        SettledHeld(fs.files[d], fs.held[d], off as int, |src|);
        assert C.Blocks(off as int, |src|) - fs.held[d] == {};
      }
      ok := fs.Write(txn, d, off, s, 0, len);
      if !ok { return; }
      if count {
        ok := Count(txn, d, down);
        if !ok { return; }
      }
      DirsStep(fs.geometry, old(fs.files), old(fs.metas), dirs, places, d, g, fs.metas[d], m, at);
      assert fs.metas == old(fs.metas)[d := fs.metas[d]];
      dirs, places := dirs[d := m], places[d := at];
    }

    // ok = false: no block is free, the name has no place, or d is Stuck; abort the transaction
    method Insert(txn: Txn, d: uint64, name: Bytes, ino: uint64) returns (ok: bool)
      modifies Repr(), txn.blocks
      requires Valid() && txn.volume == fs.volume && d in dirs && OkName(name.data) && OkIno(fs.geometry, ino) &&
        name.data !in dirs[d]
      ensures ok ==> Valid() && d in old(dirs) && dirs == old(dirs)[d := old(dirs)[d][name.data := ino]] &&
        OnlyDir(d) && StayPut(d) && Grew(d)
      ensures NoEntry(txn, d, name.data, old(GotBlocks(txn)), old(fs.files), old(fs.metas), ok)
    { ok := InsertAt(txn, d, name, ino, 0); }

    // what became of room for an entry of d, where `got` was given before
    predicate NoEntry(txn: Txn, d: uint64, name: seq<byte>, got: int, files: map<uint64, seq<byte>>,
      metas: map<uint64, Meta>, ok: bool) reads txn.blocks
    {
      GotBlocks(txn) <= got + Needs.ENTRY && d in files && d in metas &&
      (ok || Crowded(files[d], name) || Stuck(metas[d]) || (txn.blocks.Dry() && GotBlocks(txn) < got + Needs.ENTRY))
    }

    method InsertAt(txn: Txn, d: uint64, name: Bytes, ino: uint64, hint: uint64) returns (ok: bool)
      modifies Repr(), txn.blocks
      requires Valid() && txn.volume == fs.volume && d in dirs && OkName(name.data) && OkIno(fs.geometry, ino) &&
        name.data !in dirs[d]
      ensures ok ==> Valid() && d in old(dirs) && dirs == old(dirs)[d := old(dirs)[d][name.data := ino]] &&
        OnlyDir(d) && StayPut(d) && Grew(d)
      ensures NoEntry(txn, d, name.data, old(GotBlocks(txn)), old(fs.files), old(fs.metas), ok)
    {
      assert OkIno(fs.geometry, d);
      var h := NameHash(name);
      var key := KeyFor(name, h);
      var cell, size;
      ok, cell, size := Room(txn, d, name, h, hint);
      if !ok { ok, cell, size := Room(txn, d, name, h, 0); }     // the hint may be wrong
      if !ok { return; }
      var s := MakeSlot(size, ino, name, key);
      ghost var m, at := InsertProof(fs.geometry, fs.files[d], dirs[d], places[d], cell as int, s.data, ino, name.data);
      assert N.BlockEnd(cell as int + 3) == 4096 * (cell as int / 64 + 1);
      assert 64 * cell as int % 4096 == 64 * (cell as int % 64);
      assert InBlock(64 * cell, |s.data|);
      ok := Store(txn, d, 64 * cell, s, true, false, m, at);
      assert NoEntry(txn, d, name.data, old(GotBlocks(txn)), old(fs.files), old(fs.metas), ok);
      if !ok { return; }
      assert name.data in m && !C.Within(m, old(dirs)[d]);
      assert StayPut(d);
    }

    // A free cell in the name's bucket of the first level that has one, from `from` on. size:
    // that of the slot, or that of a block if the cell's block does not exist yet.
    method Room(txn: Txn, d: uint64, name: Bytes, h: uint64, from: uint64)
      returns (ok: bool, cell: uint64, size: uint64)
      requires Valid() && txn.volume == fs.volume && d in dirs && OkName(name.data) && h == HashOf(name.data)
      ensures d in fs.files
      ensures ok ==> cell < 0x40_0000_0000 && cell as int / 64 % 2 == Class(name.data) &&
        Placed(cell as int / 64, name.data) && 8 + |name.data| <= size as int
      ensures ok ==> if 64 * cell as int < |fs.files[d]| then size as int == Size(cell as int) &&
        OkSlot(fs.files[d], cell as int) && Word(fs.files[d], cell as int) == 0
                     else cell % 64 == 0 && size == 4096
      ensures ok ==> cell % 64 * 64 + size <= 4096
      ensures !ok && from == 0 ==> Crowded(fs.files[d], name.data)
    {
      var ip, nb := Open(txn, d, true);
      var l := name.Len();
      var kind: uint64 := 0;
      size := 64;
      if l > 56 { kind, size := 1, 512; }
      var n := from;
      while n < 9
        invariant fs.trees.IsInode(d, ip)
        invariant forall k: int {:trigger Bucket(h as int, k)} | from as int <= k < n as int && k < 9 ::
          FullBlock(fs.files[d], 2 * Bucket(h as int, k) + Class(name.data))
        decreases 9 - n as int
      {
        var blk := BucketBlock(h, n, kind);
        BucketPlaced(name.data, n as int);
        if blk >= nb {
          return true, 64 * blk, 4096;
        }
        var b := fs.ReadBlockOf(txn, ip, d, blk, true);
        var i := SearchFree(b, blk, fs.files[d]);
        if i < 64 {
          return true, 64 * blk + i, size;
        }
        n := n + 1;
      }
      ok, cell := false, 0;
    }

    // always ok: the name's slot is there
    method Replace(txn: Txn, d: uint64, name: Bytes, ino: uint64) returns (ok: bool)
      modifies Repr(), txn.blocks
      requires Valid() && txn.volume == fs.volume && d in dirs && OkName(name.data) && OkIno(fs.geometry, ino) &&
        name.data in dirs[d]
      ensures ok && Valid() && d in old(dirs) && dirs == old(dirs)[d := old(dirs)[d][name.data := ino]] && OnlyDir(d) &&
        StayPut(d) && Grew(d)
      ensures fs.metas == old(fs.metas)
    {
      var found, ino0, cell, lev := Find(txn, d, name, true);
      var h := NameHash(name);
      var key := KeyFor(name, h);
      var size: uint64 := 64;
      if cell / 64 % 2 == 1 { size := 512; }
      NameFits(fs.files[d], cell as int, dirs[d], places[d]);
      var s := MakeSlot(size, ino, name, key);
      ghost var f := fs.files[d];
      ghost var g := WriteSpec(f, 64 * cell as int, s.data);
      assert g[64 * cell as int .. 64 * cell as int + |s.data|] == s.data;
      SlotLaid(g, cell as int, s.data, ino, name.data);
      DirReplace(f, g, dirs[d], places[d], cell as int, ino, name.data);
      SlotSettled(f, cell as int);
      ok := Store(txn, d, 64 * cell, s, false, false, dirs[d][name.data := ino], places[d]);
    }

    // always ok, as Replace
    method Remove(txn: Txn, d: uint64, name: Bytes) returns (ok: bool)
      modifies Repr(), txn.blocks
      requires Valid() && txn.volume == fs.volume && d in dirs && OkName(name.data) && name.data in dirs[d]
      ensures ok && Valid() && d in old(dirs) && dirs == old(dirs)[d := DirDel(old(dirs)[d], name.data)] &&
        OnlyDir(d) && StayPut(d) && Grew(d)
      ensures fs.metas[d].size == old(fs.metas)[d].size
    {
      var found, ino0, cell, lev := Find(txn, d, name, true);
      var size: uint64 := 64;
      if cell / 64 % 2 == 1 { size := 512; }
      var s := NewBytes(size);
      ghost var f := fs.files[d];
      ghost var g := WriteSpec(f, 64 * cell as int, s.data);
      assert g[64 * cell as int .. 64 * cell as int + 8] == [0,0,0,0,0,0,0,0] by {
        assert g[64 * cell as int .. 64 * cell as int + |s.data|] == s.data;
        forall k: int | 0 <= k < 8 ensures g[64 * cell as int + k] == 0 { assert g[64 * cell as int + k] == s.data[k]; }
      }
      Dec64Zero();
      DirRemove(f, g, dirs[d], places[d], cell as int, name.data);
      CardDel(dirs[d], name.data);
      SlotSettled(f, cell as int);
      ok := Store(txn, d, 64 * cell, s, true, true, DirDel(dirs[d], name.data), places[d]);
      GiveBack(txn, d, cell / 64);
    }

    // Makes a hole of block blk of d's file if it is empty, so that a large directory that is emptied gives its room
    // back. Blocks of the first two levels stay: entries come and go in them.
    method GiveBack(txn: Txn, d: uint64, blk: uint64)
      modifies Repr()
      requires Valid() && txn.volume == fs.volume && d in dirs && blk < 0x1_0000_0000
      ensures Valid() && dirs == old(dirs) && places == old(places) && d in fs.files && fs.files == old(fs.files)
      ensures d in old(fs.metas) && d in fs.metas &&
        fs.metas == old(fs.metas)[d := WithUsed(old(fs.metas)[d], fs.metas[d].used)]
      ensures d in fs.held && fs.held == old(fs.held)[d := fs.held[d]]
      ensures old(fs.metas)[d].used as int - 1 <= fs.metas[d].used as int <= old(fs.metas)[d].used as int
    {
      ghost var f := fs.files[d];
      assert OkIno(fs.geometry, d) && d in fs.metas;
      fs.Bytes(d);
      if blk < FirstLevels { return; }
      var ip, nb := Open(txn, d, true);
      if blk >= nb { return; }
      var b := fs.ReadBlockOf(txn, ip, d, blk, true);
      var zero := IsZero(b);
      if !zero { return; }
      assert f[4096 * blk as int .. 4096 * blk as int + 4096] == Zeros(4096);
      var m := fs.Punch(txn, d, blk, blk + 1, 1);
      AtMostOne(old(fs.held)[d] * Local.Span(m as int, blk as int + 1), m as int);
      assert Local.Zeroed(f, 4096 * blk as int, 4096 * (blk + 1) as int) == f;
      DirsStep(fs.geometry, old(fs.files), old(fs.metas), dirs, places, d, f, fs.metas[d], dirs[d], places[d]);
    }

    // no search: the count is in the inode
    method IsEmpty(txn: Txn, d: uint64) returns (e: bool)
      requires Valid() && txn.volume == fs.volume && d in dirs
      ensures e <==> dirs[d] == map[]
    {
      var ip := fs.GetInode(txn, d, false);
      var n := GetNent(ip);
      e := n == 0;
    }

    // ---- listing ----

    // Offer the entries after cookie (below 3: all; cookies 1 and 2 belong to "." and "..",
    // which are the caller's) in the order of their places until one does not fit.
    // eof: none is left.
    method List(txn: Txn, d: uint64, cookie: uint64, out: List) returns (eof: bool)
      modifies out
      requires Valid() && txn.volume == fs.volume && d in dirs && Within(out)
      ensures Within(out) && out.attrs == old(out.attrs) && |old(out.got)| <= |out.got| &&
        out.got[..|old(out.got)|] == old(out.got) && d in places
      ensures PageOk(dirs[d], places[d], if cookie < 2 then 2 else cookie as int, eof, out.got[|old(out.got)|..])
      ensures !eof ==> IsFull(dirs[d], places[d],
        Last(if cookie < 2 then 2 else cookie as int, out.got[|old(out.got)|..]), out.room, out.got)
    {
      ghost var f, m, at := fs.files[d], dirs[d], places[d];
      ghost var got := out.got;
      ghost var after := if cookie < 2 then 2 else cookie as int;
      ghost var page: seq<DirEntry> := [];
      var ip, nb := Open(txn, d, false);
      var c: uint64 := 0;
      if cookie >= 3 { c := cookie - 2; }
      var blk, i := c / 64, c % 64;
      ghost var end := c as int;
      PlaceOf(f, m, at);
      UptoStart(m, at, after, end);
      TookNone(got);
      while blk < nb
        invariant i < 64 && fs.trees.IsInode(d, ip) && end == 64 * blk as int + i as int
        invariant Within(out) && out.attrs == old(out.attrs) && Took(out.got, got, page) &&
          Upto(m, at, after, end, page) && after < Cookie(end)
        decreases nb as int - blk as int
      {
        var next := SkipHoles(txn, ip, d, blk, nb);
        if next != blk {
          assert f == fs.files[d];
          Hole(f, m, at, after, blk as int, next as int, end, page);
          blk, i, end := next, 0, 64 * next as int;
        } else {
          var b := fs.ReadBlockOf(txn, ip, d, blk, false);
          ghost var all := out.got;
          var fits; ghost var e, more;
          fits, e, more := ListBlock(b, blk, i, out, f, m, at, after, page);
          TookMore(all, got, page, more);
          page := page + more;
          if !fits {
            UptoPage(f, m, at, after, e, false, page);
            TookPage(out.got, got, page);
            return false;
          }
          blk, i, end := blk + 1, 0, e;
        }
      }
      UptoPage(f, m, at, after, end, true, page);
      TookPage(out.got, got, page);
      eof := true;
    }

    // The blocks from n on and before m, of the nb blocks of the file, are holes. Looks no
    // further than the indirect block of n, which says so of 512 blocks at once.
    method SkipHoles(txn: Txn, ip: Bytes, d: uint64, n: uint64, nb: uint64) returns (m: uint64)
      requires Valid() && txn.volume == fs.volume && fs.trees.IsInode(d, ip) && d in fs.files && n < nb <= 0x800_0000 &&
        4096 * nb as int <= |fs.files[d]|
      ensures n <= m <= nb
      ensures forall x: int | 4096 * n as int <= x < 4096 * m as int :: fs.files[d][x] == 0
    {
      m := n;
      var k := FlatK(n);
      if k < 12 { return; }
      PosOfOk(d, n);
      var pb := fs.trees.ReadParent(txn, ip, d, k, MaxLev(k), FlatJ(n), false);
      var i := FlatJ(n) % 512;
      ghost var i0 := i;
      while m < nb && i < 512
        invariant n <= m <= nb && i <= 512 && i as int == i0 as int + m as int - n as int
        invariant forall x: int | 4096 * n as int <= x < 4096 * m as int :: fs.files[d][x] == 0
        decreases nb - m
      {
        var bn := pb.U64(8 * i);
        if bn != 0 { return; }
        HoleBlock(d, n, m, pb.v);
        m, i := m + 1, i + 1;
      }
    }

    // v is the indirect block above block n of the file, and has no block for block y
    lemma HoleBlock(d: uint64, n: uint64, y: uint64, v: seq<byte>)
      requires Valid() && OkIno(fs.geometry, d) && d in fs.files && 12 <= FlatK(n) && n <= y < 0x800_0000 &&
        4096 * y as int + 4096 <= |fs.files[d]|
      requires OkPos(PosOf(d, n)) && PosOf(d, n).level > 0 && OkPos(Parent(PosOf(d, n))) &&
        fs.trees.IsParent(PosOf(d, n), v)
      requires var i := FlatJ(n) as int % 512 + y as int - n as int; i < 512 && U64At(v, 8 * i) == 0
      ensures forall x: int | 4096 * y as int <= x < 4096 * y as int + 4096 :: fs.files[d][x] == 0
    {
      PosOfOk(d, n);
      PosOfOk(d, y);
      var p := PosOf(d, y);
      assert FlatK(y) == FlatK(n) && FlatJ(y) as int == FlatJ(n) as int + y as int - n as int;
      assert FlatJ(y) / 512 == FlatJ(n) / 512;
      assert Parent(p) == Parent(PosOf(d, n));
      fs.trees.Child(p, v);
      assert IsData(p);
      assert fs.trees.data[p] == Zeros(4096) by { reveal DataOk(); }
      forall x: int | 4096 * y as int <= x < 4096 * y as int + 4096
        ensures fs.files[d][x] == 0
      {
        DivMod(4096 * y as int, x - 4096 * y as int);
        BlockByte(fs.trees.data, d, x);
        reveal FileMatch();
        assert ByteAt(fs.trees.data, d, x) == fs.files[d][x];
      }
    }

    // ---- inodes, and files that are not directories ----

    method AllocInode(txn: Txn, near: uint64, ty: uint32) returns (ok: bool, ino: uint64)
      modifies Repr(), txn.inodes
      requires Valid() && txn.volume == fs.volume && ty != 0
      ensures ok ==> Valid() && OkIno(fs.geometry, ino) && 2 < ino && ino !in old(dirs) && ino in old(fs.metas) &&
        old(fs.metas)[ino].ty == 0
      ensures ok ==> dirs == (if ty == 2 then old(dirs)[ino := map[]] else old(dirs)) &&
        places == (if ty == 2 then old(places)[ino := map[]] else old(places))
      ensures ok ==> ino in old(fs.files) && old(fs.files)[ino] == [] && fs.files == old(fs.files)[ino := []] &&
        fs.held == old(fs.held)[ino := {}]
      ensures ok ==> old(fs.metas)[ino].gen < 0xffff_ffff_ffff_ffff &&
        fs.metas == old(fs.metas)[ino := NewMeta(ty, old(fs.metas)[ino].gen + 1)]
      ensures GotInodes(txn) <= old(GotInodes(txn)) + 1
      ensures !ok ==> (txn.inodes.Dry() && GotInodes(txn) <= old(GotInodes(txn))) || Unfit(fs.geometry, old(fs.metas))
    {
      ok, ino := fs.AllocInode(txn, near, ty);
      if ok && ty == 2 {
        dirs, places := dirs[ino := map[]], places[ino := map[]];
        DirEmpty(map[]);
      }
    }

    // of an inode that is empty and shrunk; always ok
    method FreeInode(txn: Txn, ino: uint64) returns (ok: bool)
      modifies Repr()
      requires Valid() && txn.volume == fs.volume && OkIno(fs.geometry, ino) && 2 < ino && ino in fs.files &&
        fs.files[ino] == [] && ino in fs.metas && fs.metas[ino].shrink == 0
      ensures ok && Valid() && places == old(places) && dirs == map d | d in old(dirs) && d != ino :: old(dirs)[d]
      ensures fs.files == old(fs.files) && fs.held == old(fs.held) && ino in old(fs.metas) &&
        fs.metas == old(fs.metas)[ino := NewMeta(0, old(fs.metas)[ino].gen)]
    {
      ok := fs.FreeInode(txn, ino);
      dirs := map d | d in dirs && d != ino :: dirs[d];
    }

    method PutInode(txn: Txn, ino: uint64, ip: Bytes)
      modifies Repr()
      requires Valid() && txn.volume == fs.volume && OkIno(fs.geometry, ino) && |ip.data| == 256
      requires ino in fs.metas && var m, n := MetaOf(ip.data), fs.metas[ino];
        m.size == n.size && m.shrink == n.shrink && m.used == n.used && m.ty == n.ty && m.nent == n.nent
      requires fs.SameBlks(ino, ip.data)
      ensures Valid() && dirs == old(dirs) && places == old(places) && fs.files == old(fs.files) &&
        fs.held == old(fs.held) && fs.metas == old(fs.metas)[ino := MetaOf(ip.data)]
      ensures fs.trees.store.used == old(fs.trees.store.used)
    { fs.PutInode(txn, ino, ip); }

    method Write(txn: Txn, ino: uint64, off: uint64, src: Bytes, so: uint64, len: uint64) returns (ok: bool)
      modifies Repr(), txn.blocks
      requires Valid() && txn.volume == fs.volume && OkIno(fs.geometry, ino) && ino !in dirs &&
        so as int + len as int <= |src.data|
      ensures ok ==> Valid() && dirs == old(dirs) && places == old(places) && ino in old(fs.files) &&
        fs.files == (if len == 0 then old(fs.files)
        else old(fs.files)[ino := WriteSpec(old(fs.files)[ino], off as int, src.data[so as int..so as int+len as int])])
      ensures ok ==> ino in old(fs.metas) && ino in fs.metas
      ensures ok && len == 0 ==> fs.metas == old(fs.metas) && fs.held == old(fs.held)
      ensures ok && len != 0 ==> ino in old(fs.held) &&
        fs.held == old(fs.held)[ino := old(fs.held)[ino] + C.Blocks(off as int, len as int)]
      ensures ok && len != 0 ==> off as int + len as int <= 549755813888 && |fs.files[ino]| < 0x1_0000_0000_0000_0000 &&
        CanSize(old(fs.metas)[ino], |fs.files[ino]| as uint64) &&
        fs.metas == old(fs.metas)[ino := WithSizeUsed(old(fs.metas)[ino], |fs.files[ino]| as uint64,
        fs.metas[ino].used)]
      ensures ok && len != 0 ==> fs.metas[ino].used as int == old(fs.metas)[ino].used as int
        + |C.Blocks(off as int, len as int) - old(fs.held)[ino]|
      ensures ino in old(fs.metas) && ino in old(fs.held) && len != 0 &&
        MayWrite(old(fs.metas)[ino], off as int + len as int) &&
        C.Blocks(off as int, len as int) <= old(fs.held)[ino] ==> ok
      ensures GotBlocks(txn) <= old(GotBlocks(txn)) + Needs.Bytes(off as int, len as int)
      ensures ino in old(fs.metas) && (!ok && MayWrite(old(fs.metas)[ino], off as int + len as int) ==>
        txn.blocks.Dry() && GotBlocks(txn) < old(GotBlocks(txn)) + Needs.Bytes(off as int, len as int))
    { ok := fs.Write(txn, ino, off, src, so, len); }

    method Punch(txn: Txn, ino: uint64, lo: uint64, n: uint64, max: uint64) returns (m: uint64)
      modifies Repr()
      requires Valid() && txn.volume == fs.volume && OkIno(fs.geometry, ino) && ino !in dirs && ino in fs.files &&
        lo <= n &&
        n as int <= Writing.BlocksFor(|fs.files[ino]|)
      ensures Valid() && dirs == old(dirs) && places == old(places) && lo <= m <= n && (lo < n && 0 < max ==> m < n)
      ensures ino in old(fs.files) && fs.files == old(fs.files)[ino :=
        Local.Zeroed(old(fs.files)[ino], 4096 * m as int, 4096 * n as int)]
      ensures ino in old(fs.held) && fs.held == old(fs.held)[ino := old(fs.held)[ino] - Local.Span(m as int, n as int)]
      ensures ino in old(fs.metas) && ino in fs.metas &&
        fs.metas == old(fs.metas)[ino := WithUsed(old(fs.metas)[ino], fs.metas[ino].used)]
      ensures fs.metas[ino].used as int == old(fs.metas)[ino].used as int - |old(fs.held)[ino] * Local.Span(m as int,
        n as int)|
    { m := fs.Punch(txn, ino, lo, n, max); }

    // of a directory: only an empty one, and only to nothing, before its inode is freed
    method SetSize(txn: Txn, ino: uint64, sz: uint64) returns (ok: bool)
      modifies Repr()
      requires Valid() && txn.volume == fs.volume && OkIno(fs.geometry, ino) &&
        (ino in dirs ==> dirs[ino] == map[] && sz == 0)
      ensures ino in old(fs.metas) && (ok <==> CanSize(old(fs.metas)[ino], sz))
      ensures ok ==> Valid() && dirs == old(dirs) && places == old(places) && ino in old(fs.files) &&
        fs.files == old(fs.files)[ino := SizeSpec(old(fs.files)[ino], sz as int)]
      ensures ok ==> ino in old(fs.held) && fs.held == old(fs.held)[ino := C.HeldBelow(old(fs.held)[ino], sz as int)]
      ensures ok ==> fs.metas == old(fs.metas)[ino := Resized(old(fs.metas)[ino], sz)]
    {
      ok := fs.SetSize(txn, ino, sz);
      if ok && ino in dirs {
        assert fs.files[ino] == [];
        DirEmpty(places[ino]);
      }
    }

    method FreeSome(txn: Txn, ino: uint64, max: uint64) returns (done: bool)
      modifies Repr()
      requires Valid() && txn.volume == fs.volume && OkIno(fs.geometry, ino)
      ensures Valid() && dirs == old(dirs) && places == old(places) && fs.files == old(fs.files) &&
        fs.held == old(fs.held)
      ensures ino in old(fs.metas) && ino in fs.metas && fs.metas == old(fs.metas)[ino := fs.metas[ino]] &&
        fs.metas[ino] == WithLeftover(old(fs.metas)[ino], LeftoverOf(fs.metas[ino])) &&
        fs.metas[ino].used <= old(fs.metas)[ino].used
      ensures done <==> fs.metas[ino].shrink == 0
      ensures old(fs.metas)[ino].shrink == 0 ==> fs.metas == old(fs.metas)
      ensures !done && 0 < max ==> fs.metas[ino].shrink < old(fs.metas)[ino].shrink
      ensures Little(old(fs.metas)[ino], max) ==> done
    { done := fs.FreeSome(txn, ino, max); }
  }

  // n bytes at off lie in one block
  predicate InBlock(off: uint64, n: int) { 0 < n && off as int % 4096 + n <= 4096 && off < 549755813888 }
  lemma OneBlock(off: uint64, n: int)
    requires InBlock(off, n)
    ensures 0 < Needs.Bytes(off as int, n) <= Needs.ENTRY && off as int + n <= 549755813888
  { }
  // Nothing can be entered: blocks that were cut off wait to be freed, or the count of entries is at its end. No
  // directory with a name comes to either.
  predicate Stuck(m: Meta) { m.shrink != 0 || m.nent == 0xFFFF_FFFF_FFFF_FFFF }

  lemma AtMostOne(s: set<int>, x: int)
    requires forall y: int {:trigger y in s} | y in s :: y == x
    ensures |s| <= 1
  { if x in s { assert s == {x}; } else { assert s == {}; } }

  // the blocks of the first two levels, of both classes
  const FirstLevels: uint64 := 18

  method IsZero(b: Blk) returns (zero: bool)
    requires |b.v| == 4096
    ensures zero ==> b.v == Zeros(4096)
  {
    var i: uint64 := 0;
    while i < 4096
      invariant i <= 4096 && forall k: int | 0 <= k < i as int :: b.v[k] == 0
    {
      var x := b.Get(i);
      if x != 0 { return false; }
      i := i + 1;
    }
    zero := true;
  }

  // a slot with an entry lies in a block that is there
  lemma SlotSettled(f: seq<byte>, c: int)
    requires OkSlot(f, c) && Word(f, c) != 0
    ensures Settled(f, 64 * c, Size(c))
  {
    var s := f[64 * c .. 64 * c + 8];
    if forall i: int | 0 <= i < 8 :: s[i] == 0 {
      assert s == [0,0,0,0,0,0,0,0];
      Dec64Zero();
    } else {
      var i: int :| 0 <= i < 8 && s[i] != 0;
      assert f[64 * c + i] == s[i];
    }
  }

  // a slot's name fits it
  lemma NameFits(f: seq<byte>, c: int, m: Dir, at: Places)
    requires DirOk(f, m, at) && OkSlot(f, c) && Word(f, c) != 0
    ensures 0 < |Name(f, c)| <= Cap(c)
  {
    reveal DirOk();
    assert Good(f, c, m, at);
  }

  // s, a slot or a block that begins with one, laid over a free cell adds the name
  lemma InsertProof(geo: Geometry, f: seq<byte>, m: Dir, at: Places, c: int, s: seq<byte>, ino: uint64, n: seq<byte>)
    returns (m': Dir, at': Places)
    requires GeometryOk(geo) && DirOk(f, m, at) && EntriesOk(geo, m) && OkName(n) && OkIno(geo, ino) && n !in m
    requires 0 <= c && c / 64 % 2 == Class(n) && Placed(c / 64, n) && IsSlot(s, ino, n)
    requires if 64 * c < |f| then |s| == Size(c) && OkSlot(f, c) && Word(f, c) == 0 else c % 64 == 0 && |s| == 4096
    ensures m' == m[n := ino] && at' == at[n := c] && |m'| == |m| + 1 && EntriesOk(geo, m') &&
      DirOk(WriteSpec(f, 64 * c, s), m', at')
    ensures |WriteSpec(f, 64 * c, s)| == C.Larger(|f|, 4096 * (c / 64 + 1))
  {
    m', at' := m[n := ino], at[n := c];
    var g := WriteSpec(f, 64 * c, s);
    assert g[64 * c .. 64 * c + |s|] == s;
    assert |f| % 4096 == 0 by { reveal DirOk(); }
    if 64 * c < |f| {
      SlotLaid(g, c, s, ino, n);
      DirInsert(f, g, m, at, c, ino, n);
    } else {
      var e := f + Zeros(|g| - |f|);
      DirGrow(f, e, m, at);
      SlotLaid(g, c, s, ino, n);
      assert OkSlot(e, c);
      DirInsert(e, g, m, at, c, ino, n);
    }
  }

  // places are cells
  lemma PlaceOf(f: seq<byte>, m: Dir, at: Places)
    requires DirOk(f, m, at)
    ensures forall n: seq<byte> | n in m && n in at :: 0 <= at[n]
  {
    reveal DirOk();
    forall n: seq<byte> | n in m && n in at ensures 0 <= at[n] { assert OkSlot(f, at[n]); }
  }

  // a hole has no entries
  lemma Hole(f: seq<byte>, m: Dir, at: Places, cookie: int, blk: int, next: int, end: int, page: seq<DirEntry>)
    requires DirOk(f, m, at) && Upto(m, at, cookie, end, page) && 0 <= 64 * blk <= end <= 64 * next &&
      4096 * next <= |f|
    requires forall x: int | 4096 * blk <= x < 4096 * next :: f[x] == 0
    ensures Upto(m, at, cookie, 64 * next, page)
  {
    forall c: int | OkSlot(f, c) && end <= c < 64 * next
      ensures Word(f, c) == 0
    { assert f[64*c .. 64*c+8] == [0,0,0,0,0,0,0,0]; Dec64Zero(); }
    UptoSkip(f, m, at, cookie, end, 64 * next, page);
  }
}
