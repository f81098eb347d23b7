//go:build linux

package mount

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tansy/test/kit/mounttest"
)

// loop attaches a loop device to an image, until the end of the test.
func loop(t *testing.T, image string) (device string) {
	t.Helper()
	out, err := exec.Command("losetup", "--find", "--show", image).CombinedOutput()
	if err != nil {
		t.Skipf("no loop device: %v: %s", err, out)
	}
	device = strings.TrimSpace(string(out))
	t.Cleanup(func() { exec.Command("losetup", "-d", device).Run() })
	return device
}

// number is that of the device that a directory lies on.
func number(t *testing.T, dir string) string {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Stat(dir, &st))
	return fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
}

// tellsOfSync tells whether the kernel passes sync(2) on to who has a block device mounted.
func tellsOfSync() bool {
	var u unix.Utsname
	unix.Uname(&u)
	var major, minor int
	fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor)
	return major > 6 || major == 6 && minor >= 18
}

// On a block device that is mounted with blkdev, syncfs(2) and sync(2) make all durable that was done before, time
// after time.
func TestSyncDevice(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "64M")
	fails(t, "no block device", bin, "mount", image, t.TempDir(), "-o", "blkdev")
	device := loop(t, image)
	for round, sync := range []func(dir string){
		func(dir string) {
			d, err := os.Open(dir)
			must(t, err)
			defer d.Close()
			must(t, unix.Syncfs(int(d.Fd())))
		},
		func(string) { unix.Sync() },
	} {
		m := mounttest.New(t, bin, device, "-o", "blkdev", "--commit-interval", "1h")
		fails(t, "", bin, "mount", device, t.TempDir()) // it is in use
		for i := range 3 {
			name := filepath.Join(m.Dir, fmt.Sprint(round, i))
			must(t, os.WriteFile(name, []byte("data"), 0o644))
			sync(m.Dir)
		}
		m.Kill()
		mounttest.Run(t, bin, "umount", m.Dir)
		m = mounttest.New(t, bin, device)
		for i := range 3 {
			name := filepath.Join(m.Dir, fmt.Sprint(round, i))
			if !tellsOfSync() {
				t.Skip("this kernel tells nobody of sync(2)")
			}
			content(t, name, "data")
		}
		m.Unmount(t, bin, device)
	}
}

// What the kernel asks of a block device that is mounted with blkdev is answered as it is of others: long and short
// reads and writes, by many at a time, long listings, extended attributes, what is mapped; and it is all there when it
// is mounted again.
func TestDevice(t *testing.T) {
	bin := mounttest.Build(t)
	device := loop(t, mounttest.Volume(t, bin, "256M"))
	m := mounttest.New(t, bin, device, "-o", "blkdev")
	ahead, err := os.ReadFile("/sys/class/bdi/" + number(t, m.Dir) + "-fuseblk/read_ahead_kb")
	if must(t, err); string(ahead) != "1024\n" {
		t.Errorf("%s KiB are read ahead", ahead)
	}
	script := `
cd "$1"
for i in 1 2 3 4 5 6 7 8; do
	(mkdir d$i; seq $i 200000 >d$i/numbers; cp d$i/numbers d$i/copy; cmp d$i/numbers d$i/copy
	dd if=d$i/copy of=d$i/again bs=1M iflag=direct oflag=direct,sync conv=notrunc status=none; cmp d$i/copy d$i/again) &
	all="$all $!"
done
for p in $all; do wait $p; done
mkdir many; (cd many; seq 1 5000 | xargs touch)
[ $(ls many | wc -l) = 5000 ]
rm many/*; rmdir many
`
	if out, err := exec.Command("sh", "-e", "-c", script, "sh", m.Dir).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	f := filepath.Join(m.Dir, "d1/numbers")
	must(t, unix.Setxattr(f, "user.long", make([]byte, 4000), 0))
	b := make([]byte, 65536)
	if n, err := unix.Getxattr(f, "user.long", b); n != 4000 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	mounttest.Run(t, bin, "mount", device, m.Dir, "-o", "remount,ro")
	has(t, m.Dir, unix.MS_RDONLY, 0)
	m.Unmount(t, bin, device)
	m = mounttest.New(t, bin, device, "-o", "blkdev,ro,nosuid")
	has(t, m.Dir, unix.MS_RDONLY|unix.MS_NOSUID, 0)
	if out, err := exec.Command("sh", "-e", "-c", "cd \"$1\"; seq 8 200000 | cmp - d8/again", "sh", m.Dir).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	m.Unmount(t, bin, device)
}
