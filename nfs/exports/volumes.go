package exports

import (
	"fmt"
	"strings"
)

// Split sorts exports by their volumes, whose paths for clients are given. None of these paths is below another. The
// paths in the results are those within the volume. An export of no volume is an error.
func Split(list []Export, volumes []string) ([][]Export, error) {
	of := make([][]Export, len(volumes))
next:
	for _, e := range list {
		for i, v := range volumes {
			if Covers(v, e.Path) {
				e.Path = "/" + strings.Trim(strings.TrimPrefix(e.Path, v), "/")
				of[i] = append(of[i], e)
				continue next
			}
		}
		return nil, fmt.Errorf("%s is in none of the volumes, which are %s", e.Path, strings.Join(volumes, ", "))
	}
	return of, nil
}
