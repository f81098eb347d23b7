package oncrpc

import "syscall"

// Link is a connection as far as its calls know it. It may be kept when the connection is closed, and
// used concurrently.
type Link struct{ raw syscall.RawConn }

// Delivered tells that the peer has all that was sent to it: the connection stands at both ends, and there is nothing
// that TCP has not been told the arrival of. No: that is not so, or not known.
func (l *Link) Delivered() (yes bool) {
	if l == nil || l.raw == nil {
		return false
	}
	err := l.raw.Control(func(fd uintptr) { yes = standing(int(fd)) && unacknowledged(int(fd)) == 0 })
	return err == nil && yes
}
