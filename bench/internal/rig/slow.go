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
	root, err := fs.NewLoopbackRoot(dir)
	if err != nil {
		return "", err
	}
	server, err := fs.Mount(at, slow(root, d.kind.barrier), &fs.Options{
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
	*fs.LoopbackNode
	takes time.Duration
}

func slow(node fs.InodeEmbedder, takes time.Duration) fs.InodeEmbedder {
	return &slowNode{node.(*fs.LoopbackNode), takes}
}

var (
	_ fs.NodeFsyncer     = (*slowNode)(nil)
	_ fs.NodeWrapChilder = (*slowNode)(nil)
)

// WrapChild has what is below a directory be slow, too.
func (n *slowNode) WrapChild(_ context.Context, below fs.InodeEmbedder) fs.InodeEmbedder {
	return slow(below, n.takes)
}

func (n *slowNode) Fsync(ctx context.Context, _ fs.FileHandle, _ uint32) syscall.Errno {
	select {
	case <-time.After(n.takes):
		return fs.OK
	case <-ctx.Done():
		return syscall.EINTR
	}
}
