package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tansy/disk"
	tansyfs "tansy/fs"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/volumeend"
	"tansy/test/kit/nfsclient"
)

// TestHelperTansy is not a test: it is the program, for tests that need it as a process.
func TestHelperTansy(t *testing.T) {
	args := os.Getenv("TANSY_ARGS")
	if args == "" {
		t.Skip("only as another process")
	}
	if id := os.Getenv("TANSY_USER"); id != "" { // a user and the group of that number
		n, err := strconv.Atoi(id)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(syscall.Setgid(n), syscall.Setuid(n)); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getenv("LISTEN_PID") == "self" { // known only here
		os.Setenv("LISTEN_PID", strconv.Itoa(os.Getpid()))
	}
	os.Exit(run(strings.Split(args, "\n")))
}

// A process is a running server.
type process struct {
	cmd    *exec.Cmd
	addr   string
	status string // URL of the status, if that was asked for
	stderr output
}

// startServe runs `tansy serve` on a free port with more flags, until the end of the test.
func startServe(t *testing.T, flags ...string) *process {
	t.Helper()
	p := newServe(flags...)
	p.start(t)
	return p
}

// newServe returns what startServe starts. A size is for a volume that may have to be made.
func newServe(flags ...string) *process {
	if slices.Contains(flags, "--size") {
		flags = append(slices.Clip(flags), "--create")
	}
	p := &process{cmd: exec.Command(os.Args[0], "-test.run=^TestHelperTansy$")}
	args := append([]string{"serve"}, flags...)
	if !slices.Contains(flags, "--listen") {
		args = append(args, "--listen", "127.0.0.1:0")
	}
	p.cmd.Env = append(os.Environ(), "TANSY_ARGS="+strings.Join(args, "\n"))
	p.cmd.Stderr = &p.stderr
	return p
}

// start runs the process until the end of the test, and waits until it serves.
func (p *process) start(t *testing.T) {
	t.Helper()
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.cmd.Wait()
	})
	r := bufio.NewReader(out)
	line, err := r.ReadString('\n')
	if url, ok := strings.CutPrefix(strings.TrimSpace(line), "status on "); ok {
		p.status = url
		line, err = r.ReadString('\n')
	}
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("%q, %v", line, err)
	}
	go io.Copy(io.Discard, r)
	p.addr = addr
}

// wait waits for the end of the process and returns its exit code.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// stop stops the server, which ends well.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(t); code != exitOK {
		t.Fatalf("exit code %d\n%s", code, &p.stderr)
	}
}

// openBehind leaves in an image what a server leaves there that opens it where no lock is seen: its
// mark in the log's header. (It opens a copy.)
func openBehind(img string) error {
	b, err := os.ReadFile(img)
	if err != nil {
		return err
	}
	other := img + ".other"
	if err := os.WriteFile(other, b, 0o600); err != nil {
		return err
	}
	d, err := disk.OpenFile(other, disk.FileOptions{})
	if err != nil {
		return err
	}
	defer d.Close()
	v, err := tansyfs.Open(d, tansyfs.Options{})
	if err != nil {
		return err
	}
	if err := v.Close(); err != nil {
		return err
	}
	header := make([]byte, disk.BlockSize)
	at := headerOf(b[:disk.BlockSize])
	if err := d.ReadAt(uint64(at)/disk.BlockSize, [][]byte{header}); err != nil {
		return err
	}
	f, err := os.OpenFile(img, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(header, at)
	return errors.Join(err, f.Close())
}

// headerOf is where the log's header lies in an image with this superblock, in bytes.
func headerOf(super []byte) int64 {
	_, s := superblockformat.Decode(&dbytes.Bytes{Data: super})
	_, at, _ := volumeend.Locate(s)(volumeend.Journal(s).Start)
	return int64(at) * disk.BlockSize
}

// A server whose image is deleted, renamed, replaced or cut ends by itself, and says why.
func TestServeLost(t *testing.T) {
	t.Parallel()
	for what, harm := range map[string]func(img string) error{
		"deleted": os.Remove,
		"renamed": func(img string) error { return os.Rename(img, img+".2") },
		"replaced": func(img string) error {
			return errors.Join(os.WriteFile(img+".2", nil, 0o600), os.Rename(img+".2", img))
		},
		"cut":                    func(img string) error { return os.Truncate(img, 5<<20) },
		"opened by another host": openBehind,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			img := filepath.Join(t.TempDir(), "v.img")
			p := startServe(t, "--volume", img, "--size", "8M")
			c, err := nfsclient.Mount(p.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			cred := &tansyfs.Cred{}
			f, err := c.Create(cred, c.Root(), []byte("f"), tansyfs.Guarded, &tansyfs.SetAttr{}, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := harm(img); err != nil {
				t.Fatal(err)
			}
			for err == nil { // until it is noticed
				_, _, _, err = c.Write(cred, f.Handle, 0, []byte("data"), tansyfs.FileSync)
			}
			if code := p.wait(t); code != exitLost {
				t.Errorf("exit code %d, want %d", code, exitLost)
			}
			if s := p.stderr.String(); !strings.Contains(s, disk.ErrLost.Error()) {
				t.Errorf("no %q in\n%s", disk.ErrLost, s)
			}
		})
	}
}
