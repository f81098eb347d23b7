//go:build linux

package programs

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"go.etcd.io/bbolt"
)

// store is a bbolt database, which maps its file.
type store struct {
	client
	seed uint64
}

// bolt is a child that has the database open, in the folder of its first argument, and goes by the seed in the second.
func bolt(do func(db *bbolt.DB, seed uint64) error) func(args []string) error {
	return func(args []string) error {
		seed, err := strconv.ParseUint(args[1], 10, 64)
		if err != nil {
			return err
		}
		db, err := bbolt.Open(filepath.Join(args[0], "db"), 0o600, nil)
		if err != nil {
			return err
		}
		if err := do(db, seed); err != nil {
			return err
		}
		return db.Close()
	}
}

func newBbolt(_ *testing.T, seed uint64) func() program {
	return func() program { return &store{seed: seed} }
}

func (s *store) flags(int) []string { return nil }

func (s *store) String() string { return fmt.Sprintf("%d transactions", s.done) }

func (s *store) child(which, dir string) *exec.Cmd { return child(which, dir, fmt.Sprint(s.seed)) }

func (s *store) prepare(dir string) error {
	_, err := output(s.child("bbolt-check", dir))
	return err
}

func (s *store) work(ctx context.Context, dir string, _ *rand.Rand, reported func() bool) error {
	return s.run(ctx, s.child("bbolt", dir), func(n int) string { return fmt.Sprint(n) }, reported)
}

func (s *store) check(_ context.Context, dir string) error {
	out, err := output(s.child("bbolt-check", dir))
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(out)
	if err != nil {
		return err
	}
	return s.found(n)
}

var bucket = []byte("b")

// transaction puts and deletes some keys; the key of 0 tells how many there were.
func transaction(seed, n uint64, put func(k uint64, v []byte) error, remove func(k uint64) error) error {
	r := rand.New(rand.NewPCG(seed, n))
	for range 15 {
		if err := put(1+r.Uint64N(600), []byte(text(r.IntN(10_000)))); err != nil {
			return err
		}
		if err := remove(1 + r.Uint64N(600)); err != nil {
			return err
		}
	}
	return put(0, binary.BigEndian.AppendUint64(nil, n))
}

func key(k uint64) []byte { return binary.BigEndian.AppendUint64(nil, k) }

func boltWork(db *bbolt.DB, seed uint64) error {
	return obey(func(n int) error {
		return db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists(bucket)
			if err != nil {
				return err
			}
			return transaction(seed, uint64(n), func(k uint64, v []byte) error { return b.Put(key(k), v) },
				func(k uint64) error { return b.Delete(key(k)) })
		})
	})
}

// boltCheck prints how many transactions there were. All that is there must be theirs.
func boltCheck(db *bbolt.DB, seed uint64) error {
	found := map[uint64]string{}
	if err := db.View(func(tx *bbolt.Tx) error {
		var first error
		for err := range tx.Check() {
			if first == nil {
				first = err
			}
		}
		if b := tx.Bucket(bucket); b != nil && first == nil {
			return b.ForEach(func(k, v []byte) error {
				found[binary.BigEndian.Uint64(k)] = string(v)
				return nil
			})
		}
		return first
	}); err != nil {
		return err
	}
	n := uint64(0)
	if last, ok := found[0]; ok {
		n = binary.BigEndian.Uint64([]byte(last))
	}
	want := map[uint64]string{}
	for i := uint64(1); i <= n; i++ {
		transaction(seed, i, func(k uint64, v []byte) error { want[k] = string(v); return nil },
			func(k uint64) error { delete(want, k); return nil })
	}
	for k, v := range found {
		if w, ok := want[k]; !ok || v != w {
			return fmt.Errorf("key %d is not what it was after transaction %d", k, n)
		}
	}
	if len(found) != len(want) {
		return fmt.Errorf("%d keys of %d are there after transaction %d", len(found), len(want), n)
	}
	fmt.Print(n)
	return nil
}
