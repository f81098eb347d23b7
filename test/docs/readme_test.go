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

// TestFrontDoor: README can be read in one go, has the life of a WRITE in eight lines, and six rows of speed, which
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
	if len(rows) != 6 {
		t.Errorf("%d rows of speed, and not 6", len(rows))
	}
	for _, row := range rows {
		if !strings.Contains(speed, "\n"+row+"\n") {
			t.Errorf("docs/evidence/speed.md has no row %s", row)
		}
	}
}

// snippet is a block of Go on a page.
var snippet = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// TestHeart: the Go of README.md stands in a program, which its own test runs.
func TestHeart(t *testing.T) {
	found := snippet.FindAllStringSubmatch(read(t, "../../README.md"), -1)
	if len(found) != 1 || strings.Count(found[0][1], "\n") > 12 {
		t.Fatalf("%d blocks of Go, and not one of at most 12 lines", len(found))
	}
	indented := regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(found[0][1], "\t$1")
	if !strings.Contains(read(t, "../../example/records/main.go"), indented) {
		t.Errorf("example/records/main.go does not have\n%s", indented)
	}
}

// TestSnippets builds what docs/guide/libraries.md has in Go, and runs it.
func TestSnippets(t *testing.T) {
	found := snippet.FindAllStringSubmatch(read(t, "../../docs/guide/libraries.md"), -1)
	if len(found) != 1 {
		t.Fatalf("%d blocks of Go, and not one", len(found))
	}
	if n := strings.Count(found[0][1], "\n"); n > 12 {
		t.Errorf("the block has %d lines, more than 12", n)
	}
	run := exec.CommandContext(t.Context(), build(t, `package main

import (
	"tansy/disk"
	"tansy/journal"
	"tansy/txn/volume"
)

func use(d disk.Disk) error {
	`+found[0][1]+`
	return err
}

func main() { use(disk.NewMem(1 << 26)) }
`))
	run.Dir = t.TempDir()
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
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
