package nfs3

import (
	"tansy/fs"
	"tansy/nfs/oncrpc"
)

// File is what a handle names, for a protocol that has the same handles (NLM).
type File struct {
	FS     fs.FileSystem
	Volume [8]byte
	Handle fs.Handle

	Cred     *fs.Cred // the caller in the export; not to be changed
	ReadOnly bool     // the export is
}

// File returns what a handle names, for the caller of c. Whether the caller may use it is decided as for every call of
// NFS; whether the file is there is not looked at. Its errors are fs.Errno, in a chain.
func (v *Volumes) File(oc *oncrpc.Call, raw []byte) (File, error) {
	s := v.find(raw)
	if s == nil {
		s = v.list[0] // which says what is wrong with it
	}
	c := call{Call: oc}
	if err := s.admit(&c, raw); err != nil {
		return File{}, err
	}
	h, err := s.file(c, raw)
	if err != nil {
		return File{}, err
	}
	return File{s.fs, s.volume, h, c.cred, c.readOnly}, nil
}
