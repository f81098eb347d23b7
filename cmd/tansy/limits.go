package main

import (
	"flag"
	"fmt"
	"time"

	"tansy/nfs/oncrpc"
)

// limits are the flags of serve that bound what its peers may take.
type limits struct {
	conns, connsPerHost, calls      int
	writes, replies                 byteSize
	idle, record, reply, whenOthers time.Duration
}

// leastMemory is the least of what requests or replies may take: smaller, and a WRITE of
// 1 MiB would have it to itself.
const leastMemory = byteSize(4 << 20)

// The most of what peers may have: more was meant as something else.
const (
	mostConns    = 1_000_000
	mostCalls    = 10_000
	mostPatience = 365 * 24 * time.Hour
)

// The memory that overhead provides for.
const (
	writeMemory = byteSize(10 << 20)
	replyMemory = byteSize(12 << 20)
)

func (l *limits) flags(f *flag.FlagSet) {
	f.IntVar(&l.conns, "max-connections", 1024,
		"`N` connections at a time, or as many as the process may have descriptors for; "+
			"a new one takes the place of the longest idle")
	f.IntVar(&l.connsPerHost, "max-connections-per-host", 128,
		"at most `N` of these from one IPv4 address or IPv6 /64 network")
	f.IntVar(&l.calls, "max-calls", 64, "`N` calls in progress at a time per connection")
	l.writes, l.replies = writeMemory, replyMemory
	f.Var(&l.writes, "write-memory", "`SIZE` of the memory for WRITEs being received or carried out, of all "+
		"connections; one address gets 3/4 at most")
	f.Var(&l.replies, "reply-memory", "`SIZE` of the memory for other calls in progress and for replies not yet "+
		"taken, of all connections; one address gets 3/4 at most")
	f.DurationVar(&l.idle, "idle-timeout", 10*time.Minute,
		"`TIME` without a call, such as 90s or 10m, after which a connection is closed")
	f.DurationVar(&l.record, "record-timeout", time.Minute,
		"`TIME` that a client may take for the next 32 KiB of a call that it has begun to send")
	f.DurationVar(&l.reply, "reply-timeout", time.Minute,
		"`TIME` that a client may take to read the next 256 KiB of its replies")
	f.DurationVar(&l.whenOthers, "crowded-timeout", 5*time.Second, "`TIME` in place of --record-timeout while others "+
		"wait for memory; three times as long in place of --reply-timeout")
}

// wrong says what is wrong with the values, or nothing.
func (l *limits) wrong() string {
	for _, x := range []struct {
		name string
		n    int
		most int
	}{
		{"max-connections", l.conns, mostConns}, {"max-connections-per-host", l.connsPerHost, mostConns},
		{"max-calls", l.calls, mostCalls},
	} {
		if x.n < 1 || x.n > x.most {
			return fmt.Sprintf("--%s %d: give 1 to %d", x.name, x.n, x.most)
		}
	}
	for _, x := range []struct {
		name string
		n    byteSize
	}{{"write-memory", l.writes}, {"reply-memory", l.replies}} {
		if x.n < leastMemory || x.n > 1<<40 {
			return fmt.Sprintf("--%s %v: give %v to 1T", x.name, &x.n, new(leastMemory))
		}
	}
	for _, x := range []struct {
		name string
		d    time.Duration
	}{
		{"idle-timeout", l.idle}, {"record-timeout", l.record}, {"reply-timeout", l.reply}, {"crowded-timeout", l.whenOthers},
	} {
		if x.d < time.Second || x.d > mostPatience {
			return fmt.Sprintf("--%s %v: give 1s to %.0fh", x.name, x.d, mostPatience.Hours())
		}
	}
	if l.whenOthers > l.record {
		return fmt.Sprintf("--crowded-timeout %v is longer than --record-timeout %v, in whose place it is when others wait: "+
			"give at most that", l.whenOthers, l.record)
	}
	return ""
}

// config is how the server is told.
func (l *limits) config() oncrpc.Config {
	return oncrpc.Config{
		MaxConns: l.conns, MaxConnsPerHost: l.connsPerHost, MaxInFlight: l.calls,
		RecordBytes: int(l.writes), ReplyBytes: int(l.replies),
		IdleTimeout: l.idle, RecordTimeout: l.record, WriteTimeout: l.reply, CrowdedTimeout: l.whenOthers,
	}
}

// memory is what is needed besides the overhead, in bytes.
func (l *limits) memory() int64 {
	return max(0, int64(l.writes)-int64(writeMemory)) + max(0, int64(l.replies)-int64(replyMemory))
}
