package server_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"tansy/fs"
	"tansy/fs/model"
	"tansy/nfs/nfs3"
	"tansy/test/kit/nfsclient"
)

// benchConns is the number of connections of the benchmarks.
const benchConns = 8

// roundTrips sends request on benchConns connections to addr, one call in
// flight on each, and reads replies of replySize bytes.
func roundTrips(b *testing.B, addr string, request []byte, replySize int) {
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	conns := make([]net.Conn, benchConns)
	for i := range conns {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		defer nc.Close()
		conns[i] = nc
	}
	b.ResetTimer()
	for _, nc := range conns {
		wg.Add(1)
		go func() {
			defer wg.Done()
			reply := make([]byte, replySize)
			for left.Add(-1) >= 0 {
				if _, err := nc.Write(request); err != nil {
					b.Error(err)
					return
				}
				if _, err := io.ReadFull(nc, reply); err != nil {
					b.Error(err)
					return
				}
			}
		}()
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// BenchmarkLoopback is the floor: a server that answers 28 bytes to a request of
// 76 without looking at it.
func BenchmarkLoopback(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer nc.Close()
				buf := make([]byte, 76)
				for {
					if _, err := io.ReadFull(nc, buf); err != nil {
						return
					}
					if _, err := nc.Write(buf[:28]); err != nil {
						return
					}
				}
			}()
		}
	}()
	roundTrips(b, l.Addr().String(), make([]byte, 76), 28)
}

func BenchmarkNull(b *testing.B) {
	m := model.New(model.Options{})
	e := nfsclient.Header(1, nfs3.Program, nfs3.Version, nfs3.ProcNull, &fs.Cred{})
	roundTrips(b, start(b, m), nfsclient.Mark(e.Bytes()), 28)
}

func BenchmarkGetattr(b *testing.B) {
	m := model.New(model.Options{})
	addr := start(b, m)
	c := mount(b, addr)
	e := nfsclient.Header(1, nfs3.Program, nfs3.Version, nfs3.ProcGetattr, &fs.Cred{})
	e.Opaque(c.Raw(c.Root()))
	roundTrips(b, addr, nfsclient.Mark(e.Bytes()), 28+4+84)
}

// BenchmarkGetattrPipelined keeps 32 calls in flight on each connection.
func BenchmarkGetattrPipelined(b *testing.B) {
	m := model.New(model.Options{})
	addr := start(b, m)
	c := mount(b, addr)
	e := nfsclient.Header(1, nfs3.Program, nfs3.Version, nfs3.ProcGetattr, &fs.Cred{})
	e.Opaque(c.Raw(c.Root()))
	var many []byte
	for range 32 {
		many = append(many, nfsclient.Mark(e.Bytes())...)
	}
	roundTrips(b, addr, many, 32*(28+4+84))
	b.ReportMetric(32*float64(b.N)/b.Elapsed().Seconds(), "getattr/s")
}

func benchmarkRead(b *testing.B, size int) {
	m := model.New(model.Options{})
	addr := start(b, m)
	c := mount(b, addr)
	f := create(b, c, "f")
	if _, _, _, err := c.Write(root, f, 0, make([]byte, size), fs.FileSync); err != nil {
		b.Fatal(err)
	}
	e := nfsclient.Header(1, nfs3.Program, nfs3.Version, nfs3.ProcRead, &fs.Cred{})
	e.Opaque(c.Raw(f))
	e.Uint64(0)
	e.Uint32(uint32(size))
	b.SetBytes(int64(size))
	roundTrips(b, addr, nfsclient.Mark(e.Bytes()), 28+4+88+4+4+4+size)
}

func BenchmarkRead64K(b *testing.B) { benchmarkRead(b, 64<<10) }
func BenchmarkRead4K(b *testing.B)  { benchmarkRead(b, 4<<10) }

func benchmarkWrite(b *testing.B, size int) {
	m := model.New(model.Options{})
	addr := start(b, m)
	c := mount(b, addr)
	f := create(b, c, "f")
	e := nfsclient.Header(1, nfs3.Program, nfs3.Version, nfs3.ProcWrite, &fs.Cred{})
	e.Opaque(c.Raw(f))
	e.Uint64(0)
	e.Uint32(uint32(size))
	e.Uint32(0)
	e.Opaque(make([]byte, size))
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := nc.Write(nfsclient.Mark(e.Bytes())); err != nil {
		b.Fatal(err)
	}
	r := bufio.NewReader(nc)
	first, err := nfsclient.ReadRecord(r)
	if err != nil || binary.BigEndian.Uint32(first[24:]) != 0 {
		b.Fatalf("%v % x", err, first)
	}
	nc.Close()
	b.SetBytes(int64(size))
	roundTrips(b, addr, nfsclient.Mark(e.Bytes()), 4+len(first))
}

func BenchmarkWrite64K(b *testing.B) { benchmarkWrite(b, 64<<10) }
func BenchmarkWrite1M(b *testing.B)  { benchmarkWrite(b, 1<<20) }
