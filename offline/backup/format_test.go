package backup

import (
	"bytes"
	"testing"

	"tansy/disk"
)

// A head that is not what is expected in its place is none, whatever checksum it has.
func TestHeadRefused(t *testing.T) {
	const at, size = 7, 1000
	id := ID{1}
	good := []entry{{3, stored, 1}, {4, gone, 6}, {10, notWritten, 2}, {999, unreadable, 0}}
	if got, ok := decodeHead(encodeHead(id, at, good), id, at, size); !ok || len(got) != len(good) || got[1] != good[1] {
		t.Fatal(got, ok)
	}
	head := encodeHead(id, at, good)
	for what, x := range map[string]struct {
		b    []byte
		id   ID
		at   uint64
		size uint64
	}{
		"of another backup":     {head, ID{2}, at, size},
		"of another place":      {head, id, at + 1, size},
		"of a smaller volume":   {head, id, at, 999},
		"a block of the index":  {encodeIndex(id, at, []span{{1, 2, 3}}), id, at, size},
		"without entries":       {encodeHead(id, at, nil), id, at, size},
		"a block twice":         {encodeHead(id, at, []entry{{3, stored, 1}, {3, stored, 1}}), id, at, size},
		"not in order":          {encodeHead(id, at, []entry{{3, stored, 1}, {2, stored, 1}}), id, at, size},
		"within what is gone":   {encodeHead(id, at, []entry{{3, gone, 5}, {7, stored, 1}}), id, at, size},
		"none gone":             {encodeHead(id, at, []entry{{3, gone, 0}}), id, at, size},
		"gone behind the end":   {encodeHead(id, at, []entry{{999, gone, 2}}), id, at, size},
		"of no kind":            {encodeHead(id, at, []entry{{3, 0, 1}}), id, at, size},
		"lost":                  {encodeHead(id, at, []entry{{3, lost, 1}}), id, at, size},
		"more than there is of": {table{headMagic, id, at}.encode(perHead+1, []uint64{3, 1}), id, at, size},
	} {
		if got, ok := decodeHead(x.b, x.id, x.at, x.size); ok {
			t.Errorf("%s: %v", what, got)
		}
	}
}

// What has its checksum and is nonsense otherwise is refused, or harmless.
func TestSealedNonsense(t *testing.T) {
	r := drawn(t)
	for range 20_000 {
		b := make([]byte, disk.BlockSize)
		for range 1 + r.Intn(30) {
			b[r.Intn(200)] = byte(r.Intn(256))
		}
		magic := []string{headMagic, indexMagic, endMagic, headerMagic}[r.Intn(4)]
		copy(b, magic)
		seal(b)
		decodeHead(b, ID(b[8:]), u64At(b, 24), 1+u64At(b, 48))
		decodeIndex(b, ID(b[8:]), u64At(b, 24))
		if e, ok := decodeEnding(b, u64At(b, 8)); ok && (e.index > u64At(b, 8) || e.info.Room > e.info.Size) {
			t.Errorf("%+v", e)
		}
		if i, err := decodeHeader(b); err == nil && (i.Room > i.Size || i.Size < 2) {
			t.Errorf("%+v", i)
		}
		file := append(append(bytes.Clone(b), b...), b...)
		if f, err := openFile(bytes.NewReader(file), "nonsense", uint64(len(file))); err == nil {
			t.Errorf("%+v", f.Info)
		}
	}
}

func u64At(b []byte, at int) (x uint64) {
	for i := range 8 {
		x |= uint64(b[at+i]) << (8 * i)
	}
	return x
}
