package backup

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"tansy/disk"
)

// A Stream is a full backup that is read from its beginning to its end, once.
type Stream struct {
	r    io.Reader
	info Info
	at   uint64    // blocks read
	sums hash.Hash // of the sums of all blocks that have one

	whole func() error // called behind each segment; may be nil
}

// errCut is wrapped by the error of a stream that ends too early.
var errCut = fmt.Errorf("%w: its end is missing: it ends", ErrDamaged)

// NewStream reads the header of a backup.
func NewStream(r io.Reader) (*Stream, error) {
	s := &Stream{r: r, sums: sha256.New()}
	b := make([]byte, disk.BlockSize)
	if err := s.read(b); err != nil {
		return nil, err
	}
	var err error
	if s.info, err = decodeHeader(b); err != nil {
		return nil, err
	}
	s.sums.Write(b[sumAt:])
	return s, nil
}

// Info implements Backup.
func (s *Stream) Info() Info { return s.info }

// blocks implements Backup.
func (s *Stream) blocks() uint64 { return 0 }

// superblock implements Backup.
func (s *Stream) superblock() []byte { return nil }

// read reads the next block.
func (s *Stream) read(b []byte) error {
	_, err := io.ReadFull(s.r, b)
	switch {
	case errors.Is(err, io.EOF) && s.at == 0, errors.Is(err, io.ErrUnexpectedEOF) && s.at == 0:
		return ErrNotBackup
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w after %d blocks", errCut, s.at)
	}
	s.at++
	return err
}

// each implements Backup. It reads to the end, and makes sure that nothing is missing.
func (s *Stream) each(f func(e entry, data []byte) error) error {
	if !s.info.Full() {
		return fmt.Errorf("the backup adds to another one, which is needed, too: give the folder of both")
	}
	return s.walk(f)
}

// walk is each, also of a backup that adds to another.
func (s *Stream) walk(f func(e entry, data []byte) error) error {
	b, data := make([]byte, disk.BlockSize), make([]byte, disk.BlockSize)
	segments, next := uint64(0), uint64(0)
	for {
		at := s.at
		if err := s.read(b); err != nil {
			return err
		}
		entries, ok := decodeHead(b, s.info.ID, at, s.info.Size)
		if !ok {
			return s.ending(at, b, segments)
		}
		if entries[0].block < next {
			return fmt.Errorf("%w: its parts are not in their order", ErrDamaged)
		}
		next = entries[len(entries)-1].end()
		s.sums.Write(b[sumAt:])
		segments++
		for _, e := range entries {
			if e.hasData() {
				if err := s.read(data); err != nil {
					return err
				}
				if crc(data) != e.sum {
					e.kind, e.sum = lost, 1
				}
			}
			if err := f(e, data); err != nil {
				return err
			}
		}
		if s.whole != nil {
			if err := s.whole(); err != nil {
				return err
			}
		}
	}
}

// over makes sure that nothing follows: of two backups one behind the other, the second would be forgotten in silence.
func (s *Stream) over() error {
	n, err := io.ReadFull(s.r, make([]byte, 1))
	if n > 0 {
		return fmt.Errorf("%w: something follows its end, in block %d", ErrDamaged, s.at)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// ending reads the index, which begins with block b, at block at, and the end.
func (s *Stream) ending(at uint64, b []byte, segments uint64) error {
	for index := at; ; at++ {
		if _, ok := decodeIndex(b, s.info.ID, at); !ok {
			e, ok := decodeEnding(b, at)
			if !ok || e.info != s.info || e.segments != segments || e.index != index ||
				e.digest != [sha256.Size]byte(s.sums.Sum(nil)) {
				return fmt.Errorf("%w: the checksum of block %d is wrong", ErrDamaged, at)
			}
			return s.over()
		}
		if at-index >= (segments+perIndex-1)/perIndex {
			return fmt.Errorf("%w: its index is too long", ErrDamaged)
		}
		s.sums.Write(b[sumAt:])
		if err := s.read(b); err != nil {
			return err
		}
	}
}
