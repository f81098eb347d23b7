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
)

// named are the pages that name files, folders, commands, and declarations in backquotes, and the folders that their
// paths begin at.
var named = map[string][]string{
	"../../ARCHITECTURE.md":    {"../.."},
	"../../CONTRIBUTING.md":    {"../.."},
	"../../verified/README.md": {"..", "../../verified", "../.."},
	"../../verified/TRUST.md":  {"../../verified", "../.."},
}

// elsewhere are words in backquotes that name nothing that is looked at: what is made, headings, folders with a dot, the
// standard library, and Yields of any kind.
var elsewhere = []string{
	"dist/", "Unreleased", "SHA256SUMS", ".ci/run", "sync.Mutex", "sync.Cond", "sync/atomic", "Yield",
}

var (
	pathWord   = regexp.MustCompile(`^[\w.*-]*(/[\w.*-]*)+$|^[\w-]+(\.s)?\.(dfy|go|md|py|txt)$`)
	identifier = regexp.MustCompile(`^(?:\w+\.)?([A-Z]\w*[a-z]\w*)(\(.*\))?;?$`)
	inFile     = regexp.MustCompile("`(?:old\\()?([A-Z]\\w+)(?:\\([^`]*\\))?\\)?` in `([^`]+\\.(?:dfy|go))`")
	ofFile     = regexp.MustCompile("`([^`]+\\.(?:dfy|go))`: ((?:`\\w+`(?:, )?)+)")
)

// TestNames: what a page has in backquotes is there: paths, targets of make, and declarations, those that are said to
// be in a file in that file.
func TestNames(t *testing.T) {
	all := theCode(t)
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for page, bases := range named {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, why := range unknown(string(text), bases, string(makefile), all) {
			t.Errorf("%s: %s", page, why)
		}
	}
}

// theFiles are the files that pages may name, and what those of code declare.
type theFiles struct {
	paths    []string
	declared map[string][]string // by the name: the paths
}

func theCode(t *testing.T) *theFiles {
	t.Helper()
	texts := map[string]string{}
	for _, ext := range []string{".go", ".dfy", ".md", ".py", ".txt", ".v"} {
		each(t, ext, func(path, text string) {
			if !strings.Contains(path, "internal/gen/") {
				texts[filepath.Clean(path)] = text
			}
		})
	}
	if len(texts) < 300 {
		t.Fatalf("only %d files were found: they are not where this test looks", len(texts))
	}
	return indexed(texts)
}

// indexed are the files with these texts.
func indexed(texts map[string]string) *theFiles {
	all := &theFiles{declared: map[string][]string{}}
	for path, text := range texts {
		all.paths = append(all.paths, path)
		if filepath.Ext(path) == ".md" {
			continue
		}
		for i := 0; i < len(text); i++ {
			from := i
			for i < len(text) && inWord(text[i]) {
				i++
			}
			if i == from || !declaring(text[:from]) {
				continue
			}
			name := text[from:i]
			if in := all.declared[name]; len(in) == 0 || in[len(in)-1] != path {
				all.declared[name] = append(in, path)
			}
		}
	}
	return all
}

// inWord says whether a byte may be part of a name.
func inWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// declarations are the words that a declared name follows.
var declarations = map[string]bool{
	"method": true, "function": true, "predicate": true, "lemma": true, "datatype": true, "newtype": true, "type": true,
	"class": true, "trait": true, "module": true, "const": true, "var": true, "Definition": true, "Record": true,
	"Inductive": true, "Variable": true, "func": true,
}

// declaring says whether the name that follows the text is declared by that: behind one of declarations, with
// attributes or a receiver between, as the first of a line, or as a case of a type.
func declaring(before string) bool {
	for {
		before = strings.TrimRight(before, " \t\r")
		if before == "" {
			return true
		}
		switch before[len(before)-1] {
		case '\n', '|', '=':
			return true
		case '}': // an attribute
			at := strings.LastIndexByte(before, '{')
			if at < 0 || !strings.HasPrefix(before[at:], "{:") {
				return false
			}
			before = before[:at]
		case ')': // a receiver
			at := strings.LastIndexByte(before, '(')
			return at >= 0 && strings.HasSuffix(before[:at], "func ")
		default:
			from := len(before)
			for from > 0 && inWord(before[from-1]) {
				from--
			}
			return declarations[before[from:]]
		}
	}
}

// called tells whether a path, or the end of one, names a file.
func (all *theFiles) called(end string) bool {
	return slices.ContainsFunc(all.paths, func(p string) bool { return strings.HasSuffix(p, "/"+end) })
}

// declares says whether a file of code that a path or its end names declares a name; "" is any file.
func (all *theFiles) declares(end, name string) bool {
	return slices.ContainsFunc(all.declared[name], func(p string) bool {
		return end == "" || strings.HasSuffix(p, "/"+end)
	})
}

// unknown are the complaints of a page whose paths begin at the folders bases.
func unknown(text string, bases []string, makefile string, all *theFiles) (whys []string) {
	complain := func(n int, format string, a ...any) {
		whys = append(whys, fmt.Sprintf("line %d: ", n)+fmt.Sprintf(format, a...))
	}
	eachLine(text, func(n int, line string) {
		for _, span := range code.FindAllString(line, -1) {
			span = strings.Trim(span, "`")
			if slices.Contains(elsewhere, span) {
				continue
			}
			words := strings.Fields(span)
			for i, word := range words {
				isPath := pathWord.MatchString(word) && (len(words) == 1 || strings.Contains(word, "/"))
				switch {
				case isPath && !exists(word, bases) && !all.called(word):
					complain(n, "there is no %s", word)
				case i == 1 && words[0] == "make" && !strings.Contains(makefile, "\n"+word+":"):
					complain(n, "the Makefile has no %s", word)
				}
			}
			if m := identifier.FindStringSubmatch(span); m != nil && !all.declares("", m[1]) {
				complain(n, "nothing is called %s", m[1])
			}
		}
		of := func(name, file string) {
			if !all.declares(strings.TrimPrefix(file, "../"), name) {
				complain(n, "%s has no %s", file, name)
			}
		}
		for _, m := range inFile.FindAllStringSubmatch(line, -1) {
			of(m[1], m[2])
		}
		for _, m := range ofFile.FindAllStringSubmatch(line, -1) {
			for _, name := range code.FindAllString(m[2], -1) {
				of(strings.Trim(name, "`"), m[1])
			}
		}
	})
	return whys
}

// exists says whether a path, which may be a pattern, is below one of the bases.
func exists(word string, bases []string) bool {
	return slices.ContainsFunc(bases, func(base string) bool {
		found, err := filepath.Glob(filepath.Join(base, strings.TrimSuffix(word, "/...")))
		return err == nil && len(found) > 0
	})
}

// TestUnknown: what is not there is noticed.
func TestUnknown(t *testing.T) {
	all := indexed(map[string]string{
		"../../x/a.dfy": "ghost method {:x} Is() { Gone(); }\ndatatype D = Some(x: int) | None\nfunc (r *Type) Received()",
		"../../b.md":    "method Gone()",
	})
	for text, bad := range map[string]bool{
		"`docs/README.md`": false, "`docs/`": false, "`go test ./docs/...`": false, "`a.dfy`": false, "`make it`": false,
		"`Is(x)`": false, "no/where, Gone": false, "`x/a.dfy`: `Is`": false, "`old(Is(x))` in `a.dfy`": false,
		"`Some`": false, "`None`": false, "`Received()`": false, "`D` in `a.dfy`": false, "`Type` in `a.dfy`": true,
		"`docs/none.md`": true, "`none/`": true, "`go test ./none/...`": true, "`b.dfy`": true, "`y/a.dfy`": true,
		"`make none`": true, "`Gone(x)`": true, "`fs.Gone`": true, "`Is` in `a/b.dfy`": true, "`a.dfy`: `Is`, `Gone`": true,
	} {
		if whys := unknown(text, []string{"../.."}, "\nit:\n", all); (len(whys) > 0) != bad {
			t.Errorf("%s: %q", text, whys)
		}
	}
}

// TestFolders: the tree of folders in ARCHITECTURE.md has all folders of the first rank and all packages, but those
// that it names by the folder they are in, and no others. CONTRIBUTING.md says of each of the first rank what to run.
func TestFolders(t *testing.T) {
	text, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tree, _ := strings.Cut(string(text), "\n## The folders\n")
	_, tree, _ = strings.Cut(tree, "```\n")
	tree, _, _ = strings.Cut(tree, "\n```")
	var names []string
	parent := ""
	for line := range strings.SplitSeq(tree, "\n") {
		column, _, _ := strings.Cut(strings.TrimLeft(line, " "), "  ")
		switch indent := len(line) - len(strings.TrimLeft(line, " ")); {
		case indent > 4: // a sentence goes on
			continue
		case indent == 0:
			parent, _, _ = strings.Cut(strings.TrimSuffix(column, "/"), ", ")
			names = append(names, strings.Split(strings.TrimSuffix(column, "/"), ", ")...)
		default:
			for name := range strings.SplitSeq(column, ", ") {
				names = append(names, filepath.Join(parent, name))
			}
		}
	}
	contributing, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(contributing), "\n## What to run after which change\n")
	table, _, _ = strings.Cut(table, "\n## ")
	if len(names) < 20 {
		t.Fatalf("the tree has only %d folders: %q", len(names), names)
	}
	for _, name := range names {
		if s, err := os.Stat(filepath.Join("../..", name)); err != nil || !s.IsDir() {
			t.Errorf("there is no folder %s", name)
		}
	}
	// of whose folders it need not tell
	whole := []string{"bench", "disk/rbd", "docs", "example", "internal/gen", "internal/runtime", "metatheory",
		"packaging", "test", "verified/fs", "verified/tools"}
	err = fs.WalkDir(os.DirFS("../.."), ".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || !e.IsDir() || path == ".":
			return err
		case strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata" || e.Name() == "dist" || e.Name() == "__pycache__":
			return fs.SkipDir
		}
		word := regexp.MustCompile(`(^|[\s/,;])` + regexp.QuoteMeta(e.Name()) + `($|[\s/,:;])`)
		if !word.MatchString(tree) {
			t.Errorf("the tree does not name %s", path)
		}
		of := regexp.MustCompile("(?m)^\\|[^|]*`" + path + "(/|`)")
		if !strings.Contains(path, "/") && path != "internal" && !of.MatchString(table) {
			t.Errorf("CONTRIBUTING.md does not say what to run after a change of %s", path)
		}
		if slices.Contains(whole, path) {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
