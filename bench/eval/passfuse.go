//go:build linux

package eval

import (
	"fmt"
	"os"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// passCommand has this program pass one directory through FUSE to another one.
const passCommand = "pass-through"

// passMain does so until it is unmounted. The library's own loopback file system answers. What the kernel may keep and
// ask for is as with Tansy's mount, and so is that contents go through the process: this kernel could also read and
// write the file below by itself.
func passMain(from, to string) int {
	root, err := fs.NewLoopbackRoot(from)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	const io = 1 << 20
	hour, minute := time.Hour, time.Minute
	server, err := fs.Mount(to, root, &fs.Options{
		EntryTimeout: &hour, AttrTimeout: &minute, NullPermissions: true,
		MountOptions: fuse.MountOptions{
			Name: "pass", FsName: from, AllowOther: true, Options: []string{"default_permissions"},
			MaxWrite: io, MaxReadAhead: io, MaxBackground: 32,
			DisableXAttrs: true, DirectMountStrict: true,
			MaxStackDepth: 3, // more than the kernel has, so that it does not go to the file below by itself
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("mounted")
	server.Wait()
	return 0
}
