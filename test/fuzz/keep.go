package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
)

// keep copies inputs from the cache to the packages' testdata/fuzz: the smallest
// first, and only those that cover code which no seed and no input kept before
// covers.
func keep(targets []target) error {
	for _, t := range targets {
		if err := t.keep(); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	return nil
}

func (t target) keep() error {
	work, err := os.MkdirTemp("", "keep")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	bin := filepath.Join(work, "test")
	if out, err := exec.Command("go", "test", "-c", "-covermode=set", "-coverpkg=./nfs/nfs3,./nfs/oncrpc,./nfs/mount3", "-o", bin, "./"+t.dir).CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	cache, err := t.cacheDir()
	if err != nil {
		return err
	}
	found, err := inputs(filepath.Join(cache, t.name))
	if err != nil {
		return err
	}
	home := filepath.Join(t.dir, "testdata", "fuzz", t.name)
	covered, err := t.coverage(bin, work, "")
	if err != nil {
		return err
	}
	kept := 0
	for _, path := range found {
		name := filepath.Base(path)
		dst := filepath.Join(home, name)
		if _, err := os.Stat(dst); err == nil {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(home, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(dst, text, 0o644); err != nil {
			return err
		}
		blocks, err := t.coverage(bin, work, name)
		if err != nil {
			return err
		}
		news := false
		for b := range blocks {
			news = news || !covered[b]
			covered[b] = true
		}
		if news {
			kept++
		} else if err := os.Remove(dst); err != nil {
			return err
		}
	}
	os.Remove(home) // if it is empty
	fmt.Printf("%s: %d of %d inputs kept\n", t, kept, len(found))
	return nil
}

// inputs lists the files of a folder, the smallest first.
func inputs(dir string) ([]string, error) {
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return nil, err
	}
	size := map[string]int64{}
	for _, p := range all {
		info, err := os.Stat(p)
		if err != nil {
			return nil, err
		}
		size[p] = info.Size()
	}
	sort.Slice(all, func(i, j int) bool {
		if size[all[i]] != size[all[j]] {
			return size[all[i]] < size[all[j]]
		}
		return all[i] < all[j]
	})
	return all, nil
}

// coverage is the set of blocks that a target covers with one input, or with all
// its seeds if input is empty.
func (t target) coverage(bin, work, input string) (map[string]bool, error) {
	profile := filepath.Join(work, "cover")
	pattern := "^" + t.name + "$"
	if input != "" {
		pattern += "/^" + input + "$"
	}
	abs, err := filepath.Abs(bin)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(abs, "-test.run="+pattern, "-test.coverprofile="+profile)
	cmd.Dir = t.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		return nil, err
	}
	blocks := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); strings.HasSuffix(line, " 1") {
			blocks[line] = true
		}
	}
	return blocks, nil
}
