//go:build linux

package main

import (
	"embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// The language of the checks. A check is a name and lines
//
//	[TAG] USER: soon OPERATION ARGUMENT... => ERRNO|ERRNO
//
// of which only the operation is obligatory: a line without a user is root's,
// one without an errno must succeed, one with a tag is for that kind of file
// system only, and one with soon may take a moment to come out so on those
// that are late.

//go:embed checks/*.txt checks/local/*.txt checks/locks/*.txt
var scripts embed.FS

// check is one named scenario.
type check struct {
	group, name string
	why         string // why something else is expected over NFS
	source      string // the script's file
	only        string // "", or the tag of those file systems that have what it is about
	lines       []line
}

// line is one operation and what must become of it.
type line struct {
	number int
	text   string
	tag    string   // "" or the kind of file system the line is for
	user   string   // name of a user
	named  bool     // the script names that user
	soon   bool     // on a file system that is late, the outcome may be another one for a moment
	op     string   // key of operations
	args   []string // expanded
	want   []string // names of errnos, one of which must be got; "ok"
}

func (c *check) String() string { return c.group + "/" + c.name }

// needsRoot tells that an ordinary user cannot run a check: another one, or root by name, does something in it, or
// something is done that takes privileges.
func (c *check) needsRoot() bool {
	return slices.ContainsFunc(c.lines, func(l line) bool {
		switch l.op {
		case "chown", "lchown", "mknod", "drop":
			return true
		}
		return l.named && l.user != "second" && l.user != "third" && l.user != "far"
	})
}

func (c *check) where() string {
	if len(c.lines) == 0 {
		return c.source
	}
	return fmt.Sprintf("%s:%d", c.source, c.lines[0].number)
}

// folders have the scripts, by what a file system must have for them: "local" is what NFS has not, or its client does
// by itself, and "locks" are locks that exclude other hosts.
var folders = map[string]string{"checks": "", "checks/local": "local", "checks/locks": "locks"}

// allChecks parses the scripts in checks/ and writes and parses the generated ones.
func allChecks() ([]*check, error) {
	var all []*check
	add := func(group, source, text, only string) error {
		cs, err := parse(group, source, text)
		for _, c := range cs {
			c.only = only
		}
		all = append(all, cs...)
		return err
	}
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		files, err := scripts.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if f.IsDir() {
				continue
			}
			b, err := scripts.ReadFile(path.Join(dir, f.Name()))
			if err != nil {
				return nil, err
			}
			if err := add(strings.TrimSuffix(f.Name(), ".txt"), f.Name(), string(b), folders[dir]); err != nil {
				return nil, err
			}
		}
	}
	for _, of := range []struct {
		only string
		all  []generator
	}{{"", generators}, {"local", localGenerators}, {"locks", lockGenerators}} {
		for _, g := range of.all {
			if err := add(g.group, "matrix", g.script(), of.only); err != nil {
				return nil, err
			}
		}
	}
	seen := map[string]bool{}
	for _, c := range all {
		if seen[c.String()] {
			return nil, fmt.Errorf("%s: two checks are called %s", c.where(), c)
		}
		seen[c.String()] = true
	}
	return all, nil
}

// parse reads a script.
func parse(group, source, text string) ([]*check, error) {
	var checks []*check
	var c *check
	for i, s := range strings.Split(text, "\n") {
		s = strings.TrimSpace(s)
		word, rest, _ := strings.Cut(s, " ")
		switch {
		case s == "" || word[0] == '#':
		case word == "check":
			c = &check{group: group, name: strings.TrimSpace(rest), source: source}
			checks = append(checks, c)
		case c == nil:
			return nil, fmt.Errorf("%s:%d: a line before the first check", source, i+1)
		case word == "why":
			c.why = rest
		default:
			l, err := parseLine(s)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", source, i+1, err)
			}
			l.number = i + 1
			if l.tag != "" && c.why == "" {
				return nil, fmt.Errorf("%s:%d: a line for %s only needs a reason (why ...) before it", source, i+1, l.tag)
			}
			c.lines = append(c.lines, l)
		}
	}
	return checks, nil
}

func parseLine(s string) (line, error) {
	l := line{text: s, user: "root", want: []string{"ok"}}
	if s[0] == '[' {
		tag, rest, ok := strings.Cut(s[1:], "] ")
		if !ok {
			return l, fmt.Errorf("a tag without an end")
		}
		l.tag, s = tag, strings.TrimSpace(rest)
		if !knownTag(tag) {
			return l, fmt.Errorf("unknown tag %s", tag)
		}
	}
	if before, after, ok := strings.Cut(s, " => "); ok {
		s, l.want = before, strings.Split(strings.TrimSpace(after), "|")
		for _, w := range l.want {
			if _, ok := errnos[w]; !ok && w != "ok" && w != bus {
				return l, fmt.Errorf("unknown errno %s", w)
			}
		}
	}
	words, err := split(s)
	if err != nil {
		return l, err
	}
	if who, ok := strings.CutSuffix(words[0], ":"); ok {
		if !isUser(who) {
			return l, fmt.Errorf("unknown user %s", who)
		}
		l.user, l.named, words = who, true, words[1:]
	}
	if len(words) > 0 && words[0] == "soon" {
		l.soon, words = true, words[1:]
	}
	if len(words) == 0 {
		return l, fmt.Errorf("no operation")
	}
	l.op, l.args = words[0], words[1:]
	o, ok := operations[l.op]
	if !ok {
		return l, fmt.Errorf("unknown operation %s", l.op)
	}
	if len(l.args) < o.least || o.most >= 0 && len(l.args) > o.most {
		return l, fmt.Errorf("%s has %d arguments", l.op, len(l.args))
	}
	return l, nil
}

func knownTag(tag string) bool {
	for _, tags := range flavours {
		if tags[tag] {
			return true
		}
	}
	return false
}

// split cuts a line into words, some of which may be quoted as in Go, and
// expands {TEXT*N} to N times TEXT in each.
func split(s string) ([]string, error) {
	var words []string
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		var w string
		if s[0] == '"' {
			q, err := strconv.QuotedPrefix(s)
			if err != nil {
				return nil, fmt.Errorf("bad quotes: %s", s)
			}
			w, err = strconv.Unquote(q)
			if err != nil {
				return nil, fmt.Errorf("bad quotes: %s", s)
			}
			s = s[len(q):]
		} else {
			w, s, _ = strings.Cut(s, " ")
		}
		w, err := expand(w)
		if err != nil {
			return nil, err
		}
		words = append(words, w)
	}
	return words, nil
}

// expand replaces every {TEXT*N}.
func expand(w string) (string, error) {
	var out strings.Builder
	for {
		before, rest, ok := strings.Cut(w, "{")
		out.WriteString(before)
		if !ok {
			return out.String(), nil
		}
		inside, after, ok := strings.Cut(rest, "}")
		text, count, ok2 := strings.Cut(inside, "*")
		n, err := strconv.Atoi(count)
		if !ok || !ok2 || err != nil {
			return "", fmt.Errorf("bad repetition in %s", w)
		}
		out.WriteString(strings.Repeat(text, n))
		w = after
	}
}
