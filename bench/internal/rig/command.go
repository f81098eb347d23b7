// Package rig has what measurements run on: a device that is the same for all contenders, and their processes.
package rig

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
)

// Apart has a process not be told what is typed on the terminal: one behind a mount must go on until that is unmounted.
var Apart = &syscall.SysProcAttr{Setpgid: true}

// Command runs a program to its end and returns what it says. It is not told when somebody types Ctrl-C: the context
// tells it.
func Command(ctx context.Context, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.SysProcAttr = Apart
	return Output(c)
}

// Output runs c to its end and returns what it says, which is part of the error if it fails.
func Output(c *exec.Cmd) (string, error) {
	out, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(c.Args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), err
}
