//go:build linux

package mount

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tansy/test/kit/hosttest"
	"tansy/test/kit/mounttest"
)

// withHelper runs a script in a mount namespace of its own, in which the program is installed, with the link
// mount.tansy alone. $1 is a folder with the images a and b; there is none c.
func withHelper(t *testing.T, script string) string {
	t.Helper()
	bin := mounttest.Build(t)
	links, dir := shared(t), shared(t)
	must(t, os.Link(bin, filepath.Join(links, "tansy")))
	must(t, os.Symlink("tansy", filepath.Join(links, "mount.tansy")))
	for _, name := range []string{"a", "b"} {
		mounttest.Run(t, bin, "mkfs", filepath.Join(dir, name), "--size", "64M")
	}
	for _, name := range []string{"on a", "on b", "on c"} {
		must(t, os.Mkdir(filepath.Join(dir, strings.ReplaceAll(name, " ", "-")), 0o755))
	}
	c := exec.Command("unshare", "-m", "--propagation", "private", "bash", "-ec",
		hosttest.Apart+`sbin=$(readlink -f /sbin)
		mount -t overlay overlay -o "lowerdir=$2:$sbin" "$sbin" || exit 9
		cd "$1"; `+script, "bash", dir, links)
	out, err := c.CombinedOutput()
	if c.ProcessState.ExitCode() == 9 {
		t.Skipf("the folder of helpers cannot be covered here: %s", out)
	}
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	return strings.ReplaceAll(string(out), dir, "DIR")
}

// TestTable: mount(8) mounts what a table like /etc/fstab has, with the options that people give there; findmnt and df
// show the volume.
func TestTable(t *testing.T) {
	got := withHelper(t, `cat >table <<-END
			$1/a $1/on-a tansy allow_other,nosuid,nodev,nofail,_netdev,x-systemd.device-timeout=5s,x-gvfs-hide 0 0
			$1/b $1/on-b tansy ro,noauto,users,x-systemd.automount 0 0
			$1/c $1/on-c tansy nofail 0 0
		END
		mount -a -T table && echo all
		mount -T table on-b && echo one
		for d in on-a on-b; do findmnt -n -o SOURCE,FSTYPE,TARGET -r -M "$1/$d"; done
		df --output=source on-a | tail -1
		touch on-a/f
		touch on-b/f 2>&1 | grep -o "Read-only.*"
		mount -T table -o remount,ro "$1/on-a"
		touch on-a/f 2>&1 | grep -o "Read-only.*"
		umount on-b
		umount on-a
		# umount(8) does not wait until the volume is closed
		while tansy check a 2>&1 >/dev/null | grep -q "in use by another"; do :; done
		tansy check a >/dev/null && echo sound`)
	want := `all
one
DIR/a fuse.tansy DIR/on-a
DIR/b fuse.tansy DIR/on-b
DIR/a
Read-only file system
Read-only file system
sound
`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestTableOfUser: what /etc/fstab lets a user mount, the user mounts, by either type, and unmounts. Another user can
// unmount it with the option users alone. Who may not write to the directory mounts nothing on it.
func TestTableOfUser(t *testing.T) {
	if _, err := exec.LookPath("fusermount3"); err != nil {
		t.Skip(err)
	}
	got := withHelper(t, `[ -e /etc/fstab ] && id nobody daemon >&2 || exit 9
		as() { who=$1; shift; setpriv --reuid "$who" --regid "$who" --clear-groups "$@"; }
		tansy mkfs a --force --size 64M --owner 65534:65534
		chown 65534 a on-a
		touch table
		mount --bind table /etc/fstab
		for entry in tansy,user fuse.tansy,users; do
			printf '%s %s %s noauto,%s 0 0\n' "$1/a" "$1/on-a" ${entry%,*} ${entry#*,} "$1/b" "$1/on-b" tansy user >table
			as 65534 mount "$1/on-a"
			findmnt -n -o SOURCE,FSTYPE,VFS-OPTIONS -r -M "$1/on-a"
			as 65534 sh -c 'echo mine >on-a/f; cat on-a/f'
			as 1 umount "$1/on-a" 2>/dev/null && echo by another || as 65534 umount "$1/on-a"
			! mountpoint -q on-a
			while tansy check a 2>&1 >/dev/null | grep -q "in use by another"; do :; done
		done
		as 65534 mount "$1/on-b" 2>/dev/null || echo refused
		! mountpoint -q on-b`)
	want := `DIR/a fuse.tansy rw,nosuid,nodev,noexec,relatime
mine
DIR/a fuse.tansy rw,nosuid,nodev,noexec,relatime
mine
by another
refused
`
	if _, said, ok := strings.Cut(got, "made a volume\n"); !ok || said != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestTableRefused: what a file system with owners and permissions of its own has no use for is refused with a reason.
func TestTableRefused(t *testing.T) {
	got := withHelper(t, `for o in uid=1000 gid=1000 umask=022; do
			mount -t tansy a on-a -o $o 2>&1 || echo "code $?"
		done`)
	for _, want := range []string{
		`"uid=1000": files have owners`, `"gid=1000": files have owners`, `"umask=022": files have`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if strings.Count(got, "code 1\n") != 3 {
		t.Error(got)
	}
}

// TestMountFuse: the helper of all file systems of FUSE finds the program by its name, without a link.
func TestMountFuse(t *testing.T) {
	if _, err := exec.LookPath("mount.fuse3"); err != nil {
		t.Skip(err)
	}
	got := withHelper(t, `mount.fuse3 "tansy#$1/a" on-a -o allow_other
		mount -t fuse.tansy "$1/b" on-b -o ro
		for d in on-a on-b; do findmnt -n -o SOURCE,FSTYPE -r -M "$1/$d"; done
		mount.fuse3 "tansy#$1/c" on-c 2>&1 >/dev/null | grep -o "does not exist"
		umount on-a
		umount on-b`)
	if want := "DIR/a fuse.tansy\nDIR/b fuse.tansy\ndoes not exist\n"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
