package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fromDafny are the fields of a verified Call that say what its work has come to: only verified code may set them
// (verified/fs/exec/call.dfy).
var fromDafny = []string{"Result", "Status", "Later"}

// TestResults: no line of Go in fs puts a status into a call.
func TestResults(t *testing.T) {
	files, err := filepath.Glob("../../fs/*.go")
	if err != nil || len(files) < 30 {
		t.Fatalf("only %d files: %v", len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			for _, field := range assigned(n) {
				if slices.Contains(fromDafny, field) {
					t.Errorf("%v sets %s: verified code puts into a call what it comes to", set.Position(n.Pos()), field)
				}
			}
			return true
		})
	}
}

// TestAssigned: TestResults would see it.
func TestAssigned(t *testing.T) {
	const code = "package p; func f() { c.Result, c.Later = g(); p := &c.Status }"
	f, err := parser.ParseFile(token.NewFileSet(), "", code, 0)
	if err != nil {
		t.Fatal(err)
	}
	var fields []string
	ast.Inspect(f, func(n ast.Node) bool {
		fields = append(fields, assigned(n)...)
		return true
	})
	if want := fromDafny; !slices.Equal(fields, []string{want[0], want[2], want[1]}) {
		t.Errorf("found %v, want all of %v", fields, want)
	}
}

// assigned are the fields that n assigns to, or takes the address of.
func assigned(n ast.Node) (fields []string) {
	field := func(x ast.Expr) {
		if s, ok := x.(*ast.SelectorExpr); ok {
			fields = append(fields, s.Sel.Name)
		}
	}
	switch n := n.(type) {
	case *ast.AssignStmt:
		for _, x := range n.Lhs {
			field(x)
		}
	case *ast.IncDecStmt:
		field(n.X)
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			field(n.X)
		}
	}
	return fields
}
