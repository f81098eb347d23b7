package nfs3

import (
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"tansy/fs"
	"tansy/fs/model"
	"tansy/nfs/oncrpc"
	"tansy/test/kit/rfc1813"
)

func testService() (*Service, *model.Model) {
	m := model.New(model.Options{Clock: func() time.Time { return time.Unix(1, 2) }, Capacity: 1 << 20, MaxFiles: 100})
	root := &fs.Cred{}
	r := m.Root()
	mode := uint32(0o777)
	m.Create(root, r, []byte("file"), fs.Guarded, &fs.SetAttr{Mode: &mode}, 0)
	m.Symlink(root, r, []byte("link"), &fs.SetAttr{}, []byte("target"))
	m.Mkdir(root, r, []byte("dir"), &fs.SetAttr{})
	return New(Config{FS: m, VolumeID: [8]byte{1}, Key: [16]byte{2},
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))}), m
}

// FuzzArguments gives every procedure arbitrary arguments: those that are not what
// the RFC describes are refused, and the result is always what it describes. In the input, "@n"
// followed by '!' stands for the handle of file n, which no fuzzer would guess.
func FuzzArguments(f *testing.F) {
	at := func(n byte) []byte { return []byte{0, 0, 0, 32, '@', n, '!'} }
	word := func(v ...uint32) (b []byte) {
		for _, w := range v {
			b = binary.BigEndian.AppendUint32(b, w)
		}
		return b
	}
	join := func(parts ...[]byte) (b []byte) {
		for _, p := range parts {
			b = append(b, p...)
		}
		return b
	}
	name := []byte{0, 0, 0, 3, 'n', 'e', 'w', 0}
	sattr := word(1, 0o644, 1, 0, 1, 0, 1, 0, 9, 1, 2, 5, 6)
	f.Add(byte(ProcGetattr), at(1))
	f.Add(byte(ProcSetattr), join(at(2), sattr, word(1, 1, 2)))
	f.Add(byte(ProcLookup), join(at(1), name))
	f.Add(byte(ProcAccess), join(at(1), word(63)))
	f.Add(byte(ProcReadlink), at(3))
	f.Add(byte(ProcRead), join(at(2), word(0, 0, 100)))
	f.Add(byte(ProcWrite), join(at(2), word(0, 0, 3, 2), name))
	f.Add(byte(ProcCreate), join(at(1), name, word(0), sattr))
	f.Add(byte(ProcCreate), join(at(1), name, word(2, 3, 4)))
	f.Add(byte(ProcMkdir), join(at(1), name, sattr))
	f.Add(byte(ProcSymlink), join(at(1), name, sattr, name))
	f.Add(byte(ProcMknod), join(at(1), name, word(4), sattr, word(1, 2)))
	f.Add(byte(ProcMknod), join(at(1), name, word(7), sattr))
	f.Add(byte(ProcRemove), join(at(1), name))
	f.Add(byte(ProcRmdir), join(at(1), name))
	f.Add(byte(ProcRename), join(at(1), name, at(4), name))
	f.Add(byte(ProcLink), join(at(2), at(1), name))
	f.Add(byte(ProcReaddir), join(at(1), word(0, 0, 0, 0, 1000)))
	f.Add(byte(ProcReaddirplus), join(at(1), word(0, 0, 0, 0, 1000, 1000)))
	f.Add(byte(ProcFsstat), at(1))
	f.Add(byte(ProcFsinfo), at(1))
	f.Add(byte(ProcPathconf), at(1))
	f.Add(byte(ProcCommit), join(at(2), word(0, 0, 0)))
	f.Add(byte(ProcRead), word(0xffffffff, 1, 2))
	f.Fuzz(func(t *testing.T, proc byte, args []byte) {
		s, m := testService()
		procs := s.Program().Procs
		p := procs[int(proc)%len(procs)]
		args = withHandles(s, m, args)
		c := oncrpc.Call{
			Args: oncrpc.NewDecoder(args), Reply: oncrpc.NewEncoder(nil), Peer: &net.TCPAddr{},
			Cred: &oncrpc.Cred{Flavor: oncrpc.AuthSys},
		}
		if p.Weight != nil && p.Weight(oncrpc.NewDecoder(args)) < 0 {
			t.Error("negative weight")
		}
		accept := p.Serve(&c)
		number := int(proc) % len(procs)
		want := oncrpc.Success
		if _, _, ok := rfc1813.Args[number].Decode(args); !ok {
			want = oncrpc.GarbageArgs
		}
		if accept != want {
			t.Errorf("%s: %v, want %v", p.Name, accept, want)
		}
		if _, rest, ok := rfc1813.Results[number].Decode(c.Reply.Whole()); accept == oncrpc.Success && (!ok || len(rest) > 0) {
			t.Errorf("%s: the result is not what the RFC describes: % x", p.Name, c.Reply.Whole())
		}
		if c.Reply.Len() > maxListing+1000 {
			t.Errorf("%s: a result of %d bytes", p.Name, c.Reply.Len())
		}
	})
}

func withHandles(s *Service, m *model.Model, args []byte) (b []byte) {
	for i := 0; i < len(args); i++ {
		if i+2 < len(args) && args[i] == '@' && args[i+2] == '!' {
			h := make([]byte, HandleSize)
			s.ring().list[0].handles.put(h, fs.Handle{Ino: uint64(args[i+1]), Gen: uint64(args[i+1])}, new([64]byte))
			b = append(b, h...)
			i += 2
		} else {
			b = append(b, args[i])
		}
	}
	return b
}

func FuzzHandle(f *testing.F) {
	s, _ := testService()
	root, err := s.Walk(&oncrpc.Call{Cred: &oncrpc.Cred{}}, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(root)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := s.ring().list[0].handles.parse(b, new([64]byte))
		if err != nil {
			return
		}
		again := make([]byte, HandleSize)
		s.ring().list[0].handles.put(again, h, new([64]byte))
		if string(again) != string(b) {
			t.Errorf("% x was taken for % x", b, again)
		}
	})
}
