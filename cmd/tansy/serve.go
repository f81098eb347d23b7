package main

import (
	"context"
	"errors"
	"expvar" // with the profiler, served only with --debug-listen
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	_ "net/http/pprof" // served only with --debug-listen
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"tansy/disk"
	tansyfs "tansy/fs"
	"tansy/journal"
	"tansy/server"
)

// overhead is what the server needs besides its block cache: requests in
// flight, blocks not yet written home, the Go run time (bytes).
const overhead = 64 << 20

// slack is the part of overhead that Go's memory limit does not see or may
// overshoot: the program itself, and what is allocated while the garbage
// collector runs (bytes).
const slack = 20 << 20

// minCache is the least block cache: no smaller one is made.
var minCache = byteSize(4 << 20)

// drain is how long a stopping server waits for the requests in flight.
const drain = 10 * time.Second

func serve(args []string) int {
	f := newFlags("serve", "[flags]", `  tansy serve                                   export ./tansy.img (made if missing, 10G, sparse) on 127.0.0.1:2049
  tansy serve --volume /dev/sdb --listen :2049  export a block device to everybody who can reach this machine
  tansy serve --listen 127.0.0.1:0              on any free port; the mount command is printed
  tansy serve --volume d.img --size 50G --preallocate
                                                a new image takes all its room now

Exit code 3: the volume was deleted, renamed, replaced or cut while it was served, or its device
went away. Nothing was acknowledged after that was seen, which takes a second at most.
`)
	volume := f.String("volume", "tansy.img", "the volume: an image file or a block device")
	size := byteSize(10 << 30)
	f.Var(&size, "size", "size of the image if it has to be made; an existing one keeps its size")
	preallocate := f.Bool("preallocate", false, "if the image has to be made, take all its room from the file system it lies on now")
	var root rootDir
	root.flags(f, " if the volume has to be made")
	listen := f.String("listen", "127.0.0.1:2049", "address to serve NFS and MOUNT on")
	cache := byteSize(64 << 20)
	f.Var(&cache, "cache", "size of the block cache")
	readOnly := f.Bool("read-only", false, "refuse changes")
	rootSquash := f.Bool("root-squash", false, "treat user 0 and group 0 of the clients as nobody (65534)")
	var limit limits
	limit.flags(f)
	logFormat := f.String("log", "text", "format of the log on standard error: text or json")
	verbose := f.Bool("v", false, "log more")
	debugListen := f.String("debug-listen", "", "address for Go's profiler over HTTP (none by default; keep it on loopback)")
	if _, code, done := parse(f, args, 0, 0); done {
		return code
	}
	log, err := newLogger(*logFormat, *verbose)
	if err != nil {
		return misused(f, err.Error())
	}
	if cache < minCache {
		return misused(f, "a cache of less than "+minCache.String()+" is too small")
	}
	if m := memory(); m != 0 && uint64(cache) > m {
		return misused(f, fmt.Sprintf("a cache of %v is more than the memory of this machine, %s", &cache, about(m)))
	}
	if wrong := limit.wrong(); wrong != "" {
		return misused(f, wrong)
	}
	if *volume == "" {
		return misused(f, "--volume is empty: give an image file or a block device")
	}
	runtime.MemProfileRate = 8 << 20 // enough; each sample walks a stack, and buffers are large
	debug.SetMemoryLimit(int64(cache) + overhead - slack + limit.memory())
	if os.Getenv("GOGC") == "" {
		// Up to that limit memory is there to be used. In a stream of large writes little is
		// alive: to collect whenever the heap has doubled would be a hundred times a second.
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMAXPROCS") == "" {
		// One more than there are CPUs for us: a thread that waits for the device keeps
		// its share of the scheduler for a while, and the others should not idle meanwhile.
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}

	// Listen first: a port in use should not cost a new volume, or a recovery.
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		return fail("serve", err)
	}
	defer l.Close()

	warn := func(err error) { log.Warn(err.Error()) }
	if _, err := os.Stat(*volume); errors.Is(err, fs.ErrNotExist) {
		if *readOnly {
			return fail("serve", err)
		}
		i := image{uint64(size), *preallocate, warn}
		var o tansyfs.MkfsOptions
		root.apply(&o)
		if err := i.make(*volume, o); err != nil {
			return fail("serve", err)
		}
		log.Info("made a new volume", "volume", *volume, "size", size.String())
	}
	d, err := disk.OpenFile(*volume, disk.FileOptions{ReadOnly: *readOnly, Warn: warn})
	if err != nil {
		return fail("serve", err)
	}
	if has := d.Size() * disk.BlockSize; given(f, "size") && has != uint64(size) {
		warn(fmt.Errorf("%s exists and keeps its size of %v: --size %v is for a new image", *volume, about(has), &size))
	}
	stats := disk.NewStats(d)
	expvar.Publish("disk", expvar.Func(func() any { return stats.Counts() }))
	v, err := tansyfs.Open(stats, tansyfs.Options{CacheBytes: uint64(cache), ReadOnly: *readOnly, Log: log})
	if err != nil {
		d.Close()
		return fail("serve", fmt.Errorf("%s: %w%s", *volume, err, advice(err)))
	}
	if *debugListen != "" {
		go func() { log.Error("profiler", "err", http.ListenAndServe(*debugListen, nil)) }()
	}
	stop, release := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer release()
	context.AfterFunc(stop, release) // a second signal does not wait for anything
	stop, lost := context.WithCancelCause(stop)
	defer lost(nil)
	go watch(stop, watchEvery, lost, d.Check, v.Lost)
	id := v.VolumeID()
	idle, err := serveUntil(stop, l, server.Config{
		FS: v, VolumeID: [8]byte(id[:8]), Key: v.HandleKey(), Log: log, RootSquash: *rootSquash, RPC: limit.config(),
	}, drain)
	code := exitOK
	if err != nil {
		code = fail("serve", err)
	}
	if err := context.Cause(stop); errors.Is(err, disk.ErrLost) {
		fail("serve", err)
		return exitLost // and nothing can be made durable
	}
	if !idle {
		return code // v may not be closed
	}
	if err := v.Close(); err != nil {
		code = fail("serve", err)
	}
	if err := d.Close(); err != nil {
		code = fail("serve", err)
	}
	return code
}

// watchEvery is how often a served volume is looked for.
const watchEvery = time.Second

// watch calls lost when one of the looks at the volume says that it is gone, and ends with ctx.
func watch(ctx context.Context, every time.Duration, lost func(error), looks ...func() error) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		for _, look := range looks {
			if err := look(); err != nil {
				lost(err)
				return
			}
		}
	}
}

// advice is what to do about an error of opening a volume, for its end. That nothing
// is there is all that mkfs should be advised for: it destroys what is.
func advice(err error) string {
	if errors.Is(err, tansyfs.ErrNoSuperblock) {
		return " (tansy mkfs makes one)"
	}
	if errors.Is(err, journal.ErrDamaged) {
		return " (tansy repair says what can be done about it)"
	}
	return ""
}

// serveUntil serves on l until stop is done, then finishes what is in flight, for as
// long as drain. If that was too short, idle is false: operations may still run on the
// file system.
func serveUntil(stop context.Context, l net.Listener, cfg server.Config, drain time.Duration) (idle bool, err error) {
	s := server.New(cfg)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	printMount(l.Addr())
	select {
	case err = <-served:
	case <-stop.Done():
		cfg.Log.Info("stopping")
	}
	ctx, done := context.WithTimeout(context.Background(), drain)
	defer done()
	if s.Shutdown(ctx) != nil {
		return false, errors.Join(err, fmt.Errorf("requests still in flight after %v were cut off; the next start recovers the volume, as after a crash", drain))
	}
	return true, err
}

// printMount tells on standard output how to mount the volume.
func printMount(addr net.Addr) {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			host = "SERVER"
		}
	}
	fmt.Printf("listening on %s\n\n%s\nStop with Ctrl-C or SIGTERM.\n", addr, mountCommands(host, port))
}

// mountCommands are the commands that mount the volume. There is no lock protocol: with
// these options the client keeps its locks to itself (macOS's nolocks would refuse them).
func mountCommands(host, port string) string {
	from, linux := host+":/", "tcp"
	if strings.Contains(host, ":") { // an IPv6 address
		from, linux = "'["+host+"]:/'", "proto=tcp6" // there plain tcp means IPv4
	}
	ports := fmt.Sprintf("port=%s,mountport=%s", port, port)
	return fmt.Sprintf(`Linux:  sudo mount -t nfs -o vers=3,%s,%s,nolock,hard %s /mnt
macOS:  sudo mount -t nfs -o vers=3,tcp,%s,locallocks,hard,resvport %s /private/mnt
`, linux, ports, from, ports, from)
}

func newLogger(format string, verbose bool) (*slog.Logger, error) {
	o := &slog.HandlerOptions{Level: slog.LevelInfo}
	if verbose {
		o.Level = slog.LevelDebug
	}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(os.Stderr, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(os.Stderr, o)), nil
	}
	return nil, fmt.Errorf("log format %q: give text or json", format)
}
