package daemon

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// A Port is an address that is taken, but not listened on yet. Nobody else can have it, and connections to it are
// refused.
type Port struct {
	fd int // -1: it is not ours any more
}

// backlog is how many connections may wait to be accepted; the system may allow less.
const backlog = 4096

// Bind takes a TCP address, HOST:PORT. Without a host it is the address of all interfaces, of IPv6 and IPv4 where there
// is IPv6. A port in use is an error at once.
func Bind(address string) (*Port, error) {
	a, err := net.ResolveTCPAddr("tcp", address)
	if err == nil && address == "" {
		err = errors.New("an address to listen on is missing: give HOST:PORT")
	}
	if err != nil {
		return nil, err
	}
	var fd int
	switch ip4 := a.IP.To4(); {
	case a.IP == nil:
		both := &unix.SockaddrInet6{Port: a.Port}
		if fd, err = bind(unix.AF_INET6, both); err == unix.EAFNOSUPPORT || err == unix.EADDRNOTAVAIL {
			fd, err = bind(unix.AF_INET, &unix.SockaddrInet4{Port: a.Port})
		}
	case ip4 != nil:
		fd, err = bind(unix.AF_INET, &unix.SockaddrInet4{Port: a.Port, Addr: [4]byte(ip4)})
	default:
		to := &unix.SockaddrInet6{Port: a.Port, Addr: [16]byte(a.IP.To16())}
		if a.Zone != "" {
			i, err := net.InterfaceByName(a.Zone)
			if err != nil {
				return nil, fmt.Errorf("listen on %s: %w", address, err)
			}
			to.ZoneId = uint32(i.Index)
		}
		fd, err = bind(unix.AF_INET6, to)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, taken(a.Port, err))
	}
	return &Port{fd}, nil
}

// bind returns a socket that is bound, or an error of the system.
func bind(family int, to unix.Sockaddr) (fd int, err error) {
	if fd, err = unix.Socket(family, unix.SOCK_STREAM, 0); err != nil {
		return -1, err
	}
	unix.CloseOnExec(fd)
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if a, ok := to.(*unix.SockaddrInet6); ok && err == nil {
		only := 1
		if a.Addr == [16]byte{} && a.ZoneId == 0 {
			only = 0
		}
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, only)
	}
	if err == nil {
		err = unix.Bind(fd, to)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// Addr is the address, with the port that the system chose if it was 0. It is nil after Listen and Close.
func (p *Port) Addr() net.Addr {
	at, err := unix.Getsockname(p.fd)
	if err != nil {
		return nil
	}
	switch a := at.(type) {
	case *unix.SockaddrInet4:
		return &net.TCPAddr{IP: a.Addr[:], Port: a.Port}
	case *unix.SockaddrInet6:
		zone := ""
		if i, err := net.InterfaceByIndex(int(a.ZoneId)); a.ZoneId != 0 && err == nil {
			zone = i.Name
		}
		return &net.TCPAddr{IP: a.Addr[:], Port: a.Port, Zone: zone}
	}
	return nil
}

// Listen begins to listen. The listener is the caller's, and closing the Port leaves it alone.
func (p *Port) Listen() (net.Listener, error) {
	if p.fd < 0 {
		return nil, net.ErrClosed
	}
	if err := unix.Listen(p.fd, backlog); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	f := os.NewFile(uintptr(p.fd), "listener")
	p.fd = -1
	defer f.Close()
	return net.FileListener(f) // which has a descriptor of its own
}

// Close gives the address up, unless Listen has begun.
func (p *Port) Close() {
	if p.fd >= 0 {
		unix.Close(p.fd)
		p.fd = -1
	}
}
