// Prose tells how plain the pages of the documentation are: words a sentence, and lines of more than 120 columns.
//
//	go run ./test/docs/prose [FILE.md...]     # without files: all pages outside of docs/notes, the worst last
//
// Tables, headings, and blocks of code are no sentences. Their lines count all the same, but for rows of tables, which
// cannot be wrapped: of these the longest cell is told.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"tansy/test/kit/commandline"
)

const width = 120

// A page and its figures.
type page struct {
	file             string
	lines, long      int // of the text; wider than width
	sentences, words int
	longest          int // words of the longest sentence
	cell             int // characters of the longest cell of a table
}

var (
	span   = regexp.MustCompile("`[^`]*`")
	target = regexp.MustCompile(`\]\([^)]*\)`)
	// A sentence ends where the next one begins, or the paragraph ends.
	end  = regexp.MustCompile(`[.?!]["')*_]*\s+|[.?!]["')*_]*$`)
	item = regexp.MustCompile(`^\s*([-*]|\d+\.)\s`)
)

func main() {
	files := commandline.Parse("usage: go run ./test/docs/prose [FILE.md...]", 0, -1)
	if len(files) == 0 {
		out, err := exec.Command("git", "ls-files", "*.md", ":!docs/notes", ":!verified/tools").Output()
		if err != nil {
			fmt.Fprintln(os.Stderr, "prose: git ls-files:", err)
			os.Exit(1)
		}
		files = strings.Fields(string(out))
	}
	var pages []page
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			fmt.Fprintln(os.Stderr, "prose:", err)
			os.Exit(1)
		}
		pages = append(pages, measure(f, string(text)))
	}
	slices.SortStableFunc(pages, func(a, b page) int { return int(1000 * (a.rate() - b.rate())) })
	fmt.Println("| page | lines | wider than 120 | longest cell | sentences | words a sentence | longest |\n|---|---|---|---|---|---|---|")
	var all page
	for _, p := range pages {
		p.print()
		all.lines, all.long, all.sentences, all.words = all.lines+p.lines, all.long+p.long, all.sentences+p.sentences, all.words+p.words
		all.longest, all.cell = max(all.longest, p.longest), max(all.cell, p.cell)
	}
	all.file = "**all**"
	all.print()
}

func (p page) rate() float64 { return float64(p.words) / float64(max(p.sentences, 1)) }

func (p page) print() {
	fmt.Printf("| %s | %d | %d | %d | %d | %.1f | %d |\n", p.file, p.lines, p.long, p.cell, p.sentences, p.rate(), p.longest)
}

// measure looks at a page.
func measure(file, text string) page {
	p := page{file: file}
	paragraph, inCode := "", false
	flush := func() {
		p.add(paragraph)
		paragraph = ""
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		p.lines++
		row := strings.HasPrefix(strings.TrimSpace(line), "|")
		if utf8.RuneCountInString(line) > width && !row {
			p.long++
		}
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			inCode = !inCode
			flush()
		case inCode:
		case row:
			for cell := range strings.SplitSeq(line, "|") {
				p.cell = max(p.cell, utf8.RuneCountInString(strings.TrimSpace(cell)))
			}
			flush()
		case strings.TrimSpace(line) == "" || line[0] == '#' || line[0] == '<' || line[0] == '!':
			flush()
		default:
			if item.MatchString(line) {
				flush()
				line = item.ReplaceAllString(line, "")
			}
			paragraph += " " + line
		}
	}
	flush()
	return p
}

// add counts the sentences of a paragraph.
func (p *page) add(paragraph string) {
	text := target.ReplaceAllString(span.ReplaceAllString(paragraph, "code"), "]")
	for _, s := range end.Split(text, -1) {
		if n := len(strings.Fields(s)); n > 0 {
			p.sentences++
			p.words += n
			p.longest = max(p.longest, n)
		}
	}
}
