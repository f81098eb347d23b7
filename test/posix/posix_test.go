//go:build linux

package main

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLocal runs the suite on the local file system, which shows that the
// suite expects what a Linux kernel does.
func TestLocal(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can change users")
	}
	dir := t.TempDir()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil || st.Type != unix.EXT4_SUPER_MAGIC {
		t.Skip("the temporary directory is not on ext4, for which the local expectations are written")
	}
	if code := run(options{on: "local"}, []string{dir}); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

// TestParse checks that what is no script is refused.
func TestParse(t *testing.T) {
	for _, bad := range []string{
		"file f",
		"check x\nnonsense f",
		"check x\nnobody: file f",
		"check x\nfile f => ENONSENSE",
		"check x\nopen h f",
		"check x\n[nfs] file f",
		"check x\nwhy not\n[ntfs] file f",
		"check x\nfile \"f",
		"check x\nfile {x*y}",
	} {
		if _, err := parse("test", "test", bad); err == nil {
			t.Errorf("accepted: %q", bad)
		}
	}
}
