package fs

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A label is what people call a volume, such as "backup 2". It is one of the volume's notes: no client sees it.

// labelNote is the name of that note.
const labelNote = "label"

// MostLabel is how many bytes a label has at most.
const MostLabel = 64

// ErrLabel: that cannot be the label of a volume.
var ErrLabel = errors.New("that cannot be a label")

// CheckLabel tells why a label cannot be one: an error that wraps ErrLabel. "" can: the volume has none then. A label
// becomes the name of a link in /dev/disk/by-label, and a word in a line of /etc/fstab and of programs' output.
func CheckLabel(label string) error {
	switch {
	case len(label) > MostLabel:
		return fmt.Errorf("%w: it has %d bytes, and may have %d", ErrLabel, len(label), MostLabel)
	case !utf8.ValidString(label):
		return fmt.Errorf("%w: it is not UTF-8", ErrLabel)
	case strings.ContainsFunc(label, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("%w: it has characters that cannot be printed", ErrLabel)
	case strings.TrimSpace(label) != label:
		return fmt.Errorf("%w: it begins or ends with a space", ErrLabel)
	case label == "." || label == ".." || strings.Contains(label, "/"):
		return fmt.Errorf("%w: it is no name of a file", ErrLabel)
	}
	return nil
}

// Label is the volume's label, "" if it has none.
func (v *FS) Label() (string, error) {
	label, err := v.Note(labelNote)
	if errors.Is(err, ErrNoEnt) {
		return "", nil
	}
	return string(label), err
}

// SetLabel gives the volume a label, or with "" takes it away, and returns when that is durable. The errors are those
// of CheckLabel and SetNote.
func (v *FS) SetLabel(label string) error {
	if err := CheckLabel(label); err != nil {
		return err
	}
	if was, err := v.Label(); err != nil || was == label {
		return err
	}
	return v.SetNote(labelNote, []byte(label))
}
