package main

import (
	"bytes"
	"flag"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tansy/disk"
	volbackup "tansy/offline/backup"
)

var cuts = flag.Int64("cuts", 0, "seed of where pipes are cut; 0: draw one")

// piped runs a command with an input.
func piped(t *testing.T, in string, args ...string) (code int, said string) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestHelperTansy$")
	c.Env = append(os.Environ(), "TANSY_ARGS="+strings.Join(args, "\n"))
	c.Stdin = strings.NewReader(in)
	out, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), string(out)
}

// toSend is what tansy backup sends of an image to a folder.
func toSend(t *testing.T, img, folder string, args ...string) string {
	t.Helper()
	have := filepath.Join(t.TempDir(), "have")
	if err := os.WriteFile(have, []byte(tansy(t, "receive", "--have", folder)), 0o600); err != nil {
		t.Fatal(err)
	}
	return tansy(t, append([]string{"backup", img, "-", "--have", have}, args...)...)
}

// A backup comes through a pipe that is cut at many places, while the volume changes: less and less is sent, and what
// has come is said. In the end all of it is there; then what changed.
func TestReceive(t *testing.T) {
	seed := *cuts
	if seed == 0 {
		seed = time.Now().UnixNano()
	}
	t.Logf("to repeat: -cuts %d", seed)
	r := rand.New(rand.NewSource(seed))
	dir := t.TempDir()
	contents := make([]byte, 1<<20)
	r.Read(contents)
	img := filled(t, dir, "v.img", contents, "--size", "64M")
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		r.Read(contents)
		write(t, img, name, contents)
	}
	to := filepath.Join(dir, "to")
	whole := toSend(t, img, to)
	kept := false
	for i := range 6 {
		b := toSend(t, img, to)
		code, said := piped(t, b[:disk.BlockSize+r.Intn(len(b)-disk.BlockSize)], "receive", to)
		kept = kept || strings.Contains(said, "the whole pieces are kept: tansy receive --have "+to)
		if code != exitFailure || !strings.Contains(said, "or who sends, was interrupted: ") ||
			!kept && !strings.Contains(said, "too little came to go on with: nothing of it is left") {
			t.Errorf("exit code %d, %s", code, said)
		}
		if i == 3 {
			write(t, img, "more", []byte("more"))
		}
	}
	if names, err := os.ReadDir(to); err != nil || kept != (len(names) > 0) {
		t.Errorf("%v, %v", names, err)
	}
	b := toSend(t, img, to)
	code, said := piped(t, b, "receive", to, "--keep", "last=9")
	if code != exitOK || !strings.Contains(said, ": received ") {
		t.Fatalf("exit code %d, %s", code, said)
	}
	if kept && len(b) >= len(whole) {
		t.Errorf("%d bytes are sent at last, of %d", len(b), len(whole))
	}
	if got := contentsOf(t, to, "g"); !bytes.Equal(got, contents) {
		t.Error("a file came otherwise than it was")
	}
	says(t, exitOK, ": clean; 9 files", "check", to, "--data")
	says(t, exitOK, ", clean", "restore", to, filepath.Join(dir, "again.img"))
	write(t, img, "later", []byte("later"))
	if b := toSend(t, img, to); len(b) > len(whole)/2 {
		t.Errorf("%d bytes are sent of a small change", len(b))
	} else if code, said := piped(t, b, "receive", to, "--keep", "last=1"); code != exitOK ||
		!strings.Contains(said, ": not kept") {
		t.Errorf("exit code %d, %s", code, said)
	}
	if code, said := piped(t, toSend(t, img, to, "--full"), "receive", to, "-q"); code != exitOK || said != "" {
		t.Errorf("exit code %d, %s", code, said)
	}
	if all, err := volbackup.List(to); err != nil || len(all) == 0 || !all[len(all)-1].Full() {
		t.Errorf("%v, %v", all, err)
	}
}

// What is sent may go nowhere.
func TestBackupToNull(t *testing.T) {
	img := filled(t, t.TempDir(), "v.img", []byte("a"), "--size", "16M")
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	c := exec.Command(os.Args[0], "-test.run=^TestHelperTansy$")
	c.Env = append(os.Environ(), "TANSY_ARGS=backup\n"+img+"\n-")
	c.Stdout = null
	if err := c.Run(); err != nil {
		t.Error(err)
	}
}

// What cannot be received, or sent, is said to be so.
func TestReceiveRefused(t *testing.T) {
	dir := t.TempDir()
	img, to := filled(t, dir, "v.img", []byte("a"), "--size", "16M"), filepath.Join(dir, "to")
	b := toSend(t, img, to)
	refused := func(want, in string, args ...string) {
		t.Helper()
		if code, said := piped(t, in, args...); code == exitOK || !strings.Contains(said, want) {
			t.Errorf("tansy %q: exit code %d, %s; want %q", args, code, said, want)
		}
	}
	refused("not a backup of a Tansy volume", "nonsense", "receive", to)
	if _, err := os.Stat(to); err == nil {
		t.Error("nonsense made a folder")
	}
	if code, said := piped(t, b, "receive", to); code != exitOK {
		t.Fatal(said)
	}
	refused("there is something of this volume: send what that has not", b, "receive", to)
	other := filled(t, dir, "w.img", []byte("b"), "--size", "16M")
	refused("the backup is of another volume: its UUID is", tansy(t, "backup", other, "-"), "receive", to)
	have := tansy(t, "receive", "--have", to)
	refused("send it to another folder; one has the backups of one volume", have, "backup", other, "-", "--have", "-")
	refused("what tansy receive --have prints is not here, or not all of it", have[:len(have)-1], "backup", img, "-",
		"--have", "-")
	refused("--have is for what goes to standard output", have, "backup", img, to, "--have", "-")
	refused("--have receives nothing: leave --keep out", "", "receive", "--have", to, "--keep", "last=1")
	refused("the argument FOLDER is missing", "", "receive")
}
