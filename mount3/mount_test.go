package mount3

import (
	"io"
	"log/slog"
	"net"
	"testing"

	x "tansy/internal/xdrspec"
	"tansy/nfs3"
	"tansy/oncrpc"
)

// The arguments and results of the procedures as RFC 1813, appendix I, has them.
var (
	rfcPath   = x.Opaque(1024)
	rfcGroups = x.List(x.Opaque(255))
	rfcArgs   = []x.Type{ProcNull: x.Void, ProcMnt: rfcPath, ProcDump: x.Void, ProcUmnt: rfcPath, ProcUmntall: x.Void, ProcExport: x.Void}
	// The status of MNT, and what follows it.
	rfcMnt = x.Union(map[uint32]x.Type{
		OK: x.Struct(x.Opaque(64), rfcFlavors), ErrPerm: x.Void, ErrNoEnt: x.Void, ErrIO: x.Void, ErrAcces: x.Void, ErrNotDir: x.Void,
		ErrInval: x.Void, ErrNameTooLong: x.Void, ErrNotSupp: x.Void, ErrServerFault: x.Void,
	}, nil)
	// A list of flavors with its length in front; there are always two.
	rfcFlavors = x.Union(map[uint32]x.Type{2: x.Struct(x.Uint32, x.Uint32)}, nil)
	rfcResults = []x.Type{
		ProcNull:    x.Void,
		ProcMnt:     rfcMnt,
		ProcDump:    x.List(x.Struct(x.Opaque(255), rfcPath)),
		ProcUmnt:    x.Void,
		ProcUmntall: x.Void,
		ProcExport:  x.List(x.Struct(rfcPath, rfcGroups)),
	}
)

// FuzzArguments gives every procedure arbitrary arguments: those that are not what
// the RFC describes are refused, and the result is what it describes. What paths
// mean is FuzzPath's.
func FuzzArguments(f *testing.F) {
	path := []byte{0, 0, 0, 1, '/', 0, 0, 0}
	for proc := range byte(6) {
		f.Add(proc, path)
	}
	f.Add(byte(ProcMnt), []byte{0, 0, 0, 2, '/', 'x', 0, 0})
	f.Add(byte(ProcMnt), []byte{0, 0, 0, 4, 'a', '/', '/', 'b'})
	f.Add(byte(ProcMnt), []byte{0xff, 0xff, 0xff, 0xff})
	m, _ := plant(f)
	s := New(Config{Walk: nfs3.New(nfs3.Config{FS: m}).Walk, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	procs := s.Program().Procs
	f.Fuzz(func(t *testing.T, proc byte, args []byte) {
		number := int(proc) % len(procs)
		p := procs[number]
		c := oncrpc.Call{Args: oncrpc.NewDecoder(args), Reply: oncrpc.NewEncoder(nil), Cred: &oncrpc.Cred{}, Peer: &net.TCPAddr{}}
		accept := p.Serve(&c)
		want := oncrpc.Success
		if _, _, ok := rfcArgs[number].Decode(args); !ok {
			want = oncrpc.GarbageArgs
		}
		if accept != want {
			t.Errorf("%s: %v, want %v", p.Name, accept, want)
		}
		if _, rest, ok := rfcResults[number].Decode(c.Reply.Whole()); accept == oncrpc.Success && (!ok || len(rest) > 0) {
			t.Errorf("%s: the result is not what the RFC describes: % x", p.Name, c.Reply.Whole())
		}
	})
}

// anywhere is a walk that finds everything.
func anywhere(*oncrpc.Call, []string) ([]byte, error) { return make([]byte, 32), nil }

// TestMountsBounded: clients that never unmount cost nothing.
func TestMountsBounded(t *testing.T) {
	s := New(Config{Walk: anywhere, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
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

// TestExportIsClean: however the export is written, a mount is remembered once, and
// forgotten.
func TestExportIsClean(t *testing.T) {
	for _, export := range []string{"/vol", "/vol/", "vol", "//vol/."} {
		s := New(Config{Export: export, Walk: anywhere, Log: slog.New(slog.DiscardHandler)})
		call := func(proc int) {
			e := oncrpc.NewEncoder(nil)
			e.Opaque([]byte("/vol"))
			s.Program().Procs[proc].Serve(&oncrpc.Call{
				Args: oncrpc.NewDecoder(e.Bytes()), Reply: oncrpc.NewEncoder(nil), Peer: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1},
			})
		}
		call(ProcMnt)
		call(ProcMnt)
		if len(s.mounts) != 1 || s.mounts[0].dir != "/vol" {
			t.Errorf("%q: mounts %v", export, s.mounts)
		}
		call(ProcUmnt)
		if len(s.mounts) != 0 {
			t.Errorf("%q: after UMNT %v", export, s.mounts)
		}
	}
}
