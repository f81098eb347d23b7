package linear

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"tansy/fs"
	"tansy/nfs/nfs3"
)

// pool are the handles that the clients of one history know. What one of them
// learns the others use at once.
type pool struct {
	top fs.Handle

	mu  sync.Mutex
	all []fs.Handle // the top first
}

func (p *pool) add(h fs.Handle) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.all {
		if x == h {
			return
		}
	}
	p.all = append(p.all, h)
}

// pick returns the top or another file, mostly a young one; it may be gone.
func (p *pool) pick(r *rand.Rand, top float64) fs.Handle {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.all)
	if r.Float64() < top {
		return p.top
	}
	return p.all[n-1-r.IntN(min(n, 6))]
}

var (
	root  = &fs.Cred{}
	users = []*fs.Cred{root, root, root, root, {UID: 1000, GID: 100, GIDs: []uint32{100, 200}}, {UID: 1001, GID: 200}}
)

func pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

func name(r *rand.Rand) string {
	if r.IntN(40) == 0 {
		return pick(r, ".", "..", "", "a/b", strings.Repeat("n", 256))
	}
	return pick(r, "a", "b", "c", "d")
}

func u32(v uint32) *uint32 { return &v }
func u64(v uint64) *uint64 { return &v }

// mixes are what histories are made of: each procedure is chosen as often as it is
// named. Some histories mix everything; the others fight for the bytes of few
// files, or for names.
var mixes = [][]uint32{
	{
		nfs3.ProcWrite, nfs3.ProcWrite, nfs3.ProcWrite, nfs3.ProcWrite, nfs3.ProcWrite, nfs3.ProcRead, nfs3.ProcRead,
		nfs3.ProcRead, nfs3.ProcRead,
		nfs3.ProcLookup, nfs3.ProcLookup, nfs3.ProcLookup, nfs3.ProcLookup, nfs3.ProcGetattr, nfs3.ProcGetattr,
		nfs3.ProcCreate, nfs3.ProcCreate, nfs3.ProcCreate, nfs3.ProcCreate, nfs3.ProcCreate, nfs3.ProcMkdir, nfs3.ProcMkdir,
		nfs3.ProcRemove, nfs3.ProcRemove, nfs3.ProcRemove, nfs3.ProcRmdir, nfs3.ProcRmdir,
		nfs3.ProcRename, nfs3.ProcRename, nfs3.ProcRename, nfs3.ProcRename, nfs3.ProcLink, nfs3.ProcLink,
		nfs3.ProcSetattr, nfs3.ProcSetattr, nfs3.ProcSetattr, nfs3.ProcReaddir, nfs3.ProcReaddir, nfs3.ProcReaddir,
		nfs3.ProcReaddir,
		nfs3.ProcSymlink, nfs3.ProcReadlink, nfs3.ProcMknod, nfs3.ProcAccess, nfs3.ProcFsstat, nfs3.ProcCommit,
		setLists, getLists,
	},
	{
		nfs3.ProcWrite, nfs3.ProcWrite, nfs3.ProcWrite, nfs3.ProcWrite, nfs3.ProcWrite, nfs3.ProcWrite, nfs3.ProcWrite,
		nfs3.ProcWrite,
		nfs3.ProcRead, nfs3.ProcRead, nfs3.ProcRead, nfs3.ProcRead, nfs3.ProcCommit, nfs3.ProcCommit, nfs3.ProcGetattr,
		nfs3.ProcSetattr,
	},
	{
		nfs3.ProcLookup, nfs3.ProcLookup, nfs3.ProcCreate, nfs3.ProcCreate, nfs3.ProcMkdir, nfs3.ProcMkdir, nfs3.ProcRemove,
		nfs3.ProcRmdir,
		nfs3.ProcRename, nfs3.ProcRename, nfs3.ProcRename, nfs3.ProcLink, nfs3.ProcReaddir, nfs3.ProcReaddir,
		nfs3.ProcGetattr, setLists, getLists,
	},
}

// choose makes up an operation.
func choose(r *rand.Rand, p *pool, mix []uint32, tag int) *call {
	c := &call{proc: pick(r, mix...), cred: pick(r, users...), name: name(r), h: p.pick(r, 0.1)}
	switch c.proc {
	case nfs3.ProcLookup, nfs3.ProcCreate, nfs3.ProcMkdir, nfs3.ProcSymlink, nfs3.ProcMknod, nfs3.ProcRemove, nfs3.ProcRmdir, nfs3.ProcRename, nfs3.ProcReaddir:
		c.h = p.pick(r, 0.6)
		if c.h == p.top && c.name == ".." {
			c.name = "." // ".." of the top is outside
		}
	}
	switch c.proc {
	case nfs3.ProcSetattr:
		c.set = sattr(r)
		if r.IntN(3) == 0 {
			c.set.Size = u64(uint64(pick(r, 0, 1, 30, 4096, 6000)))
		}
	case setLists:
		c.drawLists(r)
	case nfs3.ProcAccess:
		c.want = uint32(r.IntN(64))
	case nfs3.ProcRead:
		c.off, c.count = uint64(pick(r, 0, 0, 0, 10, 4090, 1<<40)), uint32(pick(r, 16<<10, 16<<10, 100, 0))
	case nfs3.ProcWrite:
		c.off = uint64(pick(r, 0, 0, 1, 10, 20, 4090, 5000))
		b := fmt.Appendf(nil, "<%d>", tag)
		c.data = strings.Repeat(string(b), 1+r.IntN(5))
		c.stable = fs.Stability(pick(r, 0, 0, 0, 1, 2, 2))
	case nfs3.ProcCreate:
		c.how, c.set, c.verf = fs.CreateHow(r.IntN(3)), sattr(r), uint64(1+r.IntN(2))
		if r.IntN(4) == 0 {
			c.set.Size = u64(uint64(r.IntN(50)))
		}
		if c.how == fs.Exclusive {
			c.set = fs.SetAttr{}
		}
	case nfs3.ProcMkdir:
		c.set = sattr(r)
		c.set.Mode = u32(pick(r, uint32(0o777), 0o777, 0o1777, 0o2755))
	case nfs3.ProcSymlink:
		c.target = pick(r, "target", "a", "", strings.Repeat("t", 300))
	case nfs3.ProcMknod:
		c.typ = pick(r, fs.FIFO, fs.Socket, fs.Char, fs.Regular)
	case nfs3.ProcRename:
		c.h2, c.name2 = p.pick(r, 0.6), name(r)
	case nfs3.ProcLink:
		c.h, c.h2 = p.pick(r, 0), p.pick(r, 0.7)
	case nfs3.ProcReaddir:
		c.plus, c.count = r.IntN(2) == 0, 16<<10
		if r.IntN(4) == 0 {
			c.page, c.count = true, 600
		}
	}
	return c
}

func sattr(r *rand.Rand) (s fs.SetAttr) {
	if r.IntN(2) == 0 {
		s.Mode = u32(pick(r, uint32(0o777), 0o666, 0o644, 0o600, 0o4711, 0o2775))
	}
	if r.IntN(8) == 0 {
		s.UID = u32(pick(r, uint32(0), 1000, 1001))
	}
	if r.IntN(8) == 0 {
		s.GID = u32(pick(r, uint32(0), 100, 200))
	}
	switch r.IntN(8) {
	case 0:
		s.AtimeHow, s.MtimeHow = fs.ServerTime, fs.ServerTime
	case 1:
		s.MtimeHow, s.Mtime = fs.ClientTime, fs.Time{Sec: 77, Nsec: uint32(r.IntN(1e9))}
	}
	return s
}
