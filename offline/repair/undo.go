package repair

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"tansy/disk"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/layout"
	"tansy/internal/volumeend"
)

// An undo file is a header and records. The header: undoMagic, the UUID of the volume (16
// bytes), the blocks of the device that it uses (8), and SHA-256 of these. All blocks are the device's: where the
// layout has them may be what the repair restores. A record: what it is (8), a block (8), its old
// contents, and SHA-256 of the UUID and all that. Numbers are little-endian.
const (
	undoMagic  = "TansyUndo1\n\x00\x00\x00\x00\x00"
	undoHeader = 16 + 16 + 8 + sha256.Size
	undoRecord = 8 + 8 + disk.BlockSize + sha256.Size
)

// kinds of record
const (
	undoBlock = iota // the old contents of a block
	undoNone         // a block that could not be read: it has no old contents
	undoEnd          // the repair came to its end, and left the log with a header of these contents
)

// undoer is a device that saves what a block had in the undo file before it is overwritten.
type undoer struct {
	disk.Disk
	uuid [16]byte
	file *os.File
	head uint64 // the block of the device with the log's header, which changes whenever the volume is opened

	mu    sync.Mutex
	saved map[uint64]bool
}

// newUndo makes an undo file with the given blocks of d, durably. Nothing is written to d.
func newUndo(path string, uuid [16]byte, head uint64, d disk.Disk, blocks []uint64) (*undoer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) // the superblock has a secret
	if err != nil {
		return nil, err
	}
	u := &undoer{Disk: d, uuid: uuid, file: f, head: head, saved: map[uint64]bool{}}
	start := binary.LittleEndian.AppendUint64(append([]byte(undoMagic), uuid[:]...), d.Size())
	sum := sha256.Sum256(start)
	_, err = f.Write(append(start, sum[:]...))
	for _, a := range blocks {
		if err == nil {
			err = u.save(a)
		}
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		f.Close()
		os.Remove(path)
		return nil, fmt.Errorf("the undo file could not be written, so that nothing was changed: %w", err)
	}
	return u, nil
}

func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// save appends the record of block a.
func (u *undoer) save(a uint64) error {
	kind, b := uint64(undoBlock), make([]byte, disk.BlockSize)
	if u.Disk.ReadAt(a, [][]byte{b}) != nil {
		kind = undoNone
		clear(b)
	}
	u.saved[a] = true
	return u.record(kind, a, b)
}

func (u *undoer) record(kind, a uint64, b []byte) error {
	r := binary.LittleEndian.AppendUint64(nil, kind)
	r = append(binary.LittleEndian.AppendUint64(r, a), b...)
	sum := sha256.Sum256(append(u.uuid[:], r...))
	_, err := u.file.Write(append(r, sum[:]...))
	return err
}

// WriteAt saves what is overwritten first, if the plan did not foresee it.
func (u *undoer) WriteAt(a uint64, bufs [][]byte) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range bufs {
		if x := a + uint64(i); !u.saved[x] {
			// one by one, so that a crash leaves no more than one that is not whole, the last
			if err := errors.Join(u.save(x), u.file.Sync()); err != nil {
				return err
			}
		}
	}
	return u.Disk.WriteAt(a, bufs)
}

// NextData implements disk.Holes.
func (u *undoer) NextData(a uint64) (uint64, error) { return disk.NextData(u.Disk, a) }

// Unwrap returns the device, for disk.HostOf.
func (u *undoer) Unwrap() disk.Disk { return u.Disk }

// finish notes that the repair came to its end.
func (u *undoer) finish() error {
	b := make([]byte, disk.BlockSize)
	if err := u.Disk.ReadAt(u.head, [][]byte{b}); err != nil {
		return err
	}
	return errors.Join(u.record(undoEnd, u.head, b), u.file.Sync())
}

// An Undo is the contents of an undo file.
type Undo struct {
	UUID   [16]byte
	Blocks uint64 // that it puts back
	None   uint64 // that could not be read before the repair, and stay as they are
	size   uint64 // of the volume, or of its device, which may be larger
	end    uint64 // behind the last block that it puts back
	old    map[uint64][]byte
	left   []byte // the header of the log when the repair had come to its end; nil: it had not
}

// LoadUndo reads an undo file, and makes sure that it is whole. The last record may be torn if a crash interrupted the
// repair; its block was not overwritten then.
func LoadUndo(path string) (*Undo, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	if len(all) < undoHeader || string(all[:16]) != undoMagic {
		return nil, fmt.Errorf("%s is no undo file", path)
	}
	if sum := sha256.Sum256(all[:40]); !bytes.Equal(sum[:], all[40:undoHeader]) {
		return nil, fmt.Errorf("%s is damaged: the checksum of its header is wrong", path)
	}
	u := &Undo{UUID: [16]byte(all[16:32]), size: layout.Uint64(all, 32), old: map[uint64][]byte{}}
	for rest := all[undoHeader:]; len(rest) >= undoRecord; rest = rest[undoRecord:] {
		r := rest[:undoRecord-sha256.Size]
		sum := sha256.Sum256(append(u.UUID[:], r...))
		if !bytes.Equal(sum[:], rest[len(r):undoRecord]) {
			if len(rest) < 2*undoRecord {
				break
			}
			return nil, fmt.Errorf("%s is damaged: the checksum of the record at byte %d is wrong", path, len(all)-len(rest))
		}
		switch layout.Uint64(r, 0) {
		case undoBlock:
			a := layout.Uint64(r, 8)
			u.old[a] = r[16:]
			u.end = max(u.end, a+1)
			u.Blocks++
		case undoNone:
			u.None++
		case undoEnd:
			u.left = r[16:]
		}
	}
	return u, nil
}

// ErrChanged is the error of undoing a repair of a volume that was changed since.
var ErrChanged = errors.New("the volume was opened after the repair: " +
	"with the old blocks among newer ones it would be worse than before, so that nothing was changed")

// ErrGrown is the error of undoing a repair of a volume that has grown since.
var ErrGrown = errors.New("the volume has grown after the repair: " +
	"old blocks may lie where there is something new, and say that there is nothing, so that nothing was changed")

// headOf is the block of the device with the header of the log.
func headOf(s superblockformat.Super) uint64 {
	_, at, _ := volumeend.Locate(s)(volumeend.Journal(s).Start)
	return at
}

// Check returns nil if d holds the volume as the repair left it, or as a crash left it during the repair or during
// Apply. The error is ErrChanged if the volume was changed since, ErrGrown if it has grown, and names both if d holds
// another volume.
func (u *Undo) Check(d disk.Disk) error {
	d = volumeend.Bound(d, nil)
	s, _, err := superblocks(d)
	if err != nil {
		return err
	}
	id := volumeend.UUID(s)
	if id == u.UUID && s.Extent().Room() > u.size {
		return ErrGrown
	}
	if id != u.UUID || u.size < d.Size() || u.end > d.Size() {
		return fmt.Errorf("the undo file is that of another volume: UUID %x, %d blocks; this one has UUID %x, %d blocks",
			u.UUID, u.size, id, d.Size())
	}
	if u.left == nil {
		return nil
	}
	head := headOf(s)
	now := make([]byte, disk.BlockSize)
	if err := d.ReadAt(head, [][]byte{now}); err != nil {
		return err
	}
	if !bytes.Equal(now, u.left) && !bytes.Equal(now, u.old[head]) {
		return ErrChanged
	}
	return nil
}

// Apply puts the old contents back. It may be repeated.
func (u *Undo) Apply(d disk.Disk) error {
	if err := u.Check(d); err != nil {
		return err
	}
	for a, b := range u.old {
		if err := d.WriteAt(a, [][]byte{b}); err != nil {
			return err
		}
	}
	return d.Barrier()
}
