package kv

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"tansy/disk"
	"tansy/test/kit/replay"
)

func Example() {
	d := disk.NewMem(minSize * disk.BlockSize) // in real life: disk.OpenFile
	if err := Create(d); err != nil {
		panic(err)
	}
	s, err := Open(d)
	if err != nil {
		panic(err)
	}
	defer s.Close()
	err = s.Update(map[string][]byte{"from": []byte("90"), "to": []byte("110")}) // both or none
	if err != nil {
		panic(err)
	}
	value, ok, err := s.Get("to")
	fmt.Printf("%s %v %v\n", value, ok, err)
	// Output: 110 true <nil>
}

// contents are all keys below n that s has.
func contents(t *testing.T, s *Store, n int) string {
	t.Helper()
	var b strings.Builder
	for i := range n {
		key := fmt.Sprint("key", i)
		v, ok, err := s.Get(key)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			fmt.Fprintf(&b, "%s=%x ", key, v)
		}
	}
	return b.String()
}

// Every crash, at any operation of the device, leaves what some first updates made, all of which
// had returned among them, and none in part.
func TestCrash(t *testing.T) {
	const keys, updates = 40, 25
	seed := replay.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	d := disk.NewSim(minSize * disk.BlockSize)
	if err := Create(d); err != nil {
		t.Fatal(err)
	}
	d.Record()
	s, err := Open(d)
	if err != nil {
		t.Fatal(err)
	}
	first := d.Ops()
	states, returned := []string{contents(t, s, keys)}, []uint64{0} // after each update, and when it had returned
	for i := range updates {
		changes := map[string][]byte{}
		for range 1 + r.IntN(6) {
			key := fmt.Sprint("key", r.IntN(keys))
			if changes[key] = bytes.Repeat([]byte{byte(i)}, r.IntN(300)); r.IntN(4) == 0 {
				changes[key] = nil
			}
		}
		if err := s.Update(changes); err != nil {
			t.Fatal(err)
		}
		states, returned = append(states, contents(t, s, keys)), append(returned, d.Ops())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for n := first; n <= d.Ops(); n++ {
		for img := range d.At(n).Crashes(2, seed+n, true) {
			s, err := Open(img)
			if err != nil {
				t.Fatal(err)
			}
			got, legal := contents(t, s, keys), false
			for i := range states {
				legal = legal || states[i] == got && (i == updates || returned[i+1] > n)
			}
			if !legal {
				t.Fatalf("crash after operation %d: %s", n, got)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Updates that come together lose nothing of each other.
func TestTogether(t *testing.T) {
	d := disk.NewSim(minSize * disk.BlockSize)
	if err := Create(d); err != nil {
		t.Fatal(err)
	}
	s, err := Open(d)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				if err := s.Update(map[string][]byte{fmt.Sprint("key", g*50+i): {1}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := strings.Count(contents(t, s, 400), "="); n != 400 {
		t.Errorf("%d keys of 400", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestMistakes(t *testing.T) {
	d := disk.NewMem(minSize * disk.BlockSize)
	if _, err := Open(d); !errors.Is(err, ErrForeign) {
		t.Errorf("a disk without a map: %v", err)
	}
	if err := Create(disk.NewMem(100 * disk.BlockSize)); err == nil {
		t.Error("a map on 100 blocks")
	}
	if err := Create(d); err != nil {
		t.Fatal(err)
	}
	s, err := Open(d)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Update(map[string][]byte{"a": {1}, "": {1}}); !errors.Is(err, ErrKey) {
		t.Errorf("an empty key: %v", err)
	}
	if err := s.Update(map[string][]byte{"a": {1}, "b": make([]byte, disk.BlockSize)}); !errors.Is(err, ErrFull) {
		t.Errorf("a value that is too large: %v", err)
	}
	if _, ok, err := s.Get("a"); ok || err != nil {
		t.Errorf("a part of an update that failed is there: %v, %v", ok, err)
	}
	if err := s.Update(map[string][]byte{"a": {}}); err != nil {
		t.Error(err)
	}
	if v, ok, err := s.Get("a"); !ok || len(v) > 0 || err != nil {
		t.Errorf("an empty value: %v, %v, %v", v, ok, err)
	}
}
