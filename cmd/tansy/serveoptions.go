package main

import (
	"fmt"
	"strings"
	"time"

	tansyfs "tansy/fs"
	"tansy/ops/daemon"
)

// serveOptions are the flags of serve. Those of one subject with state of their own are types of their own.
type serveOptions struct {
	volumes                                    volumeList
	size                                       byteSize // of images that have to be made
	root                                       rootDir  // of volumes that have to be made
	create, preallocate, ignoreFstab, readOnly bool
	grow                                       bool
	control                                    controlling

	cache    byteSize // of all volumes together
	interval time.Duration
	scrub    tansyfs.ScrubOptions
	discard  discardMode

	listen                 listenAddress
	exportsFile            string // "": everybody may do everything
	rootSquash, manageGids bool
	noACL                  bool

	tls   protection
	find  finding
	heir  succession
	local localMount
	limit limits
	locks locking

	logFormat             string
	verbose               bool
	statusHosts           hostNames
	statusAt, profilingAt listenAddress

	sized, listening, scrubEvery bool // --size, --listen, --scrub-every were given
}

const serveExamples = `  tansy serve                     export ./tansy.img on 127.0.0.1:2049; if there
                                  is none, it is made: 10G, sparse
  tansy serve --volume /dev/sdb --listen :2049
                                  export a block device to everybody who can
                                  reach this machine
  tansy serve --listen 127.0.0.1:0
                                  on any free port; the mount command is printed
  tansy serve --listen :2049 --exports /etc/tansy.exports
                                  only to whom the file names
                                  (tansy exports --help)
  tansy serve --listen :2049 --tls-cert cert.pem --tls-key key.pem \
      --xprtsec tls               only with TLS (tansy cert --help)
  tansy serve --scrub 20M         look for damage in the background: all in use
                                  is read, once a week
  tansy serve --volume /srv/a.img:/a --volume /dev/sdb:/b
                                  two volumes, which clients mount as HOST:/a
                                  and HOST:/b
  tansy serve --volume nbd+unix:///data?socket=/run/nbd.sock
                                  an export of an NBD server (docs/guide/nbd.md)
  tansy serve --volume 'rbd:pool/image?id=tansy' --listen :2049 --standby \
      --on-active 'ip address add 192.0.2.9/24 dev eth0'
                                  an image of Ceph, on each of two hosts: one
                                  serves, the other takes over
                                  (docs/guide/standby.md)
  tansy serve --mount /mnt --mount-options allow_other
                                  a file system of this machine, too (Linux,
                                  macOS; docs/guide/mount.md)
  tansy serve --status 127.0.0.1:9049
                                  look at http://127.0.0.1:9049/ how it does

exit codes:
  0   stopped by a signal, and all is closed
  1   failed; or the connection to the NBD server was lost: a new start recovers
      the volume when that is there again; or one of several volumes failed
  2   wrong arguments
  3   the volume was deleted, renamed, replaced or cut while it was served, or
      its device went away; nothing was acknowledged after that was seen, which
      takes a second at most
  75  a volume on Ceph went to another server, or may have; nothing was answered
      since
  130, 143
      SIGINT (Ctrl-C) or SIGTERM came before the server was ready, or a second
      time while it stopped: the next start recovers the volume

One of several volumes that fails, or cannot be opened, does not stop the
others.
`

// serveGroups are the flags of serve by their subjects.
var serveGroups = []flagGroup{
	{"volumes", "volume create size preallocate owner mode ignore-fstab grow read-only cache discard control " +
		"moment-spill"},
	{"clients", "listen exports root-squash manage-gids no-acl portmapper rpcbind portmapper-port locks grace"},
	{"encryption", "tls-cert tls-key tls-client-ca xprtsec"},
	{"durability, and looking for damage", "commit-interval scrub scrub-every"},
	{"what clients may take of the server", "max-connections max-connections-per-host max-calls write-memory " +
		"reply-memory idle-timeout record-timeout reply-timeout crowded-timeout max-locks max-locks-per-host"},
	{"a mount on this machine", "mount mount-options"},
	{"a volume on Ceph, and another server that takes over", "standby take lease on-active"},
	{"status and log", "status status-tls status-host debug-listen log v"},
}

// serveNeeds are the flags of serve that mean nothing by themselves. The sockets that a service manager passes are in
// the place of --status, see serveOptions.wrong.
var serveNeeds = []need{
	{"scrub-every", "scrub"},
	{"portmapper-port", "portmapper rpcbind"},
	{"locks", "portmapper rpcbind"},
	{"grace", "locks"},
	{"max-locks", "locks"},
	{"max-locks-per-host", "locks"},
	{"mount-options", "mount"},
	{"tls-cert", "tls-key"},
	{"tls-key", "tls-cert"},
	{"tls-client-ca", "tls-cert"},
	{"status-tls", "tls-cert"},
}

// serveFlags makes the flags of serve, and what they are kept in.
func serveFlags() (*flagSet, *serveOptions) {
	f := newFlags("serve", "[flags]", serveExamples)
	o := &serveOptions{
		volumes: volumeList{list: []place{{"tansy.img", "/"}}}, size: 10 << 30,
		listen: listenAddress{at: "127.0.0.1:2049"}, discard: "auto",
	}
	o.volumeFlags(f)
	o.clientFlags(f)
	o.tls.flags(f)
	o.find.flags(f)
	o.heir.flags(f)
	o.local.flags(f)
	o.limit.flags(f.FlagSet)
	o.locks.flags(f)
	o.reportFlags(f)
	f.groups, f.needs = serveGroups, serveNeeds
	return f, o
}

// volumeFlags are those about volumes: where they lie, how they are made, and what is done to them.
func (o *serveOptions) volumeFlags(f *flagSet) {
	f.Var(&o.volumes, "volume", "a volume: an image `FILE`, a block device, an export of an NBD server as "+
		"nbd://HOST:PORT/EXPORT or nbd+unix:///EXPORT?socket=PATH, or an image of Ceph as "+
		"rbd:POOL/IMAGE[?id=USER&conf=FILE&keyring=FILE]; for several FILE:/PATH, each with another path to mount it by")
	f.BoolVar(&o.create, "create", false, "make the image of a --volume that does not exist; "+
		"without --volume tansy.img is made in any case")
	f.BoolVar(&o.ignoreFstab, "ignore-fstab", false, ignoreFstabUsage)
	f.Var(&o.size, "size", "size of the image if it has to be made; an existing one keeps its size")
	f.BoolVar(&o.preallocate, "preallocate", false,
		"if the image has to be made, take all its room from the file system it lies on now")
	o.root.flags(f.FlagSet, " if the volume has to be made")
	o.control.flags(f)
	f.BoolVar(&o.grow, "grow", false, "at the start, have each volume use what its device became larger by, if it was "+
		"made to grow (mkfs --max-size); tansy grow has it do so later")
	f.BoolVar(&o.readOnly, "read-only", false, "refuse changes")
	f.Var(&o.cache, "cache", "size of the block cache; several volumes get an equal part each "+
		"(default a quarter of the memory there is for the server)")
	f.DurationVar(&o.interval, "commit-interval", tansyfs.DefaultCommitInterval, "`TIME` after which what clients "+
		"wrote UNSTABLE becomes durable though none of them has asked for it")
	f.Var((*byteSize)(&o.scrub.Rate), "scrub", "read all that is in use from the device and check it, again and "+
		"again, at most so many bytes per second of each volume, such as 20M; 0: only when tansy scrub asks for it")
	f.DurationVar(&o.scrub.Every, "scrub-every", tansyfs.DefaultScrubEvery,
		"time from the start of a scrub to the start of the next, if --scrub is given")
	f.Var(&o.discard, "discard", "give the room of removed files back to where each volume lies: `auto|on|off`; "+
		"auto does for a sparse image, and not for a block device")
}

// clientFlags are those about clients: where they find the server, and what they may do.
func (o *serveOptions) clientFlags(f *flagSet) {
	f.Var(&o.listen, "listen", "address to serve NFS and MOUNT on, as `HOST:PORT`; "+
		":PORT is that of every interface, PORT that of 127.0.0.1")
	f.BoolVar(&o.rootSquash, "root-squash", false, "treat user 0 and group 0 of the clients as nobody (65534)")
	f.StringVar(&o.exportsFile, "exports", "", "`FILE` that says who may mount what, in the syntax of exports(5); "+
		"SIGHUP reads it again (default: everybody everything)")
	f.BoolVar(&o.manageGids, "manage-gids", false,
		"take the groups of users from this host, not from the clients, which can name 16")
	f.BoolVar(&o.noACL, "no-acl", false, "clients neither see nor set ACLs (NFSACL), which hold for them all the same")
}

// reportFlags are those about how the server says what it does.
func (o *serveOptions) reportFlags(f *flagSet) {
	f.StringVar(&o.logFormat, "log", "text", "format of the log on standard error: `text|json`")
	f.BoolVar(&o.verbose, "v", false, "log more")
	f.Var(&o.statusHosts, "status-host", "another `NAME` of this machine that requests to --status and --debug-listen "+
		"may ask for, besides its addresses, localhost, and its host name; may be given again")
	f.Var(&o.statusAt, "status", "address for a page about the server, metrics and probes over HTTP, as `HOST:PORT` "+
		"(none by default; keep it on loopback)")
	f.BoolVar(&o.tls.status, "status-tls", false, "the page of --status speaks HTTPS, with the certificate of --tls-cert")
	f.Var(&o.profilingAt, "debug-listen", "address for Go's profiler over HTTP, as `HOST:PORT` "+
		"(none by default; keep it on loopback)")
}

// settle takes over which flags were given, and what others are by themselves.
func (o *serveOptions) settle(f *flagSet) {
	o.sized, o.listening = given(f, "size"), given(f, "listen")
	o.scrubEvery, o.heir.leased = given(f, "scrub-every"), given(f, "lease")
	if !given(f, "crowded-timeout") {
		o.limit.whenOthers = min(o.limit.whenOthers, o.limit.record)
	}
	if !given(f, "cache") {
		o.cache = max(defaultCache(memory()), o.leastCache())
	}
}

// leastCache is the least that the volumes need together.
func (o *serveOptions) leastCache() byteSize { return minCache * byteSize(len(o.volumes.list)) }

// wrong says what is wrong with the flags, or nothing.
func (o *serveOptions) wrong() string {
	if o.listen.at == "" {
		return "--listen is empty: give HOST:PORT"
	}
	for _, wrong := range []func() string{
		o.volumes.wrong,
		func() string { return o.volumes.wrongToMake(o.create, o.readOnly) },
		o.wrongCache,
		o.control.wrong,
		func() string { return o.heir.wrong(o.volumes.list) },
		func() string { return o.local.wrong(o.volumes.list) },
		o.limit.wrong,
		o.locks.wrong,
		o.tls.wrong,
		o.wrongTimes,
		o.find.wrong,
		o.wrongNames,
	} {
		if what := wrong(); what != "" {
			return what
		}
	}
	if wrong := o.onePortTwice(); wrong != "" {
		return wrong
	}
	if o.readOnly && o.discard == "on" {
		return uselessDiscard
	}
	if o.readOnly && o.grow {
		return "--read-only changes nothing, and --grow would: leave one of them out"
	}
	if o.readOnly && o.local.options.access == "rw" {
		return "--read-only and --mount-options rw contradict each other: leave one of them out"
	}
	if o.exportsFile != "" && o.rootSquash {
		return "--root-squash is an option in the file of --exports: give one of them"
	}
	return ""
}

// onePortTwice says which two flags have the same address, or nothing.
func (o *serveOptions) onePortTwice() string {
	given := map[string]string{}
	for _, x := range []struct{ flag, at string }{
		{"--listen", o.listen.at}, {"--status", o.statusAt.at}, {"--debug-listen", o.profilingAt.at},
	} {
		if x.at == "" || strings.HasSuffix(x.at, ":0") {
			continue
		}
		if other := given[x.at]; other != "" {
			return fmt.Sprintf("%s and %s are both %s: each needs a port of its own", other, x.flag, x.at)
		}
		given[x.at] = x.flag
	}
	return ""
}

// wrongNames says what is wrong with --status-host or --status-tls, or nothing.
func (o *serveOptions) wrongNames() string {
	if o.tls.status && o.statusAt.at == "" && !daemon.Passed() {
		return uselessAlone("--status-tls", "--status HOST:PORT")
	}
	if o.statusHosts == nil || o.statusAt.at != "" || o.profilingAt.at != "" || daemon.Passed() {
		return ""
	}
	return uselessAlone("--status-host", "--status HOST:PORT", "--debug-listen HOST:PORT")
}

// wrongCache says what is wrong with the size of the cache, or nothing.
func (o *serveOptions) wrongCache() string {
	if what := smallCache(o.cache, o.leastCache()); what != "" {
		return what
	}
	if m := memory(); m != 0 && uint64(o.cache) > m {
		return fmt.Sprintf("--cache %v is more than the memory there is for the server, %s", &o.cache, about(m))
	}
	return ""
}

// uselessDiscard says what is wrong with a volume that is to give room back, and may not change.
const uselessDiscard = "--read-only changes nothing, so that --discard on has nothing to give back: " +
	"leave one of them out"

// mostInterval is the longest time of --commit-interval: longer was meant as something else.
const mostInterval = time.Hour

// wrongInterval says what is wrong with a time of --commit-interval, or nothing.
func wrongInterval(d time.Duration) string {
	if d < time.Millisecond || d > mostInterval {
		return fmt.Sprintf("--commit-interval %v: give 1ms to 1h", d)
	}
	return ""
}

// leastScrub is the rate of the slowest scrub, in bytes per second: less than that was meant as something else.
const leastScrub = 4 << 10

// wrongTimes says what is wrong with rates and times, or nothing.
func (o *serveOptions) wrongTimes() string {
	if what := wrongInterval(o.interval); what != "" {
		return what
	}
	if o.scrub.Rate == 0 && o.scrubEvery {
		return "--scrub-every counts only with --scrub above 0: give a rate such as --scrub 20M, or leave it out"
	}
	if o.scrub.Rate > 0 && o.scrub.Rate < leastScrub {
		return fmt.Sprintf("--scrub %d is so many bytes per second, and would never come to its end: give %dM, for instance",
			o.scrub.Rate, o.scrub.Rate)
	}
	if o.scrub.Every <= 0 {
		return "--scrub-every has to be more than 0: without --scrub there is none but by tansy scrub"
	}
	return ""
}

// opening says how to open the volumes. warn is called with what is odd about them.
func (o *serveOptions) opening(warn func(error)) *opening {
	clean, pinned := o.shares()
	return &opening{
		new:    image{uint64(o.size), o.preallocate, o.ignoreFstab, warn},
		create: (o.create || !o.volumes.given) && !o.readOnly,
		sized:  o.sized, root: o.root, readOnly: o.readOnly, cache: clean, pinned: pinned,
		interval: o.interval, scrub: o.scrub, discard: o.discard,
		grow: o.grow, control: o.control,
	}
}

// shares returns the parts of the cache that one volume gets, as divide divides them.
func (o *serveOptions) shares() (clean, pinned uint64) {
	return divide(uint64(o.cache) / uint64(len(o.volumes.list)))
}

// heap is what the Go run time may have, in bytes: the caches lie outside of what it counts.
func (o *serveOptions) heap() int64 {
	_, pinned := o.shares()
	n := int64(len(o.volumes.list))
	return (n-1)*perVolume + n*int64(pinned) + overhead - slack + o.limit.memory() + o.locks.memory() + o.local.memory()
}
