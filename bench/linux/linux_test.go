//go:build linux

package linux

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tansy/bench/internal/figures"
)

// What the guest says becomes tables on a page, whose other sections stay as they are; a target is missed by the
// median.
func TestReport(t *testing.T) {
	docs := t.TempDir()
	page := filepath.Join(docs, "performance.md")
	p := report(docs)
	const end = "<!-- end of figures -->\n"
	others := "<!-- figures: written by somebody else -->\ntheirs\n" + end
	if err := os.WriteFile(page, []byte(others+"<!-- figures: written by "+p.Command+" -->\n"+end), 0o644); err != nil {
		t.Fatal(err)
	}
	o, err := parseFlags([]string{"-run", "large,names", "-write", docs}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	c := newCollection(o, "a machine", io.Discard)
	for _, name := range o.Workloads {
		for r := range 3 {
			for i, server := range o.Contenders {
				for _, p := range workloadNamed(name).phases {
					seconds := []float64{1.2 + float64(r), 1 + float64(r), 2 + float64(r)}[i]
					if err := c.take(line{Result: &result{name, p.name, server, seconds, counts{Calls: 7, Flushes: 1000, Idle: seconds}}}); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	if err := c.take(line{Done: true}); err != nil {
		t.Fatal(err)
	}
	missed := 0
	for _, v := range verdicts(c.samples) {
		if strings.Contains(v.String(), "missed") {
			missed++
		}
	}
	if missed != 0 { // the medians are 1.1 and 0.73 times as long
		t.Errorf("%d targets missed", missed)
	}
	c.samples[heading("large")].Rows[1].Figures[ours] = []float64{1.2, 2.4, 3.6}
	if v := verdicts(c.samples)[2]; v.phase != "read" || v.base != ordered || !strings.Contains(v.String(), "missed") {
		t.Errorf("verdict %+v: %v", v, v)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		others, "| large | written, fsync | 1.10 (1.07 to 1.20); at most 1.30: met |",
		"| names | rename storm | 7.00 / 1,000 / 0 / 0 / 0 / 50.0 |", "### Linux client: large",
		"| stat storm, s | 2.20 (1.20 to 3.20); 0.91 x | 2.00 (1.00 to 3.00) |",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page has no %q:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "what it took\n\nA file") {
		t.Error("counts have a table of their own")
	}
	if _, ok := c.samples[costs("names")]; !ok || len(figures.Samples(c.samples)) != 4 {
		t.Errorf("%d samples", len(c.samples))
	}
}

// The archive is what cpio reads.
func TestArchive(t *testing.T) {
	cpio, err := exec.LookPath("cpio")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	a, err := newArchive(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	a.add("folder", folder|0o755, nil)
	files := map[string][]byte{}
	for n := range 6 { // every length of padding, of names and of contents
		name := "folder/" + strings.Repeat("n", n+1)
		files[name] = bytes.Repeat([]byte{byte(n)}, n)
		a.add(name, regular|0o644, files[name])
	}
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	packed, err := os.Open(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	c := exec.Command(cpio, "-i", "--quiet")
	c.Dir, c.Stdin = dir, packed
	if said, err := c.CombinedOutput(); err != nil || len(said) > 0 {
		t.Fatalf("%v\n%s", err, said)
	}
	for name, contents := range files {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(got, contents) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// Wrong flags are told with what is wrong.
func TestFlags(t *testing.T) {
	for _, args := range [][]string{{"-run", "nothing"}, {"-servers", "nobody"}, {"-rounds", "0"}, {"-rounds", "100000"}, {"-silence", "0"},
		{"-silence", "-1s"}, {"more"}} {
		var said bytes.Buffer
		if _, err := parseFlags(args, &said); err == nil || !strings.Contains(said.String(), "linux: ") {
			t.Errorf("%q: %v, %s", args, err, &said)
		}
	}
}
