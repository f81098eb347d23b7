//go:build linux

package eval

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"tansy/bench/internal/figures"
	"tansy/bench/internal/rig"
)

// tree is a folder with very many small files: unpacked from an archive, read by another one, when nothing is cached,
// and removed. Nothing is fsync'ed in between, but what changes anything ends when it is durable.
func tree(o options) []experiment {
	about := func(what string) figures.Metric {
		return figures.Metric{Name: fmt.Sprintf("%s, %s files", what, figures.Number(float64(o.files))), Unit: "files/s"}
	}
	return []experiment{{
		[]figures.Metric{about("tar -x"), about("tar -c, cold"), about("rm -rf")},
		func(ctx context.Context, s *site) (rates []float64, err error) {
			archive, err := s.prepared("tree", func(folder string) error {
				return makeArchive(filepath.Join(folder, "tree.tar"), s.files)
			})
			if err != nil {
				return nil, err
			}
			folder := filepath.Join(s.dir, "tree")
			for _, step := range []func() error{
				func() error { return s.lasting(ctx, "tar", "-xf", filepath.Join(archive, "tree.tar"), "-C", s.dir) },
				func() error { return readArchive(ctx, folder) },
				func() error { return s.lasting(ctx, "rm", "-rf", folder) },
			} {
				begin := time.Now()
				if err := step(); err != nil {
					return nil, err
				}
				rates = append(rates, perSecond(float64(s.files), begin))
				if err := s.remount(); err != nil {
					return nil, err
				}
			}
			return rates, nil
		},
	}}
}

// lasting runs a program, and makes durable what it has done.
func (s *site) lasting(ctx context.Context, name string, args ...string) error {
	if _, err := rig.Command(ctx, name, args...); err != nil {
		return err
	}
	return s.settle()
}

// readArchive has tar read a folder, and throws away what it makes of it. (Into /dev/null it would not read at all.)
func readArchive(ctx context.Context, folder string) error {
	c := exec.CommandContext(ctx, "tar", "-cf", "-", folder)
	c.SysProcAttr, c.Stdout = rig.Apart, struct{ io.Writer }{io.Discard}
	return c.Run()
}

// filesPerFolder is how many files a folder of the tree has.
const filesPerFolder = 100

// makeArchive makes an archive of n files of up to 4 KiB.
func makeArchive(path string, n int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w, r := tar.NewWriter(f), rand.New(rand.NewPCG(1, 1))
	var wrong error
	add := func(h tar.Header, contents []byte) {
		h.ModTime, h.Size = time.Unix(1_700_000_000, 0), int64(len(contents))
		if wrong == nil {
			wrong = w.WriteHeader(&h)
		}
		if wrong == nil {
			_, wrong = w.Write(contents)
		}
	}
	for i := range n {
		folder := fmt.Sprintf("tree/%d", i/filesPerFolder)
		if i%filesPerFolder == 0 {
			add(tar.Header{Name: folder + "/", Typeflag: tar.TypeDir, Mode: 0o755}, nil)
		}
		add(tar.Header{Name: fmt.Sprintf("%s/file%d", folder, i), Typeflag: tar.TypeReg, Mode: 0o644}, noise[:r.IntN(4097)])
	}
	return errors.Join(wrong, w.Close(), f.Close())
}
