package exports

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// ReadFile reads a file. The mistakes in it are *Problem, with its name in front.
func ReadFile(name string) ([]Export, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	e, err := Parse(text)
	if list, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, p := range list.Unwrap() {
			all = append(all, fmt.Errorf("%s:%w", name, p))
		}
		return nil, errors.Join(all...)
	}
	return e, err
}
