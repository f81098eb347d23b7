package disk

// Holes is the knowledge that a Disk may have of blocks that were never written. A reader passes over them.
type Holes interface {
	// NextData is the first block at or behind a that may hold anything but zeros,
	// or the size of the device if there is none: the blocks between read as zeros.
	NextData(a uint64) (uint64, error)
}

// NextData asks d. A Disk without Holes may have data in every block: the result is a.
func NextData(d Disk, a uint64) (uint64, error) {
	if h, ok := d.(Holes); ok {
		return h.NextData(a)
	}
	return a, nil
}
