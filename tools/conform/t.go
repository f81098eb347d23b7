package conform

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// T is a check that is running. It makes calls, remembers them for the report, and stops at the first fault.
type T struct {
	s     *session
	check *Check
	sent  []string
	conns []*conn // to be closed
	locks lockScene

	scratch fh // made when first asked for

	// different is the first difference that did not end the check.
	different *verdict
}

// verdict ends a check that did not pass. It is panicked with.
type verdict struct {
	outcome           Outcome
	want, got, reason string
	sent              []string
}

func (v verdict) String() string {
	if v.reason != "" {
		return v.reason
	}
	text := fmt.Sprintf("wanted %s, got %s", v.want, v.got)
	if len(v.sent) > 0 {
		text = strings.Join(v.sent, "; ") + ": " + text
	}
	return text
}

// traced is how many calls the report shows.
const traced = 4

func (t *T) verdict(o Outcome, want, got string) verdict {
	last := t.sent[max(0, len(t.sent)-traced):]
	return verdict{outcome: o, want: want, got: got, sent: slices.Clone(last)}
}

// broken ends the check as a failure whatever its level is: the server broke
// the protocol, or a step that prepares the check did not work.
func (t *T) broken(want, got string) { panic(t.verdict(Fail, want, got)) }

// wrong ends the check: its rule does not hold.
func (t *T) wrong(want, got string) {
	o := Fail
	if t.check != nil && t.check.Level == Should {
		o = Differ
	}
	panic(t.verdict(o, want, got))
}

// skip ends the check: it makes no sense on this server.
func (t *T) skip(format string, v ...any) {
	panic(verdict{outcome: Skip, reason: fmt.Sprintf(format, v...)})
}

// prefer notes a difference and goes on.
func (t *T) prefer(good bool, want, got string) {
	if !good && t.different == nil {
		v := t.verdict(Differ, want, got)
		t.different = &v
	}
}

// is wants one of some statuses.
func (t *T) is(st status, want ...status) {
	if slices.Contains(want, st) {
		return
	}
	t.wrong(list(want), st.String())
}

func list(want []status) string {
	var names []string
	for _, w := range want {
		names = append(names, w.String())
	}
	return strings.Join(names, " or ")
}

// ok wants success.
func (t *T) ok(st status) { t.is(st, ok) }

// refused wants an error, and one of some statuses in particular: another one is
// a difference.
func (t *T) refused(st status, usual ...status) {
	if st == ok {
		t.wrong(list(usual), st.String())
	}
	t.prefer(slices.Contains(usual, st), list(usual), st.String())
}

// prepared wants success of a step before the one that the check is about.
func (t *T) prepared(what string, st status) {
	if st == errNotSupp {
		t.skip("the server has no %s", what)
	}
	if st != ok {
		t.broken(what+", before the check: OK", st.String())
	}
}

// that wants a condition.
func (t *T) that(good bool, want, got string, v ...any) {
	if !good {
		t.wrong(want, fmt.Sprintf(got, v...))
	}
}

// same wants two values to be equal.
func same[V comparable](t *T, what string, got, want V) {
	if got != want {
		t.wrong(fmt.Sprintf("%s: %v", what, want), fmt.Sprint(got))
	}
}

// text wants two strings of bytes to be equal.
func (t *T) text(what, got, want string) {
	if got != want {
		t.wrong(what+": "+short(want), short(got))
	}
}

// mode wants a mode.
func (t *T) mode(a attr, want uint32) {
	if a.mode != want {
		t.wrong(fmt.Sprintf("mode: %04o", want), fmt.Sprintf("%04o", a.mode))
	}
}

// ended wants a handle to be stale after the last name of its file was removed. A
// server may keep the file for a while, say because it has it open.
func (t *T) ended(h fh) {
	_, st := t.getattr(h)
	t.prefer(st == errStale, "STALE", st.String())
}

// needRoot skips where user 0 has no power.
func (t *T) needRoot() {
	if t.s.squash {
		t.skip("the server maps user 0 to another")
	}
}

// needUsers skips where the numbers of AUTH_SYS mean nothing.
func (t *T) needUsers() {
	if t.s.unknown {
		t.skip("the server maps users to others")
	}
}

// note remembers a call for the report.
func (t *T) note(format string, v ...any) { t.sent = append(t.sent, fmt.Sprintf(format, v...)) }

// then adds the answer to the last call.
func (t *T) then(answer string) {
	if n := len(t.sent); n > 0 {
		t.sent[n-1] += " -> " + answer
	}
}

// dial opens a connection of the check's own to NFS.
func (t *T) dial() *conn { return t.dialTo(t.s.cfg.Addr) }

func (t *T) dialTo(addr string) *conn {
	c, err := t.s.cfg.dial(addr)
	if err != nil {
		t.broken("a connection to "+addr, err.Error())
	}
	t.conns = append(t.conns, c)
	return c
}

// nfsConn is the session's connection.
func (t *T) nfsConn() *conn {
	if c := t.s.conn; c != nil && !c.broken {
		return c
	}
	if t.s.conn != nil {
		t.s.conn.close()
	}
	c, err := t.s.cfg.dial(t.s.cfg.Addr)
	if err != nil {
		t.s.conn = nil
		t.broken("a connection to "+t.s.cfg.Addr, err.Error())
	}
	t.s.conn = c
	return c
}

// xid returns a number of a call that was not used before.
func (t *T) xid() uint32 {
	t.s.xid++
	return 0x7a000000 + t.s.xid
}

// rpcOn makes a call on a connection; an answer there must be.
func (t *T) rpcOn(c *conn, h header, a *args) *rpcReply {
	p, err := t.tryOn(c, h, a)
	if err != nil {
		t.broken("an answer", err.Error())
	}
	return p
}

// tryOn makes a call that the server may also leave without an answer.
func (t *T) tryOn(c *conn, h header, a *args) (*rpcReply, error) {
	if a == nil {
		a = newArgs()
	}
	if h.xid == 0 {
		h.xid = t.xid()
	}
	t.note("%s", describe(h, a))
	p, err := c.call(h, a.b)
	if err != nil {
		t.then(err.Error())
		return nil, err
	}
	if p.denied || p.stat != success {
		t.then(p.String())
	}
	return p, nil
}

func describe(h header, a *args) string {
	name := fmt.Sprintf("program %d version %d procedure %d", h.prog, h.vers, h.proc)
	switch {
	case h.prog == nfsProg && h.vers == nfsVers && h.proc < procCount:
		name = procNames[h.proc]
	case h.prog == mountProg && h.vers == mountVers && h.proc < uint32(len(mountNames)):
		name = "MOUNT " + mountNames[h.proc]
	case h.prog == aclProg && h.vers == aclVers && h.proc < uint32(len(aclNames)):
		name = "NFSACL " + aclNames[h.proc]
	case h.prog == nlmProg && h.proc < procLockCount:
		name = fmt.Sprintf("NLM %d %s", h.vers, nlmNames[h.proc])
	}
	if s := a.String(); s != "" {
		name += " " + s
	}
	if h.proc != 0 && (h.who == nil || h.who.uid != 0) {
		name += " as " + h.who.String()
	}
	return name
}

// jukeboxPause is how long to wait before a call is sent again that the server
// asked to send again later.
const (
	jukeboxPause = 200 * time.Millisecond
	jukeboxTries = 25
)

// try makes a call of NFS, which the server need not carry out.
func (t *T) try(proc uint32, c *cred, a *args) *rpcReply {
	for n := 1; ; n++ {
		p := t.rpcOn(t.nfsConn(), newHeader(nfsProg, nfsVers, proc, c), a)
		if n == jukeboxTries || p.denied || p.stat != success || len(p.body) < 4 || statusOf(p) != errJukebox {
			return p
		}
		time.Sleep(jukeboxPause)
	}
}

func statusOf(p *rpcReply) status {
	r := reader{b: p.body}
	return status(r.u32())
}

// nfs makes a call of NFS and decodes its status. GARBAGE_ARGS counts as one: some
// servers decode so strictly that they refuse there what others refuse later.
func (t *T) nfs(proc uint32, c *cred, a *args) (status, *reader) {
	return t.status(t.try(proc, c, a))
}

// status is the status in a reply, and what follows it.
func (t *T) status(p *rpcReply) (status, *reader) {
	if !p.denied && p.stat == garbageArgs {
		return errGarbage, &reader{empty: true}
	}
	if p.denied || p.stat != success {
		t.broken("the call is carried out", p.String())
	}
	r := &reader{b: p.body}
	st := status(r.u32())
	t.then(st.String())
	return st, r
}

// done checks that a result was well-formed to its last byte.
func (t *T) done(r *reader) {
	r.end()
	if r.err != "" {
		t.broken("a result in the form of RFC 1813 and RFC 4506", r.err)
	}
}

// refusedCall makes a call that the server must not carry out, and wants it to be answered
// with GARBAGE_ARGS, or with an NFS error (a difference).
func (t *T) refusedCall(proc uint32, a *args) {
	p := t.try(proc, super, a)
	if p.denied {
		t.wrong("GARBAGE_ARGS", p.String())
	}
	if p.stat == success && len(p.body) >= 4 && statusOf(p) != ok {
		t.prefer(false, "GARBAGE_ARGS", statusOf(p).String())
		return
	}
	if p.stat != garbageArgs {
		t.wrong("GARBAGE_ARGS", p.String())
	}
}

// alive wants a connection to go on working.
func (t *T) alive(c *conn) {
	p, err := t.tryOn(c, newHeader(nfsProg, nfsVers, procNull, nil), nil)
	if err != nil {
		t.wrong("the connection goes on working", err.Error())
	}
	if p.denied || p.stat != success {
		t.wrong("the connection goes on working", p.String())
	}
}

// serving wants the server to serve others.
func (t *T) serving() { t.rpcOn(t.dial(), newHeader(nfsProg, nfsVers, procNull, nil), nil) }

// closedOrAlive wants a connection to be closed, or to go on without an answer to
// what was sent. Afterwards others must be served.
func (t *T) closedOrAlive(c *conn) {
	h := newHeader(nfsProg, nfsVers, procNull, nil)
	h.xid = t.xid()
	t.note("then NULL on the same connection")
	p, err := c.call(h, nil)
	switch {
	case err != nil && !errors.Is(err, errClosed):
		t.wrong("an answer to NULL, or the end of the connection", err.Error())
	case err == nil && (p.denied || p.stat != success):
		t.wrong("an answer to NULL, or the end of the connection", p.String())
	}
	t.serving()
}

// cleanUp closes what the check opened and removes its directory.
func (t *T) cleanUp() {
	t.freeLocks()
	for _, c := range t.conns {
		c.close()
	}
	if t.scratch == "" {
		return
	}
	ignoring(func() { t.removeTree(t.s.dir, t.dirName()) })
}
