// Package rbdtest stands in for nbdkit in tests of volumes on Ceph, where there is no Ceph: images are files in a
// folder, the lock of an image is that of its file. What only Ceph can do, it does to its processes: to take a lock is
// to kill the owner.
//
// A test binary that uses it is that nbdkit, too: it has a test that calls Helper. Others put the program in the folder
// nbdkit into their PATH.
package rbdtest

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tansy/disk"
	"tansy/test/kit/nbdtest"
)

// Folder is the variable of the environment with the folder of images.
const Folder = "TANSY_RBDTEST"

// Install puts an nbdkit into the PATH that is this test binary, running the test of that name, and returns the folder
// of its images.
func Install(t testing.TB, test string) string {
	t.Helper()
	dir := t.TempDir()
	path, err := Put(dir, test)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", path)
	t.Setenv(Folder, dir)
	return dir
}

// Put makes dir a folder of images with what Install needs beside them, and returns the PATH that finds it.
func Put(dir, test string) (path string, err error) {
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' -test.run='^%s$' -- \"$@\"\n", os.Args[0], test)
	bin := filepath.Join(dir, "bin")
	err = errors.Join(os.Mkdir(bin, 0o700), os.WriteFile(filepath.Join(bin, "nbdkit"), []byte(script), 0o700))
	return bin + ":" + os.Getenv("PATH"), err
}

// Image makes an image of some bytes and returns its name.
func Image(t testing.TB, dir, image string, size int64) string {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, image))
	if err == nil {
		err = errors.Join(f.Truncate(size), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return "rbd:pool/" + image
}

// Signal sends a signal to the helper that has the lock of an image. SIGUSR1 is a fence: all that the helper is asked
// for fails from then on.
func Signal(t testing.TB, dir, image string, s syscall.Signal) {
	t.Helper()
	if err := kill(dir, image, s); err != nil {
		t.Fatal(err)
	}
}

func kill(dir, image string, s syscall.Signal) error {
	text, err := os.ReadFile(filepath.Join(dir, image+".owner"))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		return err
	}
	return syscall.Kill(pid, s)
}

// FenceAfter has helpers for an image that start from now on come behind a fence when they were asked to read so many
// times.
func FenceAfter(t testing.TB, dir, image string, reads int) {
	t.Helper()
	if err := os.WriteFile(fenceFile(dir, image), []byte(strconv.Itoa(reads)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// fenceFile has the reads of an image until a fence, if it shall come by itself.
func fenceFile(dir, image string) string { return filepath.Join(dir, image+".reads") }

// Helper is the nbdkit, if the test binary was started as one.
func Helper(t *testing.T) {
	if os.Getenv(Folder) == "" || flag.NArg() == 0 {
		t.Skip("only as another process")
	}
	os.Exit(Main(flag.Args()))
}

// Main is the nbdkit, started with these arguments. It returns its exit code when it is told to end.
func Main(args []string) int {
	dieWithParent()
	dir := os.Getenv(Folder)
	settings := map[string]string{}
	socket := ""
	for i, a := range args {
		if key, value, ok := strings.Cut(a, "="); ok {
			settings[key] = value
		} else if a == "--unix" {
			socket = args[i+1]
		}
	}
	image := settings["image"]
	d := open(dir, image, settings)
	if d == nil {
		return 1
	}
	owner := []byte(strconv.Itoa(os.Getpid()))
	l, err := net.Listen("unix", socket)
	if err = errors.Join(err, os.WriteFile(filepath.Join(dir, image+".owner"), owner, 0o600)); err != nil {
		say("failed " + err.Error())
		return 1
	}
	watched := &watch{Disk: d}
	watched.reads.Store(math.MaxInt64)
	if text, err := os.ReadFile(fenceFile(dir, image)); err == nil {
		n, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			say("failed " + err.Error())
			return 1
		}
		watched.reads.Store(n)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGUSR1)
	var s nbdtest.Server
	s.SetDisk(watched)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.Serve(c)
		}
	}()
	say("locked")
	if patience, err := strconv.Atoi(settings["patience"]); err == nil {
		go watched.endParent(os.Getppid(), patience)
	}
	for s := range signals {
		if s == syscall.SIGTERM {
			break
		}
		watched.fenced.Store(true)
	}
	return 0
}

func say(text string) { fmt.Fprintln(os.Stderr, "rbd:", text) }

// open takes the lock of an image, or says why not.
func open(dir, image string, settings map[string]string) disk.Disk {
	for told := false; ; time.Sleep(5 * time.Millisecond) { // as the real one does: nothing tells when a lock is free
		d, err := disk.OpenFile(filepath.Join(dir, image), disk.FileOptions{})
		switch {
		case err == nil:
			return d
		case !errors.Is(err, disk.ErrLocked):
			say("failed " + err.Error())
			return nil
		case settings["take"] != "":
			kill(dir, image, syscall.SIGKILL)
		case settings["wait"] == "":
			say("failed the image is in use by client.1")
			return nil
		case !told:
			say("waiting client.1")
			told = true
		}
	}
}

// watch is a disk that may be shut off, and knows whether anybody asks for anything.
type watch struct {
	disk.Disk
	fenced       atomic.Bool
	reads        atomic.Int64  // until it is shut off by itself
	begun, ended atomic.Uint64 // requests
}

// endParent kills the parent when it has asked for nothing for some seconds.
func (w *watch) endParent(parent, patience int) {
	for idle, seen := 0, uint64(0); idle < patience; idle++ {
		time.Sleep(time.Second) // this process may be stopped itself: that is no time without a request
		if n := w.begun.Load(); n != seen || n != w.ended.Load() {
			idle, seen = -1, n
		}
	}
	if os.Getppid() == parent {
		say("hangs")
		syscall.Kill(parent, syscall.SIGKILL)
	}
}

func (w *watch) pass(do func() error) error {
	w.begun.Add(1)
	defer w.ended.Add(1)
	if w.fenced.Load() {
		return syscall.ESHUTDOWN
	}
	return do()
}

func (w *watch) ReadAt(a uint64, bufs [][]byte) error {
	if w.reads.Add(-1) < 0 {
		w.fenced.Store(true)
	}
	return w.pass(func() error { return w.Disk.ReadAt(a, bufs) })
}

func (w *watch) WriteAt(a uint64, bufs [][]byte) error {
	return w.pass(func() error { return w.Disk.WriteAt(a, bufs) })
}

func (w *watch) Barrier() error { return w.pass(w.Disk.Barrier) }
