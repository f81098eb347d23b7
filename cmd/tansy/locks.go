package main

import (
	"fmt"
	"os"
	"time"

	"tansy/nfs/nlm"
)

// locking is whether clients have locks between them, and how many.
type locking struct {
	on          bool // --locks
	grace       time.Duration
	all, client int // --max-locks, --max-locks-per-host
}

// perLock is how much memory one lock may take, in bytes: with the names that the client chose.
const perLock = 1 << 10

func (l *locking) flags(s *flagSet) {
	s.BoolVar(&l.on, "locks", false, "serve locks between clients (NLM), which mount without nolock then, and "+
		"programs on --mount")
	s.DurationVar(&l.grace, "grace", defaultGrace, "`TIME` after a start in which clients get only the locks that "+
		"they had before; 0: they lose them. There is none if no client had locks")
	s.IntVar(&l.all, "max-locks", nlm.DefaultLimits.All,
		"`N` locks at a time; who waits for one counts twice")
	s.IntVar(&l.client, "max-locks-per-host", nlm.DefaultLimits.Client, "at most `N` of these from one address")
}

// defaultGrace is enough for a client that was told of the start at the third time.
const defaultGrace = 90 * time.Second

// mostGrace is the longest time of --grace: longer was meant as something else.
const mostGrace = time.Hour

// mostLocks is the most of what --max-locks may be: more was meant as something else.
const mostLocks = 1_000_000

// wrong says what is wrong with the values, or nothing.
func (l *locking) wrong() string {
	if l.all < 1 || l.all > mostLocks {
		return fmt.Sprintf("--max-locks %d: give 1 to %d", l.all, mostLocks)
	}
	if l.grace != 0 && (l.grace < time.Second || l.grace > mostGrace) {
		return fmt.Sprintf("--grace %v: give 0, or 1s to 1h", l.grace)
	}
	if l.client < 1 || l.client > l.all {
		return fmt.Sprintf("--max-locks-per-host %d: give 1 to %d, which is --max-locks", l.client, l.all)
	}
	return ""
}

// config is how the server is told; nil: no locks.
func (l *locking) config() *nlm.Config {
	if !l.on {
		return nil
	}
	limits := nlm.DefaultLimits
	limits.All, limits.Client, limits.File = l.all, l.client, min(limits.File, l.all)
	name, _ := os.Hostname() // else clients are told by the address that they called alone
	return &nlm.Config{Limits: limits, Grace: l.grace, Name: name}
}

// memory is what locks may take, in bytes.
func (l *locking) memory() int64 {
	if !l.on {
		return 0
	}
	return int64(l.all) * perLock
}
