package nlm

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"tansy/fs"
	"tansy/nfs/advisory"
	"tansy/nfs/callout"
	"tansy/nfs/exports"
	"tansy/nfs/nfs3"
	"tansy/nfs/oncrpc"
	"tansy/nfs/portmap"
	"tansy/nfs/reclaim"
)

// Config sets up a Service. Files is required.
type Config struct {
	// Files returns what a handle names, for the caller of a call (nfs3.Volumes.File).
	Files func(c *oncrpc.Call, handle []byte) (nfs3.File, error)
	Log   *slog.Logger

	Limits advisory.Limits // default DefaultLimits

	// Kept has the volumes whose locks outlive the server: where their hosts are kept. Locks of others end with it.
	Kept map[[8]byte]reclaim.Store
	// Grace is how long clients may reclaim locks of those volumes after the start, if any had some; 0: not at all.
	Grace time.Duration
	// Name is what clients know this machine by, beside the address that they called; "": by that alone.
	Name string

	// PortmapperPort is where clients have their port mapper, default portmap.Port.
	PortmapperPort uint16
	// Retry is the time after which a client that does not answer is told again that it has a lock, default 5 s. It
	// doubles with each time.
	Retry time.Duration
	// Notify is the time after which one that does not answer is told again that this server has started, default 1 s.
	// It doubles with each time, up to a minute.
	Notify time.Duration
}

// DefaultLimits are those of a Service that was given none.
var DefaultLimits = advisory.Limits{All: 16384, Client: 1024, File: 4096, Waits: 64, FileWaits: 128, Hosts: 1024}

// What is done for clients: calls to them. They have their limits apart from those of calls from them.
var calling = callout.Limits{AtOnce: 32, PerHost: 2, Queued: 128, Hosts: 1024, Time: 15 * time.Second}

// Service is NLM and NSM.
type Service struct {
	files   func(c *oncrpc.Call, handle []byte) (nfs3.File, error)
	log     *slog.Logger
	table   *advisory.Table
	calls   *callout.Queue
	port    uint16
	retry   time.Duration
	notify  time.Duration
	ownName string // what clients know this machine by

	kept    map[[8]byte]*reclaim.Volume // nil: what is kept there cannot be read, and nobody gets locks
	state   uint32                      // of NSM: it is odd while the server is up, and grows with each start
	notices *callout.Queue
	started sync.Once
}

// New makes a Service, which Close ends. It reads which hosts had locks, and waits for the device.
func New(cfg Config) *Service {
	s := &Service{
		files: cfg.Files, log: cfg.Log, port: cfg.PortmapperPort, retry: cfg.Retry, notify: cfg.Notify, ownName: cfg.Name,
		calls: callout.New(calling), notices: callout.New(noticing),
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	if s.port == 0 {
		s.port = portmap.Port
	}
	if s.retry == 0 {
		s.retry = 5 * time.Second
	}
	if s.notify == 0 {
		s.notify = time.Second
	}
	if cfg.Limits == (advisory.Limits{}) {
		cfg.Limits = DefaultLimits
	}
	s.table = advisory.New(cfg.Limits, s.offer)
	s.openKept(cfg)
	return s
}

// Close ends the calls to clients, and forgets those that wait. What is kept of hosts without locks goes from the
// volumes; that waits for the device.
func (s *Service) Close() {
	s.calls.Close()
	s.notices.Close()
	for _, v := range s.kept {
		if v != nil {
			v.Close()
		}
	}
}

// Counts are numbers of the table, and of what outlives it.
type Counts struct {
	advisory.Counts
	Kept  int  // hosts that are on a volume, added up over all
	Grace bool // on some volume only locks from before the start are granted
}

// Counts returns the numbers of now.
func (s *Service) Counts() Counts {
	c := Counts{Counts: s.table.Counts()}
	for _, v := range s.kept {
		if v != nil {
			c.Kept += v.Hosts()
			c.Grace = c.Grace || v.Grace()
		}
	}
	return c
}

// Programs are the tables of procedures.
func (s *Service) Programs() []oncrpc.Program {
	list := []oncrpc.Program{s.status()}
	for _, v := range Versions {
		list = append(list, s.program(v))
	}
	return list
}

// program is the table of one version of NLM. Version 1 has no reservations.
func (s *Service) program(version uint32) oncrpc.Program {
	procs := make([]oncrpc.Proc, ProcFreeAll+1)
	procs[ProcNull] = oncrpc.NullProc
	for _, row := range []struct {
		proc uint32
		name string
		get  func(*oncrpc.Decoder, uint32) lockArgs
		do   func(*oncrpc.Call, uint32, *lockArgs) result
	}{
		{ProcTest, "TEST", getTest, s.test},
		{ProcLock, "LOCK", getLocking, s.lock},
		{ProcCancel, "CANCEL", getCancel, s.cancel},
		{ProcUnlock, "UNLOCK", getUnlock, s.unlock},
		{ProcGranted, "GRANTED", getTest, s.granted},
		{ProcNMLock, "NM_LOCK", getLocking, s.lock},
	} {
		procs[row.proc] = oncrpc.Proc{Name: row.name, Serve: func(c *oncrpc.Call) oncrpc.Accept {
			a := row.get(&c.Args, version)
			if !c.Args.Ok() {
				return oncrpc.GarbageArgs
			}
			r := row.do(c, version, &a)
			c.Status = onWire(r.status, version)
			r.put(&c.Reply, version, a.cookie)
			return oncrpc.Success
		}}
		if row.proc > ProcGranted {
			continue
		}
		message := row.proc - ProcTest + ProcTestMsg
		procs[message] = oncrpc.Proc{Name: row.name + "_MSG", Serve: func(c *oncrpc.Call) oncrpc.Accept {
			a := row.get(&c.Args, version)
			if !c.Args.Ok() {
				return oncrpc.GarbageArgs
			}
			s.answer(c, version, message+toRes, row.do(c, version, &a), bytes.Clone(a.cookie))
			return oncrpc.Success
		}}
		procs[message+toRes] = oncrpc.Proc{Name: row.name + "_RES", Serve: ignore} // of nothing that was asked
	}
	procs[ProcShare] = oncrpc.Proc{Name: "SHARE", Serve: s.sharing(version, s.share)}
	procs[ProcUnshare] = oncrpc.Proc{Name: "UNSHARE", Serve: s.sharing(version, s.unshare)}
	procs[ProcFreeAll] = oncrpc.Proc{Name: "FREE_ALL", Serve: s.freeAll}
	if version == 1 {
		procs = procs[:ProcGrantedRes+1]
	}
	return oncrpc.Program{Name: fmt.Sprint("nlm", version), Number: Program, Version: version, Procs: procs}
}

func ignore(*oncrpc.Call) oncrpc.Accept { return oncrpc.Success }

// named is a lock of a call: of which file, for whom, which bytes.
type named struct {
	file  advisory.File
	owner advisory.Owner
	span  advisory.Range
}

// name finds out what a call is about, or returns a status.
func (s *Service) name(c *oncrpc.Call, version uint32, l *lock) (n named, f nfs3.File, status uint32) {
	if len(l.caller) > maxKept || len(l.owner) > maxKept {
		return n, f, Failed
	}
	f, status = s.find(c, l.handle)
	if status != Granted {
		return n, f, status
	}
	span, ok := l.span(version)
	if !ok {
		return n, f, TooBig
	}
	host := advisory.Host{Addr: exports.Address(c.Peer), Name: string(l.caller)}
	return named{fileOf(f), advisory.Owner{Host: host, ID: process(l.svid, l.owner)}, span}, f, Granted
}

// find finds the file of a handle, or returns a status. Where the export asks for another connection, the call is
// denied as one of NFS is.
func (s *Service) find(c *oncrpc.Call, handle []byte) (f nfs3.File, status uint32) {
	f, err := s.files(c, handle)
	switch {
	case err == exports.ErrTooWeak:
		c.Deny = oncrpc.AuthTooWeak
		return f, Failed
	case err != nil:
		return f, s.statusOf(err)
	}
	return f, Granted
}

func fileOf(f nfs3.File) advisory.File {
	return advisory.File{Volume: f.Volume, Ino: f.Handle.Ino, Gen: f.Handle.Gen}
}

// usable returns a status unless the caller may lock a file: one that is a regular file, and that the caller owns, or
// may read or write. Whoever may not write could still keep out who may: only what an export denies is kept from it.
func (s *Service) usable(f nfs3.File, exclusive bool) uint32 {
	const want = nfs3.AccessRead | nfs3.AccessModify | nfs3.AccessExtend
	may, attr, err := f.FS.Access(f.Cred, f.Handle, want)
	switch {
	case err != nil:
		return s.statusOf(err)
	case attr.Type != fs.Regular:
		return Failed
	case exclusive && f.ReadOnly:
		return ReadOnly
	case may == 0 && f.Cred.UID != attr.UID:
		return Failed
	}
	return Granted
}

// statusOf is the status for an error of a file.
func (s *Service) statusOf(err error) uint32 {
	switch {
	case errors.Is(err, fs.ErrStale), errors.Is(err, fs.ErrBadHandle):
		return Stale
	case errors.Is(err, fs.ErrROFS):
		return ReadOnly
	}
	var errno fs.Errno
	if !errors.As(err, &errno) && !errors.Is(err, fs.ErrClosed) {
		s.log.Error("a lock failed", "err", err)
	}
	return Failed
}

// statuses are those of the table's answers.
var statuses = map[advisory.Answer]uint32{
	advisory.Granted: Granted, advisory.Denied: Denied, advisory.Blocked: Blocked, advisory.NoRoom: DeniedRoom,
}

func (s *Service) test(c *oncrpc.Call, version uint32, a *lockArgs) result {
	n, f, status := s.name(c, version, &a.lock)
	if status == Granted {
		status = s.usable(f, false)
	}
	if v := s.kept[f.Volume]; status == Granted && v != nil && v.Grace() {
		status = DeniedGrace // who had it before may not have said so yet
	}
	if status != Granted {
		return result{status: status, holder: none(status)}
	}
	answer, holder := s.table.Test(n.file, n.owner, n.span, a.exclusive)
	return result{statuses[answer], &holder}
}

// none is the holder in a result that is denied for no lock.
func none(status uint32) *advisory.Conflict {
	if status == Denied {
		return new(advisory.Conflict)
	}
	return nil
}

func (s *Service) lock(c *oncrpc.Call, version uint32, a *lockArgs) result {
	n, f, status := s.name(c, version, &a.lock)
	if status == Granted {
		status = s.usable(f, a.exclusive)
	}
	if status != Granted {
		return result{status: status}
	}
	release, status := s.admit(c, f, a.reclaim)
	if status != Granted {
		return result{status: status}
	}
	defer release()
	var g *grant
	if a.block {
		g = newGrant(c, version, a)
	}
	answer, _ := s.table.Lock(n.file, n.owner, n.span, a.exclusive, a.block, g)
	if answer == advisory.Blocked {
		s.log.Debug("a client waits for a lock", "client", g.at, "host", n.owner.Name)
	}
	return result{status: statuses[answer]}
}

// cancel is answered as granted when there was something to cancel (X/Open C702, NLM_CANCEL).
func (s *Service) cancel(c *oncrpc.Call, version uint32, a *lockArgs) result {
	n, _, status := s.name(c, version, &a.lock)
	if status == Granted && !s.table.Cancel(n.file, n.owner, n.span, a.exclusive) {
		status = Denied
	}
	return result{status: status}
}

// unlock is granted for bytes that were not locked, too.
func (s *Service) unlock(c *oncrpc.Call, version uint32, a *lockArgs) result {
	n, _, status := s.name(c, version, &a.lock)
	if status == Granted {
		status = statuses[s.table.Unlock(n.file, n.owner, n.span)]
	}
	return result{status: status}
}

// granted is for clients: this server waits for no lock.
func (s *Service) granted(*oncrpc.Call, uint32, *lockArgs) result { return result{status: Denied} }

// sharing is SHARE or UNSHARE.
func (s *Service) sharing(version uint32, do func(*oncrpc.Call, *shareArgs) uint32) func(*oncrpc.Call) oncrpc.Accept {
	return func(c *oncrpc.Call) oncrpc.Accept {
		a := getShare(&c.Args)
		if !c.Args.Ok() {
			return oncrpc.GarbageArgs
		}
		c.Status = onWire(do(c, &a), version)
		c.Reply.Opaque(a.cookie)
		c.Reply.Uint32(c.Status)
		c.Reply.Uint32(0) // the sequence number, which nobody uses
		return oncrpc.Success
	}
}

// whose is the owner of a reservation and its file.
func (s *Service) whose(c *oncrpc.Call, a *shareArgs) (o advisory.Owner, f nfs3.File, status uint32) {
	if len(a.caller) > maxKept || len(a.owner) > maxKept {
		return o, f, Failed
	}
	f, status = s.find(c, a.handle)
	if status != Granted {
		return o, f, status
	}
	host := advisory.Host{Addr: exports.Address(c.Peer), Name: string(a.caller)}
	return advisory.Owner{Host: host, ID: string(append([]byte{shareOwner}, a.owner...))}, f, Granted
}

func (s *Service) share(c *oncrpc.Call, a *shareArgs) uint32 {
	o, f, status := s.whose(c, a)
	if status == Granted {
		status = s.usable(f, a.access&2 != 0)
	}
	if status != Granted {
		return status
	}
	release, status := s.admit(c, f, a.reclaim)
	if status != Granted {
		return status
	}
	defer release()
	return statuses[s.table.Share(fileOf(f), o, a.reservation())]
}

func (s *Service) unshare(c *oncrpc.Call, a *shareArgs) uint32 {
	o, f, status := s.whose(c, a)
	if status == Granted {
		s.table.Unshare(fileOf(f), o)
	}
	return status
}

// local is the address that the caller called, or nil.
func local(c *oncrpc.Call) net.IP {
	if a, ok := c.Local.(*net.TCPAddr); ok {
		return a.IP
	}
	return nil
}
