// Command table prints, as the rows of a Markdown table, where servers do not
// pass the checks of `tansy conform`, from one JSON report for each:
//
//	table tansy.json kernel.json ganesha.json
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"tansy/test/kit/commandline"
	"tansy/tools/conform"
)

// row is a check, or several with one name whose outcomes are the same.
type row struct {
	groups              []string
	name, section, rule string
	cells               []string
}

func main() {
	var rows []*row
	reports := commandline.Parse("usage: table REPORT.json...", 1, -1)
	for i, path := range reports {
		b, err := os.ReadFile(path)
		if err != nil {
			exit(err)
		}
		var rep conform.Report
		if err := json.Unmarshal(b, &rep); err != nil {
			exit(fmt.Errorf("%s: %w", path, err))
		}
		fmt.Fprintf(os.Stderr, "%s: %d checks, %d pass, %d fail, %d differ, %d skipped\n", path, len(rep.Results),
			rep.Count(conform.Pass), rep.Count(conform.Fail), rep.Count(conform.Differ), rep.Count(conform.Skip))
		if i == 0 {
			for _, r := range rep.Results {
				rows = append(rows, &row{groups: []string{r.Group}, name: r.Name, section: r.Section, rule: r.Expect})
			}
		}
		if len(rep.Results) != len(rows) {
			exit(fmt.Errorf("%s has other checks than %s", path, reports[0]))
		}
		for j := range rep.Results {
			rows[j].cells = append(rows[j].cells, cell(&rep.Results[j]))
		}
	}
	for _, r := range merge(rows) {
		group := r.groups[0]
		if len(r.groups) > 1 {
			group = "{" + strings.Join(r.groups, ",") + "}"
		}
		fmt.Printf("| %s/%s: %s | %s | %s |\n",
			group, r.name, r.rule, strings.TrimPrefix(r.section, "RFC "), strings.Join(r.cells, " | "))
	}
}

// merge drops the checks that all pass or skip, and joins those that come out alike.
func merge(rows []*row) (kept []*row) {
next:
	for _, r := range rows {
		if !slices.ContainsFunc(r.cells, func(c string) bool { return c != "" && !strings.HasPrefix(c, "skipped") }) {
			continue
		}
		for _, k := range kept {
			if k.name == r.name && k.section == r.section && slices.Equal(k.cells, r.cells) {
				k.groups = append(k.groups, r.groups[0])
				continue next
			}
		}
		kept = append(kept, r)
	}
	return kept
}

// cell tells what came instead; nothing for a check that passed.
func cell(r *conform.Result) string {
	text := strings.ReplaceAll(r.Got, "|", "\\|")
	switch r.Outcome {
	case conform.Pass:
		return ""
	case conform.Fail:
		return "**" + text + "**"
	case conform.Skip:
		return "skipped: " + r.Reason
	}
	return text
}

func exit(err error) {
	fmt.Fprintln(os.Stderr, "table:", err)
	os.Exit(1)
}
