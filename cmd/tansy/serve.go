package main

import (
	"context"
	"errors"
	"expvar" // with the profiler, served only with --debug-listen
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"tansy/disk"
	"tansy/disk/rbd"
	"tansy/nfs/exports"
	"tansy/nfs/groups"
	"tansy/nfs/server"
	"tansy/ops/daemon"
	"tansy/ops/status"
)

// drain is how long a stopping server waits for the requests in flight, and for peers that
// take their replies slowly. (Those that do not take them at all it closes sooner.)
const drain = 10 * time.Second

// lastWords is how long a server that ended waits for who reads its log.
const lastWords = 500 * time.Millisecond

func serve() (*flagSet, action) {
	f, o := serveFlags()
	return f, func(args []string) int {
		if _, code, done := parse(f, args, 0, 0); done {
			return code
		}
		o.settle(f)
		if wrong := o.wrong(); wrong != "" {
			return misused(f, wrong)
		}
		level := slog.LevelInfo
		if o.verbose {
			level = slog.LevelDebug
		}
		log, err := daemon.NewLog(os.Stderr, o.logFormat, level)
		if err != nil {
			return misused(f, err.Error())
		}
		// From here on nothing waits for who reads standard error and output, nor ends with them.
		signal.Ignore(syscall.SIGPIPE)
		defer log.Close(lastWords)
		out := daemon.NewOutput(announcements{os.Stdout, log.Logger}, nil)
		defer out.Close(lastWords)
		return newServing(o, log, out).run()
	}
}

// serving is a server, from its options to its end. What comes up is there from the step of run that makes it.
type serving struct {
	options *serveOptions
	log     *daemon.Log
	out     *daemon.Output
	volumes []*volume // one for each of the options', in their order

	policies    []*exports.Policy // of each volume; nil: everybody may do everything
	reloads     []reload          // what SIGHUP reads again
	hangup      chan os.Signal
	warnMissing func() // of exports that are not in their volumes

	port     *ports
	sockets  []net.Listener // that NFS is served on
	status   *status.Status // nil: none
	server   *server.Server
	unlisted func() // ends what makes the server found

	stop    context.Context // ends with a signal, or when no volume is left
	lost    context.CancelCauseFunc
	release func()         // of the signals
	beside  sync.WaitGroup // what runs until stop, and looks at the volumes
}

// announcements is where a server says the addresses that it listens on. What is lost there goes to the log.
type announcements struct {
	io.Writer
	log *slog.Logger
}

// Write implements io.Writer.
func (a announcements) Write(b []byte) (int, error) {
	n, err := a.Writer.Write(b)
	if err != nil {
		a.log.Warn("standard output takes nothing", "err", err, "lost", strings.TrimSpace(string(b)))
	}
	return n, err
}

func newServing(o *serveOptions, log *daemon.Log, out *daemon.Output) *serving {
	s := &serving{
		options: o, log: log, out: out, warnMissing: func() {}, hangup: make(chan os.Signal, 1),
		lost: func(error) {}, release: func() {}, unlisted: func() {},
	}
	s.options.find.log = log.Logger
	for _, p := range o.volumes.list {
		v := &volume{place: p, log: log.Logger}
		if len(o.volumes.list) > 1 {
			v.log = log.With("volume", p.path)
		}
		s.volumes = append(s.volumes, v)
	}
	s.policies = make([]*exports.Policy, len(s.volumes))
	return s
}

// errToldToStop ends a server that was told so before there was anything to do.
var errToldToStop = errors.New("told to stop")

// run serves until a signal, or until no volume is left, and returns the exit code.
func (s *serving) run() int {
	tune(s.options.heap())
	signal.Notify(s.hangup, syscall.SIGHUP) // one that comes before the server listens is heard then
	defer s.giveUp()
	for _, step := range []func() error{
		s.readExports,      // first: a mistake in the file costs nothing yet
		s.readCertificates, // the same
		s.findMountPoint,
		s.own,        // which may take as long as another server lives
		s.bind,       // before volumes: a port in use should not cost a new one, or a recovery
		s.openStatus, // before volumes: it answers while they are recovered
		s.open,
		s.mount,    // before clients come, for a mounted volume is served through its mount
		s.listen,   // when all that is served is there
		s.announce, // last: whoever is told may come at once
	} {
		err := step()
		if err == errToldToStop {
			return exitOK
		}
		if err != nil {
			return s.fail(errors.Join(err, s.closeVolumes()))
		}
	}
	idle, err := serveUntil(s.stop, s.sockets, s.server, s.log.Logger, drain, s.unlisted)
	return s.end(idle, err)
}

// fail prints an error, and returns its exit code.
func (s *serving) fail(err error) int {
	s.volumes[0].awaitEnd()
	fmt.Fprint(s.log, worded("serve", err))
	return codeOf(err)
}

// warn tells what is odd and keeps nothing from being served.
func (s *serving) warn(err error) { s.log.Warn(err.Error()) }

// readExports reads who may mount what.
func (s *serving) readExports() error {
	if s.options.exportsFile == "" {
		return nil
	}
	source := exportsSource{s.options.exportsFile, s.options.volumes.paths(), s.warn, map[string]bool{}, &s.options.tls}
	tables, err := source.read()
	if err != nil {
		return err
	}
	for i, t := range tables {
		s.policies[i] = exports.NewPolicy(t)
	}
	s.warnMissing = func() { source.warnMissing(tables, s.volumes) }
	s.reloads = append(s.reloads, reload{s.options.exportsFile, func() error {
		tables, err := source.read()
		for i, t := range tables {
			s.policies[i].Set(t)
		}
		if err == nil {
			source.warnMissing(tables, s.volumes)
		}
		return err
	}})
	return nil
}

// readCertificates reads what protects connections.
func (s *serving) readCertificates() error {
	if err := s.options.tls.open(s.log.Logger); err != nil {
		return err
	}
	if store := s.options.tls.store; store != nil {
		s.reloads = append(s.reloads, reload{s.options.tls.files.Cert, store.Reload})
	}
	return nil
}

// findMountPoint sees that there is a directory for --mount.
func (s *serving) findMountPoint() error { return s.options.local.find() }

// own makes a volume on Ceph ours.
func (s *serving) own() error {
	first := s.volumes[0]
	if !rbd.IsName(first.image) {
		return nil
	}
	standing := func(bool) {}
	if s.options.statusAt.at != "" { // a standby answers probes, too
		if err := s.startStatus(); err != nil {
			return err
		}
		standing = s.status.StandBy
	}
	taken := func(err error) {
		fmt.Fprintf(s.log, "tansy serve: the volume is not ours any more: %v\n", err)
		s.log.Close(lastWords)
		os.Exit(exitTaken) // without a reply to what is in progress: the successor gets it again
	}
	err := s.options.heir.own(first, s.options.readOnly, standing, taken)
	if errors.Is(err, context.Canceled) {
		return errToldToStop
	}
	return err
}

// bind takes the ports. Until the volumes are open, connections are refused rather than kept waiting.
func (s *serving) bind() (err error) {
	if s.port, err = takePorts(s.options.listen.at); err != nil {
		return err
	}
	if err := s.options.find.listen(s.port.addr()); err != nil {
		return err
	}
	if s.options.exportsFile == "" && !s.options.tls.keepsOut() {
		warnOpen(s.log.Logger, s.port.addr())
	}
	answers := s.options.statusAt.at != "" || s.port.status != nil
	needed := descriptorsNeeded(len(s.volumes), answers, s.options.profilingAt.at != "", s.options.find.own,
		s.options.locks.on, s.options.locks.on) // twice: calls to clients, and to those that had locks at the start
	if warning := s.options.limit.fit(descriptorLimit(), needed); warning != "" {
		s.log.Warn(warning)
	}
	return nil
}

// openStatus answers how the server does, on what the service manager listens on for that, or on the address given; and
// what it spends its time on, on another.
func (s *serving) openStatus() error {
	if s.port.status != nil {
		s.status = newStatus(s.port.status, s.statusConfig(), s.options.tls.page())
	} else if s.options.statusAt.at != "" && s.status == nil {
		if err := s.startStatus(); err != nil {
			return err
		}
	}
	if s.port.own == nil && s.options.listening {
		s.log.Warn("--listen means nothing: the service manager listens", "listen", s.options.listen.String())
	}
	if s.options.profilingAt.at == "" {
		return nil
	}
	return startProfiler(s.options.profilingAt.at, s.options.statusHosts, s.log)
}

// startStatus answers on the address given.
func (s *serving) startStatus() (err error) {
	s.status, err = startStatus(s.out, s.options.statusAt.at, s.statusConfig(), s.options.tls.page())
	return err
}

func (s *serving) statusConfig() status.Config {
	return statusConfig(&s.options.volumes, s.options.statusHosts, s.log)
}

// open opens the volumes, and then what looks into them.
func (s *serving) open() error {
	daemon.Notify("STATUS=opening the volume")
	if err := s.options.opening(s.warn).openAll(s.volumes); err != nil {
		return err
	}
	s.warnMissing()
	if first := s.volumes[0]; first.owner != nil {
		first.owner.Watch(first.fs.Look)
	}
	expvar.Publish("disk", expvar.Func(func() any { return deviceCounts(s.volumes) }))
	expvar.Publish("collector", expvar.Func(collector))
	return nil
}

// deviceCounts are those of all volumes together.
func deviceCounts(volumes []*volume) (all disk.Counts) {
	for _, v := range volumes {
		if v.fs != nil {
			all = all.Plus(v.stats.Counts())
		}
	}
	return all
}

// mount makes the server, with the volumes, of which one may be mounted here, too. From here on a signal stops it.
func (s *serving) mount() error {
	var signals context.Context
	signals, s.release = signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(signals, s.release) // a second signal does not wait for anything
	s.stop, s.lost = context.WithCancelCause(signals)
	cfg := server.Config{Log: s.log.Logger, RootSquash: s.options.rootSquash, RPC: s.options.limit.config(),
		Locks: s.options.locks.config(), NoLists: s.options.noACL}
	cfg.Transports = s.options.tls.transports
	if store := s.options.tls.store; store != nil {
		cfg.RPC.TLS = store.Config
	}
	if s.options.manageGids {
		cfg.Groups = groups.New(nil).Of
	}
	for i, v := range s.volumes {
		served := v.served()
		served.Exports = s.policies[i]
		if v.fs != nil && !s.options.readOnly {
			served.Notes = v.fs
		}
		cfg.Volumes = append(cfg.Volumes, served)
	}
	if first := s.volumes[0]; first.owner != nil {
		cfg.RPC.MayReply = first.mayReply
	}
	if len(s.volumes) == 1 {
		files, err := s.options.local.start(s.volumes[0], s.options.readOnly, s.options.locks.on)
		if err != nil {
			return err
		}
		cfg.Volumes[0].FS = files
	}
	s.server = server.New(cfg)
	s.options.local.lockBeside(s.server.LocalLocks(cfg.Volumes[0].ID))
	expvar.Publish("locks", expvar.Func(func() any { return s.server.Locks() }))
	watchAll(s.stop, s.volumes, s.server, s.lost)
	return nil
}

// listen lets clients connect, who wait until serveUntil, and makes the server found.
func (s *serving) listen() (err error) {
	if s.sockets, err = s.port.listen(); err != nil {
		return err
	}
	if err := s.options.heir.activate(s.stop, s.sockets[0].Addr(), s.volumes[0].image); err != nil {
		return err
	}
	go reloadOnHangup(s.stop, s.hangup, s.log.Logger, s.reloads...)
	unlisted, err := s.options.find.start(s.server, s.sockets[0])
	if err == nil {
		s.unlisted = unlisted
	}
	return err
}

// announce says that the server serves, and begins what runs beside it.
func (s *serving) announce() error {
	if s.status != nil {
		s.status.Serve(sources(s.sockets[0].Addr(), s.server, s.volumes))
		context.AfterFunc(s.stop, s.status.Stop)
	}
	s.options.local.print(s.out, s.volumes[0])
	for _, l := range s.sockets {
		printMount(s.out, l.Addr(), exportedPaths(s.volumes, s.policies), s.options.tls.mountOption(), s.options.locks.on)
	}
	s.beside.Go(func() { balance(s.stop, s.options.heap(), s.volumes) })
	s.beside.Go(func() { daemon.Watchdog(s.stop, func() { alive(s.volumes) }) })
	return nil
}

// serveUntil serves on ls until stop is done, then finishes what is in flight, for as long as
// drain. After that it closes all connections, and waits as long again for operations that
// still run. If that was too short, idle is false: the file system may not be closed. The
// service manager is told when it serves, and when it stops. ends end what goes with the server, before it.
func serveUntil(stop context.Context, ls []net.Listener, s *server.Server, log *slog.Logger, drain time.Duration,
	ends ...func()) (idle bool, err error) {
	served := make(chan error, len(ls))
	for _, l := range ls {
		go func() { served <- s.Serve(l) }()
	}
	if e := daemon.Notify("READY=1\nSTATUS=serving"); e != nil {
		log.Warn("the service manager cannot be told that the server serves", "err", e)
	}
	select {
	case err = <-served:
	case <-stop.Done():
		log.Info("stopping")
	}
	daemon.Notify("STOPPING=1\nSTATUS=finishing what is in progress")
	for _, end := range ends {
		end()
	}
	for range 2 {
		ctx, done := context.WithTimeout(context.Background(), drain)
		late := s.Shutdown(ctx)
		done()
		if late == nil {
			return true, err
		}
	}
	return false, errors.Join(err, fmt.Errorf("requests still in flight after %v were cut off; "+
		"the next start recovers the volume, as after a crash", 2*drain))
}

// end ends what is left when the server has ended (serveUntil: first what makes it found, so that nobody new comes,
// then the requests in progress), and returns the exit code. failed is why it ended, or nil; idle: no request uses the
// volumes.
func (s *serving) end(idle bool, failed error) int {
	code := exitOK
	for _, step := range []func() error{
		s.endLooks,                     // which look at the volumes, and wait for nothing but the end
		s.endStatus,                    // which asks the volumes
		func() error { return failed }, // told before what may follow from it
		func() error { return s.endVolumes(idle) }, // last, for all else uses them
	} {
		if err := step(); err != nil {
			code = s.fail(err)
		}
	}
	code = s.verdict(code)
	s.volumes[0].awaitEnd()
	return code
}

// endLooks ends all that waits for stop, and waits for what looks at the volumes.
func (s *serving) endLooks() error {
	s.lost(nil)
	s.beside.Wait()
	return nil
}

// endStatus ends the answers how the server does.
func (s *serving) endStatus() error {
	if s.status != nil {
		s.status.Stop()
	}
	return nil
}

// endVolumes closes the volumes, if they are idle; else they may not be closed, and the next start recovers them.
func (s *serving) endVolumes(idle bool) error {
	if idle {
		return s.closeVolumes()
	}
	s.options.local.end(s.volumes[0])
	return nil
}

// closeVolumes unmounts what is mounted, and closes the volumes unless that is in use further.
func (s *serving) closeVolumes() (err error) {
	if !s.options.local.end(s.volumes[0]) {
		return nil
	}
	for _, v := range s.volumes {
		err = errors.Join(err, v.close())
	}
	return err
}

// verdict is the exit code, which is code unless volumes have failed meanwhile.
func (s *serving) verdict(code int) int {
	for _, v := range s.volumes {
		err := v.failed.Load()
		switch {
		case err == nil:
		case errors.Is(*err, disk.ErrLost):
			s.fail(*err)
			return exitLost // and nothing of it can be made durable
		default:
			code = exitFailure
			if *err == context.Cause(s.stop) {
				s.fail(*err)
			}
		}
	}
	return code
}

// giveUp lets go of what the process has beside volumes, in the reverse of the order in which it was taken.
func (s *serving) giveUp() {
	s.lost(nil)
	s.release()
	s.options.find.close()
	if s.port != nil {
		s.port.close()
	}
}
