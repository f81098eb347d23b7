package exports

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// ReadFile reads a file. The mistakes in it are *Problem, with its name in front; so are the warnings (Parse).
func ReadFile(name string) (list []Export, warnings []error, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, nil, err
	}
	e, odd, err := Parse(text)
	for _, w := range odd {
		warnings = append(warnings, fmt.Errorf("%s:%w", name, w))
	}
	if list, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, p := range list.Unwrap() {
			all = append(all, fmt.Errorf("%s:%w", name, p))
		}
		return nil, nil, errors.Join(all...)
	}
	return e, warnings, err
}
