package fs

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"tansy/disk"
	"tansy/internal/gen/fs/replies/knownrecords"
	"tansy/internal/gen/fs/replies/replysharing"
)

const clientChunks = 32 // blocks of records that a client has at most (verified/fs/replies/sharing.dfy)

// recordWindow is for how long records count.
var recordWindow = time.Duration(knownrecords.WINDOW()) * time.Second

// line is a connection whose peer has got everything, if it is set.
type line struct{ got bool }

func (l *line) Connection() any { return l }
func (l *line) Delivered() bool { return l.got }

// onceVolume is a volume that can be opened again, with a clock of its own.
type onceVolume struct {
	t   *testing.T
	d   disk.Disk
	now time.Time
	o   Options
	v   *FS
}

var rootCred = &Cred{}

func newOnce(t *testing.T, blocks uint64, o MkfsOptions) *onceVolume {
	x := &onceVolume{t: t, d: disk.NewMem(blocks * disk.BlockSize), now: time.Unix(1_700_000_000, 5)}
	o.Clock, o.Zeroed = x.clock, true
	if err := Mkfs(x.d, o); err != nil {
		t.Fatal(err)
	}
	x.open()
	t.Cleanup(func() { x.v.Close() })
	return x
}

func (x *onceVolume) clock() time.Time { return x.now }

func (x *onceVolume) open() {
	x.o.Clock = x.clock
	v, err := Open(x.d, x.o)
	if err != nil {
		x.t.Fatal(err)
	}
	x.v = v
}

// again closes the volume and opens it.
func (x *onceVolume) again() {
	if err := x.v.Close(); err != nil {
		x.t.Fatal(err)
	}
	x.open()
}

// first4 is the address of client 1.
var first4 = netip.AddrFrom4([4]byte{10, 0, 0, 1})

// as is the file system for the call with this number of client n.
func (x *onceVolume) as(n byte, xid uint32, proc string, args string, via Via) FileSystem {
	return x.named(n, "", xid, proc, args, via)
}

// named is as for a client whose machine has a name.
func (x *onceVolume) named(n byte, machine string, xid uint32, proc string, args string, via Via) FileSystem {
	return x.v.Once(NewCallID(netip.AddrFrom4([4]byte{10, 0, 0, n}), machine, xid, proc, rootCred, []byte(args), via))
}

func recorded(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// Each call that comes again, at once and after the volume was opened anew, is answered as the first time; with
// another number, it is a new call.
func TestOnce(t *testing.T) {
	x := newOnce(t, 8192, MkfsOptions{})
	root := x.v.Root()
	made := func(name string) Handle {
		n, err := x.v.Create(rootCred, root, []byte(name), Guarded, &SetAttr{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n.Handle
	}
	mode := uint32(0o600)
	for _, c := range []struct {
		name string
		prep func() func(f FileSystem) (Handle, error)
		anew error // of the same as a new call
	}{
		{"create", func() func(f FileSystem) (Handle, error) {
			return func(f FileSystem) (Handle, error) {
				n, err := f.Create(rootCred, root, []byte("create"), Guarded, &SetAttr{}, 0)
				return n.Handle, err
			}
		}, ErrExist},
		{"mkdir", func() func(f FileSystem) (Handle, error) {
			return func(f FileSystem) (Handle, error) {
				n, err := f.Mkdir(rootCred, root, []byte("mkdir"), &SetAttr{})
				return n.Handle, err
			}
		}, ErrExist},
		{"symlink", func() func(f FileSystem) (Handle, error) {
			return func(f FileSystem) (Handle, error) {
				n, err := f.Symlink(rootCred, root, []byte("symlink"), &SetAttr{}, []byte("there"))
				return n.Handle, err
			}
		}, ErrExist},
		{"mknod", func() func(f FileSystem) (Handle, error) {
			return func(f FileSystem) (Handle, error) {
				n, err := f.Mknod(rootCred, root, []byte("mknod"), FIFO, &SetAttr{}, 0, 0)
				return n.Handle, err
			}
		}, ErrExist},
		{"remove", func() func(f FileSystem) (Handle, error) {
			made("remove")
			return func(f FileSystem) (h Handle, err error) {
				_, err = f.Remove(rootCred, root, []byte("remove"))
				return h, err
			}
		}, ErrNoEnt},
		{"rmdir", func() func(f FileSystem) (Handle, error) {
			if _, err := x.v.Mkdir(rootCred, root, []byte("rmdir"), &SetAttr{}); err != nil {
				t.Fatal(err)
			}
			return func(f FileSystem) (h Handle, err error) {
				_, err = f.Rmdir(rootCred, root, []byte("rmdir"))
				return h, err
			}
		}, ErrNoEnt},
		{"rename", func() func(f FileSystem) (Handle, error) {
			made("from")
			return func(f FileSystem) (h Handle, err error) {
				_, _, err = f.Rename(rootCred, root, []byte("from"), root, []byte("to"))
				return h, err
			}
		}, ErrNoEnt},
		{"link", func() func(f FileSystem) (Handle, error) {
			file := made("linked")
			return func(f FileSystem) (h Handle, err error) {
				_, _, err = f.Link(rootCred, file, root, []byte("link"))
				return h, err
			}
		}, ErrExist},
		{"setattr", func() func(f FileSystem) (Handle, error) {
			file := made("set")
			a, err := x.v.Getattr(file)
			if err != nil {
				t.Fatal(err)
			}
			return func(f FileSystem) (h Handle, err error) {
				_, err = f.Setattr(rootCred, file, &SetAttr{Mode: &mode}, &a.Ctime)
				return h, err
			}
		}, ErrNotSync},
	} {
		do := c.prep()
		first, err := do(x.as(1, 7, c.name, "", nil))
		recorded(t, c.name, err, nil)
		for i := range 3 {
			if i == 1 {
				x.again()
			}
			h, err := do(x.as(1, 7, c.name, "", nil))
			recorded(t, c.name+" again", err, nil)
			if h != first {
				t.Errorf("%s again: %v, first %v", c.name, h, first)
			}
		}
		for what, f := range map[string]FileSystem{
			"another number": x.as(1, 8, c.name, "", nil), "another client": x.as(2, 7, c.name, "", nil),
			"other arguments": x.as(1, 7, c.name, "x", nil), "no name": x.v,
			"another machine": x.named(1, "m", 7, c.name, "", nil),
			"another user":    x.v.Once(NewCallID(first4, "", 7, c.name, &Cred{UID: 1}, nil, nil)),
			"another caller":  x.v.Once(NewCallID(first4, "", 7, c.name, &Cred{GID: 1}, nil, nil)),
			"another group":   x.v.Once(NewCallID(first4, "", 7, c.name, &Cred{GIDs: []uint32{0}}, nil, nil)),
		} {
			_, err := do(f)
			recorded(t, c.name+": "+what, err, c.anew)
		}
		_, err = do(x.as(1, 7, c.name, "", nil)) // that has not pushed it out
		recorded(t, c.name+" at last", err, nil)
	}
}

// A client that begins with the same number each time it starts sends, as a new call, the bytes of an old one.
func TestSameBytesNewCall(t *testing.T) {
	x := newOnce(t, 8192, MkfsOptions{})
	root := x.v.Root()
	mkdir := func(via Via) error {
		_, err := x.as(1, 7, "MKDIR", "d", via).Mkdir(rootCred, root, []byte("d"), &SetAttr{})
		return err
	}
	for range 3 {
		recorded(t, "mkdir", mkdir(nil), nil)
		if _, err := x.v.Getattr(root); err != nil {
			t.Fatal(err)
		}
		n, err := x.v.Lookup(rootCred, root, []byte("d"))
		recorded(t, "it is there", err, nil)
		if _, err := x.v.Create(rootCred, n.Handle, []byte("f"), Guarded, &SetAttr{}, 0); err != nil {
			t.Fatal(err)
		}
		recorded(t, "mkdir of what has a file in it", mkdir(nil), ErrExist)
		if _, err := x.v.Remove(rootCred, n.Handle, []byte("f")); err != nil {
			t.Fatal(err)
		}
		_, err = x.as(1, 8, "RMDIR", "d", nil).Rmdir(rootCred, root, []byte("d"))
		recorded(t, "rmdir", err, nil)
		x.again()
	}
	// Two clients behind one address: the first one has its reply, and is still there.
	first, second := &line{got: true}, &line{got: true}
	recorded(t, "mkdir of the first", mkdir(first), nil)
	recorded(t, "mkdir of the second", mkdir(second), ErrExist)
	first.got = false // it has hung up: it may be the one that is there now
	recorded(t, "mkdir after the first has gone", mkdir(second), nil)
	first.got = true
	recorded(t, "mkdir of the first, whose reply the second has", mkdir(first), ErrExist)
}

// Records count for some time, which is that since the volume was opened if it was not open meanwhile.
func TestRecordsAge(t *testing.T) {
	x := newOnce(t, 8192, MkfsOptions{})
	root := x.v.Root()
	mkdir := func(name string) error {
		_, err := x.as(1, 7, "MKDIR", name, nil).Mkdir(rootCred, root, []byte(name), &SetAttr{})
		return err
	}
	recorded(t, "mkdir a", mkdir("a"), nil)
	x.now = x.now.Add(recordWindow)
	recorded(t, "mkdir a again", mkdir("a"), nil)
	x.now = x.now.Add(time.Second)
	recorded(t, "mkdir a, later", mkdir("a"), ErrExist)
	recorded(t, "mkdir b", mkdir("b"), nil)
	x.now = x.now.Add(24 * time.Hour)
	x.again()
	recorded(t, "mkdir a, older than what was done last", mkdir("a"), ErrExist)
	x.now = x.now.Add(recordWindow - time.Second)
	recorded(t, "mkdir b, a day later", mkdir("b"), nil)
	x.now = x.now.Add(time.Second)
	recorded(t, "mkdir b, and late", mkdir("b"), ErrExist)
}

// A client that makes many calls does not push out the records that others left within the last minute, and there is an
// end to what it can have itself, however many names its machine gives itself.
func TestFloodKeepsOthers(t *testing.T) {
	x := newOnce(t, 16384, MkfsOptions{Replies: 1024})
	root := x.v.Root()
	mkdir := func(n byte, name string) error {
		_, err := x.named(n, name, 7, "MKDIR", name, nil).Mkdir(rootCred, root, []byte(name), &SetAttr{})
		return err
	}
	for n := range byte(8) {
		recorded(t, "mkdir", mkdir(n, fmt.Sprint("of ", n)), nil)
	}
	for i := range 3000 {
		recorded(t, "mkdir of the flood", mkdir(99, fmt.Sprint("flood ", i)), nil)
	}
	for n := range byte(8) {
		recorded(t, "mkdir again", mkdir(n, fmt.Sprint("of ", n)), nil)
	}
	for i := 3000 - chunkPlaces*(clientChunks-1); i < 3000; i++ {
		recorded(t, "mkdir of the flood again", mkdir(99, fmt.Sprint("flood ", i)), nil)
	}
	recorded(t, "mkdir of the flood, long ago", mkdir(99, "flood 9"), ErrExist)
	for c := range x.v.replies.chunks + 1 {
		if n := x.v.replies.calls.Table.Count(replysharing.CLIENT() + c); n > clientChunks {
			t.Errorf("a client has %d blocks of records", n)
		}
	}
	// Many clients share what there is, and he who has most gives.
	for n := range byte(90) {
		recorded(t, "mkdir of many", mkdir(100+n, fmt.Sprint("many ", n)), nil)
	}
	for n := 90 - byte(30); n < 90; n++ {
		recorded(t, "mkdir of many again", mkdir(100+n, fmt.Sprint("many ", n)), nil)
	}
}

// What a client did last is what is kept longest, also of calls from before the volume was opened.
func TestRecordsOldestFirst(t *testing.T) {
	x := newOnce(t, 16384, MkfsOptions{Replies: 1024})
	root := x.v.Root()
	mkdir := func(name string) error {
		x.now = x.now.Add(time.Millisecond)
		_, err := x.as(1, 7, "MKDIR", name, nil).Mkdir(rootCred, root, []byte(name), &SetAttr{})
		return err
	}
	n := 0
	for range 7 {
		for range clientChunks*chunkPlaces/2 + 21 {
			recorded(t, "mkdir", mkdir(fmt.Sprint(n)), nil)
			n++
		}
		x.again()
		last := n
		for range 100 {
			recorded(t, "mkdir after the restart", mkdir(fmt.Sprint(n)), nil)
			n++
		}
		for i := last - 100; i < last; i++ {
			recorded(t, fmt.Sprint("mkdir again: ", i, " of ", last), mkdir(fmt.Sprint(i)), nil)
		}
	}
}

// A client that has lost a reply finds the record of its call, however many calls others behind its address make
// meanwhile which get theirs: as long as the server runs, and after it was started anew.
func TestAwaitedRecordsStay(t *testing.T) {
	for _, restart := range []bool{false, true} {
		if testing.Short() && !restart {
			continue
		}
		x := newOnce(t, 16384, MkfsOptions{Replies: 1024})
		root := x.v.Root()
		xid := uint32(0)
		others := func(rounds int) {
			for range rounds {
				xid++
				x.now = x.now.Add(time.Millisecond)
				_, err := x.as(1, xid, "MKDIR", "other", &line{got: true}).Mkdir(rootCred, root, []byte("other"), &SetAttr{})
				recorded(t, "mkdir of others", err, nil)
				_, err = x.as(1, xid, "RMDIR", "other", &line{got: true}).Rmdir(rootCred, root, []byte("other"))
				recorded(t, "rmdir of others", err, nil)
			}
		}
		mkdir := func(n int, via Via) error {
			_, err := x.as(1, 0, "MKDIR", fmt.Sprint(n), via).Mkdir(rootCred, root, fmt.Append(nil, n), &SetAttr{})
			return err
		}
		others(700) // all places are in use
		for n := range 40 {
			recorded(t, "mkdir", mkdir(n, &line{}), nil)
			others(2)
		}
		if restart {
			x.again()
		}
		others(1500)
		for n := range 40 {
			recorded(t, "mkdir again", mkdir(n, &line{}), nil)
		}
		others(1500)
		for n := range 40 {
			recorded(t, "mkdir again, which got no reply, either", mkdir(n, &line{got: true}), nil)
		}
		others(1500)
		recorded(t, "mkdir again, which has its reply", mkdir(0, nil), ErrExist)
	}
}

// A call that comes again while it is under way waits for it.
func TestOnceUnderWay(t *testing.T) {
	x := newOnce(t, 8192, MkfsOptions{})
	root := x.v.Root()
	for i := range 50 {
		name := fmt.Sprint("d", i)
		errs := make(chan error)
		for range 4 {
			go func() {
				_, err := x.as(1, 7, "MKDIR", name, nil).Mkdir(rootCred, root, []byte(name), &SetAttr{})
				errs <- err
			}()
		}
		for range 4 {
			recorded(t, name, <-errs, nil)
		}
	}
}

// A block of records that the device has damaged costs records, not calls.
func TestDamagedRecords(t *testing.T) {
	x := newOnce(t, 8192, MkfsOptions{})
	root := x.v.Root()
	mkdir := func(name string) error {
		_, err := x.as(1, 7, "MKDIR", name, nil).Mkdir(rootCred, root, []byte(name), &SetAttr{})
		return err
	}
	recorded(t, "mkdir", mkdir("a"), nil)
	first := x.v.replies.first
	if err := x.v.Close(); err != nil {
		t.Fatal(err)
	}
	for b := range x.v.replies.chunks {
		bad := make([]byte, BlockSize)
		bad[9] = 1
		if err := x.d.WriteAt(first+b, [][]byte{bad}); err != nil {
			t.Fatal(err)
		}
	}
	x.open()
	recorded(t, "mkdir again", mkdir("a"), ErrExist)
	recorded(t, "mkdir", mkdir("b"), nil)
	recorded(t, "mkdir, which has no record now", mkdir("b"), ErrExist)
}

// The same, damaged while the volume is in use: the call goes on without a record.
func TestRecordsDamagedInUse(t *testing.T) {
	x := newOnce(t, 8192, MkfsOptions{})
	mkdir := func(xid uint32, name string) error {
		_, err := x.as(1, xid, "MKDIR", name, nil).Mkdir(rootCred, x.v.Root(), []byte(name), &SetAttr{})
		return err
	}
	x.o.CacheBytes = 1 << 20
	x.again()
	f, err := x.v.Create(rootCred, x.v.Root(), []byte("large"), Unchecked, &SetAttr{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(8) { // the records are not in the cache any more
		if _, _, _, err := x.v.Write(rootCred, f.Handle, i<<20, make([]byte, 1<<20), FileSync); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := x.v.Read(rootCred, f.Handle, i<<20, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	bad := make([]byte, BlockSize)
	bad[9] = 1
	for b := range x.v.replies.chunks {
		if err := x.d.WriteAt(x.v.replies.first+b, [][]byte{bad}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		recorded(t, "mkdir", mkdir(uint32(i), fmt.Sprint(i)), nil)
	}
	broken := 0
	for b := range x.v.replies.chunks {
		if x.v.replies.calls.Table.Holder(b) == replysharing.BROKEN() {
			broken++
		}
	}
	if broken == 0 {
		t.Error("no block of records was found damaged")
	}
}
