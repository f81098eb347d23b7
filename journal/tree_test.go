package journal

import (
	"slices"
	"testing"

	"tansy/internal/runtime/pages"
)

// TestTreeBlocks: the pages above a block are those that the format says, up to the root, whatever the size of the
// tree.
func TestTreeBlocks(t *testing.T) {
	for _, n := range []uint64{1, 255, 256, 600, 70_000, 1 << 20} {
		p := coded(roomy, n)
		size := p.Home() + n
		for _, x := range []uint64{0, 1, 254, 255, 256, n / 2, n - 1} {
			if x >= n {
				continue
			}
			var want []uint64
			for node := x; node < n+p.Pages-1; {
				page := node / pages.PerPage
				want = append(want, p.Start-2*p.Pages+2*page)
				node = n + page
			}
			for _, q := range want {
				first, last := p.Below(q, size)
				for _, b := range []uint64{first, (first + last) / 2, last} {
					if !slices.Contains(slices.Collect(p.TreeBlocks(b, size)), q) {
						t.Errorf("%d blocks: block %d of those from %d to %d is not below page %d", n, b, first, last, q)
					}
				}
			}
			if got := slices.Collect(p.TreeBlocks(p.Home()+x, size)); !slices.Equal(got, want) {
				t.Errorf("%d blocks, block %d: %v, not %v", n, x, got, want)
			}
		}
		for _, a := range []uint64{p.Start, p.Home() - 1, size, size + 255} {
			if b, ok := p.TreeBlock(a, size); ok {
				t.Errorf("%d blocks: block %d, which has no code, has it in %d", n, a, b)
			}
		}
	}
	if _, ok := roomy.TreeBlock(roomy.Home(), roomy.Home()+10); ok {
		t.Error("there is a page, and no tree")
	}
}
