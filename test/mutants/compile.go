package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// A mutant that the compiler refuses shows nothing of the tests. To compile each takes an hour. So those of a package are
// put into it all at once, as far as their places differ, and its types are checked; only where that finds an error,
// they are checked one by one. Not seen are errors of packages that use this one.

// listed is what go list says of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// A program is the packages that have mutants, by folder, and those that they import.
type program struct {
	packages map[string]listed
	imports  types.Importer
	files    *token.FileSet
	parsed   map[string]*ast.File // of files without a fault
}

// load has the go command compile the packages in folders of a module and what they import.
func load(module string, folders []string) (*program, error) {
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"},
		folders...)...)
	list.Dir, list.Stderr = module, os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	p := &program{packages: map[string]listed{}, files: token.NewFileSet(), parsed: map[string]*ast.File{}}
	exports := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg listed
		if err := d.Decode(&pkg); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		exports[pkg.ImportPath] = pkg.Export
		p.packages[pkg.Dir] = pkg
	}
	p.imports = importer.ForCompiler(p.files, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	return p, nil
}

// check finds the first error of a package in which these files have other texts.
func (p *program) check(pkg listed, texts map[string][]byte) error {
	var files []*ast.File
	for _, name := range pkg.GoFiles {
		path := filepath.Join(pkg.Dir, name)
		file := p.parsed[path]
		text, changed := texts[path]
		if file == nil || changed {
			var source any // nil: what is in the file
			if changed {
				source = text
			}
			var err error
			if file, err = parser.ParseFile(p.files, path, source, parser.SkipObjectResolution); err != nil {
				return err
			}
			if !changed {
				p.parsed[path] = file
			}
		}
		files = append(files, file)
	}
	_, err := (&types.Config{Importer: p.imports}).Check(pkg.ImportPath, p.files, files, nil)
	return err
}

// A change is a mutant's place in its file: the bytes from begin up to end become others.
type change struct {
	mutant
	path       string
	begin, end int
}

// changed is the texts of files with these changes, none of which overlap.
func changed(originals map[string][]byte, changes []change) map[string][]byte {
	texts := map[string][]byte{}
	for _, c := range slices.SortedFunc(slices.Values(changes), func(a, b change) int { return cmp.Compare(b.begin, a.begin) }) {
		text, begun := texts[c.path]
		if !begun {
			text = originals[c.path]
		}
		texts[c.path] = slices.Concat(text[:c.begin], []byte(c.new), text[c.end:])
	}
	return texts
}

// apart picks changes that do not overlap; rest are the others.
func apart(changes []change) (picked, rest []change) {
	for _, c := range changes {
		overlaps := func(d change) bool { return c.path == d.path && c.begin < d.end && d.begin < c.end }
		if slices.ContainsFunc(picked, overlaps) {
			rest = append(rest, c)
		} else {
			picked = append(picked, c)
		}
	}
	return picked, rest
}

// places finds the mutants' places in Go files, by module and folder, and what is in these files.
func places(all []mutant) (byModule map[string]map[string][]change, originals map[string][]byte, err error) {
	originals, byModule = map[string][]byte{}, map[string]map[string][]change{}
	for _, m := range all {
		path, err := filepath.Abs(m.file)
		if err != nil {
			return nil, nil, err
		}
		if originals[path] == nil {
			if originals[path], err = os.ReadFile(path); err != nil {
				return nil, nil, err
			}
		}
		begin := bytes.Index(originals[path], []byte(m.old))
		if begin < 0 {
			return nil, nil, fmt.Errorf("%s: %s has no %q any more", m.what, m.file, m.old)
		}
		if filepath.Ext(path) != ".go" {
			continue
		}
		folder := filepath.Dir(path)
		module := moduleOf(folder)
		if byModule[module] == nil {
			byModule[module] = map[string][]change{}
		}
		byModule[module][folder] = append(byModule[module][folder], change{m, path, begin, begin + len(m.old)})
	}
	return byModule, originals, nil
}

// moduleOf is the folder of the go.mod that counts in a folder.
func moduleOf(folder string) string {
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil || folder == filepath.Dir(folder) {
			return folder
		}
		folder = filepath.Dir(folder)
	}
}

// compile says which of the mutants the compiler would refuse.
func compile(all []mutant) error {
	byModule, originals, err := places(all)
	if err != nil {
		return err
	}
	var refused []error
	for module, byFolder := range byModule {
		p, err := load(module, slices.Sorted(maps.Keys(byFolder)))
		if err != nil {
			return err
		}
		for folder, changes := range byFolder {
			refused = append(refused, p.refused(p.packages[folder], originals, changes)...)
		}
	}
	return errors.Join(refused...)
}

// refused is why the compiler would refuse some of these changes of a package.
func (p *program) refused(pkg listed, originals map[string][]byte, changes []change) (why []error) {
	for rest := changes; len(rest) > 0; {
		var together []change
		together, rest = apart(rest)
		if p.check(pkg, changed(originals, together)) == nil {
			continue
		}
		for _, c := range together {
			if err := p.check(pkg, changed(originals, []change{c})); err != nil {
				why = append(why, fmt.Errorf("%s: does not compile: %w", c.what, err))
			}
		}
	}
	return why
}
