package txn_test

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log"

	"tansy/disk"
	"tansy/journal"
	"tansy/txn"
)

// openJournal makes a journal on a new device in memory. On a real one, format
// once, keep the parameters, and open the device with disk.OpenFile.
func openJournal(blocks uint64) *journal.Journal {
	d := disk.NewMem(blocks * disk.BlockSize)
	p := journal.Params{Start: 0, Units: 16, Ring: 2000}
	if _, err := rand.Read(p.Key[:]); err != nil {
		log.Fatal(err)
	}
	if err := journal.Format(d, p); err != nil {
		log.Fatal(err)
	}
	j, err := journal.Open(d, p, journal.Options{})
	if err != nil {
		log.Fatal(err)
	}
	return j
}

// Two accounts of 256 bytes lie in one block. A transfer changes both or none,
// also if the machine stops in the middle of it.
func Example() {
	j := openJournal(10000)
	defer j.Close()
	accounts := txn.Region{Start: 3000, Count: 10, Kind: txn.Smalls}
	sys, err := txn.Open(j, accounts)
	if err != nil {
		log.Fatal(err)
	}
	alice, bob := txn.Addr{Block: 3000, Index: 0}, txn.Addr{Block: 3000, Index: 1}
	add := func(t *txn.Txn, a txn.Addr, n int64) error {
		p, err := t.ReadForUpdate(a)
		if err != nil {
			return err
		}
		balance := int64(binary.LittleEndian.Uint64(p)) + n
		if balance < 0 {
			return fmt.Errorf("%d short", -balance)
		}
		binary.LittleEndian.PutUint64(p, uint64(balance))
		return t.Write(a, p)
	}
	transfer := func(n int64) error {
		return sys.Run(true, func(t *txn.Txn) error {
			if err := add(t, bob, n); err != nil {
				return err
			}
			return add(t, alice, -n)
		})
	}

	err = sys.Run(true, func(t *txn.Txn) error { return add(t, alice, 100) })
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(transfer(70))
	fmt.Println(transfer(70)) // bob's part is undone

	err = sys.View(func(t *txn.Txn) error {
		a, err := t.Read(alice)
		if err != nil {
			return err
		}
		b, err := t.Read(bob)
		if err != nil {
			return err
		}
		fmt.Println(binary.LittleEndian.Uint64(a), binary.LittleEndian.Uint64(b))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// <nil>
	// 40 short
	// 30 70
}

// A set of numbers, one bit each, and its size in a block of its own.
func ExampleTxn_WriteBit() {
	j := openJournal(10000)
	defer j.Close()
	sys, err := txn.Open(j, txn.Region{Start: 3000, Count: 4, Kind: txn.Bits},
		txn.Region{Start: 3004, Count: 1, Kind: txn.Blocks})
	if err != nil {
		log.Fatal(err)
	}
	size := txn.Addr{Block: 3004}
	insert := func(x int) error {
		return sys.Run(false, func(t *txn.Txn) error {
			a := txn.Addr{Block: 3000 + uint64(x/32768), Index: x % 32768}
			in, err := t.ReadBit(a)
			if err != nil || in {
				return err
			}
			if err := t.WriteBit(a, true); err != nil {
				return err
			}
			p, err := t.ReadForUpdate(size)
			if err != nil {
				return err
			}
			p[0]++
			return t.Write(size, p)
		})
	}
	for _, x := range []int{7, 100000, 7, 8} {
		if err := insert(x); err != nil {
			log.Fatal(err)
		}
	}
	if err := sys.Flush(); err != nil { // now all of it is durable
		log.Fatal(err)
	}
	t := sys.Begin() // without Run: a conflict would be an error
	defer t.Abort()
	p, err := t.Read(size)
	fmt.Println(p[0], err)
	// Output: 3 <nil>
}
