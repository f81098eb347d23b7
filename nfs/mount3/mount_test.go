package mount3

import (
	"io"
	"log/slog"
	"net"
	"testing"

	"tansy/fs"
	"tansy/nfs/nfs3"
	"tansy/nfs/oncrpc"
	x "tansy/test/kit/xdrspec"
)

// The arguments and results of the procedures as RFC 1813, appendix I, has them.
var (
	rfcPath   = x.Opaque(1024)
	rfcGroups = x.List(x.Opaque(255))
	rfcArgs   = []x.Type{ProcNull: x.Void, ProcMnt: rfcPath, ProcDump: x.Void, ProcUmnt: rfcPath, ProcUmntall: x.Void,
		ProcExport: x.Void}
	// The status of MNT, and what follows it.
	rfcMnt = x.Union(map[uint32]x.Type{
		OK: x.Struct(x.Opaque(64), rfcFlavors), ErrPerm: x.Void, ErrNoEnt: x.Void, ErrIO: x.Void, ErrAcces: x.Void,
		ErrNotDir: x.Void,
		ErrInval:  x.Void, ErrNameTooLong: x.Void, ErrNotSupp: x.Void, ErrServerFault: x.Void,
	}, nil)
	// The same in versions 1 and 2 (RFC 1094, A.5.1): a status of Unix, and the handle.
	rfcOldMnt = x.Union(map[uint32]x.Type{OK: x.Struct(x.Uint64, x.Uint64, x.Uint64, x.Uint64), ErrPerm: x.Void,
		ErrNoEnt: x.Void, ErrIO: x.Void, ErrAcces: x.Void, ErrNotDir: x.Void, ErrInval: x.Void, ErrNameTooLong: x.Void}, nil)
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
	for proc := range byte(18) {
		f.Add(proc, path)
	}
	f.Add(byte(ProcMnt), []byte{0, 0, 0, 2, '/', 'x', 0, 0})
	f.Add(byte(ProcMnt), []byte{0, 0, 0, 4, 'a', '/', '/', 'b'})
	f.Add(byte(ProcMnt), []byte{0xff, 0xff, 0xff, 0xff})
	m, _ := plant(f)
	s := New(Config{Volumes: []Volume{{Walk: nfs3.New(nfs3.Config{FS: m}).Walk}},
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	f.Add(byte(6+ProcMnt), path)
	programs := s.Programs()
	f.Fuzz(func(t *testing.T, proc byte, args []byte) {
		number, program := int(proc%6), programs[proc/6%3]
		p := program.Procs[number]
		c := oncrpc.Call{Args: oncrpc.NewDecoder(args), Reply: oncrpc.NewEncoder(nil), Cred: &oncrpc.Cred{},
			Peer: &net.TCPAddr{}}
		accept := p.Serve(&c)
		want := oncrpc.Success
		if _, _, ok := rfcArgs[number].Decode(args); !ok {
			want = oncrpc.GarbageArgs
		}
		if accept != want {
			t.Errorf("%s: %v, want %v", p.Name, accept, want)
		}
		results := rfcResults[number]
		if number == ProcMnt && program.Version < 3 {
			results = rfcOldMnt
		}
		if _, rest, ok := results.Decode(c.Reply.Whole()); accept == oncrpc.Success && (!ok || len(rest) > 0) {
			t.Errorf("%s: the result is not what the RFC describes: % x", p.Name, c.Reply.Whole())
		}
	})
}

// anywhere is a walk that finds everything.
func anywhere(*oncrpc.Call, []string) ([]byte, error) { return make([]byte, 32), nil }

// TestMountsBounded: clients that never unmount cost nothing.
func TestMountsBounded(t *testing.T) {
	s := New(Config{Volumes: []Volume{{Walk: anywhere}}, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
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
		s := New(Config{Volumes: []Volume{{Path: export, Walk: anywhere}}, Log: slog.New(slog.DiscardHandler)})
		call := func(proc int) {
			e := oncrpc.NewEncoder(nil)
			e.Opaque([]byte("/vol"))
			s.Program().Procs[proc].Serve(&oncrpc.Call{
				Args: oncrpc.NewDecoder(e.Bytes()), Reply: oncrpc.NewEncoder(nil),
				Peer: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1},
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

// Versions 1 and 2 give the handle of version 3, and statuses that Unix knows; what they say
// of mounts is what version 3 says.
func TestOldVersions(t *testing.T) {
	want := []byte("the handle of a directory, or so")
	var failure error
	var counted uint32 // the status of a call, for who counts them
	s := New(Config{Volumes: []Volume{{Walk: func(*oncrpc.Call, []string) ([]byte, error) { return want, failure }}},
		Log: slog.New(slog.DiscardHandler)})
	call := func(version, proc int) oncrpc.Decoder {
		e := oncrpc.NewEncoder(nil)
		e.Opaque([]byte("/a"))
		c := oncrpc.Call{Args: oncrpc.NewDecoder(e.Bytes()), Reply: oncrpc.NewEncoder(nil),
			Peer: &net.UDPAddr{IP: net.IPv4(10, 0, 0, 1)}}
		for _, p := range s.Programs() {
			if p.Version == uint32(version) && p.Number == Program && p.Procs[proc].Serve(&c) == oncrpc.Success {
				counted = c.Status
				return oncrpc.NewDecoder(c.Reply.Whole())
			}
		}
		return oncrpc.NewDecoder([]byte{9, 9, 9, 9})
	}
	for version := 1; version < 3; version++ {
		d := call(version, ProcMnt)
		if d.Uint32() != OK || string(d.Fixed(32)) != string(want) || len(d.Rest()) > 0 || !d.Ok() {
			t.Errorf("MNT of version %d", version)
		}
		if d := call(3, ProcDump); !d.Bool() || string(d.Opaque(99)) != "10.0.0.1" || string(d.Opaque(99)) != "/a" {
			t.Errorf("DUMP after MNT of version %d", version)
		}
		if call(version, ProcUmnt); len(s.mounts) != 0 {
			t.Errorf("UMNT of version %d", version)
		}
		for err, stat := range map[error]uint32{fs.ErrAcces: ErrAcces, fs.ErrServerFault: ErrIO, fs.ErrNotSupp: ErrIO} {
			failure = err
			if d := call(version, ProcMnt); d.Uint32() != stat || len(d.Rest()) > 0 || counted != stat {
				t.Errorf("MNT of version %d that fails: %v", version, err)
			}
		}
		failure = nil
	}
	want = want[:31] // does not fit, and is not cut or filled up
	if d := call(1, ProcMnt); d.Uint32() != 0x09090909 {
		t.Error("a handle of 31 bytes")
	}
}
