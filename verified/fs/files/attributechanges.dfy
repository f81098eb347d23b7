// What the steps of the procedures do to the attributes of all inodes, as
// functions over plain values. The contracts of the methods say that they do
// exactly this; what it means to a client of the file system is shown elsewhere.
include "../format/inode.dfy"
include "../spec/nfs3.s.dfy"
module AttributeChanges {
  import opened Machine
  import opened ByteSlice
  import opened InodeFormat
  import N = NfsState

  type Metas = map<uint64, Meta>

  // the attributes a client sees, and an inode with others
  function MetaAttr(m: Meta): N.Attr
  { N.Attr(m.mode, m.nlink, m.uid, m.gid, N.Time(m.atime, m.atimens), N.Time(m.mtime, m.mtimens),
    N.Time(m.ctime, m.ctimens), m.marks) }
  function WithAttr(m: Meta, a: N.Attr): Meta
  {
    Meta(m.ty, a.mode, a.nlink, a.uid, a.gid, m.major, m.minor, m.flags, m.size, m.gen, a.atime.seconds,
      a.mtime.seconds, a.ctime.seconds,
      a.atime.nanoseconds, a.mtime.nanoseconds, a.ctime.nanoseconds,
      m.verf, m.parent, m.next, m.shrink, m.nent, m.used, a.flags)
  }

  // the time of a change made when the clock showed s, ns
  function StampOf(m: Meta, s: uint64, ns: uint32): N.Time { N.Stamp(N.Time(s, ns), MetaAttr(m).ctime) }
  function Marked(m: Meta, s: uint64, ns: uint32): Meta { var t := StampOf(m, s, ns);
    WithCtime(m, t.seconds, t.nanoseconds) }
  function Touched(m: Meta, s: uint64, ns: uint32): Meta { var t := StampOf(m, s, ns);
    WithTouch(m, t.seconds, t.nanoseconds) }
  function Relinked(m: Meta, nl: uint32, s: uint64, ns: uint32): Meta { Marked(WithNlink(m, nl), s, ns) }
  method Stamp(ip: Bytes, s: uint64, ns: uint32) returns (ts: uint64, tns: uint32)
    requires |ip.data| == 256
    ensures N.Time(ts, tns) == StampOf(MetaOf(ip.data), s, ns)
  {
    ts, tns := s, ns;
    var cs, cns := GetCtime(ip);
    if cs < s || (cs == s && cns < ns) { return; }
    if cns < 999_999_999 { ts, tns := cs, cns + 1; }
    else if cs < 0xffff_ffff_ffff_ffff { ts, tns := cs + 1, 0; }
    else { ts, tns := cs, cns; }
  }

  // what a reply says of the room that the file takes
  function UsedOf(m: Meta): int
  { var all := (m.size as int + 4095) / 4096; 4096 * (if m.used as int < all then m.used as int else all) }
  method Used(ip: Bytes) returns (x: uint64)
    requires |ip.data| == 256
    ensures MetaOf(ip.data).size <= 549755813888 ==> x as int == UsedOf(MetaOf(ip.data))
  {
    var size := GetSize(ip);
    var n := GetUsed(ip);
    if 549755813888 < size { return 0; }     // never so in a sound volume
    var all := (size + 4095) / 4096;
    if all < n { n := all; }
    x := 4096 * n;
  }

  // what is left to be freed (Meta.shrink) after a file with these attributes was cut to sz
  function CutShrink(m: Meta, sz: uint64): uint64
  {
    if sz < m.size && m.shrink < m.size && (m.shrink != 0 ||
      (sz as int + 4095) / 4096 != (m.size as int + 4095) / 4096) then m.size else m.shrink
  }
  // is what was cut off it, if anything waits to be freed, no more than n blocks?
  predicate Little(m: Meta, n: uint64) { m.shrink as int <= m.size as int + 4096 * n as int }
  // may the file have size sz? (Not too large, and it does not grow before what was cut off is freed.)
  predicate CanSize(m: Meta, sz: uint64) { sz <= 549755813888 && (sz <= m.size || m.shrink == 0) }
  function Resized(m: Meta, sz: uint64): Meta { WithSizeShrink(m, sz, CutShrink(m, sz)) }

  // ino put at the head of the orphan list (the `next` of inode 2), unless it is on it
  function Orphaned(ms: Metas, ino: uint64): Metas
    requires ino in ms && 2 in ms
  {
    if ms[ino].flags as int % 2 == 1 || ino == 2 then ms
    else var m, h := ms[ino], ms[2]; ms[ino := WithList(m, m.flags + 1, h.next)][2 := WithList(h, h.flags, ino)]
  }

  // After a file was cut: sh is left to be freed; done when nothing is, else the file is on the orphan list.
  function Released(ms: Metas, ino: uint64, sh: Leftover, done: bool): Metas
    requires ino in ms && 2 in ms
  { var r := ms[ino := WithLeftover(ms[ino], sh)]; if done then r else Orphaned(r, ino) }

  // ino set to size sz: sh and done as for Released
  function ResizedAll(ms: Metas, ino: uint64, sz: uint64, sh: Leftover, done: bool): Metas
    requires ino in ms && 2 in ms
  { var r := ms[ino := Resized(ms[ino], sz)]; if sz < ms[ino].size then Released(r, ino, sh, done) else r }

  // A link to ino goes. The last one (of a directory: any) takes the bytes with it, and the
  // inode is free again, or it waits on the orphan list until the blocks are freed.
  predicate LastLink(m: Meta) { m.ty == 2 || m.nlink <= 1 }
  function Unlinked(m: Meta, s: uint64, ns: uint32): Meta { Resized(Relinked(m, 0, s, ns), 0) }
  function Dropped(ms: Metas, ino: uint64, s: uint64, ns: uint32, sh: Leftover, freed: bool): Metas
    requires ino in ms && 2 in ms
  {
    var m := ms[ino];
    if !LastLink(m) then ms[ino := Relinked(m, m.nlink - 1, s, ns)]
    else if freed then ms[ino := NewMeta(0, m.gen)]
    else Orphaned(ms[ino := WithLeftover(Unlinked(m, s, ns), sh)], ino)
  }

  // h, the first file of the orphan list, leaves it, and is free if it has no links
  function Unlisted(ms: Metas, h: uint64): Metas
    requires 2 in ms && h in ms && ms[h].flags as int % 2 == 1
  {
    var r := ms[h := WithList(ms[h], ms[h].flags - 1, 0)][2 := WithList(ms[2], ms[2].flags, ms[h].next)];
    if ms[h].nlink == 0 then r[h := NewMeta(0, ms[h].gen)] else r
  }

  // One step of the background: sh is what is left to be freed of the first file of the orphan
  // list; when that is nothing it leaves the list, and is free if it has no links.
  function Stepped(ms: Metas, sh: Leftover): Metas
    requires 2 in ms && ms[2].next in ms
  {
    var h := ms[2].next;
    var m := ms[h];
    if sh.shrink != 0 || m.flags as int % 2 == 0 then ms[h := WithLeftover(m, sh)]
    else
      var r := ms[h := WithLeftover(WithList(m, m.flags - 1, 0), sh)][2 := WithList(ms[2], ms[2].flags, m.next)];
      if m.nlink == 0 then r[h := NewMeta(0, m.gen)] else r
  }
}
