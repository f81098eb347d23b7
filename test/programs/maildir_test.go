//go:build linux

package programs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// maildir is a folder to which several deliver mail, as Maildir has it: written to tmp, synced, moved to new, and that
// folder is synced. Each looks at his mail after that (new to cur), and throws old mail away, for good when its folder
// is synced.
type maildir map[string]*client // those who deliver: the mail of each up to the step that is done is there, but what he has thrown away

func newMaildir(*testing.T, uint64) func() program {
	return func() program { return maildir{"a": {}, "b": {}, "c": {}, "d": {}} }
}

func (m maildir) flags(int) []string { return nil }

func (m maildir) String() string {
	n := 0
	for _, c := range m {
		n += c.done
	}
	return fmt.Sprintf("%d mails", n)
}

func (m maildir) prepare(dir string) error {
	for _, sub := range []string{"tmp", "new", "cur"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			return err
		}
	}
	return syncFolder(dir)
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// mail is the name and the text of one.
func mail(who string, n int) (name, body string) {
	return fmt.Sprintf("%s.%d", who, n), fmt.Sprintf("From: %s\n\n%s", who, text(n))
}

// keep is how many mails there are of each at most.
const keep = 30

// deliver is a child that delivers mail, into the folder of its first argument, by the name of the second. It looks at
// a mail when it is told to deliver the next: that it was delivered has counted then.
func deliver(args []string) error {
	dir, who, last := args[0], args[1], 0
	return obey(func(n int) error {
		if last > 0 {
			if err := look(dir, who, last); err != nil {
				return err
			}
		}
		last = n
		return put(dir, who, n)
	})
}

func put(dir, who string, n int) error {
	name, body := mail(who, n)
	tmp, there := filepath.Join(dir, "tmp", name), filepath.Join(dir, "new", name)
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(body)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp, there); err != nil {
		return err
	}
	return syncFolder(filepath.Join(dir, "new"))
}

func look(dir, who string, n int) error {
	name, _ := mail(who, n)
	if err := os.Rename(filepath.Join(dir, "new", name), filepath.Join(dir, "cur", name+":2,S")); err != nil {
		return err
	}
	if n <= keep {
		return nil
	}
	old, _ := mail(who, n-keep)
	return os.Remove(filepath.Join(dir, "cur", old+":2,S"))
}

func (m maildir) work(ctx context.Context, dir string, _ *rand.Rand, reported func() bool) error {
	var run []func(context.Context) error
	for who, c := range m {
		run = append(run, func(ctx context.Context) error {
			return c.run(ctx, child("deliver", dir, who), func(n int) string { return fmt.Sprint(n) }, reported)
		})
	}
	return all(ctx, run...)
}

func (m maildir) check(_ context.Context, dir string) error {
	found := map[string]bool{} // by name
	for _, sub := range []string{"new", "cur"} {
		entries, err := os.ReadDir(filepath.Join(dir, sub))
		if err != nil {
			return err
		}
		for _, e := range entries {
			var who string
			var n int
			if _, err := fmt.Sscanf(e.Name(), "%1s.%d", &who, &n); err != nil {
				return err
			}
			name, want := mail(who, n)
			if body, err := os.ReadFile(filepath.Join(dir, sub, e.Name())); err != nil || string(body) != want {
				return fmt.Errorf("mail %s is not what was delivered: %q, %v", e.Name(), body, err)
			}
			if found[name] {
				return fmt.Errorf("mail %s is there twice", name)
			}
			found[name] = true
		}
	}
	for who, c := range m {
		// Mail that the last delivery but one has thrown away was thrown away before the last one was durable.
		for n := 1; n <= c.begun; n++ {
			name, _ := mail(who, n)
			switch is := found[name]; {
			case is && n < c.done-keep:
				return fmt.Errorf("mail %s is there again", name)
			case !is && n <= c.done && n > c.done-keep:
				return fmt.Errorf("mail %s is lost; %d are delivered", name, c.done)
			}
		}
	}
	return m.goOn(dir)
}

// goOn makes what is there what it would be after the last delivery that was reported, or that is there.
func (m maildir) goOn(dir string) error {
	if err := os.RemoveAll(filepath.Join(dir, "tmp")); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o700); err != nil {
		return err
	}
	for who, c := range m {
		name, _ := mail(who, c.begun)
		if c.begun > c.done {
			if err := os.Remove(filepath.Join(dir, "new", name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		last := c.done
		if last > 0 {
			name, _ := mail(who, last)
			if _, err := os.Stat(filepath.Join(dir, "new", name)); err == nil {
				if err := os.Rename(filepath.Join(dir, "new", name), filepath.Join(dir, "cur", name+":2,S")); err != nil {
					return err
				}
			}
		}
		if last > keep {
			old, _ := mail(who, last-keep)
			if err := os.Remove(filepath.Join(dir, "cur", old+":2,S")); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	if err := syncFolder(dir); err != nil {
		return err
	}
	for _, c := range m {
		c.begun = c.done
	}
	return nil
}
