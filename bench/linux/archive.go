//go:build linux

package linux

import (
	"bufio"
	"errors"
	"fmt"
	"os"
)

// An archive is what the kernel unpacks into its first file system: cpio's "newc" (the kernel's
// Documentation/driver-api/early-userspace/buffer-format.rst).
type archive struct {
	file    *os.File
	w       *bufio.Writer
	entries int
}

func newArchive(path string) (*archive, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &archive{file: f, w: bufio.NewWriter(f)}, nil
}

const (
	regular = 0o100000
	folder  = 0o040000
)

// add adds a file or a folder; names and contents are filled up to multiples of four bytes.
func (a *archive) add(name string, mode int, contents []byte) {
	a.entries++
	fmt.Fprintf(a.w, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		a.entries, mode, 0, 0, 1, 0, len(contents), 0, 0, 0, 0, len(name)+1, 0)
	const header = 110
	a.w.WriteString(name)
	a.w.Write(make([]byte, 1+padding(header+len(name)+1)))
	a.w.Write(contents)
	a.w.Write(make([]byte, padding(len(contents))))
}

func padding(n int) int { return -n & 3 }

// addFile adds the contents of one of the host.
func (a *archive) addFile(name, path string) error {
	contents, err := os.ReadFile(path)
	if err == nil {
		a.add(name, regular|0o755, contents)
	}
	return err
}

func (a *archive) close() error {
	a.add("TRAILER!!!", 0, nil)
	return errors.Join(a.w.Flush(), a.file.Close())
}
