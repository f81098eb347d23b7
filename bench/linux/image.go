//go:build linux

package linux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"tansy/bench/internal/rig"
)

// packages are Debian's that the guest has.
const packages = "kmod,netbase,nfs-common,nfs-kernel-server,rpcbind,e2fsprogs,git,make,gcc,libc6-dev,linux-image-amd64"

// firstModules are what the guest's kernel needs to mount its root file system; the rest is loaded from there.
var firstModules = []string{"virtio_pci", "virtio_blk", "crc32c_generic", "ext4"}

// An image is what a guest is started from, which no run changes.
type image struct {
	dir     string
	kernel  string   // its release
	modules []string // paths, in the order of loading
	lock    *os.File
}

func (i *image) vmlinuz() string { return filepath.Join(i.dir, "vmlinuz") }
func (i *image) root() string    { return filepath.Join(i.dir, "root.img") }

// release lets others use the folder.
func (i *image) release() { i.lock.Close() }

// missing says what this machine has not got.
func missing(programs ...string) error {
	var none []string
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			none = append(none, p)
		}
	}
	if none == nil {
		return nil
	}
	return fmt.Errorf("not installed: %s (on Debian: apt install qemu-system-x86 debootstrap e2fsprogs)",
		strings.Join(none, ", "))
}

// prepare returns what is in the folder, for one run at a time, and makes it first if it is not there.
func prepare(ctx context.Context, dir string, out io.Writer) (*image, error) {
	if err := missing(qemu, "mkfs.ext4"); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	i := &image{dir: dir}
	var err error
	if i.lock, err = os.Create(filepath.Join(dir, "lock")); err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(i.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		i.release()
		return nil, fmt.Errorf("another run uses %s", dir)
	}
	complete := filepath.Join(dir, "complete") // says of which packages it is, and with what kernel
	text, _ := os.ReadFile(complete)
	made, kernel, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	if made != packages {
		os.Remove(complete)
		if kernel, err = i.create(ctx, out); err == nil {
			err = os.WriteFile(complete, []byte(packages+" "+kernel+"\n"), 0o644)
		}
		if err != nil {
			i.release()
			return nil, fmt.Errorf("making the guest's files: %w", err)
		}
	}
	i.kernel = kernel
	if i.modules, err = filepath.Glob(filepath.Join(dir, "modules", "*.ko")); err != nil || len(i.modules) == 0 {
		i.release()
		return nil, fmt.Errorf("%s has no modules: remove the folder, so that it is made again (%v)", dir, err)
	}
	return i, nil
}

// create makes all of it, and returns the kernel's release.
func (i *image) create(ctx context.Context, out io.Writer) (string, error) {
	if err := missing("debootstrap"); err != nil {
		return "", err
	}
	if os.Geteuid() != 0 {
		return "", errors.New("debootstrap needs root, this once")
	}
	tree := filepath.Join(i.dir, "root")
	if err := os.RemoveAll(tree); err != nil {
		return "", err
	}
	defer os.RemoveAll(tree)
	fmt.Fprintf(out, "making the guest's files in %s (a few minutes)\n", i.dir)
	args := []string{"--arch=amd64", "--variant=minbase", "--include=" + packages, "bookworm", tree}
	if _, err := rig.Command(ctx, "debootstrap", args...); err != nil {
		return "", err
	}
	releases, err := filepath.Glob(filepath.Join(tree, "lib/modules/*"))
	if err != nil || len(releases) != 1 {
		return "", fmt.Errorf("kernels there: %q (%v)", releases, err)
	}
	if err := i.copyModules(releases[0]); err != nil {
		return "", err
	}
	kernel := filepath.Base(releases[0])
	if err := copyFile(filepath.Join(tree, "boot", "vmlinuz-"+kernel), i.vmlinuz()); err != nil {
		return "", err
	}
	debs, _ := filepath.Glob(filepath.Join(tree, "var/cache/apt/archives/*.deb"))
	for _, d := range append(debs, filepath.Join(tree, "boot")) {
		if err := os.RemoveAll(d); err != nil {
			return "", err
		}
	}
	if err := os.Remove(i.root()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	_, err = rig.Command(ctx, "mkfs.ext4", "-q", "-F", "-d", tree, i.root(), "2G")
	return kernel, err
}

// copyModules copies the first modules, and those that they need, with names in the order of loading.
func (i *image) copyModules(tree string) error {
	text, err := os.ReadFile(filepath.Join(tree, "modules.dep"))
	if err != nil {
		return err
	}
	paths, needs := map[string]string{}, map[string][]string{}
	module := func(path string) string {
		name, _, _ := strings.Cut(filepath.Base(path), ".ko")
		return strings.ReplaceAll(name, "-", "_")
	}
	for line := range strings.Lines(string(text)) {
		path, rest, _ := strings.Cut(line, ":")
		paths[module(path)], needs[module(path)] = path, strings.Fields(rest)
	}
	folder := filepath.Join(i.dir, "modules")
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	done, copied := map[string]bool{}, 0
	var add func(name string) error
	add = func(name string) error {
		path, ok := paths[name]
		if done[name] || !ok { // not a module: part of the kernel itself, or the guest will say what is missing
			return nil
		}
		done[name] = true
		for _, n := range needs[name] {
			if err := add(module(n)); err != nil {
				return err
			}
		}
		if !strings.HasSuffix(path, ".ko") {
			return fmt.Errorf("%s is compressed", path)
		}
		copied++
		return copyFile(filepath.Join(tree, path), filepath.Join(folder, fmt.Sprintf("%02d-%s.ko", copied, name)))
	}
	for _, name := range firstModules {
		if err := add(name); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	contents, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, contents, 0o755)
}
