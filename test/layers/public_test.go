package layers

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// public are the packages that programs outside of this module are to use.
var public = []string{"disk", "disk/disktest", "disk/nbd", "disk/rbd", "journal", "txn", "txn/volume", "fs", "fs/model"}

// TestPublic sees to it that no signature, field, embedded type, constant, or variable which a public package exports
// is of a type that programs outside of this module cannot name.
func TestPublic(t *testing.T) {
	compiled := compiledPackages(t)
	for _, name := range public {
		p, err := compiled.Import("tansy/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range leaks(p) {
			t.Error(l)
		}
	}
}

// compiledPackages reads the public packages, and what they import, as the compiler has left them.
func compiledPackages(t *testing.T) types.Importer {
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}")
	for _, name := range public {
		list.Args = append(list.Args, "tansy/"+name)
	}
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		path, file, _ := strings.Cut(s.Text(), " ")
		files[path] = file
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(files[path])
	})
}

// leaks says where package p exports types of internal packages.
func leaks(p *types.Package) []string {
	s := search{p: p, seen: map[types.Type]bool{}}
	for _, name := range p.Scope().Names() {
		switch o := p.Scope().Lookup(name); o.(type) {
		case *types.TypeName:
			if o.Exported() {
				s.declared(name, o.Type())
			}
		default:
			if o.Exported() {
				s.mentioned(name, o.Type())
			}
		}
	}
	return s.found
}

// A search is for types of internal packages in what package p exports.
type search struct {
	p     *types.Package
	seen  map[types.Type]bool // types of p that were looked into
	found []string
}

// declared looks into type t of p: what it is made of, and its methods, also those of what it embeds.
func (s *search) declared(at string, t types.Type) {
	if s.seen[t] {
		return
	}
	s.seen[t] = true
	if a, ok := t.(*types.Alias); ok {
		s.mentioned(at, a.Rhs())
		return
	}
	s.mentioned(at, t.Underlying())
	for m := range types.NewMethodSet(types.NewPointer(t)).Methods() {
		if m.Obj().Exported() {
			s.mentioned(at+"."+m.Obj().Name(), m.Obj().Type())
		}
	}
}

// mentioned looks at a type that is mentioned in what is called at.
func (s *search) mentioned(at string, t types.Type) {
	switch t := t.(type) {
	case *types.Alias:
		s.named(at, t.Obj(), t, t.TypeArgs())
	case *types.Named:
		s.named(at, t.Obj(), t, t.TypeArgs())
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() || f.Embedded() {
				s.mentioned(at+"."+f.Name(), f.Type())
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			s.mentioned(at+"."+m.Name(), m.Type())
		}
	case *types.Signature:
		s.mentioned(at, t.Params())
		s.mentioned(at, t.Results())
	case *types.Tuple:
		for v := range t.Variables() {
			s.mentioned(at, v.Type())
		}
	case *types.Map:
		s.mentioned(at, t.Key())
		s.mentioned(at, t.Elem())
	case interface{ Elem() types.Type }: // a pointer, slice, array, or channel
		s.mentioned(at, t.Elem())
	}
}

func (s *search) named(at string, o *types.TypeName, t types.Type, args *types.TypeList) {
	switch {
	case o.Pkg() == nil: // error, or any
	case slices.Contains(strings.Split(o.Pkg().Path(), "/"), "internal"):
		s.found = append(s.found, fmt.Sprintf("%s.%s exports %s.%s", s.p.Path(), at, o.Pkg().Path(), o.Name()))
	case o.Pkg() == s.p && !o.Exported(): // what it has can be used, without its name
		s.declared(at, t)
	}
	for a := range args.Types() {
		s.mentioned(at, a)
	}
}

func TestLeaks(t *testing.T) {
	sources := map[string]string{
		"m/internal/x": "type T struct{ F int }; func (T) M() {}; type G[A any] struct{}",
		"m/other":      "type G[A any] struct{}",
	}
	checked := map[string]*types.Package{}
	check := func(path, text string) *types.Package {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		c := types.Config{Importer: packages(checked), Error: func(error) {}}
		p, _ := c.Check(path, fset, []*ast.File{f}, nil) // not all imports are used
		return p
	}
	for path, text := range sources {
		checked[path] = check(path, "package "+path[strings.LastIndex(path, "/")+1:]+"; "+text)
	}
	for _, c := range []struct {
		text, leaks string
	}{
		{"func F(x.T)", "F"},
		{"func F() (int, *x.T)", "F"},
		{"func F(...[]map[x.T]int)", "F"},
		{"func F(func(chan x.T))", "F"},
		{"var V = x.T{}", "V"},
		{"type S struct{ F [2]x.T }", "S.F"},
		{"type S struct{ x.T }", "S.T"},
		{"type S struct{ e }; type e struct{ F x.T }", "S.e.F"},
		{"type S struct{ *e }; type e struct{}; func (*e) M() x.T", "S.e.M S.M"},
		{"type S int; func (*S) M(x.T)", "S.M"},
		{"type I interface{ M() x.T }", "I.M"},
		{"type I interface{ e }; type e interface{ M() x.T }", "I.M"},
		{"type A = x.T", "A"},
		{"type a = x.T; func F(a)", "F"},
		{"func F(other.G[x.T])", "F"},
		{"func F(x.G[int])", "F"},
		{"func F() e; type e struct{}; func (e) M(x.T)", "F.M"},
		{"type S struct{ f x.T; g e }; type e struct{ F x.T }", ""},
		{"type S struct{}; func (S) m(x.T)", ""},
		{"func f(x.T); var v x.T; type t x.T", ""},
		{"type S struct{ Next *S }; func F(other.G[S]) error", ""},
		{"type T x.T", ""}, // its name is public, and so are its fields
	} {
		var found []string
		for _, l := range leaks(check("m/p", `package p; import ("m/internal/x"; "m/other"); `+c.text)) {
			found = append(found, strings.TrimPrefix(strings.Fields(l)[0], "m/p."))
		}
		if got := strings.Join(found, " "); got != c.leaks {
			t.Errorf("%s: %q, want %q", c.text, got, c.leaks)
		}
	}
}

// packages are those that can be imported.
type packages map[string]*types.Package

func (p packages) Import(path string) (*types.Package, error) { return p[path], nil }
