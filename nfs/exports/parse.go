package exports

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Limits of a file.
const (
	maxFile     = 1 << 20 // bytes
	maxPath     = 1024    // bytes of a path, as in MOUNT
	maxPart     = 255     // bytes of a name in it
	maxProblems = 20      // told of one file
)

// Problem is one mistake in a file. Line and Column count from 1, columns in bytes.
type Problem struct {
	Line, Column int
	What         string
}

func (p *Problem) Error() string { return fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.What) }

// Parse reads the text of a file of exports. The error joins a *Problem for each mistake, those found first. The
// warnings are of what is accepted but changes nothing, or is usually written in another way: the first of each kind.
func Parse(text []byte) (list []Export, warnings []*Problem, err error) {
	p := parser{text: text, line: 1, column: 1}
	if len(text) > maxFile {
		p.problem(p.here(), "the file is too long: %d bytes are the limit", maxFile)
		return nil, nil, errors.Join(p.problems...)
	}
	for p.peek() != eof {
		p.exportLine()
	}
	if len(p.problems) > 0 {
		return nil, nil, errors.Join(p.problems...)
	}
	return p.exports, p.warnings, nil
}

// parser walks over the text, byte by byte.
type parser struct {
	text         []byte
	at           int
	line, column int // of text[at]
	exports      []Export
	problems     []error
	warnings     []*Problem
}

type place struct{ line, column int }

// here is the place of what peek sees.
func (p *parser) here() place {
	p.peek()
	return place{p.line, p.column}
}

func (p *parser) problem(at place, format string, args ...any) {
	if len(p.problems) < maxProblems {
		p.problems = append(p.problems, &Problem{at.line, at.column, fmt.Sprintf(format, args...)})
	}
}

// warn notes a warning, unless there is the same one of another place already.
func (p *parser) warn(at place, what string) {
	same := func(w *Problem) bool { return w.What == what }
	if what != "" && len(p.warnings) < maxProblems && !slices.ContainsFunc(p.warnings, same) {
		p.warnings = append(p.warnings, &Problem{at.line, at.column, what})
	}
}

const eof = -1

// peek is the next byte, or eof. A continued line is one: the backslash and the end of the
// line are passed over.
func (p *parser) peek() int {
	for bytes.HasPrefix(p.text[p.at:], []byte("\\\n")) || bytes.HasPrefix(p.text[p.at:], []byte("\\\r\n")) {
		p.at += bytes.IndexByte(p.text[p.at:], '\n') + 1
		p.line, p.column = p.line+1, 1
	}
	if p.at == len(p.text) {
		return eof
	}
	return int(p.text[p.at])
}

// next takes the byte that peek sees.
func (p *parser) next() int {
	c := p.peek()
	if c == eof {
		return eof
	}
	p.at++
	p.column++
	if c == '\n' {
		p.line, p.column = p.line+1, 1
	}
	return c
}

func blank(c int) bool { return c == ' ' || c == '\t' || c == '\r' }

// lineEnds tells if nothing but a comment is left of the line, after blanks.
func (p *parser) lineEnds() bool {
	for blank(p.peek()) {
		p.next()
	}
	c := p.peek()
	return c == eof || c == '\n' || c == '#'
}

// endLine goes to the next line.
func (p *parser) endLine() {
	for c := p.next(); c != eof && c != '\n'; c = p.next() {
	}
}

// word takes bytes up to a blank, the end of the line, or one of stop.
func (p *parser) word(stop string) string {
	var b []byte
	for c := p.peek(); c != eof && c != '\n' && !blank(c) && !strings.ContainsRune(stop, rune(c)); c = p.peek() {
		b = append(b, byte(p.next()))
	}
	return string(b)
}

func (p *parser) exportLine() {
	defer p.endLine()
	if p.lineEnds() {
		return
	}
	start := p.here()
	dir, ok := p.path()
	if !ok {
		return
	}
	i := slices.IndexFunc(p.exports, func(e Export) bool { return e.Path == dir })
	if i < 0 {
		i = len(p.exports)
		p.exports = append(p.exports, Export{Path: dir, Line: start.line})
	}
	defaults, clients := strict, 0
	for !p.lineEnds() {
		at := p.here()
		switch p.peek() {
		case '-':
			p.next()
			p.options(&defaults, "")
			continue
		case '(':
			p.problem(at, "options without a client: write *(...) if everybody is meant, and no space before the bracket")
			return
		}
		name := p.word("(#")
		c, err := parseClient(name)
		if err != nil {
			p.problem(at, "%v", err)
		}
		if c.Name != name {
			p.warn(at, name+": taken for "+c.Name+", as addresses stand without brackets in exports(5)")
			name = c.Name
		}
		c.Rule = defaults
		if p.peek() == '(' {
			p.next()
			p.options(&c.Rule, ")")
			if p.peek() != ')' {
				p.problem(p.here(), "the options of %s have no closing bracket", name)
				return
			}
			p.next()
			if q := p.peek(); !blank(q) && q != '\n' && q != eof && q != '#' {
				p.problem(p.here(), "a space is missing behind the options of %s", name)
				return
			}
		}
		clients++
		if slices.ContainsFunc(p.exports[i].Clients, func(o Client) bool { return strings.EqualFold(o.Name, name) }) {
			p.problem(at, "%s has a rule for %s already", dir, name)
			continue
		}
		p.exports[i].Clients = append(p.exports[i].Clients, c)
	}
	if clients == 0 {
		p.problem(start, "%s has no clients: write *(ro), for instance", dir)
	}
}

// path takes the path that a line starts with.
func (p *parser) path() (string, bool) {
	at := p.here()
	var raw string
	if p.peek() == '"' {
		p.next()
		var b []byte
		for c := p.peek(); c != '"'; c = p.peek() {
			if c == eof || c == '\n' {
				p.problem(at, "the quotes are not closed")
				return "", false
			}
			b = append(b, byte(p.next()))
		}
		p.next()
		raw = string(b)
		if c := p.peek(); !blank(c) && c != '\n' && c != eof {
			p.problem(p.here(), "a space is missing behind the quotes")
			return "", false
		}
	} else {
		raw = p.word("")
	}
	dir, err := unescape(raw)
	if err == nil {
		err = checkPath(dir)
	}
	if err != nil {
		p.problem(at, "%v", err)
		return "", false
	}
	return path.Clean(dir), true
}

// unescape replaces a backslash and three octal digits by the byte of that number.
func unescape(s string) (string, error) {
	var b strings.Builder
	for len(s) > 0 {
		if s[0] != '\\' {
			b.WriteByte(s[0])
			s = s[1:]
			continue
		}
		if len(s) < 4 {
			return "", errors.New(`a backslash in a path needs three octal digits behind it (\134 is the backslash)`)
		}
		n, err := strconv.ParseUint(s[1:4], 8, 8)
		if err != nil {
			return "", fmt.Errorf(`%s in a path: a backslash needs three octal digits behind it (\134 is the backslash)`, s[:4])
		}
		b.WriteByte(byte(n))
		s = s[4:]
	}
	return b.String(), nil
}

// checkPath says what is wrong with a path of the volume.
func checkPath(dir string) error {
	switch {
	case strings.HasPrefix(dir, "@"), !strings.HasPrefix(dir, "/"):
		return fmt.Errorf("%q is no path: it has to start with /, the root of the volume", dir)
	case len(dir) > maxPath:
		return fmt.Errorf("a path of %d bytes is too long: %d is the limit", len(dir), maxPath)
	case strings.Contains(dir, "\x00"):
		return errors.New("a path with a zero byte")
	}
	for name := range strings.SplitSeq(dir, "/") {
		if name == ".." {
			return fmt.Errorf("%s: a path has no .. here", dir)
		}
		if len(name) > maxPart {
			return fmt.Errorf("a name of %d bytes is too long: %d is the limit", len(name), maxPart)
		}
	}
	return nil
}

// options takes a list of options, up to a byte of stop or the end of the word.
func (p *parser) options(r *Rule, stop string) {
	for {
		at := p.here()
		word := p.word(stop + ",")
		if err := r.option(word); err != nil {
			p.problem(at, "%v", err)
		}
		p.warn(at, idleOption(word))
		if p.peek() != ',' {
			return
		}
		p.next()
	}
}
