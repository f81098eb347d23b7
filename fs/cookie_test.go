package fs

import (
	"fmt"
	"math/rand"
	"testing"
)

// A cookie is what the client says it is: any number is answered, and what
// comes lies behind it.
func TestAnyCookie(t *testing.T) {
	v := memFS(t, 20000, 6000, Options{})
	for i := range 3000 {
		create(t, v, root, v.Root(), fmt.Sprintf("%0*d", 1+i%200, i))
	}
	size := func(n int) int { return n }
	cookies := []uint64{1, 2, 3, 4, 63, 64, 65, 1<<31 - 1, 1 << 31, 1 << 32, 1 << 47, 1<<63 - 1, 1 << 63,
		1<<64 - 2, 1<<64 - 1}
	for range 200 {
		cookies = append(cookies, rand.Uint64()>>rand.Intn(64))
	}
	for _, c := range cookies {
		l, err := v.Readdir(root, v.Root(), c, 0, false, Limit{Bytes: 1000, Size: size})
		want(t, err, 0)
		if len(l.Entries) == 0 && !l.EOF {
			t.Fatalf("cookie %d: nothing, and not the end", c)
		}
		for _, e := range l.Entries {
			if e.Cookie <= c {
				t.Fatalf("cookie %d: an entry with cookie %d", c, e.Cookie)
			}
		}
	}
}
