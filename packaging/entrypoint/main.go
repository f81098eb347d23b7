// Command entrypoint is what the container starts (packaging/Dockerfile): it becomes tansy, with the arguments that
// follow. Before a server, it has the volume made, once, of TANSY_SIZE bytes, if /data is a new volume of Docker's or
// Podman's. Such a one begins as a copy of the image's /data, with the file .new in it. A folder of the host has none,
// and may be where a disk is not mounted today: there, somebody has to say that a volume is to be made.
//
// Its exit codes are those of a shell: 127 if there is no tansy, 126 if it cannot be run, 2 without TANSY_SIZE; that of
// tansy mkfs, if it fails, or 128 and the number of the signal that ended it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// program is looked for in PATH.
const program = "tansy"

func main() {
	exit(start("/data", os.Args[1:]))
}

// exit ends this process, and says why.
func exit(f *failure) {
	if f.why != nil {
		fmt.Fprintln(os.Stderr, "entrypoint:", f.why)
	}
	os.Exit(f.code)
}

// failure is why the program was not started.
type failure struct {
	code int   // of this process's exit
	why  error // nil if tansy mkfs has told it
}

// start becomes the program with args, where the container's volume is in the folder data. It returns if that fails.
func start(data string, args []string) *failure {
	fresh := filepath.Join(data, ".new")
	image := filepath.Join(data, "tansy.img")
	if _, err := os.Stat(fresh); err == nil && serves(args, image) {
		if err := mkfs(image); err != nil {
			return err
		}
		if err := os.Remove(fresh); err != nil {
			return &failure{1, err}
		}
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return &failure{127, err}
	}
	err = syscall.Exec(path, append([]string{program}, args...), os.Environ())
	return &failure{126, fmt.Errorf("%s: %w", path, err)}
}

// serves tells that args start a server of the image, whatever else they say.
func serves(args []string, image string) bool {
	rest, ok := strings.CutPrefix(strings.Join(args, " "), "serve ")
	return ok && strings.Contains(rest, image)
}

// mkfs makes the image, of TANSY_SIZE bytes, if there is none. Whoever stops the container meanwhile stops mkfs, which
// leaves nothing that the next start would take for a volume.
func mkfs(image string) *failure {
	size, ok := os.LookupEnv("TANSY_SIZE")
	if !ok {
		return &failure{2, errors.New("TANSY_SIZE is not set: say how large the new volume is to be, such as TANSY_SIZE=10G")}
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return &failure{127, err}
	}
	stop, done := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer done()
	c := exec.CommandContext(stop, path, "mkfs", image, "--if-missing", "--size", size)
	c.Args[0] = program
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = c.Run()
	if err == nil {
		return nil
	}
	if c.ProcessState == nil {
		return &failure{126, err}
	}
	switch status := c.ProcessState.Sys().(syscall.WaitStatus); {
	case status.Signaled():
		return &failure{128 + int(status.Signal()), fmt.Errorf("tansy mkfs: %v", c.ProcessState)}
	case status.ExitStatus() == 0: // it was told to stop when it had ended
		return &failure{128 + int(syscall.SIGTERM), nil}
	default:
		return &failure{status.ExitStatus(), nil}
	}
}
