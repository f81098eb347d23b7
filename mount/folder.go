//go:build linux || darwin

package mount

import (
	"log/slog"
	"regexp"

	"tansy/fs"
)

// Earlier mounts gave open files that lost their last name another one, in a folder of the root directory. What a crash
// left there goes, and then the folder does. Programs may not have its name: nothing of theirs should be taken for such
// files.

// oldFolder is the name of the folder.
const oldFolder = ".tansy-open"

// oldName is the shape of names in it.
var oldName = regexp.MustCompile("^[0-9a-f]{16}$")

// removeOldFolder removes the folder, with what an earlier mount put there. If there is anything else in it, that and
// the folder stay.
func removeOldFolder(v Volume, log *slog.Logger) error {
	root := v.Root()
	n, err := v.Lookup(superuser, root, []byte(oldFolder))
	if err == fs.ErrNoEnt || err == nil && (n.Attr.Type != fs.Directory || n.Attr.Mode != 0o700 || n.Attr.UID != 0) {
		return nil
	}
	if err != nil {
		return err
	}
	removed, left, err := emptyOldFolder(v, n.Handle)
	if removed > 0 {
		log.Info("removed files that were open, and had lost their names, when the volume was last mounted", "count", removed)
	}
	if err != nil || left {
		if left {
			log.Warn("what is in the folder of open files was not put there by a mount; it is left alone", "folder", oldFolder)
		}
		return err
	}
	before, err := v.Getattr(root)
	if err != nil {
		return err
	}
	if _, err := v.Rmdir(superuser, root, []byte(oldFolder)); err != nil {
		return err
	}
	_, err = v.Setattr(superuser, root, &fs.SetAttr{MtimeHow: fs.ClientTime, Mtime: before.Mtime}, nil)
	return err
}

func emptyOldFolder(v Volume, folder fs.Handle) (removed int, left bool, err error) {
	page := fs.Limit{Bytes: fs.MaxListing, Size: func(int) int { return 1 << 9 }}
	for cookie := uint64(0); ; {
		l, err := v.Readdir(superuser, folder, cookie, 0, true, page)
		if err != nil {
			return removed, left, err
		}
		for _, e := range l.Entries {
			cookie = e.Cookie
			if e.Cookie <= 2 { // "." and ".."
				continue
			}
			if e.Attr == nil || e.Attr.Type == fs.Directory || !oldName.Match(e.Name) {
				left = true
				continue
			}
			if _, err := v.Remove(superuser, folder, e.Name); err != nil {
				return removed, left, err
			}
			removed++
		}
		if l.EOF {
			return removed, left, nil
		}
	}
}
