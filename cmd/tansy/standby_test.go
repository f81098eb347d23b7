package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	tansyfs "tansy/fs"
	"tansy/test/kit/nfsclient"
	"tansy/test/kit/rbdtest"
)

func TestHelperNbdkit(t *testing.T) { rbdtest.Helper(t) }

// images is how many onCeph has made.
var images atomic.Int64

// onCeph makes a volume on an image, and returns the path of the image, which lies in the folder that TestMain made,
// and the volume's name.
func onCeph(t *testing.T, flags ...string) (image, name string) {
	t.Helper()
	dir := os.Getenv(rbdtest.Folder)
	image = filepath.Join(dir, fmt.Sprint("i", images.Add(1)))
	name = rbdtest.Image(t, dir, filepath.Base(image), 16<<20)
	if code, said := tool(t, append([]string{"mkfs", name, "--force"}, flags...)...); code != exitOK {
		t.Fatal(said)
	}
	return image, name
}

// TestCephTools: what takes a volume takes the name of an image.
func TestCephTools(t *testing.T) {
	_, name := onCeph(t)
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{exitFailure, "--force", []string{"mkfs", name}},
		{exitOK, "clean", []string{"check", name}},
		{exitOK, "inodes", []string{"dump", name}},
		{exitOK, "nothing to do", []string{"repair", name}},
		{exitUsage, "--undo", []string{"repair", name, "--yes"}},
		{exitUsage, "no such file", []string{"check", "rbd:pool/none"}},
		{exitUsage, "rbd:POOL/IMAGE is meant", []string{"check", "rbd:none"}},
		{exitUsage, "start one for each", []string{"serve", "--volume", name + ":/a", "--volume", "b.img:/b"}},
		{exitUsage, "--standby is for volumes on Ceph", []string{"serve", "--standby", "--volume", "/dev/sdx"}},
		{exitUsage, "--standby is for volumes on Ceph", []string{"serve", "--standby", "--volume", "nbd://h/x"}},
		{exitUsage, "--take is for volumes on Ceph", []string{"serve", "--take", "--volume", "v.img"}},
		{exitUsage, "--lease", []string{"serve", "--lease", "10ms", "--volume", name}},
	} {
		if code, said := tool(t, c.args...); code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("%v: exit code %d, want %d and %q\n%s", c.args, code, c.code, c.says, said)
		}
	}
	p := startServe(t, "--volume", name, "--lease", "1s")
	for _, args := range [][]string{{"check", name}, {"serve", "--volume", name}} {
		if _, said := tool(t, args...); !strings.Contains(said, "in use by client.1") {
			t.Errorf("%v beside a server\n%s", args, said)
		}
	}
	p.stop(t)
	t.Setenv("PATH", t.TempDir())
	if code, said := tool(t, "check", name); code != exitUsage || !strings.Contains(said, "install Debian's packages") {
		t.Errorf("without nbdkit: exit code %d\n%s", code, said)
	}
}

func TestCephVolumes(t *testing.T) {
	for text, want := range map[string]place{
		"rbd:p/i":                     {"rbd:p/i", "/"},
		"rbd:p/i?id=u&conf=/c":        {"rbd:p/i?id=u&conf=/c", "/"},
		"rbd:p/i?id=u&conf=/c:/a/b":   {"rbd:p/i?id=u&conf=/c", "/a/b"},
		"rbd:p/i?keyring=/etc/k:/exp": {"rbd:p/i?keyring=/etc/k", "/exp"},
	} {
		var l volumeList
		if err := l.Set(text); err != nil || l.list[0] != want {
			t.Errorf("%s: %v, %v", text, l.list, err)
		}
	}
}

// TestStandby: whatever becomes of the owner, what it has acknowledged its successor has; and the owner says nothing
// more, not even that something failed.
func TestStandby(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		lose func(t *testing.T, image string, p *process)
		code int // of the former owner
		take bool
	}{
		"stopped": {func(t *testing.T, image string, p *process) {
			p.cmd.Process.Signal(os.Interrupt)
		}, exitOK, false},
		"killed": {func(t *testing.T, image string, p *process) {
			p.cmd.Process.Kill()
		}, -1, false},
		"its helper killed": {func(t *testing.T, image string, p *process) {
			signalHelper(t, image, syscall.SIGKILL)
		}, exitTaken, false},
		"fenced": {func(t *testing.T, image string, p *process) {
			signalHelper(t, image, syscall.SIGUSR1)
		}, exitTaken, false},
		"taken from by force": {func(t *testing.T, image string, p *process) {}, exitTaken, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			image, volume := onCeph(t)
			p := startServe(t, "--volume", volume, "--lease", "1s")
			c, err := nfsclient.Mount(p.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			mkdir := func(name string) error {
				_, err := c.Mkdir(&tansyfs.Cred{}, c.Root(), []byte(name), &tansyfs.SetAttr{})
				return err
			}
			if err := mkdir("a"); err != nil {
				t.Fatal(err)
			}
			active := filepath.Join(t.TempDir(), "active")
			flags := []string{"--volume", volume, "--lease", "1s", "--standby", "--on-active", `echo "$TANSY_VOLUME" >` + active}
			if x.take {
				flags = append(flags, "--take")
			}
			next := newServe(flags...)
			begun := make(chan struct{})
			go func() { // start returns when it serves
				defer close(begun)
				next.start(t)
			}()
			if !x.take {
				next.says(t, "standing by")
				if _, err := os.Stat(active); err == nil {
					t.Error("a standby is active")
				}
			}
			x.lose(t, image, p)
			for i := 0; err == nil; i++ {
				err = mkdir("b")
				if errors.Is(err, tansyfs.ErrExist) {
					err = nil
				}
			}
			if !ended(err) {
				t.Errorf("the former owner answered: %v", err)
			}
			if code := p.wait(t); code != x.code {
				t.Errorf("exit code %d, want %d\n%s", code, x.code, &p.stderr)
			}
			if x.code == exitTaken {
				oneReason(t, p)
			}
			<-begun
			if text, err := os.ReadFile(active); err != nil || string(text) != volume+"\n" {
				t.Errorf("--on-active: %q, %v", text, err)
			}
			c, err = nfsclient.Mount(next.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := mkdir("a"); !errors.Is(err, tansyfs.ErrExist) {
				t.Errorf("what the former owner made: %v", err)
			}
			next.stop(t)
			if code, said := tool(t, "check", volume); code != exitOK {
				t.Error(said)
			}
		})
	}
}

// signalHelper sends a signal to the helper that has the lock of an image.
func signalHelper(t *testing.T, image string, s syscall.Signal) {
	t.Helper()
	rbdtest.Signal(t, filepath.Dir(image), filepath.Base(image), s)
}

// oneReason looks whether a server that lost its volume says so, and nothing of what failed for it.
func oneReason(t *testing.T, p *process) {
	t.Helper()
	said := p.stderr.String()
	if strings.Count(said, "the volume is not ours any more") != 1 || strings.Contains(said, "level=ERROR") || strings.Count(said, "tansy serve: ") != 1 {
		t.Errorf("it should give one reason:\n%s", said)
	}
}

// TestStandbyLostEarly: a volume that is lost before it is served, when its storage is asked for the first time or
// while it is recovered, is lost in the same way.
func TestStandbyLostEarly(t *testing.T) {
	t.Parallel()
	for _, reads := range []int{0, 6, 10, 20} {
		t.Run(fmt.Sprint(reads), func(t *testing.T) {
			t.Parallel()
			image, volume := onCeph(t) // another one: the helper of who has lost it gives the lock back when it likes
			rbdtest.FenceAfter(t, filepath.Dir(image), filepath.Base(image), reads)
			p := newServe("--volume", volume, "--lease", "1s")
			if err := p.cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if code := p.wait(t); code != exitTaken {
				t.Errorf("exit code %d\n%s", code, &p.stderr)
			}
			oneReason(t, p)
		})
	}
}

// TestStandbyMark: another's mark in the log means the same as a fence.
func TestStandbyMark(t *testing.T) {
	t.Parallel()
	image, volume := onCeph(t)
	p := startServe(t, "--volume", volume, "--lease", "1s")
	c, err := nfsclient.Mount(p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := openBehind(image); err != nil {
		t.Fatal(err)
	}
	for i := 0; err == nil; i++ {
		_, err = c.Mkdir(&tansyfs.Cred{}, c.Root(), fmt.Append(nil, i), &tansyfs.SetAttr{})
	}
	if !ended(err) {
		t.Errorf("it answered: %v", err)
	}
	if code := p.wait(t); code != exitTaken {
		t.Errorf("exit code %d\n%s", code, &p.stderr)
	}
}

// TestStandbySlept: a server that stood still for longer than its lease looks for another's mark before it answers,
// also what it could from its cache.
func TestStandbySlept(t *testing.T) {
	t.Parallel()
	image, volume := onCeph(t)
	const lease = time.Second
	p := startServe(t, "--volume", volume, "--lease", lease.String())
	c, err := nfsclient.Mount(p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p.cmd.Process.Signal(syscall.SIGSTOP)
	if err := openBehind(image); err != nil {
		t.Fatal(err)
	}
	answer := make(chan error)
	go func() {
		_, err := c.Getattr(c.Root())
		answer <- err
	}()
	time.Sleep(lease + lease/10) // its sleep, not a synchronisation
	p.cmd.Process.Signal(syscall.SIGCONT)
	if err := <-answer; !ended(err) {
		t.Errorf("it answered: %v", err)
	}
	if code := p.wait(t); code != exitTaken {
		t.Errorf("exit code %d\n%s", code, &p.stderr)
	}
}

// TestStandbyReadOnly: a server that puts no mark into the log finds its own all the same.
func TestStandbyReadOnly(t *testing.T) {
	t.Parallel()
	_, volume := onCeph(t)
	p := startServe(t, "--volume", volume, "--lease", "1s", "--read-only")
	c, err := nfsclient.Mount(p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Mkdir(&tansyfs.Cred{}, c.Root(), []byte("a"), &tansyfs.SetAttr{}); !errors.Is(err, tansyfs.ErrROFS) {
		t.Error(err)
	}
	p.stop(t)
}

// ended says that err is the end of a connection.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, new(*net.OpError))
}

// TestStandbyStops: a standby that is told to stop has done nothing, and ends well. Meanwhile probes see that it is
// well, and not ready.
func TestStandbyStops(t *testing.T) {
	t.Parallel()
	_, volume := onCeph(t)
	p := startServe(t, "--volume", volume, "--lease", "1s")
	next := newServe("--volume", volume, "--standby", "--status", "127.0.0.1:0")
	out, err := next.cmd.StdoutPipe()
	if err == nil {
		err = next.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	next.says(t, "standing by")
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "status on ")
	if err != nil || !ok {
		t.Fatalf("%q, %v", line, err)
	}
	if text := get(t, url+"healthz"); text != "ok\n" {
		t.Errorf("healthz: %q", text)
	}
	r, err := http.Get(url + "readyz")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(r.Body)
	r.Body.Close()
	if r.StatusCode != http.StatusServiceUnavailable || string(text) != "the server is standing by\n" {
		t.Errorf("readyz: %d %q", r.StatusCode, text)
	}
	next.stop(t)
	p.stop(t)
}

// activating starts a server whose command of --on-active runs, and tells by the pipe that it returns when all that the
// command has started is over. Server and command are not in our group of processes. more is what the command does
// further, in a folder of its own.
func activating(t *testing.T, more string) (p *process, running *os.File, dir string) {
	t.Helper()
	_, volume := onCeph(t)
	dir = t.TempDir()
	pipe, begun := filepath.Join(dir, "pipe"), filepath.Join(dir, "begun")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	running, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { running.Close() })
	p = newServe("--volume", volume, "--lease", "1s", "--on-active", "cd "+dir+"; exec 9>pipe; touch begun; "+more)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.cmd.Process.Kill() })
	for _, err := os.Stat(begun); err != nil; _, err = os.Stat(begun) {
		if p.cmd.Process.Signal(syscall.Signal(0)) != nil {
			t.Fatal(&p.stderr)
		}
	}
	return p, running, dir
}

// TestStoppedWhileActivated: a signal stops a server whose command of --on-active does not end, and all that the
// command has started; so does Ctrl-C, which goes to all processes of the terminal.
func TestStoppedWhileActivated(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(server int) error{
		"SIGTERM": func(server int) error { return syscall.Kill(server, syscall.SIGTERM) },
		"SIGINT":  func(server int) error { return syscall.Kill(server, syscall.SIGINT) },
		"Ctrl-C":  func(server int) error { return syscall.Kill(-server, syscall.SIGINT) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, running, _ := activating(t, "sleep 1000 & wait")
			if err := stop(p.cmd.Process.Pid); err != nil {
				t.Fatal(err)
			}
			if err := p.cmd.Wait(); err != nil { // the command would have been killed in the end, which is a failure
				t.Errorf("%v\n%s", err, &p.stderr)
			}
			running.SetReadDeadline(time.Now().Add(time.Minute))
			if _, err := running.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("what the command has started runs on: %v", err)
			}
		})
	}
}

// TestHangupWhileActivated: SIGHUP before the server listens does not end it, and is heard when it does.
func TestHangupWhileActivated(t *testing.T) {
	t.Parallel()
	p, _, dir := activating(t, "mkfifo go; cat go")
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	release := exec.Command("/bin/sh", "-c", "until [ -p $0/go ]; do :; done; echo go >$0/go", dir)
	if out, err := release.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	p.says(t, "nothing to reload")
	p.stop(t)
}

// TestNotActive: a server whose command of --on-active fails gives the volume up.
func TestNotActive(t *testing.T) {
	t.Parallel()
	_, volume := onCeph(t)
	for command, says := range map[string]string{
		"echo no address; exit 3": `--on-active "echo no address; exit 3": exit status 3: no address` + "\n",
		"false":                   `--on-active "false": exit status 1` + "\n",
	} {
		code, said := tool(t, "serve", "--listen", "127.0.0.1:0", "--volume", volume, "--lease", "1s", "--on-active", command)
		if code != exitFailure || !strings.Contains(said, says) {
			t.Errorf("exit code %d\n%s", code, said)
		}
	}
	if code, said := tool(t, "check", volume); code != exitOK {
		t.Error(said)
	}
}
