package docs

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestStepsOfWrite: the picture of a WRITE has the numbers of the steps in ARCHITECTURE.md, all of them, and what both
// say of a crash is of the barrier's.
func TestStepsOfWrite(t *testing.T) {
	page, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	picture, err := os.ReadFile("../../docs/design/pictures/write.svg")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## The life of a WRITE\n")
	section, _, _ = strings.Cut(section, "\n## ")
	steps, barrier := 0, 0
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \|.*`).FindAllStringSubmatch(section, -1) {
		steps++
		if n, _ := strconv.Atoi(m[1]); n != steps {
			t.Errorf("step %d of the table has the number %d", steps, n)
		}
		if strings.Contains(m[0], "**One barrier**") {
			barrier = steps
		}
	}
	drawn := map[int]bool{}
	for _, m := range regexp.MustCompile(`>(\d+)(?: to (\d+))?  (\w+ ?\w*)`).FindAllStringSubmatch(string(picture), -1) {
		first, _ := strconv.Atoi(m[1])
		last, err := strconv.Atoi(m[2])
		if err != nil {
			last = first
		}
		for ; first <= last; first++ {
			drawn[first] = true
		}
		if m[3] == "one barrier" && last != barrier {
			t.Errorf("the barrier is %d in the picture, and %d in the table", last, barrier)
		}
	}
	for n := range steps {
		if !drawn[n+1] {
			t.Errorf("the picture has no step %d", n+1)
		}
	}
	if len(drawn) != steps || steps < 10 || barrier == 0 {
		t.Errorf("%d steps in the table, %d in the picture, the barrier is %d", steps, len(drawn), barrier)
	}
	for what, text := range map[string]string{"page": section, "picture": string(picture)} {
		found := regexp.MustCompile(`(?:A crash before|After) (\d+)`).FindAllStringSubmatch(text, -1)
		if len(found) != 2 || found[0][1] != strconv.Itoa(barrier) || found[1][1] != strconv.Itoa(barrier) {
			t.Errorf("the %s says of a crash %q, and the barrier is %d", what, found, barrier)
		}
	}
}
