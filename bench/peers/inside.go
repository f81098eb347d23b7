//go:build linux

package peers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"tansy/bench/internal/rig"
	"tansy/mount"
)

// insideVariable is set in the process that runs in name spaces of its own.
const insideVariable = "TANSY_PEERS_INSIDE"

// goInside runs this program once more, in name spaces of its own for the network and for mounts, and returns its exit
// code.
func goInside() int {
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "peers: only root can make file systems and name spaces")
		return 1
	}
	inside := exec.Command("/proc/self/exe", os.Args[1:]...)
	inside.Env = append(os.Environ(), insideVariable+"=yes")
	inside.Stdin, inside.Stdout, inside.Stderr = os.Stdin, os.Stdout, os.Stderr
	inside.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Setpgid: true}
	if err := inside.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		return 1
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		for s := range signals {
			inside.Process.Signal(s)
		}
	}()
	err := inside.Wait()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		fmt.Fprintln(os.Stderr, "peers:", err)
	}
	return inside.ProcessState.ExitCode()
}

// furnish makes the name spaces usable: the loopback interface is up, and /run is one of their own. Volumes that others
// have mounted are not: else they could not be closed as long as this lasts.
func furnish() error {
	if os.Getenv(insideVariable) == "" {
		return errors.New("not in name spaces of its own")
	}
	volumes, err := mount.Volumes()
	if err != nil {
		return err
	}
	for dir := range volumes {
		err := unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) { // gone meanwhile, as its owner did it
			return fmt.Errorf("unmount %s: %w", dir, err)
		}
	}
	if err := unix.Mount("run", "/run", "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("mount /run: %w", err)
	}
	return rig.LoopbackUp()
}
