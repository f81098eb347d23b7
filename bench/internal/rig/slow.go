//go:build linux

package rig

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
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
	opened := new(handles)
	server, err := fs.Mount(at, slow(root, d.kind.barrier, opened), &fs.Options{
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
		opened.release()
		return nil
	})
	return at, nil
}

// slowNode is a file whose fsync takes its time. There is nothing to do for it: the files are in memory.
type slowNode struct {
	*fs.LoopbackNode
	takes  time.Duration
	opened *handles
}

func slow(node fs.InodeEmbedder, takes time.Duration, opened *handles) fs.InodeEmbedder {
	return &slowNode{node.(*fs.LoopbackNode), takes, opened}
}

// handles are all that were opened. The kernel may end the mount before it has said that one is closed. It would stay
// open then, and what lies below could not be unmounted.
type handles struct {
	mu  sync.Mutex
	all []fs.FileHandle
}

func (h *handles) add(opened fs.FileHandle) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, opened)
}

// release closes those that are not closed yet.
func (h *handles) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.all {
		if r, ok := f.(fs.FileReleaser); ok {
			r.Release(context.Background()) // an error if it is closed already
		}
	}
}

var (
	_ fs.NodeFsyncer     = (*slowNode)(nil)
	_ fs.NodeOpener      = (*slowNode)(nil)
	_ fs.NodeWrapChilder = (*slowNode)(nil)
)

// WrapChild has what is below a directory be slow, too.
func (n *slowNode) WrapChild(_ context.Context, below fs.InodeEmbedder) fs.InodeEmbedder {
	return slow(below, n.takes, n.opened)
}

// Open opens the file below.
func (n *slowNode) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	f, with, errno := n.LoopbackNode.Open(ctx, flags)
	if errno == fs.OK {
		n.opened.add(f)
	}
	return f, with, errno
}

func (n *slowNode) Fsync(ctx context.Context, _ fs.FileHandle, _ uint32) syscall.Errno {
	select {
	case <-time.After(n.takes):
		return fs.OK
	case <-ctx.Done():
		return syscall.EINTR
	}
}
