package fs

import "tansy/disk"

// A meter tells how much of the blocks from first on, before end, has been written, and asks before each write whether
// it is to go on.
type meter struct {
	disk.Disk
	first, end uint64
	progress   func(done, total uint64)
	stop       func() error
}

func (m meter) WriteAt(a uint64, bufs [][]byte) error {
	if m.stop != nil {
		if err := m.stop(); err != nil {
			return err
		}
	}
	err := m.Disk.WriteAt(a, bufs)
	if end := a + uint64(len(bufs)); err == nil && m.progress != nil && m.first < end && end <= m.end {
		m.progress((end-m.first)*BlockSize, (m.end-m.first)*BlockSize)
	}
	return err
}

// Unwrap is the device itself, which is told what is to come.
func (m meter) Unwrap() disk.Disk { return m.Disk }
