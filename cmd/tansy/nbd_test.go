package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tansy/disk"
	tansyfs "tansy/fs"
	"tansy/test/kit/nbdtest"
	"tansy/test/kit/nfsclient"
)

// tool runs a command as a process, and returns its exit code and all that it wrote.
func tool(t *testing.T, args ...string) (int, string) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestHelperTansy$")
	c.Env = append(os.Environ(), "TANSY_ARGS="+strings.Join(args, "\n"))
	said, _ := c.CombinedOutput()
	return c.ProcessState.ExitCode(), string(said)
}

// TestExport: what takes a volume takes the name of an export.
func TestExport(t *testing.T) {
	var s nbdtest.Server
	name := s.Start(t, disk.NewSim(16<<20))
	readOnly := nbdtest.Server{Flags: nbdtest.All | nbdtest.ReadOnly}
	bare := nbdtest.Server{Flags: nbdtest.HasFlags}
	undo := filepath.Join(t.TempDir(), "undo")
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{exitUsage, "not a Tansy volume", []string{"check", name}},
		{exitFailure, "--force", []string{"mkfs", name}},
		{exitUsage, "leave --size out", []string{"mkfs", name, "--force", "--size", "8M"}},
		{exitFailure, "--preallocate", []string{"mkfs", name, "--force", "--preallocate"}},
		{exitFailure, "FLUSH", []string{"mkfs", "--force", bare.Start(t, disk.NewMem(16<<20))}},
		{exitFailure, "no such file", []string{"mkfs", name + "x", "--force"}},
		{exitOK, "made a volume", []string{"mkfs", name, "--force", "--size", "16M"}},
		{exitOK, "clean", []string{"check", name}},
		{exitOK, "inodes", []string{"dump", name}},
		{exitOK, "nothing to do", []string{"repair", name}},
		{exitUsage, "--undo", []string{"repair", name, "--yes"}},
		{exitOK, "nothing to do", []string{"repair", name, "--yes", "--undo", undo}},
		{exitOK, "given back", []string{"trim", name}},
		{exitFailure, "can only be read", []string{"mkfs", "--force", readOnly.Start(t, disk.NewMem(10*disk.BlockSize))}},
	} {
		if code, said := tool(t, c.args...); code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("%v: exit code %d, want %d and %q\n%s", c.args, code, c.code, c.says, said)
		}
	}
}

// TestExportCrash: a server of block devices goes down under load, and loses and tears what was not flushed. The server
// of files ends, and after a new start all is there that was acknowledged.
func TestExportCrash(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			exportCrash(t, seed)
		})
	}
}

// exportCrash is TestExportCrash for one seed.
func exportCrash(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	sim := disk.NewSim(32 << 20)
	if err := tansyfs.Mkfs(sim, tansyfs.MkfsOptions{}); err != nil {
		t.Fatal(err)
	}
	s := nbdtest.Server{Export: "v"}
	name := s.Start(t, sim)
	var names []string
	for range 2 {
		p := startServe(t, "--volume", name)
		c, err := nfsclient.Mount(p.addr)
		if err != nil {
			t.Fatal(err)
		}
		cred := &tansyfs.Cred{}
		for _, n := range names {
			f, err := c.Lookup(cred, c.Root(), []byte(n))
			if err != nil {
				t.Fatalf("seed %d: %s is lost: %v", seed, n, err)
			}
			data, _, _, err := c.Read(cred, f.Handle, 0, 100000)
			if err != nil || string(data) != strings.Repeat(n, 3000) {
				t.Fatalf("seed %d: %s has other contents: %v", seed, n, err)
			}
		}
		at := len(s.Requests()) + 50 + r.IntN(200)
		for err == nil {
			n := fmt.Sprintf("f%d", len(names))
			var f tansyfs.Node
			if f, err = c.Create(cred, c.Root(), []byte(n), tansyfs.Unchecked, &tansyfs.SetAttr{}, 0); err != nil {
				break
			}
			data := []byte(strings.Repeat(n, 3000))
			if _, _, _, err = c.Write(cred, f.Handle, 0, data, tansyfs.FileSync); err == nil {
				names = append(names, n)
			}
			if len(s.Requests()) > at {
				s.HangUp()
			}
		}
		c.Close()
		const says = "the connection to the NBD server is lost"
		if code := p.wait(t); code != exitFailure || !strings.Contains(p.stderr.String(), says) {
			t.Fatalf("seed %d: exit code %d\n%s", seed, code, &p.stderr)
		}
		sim = sim.Crash(disk.RandomChoice(r, true))
		s.SetDisk(sim)
		if code, said := tool(t, "check", "--data", name); code != exitOK {
			t.Fatalf("seed %d: %s", seed, said)
		}
	}
	if len(names) < 4 {
		t.Errorf("seed %d: %d files were made", seed, len(names))
	}
}

// TestExportLost: a server without work notices that the connection is lost, and says so.
func TestExportLost(t *testing.T) {
	t.Parallel()
	sim := disk.NewSim(16 << 20)
	if err := tansyfs.Mkfs(sim, tansyfs.MkfsOptions{}); err != nil {
		t.Fatal(err)
	}
	var s nbdtest.Server
	p := startServe(t, "--volume", s.Start(t, sim))
	s.HangUp()
	if code := p.wait(t); code != exitFailure || !strings.Contains(p.stderr.String(), "the connection to the NBD server is lost: the server hung up") {
		t.Errorf("exit code %d\n%s", code, &p.stderr)
	}
}

// TestExportVolumes: names of exports among several volumes.
func TestExportVolumes(t *testing.T) {
	for text, want := range map[string]place{
		"nbd://h:7/x":                      {"nbd://h:7/x", "/"},
		"nbd://h/x:/a":                     {"nbd://h/x", "/a"},
		"nbd+unix:///x?socket=/run/s":      {"nbd+unix:///x?socket=/run/s", "/"},
		"nbd+unix:///x?socket=/run/s:/a/b": {"nbd+unix:///x?socket=/run/s", "/a/b"},
		"nbds://h/":                        {"nbds://h/", "/"},
	} {
		var l volumeList
		if err := l.Set(text); err != nil || l.list[0] != want {
			t.Errorf("%s: %v, %v", text, l.list, err)
		}
	}
}
