// The specification, tried out: concrete calls on a small volume, with the result
// that nfs3.s.dfy must allow, or must not. They show that its predicates can be
// satisfied, and that they exclude what everybody would call wrong. Each `ensures`
// is a scenario or two; one lemma has those of a procedure.
//
// The volume V: the root (owner root, mode 0777) has the file "a" (inode 3, of ann,
// bytes 1 2 3), the directory "d" (4, of ann, 0755), the symbolic link "s" (5), and the
// FIFO "p" (6). "d" has "b", a second name of "a", and the empty directory "e" (7).
include "nfs3.s.dfy"

module ScenarioV {
  import opened Machine import opened NfsState import opened NfsPerm import opened NfsCommon

  // names by their letter: 97 a, 98 b, 100 d, 101 e, 112 p, 115 s; 120 x names nothing; 46 is "."
  function L(c: byte): Name { [c] }
  lemma Letters()
    ensures forall c: byte, d: byte {:trigger L(c), L(d)} :: L(c) == L(d) ==> c == d
    ensures forall c: byte {:trigger L(c)} | c != 0 && c != 46 && c != 47 :: Proper(L(c))
  {
    forall c: byte, d: byte | L(c) == L(d) ensures c == d { assert L(c)[0] == c && L(d)[0] == d; }
    forall c: byte | c != 0 && c != 46 && c != 47 ensures Proper(L(c)) { assert L(c)[0] == c && |L(c)| == 1; }
  }
  // ann and bob share the group 20
  function Root(): Caller { Caller(0, 0, [], map[]) }
  function Ann(): Caller { Caller(10, 20, [30], map[]) }
  function Bob(): Caller { Caller(11, 21, [20], map[]) }
  function Eve(): Caller { Caller(12, 22, [], map[]) }

  function Now(): Time { Time(9, 5) }
  function Of(mode: uint32, nlink: uint32, uid: uint32, gid: uint32): Attr
  { Attr(mode, nlink, uid, gid, Time(1, 0), Time(2, 0), Time(3, 0), 0) }
  function N1(): Node
  { Node(Of(511, 3, 0, 0), Dir(map[L(97) := 3, L(100) := 4, L(115) := 5, L(112) := 6],
    map[L(97) := 10, L(100) := 11, L(115) := 12, L(112) := 13], 1, 4096), 1) }
  function N3(): Node { Node(Of(420, 2, 10, 20), File([1, 2, 3], 77, {0}), 1) }
  function N4(): Node
  { Node(Of(493, 3, 10, 20), Dir(map[L(98) := 3, L(101) := 7], map[L(98) := 5, L(101) := 8], 1, 4096), 1) }
  function V(): FS
  {
    FS(map[1 := N1(), 3 := N3(), 4 := N4(), 5 := Node(Of(511, 1, 10, 20), Symlink([65, 66]), 1),
      6 := Node(Of(384, 1, 10, 20), Special(7, 0, 0), 0),
      7 := Node(Of(493, 2, 10, 20), Dir(map[], map[], 4, 0), 0)],
        map[1 := 1, 2 := 1, 3 := 5, 4 := 5, 5 := 5, 6 := 5, 7 := 5, 8 := 6, 9 := 0],
        map[3 := Xattrs(5, map[[117, 46, 97] := [1]])])
  }
  // V with another node i
  function With(i: uint64, n: Node): FS { FS(V().nodes[i := n], V().gens, V().xattrs) }
  function H(i: uint64): Handle { Handle(i, if i == 1 then 1 else 5) }
  function F(f: FS, i: uint64): Fattr requires i in f.nodes { FattrOf(i, f.nodes[i]) }
  function W(f: FS, g: FS, i: uint64): Wcc requires i in f.nodes && i in g.nodes { Wcc(F(f, i), F(g, i)) }
  // directory n with other entries, touched
  function Entries(n: Node, names: map<Name, uint64>, places: map<Name, int>, nlink: uint32): Node
    requires n.body.Dir?
  { Node(SetMtimeCtime(n.attr, nlink, Now()), Dir(names, places, n.body.parent, n.body.bytes), n.blocks) }
  function Mode(m: uint32): Sattr { Sattr(Some(m), None, None, None, DontChange, DontChange) }
  // an owner, a group, or both, wanted for what is made or changed
  function Ids(uid: Option<uint32>, gid: Option<uint32>): Sattr { Sattr(None, uid, gid, None, DontChange, DontChange) }
}

module ScenarioAttrs {
  import opened Machine import opened ByteSpec import opened NfsState import opened NfsPerm import opened NfsCommon
  import opened NfsAttrs import opened NfsVolume import opened ScenarioV

  // V is one of the volumes that can occur.
  lemma Sane()
    ensures Tree(V(), map[1 := 0, 4 := 1, 7 := 2]) && Bodies(V())
  { Letters(); }

  lemma Null()
    ensures NullOk(V(), V())
    ensures !NullOk(V(), With(3, N4()))
  { assert V().nodes[3] != With(3, N4()).nodes[3]; }

  lemma Getattr(a: Fattr)
    ensures GetattrOk(V(), H(3), Fattr(1, 420, 2, 10, 20, 3, 4096, 0, 0, 3, Time(1, 0), Time(2, 0), Time(3, 0)))
    // the handle of an earlier use of the inode, and one of an inode nobody uses
    ensures GetattrErr(V(), Handle(3, 4), NFS3ERR_STALE) && GetattrErr(V(), Handle(8, 6), NFS3ERR_STALE)
    ensures !GetattrErr(V(), H(3), NFS3ERR_STALE) && !GetattrOk(V(), Handle(3, 4), a)
  { }

  lemma Setattr1(post: FS, w: Wcc)
    // the owner sets the mode: ctime moves, and the verifier of the CREATE has served; nothing else
    ensures var f := With(3, Node(Attr(384, 2, 10, 20, Time(1, 0), Time(2, 0), Now(), 0), File([1, 2, 3], 0, {0}), 1));
      SetattrOk(V(), f, Ann(), H(3), Mode(384), None, Now(), W(V(), f, 3))
    // others may not
    ensures !SetattrOk(V(), post, Eve(), H(3), Mode(511), None, Now(), w) &&
      SetattrErr(V(), Eve(), H(3), Mode(511), None, NFS3ERR_PERM)
    // nothing to set: nothing moves
    ensures SetattrOk(V(), post, Eve(), H(3), NoSattr(), None, Now(), w) ==> post == V()
    // another ctime than the guard, and the same
    ensures !SetattrOk(V(), post, Ann(), H(3), Mode(384), Some(Time(3, 1)), Now(), w) &&
      SetattrErr(V(), Ann(), H(3), Mode(384), Some(Time(3, 1)), NFS3ERR_NOT_SYNC)
    ensures !SetattrErr(V(), Ann(), H(3), Mode(384), Some(Time(3, 0)), NFS3ERR_NOT_SYNC)
  { }
  lemma Setattr2(post: FS, w: Wcc)
    // extended with zeros; mtime moves
    ensures SetattrOk(V(), post, Ann(), H(3), OnlySize(5), None, Now(), w) ==>
      3 in post.nodes && post.nodes[3].body == File([1, 2, 3, 0, 0], 0, {0}) && post.nodes[3].attr.mtime == Now()
    // the owner gives the file to a group of theirs, but not to another owner
    ensures !SetattrErr(V(), Ann(), H(3), Sattr(None, None, Some(30), None, DontChange, DontChange), None, NFS3ERR_PERM)
    ensures var s := Sattr(None, Some(11), None, None, DontChange, DontChange);
      SetattrErr(V(), Ann(), H(3), s, None, NFS3ERR_PERM) && !SetattrOk(V(), post, Ann(), H(3), s, None, Now(), w)
    // a directory has no size to set
    ensures SetattrErr(V(), Root(), H(4), OnlySize(0), None, NFS3ERR_INVAL) &&
      !SetattrOk(V(), post, Root(), H(4), OnlySize(0), None, Now(), w)
    // root cuts a setuid program (04755): the bit stays; its owner does: it goes
    ensures Applied(Root(), 1, Of(2541, 1, 10, 20), OnlySize(0), Now()).mode == 2541 &&
      Applied(Ann(), 1, Of(2541, 1, 10, 20), OnlySize(0), Now()).mode == 493
  {
    assert Zeros(2) == [0, 0];
    assert Resized([1, 2, 3], 5) == [1, 2, 3, 0, 0];
    assert HeldBelow({0}, 5) == {0};
    assert Ann().gids[0] == 30;
  }

  // 2^32 - 1 as an owner or group means that it stays as it is
  lemma SetattrNobody(post: FS, w: Wcc)
    ensures SetattrOk(V(), post, Root(), H(3), Ids(Some(NOID), Some(NOID)), None, Now(), w) ==> post == V()
    ensures SetattrOk(V(), post, Root(), H(3), Ids(Some(NOID), Some(30)), None, Now(), w) ==>
      3 in post.nodes && post.nodes[3].attr == Attr(420, 2, 10, 30, Time(1, 0), Time(2, 0), Now(), 0)
    ensures SetattrOk(V(), post, Root(), H(3), Ids(Some(11), Some(NOID)), None, Now(), w) ==>
      3 in post.nodes && post.nodes[3].attr == Attr(420, 2, 11, 20, Time(1, 0), Time(2, 0), Now(), 0)
    // so anybody may say so
    ensures SetattrOk(V(), V(), Eve(), H(3), Ids(Some(NOID), Some(NOID)), None, Now(), W(V(), V(), 3))
    ensures !SetattrErr(V(), Eve(), H(3), Ids(Some(NOID), Some(NOID)), None, NFS3ERR_PERM)
  { }
  // a file that has them, of old: it is shown as 65534's, who is not its owner
  lemma NobodysFile(post: FS, a: Fattr, w: Wcc)
    ensures GetattrOk(Owned(NOID, 20), H(3), a) ==> a.uid == 65534 && a.gid == 20
    ensures GetattrOk(Owned(10, NOID), H(3), a) ==> a.uid == 10 && a.gid == 65534
    ensures var c := Caller(65534, 65534, [], map[]);
      SetattrErr(Owned(NOID, NOID), c, H(3), Mode(384), None, NFS3ERR_PERM) &&
      !SetattrOk(Owned(NOID, NOID), post, c, H(3), Mode(384), None, Now(), w)
  { }
  // "a" with another owner and group
  function Owned(uid: uint32, gid: uint32): FS { With(3, Node(Of(420, 2, uid, gid), N3().body, N3().blocks)) }

  lemma Access()
    // 0644: the owner and root read and write, others read; nobody executes
    ensures AccessOk(V(), Ann(), H(3), 13, F(V(), 3)) && AccessOk(V(), Root(), H(3), 13, F(V(), 3)) &&
      AccessOk(V(), Eve(), H(3), 1, F(V(), 3))
    // 0755 of a directory: others list and search; the owner changes it, too
    ensures AccessOk(V(), Eve(), H(4), 3, F(V(), 4)) && AccessOk(V(), Ann(), H(4), 31, F(V(), 4)) &&
      !AccessOk(V(), Eve(), H(4), 31, F(V(), 4))
    // the class that fits first decides: 0077 locks the owner out, but not the group
    ensures AccessBits(Ann(), 1, 63, 10, 20, 0) == 0 && AccessBits(Bob(), 1, 63, 10, 20, 0) == 45
    // 0070: the group may, by a supplementary group too
    ensures AccessBits(Bob(), 1, 56, 10, 20, 0) == 45 && AccessBits(Eve(), 1, 56, 10, 20, 0) == 0
  { assert Bob().gids[0] == 20; }

  lemma Volume(i: Info, p: Pathconf, w: Wcc)
    ensures FsstatOk(V(), H(3), F(V(), 3), Space(100, 40, 40, 10, 4, 4, 0)) &&
      FsstatErr(V(), Handle(9, 0), NFS3ERR_STALE)
    // more free than there is
    ensures !FsstatOk(V(), H(3), F(V(), 3), Space(100, 140, 140, 10, 4, 4, 0))
    ensures FsinfoOk(V(), H(1), F(V(), 1), Info(1048576, 1048576, 4096, 1048576, 1048576, 4096, 65536, 549755813888,
      Time(0, 1), 27))
    ensures FsinfoOk(V(), H(1), F(V(), 1), i) ==> i.wtmax == 1048576 && i.properties == 27
    ensures PathconfOk(V(), H(1), F(V(), 1), Pathconf(0x7fff_ffff, 255, true, true, false, true))
    ensures PathconfOk(V(), H(1), F(V(), 1), p) ==> p.namemax == 255 && p.notrunc && !p.caseinsensitive
    ensures CommitOk(V(), H(3), W(V(), V(), 3)) && !CommitErr(V(), H(3), NFS3ERR_STALE)
    ensures !CommitOk(V(), Handle(3, 4), w) && CommitErr(V(), Handle(3, 4), NFS3ERR_STALE)
    // of regular files
    ensures !CommitOk(V(), H(4), w) && !CommitOk(V(), H(5), w) && CommitErr(V(), H(4), NFS3ERR_INVAL) &&
      CommitErr(V(), H(6), NFS3ERR_INVAL)
    ensures !CommitErr(V(), H(3), NFS3ERR_INVAL) && !CommitErr(V(), Handle(9, 0), NFS3ERR_INVAL)
  { }
}

module ScenarioData {
  import opened Machine import opened ByteSpec import opened NfsState import opened NfsPerm import opened NfsCommon
  import opened NfsData import NfsAttrs import opened NfsList import opened ScenarioV

  lemma Readlink(t: seq<byte>, a: Fattr)
    ensures ReadlinkOk(V(), H(5), [65, 66], F(V(), 5)) && !ReadlinkErr(V(), H(5), NFS3ERR_INVAL)
    ensures !ReadlinkOk(V(), H(3), t, a) && ReadlinkErr(V(), H(3), NFS3ERR_INVAL)
  { }

  lemma Reads(d: seq<byte>, e: bool, a: Fattr)
    ensures ReadOk(V(), Eve(), H(3), 1, 1, [2], false, F(V(), 3)) &&
      ReadOk(V(), Eve(), H(3), 1, 9, [2, 3], true, F(V(), 3))
    // behind the end; a wrong eof
    ensures ReadOk(V(), Eve(), H(3), 7, 4, [], true, F(V(), 3)) &&
      !ReadOk(V(), Eve(), H(3), 1, 9, [2, 3], false, F(V(), 3))
    // without permission bits the owner still reads, others do not
    ensures var f := With(3, Node(Of(0, 2, 10, 20), N3().body, N3().blocks));
      !ReadErr(f, Ann(), H(3), NFS3ERR_ACCES) && ReadErr(f, Bob(), H(3), NFS3ERR_ACCES) &&
      !ReadOk(f, Bob(), H(3), 0, 1, d, e, a)
    ensures ReadErr(V(), Root(), H(4), NFS3ERR_INVAL) && !ReadOk(V(), Root(), H(4), 0, 1, d, e, a)
  { assert [1, 2, 3][1..2] == [2]; assert [1, 2, 3][1..3] == [2, 3]; }

  lemma Writes(post: FS, w: Wcc)
    // the gap before the bytes is zeros; mtime and ctime are now
    ensures WriteOk(V(), post, Ann(), H(3), 4, [8], Now(), w) ==>
      3 in post.nodes && post.nodes[3] == Node(SetMtimeCtime(N3().attr, 2, Now()), File([1, 2, 3, 0, 8], 77, {0}), 1)
    // in the middle; no other file changes
    ensures WriteOk(V(), post, Ann(), H(3), 1, [8], Now(), w) ==>
      3 in post.nodes && post.nodes[3].body == File([1, 8, 3], 77, {0}) && 4 in post.nodes && post.nodes[4] == N4()
    ensures WriteErr(V(), Eve(), H(3), 0, [8], NFS3ERR_ACCES) && !WriteOk(V(), post, Eve(), H(3), 0, [8], Now(), w)
    // the reply: all or a part, as stable as was asked for, or more
    ensures WriteReply(10, 0, 10, 0) && WriteReply(10, 1, 4, 2) && WriteReply(0, 0, 0, 0)
    ensures !WriteReply(10, 2, 10, 0) && !WriteReply(10, 0, 0, 0) && !WriteReply(10, 0, 11, 0) &&
      !WriteReply(10, 2, 10, 3)
    // no bytes; too far
    ensures WriteOk(V(), V(), Ann(), H(3), 9, [], Now(), W(V(), V(), 3))
    ensures WriteErr(V(), Ann(), H(3), 549755813888, [8], NFS3ERR_FBIG) &&
      !WriteOk(V(), post, Ann(), H(3), 549755813888, [8], Now(), w)
  {
    assert Zeros(1) == [0];
    assert WriteAt([1, 2, 3], 4, [8]) == [1, 2, 3, 0, 8];
    assert WriteAt([1, 2, 3], 1, [8]) == [1, 8, 3];
    assert Blocks(4, 1) == {0} && Blocks(1, 1) == {0};
  }

  lemma Holds(d: seq<byte>, st: uint32)
    requires |d| == 4097
    // a block and a byte into an empty file: two blocks are its own
    ensures Written(Ann(), Empty(), 0, d, Now()).body.held == {0, 1}
    // the last byte of a block is none of the next one, and the first byte none of the one before
    ensures Written(Ann(), Empty(), 4095, [8], Now()).body.held == {0} &&
      Written(Ann(), Empty(), 4096, [8], Now()).body.held == {1}
    // what was there stays; a hole between stays one
    ensures Written(Ann(), N3(), 8192, [8], Now()).body.held == {0, 2}
    // cut in the middle of a block, and at its end; growing takes none
    ensures SetNode(Ann(), Sparse(), OnlySize(4097), Now(), 1).body.held == {1} &&
      SetNode(Ann(), Sparse(), OnlySize(4096), Now(), 0).body.held == {}
    ensures SetNode(Ann(), Sparse(), OnlySize(100000), Now(), 2).body.held == {1, 3} &&
      SetNode(Ann(), Sparse(), Mode(384), Now(), 2).body.held == {1, 3}
  {
    assert Blocks(0, 4097) == {0, 1} && Blocks(4095, 1) == {0} && Blocks(4096, 1) == {1} && Blocks(8192, 1) == {2};
    assert {0} + {2} == {0, 2};
    assert HeldBelow({1, 3}, 4097) == {1} && HeldBelow({1, 3}, 4096) == {} && HeldBelow({1, 3}, 100000) == {1, 3};
  }

  lemma Takes(d: seq<byte>, post: FS, w: Wcc)
    requires |d| == 4097
    // new blocks count, those that were there do not
    ensures Written(Ann(), Empty(), 0, d, Now()).blocks == 2 && Written(Ann(), N3(), 8192, [8], Now()).blocks == 2 &&
      Written(Ann(), N3(), 4, [8], Now()).blocks == 1
    ensures Written(Ann(), Sparse(), 8192, d, Now()).blocks == 3
    // a cut gives up one, which may wait; it gives up no other, and takes none
    ensures Leaves(Sparse(), OnlySize(8193), 1) && Leaves(Sparse(), OnlySize(8193), 2) &&
      !Leaves(Sparse(), OnlySize(8193), 0) && !Leaves(Sparse(), OnlySize(8193), 3)
    // the whole file; growing, the same size, and a mode change nothing
    ensures Leaves(Sparse(), OnlySize(0), 0) && Leaves(Sparse(), OnlySize(0), 2) && !Leaves(Sparse(), OnlySize(0), -1)
    ensures !Leaves(Sparse(), OnlySize(100000), 1) && Leaves(Sparse(), OnlySize(100000), 2) &&
      !Leaves(Sparse(), OnlySize(16384), 1) && !Leaves(Sparse(), Mode(384), 1) && !Leaves(Sparse(), Mode(384), 3)
    ensures NfsAttrs.SetattrOk(V(), post, Ann(), H(3), OnlySize(1), None, Now(), w) ==>
      3 in post.nodes && post.nodes[3].blocks == 1 && w.after.used == 4096
    ensures NfsAttrs.SetattrOk(V(), post, Ann(), H(3), OnlySize(0), None, Now(), w) ==>
      w.before.used == 4096 && w.after.used == 0
  {
    assert Blocks(0, 4097) == {0, 1} && Blocks(8192, 1) == {2} && Blocks(4, 1) == {0} && Blocks(8192, 4097) == {2, 3};
    assert {0, 1} - {} == {0, 1} && {2} - {0} == {2} && {0} - {0} == {} && {2, 3} - {1, 3} == {2};
    assert HeldBelow({1, 3}, 8193) == {1} && HeldBelow({1, 3}, 0) == {} && HeldBelow({0}, 1) == {0} &&
      HeldBelow({0}, 0) == {};
  }
  lemma UsedIs()
    // by type, and of a file of holes; of one cut to its first block when its others wait, and to nothing
    ensures Used(N3()) == 4096 && Used(N1()) == 4096 && Used(V().nodes[5]) == 4096 && Used(V().nodes[6]) == 0 &&
      Used(V().nodes[7]) == 0
    ensures Used(Sparse()) == 8192 && Used(Empty()) == 0 &&
      Used(Node(Sparse().attr, File(Zeros(4096), 0, {}), 2)) == 4096 &&
      Used(Node(Sparse().attr, File([], 0, {}), 2)) == 0
  { }
  lemma Background(f: FS)
    requires f == With(3, Sparse())
    // it frees, and does nothing else
    ensures Freed(f, f) && Freed(f, FS(f.nodes[3 := Shedding(1)], f.gens, f.xattrs)) &&
      !Freed(f, FS(f.nodes[3 := Shedding(3)], f.gens, f.xattrs))
    ensures !Freed(f, FS(f.nodes[3 := Node(N3().attr, Sparse().body, 2)], f.gens, f.xattrs)) &&
      !Freed(f, FS(f.nodes[3 := Node(Sparse().attr, N3().body, 2)], f.gens, f.xattrs))
    ensures !Freed(f, V()) && !Freed(f, FS(map[], f.gens, f.xattrs)) && !Freed(FS(map[], f.gens, f.xattrs), f) &&
      !Freed(f, FS(f.nodes, map[], f.xattrs)) && !Freed(f, FS(f.nodes, f.gens, map[]))
  {
    var g := FS(f.nodes[3 := Shedding(3)], f.gens, f.xattrs); assert 3 in g.nodes && g.nodes[3] == Shedding(3);
    g := FS(f.nodes[3 := Node(N3().attr, Sparse().body, 2)], f.gens, f.xattrs);
      assert 3 in g.nodes && g.nodes[3].attr != Sparse().attr;
    g := FS(f.nodes[3 := Node(Sparse().attr, N3().body, 2)], f.gens, f.xattrs);
      assert 3 in g.nodes && |N3().body.data| == 3 && g.nodes[3].body != Sparse().body;
    assert 3 in V().nodes && V().nodes[3] == N3() && N3().attr != Sparse().attr;
    assert 3 in f.nodes && 3 !in FS(map[], f.gens, f.xattrs).nodes && 1 in f.gens;
  }
  lemma Fewest()
    // no fewer than the file has, and not less than none
    ensures !Bodies(With(3, Shedding(1))) && !Bodies(With(3, Shedding(-1))) && Bodies(With(3, Shedding(2))) &&
      Bodies(With(3, Shedding(3))) && !Bodies(With(7, Node(V().nodes[7].attr, V().nodes[7].body, -1)))
  {
    Letters();
    var g := With(3, Shedding(1)); assert 3 in g.nodes && |{1, 3}| == 2;
    g := With(3, Shedding(-1)); assert 3 in g.nodes;
    g := With(7, Node(V().nodes[7].attr, V().nodes[7].body, -1)); assert 7 in g.nodes;
  }
  function Shedding(n: int): Node { Node(Sparse().attr, Sparse().body, n) }
  function Empty(): Node { Node(Of(420, 1, 10, 20), File([], 0, {}), 0) }
  // four blocks, of which two are holes
  function Sparse(): Node { Node(Of(420, 1, 10, 20), File(Zeros(16384), 0, {1, 3}), 2) }

  lemma Full(d: seq<byte>, st: uint32)
    requires |d| == 4096
    // on a full volume: what the file has can be overwritten, in part and as a whole, but for a byte more
    ensures var f := With(3, Sparse()); !WriteErr(f, Ann(), H(3), 4096, d, NFS3ERR_NOSPC) &&
      !WriteErr(f, Ann(), H(3), 16383, [8], NFS3ERR_NOSPC)
    ensures var f := With(3, Sparse()); WriteErr(f, Ann(), H(3), 4097, d, NFS3ERR_NOSPC) &&
      WriteErr(f, Ann(), H(3), 4095, d, NFS3ERR_NOSPC)
    // a hole, and what lies behind the end
    ensures var f := With(3, Sparse()); WriteErr(f, Ann(), H(3), 0, [8], NFS3ERR_NOSPC) &&
      WriteErr(f, Ann(), H(3), 16384, [8], NFS3ERR_NOSPC)
    // growing within the last block
    ensures !WriteErr(V(), Ann(), H(3), 3, [8], NFS3ERR_NOSPC)
  {
    var h := {1, 3};
    assert 1 in Blocks(4097, 4096) && 2 in Blocks(4097, 4096) && 0 in Blocks(4095, 4096) && 0 in Blocks(0, 1) &&
      4 in Blocks(16384, 1);
    assert Blocks(4096, 4096) == {1} && Blocks(16383, 1) == {3} && Blocks(3, 1) == {0};
  }

  lemma Lookup(h: Handle, a: Fattr, da: Fattr)
    ensures LookupOk(V(), Eve(), H(4), L(98), H(3), F(V(), 3), F(V(), 4))
    // ".." of the root, and of "e"
    ensures LookupOk(V(), Eve(), H(1), [46, 46], H(1), F(V(), 1), F(V(), 1)) &&
      LookupOk(V(), Eve(), H(7), [46, 46], H(4), F(V(), 4), F(V(), 7))
    ensures LookupErr(V(), Eve(), H(4), L(120), NFS3ERR_NOENT) && !LookupErr(V(), Eve(), H(4), L(98), NFS3ERR_NOENT) &&
      !LookupOk(V(), Eve(), H(4), L(120), h, a, da)
    // in a file; a name with "/"
    ensures LookupErr(V(), Eve(), H(3), L(98), NFS3ERR_NOTDIR)
    ensures LookupErr(V(), Eve(), H(1), [97, 47], NFS3ERR_ACCES) && !LookupOk(V(), Eve(), H(1), [97, 47], h, a, da)
  { Letters(); assert [97, 47][1] == 47; assert L(120) != [46]; assert L(120) != [46, 46]; assert |[46 as byte]| == 1; }

  function Page1(): seq<Item> { [Item(1, [46], 1), Item(1, [46, 46], 2), Item(3, L(97), 10), Item(4, L(100), 11)] }
  function Page2(): seq<Item> { [Item(5, L(115), 12), Item(6, L(112), 13)] }
  lemma Sums(c: int -> int)
    ensures Bytes(c, Page1()) == 3 * c(1) + c(2) && Bytes(c, Page2()) == 2 * c(1)
  {
    var p, q := Page1(), Page2();
    assert p[..3][..2] == p[..2] && p[..2][..1] == p[..1] && p[..1][..0] == [] && q[..1][..0] == [];
    assert p[..1][0] == p[0] && p[..2][1] == p[1] && p[..3][2] == p[2] && q[..1][0] == q[0];
    assert Bytes(c, p[..1]) == c(1);
    assert Bytes(c, p[..2]) == Bytes(c, p[..1]) + c(2);
    assert Bytes(c, p[..3]) == Bytes(c, p[..2]) + c(1);
    assert Bytes(c, q[..1]) == c(1);
  }
  lemma More(c: int -> int, p: seq<Item>, e: Item)
    ensures Bytes(c, p + [e]) == Bytes(c, p) + c(|e.name|)
  { assert (p + [e])[..|p|] == p; }
  // what comes after the first page, and after "s"
  lemma Next()
    ensures forall e: Item {:trigger First(1, N1().body, 11, e)} :: First(1, N1().body, 11, e) <==> e == Page2()[0]
    ensures forall e: Item {:trigger First(1, N1().body, 12, e)} :: First(1, N1().body, 12, e) <==> e == Page2()[1]
  {
    Letters();
    var b := N1().body;
    assert Listed(1, b, Page2()[0]) && Listed(1, b, Page2()[1]);
    forall e: Item | Listed(1, b, e) && 11 < e.cookie ensures e == Page2()[0] || e == Page2()[1] { }
  }
  lemma Readdir(a: Fattr)
    // a scan of two pages
    ensures ReaddirOk(V(), Eve(), H(1), 0, 0, Count(216), Page1(), false, F(V(), 1))
    ensures ReaddirOk(V(), Eve(), H(1), 11, 0, Count(4096), Page2(), true, F(V(), 1))
    ensures ReaddirErr(V(), Eve(), H(1), 11, 1, Count(4096), NFS3ERR_BAD_COOKIE) &&
      !ReaddirErr(V(), Eve(), H(1), 0, 1, Count(4096), NFS3ERR_BAD_COOKIE)
  {
    Letters();
    Sums(Count(0).cost);
    Sums(Count(0).nameCost);
    Next();
    More(Count(0).cost, Page1(), Page2()[0]);
    assert Last(0, Page1()) == 11 && First(1, N1().body, Last(0, Page1()), Page2()[0]);
    forall e: Item | Listed(1, N1().body, e) && e.cookie <= 11 ensures e in Page1()
    { assert e == Page1()[0] || e == Page1()[1] || e == Page1()[2] || e == Page1()[3]; }
    forall e: Item | Listed(1, N1().body, e) && 11 < e.cookie ensures e in Page2()
    { assert e == Page2()[0] || e == Page2()[1]; }
  }
  lemma ReaddirWrong(a: Fattr)
    // an entry is skipped; the page ends too early; there is no progress
    ensures !ReaddirOk(V(), Eve(), H(1), 11, 0, Count(4096), [Item(6, L(112), 13)], true, a)
    ensures !ReaddirOk(V(), Eve(), H(1), 11, 0, Count(4096), [Item(5, L(115), 12)], true, a)
    ensures !ReaddirOk(V(), Eve(), H(1), 11, 0, Count(4096), [], false, a)
    ensures !ReaddirOk(V(), Eve(), H(1), 11, 0, Count(131), [], false, a)
  {
    Letters();
    var s, p := Item(5, L(115), 12), Item(6, L(112), 13);
    assert Listed(1, N1().body, s) && Listed(1, N1().body, p);
    assert s !in [p] && p !in [s];
  }
  lemma ReaddirErrors(items: seq<Item>, eof: bool, a: Fattr)
    // who may search the directory and not read it; a file; a handle of another generation
    ensures var f := With(1, Node(Of(505, 3, 0, 0), N1().body, N1().blocks));
      ReaddirErr(f, Eve(), H(1), 0, 0, Count(4096), NFS3ERR_ACCES) &&
      !ReaddirOk(f, Eve(), H(1), 0, 0, Count(4096), items, eof, a)
    ensures ReaddirErr(V(), Eve(), H(3), 0, 0, Count(4096), NFS3ERR_NOTDIR) &&
      !ReaddirOk(V(), Eve(), H(3), 0, 0, Count(4096), items, eof, a)
    ensures ReaddirErr(V(), Eve(), Handle(1, 2), 0, 0, Count(4096), NFS3ERR_STALE) &&
      !ReaddirOk(V(), Eve(), Handle(1, 2), 0, 0, Count(4096), items, eof, a)
    // who may read the directory is not refused
    ensures !ReaddirErr(V(), Eve(), H(1), 0, 0, Count(4096), NFS3ERR_ACCES)
  { }
  lemma ReaddirFits(items: seq<Item>, eof: bool, a: Fattr)
    // four entries of 28 bytes, and 104; no page is shorter than it could be
    ensures ReaddirOk(V(), Eve(), H(1), 0, 0, Count(216), Page1(), false, F(V(), 1)) &&
      ReaddirOk(V(), Eve(), H(1), 0, 0, Count(243), Page1(), false, F(V(), 1)) &&
      !ReaddirOk(V(), Eve(), H(1), 0, 0, Count(215), Page1(), false, a) &&
      !ReaddirOk(V(), Eve(), H(1), 0, 0, Count(244), Page1(), false, a) &&
      !ReaddirOk(V(), Eve(), H(1), 0, 0, Count(4096), Page1(), false, a)
    // two entries with attributes and handles, whether or not they are given
    ensures ReaddirplusOk(V(), Eve(), H(1), 11, 0, Maxcount(416, 4096), Page2(), [H(5), H(6)], [F(V(), 5), F(V(), 6)],
      true, F(V(), 1))
    ensures var f := With(1, Node(Of(508, 3, 0, 0), N1().body, N1().blocks));
      !ReaddirplusOk(V(), Eve(), H(1), 11, 0, Maxcount(415, 4096), Page2(), [H(5), H(6)], [F(V(), 5), F(V(), 6)],
        true, a) &&
      !ReaddirplusOk(f, Eve(), H(1), 11, 0, Maxcount(415, 4096), Page2(), [], [], true, a)
    // behind the last one there is nothing that must fit but the result itself
    ensures ReaddirOk(V(), Eve(), H(1), 13, 0, Count(104), [], true, F(V(), 1)) &&
      !ReaddirOk(V(), Eve(), H(1), 13, 0, Count(103), [], true, a)
  {
    Readdir(a);
    Readdirplus(a);
    Sums(Count(0).cost);
    Sums(Maxcount(0, 0).cost);
    Next();
    More(Count(0).cost, Page1(), Page2()[0]);
    More(Count(0).nameCost, Page1(), Page2()[0]);
    Sums(Count(0).nameCost);
    assert Last(0, Page1()) == 11 && First(1, N1().body, Last(0, Page1()), Page2()[0]);
  }
  // The second page, or its first entry alone, with room for all and a dircount: that counts 28 bytes for each entry.
  // The first is given however little it is.
  lemma ReaddirDircount(n: int)
    ensures Two(n) <==> 56 <= n
    ensures One(n) <==> n < 56
  {
    Letters();
    Readdirplus(F(V(), 1));
    var p, q := Page2(), [Page2()[0]];
    Sums(Maxcount(0, 0).cost);
    Sums(Maxcount(0, 0).nameCost);
    Next();
    assert Last(11, q) == 12 && First(1, N1().body, Last(11, q), p[1]);
    More(Maxcount(0, 0).cost, q, p[1]); More(Maxcount(0, 0).nameCost, q, p[1]);
    More(Maxcount(0, 0).cost, [], p[0]);
    assert [] + [p[0]] == q && q + [p[1]] == p;
    forall e: Item | Listed(1, N1().body, e) && 11 < e.cookie <= 12 ensures e in q { assert e == p[0]; }
  }
  predicate Two(n: int) { ReaddirplusOk(V(), Eve(), H(1), 11, 0, Maxcount(4096, n), Page2(), [H(5), H(6)],
    [F(V(), 5), F(V(), 6)], true, F(V(), 1)) }
  predicate One(n: int) { ReaddirplusOk(V(), Eve(), H(1), 11, 0, Maxcount(4096, n), [Page2()[0]], [H(5)], [F(V(), 5)],
    false, F(V(), 1)) }
  // whether one fits of none yet
  lemma NoneYet(b: Body, c: int, l: Limit)
    requires b.Dir?
    ensures NoneFits(1, b, c, l) <==> l.room < 0 || exists x: Item {:trigger First(1, b, c, x)} ::
      First(1, b, c, x) && l.room < l.cost(|x.name|)
  {
    assert Last(c, []) == c;
    forall x: Item ensures Fits([] + [x], l) <==> l.cost(|x.name|) <= l.room
    { More(l.cost, [], x); assert |[] + [x]| == 1; }
    if x: Item :| First(1, b, c, x) && l.room < l.cost(|x.name|)
    { assert First(1, b, Last(c, []), x) && !Fits([] + [x], l); }
  }
  predicate Small(f: FS, cookie: uint64, lim: Limit) { ReaddirErr(f, Eve(), H(1), cookie, 0, lim, NFS3ERR_TOOSMALL) }
  lemma ReaddirSmall(lim: Limit)
    // "." takes 28 bytes, and 128 more with attributes and handle; the rest of the result 104
    ensures Small(V(), 0, Count(131)) && !Small(V(), 0, Count(132)) &&
      ReaddirplusErr(V(), Eve(), H(1), 0, 0, Maxcount(259, 4096), NFS3ERR_TOOSMALL) &&
      !ReaddirplusErr(V(), Eve(), H(1), 0, 0, Maxcount(260, 4096), NFS3ERR_TOOSMALL)
    // in the middle; nothing is left after the cookie; not for who may not read the directory
    ensures Small(V(), 11, Count(0)) && !Small(V(), 11, Count(132))
    ensures (Small(V(), 13, lim) <==> lim.room < 0) &&
      !Small(With(1, Node(Of(505, 3, 0, 0), N1().body, N1().blocks)), 0, lim)
    // names are padded; it is the first that does not fit, and not a later one
    ensures var f := Longer(); Small(f, 11, Count(135)) && !Small(f, 11, Count(136)) && !Small(f, 2, Count(132))
  {
    Letters();
    var b, e := N1().body, Longer().nodes[1].body;
    assert Listed(1, b, Item(1, [46], 1)) && Listed(1, b, Item(5, L(115), 12));
    assert First(1, b, 0, Item(1, [46], 1)) && First(1, b, 11, Item(5, L(115), 12));
    forall f: FS, c: int, l: Limit | f == V() || f == Longer()
      ensures NoneFits(1, f.nodes[1].body, c, l) <==> l.room < 0 || exists x: Item
      {:trigger First(1, f.nodes[1].body, c, x)} :: First(1, f.nodes[1].body, c, x) && l.room < l.cost(|x.name|)
    { NoneYet(f.nodes[1].body, c, l); }
    assert Listed(1, e, Item(3, L(97), 10)) && Listed(1, e, Item(5, [115, 115, 115, 115, 115], 12));
    assert First(1, e, 11, Item(5, [115, 115, 115, 115, 115], 12));
  }
  // the root with a name of five bytes in the place of "s"
  function Longer(): FS
  { With(1, Node(N1().attr, Dir(map[L(97) := 3, L(100) := 4, [115, 115, 115, 115, 115] := 5],
    map[L(97) := 10, L(100) := 11, [115, 115, 115, 115, 115] := 12], 1, 4096), 1)) }
  lemma Readdirplus(a: Fattr)
    ensures ReaddirplusOk(V(), Eve(), H(1), 11, 0, Maxcount(4096, 4096), Page2(), [H(5), H(6)], [F(V(), 5), F(V(), 6)],
      true, F(V(), 1))
    // who may not search the directory gets the names, and neither attributes nor handles
    ensures var f := With(1, Node(Of(508, 3, 0, 0), N1().body, N1().blocks));
      ReaddirplusOk(f, Eve(), H(1), 11, 0, Maxcount(4096, 4096), Page2(), [], [], true, F(f, 1)) &&
      !ReaddirplusOk(f, Eve(), H(1), 11, 0, Maxcount(4096, 4096), Page2(), [H(5), H(6)], [F(V(), 5), F(V(), 6)],
        true, a) &&
        !ReaddirplusOk(f, Eve(), H(1), 11, 0, Maxcount(4096, 4096), Page2(), [H(5), H(6)], [], true, a)
    // who may search it gets them
    ensures !ReaddirplusOk(V(), Eve(), H(1), 11, 0, Maxcount(4096, 4096), Page2(), [], [], true, a)
    // the attributes of another file; a handle of another generation
    ensures !ReaddirplusOk(V(), Eve(), H(1), 11, 0, Maxcount(4096, 4096), Page2(), [H(5), H(6)], [F(V(), 5), F(V(), 5)],
      true, a)
    ensures !ReaddirplusOk(V(), Eve(), H(1), 11, 0, Maxcount(4096, 4096), Page2(), [H(5), Handle(6, 4)],
      [F(V(), 5), F(V(), 6)], true, a)
    ensures ReaddirplusErr(V(), Eve(), H(1), 11, 1, Maxcount(4096, 4096), NFS3ERR_BAD_COOKIE) &&
      ReaddirplusErr(V(), Eve(), H(3), 0, 0, Maxcount(4096, 4096), NFS3ERR_NOTDIR)
  {
    Readdir(a);
    assert Page2()[1].ino == 6 && |Page2()| == 2;
    assert [H(5), Handle(6, 4)][1].gen == 4;
  }
}

module ScenarioMake {
  import opened Machine import opened ByteSpec import opened NfsState import opened NfsPerm import opened NfsCommon
  import opened NfsMake import opened ScenarioV

  // V after the new file n, inode 8, was entered in the root as "x"
  function Added(n: Node): FS
  { FS(V().nodes[8 := n][1 := Entries(N1(), N1().body.names[L(120) := 8], N1().body.cookies[L(120) := 20],
    if n.body.Dir? then 4 else 3)], V().gens[8 := 7], V().xattrs) }
  function Fresh(mode: uint32, nlink: uint32, b: Body): Node
  { Node(Attr(mode, nlink, 12, 22, Now(), Now(), Now(), 0), b, if b.Symlink? then 1 else 0) }

  lemma Create1(post: FS, h: Handle, a: Fattr, w: Wcc)
    ensures var n := Fresh(420, 1, File([], 0, {}));
      CreateOk(V(), Added(n), Eve(), H(1), L(120), 1, NoSattr(), 0, Now(), Handle(8, 7), FattrOf(8, n),
      W(V(), Added(n), 1))
    // GUARDED, and the name is taken
    ensures CreateErr(V(), Ann(), H(1), L(97), 1, NoSattr(), 0, NFS3ERR_EXIST) &&
      !CreateOk(V(), post, Ann(), H(1), L(97), 1, NoSattr(), 0, Now(), h, a, w)
    // EXCLUSIVE: the call that made it comes again; another call with another verifier
    ensures CreateOk(V(), V(), Ann(), H(1), L(97), 2, NoSattr(), 77, Now(), H(3), F(V(), 3), W(V(), V(), 1)) &&
      !CreateErr(V(), Ann(), H(1), L(97), 2, NoSattr(), 77, NFS3ERR_EXIST)
    ensures CreateErr(V(), Ann(), H(1), L(97), 2, NoSattr(), 78, NFS3ERR_EXIST) &&
      !CreateOk(V(), post, Ann(), H(1), L(97), 2, NoSattr(), 78, Now(), h, a, w)
  { Letters(); }
  lemma Create2(post: FS, h: Handle, a: Fattr, w: Wcc)
    // UNCHECKED of a file that exists cuts it, and leaves its mode alone
    ensures CreateOk(V(), post, Ann(), H(1), L(97), 0, Sattr(Some(511), None, None, Some(0), DontChange, DontChange), 0,
      Now(), h, a, w) ==>
      h == H(3) && 3 in post.nodes && post.nodes[3] ==
        Node(SetMtimeCtime(N3().attr, 2, Now()), File([], 0, {}), post.nodes[3].blocks) &&
        0 <= post.nodes[3].blocks <= 1 && a.used == 0
    // in a setgid directory the group is the directory's, else the caller's
    ensures NewAttr(Eve(), Node(Of(1535, 3, 0, 50), N1().body, N1().blocks), 1, 420, NoSattr(), Now()).gid == 50 &&
      NewAttr(Eve(), N1(), 1, 420, NoSattr(), Now()).gid == 22
  { Letters(); assert Resized([1, 2, 3], 0) == [] && HeldBelow({0}, 0) == {}; }

  lemma Create3(post: FS, h: Handle, a: Fattr, w: Wcc)
    // a handle of the inode's last use, or of another inode
    ensures !CreateOk(V(), post, Eve(), H(1), L(120), 1, NoSattr(), 0, Now(), Handle(8, 6), a, w) &&
      !CreateOk(V(), post, Ann(), H(1), L(97), 0, NoSattr(), 0, Now(), Handle(3, 4), a, w)
    // the client that made "a" has set attributes: its EXCLUSIVE call, come again, is another client's
    ensures var n := SetNode(Ann(), N3(), Mode(384), Now(), 1); var f := With(3, n);
      CreateErr(f, Ann(), H(1), L(97), 2, NoSattr(), 77, NFS3ERR_EXIST) &&
      !CreateOk(f, post, Ann(), H(1), L(97), 2, NoSattr(), 77, Now(), h, a, w)
    // a setuid program (04755) is made with a size: it stays one
    ensures NewAttr(Eve(), N1(), 1, 420, Sattr(Some(2541), None, None, Some(0), DontChange, DontChange), Now()).mode ==
      2541
  { Letters(); }

  lemma Mkdir(post: FS, h: Handle, a: Fattr, w: Wcc)
    ensures var n := Fresh(493, 2, Dir(map[], map[], 1, 0));
      MkdirOk(V(), Added(n), Eve(), H(1), L(120), NoSattr(), Now(), Handle(8, 7), FattrOf(8, n), W(V(), Added(n), 1))
    // the parent has one link more, the inode a new generation
    ensures MkdirOk(V(), post, Eve(), H(1), L(120), NoSattr(), Now(), Handle(8, 7), a, w) ==>
      1 in post.nodes && post.nodes[1].attr.nlink == 4 && 8 in post.gens && post.gens[8] == 7
    // eve may not write in "d"; "." is there
    ensures MkdirErr(V(), Eve(), H(4), L(120), NoSattr(), NFS3ERR_ACCES) &&
      !MkdirOk(V(), post, Eve(), H(4), L(120), NoSattr(), Now(), h, a, w)
    ensures MkdirErr(V(), Ann(), H(1), [46], NoSattr(), NFS3ERR_EXIST)
    // a directory made in a setgid directory is setgid
    ensures NewAttr(Eve(), Node(Of(1535, 3, 0, 50), N1().body, N1().blocks), 2, 493, NoSattr(), Now()).mode == 1517
  { Letters(); }

  lemma Symlinks(post: FS, h: Handle, a: Fattr, w: Wcc)
    // the mode is 0777, whatever is asked for
    ensures var n := Fresh(511, 1, Symlink([65]));
      SymlinkOk(V(), Added(n), Eve(), H(1), L(120), Mode(0), [65], Now(), Handle(8, 7), FattrOf(8, n),
      W(V(), Added(n), 1))
    ensures SymlinkErr(V(), Eve(), H(1), L(120), NoSattr(), [], NFS3ERR_INVAL) &&
      !SymlinkOk(V(), post, Eve(), H(1), L(120), NoSattr(), [], Now(), h, a, w)
    // a zero byte in the target
    ensures SymlinkErr(V(), Eve(), H(1), L(120), NoSattr(), [65, 0, 66], NFS3ERR_INVAL)
    ensures !SymlinkOk(V(), post, Eve(), H(1), L(120), NoSattr(), [65, 0, 66], Now(), h, a, w)
    ensures !SymlinkErr(V(), Eve(), H(1), L(120), NoSattr(), [65, 66], NFS3ERR_INVAL)
  { Letters(); assert [65, 0, 66][1] == 0; }

  lemma Mknod(post: FS, h: Handle, a: Fattr, w: Wcc)
    ensures var n := Fresh(420, 1, Special(7, 0, 0));
      MknodOk(V(), Added(n), Eve(), H(1), L(120), 7, NoSattr(), 4, 5, Now(), Handle(8, 7), FattrOf(8, n),
      W(V(), Added(n), 1))
    // a device by eve, and by root; a regular file
    ensures MknodErr(V(), Eve(), H(1), L(120), 4, NoSattr(), 0, 0, NFS3ERR_PERM) &&
      !MknodOk(V(), post, Eve(), H(1), L(120), 4, NoSattr(), 4, 5, Now(), h, a, w)
    ensures !MknodErr(V(), Root(), H(1), L(120), 4, NoSattr(), 0, 0, NFS3ERR_PERM)
    ensures MknodErr(V(), Root(), H(1), L(120), 1, NoSattr(), 0, 0, NFS3ERR_BADTYPE) &&
      !MknodOk(V(), post, Root(), H(1), L(120), 1, NoSattr(), 0, 0, Now(), h, a, w)
  { Letters(); }
  // the largest numbers of a device, and those above; what is no device has none
  lemma MknodNumbers(post: FS, h: Handle, a: Fattr, w: Wcc)
    ensures var n := Given(Fresh(420, 1, Special(4, 4095, 1_048_575)), 0, 0);
      MknodOk(V(), Added(n), Root(), H(1), L(120), 4, NoSattr(), 4095, 1_048_575, Now(),
        Handle(8, 7), FattrOf(8, n), W(V(), Added(n), 1))
    ensures !MknodErr(V(), Root(), H(1), L(120), 3, NoSattr(), 4095, 1_048_575, NFS3ERR_INVAL)
    ensures MknodErr(V(), Root(), H(1), L(120), 3, NoSattr(), 4096, 0, NFS3ERR_INVAL)
    ensures !MknodOk(V(), post, Root(), H(1), L(120), 3, NoSattr(), 4096, 0, Now(), h, a, w)
    ensures MknodErr(V(), Root(), H(1), L(120), 4, NoSattr(), 0, 1_048_576, NFS3ERR_INVAL)
    ensures !MknodOk(V(), post, Root(), H(1), L(120), 4, NoSattr(), 0, 1_048_576, Now(), h, a, w)
    ensures !MknodErr(V(), Eve(), H(1), L(120), 7, NoSattr(), 4096, 1_048_576, NFS3ERR_INVAL)
  { Letters(); }

  // n with another owner and group
  function Given(n: Node, uid: uint32, gid: uint32): Node
  { Node(Attr(n.attr.mode, n.attr.nlink, uid, gid, n.attr.atime, n.attr.mtime, n.attr.ctime, n.attr.flags),
    n.body, n.blocks) }
  lemma CreateIds(post: FS, h: Handle, a: Fattr, w: Wcc)
    // eve names ann's group, or her uid: ignored, the file is eve's, and that is no error
    ensures var n := Fresh(420, 1, File([], 0, {}));
      CreateOk(V(), Added(n), Eve(), H(1), L(120), 1, Ids(None, Some(20)), 0, Now(), Handle(8, 7), FattrOf(8, n),
      W(V(), Added(n), 1))
    ensures CreateOk(V(), post, Eve(), H(1), L(120), 0, Ids(Some(10), Some(20)), 0, Now(), h, a, w) ==>
      a.uid == 12 && a.gid == 22
    ensures !CreateErr(V(), Eve(), H(1), L(120), 0, Ids(Some(10), Some(20)), 0, NFS3ERR_PERM)
    // also a group that she is in, and in a setgid directory, where the group is the directory's
    ensures NewAttr(Ann(), N1(), 1, 420, Ids(None, Some(30)), Now()).gid == 20 &&
      NewAttr(Eve(), Node(Of(1535, 3, 0, 50), N1().body, N1().blocks), 1, 420, Ids(None, Some(22)), Now()).gid == 50
    // ... so that a setuid program (04755) stays one
    ensures NewAttr(Eve(), N1(), 1, 420, Sattr(Some(2541), None, Some(22), None, DontChange, DontChange), Now()).mode ==
      2541
    // root gives it away
    ensures var n := Given(Fresh(420, 1, File([], 0, {})), 10, 20);
      CreateOk(V(), Added(n), Root(), H(1), L(120), 1, Ids(Some(10), Some(20)), 0, Now(), Handle(8, 7), FattrOf(8, n),
      W(V(), Added(n), 1))
    ensures CreateOk(V(), post, Root(), H(1), L(120), 0, Ids(None, Some(20)), 0, Now(), h, a, w) ==>
      a.uid == 0 && a.gid == 20
  { Letters(); }
  lemma MkdirIds(post: FS, h: Handle, a: Fattr, w: Wcc)
    ensures var n := Fresh(493, 2, Dir(map[], map[], 1, 0));
      MkdirOk(V(), Added(n), Eve(), H(1), L(120), Ids(None, Some(20)), Now(), Handle(8, 7), FattrOf(8, n),
      W(V(), Added(n), 1))
    ensures MkdirOk(V(), post, Eve(), H(1), L(120), Ids(Some(10), Some(20)), Now(), h, a, w) ==>
      a.uid == 12 && a.gid == 22
    ensures !MkdirErr(V(), Eve(), H(1), L(120), Ids(Some(10), Some(20)), NFS3ERR_PERM)
    ensures var n := Given(Fresh(493, 2, Dir(map[], map[], 1, 0)), 10, 20);
      MkdirOk(V(), Added(n), Root(), H(1), L(120), Ids(Some(10), Some(20)), Now(), Handle(8, 7), FattrOf(8, n),
      W(V(), Added(n), 1))
    ensures MkdirOk(V(), post, Root(), H(1), L(120), Ids(None, Some(20)), Now(), h, a, w) ==> a.uid == 0 && a.gid == 20
  { Letters(); }
  lemma SymlinkIds(post: FS, h: Handle, a: Fattr, w: Wcc)
    ensures var n := Fresh(511, 1, Symlink([65]));
      SymlinkOk(V(), Added(n), Eve(), H(1), L(120), Ids(None, Some(20)), [65], Now(), Handle(8, 7), FattrOf(8, n),
      W(V(), Added(n), 1))
    ensures SymlinkOk(V(), post, Eve(), H(1), L(120), Ids(Some(10), Some(20)), [65], Now(), h, a, w) ==>
      a.uid == 12 && a.gid == 22
    ensures !SymlinkErr(V(), Eve(), H(1), L(120), Ids(Some(10), Some(20)), [65], NFS3ERR_PERM)
    ensures var n := Given(Fresh(511, 1, Symlink([65])), 10, 20);
      SymlinkOk(V(), Added(n), Root(), H(1), L(120), Ids(Some(10), Some(20)), [65], Now(), Handle(8, 7), FattrOf(8, n),
      W(V(), Added(n), 1))
    ensures SymlinkOk(V(), post, Root(), H(1), L(120), Ids(None, Some(20)), [65], Now(), h, a, w) ==>
      a.uid == 0 && a.gid == 20
  { Letters(); }
  lemma MknodIds(post: FS, h: Handle, a: Fattr, w: Wcc)
    ensures var n := Fresh(420, 1, Special(7, 0, 0));
      MknodOk(V(), Added(n), Eve(), H(1), L(120), 7, Ids(None, Some(20)), 0, 0, Now(), Handle(8, 7), FattrOf(8, n),
      W(V(), Added(n), 1))
    ensures MknodOk(V(), post, Eve(), H(1), L(120), 7, Ids(Some(10), Some(20)), 0, 0, Now(), h, a, w) ==>
      a.uid == 12 && a.gid == 22
    ensures !MknodErr(V(), Eve(), H(1), L(120), 7, Ids(Some(10), Some(20)), 0, 0, NFS3ERR_PERM)
    ensures var n := Given(Fresh(420, 1, Special(7, 0, 0)), 10, 20);
      MknodOk(V(), Added(n), Root(), H(1), L(120), 7, Ids(Some(10), Some(20)), 0, 0, Now(), Handle(8, 7), FattrOf(8, n),
      W(V(), Added(n), 1))
    ensures MknodOk(V(), post, Root(), H(1), L(120), 7, Ids(None, Some(20)), 0, 0, Now(), h, a, w) ==>
      a.uid == 0 && a.gid == 20
  { Letters(); }

  // of 2^32 - 1, nobody's number, root makes nothing
  lemma NobodyMakes(post: FS, h: Handle, a: Fattr, w: Wcc)
    ensures CreateOk(V(), post, Root(), H(1), L(120), 1, Ids(Some(NOID), Some(20)), 0, Now(), h, a, w) ==>
      a.uid == 0 && a.gid == 20
    ensures MkdirOk(V(), post, Root(), H(1), L(120), Ids(Some(10), Some(NOID)), Now(), h, a, w) ==>
      a.uid == 10 && a.gid == 0
    ensures SymlinkOk(V(), post, Root(), H(1), L(120), Ids(Some(NOID), Some(NOID)), [65], Now(), h, a, w) ==>
      h.ino in post.nodes && post.nodes[h.ino].attr.uid == 0 && post.nodes[h.ino].attr.gid == 0
    ensures MknodOk(V(), post, Root(), H(1), L(120), 7, Ids(Some(NOID), Some(NOID)), 0, 0, Now(), h, a, w) ==>
      h.ino in post.nodes && post.nodes[h.ino].attr.uid == 0 && post.nodes[h.ino].attr.gid == 0
  { Letters(); }
  // Whoever asks, and for what: what somebody makes is somebody's, and what is somebody's stays so when attributes
  // are set.
  lemma NobodyOwns(c: Caller, d: Node, ty: uint32, mode: uint32, s: Sattr, now: Time, a: Attr)
    ensures c.uid != NOID ==> NewAttr(c, d, ty, mode, s, now).uid != NOID
    ensures c.gid != NOID && d.attr.gid != NOID ==> NewAttr(c, d, ty, mode, s, now).gid != NOID
    ensures a.uid != NOID ==> Applied(c, ty, a, WithoutNobody(s), now).uid != NOID
    ensures a.gid != NOID ==> Applied(c, ty, a, WithoutNobody(s), now).gid != NOID
  { }

  // "d" is ann's (0755): eve may search it and not write there. A name that is taken is EXIST for her as for ann, one
  // that is not is ACCES. Where she may not even search (0700) it is ACCES, whatever is there.
  lemma Taken(st: uint32)
    ensures (CreateErr(V(), Eve(), H(4), L(98), 1, NoSattr(), 0, st) <==> st == NFS3ERR_EXIST) &&
      (MkdirErr(V(), Eve(), H(4), L(98), NoSattr(), st) <==> st == NFS3ERR_EXIST) &&
      (SymlinkErr(V(), Eve(), H(4), L(98), NoSattr(), [65], st) <==> st == NFS3ERR_EXIST)
    ensures (MknodErr(V(), Eve(), H(4), L(98), 7, NoSattr(), 0, 0, st) <==> st == NFS3ERR_EXIST) &&
      (LinkErr(V(), Eve(), H(3), H(4), L(101), st) <==> st == NFS3ERR_EXIST)
    ensures st == NFS3ERR_ACCES ==> CreateErr(V(), Eve(), H(4), L(120), 1, NoSattr(), 0, st) &&
      MkdirErr(V(), Eve(), H(4), L(120), NoSattr(), st) && SymlinkErr(V(), Eve(), H(4), L(120), NoSattr(), [65], st)
    ensures st == NFS3ERR_ACCES ==> MknodErr(V(), Eve(), H(4), L(120), 7, NoSattr(), 0, 0, st) &&
      LinkErr(V(), Eve(), H(3), H(4), L(120), st)
  { Letters(); }
  lemma TakenUnseen(st: uint32)
    ensures var f := With(4, Node(Of(448, 3, 10, 20), N4().body, N4().blocks));
      (CreateErr(f, Eve(), H(4), L(98), 1, NoSattr(), 0, st) <==> st == NFS3ERR_ACCES) &&
      (MkdirErr(f, Eve(), H(4), L(98), NoSattr(), st) <==> st == NFS3ERR_ACCES) &&
      (SymlinkErr(f, Eve(), H(4), L(98), NoSattr(), [65], st) <==> st == NFS3ERR_ACCES)
    ensures var f := With(4, Node(Of(448, 3, 10, 20), N4().body, N4().blocks));
      (MknodErr(f, Eve(), H(4), L(98), 7, NoSattr(), 0, 0, st) <==> st == NFS3ERR_ACCES) &&
      (LinkErr(f, Eve(), H(3), H(4), L(101), st) <==> st == NFS3ERR_ACCES)
  { Letters(); }

  lemma Links(post: FS, a: Fattr, w: Wcc)
    ensures var n := Node(SetNlinkCtime(N3().attr, 3, Now()), N3().body, N3().blocks);
      var f := FS(V().nodes[3 := n][1 := Entries(N1(), N1().body.names[L(120) := 3], N1().body.cookies[L(120) := 20],
      3)], V().gens, V().xattrs);
      LinkOk(V(), f, Eve(), H(3), H(1), L(120), Now(), F(f, 3), W(V(), f, 1))
    // a directory
    ensures LinkErr(V(), Root(), H(4), H(1), L(120), NFS3ERR_INVAL) &&
      !LinkOk(V(), post, Root(), H(4), H(1), L(120), Now(), a, w)
    // entries that stay do not move in the listing
    ensures LinkOk(V(), post, Eve(), H(3), H(1), L(120), Now(), a, w) ==>
      L(100) in post.nodes[1].body.names && L(100) in post.nodes[1].body.cookies &&
      post.nodes[1].body.cookies[L(100)] == 11
  { Letters(); }
}

module ScenarioGone {
  import opened Machine import opened NfsState import opened NfsPerm import opened NfsCommon import opened NfsAttrs
  import opened NfsUnlink import opened NfsRename import opened ScenarioV

  lemma Remove1(post: FS, w: Wcc)
    // one of two names: the file stays, with one link
    ensures var f := FS(V().nodes[3 := Node(SetNlinkCtime(N3().attr, 1, Now()), N3().body, N3().blocks)][1 :=
      Entries(N1(), Del(N1().body.names, L(97)), N1().body.cookies, 3)], V().gens, V().xattrs);
      RemoveOk(V(), f, Ann(), H(1), L(97), Now(), W(V(), f, 1))
    // the last name: the file is gone, and its handle stale
    ensures RemoveOk(V(), post, Ann(), H(1), L(115), Now(), w) ==>
      5 !in post.nodes && L(115) !in post.nodes[1].body.names && GetattrErr(post, H(5), NFS3ERR_STALE) &&
      post.nodes[1].attr.nlink == 3
    // a directory
    ensures RemoveErr(V(), Root(), H(1), L(100), NFS3ERR_ISDIR) && !RemoveOk(V(), post, Root(), H(1), L(100), Now(), w)
  { Letters(); }
  lemma Remove2(post: FS, w: Wcc)
    // a sticky directory: eve may not remove ann's file, ann may
    ensures var f := With(1, Node(Of(1023, 3, 0, 0), N1().body, N1().blocks));
      RemoveErr(f, Eve(), H(1), L(97), NFS3ERR_ACCES) && !RemoveOk(f, post, Eve(), H(1), L(97), Now(), w) &&
      !RemoveErr(f, Ann(), H(1), L(97), NFS3ERR_ACCES)
    ensures RemoveErr(V(), Ann(), H(1), L(120), NFS3ERR_NOENT) && !RemoveErr(V(), Ann(), H(1), L(97), NFS3ERR_NOENT) &&
      !RemoveErr(V(), Ann(), H(1), L(97), NFS3ERR_NOSPC)
  { Letters(); }

  lemma Rmdir(post: FS, w: Wcc)
    // its parent has one link less
    ensures RmdirOk(V(), post, Ann(), H(4), L(101), Now(), w) ==>
      7 !in post.nodes && 4 in post.nodes && post.nodes[4].attr.nlink == 2 && post.nodes[4].attr.mtime == Now() &&
      3 in post.nodes
    ensures var f := FS((map x | x in V().nodes && x != 7 ::
      V().nodes[x])[4 := Entries(N4(), Del(N4().body.names, L(101)), N4().body.cookies, 2)], V().gens, V().xattrs);
      RmdirOk(V(), f, Ann(), H(4), L(101), Now(), W(V(), f, 4))
    ensures RmdirErr(V(), Root(), H(1), L(100), NFS3ERR_NOTEMPTY) && !RmdirOk(V(), post, Root(), H(1), L(100), Now(), w)
    ensures RmdirErr(V(), Root(), H(1), L(97), NFS3ERR_NOTDIR) &&
      RmdirErr(V(), Root(), H(4), [46, 46], NFS3ERR_EXIST) && RmdirErr(V(), Root(), H(4), [46], NFS3ERR_INVAL)
  { Letters(); assert L(98) in N4().body.names; }

  lemma Rename1(post: FS, v: Wcc, w: Wcc)
    // both names are of one file: nothing happens
    ensures RenameOk(V(), V(), Ann(), H(1), L(97), H(4), L(98), Now(), W(V(), V(), 1), W(V(), V(), 4))
    ensures RenameOk(V(), post, Ann(), H(1), L(97), H(4), L(98), Now(), v, w) ==> post == V()
    // to a new name in the same directory
    ensures RenameOk(V(), post, Ann(), H(1), L(115), H(1), L(120), Now(), v, w) ==>
      L(120) in post.nodes[1].body.names && post.nodes[1].body.names[L(120)] == 5 &&
        L(115) !in post.nodes[1].body.names && post.nodes[5].attr.ctime == Now() && post.nodes[1].attr.nlink == 3
    // over the last name of another file, which is gone then; the new entry has its place
    ensures RenameOk(V(), post, Ann(), H(1), L(97), H(1), L(115), Now(), v, w) ==>
      5 !in post.nodes && L(115) in post.nodes[1].body.names && post.nodes[1].body.names[L(115)] == 3 &&
        post.nodes[1].body.cookies[L(115)] == 12 && post.nodes[3].attr.nlink == 2
  { Letters(); }
  lemma Rename2(post: FS, v: Wcc, w: Wcc)
    // a directory to another parent: "..", and the link counts of both
    ensures RenameOk(V(), post, Ann(), H(4), L(101), H(1), L(120), Now(), v, w) ==>
      post.nodes[7].body.parent == 1 && post.nodes[4].attr.nlink == 2 && post.nodes[1].attr.nlink == 4
    // never into itself or below
    ensures RenameErr(V(), Ann(), H(1), L(100), H(7), L(120), NFS3ERR_INVAL) &&
      !RenameOk(V(), post, Ann(), H(1), L(100), H(7), L(120), Now(), v, w)
  { Letters(); assert Up(V(), 4, 0) == 4; assert Up(V(), 7, 1) == 4; assert Below(V(), 7, 4); }
  lemma Rename3(post: FS, v: Wcc, w: Wcc)
    // a directory over a file, and the reverse; over a directory with entries (EXIST is never given)
    ensures RenameErr(V(), Ann(), H(4), L(101), H(1), L(97), NFS3ERR_NOTDIR) &&
      !RenameOk(V(), post, Ann(), H(4), L(101), H(1), L(97), Now(), v, w)
    ensures RenameErr(V(), Ann(), H(1), L(115), H(4), L(101), NFS3ERR_ISDIR) &&
      !RenameOk(V(), post, Ann(), H(1), L(115), H(4), L(101), Now(), v, w)
    ensures RenameErr(V(), Ann(), H(4), L(101), H(1), L(100), NFS3ERR_NOTEMPTY) &&
      !RenameOk(V(), post, Ann(), H(4), L(101), H(1), L(100), Now(), v, w)
    ensures !RenameErr(V(), Ann(), H(4), L(101), H(1), L(100), NFS3ERR_EXIST)
  { Letters(); assert L(98) in N4().body.names; }
}

// What a call changes, to the last bit: where the scenarios above show some of the
// effect, these leave nothing open but the numbers that the server may choose.
module ScenarioExact {
  import opened Machine import opened ByteSpec import opened NfsState import opened NfsPerm import opened NfsCommon
  import opened NfsAttrs import opened NfsData import opened NfsMake import opened NfsUnlink import opened NfsRename
  import opened ScenarioV

  // a directory n that became e, written out
  predicate Touched(n: Node, e: Node, names: map<Name, uint64>, nlink: uint32)
    requires n.body.Dir?
  {
    e.body.Dir? && e.body.names == names && e.body.parent == n.body.parent &&
    e.attr == Attr(n.attr.mode, nlink, n.attr.uid, n.attr.gid, n.attr.atime, Now(), Now(), n.attr.flags) &&
    forall x: Name {:trigger x in e.body.names} | x in names && x in n.body.names && x in n.body.cookies ::
      x in e.body.cookies && e.body.cookies[x] == n.body.cookies[x]
  }
  // a free inode became the new node n, "x" of the root, with the handle h
  predicate Came(post: FS, h: Handle, n: Node, a: Fattr, w: Wcc)
  {
    var i := h.ino;
    2 < i && i !in V().nodes && i in V().gens && V().gens[i] < 100 && h.gen == V().gens[i] + 1 &&
      post.gens == V().gens[i := h.gen] && 1 in post.nodes &&
    post.nodes == V().nodes[i := n][1 := post.nodes[1]] &&
      Touched(N1(), post.nodes[1], N1().body.names[L(120) := i], if n.body.Dir? then 4 else 3) &&
    a == FattrOf(i, n) && w == W(V(), post, 1)
  }

  lemma Attrs(post: FS, w: Wcc)
    ensures var f := With(3, Node(Attr(384, 2, 10, 20, Time(1, 0), Time(2, 0), Now(), 0), File([1, 2, 3], 0, {0}), 1));
      SetattrOk(V(), post, Ann(), H(3), Mode(384), None, Now(), w) ==> post == f && w == W(V(), f, 3)
    // times: the client's, and the server's
    ensures var f := With(3, Node(Attr(420, 2, 10, 20, Time(7, 1), Now(), Now(), 0), File([1, 2, 3], 0, {0}), 1));
      SetattrOk(V(), post, Ann(), H(3), Sattr(None, None, None, None, ClientTime(Time(7, 1)), ServerTime), None, Now(),
        w) ==> post == f && w == W(V(), f, 3)
    // root gives the file away; a setuid and setgid program (06755) becomes an ordinary one by that
    ensures Applied(Root(), 1, Of(3565, 1, 10, 20), Sattr(None, Some(11), Some(21), None, DontChange, DontChange),
      Now()) == Attr(493, 1, 11, 21, Time(1, 0), Time(2, 0), Now(), 0)
    // ... but setgid without execution by the group (02644) stays: it is for locking; and a directory keeps both
    ensures Applied(Ann(), 1, Of(1444, 1, 10, 20), OnlySize(0), Now()).mode == 1444
    ensures Applied(Root(), 2, Of(3565, 1, 10, 20), Sattr(None, Some(11), None, None, DontChange, DontChange),
      Now()).mode == 3565
    // setgid (02755) is set by members of the group only
    ensures Applied(Ann(), 1, Of(420, 1, 10, 20), Mode(1517), Now()).mode == 1517 &&
      Applied(Ann(), 1, Of(420, 1, 10, 99), Mode(1517), Now()).mode == 493 &&
      Applied(Root(), 1, Of(420, 1, 10, 99), Mode(1517), Now()).mode == 1517
  { }

  lemma Datas(post: FS, w: Wcc)
    ensures var f := With(3, Node(Attr(420, 2, 10, 20, Time(1, 0), Now(), Now(), 0), File([1, 8, 3], 77, {0}), 1));
      WriteOk(V(), post, Ann(), H(3), 1, [8], Now(), w) ==> post == f && w == W(V(), f, 3)
    ensures WriteOk(V(), post, Ann(), H(3), 9, [], Now(), w) ==> post == V()
    // writing to a setuid program (04755) makes an ordinary one of it, unless root writes
    ensures var n := Node(Of(2541, 1, 10, 20), File([1], 0, {0}), 1);
      Written(Ann(), n, 0, [2], Now()).attr.mode == 493 && Written(Root(), n, 0, [2], Now()).attr.mode == 2541
  { assert WriteAt([1, 2, 3], 1, [8]) == [1, 8, 3]; assert N3().body.held + Blocks(1, 1) == {0}; }

  lemma Creates(post: FS, h: Handle, a: Fattr, w: Wcc)
    ensures CreateOk(V(), post, Eve(), H(1), L(120), 1, NoSattr(), 0, Now(), h, a, w) ==>
      Came(post, h, Node(Attr(420, 1, 12, 22, Now(), Now(), Now(), 0), File([], 0, {}), 0), a, w)
    ensures CreateOk(V(), post, Eve(), H(1), L(120), 2, NoSattr(), 55, Now(), h, a, w) ==>
      Came(post, h, Node(Attr(0, 1, 12, 22, Now(), Now(), Now(), 0), File([], 55, {}), 0), a, w)
    ensures CreateOk(V(), post, Eve(), H(1), L(120), 0, Sattr(Some(384), None, None, Some(2), DontChange, DontChange),
      0, Now(), h, a, w) ==> Came(post, h, Node(Attr(384, 1, 12, 22, Now(), Now(), Now(), 0), File([0, 0], 0, {}), 0),
      a, w)
  { Letters(); assert Zeros(2) == [0, 0]; }
  lemma Makes(post: FS, h: Handle, a: Fattr, w: Wcc)
    ensures MkdirOk(V(), post, Eve(), H(1), L(120), NoSattr(), Now(), h, a, w) ==>
      Came(post, h, Node(Attr(493, 2, 12, 22, Now(), Now(), Now(), 0), Dir(map[], map[], 1, 0), 0), a, w)
    ensures SymlinkOk(V(), post, Eve(), H(1), L(120), NoSattr(), [65], Now(), h, a, w) ==>
      Came(post, h, Node(Attr(511, 1, 12, 22, Now(), Now(), Now(), 0), Symlink([65]), 1), a, w)
    ensures MknodOk(V(), post, Root(), H(1), L(120), 3, Mode(384), 4, 5, Now(), h, a, w) ==>
      Came(post, h, Node(Attr(384, 1, 0, 0, Now(), Now(), Now(), 0), Special(3, 4, 5), 0), a, w)
  { Letters(); }

  lemma Link(post: FS, a: Fattr, w: Wcc)
    ensures LinkOk(V(), post, Eve(), H(3), H(1), L(120), Now(), a, w) ==>
      var n := Node(Attr(420, 3, 10, 20, Time(1, 0), Time(2, 0), Now(), 0), N3().body, N3().blocks);
      1 in post.nodes && post == FS(V().nodes[3 := n][1 := post.nodes[1]], V().gens, V().xattrs) &&
        Touched(N1(), post.nodes[1], N1().body.names[L(120) := 3], 3) && a == FattrOf(3, n) && w == W(V(), post, 1)
  { Letters(); }

  // The root, of one block, gets an entry in that, or in the second one. A root of two blocks is not cut for one in the
  // first.
  predicate Long(e: Node, bytes: int, least: int, most: int)
  { e.body.Dir? && e.body.bytes as int == bytes && least <= e.blocks <= most }
  lemma Lengths(post: FS, h: Handle, a: Fattr, w: Wcc)
    ensures MkdirOk(V(), post, Eve(), H(1), L(120), NoSattr(), Now(), h, a, w) ==>
      1 in post.nodes && var e := post.nodes[1]; e.body.Dir? && L(120) in e.body.names &&
      (L(120) in e.body.cookies && 3 <= e.body.cookies[L(120)] < 67 ==> Long(e, 4096, 1, 2)) &&
      (L(120) in e.body.cookies && 67 <= e.body.cookies[L(120)] < 131 ==> Long(e, 8192, 1, 2))
    ensures var f := With(1, Node(N1().attr, Dir(N1().body.names, N1().body.cookies, 1, 8192), 2));
      LinkOk(f, post, Eve(), H(3), H(1), L(120), Now(), a, w) ==>
      1 in post.nodes && var e := post.nodes[1]; e.body.Dir? && L(120) in e.body.names &&
      (L(120) in e.body.cookies && e.body.cookies[L(120)] == 20 ==> Long(e, 8192, 2, 3))
  { Letters(); }
  // names that go, or are replaced
  lemma LengthsStay(post: FS, v: Wcc, w: Wcc)
    ensures RemoveOk(V(), post, Ann(), H(1), L(97), Now(), w) ==> 1 in post.nodes && Long(post.nodes[1], 4096, 0, 1)
    ensures RmdirOk(V(), post, Ann(), H(4), L(101), Now(), w) ==> 4 in post.nodes && Long(post.nodes[4], 4096, 0, 1)
    ensures RenameOk(V(), post, Ann(), H(1), L(115), H(4), L(98), Now(), v, w) ==>
      4 in post.nodes && 1 in post.nodes && Long(post.nodes[4], 4096, 1, 1) && Long(post.nodes[1], 4096, 0, 1)
    // one comes and one goes
    ensures RenameOk(V(), post, Ann(), H(1), L(115), H(1), L(120), Now(), v, w) ==>
      1 in post.nodes && post.nodes[1].body.Dir? && 0 <= post.nodes[1].blocks <= 2
  { Letters(); }

  lemma Unlink(post: FS, w: Wcc)
    ensures RemoveOk(V(), post, Ann(), H(1), L(97), Now(), w) ==>
      var n := Node(Attr(420, 1, 10, 20, Time(1, 0), Time(2, 0), Now(), 0), N3().body, N3().blocks);
      1 in post.nodes && post == FS(V().nodes[3 := n][1 := post.nodes[1]], V().gens, V().xattrs) &&
        Touched(N1(), post.nodes[1], map[L(100) := 4, L(115) := 5, L(112) := 6], 3) && w == W(V(), post, 1)
    ensures RmdirOk(V(), post, Ann(), H(4), L(101), Now(), w) ==>
      4 in post.nodes && post == FS((map x | x in V().nodes && x != 7 :: V().nodes[x])[4 := post.nodes[4]], V().gens,
        V().xattrs) && Touched(N4(), post.nodes[4], map[L(98) := 3], 2) && w == W(V(), post, 4)
  {
    Letters();
    assert Del(N1().body.names, L(97)) == map[L(100) := 4, L(115) := 5, L(112) := 6];
    assert Del(N4().body.names, L(101)) == map[L(98) := 3];
  }

  lemma Rename(post: FS, v: Wcc, w: Wcc)
    // "e" of "d" becomes "x" of the root
    ensures RenameOk(V(), post, Ann(), H(4), L(101), H(1), L(120), Now(), v, w) ==>
      1 in post.nodes && 4 in post.nodes && post ==
        FS(V().nodes[7 := Node(Attr(493, 2, 10, 20, Time(1, 0), Time(2, 0), Now(), 0), Dir(map[], map[], 1, 0), 0)][4 :=
        post.nodes[4]][1 := post.nodes[1]], V().gens, V().xattrs) &&
      Touched(N4(), post.nodes[4], map[L(98) := 3], 2) &&
        Touched(N1(), post.nodes[1], N1().body.names[L(120) := 7], 4) && v == W(V(), post, 4) && w == W(V(), post, 1)
    // "s" of the root becomes "b" of "d", which was a second name of "a"
    ensures RenameOk(V(), post, Ann(), H(1), L(115), H(4), L(98), Now(), v, w) ==>
      1 in post.nodes && 4 in post.nodes && post ==
        FS(V().nodes[3 := Node(Attr(420, 1, 10, 20, Time(1, 0), Time(2, 0), Now(), 0), N3().body, N3().blocks)][5 :=
        Node(Attr(511, 1, 10, 20, Time(1, 0), Time(2, 0), Now(), 0), Symlink([65, 66]), 1)][1 := post.nodes[1]][4 :=
        post.nodes[4]], V().gens, V().xattrs) &&
      Touched(N1(), post.nodes[1], map[L(97) := 3, L(100) := 4, L(112) := 6], 3) &&
        Touched(N4(), post.nodes[4], map[L(98) := 5, L(101) := 7], 3)
  {
    Letters();
    assert Del(N4().body.names, L(101)) == map[L(98) := 3];
    assert Del(N1().body.names, L(115)) == map[L(97) := 3, L(100) := 4, L(112) := 6];
  }
}

// What may go wrong with a call that nothing is wrong with: nothing, but that the
// volume is full, or that a cut file must be shrunk first.
module ScenarioErrors {
  import opened Machine import opened ByteSpec import opened NfsState import opened NfsPerm import opened NfsCommon
  import opened NfsAttrs import opened NfsData import opened NfsList import opened NfsMake import opened NfsUnlink
  import opened NfsRename import opened NfsVolume import opened ScenarioV import ScenarioData

  lemma Reading(st: uint32)
    ensures !GetattrErr(V(), H(3), st) && !AccessErr(V(), H(3), st) && !ReadlinkErr(V(), H(5), st) &&
      !ReadErr(V(), Eve(), H(3), st)
    ensures !LookupErr(V(), Eve(), H(4), L(98), st) && !LookupErr(V(), Eve(), H(4), [46], st) &&
      !LookupErr(V(), Eve(), H(1), [46, 46], st)
    ensures !ReaddirErr(V(), Eve(), H(1), 11, 0, Count(4096), st) &&
      !ReaddirErr(V(), Eve(), H(1), 0, 1, Count(4096), st) &&
      !ReaddirplusErr(V(), Eve(), H(1), 11, 0, Maxcount(4096, 4096), st)
    ensures !FsstatErr(V(), H(1), st) && !FsinfoErr(V(), H(1), st) && !PathconfErr(V(), H(1), st) &&
      !CommitErr(V(), H(3), st)
  {
    Letters();
    forall c: int, l: Limit ensures NoneFits(1, N1().body, c, l) <==> l.room < 0 || exists x: Item
      {:trigger First(1, N1().body, c, x)} :: First(1, N1().body, c, x) && l.room < l.cost(|x.name|)
    { ScenarioData.NoneYet(N1().body, c, l); }
  }

  lemma Data(st: uint32)
    ensures !SetattrErr(V(), Ann(), H(3), Mode(384), Some(Time(3, 0)), st) &&
      !SetattrErr(V(), Ann(), H(3), OnlySize(2), None, st)
    ensures SetattrErr(V(), Ann(), H(3), OnlySize(5), None, st) ==> st == SHRINKFIRST
    ensures !WriteErr(V(), Ann(), H(3), 2, [8], st)
    ensures WriteErr(V(), Ann(), H(3), 3, [8], st) ==> st == SHRINKFIRST
    ensures WriteErr(V(), Ann(), H(3), 4096, [8], st) ==> st == NFS3ERR_NOSPC || st == SHRINKFIRST
    ensures !WriteErr(V(), Ann(), H(3), 9, [], st)
  { assert Blocks(2, 1) == {0} && Blocks(3, 1) == {0}; }

  lemma Make(st: uint32)
    ensures CreateErr(V(), Eve(), H(1), L(120), 0, NoSattr(), 0, st) ==> st == NFS3ERR_NOSPC
    ensures !CreateErr(V(), Ann(), H(1), L(97), 0, OnlySize(0), 0, st) &&
      !CreateErr(V(), Ann(), H(1), L(97), 2, NoSattr(), 77, st)
    ensures CreateErr(V(), Ann(), H(1), L(97), 0, OnlySize(9), 0, st) ==> st == SHRINKFIRST
    // a size is ignored but by CREATE
    ensures MkdirErr(V(), Eve(), H(1), L(120), OnlySize(1_000_000_000_000), st) ==> st == NFS3ERR_NOSPC
    ensures SymlinkErr(V(), Eve(), H(1), L(120), OnlySize(1_000_000_000_000), [65], st) ==> st == NFS3ERR_NOSPC
    ensures MknodErr(V(), Eve(), H(1), L(120), 7, OnlySize(1_000_000_000_000), 0, 0, st) ||
      MknodErr(V(), Root(), H(1), L(120), 4, NoSattr(), 0, 0, st) ==> st == NFS3ERR_NOSPC
    ensures LinkErr(V(), Eve(), H(3), H(1), L(120), st) ==> st == NFS3ERR_NOSPC
  { Letters(); }

  lemma Unlink(st: uint32)
    ensures !RemoveErr(V(), Ann(), H(1), L(97), st) && !RmdirErr(V(), Ann(), H(4), L(101), st)
    ensures RenameErr(V(), Ann(), H(1), L(115), H(4), L(120), st) ==> st == NFS3ERR_NOSPC
    ensures RenameErr(V(), Ann(), H(4), L(101), H(4), L(120), st) && st != NFS3ERR_INVAL ==> st == NFS3ERR_NOSPC
    // a name that is there needs no room
    ensures !RenameErr(V(), Ann(), H(1), L(115), H(4), L(98), st) &&
      !RenameErr(V(), Ann(), H(1), L(97), H(4), L(98), st)
  { Letters(); assert Up(V(), 4, 1) == 1; }

  // what the state does not decide
  lemma Outsiders(st: uint32)
    ensures Outside(st, true) <==> st == NFS3ERR_IO || st == NFS3ERR_ROFS
    // who only reads is not refused because nothing may be written
    ensures Outside(st, false) <==> st == NFS3ERR_IO
    ensures Seen(V(), 3, None) && Seen(V(), 3, Some(F(V(), 3))) && !Seen(V(), 3, Some(F(V(), 4)))
  { }

  // A wrong handle is stale for every procedure, whatever else is wrong.
  lemma Stale()
    ensures var h := Handle(3, 4); SetattrErr(V(), Ann(), h, NoSattr(), None, NFS3ERR_STALE) &&
      AccessErr(V(), h, NFS3ERR_STALE) && ReadlinkErr(V(), h, NFS3ERR_STALE) && ReadErr(V(), Eve(), h, NFS3ERR_STALE) &&
      WriteErr(V(), Eve(), h, 0, [8], NFS3ERR_STALE)
    ensures var h := Handle(3, 4); FsstatErr(V(), h, NFS3ERR_STALE) && FsinfoErr(V(), h, NFS3ERR_STALE) &&
      PathconfErr(V(), h, NFS3ERR_STALE) && LinkErr(V(), Eve(), h, H(1), L(120), NFS3ERR_STALE)
  { }
}

// Calls that must not succeed.
module ScenarioNever {
  import opened Machine import opened ByteSpec import opened NfsState import opened NfsPerm import opened NfsCommon
  import opened NfsAttrs import opened NfsData import opened NfsList import opened NfsMake import opened NfsUnlink
  import opened NfsRename import opened NfsVolume import opened ScenarioV

  lemma Attrs(post: FS, bits: uint32, a: Fattr, w: Wcc)
    // the attributes of another file; more bits than there are
    ensures GetattrOk(V(), H(3), a) ==> a == F(V(), 3)
    ensures GetattrOk(V(), H(4), a) ==> a == Fattr(2, 493, 3, 10, 20, 4096, 4096, 0, 0, 4, Time(1, 0), Time(2, 0),
      Time(3, 0))
    ensures var f := With(6, Node(Of(420, 1, 0, 0), Special(4, 1, 3), 0));
      GetattrOk(f, H(6), Fattr(4, 420, 1, 0, 0, 0, 0, 1, 3, 6, Time(1, 0), Time(2, 0), Time(3, 0)))
    ensures AccessOk(V(), Eve(), H(3), bits, a) ==> bits == 1 && a == F(V(), 3)
    // a group that ann is not in; a size set by eve; a file too large; a nanosecond too many
    ensures !SetattrOk(V(), post, Ann(), H(3), Sattr(None, None, Some(99), None, DontChange, DontChange), None, Now(),
      w)
    ensures !SetattrOk(V(), post, Eve(), H(3), OnlySize(0), None, Now(), w) &&
      !SetattrOk(V(), post, Eve(), H(3), Sattr(None, None, None, None, ServerTime, DontChange), None, Now(), w)
    ensures !SetattrOk(V(), post, Eve(), H(3), Sattr(None, None, None, None, DontChange, ClientTime(Time(1, 0))), None,
      Now(), w)
    ensures !SetattrOk(V(), post, Ann(), H(3), OnlySize(549755813889), None, Now(), w)
    ensures !SetattrOk(V(), post, Ann(), H(3), Sattr(None, None, None, None, ClientTime(Time(1, 1_000_000_000)),
      DontChange), None, Now(), w)
  { }

  lemma Volume(a: Fattr, t: seq<byte>, d: seq<byte>, e: bool, s: Space, i: Info, p: Pathconf, w: Wcc)
    ensures ReadlinkOk(V(), H(5), t, a) ==> t == [65, 66] && a == F(V(), 5)
    ensures ReadOk(V(), Eve(), H(3), 0, 2, d, e, a) ==> d == [1, 2] && !e && a == F(V(), 3)
    ensures FsstatOk(V(), H(3), a, s) ==> a == F(V(), 3) && s.ffiles <= s.tfiles && s.abytes == s.fbytes &&
      s.afiles == s.ffiles && s.invarsec == 0
    ensures FsinfoOk(V(), H(1), a, i) ==> a == F(V(), 1) && i.dtpref > 0 && i.maxfilesize == 549755813888
    ensures PathconfOk(V(), H(1), a, p) ==> a == F(V(), 1) && p.linkmax == 0x7fff_ffff
    ensures CommitOk(V(), H(3), w) ==> w == W(V(), V(), 3)
  { assert [1, 2, 3][0..2] == [1, 2]; }

  lemma List(h: Handle, a: Fattr, da: Fattr, items: seq<Item>, eof: bool)
    ensures LookupOk(V(), Eve(), H(4), L(98), h, a, da) ==> h == H(3) && a == F(V(), 3) && da == F(V(), 4)
    ensures LookupOk(V(), Eve(), H(4), [46], h, a, da) ==> h == H(4)
    // 0700: not for eve
    ensures var f := With(4, Node(Of(448, 3, 10, 20), N4().body, N4().blocks));
      !LookupOk(f, Eve(), H(4), L(98), h, a, da) && !ReaddirOk(f, Eve(), H(4), 0, 0, Count(4096), items, eof, a)
    // a verifier that is not ours
    ensures !ReaddirOk(V(), Eve(), H(1), 11, 1, Count(4096), items, eof, a)
    // an entry twice, out of order, or at or before the cookie
    ensures !ReaddirOk(V(), Eve(), H(1), 12, 0, Count(4096), [Item(6, L(112), 13), Item(6, L(112), 13)], true, a) &&
      !ReaddirOk(V(), Eve(), H(1), 11, 0, Count(4096), [Item(6, L(112), 13), Item(5, L(115), 12)], true, a)
    ensures !ReaddirOk(V(), Eve(), H(1), 12, 0, Count(4096), [Item(5, L(115), 12), Item(6, L(112), 13)], true, a)
    // a name that is not there
    ensures !ReaddirOk(V(), Eve(), H(1), 12, 0, Count(4096), [Item(6, L(112), 13), Item(3, L(120), 14)], true, a)
    ensures ReaddirOk(V(), Eve(), H(1), 0, 0, Count(4096), items, eof, a) ==> a == F(V(), 1)
  {
    Letters();
    assert Item(3, L(120), 14).name == L(120);
    var x := [Item(6, L(112), 13), Item(3, L(120), 14)];
    assert x[1] == Item(3, L(120), 14);
    var y := [Item(6, L(112), 13), Item(6, L(112), 13)];
    assert y[0].cookie == y[1].cookie;
    var z := [Item(6, L(112), 13), Item(5, L(115), 12)];
    assert z[0].cookie > z[1].cookie;
    var u := [Item(5, L(115), 12), Item(6, L(112), 13)];
    assert u[0].cookie == 12;
  }

  lemma Make(post: FS, h: Handle, a: Fattr, w: Wcc)
    // "." and ".." are no names to be made; eve may not write in "d"
    ensures !CreateOk(V(), post, Root(), H(1), [46], 0, NoSattr(), 0, Now(), h, a, w) &&
      !CreateOk(V(), post, Root(), H(1), [46, 46], 0, NoSattr(), 0, Now(), h, a, w)
    ensures !CreateOk(V(), post, Eve(), H(4), L(120), 0, NoSattr(), 0, Now(), h, a, w) &&
      !SymlinkOk(V(), post, Eve(), H(4), L(120), NoSattr(), [65], Now(), h, a, w)
    ensures !MknodOk(V(), post, Eve(), H(4), L(120), 7, NoSattr(), 0, 0, Now(), h, a, w) &&
      !LinkOk(V(), post, Eve(), H(3), H(4), L(120), Now(), a, w)
    // eve cuts ann's file; a directory is no file; a fourth way to create
    ensures !CreateOk(V(), post, Eve(), H(1), L(97), 0, OnlySize(0), 0, Now(), h, a, w) &&
      !CreateOk(V(), post, Ann(), H(1), L(100), 0, NoSattr(), 0, Now(), h, a, w)
    ensures !CreateOk(V(), post, Ann(), H(1), L(120), 3, NoSattr(), 0, Now(), h, a, w)
    // what is there is left alone, but for its size
    ensures CreateOk(V(), post, Ann(), H(1), L(97), 0, Mode(511), 0, Now(), h, a, w) ==>
      post == V() && h == H(3) && a == F(V(), 3)
    // a name that is there
    ensures !MkdirOk(V(), post, Ann(), H(1), L(97), NoSattr(), Now(), h, a, w) &&
      !LinkOk(V(), post, Ann(), H(3), H(1), L(115), Now(), a, w)
    // too many links
    ensures var f := With(3, Node(Of(420, 0x7fff_ffff, 10, 20), N3().body, N3().blocks));
      !LinkOk(f, post, Ann(), H(3), H(1), L(120), Now(), a, w) && LinkErr(f, Ann(), H(3), H(1), L(120), NFS3ERR_MLINK)
    ensures var f := With(1, Node(Of(511, 0x7fff_ffff, 0, 0), N1().body, N1().blocks));
      !MkdirOk(f, post, Ann(), H(1), L(120), NoSattr(), Now(), h, a, w)
  { Letters(); }

  lemma Unlink(post: FS, v: Wcc, w: Wcc)
    // eve in ann's directory
    ensures !RemoveOk(V(), post, Eve(), H(4), L(98), Now(), w) && !RmdirOk(V(), post, Eve(), H(4), L(101), Now(), w)
    ensures !RenameOk(V(), post, Eve(), H(4), L(98), H(1), L(120), Now(), v, w) &&
      !RenameOk(V(), post, Eve(), H(1), L(112), H(4), L(120), Now(), v, w)
    // a name that is not there
    ensures !RemoveOk(V(), post, Root(), H(1), L(120), Now(), w) &&
      !RenameOk(V(), post, Root(), H(1), L(120), H(1), L(121), Now(), v, w)
    // a sticky root: eve takes nothing of ann's, and replaces nothing of hers
    ensures var f := With(1, Node(Of(1023, 3, 0, 0), N1().body, N1().blocks));
      !RenameOk(f, post, Eve(), H(1), L(97), H(1), L(120), Now(), v, w)
    ensures var f := FS(V().nodes[1 := Node(Of(1023, 3, 0, 0), N1().body, N1().blocks)][6 :=
      Node(Of(384, 1, 12, 22), Special(7, 0, 0), 0)], V().gens, V().xattrs);
      !RenameOk(f, post, Eve(), H(1), L(112), H(1), L(97), Now(), v, w)
    // a directory that its mover may not write, and so not change ".." in
    ensures var f := FS(V().nodes[4 := Node(Of(511, 3, 10, 20), N4().body, N4().blocks)], V().gens, V().xattrs);
      !RenameOk(f, post, Eve(), H(4), L(101), H(1), L(120), Now(), v, w)
    ensures !RenameOk(V(), post, Root(), H(1), [46], H(1), L(120), Now(), v, w)
    // no links left for another sub-directory
    ensures var f := With(1, Node(Of(511, 0x7fff_ffff, 0, 0), N1().body, N1().blocks));
      !RenameOk(f, post, Ann(), H(4), L(101), H(1), L(120), Now(), v, w)
  { Letters(); }
}

// Volumes that cannot occur.
module ScenarioUnsound {
  import opened Machine import opened ByteSpec import opened NfsState import opened NfsPerm import opened NfsCommon
  import opened ScenarioV
  import ScenarioAttrs
  function N7(): Node { V().nodes[7] }
  function Root1(names: map<Name, uint64>, parent: uint64): FS
  { With(1, Node(N1().attr, Dir(names, N1().body.cookies, parent, 4096), 1)) }

  lemma Trees(depth: map<uint64, int>)
    ensures !Tree(Root1(N1().body.names, 4), depth)
    // an entry "."; of an inode that is free; of the root
    ensures !Tree(Root1(N1().body.names[[46] := 3], 1), depth) &&
      !Tree(Root1(N1().body.names[L(120) := 8], 1), depth) &&
      !Tree(With(7, Node(N7().attr, Dir(map[L(120) := 1], map[], 4, 0), 0)), depth)
    // ".." of "e" is the root
    ensures !Tree(With(7, Node(N7().attr, Dir(map[], map[], 1, 0), 0)), depth)
    // "d" and "e" are in each other
    ensures !Tree(FS(V().nodes[4 := Node(N4().attr, Dir(N4().body.names, N4().body.cookies, 7, 0), 0)][7 :=
      Node(N7().attr, Dir(map[L(120) := 4], map[], 4, 0), 0)][1 := Node(N1().attr, Dir(map[], map[], 1, 0), 0)],
      V().gens, V().xattrs), depth)
  {
    Letters();
    var f := Root1(N1().body.names[[46] := 3], 1); assert Entry(f, 1, [46]);
    f := Root1(N1().body.names[L(120) := 8], 1); assert Entry(f, 1, L(120));
    f := With(7, Node(N7().attr, Dir(map[L(120) := 1], map[], 4, 0), 0)); assert Entry(f, 7, L(120));
    f := With(7, Node(N7().attr, Dir(map[], map[], 1, 0), 0)); assert Entry(f, 4, L(101));
    f := FS(V().nodes[4 := Node(N4().attr, Dir(N4().body.names, N4().body.cookies, 7, 0), 0)][7 :=
      Node(N7().attr, Dir(map[L(120) := 4], map[], 4, 0), 0)][1 := Node(N1().attr, Dir(map[], map[], 1, 0), 0)],
      V().gens, V().xattrs);
    assert Entry(f, 7, L(120)) && Entry(f, 4, L(101));
  }
  lemma Inside()
    // mode 010000; a target of no bytes; a FIFO of kind 5; no generation
    ensures !Bodies(With(3, Node(Of(4096, 2, 10, 20), N3().body, N3().blocks))) &&
      !Bodies(With(5, Node(Of(511, 1, 10, 20), Symlink([]), 1))) &&
      !Bodies(With(6, Node(Of(384, 1, 10, 20), Special(5, 0, 0), 0))) && !Bodies(With(99, N3()))
    // a byte in a hole; a block behind the end, and one before the beginning
    ensures var m := Of(420, 2, 10, 20); !Bodies(With(3, Node(m, File([1, 2, 3], 77, {}), 0))) &&
      !Bodies(With(3, Node(m, File([1, 2, 3], 77, {0, 1}), 2))) &&
      !Bodies(With(3, Node(m, File([1, 2, 3], 77, {0, -1}), 2)))
    // cookies: behind the end, and just not; without one, of "..", the same twice
    ensures !Places(Dir(map[L(98) := 3], map[L(98) := 67], 1, 4096)) &&
      Places(Dir(map[L(98) := 3], map[L(98) := 66], 1, 4096))
    ensures !Places(Dir(map[L(98) := 3], map[], 1, 4096)) &&
      !Places(Dir(map[L(98) := 3], map[L(98) := 2], 1, 4096)) &&
      !Places(Dir(map[L(98) := 3, L(101) := 7], map[L(98) := 5, L(101) := 5], 1, 4096))
    // directories: a block and a half long, and longer than a file can be
    ensures !Bodies(With(7, Node(N7().attr, Dir(map[], map[], 4, 6144), 0))) &&
      !Bodies(With(7, Node(N7().attr, Dir(map[], map[], 4, 549755817984), 0)))
  {
    Letters();
    var f := With(3, Node(Of(4096, 2, 10, 20), N3().body, N3().blocks)); assert 3 in f.nodes;
    f := With(5, Node(Of(511, 1, 10, 20), Symlink([]), 1)); assert 5 in f.nodes;
    f := With(6, Node(Of(384, 1, 10, 20), Special(5, 0, 0), 0)); assert 6 in f.nodes;
    f := With(99, N3()); assert 99 in f.nodes;
    f := With(3, Node(Of(420, 2, 10, 20), File([1, 2, 3], 77, {}), 0));
      assert 3 in f.nodes && f.nodes[3].body.data[0] == 1;
    f := With(3, Node(Of(420, 2, 10, 20), File([1, 2, 3], 77, {0, 1}), 2));
      assert 3 in f.nodes && 1 in f.nodes[3].body.held;
    f := With(3, Node(Of(420, 2, 10, 20), File([1, 2, 3], 77, {0, -1}), 2));
      assert 3 in f.nodes && -1 in f.nodes[3].body.held;
    var b := Dir(map[L(98) := 3], map[], 1, 4096); assert L(98) in b.names;
    b := Dir(map[L(98) := 3], map[L(98) := 67], 1, 4096); assert L(98) in b.names;
    b := Dir(map[L(98) := 3], map[L(98) := 2], 1, 4096); assert L(98) in b.names;
    b := Dir(map[L(98) := 3, L(101) := 7], map[L(98) := 5, L(101) := 5], 1, 4096);
      assert L(98) in b.names && L(101) in b.names;
    f := With(7, Node(N7().attr, Dir(map[], map[], 4, 6144), 0)); assert 7 in f.nodes;
    f := With(7, Node(N7().attr, Dir(map[], map[], 4, 549755817984), 0)); assert 7 in f.nodes;
  }

  // the names and folders of V, and of what differs from it in what is no directory
  lemma NamesOf()
    ensures forall i: uint64 {:trigger Names(V(), i)} ::
      Names(V(), i) == (if i == 3 then {(1, L(97)), (4, L(98))} else if i == 4 then {(1, L(100))} else if i == 5 then
      {(1, L(115))} else if i == 6 then {(1, L(112))} else if i == 7 then {(4, L(101))} else {})
    ensures forall i: uint64 {:trigger SubDirs(V(), i)} ::
      SubDirs(V(), i) == (if i == 1 then {4} else if i == 4 then {7} else {})
    ensures |Names(V(), 3)| == 2
  {
    Letters();
    forall i: uint64
      ensures Names(V(), i) == (if i == 3 then {(1, L(97)), (4, L(98))} else if i == 4 then {(1, L(100))}
      else if i == 5 then {(1, L(115))} else if i == 6 then {(1, L(112))} else if i == 7 then {(4, L(101))} else {}) { }
    forall i: uint64 ensures SubDirs(V(), i) == (if i == 1 then {4} else if i == 4 then {7} else {}) { }
    assert (1, L(97)) != (4, L(98));
  }
  lemma SameNames(i: uint64, n: Node)
    requires !n.body.Dir? && (i in V().nodes ==> !V().nodes[i].body.Dir?)
    ensures forall k: uint64 {:trigger Names(With(i, n), k)} :: Names(With(i, n), k) == Names(V(), k)
    ensures forall k: uint64 {:trigger SubDirs(With(i, n), k)} :: SubDirs(With(i, n), k) == SubDirs(V(), k)
  {
    forall k: uint64 ensures Names(With(i, n), k) == Names(V(), k) { }
    forall k: uint64 ensures SubDirs(With(i, n), k) == SubDirs(V(), k) { }
  }
  lemma Linked()
    ensures Counts(V()) && NoneKept(V()) && Sound(V())
  {
    NamesOf();
    ScenarioAttrs.Sane();
    assert Tree(V(), map[1 := 0, 4 := 1, 7 := 2]);
  }
  // "a" with two links too many, and with one too few
  lemma WronglyLinked(nlink: uint32)
    requires nlink == 4 || nlink == 1
    ensures !Counts(With(3, Node(Of(420, nlink, 10, 20), N3().body, N3().blocks)))
  {
    var n := Node(Of(420, nlink, 10, 20), N3().body, N3().blocks);
    NamesOf(); SameNames(3, n);
    var f := With(3, n); assert Names(f, 3) == Names(V(), 3) && 3 in f.nodes;
  }
  // "e" with too few; a file without a name
  lemma TooFewLinked()
    ensures !Counts(With(7, Node(Of(493, 1, 10, 20), N7().body, N7().blocks))) &&
      !Counts(With(8, Node(Of(420, 0, 10, 20), N3().body, N3().blocks)))
  {
    Letters();
    var f := With(7, Node(Of(493, 1, 10, 20), N7().body, N7().blocks)); assert SubDirs(f, 7) == {}; assert 7 in f.nodes;
    f := With(8, Node(Of(420, 0, 10, 20), N3().body, N3().blocks)); assert Names(f, 8) == {}; assert 8 in f.nodes;
  }
  // "a" with one link more is kept; a file without a name is, too
  lemma KeptLinked()
    ensures var f := With(3, Node(Of(420, 3, 10, 20), N3().body, N3().blocks)); Counts(f) && Kept(f, 3) && !NoneKept(f)
  {
    var n := Node(Of(420, 3, 10, 20), N3().body, N3().blocks);
    NamesOf(); Linked(); SameNames(3, n);
    var f := With(3, n); assert Names(f, 3) == Names(V(), 3) && 3 in f.nodes;
  }
  lemma NamelessLinked()
    ensures var f := With(8, Node(Of(420, 1, 10, 20), N3().body, N3().blocks)); Counts(f) && Kept(f, 8)
  {
    var n := Node(Of(420, 1, 10, 20), N3().body, N3().blocks);
    NamesOf(); Linked(); SameNames(8, n);
    var f := With(8, n); assert Names(f, 8) == Names(V(), 8) && 8 in f.nodes;
  }
}

// Stamps: the clock goes back to a time before the ctime of all files, (3, 0).
module ScenarioTimes {
  import opened Machine import opened ByteSpec import opened NfsState import opened NfsPerm import opened NfsCommon
  import opened NfsAttrs import opened NfsData import opened NfsMake
  import opened NfsUnlink import opened NfsRename import opened ScenarioV

  function Back(): Time { Time(2, 0) }
  function Next(): Time { Time(3, 1) }

  lemma Stamps()
    ensures Stamp(Now(), Time(3, 0)) == Now() && Stamp(Time(4, 1), Time(3, 2)) == Time(4, 1) &&
      Stamp(Time(3, 9), Time(3, 2)) == Time(3, 9)
    // it stands still, goes back a little, or far
    ensures Stamp(Time(3, 5), Time(3, 5)) == Time(3, 6) && Stamp(Time(3, 4), Time(3, 5)) == Time(3, 6) &&
      Stamp(Time(2, 9), Time(3, 5)) == Time(3, 6)
    ensures Stamp(Back(), Time(3, 999_999_999)) == Time(4, 0)
    ensures var t := Time(0xffff_ffff_ffff_ffff, 999_999_999); Stamp(Back(), t) == t
  { }

  lemma Files(post: FS, after: FS, w: Wcc, x: Wcc)
    ensures WriteOk(V(), post, Ann(), H(3), 1, [8], Back(), w) ==>
      3 in post.nodes && post.nodes[3].attr == Attr(420, 2, 10, 20, Time(1, 0), Next(), Next(), 0)
    ensures SetattrOk(V(), post, Ann(), H(3), Mode(384), Some(Time(3, 0)), Back(), w) ==>
      3 in post.nodes && post.nodes[3].attr == Attr(384, 2, 10, 20, Time(1, 0), Time(2, 0), Next(), 0)
    ensures SetattrOk(V(), post, Ann(), H(3), Sattr(None, None, None, Some(0), ServerTime, DontChange), None, Back(),
      w) ==> 3 in post.nodes && post.nodes[3].attr == Attr(420, 2, 10, 20, Next(), Next(), Next(), 0)
    // the guard does not fit any more after a WRITE at the very time of the last change
    ensures WriteOk(V(), post, Ann(), H(3), 1, [2], Time(3, 0), w) ==>
      SetattrErr(post, Ann(), H(3), Mode(384), Some(Time(3, 0)), NFS3ERR_NOT_SYNC) &&
        !SetattrOk(post, after, Ann(), H(3), Mode(384), Some(Time(3, 0)), Now(), x)
  { }

  // what is new has the clock's time, and its directory the stamp
  lemma Makes(post: FS, h: Handle, a: Fattr, w: Wcc)
    ensures CreateOk(V(), post, Eve(), H(1), L(120), 1, NoSattr(), 0, Back(), h, a, w) ==>
      a.atime == Back() && a.mtime == Back() && a.ctime == Back() && 1 in post.nodes &&
        post.nodes[1].attr.mtime == Next() && post.nodes[1].attr.ctime == Next()
    ensures CreateOk(V(), post, Ann(), H(1), L(97), 0, OnlySize(0), 0, Back(), h, a, w) ==>
      a.mtime == Next() && a.ctime == Next()
    ensures LinkOk(V(), post, Eve(), H(3), H(1), L(120), Back(), a, w) ==>
      a.mtime == Time(2, 0) && a.ctime == Next() && 1 in post.nodes && post.nodes[1].attr.ctime == Next()
  { Letters(); }

  lemma Takes(post: FS, v: Wcc, w: Wcc)
    ensures RemoveOk(V(), post, Ann(), H(1), L(97), Back(), w) ==>
      3 in post.nodes && post.nodes[3].attr.ctime == Next() && post.nodes[3].attr.mtime == Time(2, 0) &&
      post.nodes[1].attr.mtime == Next()
    ensures RenameOk(V(), post, Ann(), H(1), L(115), H(1), L(120), Back(), v, w) ==>
      5 in post.nodes && post.nodes[5].attr.ctime == Next() && post.nodes[1].attr.mtime == Next() &&
      post.nodes[1].attr.ctime == Next()
    ensures RenameOk(V(), post, Ann(), H(4), L(101), H(1), L(120), Back(), v, w) ==>
      7 in post.nodes && 4 in post.nodes && 1 in post.nodes &&
      post.nodes[7].attr.ctime == Next() && post.nodes[4].attr.ctime == Next() && post.nodes[1].attr.ctime == Next()
  { Letters(); }
}
