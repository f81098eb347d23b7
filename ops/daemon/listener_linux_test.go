package daemon

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestHelperListen is not a test: it is the other process of TestTaken, which listens until its input ends.
func TestHelperListen(t *testing.T) {
	if os.Getenv("TANSY_LISTEN") == "" {
		t.Skip("only as another process")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(l.Addr())
	os.Stdin.Read(make([]byte, 1))
}

// Who listens on a port that is in use is told.
func TestTaken(t *testing.T) {
	c := exec.Command(os.Args[0], "-test.run=^TestHelperListen$")
	c.Env = append(os.Environ(), "TANSY_LISTEN=1")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	defer in.Close()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_, err = Bind(strings.TrimSpace(line))
	if want := fmt.Sprintf("address already in use: process %d (", c.Process.Pid); !errors.Is(err, syscall.EADDRINUSE) ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("%v, want ...%s", err, want)
	}
}
