//go:build linux

package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tansy/test/kit/hosttest"
	"tansy/test/kit/mounttest"
)

// An overlaid is a directory of layers on a mount, the last of which is written to, and a plain directory to which the
// same is done.
type overlaid struct {
	bin, image string
	m          *mounttest.Mount
	dir, plain string
	layers     int // below the one that is written to
}

// mount puts the layers together. The lowest is 0.
func (o *overlaid) mount(t *testing.T) {
	t.Helper()
	at := func(kind string, n int) string { return filepath.Join(o.m.Dir, fmt.Sprint(kind, n)) }
	var lower []string
	for n := o.layers - 1; n >= 0; n-- {
		lower = append(lower, at("layer", n))
	}
	for _, dir := range []string{at("layer", o.layers), at("work", o.layers)} {
		if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s,redirect_dir=on",
		strings.Join(lower, ":"), at("layer", o.layers), at("work", o.layers))
	switch err := unix.Mount("overlay", o.dir, "overlay", 0, options); err {
	case nil:
	case unix.ENODEV, unix.EPERM:
		t.Skipf("no overlays can be mounted here: %v", err)
	default:
		t.Fatalf("the mount cannot be the upper layer: %v", err)
	}
}

func (o *overlaid) unmount(t *testing.T) {
	t.Helper()
	must(t, unix.Unmount(o.dir, 0))
}

// kill ends the mount's process when all is durable, and mounts the volume and the layers again.
func (o *overlaid) kill(t *testing.T) {
	t.Helper()
	d, err := os.Open(o.dir)
	must(t, err)
	must(t, d.Sync())
	must(t, d.Close())
	o.m.Kill()
	o.unmount(t)
	mounttest.Run(t, o.bin, "umount", o.m.Dir)
	o.m = mounttest.On(t, o.bin, o.image, o.m.Dir, nil)
	o.mount(t)
}

// tree is what is below a directory: kinds and modes, contents, and where links lead.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		var is string
		switch {
		case info.Mode().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			is = string(b)
		case info.Mode()&fs.ModeSymlink != 0:
			if is, err = os.Readlink(path); err != nil {
				return err
			}
		}
		all[path[len(root)+1:]] = fmt.Sprint(info.Mode(), " ", is)
		return nil
	}))
	return all
}

// compare tells the first difference between both directories.
func (o *overlaid) compare(t *testing.T) {
	t.Helper()
	got, want := tree(t, o.dir), tree(t, o.plain)
	for path, is := range want {
		if got[path] != is {
			t.Fatalf("%s is %.60q, want %.60q", path, got[path], is)
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d files in the layers, want %d", len(got), len(want))
	}
}

// step does one thing at random in both.
func (o *overlaid) step(t *testing.T, r *rand.Rand, number int) {
	t.Helper()
	var dirs, files []string
	for path, is := range tree(t, o.plain) {
		if is[0] == 'd' {
			dirs = append(dirs, path)
		} else {
			files = append(files, path)
		}
	}
	slices.Sort(dirs) // a map has no order that comes again
	slices.Sort(files)
	dirs = append(dirs, ".")
	anyOf := func(s []string) string { return append(s, "none")[r.IntN(len(s)+1)] }
	dir, file, fresh := anyOf(dirs), anyOf(files), filepath.Join(dirs[r.IntN(len(dirs))], fmt.Sprint("n", r.IntN(30)))
	what, mode := r.IntN(9), fs.FileMode(0o700|r.IntN(64))
	var errs [2]error
	for i, root := range []string{o.dir, o.plain} {
		at := func(name string) string { return filepath.Join(root, name) }
		switch what {
		case 0:
			errs[i] = os.Mkdir(at(fresh), 0o755)
		case 1:
			errs[i] = os.WriteFile(at(fresh), fmt.Appendf(nil, "written %d", number), 0o644)
		case 2:
			errs[i] = appendTo(at(file), fmt.Sprint("appended ", number))
		case 3:
			errs[i] = unix.Unlink(at(file))
		case 4:
			errs[i] = os.Rename(at(file), at(fresh))
		case 5:
			if dir != "." {
				errs[i] = unix.Rename(at(dir), at(fresh))
			}
		case 6:
			if dir != "." && number%3 == 0 {
				errs[i] = os.RemoveAll(at(dir))
			}
		case 7:
			errs[i] = os.Symlink(file, at(fresh))
		case 8:
			errs[i] = os.Chmod(at(dir), mode)
		}
	}
	var got, want syscall.Errno
	errors.As(errs[0], &got)
	errors.As(errs[1], &want)
	if got != want {
		t.Fatalf("step %d, %d of %s, %s, %s: %v, want %v", number, what, dir, file, fresh, got, want)
	}
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// TestOverlay: a mount has all layers of an overlay, also the one that is written to, as containers have. What is done
// through it is as in a plain directory, through three layers, each with whiteouts and opaque directories, and through
// SIGKILL of the mount.
func TestOverlay(t *testing.T) {
	t.Logf("-seed %d", *seed)
	r := rand.New(rand.NewPCG(*seed, 0))
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "128M")
	o := &overlaid{bin: bin, image: image, m: mounttest.New(t, bin, image), dir: t.TempDir(), plain: t.TempDir()}
	t.Cleanup(func() { unix.Unmount(o.dir, unix.MNT_DETACH) })
	for _, root := range []string{filepath.Join(o.m.Dir, "layer0"), o.plain} {
		for _, dir := range []string{"d", "d/e", "d/e/f", "g"} {
			must(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
			must(t, os.WriteFile(filepath.Join(root, dir, "file"), []byte("below in "+dir), 0o644))
		}
	}
	for o.layers = 1; o.layers <= 3; o.layers++ {
		o.mount(t)
		o.compare(t)
		for i := range 150 {
			o.step(t, r, i)
			if i%50 == 49 {
				o.compare(t)
				o.kill(t)
				o.compare(t)
			}
		}
		if o.layers == 1 {
			o.marks(t)
		}
		o.unmount(t)
	}
	o.m.Unmount(t, bin, image)
}

// marks looks at what one removal and one directory in the place of another leave in the layer.
func (o *overlaid) marks(t *testing.T) {
	t.Helper()
	for _, root := range []string{o.dir, o.plain} {
		must(t, os.RemoveAll(filepath.Join(root, "g")))
		must(t, os.Mkdir(filepath.Join(root, "g"), 0o755))
		must(t, os.RemoveAll(filepath.Join(root, "d")))
	}
	layer := filepath.Join(o.m.Dir, "layer1")
	var st unix.Stat_t
	must(t, unix.Lstat(filepath.Join(layer, "d"), &st))
	if st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != 0 {
		t.Errorf("no whiteout: mode %o, device %d", st.Mode, st.Rdev)
	}
	b := make([]byte, 10)
	if n, err := unix.Lgetxattr(filepath.Join(layer, "g"), "trusted.overlay.opaque", b); err != nil || b[0] != 'y' {
		t.Errorf("the directory is not opaque: %q, %v", b[:max(n, 0)], err)
	}
	o.compare(t)
}

// TestOverlayOfUser: who is not root has the same in a user namespace, with attributes of the namespace user.
func TestOverlayOfUser(t *testing.T) {
	bin := mounttest.Build(t)
	if out, err := asUser("true", ""); err != nil {
		t.Skipf("no user namespaces here: %v, %s", err, out)
	}
	image := filepath.Join(t.TempDir(), "v.img")
	mounttest.Run(t, bin, "mkfs", image, "--size", "64M", "--owner", "65534:65534")
	dir := filepath.Join(shared(t), "m")
	must(t, os.Mkdir(dir, 0o755))
	m := mounttest.On(t, bin, image, dir, nil, "--allow-other")
	out, err := asUser(`set -e; cd "$1"; mkdir lower lower/d upper work o; echo a >lower/a; echo b >lower/d/b
		mount -t overlay overlay -o userxattr,lowerdir=lower,upperdir=upper,workdir=work o || exit 9
		rm o/a; rm -r o/d; mkdir o/d; echo c >o/d/c; ls o o/d`, dir)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 9 {
		t.Skipf("no overlays can be mounted by a user here: %s", out)
	}
	if err != nil || out != "o:\nd\n\no/d:\nc\n" {
		t.Errorf("%v, %q", err, out)
	}
	var st unix.Stat_t
	must(t, unix.Lstat(filepath.Join(dir, "upper/a"), &st))
	if st.Mode != unix.S_IFCHR || st.Rdev != 0 || st.Uid != 65534 {
		t.Errorf("no whiteout of the user: mode %o, device %d, user %d", st.Mode, st.Rdev, st.Uid)
	}
	b := make([]byte, 10)
	if n, err := unix.Lgetxattr(filepath.Join(dir, "upper/d"), "user.overlay.opaque", b); err != nil || b[0] != 'y' {
		t.Errorf("the directory is not opaque: %q, %v", b[:max(n, 0)], err)
	}
	m.Unmount(t, bin, image)
}

// asUser runs a script as root of a user namespace, which is nobody outside. $1 is a directory with a volume.
func asUser(script, dir string) (string, error) {
	cmd := exec.Command("unshare", "-m", "sh", "-c", hosttest.Apart+
		`exec setpriv --reuid 65534 --regid 65534 --clear-groups unshare -Urm sh -c "$@"`, "sh", script, "sh", dir)
	cmd.Env = append(os.Environ(), "KEEP="+dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// shared is a directory that everybody may enter.
func shared(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "overlay")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	return dir
}
