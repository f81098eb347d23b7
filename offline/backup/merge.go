package backup

import (
	"errors"
	"fmt"
	"io"

	"tansy/disk"
)

// merge writes the file of a backup that has what newer has, and what older has that newer does not tell of: with it
// older is not needed any more. What a part has not as it was written, and newer does not tell of, is marked as not
// readable. progress, unless nil, is called now and then with bytes.
func merge(w io.Writer, older, newer *file, progress func(done, total uint64)) error {
	if newer.Parent != older.ID || newer.Volume != older.Volume || newer.Size != older.Size {
		return fmt.Errorf("%s does not add to %s", newer.name, older.name)
	}
	info := newer.Info
	info.Parent = older.Parent
	out, err := newWriter(w, info)
	if err != nil {
		return err
	}
	m := merging{out: out, older: older, newer: newer, progress: progress, data: make([]byte, disk.BlockSize)}
	for a := uint64(0); a < info.Size && err == nil; {
		a, err = m.step(a)
	}
	if err != nil {
		return err
	}
	return out.close()
}

// merging is a merge that is under way.
type merging struct {
	out          *writer
	older, newer *file
	progress     func(done, total uint64)
	data         []byte // of a block
}

// step writes what there is at block a or behind it first, and returns the block behind that.
func (m *merging) step(a uint64) (uint64, error) {
	end := m.newer.Size
	n, more, err := m.newer.next(a)
	if err != nil {
		return a, err
	}
	if more {
		if n.block <= a {
			return n.end(), m.put(m.newer, n, a, n.end())
		}
		end = n.block
	}
	o, more, err := m.older.next(a)
	if err != nil || !more || o.block >= end {
		return end, err
	}
	from, to := max(a, o.block), min(o.end(), end)
	return to, m.put(m.older, o, from, to)
}

// put writes entry e of f, as far as it is of the blocks [from, to).
func (m *merging) put(f *file, e entry, from, to uint64) error {
	if e.kind == gone {
		if m.out.info.Full() {
			return nil
		}
		return m.out.addGone(from, to-from)
	}
	if m.progress != nil {
		m.progress(m.out.bytes(), m.older.bytes+m.newer.bytes)
	}
	var data []byte
	if e.hasData() {
		_, place, _, err := f.find(e.block)
		if err != nil {
			return err
		}
		data = m.data
		err = f.contents(e, place, data)
		if errors.Is(err, ErrDamaged) && f.part {
			e, data, err = entry{e.block, unreadable, 0}, nil, nil
		}
		if err != nil {
			return err
		}
	}
	return m.out.add(e, data)
}
