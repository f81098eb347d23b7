package fs

// Trim gives the room of all free blocks back to the host, at once, and returns how many bytes the host took. The
// error wraps disk.ErrNoDiscard if it takes none. progress, if not nil, is told of blocks looked at, of all.
func (v *FS) Trim(progress func(done, all uint64)) (bytes uint64, err error) {
	if err := v.enter(); err != nil {
		return 0, err
	}
	defer v.leave()
	if v.readOnly {
		return 0, ErrROFS
	}
	for !v.calls.Closed() && v.free.Step() {
	}
	before := v.sys.Discarded()
	defer func() { bytes = (v.sys.Discarded() - before) * BlockSize }()
	if err := v.sys.Settle(); err != nil {
		return 0, err
	}
	return 0, v.trim.All(progress)
}
