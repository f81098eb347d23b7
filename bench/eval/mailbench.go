//go:build linux

package eval

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"tansy/bench/internal/rig"
)

// mail is the contents of one.
var mail = bytes.Repeat([]byte("From nobody\n\n .\n"), 128) // 2 KiB

// mailbench is mail on its way, as the benchmark of sv6 and CSPEC's mail server have it. Of each user, again and again:
// a mail is written to the spool and queued by a rename; it is delivered, by another write and rename, into the maildir
// of the user, and leaves the queue; the user reads and removes it. What one step has done is durable before the next
// one relies on it, for it can't be told again.
func mailbench(o options) (es []experiment) {
	for _, n := range o.clients {
		es = append(es, sideBySide("mails", n, func(folder string) (func(int) error, io.Closer, error) {
			u := mailUser{folder}
			return func(k int) error { return u.mail(fmt.Sprint(k)) }, nil, u.make()
		}))
	}
	return es
}

// A mailUser has a folder with all others.
type mailUser struct{ home string }

func (u mailUser) in(folder, name string) string { return filepath.Join(u.home, folder, name) }

func (u mailUser) make() error {
	for _, folder := range []string{"spool", "queue", "tmp", "new"} {
		if err := os.Mkdir(u.in(folder, ""), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// mail is what happens to one.
func (u mailUser) mail(name string) error {
	if err := u.put(mail, "spool", "queue", name); err != nil {
		return err
	}
	queued, err := os.ReadFile(u.in("queue", name))
	if err != nil {
		return err
	}
	if err := u.put(queued, "tmp", "new", name); err != nil {
		return err
	}
	if err := u.take("queue", name); err != nil {
		return err
	}
	delivered, err := os.ReadFile(u.in("new", name))
	if err != nil {
		return err
	}
	if !bytes.Equal(delivered, mail) {
		return fmt.Errorf("mail %s is not what was sent", name)
	}
	return u.take("new", name)
}

// put writes a mail in one folder and renames it to another one, durably.
func (u mailUser) put(contents []byte, first, then, name string) error {
	f, err := os.OpenFile(u.in(first, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(contents)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(u.in(first, name), u.in(then, name)); err != nil {
		return err
	}
	return rig.SyncFolder(u.in(then, ""))
}

// take removes a mail, durably.
func (u mailUser) take(folder, name string) error {
	if err := os.Remove(u.in(folder, name)); err != nil {
		return err
	}
	return rig.SyncFolder(u.in(folder, ""))
}
