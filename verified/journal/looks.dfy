// Looks at the header, by which a server sees that another one has taken the volume: whoever opens it puts a new mark
// there. Logger and installer look before they write what counts whoever wrote it (Guard in ../trusted/disk.s.dfy), and
// again when the last look began longer ago than the bound.
include "facts.dfy"

module JournalLooks {
  import opened Machine
  import opened ByteSlice
  import opened DiskS
  import opened Clocks
  import opened CodeTreeSpec
  import opened RecordSpec
  import opened LogModel
  import opened LogSteps
  import opened Groups
  import opened JournalM
  import opened JournalFacts

  const Bound: uint64 := 1_000_000_000 // nanoseconds: LookBound

  // [F] Does the header bear our epoch still? Who opens the volume puts another there. If so,
  // the device is taken to have failed: nothing is acknowledged any more. If the header is none, its
  // copy tells. (What cannot be read tells nothing: writes and barriers fail of their own.)
  method HeaderIsOurs(j: Journal) returns (ok: bool)
    requires j.Inv() && j.mutex.settled != null
    modifies j.disk`bad, j.mutex`settled
    ensures j.Inv() && j.KeepsLogger() && j.KeepsInstaller() && j.Mono()
    ensures ok ==> j.disk.bad == old(j.disk.bad)
    ensures !ok ==> j.disk.bad
    ensures Erred(j.disk) || exists b :: old(IsMark(j, b)) && (ok <==> old(Bears(j, b)))
  {
    ok := BearsOurs(j, null);
    if !ok { Halt(j); }
  }
  // [F] the logger's look; it notes when it began
  method LogLook(j: Journal) returns (ok: bool)
    requires j.Inv() && j.mutex.settled == j.logger
    modifies j.logger`lookedAt, j.logger`looked, j.logger`reading, j.disk`bad, j.mutex`settled
    ensures j.Inv() && j.KeepsInstaller() && j.Mono()
    ensures ok ==> j.logger.reading == null       // the next write needs one that is taken after this
    ensures if ok then j.disk.bad == old(j.disk.bad) else j.disk.bad
    ensures Erred(j.disk) || exists b :: old(IsMark(j, b)) && (ok <==> old(Bears(j, b)))
  {
    var t; ghost var s;
    t, s := j.clock.Now();
    ok := BearsOurs(j, s);
    if !ok { Halt(j); return; }
    reveal j.Inv(); reveal j.LoggerInv(); reveal j.LooksInv();
    j.logger.lookedAt := t; j.logger.looked := s; j.logger.reading := null;
  }
  // [F] the installer's
  method InstLook(j: Journal) returns (ok: bool)
    requires j.Inv() && j.mutex.settled == j.installer
    modifies j.installer`lookedAt, j.installer`looked, j.installer`reading, j.disk`bad, j.mutex`settled
    ensures j.Inv() && j.KeepsLogger() && j.Mono()
    ensures ok ==> j.installer.reading == null       // the next write needs one that is taken after this
    ensures if ok then j.disk.bad == old(j.disk.bad) else j.disk.bad
    ensures Erred(j.disk) || exists b :: old(IsMark(j, b)) && (ok <==> old(Bears(j, b)))
  {
    var t; ghost var s;
    t, s := j.clock.Now();
    ok := BearsOurs(j, s);
    if !ok { Halt(j); return; }
    reveal j.Inv(); reveal j.InstallerInv(); reveal j.LooksInv();
    j.installer.lookedAt := t; j.installer.looked := s; j.installer.reading := null;
  }
  // [F] The clock is read for the logger's next write. late: its last look is too old for that.
  method LogReading(j: Journal) returns (late: bool)
    requires j.Inv() && j.mutex.settled == j.logger
    modifies j.logger`reading, j.mutex`settled
    ensures j.Inv() && j.KeepsInstaller() && j.Mono()
    ensures j.logger.reading != null && fresh(j.logger.reading)
    ensures late || j.InTime(j.logger.looked, j.logger.reading)
  {
    ghost var now;
    reveal j.Inv(); reveal j.LooksInv();
    late, now := TooLate(j, j.logger.lookedAt, j.logger.looked);
    reveal j.LoggerInv();
    j.logger.reading := now;
  }
  // [F] for the installer's
  method InstReading(j: Journal) returns (late: bool)
    requires j.Inv() && j.mutex.settled == j.installer
    modifies j.installer`reading, j.mutex`settled
    ensures j.Inv() && j.KeepsLogger() && j.Mono()
    ensures j.installer.reading != null && fresh(j.installer.reading)
    ensures late || j.InTime(j.installer.looked, j.installer.reading)
  {
    ghost var now;
    reveal j.Inv(); reveal j.LooksInv();
    late, now := TooLate(j, j.installer.lookedAt, j.installer.looked);
    reveal j.InstallerInv();
    j.installer.reading := now;
  }
  // [F] is it too late for a write after the look before which the clock said at?
  method TooLate(j: Journal, at: uint64, ghost since: Reading?) returns (late: bool, ghost now: Reading)
    requires j.Inv() && j.LastLook(since, at)
    ensures fresh(now) && (late || j.InTime(since, now))
  {
    var t;
    t, now := j.clock.Now();
    late := true;
    if at > 0 {
      assert since.at <= now.at;
      late := t - at > Bound;
    }
    reveal j.InTime();
  }
  // b is what the device may show as the mark of who has opened the volume: the header, or the copy of one that is none
  predicate IsMark(j: Journal, b: BV) reads j, j.disk, j.seal {
    j.headerAt as int < |j.disk.poss| && 0 < j.home as int <= |j.disk.poss| &&
    if IsHeader(j.seal.key, b) && b in j.disk.poss[j.headerAt] then true
    else b in j.disk.poss[j.home - 1] && exists x :: x in j.disk.poss[j.headerAt] && !IsHeader(j.seal.key, x)
  }
  // it has the epoch of this journal
  predicate Bears(j: Journal, b: BV) reads j, j.seal
  { DecHdr(j.seal.key, b).Hdr? && DecHdr(j.seal.key, b).ep == j.seal.ep }
  // what the header says; since: a reading of the clock before this
  method BearsOurs(j: Journal, ghost since: Reading?) returns (ok: bool)
    requires j.Inv()
    modifies {}
    ensures Erred(j.disk) || exists b :: IsMark(j, b) && (ok <==> Bears(j, b))
    ensures ok && since != null ==> Looked(j.disk, GuardOf(j.layout), since)
  {
    reveal j.Inv();
    var io, b; ghost var honest;
    io, b, honest := j.disk.Read(j.headerAt);
    var is := false;
    if io { var q; is, q := j.seal.DecHdrM(b); }
    assert Erred(j.disk) || (b.v in j.disk.poss[j.headerAt] && is == IsHeader(j.seal.key, b.v));
    ghost var header := b.v;
    if !is { io, b, honest := j.disk.Read(j.home - 1); }
    ok := true;
    if io { ok := j.seal.Ours(b); }
    assert Erred(j.disk) || (IsMark(j, b.v) && (ok <==> Bears(j, b.v)));
    if since != null {
      assert Returned(j.disk, j.headerAt as int, since, header) || Refused(j.disk, j.headerAt as int, since);
      assert !is ==> if io then Returned(j.disk, j.home as int - 1, since, b.v)
        else Refused(j.disk, j.home as int - 1, since);
    }
  }
  // ... as if the device had failed
  method Halt(j: Journal)
    requires j.Inv()
    modifies j.disk`bad
    ensures j.Inv() && j.KeepsLogger() && j.KeepsInstaller() && j.Mono() && j.disk.bad
  {
    reveal j.Inv();
    j.disk.Stop();
    LogFrame(j); InsFrame(j); PagesFrame(j);
  }
}
