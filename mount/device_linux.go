package mount

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// A volume on a block device can be mounted as a file system of that device (type fuseblk), by root. Of such a mount
// alone Linux tells the server, since 6.18, that sync(2) or syncfs(2) was called. The library has no way to mount so,
// and answers that it does not know the call; so the mount, and the reading of what the kernel asks, are here, and what
// is asked goes to the library's protocol.

// What the kernel calls FUSE_READ and others (linux/fuse.h).
const (
	opRead, opInit, opReaddir, opIoctl, opReaddirPlus, opSyncFS = 15, 26, 28, 39, 44, 50

	headerSize = 40 // of a request, and of a reply:
	replySize  = 16
)

const (
	askers   = 32        // threads that read what the kernel asks, and answer it
	replyMax = 128 << 10 // the longest reply but that of a READ, in bytes
	slack    = 4096      // for what comes before the data of either, in bytes
)

// A connection is what the kernel's requests are read from by this program itself: that of a mount as a file system of
// a block device, or of one with rings (uring_linux.go).
type connection struct {
	files    *fileSystem
	protocol *fuse.ProtocolServer
	fd       int
	gone     *gone
}

// gone tells whether a connection is closed. Who serves the volume besides notifies the kernel at any time, and another
// file may have got the descriptor's number.
type gone struct {
	sync.RWMutex
	yes bool
}

// close closes the connection, of which nobody writes a notification then.
func (c connection) close() {
	c.gone.Lock()
	defer c.gone.Unlock()
	c.gone.yes = true
	unix.Close(c.fd)
}

// mountDevice mounts a volume as a file system of the block device that is o.Source, and returns what serves it until
// it is unmounted.
func (f *fileSystem) mountDevice(dir string, o *Options) (serve func(), err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("only root can mount a block device as its file system: leave blkdev out")
	}
	block, err := blockSize(o.Source)
	if err != nil {
		return nil, err
	}
	how := o.fuse()
	fd, err := attach(dir, TypeDevice, how, o, fmt.Sprintf("blksize=%d", block))
	if err != nil {
		return nil, fmt.Errorf("as fuseblk: %w", err)
	}
	c := connection{files: f, protocol: fuse.NewProtocolServer(f, how), fd: fd, gone: new(gone)}
	f.forget = c.forget
	// This comes behind the first request, with the limits.
	f.wait = func() error { return unix.Statfs(dir, new(unix.Statfs_t)) }
	return c.serve, nil
}

// attach mounts a file system of FUSE, by root, and returns what the kernel's requests are read from. more is what this
// type of file system takes besides.
func attach(dir, kind string, how *fuse.MountOptions, o *Options, more ...string) (fd int, err error) {
	fd, err = unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: "/dev/fuse", Err: err}
	}
	data := append([]string{
		fmt.Sprintf("fd=%d,rootmode=%o,user_id=0,group_id=%d,max_read=%d", fd, unix.S_IFDIR, os.Getegid(), maxIO),
		"default_permissions",
	}, more...)
	if o.AllowOther {
		data = append(data, "allow_other")
	}
	if o.Unclaim != nil {
		err = o.Unclaim()
	}
	if err == nil {
		err = unix.Mount(o.Source, dir, kind, how.DirectMountFlags, strings.Join(data, ","))
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// blockSize is the size of blocks that the kernel keeps a device's contents in, which a mount has to leave as it is.
func blockSize(device string) (int, error) {
	d, err := os.Open(device)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	n, err := unix.IoctlGetInt(int(d.Fd()), unix.BLKBSZGET)
	if err == unix.ENOTTY {
		return 0, fmt.Errorf("%s is no block device: leave blkdev out, or attach a loop device to it", device)
	}
	if err != nil {
		return 0, &os.PathError{Op: "BLKBSZGET", Path: device, Err: err}
	}
	return n, nil
}

// serve answers the kernel until the file system is unmounted.
func (c connection) serve() {
	c.ask(askers)
	c.close()
}

// ask has so many threads read what the kernel asks, and answer it, until the file system is unmounted.
func (c connection) ask(threads int) {
	var all sync.WaitGroup
	for range threads {
		all.Go(c.answer)
	}
	all.Wait()
}

// invalInode is what the kernel calls FUSE_NOTIFY_INVAL_INODE.
const invalInode = 2

// forget has the kernel forget the attributes of a file, and n bytes of its contents from one on (0: all), if that is
// not negative.
func (c connection) forget(id uint64, from, n int64) fuse.Status {
	const size = 16 + 24 // struct fuse_out_header, struct fuse_notify_inval_inode_out
	b := make([]byte, 0, size)
	b = binary.NativeEndian.AppendUint32(b, size)
	b = binary.NativeEndian.AppendUint32(b, invalInode)
	b = binary.NativeEndian.AppendUint64(b, 0) // nobody has asked
	for _, x := range []uint64{id, uint64(from), uint64(n)} {
		b = binary.NativeEndian.AppendUint64(b, x)
	}
	c.gone.RLock()
	defer c.gone.RUnlock()
	if c.gone.yes {
		return fuse.OK
	}
	_, err := unix.Write(c.fd, b)
	if err == unix.ENOENT { // it does not know the file
		return fuse.OK
	}
	return fuse.ToStatus(err)
}

// answer answers one request after the other.
func (c connection) answer() {
	request := make([]byte, maxIO+slack)
	reply := make([]byte, replyMax+slack)
	for {
		n, err := unix.Read(c.fd, request)
		switch err {
		case nil:
		case unix.EINTR, unix.EAGAIN, unix.ENOENT: // who asked has given up
			continue
		default: // ENODEV: unmounted
			if err != unix.ENODEV {
				c.files.log.Error("the kernel cannot be asked what it wants", "err", err)
			}
			return
		}
		if n >= headerSize {
			c.one(request[:n], reply)
		}
	}
}

// one answers a request. reply is memory for that.
func (c connection) one(request, reply []byte) {
	field := func(at int) uint32 { return binary.NativeEndian.Uint32(request[at:]) }
	switch op := field(4); {
	case op == opSyncFS:
		c.reply(request, c.files.Fsync(nil, nil))
		return
	case op == opRead && len(request) >= headerSize+24:
		c.read(request)
		return
	case (op == opReaddir || op == opReaddirPlus) && len(request) >= headerSize+24:
		size := request[headerSize+16:]
		binary.NativeEndian.PutUint32(size, min(field(headerSize+16), replyMax)) // a part of the listing will do
	}
	n, status := c.protocol.HandleRequest([][]byte{request}, [][]byte{reply})
	switch {
	case status != fuse.OK:
		c.reply(request, status)
	case n > 0:
		c.write([][]byte{reply[:n]})
	}
}

// read answers a READ with the contents where they lie.
func (c connection) read(request []byte) {
	var in fuse.ReadIn
	in.NodeId = binary.NativeEndian.Uint64(request[16:])
	in.Offset = binary.NativeEndian.Uint64(request[headerSize+8:])
	in.Size = binary.NativeEndian.Uint32(request[headerSize+16:])
	found, status := c.files.Read(nil, &in, nil)
	if status != fuse.OK {
		c.reply(request, status)
		return
	}
	defer found.Done()
	c.reply(request, fuse.OK, found.(contents).Pieces()...)
}

// reply answers a request.
func (c connection) reply(request []byte, status fuse.Status, pieces ...[]byte) {
	n := replySize
	for _, p := range pieces {
		n += len(p)
	}
	h := make([]byte, 0, replySize)
	h = binary.NativeEndian.AppendUint32(h, uint32(n))
	h = binary.NativeEndian.AppendUint32(h, uint32(-status))
	h = append(h, request[8:16]...) // its number
	c.write(append([][]byte{h}, pieces...))
}

// write hands the kernel a reply, which it may not want any more (ENOENT, ENODEV).
func (c connection) write(pieces [][]byte) {
	for {
		_, err := unix.Writev(c.fd, pieces)
		switch err {
		case unix.EINTR:
			continue
		case nil, unix.ENOENT, unix.ENODEV:
		default:
			c.files.log.Error("the kernel takes no reply", "err", err)
		}
		return
	}
}
