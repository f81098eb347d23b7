// Package image holds the tests of the image of the container that packaging/image writes for a release: it is what
// packaging/Dockerfile says, and the same binaries give the same bytes.
package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	version  = "1.2.3"
	revision = "0123456789abcdef"
	epoch    = 1700000000 // seconds since 1970
)

// program is packaging/image, built.
var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "image-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "image")
		c := exec.Command("go", "build", "-o", program)
		c.Dir = "../../packaging/image" // a module of its own
		if out, err := c.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// staged returns the arguments for platforms whose programs are stubs, which are told apart by text.
func staged(t *testing.T, text string) (platforms []string) {
	t.Helper()
	exports, err := os.ReadFile("../../packaging/container.exports")
	if err != nil {
		t.Fatal(err)
	}
	for _, architecture := range []string{"amd64", "arm64"} {
		dir := t.TempDir()
		for name, data := range map[string]string{
			"tansy":             architecture + " server " + text,
			"entrypoint":        architecture + " entrypoint",
			"container.exports": string(exports),
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		platforms = append(platforms, architecture+"="+dir)
	}
	return platforms
}

// written runs the program, and returns the path of what it writes.
func written(t *testing.T, platforms []string, env ...string) (path, out string, err error) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "image.tar")
	args := []string{"--version", version, "--revision", revision, "--output", path}
	c := exec.Command(program, append(args, platforms...)...)
	c.Env = append(append(os.Environ(), fmt.Sprint("SOURCE_DATE_EPOCH=", epoch)), env...)
	b, err := c.CombinedOutput()
	return path, string(b), err
}

// file is an entry of a tar file.
type file struct {
	tar.Header
	data string
}

// untar returns the entries of a whole tar file by their names, all of which are as old as the release.
func untar(t *testing.T, b []byte) map[string]file {
	t.Helper()
	if len(b)%512 != 0 || !bytes.HasSuffix(b, make([]byte, 1024)) { // which Go's reader does not mind
		t.Fatalf("a tar file of %d bytes has no end", len(b))
	}
	files := map[string]file{}
	for tr := tar.NewReader(bytes.NewReader(b)); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := files[h.Name]; ok || !h.ModTime.Equal(time.Unix(epoch, 0)) {
			t.Errorf("%s is there twice, or of %v", h.Name, h.ModTime)
		}
		files[h.Name] = file{*h, string(data)}
	}
}

// The types of what an index or a manifest names.
const (
	index    = "application/vnd.oci.image.index.v1+json"
	manifest = "application/vnd.oci.image.manifest.v1+json"
	settings = "application/vnd.oci.image.config.v1+json"
	layer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// descriptor names a blob.
type descriptor struct {
	MediaType, Digest string
	Size              int
	Annotations       map[string]string
	Platform          struct{ OS, Architecture string }
}

// names is an index, or a manifest.
type names struct {
	SchemaVersion int
	MediaType     string
	Manifests     []descriptor
	Config        descriptor
	Layers        []descriptor
}

// image is that of one architecture.
type image struct {
	OS, Architecture, Created string
	Config                    config
	RootFS                    struct {
		DiffIDs []string `json:"diff_ids"`
	}
	files map[string]file
}

// config is what an image says about its container.
type config struct {
	Env, Entrypoint, Cmd         []string
	User, WorkingDir, StopSignal string
	Volumes, ExposedPorts        map[string]struct{}
	Healthcheck                  struct {
		Test        []string
		StartPeriod time.Duration
	}
	Labels map[string]string
}

// archive is an OCI image layout.
type archive map[string]file

// blob returns what d names, and fails if it is not that, or of another type.
func (a archive) blob(t *testing.T, d descriptor, mediaType string) string {
	t.Helper()
	hash, _ := strings.CutPrefix(d.Digest, "sha256:")
	f, ok := a["blobs/sha256/"+hash]
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(f.data)))
	if !ok || sum != hash || len(f.data) != d.Size || d.MediaType != mediaType {
		t.Fatalf("%+v: there: %v, sum %s, %d bytes, want a %s", d, ok, sum, len(f.data), mediaType)
	}
	return f.data
}

// images returns those that the file at path has, by architecture.
func images(t *testing.T, path string) map[string]image {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a := archive(untar(t, b))
	parse(t, a["oci-layout"].data, &struct{}{})
	var top, platforms names
	parse(t, a["index.json"].data, &top)
	if len(top.Manifests) != 1 || top.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "tansy:"+version {
		t.Fatalf("%+v", top)
	}
	parse(t, a.blob(t, top.Manifests[0], index), &platforms)
	all := map[string]image{}
	for _, d := range platforms.Manifests {
		var of names
		parse(t, a.blob(t, d, manifest), &of)
		var i image
		parse(t, a.blob(t, of.Config, settings), &i)
		if d.Platform.OS != "linux" || i.OS != "linux" || d.Platform.Architecture != i.Architecture || len(of.Layers) != 1 {
			t.Errorf("%+v, with %d layers, for %+v", i, len(of.Layers), d.Platform)
		}
		unpacked, err := gzip.NewReader(strings.NewReader(a.blob(t, of.Layers[0], layer)))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(unpacked)
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{fmt.Sprintf("sha256:%x", sha256.Sum256(b))}; !slices.Equal(i.RootFS.DiffIDs, want) {
			t.Errorf("the layer is %q, want %q", i.RootFS.DiffIDs, want)
		}
		i.files = untar(t, b)
		all[i.Architecture] = i
	}
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, []string{"amd64", "arm64"}) {
		t.Fatalf("images for %q", got)
	}
	return all
}

func parse(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
}

// The same programs give the same bytes, wherever and whenever; others give others.
func TestReproducible(t *testing.T) {
	sum := func(text string) [32]byte {
		path, out, err := written(t, staged(t, text), "TZ=Asia/Tokyo", "TMPDIR="+t.TempDir())
		if err != nil {
			t.Fatal(err, out)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return sha256.Sum256(b)
	}
	first := sum("a")
	if again := sum("a"); again != first {
		t.Errorf("%x, and then %x", first, again)
	}
	if other := sum("b"); other == first {
		t.Error("another server gives the same image")
	}
}

// described is what the last stage of packaging/Dockerfile says: a config, and the owner of each path that it copies
// to. An instruction that this does not know is an error: packaging/image may not know it either.
func described(t *testing.T) (c config, owners map[string]int) {
	t.Helper()
	b, err := os.ReadFile("../../packaging/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, stage, ok := strings.Cut(string(b), "\nFROM scratch\n")
	if !ok || strings.Contains(stage, "\nFROM ") {
		t.Fatal("the last stage does not begin with nothing")
	}
	owners = map[string]int{}
	c.Volumes, c.ExposedPorts = map[string]struct{}{}, map[string]struct{}{}
	for line := range strings.Lines(stage) {
		instruction, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch instruction {
		case "COPY":
			var owner int
			if m := regexp.MustCompile(`--chown=(\d+):(\d+) `).FindStringSubmatch(rest); m != nil {
				fmt.Sscan(m[1], &owner)
			}
			owners[rest[strings.LastIndex(rest, " ")+1:]] = owner
		case "ENV":
			c.Env = append(c.Env, rest)
		case "USER":
			c.User = rest
		case "WORKDIR":
			c.WorkingDir = rest
		case "VOLUME":
			c.Volumes[rest] = struct{}{}
		case "EXPOSE":
			c.ExposedPorts[rest+"/tcp"] = struct{}{}
		case "STOPSIGNAL":
			c.StopSignal = rest
		case "ENTRYPOINT":
			parse(t, rest, &c.Entrypoint)
		case "CMD":
			parse(t, rest, &c.Cmd)
		case "HEALTHCHECK":
			m := regexp.MustCompile(`^--start-period=(\S+) CMD (\[.*\])$`).FindStringSubmatch(rest)
			if m == nil {
				t.Fatalf("HEALTHCHECK %s", rest)
			}
			if c.Healthcheck.StartPeriod, err = time.ParseDuration(m[1]); err != nil {
				t.Fatal(err)
			}
			parse(t, m[2], &c.Healthcheck.Test)
			c.Healthcheck.Test = slices.Insert(c.Healthcheck.Test, 0, "CMD")
		default:
			t.Fatalf("unknown instruction in the Dockerfile: %s", line)
		}
	}
	return c, owners
}

// The image is the one that the Dockerfile describes, and its labels say of which release it is.
func TestAsDockerfile(t *testing.T) {
	path, out, err := written(t, staged(t, ""))
	if err != nil {
		t.Fatal(err, out)
	}
	want, owners := described(t)
	want.Labels = map[string]string{
		"org.opencontainers.image.title": "tansy", "org.opencontainers.image.version": version,
		"org.opencontainers.image.revision": revision, "org.opencontainers.image.licenses": "MIT",
	}
	for architecture, i := range images(t, path) {
		if !reflect.DeepEqual(i.Config, want) {
			t.Errorf("%s:\n%+v, the Dockerfile says\n%+v", architecture, i.Config, want)
		}
		if created := time.Unix(epoch, 0).UTC().Format(time.RFC3339); i.Created != created {
			t.Errorf("%s: created %s, want %s", architecture, i.Created, created)
		}
		for to, owner := range owners {
			f, ok := i.files[to[1:]]
			if !ok {
				f, ok = i.files[to[1:]+"/"]
			}
			if !ok || f.Uid != owner || f.Gid != owner {
				t.Errorf("%s: %s: there: %v, of %d:%d, want %d", architecture, to, ok, f.Uid, f.Gid, owner)
			}
		}
	}
}

// All that is in the image: two programs, the exports, and the folder of the volume, which is its user's and new.
func TestFiles(t *testing.T) {
	path, out, err := written(t, staged(t, "x"))
	if err != nil {
		t.Fatal(err, out)
	}
	exports, err := os.ReadFile("../../packaging/container.exports")
	if err != nil {
		t.Fatal(err)
	}
	for architecture, i := range images(t, path) {
		var got []string
		for _, name := range slices.Sorted(maps.Keys(i.files)) {
			f := i.files[name]
			got = append(got, fmt.Sprintf("%c %s %o %d:%d %s", f.Typeflag, name, f.Mode, f.Uid, f.Gid, f.data))
		}
		want := []string{
			"5 bin/ 755 0:0 ",
			"0 bin/tansy 755 0:0 " + architecture + " server x",
			"5 data/ 755 65532:65532 ",
			"0 data/.new 644 65532:65532 ",
			"0 entrypoint 755 0:0 " + architecture + " entrypoint",
			"5 etc/ 755 0:0 ",
			"0 etc/tansy.exports 644 0:0 " + string(exports),
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%q, want\n%q", architecture, got, want)
		}
	}
}

// What is missing is told, and no file is written.
func TestRefused(t *testing.T) {
	none := func([]string) []string { return nil }
	without := func(name string) func([]string) []string {
		return func(p []string) []string {
			os.Remove(filepath.Join(strings.TrimPrefix(p[0], "amd64="), name))
			return p
		}
	}
	empty := func(p []string) []string {
		os.Truncate(filepath.Join(strings.TrimPrefix(p[0], "amd64="), "tansy"), 0)
		return p
	}
	another := func(p []string) []string { return append(p, "dist") }
	for _, x := range []struct {
		what, says string
		spoil      func(platforms []string) []string
		env        string
	}{
		{what: "no server", says: "/tansy: no such file", spoil: without("tansy")},
		{what: "no entrypoint", says: "/entrypoint: no such file", spoil: without("entrypoint")},
		{what: "an empty server", says: "/tansy is empty", spoil: empty},
		{what: "no architecture", says: `"dist" is not ARCHITECTURE=FOLDER`, spoil: another},
		{what: "no platform", says: "usage: image", spoil: none},
		{what: "no time", says: "SOURCE_DATE_EPOCH has to be a number", env: "SOURCE_DATE_EPOCH="},
	} {
		platforms := staged(t, "")
		if x.spoil != nil {
			platforms = x.spoil(platforms)
		}
		path, out, err := written(t, platforms, x.env)
		if err == nil || !strings.Contains(out, x.says) {
			t.Errorf("%s: %v, %q, want %q", x.what, err, out, x.says)
		}
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s: a file is there", x.what)
		}
	}
}
