include "attrs.dfy"
// CREATE, MKDIR, SYMLINK and MKNOD.
module CreateOpM {
  import opened Machine
  import opened ByteSlice
  import opened TxnS
  import opened GeometryM
  import opened InodeM
  import opened ByteM
  import opened DirFsM
  import opened AccessM
  import opened OpM
  import opened AttrOpM

  const UNCHECKED: uint32 := 0
  const GUARDED: uint32 := 1
  const EXCLUSIVE: uint32 := 2

  // Can name be made in directory dino? found: it is there already (ino), and keep
  // wants to use what is there; else that is EXIST. bad is an error in the arguments.
  // hint is for Enter.
  method Vacant(txn: Txn, d: DirFs, c: Cred, dino: uint64, dgen: uint64, name: Bytes, bad: uint32, a: Sattr, keep: bool)
    returns (st: uint32, dir: Bytes?, found: bool, ino: uint64, hint: uint64)
    requires d.Valid() && txn.jrnl == d.fs.jrnl
    ensures dir != null ==> fresh(dir)
    ensures st == 0 ==> OkIno(d.fs.geo, dino) && dino in d.dirs && OkName(name.data) && bad == 0
    ensures st == 0 ==> dir != null && |dir.data| == 256 && (found <==> name.data in d.dirs[dino])
    ensures st == 0 && found ==> keep && d.dirs[dino][name.data] == ino && OkIno(d.fs.geo, ino)
    ensures st == 0 && a.hasSize ==> a.size as int <= MAXFILE as int
  {
    found, ino, hint := false, 0, 0;
    var dots: uint32;
    st, dir, dots := OpenDir(txn, d, dino, dgen, name, true);
    if st != 0 { return; }
    if dots != 0 { st := EXIST; return; }
    if bad != 0 { st := bad; return; }
    st := ArgStatus(a);
    if st != 0 { return; }
    var x := May(c, dir, MAYX);
    if !x { st := ACCES; return; }
    found, ino, hint := d.LookupHint(txn, dino, name, true);
    if found && keep { return; }
    var w := May(c, dir, MAYW);
    if !w { st := ACCES; return; }
    if found { st := EXIST; }
  }

  // A new inode of type ty with its first attributes; mode is what it has unless a says otherwise.
  method NewNode(txn: Txn, d: DirFs, c: Cred, dino: uint64, dir: Bytes, ty: uint32, a: Sattr, mode: uint32, s: uint64, ns: uint32)
    returns (st: uint32, ino: uint64)
    modifies d, d.fs, d.fs.fs, d.fs.fs.fs, d.fs.jrnl
    requires d.Valid() && txn.jrnl == d.fs.jrnl && ty != 0 && |dir.data| == 256
    ensures st == 0 ==> d.Valid() && OkIno(d.fs.geo, ino) && 2 < ino && ino !in old(d.dirs)
    ensures st == 0 ==> d.dirs == (if ty == DIR then old(d.dirs)[ino := map[]] else old(d.dirs))
    ensures st == 0 ==> d.fs.files == old(d.fs.files)[ino := []] && ino in d.fs.metas && d.fs.metas[ino].ty == ty
    ensures st == 0 ==> ino in old(d.fs.metas) && old(d.fs.metas)[ino].ty == 0
  {
    var ok: bool;
    ok, ino := d.AllocInode(txn, dino, ty);
    if !ok { st := NOSPC; return; }
    var ip := d.fs.GetInode(txn, ino, true);
    InitAttr(c, dir, ip, mode, s, ns);
    st := MaySetattr(c, ip, a);
    if st != 0 { return; }
    Apply(c, ip, a, s, ns);
    if ty == DIR {
      InheritSetgid(dir, ip);
      SetParent(ip, dino);
    }
    d.PutInode(txn, ino, ip);
  }

  // Enter a new inode into its directory, and read both back for the reply.
  method Enter(txn: Txn, d: DirFs, dino: uint64, name: Bytes, hint: uint64, ino: uint64, sub: bool, s: uint64, ns: uint32)
    returns (st: uint32, node: Bytes, after: Bytes)
    modifies d, d.fs, d.fs.fs, d.fs.fs.fs, d.fs.jrnl
    requires d.Valid() && txn.jrnl == d.fs.jrnl && OkIno(d.fs.geo, dino) && OkIno(d.fs.geo, ino)
    requires dino in d.dirs && OkName(name.data) && name.data !in d.dirs[dino] && ino != dino
    ensures fresh(node) && fresh(after)
    ensures st == 0 ==> d.Valid() && dino in old(d.dirs) && d.dirs == old(d.dirs)[dino := old(d.dirs)[dino][name.data := ino]]
    ensures st == 0 ==> dino in d.fs.files && d.fs.files == old(d.fs.files)[dino := d.fs.files[dino]]
    ensures st == 0 ==> |node.data| == 256 && ino in d.fs.metas && M(node.data) == d.fs.metas[ino]
    ensures st == 0 ==> |after.data| == 256 && dino in d.fs.metas && M(after.data) == d.fs.metas[dino]
  {
    var ok := d.InsertAt(txn, dino, name, ino, hint);
    node := NewBytes(0);
    after := node;
    if !ok { st := NOSPC; return; }
    st := 0;
    if sub {
      st := AddLink(txn, d, dino, true, s, ns);
      if st != 0 { return; }
    }
    after := Touch(txn, d, dino, s, ns);
    node := d.fs.GetInode(txn, ino, false);
  }
  // how: createmode3; verf is for EXCLUSIVE. An existing file counts as made when
  // UNCHECKED (its size is set, nothing else), or when EXCLUSIVE made it with this verf.
  // ino is the file also with SHRINKFIRST. later: the background has work. With EXCLUSIVE, a is empty.
  method Create(txn: Txn, d: DirFs, c: Cred, dino: uint64, dgen: uint64, name: Bytes, how: uint32, a: Sattr, verf: uint64, s: uint64, ns: uint32)
    returns (st: uint32, ino: uint64, node: Bytes?, before: Bytes?, after: Bytes?, later: bool)
    modifies d, d.fs, d.fs.fs, d.fs.fs.fs, d.fs.jrnl
    requires d.Valid() && txn.jrnl == d.fs.jrnl
    ensures st == 0 ==> d.Valid() && dino in old(d.dirs) && node != null
    ensures st == 0 && name.data in old(d.dirs)[dino] ==> how != GUARDED && ino == old(d.dirs)[dino][name.data] && d.dirs == old(d.dirs)
    ensures st == 0 && name.data !in old(d.dirs)[dino] ==> d.dirs == old(d.dirs)[dino := old(d.dirs)[dino][name.data := ino]]
  {
    node, after, later := null, null, false;
    var found: bool;
    var hint: uint64;
    st, before, found, ino, hint := Vacant(txn, d, c, dino, dgen, name, if how > EXCLUSIVE then INVAL else 0, a, how != GUARDED);
    if st != 0 { return; }
    if found {
      var p: Bytes;
      st, p, later := Existing(txn, d, c, ino, how, a, verf, s, ns);
      if st == 0 { node, after := p, before; }
      return;
    }
    st, ino := NewNode(txn, d, c, dino, before, REG, a, if how == EXCLUSIVE then 0 else 420, s, ns);
    if st != 0 { return; }
    if how == EXCLUSIVE {
      var ip := d.fs.GetInode(txn, ino, true);
      SetVerf(ip, verf);
      d.PutInode(txn, ino, ip);
    } else if a.hasSize {
      st, later := Resize(txn, d, ino, a.size);
      if st != 0 { return; }
    }
    st, node, after := Enter(txn, d, dino, name, hint, ino, false, s, ns);
  }

  // CREATE of a name that is there
  method Existing(txn: Txn, d: DirFs, c: Cred, ino: uint64, how: uint32, a: Sattr, verf: uint64, s: uint64, ns: uint32)
    returns (st: uint32, node: Bytes, later: bool)
    modifies d, d.fs, d.fs.fs, d.fs.fs.fs, d.fs.jrnl
    requires d.Valid() && txn.jrnl == d.fs.jrnl && OkIno(d.fs.geo, ino)
    ensures fresh(node)
    ensures st == 0 ==> d.Valid() && d.dirs == old(d.dirs) && ino !in d.dirs
    ensures st == 0 ==> |node.data| == 256 && ino in d.fs.metas && M(node.data) == d.fs.metas[ino]
  {
    later := false;
    st, node := OpenEntry(txn, d, ino, true);
    if st != 0 { return; }
    var ty := GetTy(node);
    if ty != REG { st := EXIST; return; }
    if how == EXCLUSIVE {
      var v := GetVerf(node);
      if v != verf || v == 0 { st := EXIST; }
      return;
    }
    if !a.hasSize { return; }
    var w := MayData(c, node, MAYW);
    if !w { st := ACCES; return; }
    st, later := Resize(txn, d, ino, a.size);
    if st != 0 { return; }
    node := d.fs.GetInode(txn, ino, true);
    SetMtime(node, s, ns);
    SetCtime(node, s, ns);
    if c.uid != 0 {
      var mode := GetMode(node);
      InodeM.SetMode(node, KillPriv(mode));
    }
    d.PutInode(txn, ino, node);
  }

  method Mkdir(txn: Txn, d: DirFs, c: Cred, dino: uint64, dgen: uint64, name: Bytes, a: Sattr, s: uint64, ns: uint32)
    returns (st: uint32, ino: uint64, node: Bytes?, before: Bytes?, after: Bytes?)
    modifies d, d.fs, d.fs.fs, d.fs.fs.fs, d.fs.jrnl
    requires d.Valid() && txn.jrnl == d.fs.jrnl
    ensures st == 0 ==> d.Valid() && dino in old(d.dirs) && ino !in old(d.dirs) && name.data !in old(d.dirs)[dino] && node != null
    ensures st == 0 ==> d.dirs == old(d.dirs)[ino := map[]][dino := old(d.dirs)[dino][name.data := ino]]
  {
    node, after, ino := null, null, 0;
    var found: bool;
    var x: uint64;
    var hint: uint64;
    st, before, found, x, hint := Vacant(txn, d, c, dino, dgen, name, 0, a, false);
    if st != 0 { return; }
    st, ino := NewNode(txn, d, c, dino, before, DIR, a, 493, s, ns);
    if st != 0 { return; }
    st, node, after := Enter(txn, d, dino, name, hint, ino, true, s, ns);
  }

  // the target is stored as the link's data, 1 to 4095 bytes; a has no mode (links have 0777) and no size
  method Symlink(txn: Txn, d: DirFs, c: Cred, dino: uint64, dgen: uint64, name: Bytes, a: Sattr, target: Bytes, s: uint64, ns: uint32)
    returns (st: uint32, ino: uint64, node: Bytes?, before: Bytes?, after: Bytes?)
    modifies d, d.fs, d.fs.fs, d.fs.fs.fs, d.fs.jrnl
    requires d.Valid() && txn.jrnl == d.fs.jrnl
    ensures st == 0 ==> d.Valid() && dino in old(d.dirs) && ino !in old(d.dirs) && name.data !in old(d.dirs)[dino] && node != null
    ensures st == 0 ==> d.dirs == old(d.dirs)[dino := old(d.dirs)[dino][name.data := ino]]
    ensures st == 0 ==> ino in d.fs.files && d.fs.files[ino] == target.data
  {
    node, after, ino := null, null, 0;
    var found: bool;
    var x: uint64;
    var hint: uint64;
    var len: uint64 := target.Len();
    var bad: uint32 := if len == 0 then INVAL else if len > 4095 then NAMETOOLONG else 0;
    st, before, found, x, hint := Vacant(txn, d, c, dino, dgen, name, bad, a, false);
    if st != 0 { return; }
    st, ino := NewNode(txn, d, c, dino, before, LNK, a, 511, s, ns);
    if st != 0 { return; }
    var ok := d.Write(txn, ino, 0, target, 0, len);
    if !ok { st := NOSPC; return; }
    assert d.fs.files[ino] == target.data;
    st, node, after := Enter(txn, d, dino, name, hint, ino, false, s, ns);
  }

  // devices (root only), FIFOs and sockets; a has no size, here and in Mkdir
  method Mknod(txn: Txn, d: DirFs, c: Cred, dino: uint64, dgen: uint64, name: Bytes, ty: uint32, a: Sattr, maj: uint32, min: uint32, s: uint64, ns: uint32)
    returns (st: uint32, ino: uint64, node: Bytes?, before: Bytes?, after: Bytes?)
    modifies d, d.fs, d.fs.fs, d.fs.fs.fs, d.fs.jrnl
    requires d.Valid() && txn.jrnl == d.fs.jrnl
    ensures st == 0 ==> d.Valid() && dino in old(d.dirs) && ino !in old(d.dirs) && name.data !in old(d.dirs)[dino] && node != null
    ensures st == 0 ==> d.dirs == old(d.dirs)[dino := old(d.dirs)[dino][name.data := ino]]
  {
    node, after, ino := null, null, 0;
    var found: bool;
    var x: uint64;
    var hint: uint64;
    var dev := ty == BLK || ty == CHR;
    var bad: uint32 := if !dev && ty != SOCK && ty != FIFO then BADTYPE else if dev && c.uid != 0 then PERM else 0;
    st, before, found, x, hint := Vacant(txn, d, c, dino, dgen, name, bad, a, false);
    if st != 0 { return; }
    st, ino := NewNode(txn, d, c, dino, before, ty, a, 420, s, ns);
    if st != 0 { return; }
    if dev {
      var ip := d.fs.GetInode(txn, ino, true);
      SetRdev(ip, maj, min);
      d.PutInode(txn, ino, ip);
    }
    st, node, after := Enter(txn, d, dino, name, hint, ino, false, s, ns);
  }
}
