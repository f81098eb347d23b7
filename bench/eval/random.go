//go:build linux

package eval

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// What random writes, in bytes.
const (
	randomFile  = 16 << 20 // of each client
	randomWrite = 4 << 10
)

// random overwrites pages of files at random, with an fdatasync for each.
func random(options) []experiment { return randomBy(1, manyUsers) }

func randomBy(clients ...int) (es []experiment) {
	for _, n := range clients {
		es = append(es, sideBySide("writes of 4 KiB", n, func(folder string) (func(int) error, io.Closer, error) {
			f, err := randomTarget(folder)
			r := rand.New(rand.NewPCG(1, 1))
			return func(int) error { return rewrite(f, r) }, f, err
		}))
	}
	return es
}

// randomTarget makes a file of which each page has been written.
func randomTarget(folder string) (*os.File, error) {
	f, err := os.Create(filepath.Join(folder, "pages"))
	if err != nil {
		return nil, err
	}
	for range randomFile / pieceSize {
		if _, err := f.Write(piece(0)); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

func rewrite(f *os.File, r *rand.Rand) error {
	from := r.IntN(pieceSize)
	at := int64(r.IntN(randomFile/randomWrite)) * randomWrite
	if _, err := f.WriteAt(noise[from:from+randomWrite], at); err != nil {
		return err
	}
	return unix.Fdatasync(int(f.Fd()))
}
