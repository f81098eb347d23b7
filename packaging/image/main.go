// Command image writes the image of the container that packaging/Dockerfile describes, without a container engine: a
// tar file with an OCI image layout, in which an index names an image for each processor. The same binaries, version,
// and revision give the same bytes with the same Go. It is a module of its own, as the library that knows the format is
// of no use to the server.
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is who runs the server in the container, and owns the volume.
const user = 65532

// config is what packaging/Dockerfile says. A test compares them.
var config = v1.Config{
	Env:          []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TANSY_SIZE=10G"},
	User:         fmt.Sprintf("%d:%[1]d", user),
	WorkingDir:   "/data",
	Volumes:      map[string]struct{}{"/data": {}},
	ExposedPorts: map[string]struct{}{"2049/tcp": {}},
	StopSignal:   "SIGTERM",
	Healthcheck: &v1.HealthConfig{
		Test:        []string{"CMD", "tansy", "top", "127.0.0.1:9049", "--once"},
		StartPeriod: 10 * time.Minute,
	},
	Entrypoint: []string{"/entrypoint"},
	Cmd: []string{"serve", "--volume", "/data/tansy.img", "--listen", ":2049", "--status", "127.0.0.1:9049",
		"--exports", "/etc/tansy.exports"},
}

// contents is all that is in the image: directories end in a slash, and files without a source are empty.
var contents = []struct {
	path, source string
	mode         int64
	owner        int
}{
	{path: "bin/", mode: 0o755},
	{path: "bin/tansy", source: "tansy", mode: 0o755},
	{path: "data/", mode: 0o755, owner: user},
	{path: "data/.new", mode: 0o644, owner: user}, // tells the entrypoint that the volume is new
	{path: "entrypoint", source: "entrypoint", mode: 0o755},
	{path: "etc/", mode: 0o755},
	{path: "etc/tansy.exports", source: "container.exports", mode: 0o644},
}

const usage = `usage: image --version VERSION --revision COMMIT --output FILE.tar ARCHITECTURE=FOLDER...

Each FOLDER has the files tansy, entrypoint, and container.exports. SOURCE_DATE_EPOCH says of which second since 1970
the image is.
`

func main() {
	version := flag.String("version", "", "")
	revision := flag.String("revision", "", "")
	output := flag.String("output", "", "")
	flag.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	flag.Parse()
	if *version == "" || *revision == "" || *output == "" || flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*version, *revision, *output, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// run makes the images of all platforms, each ARCHITECTURE=FOLDER, and writes them to the file output.
func run(version, revision, output string, platforms []string) error {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH has to be a number of seconds since 1970: %w", err)
	}
	created := time.Unix(seconds, 0).UTC()
	labels := map[string]string{
		"org.opencontainers.image.title":    "tansy",
		"org.opencontainers.image.version":  version,
		"org.opencontainers.image.revision": revision,
		"org.opencontainers.image.licenses": "MIT",
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range platforms {
		architecture, folder, ok := strings.Cut(p, "=")
		if !ok || architecture == "" || folder == "" {
			return fmt.Errorf("%q is not ARCHITECTURE=FOLDER, such as amd64=dist/amd64", p)
		}
		platform := v1.Platform{OS: "linux", Architecture: architecture}
		image, err := platformImage(platform, folder, labels, created)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		described := v1.Descriptor{Platform: &platform}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: described})
	}
	return write(index, "tansy:"+version, output, created)
}

// platformImage is the image with the files of a folder.
func platformImage(p v1.Platform, folder string, labels map[string]string, created time.Time) (v1.Image, error) {
	files, err := layer(folder, created)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil }
	l, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	at := v1.Time{Time: created}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(base, mutate.Addendum{
		Layer:   l,
		History: v1.History{Created: at, CreatedBy: "packaging/image"},
	})
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created, file.Config = p.OS, p.Architecture, at, config
	file.Config.Labels = labels
	return mutate.ConfigFile(image, file)
}

// layer is a tar file of the contents, which are in folder.
func layer(folder string, created time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, c := range contents {
		var data []byte
		if c.source != "" {
			var err error
			if data, err = os.ReadFile(filepath.Join(folder, c.source)); err != nil {
				return nil, err
			}
			if len(data) == 0 {
				return nil, fmt.Errorf("%s is empty", filepath.Join(folder, c.source))
			}
		}
		if err := add(w, c.path, c.mode, c.owner, created, data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// add writes a file, or a directory, whose path ends in a slash.
func add(w *tar.Writer, path string, mode int64, owner int, modified time.Time, data []byte) error {
	err := w.WriteHeader(&tar.Header{
		Name: path, Mode: mode, Uid: owner, Gid: owner, ModTime: modified, Size: int64(len(data)), Format: tar.FormatUSTAR,
	})
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

// write puts the index and all that it names into a tar file, under a name for those who load it. What is there of that
// file when it fails is removed.
func write(index v1.ImageIndex, name, output string, created time.Time) (err error) {
	folder, err := os.MkdirTemp("", "image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	named := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": name})
	if err := path.AppendIndex(index, named); err != nil {
		return err
	}
	file, err := os.Create(output)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			os.Remove(output)
		}
	}()
	w := tar.NewWriter(file)
	root := os.DirFS(folder)
	err = fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		if d.IsDir() {
			return add(w, path+"/", 0o755, 0, created, nil)
		}
		data, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		return add(w, path, 0o644, 0, created, data)
	})
	return errors.Join(err, w.Close())
}
