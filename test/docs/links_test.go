// Package docs holds the tests of the pages of the documentation: each link from one file to another names a file that
// is there, and each anchor a heading; what the pages for those who work on it name is there; no line of a text is wider
// than 120 columns, and no cell of a table is long. `go run ./test/docs/prose` tells how plain the pages are.
package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

var (
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`^#{1,6} +(.*)`)
	code    = regexp.MustCompile("`[^`]*`")
	scheme  = regexp.MustCompile(`^[a-z]+:`)
)

// TestLinks follows each link of each page. Links to other places than files are left alone.
func TestLinks(t *testing.T) {
	n := 0
	eachPage(t, func(path, text string) {
		for _, l := range links(text) {
			n++
			if why := broken(path, l.href); why != "" {
				t.Errorf("%s:%d: %s: %s", path, l.line, l.href, why)
			}
		}
	})
	if n < 200 {
		t.Errorf("%d links were found, which are too few: the pages are not where this test looks", n)
	}
}

// TestWidth: lines of text are wrapped. Rows of tables cannot be; code is not text; figures are written by programs.
func TestWidth(t *testing.T) {
	eachPage(t, func(path, text string) {
		figures := false
		eachLine(text, func(n int, line string) {
			figures = (figures || strings.HasPrefix(line, "<!-- figures:")) && !strings.HasPrefix(line, "<!-- end of figures")
			if w := utf8.RuneCountInString(line); w > 120 && !figures && !strings.HasPrefix(strings.TrimSpace(line), "|") {
				t.Errorf("%s:%d: %d columns are more than 120", path, n, w)
			}
		})
	})
}

// longestCell is how many characters a cell of a table may have. What does not fit is a note below the table.
const longestCell = 200

// TestCells: a table can be taken in at a glance. The pages of docs/notes are dated, and stay as they were.
func TestCells(t *testing.T) {
	eachPage(t, func(path, text string) {
		if strings.Contains(path, "docs/notes/") {
			return
		}
		eachLine(text, func(n int, line string) {
			if !strings.HasPrefix(strings.TrimSpace(line), "|") {
				return
			}
			for cell := range strings.SplitSeq(line, "|") {
				if w := utf8.RuneCountInString(strings.TrimSpace(cell)); w > longestCell {
					t.Errorf("%s:%d: a cell of %d characters, more than %d: %.60s...", path, n, w, longestCell, cell)
				}
			}
		})
	})
}

// mostLong is how many lines of tests have more than 120 columns. They are to become fewer.
const mostLong = 300

// No line of the product and of its proofs has more than 120 columns, and those of tests become no more. A tab counts
// as one.
func TestCodeWidth(t *testing.T) {
	inTests := 0
	for _, ext := range []string{".go", ".dfy"} {
		each(t, ext, func(path, text string) {
			path = strings.TrimPrefix(filepath.ToSlash(path), "../../")
			if strings.Contains(path, "internal/gen/") || path == "test/mutants/list.go" { // a table
				return
			}
			isTest := strings.HasPrefix(path, "test/") || strings.HasSuffix(path, "_test.go")
			n := 0
			for line := range strings.SplitSeq(text, "\n") {
				n++
				switch w := utf8.RuneCountInString(line); {
				case w <= 120:
				case isTest:
					inTests++
				default:
					t.Errorf("%s:%d: %d columns are more than 120", path, n, w)
				}
			}
		})
	}
	if inTests > mostLong {
		t.Errorf("%d lines of tests have more than 120 columns, %d before: wrap those that are new", inTests, mostLong)
	}
}

// unnamed is the beginning of an error's text that has no noun for what it is about.
var unnamed = regexp.MustCompile(`(errors\.New|Errorf)\(["\x60](it|its|they|this is|that is) `)

// An error's text names what it is about: it is read behind an operation and a path.
func TestErrorTexts(t *testing.T) {
	n := 0
	each(t, ".go", func(path, text string) {
		if strings.Contains(path, "internal/gen/") || strings.HasSuffix(path, "_test.go") {
			return
		}
		n += strings.Count(text, "errors.New(")
		for _, at := range unnamed.FindAllStringIndex(text, -1) {
			line := strings.Count(text[:at[0]], "\n") + 1
			t.Errorf("%s:%d: %s...: begin with a noun", path, line, text[at[0]:at[1]])
		}
	})
	if n < 100 {
		t.Errorf("%d errors were found, which are too few: the code is not where this test looks", n)
	}
}

// eachPage calls f with each page of the repository.
func eachPage(t *testing.T, f func(path, text string)) {
	t.Helper()
	each(t, ".md", f)
}

// each calls f with each file of the repository whose name ends in ext.
func each(t *testing.T, ext string, f func(path, text string)) {
	t.Helper()
	root := "../.."
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && strings.HasPrefix(e.Name(), ".") && path != root:
			return filepath.SkipDir
		case filepath.Ext(path) != ext:
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			f(path, string(text))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestBroken: what is no page, no heading, or both is noticed.
func TestBroken(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	if err := os.WriteFile(page, []byte("# One `two`, three\n\n```\n# no heading\n```\n\n## Twice\n\n## Twice\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for href, bad := range map[string]bool{
		"page.md": false, "#one-two-three": false, "page.md#twice": false, "page.md#twice-1": false, "https://example.org/x": false,
		".": false, "other.md": true, "#no-heading": true, "page.md#twice-2": true, "other.md#twice": true,
	} {
		if why := broken(page, href); (why != "") != bad {
			t.Errorf("%s: %q", href, why)
		}
	}
	want := []target{{1, "a"}, {5, "c"}}
	if got := links("[x](a) `[y](b)`\n```\n[z](d)\n```\n[w](c)\n"); !slices.Equal(got, want) {
		t.Errorf("links are %v, and not %v", got, want)
	}
}

type target struct {
	line int
	href string
}

// links are those of a page, without what is code.
func links(text string) (out []target) {
	eachLine(text, func(n int, line string) {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(line, ""), -1) {
			out = append(out, target{n, m[1]})
		}
	})
	return out
}

// broken says what is wrong with a link of the page at path, if anything is.
func broken(path, href string) string {
	if scheme.MatchString(href) {
		return ""
	}
	name, anchor, _ := strings.Cut(href, "#")
	to := path
	if name != "" {
		to = filepath.Join(filepath.Dir(path), name)
	}
	text, err := os.ReadFile(to)
	if _, gone := os.Stat(to); gone != nil {
		return "there is no such file"
	}
	if anchor == "" || filepath.Ext(to) != ".md" {
		return ""
	}
	if err != nil {
		return err.Error()
	}
	if !anchors(string(text))[anchor] {
		return "it has no such heading"
	}
	return ""
}

// anchors are those that GitHub gives to the headings of a page.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	eachLine(text, func(_ int, line string) {
		m := heading.FindStringSubmatch(line)
		if m == nil {
			return
		}
		slug := strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(m[1], "$1"))
		name := slug
		for i := 1; all[name]; i++ {
			name = fmt.Sprintf("%s-%d", slug, i)
		}
		all[name] = true
	})
	return all
}

// eachLine calls f with each line of a page that is not in a block of code, and its number from 1 on.
func eachLine(text string, f func(n int, line string)) {
	in := false
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			in = !in
		} else if !in {
			f(i+1, line)
		}
	}
}
