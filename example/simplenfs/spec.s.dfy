// SPECIFICATION: what the four procedures do, as a client sees it. There are 16 files, which are always there; each has
// up to 4096 bytes, and the time at which it was last changed.
//
// Each predicate says of one call: in state s, with these arguments, these results (st and what follows) and the state
// s' afterwards are right. Numbers of files are `f`, of bytes `off`, `count`, and `size`; times are nanoseconds since
// 1970.
include "../../verified/lib/bytespec.dfy"

module SimpleSpec {
  import opened Machine
  import opened ByteSpec

  const FILES: uint64 := 16
  const MAX: uint64 := 4096

  // of RFC 1813's nfsstat3
  const OK: uint32 := 0
  const FBIG: uint32 := 27
  const STALE: uint32 := 70

  datatype File = File(bytes: seq<byte>, mtime: uint64)
  type State = seq<File>

  predicate Possible(s: State) { |s| == FILES as int && forall f | 0 <= f < |s| :: |s[f].bytes| <= MAX as int }
  // the state of a new volume
  predicate New(s: State) { |s| == FILES as int && forall f | 0 <= f < |s| :: s[f] == File([], 0) }

  predicate Getattr(s: State, f: uint64, st: uint32, size: uint64, mtime: uint64)
    requires Possible(s)
  {
    if f >= FILES then st == STALE
    else st == OK && size as int == |s[f].bytes| && mtime == s[f].mtime
  }

  // A read ends at the end of the file.
  predicate Read(s: State, f: uint64, off: uint64, count: uint64, st: uint32, data: seq<byte>, eof: bool)
    requires Possible(s)
  {
    if f >= FILES then st == STALE
    else st == OK && data == Part(s[f].bytes, off as int, count as int) &&
      (eof <==> off as int + |data| >= |s[f].bytes|)
  }
  function Part(b: seq<byte>, off: nat, count: nat): seq<byte>
  { if off >= |b| then [] else if count >= |b| - off then b[off..] else b[off..off+count] }

  // A write lays all of data over the file, or, if it would be too large then, nothing. Between the old end and the
  // data are zeros.
  predicate Write(s: State, f: uint64, off: uint64, data: seq<byte>, now: uint64, st: uint32, s': State)
    requires Possible(s)
  {
    if f >= FILES then st == STALE && s' == s
    else if off as int + |data| > MAX as int then st == FBIG && s' == s
    else if data == [] then st == OK && s' == s
    else st == OK && s' == s[f as int := File(Laid(s[f].bytes, off as int, data), now)]
  }
  function Laid(b: seq<byte>, off: nat, data: seq<byte>): seq<byte>
  { Splice(if off + |data| > |b| then Resized(b, off + |data|) else b, off, data) }

  // Setting the size cuts the file off, or adds zeros.
  predicate Setattr(s: State, f: uint64, size: uint64, now: uint64, st: uint32, s': State)
    requires Possible(s)
  {
    if f >= FILES then st == STALE && s' == s
    else if size > MAX then st == FBIG && s' == s
    else st == OK && s' == s[f as int := File(Resized(s[f].bytes, size as int), now)]
  }
  function Resized(b: seq<byte>, size: nat): seq<byte> { if size <= |b| then b[..size] else b + Zeros(size - |b|) }
}
