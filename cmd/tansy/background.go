//go:build linux || darwin

package main

import (
	"io"
	"log/syslog"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// readyVariable is set in the environment of a process that was started in the background: it tells its parent by
// the descriptor readyFD when it is ready.
const (
	readyVariable = "TANSY_TELLS_WHEN_READY"
	readyFD       = 3
)

// inBackground starts this command once more, as a process that outlives this one and its terminal, and
// returns when that is ready, or its exit code.
func inBackground() int {
	r, w, err := os.Pipe()
	if err != nil {
		return fail("mount", err)
	}
	defer r.Close()
	exe, err := executable()
	if err != nil {
		return fail("mount", err)
	}
	c := exec.Cmd{
		Path: exe, Args: os.Args, Env: append(os.Environ(), readyVariable+"=1"),
		Stderr: os.Stderr, ExtraFiles: []*os.File{w}, SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	err = c.Start()
	w.Close()
	if err != nil {
		return fail("mount", err)
	}
	if said, _ := io.ReadAll(r); len(said) > 0 {
		return exitOK
	}
	c.Wait()
	if code := c.ProcessState.ExitCode(); code > 0 {
		return code
	}
	return exitFailure // without being ready it cannot have done what was wanted
}

// errorOutput is standard error, and syslog when a process in the background is ready.
type errorOutput struct {
	mu sync.Mutex
	w  io.Writer
}

func (o *errorOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(p)
}

// ready tells the parent, if this process was started in the background, and lets go of all that came from there.
func (o *errorOutput) ready() error {
	if os.Getenv(readyVariable) == "" {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if l, err := syslog.New(syslog.LOG_DAEMON|syslog.LOG_NOTICE, "tansy"); err == nil {
		o.w = l
	} else {
		o.w = io.Discard
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	for fd := range 3 {
		if err := dup2(int(null.Fd()), fd); err != nil {
			return err
		}
	}
	w := os.NewFile(readyFD, "parent")
	defer w.Close()
	_, err = w.WriteString("ready\n")
	return err
}
