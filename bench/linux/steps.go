//go:build linux

package linux

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"tansy/tools/load"
)

// stepsCommand has this program be one of those that do the same steps again and again, side by side.
const stepsCommand = "steps"

// A crew are processes that do steps, each in a folder of its own.
type crew struct {
	kind           string
	members, steps int
	fewer          int // steps for -quick
	programs       []*exec.Cmd
	begins         []io.Closer
	said           []*bufio.Reader
}

func (c *crew) folder(k int) string {
	return filepath.Join(mountPoint, fmt.Sprintf("%s-%d-%d", c.kind, c.members, k))
}

// ready starts the processes; what they do before their steps takes no time that is measured.
func (c *crew) ready(_ *server, quick bool) error {
	c.programs, c.begins, c.said = nil, nil, nil
	n := c.steps
	if quick {
		n = c.fewer
	}
	for k := range c.members {
		if err := os.Mkdir(c.folder(k), 0o755); err != nil {
			return err
		}
		p := exec.Command(binSteps, stepsCommand, c.kind, c.folder(k), strconv.Itoa(n))
		in, err := p.StdinPipe()
		if err != nil {
			return err
		}
		out, err := p.StdoutPipe()
		if err != nil {
			return err
		}
		if err := p.Start(); err != nil {
			return err
		}
		r := bufio.NewReader(out)
		if _, err := r.ReadString('\n'); err != nil {
			return err
		}
		c.programs, c.begins, c.said = append(c.programs, p), append(c.begins, in), append(c.said, r)
	}
	return nil
}

// run has them begin, and waits until all are done.
func (c *crew) run(bool) (err error) {
	for _, b := range c.begins {
		b.Close()
	}
	for k, p := range c.programs {
		said, _ := io.ReadAll(c.said[k])
		if e := p.Wait(); e != nil {
			err = errors.Join(err, fmt.Errorf("process %d: %w: %s", k, e, said))
		}
	}
	return err
}

// beSteps is such a process.
func beSteps(args []string) {
	fail := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	if len(args) != 3 {
		fail(errors.New("a kind, a folder, a number"))
	}
	n, err := strconv.Atoi(args[2])
	fail(err)
	step := smallFile
	if args[0] == "mails" {
		fail(makeMailbox(args[1]))
		step = mailOnItsWay
	}
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin) // until it is closed
	for k := range n {
		fail(step(args[1], strconv.Itoa(k)))
	}
}

// smallFile is LFS's benchmark of small files, once. The file is closed before it is removed: the client would rename
// it instead, and remove it when it is closed.
func smallFile(folder, name string) error {
	path := filepath.Join(folder, name)
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is there already: %v", path, err)
	}
	if err := writeDurably(path, load.SmallData); err != nil {
		return err
	}
	return os.Remove(path)
}

// writeDurably makes a file. Over NFS a name is durable when the call for it is answered.
func writeDurably(path string, contents []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(contents)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

var mail = bytes.Repeat([]byte("A line of text.\n"), 128) // 2 KiB

func makeMailbox(home string) (err error) {
	for _, folder := range []string{"spool", "queue", "new"} {
		err = errors.Join(err, os.Mkdir(filepath.Join(home, folder), 0o755))
	}
	return err
}

// mailOnItsWay writes a mail to the spool, has it queued, delivered, read, and removed.
func mailOnItsWay(home, name string) error {
	in := func(folder string) string { return filepath.Join(home, folder, name) }
	spooled, queued, delivered := in("spool"), in("queue"), in("new")
	if err := writeDurably(spooled, mail); err != nil {
		return err
	}
	if err := errors.Join(os.Rename(spooled, queued), os.Rename(queued, delivered)); err != nil {
		return err
	}
	read, err := os.ReadFile(delivered)
	if err != nil {
		return err
	}
	if !bytes.Equal(read, mail) {
		return fmt.Errorf("%s is not what was sent", delivered)
	}
	return os.Remove(delivered)
}
