package disk

import (
	"testing"

	"golang.org/x/sys/unix"
)

// cached counts the pages of d in the page cache.
func cached(t *testing.T, d *File) (all, dirty uint64) {
	t.Helper()
	var st unix.Cachestat_t
	err := withFD(d.conn, func(fd int) error {
		return unix.Cachestat(uint(fd), &unix.CachestatRange{}, &st, 0)
	})
	if err != nil {
		t.Skip("the kernel does not tell what it caches:", err)
	}
	return st.Cache, st.Dirty
}

// What the page cache has of a volume, written or not, is written and dropped when the volume
// is opened: what is read is what the medium holds.
func TestOpenReadsTheMedium(t *testing.T) {
	const blocks = 600
	for _, opts := range []FileOptions{{}, {ReadOnly: true}} {
		for _, synced := range []bool{false, true} {
			d := createDirect(t, blocks)    // elsewhere the page cache may be the medium
			for a := range uint64(blocks) { // short writes go through the cache
				if err := d.WriteAt(a, blocksOf(1, nil)); err != nil {
					t.Fatal(err)
				}
			}
			if synced {
				if err := d.Barrier(); err != nil {
					t.Fatal(err)
				}
			}
			if all, _ := cached(t, d); all < blocks {
				t.Fatalf("%d of %d blocks are in the cache", all, blocks)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			d, err := OpenFile(d.Path(), opts)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if all, dirty := cached(t, d); all != 0 || dirty != 0 {
				t.Errorf("%+v, synced: %v: %d pages are still in the cache, %d of them dirty", opts, synced, all, dirty)
			}
		}
	}
}
