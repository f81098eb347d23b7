//go:build linux

package mount

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	tansyfs "tansy/fs"
	"tansy/nfs/nlm"
	"tansy/nfs/oncrpc"
	"tansy/test/kit/mounttest"
	"tansy/test/kit/nfsclient"
)

// lockerFile has the file that a process of the tests locks, which is this program once more.
const lockerFile = "TANSY_TEST_LOCKS"

// TestHelperLocker is such a process. It reads commands, one a line, and writes what became of each: "ok" or an errno.
func TestHelperLocker(t *testing.T) {
	path := os.Getenv(lockerFile)
	if path == "" {
		t.Skip("for other tests")
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		fmt.Println("=", err)
		os.Exit(1)
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println("=", locker(f, lines.Text()))
	}
	os.Exit(0)
}

// locker does a command: KIND r|w|u|R|W FIRST LENGTH, where capitals wait, or KIND t FIRST LENGTH, which answers what
// is in the way. KIND is fcntl, ofd, or flock. "reopen" opens and closes the file by another descriptor.
func locker(f *os.File, command string) string {
	var kind, how string
	l := unix.Flock_t{Whence: io.SeekStart}
	fmt.Sscan(command, &kind, &how, &l.Start, &l.Len)
	if kind == "reopen" {
		g, err := os.Open(f.Name())
		if err == nil {
			err = g.Close()
		}
		return answerOf(err)
	}
	wait := how == "R" || how == "W"
	switch how {
	case "r", "R":
		l.Type = unix.F_RDLCK
	case "u":
		l.Type = unix.F_UNLCK
	default:
		l.Type = unix.F_WRLCK
	}
	if kind == "flock" {
		op := map[int16]int{unix.F_RDLCK: unix.LOCK_SH, unix.F_WRLCK: unix.LOCK_EX, unix.F_UNLCK: unix.LOCK_UN}[l.Type]
		if !wait {
			op |= unix.LOCK_NB
		}
		return answerOf(unix.Flock(int(f.Fd()), op))
	}
	cmd := map[string][3]int{
		"fcntl": {unix.F_SETLK, unix.F_SETLKW, unix.F_GETLK},
		"ofd":   {unix.F_OFD_SETLK, unix.F_OFD_SETLKW, unix.F_OFD_GETLK},
	}[kind]
	switch {
	case how == "t":
		if err := unix.FcntlFlock(f.Fd(), cmd[2], &l); err != nil {
			return answerOf(err)
		}
		return fmt.Sprintf("type %d, %d from %d, process %d", l.Type, l.Len, l.Start, l.Pid)
	case wait:
		return answerOf(unix.FcntlFlock(f.Fd(), cmd[1], &l))
	}
	return answerOf(unix.FcntlFlock(f.Fd(), cmd[0], &l))
}

func answerOf(err error) string {
	if err == nil {
		return "ok"
	}
	if e, is := err.(syscall.Errno); is {
		return unix.ErrnoName(e)
	}
	return err.Error()
}

// A program that locks a file of a mount.
type program struct {
	t       *testing.T
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers chan string
}

func newProgram(t *testing.T, path string) *program {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestHelperLocker$")
	c.Env = append(os.Environ(), lockerFile+"="+path)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	must(t, err)
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	p := &program{t, c, in, make(chan string, 10)}
	go func() {
		defer close(p.answers)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if answer, ok := strings.CutPrefix(lines.Text(), "= "); ok {
				p.answers <- answer
			}
		}
	}()
	t.Cleanup(p.kill)
	return p
}

// begin has the program do a command, whose answer comes later.
func (p *program) begin(command string) {
	p.t.Helper()
	_, err := io.WriteString(p.in, command+"\n")
	must(p.t, err)
}

// lockPatience is how long a test waits for what has to come.
const lockPatience = 20 * time.Second

// gets waits for an answer.
func (p *program) gets(want string) {
	p.t.Helper()
	select {
	case got := <-p.answers:
		if got != want {
			p.t.Errorf("%q, want %q", got, want)
		}
	case <-time.After(lockPatience):
		p.t.Fatalf("no answer, want %q", want)
	}
}

func (p *program) want(command, answer string) {
	p.t.Helper()
	p.begin(command)
	p.gets(answer)
}

// end ends the program by itself, and kill at once.
func (p *program) end() {
	p.in.Close()
	p.cmd.Wait()
}

func (p *program) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// elsewhere is a client that locks a file by NLM.
type elsewhere struct {
	t    *testing.T
	conn *nfsclient.Conn
	raw  []byte
}

func newElsewhere(t *testing.T, m *mounttest.Mount, c *nfsclient.Client, h tansyfs.Handle) *elsewhere {
	t.Helper()
	conn, err := nfsclient.Dial(m.Addr)
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return &elsewhere{t, conn, c.Raw(h)}
}

// call makes a call about an exclusive lock, and returns its status.
func (e *elsewhere) call(proc uint32, offset, length uint64) uint32 {
	e.t.Helper()
	d, err := e.conn.Call(nlm.Program, 4, proc, root, func(x *oncrpc.Encoder) {
		x.Opaque(nil) // cookie
		if proc == nlm.ProcLock {
			x.Bool(false) // block
		}
		if proc != nlm.ProcUnlock {
			x.Bool(true)
		}
		x.Opaque([]byte("elsewhere"))
		x.Opaque(e.raw)
		x.Opaque([]byte("owner"))
		x.Uint32(1)
		x.Uint64(offset)
		x.Uint64(length)
		if proc == nlm.ProcLock {
			x.Bool(false)
			x.Uint32(1)
		}
	})
	must(e.t, err)
	d.Opaque(1024)
	return d.Uint32()
}

func (e *elsewhere) lock(want uint32, offset, length uint64) {
	e.t.Helper()
	if got := e.call(nlm.ProcLock, offset, length); got != want {
		e.t.Errorf("LOCK of %d from %d: %d, want %d", length, offset, got, want)
	}
}

func (e *elsewhere) unlock(offset, length uint64) {
	e.t.Helper()
	if got := e.call(nlm.ProcUnlock, offset, length); got != nlm.Granted {
		e.t.Errorf("UNLOCK: %d", got)
	}
}

// free waits until a client can lock bytes, which are given back soon.
func (e *elsewhere) free(offset, length uint64) {
	e.t.Helper()
	for late := time.Now().Add(lockPatience); e.call(nlm.ProcLock, offset, length) != nlm.Granted; {
		if time.Now().After(late) {
			e.t.Fatalf("%d bytes from %d are not free", length, offset)
		}
	}
	e.unlock(offset, length)
}

// locking is a served volume with locks, a file f, and a client.
func locking(t *testing.T) (m *mounttest.Mount, bin, image, file string, e *elsewhere) {
	t.Helper()
	bin = mounttest.Build(t)
	m, image, c, p := served(t, bin, "--locks", "--portmapper", "--portmapper-port", "0")
	return m, bin, image, p("f"), newElsewhere(t, m, c, put(t, c, "f", "data"))
}

// Programs on the mount and NFS clients exclude each other, and programs each other, by fcntl and by flock.
func TestLocksBothFaces(t *testing.T) {
	m, bin, image, file, e := locking(t)
	a, b := newProgram(t, file), newProgram(t, file)
	a.want("fcntl w 10 20", "ok")
	b.want("fcntl r 29 1", "EAGAIN")
	b.want("fcntl t 0 0", fmt.Sprintf("type %d, 20 from 10, process %d", unix.F_WRLCK, a.cmd.Process.Pid))
	e.lock(nlm.Denied, 29, 1)
	e.lock(nlm.Granted, 30, 0)
	b.want("fcntl w 1000 10", "EAGAIN")
	b.want("fcntl t 100 0", fmt.Sprintf("type %d, 0 from 30, process 0", unix.F_WRLCK))
	b.want("flock w", "EAGAIN")
	a.want("fcntl u 15 5", "ok") // two remain
	e.lock(nlm.Granted, 15, 5)
	e.lock(nlm.Denied, 14, 1)
	e.lock(nlm.Denied, 20, 1)
	e.unlock(0, 0)
	a.want("fcntl u 0 0", "ok")

	a.want("flock r", "ok")
	b.want("flock r", "ok")
	b.want("flock w", "EAGAIN") // and what it had is given back
	a.want("flock w", "ok")
	e.lock(nlm.Denied, 1<<63, 1)
	a.want("flock u", "ok")
	e.lock(nlm.Granted, 1<<62, 1)
	b.want("flock r", "EAGAIN")
	e.unlock(0, 0)

	a.want("ofd w 10 20", "ok")
	a.want("fcntl w 10 20", "EAGAIN") // the open file's, not the process's
	e.lock(nlm.Denied, 10, 1)
	a.end()
	e.free(0, 0)
	b.end()
	stop(t, m, bin, image)
}

// answered is which of two programs has an answer first, which stays, and the other one.
func answered(a, b *program) (first, other *program) {
	a.t.Helper()
	select {
	case got := <-a.answers:
		a.answers <- got
		return a, b
	case got := <-b.answers:
		b.answers <- got
		return b, a
	case <-time.After(lockPatience):
		a.t.Fatal("both wait")
		panic("")
	}
}

// Who waits on the mount has the lock when a client, or another program, gives it back.
func TestLocksWait(t *testing.T) {
	_, _, _, file, e := locking(t)
	a, b := newProgram(t, file), newProgram(t, file)
	e.lock(nlm.Granted, 10, 20)
	a.begin("ofd W 0 15")
	b.begin("flock W")
	e.unlock(0, 0)
	first, other := answered(a, b)
	first.gets("ok")
	first.want("ofd u 0 0", "ok") // whichever it is
	first.want("flock u", "ok")
	other.gets("ok")
	e.lock(nlm.Denied, 0, 1)
	other.want("ofd u 0 0", "ok")
	other.want("flock u", "ok")
	e.free(0, 0)

	a.want("flock r", "ok") // both convert: one has to give way
	b.want("flock r", "ok")
	a.begin("flock W")
	b.begin("flock W")
	first, other = answered(a, b)
	first.gets("ok")
	first.want("flock u", "ok")
	other.gets("ok")
}

// A process loses what it has, and what it waits for, when it ends however, and what it has of a file when it closes
// the file by whatever descriptor. An open file keeps its own until its last descriptor is closed.
func TestLocksEnd(t *testing.T) {
	m, bin, image, file, e := locking(t)
	a := newProgram(t, file)
	a.want("fcntl w 0 10", "ok")
	a.want("ofd w 20 10", "ok")
	a.want("reopen", "ok")
	e.free(0, 10)
	e.lock(nlm.Denied, 20, 1)
	a.kill()
	e.free(0, 0)

	b, c := newProgram(t, file), newProgram(t, file)
	b.want("flock w", "ok")
	c.begin("fcntl W 0 0")
	waiting(t, c)
	c.kill()
	b.kill()
	e.free(0, 0)

	d := newProgram(t, file)
	d.want("fcntl w 0 10", "ok")
	mounttest.Run(t, bin, "umount", "--lazy", m.Dir)
	e.lock(nlm.Denied, 0, 10)
	d.kill()
	e.free(0, 0)
	must(t, m.Cmd.Process.Signal(syscall.SIGTERM))
	if code := m.Wait(); code != 0 {
		t.Errorf("exit code %d\n%s", code, &m.Log)
	}
	mounttest.Run(t, bin, "check", image, "--data")
}

// waiting waits until a thread of a program waits for a lock.
func waiting(t *testing.T, p *program) {
	t.Helper()
	for late := time.Now().Add(lockPatience); time.Now().Before(late); {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.cmd.Process.Pid))
		must(t, err)
		for _, x := range threads {
			at, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/syscall", p.cmd.Process.Pid, x.Name()))
			if strings.HasPrefix(string(at), fmt.Sprintf("%d ", unix.SYS_FCNTL)) {
				return
			}
		}
	}
	t.Fatal("it does not wait")
}

// A mount whose server has no locks has those of the kernel: clients and programs do not see each other's.
func TestLocksApart(t *testing.T) {
	bin := mounttest.Build(t)
	_, _, c, p := served(t, bin)
	put(t, c, "f", "data")
	a, b := newProgram(t, p("f")), newProgram(t, p("f"))
	a.want("fcntl w 0 0", "ok")
	b.want("fcntl w 0 0", "EAGAIN")
	b.want("flock w", "ok")
}
