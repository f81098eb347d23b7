// Command pebble does small durable updates of a Pebble store, for bench/eval. It is a module of its own, so that what
// Pebble needs is needed by nothing else.
//
//	pebble DIR KEYS WRITERS DURATION
//
// It prints the number of updates per second.
package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// valueSize is that of each value in bytes.
const valueSize = 100

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pebble:", err)
		os.Exit(1)
	}
}

func run(args []string) (err error) {
	if len(args) != 4 {
		return errors.New("usage: pebble DIR KEYS WRITERS DURATION")
	}
	keys, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	writers, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	d, err := time.ParseDuration(args[3])
	if err != nil {
		return err
	}
	db, err := pebble.Open(filepath.Join(args[0], "db"), &pebble.Options{Logger: silent{}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := load(db, keys); err != nil {
		return err
	}
	rate, err := update(db, keys, writers, d)
	if err != nil {
		return err
	}
	fmt.Println(rate)
	return nil
}

// silent is a log for nobody.
type silent struct{}

func (silent) Infof(string, ...any)                {}
func (silent) Errorf(string, ...any)               {}
func (silent) Fatalf(format string, values ...any) { panic(fmt.Sprintf(format, values...)) }

func key(i int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(i)) }

// load gives each key a value.
func load(db *pebble.DB, keys int) error {
	all := db.NewBatch()
	for i := range keys {
		if err := all.Set(key(i), make([]byte, valueSize), nil); err != nil {
			return err
		}
	}
	return all.Commit(pebble.Sync)
}

// update has writers give keys new values, each durable before its next one, and returns how many there were per
// second.
func update(db *pebble.DB, keys, writers int, d time.Duration) (rate float64, err error) {
	counts, errs := make([]int, writers), make([]error, writers)
	var all sync.WaitGroup
	begin := time.Now()
	for i := range writers {
		all.Go(func() {
			r, value := rand.New(rand.NewPCG(uint64(i), 1)), make([]byte, valueSize)
			for time.Since(begin) < d && errs[i] == nil {
				counts[i]++
				binary.BigEndian.PutUint64(value, uint64(counts[i]))
				errs[i] = db.Set(key(r.IntN(keys)), value, pebble.Sync)
			}
		})
	}
	all.Wait()
	took := time.Since(begin).Seconds()
	for _, c := range counts {
		rate += float64(c) / took
	}
	return rate, errors.Join(errs...)
}
