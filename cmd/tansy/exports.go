package main

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"log/slog"
	"net"
	"path"
	"strings"

	tansyfs "tansy/fs"
	"tansy/nfs/exports"
)

// exportsCommand is `tansy exports`.
func exportsCommand() (*flagSet, action) {
	f := newFlags("exports", "check FILE", `
  tansy exports check /etc/tansy.exports

It prints the exports as they are understood: for each client all options, those
that are not in the file included. Options of exports(5) that change nothing
here, such as fsid=0, are accepted with a warning on standard error.

exit codes:
  0  the file can be used
  1  there are mistakes: each is printed with the line and the column
  2  wrong arguments, or the file cannot be read; or the exports cannot be
     printed

A file, which has the syntax of exports(5):
  # addresses, networks, host names, patterns
  /           192.0.2.7(rw,no_root_squash)
  /projects   10.0.0.0/8(rw) *.example.org(ro)
  /public     *(ro,all_squash,insecure)
  # with TLS alone, and by the name in a client's certificate
  /secret     10.0.0.0/8(rw,xprtsec=tls:mtls) dns:host7.example.org(rw)
`)
	return f, func(args []string) int {
		pos, code, done := parse(f, args, 1, 2)
		if done {
			return code
		}
		if pos[0] != "check" {
			return misused(f, fmt.Sprintf("there is no %q: give check FILE", pos[0]))
		}
		if len(pos) < 2 {
			return misused(f, missingArguments(f, len(pos)))
		}
		list, warnings, err := exports.ReadFile(pos[1])
		for _, w := range warnings {
			warning("exports")(w)
		}
		var p *exports.Problem
		switch {
		case errors.As(err, &p):
			stdout.conclude("%s", plain(err.Error()))
			return exitFailure
		case err != nil:
			fail("exports", err)
			return exitUsage
		}
		for _, e := range list {
			fmt.Fprintln(stdout, e.Path)
			for _, c := range e.Clients {
				fmt.Fprintf(stdout, "  %-24s %s\n", c.Name, &c.Rule)
			}
		}
		if len(list) == 0 {
			fmt.Fprintln(stdout, "nothing is exported")
		}
		return exitOK
	}
}

// exportsSource is a file of exports that is read again and again, for volumes with these paths for clients.
type exportsSource struct {
	name    string
	volumes []string
	warn    func(error)
	warned  map[string]bool // what was warned of, without its place
	tls     *protection
}

// read reads the tables: of each volume its own. A warning is given once, however often the file is read.
func (s *exportsSource) read() (tables []*exports.Table, err error) {
	list, warnings, err := exports.ReadFile(s.name)
	if errors.As(err, new(*iofs.PathError)) {
		err = fmt.Errorf("--exports: %w: give a file that tansy exports check accepts", err)
	}
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		if p := new(exports.Problem); errors.As(w, &p) && !s.warned[p.What] {
			s.warned[p.What] = true
			s.warn(w)
		}
	}
	exports.Default(list, s.tls.transports)
	s.tls.warnUseless(s.name, list, s.warn)
	split, err := exports.Split(list, s.volumes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	for i, l := range split {
		if len(l) == 0 {
			s.warn(fmt.Errorf("%s exports nothing of the volume at %s: nobody may mount it", s.name, s.volumes[i]))
		}
		tables = append(tables, exports.NewTable(l, nil))
	}
	return tables, nil
}

// warnMissing warns of what is exported and is not there, and so cannot be mounted.
func (s *exportsSource) warnMissing(tables []*exports.Table, volumes []*volume) {
	for i, v := range volumes {
		if v.fs == nil || v.failed.Load() != nil {
			continue
		}
		for _, e := range tables[i].Exports() {
			why := "is not in the volume " + v.image + ", so that nobody can mount it: make the directory"
			switch err := findDirectory(v.fs, e.Path); err {
			case nil:
				continue
			case tansyfs.ErrNoEnt:
			case tansyfs.ErrNotDir:
				why = "is no directory of the volume " + v.image + ", so that nobody can mount it"
			default:
				why = fmt.Sprintf("cannot be looked up in the volume %s: %v", v.image, err)
			}
			s.warn(fmt.Errorf("%s:%d: %s %s", s.name, e.Line, path.Join(v.path, e.Path), why))
		}
	}
}

// findDirectory returns nil if there is a directory at a path, to which no symbolic link leads, as MOUNT has it.
func findDirectory(f *tansyfs.FS, place string) error {
	at := f.Root()
	for name := range strings.SplitSeq(strings.Trim(place, "/"), "/") {
		if name == "" {
			return nil // the root
		}
		n, err := f.Lookup(&tansyfs.Cred{}, at, []byte(name))
		if err != nil {
			return err
		}
		if n.Attr.Type != tansyfs.Directory {
			return tansyfs.ErrNotDir
		}
		at = n.Handle
	}
	return nil
}

// warnOpen warns of a server without rules that listens where other machines reach it.
func warnOpen(log *slog.Logger, addr net.Addr) {
	if a, ok := addr.(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		log.Warn("everybody who reaches this address may read and write everything, as any user: --exports FILE says who "+
			"may", "listen", addr.String())
	}
}
