package fs

import (
	"bytes"

	"tansy/internal/gen/fs/exec/exec"
	"tansy/internal/gen/fs/exec/localcalls"
)

// A note is what a server keeps for itself on the volume that it serves: an extended attribute of the root directory
// whose name begins with noteSpace. No client sees it: mounts have attributes of other names alone.

// noteSpace begins the names of notes, as attributes.
const noteSpace = "tansy."

// attributedRoot is the size of inode 2's file if the root directory has attributes, and no other file ever had any.
const attributedRoot = (rootIno + 1) * BlockSize

// Note returns the note that was last set under a name. The error is ErrNoEnt if there is none.
func (v *FS) Note(name string) ([]byte, error) {
	return v.getXattr(v.root, []byte(noteSpace+name))
}

// SetNote sets the note of a name, in place of the one before, and returns when it is durable. It takes room with the
// extended attributes of the root directory, which together have some 4000 bytes. The error is ErrNoSpc if there is no
// room; there is always for a note that is not longer than the one before.
func (v *FS) SetNote(name string, value []byte) error {
	vn, vv := bytesOf([]byte(noteSpace+name)), bytesOf(value)
	waits := &FS{v.volume, v.id, false, v.inside}
	var c call
	return waits.run(&c, exec.LOCAL(), func(t *txn) {
		localcalls.SetXattr(&c.Call, t, v.dirs, v.root.Ino, v.root.Gen, vn, vv, false, false, true)
	})
}

// withoutNotes takes the names of notes out of a list of names, each with a zero byte behind it.
func withoutNotes(names []byte) []byte {
	if !bytes.Contains(names, []byte(noteSpace)) {
		return names
	}
	var rest []byte
	for n := range bytes.SplitAfterSeq(names, []byte{0}) {
		if !bytes.HasPrefix(n, []byte(noteSpace)) {
			rest = append(rest, n...)
		}
	}
	return rest
}

// findXattrs finds out whether files may have extended attributes, from the size of inode 2's file. Notes, which no
// client can ask for, take no time of calls about files.
func (v *FS) findXattrs(size uint64) {
	v.findLists(size)
	if size <= BlockSize { // there is nothing, or a table of access lists
		return
	}
	if size == attributedRoot {
		if names, err := v.listXattr(v.root); err == nil && len(names) == 0 {
			return
		}
	}
	v.xattrs.found()
}
