// Package layers holds the tests that the parts of this repository are layers: imports of Go packages and includes of
// Dafny files go down, never up; and what a public package exports is made of public types.
package layers

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// layers are the folders of Tansy, the lowest first. What is translated from Dafny (internal/gen, and
// example/internal/gen of the examples) belongs where its source is. A part may use those of its own layer and of lower
// ones. Folders that are not listed are tests and tools, which no layer may use.
var layers = [][]string{
	{"internal/gen/dafny", "verified/lib"},
	{"verified/remote", "verified/advisory"},
	{"internal/lockorder", "internal/freelist", "internal/closing", "internal/nearest", "internal/process",
		"internal/signature", "internal/certificate"},
	{"disk"},
	{"verified/trusted", "internal/runtime"}, // but for dtxn, below
	{"verified/journal"},
	{"internal/journalcore"},
	{"journal"},
	{"verified/txn"},
	{"internal/runtime/dtxn", "internal/runtime/stamps"}, // the former runs what is above the others
	{"txn"},
	{"verified/fs/spec"},
	{"verified/fs/format"},
	{"verified/fs/blocks"},
	{"verified/fs/files"},
	{"verified/fs/directories"},
	{"verified/fs/tree"},
	{"verified/fs/refinement"},
	{"verified/fs/procedures"},
	{"verified/fs/mkfs", "verified/fs/exec", "verified/fs/replies"},
	{"internal/volumeend", "internal/layout"},
	{"offline/check"},
	{"fs/internal/background"},
	{"fs"},
	{"offline/repair", "offline/crash", "offline/backup", "mount"},
	{"nfs/fair"},
	{"nfs/oncrpc"},
	{"nfs/exports", "nfs/groups"},
	{"nfs/callout"},
	{"nfs/advisory", "nfs/reclaim"},
	{"nfs/nfs3", "nfs/mount3", "nfs/portmap"},
	{"nfs/nlm"},
	{"nfs/server"},
	{"ops/daemon", "ops/standby", "ops/credentials"},
	{"ops/status"},
	{"ops/control"},
	{"tools/starttls"},
	{"tools/conform", "tools/load"},
	{"cmd"},
}

// layer returns the layer of a folder, or -1: that of the longest of its ancestors that
// is listed, or itself.
func layer(folder string) int {
	for ; folder != "."; folder = filepath.Dir(folder) {
		for i, l := range layers {
			if slices.Contains(l, folder) {
				return i
			}
		}
	}
	return -1
}

// upward says what is wrong with a use of folder to in folder from, if anything is.
func upward(from, to string) string {
	f, t := layer(from), layer(to)
	switch {
	case f < 0 || f >= t && t >= 0:
		return ""
	case t < 0:
		return fmt.Sprintf("%s uses %s, which is no part of any layer", from, to)
	}
	return fmt.Sprintf("%s uses %s, which is above it", from, to)
}

var (
	module  = regexp.MustCompile(`(?m)^module (?:\{[^}]*\} )?(\w+)`)
	include = regexp.MustCompile(`(?m)^include "([^"]+)"`)
)

// texts returns the text of each file in folder whose name ends in ext, by its path in the
// repository, but for hidden folders.
func texts(t *testing.T, folder, ext string) map[string]string {
	const root = "../.."
	files := map[string]string{}
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && len(d.Name()) > 2 && d.Name()[0] == '.' {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ext {
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		files[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// above are contracts that say in what state their Go leaves what is proved higher up, and the folders of that.
var above = map[string]string{"verified/trusted/attempts.s.dfy": "verified/fs/exec"}

// home is the folder in whose layer a file of Dafny is.
func home(file string) string {
	if folder, ok := above[filepath.ToSlash(file)]; ok {
		return folder
	}
	return filepath.Dir(file)
}

func TestIncludes(t *testing.T) {
	n := 0
	for file, text := range texts(t, "verified", ".dfy") {
		for _, m := range include.FindAllStringSubmatch(text, -1) {
			n++
			if wrong := upward(home(file), home(filepath.Join(filepath.Dir(file), m[1]))); wrong != "" {
				t.Errorf("%s: %s", file, wrong)
			}
		}
	}
	if n == 0 {
		t.Error("no include found")
	}
}

func TestImports(t *testing.T) {
	source := map[string]string{} // of a generated package
	for folder, gen := range map[string]string{"verified": "internal/gen", "example": "example/internal/gen"} {
		for file, text := range texts(t, folder, ".dfy") {
			for _, m := range module.FindAllStringSubmatch(text, -1) {
				below := strings.TrimPrefix(filepath.Dir(file), folder)
				source[filepath.Join(gen, below, strings.ToLower(m[1]))] = filepath.Dir(file)
			}
		}
	}
	folder := func(pkg string) string {
		if s, ok := source[pkg]; ok {
			return s
		}
		return pkg
	}
	n := 0
	for file, text := range texts(t, ".", ".go") {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		from := folder(filepath.Dir(file))
		if strings.Contains(from, "internal/gen/") && layer(from) < 0 {
			t.Errorf("%s: no Dafny module of this name", file)
		}
		for _, i := range f.Imports {
			pkg, own := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), "tansy/")
			if !own {
				continue
			}
			n++
			if wrong := upward(from, folder(pkg)); wrong != "" {
				t.Errorf("%s imports %s: %s", file, pkg, wrong)
			}
		}
	}
	if n == 0 {
		t.Error("no import found")
	}
}

func TestUpward(t *testing.T) {
	for _, c := range []struct {
		from, to string
		wrong    bool
	}{
		{"disk", "journal", true},
		{"internal/runtime/seal", "journal", true},
		{"internal/runtime/seal", "internal/runtime/ddisk", false},
		{"verified/txn", "internal/runtime/dtxn", true},
		{"txn", "internal/runtime/dtxn", false},
		{"verified/fs/blocks", "verified/fs/files", true},
		{"verified/fs/files", "internal/runtime/dtxn", false},
		{"fs", "nfs/nfs3", true},
		{"fs", "test/kit/replay", true},
		{"test/linear", "fs", false},
		{"cmd/tansy", "disk", false},
	} {
		if got := upward(c.from, c.to); (got != "") != c.wrong {
			t.Errorf("%s uses %s: %q", c.from, c.to, got)
		}
	}
}
