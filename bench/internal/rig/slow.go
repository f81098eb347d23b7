//go:build linux

package rig

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// slowed makes a folder beside dir with the files of dir, through FUSE, where fsync takes as long as the kind says. The
// kernel reads and writes the files below by itself, if it can.
func (d *Device) slowed(dir string) (string, error) {
	at := filepath.Join(filepath.Dir(dir), "slow")
	if err := os.Mkdir(at, 0o700); err != nil {
		return "", err
	}
	root := &fs.LoopbackRoot{Path: dir}
	root.NewNode = func(r *fs.LoopbackRoot, _ *fs.Inode, _ string, _ *syscall.Stat_t) fs.InodeEmbedder {
		return &slowNode{fs.LoopbackNode{RootData: r}, d.kind.barrier}
	}
	root.RootNode = root.NewNode(root, nil, "", nil)
	server, err := fs.Mount(at, root.RootNode, &fs.Options{
		NullPermissions: true,
		MountOptions: fuse.MountOptions{
			Name: "slow", FsName: "tansy-bench", MaxWrite: 1 << 20, DisableXAttrs: true, DirectMountStrict: true,
		},
	})
	if err != nil {
		return "", fmt.Errorf("mount what is slow: %w", err)
	}
	d.end = append(d.end, func() error {
		if err := Unmount(at); err != nil {
			return err
		}
		server.Wait()
		return nil
	})
	return at, nil
}

// slowNode is a file whose fsync takes its time. There is nothing to do for it: the files are in memory.
type slowNode struct {
	fs.LoopbackNode
	takes time.Duration
}

var _ fs.NodeFsyncer = (*slowNode)(nil)

func (n *slowNode) Fsync(ctx context.Context, _ fs.FileHandle, _ uint32) syscall.Errno {
	select {
	case <-time.After(n.takes):
		return fs.OK
	case <-ctx.Done():
		return syscall.EINTR
	}
}
