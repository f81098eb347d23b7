package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/runtime/dbytes"
)

// whatever is a volume with all that files may have.
func whatever(t *testing.T, r *rand.Rand, bytes uint64) *worker {
	t.Helper()
	w := newWorker(t, bytes, fs.MkfsOptions{}, r.Int63())
	w.run(400)
	return w
}

// about is what tree leaves out: attributes, flags, which names are of one file, where the holes are.
func about(t *testing.T, v *fs.FS) map[string]string {
	t.Helper()
	all, first := map[string]string{}, map[uint64]string{}
	for _, path := range slices.Sorted(maps.Keys(tree(t, v))) {
		h := v.Root()
		for name := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
			if name == "" {
				continue
			}
			n, err := v.Lookup(root, h, []byte(name))
			if err != nil {
				t.Fatal(err)
			}
			h = n.Handle
		}
		a, err := v.Getattr(h)
		if err != nil {
			t.Fatal(err)
		}
		if first[h.Ino] == "" {
			first[h.Ino] = path
		}
		flags, err := v.Flags(h)
		if err != nil {
			t.Fatal(err)
		}
		names, err := v.ListXattr(h)
		if err != nil {
			t.Fatal(err)
		}
		access, err := v.GetAccess(h)
		dflt, err2 := v.GetDefault(h)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		said := fmt.Sprintf("%s %v flags %x lists %+v %+v", first[h.Ino], a.Atime, flags, access, dflt)
		list := strings.Split(string(names), "\x00")
		slices.Sort(list)
		for _, name := range list {
			if name != "" {
				value, err := v.GetXattr(h, []byte(name))
				said += fmt.Sprintf(" %s=%q %v", name, value, err)
			}
		}
		if a.Type == fs.Regular {
			said += fmt.Sprintf(" %d used", a.Used)
		}
		all[path] = said
	}
	return all
}

// sizeless is a tree without the sizes of directories, which have other pasts.
func sizeless(all map[string]string) map[string]string {
	size := regexp.MustCompile(`^(2 .*) \d+ bytes`)
	for path, said := range all {
		all[path] = size.ReplaceAllString(said, "$1")
	}
	return all
}

// All that files have is in a smaller volume, and in a larger one: also what only local mounts know of.
func TestRestoreFiles(t *testing.T) {
	r := drawn(t)
	w := whatever(t, r, 96<<20)
	v := w.v
	h := func(name string) fs.Handle {
		n, err := v.Create(root, v.Root(), []byte(name), fs.Unchecked, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n.Handle
	}
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	list := func(rights uint32) *fs.AccessList {
		named := []fs.AccessEntry{{ID: 7, Rights: rights}, {Group: true, ID: 9, Rights: 4}}
		return &fs.AccessList{Owner: 7, Group: 5, Mask: rights, Masked: true, Named: named}
	}
	mode, uid, gid, big := uint32(0o6751), uint32(7), uint32(8), uint64(9<<20+5)
	f := h("with all")
	_, _, _, err := v.Write(root, f, 3<<20, bytes.Repeat([]byte("x"), 10_000), fs.FileSync)
	_, err2 := v.Setattr(root, f, &fs.SetAttr{Mode: &mode, UID: &uid, GID: &gid, Size: &big, AtimeHow: fs.ClientTime,
		Atime: fs.Time{Sec: 1 << 33, Nsec: 5}}, nil)
	_, _, err3 := v.Link(root, f, v.Root(), []byte("another name"))
	must(err, err2, err3, v.SetXattr(f, []byte("security.capability"), []byte("caps"), true, false),
		v.SetXattr(f, []byte("user.a"), []byte("\x00b"), true, false), v.SetAccess(root, f, list(6)),
		v.SetFlags(root, f, fs.FlagImmutable))
	d, err := v.Mkdir(root, v.Root(), []byte("append only"), &fs.SetAttr{Mode: &mode, GID: &gid})
	must(err)
	_, err = v.Create(root, d.Handle, []byte("below"), fs.Guarded, &fs.SetAttr{UID: &uid}, 0)
	must(err, v.SetXattr(d.Handle, []byte("user.d"), nil, true, false), v.SetDefault(root, d.Handle, list(5)),
		v.SetFlags(root, d.Handle, fs.FlagAppendOnly),
		v.SetXattr(v.Root(), []byte("user.root"), []byte("r"), true, false), v.SetLabel("with all"))
	want, more := sizeless(tree(t, v)), about(t, v)
	w.close()
	folder := filepath.Join(t.TempDir(), "to")
	add(t, folder, rest(t, w.d), false)
	c := chain(t, folder)
	for _, size := range []uint64{64 << 20, 64<<20 + 3*disk.BlockSize, 200 << 20} {
		to := disk.NewMem(size)
		got, err := RestoreFiles(context.Background(), to, c, FilesOptions{MaxBytes: 1 << 40, Zeroed: true, Log: quiet})
		if err != nil || len(got.Left) > 0 || got.Files == 0 || got.Directories < 2 {
			t.Fatalf("%d bytes: %+v, %v", size, got, err)
		}
		clean(t, fmt.Sprint(size), to)
		v, err := fs.Open(to, fs.Options{ReadOnly: true, Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		sameTree(t, "restored", want, sizeless(tree(t, v)))
		sameTree(t, "what tree leaves out", more, about(t, v))
		if v.VolumeID() == c.Info().Volume {
			t.Error("another volume has the same identity")
		}
		if label, err := v.Label(); err != nil || label != "with all" {
			t.Errorf("its label is %q, %v", label, err)
		}
		must(v.Close())
	}
}

// Whatever interrupts it, there is a whole volume or none, and none of those that were there before.
func TestRestoreFilesInterrupted(t *testing.T) {
	r := drawn(t)
	d := made(t, 64<<20, fs.MkfsOptions{}, func(*fs.FS) {})
	files(t, r, d, 20)
	folder := filepath.Join(t.TempDir(), "to")
	add(t, folder, rest(t, d), false)
	c := chain(t, folder)
	want := treeOf(t, d)
	none, whole := 0, 0
	for _, writes := range []int{1, 2, 3, 5, 10, 1 + r.Intn(40), 1 << 30} {
		sim := disk.NewSim(40 << 20)
		if err := fs.Mkfs(sim, fs.MkfsOptions{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		stop := &stopped{Disk: sim, stop: func() { cancel(errors.New("enough")) }}
		stop.left.Store(int64(writes))
		_, err := RestoreFiles(ctx, stop, c, FilesOptions{Log: quiet})
		cancel(nil)
		left := sim.Crash(disk.LoseAll)
		_, openErr := fs.Open(left, fs.Options{ReadOnly: true, Log: quiet})
		switch {
		case err == nil:
			sameTree(t, "restored", sizeless(want), sizeless(treeOf(t, left)))
			whole++
		case !errors.Is(openErr, fs.ErrNotVolume):
			t.Errorf("%d writes, %v: there is a volume: %v", writes, err, openErr)
		default:
			none++
		}
	}
	if none < 5 || whole < 1 {
		t.Errorf("%d without a volume, %d whole", none, whole)
	}
}

// stopped is a device on which something happens after some writes, which it refuses from then on.
type stopped struct {
	disk.Disk
	left atomic.Int64
	stop func()
}

func (s *stopped) WriteAt(a uint64, bufs [][]byte) error {
	if s.left.Add(-1) == 0 {
		s.stop()
	}
	return s.Disk.WriteAt(a, bufs)
}

// What is damaged is left out and named, and the rest is there. What does not fit is refused.
func TestRestoreFilesOfDamage(t *testing.T) {
	d := made(t, 64<<20, fs.MkfsOptions{}, func(v *fs.FS) {
		put(t, v, "sound", bytes.Repeat([]byte("s"), 9000))
		put(t, v, "rotten", bytes.Repeat([]byte("rot"), 3000))
		put(t, v, "large", bytes.Repeat([]byte("large"), 3<<20))
	})
	b := make([]byte, disk.BlockSize)
	for a := range d.Size() {
		if err := d.ReadAt(a, [][]byte{b}); err != nil {
			t.Fatal(err)
		}
		if bytes.HasPrefix(b, []byte("rotrotrot")) {
			b[100] ^= 1
			if err := d.WriteAt(a, [][]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
	}
	folder := filepath.Join(t.TempDir(), "to")
	add(t, folder, rest(t, d), false)
	c := chain(t, folder)
	to := disk.NewMem(48 << 20)
	got, err := RestoreFiles(context.Background(), to, c, FilesOptions{Zeroed: true, Log: quiet})
	if err != nil || !slices.Equal(got.Left, []string{`"/rotten"`}) || got.Files != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	clean(t, "without the damaged file", to)
	if all := treeOf(t, to); len(all) != 3 || all["/rotten"] != "" {
		t.Errorf("%q", all)
	}
	for _, size := range []uint64{1 << 20, 8 << 20, 16 << 20, 20 << 20} {
		to := disk.NewMem(size)
		if _, err := RestoreFiles(context.Background(), to, c, FilesOptions{Zeroed: true, Log: quiet}); !errors.Is(err,
			ErrTooSmall) {
			t.Errorf("to %d bytes: %v", size, err)
		}
		if _, err := fs.Open(to, fs.Options{ReadOnly: true, Log: quiet}); !errors.Is(err, fs.ErrNotVolume) {
			t.Errorf("%d bytes hold a volume: %v", size, err)
		}
	}
}

// Of what has damaged attributes the contents are there, for the owner alone, and it is named: also the root, and a
// file with two names.
func TestRestoreFilesOfDamagedAttributes(t *testing.T) {
	d := made(t, 64<<20, fs.MkfsOptions{}, func(v *fs.FS) {
		for _, name := range []string{"once", "twice", "sound"} {
			put(t, v, name, []byte(name))
		}
		handle := func(name string) fs.Handle {
			n, err := v.Lookup(root, v.Root(), []byte(name))
			if err != nil {
				t.Fatal(err)
			}
			return n.Handle
		}
		_, _, err := v.Link(root, handle("twice"), v.Root(), []byte("again"))
		for _, h := range []fs.Handle{v.Root(), handle("once"), handle("twice")} {
			err = errors.Join(err, v.SetXattr(h, []byte("user.a"), []byte("rotrotrot"), true, false))
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	b := make([]byte, disk.BlockSize)
	for a := range d.Size() {
		if err := d.ReadAt(a, [][]byte{b}); err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(b, []byte("rotrotrot")); at >= 0 {
			b[at] ^= 1
			if err := d.WriteAt(a, [][]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
	}
	folder := filepath.Join(t.TempDir(), "to")
	add(t, folder, rest(t, d), false)
	to := disk.NewMem(48 << 20)
	got, err := RestoreFiles(context.Background(), to, chain(t, folder), FilesOptions{Zeroed: true, Log: quiet})
	slices.Sort(got.Left)
	if err != nil || !slices.Equal(got.Left, []string{`"/"`, `"/again"`, `"/once"`}) && !slices.Equal(got.Left,
		[]string{`"/"`, `"/once"`, `"/twice"`}) {
		t.Fatalf("%+v, %v", got, err)
	}
	clean(t, "without the damaged attributes", to)
	v, err := fs.Open(to, fs.Options{ReadOnly: true, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for name, want := range map[string]uint32{
		".": 0o700, "once": 0o600, "twice": 0o600, "again": 0o600, "sound": 0o644,
	} {
		n, err := v.Lookup(root, v.Root(), []byte(name))
		if err != nil || n.Attr.Mode != want {
			t.Errorf("%s: mode %o, %v, want %o", name, n.Attr.Mode, err, want)
		}
	}
}

// A new volume uses the device to its end: the blocks that are withheld are those of the superblocks.
func TestSuperblocksAtEnds(t *testing.T) {
	for size := uint64(10000); size < 10600; size += 7 {
		d := disk.NewMem(size * disk.BlockSize)
		if err := fs.Mkfs(d, fs.MkfsOptions{Zeroed: true, MaxBytes: 1 << 40}); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, disk.BlockSize)
		if err := d.ReadAt(size-1, [][]byte{b}); err != nil {
			t.Fatal(err)
		}
		if why, _ := superblockformat.Decode(&dbytes.Bytes{Data: b}); why != 0 {
			t.Errorf("%d blocks: no superblock in the last", size)
		}
	}
}

// What is withheld is there for who reads it, and goes as other blocks do.
func TestWithheld(t *testing.T) {
	const size = 8
	below := disk.NewMem(size * disk.BlockSize)
	w := &withheld{Disk: below, held: map[uint64][]byte{}}
	all := func(d disk.Disk) (said string) {
		bufs := slices.Collect(slices.Chunk(make([]byte, size*disk.BlockSize), disk.BlockSize))
		if err := d.ReadAt(0, bufs); err != nil {
			t.Fatal(err)
		}
		for _, b := range bufs {
			said += string('a' + b[0])
		}
		return said
	}
	write := func(a uint64, numbers ...byte) {
		t.Helper()
		var bufs [][]byte
		for _, n := range numbers {
			bufs = append(bufs, bytes.Repeat([]byte{n}, disk.BlockSize))
		}
		if err := w.WriteAt(a, bufs); err != nil {
			t.Fatal(err)
		}
	}
	want := func(above, under string) {
		t.Helper()
		if a, b := all(w), all(below); a != above || b != under {
			t.Errorf("%s over %s, want %s over %s", a, b, above, under)
		}
	}
	write(0, 1, 2, 3, 4, 5, 6, 7, 8)
	want("bcdefghi", "acdefgha")
	write(7, 9)
	write(0, 9)
	want("jcdefghj", "acdefgha")
	if next, err := w.NextData(7); err != nil || next != 7 {
		t.Errorf("%d, %v", next, err)
	}
	if err := w.WriteAt(7, make([][]byte, 2)); !errors.Is(err, disk.ErrRange) {
		t.Error(err)
	}
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
	want("jcdefghj", "jcdefghj")
}
