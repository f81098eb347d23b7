//go:build linux

package figures

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Page is a page of the documentation, NAME.md in a folder, with figures that are replaced; what is beside it lies in
// the folder NAME there.
type Page struct {
	Folder, Name string
	Command      string                          // that writes the figures
	Workloads    []string                        // in their order
	Contenders   []string                        // in that of their colors
	Summary      func(Samples) string            // stands before all figures; may be nil
	Plots        func(Samples) map[string]string // besides those by numbers of something; may be nil
}

func (p *Page) path() string           { return filepath.Join(p.Folder, p.Name+".md") }
func (p *Page) beside(f string) string { return filepath.Join(p.Folder, p.Name, f) }

// begin and end stand around what is written by a program; all else is by people.
func (p *Page) begin() string { return fmt.Sprintf("<!-- figures: written by %s -->\n", p.Command) }

const end = "<!-- end of figures -->\n"

// split is what stands before the figures, and after them.
func (p *Page) split() (before, after string, err error) {
	text, err := os.ReadFile(p.path())
	if err != nil {
		return "", "", err
	}
	before, rest, ok := strings.Cut(string(text), p.begin())
	_, after, too := strings.Cut(rest, end)
	if !ok || !too {
		return "", "", fmt.Errorf("%s has no place for figures", p.path())
	}
	return before, after, nil
}

// Check says what is wrong with the page, before anything is measured for it.
func (p *Page) Check() error {
	_, _, err := p.split()
	return err
}

// Write puts figures in the place of older ones of the same workloads, and of all that are there then makes tables and
// plots.
func (p *Page) Write(s Samples) error {
	before, after, err := p.split()
	if err != nil {
		return err
	}
	all, err := read(p.beside("samples.json"))
	if err != nil {
		return err
	}
	maps.Copy(all, s)
	if err := all.write(p.beside("samples.json")); err != nil {
		return err
	}
	for name, plot := range p.plots(all) {
		if err := os.WriteFile(p.beside(name), []byte(plot), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(p.path(), []byte(before+p.begin()+p.figures(all)+end+after), 0o644)
}

// plots are the pictures, by name of file.
func (p *Page) plots(s Samples) map[string]string {
	ps := map[string]string{}
	if p.Plots != nil {
		ps = p.Plots(s)
	}
	for name, m := range s {
		if m.scales() && slices.Contains(p.Workloads, name) { // not those of another command on the same page
			ps[name+".svg"] = m.scaling(name, p.Contenders)
		}
	}
	return ps
}

// figures are the tables and plots of all workloads.
func (p *Page) figures(s Samples) string {
	var b strings.Builder
	b.WriteString("\nMedians of the rounds, and the least and the most of them.\n")
	if p.Summary != nil {
		b.WriteString(p.Summary(s))
	}
	last := ""
	for _, w := range p.Workloads {
		m := s[w]
		if m == nil {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s.\n", w, strings.ToUpper(m.About[:1])+m.About[1:])
		if m.Conditions != last {
			last = m.Conditions
			fmt.Fprintf(&b, "Measured on %s.\n", last)
		}
		fmt.Fprintf(&b, "\n%s", m.markdown())
		if m.scales() {
			fmt.Fprintf(&b, "\n![%s, by %s](%s/%[1]s.svg)\n", w, m.Axis, p.Name)
		}
	}
	return b.String() + "\n"
}
