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
	"sync"
	"testing"
)

// maildir is a folder to which several deliver mail, as Maildir has it: written to tmp, synced, moved to new, and that folder is synced. Each
// looks at his mail after that (new to cur), and throws old mail away, for good when its folder is synced.
type maildir struct {
	mu        sync.Mutex
	delivered map[string]int // step that is durable, of each who delivers: his mail up to that is there, but what he has thrown away
	begun     map[string]int
}

func newMaildir(*testing.T, uint64) func() program {
	return func() program { return &maildir{delivered: map[string]int{}, begun: map[string]int{}} }
}

func (m *maildir) flags(int) []string { return nil }

func (m *maildir) String() string {
	n := 0
	for _, d := range m.delivered {
		n += d
	}
	return fmt.Sprintf("%d mails", n)
}

func (m *maildir) prepare(dir string) error {
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

func (m *maildir) deliver(dir, who string, n int) error {
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

func (m *maildir) read(dir, who string, n int) error {
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

func (m *maildir) work(ctx context.Context, dir string, _ *rand.Rand, reported func() bool) error {
	var run []func(context.Context) error
	for _, who := range []string{"a", "b", "c", "d"} {
		n := m.delivered[who]
		run = append(run, func(ctx context.Context) error {
			for {
				n++
				m.mu.Lock()
				m.begun[who] = n
				m.mu.Unlock()
				if err := errors.Join(m.deliver(dir, who, n), ctx.Err()); err != nil {
					return err
				}
				if !reported() {
					return errOver
				}
				m.mu.Lock()
				m.delivered[who] = n
				m.mu.Unlock()
				if err := m.read(dir, who, n); err != nil {
					return err
				}
			}
		})
	}
	return all(ctx, run...)
}

func (m *maildir) check(_ context.Context, dir string) error {
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
	for who, begun := range m.begun {
		// Mail that the last delivery but one has thrown away was thrown away before the last one was durable.
		for n := 1; n <= begun; n++ {
			name, _ := mail(who, n)
			switch is := found[name]; {
			case is && n < m.delivered[who]-keep:
				return fmt.Errorf("mail %s is there again", name)
			case !is && n <= m.delivered[who] && n > m.delivered[who]-keep:
				return fmt.Errorf("mail %s is lost; %d are delivered", name, m.delivered[who])
			}
		}
	}
	return m.goOn(dir)
}

// goOn makes what is there what it would be after the last delivery that was reported, or that is there.
func (m *maildir) goOn(dir string) error {
	if err := os.RemoveAll(filepath.Join(dir, "tmp")); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o700); err != nil {
		return err
	}
	for who, begun := range m.begun {
		name, _ := mail(who, begun)
		if begun > m.delivered[who] {
			if err := os.Remove(filepath.Join(dir, "new", name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		last := m.delivered[who]
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
	for who := range m.begun {
		m.begun[who] = m.delivered[who]
	}
	return nil
}
