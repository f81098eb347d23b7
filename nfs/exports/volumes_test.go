package exports

import (
	"fmt"
	"testing"
)

func TestSplit(t *testing.T) {
	for _, x := range []struct {
		paths, volumes []string
		want           string
	}{
		{[]string{"/", "/a"}, []string{"/"}, "[[/ /a]]"},
		{[]string{"/b/x", "/a", "/a/b/c", "/b"}, []string{"/a", "/b"}, "[[/ /b/c] [/x /]]"},
		{[]string{"/srv/a/x"}, []string{"/srv/b", "/srv/a"}, "[[] [/x]]"},
		{nil, []string{"/a", "/b"}, "[[] []]"},
		{[]string{"/"}, []string{"/a", "/b"}, ""},
		{[]string{"/ab"}, []string{"/a", "/b"}, ""},
		{[]string{"/srv"}, []string{"/srv/a"}, ""},
	} {
		var list []Export
		for _, p := range x.paths {
			list = append(list, Export{Path: p})
		}
		of, err := Split(list, x.volumes)
		if err != nil && x.want == "" {
			continue
		}
		got := make([][]string, len(of))
		for i := range of {
			for _, e := range of[i] {
				got[i] = append(got[i], e.Path)
			}
		}
		if fmt.Sprint(got) != x.want {
			t.Errorf("%v in %v: %v, %v; want %q", x.paths, x.volumes, got, err, x.want)
		}
	}
}
