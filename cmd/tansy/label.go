package main

import (
	"errors"
	"fmt"
	"strings"

	"tansy/disk"
	tansyfs "tansy/fs"
	"tansy/ops/control"
)

func label() (*flagSet, action) {
	f := newFlags("label", "VOLUME [LABEL] [flags]", `
  tansy label data.img            print the label of a volume
  tansy label data.img backups    give it another
  tansy label data.img --clear    take it away

exit codes:
  0  printed, or done
  1  failed, or no volume: nothing has changed
  2  wrong arguments, such as a label that cannot be one

A label is what people call a volume: up to 64 bytes, without a slash. A volume
that is served or mounted on this machine is asked there. The Debian package has
a rule of udev by which a volume on a block device is
/dev/disk/by-label/LABEL and by-uuid/UUID, and lsblk -f shows both; so
LABEL=backups is a source in /etc/fstab.
`)
	clear := f.Bool("clear", false, "take the label away")
	udev := f.Bool("udev", false, "print type, UUID, and label as udev reads them")
	return f, func(args []string) int {
		pos, code, done := parse(f, args, 1, 2)
		if done {
			return code
		}
		sets := len(pos) == 2
		if sets && *clear || *udev && (sets || *clear) {
			return misused(f, "a LABEL, --clear, and --udev exclude each other: give one of them")
		}
		if !sets && !*clear {
			return printLabel(pos[0], *udev)
		}
		to := ""
		if sets {
			to = pos[1]
		}
		if err := tansyfs.CheckLabel(to); err != nil {
			return misused(f, err.Error())
		}
		if err := setLabel(pos[0], to); err != nil {
			return fail("label", err)
		}
		return exitOK
	}
}

// printLabel prints the label of a volume, or what udev wants to know of it.
func printLabel(name string, udev bool) int {
	if udev { // which asks of what is no volume, too: block 0 says so without a lock
		if _, err := control.VolumeOf(name); err != nil {
			return fail("label", err)
		}
	}
	id, label, err := labelOf(name)
	if err != nil {
		return fail("label", err)
	}
	switch {
	case udev:
		stdout.conclude("%s", udevProperties(id, label))
	case label != "":
		stdout.conclude("%s", label)
	}
	return exitOK
}

// labelOf is the UUID and the label of a volume, which may be in use on this machine.
func labelOf(name string) (id [16]byte, label string, err error) {
	v, closeAll, err := openForLabel(name, true)
	if errors.Is(err, disk.ErrLocked) {
		socket, ok := socketOf(name)
		if !ok {
			return id, "", err
		}
		served, err := servedBy(socket, name)
		if err != nil {
			return id, "", err
		}
		id, err = control.VolumeOf(name)
		return id, served.Label, err
	}
	if err != nil {
		return id, "", err
	}
	id = v.VolumeID()
	label, err = v.Label()
	return id, label, errors.Join(err, closeAll())
}

// setLabel gives a volume a label, which may be in use on this machine.
func setLabel(name, label string) error {
	v, closeAll, err := openForLabel(name, false)
	if errors.Is(err, disk.ErrLocked) {
		socket, ok := socketOf(name)
		if !ok {
			return fmt.Errorf("%w; the user that has it open, and root, can give it a label meanwhile (serve --control)", err)
		}
		if _, err := servedBy(socket, name); err != nil {
			return err
		}
		return control.SetLabel(socket, label)
	}
	if err != nil {
		return err
	}
	if err := errors.Join(v.SetLabel(label), closeAll()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// openForLabel opens a volume that nobody has in use.
func openForLabel(name string, readOnly bool) (v *tansyfs.FS, closeAll func() error, err error) {
	d, err := openVolume(name, disk.FileOptions{ReadOnly: readOnly, Warn: warning("label")})
	if err != nil {
		return nil, nil, err
	}
	v, err = tansyfs.Open(d, tansyfs.Options{ReadOnly: readOnly})
	if err != nil {
		err = fmt.Errorf("%s: %w%s", name, err, adviceFor(d, err))
		return nil, nil, errors.Join(err, d.Close())
	}
	return v, func() error { return errors.Join(v.Close(), d.Close()) }, nil
}

// udevProperties is what udev imports about a volume, as its own programs name it: the values as they are, and as names
// of links.
func udevProperties(id [16]byte, label string) string {
	uuid := fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	lines := []string{"ID_FS_TYPE=tansy", "ID_FS_USAGE=filesystem", "ID_FS_UUID=" + uuid, "ID_FS_UUID_ENC=" + uuid}
	if label != "" {
		lines = append(lines, "ID_FS_LABEL="+strings.Map(udevPlain, label), "ID_FS_LABEL_ENC="+linkName(label))
	}
	return strings.Join(lines, "\n")
}

// udevPlain is a character of a value of udev: one that means nothing to a shell, or a bar in its place.
func udevPlain(r rune) rune {
	if r >= 0x80 || isPlain(byte(r)) {
		return r
	}
	return '_'
}

// isPlain tells whether udev has a character of ASCII stand for itself in the name of a link.
func isPlain(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || strings.IndexByte("#+-.:=@_", c) >= 0
}

// linkName is a label as the name of a link, as udev and mount(8) have it: other characters of ASCII by their numbers.
func linkName(label string) string {
	var b strings.Builder
	for i := range len(label) {
		if c := label[i]; c >= 0x80 || isPlain(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String()
}
