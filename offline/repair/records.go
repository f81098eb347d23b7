package repair

import "tansy/disk"

// records forgets the records of replies in blocks that cannot be read, or do not hold what was last written there.
func (r *round) records() error {
	v := r.v
	return v.scan(v.slot0, v.data0, nowhere, func(a uint64, b []byte) {
		if b != nil && !v.damaged[a] {
			return
		}
		v.dirty[a] = make([]byte, disk.BlockSize)
		if b == nil {
			r.did(0, "block %d, which cannot be read, is made empty: it had records of replies, "+
				"so calls that clients send again may be done twice", a)
		}
	})
}
