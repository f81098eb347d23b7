// Package journal makes writes of several blocks atomic and durable on a disk.Disk.
//
// A Commit of some blocks happens as a whole or not at all, whatever crashes, and in
// the order of the commits. A commit that was waited for is durable: the call returned
// after the device's barrier did. Commits that come together share one barrier.
//
//	Format   makes an empty journal on a device
//	Open     recovers the journal after a crash, or a clean end
//	Inspect  reads what a crash left in the journal, and the codes of what is home, and changes nothing
//
// The journal keeps committed blocks in memory until they are home, and a bounded
// cache of others. How it works, and the proof that it does, is in verified/journal;
// this package starts its threads and turns its answers into Go errors.
//
// # On the device
//
// Block Start is the header, then come Params.Units units of UnitBlocks blocks, then a ring
// of Params.Ring data blocks, then a copy of the header. Every block after these is a home block: an
// address for Read and Commit. The records are described in internal/extern/dlog. In the
// 2 Params.Pages blocks before Start lies the tree of codes (verified/journal/codes.dfy), by which Read tells what was
// last written to a block from anything else. Blocks before these are not touched.
//
// What is committed is written to the log, and later home. A unit takes a group's
// descriptor and behind it the group's data, if they fit; those of a larger group go to
// the ring. If the journal is told which home blocks are free (Params.Bitmap), large data
// for these need not be written twice: see Bulk.
package journal

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"tansy/disk"
	"tansy/internal/ablation"
	"tansy/internal/extern/dbytes"
	"tansy/internal/extern/ddisk"
	"tansy/internal/extern/dlog"
	"tansy/internal/gen/codeplaces"
	"tansy/internal/gen/journalm"
	"tansy/internal/gen/journalthreads"
	"tansy/internal/gen/recoverm"
	"tansy/internal/gen/treeofcodes"
)

// Params say where the journal lies and with which key its records are sealed. They
// never change in the life of a volume.
type Params struct {
	Start uint64   // block of the header
	Pages uint64   // pages of the tree of codes, PagesFor the home blocks; 0: none, what is read at home is believed
	Units uint64   // number of units: the number of groups in the log; at least 2
	Ring  uint64   // number of data blocks of the ring; at least MinRing
	Key   [32]byte // random, new for every Format
	UUID  [16]byte // of the volume

	// Which home blocks are free: blocks First up to Limit (not among them) have an
	// allocation bit each, block a's is bit a%32768 of block Bitmap+a/32768, a home block
	// below First. A crash may change the contents of a block whose bit is clear, and of
	// no other. With the zero values there are no free blocks.
	Bitmap, First, Limit uint64
}

// MinRing is the least number of data blocks of a journal's ring.
const MinRing = 1000

// UnitBlocks is the number of blocks of a unit: a descriptor and up to 15 blocks of data.
const UnitBlocks = 16

// MaxBlocks is the number of blocks a commit can have.
const MaxBlocks = dlog.GroupMax

// MaxSize is the largest size of a device in blocks. Transactions name an object by its
// block and its place among the 2^15 bits of the block, in one number of 64 bits.
const MaxSize = 1 << 48

// bitsPerBlock is the number of bits in a block of a bitmap.
const bitsPerBlock = 8 * disk.BlockSize

// Home is the first home block.
func (p Params) Home() uint64 { return p.copy() + 1 }

// copy is the block of the header's copy.
func (p Params) copy() uint64 { return p.Start + 1 + UnitBlocks*p.Units + p.Ring }

// PagesFor is the number of pages of the tree of codes of a journal with n home blocks, and whether there is
// one: a few n have none.
func PagesFor(n uint64) (pages uint64, ok bool) {
	pages = max(1, (n+252)/254)
	return pages, treeofcodes.Companion_Default___.PagesFit(n, pages)
}

// TreeBlocks are the blocks of the tree of codes that change when home block a does; each of the
// pages has two, side by side, of which the first is listed.
func (p Params) TreeBlocks(a uint64, size uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for b, ok := p.TreeBlock(a, size); ok && yield(b); {
			b, ok = p.TreeBlock(b, size)
		}
	}
}

// TreeBlock is the first of the two blocks of the page that has the code of block a: a home block, or one of
// the two blocks of a page. ok is false if none has.
func (p Params) TreeBlock(a uint64, size uint64) (b uint64, ok bool) {
	ok, b = codePlaces.PageWith(p.tree0(), p.Pages, p.Home(), size-p.Home(), a)
	return b, ok
}

// Below are some home blocks, from first to last, that have their codes in page q of the tree of codes, which is in one of the two
// blocks from q on, or in pages below that. There must be a tree.
func (p Params) Below(q, size uint64) (first, last uint64) {
	return codePlaces.Below(p.Pages, p.Home(), size-p.Home(), (q-p.tree0())/2)
}

// Depends tells whether the codes of some of the home blocks [a, end) are not known without page q of the tree of
// codes, which is in one of the two blocks from q on.
func (p Params) Depends(q, a, end, size uint64) bool {
	return codePlaces.Depends(p.tree0(), p.Pages, p.Home(), size-p.Home(), q, a, end)
}

// tree0 is the first block of the tree of codes.
func (p Params) tree0() uint64 { return p.Start - 2*p.Pages }

// Where the codes of blocks lie (verified/journal/codeplaces.dfy).
var codePlaces = codeplaces.Companion_Default___

// tree is the tree of codes over d, of size blocks.
func (p Params) tree(d *ddisk.Disk, s *dlog.Seal, g *dlog.Pages, size uint64) *treeofcodes.Tree {
	t := treeofcodes.New_Tree_()
	t.Ctor__(d, s, g, p.tree0(), p.Pages, p.Home(), size-p.Home())
	return t
}

// pageShare is how many blocks of the cache there are for one page of the tree of codes in it.
const pageShare = 16

// DefaultLinger is of Options.Linger.
const DefaultLinger = time.Second

// DefaultCacheBytes is of Options.CacheBytes.
const DefaultCacheBytes = 64 << 20

// DefaultPinnedBytes and MinPinnedBytes are of Options.PinnedBytes.
const (
	DefaultPinnedBytes = 64 << 20 // the more are installed at once, the fewer pages of the tree are written for each
	MinPinnedBytes     = 4 << 20  // each half has to have room for a group
)

// pinned is how many blocks that are in the log may wait for the installer, and at how many it starts. As many
// again as may wait it may be busy with.
func pinned(bytes uint64) (most, start uint64) {
	most = bytes / 2 / disk.BlockSize
	return most, most / 2
}

var (
	// ErrTooLarge is the error of a commit of more than MaxBlocks blocks.
	ErrTooLarge = errors.New("journal: too many blocks for one commit")
	// ErrReadOnly is, or is wrapped by, the error of everything but Read after the device failed.
	ErrReadOnly = errors.New("journal: read-only after a device error")
	// ErrRange is the error for an address that is no home block.
	ErrRange = errors.New("journal: not a home block")
	// ErrClosed is the error after Close.
	ErrClosed = errors.New("journal: closed")
	// ErrParams is the error for a journal that does not fit its device.
	ErrParams = errors.New("journal: bad parameters")
	// ErrDamaged is the error for a device that does not hold the journal it should: both
	// headers are damaged, or a group in the midst of the log is.
	ErrDamaged = errors.New("journal: damaged")
	// ErrNotAsWritten is wrapped by the error of a Read of a block at home that is not what was last written
	// there, or whose code cannot be known because of such a block.
	ErrNotAsWritten = errors.New("the device does not hold what was last written there")
	// ErrNotOwner is, or is wrapped by, the error of everything but Read after it was seen that
	// another server has opened the journal.
	ErrNotOwner = ddisk.ErrNotOwner
)

func (p Params) check(d disk.Disk) error {
	const lim = 1 << 32
	switch {
	case p.Start >= lim || p.Units < 2 || p.Units >= lim || p.Ring < MinRing || p.Ring >= lim:
		return fmt.Errorf("%w: header at block %d, %d units, ring of %d blocks", ErrParams, p.Start, p.Units, p.Ring)
	case p.Home() > d.Size() || d.Size() > MaxSize:
		return fmt.Errorf("%w: the journal ends at block %d, the device at %d", ErrParams, p.Home(), d.Size())
	case p.Pages > 0 && (2*p.Pages > p.Start || p.Home() == d.Size() || !treeofcodes.Companion_Default___.PagesFit(d.Size()-p.Home(), p.Pages)):
		return fmt.Errorf("%w: a tree of codes of %d pages before block %d for %d blocks", ErrParams, p.Pages, p.Start, d.Size()-p.Home())
	case p.First < p.Limit && (p.Bitmap < p.Home() || p.Limit > d.Size() || p.Bitmap >= p.First || p.Limit/bitsPerBlock >= p.First-p.Bitmap):
		return fmt.Errorf("%w: the bitmap at block %d of blocks %d to %d, the device ends at %d", ErrParams, p.Bitmap, p.First, p.Limit, d.Size())
	}
	return nil
}

// NewSeal is what verified code seals a new journal on d with. It is an error if the journal does not fit d.
func (p Params) NewSeal(d disk.Disk) (*dlog.Seal, error) {
	if err := p.check(d); err != nil {
		return nil, err
	}
	return dlog.NewSeal(p.Key, p.UUID, p.Home()), nil
}

// Format makes an empty journal on d. The home blocks stay what they are. p.Key must
// not have been used before. A crash meanwhile leaves no journal.
func Format(d disk.Disk, p Params) error {
	seal, err := p.NewSeal(d)
	if err != nil {
		return err
	}
	dd := ddisk.New(d)
	if !recoverm.Companion_Default___.Format(dd, seal, p.Start, p.Units, p.Ring) {
		return dd.Err()
	}
	return nil
}

// Options are for one opening of a journal.
type Options struct {
	CacheBytes uint64 // bound on the memory for clean blocks, at least 4 MiB; 0 = DefaultCacheBytes
	// PinnedBytes bounds the memory for blocks that are in the log and not home yet, from MinPinnedBytes to 1 GiB; 0 =
	// DefaultPinnedBytes. What is not in the log yet comes on top, up to 4 MiB; and, up to half as much, what was written to its place
	// in the volume and is not durable yet.
	PinnedBytes uint64
	Log         *slog.Logger  // nil = slog.Default()
	Linger      time.Duration // when a commit that nobody waits for becomes durable all the same; 0 = DefaultLinger
	// OnDamage, if not nil, is called when a block is found damaged (see Journal.Damaged), for most of them once. It must not
	// wait, nor use the journal.
	OnDamage func(block uint64)
}

// Journal is an open journal. Its methods may be called concurrently.
type Journal struct {
	d      *ddisk.Disk
	core   *journalm.Journal
	p      Params
	home   uint64
	size   uint64
	log    *slog.Logger
	quit   chan struct{}
	end    sync.WaitGroup
	closed atomic.Bool
}

// Open opens the journal on d: it writes home what is in the log, and starts the
// background threads. Close ends them.
func Open(d disk.Disk, p Params, o Options) (*Journal, error) {
	if o.CacheBytes == 0 {
		o.CacheBytes = DefaultCacheBytes
	}
	if o.PinnedBytes == 0 {
		o.PinnedBytes = DefaultPinnedBytes
	}
	o.PinnedBytes = min(max(o.PinnedBytes, MinPinnedBytes), 1<<30)
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Linger == 0 {
		o.Linger = DefaultLinger
	}
	j, err := recoverJournal(d, p, o)
	if err != nil {
		return nil, err
	}
	j.quit = make(chan struct{})
	j.end.Add(4)
	go func() { defer j.end.Done(); journalthreads.Companion_Default___.Logger(j.core) }()
	go func() { defer j.end.Done(); journalthreads.Companion_Default___.Installer(j.core) }()
	go func() { defer j.end.Done(); j.tick(o.Linger) }()
	go func() { defer j.end.Done(); j.watch() }()
	return j, nil
}

// split is how many blocks of a cache are for blocks, and how many for pages of the tree of codes.
func split(cacheBytes uint64) (blocks, pages int) {
	all := int(min(cacheBytes/disk.BlockSize, 1<<31))
	return all - all/pageShare, all / pageShare
}

// SlowRead is the time from which on a read of the device is slow: it is worth to wait for memory for what was read, and to read ahead.
const SlowRead = 500 * time.Microsecond

// slowness tells whether the device was slow of late. The caller has a mutex around it.
func slowness(d *ddisk.Disk) func() bool {
	const enough = 64 // reads
	var reads int64
	var took time.Duration
	slow := false
	return func() bool {
		if n, t := d.Reading(); n-reads >= enough {
			slow = (t-took)/time.Duration(n-reads) >= SlowRead
			reads, took = n, t
		}
		return slow
	}
}

func recoverJournal(d disk.Disk, p Params, o Options) (*Journal, error) {
	if err := p.check(d); err != nil {
		return nil, err
	}
	if ablation.On(ablation.NoCodes) {
		p.Pages = 0
	}
	dd := ddisk.New(ablation.Disk(d))
	dd.Pace(p.Start, p.Home())
	stop := reportProgress(dd, o.Log)
	defer stop()
	blocks, pages := split(o.CacheBytes)
	most, start := pinned(o.PinnedBytes)
	cache := dlog.NewCache(blocks, slowness(dd))
	if p.First >= p.Limit {
		p.Bitmap, p.First, p.Limit = 0, 1, 0
	}
	seal := dlog.NewSeal(p.Key, p.UUID, p.Home())
	tree := p.tree(dd, seal, dlog.NewPages(pages), d.Size())
	io, damaged, core := recoverm.Companion_Default___.Recover(dd, seal, dlog.NewMutex(), cache, tree, p.Start, p.Units, p.Ring, p.Bitmap, p.First, p.Limit, most, start)
	switch {
	case !io && dd.Err() == nil && dd.ReadErr() == nil:
		return nil, fmt.Errorf("%w: a page of the tree of codes, in the blocks from %d up to %d, is not what was last written there", ErrDamaged, p.Start-2*p.Pages, p.Start)
	case !io:
		return nil, fmt.Errorf("journal: recovery: %w", errors.Join(dd.Err(), dd.ReadErr()))
	case damaged || core == nil:
		return nil, diagnose(d, p, damaged)
	}
	j := &Journal{d: dd, core: core, p: p, home: p.Home(), size: d.Size(), log: o.Log}
	core.Notes.OnDamage(func(a uint64) {
		j.tellDamage(a)
		if o.OnDamage != nil {
			o.OnDamage(a)
		}
	})
	return j, nil
}

// reportProgress logs how far recovery is, every second until stop is called.
func reportProgress(d *ddisk.Disk, log *slog.Logger) (stop func()) {
	quit := make(chan struct{})
	go func() {
		t := time.NewTicker(time.Second)
		defer t.Stop()
		for {
			select {
			case <-quit:
				return
			case <-t.C:
				c := d.Counts()
				log.Info("recovering the journal", "blocks_read", c.ReadBlocks, "blocks_written", c.WrittenBlocks)
			}
		}
	}()
	return func() { close(quit) }
}

// tick makes commits that nobody waits for durable before long.
func (j *Journal) tick(every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-j.quit:
			return
		case <-t.C:
			journalthreads.Companion_Default___.Tick(j.core)
		}
	}
}

// watchEvery is how often the header is looked at.
const watchEvery = time.Second

// watch looks whether the journal is still this server's. And while nothing is committed it has
// the log emptied: damage to the last group of a log cannot be told from a crash while it
// was being written, damage to any other can.
func (j *Journal) watch() {
	t := time.NewTicker(watchEvery)
	defer t.Stop()
	var last uint64
	for {
		select {
		case <-j.quit:
			return
		case <-t.C:
		}
		if j.d.Err() != nil {
			continue
		}
		if !journalthreads.Companion_Default___.Guard(j.core) {
			j.log.Error("the journal stops: nothing is acknowledged any more", "error", j.d.Err())
		}
		at := j.Position()
		if at.Commits == last && at.Home != at.Logged {
			journalthreads.Companion_Default___.Settle(j.core)
		}
		last = at.Commits
	}
}

// A Write is a block and its new contents.
type Write struct {
	Addr uint64
	Data []byte // disk.BlockSize bytes
}

// Commit writes blocks, all or none of them. With wait it returns when they are
// durable; without, they are soon, in the order of the commits. Later writes of one
// address win. The data is copied.
//
// After an error from the device it is not known whether a commit that was waited for
// is durable; the journal is read-only then.
func (j *Journal) Commit(ws []Write, wait bool) error {
	if j.closed.Load() {
		return ErrClosed
	}
	m := dlog.NewBMap()
	for _, w := range ws {
		if w.Addr < j.home || w.Addr >= j.size {
			return fmt.Errorf("%w: %d", ErrRange, w.Addr)
		}
		b := dbytes.NewBytes(dbytes.BlkSize)
		if copy(b.Data, w.Data) != disk.BlockSize || len(w.Data) != disk.BlockSize {
			return fmt.Errorf("journal: %d bytes for block %d", len(w.Data), w.Addr)
		}
		m.Put(w.Addr, dbytes.Freeze(b))
	}
	st, _ := journalthreads.Companion_Default___.Commit(j.core, m, wait)
	return j.status(st)
}

// Bulk wishes that the next contents committed to block a go straight home and not
// through the log, which writes them twice. It promises nothing: the wish is granted if the
// block's allocation bit is known to be clear on the device, so that a crash need not leave
// its contents alone. A commit is as atomic and as durable as without the wish.
func (j *Journal) Bulk(a uint64) {
	if !ablation.On(ablation.NoDirect) {
		j.core.Notes.Wish(a)
	}
}

func (j *Journal) status(st uint32) error {
	switch st {
	case 0:
		return nil
	case 2:
		return ErrTooLarge
	}
	return j.Failure()
}

// Failure is the error of everything but Read, if the device failed (a wrapped
// ErrReadOnly, with the cause).
func (j *Journal) Failure() error {
	if err := j.d.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	if found := j.Damaged(); len(found) > 0 && found[0] < j.home {
		return fmt.Errorf("%w: block %d, of the tree of codes: %w", ErrReadOnly, found[0], j.why(found[0]))
	}
	return ErrReadOnly
}

// Look reads from the device whether another server has opened the journal. If one has, the journal fails for good, with an error that
// wraps ErrNotOwner. What cannot be read tells nothing.
func (j *Journal) Look() error {
	if j.d.Err() == nil {
		journalthreads.Companion_Default___.Guard(j.core)
	}
	return j.Lost()
}

// Lost is an error that wraps ErrNotOwner if another server was seen to have opened the journal.
func (j *Journal) Lost() error {
	if err := j.d.Err(); errors.Is(err, ErrNotOwner) {
		return err
	}
	return nil
}

// ReadFailure is the error of the last read of the device that failed; if none did, but a block was found damaged, it
// wraps ErrNotAsWritten.
func (j *Journal) ReadFailure() error {
	if err := j.d.ReadErr(); err != nil {
		return err
	}
	if found := j.Damaged(); len(found) > 0 {
		return fmt.Errorf("%d damaged blocks, the first is block %d: %w", len(found), found[0], ErrNotAsWritten)
	}
	return nil
}

// Damaged lists the blocks that were found not to be what was last written there, as far as they have been
// read since Open. Those before the first home block are pages of the tree of codes.
func (j *Journal) Damaged() []uint64 { return j.core.Notes.DamagedBlocks() }

// readError is why block a could not be read.
func (j *Journal) readError(a uint64) error {
	if j.core.Notes.IsDamaged(a) {
		return ErrNotAsWritten
	}
	for b := range j.p.TreeBlocks(a, j.size) {
		if j.core.Notes.IsDamaged(b) {
			return fmt.Errorf("its code, in block %d or %d, is not known: %w", b, b+1, j.why(b))
		}
	}
	if err := j.d.ReadErr(); err != nil {
		return err
	}
	return ErrNotAsWritten
}

// why is what is wrong with a page of the tree of codes whose first place is block a: the device cannot
// read it, or it is damaged.
func (j *Journal) why(a uint64) error {
	err := j.d.ReadErr()
	if e := new(disk.Error); errors.As(err, &e) && (e.Block == a || e.Block == a+1) {
		return err
	}
	return ErrNotAsWritten
}

func (j *Journal) tellDamage(a uint64) {
	if a < j.home {
		j.log.Error("a page of the tree of codes is damaged: what it stands for cannot be read", "block", a, "error", j.why(a), "advice", "stop the server; tansy repair makes the page anew")
		return
	}
	j.log.Error("a block is damaged: "+ErrNotAsWritten.Error()+"; reading it fails", "block", a, "advice", "when it suits, stop the server and run tansy check, which says whose it is")
}

// Read copies the latest committed contents of block a to buf (disk.BlockSize bytes).
func (j *Journal) Read(a uint64, buf []byte) error {
	if j.closed.Load() {
		return ErrClosed
	}
	if a < j.home || a >= j.size {
		return fmt.Errorf("%w: %d", ErrRange, a)
	}
	h := dlog.NewHold()
	defer h.End()
	ok, b := journalthreads.Companion_Default___.Read(j.core, h, a)
	if !ok {
		return fmt.Errorf("journal: block %d: %w", a, j.readError(a))
	}
	copy(buf, b.Data())
	return nil
}

// Flush makes everything committed so far durable.
func (j *Journal) Flush() error {
	if j.closed.Load() {
		return ErrClosed
	}
	return j.flush()
}

func (j *Journal) flush() error {
	if ok, _ := journalthreads.Companion_Default___.Flush(j.core); !ok {
		return j.Failure()
	}
	return nil
}

// Close makes everything durable, empties the log, and ends the threads. No other
// call may be under way. It does not close the device.
func (j *Journal) Close() error {
	if j.closed.Swap(true) {
		return ErrClosed
	}
	err := j.flush()
	if err == nil {
		journalthreads.Companion_Default___.Drain(j.core)
		if j.d.Err() != nil {
			j.log.Warn("the journal is durable, but could not be emptied", "error", j.d.Err())
		}
	}
	journalthreads.Companion_Default___.Stop(j.core)
	close(j.quit)
	j.end.Wait()
	return err
}

// Stats are counts since Open.
type Stats struct {
	Commits  uint64 // commits accepted
	Durable  uint64 // commits known to be durable
	Groups   uint64 // group commits
	Installs uint64 // times the log was emptied
	ddisk.Counts

	// The block cache. What is committed, but not home yet, is found elsewhere.
	Cached, CacheLimit     int    // clean blocks in the cache, and how many it has room for
	CacheHits, CacheMisses uint64 // reads of a block

	// The log: groups that are not home yet, of Units; and of the data blocks of large ones, of Ring.
	Units, UnitsUsed, Ring, RingUsed uint64
}

// Reading returns how many reads of the device have ended so far, and the time that these took together.
func (j *Journal) Reading() (reads int64, took time.Duration) { return j.d.Reading() }

// Stats returns the counts so far.
func (j *Journal) Stats() Stats {
	c := j.core
	c.Mu.Lock()
	defer c.Mu.Unlock()
	s := Stats{
		Commits: c.Nvs, Durable: c.Nlb, Groups: c.Notes.Get(5), Installs: c.Notes.Get(6), Counts: j.d.Counts(),
		Cached: c.Cache.Len(), CacheLimit: c.Cache.Limit(),
		Units: c.Nd, UnitsUsed: c.Eq - c.Hq, Ring: c.Nr, RingUsed: c.Wp - c.Lo,
	}
	s.CacheHits, s.CacheMisses = c.Cache.Asked()
	return s
}

// Broken is the error of the device after which nothing is written any more, or nil.
func (j *Journal) Broken() error { return j.d.Err() }

// Core is the verified journal, for the layer above.
func (j *Journal) Core() *journalm.Journal { return j.core }
