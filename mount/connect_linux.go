package mount

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// mountRings mounts a volume whose requests come by io_uring, and returns what serves it until it is unmounted. If the
// error wraps errNoRing, nothing is mounted.
func (f *fileSystem) mountRings(dir string, o *Options) (serve func(), err error) {
	if err := whyNoRings(o, ringParameter); err != nil {
		return nil, err
	}
	how := ringOptions(o)
	r, err := newRings(connection{files: f, protocol: fuse.NewProtocolServer(f, how), gone: new(gone)})
	if err != nil {
		return nil, err
	}
	return r.mount(dir, how, o)
}

// ringOptions are the options for the library and the kernel.
func ringOptions(o *Options) *fuse.MountOptions {
	how := o.fuse()
	how.ExtraCapabilities |= capOverIOURing
	return how
}

// mount mounts a volume that has rings, and returns what serves it until it is unmounted. If the kernel, or what stands
// before it, takes none of them after all, it is unmounted again: some kernels have all requests wait for rings then.
func (r *rings) mount(dir string, how *fuse.MountOptions, o *Options) (serve func(), err error) {
	if os.Geteuid() == 0 {
		r.fd, err = attach(dir, typePrefix+how.Name, how, o)
	} else {
		r.fd, err = attachByHelper(dir, how)
	}
	if err != nil {
		r.close()
		return nil, err
	}
	r.files.forget = r.forget
	granted, err := r.begin()
	if err == nil && granted {
		err = r.start()
	} else if err == nil {
		err = fmt.Errorf("%w: the kernel offers none", errNoRing)
	}
	if err == nil {
		return r.serve, nil
	}
	if stays := Unmount(dir, true); stays != nil {
		err = fmt.Errorf("%v; and what was mounted stays: %w", err, stays)
	}
	go r.serve() // which ends if that is unmounted
	return nil, err
}

// native is a number as the kernel has it.
func native(b []byte) uint32 { return binary.NativeEndian.Uint32(b) }

// begin answers the first request of the kernel, with what it may do. granted tells whether it may use rings.
func (r *rings) begin() (granted bool, err error) {
	request, reply := make([]byte, maxIO+slack), make([]byte, slack)
	n, err := unix.Read(r.fd, request)
	for err == unix.EINTR || err == unix.EAGAIN {
		n, err = unix.Read(r.fd, request)
	}
	const flagsAt, flags2At = headerSize + 12, headerSize + 16 // struct fuse_init_in
	if err != nil || n < flags2At+4 || native(request[4:]) != opInit {
		return false, fmt.Errorf("the kernel does not begin: %d bytes, %w", n, err)
	}
	offered := native(request[flags2At:])&(capOverIOURing>>32) != 0
	m, status := r.protocol.HandleRequest([][]byte{request[:n]}, [][]byte{reply})
	if status != fuse.OK || m < replySize || native(reply[4:]) != 0 {
		return false, fmt.Errorf("the kernel's first request cannot be answered: %v", status)
	}
	r.write([][]byte{reply[:m]})
	return offered, nil
}

// attachByHelper mounts a file system of FUSE through fusermount3, for others than root.
func attachByHelper(dir string, how *fuse.MountOptions) (fd int, err error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socketpair", err)
	}
	here, there := os.NewFile(uintptr(ends[0]), "here"), os.NewFile(uintptr(ends[1]), "there")
	defer here.Close()
	defer there.Close()
	options := append([]string{
		"fsname=" + how.FsName, "subtype=" + how.Name, fmt.Sprint("max_read=", maxIO),
	}, how.Options...)
	if how.AllowOther {
		options = append(options, "allow_other")
	}
	for i, o := range options {
		options[i] = strings.NewReplacer(`\`, `\\`, ",", `\,`).Replace(o)
	}
	c := exec.Command("fusermount3", dir, "-o", strings.Join(options, ","))
	c.Env = append(os.Environ(), "_FUSE_COMMFD=3")
	c.ExtraFiles = []*os.File{there}
	c.Stderr = os.Stderr
	if err := c.Run(); err != nil {
		return -1, byHelper(err)
	}
	if fd, err = received(ends[0]); err != nil {
		return -1, errors.Join(fmt.Errorf("fusermount3 has sent no connection: %w", err), Unmount(dir, true))
	}
	return fd, nil
}

// received is the descriptor that comes through a socket.
func received(socket int) (fd int, err error) {
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, make([]byte, 4), oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1, os.NewSyscallError("recvmsg", err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err == nil && len(messages) != 1 {
		err = fmt.Errorf("%d messages", len(messages))
	}
	if err != nil {
		return -1, err
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err == nil && len(fds) != 1 {
		err = fmt.Errorf("%d descriptors", len(fds))
	}
	if err != nil {
		return -1, err
	}
	return fds[0], nil
}
