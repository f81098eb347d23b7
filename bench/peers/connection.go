//go:build linux

package main

import (
	"errors"
	"slices"

	"tansy/tools/load"
)

// connect connects to a server, and makes a directory there.
func (s *served) connect(dir string) (c *load.Conn, h load.Handle, err error) {
	m, err := load.Dial(s.mountPoint(), true)
	if err != nil {
		return nil, nil, err
	}
	defer m.Close()
	root, err := m.Mount(s.export)
	if err != nil {
		return nil, nil, err
	}
	if c, err = load.Dial(s.addr, true); err != nil {
		return nil, nil, err
	}
	if h, err = c.Mkdir(root, dir); err != nil {
		c.Close()
	}
	return c, slices.Clone(h), err
}

// mountPoint is where MOUNT is answered.
func (s *served) mountPoint() string {
	if s.mountAddr != "" {
		return s.mountAddr
	}
	return s.addr
}

// create makes a file.
func create(c *load.Conn, dir load.Handle, name string) (h load.Handle, err error) {
	c.StartCreate(dir, name, func(made load.Handle) error {
		if h = slices.Clone(made); h == nil {
			return errors.New("CREATE: no handle")
		}
		return nil
	})
	return h, c.Wait(0)
}
