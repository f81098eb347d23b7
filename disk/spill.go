package disk

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"tansy/internal/lockorder"
)

// spill is where the old contents of blocks are kept for moments: in memory, and when that is full, in a file that has
// no name. Its methods may be called concurrently.
type spill struct {
	o MomentOptions

	mu    lockorder.Mutex[lockorder.Spill]
	held  uint64   // blocks in memory
	file  *os.File // nil: none is needed
	slots uint64   // places of the file, each for a block, that were in use once
	free  []uint64 // those of them that are not now
}

// old is what a block held.
type old struct {
	users atomic.Int64 // moments that have it, and who makes it; never more again once there are none
	data  []byte       // nil: it is in the file
	file  *os.File
	slot  uint64
}

// errSpillFull: there is no room for another block.
var errSpillFull = errors.New("there is no room for more of what was overwritten since")

// keep keeps b, which belongs to it from now on. The caller is its first user.
func (s *spill) keep(b []byte) (*old, error) {
	o := &old{}
	o.users.Store(1)
	if s.inMemory() {
		o.data = b
		return o, nil
	}
	var err error
	if o.file, o.slot, err = s.place(); err != nil {
		return nil, err
	}
	if _, err := o.file.WriteAt(b, int64(o.slot)*BlockSize); err != nil {
		s.drop(o)
		return nil, fmt.Errorf("%w: %w", errSpillFull, err)
	}
	return o, nil
}

// inMemory takes the memory for a block, if there is some.
func (s *spill) inMemory() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held >= s.o.Memory/BlockSize {
		return false
	}
	s.held++
	return true
}

// place takes a place in the file.
func (s *spill) place() (f *os.File, slot uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		slot, s.free = s.free[n-1], s.free[:n-1]
		return s.file, slot, nil
	}
	if s.slots >= s.o.Spill/BlockSize {
		return nil, 0, fmt.Errorf("%w: %d bytes in memory and %d in a file are the most that may be kept",
			errSpillFull, s.o.Memory, s.o.Spill)
	}
	if s.file == nil {
		if s.file, err = nameless(s.o.Dir); err != nil {
			return nil, 0, fmt.Errorf("%w: %w", errSpillFull, err)
		}
	}
	s.slots++
	return s.file, s.slots - 1, nil
}

// nameless makes a file in a folder, which is gone when it is closed. A folder on the volume itself would wait for who
// waits for the file.
func nameless(dir string) (*os.File, error) {
	if err := refuseServed(dir); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, "tansy-moment-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// read fills b. ok: it holds what was kept; else nobody uses that any more.
func (s *spill) read(o *old, b []byte) (ok bool, err error) {
	if o.data != nil {
		copy(b, o.data)
		return true, nil
	}
	_, err = o.file.ReadAt(b, int64(o.slot)*BlockSize)
	if o.users.Load() == 0 { // its place may have been another's, or closed, meanwhile
		return false, nil
	}
	return err == nil, err
}

// drop is called by a user that needs o no longer.
func (s *spill) drop(o *old) {
	if o.users.Add(-1) > 0 {
		return
	}
	if f := s.give(o); f != nil {
		f.Close() // which gives its room back, and takes a while: nobody who writes waits for it
	}
}

// give gives the room of o back. The result is the file that is not needed any more, if it is not.
func (s *spill) give(o *old) (unneeded *os.File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.file == nil {
		s.held--
		return nil
	}
	if s.free = append(s.free, o.slot); uint64(len(s.free)) == s.slots {
		unneeded = s.file
		s.file, s.slots, s.free = nil, 0, nil
	}
	return unneeded
}

// kept is how many bytes are kept in memory, and in the file.
func (s *spill) kept() (memory, file uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held * BlockSize, (s.slots - uint64(len(s.free))) * BlockSize
}
