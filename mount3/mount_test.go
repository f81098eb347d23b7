package mount3

import (
	"io"
	"log/slog"
	"net"
	"testing"

	"tansy/oncrpc"
)

// FuzzArguments gives every procedure arbitrary arguments. What they mean is
// tested through a socket in package server.
func FuzzArguments(f *testing.F) {
	path := []byte{0, 0, 0, 1, '/', 0, 0, 0}
	for proc := range byte(6) {
		f.Add(proc, path)
	}
	f.Add(byte(ProcMnt), []byte{0xff, 0xff, 0xff, 0xff})
	s := New(Config{Root: make([]byte, 32), Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	procs := s.Program().Procs
	f.Fuzz(func(t *testing.T, proc byte, args []byte) {
		p := procs[int(proc)%len(procs)]
		c := oncrpc.Call{Args: oncrpc.NewDecoder(args), Reply: oncrpc.NewEncoder(nil), Peer: &net.TCPAddr{}}
		if accept := p.Serve(&c); accept != oncrpc.Success && accept != oncrpc.GarbageArgs {
			t.Errorf("%s: %v", p.Name, accept)
		}
	})
}

// TestMountsBounded: clients that never unmount cost nothing.
func TestMountsBounded(t *testing.T) {
	s := New(Config{Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	mnt := s.Program().Procs[ProcMnt]
	for i := range 2 * maxMounts {
		e := oncrpc.NewEncoder(nil)
		e.Opaque([]byte("/"))
		mnt.Serve(&oncrpc.Call{
			Args: oncrpc.NewDecoder(e.Bytes()), Reply: oncrpc.NewEncoder(nil),
			Peer: &net.TCPAddr{IP: net.IPv4(10, 0, byte(i>>8), byte(i)), Port: 1},
		})
	}
	if len(s.mounts) != maxMounts {
		t.Errorf("%d mounts remembered", len(s.mounts))
	}
}
