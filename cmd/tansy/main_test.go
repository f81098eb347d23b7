package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"tansy/test/kit/rbdtest"
)

// TestMain sets up what all tests share. This test binary is also the program and nbdkit, as other processes, where
// nothing is to be set up.
func TestMain(m *testing.M) {
	if os.Getenv(rbdtest.Folder) != "" {
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "images")
	if err == nil {
		err = prepare(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// prepare makes dir the folder of images, and sets what this process and those that it starts run with.
func prepare(dir string) error {
	path, err := rbdtest.Put(dir, "TestHelperNbdkit")
	// A process with the race detector would wait for a second at its end, in which the program is over: there are
	// several hundred here. Races that were found until then are reported, and change the exit code, as before.
	races := "atexit_sleep_ms=0 " + os.Getenv("GORACE")
	err = errors.Join(err, os.Setenv("RUNTIME_DIRECTORY", filepath.Join(dir, "run"))) // of the sockets of --control
	err = errors.Join(err, os.Setenv("PATH", path), os.Setenv(rbdtest.Folder, dir), os.Setenv("GORACE", races))
	// Tests that run at once here wait for other processes and times far more than for a processor.
	return errors.Join(err, flag.Set("test.parallel", "6"))
}
