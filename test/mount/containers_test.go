//go:build linux

package mount

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tansy/test/kit/mounttest"
)

// A storage is that of buildah's images and containers, all of it on a mount.
type storage struct {
	bin, image string
	m          *mounttest.Mount
	home       string // of the tool
}

// command is one of buildah.
func (s *storage) command(args ...string) *exec.Cmd {
	root, run := filepath.Join(s.m.Dir, "root"), filepath.Join(s.m.Dir, "run")
	c := exec.Command("buildah", append([]string{"--root", root, "--runroot", run, "--storage-driver", "overlay"},
		args...)...)
	c.Env = append(os.Environ(), "HOME="+s.home)
	c.Dir = s.home
	return c
}

// does runs buildah, which must go well, and returns what it prints.
func (s *storage) does(t *testing.T, args ...string) string {
	t.Helper()
	c := s.command(args...)
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		t.Fatalf("buildah %q: %v\n%s", args, err, &said)
	}
	if strings.Contains(said.String(), "level=") {
		t.Logf("buildah %q: %s", args, &said)
	}
	return strings.TrimSpace(string(out))
}

// compare compares what an image has with a plain directory.
func (s *storage) compare(t *testing.T, image, plain string) {
	t.Helper()
	s.does(t, "from", "--pull-never", "--name", "look", image)
	s.compareContainer(t, "look", plain)
	s.does(t, "rm", "look")
}

// compareContainer compares a container's files with a plain directory.
func (s *storage) compareContainer(t *testing.T, name, plain string) {
	t.Helper()
	got, want := tree(t, s.does(t, "mount", name)), tree(t, plain)
	for path, is := range want {
		if got[path] != is {
			t.Fatalf("%s of %s is %.60q, want %.60q", path, name, got[path], is)
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d files in %s, want %d", len(got), name, len(want))
	}
	s.does(t, "umount", name)
}

// layers are what the layers of images and containers are made of: scripts, by the name of the image that each ends.
var layers = []struct{ image, script string }{
	{"one", `mkdir -p gone/in again/old moved/in; seq 1000 >file; seq 10 >gone/in/f; seq 20 >again/old/f
		seq 30 >moved/in/f; ln -s moved/in/f soft; ln file hard; cp file set; chmod 4755 set; truncate -s 3M sparse`},
	{"two", `rm -r gone again; mkdir again; echo new >again/f; mv moved there; echo more >>sparse; chmod 700 there/in`},
	{"three", `rm again/f soft; rmdir again; echo a file now >again; mkdir gone; echo back >gone/f; rm -r there/in`},
}

// TestContainers: buildah has images and containers on a mount, with the overlays of the kernel. Images have what was
// put into them, layer by layer. When the mount's process is killed in a commit, storage goes on with all that was
// there before, takes away what was half made, and makes the same image once more.
func TestContainers(t *testing.T) {
	if _, err := exec.LookPath("buildah"); err != nil {
		t.Skip(err)
	}
	if known, err := os.ReadFile("/proc/filesystems"); err != nil || !strings.Contains(string(known), "\toverlay\n") {
		t.Skipf("this kernel has no overlays: %v", err)
	}
	t.Logf("-seed %d", *seed)
	r := rand.New(rand.NewPCG(*seed, 0))
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "512M")
	s := &storage{bin: bin, image: image, m: mounttest.New(t, bin, image), home: t.TempDir()}
	work := t.TempDir()
	for n, l := range layers {
		plain, from := filepath.Join(work, l.image), "scratch"
		if n > 0 {
			from = "localhost/" + layers[n-1].image
			shell(t, work, "cp -a "+layers[n-1].image+" "+l.image, "cp")
		} else {
			must(t, os.Mkdir(plain, 0o755))
		}
		shell(t, plain, l.script)
		s.does(t, "from", "--pull-never", "--name", "c", from)
		if n > 0 {
			shell(t, s.does(t, "mount", "c"), l.script)
		} else {
			shell(t, work, "tar cf t.tar -C one .", "tar")
			s.does(t, "add", "c", filepath.Join(work, "t.tar"), "/")
		}
		s.does(t, "commit", "--quiet", "c", l.image)
		s.does(t, "rm", "c")
	}
	for _, l := range layers {
		s.compare(t, "localhost/"+l.image, filepath.Join(work, l.image))
	}
	shell(t, work, "cp -a three four; mkdir four/many; for i in $(seq 100 399); do seq $i >four/many/$i; done")
	for _, number := range []int{100 + r.IntN(150), 250 + r.IntN(150), never} {
		s.killed(t, work, number)
	}
	s.m.Unmount(t, bin, image)
}

// never is a number of a file that there is not: the kill comes when the commit has ended, and nothing made it durable.
const never = 400

// killed kills the mount's process in a commit, when the new layer has a file of that number. When the volume is
// mounted again, all is as it was before the commit, but for an image that may be there, and is whole then. The commit
// goes well now.
func (s *storage) killed(t *testing.T, work string, number int) {
	t.Helper()
	s.does(t, "from", "--pull-never", "--name", "c", "localhost/three")
	shell(t, s.does(t, "mount", "c"), "cp -a "+work+"/four/many .")
	d, err := os.Open(s.m.Dir)
	must(t, err)
	must(t, d.Sync())
	must(t, d.Close())
	before := s.layers(t)
	commit := s.command("commit", "--quiet", "c", "four")
	var said bytes.Buffer
	commit.Stderr = &said
	must(t, commit.Start())
	ended := make(chan error, 1)
	go func() { ended <- commit.Wait() }()
	for begun := false; !begun; {
		begun = slices.ContainsFunc(s.layers(t), func(layer string) bool {
			_, err := os.Lstat(filepath.Join(layer, "diff/many", fmt.Sprint(number)))
			return err == nil && !slices.Contains(before, layer)
		})
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("the commit failed: %v\n%s", err, &said)
			}
			begun = true // a machine as busy as that did not see the file in time
			ended <- err
		default:
		}
	}
	s.m.Kill()
	err = <-ended
	fails(t, "unmount what is mounted below it first", s.bin, "umount", s.m.Dir)
	mounttest.Run(t, s.bin, "umount", s.m.Dir, "--lazy")
	mounttest.Run(t, s.bin, "check", s.image, "--data")
	s.m = mounttest.On(t, s.bin, s.image, s.m.Dir, nil)
	images := s.does(t, "images", "--format", "{{.Name}}")
	t.Logf("killed at file %d; the commit: %v; images: %q", number, err, images)
	for _, l := range layers {
		s.compare(t, "localhost/"+l.image, filepath.Join(work, l.image))
	}
	s.compareContainer(t, "c", filepath.Join(work, "four"))
	if strings.Contains(images, "four") { // it was named, so it is whole
		s.compare(t, "localhost/four", filepath.Join(work, "four"))
	}
	s.does(t, "commit", "--quiet", "c", "four")
	s.compare(t, "localhost/four", filepath.Join(work, "four"))
	s.does(t, "rm", "c")
	s.does(t, "rmi", "localhost/four")
	s.does(t, "rmi", "--prune") // an earlier one of that name
	if left := s.layers(t); len(left) != len(layers) {
		t.Errorf("%d layers are left, want %d: %q", len(left), len(layers), left)
	}
}

// layers are the directories of layers that storage has.
func (s *storage) layers(t *testing.T) (all []string) {
	t.Helper()
	dir := filepath.Join(s.m.Dir, "root/overlay")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && e.Name() != "l" { // which has short names of all others
			all = append(all, filepath.Join(dir, e.Name()))
		}
	}
	return all
}
