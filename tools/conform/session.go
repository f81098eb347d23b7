package conform

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// session is a run of checks on one server: a connection, the root of the
// export, and a directory of its own in it.
type session struct {
	cfg  Config
	conn *conn // to NFS; replaced when a check broke it
	xid  uint32

	root    fh // of the export
	name    string
	dir     fh // /name
	info    fsinfo
	path    pathconf
	squash  bool // user 0 is somebody else on this server
	unknown bool // so are other users

	places map[uint32]placeOf // of programs other than NFS and MOUNT
}

// Who calls. None of the numbers but 0 is likely to mean anything to the server.
var (
	super = &cred{}
	alice = &cred{uid: 40001, gid: 40001}
	bob   = &cred{uid: 40002, gid: 40002}
)

// MountError is the error for a server that refuses to let its export be mounted.
type MountError struct{ Export, Status string }

func (e *MountError) Error() string { return fmt.Sprintf("mount of %q: %s", e.Export, e.Status) }

// newSession mounts the export and makes the directory.
func newSession(cfg Config) (s *session, err error) {
	s = &session{cfg: cfg}
	defer func() { // what a T reports about a check is here the reason not to start
		if p := recover(); p != nil {
			v, known := p.(verdict)
			if !known {
				panic(p)
			}
			s, err = nil, errors.New(v.String())
		}
	}()
	t := &T{s: s}
	defer t.cleanUp()
	m := t.mnt(super, cfg.Export)
	if m.st != ok {
		return nil, &MountError{cfg.Export, m.st.String()}
	}
	s.root = m.root
	s.info, s.path = t.fsinfo(s.root), t.pathconf(s.root)
	var salt [4]byte
	rand.Read(salt[:])
	s.name = "tansy-conform-" + hex.EncodeToString(salt[:])
	d := t.mkdir(super, s.root, s.name, mode(0o777))
	if d.st != ok {
		return nil, fmt.Errorf("a directory in %q cannot be made: %v", cfg.Export, d.st)
	}
	s.dir = t.made(s.root, s.name, d)
	s.squash = t.attr(s.dir).uid != 0
	t.setattr(super, s.dir, mode(0o777), nil)
	f := t.create(alice, s.dir, "probe", guarded, mode(0o644), 0)
	if f.st != ok {
		s.unknown = true
		return s, nil
	}
	s.unknown = t.attr(t.made(s.dir, "probe", f)).uid != alice.uid
	t.remove(super, s.dir, "probe")
	return s, nil
}

// run runs one check in a T of its own.
func (s *session) run(c *Check) (r Result) {
	t := &T{s: s, check: c}
	r = Result{Check: *c, Outcome: Pass}
	defer func() {
		p := recover()
		v, known := p.(verdict)
		if p != nil && !known {
			panic(p)
		}
		if p == nil && t.different != nil {
			v, known = *t.different, true
		}
		if known {
			r.Outcome, r.Want, r.Got, r.Reason, r.Sent = v.outcome, v.want, v.got, v.reason, v.sent
		}
		t.cleanUp()
	}()
	c.run(t)
	return r
}

// answers tells if the server accepts connections and calls.
func (s *session) answers() bool {
	c, err := s.cfg.dial(s.cfg.Addr)
	if err != nil {
		return false
	}
	defer c.close()
	h := newHeader(nfsProg, nfsVers, procNull, nil)
	h.xid = 1
	_, err = c.call(h, nil)
	return err == nil
}

// returnPause is how long to wait between looks if a server that is gone is back.
const returnPause = 100 * time.Millisecond

// survived looks if the server is still there after a check. If not, the check
// has failed whatever it found, and the server is given the time of a reply to be
// started again; the error is that it was not.
func (s *session) survived(r *Result) error {
	if s.answers() {
		return nil
	}
	r.Outcome, r.Reason = Fail, ""
	r.Want = "a server that goes on (" + r.Want + ")"
	r.Got = "it is gone"
	if s.conn != nil {
		s.conn.close()
		s.conn = nil
	}
	for end := time.Now().Add(s.cfg.Timeout); time.Now().Before(end); time.Sleep(returnPause) {
		if s.answers() {
			return nil
		}
	}
	return fmt.Errorf("the server is gone since %s", r.ID())
}

// close removes the directory and returns a word about what is left.
func (s *session) close() (left string) {
	defer func() {
		if s.conn != nil {
			s.conn.close()
		}
	}()
	defer func() {
		if p := recover(); p != nil {
			v, known := p.(verdict)
			if !known {
				panic(p)
			}
			left = fmt.Sprintf("%s: %s", s.name, v)
		}
	}()
	t := &T{s: s}
	defer t.cleanUp()
	if st := t.removeTree(s.root, s.name); st != ok {
		return fmt.Sprintf("%s: %v", s.name, st)
	}
	t.mountCall(mountUmnt, super, newArgs().opaque("dirpath", s.cfg.Export))
	return ""
}

// removeTree removes an entry and all below it, as whoever may.
func (t *T) removeTree(dir fh, name string) (st status) {
	for _, c := range everybody {
		if st = t.remove(c, dir, name).st; st == ok || st == errNoEnt {
			return ok
		}
	}
	l := t.lookup(super, dir, name)
	if l.st != ok {
		return l.st
	}
	for _, c := range everybody {
		t.setattr(c, l.obj, mode(0o777), nil)
	}
	for range 100 { // a scan may miss entries while it removes some
		names := t.names(l.obj)
		if len(names) == 0 {
			break
		}
		for _, n := range names {
			t.removeTree(l.obj, n)
		}
	}
	for _, c := range everybody {
		if st = t.rmdir(c, dir, name).st; st == ok {
			return ok
		}
	}
	return st
}
