package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"tansy/disk"
	"tansy/journal"
	"tansy/txn"
	"tansy/txn/volume"
)

// Each run counts, in both blocks, also the one after a crash before the volume was made.
func TestCount(t *testing.T) {
	file := filepath.Join(t.TempDir(), "records.img")
	d, err := disk.CreateFile(file, volume.Sizes{Blocks: 2000}.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for run := uint64(1); run <= 3; run++ {
		if n, err := count(file); err != nil || n != run {
			t.Fatalf("run %d: %d, %v", run, n, err)
		}
	}
	if d, err = disk.OpenFile(file, disk.FileOptions{}); err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	v, err := volume.Open(d, format, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	err = v.Run(false, func(t *txn.Txn) error {
		one, err := t.Read(v.Blocks.Object(0))
		if err != nil {
			return err
		}
		one = bytes.Clone(one)
		other, err := t.Read(v.Blocks.Object(1))
		if err == nil && (one[0] != 3 || !bytes.Equal(one, other)) {
			return os.ErrInvalid
		}
		return err
	})
	if err != nil {
		t.Error("the blocks differ, or are not those of run 3:", err)
	}
}

// What is there, and is no volume of this program, stays as it is.
func TestOther(t *testing.T) {
	file := filepath.Join(t.TempDir(), "other")
	was := bytes.Repeat([]byte("x"), int(volume.Sizes{Blocks: 2000}.Bytes()))
	if err := os.WriteFile(file, was, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := count(file)
	is, readErr := os.ReadFile(file)
	if err == nil || readErr != nil || !bytes.Equal(is, was) {
		t.Error(err, readErr)
	}
}
