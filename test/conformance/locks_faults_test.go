package conformance

import (
	"encoding/binary"
	"io"
	"net"
	"regexp"
	"testing"
	"time"

	"tansy/fs/model"
	"tansy/nfs/nlm"
	"tansy/nfs/oncrpc"
	"tansy/nfs/server"
	"tansy/tools/conform"
)

// Servers whose locks have one fault each are made by changing the calls and the replies of one that has none.

// lockCall is a call of NLM or NSM on its way to the server, as far as it has these parts.
type lockCall struct {
	program, version, proc uint32
	block, exclusive       bool
	caller, file, owner    []byte // caller is also the name in FREE_ALL
	svid                   uint32
	offset, length         uint64
	mode, access           uint32 // of SHARE

	cookie []byte
}

// plain is the number of the call whose arguments it has: that of a message is the number of what it asks for.
func (c *lockCall) plain() uint32 {
	if c.proc >= nlm.ProcTestMsg && c.proc <= nlm.ProcGrantedMsg {
		return c.proc - nlm.ProcTestMsg + nlm.ProcTest
	}
	return c.proc
}

// parse takes the arguments of a call apart; false: they are none that a fault may change.
func (c *lockCall) parse(d *oncrpc.Decoder) bool {
	if c.program != nlm.Program || c.version != 4 {
		return false
	}
	const most = 1024
	proc := c.plain()
	if proc == nlm.ProcFreeAll {
		c.caller = d.Opaque(most)
		d.Uint32()
		return d.Ok()
	}
	c.cookie = d.Opaque(most)
	switch proc {
	case nlm.ProcLock, nlm.ProcNMLock, nlm.ProcCancel:
		c.block, c.exclusive = d.Bool(), d.Bool()
	case nlm.ProcTest:
		c.exclusive = d.Bool()
	case nlm.ProcUnlock, nlm.ProcShare, nlm.ProcUnshare:
	default:
		return false
	}
	c.caller, c.file, c.owner = d.Opaque(most), d.Opaque(most), d.Opaque(most)
	if proc == nlm.ProcShare || proc == nlm.ProcUnshare {
		c.mode, c.access = d.Uint32(), d.Uint32()
		return d.Ok()
	}
	c.svid, c.offset, c.length = d.Uint32(), d.Uint64(), d.Uint64()
	return d.Ok()
}

// args encodes the arguments again.
func (c *lockCall) args() []byte {
	e := oncrpc.NewEncoder(nil)
	proc := c.plain()
	if proc == nlm.ProcFreeAll {
		e.Opaque(c.caller)
		e.Uint32(3)
		return e.Bytes()
	}
	e.Opaque(c.cookie)
	if proc == nlm.ProcLock || proc == nlm.ProcNMLock || proc == nlm.ProcCancel {
		e.Bool(c.block)
	}
	if proc == nlm.ProcLock || proc == nlm.ProcNMLock || proc == nlm.ProcCancel || proc == nlm.ProcTest {
		e.Bool(c.exclusive)
	}
	e.Opaque(c.caller)
	e.Opaque(c.file)
	e.Opaque(c.owner)
	switch proc {
	case nlm.ProcShare, nlm.ProcUnshare:
		e.Uint32(c.mode)
		e.Uint32(c.access)
		e.Bool(false)
	default:
		e.Uint32(c.svid)
		e.Uint64(c.offset)
		e.Uint64(c.length)
	}
	if proc == nlm.ProcLock || proc == nlm.ProcNMLock {
		e.Bool(false)
		e.Uint32(1)
	}
	return e.Bytes()
}

// lockFault changes calls, or replies to them, of which it gets the results.
type lockFault struct {
	check string
	call  func(c *lockCall)
	reply func(c *lockCall, result []byte) []byte
}

// statusAt is where the status is in a result: behind the cookie.
func statusAt(result []byte) int { return 4 + int(binary.BigEndian.Uint32(result)+3)&^3 }

// answering is a reply with another status in the place of one.
func answering(proc, instead, want uint32) func(*lockCall, []byte) []byte {
	return func(c *lockCall, result []byte) []byte {
		if c.proc == proc && len(result) >= 8 && binary.BigEndian.Uint32(result[statusAt(result):]) == instead {
			binary.BigEndian.PutUint32(result[statusAt(result):], want)
		}
		return result
	}
}

// on changes calls of one procedure.
func on(proc uint32, change func(c *lockCall)) func(*lockCall) {
	return func(c *lockCall) {
		if c.program == nlm.Program && c.proc == proc {
			change(c)
		}
	}
}

// lockFaults are by the check that must find them.
var lockFaults = []lockFault{
	{check: "nlm/exclusive", call: on(nlm.ProcLock, func(c *lockCall) { c.exclusive = false })},
	{check: "nlm/shared", call: on(nlm.ProcLock, func(c *lockCall) { c.exclusive = true })},
	{check: "nlm/upgrade", call: on(nlm.ProcLock, func(c *lockCall) {
		if !c.exclusive {
			c.svid = 0
		}
	})},
	{check: "nlm/not-queued", call: on(nlm.ProcLock, func(c *lockCall) { c.block = true }),
		reply: answering(nlm.ProcLock, nlm.Blocked, nlm.Denied)},
	{check: "nlm/non-monitored", call: on(nlm.ProcNMLock, func(c *lockCall) { c.proc = nlm.ProcTest })},
	{check: "nlm/test", call: on(nlm.ProcTest, func(c *lockCall) { c.proc = nlm.ProcLock })},
	{check: "nlm/test-holder", reply: func(c *lockCall, result []byte) []byte {
		if c.proc == nlm.ProcTest {
			result[len(result)-1]--
		}
		return result
	}},
	{check: "nlm/test-shared", call: on(nlm.ProcTest, func(c *lockCall) { c.exclusive = true })},
	{check: "nlm/granted-unasked", reply: answering(nlm.ProcGranted, nlm.Denied, nlm.Granted)},
	{check: "nlm/unlock", call: on(nlm.ProcUnlock, func(c *lockCall) { c.length = 1 })},
	{check: "nlm/unlock-others", call: on(nlm.ProcUnlock, func(c *lockCall) { c.svid, c.owner = 1, []byte("1@conform") })},
	{check: "nlm/unlock-start", call: on(nlm.ProcUnlock, func(c *lockCall) { c.length = 0 })},
	{check: "nlm/unlock-end", call: on(nlm.ProcUnlock, func(c *lockCall) { c.offset++ })},
	{check: "nlm/unlock-middle", call: on(nlm.ProcUnlock, func(c *lockCall) { c.offset, c.length = 0, 0 })},
	{check: "nlm/several", call: on(nlm.ProcUnlock, func(c *lockCall) { c.length = 10 })},
	{check: "nlm/neighbours", call: on(nlm.ProcLock, func(c *lockCall) { c.offset &^= 15 })},
	{check: "nlm/overlap", call: on(nlm.ProcLock, func(c *lockCall) { c.length-- })},
	{check: "nlm/to-the-end", call: on(nlm.ProcLock, func(c *lockCall) {
		if c.length == 0 {
			c.length = 1 << 32
		}
	})},
	{check: "nlm/last-byte", call: on(nlm.ProcLock, func(c *lockCall) { c.offset &= 1<<63 - 1 })},
	{check: "nlm/beyond-2^64", call: on(nlm.ProcLock, func(c *lockCall) {
		if c.offset+c.length < c.offset {
			c.offset, c.length = 0, c.offset+c.length
		}
	})},
	{check: "nlm/files", call: func() func(*lockCall) {
		var first []byte
		return on(nlm.ProcLock, func(c *lockCall) {
			if first == nil {
				first = c.file
			}
			c.file = first
		})
	}()},
	{check: "nlm/owner-number", call: on(nlm.ProcLock, func(c *lockCall) { c.svid = 1 })},
	{check: "nlm/owner-name", call: on(nlm.ProcLock, func(c *lockCall) { c.owner = nil })},
	{check: "nlm/owner-machine", call: on(nlm.ProcLock, func(c *lockCall) { c.caller = nil })},
	{check: "nlm/owner-zeros", call: on(nlm.ProcLock, func(c *lockCall) { c.owner = c.owner[:1] })},
	{check: "nlm/owner-long", call: on(nlm.ProcLock, func(c *lockCall) { c.owner = c.owner[:min(254, len(c.owner))] })},
	{check: "nlm/stale", reply: answering(nlm.ProcLock, nlm.Stale, nlm.Granted)},
	{check: "nlm/handle-made-up", reply: answering(nlm.ProcTest, nlm.Stale, nlm.Granted)},
	{check: "nlm/directory", reply: answering(nlm.ProcLock, nlm.Failed, nlm.Granted)},
	{check: "nlm/no-right", reply: answering(nlm.ProcLock, nlm.Failed, nlm.Granted)},
	{check: "nlm/cookie-padded", reply: func(c *lockCall, result []byte) []byte {
		if len(c.cookie) == 5 {
			result[11] = 'x'
		}
		return result
	}},
	{check: "nlm/cookie-long", reply: func(c *lockCall, result []byte) []byte {
		result[min(4+100, len(result)-9)] ^= 1
		return result
	}},
	{check: "nlm/free-all", call: on(nlm.ProcFreeAll, func(c *lockCall) { c.caller = []byte("another") })},
	{check: "nlm/free-all-others", call: on(nlm.ProcFreeAll, func(c *lockCall) { c.caller = []byte("conform-a") })},
	{check: "nlm/version-3-stale", reply: answering(nlm.ProcLock, nlm.DeniedRoom, nlm.Stale)},
	{check: "nlm-wait/granted", call: on(nlm.ProcLock, func(c *lockCall) { c.block = false })},
	{check: "nlm-wait/granted", call: on(nlm.ProcLock, func(c *lockCall) { c.exclusive = !c.block })},
	{check: "nlm-wait/shared", call: on(nlm.ProcLock, func(c *lockCall) { c.exclusive = c.exclusive || c.block })},
	{check: "nlm-wait/shared", call: on(nlm.ProcLock, func(c *lockCall) {
		if c.block {
			c.offset++
		}
	})},
	{check: "nlm-wait/part", call: on(nlm.ProcLock, func(c *lockCall) {
		if c.block {
			c.offset, c.length = 0, 0
		}
	})},
	{check: "nlm-wait/cancel", call: on(nlm.ProcCancel, func(c *lockCall) { c.svid++ }),
		reply: answering(nlm.ProcCancel, nlm.Denied, nlm.Granted)},
	{check: "nlm-wait/cancel-other", call: on(nlm.ProcCancel, func(c *lockCall) {
		c.svid, c.owner = 2, []byte("2@conform")
	})},
	{check: "nlm-wait/cancel-nothing", reply: answering(nlm.ProcCancel, nlm.Denied, nlm.Granted)},
	{check: "nlm-msg/lock", call: on(nlm.ProcLockMsg, func(c *lockCall) { c.proc = nlm.ProcTestMsg })},
	{check: "nlm-msg/unlock", call: on(nlm.ProcUnlockMsg, func(c *lockCall) { c.length = 1 })},
	{check: "nlm-share/reserve", call: on(nlm.ProcShare, func(c *lockCall) { c.mode = 0 })},
	{check: "nlm-share/deny-what-is-done", call: on(nlm.ProcShare, func(c *lockCall) { c.access = 0 })},
	{check: "nlm-share/compatible", call: on(nlm.ProcShare, func(c *lockCall) { c.mode = 3 })},
	{check: "nlm-share/release", call: on(nlm.ProcUnshare, func(c *lockCall) { c.owner = nil })},
	{check: "nlm-share/stale", reply: answering(nlm.ProcShare, nlm.Stale, nlm.Granted)},
	{check: "nsm/mon-refused", reply: func(c *lockCall, result []byte) []byte {
		if c.program == nlm.StatusProgram && c.proc == nlm.StatusMon {
			binary.BigEndian.PutUint32(result, 0)
		}
		return result
	}},
	{check: "nsm/state", reply: func(c *lockCall, result []byte) []byte {
		if c.program == nlm.StatusProgram && len(result) > 0 {
			result[len(result)-1]++
		}
		return result
	}},
}

// faultPatience is how long a check waits for a call that a server with a fault may never make.
const faultPatience = 2 * time.Second

func TestLockFaultsAreFound(t *testing.T) {
	for _, x := range lockFaults {
		t.Run(x.check, func(t *testing.T) {
			mapper := freePort(t)
			addr := serveWith(t, server.Config{
				Volumes: []server.Volume{{FS: model.New(model.Options{})}}, Locks: &nlm.Config{PortmapperPort: mapper},
			})
			check := func(fault lockFault, patience time.Duration) conform.Outcome {
				rep, err := conform.Run(t.Context(), conform.Config{
					Addr: between(t, addr, fault), CallbackPort: mapper, Timeout: patience,
					Run: regexp.MustCompile("^" + regexp.QuoteMeta(x.check) + "$"),
				})
				if err != nil {
					t.Fatal(err)
				}
				return rep.Results[0].Outcome
			}
			if got := check(lockFault{}, 0); got != conform.Pass {
				t.Errorf("without the fault: %s", got)
			}
			if got := check(x, faultPatience); got != conform.Fail && got != conform.Differ {
				t.Errorf("with the fault: %s", got)
			}
		})
	}
}

// between is a proxy of a server that has a fault. It takes one call of a connection after the other.
func between(t *testing.T, addr string, fault lockFault) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", addr)
			if err != nil {
				c.Close()
				return
			}
			go func() {
				defer c.Close()
				defer s.Close()
				for fault.pass(c, s) {
				}
			}()
		}
	}()
	return l.Addr().String()
}

// replyHeader is how many bytes come before the result of a call that was carried out.
const replyHeader = 24

// pass hands a call on, and its reply back. It is false at the end of the connection.
func (f *lockFault) pass(c, s net.Conn) bool {
	rec, ok := oneRecord(c)
	if !ok {
		return false
	}
	d := oncrpc.NewDecoder(rec)
	for range 3 {
		d.Uint32()
	}
	asked := lockCall{program: d.Uint32(), version: d.Uint32(), proc: d.Uint32()}
	for range 2 {
		d.Uint32()
		d.Opaque(400)
	}
	head := len(rec) - len(d.Rest())
	if !d.Ok() || asked.program != nlm.Program && asked.program != nlm.StatusProgram {
		sendRecord(s, rec)
		reply, ok := oneRecord(s)
		return ok && sendRecord(c, reply)
	}
	parsed := asked.parse(&d)
	changed := asked
	if f.call != nil && parsed {
		f.call(&changed)
		binary.BigEndian.PutUint32(rec[20:], changed.proc)
		rec = append(rec[:head:head], changed.args()...)
	}
	sendRecord(s, rec)
	reply, ok := oneRecord(s)
	if ok && f.reply != nil && len(reply) > replyHeader {
		reply = append(reply[:replyHeader:replyHeader], f.reply(&asked, reply[replyHeader:])...)
	}
	return ok && sendRecord(c, reply)
}

// oneRecord reads a record, which is in one piece here.
func oneRecord(c net.Conn) ([]byte, bool) {
	var mark [4]byte
	if _, err := io.ReadFull(c, mark[:]); err != nil {
		return nil, false
	}
	rec := make([]byte, binary.BigEndian.Uint32(mark[:])&0x7fffffff)
	_, err := io.ReadFull(c, rec)
	return rec, err == nil
}

func sendRecord(c net.Conn, rec []byte) bool {
	_, err := c.Write(append(binary.BigEndian.AppendUint32(nil, 1<<31|uint32(len(rec))), rec...))
	return err == nil
}
