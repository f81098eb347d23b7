//go:build linux

package programs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// errOver is that what is reported counts no more.
var errOver = errors.New("the crash has come")

// A client has a program do numbered steps, one after the other, each of which the program reports when it is durable.
type client struct {
	begun, done int // the last step that the program was told to do, and the last that it has reported
}

// run has a program that reads steps from its standard input do one after the other, until it ends. It says
// "done N" after the step N.
func (c *client) run(ctx context.Context, program *exec.Cmd, step func(n int) string, reported func() bool) error {
	in, err := program.StdinPipe()
	if err != nil {
		return err
	}
	out, err := program.StdoutPipe()
	if err != nil {
		return err
	}
	var said bytes.Buffer
	program.Stderr = &said
	if err := program.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { program.Process.Kill() })
	defer stop()
	lines := bufio.NewScanner(out)
	why := c.steps(in, lines, step, reported)
	in.Close()
	io.Copy(io.Discard, out)
	return fmt.Errorf("%s: %w, %v: %s", program.Path, why, program.Wait(), &said)
}

func (c *client) steps(in io.Writer, lines *bufio.Scanner, step func(n int) string, reported func() bool) error {
	for {
		c.begun = c.done + 1
		if _, err := io.WriteString(in, step(c.begun)+"\n"); err != nil {
			return err
		}
		for done := fmt.Sprint("done ", c.begun); lines.Text() != done; {
			if !lines.Scan() {
				return io.EOF
			}
		}
		if !reported() {
			return errOver
		}
		c.done = c.begun
	}
}

// found says whether the steps up to n may be those that are there after a crash, and goes on from there.
func (c *client) found(n int) error {
	if n < c.done || n > c.begun {
		return fmt.Errorf("what is there is step %d; %d were reported, and %d begun", n, c.done, c.begun)
	}
	c.begun, c.done = n, n
	return nil
}

// children are the programs that the tests bring along. Each runs in a process of its own, since that of the tests must
// wait for nothing on the volume: it is the device, and it starts the server again. (To start a process it forks, and
// what it had open for writing on NFS is flushed when that is closed in the child: before there is the server that
// would take it.)
var children = map[string]func(args []string) error{
	"bbolt":       bolt(boltWork),
	"bbolt-check": bolt(boltCheck),
	"deliver":     deliver,
}

// childVariable tells a process which of the children it is.
const childVariable = "TANSY_CHILD"

func TestMain(m *testing.M) {
	do := children[os.Getenv(childVariable)]
	if do == nil {
		os.Exit(m.Run())
	}
	if err := do(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child is a process that is one of the children.
func child(which string, args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), childVariable+"="+which)
	return c
}

// obey is the other end of a client: a child does the steps that come on standard input, and reports each.
func obey(do func(n int) error) error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			return err
		}
		if err := do(n); err != nil {
			return err
		}
		fmt.Println("done", n)
	}
	return lines.Err()
}

// all runs all of them beside each other, until one ends, which ends the others.
func all(ctx context.Context, run ...func(context.Context) error) (why error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := make(chan struct{})
	for _, f := range run {
		go func() {
			stop(f(ctx))
			ended <- struct{}{}
		}()
	}
	for range run {
		<-ended
	}
	return context.Cause(ctx)
}

// output runs a program to its end, and returns what it says.
func output(program *exec.Cmd) (string, error) {
	out, err := program.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(program.Args, " "), err, out)
	}
	return string(out), err
}
