// Package tutorial does what docs/guide/tutorial.md says, in a copy of the repository.
package tutorial

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var runIt = flag.Bool("run-it", false, "do what the tutorial says: a minute or two, with Dafny")

const root = "../.."

// A block is one between fences: its kind, what stands behind that, and its text.
type block struct{ kind, arg, text string }

var fence = regexp.MustCompile("(?ms)^```(\\w*) ?(\\S*)\n(.*?)^```$")

func blocks(t *testing.T) (list []block) {
	doc, err := os.ReadFile(filepath.Join(root, "docs/guide/tutorial.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range fence.FindAllStringSubmatch(string(doc), -1) {
		list = append(list, block{m[1], m[2], m[3]})
	}
	if len(list) < 10 {
		t.Fatalf("%d blocks", len(list))
	}
	return list
}

var (
	seconds = regexp.MustCompile(`[\d.]+ ?s\b`)
	spaces  = regexp.MustCompile(`\s+`)
)

// plain is a line of output without what may differ: seconds, and how it is aligned.
func plain(line string) string {
	return strings.TrimSpace(spaces.ReplaceAllString(seconds.ReplaceAllString(line, "S"), " "))
}

// Every command does what the tutorial says, on a copy of what is committed or to be.
func TestTutorial(t *testing.T) {
	if !*runIt {
		t.Skip("without -run-it")
	}
	for _, tool := range []string{"dafny", "git", "make", "patch", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	dir := t.TempDir()
	if out, err := exec.Command("bash", "-c", `cd "$1" && git ls-files -z -co --exclude-standard | tar --null -T - -c | tar -x -C "$2"`, "-", root, dir).CombinedOutput(); err != nil {
		t.Skipf("this is no clone: %v: %s", err, out)
	}
	exports, output := "", map[string]bool{}
	for _, b := range blocks(t) {
		switch b.kind {
		case "dafny", "go":
			path := filepath.Join(dir, b.arg)
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(b.text), 0o666); err != nil {
				t.Fatal(err)
			}
		case "diff":
			cmd := exec.Command("patch", "-p1", "--fuzz=0", "--no-backup-if-mismatch")
			cmd.Dir, cmd.Stdin = dir, strings.NewReader(b.text)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s\n%s", err, out, b.text)
			}
		case "sh":
			b.text = strings.ReplaceAll(b.text, "~/.cache/tansy", "${TANSY_CACHE:-~/.cache/tansy}")
			cmd := exec.Command("bash", "-e", "-c", exports+b.text)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			t.Logf("%s%s", b.text, out)
			if (err != nil) != (b.arg == "fails") {
				t.Fatalf("%s: %v", b.text, err)
			}
			output = map[string]bool{}
			for line := range strings.Lines(string(out)) {
				output[plain(line)] = true
			}
			for line := range strings.Lines(b.text) {
				if strings.HasPrefix(line, "export ") {
					exports += line
				}
			}
		case "text":
			for line := range strings.Lines(b.text) {
				if !output[plain(line)] {
					t.Errorf("the last command does not say %q", line)
				}
			}
		}
	}
}
