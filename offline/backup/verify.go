package backup

import (
	"errors"
	"fmt"

	"tansy/disk"
)

// Verify reads all of a file, whether a later backup has newer contents or not, and returns the blocks of the volume
// whose contents it has not as they were written. The error wraps ErrDamaged if it is not known which blocks the file
// has; or reading it failed. progress, unless nil, is called now and then with bytes.
func Verify(path string, progress func(done, total uint64)) (blocks []uint64, err error) {
	f, err := openPath(path)
	if err != nil {
		return nil, err
	}
	defer f.close()
	err = f.flaw
	b := make([]byte, disk.BlockSize)
	for i, s := range f.segments {
		if progress != nil {
			progress(s.at*disk.BlockSize, f.bytes)
		}
		head := f.load(i)
		if head.err != nil {
			err = errors.Join(err, fmt.Errorf("%w: blocks %d to %d", head.err, s.first, s.end-1))
			continue
		}
		for k, e := range head.entries {
			if !e.hasData() {
				continue
			}
			if err := f.contents(e, head.places[k], b); errors.Is(err, ErrDamaged) {
				blocks = append(blocks, e.block)
			} else if err != nil {
				return blocks, err
			}
		}
	}
	return blocks, err
}
