//go:build linux

package eval

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"tansy/bench/internal/rig"
)

// prepared is a folder on the host that is made once and then copied to each site, for what would take longer to make
// than what is measured.
func (m *machine) prepared(name string, make func(folder string) error) (folder string, err error) {
	folder = filepath.Join(m.scratch, name)
	if _, err := os.Stat(folder); err == nil {
		return folder, nil
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		return "", err
	}
	if err := make(folder); err != nil {
		return "", errors.Join(err, os.RemoveAll(folder))
	}
	return folder, nil
}

// copied puts a copy of a folder of the host on the site, with owners, and makes it durable.
func (s *site) copied(ctx context.Context, folder string) (to string, err error) {
	to = filepath.Join(s.dir, filepath.Base(folder))
	if _, err := rig.Command(ctx, "cp", "-a", folder, to); err != nil {
		return "", err
	}
	return to, s.settle()
}
