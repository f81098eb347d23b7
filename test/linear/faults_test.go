package linear

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"tansy/disk"
	"tansy/fs"
	"tansy/nfs/nfs3"
	"tansy/test/kit/nfsclient"
)

// fault wraps a file system in one that does something wrong.
type fault func(fs.FileSystem) fs.FileSystem

// pause widens the gap between the two halves of what should be one step.
func pause() { time.Sleep(100 * time.Microsecond) }

// lostUpdate writes by reading the file, changing a copy, and writing it back.
type lostUpdate struct{ fs.FileSystem }

func (f lostUpdate) Write(
	c *fs.Cred, h fs.Handle, off uint64, data []byte, how fs.Stability,
) (uint32, fs.Stability, fs.WCC, error) {
	old, _, _, err := f.Read(c, h, 0, 1<<20)
	if err != nil || off+uint64(len(data)) > uint64(len(old)) {
		return f.FileSystem.Write(c, h, off, data, how)
	}
	pause()
	whole := bytes.Clone(old)
	copy(whole[off:], data)
	_, done, w, err := f.FileSystem.Write(c, h, 0, whole, how)
	if err != nil {
		return 0, done, w, err
	}
	return uint32(len(data)), done, w, nil
}

// staleRead keeps what it read of a file and gives it out again, but for what the
// file grew by.
type staleRead struct {
	fs.FileSystem
	mu   sync.Mutex
	kept map[fs.Handle][]byte
}

func (f *staleRead) Read(c *fs.Cred, h fs.Handle, off uint64, count uint32) ([]byte, bool, *fs.Attr, error) {
	data, eof, a, err := f.FileSystem.Read(c, h, off, count)
	if err != nil || off != 0 || count < 1000 {
		return data, eof, a, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if old := f.kept[h]; old != nil {
		data = bytes.Clone(data)
		copy(data, old)
	}
	f.kept[h] = bytes.Clone(data)
	return data, eof, a, err
}

// renameInTwo removes what is in the way, and then renames.
type renameInTwo struct{ fs.FileSystem }

func (f renameInTwo) Rename(
	c *fs.Cred, from fs.Handle, fromName []byte, to fs.Handle, toName []byte,
) (fs.WCC, fs.WCC, error) {
	source, err := f.Lookup(c, from, fromName)
	target, err2 := f.Lookup(c, to, toName)
	if err != nil || err2 != nil || source.Attr.Type == fs.Directory || target.Attr.Type == fs.Directory || source.Handle == target.Handle {
		return f.FileSystem.Rename(c, from, fromName, to, toName)
	}
	removed, err := f.Remove(c, to, toName)
	if err != nil {
		return f.FileSystem.Rename(c, from, fromName, to, toName)
	}
	pause()
	w, w2, err := f.FileSystem.Rename(c, from, fromName, to, toName)
	w2.Before = removed.Before
	if from == to {
		w.Before = removed.Before
	}
	return w, w2, err
}

// doubleEntry lists the last entry of a longer directory twice.
type doubleEntry struct{ fs.FileSystem }

func (f doubleEntry) Readdir(
	c *fs.Cred, dir fs.Handle, cookie, verf uint64, plus bool, lim fs.Limit,
) (fs.Listing, error) {
	l, err := f.FileSystem.Readdir(c, dir, cookie, verf, plus, lim)
	if n := len(l.Entries); n > 4 {
		l.Entries = append(l.Entries, l.Entries[n-1])
	}
	return l, err
}

// wrongError says that what is not there may not be removed.
type wrongError struct{ fs.FileSystem }

func (f wrongError) Remove(c *fs.Cred, dir fs.Handle, name []byte) (fs.WCC, error) {
	w, err := f.FileSystem.Remove(c, dir, name)
	if err == fs.ErrNoEnt {
		err = fs.ErrAcces
	}
	return w, err
}

// twice carries out a REMOVE again, as for a call that was sent again, and returns
// the second result.
type twice struct{ fs.FileSystem }

func (f twice) Remove(c *fs.Cred, dir fs.Handle, name []byte) (fs.WCC, error) {
	f.FileSystem.Remove(c, dir, name)
	return f.FileSystem.Remove(c, dir, name)
}

// looseBefore takes the attributes before a WRITE in a step of its own.
type looseBefore struct{ fs.FileSystem }

func (f looseBefore) Write(
	c *fs.Cred, h fs.Handle, off uint64, data []byte, how fs.Stability,
) (uint32, fs.Stability, fs.WCC, error) {
	a, err := f.Getattr(h)
	pause()
	n, done, w, err2 := f.FileSystem.Write(c, h, off, data, how)
	if err == nil && err2 == nil {
		w.Before = &a
	}
	return n, done, w, err2
}

// ghosts answers GETATTR of files that are gone.
type ghosts struct {
	fs.FileSystem
	mu   sync.Mutex
	kept map[fs.Handle]fs.Attr
}

func (f *ghosts) Getattr(h fs.Handle) (fs.Attr, error) {
	a, err := f.FileSystem.Getattr(h)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		f.kept[h] = a
	} else if old, ok := f.kept[h]; ok {
		return old, nil
	}
	return a, err
}

// growsFirst makes a file longer in one step and fills it in another.
type growsFirst struct{ fs.FileSystem }

func (f growsFirst) Write(
	c *fs.Cred, h fs.Handle, off uint64, data []byte, how fs.Stability,
) (uint32, fs.Stability, fs.WCC, error) {
	a, err := f.Getattr(h)
	if end := off + uint64(len(data)); err == nil && a.Type == fs.Regular && a.Size < end && len(data) > 0 {
		grown, err := f.Setattr(c, h, &fs.SetAttr{Size: &end}, nil)
		if err == nil {
			pause()
			n, done, w, err := f.FileSystem.Write(c, h, off, data, how)
			w.Before = grown.Before
			return n, done, w, err
		}
	}
	return f.FileSystem.Write(c, h, off, data, how)
}

// anybody lets everybody write.
type anybody struct{ fs.FileSystem }

func (f anybody) Write(
	c *fs.Cred, h fs.Handle, off uint64, data []byte, how fs.Stability,
) (uint32, fs.Stability, fs.WCC, error) {
	return f.FileSystem.Write(&fs.Cred{}, h, off, data, how)
}

// hasty acknowledges a stable write that is not.
type hasty struct{ fs.FileSystem }

func (f hasty) Write(
	c *fs.Cred, h fs.Handle, off uint64, data []byte, how fs.Stability,
) (uint32, fs.Stability, fs.WCC, error) {
	n, _, w, err := f.FileSystem.Write(c, h, off, data, fs.Unstable)
	return n, how, w, err
}

// seenEarly makes a stable write visible before it is stable: it is acknowledged
// when it is, but others may see it before, and a crash may take it back.
type seenEarly struct{ fs.FileSystem }

func (f seenEarly) Write(
	c *fs.Cred, h fs.Handle, off uint64, data []byte, how fs.Stability,
) (uint32, fs.Stability, fs.WCC, error) {
	n, done, w, err := f.FileSystem.Write(c, h, off, data, fs.Unstable)
	if how == fs.Unstable || err != nil {
		return n, done, w, err
	}
	pause()
	if _, err := f.Commit(h, 0, 0); err != nil {
		return 0, done, w, err
	}
	return n, how, w, nil
}

// idleCommit does nothing for a COMMIT.
type idleCommit struct{ fs.FileSystem }

func (f idleCommit) Commit(h fs.Handle, off uint64, count uint32) (fs.WCC, error) {
	a, err := f.Getattr(h)
	if err != nil {
		return fs.WCC{}, err
	}
	return fs.WCC{Before: &a, After: &a}, nil
}

// sameVerifier keeps the write verifier over a crash.
type sameVerifier struct{ fs.FileSystem }

func (f sameVerifier) Verifier() uint64 { return 1 }

// hollow is a device whose barriers do nothing.
type hollow struct{ disk.Disk }

func (hollow) Barrier() error { return nil }

var faults = []struct {
	name   string
	crash  bool // shows after a crash only
	bug    fault
	relay  bool // in the transport
	device bool // in the device
}{
	{name: "lost update", bug: func(f fs.FileSystem) fs.FileSystem { return lostUpdate{f} }},
	{name: "stale read",
		bug: func(f fs.FileSystem) fs.FileSystem { return &staleRead{FileSystem: f, kept: map[fs.Handle][]byte{}} }},
	{name: "rename in two steps", bug: func(f fs.FileSystem) fs.FileSystem { return renameInTwo{f} }},
	{name: "entry listed twice", bug: func(f fs.FileSystem) fs.FileSystem { return doubleEntry{f} }},
	{name: "wrong error", bug: func(f fs.FileSystem) fs.FileSystem { return wrongError{f} }},
	{name: "remove done twice", bug: func(f fs.FileSystem) fs.FileSystem { return twice{f} }},
	{name: "attributes before in another step", bug: func(f fs.FileSystem) fs.FileSystem { return looseBefore{f} }},
	{name: "removed file answers",
		bug: func(f fs.FileSystem) fs.FileSystem { return &ghosts{FileSystem: f, kept: map[fs.Handle]fs.Attr{}} }},
	{name: "write grows first", bug: func(f fs.FileSystem) fs.FileSystem { return growsFirst{f} }},
	{name: "no permission needed", bug: func(f fs.FileSystem) fs.FileSystem { return anybody{f} }},
	{name: "access list set in two steps", bug: func(f fs.FileSystem) fs.FileSystem { return listInTwo{listing(f)} }},
	{name: "access list not set", bug: func(f fs.FileSystem) fs.FileSystem { return listIgnored{listing(f)} }},
	{name: "calls sent again later", relay: true},
	{name: "stable write is not", crash: true, bug: func(f fs.FileSystem) fs.FileSystem { return hasty{f} }},
	{name: "stable write is seen early", crash: true, bug: func(f fs.FileSystem) fs.FileSystem { return seenEarly{f} }},
	{name: "commit does nothing", crash: true, bug: func(f fs.FileSystem) fs.FileSystem { return idleCommit{f} }},
	{name: "barrier does nothing", crash: true, device: true},
	{name: "verifier stays", crash: true, bug: func(f fs.FileSystem) fs.FileSystem { return sameVerifier{f} }},
}

// TestFaults: the checker finds each of the faults, within a few histories.
func TestFaults(t *testing.T) {
	first := seed(t)
	const most = 2000
	for _, x := range faults {
		t.Run(x.name, func(t *testing.T) {
			var clients []*nfsclient.Client
			k := &clock{}
			if !x.crash {
				d := disk.NewMem(volumeBlocks * disk.BlockSize)
				newVolume(t, d, k)
				s := serve(t, slow{d, 300 * time.Microsecond}, k, x.bug)
				defer s.stop()
				addr := s.addr
				if x.relay {
					addr = relay(t, addr)
				}
				clients = dial(t, nil, addr, 3)
				defer closeAll(clients)
			}
			for i := range most {
				var result porcupine.CheckResult
				var err error
				if x.crash {
					_, result, err = runCrash(t, first+uint64(i), &clock{}, x.bug, x.device)
				} else {
					_, result, err = runLinear(clients, k, first+uint64(i), fmt.Sprint("h", i))
				}
				if result == porcupine.Illegal || x.device && err != nil { // by the checker, or by the server, whose reply is then an error
					line, _, _ := strings.Cut(err.Error(), "\n")
					t.Logf("found in history %d: %s", i+1, line)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			t.Errorf("not found in %d histories", most)
		})
	}
}

// relay passes calls on, and some WRITEs once more a few calls later.
func relay(t *testing.T, addr string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			srv, err := net.Dial("tcp", addr)
			if err != nil {
				client.Close()
				return
			}
			go func() {
				io.Copy(client, srv)
				client.Close()
			}()
			go func() {
				defer srv.Close()
				var late []byte
				for i := 0; ; i++ {
					rec, err := nfsclient.ReadRecord(client)
					if err != nil {
						return
					}
					srv.Write(nfsclient.Mark(rec))
					if proc := binary.BigEndian.Uint32(rec[20:]); late == nil && proc == nfs3.ProcWrite {
						late = bytes.Clone(rec)
						binary.BigEndian.PutUint32(late, 1<<31) // nobody waits for this one's reply
					} else if late != nil && i%4 == 0 {
						srv.Write(nfsclient.Mark(late))
						late = nil
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}
