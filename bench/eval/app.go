//go:build linux

package eval

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"tansy/bench/internal/figures"
	"tansy/bench/internal/rig"
)

// app is what somebody does who works on a program: clone its repository, and build it. The program is Tansy. Go's
// cache of what it has built lies on the file system, too, and has the standard library in it already.
func app(o options) []experiment {
	what := "./cmd/tansy"
	if o.quick {
		what = "./disk"
	}
	seconds := func(name string) figures.Metric { return figures.Metric{Name: name, Unit: "s", Lower: true} }
	return []experiment{{
		[]figures.Metric{seconds("git clone"), seconds("go build " + what), seconds("clone and build")},
		func(ctx context.Context, s *site) ([]float64, error) {
			repository, err := s.prepared("repository", func(folder string) error {
				_, err := rig.Command(ctx, "git", "clone", "-q", "--bare", "--no-hardlinks", ".", folder)
				return err
			})
			if err != nil {
				return nil, err
			}
			cache, err := s.prepared("built", func(folder string) error { return buildStandard(ctx, folder, what) })
			if err != nil {
				return nil, err
			}
			if cache, err = s.copied(ctx, cache); err != nil {
				return nil, err
			}
			work, begin := filepath.Join(s.dir, "work"), time.Now()
			if err := s.lasting(ctx, "git", "clone", "-q", "--no-hardlinks", repository, work); err != nil {
				return nil, err
			}
			cloned := time.Since(begin)
			c := goTool(ctx, work, cache, "build", "-o", filepath.Join(work, "built"), what)
			if _, err := rig.Output(c); err != nil {
				return nil, err
			}
			if err := s.settle(); err != nil {
				return nil, err
			}
			both := time.Since(begin)
			return []float64{cloned.Seconds(), (both - cloned).Seconds(), both.Seconds()}, nil
		},
	}}
}

// goTool runs Go in a folder, with a cache.
func goTool(ctx context.Context, folder, cache string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir, c.SysProcAttr = folder, rig.Apart
	c.Env = append(os.Environ(), "GOCACHE="+cache, "GOTMPDIR="+cache, "GOFLAGS=-buildvcs=false", "GOPROXY=off")
	return c
}

// buildStandard fills a cache with what a program needs of the standard library.
func buildStandard(ctx context.Context, cache, what string) error {
	list := goTool(ctx, ".", cache, "list", "-deps", "-f", "{{if .Standard}}{{.ImportPath}}{{end}}", what)
	packages, err := rig.Output(list)
	if err != nil {
		return err
	}
	_, err = rig.Output(goTool(ctx, ".", cache, append([]string{"build"}, strings.Fields(packages)...)...))
	return err
}

// inRepository says what is missing for app.
func inRepository() error {
	for _, program := range []string{"git", "go"} {
		if _, err := exec.LookPath(program); err != nil {
			return err
		}
	}
	if _, err := os.Stat("go.mod"); err != nil {
		return errors.New("not run in the folder of the repository")
	}
	return nil
}
