package nfs3

import (
	"net"
	"testing"

	"tansy/fs"
	"tansy/fs/model"
	"tansy/nfs/exports"
	"tansy/nfs/oncrpc"
)

// What it costs to ask for the rule of each call: a GETATTR of a file system that has the
// answer at hand, by kinds of rules.
func BenchmarkRules(b *testing.B) {
	for _, x := range []struct{ name, file string }{
		{"everybody", "/ *(rw,insecure,no_root_squash)"},
		{"network", "/ 10.0.0.0/8(rw,no_root_squash)"},
		{"squash", "/ 10.0.0.0/8(rw)"},
		{"many", "/ 10.0.0.0/8(rw)\n/a *\n/b *\n/c 192.0.2.0/24(rw) *"},
	} {
		b.Run(x.name, func(b *testing.B) {
			list, _, err := exports.Parse([]byte(x.file))
			if err != nil {
				b.Fatal(err)
			}
			s := New(Config{FS: model.New(model.Options{}), Exports: exports.NewPolicy(exports.NewTable(list, nil))})
			c := oncrpc.Call{Peer: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 700},
				Cred: &oncrpc.Cred{Flavor: oncrpc.AuthSys, IDs: oncrpc.IDs{UID: 1000, GID: 1000, GIDs: []uint32{1, 2, 3, 4}}}}
			h, err := s.Walk(&c, nil)
			if err != nil {
				b.Fatal(err)
			}
			args := oncrpc.NewEncoder(nil)
			args.Opaque(h)
			getattr := s.Program().Procs[ProcGetattr]
			var reply []byte
			b.ReportAllocs()
			for b.Loop() {
				c.Args, c.Reply = oncrpc.NewDecoder(args.Bytes()), oncrpc.NewEncoder(reply[:0])
				getattr.Serve(&c)
				reply = c.Reply.Bytes()
			}
			if d := oncrpc.NewDecoder(reply); d.Uint32() != 0 {
				b.Fatal(fs.Errno(reply[3]))
			}
		})
	}
}
