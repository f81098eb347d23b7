package server_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"tansy/fs"
	"tansy/fs/model"
	"tansy/nfs/mount3"
	"tansy/nfs/nfs3"
	"tansy/nfs/oncrpc"
	"tansy/nfs/server"
	"tansy/test/kit/nfsclient"
	"tansy/test/kit/rfc1813"
	x "tansy/test/kit/xdrspec"
)

// The reply of RFC 5531, section 9, up to the results, which depend on the call.
var (
	mismatch = x.Struct(x.Uint32, x.Uint32)
	accepted = x.Struct(x.Uint32, x.Opaque(400),
		x.Union(map[uint32]x.Type{0: x.Void, 1: x.Void, 2: mismatch, 3: x.Void, 4: x.Void, 5: x.Void}, nil))
	denied   = x.Union(map[uint32]x.Type{0: mismatch, 1: x.Uint32}, nil)
	rpcReply = x.Struct(x.Uint32, x.Uint32, x.Union(map[uint32]x.Type{0: accepted, 1: denied}, nil))
)

// acceptStat is the position of the accept_stat among the values of a reply.
const acceptStat = 5

// smallInput is so few bytes that no stream of them is beyond what a server may refuse.
const smallInput = 8 << 10

// FuzzStream sends any bytes to a whole server and closes its end. The server
// answers each call once, up to the first record that is none, with a reply of the
// form the RFC describes and, where the call is carried out, a result of the form of
// its procedure; and it goes on serving others. In the input, "@n!" stands for the
// handle of file n.
func FuzzStream(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for proc := nfs3.ProcNull; proc <= nfs3.ProcCommit; proc++ {
		v := rfc1813.Args[proc].Random(r)
		if len(v) > 0 {
			v[0] = "@1!"
		}
		f.Add(callRecord(nfs3.Program, nfs3.Version, uint32(proc), rfc1813.Args[proc].Encode(v)))
	}
	path := x.Opaque(9).Encode([]any{"/"})
	f.Add(callRecord(mount3.Program, mount3.Version, mount3.ProcMnt, path))
	f.Add(callRecord(mount3.Program, 1, mount3.ProcMnt, path))
	f.Add(callRecord(nfs3.Program, 4, 0, nil))
	f.Add(callRecord(nfs3.Program, 3, 99, nil))
	f.Add(bytes.Repeat(callRecord(nfs3.Program, 3, 0, nil), 20))
	f.Add([]byte{0, 0, 0, 2, 1, 2, 0x80, 0, 0, 0})
	f.Fuzz(stream)
}

// callRecord is a record with a call by root.
func callRecord(prog, vers, proc uint32, args []byte) []byte {
	e := nfsclient.Header(7, prog, vers, proc, &fs.Cred{})
	return nfsclient.Mark(append(e.Bytes(), args...))
}

func stream(t *testing.T, input []byte) {
	m := model.New(model.Options{Clock: func() time.Time { return time.Unix(1, 2) }, Capacity: 1 << 20, MaxFiles: 50})
	m.Create(root, m.Root(), []byte("file"), fs.Guarded, mode(0o644), 0)
	m.Symlink(root, m.Root(), []byte("link"), &fs.SetAttr{}, []byte("target"))
	s := server.New(server.Config{Volumes: []server.Volume{{FS: m, ID: [8]byte{1}, Key: [16]byte{2}}},
		Log: slog.New(slog.DiscardHandler)})
	// Not TCP: the system would run out of ports.
	dir, err := os.MkdirTemp("/tmp", "nfs") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "nfs")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	dial := func() net.Conn {
		nc, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		return nc
	}
	go s.Serve(l)
	defer s.Shutdown(context.Background())

	input = withHandles(t, dial, input)
	calls := map[uint32][][]byte{} // by xid: records that may be calls
	owed := map[uint32]int{}       // by xid: calls that must be answered
	talking := len(input) <= smallInput
	for in := bytes.NewReader(input); ; {
		rec, err := nfsclient.ReadRecord(in)
		if err != nil {
			break
		}
		if len(rec) >= 4 {
			xid := binary.BigEndian.Uint32(rec)
			calls[xid] = append(calls[xid], rec)
			// Whoever sends what is no call, or none to the end of its type, is not answered any more.
			if talking = talking && len(rec) >= 8 && binary.BigEndian.Uint32(rec[4:]) == 0; talking {
				owed[xid]++
			}
		} else {
			talking = false
		}
	}
	answered := map[uint32]int{} // by xid; calls may share one
	nc := dial()
	defer nc.Close()
	go func() {
		nc.Write(input)
		nc.(*net.UnixConn).CloseWrite()
	}()
	for {
		rec, err := nfsclient.ReadRecord(nc)
		if err == io.EOF || err != nil && len(rec) == 0 {
			break
		}
		v, rest, ok := rpcReply.Decode(rec)
		if !ok || v[1] != uint64(1) {
			t.Fatalf("not a reply: % x", rec)
		}
		xid := uint32(v[0].(uint64))
		if v[2] == uint64(0) && v[acceptStat] == uint64(oncrpc.SystemErr) {
			t.Fatalf("a procedure failed: % x", calls[xid])
		}
		if answered[xid]++; answered[xid] > len(calls[xid]) {
			t.Fatalf("%d replies to %d calls: % x", answered[xid], len(calls[xid]), rec)
		}
		if !slices.ContainsFunc(calls[xid], func(call []byte) bool { return resultOf(call, v, rest) }) {
			t.Fatalf("% x is no reply to any of % x", rec, calls[xid])
		}
	}
	for xid, n := range owed {
		if answered[xid] < n {
			t.Fatalf("%d replies to %d calls: % x", answered[xid], n, calls[xid])
		}
	}
	c, err := nfsclient.MountOn(dial())
	if err != nil {
		t.Fatalf("the server is gone: %v", err)
	}
	c.Close()
}

// resultOf tells if the reply may be one to the call: what is carried out has the
// result that the RFC describes, and nothing else has a result.
func resultOf(call []byte, v []any, rest []byte) bool {
	if v[2] != uint64(0) || v[acceptStat] != uint64(oncrpc.Success) {
		return len(rest) == 0
	}
	if len(call) < 24 {
		return false
	}
	prog, proc := binary.BigEndian.Uint32(call[12:]), binary.BigEndian.Uint32(call[20:])
	switch {
	case prog == mount3.Program:
		return true // package mount3 looks at these
	case prog == nfs3.Program && proc < uint32(len(rfc1813.Results)):
		_, left, ok := rfc1813.Results[proc].Decode(rest)
		return ok && len(left) == 0
	}
	return false
}

// withHandles replaces what stands for handles, with the length in front.
func withHandles(t *testing.T, dial func() net.Conn, b []byte) []byte {
	if !bytes.Contains(b, []byte("@")) {
		return b
	}
	c, err := nfsclient.MountOn(dial())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l, err := c.Readdir(root, c.Root(), 0, 0, true, fs.Limit{Bytes: 8192})
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for i := 0; i < len(b); i++ {
		if i+4 <= len(b) && i >= 4 && b[i] == '@' && b[i+2] == '!' && int(b[i+1]-'1') < len(l.Entries) && b[i+1] >= '1' {
			binary.BigEndian.PutUint32(out[len(out)-4:], nfs3.HandleSize)
			out = append(out, c.Raw(l.Entries[b[i+1]-'1'].Handle)...)
			i += 3
			continue
		}
		out = append(out, b[i])
	}
	// The marks of the records are not what they were: set that of a single one.
	if len(out) >= 4 && len(b) >= 4 && int(binary.BigEndian.Uint32(b)&^(1<<31)) == len(b)-4 {
		binary.BigEndian.PutUint32(out, 1<<31|uint32(len(out)-4))
	}
	return out
}
