//go:build linux || darwin

package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"tansy/disk/rbd"
	tansyfs "tansy/fs"
	"tansy/mount"
	"tansy/nfs/nlm"
)

// localMount is what serve mounts on its own machine: its flags, and the mount while there is one.
type localMount struct {
	dir     string
	options mounting

	at     *mount.Mount
	how    string        // the kernel's requests come, if not as ever
	ending chan struct{} // closed when we unmount it
}

func (l *localMount) flags(f *flagSet) {
	f.StringVar(&l.dir, "mount", "", "mount the volume on directory `DIR` of this machine, too, through FUSE "+
		"(docs/guide/mount.md); for one volume alone")
	f.Var(l, "mount-options", "`OPTIONS` of --mount, as tansy mount has them for -o: allow_other, sync, noxattr, ro, "+
		"noexec; suid and dev lift nosuid and nodev, which it has by itself")
}

// String is for flag.Value.
func (l *localMount) String() string { return "" }

// Set takes options of --mount-options over.
func (l *localMount) Set(list string) error {
	for option := range strings.SplitSeq(list, ",") {
		switch name, _, _ := strings.Cut(option, "="); name {
		case "cache", "discard", "nodiscard", "commit":
			return fmt.Errorf("%q: that is for the volume: give --cache, --discard, or --commit-interval", option)
		case "blkdev", "debug":
			return fmt.Errorf("%q: that is for tansy mount alone", option)
		case "remount":
			return fmt.Errorf("%q: that is for what is mounted: tansy mount VOLUME DIR -o %s", option, list)
		}
	}
	return l.options.Set(list)
}

// wrong says what is wrong with the flags for these volumes, or nothing.
func (l *localMount) wrong(places []place) string {
	switch {
	case l.options.both:
		return "--mount-options has ro and rw, which contradict each other: leave one of them out"
	case l.dir == "":
	case len(places) > 1:
		return "--mount is for a server of one volume: start a server for each that is to be mounted"
	case rbd.IsName(places[0].image):
		return "--mount is not for volumes on Ceph: they go from host to host, and what uses a mount cannot go with them"
	}
	return ""
}

// memory is what the mount may need, in bytes.
func (l *localMount) memory() int64 {
	if l.dir == "" {
		return 0
	}
	return mount.MaxPending
}

// find returns an error if there is no directory to mount on.
func (l *localMount) find() error {
	if l.dir == "" {
		return nil
	}
	if err := mount.Usable(l.dir); err != nil && !mount.Gone(err) { // which may be what start replaces
		return fmt.Errorf("--mount: %w", err)
	}
	return nil
}

// start mounts the volume, if that is wanted, and returns what is to be served.
func (l *localMount) start(v *volume, readOnly, locks bool) (tansyfs.OnceFileSystem, error) {
	if l.dir == "" {
		return v.fs, nil
	}
	dir, err := filepath.Abs(l.dir)
	if err != nil {
		return nil, err
	}
	source, err := anywhere(v.image)
	if err != nil {
		return nil, err
	}
	if hides(dir, source) {
		return nil, errHides
	}
	if err := l.options.covers(dir, v.log); err != nil {
		return nil, err
	}
	files := v.fs.Deferring()
	if l.options.sync {
		files = v.fs
	}
	at, err := mount.New(files, dir, mount.Options{
		Source: source, ReadOnly: readOnly || l.options.readOnly, Sync: l.options.sync,
		AllowOther: l.options.allowOther, NoXattr: l.options.noXattr,
		// NFS clients may plant what a program here must not run as root.
		Flags:  append([]string{"nosuid", "nodev"}, l.options.flags...),
		Shared: true, Locks: locks, Transport: mount.Transport(l.options.by), Log: v.log,
	})
	if err != nil {
		return nil, err
	}
	l.dir, l.at, l.ending = dir, at, make(chan struct{})
	l.how = sayHow(at, v.log)
	v.log.Info("mounted"+l.how, "volume", source, "dir", dir)
	go func() {
		select {
		case <-at.Done():
			v.log.Info("unmounted by somebody else; the volume is served by NFS on, and is not mounted again before the "+
				"next start", "dir", dir)
		case <-l.ending:
		}
	}()
	return at.Beside(v.fs), nil
}

// lockBeside has the mount's programs and NFS clients exclude each other, with locks that clients have, too.
func (l *localMount) lockBeside(locks *nlm.Local) {
	if l.at != nil && locks != nil {
		l.at.UseLocks(locks)
	}
}

// print tells where the volume is mounted.
func (l *localMount) print(w io.Writer, v *volume) {
	if l.at != nil {
		fmt.Fprintf(w, "%s is mounted on %s%s\n", v.image, l.dir, l.how)
	}
}

// end unmounts. Those who use the file system have as long as drain; false: it is still in use, so the volume may not
// be closed, but all is durable. A volume that is lost stays mounted; with the end of the process all calls fail there.
func (l *localMount) end(v *volume) (idle bool) {
	if l.at == nil {
		return true
	}
	close(l.ending)
	if v.failed.Load() != nil {
		deserted(v.log, l.dir)
		return false
	}
	if err := l.unmount(v); err != nil {
		v.log.Error("cannot unmount", "dir", l.dir, "err", err)
	}
	select {
	case <-l.at.Done():
		return true
	case <-time.After(drain):
	}
	if v.fs.Sync() == nil {
		v.log.Warn("the mount is still in use, and whoever uses it gets errors from now on; all that was done is "+
			"durable, and the next start recovers the volume", "dir", l.dir, "holders", l.at.Holders())
	}
	return false
}

// unmount unmounts, lazily if the file system is in use, unless it is out of sight already.
func (l *localMount) unmount(v *volume) error {
	err := l.at.Unmount(false)
	if errors.Is(err, mount.ErrBusy) {
		v.log.Warn("the mount is in use: it goes out of sight now, and those who use it have some time", "dir", l.dir,
			"time", drain)
		err = l.at.Unmount(true)
	}
	if errors.Is(err, mount.ErrNotThere) {
		return nil
	}
	return err
}
