package layers

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// apart are the contracts whose Go has another name. Those of bytes, disk, and txn are taken by packages that the same
// files use, of Go or of Tansy.
var apart = map[string]string{"bytes": "dbytes", "disk": "ddisk", "txn": "dtxn"}

// TestContracts: the Go behind a contract in verified/trusted is the package of the same name, and its comment says so.
func TestContracts(t *testing.T) {
	files, err := filepath.Glob("../../verified/trusted/*.s.dfy")
	if err != nil || len(files) < 15 {
		t.Fatalf("only %d contracts: %v", len(files), err)
	}
	module := regexp.MustCompile(`(?m)^module \{:extern "(\w+)"\}`)
	packages := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".s.dfy")
		for _, m := range module.FindAllStringSubmatch(string(text), -1) {
			packages++
			want := name
			if other, ok := apart[name]; ok {
				want = other
			}
			if m[1] != want {
				t.Errorf("%s is the contract of internal/runtime/%s, and not of %s: give them one name", file, m[1], want)
			}
			source, err := os.ReadFile(filepath.Join("../../internal/runtime", m[1], m[1]+".go"))
			if err != nil {
				t.Error(err)
			} else if !strings.Contains(strings.Join(strings.Fields(string(source)), " "), "verified/trusted/"+name+".s.dfy") {
				t.Errorf("internal/runtime/%s does not say that its contract is %s", m[1], file)
			}
		}
	}
	if packages < 15 {
		t.Errorf("only %d contracts have a module of Go: they are not where this test looks", packages)
	}
}
