package disk

// Holes is what a Disk may have besides: knowledge of the blocks that were never
// written. It lets a reader pass over what is empty without reading it.
type Holes interface {
	// NextData is the first block at or behind a that may hold anything but zeros,
	// or the size of the device if there is none: the blocks between read as zeros.
	NextData(a uint64) (uint64, error)
}

// NextData asks d. What knows nothing of holes may have data in every block.
func NextData(d Disk, a uint64) (uint64, error) {
	if h, ok := d.(Holes); ok {
		return h.NextData(a)
	}
	return a, nil
}
