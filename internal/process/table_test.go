package process

import "testing"

func TestUnescaped(t *testing.T) {
	for written, want := range map[string]string{
		"":                  "",
		"/srv":              "/srv",
		`/a\040b`:           "/a b",
		`h\043ash.img`:      "h#ash.img",
		`\011\012\134\377`:  "\t\n\\\xff",
		`\1340403`:          `\0403`, // not once more
		`\04`:               `\04`,
		`\400 \08 \x41 end`: `\400 \08 \x41 end`,
		`ends in \`:         `ends in \`,
	} {
		if got := Unescaped(written); got != want {
			t.Errorf("%s is %q, want %q", written, got, want)
		}
	}
}
