//go:build linux

package eval

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"go.etcd.io/bbolt"

	"tansy/bench/internal/figures"
	"tansy/bench/internal/rig"
	"tansy/disk"
	"tansy/journal"
	"tansy/txn"
)

// The libraries are compared at what all of them can do: one of some keys gets a new value of some 100 bytes, durable
// before the writer goes on. Each keeps one file or folder on the same ext4.

const (
	keys      = 10_000
	valueSize = 100 // bytes
)

var everyLibrary = []contender{
	{name: "txn", about: "Tansy's transactions: an object of 256 bytes, read and written"},
	{name: "journal", about: "Tansy's journal: a block of 4 KiB"},
	{name: "bbolt", about: "bbolt, Update: a B+ tree, one writer at a time"},
	{name: "bbolt-batch", about: "bbolt, Batch: updates that come together are one"},
	{name: "pebble", about: "Pebble: a log-structured merge tree, from the module in bench/eval/pebble"},
}

// libraryContenders differ in what they do with the file system, which is ext4 for all.
func libraryContenders(o options) []contender {
	cs := slices.Clone(everyLibrary)
	for i := range cs {
		cs[i].kind, cs[i].options = "ext4", "data=ordered"
	}
	return among(o, cs)
}

func libraries(o options) (es []experiment) {
	for _, n := range o.clients {
		es = append(es, experiment{
			[]figures.Metric{{Name: fmt.Sprintf("updates, writers: %d", n), Unit: "/s", At: int64(n)}},
			func(ctx context.Context, s *site) ([]float64, error) {
				if s.name == "pebble" {
					rate, err := s.pebble(ctx, n)
					return []float64{rate}, err
				}
				l, err := openLibrary(s.name, s.dir)
				if err != nil {
					return nil, err
				}
				rs := make([]*mathrand.Rand, n)
				for i := range rs {
					rs[i] = mathrand.New(mathrand.NewPCG(uint64(i), 1))
				}
				rate, _, err := rig.Repeat(ctx, s.duration, n, func(i, k int) error {
					value := make([]byte, valueSize)
					binary.BigEndian.PutUint64(value, uint64(k))
					return l.update(rs[i].IntN(keys), value)
				})
				return []float64{rate}, errors.Join(err, l.close())
			},
		})
	}
	return es
}

// A library is an open store.
type library struct {
	update func(key int, value []byte) error // durable when it returns
	close  func() error
}

func openLibrary(name, folder string) (*library, error) {
	switch name {
	case "txn":
		return openTxn(folder)
	case "journal":
		return openJournal(folder)
	}
	return openBolt(folder, name == "bbolt-batch")
}

// codePages is the room for the tree of codes, in pages.
const codePages = 64

// aJournal makes a journal on an image of which each block is written, and opens it.
func aJournal(folder string) (j *journal.Journal, p journal.Params, close func() error, err error) {
	const blocks = 32 << 20 / disk.BlockSize
	path := filepath.Join(folder, "image")
	if err := rig.Fill(context.Background(), path, blocks*disk.BlockSize); err != nil {
		return nil, p, nil, err
	}
	d, err := disk.OpenFile(path, disk.FileOptions{})
	if err != nil {
		return nil, p, nil, err
	}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	// With codes for all home blocks, like a volume, before the log.
	p = journal.Params{Start: 2 * codePages, Units: 64, Ring: journal.MinRing}
	var ok bool
	if p.Pages, ok = journal.PagesFor(blocks - p.Home()); !ok || p.Pages > codePages {
		return nil, p, nil, fmt.Errorf("%d pages of codes are too few", codePages)
	}
	rand.Read(p.Key[:])
	rand.Read(p.UUID[:])
	if err := journal.Format(d, p); err != nil {
		return nil, p, nil, err
	}
	if j, err = journal.Open(d, p, journal.Options{}); err != nil {
		return nil, p, nil, err
	}
	return j, p, func() error { return errors.Join(j.Close(), d.Close()) }, nil
}

func openJournal(folder string) (*library, error) {
	j, p, end, err := aJournal(folder)
	if err != nil {
		return nil, err
	}
	return &library{
		update: func(key int, value []byte) error {
			block := make([]byte, disk.BlockSize)
			copy(block, value)
			// Keys share blocks here: the journal has no locks, and who writes a block writes all of it.
			return j.Commit([]journal.Write{{Addr: p.Home() + uint64(key)%keyBlocks, Data: block}}, true)
		},
		close: end,
	}, nil
}

// keyBlocks is how many blocks have the keys.
const keyBlocks = (keys + txn.BlockSize/txn.SmallSize - 1) / (txn.BlockSize / txn.SmallSize)

func openTxn(folder string) (*library, error) {
	j, p, end, err := aJournal(folder)
	if err != nil {
		return nil, err
	}
	region := txn.Region{Start: p.Home(), Count: keyBlocks, Kind: txn.Smalls}
	sys, err := txn.Open(j, region)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	return &library{
		update: func(key int, value []byte) error {
			const each = txn.BlockSize / txn.SmallSize
			at := txn.Addr{Block: region.Start + uint64(key/each), Index: key % each}
			return sys.Run(true, func(t *txn.Txn) error {
				object, err := t.ReadForUpdate(at)
				if err != nil {
					return err
				}
				copy(object, value)
				return t.Write(at, object)
			})
		},
		close: end,
	}, nil
}

func openBolt(folder string, batch bool) (*library, error) {
	db, err := bbolt.Open(filepath.Join(folder, "db"), 0o600, nil)
	if err != nil {
		return nil, err
	}
	name := []byte("keys")
	put := func(tx *bbolt.Tx, key int, value []byte) error {
		return tx.Bucket(name).Put(binary.BigEndian.AppendUint64(nil, uint64(key)), value)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket(name)
		for key := 0; err == nil && key < keys; key++ {
			err = put(tx, key, make([]byte, valueSize))
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	transact := db.Update
	if batch {
		transact = db.Batch
	}
	return &library{
		update: func(key int, value []byte) error {
			return transact(func(tx *bbolt.Tx) error { return put(tx, key, value) })
		},
		close: db.Close,
	}, nil
}

// pebble has the program of the other module do the updates.
func (s *site) pebble(ctx context.Context, writers int) (float64, error) {
	folder, err := s.prepared("pebble", func(folder string) error { return buildPebble(ctx, folder) })
	if err != nil {
		return 0, err
	}
	out, err := rig.Command(ctx, filepath.Join(folder, "pebble"),
		s.dir, fmt.Sprint(keys), fmt.Sprint(writers), s.duration.String())
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(out, 64)
}

// pebbleModule is where it lies in the repository.
const pebbleModule = "bench/eval/pebble"

func buildPebble(ctx context.Context, folder string) error {
	c := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(folder, "pebble"), ".")
	c.Dir, c.SysProcAttr = pebbleModule, rig.Apart
	_, err := rig.Output(c)
	return err
}
