package disk

// Prefix is the first blocks of a Disk, as a Disk. The blocks behind them are neither read nor written. It is for a
// volume on a device that is larger than the volume. Optional interfaces of the Disk, such as Holes, stay.
type Prefix struct {
	Disk
	size uint64
}

// NewPrefix returns the first size blocks of d, which has as many or more. A File does without the other blocks from
// then on: it is not lost (ErrLost) if they are cut off.
func NewPrefix(d Disk, size uint64) *Prefix {
	if f, ok := within[*File](d); ok {
		f.needed.Store(min(size, f.Size()))
	}
	return &Prefix{d, size}
}

// Unwrap returns the whole disk.
func (p *Prefix) Unwrap() Disk { return p.Disk }

// Size implements Disk.
func (p *Prefix) Size() uint64 { return p.size }

// ReadAt implements Disk.
func (p *Prefix) ReadAt(a uint64, bufs [][]byte) error {
	if err := p.check("read", a, uint64(len(bufs))); err != nil {
		return err
	}
	return p.Disk.ReadAt(a, bufs)
}

// WriteAt implements Disk.
func (p *Prefix) WriteAt(a uint64, bufs [][]byte) error {
	if err := p.check("write", a, uint64(len(bufs))); err != nil {
		return err
	}
	return p.Disk.WriteAt(a, bufs)
}

// NextData implements Holes.
func (p *Prefix) NextData(a uint64) (uint64, error) {
	if a >= p.size {
		return p.size, nil
	}
	next, err := NextData(p.Disk, a)
	return min(next, p.size), err
}

// Discard implements Discarder.
func (p *Prefix) Discard(a, n uint64) error {
	if err := p.check("discard", a, n); err != nil {
		return err
	}
	return Discard(p.Disk, a, n)
}

// check refuses what reaches beyond the end.
func (p *Prefix) check(op string, a, n uint64) error {
	return checkRange(op, "", p.size, a, n)
}
