// What once.s.dfy says of calls that come again and of those that only look so: concrete cases.
include "once.s.dfy"
include "ctime.dfy"
module AgainFacts {
  import opened Machine
  import opened NfsState
  import opened NfsOnce
  import C = NfsCommon

  // Directory 1 with the entries `names`; file 5 is the 3rd use of its number and has ctime t.
  function Vol(names: map<Name, uint64>, t: Time): FS
  {
    FS(map[1 := Node(Attr(493, 2, 0, 0, t, t, t, 0), Dir(names, map[], 1, 4096), 0),
      5 := Node(Attr(493, 2, 0, 0, t, t, t, 0), Dir(map[], map[], 1, 4096), 0)],
      map[1 := 1, 5 := 3], map[])
  }
  const d: Name := [100]
  const e: Name := [101]
  const root: Handle := Handle(1, 1)
  const dir: Handle := Handle(5, 3)
  const key: Key := Key(1, 2, 3, 4)
  function At(s: uint64): Time { Time(s, 7) }
  // a record of a call that came at second 100
  function Rec(h: Handle): Record { Record(key, 100, h, At(100)) }

  // MKDIR d came, the reply was lost, and it comes again: answered from the record.
  lemma MkdirAgain()
    ensures Again(map[9 := Rec(dir)], 9, key, 90, Vol(map[d := 5], At(100)), Make(root, d))
  { assert Vol(map[d := 5], At(100)).gens[5] == 3; }
  // MKDIR d, RMDIR d, and MKDIR d with the same bytes: d is not there, so the call is a new one.
  lemma NotGone()
    ensures !Again(map[9 := Rec(dir)], 9, key, 90, Vol(map[], At(100)), Make(root, d))
  { }
  // The same when d has been made anew by another call since: it is another file, even if it has the inode number.
  lemma NotAnother()
    ensures !Again(map[9 := Rec(Handle(5, 2))], 9, key, 90, Vol(map[d := 5], At(100)), Make(root, d))
  { }
  // and when something was done with it, which gave it a later ctime
  lemma NotTouched()
    ensures !Again(map[9 := Rec(dir)], 9, key, 90, Vol(map[d := 5], At(101)), Make(root, d))
  { }
  // another key, another place, or too old
  lemma NotItsRecord(other: Key, i: int, since: uint64, f: FS, c: Call)
    requires other != key || i != 9 || since > 100
    ensures !Again(map[9 := Rec(dir)], i, other, since, f, c)
  { }
  lemma NotInItsPlace()
    ensures !Again(map[8 := Record(Key(4, 3, 2, 1), 100, dir, At(100)), 9 := Rec(dir)], 8, key, 90,
      Vol(map[d := 5], At(100)), Make(root, d))
  { }
  // RMDIR d comes again: d is gone. But not when there is a d now, which somebody else has made: that is not taken away
  // unasked, nor the call called done.
  lemma RmdirAgain()
    ensures Again(map[9 := Rec(Handle(0, 0))], 9, key, 90, Vol(map[], At(100)), Unlink(root, d))
    ensures !Again(map[9 := Rec(Handle(0, 0))], 9, key, 90, Vol(map[d := 5], At(100)), Unlink(root, d))
  { }
  // RENAME d to e comes again: e is what d was, and d is gone, or another name of it. Else it is a new call.
  lemma RenameAgain()
    ensures var rs, c := map[9 := Rec(dir)], Rename(root, d, root, e);
      Again(rs, 9, key, 90, Vol(map[e := 5], At(103)), c) &&
        Again(rs, 9, key, 90, Vol(map[d := 5, e := 5], At(103)), c) &&
      !Again(rs, 9, key, 90, Vol(map[d := 1, e := 5], At(103)), c) &&
        !Again(rs, 9, key, 90, Vol(map[d := 5], At(103)), c)
  { assert Vol(map[e := 5], At(103)).gens[5] == 3; }
  // LINK of the file as d comes again; not if d is another file, or another use of its inode
  lemma LinkAgain()
    ensures Again(map[9 := Rec(dir)], 9, key, 90, Vol(map[d := 5], At(103)), Link(dir, root, d))
    ensures !Again(map[9 := Rec(dir)], 9, key, 90, Vol(map[d := 1], At(103)), Link(dir, root, d))
    ensures !Again(map[9 := Rec(root)], 9, key, 90, Vol(map[d := 5], At(103)), Link(dir, root, d))
    ensures !Again(map[9 := Rec(Handle(5, 2))], 9, key, 90, Vol(map[d := 5], At(103)), Link(Handle(5, 2), root, d))
  { assert Vol(map[d := 5], At(103)).gens[5] == 3; }
  // SETATTR comes again: nothing of the file was changed since
  lemma SetAgain()
    ensures Again(map[9 := Rec(dir)], 9, key, 90, Vol(map[d := 5], At(100)), Set(dir))
    ensures !Again(map[9 := Rec(dir)], 9, key, 90, Vol(map[d := 5], At(101)), Set(dir))
  { assert Vol(map[d := 5], At(100)).gens[5] == 3; }

  // Done once, a call comes again while what it did stands and its record is not too old; nobody else's record is lost
  // by that but the one whose place it has.
  lemma KeptComesAgain(pre: Replies, post: Replies, i: int, k: Key, at: uint64, since: uint64, f: FS, c: Call)
    requires NfsOnce.Kept(pre, post, i, k, at, f, c) && since <= at
    ensures Again(post, i, k, since, f, c) && forall j :: j in pre && j != i ==> j in post && post[j] == pre[j]
  { }
}
