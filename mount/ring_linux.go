package mount

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What the kernel calls IORING_SETUP_SQE128, IORING_ENTER_GETEVENTS, and IORING_OP_URING_CMD (linux/io_uring.h), and
// where it has the ring and its submissions mapped.
const (
	setupSQE128     = 1 << 10
	enterGetEvents  = 1
	opCommand       = 46
	submissionsAt   = 0x10000000
	submissionSize  = 128
	completionSize  = 16
	ringSubmissions = 2 // of which one is used at a time
)

// ringParams is what the kernel calls struct io_uring_params.
type ringParams struct {
	submissions, completions, flags, cpu, idle, features, workers uint32

	_                        [3]uint32
	submissionAt, completeAt [10]uint32 // struct io_sqring_offsets and io_cqring_offsets
}

// A ring is an io_uring for commands of a device, one at a time. One thread uses it: what it was asked for is done, for
// the kernel, by the thread that asked.
type ring struct {
	fd          int
	shared      []byte // with the kernel: heads and tails, and completions
	submissions []byte

	tail, head, done *uint32 // of submissions; of completions, the latter the kernel's
	mask, doneMask   uint32
	completions      []byte
	pending          bool // a submission that the kernel was not told of
}

// newRing makes a ring. The error says why there is none.
func newRing() (*ring, error) {
	p := ringParams{flags: setupSQE128}
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, ringSubmissions, uintptr(unsafe.Pointer(&p)), 0)
	if errno != 0 {
		return nil, os.NewSyscallError("io_uring_setup", errno)
	}
	r := &ring{fd: int(fd)}
	const readWrite, how = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED | unix.MAP_POPULATE
	size := max(p.submissionAt[6]+p.submissions*4, p.completeAt[5]+p.completions*completionSize)
	var err error
	if r.shared, err = unix.Mmap(r.fd, 0, int(size), readWrite, how); err == nil {
		r.submissions, err = unix.Mmap(r.fd, submissionsAt, int(p.submissions)*submissionSize, readWrite, how)
	}
	if err != nil {
		r.close()
		return nil, fmt.Errorf("an io_uring's memory: %w", err)
	}
	at := func(offset uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.shared[offset])) }
	r.tail, r.mask = at(p.submissionAt[1]), *at(p.submissionAt[2])
	r.head, r.done, r.doneMask = at(p.completeAt[0]), at(p.completeAt[1]), *at(p.completeAt[2])
	r.completions = r.shared[p.completeAt[5]:]
	for i := range p.submissions {
		*at(p.submissionAt[6] + 4*i) = i
	}
	return r, nil
}

// close gives back what a ring has. Nobody uses it any more.
func (r *ring) close() {
	for _, m := range [][]byte{r.shared, r.submissions} {
		if m != nil {
			unix.Munmap(m)
		}
	}
	unix.Close(r.fd)
}

// command is the next submission, of a command for a file, for the caller to fill in.
func (r *ring) command(file int, code uint32) []byte {
	i := *r.tail & r.mask
	s := r.submissions[i*submissionSize : (i+1)*submissionSize]
	clear(s)
	s[0] = opCommand
	binary.NativeEndian.PutUint32(s[4:], uint32(file))
	binary.NativeEndian.PutUint32(s[8:], code)
	r.pending = true
	return s
}

// enter tells the kernel of a command, if there is one, and waits until one is done, if that is wanted.
func (r *ring) enter(wait bool) error {
	var tell, least, how uintptr
	if r.pending {
		atomic.StoreUint32(r.tail, *r.tail+1)
		r.pending = false
		tell = 1
	}
	if wait {
		least, how = 1, enterGetEvents
	}
	for {
		n, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), tell, least, how, 0, 0)
		switch {
		case errno == unix.EINTR || errno == unix.EAGAIN || errno == unix.EBUSY:
		case errno != 0:
			return os.NewSyscallError("io_uring_enter", errno)
		case n < tell:
		default:
			return nil
		}
	}
}

// result is that of a command that is done. ok is false if none is.
func (r *ring) result() (result int32, ok bool) {
	head := *r.head
	if head == atomic.LoadUint32(r.done) {
		return 0, false
	}
	c := r.completions[(head&r.doneMask)*completionSize:]
	result = int32(binary.NativeEndian.Uint32(c[8:]))
	atomic.StoreUint32(r.head, head+1)
	return result, true
}
