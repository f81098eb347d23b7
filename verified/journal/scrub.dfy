// Scrubbing: what is at home is read from the device, whatever memory has of it, and looked at by the tree of
// codes, so that damage is found before anybody needs the block. A scrub changes nothing, and puts nothing into the
// cache.
//
// What is proved of it besides what reader.dfy and codes.dfy say: a block is called damaged only if it was not
// pending, and no block was written home since it was read (Verdict), so that what a device which does not
// lie returned is the newest contents. A page that is accepted is the newest one (CheckPage).
include "reader.dfy"
include "policy.dfy"

module JournalScrub {
  import opened Machine
  import opened ByteSlice
  import opened DiskS
  import opened CodeTreeSpec
  import opened LogModel
  import opened Groups
  import opened JournalM
  import opened JournalPolicy
  import opened JournalFacts
  import opened TreeModel
  import opened TreeOfCodes

  // What becomes of a block
  // it is what was written there; or it is going to be written, and what the device has does not matter
  const SGood: uint32 := 0
  const SAgain: uint32 := 1        // it may have been written since it was read
  const SDamaged: uint32 := 2      // it, or what has its code, is damaged
  const SInMemory: uint32 := 3     // it is damaged on the device, and in memory as it should be
  const SUnread: uint32 := 4       // the device cannot read it
  const SNotOurs: uint32 := 5      // another has opened the volume, and may have written it

  // [L] a ticket for reads of the device
  method Ticket(j: Journal) returns (t: uint64)
    requires j.mutex.Inside()
    ensures t == j.trims
  { t := j.trims; }
  // [L] is block a going to be written home?
  method IsPending(j: Journal, a: uint64) returns (is: bool)
    requires j.Inv() && j.mutex.Inside()
    ensures is == j.Pending(a as int)
  {
    reveal j.Inv();
    var b := j.running.Get(a);
    if b == null { b := j.frozen.Get(a); }
    if b == null { b := j.frozenDirect.Get(a); }
    if b == null { b := j.logged.Get(a); }
    if b == null { b := j.installing.Get(a); }
    is := b != null;
  }
  // a block that is not pending has its newest contents at home
  lemma NewestAtHome(j: Journal, a: int)
    requires j.Inv() && j.home as int <= a < j.size as int && !j.Pending(a)
    ensures a in j.base && a in j.Cur() && j.base[a] == j.Cur()[a]
  {
    reveal j.Inv();
    assert j.groups == j.groups[..j.installCount] + j.groups[j.installCount..];
    MergeCat(j.groups[..j.installCount], j.groups[j.installCount..]);
  }
  // [L] Block a was read with ticket t and is not what it should be, as block bad is damaged; or it could not be read
  // (bad == a). What does that mean?
  method Verdict(j: Journal, a: uint64, t: uint64, bad: uint64) returns (st: uint32)
    requires j.Inv() && j.mutex.Inside() && j.home <= a < j.size
    ensures st == SGood || st == SAgain || st == SDamaged || st == SInMemory
    ensures st == SGood <==> j.Pending(a as int)
    ensures st == SAgain <==> !j.Pending(a as int) && t != j.trims
    ensures st == SInMemory ==> bad == a && a as int in j.cache.m
    ensures st == SDamaged || st == SInMemory ==> a as int in j.base && a as int in j.Cur() &&
      j.base[a as int] == j.Cur()[a as int]
  {
    var pending := IsPending(j, a);
    if pending { return SGood; }
    if t != j.trims { return SAgain; }
    NewestAtHome(j, a as int);
    var b := j.cache.Get(a);
    st := if b != null && bad == a then SInMemory else SDamaged;
  }
  // [L] a page of the tree was read with ticket t, and is not what it should be; mem: it is in memory
  method VerdictPage(j: Journal, t: uint64, mem: bool) returns (st: uint32)
    requires j.mutex.Inside()
    ensures st == if t != j.trims then SAgain else if mem then SInMemory else SDamaged
  { st := if t != j.trims then SAgain else if mem then SInMemory else SDamaged; }
  // [L] notes that block bad is damaged, if that is the verdict; ours: nobody else opened the volume; unread: the
  // device cannot read it
  method Tell(j: Journal, verdict: uint32, ours: bool, unread: bool, bad: uint64) returns (st: uint32)
    requires j.mutex.Inside()
    ensures st == if verdict == SGood || verdict == SAgain then verdict else if !ours then SNotOurs
      else if unread then SUnread else verdict
  {
    st := verdict;
    if st == SGood || st == SAgain { return; }
    if !ours { return SNotOurs; }
    if unread { return SUnread; }
    if st == SDamaged { j.notes.Damaged(bad); }
  }
  // [F] Does the device have page p of the tree? It is read, also if it is in memory (mem), but not if it was never
  // written (blank). If not, block bad is damaged: a place of it, or of a page above it; or what was read was
  // overtaken.
  method CheckPage(j: Journal, p: uint64) returns (ok: bool, b: Blk, mem: bool, blank: bool, bad: uint64)
    requires j.Inv() && j.mutex.settled != null && p < j.tree.pageCount
    modifies {}
    ensures j.KeepsLogger() && j.KeepsInstaller()
    ensures ok ==> |j.tree.pages.vs| > 0 && p as int < |j.tree.Now()| && b.v == j.tree.Now()[p]
  {
    reveal j.Inv();
    ok, b, mem, blank, bad := OnDevice(j.tree, p);
    bad := j.tree.first + 2 * bad;
  }
  method OnDevice(t: Tree, p: uint64) returns (ok: bool, b: Blk, mem: bool, blank: bool, bad: uint64)
    requires t.Fits() && p < t.pageCount
    ensures bad < t.pageCount
    ensures ok ==> |t.pages.vs| > 0 && p as int < |t.Now()| && b.v == t.Now()[p]
  {
    t.pages.Trees();
    var version, r0, r1 := t.pages.Root();
    var place; var c0, c1 := r0, r1;
    mem := false; blank := false; bad := p;
    if p + 1 < t.pageCount {
      var q := Parent(t, p);
      ok, b, place, bad := Page(t, q, version, r0, r1);
      if !ok { return; }
      c0, c1 := GetCode(b, (t.homeCount + p) % 255);
      assert CV(c0, c1) == CodeIn(t.seal.t, t.Now(), t.homeCount as int + p as int);
    }
    bad := p; blank := c0 == 0 && c1 == 0;
    ok, b, place := Load(t, p, c0, c1, t.Now()[p]);
    if ok { VouchOne(t.seal.key, t.homeCount as int + p as int, CV(c0, c1), b.v, t.Now()[p]); return; }
    var c := t.pages.Get(version, p);
    mem := c != null;
  }
}
