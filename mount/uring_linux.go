package mount

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Requests by io_uring. The kernel has a queue of requests for each processor, and gives a request to one who waits on
// the queue of the caller's processor: so the thread that is woken runs where the caller ran, and no other processor
// has to be woken. That is most of what is gained; fewer system calls are the rest.
//
// Each worker is a thread of its own with a ring of its own, which the kernel gives one request at a time, and which
// answers it itself: the kernel hands the next request to the thread that answered the last one, so to answer by
// another goroutine would cost two more switches of threads. A request that waits keeps its worker waiting, and the
// next goes to another one. While all workers of a queue wait, so do its requests, whatever others do: no request may
// wait for another request of the kernel. Locks do, so that a mount that has them does without rings.
//
// Once the kernel was told that requests go this way, each waits until every queue has a worker. So the rings are made
// before it is told, and if a queue gets none for all that, the volume is mounted anew without. FORGET, INTERRUPT, and
// the first request are read from /dev/fuse anyway, and notifications written. So an INTERRUPT may come before its
// request, and is lost then: what it could end, a copy, ends soon by itself (copyMax).

// What the kernel calls FUSE_IO_URING_CMD_REGISTER, FUSE_IO_URING_CMD_COMMIT_AND_FETCH, and FUSE_OVER_IO_URING.
const (
	cmdRegister    = 1
	cmdCommit      = 2
	capOverIOURing = 1 << 41
)

// A request's headers are what the kernel calls struct fuse_uring_req_header: that of any request or reply, the first
// argument, and what is said of the entry. Behind them there is room for what names the memory to the kernel.
const (
	argumentAt, argumentMax = 128, 128
	entryAt                 = 256
	commitAt, sizeAt        = entryAt + 8, entryAt + 16
	vectorsAt               = 1024
	headersSize             = 4096
)

// ringParameter is where root lets FUSE use io_uring.
const ringParameter = "/sys/module/fuse/parameters/enable_uring"

// ringMemory bounds the memory for requests on machines of up to 16 processors, in bytes.
const ringMemory = 64 << 20

// rings are the workers of a mount.
type rings struct {
	connection
	workers []*worker
	queues  int
	running sync.WaitGroup
}

// A worker waits for requests of one queue.
type worker struct {
	rings *rings
	queue int
	ring  *ring

	memory           []byte // shared with the kernel:
	headers, payload []byte
	reply            [replySize]byte
	in               [3][]byte
	out              [2][]byte
	refused          error // by the kernel
}

// whyNoRings says why a mount with these options does without rings, or nothing. parameter is the file of
// ringParameter.
func whyNoRings(o *Options, parameter string) error {
	if o.Locks {
		return fmt.Errorf("%w: with locks that programs wait for, each would keep a thread waiting", errNoRing)
	}
	on, err := os.ReadFile(parameter)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%w: this kernel has none for FUSE, which came with Linux 6.14 (CONFIG_FUSE_IO_URING)", errNoRing)
	case err != nil:
		return fmt.Errorf("%w: %w", errNoRing, err)
	case strings.TrimSpace(string(on)) != "Y":
		return fmt.Errorf("%w: the kernel has it turned off; root turns it on until the next boot by echo Y >%s, and "+
			"for good by fuse.enable_uring=1 on the kernel's command line", errNoRing, parameter)
	}
	return nil
}

// newRings makes the rings of a mount, which need not be there yet.
func newRings(c connection) (*rings, error) {
	queues, online, err := processors()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoRing, err)
	}
	r := &rings{connection: c, queues: queues}
	for q := range queues {
		for range workersOf(online[q], len(online)) {
			w, err := newWorker(r, q)
			if err != nil {
				r.close()
				return nil, fmt.Errorf("%w: %w", errNoRing, err)
			}
			r.workers = append(r.workers, w)
		}
	}
	return r, nil
}

// workersOf is how many workers the queue of a processor has, if so many are online. Each that ever had a long request
// has maxIO of memory: on up to 16 processors that is ringMemory, together. Fewer would make those wait for each other
// who wait for fsync.
func workersOf(online bool, processors int) int {
	const all, most, least = ringMemory / maxIO, 32, 4
	if !online { // which nobody runs on, until it is
		return 1
	}
	return max(least, min(all/processors, most))
}

// processors are those that the kernel has a queue for, numbered from 0 on, and which of them are online.
func processors() (queues int, online map[int]bool, err error) {
	const dir = "/sys/devices/system/cpu/"
	list := func(name string) (map[int]bool, error) {
		text, err := os.ReadFile(dir + name)
		if err != nil {
			return nil, err
		}
		return numbers(strings.TrimSpace(string(text)))
	}
	possible, err := list("possible")
	if err == nil {
		online, err = list("online")
	}
	for q := range possible {
		if queues = len(possible); err == nil && q >= queues {
			err = errors.New("the numbers of this machine's processors have gaps")
		}
	}
	return queues, online, err
}

// numbers are those of a list as the kernel writes it, such as 0-3,8.
func numbers(list string) (map[int]bool, error) {
	all := map[int]bool{}
	for span := range strings.SplitSeq(list, ",") {
		from, to, ok := strings.Cut(span, "-")
		if !ok {
			to = from
		}
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("processors %q: %w", list, err)
		}
		for n := first; n <= last; n++ {
			all[n] = true
		}
	}
	return all, nil
}

// newWorker makes a worker with its ring and memory. The memory lies where the kernel finds it, and nothing moves it.
func newWorker(r *rings, queue int) (*worker, error) {
	made, err := newRing()
	if err != nil {
		return nil, err
	}
	memory, err := unix.Mmap(-1, 0, headersSize+maxIO, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		made.close()
		return nil, fmt.Errorf("memory for requests: %w", err)
	}
	return &worker{
		rings: r, queue: queue, ring: made,
		memory: memory, headers: memory[:headersSize], payload: memory[headersSize:],
	}, nil
}

// close gives back what the workers have, which have ended, or never began.
func (r *rings) close() {
	for _, w := range r.workers {
		w.ring.close()
		unix.Munmap(w.memory)
	}
}

// start has the workers wait for requests. An error says why some queue has none: no request may be answered then.
func (r *rings) start() error {
	began := make(chan *worker)
	for _, w := range r.workers {
		r.running.Go(func() { w.run(began) })
	}
	waiting := map[int]int{} // workers, by queue
	var refused error
	for range r.workers {
		if w := <-began; w.refused != nil {
			refused = fmt.Errorf("%w: the kernel refused a ring: %w", errNoRing, w.refused)
		} else {
			waiting[w.queue]++
		}
	}
	if len(waiting) < r.queues {
		return refused
	}
	if refused != nil {
		r.files.log.Warn("the kernel takes fewer rings than it was offered", "err", refused)
	}
	return nil
}

// run answers requests until the file system is unmounted. The worker goes to began when it has begun, or was refused.
func (w *worker) run(began chan<- *worker) {
	runtime.LockOSThread() // for good: the thread ends with this
	stayOn(w.queue)
	w.register()
	err := w.ring.enter(false)
	result, ok := w.ring.result()
	if w.refused = err; err == nil && ok && result < 0 {
		w.refused = unix.Errno(-result)
	}
	refused := w.refused != nil
	if began <- w; refused {
		return
	}
requests:
	for commit := uint64(0); err == nil; result, ok = w.ring.result() {
		switch {
		case !ok: // woken without one
		case result >= 0:
			commit = w.answer()
			w.commit(commit)
		case commit != 0 && passing(unix.Errno(-result)):
			time.Sleep(time.Millisecond)
			w.commit(commit)
		default:
			break requests
		}
		err = w.ring.enter(true)
	}
	if err != nil || result != -int32(unix.ENOTCONN) && result != -int32(unix.ECONNABORTED) {
		w.rings.files.log.Error("a thread takes no more requests", "queue", w.queue, "err", err, "result", result)
	}
}

// passing tells whether a command failed for want of memory, or by a signal, before FUSE saw it: the reply is still to
// be handed over.
func passing(err unix.Errno) bool {
	return err == unix.ENOMEM || err == unix.EAGAIN || err == unix.EINTR
}

// stayOn has this thread run on one processor alone, if it may run there.
func stayOn(processor int) {
	var may, only unix.CPUSet
	if unix.SchedGetaffinity(0, &may) == nil && may.IsSet(processor) {
		only.Set(processor)
		unix.SchedSetaffinity(0, &only) // else it is slower
	}
}

// register is the command that offers the kernel this worker.
func (w *worker) register() {
	vectors := (*[2]unix.Iovec)(unsafe.Pointer(&w.headers[vectorsAt]))
	vectors[0].Base, vectors[1].Base = &w.headers[0], &w.payload[0]
	vectors[0].SetLen(len(w.headers))
	vectors[1].SetLen(len(w.payload))
	s := w.command(cmdRegister)
	binary.NativeEndian.PutUint64(s[16:], uint64(uintptr(unsafe.Pointer(vectors))))
	binary.NativeEndian.PutUint32(s[24:], uint32(len(vectors)))
}

// commit is the command that hands over a reply, and takes the next request.
func (w *worker) commit(id uint64) {
	binary.NativeEndian.PutUint64(w.command(cmdCommit)[56:], id)
}

func (w *worker) command(code uint32) []byte {
	s := w.ring.command(w.rings.fd, code)
	binary.NativeEndian.PutUint16(s[64:], uint16(w.queue))
	return s
}

// answer answers the request that is in the worker's memory there, and returns by which number to hand that over. The
// request's own number stays where it is.
func (w *worker) answer() (commit uint64) {
	h := w.headers
	commit = binary.NativeEndian.Uint64(h[commitAt:])
	status, n := w.handle(h[:headerSize])
	binary.NativeEndian.PutUint32(h[0:], uint32(replySize+n))
	binary.NativeEndian.PutUint32(h[4:], uint32(status))
	binary.NativeEndian.PutUint32(h[sizeAt:], uint32(n))
	return commit
}

// handle has a request answered, with n bytes of payload.
func (w *worker) handle(header []byte) (status int32, n int) {
	field := func(at int) int { return int(native(w.headers[at:])) }
	size := field(sizeAt)
	argument := field(0) - headerSize - size
	if size > len(w.payload) || argument < 0 || argument > argumentMax {
		w.rings.files.log.Error("a request is not as it says", "length", field(0), "payload", size)
		return -int32(unix.EIO), 0
	}
	payload := w.payload[:size]
	if field(4) == opIoctl { // the reply goes where this lies; other requests have names there, which are copied
		payload = append([]byte(nil), payload...)
	}
	w.in = [3][]byte{header, w.headers[argumentAt : argumentAt+argument], payload}
	w.out = [2][]byte{w.reply[:], w.payload}
	n, failed := w.rings.protocol.HandleRequest(w.in[:], w.out[:])
	switch {
	case failed != fuse.OK:
		return -int32(failed), 0
	case n < replySize:
		return -int32(unix.EIO), 0
	}
	return int32(native(w.reply[4:])), n - replySize
}

// serve answers the kernel until the file system is unmounted. It may be called once start has returned.
func (r *rings) serve() {
	const readers = 8 // of FORGET, which may take a transaction, and of INTERRUPT
	r.ask(readers)
	r.end()
}

// end returns when the workers have ended, and gives back what they had.
func (r *rings) end() {
	r.running.Wait()
	r.close()
	r.connection.close()
}
