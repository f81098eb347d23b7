package main

import (
	"context"
	"errors"
	"expvar" // with the profiler, served only with --debug-listen
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"os/signal"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"tansy/disk"
	"tansy/disk/rbd"
	tansyfs "tansy/fs"
	"tansy/journal"
	"tansy/nfs/exports"
	"tansy/nfs/groups"
	"tansy/nfs/portmap"
	"tansy/nfs/server"
	"tansy/ops/daemon"
	"tansy/ops/status"
)

// overhead is what the server needs besides its block cache: requests in
// flight, blocks not yet written home, the Go run time (bytes).
const overhead = 64 << 20

// slack is the part of overhead that Go's memory limit does not see or may
// overshoot: the program itself, and what is allocated while the garbage
// collector runs (bytes).
const slack = 19 << 20

// perVolume is what each volume but the first needs besides its cache: blocks not yet written
// home (bytes).
const perVolume = 32 << 20

// minCache is the least block cache: no smaller one is made.
var minCache = byteSize(4 << 20)

// defaultCache is the size of the block cache, for so much memory; 0: not known.
func defaultCache(memory uint64) byteSize {
	if memory == 0 {
		return 64 << 20
	}
	return byteSize(memory / 4 &^ (1<<20 - 1))
}

// divide is what of a volume's cache is for blocks that are home, and what for those in the log that are not
// yet, in bytes: these get an eighth, but no more than they have use for, and no less than the journal needs. Half
// as much again is for blocks that are home and not durable yet.
func divide(cache uint64) (clean, pinned uint64) {
	pinned = min(cache/8, journal.DefaultPinnedBytes)
	return cache - pinned - pinned/2, max(pinned, journal.MinPinnedBytes)
}

// drain is how long a stopping server waits for the requests in flight, and for peers that
// take their replies slowly. (Those that do not take them at all it closes sooner.)
const drain = 10 * time.Second

// lastWords is how long a server that ended waits for who reads its log.
const lastWords = 500 * time.Millisecond

func serve(args []string) int {
	f := newFlags("serve", "[flags]", `  tansy serve                                   export ./tansy.img (made if missing, 10G, sparse) on 127.0.0.1:2049
  tansy serve --volume /dev/sdb --listen :2049  export a block device to everybody who can reach this machine
  tansy serve --listen 127.0.0.1:0              on any free port; the mount command is printed
  tansy serve --volume d.img --create --size 50G --preallocate
                                                an image that is made if it is missing, and takes all its room then
  tansy serve --listen :2049 --exports /etc/tansy.exports
                                                only to whom the file names (tansy exports --help)
  tansy serve --scrub 20M                       look for damage in the background: all that is in use is read, once a week
  tansy serve --volume /srv/a.img:/a --volume /dev/sdb:/b
                                                two volumes, which clients mount as HOST:/a and HOST:/b
  tansy serve --volume nbd+unix:///data?socket=/run/nbd.sock
                                                an export of an NBD server (docs/nbd.md)
  tansy serve --volume 'rbd:pool/image?id=tansy' --listen :2049 --standby --on-active 'ip address add 192.0.2.9/24 dev eth0'
                                                an image of Ceph, on each of two hosts: one serves, the other takes over (docs/standby.md)
  tansy serve --mount /mnt --mount-options allow_other
                                                a file system of this machine, too (Linux, macOS; docs/mount.md)
  tansy serve --status 127.0.0.1:9049           look at http://127.0.0.1:9049/ how it does

Exit code 3: the volume was deleted, renamed, replaced or cut while it was served, or its device
went away. Nothing was acknowledged after that was seen, which takes a second at most. Exit code 1: among other things, the
connection to the NBD server was lost, and a new start recovers the volume when that is there again. Exit code 75: a volume on Ceph
went to another server, or may have; nothing was answered since. One of several volumes that fails, or cannot be opened, does not stop the others.
`)
	places := volumeList{list: []place{{"tansy.img", "/"}}}
	f.Var(&places, "volume", "a volume: an image `FILE`, a block device, an export of an NBD server as nbd://HOST:PORT/EXPORT or nbd+unix:///EXPORT?socket=PATH, or an image of Ceph as rbd:POOL/IMAGE[?id=USER&conf=FILE&keyring=FILE]; for several FILE:/PATH, each with another path to mount it by")
	size := byteSize(10 << 30)
	create := f.Bool("create", false, "make the image of a --volume that does not exist; "+
		"without --volume tansy.img is made in any case")
	ignoreFstab := f.Bool("ignore-fstab", false, ignoreFstabUsage)
	f.Var(&size, "size", "size of the image if it has to be made; an existing one keeps its size")
	preallocate := f.Bool("preallocate", false, "if the image has to be made, take all its room from the file system it lies on now")
	var root rootDir
	root.flags(f.FlagSet, " if the volume has to be made")
	listen := listenAddress("127.0.0.1:2049")
	f.Var(&listen, "listen",
		"address to serve NFS and MOUNT on, as `HOST:PORT`; :PORT is that of every interface, PORT that of 127.0.0.1")
	var cache byteSize
	f.Var(&cache, "cache", "size of the block cache; several volumes get an equal part each (default a quarter of the memory there is for the server)")
	interval := f.Duration("commit-interval", tansyfs.DefaultCommitInterval, "`TIME` after which what clients wrote UNSTABLE becomes durable though none of them has asked for it")
	var scrubs tansyfs.ScrubOptions
	f.Var((*byteSize)(&scrubs.Rate), "scrub", "read all that is in use from the device and check it, again and again, at most so many bytes per second of each volume, such as 20M; 0: only when tansy scrub asks for it")
	f.DurationVar(&scrubs.Every, "scrub-every", tansyfs.DefaultScrubEvery, "time from the start of a scrub to the start of the next, if --scrub is given")
	discard := discardMode("auto")
	f.Var(&discard, "discard", "give the room of removed files back to where each volume lies: `auto|on|off`; auto does for a sparse image, and not for a block device")
	readOnly := f.Bool("read-only", false, "refuse changes")
	rootSquash := f.Bool("root-squash", false, "treat user 0 and group 0 of the clients as nobody (65534)")
	exportsFile := f.String("exports", "", "`FILE` that says who may mount what, in the syntax of exports(5); SIGHUP reads it again (default: everybody everything)")
	manageGids := f.Bool("manage-gids", false, "take the groups of users from this host, not from the clients, which can name 16")
	var find finding
	f.BoolVar(&find.own, "portmapper", false, "be the port mapper of this host, too, so that clients need no port options (port 111 over TCP and UDP: needs root)")
	f.BoolVar(&find.hosts, "rpcbind", false, "register with the port mapper that runs on this host, until the end")
	f.UintVar(&find.port, "portmapper-port", portmap.Port, "`PORT` of the port mapper in both cases; clients look on 111")
	var heir succession
	heir.flags(f)
	var local localMount
	local.flags(f)
	var limit limits
	limit.flags(f.FlagSet)
	logFormat := f.String("log", "text", "format of the log on standard error: `text|json`")
	verbose := f.Bool("v", false, "log more")
	var statusNames hostNames
	f.Var(&statusNames, "status-host", "another `NAME` of this machine that requests to --status and --debug-listen may ask for, besides its "+
		"addresses, localhost, and its host name; may be given again")
	var statusListen, debugListen listenAddress
	f.Var(&statusListen, "status",
		"address for a page about the server, metrics and probes over HTTP, as `HOST:PORT` (none by default; keep it on loopback)")
	f.Var(&debugListen, "debug-listen",
		"address for Go's profiler over HTTP, as `HOST:PORT` (none by default; keep it on loopback)")
	if _, code, done := parse(f, args, 0, 0); done {
		return code
	}
	if listen == "" {
		return misused(f, "--listen is empty: give HOST:PORT")
	}
	if wrong := places.wrong(); wrong != "" {
		return misused(f, wrong)
	}
	if wrong := places.wrongToMake(*create, *readOnly); wrong != "" {
		return misused(f, wrong)
	}
	least := minCache * byteSize(len(places.list))
	if !given(f, "cache") {
		cache = max(defaultCache(memory()), least)
	}
	if cache < least {
		return misused(f, "a cache of less than "+least.String()+" is too small")
	}
	if m := memory(); m != 0 && uint64(cache) > m {
		return misused(f, fmt.Sprintf("a cache of %v is more than the memory there is for the server, %s", &cache, about(m)))
	}
	if wrong := heir.wrong(places.list); wrong != "" {
		return misused(f, wrong)
	}
	if wrong := local.wrong(places.list); wrong != "" {
		return misused(f, wrong)
	}
	if wrong := limit.wrong(); wrong != "" {
		return misused(f, wrong)
	}
	if *interval < time.Millisecond {
		return misused(f, "--commit-interval of less than 1ms")
	}
	if scrubs.Every <= 0 {
		return misused(f, "--scrub-every has to be more than 0: without --scrub there is none but by tansy scrub")
	}
	if find.own && find.hosts {
		return misused(f, "--portmapper is one of our own, and --rpcbind another one: give one of them")
	}
	if find.port > math.MaxUint16 {
		return misused(f, fmt.Sprintf("--portmapper-port %d is no port", find.port))
	}
	if *exportsFile != "" && *rootSquash {
		return misused(f, "--root-squash is an option in the file of --exports: give one of them")
	}
	level := slog.LevelInfo
	if *verbose {
		level = slog.LevelDebug
	}
	log, err := daemon.NewLog(os.Stderr, *logFormat, level)
	if err != nil {
		return misused(f, err.Error())
	}
	// From here on nothing waits for who reads standard error and output, nor ends with them.
	signal.Ignore(syscall.SIGPIPE)
	defer log.Close(lastWords)
	out := daemon.NewOutput(os.Stdout, nil)
	defer out.Close(lastWords)
	volumes := make([]*volume, len(places.list))
	for i, p := range places.list {
		volumes[i] = &volume{place: p, log: log.Logger}
		if len(volumes) > 1 {
			volumes[i].log = log.With("volume", p.path)
		}
	}
	fail := func(err error) int {
		volumes[0].awaitEnd()
		fmt.Fprintf(log, "tansy serve: %v\n", err)
		return codeOf(err)
	}
	clean, pinned := divide(uint64(cache) / uint64(len(places.list)))
	n := int64(len(places.list))
	heap := (n-1)*perVolume + n*int64(pinned) + overhead - slack + limit.memory() + local.memory() // the caches lie outside of what Go counts
	tune(heap)

	find.log = log.Logger
	policies := make([]*exports.Policy, len(volumes))
	var reloads []reload
	if *exportsFile != "" {
		source := exportsSource{*exportsFile, places.paths(), func(err error) { log.Warn(err.Error()) }, map[string]bool{}}
		tables, err := source.read()
		if err != nil {
			return fail(err)
		}
		for i, t := range tables {
			policies[i] = exports.NewPolicy(t)
		}
		reloads = append(reloads, reload{*exportsFile, func() error {
			tables, err := source.read()
			for i, t := range tables {
				policies[i].Set(t)
			}
			return err
		}})
	}

	var st *status.Status
	if first := volumes[0]; rbd.IsName(first.image) {
		standing := func(bool) {}
		if statusListen != "" { // a standby answers probes, too
			if st, err = startStatus(out, string(statusListen), statusConfig(&places, statusNames, log)); err != nil {
				return fail(err)
			}
			standing = st.StandBy
		}
		taken := func(err error) {
			fmt.Fprintf(log, "tansy serve: the volume is not ours any more: %v\n", err)
			log.Close(lastWords)
			os.Exit(exitTaken) // without a reply to what is in progress: the successor gets it again
		}
		if err := heir.own(first, *readOnly, standing, taken); err != nil {
			if errors.Is(err, context.Canceled) {
				return exitOK // told to stop before there was anything to do
			}
			return fail(err)
		}
	}

	// Take the port first: one in use should not cost a new volume, or a recovery. Until
	// the volume is open who connects is refused, and does not wait for it.
	port, err := takePorts(string(listen))
	if err != nil {
		return fail(err)
	}
	defer port.close()
	if err := find.listen(port.addr()); err != nil {
		return fail(err)
	}
	defer find.close()
	if *exportsFile == "" {
		warnOpen(log.Logger, port.addr())
	}
	needed := descriptorsNeeded(len(volumes), statusListen != "" || port.status != nil, debugListen != "", find.own)
	if warning := limit.fit(descriptorLimit(), needed); warning != "" {
		log.Warn(warning)
	}

	if port.status != nil {
		st = newStatus(port.status, statusConfig(&places, statusNames, log))
	} else if statusListen != "" && st == nil {
		if st, err = startStatus(out, string(statusListen), statusConfig(&places, statusNames, log)); err != nil {
			return fail(err)
		}
	}

	warn := func(err error) { log.Warn(err.Error()) }
	if port.own == nil && given(f, "listen") {
		log.Warn("--listen means nothing: the service manager listens", "listen", listen.String())
	}
	daemon.Notify("STATUS=opening the volume")
	how := opening{
		new: image{uint64(size), *preallocate, *ignoreFstab, warn}, create: (*create || !places.given) && !*readOnly,
		sized: given(f, "size"), root: root,
		readOnly: *readOnly, cache: clean, pinned: pinned, interval: *interval, scrub: scrubs, discard: discard,
	}
	if err := how.openAll(volumes); err != nil {
		return fail(err)
	}
	if o := volumes[0].owner; o != nil {
		o.Watch(volumes[0].fs.Look)
	}
	expvar.Publish("disk", expvar.Func(func() any { // of all volumes together
		var all disk.Counts
		for _, v := range volumes {
			if v.fs != nil {
				all = all.Plus(v.stats.Counts())
			}
		}
		return all
	}))
	expvar.Publish("collector", expvar.Func(collector))
	if debugListen != "" {
		if err := startProfiler(string(debugListen), statusNames, log); err != nil {
			return fail(err)
		}
	}
	stop, release := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer release()
	context.AfterFunc(stop, release) // a second signal does not wait for anything
	stop, lost := context.WithCancelCause(stop)
	defer lost(nil)
	var groupsOf func(uid uint32) []uint32
	if *manageGids {
		groupsOf = groups.New(nil).Of
	}
	closeAll := func() (err error) {
		if !local.end(volumes[0]) {
			return nil
		}
		for _, v := range volumes {
			err = errors.Join(err, v.close())
		}
		return err
	}
	cfg := server.Config{Log: log.Logger, RootSquash: *rootSquash, Groups: groupsOf, RPC: limit.config()}
	for i, v := range volumes {
		served := v.served()
		served.Exports = policies[i]
		cfg.Volumes = append(cfg.Volumes, served)
	}
	if volumes[0].owner != nil {
		cfg.RPC.MayReply = volumes[0].mayReply
	}
	if len(volumes) == 1 {
		if cfg.Volumes[0].FS, err = local.start(volumes[0], *readOnly); err != nil {
			return fail(errors.Join(err, closeAll()))
		}
	}
	s := server.New(cfg)
	watchAll(stop, volumes, s, lost)
	ls, err := port.listen()
	if err != nil {
		return fail(errors.Join(err, closeAll()))
	}
	if err := heir.activate(ls[0].Addr(), volumes[0].image); err != nil {
		return fail(errors.Join(err, closeAll()))
	}
	reloadOnHangup(stop, log.Logger, reloads...)
	endFinding, err := find.start(s, ls[0])
	if err != nil {
		return fail(errors.Join(err, closeAll()))
	}
	if st != nil {
		st.Serve(sources(ls[0].Addr(), s, volumes))
		context.AfterFunc(stop, st.Stop)
	}
	local.print(out, volumes[0])
	for _, l := range ls {
		printMount(out, l.Addr(), exportedPaths(volumes, policies))
	}
	var watchdog sync.WaitGroup
	watchdog.Go(func() { balance(stop, heap, volumes) })
	watchdog.Go(func() { daemon.Watchdog(stop, func() { alive(volumes) }) })
	idle, err := serveUntil(stop, ls, s, log.Logger, drain, endFinding)
	lost(nil) // it ends everything that waits for stop
	watchdog.Wait()
	if st != nil {
		st.Stop() // before the volumes are closed
	}
	code := exitOK
	if err != nil {
		code = fail(err)
	}
	if idle { // else they may not be closed
		if err := closeAll(); err != nil {
			code = fail(err)
		}
	} else {
		local.end(volumes[0])
	}
	for _, v := range volumes {
		if err := v.failed.Load(); err != nil && errors.Is(*err, disk.ErrLost) {
			fail(*err)
			return exitLost // and nothing of it can be made durable
		} else if err != nil {
			code = exitFailure
			if *err == context.Cause(stop) {
				fail(*err)
			}
		}
	}
	volumes[0].awaitEnd()
	return code
}

// serveUntil serves on ls until stop is done, then finishes what is in flight, for as long as
// drain. After that it closes all connections, and waits as long again for operations that
// still run. If that was too short, idle is false: the file system may not be closed. The
// service manager is told when it serves, and when it stops. ends end what goes with the server, before it.
func serveUntil(stop context.Context, ls []net.Listener, s *server.Server, log *slog.Logger, drain time.Duration, ends ...func()) (idle bool, err error) {
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
	return false, errors.Join(err, fmt.Errorf("requests still in flight after %v were cut off; the next start recovers the volume, as after a crash", 2*drain))
}

// exportedPaths are what can be mounted: of each volume its first export.
func exportedPaths(volumes []*volume, policies []*exports.Policy) (all []string) {
	for i, v := range volumes {
		if v.fs == nil { // it could not be opened
			continue
		}
		if policies[i] == nil {
			all = append(all, v.path)
		} else if list := policies[i].Table().Exports(); len(list) > 0 {
			all = append(all, path.Join(v.path, list[0].Path))
		}
	}
	return all
}

// printMount tells how to mount these paths.
func printMount(w io.Writer, addr net.Addr, paths []string) {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			host = "SERVER"
		}
	}
	how := ""
	for _, p := range paths {
		how += mountCommands(host, port, p)
	}
	if how == "" {
		how = "Nothing is exported.\n"
	}
	fmt.Fprintf(w, "listening on %s\n\n%s\nStop with Ctrl-C or SIGTERM.\n", addr, how)
}

// mountCommands are the commands that mount a path. There is no lock protocol: with
// these options the client keeps its locks to itself (macOS's nolocks would refuse them).
func mountCommands(host, port, path string) string {
	linux := "tcp"
	if strings.Contains(host, ":") { // an IPv6 address
		host, linux = "["+host+"]", "proto=tcp6" // there plain tcp means IPv4
	}
	from := quoted(host + ":" + path)
	ports := fmt.Sprintf("port=%s,mountport=%s", port, port)
	return fmt.Sprintf(`Linux:  sudo mount -t nfs -o vers=3,%s,%s,nolock,hard %s /mnt
macOS:  sudo mount -t nfs -o vers=3,tcp,%s,locallocks,hard,resvport,nfc %s /private/mnt
`, linux, ports, from, ports, from)
}
