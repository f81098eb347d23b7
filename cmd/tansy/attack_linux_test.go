package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tansy/fs"
	"tansy/nfs/nfs3"
	"tansy/nfs/oncrpc"
	"tansy/test/kit/nfsclient"
)

// peakMemory is the most physical memory that the server had, in bytes.
func (p *process) peakMemory(t *testing.T) uint64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(status), "\n") {
		if v, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

// nfsCall is a call of NFS by root as it is on the wire.
func nfsCall(proc uint32, args func(e *oncrpc.Encoder)) []byte {
	e := nfsclient.Header(7, nfs3.Program, nfs3.Version, proc, &fs.Cred{})
	args(&e)
	return nfsclient.Mark(e.Bytes())
}

// within tells if the server never had more memory than that.
func (p *process) within(t *testing.T, bytes uint64) {
	t.Helper()
	peak := p.peakMemory(t)
	t.Logf("at most %d MiB of memory, of %d", peak>>20, bytes>>20)
	if peak > bytes {
		t.Errorf("the server had %d MiB, may have %d", peak>>20, bytes>>20)
	}
}

// Peers that keep the server waiting in every way, from many addresses, and more than there
// may be: the server stays below its cache and 64 MiB, and goes on serving others.
func TestMemoryUnderAttack(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	const cache, conns, addresses, size = 8 << 20, 1100, 10, 1 << 20
	p := startServe(t, "--volume", filepath.Join(t.TempDir(), "v.img"), "--size", "64M", "--cache", "8M")
	_, port, _ := net.SplitHostPort(p.addr)
	client, err := nfsclient.Mount(p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	root := &fs.Cred{}
	file, err := client.Create(root, client.Root(), []byte("f"), fs.Guarded, &fs.SetAttr{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, size)
	write := func() {
		t.Helper()
		if n, _, _, err := client.Write(root, file.Handle, 0, data, fs.Unstable); err != nil || n != size {
			t.Fatal(n, err)
		}
	}
	write()
	handle := client.Raw(file.Handle)
	ways := [][]byte{
		bytes.Repeat(nfsCall(nfs3.ProcRead, func(e *oncrpc.Encoder) { e.Opaque(handle); e.Uint64(0); e.Uint32(size) }), 300),
		bytes.Repeat(nfsCall(nfs3.ProcGetattr, func(e *oncrpc.Encoder) { e.Opaque(handle) }), 30000),
		bytes.Repeat(nfsCall(nfs3.ProcFsstat, func(e *oncrpc.Encoder) { e.Opaque(handle) }), 30000),
		nfsCall(nfs3.ProcWrite, func(e *oncrpc.Encoder) {
			e.Opaque(handle)
			e.Uint64(0)
			e.Uint32(size)
			e.Uint32(0)
			e.Opaque(data)
		})[:600000],
		nfsCall(nfs3.ProcNull, func(e *oncrpc.Encoder) { e.Fixed(data[:3000]) })[:2900],
		nil, // only connects
	}
	for i := range conns {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(i%addresses))}}
		nc, err := d.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.(*net.TCPConn).SetReadBuffer(4096)
		go nc.Write(ways[i/addresses%len(ways)]) // as much of it as the server takes
		if i%100 == 0 {
			write()
		}
	}
	for range 5 {
		write()
		for off := uint64(0); off < size; {
			b, _, _, err := client.Read(root, file.Handle, off, size)
			if err != nil || len(b) == 0 {
				t.Fatal(off, err)
			}
			off += uint64(len(b))
		}
	}
	p.within(t, cache+overhead)
}

// Many clients that stream into a server whose cache is full, and read again: it stays below its cache and 64 MiB.
func TestMemoryOfStreams(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	for _, cache := range []uint64{16 << 20, 64 << 20} {
		t.Run(fmt.Sprint(cache>>20, "M"), func(t *testing.T) { memoryOfStreams(t, cache) })
	}
}

func memoryOfStreams(t *testing.T, cache uint64) {
	const writers, inFlight, each = 32, 4, 8
	const size = 3 << 20 // bytes of a file: all of them together are more than the cache
	const io = 1 << 20
	p := startServe(t, "--volume", filepath.Join(t.TempDir(), "v.img"), "--size", "256M", "--cache", fmt.Sprint(cache))
	root, data := &fs.Cred{}, make([]byte, io)
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			c, err := nfsclient.Mount(p.addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			file, err := c.Create(root, c.Root(), fmt.Append(nil, "f", i), fs.Guarded, &fs.SetAttr{}, 0)
			if err != nil {
				t.Error(err)
				return
			}
			for off := uint64(0); off < size; off += 64 << 10 { // what is read is in the cache
				if _, _, _, err := c.Write(root, file.Handle, off, data[:64<<10], fs.FileSync); err != nil {
					t.Error(err)
				}
				if _, _, _, err := c.Read(root, file.Handle, off, 64<<10); err != nil {
					t.Error(err)
				}
			}
			var stream sync.WaitGroup
			for range inFlight {
				stream.Go(func() {
					for k := range uint64(each) {
						for done := uint64(0); done < io; { // a full cache may take less at a time (RFC 1813, section 3.3.7)
							n, _, _, err := c.Write(root, file.Handle, k*io%size+done, data[done:], fs.Unstable)
							if err != nil || n == 0 {
								t.Error(n, err)
								return
							}
							done += uint64(n)
						}
						if got, _, _, err := c.Read(root, file.Handle, k*io%size, io); err != nil || len(got) != io {
							t.Error(len(got), err)
						}
					}
				})
			}
			stream.Wait()
		})
	}
	all.Wait()
	p.within(t, cache+overhead)
}
