package main

// Where a volume may be made. A volume that is missing may be one whose name was mistyped, or whose disk is not
// attached or not mounted today: an empty volume in its place answers its clients with NFS3ERR_STALE.

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"tansy/disk/nbd"
	"tansy/disk/rbd"
	"tansy/internal/nearest"
	processes "tansy/internal/process"
	"tansy/mount"
)

// ignoreFstabUsage explains --ignore-fstab.
const ignoreFstabUsage = "make an image also where /etc/fstab has a file system that is not mounted now, " +
	"in the directory below it"

// schemeLike is the beginning of what may be meant as something other than a file. Names of files have dots more often.
var schemeLike = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+-]*:`)

// schemes are what begins the names of other things than files.
var schemes = regexp.MustCompile(`(?i)^(nbds?(\+[a-z]+)?|rbd|ceph|file|https?|iscsi|nfs|s3):`)

// strange returns an error for a name with a scheme that is not known, or not as it is meant here, unless there is a
// file of that name. What a server has must be named as its kind is.
func strange(name string) error {
	var malformed error
	switch {
	case nbd.IsName(name):
		malformed = nbd.Check(name)
	case rbd.IsName(name):
		malformed = rbd.Check(name)
	}
	if malformed != nil {
		return wrongArgument{fmt.Errorf("%q: %w", name, malformed)}
	}
	scheme := schemeLike.FindString(name)
	if remote(name) || scheme == "" || !missing(name) {
		return nil
	}
	const nbdNames = "nbd://HOST:PORT/EXPORT, nbd+unix:///EXPORT?socket=PATH"
	if strings.HasPrefix(strings.ToLower(scheme), "nbd") {
		return wrongArgument{fmt.Errorf("%q is not how the export of an NBD server is named: give %s "+
			"(a file of that name is ./%s)", scheme, nbdNames, name)}
	}
	return wrongArgument{fmt.Errorf("%q is no kind of volume: give a file, a device, %s, or rbd:POOL/IMAGE "+
		"(a file of that name is ./%s)", scheme, nbdNames, name)}
}

// mostNeighbours bounds the files that are looked at for one that was meant.
const mostNeighbours = 10_000

// similar is the file or block device in the same directory whose name is most like that of what is missing, or "".
func similar(name string) string {
	dir, base := filepath.Split(name)
	at, err := os.Open(cmp.Or(dir, "."))
	if err != nil {
		return ""
	}
	defer at.Close()
	entries, _ := at.ReadDir(mostNeighbours)
	var names []string
	for _, e := range entries {
		st, err := os.Stat(filepath.Join(at.Name(), e.Name())) // behind a link
		switch {
		case err != nil || !st.Mode().IsRegular() && st.Mode()&(fs.ModeDevice|fs.ModeCharDevice) != fs.ModeDevice:
		case strings.HasSuffix(e.Name(), unfinished) || strings.HasSuffix(e.Name(), undoEnd):
		default:
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	if best := nearest.Of(base, names); best != "" {
		return dir + best
	}
	return ""
}

// absent is the error for a volume that is missing and is not to be made; size is one that it may have, and how tells
// another way to make it.
func absent(name, size, how string) error {
	if err := barred(name); err != nil {
		return err
	}
	if err := unmounted(name); err != nil {
		return fmt.Errorf("%s does not exist: %w", name, err)
	}
	meant := didYouMean(similar(name))
	if meant == "" {
		meant = ":"
	}
	return fmt.Errorf("%s does not exist%s tansy mkfs %s --size %s makes a volume there%s",
		name, meant, quoted(name), size, how)
}

// barred returns an error if there may be no image of that name, which does not exist, wherever it lies.
func barred(name string) error {
	if err := strange(name); err != nil {
		return err
	}
	if to, err := os.Readlink(name); err == nil {
		return fmt.Errorf("%s is a link to %s, which does not exist", name, to)
	}
	if dir := resolve(filepath.Dir(name)); below("/dev", dir) {
		return fmt.Errorf("there is no device %s, and an image is never made below /dev", name)
	}
	return nil
}

// unmounted returns an error if a volume of that name lies, or would lie, in the mount point of a file system that is
// not mounted now.
func unmounted(name string) error {
	table, err := os.ReadFile("/etc/fstab")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("what should be mounted is not known: %w", err)
	}
	at := notMounted(string(table), filepath.Dir(resolve(name)), func(dir string) bool {
		_, err := mount.On(dir)
		return !errors.Is(err, mount.ErrNotThere)
	})
	if at == "" {
		return nil
	}
	return fmt.Errorf("%s is in /etc/fstab and is not mounted now", at)
}

// notMounted returns the mount point in a table like /etc/fstab on which dir would lie if it were mounted, which it is
// not; "" if there is none.
func notMounted(table, dir string, mounted func(dir string) bool) string {
	points := map[string]string{} // without links, and as it is in the table
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 3 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if at := processes.Unescaped(fields[1]); filepath.IsAbs(at) {
			points[resolve(at)] = at
		}
	}
	for ; dir != filepath.Dir(dir) && !mounted(dir); dir = filepath.Dir(dir) {
		if at, ok := points[dir]; ok {
			return at
		}
	}
	return "" // the root is mounted
}

// resolve is the absolute path of name without symbolic links, as far as it exists.
func resolve(name string) string {
	name, err := filepath.Abs(name)
	if err != nil {
		return name
	}
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}
	if up := filepath.Dir(name); up != name {
		return filepath.Join(resolve(up), filepath.Base(name))
	}
	return name
}

// below tells whether path is dir or lies below it. Both are absolute.
func below(dir, path string) bool {
	way, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(way)
}

// misplaced returns what is wrong with where a volume lies, which is there.
func misplaced(name string) error {
	st, err := os.Stat(name)
	if remote(name) || err != nil || !st.Mode().IsRegular() {
		return nil
	}
	if inMemory(name) {
		err = fmt.Errorf("%s lies in memory (tmpfs): it is lost when this machine stops", name)
	}
	if e := unmounted(name); e != nil {
		err = errors.Join(err, fmt.Errorf("%s may not be the volume that is meant: %w", name, e))
	}
	return err
}

// quoted is a name as a shell takes it.
func quoted(name string) string {
	if strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-_.:/") == "" {
		return name
	}
	if text := strconv.Quote(name); shown(name) == text { // with escapes, which bash, zsh and newer shells take
		return "$'" + strings.ReplaceAll(text[1:len(text)-1], "'", `\'`) + "'"
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

// shown is a name of a file for a terminal: quoted, if it has what cannot be printed.
func shown(name string) string {
	if printable(name) {
		return name
	}
	return strconv.Quote(name)
}

// printable tells whether there is nothing in a name that a terminal takes for more than a character.
func printable(name string) bool {
	return utf8.ValidString(name) && strings.IndexFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// plain is a text for a terminal, with names in it that are not ours: what cannot be printed is escaped, but lines and
// tabs stay.
func plain(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		_, n := utf8.DecodeRuneInString(text)
		c := text[:n]
		if text = text[n:]; c != "\n" && c != "\t" && !printable(c) {
			c = strconv.Quote(c)
			c = c[1 : len(c)-1]
		}
		b.WriteString(c)
	}
	return b.String()
}
