package docs

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFrontDoor: README can be read in one go, has the life of a WRITE in eight lines, and five rows of speed, which
// are those of docs/evidence/speed.md.
func TestFrontDoor(t *testing.T) {
	readme := read(t, "../../README.md")
	if n := strings.Count(readme, "\n"); n > 150 {
		t.Errorf("README.md has %d lines, more than 150: what is new belongs on a page", n)
	}
	_, write, _ := strings.Cut(readme, "A WRITE with FILE_SYNC reaches the disk so")
	_, write, _ = strings.Cut(write, "\n\n1. ")
	write, _, _ = strings.Cut(write, "\n\n")
	if n := strings.Count(write, "\n") + 1; write == "" || n > 8 {
		t.Errorf("the life of a WRITE has %d lines, and is to have from 1 to 8", n)
	}
	speed := read(t, "../../docs/evidence/speed.md")
	_, table, _ := strings.Cut(readme, "\n| workload | Tansy | floor | ratio |\n|---|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")
	if len(rows) != 5 {
		t.Errorf("%d rows of speed, and not 5", len(rows))
	}
	for _, row := range rows {
		if !strings.Contains(speed, "\n"+row+"\n") {
			t.Errorf("docs/evidence/speed.md has no row %s", row)
		}
	}
}

// snippet is a block of Go on a page.
var snippet = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// TestSnippets builds what README.md and docs/guide/libraries.md have in Go, and runs that of README.md.
func TestSnippets(t *testing.T) {
	for page, around := range map[string]string{
		"../../README.md": `package main

import (
	"tansy/disk"
	"tansy/journal"
	"tansy/txn"
	"tansy/txn/volume"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	SNIPPET
	check(v.Close())
	check(d.Close())
}
`,
		"../../docs/guide/libraries.md": `package main

import (
	"tansy/disk"
	"tansy/journal"
	"tansy/txn/volume"
)

func use(d disk.Disk) error {
	SNIPPET
	return err
}

func main() { use(disk.NewMem(1 << 26)) }
`,
	} {
		t.Run(filepath.Base(page), func(t *testing.T) {
			found := snippet.FindAllStringSubmatch(read(t, page), -1)
			if len(found) != 1 {
				t.Fatalf("%d blocks of Go, and not one", len(found))
			}
			if n := strings.Count(found[0][1], "\n"); n > 12 {
				t.Errorf("the block has %d lines, more than 12", n)
			}
			program := build(t, strings.Replace(around, "SNIPPET", found[0][1], 1))
			run := exec.CommandContext(t.Context(), program)
			run.Dir = t.TempDir()
			if out, err := run.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// build builds a program of this module that is nowhere in it, and returns its path.
func build(t *testing.T, source string) (program string) {
	t.Helper()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	file, overlay, program := in("main.go"), in("overlay.json"), in("program")
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	replaced, err := json.Marshal(map[string]any{
		"Replace": map[string]string{filepath.Join(root, "test/docs/snippet/main.go"): file},
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{file: source, overlay: string(replaced)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command("go", "build", "-overlay", overlay, "-o", program, "tansy/test/docs/snippet")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
