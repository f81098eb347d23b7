package rbd

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

//go:embed helper.py
var script []byte

// packages are those of Debian that the helper needs.
const packages = "install Debian's packages nbdkit, nbdkit-plugin-python and python3-rbd"

// goodbye is how long a helper has to give the lock back.
const goodbye = 10 * time.Second

// helper is a running helper.
type helper struct {
	dir   string // its files, for us alone
	file  string // the plugin, if it is not the one in Python
	cmd   *exec.Cmd
	lines chan string   // what it says for us, until it ends
	ended chan struct{} // closed when it has

	mu   sync.Mutex
	last string // what else it said, the last line
}

// start starts a helper that takes the lock of an image.
func start(t *target, o Options) (*helper, error) {
	program, err := exec.LookPath("nbdkit")
	if err != nil {
		return nil, fmt.Errorf("nbdkit is missing, by which images of Ceph are reached: %s", packages)
	}
	dir, err := os.MkdirTemp("", "tansy-rbd-") // mode 0700
	if err != nil {
		return nil, err
	}
	h := &helper{dir: dir, file: compiled(), lines: make(chan string, 16), ended: make(chan struct{})}
	plugin := []string{h.file}
	if h.file == "" {
		file := filepath.Join(dir, "helper.py")
		if err := os.WriteFile(file, script, 0o600); err != nil {
			h.forgetFiles()
			return nil, err
		}
		plugin = []string{"python", file}
	}
	args := []string{"--foreground", "--exit-with-parent", "--threads", "32", "--unix", h.socket()}
	if o.ReadOnly {
		args = append(args, "--readonly")
	}
	args = append(append(args, plugin...), t.parameters()...)
	if o.Wait {
		args = append(args, "wait=1")
	}
	if o.Take {
		args = append(args, "take=1")
	}
	if o.Patience > 0 {
		args = append(args, fmt.Sprintf("patience=%.0f", max(1, o.Patience.Seconds())))
	}
	h.cmd = exec.Command(program, args...)
	// A Ctrl-C in the terminal is for us: the helper is needed until the volume is closed.
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := h.cmd.StderrPipe()
	if err != nil {
		h.forgetFiles()
		return nil, err
	}
	started := make(chan error)
	go func() {
		// On Linux a parent is the thread that started a process: this one lives as long as the helper.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := h.cmd.Start()
		started <- err
		if err == nil {
			h.listen(out)
			h.cmd.Wait()
			close(h.ended)
		}
	}()
	if err := <-started; err != nil {
		h.forgetFiles()
		return nil, err
	}
	return h, nil
}

func (h *helper) socket() string { return filepath.Join(h.dir, "nbd") }

// export is the name by which package nbd finds the image.
func (h *helper) export() string {
	u := url.URL{Scheme: "nbd+unix", Path: "/", RawQuery: "socket=" + url.QueryEscape(h.socket())}
	return u.String()
}

// listen takes what the helper says, to its end.
func (h *helper) listen(r io.Reader) {
	defer close(h.lines)
	for s := bufio.NewReader(r); ; {
		line, err := s.ReadString('\n')
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "rbd: "); ok {
			select {
			case h.lines <- text:
			default: // nobody asks any more
			}
		} else if line != "" {
			h.mu.Lock()
			h.last = line
			h.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

// lastWords are for the end of an error, if the helper said anything.
func (h *helper) lastWords() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last == "" {
		return ""
	}
	return " (" + h.last + ")"
}

// locked waits until the helper has the lock.
func (h *helper) locked(ctx context.Context, waiting func(string)) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case line, ok := <-h.lines:
			if !ok {
				<-h.ended
				return h.failure()
			}
			what, text, _ := strings.Cut(line, " ")
			switch what {
			case "locked":
				return nil
			case "waiting":
				if waiting != nil {
					waiting(text)
				}
			case "failed":
				return errors.New(text)
			}
		}
	}
}

// failure is why a helper ended without a word.
func (h *helper) failure() error {
	last := h.lastWords()
	switch {
	case !strings.Contains(last, "cannot open plugin"):
		return fmt.Errorf("the helper ended: %v%s", h.cmd.ProcessState, last)
	case h.file != "":
		return fmt.Errorf("the helper in C cannot be loaded%s: install Debian's package librbd1, or remove the file", last)
	}
	return fmt.Errorf("nbdkit has no plugin for Python%s: %s", last, packages)
}

// forgetFiles removes the files of a helper that is connected, or not wanted.
func (h *helper) forgetFiles() { os.RemoveAll(h.dir) }

// stop ends the helper, and waits until it has given the lock back.
func (h *helper) stop() {
	h.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-h.ended:
	case <-time.After(goodbye):
		h.cmd.Process.Kill()
		<-h.ended
	}
	h.forgetFiles()
}
