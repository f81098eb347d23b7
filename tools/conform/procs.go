package conform

// The procedures of NFS and MOUNT, one method each, for calls that are in good
// form. A result that is not is a failure of whatever check made the call.

// getattr is called as the superuser; see getattrAs.
func (t *T) getattr(h fh) (attr, status) { return t.getattrAs(super, h) }

func (t *T) getattrAs(c *cred, h fh) (a attr, st status) {
	st, r := t.nfs(procGetattr, c, newArgs().fh("object", h))
	if st == ok {
		a = r.attr()
	}
	t.done(r)
	return a, st
}

type wccRes struct {
	st  status
	wcc wcc
}

func (t *T) wccResult(st status, r *reader) wccRes {
	w := wccRes{st, r.wcc()}
	t.done(r)
	return w
}

func (t *T) setattr(c *cred, h fh, s sattr, guard *stamp) wccRes {
	a := newArgs().fh("object", h).sattr(s)
	if guard == nil {
		a.word(0)
	} else {
		a.word(1)
		a.word(guard.sec)
		a.word(guard.nsec)
		a.say("guard=%v", guard)
	}
	return t.wccResult(t.nfs(procSetattr, c, a))
}

type lookupRes struct {
	st        status
	obj       fh
	attr, dir *attr
}

func (t *T) lookup(c *cred, dir fh, name string) (l lookupRes) {
	st, r := t.nfs(procLookup, c, newArgs().dirop(dir, name))
	l.st = st
	if st == ok {
		l.obj = r.fh()
		l.attr = r.postOp()
	}
	l.dir = r.postOp()
	t.done(r)
	return l
}

type accessRes struct {
	st   status
	attr *attr
	bits uint32
}

func (t *T) access(c *cred, h fh, bits uint32) (x accessRes) {
	st, r := t.nfs(procAccess, c, newArgs().fh("object", h).u32("access", bits))
	x.st, x.attr = st, r.postOp()
	if st == ok {
		x.bits = r.u32()
	}
	t.done(r)
	return x
}

type readlinkRes struct {
	st     status
	attr   *attr
	target string
}

func (t *T) readlink(c *cred, h fh) (l readlinkRes) {
	st, r := t.nfs(procReadlink, c, newArgs().fh("symlink", h))
	l.st, l.attr = st, r.postOp()
	if st == ok {
		l.target = r.opaque(maxReply)
	}
	t.done(r)
	return l
}

type readRes struct {
	st    status
	attr  *attr
	count uint32
	eof   bool
	data  string
}

func (t *T) read(c *cred, h fh, off uint64, count uint32) readRes {
	return t.readResult(t.nfs(procRead, c, newArgs().fh("file", h).u64("offset", off).u32("count", count)))
}

func (t *T) readResult(st status, r *reader) (d readRes) {
	d.st, d.attr = st, r.postOp()
	if st == ok {
		d.count, d.eof = r.u32(), r.bool()
		d.data = r.opaque(maxReply)
		if int(d.count) != len(d.data) {
			r.bad("count is %d, but there are %d bytes of data", d.count, len(d.data))
		}
	}
	t.done(r)
	return d
}

type writeRes struct {
	st        status
	wcc       wcc
	count     uint32
	committed uint32
	verf      uint64
}

// writeArgs are the arguments of a WRITE whose count need not be the data's length.
func writeArgs(h fh, off uint64, count, stable uint32, data string) *args {
	return newArgs().fh("file", h).u64("offset", off).u32("count", count).u32("stable", stable).opaque("data", data)
}

func (t *T) write(c *cred, h fh, off uint64, data string, stable uint32) writeRes {
	return t.writeResult(t.nfs(procWrite, c, writeArgs(h, off, uint32(len(data)), stable, data)))
}

func (t *T) writeResult(st status, r *reader) (w writeRes) {
	w.st, w.wcc = st, r.wcc()
	if st == ok {
		w.count, w.committed, w.verf = r.u32(), r.u32(), r.u64()
		if w.committed > fileSync {
			r.bad("stable_how is %d", w.committed)
		}
	}
	t.done(r)
	return w
}

type madeRes struct {
	st   status
	obj  fh // empty if the server did not tell
	attr *attr
	dir  wcc
}

func (t *T) madeResult(st status, r *reader) (m madeRes) {
	m.st = st
	if st == ok {
		m.obj, m.attr = r.postFH(), r.postOp()
	}
	m.dir = r.wcc()
	t.done(r)
	return m
}

// createArgs are the arguments of CREATE: attributes, or a verifier for exclusive.
func createArgs(dir fh, name string, how uint32, s sattr, verf uint64) *args {
	a := newArgs().dirop(dir, name).u32("mode", how)
	if how == exclusive {
		return a.u64("verf", verf)
	}
	return a.sattr(s)
}

func (t *T) create(c *cred, dir fh, name string, how uint32, s sattr, verf uint64) madeRes {
	return t.madeResult(t.nfs(procCreate, c, createArgs(dir, name, how, s, verf)))
}

func (t *T) mkdir(c *cred, dir fh, name string, s sattr) madeRes {
	return t.madeResult(t.nfs(procMkdir, c, newArgs().dirop(dir, name).sattr(s)))
}

func (t *T) symlink(c *cred, dir fh, name string, s sattr, target string) madeRes {
	return t.madeResult(t.nfs(procSymlink, c, newArgs().dirop(dir, name).sattr(s).opaque("target", target)))
}

// mknodArgs are the arguments of MKNOD, in the form that typ has.
func mknodArgs(dir fh, name string, typ ftype, s sattr, major, minor uint32) *args {
	a := newArgs().dirop(dir, name).u32("type", uint32(typ))
	switch typ {
	case typeChr, typeBlk:
		a.sattr(s).u32("specdata1", major).u32("specdata2", minor)
	case typeSock, typeFIFO:
		a.sattr(s)
	}
	return a
}

func (t *T) mknod(c *cred, dir fh, name string, typ ftype, s sattr, major, minor uint32) madeRes {
	return t.madeResult(t.nfs(procMknod, c, mknodArgs(dir, name, typ, s, major, minor)))
}

func (t *T) remove(c *cred, dir fh, name string) wccRes {
	return t.wccResult(t.nfs(procRemove, c, newArgs().dirop(dir, name)))
}

func (t *T) rmdir(c *cred, dir fh, name string) wccRes {
	return t.wccResult(t.nfs(procRmdir, c, newArgs().dirop(dir, name)))
}

type renameRes struct {
	st       status
	from, to wcc
}

func (t *T) rename(c *cred, from fh, fromName string, to fh, toName string) renameRes {
	st, r := t.nfs(procRename, c, newArgs().dirop(from, fromName).dirop(to, toName))
	x := renameRes{st: st}
	x.from = r.wcc()
	x.to = r.wcc()
	t.done(r)
	return x
}

type linkRes struct {
	st   status
	attr *attr
	dir  wcc
}

func (t *T) link(c *cred, file, dir fh, name string) linkRes {
	st, r := t.nfs(procLink, c, newArgs().fh("file", file).dirop(dir, name))
	l := linkRes{st: st, attr: r.postOp()}
	l.dir = r.wcc()
	t.done(r)
	return l
}

type entry struct {
	fileid uint64
	name   string
	cookie uint64
	attr   *attr // READDIRPLUS only
	obj    fh
}

type listRes struct {
	st      status
	dir     *attr
	verf    uint64
	entries []entry
	eof     bool
	bytes   int // of the result, the status not counted
}

func (t *T) readdir(c *cred, dir fh, cookie, verf uint64, count uint32) listRes {
	st, r := t.nfs(procReaddir, c, newArgs().fh("dir", dir).u64("cookie", cookie).u64("verf", verf).u32("count", count))
	return t.listResult(st, r, false)
}

func (t *T) readdirplus(c *cred, dir fh, cookie, verf uint64, dirCount, maxCount uint32) listRes {
	st, r := t.nfs(procReaddirplus, c,
		newArgs().fh("dir", dir).u64("cookie", cookie).u64("verf", verf).u32("dircount", dirCount).u32("maxcount", maxCount))
	return t.listResult(st, r, true)
}

func (t *T) listResult(st status, r *reader, plus bool) (l listRes) {
	l.st, l.bytes = st, len(r.b)
	l.dir = r.postOp()
	if st == ok {
		l.verf = r.u64()
		for r.bool() {
			e := entry{fileid: r.u64(), name: r.opaque(maxReply), cookie: r.u64()}
			if plus {
				e.attr, e.obj = r.postOp(), r.postFH()
			}
			l.entries = append(l.entries, e)
		}
		l.eof = r.bool()
	}
	t.done(r)
	return l
}

type fsstat struct {
	st                                       status
	attr                                     *attr
	total, free, avail, files, ffree, favail uint64
	invarsec                                 uint32
}

func (t *T) fsstat(h fh) (s fsstat) {
	st, r := t.nfs(procFsstat, super, newArgs().fh("fsroot", h))
	s.st, s.attr = st, r.postOp()
	if st == ok {
		for _, p := range []*uint64{&s.total, &s.free, &s.avail, &s.files, &s.ffree, &s.favail} {
			*p = r.u64()
		}
		s.invarsec = r.u32()
	}
	t.done(r)
	return s
}

// Properties of FSINFO.
const (
	propLink        = 0x01
	propSymlink     = 0x02
	propHomogeneous = 0x08
	propCanSetTime  = 0x10
)

type fsinfo struct {
	st                                                   status
	attr                                                 *attr
	rtmax, rtpref, rtmult, wtmax, wtpref, wtmult, dtpref uint32
	maxFileSize                                          uint64
	delta                                                stamp
	properties                                           uint32
}

func (t *T) fsinfo(h fh) (i fsinfo) {
	st, r := t.nfs(procFsinfo, super, newArgs().fh("fsroot", h))
	i.st, i.attr = st, r.postOp()
	if st == ok {
		for _, p := range []*uint32{&i.rtmax, &i.rtpref, &i.rtmult, &i.wtmax, &i.wtpref, &i.wtmult, &i.dtpref} {
			*p = r.u32()
		}
		i.maxFileSize, i.delta, i.properties = r.u64(), r.stamp(), r.u32()
	}
	t.done(r)
	return i
}

type pathconf struct {
	st                                                        status
	attr                                                      *attr
	linkMax, nameMax                                          uint32
	noTrunc, chownRestricted, caseInsensitive, casePreserving bool
}

func (t *T) pathconf(h fh) (p pathconf) {
	st, r := t.nfs(procPathconf, super, newArgs().fh("object", h))
	p.st, p.attr = st, r.postOp()
	if st == ok {
		p.linkMax, p.nameMax = r.u32(), r.u32()
		p.noTrunc, p.chownRestricted, p.caseInsensitive, p.casePreserving = r.bool(), r.bool(), r.bool(), r.bool()
	}
	t.done(r)
	return p
}

type commitRes struct {
	st   status
	wcc  wcc
	verf uint64
}

func (t *T) commit(c *cred, h fh, off uint64, count uint32) (m commitRes) {
	st, r := t.nfs(procCommit, c, newArgs().fh("file", h).u64("offset", off).u32("count", count))
	m.st, m.wcc = st, r.wcc()
	if st == ok {
		m.verf = r.u64()
	}
	t.done(r)
	return m
}

type mntRes struct {
	st      status
	root    fh
	flavors []uint32
}

// mountCall makes a call of MOUNT on a connection of its own.
func (t *T) mountCall(proc uint32, c *cred, a *args) *rpcReply {
	return t.rpcOn(t.dialTo(t.s.cfg.MountAddr), newHeader(mountProg, mountVers, proc, c), a)
}

func (t *T) mnt(c *cred, path string) (m mntRes) {
	p := t.mountCall(mountMnt, c, newArgs().opaque("dirpath", path))
	if p.denied || p.stat != success {
		t.broken("the call is carried out", p.String())
	}
	r := &reader{b: p.body}
	m.st = status(r.u32())
	t.then(m.st.String())
	if m.st == ok {
		m.root = r.fh()
		n := r.u32()
		for ; n > 0 && r.err == ""; n-- {
			m.flavors = append(m.flavors, r.u32())
		}
	}
	t.done(r)
	return m
}
