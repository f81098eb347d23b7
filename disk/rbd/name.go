package rbd

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

const scheme = "rbd:"

// IsName tells whether name is that of an image of Ceph (rbd:...), and not that of a file.
func IsName(name string) bool { return strings.HasPrefix(name, scheme) }

// target is what a name says.
type target struct {
	pool, image       string
	id, conf, keyring string // "": the default
}

// Check says what is wrong with the name of an image.
func Check(name string) error {
	_, err := parse(name)
	return err
}

// parse takes rbd:POOL/IMAGE[?id=&conf=&keyring=] apart. Names of files in it become such as mean the same from any
// folder.
func parse(name string) (*target, error) {
	path, options, _ := strings.Cut(strings.TrimPrefix(name, scheme), "?")
	query, err := url.ParseQuery(options)
	if err != nil {
		return nil, err
	}
	pool, image, _ := strings.Cut(path, "/")
	if pool == "" || image == "" {
		return nil, errors.New("rbd:POOL/IMAGE is meant: one of the two is missing")
	}
	t := &target{}
	for field, text := range map[*string]string{&t.pool: pool, &t.image: image} {
		if *field, err = url.PathUnescape(text); err != nil {
			return nil, err
		}
		if strings.ContainsAny(*field, "/@") {
			return nil, errors.New("rbd:POOL/IMAGE is meant, without a namespace and without a snapshot")
		}
	}
	for key, values := range query {
		field := map[string]*string{"id": &t.id, "conf": &t.conf, "keyring": &t.keyring}[key]
		switch {
		case field == nil:
			return nil, fmt.Errorf("%q means nothing for rbd: id, conf and keyring do", key)
		case len(values) > 1 || values[0] == "":
			return nil, fmt.Errorf("one value is wanted for %s", key)
		}
		*field = values[0]
	}
	for _, file := range []*string{&t.conf, &t.keyring} {
		if *file != "" {
			if *file, err = filepath.Abs(*file); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

// parameters are those of the helper.
func (t *target) parameters() (all []string) {
	given := map[string]string{"pool": t.pool, "image": t.image, "id": t.id, "conf": t.conf, "keyring": t.keyring}
	for key, value := range given {
		if value != "" {
			all = append(all, key+"="+value)
		}
	}
	slices.Sort(all)
	return all
}
