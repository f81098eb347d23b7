// What room.s.dfy demands and forbids, by cases.
include "room.s.dfy"
module RoomScenarios {
  import opened Machine
  import opened NfsState
  import opened NfsRoom
  import V = NfsVolume
  import C = NfsCommon

  // NOSPC is allowed if one block is wanting, and forbidden if all are there.
  lemma Lacking(data: seq<byte>)
    requires |data| == 8192
    ensures Lacks(Room(1, 9, false), WriteNeeds(4096, data)) && !Lacks(Room(2, 9, false), WriteNeeds(4096, data))
    ensures !Lacks(Room(2, 0, false), WriteNeeds(4096, data))
    ensures Lacks(Room(9, 0, false), MakeNeeds()) && !Lacks(Room(4, 1, false), MakeNeeds())
    ensures Lacks(Room(4, 1, false), SymlinkNeeds([65])) && !Lacks(Room(5, 1, false), SymlinkNeeds([65]))
    ensures Lacks(Room(3, 9, false), EntryNeeds()) && !Lacks(Room(4, 0, false), EntryNeeds())
    ensures Lacks(Room(3, 9, false), XattrNeeds()) && !Lacks(Room(4, 0, false), XattrNeeds())
    ensures Lacks(Room(9, 0, false), NamelessNeeds()) && !Lacks(Room(0, 1, false), NamelessNeeds())
  { assert Bytes(4096, 8192) == 2; assert Bytes(0, 1) == 1; }

  // Whatever is free, the host may have no room.
  lemma Refused(n: Need)
    requires n.blocks < 1000 && n.inodes < 1000
    ensures Lacks(Room(1000, 1000, true), n) && !Lacks(Room(1000, 1000, false), n)
  { }

  // What leads to blocks is counted once for each stretch of 512.
  lemma Led()
    ensures Bytes(0, 12 * 4096) == 12 && Bytes(12 * 4096, 4096) == 2 && Bytes(12 * 4096, 512 * 4096) == 513
    ensures Bytes(524 * 4096, 4096) == 3 && Bytes(262668 * 4096, 513 * 4096) == 519
  { }

  // What a file has is not needed to set room aside for it; of each block that it has not, so is what leads to it.
  lemma SetAside()
    ensures !Lacks(Room(0, 0, false), AllocateNeeds(0, 4096, {0}))
    ensures Lacks(Room(3, 0, false), AllocateNeeds(0, 8192, {0}))
    ensures !Lacks(Room(4, 0, false), AllocateNeeds(0, 8192, {0}))
  {
    assert C.Blocks(0, 4096) - {0} == {};
    assert C.Blocks(0, 8192) - {0} == {1};
  }

  // The number of an inode that was given out too often is no reason while others were not.
  lemma WornOut(f: FS, g: FS)
    requires f.gens == map[1 := 1, 3 := 7] && g.gens == map[1 := 1, 3 := 0xffff_ffff_ffff_ffff]
    ensures !Worn(f) && Worn(g)
  { assert 3 in g.gens; }

  // FSSTAT says what is free, neither less nor more.
  lemma Says(s: V.Space)
    requires s.fbytes == 40960 && s.ffiles == 7
    ensures Told(s, 10, 7) && !Told(s, 9, 7) && !Told(s, 11, 7) && !Told(s, 10, 6) && !Told(s, 10, 8) && !Told(s, 0, 0)
  { }
}
