package main

import (
	"errors"
	"fmt"
	"os"

	volbackup "tansy/offline/backup"
	volcheck "tansy/offline/check"
)

// checkFiles reads all files of a folder with backups, or the one file, and prints what is damaged. It returns the
// number of problems.
func checkFiles(path string, report func(pass string, done, total uint64)) (problems uint64, err error) {
	all := []volbackup.Listed{{Path: path}}
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		if all, err = volbackup.List(path); err != nil {
			return 0, err
		}
	}
	for _, l := range all {
		blocks, err := volbackup.Verify(l.Path, func(done, total uint64) { report("files", done, total) })
		switch {
		case errors.Is(err, volbackup.ErrDamaged):
			fmt.Fprintln(stdout, "backup:", err)
			problems++
		case err != nil:
			return problems, err
		}
		if problems += uint64(len(blocks)); len(blocks) > 0 {
			fmt.Fprintf(stdout, "backup: %s: %s not as %s written: block %s%s\n", shown(l.Path),
				count(len(blocks), "block is", "blocks are"), map[bool]string{true: "it was", false: "they were"}[len(blocks) == 1],
				few(blocks), filesOf(l.Path, blocks))
		}
	}
	return problems, nil
}

// fewest is how many blocks are printed of many.
const fewest = 10

// few are the first of some blocks.
func few(blocks []uint64) (s string) {
	for i, b := range blocks {
		if i == fewest {
			return s + fmt.Sprintf(", and %d more", len(blocks)-fewest)
		}
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprint(b)
	}
	return s
}

// filesOf says which files of the volume, as that backup has it, the blocks belong to.
func filesOf(path string, blocks []uint64) string {
	c, err := volbackup.Open(path)
	if err != nil {
		return ""
	}
	defer c.Close()
	d, err := c.Device()
	if err != nil {
		return ""
	}
	paths, err := volcheck.Whose(d, blocks)
	if err != nil {
		return fmt.Sprintf(" (whose is not known: %v)", err)
	}
	if len(paths) == 0 {
		return " (of no file)"
	}
	return fmt.Sprintf(" %v", paths)
}
