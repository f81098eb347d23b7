package fs_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"sync"
	"testing"

	"tansy/fs"
)

var root = &fs.Cred{}

// Two WRITEs to the same bytes happen one after the other, and a READ sees a
// WRITE as a whole or not at all.
func TestConcurrentWrites(t *testing.T) {
	v := newVolume(t, fs.Options{})
	n, err := v.Create(root, v.Root(), []byte("f"), fs.Guarded, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	const size = 5*fs.BlockSize + 77
	const off = 1000
	if _, _, _, err := v.Write(root, n.Handle, 0, make([]byte, off+size), fs.FileSync); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for k := range 40 {
				if i%2 == 0 {
					b := bytes.Repeat([]byte{byte(i*40 + k)}, size)
					if _, _, _, err := v.Write(root, n.Handle, off, b, fs.Stability(k%3)); err != nil {
						t.Error(err)
					}
				}
				b, _, _, err := v.Read(root, n.Handle, off, size)
				if err != nil {
					t.Error(err)
				} else if c := bytes.Count(b, b[:1]); c != size {
					t.Errorf("bytes of two writes: %d of %d", c, size)
				}
			}
		}()
	}
	wg.Wait()
}

// Many clients change one tree; afterwards it is a tree, link counts are right,
// and nothing has failed that must not.
func TestConcurrentTree(t *testing.T) {
	v := newVolume(t, fs.Options{})
	seed := seed(t)
	var dirs []fs.Handle
	for i := range 4 {
		n, err := v.Mkdir(root, v.Root(), []byte(fmt.Sprint("d", i)), nil)
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, n.Handle)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := rand.New(rand.NewSource(seed + int64(g)))
			mine := append([]fs.Handle{v.Root()}, dirs...)
			for range 250 {
				d, e := mine[r.Intn(len(mine))], mine[r.Intn(len(mine))]
				a, b := []byte{'a' + byte(r.Intn(6))}, []byte{'a' + byte(r.Intn(6))}
				var err error
				switch r.Intn(9) {
				case 0, 1:
					_, err = v.Create(root, d, a, fs.Unchecked, nil, 0)
				case 2:
					var n fs.Node
					if n, err = v.Mkdir(root, d, a, nil); err == nil {
						mine = append(mine, n.Handle)
					}
				case 3:
					_, err = v.Remove(root, d, a)
				case 4:
					_, err = v.Rmdir(root, d, a)
				case 5, 6:
					_, _, err = v.Rename(root, d, a, e, b)
				case 7:
					var n fs.Node
					if n, err = v.Lookup(root, d, a); err == nil && n.Attr.Type == fs.Regular {
						_, _, err = v.Link(root, n.Handle, e, b)
					}
				case 8:
					_, err = v.Readdir(root, d, 0, 0, true, fs.Limit{Bytes: 1000, Size: func(n int) int { return n + 24 }})
				}
				if errors.Is(err, fs.ErrIO) || errors.Is(err, fs.ErrServerFault) || errors.Is(err, fs.ErrNoSpc) || errors.Is(err, fs.ErrROFS) {
					t.Error(err)
					return
				}
			}
		}()
	}
	wg.Wait()
	checkTree(t, v)
}

// checkTree walks from the root: ".." leads back, every link is counted.
func checkTree(t testing.TB, v *fs.FS) {
	links := map[fs.Handle]uint32{}
	nlink := map[fs.Handle]uint32{}
	var walk func(d, up fs.Handle, depth int)
	walk = func(d, up fs.Handle, depth int) {
		if depth > 10000 {
			t.Fatal("a cycle")
		}
		l, err := v.Readdir(root, d, 0, 0, true, fs.Limit{Bytes: 1 << 20, Size: func(n int) int { return n + 24 }})
		if err != nil || !l.EOF {
			t.Fatal(err)
		}
		nlink[d] = l.Dir.Nlink
		links[d] += 2
		for _, e := range l.Entries {
			switch {
			case string(e.Name) == ".":
				if e.Handle != d {
					t.Fatal(". is", e.Handle, "in", d)
				}
			case string(e.Name) == "..":
				if e.Handle != up {
					t.Fatal(".. is", e.Handle, "in", d, "below", up)
				}
			case e.Attr.Type == fs.Directory:
				if links[e.Handle] != 0 {
					t.Fatal("two names for directory", e.Handle)
				}
				links[d]++
				walk(e.Handle, d, depth+1)
			default:
				links[e.Handle]++
				nlink[e.Handle] = e.Attr.Nlink
			}
		}
	}
	walk(v.Root(), v.Root(), 0)
	for h, n := range links {
		if nlink[h] != n {
			t.Errorf("%v has link count %d, but %d links", h, nlink[h], n)
		}
	}
}
