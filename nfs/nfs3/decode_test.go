package nfs3

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime/metrics"
	"testing"

	"tansy/fs"
	"tansy/nfs/oncrpc"
	"tansy/test/kit/replay"
	"tansy/test/kit/rfc1813"
)

// values flattens decoded arguments in the order of the encoding.
type values []any

func (v *values) num(all ...uint64) {
	for _, x := range all {
		*v = append(*v, x)
	}
}

func (v *values) bytes(b []byte) { *v = append(*v, string(b)) }

func (v *values) mark(b bool) bool {
	if b {
		v.num(1)
	} else {
		v.num(0)
	}
	return b
}

func (v *values) time(t fs.Time) { v.num(t.Sec, uint64(t.Nsec)) }

func (v *values) dirop(d dirop) {
	v.bytes(d.dir)
	v.bytes(d.name)
}

func (v *values) sattr(s *sattr) {
	for _, p := range []*uint32{s.Mode, s.UID, s.GID} {
		if v.mark(p != nil) {
			v.num(uint64(*p))
		}
	}
	if v.mark(s.Size != nil) {
		v.num(*s.Size)
	}
	v.how(s.AtimeHow, s.Atime)
	v.how(s.MtimeHow, s.Mtime)
}

func (v *values) how(how fs.TimeHow, t fs.Time) {
	v.num(uint64(how))
	if how == fs.ClientTime {
		v.time(t)
	}
}

// decoded runs the table's decoder of a procedure and flattens what it made.
func decoded(proc int, d *oncrpc.Decoder) (v values) {
	switch proc {
	case ProcNull:
	case ProcGetattr, ProcReadlink, ProcFsstat, ProcFsinfo, ProcPathconf:
		v.bytes(getHandle(d))
	case ProcSetattr:
		a := getSetattr(d)
		v.bytes(a.file)
		v.sattr(a.attrs)
		if v.mark(a.guard != nil) {
			v.time(*a.guard)
		}
	case ProcLookup, ProcRemove, ProcRmdir:
		v.dirop(getDirop(d))
	case ProcAccess:
		a := getAccess(d)
		v.bytes(a.file)
		v.num(uint64(a.want))
	case ProcRead:
		a := getRead(d)
		v.bytes(a.file)
		v.num(a.off, uint64(a.count))
	case ProcWrite:
		a := getWrite(d)
		v.bytes(a.file)
		v.num(a.off, uint64(a.count), uint64(a.how))
		v.bytes(a.data)
	case ProcCreate:
		a := getCreate(d)
		v.dirop(a.where)
		v.num(uint64(a.how))
		if a.attrs != nil {
			v.sattr(a.attrs)
		} else {
			v.num(a.verf)
		}
	case ProcMkdir:
		a := getMkdir(d)
		v.dirop(a.where)
		v.sattr(a.attrs)
	case ProcSymlink:
		a := getSymlink(d)
		v.dirop(a.where)
		v.sattr(a.attrs)
		v.bytes(a.target)
	case ProcMknod:
		a := getMknod(d)
		v.dirop(a.where)
		v.num(uint64(a.typ))
		if a.attrs != nil {
			v.sattr(a.attrs)
		}
		if a.typ == fs.Block || a.typ == fs.Char {
			v.num(uint64(a.major), uint64(a.minor))
		}
	case ProcRename:
		a := getRename(d)
		v.dirop(a.from)
		v.dirop(a.to)
	case ProcLink:
		a := getLink(d)
		v.bytes(a.file)
		v.dirop(a.where)
	case ProcReaddir:
		a := getReaddir(d)
		v.bytes(a.dir)
		v.num(a.cookie, a.verf, uint64(a.count))
	case ProcReaddirplus:
		a := getReaddirplus(d)
		v.bytes(a.dir)
		v.num(a.cookie, a.verf, uint64(a.dirCount), uint64(a.count))
	case ProcCommit:
		a := getCommit(d)
		v.bytes(a.file)
		v.num(a.off, uint64(a.count))
	}
	return v
}

// sameDecoding compares the table's decoder with the RFC's description: both take
// the message or neither does, with the same values and the same rest.
func sameDecoding(t *testing.T, proc int, msg []byte) (ok bool) {
	t.Helper()
	want, rest, ok := rfc1813.Args[proc].Decode(msg)
	d := oncrpc.NewDecoder(msg)
	got := decoded(proc, &d)
	switch {
	case d.Ok() != ok:
		t.Fatalf("procedure %d: decoded %v, want %v: % x", proc, d.Ok(), ok, msg)
	case !ok:
	case !reflect.DeepEqual([]any(got), want):
		t.Fatalf("procedure %d: got %v, want %v, from % x", proc, got, want, msg)
	case !bytes.Equal(d.Rest(), rest):
		t.Fatalf("procedure %d: %d bytes left over, want %d: % x", proc, len(d.Rest()), len(rest), msg)
	}
	return ok
}

// TestDecode: what the RFC's description encodes, the table decodes to the same
// values, for every procedure; cut off anywhere, it decodes nothing; and with a
// word changed, it decodes what the description does.
func TestDecode(t *testing.T) {
	seed := replay.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for proc := range int(procCount) {
		for range 300 {
			msg := rfc1813.Args[proc].Encode(rfc1813.Args[proc].Random(r))
			if !sameDecoding(t, proc, msg) {
				t.Fatalf("procedure %d: % x is not decoded", proc, msg)
			}
			sameDecoding(t, proc, append(bytes.Clone(msg), 1, 2, 3))
			for range 4 {
				if len(msg) > 0 && sameDecoding(t, proc, msg[:r.IntN(len(msg))]) {
					t.Fatalf("procedure %d: cut off, but decoded", proc)
				}
				if len(msg) >= 4 {
					odd := bytes.Clone(msg)
					word := []uint32{0, 1, 2, 3, 64, 65, 1 << 20, 1<<31 - 1, 1 << 31, 1<<32 - 1}[r.IntN(10)]
					binary.BigEndian.PutUint32(odd[r.IntN(len(odd)/4)*4:], word)
					sameDecoding(t, proc, odd)
				}
			}
		}
	}
}

// TestDecodeBounds: a handle of 64 bytes is taken, one of 65 is not; data of MaxIO
// bytes are taken, one more is not.
func TestDecodeBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for proc := ProcGetattr; proc < int(procCount); proc++ {
		v := rfc1813.Args[proc].Random(r)
		for size, ok := range map[int]bool{64: true, 65: false} {
			v[0] = string(make([]byte, size)) // the first argument is a handle
			if sameDecoding(t, proc, rfc1813.Args[proc].Encode(v)) != ok {
				t.Errorf("procedure %d: a handle of %d bytes: taken %v", proc, size, !ok)
			}
		}
	}
	v := rfc1813.Args[ProcWrite].Random(r)
	for size, ok := range map[int]bool{fs.MaxIO: true, fs.MaxIO + 1: false} {
		v[len(v)-1] = string(make([]byte, size))
		if sameDecoding(t, ProcWrite, rfc1813.Args[ProcWrite].Encode(v)) != ok {
			t.Errorf("WRITE of %d bytes: taken %v", size, !ok)
		}
	}
}

// allocated is the number of bytes ever allocated, as the runtime counts them.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// drop runs a decoder for what it allocates.
func drop[A any](decode func(*oncrpc.Decoder) A) func(*oncrpc.Decoder) {
	return func(d *oncrpc.Decoder) { decode(d) }
}

var decoders = map[string]func(*oncrpc.Decoder){
	"handle": drop(getHandle), "dirop": drop(getDirop), "SETATTR": drop(getSetattr), "ACCESS": drop(getAccess),
	"READ":  drop(getRead),
	"WRITE": drop(getWrite), "CREATE": drop(getCreate), "MKDIR": drop(getMkdir), "SYMLINK": drop(getSymlink),
	"MKNOD":  drop(getMknod),
	"RENAME": drop(getRename), "LINK": drop(getLink), "READDIR": drop(getReaddir), "READDIRPLUS": drop(getReaddirplus),
	"COMMIT": drop(getCommit),
}

// TestDecodeAllocates: the memory a decoder takes does not depend on the message:
// at most the attributes of a SETATTR and its guard. All else points into it.
func TestDecodeAllocates(t *testing.T) {
	const most = 2
	for name, decode := range decoders {
		for _, word := range []uint32{0, 1, 2, 64, 1000, 1 << 20, math.MaxInt32, math.MaxUint32} {
			for _, size := range []int{0, 100, 2 << 20} {
				msg := make([]byte, size)
				for i := 0; i+4 <= size; i += 4 {
					binary.BigEndian.PutUint32(msg[i:], word)
				}
				if n := testing.AllocsPerRun(20, func() {
					d := oncrpc.NewDecoder(msg)
					decode(&d)
				}); n > most+1 { // and the decoder itself
					t.Errorf("%s, %d bytes of the word %#x: %v allocations", name, size, word, n)
				}
			}
		}
	}
}

// FuzzDecode compares the decoders with the RFC's description on any bytes, and
// bounds what they allocate.
func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for proc := range int(procCount) {
		f.Add(byte(proc), rfc1813.Args[proc].Encode(rfc1813.Args[proc].Random(r)))
	}
	f.Fuzz(func(t *testing.T, proc byte, msg []byte) {
		p := int(proc) % int(procCount)
		// Other goroutines of the fuzzer allocate, too: the least of some runs counts.
		n := uint64(math.MaxUint64)
		for range 20 {
			before := allocated()
			d := oncrpc.NewDecoder(msg)
			decoded(p, &d)
			if n = min(n, allocated()-before); n <= 16<<10+4*uint64(len(msg)) {
				sameDecoding(t, p, msg)
				return
			}
		}
		t.Errorf("procedure %d: %d bytes allocated for a message of %d", p, n, len(msg))
	})
}
