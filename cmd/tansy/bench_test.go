package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tansy/tools/load"
)

// TestBench: the sub-command measures a server, and says what is wrong with its arguments.
func TestBench(t *testing.T) {
	t.Parallel()
	img := filepath.Join(t.TempDir(), "v.img")
	p := startServe(t, "--volume", img, "--size", "64M", "--cache", "8M")
	plot := filepath.Join(t.TempDir(), "plot.svg")
	code, out := tool(t, "bench", p.addr, "null", "read", "--time", "20ms", "--clients", "2", "--file", "128K",
		"--json", "--plot", plot)
	var results []load.Result
	err := json.Unmarshal([]byte(out), &results)
	if code != exitOK || err != nil || len(results) != 2 || results[1].Bytes == 0 {
		t.Fatal(code, err, out)
	}
	if svg, err := os.ReadFile(plot); err != nil || !strings.HasPrefix(string(svg), "<svg") {
		t.Error(err)
	}
	code, out = tool(t, "bench", p.addr, "null", "--time", "20ms")
	if code != exitOK || !strings.Contains(out, "clients in flight") {
		t.Error(code, out)
	}
	for _, args := range [][]string{
		{}, {p.addr, "nothing"}, {p.addr, "--io", "5000"}, {p.addr, "--io", "0"}, {p.addr, "--file", "0"},
		{p.addr, "--clients", "-1"}, {p.addr, "--clients", "0"}, {p.addr, "--clients", "1000000"}, {p.addr, "--depth", "0"},
		{p.addr, "--time", "0"}, {p.addr, "--time", "-1s"}, {p.addr, "--time", "1000h"},
	} {
		if code, _ := tool(t, append([]string{"bench"}, args...)...); code != exitUsage {
			t.Errorf("%q: exit code %d", args, code)
		}
	}
	if code, errs := tool(t, "bench", p.addr, "--export", "/nowhere"); code != exitFailure || !strings.Contains(errs, "MNT /nowhere: MNT3ERR_NOENT: give another directory with --export PATH; it exports /, though") {
		t.Error(code, errs)
	}
	p.stop(t)
	p = startServe(t, "--volume", img, "--read-only")
	if code, errs := tool(t, "bench", p.addr); code != exitFailure || !strings.Contains(errs, ": NFS3ERR_ROFS\n") {
		t.Error(code, errs)
	}
}

// A server that does not let the root be mounted is asked what it exports.
func TestWhatToMount(t *testing.T) {
	dir := t.TempDir()
	rules := filepath.Join(dir, "exports")
	writeFile(t, rules, "/vol/test *(rw,insecure)\n")
	volume := filepath.Join(dir, "v.img") + ":/vol/test"
	p := startServe(t, "--volume", volume, "--size", "64M", "--cache", "8M", "--exports", rules)
	for name, want := range map[string]int{"bench": exitFailure, "conform": exitUsage} {
		code, errs := tool(t, name, p.addr)
		const says = "ACCES: give another directory with --export PATH; it exports /vol/test, though"
		if code != want || !strings.Contains(errs, says) {
			t.Errorf("%s: exit code %d, %s", name, code, errs)
		}
	}
	p.stop(t)
	writeFile(t, rules, "/vol/test *(rw)\n")
	p = startServe(t, "--volume", volume, "--exports", rules)
	for name, want := range map[string]int{"bench": exitFailure, "conform": exitUsage} {
		code, errs := tool(t, name, p.addr, "--export", "/vol/test")
		const says = "(the calls come from a port above 1023: the server may want the option insecure for the export)\n"
		if code != want || !strings.HasSuffix(errs, says) {
			t.Errorf("%s: exit code %d, %s", name, code, errs)
		}
	}
	p.stop(t)
}

// Of errors that are no refusal of a port nothing is said; the kernel's server lets who comes from one mount.
func TestOtherPort(t *testing.T) {
	for text, refused := range map[string]bool{
		"MNT /: MNT3ERR_ACCES": true, `mount of "/": ACCES`: true, "FSINFO: NFS3ERR_PERM": true, "got PERM": true,
		"MNT /: MNT3ERR_NOENT": false, "MKDIR x: NFS3ERR_ACCES": false, "no route to host": false,
	} {
		if said := otherPort(errors.New(text)); (said != "") != refused {
			t.Errorf("%s: %q", text, said)
		}
	}
}
