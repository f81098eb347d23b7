// Package wrappers looks for wrappers that hide what they wrap. Some interfaces are optional: who has a value asks
// whether it is one (a type assertion), and does without if it is not, more slowly, or not as well. A wrapper that
// embeds the interface it stands for, and nothing else, answers no, and nobody notices.
//
// So the source is asked: for every type that has a field of an interface which it is itself, and every optional
// interface that somebody asks such values for, the type has to be that, too. What need not be is in a list, with the
// reason.
package wrappers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// hides are the optional interfaces that wrappers do not have, and why none is needed.
var hides = map[string]string{
	"disk.Fault: disk.Holes":                                  "it is to harm what is read, and a hole is not",
	"disk.Pieced: interface{Unwrap() disk.Disk}":              "it has itself all that is asked for: addresses differ",
	"cmd/tansy.backupDevice: disk.Discarder":                  "a backup cannot be written",
	"cmd/tansy.backupDevice: interface{Unwrap() disk.Disk}":   "it has itself all that is asked for",
	"cmd/tansy.readUntil: disk.Discarder":                     "check writes nothing",
	"cmd/tansy.readUntil: interface{Unwrap() disk.Disk}":      "it has itself all that is asked for",
	"fs.atRest: disk.Discarder":                               "it cannot be written",
	"fs.atRest: interface{Unwrap() disk.Disk}":                "nothing below may be reached but to be read",
	"offline/backup.device: disk.Discarder":                   "it cannot be written",
	"offline/backup.device: interface{Unwrap() disk.Disk}":    "it has itself all that is asked for: addresses differ",
	"ops/control.held: disk.Discarder":                        "clients read and release it, and are not in this process",
	"ops/control.held: interface{Unwrap() disk.Disk}":         "likewise",
	"ops/control.held: disk.Holes":                            "the server asks what is below",
	"fs.beside: disk.Discarder":                               "what is new is written, and nothing of it is given back",
	"fs.meter: disk.Holes":                                    "mkfs writes, and reads nothing",
	"fs.meter: disk.Discarder":                                "likewise",
	"fs.overlay: disk.Discarder":                              "nothing that is done to it may reach the device",
	"fs.overlay: interface{Unwrap() disk.Disk}":               "likewise",
	"internal/volumeend.sized: disk.Holes":                    "only the headers of a journal are read through it",
	"internal/volumeend.sized: disk.Discarder":                "likewise",
	"internal/volumeend.sized: interface{Unwrap() disk.Disk}": "likewise",
	"journal.overlay: disk.Discarder":                         "nothing that is done to it may reach the device",
	"journal.overlay: interface{Unwrap() disk.Disk}":          "likewise",
	"journal.overlay: disk.Holes":                             "no more than the log is read through it",
	"offline/crash.holding: fs.OnceFileSystem":                "clients here have no calls that are sent again",
	"offline/crash.holding: fs.Viewer":                        "clients here read copies",
	"offline/crash.holding: fs.Lister":                        "no access lists are set here",
	"offline/crash.holding: mount.Served":                     "no mount is above it",
	"offline/repair.overlay: disk.Discarder":                  "nothing that is done to it may reach the device",
	"offline/repair.overlay: interface{Unwrap() disk.Disk}":   "likewise",
	"offline/crash.brake: disk.Discarder":                     "the simulator's device, below, gives no room back",
	"offline/crash.brake: disk.Holes":                         "likewise: it says of no block that it is a hole",
	"offline/crash.brake: interface{Unwrap() disk.Disk}":      "likewise: it is nothing else that is asked for",
	"offline/repair.undoer: disk.Discarder":                   "what is overwritten is saved first, and a repair gives no room back",
	"nfs/oncrpc.wire: interface{CloseWrite() error}":          "crypto/tls alone has it; who asks has what is below",
	"nfs/oncrpc.wire: syscall.Conn":                           "likewise",
	"ops/standby.Owner: disk.Holes":                           "it is of devices on Ceph alone, which know nothing of holes",
	"ops/standby.Owner: interface{Unwrap() disk.Disk}":        "likewise: nor are they anything else that is asked for through this",
	"ops/status.boundedConn: interface{CloseWrite() error}":   "only connections of ONC RPC are asked, and this is one of HTTP",
	"ops/status.boundedConn: syscall.Conn":                    "likewise",
	"tools/conform.peeked: interface{CloseWrite() error}":     "one NULL call is made on it, and it is asked for nothing",
	"tools/conform.peeked: syscall.Conn":                      "likewise",
}

func TestWrappersKeep(t *testing.T) {
	packages, err := load("tansy/cmd/tansy") // all that the program is made of
	if err != nil {
		t.Fatal(err)
	}
	var asked []question
	for _, p := range packages {
		asked = append(asked, p.questions()...)
	}
	used := map[string]bool{}
	for _, p := range packages {
		for _, w := range p.wrappers() {
			for _, q := range asked {
				if !types.Implements(w.of, q.of) || implements(w.typ, q.whether) {
					continue
				}
				key := short(w.name + ": " + q.whether.String())
				if used[key] = true; hides[key] == "" {
					t.Errorf("%q: what this wraps may be asked whether it is that, too, and the wrapper is not: %s", key, w.at)
				}
			}
		}
	}
	for key := range hides {
		if !used[key] {
			t.Errorf("%q: this hides nothing any more", key)
		}
	}
}

// short is a name without the path of this module.
func short(name string) string { return strings.ReplaceAll(name, "tansy/", "") }

// A question is asked of values of one interface: whether they are another, too.
type question struct {
	of      *types.Interface
	whether types.Type
}

// A wrapper has a field of an interface that it is itself.
type wrapper struct {
	name, at string
	typ      types.Type
	of       *types.Interface
}

func implements(t, i types.Type) bool {
	of, ok := i.Underlying().(*types.Interface)
	return ok && (types.Implements(t, of) || types.Implements(types.NewPointer(t), of))
}

// pack is a package, its tests left out.
type pack struct {
	fset  *token.FileSet
	files []*ast.File
	types *types.Package
	info  types.Info
}

// listed is a package as go list prints it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	Module                  *struct{ Main bool }
}

// list is the packages that a pattern needs, each behind those that it imports.
func list(pattern string) (all []listed, err error) {
	out, err := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,GoFiles,Export,Module",
		pattern).Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		err = fmt.Errorf("%w\n%s", err, exit.Stderr)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); err == nil; {
		var p listed
		if err = d.Decode(&p); err == nil {
			all = append(all, p)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return all, err
}

// sources are the packages of this module as their sources say, and others as the compiler has left them.
type sources struct {
	types.Importer
	checked map[string]*types.Package
}

// Import implements types.Importer.
func (s sources) Import(path string) (*types.Package, error) {
	if p := s.checked[path]; p != nil {
		return p, nil
	}
	return s.Importer.Import(path)
}

// load reads the packages of this module that a pattern needs, but for what is generated.
func load(pattern string) (packages []*pack, err error) {
	all, err := list(pattern)
	if err != nil {
		return nil, err
	}
	compiled := map[string]string{}
	for _, l := range all {
		compiled[l.ImportPath] = l.Export
	}
	fset := token.NewFileSet()
	known := sources{
		importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(compiled[path]) }),
		map[string]*types.Package{},
	}
	for _, l := range all {
		if l.Module == nil || !l.Module.Main {
			continue
		}
		generated := strings.Contains(l.ImportPath+"/", "/internal/gen/")
		p := &pack{fset: fset, info: types.Info{Types: map[ast.Expr]types.TypeAndValue{}}}
		for _, name := range l.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(l.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			p.files = append(p.files, f)
		}
		how := types.Config{Importer: known, IgnoreFuncBodies: generated}
		if p.types, err = how.Check(l.ImportPath, fset, p.files, &p.info); err != nil {
			return nil, err
		}
		if known.checked[l.ImportPath] = p.types; !generated {
			packages = append(packages, p)
		}
	}
	return packages, nil
}

// questions are the type assertions and switches of a package, of values that are known to have some method, to
// interfaces. Those of errors are left out, which have a way of their own.
func (p *pack) questions() (all []question) {
	ask := func(x, whether ast.Expr) {
		from, to := p.info.Types[x].Type, p.info.Types[whether].Type
		of, ok := from.Underlying().(*types.Interface)
		if !ok || of.NumMethods() == 0 || from == types.Universe.Lookup("error").Type() || !types.IsInterface(to) {
			return
		}
		if _, parameter := to.(*types.TypeParam); !parameter { // disk.within: what has Unwrap is asked no more
			all = append(all, question{of, to})
		}
	}
	for _, f := range p.files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeAssertExpr:
				if n.Type != nil {
					ask(n.X, n.Type)
				}
			case *ast.TypeSwitchStmt:
				var x ast.Expr
				ast.Inspect(n.Assign, func(n ast.Node) bool {
					if a, ok := n.(*ast.TypeAssertExpr); ok {
						x = a.X
					}
					return x == nil
				})
				for _, c := range n.Body.List {
					for _, whether := range c.(*ast.CaseClause).List {
						ask(x, whether)
					}
				}
			}
			return true
		})
	}
	return all
}

// wrappers are the types of a package that have a field of an interface which they are themselves.
func (p *pack) wrappers() (all []wrapper) {
	scope := p.types.Scope()
	for _, name := range scope.Names() {
		at, ok := scope.Lookup(name).(*types.TypeName)
		if !ok || at.IsAlias() {
			continue
		}
		s, ok := at.Type().Underlying().(*types.Struct)
		if !ok {
			continue
		}
		for f := range s.Fields() {
			of, ok := f.Type().Underlying().(*types.Interface)
			if ok && of.NumMethods() > 0 && implements(at.Type(), f.Type()) {
				all = append(all, wrapper{p.types.Path() + "." + name, p.fset.Position(at.Pos()).String(), at.Type(), of})
			}
		}
	}
	slices.SortFunc(all, func(a, b wrapper) int { return strings.Compare(a.name, b.name) })
	return all
}
