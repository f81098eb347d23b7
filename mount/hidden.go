//go:build linux

package mount

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"sync/atomic"

	"tansy/fs"
)

// NFS knows no open files, so the volume's procedures free a file with its last name. For one that is open at that
// moment there is a folder in the root directory, which programs do not see. The file is linked there
// first, by one transaction, and loses its name by the next; when it is closed, the link goes. A crash in between leaves a
// file with one link too many, or one without other names: the next mount removes all links there.
//
// Two more procedures would make this one transaction without a folder: REMOVE and RENAME that leave a file
// without a name on the list of orphans with its contents, and one that lets it go when it is closed.

// hiddenFolder is the name of the folder.
const hiddenFolder = ".tansy-open"

// hidingName is the shape of names in it.
var hidingName = regexp.MustCompile("^[0-9a-f]{16}$")

// hiding is the folder of a mount.
type hiding struct {
	volume Volume
	root   fs.Handle
	folder fs.Handle     // zero if there is none
	last   atomic.Uint64 // name given out
}

func (h *hiding) made() bool { return h.folder != fs.Handle{} }

// newHiding finds or makes the folder, and removes what a crash has left in it. A volume without room, or one that
// takes no changes, may have none; then files that are open cannot lose their last name.
func newHiding(v Volume, readOnly bool, log *slog.Logger) (*hiding, error) {
	h := &hiding{volume: v, root: v.Root()}
	n, err := v.Lookup(superuser, h.root, []byte(hiddenFolder))
	switch {
	case err == nil && (n.Attr.Type != fs.Directory || n.Attr.Mode != 0o700 || n.Attr.UID != 0):
		return nil, fmt.Errorf("/%s of this volume is where files live that are removed while they are open, a folder of user 0 with mode 0700; "+
			"what has that name here is something else, and has to be renamed (by NFS: tansy serve)", hiddenFolder)
	case err == nil:
		h.folder = n.Handle
		if readOnly {
			return h, nil
		}
		return h, h.empty(log)
	case err != fs.ErrNoEnt:
		return nil, err
	case readOnly:
		return h, nil
	}
	if err := h.make(); err != nil && err != fs.ErrNoSpc {
		return nil, err
	}
	return h, nil
}

// make makes the folder, and leaves the root's mtime as it was. A first entry that goes at once takes the block that the
// folder needs, so that on a volume that is full, too, open files can be removed.
func (h *hiding) make() error {
	before, err := h.volume.Getattr(h.root)
	if err != nil {
		return err
	}
	mode := uint32(0o700)
	n, err := h.volume.Mkdir(superuser, h.root, []byte(hiddenFolder), &fs.SetAttr{Mode: &mode})
	if err != nil {
		return err
	}
	h.folder = n.Handle
	name := h.name()
	if _, err = h.volume.Create(superuser, h.folder, []byte(name), fs.Guarded, nil, 0); err == nil {
		_, err = h.volume.Remove(superuser, h.folder, []byte(name))
	}
	_, e := h.volume.Setattr(superuser, h.root, &fs.SetAttr{MtimeHow: fs.ClientTime, Mtime: before.Mtime}, nil)
	return errors.Join(err, e)
}

// empty removes what a crash has left in the folder. What was not put there by a mount stays.
func (h *hiding) empty(log *slog.Logger) error {
	removed := 0
	for cookie := uint64(0); ; {
		l, err := h.volume.Readdir(superuser, h.folder, cookie, 0, true, fs.MaxListing, func(int) int { return 1 << 9 })
		if err != nil {
			return err
		}
		for _, e := range l.Entries {
			cookie = e.Cookie
			if e.Ino == h.folder.Ino || e.Ino == h.root.Ino { // "." and ".."
				continue
			}
			if e.Attr == nil || e.Attr.Type == fs.Directory || !hidingName.Match(e.Name) {
				log.Warn("what is in the folder of files that are removed while they are open was not put there by a mount; it is left alone",
					"folder", hiddenFolder, "name", string(e.Name))
				continue
			}
			if _, err := h.volume.Remove(superuser, h.folder, e.Name); err != nil {
				return err
			}
			removed++
		}
		if l.EOF {
			break
		}
	}
	if removed > 0 {
		log.Info("removed files that were open, and had lost their names, when the volume was last mounted", "count", removed)
	}
	return nil
}

// name is a new name in the folder.
func (h *hiding) name() string { return fmt.Sprintf("%016x", h.last.Add(1)) }

// link gives a file a name in the folder.
func (h *hiding) link(file fs.Handle) (name string, err error) {
	if !h.made() {
		return "", fs.ErrNoSpc
	}
	for err = fs.ErrExist; err == fs.ErrExist; { // what is there by another's hand keeps its name
		name = h.name()
		_, _, err = h.volume.Link(superuser, file, h.folder, []byte(name))
	}
	return name, err
}

// remove takes the name away again.
func (h *hiding) remove(name string) error {
	_, err := h.volume.Remove(superuser, h.folder, []byte(name))
	return err
}

// losing calls take, which takes a name away from whatever file has it. If that is its last one and the file is open,
// it is hidden first; anyway: the name goes also if the file cannot be hidden. The kernel changes no other name in this directory meanwhile.
func (f *fileSystem) losing(dir fs.Handle, name []byte, anyway bool, take func() error) error {
	n, err := f.volume.Lookup(superuser, dir, name)
	if err != nil {
		return take() // which says what is wrong, if anything is
	}
	id := nodeID(n.Handle)
	defer f.nodes.lockNames(id)()
	a, err := f.volume.Getattr(n.Handle)
	if err != nil {
		return take() // the file has gone; the name may be another's
	}
	last := a.Type == fs.Directory || a.Nlink == 1
	open, hidden := f.nodes.isOpen(id)
	if !last || !open || a.Type == fs.Directory || hidden != "" {
		err := take()
		if err == nil && last {
			f.nodes.setGone(a)
		}
		return err
	}
	if hidden, err = f.hidden.link(n.Handle); err != nil {
		if anyway {
			return take()
		}
		return err
	}
	f.nodes.with(id, func(x *node) { x.hidden = hidden }) // from here on the link does not count
	if err := take(); err != nil {
		return errors.Join(err, f.unhide(id, hidden))
	}
	if f.shared {
		// It may have a name for all that: one renamed to itself, one that others link meanwhile, or if take was done before and this was another file.
		if a, err := f.volume.Getattr(n.Handle); err == nil && a.Nlink > 1 {
			return f.unhide(id, hidden)
		}
	}
	return nil
}

// unhide undoes the hiding of a file, which has another name.
func (f *fileSystem) unhide(id uint64, name string) error {
	f.nodes.with(id, func(x *node) { x.hidden = "" })
	return f.hidden.remove(name)
}

// close notes that a file is closed once. With the last time a hidden one is removed.
func (f *fileSystem) close(id uint64) {
	defer f.nodes.lockNames(id)()
	var hidden string
	var h fs.Handle
	f.nodes.with(id, func(x *node) {
		if x.opens = max(x.opens-1, 0); x.opens == 0 {
			hidden, h = x.hidden, x.handle
		}
	})
	if hidden == "" {
		return
	}
	a, err := f.volume.Getattr(h)
	if err == nil {
		err = f.hidden.remove(hidden)
	}
	if err != nil {
		f.log.Error("a file that was removed while it was open stays until the volume is mounted again", "folder", hiddenFolder, "name", hidden, "err", err)
		return
	}
	if a.Nlink == 1 {
		f.nodes.setGone(a)
	} else { // it got a name: O_TMPFILE, linkat(2)
		f.nodes.with(id, func(x *node) { x.hidden = "" })
	}
}
