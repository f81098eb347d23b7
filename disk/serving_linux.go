package disk

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// servingFS are the file systems that a program serves, which may be this one, on the very device that waits.
var servingFS = map[int64]string{
	unix.FUSE_SUPER_MAGIC: "FUSE",
	unix.NFS_SUPER_MAGIC:  "NFS",
}

// refuseServed is an error for a folder on a file system that this process may serve.
func refuseServed(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if name, served := servingFS[int64(st.Type)]; served {
		return fmt.Errorf("%s is on %s, and so may be on the volume itself: have TMPDIR name a folder of the machine's own",
			dir, name)
	}
	return nil
}
