//go:build linux

package peers

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tansy/test/kit/mounttest"
)

// As root, Tansy is measured beside the floor, and beside NFS-Ganesha if that is installed; nothing is left but the
// report.
func TestRun(t *testing.T) {
	bin := mounttest.Build(t) // skips where nothing can be mounted
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		t.Skip(err)
	}
	program := filepath.Join(t.TempDir(), "peers")
	if said, err := exec.Command("go", "build", "-o", program, "tansy/bench").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	docs, scratch := t.TempDir(), t.TempDir()
	page := filepath.Join(docs, "performance.md")
	begin := "<!-- figures: written by go run ./bench peers -write docs/evidence -->\n"
	if err := os.WriteFile(page, []byte("before\n"+begin+"<!-- end of figures -->\nafter\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	peers := []string{ours, floor}
	if ganeshaMissing() == nil {
		peers = append(peers, ganesha)
	}
	c := exec.Command(program, "peers", "-quick", "-size", "536870912", "-run",
		"null,smallfile,write,filewrite,directories,tail", "-peers", strings.Join(peers, ","),
		"-tansy", bin, "-dir", scratch, "-write", docs)
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"before\n", "### null", "### smallfile", "| clients: 4, /s |", "### directories", "### tail",
		"performance/filewrite.svg", "after\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the report has no %q:\n%s", want, text)
		}
	}
	if left, _ := os.ReadDir(scratch); len(left) > 0 {
		t.Errorf("the run has left %v", left)
	}
}

func TestFlags(t *testing.T) {
	for _, args := range []string{
		"-rounds 0", "-rounds 100000", "-run nothing", "-peers nobody", "-size 1000", "-largest 8589934592", "-time 0",
		"-time -1s", "-time 90h", "-entries -1", "more", "-device file", "-device 0s",
	} {
		if _, err := parseFlags(strings.Fields(args), io.Discard); err == nil {
			t.Errorf("%s is taken", args)
		}
	}
}
