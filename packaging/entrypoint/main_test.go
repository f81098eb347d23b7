package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestMain is the entrypoint, of a container whose volume is in ENTRYPOINT_DATA, if a test has started it as that.
func TestMain(m *testing.M) {
	if data := os.Getenv("ENTRYPOINT_DATA"); data != "" {
		exit(start(data, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// container is a folder with a program that stands for tansy, and one for the volume.
type container struct {
	dir, data string
	env       []string
}

// newContainer makes one, in which tansy is a shell's script.
func newContainer(t *testing.T, script string) *container {
	t.Helper()
	dir := t.TempDir()
	c := &container{dir: dir, data: filepath.Join(dir, "data")}
	c.env = []string{"ENTRYPOINT_DATA=" + c.data, "TANSY_SIZE=50G", "PATH=" + dir + ":" + os.Getenv("PATH")}
	if err := os.Mkdir(c.data, 0o700); err != nil {
		t.Fatal(err)
	}
	c.write(t, "tansy", "#!/bin/sh\n"+script+"\n", 0o700)
	return c
}

func (c *container) write(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// isNew tells that the volume is still to be made.
func (c *container) isNew() bool {
	_, err := os.Stat(filepath.Join(c.data, ".new"))
	return err == nil
}

// command is the entrypoint with arguments, not yet started.
func (c *container) command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = c.env
	return cmd
}

// run returns the entrypoint's output and its exit code.
func (c *container) run(t *testing.T, args ...string) (out, errors string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := c.command(args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// The entrypoint makes the volume where the container engine made /data, with the size that is asked for, once, and
// nowhere else.
func TestStart(t *testing.T) {
	for _, x := range []struct {
		what string
		new  bool // /data is of the container engine's making
		args string
		made bool
	}{
		{"a new volume", true, "serve --volume DATA/tansy.img", true},
		{"a new volume, with other flags", true, "serve --listen :2049 --volume DATA/tansy.img:/a --status :0", true},
		{"a folder", false, "serve --volume DATA/tansy.img", false},
		{"another command", true, "mkfs DATA/tansy.img", false},
		{"another command with the word", true, "check serve DATA/tansy.img", false},
		{"another volume", true, "serve --volume nbd://host/x", false},
		{"nothing to serve", true, "serve", false},
		{"nothing", true, "", false},
	} {
		t.Run(x.what, func(t *testing.T) {
			c := newContainer(t, `echo "$0 $*"`)
			if x.new {
				c.write(t, "data/.new", "", 0o600)
			}
			args := strings.Fields(strings.ReplaceAll(x.args, "DATA", c.data))
			tansy := filepath.Join(c.dir, "tansy") + " "
			serve := tansy + strings.Join(args, " ") + "\n"
			want := serve
			if x.made {
				want = tansy + "mkfs " + c.data + "/tansy.img --if-missing --size 50G\n" + serve
			}
			for range 2 {
				if out, errors, code := c.run(t, args...); out != want || errors != "" || code != 0 {
					t.Errorf("%q, %q, exit code %d; want %q", out, errors, code, want)
				}
				if c.isNew() != (x.new && !x.made) {
					t.Error("the mark of a new volume is there, or is not:", c.isNew())
				}
				want = serve
			}
		})
	}
}

// The program's arguments, standard streams, environment, and exit code are its own.
func TestBecomes(t *testing.T) {
	c := newContainer(t, `printf '%s|' "$TANSY_SIZE" "$@"; cat; echo sad >&2; exit 3`)
	cmd := c.command("top", "a b", "", "$X")
	var out, errors bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("typed"), &out, &errors
	cmd.Run()
	if out.String() != "50G|top|a b||$X|typed" || errors.String() != "sad\n" || cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("%q, %q, %v", &out, &errors, cmd.ProcessState)
	}
}

// What keeps the volume from being made keeps the server from being started, and is tried again at the next start.
func TestFails(t *testing.T) {
	const served = `echo served`
	for _, x := range []struct {
		what, script, unset string
		code                int
		says                string
	}{
		{"mkfs fails", `[ $1 = serve ] && ` + served + `; echo no room >&2; exit 7`, "", 7, "no room\n"},
		{"mkfs is killed", `[ $1 = serve ] && ` + served + `; kill -9 $$`, "", 128 + 9,
			"entrypoint: tansy mkfs: signal: killed\n"},
		{"no size", served, "TANSY_SIZE", 2,
			"entrypoint: TANSY_SIZE is not set: say how large the new volume is to be, such as TANSY_SIZE=10G\n"},
		{"no program", served, "PATH", 127, "entrypoint: exec: \"tansy\": executable file not found in $PATH\n"},
	} {
		t.Run(x.what, func(t *testing.T) {
			c := newContainer(t, x.script)
			c.write(t, "data/.new", "", 0o600)
			c.env = slices.DeleteFunc(c.env, func(e string) bool { return x.unset != "" && strings.HasPrefix(e, x.unset+"=") })
			out, errors, code := c.run(t, "serve", "--volume", c.data+"/tansy.img")
			if out != "" || errors != x.says || code != x.code {
				t.Errorf("%q, %q, exit code %d; want %q and %d", out, errors, code, x.says, x.code)
			}
			if !c.isNew() {
				t.Error("the volume is not new any more")
			}
		})
	}
}

// A program that cannot be run is told.
func TestNotExecutable(t *testing.T) {
	c := newContainer(t, "")
	c.write(t, "tansy", "no program", 0o700)
	_, errors, code := c.run(t, "version")
	if want := "entrypoint: " + c.dir + "/tansy: exec format error\n"; errors != want || code != 126 {
		t.Errorf("%q, exit code %d; want %q", errors, code, want)
	}
}

// Who stops the container while the volume is made stops mkfs: no server is started then, even if mkfs ends well.
func TestStopped(t *testing.T) {
	for _, x := range []struct {
		what, trap string
		code       int
	}{
		{"mkfs dies of it", "", 128 + 15},
		{"mkfs ends with a code of its own", "trap 'exit 7' TERM", 7},
		{"mkfs ends well", "trap 'exit 0' TERM", 128 + 15},
	} {
		t.Run(x.what, func(t *testing.T) {
			// mkfs waits for the end of what is typed
			c := newContainer(t, x.trap+"\necho $1\n[ $1 = serve ] || { exec 3<&0; cat <&3 >/dev/null & wait; }")
			c.write(t, "data/.new", "", 0o600)
			cmd := c.command("serve", "--volume", c.data+"/tansy.img")
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			r := bufio.NewReader(out)
			if line, err := r.ReadString('\n'); line != "mkfs\n" {
				t.Fatalf("%q, %v", line, err)
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			rest, _ := io.ReadAll(r)
			cmd.Wait()
			if len(rest) > 0 || cmd.ProcessState.ExitCode() != x.code || !c.isNew() {
				t.Errorf("%q, exit code %d, new: %v; want code %d", rest, cmd.ProcessState.ExitCode(), c.isNew(), x.code)
			}
		})
	}
}
