// Package kv is a durable map from names to values on a disk: an example of a program on
// Tansy's journal.
//
// Update changes any number of keys at one instant: after a crash all of its changes are there or
// none, and all are there if it had returned. The map is an array of buckets, a block each, and a
// key lives in the bucket of its hash. So a change of several keys is one of several blocks, and that
// such a change is atomic and durable is what the journal is for: nothing here orders
// writes, or recovers from a crash.
//
//	block 0          what the journal must know to be opened
//	Start .. Home()  the journal (package journal), its tree of codes before it
//	from Home() on   the buckets
//
// A bucket is a row of entries: the lengths of key and value as two uvarints, key, value. A length of 0 ends it.
package kv

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"sync"

	"tansy/disk"
	"tansy/journal"
)

const (
	magic   = "kv 1\n"
	minSize = 2048 // blocks
)

var (
	// ErrFull says that the bucket of a key has no room for it; others may have.
	ErrFull = errors.New("kv: the bucket is full")
	// ErrKey says that a key is empty.
	ErrKey = errors.New("kv: an empty key")
	// ErrForeign says that a disk holds no map.
	ErrForeign = errors.New("kv: this disk holds no map")
)

// Store is an open map. Its methods may be called by several goroutines at once.
type Store struct {
	j              *journal.Journal
	first, buckets uint64 // the blocks of the buckets

	mu sync.Mutex // held by an Update from reading a bucket to having changed it
}

// params are those of the journal of a map on size blocks: the log at its smallest, and codes
// for all buckets, so that none is ever read that is not what was last written there.
func params(size uint64, super []byte) journal.Params {
	p := journal.Params{Units: 64, Ring: journal.MinRing}
	copy(p.Key[:], super[8:])
	copy(p.UUID[:], super[8+len(p.Key):])
	for room := uint64(1); ; room++ { // pages: the more, the fewer buckets are left
		p.Start = 1 + 2*room
		if p.Pages, _ = journal.PagesFor(size - p.Home()); p.Pages <= room {
			return p
		}
	}
}

// Create makes an empty map on d, which must be new: at least 2048 blocks, all zeros.
func Create(d disk.Disk) error {
	if d.Size() < minSize {
		return fmt.Errorf("kv: %d blocks are too few, a map takes %d", d.Size(), minSize)
	}
	super := make([]byte, disk.BlockSize)
	rand.Read(super[8 : 8+32+16])
	if err := journal.Format(d, params(d.Size(), super)); err != nil {
		return err
	}
	copy(super, magic) // last: without it there is no map
	if err := d.WriteAt(0, [][]byte{super}); err != nil {
		return err
	}
	return d.Barrier()
}

// Open opens the map on d, whatever a crash has left of it. Nobody else may use d until Close.
func Open(d disk.Disk) (*Store, error) {
	super := make([]byte, disk.BlockSize)
	if d.Size() < minSize {
		return nil, ErrForeign
	}
	if err := d.ReadAt(0, [][]byte{super}); err != nil {
		return nil, err
	}
	if string(super[:len(magic)]) != magic {
		return nil, ErrForeign
	}
	p := params(d.Size(), super)
	j, err := journal.Open(d, p, journal.Options{})
	if err != nil {
		return nil, err
	}
	return &Store{j: j, first: p.Home(), buckets: d.Size() - p.Home()}, nil
}

// Close makes everything durable and closes the map, not the disk.
func (s *Store) Close() error { return s.j.Close() }

// Get returns the value of key; ok is false if it has none.
func (s *Store) Get(key string) (value []byte, ok bool, err error) {
	b, err := s.read(s.bucketOf(key))
	value, ok = b[key]
	return value, ok, err
}

// Update gives keys new values; nil takes a key away. All of it happens at one instant and is
// durable when Update returns; after an error none of it has happened, unless the disk failed.
func (s *Store) Update(changes map[string][]byte) error {
	if err := s.change(changes); err != nil {
		return err
	}
	return s.j.Flush() // outside of the lock: updates that come together share a barrier
}

func (s *Store) change(changes map[string][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	buckets := map[uint64]map[string][]byte{}
	for key, value := range changes {
		if key == "" {
			return ErrKey
		}
		a := s.bucketOf(key)
		if buckets[a] == nil {
			b, err := s.read(a)
			if err != nil {
				return err
			}
			buckets[a] = b
		}
		if value == nil {
			delete(buckets[a], key)
		} else {
			buckets[a][key] = value
		}
	}
	var ws []journal.Write
	for a, b := range buckets {
		data := encode(b)
		if len(data) > disk.BlockSize {
			return ErrFull
		}
		ws = append(ws, journal.Write{Addr: a, Data: append(data, make([]byte, disk.BlockSize-len(data))...)})
	}
	return s.j.Commit(ws, false)
}

func (s *Store) bucketOf(key string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(key))
	return s.first + h.Sum64()%s.buckets
}

func (s *Store) read(a uint64) (map[string][]byte, error) {
	buf := make([]byte, disk.BlockSize)
	if err := s.j.Read(a, buf); err != nil {
		return nil, err
	}
	return decode(buf), nil
}

func encode(b map[string][]byte) (data []byte) {
	for _, key := range slices.Sorted(maps.Keys(b)) {
		data = binary.AppendUvarint(data, uint64(len(key)))
		data = binary.AppendUvarint(data, uint64(len(b[key])))
		data = append(append(data, key...), b[key]...)
	}
	return data
}

func decode(data []byte) map[string][]byte {
	b := map[string][]byte{}
	for len(data) > 0 && data[0] != 0 {
		k, n := binary.Uvarint(data)
		v, m := binary.Uvarint(data[n:])
		data = data[n+m:]
		b[string(data[:k])] = data[k : k+v : k+v]
		data = data[k+v:]
	}
	return b
}
