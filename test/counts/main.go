// Counts puts the numbers that a program can count into the documents that say them, so that none goes stale.
//
//	go run ./test/counts      # fails if a document says another number, and names it
//	go run ./test/counts -w   # writes the numbers into the documents
//
// It counts what stands in the sources; nothing is run but the lists of checks and of mutants. Run it in the root of
// the repository; python3 has to be there.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"tansy/test/kit/commandline"
	"tansy/tools/conform"
)

// none matches no line.
const none = `\z.`

// A phrase of a document, in which %d stands for a number.
type phrase struct{ file, text string }

// A number, how it is counted, and who says it.
type number struct {
	what    string
	count   func() (int, error)
	phrases []phrase
}

var numbers = []number{
	{"checks of any NFSv3 server", func() (int, error) { return len(conform.Checks()), nil }, []phrase{
		{"README.md", "NFSv3 server with %d checks"}, {"docs/design/promises.md", "`tansy conform`: %d checks"},
		{"docs/evidence/tests.md", "%d checks of the RFCs, and"}, {"docs/evidence/conformance.md", "\n%d checks."},
	}},
	{"faults that these must find", matches("test/conformance/*faults_test.go", `(?m)^\t\{(check: )?"`), []phrase{
		{"docs/evidence/tests.md", "%d planted faults"},
	}},
	{"faults that the checker of histories must find", matches("test/linear/faults_test.go", `(?m)^\t\{name: "`), []phrase{
		{"docs/evidence/tests.md", "with Porcupine; %d faults"},
	}},
	{"checks of POSIX", lines("go", "run", "./test/posix", "-list"), []phrase{
		{"docs/design/promises.md", "%d checks as six users"}, {"test/posix/README.md", "%d checks of what POSIX"},
		{"docs/guide/mount.md", "POSIX suite: %d checks"},
	}},
	{"mutants of the verified code", last("python3", "verified/tools/mutants.py", "-n"), []phrase{
		{"README.md", "%d mutants of proofs"}, {"docs/evidence/tests.md", "with one line changed, %d times"},
	}},
	{"mutants of Go", last("go", "run", "./test/mutants", "-n"), []phrase{
		{"README.md", "%d faults in the Go code"}, {"docs/evidence/tests.md", "%d faults in the Go code"},
		{"docs/evidence/oracle.md", "There are %d;"},
	}},
	{"mutants of the specification", last("python3", "verified/tools/mutants.py", "-n", "spec"), []phrase{
		{"verified/THEOREMS.md", "%d changes of single clauses"},
	}},
	{"lines of trusted contracts", source(none, "verified/trusted/*.s.dfy"), []phrase{
		{"README.md", "%d lines of contracts"},
	}},
	{"lines of Go that decide", row("verified/TRUST.md", `\| decides \| .* \| (\d+) \|`), []phrase{
		{"README.md", "%d lines of Go that decide"},
	}},
	{"lines of code of the example",
		source(`^\s*(//.*)?$`, "example/simplenfs/spec.s.dfy", "example/simplenfs/simplenfs.dfy",
			"example/simplenfs/new.dfy", "example/simplenfs/nfs.go", "example/simplenfs/volume.go"), []phrase{
			{"docs/guide/libraries.md", "in %d lines of Go and Dafny"}, {"docs/guide/tutorial.md", "behind NFS, %d lines in all"},
		}},
}

func main() {
	write := flag.Bool("w", false, "write the numbers into the documents")
	commandline.Parse("usage: go run ./test/counts [-w]", 0, 0)
	wrong := 0
	for _, n := range numbers {
		is, err := n.count()
		if err != nil {
			fmt.Fprintf(os.Stderr, "counts: %s: %v\n", n.what, err)
			os.Exit(1)
		}
		for _, p := range n.phrases {
			said, err := p.say(is, *write)
			if err == nil && said != is && !*write {
				err = fmt.Errorf("%s: it says %d, and there are %d: go run ./test/counts -w", p.file, said, is)
			}
			if err != nil {
				fmt.Fprintf(os.Stderr, "counts: %s: %v\n", n.what, err)
				wrong++
			}
		}
	}
	if wrong > 0 {
		os.Exit(1)
	}
}

// say returns the number that the document has in the phrase, and puts n there if it is to.
func (p phrase) say(n int, write bool) (int, error) {
	text, err := os.ReadFile(p.file)
	if err != nil {
		return 0, err
	}
	before, after, _ := strings.Cut(p.text, "%d")
	at := regexp.MustCompile(spaced(before) + `([0-9][0-9,]*)` + spaced(after)).FindSubmatchIndex(text)
	if at == nil {
		return 0, fmt.Errorf("%s does not say %q any more: bring test/counts in step", p.file, p.text)
	}
	from, to := at[2], at[3]
	said, err := strconv.Atoi(strings.ReplaceAll(string(text[from:to]), ",", ""))
	if err == nil && write && said != n {
		err = os.WriteFile(p.file, []byte(string(text[:from])+grouped(n)+string(text[to:])), 0o644)
	}
	return said, err
}

// spaced is a pattern of text, in which any white space matches any.
func spaced(text string) string {
	return regexp.MustCompile(`\s+`).ReplaceAllString(regexp.QuoteMeta(text), `\s+`)
}

// grouped is n with a comma before each three digits.
func grouped(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}

// matches counts the matches of a pattern in a file.
func matches(files, pattern string) func() (int, error) {
	return func() (n int, err error) {
		names, err := filepath.Glob(files)
		if err != nil {
			return 0, err
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				return 0, err
			}
			n += len(regexp.MustCompile(pattern).FindAll(text, -1))
		}
		return positive(n)
	}
}

// lines counts the lines that a command prints.
func lines(name string, args ...string) func() (int, error) {
	return func() (int, error) {
		out, err := output(name, args)
		if err != nil {
			return 0, err
		}
		return positive(strings.Count(out, "\n"))
	}
}

// last is the number that the last line of what a command prints begins with.
func last(name string, args ...string) func() (int, error) {
	return func() (int, error) {
		out, err := output(name, args)
		if err != nil {
			return 0, err
		}
		all := strings.Split(strings.TrimSpace(out), "\n")
		number, _, _ := strings.Cut(all[len(all)-1], " ")
		return strconv.Atoi(number)
	}
}

func output(name string, args []string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return string(out), nil
}

// source counts the lines of files, given by patterns, that do not match without.
func source(without string, patterns ...string) func() (int, error) {
	return func() (n int, err error) {
		skip := regexp.MustCompile(without)
		for _, pattern := range patterns {
			files, err := filepath.Glob(pattern)
			if err != nil || len(files) == 0 {
				return 0, fmt.Errorf("there is no %s: %w", pattern, err)
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					return 0, err
				}
				for line := range strings.Lines(string(text)) {
					if !skip.MatchString(strings.TrimSuffix(line, "\n")) {
						n++
					}
				}
			}
		}
		return n, nil
	}
}

// row is the number that a pattern finds in a file, which another program keeps true.
func row(file, pattern string) func() (int, error) {
	return func() (int, error) {
		text, err := os.ReadFile(file)
		if err != nil {
			return 0, err
		}
		found := regexp.MustCompile(pattern).FindSubmatch(text)
		if found == nil {
			return 0, fmt.Errorf("%s has no %s", file, pattern)
		}
		return strconv.Atoi(string(found[1]))
	}
}

// positive refuses 0, which says that a list is not where it was.
func positive(n int) (int, error) {
	if n == 0 {
		return 0, fmt.Errorf("there are none")
	}
	return n, nil
}
