package ablation

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// An insertion is what a copy of a file of the product has in the place of some text of it.
type insertion struct{ file, old, new string }

var insertions = []insertion{
	{
		"journal/journal.go",
		"\tdd := ddisk.New(d)\n\tdd.Pace(p.Start",
		"\tif ablation.On(ablation.NoCodes) {\n\t\tp.Pages = 0\n\t}\n" +
			"\tdd := ddisk.New(ablation.Disk(d))\n\tdd.Pace(p.Start",
	}, {
		"journal/journal.go",
		"\tj.core.Notes.Wish(a)\n",
		"\tif !ablation.On(ablation.NoDirect) {\n\t\tj.core.Notes.Wish(a)\n\t}\n",
	}, {
		"internal/runtime/dtxn/dtxn.go",
		"\ts.enterOnly()\n\tt := s.begin(readOnly)\n",
		"\tdefer ablation.Transaction(s.Flush)()\n\ts.enterOnly()\n\tt := s.begin(readOnly)\n",
	},
}

// Overlay writes copies of files of the repository at root into folder, which ask what is to be taken out, and returns
// the path of what `go build -overlay` takes. A file whose text is not as it was is an error: the insertions have to
// follow it.
func Overlay(root, folder string) (string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	copies := map[string]string{} // by the file that each is in place of
	for _, in := range insertions {
		original := filepath.Join(root, in.file)
		from, first := copies[original], false
		if from == "" {
			from, first = original, true
		}
		b, err := os.ReadFile(from)
		if err != nil {
			return "", err
		}
		text := string(b)
		if first {
			text = strings.Replace(text, "import (\n", "import (\n\t\"tansy/bench/eval/ablation\"\n", 1)
		}
		if n := strings.Count(text, in.old); n != 1 {
			return "", fmt.Errorf("%s has %q %d times, want once: what is taken out there has to be said anew",
				in.file, in.old, n)
		}
		copies[original] = filepath.Join(folder, strings.ReplaceAll(in.file, "/", "-"))
		if err := os.WriteFile(copies[original], []byte(strings.Replace(text, in.old, in.new, 1)), 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": copies})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(folder, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}
