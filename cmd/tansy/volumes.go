package main

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"tansy/disk/nbd"
	"tansy/disk/rbd"
	"tansy/nfs/exports"
)

// place is where a volume lies, and where clients find it.
type place struct{ image, path string }

// String is what --volume has for it.
func (p place) String() string {
	if p.path == "/" {
		return p.image
	}
	return p.image + ":" + p.path
}

// volumeList is the flag --volume of serve, which may be given several times.
type volumeList struct {
	list  []place
	given bool
}

func (l *volumeList) String() string {
	var all []string
	for _, p := range l.list {
		all = append(all, p.String())
	}
	return strings.Join(all, ", ")
}

// Set adds FILE or FILE:/PATH, or the same of an export of an NBD server. The file's name may have colons in it, even
// before a slash if a path is given.
func (l *volumeList) Set(text string) error {
	p := place{text, "/"}
	name := 0 // where a path may begin
	if nbd.IsName(text) {
		name = strings.Index(text, "://") + len("://")
	} else if rbd.IsName(text) {
		name = len("rbd:")
	}
	if scheme := schemeLike.FindString(text); name == 0 && scheme != "" &&
		(strings.HasPrefix(text[len(scheme):], "//") || schemes.MatchString(text)) {
		if err := strange(text); err != nil {
			return err
		}
	}
	if i := strings.LastIndex(text[name:], ":/"); i >= 0 {
		p = place{text[:name+i], text[name+i+1:]}
	} else if right := withSlash(text[name:]); right != "" {
		return fmt.Errorf("the path for clients begins with a slash: give %s%s", text[:name], right)
	}
	if file, ok := strings.CutSuffix(p.image, ":"); ok && p.path == "/" && !remote(text) && missing(text) {
		return fmt.Errorf("the path for clients is missing behind the colon: give %s:/PATH, or %[1]s alone", file)
	}
	switch {
	case p.image == "":
		return errors.New("no volume: give an image file, a block device or an export of an NBD server, " +
			"and for several :/PATH behind each")
	case slices.ContainsFunc(strings.Split(p.path, "/"), noName) || len(p.path) > 1024:
		return fmt.Errorf("%s is no path that clients can mount", p.path)
	}
	p.path = path.Clean(p.path)
	if !l.given {
		l.list, l.given = nil, true
	}
	l.list = append(l.list, p)
	return nil
}

// noName tells whether clients cannot mount a path with this part.
func noName(part string) bool { return part == "." || part == ".." || len(part) > 255 }

// pathLike is what may be meant as a path for clients, behind the last colon of a name.
var pathLike = regexp.MustCompile(`^(.+):([A-Za-z][A-Za-z0-9_-]*)$`)

// withSlash is what is meant by FILE:PATH, where the path lacks its slash; "" if text may be the name of a file or
// device.
func withSlash(text string) string {
	m := pathLike.FindStringSubmatch(text)
	if m == nil || !missing(text) || missing(m[1]) && (below("/dev", text) || schemeLike.MatchString(text)) {
		return ""
	}
	return m[1] + ":/" + m[2]
}

// maxVolumes bounds the volumes of a server.
const maxVolumes = 64

// wrong says what is wrong with the volumes together, or nothing.
func (l *volumeList) wrong() string {
	if len(l.list) > maxVolumes {
		return fmt.Sprintf("%d volumes are too many: %d is the limit", len(l.list), maxVolumes)
	}
	for i, a := range l.list {
		for _, b := range l.list[:i] {
			switch {
			case a.image == b.image || !remote(a.image) && !remote(b.image) && sameFile(resolve(a.image), resolve(b.image)):
				return fmt.Sprintf("--volume %v and --volume %v are the same volume: give each volume once", b, a)
			case exports.Covers(a.path, b.path) || exports.Covers(b.path, a.path):
				return fmt.Sprintf("clients would find %s at %s and %s at %s, of which one is in the other: "+
					"give each a path of its own, as --volume FILE:/PATH", b.image, b.path, a.image, a.path)
			}
		}
	}
	return ""
}

// wrongToMake says what is wrong with the volumes if those that are missing are made, or are not; or nothing.
func (l *volumeList) wrongToMake(create, readOnly bool) string {
	if create && readOnly {
		return "--read-only makes nothing: leave --create out"
	}
	files := 0
	for _, p := range l.list {
		if err := strange(p.image); err != nil {
			return err.Error()
		}
		if !remote(p.image) {
			files++
		}
	}
	if create && files == 0 {
		return "--create makes image files: tansy mkfs --force makes a volume on what a server has"
	}
	return ""
}

// paths are those for clients.
func (l *volumeList) paths() (all []string) {
	for _, p := range l.list {
		all = append(all, p.path)
	}
	return all
}
