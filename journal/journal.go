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
// address for Read and Commit. The records are described in internal/runtime/seal. In the
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
	"log/slog"
	"sync"
	"time"

	"tansy/disk"
	"tansy/internal/gen/journal/journalm"
	"tansy/internal/gen/journal/journalparams"
	"tansy/internal/gen/journal/journalthreads"
	"tansy/internal/gen/journal/recoverm"
	"tansy/internal/gen/journal/treeofcodes"
	"tansy/internal/journalcore"
	"tansy/internal/runtime/blockmap"
	"tansy/internal/runtime/cache"
	"tansy/internal/runtime/clock"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/ddisk"
	"tansy/internal/runtime/mutex"
	"tansy/internal/runtime/pages"
	"tansy/internal/runtime/seal"
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
const MaxBlocks = seal.GroupMax

// MaxSize is the largest size of a device in blocks. Transactions name an object by its
// block and its place among the 2^15 bits of the block, in one number of 64 bits.
const MaxSize = 1 << 48

// bitsPerBlock is the number of bits in a block of a bitmap.
const bitsPerBlock = 8 * disk.BlockSize

// Home is the first home block.
func (p Params) Home() uint64 { return journalparams.HomeOf(p.Start, p.Units, p.Ring) }

// copy is the block of the header's copy.
func (p Params) copy() uint64 { return p.Home() - 1 }

// tree0 is the first block of the tree of codes.
func (p Params) tree0() uint64 { return p.Start - 2*p.Pages }

// tree is the tree of codes over d, of size blocks.
func (p Params) tree(d *ddisk.Disk, s *seal.Seal, g *pages.Pages, size uint64) *treeofcodes.Tree {
	return journalparams.NewTree(d, s, g, p.Start, p.Pages, p.Units, p.Ring, size)
}

// DefaultLinger is of Options.Linger.
const DefaultLinger = time.Second

// Check is an error that wraps ErrParams if there can be no such journal on d.
func (p Params) Check(d disk.Disk) error {
	switch journalparams.Check(p.Start, p.Pages, p.Units, p.Ring, p.Bitmap, p.First, p.Limit, d.Size()) {
	case journalparams.LOG():
		return fmt.Errorf("%w: header at block %d, %d units, ring of %d blocks", ErrParams, p.Start, p.Units, p.Ring)
	case journalparams.ROOM():
		return fmt.Errorf("%w: the journal ends at block %d, the device at %d", ErrParams, p.Home(), d.Size())
	case journalparams.TREE():
		return fmt.Errorf("%w: a tree of codes of %d pages before block %d for %d blocks",
			ErrParams, p.Pages, p.Start, d.Size()-p.Home())
	case journalparams.BITMAP():
		return fmt.Errorf("%w: the bitmap at block %d of blocks %d to %d, the device ends at %d",
			ErrParams, p.Bitmap, p.First, p.Limit, d.Size())
	}
	return nil
}

// Format makes an empty journal on d. The home blocks stay what they are. p.Key must
// not have been used before. A crash meanwhile leaves no journal.
func Format(d disk.Disk, p Params) error {
	if err := p.Check(d); err != nil {
		return err
	}
	dd, s := ddisk.New(d), seal.New(p.Key, p.UUID, p.Home())
	if !recoverm.Format(dd, s, p.Start, p.Units, p.Ring) {
		return dd.Err()
	}
	return nil
}

// Options are for one opening of a journal.
type Options struct {
	CacheBytes uint64 // bound on the memory for clean blocks, at least 4 MiB; 0 = DefaultCacheBytes
	// PinnedBytes bounds the memory for blocks that are in the log and not home yet, from MinPinnedBytes to 1 GiB; 0 =
	// DefaultPinnedBytes. What is not in the log yet comes on top, up to 4 MiB; and, up to half as much, what was
	// written to its place in the volume and is not durable yet.
	PinnedBytes uint64
	Log         *slog.Logger  // nil = slog.Default()
	Linger      time.Duration // when a commit that nobody waits for becomes durable all the same; 0 = DefaultLinger
	// OnDamage, if not nil, is called when a block is found damaged (see Journal.Damaged), for most of them once. It
	// must not wait, nor use the journal.
	OnDamage func(block uint64)

	clock *clock.Clock // by which looks at the header grow old; nil = the machine's
}

// Journal is an open journal. Its methods may be called concurrently.
type Journal struct {
	d       *ddisk.Disk
	core    *journalm.Journal
	p       Params
	home    uint64
	size    uint64
	log     *slog.Logger
	quit    chan struct{}
	end     sync.WaitGroup
	closing closer
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
	go func() { defer j.end.Done(); journalthreads.Logger(j.core) }()
	go func() { defer j.end.Done(); journalthreads.Installer(j.core) }()
	go func() { defer j.end.Done(); j.tick(o.Linger) }()
	go func() { defer j.end.Done(); j.watch() }()
	return j, nil
}

func recoverJournal(d disk.Disk, p Params, o Options) (*Journal, error) {
	if err := p.Check(d); err != nil {
		return nil, err
	}
	dd := ddisk.New(d)
	dd.Pace(p.Start, p.Home())
	over := recovering(dd, o.Log)
	defer over()
	blocks, treePages := split(o.CacheBytes)
	most, start := pinned(o.PinnedBytes)
	p.Bitmap, p.First, p.Limit = journalparams.BitmapFor(p.Bitmap, p.First, p.Limit)
	s := seal.New(p.Key, p.UUID, p.Home())
	tree := p.tree(dd, s, pages.New(treePages), d.Size())
	io, damaged, core := recoverm.Recover(dd, s, mutex.New(), cache.New(blocks, slowness(dd)), tree,
		p.Start, p.Units, p.Ring, p.Bitmap, p.First, p.Limit, most, start)
	switch {
	case !io && dd.Err() == nil && dd.ReadErr() == nil:
		return nil, fmt.Errorf("%w: a page of the tree of codes, in the blocks from %d up to %d, "+
			"is not what was last written there", ErrDamaged, p.Start-2*p.Pages, p.Start)
	case !io:
		return nil, fmt.Errorf("journal: recovery: %w", errors.Join(dd.Err(), dd.ReadErr()))
	case damaged || core == nil:
		return nil, diagnose(d, p, damaged)
	}
	j := &Journal{d: dd, core: core, p: p, home: p.Home(), size: d.Size(), log: o.Log, closing: newCloser()}
	if o.clock != nil {
		core.Clock = o.clock
	}
	core.Notes.OnDamage(func(a uint64) {
		j.tellDamage(a)
		if o.OnDamage != nil {
			o.OnDamage(a)
		}
	})
	return j, nil
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
			journalthreads.Tick(j.core)
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
		if !journalthreads.Guard(j.core) {
			j.log.Error("the journal stops: nothing is acknowledged any more", "error", j.d.Err())
		}
		at := j.Position()
		if at.Commits == last && at.Home != at.Logged {
			journalthreads.Settle(j.core)
		}
		last = at.Commits
	}
}

// A Write is a block and its new contents.
type Write struct {
	Addr uint64
	Data []byte // disk.BlockSize bytes
}

// Commit writes blocks, all or none of them. With wait it returns when they are durable; without, they become durable
// soon, in the order of the commits. Of several writes of one address the last counts. The data is copied. A commit of
// no writes changes nothing; with wait it is Flush.
//
// After an error of the device nobody knows whether a commit that was waited for is durable. The journal is read-only
// then.
func (j *Journal) Commit(ws []Write, wait bool) error {
	if len(ws) == 0 && wait {
		return j.Flush()
	}
	if err := j.Enter(); err != nil {
		return err
	}
	defer j.Leave()
	if len(ws) == 0 {
		return nil
	}
	m := blockmap.New()
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
	st, _ := journalthreads.Commit(j.core, m, wait)
	return j.status(st)
}

// Bulk asks that the next contents committed to block a go straight home, and not through the log, which would write
// them twice. It is granted if the block's allocation bit is known to be clear on the device, as a crash may change the
// contents of such a block. A commit is as atomic and as durable either way.
func (j *Journal) Bulk(a uint64) {
	j.core.Notes.Wish(a)
}

func (j *Journal) status(st uint32) error {
	switch st {
	case 0:
		return nil
	case 2:
		return ErrTooLarge
	}
	return j.Refusal()
}

// Failure is the error of everything but Read after the device failed: it wraps ErrReadOnly and the cause. Else it is
// nil.
func (j *Journal) Failure() error {
	if err := j.d.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	if found := j.Damaged(); len(found) > 0 && found[0] < j.home {
		return fmt.Errorf("%w: block %d, of the tree of codes: %w", ErrReadOnly, found[0], j.why(found[0]))
	}
	return ErrReadOnly
}

// Look reads from the device whether another server has opened the journal. If one has, the journal fails for good,
// with an error that wraps ErrNotOwner. A block that cannot be read tells nothing. After Close it does not look.
func (j *Journal) Look() error {
	if j.d.Err() == nil && j.Enter() == nil {
		defer j.Leave()
		journalthreads.Guard(j.core)
	}
	return j.Lost()
}

// Barrier is a barrier of the device, for who writes to blocks of it that are none of the journal's. If it fails, the
// journal fails for good: what the device had not made durable may be the journal's.
func (j *Journal) Barrier() error {
	if !j.d.Barrier() {
		return j.Failure()
	}
	return nil
}

// Lost is an error that wraps ErrNotOwner if another server was seen to have opened the journal, or nil.
func (j *Journal) Lost() error {
	if err := j.d.Err(); errors.Is(err, ErrNotOwner) {
		return err
	}
	return nil
}

// Read copies the latest committed contents of block a to buf (disk.BlockSize bytes).
func (j *Journal) Read(a uint64, buf []byte) error {
	if err := j.Enter(); err != nil {
		return err
	}
	defer j.Leave()
	if a < j.home || a >= j.size {
		return fmt.Errorf("%w: %d", ErrRange, a)
	}
	if !journalthreads.ReadTo(j.core, a, &dbytes.Bytes{Data: buf[:disk.BlockSize]}) {
		return fmt.Errorf("journal: block %d: %w", a, j.readError(a))
	}
	return nil
}

// Flush makes everything committed so far durable.
func (j *Journal) Flush() error {
	if err := j.Enter(); err != nil {
		return err
	}
	defer j.Leave()
	return j.flush()
}

func (j *Journal) flush() error {
	if ok, _ := journalthreads.Flush(j.core); !ok {
		return j.Failure()
	}
	return nil
}

// Close makes everything durable, empties the log, and ends the threads. It does not close the device.
//
// A call that begins after Close has begun fails with ErrClosed. Close waits for the calls under way, which end as
// ever. No commit takes effect after that (verified/journal/threads.dfy, Close). Close may be called again, also at the
// same time: the second call waits, and returns the same.
func (j *Journal) Close() error {
	j.closing.once.Do(func() { j.closing.err = j.close() })
	return j.closing.err
}

func (j *Journal) close() error {
	j.closing.await()
	var err error
	if journalthreads.Close(j.core) {
		journalthreads.Drain(j.core)
		if j.d.Err() != nil {
			j.log.Warn("the journal is durable, but could not be emptied", "error", j.d.Err())
		}
	} else {
		err = j.Failure()
	}
	journalthreads.Stop(j.core)
	close(j.quit)
	j.end.Wait()
	return err
}

// Home tells which blocks are home blocks: from first up to end, which is not among them.
func (j *Journal) Home() (first, end uint64) { return j.home, j.size }

func init() {
	journalcore.Of = func(j any) *journalm.Journal { return j.(*Journal).core }
}
