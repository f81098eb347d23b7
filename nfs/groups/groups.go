// Package groups knows the groups of users as this host does, for servers that do not rely on
// what their clients say: AUTH_SYS has room for 16 groups.
package groups

import (
	"errors"
	"os/user"
	"strconv"
	"time"

	"tansy/internal/lockorder"
)

const (
	fresh    = 5 * time.Minute  // what was looked up is looked up again after that
	retry    = 10 * time.Second // after a look-up failed
	maxUsers = 1 << 14          // remembered
)

// Cache remembers the groups of users. The first look-up of a user is waited for. A result older than 5 minutes is used
// while the background looks the user up again, and goes on to be used if that fails. It may be used concurrently.
type Cache struct {
	lookup func(uid uint32) ([]uint32, error)
	now    func() time.Time

	mu    lockorder.RWMutex[lockorder.Groups]
	users map[uint32]*entry
}

type entry struct {
	known chan struct{} // closed when the first look-up has ended

	// Under Cache.mu.
	groups []uint32
	ended  bool // the first look-up has
	until  time.Time
	again  bool // a look-up is under way
}

// New makes a cache of what lookup says; nil is Lookup.
func New(lookup func(uid uint32) ([]uint32, error)) *Cache {
	if lookup == nil {
		lookup = Lookup
	}
	return &Cache{lookup: lookup, now: time.Now, users: map[uint32]*entry{}}
}

// Lookup asks this host for the groups of a user: its name service if the program was built with cgo, else /etc/passwd
// and /etc/group alone. A user whom the host does not know has no groups.
func Lookup(uid uint32) (groups []uint32, err error) {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if errors.As(err, new(user.UnknownUserIdError)) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ids, err := u.GroupIds()
	for _, id := range ids {
		n, bad := strconv.ParseUint(id, 10, 32)
		if bad != nil {
			return nil, bad
		}
		groups = append(groups, uint32(n))
	}
	return groups, err
}

// Of returns the groups of a user, which must not be changed. There are none if they cannot be found out.
func (c *Cache) Of(uid uint32) []uint32 {
	c.mu.RLock()
	e := c.users[uid]
	if e != nil && e.ended && (e.again || c.now().Before(e.until)) {
		defer c.mu.RUnlock()
		return e.groups
	}
	c.mu.RUnlock()

	c.mu.Lock()
	e = c.users[uid]
	switch {
	case e == nil:
		if len(c.users) >= maxUsers {
			clear(c.users)
		}
		e = &entry{known: make(chan struct{})}
		c.users[uid] = e
		c.mu.Unlock()
		c.ask(uid, e)
		close(e.known)
	case !e.ended:
		c.mu.Unlock()
		<-e.known
	case e.again || c.now().Before(e.until):
		c.mu.Unlock()
	default:
		e.again = true
		c.mu.Unlock()
		go c.ask(uid, e)
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return e.groups
}

func (c *Cache) ask(uid uint32, e *entry) {
	groups, err := c.lookup(uid)
	c.mu.Lock()
	defer c.mu.Unlock()
	e.again, e.ended = false, true
	if err != nil {
		e.until = c.now().Add(retry)
		return
	}
	e.groups, e.until = groups, c.now().Add(fresh)
}
